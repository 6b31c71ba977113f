//! Properties of all texts in a CSV column, from which the type of an undeclared column is inferred.

use super::spelling::Spelling;
use crate::scalar;
use cembra_runtime::Scalar;

/// Properties of the texts in a CSV column, from which its type is inferred: whether all are numbers, integers, dates. They are updated with each
/// text.
#[derive(Clone, Debug)]
pub(crate) struct ColumnTexts {
    /// True if all texts are numbers that keep their digits when they are read and written.
    numbers: bool,
    /// True if some text is a whole number that an f64 cannot hold exactly.
    wide: bool,
    /// True if all texts are integers of 64 bits.
    integers: bool,
    /// True if all texts are integers of any size.
    whole: bool,
    booleans: bool,
    dates: bool,
    timestamps: bool,
    any: bool,
    /// True if some text begins with a minus sign.
    negative: bool,
    /// True if some texts are empty but in quotes. Unless the column's type is text, they are missing values.
    empty: bool,
}

impl ColumnTexts {
    /// Returns the properties of a column that has no texts yet.
    pub(crate) const fn nothing() -> ColumnTexts {
        ColumnTexts {
            numbers: true,
            wide: false,
            integers: true,
            whole: true,
            booleans: true,
            dates: true,
            timestamps: true,
            any: false,
            negative: false,
            empty: false,
        }
    }

    /// Records that the column has an empty text in quotes.
    pub(crate) fn add_empty(&mut self) {
        self.empty = true;
    }

    /// Records `text` of the column; `spelling` says how its numbers and dates are spelled.
    pub(crate) fn add(&mut self, text: &str, spelling: &Spelling) {
        self.any = true;
        let number = spelling.number(text);
        let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
        self.wide |= number.as_ref().is_some_and(|number| scalar::is_wide(number));
        self.numbers =
            self.numbers && number.is_some_and(|number| scalar::is_number(&number) && !scalar::loses_digits(&number));
        self.negative |= text.starts_with('-');
        let whole = unsigned.bytes().all(|byte| byte.is_ascii_digit());
        self.whole &= whole;
        // An integer cannot keep the sign of `-0`.
        self.integers = self.integers && self.numbers && whole && text != "-0" && text.parse::<i64>().is_ok();
        self.booleans = self.booleans && scalar::boolean(text).is_some();
        self.dates = self.dates && spelling.is_moment(Scalar::Date, text);
        self.timestamps = self.timestamps && spelling.is_moment(Scalar::Timestamp, text);
    }

    /// Returns true if some text of the column begins with a minus sign.
    pub(crate) fn has_negative(&self) -> bool {
        self.negative
    }

    /// Returns true if the column has a text that is not missing.
    pub(crate) fn has_any(&self) -> bool {
        self.any
    }

    /// Returns the type that holds all texts of the column. Integers beyond 64 bits are texts, so that no digit is lost.
    pub(crate) fn scalar(&self) -> Scalar {
        match self {
            // A column of only missing values is numeric, like most columns.
            ColumnTexts { any: false, empty: false, .. } => Scalar::Float64,
            ColumnTexts { any: false, .. } => Scalar::Text,
            ColumnTexts { integers: true, .. } => Scalar::Int64,
            ColumnTexts { numbers: true, whole: false, wide: false, .. } => Scalar::Float64,
            ColumnTexts { booleans: true, .. } => Scalar::Boolean,
            ColumnTexts { dates: true, .. } => Scalar::Date,
            ColumnTexts { timestamps: true, .. } => Scalar::Timestamp,
            _ => Scalar::Text,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_type_of_texts_holds_them_all() {
        let type_of = |texts: &[&str]| {
            let mut seen = ColumnTexts::nothing();
            texts.iter().for_each(|text| seen.add(text, &Spelling::default()));
            seen.scalar()
        };
        assert_eq!(type_of(&[]), Scalar::Float64);
        assert_eq!(type_of(&["9007199254740993", "-5", "7", "0"]), Scalar::Int64);
        assert_eq!(type_of(&["1", "+7"]), Scalar::Text, "the plus would be lost");
        assert_eq!(type_of(&["1.5", "1e400"]), Scalar::Text);
        assert_eq!(type_of(&["1.5", &"9".repeat(400)]), Scalar::Text);
        assert_eq!(type_of(&["1.5", "inf", "1e+300", "-1e-400"]), Scalar::Float64);
        assert_eq!(
            type_of(&["1", "-0"]),
            Scalar::Text,
            "a zero with a sign is no integer, and nothing here is a float"
        );
        assert_eq!(type_of(&["1", "-0", "0.5"]), Scalar::Float64);
        assert_eq!(type_of(&["1", "2.0"]), Scalar::Float64);
        assert_eq!(type_of(&["01234", "99999"]), Scalar::Text);
        assert_eq!(type_of(&["0.5", "00.5"]), Scalar::Text);
        assert_eq!(type_of(&["12345678901234567890"]), Scalar::Text);
        assert_eq!(type_of(&["12345678901234567890", "1.5"]), Scalar::Text);
        assert_eq!(type_of(&["9223372036854775807", "0.5"]), Scalar::Text);
        assert_eq!(type_of(&["9007199254740993", "0.5"]), Scalar::Text);
        assert_eq!(type_of(&["9007199254740992", "1000000000000000000", "12345678901234567890.5"]), Scalar::Float64);
        assert_eq!(type_of(&["true", "False", "TRUE"]), Scalar::Boolean);
        assert_eq!(type_of(&["2026-11-20", "1970-01-01"]), Scalar::Date);
        assert_eq!(type_of(&["2026-11-20", "1"]), Scalar::Text);
        assert_eq!(type_of(&["2026-11-20T10:15:00Z", "1970-01-01T00:00:00.5Z"]), Scalar::Timestamp);
        assert_eq!(type_of(&["2026-02-30"]), Scalar::Text);
    }
}
