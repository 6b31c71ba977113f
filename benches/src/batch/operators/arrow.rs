//! Arrow's kernels: an array for every result. Functions that Arrow has no kernel for go through `PrimitiveArray::unary`.

use super::{Binary, Operators, Peer, PeerError, Unary, formula};
use arrow_arith::numeric;
use arrow_array::types::{ArrowPrimitiveType, Float32Type, Float64Type};
use arrow_array::{ArrayRef, BooleanArray, Datum, PrimitiveArray, Scalar};
use arrow_buffer::NullBuffer;
use arrow_ord::cmp;
use arrow_select::{nullif, zip};
use std::sync::Arc;

/// The subject.
pub(super) struct Kernels;

impl Peer for Kernels {
    const NAME: &'static str = "operator-at-a-time";
    type Prepared = &'static str;

    fn prepare(workload: &'static str, _inputs: &[ArrayRef]) -> Result<Option<&'static str>, PeerError> {
        Ok(Some(workload))
    }

    fn run(workload: &&'static str, inputs: &[ArrayRef]) -> Result<Vec<ArrayRef>, PeerError> {
        let outputs = formula(workload, &mut Eager { inputs })?.unwrap_or_default();
        Ok(outputs.into_iter().map(Value::array).collect())
    }
}

struct Eager<'a> {
    inputs: &'a [ArrayRef],
}

/// An array, or an array of one number.
#[derive(Clone)]
enum Value {
    Many(ArrayRef),
    One(Scalar<ArrayRef>),
}

impl Value {
    fn datum(&self) -> &dyn Datum {
        match self {
            Value::Many(array) => array,
            Value::One(scalar) => scalar,
        }
    }

    fn array(self) -> ArrayRef {
        match self {
            Value::Many(array) => array,
            Value::One(scalar) => scalar.into_inner(),
        }
    }

    fn of<T: ArrowPrimitiveType>(&self) -> Option<&PrimitiveArray<T>> {
        self.datum().get().0.as_any().downcast_ref()
    }

    fn mask(&self) -> Result<&BooleanArray, PeerError> {
        self.datum().get().0.as_any().downcast_ref().ok_or_else(|| "not a mask".into())
    }
}

fn one(array: ArrayRef) -> Value {
    Value::One(Scalar::new(array))
}

impl Eager<'_> {
    /// A function of either type.
    fn map(x: &Value, single: impl Fn(f32) -> f32, double: impl Fn(f64) -> f64) -> Result<Value, PeerError> {
        if let Some(array) = x.of::<Float32Type>() {
            return Ok(Value::Many(Arc::new(array.unary::<_, Float32Type>(single))));
        }
        let array = x.of::<Float64Type>().ok_or("no number")?;
        Ok(Value::Many(Arc::new(array.unary::<_, Float64Type>(double))))
    }
}

impl Operators for Eager<'_> {
    type Value = Value;

    fn input(&self, index: usize) -> Result<Value, PeerError> {
        Ok(Value::Many(self.inputs[index].clone()))
    }

    fn single(&self, number: f32) -> Value {
        one(Arc::new(PrimitiveArray::<Float32Type>::from_value(number, 1)))
    }

    fn double(&self, number: f64) -> Value {
        one(Arc::new(PrimitiveArray::<Float64Type>::from_value(number, 1)))
    }

    fn binary(&mut self, operator: Binary, a: &Value, b: &Value) -> Result<Value, PeerError> {
        let (a, b) = (a.datum(), b.datum());
        let is_one = a.get().1 && b.get().1;
        let result = match operator {
            Binary::Add => numeric::add(a, b)?,
            Binary::Subtract => numeric::sub(a, b)?,
            Binary::Multiply => numeric::mul(a, b)?,
            Binary::Divide => numeric::div(a, b)?,
            Binary::AtLeast => Arc::new(cmp::gt_eq(a, b)?),
            Binary::Greater => Arc::new(cmp::gt(a, b)?),
        };
        Ok(if is_one { one(result) } else { Value::Many(result) })
    }

    fn unary(&mut self, operator: Unary, x: &Value) -> Result<Value, PeerError> {
        match operator {
            Unary::Negative => Ok(Value::Many(numeric::neg(x.datum().get().0)?)),
            Unary::Absolute => Self::map(x, f32::abs, f64::abs),
            Unary::Root => Self::map(x, f32::sqrt, f64::sqrt),
            Unary::Exponential => Self::map(x, f32::exp, f64::exp),
            Unary::Logarithm => Self::map(x, f32::ln, f64::ln),
            Unary::LogarithmOfSum => Self::map(x, f32::ln_1p, f64::ln_1p),
            Unary::Wide => {
                let array = x.of::<Float32Type>().ok_or("no FLOAT32")?;
                Ok(Value::Many(Arc::new(array.unary::<_, Float64Type>(f64::from))))
            }
        }
    }

    fn choose(&mut self, mask: &Value, then: &Value, otherwise: Option<&Value>) -> Result<Value, PeerError> {
        let mask = mask.mask()?;
        Ok(Value::Many(match otherwise {
            Some(otherwise) => zip::zip(mask, then.datum(), otherwise.datum())?,
            None => nullif::nullif(then.datum().get().0, &BooleanArray::new(!mask.values(), None))?,
        }))
    }

    fn or(&mut self, x: &Value, default: f32) -> Result<Value, PeerError> {
        let array = x.datum().get().0;
        let Some(nulls) = array.nulls().map(NullBuffer::inner) else { return Ok(x.clone()) };
        let present = BooleanArray::new(nulls.clone(), None);
        Ok(Value::Many(zip::zip(&present, x.datum(), self.single(default).datum())?))
    }

    fn maximum(&mut self, x: &Value, bound: f32) -> Result<Value, PeerError> {
        Self::map(x, |x| if bound > x { bound } else { x }, |x| x)
    }

    fn minimum(&mut self, x: &Value, bound: f32) -> Result<Value, PeerError> {
        Self::map(x, |x| if bound < x { bound } else { x }, |x| x)
    }
}
