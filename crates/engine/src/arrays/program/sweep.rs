//! A run of a sweep, which is a fused loop over the elements of arrays. The run checks sizes, reserves memory, and then sends strips (blocks of
//! elements) through the stages one after the other (`strip.rs`). A run that fails gives no reason; its caller evaluates the program in another way,
//! which reports the error.

use super::host::ArrayHost;
use super::memory::{ArrayPool, RunParts, Slots, SpareArray};
use super::place::{ColumnPointers, HAS_STREAMS, finish};
use super::runner::{SweepRunner, Workspace};
use cembra_array::{ArrayProgram, GroupScope, Origin, Side, Storage, SweepColumn, SweepId, SweepLayout, ValueId, Work};
use cembra_ops::MOST_ELEMENTS;
use cembra_runtime::{LONG_STRIP_ROWS, PAST_CACHES, QType, STRIP_ROWS, SUM_BLOCK, drain_past_caches};
use cembra_value::Error;
use cembra_value::{Array, Edge, EdgeForm, Value};
use std::ops::Range;
use std::sync::Arc;

/// The outcome of a request to run a fused loop over elements: the loop has run, was not run, or was given up.
#[derive(Debug)]
pub(super) enum SweepOutcome {
    /// The loop has run, and its results are in their slots.
    Made,
    /// The loop was not run; its stages must be run one by one over whole arrays.
    NotRun,
    /// The loop was given up, because an element failed or may have failed.
    Failed,
}

/// The bounds of a strip (a block of elements) or of a thread's share: the range of its elements, and of their groups.
#[derive(Clone, Debug)]
pub(super) struct Bounds {
    pub(super) elements: Range<usize>,
    pub(super) groups: Range<usize>,
}

impl Bounds {
    /// Empty bounds before the first element.
    fn start(&self) -> Bounds {
        let at = |range: &Range<usize>| range.start..range.start;
        Bounds { elements: at(&self.elements), groups: at(&self.groups) }
    }

    /// The range of elements if `side` is `Elements`, else the range of groups.
    pub(super) fn of(&self, side: Side) -> &Range<usize> {
        match side {
            Side::Elements => &self.elements,
            Side::Groups => &self.groups,
        }
    }
}

/// The state of one run of a fused loop over elements.
pub(super) struct SweepRun<'r> {
    pub(super) runner: &'r SweepRunner,
    pub(super) slots: &'r Slots<'r>,
    pub(super) elements: usize,
    /// The split points of the groups, if each strip (block of elements) consists of whole groups; else `None`.
    pub(super) points: Option<&'r [i64]>,
    pub(super) with_bits: u128,
    /// The number of elements per strip (block of elements), unless strips consist of whole groups.
    pub(super) strip: usize,
    /// The bit set of the arrays that have one element per group and no missing element.
    pub(super) all_there: u128,
}

impl SweepRunner {
    /// Runs the fused loop `number` of `program` on the values in slots.
    ///
    /// # Errors
    /// If the run was cancelled.
    pub(super) fn run(
        &self,
        program: &ArrayProgram,
        number: SweepId,
        memory: &mut RunParts<'_>,
        host: &ArrayHost<'_>,
    ) -> Result<SweepOutcome, Error> {
        let room = memory.min_room(host.most_array_bytes());
        let kept = memory.take_workspace(number);
        let RunParts { slots, spares, .. } = memory;
        let Some(mut run) = self.begin(slots) else { return Ok(SweepOutcome::Failed) };
        if run.kept_bytes() > room {
            return Ok(SweepOutcome::Failed);
        }
        let kept = kept.filter(|workspace| workspace.with_bits == run.with_bits);
        let Some(mut workspace) = kept.or_else(|| self.workspace(host, run.with_bits)) else {
            return Ok(SweepOutcome::NotRun);
        };
        let grouped = run.grouped_bytes(&workspace);
        workspace.group_bytes = workspace.group_bytes.max(grouped);
        let left = room.checked_sub(run.kept_bytes().saturating_add(grouped));
        let Some(left) = left else { return Ok(SweepOutcome::Failed) };
        let shares = run.shares(host.threads());
        if run.strip_bytes(&shares, &workspace, left) > left {
            return Ok(SweepOutcome::Failed);
        }
        run.strip = workspace.of.strip;
        run.prepare(&mut workspace, spares);
        let succeeds = match &shares[..] {
            [all] => {
                host.ready(&mut workspace.context);
                run.begin_share(&mut workspace, all);
                run.strips(&mut workspace, all)
            }
            several => run.strips_of_shares(&mut workspace, several, host),
        };
        // A run that was cancelled ends early, which is reported here.
        host.poll()?;
        if !succeeds {
            return Ok(SweepOutcome::Failed);
        }
        workspace.accumulators.iter_mut().for_each(|each| each.end());
        let (elements, points) = (run.elements, run.points.map(|points| points.len() - 1));
        let is_made = self.make(program, slots, &mut workspace, spares, elements, points);
        memory.keep_workspace(number, workspace);
        Ok(if is_made.is_some() { SweepOutcome::Made } else { SweepOutcome::Failed })
    }

    /// Moves the results of the loop to their slots; `None` if a result does not fit the type of its slot.
    fn make(
        &self,
        program: &ArrayProgram,
        slots: &mut Slots<'_>,
        workspace: &mut Workspace,
        spares: &mut ArrayPool,
        elements: usize,
        groups: Option<usize>,
    ) -> Option<()> {
        for (accumulator, wanted) in self.layout.results() {
            let lane = &self.layout.lanes()[wanted.lane];
            let count = match self.layout.accumulators()[*accumulator].over {
                GroupScope::Whole => 1,
                GroupScope::Edge(edge) => match slots.get(edge)? {
                    Value::Edge(edge) => edge.parent_size(),
                    _ => return None,
                },
            };
            if matches!(program.qtype(lane.value), QType::Array(..)) {
                reserve(workspace, wanted.lane, lane, count, spares);
            } else {
                workspace.memory[wanted.lane].reserve(lane.storage, lane.has_bits, count);
            }
            let mut place = workspace.memory[wanted.lane].place();
            if !lane.has_bits {
                place.presence = std::ptr::null_mut();
            }
            // SAFETY: SWEEP-PLACE: the result's own.
            unsafe { finish(&workspace.accumulators[*accumulator], wanted.finish, &(0..count), lane.scalar, place) };
            slots.set(lane.value, value(program, workspace, wanted.lane, lane, count)?);
        }
        for (at, lane) in self.layout.lanes().iter().enumerate().filter(|(_, lane)| lane.origin == Origin::Kept) {
            let count = if lane.over == Side::Groups { groups.unwrap_or(elements) } else { elements };
            slots.set(lane.value, value(program, workspace, at, lane, count)?);
        }
        Some(())
    }

    /// Begins a run on the values in `slots`; `None` if the sizes of arrays and edges (assignments of elements to
    /// groups) do not agree.
    fn begin<'r>(&'r self, slots: &'r Slots<'r>) -> Option<SweepRun<'r>> {
        let (layout, strip) = (&self.layout, STRIP_ROWS);
        let mut run = SweepRun { runner: self, slots, elements: 0, points: None, with_bits: 0, strip, all_there: 0 };
        if let Some(groups) = layout.groups() {
            // The edge was promised to have split points.
            let EdgeForm::Splits(points) = run.edge(groups)?.form() else { return None };
            run.points = Some(points);
        }
        let groups = run.points.map(|points| points.len() - 1);
        let mut elements = run.points.and_then(|points| points.last()).map(|last| *last as usize);
        let mut agree = |found: usize| *elements.get_or_insert(found) == found;
        for lane in layout.lanes() {
            let (Origin::Array | Origin::RandomAccess) = lane.origin else { continue };
            let array = run.array(lane.value)?;
            run.with_bits |= u128::from(array.presence().is_some()) << lane.bit;
            let fits = match (lane.origin, lane.over) {
                // Its size is compared with those of the edges that index it.
                (Origin::RandomAccess, _) => true,
                (_, Side::Elements) => agree(array.len()),
                (_, Side::Groups) => groups == Some(array.len()),
            };
            if !fits {
                return None;
            }
        }
        for work in layout.work() {
            let (over, side) = match work {
                Work::Map { .. } | Work::Finish { .. } => continue,
                Work::Fold { x, over, .. } | Work::Scan { x, over, .. } => (over, layout.lanes()[*x].over),
                Work::Expand { values, to, over, .. } | Work::Divide { by: values, to, over, .. } => {
                    let lane = &layout.lanes()[*values];
                    if let (Origin::RandomAccess, GroupScope::Edge(edge)) = (lane.origin, over) {
                        let parents = run.edge(*edge)?.parent_size();
                        let array = run.array(lane.value).filter(|array| array.len() == parents)?;
                        run.all_there |= u128::from(array.first_missing().is_none()) << lane.bit;
                    }
                    if matches!(over, GroupScope::Edge(edge) if run.edge(*edge)?.child_size() > MOST_ELEMENTS) {
                        return None;
                    }
                    (over, layout.lanes()[*to].over)
                }
            };
            let GroupScope::Edge(edge) = over else { continue };
            let edge = run.edge(*edge)?;
            let fits = match side {
                Side::Elements => agree(edge.child_size()),
                Side::Groups => groups == Some(edge.child_size()),
            };
            if !fits || edge.parent_size() > MOST_ELEMENTS {
                return None;
            }
        }
        for (edge, side) in layout.whole() {
            let child = run.edge(*edge)?.child_size();
            let fits = match side {
                Side::Elements => agree(child),
                Side::Groups => groups == Some(child),
            };
            if !fits {
                return None;
            }
        }
        run.elements = elements?;
        Some(run)
    }
}

impl<'r> SweepRun<'r> {
    pub(super) const fn layout(&self) -> &'r SweepLayout {
        &self.runner.layout
    }

    pub(super) fn array(&self, value: ValueId) -> Option<&'r Array> {
        match self.slots.get(value)? {
            Value::Array(_, array) => Some(array),
            _ => None,
        }
    }

    pub(super) fn edge(&self, value: ValueId) -> Option<&'r Edge> {
        match self.slots.get(value)? {
            Value::Edge(edge) => Some(edge),
            _ => None,
        }
    }

    /// The number of groups of an edge, which assigns elements to groups.
    fn group_count(&self, over: GroupScope) -> usize {
        match over {
            GroupScope::Whole => 1,
            GroupScope::Edge(edge) => self.edge(edge).map_or(0, Edge::parent_size),
        }
    }

    /// The bytes of the arrays that the loop makes and keeps, which have one value per element or per group.
    fn kept_bytes(&self) -> u64 {
        let kept = self.layout().lanes().iter().filter(|lane| lane.origin == Origin::Kept);
        let words = kept.map(|lane| {
            let count = self.count(lane.over);
            lane.storage.words(count) + if lane.has_bits { count.div_ceil(64) } else { 0 }
        });
        words.fold(0, |bytes: u64, words| bytes.saturating_add(8 * words as u64))
    }

    /// The bytes of state that reductions (accumulators) and scans (scanners) need for their groups.
    fn grouped_bytes(&self, workspace: &Workspace) -> u64 {
        let gathered = self.layout().accumulators().iter().map(|of| of.over);
        let gathered = gathered.zip(workspace.accumulators.iter().map(|each| each.group_bytes()));
        let scanned = self.layout().scanners().iter().map(|of| of.over);
        let scanned = scanned.zip(workspace.scanners.iter().map(|each| each.group_bytes()));
        let bytes = |(over, each): (GroupScope, usize)| (self.group_count(over) as u64).saturating_mul(each as u64);
        gathered.chain(scanned).map(bytes).fold(0, u64::saturating_add)
    }

    /// The bits of memory per element of a strip (block of elements) that consists of whole groups: in intermediate
    /// columns and in temporary memory.
    fn strip_bits(&self, adds: bool) -> u64 {
        let bits = |lane: &SweepColumn| match (lane.origin, lane.over) {
            (Origin::Strip, Side::Elements) => lane.storage(adds).bits() + u64::from(lane.has_bits),
            (Origin::Kept, Side::Elements) => lane.storage.bits() + 1,
            // Values that are bits, and presence bits.
            (Origin::Array, Side::Elements) => 2,
            _ => 0,
        };
        // Plus the presence bits of edges.
        self.layout().lanes().iter().map(bits).fold(1, u64::saturating_add)
    }

    /// An upper bound for the bytes that the strips (blocks of elements) of `shares` take at the same time. A strip of
    /// whole groups may be long, because it has at least one group. A tighter bound is computed if a rough one exceeds
    /// `room`.
    fn strip_bytes(&self, shares: &[Bounds], workspace: &Workspace, room: u64) -> u64 {
        /// The most bits per element of a column: those of a string view, and a presence bit.
        const MOST_BITS: u64 = 129;
        let Some(points) = self.points else { return 0 };
        let most_bits = (self.layout().lanes().len() as u64 + 1) * MOST_BITS;
        debug_assert!(self.strip_bits(workspace.of.adds) <= most_bits);
        let most = (self.elements as u64).saturating_mul(most_bits) / 8;
        if most <= room {
            return most;
        }
        let bits = self.strip_bits(workspace.of.adds);
        let bytes = |elements: usize| (elements as u64).saturating_mul(bits) / 8;
        let all = bytes(self.elements);
        // The largest groups are searched for only if they make a difference.
        if all <= room {
            return all;
        }
        shares.iter().map(|share| bytes(self.widest(points, share))).fold(0, u64::saturating_add)
    }

    /// The most elements in a strip (block of elements) of `share`, where each strip consists of whole groups with the
    /// split points `points`.
    fn widest(&self, points: &[i64], share: &Bounds) -> usize {
        let sizes = points[share.groups.start..=share.groups.end].windows(2);
        let widest = sizes.map(|ends| (ends[1] - ends[0]) as usize).max();
        widest.unwrap_or(0).max(STRIP_ROWS.min(self.elements))
    }

    /// The number of elements or of groups, whichever `side` names.
    fn count(&self, side: Side) -> usize {
        match (side, self.points) {
            (Side::Groups, Some(points)) => points.len() - 1,
            _ => self.elements,
        }
    }

    /// The strip (block of elements) of a share after the one that ends at `end`; `None` if there are no more.
    fn next(&self, share: &Bounds, end: &Bounds) -> Option<Bounds> {
        let start = end.elements.end;
        let Some(points) = self.points else {
            let elements = start..share.elements.end.min(start + self.strip);
            return (!elements.is_empty()).then_some(Bounds { elements, groups: 0..0 });
        };
        let first = end.groups.end;
        if first == share.groups.end {
            return None;
        }
        // At least one group, however large; more as long as they fit.
        let most = share.groups.end.min(first + STRIP_ROWS);
        let fits = points[first + 1..=most].partition_point(|point| *point as usize <= start + STRIP_ROWS);
        let groups = first..first + fits.max(1);
        Some(Bounds { elements: start..points[groups.end] as usize, groups })
    }

    /// Runs all strips (blocks of elements) of `share`. Returns false if an element failed, or the run was cancelled.
    pub(super) fn strips(&self, workspace: &mut Workspace, share: &Bounds) -> bool {
        let mut bounds = share.start();
        let is_part = self.is_part(share);
        while let Some(next) = self.next(share, &bounds) {
            bounds = next;
            if workspace.context.poll_cancelled()
                || !self.place(workspace, &bounds)
                || !self.strip(workspace, share, &bounds)
            {
                return false;
            }
            self.put_back(workspace, &bounds);
            let end = bounds.elements.end;
            if is_part && (end.is_multiple_of(SUM_BLOCK) || end == share.elements.end) {
                workspace.accumulators.iter_mut().for_each(|each| each.end_block());
            }
        }
        if workspace.is_far.contains(&true) || workspace.scratch.iter().any(|scratch| scratch.past_caches) {
            drain_past_caches();
        }
        true
    }

    /// Returns true if `share` has only some of the elements that are reduced to one result, so that its sums must be
    /// joined with those of other shares.
    fn is_part(&self, share: &Bounds) -> bool {
        self.points.is_none() && share.elements.len() < self.elements
    }

    /// Reserves memory for the arrays that the fused loop makes.
    fn prepare(&self, workspace: &mut Workspace, spares: &mut ArrayPool) {
        workspace.bases.clear();
        workspace.bases.resize(self.layout().lanes().len(), ColumnPointers::NOWHERE);
        for (at, lane) in self.layout().lanes().iter().enumerate().filter(|(_, lane)| lane.origin == Origin::Kept) {
            reserve(workspace, at, lane, self.count(lane.over), spares);
            workspace.bases[at] = workspace.memory[at].place();
        }
    }

    /// Prepares `workspace` for the strips (blocks of elements) of `share`: reserves memory, and writes the values that
    /// all elements share. The pointers to the arrays that the run makes must be set before.
    pub(super) fn begin_share(&self, workspace: &mut Workspace, share: &Bounds) {
        let (layout, lanes) = (self.layout(), self.layout().lanes());
        let widest = match self.points {
            None => self.strip.min(self.elements),
            Some(points) => self.widest(points, share),
        };
        if widest > LONG_STRIP_ROWS {
            let bytes = (widest as u64).saturating_mul(self.strip_bits(workspace.of.adds)) / 8;
            workspace.strip_bytes = workspace.strip_bytes.max(bytes);
        }
        for (at, lane) in lanes.iter().enumerate() {
            let base = &mut workspace.bases[at];
            match lane.origin {
                Origin::Kept => {}
                Origin::Array | Origin::RandomAccess => {
                    *base = self.array(lane.value).map_or(ColumnPointers::NOWHERE, ColumnPointers::of);
                }
                Origin::Result => *base = ColumnPointers::NOWHERE,
                Origin::Shared => {
                    let cell = workspace.cells[at].ptr();
                    if let Some(value) = self.slots.get(lane.value) {
                        // SAFETY: FRAME-SLOT: a cell has room for any number and its presence; the value is of no text.
                        unsafe { value.write_to(cell, 0) };
                    }
                    *base = ColumnPointers { data: cell.as_ptr(), ..ColumnPointers::NOWHERE };
                }
                Origin::Strip => {
                    // There may be more groups than elements, because groups may be empty.
                    let most = if lane.over == Side::Groups { STRIP_ROWS } else { widest };
                    let storage = lane.storage(workspace.of.adds);
                    workspace.memory[at].reserve(storage, lane.has_bits, most.min(self.count(lane.over)));
                    *base = workspace.memory[at].place();
                }
            }
            if !lane.has_bits && matches!(lane.origin, Origin::Strip | Origin::Kept) {
                base.presence = std::ptr::null_mut();
            }
        }
        workspace.places.clone_from(&workspace.bases);
        for (at, of) in layout.accumulators().iter().enumerate() {
            let accumulator = &mut workspace.accumulators[at];
            match self.is_part(share) {
                true => accumulator.begin_part(self.elements, share.elements.start),
                false if of.side == Side::Elements && self.is_strip_grouping(of.over) => {
                    accumulator.begin(share.groups.len(), self.elements);
                }
                false => accumulator.begin(self.group_count(of.over), self.count(of.side)),
            }
        }
        for (at, of) in layout.scanners().iter().enumerate() {
            workspace.scanners[at].begin(self.group_count(of.over), self.count(of.side));
        }
        let bytes = |lane: &SweepColumn| 8 * lane.storage.words(self.count(lane.over));
        let is_far = |lane: &SweepColumn| {
            let is_large = lane.origin == Origin::Kept && bytes(lane) >= PAST_CACHES;
            HAS_STREAMS && is_large && matches!(lane.storage, Storage::Numbers(_))
        };
        workspace.is_far.clear();
        workspace.is_far.extend(lanes.iter().map(is_far));
        let mut functions = 0;
        for work in layout.work() {
            let Work::Map { outputs, .. } = work else { continue };
            let kept = |lane: &usize| lanes[*lane].origin == Origin::Kept;
            let all: usize = outputs.iter().map(|lane| bytes(&lanes[*lane])).sum();
            let scratch = &mut workspace.scratch[functions];
            scratch.past_caches = self.points.is_none() && outputs.iter().all(kept) && all >= PAST_CACHES;
            if scratch.past_caches {
                // The machine code itself uses non-temporal stores for them.
                outputs.iter().for_each(|lane| workspace.is_far[*lane] = false);
            }
            workspace.of.functions[functions].begin(scratch, &workspace.context);
            functions += 1;
        }
    }

    /// Returns true if each strip (block of elements) consists of whole groups, and `over` is the assignment of
    /// elements to these groups.
    pub(super) fn is_strip_grouping(&self, over: GroupScope) -> bool {
        self.layout().groups().is_some_and(|edge| over == GroupScope::Edge(edge))
    }
}

/// Reserves memory for `count` elements of the column `at`, taken from a spare array if there is one.
fn reserve(workspace: &mut Workspace, at: usize, lane: &SweepColumn, count: usize, spares: &mut ArrayPool) {
    let memory = &mut workspace.memory[at];
    if memory.data.capacity() == 0 && memory.presence.capacity() == 0 {
        let bits = if lane.has_bits { count.div_ceil(64) } else { 0 };
        let SpareArray { words, array } = spares.take(lane.storage.words(count), bits);
        (memory.data, memory.presence) = words;
        workspace.found[at] = array;
    }
    memory.reserve(lane.storage, lane.has_bits, count);
}

/// Converts the memory of the column with index `at` to a value of `count` elements; `None` if it does not fit the
/// value's type.
fn value(
    program: &ArrayProgram,
    workspace: &mut Workspace,
    at: usize,
    lane: &SweepColumn,
    count: usize,
) -> Option<Value> {
    let memory = &mut workspace.memory[at];
    match program.qtype(lane.value) {
        QType::Array(kind, scalar) => {
            let made = std::mem::take(memory).into_array(*scalar, count, lane.has_bits)?;
            let array = match workspace.found[at].take() {
                Some(mut found) => {
                    *Arc::get_mut(&mut found)? = made;
                    found
                }
                None => Arc::new(made),
            };
            Some(Value::Array(*kind, array))
        }
        QType::Scalar(scalar) => memory.first(*scalar, false).map(Value::Scalar),
        QType::Optional(scalar) => Some(Value::optional(*scalar, memory.first(*scalar, lane.has_bits))),
        _ => None,
    }
}
