//! The layout of a sweep (a fused loop over elements), made before anything runs: its columns, and for each stage the
//! columns that it reads and writes. A layout is plain data; the engine adds memory and machine code to it.

use super::storage::Storage;
use crate::{Action, ArrayProgram, PartId, Side, Stage, Step, Sweep, ValueId};
use cembra_ops::{Finish, Fold, Quantity, Scan, StripMethod, accumulator, id, scanner};
use cembra_plan::{Action as PlanAction, BlockId as PlanBlockId, Plan, ValueId as PlanValueId};
use cembra_runtime::{EdgeType, QType, Scalar};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

/// The most arrays that a sweep can read without computing them, because each has a bit in a `u128`.
const MOST_ARRAYS: u32 = u128::BITS;

/// The source of the data in a column of a sweep (a fused loop over elements).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Origin {
    /// The column is an array, not computed by the sweep, that is read strip by strip, in blocks of consecutive elements.
    Array,
    /// The column is an array, not computed by the sweep, with a value per group of an edge. Each strip (block of elements) may
    /// read any part of the array.
    RandomAccess,
    /// The column is a scalar, not computed by the sweep, that is the same for all elements.
    Shared,
    /// A stage computes the column, and only later stages use it. Only one strip (block of elements) of the column exists at a
    /// time.
    Strip,
    /// A stage computes the column strip by strip (in blocks of elements), and the column is stored as an array.
    Kept,
    /// The column is the result of an aggregation, available after the last strip: an array with a value per group, or a
    /// scalar.
    Result,
}

/// A column of a sweep (a fused loop over elements): elements, or values of groups, that stages of the sweep read or write.
#[derive(Clone, Debug)]
pub struct SweepColumn {
    /// The value of the program whose elements are in the column.
    pub value: ValueId,
    /// The source of the column's data.
    pub origin: Origin,
    /// The type of the column's elements, without presence.
    pub scalar: Scalar,
    /// The storage of the column's elements.
    pub storage: Storage,
    /// Whether the column has a value per element or a value per group.
    pub over: Side,
    /// True if the column may have presence bits. If a stage of the sweep computes the column, true means that the
    /// column certainly has presence bits.
    pub has_bits: bool,
    /// The number of the column's bit in a `u128`, the set of arrays that have presence bits. Meaningful only for arrays that the sweep does not
    /// compute.
    pub bit: u32,
    /// The index of the accumulator that sums all elements of the column, if nothing else uses the elements; else
    /// `None`.
    pub sum: Option<usize>,
}

impl SweepColumn {
    /// Returns true if the column's elements are only added to the sums of an accumulator and not stored. `adds` is
    /// true if the machine code of the run adds them itself.
    #[inline]
    #[must_use]
    pub const fn is_added(&self, adds: bool) -> bool {
        adds && self.sum.is_some()
    }

    /// The storage of the column's elements in a run: `Nothing` for elements that are only added to sums. `adds` is
    /// true if the machine code of the run adds them itself.
    #[inline]
    #[must_use]
    pub const fn storage(&self, adds: bool) -> Storage {
        if self.is_added(adds) { Storage::Nothing } else { self.storage }
    }
}

/// An input of a plan in a sweep (a fused loop over elements): the column that the plan reads, and whether the plan takes
/// missing values.
#[derive(Clone, Copy, Debug)]
pub struct PlanInput {
    /// The index of the column among the sweep's columns.
    pub lane: usize,
    /// True if the plan takes values that may be missing.
    pub is_optional: bool,
}

/// The groups that a stage of a sweep (a fused loop over elements) goes over: a single group with all elements, or the groups of
/// an edge.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum GroupScope {
    /// The stage goes over one group, which contains all elements.
    Whole,
    /// The stage goes over the groups of this edge, which assigns elements to groups. The sweep does not compute the
    /// edge.
    Edge(ValueId),
}

/// The result of an aggregation: how it is computed from the accumulated value, and the column that receives it.
#[derive(Clone, Copy, Debug)]
pub struct FoldResult {
    /// The computation of the result from the accumulated value.
    pub finish: Finish,
    /// The index of the column that receives the result.
    pub lane: usize,
}

/// The work of a stage of a sweep (a fused loop over elements), such as evaluating a plan, or adding elements to an accumulator.
/// Columns, accumulators and scanners are given by their indices in the layout.
#[derive(Clone, Debug)]
pub enum Work {
    /// Evaluates a plan for each element or group. A run must be given the compiled plans in the order of these stages.
    Map {
        /// The plan that is evaluated.
        part: PartId,
        /// The columns that the plan's inputs are read from, in their order.
        inputs: Vec<PlanInput>,
        /// The indices of the columns that the plan's outputs are written to, in their order.
        outputs: Vec<usize>,
        /// Whether the plan is evaluated for elements or for groups.
        side: Side,
    },
    /// Adds the elements of a column to an accumulator.
    Fold {
        /// The index of the accumulator that the elements are added to.
        accumulator: usize,
        /// The index of the column that is accumulated.
        x: usize,
        /// The groups that the elements are accumulated by.
        over: GroupScope,
    },
    /// Reads the results for the groups of the strip (block of elements) from an accumulator.
    Finish {
        /// The index of the accumulator that has the results.
        accumulator: usize,
        /// The result that is read, and the column that receives it.
        wanted: FoldResult,
    },
    /// Scans a column, in each group separately.
    Scan {
        /// The index of the scanner (the state of a scan) that is used.
        scanner: usize,
        /// The index of the column that is scanned.
        x: usize,
        /// The index of the column that receives the results of the scan.
        to: usize,
        /// The groups that are scanned, each by itself.
        over: GroupScope,
    },
    /// Gives each element the value of its group.
    Expand {
        /// The index of the column that has a value per group.
        values: usize,
        /// The index of the column that receives the values of the elements' groups.
        to: usize,
        /// The groups whose values are copied.
        over: GroupScope,
        /// True if each group with an element certainly has a value.
        is_there: bool,
    },
    /// Divides each element by the value of its group, all in FLOAT64.
    Divide {
        /// The index of the column that has the dividends.
        x: usize,
        /// The index of the column that has a divisor per group.
        by: usize,
        /// The index of the column that receives the quotients.
        to: usize,
        /// The groups that the elements are in.
        over: GroupScope,
    },
}

/// The configuration of an accumulator (the state of an aggregation): what it aggregates, and over which groups.
#[derive(Clone, Copy, Debug)]
pub struct AccumulatorSpec {
    /// The quantity that is accumulated per group, such as a sum.
    pub gathers: Quantity,
    /// The type of the elements that are accumulated.
    pub scalar: Scalar,
    /// The groups of elements. Each group is accumulated by itself.
    pub over: GroupScope,
    /// The side (elements or groups) that the accumulated column belongs to.
    pub side: Side,
}

/// The configuration of a scanner (the state of a scan): which scan it computes, and over which groups.
#[derive(Clone, Copy, Debug)]
pub struct ScannerSpec {
    /// The kind of scan.
    pub scan: Scan,
    /// The type of the elements that are scanned.
    pub scalar: Scalar,
    /// The groups that are scanned, each by itself.
    pub over: GroupScope,
    /// The side (elements or groups) that the scanned column belongs to.
    pub side: Side,
}

/// The columns and stages of a sweep (a fused loop over elements). Only [`ArrayProgram::sweep_layouts`] makes a layout, and
/// nothing changes it. So code that runs a sweep trusts the layout's types and indices without checking them again.
#[derive(Debug)]
pub struct SweepLayout {
    lanes: Vec<SweepColumn>,
    work: Vec<Work>,
    groups: Option<ValueId>,
    whole: Vec<(ValueId, Side)>,
    accumulators: Vec<AccumulatorSpec>,
    results: Vec<(usize, FoldResult)>,
    scanners: Vec<ScannerSpec>,
}

impl SweepLayout {
    /// The columns of the sweep.
    #[inline]
    #[must_use]
    pub fn lanes(&self) -> &[SweepColumn] {
        &self.lanes
    }

    /// The work of each stage of the sweep, in order.
    #[inline]
    #[must_use]
    pub fn work(&self) -> &[Work] {
        &self.work
    }

    /// The edge (grouping of elements) whose groups must not be divided between the strips (blocks of elements) of the sweep;
    /// `None` if groups may be divided.
    #[inline]
    #[must_use]
    pub const fn groups(&self) -> Option<ValueId> {
        self.groups
    }

    /// The edges (groupings) that put all elements, or all groups, into one group. A run reads only the sizes of these edges, and must check that
    /// they agree with the numbers of elements and groups.
    #[inline]
    #[must_use]
    pub fn whole(&self) -> &[(ValueId, Side)] {
        &self.whole
    }

    /// The configuration of each accumulator (the state of an aggregation) that the sweep needs.
    #[inline]
    #[must_use]
    pub fn accumulators(&self) -> &[AccumulatorSpec] {
        &self.accumulators
    }

    /// The results that are read from accumulators (states of aggregations) at the end of the sweep. Each result has
    /// the index of its accumulator.
    #[inline]
    #[must_use]
    pub fn results(&self) -> &[(usize, FoldResult)] {
        &self.results
    }

    /// The configuration of each scanner (the state of a scan) that the sweep needs.
    #[inline]
    #[must_use]
    pub fn scanners(&self) -> &[ScannerSpec] {
        &self.scanners
    }
}

/// The state while a sweep is laid out: the columns found so far, and how values map to them.
struct Layout<'p> {
    program: &'p ArrayProgram,
    sweep: &'p Sweep,
    lanes: Vec<SweepColumn>,
    /// The index of the column of each value, for elements or for groups. A value that the sweep does not compute may
    /// have a column for each of the two.
    of_values: FxHashMap<(ValueId, Side), usize>,
    /// For each array that a strip may read any part of ([`Origin::RandomAccess`]), the index of its column. The array may
    /// also be read strip by strip, by another column.
    random_access: FxHashMap<ValueId, usize>,
    kept: FxHashSet<ValueId>,
    /// The arguments of each aggregation that is a sum, so that a count over the same arguments can share its
    /// accumulator.
    sums: FxHashSet<&'p [ValueId]>,
    arrays: u32,
}

impl Layout<'_> {
    /// The scalar type of a value; `None` if the value cannot be computed in strips (blocks of elements), as for
    /// strings.
    fn scalar(&self, value: ValueId) -> Option<Scalar> {
        self.program.qtype(value).of_each().scalar().filter(|scalar| !scalar.is_string())
    }

    /// The index of the column of a value that a stage reads. `None` if the value cannot be read in strips (blocks of
    /// elements), or if the sweep computes the value but this stage cannot read it: it is available only after the last
    /// strip, or has another number of elements.
    fn taken(&mut self, value: ValueId, over: Side) -> Option<usize> {
        if let Some(lane) = self.made_lane(value).or(self.of_values.get(&(value, over)).copied()) {
            // A column of the other side has another number of elements.
            return Some(lane)
                .filter(|lane| self.lanes[*lane].origin != Origin::Result && self.lanes[*lane].over == over);
        }
        let scalar = self.scalar(value)?;
        let qtype = self.program.qtype(value);
        let origin = if matches!(qtype, QType::Array(..)) { Origin::Array } else { Origin::Shared };
        Some(self.add(value, origin, scalar, over, !self.program.is_full(value)))
    }

    /// The index of the column of a value that an earlier stage of the sweep computes; `None` for other values.
    fn made_lane(&self, value: ValueId) -> Option<usize> {
        let is_made = |lane: &usize| !matches!(self.lanes[*lane].origin, Origin::Array | Origin::Shared);
        let of_side = |side| self.of_values.get(&(value, side)).copied().filter(is_made);
        of_side(Side::Elements).or(of_side(Side::Groups))
    }

    /// The index of the column with a value per group that an expansion reads: a column of the sweep itself, or an
    /// array that the sweep does not compute. `is_strip_grouping` is true if the expansion is over the edge whose groups
    /// the strips (blocks of elements) never divide.
    fn expanded(&mut self, value: ValueId, is_strip_grouping: bool) -> Option<usize> {
        if self.made_lane(value).is_some() {
            // Only the groups of the strips' own edge are available in strips; others need a whole array.
            return self.taken(value, Side::Groups).filter(|_| is_strip_grouping);
        }
        if let Some(lane) = self.random_access.get(&value) {
            return Some(*lane);
        }
        if !matches!(self.program.qtype(value), QType::Array(..)) {
            return None;
        }
        let lane =
            self.add(value, Origin::RandomAccess, self.scalar(value)?, Side::Groups, !self.program.is_full(value));
        self.random_access.insert(value, lane);
        Some(lane)
    }

    /// Adds the column of a value that a stage computes. `is_seen` is true if later stages of the sweep may read it.
    fn made(&mut self, value: ValueId, over: Side, has_bits: bool, is_seen: bool) -> Option<usize> {
        let scalar = self.scalar(value)?;
        let origin = match () {
            () if !is_seen => Origin::Result,
            () if self.kept.contains(&value) => Origin::Kept,
            () => Origin::Strip,
        };
        Some(self.add(value, origin, scalar, over, has_bits))
    }

    fn add(&mut self, value: ValueId, origin: Origin, scalar: Scalar, over: Side, has_bits: bool) -> usize {
        let (storage, bit) = (Storage::of(scalar), self.arrays);
        self.lanes.push(SweepColumn { value, origin, scalar, storage, over, has_bits, bit, sum: None });
        self.arrays += u32::from(matches!(origin, Origin::Array | Origin::RandomAccess));
        if origin != Origin::RandomAccess {
            self.of_values.insert((value, over), self.lanes.len() - 1);
        }
        self.lanes.len() - 1
    }

    /// The quantity that a fold accumulates. A count uses the accumulator of a sum over the same arguments, if there is one.
    fn gathers(&self, fold: Fold, step: &Step, scalar: Scalar) -> Quantity {
        match fold.gathers.of(scalar) {
            Quantity::Count if self.sums.contains(&step.args[..]) => Quantity::Sum,
            other => other,
        }
    }

    /// The groups that an aggregation, scan or expansion goes over; `None` if a sweep cannot go over them.
    fn over(&self, step: &Step) -> Option<GroupScope> {
        let edge = step.args.get(1).copied()?;
        Some(match self.program.qtype(edge) {
            QType::Edge(EdgeType::Arrays(_)) => GroupScope::Edge(edge),
            QType::Edge(EdgeType::ToScalar(_)) | QType::Unspecified => GroupScope::Whole,
            _ => return None,
        })
    }
}

/// The way in which a step's operator is computed strip by strip; `None` if it needs whole arrays.
fn in_strips(program: &ArrayProgram, step: &Step) -> Option<StripMethod> {
    match step.action {
        Action::Operator(op) => program.registry.get(op).in_strips,
        _ => None,
    }
}

/// Returns true if a value was aggregated over the groups of `edge` from a full array (without missing elements), and
/// therefore has a result for each group that has elements.
fn is_of_own_groups(program: &ArrayProgram, value: ValueId, edge: ValueId) -> bool {
    let stages = program.sweeps.iter().flat_map(|sweep| &sweep.stages);
    let mut makers = stages.map(|stage| &stage.step).filter(|step| step.outs.contains(&value));
    makers.any(|step| {
        let is_there = matches!(in_strips(program, step), Some(StripMethod::Fold(fold)) if fold.is_there_of_full());
        is_there && step.args.get(1) == Some(&edge) && program.is_full(step.args[0])
    })
}

/// The indices of the dividend and the divisor among a plan's inputs, if the plan is a single division of inputs; else `None`.
fn quotient(plan: &Plan) -> Option<[usize; 2]> {
    let mut input: FxHashMap<PlanValueId, usize> =
        plan.inputs().iter().enumerate().map(|(at, input)| (input.value, at)).collect();
    let mut found = None;
    for step in plan.block(PlanBlockId::TOP).steps.iter().map(|step| plan.step(*step)) {
        match (&step.action, plan.args(step)) {
            // Conversion to optional does not change the value.
            (PlanAction::Operator { op: id::TO_OPTIONAL, .. }, [x]) if input.contains_key(x) => {
                input.insert(step.out, input[x]);
            }
            (PlanAction::Operator { op: id::DIVIDE, .. }, [x, by]) if found.is_none() => {
                found = Some((step.out, [*input.get(x)?, *input.get(by)?]));
            }
            _ => return None,
        }
    }
    let ((out, ports), [output]) = (found?, plan.outputs()) else { return None };
    (output.value == out && ports[0] != ports[1]).then_some(ports)
}

impl ArrayProgram {
    /// The layout of each sweep (fused loop over elements) of the program; `None` for a sweep that cannot run strip by strip.
    /// The stages of such a sweep must run one by one on whole arrays.
    #[must_use]
    pub fn sweep_layouts(&self) -> Vec<Option<SweepLayout>> {
        let mut layouts: Vec<Option<SweepLayout>> = self.sweeps.iter().map(|_| None).collect();
        for step in self.blocks.iter().flat_map(|block| &block.steps) {
            if let Action::Sweep(sweep) = step.action {
                layouts[sweep.index()] = SweepLayout::of(self, self.sweep(sweep), &step.outs);
            }
        }
        layouts
    }
}

impl SweepLayout {
    /// The layout of a sweep; `None` if its values cannot be computed in strips (blocks of elements). `kept` are the
    /// values that are used outside of the sweep.
    fn of(program: &ArrayProgram, sweep: &Sweep, kept: &[ValueId]) -> Option<SweepLayout> {
        let mut made = SweepLayout {
            lanes: Vec::new(),
            work: Vec::new(),
            groups: sweep.groups,
            whole: Vec::new(),
            accumulators: Vec::new(),
            results: Vec::new(),
            scanners: Vec::new(),
        };
        let sums = |stage: &'_ &Stage| {
            let in_strips = in_strips(program, &stage.step);
            matches!(in_strips, Some(StripMethod::Fold(Fold { gathers: Quantity::Sum, .. })))
        };
        let mut layout = Layout {
            program,
            sweep,
            lanes: Vec::new(),
            of_values: FxHashMap::default(),
            random_access: FxHashMap::default(),
            kept: kept.iter().copied().collect(),
            sums: sweep.stages.iter().filter(sums).map(|stage| &stage.step.args[..]).collect(),
            arrays: 0,
        };
        let mut folds: FxHashMap<(Quantity, usize, GroupScope), usize> = FxHashMap::default();
        for stage in &sweep.stages {
            let step = &stage.step;
            if let Action::Map(part) = step.action {
                let work = made.map(&mut layout, part, step, stage.over)?;
                made.work.push(work);
                continue;
            }
            let over = layout.over(step)?;
            let out = *step.outs.first()?;
            if matches!(program.qtype(step.args[1]), QType::Edge(EdgeType::ToScalar(_))) {
                made.whole.push((step.args[1], stage.over));
            }
            match (in_strips(program, step), step.action) {
                (_, Action::Operator(id::ARRAY_EXPAND)) => {
                    let GroupScope::Edge(edge) = over else { return None };
                    let is_strip_grouping = layout.sweep.groups == Some(edge) && stage.over == Side::Elements;
                    let values = layout.expanded(step.args[0], is_strip_grouping)?;
                    let has_bits = !program.is_full(out);
                    let to = layout.made(out, stage.over, has_bits, true)?;
                    let is_there = is_of_own_groups(program, step.args[0], edge);
                    made.work.push(Work::Expand { values, to, over, is_there });
                }
                (Some(StripMethod::Scan(scan)), _) => {
                    let x = layout.taken(step.args[0], stage.over)?;
                    let has_bits = !program.is_full(out);
                    let to = layout.made(out, stage.over, has_bits, true)?;
                    let scalar = layout.lanes[x].scalar;
                    scanner(scan, scalar)?;
                    made.scanners.push(ScannerSpec { scan, scalar, over, side: stage.over });
                    made.work.push(Work::Scan { scanner: made.scanners.len() - 1, x, to, over });
                }
                (Some(StripMethod::Fold(fold)), _) => {
                    let x = layout.taken(step.args[0], stage.over)?;
                    let scalar = layout.lanes[x].scalar;
                    let gathers = layout.gathers(fold, step, scalar);
                    accumulator(gathers, scalar)?;
                    let accumulator = *folds.entry((gathers, x, over)).or_insert_with(|| {
                        made.accumulators.push(AccumulatorSpec { gathers, scalar, over, side: stage.over });
                        let accumulator = made.accumulators.len() - 1;
                        made.work.push(Work::Fold { accumulator, x, over });
                        accumulator
                    });
                    let is_seen = sweep.groups.is_some_and(|edge| over == GroupScope::Edge(edge));
                    let is_optional = match program.qtype(out) {
                        QType::Array(..) => !program.is_full(out),
                        other => other.is_optional(),
                    };
                    let lane = layout.made(out, Side::Groups, is_optional, is_seen)?;
                    let wanted = FoldResult { finish: fold.finish, lane };
                    if is_seen {
                        made.work.push(Work::Finish { accumulator, wanted });
                    } else {
                        made.results.push((accumulator, wanted));
                    }
                }
                _ => return None,
            }
        }
        made.lanes = std::mem::take(&mut layout.lanes);
        made.find_sums();
        made.find_quotients(program);
        (layout.arrays <= MOST_ARRAYS).then_some(made)
    }

    /// Finds the columns that are only summed, and records their accumulators. No stage has to read these columns, so
    /// they need no memory.
    fn find_sums(&mut self) {
        // Strips of whole groups begin at any element.
        if self.groups.is_some() {
            return;
        }
        let mut uses = vec![0; self.lanes.len()];
        let mut sums = Vec::new();
        for work in &self.work {
            match work {
                Work::Map { inputs, .. } => inputs.iter().for_each(|port| uses[port.lane] += 1),
                Work::Fold { accumulator, x, over } => {
                    uses[*x] += 1;
                    let gathers = self.accumulators[*accumulator].gathers;
                    sums.extend((gathers == Quantity::Sum && *over == GroupScope::Whole).then_some((*x, *accumulator)));
                }
                Work::Scan { x, .. } => uses[*x] += 1,
                Work::Expand { values, .. } => uses[*values] += 1,
                // The layout has none of these yet.
                Work::Divide { .. } | Work::Finish { .. } => {}
            }
        }
        let maps =
            self.work.iter().filter_map(|work| if let Work::Map { outputs, .. } = work { Some(outputs) } else { None });
        let made: FxHashSet<usize> = maps.flatten().copied().collect();
        for (x, accumulator) in sums {
            let lane = &mut self.lanes[x];
            // With sums in FLOAT64, a plan in FLOAT32 would compute only half as many rows at a time.
            let is_double = lane.scalar == Scalar::Float64;
            if lane.origin == Origin::Strip && is_double && uses[x] == 1 && made.contains(&x) {
                lane.sum = Some(accumulator);
            }
        }
    }

    /// Finds the plans that only divide each element by a value of its group, and replaces them by `Divide`. That saves
    /// the column with the expanded values, and most of the divisions, because the inverse of a divisor is computed
    /// once per group.
    fn find_quotients(&mut self, program: &ArrayProgram) {
        let (Some(edge), lanes) = (self.groups, &self.lanes) else { return };
        let is_double = |lane: usize| lanes[lane].scalar.representation() == Scalar::Float64;
        let mut expanded: FxHashMap<usize, usize> = FxHashMap::default();
        let mut divided: FxHashSet<usize> = FxHashSet::default();
        for work in &mut self.work {
            match work {
                Work::Expand { values, to, over, .. } => {
                    let is_full = !lanes[*values].has_bits && !lanes[*to].has_bits;
                    if is_full && *over == GroupScope::Edge(edge) && lanes[*to].over == Side::Elements {
                        expanded.insert(*to, *values);
                    }
                }
                Work::Map { part, inputs, outputs, .. } => {
                    let Some(ports) = quotient(&program.part(*part).plan) else { continue };
                    let ([x, by], to) = (ports.map(|port| inputs[port].lane), outputs[0]);
                    let (of_elements, Some(by)) = (by, expanded.get(&by).copied()) else { continue };
                    if [x, by, to].into_iter().all(is_double) && lanes[x].origin != Origin::Shared {
                        *work = Work::Divide { x, by, to, over: GroupScope::Edge(edge) };
                        divided.insert(of_elements);
                    }
                }
                _ => {}
            }
        }
        let seen = |work: &Work| -> SmallVec<[usize; 4]> {
            match work {
                Work::Map { inputs, .. } => inputs.iter().map(|port| port.lane).collect(),
                Work::Fold { x, .. } | Work::Scan { x, .. } | Work::Divide { x, .. } => [*x].into_iter().collect(),
                Work::Expand { values, .. } => [*values].into_iter().collect(),
                Work::Finish { .. } => SmallVec::new(),
            }
        };
        let seen: FxHashSet<usize> = self.work.iter().flat_map(seen).collect();
        let is_seen = |lane: usize| seen.contains(&lane) || self.lanes[lane].origin == Origin::Kept;
        // Other expansions stay even if no stage reads their results, because their sizes must be compared.
        self.work.retain(|work| !matches!(work, Work::Expand { to, .. } if divided.contains(to) && !is_seen(*to)));
    }

    fn map(&self, layout: &mut Layout<'_>, part: PartId, step: &Step, over: Side) -> Option<Work> {
        let program = layout.program;
        let plan = &program.part(part).plan;
        let mut inputs = Vec::new();
        for (input, arg) in plan.inputs().iter().zip(&program.part(part).inputs) {
            let qtype = &plan.value(input.value).qtype;
            let lane = layout.taken(step.args[*arg], over)?;
            if layout.lanes[lane].origin == Origin::Result {
                return None;
            }
            inputs.push(PlanInput { lane, is_optional: qtype.is_optional() });
        }
        // Arrays that the plan does not need are added too, because their sizes must be compared.
        for arg in &step.args {
            if matches!(program.qtype(*arg), QType::Array(..)) {
                layout.taken(*arg, over)?;
            }
        }
        let mut outputs = Vec::new();
        for (output, out) in plan.outputs().iter().zip(&step.outs) {
            let is_optional = plan.value(output.value).qtype.is_optional();
            outputs.push(layout.made(*out, over, is_optional, true)?);
        }
        Some(Work::Map { part, inputs, outputs, side: over })
    }
}
