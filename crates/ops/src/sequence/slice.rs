//! Slices of sequences. Also the test whether all elements of a sequence are equal, which uses the slice after the first
//! element.

use super::{Elements, Sequence, around, int64, known, reduce, sequence, sum};
use crate::definition::{ExpansionError, Instantiation, Meaning, NodeHandle, NodeResult, OpDef, ex, param};
use crate::function::{HIGHER_ORDER, integer};
use crate::id;
use crate::typing::refuse;
use cembra_runtime::{FaultKind, QType};
use cembra_value::{ScalarValue, Value};
use std::rc::Rc;

/// Adds graph nodes that convert a bound of a slice to an index from 0 to `size`; a negative bound counts from the end.
fn bound(g: &mut dyn Instantiation, at: NodeHandle, size: NodeHandle) -> NodeResult {
    let zero = integer(g, 0);
    match (known(g, at), known(g, size)) {
        (Some(at), Some(size)) => {
            let inside = if at < 0 { (at.saturating_add(size)).max(0) } else { at.min(size) };
            Ok(integer(g, inside))
        }
        (Some(0), _) => Ok(zero),
        (Some(0..), _) => g.apply(id::MINIMUM, &[at, size]),
        _ => {
            let from_end = sum(g, at, size)?;
            let from_end = g.apply(id::MAXIMUM, &[from_end, zero])?;
            if known(g, at).is_some() {
                return Ok(from_end);
            }
            let from_start = g.apply(id::MINIMUM, &[at, size])?;
            let negative = g.apply(id::LESS, &[at, zero])?;
            g.apply(id::WHERE, &[negative, from_end, from_start])
        }
    }
}

/// Makes the sequence of the elements from `start` to before `stop`.
fn slice(
    g: &mut dyn Instantiation,
    source: &Rc<Sequence>,
    start: NodeHandle,
    stop: NodeHandle,
) -> Result<Sequence, ExpansionError> {
    let (start, stop) = (bound(g, start, source.size)?, bound(g, stop, source.size)?);
    let (size, known_size) = match (known(g, start), known(g, stop)) {
        (Some(start), Some(stop)) => {
            let size = (stop - start).max(0);
            (integer(g, size), source.known_size().and(usize::try_from(size).ok()))
        }
        (Some(0), _) => (stop, None),
        _ => {
            let zero = integer(g, 0);
            let size = g.apply(id::SUBTRACT, &[stop, start])?;
            (g.apply(id::MAXIMUM, &[size, zero])?, None)
        }
    };
    let nesting = around(std::iter::once(&**source))?;
    let elements = Elements::Sliced { source: source.clone(), start, known_size };
    Ok(Sequence { size, element: source.element.clone(), elements, nesting })
}

pub(crate) static SLICE: OpDef = OpDef {
    name: "seq.slice",
    summary: "The elements from index `start` to before index `stop`. As in Python, a negative index counts from the end, and an index outside of the sequence means its nearest end.",
    params: &[param("seq"), param("start"), param("stop")],
    meaning: Meaning::Instantiate(|g, args| {
        let source = sequence(g, SLICE.name, args, 0)?;
        let start = int64(g, SLICE.name, "start", args, 1)?;
        let stop = int64(g, SLICE.name, "stop", args, 2)?;
        let slice = slice(g, &source, start, stop)?;
        Ok(g.make_sequence(slice))
    }),
    examples: &[
        ex("seq.reduce(math.add, seq.slice(seq.range(10), 2, 5), 0)", "i64{9}"),
        ex("seq.size(seq.slice(seq.make(\"a\", \"b\", \"c\"), -2, 100))", "i64{2}"),
    ],
    ..HIGHER_ORDER
};

pub(crate) static ALL_EQUAL: OpDef = OpDef {
    name: "seq.all_equal",
    summary: "Present if all elements of the sequence, which are scalars, optionals or types, equal the first one, and if there are fewer than two elements. A missing element or a NaN equals nothing.",
    params: &[param("seq")],
    faults: &[FaultKind::IterationLimit],
    meaning: Meaning::Instantiate(|g, args| {
        let sequence = sequence(g, ALL_EQUAL.name, args, 0)?;
        if sequence.element.scalar().is_none() && sequence.element != QType::Meta {
            let found = &sequence.element;
            return refuse(
                0,
                format!("seq.all_equal expects a sequence of scalars or optionals, found a sequence of {found}"),
            );
        }
        let (one, end) = (integer(g, 1), integer(g, i64::MAX));
        let others = slice(g, &sequence, one, end)?;
        let init = g.literal(Value::Present(ScalarValue::Unit));
        reduce(g, &others, init, &mut |g, so_far, element| {
            // Read in each round, so that the first element of an empty sequence is not read.
            let zero = integer(g, 0);
            let first = sequence.at(g, zero)?;
            let equal = g.apply(id::EQUAL, &[first, element])?;
            Ok(g.apply(id::PRESENCE_AND, &[so_far, equal])?)
        })
    }),
    examples: &[
        ex("seq.all_equal(seq.make(1, 1, 1))", "present"),
        ex("seq.all_equal(seq.range(2))", "missing"),
        ex("seq.all_equal(seq.make(missing[i32]))", "present"),
    ],
    ..HIGHER_ORDER
};
