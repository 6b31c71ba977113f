//! Values of CSV that options of the command would read otherwise: marks of missing values, numbers with something between their thousands.
//! A column of them is a text, or they do not fit its type; either way a message says what to write.

use super::spelling::Spelling;
use crate::scalar::{self, Seen};
use crate::schema::quoted;
use cembra_runtime::Scalar;

/// The marks that programs write for a missing value.
const MARKS: [&str; 21] = [
    "NA", "na", "N/A", "n/a", "#N/A", "<NA>", "NULL", "Null", "null", "(null)", "None", "none", "nil", "NaT",
    "missing", "Missing", "\\N", "-", "--", "?", ".",
];

/// True if programs write the text for a missing value.
pub(crate) fn is_mark(text: &str) -> bool {
    MARKS.contains(&text)
}

/// Advice to read a mark as a missing value.
pub(crate) fn null_advice(mark: &str) -> String {
    // A shell would take some of them for its own.
    let is_plain = mark.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'/'));
    let shown = if is_plain { mark.to_owned() } else { format!("'{mark}'") };
    format!("`--null {shown}` if {} stands for missing", quoted(mark))
}

/// What kept a column without a type from being one of numbers or dates, as far as is known.
#[derive(Clone, Default, Debug)]
pub(crate) struct Strays {
    /// The first mark of a missing value, its line, and what the other texts have in common.
    mark: Option<(String, u64, Seen)>,
    /// The first text that is neither a mark nor a number, and its line.
    other: Option<(String, u64)>,
}

impl Strays {
    /// One more text of the column; `seen` is what those before it have in common.
    pub(crate) fn add(&mut self, text: &str, line: u64, seen: &Seen, spelling: &Spelling) {
        let is_stray = is_mark(text);
        match &mut self.mark {
            None if is_stray => self.mark = Some((text.to_owned(), line, seen.clone())),
            Some((_, _, without)) if !is_stray => without.add(text, spelling),
            _ => {}
        }
        let is_number = || spelling.number(text).is_some_and(|number| scalar::is_number(&number));
        if self.other.is_none() && !is_stray && !is_number() {
            self.other = Some((text.to_owned(), line));
        }
    }

    /// What to write for the column `name` of this scalar type to be another one: the advice, and the line of the text that it is about.
    pub(crate) fn advice(&self, name: &str, scalar: Scalar, spelling: &Spelling) -> Option<(String, u64)> {
        if scalar != Scalar::Text {
            return None;
        }
        match (&self.mark, &self.other) {
            (Some((mark, line, without)), _) if without.has_any() && without.scalar() != Scalar::Text => {
                Some((null_advice(mark), *line))
            }
            (_, Some((text, line))) => Some((spelling.said_of_number(text, name)?, *line)),
            _ => None,
        }
    }
}

/// A number with something between its thousands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Grouped {
    /// What is between thousands.
    group: char,
    /// What is before the fraction, if there is one.
    decimal: Option<char>,
}

impl Grouped {
    /// How a text is grouped; `None` if it is not. Groups have three digits, as in India two.
    pub(crate) fn of(text: &str) -> Option<Grouped> {
        let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
        let group = unsigned.chars().find(|c| !c.is_ascii_digit())?;
        if !matches!(group, ',' | '.' | '\'' | '’' | ' ' | '\u{a0}' | '\u{202f}' | '_') {
            return None;
        }
        let decimal = unsigned.chars().find(|c| matches!(c, '.' | ',') && *c != group);
        let (whole, fraction) = decimal.and_then(|decimal| unsigned.split_once(decimal)).unwrap_or((unsigned, ""));
        let is_digits = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit());
        let (first, rest) = whole.split_once(group)?;
        let (inner, last) = rest.rsplit_once(group).map_or((None, rest), |(inner, last)| (Some(inner), last));
        let is_grouped = matches!(first.len(), 1..=3)
            && is_digits(first)
            && inner.is_none_or(|inner| inner.split(group).all(|part| matches!(part.len(), 2 | 3) && is_digits(part)))
            && last.len() == 3
            && is_digits(last)
            && is_digits(fraction);
        is_grouped.then_some(Grouped { group, decimal })
    }

    /// What makes numbers of the column `name`, in the language of models.
    pub(crate) fn parsed(self, name: &str) -> String {
        let replaced = format!("strings.replace({name}, \"{}\", \"\")", self.group);
        match self.decimal {
            Some(decimal) if decimal != '.' => {
                format!("strings.parse_float64(strings.replace({replaced}, \"{decimal}\", \".\"))")
            }
            _ => format!("strings.parse_float64({replaced})"),
        }
    }

    /// True if the text may also be a number with a decimal comma.
    pub(crate) fn may_be_decimal(self, text: &str) -> bool {
        self.group == ',' && self.decimal.is_none() && text.matches(',').count() == 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_with_thousands_are_told_from_others() {
        let found = |text: &str| Grouped::of(text).map(|grouped| grouped.parsed("x"));
        let no_commas = Some("strings.parse_float64(strings.replace(x, \",\", \"\"))".to_owned());
        for text in ["2,590", "7,770.25", "-1,234,567", "12,34,567.5", "+100,000"] {
            assert_eq!(found(text), no_commas, "{text}");
        }
        let german = "strings.parse_float64(strings.replace(strings.replace(x, \".\", \"\"), \",\", \".\"))";
        assert_eq!(found("1.355,90").as_deref(), Some(german));
        assert_eq!(found("1'234.5").as_deref(), Some("strings.parse_float64(strings.replace(x, \"'\", \"\"))"));
        for text in [
            "1,5",
            "1234,567",
            "1,23",
            "1,2345",
            "a,123",
            "1,,234",
            "1,234,",
            "12:345",
            "2,590kg",
            "1,234.5.6",
            ",123",
            "",
        ] {
            assert_eq!(found(text), None, "{text}");
        }
        assert!(Grouped::of("2,590").is_some_and(|grouped| grouped.may_be_decimal("2,590")));
        assert!(Grouped::of("1,234,567").is_some_and(|grouped| !grouped.may_be_decimal("1,234,567")));
    }
}
