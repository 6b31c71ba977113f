//! Defines `strings.findall_regex`: all captures of a regular expression's groups in a text, match by match, as
//! repeated calls of RE2's `FindAndConsume` give them. So each search sees only the text after the previous match, as
//! if that were the complete text.

use super::agg_join::strings_argument;
use super::limits;
use super::pattern::Pattern;
use super::regex::check_any_pattern;
use super::split::{counted, with_edges};
use crate::array::{ARRAY, ArrayForm, ArrayOperands, ArrayOperator, invalid, string_bytes};
use crate::definition::{OpDef, OverArrays, Typing, ex, param};
use crate::typing::{Argument, Signature, TypeFault, refuse};
use cembra_expr::ArgumentForm;
use cembra_runtime::{ArrayKind, Context, EdgeType, Fault, FaultKind, QType, Scalar};
use cembra_value::{ArrayBuilder, Edge, ScalarValue, Value};

fn types(operator: &'static str, args: &[Argument<'_>]) -> Result<Signature, TypeFault> {
    if *args[1].qtype != QType::TEXT {
        return refuse(1, format!("{operator} expects a text for `regex`, found {}", args[1].qtype));
    }
    let (kind, texts) = match args[0].qtype {
        // A single text is one group of a dense array.
        QType::Scalar(Scalar::Text) | QType::Optional(Scalar::Text) => {
            (ArrayKind::Dense, EdgeType::ToScalar(ArrayKind::Dense))
        }
        found => match strings_argument(operator, args, 0)? {
            (kind, Scalar::Text) => (kind, EdgeType::Arrays(kind)),
            _ => return refuse(0, format!("{operator} expects texts, found {found}")),
        },
    };
    let parts = [QType::Array(kind, Scalar::Text), QType::Edge(texts), QType::Edge(EdgeType::Arrays(kind))];
    Ok(Signature::unchanged(args, QType::tuple(parts)))
}

/// The matches found so far in all texts.
struct MatchList {
    captured: ArrayBuilder,
    /// The number of matches in each text.
    matches: Vec<i64>,
    /// The bytes of memory for the captures, and for the edge (mapping) from captures to matches.
    bytes: u64,
}

impl MatchList {
    /// Finds the matches in a text, and appends their captures.
    fn add(
        &mut self,
        args: &ArrayOperands<'_>,
        context: &mut Context,
        pattern: &mut Pattern,
        text: Option<&str>,
    ) -> Result<(), Fault> {
        let mut matches = 0;
        let mut rest = text;
        while let Some(left) = rest {
            pattern.charge_searches(context, 1, left, 0)?;
            let groups = pattern.groups();
            let Some(captures) = pattern.captures_at(left, 0) else { break };
            let part = |group| captures.get(group).and_then(|(start, end)| left.get(start..end));
            for group in 1..=groups {
                // A group that does not take part in the match is empty, as in RE2.
                let captured = part(group).unwrap_or_default();
                self.bytes = self.bytes.saturating_add(string_bytes(captured.len()));
                args.room_for_bytes(self.bytes)?;
                self.captured.push_text(Some(captured));
            }
            matches += 1;
            // A match takes a size and a split point in the edge of captures.
            self.bytes = self.bytes.saturating_add(16);
            let (start, mut end) = captures.get(0).unwrap_or_default();
            if start == end {
                // After an empty match a character is skipped, because RE2 would find the match again for ever.
                end += left.get(end..).and_then(|left| left.chars().next()).map_or(1, char::len_utf8);
            }
            rest = left.get(end..);
            args.room_for(self.captured.len(), 0)?;
        }
        self.matches.push(matches);
        args.room_for_bytes(self.bytes)
    }
}

/// Finds the matches in all texts. Returns them, and the number of groups in the pattern.
fn find<'t>(
    args: &ArrayOperands<'_>,
    texts: impl Iterator<Item = Option<&'t str>>,
    regex: &str,
) -> Result<(MatchList, usize), Fault> {
    let mut context = Context::new();
    // A message made for this pattern would be in the memory of the context, which ends here.
    let refused = |_| {
        invalid(
            "the pattern is not a regular expression, or is too large; the limits are 64 KiB, and 1 MiB when compiled",
        )
    };
    let mut pattern = Pattern::compile(regex).map_err(refused)?;
    let mut found = MatchList { captured: ArrayBuilder::new(Scalar::Text, 0), matches: Vec::new(), bytes: 0 };
    for (at, text) in texts.enumerate() {
        args.poll_at(at)?;
        // Each row may do this much work.
        context.set_string_work(limits::MATCHING_WORK as u64);
        context.begin();
        found.add(args, &mut context, &mut pattern, text)?;
    }
    Ok((found, pattern.groups()))
}

fn text_of(value: &Value) -> Option<&str> {
    match value.as_scalar()? {
        ScalarValue::Text(text) => Some(text),
        _ => None,
    }
}

pub(crate) static FINDALL_REGEX: OpDef = OpDef {
    name: "strings.findall_regex",
    summary: "The matches of the regular expression in each text of an array, from left to right: the texts that its capturing groups match, the edge that maps matches to the texts of the array, and the edge that maps captured texts to matches. After a match, the search continues as if the text began there. If `s` is a single text, the first edge maps its matches to a scalar. A missing text has no matches.",
    params: &[param("s"), param("regex").of(ArgumentForm::Regex)],
    faults: &[FaultKind::Invalid, FaultKind::ArenaLimit, FaultKind::WorkLimit],
    typing: Typing::Rule(|args| types(FINDALL_REGEX.name, args)),
    over_arrays: OverArrays::Kernel(&ArrayOperator {
        form: ArrayForm::Index,
        typing: types,
        evaluate: |args, _| {
            let regex = text_of(&args[1]).ok_or(Fault::new(FaultKind::Invalid))?;
            let (kind, (found, groups)) = match &args[0] {
                Value::Array(kind, array) => (*kind, find(args, (0..array.len()).map(|at| array.text(at)), regex)?),
                one => (ArrayKind::Dense, find(args, std::iter::once(text_of(one)), regex)?),
            };
            let matches: i64 = found.matches.iter().sum();
            let matches = args.room_for(matches as usize, 16)?;
            let texts = match &args[0] {
                Value::Array(..) => counted(kind, found.matches)?,
                _ => Edge::to_scalar(kind, matches),
            };
            let groups = counted(kind, vec![groups as i64; matches])?;
            with_edges(kind, found.captured.finish(), [texts, groups])
        },
    }),
    literals: Some(check_any_pattern),
    examples: &[
        ex(
            "core.get_first(strings.findall_regex([\"a1 b2\", missing, \"c3\"], \"([a-z])([0-9])\"))",
            "['a', '1', 'b', '2', 'c', '3']",
        ),
        ex("edge.sizes(core.get_second(strings.findall_regex([\"a1 b2\", missing, \"c3\"], \"[0-9]\")))", "[2, 0, 1]"),
        ex("core.get_first(strings.findall_regex(\"a1 b2\", \"([0-9])\"))", "['1', '2']"),
    ],
    ..ARRAY
};

#[cfg(test)]
mod tests {
    use super::*;

    fn found(texts: &[Option<&str>], regex: &str) -> Result<(Vec<String>, Vec<i64>, usize), FaultKind> {
        let (found, groups) =
            find(&ArrayOperands::of_call(&[]), texts.iter().copied(), regex).map_err(|fault| fault.kind)?;
        let captured = found.captured.finish();
        let text = |at| String::from_utf8(captured.string(at).unwrap().to_vec()).unwrap();
        Ok(((0..captured.len()).map(text).collect(), found.matches, groups))
    }

    fn texts(all: &[&str]) -> Vec<String> {
        all.iter().map(|text| (*text).to_owned()).collect()
    }

    #[test]
    fn groups_of_all_matches_in_order() {
        assert_eq!(
            found(&[Some("ab"), None, Some("b")], "(a)?(x)?b"),
            Ok((texts(&["a", "", "", ""]), vec![1, 0, 1], 2))
        );
        assert_eq!(found(&[Some("aab"), Some("")], "a"), Ok((texts(&[]), vec![2, 0], 0)));
        assert_eq!(found(&[], "(a)"), Ok((texts(&[]), vec![], 1)));
    }

    #[test]
    fn what_is_left_is_as_a_text_by_itself() {
        assert_eq!(found(&[Some("aaa"), Some("baa")], "^(a)"), Ok((texts(&["a", "a", "a"]), vec![3, 0], 1)));
        assert_eq!(found(&[Some("aa b aa")], "\\b(a)"), Ok((texts(&["a", "a", "a", "a"]), vec![4], 1)));
    }

    #[test]
    fn empty_matches_end() {
        assert_eq!(found(&[Some("\u{e9}ab"), Some("")], "(a*)"), Ok((texts(&["", "a", "", "", ""]), vec![4, 1], 1)));
    }

    #[test]
    fn bad_patterns_and_long_texts_are_refused() {
        for regex in ["(", "(?=a)", "(((a{100}){100}){100})"] {
            assert_eq!(found(&[], regex).err(), Some(FaultKind::Invalid), "{regex}");
        }
        let long = "a".repeat(limits::MATCHED_BYTES + 1);
        assert_eq!(found(&[Some(&long)], "b").err(), Some(FaultKind::Invalid));
    }
}
