//! Parses dates and timestamps in data files that have a custom format or are in the local time of a zone. The formats
//! and zones are the same as for operators on dates, such as `strings.parse_date`.

use crate::calendar::zones;
use cembra_runtime::{Date, Timestamp};
use cembra_value::time_format::{MomentKind, TimeFormatError, has_offset, read_padded_date, read_padded_timestamp};
use jiff::tz::TimeZone;

/// A format of dates or timestamps in data files, such as `%d.%m.%Y`, with the letters of `strings.parse_date` and `strings.parse_timestamp`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MomentForm {
    format: Box<str>,
}

impl MomentForm {
    fn checked(kind: MomentKind, format: &str) -> Result<MomentForm, TimeFormatError> {
        kind.check(format, true)?;
        Ok(MomentForm { format: format.into() })
    }

    /// Makes a format of dates.
    ///
    /// # Errors
    /// If the format has no year, or a part that dates do not have.
    pub fn of_dates(format: &str) -> Result<MomentForm, TimeFormatError> {
        Self::checked(MomentKind::Date, format)
    }

    /// Makes a format of timestamps.
    ///
    /// # Errors
    /// If the format has no year, or a part that timestamps do not have.
    pub fn of_timestamps(format: &str) -> Result<MomentForm, TimeFormatError> {
        Self::checked(MomentKind::Timestamp, format)
    }

    /// Parses a date in this format; `None` if the text does not match the format or is not a date.
    #[must_use]
    pub fn date(&self, text: &str) -> Option<Date> {
        read_padded_date(&self.format, text)
    }

    /// Parses a timestamp in this format, in UTC if the text has no offset; `None` if the text does not match the format or
    /// is not a timestamp.
    #[must_use]
    pub fn timestamp(&self, text: &str) -> Option<Timestamp> {
        read_padded_timestamp(&self.format, text)
    }

    /// Returns true if texts in this format contain an offset from UTC.
    #[must_use]
    pub fn has_offset(&self) -> bool {
        has_offset(&self.format)
    }
}

/// The clock of a time zone, which converts the zone's local time to UTC.
#[derive(Clone, Debug)]
pub struct LocalClock {
    name: Box<str>,
    zone: &'static TimeZone,
}

impl LocalClock {
    /// Makes the clock of the time zone with this name, such as `Europe/Zurich`.
    ///
    /// # Errors
    /// If there is no such zone.
    pub fn of_zone(name: &str) -> Result<LocalClock, TimeFormatError> {
        match zones::zone(name) {
            Some(zone) => Ok(LocalClock { name: name.into(), zone }),
            None => Err(zones::unknown(name)),
        }
    }

    /// Returns true if the zone skips the local time `shown`, because clocks are put forward. `shown` is written as a UTC
    /// timestamp.
    #[must_use]
    pub fn skips(&self, shown: Timestamp) -> bool {
        zones::is_skipped(shown, self.zone)
    }

    /// The name of the time zone of this clock.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The moment at which the zone has the local time `shown`, which is written as a UTC timestamp. If the local time occurs twice, the result is
    /// the earlier moment. `None` if the zone skips this local time.
    #[must_use]
    pub fn moment(&self, shown: Timestamp) -> Option<Timestamp> {
        zones::earlier(shown, self.zone)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moment(text: &str) -> Timestamp {
        text.parse().expect("a timestamp")
    }

    #[test]
    fn clocks_of_a_zone_show_each_moment_once_but_for_the_hour_that_is_left_out() {
        let clock = LocalClock::of_zone("Europe/Zurich").expect("a zone");
        for (shown, expected) in [
            ("2026-07-01T12:15:00Z", Some("2026-07-01T10:15:00Z")),
            ("2026-10-25T02:30:00Z", Some("2026-10-25T00:30:00Z")),
            ("2026-03-29T02:30:00Z", None),
        ] {
            assert_eq!(clock.moment(moment(shown)), expected.map(moment), "{shown}");
        }
        let wrong = LocalClock::of_zone("Europe/Zuerich").expect_err("no zone");
        assert_eq!(wrong.message, "there is no time zone `Europe/Zuerich`");
        assert_eq!(wrong.hint, "did you mean `Europe/Zurich`?");
    }

    #[test]
    fn forms_are_those_of_operators() {
        let form = MomentForm::of_dates("%d.%m.%Y").expect("a form");
        assert_eq!(form.date("1.2.2026").map(|date| date.to_string()).as_deref(), Some("2026-02-01"));
        assert_eq!(form.date("2026-02-01"), None);
        assert!(MomentForm::of_dates("%d.%m.%Y %H").is_err() && MomentForm::of_dates("%d.%m.").is_err());
        let form = MomentForm::of_timestamps("%d.%m.%Y %H:%M").expect("a form");
        assert_eq!((form.timestamp("1.2.2026 7:05"), form.has_offset()), (Some(moment("2026-02-01T07:05:00Z")), false));
        assert!(MomentForm::of_timestamps("%Y%m%d %H%z").is_ok_and(|form| form.has_offset()));
    }
}
