//! Prefetching for steps that process a tensor piece by piece, where a piece is some of its rows. Such a step computes
//! several maps and sums (the parts of the step) on a piece before the next piece. Parts that compute little per
//! element wait for memory, while parts that compute much leave memory idle. So the most expensive sum of a piece
//! prefetches for the other parts: for later parts, the same rows of their operands; for earlier parts, the rows of the
//! next piece. A single sum prefetches its own operands, some distance ahead. Prefetching does not change results.

use super::memory::{Memory, Operand, ValueOrigin};
use super::{PartWork, PieceStep};
use crate::tensors::lines::{Line, LinePrefetch};
use cembra_tensor::{Data, Extents};
use smallvec::SmallVec;

/// The fewest bytes of memory that are worth prefetching; smaller memory may be in a cache.
const LARGE: usize = 1 << 20;

/// The distance in bytes at which a sum prefetches its own operands.
const DISTANCE: usize = 1 << 12;

/// The most operands that are prefetched in a sum; more would slow down its own reads.
const MOST: usize = 2;

pub(super) type LinePrefetches<'m> = SmallVec<[LinePrefetch<'m>; 4]>;

/// Returns true if memory is too large to be in a near cache.
fn is_far(data: &Data) -> bool {
    data.len() * Data::element_size(data.scalar()).unwrap_or(0) >= LARGE
}

/// The memory that a sum prefetches while it runs: its own operands, rows of other operands, or nothing.
#[derive(Debug)]
pub(super) enum PrefetchPlan {
    /// The sum prefetches its own operands, some distance ahead.
    Own,
    /// The sum prefetches nothing, because another sum prefetches.
    Nothing,
    /// The sum prefetches rows of these operands. The number is the distance from the rows of the current piece (some
    /// rows of the tensor) to the rows to prefetch, in elements.
    Rows(Vec<(Operand, isize)>),
}

impl PrefetchPlan {
    /// Returns the prefetch hints to use while the next lines (arrays of elements) are summed. `lines` has, for each
    /// operand, the first line that is summed next; `start` lines were summed before it.
    pub(super) fn line_prefetches<'m>(
        &self,
        memory: &'m Memory<'_>,
        starts: &[usize],
        lines: &[Line<'m>],
        start: usize,
        shifts: &[isize],
    ) -> LinePrefetches<'m> {
        let mut prefetches = LinePrefetches::new();
        match self {
            PrefetchPlan::Nothing => {}
            PrefetchPlan::Own => return own_prefetches(lines, shifts),
            PrefetchPlan::Rows(all) => {
                for (operand, distance) in all {
                    let Ok(data) = memory.data(operand.place) else { continue };
                    if is_far(data) {
                        let shift = operand.strides.first().copied().unwrap_or(0);
                        let further = distance.wrapping_add(shift.wrapping_mul(start.cast_signed()));
                        let first = operand.first(memory, starts).wrapping_add_signed(further);
                        prefetches.push(LinePrefetch { data, first, shift });
                    }
                }
            }
        }
        prefetches
    }
}

/// Returns the hints to prefetch elements that follow `lines`, the operands of a sum. Without a second operand whose
/// memory exceeds the near caches there are no hints, because the processor prefetches a single array of elements by
/// itself.
pub(super) fn own_prefetches<'m>(lines: &[Line<'m>], shifts: &[isize]) -> LinePrefetches<'m> {
    let far = lines.iter().zip(shifts).filter(|(line, _)| line.step == 1 && is_far(line.data));
    if far.clone().count() < 2 {
        return LinePrefetches::new();
    }
    let prefetches = far.map(|(line, shift)| {
        let distance = DISTANCE / Data::element_size(line.data.scalar()).unwrap_or(DISTANCE);
        LinePrefetch { data: line.data, first: line.first.wrapping_add(distance), shift: *shift }
    });
    prefetches.collect()
}

/// An operand that one part (map or sum) of a step reads in rows of adjacent elements, and the number of elements per row.
pub(super) struct RowRead {
    /// The index of the map or sum that reads the operand, in the step's list of maps and sums.
    pub(super) part: usize,
    pub(super) operand: Operand,
    pub(super) length: usize,
}

impl RowRead {
    /// Describes the rows of `operand`. `None` if they are not contiguous, or if the operand is computed anew for each
    /// piece (some rows of the tensor).
    pub(super) fn of(part: usize, operand: &Operand, extents: &Extents) -> Option<RowRead> {
        let mut length: usize = 1;
        for (extent, stride) in extents.iter().zip(&operand.strides).skip(1).rev() {
            if *extent != 1 && *stride != length.cast_signed() {
                return None;
            }
            length *= extent;
        }
        let is_shared = !matches!(operand.place, ValueOrigin::Local(_));
        (is_shared && operand.strides.first().is_some_and(|stride| *stride != 0)).then(|| RowRead {
            part,
            operand: operand.clone(),
            length,
        })
    }
}

/// Lets the most expensive sum of a piece (some rows of the tensor) prefetch the rows that all parts of the piece read.
/// `costs` has the index of each sum among the parts, and its cost per element. A piece has `rows` rows.
pub(super) fn assign_prefetches(parts: &mut [PieceStep], rows: usize, costs: &[(usize, u64)], reads: &[RowRead]) {
    let by_cost = costs.iter().filter_map(|(at, cost)| Some((*at, *cost, parts.get(*at)?.work.length_of_sums()?)));
    let Some((longest, _, length)) = by_cost.max_by_key(|(at, cost, _)| (*cost, std::cmp::Reverse(*at))) else {
        return;
    };
    let mut prefetched: Vec<(Operand, isize)> = Vec::new();
    for (at, read) in reads.iter().enumerate().filter(|(_, read)| read.length == length) {
        let is_known = reads[..at].iter().any(|other| other.operand.lies_as(&read.operand));
        if !is_known && prefetched.len() < MOST {
            let stride = read.operand.strides.first().copied().unwrap_or(0);
            let distance = if read.part > longest { 0 } else { stride.wrapping_mul(rows.cast_signed()) };
            prefetched.push((read.operand.clone(), distance));
        }
    }
    for (at, part) in parts.iter_mut().enumerate() {
        if let PartWork::Reduce(reduce) = &mut part.work {
            let own =
                if at == longest { PrefetchPlan::Rows(std::mem::take(&mut prefetched)) } else { PrefetchPlan::Nothing };
            reduce.set_prefetch(own);
        }
    }
}

impl PartWork {
    /// The number of elements per line (array of elements) that is summed; `None` if the part is not a sum of lines
    /// along one axis.
    fn length_of_sums(&self) -> Option<usize> {
        match self {
            PartWork::Reduce(reduce) => reduce.length_of_sums(),
            PartWork::Map(_) | PartWork::Product(_) => None,
        }
    }
}
