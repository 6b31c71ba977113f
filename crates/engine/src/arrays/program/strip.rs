//! The stages of a fused loop on one strip, a block of elements that is processed at once: plans, reductions, scans, expansions and quotients, each
//! on the columns of the strip.

use super::place::{ColumnPointers, copy_bits, finish};
use super::runner::Workspace;
use super::sweep::{Bounds, SweepRun};
use cembra_array::{GroupScope, Origin, PlanInput, Work};
use cembra_ops::{Grouping, Strip, divide_by_groups, expand};
use cembra_runtime::{Column, LONG_STRIP_ROWS, QType, Scalar};
use cembra_value::EdgeForm;
use std::ops::Range;

impl<'r> SweepRun<'r> {
    /// Runs all stages of the loop on the strip `bounds` (a block of elements) of the share `share` (the elements of
    /// one thread). Returns false if an element failed, or the run was cancelled.
    pub(super) fn strip(&self, workspace: &mut Workspace, share: &Bounds, bounds: &Bounds) -> bool {
        let lanes = self.layout().lanes();
        let mut functions = 0;
        let is_long = bounds.elements.len() > LONG_STRIP_ROWS;
        for work in self.layout().work() {
            if is_long && workspace.context.poll_cancelled() {
                return false;
            }
            match work {
                Work::Map { inputs, outputs, side, .. } => {
                    let succeeds = self.map(workspace, functions, inputs, outputs, bounds.of(*side).len());
                    functions += 1;
                    if !succeeds {
                        return false;
                    }
                }
                Work::Fold { accumulator, x, .. } if lanes[*x].is_added(workspace.of.adds) => {
                    let len = bounds.elements.len();
                    // SAFETY: SWEEP-PLACE: bits that were made by a stage before.
                    let presence = unsafe { workspace.places[*x].bits(len) };
                    workspace.accumulators[*accumulator].added(len, presence.as_deref());
                }
                Work::Fold { accumulator, x, over } => {
                    // A strip of empty groups has no elements, but its groups are complete after it.
                    let range = bounds.of(lanes[*x].over);
                    // SAFETY: SWEEP-PLACE: the strip of a column that came in, or was made by a stage before.
                    let x = unsafe { workspace.places[*x].strip(lanes[*x].scalar, range.len()) };
                    let groups = self.is_strip_grouping(*over).then_some(&share.groups);
                    let into = self.grouping(*over, range, groups, &mut workspace.edge_bits);
                    let Some(into) = into else { return false };
                    workspace.accumulators[*accumulator].feed(&x, range.start, &into);
                }
                Work::Finish { accumulator, wanted } => {
                    let (place, scalar) = (workspace.places[wanted.lane], lanes[wanted.lane].scalar);
                    let before = share.groups.start;
                    let groups = bounds.groups.start - before..bounds.groups.end - before;
                    // SAFETY: SWEEP-PLACE: the result's own.
                    unsafe { finish(&workspace.accumulators[*accumulator], wanted.finish, &groups, scalar, place) };
                }
                Work::Scan { scanner, x, to, over } => {
                    let range = bounds.of(lanes[*x].over);
                    if range.is_empty() {
                        continue;
                    }
                    let (to, lane) = (workspace.places[*to], &lanes[*to]);
                    // SAFETY: SWEEP-PLACE: the strip of a column that came in, or was made by a stage before; the scan's own.
                    let (x, mut values, bits) = unsafe {
                        let x = workspace.places[*x].strip(lanes[*x].scalar, range.len());
                        (x, to.values(lane.scalar, range.len()), to.bits(range.len()))
                    };
                    let Some(over) = self.grouping(*over, range, None, &mut workspace.edge_bits) else { return false };
                    workspace.scanners[*scanner].feed(&x, range.start, &over, &mut values);
                    if let Some(bits) = bits {
                        scanned(&x, &over, bits);
                    }
                }
                Work::Expand { values, to, over, is_there } => {
                    let range = bounds.of(lanes[*to].over);
                    let Some((mut place, groups)) = self.of_groups(workspace, *values, bounds) else { return false };
                    if *is_there {
                        place.presence = std::ptr::null_mut();
                    }
                    let (of, to, scalar) = (lanes[*values].scalar, workspace.places[*to], lanes[*to].scalar);
                    let Some(over) = self.grouping(*over, range, None, &mut workspace.edge_bits) else { return false };
                    // SAFETY: SWEEP-PLACE: a whole array, or the strip of a column that was made by a stage before; the
                    // expansion's own.
                    let (values, mut made, bits) = unsafe {
                        (place.strip(of, groups.len()), to.values(scalar, range.len()), to.bits(range.len()))
                    };
                    expand(&values, groups.start, &mut made, bits, range.start, range.len(), &over);
                }
                Work::Divide { x, by, to, .. } => {
                    let range = bounds.of(lanes[*to].over);
                    let Some((place, groups)) = self.of_groups(workspace, *by, bounds) else { return false };
                    let Some(points) = self.points else { return false };
                    let (x, to) = (workspace.places[*x], workspace.places[*to]);
                    // SAFETY: SWEEP-PLACE: the strip of a column that came in, or was made by a stage before; a whole array, or
                    // such a strip; the quotients' own.
                    let (x, by, mut made, bits) = unsafe {
                        let x = x.strip(Scalar::Float64, range.len());
                        let by = place.strip(Scalar::Float64, groups.len());
                        (x, by, to.values(Scalar::Float64, range.len()), to.bits(range.len()))
                    };
                    divide_by_groups(&x, &by, groups.start, &mut made, bits, range.start, points);
                }
            }
        }
        true
    }

    /// The column `values`, which has one value per group, and the range of groups that it contains: all groups for an
    /// input array, or the groups of the strip (block of elements) if the loop computed the column.
    fn of_groups(
        &self,
        workspace: &Workspace,
        values: usize,
        bounds: &Bounds,
    ) -> Option<(ColumnPointers, Range<usize>)> {
        let lane = &self.layout().lanes()[values];
        let mut place = workspace.places[values];
        if lane.origin != Origin::RandomAccess {
            return Some((place, bounds.groups.clone()));
        }
        if self.all_there >> lane.bit & 1 != 0 {
            place.presence = std::ptr::null_mut();
        }
        Some((place, 0..self.array(lane.value)?.len()))
    }

    /// The assignment of the elements of a strip (block of elements) to groups: by all split points, by only the split
    /// points of `groups`, or by the group of each element in `range`. Presence bits of elements that do not begin at a
    /// word are copied to `bits`. `None` if the edge has another representation.
    fn grouping<'e>(
        &self,
        over: GroupScope,
        range: &Range<usize>,
        groups: Option<&Range<usize>>,
        bits: &'e mut Vec<u64>,
    ) -> Option<Grouping<'e>>
    where
        'r: 'e,
    {
        let GroupScope::Edge(edge) = over else { return Some(Grouping::Whole) };
        match self.edge(edge)?.form() {
            EdgeForm::Splits(points) => Some(Grouping::Splits(match groups {
                Some(groups) => &points[groups.start..=groups.end],
                None => points,
            })),
            EdgeForm::Mapping(groups, _) => {
                let presence = match groups.presence() {
                    Some(all) if range.start.is_multiple_of(64) => Some(&all[range.start / 64..]),
                    Some(all) => {
                        bits.resize(range.len().div_ceil(64), 0);
                        copy_bits(all, range.start, bits, range.len());
                        Some(&bits[..])
                    }
                    None => None,
                };
                Some(Grouping::Mapping { groups: groups.numbers::<i64>()?.get(range.clone())?, presence })
            }
            EdgeForm::Scalars | EdgeForm::ToScalar(_) => None,
        }
    }

    /// Evaluates a plan on the elements of a strip (block of elements); returns false if an element fails.
    fn map(&self, workspace: &mut Workspace, at: usize, inputs: &[PlanInput], outputs: &[usize], len: usize) -> bool {
        let lanes = self.layout().lanes();
        let Workspace { scratch, of, context, columns, places, .. } = workspace;
        let (function, scratch) = (&of.functions[at], &mut scratch[at]);
        // The bits of each part must begin at a word.
        let most = (function.rows().min(self.strip) / 64 * 64).max(64);
        for first in (0..len).step_by(most) {
            let rows = most.min(len - first);
            columns.clear();
            for port in inputs {
                let (lane, place) = (&lanes[port.lane], places[port.lane]);
                if lane.origin == Origin::Shared {
                    columns.push(shared(lane.scalar, port.is_optional, place));
                    continue;
                }
                let mut place = place.at(lane.storage, first);
                if !self.runner.has_bits(*port, self.with_bits) {
                    place.presence = std::ptr::null_mut();
                }
                columns.push(place.column(lane.storage));
            }
            columns.extend(outputs.iter().map(|lane| {
                let storage = lanes[*lane].storage(of.adds);
                places[*lane].at(storage, first).column(storage)
            }));
            scratch.texts.reset();
            // SAFETY: COLUMNS: the function was made for columns of these forms, of its plan's types; each has this many rows, or
            // the sums of its accumulator, and bits of outputs have whole words.
            unsafe { function.run(columns, &[], rows, scratch, context) };
            if scratch.failed.any() {
                scratch.failed.drain().for_each(drop);
                return false;
            }
        }
        true
    }
}

/// A column in which all rows share one scalar, in the memory of `cell`.
fn shared(scalar: Scalar, is_optional: bool, cell: ColumnPointers) -> Column {
    let qtype = QType::of(scalar, is_optional);
    let data = cell.data.wrapping_add(qtype.optional_value_offset().unwrap_or(0) as usize);
    let presence = if is_optional { cell.data } else { std::ptr::null_mut() };
    Column { data, stride: 0, presence, presence_stride: 0 }
}

/// Writes the presence bits of a scan's results: a result is present if its element is present and belongs to a group.
fn scanned(x: &Strip<'_>, over: &Grouping<'_>, to: &mut [u64]) {
    let grouped = if let Grouping::Mapping { presence, .. } = over { *presence } else { None };
    for (at, word) in to.iter_mut().enumerate() {
        let of = |bits: Option<&[u64]>| bits.map_or(u64::MAX, |bits| bits[at]);
        *word = of(x.presence) & of(grouped);
    }
}
