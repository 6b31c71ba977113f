//! One plan of a whole array program, for short lists: what is done to each element becomes the round of a loop, arrays become
//! columns in memory, and all that is between is the plan's as ever. No array is made and nothing is allocated.
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

/// Why a program has no plan with loops.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unlooped {
    /// The expression node that no such plan has.
    pub origin: Option<NodeId>,
    /// What is so about it, as in "is a scan".
    pub why: &'static str,
}

impl Unlooped {
    const fn new(origin: Option<NodeId>, why: &'static str) -> Unlooped {
        Unlooped { origin, why }
    }
}

/// Where a value is inside of an input of the program: the fields that lead there, from the input on.
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
    /// How many there are: as in this list.
    pub list: usize,
    /// Where they come from; `None` if the plan writes them.
    pub from: Option<InputPath>,
}

/// What a leaf of the model is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LoopLeaf {
    /// A value of an input.
    Value(InputPath),
    /// The address of the first element of a column.
    Base(usize),
    /// How many bytes lie between an element of a column and the next.
    Stride(usize),
    /// How many elements a list has.
    Count(usize),
    /// The address of the `MapView` of a dictionary.
    Map(InputPath),
}

/// What an output of the program is made of.
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
    /// What each leaf is.
    pub leaves: Vec<LoopLeaf>,
    /// Where each list is: an array, or a list of structs.
    pub lists: Vec<InputPath>,
    /// Lists that must have as many elements as another, or something fails.
    pub same: Vec<[usize; 2]>,
    /// The columns.
    pub columns: Vec<Column>,
    /// What each output of the program is made of.
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

/// What a value of a program is.
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
        /// Its list.
        list: usize,
    },
    /// A tuple of values.
    Tuple(Vec<ValueId>),
    /// The keys of a dictionary that is an input, or their values.
    MapPart(InputPath, bool),
    /// The row of a key in a dictionary, or of each key of an array.
    MapRow(InputPath, ValueId),
    /// Another value: what was taken from a tuple.
    Same(ValueId),
    /// That nothing was said.
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
