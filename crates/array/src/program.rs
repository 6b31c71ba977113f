//! The form of array programs: steps in a tree of blocks, each from values to values. A value is an array, an edge, a shape or
//! anything that a scalar model has; it lies beside frames, by itself.

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
            /// The position.
            #[inline]
            #[must_use]
            pub const fn index(self) -> usize {
                self.0 as usize
            }
        }
    )* };
}

positions! {
    /// A value of a program.
    ValueId;
    /// A block of a program.
    BlockId;
    /// A plan of a program.
    PartId;
    /// A sweep of a program.
    SweepId;
}

impl BlockId {
    /// The block that always runs.
    pub const TOP: BlockId = BlockId(0);
}

/// What a step does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    /// Evaluates a plan on scalars, once.
    Scalar(PartId),
    /// Evaluates a plan for each element of the arrays among its arguments, the others being the same for all.
    Map(PartId),
    /// Computes an operator on whole arrays.
    Operator(OpId),
    /// Goes over elements once, strip by strip.
    Sweep(SweepId),
    /// Gathers the arguments into a tuple.
    MakeTuple,
    /// A field of a tuple.
    Field(u32),
    /// Runs one of two blocks, as the argument is present or not; the result is that block's result.
    Where {
        /// The block for a present condition.
        on: BlockId,
        /// The block for a missing one.
        off: BlockId,
    },
    /// Runs a block again and again. Its state is the argument at first, then what the last round made: the result of the block is
    /// the next state and whether to go on, and the last of them is the result.
    Loop {
        /// The block of a round.
        round: BlockId,
        /// The state in a round.
        state: ValueId,
    },
}

/// A step.
#[derive(Clone, Debug)]
pub struct Step {
    /// What it does.
    pub action: Action,
    /// What of.
    pub args: Vec<ValueId>,
    /// Its results: several for a plan.
    pub outs: Vec<ValueId>,
    /// The expression node it came from, or the first of them.
    pub origin: NodeId,
}

/// Steps that run in order.
#[derive(Clone, Debug, Default)]
pub struct Block {
    /// The steps.
    pub steps: Vec<Step>,
    /// The value that the block is for; none for the top block, whose values are the outputs.
    pub result: Option<ValueId>,
}

/// A plan of a program: its inputs are the arguments of its step, by position, and its outputs the results.
#[derive(Clone, Debug)]
pub struct SubPlan {
    /// The plan. Inputs that it turned out not to need are not among its own.
    pub plan: Plan,
    /// For each input of the plan, the position of the argument.
    pub inputs: Vec<usize>,
}

/// What a stage of a sweep goes over.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Side {
    /// Elements.
    Elements,
    /// The groups that the elements of a strip are in.
    Groups,
}

/// A step of a sweep, which sees strips instead of arrays: a plan for each element, a fold, a scan or an expansion.
#[derive(Clone, Debug)]
pub struct Stage {
    /// The step.
    pub step: Step,
    /// What it goes over: a fold and a scan what they gather, others what they make.
    pub over: Side,
}

/// Steps that go over elements together: each does a strip of them, and then the next step does the same strip. What only they
/// see of each other is never an array.
#[derive(Clone, Debug)]
pub struct Sweep {
    /// The steps, in order.
    pub stages: Vec<Stage>,
    /// The edge, of split points, whose groups strips hold whole, so that what is gathered of a group is there for the stages
    /// behind; none if nothing asks for that.
    pub groups: Option<ValueId>,
}

/// An input of a program.
#[derive(Clone, Debug)]
pub struct ArrayInput {
    /// Its name.
    pub name: Arc<str>,
    /// Its position among the leaves of the model.
    pub leaf: u32,
    /// Its value.
    pub value: ValueId,
}

/// Which program something is of: no two programs that were made have the same one. A copy of a program has that of the original.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ProgramId(u64);

impl ProgramId {
    pub(crate) fn next() -> ProgramId {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        ProgramId(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// A model with arrays.
#[derive(Clone, Debug)]
pub struct ArrayProgram {
    /// Identifies the program to the memory and the runners that are made for it.
    pub(crate) id: ProgramId,
    /// The operators of its steps.
    pub(crate) registry: &'static Registry,
    /// The type of each value.
    pub(crate) values: Vec<QType>,
    /// For each value whether it is an array that is surely full: nothing is missing.
    pub(crate) full: Vec<bool>,
    /// The blocks, the top one first.
    pub(crate) blocks: Vec<Block>,
    /// The plans.
    pub(crate) parts: Vec<SubPlan>,
    /// The sweeps.
    pub(crate) sweeps: Vec<Sweep>,
    /// The inputs that the outputs need, in the order of the model.
    pub(crate) inputs: Vec<ArrayInput>,
    /// The literals.
    pub(crate) literals: Vec<(ValueId, Value)>,
    /// The outputs, the main one first.
    pub(crate) outputs: Vec<(Arc<str>, ValueId)>,
}

impl ArrayProgram {
    /// What tells this program from all others: memory, and what runs its sweeps, is made for one program only.
    #[inline]
    #[must_use]
    pub const fn id(&self) -> ProgramId {
        self.id
    }

    /// The operators of its steps.
    #[inline]
    #[must_use]
    pub const fn registry(&self) -> &'static Registry {
        self.registry
    }

    /// How many values it has.
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

    /// True for an array that is surely full.
    #[must_use]
    pub fn is_full(&self, value: ValueId) -> bool {
        self.full[value.index()]
    }

    /// True for values of exactly the types of its inputs, in their order.
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

    /// The plans.
    #[must_use]
    pub fn parts(&self) -> &[SubPlan] {
        &self.parts
    }

    /// The sweeps.
    #[must_use]
    pub fn sweeps(&self) -> &[Sweep] {
        &self.sweeps
    }

    /// The inputs that the outputs need, in the order of the model.
    #[must_use]
    pub fn inputs(&self) -> &[ArrayInput] {
        &self.inputs
    }

    /// The literals, each with the value of the program that it is.
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

    /// A block.
    #[inline]
    #[must_use]
    pub fn block(&self, block: BlockId) -> &Block {
        &self.blocks[block.index()]
    }

    /// A sweep.
    #[inline]
    #[must_use]
    pub fn sweep(&self, sweep: SweepId) -> &Sweep {
        &self.sweeps[sweep.index()]
    }

    /// A plan.
    #[inline]
    #[must_use]
    pub fn part(&self, part: PartId) -> &SubPlan {
        &self.parts[part.index()]
    }
}
