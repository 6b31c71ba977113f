//! Columns that a model made as arrays: their memory becomes that of the arrays. Only texts and bytes are copied, and only
//! where another layout than views is asked for.

use crate::Error;
use arrow_array::builder::{GenericBinaryBuilder, GenericStringBuilder};
use arrow_array::{
    Array, ArrayRef, BinaryViewArray, BooleanArray, Date32Array, Float32Array, Float64Array, Int32Array, Int64Array,
    OffsetSizeTrait, StringViewArray, TimestampMicrosecondArray, UInt64Array,
};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer, ScalarBuffer};
use arrow_schema::DataType;
use cembra::{OutputColumn, OutputParts, QType, Scalar};
use std::sync::Arc;

/// The array of a column: texts as `Utf8View`, bytes as `BinaryView`, masks as `Boolean` without nulls, timestamps in
/// microseconds of UTC.
///
/// # Errors
/// The column is of a type that no array can have.
pub fn array(name: &str, column: OutputColumn) -> Result<ArrayRef, Error> {
    array_as(name, column, None)
}

/// The array of a column, of another type where that is only another layout.
///
/// # Errors
/// The column cannot be that.
pub fn array_as(name: &str, column: OutputColumn, wanted: Option<&DataType>) -> Result<ArrayRef, Error> {
    let found = column.qtype().clone();
    let refused = |wanted: String| Error::Output { name: name.to_owned(), found: found.clone(), wanted };
    let array = made(column).ok_or_else(|| refused("array".to_owned()))?;
    match wanted {
        Some(wanted) if wanted != array.data_type() => {
            relaid(&array, wanted).ok_or_else(|| refused(wanted.to_string()))
        }
        _ => Ok(array),
    }
}

fn made(column: OutputColumn) -> Option<ArrayRef> {
    let rows = column.rows();
    let (qtype, parts, presence): (QType, _, _) = column.into_parts();
    let scalar = qtype.scalar()?;
    let bits = |words: Vec<u64>| BooleanBuffer::new(Buffer::from_vec(words), 0, rows);
    let nulls = presence.map(bits).map(NullBuffer::new);
    Some(match (parts, scalar) {
        (OutputParts::Nothing, Scalar::Unit) => {
            let holds = nulls.map_or_else(|| BooleanBuffer::new_set(rows), NullBuffer::into_inner);
            Arc::new(BooleanArray::new(holds, None))
        }
        (OutputParts::Bits(words), _) => Arc::new(BooleanArray::new(bits(words), nulls)),
        (OutputParts::Numbers(words), scalar) => {
            let buffer = Buffer::from_vec(words);
            macro_rules! numbers {
                ($array:ident) => {
                    Arc::new($array::new(ScalarBuffer::new(buffer, 0, rows), nulls))
                };
            }
            match scalar {
                Scalar::Int32 => numbers!(Int32Array),
                Scalar::Int64 => numbers!(Int64Array),
                Scalar::UInt64 => numbers!(UInt64Array),
                Scalar::Float32 => numbers!(Float32Array),
                Scalar::Float64 | Scalar::WeakFloat => numbers!(Float64Array),
                Scalar::Date => numbers!(Date32Array),
                Scalar::Timestamp => {
                    let moments = TimestampMicrosecondArray::new(ScalarBuffer::new(buffer, 0, rows), nulls);
                    Arc::new(moments.with_timezone("UTC"))
                }
                Scalar::Unit | Scalar::Boolean | Scalar::Text | Scalar::Bytes => return None,
            }
        }
        (OutputParts::Strings(views, buffers), scalar) => {
            let buffers: Vec<Buffer> = buffers.into_iter().map(Buffer::from_vec).collect();
            let views = ScalarBuffer::from(views);
            // SAFETY: STRING-VIEW: views are of these buffers, and texts are UTF-8.
            unsafe {
                match scalar {
                    Scalar::Text => Arc::new(StringViewArray::new_unchecked(views, buffers, nulls)),
                    _ => Arc::new(BinaryViewArray::new_unchecked(views, buffers, nulls)),
                }
            }
        }
        _ => return None,
    })
}

/// The same strings in another layout; the same moments in another zone.
fn relaid(array: &ArrayRef, wanted: &DataType) -> Option<ArrayRef> {
    fn texts<O: OffsetSizeTrait>(array: &StringViewArray) -> ArrayRef {
        let mut builder = GenericStringBuilder::<O>::with_capacity(array.len(), array.total_buffer_bytes_used());
        array.iter().for_each(|text| builder.append_option(text));
        Arc::new(builder.finish())
    }
    fn bytes<O: OffsetSizeTrait>(array: &BinaryViewArray) -> ArrayRef {
        let mut builder = GenericBinaryBuilder::<O>::with_capacity(array.len(), array.total_buffer_bytes_used());
        array.iter().for_each(|bytes| builder.append_option(bytes));
        Arc::new(builder.finish())
    }
    let any = array.as_any();
    match (any.downcast_ref::<StringViewArray>(), any.downcast_ref::<BinaryViewArray>(), wanted) {
        (Some(array), _, DataType::Utf8) => Some(texts::<i32>(array)),
        (Some(array), _, DataType::LargeUtf8) => Some(texts::<i64>(array)),
        (_, Some(array), DataType::Binary) => Some(bytes::<i32>(array)),
        (_, Some(array), DataType::LargeBinary) => Some(bytes::<i64>(array)),
        (.., DataType::Timestamp(arrow_schema::TimeUnit::Microsecond, zone)) => {
            let moments = any.downcast_ref::<TimestampMicrosecondArray>()?;
            Some(Arc::new(moments.clone().with_timezone_opt(zone.clone())))
        }
        _ => None,
    }
}
