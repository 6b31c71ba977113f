//! Operators that join several strings into one.

use super::made::concatenate;
use crate::definition::{Expansion, Meaning, NodeHandle, NodeResult, OVERLOADED, OpDef, Typing, UNARY, ex, param};
use crate::id;
use crate::kernel::strict;
use crate::typing::{Argument, Signature, TypeFault, refuse};
use cembra_runtime::{Bytes, FaultKind, QType, Scalar, Text};
use cembra_value::Value;

/// The common type of the operands, TEXT or BYTES, and true if one of them is optional.
fn strings(operator: &str, args: &[Argument<'_>]) -> Result<(Scalar, bool), TypeFault> {
    let mut common = None;
    for (index, arg) in args.iter().enumerate() {
        let found = arg.qtype;
        match (found.scalar(), common) {
            _ if *found == QType::Nothing => {}
            (Some(scalar), None) if scalar.is_string() => common = Some(scalar),
            (Some(scalar), Some(common)) if scalar == common => {}
            (Some(scalar), Some(common)) if scalar.is_string() => {
                let fault = TypeFault::mismatch(format!("{operator} cannot join {common} and {found}"), Some(index));
                return Err(
                    fault.hint("convert the text or the bytes with `strings.encode(..)` or `strings.decode(..)`")
                );
            }
            _ => {
                let fault = TypeFault::mismatch(format!("{operator} expects strings, found {found}"), Some(index));
                return Err(fault.hint("convert the value to a text with `strings.as_text(..)`"));
            }
        }
    }
    match common {
        Some(scalar) => Ok((scalar, args.iter().any(|arg| arg.qtype.is_optional()))),
        None => refuse(0, format!("{operator} cannot tell the type of `missing`")),
    }
}

/// The signature of an operator that joins any number of strings.
pub(super) fn join_types(operator: &str, args: &[Argument<'_>]) -> Result<Signature, TypeFault> {
    let (scalar, optional) = strings(operator, args)?;
    let ret = QType::of(scalar, optional);
    Ok(Signature { operands: args.iter().map(|_| ret.clone()).collect(), ret })
}

/// The most strings that one operator call joins.
const WIDEST: usize = 6;

/// Adds graph nodes that join `strings`, which must not be empty. Six strings are joined at a time, then the results,
/// so that no string is copied often.
pub(super) fn join(graph: &mut dyn Expansion, strings: &[NodeHandle]) -> NodeResult {
    // An untyped missing string takes the type of the other strings.
    let scalar = strings.iter().find_map(|arg| graph.qtype(*arg).scalar());
    let typed = |graph: &mut dyn Expansion, arg: NodeHandle| match (graph.qtype(arg), scalar) {
        (QType::Nothing, Some(scalar)) => graph.literal(Value::Missing(scalar)),
        _ => arg,
    };
    let mut level: Vec<NodeHandle> = strings.iter().map(|arg| typed(graph, *arg)).collect();
    while level.len() > 1 {
        let joined = level.chunks(WIDEST).map(|some| match some {
            [one] => Ok(*one),
            several => graph.apply(id::STRINGS_JOIN_FEW, several),
        });
        level = joined.collect::<Result<_, _>>()?;
    }
    Ok(level[0])
}

macro_rules! join_few {
    ($(($($arg:ident),*)),*; $text:ty, $bytes:ty) => {
        Meaning::Overloads(&[$(
            strict!(try in context |$($arg: $text),*| -> $text { concatenate(context, &[$($arg),*]) }),
            strict!(try in context |$($arg: $bytes),*| -> $bytes { concatenate(context, &[$($arg),*]) }),
        )*])
    };
}

pub(crate) static JOIN_FEW: OpDef = OpDef {
    name: "strings._join",
    summary: "Two to six strings one after the other. `strings.join` is composed of this operator.",
    params: &[param("first"), param("rest")],
    variadic: true,
    faults: &[FaultKind::ArenaLimit],
    meaning: join_few!(
        (a, b), (a, b, c), (a, b, c, d), (a, b, c, d, e), (a, b, c, d, e, f);
        Text<'static>, Bytes<'static>
    ),
    examples: &[ex("strings._join(\"a\", \"b\", \"c\")", "'abc'")],
    ..OVERLOADED
};

pub(crate) static JOIN: OpDef = OpDef {
    name: "strings.join",
    summary: "The strings one after the other; either all are texts, or all are bytes.",
    params: &[param("first"), param("rest")],
    variadic: true,
    faults: &[FaultKind::ArenaLimit],
    typing: Typing::Rule(|args| join_types(JOIN.name, args)),
    meaning: Meaning::Expand(join),
    examples: &[
        ex("strings.join(\"a\", \"b\", \"c\")", "'abc'"),
        ex("strings.join(b\"a\", missing[bytes])", "bytes?{NA}"),
    ],
    ..UNARY
};

pub(crate) static JOIN_WITH_SEPARATOR: OpDef = OpDef {
    name: "strings.join_with_separator",
    summary: "The strings one after the other with `sep` between them.",
    params: &[param("sep"), param("first"), param("rest")],
    variadic: true,
    faults: &[FaultKind::ArenaLimit],
    typing: Typing::Rule(|args| join_types(JOIN_WITH_SEPARATOR.name, args)),
    meaning: Meaning::Expand(|graph, args| {
        let between = args[0];
        let mut strings = vec![args[1]];
        strings.extend(args[2..].iter().flat_map(|arg| [between, *arg]));
        join(graph, &strings)
    }),
    examples: &[ex("strings.join_with_separator(\", \", \"a\", \"b\", \"c\")", "'a, b, c'")],
    ..UNARY
};

#[cfg(test)]
mod tests {
    use super::super::eager::{STRINGS, bytes, call, missing_text, some_text, text};
    use cembra_runtime::Scalar;
    use cembra_value::Value;

    #[test]
    fn any_number_of_strings_is_joined_in_order() {
        for count in [1, 2, 3, 5, 6, 7, 8, 12, 13, 36, 37, 600] {
            let strings: Vec<&str> = STRINGS.iter().copied().cycle().take(count).collect();
            let texts: Vec<Value> = strings.iter().map(|s| text(s)).collect();
            assert_eq!(call("strings.join", &texts), Ok(text(&strings.concat())), "{count}");
            let all: Vec<Value> = strings.iter().map(|s| bytes(s.as_bytes())).collect();
            assert_eq!(call("strings.join", &all), Ok(bytes(strings.concat().as_bytes())), "{count}");
            let separated: Vec<Value> = [text("\u{e9}, ")].into_iter().chain(texts).collect();
            assert_eq!(call("strings.join_with_separator", &separated), Ok(text(&strings.join("\u{e9}, "))), "{count}");
        }
    }

    #[test]
    fn strings_of_two_types_are_not_joined() {
        assert_eq!(call("strings.join", &[text("a"), some_text("b")]), Ok(some_text("ab")));
        assert_eq!(call("strings.join", &[text("a"), missing_text(), text("b")]), Ok(missing_text()));
        assert_eq!(call("strings.join", &[text("a"), Value::Nothing]), Ok(missing_text()));
        let untyped: Vec<Value> = std::iter::repeat_n(Value::Nothing, 20).chain([text("a")]).collect();
        assert_eq!(call("strings.join", &untyped), Ok(missing_text()));
        let missing = Value::Missing(Scalar::Bytes);
        assert_eq!(call("strings.join_with_separator", &[missing.clone(), bytes(b"a"), bytes(b"b")]), Ok(missing));
        assert!(call("strings.join", &[text("a"), bytes(b"a")]).is_err());
        assert!(call("strings.join", &[text("a"), Value::from(1)]).is_err());
        assert!(call("strings.join", &[Value::Nothing, Value::Nothing]).is_err());
    }
}
