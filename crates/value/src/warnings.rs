//! The collection of warnings. A warning is reported once per span, and silenced codes are not reported. If there are
//! very many warnings, only some are stored, and the others are only counted.

use crate::{Code, Diagnostic, Span};
use std::collections::HashSet;

/// The warnings about a model that were found so far.
///
/// ```
/// use cembra_value::{Code, Diagnostic, Span, Warnings};
///
/// let mut warnings = Warnings::new(1, &[Code::UnusedLet]);
/// let mut add = |code, at| warnings.add(code, Some(Span::new(at, at + 1)), || Diagnostic::new(code, format!("at {at}")));
/// add(Code::UnusedLet, 1);
/// add(Code::SimilarName, 2);
/// add(Code::SimilarName, 2);
/// add(Code::SimilarName, 3);
/// assert_eq!((warnings.as_slice()[0].message(), warnings.count()), ("at 2", 2));
/// ```
#[derive(Clone, Debug)]
pub struct Warnings {
    kept: Vec<Diagnostic>,
    count: usize,
    most: usize,
    silenced: Box<[Code]>,
    /// The code and span of each warning that was reported so far, as long as there is room.
    told: HashSet<(Code, Span)>,
}

impl Warnings {
    /// An empty collection that stores at most `most` warnings and ignores those with the codes in `silenced`.
    #[must_use]
    pub fn new(most: usize, silenced: &[Code]) -> Self {
        Warnings { kept: Vec::new(), count: 0, most, silenced: silenced.into(), told: HashSet::new() }
    }

    /// Adds a warning to the collection, unless its code is silenced. `warning` makes the diagnostic, and is called
    /// only if it is stored. A code is reported once per span, because one expression may have many nodes.
    pub fn add(&mut self, code: Code, at: Option<Span>, warning: impl FnOnce() -> Diagnostic) {
        if self.silenced.contains(&code) {
            return;
        }
        let has_room = self.kept.len() < self.most;
        if let Some(span) = at {
            let is_known = if has_room { !self.told.insert((code, span)) } else { self.told.contains(&(code, span)) };
            if is_known {
                return;
            }
        }
        self.count += 1;
        if has_room {
            self.kept.push(warning().at(at));
        }
    }

    /// Sorts the stored warnings in the order of the text; warnings without a span come first.
    pub fn sort(&mut self) {
        self.kept.sort_by_key(Diagnostic::span);
    }

    /// Removes the stored warnings for which `holds` is false. Removed warnings no longer count.
    pub fn retain(&mut self, holds: impl FnMut(&Diagnostic) -> bool) {
        let before = self.kept.len();
        self.kept.retain(holds);
        self.count -= before - self.kept.len();
    }

    /// The warnings that are stored.
    #[must_use]
    pub fn as_slice(&self) -> &[Diagnostic] {
        &self.kept
    }

    /// The number of warnings that were found, including those that are not stored.
    #[must_use]
    pub fn count(&self) -> usize {
        self.count
    }

    /// Returns true if no warnings were found.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_without_a_place_are_all_told() {
        let mut warnings = Warnings::new(2, &[]);
        for at in [Some(Span::new(5, 6)), None, None, Some(Span::new(5, 6)), Some(Span::new(1, 2))] {
            warnings.add(Code::LostDigits, at, || Diagnostic::new(Code::LostDigits, "lost"));
        }
        warnings.sort();
        let places: Vec<_> = warnings.as_slice().iter().map(Diagnostic::span).collect();
        assert_eq!((places, warnings.count()), (vec![None, Some(Span::new(5, 6))], 4));
    }
}
