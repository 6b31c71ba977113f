//! The output values of a row as C structs (views) that point into Rust's memory. A session keeps the views, and the memory that they point to, until
//! its next use.

use crate::failure::Failure;
use crate::kinds;
use crate::layouts::{self, Payload};
use crate::memory::{ByteString, Flag, StridedMut, Text};
use compiler::doors::OutputRoom;
use compiler::tensor::Data;
use compiler::values::{ArrayData, write_printed};
use compiler::{Array, Cancellation, Date, Duration, QType, Scalar, ScalarValue, Tensor, Timestamp, Value};
use std::ffi::c_void;
use std::fmt;
use std::rc::Rc;

/// Writes a row's values to `outputs` as C structs. Writes nothing if the structs need more memory than the limit of `terms`, or if the deadline
/// passes. The members of a float's struct are written one by one, because making the struct first and moving it takes longer.
#[inline]
pub(crate) fn write_row(
    outputs: StridedMut<layouts::Value<'static>>,
    values: &[Value],
    views: &mut Views,
    terms: impl FnOnce() -> Terms,
) -> Result<(), Failure> {
    if values.iter().any(|value| !is_scalar(value)) {
        let terms = terms();
        values.iter().try_for_each(|value| views.prepare(value, &terms))?;
    }
    let mut ready = views.ready.drain(..);
    for (place, value) in outputs.places().zip(values) {
        match value {
            Value::Scalar(ScalarValue::Float64(number)) | Value::Present(ScalarValue::Float64(number)) => {
                // SAFETY: C-MEMORY: the place is one of those that were checked.
                unsafe {
                    (&raw mut (*place).kind).write(kinds::F64);
                    (&raw mut (*place).present).write(Flag(1));
                    (&raw mut (*place).r#as).cast::<f64>().write(*number);
                }
            }
            Value::Scalar(scalar) | Value::Present(scalar) => {
                let (kind, r#as) = (kinds::of_scalar(scalar.scalar()), payload(scalar));
                // SAFETY: C-MEMORY: the place is one of those that were checked.
                unsafe { place.write(layouts::Value { kind, present: Flag(1), r#as }) }
            }
            // SAFETY: C-MEMORY: the place is one of those that were checked.
            Value::Missing(scalar) => unsafe { place.write(missing_view(*scalar)) },
            _ => {
                if let Some(view) = ready.next() {
                    // SAFETY: C-MEMORY: the place is one of those that were checked.
                    unsafe { place.write(view) }
                }
            }
        }
    }
    Ok(())
}

/// Returns true if a value is a scalar or an optional scalar. Its view needs no memory.
const fn is_scalar(value: &Value) -> bool {
    matches!(value, Value::Scalar(_) | Value::Present(_) | Value::Missing(_))
}

/// The memory limit and the cancellation token for making the C structs of a row.
#[derive(Debug)]
pub(crate) struct Terms {
    pub(crate) room: OutputRoom,
    pub(crate) token: Option<Cancellation>,
}

impl Terms {
    /// Claims memory for `count` elements of the type `T`. Fails if it exceeds the limit.
    fn claim<T>(&self, count: usize) -> Result<(), Failure> {
        let bytes = (count as u64).saturating_mul(size_of::<T>() as u64);
        if bytes > 0 { Ok(self.room.claim(bytes)?) } else { Ok(()) }
    }
}

/// The text of a value while it is written, in the language's spelling.
struct TextBuffer<'t> {
    text: String,
    terms: &'t Terms,
    /// The reason why making the structs stopped early; `None` if nothing has failed.
    failure: Option<Failure>,
}

impl fmt::Write for TextBuffer<'_> {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        /// The number of bytes between two checks of the time.
        const PACE: usize = 1 << 16;
        let before = self.text.len();
        let claimed = self.terms.claim::<u8>(part.len());
        let is_due = before / PACE < before.saturating_add(part.len()) / PACE;
        let token = self.terms.token.as_ref().filter(|token| is_due && token.is_cancelled());
        let checked = match token {
            Some(token) => Err(compiler::Error::ended_by(Some(token)).into()),
            None => claimed,
        };
        self.failure = checked.err();
        if self.failure.is_some() {
            return Err(fmt::Error);
        }
        self.text.push_str(part);
        Ok(())
    }
}

/// Returns a scalar as a member of C's union.
fn payload(value: &ScalarValue) -> Payload<'static> {
    match value {
        ScalarValue::Unit => Payload { u64: 0 },
        ScalarValue::Boolean(value) => Payload { boolean: (*value).into() },
        ScalarValue::Int32(value) | ScalarValue::Date(Date(value)) => Payload { i32: *value },
        ScalarValue::Int64(value)
        | ScalarValue::Timestamp(Timestamp(value))
        | ScalarValue::Duration(Duration(value)) => Payload { i64: *value },
        ScalarValue::UInt64(value) => Payload { u64: *value },
        ScalarValue::Float32(value) => Payload { f32: *value },
        ScalarValue::Float64(value) | ScalarValue::WeakFloat(value) => Payload { f64: *value },
        ScalarValue::Text(text) => Payload { text: kept_text(text) },
        ScalarValue::Bytes(bytes) => Payload { bytes: ByteString::kept(bytes) },
    }
}

/// Returns the view of a missing value of a scalar type.
const fn missing_view(scalar: Scalar) -> layouts::Value<'static> {
    layouts::Value { kind: kinds::of_scalar(scalar), present: Flag(0), r#as: Payload { u64: 0 } }
}

/// Returns a `cembra_text` that points to `text`, which the session owns.
pub(crate) fn kept_text(text: &str) -> Text<'static> {
    // SAFETY: C-MEMORY: the session keeps the text until it is used again, which is what C is promised.
    unsafe { Text::from_raw(text.as_ptr().cast(), text.len()) }
}

/// The C structs for a row's values, with the memory that they point to. The addresses of that memory stay the same when structs are added.
#[derive(Debug, Default)]
pub(crate) struct Views {
    arrays: Vec<Rc<ArrayView>>,
    tensors: Vec<Rc<layouts::Tensor>>,
    literals: Vec<String>,
    /// The finished views of the values that are not scalars, before they are written to the outputs.
    ready: Vec<layouts::Value<'static>>,
}

/// The view of an array, with the memory that its pointers lead to.
#[derive(Debug)]
#[expect(dead_code, reason = "C reads the lists through the pointers of the view")]
struct ArrayView {
    view: layouts::Array,
    /// The elements of an array of truth values, one byte each, as C needs them; the array itself has one bit each.
    flags: Vec<Flag>,
    texts: Vec<Text<'static>>,
    bytes: Vec<ByteString<'static>>,
    presence: Vec<u8>,
}

impl Views {
    pub(crate) fn clear(&mut self) {
        self.arrays.clear();
        self.tensors.clear();
        self.literals.clear();
        self.ready.clear();
    }

    /// Makes the view of a value, unless the value is a scalar.
    #[inline(never)]
    fn prepare(&mut self, value: &Value, terms: &Terms) -> Result<(), Failure> {
        let (kind, r#as) = match value {
            scalar if is_scalar(scalar) => return Ok(()),
            Value::Array(_, array) => (kinds::ARRAY, Payload { array: self.array(array, terms)? }),
            Value::Tensor(tensor) => (kinds::TENSOR, Payload { tensor: self.tensor(tensor) }),
            other if other.as_optional_struct() == Some(None) => {
                let r#as = Payload { u64: 0 };
                self.ready.push(layouts::Value { kind: kinds::LITERAL, present: Flag(0), r#as });
                return Ok(());
            }
            other => (kinds::LITERAL, Payload { text: self.literal(other, terms)? }),
        };
        self.ready.push(layouts::Value { kind, present: Flag(1), r#as });
        Ok(())
    }

    /// Makes the text view of a value of any other type, in the language's spelling.
    fn literal(&mut self, value: &Value, terms: &Terms) -> Result<Text<'static>, Failure> {
        let mut spelled = TextBuffer { text: String::new(), terms, failure: None };
        let _told_below = write_printed(&mut spelled, value);
        if let Some(failure) = spelled.failure {
            return Err(failure);
        }
        let view = kept_text(&spelled.text);
        // The bytes stay at their address when the text moves.
        self.literals.push(spelled.text);
        Ok(view)
    }

    fn tensor(&mut self, tensor: &Tensor) -> *const layouts::Tensor {
        let layout = tensor.layout();
        let offset = layout.offset();
        let first: *const c_void = match tensor.data() {
            Data::Bool(all) => all.as_ptr().wrapping_add(offset).cast(),
            Data::Int32(all) => all.as_ptr().wrapping_add(offset).cast(),
            Data::Int64(all) => all.as_ptr().wrapping_add(offset).cast(),
            Data::Float32(all) => all.as_ptr().wrapping_add(offset).cast(),
            Data::Float64(all) => all.as_ptr().wrapping_add(offset).cast(),
        };
        let view = Rc::new(layouts::Tensor {
            element: kinds::of_scalar(tensor.scalar_type()),
            rank: u32::try_from(layout.rank()).unwrap_or(u32::MAX),
            data: first,
            extents: layout.extents().as_ptr(),
            strides: layout.strides().as_ptr(),
        });
        self.tensors.push(view.clone());
        Rc::as_ptr(&view)
    }

    fn array(&mut self, array: &Array, terms: &Terms) -> Result<*const layouts::Array, Failure> {
        let (len, scalar) = (array.len(), array.scalar());
        if array.presence().is_some() {
            terms.claim::<u8>(len)?;
        }
        match scalar {
            Scalar::Boolean => terms.claim::<Flag>(len)?,
            Scalar::Text => terms.claim::<Text<'_>>(len)?,
            Scalar::Bytes => terms.claim::<ByteString<'_>>(len)?,
            _ => {}
        }
        let presence: Vec<u8> = match array.presence() {
            Some(_) => (0..len).map(|at| array.is_present(at).into()).collect(),
            None => Vec::new(),
        };
        let (mut flags, mut texts, mut bytes) = (Vec::new(), Vec::new(), Vec::new());
        let (data, size): (*const c_void, usize) = match scalar {
            Scalar::Unit => (std::ptr::null(), 0),
            Scalar::Boolean => {
                let bit = |at: usize| {
                    array.bits().and_then(|words| words.get(at / 64)).is_some_and(|word| word >> (at % 64) & 1 != 0)
                };
                flags.extend((0..len).map(|at| Flag::from(bit(at))));
                (flags.as_ptr().cast(), size_of::<Flag>())
            }
            Scalar::Text => {
                texts.extend((0..len).map(|at| kept_text(array.text(at).unwrap_or(""))));
                (texts.as_ptr().cast(), size_of::<Text<'_>>())
            }
            Scalar::Bytes => {
                bytes.extend((0..len).map(|at| ByteString::kept(array.string(at).unwrap_or(&[]))));
                (bytes.as_ptr().cast(), size_of::<ByteString<'_>>())
            }
            number => {
                let size = QType::Scalar(number).layout().size as usize;
                (numbers_address(array), size)
            }
        };
        let is_full = presence.is_empty();
        let elements = layouts::Column {
            kind: kinds::of_scalar(scalar),
            presence_form: if is_full { kinds::PRESENCE_ALL } else { kinds::PRESENCE_BYTES },
            data,
            stride: size.cast_signed(),
            presence: if is_full { std::ptr::null() } else { presence.as_ptr() },
            presence_stride: isize::from(!is_full),
            presence_bit: 0,
        };
        let view = layouts::Array { elements, len };
        let kept = Rc::new(ArrayView { view, flags, texts, bytes, presence });
        self.arrays.push(kept.clone());
        Ok(&raw const kept.view)
    }
}

/// Returns the address of an array's numbers; null if its elements are not numbers.
fn numbers_address(array: &Array) -> *const c_void {
    match array.data() {
        ArrayData::Numbers(words) => words.as_ptr().cast(),
        _ => std::ptr::null(),
    }
}
