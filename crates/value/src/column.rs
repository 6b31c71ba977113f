//! Columns to which values are appended row by row. A column of structs has one column per field. A column of lists has
//! one column for the elements of all its lists, and the offset at which each list begins. So values are stored in
//! arrays, each with values of one scalar type.

use crate::{Array, ArrayBuilder, ScalarValue, Value};
use cembra_runtime::{Extent, QType, Scalar};

/// A column: the values of one data type, one value per row.
///
/// ```
/// use cembra_value::{Value, ValueColumn};
/// use cembra_runtime::QType;
///
/// let pair = QType::tuple([QType::INT32, QType::TEXT]);
/// let mut column = ValueColumn::new(&pair).unwrap();
/// column.push(&Value::Tuple([Value::from(1), Value::from("a")].into()));
/// column.push(&Value::Tuple([Value::from(2), Value::from("b")].into()));
/// let ValueColumn::Tuple(fields) = column else { panic!("a struct") };
/// let ValueColumn::Scalars(numbers) = &fields[0] else { panic!("numbers") };
/// assert_eq!(numbers.array().to_string(), "[1, 2]");
/// ```
#[derive(Debug)]
pub enum ValueColumn {
    /// A column of a scalar or optional type, as one array.
    Scalars(ArrayBuilder),
    /// A column of a tuple type, as one column per field.
    Tuple(Vec<ValueColumn>),
    /// A column of an optional struct.
    Optional {
        /// For each row, whether it has a struct: an array with a present unit for each row that has one.
        there: ArrayBuilder,
        /// The column of the structs of all rows. In rows without a struct, its fields have arbitrary values.
        of: Box<ValueColumn>,
    },
    /// A column of arrays, lists of structs or dictionaries.
    Lists {
        /// The offsets of the lists in `elements`: row `n` has the elements from `points[n]` up to `points[n + 1]`.
        points: Vec<i64>,
        /// For each row, whether it has a list: an array with a present unit for each row that has one. A row without a list has no elements.
        there: ArrayBuilder,
        /// The column of the elements of all lists, in the order of the rows.
        elements: Box<ValueColumn>,
    },
}

/// The most levels of tuples in the type of a column.
const MOST_NESTING: usize = 1_000;
/// The most fields in the type of a column, over all of its levels.
const MOST_FIELDS: usize = 64 << 20;

impl ValueColumn {
    /// Returns a column without rows for values of the type `qtype`. `None` if the type has values that are not data,
    /// such as functions, shapes and tensors.
    #[must_use]
    pub fn new(qtype: &QType) -> Option<ValueColumn> {
        // A type that was not read from a text may nest deeper than the stack allows.
        let most = Extent { fields: MOST_FIELDS, nesting: MOST_NESTING };
        let extent = qtype.extent(most);
        if extent.nesting > most.nesting || extent.fields > most.fields { None } else { ValueColumn::of(qtype) }
    }

    /// Returns an empty column. The nesting of the type must have been checked.
    fn of(qtype: &QType) -> Option<ValueColumn> {
        let units = || ArrayBuilder::new(Scalar::Unit, 0);
        let lists = |elements| ValueColumn::Lists { points: vec![0], there: units(), elements: Box::new(elements) };
        match qtype {
            QType::Scalar(scalar) | QType::Optional(scalar) => {
                Some(ValueColumn::Scalars(ArrayBuilder::new(*scalar, 0)))
            }
            QType::Array(_, scalar) => Some(lists(ValueColumn::Scalars(ArrayBuilder::new(*scalar, 0)))),
            QType::Tuple(_) if let Some(of) = qtype.as_optional_struct() => {
                Some(ValueColumn::Optional { there: units(), of: ValueColumn::of(of)?.into() })
            }
            QType::Tuple(_) if let Some(element) = qtype.element() => Some(lists(ValueColumn::of(element)?)),
            QType::Tuple(fields) => {
                Some(ValueColumn::Tuple(fields.iter().map(ValueColumn::of).collect::<Option<_>>()?))
            }
            _ => None,
        }
    }

    /// The bytes that one row of a column of type `qtype` takes, whether its value is present or missing. Elements of
    /// lists are not included. A string counts as its view (16 bytes), without its bytes in a buffer.
    ///
    /// ```
    /// use cembra_runtime::{QType, Scalar};
    /// use cembra_value::ValueColumn;
    ///
    /// let pair = QType::tuple([QType::Optional(Scalar::Int64), QType::TEXT]);
    /// assert_eq!(ValueColumn::row_bytes(&pair), 9 + 17);
    /// ```
    #[must_use]
    pub fn row_bytes(qtype: &QType) -> u64 {
        // A presence bit counts as a byte. Types nest only as deep as the text that spelled them.
        match qtype {
            QType::Scalar(scalar) | QType::Optional(scalar) => {
                u64::from(QType::Scalar(*scalar).layout().size).saturating_add(1)
            }
            QType::Tuple(_) if let Some(of) = qtype.as_optional_struct() => {
                ValueColumn::row_bytes(of).saturating_add(1)
            }
            QType::Tuple(fields) if qtype.element().is_none() => {
                fields.iter().map(ValueColumn::row_bytes).fold(0, u64::saturating_add)
            }
            // The offset of a list, and its presence.
            _ => 9,
        }
    }

    /// The bytes that all rows of the column take, including the elements of lists and the bytes of strings.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        match self {
            ValueColumn::Scalars(builder) => {
                let array = builder.array();
                // The memory of strings includes their views, but not their presence.
                let (each, strings) = match array.scalar().is_string() {
                    true => (1, array.memory_bytes() as u64),
                    false => (ValueColumn::row_bytes(&QType::Scalar(array.scalar())), 0),
                };
                strings.saturating_add(each * array.len() as u64)
            }
            ValueColumn::Tuple(fields) => fields.iter().map(ValueColumn::bytes).fold(0, u64::saturating_add),
            ValueColumn::Optional { there, of } => of.bytes().saturating_add(there.len() as u64),
            ValueColumn::Lists { there, elements, .. } => {
                elements.bytes().saturating_add((there.len() as u64).saturating_mul(9))
            }
        }
    }

    /// The number of rows in the column; `None` for a column of structs without fields.
    #[must_use]
    #[inline]
    pub fn rows(&self) -> Option<usize> {
        match self {
            ValueColumn::Scalars(array) => Some(array.len()),
            ValueColumn::Optional { there, .. } | ValueColumn::Lists { there, .. } => Some(there.len()),
            ValueColumn::Tuple(fields) => fields.iter().find_map(ValueColumn::rows),
        }
    }

    /// Appends a row with a value of the column's type. A value of another type is appended as missing.
    pub fn push(&mut self, value: &Value) {
        match (self, value) {
            (ValueColumn::Scalars(array), value) => array.push(value.as_scalar()),
            (ValueColumn::Tuple(fields), Value::Tuple(values)) if fields.len() == values.len() => {
                fields.iter_mut().zip(values.iter()).for_each(|(field, value)| field.push(value));
            }
            (ValueColumn::Optional { there, of }, value) if let Some(Some(inner)) = value.as_optional_struct() => {
                there.push(Some(&ScalarValue::Unit));
                of.push(inner);
            }
            (ValueColumn::Lists { points, there, elements }, value) if let Some(added) = list_len(value) => {
                elements.push_list(value);
                there.push(Some(&ScalarValue::Unit));
                points.push(points.last().map_or(0, |last| last.saturating_add_unsigned(added as u64)));
            }
            (column, _) => column.push_missing(),
        }
    }

    /// Appends the elements of a list value, which has an array where an element has a scalar.
    fn push_list(&mut self, list: &Value) {
        match (self, list) {
            (ValueColumn::Scalars(column), Value::Array(_, array)) => {
                (0..array.len()).for_each(|at| column.push_from(array, Some(at)));
            }
            (ValueColumn::Tuple(fields), Value::Tuple(members)) => {
                fields.iter_mut().zip(members.iter()).for_each(|(field, member)| field.push_list(member));
            }
            (ValueColumn::Optional { there, of }, Value::Tuple(members)) => {
                if let [Value::Array(_, has), inner] = &members[..] {
                    (0..has.len()).for_each(|at| there.push_from(has, Some(at)));
                    of.push_list(inner);
                }
            }
            _ => {}
        }
    }

    /// Converts a column with a single row to the value of that row. `qtype` must be the type that the column was made
    /// for. `None` if a value that the type requires is missing, such as a field of a missing struct in a list of
    /// optional structs.
    #[must_use]
    pub fn into_value(self, qtype: &QType) -> Option<Value> {
        match (self, qtype) {
            (ValueColumn::Scalars(array), QType::Scalar(_)) => array.array().get(0).map(Value::Scalar),
            (ValueColumn::Scalars(array), _) => Some(array.array().value(0)),
            (ValueColumn::Tuple(columns), QType::Tuple(fields)) => {
                let values = columns.into_iter().zip(fields.iter()).map(|(column, field)| column.into_value(field));
                Some(Value::Tuple(fields.with(values.collect::<Option<_>>()?)))
            }
            (ValueColumn::Optional { there, of }, _) => {
                let inner = qtype.as_optional_struct()?;
                let value = if there.array().is_present(0) { Some(of.into_value(inner)?) } else { None };
                Value::optional_struct(inner, value)
            }
            (ValueColumn::Lists { elements, .. }, QType::Array(kind, _)) => match *elements {
                ValueColumn::Scalars(array) => Some(Value::Array(*kind, array.finish().into())),
                _ => None,
            },
            (ValueColumn::Lists { elements, .. }, list) => {
                let mut arrays = Vec::new();
                elements.into_arrays(&mut arrays);
                Value::list_of_arrays(list, arrays)
            }
            _ => None,
        }
    }

    /// Appends the arrays of the elements to `arrays`, in the order of the type's fields.
    fn into_arrays(self, arrays: &mut Vec<Array>) {
        match self {
            ValueColumn::Scalars(array) => arrays.push(array.finish()),
            ValueColumn::Tuple(fields) => fields.into_iter().for_each(|field| field.into_arrays(arrays)),
            ValueColumn::Optional { there, of } => {
                arrays.push(there.finish());
                of.into_arrays(arrays);
            }
            // Elements of lists have no lists.
            ValueColumn::Lists { .. } => {}
        }
    }

    /// Appends a row whose value is missing: all of its fields are missing.
    pub fn push_missing(&mut self) {
        match self {
            ValueColumn::Scalars(array) => array.push(None),
            ValueColumn::Tuple(fields) => fields.iter_mut().for_each(ValueColumn::push_missing),
            ValueColumn::Optional { there, of } => {
                there.push(None);
                of.push_missing();
            }
            ValueColumn::Lists { points, there, .. } => {
                there.push(None);
                points.push(points.last().copied().unwrap_or(0));
            }
        }
    }

    /// Removes all rows after the first `rows`. A last row of which only some fields were appended is removed too.
    pub fn truncate(&mut self, rows: usize) {
        match self {
            ValueColumn::Scalars(array) => array.truncate(rows),
            ValueColumn::Tuple(fields) => fields.iter_mut().for_each(|field| field.truncate(rows)),
            ValueColumn::Optional { there, of } => {
                there.truncate(rows);
                of.truncate(rows);
            }
            ValueColumn::Lists { points, there, elements } => {
                points.truncate(rows.saturating_add(1));
                there.truncate(rows);
                elements.truncate(points.last().map_or(0, |last| *last as usize));
            }
        }
    }
}

/// The number of elements in a list, an array or a dictionary; `None` for other values.
fn list_len(value: &Value) -> Option<usize> {
    if let Value::Array(_, array) = value { Some(array.len()) } else { value.list_len() }
}
