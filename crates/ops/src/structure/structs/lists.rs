//! Operators on lists of structs: making a list from structs, splitting a list into the arrays of its fields, and
//! reading elements. A list of structs is stored as one array per scalar or optional in the struct.

use super::{common_struct, formed, make_struct, of_lists, part};
use crate::definition::{ExpansionError, Instantiation, Meaning, NodeHandle, NodeResult, OpDef, ex, param};
use crate::function::HIGHER_ORDER;
use crate::id;
use crate::typing::{TypeFault, refuse};
use cembra_runtime::{QType, Scalar};
use cembra_value::{ScalarValue, Value};

/// A function that is called for each array of a list, with the type of the array's elements, and returns a node.
type Leaf<'f> = &'f mut dyn FnMut(&mut dyn Instantiation, NodeHandle, &QType) -> NodeResult<ExpansionError>;

/// Adds graph nodes for a struct of type `element`, the element type of `list`, in which the result of `leaf` for an
/// array of the list takes the place of the scalar that the array stores.
fn taken(g: &mut dyn Instantiation, list: NodeHandle, element: &QType, leaf: Leaf<'_>) -> NodeResult<ExpansionError> {
    // The text that spells types bounds how deep they nest.
    let QType::Tuple(fields) = element else { return leaf(g, list, element) };
    let mut members = Vec::with_capacity(fields.len());
    for (index, field) in fields.iter().enumerate() {
        let of = part(g, list, index)?;
        members.push(taken(g, of, field, leaf)?);
    }
    if element.as_tuple().is_some() { Ok(make_struct(g, fields, members)?) } else { Ok(formed(g, element, &members)?) }
}

/// Adds graph nodes for a list in which the result of `make` takes the place of each array.
fn each(g: &mut dyn Instantiation, list: NodeHandle, make: Leaf<'_>) -> NodeResult<ExpansionError> {
    let found = g.qtype(list);
    let QType::Tuple(members) = &found else { return make(g, list, &found) };
    let mut others = Vec::with_capacity(members.len());
    for index in 0..members.len() {
        let of = part(g, list, index)?;
        others.push(each(g, of, make)?);
    }
    Ok(formed(g, &found, &others)?)
}

/// Adds graph nodes for the first array of a list. All arrays of a list have the same length.
fn first(g: &mut dyn Instantiation, list: NodeHandle) -> NodeResult<ExpansionError> {
    let mut list = list;
    while matches!(g.qtype(list), QType::Tuple(_)) {
        list = part(g, list, 0)?;
    }
    Ok(list)
}

/// Adds graph nodes for one element of a list of structs. The list is stored as arrays, and `one` returns the node for
/// this element in one array. A field that is a scalar, not an optional, is always present, so it is read as a scalar.
///
/// # Errors
/// If `list` is not a list.
pub fn flattened(g: &mut dyn Instantiation, list: NodeHandle, one: Leaf<'_>) -> NodeResult<ExpansionError> {
    let found = g.qtype(list);
    let Some(element) = found.element() else {
        return Err(TypeFault::mismatch(format!("a list of structs is expected, found {found}"), None).into());
    };
    taken(g, list, element, &mut |g, array, of| {
        let element = one(g, array, of)?;
        match of {
            // The list guarantees that it is present.
            QType::Scalar(scalar) => {
                let none = g.literal(Value::Scalar(ScalarValue::zero(*scalar)));
                Ok(g.apply(id::PRESENCE_OR, &[element, none])?)
            }
            _ => Ok(element),
        }
    })
}

/// Adds graph nodes for the scalars and optionals in the struct `one`, in order, with weak floats cast to f64. A list
/// of such structs has one array per node.
///
/// # Errors
/// If a list cannot have elements of this type.
pub fn leaves(g: &mut dyn Instantiation, one: NodeHandle) -> Result<Vec<NodeHandle>, ExpansionError> {
    let found = g.qtype(one);
    if found.list_of().is_none() {
        return refuse(0, format!("a list cannot have elements of type {found}"));
    }
    let mut found = Vec::new();
    add_leaves(g, one, &mut found)?;
    Ok(found)
}

fn add_leaves(g: &mut dyn Instantiation, one: NodeHandle, found: &mut Vec<NodeHandle>) -> Result<(), TypeFault> {
    match g.qtype(one) {
        QType::Tuple(fields) => {
            for index in 0..fields.len() {
                let member = part(g, one, index)?;
                add_leaves(g, member, found)?;
            }
        }
        QType::Scalar(Scalar::WeakFloat) | QType::Optional(Scalar::WeakFloat) => {
            found.push(g.apply(id::TO_FLOAT64, &[one])?);
        }
        _ => found.push(one),
    }
    Ok(())
}

/// Makes a list of elements of type `element` from arrays: one array for each scalar or optional in an element, in
/// order.
///
/// # Errors
/// If the arrays do not fit the scalars and optionals of the type `element`.
pub fn list_of_arrays(
    g: &mut dyn Instantiation,
    element: &QType,
    arrays: &mut dyn Iterator<Item = NodeHandle>,
) -> NodeResult {
    let (QType::Tuple(fields), Some(list)) = (element, element.list_of()) else {
        return arrays.next().ok_or_else(|| TypeFault::mismatch("a list lacks an array", None));
    };
    let members = fields.iter().map(|field| list_of_arrays(g, field, arrays)).collect::<Result<Vec<_>, _>>()?;
    formed(g, &list, &members)
}

/// Returns the type `qtype` with f64 in place of weak floats, because elements of a list cannot be weak floats.
pub fn strong(qtype: &QType) -> QType {
    match qtype {
        QType::Scalar(Scalar::WeakFloat) => QType::FLOAT64,
        QType::Optional(Scalar::WeakFloat) => QType::Optional(Scalar::Float64),
        QType::Tuple(fields) => QType::Tuple(fields.map(strong)),
        other => other.clone(),
    }
}

/// Default fields for the records of operators on lists, which replace those on arrays.
const OF_LISTS: OpDef = OpDef { params: &[param("array")], ..HIGHER_ORDER };

fn make(g: &mut dyn Instantiation, args: &[NodeHandle]) -> NodeResult<ExpansionError> {
    let mut common = g.qtype(args[0]);
    for (at, arg) in args.iter().enumerate() {
        let found = g.qtype(*arg);
        let Some(next) = common_struct(&common, &found) else {
            let message = format!("the structs of a list must have one type, found {common} and {found}");
            let fault = TypeFault::mismatch(message, Some(at));
            return Err(fault.hint("give all structs the same fields, in the same order").into());
        };
        common = next;
    }
    let element = strong(&common);
    let Some(QType::Tuple(_)) = element.list_of() else {
        let fault = TypeFault::mismatch(format!("a list cannot have elements of type {element}"), Some(0));
        return Err(fault.hint("use structs of scalars as elements").into());
    };
    let all = args.iter().map(|arg| g.widen(*arg, &element)).collect::<Result<Vec<_>, _>>()?;
    columns(g, &element, all)
}

/// Adds graph nodes for the list of the elements `all`, which are of type `element`.
fn columns(g: &mut dyn Instantiation, element: &QType, all: Vec<NodeHandle>) -> NodeResult<ExpansionError> {
    let (QType::Tuple(fields), Some(list)) = (element, element.list_of()) else {
        return Ok(g.apply(id::ARRAY_MAKE_DENSE, &all)?);
    };
    let mut members = Vec::with_capacity(fields.len());
    for (index, field) in fields.iter().enumerate() {
        let column = all.iter().map(|one| part(g, *one, index)).collect::<Result<Vec<_>, _>>()?;
        members.push(columns(g, field, column)?);
    }
    Ok(formed(g, &list, &members)?)
}

pub(crate) static MAKE: OpDef = OpDef {
    name: "array._make_list",
    summary: "`array.make_dense_array` of structs: a list of structs. Written `[{x: 1}, {x: 2}]`.",
    params: &[param("x0"), param("xs")],
    variadic: true,
    meaning: Meaning::Instantiate(make),
    examples: &[ex("[{x: 1, y: 0.5}, {x: 2, y: 1.5}].y", "[0.5, 1.5]"), ex("[{x: 1}, missing].x", "[1, NA]")],
    ..OF_LISTS
};

fn at(g: &mut dyn Instantiation, args: &[NodeHandle]) -> NodeResult<ExpansionError> {
    let (found, index) = (g.qtype(args[0]), g.qtype(args[1]));
    let Some(element) = found.element() else {
        return refuse(0, format!("array.at expects an array, found {found}"));
    };
    match index {
        QType::Array(_, Scalar::Unit) => select(g, args),
        QType::Scalar(Scalar::Int32 | Scalar::Int64) => taken(g, args[0], element, &mut |g, array, of| {
            let value = g.apply(id::ARRAY_AT, &[array, args[1]])?;
            if of.is_optional() { Ok(value) } else { Ok(g.apply(id::GET_OPTIONAL_VALUE, &[value])?) }
        }),
        QType::Optional(Scalar::Int32 | Scalar::Int64) => {
            let one = flattened(g, args[0], &mut |g, array, _| Ok(g.apply(id::ARRAY_AT, &[array, args[1]])?))?;
            if element.as_optional_struct().is_some() {
                return Ok(one);
            }
            let has = g.apply(id::HAS, &[args[1]])?;
            let qtype = element.optional_struct();
            Ok(formed(g, &qtype, &[has, one])?)
        }
        found => {
            let fault = TypeFault::mismatch(format!("array.at expects an index of a list, found {found}"), Some(1));
            Err(fault
                .hint(
                    "write an integer, or `items[items.price > 0]` to select the elements for which a comparison holds",
                )
                .into())
        }
    }
}

pub(crate) static AT: OpDef = OpDef {
    name: "array._list_at",
    summary: "`array.at` of a list of structs: the struct at an index, counted from 0.",
    params: &[param("array"), param("index")],
    meaning: Meaning::Instantiate(at),
    examples: &[ex("[{x: 1}, {x: 2}][1]", "{x: 2}")],
    ..OF_LISTS
};

pub(crate) static SIZE: OpDef = OpDef {
    name: "array._list_size",
    summary: "`array.size` of a list of structs: the number of its elements.",
    meaning: Meaning::Instantiate(|g, args| {
        let found = g.qtype(args[0]);
        if found.element().is_none() {
            return refuse(0, format!("array.size expects an array, found {found}"));
        }
        let array = first(g, args[0])?;
        Ok(g.apply(id::ARRAY_SIZE, &[array])?)
    }),
    examples: &[ex("array.size([{x: 1}, {x: 2}])", "i64{2}")],
    ..OF_LISTS
};

fn select(g: &mut dyn Instantiation, args: &[NodeHandle]) -> NodeResult<ExpansionError> {
    let found = g.qtype(args[0]);
    if found.element().is_none() {
        return Err(of_lists("array.select", &found).into());
    }
    each(g, args[0], &mut |g, array, _| Ok(g.apply(id::ARRAY_SELECT, &[array, args[1]])?))
}

pub(crate) static SELECT: OpDef = OpDef {
    name: "array._select_list",
    summary: "`array.select` of a list: the elements where the mask `fltr` is present.",
    params: &[param("x"), param("fltr")],
    meaning: Meaning::Instantiate(select),
    examples: &[ex("array.select([{x: 1}, {x: 2}], [missing, present]).x", "[2]")],
    ..OF_LISTS
};
