//! What a scan keeps from strip to strip: what is known of each group so far.

use super::bits::Bits;
use super::extremes::{Best, Extremes};
use super::groups::each_in_group;
use super::typed::Element;
use super::{Grouping, Scan, Strip, StripData, StripValues};
use cembra_runtime::Scalar;
use std::fmt::Debug;
use std::marker::PhantomData;
use std::ops::Range;

/// A scan over the groups of an array.
///
/// A run is `begin`, then `feed` for one strip after the other.
#[derive(Debug)]
pub struct Scanner(Box<dyn Scanning>);

impl Scanner {
    /// One of elements of a type; none if there is no such scan of them.
    #[must_use]
    pub fn new(scan: Scan, scalar: Scalar) -> Option<Scanner> {
        use Scalar::{Float32, Float64, Int32, Int64};
        Some(Scanner(match (scan, scalar.representation()) {
            (Scan::CumSum, Int32) => carried::<Sum<i32>>(),
            (Scan::CumSum, Int64) => carried::<Sum<i64>>(),
            (Scan::CumSum, Float32) => carried::<Sum<f32>>(),
            (Scan::CumSum, Float64) => carried::<Sum<f64>>(),
            (Scan::CumMin, Int32) => carried::<Extreme<i32, false>>(),
            (Scan::CumMin, Int64) => carried::<Extreme<i64, false>>(),
            (Scan::CumMin, Float32) => carried::<Extreme<f32, false>>(),
            (Scan::CumMin, Float64) => carried::<Extreme<f64, false>>(),
            (Scan::CumMax, Int32) => carried::<Extreme<i32, true>>(),
            (Scan::CumMax, Int64) => carried::<Extreme<i64, true>>(),
            (Scan::CumMax, Float32) => carried::<Extreme<f32, true>>(),
            (Scan::CumMax, Float64) => carried::<Extreme<f64, true>>(),
            (Scan::CumCount, _) => carried::<Counted<false>>(),
            (Scan::Index, _) => carried::<Counted<true>>(),
            _ => return None,
        }))
    }

    /// Begins a run over so many elements in so many groups: one, or as many as the edge has, and no more than an array may
    /// have elements. Allocates only if there are more groups than ever before.
    pub fn begin(&mut self, groups: usize, elements: usize) {
        self.0.begin(groups, elements);
    }

    /// Takes the next strip, which begins at the element `start`: at 0, then where the one before ended. It may have any length.
    /// Its data are of the scanner's type; a strip of another is not taken. As many values are written, of the result's type:
    /// anything where an element is missing or in no group.
    ///
    /// # Panics
    /// Slices are shorter than the strip, split points are not those of the groups and elements of this run, or an element is
    /// in a group that is none of them.
    pub fn feed(&mut self, strip: &Strip<'_>, start: usize, over: &Grouping<'_>, values: &mut StripValues<'_>) {
        self.0.feed(strip, start, *over, values);
    }
}

/// Something that is carried through each group.
trait Carry: Debug {
    /// A type of elements, and of results.
    type Element<'a>: Copy;
    type Value: Element;
    /// What is carried.
    type State: Copy + Debug + Send;
    const START: Self::State;

    /// The elements, if they are of its type.
    fn elements(data: StripData<'_>) -> Option<Self::Element<'_>>;

    /// Goes over an element, which may be missing.
    fn step(state: &mut Self::State, elements: Self::Element<'_>, at: usize, is_there: bool) -> Self::Value;
}

/// A scan, whatever it carries.
trait Scanning: Debug + Send {
    fn begin(&mut self, groups: usize, elements: usize);
    fn feed(&mut self, strip: &Strip<'_>, start: usize, over: Grouping<'_>, values: &mut StripValues<'_>);
}

/// What is carried, of the group that goes on, or of all.
#[derive(Debug)]
struct Carried<C: Carry> {
    states: Vec<C::State>,
    groups: usize,
    /// Which of contiguous groups goes on.
    group: usize,
    kind: PhantomData<fn() -> C>,
}

fn carried<C: Carry + 'static>() -> Box<dyn Scanning> {
    Box::new(Carried::<C> { states: Vec::new(), groups: 0, group: 0, kind: PhantomData })
}

impl<C: Carry> Scanning for Carried<C> {
    fn begin(&mut self, groups: usize, _: usize) {
        self.states.clear();
        self.states.reserve(groups.max(1));
        (self.groups, self.group) = (groups, 0);
    }

    fn feed(&mut self, strip: &Strip<'_>, start: usize, over: Grouping<'_>, values: &mut StripValues<'_>) {
        let (elements, values) = (C::elements(strip.data), C::Value::of_values(values));
        debug_assert!(elements.is_some() && values.is_some(), "a strip of another type: {:?}", strip.data);
        let (Some(elements), Some(values)) = (elements, values) else { return };
        let is_there = Bits::new(strip.presence);
        let mut go = |state: &mut C::State, part: Range<usize>| {
            for at in part {
                values[at] = C::step(state, elements, at, is_there.part(at, 1) != 0);
            }
        };
        match over {
            Grouping::Whole => {
                self.states.resize(1, C::START);
                go(&mut self.states[0], 0..strip.len);
            }
            Grouping::Splits(points) => {
                self.states.resize(1, C::START);
                let mut at = start;
                while at < start + strip.len {
                    if points[self.group] as usize == at {
                        self.states[0] = C::START;
                    }
                    let group_ends = points[self.group + 1] as usize;
                    let end = group_ends.min(start + strip.len);
                    go(&mut self.states[0], at - start..end - start);
                    at = end;
                    if end == group_ends {
                        self.group += 1;
                    }
                }
            }
            Grouping::Mapping { groups, presence } => {
                self.states.resize(self.groups, C::START);
                each_in_group(&groups[..strip.len], Bits::new(presence), |at, group| {
                    go(&mut self.states[group], at..at + 1);
                });
            }
        }
    }
}

/// A running sum.
#[derive(Debug)]
struct Sum<T>(PhantomData<T>);

macro_rules! sums {
    ($($ty:ident in $state:ident from $start:literal, $add:expr, $narrow:expr;)*) => { $(
        impl Carry for Sum<$ty> {
            type Element<'a> = &'a [$ty];
            type Value = $ty;
            type State = $state;
            const START: $state = $start;

            fn elements(data: StripData<'_>) -> Option<&[$ty]> {
                $ty::of(data)
            }

            #[inline(always)]
            fn step(state: &mut $state, elements: &[$ty], at: usize, is_there: bool) -> $ty {
                let add: fn($state, $ty) -> $state = $add;
                if is_there {
                    *state = add(*state, elements[at]);
                }
                let narrow: fn($state) -> $ty = $narrow;
                narrow(*state)
            }
        }
    )* };
}

sums! {
    i32 in i32 from 0, |sum, x| sum.wrapping_add(x), |sum| sum;
    i64 in i64 from 0, |sum, x| sum.wrapping_add(x), |sum| sum;
    f32 in f64 from 0.0, |sum, x| sum + f64::from(x), |sum| sum as f32;
    f64 in f64 from 0.0, |sum, x| sum + x, |sum| sum;
}

/// The best so far.
#[derive(Debug)]
struct Extreme<T, const MAX: bool>(PhantomData<T>);

impl<T: Element, const MAX: bool> Carry for Extreme<T, MAX> {
    type Element<'a> = &'a [T];
    type Value = T;
    type State = Best<T>;
    const START: Best<T> = Extremes::<T, MAX>::NONE;

    fn elements(data: StripData<'_>) -> Option<&[T]> {
        T::of(data)
    }

    #[inline(always)]
    fn step(state: &mut Best<T>, elements: &[T], at: usize, is_there: bool) -> T {
        if is_there {
            Extremes::<T, MAX>::add(state, elements[at]);
        }
        state.best
    }
}

/// How many there are up to an element, itself included; or how many places there are before it.
#[derive(Debug)]
struct Counted<const INDEX: bool>;

impl<const INDEX: bool> Carry for Counted<INDEX> {
    type Element<'a> = ();
    type Value = i64;
    type State = i64;
    const START: i64 = 0;

    fn elements(_: StripData<'_>) -> Option<()> {
        Some(())
    }

    #[inline(always)]
    fn step(state: &mut i64, (): (), _: usize, is_there: bool) -> i64 {
        let before = *state;
        *state += i64::from(is_there || INDEX);
        if INDEX { before } else { *state }
    }
}
