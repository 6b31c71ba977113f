//! What a sweep needs, found out before anything runs: its columns, and for each stage which of them it reads and writes. A
//! layout is plain data. It has no memory and no machine code: the engine adds these.

use super::storage::Storage;
use crate::{Action, ArrayProgram, PartId, Side, Stage, Step, Sweep, ValueId};
use cembra_ops::{Finish, Fold, Gathers, InStrips, Scan, accumulator, id, scanner};
use cembra_plan::{Action as PlanAction, BlockId as PlanBlockId, Plan, ValueId as PlanValueId};
use cembra_runtime::{EdgeType, QType, Scalar};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

/// The most arrays from outside that a sweep goes over.
const MOST_ARRAYS: u32 = u128::BITS;

/// What a column of a sweep is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Origin {
    /// An array from outside, which goes along with the strips.
    Array,
    /// An array from outside that has the values of an edge's groups: all of it is looked at by every strip.
    Looked,
    /// A scalar from outside, the same for all.
    Shared,
    /// It is made here, and only strips of it are seen.
    Strip,
    /// It is made here strip by strip, and is an array afterwards.
    Kept,
    /// It is a fold's result once all strips are through: an array of groups, or a scalar.
    Result,
}

/// A column of a sweep.
#[derive(Clone, Debug)]
pub struct Lane {
    /// The value of the program that the column has elements of.
    pub value: ValueId,
    /// What it is.
    pub origin: Origin,
    /// The type of an element, its presence apart.
    pub scalar: Scalar,
    /// How its elements are stored.
    pub storage: Storage,
    /// Whether it has elements, or values of groups.
    pub over: Side,
    /// True if it may have bits of presence: surely, if it is made here.
    pub has_bits: bool,
    /// Of an array from outside, its bit in what says which of them have bits.
    pub bit: u32,
    /// The accumulator of all elements that sums it, if nothing else is done with it.
    pub sum: Option<usize>,
}

impl Lane {
    /// True if its elements are added to the sums of its accumulator, and not seen. `adds` says that the code of a run does so.
    #[inline]
    #[must_use]
    pub const fn is_added(&self, adds: bool) -> bool {
        adds && self.sum.is_some()
    }

    /// How its elements are stored in a run: numbers that are only added are not stored.
    #[inline]
    #[must_use]
    pub const fn storage(&self, adds: bool) -> Storage {
        if self.is_added(adds) { Storage::Nothing } else { self.storage }
    }
}

/// A column that a plan takes, and what of it the code of the plan is made for.
#[derive(Clone, Copy, Debug)]
pub struct Port {
    /// The position of the column.
    pub lane: usize,
    /// True if the plan takes values that may be missing.
    pub is_optional: bool,
}

/// The groups that a stage goes over.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Over {
    /// One group, of all elements.
    Whole,
    /// Those of an edge from outside.
    Edge(ValueId),
}

/// A fold's result.
#[derive(Clone, Copy, Debug)]
pub struct FoldResult {
    /// How it is made of what was gathered.
    pub finish: Finish,
    /// The position of the column that it is put into.
    pub lane: usize,
}

/// What a stage does. Columns, accumulators and scanners are given by their positions in the layout.
#[derive(Clone, Debug)]
pub enum Work {
    /// Evaluates a plan: the functions of a run are in the order of these.
    Map {
        /// The plan.
        part: PartId,
        /// The columns of its inputs, in their order.
        inputs: Vec<Port>,
        /// The columns of its outputs, in their order.
        outputs: Vec<usize>,
        /// Whether it is evaluated for elements or for groups.
        side: Side,
    },
    /// Gives the accumulator a column.
    Fold {
        /// The accumulator.
        accumulator: usize,
        /// The column.
        x: usize,
        /// The groups that it is gathered by.
        over: Over,
    },
    /// Asks the accumulator for what it has of the groups of the strip.
    Finish {
        /// The accumulator.
        accumulator: usize,
        /// What it is asked for.
        wanted: FoldResult,
    },
    /// A scan.
    Scan {
        /// The scanner.
        scanner: usize,
        /// The column that is scanned.
        x: usize,
        /// The column that is made.
        to: usize,
        /// The groups, each of which is scanned by itself.
        over: Over,
    },
    /// The value of each element's group.
    Expand {
        /// The column with a value for each group.
        values: usize,
        /// The column that is made.
        to: usize,
        /// The groups.
        over: Over,
        /// True if each group that has an element has a value.
        is_there: bool,
    },
    /// The quotient of each element by the value of its group, all FLOAT64.
    Divide {
        /// The column of the elements.
        x: usize,
        /// The column with a divisor for each group.
        by: usize,
        /// The column that is made.
        to: usize,
        /// The groups.
        over: Over,
    },
}

/// What an accumulator gathers.
#[derive(Clone, Copy, Debug)]
pub struct Gathering {
    /// What it keeps of a group.
    pub gathers: Gathers,
    /// The type of the elements.
    pub scalar: Scalar,
    /// The groups.
    pub over: Over,
    /// The side of the column that it is given.
    pub side: Side,
}

/// What a scanner does.
#[derive(Clone, Copy, Debug)]
pub struct Scanning {
    /// The scan.
    pub scan: Scan,
    /// The type of the elements.
    pub scalar: Scalar,
    /// The groups, each of which is scanned by itself.
    pub over: Over,
    /// The side of the column that it is given.
    pub side: Side,
}

/// The columns and stages of a sweep. Only [`ArrayProgram::sweep_layouts`] makes one, and nothing changes it: code that runs a
/// sweep relies on its types and positions without looking at them again.
#[derive(Debug)]
pub struct SweepLayout {
    lanes: Vec<Lane>,
    work: Vec<Work>,
    groups: Option<ValueId>,
    whole: Vec<(ValueId, Side)>,
    accumulators: Vec<Gathering>,
    results: Vec<(usize, FoldResult)>,
    scanners: Vec<Scanning>,
}

impl SweepLayout {
    /// The columns.
    #[inline]
    #[must_use]
    pub fn lanes(&self) -> &[Lane] {
        &self.lanes
    }

    /// What the stages do, in their order.
    #[inline]
    #[must_use]
    pub fn work(&self) -> &[Work] {
        &self.work
    }

    /// The edge whose groups strips hold whole, if there is one.
    #[inline]
    #[must_use]
    pub const fn groups(&self) -> Option<ValueId> {
        self.groups
    }

    /// Edges of all elements, or all groups, with a scalar: only their sizes matter.
    #[inline]
    #[must_use]
    pub fn whole(&self) -> &[(ValueId, Side)] {
        &self.whole
    }

    /// What each accumulator gathers.
    #[inline]
    #[must_use]
    pub fn accumulators(&self) -> &[Gathering] {
        &self.accumulators
    }

    /// What is asked of accumulators, by their positions, once all strips are through.
    #[inline]
    #[must_use]
    pub fn results(&self) -> &[(usize, FoldResult)] {
        &self.results
    }

    /// What each scanner does.
    #[inline]
    #[must_use]
    pub fn scanners(&self) -> &[Scanning] {
        &self.scanners
    }
}

/// A sweep that is being laid out.
struct Layout<'p> {
    program: &'p ArrayProgram,
    sweep: &'p Sweep,
    lanes: Vec<Lane>,
    /// What comes from outside may be seen from both sides.
    of_values: FxHashMap<(ValueId, Side), usize>,
    /// What is looked at, which may be seen in strips besides.
    looked_at: FxHashMap<ValueId, usize>,
    kept: FxHashSet<ValueId>,
    /// What the sums among the folds take.
    sums: FxHashSet<&'p [ValueId]>,
    arrays: u32,
}

impl Layout<'_> {
    /// The scalar type of a value that strips can hold.
    fn scalar(&self, value: ValueId) -> Option<Scalar> {
        self.program.qtype(value).of_each().scalar().filter(|scalar| !scalar.is_string())
    }

    /// The column of a value that a stage takes; none if it is only there once all strips are through.
    fn taken(&mut self, value: ValueId, over: Side) -> Option<usize> {
        if let Some(lane) = self.made_lane(value).or(self.of_values.get(&(value, over)).copied()) {
            // What the other side makes has another number of elements.
            return Some(lane)
                .filter(|lane| self.lanes[*lane].origin != Origin::Result && self.lanes[*lane].over == over);
        }
        let scalar = self.scalar(value)?;
        let qtype = self.program.qtype(value);
        let origin = if matches!(qtype, QType::Array(..)) { Origin::Array } else { Origin::Shared };
        Some(self.add(value, origin, scalar, over, !self.program.is_full(value)))
    }

    /// The column of a value that an earlier stage makes.
    fn made_lane(&self, value: ValueId) -> Option<usize> {
        let is_made = |lane: &usize| !matches!(self.lanes[*lane].origin, Origin::Array | Origin::Shared);
        let of_side = |side| self.of_values.get(&(value, side)).copied().filter(is_made);
        of_side(Side::Elements).or(of_side(Side::Groups))
    }

    /// The column of a value that is expanded over an edge: what a stage makes of the groups of strips, or an array.
    fn expanded(&mut self, value: ValueId, is_of_strips: bool) -> Option<usize> {
        if self.made_lane(value).is_some() {
            // Groups of another edge than the strips' are looked for in a whole array.
            return self.taken(value, Side::Groups).filter(|_| is_of_strips);
        }
        if let Some(lane) = self.looked_at.get(&value) {
            return Some(*lane);
        }
        if !matches!(self.program.qtype(value), QType::Array(..)) {
            return None;
        }
        let lane = self.add(value, Origin::Looked, self.scalar(value)?, Side::Groups, !self.program.is_full(value));
        self.looked_at.insert(value, lane);
        Some(lane)
    }

    /// The column of a value that a stage makes.
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
        self.lanes.push(Lane { value, origin, scalar, storage, over, has_bits, bit, sum: None });
        self.arrays += u32::from(matches!(origin, Origin::Array | Origin::Looked));
        if origin != Origin::Looked {
            self.of_values.insert((value, over), self.lanes.len() - 1);
        }
        self.lanes.len() - 1
    }

    /// What a fold gathers: counting is done beside a sum of the same.
    fn gathers(&self, fold: Fold, step: &Step, scalar: Scalar) -> Gathers {
        match fold.gathers.of(scalar) {
            Gathers::Count if self.sums.contains(&step.args[..]) => Gathers::Sum,
            other => other,
        }
    }

    fn over(&self, step: &Step) -> Option<Over> {
        let edge = step.args.get(1).copied()?;
        Some(match self.program.qtype(edge) {
            QType::Edge(EdgeType::Arrays(_)) => Over::Edge(edge),
            QType::Edge(EdgeType::ToScalar(_)) | QType::Unspecified => Over::Whole,
            _ => return None,
        })
    }
}

fn in_strips(program: &ArrayProgram, step: &Step) -> Option<InStrips> {
    match step.action {
        Action::Operator(op) => program.registry.get(op).in_strips,
        _ => None,
    }
}

/// True for what was gathered of the groups of an edge, and is there for each group that has an element: all elements are there.
fn is_of_own_groups(program: &ArrayProgram, value: ValueId, edge: ValueId) -> bool {
    let stages = program.sweeps.iter().flat_map(|sweep| &sweep.stages);
    let mut makers = stages.map(|stage| &stage.step).filter(|step| step.outs.contains(&value));
    makers.any(|step| {
        let is_there = matches!(in_strips(program, step), Some(InStrips::Fold(fold)) if fold.is_there_of_full());
        is_there && step.args.get(1) == Some(&edge) && program.is_full(step.args[0])
    })
}

/// The inputs of a plan that divides the first by the second and does nothing else.
fn quotient(plan: &Plan) -> Option<[usize; 2]> {
    let mut input: FxHashMap<PlanValueId, usize> =
        plan.inputs().iter().enumerate().map(|(at, input)| (input.value, at)).collect();
    let mut found = None;
    for step in plan.block(PlanBlockId::TOP).steps.iter().map(|step| plan.step(*step)) {
        match (&step.action, plan.args(step)) {
            // What is there is an optional to what is not.
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
    /// The layout of each sweep; none for a sweep that strips cannot hold, whose stages are to be run one by one.
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
    /// The layout of a sweep; none if strips cannot hold what it goes over. `kept` are the values that others use.
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
            matches!(in_strips, Some(InStrips::Fold(Fold { gathers: Gathers::Sum, .. })))
        };
        let mut layout = Layout {
            program,
            sweep,
            lanes: Vec::new(),
            of_values: FxHashMap::default(),
            looked_at: FxHashMap::default(),
            kept: kept.iter().copied().collect(),
            sums: sweep.stages.iter().filter(sums).map(|stage| &stage.step.args[..]).collect(),
            arrays: 0,
        };
        let mut folds: FxHashMap<(Gathers, usize, Over), usize> = FxHashMap::default();
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
                    let Over::Edge(edge) = over else { return None };
                    let is_of_strips = layout.sweep.groups == Some(edge) && stage.over == Side::Elements;
                    let values = layout.expanded(step.args[0], is_of_strips)?;
                    let has_bits = !program.is_full(out);
                    let to = layout.made(out, stage.over, has_bits, true)?;
                    let is_there = is_of_own_groups(program, step.args[0], edge);
                    made.work.push(Work::Expand { values, to, over, is_there });
                }
                (Some(InStrips::Scan(scan)), _) => {
                    let x = layout.taken(step.args[0], stage.over)?;
                    let has_bits = !program.is_full(out);
                    let to = layout.made(out, stage.over, has_bits, true)?;
                    let scalar = layout.lanes[x].scalar;
                    scanner(scan, scalar)?;
                    made.scanners.push(Scanning { scan, scalar, over, side: stage.over });
                    made.work.push(Work::Scan { scanner: made.scanners.len() - 1, x, to, over });
                }
                (Some(InStrips::Fold(fold)), _) => {
                    let x = layout.taken(step.args[0], stage.over)?;
                    let scalar = layout.lanes[x].scalar;
                    let gathers = layout.gathers(fold, step, scalar);
                    accumulator(gathers, scalar)?;
                    let accumulator = *folds.entry((gathers, x, over)).or_insert_with(|| {
                        made.accumulators.push(Gathering { gathers, scalar, over, side: stage.over });
                        let accumulator = made.accumulators.len() - 1;
                        made.work.push(Work::Fold { accumulator, x, over });
                        accumulator
                    });
                    let is_seen = sweep.groups.is_some_and(|edge| over == Over::Edge(edge));
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

    /// Finds the columns that are only summed: no stage needs to see what their plans make.
    fn find_sums(&mut self) {
        // Strips of groups begin anywhere.
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
                    sums.extend((gathers == Gathers::Sum && *over == Over::Whole).then_some((*x, *accumulator)));
                }
                Work::Scan { x, .. } => uses[*x] += 1,
                Work::Expand { values, .. } => uses[*values] += 1,
                // There are none yet.
                Work::Divide { .. } | Work::Finish { .. } => {}
            }
        }
        let maps =
            self.work.iter().filter_map(|work| if let Work::Map { outputs, .. } = work { Some(outputs) } else { None });
        let made: FxHashSet<usize> = maps.flatten().copied().collect();
        for (x, accumulator) in sums {
            let lane = &mut self.lanes[x];
            // What is made in FLOAT32 would be made of half as many rows at a time beside sums in FLOAT64.
            let is_double = lane.scalar == Scalar::Float64;
            if lane.origin == Origin::Strip && is_double && uses[x] == 1 && made.contains(&x) {
                lane.sum = Some(accumulator);
            }
        }
    }

    /// Finds the plans that divide each element by a value of its group, and nothing else: that needs no column of the values of
    /// all elements, and no division for each.
    fn find_quotients(&mut self, program: &ArrayProgram) {
        let (Some(edge), lanes) = (self.groups, &self.lanes) else { return };
        let is_double = |lane: usize| lanes[lane].scalar.representation() == Scalar::Float64;
        let mut expanded: FxHashMap<usize, usize> = FxHashMap::default();
        let mut divided: FxHashSet<usize> = FxHashSet::default();
        for work in &mut self.work {
            match work {
                Work::Expand { values, to, over, .. } => {
                    let is_full = !lanes[*values].has_bits && !lanes[*to].has_bits;
                    if is_full && *over == Over::Edge(edge) && lanes[*to].over == Side::Elements {
                        expanded.insert(*to, *values);
                    }
                }
                Work::Map { part, inputs, outputs, .. } => {
                    let Some(ports) = quotient(&program.part(*part).plan) else { continue };
                    let ([x, by], to) = (ports.map(|port| inputs[port].lane), outputs[0]);
                    let (of_elements, Some(by)) = (by, expanded.get(&by).copied()) else { continue };
                    if [x, by, to].into_iter().all(is_double) && lanes[x].origin != Origin::Shared {
                        *work = Work::Divide { x, by, to, over: Over::Edge(edge) };
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
        // Others stay, since their sizes are compared even where no stage reads what they make.
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
            inputs.push(Port { lane, is_optional: qtype.is_optional() });
        }
        // The sizes of arrays that the plan does not need are compared too.
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
