//! The one vocabulary of what people read: types go by the names of the text language, and Arolla's names stand only where there is
//! no other.

use cembra::values::{parse_type, print_type};

/// How Arolla's names of types begin that are no words by themselves.
const BEGINNINGS: [&str; 4] = ["tuple<", "namedtuple<", "SEQUENCE[", "OPERATOR"];

/// The words of a text that name a type otherwise than the text language does.
#[must_use]
pub fn foreign_names(text: &str) -> Vec<&str> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let is_foreign = |word: &&str| {
        let is_capital = word.starts_with(|c: char| c.is_ascii_uppercase());
        is_capital && parse_type(word).is_ok_and(|qtype| print_type(&qtype) != **word)
    };
    BEGINNINGS.into_iter().filter(|beginning| text.contains(beginning)).chain(words.filter(is_foreign)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_arolla_are_foreign_where_there_are_others() {
        let text =
            "f64? is OPTIONAL_FLOAT64, and tuple<INT32> a DENSE_ARRAY_TEXT; DENSE_ARRAY_SHAPE, NOTHING, edge, INT, A";
        assert_eq!(foreign_names(text), ["tuple<", "OPTIONAL_FLOAT64", "INT32", "DENSE_ARRAY_TEXT"]);
        assert_eq!(foreign_names("DENSE_ARRAY_EDGE DICT_TEXT_INT32 WEAK_FLOAT").len(), 3);
        assert!(foreign_names("expects [f64?], found {x: text}; weak_float, ARRAY_FLOAT32, TUPLE{1}").is_empty());
    }
}
