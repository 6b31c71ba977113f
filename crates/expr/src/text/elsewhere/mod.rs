//! The table of names and spellings from other languages, with hints for what to write in cembra instead. The table is in the modules `tensors`,
//! `calls` and `signs`. Code that rejects a name or a sign looks its hint up in this module. Misspelled operator names are handled by
//! [`Vocabulary::suggest`](crate::Vocabulary::suggest). A test of the workspace compiles the code in the hints.

mod calls;
mod signs;
mod tensors;

use rustc_hash::FxHashMap;
use std::sync::LazyLock;

pub(super) use signs::COMMENT;
pub(super) use tensors::BY_LABELS;

/// The syntactic role of a name or sign from another language, for which a hint is given: a call, a value, a type, a sign.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum ForeignUse {
    /// The name is used as the name of an operator or a method in a text with tensors.
    Tensors,
    /// The name is used as the name of an operator, a method or a field: `len(x)`, `x.startsWith("a")`, `d.year`.
    Call,
    /// The name is used for a value: `null`.
    Value,
    /// The name is used as a word between or before operands, such as `is` or `select`.
    Word,
    /// The name is used for a type: `string`.
    Type,
    /// The name is used for an argument of a call: `axis`.
    Argument,
    /// The name is used for an argument of an operator on tensors.
    TensorArgument,
    /// The sign is used as an operator or other syntax of one or two tokens, such as `&&`.
    Sign,
}

/// Names or signs of other languages that share one hint. Names are in lower case and without `_`.
#[derive(Clone, Copy, Debug)]
pub struct Foreign {
    /// The syntactic role of the names.
    pub used_as: ForeignUse,
    /// The names or signs in other languages.
    pub names: &'static [&'static str],
    /// The hint that says what to write instead of these names or signs.
    pub hint: &'static str,
}

const fn of(used_as: ForeignUse, names: &'static [&'static str], hint: &'static str) -> Foreign {
    Foreign { used_as, names, hint }
}

/// The longest name that is looked up, in bytes. No name in the table is longer.
const LONGEST: usize = 32;

/// Iterates over all entries of the table of foreign names and signs.
pub fn foreign_names() -> impl Iterator<Item = &'static Foreign> {
    tensors::TENSORS
        .iter()
        .chain(calls::CALLS)
        .chain(calls::VALUES)
        .chain(calls::TYPES)
        .chain(signs::WORDS)
        .chain(signs::SIGNS)
}

/// Returns the hint for the foreign name or sign `name`; `None` if the table has no hint for it. Capital letters and `_` in names are ignored.
#[must_use]
pub fn foreign_hint(used_as: ForeignUse, name: &str) -> Option<&'static str> {
    static HINTS: LazyLock<FxHashMap<(ForeignUse, &'static str), &'static str>> = LazyLock::new(|| {
        foreign_names().flat_map(|entry| entry.names.iter().map(|name| ((entry.used_as, *name), entry.hint))).collect()
    });
    if name.len() > LONGEST {
        return None;
    }
    let mut folded = name.to_ascii_lowercase();
    if used_as != ForeignUse::Sign {
        folded.retain(|letter| letter != '_');
    }
    HINTS.get(&(used_as, &*folded)).copied()
}

/// Returns the hint for `name`, a tensor or array operation of another language; `None` if the table has no hint for it. Some hints only say that
/// cembra has no such operation.
#[must_use]
pub fn tensor_hint(name: &str) -> Option<&'static str> {
    foreign_hint(ForeignUse::Tensors, name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn each_name_stands_once_and_as_it_is_looked_up() {
        let mut seen = BTreeSet::new();
        for entry in foreign_names() {
            for name in entry.names {
                assert!(seen.insert((entry.used_as, *name)), "{name} is there twice");
                assert_eq!(foreign_hint(entry.used_as, name), Some(entry.hint), "{name}");
            }
        }
        assert_eq!((tensor_hint("dot"), tensor_hint("sum")), (Some(BY_LABELS), None));
        assert_eq!(foreign_hint(ForeignUse::Call, "Starts_With"), foreign_hint(ForeignUse::Call, "startswith"));
        assert!(foreign_hint(ForeignUse::Call, "startswith").is_some());
        assert_eq!(foreign_hint(ForeignUse::Call, &"_".repeat(1 << 20)), None);
    }
}
