//! Arrays and tensors of one row, and what C sees of those that a row comes to.

#![deny(clippy::arithmetic_side_effects)]

use crate::columns::Loaded;
use crate::failure::Failure;
use crate::kinds;
use crate::layouts::{self, PRESENCE_ALL, PRESENCE_BYTES, Payload};
use crate::memory::{AnyBits, ByteString, Flag, Text, roomy, slice};
use crate::rows::{missing_view, payload};
use compiler::tensor::{Data, Element, Layout};
use compiler::{Array, ArrayData, ArrayKind, QType, Scalar, Tensor, Value, print_value};
use std::ffi::c_void;
use std::rc::Rc;
use std::sync::Arc;

/// The array of elements of C.
pub(crate) fn array(array: &layouts::Array, what: &str, most: u64) -> Result<Value, Failure> {
    // SAFETY: C-MEMORY: whoever gave the array vouched for its elements.
    let loaded = unsafe { Loaded::of(&array.elements, array.len, what) }?;
    loaded.array(most).map(|made| Value::Array(ArrayKind::Dense, made.into()))
}

/// The tensor of elements of C.
pub(crate) fn tensor(tensor: &layouts::Tensor, what: &str, most: u64) -> Result<Value, Failure> {
    let made = match tensor.element {
        kinds::BOOL => read::<Flag, bool>(tensor, what, most, |flags| flags.iter().map(|flag| flag.is_set()).collect()),
        kinds::I32 => read::<i32, i32>(tensor, what, most, <[i32]>::to_vec),
        kinds::I64 => read::<i64, i64>(tensor, what, most, <[i64]>::to_vec),
        kinds::F32 => read::<f32, f32>(tensor, what, most, <[f32]>::to_vec),
        kinds::F64 => read::<f64, f64>(tensor, what, most, <[f64]>::to_vec),
        other => Err(Failure::unknown("type of a tensor's elements", other)),
    };
    made.map(|tensor| Value::Tensor(tensor.into()))
}

/// The tensor of elements of a type.
fn read<T: AnyBits, E: Element>(
    tensor: &layouts::Tensor,
    what: &str,
    most: u64,
    copied: impl Fn(&[T]) -> Vec<E>,
) -> Result<Tensor, Failure> {
    let rank = tensor.rank as usize;
    if rank > compiler::tensor::MOST_AXES {
        let message = format!("{what} has {rank} axes, and a tensor at most {}", compiler::tensor::MOST_AXES);
        return Err(Failure::argument(message));
    }
    // SAFETY: C-MEMORY: whoever gave the tensor vouched for its extents, strides and elements.
    let extents: &[usize] = unsafe { slice(tensor.extents, rank, &format!("the extents of {what}")) }?;
    if extents.contains(&0) {
        return Ok(Tensor::new(extents, Vec::<E>::new())?);
    }
    let (strides, before) = if tensor.strides.is_null() {
        (Layout::row_major(extents)?.strides().to_vec(), 0)
    } else {
        // SAFETY: C-MEMORY, likewise.
        let strides: &[isize] = unsafe { slice(tensor.strides, rank, &format!("the strides of {what}")) }?;
        let back = extents.iter().zip(strides).filter(|(_, stride)| **stride < 0).try_fold(0_usize, reach);
        (strides.to_vec(), back.ok_or_else(|| no_memory(what))?)
    };
    let ahead = extents.iter().zip(&strides).filter(|(_, stride)| **stride > 0).try_fold(0_usize, reach);
    let memory = ahead.and_then(|ahead| before.checked_add(ahead)?.checked_add(1)).ok_or_else(|| no_memory(what))?;
    let back = before.checked_mul(size_of::<T>()).ok_or_else(|| no_memory(what))?;
    if tensor.data.is_null() || tensor.data.addr() <= back {
        return Err(Failure::null(what));
    }
    let first = tensor.data.cast::<u8>().wrapping_sub(back).cast::<T>();
    // SAFETY: C-MEMORY, likewise: from the lowest position to the highest.
    let elements: &[T] = unsafe { slice(first, memory, what) }?;
    let layout = Layout::strided(extents, &strides, before, memory)?;
    let count = layout.len();
    if count.min(memory).checked_mul(size_of::<E>()).is_none_or(|bytes| bytes as u64 > most) {
        return Err(Failure::argument(format!("{what} has more bytes than the limit `array_bytes` allows")));
    }
    if memory <= count {
        // Elements that indices share are kept once.
        return Ok(Tensor::from_parts(E::data(copied(elements)), layout)?);
    }
    let mut dense: Vec<T> = roomy(count)?;
    dense.extend(layout.positions().filter_map(|at| elements.get(at).copied()));
    Ok(Tensor::new(extents, copied(&dense))?)
}

/// How far positions go, with one axis more.
fn reach(so_far: usize, (extent, stride): (&usize, &isize)) -> Option<usize> {
    so_far.checked_add(extent.saturating_sub(1).checked_mul(stride.unsigned_abs())?)
}

#[cold]
fn no_memory(what: &str) -> Failure {
    Failure::argument(format!("{what} has extents and strides that no memory has"))
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

/// An array as C sees it, with what lies behind it.
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
            presence_form: if is_full { PRESENCE_ALL } else { PRESENCE_BYTES },
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
