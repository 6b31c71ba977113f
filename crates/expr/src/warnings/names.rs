//! Warnings about names: unused definitions, and undeclared leaves whose names are similar to a name that may be used at the same place.

use crate::{Defines, Definition, Node, NodeId, Program};
use cembra_runtime::Excerpt;
use cembra_value::{Code, Diagnostic, Span, Warnings, near_names};

/// Names of constants in other languages, each with the name in cembra.
const FOREIGN: &[(&str, &str)] = &[
    ("null", "missing"),
    ("nil", "missing"),
    ("none", "missing"),
    ("undefined", "missing"),
    ("missing", "missing"),
    ("true", "true"),
    ("false", "false"),
    ("nan", "nan"),
    ("inf", "inf"),
    ("infinity", "inf"),
];

/// The most names that one name is compared with.
const NAMES: usize = 10_000;

/// The most comparisons of names, for all leaves together.
const COMPARED: usize = 1 << 20;

/// The most leaves that are reported for one definition.
const LEAVES: usize = 4;

/// The fewest letters of a name in which one typo is assumed, and the fewest in which two are.
const TYPO: [usize; 2] = [4, 12];

/// A name that is known in a text and similar to an unknown name, for a hint that the unknown name is a misspelling.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SimilarName<'p> {
    /// The known name.
    pub name: &'p str,
    /// The span where the known name is declared or defined; `None` for a word of the language.
    pub place: Option<Span>,
}

impl Program {
    /// Returns the known name that an undeclared leaf was probably meant to be. This is a declared input, a value or parameter that is known at
    /// `place`, or a word of the language. `None` if no known name is similar.
    #[must_use]
    pub fn similar_name(&self, name: &str, place: Option<Span>) -> Option<SimilarName<'_>> {
        let declared = self.definitions.declared_inputs()?;
        if let Some((_, ours)) = FOREIGN.iter().find(|(theirs, _)| theirs.eq_ignore_ascii_case(name)) {
            return Some(SimilarName { name: ours, place: None });
        }
        let letters = name.chars().count();
        if letters < 2 {
            return None;
        }
        let typos = TYPO.iter().filter(|least| letters >= **least).count();
        let inputs = || self.inputs.iter().take(declared.min(NAMES)).map(|one| (&*one.name, one.span));
        let is_known = |one: &Definition| match one.defines {
            Defines::Let | Defines::Output => place.is_none_or(|place| one.whole.end <= place.start),
            Defines::Parameter => place.is_some_and(|at| one.whole.start <= at.start && at.end <= one.whole.end),
            Defines::Function => false,
        };
        let defined = || self.definitions.iter().take(NAMES).filter(|(_, one)| is_known(one));
        let known = || inputs().chain(defined().map(|(text, one)| (text, Some(one.name))));
        let alike = |other: &&str| {
            other.len().abs_diff(name.len()) <= 4 * typos && *other != name && !are_told_apart(name, other)
        };
        let nearest = near_names(name, typos, known().map(|(text, _)| text).filter(alike)).first().copied()?;
        let place = known().find(|(text, _)| *text == nearest).and_then(|(_, place)| place);
        Some(SimilarName { name: nearest, place })
    }
}

/// Returns true for names that differ intentionally: by numbers, or by a short word among others.
fn are_told_apart(a: &str, b: &str) -> bool {
    let without_digits = |name: &str| name.chars().filter(|c| !c.is_ascii_digit()).collect::<String>();
    if a.len().max(b.len()) > 64 || without_digits(a) == without_digits(b) && a != b {
        return true;
    }
    let (a, b) = (a.split('_'), b.split('_'));
    a.clone().count() == b.clone().count()
        && a.zip(b).any(|(a, b)| !a.eq_ignore_ascii_case(b) && a.len().max(b.len()) < TYPO[0])
}

fn declared_inputs(program: &Program) -> usize {
    program.definitions.declared_inputs().unwrap_or_default()
}

/// Returns the undeclared leaves, each with its first place, in the order of the text.
fn undeclared(program: &Program) -> Vec<(&str, Option<Span>)> {
    let graph = &program.graph;
    let mut declared = vec![false; graph.name_count()];
    for input in program.inputs.iter().take(declared_inputs(program)) {
        if let Some(name) = graph.find_name(&input.name) {
            declared[name.index()] = true;
        }
    }
    let leaf = |at: usize| match graph.node(NodeId::from_index(at)) {
        Node::Leaf(name) if !declared[name.index()] => Some((&**graph.name(name), graph.span(NodeId::from_index(at)))),
        _ => None,
    };
    let mut found: Vec<_> = (0..graph.len()).filter_map(leaf).collect();
    found.sort_unstable_by_key(|(_, place)| *place);
    found
}

/// Adds warnings for definitions that are not used. A name that begins with an underscore is exempt.
pub(super) fn unused(program: &Program, found: &mut Warnings) {
    let mut unused = program
        .definitions
        .iter()
        .filter(|(name, one)| one.defines == Defines::Let && !one.is_used && !name.starts_with('_'))
        .peekable();
    if unused.peek().is_none() {
        return;
    }
    // In a text without declared inputs, undeclared leaves are normal.
    let leaves = if declared_inputs(program) > 0 { undeclared(program) } else { Vec::new() };
    for (name, one) in unused {
        found.add(Code::UnusedLet, Some(one.name), || {
            let message = format!("`{}` is never used", Excerpt::quoted(name));
            let hint = format!("leave the definition out, or name it `_{}`", Excerpt::quoted(name));
            let warning = Diagnostic::new(Code::UnusedLet, message).hint(hint);
            let first = leaves.partition_point(|(_, place)| place.is_none_or(|place| place.start < one.whole.start));
            let inside = leaves[first..].iter().filter_map(|(leaf, place)| Some((leaf, (*place)?)));
            let inside = inside.take_while(|(_, place)| place.end <= one.whole.end).take(LEAVES);
            inside.fold(warning, |warning, (leaf, place)| {
                warning.also(place, format!("`{}` is not declared", Excerpt::quoted(leaf)))
            })
        });
    }
}

/// Adds warnings for undeclared leaves whose names are similar to a known name.
pub(super) fn similar(program: &Program, is_typed: &dyn Fn(&str) -> bool, found: &mut Warnings) {
    let definitions = program.definitions.iter().take(NAMES).count();
    let each = (declared_inputs(program) + definitions).clamp(1, NAMES);
    for (name, place) in undeclared(program).into_iter().filter(|(name, _)| !is_typed(name)).take(COMPARED / each) {
        let Some(similar) = program.similar_name(name, place) else { continue };
        found.add(Code::SimilarName, place, || {
            let message = format!("`{}` is not declared, so it becomes an input by itself", Excerpt::quoted(name));
            let hint = format!("did you mean `{}`?", Excerpt::quoted(similar.name));
            let warning = Diagnostic::new(Code::SimilarName, message).hint(hint);
            match similar.place {
                Some(place) => warning.also(place, format!("`{}` is defined here", Excerpt::quoted(similar.name))),
                None => warning,
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::are_told_apart;

    #[test]
    fn numbers_and_short_words_tell_names_apart() {
        for (a, b) in
            [("x1", "x2"), ("rate_2019", "rate_2020"), ("price", "price2"), ("min_x", "max_x"), ("a_b", "a_c")]
        {
            assert!(are_told_apart(a, b), "{a} {b}");
        }
        for (a, b) in [("price", "prise"), ("total_price", "totalprice"), ("unit_price", "unit_prce"), ("Id_x", "id_x")]
        {
            assert!(!are_told_apart(a, b), "{a} {b}");
        }
    }
}
