//! Defines `strings.format`: prints values by a format with named fields in braces, as in `"{name}: {price:.2f}"`. Like
//! `strings.printf`, it is composed of other operators, and the part of a field after the colon is in the language of
//! `printf`. Errors in a literal format are reported during preparation.

use super::fields::Fields;
use super::made::ArenaBytes;
use super::packed::{FormatArgument, FormatArguments, packed};
use super::printf::{FAULTS, Format, KindCheck, Print, Printf, Sink, format_scalar, format_types, printed, sample};
use super::rendering::Unit;
use super::{Chars, Reason, literal_string, number, refused_literal};
use crate::definition::{
    Expansion, Meaning, NodeHandle, NodeResult, OVERLOADED, OpDef, Typing, UNARY, ex, param, param_or,
};
use crate::id;
use crate::kernel::strict;
use crate::typing::{Argument, Signature, TypeFault, refuse};
use cembra_expr::ArgumentForm;
use cembra_runtime::{Bytes, Context, Excerpt, Fault, QType, Scalar, Text};
use cembra_value::{ScalarValue, Value};

/// A part of a format: literal text, or a field in braces.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum FormatPart<'f> {
    /// Text of the format that is copied as it is; a doubled brace becomes a single one.
    Literal(&'f [u8]),
    /// A field: the name of an argument, and the `printf` specification of how its value is printed.
    Field { name: &'f [u8], spec: &'f [u8] },
}

/// A mistake in the syntax of a format.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum FormatError<'f> {
    /// The format has a `}` without a `{` before it.
    Closes,
    /// The format has a `{` that is not closed.
    Opens,
    /// The format has a field without the name of an argument.
    Name(&'f [u8]),
}

/// The rest of a format that is still to be parsed. `{{` and `}}` stand for braces, `{name}` and `{name:spec}` are
/// fields.
#[derive(Clone, Copy)]
struct Parts<'f>(&'f [u8]);

impl<'f> Parts<'f> {
    fn next(&mut self) -> Result<Option<FormatPart<'f>>, FormatError<'f>> {
        let (part, rest) = match self.0 {
            [] => return Ok(None),
            [b'{', b'{', rest @ ..] => (FormatPart::Literal(b"{"), rest),
            [b'}', b'}', rest @ ..] => (FormatPart::Literal(b"}"), rest),
            [b'}', ..] => return Err(FormatError::Closes),
            [b'{', rest @ ..] => {
                let end = memchr::memchr(b'}', rest).ok_or(FormatError::Opens)?;
                let (field, rest) = (&rest[..end], &rest[end + 1..]);
                let colon = memchr::memchr(b':', field);
                let (name, spec) = (&field[..colon.unwrap_or(end)], &field[colon.map_or(end, |colon| colon + 1)..]);
                if !is_name(name) {
                    return Err(FormatError::Name(name));
                }
                (FormatPart::Field { name, spec }, rest)
            }
            text => {
                let (literal, rest) = text.split_at(memchr::memchr2(b'{', b'}', text).unwrap_or(text.len()));
                (FormatPart::Literal(literal), rest)
            }
        };
        self.0 = rest;
        Ok(Some(part))
    }
}

fn is_name(name: &[u8]) -> bool {
    name.first().is_some_and(|byte| !byte.is_ascii_digit())
        && name.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
}

/// The argument names in a text, which are separated by commas, sorted for lookups.
#[derive(Clone, Copy)]
struct Names<'n> {
    text: &'n [u8],
    /// The start, the end and the index of each name, eight bytes each, sorted by name.
    entries: &'n [[u8; 24]],
}

impl Names<'static> {
    fn new(context: &mut Context, text: &'static [u8]) -> Result<Self, Fault> {
        let all = || text.split(|byte| *byte == b',').take(if text.is_empty() { 0 } else { usize::MAX });
        let mut entries = ArenaBytes::new(context, all().count() * 24)?;
        let mut start = 0_u64;
        for (index, name) in (0_u64..).zip(all()) {
            let end = start + name.len() as u64;
            [start, end, index].iter().for_each(|number| entries.push_bytes(&number.to_le_bytes()));
            start = end + 1;
        }
        entries.written().as_chunks_mut().0.sort_unstable_by_key(|entry| entry_of(text, entry).0);
        let names = Names { text, entries: entries.finish().as_slice().as_chunks().0 };
        let name = |entry| entry_of(text, entry).0;
        match names.entries.array_windows().any(|[a, b]| name(a) == name(b)) {
            true => Err(super::invalid("an argument of the format is given twice")),
            false => Ok(names),
        }
    }

    fn index(self, name: &[u8]) -> Option<usize> {
        let found = self.entries.binary_search_by_key(&name, |entry| entry_of(self.text, entry).0).ok()?;
        Some(entry_of(self.text, &self.entries[found]).1)
    }
}

/// The name and the index of an entry of [`Names`].
fn entry_of<'n>(text: &'n [u8], entry: &[u8; 24]) -> (&'n [u8], usize) {
    let [start, end, index] = [0, 8, 16].map(|at| {
        let number = entry[at..].first_chunk().copied().map_or(0, u64::from_le_bytes);
        usize::try_from(number).unwrap_or(usize::MAX)
    });
    (text.get(start..end).unwrap_or_default(), index)
}

/// A format of `strings.format`, the names of its arguments, and their values.
struct NamedFormat {
    format: &'static [u8],
    unit: Unit,
    names: Names<'static>,
    run: FormatArguments<'static>,
}

impl Print for NamedFormat {
    fn print(&self, sink: &mut impl Sink) -> Result<(), Reason> {
        let mut parts = Parts(self.format);
        let malformed = |malformed| {
            Reason(match malformed {
                FormatError::Closes => "a `}` of the format has no `{` before it",
                FormatError::Opens => "a `{` of the format is not closed",
                FormatError::Name(_) => "a field of the format does not begin with the name of an argument",
            })
        };
        while let Some(part) = parts.next().map_err(malformed)? {
            match part {
                FormatPart::Literal(text) => sink.text(text),
                FormatPart::Field { name, spec } => {
                    let value = self.names.index(name).and_then(|index| self.run.get(index));
                    let value = value.ok_or(Reason("the format names an argument that is not given"))?;
                    print_field(sink, self.unit, spec, value)?;
                }
            }
        }
        Ok(())
    }
}

/// Prints one value by the specification `spec`. An empty `spec` or `v` prints the value as `%v` does, except that a
/// FLOAT32 has its shortest digits and a point. Other specifications are for numbers; one without a letter at the end
/// gets the letter for the value's type.
fn print_field(sink: &mut impl Sink, unit: Unit, spec: &[u8], value: FormatArgument<'static>) -> Result<(), Reason> {
    let (spec, last): (&[u8], &[u8]) = match (spec, value) {
        (b"" | b"v", FormatArgument::Float32(value)) => {
            let digits = number::shortest(value);
            sink.text(digits.as_bytes());
            if !digits.as_str().contains(['.', 'e', 'n']) {
                sink.text(b".");
            }
            return Ok(());
        }
        (b"" | b"v", _) => (b"v", b""),
        (_, FormatArgument::Boolean(_) | FormatArgument::String(_)) => {
            return Err(Reason("a field of the format is for a number, but its argument is not a number"));
        }
        ([.., b'a'..=b'z' | b'A'..=b'Z'], _) => (spec, b""),
        (_, FormatArgument::Float32(_) | FormatArgument::Float64(_)) => (spec, b"f"),
        _ => (spec, b"d"),
    };
    let values = |index| (index == 0).then_some(value);
    Printf { fields: Fields::of_field(spec, last), unit, values }.print(sink)
}

fn format<S: Format>(context: &mut Context, format: S, names: Text<'static>, run: Bytes<'static>) -> Result<S, Fault> {
    let run = FormatArguments::new(context, run)?;
    let names = Names::new(context, names.bytes())?;
    if names.entries.len() != run.len() {
        return Err(super::invalid("the format must have as many names as arguments"));
    }
    printed(context, &NamedFormat { format: format.bytes(), unit: S::UNIT, names, run })
}

pub(crate) static FORMAT_PACKED: OpDef = OpDef {
    name: "strings._format",
    summary: "The format with its fields filled in by a few of the arguments. `strings.format` is composed of this operator.",
    params: &[param("fmt").of(ArgumentForm::Format), param("names"), param("run")],
    faults: FAULTS,
    meaning: Meaning::Overloads(&[
        strict!(try in context |fmt: Text<'static>, names: Text<'static>, run: Bytes<'static>| -> Text<'static> {
            format(context, fmt, names, run)
        }),
        strict!(try in context |fmt: Bytes<'static>, names: Text<'static>, run: Bytes<'static>| -> Bytes<'static> {
            format(context, fmt, names, run)
        }),
    ]),
    examples: &[ex("strings._format(\"{x}!\", \"x\", strings._pack(1f32))", "'1.!'")],
    ..OVERLOADED
};

fn problem(message: impl Into<String>) -> TypeFault {
    refused_literal(0, message)
}

fn malformed(malformed: FormatError<'_>) -> TypeFault {
    match malformed {
        FormatError::Closes => problem("a `}` of the format has no `{` before it").hint("write `}}` for a brace"),
        FormatError::Opens => problem("a `{` of the format is not closed").hint("write `{{` for a brace"),
        FormatError::Name(name) => {
            let name = String::from_utf8_lossy(name);
            let problem = problem(format!("`{}` is not the name of an argument", Excerpt::quoted(&name)));
            problem.hint("write the name of an argument, as in `{x}` or `{x:.2f}`")
        }
    }
}

/// The names in a literal text, sorted. Fails if there are not `count` names, or if two are equal.
fn checked_names(names: &str, count: usize) -> Result<Vec<&[u8]>, TypeFault> {
    let mut names: Vec<&str> = names.split(',').filter(|_| !names.is_empty()).collect();
    if names.len() != count {
        return Err(problem(format!("strings.format has {} names for {count} arguments", names.len())));
    }
    names.sort_unstable();
    match names.array_windows().find(|[a, b]| a == b) {
        Some([twice, _]) => Err(problem(format!("the argument `{}` is given twice", Excerpt::quoted(twice)))),
        None => Ok(names.into_iter().map(str::as_bytes).collect()),
    }
}

/// Checks the fields of a literal format with literal names against the types of the arguments. `check` reports
/// problems with braces and names.
fn check_fields(args: &[Argument<'_>]) -> Result<(), TypeFault> {
    let (Some(format), Some(names)) = (literal_string(args, 0), literal_string(args, 1)) else { return Ok(()) };
    let mut arguments: Vec<(&[u8], &Argument<'_>)> = names.split(|byte| *byte == b',').zip(&args[2..]).collect();
    arguments.sort_unstable_by_key(|(name, _)| *name);
    let mut parts = Parts(format);
    while let Ok(Some(part)) = parts.next() {
        if let FormatPart::Field { name, spec } = part
            && let Ok(found) = arguments.binary_search_by_key(&name, |(name, _)| *name)
        {
            let checked = print_field(&mut KindCheck, Unit::Byte, spec, sample(arguments[found].1));
            checked.map_err(|Reason(reason)| problem(reason))?;
        }
    }
    Ok(())
}

/// Checks the braces and the names of a literal format.
fn check(format: &[u8], names: Option<&[&[u8]]>) -> Result<(), TypeFault> {
    let mut parts = Parts(format);
    while let Some(part) = parts.next().map_err(malformed)? {
        if let (FormatPart::Field { name, .. }, Some(names)) = (part, names)
            && names.binary_search(&name).is_err()
        {
            let name = String::from_utf8_lossy(name);
            return Err(problem(format!("the format names `{}`, which is not an argument", Excerpt::quoted(&name))));
        }
    }
    Ok(())
}

fn types(args: &[Argument<'_>]) -> Result<Signature, TypeFault> {
    match args[1].qtype {
        QType::Nothing | QType::Scalar(Scalar::Text) => format_types(FORMAT.name, args, 2),
        other => refuse(1, format!("strings.format expects a text of names, found {other}")),
    }
}

fn expand(graph: &mut dyn Expansion, args: &[NodeHandle]) -> NodeResult {
    format_scalar(FORMAT.name, &graph.qtype(args[0]))?;
    let (names, known) = match graph.value(args[1]) {
        None if graph.qtype(args[1]) != QType::Nothing => (args[1], None),
        Some(Value::Scalar(ScalarValue::Text(names))) => (args[1], Some(names)),
        _ => (graph.literal(Value::text("")), Some("".into())),
    };
    let checked = known.as_ref().map(|names| checked_names(names, args.len() - 2)).transpose()?;
    match graph.value(args[0]).as_ref().and_then(Value::as_scalar) {
        Some(ScalarValue::Text(format)) => check(format.as_bytes(), checked.as_deref())?,
        Some(ScalarValue::Bytes(format)) => check(format, checked.as_deref())?,
        _ => {}
    }
    let run = packed(graph, &args[2..])?;
    graph.apply(id::STRINGS_FORMAT_PACKED, &[args[0], names, run])
}

pub(crate) static FORMAT: OpDef = OpDef {
    name: "strings.format",
    summary: "The format with its fields filled in by the arguments that they name: `{x}`, or `{x:.2f}` with flags, width, precision and kind as in `strings.printf`, for numbers only; `{{` and `}}` are braces. As `{x}` or `{x:v}`, an f32 is printed with its shortest digits and a point, an f64 with six digits. An error if a field is for another kind of value.",
    params: &[
        param("fmt").of(ArgumentForm::Format),
        param_or("arg_names", Value::Nothing).of(ArgumentForm::ArgumentNames),
        param("**values"),
    ],
    variadic: true,
    faults: FAULTS,
    typing: Typing::Rule(types),
    meaning: Meaning::Expand(expand),
    literals: Some(check_fields),
    examples: &[
        ex("strings.format(\"{x:.2f} {{{n:03d}}} {who}\", x=1.005, n=7, who=\"me\")", "'1.00 {007} me'"),
        ex("strings.format(\"{a} + {b}\", \"a,b\", 1, 2)", "'1 + 2'"),
        ex("strings.format(\"{t:.2f}\", t=missing[f64])", "text?{NA}"),
    ],
    ..UNARY
};

#[cfg(test)]
mod tests {
    use super::super::eager::{Failure, bytes, call, fault, missing_text, some_text, text};
    use super::*;
    use cembra_runtime::FaultKind;

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
            ("{a}", "a,b"),
            ("{a}", ""),
        ] {
            assert!(matches!(of(format, names, &one), Err(Failure::Types(_))), "{format:?} {names:?}");
        }
        assert!(matches!(of("{a}", "a,a", &[Value::from(1), Value::from(2)]), Err(Failure::Types(_))));
        assert!(matches!(of("{a}", "a", &[Value::from(1_u64)]), Err(Failure::Types(_))));
    }

    #[test]
    fn a_form_for_another_kind_of_value_is_a_fault_where_there_is_a_value() {
        for (spec, value) in [
            ("d", Value::from(1.5)),
            ("q", Value::from(1)),
            ("5v", Value::from(1)),
            ("5%", Value::from(1)),
            ("*d", Value::from(1)),
            ("f", text("x")),
            ("s", text("x")),
            ("5", text("x")),
            ("d", Value::from(true)),
            ("q", Value::from(Some(true))),
        ] {
            let format = format!("{{a:{spec}}}");
            let qtype = value.qtype().scalar().expect("a scalar");
            assert_eq!(of(&format, "a", &[value]), fault(FaultKind::Invalid), "{format}");
            assert_eq!(of(&format, "a", &[Value::Missing(qtype)]), Ok(missing_text()), "{format}");
        }
        // A form is a format of `printf` without its percent sign.
        assert_eq!(of("{a:5d5d}|{a:%d}|{a:d}|{a:1$+}", "a", &[Value::from(7)]), Ok(text("    75d|%d|7|+7")));
        assert_eq!(of("{a:a}|{a:.1}", "a", &[Value::from(0.5_f32)]), Ok(text("0x1p-1|0.5")));
        // Bytes from two fields may make one character.
        assert_eq!(of("{a:c}{b:c}", "a,b", &[Value::from(0xc3), Value::from(0xa9)]), Ok(text("\u{e9}")));
        assert_eq!(of("{a:c}", "a", &[Value::from(0xc3)]), fault(FaultKind::Invalid));
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
