//! Compares accumulators and scanners with the kernels on whole arrays: every operator that works on strips, on every type,
//! over every grouping, with arrays cut into strips anywhere.

use super::{
    Accumulator, Fold, Grouping, Quantity, Scan, Scanner, Strip, StripData, StripMethod, StripValues, accumulator,
    scanner,
};
use crate::array::groups::Groups;
use crate::definition::OverArrays;
use crate::typing::Argument;
use crate::{ArrayOperands, ArrayOperator, OpDef, Registry};
use cembra_runtime::{ArrayKind, CHAINS, QType, SUM_BLOCK, Scalar};
use cembra_value::{Array, ArrayData, Edge, EdgeForm, Number, ScalarValue, Value};
use std::ops::Range;

/// The operators that work on strips (blocks of consecutive elements), with their names and kernels.
fn operators() -> impl Iterator<Item = (&'static str, &'static ArrayOperator, StripMethod)> {
    let in_strips = |def: &'static OpDef| match &def.over_arrays {
        OverArrays::Kernel(operator) => def.in_strips.map(|in_strips| (def.name, *operator, in_strips)),
        _ => None,
    };
    Registry::standard().iter().filter_map(move |(_, def)| in_strips(def))
}

/// A distribution of elements.
#[derive(Clone, Copy, Debug)]
enum TestDistribution {
    /// Test data of mixed numbers, whose sums round.
    Mixed,
    /// Test data of mixed numbers, with a NaN or an infinity now and then.
    Rare,
    /// Test data that are mostly zeros of both signs.
    Zeros,
    /// Test data that rise and fall further and further.
    Waves,
}

const LIKES: [TestDistribution; 4] =
    [TestDistribution::Mixed, TestDistribution::Rare, TestDistribution::Zeros, TestDistribution::Waves];

fn float(like: TestDistribution, at: usize) -> f64 {
    match (like, fastrand::usize(..400)) {
        (TestDistribution::Rare, draw @ 0..3) => [f64::NAN, f64::INFINITY, f64::NEG_INFINITY][draw],
        (TestDistribution::Zeros, 0) => fastrand::f64() - 0.5,
        (TestDistribution::Zeros, draw) => [0.0, -0.0][draw % 2],
        (TestDistribution::Waves, _) => (at as f64 / 50.0).sin() * at as f64,
        (_, draw) => (fastrand::f64() - 0.5) * 2_f64.powi(draw as i32 / 10),
    }
}

/// `len` random bits, about `percent` of a hundred of which are ones.
fn bits(len: usize, percent: u32) -> Vec<u64> {
    let word = |_| (0..64).fold(0, |word, at| word | u64::from(fastrand::u32(..100) < percent) << at);
    (0..len.div_ceil(64)).map(word).collect()
}

/// Makes an array of `len` random elements, `holes` percent of which are missing. The data of missing elements are
/// arbitrary.
fn array(scalar: Scalar, len: usize, like: TestDistribution, holes: u32) -> Array {
    fn of<T: Number>(scalar: Scalar, len: usize, presence: Option<Vec<u64>>, next: impl Fn(usize) -> T) -> Array {
        let write = |all: &mut [T]| all.iter_mut().enumerate().for_each(|(at, to)| *to = next(at));
        Array::of_numbers(scalar, len, presence, write).unwrap()
    }
    let presence = (holes > 0).then(|| bits(len, 100 - holes));
    match scalar.representation() {
        Scalar::Unit => Array::from_parts(scalar, len, ArrayData::Units, presence).unwrap(),
        Scalar::Boolean => {
            let data = ArrayData::Bits(bits(len, [0, 1, 50, 99, 100][fastrand::usize(..5)]).into());
            Array::from_parts(scalar, len, data, presence).unwrap()
        }
        Scalar::Int32 => of(scalar, len, presence, |_| fastrand::i32(-9..9) << fastrand::u32(..29)),
        Scalar::Int64 => of(scalar, len, presence, |_| fastrand::i64(..) >> fastrand::u32(..60)),
        Scalar::UInt64 => of(scalar, len, presence, |_| fastrand::u64(..)),
        Scalar::Float32 => of(scalar, len, presence, |at| float(like, at) as f32),
        Scalar::Float64 => of(scalar, len, presence, |at| float(like, at)),
        _ => Array::from_scalars(scalar, (0..len).map(|at| Some(ScalarValue::Text("x".into())).filter(|_| at % 3 > 0))),
    }
}

/// Makes an edge to contiguous groups, whose sizes are drawn from `sizes`; some groups are empty.
fn splits(len: usize, sizes: &[usize]) -> Value {
    let mut points = vec![0];
    let mut at = 0;
    while at < len {
        let size = if fastrand::u32(..8) == 0 { 0 } else { sizes[fastrand::usize(..sizes.len())] };
        at = len.min(at + size);
        points.push(at as i64);
    }
    points.extend(vec![len as i64; fastrand::usize(..3)]);
    Edge::from_split_points(ArrayKind::Dense, points).unwrap().into()
}

/// Makes an edge that gives the group of each element, with runs of elements in one group. For `holes` percent of the
/// elements, which are in no group, the group is an invalid number.
fn mapping(len: usize, parents: usize, holes: u32) -> Value {
    let mut last = 0;
    let presence = (holes > 0).then(|| bits(len, 100 - holes));
    let is_there = presence.clone();
    let groups = Array::of_numbers(Scalar::Int64, len, presence, |groups: &mut [i64]| {
        for (at, group) in groups.iter_mut().enumerate() {
            if at % 90 < 70 {
                last = fastrand::usize(..parents);
            }
            let is_in = is_there.as_ref().is_none_or(|bits| bits[at / 64] >> (at % 64) & 1 != 0);
            *group = if is_in { last as i64 } else { -7 };
        }
    });
    Edge::from_mapping(ArrayKind::Dense, groups.unwrap(), parents).unwrap().into()
}

/// The bits in the range `part`, with arbitrary bits after the last.
fn part_of_bits(bits: &[u64], part: Range<usize>) -> Vec<u64> {
    let bit = |at: usize| bits.get(at / 64).map_or(fastrand::bool(), |word| word >> (at % 64) & 1 != 0);
    let bit = |at: usize| if at < part.len() { bit(part.start + at) } else { fastrand::bool() };
    let word = |word: usize| (0..64).fold(0, |bits, at| bits | u64::from(bit(64 * word + at)) << at);
    (0..part.len().div_ceil(64)).map(word).collect()
}

/// Cuts an array into strips of random lengths, and calls `see` with each strip, its start, and its groups.
fn each_strip(array: &Array, edge: &Value, mut see: impl FnMut(&Strip<'_>, usize, &Grouping<'_>)) {
    fn numbers<T: Number>(array: &Array, part: Range<usize>) -> &[T] {
        &array.numbers::<T>().unwrap()[part]
    }
    let longest = [7, 64, 100, 1024, 5000, array.len()][fastrand::usize(..6)];
    let unit = [1, 1, 64][fastrand::usize(..3)];
    let mut start = 0;
    while start < array.len() {
        let len = (array.len() - start).min((fastrand::usize(..=longest) / unit * unit).max(1));
        let part = start..start + len;
        let truths = array.bits().map(|bits| part_of_bits(bits, part.clone())).unwrap_or_default();
        let data = match array.scalar().representation() {
            Scalar::Boolean => StripData::Bits(&truths),
            Scalar::Int32 => StripData::Int32(numbers(array, part.clone())),
            Scalar::Int64 => StripData::Int64(numbers(array, part.clone())),
            Scalar::UInt64 => StripData::UInt64(numbers(array, part.clone())),
            Scalar::Float32 => StripData::Float32(numbers(array, part.clone())),
            Scalar::Float64 => StripData::Float64(numbers(array, part.clone())),
            _ => StripData::Units,
        };
        let presence = array.presence().map(|bits| part_of_bits(bits, part.clone()));
        let strip = Strip { data, presence: presence.as_deref(), len };
        let form = if let Value::Edge(edge) = edge { edge.form() } else { &EdgeForm::ToScalar(0) };
        match form {
            EdgeForm::Splits(points) => see(&strip, start, &Grouping::Splits(points)),
            EdgeForm::Mapping(groups, _) => {
                let presence = groups.presence().map(|bits| part_of_bits(bits, part.clone()));
                let groups = &groups.numbers::<i64>().unwrap()[part];
                see(&strip, start, &Grouping::Mapping { groups, presence: presence.as_deref() });
            }
            _ => see(&strip, start, &Grouping::Whole),
        }
        start += len;
    }
}

/// A buffer for results of a type, for all result types.
struct Room {
    scalar: Scalar,
    words: Vec<u64>,
    halves: Vec<i32>,
    singles: Vec<f32>,
    doubles: Vec<f64>,
    wholes: Vec<i64>,
}

impl Room {
    fn new(scalar: Scalar, len: usize) -> Self {
        let (words, singles, doubles) = (vec![7; len], vec![7.0; len], vec![7.0; len]);
        Room { scalar, words, halves: vec![7; len], singles, doubles, wholes: vec![7; len] }
    }

    fn from(&mut self, at: usize) -> StripValues<'_> {
        match self.scalar.representation() {
            Scalar::Unit => StripValues::Units,
            Scalar::Boolean => StripValues::Bits(&mut self.words),
            Scalar::Int32 => StripValues::Int32(&mut self.halves[at..]),
            Scalar::Int64 => StripValues::Int64(&mut self.wholes[at..]),
            Scalar::Float32 => StripValues::Float32(&mut self.singles[at..]),
            _ => StripValues::Float64(&mut self.doubles[at..]),
        }
    }

    fn bits_at(&self, at: usize) -> u64 {
        match self.scalar.representation() {
            Scalar::Unit => 1,
            Scalar::Boolean => self.words[at / 64] >> (at % 64) & 1,
            Scalar::Int32 => u64::from(self.halves[at].cast_unsigned()),
            Scalar::Int64 => self.wholes[at].cast_unsigned(),
            Scalar::Float32 => u64::from(self.singles[at].to_bits()),
            _ => self.doubles[at].to_bits(),
        }
    }

    fn array(&self, len: usize, presence: &[u64]) -> Array {
        let is_there = |at: usize| presence[at / 64] >> (at % 64) & 1 != 0;
        let element = |at: usize| match self.scalar {
            Scalar::Unit => ScalarValue::Unit,
            scalar => ScalarValue::from_bits(scalar, self.bits_at(at)).unwrap(),
        };
        Array::from_scalars(self.scalar, (0..len).map(|at| is_there(at).then(|| element(at))))
    }
}

/// Compares the results of some groups with the expected ones.
fn check(expected: &Array, groups: Range<usize>, fold: Fold, found: &Accumulator, what: &dyn Fn() -> String) {
    let mut room = Room::new(expected.scalar(), groups.len());
    let mut presence = vec![0; groups.len().div_ceil(64)];
    found.result(fold.finish, groups.clone(), &mut room.from(0), Some(&mut presence));
    let found = room.array(groups.len(), &presence);
    let expected = expected.take(groups.clone().map(Some));
    assert!(found.same(&expected), "{} groups {groups:?}: {found} is not {expected}", what());
}

fn folds(
    operator: &'static ArrayOperator,
    fold: Fold,
    name: &str,
    array: &Array,
    edge: &Value,
    accumulator: &mut Accumulator,
) {
    let value = Value::Array(ArrayKind::Dense, array.clone().into());
    let types = [value.qtype(), edge.qtype()];
    let ret = (operator.typing)("", &types.each_ref().map(|qtype| Argument { qtype, literal: None })).unwrap().ret;
    let expected = match (operator.evaluate)(&ArrayOperands::of_call(&[value, edge.clone()]), &ret).unwrap() {
        Value::Array(_, array) => (*array).clone(),
        value => Array::from_scalars(ret.of_each().scalar().unwrap(), [value.as_scalar().cloned()]),
    };
    let groups = expected.len();
    let what = || format!("{name} of {} {} over {edge}", array.scalar(), array.len());
    accumulator.begin(groups, array.len());
    let mut known = 0;
    each_strip(array, edge, |strip, start, into| {
        accumulator.feed(strip, start, into);
        if let Grouping::Splits(points) = into {
            let new = points[known + 1..].iter().take_while(|end| **end as usize <= start + strip.len).count();
            check(&expected, known..known + new, fold, accumulator, &what);
            known += new;
        }
    });
    accumulator.end();
    check(&expected, 0..groups, fold, accumulator, &what);
    let from = fastrand::usize(..=groups);
    check(&expected, from..fastrand::usize(from..=groups), fold, accumulator, &what);
}

fn scans(operator: &'static ArrayOperator, name: &str, array: &Array, edge: &Value, scanner: &mut Scanner) {
    let value = Value::Array(ArrayKind::Dense, array.clone().into());
    let edge =
        if let Value::Edge(_) = edge { edge.clone() } else { Edge::to_scalar(ArrayKind::Dense, array.len()).into() };
    let types = [value.qtype(), edge.qtype()];
    let ret = (operator.typing)("", &types.each_ref().map(|qtype| Argument { qtype, literal: None })).unwrap().ret;
    let Value::Array(_, expected) = (operator.evaluate)(&ArrayOperands::of_call(&[value, edge.clone()]), &ret).unwrap()
    else {
        panic!()
    };
    let mut room = Room::new(expected.scalar(), array.len());
    let groups = Groups::of(&edge, array.len()).unwrap();
    scanner.begin(groups.count(), array.len());
    each_strip(array, &edge, |strip, start, over| scanner.feed(strip, start, over, &mut room.from(start)));
    let presence = groups.presence(array).unwrap_or_else(|| vec![u64::MAX; array.len().div_ceil(64)]);
    let found = room.array(array.len(), &presence);
    let at = (0..array.len()).find(|at| !found.value(*at).same(&expected.value(*at)));
    let what = || format!("{name} of {} {} over {edge}", array.scalar(), array.len());
    assert!(found.same(&expected), "{} at {at:?}: {found} is not {expected}", what());
}

/// Compares all operators with their kernels, on arrays of the lengths `lengths` and groups that `edges` make.
fn hold(lengths: &[usize], edges: &[&dyn Fn(usize) -> Value]) {
    for (name, operator, in_strips) in operators() {
        for scalar in Scalar::ALL {
            let array_type = QType::Array(ArrayKind::Dense, scalar);
            let edge_type = QType::Edge(cembra_runtime::EdgeType::ToScalar(ArrayKind::Dense));
            let args = [&array_type, &edge_type].map(|qtype| Argument { qtype, literal: None });
            if (operator.typing)(name, &args).is_err() {
                continue;
            }
            let mut accumulator = match in_strips {
                StripMethod::Fold(fold) => accumulator(fold.gathers, scalar),
                StripMethod::Scan(_) => None,
            };
            let mut scanner = match in_strips {
                StripMethod::Fold(_) => None,
                StripMethod::Scan(scan) => scanner(scan, scalar),
            };
            for (turn, len) in lengths.iter().enumerate() {
                for (place, edge) in edges.iter().enumerate() {
                    let turn = turn + place;
                    let array = array(scalar, *len, LIKES[turn % 4], [0, 20, 0, 99, 0, 60, 100][turn % 7]);
                    let edge = edge(*len);
                    match in_strips {
                        StripMethod::Fold(fold) => {
                            folds(operator, fold, name, &array, &edge, accumulator.as_mut().unwrap());
                        }
                        StripMethod::Scan(_) => scans(operator, name, &array, &edge, scanner.as_mut().unwrap()),
                    }
                }
            }
        }
    }
}

const HOLES: [u32; 4] = [0, 30, 0, 100];

#[test]
fn short_arrays_give_the_same_bits() {
    fastrand::seed(1);
    let lengths: Vec<usize> = (0..70).chain(std::iter::repeat_with(|| fastrand::usize(70..300)).take(40)).collect();
    let hole = || HOLES[fastrand::usize(..4)];
    hold(
        &lengths,
        &[
            &|_| Value::Unspecified,
            &|len| splits(len, &[1, 2, 5, 12]),
            &|len| splits(len, &[63, 64, 65, 1, 100]),
            &|len| mapping(len, 1, hole()),
            &|len| mapping(len, 7, hole()),
        ],
    );
}

#[test]
fn long_arrays_give_the_same_bits() {
    long_arrays(&[65_535, 65_600]);
}

#[test]
fn longer_arrays_give_the_same_bits() {
    long_arrays(&[131_073]);
}

fn long_arrays(lengths: &[usize]) {
    fastrand::seed(2);
    hold(
        lengths,
        &[
            &|_| Value::Unspecified,
            &|len| splits(len, &[1, 200, 63, 64, 65, 128, 1000]),
            &|len| splits(len, &[65_537, 3, 20_000]),
            &|len| mapping(len, 1000, 0),
            &|len| mapping(len, 3, 30),
        ],
    );
}

#[test]
fn what_aggregations_share_is_gathered_once() {
    for (name, _, in_strips) in operators() {
        let StripMethod::Fold(fold) = in_strips else { continue };
        if matches!(name, "math.sum" | "math._sum_sparse" | "math.mean") {
            assert_eq!(fold.gathers.of(Scalar::Float32), Quantity::Sum, "{name}");
        }
    }
}

#[test]
fn only_what_has_an_order_is_scanned() {
    assert!(scanner(Scan::CumMin, Scalar::Text).is_none());
    assert!(scanner(Scan::CumCount, Scalar::Text).is_some());
    assert!(accumulator(Quantity::Min, Scalar::UInt64).is_none());
}

/// Adds the elements of a strip to the accumulators of a sum, as compiled code does.
fn add_to(chains: &mut [f64; CHAINS], strip: &Strip<'_>) {
    for at in 0..strip.len {
        let is_there = strip.presence.is_none_or(|bits| bits[at / 64] >> (at % 64) & 1 == 1);
        chains[at % CHAINS] += match strip.data {
            StripData::Float64(all) if is_there => all[at],
            StripData::Float32(all) if is_there => f64::from(all[at]),
            _ => 0.0,
        };
    }
}

#[test]
fn strips_may_be_added_to_sums_by_others() {
    fastrand::seed(3);
    let lengths = [65, 128, 1000, 1025, 65_535, 65_536, 65_537, 131_100, 65, 3000, 1, 2, 7, 31, 50, 63, 64];
    let mut others = 0;
    for (turn, len) in std::iter::repeat_n(lengths, 3).flatten().enumerate() {
        for scalar in [Scalar::Float32, Scalar::Float64] {
            let array = array(scalar, len, LIKES[turn % 4], [0, 20, 0, 60, 100][turn % 5]);
            let mut fed = accumulator(Quantity::Sum, scalar).unwrap();
            let mut added = accumulator(Quantity::Sum, scalar).unwrap();
            fed.begin(1, len);
            added.begin(1, len);
            each_strip(&array, &Value::Unspecified, |strip, start, into| {
                fed.feed(strip, start, into);
                match added.chains(strip.len) {
                    Some(chains) if fastrand::u8(..4) > 0 => {
                        add_to(chains, strip);
                        added.added(strip.len, strip.presence);
                        others += 1;
                    }
                    Some(_) => added.feed(strip, start, into),
                    None => {
                        let crosses = start % SUM_BLOCK + strip.len > SUM_BLOCK;
                        let is_part = len <= CHAINS && strip.len < len;
                        assert!(crosses || is_part || !start.is_multiple_of(CHAINS), "{start} of {len}");
                        added.feed(strip, start, into);
                    }
                }
            });
            fed.end();
            added.end();
            for finish in [super::Finish::Sparse, super::Finish::Mean, super::Finish::Count] {
                let of = if finish == super::Finish::Count { Scalar::Int64 } else { scalar };
                let results = [&fed, &added].map(|accumulator| {
                    let (mut room, mut presence) = (Room::new(of, 1), [0]);
                    accumulator.result(finish, 0..1, &mut room.from(0), Some(&mut presence));
                    room.array(1, &presence)
                });
                assert!(results[0].same(&results[1]), "{finish:?} of {scalar} {len}: {results:?}");
            }
        }
    }
    assert!(others > 100, "{others}");
}

#[test]
fn others_add_to_sums_of_one_group_alone() {
    let chains = |gathers, scalar, elements, len| {
        let mut accumulator = accumulator(gathers, scalar).unwrap();
        accumulator.begin(1, elements);
        accumulator.chains(len).is_some()
    };
    assert!(chains(Quantity::Sum, Scalar::Float64, 65, 65));
    assert!(chains(Quantity::Sum, Scalar::Float64, 64, 64));
    assert!(!chains(Quantity::Sum, Scalar::Float64, 64, 63), "these are added one after the other");
    assert!(!chains(Quantity::Sum, Scalar::Float64, 65, 66), "there are not so many");
    assert!(!chains(Quantity::Sum, Scalar::Float64, 2 * SUM_BLOCK, SUM_BLOCK + 1));
    for (gathers, scalar) in [
        (Quantity::Product, Scalar::Float64),
        (Quantity::Count, Scalar::Float64),
        (Quantity::Sum, Scalar::Int64),
        (Quantity::Min, Scalar::Float32),
    ] {
        assert!(!chains(gathers, scalar, 1000, 640), "{gathers:?} of {scalar}");
    }
}
