//! Struct fields that are tensors in a model: the type `Tensor`, which shares its memory with the model, and the arrays of the crate `ndarray`,
//! which are copied. A `Tensor` field takes an input or output of any element type and number of axes.

use crate::binding::fields::sealed::Sealed;
use crate::binding::fields::{ANY_TENSOR, single};
use crate::derived::OutputField;
use crate::{InputValue, Output, OutputValue, Tensor};
use cembra_runtime::QType;
use cembra_value::Value;

impl<S> Sealed<S> for Tensor {}

impl InputValue for Tensor {
    fn qtype() -> QType {
        ANY_TENSOR
    }
    fn value(&self) -> Value {
        Value::from(self.clone())
    }
}

impl OutputValue for Tensor {
    fn qtype() -> QType {
        ANY_TENSOR
    }
    fn of_value(value: &Value) -> Option<Self> {
        value.as_tensor().cloned()
    }
    fn fits(value: &Value) -> bool {
        value.as_tensor().is_some()
    }
}

single!(Tensor);

#[cfg(feature = "ndarray")]
mod arrays {
    use super::*;
    use cembra_value::tensor::Element;
    use ndarray::{Array, ArrayD, Dimension};

    /// Returns the type of a tensor with the array's number of axes; any number of axes for `IxDyn`.
    fn tensor_type<T: Element, D: Dimension>() -> QType {
        D::NDIM.and_then(|rank| u8::try_from(rank).ok()).map_or(ANY_TENSOR, |rank| QType::Tensor(T::SCALAR, rank))
    }

    impl<T: Element, D: Dimension, S> Sealed<S> for Array<T, D> {}

    impl<T: Element, D: Dimension> InputValue for Array<T, D> {
        fn qtype() -> QType {
            tensor_type::<T, D>()
        }
        fn value(&self) -> Value {
            Tensor::try_from(self.view()).map_or(Value::Nothing, Value::from)
        }
    }

    impl<T: Element, D: Dimension> OutputValue for Array<T, D> {
        fn qtype() -> QType {
            tensor_type::<T, D>()
        }
        fn of_value(value: &Value) -> Option<Self> {
            ArrayD::<T>::try_from(value.as_tensor()?.clone()).ok()?.into_dimensionality::<D>().ok()
        }
        fn fits(value: &Value) -> bool {
            value.as_tensor().is_some_and(|tensor| {
                tensor.scalar_type() == T::SCALAR && D::NDIM.is_none_or(|rank| rank == tensor.extents().len())
            })
        }
    }

    // SAFETY: FIELD-TABLE: the value itself, at 0.
    unsafe impl<T: Element, D: Dimension> Output for Array<T, D> {
        fn fields() -> Vec<OutputField> {
            vec![OutputField::of::<Array<T, D>>("", 0)]
        }
    }
}
