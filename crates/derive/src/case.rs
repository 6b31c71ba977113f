//! The name cases for `rename_all`, such as `camelCase`. They give the same names as in serde: fields are assumed to be in
//! snake case and variants in Pascal case, and words are split at underscores or capital letters, without rules about
//! digits.

use syn::LitStr;

/// The case in which names are written: how their words are capitalised and joined.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Case {
    Lower,
    Upper,
    Pascal,
    Camel,
    Snake,
    ScreamingSnake,
    Kebab,
    ScreamingKebab,
}

const CASES: [(&str, Case); 8] = [
    ("lowercase", Case::Lower),
    ("UPPERCASE", Case::Upper),
    ("PascalCase", Case::Pascal),
    ("camelCase", Case::Camel),
    ("snake_case", Case::Snake),
    ("SCREAMING_SNAKE_CASE", Case::ScreamingSnake),
    ("kebab-case", Case::Kebab),
    ("SCREAMING-KEBAB-CASE", Case::ScreamingKebab),
];

impl Case {
    /// Parses the name of a name case, such as `camelCase`.
    pub(crate) fn parse(name: &LitStr) -> Result<Case, syn::Error> {
        let written = name.value();
        CASES.iter().find(|(known, _)| *known == written).map(|(_, case)| *case).ok_or_else(|| {
            let known: Vec<String> = CASES.iter().map(|(known, _)| format!("`{known}`")).collect();
            syn::Error::new(
                name.span(),
                format!("there is no case `{written}`; it must be one of {}", known.join(", ")),
            )
        })
    }

    /// The field name `name`, which is in snake case, converted to this case.
    pub(crate) fn of_field(self, name: &str) -> String {
        match self {
            Case::Lower | Case::Snake => name.to_owned(),
            Case::Upper | Case::ScreamingSnake => name.to_ascii_uppercase(),
            Case::Pascal => name.split('_').map(|word| first_letter(word, char::to_ascii_uppercase)).collect(),
            Case::Camel => first_letter(&Case::Pascal.of_field(name), char::to_ascii_lowercase),
            Case::Kebab => name.replace('_', "-"),
            Case::ScreamingKebab => name.to_ascii_uppercase().replace('_', "-"),
        }
    }

    /// The variant name `name`, which is in Pascal case, converted to this case.
    pub(crate) fn of_variant(self, name: &str) -> String {
        match self {
            Case::Pascal => name.to_owned(),
            Case::Lower => name.to_ascii_lowercase(),
            Case::Upper => name.to_ascii_uppercase(),
            Case::Camel => first_letter(name, char::to_ascii_lowercase),
            Case::Snake => {
                let mut words = String::new();
                for (at, letter) in name.char_indices() {
                    if at > 0 && letter.is_uppercase() {
                        words.push('_');
                    }
                    words.push(letter.to_ascii_lowercase());
                }
                words
            }
            Case::ScreamingSnake => Case::Snake.of_variant(name).to_ascii_uppercase(),
            Case::Kebab => Case::Snake.of_variant(name).replace('_', "-"),
            Case::ScreamingKebab => Case::ScreamingSnake.of_variant(name).replace('_', "-"),
        }
    }
}

fn first_letter(word: &str, change: impl Fn(&char) -> char) -> String {
    let mut letters = word.chars();
    let first = letters.next();
    first.iter().map(change).chain(letters).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The results in serde's own documentation and tests.
    #[test]
    fn names_are_those_of_serde() {
        let fields = ["outcome", "very_tasty", "a", "z42"];
        let variants = ["Outcome", "VeryTasty", "A", "Z42"];
        let expected = [
            (Case::Lower, fields, ["outcome", "verytasty", "a", "z42"]),
            (Case::Upper, ["OUTCOME", "VERY_TASTY", "A", "Z42"], ["OUTCOME", "VERYTASTY", "A", "Z42"]),
            (Case::Pascal, variants, variants),
            (Case::Camel, ["outcome", "veryTasty", "a", "z42"], ["outcome", "veryTasty", "a", "z42"]),
            (Case::Snake, fields, ["outcome", "very_tasty", "a", "z42"]),
            (Case::ScreamingSnake, ["OUTCOME", "VERY_TASTY", "A", "Z42"], ["OUTCOME", "VERY_TASTY", "A", "Z42"]),
            (Case::Kebab, ["outcome", "very-tasty", "a", "z42"], ["outcome", "very-tasty", "a", "z42"]),
            (Case::ScreamingKebab, ["OUTCOME", "VERY-TASTY", "A", "Z42"], ["OUTCOME", "VERY-TASTY", "A", "Z42"]),
        ];
        for (case, of_fields, of_variants) in expected {
            assert_eq!(fields.map(|name| case.of_field(name)), of_fields, "{case:?}");
            assert_eq!(variants.map(|name| case.of_variant(name)), of_variants, "{case:?}");
        }
        assert_eq!(Case::Camel.of_variant("Éa"), "Éa", "only ASCII letters change, and nothing is cut");
    }
}
