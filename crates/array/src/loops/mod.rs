//! One plan for a whole array program, for short lists: the work on one element becomes the round of a loop, and arrays become columns in
//! memory. No array is made and nothing is allocated.
//!
//! A loop goes over the elements of one list and does what maps do to one element. What others need of it is written to columns,
//! which other loops, aggregations and outputs read. Steps over the same list share a loop, unless one needs what is gathered of
//! the other. This module decides which steps become which loops (`members`), and makes the model (`graph`), in which loops carry sums and the like (`folds`). Programs with other
//! steps than maps, aggregations of all elements, parts of scalars and conditionals have no such plan; why is an [`Unlooped`].

mod folds;
mod graph;
mod members;
mod nodes;

use crate::{ArrayProgram, ValueId};
use cembra_expr::NodeId;
use cembra_prepare::TypedModel;
use cembra_runtime::QType;
use cembra_value::Value;
use members::Members;

/// The reason why a program has no plan with loops.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unlooped {
    /// The expression node that no such plan has.
    pub origin: Option<NodeId>,
    /// The reason as the end of a sentence about the node, as in "is a scan".
    pub why: &'static str,
}

impl Unlooped {
    const fn new(origin: Option<NodeId>, why: &'static str) -> Unlooped {
        Unlooped { origin, why }
    }
}

/// The path to a value in an input of the program.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct InputPath {
    /// The position of the input among the program's.
    pub input: usize,
    /// The field of each struct on the way.
    pub fields: Vec<u32>,
}

/// Elements in memory.
#[derive(Clone, Debug)]
pub struct Column {
    /// The type of an element, which lies as in a slot of a frame.
    pub element: QType,
    /// The list that has as many elements.
    pub list: usize,
    /// The input that has the elements; `None` if the plan writes them.
    pub from: Option<InputPath>,
}

/// The meaning of a leaf of the model.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LoopLeaf {
    /// A value of an input.
    Value(InputPath),
    /// The address of the first element of a column.
    Base(usize),
    /// The number of bytes from an element of a column to the next.
    Stride(usize),
    /// The number of elements in a list.
    Count(usize),
    /// The address of the `MapView` of a dictionary.
    Map(InputPath),
}

/// The source of an output of the program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LoopOutput {
    /// An output of the model, by position.
    Value(usize),
    /// The elements of a column.
    Column(usize),
    /// A tuple.
    Tuple(Vec<LoopOutput>),
}

/// The model of a program with loops over elements.
#[derive(Clone, Debug)]
pub struct LoopModel {
    /// The model, all of whose values lie in a frame.
    pub model: TypedModel,
    /// The meaning of each leaf.
    pub leaves: Vec<LoopLeaf>,
    /// The path to each list, which is an array or a list of structs.
    pub lists: Vec<InputPath>,
    /// Lists that must have as many elements as another, or something fails.
    pub same: Vec<[usize; 2]>,
    /// The columns.
    pub columns: Vec<Column>,
    /// The source of each output of the program.
    pub outputs: Vec<LoopOutput>,
}

/// Makes one model of a program. `parts` are the models of its plans, in order.
///
/// # Errors
/// A step that no such model has.
pub fn loops(program: &ArrayProgram, parts: &[TypedModel]) -> Result<LoopModel, Unlooped> {
    let members = Members::of(program)?;
    graph::build(program, parts, &members)
}

/// The form of a value of a program.
#[derive(Clone, Debug)]
enum Form {
    /// An input, or a field of one, that does not lie in a frame.
    Input(InputPath),
    /// An input, or a field of one, that lies in a frame.
    Leaf(InputPath),
    /// A value that the plan makes in its frame, or a literal.
    Framed,
    /// An array that lies in an input, and its list.
    Column(InputPath, usize),
    /// An array that a loop makes.
    Made {
        /// The loop.
        by: usize,
        /// The list of the loop.
        list: usize,
    },
    /// A tuple of values.
    Tuple(Vec<ValueId>),
    /// The keys of a dictionary that is an input, or their values.
    MapPart(InputPath, bool),
    /// The row of a key in a dictionary, or of each key of an array.
    MapRow(InputPath, ValueId),
    /// A field of a tuple, which is another value of the program.
    Same(ValueId),
    /// The value `unspecified`.
    Unspecified,
}

/// The type of a field of a struct or of a list of structs.
fn field_type(qtype: &QType, at: u32) -> Option<&QType> {
    match qtype {
        QType::Tuple(fields) => fields.get(at as usize),
        _ => None,
    }
}

fn is_unspecified(value: &Value) -> bool {
    matches!(value, Value::Unspecified)
}
