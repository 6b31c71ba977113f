//! Builds one plan with loops from a whole array program, for short lists. Running an array program step by step
//! allocates arrays and starts each step separately. The plan instead computes one element after the other in loops,
//! and stores elements in columns (arrays in memory that the caller provides). Running the plan makes no arrays and
//! allocates nothing.
//!
//! A loop goes over the elements of one list and evaluates the program's elementwise plans for one element at a time.
//! Elements that are needed elsewhere are written to columns, which other loops, aggregations and outputs read. Steps
//! over the same list share a loop, unless a step needs an aggregation of elements that another step computes.
//! `members` decides which steps become which loops, `graph` builds the model, and `folds` has the aggregations that a
//! loop computes. Only elementwise plans, aggregations, expansions, plans on scalars and conditionals are supported;
//! for any other step the result is a [`LoopFailure`].
//!
//! The groups of an edge (a grouping of elements) are a list as well, if the edge is an input with split points. Split
//! points are the index of each group's first element, and the number of elements. A loop over groups aggregates the
//! elements between the two split points of a group. If a loop over elements needs a value per group, it reads the
//! index of the element's group from a column, and then the value at this index.

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

/// The reason why an array program cannot become a plan with loops, and the node that is not supported.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LoopFailure {
    /// The expression node that is not supported; `None` if the reason concerns no single node.
    pub origin: Option<NodeId>,
    /// The reason, as a sentence, for example "the key of the lookup may be missing". In the sentence, "the operator"
    /// means the operator of the node `origin`.
    pub why: &'static str,
}

impl LoopFailure {
    const fn new(origin: Option<NodeId>, why: &'static str) -> LoopFailure {
        LoopFailure { origin, why }
    }
}

/// The path to a value inside an input of the program: the index of the input, then the index of a field for each nested
/// struct.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct InputPath {
    /// The index of the input among the program's inputs.
    pub input: usize,
    /// The index of the field to take from each nested struct, outermost first.
    pub fields: Vec<u32>,
}

/// A list that loops go over: the elements of an input array, or the elements or groups of an input edge (a grouping of
/// elements). The input determines the length of the list.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum LoopList {
    /// The elements of an input array or an input list of structs.
    Items(InputPath),
    /// The elements that an input edge assigns to groups.
    EdgeElements(InputPath),
    /// The groups to which an input edge assigns elements.
    EdgeGroups(InputPath),
}

/// The origin of the elements in a column: the plan computes them, or they are taken from an input.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum ColumnOrigin {
    /// The plan writes the column's elements.
    Plan,
    /// The column has the elements of an input array.
    Input(InputPath),
    /// The column has the split points of an input edge (a grouping of elements): the index of each group's first element,
    /// and the end.
    Points(InputPath),
    /// The column has, for each element that an input edge with split points assigns to a group, the index of this group.
    Groups(InputPath),
}

/// A column of a plan with loops: the elements of an array in memory. Either the plan writes the elements, or an input
/// has them.
#[derive(Clone, Debug)]
pub struct Column {
    /// The type of the column's elements. An element has the memory layout of a slot in a frame (the memory that
    /// compiled code works on).
    pub element: QType,
    /// The index of a list. The column has one element for each element of that list.
    pub list: usize,
    /// The origin of the column's elements.
    pub from: ColumnOrigin,
}

/// The meaning of a leaf (an input) of a [`LoopModel`]: for example a value, the address of a column, or the length of a list. Columns and lists are
/// given by their indices.
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

/// The source from which an output of the array program is assembled: an output of the model with loops, a column, or a
/// tuple of sources.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LoopOutput {
    /// The source is the output of the model with loops that has this index.
    Value(usize),
    /// The source is the column with this index, whose elements become an array.
    Column(usize),
    /// The output is a tuple, and these are the sources of its fields.
    Tuple(Vec<LoopOutput>),
}

/// The model with loops that replaces an array program, and the relation of its inputs and outputs to the inputs and
/// outputs of the program.
#[derive(Clone, Debug)]
pub struct LoopModel {
    /// The model with loops. All of its values are scalars and optionals that a frame can hold.
    pub model: TypedModel,
    /// The meaning of each leaf (input) of the model, such as the address of a column or the length of a list.
    pub leaves: Vec<LoopLeaf>,
    /// The lists that the loops go over. The inputs determine their lengths.
    pub lists: Vec<LoopList>,
    /// For each list, the index of the first list that must have the same length, which may be the list's own index. If the
    /// lengths differ, the evaluation must fail.
    pub spaces: Vec<usize>,
    /// The columns that the model reads and writes.
    pub columns: Vec<Column>,
    /// The source of each output of the program.
    pub outputs: Vec<LoopOutput>,
}

/// Builds one model with loops for a whole array program. `parts` are the models of the program's plans, in order.
///
/// # Errors
/// If a step of the program cannot be part of a model with loops.
pub fn loops(program: &ArrayProgram, parts: &[TypedModel]) -> Result<LoopModel, LoopFailure> {
    let members = Members::of(program)?;
    graph::build(program, parts, &members)
}

/// The representation of an array program's value in the model with loops, such as a column or a value in the frame.
#[derive(Clone, Debug)]
enum LoopValue {
    /// An input, or a field of an input, that a frame cannot hold.
    Input(InputPath),
    /// An input, or a field of an input, that a frame can hold.
    Leaf(InputPath),
    /// A literal, or a value that the plan stores in its frame.
    Framed,
    /// An array in an input, and the index of the list with its elements.
    Column(InputPath, usize),
    /// An array that a loop computes, element by element.
    Made {
        /// The index of the loop that computes the array.
        by: usize,
        /// The index of the list that the loop goes over.
        list: usize,
    },
    /// A tuple of these values.
    Tuple(Vec<ValueId>),
    /// The keys of a dictionary input if the flag is true, else the values of the dictionary.
    MapPart(InputPath, bool),
    /// The index of the dictionary entry for a key, or the indices of the entries for an array of keys. The second field is
    /// the key or the array.
    MapRow(InputPath, ValueId),
    /// An edge (a grouping of elements) that is an input.
    Edge(EdgeInput),
    /// The value is a field of a tuple. It equals this other value, which the field was made from.
    Same(ValueId),
    /// The value `unspecified`, for an argument that is not given.
    Unspecified,
}

/// An edge (a grouping of elements) that is an input.
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
