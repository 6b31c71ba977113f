//! Dictionaries of ranges: `0..5` has one value, `7..` another. A range has its lower bound and not its upper one. Up to nine bounds of numbers are compared
//! one after the other, by the operators of comparison. More bounds are bisected for the segment of the key, and a list has the values by segment.

use super::{DICT, FEW, Made, as_key, dict_types, get_known};
use crate::Lower;
use crate::array::array_argument;
use crate::definition::{
    Compile, CompiledFrom, CompiledLiteral, Expansion, Meaning, NodeHandle, OpDef, OverArrays, Overload, PresenceRule,
    Typing, ex, param,
};
use crate::id;
use crate::kernel::{Body, Repr};
use crate::typing::{Signature, TypeFault};
use cembra_runtime::{Context, Fault, Plain, QType, Scalar, Text};
use cembra_value::{Array, Dict, ScalarValue, Value};
use std::marker::PhantomData;
use std::sync::Arc;

/// The value of the range that a key is in, or what there is instead.
pub(super) fn get(g: &mut dyn Expansion, found: &Arc<Dict>, key: NodeHandle, absent: NodeHandle) -> Made {
    let bounds = found.keys().scalar();
    let (common, key) = as_key(g, bounds, key)?;
    let found = if common == bounds { found.clone() } else { found.with_wide_keys() };
    let is_compared = common.machine_type().is_some() && found.values().scalar().machine_type().is_some();
    // Eight ranges that leave no gaps have nine bounds.
    if is_compared && found.len() <= FEW + 1 {
        return compared(g, &found, key, absent);
    }
    let bounds = g.literal(Value::Dict(found.segments()));
    let segment = g.apply(id::DICT_SEGMENT, &[bounds, key])?;
    let of_segments = found.by_segment();
    let dict = g.literal(Value::Dict(of_segments.clone()));
    get_known(g, of_segments, dict, segment, absent)
}

/// The value of the last segment whose bound is not above the key. NaN is above no bound.
fn compared(g: &mut dyn Expansion, dict: &Dict, key: NodeHandle, absent: NodeHandle) -> Made {
    let mut made = absent;
    for (bound, value) in dict.entries() {
        let bound = g.literal(Value::Scalar(bound));
        let is_from = g.apply(id::GREATER_EQUAL, &[key, bound])?;
        let value = value.map_or(absent, |value| g.literal(Value::Scalar(value)));
        made = g.apply(id::WHERE, &[is_from, value, made])?;
    }
    Ok(made)
}

/// The type of bounds that are written as literals of a type.
const fn bound_type(scalar: Scalar) -> Scalar {
    match scalar {
        Scalar::WeakFloat => Scalar::Float64,
        scalar => scalar,
    }
}

/// The dictionary of ranges of literal arrays.
fn ranges_of(g: &dyn Expansion, args: &[NodeHandle]) -> Result<Dict, TypeFault> {
    let literal = |at: usize| match g.literal_array(args[at]) {
        Some(Value::Array(_, array)) => Ok(array),
        _ => Err(TypeFault::mismatch(format!("{} takes arrays of literals", RANGES.name), Some(at))
            .hint("ranges are known with the model: they are written, or a file has them")),
    };
    let [from, to, values] = [literal(0)?, literal(1)?, literal(2)?];
    let scalar = bound_type(from.scalar());
    let [from, to] = [from, to].map(|bounds| match bounds.scalar() == scalar {
        true => bounds,
        false => {
            let wide = bounds.iter().map(|bound| bound.and_then(|bound| bound.promoted(scalar)));
            Arc::new(Array::from_scalars(scalar, wide))
        }
    });
    Dict::of_ranges(&from, &to, &values).map_err(|fault| TypeFault::mismatch(fault.to_string(), Some(0)))
}

pub(crate) static RANGES: OpDef = OpDef {
    name: "dict.ranges",
    summary: "The dictionary in which each key from `from` on, and below `to`, has the value beside them: what `table t: ranges of f64 -> f64` reads from a file. Ranges ascend and do not overlap; the first `from` may be missing, and the last `to`. All are arrays of literals.",
    params: &[param("from"), param("to"), param("values")],
    presence: PresenceRule::Custom,
    over_arrays: OverArrays::Own,
    typing: Typing::Rule(|args| {
        let (_, from) = array_argument(RANGES.name, args, 0)?;
        let (_, to) = array_argument(RANGES.name, args, 1)?;
        let (_, values) = array_argument(RANGES.name, args, 2)?;
        if from != to || !Dict::may_be_bounds(from) {
            let message = format!("{} expects bounds of one type, found {from} and {to}", RANGES.name);
            return Err(TypeFault::mismatch(message, Some(1)).hint("bounds are numbers, dates, timestamps or texts"));
        }
        Ok(Signature::unchanged(args, QType::Dict(bound_type(from), values)))
    }),
    meaning: Meaning::Expand(|g, args| {
        let dict = ranges_of(g, args)?;
        Ok(g.literal(dict.into()))
    }),
    examples: &[
        ex("dict.get(dict.ranges([0.0f64, 10.0f64], [10.0f64, missing], [1, 2]), 9.5f64)", "i32?{1}"),
        ex("dict.get(dict.ranges([0.0f64, 10.0f64], [10.0f64, missing], [1, 2]), -1)", "i32?{NA}"),
    ],
    ..DICT
};

/// A type of bounds.
trait Bound: Repr + 'static {
    /// A bound as a list keeps it.
    type Kept: Send + Sync + 'static;

    /// A bound of a dictionary, to be kept.
    fn keep(bound: &ScalarValue) -> Self::Kept;

    /// True if the bound is not above the key.
    fn is_from(kept: &Self::Kept, key: &Self) -> bool;
}

macro_rules! numbers {
    ($($ty:ty),*) => { $(
        impl Bound for $ty {
            type Kept = $ty;

            fn keep(bound: &ScalarValue) -> $ty {
                Plain::from_word(bound.bits())
            }

            #[inline(always)]
            fn is_from(kept: &$ty, key: &$ty) -> bool {
                kept <= key
            }
        }
    )* };
}

numbers!(i32, i64, u64, f32, f64);

impl Bound for Text<'static> {
    type Kept = Box<[u8]>;

    fn keep(bound: &ScalarValue) -> Box<[u8]> {
        match bound {
            ScalarValue::Text(text) => text.as_bytes().into(),
            _ => Box::default(),
        }
    }

    #[inline(always)]
    fn is_from(kept: &Box<[u8]>, key: &Self) -> bool {
        **kept <= *key.as_str().as_bytes()
    }
}

/// The segment of a key, counted from 0; none below the first bound, and of NaN.
struct Segment<K>(PhantomData<K>);

impl<K: Bound> Body for Segment<K> {
    type Data = Box<[K::Kept]>;
    type Args = (K,);
    type Ret = Option<i64>;
    const STRICT: bool = true;
    const LOWER: Lower = Lower::Kernel;

    #[inline]
    fn run(bounds: &Box<[K::Kept]>, _: &mut Context, (key,): (K,)) -> Result<Option<i64>, Fault> {
        // The standard library bisects without branches.
        let behind = bounds.partition_point(|bound| K::is_from(bound, &key));
        Ok((behind as i64).checked_sub(1).filter(|segment| *segment >= 0))
    }
}

impl<K: Bound> Segment<K> {
    fn compile(literal: &Value) -> Result<CompiledLiteral, String> {
        match literal {
            Value::Dict(dict) => {
                let bounds =
                    |dict: &Dict| -> Box<[K::Kept]> { dict.entries().map(|(bound, _)| K::keep(&bound)).collect() };
                let bounds = |dict: &Dict| Arc::new(bounds(dict));
                // However many look for a segment in it, there is one list.
                match dict.compiled(|dict| bounds(dict)).downcast::<Box<[K::Kept]>>() {
                    Ok(bounds) => Ok(CompiledLiteral::shared(bounds)),
                    Err(_) => Ok(CompiledLiteral::shared(bounds(dict))),
                }
            }
            other => Err(format!("{other} is no dictionary")),
        }
    }

    const OVERLOAD: Overload = Overload {
        // A dictionary counts as what its values are; whatever they are, bounds alone are looked at.
        args: &[<i64 as Repr>::OPERAND, K::OPERAND],
        compile: Some(Compile { from: CompiledFrom::Dict, function: &Self::compile }),
        ..Overload::of::<Self>()
    };
}

pub(crate) static SEGMENT: OpDef = OpDef {
    name: "dict._segment",
    summary: "The segment between two bounds that a key is in, counted from 0; missing below the first bound. `bounds` is a dictionary of ranges by their segments.",
    params: &[param("bounds"), param("key")],
    presence: PresenceRule::Strict,
    typing: Typing::Rule(|args| {
        let (bounds, _) = dict_types(SEGMENT.name, args, 0)?;
        if args[1].qtype.scalar() != Some(bounds) {
            let found = args[1].qtype;
            return Err(TypeFault::mismatch(format!("{} expects {bounds}, found {found}", SEGMENT.name), Some(1)));
        }
        Ok(Signature::unchanged(args, QType::Optional(Scalar::Int64)))
    }),
    meaning: Meaning::Overloads(&[
        Segment::<i32>::OVERLOAD,
        Segment::<i64>::OVERLOAD,
        Segment::<u64>::OVERLOAD,
        Segment::<f32>::OVERLOAD,
        Segment::<f64>::OVERLOAD,
        Segment::<Text<'static>>::OVERLOAD,
    ]),
    examples: &[ex("dict._segment(dict{3: 0i64, 5: 1i64}, 4)", "i64?{0}")],
    ..DICT
};
