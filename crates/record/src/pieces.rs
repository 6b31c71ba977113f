//! Cuts a large plan into several functions, called pieces, so that compile time is linear in the size of the plan. A
//! piece has a range of a block's steps, and the small blocks inside these steps. A large branch or loop body becomes
//! pieces of its own, which the enclosing piece calls. If a block is cut into several ranges, a piece without steps
//! calls the pieces of these ranges one after the other. `locations.rs` decides where values are stored.

use cembra_plan::{Action, Binding, BlockId, Plan, StepId, ValueId};
use cembra_runtime::{Extent, QType};
use cembra_value::{Budget, Diagnostic};
use rustc_hash::FxHashMap;
use std::ops::Range;

/// The most pieces (functions of a plan) that one piece calls directly; for more, intermediate pieces are added.
const MOST_CALLS: usize = 512;

/// The number of instructions that add 1 to the weight of a step. A step weighs at least 1, so a step whose operator's
/// rule has 16 instructions weighs 3.
const INSTRUCTIONS_OF_A_STEP: usize = 8;

/// The largest weight of a plan in which mathematical functions are inlined as instructions. In a heavier plan they are
/// calls, because compiling their instructions would take minutes.
const MOST_INLINED: usize = 200_000;

/// The content of one function that a plan is cut into: steps, then calls of other pieces, then outputs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FunctionPiece {
    /// The block that the piece's steps are in.
    pub block: BlockId,
    /// The range of the block's steps that the piece runs.
    pub steps: Range<usize>,
    /// The indices of the pieces that this piece calls after its steps.
    pub calls: Vec<usize>,
    /// The range of the plan's outputs that the piece writes at its end.
    pub outputs: Range<usize>,
}

impl FunctionPiece {
    const NOTHING: FunctionPiece = FunctionPiece { block: BlockId::TOP, steps: 0..0, calls: Vec::new(), outputs: 0..0 };
}

/// The pieces (functions) that a plan is cut into. The first piece is the entry; each piece comes after the pieces that call
/// it.
#[derive(Debug)]
pub struct FunctionPieces {
    list: Vec<FunctionPiece>,
    /// The index of the piece (function) that runs each step; empty if there is only one.
    of_step: Vec<u32>,
    /// The index of the piece (function) that runs a block, for blocks too large for the enclosing piece.
    of_block: FxHashMap<BlockId, usize>,
    inlines: bool,
}

impl FunctionPieces {
    /// Puts the whole plan into a single piece (function), without cutting it.
    pub(crate) fn whole(plan: &Plan) -> FunctionPieces {
        let steps = 0..plan.block(BlockId::TOP).steps.len();
        let all = FunctionPiece { steps, outputs: 0..plan.outputs().len(), ..FunctionPiece::NOTHING };
        FunctionPieces { list: vec![all], of_step: Vec::new(), of_block: FxHashMap::default(), inlines: true }
    }

    /// Cuts a plan into pieces (functions) of about `most` steps each.
    ///
    /// # Errors
    /// If the budget's time is used up.
    pub(crate) fn cut(
        plan: &Plan,
        binding: &Binding,
        most: usize,
        budget: &Budget,
    ) -> Result<FunctionPieces, Diagnostic> {
        let weights = Weights::of(plan, most, budget)?;
        let mut pieces = FunctionPieces {
            list: vec![FunctionPiece::NOTHING],
            of_step: vec![0; plan.step_count()],
            of_block: FxHashMap::default(),
            inlines: weights.total <= MOST_INLINED,
        };
        let mut parts = weights.stretches(plan, BlockId::TOP, most);
        parts.extend(outputs(plan, binding, most));
        // The entry runs no steps itself, even if there is only one part, because evaluations begin there.
        let mut todo = Vec::new();
        pieces.call_all(0, parts, &mut todo);
        while let Some((number, mut parts)) = todo.pop() {
            budget.check_visit(number)?;
            if parts.len() > 1 {
                pieces.call_all(number, parts, &mut todo);
            } else if let Some(part) = parts.pop() {
                for block in pieces.occupy(plan, number, &part, &weights) {
                    let inner = pieces.add();
                    pieces.of_block.insert(block, inner);
                    todo.push((inner, weights.stretches(plan, block, most)));
                }
                pieces.list[number] = part;
            }
        }
        Ok(pieces)
    }

    /// The pieces (functions) of the plan, the entry first.
    pub fn list(&self) -> &[FunctionPiece] {
        &self.list
    }

    /// Returns true if the plan is small enough for mathematical functions to be inlined as instructions.
    pub fn inlines(&self) -> bool {
        self.inlines
    }

    /// Returns true if the plan is not cut, so that it is one function.
    pub fn is_whole(&self) -> bool {
        // This does not ask for steps: a plan that is cut may have outputs alone.
        self.list.len() == 1
    }

    /// The index of the piece (function) that runs a step.
    pub fn of_step(&self, step: StepId) -> u32 {
        self.of_step.get(step.index()).copied().unwrap_or(0)
    }

    /// The index of the piece (function) that runs a block; `None` if the block is part of the enclosing piece.
    pub fn of_block(&self, block: BlockId) -> Option<usize> {
        self.of_block.get(&block).copied()
    }

    fn add(&mut self) -> usize {
        self.list.push(FunctionPiece::NOTHING);
        self.list.len() - 1
    }

    /// Makes the piece (function) `number` call a new piece for each of `parts`. If there are more than [`MOST_CALLS`],
    /// it calls intermediate pieces instead, which call the pieces of the parts.
    fn call_all(&mut self, number: usize, mut parts: Vec<FunctionPiece>, todo: &mut Vec<(usize, Vec<FunctionPiece>)>) {
        let mut each = 1;
        while parts.len().div_ceil(each) > MOST_CALLS {
            each *= MOST_CALLS;
        }
        while !parts.is_empty() {
            let rest = parts.split_off(each.min(parts.len()));
            let called = self.add();
            self.list[number].calls.push(called);
            todo.push((called, std::mem::replace(&mut parts, rest)));
        }
    }

    /// Assigns the steps of `part` to the piece (function) `number`. Returns the blocks inside these steps that are too
    /// large for the piece.
    fn occupy(&mut self, plan: &Plan, number: usize, part: &FunctionPiece, weights: &Weights) -> Vec<BlockId> {
        let mut large = Vec::new();
        let mut open = vec![(part.block, part.steps.clone())];
        while let Some((block, steps)) = open.pop() {
            for id in &plan.block(block).steps[steps] {
                self.of_step[id.index()] = number as u32;
                for inner in inner_blocks(&plan.step(*id).action).into_iter().flatten() {
                    if weights.is_large(inner) {
                        large.push(inner);
                    } else {
                        open.push((inner, 0..plan.block(inner).steps.len()));
                    }
                }
            }
        }
        large
    }
}

/// The blocks inside a step with this action: two for a conditional, one for a loop, else none.
pub fn inner_blocks(action: &Action) -> [Option<BlockId>; 2] {
    match *action {
        Action::Where { on, off } => [Some(on), Some(off)],
        Action::Loop { round, .. } => [Some(round), None],
        _ => [None; 2],
    }
}

/// The size of the plan in steps and tuple fields. Counting stops a little after `most`, so a larger result means only "more
/// than `most`".
pub(crate) fn size(plan: &Plan, most: usize) -> usize {
    let inputs = plan.inputs().iter().map(|input| input.value);
    let outputs = plan.outputs().iter().map(|output| output.value);
    let steps = (0..plan.step_count()).map(|at| plan.step(StepId::from_index(at)).out);
    let mut size = plan.step_count();
    for value in inputs.chain(outputs).chain(steps) {
        if size > most {
            break;
        }
        size += fields(plan, value, most);
    }
    size
}

/// The number of times that a tuple field counts if it is in the result of a conditional or a loop. Where branches
/// meet, all fields of the result are in registers at once, and register allocation takes time quadratic in their
/// number.
const COUNTED_AT_JOINS: usize = 10;

/// The number of tuple fields in the widest value: the result of a step, or an output. One value cannot be divided
/// among functions. Fields in the result of a conditional or loop count [`COUNTED_AT_JOINS`] times. Counting stops a
/// little after `most`.
pub(crate) fn widest(plan: &Plan, most: usize) -> usize {
    let outputs = plan.outputs().iter().map(|output| output.value);
    let steps = (0..plan.step_count()).map(StepId::from_index);
    // A field is taken from a tuple in memory without loading the tuple; it is counted where it is used.
    let made = steps.map(|id| plan.step(id)).filter(|step| !matches!(step.action, Action::Field(_)));
    let joins = |action: &Action| matches!(action, Action::Where { .. } | Action::Loop { .. });
    let made = made.map(|step| (step.out, if joins(&step.action) { COUNTED_AT_JOINS } else { 1 }));
    let values = made.chain(outputs.map(|output| (output, 1)));
    values.map(|(value, each)| fields(plan, value, most).saturating_mul(each)).max().unwrap_or(0)
}

/// The pieces (functions) that write the plan's outputs to their memory locations, each for a range of the outputs.
fn outputs(plan: &Plan, binding: &Binding, most: usize) -> Vec<FunctionPiece> {
    let weigh = |at: usize| {
        let value = plan.outputs()[at].value;
        // An output whose place is its own slot is written when it is made.
        let own = binding.outputs[at] == plan.place(value);
        if own { 0 } else { fields(plan, value, usize::MAX) + 1 }
    };
    let ranges = ranges((0..plan.outputs().len()).map(weigh), most);
    ranges.into_iter().map(|outputs| FunctionPiece { outputs, ..FunctionPiece::NOTHING }).collect()
}

/// The number of tuple fields in a value; counting stops a little after `most`.
fn fields(plan: &Plan, value: ValueId, most: usize) -> usize {
    match &plan.value(value).qtype {
        qtype @ QType::Tuple(_) => qtype.extent(Extent { fields: most, nesting: usize::MAX }).fields,
        _ => 0,
    }
}

/// Splits a list of weights into consecutive ranges. The sum of a range is at most `most`, unless the range has only
/// one weight.
fn ranges(weights: impl Iterator<Item = usize>, most: usize) -> Vec<Range<usize>> {
    let mut ranges: Vec<Range<usize>> = Vec::new();
    let (mut start, mut end, mut sum) = (0, 0, 0_usize);
    for weight in weights {
        if end > start && sum + weight > most {
            ranges.push(start..end);
            (start, sum) = (end, 0);
        }
        sum += weight;
        end += 1;
    }
    if end > start {
        ranges.push(start..end);
    }
    ranges
}

/// The weights of a plan's steps and blocks, which estimate the size of their code.
struct Weights {
    /// The weight of each step. It includes the blocks inside the step, except that a large block counts 1.
    steps: Vec<u32>,
    blocks: Vec<usize>,
    large: usize,
    /// The weight of all steps.
    total: usize,
}

impl Weights {
    fn of(plan: &Plan, most: usize, budget: &Budget) -> Result<Weights, Diagnostic> {
        let mut weights = Weights {
            steps: vec![1; plan.step_count()],
            blocks: vec![0; plan.block_count()],
            large: most / 2,
            total: 0,
        };
        // Each block after the one that contains it.
        let mut order = vec![BlockId::TOP];
        let mut at = 0;
        while let Some(block) = order.get(at) {
            at += 1;
            let steps = plan.block(*block).steps.iter().map(|id| &plan.step(*id).action);
            let inner: Vec<BlockId> = steps.flat_map(|action| inner_blocks(action).into_iter().flatten()).collect();
            order.extend(inner);
        }
        for (visit, block) in order.into_iter().rev().enumerate() {
            budget.check_visit(visit)?;
            for id in &plan.block(block).steps {
                let step = plan.step(*id);
                let mut weight = 1 + fields(plan, step.out, usize::MAX);
                if let Action::Operator { op, overload, .. } = step.action {
                    weight += plan.registry().effects(op, overload).rule_length / INSTRUCTIONS_OF_A_STEP;
                }
                weights.total = weights.total.saturating_add(weight);
                for inner in inner_blocks(&step.action).into_iter().flatten() {
                    weight += if weights.is_large(inner) { 1 } else { weights.blocks[inner.index()] };
                }
                weights.steps[id.index()] = weight.try_into().unwrap_or(u32::MAX);
                weights.blocks[block.index()] += weight;
            }
        }
        Ok(weights)
    }

    /// Returns true if a block is too large to be part of the enclosing piece (function).
    fn is_large(&self, block: BlockId) -> bool {
        self.blocks[block.index()] > self.large
    }

    /// Splits a block's steps into pieces (functions) that weigh at most `most` each, or have a single step.
    fn stretches(&self, plan: &Plan, block: BlockId, most: usize) -> Vec<FunctionPiece> {
        let weights = plan.block(block).steps.iter().map(|id| self.steps[id.index()] as usize);
        ranges(weights, most)
            .into_iter()
            .map(|steps| FunctionPiece { block, steps, ..FunctionPiece::NOTHING })
            .collect()
    }
}
