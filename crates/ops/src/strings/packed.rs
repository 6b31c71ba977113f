//! Encodes the values of several arguments in one string of bytes, because an operator has a fixed number of operands.
//! `strings.printf` and `strings.format` pass this string to the operators that print, so that a format may refer to
//! its arguments in any order. The bytes are checked before they are decoded, because they may come from another
//! source.

use super::made::ArenaBytes;
use super::rendering::PrintedValue;
use super::{Chars, invalid};
use crate::definition::{Expansion, Meaning, NodeHandle, NodeResult, OpDef, Typing, UNARY, ex, param};
use crate::id;
use crate::kernel::strict;
use crate::typing::Signature;
use cembra_runtime::{Bytes, Context, Fault, FaultKind, QType, Scalar};
use cembra_value::{ScalarValue, Value};
use smallvec::smallvec;

/// A decoded argument of `strings.printf` or `strings.format`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum FormatArgument<'r> {
    Boolean(bool),
    Int32(i32),
    Int64(i64),
    Float32(f32),
    Float64(f64),
    String(&'r [u8]),
}

impl<'r> FormatArgument<'r> {
    /// Converts the value to the type that fields of `printf` print.
    pub(super) fn rendered(self) -> PrintedValue<'r> {
        match self {
            FormatArgument::Boolean(value) => PrintedValue::Boolean(value),
            FormatArgument::Int32(value) => PrintedValue::Integer(value.into(), value.cast_unsigned().into()),
            FormatArgument::Int64(value) => PrintedValue::Integer(value, value.cast_unsigned()),
            FormatArgument::Float32(value) => PrintedValue::Float(value.into()),
            FormatArgument::Float64(value) => PrintedValue::Float(value),
            FormatArgument::String(value) => PrintedValue::String(value),
        }
    }

    /// The value as a width or a precision; `None` if the value is a float or a string.
    pub(super) fn amount(self) -> Option<i64> {
        match self {
            FormatArgument::Boolean(value) => Some(value.into()),
            FormatArgument::Int32(value) => Some(value.into()),
            FormatArgument::Int64(value) => Some(value),
            _ => None,
        }
    }

    /// Decodes the first value of `run`, a sequence of encoded values, and returns it with the rest of the sequence;
    /// `None` if the sequence is empty or malformed.
    fn first(run: &'r [u8]) -> Option<(Self, &'r [u8])> {
        let (kind, run) = run.split_first()?;
        match kind {
            b'b' => run.split_first().map(|(byte, rest)| (FormatArgument::Boolean(*byte != 0), rest)),
            b'i' => {
                run.split_first_chunk().map(|(bytes, rest)| (FormatArgument::Int32(i32::from_le_bytes(*bytes)), rest))
            }
            b'l' => {
                run.split_first_chunk().map(|(bytes, rest)| (FormatArgument::Int64(i64::from_le_bytes(*bytes)), rest))
            }
            b'f' => {
                run.split_first_chunk().map(|(bytes, rest)| (FormatArgument::Float32(f32::from_le_bytes(*bytes)), rest))
            }
            b'd' => {
                run.split_first_chunk().map(|(bytes, rest)| (FormatArgument::Float64(f64::from_le_bytes(*bytes)), rest))
            }
            b's' => {
                let (length, rest) = run.split_first_chunk()?;
                let length = usize::try_from(u64::from_le_bytes(*length)).ok()?;
                rest.split_at_checked(length).map(|(bytes, rest)| (FormatArgument::String(bytes), rest))
            }
            _ => None,
        }
    }
}

/// The encoded arguments of a format. They are decoded by index.
#[derive(Clone, Copy, Debug)]
pub(super) struct FormatArguments<'r> {
    bytes: &'r [u8],
    /// The offset of each value in the encoded sequence, as eight bytes.
    places: &'r [[u8; 8]],
}

impl FormatArguments<'static> {
    /// Finds the position of each encoded argument in `bytes`.
    ///
    /// # Errors
    /// If the bytes are not valid encoded arguments, or the arena is full.
    pub(super) fn new(context: &mut Context, bytes: Bytes<'static>) -> Result<Self, Fault> {
        let bytes = bytes.as_slice();
        let mut count = 0;
        let mut rest = bytes;
        while !rest.is_empty() {
            (_, rest) =
                FormatArgument::first(rest).ok_or_else(|| invalid("the packed arguments of a format are not valid"))?;
            count += 1;
        }
        let mut places = ArenaBytes::new(context, count * 8)?;
        let mut rest = bytes;
        while let Some((_, behind)) = FormatArgument::first(rest) {
            places.push_bytes(&((bytes.len() - rest.len()) as u64).to_le_bytes());
            rest = behind;
        }
        Ok(FormatArguments { bytes, places: places.finish().as_slice().as_chunks().0 })
    }

    /// The number of arguments that are encoded.
    pub(super) fn len(self) -> usize {
        self.places.len()
    }

    /// The argument with this index; `None` if there are fewer arguments.
    pub(super) fn get(self, index: usize) -> Option<FormatArgument<'static>> {
        let place = usize::try_from(u64::from_le_bytes(*self.places.get(index)?)).ok()?;
        FormatArgument::first(self.bytes.get(place..)?).map(|(value, _)| value)
    }
}

/// Encodes one value.
fn pack(context: &mut Context, kind: u8, length: &[u8], value: &[u8]) -> Result<Bytes<'static>, Fault> {
    let mut made = ArenaBytes::new(context, 1 + length.len() + value.len())?;
    made.push_bytes(&[kind]);
    made.push_bytes(length);
    made.push_bytes(value);
    Ok(made.finish())
}

fn pack_string(context: &mut Context, value: &[u8]) -> Result<Bytes<'static>, Fault> {
    pack(context, b's', &(value.len() as u64).to_le_bytes(), value)
}

/// Adds graph nodes that encode `values` as one string of bytes, which is missing if any of the values is missing.
pub(super) fn packed(graph: &mut dyn Expansion, values: &[NodeHandle]) -> NodeResult {
    if values.is_empty() {
        return Ok(graph.literal(Value::Scalar(ScalarValue::Bytes([].into()))));
    }
    let runs = values.iter().map(|value| graph.apply(id::STRINGS_PACK, &[*value])).collect::<Result<Vec<_>, _>>()?;
    super::join::join(graph, &runs)
}

pub(crate) static PACK: OpDef = OpDef {
    name: "strings._pack",
    summary: "The value as bytes that include its kind, in the form that the operators behind `strings.printf` and `strings.format` take.",
    params: &[param("value")],
    faults: &[FaultKind::ArenaLimit],
    typing: Typing::Rule(|args| {
        let qtype = args[0].qtype;
        Ok(Signature { operands: smallvec![qtype.clone()], ret: QType::of(Scalar::Bytes, qtype.is_optional()) })
    }),
    meaning: Meaning::Overloads(&[
        strict!(try in context |x: bool| -> Bytes<'static> { pack(context, b'b', &[], &[x.into()]) }),
        strict!(try in context |x: i32| -> Bytes<'static> { pack(context, b'i', &[], &x.to_le_bytes()) }),
        strict!(try in context |x: i64| -> Bytes<'static> { pack(context, b'l', &[], &x.to_le_bytes()) }),
        strict!(try in context |x: f32| -> Bytes<'static> { pack(context, b'f', &[], &x.to_le_bytes()) }),
        strict!(try in context |x: f64| -> Bytes<'static> { pack(context, b'd', &[], &x.to_le_bytes()) }),
        strict!(try in context |x: cembra_runtime::Text<'static>| -> Bytes<'static> { pack_string(context, x.bytes()) }),
        strict!(try in context |x: Bytes<'static>| -> Bytes<'static> { pack_string(context, x.bytes()) }),
    ]),
    examples: &[ex("strings._pack(true)", "b'b\\x01'")],
    ..UNARY
};

#[cfg(test)]
mod tests {
    use super::super::eager::{bytes, call, fault, text};
    use super::*;

    #[test]
    fn a_run_gives_its_values_back() {
        let values = [
            (Value::from(true), FormatArgument::Boolean(true)),
            (Value::from(i32::MIN), FormatArgument::Int32(i32::MIN)),
            (Value::from(i64::MAX), FormatArgument::Int64(i64::MAX)),
            (Value::from(0.1_f32), FormatArgument::Float32(0.1)),
            (Value::from(-0.1), FormatArgument::Float64(-0.1)),
            (Value::Scalar(ScalarValue::WeakFloat(0.5)), FormatArgument::Float64(0.5)),
            (text("h\u{e9}"), FormatArgument::String("h\u{e9}".as_bytes())),
            (bytes(b""), FormatArgument::String(b"")),
            (bytes(b"\xffb"), FormatArgument::String(b"\xffb")),
        ];
        let mut run = Vec::new();
        for (value, _) in &values {
            let Ok(Value::Scalar(ScalarValue::Bytes(part))) = call("strings._pack", std::slice::from_ref(value)) else {
                panic!("bytes of {value}");
            };
            run.extend_from_slice(&part);
        }
        let run: &'static [u8] = run.leak();
        let mut context = Context::new();
        let read = FormatArguments::new(&mut context, Bytes::new(run)).expect("a run");
        assert_eq!(read.len(), values.len());
        for (index, (_, packed)) in values.iter().enumerate() {
            assert_eq!(read.get(index), Some(*packed));
        }
        assert_eq!(read.get(values.len()), None);
    }

    #[test]
    fn other_bytes_are_no_run() {
        for run in [
            &b"x"[..],
            b"b",
            b"i123",
            b"l1234567",
            b"f",
            b"d1",
            b"s12345678",
            b"s\x02\0\0\0\0\0\0\0a",
            b"b\x01s\xff\xff\xff\xff\xff\xff\xff\xff",
        ] {
            assert_eq!(call("strings._printf", &[text("%d"), bytes(run)]), fault(FaultKind::Invalid), "{run:?}");
        }
    }
}
