//! Classifies a plan's steps: whether the result of a step is the same for all rows, depends on one dictionary input alone,
//! or may differ from row to row.

use crate::lanes::InputFact;
use cembra_plan::{Action, BlockId, Plan, StepId, ValueId};
use cembra_runtime::QType;
use smallvec::SmallVec;

/// The class of a value: whether the value is the same for all rows, depends on one dictionary, or may differ from row to
/// row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Class {
    /// The value depends only on values that all rows share.
    Shared,
    /// The value depends only on the input with this index, whose column is a dictionary, and on values that all rows share.
    Of(u32),
    /// The value may depend on any input, so it may differ from row to row.
    Rows,
}

impl Class {
    fn and(self, other: Class) -> Class {
        match (self, other) {
            (Class::Shared, class) | (class, Class::Shared) => class,
            (a, b) if a == b => a,
            _ => Class::Rows,
        }
    }
}

/// The class of each step of a plan: the inputs that the step's result depends on. Empty if no input is shared by all
/// rows and no input is a dictionary, because then all steps are of the class `Rows`.
#[derive(Debug, Default)]
pub(super) struct Classes {
    of_steps: Vec<Class>,
}

impl Classes {
    pub(super) fn of(plan: &Plan, facts: &[InputFact]) -> Classes {
        let mut classes = Classes::default();
        if facts.iter().any(|fact| fact.is_shared || fact.is_dictionary) {
            classes.find(plan, facts);
        }
        classes
    }

    /// The class of a step, which tells the inputs that the step's result depends on.
    pub(super) fn step(&self, step: StepId) -> Class {
        self.of_steps.get(step.index()).copied().unwrap_or(Class::Rows)
    }

    fn find(&mut self, plan: &Plan, facts: &[InputFact]) {
        self.of_steps.resize(plan.step_count(), Class::Rows);
        let mut of_values = vec![Class::Shared; plan.value_count()];
        for (at, input) in plan.inputs().iter().enumerate() {
            of_values[input.value.index()] = match facts.get(at) {
                Some(fact) if fact.is_shared => Class::Shared,
                Some(fact) if fact.is_dictionary => Class::Of(at as u32),
                _ => Class::Rows,
            };
        }
        enum Todo {
            Steps(BlockId, usize),
            Join(StepId),
        }
        // For each open conditional, the class of all steps inside of it together.
        let mut open: Vec<Class> = vec![Class::Shared];
        let mut stack = vec![Todo::Steps(BlockId::TOP, 0)];
        while let Some(todo) = stack.pop() {
            let (id, inside) = match todo {
                Todo::Steps(block, at) => {
                    let Some(&id) = plan.block(block).steps.get(at) else { continue };
                    stack.push(Todo::Steps(block, at + 1));
                    if let Action::Where { on, off } = plan.step(id).action {
                        open.push(Class::Shared);
                        stack.extend([Todo::Join(id), Todo::Steps(off, 0), Todo::Steps(on, 0)]);
                        continue;
                    }
                    (id, Class::Shared)
                }
                Todo::Join(id) => {
                    let Action::Where { on, off } = plan.step(id).action else { continue };
                    let results = [on, off].into_iter().filter_map(|block| plan.block(block).result);
                    let inside = open.pop().unwrap_or(Class::Rows);
                    (id, results.fold(inside, |class, result| class.and(of_values[result.index()])))
                }
            };
            let step = plan.step(id);
            let class = plan.args(step).iter().fold(inside, |class, arg| class.and(of_values[arg.index()]));
            // A memo stores scalars and optionals only.
            let is_tuple = !matches!(plan.value(step.out).qtype, QType::Scalar(_) | QType::Optional(_));
            let class = if is_tuple && class != Class::Shared { Class::Rows } else { class };
            if let Some(around) = open.last_mut() {
                *around = around.and(class);
            }
            self.of_steps[id.index()] = class;
            of_values[step.out.index()] = class;
        }
    }
}

/// Replaces the contents of `reads` by all values that a step reads, including the values that steps of its inner blocks
/// read.
pub(super) fn find_reads(plan: &Plan, id: StepId, reads: &mut Vec<ValueId>) {
    reads.clear();
    let mut inside: SmallVec<[BlockId; 8]> = SmallVec::new();
    let mut read = |id: StepId, inside: &mut SmallVec<[BlockId; 8]>| {
        let step = plan.step(id);
        reads.extend(plan.args(step));
        if let Action::Where { on, off } = step.action {
            inside.extend([on, off]);
        }
    };
    read(id, &mut inside);
    let mut results: SmallVec<[ValueId; 8]> = SmallVec::new();
    while let Some(block) = inside.pop() {
        let block = plan.block(block);
        results.extend(block.result);
        block.steps.iter().for_each(|id| read(*id, &mut inside));
    }
    reads.extend(results);
}
