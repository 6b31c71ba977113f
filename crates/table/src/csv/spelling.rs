//! Spellings of values that differ from the default in `scalar`: numbers with a decimal comma, dates and timestamps in a given format,
//! timestamps in local time, and timestamps as whole numbers.

use super::thousands::ThousandsFormat;
use crate::scalar;
use crate::schema::declared_name;
use cembra::doors::JsonMoments;
use cembra_expr::is_plain_name;
use cembra_ops::{LocalClock, MomentForm};
use cembra_runtime::{Scalar, Timestamp, UnixUnit};
use cembra_value::ScalarValue;
use std::borrow::Cow;

/// The spelling of numbers, dates and timestamps in data. The default is a decimal point and ISO 8601. A decimal comma applies to CSV only.
#[derive(Clone, Default, Debug)]
pub struct Spelling {
    /// True if numbers have a decimal comma instead of a point.
    pub decimal_comma: bool,
    /// The format of dates in data; `None` for ISO 8601.
    pub dates: Option<MomentForm>,
    /// The format of timestamps in data; `None` for ISO 8601.
    pub timestamps: Option<MomentForm>,
    /// The time zone for timestamps that do not state one; `None` for UTC.
    pub clock: Option<LocalClock>,
    /// The unit of timestamps that are written as whole numbers. If it is `None`, a whole number is a timestamp only if `timestamps` is a
    /// format.
    pub unit: Option<UnixUnit>,
}

impl Spelling {
    /// Returns the number `text` with a decimal point in place of a decimal comma; `None` if `text` has a point although this spelling has a
    /// decimal comma.
    pub(crate) fn number<'t>(&self, text: &'t str) -> Option<Cow<'t, str>> {
        match self.decimal_comma {
            false => Some(text.into()),
            true if text.contains('.') => None,
            true => Some(if text.contains(',') { text.replacen(',', ".", 1).into() } else { text.into() }),
        }
    }

    /// Reads `text` as a value of type `scalar`; `None` if it is not one.
    #[must_use]
    pub fn parse(&self, scalar: Scalar, text: &str) -> Option<ScalarValue> {
        match (scalar, &self.dates) {
            (Scalar::Date, Some(form)) => form.date(text).map(ScalarValue::from),
            (Scalar::Timestamp, _) => self.timestamp(text),
            _ if scalar.is_number() => scalar::parse(scalar, &self.number(text)?),
            _ => scalar::parse(scalar, text),
        }
    }

    /// Converts the whole number `count` from the data to a value of type `scalar`; `None` if the type has no value for it.
    pub(crate) fn parse_count(&self, scalar: Scalar, count: i64) -> Option<ScalarValue> {
        match (scalar, self.unit) {
            (Scalar::Timestamp, Some(unit)) => unit.timestamp(count).map(ScalarValue::from),
            _ => self.parse(scalar, itoa::Buffer::new().format(count)),
        }
    }

    /// Returns true if whole numbers may be values of type `scalar` (date or timestamp). For dates this needs a format, for timestamps a format or
    /// a unit.
    pub(crate) fn takes_counts(&self, scalar: Scalar) -> bool {
        match scalar {
            Scalar::Date => self.dates.is_some(),
            Scalar::Timestamp => self.timestamps.is_some() || self.unit.is_some(),
            _ => false,
        }
    }

    /// Returns this spelling with the default spelling for values of type `scalar` (date or timestamp).
    pub(crate) fn without(&self, scalar: Scalar) -> Spelling {
        match scalar {
            Scalar::Date => Spelling { dates: None, ..self.clone() },
            Scalar::Timestamp => Spelling { timestamps: None, unit: None, ..self.clone() },
            _ => self.clone(),
        }
    }

    /// Returns true if the spelling of dates or of timestamps differs from the default (ISO 8601).
    #[must_use]
    pub fn has_moments(&self) -> bool {
        self.dates.is_some() || self.timestamps.is_some() || self.clock.is_some() || self.unit.is_some()
    }

    /// Reads a text as a timestamp; `None` if it is not one in this spelling.
    fn timestamp(&self, text: &str) -> Option<ScalarValue> {
        if let Some(unit) = self.unit
            && let Some(count) = scalar::whole(text)
        {
            return unit.timestamp(count).map(ScalarValue::from);
        }
        let Some(shown) = self.shown(text) else {
            return match &self.timestamps {
                Some(form) => form.timestamp(text).map(ScalarValue::from),
                None => scalar::parse(Scalar::Timestamp, text),
            };
        };
        let moment = match &self.clock {
            Some(clock) => clock.moment(shown),
            // A time without an offset, in the declared format, is in UTC.
            None => self.timestamps.is_some().then_some(shown),
        };
        moment.map(ScalarValue::from)
    }

    /// Reads a text as a local time. The result is the timestamp that has this date and time in UTC. `None` if the text
    /// or the format has a time zone, or if the text is not a date and time.
    fn shown(&self, text: &str) -> Option<Timestamp> {
        match &self.timestamps {
            Some(form) if form.has_offset() => None,
            Some(form) => form.timestamp(text),
            None => Timestamp::from_text_without_zone(text).ok(),
        }
    }

    /// Returns the reason why the well-formed timestamp `text` is invalid: the time zone's clocks skip that local time. `None` if the timestamp is
    /// valid.
    #[must_use]
    pub fn skipped(&self, scalar: Scalar, text: &str) -> Option<String> {
        let clock = self.clock.as_ref().filter(|_| scalar == Scalar::Timestamp)?;
        let zone = clock.skips(self.shown(text)?).then_some(clock.name())?;
        Some(format!("which does not exist in {zone}, because clocks are put forward then"))
    }

    /// The hint for `text` if it may be a number with another decimal character (comma, point) or with separators between thousands; else `None`.
    /// `leaf` is the name of the input, and `path` the name of the input's field that has the text. For an input without fields, both names are
    /// equal.
    pub(crate) fn said_of_number(&self, text: &str, leaf: &str, path: &str) -> Option<String> {
        let is_number = |spelling: &Spelling| spelling.number(text).is_some_and(|number| scalar::is_number(&number));
        // A text that is a number in this spelling, such as `2.590` in a column of integers, has a fraction and no thousands.
        if let Some(grouped) = ThousandsFormat::of(text).filter(|_| !is_number(self)) {
            let name = declared_name(leaf);
            let (declared, operand) = match leaf == path {
                true if is_plain_name(leaf) => (format!("`input {name}: text`"), leaf.into()),
                true => (format!("`input {name}: text`"), format!("L[{name}]")),
                false => (format!("`text` for `{path}` in the type of `input {name}`"), path.to_owned()),
            };
            let parsed = format!("{declared}, and `{}` for its number", grouped.parsed(&operand));
            return Some(match (grouped.may_be_decimal(text, self.decimal_comma), self.decimal_comma) {
                (true, false) => {
                    format!("{parsed}, if the comma is between thousands; `--decimal ,` if it is before the fraction")
                }
                (true, true) => {
                    format!(
                        "{parsed}, if the point is between thousands; leave `--decimal ,` out if it is before the fraction"
                    )
                }
                (false, _) => format!("{parsed}: numbers must not have separators between thousands"),
            });
        }
        let is_other = is_number(&Spelling { decimal_comma: !self.decimal_comma, ..Spelling::default() });
        match self.decimal_comma {
            false if is_other && text.contains(',') => {
                Some("use `--decimal ,` for numbers with a decimal comma".to_owned())
            }
            true if is_other && text.contains('.') => {
                Some("write a comma, or leave the option out: with `--decimal ,` a number must not have a point or separators between thousands".to_owned())
            }
            _ => None,
        }
    }

    /// The hint for a CSV field whose text is not a value of its column's type. `leaf` is the name of the input, and `path` the name of the input's
    /// field. For an input without fields, both names are equal.
    pub(crate) fn said_of_field(
        &self,
        scalar: Scalar,
        text: &str,
        leaf: &str,
        path: &str,
    ) -> Option<Cow<'static, str>> {
        let of_number = scalar.is_number().then(|| self.said_of_number(text, leaf, path)).flatten();
        of_number.map(Cow::Owned).or_else(|| self.said(scalar, text).map(Cow::Borrowed))
    }

    /// The hint for `text` (a text, or the digits of a number) from data, which is not a value of type `scalar`; `None` if there is no hint.
    #[must_use]
    pub fn said(&self, scalar: Scalar, text: &str) -> Option<&'static str> {
        self.said_of_moment(scalar, text).or_else(|| scalar::spelling(scalar, text))
    }

    /// The hint for a text that is not a date, timestamp or duration in this spelling; `None` if the usual hint fits.
    fn said_of_moment(&self, scalar: Scalar, text: &str) -> Option<&'static str> {
        let is_count = scalar::is_count(text);
        match scalar {
            Scalar::Date if self.dates.is_some() && is_count => Some(
                "write the date as in `--date-format`; if zeros are missing at its start, declare an input `n: i64` and add them by `strings.printf`",
            ),
            Scalar::Date if self.dates.is_some() => Some("write the date as in `--date-format`"),
            Scalar::Timestamp if self.unit.is_some() && is_count => {
                Some("use another `--timestamp-unit`: in this one the number is outside of the years 1 to 9999")
            }
            Scalar::Timestamp if self.timestamps.is_some() => Some("write the timestamp as in `--timestamp-format`"),
            Scalar::Timestamp if self.clock.is_none() && Timestamp::from_text_without_zone(text).is_ok() => {
                Some("use `--time-zone UTC`, or another one: this timestamp has no time zone")
            }
            Scalar::Date if is_count => Some(
                "use `--date-format %Y%m%d` if the digits are year, month and day; for days since 1970, write `date\"1970-01-01\" + n` with an input `n: i64`",
            ),
            Scalar::Timestamp if is_count => Some(
                "use `--timestamp-unit s` for seconds since 1970, or `ms`, `us` or `ns`; or write `timestamp.from_unix(n, \"s\")` with an input `n: i64`",
            ),
            Scalar::Duration if is_count => {
                Some("declare the input as `i64`, and write `n * 1s` for seconds, or `n * 1us`: a number has no unit")
            }
            Scalar::Date if text.contains(['.', '/']) => {
                Some("use `--date-format` for dates in another form, as in `--date-format %d.%m.%Y`")
            }
            Scalar::Timestamp if text.contains(['.', '/']) && text.as_bytes().get(4) != Some(&b'-') => Some(
                "use `--timestamp-format` for timestamps in another form, as in `--timestamp-format '%d.%m.%Y %H:%M'`",
            ),
            _ => None,
        }
    }

    /// Returns true if a column with `text` may be inferred to have the type `scalar`, which is date or timestamp.
    pub(crate) fn is_moment(&self, scalar: Scalar, text: &str) -> bool {
        // A local time that clocks skip is an error, but still a time.
        let is_moment = || self.parse(scalar, text).is_some() || self.skipped(scalar, text).is_some();
        self.may_be_moment(scalar, text) && is_moment()
    }

    /// Checks quickly, without parsing, if a column with `text` may be inferred to have the type `scalar` (date or timestamp). If there is a format
    /// for that type, returns true unless `text` is only digits. Otherwise returns true if `text` has a dash after four characters, as after a
    /// year.
    pub(crate) fn may_be_moment(&self, scalar: Scalar, text: &str) -> bool {
        let form = if scalar == Scalar::Date { &self.dates } else { &self.timestamps };
        // Digits alone may be a number, whatever the format is.
        form.is_some() && !scalar::is_count(text) || text.as_bytes().get(4) == Some(&b'-')
    }
}

impl JsonMoments for Spelling {
    fn moment(&self, scalar: Scalar, text: &str) -> Option<ScalarValue> {
        // A declared text keeps whole numbers as they are written, because no number type holds all of them.
        let is_whole = || !text.contains(['.', 'e', 'E']);
        self.parse(scalar, text).filter(|_| scalar != Scalar::Text || is_whole())
    }
}

/// The spelling of JSON values whose type is inferred: like the given spelling, but a number is never read as a text.
pub(crate) struct InferredSpelling<'s>(pub(crate) &'s Spelling);

impl JsonMoments for InferredSpelling<'_> {
    fn moment(&self, scalar: Scalar, text: &str) -> Option<ScalarValue> {
        self.0.parse(scalar, text).filter(|_| scalar != Scalar::Text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spelling() -> Spelling {
        Spelling {
            decimal_comma: true,
            dates: MomentForm::of_dates("%d.%m.%Y").ok(),
            timestamps: MomentForm::of_timestamps("%d.%m.%Y %H:%M").ok(),
            clock: LocalClock::of_zone("Europe/Zurich").ok(),
            unit: None,
        }
    }

    #[test]
    fn numbers_have_a_comma_and_no_point() {
        let number = |scalar, text: &str| spelling().parse(scalar, text).map(|value| scalar::print(&value));
        for (scalar, text, expected) in [
            (Scalar::Float64, "1,5", Some("1.5")),
            (Scalar::Float32, "-,5e1", Some("-5")),
            (Scalar::Float64, "7", Some("7")),
            (Scalar::Float64, "nan", Some("nan")),
            (Scalar::Int32, "5,0", Some("5")),
            (Scalar::Int64, "5,5", None),
            (Scalar::Float64, "1.5", None),
            (Scalar::Float64, "1.234,5", None),
            (Scalar::Float64, "1,234,5", None),
            (Scalar::Int32, "1.0", None),
        ] {
            assert_eq!(number(scalar, text).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn moments_are_in_their_form_and_by_their_clock() {
        let moment = |spelling: &Spelling, scalar, text: &str| {
            spelling.parse(scalar, text).map(|value| scalar::print(&value)).unwrap_or_default()
        };
        let own = spelling();
        assert_eq!(moment(&own, Scalar::Date, "1.2.2026"), "2026-02-01");
        assert_eq!(moment(&own, Scalar::Date, "2026-02-01"), "");
        assert_eq!(moment(&own, Scalar::Timestamp, "1.7.2026 12:15"), "2026-07-01T10:15:00Z");
        assert_eq!(moment(&own, Scalar::Timestamp, "29.3.2026 02:30"), "");
        let utc = Spelling { clock: None, ..spelling() };
        assert_eq!(moment(&utc, Scalar::Timestamp, "1.7.2026 12:15"), "2026-07-01T12:15:00Z");
        let clock = Spelling { clock: own.clock, ..Spelling::default() };
        assert_eq!(moment(&clock, Scalar::Timestamp, "2026-07-01 12:15:00"), "2026-07-01T10:15:00Z");
        assert_eq!(moment(&clock, Scalar::Timestamp, "2026-07-01T12:15:00+05:30"), "2026-07-01T06:45:00Z");
        assert_eq!(moment(&clock, Scalar::Timestamp, "253402300800000000"), "");
        let usual = Spelling::default();
        assert_eq!(moment(&usual, Scalar::Timestamp, "2026-07-01 12:15:00"), "");
        assert_eq!(moment(&usual, Scalar::Timestamp, "2026-07-01 12:15:00-02"), "2026-07-01T14:15:00Z");
    }
    #[test]
    fn numbers_are_moments_where_their_unit_or_form_is_said() {
        let read = |spelling: &Spelling, scalar, text: &str| {
            let read = spelling.parse(scalar, text);
            if let Ok(count) = text.parse() {
                assert_eq!(spelling.parse_count(scalar, count), read, "{text}");
            }
            read.map(|value| scalar::print(&value)).unwrap_or_default()
        };
        let usual = Spelling::default();
        for text in ["20260101", "0", "-1", "1772000000000000000", "20260101.0", "2147483647"] {
            for scalar in [Scalar::Date, Scalar::Timestamp, Scalar::Duration] {
                assert_eq!(read(&usual, scalar, text), "", "{text}");
                assert!(usual.said(scalar, text).is_some_and(|said| said.contains("`n")), "{text}");
            }
        }
        let dates = Spelling { dates: MomentForm::of_dates("%Y%m%d").ok(), ..Spelling::default() };
        assert_eq!(read(&dates, Scalar::Date, "20260131"), "2026-01-31");
        assert_eq!(read(&dates, Scalar::Date, "20260132"), "");
        assert_eq!(read(&dates, Scalar::Timestamp, "20260131"), "");
        for (unit, text, expected) in [
            ("s", "1505154600", "2017-09-11T18:30:00Z"),
            ("s", "1505154600.0", "2017-09-11T18:30:00Z"),
            ("s", "-1", "1969-12-31T23:59:59Z"),
            ("s", "1505154600.5", ""),
            ("s", "253402300799", "9999-12-31T23:59:59Z"),
            ("s", "253402300800", ""),
            ("ms", "-1", "1969-12-31T23:59:59.999Z"),
            ("us", "1772000000000000000", ""),
            ("ns", "1772000000000000001", "2026-02-25T06:13:20Z"),
            ("ns", "-1", "1969-12-31T23:59:59.999999Z"),
            ("s", "2026-07-01T12:15:00+05:30", "2026-07-01T06:45:00Z"),
        ] {
            let spelling = Spelling { unit: UnixUnit::of_name(unit), ..Spelling::default() };
            assert_eq!(read(&spelling, Scalar::Timestamp, text), expected, "{text} {unit}");
            assert_eq!(read(&spelling, Scalar::Date, text), "", "{text}");
        }
    }
}
