//! Dates and timestamps: the values of DATE and TIMESTAMP, their texts and their parts. The calendar is the Gregorian one, also for the years
//! before its introduction. There are no leap seconds, and no time zone but UTC.
//!
//! This module uses integer arithmetic only. The rules of operators implement the calendar again, in another way.

use std::fmt;
use std::str::FromStr;

/// A `DATE`: days since 1970-01-01, as in Arrow. Every `i32` is a date. The years 1 to 9999 are written with four digits, other years with a
/// sign and at least four digits; the year before 1 is `+0000`.
///
/// ```
/// use cembra_runtime::Date;
///
/// let date: Date = "2026-11-20".parse()?;
/// assert_eq!((date, date.civil()), (Date(20_777), (2026, 11, 20)));
/// assert_eq!((date.to_string(), format!("{date:?}")), ("2026-11-20".into(), "Date(2026-11-20)".into()));
/// let [ides, far]: [Date; 2] = ["-0044-03-15".parse()?, "+12345-01-01".parse()?];
/// assert_eq!((ides.civil(), far.to_string()), ((-44, 3, 15), "+12345-01-01".into()));
/// # Ok::<(), cembra_runtime::TimeTextError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[repr(transparent)]
pub struct Date(pub i32);

/// A `TIMESTAMP`: microseconds since 1970-01-01T00:00:00Z, as in Arrow. Every `i64` is a timestamp. The year is written as in a [`Date`].
///
/// ```
/// use cembra_runtime::{Date, Timestamp};
///
/// let moment: Timestamp = "2026-11-20T10:15:00.5Z".parse()?;
/// assert_eq!((moment.date(), moment.time()), (Date(20_777), (10, 15, 0, 500_000)));
/// assert_eq!(moment.to_string(), "2026-11-20T10:15:00.5Z");
/// # Ok::<(), cembra_runtime::TimeTextError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[repr(transparent)]
pub struct Timestamp(pub i64);

/// The error for a text that is not a date, a timestamp or a duration.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TimeTextError;

impl fmt::Display for TimeTextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "neither a date as 2026-11-20 or +12345-01-01, nor a timestamp as 2026-11-20T10:15:00Z, nor a duration as P1DT12H",
        )
    }
}

impl std::error::Error for TimeTextError {}

/// Days from 0000-03-01, where cycles of 400 years begin, to 1970-01-01.
const SHIFT: i64 = 719_468;
const DAYS_OF_400_YEARS: i64 = 146_097;

/// The most digits of a timestamp's fraction of a second.
const FRACTION_DIGITS: usize = 6;

/// Returns the year, month and day of the day that is `days` days after 1970-01-01. `days` must be in the range of `i32`, or a few days outside of
/// this range.
pub(crate) fn civil(days: i64) -> (i32, i32, i32) {
    let days = days + SHIFT;
    let (cycle, day) = (days.div_euclid(DAYS_OF_400_YEARS), days.rem_euclid(DAYS_OF_400_YEARS));
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day_of_year = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day_of_month = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    // At most some six million years before or after 1970.
    ((year + 400 * cycle + i64::from(month <= 2)) as i32, month as i32, day_of_month as i32)
}

/// Returns the number of a date's day in its year, from 1 to 366.
pub(crate) fn day_of_year(year: i32, month: i32, day: i32) -> i32 {
    const BEFORE: [i32; 12] = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334];
    BEFORE[(month as usize + 11) % 12] + day + i32::from(is_leap(year) && month > 2)
}

/// Returns true if the year has 366 days.
pub(crate) const fn is_leap(year: i32) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

impl Date {
    /// 0001-01-01, the first day whose year is written without a sign.
    pub const FIRST: Date = Date(-719_162);
    /// 9999-12-31, the last day whose year is written without a sign.
    pub const LAST: Date = Date(2_932_896);
    /// The last day whose midnight is a timestamp: 106,751,991 days after 1970-01-01. The first day whose midnight is a timestamp is as many days
    /// before 1970-01-01.
    pub const LAST_WITH_MIDNIGHT: Date = Date(106_751_991);

    /// The date with the year `year`, the month `month` from 1 to 12, and the day `day` of the month. `None` if there is no such date, or if its
    /// number of days since 1970-01-01 does not fit in an `i32`.
    #[must_use]
    pub fn of(year: i32, month: u32, day: u32) -> Option<Date> {
        if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
            return None;
        }
        // Counted from March, a leap day is the last day of the year.
        let year_from_march = i64::from(year) - i64::from(month <= 2);
        let (cycle, year_of_cycle) = (year_from_march.div_euclid(400), year_from_march.rem_euclid(400));
        let month_from_march = i64::from((month + 9) % 12);
        let day_of_year = (153 * month_from_march + 2) / 5 + i64::from(day) - 1;
        let day_of_cycle = year_of_cycle * 365 + year_of_cycle / 4 - year_of_cycle / 100 + day_of_year;
        let found = Date(i32::try_from(cycle * DAYS_OF_400_YEARS + day_of_cycle - SHIFT).ok()?);
        // The 31st of a month of 30 days is the 1st of the next. Every month has 28 days.
        (day <= 28 || found.civil() == (year, month.cast_signed(), day.cast_signed())).then_some(found)
    }

    /// The date's year, its month from 1 to 12, and its day from 1. The year before 1 is 0.
    #[must_use]
    pub fn civil(self) -> (i32, i32, i32) {
        civil(i64::from(self.0))
    }

    /// The date's day of the week as in ISO 8601: Monday is 1, Sunday is 7.
    #[must_use]
    pub fn weekday(self) -> i32 {
        // 1970-01-01 was a Thursday.
        (i64::from(self.0) + 3).rem_euclid(7) as i32 + 1
    }

    /// The date's day in its year, from 1 to 366.
    #[must_use]
    pub fn day_of_year(self) -> i32 {
        let (year, month, day) = self.civil();
        day_of_year(year, month, day)
    }

    /// The timestamp at which the date's day begins in UTC; `None` if it does not fit in 64 bits of microseconds.
    #[must_use]
    pub fn midnight(self) -> Option<Timestamp> {
        i64::from(self.0).checked_mul(Timestamp::DAY).map(Timestamp)
    }

    /// Returns true if the date's year is from 1 to 9999, so that it is written with four digits. Operators read and write texts for these
    /// years only.
    #[must_use]
    pub fn has_text(self) -> bool {
        (Date::FIRST..=Date::LAST).contains(&self)
    }

    /// Parses the text that `Display` writes, such as `2026-11-20` or `-0044-03-15`. A year from 1 to 9999 has four digits. Any other year has a sign
    /// and at least four digits.
    ///
    /// # Errors
    /// If the text has another form, or there is no such day.
    pub fn from_text(text: &str) -> Result<Date, TimeTextError> {
        let (year, &[b'-', a, b, b'-', c, d]) = text.as_bytes().split_last_chunk().ok_or(TimeTextError)? else {
            return Err(TimeTextError);
        };
        let (year, is_signed) = match year {
            [_, _, _, _] => (number(year)?.cast_signed(), false),
            [b'+', digits @ ..] => (signed_year(digits)?, true),
            // The year 0 is written with a plus only.
            [b'-', digits @ ..] => (-Some(signed_year(digits)?).filter(|year| *year != 0).ok_or(TimeTextError)?, true),
            _ => return Err(TimeTextError),
        };
        let date = Date::of(year, number(&[a, b])?, number(&[c, d])?);
        date.filter(|date| date.has_text() != is_signed).ok_or(TimeTextError)
    }
}

impl Timestamp {
    /// Microseconds per day.
    pub const DAY: i64 = 86_400_000_000;
    /// Microseconds per second.
    pub(crate) const SECOND: i64 = 1_000_000;
    const MINUTE: i64 = 60 * Timestamp::SECOND;

    /// The timestamp's day, in UTC.
    #[must_use]
    pub fn date(self) -> Date {
        // All timestamps together span some hundred million days, so the number fits.
        Date(self.0.div_euclid(Timestamp::DAY) as i32)
    }

    /// The timestamp's hour, minute, second and microsecond, in UTC.
    #[must_use]
    pub fn time(self) -> (i32, i32, i32, i32) {
        let micros = self.0.rem_euclid(Timestamp::DAY);
        let seconds = micros / Timestamp::SECOND;
        let part = |number: i64| number as i32;
        (part(seconds / 3600), part(seconds / 60 % 60), part(seconds % 60), part(micros % Timestamp::SECOND))
    }

    /// Returns true if the timestamp's year is from 1 to 9999, so that it is written with four digits. Operators read and write texts for
    /// these years only.
    #[must_use]
    pub fn has_text(self) -> bool {
        self.date().has_text()
    }

    /// Parses a timestamp: a date, `T`, hours, minutes and seconds, up to six digits of a fraction, and `Z` or the offset from UTC: `+01:00`,
    /// `+0100` or `+01`.
    ///
    /// # Errors
    /// If the text has another form, or there is no such timestamp.
    pub fn from_text(text: &str) -> Result<Timestamp, TimeTextError> {
        let digits =
            text.split_once('.').map_or("", |(_, behind)| behind).bytes().take_while(u8::is_ascii_digit).count();
        let is_exact = !text.contains(' ') && digits <= FRACTION_DIGITS;
        if is_exact { Timestamp::from_data_text(text) } else { Err(TimeTextError) }
    }

    /// Parses a timestamp as data may contain it: like [`from_text`](Timestamp::from_text), but a blank may replace the `T`, and the fraction
    /// may have more than six digits. More digits are cut off, which rounds towards the past, also before 1970.
    ///
    /// # Errors
    /// If the text has another form, or there is no such timestamp.
    pub fn from_data_text(text: &str) -> Result<Timestamp, TimeTextError> {
        let (shown, offset) = Timestamp::shown(text)?;
        let behind = i64::from(offset.ok_or(TimeTextError)?) * Timestamp::MINUTE;
        shown.0.checked_sub(behind).map(Timestamp).ok_or(TimeTextError)
    }

    /// Parses a local time without a zone. Returns the timestamp that has this time in UTC. The text is written as for
    /// [`from_data_text`](Timestamp::from_data_text), but without an offset.
    ///
    /// # Errors
    /// If the text has another form, or an offset.
    pub fn from_text_without_zone(text: &str) -> Result<Timestamp, TimeTextError> {
        match Timestamp::shown(text)? {
            (shown, None) => Ok(shown),
            (_, Some(_)) => Err(TimeTextError),
        }
    }

    /// Parses a local time and its offset from UTC in minutes; the offset is `None` if the text has none.
    fn shown(text: &str) -> Result<(Timestamp, Option<i32>), TimeTextError> {
        let (date, time) = text.split_once(['T', ' ']).ok_or(TimeTextError)?;
        let date = Date::from_text(date)?;
        let (time, end) = time.split_at(time.find(['Z', '+', '-']).unwrap_or(time.len()));
        let offset = match end.as_bytes() {
            [] => None,
            b"Z" => Some(0),
            [sign, a, b] => Some(offset(*sign, &[*a, *b], &[])?),
            [sign, a, b, b':', c, d] | [sign, a, b, c, d] => Some(offset(*sign, &[*a, *b], &[*c, *d])?),
            _ => return Err(TimeTextError),
        };
        let (time, fraction) = match time.split_once('.') {
            None => (time, 0),
            Some((time, digits)) if !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit()) => {
                let kept = digits.get(..FRACTION_DIGITS).unwrap_or(digits);
                (time, number(kept.as_bytes())? * 10_u32.pow((FRACTION_DIGITS - kept.len()) as u32))
            }
            Some(_) => return Err(TimeTextError),
        };
        let &[a, b, b':', c, d, b':', e, f] = time.as_bytes() else { return Err(TimeTextError) };
        let (hour, minute, second) = (number(&[a, b])?, number(&[c, d])?, number(&[e, f])?);
        if hour > 23 || minute > 59 || second > 59 {
            return Err(TimeTextError);
        }
        let seconds = i64::from(hour * 3600 + minute * 60 + second);
        // The midnight of the first day that has timestamps does not fit in an `i64`, but later moments of that day do.
        let micros = i128::from(date.0) * i128::from(Timestamp::DAY)
            + i128::from(seconds * Timestamp::SECOND + i64::from(fraction));
        Ok((Timestamp(i64::try_from(micros).map_err(|_| TimeTextError)?), offset))
    }
}

/// Parses an offset from UTC; returns minutes.
fn offset(sign: u8, hours: &[u8], minutes: &[u8]) -> Result<i32, TimeTextError> {
    let (hours, minutes) = (number(hours)?, number(minutes)?);
    if hours > 23 || minutes > 59 {
        return Err(TimeTextError);
    }
    let all = (hours * 60 + minutes).cast_signed();
    Ok(if sign == b'-' { -all } else { all })
}

/// Parses the digits of a year with a sign: four digits, or up to seven that do not begin with a zero.
fn signed_year(digits: &[u8]) -> Result<i32, TimeTextError> {
    match digits {
        [_, _, _, _] | [b'1'..=b'9', _, _, _, _] | [b'1'..=b'9', _, _, _, _, _] | [b'1'..=b'9', _, _, _, _, _, _] => {
            Ok(number(digits)?.cast_signed())
        }
        _ => Err(TimeTextError),
    }
}

/// Parses decimal digits. There must be so few that the number fits.
fn number(digits: &[u8]) -> Result<u32, TimeTextError> {
    digits.iter().try_fold(0, |number, digit| match digit {
        b'0'..=b'9' => Ok(10 * number + u32::from(digit - b'0')),
        _ => Err(TimeTextError),
    })
}

impl fmt::Display for Date {
    /// The text that [`from_text`](Date::from_text) reads.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = self.civil();
        if !self.has_text() {
            return write!(f, "{year:+05}-{month:02}-{day:02}");
        }
        let digit = |number: i32| b'0' + (number % 10) as u8;
        let [century, year] = [year / 100, year % 100];
        let [a, b, c, d] = [century / 10, century, year / 10, year].map(digit);
        let [e, g, h, i] = [month / 10, month, day / 10, day].map(digit);
        let text = [a, b, c, d, b'-', e, g, b'-', h, i];
        f.write_str(str::from_utf8(&text).unwrap_or_default())
    }
}

impl fmt::Debug for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Date({self})")
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Timestamp({self})")
    }
}

impl fmt::Display for Timestamp {
    /// Writes the text that [`from_text`](Timestamp::from_text) reads. A fraction has no trailing zeros.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (hour, minute, second, micros) = self.time();
        write!(f, "{}T{hour:02}:{minute:02}:{second:02}", self.date())?;
        let (mut digits, mut rest) = (6, micros);
        while rest != 0 && rest % 10 == 0 {
            (digits, rest) = (digits - 1, rest / 10);
        }
        if rest != 0 {
            write!(f, ".{rest:0digits$}")?;
        }
        f.write_str("Z")
    }
}

macro_rules! read {
    ($($ty:ident)*) => { $(
        impl FromStr for $ty {
            type Err = TimeTextError;

            /// Parses the text that `Display` writes. A plain number is refused, because it could count days or be the digits of a year.
            fn from_str(text: &str) -> Result<$ty, TimeTextError> {
                $ty::from_text(text)
            }
        }
    )* };
}

read!(Date Timestamp);

#[cfg(feature = "chrono")]
mod with_chrono {
    use super::{Date, TimeTextError, Timestamp};
    use chrono::{DateTime, Datelike, NaiveDate, TimeZone, Utc};

    /// Days from 0001-01-01, which is day 1 for `chrono`, to 1970-01-01.
    const EPOCH: i32 = 719_163;

    impl From<NaiveDate> for Date {
        fn from(date: NaiveDate) -> Date {
            Date(date.num_days_from_ce() - EPOCH)
        }
    }

    impl TryFrom<Date> for NaiveDate {
        type Error = TimeTextError;

        /// Fails for a date outside of `chrono`'s range of some 262,000 years.
        fn try_from(date: Date) -> Result<NaiveDate, TimeTextError> {
            date.0.checked_add(EPOCH).and_then(NaiveDate::from_num_days_from_ce_opt).ok_or(TimeTextError)
        }
    }

    impl<Zone: TimeZone> From<DateTime<Zone>> for Timestamp {
        /// Rounds nanoseconds down to microseconds, also before 1970. A leap second becomes the second after it.
        fn from(moment: DateTime<Zone>) -> Timestamp {
            Timestamp(moment.timestamp_micros())
        }
    }

    impl TryFrom<Timestamp> for DateTime<Utc> {
        type Error = TimeTextError;

        /// Fails for a timestamp outside of `chrono`'s range of some 262,000 years.
        fn try_from(moment: Timestamp) -> Result<DateTime<Utc>, TimeTextError> {
            DateTime::from_timestamp_micros(moment.0).ok_or(TimeTextError)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks every day of 800 years, counted up by the well-known leap-year rules.
    #[test]
    fn days_follow_each_other() {
        let (mut year, mut month, mut day) = (1600, 1, 1);
        let first = Date::of(1600, 1, 1).unwrap();
        let mut weekday = first.weekday();
        let mut day_of_year = 1;
        for days in first.0..Date::of(2400, 3, 2).unwrap().0 {
            let date = Date(days);
            assert_eq!((date.civil(), date.weekday(), date.day_of_year()), ((year, month, day), weekday, day_of_year));
            assert_eq!(Date::of(year, month as u32, day as u32), Some(date));
            assert_eq!(date.to_string().parse(), Ok(date));
            let leaps = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
            let length = match month {
                2 => 28 + i32::from(leaps),
                4 | 6 | 9 | 11 => 30,
                _ => 31,
            };
            weekday = weekday % 7 + 1;
            (day, day_of_year) = (day + 1, day_of_year + 1);
            if day > length {
                assert_eq!(Date::of(year, month as u32, day as u32), None);
                (day, month) = (1, month + 1);
            }
            if month > 12 {
                (month, year, day_of_year) = (1, year + 1, 1);
            }
        }
        assert_eq!((year, month, day), (2400, 3, 2));
    }

    #[test]
    fn the_ends_are_exact() {
        assert_eq!((Date::FIRST.civil(), Date::LAST.civil()), ((1, 1, 1), (9999, 12, 31)));
        assert_eq!((Date(i32::MIN).civil(), Date(i32::MAX).civil()), ((-5_877_641, 6, 23), (5_881_580, 7, 11)));
        assert_eq!(Date(0).civil(), (1970, 1, 1));
        assert_eq!((Date(0).weekday(), Date::of(2026, 11, 22).unwrap().weekday()), (4, 7));
        let last = Date::LAST_WITH_MIDNIGHT;
        assert_eq!(
            (last.midnight(), Date(last.0 + 1).midnight()),
            (Some(Timestamp(last.0 as i64 * Timestamp::DAY)), None)
        );
        assert!(Date(-last.0).midnight().is_some() && Date(-last.0 - 1).midnight().is_none());
        assert_eq!((Timestamp(i64::MIN).date(), Timestamp(i64::MAX).date()), (Date(-last.0 - 1), last));
        assert_eq!(Timestamp(-1).time(), (23, 59, 59, 999_999));
        assert_eq!(Timestamp(-1).date(), Date(-1));
    }

    #[test]
    fn texts_have_one_form() {
        for wrong in [
            "",
            "2026-1-1",
            "26-01-01",
            "2026-13-01",
            "2026-00-10",
            "2026-02-29",
            "2100-02-29",
            "2026-04-31",
            "2026-01-00",
            "0000-12-31",
            "10000-01-01",
            "-001-01-01",
            "+2026-01-01",
            "2026/01/01",
            " 2026-01-01",
            "2026-01-01 ",
            "2026-01-0\u{661}",
            "2026",
            "0",
            "-719162",
            "2932896",
            "2932897",
            "+2932897",
            "2147483648",
            "20260101",
            "-0000-03-01",
            "+9999-12-31",
            "+0001-01-01",
            "+000-01-01",
            "+010000-01-01",
            "-00044-03-15",
            "-044-03-15",
            "--044-03-15",
            "+10001-02-29",
            "+5881580-07-12",
            "-5877641-06-22",
            "+9999999-01-01",
            "+10000000-01-01",
            "+123\u{e9}-01-01",
            "-01-01",
        ] {
            assert_eq!(wrong.parse::<Date>(), Err(TimeTextError), "{wrong}");
        }
        for (text, date) in [
            ("2024-02-29", Date(19_782)),
            ("+10000-01-01", Date(2_932_897)),
            ("+0000-12-31", Date(-719_163)),
            ("+0000-02-29", Date(-719_469)),
            ("-0001-12-31", Date(-719_529)),
            ("-0044-03-15", Date(-735_525)),
            ("+12345-01-01", Date(3_789_391)),
            ("-10000-01-01", Date(-4_371_953)),
            ("+5881580-07-11", Date(i32::MAX)),
            ("-5877641-06-23", Date(i32::MIN)),
        ] {
            assert_eq!((text.parse(), date.to_string().as_str()), (Ok(date), text));
        }
        for wrong in [
            "2026-11-20",
            "2026-11-20T10:15Z",
            "2026-11-20T10:15:00",
            "2026-11-20 10:15:00Z",
            "2026-11-20T24:00:00Z",
            "2026-11-20T10:60:00Z",
            "2026-11-20T10:15:60Z",
            "2026-11-20T10:15:00.Z",
            "2026-11-20T10:15:00.1234567Z",
            "2026-11-20T10:15:00.1234567+01:00",
            "2026-11-20t10:15:00z",
            "2026-11-20T1:15:00Z",
            "2026-11-20T10:15:00.-5Z",
            "+2026-11-20T10:15:00Z",
            "+12345-01-01 00:00:00Z",
            "+12345-01-01T00:00:00",
            "-290308-12-21T19:59:05.224191Z",
            "+294247-01-10T04:00:54.775808Z",
            "+5881580-07-11T00:00:00Z",
            "9223372036854775807",
            "0",
        ] {
            assert_eq!(wrong.parse::<Timestamp>(), Err(TimeTextError), "{wrong}");
        }
        for (text, micros) in [
            ("1970-01-01T00:00:00Z", 0),
            ("1970-01-01T00:00:00.000001Z", 1),
            ("1969-12-31T23:59:59.999Z", -1000),
            ("2026-11-20T10:15:00.05Z", 1_795_169_700_050_000),
            ("0001-01-01T00:00:00Z", -62_135_596_800_000_000),
            ("9999-12-31T23:59:59.999999Z", 253_402_300_799_999_999),
            ("+10000-01-01T00:00:00Z", 253_402_300_800_000_000),
            ("+0000-12-31T23:59:59.999999Z", -62_135_596_800_000_001),
            ("-290308-12-21T19:59:05.224192Z", i64::MIN),
            ("+294247-01-10T04:00:54.775807Z", i64::MAX),
        ] {
            assert_eq!((text.parse(), Timestamp(micros).to_string().as_str()), (Ok(Timestamp(micros)), text));
        }
        assert_eq!("1970-01-01T00:00:00.500000Z".parse(), Ok(Timestamp(500_000)));
        assert_eq!("1970-01-01T01:00:00.5+01:00".parse(), Ok(Timestamp(500_000)));
    }

    #[test]
    fn data_write_timestamps_in_more_forms() {
        for (text, micros) in [
            ("1970-01-01T00:00:00.500000Z", 500_000),
            ("1970-01-01 00:00:00.5Z", 500_000),
            ("1970-01-01 01:00:00+01:00", 0),
            ("1970-01-01T00:00:00-0530", 19_800_000_000),
            ("1970-01-01 00:00:00.25+00", 250_000),
            ("1970-01-01T00:00:00.123456999Z", 123_456),
            ("1969-12-31T23:59:59.999999999Z", -1),
            ("1969-12-31T23:59:59.0000000000000000000001Z", -1_000_000),
            ("0001-01-01T00:00:00+00:01", -62_135_596_860_000_000),
            ("9999-12-31 23:59:00-00:01", 253_402_300_800_000_000),
            ("+10000-01-01 00:00:00.1234567+00:00", 253_402_300_800_123_456),
        ] {
            assert_eq!(Timestamp::from_data_text(text), Ok(Timestamp(micros)), "{text}");
            assert_eq!(Timestamp::from_text_without_zone(text), Err(TimeTextError), "{text}");
        }
        for wrong in [
            "2026-11-20T10:15:00",
            "2026-11-20T10:15:00+1",
            "2026-11-20T10:15:00+1:00",
            "2026-11-20T10:15:00+01:60",
            "2026-11-20T10:15:00+24:00",
            "2026-11-20T10:15:00.123456a89Z",
            "2026-11-20T10:15:00.12345\u{e9}9Z",
            "2026-11-20T10:15:00Z+01:00",
            "2026-11-20  10:15:00Z",
            "2026-11-20_10:15:00Z",
            "2026-11-2\u{e9}T10:15:00Z",
            "+294247-01-10T04:00:54.775807-00:01",
            "-290308-12-21T19:59:06+00:01",
            "1-01-01T00:00:00Z",
        ] {
            assert_eq!(Timestamp::from_data_text(wrong), Err(TimeTextError), "{wrong}");
        }
        for text in ["1970-01-01T00:00:01", "1970-01-01 00:00:01.000"] {
            assert_eq!(Timestamp::from_text_without_zone(text), Ok(Timestamp(1_000_000)), "{text}");
        }
        let far = Timestamp(253_402_300_800_000_000);
        assert_eq!(Timestamp::from_text_without_zone("+10000-01-01T00:00:00"), Ok(far));
    }
}
