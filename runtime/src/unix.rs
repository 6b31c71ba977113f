//! Timestamps as other systems count them: a whole number of seconds, milliseconds, microseconds or nanoseconds since 1970-01-01T00:00:00Z.

use crate::Timestamp;

/// The unit in which other systems count the time since 1970-01-01T00:00:00Z.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UnixUnit {
    /// The number counts seconds.
    Second,
    /// The number counts thousandths of a second.
    Millisecond,
    /// The number counts millionths of a second, the unit of timestamps.
    Microsecond,
    /// The number counts billionths of a second. The last three digits are cut off, towards the past.
    Nanosecond,
}

impl UnixUnit {
    /// The names of the units, from the longest unit to the shortest.
    pub const NAMES: [&str; 4] = ["s", "ms", "us", "ns"];

    const ALL: [UnixUnit; 4] = [UnixUnit::Second, UnixUnit::Millisecond, UnixUnit::Microsecond, UnixUnit::Nanosecond];

    /// The time unit with the name `name`; `None` if there is none.
    #[must_use]
    pub fn of_name(name: &str) -> Option<UnixUnit> {
        UnixUnit::NAMES.iter().position(|known| *known == name).map(|at| UnixUnit::ALL[at])
    }

    /// A length of time in microseconds, and the same length in this unit: `(1_000, 1)` for milliseconds, `(1, 1_000)` for nanoseconds.
    #[must_use]
    pub const fn ratio(self) -> (i64, i64) {
        match self {
            UnixUnit::Second => (1_000_000, 1),
            UnixUnit::Millisecond => (1_000, 1),
            UnixUnit::Microsecond => (1, 1),
            UnixUnit::Nanosecond => (1, 1_000),
        }
    }

    /// The moment `count` units after 1970-01-01T00:00:00Z; `None` outside of the years 1 to 9999.
    ///
    /// ```
    /// use cembra_runtime::{Timestamp, UnixUnit};
    ///
    /// assert_eq!(UnixUnit::Second.timestamp(-1), Some(Timestamp(-1_000_000)));
    /// assert_eq!(UnixUnit::Nanosecond.timestamp(-1), Some(Timestamp(-1)));
    /// // Nanoseconds that are taken for microseconds are of the year 58136.
    /// assert_eq!(UnixUnit::Microsecond.timestamp(1_772_000_000_000_000_000), None);
    /// ```
    #[must_use]
    pub fn timestamp(self, count: i64) -> Option<Timestamp> {
        let (micros, units) = self.ratio();
        Timestamp::counted(count.div_euclid(units), micros)
    }
}

impl Timestamp {
    /// The moment `count` times `micros` microseconds after 1970-01-01T00:00:00Z; `None` outside of the years 1 to 9999.
    #[must_use]
    pub fn counted(count: i64, micros: i64) -> Option<Timestamp> {
        count.checked_mul(micros).map(Timestamp).filter(|moment| moment.has_text())
    }
}
