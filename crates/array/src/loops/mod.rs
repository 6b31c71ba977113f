//! The plan with loops for a whole array program, made for short lists: the work per element becomes a round of a loop, and
//! arrays become columns in memory. Running it makes no arrays and allocates nothing.
//!
//! A loop goes over the elements of one list and evaluates the maps for one element. Elements that are needed elsewhere are
//! written to columns, which other loops, aggregations and outputs read. Steps over the same list share a loop, unless one needs
//! an aggregation of the other. `members` decides which steps become which loops, `graph` makes the model, and `folds` computes
//! the aggregations that a loop carries. Only maps, aggregations, expansions, plans on scalars and conditionals are supported;
//! for any other step the result is an [`Unlooped`].
//!
//! The groups of an edge are a list as well, if the edge is an input with split points. An aggregation into groups is the work
//! per group: it reads the split points at both ends of the group and folds the elements between them. An element that takes a
//! value of its group reads the group's number from a column, and then the value at that number.

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

/// The reason why a program cannot become a plan with loops.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unlooped {
    /// The expression node that is not supported; `None` if the reason concerns no single node.
    pub origin: Option<NodeId>,
    /// The reason, as the rest of a sentence about the node, such as "is a scan".
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
    /// The index of the input among the program's inputs.
    pub input: usize,
    /// The field to take at each struct, outermost first.
    pub fields: Vec<u32>,
}

/// A list whose number of elements an input determines.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum LoopList {
    /// The elements of an array or of a list of structs.
    Items(InputPath),
    /// The elements of an edge.
    EdgeElements(InputPath),
    /// The groups of an edge.
    EdgeGroups(InputPath),
}

/// The origin of the elements of a column.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum ColumnOrigin {
    /// The plan writes the elements.
    Plan,
    /// The elements are an input.
    Input(InputPath),
    /// The elements are the split points of an edge: one more than its groups.
    Points(InputPath),
    /// The elements are group numbers: for each element of an edge with split points, the group that it is in.
    Groups(InputPath),
}

/// A column: the elements of an array in memory.
#[derive(Clone, Debug)]
pub struct Column {
    /// The type of an element, stored as in a slot of a frame.
    pub element: QType,
    /// The index of the list with as many elements.
    pub list: usize,
    /// The origin of the elements.
    pub from: ColumnOrigin,
}

/// The meaning of a leaf of a [`LoopModel`]. Columns and lists are given by their indices.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LoopLeaf {
    /// A value of an input.
    Value(InputPath),
    /// The address of the first element of a column.
    Base(usize),
    /// The distance between two elements of a column, in bytes.
    Stride(usize),
    /// The number of elements in a list.
    Count(usize),
    /// The address of the `MapView` of a dictionary.
    Map(InputPath),
}

/// The source of an output of the program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LoopOutput {
    /// An output of the model, by its index.
    Value(usize),
    /// The elements of a column, by its index.
    Column(usize),
    /// A tuple of sources.
    Tuple(Vec<LoopOutput>),
}

/// The model of a program with loops over elements.
#[derive(Clone, Debug)]
pub struct LoopModel {
    /// The model. All of its values are in a frame.
    pub model: TypedModel,
    /// The meaning of each leaf.
    pub leaves: Vec<LoopLeaf>,
    /// The lists whose lengths the inputs determine.
    pub lists: Vec<LoopList>,
    /// For each list, the first list that must have the same length, possibly itself. If the lengths differ, the evaluation must
    /// fail.
    pub spaces: Vec<usize>,
    /// The columns that the model reads and writes.
    pub columns: Vec<Column>,
    /// The source of each output of the program.
    pub outputs: Vec<LoopOutput>,
}

/// Makes one model with loops for a whole program. `parts` are the models of its plans, in order.
///
/// # Errors
/// If a step cannot be part of such a model.
pub fn loops(program: &ArrayProgram, parts: &[TypedModel]) -> Result<LoopModel, Unlooped> {
    let members = Members::of(program)?;
    graph::build(program, parts, &members)
}

/// The form of a value of a program.
#[derive(Clone, Debug)]
enum Form {
    /// An input, or a field of one, that a frame cannot hold.
    Input(InputPath),
    /// An input, or a field of one, that a frame can hold.
    Leaf(InputPath),
    /// A value that the plan makes in its frame, or a literal.
    Framed,
    /// An array that is in an input, and the index of its list.
    Column(InputPath, usize),
    /// An array that a loop makes.
    Made {
        /// The index of the loop.
        by: usize,
        /// The index of the loop's list.
        list: usize,
    },
    /// A tuple of values.
    Tuple(Vec<ValueId>),
    /// The keys of a dictionary that is an input (true), or its values (false).
    MapPart(InputPath, bool),
    /// The row of a key in a dictionary, or the row of each key in an array. The second field is the key or the array.
    MapRow(InputPath, ValueId),
    /// An edge that is an input.
    Edge(EdgeInput),
    /// A field of a tuple, which is the same as another value of the program.
    Same(ValueId),
    /// The value `unspecified`.
    Unspecified,
}

/// An edge that is an input.
#[derive(Clone, Debug)]
struct EdgeInput {
    path: InputPath,
    /// The index of the list of the edge's elements.
    elements: usize,
    /// The index of the list of the edge's groups.
    groups: usize,
}

/// The type of field `at` in a struct or a list of structs; `None` if there is no such field.
fn field_type(qtype: &QType, at: u32) -> Option<&QType> {
    match qtype {
        QType::Tuple(fields) => fields.get(at as usize),
        _ => None,
    }
}

fn is_unspecified(value: &Value) -> bool {
    matches!(value, Value::Unspecified)
}
