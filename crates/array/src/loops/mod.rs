//! The plan with loops of a whole array program, for short lists: the work on one element becomes the round of a loop, and arrays become columns
//! in memory. No array is made and nothing is allocated.
//!
//! A loop goes over the elements of one list and does the work of maps on one element. Elements that others need are written to columns,
//! which other loops, aggregations and outputs read. Steps over the same list share a loop, unless one needs an aggregation of the other. `members`
//! decides which steps become which loops, `graph` makes the model, and `folds` has the sums and the like that a loop carries. A program with
//! steps other than maps, aggregations, expansions, parts of scalars and conditionals has no such plan; the reason is an [`Unlooped`].
//!
//! Groups of an edge with split points, which is an input, are a list as well. An aggregation into groups is the work on a group: it reads the
//! points before and behind the group, and folds the elements between them. An element that takes a value of its group reads the number of the
//! group from a column, and then the value at this number.

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

/// A list: elements that are counted by an input.
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
    /// The elements are the split points of an edge, one more than it has groups.
    Points(InputPath),
    /// The elements are the numbers of the groups that the elements of an edge with split points are in.
    Groups(InputPath),
}

/// Elements in memory.
#[derive(Clone, Debug)]
pub struct Column {
    /// The type of an element, which lies as in a slot of a frame.
    pub element: QType,
    /// The list that has as many elements.
    pub list: usize,
    /// The origin of the elements.
    pub from: ColumnOrigin,
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
    /// The lists.
    pub lists: Vec<LoopList>,
    /// For each list, the first list that must have as many elements, or something fails. It may be the list itself.
    pub spaces: Vec<usize>,
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
    /// An edge that is an input.
    Edge(EdgeInput),
    /// A field of a tuple, which is another value of the program.
    Same(ValueId),
    /// The value `unspecified`.
    Unspecified,
}

/// An edge that is an input.
#[derive(Clone, Debug)]
struct EdgeInput {
    path: InputPath,
    /// The list of the edge's elements.
    elements: usize,
    /// The list of the edge's groups.
    groups: usize,
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
