//! Conversion of a model's output columns to Arrow arrays. The arrays take over the memory of the columns; only texts and bytes are copied,
//! unless views are requested.

use crate::schema::element;
use crate::structs::array_of_structs;
use crate::{Error, Strings};
use arrow_array::types::{
    ArrowPrimitiveType, ByteViewType, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type,
    UInt64Type,
};
use arrow_array::{
    Array, ArrayRef, BinaryViewArray, BooleanArray, Date32Array, DictionaryArray, DurationMicrosecondArray,
    FixedSizeListArray, Float32Array, Float64Array, GenericBinaryArray, GenericByteViewArray, GenericStringArray,
    Int32Array, Int64Array, LargeListArray, ListArray, OffsetSizeTrait, PrimitiveArray, StringViewArray,
    TimestampMicrosecondArray, UInt64Array, new_null_array,
};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::DataType;
use cembra::columns::{OutputColumn, column_bytes};
use cembra::doors::{KeyType, OutputParts, OutputRoom};
use cembra::values::Words;
use cembra::{Limits, QType, Scalar};
use std::collections::HashMap;
use std::sync::Arc;

/// Converts the output column `column` to an Arrow array: texts to `Utf8`, bytes to `Binary`, masks to `Boolean` without nulls, timestamps
/// to microseconds in UTC, lists to `LargeList`, structs to `Struct`. The column's strings and their copy may take at most `array_bytes` of
/// `Limits::default()`.
///
/// # Errors
/// If no array can have the column's type, or the strings exceed the limit.
pub fn array(name: &str, column: OutputColumn) -> Result<ArrayRef, Error> {
    let room = OutputRoom::of(Limits::default().array_bytes).beside(std::slice::from_ref(&column));
    array_with(name, column, Strings::Plain, &room)
}

/// Converts the output column `column` to an Arrow array, with texts and bytes in the layout `strings`. `room` is the
/// budget of bytes: copies take from it, and memory that is freed after a copy is given back.
///
/// # Errors
/// If no array can have the column's type, or `room` is too small.
pub fn array_with(name: &str, column: OutputColumn, strings: Strings, room: &OutputRoom) -> Result<ArrayRef, Error> {
    counted(name, column, None, strings, room)
}

/// Converts an output column to an Arrow array of type `wanted`, which may differ from the default type in its layout
/// only; `None` means the default type. `room` is the budget of bytes: copies take from it, and memory that is freed
/// after a copy is given back.
///
/// # Errors
/// If the column cannot have the type, or `room` is too small.
pub fn array_as(
    name: &str,
    column: OutputColumn,
    wanted: Option<&DataType>,
    room: &OutputRoom,
) -> Result<ArrayRef, Error> {
    counted(name, column, wanted, Strings::Plain, room)
}

/// Converts an output column to an Arrow array. If the column's strings were copied, gives their bytes back to `room`,
/// the limit on memory.
fn counted(
    name: &str,
    column: OutputColumn,
    wanted: Option<&DataType>,
    layout: Strings,
    room: &OutputRoom,
) -> Result<ArrayRef, Error> {
    if column.qtype().scalar().is_none() && column.lists().is_none() {
        if column.structs().is_none() {
            let values = (0..column.rows()).filter_map(|row| column.value(row));
            room.claim(values.map(|value| column_bytes(&value)).fold(0, u64::saturating_add))?;
        }
        return structs(name, column.with_structs(), wanted, layout, room);
    }
    let held = column.string_bytes();
    let made = made_as(name, column, wanted, layout, room)?;
    let mut of = made.data_type();
    while let DataType::LargeList(inner) | DataType::List(inner) | DataType::FixedSizeList(inner, _) = of {
        of = inner.data_type();
    }
    if let DataType::Dictionary(_, values) = of {
        of = values;
    }
    if !matches!(of, DataType::Utf8View | DataType::BinaryView) {
        room.give_back(held);
    }
    Ok(made)
}

/// Converts a column, except one of structs, to an Arrow array of type `wanted`; `None` means the default type, with
/// strings in the layout `layout`.
fn made_as(
    name: &str,
    column: OutputColumn,
    wanted: Option<&DataType>,
    layout: Strings,
    room: &OutputRoom,
) -> Result<ArrayRef, Error> {
    let found = column.qtype().clone();
    let refused = |wanted: String| refusal(name, &found, wanted);
    if let Some(wanted @ DataType::Dictionary(keys, values)) = wanted {
        // Keys of another type need a new numbering of the strings.
        let is_kept = column.key_type().is_some_and(|found| is_of(found, keys));
        let column = if is_kept { column } else { column.spread() };
        return dictionary(column, keys, values, room)?.ok_or_else(|| refused(wanted.to_string()));
    }
    if column.lists().is_some() {
        return lists(name, column, wanted, layout, room);
    }
    let array = made(column.spread(), room)?.ok_or_else(|| refused("array".to_owned()))?;
    match wanted {
        Some(wanted) if wanted != array.data_type() => {
            relaid(&array, wanted, room)?.ok_or_else(|| refused(wanted.to_string()))
        }
        Some(_) => Ok(array),
        None => laid_out(array, layout, room)?.ok_or_else(|| refused("array".to_owned())),
    }
}

/// The error that an output of type `found` cannot have the type `wanted`.
fn refusal(name: &str, found: &QType, wanted: impl ToString) -> Error {
    Error::Output { name: name.to_owned(), found: found.clone(), wanted: wanted.to_string() }
}

/// The validity of a column of `rows` rows, from one bit per row, set where the value is present.
fn null_buffer(words: Vec<u64>, rows: usize) -> NullBuffer {
    NullBuffer::new(BooleanBuffer::new(Buffer::from_vec(words), 0, rows))
}

/// Converts a column of structs, or of lists of structs, to an Arrow array. Each scalar field becomes an array of its
/// own first.
fn structs(
    name: &str,
    column: OutputColumn,
    wanted: Option<&DataType>,
    layout: Strings,
    room: &OutputRoom,
) -> Result<ArrayRef, Error> {
    let (found, rows) = (column.qtype().clone(), column.rows());
    let (_, parts, presence) = column.into_parts();
    let OutputParts::Structs(columns) = parts else { return Err(refusal(name, &found, "array")) };
    let nulls = presence.map(|words| null_buffer(words, rows));
    let arrays = columns.into_iter().map(|column| counted(name, column, None, layout, room));
    let mut arrays = arrays.collect::<Result<Vec<_>, _>>()?.into_iter();
    let made = array_of_structs(&found, nulls, &mut || arrays.next()).ok_or_else(|| refusal(name, &found, "array"))?;
    match wanted {
        Some(wanted) if wanted != made.data_type() => Err(refusal(name, &found, wanted)),
        _ => Ok(made),
    }
}

/// Converts a column of lists to an Arrow array: a `LargeList`, or the kind of list in `wanted`.
fn lists(
    name: &str,
    column: OutputColumn,
    wanted: Option<&DataType>,
    layout: Strings,
    room: &OutputRoom,
) -> Result<ArrayRef, Error> {
    let (found, rows) = (column.qtype().clone(), column.rows());
    let refused = |wanted: String| refusal(name, &found, wanted);
    let (_, parts, presence) = column.into_parts();
    let OutputParts::Lists(offsets, elements) = parts else { return Err(refused("array".to_owned())) };
    let nulls = presence.map(|words| null_buffer(words, rows));
    let of = match wanted {
        Some(DataType::List(of) | DataType::LargeList(of) | DataType::FixedSizeList(of, _)) => Some(of.clone()),
        Some(other) => return Err(refused(other.to_string())),
        None => None,
    };
    let elements = made_as(name, *elements, of.as_ref().map(|of| of.data_type()), layout, room)?;
    let of = of.unwrap_or_else(|| element(elements.data_type().clone()));
    let made: Result<ArrayRef, _> = match wanted {
        Some(wanted @ DataType::List(_)) => {
            let offsets: Result<Vec<i32>, _> = offsets.into_iter().map(i32::try_from).collect();
            let offsets = OffsetBuffer::new(offsets.map_err(|_| refused(wanted.to_string()))?.into());
            ListArray::try_new(of, offsets, elements, nulls).map(|made| Arc::new(made) as ArrayRef)
        }
        Some(wanted @ DataType::FixedSizeList(_, size)) => {
            // A row that failed has no elements.
            if offsets.windows(2).any(|ends| ends[1] - ends[0] != i64::from(*size)) {
                return Err(refused(wanted.to_string()));
            }
            FixedSizeListArray::try_new_with_length(of, *size, elements, nulls, rows)
                .map(|made| Arc::new(made) as ArrayRef)
        }
        _ => LargeListArray::try_new(of, OffsetBuffer::new(offsets.into()), elements, nulls)
            .map(|made| Arc::new(made) as ArrayRef),
    };
    Ok(made?)
}

/// Converts a column of strings to an Arrow dictionary with the given types of keys and values. A column that is a
/// dictionary keeps its keys; the strings of any other column are numbered in the order in which rows first have them.
/// `None` if the column has no strings, if the key type is too small for the number of strings, or if the strings
/// cannot have the type `values`.
fn dictionary(
    column: OutputColumn,
    keys: &DataType,
    values: &DataType,
    room: &OutputRoom,
) -> Result<Option<ArrayRef>, Error> {
    let rows = column.rows();
    let (qtype, parts, presence) = column.into_parts();
    let Some(scalar) = qtype.scalar() else { return Ok(None) };
    let nulls = presence.map(|words| null_buffer(words, rows));
    let relaid = |strings: ArrayRef| match strings.data_type() == values {
        true => Ok(Some(strings)),
        false => relaid(&strings, values, room),
    };
    match parts {
        OutputParts::Dictionary { keys: numbers, views, buffers, present, .. } => {
            let present = null_buffer(present, views.len());
            let strings = relaid(strings(scalar, views, buffers, Some(present)))?;
            let numbers = DictionaryKeys::Kept(Buffer::from_vec(numbers));
            Ok(strings.and_then(|strings| numbered(keys, numbers, rows, nulls, strings)))
        }
        OutputParts::Strings(views, buffers) => {
            let all = strings(scalar, views.clone(), buffers.clone(), None);
            let any = all.as_any();
            let (texts, bytes) = (any.downcast_ref::<StringViewArray>(), any.downcast_ref::<BinaryViewArray>());
            let string = |row| texts.map(|all| all.value(row).as_bytes()).or_else(|| bytes.map(|all| all.value(row)));
            let mut known: HashMap<Option<&[u8]>, usize> = HashMap::new();
            let mut firsts = Vec::new();
            let mut number = |row: usize| {
                if nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
                    return 0;
                }
                *known.entry(string(row)).or_insert_with(|| {
                    firsts.push(views[row]);
                    firsts.len() - 1
                })
            };
            let numbers = (0..rows).map(&mut number).collect();
            let strings = relaid(strings(scalar, firsts, buffers, None))?;
            Ok(strings.and_then(|strings| numbered(keys, DictionaryKeys::New(numbers), rows, nulls, strings)))
        }
        _ => Ok(None),
    }
}

/// The keys of a dictionary array, one per row.
enum DictionaryKeys {
    /// The keys of the column, which is a dictionary already, as bytes in the column's own key type.
    Kept(Buffer),
    New(Vec<usize>),
}

fn is_of(found: KeyType, wanted: &DataType) -> bool {
    *wanted
        == match found {
            KeyType::I8 => DataType::Int8,
            KeyType::I16 => DataType::Int16,
            KeyType::I32 => DataType::Int32,
            KeyType::I64 => DataType::Int64,
            KeyType::U8 => DataType::UInt8,
            KeyType::U16 => DataType::UInt16,
            KeyType::U32 => DataType::UInt32,
            KeyType::U64 => DataType::UInt64,
        }
}

/// Makes a dictionary array from the keys `numbers` and the values `strings`. `keys` is the key type; `None` if it is
/// too small for a key.
fn numbered(
    keys: &DataType,
    numbers: DictionaryKeys,
    rows: usize,
    nulls: Option<NullBuffer>,
    strings: ArrayRef,
) -> Option<ArrayRef> {
    macro_rules! of {
        ($type:ident) => {{
            type Native = <$type as ArrowPrimitiveType>::Native;
            let buffer = match numbers {
                DictionaryKeys::Kept(buffer) => ScalarBuffer::<Native>::new(buffer, 0, rows),
                DictionaryKeys::New(numbers) => {
                    numbers.into_iter().map(|number| Native::try_from(number).ok()).collect::<Option<Vec<_>>>()?.into()
                }
            };
            let keys = PrimitiveArray::<$type>::new(buffer, nulls);
            Some(Arc::new(DictionaryArray::try_new(keys, strings).ok()?))
        }};
    }
    match keys {
        DataType::Int8 => of!(Int8Type),
        DataType::Int16 => of!(Int16Type),
        DataType::Int32 => of!(Int32Type),
        DataType::Int64 => of!(Int64Type),
        DataType::UInt8 => of!(UInt8Type),
        DataType::UInt16 => of!(UInt16Type),
        DataType::UInt32 => of!(UInt32Type),
        DataType::UInt64 => of!(UInt64Type),
        _ => None,
    }
}

/// Makes an array of string views.
fn strings(scalar: Scalar, views: Vec<u128>, buffers: Vec<Vec<u8>>, nulls: Option<NullBuffer>) -> ArrayRef {
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

fn made(column: OutputColumn, room: &OutputRoom) -> Result<Option<ArrayRef>, Error> {
    let rows = column.rows();
    let (qtype, parts, presence): (QType, _, _) = column.into_parts();
    qtype.scalar().map_or(Ok(None), |scalar| of_parts(scalar, rows, parts, presence, room))
}

/// Converts the memory of words to a buffer, without a copy.
fn buffer(words: Words) -> Buffer {
    let (all, first) = words.into_parts();
    Buffer::from_vec(all).slice(first * size_of::<u64>())
}

/// A bitmap with at least `count` bits, all set, in 64-bit words. `None` if the allocation fails: a column of units
/// takes no memory itself, so `count` may be any number.
fn ones(count: usize) -> Option<Vec<u64>> {
    let words = count.div_ceil(64);
    let mut ones = Vec::new();
    ones.try_reserve_exact(words).ok()?;
    ones.resize(words, u64::MAX);
    Some(ones)
}

/// Makes an Arrow array of `rows` rows from `parts`, the memory of an output column or of a model's array value, and
/// `presence`, one bit per row. `None` if Arrow has no array for this memory, or an allocation fails.
pub(crate) fn of_parts(
    scalar: Scalar,
    rows: usize,
    parts: OutputParts,
    presence: Option<Vec<u64>>,
    room: &OutputRoom,
) -> Result<Option<ArrayRef>, Error> {
    let bits = |words| BooleanBuffer::new(words, 0, rows);
    let nulls = presence.map(|words| NullBuffer::new(bits(Buffer::from_vec(words))));
    Ok(Some(match (parts, scalar) {
        (OutputParts::Nothing, Scalar::Unit) => {
            let holds = match nulls {
                Some(nulls) => nulls.into_inner(),
                None => {
                    room.claim((rows / 8) as u64)?;
                    let Some(ones) = ones(rows) else { return Ok(None) };
                    bits(Buffer::from_vec(ones))
                }
            };
            Arc::new(BooleanArray::new(holds, None))
        }
        (OutputParts::Bits(words), _) => Arc::new(BooleanArray::new(bits(buffer(words)), nulls)),
        (OutputParts::Numbers(words), scalar) => {
            let buffer = buffer(words);
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
                Scalar::Duration => numbers!(DurationMicrosecondArray),
                Scalar::Unit | Scalar::Boolean | Scalar::Text | Scalar::Bytes => return Ok(None),
            }
        }
        (OutputParts::Strings(views, buffers), scalar) => strings(scalar, views, buffers, nulls),
        _ => return Ok(None),
    }))
}

/// Converts an array of views to the layout `layout`; returns an array of any other type unchanged. `None` if the array cannot have the layout.
pub(crate) fn laid_out(array: ArrayRef, layout: Strings, room: &OutputRoom) -> Result<Option<ArrayRef>, Error> {
    let (plain, large) = match (layout, array.data_type()) {
        (Strings::Plain, DataType::Utf8View) => (DataType::Utf8, DataType::LargeUtf8),
        (Strings::Plain, DataType::BinaryView) => (DataType::Binary, DataType::LargeBinary),
        _ => return Ok(Some(array)),
    };
    match relaid(&array, &plain, room)? {
        None => relaid(&array, &large, room),
        made => Ok(made),
    }
}

/// Converts `array` to `wanted`, another layout of the same values: text views to `Utf8` or `LargeUtf8`, byte views to `Binary` or `LargeBinary`,
/// timestamps to another zone. `None` if the array cannot have the layout `wanted`, for example `Utf8` if it has more than 2 GiB of text. The
/// memory for a copy of strings is claimed from `room` first: rows may share the bytes of views, but each row of the copy has bytes of its own.
///
/// # Errors
/// If `room` is too small for the copy.
pub fn relaid(array: &ArrayRef, wanted: &DataType, room: &OutputRoom) -> Result<Option<ArrayRef>, Error> {
    fn plain<O: OffsetSizeTrait, T: ByteViewType>(
        array: &GenericByteViewArray<T>,
        room: &OutputRoom,
    ) -> Result<Option<(OffsetBuffer<O>, Buffer)>, Error> {
        let present = |row: &usize| array.is_valid(*row);
        let bytes = |row: usize| -> &[u8] { array.value(row).as_ref() };
        let all = (0..array.len()).filter(present).map(|row| bytes(row).len() as u64).fold(0, u64::saturating_add);
        let Some(size) = usize::try_from(all).ok().filter(|all| O::from_usize(*all).is_some()) else {
            // If `room` is too small, that error comes first: another layout would not fit either.
            room.claim(all)?;
            room.give_back(all);
            return Ok(None);
        };
        room.claim(all)?;
        let (mut made, mut ends) = (Vec::with_capacity(size), Vec::with_capacity(array.len() + 1));
        ends.push(O::zero());
        for row in 0..array.len() {
            if present(&row) {
                made.extend_from_slice(bytes(row));
            }
            ends.push(O::usize_as(made.len()));
        }
        Ok(Some((OffsetBuffer::new(ends.into()), Buffer::from_vec(made))))
    }
    fn texts<O: OffsetSizeTrait>(array: &StringViewArray, room: &OutputRoom) -> Result<Option<ArrayRef>, Error> {
        if array.null_count() == array.len() {
            return Ok(Some(new_null_array(&GenericStringArray::<O>::DATA_TYPE, array.len())));
        }
        let Some((ends, bytes)) = plain::<O, _>(array, room)? else { return Ok(None) };
        // SAFETY: STRING-VIEW: the views are UTF-8, and each string ends where the next begins.
        Ok(Some(Arc::new(unsafe { GenericStringArray::new_unchecked(ends, bytes, array.nulls().cloned()) })))
    }
    fn bytes<O: OffsetSizeTrait>(array: &BinaryViewArray, room: &OutputRoom) -> Result<Option<ArrayRef>, Error> {
        let Some((ends, bytes)) = plain::<O, _>(array, room)? else { return Ok(None) };
        Ok(Some(Arc::new(GenericBinaryArray::try_new(ends, bytes, array.nulls().cloned())?)))
    }
    let any = array.as_any();
    match (any.downcast_ref::<StringViewArray>(), any.downcast_ref::<BinaryViewArray>(), wanted) {
        (Some(array), _, DataType::Utf8) => texts::<i32>(array, room),
        (Some(array), _, DataType::LargeUtf8) => texts::<i64>(array, room),
        (_, Some(array), DataType::Binary) => bytes::<i32>(array, room),
        (_, Some(array), DataType::LargeBinary) => bytes::<i64>(array, room),
        (.., DataType::Timestamp(arrow_schema::TimeUnit::Microsecond, zone)) => {
            let moments = any.downcast_ref::<TimestampMicrosecondArray>();
            Ok(moments.map(|moments| Arc::new(moments.clone().with_timezone_opt(zone.clone())) as ArrayRef))
        }
        _ => Ok(None),
    }
}
