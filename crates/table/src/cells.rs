//! Values that models have, in Arrow arrays: access to single values of an array, and builders for arrays. The arrays have the Arrow types that
//! `types` defines.

use super::types;
use arrow_array::builder::{
    ArrayBuilder, BinaryViewBuilder, BooleanBuilder, Date32Builder, DurationMicrosecondBuilder, Float32Builder,
    Float64Builder, Int32Builder, Int64Builder, StringViewBuilder, TimestampMicrosecondBuilder, UInt64Builder,
};
use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, DurationMicrosecondType, Float32Type, Float64Type, Int32Type, Int64Type, TimestampMicrosecondType,
    UInt64Type,
};
use arrow_array::{
    Array, ArrayRef, BinaryViewArray, BooleanArray, LargeListArray, StringViewArray, StructArray, new_null_array,
};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer, OffsetBuffer};
use arrow_schema::DataType;
use cembra_arrow::Strings;
use cembra_runtime::{ArrayKind, Fields, QType, Scalar};
use cembra_value::{ScalarValue, Value, ValueColumn, ValueRef};
use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

/// Read access to the values of an Arrow array. The variant depends on the type of the values: scalars, tuples, arrays or structs.
pub enum Cells<'a> {
    /// The array has values of a scalar or optional type.
    Scalars {
        /// Access to the scalars of the array.
        scalars: Scalars<'a>,
        /// True if the scalars may be missing.
        optional: bool,
    },
    /// The array has tuples. The payload is the access to the values of each field.
    Tuple(Fields<Cells<'a>>),
    /// The Arrow array has a model array in each row, stored as a list.
    Arrays(Lists<'a>, ArrayKind),
    /// The array has structs that may be missing. The payload is their type, the struct array, and the access to the values of its fields.
    Optional(QType, &'a StructArray, Box<Cells<'a>>),
    /// The array has lists of structs, or dictionaries. The payload is their type, the list array, and the access to the elements of the lists.
    Structs(QType, &'a LargeListArray, Box<Cells<'a>>),
}

/// Read access to the lists of an array column, some of which may be missing.
pub struct Lists<'a> {
    list: &'a LargeListArray,
    elements: Scalars<'a>,
}

impl<'a> Lists<'a> {
    /// Access to the lists of an array; `None` if the array does not have the Arrow type for `scalar`.
    pub fn of(array: &'a dyn Array, scalar: Scalar) -> Option<Lists<'a>> {
        let list = array.as_list_opt::<i64>()?;
        Some(Lists { list, elements: Scalars::of(list.values().as_ref(), scalar)? })
    }

    /// The elements of the list in `row`; `None` if the list is missing.
    pub fn at(&self, row: usize) -> Option<impl ExactSizeIterator<Item = ValueRef<'a>> + '_> {
        let ends = self.list.offsets();
        let at = |row: usize| usize::try_from(ends[row]).unwrap_or(0);
        self.list.is_valid(row).then(|| (at(row)..at(row + 1)).map(|element| self.elements.at(element)))
    }
}

/// Read access to the scalars of an Arrow array, some of which may be missing.
pub struct Scalars<'a> {
    /// The type of the array's scalars.
    pub scalar: Scalar,
    array: &'a dyn Array,
    lane: TypedValues<'a>,
}

/// The typed values of a scalar array.
enum TypedValues<'a> {
    Flag(&'a BooleanArray),
    Int32(&'a [i32]),
    Int64(&'a [i64]),
    UInt64(&'a [u64]),
    Float32(&'a [f32]),
    Float64(&'a [f64]),
    Text(&'a StringViewArray),
    Bytes(&'a BinaryViewArray),
}

impl<'a> Cells<'a> {
    /// Access to the values of an array; `None` if the array does not have the Arrow type for `qtype`.
    pub fn of(array: &'a dyn Array, qtype: &QType) -> Option<Cells<'a>> {
        // Tuple types nest only as deep as the parser allows, so this recursion is bounded.
        match qtype {
            QType::Scalar(scalar) | QType::Optional(scalar) => {
                Some(Cells::Scalars { scalars: Scalars::of(array, *scalar)?, optional: qtype.is_optional() })
            }
            QType::Tuple(_) if let Some(of) = qtype.as_optional_struct() => {
                Some(Cells::Optional(of.clone(), array.as_struct_opt()?, Cells::of(array, of)?.into()))
            }
            QType::Tuple(_) if qtype.element().is_some() => {
                let (element, list) = (qtype.element()?, array.as_list_opt::<i64>()?);
                Some(Cells::Structs(qtype.clone(), list, Cells::of(list.values().as_ref(), element)?.into()))
            }
            QType::Tuple(fields) => {
                let columns = array.as_struct_opt()?.columns();
                let cells = columns.iter().zip(fields.iter()).map(|(column, qtype)| Cells::of(column.as_ref(), qtype));
                let cells = cells.collect::<Option<Vec<_>>>().filter(|cells| cells.len() == fields.len())?;
                Some(Cells::Tuple(fields.with(cells)))
            }
            QType::Array(kind, scalar) => Some(Cells::Arrays(Lists::of(array, *scalar)?, *kind)),
            _ => None,
        }
    }

    /// The value of the array in `row`.
    pub fn value(&self, row: usize) -> Value {
        match self {
            Cells::Tuple(fields) => Value::Tuple(fields.map(|field| field.value(row))),
            Cells::Optional(of, array, cells) => {
                let found = array.is_valid(row).then(|| cells.value(row));
                Value::optional_struct(of, found).unwrap_or(Value::Nothing)
            }
            Cells::Structs(qtype, list, cells) => {
                let ends = list.offsets();
                let at = |row: usize| usize::try_from(ends[row]).unwrap_or(0);
                if list.is_null(row) {
                    return Value::Nothing;
                }
                let mut arrays = Vec::new();
                cells.add_arrays(at(row)..at(row + 1), None, &mut arrays);
                Value::list_of_arrays(qtype, arrays).unwrap_or(Value::Nothing)
            }
            Cells::Arrays(lists, kind) => {
                let scalar = lists.elements.scalar;
                let Some(elements) = lists.at(row) else { return Value::Nothing };
                let qtype = QType::Optional(scalar);
                let elements = elements.map(|one| one.to_value(&qtype).and_then(|one| one.as_scalar().cloned()));
                Value::Array(*kind, cembra_value::Array::from_scalars(scalar, elements).into())
            }
            Cells::Scalars { scalars, optional } => {
                let value = scalars.at(row).to_value(&QType::of(scalars.scalar, *optional));
                value.unwrap_or(Value::Missing(scalars.scalar))
            }
        }
    }

    /// Appends one array per scalar of the type, with its values in `rows`. If a struct is missing, its scalars that are not optional are zero.
    fn add_arrays(&self, rows: Range<usize>, there: Option<&NullBuffer>, arrays: &mut Vec<cembra_value::Array>) {
        match self {
            Cells::Tuple(fields) => fields.iter().for_each(|field| field.add_arrays(rows.clone(), there, arrays)),
            Cells::Optional(_, structs, of) => {
                let has = rows.clone().map(|row| structs.is_valid(row).then_some(ScalarValue::Unit));
                arrays.push(cembra_value::Array::from_scalars(Scalar::Unit, has));
                of.add_arrays(rows, structs.nulls(), arrays);
            }
            Cells::Scalars { scalars, optional } => {
                let mut made = cembra_value::ArrayBuilder::new(scalars.scalar, rows.len());
                let zero = (!optional).then(|| ScalarValue::zero(scalars.scalar));
                for row in rows {
                    match scalars.at(row) {
                        _ if there.is_some_and(|nulls| nulls.is_null(row)) => made.push(zero.as_ref()),
                        ValueRef::Missing => made.push(zero.as_ref()),
                        ValueRef::Float64(number) => made.push_bits(Some(number.to_bits())),
                        ValueRef::Int64(number) => made.push_bits(Some(number.cast_unsigned())),
                        ValueRef::Text(text) => made.push_text(Some(&text)),
                        other => {
                            let value = other.to_value(&QType::Scalar(scalars.scalar));
                            made.push(value.as_ref().and_then(Value::as_scalar));
                        }
                    }
                }
                arrays.push(made.finish());
            }
            // Elements of lists have no lists in them.
            Cells::Arrays(..) | Cells::Structs(..) => {}
        }
    }
}

impl<'a> Scalars<'a> {
    /// Access to the scalars of an array; `None` if the array does not have the Arrow type for `scalar`.
    pub fn of(array: &'a dyn Array, scalar: Scalar) -> Option<Scalars<'a>> {
        if *array.data_type() != types::of_scalar(scalar) {
            return None;
        }
        let lane = match scalar {
            Scalar::Unit | Scalar::Boolean => TypedValues::Flag(array.as_boolean_opt()?),
            Scalar::Int32 => TypedValues::Int32(array.as_primitive_opt::<Int32Type>()?.values()),
            Scalar::Date => TypedValues::Int32(array.as_primitive_opt::<Date32Type>()?.values()),
            Scalar::Int64 => TypedValues::Int64(array.as_primitive_opt::<Int64Type>()?.values()),
            Scalar::Timestamp => TypedValues::Int64(array.as_primitive_opt::<TimestampMicrosecondType>()?.values()),
            Scalar::Duration => TypedValues::Int64(array.as_primitive_opt::<DurationMicrosecondType>()?.values()),
            Scalar::UInt64 => TypedValues::UInt64(array.as_primitive_opt::<UInt64Type>()?.values()),
            Scalar::Float32 => TypedValues::Float32(array.as_primitive_opt::<Float32Type>()?.values()),
            Scalar::Float64 | Scalar::WeakFloat => {
                TypedValues::Float64(array.as_primitive_opt::<Float64Type>()?.values())
            }
            Scalar::Text => TypedValues::Text(array.as_string_view_opt()?),
            Scalar::Bytes => TypedValues::Bytes(array.as_binary_view_opt()?),
        };
        Some(Scalars { scalar, array, lane })
    }

    /// The scalar in `row`, its text borrowed, or `ValueRef::Missing`.
    #[inline]
    pub fn at(&self, row: usize) -> ValueRef<'a> {
        if self.array.is_null(row) {
            return ValueRef::Missing;
        }
        match (&self.lane, self.scalar) {
            (TypedValues::Flag(_), Scalar::Unit) => ValueRef::Unit,
            (TypedValues::Flag(array), _) => ValueRef::Boolean(array.value(row)),
            (TypedValues::Int32(values), Scalar::Int32) => ValueRef::Int32(values[row]),
            (TypedValues::Int32(values), scalar) => ValueRef::from_bits(scalar, u64::from(values[row].cast_unsigned())),
            (TypedValues::Int64(values), Scalar::Int64) => ValueRef::Int64(values[row]),
            (TypedValues::Int64(values), scalar) => ValueRef::from_bits(scalar, values[row].cast_unsigned()),
            (TypedValues::UInt64(values), _) => ValueRef::UInt64(values[row]),
            (TypedValues::Float32(values), _) => ValueRef::Float32(values[row]),
            (TypedValues::Float64(values), _) => ValueRef::Float64(values[row]),
            (TypedValues::Text(array), _) => ValueRef::Text(Cow::Borrowed(array.value(row))),
            (TypedValues::Bytes(array), _) => ValueRef::Bytes(Cow::Borrowed(array.value(row))),
        }
    }
}

/// A builder for an Arrow array of scalars, with a variant for each Arrow type.
pub enum ScalarBuilder {
    /// The builder for units and booleans.
    Flag(BooleanBuilder),
    /// The builder for integers of 32 bits.
    Int32(Int32Builder),
    /// The builder for dates.
    Date(Date32Builder),
    /// The builder for signed integers of 64 bits.
    Int64(Int64Builder),
    /// The builder for timestamps.
    Timestamp(TimestampMicrosecondBuilder),
    /// The builder for durations.
    Duration(DurationMicrosecondBuilder),
    /// The builder for unsigned integers of 64 bits.
    UInt64(UInt64Builder),
    /// The builder for floats of 32 bits.
    Float32(Float32Builder),
    /// The builder for floats of 64 bits, weak floats included.
    Float64(Float64Builder),
    /// The builder for UTF-8 texts.
    Text(StringViewBuilder),
    /// The builder for byte strings.
    Bytes(BinaryViewBuilder),
}

/// Converts `column`, whose values have the type `qtype`, to an Arrow array of `rows` rows.
pub fn array_of_column(column: ValueColumn, qtype: &QType, rows: usize) -> ArrayRef {
    let nulls = |there: &cembra_value::Array| {
        let words = there.presence().filter(|_| there.present_count() < there.len())?;
        Some(NullBuffer::new(BooleanBuffer::new(Buffer::from_slice_ref(words), 0, there.len())))
    };
    // Types nest only as deep as the text that spelled them.
    match (column, qtype) {
        (ValueColumn::Scalars(scalars), _) => {
            let array = scalars.finish();
            let (scalar, len) = (array.scalar(), array.len());
            let made = cembra_arrow::from_model_with(array, Strings::Views, &cembra::doors::OutputRoom::of(u64::MAX));
            let made =
                made.ok().and_then(|made| if scalar == Scalar::Unit { masks_as_nulls(&made) } else { Some(made) });
            made.unwrap_or_else(|| new_null_array(&types::of_scalar(scalar), len))
        }
        (ValueColumn::Optional { there, of }, _) => {
            // Where a struct is missing, so are its fields.
            let inner = qtype.as_optional_struct().map(types::all_optional).unwrap_or_else(|| qtype.clone());
            with_nulls(&array_of_column(*of, &inner, rows), nulls(there.array()))
        }
        (ValueColumn::Lists { points, there, elements }, _) => {
            let count = points.last().map_or(0, |last| usize::try_from(*last).unwrap_or(0));
            let ends = OffsetBuffer::new(points.into());
            let (field, of) = match qtype {
                QType::Array(_, scalar) => (Some(types::element(*scalar)), QType::Optional(*scalar)),
                _ => (types::element_of(qtype), qtype.element().cloned().unwrap_or(QType::Nothing)),
            };
            let elements = array_of_column(*elements, &of, count);
            let field =
                field.unwrap_or_else(|| arrow_schema::Field::new_list_field(elements.data_type().clone(), true));
            let field = Arc::new(field);
            let lists = LargeListArray::try_new(field.clone(), ends, elements, nulls(there.array()));
            lists.map_or_else(|_| new_null_array(&DataType::LargeList(field), rows), |lists| Arc::new(lists))
        }
        (ValueColumn::Tuple(columns), _) => {
            let fields = qtype.as_tuple().map(|fields| fields.iter()).into_iter().flatten();
            let arrays = columns.into_iter().zip(fields).map(|(column, of)| array_of_column(column, of, rows));
            tuple(qtype, arrays.collect(), rows, false)
        }
    }
}

/// Returns an Arrow array with `value` as its only element; `None` if the value cannot be stored as data.
pub fn array_of(value: &Value) -> Option<ArrayRef> {
    let qtype = value.qtype();
    let mut column = ValueColumn::new(&qtype)?;
    column.push(value);
    Some(array_of_column(column, &qtype, 1))
}

/// Makes a struct array for the tuple type `qtype` from the arrays of its fields. If `tolerant` is true, every field may be
/// missing.
pub fn tuple(qtype: &QType, arrays: Vec<ArrayRef>, rows: usize, tolerant: bool) -> ArrayRef {
    let QType::Tuple(types) = qtype else { return Arc::new(StructArray::new_empty_fields(rows, None)) };
    if arrays.is_empty() {
        return Arc::new(StructArray::new_empty_fields(rows, None));
    }
    // An invalid value may be missing in its array before it is reported.
    let fields = arrays.iter().enumerate().map(|(at, array)| {
        let nullable = tolerant || types::may_be_missing(&types[at]) || array.null_count() > 0;
        arrow_schema::Field::new(&*types.label(at), array.data_type().clone(), nullable)
    });
    Arc::new(StructArray::new(fields.collect(), arrays, None))
}

/// Converts an array of booleans to the Arrow array that represents values of type unit in results: true (a present
/// unit) stays true, false (a missing unit) becomes null. `None` if `masks` is not an array of booleans.
pub fn masks_as_nulls(masks: &ArrayRef) -> Option<ArrayRef> {
    let absent = BooleanArray::new(!masks.as_boolean_opt()?.values(), None);
    arrow_select::nullif::nullif(masks, &absent).ok()
}

/// Returns the struct array `structs` with `nulls` as its validity. An array of another type is returned unchanged.
pub fn with_nulls(structs: &ArrayRef, nulls: Option<NullBuffer>) -> ArrayRef {
    let Some(found) = structs.as_struct_opt() else { return structs.clone() };
    let (fields, columns, _) = found.clone().into_parts();
    if columns.is_empty() {
        return Arc::new(StructArray::new_empty_fields(found.len(), nulls));
    }
    match StructArray::try_new(fields, columns, nulls) {
        Ok(made) => Arc::new(made),
        Err(_) => structs.clone(),
    }
}

/// Runs an expression on the builder of a column, whatever its type.
macro_rules! with_builder {
    ($column:expr, $builder:ident => $result:expr) => {
        match $column {
            ScalarBuilder::Flag($builder) => $result,
            ScalarBuilder::Int32($builder) => $result,
            ScalarBuilder::Date($builder) => $result,
            ScalarBuilder::Int64($builder) => $result,
            ScalarBuilder::Timestamp($builder) => $result,
            ScalarBuilder::Duration($builder) => $result,
            ScalarBuilder::UInt64($builder) => $result,
            ScalarBuilder::Float32($builder) => $result,
            ScalarBuilder::Float64($builder) => $result,
            ScalarBuilder::Text($builder) => $result,
            ScalarBuilder::Bytes($builder) => $result,
        }
    };
}

impl ScalarBuilder {
    /// A builder for values of type `scalar`, with capacity for `rows` rows.
    pub fn new(scalar: Scalar, rows: usize) -> ScalarBuilder {
        match scalar {
            Scalar::Unit | Scalar::Boolean => ScalarBuilder::Flag(BooleanBuilder::with_capacity(rows)),
            Scalar::Int32 => ScalarBuilder::Int32(Int32Builder::with_capacity(rows)),
            Scalar::Date => ScalarBuilder::Date(Date32Builder::with_capacity(rows)),
            Scalar::Int64 => ScalarBuilder::Int64(Int64Builder::with_capacity(rows)),
            Scalar::Timestamp => {
                let builder = TimestampMicrosecondBuilder::with_capacity(rows);
                ScalarBuilder::Timestamp(builder.with_data_type(types::of_scalar(scalar)))
            }
            Scalar::Duration => ScalarBuilder::Duration(DurationMicrosecondBuilder::with_capacity(rows)),
            Scalar::UInt64 => ScalarBuilder::UInt64(UInt64Builder::with_capacity(rows)),
            Scalar::Float32 => ScalarBuilder::Float32(Float32Builder::with_capacity(rows)),
            Scalar::Float64 | Scalar::WeakFloat => ScalarBuilder::Float64(Float64Builder::with_capacity(rows)),
            Scalar::Text => ScalarBuilder::Text(StringViewBuilder::with_capacity(rows)),
            Scalar::Bytes => ScalarBuilder::Bytes(BinaryViewBuilder::with_capacity(rows)),
        }
    }

    /// Appends `value`, which must have the builder's type; `None` appends a missing value.
    pub fn push(&mut self, value: Option<&ScalarValue>) {
        let Some(value) = value else {
            self.push_missing();
            return;
        };
        match (self, value) {
            (ScalarBuilder::Text(builder), ScalarValue::Text(text)) => builder.append_value(&**text),
            (ScalarBuilder::Bytes(builder), ScalarValue::Bytes(bytes)) => builder.append_value(&**bytes),
            (ScalarBuilder::Flag(builder), ScalarValue::Unit) => builder.append_value(true),
            (ScalarBuilder::Flag(builder), ScalarValue::Boolean(flag)) => builder.append_value(*flag),
            (ScalarBuilder::Float64(builder), ScalarValue::Float64(x) | ScalarValue::WeakFloat(x)) => {
                builder.append_value(*x);
            }
            (ScalarBuilder::Float32(builder), ScalarValue::Float32(x)) => builder.append_value(*x),
            (ScalarBuilder::UInt64(builder), value) => builder.append_value(value.bits()),
            (ScalarBuilder::Int64(builder), value) => builder.append_value(value.bits().cast_signed()),
            (ScalarBuilder::Timestamp(builder), value) => builder.append_value(value.bits().cast_signed()),
            (ScalarBuilder::Duration(builder), value) => builder.append_value(value.bits().cast_signed()),
            (ScalarBuilder::Int32(builder), value) => builder.append_value((value.bits() as u32).cast_signed()),
            (ScalarBuilder::Date(builder), value) => builder.append_value((value.bits() as u32).cast_signed()),
            // A value of another type: callers promise that there is none.
            (other, _) => other.push_missing(),
        }
    }

    /// Appends a missing value to the array.
    pub fn push_missing(&mut self) {
        with_builder!(self, builder => builder.append_null());
    }

    /// The number of values appended so far.
    #[expect(
        clippy::len_without_is_empty,
        reason = "no caller needs to know whether a column under construction is empty"
    )]
    pub fn len(&self) -> usize {
        with_builder!(self, builder => builder.len())
    }

    /// Returns the array of the appended values, and empties the builder.
    pub fn finish(&mut self) -> ArrayRef {
        with_builder!(self, builder => Arc::new(builder.finish()))
    }
}
