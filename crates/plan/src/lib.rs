//! Plans: a plan is a prepared model whose values have slots in one frame (the memory of one evaluation). It consists
//! of steps in a tree of blocks, the slot of every value, and the literals that a fresh frame contains. Both backends
//! start from the same plan: the interpreter reads and writes slots, native code keeps values in registers where it
//! can.

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
pub use slots::SlotUse;
pub use template::Template;
pub use verify::verify;
// Executors keep this alive without reading it.
pub use cembra_ops::CompiledLiteral;

use cembra_expr::NodeId;
use cembra_ops::{KernelData, OpId, Registry};
use cembra_runtime::{FrameLayout, QType, Scalar};
use cembra_value::Value;
use rustc_hash::FxHashMap;
use std::num::NonZero;
use std::sync::Arc;

/// Declares types of indices, stored plus one in a non-zero integer, so that an `Option` of such a type takes no extra
/// memory. Plans and their builder have many such options.
macro_rules! index_types {
    ($($(#[$doc:meta])* $name:ident;)*) => { $(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(NonZero<u32>);

        impl $name {
            /// The position of the item with this id in the plan's list of values, steps or blocks.
            #[must_use]
            pub const fn index(self) -> usize {
                (self.0.get() - 1) as usize
            }

            /// Makes the id of the item at the position `index` in the plan's list of values, steps or blocks.
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
    /// The id of a plan's value: an input, a literal, or the result of a step.
    ValueId;
    /// The id of a step of a plan. A fault in the step reports the step's index as its site.
    StepId;
    /// The id of a block of steps in a plan.
    BlockId;
}

impl BlockId {
    /// The block of the whole plan, which always runs. Branches and loops have blocks of their own.
    pub const TOP: BlockId = BlockId::from_index(0);
}

/// A value of a plan: its type, and its slot in the frame.
#[derive(Clone, Debug)]
pub struct PlanValue {
    /// The type of the value.
    pub qtype: QType,
    /// The offset of the value's slot in the frame, in bytes.
    pub slot: u32,
    /// The value whose slot contains this value's slot, if this value is a view (a part of another value, such as a
    /// field of a tuple); else `None`.
    pub owner: Option<ValueId>,
}

/// The operation that a step performs.
#[derive(Clone, Debug)]
pub enum Action {
    /// Computes the result of an operator.
    Operator {
        /// The operator that is computed.
        op: OpId,
        /// The index of the overload, among the operator's overloads.
        overload: u16,
        /// True if the overload is defined for values that are not optional, but is applied to optionals. Then the
        /// result is present only if all arguments are.
        lifted: bool,
    },
    /// Gathers the arguments into a tuple.
    MakeTuple,
    /// Takes the tuple's field with this index. The result is a view: it is read from the argument's slot, without a
    /// copy.
    Field(u32),
    /// Tests whether an optional is present. The result is a view: it is the argument's presence byte, without a copy.
    Has,
    /// Runs one of two blocks, depending on whether the argument is present. The result is that block's result.
    Where {
        /// The block that runs if the argument is present.
        on: BlockId,
        /// The block that runs if the argument is missing.
        off: BlockId,
    },
    /// Runs a block repeatedly. The argument is the initial state of the loop. The result is a tuple: the state after
    /// the last round, and a mask that is present while another round follows.
    Loop {
        /// The block of one round. Its result is the tuple of the next state and the mask for another round.
        round: BlockId,
        /// The value from which a round reads the loop's state. It is a view: the first field of this step's result,
        /// without a copy.
        state: ValueId,
        /// True if the rounds of this loop count towards the limit on rounds.
        is_counted: bool,
    },
}

/// A step of a plan: an operation on values, and its result.
#[derive(Clone, Debug)]
pub struct Step {
    /// The operation that the step performs.
    pub action: Action,
    /// The index of the step's first argument in the plan's list of arguments.
    args_start: u32,
    args_len: u32,
    /// The value that is the step's result.
    pub out: ValueId,
    /// The node of the model's expression that the step was made for, for messages.
    pub origin: NodeId,
}

/// A sequence of steps that run one after the other, and their result: the whole plan, a branch, or a round of a loop.
#[derive(Clone, Debug, Default)]
pub struct Block {
    /// The steps of the block, in order.
    pub steps: Vec<StepId>,
    /// The result of the block, read at its end; `None` for the top block, whose results are the plan's outputs.
    pub result: Option<ValueId>,
}

/// An input of a plan: its name, its leaf in the model, and the plan's value (with a slot in the frame) that holds the
/// input during an evaluation.
#[derive(Clone, Debug)]
pub struct Input {
    /// The name of the input's leaf.
    pub name: Arc<str>,
    /// The index of the input's leaf in the prepared model.
    pub leaf: u32,
    /// The value of the plan that holds the input during an evaluation.
    pub value: ValueId,
}

/// An output of a plan: its name, and the value that becomes the output.
#[derive(Clone, Debug)]
pub struct Output {
    /// The output's name.
    pub name: Arc<str>,
    /// The value of the plan that becomes the output.
    pub value: ValueId,
}

/// A model laid out for evaluation: values with slots in a frame (the memory of one evaluation), and blocks of steps.
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
    /// The compiled states of operators that are compiled from a literal.
    states: FxHashMap<StepId, CompiledLiteral>,
    layout: FrameLayout,
    template: Template,
    reused_slots: usize,
}

impl Plan {
    /// The registry with the operators of the plan's steps.
    #[must_use]
    pub fn registry(&self) -> &'static Registry {
        self.registry
    }

    /// Returns the value with this id.
    #[must_use]
    pub fn value(&self, id: ValueId) -> &PlanValue {
        &self.values[id.index()]
    }

    /// The number of values in the plan.
    #[must_use]
    pub fn value_count(&self) -> usize {
        self.values.len()
    }

    /// Returns the step with this id.
    #[must_use]
    pub fn step(&self, id: StepId) -> &Step {
        &self.steps[id.index()]
    }

    /// The number of steps in the plan, including steps inside branches and loops.
    #[must_use]
    pub fn step_count(&self) -> usize {
        self.steps.len()
    }

    /// The arguments of the step `step`.
    #[must_use]
    pub fn args(&self, step: &Step) -> &[ValueId] {
        &self.args[step.args_start as usize..(step.args_start + step.args_len) as usize]
    }

    /// Returns the block with this id.
    #[must_use]
    pub fn block(&self, id: BlockId) -> &Block {
        &self.blocks[id.index()]
    }

    /// The number of blocks in the plan.
    #[must_use]
    pub fn block_count(&self) -> usize {
        self.blocks.len()
    }

    /// The inputs of the plan, in the order of the program. Inputs that no output needs are not included.
    #[must_use]
    pub fn inputs(&self) -> &[Input] {
        &self.inputs
    }

    /// The literals of the plan, each with the id of its value and its content.
    #[must_use]
    pub fn literals(&self) -> &[(ValueId, Value)] {
        &self.literals
    }

    /// The outputs of the plan, in the order of the model. The first is the main output.
    #[must_use]
    pub fn outputs(&self) -> &[Output] {
        &self.outputs
    }

    /// The data that is passed to the kernel of a step in addition to slots: the operator's compiled state (such as a
    /// regular expression), or else the data of the operator's overload.
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

    /// The compiled states of the plan's operators, such as regular expressions. They must stay alive as long as kernel
    /// data of a step ([`Plan::data`]) is used, because it may point to them.
    #[must_use]
    pub fn states(&self) -> Vec<CompiledLiteral> {
        self.states.values().cloned().collect()
    }

    /// The layout of the plan's frames.
    #[must_use]
    pub fn layout(&self) -> &FrameLayout {
        &self.layout
    }

    /// The template, the content of a fresh frame.
    #[must_use]
    pub fn template(&self) -> &Template {
        &self.template
    }

    /// The number of times that a slot was reused for another value.
    #[must_use]
    pub fn reused_slots(&self) -> usize {
        self.reused_slots
    }

    /// The offset in the frame of a loop's mask, which tells whether another round follows: if so, the mask is present.
    /// `out` is the result of the loop.
    #[must_use]
    pub fn repeat_slot(&self, out: ValueId) -> u32 {
        let out = self.value(out);
        out.slot + out.qtype.field_offset(1).unwrap_or(0)
    }

    /// Returns true if any value of the plan is a string. If not, an evaluation neither makes nor reads strings.
    #[must_use]
    pub fn has_strings(&self) -> bool {
        self.values.iter().any(|value| value.qtype.scalar().is_some_and(Scalar::is_string))
    }

    /// Returns true if any step of the plan is a loop.
    #[must_use]
    pub fn has_loops(&self) -> bool {
        self.steps.iter().any(|step| matches!(step.action, Action::Loop { .. }))
    }

    /// Frees the unused capacity of the plan's lists.
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

    /// The bytes of memory that the plan owns. The struct itself, names, texts of literals, and compiled states of
    /// operators are not counted.
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
