//! The form of array programs: a tree of blocks of steps, each from values to values. A value is an array, an edge, a shape or
//! anything that a scalar model has. It is stored by itself, outside of frames.

use cembra_expr::NodeId;
use cembra_ops::{OpId, Registry};
use cembra_plan::Plan;
use cembra_runtime::QType;
use cembra_value::Value;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! positions {
    ($($(#[$doc:meta])* $name:ident;)*) => { $(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub struct $name(pub u32);

        impl $name {
            /// The index as a `usize`.
            #[inline]
            #[must_use]
            pub const fn index(self) -> usize {
                self.0 as usize
            }
        }
    )* };
}

positions! {
    /// The index of a value in a program.
    ValueId;
    /// The index of a block in a program.
    BlockId;
    /// The index of a plan in a program.
    PartId;
    /// The index of a sweep in a program.
    SweepId;
}

impl BlockId {
    /// The top block, which always runs.
    pub const TOP: BlockId = BlockId(0);
}

/// The computation of a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    /// Evaluates a plan on scalars, once.
    Scalar(PartId),
    /// Evaluates a plan for each element of the arrays among the arguments; scalar arguments are the same for all elements.
    Map(PartId),
    /// Computes an operator on whole arrays.
    Operator(OpId),
    /// Runs a sweep, which goes over elements once, strip by strip.
    Sweep(SweepId),
    /// Gathers the arguments into a tuple.
    MakeTuple,
    /// Takes the field with this index out of a tuple.
    Field(u32),
    /// Runs one of two blocks, by whether the argument is present. The result is that block's result.
    Where {
        /// The block for a present condition.
        on: BlockId,
        /// The block for a missing one.
        off: BlockId,
    },
    /// Runs a block repeatedly. Its state is the argument at first, then the state that the previous round made. The result of
    /// the block is a tuple of the next state and a mask, which is present as long as another round follows. The result of the
    /// last round is the result of the loop.
    Loop {
        /// The block that each round runs.
        round: BlockId,
        /// The value of the state during a round.
        state: ValueId,
    },
}

/// A step of a program: an action from values to values.
#[derive(Clone, Debug)]
pub struct Step {
    /// The computation.
    pub action: Action,
    /// The values that the step reads.
    pub args: Vec<ValueId>,
    /// The values that the step makes: several for a plan.
    pub outs: Vec<ValueId>,
    /// The expression node that the step came from; the first of them if there are several.
    pub origin: NodeId,
}

/// Steps that run in order.
#[derive(Clone, Debug, Default)]
pub struct Block {
    /// The steps of the block, in order.
    pub steps: Vec<Step>,
    /// The value that the block computes; `None` for the top block, which computes the outputs.
    pub result: Option<ValueId>,
}

/// A plan in a program: its inputs are arguments of its step, and its outputs are the step's results, by position.
#[derive(Clone, Debug)]
pub struct SubPlan {
    /// The plan. Arguments that preparation found to be unneeded are not among its inputs.
    pub plan: Plan,
    /// For each input of the plan, the index of the step's argument.
    pub inputs: Vec<usize>,
}

/// The elements or groups that a stage of a sweep goes over.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Side {
    /// The elements of a strip.
    Elements,
    /// The groups that the elements of a strip are in.
    Groups,
}

/// A step of a sweep, which sees strips instead of arrays: a plan for each element, a fold, a scan or an expansion.
#[derive(Clone, Debug)]
pub struct Stage {
    /// The step of the program that the stage runs.
    pub step: Step,
    /// The side that the stage goes over: the operand's for folds and scans, the result's for other steps.
    pub over: Side,
}

/// Steps that go over elements together: each handles one strip, then the next step handles the same strip. A value that only
/// these steps use is never stored as an array.
#[derive(Clone, Debug)]
pub struct Sweep {
    /// The stages, in order.
    pub stages: Vec<Stage>,
    /// The edge of split points whose groups strips hold whole, so that later stages can use the results of a group. `None` if no
    /// stage needs that.
    pub groups: Option<ValueId>,
}

/// An input of a program.
#[derive(Clone, Debug)]
pub struct ArrayInput {
    /// The name of the input.
    pub name: Arc<str>,
    /// The index of the input among the leaves of the model.
    pub leaf: u32,
    /// The value of the program that the input becomes.
    pub value: ValueId,
}

/// Identifies a program: separately made programs have different ids. A clone keeps the id of the original.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ProgramId(u64);

impl ProgramId {
    pub(crate) fn next() -> ProgramId {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        ProgramId(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// A compiled model with arrays.
#[derive(Clone, Debug)]
pub struct ArrayProgram {
    /// Identifies the program to the memory and the runners that are made for it.
    pub(crate) id: ProgramId,
    /// The operators that the steps refer to.
    pub(crate) registry: &'static Registry,
    /// The type of each value.
    pub(crate) values: Vec<QType>,
    /// For each value, whether it is an array or edge that is surely full: nothing is missing.
    pub(crate) full: Vec<bool>,
    /// The blocks, the top one first.
    pub(crate) blocks: Vec<Block>,
    /// The plans of the steps.
    pub(crate) parts: Vec<SubPlan>,
    /// The sweeps of the steps.
    pub(crate) sweeps: Vec<Sweep>,
    /// The inputs that the outputs need, in the order of the model.
    pub(crate) inputs: Vec<ArrayInput>,
    /// The literals, each with the value of the program that it becomes.
    pub(crate) literals: Vec<(ValueId, Value)>,
    /// The outputs, the main one first.
    pub(crate) outputs: Vec<(Arc<str>, ValueId)>,
}

impl ArrayProgram {
    /// The id of this program. Memory and compiled sweeps are made for one id only.
    #[inline]
    #[must_use]
    pub const fn id(&self) -> ProgramId {
        self.id
    }

    /// The operators that the steps refer to.
    #[inline]
    #[must_use]
    pub const fn registry(&self) -> &'static Registry {
        self.registry
    }

    /// The number of values in the program.
    #[must_use]
    pub fn value_count(&self) -> usize {
        self.values.len()
    }

    /// The type of a value.
    #[inline]
    #[must_use]
    pub fn qtype(&self, value: ValueId) -> &QType {
        &self.values[value.index()]
    }

    /// Returns true if a value is surely full: no element is missing.
    #[must_use]
    pub fn is_full(&self, value: ValueId) -> bool {
        self.full[value.index()]
    }

    /// Returns true if the values have exactly the types of the program's inputs, in their order.
    #[must_use]
    pub fn takes(&self, inputs: &[Value]) -> bool {
        let is_right = |(input, value): (&ArrayInput, &Value)| value.is_of(self.qtype(input.value));
        inputs.len() == self.inputs.len() && self.inputs.iter().zip(inputs).all(is_right)
    }

    /// The blocks, the top one first.
    #[must_use]
    pub fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// The plans of the steps, indexed by [`PartId`].
    #[must_use]
    pub fn parts(&self) -> &[SubPlan] {
        &self.parts
    }

    /// The sweeps of the steps, indexed by [`SweepId`].
    #[must_use]
    pub fn sweeps(&self) -> &[Sweep] {
        &self.sweeps
    }

    /// The inputs that the outputs need, in the order of the model.
    #[must_use]
    pub fn inputs(&self) -> &[ArrayInput] {
        &self.inputs
    }

    /// The literals, each with the value of the program that it becomes.
    #[must_use]
    pub fn literals(&self) -> &[(ValueId, Value)] {
        &self.literals
    }

    /// The outputs with their names, the main one first.
    #[inline]
    #[must_use]
    pub fn outputs(&self) -> &[(Arc<str>, ValueId)] {
        &self.outputs
    }

    /// The block with this index.
    #[inline]
    #[must_use]
    pub fn block(&self, block: BlockId) -> &Block {
        &self.blocks[block.index()]
    }

    /// The sweep with this index.
    #[inline]
    #[must_use]
    pub fn sweep(&self, sweep: SweepId) -> &Sweep {
        &self.sweeps[sweep.index()]
    }

    /// The plan with this index.
    #[inline]
    #[must_use]
    pub fn part(&self, part: PartId) -> &SubPlan {
        &self.parts[part.index()]
    }
}
