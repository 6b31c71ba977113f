//! Cutting a plan: how its steps are shared out among functions, so that compiling takes time linear in the plan whatever
//! its size. A piece runs a stretch of a block's steps with the small blocks inside of them; a large branch or round is
//! pieces of its own, which the piece around it calls; pieces that only call others run stretches one after the other.
//! Nothing is decided here about values: see `locations.rs`.

use cembra_plan::{Action, Binding, BlockId, Plan, StepId, ValueId};
use cembra_runtime::{Extent, QType};
use cembra_value::{Budget, Diagnostic};
use rustc_hash::FxHashMap;
use std::ops::Range;

/// How many pieces one piece calls in a row; for more there are pieces between.
const MOST_CALLS: usize = 512;

/// How many instructions of an operator's rule weigh as much as a step does at least.
const INSTRUCTIONS_OF_A_STEP: usize = 8;

/// The weight of the largest plans with mathematical functions written out. In larger ones that would take minutes.
const MOST_INLINED: usize = 200_000;

/// What one function does: steps, then calls, then outputs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Piece {
    /// The block that the steps are of.
    pub block: BlockId,
    /// Which of the block's steps.
    pub steps: Range<usize>,
    /// The pieces that it calls after its steps.
    pub calls: Vec<usize>,
    /// The outputs that it puts into their places at last.
    pub outputs: Range<usize>,
}

impl Piece {
    const NOTHING: Piece = Piece { block: BlockId::TOP, steps: 0..0, calls: Vec::new(), outputs: 0..0 };
}

/// The functions of a plan. The first is the entry; each comes after those that call it.
#[derive(Debug)]
pub struct Pieces {
    list: Vec<Piece>,
    /// The piece that each step is in; empty if there is one piece.
    of_step: Vec<u32>,
    /// The piece that runs a block which is not part of the piece around it.
    of_block: FxHashMap<BlockId, usize>,
    inlines: bool,
}

impl Pieces {
    /// A plan that is one function.
    pub(crate) fn whole(plan: &Plan) -> Pieces {
        let steps = 0..plan.block(BlockId::TOP).steps.len();
        let all = Piece { steps, outputs: 0..plan.outputs().len(), ..Piece::NOTHING };
        Pieces { list: vec![all], of_step: Vec::new(), of_block: FxHashMap::default(), inlines: true }
    }

    /// A plan in pieces of about `most` steps.
    ///
    /// # Errors
    /// The time is over.
    pub(crate) fn cut(plan: &Plan, binding: &Binding, most: usize, budget: &Budget) -> Result<Pieces, Diagnostic> {
        let weights = Weights::of(plan, most, budget)?;
        let mut pieces = Pieces {
            list: vec![Piece::NOTHING],
            of_step: vec![0; plan.step_count()],
            of_block: FxHashMap::default(),
            inlines: weights.total <= MOST_INLINED,
        };
        let mut parts = weights.stretches(plan, BlockId::TOP, most);
        parts.extend(outputs(plan, binding, most));
        // The entry does no steps itself, even if there is one part only: it is where an evaluation begins.
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

    /// All pieces in order.
    pub fn list(&self) -> &[Piece] {
        &self.list
    }

    /// True if the plan is small enough for mathematical functions to be written out.
    pub fn inlines(&self) -> bool {
        self.inlines
    }

    /// True if the plan is one function.
    pub fn is_whole(&self) -> bool {
        // Not by its steps: a plan that is cut may have none, and outputs alone.
        self.list.len() == 1
    }

    /// The piece that a step is in.
    pub fn of_step(&self, step: StepId) -> u32 {
        self.of_step.get(step.index()).copied().unwrap_or(0)
    }

    /// The piece that runs a block, if it is not part of the piece around it.
    pub fn of_block(&self, block: BlockId) -> Option<usize> {
        self.of_block.get(&block).copied()
    }

    fn add(&mut self) -> usize {
        self.list.push(Piece::NOTHING);
        self.list.len() - 1
    }

    /// Makes a piece call the parts, or pieces that will call them.
    fn call_all(&mut self, number: usize, mut parts: Vec<Piece>, todo: &mut Vec<(usize, Vec<Piece>)>) {
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

    /// Gives the steps of a part to a piece; returns the blocks inside that are too large for it.
    fn occupy(&mut self, plan: &Plan, number: usize, part: &Piece, weights: &Weights) -> Vec<BlockId> {
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

/// The blocks inside of a step.
pub fn inner_blocks(action: &Action) -> [Option<BlockId>; 2] {
    match *action {
        Action::Where { on, off } => [Some(on), Some(off)],
        Action::Loop { round, .. } => [Some(round), None],
        _ => [None; 2],
    }
}

/// How much there is to compile, in steps and fields of tuples; counted up to a little more than `most`.
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

/// How often a field counts of what conditionals and loops result in: it is in registers together with all others where blocks
/// meet, and the allocator of registers takes time quadratic in these.
const COUNTED_AT_JOINS: usize = 10;

/// The most fields that a step makes or an output has: what cannot be cut. Counted up to a little more than `most`.
pub(crate) fn widest(plan: &Plan, most: usize) -> usize {
    let outputs = plan.outputs().iter().map(|output| output.value);
    let steps = (0..plan.step_count()).map(StepId::from_index);
    // A field of a tuple in memory is taken without the tuple; it is counted where it is used.
    let made = steps.map(|id| plan.step(id)).filter(|step| !matches!(step.action, Action::Field(_)));
    let joins = |action: &Action| matches!(action, Action::Where { .. } | Action::Loop { .. });
    let made = made.map(|step| (step.out, if joins(&step.action) { COUNTED_AT_JOINS } else { 1 }));
    let values = made.chain(outputs.map(|output| (output, 1)));
    values.map(|(value, each)| fields(plan, value, most).saturating_mul(each)).max().unwrap_or(0)
}

/// What is to be put into the places of the outputs, in parts.
fn outputs(plan: &Plan, binding: &Binding, most: usize) -> Vec<Piece> {
    let weigh = |at: usize| {
        let value = plan.outputs()[at].value;
        // In its own slot it is put when it is made.
        let own = binding.outputs[at] == plan.place(value);
        if own { 0 } else { fields(plan, value, usize::MAX) + 1 }
    };
    let ranges = ranges((0..plan.outputs().len()).map(weigh), most);
    ranges.into_iter().map(|outputs| Piece { outputs, ..Piece::NOTHING }).collect()
}

/// The fields of a value, counted up to a little more than `most`.
fn fields(plan: &Plan, value: ValueId, most: usize) -> usize {
    match &plan.value(value).qtype {
        qtype @ QType::Tuple(_) => qtype.extent(Extent { fields: most, nesting: usize::MAX }).fields,
        _ => 0,
    }
}

/// Ranges that weigh up to `most` each, unless one alone weighs more.
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

/// How much code steps and blocks are.
struct Weights {
    /// Of each step with the blocks inside of it that are not large.
    steps: Vec<u32>,
    blocks: Vec<usize>,
    large: usize,
    /// Of all steps.
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
        // Blocks after the blocks that they are in.
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

    /// True for a block that is no part of the piece around it.
    fn is_large(&self, block: BlockId) -> bool {
        self.blocks[block.index()] > self.large
    }

    /// A block's steps in parts.
    fn stretches(&self, plan: &Plan, block: BlockId, most: usize) -> Vec<Piece> {
        let weights = plan.block(block).steps.iter().map(|id| self.steps[id.index()] as usize);
        ranges(weights, most).into_iter().map(|steps| Piece { block, steps, ..Piece::NOTHING }).collect()
    }
}
