//! What C sees of the values that a row came to. A session keeps the views, and what they point to, until it is used again.

use crate::kinds;
use crate::layouts::{self, Payload};
use crate::memory::{ByteString, Flag, StridedMut, Text};
use compiler::tensor::Data;
use compiler::{Array, ArrayData, Date, Duration, QType, Scalar, ScalarValue, Tensor, Timestamp, Value, print_value};
use std::ffi::c_void;
use std::rc::Rc;
use std::sync::Arc;

/// Writes the values of a row as C sees them. A number is written part by part: moving what was just written in parts takes longer.
#[inline]
pub(crate) fn write_row(outputs: StridedMut<layouts::Value<'static>>, values: &[Value], views: &mut Views) {
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
            // SAFETY: C-MEMORY, likewise.
            other => unsafe { place.write(views.of(other)) },
        }
    }
}

/// The number of a scalar's type, and the scalar as C sees it.
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
        ScalarValue::Bytes(bytes) => Payload { bytes: kept_bytes(bytes) },
    }
}

/// The kind of a missing value of a type.
const fn missing_view(scalar: Scalar) -> layouts::Value<'static> {
    layouts::Value { kind: kinds::of_scalar(scalar), present: Flag(0), r#as: Payload { u64: 0 } }
}

/// A text that the session keeps, as C sees it.
pub(crate) fn kept_text(text: &str) -> Text<'static> {
    // SAFETY: C-MEMORY: the session keeps the text until it is used again, which is what C is promised.
    unsafe { Text::from_raw(text.as_ptr().cast(), text.len()) }
}

/// Bytes that the session keeps, as C sees them.
pub(crate) fn kept_bytes(bytes: &[u8]) -> ByteString<'static> {
    ByteString::kept(bytes)
}

/// What C sees of the values of a row, beside the values themselves. Their addresses do not change.
#[derive(Debug, Default)]
pub(crate) struct Views {
    arrays: Vec<Rc<ArrayView>>,
    tensors: Vec<Rc<layouts::Tensor>>,
    literals: Vec<Arc<str>>,
}

/// The view of an array, with the memory that its pointers lead to.
#[derive(Debug)]
#[expect(dead_code, reason = "C looks at the lists, through the view")]
struct ArrayView {
    view: layouts::Array,
    /// Elements that lie in another way than in the array.
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
    }

    /// A value as C sees it.
    #[inline(never)]
    pub(crate) fn of(&mut self, value: &Value) -> layouts::Value<'static> {
        let (kind, r#as) = match value {
            Value::Scalar(scalar) | Value::Present(scalar) => (kinds::of_scalar(scalar.scalar()), payload(scalar)),
            Value::Missing(scalar) => return missing_view(*scalar),
            Value::Array(_, array) => (kinds::ARRAY, Payload { array: self.array(array) }),
            Value::Tensor(tensor) => (kinds::TENSOR, Payload { tensor: self.tensor(tensor) }),
            other if other.as_optional_struct() == Some(None) => {
                let r#as = Payload { u64: 0 };
                return layouts::Value { kind: kinds::LITERAL, present: Flag(0), r#as };
            }
            other => (kinds::LITERAL, Payload { text: self.literal(other) }),
        };
        layouts::Value { kind, present: Flag(1), r#as }
    }

    /// A value of another type, as the language writes it.
    fn literal(&mut self, value: &Value) -> Text<'static> {
        let spelled: Arc<str> = print_value(value).into();
        let view = kept_text(&spelled);
        self.literals.push(spelled);
        view
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

    fn array(&mut self, array: &Array) -> *const layouts::Array {
        let (len, scalar) = (array.len(), array.scalar());
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
                bytes.extend((0..len).map(|at| kept_bytes(array.string(at).unwrap_or(&[]))));
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
        &raw const kept.view
    }
}

/// Where the numbers of an array lie.
fn numbers_address(array: &Array) -> *const c_void {
    match array.data() {
        ArrayData::Numbers(words) => words.as_ptr().cast(),
        _ => std::ptr::null(),
    }
}
