//! Plans: a prepared expression laid out in one frame. A plan is steps in a tree of blocks, the slot of every value, and
//! the literals that a fresh frame starts with. Both backends run the same plan: the interpreter on slots, the native
//! backend on values.

mod binding;
mod build;
mod error;
mod fields;
mod fingerprint;
mod flatten;
mod listing;
mod slots;
mod template;
mod verify;

pub use binding::{Base, Binding, Function, ValueLocation};
pub use build::build;
pub use error::PlanError;
pub use flatten::Linear;
pub use template::Template;
pub use verify::verify;
// What executors keep alive, and never look into.
pub use cembra_ops::CompiledLiteral;

use cembra_expr::NodeId;
use cembra_ops::{KernelData, OpId, Registry};
use cembra_runtime::{FrameLayout, QType, Scalar};
use cembra_value::Value;
use rustc_hash::FxHashMap;
use std::num::NonZero;
use std::sync::Arc;

/// Positions. They are kept one larger, so that an optional one, of which plans and their making hold many, takes no more.
macro_rules! index_types {
    ($($(#[$doc:meta])* $name:ident;)*) => { $(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(NonZero<u32>);

        impl $name {
            /// The position.
            #[must_use]
            pub const fn index(self) -> usize {
                (self.0.get() - 1) as usize
            }

            /// The one at this position.
            #[must_use]
            pub const fn from_index(index: usize) -> Self {
                $name(NonZero::<u32>::MIN.saturating_add(index as u32))
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, "{}({})", stringify!($name), self.index())
            }
        }
    )* };
}

index_types! {
    /// A value of a plan: an input, a literal, or the result of a step.
    ValueId;
    /// A step of a plan; also the site that faults name.
    StepId;
    /// A block of a plan.
    BlockId;
}

impl BlockId {
    /// The block that always runs.
    pub const TOP: BlockId = BlockId::from_index(0);
}

/// A value: its type and where it lies.
#[derive(Clone, Debug)]
pub struct PlanValue {
    /// The type.
    pub qtype: QType,
    /// The offset of its slot.
    pub slot: u32,
    /// For a view, the value whose slot this lies in.
    pub owner: Option<ValueId>,
}

/// What a step does.
#[derive(Clone, Debug)]
pub enum Action {
    /// Runs a kernel.
    Operator {
        /// The operator.
        op: OpId,
        /// Which of its overloads.
        overload: u16,
        /// True if a strict overload runs on optionals.
        lifted: bool,
    },
    /// Gathers the arguments into a tuple.
    MakeTuple,
    /// A field of a tuple: the result is a view of the argument's slot.
    Field(u32),
    /// The presence of an optional: the result is a view of the argument's presence byte.
    Has,
    /// Runs one of two blocks, as the argument is present or not; the result is that block's result.
    Where {
        /// The block for a present condition.
        on: BlockId,
        /// The block for a missing one.
        off: BlockId,
    },
    /// Runs a block again and again. The result is a tuple of the state after a round and of the mask that says whether to
    /// go on; the argument is the first state.
    Loop {
        /// The block of a round; its result is such a tuple.
        round: BlockId,
        /// The state in a round: a view of the first field of this step's result.
        state: ValueId,
        /// True if its rounds are among those of which there is a limit.
        is_counted: bool,
    },
}

/// A step.
#[derive(Clone, Debug)]
pub struct Step {
    /// What it does.
    pub action: Action,
    /// Where its arguments start in the plan's list.
    args_start: u32,
    args_len: u32,
    /// Its result.
    pub out: ValueId,
    /// The expression node it came from.
    pub origin: NodeId,
}

/// A straight line of steps.
#[derive(Clone, Debug, Default)]
pub struct Block {
    /// The steps in order.
    pub steps: Vec<StepId>,
    /// The value the block is for, read at its end; none for the top block, whose values are the outputs.
    pub result: Option<ValueId>,
}

/// An input of a plan.
#[derive(Clone, Debug)]
pub struct Input {
    /// The leaf's name.
    pub name: Arc<str>,
    /// The number of the leaf in the model that was planned.
    pub leaf: u32,
    /// Its value.
    pub value: ValueId,
}

/// An output of a plan.
#[derive(Clone, Debug)]
pub struct Output {
    /// The output's name.
    pub name: Arc<str>,
    /// Its value.
    pub value: ValueId,
}

/// A model laid out for evaluation.
#[derive(Clone, Debug)]
pub struct Plan {
    registry: &'static Registry,
    values: Vec<PlanValue>,
    steps: Vec<Step>,
    args: Vec<ValueId>,
    blocks: Vec<Block>,
    inputs: Vec<Input>,
    literals: Vec<(ValueId, Value)>,
    outputs: Vec<Output>,
    /// What operators are compiled to.
    states: FxHashMap<StepId, CompiledLiteral>,
    layout: FrameLayout,
    template: Template,
    reused_slots: usize,
}

impl Plan {
    /// The operators of the plan's steps.
    #[must_use]
    pub fn registry(&self) -> &'static Registry {
        self.registry
    }

    /// A value.
    #[must_use]
    pub fn value(&self, id: ValueId) -> &PlanValue {
        &self.values[id.index()]
    }

    /// How many values there are.
    #[must_use]
    pub fn value_count(&self) -> usize {
        self.values.len()
    }

    /// A step.
    #[must_use]
    pub fn step(&self, id: StepId) -> &Step {
        &self.steps[id.index()]
    }

    /// How many steps there are, those inside branches included.
    #[must_use]
    pub fn step_count(&self) -> usize {
        self.steps.len()
    }

    /// A step's arguments.
    #[must_use]
    pub fn args(&self, step: &Step) -> &[ValueId] {
        &self.args[step.args_start as usize..(step.args_start + step.args_len) as usize]
    }

    /// A block.
    #[must_use]
    pub fn block(&self, id: BlockId) -> &Block {
        &self.blocks[id.index()]
    }

    /// How many blocks there are.
    #[must_use]
    pub fn block_count(&self) -> usize {
        self.blocks.len()
    }

    /// The inputs that the outputs need, in the order of the program.
    #[must_use]
    pub fn inputs(&self) -> &[Input] {
        &self.inputs
    }

    /// The literals, each with the value it initialises.
    #[must_use]
    pub fn literals(&self) -> &[(ValueId, Value)] {
        &self.literals
    }

    /// The outputs, the main one first.
    #[must_use]
    pub fn outputs(&self) -> &[Output] {
        &self.outputs
    }

    /// What the kernel of a step is given besides slots: what its operator is compiled to, or closes over.
    #[must_use]
    pub fn data(&self, step: StepId) -> KernelData {
        match (self.states.get(&step), &self.step(step).action) {
            (Some(state), _) => state.data(),
            (None, Action::Operator { op, overload, .. }) => {
                self.registry.get(*op).overloads()[usize::from(*overload)].data
            }
            _ => KernelData::NONE,
        }
    }

    /// What operators are compiled to: whoever keeps the data of steps keeps these too.
    #[must_use]
    pub fn states(&self) -> Vec<CompiledLiteral> {
        self.states.values().cloned().collect()
    }

    /// The layout of frames.
    #[must_use]
    pub fn layout(&self) -> &FrameLayout {
        &self.layout
    }

    /// What a fresh frame holds.
    #[must_use]
    pub fn template(&self) -> &Template {
        &self.template
    }

    /// How often a slot was given to another value after its first.
    #[must_use]
    pub fn reused_slots(&self) -> usize {
        self.reused_slots
    }

    /// Where the mask lies that says whether a loop with this result goes on.
    #[must_use]
    pub fn again_slot(&self, out: ValueId) -> u32 {
        let out = self.value(out);
        out.slot + out.qtype.field_offset(1).unwrap_or(0)
    }

    /// True if some value is a string: else an evaluation makes none and does no work on any.
    #[must_use]
    pub fn has_strings(&self) -> bool {
        self.values.iter().any(|value| value.qtype.scalar().is_some_and(Scalar::is_string))
    }

    /// True if some step is a loop.
    #[must_use]
    pub fn has_loops(&self) -> bool {
        self.steps.iter().any(|step| matches!(step.action, Action::Loop { .. }))
    }

    /// Gives back the memory that was taken to build the plan and is not needed to keep it.
    pub fn shrink_to_fit(&mut self) {
        self.values.shrink_to_fit();
        self.steps.shrink_to_fit();
        self.args.shrink_to_fit();
        self.blocks.shrink_to_fit();
        self.blocks.iter_mut().for_each(|block| block.steps.shrink_to_fit());
        self.inputs.shrink_to_fit();
        self.literals.shrink_to_fit();
        self.outputs.shrink_to_fit();
    }

    /// Bytes of memory the plan holds, besides itself; names, its literals' texts and what operators are compiled to apart.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        fn held<T>(list: &Vec<T>) -> usize {
            list.capacity() * size_of::<T>()
        }
        held(&self.values)
            + held(&self.steps)
            + held(&self.args)
            + held(&self.blocks)
            + self.blocks.iter().map(|block| held(&block.steps)).sum::<usize>()
            + held(&self.inputs)
            + held(&self.literals)
            + held(&self.outputs)
            + self.template.memory_bytes()
    }
}
