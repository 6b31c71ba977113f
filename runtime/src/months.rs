//! Date arithmetic in months and years, and the start of the year, quarter, month, week or shorter unit that contains a
//! date or timestamp. As in `java.time`, a day that a month does not have becomes the month's last day, and a
//! difference counts full months or years only.

use crate::calendar::{civil, day_of_year, is_leap};
use crate::{Date, Timestamp};

/// The units that dates and timestamps can be truncated to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CalendarUnit {
    /// A year: values are truncated to 1 January.
    Year,
    /// A quarter: values are truncated to the first of January, April, July or October.
    Quarter,
    /// A month: values are truncated to its first day.
    Month,
    /// A week: values are truncated to its Monday.
    Week,
    /// A day: timestamps are truncated to midnight in UTC.
    Day,
    /// An hour: timestamps are truncated to the full hour in UTC.
    Hour,
    /// A minute: timestamps are truncated to the full minute.
    Minute,
    /// A second: timestamps are truncated to the full second.
    Second,
}

impl CalendarUnit {
    /// The microseconds in an hour, a minute or a second; `None` for a day and longer units.
    const fn microseconds(self) -> Option<i64> {
        match self {
            CalendarUnit::Hour => Some(3_600_000_000),
            CalendarUnit::Minute => Some(60_000_000),
            CalendarUnit::Second => Some(1_000_000),
            _ => None,
        }
    }
}

/// The number of days in a month.
const fn length(year: i32, month: i32) -> i32 {
    match month {
        2 => 28 + is_leap(year) as i32,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Returns `date`; `None` if it is outside of the years 1 to 9999.
fn with_text(date: Option<Date>) -> Option<Date> {
    date.filter(|date| date.has_text())
}

impl Date {
    /// The date with the year `year`, the month `month` and the day `day`, both counted from 1; `None` if there is no such date in the years 1 to
    /// 9999.
    #[must_use]
    pub fn of_parts(year: i32, month: i32, day: i32) -> Option<Date> {
        with_text(Date::of(year, u32::try_from(month).ok()?, u32::try_from(day).ok()?))
    }

    /// Adds `months` months to the date. If the new month does not have the day, the result is the month's last day: 31 January plus one month is 28
    /// or 29 February. `None` if the result is outside of the years 1 to 9999.
    #[must_use]
    pub fn add_months(self, months: i32) -> Option<Date> {
        let (year, month, day) = self.civil();
        let index = i64::from(year) * 12 + i64::from(month - 1) + i64::from(months);
        let (year, month) = (i32::try_from(index.div_euclid(12)).ok()?, index.rem_euclid(12) as i32 + 1);
        Date::of_parts(year, month, day.min(length(year, month)))
    }

    /// Adds `years` years to the date; 29 February becomes 28 February if the year has no leap day. `None` if the result is outside of the years 1 to
    /// 9999.
    #[must_use]
    pub fn add_years(self, years: i32) -> Option<Date> {
        let (year, month, day) = self.civil();
        let year = year.checked_add(years)?;
        Date::of_parts(year, month, day.min(length(year, month)))
    }

    /// The number of full months from this day to `to`, negative if `to` is earlier: from 31 January to 28 February it is 0.
    #[must_use]
    pub fn months_to(self, to: Date) -> i32 {
        // The factor 32 exceeds every day of a month.
        let packed = |date: Date| {
            let (year, month, day) = date.civil();
            (i64::from(year) * 12 + i64::from(month)) * 32 + i64::from(day)
        };
        ((packed(to) - packed(self)) / 32) as i32
    }

    /// The number of full years from this day to `to`, negative if `to` is earlier: from 29 February 2004 to 28 February 2005 it is
    /// 0.
    #[must_use]
    pub fn years_to(self, to: Date) -> i32 {
        self.months_to(to) / 12
    }

    /// The number of days in the date's month.
    #[must_use]
    pub fn days_in_month(self) -> i32 {
        let (year, month, _) = self.civil();
        length(year, month)
    }

    /// Returns true if the date's year has 366 days.
    #[must_use]
    pub fn is_in_leap_year(self) -> bool {
        is_leap(self.civil().0)
    }

    /// The date's quarter of the year, from 1 to 4.
    #[must_use]
    pub fn quarter(self) -> i32 {
        (self.civil().1 + 2) / 3
    }

    /// The date's year and week of ISO 8601: weeks begin on Monday and belong to the year of their Thursday.
    #[must_use]
    pub fn iso_week(self) -> (i32, i32) {
        let (year, month, day) = civil(i64::from(self.0) + i64::from(4 - self.weekday()));
        (year, (day_of_year(year, month, day) - 1) / 7 + 1)
    }

    /// The last day of the date's month; `None` outside of the years 1 to 9999.
    #[must_use]
    pub fn end_of_month(self) -> Option<Date> {
        let (year, month, _) = self.civil();
        Date::of_parts(year, month, length(year, month))
    }

    /// The first day of the calendar unit (such as a month) that contains the date. For `Day` and shorter units the result is the date itself. `None`
    /// outside of the years 1 to 9999.
    #[must_use]
    pub fn start_of(self, unit: CalendarUnit) -> Option<Date> {
        let (year, month, _) = self.civil();
        match unit {
            CalendarUnit::Year => Date::of_parts(year, 1, 1),
            CalendarUnit::Quarter => Date::of_parts(year, month - (month - 1) % 3, 1),
            CalendarUnit::Month => Date::of_parts(year, month, 1),
            CalendarUnit::Week => with_text(self.0.checked_sub(self.weekday() - 1).map(Date)),
            CalendarUnit::Day | CalendarUnit::Hour | CalendarUnit::Minute | CalendarUnit::Second => {
                with_text(Some(self))
            }
        }
    }
}

impl Timestamp {
    /// The timestamp of the day `date` at the time `hour`:`minute`:`second`, in UTC; `None` if there is no such time, or the result is outside of the
    /// years 1 to 9999. Seconds are rounded to microseconds, halves to even.
    #[must_use]
    pub fn of_parts(date: Date, hour: i32, minute: i32, second: f64) -> Option<Timestamp> {
        if !(0..24).contains(&hour) || !(0..60).contains(&minute) || !(0.0..60.0).contains(&second) {
            return None;
        }
        let minutes = i64::from(hour) * 60 + i64::from(minute);
        let micros = minutes * 60 * Timestamp::SECOND + (second * 1e6).round_ties_even() as i64;
        let moment = Timestamp(with_text(Some(date))?.midnight()?.0 + micros);
        moment.has_text().then_some(moment)
    }

    /// The start, in UTC, of the unit that contains the timestamp. `None` outside of the years 1 to 9999.
    #[must_use]
    pub fn start_of(self, unit: CalendarUnit) -> Option<Timestamp> {
        match unit.microseconds() {
            Some(length) => self.has_text().then(|| Timestamp(self.0 - self.0.rem_euclid(length))),
            None => self.date().start_of(unit)?.midnight(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn date(text: &str) -> Date {
        text.parse().expect("a date")
    }

    #[test]
    fn months_are_added_to_the_end_of_shorter_ones() {
        for (from, months, to) in [
            ("2026-01-31", 1, "2026-02-28"),
            ("2024-01-31", 1, "2024-02-29"),
            ("2024-03-31", -1, "2024-02-29"),
            ("2024-02-29", 12, "2025-02-28"),
            ("2026-11-20", 0, "2026-11-20"),
            ("2026-12-31", 2, "2027-02-28"),
            ("0001-01-01", 119_987, "9999-12-01"),
        ] {
            assert_eq!(date(from).add_months(months), Some(date(to)), "{from} {months}");
        }
        assert_eq!(date("2024-02-29").add_years(-4), Some(date("2020-02-29")));
        assert_eq!(date("2024-02-29").add_years(76), Some(date("2100-02-28")));
        for months in [1, i32::MAX, i32::MIN] {
            assert_eq!(date("9999-12-31").add_months(months), None);
            assert_eq!(date("9999-12-31").add_years(months), None);
        }
    }

    #[test]
    fn units_count_once_they_are_full() {
        for (from, to, months, years) in [
            ("2004-02-29", "2005-02-28", 11, 0),
            ("2004-02-29", "2005-03-01", 12, 1),
            ("2005-02-28", "2004-02-29", -11, 0),
            ("2026-01-31", "2026-02-28", 0, 0),
            ("2026-02-28", "2026-01-31", 0, 0),
            ("2026-03-31", "2026-02-28", -1, 0),
            ("0001-01-01", "9999-12-31", 119_987, 9998),
        ] {
            assert_eq!((date(from).months_to(date(to)), date(from).years_to(date(to))), (months, years), "{from} {to}");
        }
        assert_eq!(Date(i32::MIN).months_to(Date(i32::MAX)), 141_110_652);
    }

    #[test]
    fn weeks_belong_to_the_year_of_their_thursday() {
        for (day, year, week) in [
            ("2005-01-01", 2004, 53),
            ("2005-01-03", 2005, 1),
            ("2008-12-29", 2009, 1),
            ("2010-01-03", 2009, 53),
            ("2026-11-20", 2026, 47),
            ("0001-01-01", 1, 1),
            ("9999-12-31", 9999, 52),
        ] {
            assert_eq!(date(day).iso_week(), (year, week), "{day}");
        }
    }

    #[test]
    fn units_begin_before_1970_too() {
        let moment = |text: &str| text.parse::<Timestamp>().expect("a timestamp");
        for (unit, start) in [
            (CalendarUnit::Year, "1969-01-01T00:00:00Z"),
            (CalendarUnit::Quarter, "1969-10-01T00:00:00Z"),
            (CalendarUnit::Month, "1969-12-01T00:00:00Z"),
            (CalendarUnit::Week, "1969-12-29T00:00:00Z"),
            (CalendarUnit::Day, "1969-12-31T00:00:00Z"),
            (CalendarUnit::Hour, "1969-12-31T23:00:00Z"),
            (CalendarUnit::Minute, "1969-12-31T23:58:00Z"),
            (CalendarUnit::Second, "1969-12-31T23:58:59Z"),
        ] {
            assert_eq!(moment("1969-12-31T23:58:59.999999Z").start_of(unit), Some(moment(start)), "{unit:?}");
            assert_eq!((Timestamp(i64::MIN).start_of(unit), Date(i32::MIN).start_of(unit)), (None, None));
        }
        let last = Date::LAST;
        assert_eq!(Timestamp::of_parts(last, 23, 59, 59.999_999_4), Some(moment("9999-12-31T23:59:59.999999Z")));
        assert_eq!(Timestamp::of_parts(last, 23, 59, 59.999_999_6), None);
        assert_eq!(Timestamp::of_parts(Date(0), 0, 0, -0.0), Some(Timestamp(0)));
        assert_eq!(Timestamp::of_parts(Date(0), 0, 0, f64::NAN), None);
    }
}
