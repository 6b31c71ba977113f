//! Makes scanners. A scanner is the state of a scan, such as a running sum per group, while the array is processed in
//! strips (blocks of consecutive elements).

use super::bits::{Bits, each_one};
use super::extremes::{Extremes, better};
use super::typed::Element;
use super::window::{WINDOW, pick};
use super::{Grouping, Scan, Strip, StripValues};
use cembra_runtime::Scalar;
use multiversion::multiversion;
use std::fmt::Debug;
use std::marker::PhantomData;
use std::ops::Range;

/// The state of a scan over the groups of an array. Strips (blocks of consecutive elements) are fed to it one after the other.
pub type Scanner = Box<dyn ScanState>;

/// Makes the scanner for elements of type `scalar`; `None` if elements of this type have no such scan.
#[must_use]
pub fn scanner(scan: Scan, scalar: Scalar) -> Option<Scanner> {
    use Scalar::{Float32, Float64, Int32, Int64};
    Some(match (scan, scalar.representation()) {
        (Scan::CumSum, Int32) => carried::<Running<i32, Sum>>(),
        (Scan::CumSum, Int64) => carried::<Running<i64, Sum>>(),
        (Scan::CumSum, Float32) => carried::<Running<f32, Sum>>(),
        (Scan::CumSum, Float64) => carried::<Running<f64, Sum>>(),
        (Scan::CumProd, Int32) => carried::<Running<i32, Product>>(),
        (Scan::CumProd, Int64) => carried::<Running<i64, Product>>(),
        (Scan::CumProd, Float32) => carried::<Running<f32, Product>>(),
        (Scan::CumProd, Float64) => carried::<Running<f64, Product>>(),
        (Scan::CumMin, Int32) => carried::<Extreme<i32, false>>(),
        (Scan::CumMin, Int64) => carried::<Extreme<i64, false>>(),
        (Scan::CumMin, Float32) => carried::<Extreme<f32, false>>(),
        (Scan::CumMin, Float64) => carried::<Extreme<f64, false>>(),
        (Scan::CumMax, Int32) => carried::<Extreme<i32, true>>(),
        (Scan::CumMax, Int64) => carried::<Extreme<i64, true>>(),
        (Scan::CumMax, Float32) => carried::<Extreme<f32, true>>(),
        (Scan::CumMax, Float64) => carried::<Extreme<f64, true>>(),
        (Scan::CumCount, _) => carried::<RunningCount>(),
        (Scan::Index, _) => carried::<Positions>(),
        _ => return None,
    })
}

/// A kind of scan, such as a running sum, defined by a state that is updated with each element of a group.
trait ScanKind: Debug {
    /// The data of a strip that this scan reads.
    type Strip<'a>: Copy;
    type Value: Element;
    /// The state of a group after some of its elements.
    type State: Copy + Debug + Send;
    /// True if each result needs the addition or multiplication of the previous one, so that the time depends on their
    /// latency.
    const IS_CHAIN: bool = false;

    fn start() -> Self::State;

    /// The elements of a strip (a block of elements) in the type that this scan reads; `None` if the strip has another type.
    fn strip<'a>(strip: &Strip<'a>) -> Option<Self::Strip<'a>>;

    /// Scans the elements `part` of a strip (a block of elements), which must be in one group, and writes one result
    /// per element.
    fn go(state: &mut Self::State, strip: Self::Strip<'_>, part: Range<usize>, values: &mut [Self::Value]);

    /// The elements of a strip (a block of elements) that `step` must be called for, as bits. Other elements have no
    /// result.
    fn visits<'a>(strip: Self::Strip<'a>) -> Bits<'a>;

    /// Scans the element at index `at` of a strip (a block of elements), and returns the result for this element.
    fn step(state: &mut Self::State, strip: Self::Strip<'_>, at: usize) -> Self::Value;
}

/// The state of a scan, such as a running sum per group. Strips (blocks of consecutive elements) are fed to it one after the other.
///
/// A run is `begin`, then `feed` for one strip after the other.
pub trait ScanState: Debug + Send {
    /// The bytes of memory for the state of one group.
    #[must_use]
    fn group_bytes(&self) -> usize;

    /// Begins a scan of `elements` elements in `groups` groups. The number of groups must be 1 or that of the edge (the
    /// mapping from elements to groups), and not above the limit for arrays. Allocates memory only if there are more
    /// groups than in all runs before.
    fn begin(&mut self, groups: usize, elements: usize);

    /// Scans the next strip (a block of elements). Its first element has the index `start`: 0, then the end of the previous strip. A strip may have
    /// any length. Its data must be of the scanner's type; a strip of another type is ignored. Writes one value of the result's type for each
    /// element. The value is arbitrary if the element is missing or in no group.
    ///
    /// # Panics
    /// If slices are shorter than the strip, split points are not those of the groups and elements of this run, or an element
    /// is in a group that the run does not have.
    fn feed(&mut self, strip: &Strip<'_>, start: usize, over: &Grouping<'_>, values: &mut StripValues<'_>);
}

/// The states of a scan: the state of the current contiguous group, or one state per group if a group is given for each
/// element.
#[derive(Debug)]
struct ScanStates<C: ScanKind> {
    states: Vec<C::State>,
    groups: usize,
    /// The index of the current contiguous group.
    group: usize,
    kind: PhantomData<fn() -> C>,
}

fn carried<C: ScanKind + 'static>() -> Scanner {
    Box::new(ScanStates::<C> { states: Vec::new(), groups: 0, group: 0, kind: PhantomData })
}

impl<C: ScanKind> ScanState for ScanStates<C> {
    fn group_bytes(&self) -> usize {
        size_of::<C::State>()
    }

    fn begin(&mut self, groups: usize, _: usize) {
        self.states.clear();
        self.states.reserve(groups.max(1));
        (self.groups, self.group) = (groups, 0);
    }

    fn feed(&mut self, strip: &Strip<'_>, start: usize, over: &Grouping<'_>, values: &mut StripValues<'_>) {
        let (taken, values) = (C::strip(strip), C::Value::of_values(values));
        debug_assert!(taken.is_some() && values.is_some(), "a block of elements has another type: {:?}", strip.data);
        if let (Some(taken), Some(values)) = (taken, values) {
            let feed = if C::IS_CHAIN { feed_chain::<C> } else { feed::<C> };
            feed(self, taken, start, *over, &mut values[..strip.len]);
        }
    }
}

/// Scans the next strip. The code is compiled for several sets of vector instructions, and the widest set that the
/// processor has is used.
#[multiversion(targets("x86_64+avx512f+bmi1+bmi2+lzcnt+popcnt", "x86_64+avx2+fma+bmi1+bmi2+lzcnt+popcnt"))]
fn feed<C: ScanKind>(
    carried: &mut ScanStates<C>,
    strip: C::Strip<'_>,
    start: usize,
    over: Grouping<'_>,
    values: &mut [C::Value],
) {
    carried.take(strip, start, over, values);
}

/// Scans the next strip, for scans whose results depend on each other (`IS_CHAIN`). The code is not compiled for
/// 512-bit vectors, because some processors have only slow adders in that mode.
#[multiversion(targets("x86_64+avx2+fma+bmi1+bmi2+lzcnt+popcnt"))]
fn feed_chain<C: ScanKind>(
    carried: &mut ScanStates<C>,
    strip: C::Strip<'_>,
    start: usize,
    over: Grouping<'_>,
    values: &mut [C::Value],
) {
    carried.take(strip, start, over, values);
}

impl<C: ScanKind> ScanStates<C> {
    #[inline(always)]
    fn take(&mut self, strip: C::Strip<'_>, start: usize, over: Grouping<'_>, values: &mut [C::Value]) {
        match over {
            Grouping::Whole => {
                self.states.resize(1, C::start());
                C::go(&mut self.states[0], strip, 0..values.len(), values);
            }
            Grouping::Splits(points) => {
                self.states.resize(1, C::start());
                let (mut at, end) = (start, start + values.len());
                let mut state = self.states[0];
                while at < end {
                    if points[self.group] as usize == at {
                        state = C::start();
                    }
                    let group_ends = points[self.group + 1] as usize;
                    let part = at - start..group_ends.min(end) - start;
                    C::go(&mut state, strip, part.clone(), &mut values[part.clone()]);
                    at = start + part.end;
                    self.group += usize::from(at == group_ends);
                }
                self.states[0] = state;
            }
            Grouping::Mapping { groups, presence } => {
                self.states.resize(self.groups, C::start());
                let (groups, is_in, visits) = (&groups[..values.len()], Bits::new(presence), C::visits(strip));
                for (at, word) in is_in.parts(0, groups.len()) {
                    each_one(word & visits.word(at), |one| {
                        let state = &mut self.states[groups[at + one] as usize];
                        values[at + one] = C::step(state, strip, at + one);
                    });
                }
            }
        }
    }
}

/// A running sum or product. Floats accumulate in FLOAT64, in order.
#[derive(Debug)]
struct Running<T, O>(PhantomData<(T, O)>);

/// The operation of a running sum.
#[derive(Debug)]
struct Sum;

/// The operation of a running product.
#[derive(Debug)]
struct Product;

/// An operation of running sums or products on elements of type `T`: adding the next element, or multiplying by it.
trait Operation<T>: Debug {
    /// The type in which the sum or product accumulates.
    type State: Copy + Debug + Send;
    const START: Self::State;
    /// The number that leaves a sum or product unchanged, even the sign of a zero.
    const NEUTRAL: T;
    fn take(state: Self::State, value: T) -> Self::State;
    fn value(state: Self::State) -> T;
}

macro_rules! operations {
    ($($operation:ident of $ty:ident in $state:ident from $start:literal, $neutral:literal, $take:expr, $value:expr;)*) => { $(
        impl Operation<$ty> for $operation {
            type State = $state;
            const START: $state = $start;
            const NEUTRAL: $ty = $neutral;
            #[inline(always)]
            fn take(state: $state, value: $ty) -> $state {
                let take: fn($state, $ty) -> $state = $take;
                take(state, value)
            }
            #[inline(always)]
            fn value(state: $state) -> $ty {
                let value: fn($state) -> $ty = $value;
                value(state)
            }
        }
    )* };
}

operations! {
    Sum of i32 in i32 from 0, 0, |sum, x| sum.wrapping_add(x), |sum| sum;
    Sum of i64 in i64 from 0, 0, |sum, x| sum.wrapping_add(x), |sum| sum;
    Sum of f32 in f64 from 0.0, -0.0, |sum, x| sum + f64::from(x), |sum| sum as f32;
    Sum of f64 in f64 from 0.0, -0.0, |sum, x| sum + x, |sum| sum;
    Product of i32 in i32 from 1, 1, |product, x| product.wrapping_mul(x), |product| product;
    Product of i64 in i64 from 1, 1, |product, x| product.wrapping_mul(x), |product| product;
    Product of f32 in f64 from 1.0, 1.0, |product, x| product * f64::from(x), |product| product as f32;
    Product of f64 in f64 from 1.0, 1.0, |product, x| product * x, |product| product;
}

impl<T: Element, O: Operation<T> + 'static> ScanKind for Running<T, O> {
    type Strip<'a> = (&'a [T], Bits<'a>);
    type Value = T;
    type State = O::State;
    const IS_CHAIN: bool = true;

    fn start() -> O::State {
        O::START
    }

    fn strip<'a>(strip: &Strip<'a>) -> Option<Self::Strip<'a>> {
        T::of(strip.data).map(|values| (values, Bits::new(strip.presence)))
    }

    #[inline(always)]
    fn go(state: &mut O::State, (elements, is_there): Self::Strip<'_>, part: Range<usize>, values: &mut [T]) {
        let mut now = *state;
        if is_there.is_full() {
            for (value, element) in values.iter_mut().zip(&elements[part]) {
                now = O::take(now, *element);
                *value = O::value(now);
            }
        } else {
            // No branch depends on presence: a missing element is replaced by the neutral number.
            for (values, at) in values.chunks_mut(WINDOW).zip(part.step_by(WINDOW)) {
                let (word, elements) = (is_there.word(at), &elements[at..at + values.len()]);
                for (place, (value, element)) in values.iter_mut().zip(elements).enumerate() {
                    *value = if word & 1 << place != 0 { *element } else { O::NEUTRAL };
                }
                for value in values {
                    now = O::take(now, *value);
                    *value = O::value(now);
                }
            }
        }
        *state = now;
    }

    #[inline(always)]
    fn visits<'a>((_, is_there): Self::Strip<'a>) -> Bits<'a> {
        is_there
    }

    #[inline(always)]
    fn step(state: &mut O::State, (elements, _): Self::Strip<'_>, at: usize) -> T {
        *state = O::take(*state, elements[at]);
        O::value(*state)
    }
}

/// A running minimum, or maximum if `MAX` is set.
#[derive(Debug)]
struct Extreme<T, const MAX: bool>(PhantomData<T>);

impl<T: Element, const MAX: bool> Extreme<T, MAX> {
    const INITIAL: T = Extremes::<T, MAX>::INITIAL;

    /// True if an element may replace the best so far: it is better, or one of both is a NaN.
    #[inline(always)]
    fn may_be_better(new: T, best: T) -> bool {
        let is_no_better = if MAX { new <= best } else { new >= best };
        !is_no_better
    }

    /// Writes, for each of some elements, the best present element up to it, and returns the last of these. `word` has
    /// a bit for each element that is present.
    #[inline(always)]
    fn rise(mut best: T, elements: &[T], word: u64, values: &mut [T]) -> T {
        for (place, (value, element)) in values.iter_mut().zip(elements).enumerate() {
            let new = if word & 1 << place != 0 { *element } else { Self::INITIAL };
            best = better::<T, MAX>(best, new);
            *value = best;
        }
        best
    }
}

impl<T: Element, const MAX: bool> ScanKind for Extreme<T, MAX> {
    type Strip<'a> = (&'a [T], Bits<'a>);
    type Value = T;
    type State = T;

    fn start() -> T {
        Self::INITIAL
    }

    fn strip<'a>(strip: &Strip<'a>) -> Option<Self::Strip<'a>> {
        T::of(strip.data).map(|values| (values, Bits::new(strip.presence)))
    }

    #[inline(always)]
    fn go(state: &mut T, (elements, is_there): Self::Strip<'_>, part: Range<usize>, values: &mut [T]) {
        let mut best = *state;
        let (windows, rest) = elements[part.clone()].as_chunks::<WINDOW>();
        let (to_windows, to_rest) = values.as_chunks_mut::<WINDOW>();
        for ((window, values), at) in windows.iter().zip(to_windows).zip(part.clone().step_by(WINDOW)) {
            let word = is_there.word(at);
            let may_rise = |any: bool, place| any | Self::may_be_better(pick(window, word, place, Self::INITIAL), best);
            if (0..WINDOW).fold(false, may_rise) {
                best = Self::rise(best, window, word, values);
            } else {
                // No element is better than all before, as in most windows of most arrays.
                values.fill(best);
            }
        }
        *state = Self::rise(best, rest, is_there.word(part.end - rest.len()), to_rest);
    }

    #[inline(always)]
    fn visits<'a>((_, is_there): Self::Strip<'a>) -> Bits<'a> {
        is_there
    }

    #[inline(always)]
    fn step(state: &mut T, (elements, _): Self::Strip<'_>, at: usize) -> T {
        *state = better::<T, MAX>(*state, elements[at]);
        *state
    }
}

/// A running count of present elements, the element itself included.
#[derive(Debug)]
struct RunningCount;

impl ScanKind for RunningCount {
    type Strip<'a> = Bits<'a>;
    type Value = i64;
    type State = i64;

    fn start() -> i64 {
        0
    }

    fn strip<'a>(strip: &Strip<'a>) -> Option<Bits<'a>> {
        Some(Bits::new(strip.presence))
    }

    #[inline(always)]
    fn go(state: &mut i64, is_there: Bits<'_>, part: Range<usize>, values: &mut [i64]) {
        for (values, at) in values.chunks_mut(WINDOW).zip(part.step_by(WINDOW)) {
            let word = is_there.part(at, values.len());
            for (place, value) in values.iter_mut().enumerate() {
                *value = *state + i64::from((word & u64::MAX >> (63 - place)).count_ones());
            }
            *state += i64::from(word.count_ones());
        }
    }

    #[inline(always)]
    fn visits<'a>(is_there: Self::Strip<'a>) -> Bits<'a> {
        is_there
    }

    #[inline(always)]
    fn step(state: &mut i64, _: Bits<'_>, _: usize) -> i64 {
        *state += 1;
        *state
    }
}

/// The position of each element in its group, as a scan.
#[derive(Debug)]
struct Positions;

impl ScanKind for Positions {
    type Strip<'a> = ();
    type Value = i64;
    type State = i64;

    fn start() -> i64 {
        0
    }

    fn strip(_: &Strip<'_>) -> Option<()> {
        Some(())
    }

    #[inline(always)]
    fn go(state: &mut i64, (): (), _: Range<usize>, values: &mut [i64]) {
        values.iter_mut().zip(*state..).for_each(|(value, position)| *value = position);
        *state += values.len() as i64;
    }

    #[inline(always)]
    fn visits<'a>((): Self::Strip<'a>) -> Bits<'a> {
        Bits::new(None)
    }

    #[inline(always)]
    fn step(state: &mut i64, (): (), _: usize) -> i64 {
        let before = *state;
        *state += 1;
        before
    }
}
