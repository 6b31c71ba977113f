//! What a sweep needs, found out once: its columns, and for each stage which of them it reads and writes. The machine code of
//! its plans is made for the forms of columns, when they are first met, and kept; so is the memory that runs use.

use super::place::{Lie, Memory, Place};
use crate::{Action, ArrayProgram, PartId, Parts, Side, Stage, Step, Sweep, ValueId};
use cembra_ops::{Accumulator, ArrayOperator, Finish, Fold, Gathers, InStrips, OverArrays, Scanner, id};
use cembra_plan::{Action as PlanAction, BlockId as PlanBlockId, Plan, ValueId as PlanValueId};
use cembra_runtime::{
    BatchFunction, Column, ColumnForm, Context, DataForm, EdgeType, Frame, MadeFor, PresenceForm, QType,
};
use cembra_runtime::{LONG_STRIP_ROWS, STRIP_ROWS, SUM_BLOCK, Scalar, Scratch};
use cembra_value::{Array, Recent};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use std::sync::Arc;

/// For how many choices of arrays with bits of presence functions are kept.
const MOST_VARIANTS: usize = 16;

/// The most arrays from outside that a sweep goes over.
const MOST_ARRAYS: u32 = u128::BITS;

/// Strips of shares and blocks begin together.
const _: () = assert!(SUM_BLOCK.is_multiple_of(LONG_STRIP_ROWS) && SUM_BLOCK.is_multiple_of(STRIP_ROWS));

/// What a column of a sweep is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Origin {
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
pub(super) struct Lane {
    pub(super) value: ValueId,
    pub(super) origin: Origin,
    pub(super) scalar: Scalar,
    pub(super) lie: Lie,
    pub(super) over: Side,
    /// True if it may have bits of presence: surely, if it is made here.
    pub(super) has_bits: bool,
    /// Of an array from outside, its bit in what says which of them have bits.
    pub(super) bit: u32,
    /// The accumulator of all elements that sums it, if nothing else is done with it.
    pub(super) sum: Option<usize>,
}

impl Lane {
    /// True if its elements are added to the sums of its accumulator, and not seen.
    pub(super) const fn is_added(&self, adds: bool) -> bool {
        adds && self.sum.is_some()
    }

    /// How its elements lie in a run: what is added lies nowhere.
    pub(super) const fn lie(&self, adds: bool) -> Lie {
        if self.is_added(adds) { Lie::Nothing } else { self.lie }
    }
}

/// What of a stage's column code is made for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Port {
    /// Which column.
    pub(super) lane: usize,
    /// True if the plan takes values that may be missing.
    pub(super) is_optional: bool,
}

/// The groups that a stage goes over.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Over {
    /// One of all.
    Whole,
    /// Those of an edge from outside.
    Edge(ValueId),
}

/// A fold's result.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    pub(super) finish: Finish,
    pub(super) lane: usize,
}

/// What a stage does.
#[derive(Clone, Debug)]
pub(super) enum Work {
    /// Evaluates a plan: the next of the variant's functions.
    Map { part: PartId, inputs: Vec<Port>, outputs: Vec<usize>, side: Side },
    /// Gives the accumulator a column.
    Fold { accumulator: usize, x: usize, over: Over },
    /// Asks the accumulator for what it has of the groups of the strip.
    Finish { accumulator: usize, wanted: Wanted },
    /// A scan.
    Scan { scanner: usize, x: usize, to: usize, over: Over },
    /// The value of each element's group; `is_there` if each group that has an element has one.
    Expand { values: usize, to: usize, over: Over, is_there: bool },
    /// The quotient of each element by the value of its group, all FLOAT64.
    Divide { x: usize, by: usize, to: usize, over: Over },
}

/// A sweep, ready to be run.
#[derive(Debug)]
pub struct SweepRunner {
    pub(super) lanes: Vec<Lane>,
    pub(super) work: Vec<Work>,
    /// The edge whose groups strips hold whole.
    pub(super) groups: Option<ValueId>,
    /// Edges of all elements, or all groups, with a scalar: of them only the size has a say.
    pub(super) whole: Vec<(ValueId, Side)>,
    pub(super) accumulators: Vec<(Gathers, Scalar, Over, Side)>,
    /// What is asked of accumulators once all strips are through.
    pub(super) results: Vec<(usize, Wanted)>,
    pub(super) scanners: Vec<(cembra_ops::Scan, Scalar, Over, Side)>,
    /// By which arrays have bits of presence.
    variants: Recent<u128, Variant>,
}

/// The functions of a sweep's plans, for columns of some forms.
#[derive(Debug)]
pub(super) struct Variant {
    pub(super) functions: Vec<Box<dyn BatchFunction>>,
    /// True if what is only summed is added to the sums of its accumulator, and not seen.
    pub(super) adds: bool,
    /// The elements of a strip, where strips need not hold groups.
    pub(super) strip: usize,
}

/// What one run needs.
#[derive(Debug)]
pub(crate) struct Workspace {
    /// For each column that is made here.
    pub(super) memory: Vec<Memory>,
    /// For bits of each column that do not begin with a word, and for values that go past the caches.
    pub(super) staged: Vec<Memory>,
    /// Which columns' values do.
    pub(super) is_far: Vec<bool>,
    /// For each scalar.
    pub(super) cells: Vec<Frame>,
    /// Memory of arrays that are made, as it was found.
    pub(super) found: Vec<Option<Arc<Array>>>,
    /// For each function, with the variant that it is of, and the columns that have bits in it.
    pub(super) scratch: Vec<Scratch>,
    pub(super) of: Arc<Variant>,
    pub(super) with_bits: u128,
    pub(super) context: Context,
    pub(super) columns: Vec<Column>,
    /// Where each column begins: its array, its memory for strips.
    pub(super) bases: Vec<Place>,
    /// Where each column's strip lies.
    pub(super) places: Vec<Place>,
    /// Bits of edges, of one strip.
    pub(super) edge_bits: Vec<u64>,
    pub(super) accumulators: Vec<Accumulator>,
    pub(super) scanners: Vec<Scanner>,
    /// Bytes of the strips of groups that are larger than strips are without.
    pub(super) strip_bytes: u64,
    /// Bytes of what accumulators and scanners have of all groups.
    pub(super) group_bytes: u64,
    /// Of other threads.
    pub(super) others: Vec<Workspace>,
}

impl Workspace {
    /// The bytes of its group data, with those of the workspaces of other threads.
    pub(crate) fn kept_bytes(&self) -> u64 {
        let own = self.strip_bytes.saturating_add(self.group_bytes);
        self.others.iter().fold(own, |all, other| all.saturating_add(other.strip_bytes))
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
        let (lie, bit) = (Lie::of(scalar), self.arrays);
        self.lanes.push(Lane { value, origin, scalar, lie, over, has_bits, bit, sum: None });
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

fn operator(program: &ArrayProgram, step: &Step) -> Option<&'static ArrayOperator> {
    match step.action {
        Action::Operator(op) => match program.registry.get(op).over_arrays {
            OverArrays::Kernel(operator) => Some(operator),
            _ => None,
        },
        _ => None,
    }
}

/// True for what was gathered of the groups of an edge, and is there for each group that has an element: all elements are there.
fn is_of_own_groups(program: &ArrayProgram, value: ValueId, edge: ValueId) -> bool {
    let stages = program.sweeps.iter().flat_map(|sweep| &sweep.stages);
    let mut makers = stages.map(|stage| &stage.step).filter(|step| step.outs.contains(&value));
    makers.any(|step| {
        let in_strips = operator(program, step).and_then(|operator| operator.in_strips);
        let is_there = matches!(in_strips, Some(InStrips::Fold(fold)) if fold.is_there_of_full());
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

impl SweepRunner {
    /// What runs a sweep; none if strips cannot hold what it goes over. `kept` are the values that others use.
    #[must_use]
    pub(crate) fn new(program: &ArrayProgram, sweep: &Sweep, kept: &[ValueId]) -> Option<SweepRunner> {
        let mut runner = SweepRunner {
            lanes: Vec::new(),
            work: Vec::new(),
            groups: sweep.groups,
            whole: Vec::new(),
            accumulators: Vec::new(),
            results: Vec::new(),
            scanners: Vec::new(),
            variants: Recent::new(MOST_VARIANTS),
        };
        let sums = |stage: &'_ &Stage| {
            let in_strips = operator(program, &stage.step).and_then(|operator| operator.in_strips);
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
                let work = runner.map(&mut layout, part, step, stage.over)?;
                runner.work.push(work);
                continue;
            }
            let (operator, over) = (operator(program, step)?, layout.over(step)?);
            let out = *step.outs.first()?;
            if matches!(program.qtype(step.args[1]), QType::Edge(EdgeType::ToScalar(_))) {
                runner.whole.push((step.args[1], stage.over));
            }
            match (operator.in_strips, step.action) {
                (_, Action::Operator(id::ARRAY_EXPAND)) => {
                    let Over::Edge(edge) = over else { return None };
                    let is_of_strips = layout.sweep.groups == Some(edge) && stage.over == Side::Elements;
                    let values = layout.expanded(step.args[0], is_of_strips)?;
                    let has_bits = !program.is_full(out);
                    let to = layout.made(out, stage.over, has_bits, true)?;
                    let is_there = is_of_own_groups(program, step.args[0], edge);
                    runner.work.push(Work::Expand { values, to, over, is_there });
                }
                (Some(InStrips::Scan(scan)), _) => {
                    let x = layout.taken(step.args[0], stage.over)?;
                    let has_bits = !program.is_full(out);
                    let to = layout.made(out, stage.over, has_bits, true)?;
                    let scalar = layout.lanes[x].scalar;
                    Scanner::new(scan, scalar)?;
                    runner.scanners.push((scan, scalar, over, stage.over));
                    runner.work.push(Work::Scan { scanner: runner.scanners.len() - 1, x, to, over });
                }
                (Some(InStrips::Fold(fold)), _) => {
                    let x = layout.taken(step.args[0], stage.over)?;
                    let scalar = layout.lanes[x].scalar;
                    let gathers = layout.gathers(fold, step, scalar);
                    Accumulator::new(gathers, scalar)?;
                    let accumulator = *folds.entry((gathers, x, over)).or_insert_with(|| {
                        runner.accumulators.push((gathers, scalar, over, stage.over));
                        let accumulator = runner.accumulators.len() - 1;
                        runner.work.push(Work::Fold { accumulator, x, over });
                        accumulator
                    });
                    let is_seen = sweep.groups.is_some_and(|edge| over == Over::Edge(edge));
                    let is_optional = match program.qtype(out) {
                        QType::Array(..) => !program.is_full(out),
                        other => other.is_optional(),
                    };
                    let lane = layout.made(out, Side::Groups, is_optional, is_seen)?;
                    let wanted = Wanted { finish: fold.finish, lane };
                    if is_seen {
                        runner.work.push(Work::Finish { accumulator, wanted });
                    } else {
                        runner.results.push((accumulator, wanted));
                    }
                }
                _ => return None,
            }
        }
        runner.lanes = std::mem::take(&mut layout.lanes);
        runner.find_sums();
        runner.find_quotients(program);
        (layout.arrays <= MOST_ARRAYS).then_some(runner)
    }

    /// Finds the columns that are only summed: what their plans make need not be seen by anybody.
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
                    let gathers = self.accumulators[*accumulator].0;
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
        // The sizes of others have a say though nobody looks at what they make.
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
        // Arrays that the plan does not need have their say in sizes.
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

    /// The functions for arrays of which those with bits of presence have a bit set in `with_bits`, by their columns; none if
    /// a plan has no function.
    fn variant<P: Parts>(&self, parts: &P, with_bits: u128) -> Option<Arc<Variant>> {
        if let Some(variant) = self.variants.find(|known| *known == with_bits) {
            return Some(variant);
        }
        let made = |adds: bool| {
            let functions = self.functions(parts, with_bits, adds)?;
            Some(Variant { functions, adds, strip: self.strip_rows(adds) })
        };
        // Not all that plays plans adds up.
        let adding = if self.lanes.iter().any(|lane| lane.sum.is_some()) { made(true) } else { None };
        Some(self.variants.keep(with_bits, Arc::new(adding.or_else(|| made(false))?)))
    }

    /// How many elements a strip has: many, if there is one stage that sees them, which leaves nothing to another.
    fn strip_rows(&self, adds: bool) -> usize {
        let is_strip = |lane: &Lane| lane.origin == Origin::Strip && !lane.is_added(adds);
        let is_seen = |work: &&Work| !matches!(work, Work::Fold { x, .. } if self.lanes[*x].is_added(adds));
        let is_one = self.work.iter().filter(is_seen).count() <= 1 && !self.lanes.iter().any(is_strip);
        if is_one { LONG_STRIP_ROWS } else { STRIP_ROWS }
    }

    /// A function for each plan, of columns of the forms of such arrays.
    fn functions<P: Parts>(&self, parts: &P, with_bits: u128, adds: bool) -> Option<Vec<Box<dyn BatchFunction>>> {
        let function = |work: &Work| {
            let Work::Map { part, inputs, outputs, .. } = work else { return None };
            let mut forms: SmallVec<[ColumnForm; 8]> = inputs.iter().map(|port| self.form(*port, with_bits)).collect();
            forms.extend(outputs.iter().map(|lane| {
                let lane = &self.lanes[*lane];
                let form = lane.lie.form(lane.has_bits);
                if adds && lane.sum.is_some() { ColumnForm { data: DataForm::Chains, ..form } } else { form }
            }));
            let made = parts.function(*part, &forms);
            // What is of another plan, or other columns, is no function of these.
            Some(made.filter(|made| self.is_made_for(made.made_for(), inputs, outputs, &forms)))
        };
        self.work.iter().filter_map(function).collect()
    }

    /// True if a function was made for columns of these forms, which hold what these ports do.
    fn is_made_for(&self, made: &MadeFor, inputs: &[Port], outputs: &[usize], forms: &[ColumnForm]) -> bool {
        let of_inputs = inputs.iter().map(|port| (self.lanes[port.lane].scalar, port.is_optional));
        let of_outputs = outputs.iter().map(|lane| (self.lanes[*lane].scalar, self.lanes[*lane].has_bits));
        let found = made.types.iter().map(|qtype| Some((qtype.scalar()?.representation(), qtype.is_optional())));
        let expected =
            of_inputs.chain(of_outputs).map(|(scalar, is_optional)| Some((scalar.representation(), is_optional)));
        made.forms[..] == *forms && found.eq(expected)
    }

    /// Whether a column has bits of presence that a plan is to read.
    pub(super) fn has_bits(&self, port: Port, with_bits: u128) -> bool {
        let lane = &self.lanes[port.lane];
        port.is_optional
            && match lane.origin {
                Origin::Array | Origin::Looked => with_bits >> lane.bit & 1 != 0,
                _ => lane.has_bits,
            }
    }

    fn form(&self, port: Port, with_bits: u128) -> ColumnForm {
        let lane = &self.lanes[port.lane];
        if lane.origin != Origin::Shared {
            return lane.lie.form(self.has_bits(port, with_bits));
        }
        ColumnForm {
            data: if lane.lie == Lie::Nothing { DataForm::Nothing } else { DataForm::Values },
            presence: if port.is_optional { PresenceForm::Bytes } else { PresenceForm::All },
            is_shared: true,
            is_dense: false,
            ..lane.lie.form(false)
        }
    }

    /// Memory for runs on arrays of which those with bits of presence have a bit set; none if strips cannot be.
    pub(super) fn workspace<P: Parts>(&self, parts: &P, with_bits: u128) -> Option<Box<Workspace>> {
        let variant = self.variant(parts, with_bits)?;
        let accumulators = self.accumulators.iter().map(|(gathers, scalar, ..)| Accumulator::new(*gathers, *scalar));
        let scanners = self.scanners.iter().map(|(scan, scalar, ..)| Scanner::new(*scan, *scalar));
        let memory = || self.lanes.iter().map(|_| Memory::default()).collect();
        Some(Box::new(Workspace {
            memory: memory(),
            staged: memory(),
            is_far: Vec::new(),
            cells: self.lanes.iter().map(|_| Frame::zeroed(16)).collect(),
            found: self.lanes.iter().map(|_| None).collect(),
            scratch: variant.functions.iter().map(|function| Scratch::new(&function.scratch())).collect(),
            of: variant,
            with_bits,
            context: parts.context(),
            columns: Vec::new(),
            bases: Vec::new(),
            places: Vec::new(),
            edge_bits: Vec::new(),
            accumulators: accumulators.collect::<Option<_>>()?,
            scanners: scanners.collect::<Option<_>>()?,
            strip_bytes: 0,
            group_bytes: 0,
            others: Vec::new(),
        }))
    }

    /// Bytes of memory that machine code takes.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let code = |variant: &Variant| variant.functions.iter().map(|function| function.memory_bytes()).sum();
        size_of::<SweepRunner>() + self.variants.bytes(code)
    }
}
