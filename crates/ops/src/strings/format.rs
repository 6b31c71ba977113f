//! `strings.format`: a format with named fields in braces. It is composite, and its format is a literal: each field becomes
//! a step of its own, typed by its argument, as in `strings.printf`.

use super::made::Made;
use super::number;
use super::printf::{
    FAULTS, PRINTF_FIELD, all_or_none, all_present, finish, format_scalar, format_types, literal, literal_bytes,
};
use super::rendering::first_piece;
use crate::definition::{Arg, Expansion, Meaning, OpDef, Typing, UNARY, ex, param, param_or};
use crate::kernel::strict;
use crate::typing::TypeFault;
use cembra_expr::{Code, ScalarValue, Value};
use cembra_runtime::{Excerpt, FaultKind, Scalar, Text};

/// A part of a format.
#[derive(PartialEq, Eq, Debug)]
enum Part {
    /// Text with single braces.
    Literal(Vec<u8>),
    /// A field: a name, and how its value is rendered.
    Field { name: String, spec: String },
}

fn problem(message: impl Into<String>) -> TypeFault {
    TypeFault { code: Code::Arguments, message: message.into(), operand: Some(0), hint: None }
}

/// Splits a format: `{{` and `}}` are braces, `{name}` and `{name:spec}` are fields.
fn parts(format: &[u8]) -> Result<Vec<Part>, TypeFault> {
    let mut parts = Vec::new();
    let mut text = Vec::new();
    let mut rest = format;
    loop {
        match rest {
            [b'{', b'{', behind @ ..] => {
                text.push(b'{');
                rest = behind;
            }
            [b'}', b'}', behind @ ..] => {
                text.push(b'}');
                rest = behind;
            }
            [b'}', ..] => return Err(problem("a `}` of the format closes nothing").hint("a brace is written `}}`")),
            [b'{', behind @ ..] => {
                let Some(end) = memchr::memchr(b'}', behind) else {
                    return Err(problem("a `{` of the format is not closed").hint("a brace is written `{{`"));
                };
                let field = String::from_utf8_lossy(&behind[..end]);
                let (name, spec) = field.split_once(':').unwrap_or((&field, ""));
                if !is_name(name) {
                    let problem = problem(format!("`{}` is not the name of an argument", Excerpt::quoted(name)));
                    return Err(problem.hint("fields are named, as in `{x}` or `{x:.2f}`"));
                }
                parts.push(Part::Literal(std::mem::take(&mut text)));
                parts.push(Part::Field { name: name.to_owned(), spec: spec.to_owned() });
                rest = &behind[end + 1..];
            }
            [byte, behind @ ..] => {
                text.push(*byte);
                rest = behind;
            }
            [] => {
                parts.push(Part::Literal(text));
                return Ok(parts);
            }
        }
    }
}

fn is_name(name: &str) -> bool {
    !name.starts_with(|c: char| c.is_ascii_digit())
        && !name.is_empty()
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// The text of one value.
fn field(graph: &mut dyn Expansion, format: Scalar, spec: &str, value: Arg) -> Result<Arg, TypeFault> {
    let scalar = graph.qtype(value).scalar().unwrap_or(format);
    let printed = match (spec, scalar) {
        ("" | "v", _) if scalar == format => return Ok(value),
        ("" | "v", Scalar::Float32) => {
            let text = graph.apply(REPR_FLOAT32.name, &[value])?;
            return if format == Scalar::Bytes { graph.apply("strings.encode", &[text]) } else { Ok(text) };
        }
        ("" | "v", _) => "%v".to_owned(),
        _ if !scalar.is_numeric() => {
            return Err(problem(format!("the field `:{}` is for numbers, not for {scalar}", Excerpt::quoted(spec))));
        }
        _ if spec.ends_with(|c: char| c.is_ascii_alphabetic()) => format!("%{spec}"),
        _ => format!("%{spec}{}", if scalar.is_float() { "f" } else { "d" }),
    };
    let whole = first_piece(printed.as_bytes())
        .is_ok_and(|piece| piece.field.is_some() && piece.literal.is_empty() && piece.rest.is_empty());
    if !whole {
        let problem = problem(format!("`:{}` is not a form of fields", Excerpt::quoted(spec)));
        return Err(problem.hint("as in `{x:.2f}` or `{n:05d}`"));
    }
    let piece = literal(graph, format, printed.as_bytes());
    let zero = graph.literal(Value::from(0_i64));
    graph.apply(PRINTF_FIELD.name, &[piece, zero, value])
}

fn expand(graph: &mut dyn Expansion, args: &[Arg]) -> Result<Arg, TypeFault> {
    let scalar = format_scalar("strings.format", &graph.qtype(args[0]))?;
    let Some(format) = literal_bytes(graph, args[0]) else {
        return Err(problem("strings.format expects a literal format").hint("use `strings.printf` or `strings.join`"));
    };
    let names = match graph.value(args[1]) {
        Some(Value::Scalar(ScalarValue::Text(names))) => names,
        Some(Value::Nothing) => "".into(),
        _ => return Err(problem("strings.format expects the names of its arguments as a literal")),
    };
    let mut names: Vec<(&str, usize)> =
        names.split(',').filter(|_| !names.is_empty()).enumerate().map(|(at, name)| (name, at)).collect();
    if names.len() != args.len() - 2 {
        let (named, given) = (names.len(), args.len() - 2);
        return Err(problem(format!("strings.format has {named} names for {given} arguments")));
    }
    names.sort_unstable();
    if let Some([(twice, _), _]) = names.array_windows().find(|[(a, _), (b, _)]| a == b) {
        return Err(problem(format!("the argument `{twice}` is given twice")));
    }
    let mask = all_present(graph, &[&args[..1], &args[2..]].concat())?;
    let values = all_or_none(graph, &args[2..], mask)?;
    let mut texts = Vec::new();
    for part in parts(&format)? {
        match part {
            Part::Literal(text) if text.is_empty() => {}
            Part::Literal(text) => texts.push(literal(graph, scalar, &text)),
            Part::Field { name, spec } => {
                let Ok(found) = names.binary_search_by_key(&name.as_str(), |(known, _)| known) else {
                    return Err(problem(format!("the format names `{name}`, which is not an argument")));
                };
                texts.push(field(graph, scalar, &spec, values[names[found].1])?);
            }
        }
    }
    if texts.is_empty() {
        texts.push(literal(graph, scalar, b""));
    }
    finish(graph, &texts, mask)
}

pub(crate) static FORMAT: OpDef = OpDef {
    name: "strings.format",
    summary: "The format with its fields filled in by the arguments they name: `{x}`, or `{x:.2f}` with flags, width, precision and kind as in `strings.printf`; `{{` and `}}` are braces. The format is a literal. Without a form, FLOAT32 has its shortest digits and a point, FLOAT64 six digits.",
    params: &[param("fmt"), param_or("arg_names", Value::Nothing), param("**values")],
    variadic: true,
    faults: FAULTS,
    typing: Typing::Rule(|args| format_types("strings.format", args, 2)),
    meaning: Meaning::Expand(expand),
    examples: &[
        ex("strings.format(\"{x:.2f} {{{n:03d}}} {who}\", x=1.005, n=7, who=\"me\")", "'1.00 {007} me'"),
        ex("strings.format(\"{a} + {b}\", \"a,b\", 1, 2)", "'1 + 2'"),
    ],
    ..UNARY
};

pub(crate) static REPR_FLOAT32: OpDef = OpDef {
    name: "strings._repr_float32",
    summary: "A FLOAT32 as listings print it: its shortest digits, with a point after a whole number.",
    faults: &[FaultKind::ArenaLimit],
    typing: Typing::Overloads,
    meaning: Meaning::Overloads(&[strict!(try in context |x: f32| -> Text<'static> {
        let digits = number::shortest(x);
        let digits = digits.as_str();
        let point = if digits.contains(['.', 'e', 'n']) { "" } else { "." };
        let mut made = Made::<Text<'static>>::new(context, digits.len() + point.len())?;
        made.push_str(digits);
        made.push_str(point);
        Ok(made.finish())
    })]),
    examples: &[ex("strings._repr_float32(1f32)", "'1.'")],
    ..UNARY
};

#[cfg(test)]
mod tests {
    use super::super::eager::{Failure, bytes, call, fault, missing_text, some_text, text};
    use super::*;

    fn of(format: &str, names: &str, values: &[Value]) -> Result<Value, Failure> {
        call("strings.format", &[&[text(format), text(names)], values].concat())
    }

    #[test]
    fn fields_are_found_by_name() {
        let values = [Value::from(7), Value::from(0.125), text("h\u{e9}"), Value::from(true)];
        assert_eq!(of("{b:.2f}{a}{{{a:03d}}}{c}{d}", "a,b,c,d", &values), Ok(text("0.127{007}h\u{e9}true")));
        assert_eq!(of("", "a,b,c,d", &values), Ok(text("")));
        assert_eq!(of("}}{{", "", &[]), Ok(text("}{")));
        assert_eq!(of("%d{a:5}|{b:8.3}|{a:x}|{b:e}", "a,b,c,d", &values), Ok(text("%d    7|   0.125|7|1.250000e-01")));
        assert_eq!(of("{_x1:v}", "_x1", &[Value::from(-1_i64)]), Ok(text("-1")));
        let in_bytes =
            call("strings.format", &[bytes(b"\xff{a}{x}"), text("a,x"), bytes(b"\xfe"), Value::from(2.5_f32)]);
        assert_eq!(in_bytes, Ok(bytes(b"\xff\xfe2.5")));
    }

    #[test]
    fn floats_without_a_form_are_as_in_arolla() {
        for (value, expected) in [
            (Value::from(1.0_f32), "1."),
            (Value::from(-0.0_f32), "-0."),
            (Value::from(1.1_f32), "1.1"),
            (Value::from(1e30_f32), "1e30"),
            (Value::from(f32::NAN), "nan"),
            (Value::from(f32::NEG_INFINITY), "-inf"),
            (Value::from(1.0), "1"),
            (Value::from(1.234567891), "1.23457"),
            (Value::Scalar(ScalarValue::WeakFloat(1e10)), "1e+10"),
        ] {
            assert_eq!(of("{x}", "x", &[value]), Ok(text(expected)));
        }
    }

    #[test]
    fn wrong_formats_are_refused_before_they_are_used() {
        let one = [Value::from(1)];
        for (format, names) in [
            ("{a", "a"),
            ("a}", "a"),
            ("{b}", "a"),
            ("{}", "a"),
            ("{0}", "a"),
            ("{a b}", "a"),
            ("{a:q}", "a"),
            ("{a:%d}", "a"),
            ("{a:5d5d}", "a"),
            ("{a}", "a,b"),
            ("{a}", ""),
        ] {
            assert!(matches!(of(format, names, &one), Err(Failure::Types(_))), "{format:?} {names:?}");
        }
        assert!(matches!(of("{a}", "a,a", &[Value::from(1), Value::from(2)]), Err(Failure::Types(_))));
        assert!(matches!(of("{a:5}", "a", &[text("x")]), Err(Failure::Types(_))));
        assert!(matches!(of("{a}", "a", &[Value::from(1_u64)]), Err(Failure::Types(_))));
        assert_eq!(of("{a:d}", "a", &[Value::from(1.5)]), fault(FaultKind::Invalid));
    }

    #[test]
    fn a_missing_argument_makes_the_result_missing() {
        let missing = Value::from(None::<i32>);
        assert_eq!(of("{a}", "a", &[Value::from(Some(3))]), Ok(some_text("3")));
        assert_eq!(of("{a} {b:d}", "a,b", &[missing.clone(), Value::from(1.5)]), Ok(missing_text()));
        assert_eq!(of("none", "a", &[missing]), Ok(missing_text()));
        assert_eq!(of("{a}", "a", &[missing_text()]), Ok(missing_text()));
    }
}
