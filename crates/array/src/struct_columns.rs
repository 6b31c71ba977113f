//! The columns that a struct of many rows is made of: one for each scalar of it, and one of lists for each field of a list of structs. They
//! are in the order in which the members of the type come, however deep. A dictionary is a list of its entries.

use cembra_runtime::{ArrayKind, QType};
use cembra_value::Promise;

/// A column of a struct.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StructColumn {
    /// The type of its values. A scalar of a struct that may be missing is optional, for where that is.
    pub qtype: QType,
    /// That its lists have all elements.
    pub promise: Promise,
    /// Of a field of a list of structs, the first column of that list: in each row their lists are of one size.
    pub list: Option<usize>,
    /// Of a scalar that is there wherever its struct is, the column that says where that is.
    pub wherever: Option<usize>,
}

/// The columns of a value of this type: itself, if it is no struct. None for types that have no such columns: structs that may be missing and have
/// structs that may be missing, or are elements of a list.
#[must_use]
pub fn struct_columns(qtype: &QType) -> Option<Vec<StructColumn>> {
    let mut parts = Vec::new();
    add(qtype, None, &mut parts)?;
    Some(parts)
}

/// How many columns a type has, whether or not it is taken as such.
pub(crate) fn count(qtype: &QType) -> usize {
    // Types nest only as deep as the text that spelled them.
    match qtype {
        QType::Tuple(members) => members.iter().map(count).sum(),
        _ => 1,
    }
}

/// Adds the columns of a member, of a struct that is there where the column `mask` says.
fn add(qtype: &QType, mask: Option<usize>, parts: &mut Vec<StructColumn>) -> Option<()> {
    let part = |qtype, wherever| StructColumn { qtype, promise: Promise::Nothing, list: None, wherever };
    match qtype {
        QType::Scalar(_) if mask.is_some() => parts.push(part(qtype.to_optional(), mask)),
        QType::Scalar(_) | QType::Optional(_) => parts.push(part(qtype.clone(), None)),
        QType::Array(..) if mask.is_none() => parts.push(part(qtype.clone(), None)),
        QType::Tuple(_) if let Some(of) = qtype.as_optional_struct() => {
            if mask.is_some() {
                return None;
            }
            let has = parts.len();
            parts.push(part(QType::MASK, None));
            add(of, Some(has), parts)?;
        }
        QType::Tuple(_) if let Some(element) = qtype.element() => {
            if mask.is_some() {
                return None;
            }
            add_fields(element, parts.len(), parts)?;
        }
        QType::Tuple(fields) => fields.iter().try_for_each(|field| add(field, mask, parts))?,
        _ => return None,
    }
    Some(())
}

/// Adds the columns of a list of such elements, whose first column is `list`.
fn add_fields(element: &QType, list: usize, parts: &mut Vec<StructColumn>) -> Option<()> {
    match element {
        QType::Scalar(scalar) | QType::Optional(scalar) => {
            let promise = if element.is_optional() { Promise::Nothing } else { Promise::Full };
            let qtype = QType::Array(ArrayKind::Dense, *scalar);
            parts.push(StructColumn { qtype, promise, list: Some(list), wherever: None });
            Some(())
        }
        _ => element.as_tuple()?.iter().try_for_each(|field| add_fields(field, list, parts)),
    }
}
