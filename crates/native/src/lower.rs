//! From a piece of a plan to a function: straight lines of steps are recorded on one tape each and played (`line.rs`);
//! conditionals become basic blocks that meet again. Values stay in registers; memory is touched for inputs, outputs,
//! literal texts, and what crosses from one piece to another.

mod fork;
mod inner;
mod line;
mod rounds;

use crate::call::{self, Callee};
use crate::cancel::Cancelled;
use crate::cells::{self, Cell, Datum, Memory, Presence};
use crate::homes::Homes;
use crate::lines::{self, Lines};
use crate::notes::Notes;
use crate::pieces::{Piece, Pieces, size, widest};
use crate::player::Surroundings;
use crate::reads;
use cembra_plan::{Action, Base, Binding, BlockId, Place, Plan, StepId, ValueId};
use cembra_runtime::{QType, STATUS_OK};
use cembra_tape::Tape;
use cembra_value::{Budget, Diagnostic, Limit, ScalarValue, Value};
use cranelift_codegen::ir::{self, AliasRegion, AliasRegionData, InstBuilder, types};
use cranelift_codegen::isa::TargetIsa;
use cranelift_frontend::{FunctionBuilder, Variable};
use fork::Fork;
use inner::Failed;
use line::Line;
use rustc_hash::FxHashMap;
use std::ops::Range;

struct Regions {
    input: AliasRegion,
    output: AliasRegion,
    frame: AliasRegion,
}

/// A plan and what was decided about it before any function is built.
pub(crate) struct Outline<'a> {
    pub(crate) plan: &'a Plan,
    binding: &'a Binding,
    pieces: Pieces,
    homes: Homes,
    /// Which values are used outside of the line that makes them.
    escapes: Vec<bool>,
    /// What steps call, and the position of each call in the table.
    calls: FxHashMap<StepId, (Callee, u32)>,
    has_loops: bool,
    /// True if there may be comparisons of strings.
    compares_strings: bool,
}

impl<'a> Outline<'a> {
    /// Decides how a plan is compiled: as one function, or in pieces if it is large. The code generator may be one that
    /// `repeats` what is used in several places.
    ///
    /// # Errors
    /// A limit is exceeded.
    pub(crate) fn of(plan: &'a Plan, binding: &'a Binding, repeats: bool, budget: &Budget) -> Result<Self, Diagnostic> {
        let limits = budget.limits();
        let most = limits.native_steps;
        let size = size(plan, most);
        if size <= most {
            let whole = Self::with(plan, binding, Pieces::whole(plan), repeats);
            if size.saturating_add(whole.homes.copies()) <= most {
                return Ok(whole);
            }
        }
        if widest(plan, limits.native_fields) > limits.native_fields {
            return Err(limits.exceeded(Limit::NativeFields));
        }
        // Half of what one function may be: time grows a little faster than size, and what is cut is long anyway.
        Ok(Self::with(plan, binding, Pieces::cut(plan, binding, (most / 2).max(1), budget)?, repeats))
    }

    fn with(plan: &'a Plan, binding: &'a Binding, pieces: Pieces, repeats: bool) -> Self {
        let lines = Lines::of(plan, &pieces);
        let mut homes = Homes::of(plan, binding, &pieces);
        if repeats {
            homes.count_copies(plan, &lines, !pieces.is_whole());
        }
        let calls = call::steps(plan).zip(0..).map(|((step, callee), number)| (step, (callee, number))).collect();
        let escapes = lines.escapes(plan);
        let compares_strings = call::compares_strings(plan);
        Outline { plan, binding, pieces, homes, escapes, calls, has_loops: plan.has_loops(), compares_strings }
    }

    /// True if the plan is small enough for mathematical functions to be written out.
    pub(crate) fn inlines(&self) -> bool {
        self.pieces.inlines()
    }

    /// The functions that the plan becomes.
    pub(crate) fn pieces(&self) -> &[Piece] {
        self.pieces.list()
    }
}

/// What lowering the pieces of a plan needs of memory, used again from one to the next.
pub(crate) struct Workspace {
    /// The machine values of the plan's values, in the function being built.
    registers: Notes<Cell>,
    line: Line,
}

impl Workspace {
    pub(crate) fn of(plan: &Plan) -> Self {
        Workspace { registers: Notes::of(plan), line: Line::of(plan) }
    }
}

/// Builds the body of a function whose parameters are input, output, frame and context: a piece of a plan. Says whether
/// the code generator's optimisation would make it better.
pub(crate) fn lower(
    builder: &mut FunctionBuilder<'_>,
    isa: &dyn TargetIsa,
    outline: &Outline<'_>,
    number: usize,
    workspace: &mut Workspace,
    tape: &mut Tape,
    marks_steps: bool,
) -> bool {
    let entry = builder.create_block();
    builder.append_block_params_for_function_params(entry);
    builder.switch_to_block(entry);
    builder.seal_block(entry);
    let params: Vec<ir::Value> = builder.block_params(entry).to_vec();
    let mut region = |user_id: u32, description: &'static str| {
        builder.func.dfg.alias_regions.insert(AliasRegionData { user_id, description: description.into() })
    };
    let regions = Regions { input: region(0, "input"), output: region(1, "output"), frame: region(2, "frame") };
    let context_region = region(3, "context");
    let signatures = FxHashMap::default();
    let around = Surroundings {
        isa,
        context: params[3],
        context_region,
        signatures,
        preserving: None,
        replaced: Vec::new(),
        is_improvable: false,
        marks_steps,
    };
    let (plan, piece) = (outline.plan, &outline.pieces()[number]);
    let mut lowering = Lowering {
        outline,
        plan,
        builder,
        around,
        params: [params[0], params[1], params[2]],
        regions,
        tape,
        kernel_signature: None,
        piece_signature: None,
        cancelled: Cancelled::default(),
        failed: Failed::default(),
        registers: &mut workspace.registers,
        line: &mut workspace.line,
        rounds_left: None,
        has_joined: false,
    };
    lowering.count_rounds(number);
    if outline.pieces.is_whole() {
        for input in plan.inputs() {
            lowering.cell(input.value);
        }
    }
    lowering.blocks(piece.block, piece.steps.clone());
    for called in &piece.calls {
        lowering.call_piece(*called);
    }
    lowering.around.mark(lowering.builder, None);
    if outline.compares_strings && !piece.outputs.is_empty() {
        lowering.cancelled.check_work(lowering.builder, &lowering.around);
    }
    for at in piece.outputs.clone() {
        lowering.output(at);
    }
    let status = lowering.builder.ins().iconst(types::I32, i64::from(STATUS_OK));
    lowering.builder.ins().return_(&[status]);
    lowering.cancelled.finish(lowering.builder, &lowering.around);
    lowering.failed.finish(lowering.builder);
    reads::remove_unused(lowering.builder.func, &lowering.around.replaced);
    lowering.registers.truncate(0);
    lowering.around.is_improvable
}

pub(crate) struct Lowering<'a, 'b, 'f> {
    pub(crate) outline: &'a Outline<'a>,
    pub(crate) plan: &'a Plan,
    pub(crate) builder: &'a mut FunctionBuilder<'b>,
    pub(crate) around: Surroundings<'f>,
    pub(crate) params: [ir::Value; 3],
    regions: Regions,
    tape: &'a mut Tape,
    pub(crate) kernel_signature: Option<ir::SigRef>,
    piece_signature: Option<ir::SigRef>,
    pub(crate) cancelled: Cancelled,
    failed: Failed,
    /// The machine values of the plan's values; what a branch computed or loaded is not there behind it.
    registers: &'a mut Notes<Cell>,
    line: &'a mut Line,
    /// How many rounds the loops may yet run, if that is in a register.
    rounds_left: Option<Variable>,
    /// True where a branch has just ended because the conditional at its end has.
    has_joined: bool,
}

impl<'a> Lowering<'a, '_, '_> {
    pub(crate) fn memory(&self, place: Place) -> Memory {
        let (base, region) = match place.base {
            Base::Input => (self.params[0], self.regions.input),
            Base::Output => (self.params[1], self.regions.output),
            Base::Frame => (self.params[2], self.regions.frame),
        };
        Memory { base, offset: place.offset, region, constant: true }
    }

    /// What a step calls, and the position of the call in the table.
    pub(crate) fn callee(&self, step: StepId) -> Option<(Callee, u32)> {
        self.outline.calls.get(&step).copied()
    }

    /// True if a value lies in its slot once it is made.
    pub(crate) fn lies_in_slot(&self, value: ValueId) -> bool {
        self.outline.homes.lies_in_slot(value)
    }

    /// The machine values of a value. Those of a literal are made where they are asked for; what another piece made, or the
    /// caller, is loaded where it is first asked for.
    pub(crate) fn cell(&mut self, value: ValueId) -> Cell {
        if let Some(cell) = self.registers.get(value) {
            return cell.clone();
        }
        let plan = self.plan;
        if let Some(at) = self.outline.homes.literal(value) {
            return self.literal_cell(&plan.literals()[at].1, plan.place(value));
        }
        let (place, constant) = self.outline.homes.place(plan, self.outline.binding, value);
        debug_assert!(constant || self.lies_in_slot(value), "{value:?} is used before it is made");
        let from = Memory { constant, ..self.memory(place) };
        let cell = cells::load(self.builder, &plan.value(value).qtype, from);
        self.registers.set(value, cell.clone());
        cell
    }

    /// Notes what a value is, and puts it into its slot if others look for it there.
    pub(crate) fn made(&mut self, value: ValueId, cell: Cell) {
        if self.outline.homes.is_stored(value) {
            let to = self.memory(self.plan.place(value));
            cells::store(self.builder, &self.plan.value(value).qtype, &cell, to);
        }
        self.made_in_slot(value, cell);
    }

    /// Notes what a value is that is in its slot, or need not be there.
    pub(crate) fn made_in_slot(&mut self, value: ValueId, cell: Cell) {
        if !self.outline.homes.is_in_slot_only(value) {
            self.registers.set(value, cell);
        }
    }

    /// Puts an output into its place.
    fn output(&mut self, at: usize) {
        let (value, place) = (self.plan.outputs()[at].value, self.outline.binding.outputs[at]);
        if place == self.plan.place(value) && self.registers.get(value).is_none() && self.lies_in_slot(value) {
            return;
        }
        let cell = self.cell(value);
        let to = self.memory(place);
        cells::store(self.builder, &self.plan.value(value).qtype, &cell, to);
    }

    fn literal_cell(&mut self, literal: &Value, place: Place) -> Cell {
        let qtype = literal.qtype();
        match literal {
            Value::Scalar(v) | Value::Present(v) => {
                let inside = qtype.optional_value_offset().unwrap_or(0);
                let datum = match v {
                    ScalarValue::Unit => Datum::Nothing,
                    ScalarValue::Boolean(v) => Datum::Flag(self.builder.ins().iconst(types::I8, i64::from(*v))),
                    ScalarValue::Int32(v) => {
                        Datum::Num(self.builder.ins().iconst(types::I32, i64::from(v.cast_unsigned())))
                    }
                    ScalarValue::Int64(v) => Datum::Num(self.builder.ins().iconst(types::I64, *v)),
                    ScalarValue::UInt64(v) => Datum::Num(self.builder.ins().iconst(types::I64, v.cast_signed())),
                    ScalarValue::Float32(v) => Datum::Num(self.builder.ins().f32const(*v)),
                    ScalarValue::Float64(v) | ScalarValue::WeakFloat(v) => Datum::Num(self.builder.ins().f64const(*v)),
                    // The frame's template holds a view of the text: code with an address in it could not be moved.
                    ScalarValue::Text(_) | ScalarValue::Bytes(_) => {
                        let from = self.memory(Place { offset: place.offset + inside, ..place });
                        return Cell {
                            presence: Presence::Present,
                            datum: cells::load(self.builder, &QType::TEXT, from).datum,
                        };
                    }
                };
                Cell { presence: Presence::Present, datum }
            }
            Value::Missing(_) => Cell { presence: Presence::Missing, datum: Datum::Nothing },
            Value::Tuple(fields) => {
                let fields = fields
                    .iter()
                    .zip(qtype.field_offsets())
                    .map(|(field, inside)| self.literal_cell(field, Place { offset: place.offset + inside, ..place }))
                    .collect();
                Cell { presence: Presence::Present, datum: Datum::Tuple(fields) }
            }
            Value::Shape(_) | Value::Type(_) | Value::Nothing | Value::Unspecified => {
                Cell { presence: Presence::Present, datum: Datum::Nothing }
            }
        }
    }

    /// Steps of a block with the blocks inside of them, without recursion.
    fn blocks(&mut self, block: BlockId, steps: Range<usize>) {
        enum Todo<'p> {
            /// A block inside of a step, and where its result goes if that is a join.
            Block(BlockId, Option<ir::Block>),
            /// Steps of a block, and where its result goes if that is a join.
            Steps(BlockId, Range<usize>, Option<ir::Block>),
            /// The branches for a present condition are done.
            Else(Fork<'p>),
            /// All branches are done.
            Join(Fork<'p>),
            /// A branch is done behind which there is no join.
            Known { step: StepId, branch: BlockId },
            /// A round of a loop is done; rounds start at the block.
            Again { step: StepId, start: ir::Block },
        }
        let plan = self.plan;
        // The branches of conditionals for one condition, one after the other.
        let push_known = |stack: &mut Vec<Todo<'a>>, steps: &[StepId], is_on: bool| {
            for step in steps.iter().rev() {
                let Some(branch) = fork::branch(plan, *step, is_on) else { continue };
                stack.push(Todo::Known { step: *step, branch });
                stack.push(Todo::Block(branch, None));
            }
        };
        // The same where they end at a join.
        let push_joined = |stack: &mut Vec<Todo<'a>>, fork: Fork<'a>, is_on: bool, join: Option<ir::Block>| {
            if let Some((last, others)) = fork.steps.split_last() {
                stack.extend(fork::branch(plan, *last, is_on).map(|branch| Todo::Block(branch, join)));
                push_known(stack, others, is_on);
            }
        };
        let mut stack = vec![Todo::Steps(block, steps, None)];
        while let Some(todo) = stack.pop() {
            match todo {
                Todo::Block(block, goes_to) => match self.outline.pieces.of_block(block) {
                    // A block that is a piece of its own is called.
                    Some(piece) => self.call_piece(piece),
                    None => stack.push(Todo::Steps(block, 0..plan.block(block).steps.len(), goes_to)),
                },
                Todo::Steps(block, range, goes_to) => {
                    let steps = &plan.block(block).steps[range.clone()];
                    let alone = |id: &StepId| {
                        let structure = matches!(plan.step(*id).action, Action::Where { .. } | Action::Loop { .. });
                        structure || self.outline.calls.contains_key(id)
                    };
                    let line = steps.iter().position(alone).unwrap_or(steps.len());
                    if line > 0 {
                        self.line(&steps[..line]);
                    }
                    let together = lines::together(plan, &steps[line..]);
                    let Some(&id) = together.first() else { continue };
                    let rest = range.start + line + together.len()..range.end;
                    let is_last = rest.is_empty();
                    stack.push(Todo::Steps(block, rest, goes_to));
                    let step = plan.step(id);
                    self.around.mark(self.builder, Some(id.index() as u32));
                    match step.action {
                        Action::Where { .. } => match self.cell(plan.args(step)[0]).presence {
                            Presence::Present => push_known(&mut stack, together, true),
                            Presence::Missing => push_known(&mut stack, together, false),
                            Presence::Flag(flag) => {
                                // What ends a branch meets where the branch does.
                                let ends = |out: ValueId| {
                                    is_last
                                        && plan.block(block).result == Some(out)
                                        && !self.outline.homes.is_stored(out)
                                };
                                let last = together.last().map(|id| plan.step(*id).out);
                                let fork = self.begin_fork(together, flag, goes_to.filter(|_| last.is_some_and(ends)));
                                stack.push(Todo::Else(fork));
                                push_joined(&mut stack, fork, true, self.join_of_last(fork));
                            }
                        },
                        Action::Loop { round, state } => {
                            let start = self.begin_rounds(plan.args(step)[0], state);
                            stack.push(Todo::Again { step: id, start });
                            stack.push(Todo::Block(round, None));
                        }
                        _ => self.call(id),
                    }
                }
                Todo::Else(fork) => {
                    self.begin_other_branch(fork);
                    stack.push(Todo::Join(fork));
                    push_joined(&mut stack, fork, false, self.join_of_last(fork));
                }
                Todo::Join(fork) => self.end_fork(fork),
                Todo::Known { step, branch } => self.end_inner_branch(step, branch),
                Todo::Again { step, start } => {
                    if let Action::Loop { round, state } = plan.step(step).action {
                        self.around.mark(self.builder, Some(step.index() as u32));
                        self.end_round(step, round, state, start);
                    }
                }
            }
        }
    }
}
