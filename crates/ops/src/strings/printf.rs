//! Defines `strings.printf`: prints arguments by a format. It is composed of two operators: one encodes the arguments
//! in one string of bytes, the other prints the format with them. Formats are parsed twice, first to compute the
//! greatest length of the result and then to write it.

use super::convert::utf8;
use super::fields::{Amount, Field, Fields, Piece, within_limit};
use super::made::ArenaBytes;
use super::packed::{FormatArgument, FormatArguments, packed};
use super::rendering::{PrintedValue, ResolvedField, Unit};
use super::{Chars, Reason, literal_string, refused_literal};
use crate::definition::{Expansion, Meaning, NodeHandle, NodeResult, OVERLOADED, OpDef, Typing, UNARY, ex, param};
use crate::id;
use crate::kernel::strict;
use crate::typing::{Argument, Signature, TypeFault};
use cembra_expr::ArgumentForm;
use cembra_runtime::{Bytes, Context, Fault, FaultKind, QType, Scalar, Text};

/// The types that a `printf` format may have, TEXT and BYTES. The result of formatting has the type of the format.
pub(super) trait Format: Chars {
    /// The unit of widths and precisions in a format of this type.
    const UNIT: Unit;

    fn made(bytes: Bytes<'static>) -> Result<Self, Fault>;
}

impl Format for Text<'static> {
    const UNIT: Unit = Unit::Character;

    fn made(bytes: Bytes<'static>) -> Result<Self, Fault> {
        // Bytes, and the byte of a `%c`, may not be UTF-8.
        utf8(bytes)
    }
}

impl Format for Bytes<'static> {
    const UNIT: Unit = Unit::Byte;

    fn made(bytes: Bytes<'static>) -> Result<Self, Fault> {
        Ok(bytes)
    }
}

/// A destination for the literal texts and the values of a format, in order.
pub(super) trait Sink {
    fn text(&mut self, text: &[u8]);
    fn value(&mut self, form: ResolvedField, value: PrintedValue<'_>) -> Result<(), Reason>;
}

/// A destination that only adds up the most bytes that the result can take.
struct LengthBound(usize);

impl Sink for LengthBound {
    fn text(&mut self, text: &[u8]) {
        self.0 = self.0.saturating_add(text.len());
    }

    fn value(&mut self, form: ResolvedField, value: PrintedValue<'_>) -> Result<(), Reason> {
        self.0 = self.0.saturating_add(form.most(value));
        Ok(())
    }
}

impl Sink for ArenaBytes<'_> {
    fn text(&mut self, text: &[u8]) {
        self.push_bytes(text);
    }

    fn value(&mut self, form: ResolvedField, value: PrintedValue<'_>) -> Result<(), Reason> {
        form.write(self, value)
    }
}

/// A destination that prints nothing. It checks that each value is of a kind that its field can print.
pub(super) struct KindCheck;

impl Sink for KindCheck {
    fn text(&mut self, _: &[u8]) {}

    fn value(&mut self, form: ResolvedField, value: PrintedValue<'_>) -> Result<(), Reason> {
        form.check(value)
    }
}

/// Returns an example value for the type of an argument (for an array, for the type of its elements). With example
/// values, a format is checked before the real values are known.
pub(super) fn sample(arg: &Argument<'_>) -> FormatArgument<'static> {
    match arg.qtype.of_each().scalar() {
        Some(Scalar::Boolean) => FormatArgument::Boolean(true),
        Some(Scalar::Int32) => FormatArgument::Int32(1),
        Some(Scalar::Int64) => FormatArgument::Int64(1),
        Some(Scalar::Float32) => FormatArgument::Float32(1.0),
        Some(Scalar::Float64 | Scalar::WeakFloat) => FormatArgument::Float64(1.0),
        _ => FormatArgument::String(b""),
    }
}

/// Checks a literal format against the types of the arguments.
fn check_fields(args: &[Argument<'_>]) -> Result<(), TypeFault> {
    let Some(format) = literal_string(args, 0) else { return Ok(()) };
    let values = |index: usize| args.get(1 + index).map(sample);
    let checked = Printf { fields: Fields::new(format), unit: Unit::Byte, values }.print(&mut KindCheck);
    checked.map_err(|Reason(reason)| refused_literal(0, reason))
}

/// A format with its values, which can be printed to any [`Sink`].
pub(super) trait Print {
    fn print(&self, sink: &mut impl Sink) -> Result<(), Reason>;
}

/// Prints a format into a new string in the arena.
pub(super) fn printed<S: Format>(context: &mut Context, print: &impl Print) -> Result<S, Fault> {
    let mut most = LengthBound(0);
    print.print(&mut most)?;
    let mut made = ArenaBytes::new(context, most.0)?;
    print.print(&mut made)?;
    S::made(made.finish())
}

/// A `printf` format; `values` returns the value of an argument by its index.
pub(super) struct Printf<'f, V> {
    pub(super) fields: Fields<'f>,
    pub(super) unit: Unit,
    pub(super) values: V,
}

impl<V: Fn(usize) -> Option<FormatArgument<'static>>> Print for Printf<'_, V> {
    fn print(&self, sink: &mut impl Sink) -> Result<(), Reason> {
        let mut fields = self.fields;
        while let Some(piece) = fields.next()? {
            match piece {
                Piece::Literal(text) => sink.text(text),
                Piece::Field(field) => {
                    let form = self.form(field)?;
                    sink.value(form, self.value(field.argument)?.rendered())?;
                }
            }
        }
        Ok(())
    }
}

impl<V: Fn(usize) -> Option<FormatArgument<'static>>> Printf<'_, V> {
    fn value(&self, index: usize) -> Result<FormatArgument<'static>, Reason> {
        (self.values)(index).ok_or(Reason("the format has more fields than there are arguments"))
    }

    fn amount(&self, amount: Amount) -> Result<Option<i64>, Reason> {
        Ok(match amount {
            Amount::None => None,
            Amount::Fixed(amount) => Some(amount as i64),
            Amount::Argument(index) => {
                let amount = self.value(index)?.amount();
                Some(amount.ok_or(Reason("a width or a precision of the format must be an integer"))?)
            }
        })
    }

    /// The field with its width and precision, which are read from arguments if the format has `*`.
    fn form(&self, field: Field) -> Result<ResolvedField, Reason> {
        let within = |amount: u64| within_limit(usize::try_from(amount).unwrap_or(usize::MAX));
        let width = self.amount(field.width)?.unwrap_or(0);
        // As in C, a negative width aligns to the left, and a negative precision counts as none.
        let field = Field { left: field.left || width < 0, ..field };
        let precision = self.amount(field.precision)?.and_then(|precision| u64::try_from(precision).ok());
        Ok(ResolvedField::new(field, self.unit, within(width.unsigned_abs())?, precision.map(within).transpose()?))
    }
}

fn printf<S: Format>(context: &mut Context, format: S, values: Bytes<'static>) -> Result<S, Fault> {
    let run = FormatArguments::new(context, values)?;
    let fields = Fields::new(format.bytes());
    printed(context, &Printf { fields, unit: S::UNIT, values: |index| run.get(index) })
}

/// The faults that formatting by a `printf` format can raise.
pub(super) const FAULTS: &[FaultKind] = &[FaultKind::Invalid, FaultKind::ArenaLimit];

pub(crate) static PRINTF_PACKED: OpDef = OpDef {
    name: "strings._printf",
    summary: "The format with its fields filled in by a few of the arguments. `strings.printf` is composed of this operator.",
    params: &[param("fmt").of(ArgumentForm::Format), param("run")],
    faults: FAULTS,
    meaning: Meaning::Overloads(&[
        strict!(try in context |format: Text<'static>, run: Bytes<'static>| -> Text<'static> {
            printf(context, format, run)
        }),
        strict!(try in context |format: Bytes<'static>, run: Bytes<'static>| -> Bytes<'static> {
            printf(context, format, run)
        }),
    ]),
    examples: &[ex("strings._printf(\"%v!\", strings._pack(2.5))", "'2.5!'")],
    ..OVERLOADED
};

/// The scalar type of a format operand, TEXT or BYTES. The result of formatting has the same type.
pub(super) fn format_scalar(operator: &str, format: &QType) -> Result<Scalar, TypeFault> {
    let found = format.scalar().filter(|scalar| scalar.is_string());
    found.ok_or_else(|| TypeFault::mismatch(format!("{operator} expects a string for `fmt`, found {format}"), Some(0)))
}

/// The signature of an operator that formats `args[first..]` by the format `args[0]`.
pub(super) fn format_types(operator: &str, args: &[Argument<'_>], first: usize) -> Result<Signature, TypeFault> {
    let format = format_scalar(operator, args[0].qtype)?;
    for (index, arg) in args.iter().enumerate().skip(first) {
        let accepted = arg.qtype.scalar().is_some_and(|scalar| match scalar {
            Scalar::Text => format == Scalar::Text,
            scalar => scalar.is_numeric() || matches!(scalar, Scalar::Boolean | Scalar::Bytes),
        });
        if !accepted {
            let message = format!(
                "{operator} expects numbers, booleans and strings for a format of type {format}, found {}",
                arg.qtype
            );
            return Err(TypeFault::mismatch(message, Some(index))
                .hint("convert the value to a text with `strings.as_text(..)`"));
        }
    }
    let optional = args.iter().any(|arg| arg.qtype.is_optional());
    Ok(Signature { operands: args.iter().map(|arg| arg.qtype.clone()).collect(), ret: QType::of(format, optional) })
}

fn expand(graph: &mut dyn Expansion, args: &[NodeHandle]) -> NodeResult {
    let run = packed(graph, &args[1..])?;
    graph.apply(id::STRINGS_PRINTF_PACKED, &[args[0], run])
}

pub(crate) static PRINTF: OpDef = OpDef {
    name: "strings.printf",
    aliases: &["printf"],
    summary: "The format with its fields filled in by the arguments, as by C's `printf`: `%d`, `%x`, `%c` for integers, `%f`, `%e`, `%g`, `%a` for numbers, `%s` for strings, `%v` for any value, `%%` for a percent sign. All but `%v` may have flags, a width and a precision; a `*` takes the width or the precision from an argument. `%2$s` takes the second argument; then every field must name its argument. Widths and precisions count characters, or bytes if the format is bytes. An error if a field is for another kind of value.",
    params: &[param("fmt").of(ArgumentForm::Format), param("values")],
    variadic: true,
    faults: FAULTS,
    typing: Typing::Rule(|args| format_types(PRINTF.name, args, 1)),
    meaning: Meaning::Expand(expand),
    literals: Some(check_fields),
    examples: &[
        ex("strings.printf(\"%.3f|%5d|%-5s|%e\", 2.5, 42, \"ab\", 1e10)", "'2.500|   42|ab   |1.000000e+10'"),
        ex("strings.printf(\"%2$s, %1$.*3$f\", 2.5, \"ab\", 2)", "'ab, 2.50'"),
        ex("strings.printf(\"%-3s|%.1s\", \"\u{e9}\", \"\u{5317}\u{4eac}\")", "'\u{e9}  |\u{5317}'"),
        ex("strings.printf(\"%d of %d%%\", missing[i32], 7)", "text?{NA}"),
    ],
    ..UNARY
};

#[cfg(test)]
mod tests {
    use super::super::eager::{bytes, call, fault, missing_text, some_text, text};
    use cembra_runtime::{FaultKind, Scalar};
    use cembra_value::{ScalarValue, Value};

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
        assert_eq!(of("%.1s", text("\u{e9}a")), Ok(text("\u{e9}")));
        assert_eq!(of("%.1s", bytes("\u{e9}a".as_bytes())), Ok(text("\u{e9}")));
        assert_eq!(call("strings.printf", &[bytes(b"%.1s"), bytes(b"\xc3\xa9")]), Ok(bytes(b"\xc3")));
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
