//! Lengths of time: the values of DURATION, their texts, and their arithmetic, which fails if a result does not fit. A duration is a
//! number of microseconds, so months and years are not supported.
//!
//! There are two notations: `P1DT12H` of ISO 8601, which data uses, and `1d 12h` of the text language.

use crate::TimeTextError;
use std::fmt;
use std::str::FromStr;

/// A `DURATION`: microseconds, as in Arrow. Every `i64` is a duration and has a text.
///
/// ```
/// use cembra_runtime::Duration;
///
/// let length: Duration = "P1DT12H".parse()?;
/// assert_eq!((length, length.literal().to_string()), (Duration(36 * 3_600_000_000), "1d 12h".into()));
/// assert_eq!((Duration(-1_500_000).to_string(), Duration(0).to_string()), ("-PT1.5S".into(), "PT0S".into()));
/// # Ok::<(), cembra_runtime::TimeTextError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[repr(transparent)]
pub struct Duration(pub i64);

/// The units of literals and their microseconds, the longest first.
const UNITS: [(&str, u64); 7] =
    [("w", 7 * DAY), ("d", DAY), ("h", HOUR), ("min", MINUTE), ("s", SECOND), ("ms", 1000), ("us", 1)];
const SECOND: u64 = 1_000_000;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

/// The reason why a literal is not a duration.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DurationFault {
    /// A part of the literal is not a number immediately followed by a unit, or a `_` is not between two digits.
    Part,
    /// A unit in the literal is not shorter than the unit before it.
    Order,
    /// A part of the literal that is not its last part has a fraction.
    Fraction,
    /// The literal's length is not a whole number of microseconds.
    Digits,
    /// The literal's length does not fit in 64 bits of microseconds.
    Range,
}

impl fmt::Display for DurationFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            DurationFault::Part => {
                "each part must be a number with a unit directly after it: w, d, h, min, s, ms or us"
            }
            DurationFault::Order => "units must go from the longest to the shortest, each at most once",
            DurationFault::Fraction => "only the last part may have a fraction",
            DurationFault::Digits => "the duration is not a whole number of microseconds",
            DurationFault::Range => "the duration does not fit into 64 bits of microseconds, about 292,000 years",
        })
    }
}

impl std::error::Error for DurationFault {}

impl Duration {
    /// Returns true if `letters` is a unit of literals, such as `min`.
    #[must_use]
    pub fn is_unit(letters: &str) -> bool {
        UNITS.iter().any(|(unit, _)| *unit == letters)
    }

    /// Parses a literal of the text language: `1d 12h`, `1.5h`, `-90s`. A minus sign applies to all parts.
    ///
    /// # Errors
    /// A [`DurationFault`] if the text is not such a literal.
    pub fn from_literal(text: &str) -> Result<Duration, DurationFault> {
        let (is_negative, parts) = match text.strip_prefix('-') {
            Some(rest) => (true, rest.trim_start()),
            None => (false, text),
        };
        let (mut total, mut next_unit, mut has_fraction) = (0_u64, 0, false);
        let mut parts = parts.split_ascii_whitespace().peekable();
        parts.peek().ok_or(DurationFault::Part)?;
        for part in parts {
            if has_fraction {
                return Err(DurationFault::Fraction);
            }
            let split = part.find(|c: char| c.is_ascii_alphabetic()).ok_or(DurationFault::Part)?;
            let (number, letters) = part.split_at(split);
            let at = UNITS.iter().position(|(unit, _)| *unit == letters).ok_or(DurationFault::Part)?;
            if at < next_unit {
                return Err(DurationFault::Order);
            }
            next_unit = at + 1;
            has_fraction = number.contains('.');
            total = total.checked_add(amount(number, UNITS[at].1)?).ok_or(DurationFault::Range)?;
        }
        signed(total, is_negative).ok_or(DurationFault::Range)
    }

    /// Formats the duration as a literal of the text language: `1d 12h`, `0s`. Weeks are written as days.
    #[must_use]
    pub const fn literal(self) -> impl fmt::Display {
        Literal(self)
    }

    /// Parses a duration of ISO 8601: `P1DT12H`, `-PT1.5S`, `P2W`. Each of `nW`, `nD`, `nH`, `nM` and `nS` may be left out, but not all
    /// of them. Seconds may have up to six digits after the point.
    ///
    /// # Errors
    /// If the text has another form, has years or months, or does not fit in 64 bits of microseconds.
    pub fn from_text(text: &str) -> Result<Duration, TimeTextError> {
        let (is_negative, rest) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let rest = rest.strip_prefix('P').ok_or(TimeTextError)?;
        let (days, time) = match rest.split_once('T') {
            Some((_, "")) => return Err(TimeTextError),
            Some((days, time)) => (days, time),
            None if rest.is_empty() => return Err(TimeTextError),
            None => (rest, ""),
        };
        let mut total = 0_u64;
        for (mut rest, units) in
            [(days, [(b'W', 7 * DAY), (b'D', DAY)].as_slice()), (time, &[(b'H', HOUR), (b'M', MINUTE), (b'S', SECOND)])]
        {
            for (letter, unit) in units {
                let Some((number, behind)) = rest.split_once(char::from(*letter)) else { continue };
                if *letter != b'S' && number.contains('.') || number.contains('_') {
                    return Err(TimeTextError);
                }
                let part = amount(number, *unit).map_err(|_| TimeTextError)?;
                total = total.checked_add(part).ok_or(TimeTextError)?;
                rest = behind;
            }
            if !rest.is_empty() {
                return Err(TimeTextError);
            }
        }
        signed(total, is_negative).ok_or(TimeTextError)
    }

    /// Parses a duration as data may contain it: like [`from_text`](Duration::from_text), but seconds may have more than six digits. They
    /// are rounded down to microseconds, as by [`Timestamp::from_data_text`](crate::Timestamp::from_data_text), so a negative duration
    /// becomes longer.
    ///
    /// ```
    /// use cembra_runtime::Duration;
    ///
    /// assert_eq!(Duration::from_data_text("PT0.123456789S"), Ok(Duration(123_456)));
    /// assert_eq!(Duration::from_data_text("-PT0.000000001S"), Ok(Duration(-1)));
    /// ```
    ///
    /// # Errors
    /// The errors of [`from_text`](Duration::from_text), but seconds may have more than six digits.
    pub fn from_data_text(text: &str) -> Result<Duration, TimeTextError> {
        const MOST_DIGITS: usize = 6;
        let split = text.split_once('.').and_then(|(whole, rest)| Some((whole, rest.strip_suffix('S')?)));
        match split {
            Some((whole, digits))
                if digits.len() > MOST_DIGITS && digits.bytes().all(|digit| digit.is_ascii_digit()) =>
            {
                let (kept, cut) = digits.split_at(MOST_DIGITS);
                let is_longer = text.starts_with('-') && cut.bytes().any(|digit| digit != b'0');
                let shorter = Duration::from_text(&format!("{whole}.{kept}S"))?;
                shorter.0.checked_sub(i64::from(is_longer)).map(Duration).ok_or(TimeTextError)
            }
            _ => Duration::from_text(text),
        }
    }

    /// Returns the duration multiplied by an integer; `None` if it does not fit in 64 bits.
    #[must_use]
    pub fn times(self, factor: i64) -> Option<Duration> {
        self.0.checked_mul(factor).map(Duration)
    }

    /// Returns the duration multiplied by a float, rounded to microseconds, halves to even; `None` if the product is NaN or does not fit in 64 bits.
    #[must_use]
    pub fn times_float(self, factor: f64) -> Option<Duration> {
        rounded(self.0 as f64 * factor)
    }

    /// Returns the duration divided by an integer, rounded to microseconds, halves to even; `None` if the divisor is zero or the result does not fit
    /// in 64 bits.
    #[must_use]
    pub fn over(self, divisor: i64) -> Option<Duration> {
        let (quotient, rest) = (self.0.checked_div(divisor)?, self.0.checked_rem(divisor)?);
        // The rest is compared with half of the divisor, without doubling either of them, which could overflow.
        let (rest, size) = (rest.unsigned_abs(), divisor.unsigned_abs());
        let is_up = match rest.cmp(&(size - rest)) {
            std::cmp::Ordering::Less => false,
            std::cmp::Ordering::Equal => quotient % 2 != 0,
            std::cmp::Ordering::Greater => true,
        };
        let away = if (self.0 < 0) == (divisor < 0) { 1 } else { -1 };
        if is_up { quotient.checked_add(away).map(Duration) } else { Some(Duration(quotient)) }
    }

    /// Returns the duration divided by a float, rounded to microseconds, halves to even; `None` if the result is NaN, infinite, or does not fit in 64
    /// bits.
    #[must_use]
    pub fn over_float(self, divisor: f64) -> Option<Duration> {
        rounded(self.0 as f64 / divisor)
    }
}

/// Rounds a number of microseconds, halves to even; `None` if that does not fit in 64 bits.
fn rounded(micros: f64) -> Option<Duration> {
    const BEYOND: f64 = 9_223_372_036_854_775_808.0;
    let micros = micros.round_ties_even();
    (-BEYOND..BEYOND).contains(&micros).then_some(Duration(micros as i64))
}

/// The length with its sign; `None` if it does not fit in 64 bits.
fn signed(length: u64, is_negative: bool) -> Option<Duration> {
    if is_negative { 0_i64.checked_sub_unsigned(length) } else { i64::try_from(length).ok() }.map(Duration)
}

/// Parses a number of units as microseconds, without rounding.
fn amount(number: &str, unit: u64) -> Result<u64, DurationFault> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    let count = digits(whole)?.checked_mul(unit).ok_or(DurationFault::Range)?;
    let fraction = fraction.trim_end_matches('0');
    if fraction.is_empty() {
        return if number.ends_with('.') { Err(DurationFault::Part) } else { Ok(count) };
    }
    // The microseconds of a week are 2 to the power of 13 times an odd number, and no unit has a higher power of 2. So a fraction with
    // more digits, the last of which is not zero, cannot be a whole number of microseconds.
    const MOST_DIGITS: usize = 13;
    let length = fraction.bytes().filter(|digit| *digit != b'_').count();
    if length > MOST_DIGITS {
        return Err(DurationFault::Digits);
    }
    let (product, power) = (u128::from(digits(fraction)?) * u128::from(unit), 10_u128.pow(length as u32));
    if !product.is_multiple_of(power) {
        return Err(DurationFault::Digits);
    }
    // Less than one unit.
    count.checked_add((product / power) as u64).ok_or(DurationFault::Range)
}

/// Parses digits, with single `_` allowed between two digits.
fn digits(text: &str) -> Result<u64, DurationFault> {
    let bytes = text.as_bytes();
    let is_digit = |at: Option<&u8>| at.is_some_and(u8::is_ascii_digit);
    let mut number = 0_u64;
    for (at, byte) in bytes.iter().enumerate() {
        match byte {
            b'0'..=b'9' => {
                let more = number.checked_mul(10).and_then(|tens| tens.checked_add(u64::from(byte - b'0')));
                number = more.ok_or(DurationFault::Range)?;
            }
            b'_' if at > 0 && is_digit(bytes.get(at - 1)) && is_digit(bytes.get(at + 1)) => {}
            _ => return Err(DurationFault::Part),
        }
    }
    if bytes.is_empty() { Err(DurationFault::Part) } else { Ok(number) }
}

/// Subtracts the whole multiples of `unit` from `rest` and returns their number.
fn take(rest: &mut u64, unit: u64) -> u64 {
    let count = *rest / unit;
    *rest %= unit;
    count
}

/// Writes seconds and their unit, the fraction without trailing zeros.
fn write_seconds(f: &mut fmt::Formatter<'_>, micros: u64, unit: &str) -> fmt::Result {
    write!(f, "{}", micros / SECOND)?;
    let (mut rest, mut length) = (micros % SECOND, 6);
    if rest != 0 {
        while rest.is_multiple_of(10) {
            (rest, length) = (rest / 10, length - 1);
        }
        write!(f, ".{rest:0length$}")?;
    }
    f.write_str(unit)
}

impl FromStr for Duration {
    type Err = TimeTextError;

    /// Parses the text that `Display` writes.
    fn from_str(text: &str) -> Result<Duration, TimeTextError> {
        Duration::from_text(text)
    }
}

impl fmt::Display for Duration {
    /// Writes the duration as in ISO 8601: `P1DT12H`, `-PT0.5S`; zero is `PT0S`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.0.unsigned_abs();
        let days = take(&mut rest, DAY);
        f.write_str(if self.0 < 0 { "-P" } else { "P" })?;
        if days > 0 {
            write!(f, "{days}D")?;
        }
        if rest == 0 && days > 0 {
            return Ok(());
        }
        f.write_str("T")?;
        let is_zero = rest == 0;
        for (unit, letter) in [(HOUR, 'H'), (MINUTE, 'M')] {
            let count = take(&mut rest, unit);
            if count > 0 {
                write!(f, "{count}{letter}")?;
            }
        }
        if rest > 0 || is_zero { write_seconds(f, rest, "S") } else { Ok(()) }
    }
}

impl fmt::Debug for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Duration({self})")
    }
}

/// Formats a duration as a literal of the text language.
struct Literal(Duration);

impl fmt::Display for Literal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Duration(micros) = self.0;
        let mut rest = micros.unsigned_abs();
        let mut gap = if micros < 0 { "-" } else { "" };
        for (unit, letters) in [(DAY, "d"), (HOUR, "h"), (MINUTE, "min")] {
            let count = take(&mut rest, unit);
            if count > 0 {
                write!(f, "{gap}{count}{letters}")?;
                gap = " ";
            }
        }
        if rest == 0 && micros != 0 {
            return Ok(());
        }
        f.write_str(gap)?;
        write_seconds(f, rest, "s")
    }
}

#[cfg(feature = "chrono")]
mod with_chrono {
    use super::Duration;
    use crate::TimeTextError;
    use chrono::TimeDelta;

    impl TryFrom<TimeDelta> for Duration {
        type Error = TimeTextError;

        /// Rounds nanoseconds down to microseconds. Fails if the length does not fit in 64 bits of microseconds.
        fn try_from(length: TimeDelta) -> Result<Duration, TimeTextError> {
            // `num_microseconds` rounds towards zero.
            let micros = length.num_microseconds().ok_or(TimeTextError)?;
            let is_less = length < TimeDelta::microseconds(micros);
            micros.checked_sub(i64::from(is_less)).map(Duration).ok_or(TimeTextError)
        }
    }

    impl From<Duration> for TimeDelta {
        fn from(length: Duration) -> TimeDelta {
            TimeDelta::microseconds(length.0)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENDS: [(i64, &str, &str); 14] = [
        (0, "PT0S", "0s"),
        (1, "PT0.000001S", "0.000001s"),
        (-1, "-PT0.000001S", "-0.000001s"),
        (500_000, "PT0.5S", "0.5s"),
        (1_000_010, "PT1.00001S", "1.00001s"),
        (60_000_000, "PT1M", "1min"),
        (-90_000_000, "-PT1M30S", "-1min 30s"),
        (3_600_000_000, "PT1H", "1h"),
        (86_400_000_000, "P1D", "1d"),
        (-86_400_000_000, "-P1D", "-1d"),
        (129_600_000_000, "P1DT12H", "1d 12h"),
        (86_400_000_001, "P1DT0.000001S", "1d 0.000001s"),
        (i64::MAX, "P106751991DT4H54.775807S", "106751991d 4h 54.775807s"),
        (i64::MIN, "-P106751991DT4H54.775808S", "-106751991d 4h 54.775808s"),
    ];

    #[test]
    fn every_length_has_one_text_and_one_literal() {
        for (micros, text, literal) in ENDS {
            let length = Duration(micros);
            assert_eq!((length.to_string().as_str(), length.literal().to_string().as_str()), (text, literal));
            assert_eq!((text.parse(), Duration::from_literal(literal)), (Ok(length), Ok(length)));
        }
        // Multiples of a step that has no factor in common with the units.
        for step in -50_000..50_000_i64 {
            let length = Duration(step * 12_345_678_901 + step.rem_euclid(7) * 7_919_191_919_191);
            assert_eq!(length.to_string().parse(), Ok(length));
            assert_eq!(Duration::from_literal(&length.literal().to_string()), Ok(length));
        }
    }

    #[test]
    fn iso_texts_are_read_as_they_may_be_written() {
        for (text, micros) in [
            ("P2W", 2 * 7 * DAY),
            ("P1W1D", 8 * DAY),
            ("P0D", 0),
            ("-PT0S", 0),
            ("PT36H", 36 * HOUR),
            ("PT90M", 90 * MINUTE),
            ("P1DT90S", DAY + 90 * SECOND),
            ("PT0.500000S", SECOND / 2),
            ("PT007S", 7 * SECOND),
        ] {
            assert_eq!(text.parse(), Ok(Duration(micros as i64)), "{text}");
        }
        for wrong in [
            "",
            "P",
            "PT",
            "P1DT",
            "1D",
            "P1",
            "PT1",
            "P1Y",
            "P1M",
            "P1Y2DT3H",
            "P1H",
            "PT1D",
            "PT1S1M",
            "P1D1W",
            "PT1M1M",
            "P1.5D",
            "PT1.5H",
            "PT.5S",
            "PT1.S",
            "PT0.0000001S",
            "PT1,5S",
            "+PT1S",
            "P-1D",
            "PT-1S",
            "pt1s",
            " PT1S",
            "PT1S ",
            "PT1_0S",
            "PT0.5_0S",
            "P106751991DT4H54.775808S",
            "-P106751991DT4H54.775809S",
            "P999999999999999999999D",
            "PT\u{661}S",
            "36000000000",
        ] {
            assert_eq!(wrong.parse::<Duration>(), Err(TimeTextError), "{wrong}");
        }
    }

    #[test]
    fn literals_are_exact() {
        for (text, micros) in [
            ("30d", 30 * DAY),
            ("1.5h", 90 * MINUTE),
            ("1w 2d 3h 4min 5s 6ms 7us", 9 * DAY + 3 * HOUR + 4 * MINUTE + 5 * SECOND + 6007),
            ("1_000ms", SECOND),
            ("0.000_000_5w", 302_400),
            ("0.0001220703125w", 73_828_125),
        ] {
            assert_eq!(Duration::from_literal(text), Ok(Duration(micros as i64)), "{text}");
        }
        for (text, fault) in [
            ("", DurationFault::Part),
            ("5", DurationFault::Part),
            ("5m", DurationFault::Part),
            ("h", DurationFault::Part),
            ("1.h", DurationFault::Part),
            ("1__0s", DurationFault::Part),
            ("1h 1d", DurationFault::Order),
            ("1h 1h", DurationFault::Order),
            ("1.5h 3s", DurationFault::Fraction),
            ("0.5us", DurationFault::Digits),
            ("0.0000001s", DurationFault::Digits),
            ("0.1234567890123456789012345d", DurationFault::Digits),
            ("0.5w 1s", DurationFault::Fraction),
            ("0.00006103515625d", DurationFault::Digits),
            ("106751992d", DurationFault::Range),
            ("99999999999999999999999999999999999999999999d", DurationFault::Range),
            ("9223372036854775808us", DurationFault::Range),
        ] {
            assert_eq!(Duration::from_literal(text), Err(fault), "{text}");
        }
        assert_eq!(Duration::from_literal("-9223372036854775808us"), Ok(Duration(i64::MIN)));
        assert_eq!(Duration::from_literal("- 1d 12h"), Ok(Duration(-129_600_000_000)));
    }

    #[test]
    fn halves_are_rounded_to_even() {
        for (x, by, quotient) in [
            (5, 2, 2),
            (7, 2, 4),
            (-5, 2, -2),
            (-7, 2, -4),
            (5, -2, -2),
            (7, -2, -4),
            (1, 3, 0),
            (2, 3, 1),
            (-2, 3, -1),
            (i64::MAX, 2, i64::MAX / 2 + 1),
            (i64::MIN, 2, i64::MIN / 2),
            (i64::MIN, i64::MAX, -1),
            (i64::MAX, i64::MIN, -1),
            (i64::MIN / 2, i64::MIN, 0),
        ] {
            assert_eq!(Duration(x).over(by), Some(Duration(quotient)), "{x} / {by}");
        }
        assert_eq!((Duration(1).over(0), Duration(i64::MIN).over(-1)), (None, None));
        assert_eq!((Duration(5).times_float(0.5), Duration(7).over_float(2.0)), (Some(Duration(2)), Some(Duration(4))));
        assert_eq!((Duration(1).times_float(f64::NAN), Duration(1).over_float(0.0)), (None, None));
        assert_eq!(Duration(1).times_float(9_223_372_036_854_775_808.0), None);
        assert_eq!(Duration(-1).times_float(9_223_372_036_854_775_808.0), Some(Duration(i64::MIN)));
        assert_eq!((Duration(i64::MAX).times(2), Duration(3).times(-4)), (None, Some(Duration(-12))));
    }
}
