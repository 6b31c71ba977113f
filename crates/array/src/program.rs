//! Array programs as data. A program is a tree of blocks, and a block is a list of steps, which compute values from
//! values. A value is an array, an edge (which assigns elements to groups), a shape (the number of an array's
//! elements), or a scalar. Each value is stored by itself, not in a frame.

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
    /// The index of a value in an array program.
    ValueId;
    /// The index of a block in an array program.
    BlockId;
    /// The index of a plan in an array program.
    PartId;
    /// The index of a sweep (a fused loop over elements) in an array program.
    SweepId;
}

impl BlockId {
    /// The program's top block, which always runs.
    pub const TOP: BlockId = BlockId(0);
}

/// The computation that a step of an array program performs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    /// Evaluates this plan on scalars, once.
    Scalar(PartId),
    /// Evaluates this plan for each element of the arrays among the arguments; scalar arguments are the same for all
    /// elements.
    Map(PartId),
    /// Applies this operator to whole arrays.
    Operator(OpId),
    /// Runs this sweep: several steps that together go over blocks of consecutive elements.
    Sweep(SweepId),
    /// Makes a tuple of the arguments.
    MakeTuple,
    /// Takes the field with this index from the argument, which is a tuple.
    Field(u32),
    /// Runs one of two blocks, depending on whether the argument is present. The block's result is the step's result.
    Where {
        /// The block that runs if the condition is present.
        on: BlockId,
        /// The block that runs if the condition is missing.
        off: BlockId,
    },
    /// Runs a block repeatedly. The loop's state is the argument at first, then the state that the previous round computed.
    /// The result of the block is a tuple of the next state and a mask, which is present as long as another round follows.
    /// The result of the last round is the result of the loop.
    Loop {
        /// The block that each round of the loop runs.
        round: BlockId,
        /// The value by which the block reads the state.
        state: ValueId,
    },
}

/// A step of an array program: a computation from values to values.
#[derive(Clone, Debug)]
pub struct Step {
    /// The computation that the step performs.
    pub action: Action,
    /// The values that the step reads.
    pub args: Vec<ValueId>,
    /// The values that the step computes. Only a plan or a sweep (fused loop over elements) computes several values.
    pub outs: Vec<ValueId>,
    /// The expression node that the step comes from; the first such node if there are several.
    pub origin: NodeId,
}

/// A block of an array program: steps that run in order.
#[derive(Clone, Debug, Default)]
pub struct Block {
    /// The steps of the block, in order.
    pub steps: Vec<Step>,
    /// The value that is the block's result; `None` for the top block, which computes the program's outputs.
    pub result: Option<ValueId>,
}

/// A plan that a step of an array program evaluates. Its inputs are arguments of the step, and its outputs are the step's
/// results, in order.
#[derive(Clone, Debug)]
pub struct SubPlan {
    /// The plan itself. Arguments of the step that turned out to be unneeded are not among the plan's inputs.
    pub plan: Plan,
    /// For each input of the plan, the index of the step's argument.
    pub inputs: Vec<usize>,
}

/// Whether a stage of a sweep (a fused loop over elements) goes over elements or over groups.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Side {
    /// The stage goes over the elements of each strip, a block of consecutive elements.
    Elements,
    /// The stage goes over the groups that the elements of each strip are in.
    Groups,
}

/// A step of a sweep (a fused loop over elements): a plan that is evaluated for each element, an aggregation, a scan or
/// an expansion. A stage works on one strip (a block of consecutive elements) at a time, not on a whole array.
#[derive(Clone, Debug)]
pub struct Stage {
    /// The step of the program that the stage runs.
    pub step: Step,
    /// The items that the stage goes over, elements or groups. An aggregation or a scan goes over the items of its operand,
    /// any other step over the items of its result.
    pub over: Side,
}

/// Steps that go over elements together, strip by strip. A strip is a block of consecutive elements; all steps run on one
/// strip before the next strip begins. A value that only these steps use is never stored as an array.
#[derive(Clone, Debug)]
pub struct Sweep {
    /// The stages of the sweep, in order.
    pub stages: Vec<Stage>,
    /// The edge (grouping of elements) whose groups must not be divided between strips, so that later stages can use the
    /// results of groups. The groups are contiguous. `None` if no stage needs such an edge.
    pub groups: Option<ValueId>,
}

/// An input of an array program: its name, its leaf in the model, and the value that holds it.
#[derive(Clone, Debug)]
pub struct ArrayInput {
    /// The name of the input.
    pub name: Arc<str>,
    /// The index of the input among the leaves of the model that the program was built from.
    pub leaf: u32,
    /// The value of the program that is the input, as steps refer to it.
    pub value: ValueId,
}

/// The identity of an array program: separately built programs have different ids. A clone keeps the id of the original.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ProgramId(u64);

impl ProgramId {
    pub(crate) fn next() -> ProgramId {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        ProgramId(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// A compiled model with arrays: blocks of steps on whole arrays, with the plans and sweeps (fused loops over elements)
/// that the steps run.
#[derive(Clone, Debug)]
pub struct ArrayProgram {
    /// The identity of the program. Memory and compiled sweeps (fused loops) that were made for the program have the same id, so they are not used
    /// with another program.
    pub(crate) id: ProgramId,
    /// The registry of the operators that the program's steps apply.
    pub(crate) registry: &'static Registry,
    /// The type of each value of the program.
    pub(crate) values: Vec<QType>,
    /// For each value, whether it is certainly full: an array without missing elements, or an edge (the grouping of an
    /// array's elements) that assigns every element to a group.
    pub(crate) full: Vec<bool>,
    /// The blocks of the program, the top block first.
    pub(crate) blocks: Vec<Block>,
    /// The plans that steps of the program evaluate.
    pub(crate) parts: Vec<SubPlan>,
    /// The sweeps (fused loops over elements) that steps of the program run.
    pub(crate) sweeps: Vec<Sweep>,
    /// The inputs that the outputs need, in the order of the model.
    pub(crate) inputs: Vec<ArrayInput>,
    /// The literals of the program, each with the index that it has among the program's values.
    pub(crate) literals: Vec<(ValueId, Value)>,
    /// The outputs of the program by name, the main output first.
    pub(crate) outputs: Vec<(Arc<str>, ValueId)>,
}

impl ArrayProgram {
    /// The identity of this program. Memory and compiled sweeps (fused loops) have the id of the program that they were
    /// made for.
    #[inline]
    #[must_use]
    pub const fn id(&self) -> ProgramId {
        self.id
    }

    /// The registry of the operators that the program's steps apply.
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

    /// The type of a value of the program.
    #[inline]
    #[must_use]
    pub fn qtype(&self, value: ValueId) -> &QType {
        &self.values[value.index()]
    }

    /// Returns true if a value is certainly full: an array without missing elements, or an edge (the grouping of an array's
    /// elements) that assigns every element to a group.
    #[must_use]
    pub fn is_full(&self, value: ValueId) -> bool {
        self.full[value.index()]
    }

    /// Returns true if `inputs` have exactly the types of the program's inputs, in their order.
    #[must_use]
    pub fn takes(&self, inputs: &[Value]) -> bool {
        let is_right = |(input, value): (&ArrayInput, &Value)| value.is_of(self.qtype(input.value));
        inputs.len() == self.inputs.len() && self.inputs.iter().zip(inputs).all(is_right)
    }

    /// The blocks of the program, the top block first.
    #[must_use]
    pub fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// The plans that steps of the program evaluate, indexed by [`PartId`].
    #[must_use]
    pub fn parts(&self) -> &[SubPlan] {
        &self.parts
    }

    /// The sweeps (fused loops over elements) that steps of the program run, indexed by [`SweepId`].
    #[must_use]
    pub fn sweeps(&self) -> &[Sweep] {
        &self.sweeps
    }

    /// The inputs that the outputs need, in the order of the model.
    #[must_use]
    pub fn inputs(&self) -> &[ArrayInput] {
        &self.inputs
    }

    /// The literals of the program, each with the index that it has among the program's values.
    #[must_use]
    pub fn literals(&self) -> &[(ValueId, Value)] {
        &self.literals
    }

    /// The outputs of the program with their names, the main output first.
    #[inline]
    #[must_use]
    pub fn outputs(&self) -> &[(Arc<str>, ValueId)] {
        &self.outputs
    }

    /// The block of the program with this index.
    #[inline]
    #[must_use]
    pub fn block(&self, block: BlockId) -> &Block {
        &self.blocks[block.index()]
    }

    /// The sweep (fused loop over elements) of the program with this index.
    #[inline]
    #[must_use]
    pub fn sweep(&self, sweep: SweepId) -> &Sweep {
        &self.sweeps[sweep.index()]
    }

    /// The plan of the program with this index.
    #[inline]
    #[must_use]
    pub fn part(&self, part: PartId) -> &SubPlan {
        &self.parts[part.index()]
    }
}
