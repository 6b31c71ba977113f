//! The operands of a kernel on whole arrays, with the memory limit of its evaluation and a check for cancellation. A
//! kernel that takes more than about ten nanoseconds per element checks for cancellation at intervals; if the
//! evaluation was cancelled, the kernel's partial results are dropped. If the number of elements depends on the value
//! of an operand, and not on the size of an array, a kernel checks the limit before it allocates.

use super::groups::{Groups, Members};
use super::limits;
use cembra_runtime::{Fault, FaultKind};
use cembra_value::Value;
use smallvec::{SmallVec, smallvec};
use std::cmp::Ordering;
use std::fmt;
use std::ops::Deref;

/// The most elements that a kernel processes between two checks for cancellation.
const PIECE: usize = 1 << 16;

/// The operands of a kernel on whole arrays, and the limits of its evaluation.
#[derive(Clone, Copy)]
pub struct ArrayOperands<'a> {
    values: &'a [Value],
    is_cancelled: &'a dyn Fn() -> bool,
    room: u64,
}

impl<'a> ArrayOperands<'a> {
    /// The fault of a kernel that would need more memory than its evaluation may use.
    pub const NO_MEMORY: Fault = Fault { kind: FaultKind::ArenaLimit, operands: [0; 2] };

    /// The operands `values` of a kernel in an evaluation that may use `room` bytes. `is_cancelled` returns true once the evaluation is cancelled.
    #[must_use]
    pub fn new(values: &'a [Value], is_cancelled: &'a dyn Fn() -> bool, room: u64) -> Self {
        ArrayOperands { values, is_cancelled, room }
    }

    /// The operands `values` of a kernel, for a call that is never cancelled and has no memory limit.
    #[must_use]
    pub fn of_call(values: &'a [Value]) -> Self {
        ArrayOperands { values, is_cancelled: &|| false, room: u64::MAX }
    }

    /// Checks that a kernel may have `bytes_each` bytes per element allocated at the same time, for results and
    /// temporary data. Returns `elements`.
    ///
    /// # Errors
    /// If `elements` is more than an array may have, or the evaluation has no memory for so much data.
    pub(crate) fn room_for(&self, elements: usize, bytes_each: usize) -> Result<usize, Fault> {
        limits::check(elements)?;
        self.room_for_bytes((elements as u64).saturating_mul(bytes_each as u64))?;
        Ok(elements)
    }

    /// Checks that the kernel may allocate `bytes` bytes in total.
    ///
    /// # Errors
    /// If the evaluation has no memory for them.
    pub(crate) const fn room_for_bytes(&self, bytes: u64) -> Result<(), Fault> {
        if bytes > self.room { Err(Self::NO_MEMORY) } else { Ok(()) }
    }

    /// Returns the groups into which the operand at index `operand` divides `size` elements.
    ///
    /// # Errors
    /// The errors of [`Groups::of`], or an error if the evaluation has no memory for the state of each group.
    pub(crate) fn groups(&self, operand: usize, size: usize) -> Result<Groups<'a>, Fault> {
        let groups = Groups::of(&self.values[operand], size)?;
        // Split points take memory per group already, so only a mapping may have more groups than memory.
        if groups.mapping().is_some() {
            self.room_for(groups.count(), GROUP_BYTES)?;
        }
        Ok(groups)
    }

    /// Collects, for each group, the indices of the elements for which `wanted` returns true, in ascending order.
    /// `bytes_besides` is the memory per element that the kernel needs for other purposes; it counts in the check of
    /// the memory limit.
    ///
    /// # Errors
    /// If the evaluation has no memory for the indices.
    pub(crate) fn members(
        &self,
        groups: &Groups<'_>,
        bytes_besides: usize,
        wanted: impl FnMut(usize) -> bool,
    ) -> Result<Members, Fault> {
        self.room_for(groups.size(), MEMBER_BYTES + bytes_besides)?;
        Ok(groups.members(wanted))
    }

    /// Checks that the evaluation was not cancelled.
    ///
    /// # Errors
    /// If the evaluation was cancelled.
    pub(crate) fn poll(&self) -> Result<(), Fault> {
        if (self.is_cancelled)() { Err(Fault::new(FaultKind::Cancelled)) } else { Ok(()) }
    }

    /// Checks that the evaluation was not cancelled, but only if the index `element` is a multiple of 65,536, so that a
    /// loop over elements can call this for each element.
    ///
    /// # Errors
    /// If the evaluation was cancelled.
    #[inline]
    pub(crate) fn poll_at(&self, element: usize) -> Result<(), Fault> {
        if element.is_multiple_of(PIECE) { self.poll() } else { Ok(()) }
    }

    /// Checks that the evaluation was not cancelled, in a loop over groups, before a group of `elements` elements. The
    /// check is only made if more than 65,536 elements and groups have passed since the last check. `unasked` counts
    /// the elements and groups since then, and must start at 0.
    ///
    /// # Errors
    /// If the evaluation was cancelled.
    pub(crate) fn poll_after(&self, unasked: &mut usize, elements: usize) -> Result<(), Fault> {
        *unasked += elements + 1;
        if *unasked <= PIECE {
            return Ok(());
        }
        *unasked = 0;
        self.poll()
    }

    /// Sorts `all` by the comparison `order`. If there are many elements, checks for cancellation while sorting. Equal elements may be in any order
    /// afterwards.
    ///
    /// # Errors
    /// If the evaluation was cancelled.
    pub(crate) fn sort<T: Copy>(&self, all: &mut [T], order: impl Fn(&T, &T) -> Ordering + Copy) -> Result<(), Fault> {
        let mut open: SmallVec<[&mut [T]; 1]> = smallvec![all];
        while let Some(all) = open.pop() {
            if all.len() <= SORTED {
                all.sort_unstable_by(order);
                continue;
            }
            let mut below = self.part(all, order)?;
            // The elements may have been chosen to give a bad pivot, so the exact median replaces it.
            if !(all.len() / 8..all.len() / 8 * 7).contains(&below) {
                below = all.len() / 2;
                all.select_nth_unstable_by(below, order);
            }
            let (low, high) = all.split_at_mut(below);
            open.extend([high, low]);
        }
        Ok(())
    }

    /// Moves the elements below a pivot, the median of a sample, to the front, and returns their number.
    fn part<T: Copy>(&self, all: &mut [T], order: impl Fn(&T, &T) -> Ordering + Copy) -> Result<usize, Fault> {
        let mut some: SmallVec<[T; 128]> = all.iter().step_by(all.len().div_ceil(127)).copied().collect();
        let middle = some.len() / 2;
        let pivot = *some.select_nth_unstable_by(middle, order).1;
        let mut below = 0;
        for start in (0..all.len()).step_by(PIECE) {
            self.poll()?;
            for at in start..all.len().min(start + PIECE) {
                let is_below = order(&all[at], &pivot).is_lt();
                // Without a branch, because the processor could not predict it.
                all.swap(at, below);
                below += usize::from(is_below);
            }
        }
        Ok(below)
    }
}

/// The bytes of memory per element to order elements by group: the element's index, its group, and its index in the
/// result.
const MEMBER_BYTES: usize = 24;

/// The bytes of memory per group, besides those per element: a state and a result. Only a few kernels have a larger
/// state.
const GROUP_BYTES: usize = 32;

/// The most elements that are sorted without a check for cancellation; sorting them takes some milliseconds. Splitting
/// fewer elements into parts costs more than sorting them.
const SORTED: usize = 1 << 18;

impl Deref for ArrayOperands<'_> {
    type Target = [Value];

    fn deref(&self) -> &[Value] {
        self.values
    }
}

impl fmt::Debug for ArrayOperands<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.values).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Registry;
    use crate::definition::OverArrays;
    use cembra_runtime::{ArrayKind, EdgeType, QType, Scalar};
    use cembra_value::{Array, Edge, ScalarValue};
    use std::cell::Cell;

    #[test]
    fn what_is_sorted_in_parts_is_sorted() {
        fastrand::seed(3);
        // In the last ones, hardly any element or none is below another.
        let cases =
            [(0, 9), (1, 9), (SORTED, 9), (SORTED + 1, 9), (3 * SORTED, u32::MAX), (2 * SORTED, 2), (2 * SORTED, 1)];
        for (len, different) in cases {
            let all: Vec<u32> = std::iter::repeat_with(|| fastrand::u32(..different)).take(len).collect();
            let mut expected = all.clone();
            expected.sort_unstable();
            let asked = Cell::new(0);
            let sorted = |until: usize| {
                asked.set(0);
                let is_cancelled = || {
                    asked.set(asked.get() + 1);
                    asked.get() == until
                };
                let mut found = all.clone();
                ArrayOperands::new(&[], &is_cancelled, u64::MAX).sort(&mut found, Ord::cmp).map(|()| found)
            };
            assert!(sorted(usize::MAX).unwrap() == expected, "{len}");
            let count = asked.get();
            // Once per piece that is partitioned.
            assert_eq!(count >= len.div_ceil(PIECE), len > SORTED || len == 0, "{len}: {count}");
            for until in 1..=count {
                assert_eq!((sorted(until).is_err(), asked.get()), (true, until), "{len}");
            }
        }
    }

    /// Kernels that are slow per element poll at each `PIECE` elements, and stop when they are cancelled.
    #[test]
    fn kernels_that_take_long_ask_whether_the_run_goes_on() {
        let size = 3 * PIECE + 5;
        let kind = ArrayKind::Dense;
        let array = |scalar, element: &dyn Fn(usize) -> ScalarValue| -> Value {
            Value::Array(kind, Array::from_scalars(scalar, (0..size).map(|at| Some(element(at)))).into())
        };
        let far = array(Scalar::Int64, &|at| ((at as i64 * 7_919) << 20).into());
        let numbers = array(Scalar::Float64, &|at| ((at * 7_919 % 1_000) as f64).into());
        let texts = array(Scalar::Text, &|at| ScalarValue::Text(format!("{} b", at % 1_000).into()));
        let keys = array(Scalar::Text, &|at| ScalarValue::Text(at.to_string().into()));
        let (shape, no) = (Value::ArrayShape(kind, size), Value::Unspecified);
        let up: Value = Value::Scalar(ScalarValue::Boolean(false));
        let splits: Value = Edge::from_sizes(kind, vec![1; size]).unwrap().into();
        let regex = Value::Scalar(ScalarValue::Text("[0-9]".into()));
        let array_of = |scalar| QType::Array(kind, scalar);
        let (ints, edge) = (array_of(Scalar::Int64), QType::Edge(EdgeType::Arrays(kind)));
        // The fewest polls: elements that are sorted at once are not polled in between.
        let cases = [
            (1, "array.ordinal_rank", vec![numbers.clone(), no.clone(), no.clone(), up.clone()], ints.clone()),
            (4, "array.ordinal_rank", vec![numbers.clone(), no.clone(), splits.clone(), up.clone()], ints.clone()),
            (1, "array.dense_rank", vec![texts.clone(), no.clone(), up.clone()], ints.clone()),
            (4, "array.sort", vec![numbers.clone(), splits.clone(), up], array_of(Scalar::Float64)),
            (3, "array.rolling_mean", vec![numbers.clone(), 100.into(), no.clone()], array_of(Scalar::Float64)),
            (1, "math._weighted_cdf", vec![numbers.clone(), no.clone(), no.clone()], array_of(Scalar::Float64)),
            (4, "math._weighted_cdf", vec![numbers, no.clone(), splits], array_of(Scalar::Float64)),
            (4, "array.unique", vec![far.clone()], ints.clone()),
            (4, "array.unique", vec![texts.clone()], array_of(Scalar::Text)),
            (4, "edge.group_by", vec![far.clone(), no.clone()], edge.clone()),
            (4, "edge.group_by", vec![texts.clone(), no.clone()], edge.clone()),
            (4, "edge.from_keys", vec![keys.clone(), keys.clone()], edge),
            (8, "dict._rows", vec![far.clone(), far.clone()], ints.clone()),
            (8, "dict._rows", vec![keys.clone(), keys.clone()], ints.clone()),
            (4, "random.sample", vec![shape.clone(), 0.5.into(), 1.into(), no.clone()], array_of(Scalar::Unit)),
            (4, "random.sample", vec![shape.clone(), 0.5.into(), 1.into(), keys], array_of(Scalar::Unit)),
            (
                4,
                "random.sample_n",
                vec![shape.clone(), 9.into(), 1.into(), no.clone(), no.clone()],
                array_of(Scalar::Unit),
            ),
            (4, "array.randint_with_shape", vec![shape, 0.into(), 9.into(), 1.into()], ints),
            (4, "strings.agg_join", vec![texts.clone(), no.clone(), no.clone()], array_of(Scalar::Text)),
            (4, "strings.split", vec![texts.clone(), no.clone()], QType::Unspecified),
            (4, "strings.findall_regex", vec![texts, regex], QType::Unspecified),
        ];
        for (least, name, values, ret) in cases {
            let registry = Registry::standard();
            let OverArrays::Kernel(kernel) = registry.get(registry.find(name).unwrap()).over_arrays else { panic!() };
            let asked = Cell::new(0);
            let run = |until: usize| {
                asked.set(0);
                let is_cancelled = || {
                    asked.set(asked.get() + 1);
                    asked.get() == until
                };
                (kernel.evaluate)(&ArrayOperands::new(&values, &is_cancelled, u64::MAX), &ret)
            };
            assert!(run(usize::MAX).is_ok(), "{name}");
            let all = asked.get();
            assert!(all >= least, "{name} asked {all} times");
            for until in 1..=all {
                let fault = run(until).expect_err("it was cancelled");
                assert_eq!((fault.kind, asked.get()), (FaultKind::Cancelled, until), "{name}");
            }
        }
    }

    /// The temporary memory of kernels is checked before it is allocated.
    #[test]
    fn kernels_ask_for_room_for_what_they_need_meanwhile() {
        let size = 1_000;
        let kind = ArrayKind::Dense;
        let array = |scalar, element: &dyn Fn(usize) -> ScalarValue| -> Value {
            Value::Array(kind, Array::from_scalars(scalar, (0..size).map(|at| Some(element(at)))).into())
        };
        let places = array(Scalar::Int64, &|at| (at as i64).into());
        let ones = array(Scalar::Int64, &|_| 0_i64.into());
        let numbers = array(Scalar::Float64, &|at| (at as f64).into());
        let no = Value::Unspecified;
        let up: Value = Value::Scalar(ScalarValue::Boolean(false));
        let Value::Array(_, groups) = &places else { panic!() };
        let mapping: Value = Edge::from_mapping(kind, Array::clone(groups), size).unwrap().into();
        let ints = QType::Array(kind, Scalar::Int64);
        let floats = QType::Array(kind, Scalar::Float64);
        let edge = QType::Edge(EdgeType::Arrays(kind));
        let cases = [
            ("array.ordinal_rank", vec![numbers.clone(), no.clone(), no.clone(), up.clone()], &ints),
            ("array.dense_rank", vec![numbers.clone(), no.clone(), up.clone()], &ints),
            ("array.inverse_mapping", vec![places.clone(), no.clone()], &ints),
            ("array.shift", vec![numbers.clone(), 1.into(), no.clone()], &floats),
            ("array.sort", vec![numbers.clone(), no.clone(), up.clone()], &floats),
            ("array.rolling_sum", vec![numbers.clone(), 9.into(), no.clone()], &floats),
            ("array.rolling_min", vec![numbers.clone(), 9.into(), mapping.clone()], &floats),
            ("array.take", vec![numbers.clone(), ones, mapping.clone(), no.clone()], &floats),
            ("math.searchsorted", vec![numbers.clone(), numbers.clone(), up], &ints),
            ("math.median", vec![numbers.clone(), mapping.clone()], &floats),
            ("math._weighted_cdf", vec![numbers.clone(), no.clone(), no.clone()], &floats),
            ("edge.group_by", vec![numbers, no], &edge),
            ("edge.from_keys", vec![places.clone(), places], &edge),
        ];
        for (name, values, ret) in cases {
            let registry = Registry::standard();
            let OverArrays::Kernel(kernel) = registry.get(registry.find(name).unwrap()).over_arrays else { panic!() };
            let run = |room| (kernel.evaluate)(&ArrayOperands::new(&values, &|| false, room), ret);
            // Both limits have room for the result itself.
            assert_eq!(run(12 * size as u64).err(), Some(ArrayOperands::NO_MEMORY), "{name}");
            assert!(run(200 * size as u64).is_ok(), "{name}");
        }
    }
}
