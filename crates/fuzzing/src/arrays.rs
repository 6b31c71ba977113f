//! Random arrays, edges (groupings of an array's elements) and shapes (sizes of arrays). The module also makes smaller and simpler versions of
//! given values, for shrinking. The payloads of missing elements, and the bits after the last presence bit, are random, because no code may read
//! them.

use crate::Config;
use crate::config::{chance, pick};
use crate::values;
use cembra_runtime::{ArrayKind, EdgeType, QType, Scalar};
use cembra_value::{Array, ArrayBuilder, ArrayData, Edge, EdgeForm, Promise, ScalarValue, Value};
use fastrand::Rng;

/// Sizes near the boundaries of strips (blocks of rows that are evaluated at once), bitmap words, and partial sums.
const SIZES: &[usize] = &[
    0, 1, 2, 3, 7, 63, 64, 65, 66, 127, 128, 129, 191, 200, 500, 1000, 1023, 1024, 1025, 1100, 2047, 2048, 2500, 3000,
];

/// Returns a random array size. Half of the sizes are below 20, so that most programs are quick.
pub(crate) fn size(random: &mut Rng) -> usize {
    if random.bool() { random.usize(..20) } else { *pick(random, SIZES) }
}

/// Returns a random array of `len` elements. Most arrays have no special elements (NaN, infinities), because a single NaN makes every sum a NaN,
/// which would hide errors.
pub(crate) fn array(random: &mut Rng, scalar: Scalar, len: usize, config: &Config) -> Array {
    let special = *pick(random, &[0.0, 0.0, 0.0, 1.0 / (1.0 + len as f64), config.special]);
    let config = Config { special, ..config.clone() };
    // A few values repeat, which gives ties and keys of groups.
    let few: Option<Vec<ScalarValue>> =
        (random.u32(..4) == 0).then(|| (0..3).map(|_| values::scalar(random, scalar, &config)).collect());
    let element = |random: &mut Rng| match &few {
        Some(few) => pick(random, few).clone(),
        None => values::scalar(random, scalar, &config),
    };
    let all: Vec<ScalarValue> = (0..len).map(|_| element(random)).collect();
    of_scalars(random, scalar, &all)
}

/// Returns an array of these values. Some are missing, but their values stay in memory.
fn of_scalars(random: &mut Rng, scalar: Scalar, all: &[ScalarValue]) -> Array {
    let missing = *pick(random, &[0.0, 0.0, 0.0, 0.1, 0.1, 0.5, 0.95, 1.0]);
    with_gaps(random, scalar, all, missing)
}

/// Returns an array of these values. `missing` is the fraction of missing elements.
fn with_gaps(random: &mut Rng, scalar: Scalar, all: &[ScalarValue], missing: f64) -> Array {
    let len = all.len();
    let present: Vec<bool> = (0..len).map(|_| !chance(random, missing)).collect();
    let builder = || {
        let mut made = ArrayBuilder::new(scalar, len);
        all.iter().zip(&present).for_each(|(value, present)| made.push(Some(value).filter(|_| *present)));
        made.finish()
    };
    let data = match scalar.machine_type() {
        _ if scalar == Scalar::Unit => ArrayData::Units,
        _ if scalar == Scalar::Boolean => {
            ArrayData::Bits(bits(random, all.iter().map(|value| value.bits() != 0)).into())
        }
        Some(_) => ArrayData::Numbers(words(scalar, all).into()),
        None => return builder(),
    };
    // Presence bits may exist even if nothing is missing.
    let has_bits = missing > 0.0 || random.u32(..4) == 0;
    let presence = has_bits.then(|| bits(random, present.iter().copied()));
    Array::from_parts(scalar, len, data, presence).unwrap_or_else(builder)
}

/// Packs numbers into words.
fn words(scalar: Scalar, all: &[ScalarValue]) -> Vec<u64> {
    let numbers = || all.iter().map(ScalarValue::bits);
    if QType::Scalar(scalar).layout().size == 8 {
        return numbers().collect();
    }
    let narrow: Vec<u64> = numbers().collect();
    narrow.chunks(2).map(|pair| pair[0] & 0xFFFF_FFFF | pair.get(1).map_or(0, |high| high << 32)).collect()
}

/// Packs bits into words, with random bits after the last one.
fn bits(random: &mut Rng, all: impl ExactSizeIterator<Item = bool>) -> Vec<u64> {
    let len = all.len();
    let mut words = vec![0_u64; len.div_ceil(64)];
    all.enumerate().for_each(|(at, bit)| words[at / 64] |= u64::from(bit) << (at % 64));
    if let Some(last) = words.last_mut().filter(|_| !len.is_multiple_of(64)) {
        *last |= random.u64(..) << (len % 64);
    }
    words
}

/// The meaning of the integers in an array that is an operand of an array operator: indices, sizes or split points.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Role {
    /// The integers are indices of an array's elements or of groups, in any order.
    Places,
    /// The integers are indices in ascending order.
    Sorted,
    /// The integers are the sizes of groups of elements.
    Sizes,
    /// The integers are split points of groups: the index of each group's first element, and the end.
    Points,
}

/// Returns a random array of `len` integers with the meaning `role`, for use with another array of `about` elements.
pub(crate) fn integers(random: &mut Rng, scalar: Scalar, role: Role, len: usize, about: usize) -> Array {
    let (numbers, missing): (Vec<usize>, f64) = match role {
        Role::Places if about > 0 => {
            // Now and then, only the first few groups occur.
            let below = if random.u32(..3) == 0 { about.min(3) } else { about };
            ((0..len).map(|_| random.usize(..below)).collect(), *pick(random, &[0.0, 0.0, 0.1, 0.9]))
        }
        Role::Places => (vec![0; len], 1.0),
        Role::Sorted => (random_sample(random, about, len), 0.0),
        Role::Sizes => (points(random, about, len).windows(2).map(|ends| ends[1] - ends[0]).collect(), 0.0),
        Role::Points => (points(random, about, len), 0.0),
    };
    let all: Vec<ScalarValue> = numbers
        .into_iter()
        .map(|number| match scalar {
            Scalar::Int32 => ScalarValue::Int32(number as i32),
            _ => ScalarValue::Int64(number as i64),
        })
        .collect();
    let scalar = if scalar == Scalar::Int32 { scalar } else { Scalar::Int64 };
    with_gaps(random, scalar, &all, missing)
}

/// Returns at most `count` distinct numbers below `below`, in ascending order.
fn random_sample(random: &mut Rng, below: usize, count: usize) -> Vec<usize> {
    let mut sample = random.choose_multiple(0..below, count);
    sample.sort_unstable();
    sample
}

/// Returns the split points of `groups` groups. Some groups are large, some empty.
fn points(random: &mut Rng, elements: usize, groups: usize) -> Vec<usize> {
    let mut points = vec![0];
    for left in (1..groups).rev() {
        let (last, even) = (points[points.len() - 1], elements / groups.max(1));
        let step = match random.u32(..8) {
            0 | 1 => 0,
            2 => random.usize(..=elements - last),
            3 => even + usize::from(left % 2 == 0),
            _ => random.usize(..=2 * even + 1),
        };
        points.push((last + step).min(elements));
    }
    if groups > 0 {
        points.push(elements);
    }
    points
}

/// Returns a random edge that maps `child` elements to `parents` groups.
pub(crate) fn edge(random: &mut Rng, kind: ArrayKind, child: usize, parents: usize) -> Edge {
    if random.u32(..3) > 0 && (parents > 0 || child == 0) {
        let points = points(random, child, parents).into_iter().map(|point| point as i64).collect();
        return Edge::from_split_points(kind, points).unwrap_or(Edge::to_scalar(kind, child));
    }
    let groups = integers(random, Scalar::Int64, Role::Places, child, parents);
    Edge::from_mapping(kind, groups, parents).unwrap_or(Edge::to_scalar(kind, child))
}

/// Returns a random edge of type `of` that maps `child` elements to some groups.
pub(crate) fn edge_of(random: &mut Rng, of: EdgeType, child: usize) -> Edge {
    match of {
        EdgeType::Scalars => Edge::scalars(),
        EdgeType::ToScalar(kind) => Edge::to_scalar(kind, child),
        EdgeType::Arrays(kind) => {
            let parents = random.usize(..=child.min(8)).max(usize::from(child > 0));
            edge(random, kind, child, parents)
        }
    }
}

/// Returns the sizes of all arrays, edges and shapes in `value`.
pub(crate) fn sizes(value: &Value) -> Vec<usize> {
    match value {
        Value::Array(_, array) => vec![array.len()],
        Value::ArrayShape(_, size) => vec![*size],
        Value::Edge(edge) => vec![edge.child_size(), edge.parent_size()],
        // Generated types nest a few levels.
        Value::Tuple(fields) => fields.iter().flat_map(sizes).collect(),
        _ => Vec::new(),
    }
}

/// Returns `value` with `to` elements in each array that has `from`. Keeps the first elements of an array, or with `last` its last elements. If
/// there are too few elements, repeats them.
pub(crate) fn resized(value: &Value, from: usize, to: usize, last: bool) -> Value {
    let begin = if last { from.saturating_sub(to) } else { 0 };
    let places = || (0..to).map(|at| (from > 0).then(|| (begin + at) % from.max(1)));
    match value {
        // Empty lists and the keys of dictionaries cannot be repeated.
        Value::Tuple(_) if value.qtype().as_map().is_some() => value.clone(),
        Value::Tuple(_) if value.list_len() == Some(from) && from > 0 => {
            let elements: Vec<Value> = places().filter_map(|at| value.element(at?)).collect();
            let element = value.qtype();
            element.element().and_then(|element| Value::list(element, elements)).unwrap_or_else(|| value.clone())
        }
        Value::Tuple(_) if value.list_len().is_some() => value.clone(),
        Value::Array(kind, array) if array.len() == from => Value::Array(*kind, array.take(places()).into()),
        Value::ArrayShape(kind, size) if *size == from => Value::ArrayShape(*kind, to),
        Value::Edge(edge) => {
            let kind = edge.kind();
            let made = match edge.form() {
                EdgeForm::ToScalar(size) if *size == from => Ok(Edge::to_scalar(kind, to)),
                EdgeForm::Splits(points) => {
                    let (child, parents) = (edge.child_size(), edge.parent_size());
                    let end = if child == from { to } else { child } as i64;
                    let clipped =
                        |point: &i64| if child == from { (*point - begin as i64).clamp(0, end) } else { *point };
                    let mut points: Vec<i64> = points.iter().map(clipped).collect();
                    // The elements of removed groups move to a neighbouring group.
                    if parents == from && to < parents {
                        points.drain(if last { 1..parents - to + 1 } else { to..parents });
                    }
                    if let [0, .., last] = &mut points[..] {
                        *last = end;
                    }
                    Edge::from_split_points(kind, points)
                }
                EdgeForm::Mapping(groups, parents) => {
                    let groups = if groups.len() == from { groups.take(places()) } else { groups.clone() };
                    let parents = if *parents == from { to } else { *parents };
                    let is_group = |group: &ScalarValue| group.bits() < parents as u64;
                    let groups = groups.iter().map(|group| group.filter(is_group));
                    Edge::from_mapping(kind, Array::from_scalars(Scalar::Int64, groups), parents)
                }
                _ => return value.clone(),
            };
            made.map_or_else(|_| value.clone(), Value::from)
        }
        Value::Tuple(fields) => Value::Tuple(fields.map(|field| resized(field, from, to, last))),
        _ => value.clone(),
    }
}

/// Returns the promises (such as: no element is missing) that hold for `value`, so that an input with this value may make them. The strongest
/// promise is last.
pub(crate) fn kept_promises(value: &Value) -> Vec<Promise> {
    let all = [Promise::Nothing, Promise::Full, Promise::Mapping, Promise::Splits];
    all.into_iter().filter(|promise| promise.is_of(&value.qtype()) && promise.check(value).is_ok()).collect()
}

/// Returns `value` such that `promise` holds: if the promise allows no missing elements, they are filled.
pub(crate) fn keeping(promise: Promise, value: Value) -> Value {
    match (promise, &value) {
        (Promise::Full, Value::Array(kind, array)) => {
            let simple = values::simple(&QType::Scalar(array.scalar()));
            let simple = simple.first().and_then(|value| value.as_scalar().cloned());
            let full = array.iter().map(|element| element.or_else(|| simple.clone()));
            Value::Array(*kind, Array::from_scalars(array.scalar(), full).into())
        }
        _ => value,
    }
}

/// Returns simpler values with the same sizes as `value`, for shrinking; the simplest is first.
pub(crate) fn simpler(value: &Value) -> Vec<Value> {
    let Value::Array(kind, array) = value else { return Vec::new() };
    let of = |element: &dyn Fn(usize) -> Option<ScalarValue>| {
        let made = Array::from_scalars(array.scalar(), (0..array.len()).map(element));
        Value::Array(*kind, made.into())
    };
    let scalars: Vec<ScalarValue> = values::simple(&QType::Scalar(array.scalar()))
        .into_iter()
        .filter_map(|value| value.as_scalar().cloned())
        .collect();
    let same = scalars.iter().map(|scalar| of(&|_| Some(scalar.clone())));
    let gaps = scalars.iter().map(|scalar| of(&|at| array.is_present(at).then(|| scalar.clone())));
    let alone = |at: usize| of(&|other| array.get(other).filter(|_| other == at));
    let few = (0..array.len().min(8)).map(alone);
    same.chain(gaps).chain(few).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_have_the_sizes_that_were_asked_for_and_cut_edges_too() {
        let mut random = Rng::with_seed(3);
        for round in 0..400 {
            let (child, parents) = (random.usize(..70), random.usize(1..9));
            let made = Value::from(edge(&mut random, ArrayKind::Dense, child, parents));
            assert_eq!(sizes(&made), [child, parents]);
            let to = random.usize(..=child);
            if child != parents {
                assert_eq!(sizes(&resized(&made, child, to, round % 2 == 0)), [to, parents]);
                let fewer = random.usize(1..=parents);
                assert_eq!(sizes(&resized(&made, parents, fewer, round % 2 == 0)), [child, fewer]);
            }
            let sizes = integers(&mut random, Scalar::Int64, Role::Sizes, parents, child);
            assert_eq!(sizes.numbers::<i64>().unwrap().iter().sum::<i64>(), child as i64);
        }
    }

    #[test]
    fn arrays_have_the_values_that_lie_in_them() {
        let mut random = Rng::with_seed(4);
        let config = Config::default();
        for scalar in Scalar::ALL {
            for len in [0, 1, 64, 65, 130] {
                let made = array(&mut random, scalar, len, &config);
                assert_eq!((made.scalar(), made.len()), (scalar, len));
                let copy = Array::from_scalars(scalar, made.iter());
                assert!(made.same(&copy), "{made:?}");
                assert_eq!(made.present_count(), made.iter().flatten().count());
            }
        }
    }
}
