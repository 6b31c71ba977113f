//! What people write who know other languages, and how that is written here, or that it is not there: THE table of foreign names and spellings.
//! Its parts are `tensors`, `calls` and `signs`; what refuses a name or a sign asks here for the hint. Names that are only nearly those of
//! operators are the concern of [`Vocabulary::suggest`](crate::Vocabulary::suggest). A test of the workspace compiles what the hints say to write.

mod calls;
mod signs;
mod tensors;

use rustc_hash::FxHashMap;
use std::sync::LazyLock;

pub(super) use signs::COMMENT;
pub(super) use tensors::BY_LABELS;

/// Where something stands that is known elsewhere.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum ForeignUse {
    /// The name of an operator or of a method, in a text with tensors.
    Tensors,
    /// The name of an operator, of a method or of a field: `len(x)`, `x.startsWith("a")`, `d.year`.
    Call,
    /// A name that stands for a value: `null`.
    Value,
    /// A word between operands, or in front of one: `is`, `select`.
    Word,
    /// The name of a type: `string`.
    Type,
    /// The name of an argument: `axis`.
    Argument,
    /// The name of an argument of an operator on whole tensors.
    TensorArgument,
    /// Signs, one or two tokens: `&&`.
    Sign,
}

/// Names or signs that are known elsewhere, and what to write in their place. Names are in lower case and without `_`.
#[derive(Clone, Copy, Debug)]
pub struct Foreign {
    /// Where they stand.
    pub used_as: ForeignUse,
    /// How they are written elsewhere.
    pub names: &'static [&'static str],
    /// What to write here.
    pub form: &'static str,
}

const fn of(used_as: ForeignUse, names: &'static [&'static str], form: &'static str) -> Foreign {
    Foreign { used_as, names, form }
}

/// The longest name that is looked up, in bytes. The table has no longer one.
const LONGEST: usize = 32;

/// All entries of the table.
pub fn foreign_names() -> impl Iterator<Item = &'static Foreign> {
    tensors::TENSORS
        .iter()
        .chain(calls::CALLS)
        .chain(calls::VALUES)
        .chain(calls::TYPES)
        .chain(signs::WORDS)
        .chain(signs::SIGNS)
}

/// What to write in the place of a name or of signs that are known elsewhere. Capital letters and `_` in names do not matter.
#[must_use]
pub fn foreign_form(used_as: ForeignUse, name: &str) -> Option<&'static str> {
    static FORMS: LazyLock<FxHashMap<(ForeignUse, &'static str), &'static str>> = LazyLock::new(|| {
        foreign_names().flat_map(|entry| entry.names.iter().map(|name| ((entry.used_as, *name), entry.form))).collect()
    });
    if name.len() > LONGEST {
        return None;
    }
    let mut folded = name.to_ascii_lowercase();
    if used_as != ForeignUse::Sign {
        folded.retain(|letter| letter != '_');
    }
    FORMS.get(&(used_as, &*folded)).copied()
}

/// How something is written of tensors that is known under this name elsewhere, or of arrays; or that it is not there. Nothing for names that
/// nobody is known to expect.
#[must_use]
pub fn tensor_form(name: &str) -> Option<&'static str> {
    foreign_form(ForeignUse::Tensors, name)
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
                assert_eq!(foreign_form(entry.used_as, name), Some(entry.form), "{name}");
            }
        }
        assert_eq!((tensor_form("dot"), tensor_form("sum")), (Some(BY_LABELS), None));
        assert_eq!(foreign_form(ForeignUse::Call, "Starts_With"), foreign_form(ForeignUse::Call, "startswith"));
        assert!(foreign_form(ForeignUse::Call, "startswith").is_some());
        assert_eq!(foreign_form(ForeignUse::Call, &"_".repeat(1 << 20)), None);
    }
}
