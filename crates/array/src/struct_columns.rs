//! The columns into which a struct over many rows is divided: one column per scalar, and one column of lists per field of a
//! list of structs. The columns are in the order of the type's members, depth first. A dictionary is a list of its entries.

use cembra_runtime::{ArrayKind, QType};
use cembra_value::Promise;

/// The description of a column into which a struct type is divided.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StructColumn {
    /// The type of the column's values. A scalar inside an optional struct has an optional type.
    pub qtype: QType,
    /// The promise about the column's lists: `Full` if no element is missing.
    pub promise: Promise,
    /// The index of the first column of the list of structs that this column is a field of; `None` if the column is not such a field. In each row,
    /// all columns of a list have lists of the same size.
    pub first_list_column: Option<usize>,
    /// The index of the column with the presence of the optional struct that contains this scalar, if the scalar is present wherever the struct is
    /// present; else `None`.
    pub presence_column: Option<usize>,
}

/// The columns of a value of type `qtype`; a value that is not a struct is its own column. `None` for types that cannot be divided into columns: for
/// example, optional structs that contain an optional struct or a list, and lists of optional structs.
#[must_use]
pub fn struct_columns(qtype: &QType) -> Option<Vec<StructColumn>> {
    let mut parts = Vec::new();
    add(qtype, None, &mut parts)?;
    Some(parts)
}

/// The number of columns that a type takes, even if [`struct_columns`] returns `None` for it.
pub(crate) fn count(qtype: &QType) -> usize {
    // Types nest only as deep as the text that spelled them.
    match qtype {
        QType::Tuple(members) => members.iter().map(count).sum(),
        _ => 1,
    }
}

/// Appends the columns of a member of a struct. If `mask` is given, the member belongs to an optional struct, which is
/// present in the rows in which the column `mask` is present.
fn add(qtype: &QType, mask: Option<usize>, parts: &mut Vec<StructColumn>) -> Option<()> {
    let part = |qtype, presence_column| StructColumn {
        qtype,
        promise: Promise::Nothing,
        first_list_column: None,
        presence_column,
    };
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

/// Appends the columns of a list with elements of the type `element`. `list` is the index of the list's first column.
fn add_fields(element: &QType, list: usize, parts: &mut Vec<StructColumn>) -> Option<()> {
    match element {
        QType::Scalar(scalar) | QType::Optional(scalar) => {
            let promise = if element.is_optional() { Promise::Nothing } else { Promise::Full };
            let qtype = QType::Array(ArrayKind::Dense, *scalar);
            parts.push(StructColumn { qtype, promise, first_list_column: Some(list), presence_column: None });
            Some(())
        }
        _ => element.as_tuple()?.iter().try_for_each(|field| add_fields(field, list, parts)),
    }
}
