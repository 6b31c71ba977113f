//! Tensors as JSON: nested lists, one level per axis, around the elements. A tensor without axes is just its element. If an axis is empty, nested
//! lists do not show the extents of the axes after it, so these extents are read as 0.

use super::{Json, JsonMisfit, JsonValue};
use crate::Error;
use cembra_runtime::{QType, Scalar};
use cembra_value::tensor::{Data, Element, Extents, check_room};
use cembra_value::{ScalarValue, Tensor, Value, with_data};
use serde_json::Value as Object;

/// Converts a tensor to nested JSON lists.
///
/// # Errors
/// If there is not enough memory for the lists. A view that repeats a few elements along an axis may need very large lists.
pub(super) fn write(tensor: &Tensor) -> Result<Object, Error> {
    let (extents, mut parts) = (tensor.extents(), 1_usize);
    for extent in extents {
        parts = parts.saturating_mul(*extent).max(parts);
    }
    check_room(parts.saturating_mul(2 * size_of::<Object>())).map_err(|error| Error::values(error.to_string()))?;
    let mut positions = tensor.positions();
    let mut elements = std::iter::from_fn(|| {
        let at = positions.next()?;
        Some(ScalarValue::from_bits(tensor.scalar_type(), tensor.data().bits(at)))
    });
    lists(extents, &mut elements)
}

/// Returns the nested JSON lists for axes of these extents, filled with the next of `elements`. There are at most
/// `MOST_AXES` axes, so the recursion is bounded.
fn lists(extents: &[usize], elements: &mut dyn Iterator<Item = Option<ScalarValue>>) -> Result<Object, Error> {
    match extents {
        [] => elements.next().flatten().map_or(Ok(Object::Null), |element| Json::object(&(&element).into())),
        [extent, inner @ ..] => (0..*extent).map(|_| lists(inner, elements)).collect(),
    }
}

/// The state while nested JSON lists are read as a tensor: the elements and the extents so far.
struct TensorReader {
    scalar: Scalar,
    rank: usize,
    /// The extents of the axes that are known, because a list was read for each of them.
    extents: Extents,
    elements: Data,
}

/// Reads nested JSON lists as a tensor with the element type `scalar` and `rank` axes.
pub(super) fn read<'j, J: JsonValue<'j>>(scalar: Scalar, rank: u8, value: J) -> Result<Value, JsonMisfit<J>> {
    let misfit = || JsonMisfit::of(QType::Tensor(scalar, rank), value);
    let elements = Data::zeros(scalar, 0).map_err(|_| misfit())?;
    let mut reading = TensorReader { scalar, rank: usize::from(rank), extents: Extents::new(), elements };
    reading.list(value, 0)?;
    reading.extents.resize(reading.rank, 0);
    Tensor::of_data(&reading.extents, reading.elements).map(Value::from).map_err(|_| misfit())
}

impl TensorReader {
    /// Reads `value`, a nested list for the axes from `axis` on, and appends its elements. Its extents must be those of
    /// the lists before it. A type has at most `MOST_AXES` axes, so the recursion is bounded.
    fn list<'j, J: JsonValue<'j>>(&mut self, value: J, axis: usize) -> Result<(), JsonMisfit<J>> {
        if axis == self.rank {
            return self.element(value);
        }
        let misfit = || JsonMisfit::of(QType::Tensor(self.scalar, (self.rank - axis) as u8), value);
        let lists = value.to_elements().ok_or_else(misfit)?;
        match self.extents.get(axis) {
            None => self.extents.push(lists.len()),
            Some(extent) if *extent == lists.len() => {}
            Some(extent) => return Err(JsonMisfit { extent: Some(*extent), ..misfit() }),
        }
        for (at, list) in lists.into_iter().enumerate() {
            self.list(list, axis + 1)
                .map_err(|misfit| JsonMisfit { path: format!(".{at}{}", misfit.path), ..misfit })?;
        }
        Ok(())
    }

    fn element<'j, J: JsonValue<'j>>(&mut self, value: J) -> Result<(), JsonMisfit<J>> {
        let qtype = QType::Scalar(self.scalar);
        match value.to_scalar(self.scalar).and_then(|element| element.to_value(&qtype)) {
            Some(Value::Scalar(element)) => {
                with_data!(&mut self.elements, all => all.to_mut().push(Element::from_bits(element.bits())));
                Ok(())
            }
            _ => Err(JsonMisfit::of(qtype, value)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{field, value};
    use super::*;
    use crate::doors::JsonText;
    use crate::json::JsonRow;
    use serde_json::json;

    /// Returns the tensor after a round trip through JSON objects, and after one through JSON text.
    fn round(tensor: &Tensor) -> [Value; 2] {
        let qtype = tensor.qtype();
        let object = write(tensor).unwrap();
        let row = JsonRow::parse(format!("{{\"t\": {object}}}")).unwrap();
        let by_object = value(&qtype, &object).map_err(|misfit| misfit.path).unwrap().to_value(&qtype).unwrap();
        [by_object, row.get("t").unwrap().value(&qtype).unwrap()]
    }

    #[test]
    fn tensors_of_every_type_go_to_lists_and_back() {
        let floats = vec![f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0, 0.1, f64::MAX];
        let singles = vec![f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -0.0, 0.1, f32::MIN_POSITIVE];
        let tensors = [
            Tensor::new(&[2, 3], floats).unwrap(),
            Tensor::new(&[3, 1, 2], singles).unwrap(),
            Tensor::new(&[2], vec![i64::MIN, i64::MAX]).unwrap(),
            Tensor::new(&[1, 2], vec![i32::MIN, i32::MAX]).unwrap(),
            Tensor::new(&[2, 2], vec![true, false, false, true]).unwrap(),
            Tensor::scalar(2.5),
            Tensor::scalar(f32::NEG_INFINITY),
            Tensor::scalar(true),
            Tensor::new::<f64>(&[0], vec![]).unwrap(),
            Tensor::new::<i64>(&[2, 0], vec![]).unwrap(),
            Tensor::new::<bool>(&[2, 3, 0], vec![]).unwrap(),
        ];
        for tensor in &tensors {
            for back in round(tensor) {
                assert_eq!(back, Value::from(tensor.clone()));
            }
        }
        let turned = tensors[0].transposed(&[1, 0]).unwrap();
        assert_eq!(write(&turned).unwrap(), json!([["NaN", -0.0], ["Infinity", 0.1], ["-Infinity", f64::MAX]]));
        assert_eq!(round(&turned)[1], Value::from(turned));
        // The extents after an axis of extent 0 do not appear in nested lists.
        let hidden = Tensor::new::<f64>(&[0, 3], vec![]).unwrap();
        assert_eq!(
            (write(&hidden).unwrap(), round(&hidden)[0].as_tensor().unwrap().extents()),
            (json!([]), &[0, 0][..])
        );
    }

    #[test]
    fn lists_that_are_no_tensor_say_where() {
        let qtype = QType::Tensor(Scalar::Int32, 2);
        let refused = |object: Object| field("t", &qtype, Some(&object)).unwrap_err().to_string();
        let unequal = "input `t.1` must have 2 elements, like the lists of the same length before it, found [3]";
        assert_eq!(refused(json!([[1, 2], [3]])), unequal);
        assert_eq!(refused(json!([[1], [2.5]])), "input `t.1.0` is i32, found 2.5");
        assert_eq!(refused(json!([[1], [null]])), "input `t.1.0` is i32, but it is missing");
        assert_eq!(refused(json!([1])), "input `t.0` is tensor[i32, 1], found 1");
        assert_eq!(refused(json!([[[1]]])), "input `t.0.0` is i32, found [1]");
        assert_eq!(refused(json!(7)), "input `t` is tensor[i32, 2], found 7");
        let row = JsonRow::parse("{\"t\": [[1, 2], [], [3, 4]]}").unwrap();
        let misfit = row.get("t").unwrap().value(&qtype).unwrap_err();
        assert_eq!((misfit.path.as_str(), misfit.extent, misfit.found.as_str()), (".1", Some(2), "[]"));
        let texts = QType::Tensor(Scalar::Text, 1);
        assert!(row.get("t").map(|t: JsonText<'_>| t.value(&texts).is_err()).unwrap());
    }

    #[test]
    fn views_of_more_lists_than_there_is_memory_are_refused() {
        let view = Tensor::scalar(1.0).broadcast_to(&[1 << 20, 1 << 20, 1 << 15]).unwrap();
        assert_eq!(write(&view).unwrap_err().code(), "values");
        let empty = Tensor::new::<f64>(&[0], vec![]).unwrap().broadcast_to(&[1 << 50, 0]).unwrap();
        assert_eq!(write(&empty).unwrap_err().code(), "values");
    }
}
