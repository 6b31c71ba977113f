//! Arrays of the golden data: bits in hexadecimal digits, under any layout.

use crate::problem::Malformed;
use cembra::Scalar;
use cembra::tensor::{Data, Element, Layout, Tensor};
use serde_json::Value as Json;

/// An element type by its name in the data.
pub(super) fn scalar(name: &str) -> Result<Scalar, Malformed> {
    Ok(match name {
        "bool" => Scalar::Boolean,
        "i32" => Scalar::Int32,
        "i64" => Scalar::Int64,
        "f32" => Scalar::Float32,
        "f64" => Scalar::Float64,
        _ => return Err(Malformed::Field("dtype")),
    })
}

/// A list of whole numbers.
pub(super) fn numbers<T: TryFrom<i64>>(json: &Json, field: &'static str) -> Result<Vec<T>, Malformed> {
    let number = |json: &Json| json.as_i64().and_then(|number| T::try_from(number).ok()).ok_or(Malformed::Field(field));
    json.as_array().ok_or(Malformed::Field(field))?.iter().map(number).collect()
}

fn elements<T: Element>(digits: &str, width: usize, read: impl Fn(u64) -> T) -> Result<Data, Malformed> {
    let mut made = Vec::with_capacity(digits.len() / width);
    for chunk in digits.as_bytes().chunks(width) {
        let text = std::str::from_utf8(chunk).map_err(|_| Malformed::Field("hex"))?;
        made.push(read(u64::from_str_radix(text, 16).map_err(|_| Malformed::Field("hex"))?));
    }
    Ok(T::data(made))
}

/// An array as a view of its memory.
pub(super) fn array(json: &Json) -> Result<Tensor, Malformed> {
    let text = |field: &'static str| json.get(field).and_then(Json::as_str).ok_or(Malformed::Field(field));
    let digits = text("hex")?;
    let data = match scalar(text("dtype")?)? {
        Scalar::Boolean => elements(digits, 1, |bits| bits != 0)?,
        Scalar::Int32 => elements(digits, 8, |bits| (bits as u32).cast_signed())?,
        Scalar::Int64 => elements(digits, 16, u64::cast_signed)?,
        Scalar::Float32 => elements(digits, 8, |bits| f32::from_bits(bits as u32))?,
        _ => elements(digits, 16, f64::from_bits)?,
    };
    let extents: Vec<usize> = numbers(json.get("shape").ok_or(Malformed::Field("shape"))?, "shape")?;
    let offset = json.get("offset").and_then(Json::as_u64).unwrap_or(0) as usize;
    let layout = match json.get("strides") {
        Some(strides) => Layout::strided(&extents, &numbers::<isize>(strides, "strides")?, offset, data.len()),
        None => Layout::row_major(&extents),
    };
    let made = layout.and_then(|layout| Tensor::from_parts(data, layout));
    made.map_err(|_| Malformed::Field("strides"))
}
