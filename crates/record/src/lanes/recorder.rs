//! The walk through a plan's blocks that records a lane program (the plan for many rows at once). Steps are recorded in
//! order; both branches of a conditional are recorded one after the other, under the masks of the rows that take them.

use crate::lanes::InputFact;
use crate::lanes::classes::{Class, Classes};
use crate::lanes::drafts::{Drafts, TapeRef};
use crate::lanes::join::Join;
use crate::lanes::memos::{Memo, Memos};
use crate::lanes::weights::{Weights, is_kernel};
use crate::line::TapeValue;
use cembra_ops::record;
use cembra_plan::{Action, BlockId, Plan, Step, StepId, ValueId};
use cembra_runtime::{MachineType, QType, Scalar};
use cembra_tape::{CanPlay, Cell, Datum, KernelReason, Mask, Origin, Output, Port, Presence, ValuePart};
use cembra_value::{ScalarValue, Value};
use rustc_hash::FxHashSet;
use smallvec::SmallVec;

/// The state of a plan's value while the plan is recorded: not recorded yet, an input, a literal, or recorded on a tape.
#[derive(Clone, Debug)]
pub(super) enum ValueState {
    /// The value is not recorded yet, because its step comes later.
    Nothing,
    Input(u32),
    Literal(u32),
    /// The value is recorded, on this tape.
    Made(TapeRef<TapeValue>),
}

/// A conditional whose branches are being recorded.
#[derive(Debug)]
struct OpenConditional {
    step: StepId,
    condition: TapeRef<Mask>,
    on: TapeRef<Mask>,
    off: TapeRef<Mask>,
    /// The mask of the enclosing branch; `None` if all rows reach the conditional.
    outer: Option<TapeRef<Mask>>,
    skips_on: bool,
    skips_off: bool,
    /// The cost of the stretch (a skippable part of the tape) that encloses the conditional, in units of `Tape::cost`.
    around: u32,
}

/// A task on the stack of the walk through the plan's blocks.
enum WalkTask {
    Steps(BlockId, usize),
    /// The conditional's first branch is recorded; the second follows.
    Else(OpenConditional),
    /// Both branches of the conditional are recorded; their results are joined next.
    Join(OpenConditional),
    /// The conditional's condition is known while recording, and this block, the only branch that can be taken, is
    /// recorded. The block's result becomes the result of the step.
    Only(StepId, BlockId),
}

/// The state of recording a lane program (a plan recorded for many rows at once): the segments so far, the state of each
/// value, and the path of conditions.
pub(super) struct Recorder<'p> {
    pub(super) plan: &'p Plan,
    pub(super) facts: &'p [InputFact],
    pub(super) classes: &'p Classes,
    memos: &'p Memos,
    pub(super) unplayable: &'p FxHashSet<StepId>,
    weights: Weights,
    pub(super) drafts: Drafts,
    pub(super) notes: Vec<ValueState>,
    /// For each value, whether it is a literal.
    literals: Vec<bool>,
    /// The mask of the rows that reach the current step; `None` if all rows do.
    pub(super) path: Option<TapeRef<Mask>>,
    /// The cost of the innermost open stretch (a skippable part of the tape), in units of `Tape::cost`.
    around: u32,
    /// The number of open conditionals with stretches (skippable parts of a tape). While it is not 0 the tape is not
    /// cut, because a stretch must be on one tape with the selection of its result.
    whole: u32,
}

impl<'p> Recorder<'p> {
    pub(super) fn of(
        plan: &'p Plan,
        facts: &'p [InputFact],
        classes: &'p Classes,
        memos: &'p Memos,
        unplayable: &'p FxHashSet<StepId>,
    ) -> Self {
        let mut notes = vec![ValueState::Nothing; plan.value_count()];
        let mut literals = vec![false; plan.value_count()];
        for (at, input) in plan.inputs().iter().enumerate() {
            notes[input.value.index()] = ValueState::Input(at as u32);
        }
        for (at, (value, _)) in plan.literals().iter().enumerate() {
            notes[value.index()] = ValueState::Literal(at as u32);
            literals[value.index()] = true;
        }
        let weights = Weights::of(plan, memos, unplayable);
        let drafts = Drafts::default();
        let (path, around, whole) = (None, u32::MAX, 0);
        Recorder { plan, facts, classes, memos, unplayable, weights, drafts, notes, literals, path, around, whole }
    }

    /// Records the whole plan: first the steps whose results are the same for all rows, then memos (the steps that
    /// depend on one dictionary alone), then all other steps, then the outputs. Returns the steps in memos with an
    /// instruction that the backend does not support.
    pub(super) fn record(&mut self, outputs: &[Port], can_play: CanPlay) -> Vec<StepId> {
        let order = self.weights.order(self.plan, self.memos, self.unplayable);
        let mut lacking = Vec::new();
        self.steps(&order, can_play, &mut lacking);
        self.outputs(self.plan.outputs().iter().map(|output| output.value), outputs);
        lacking
    }

    /// Records the steps and results of a memo, the steps that depend on one dictionary alone.
    pub(super) fn record_memo(&mut self, memo: &Memo, can_play: CanPlay) {
        self.steps(&memo.steps, can_play, &mut Vec::new());
        self.outputs(memo.results.iter().copied(), &[]);
    }

    /// Records steps of the top block or of a memo: first the steps whose results all rows share, then all other steps.
    fn steps(&mut self, steps: &[StepId], can_play: CanPlay, lacking: &mut Vec<StepId>) {
        let mut stack = Vec::new();
        let is_shared = |classes: &Classes, id: &StepId| classes.step(*id) == Class::Shared;
        self.drafts.once = true;
        for id in steps.iter().filter(|id| is_shared(self.classes, id)) {
            self.run(*id, &mut stack, can_play, lacking);
        }
        self.drafts.cut();
        self.drafts.once = false;
        self.memos_of(BlockId::TOP, can_play, lacking);
        for id in steps.iter().filter(|id| !is_shared(self.classes, id)) {
            self.run(*id, &mut stack, can_play, lacking);
        }
    }

    /// Records the memos of a block.
    fn memos_of(&mut self, block: BlockId, can_play: CanPlay, lacking: &mut Vec<StepId>) {
        let memos = self.memos;
        for memo in memos.in_block(block) {
            self.memo(memo, can_play, lacking);
        }
    }

    /// Records a step of the top block and all steps inside of it.
    fn run(&mut self, id: StepId, stack: &mut Vec<WalkTask>, can_play: CanPlay, lacking: &mut Vec<StepId>) {
        self.step(id, stack);
        while let Some(todo) = stack.pop() {
            match todo {
                WalkTask::Steps(block, at) => {
                    if at == 0 {
                        self.memos_of(block, can_play, lacking);
                    }
                    let Some(&id) = self.plan.block(block).steps.get(at) else { continue };
                    stack.push(WalkTask::Steps(block, at + 1));
                    self.step(id, stack);
                }
                WalkTask::Else(branching) => {
                    let Action::Where { off, .. } = self.plan.step(branching.step).action else { continue };
                    if branching.skips_on {
                        self.drafts.tape().end();
                    }
                    self.enter(branching.off, branching.skips_off, off, branching.around);
                    stack.extend([WalkTask::Join(branching), WalkTask::Steps(off, 0)]);
                }
                WalkTask::Join(branching) => {
                    if branching.skips_off {
                        self.drafts.tape().end();
                    }
                    self.around = branching.around;
                    self.set_path(branching.outer);
                    self.join(&branching);
                    self.whole -= u32::from(branching.skips_on || branching.skips_off);
                }
                WalkTask::Only(id, block) => {
                    if let Some(result) = self.plan.block(block).result {
                        let value = self.value(result);
                        self.note(self.plan.step(id).out, value);
                    }
                }
            }
        }
    }

    fn step(&mut self, id: StepId, stack: &mut Vec<WalkTask>) {
        if self.memos.has(id) {
            return;
        }
        self.cut_long();
        let plan = self.plan;
        let step = plan.step(id);
        self.drafts.tape().set_site(id.index() as u32);
        let value = match step.action {
            Action::Operator { op, overload, .. } => {
                if is_kernel(plan, id, self.unplayable) {
                    let why =
                        if self.unplayable.contains(&id) { KernelReason::Unsupported } else { KernelReason::NoRule };
                    self.kernel(id, why);
                    return;
                }
                let def = plan.registry().get(op);
                let args = self.cells(step);
                let overload = &def.overloads()[usize::from(overload)];
                let tape = self.drafts.tape();
                let Cell { presence, datum } = record(tape, def.presence, overload, &args);
                // A rule may return a constant mask. Then the presence is known, and branches and kernels can use that.
                let presence = match presence {
                    Presence::When(mask) => Presence::from_mask(mask, tape),
                    known => known,
                };
                TapeValue::Scalar(Cell { presence, datum })
            }
            Action::MakeTuple => TapeValue::Tuple(plan.args(step).iter().map(|arg| self.value(*arg)).collect()),
            Action::Field(index) => match self.value(plan.args(step)[0]) {
                TapeValue::Tuple(mut fields) => fields.swap_remove(index as usize),
                scalar @ TapeValue::Scalar(_) => scalar,
            },
            Action::Has => {
                let presence = self.cell(plan.args(step)[0]).presence;
                TapeValue::Scalar(Cell { presence, datum: Datum::Unit })
            }
            Action::Where { on, off } => {
                match self.cell(plan.args(step)[0]).presence {
                    Presence::Present => stack.extend([WalkTask::Only(id, on), WalkTask::Steps(on, 0)]),
                    Presence::Missing => stack.extend([WalkTask::Only(id, off), WalkTask::Steps(off, 0)]),
                    Presence::When(condition) => {
                        let branching = self.branch(id, condition, on, off);
                        stack.extend([WalkTask::Else(branching), WalkTask::Steps(on, 0)]);
                    }
                }
                return;
            }
            // Plans with loops are not recorded.
            Action::Loop { .. } => return,
        };
        self.note(step.out, value);
    }

    /// Enters the first branch of a conditional.
    fn branch(&mut self, step: StepId, condition: Mask, on: BlockId, off: BlockId) -> OpenConditional {
        let outer = self.path.map(|path| self.drafts.mask(path));
        let tape = self.drafts.tape();
        let opposite = tape.mnot(condition);
        let (here, elsewhere) = match outer {
            Some(outer) => (tape.mand(outer, condition), tape.mand(outer, opposite)),
            None => (condition, opposite),
        };
        let around = self.around;
        // A stretch and the selection of its results must be on one tape.
        let is_whole = !self.weights.is_cut(off);
        let skips_on = is_whole && !self.weights.is_cut(on) && self.weights.is_worth_skipping(on, around);
        let skips_off = is_whole && self.weights.is_worth_skipping(off, around);
        let drafts = &self.drafts;
        let branching = OpenConditional {
            step,
            condition: drafts.on(condition),
            on: drafts.on(here),
            off: drafts.on(elsewhere),
            outer: self.path,
            skips_on,
            skips_off,
            around,
        };
        self.whole += u32::from(skips_on || skips_off);
        self.enter(branching.on, skips_on, on, around);
        branching
    }

    /// Enters a branch; if `skips`, the branch becomes a stretch, which can be skipped.
    fn enter(&mut self, path: TapeRef<Mask>, skips: bool, block: BlockId, around: u32) {
        self.set_path(Some(path));
        self.around = around;
        if skips {
            let mask = self.drafts.mask(path);
            self.drafts.tape().begin(mask);
            self.around = self.weights.cost(block);
        }
    }

    /// If the open tape is long, ends it and opens another. Does nothing while the walk is inside a conditional whose
    /// branches can be skipped.
    pub(super) fn cut_long(&mut self) {
        if self.drafts.is_long() && self.whole == 0 {
            self.drafts.cut();
            self.set_path(self.path);
        }
    }

    /// Sets the mask of the rows that reach the following steps; `None` if all rows do.
    pub(super) fn set_path(&mut self, path: Option<TapeRef<Mask>>) {
        self.path = path;
        let active = path.map(|path| self.drafts.mask(path));
        self.drafts.tape().set_active(active);
    }

    fn join(&mut self, branching: &OpenConditional) {
        let plan = self.plan;
        let step = plan.step(branching.step);
        let Action::Where { on, off } = step.action else { return };
        let (Some(on), Some(off)) = (plan.block(on).result, plan.block(off).result) else { return };
        self.drafts.tape().set_site(branching.step.index() as u32);
        let (on, off) = (self.value(on), self.value(off));
        let join = Join {
            condition: self.drafts.mask(branching.condition),
            on: self.drafts.mask(branching.on),
            off: self.drafts.mask(branching.off),
            skips_on: branching.skips_on,
            skips_off: branching.skips_off,
            is_outermost: branching.outer.is_none(),
        };
        let value = join.value(self.drafts.tape(), &on, &off);
        self.note(step.out, value);
    }

    /// Records `is`, a value on the open tape, as the recorded value of `value`, a value of the plan.
    pub(super) fn note(&mut self, value: ValueId, is: TapeValue) {
        self.notes[value.index()] = ValueState::Made(self.drafts.on(is));
    }

    /// Returns true if a value of the plan is a literal, which is in its slot of the frame from the start.
    pub(super) fn is_literal(&self, value: ValueId) -> bool {
        self.literals[value.index()]
    }

    /// Returns the arguments of a step as cells (presence and datum) on the open tape.
    pub(super) fn cells(&mut self, step: &Step) -> SmallVec<[Cell; 4]> {
        self.plan.args(step).iter().map(|arg| self.cell(*arg)).collect()
    }

    /// Returns a scalar or optional as a cell (presence and datum) on the open tape.
    fn cell(&mut self, value: ValueId) -> Cell {
        if let ValueState::Made(TapeRef { draft, it: TapeValue::Scalar(cell) }) = &self.notes[value.index()]
            && *draft == self.drafts.current()
        {
            return *cell;
        }
        match self.value(value) {
            TapeValue::Scalar(cell) => cell,
            // Operators take scalars; their overloads were matched to types.
            TapeValue::Tuple(_) => Cell::missing(Scalar::Unit, self.drafts.tape()),
        }
    }

    /// Returns the plan's value `value` as a value on the open tape.
    pub(super) fn value(&mut self, value: ValueId) -> TapeValue {
        let plan = self.plan;
        let found = match &self.notes[value.index()] {
            ValueState::Made(made) if made.draft == self.drafts.current() => return made.it.clone(),
            ValueState::Made(made) => {
                let made = made.clone();
                self.cross(&made.it, made.draft)
            }
            ValueState::Input(index) => TapeValue::Scalar(self.input(*index, &plan.value(value).qtype)),
            ValueState::Literal(at) => {
                let (literal, slot) = (&plan.literals()[*at as usize].1, plan.value(value).slot);
                self.literal(literal, slot)
            }
            // Values are made before they are used.
            ValueState::Nothing => TapeValue::Tuple(Vec::new()),
        };
        self.note(value, found.clone());
        found
    }

    /// Brings a value of an earlier tape to the open tape.
    fn cross(&mut self, value: &TapeValue, draft: u32) -> TapeValue {
        match value {
            // Tuples nest only as deep as the text that spelled their type.
            TapeValue::Tuple(fields) => TapeValue::Tuple(fields.iter().map(|field| self.cross(field, draft)).collect()),
            TapeValue::Scalar(cell) => {
                let drafts = &mut self.drafts;
                let presence = match cell.presence {
                    Presence::When(it) => Presence::When(drafts.mask(TapeRef { draft, it })),
                    known => known,
                };
                let datum = match cell.datum {
                    Datum::Unit => Datum::Unit,
                    Datum::Flag(it) => Datum::Flag(drafts.mask(TapeRef { draft, it })),
                    Datum::Num(it) => Datum::Num(drafts.number(TapeRef { draft, it })),
                    Datum::Text { ptr, len } => Datum::Text {
                        ptr: drafts.number(TapeRef { draft, it: ptr }),
                        len: drafts.number(TapeRef { draft, it: len }),
                    },
                };
                TapeValue::Scalar(Cell { presence, datum })
            }
        }
    }

    /// Adds an input of the plan to the open tape.
    fn input(&mut self, index: u32, qtype: &QType) -> Cell {
        let fact = self.facts.get(index as usize).copied().unwrap_or_default();
        let port = if fact.is_shared { Port::Shared } else { Port::Rows };
        let drafts = &mut self.drafts;
        let mut part = |part: ValuePart, ty: MachineType| {
            let column = drafts.column(ty, port, Origin::Input { index, part });
            drafts.input(column)
        };
        let is_known = !qtype.is_optional() || fact.all_present;
        let presence = (!is_known).then(|| part(ValuePart::Presence, MachineType::Flag));
        let scalar = qtype.scalar().unwrap_or(Scalar::Unit);
        let datum = parts(scalar, part);
        cell(presence, datum)
    }

    /// Adds a literal to the open tape as constants. The address of a string is read from its slot of the frame.
    fn literal(&mut self, literal: &Value, slot: u32) -> TapeValue {
        let drafts = &mut self.drafts;
        let cell = match literal {
            // Tuples nest only as deep as the text that spelled their type.
            Value::Tuple(fields) => {
                let qtype = literal.qtype();
                let fields = fields.iter().zip(qtype.field_offsets());
                return TapeValue::Tuple(fields.map(|(field, inside)| self.literal(field, slot + inside)).collect());
            }
            Value::Missing(scalar) => Cell::missing(*scalar, drafts.tape()),
            Value::Scalar(v) | Value::Present(v) => match string_bytes(v) {
                None => Cell::present(Datum::from_bits(v.scalar(), v.bits(), drafts.tape())),
                Some(bytes) => {
                    let offset = slot + literal.qtype().optional_value_offset().unwrap_or(0);
                    let column = drafts.column(MachineType::I64, Port::Shared, Origin::Frame { offset });
                    let len = drafts.tape().konst(MachineType::I64, bytes as u64);
                    match drafts.input(column) {
                        Output::Number(ptr) => Cell::present(Datum::Text { ptr, len }),
                        Output::Mask(_) => Cell::missing(v.scalar(), drafts.tape()),
                    }
                }
            },
            // Rows do not contain these types.
            Value::Shape(_)
            | Value::Array(..)
            | Value::ArrayShape(..)
            | Value::Edge(_)
            | Value::Dict(_)
            | Value::Type(_)
            | Value::Nothing
            | Value::Unspecified
            | Value::Tensor(_) => Cell::missing(Scalar::Unit, drafts.tape()),
        };
        TapeValue::Scalar(cell)
    }
}

/// Calls `part` for each part of a scalar's datum, and returns the results: two for a string, none for a unit, one for any
/// other scalar.
pub(super) fn parts<P>(scalar: Scalar, mut part: impl FnMut(ValuePart, MachineType) -> P) -> [Option<P>; 2] {
    match scalar.machine_type() {
        Some(MachineType::Flag) => [Some(part(ValuePart::Flag, MachineType::Flag)), None],
        Some(ty) => [Some(part(ValuePart::Number, ty)), None],
        None if scalar.is_string() => {
            [Some(part(ValuePart::Pointer, MachineType::I64)), Some(part(ValuePart::Length, MachineType::I64))]
        }
        None => [None, None],
    }
}

/// Assembles a cell from its parts: a presence and a datum. The cell is present if `presence` is `None`.
pub(super) fn cell(presence: Option<Output>, datum: [Option<Output>; 2]) -> Cell {
    let presence = match presence {
        Some(Output::Mask(mask)) => Presence::When(mask),
        _ => Presence::Present,
    };
    let datum = match datum {
        [Some(Output::Number(ptr)), Some(Output::Number(len))] => Datum::Text { ptr, len },
        [Some(Output::Number(val)), _] => Datum::Num(val),
        [Some(Output::Mask(mask)), _] => Datum::Flag(mask),
        [None, _] => Datum::Unit,
    };
    Cell { presence, datum }
}

/// The length of a string in bytes; `None` for other scalars.
fn string_bytes(scalar: &ScalarValue) -> Option<usize> {
    match scalar {
        ScalarValue::Text(text) => Some(text.len()),
        ScalarValue::Bytes(bytes) => Some(bytes.len()),
        _ => None,
    }
}
