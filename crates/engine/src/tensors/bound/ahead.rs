//! What pieces fetch ahead. Parts that are run for some rows at a time wait for memory where they do little with much, while those that compute
//! long leave it idle: the longest sum among them fetches for the others, for parts behind it what they read of the same rows, for those
//! before it what they read of the next. A sum by itself fetches what it reads, some way ahead. No bits depend on it.

use super::memory::{Memory, Operand, ValueOrigin};
use super::{PartWork, PieceStep};
use crate::tensors::lines::{Line, Soon};
use cembra_tensor::{Data, Extents};
use smallvec::SmallVec;

/// From how many bytes on memory is worth to be fetched: less of it may be near.
const LARGE: usize = 1 << 20;

/// How many bytes further on a sum fetches what it reads itself.
const DISTANCE: usize = 1 << 12;

/// The most that is fetched meanwhile: more keeps a processor from what it reads itself.
const MOST: usize = 2;

pub(super) type AllSoon<'m> = SmallVec<[Soon<'m>; 4]>;

/// True for memory that may be far away.
fn is_far(data: &Data) -> bool {
    data.len() * Data::element_size(data.scalar()).unwrap_or(0) >= LARGE
}

/// What a sum fetches.
#[derive(Debug)]
pub(super) enum Fetched {
    /// What it reads itself.
    Own,
    /// Nothing: others do it.
    Nothing,
    /// Of these operands rows of their own, each with the distance from the rows of the piece, in elements.
    Rows(Vec<(Operand, isize)>),
}

impl Fetched {
    /// What is read soon while lines are summed. `lines` is where the first of all lines lies, and `start` of them come before.
    pub(super) fn soon<'m>(
        &self,
        memory: &'m Memory<'_>,
        starts: &[usize],
        lines: &[Line<'m>],
        start: usize,
        shifts: &[isize],
    ) -> AllSoon<'m> {
        let mut soon = AllSoon::new();
        match self {
            Fetched::Nothing => {}
            Fetched::Own => return own_soon(lines, shifts),
            Fetched::Rows(all) => {
                for (operand, distance) in all {
                    let Ok(data) = memory.data(operand.place) else { continue };
                    if is_far(data) {
                        let shift = operand.strides.first().copied().unwrap_or(0);
                        let further = distance.wrapping_add(shift.wrapping_mul(start.cast_signed()));
                        let first = operand.first(memory, starts).wrapping_add_signed(further);
                        soon.push(Soon { data, first, shift });
                    }
                }
            }
        }
        soon
    }
}

/// What lines themselves have further on. One line by itself a processor sees.
pub(super) fn own_soon<'m>(lines: &[Line<'m>], shifts: &[isize]) -> AllSoon<'m> {
    let far = lines.iter().zip(shifts).filter(|(line, _)| line.step == 1 && is_far(line.data));
    if far.clone().count() < 2 {
        return AllSoon::new();
    }
    let soon = far.map(|(line, shift)| {
        let distance = DISTANCE / Data::element_size(line.data.scalar()).unwrap_or(DISTANCE);
        Soon { data: line.data, first: line.first.wrapping_add(distance), shift: *shift }
    });
    soon.collect()
}

/// An operand that a part reads in rows of adjacent elements, as pieces see it, and the number of elements per row.
pub(super) struct RowRead {
    /// Which part it is.
    pub(super) part: usize,
    pub(super) operand: Operand,
    pub(super) length: usize,
}

impl RowRead {
    /// None for what is made anew for each piece, and for what lies otherwise.
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

/// Lets the sum that takes longest, by the costs of an element of these parts, fetch what the parts of a piece of `rows` rows read.
pub(super) fn share_out(parts: &mut [PieceStep], rows: usize, costs: &[(usize, u64)], reads: &[RowRead]) {
    let by_cost = costs.iter().filter_map(|(at, cost)| Some((*at, *cost, parts.get(*at)?.work.length_of_sums()?)));
    let Some((longest, _, length)) = by_cost.max_by_key(|(at, cost, _)| (*cost, std::cmp::Reverse(*at))) else {
        return;
    };
    let mut fetched: Vec<(Operand, isize)> = Vec::new();
    for (at, read) in reads.iter().enumerate().filter(|(_, read)| read.length == length) {
        let is_known = reads[..at].iter().any(|other| other.operand.lies_as(&read.operand));
        if !is_known && fetched.len() < MOST {
            let stride = read.operand.strides.first().copied().unwrap_or(0);
            let distance = if read.part > longest { 0 } else { stride.wrapping_mul(rows.cast_signed()) };
            fetched.push((read.operand.clone(), distance));
        }
    }
    for (at, part) in parts.iter_mut().enumerate() {
        if let PartWork::Reduce(reduce) = &mut part.work {
            let own = if at == longest { Fetched::Rows(std::mem::take(&mut fetched)) } else { Fetched::Nothing };
            reduce.fetch(own);
        }
    }
}

impl PartWork {
    /// How many elements each line has that is summed, if one axis has lines that are.
    fn length_of_sums(&self) -> Option<usize> {
        match self {
            PartWork::Reduce(reduce) => reduce.length_of_sums(),
            PartWork::Map(_) | PartWork::Product(_) => None,
        }
    }
}
