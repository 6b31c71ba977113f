//! Translation of a plan to a function. A large plan is split into pieces, and each piece is translated to a function.
//! A run of steps without branches and calls is recorded on a tape and emitted; conditionals and loops become basic
//! blocks; steps without a rule become calls.

mod accesses;
mod body;
mod branch;
mod calls;
mod columns;
mod exits;
mod joins;
mod rounds;
mod rows;

use crate::emit::EmittedValue;
use crate::scalar;
use body::Body;
use branch::Branch;
use calls::Calls;
use cembra_plan::{Action, BlockId, Plan, StepId};
use cembra_record::{Line, Outline, Presence, ScopedValueMap, Segment};
use cembra_runtime::{ColumnForm, STATUS_OK};
use cranelift_codegen::ir::{self, InstBuilder, types};
use cranelift_codegen::isa::TargetIsa;
use cranelift_frontend::FunctionBuilder;
use exits::Exits;
use rounds::{IterationCount, begin_rounds};
pub(crate) use rows::Progress;
use rows::Rows;
use std::ops::Range;

/// Memory for building functions, such as value maps, reused from one function to the next.
#[derive(Default)]
pub(crate) struct Workspace {
    /// The machine values of the plan's values, in the function that is being built.
    held: ScopedValueMap<EmittedValue>,
    line: Line<ir::Value>,
    /// The results of the instructions on the tape that `line` has recorded; `None` for an instruction without a
    /// result.
    played: Vec<Option<ir::Value>>,
}

impl Workspace {
    /// Resets the memory for building the functions of `plan`. If `inlined` is set, mathematical functions are inlined, otherwise called.
    pub(crate) fn reset(&mut self, plan: &Plan, inlined: bool) {
        self.held.reset(plan);
        self.line.reset(plan, inlined);
    }

    /// Returns the number of a plan's values that fit into this memory without growing it.
    pub(crate) fn capacity(&self) -> usize {
        self.held.capacity()
    }
}

/// Builds the body of the function for a piece of a plan (the whole plan, or a part of a large one), with the
/// parameters input, output, frame and context. Returns true if the code generator's optimisation would improve the
/// function. If `columns` are given, the plan must be a single piece, and the function evaluates it on rows: the first
/// two parameters are then the columns and a `Progress`.
pub(crate) fn translate(
    builder: &mut FunctionBuilder<'_>,
    isa: &dyn TargetIsa,
    outline: &Outline<'_>,
    number: usize,
    workspace: &mut Workspace,
    marks_steps: bool,
    columns: Option<&[ColumnForm]>,
) -> bool {
    let Workspace { held, line, played } = workspace;
    held.truncate(0);
    let mut translation = Translation {
        body: Body::new(outline, builder, isa, held, marks_steps),
        exits: Exits::default(),
        calls: Calls::default(),
        rounds: IterationCount::default(),
        line,
        played,
    };
    match columns {
        Some(forms) => {
            let rows = Rows::begin(&mut translation.body, forms);
            translation.piece(number);
            rows.end(&mut translation.body);
        }
        None => {
            translation.piece(number);
            translation.body.succeed();
        }
    }
    let Translation { body, exits, .. } = translation;
    exits.finish(body.builder, &body.state);
    scalar::remove_unused(body.builder.func, &body.state.findings.replaced);
    body.state.findings.is_improvable
}

/// The state of the translation of one piece (the whole plan, or a part of a large one) to a function.
struct Translation<'a, 'b, 'f> {
    body: Body<'a, 'b, 'f>,
    exits: Exits,
    calls: Calls,
    rounds: IterationCount,
    line: &'a mut Line<ir::Value>,
    played: &'a mut Vec<Option<ir::Value>>,
}

/// A task that remains in the translation of a function. Tasks are on a stack, so that nested blocks need no recursion.
enum TranslationTask {
    /// Emit a block of the plan. If a join block is given, jump to it with the result.
    Block(BlockId, Option<ir::Block>),
    /// Emit these steps of a block of the plan. If a join block is given, jump to it with the block's result.
    Steps(BlockId, Range<usize>, Option<ir::Block>),
    /// End the branch that runs if the condition is present, and begin the other branch.
    Else(Branch, [BlockId; 2]),
    /// End both branches of a conditional at their join block.
    Join(Branch, BlockId),
    /// End the only emitted branch of a conditional whose condition is known.
    Known(StepId, BlockId),
    /// End an iteration of a loop, whose iterations start at the given block.
    Again(StepId, ir::Block),
}

impl Body<'_, '_, '_> {
    /// Emits a return with the status of success.
    fn succeed(&mut self) {
        let status = self.builder.ins().iconst(types::I32, i64::from(STATUS_OK));
        self.builder.ins().return_(&[status]);
    }
}

impl Translation<'_, '_, '_> {
    /// Translates one piece (the whole plan, or a part of a large one): its steps, then its calls of other pieces, then
    /// its outputs. The caller emits the return.
    fn piece(&mut self, number: usize) {
        let outline = self.body.outline;
        let piece = &outline.pieces.list()[number];
        if number == 0 {
            self.rounds.begin(&mut self.body);
        }
        if outline.pieces.is_whole() && self.body.row.is_none() {
            for input in outline.plan.inputs() {
                self.body.value(input.value);
            }
        }
        self.steps(piece.block, piece.steps.clone());
        for called in &piece.calls {
            self.calls.piece(&mut self.body, &mut self.exits, *called);
        }
        self.body.state.mark(self.body.builder, None);
        if outline.compares_strings && !piece.outputs.is_empty() {
            self.exits.check_work(self.body.builder, &self.body.state);
        }
        for at in piece.outputs.clone() {
            self.body.output(at);
        }
    }

    /// Translates steps of a block, and the blocks of conditionals and loops among them, without recursion.
    fn steps(&mut self, block: BlockId, steps: Range<usize>) {
        let outline = self.body.outline;
        let plan = outline.plan;
        let mut stack = vec![TranslationTask::Steps(block, steps, None)];
        while let Some(todo) = stack.pop() {
            match todo {
                TranslationTask::Block(block, join) => match outline.pieces.of_block(block) {
                    // A block that has a function of its own is called.
                    Some(piece) => self.calls.piece(&mut self.body, &mut self.exits, piece),
                    None => stack.push(TranslationTask::Steps(block, 0..plan.block(block).steps.len(), join)),
                },
                TranslationTask::Steps(block, range, join) => {
                    let Some(segment) = Segment::first(plan, &plan.block(block).steps[range.clone()]) else { continue };
                    let rest = range.start + segment.step_count()..range.end;
                    // A conditional at the end of a branch uses the join block of that branch.
                    let ends = |id: StepId| {
                        let out = plan.step(id).out;
                        rest.is_empty() && plan.block(block).result == Some(out) && !outline.locations.is_stored(out)
                    };
                    let outer = join.filter(|_| matches!(segment, Segment::Where(id) if ends(id)));
                    stack.push(TranslationTask::Steps(block, rest, join));
                    self.segment(segment, outer, &mut stack);
                }
                TranslationTask::Else(branch, [on, off]) => {
                    self.body.begin_other_branch(branch, on);
                    stack.extend([TranslationTask::Join(branch, off), TranslationTask::Block(off, Some(branch.join))]);
                }
                TranslationTask::Join(branch, off) => self.body.end_branches(branch, off),
                TranslationTask::Known(step, branch) => self.body.end_only_branch(step, branch),
                TranslationTask::Again(step, start) => {
                    if let Action::Loop { round, state, is_counted } = plan.step(step).action {
                        self.mark(step);
                        self.rounds.end_round(&mut self.body, &mut self.exits, step, (round, state), is_counted, start);
                    }
                }
            }
        }
    }

    /// Translates a segment: a sequence of steps without branches (a line), a call, or a memory access. Of a
    /// conditional or a loop only the start is translated. The result of a conditional goes to the join block `outer`,
    /// if that is given.
    fn segment(&mut self, segment: Segment<'_>, outer: Option<ir::Block>, stack: &mut Vec<TranslationTask>) {
        let plan = self.body.outline.plan;
        match segment {
            Segment::Line(steps) => self.line(steps),
            Segment::Call(step) => {
                self.mark(step);
                self.calls.step(&mut self.body, &mut self.exits, step);
            }
            Segment::Access(step, access) => {
                self.mark(step);
                self.body.access(step, access);
            }
            Segment::Where(id) => {
                self.mark(id);
                let step = plan.step(id);
                let Action::Where { on, off } = step.action else { return };
                match self.body.value(plan.args(step)[0]).presence {
                    Presence::Present => {
                        stack.extend([TranslationTask::Known(id, on), TranslationTask::Block(on, None)]);
                    }
                    Presence::Missing => {
                        stack.extend([TranslationTask::Known(id, off), TranslationTask::Block(off, None)]);
                    }
                    Presence::Flag(flag) => {
                        let branch = self.body.begin_branch(id, flag, outer);
                        stack.extend([
                            TranslationTask::Else(branch, [on, off]),
                            TranslationTask::Block(on, Some(branch.join)),
                        ]);
                    }
                }
            }
            Segment::Loop(id) => {
                self.mark(id);
                let step = plan.step(id);
                let Action::Loop { round, state, .. } = step.action else { return };
                let start = begin_rounds(&mut self.body, plan.args(step)[0], state);
                stack.extend([TranslationTask::Again(id, start), TranslationTask::Block(round, None)]);
            }
        }
    }

    /// Records a sequence of steps without branches on a tape, and emits the tape's code.
    fn line(&mut self, steps: &[StepId]) {
        let Translation { body, line, played, .. } = self;
        // A tuple that forms a sequence by itself, because it has very many fields.
        if let [only] = steps
            && let step = body.outline.plan.step(*only)
            && matches!(step.action, Action::MakeTuple)
            && body.outline.locations.is_stored(step.out)
        {
            body.state.mark(body.builder, Some(only.index() as u32));
            body.make_in_slot(step.out, body.outline.plan.args(step));
            return;
        }
        line.record(body.outline, steps, body);
        scalar::play(body.builder, &mut body.state, line.tape(), line.inputs(), played);
        for (value, held) in line.results(|at| played[at]) {
            body.made(value, held);
        }
    }

    /// Marks the instructions that follow as belonging to a step.
    fn mark(&mut self, step: StepId) {
        self.body.state.mark(self.body.builder, Some(step.index() as u32));
    }
}
