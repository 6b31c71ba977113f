//! A map from names to values, and the errors for names that the model has and the caller's data lacks, or the reverse.

use cembra_value::{Code, Diagnostic, near_names};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A map from names to values that keeps the order of first insertion. Lookup is logarithmic, because a model may have many outputs.
pub(crate) struct ByName<T> {
    all: Vec<(Arc<str>, T)>,
    positions: BTreeMap<Arc<str>, usize>,
}

impl<T> ByName<T> {
    /// Returns an empty map.
    pub(crate) const fn new() -> Self {
        ByName { all: Vec::new(), positions: BTreeMap::new() }
    }

    /// Inserts the value `one` under `name`. If the map has the name already, the new value replaces the old one at its position.
    pub(crate) fn insert(&mut self, name: &str, one: T) {
        match self.positions.get(name) {
            Some(at) => self.all[*at].1 = one,
            None => {
                let name: Arc<str> = name.into();
                self.positions.insert(name.clone(), self.all.len());
                self.all.push((name, one));
            }
        }
    }

    pub(crate) fn get(&self, name: &str) -> Option<&T> {
        self.positions.get(name).map(|at| &self.all[*at].1)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &T)> {
        self.all.iter().map(|(name, one)| (&**name, one))
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.iter().map(|(name, _)| name.to_owned()).collect()
    }
}

/// The most bytes of a list of names in a message.
const LONGEST: usize = 200;

/// Joins `names` with commas, and cuts off the list if it is too long for a message.
pub(crate) fn list<N: AsRef<str>>(names: impl IntoIterator<Item = N>) -> String {
    let mut list = String::new();
    for name in names {
        if !list.is_empty() {
            list.push_str(", ");
        }
        list.push_str(name.as_ref());
        if list.len() > LONGEST {
            let cut = (0..=LONGEST).rev().find(|at| list.is_char_boundary(*at)).unwrap_or(0);
            list.truncate(cut);
            list.push_str("..");
            break;
        }
    }
    list
}

/// Returns the name in `known` that differs from `name` by one typo; `None` if there is no such name.
fn near<'n>(name: &str, known: &[&'n str]) -> Option<&'n str> {
    near_names(name, 1, known.iter().copied()).first().copied()
}

/// Returns the error that the model has no `what` (such as an input) with the name `name`, with a similar known name as a hint.
pub(crate) fn unknown_name<'n>(what: &str, name: &str, known: impl Iterator<Item = &'n str>) -> Diagnostic {
    let known: Vec<&str> = known.collect();
    let diagnostic = Diagnostic::new(Code::Binding, format!("the model has no {what} `{name}`"));
    match near(name, &known) {
        Some(near) => diagnostic.hint(format!("did you mean `{near}`?")),
        None if known.is_empty() => diagnostic.hint(format!("the model has no {what}")),
        None => diagnostic.hint(format!("the model has {}", list(known))),
    }
}

/// Returns the error for names of the model that the caller's data does not have. The message begins with `what`. Similar names in `known` become
/// hints.
pub(crate) fn unmatched_names_error(what: &str, names: &[&str], known: &[String]) -> Diagnostic {
    let known: Vec<&str> = known.iter().map(String::as_str).collect();
    let plural = if names.len() == 1 { "" } else { "s" };
    let quoted = list(names.iter().map(|name| format!("`{name}`")));
    let mut diagnostic = Diagnostic::new(Code::Binding, format!("{what}{plural} {quoted}"));
    for name in names.iter().take(3) {
        if let Some(near) = near(name, &known) {
            diagnostic = diagnostic.hint(format!("is `{near}` meant for `{name}`?"));
        }
    }
    if known.is_empty() { diagnostic } else { diagnostic.hint(format!("the known names are {}", list(known))) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lists_are_cut_between_characters() {
        let names = vec!["é".repeat(30); 20];
        let list = list(names.iter().map(String::as_str));
        assert!(list.len() <= LONGEST + 2 && list.ends_with("é.."), "{list}");
    }

    #[test]
    fn one_typo_is_recognised_two_are_not() {
        let known = ["width".to_owned(), "height".to_owned()];
        let found = unmatched_names_error("nobody gives input", &["heigth", "wdht"], &known);
        assert_eq!(found.message(), "nobody gives inputs `heigth`, `wdht`");
        assert_eq!(found.hints(), ["is `height` meant for `heigth`?", "the known names are width, height"]);
    }
}
