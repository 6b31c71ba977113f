//! Makes timestamps from numbers that count seconds, milliseconds or other fractions of a second, since 1970-01-01T00:00:00Z.

use super::civil::number;
use crate::definition::{Expansion, Meaning, NodeHandle, NodeResult, OVERLOADED, OpDef, Typing, UNARY, ex, param};
use crate::kernel::strict;
use crate::typing::refuse;
use crate::{Argument, Rule, Signature, TypeFault, id};
use cembra_expr::ArgumentForm;
use cembra_runtime::{Date, Fault, FaultKind, MachineType, QType, Scalar, Timestamp, UnixUnit};
use cembra_tape::{Bin, Cell, Cmp, Un};
use cembra_value::{ScalarValue, Value, near_names};

/// Multiplies the count by the length of its unit, as an integer and as floats. The product must be in the years 1 to
/// 9999. An integer product may wrap around into these years, so the float product must also be at most 2^62. A product
/// in these years is below 2^58, and a product that wraps around is above 2^63, so the rounding of the float product
/// does not matter.
const COUNTED_RULE: Rule = |t, a| {
    let (count, micros) = (a[0].val(t), a[1].val(t));
    let product = t.bin(Bin::Mul, count, micros);
    let [wide, factor] = [count, micros].map(|x| t.un(Un::Convert(MachineType::F64), x));
    let wide = t.bin(Bin::Mul, wide, factor);
    let (size, most) = (t.un(Un::Abs, wide), number(t, 4_611_686_018_427_387_904.0));
    let wraps = t.cmp(Cmp::Gt, size, most);
    let first = i64::from(Date::FIRST.0) * Timestamp::DAY;
    let last = (i64::from(Date::LAST.0) + 1) * Timestamp::DAY - 1;
    let [first, last] = [first, last].map(|bound| t.konst(MachineType::I64, bound.cast_unsigned()));
    let (before, after) = (t.cmp(Cmp::Lt, product, first), t.cmp(Cmp::Gt, product, last));
    let outside = t.mor(before, after);
    let outside = t.mor(outside, wraps);
    t.fault_if(outside, FaultKind::TimeRange, [Some(count), None]);
    Cell::num(product)
};

pub(crate) static COUNTED: OpDef = OpDef {
    name: "timestamp._counted",
    summary: "The timestamp `count` times `micros` microseconds after 1970-01-01T00:00:00Z. An error outside of the years 1 to 9999.",
    params: &[param("count"), param("micros")],
    faults: &[FaultKind::TimeRange],
    meaning: Meaning::Overloads(&[strict!(
        try |count: i64, micros: i64| -> Timestamp {
            Timestamp::counted(count, micros).ok_or(Fault::with(FaultKind::TimeRange, count.cast_unsigned()))
        },
        COUNTED_RULE
    )]),
    examples: &[ex("M.timestamp._counted(90i64, 1000000i64)", "timestamp{1970-01-01T00:01:30Z}")],
    ..OVERLOADED
};

fn unit(literal: Option<&Value>) -> Result<UnixUnit, TypeFault> {
    let names = UnixUnit::NAMES;
    let Some(ScalarValue::Text(name)) = literal.and_then(Value::as_scalar) else {
        return Err(TypeFault::mismatch("timestamp.from_unix needs a literal for `unit`", Some(1))
            .hint(format!("write one of \"{}\"", names.join("\", \""))));
    };
    UnixUnit::of_name(name).ok_or_else(|| {
        let hint = match near_names(name, 1, names).first() {
            Some(near) => format!("write \"{near}\""),
            None => format!("write one of \"{}\"", names.join("\", \"")),
        };
        TypeFault::mismatch(format!("timestamp.from_unix has no unit {name:?}"), Some(1)).hint(hint)
    })
}

fn from_unix(graph: &mut dyn Expansion, args: &[NodeHandle]) -> NodeResult {
    let (micros, units) = unit(graph.value(args[1]).as_ref())?.ratio();
    let mut count = graph.apply(id::TO_INT64, &args[..1])?;
    if units != 1 {
        let units = graph.literal(Value::from(units));
        count = graph.apply(id::FLOORDIV, &[count, units])?;
    }
    let micros = graph.literal(Value::from(micros));
    graph.apply(id::TIMESTAMP_COUNTED, &[count, micros])
}

pub(crate) static FROM_UNIX: OpDef = OpDef {
    name: "timestamp.from_unix",
    summary: "The timestamp `n` units after 1970-01-01T00:00:00Z. The unit is a literal: `s`, `ms`, `us` or `ns`; nanoseconds are rounded down to microseconds. An error outside of the years 1 to 9999.",
    params: &[param("n"), param("unit").of(ArgumentForm::UnixUnit)],
    faults: &[FaultKind::TimeRange],
    typing: Typing::Rule(|args: &[Argument<'_>]| {
        let n = args[0].qtype;
        match n.scalar() {
            Some(Scalar::Int32 | Scalar::Int64) => {}
            Some(scalar) if scalar.is_number() => {
                return Err(TypeFault::mismatch(format!("timestamp.from_unix expects an i64, found {n}"), Some(0))
                    .hint(
                        "write `to_int64(n)` to leave out the fraction, or count in a smaller unit, such as \"ms\"",
                    ));
            }
            _ => return refuse(0, format!("timestamp.from_unix expects an i64, found {n}")),
        }
        unit(args[1].literal)?;
        Ok(Signature::unchanged(args, QType::of(Scalar::Timestamp, n.is_optional())))
    }),
    meaning: Meaning::Expand(from_unix),
    examples: &[
        ex("timestamp.from_unix(1505154600, \"s\")", "timestamp{2017-09-11T18:30:00Z}"),
        ex("timestamp.from_unix(-1, \"ms\")", "timestamp{1969-12-31T23:59:59.999Z}"),
        ex("timestamp.from_unix(-1, \"ns\")", "timestamp{1969-12-31T23:59:59.999999Z}"),
    ],
    ..UNARY
};
