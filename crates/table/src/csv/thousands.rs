//! Numbers with separators between thousands: `2,590`, `1.355,90` or `1'234.50`. They are not read as numbers, because `2,590` may also mean 2.59.

/// The separators of a number whose digits are grouped in thousands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ThousandsFormat {
    /// The character between thousands.
    group: char,
    /// The character before the fraction; `None` without a fraction.
    decimal: Option<char>,
}

impl ThousandsFormat {
    /// Returns the separators of the number `text`; `None` if it is not a number with grouped digits. Groups have three digits; inner
    /// groups may have two, as in India.
    pub(crate) fn of(text: &str) -> Option<ThousandsFormat> {
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
        is_grouped.then_some(ThousandsFormat { group, decimal })
    }

    /// The model expression that converts the text column `name` to numbers.
    pub(crate) fn parsed(self, name: &str) -> String {
        let replaced = format!("strings.replace({name}, \"{}\", \"\")", self.group);
        match self.decimal {
            Some(decimal) if decimal != '.' => {
                format!("strings.parse_float64(strings.replace({replaced}, \"{decimal}\", \".\"))")
            }
            _ => format!("strings.parse_float64({replaced})"),
        }
    }

    /// Returns true if `text` may also be a number with a fraction: its only separator is a comma (if `decimal_comma` is true, a
    /// point).
    pub(crate) fn may_be_decimal(self, text: &str, decimal_comma: bool) -> bool {
        let decimal = if decimal_comma { '.' } else { ',' };
        self.group == decimal && self.decimal.is_none() && text.matches(decimal).count() == 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_with_thousands_are_told_from_others() {
        let found = |text: &str| ThousandsFormat::of(text).map(|grouped| grouped.parsed("x"));
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
        assert!(ThousandsFormat::of("2,590").is_some_and(|grouped| grouped.may_be_decimal("2,590", false)));
        assert!(ThousandsFormat::of("1.234").is_some_and(|grouped| grouped.may_be_decimal("1.234", true)));
        assert!(ThousandsFormat::of("1,234,567").is_some_and(|grouped| !grouped.may_be_decimal("1,234,567", false)));
    }
}
