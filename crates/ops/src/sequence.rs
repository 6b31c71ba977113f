//! Operators on sequences. A sequence is never stored in memory: during type inference it is a recipe, from which its
//! size and the element at any index can be computed. Mapping a sequence makes another recipe; reducing a sequence
//! makes a loop that computes each element where it is needed. So a chain such as
//! `seq.reduce(math.add, seq.map(f, seq.range(n)), 0)` always becomes one loop.
//!
//! A sequence that is used twice is computed twice. A sequence cannot be an input, an output or a field of a tuple.

pub(crate) mod slice;

use crate::Rule;
use crate::cast::cast_to;
use crate::definition::{
    ExpansionError, Instantiation, Meaning, NodeHandle, NodeResult, OpDef, PresenceRule, Typing, ex, param, param_or,
};
use crate::function::{HIGHER_ORDER, field, integer, no_sequence};
use crate::kernel::strict;
use crate::typing::{TypeFault, common_type, refuse};
use crate::{OpId, id};
use cembra_expr::ArgumentForm;
use cembra_runtime::{Fault, FaultKind, QType, Scalar};
use cembra_tape::{Cell, Cmp};
use cembra_value::{Code, ScalarValue, Value};
use std::rc::Rc;

/// The most levels of nesting: a sequence whose elements are computed from those of other sequences has one level more
/// than these.
const NESTING: usize = 64;

/// A sequence as a recipe: its size, and how its elements are computed.
#[derive(Clone, PartialEq, Debug)]
pub struct Sequence {
    /// The number of elements, an INT64.
    size: NodeHandle,
    /// The type of the elements.
    element: QType,
    elements: Elements,
    nesting: usize,
}

/// The recipe for the element at an index.
#[derive(Clone, PartialEq, Debug)]
enum Elements {
    /// The elements are `start`, `start + step`, ...
    Range { start: NodeHandle, step: NodeHandle },
    /// The elements are these values, in order.
    Made(Vec<NodeHandle>),
    /// The elements are all equal to this value.
    Repeated(NodeHandle),
    /// The elements are the results of a function, which is called with the elements of other sequences at the same
    /// index.
    Mapped { function: NodeHandle, sources: Vec<Rc<Sequence>> },
    /// The elements are tuples of the elements of these sequences at the tuple's index.
    Zipped(Vec<Rc<Sequence>>),
    /// The elements of `source` from the index `start` on. `known_size` is the number of these elements; `None` if it
    /// is not known during type inference.
    Sliced { source: Rc<Sequence>, start: NodeHandle, known_size: Option<usize> },
}

impl Sequence {
    /// The type of the sequence's elements.
    #[must_use]
    pub fn element_type(&self) -> &QType {
        &self.element
    }

    /// Makes a sequence of `values`, which must have the type `element`.
    pub(crate) fn of(graph: &mut dyn Instantiation, element: QType, values: Vec<NodeHandle>) -> Sequence {
        let size = integer(graph, values.len() as i64);
        Sequence { size, element, elements: Elements::Made(values), nesting: 0 }
    }

    /// The number of elements; `None` if it is not known during type inference.
    fn known_size(&self) -> Option<usize> {
        match &self.elements {
            Elements::Made(values) => Some(values.len()),
            // The recursion ends, because sequences nest at most `NESTING` deep.
            Elements::Mapped { sources, .. } | Elements::Zipped(sources) => {
                let sizes: Option<Vec<usize>> = sources.iter().map(|source| source.known_size()).collect();
                sizes?.first().copied()
            }
            Elements::Sliced { known_size, .. } => *known_size,
            Elements::Range { .. } | Elements::Repeated(_) => None,
        }
    }

    /// Returns the nodes of all elements of the sequence; `None` if their number is not known during type inference.
    pub(crate) fn all(&self, graph: &mut dyn Instantiation) -> Result<Option<Vec<NodeHandle>>, ExpansionError> {
        let Some(size) = self.known_size() else { return Ok(None) };
        graph.spend(size)?;
        let element = |at: usize| {
            let index = integer(graph, at as i64);
            self.at(graph, index)
        };
        (0..size).map(element).collect::<Result<_, _>>().map(Some)
    }

    /// Adds graph nodes for the element at an index, which must be in range.
    fn at(&self, graph: &mut dyn Instantiation, index: NodeHandle) -> NodeResult<ExpansionError> {
        match &self.elements {
            Elements::Range { start, step } => {
                // Most ranges count from 0 by 1: the element is the index.
                let distance = match known(graph, *step) {
                    Some(1) => index,
                    _ => graph.apply(id::MULTIPLY, &[index, *step])?,
                };
                match known(graph, *start) {
                    Some(0) => Ok(distance),
                    _ => Ok(graph.apply(id::ADD, &[*start, distance])?),
                }
            }
            Elements::Repeated(value) => Ok(*value),
            Elements::Made(values) => chosen(graph, values, index),
            Elements::Mapped { function, sources } => {
                let args = elements(graph, sources, index)?;
                graph.call(*function, &args)
            }
            Elements::Zipped(sources) => {
                let fields = elements(graph, sources, index)?;
                Ok(graph.apply(id::MAKE_TUPLE, &fields)?)
            }
            Elements::Sliced { source, start, .. } => {
                let index = sum(graph, *start, index)?;
                source.at(graph, index)
            }
        }
    }
}

/// The value of a literal INT64; `None` for other nodes.
fn known(graph: &dyn Instantiation, value: NodeHandle) -> Option<i64> {
    match graph.value(value) {
        Some(Value::Scalar(ScalarValue::Int64(value))) => Some(value),
        _ => None,
    }
}

/// Adds a graph node for the sum of two INT64. If both are literals, the node is a literal, so that a known index stays
/// known.
fn sum(graph: &mut dyn Instantiation, a: NodeHandle, b: NodeHandle) -> NodeResult {
    match (known(graph, a), known(graph, b)) {
        (Some(0), _) => Ok(b),
        (_, Some(0)) => Ok(a),
        (Some(a), Some(b)) => Ok(integer(graph, a.wrapping_add(b))),
        _ => graph.apply(id::ADD, &[a, b]),
    }
}

/// Adds graph nodes for the elements of several sequences at one index.
fn elements(
    graph: &mut dyn Instantiation,
    sources: &[Rc<Sequence>],
    index: NodeHandle,
) -> Result<Vec<NodeHandle>, ExpansionError> {
    sources.iter().map(|source| source.at(graph, index)).collect()
}

/// Adds graph nodes that select one of several values by an index.
fn chosen(graph: &mut dyn Instantiation, values: &[NodeHandle], index: NodeHandle) -> NodeResult<ExpansionError> {
    if let Some(value) = known(graph, index).and_then(|at| values.get(usize::try_from(at).ok()?)) {
        return Ok(*value);
    }
    let Some((last, others)) = values.split_last() else {
        return Err(TypeFault::mismatch("an empty sequence has no elements", None).into());
    };
    let mut choice = *last;
    for (at, value) in others.iter().enumerate().rev() {
        let at = integer(graph, at as i64);
        let here = graph.apply(id::EQUAL, &[index, at])?;
        choice = graph.apply(id::WHERE, &[here, *value, choice])?;
    }
    Ok(choice)
}

fn sequence(
    graph: &dyn Instantiation,
    operator: &str,
    args: &[NodeHandle],
    at: usize,
) -> Result<Rc<Sequence>, ExpansionError> {
    graph.sequence(args[at]).ok_or_else(|| no_sequence(operator, &graph.qtype(args[at]), at))
}

/// Returns the sequences among the operands from index `from` on, their common size, and the nesting level of a
/// sequence that is made from them.
fn sources(
    graph: &mut dyn Instantiation,
    operator: &str,
    args: &[NodeHandle],
    from: usize,
) -> Result<(Vec<Rc<Sequence>>, NodeHandle, usize), ExpansionError> {
    let all = (from..args.len()).map(|at| sequence(graph, operator, args, at)).collect::<Result<Vec<_>, _>>()?;
    let Some(first) = all.first() else {
        return Err(TypeFault::mismatch(format!("{operator} expects at least one sequence"), None).into());
    };
    let mut size = first.size;
    for (at, other) in all.iter().enumerate().skip(1) {
        if let (Some(a), Some(b)) = (first.known_size(), other.known_size())
            && a != b
        {
            return refuse(from + at, format!("{operator} expects sequences of the same size, found {a} and {b}"));
        }
        if other.size != size {
            let alike = graph.apply(id::EQUAL, &[size, other.size])?;
            let message = graph.literal(Value::text(format!("{operator} expects sequences of the same size")));
            size = graph.apply(id::WITH_ASSERTION, &[size, alike, message])?;
        }
    }
    let nesting = around(all.iter().map(|source| &**source))?;
    Ok((all, size, nesting))
}

/// The nesting level of a sequence that is made from `sources`. Fails if it is above the limit.
fn around<'s>(sources: impl Iterator<Item = &'s Sequence>) -> Result<usize, TypeFault> {
    let nesting = 1 + sources.map(|source| source.nesting).max().unwrap_or(0);
    if nesting <= NESTING {
        return Ok(nesting);
    }
    let message = format!("sequences are made of sequences more than {NESTING} levels deep");
    Err(TypeFault { code: Code::Limit, ..TypeFault::mismatch(message, None) })
}

/// Casts an integer operand to INT64.
fn int64(graph: &mut dyn Instantiation, operator: &str, name: &str, args: &[NodeHandle], at: usize) -> NodeResult {
    if let Some(Value::Scalar(ScalarValue::Int32(value))) = graph.value(args[at]) {
        return Ok(integer(graph, i64::from(value)));
    }
    let found = graph.qtype(args[at]);
    match found {
        QType::Scalar(scalar) if scalar.is_integer() => cast_to(graph, args[at], Scalar::Int64, false),
        _ => refuse(at, format!("{operator} expects an integer for `{name}`, found {found}")),
    }
}

const ZERO_STEP: &str = "the step of a range must not be 0";

/// The number of elements in a range; `seq.range` counts as Python's `range` does.
fn range_size(start: i64, stop: i64, step: i64) -> Result<i64, Fault> {
    let (start, stop, step) = (i128::from(start), i128::from(stop), i128::from(step));
    let size = match step {
        0 => return Err(crate::strings::invalid(ZERO_STEP)),
        1.. => (stop - start + step - 1) / step,
        _ => (start - stop - step - 1) / -step,
    };
    // A range over all INT64 has one element more than an INT64 can count; no loop gets there.
    Ok(i64::try_from(size.max(0)).unwrap_or(i64::MAX))
}

pub(crate) static RANGE_SIZE: OpDef = OpDef {
    name: "seq._range_size",
    summary: "The number of elements of a range.",
    params: &[param("start"), param("stop"), param("step")],
    presence: PresenceRule::Strict,
    faults: &[FaultKind::Invalid],
    examples: &[ex("seq._range_size(0i64, 10i64, 3i64)", "i64{4}")],
    typing: Typing::Overloads,
    meaning: Meaning::Overloads(&[
        strict!(try |start: i64, stop: i64, step: i64| -> i64 { range_size(start, stop, step) }),
    ]),
    ..HIGHER_ORDER
};

pub(crate) static RANGE: OpDef = OpDef {
    name: "seq.range",
    summary: "The i64 numbers from 0 to before `start`, or from `start` to before `stop` if that is given, in steps of `step`. An error if `step` is 0.",
    params: &[
        param("start"),
        param_or("stop", Value::Missing(Scalar::Int64)),
        param_or("step", Value::Scalar(ScalarValue::Int64(1))),
    ],
    faults: &[FaultKind::Invalid],
    meaning: Meaning::Instantiate(|g, args| {
        let first = int64(g, RANGE.name, "start", args, 0)?;
        let (start, stop) = if matches!(g.value(args[1]), Some(Value::Missing(_) | Value::Nothing)) {
            (integer(g, 0), first)
        } else {
            (first, int64(g, RANGE.name, "stop", args, 1)?)
        };
        let step = int64(g, RANGE.name, "step", args, 2)?;
        // The most common range needs no call to compute its size.
        let size = if known(g, start) == Some(0) && known(g, step) == Some(1) {
            g.apply(id::MAXIMUM, &[stop, start])?
        } else {
            g.apply(id::SEQ_RANGE_SIZE, &[start, stop, step])?
        };
        let elements = Elements::Range { start, step };
        Ok(g.make_sequence(Sequence { size, element: QType::INT64, elements, nesting: 0 }))
    }),
    examples: &[
        ex("seq.reduce(math.add, seq.range(5), 0)", "i64{10}"),
        ex("seq.at(seq.range(10, 0, -3), 3)", "i64{1}"),
    ],
    ..HIGHER_ORDER
};

pub(crate) static MAKE: OpDef = OpDef {
    name: "seq.make",
    summary: "The sequence of the operands, in their common type.",
    params: &[param("args")],
    variadic: true,
    meaning: Meaning::Instantiate(|g, args| {
        let mut element = args.first().map_or(QType::Nothing, |first| g.qtype(*first));
        for (at, arg) in args.iter().enumerate() {
            let found = g.qtype(*arg);
            if !found.is_run_time() {
                return refuse(at, format!("seq.make cannot hold a value of type {found}"));
            }
            element = common_type(&element, &found).ok_or_else(|| {
                TypeFault::mismatch(
                    format!("seq.make expects values with a common type, found {element} and {found}"),
                    Some(at),
                )
            })?;
        }
        let mut values = args.to_vec();
        for (at, value) in values.iter_mut().enumerate() {
            let found = g.qtype(*value);
            match (&element, &found) {
                _ if found == element => {}
                (QType::Array(..), QType::Scalar(_) | QType::Optional(_) | QType::Nothing) => {
                    return refuse(at, format!("seq.make cannot make one sequence of {found} and {element}"));
                }
                _ => {
                    if let Some(scalar) = element.of_each().scalar() {
                        *value = cast_to(g, *value, scalar, element.is_optional())?;
                    }
                }
            }
        }
        let sequence = Sequence::of(g, element, values);
        Ok(g.make_sequence(sequence))
    }),
    examples: &[
        ex("seq.reduce(math.subtract, seq.make(1, 2, 3), 10)", "4"),
        ex("seq.at(seq.make(\"a\", \"b\"), 1)", "'b'"),
        ex("seq.reduce(array.concat, seq.make([1], [2, 3]), [0])", "[0, 1, 2, 3]"),
    ],
    ..HIGHER_ORDER
};

pub(crate) static REPEAT: OpDef = OpDef {
    name: "seq.repeat",
    summary: "The sequence that has the same value `n` times; empty if `n` is negative.",
    params: &[param("value"), param("n")],
    meaning: Meaning::Instantiate(|g, args| {
        let element = g.qtype(args[0]);
        if !element.is_run_time() {
            return refuse(0, format!("seq.repeat cannot repeat a value of type {element}"));
        }
        let n = int64(g, REPEAT.name, "n", args, 1)?;
        let zero = integer(g, 0);
        let size = g.apply(id::MAXIMUM, &[n, zero])?;
        Ok(g.make_sequence(Sequence { size, element, elements: Elements::Repeated(args[0]), nesting: 0 }))
    }),
    examples: &[ex("seq.reduce(math.multiply, seq.repeat(2, 10), 1)", "1024")],
    ..HIGHER_ORDER
};

pub(crate) static ZIP: OpDef = OpDef {
    name: "seq.zip",
    summary: "The sequence of tuples that each have the elements at one index of several sequences, which must have the same size.",
    params: &[param("args")],
    variadic: true,
    faults: &[FaultKind::Assertion],
    meaning: Meaning::Instantiate(|g, args| {
        let (sources, size, nesting) = sources(g, ZIP.name, args, 0)?;
        let element = QType::tuple(sources.iter().map(|source| source.element.clone()));
        Ok(g.make_sequence(Sequence { size, element, elements: Elements::Zipped(sources), nesting }))
    }),
    examples: &[ex("seq.at(seq.zip(seq.range(3), seq.make(\"a\", \"b\", \"c\")), 1)", "(i64{1}, 'b')")],
    ..HIGHER_ORDER
};

/// Makes the sequence of a function's results for `size` elements that are types. A function must know types when it is
/// called, so all calls are made immediately.
fn mapped(
    g: &mut dyn Instantiation,
    function: NodeHandle,
    sources: &[Rc<Sequence>],
    size: usize,
) -> Result<Sequence, ExpansionError> {
    let mut values = Vec::new();
    for at in 0..size {
        let at = integer(g, at as i64);
        let args = elements(g, sources, at)?;
        values.push(g.call(function, &args)?);
    }
    let first = match values.first() {
        Some(first) => *first,
        None => {
            // Without elements, a call with any type tells the type of the function's result.
            let any = g.literal(Value::Type(QType::Nothing));
            let example =
                |source: &Rc<Sequence>| if source.element == QType::Meta { any } else { g.unknown(&source.element) };
            let args: Vec<NodeHandle> = sources.iter().map(example).collect();
            g.call(function, &args)?
        }
    };
    let element = g.qtype(first);
    if let Some(other) = values.iter().map(|value| g.qtype(*value)).find(|other| *other != element) {
        return refuse(0, format!("seq.map cannot make elements of types {element} and {other}"));
    }
    if !element.is_run_time() && element != QType::Meta {
        return refuse(0, format!("seq.map cannot make elements of type {element}"));
    }
    Ok(Sequence::of(g, element, values))
}

pub(crate) static MAP: OpDef = OpDef {
    name: "seq.map",
    summary: "The sequence of the results of the function `op` for each element. With several sequences of the same size, the function gets the elements at the same index.",
    params: &[param("op"), param("arg"), param("args")],
    variadic: true,
    faults: &[FaultKind::Assertion],
    meaning: Meaning::Instantiate(|g, args| {
        let (sources, size, nesting) = sources(g, MAP.name, args, 1)?;
        if sources.iter().any(|source| source.element == QType::Meta)
            && let Some(size) = sources.first().and_then(|source| source.known_size())
        {
            let sequence = mapped(g, args[0], &sources, size)?;
            return Ok(g.make_sequence(sequence));
        }
        let example: Vec<NodeHandle> = sources.iter().map(|source| g.unknown(&source.element)).collect();
        let mapped = g.call(args[0], &example)?;
        let element = g.qtype(mapped);
        if !element.is_run_time() {
            return refuse(0, format!("seq.map cannot make elements of type {element}"));
        }
        let elements = Elements::Mapped { function: args[0], sources };
        Ok(g.make_sequence(Sequence { size, element, elements, nesting }))
    }),
    examples: &[ex("seq.reduce(math.add, seq.map(fn(x) = x * x, seq.range(4)), 0)", "i64{14}")],
    ..HIGHER_ORDER
};

/// Reduces a sequence by calling `call` with the result so far and each element. If the number of elements is known,
/// one call is added per element; otherwise a loop over indices is added.
fn reduce(
    g: &mut dyn Instantiation,
    sequence: &Sequence,
    init: NodeHandle,
    call: Combine<'_>,
) -> NodeResult<ExpansionError> {
    if let Some(size) = sequence.known_size() {
        let mut so_far = init;
        for at in 0..size {
            let at = integer(g, at as i64);
            let element = sequence.at(g, at)?;
            so_far = call(g, so_far, element)?;
        }
        return Ok(so_far);
    }
    let zero = integer(g, 0);
    let state = g.apply(id::MAKE_TUPLE, &[zero, init])?;
    let end = g.repeat(
        state,
        &mut |g, state| {
            let index = field(g, state, 0)?;
            Ok(g.apply(id::LESS, &[index, sequence.size])?)
        },
        &mut |g, state| {
            let (index, so_far, one) = (field(g, state, 0)?, field(g, state, 1)?, integer(g, 1));
            let element = sequence.at(g, index)?;
            let next = call(g, so_far, element)?;
            let index = g.apply(id::ADD, &[index, one])?;
            Ok(g.apply(id::MAKE_TUPLE, &[index, next])?)
        },
    )?;
    Ok(field(g, end, 1)?)
}

/// A function that combines the result so far with an element.
type Combine<'f> = &'f mut dyn FnMut(&mut dyn Instantiation, NodeHandle, NodeHandle) -> NodeResult<ExpansionError>;

pub(crate) static REDUCE: OpDef = OpDef {
    name: "seq.reduce",
    summary: "The elements of a sequence combined from left to right by a function of two arguments: the result so far, which begins with `initial`, and the element. `initial` for an empty sequence.",
    params: &[param("op"), param("seq"), param("initial")],
    faults: &[FaultKind::IterationLimit],
    meaning: Meaning::Instantiate(|g, args| {
        let sequence = sequence(g, REDUCE.name, args, 1)?;
        let initial = g.qtype(args[2]);
        // A type cannot be the state of a loop, but if the number of elements is known, there is no loop.
        if !initial.is_run_time() && (initial != QType::Meta || sequence.known_size().is_none()) {
            return refuse(2, format!("seq.reduce cannot start with a value of type {initial}"));
        }
        reduce(g, &sequence, args[2], &mut |g, so_far, element| g.call(args[0], &[so_far, element]))
    }),
    examples: &[
        ex("seq.reduce(fn(sum, x) = sum + x * 0.5, seq.range(1, 4), 0.0)", "f64{3}"),
        ex("seq.reduce(math.add, seq.range(0), 7i64)", "i64{7}"),
        ex("seq.reduce(fn(s, i) = s * 2 + i, seq.range(3), [1i64, missing])", "[12, NA]"),
    ],
    ..HIGHER_ORDER
};

pub(crate) static SIZE: OpDef = OpDef {
    name: "seq.size",
    summary: "The number of elements of a sequence, as an i64.",
    params: &[param("seq")],
    meaning: Meaning::Instantiate(|g, args| Ok(sequence(g, SIZE.name, args, 0)?.size)),
    examples: &[ex("seq.size(seq.range(2, 9, 3))", "i64{3}")],
    ..HIGHER_ORDER
};

const INDEX_RULE: Rule = |t, a| {
    let (index, size) = (a[0].val(t), a[1].val(t));
    let zero = t.konst_like(index, 0.0);
    let (below, above) = (t.cmp(Cmp::Lt, index, zero), t.cmp(Cmp::Le, size, index));
    let outside = t.mor(below, above);
    t.fault_if(outside, FaultKind::IndexRange, [Some(index), Some(size)]);
    Cell::num(index)
};

pub(crate) static INDEX: OpDef = OpDef {
    name: "seq._index",
    summary: "The index itself. An error if a sequence of this size does not have it.",
    params: &[param("index").of(ArgumentForm::Position), param("size")],
    presence: PresenceRule::Strict,
    faults: &[FaultKind::IndexRange],
    examples: &[ex("seq._index(1i64, 3i64)", "i64{1}")],
    typing: Typing::Overloads,
    meaning: Meaning::Overloads(&[strict!(
        try |index: i64, size: i64| -> i64 {
            if (0..size).contains(&index) {
                Ok(index)
            } else {
                Err(Fault { kind: FaultKind::IndexRange, operands: [index.cast_unsigned(), size.cast_unsigned()] })
            }
        },
        INDEX_RULE
    )]),
    ..HIGHER_ORDER
};

pub(crate) static AT: OpDef = OpDef {
    name: "seq.at",
    summary: "The element at an index, counted from 0; an index outside of the sequence is an error.",
    params: &[param("seq"), param("i")],
    faults: &[FaultKind::IndexRange],
    meaning: Meaning::Instantiate(|g, args| {
        let sequence = sequence(g, AT.name, args, 0)?;
        let index = int64(g, AT.name, "i", args, 1)?;
        // An index that is known to be in range needs no check at run time; elements that are types can have no other index.
        let at = known(g, index).and_then(|at| usize::try_from(at).ok());
        if at.zip(sequence.known_size()).is_some_and(|(at, size)| at < size) {
            return sequence.at(g, index);
        }
        let index = g.apply(id::SEQ_INDEX, &[index, sequence.size])?;
        sequence.at(g, index)
    }),
    examples: &[ex("seq.at(seq.range(5, 8), 2)", "i64{7}")],
    ..HIGHER_ORDER
};

/// Reduces a sequence of masks by the operator `with`.
fn masks(
    g: &mut dyn Instantiation,
    operator: &'static str,
    with: OpId,
    args: &[NodeHandle],
    init: Value,
) -> NodeResult<ExpansionError> {
    let sequence = sequence(g, operator, args, 0)?;
    if sequence.element != QType::MASK {
        let found = &sequence.element;
        return refuse(0, format!("{operator} expects a sequence of masks, found a sequence of {found}"));
    }
    let init = g.literal(init);
    reduce(g, &sequence, init, &mut |g, so_far, element| Ok(g.apply(with, &[so_far, element])?))
}

pub(crate) static ANY: OpDef = OpDef {
    name: "seq.any",
    summary: "Present if at least one mask of the sequence is present.",
    params: &[param("seq")],
    faults: &[FaultKind::IterationLimit],
    meaning: Meaning::Instantiate(|g, args| masks(g, ANY.name, id::PRESENCE_OR, args, Value::Missing(Scalar::Unit))),
    examples: &[ex("seq.any(seq.map(fn(x) = x * x == 9, seq.range(5)))", "present")],
    ..HIGHER_ORDER
};

pub(crate) static ALL: OpDef = OpDef {
    name: "seq.all",
    summary: "Present if every mask of the sequence is present, and for an empty sequence.",
    params: &[param("seq")],
    faults: &[FaultKind::IterationLimit],
    meaning: Meaning::Instantiate(|g, args| {
        masks(g, ALL.name, id::PRESENCE_AND, args, Value::Present(ScalarValue::Unit))
    }),
    examples: &[ex("seq.all(seq.map(fn(x) = x < 4, seq.range(5)))", "missing")],
    ..HIGHER_ORDER
};
