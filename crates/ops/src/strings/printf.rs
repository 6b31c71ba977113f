//! `strings.printf`: a format and its arguments. It is composite: each field of the format is rendered by a step of its
//! own, typed by its argument, and the texts are joined.

use super::Chars;
use super::convert::utf8;
use super::join::join;
use super::rendering::{Piece, Rendered, first_piece, unescaped};
use crate::definition::{Arg, Expansion, Meaning, OpDef, Typing, UNARY, ex, param};
use crate::kernel::strict;
use crate::typing::{Argument, Signature, TypeFault};
use cembra_expr::{ScalarValue, Value};
use cembra_runtime::{Bytes, Context, Fault, FaultKind, QType, Scalar, Text};

/// The type of a format and of what is made by it.
trait Format: Chars {
    fn made(bytes: Bytes<'static>) -> Result<Self, Fault>;
}

impl Format for Text<'static> {
    fn made(bytes: Bytes<'static>) -> Result<Self, Fault> {
        // A precision may have cut a character, and bytes may be no text.
        utf8(bytes)
    }
}

impl Format for Bytes<'static> {
    fn made(bytes: Bytes<'static>) -> Result<Self, Fault> {
        Ok(bytes)
    }
}

/// A type of arguments.
trait Argued {
    fn rendered(&self) -> Rendered<'_>;
}

macro_rules! argued {
    ($($ty:ty => |$x:ident| $rendered:expr;)*) => { $(
        impl Argued for $ty {
            fn rendered(&self) -> Rendered<'_> {
                let $x = *self;
                $rendered
            }
        }
    )* };
}

argued! {
    bool => |x| Rendered::Boolean(x);
    i32 => |x| Rendered::Integer(x.into(), x.cast_unsigned().into());
    i64 => |x| Rendered::Integer(x, x.cast_unsigned());
    f64 => |x| Rendered::Float(x);
    Text<'static> => |x| Rendered::String(x.bytes());
    Bytes<'static> => |x| Rendered::String(x.bytes());
}

/// Finds the field with this number. `None` if there are fewer.
fn nth_piece(format: &'static [u8], index: i64) -> Result<Option<Piece<'static>>, Fault> {
    let mut piece = first_piece(format)?;
    for _ in 0..index {
        if piece.field.is_none() {
            return Ok(None);
        }
        piece = first_piece(piece.rest)?;
    }
    Ok(Some(piece))
}

fn field<S: Format>(context: &mut Context, format: S, index: i64, value: &impl Argued) -> Result<S, Fault> {
    match nth_piece(format.bytes(), index)? {
        Some(Piece { literal, field: Some(field), .. }) => S::made(field.render(context, literal, value.rendered())?),
        // Arguments that the format does not use are left out, as in Arolla. What is behind the last field is the end.
        _ => Ok(format.part(0..0)),
    }
}

fn end<S: Format>(context: &mut Context, format: S, count: i64) -> Result<S, Fault> {
    let mut piece = first_piece(format.bytes())?;
    let mut left = count;
    while piece.field.is_some() && left > 0 {
        piece = first_piece(piece.rest)?;
        left -= 1;
    }
    match piece.field {
        None => S::made(unescaped(context, piece.literal)?),
        Some(_) => Err(super::invalid("the format has more fields than there are arguments")),
    }
}

macro_rules! fields {
    ($($format:ty: $($ty:ty),*;)*) => {
        Meaning::Overloads(&[$($(
            strict!(try in context |format: $format, index: i64, value: $ty| -> $format {
                field(context, format, index, &value)
            }),
        )*)*])
    };
}

/// The faults of formatting.
pub(super) const FAULTS: &[FaultKind] = &[FaultKind::Invalid, FaultKind::ArenaLimit];

pub(crate) static PRINTF_FIELD: OpDef = OpDef {
    name: "strings._printf_field",
    summary: "The field `index` of a format, and the text before it, for one value: what `strings.printf` is made of.",
    params: &[param("fmt"), param("index"), param("value")],
    faults: FAULTS,
    typing: Typing::Overloads,
    meaning: fields! {
        Text<'static>: bool, i32, i64, f64, Text<'static>, Bytes<'static>;
        Bytes<'static>: bool, i32, i64, f64, Bytes<'static>;
    },
    examples: &[ex("strings._printf_field(\"a %d b %5.2f c\", 1, 2.5)", "' b  2.50'")],
    ..UNARY
};

pub(crate) static PRINTF_END: OpDef = OpDef {
    name: "strings._printf_end",
    summary: "The text behind the fields of a format, of which there may be `count`.",
    params: &[param("fmt"), param("count")],
    faults: FAULTS,
    typing: Typing::Overloads,
    meaning: Meaning::Overloads(&[
        strict!(try in context |format: Text<'static>, count: i64| -> Text<'static> { end(context, format, count) }),
        strict!(try in context |format: Bytes<'static>, count: i64| -> Bytes<'static> { end(context, format, count) }),
    ]),
    examples: &[ex("strings._printf_end(\"a %d b%%\", 1)", "' b%'")],
    ..UNARY
};

/// The scalar type of a format. What is made has it too.
pub(super) fn format_scalar(operator: &str, format: &QType) -> Result<Scalar, TypeFault> {
    let found = format.scalar().filter(|scalar| scalar.is_string());
    found.ok_or_else(|| TypeFault::mismatch(format!("{operator} expects a string for `fmt`, found {format}"), Some(0)))
}

/// The types of formatting `args[first..]` by the format `args[0]`.
pub(super) fn format_types(operator: &str, args: &[Argument<'_>], first: usize) -> Result<Signature, TypeFault> {
    let format = format_scalar(operator, args[0].qtype)?;
    for (index, arg) in args.iter().enumerate().skip(first) {
        let accepted = arg.qtype.scalar().is_some_and(|scalar| match scalar {
            Scalar::Text => format == Scalar::Text,
            scalar => scalar.is_numeric() || matches!(scalar, Scalar::Boolean | Scalar::Bytes),
        });
        if !accepted {
            let message = format!("{operator} expects numbers, booleans and strings for {format}, found {}", arg.qtype);
            return Err(
                TypeFault::mismatch(message, Some(index)).hint("turn it into a text with `strings.as_text(..)`")
            );
        }
    }
    let optional = args.iter().any(|arg| arg.qtype.is_optional());
    Ok(Signature { operands: args.iter().map(|arg| arg.qtype.clone()).collect(), ret: QType::of(format, optional) })
}

/// A string literal of the type of a format.
pub(super) fn literal(graph: &mut dyn Expansion, scalar: Scalar, bytes: &[u8]) -> Arg {
    let value = match (scalar, str::from_utf8(bytes)) {
        (Scalar::Text, Ok(text)) => ScalarValue::Text(text.into()),
        _ => ScalarValue::Bytes(bytes.into()),
    };
    graph.literal(Value::Scalar(value))
}

/// The literal behind a format, if it is one.
pub(super) fn literal_bytes(graph: &dyn Expansion, format: Arg) -> Option<Vec<u8>> {
    match graph.value(format)?.as_scalar()? {
        ScalarValue::Text(text) => Some(text.as_bytes().to_vec()),
        ScalarValue::Bytes(bytes) => Some(bytes.to_vec()),
        _ => None,
    }
}

/// The mask that is present where all of these are; `None` if none of them is optional.
pub(super) fn all_present(graph: &mut dyn Expansion, args: &[Arg]) -> Result<Option<Arg>, TypeFault> {
    let mut mask = None;
    for arg in args {
        if graph.qtype(*arg).is_optional() {
            let has = graph.apply("core.has", &[*arg])?;
            mask = Some(match mask {
                None => has,
                Some(mask) => graph.apply("core.presence_and", &[mask, has])?,
            });
        }
    }
    Ok(mask)
}

/// Values that are missing wherever one of them is: no field is rendered, and none can fail, for a missing result.
pub(super) fn all_or_none(graph: &mut dyn Expansion, values: &[Arg], mask: Option<Arg>) -> Result<Vec<Arg>, TypeFault> {
    match mask {
        None => Ok(values.to_vec()),
        Some(mask) => values.iter().map(|value| graph.apply("core.presence_and", &[*value, mask])).collect(),
    }
}

/// The most arguments of a format that is not a literal: each looks for its field from the start.
const MOST_FIELDS: usize = 100;

/// The pieces of a literal format; `None` if it is malformed, which is left to the evaluation to say.
fn pieces(format: &[u8]) -> Option<Vec<&[u8]>> {
    let mut pieces = Vec::new();
    let mut rest = format;
    loop {
        let piece = first_piece(rest).ok()?;
        pieces.push(&rest[..rest.len() - piece.rest.len()]);
        if piece.field.is_none() {
            return Some(pieces);
        }
        rest = piece.rest;
    }
}

fn expand(graph: &mut dyn Expansion, args: &[Arg]) -> Result<Arg, TypeFault> {
    let scalar = format_scalar("strings.printf", &graph.qtype(args[0]))?;
    let mask = all_present(graph, args)?;
    let values = all_or_none(graph, &args[1..], mask)?;
    let known = literal_bytes(graph, args[0]);
    let mut texts = Vec::new();
    match known.as_deref().and_then(pieces).filter(|pieces| pieces.len() <= values.len() + 1) {
        // Each field of a literal format is a format of its own.
        Some(pieces) => {
            let zero = graph.literal(Value::from(0_i64));
            let [fields @ .., last] = pieces.as_slice() else { return Ok(args[0]) };
            for (field, value) in fields.iter().zip(&values) {
                let field = literal(graph, scalar, field);
                texts.push(graph.apply(PRINTF_FIELD.name, &[field, zero, *value])?);
            }
            let last = literal(graph, scalar, last);
            texts.push(graph.apply(PRINTF_END.name, &[last, zero])?);
        }
        None if values.len() > MOST_FIELDS => {
            let message =
                format!("strings.printf takes up to {MOST_FIELDS} arguments for a format that is not a literal");
            return Err(TypeFault::mismatch(message, Some(0)));
        }
        None => {
            for (index, value) in values.iter().enumerate() {
                let index = graph.literal(Value::from(index as i64));
                texts.push(graph.apply(PRINTF_FIELD.name, &[args[0], index, *value])?);
            }
            let count = graph.literal(Value::from(values.len() as i64));
            texts.push(graph.apply(PRINTF_END.name, &[args[0], count])?);
        }
    }
    finish(graph, &texts, mask)
}

/// The texts joined, the last of which is always there.
pub(super) fn finish(graph: &mut dyn Expansion, texts: &[Arg], mask: Option<Arg>) -> Result<Arg, TypeFault> {
    let joined = join(graph, texts)?;
    match mask {
        // With a field, its text is missing where the mask is.
        Some(mask) if texts.len() == 1 => graph.apply("core.presence_and", &[joined, mask]),
        _ => Ok(joined),
    }
}

pub(crate) static PRINTF: OpDef = OpDef {
    name: "strings.printf",
    aliases: &["printf"],
    summary: "The format with its fields filled in by the arguments, in C's language of formats: `%d`, `%x`, `%c` for integers, `%f`, `%e`, `%g` for numbers, `%s` for strings, `%v` for any value, with flags, width and precision; `%%` is a percent sign. An error if a field is for another kind of value.",
    params: &[param("fmt"), param("values")],
    variadic: true,
    faults: FAULTS,
    typing: Typing::Rule(|args| format_types("strings.printf", args, 1)),
    meaning: Meaning::Expand(expand),
    examples: &[
        ex("strings.printf(\"%.3f|%5d|%-5s|%e\", 2.5, 42, \"ab\", 1e10)", "'2.500|   42|ab   |1.000000e+10'"),
        ex("strings.printf(\"%d of %d%%\", missing[i32], 7)", "optional_text{NA}"),
    ],
    ..UNARY
};

#[cfg(test)]
mod tests {
    use super::super::eager::{bytes, call, fault, missing_text, some_text, text};
    use cembra_expr::{ScalarValue, Value};
    use cembra_runtime::{FaultKind, Scalar};

    #[test]
    fn fields_are_filled_in_order() {
        let all = [
            text("%s %d %x %.2f %v %g%% end"),
            text("h\u{e9}"),
            Value::from(-1),
            Value::from(-1_i64),
            Value::from(0.1_f32),
            Value::from(true),
            Value::Scalar(ScalarValue::WeakFloat(0.5)),
        ];
        assert_eq!(call("strings.printf", &all), Ok(text("h\u{e9} -1 ffffffffffffffff 0.10 true 0.5% end")));
        assert_eq!(call("strings.printf", &[text("100%%")]), Ok(text("100%")));
        assert_eq!(call("strings.printf", &[text("")]), Ok(text("")));
        assert_eq!(call("strings.printf", &[bytes(b"%s\xff"), bytes(b"\xfe")]), Ok(bytes(b"\xfe\xff")));
        assert_eq!(call("strings.printf", &[text("%s"), bytes(b"a")]), Ok(text("a")));
        // A FLOAT32 is rendered with the digits it really has.
        assert_eq!(call("strings.printf", &[text("%.10f"), Value::from(0.1_f32)]), Ok(text("0.1000000015")));
        // Arguments without a field.
        assert_eq!(call("strings.printf", &[text("%d"), Value::from(1), Value::from(2)]), Ok(text("1")));
    }

    #[test]
    fn what_does_not_fit_the_format_is_a_fault() {
        let of = |format, value| call("strings.printf", &[text(format), value]);
        assert_eq!(of("%d %d", Value::from(1)), fault(FaultKind::Invalid));
        assert_eq!(of("%d", Value::from(1.0)), fault(FaultKind::Invalid));
        assert_eq!(of("%q", Value::from(1)), fault(FaultKind::Invalid));
        assert_eq!(of("%d %", Value::from(1)), fault(FaultKind::Invalid));
        assert_eq!(of("%s", Value::from(true)), fault(FaultKind::Invalid));
        assert_eq!(of("%s", bytes(b"\xff")), fault(FaultKind::Invalid));
        assert_eq!(of("%.1s", text("\u{e9}")), fault(FaultKind::Invalid));
        assert_eq!(of("%c", Value::from(200)), fault(FaultKind::Invalid));
        for value in [Value::from(1_u64), Value::Scalar(ScalarValue::Unit), Value::Nothing] {
            assert!(matches!(of("%v", value), Err(super::super::eager::Failure::Types(_))));
        }
        assert!(call("strings.printf", &[bytes(b"%s"), text("a")]).is_err());
        assert!(call("strings.printf", &[Value::from(1)]).is_err());
    }

    #[test]
    fn a_missing_argument_makes_the_result_missing_and_keeps_others_from_failing() {
        let missing = Value::from(None::<i32>);
        let of = |args: &[Value]| call("strings.printf", args);
        assert_eq!(of(&[text("%d"), Value::from(Some(1))]), Ok(some_text("1")));
        assert_eq!(of(&[text("%d"), missing.clone()]), Ok(missing_text()));
        assert_eq!(of(&[text("%d %d"), missing.clone(), Value::from(1.0)]), Ok(missing_text()));
        assert_eq!(of(&[text("plain"), missing.clone()]), Ok(missing_text()));
        assert_eq!(of(&[missing_text(), Value::from(1)]), Ok(missing_text()));
        assert_eq!(of(&[some_text("%d!"), Value::from(1)]), Ok(some_text("1!")));
        assert_eq!(of(&[Value::Missing(Scalar::Bytes), missing]), Ok(Value::Missing(Scalar::Bytes)));
    }
}
