//! Builds one plan with loops from a whole array program, for short lists: a loop does the work for one element after the
//! other, and arrays become columns, elements in memory. Running the plan makes no arrays and allocates nothing.
//!
//! A loop goes over the elements of one list and evaluates the program's elementwise plans for one element at a time.
//! Elements that are needed elsewhere are written to columns, which other loops, aggregations and outputs read. Steps over
//! the same list share a loop, unless one needs an aggregation of the other's elements. `members` decides which steps become
//! which loops, `graph` builds the model, and `folds` has the aggregations that a loop computes. Only elementwise plans,
//! aggregations, expansions, plans on scalars and conditionals are supported; for any other step the result is an
//! [`Unlooped`].
//!
//! The groups of an edge are a list as well, if the edge is an input with split points (the index of each group's first
//! element, and the end). A loop over groups aggregates the elements between the group's two split points. A loop over
//! elements that needs a value per group reads the index of the element's group from a column, and then the value at this
//! index.

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

/// The reason why an array program cannot become a plan with loops.
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

/// The path to a value inside an input of the program: the input, then the field of each nested struct.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct InputPath {
    /// The index of the input among the program's inputs.
    pub input: usize,
    /// The index of the field to take from each nested struct, outermost first.
    pub fields: Vec<u32>,
}

/// A list that loops go over. An input determines its number of elements.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum LoopList {
    /// The elements of an input array or an input list of structs.
    Items(InputPath),
    /// The elements of an edge, which is an input.
    EdgeElements(InputPath),
    /// The groups of an edge, which is an input.
    EdgeGroups(InputPath),
}

/// The origin of the elements in a column.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum ColumnOrigin {
    /// The plan writes the column's elements.
    Plan,
    /// The column's elements are those of an input array.
    Input(InputPath),
    /// The column's elements are the split points of an input edge: the index of each group's first element, and the end.
    Points(InputPath),
    /// The column has, for each element of an input edge with split points, the index of the element's group.
    Groups(InputPath),
}

/// A column of a plan with loops: the elements of an array in memory.
#[derive(Clone, Debug)]
pub struct Column {
    /// The type of the column's elements, which are stored as in a slot of a frame.
    pub element: QType,
    /// The index of the list that the column has an element for each element of.
    pub list: usize,
    /// The origin of the column's elements.
    pub from: ColumnOrigin,
}

/// The meaning of a leaf (an input) of a [`LoopModel`]. Columns and lists are given by their indices.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LoopLeaf {
    /// The leaf is a value from an input of the program.
    Value(InputPath),
    /// The leaf is the address of the first element of a column.
    Base(usize),
    /// The leaf is the distance in bytes between two elements of a column.
    Stride(usize),
    /// The leaf is the number of elements in a list.
    Count(usize),
    /// The leaf is the address of the `MapView` of a dictionary.
    Map(InputPath),
}

/// The source from which an output of the array program is assembled.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LoopOutput {
    /// The output of the model with this index.
    Value(usize),
    /// An array of the elements of the column with this index.
    Column(usize),
    /// A tuple of values from these sources.
    Tuple(Vec<LoopOutput>),
}

/// The model with loops that replaces an array program, and the relation of its inputs and outputs to the program's.
#[derive(Clone, Debug)]
pub struct LoopModel {
    /// The model with loops. All of its values are scalars and optionals that a frame can hold.
    pub model: TypedModel,
    /// The meaning of each leaf of the model.
    pub leaves: Vec<LoopLeaf>,
    /// The lists that the loops go over. The inputs determine their lengths.
    pub lists: Vec<LoopList>,
    /// For each list, the first list that must have the same length, possibly itself. If the lengths differ, the evaluation
    /// must fail.
    pub spaces: Vec<usize>,
    /// The columns that the model reads and writes.
    pub columns: Vec<Column>,
    /// The source of each output of the program.
    pub outputs: Vec<LoopOutput>,
}

/// Builds one model with loops for a whole array program. `parts` are the models of the program's plans, in order.
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
    /// An input, or a field of an input, that a frame cannot hold.
    Input(InputPath),
    /// An input, or a field of an input, that a frame can hold.
    Leaf(InputPath),
    /// A literal, or a value that the plan stores in its frame.
    Framed,
    /// An array in an input, and the index of the list with its elements.
    Column(InputPath, usize),
    /// An array that a loop computes.
    Made {
        /// The index of the loop that computes the array.
        by: usize,
        /// The index of the list that the loop goes over.
        list: usize,
    },
    /// A tuple of these values.
    Tuple(Vec<ValueId>),
    /// The keys of a dictionary input (true), or its values (false).
    MapPart(InputPath, bool),
    /// The index of a dictionary entry with a key, or of each key in an array. The second field is the key or the array.
    MapRow(InputPath, ValueId),
    /// An edge that is an input.
    Edge(EdgeInput),
    /// A value that is the same as this other value, because it is a field of a tuple made from that value.
    Same(ValueId),
    /// The value `unspecified`, for an argument that is not given.
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
