//! Fields of Rust structs that are arrays in a model: slices and vectors of scalars. Their elements are copied to
//! arrays, because the frame (the block of memory that compiled code works on) does not store arrays.

use crate::binding::fields::sealed::Sealed;
use crate::binding::fields::{input_if_given, output_if_given, single};
use crate::binding::shapes::{InputList, InputShape, Items, OutputList};
use crate::derived::{InputField, OutputField};
use crate::{InputValue, Output, OutputValue};
use cembra_engine::rows::{ArrayView, array_of_optionals, elements, optional_elements};
use cembra_runtime::{ArrayKind, Optional, QType, Scalar, for_each_scalar};
use cembra_value::{Array, ScalarValue, Value};

const fn array_type(scalar: Scalar) -> QType {
    QType::Array(ArrayKind::Dense, scalar)
}

/// Implements the traits of input fields for Rust types that are arrays in a model, such as slices and vectors of
/// scalars.
macro_rules! array_input {
    ($($ty:ty: $scalar:expr, $shape:expr, |$field:ident| $array:expr;)*) => { $(
        impl<S> Sealed<S> for $ty {}

        impl InputValue for $ty {
            fn qtype() -> QType { array_type($scalar) }
            fn shape() -> InputShape { $shape }
            fn value(&self) -> Value {
                let $field = self;
                Value::from($array)
            }
        }

        input_if_given!([] $ty);
    )* };
}

/// Returns the description of the list type `L`, with a field table entry for its items.
fn list<L: Items<Item: InputValue>>() -> InputShape {
    InputShape::List(InputList::of::<L>(|| InputField::of::<L::Item>("", 0)))
}

/// Implements the output traits for Rust types that are arrays in a model, such as vectors of scalars. The macro does
/// not implement `Sealed`.
macro_rules! array_output {
    ($(Vec<$item:ty>: $scalar:expr, |$array:ident| $value:expr, $may_miss:literal;)*) => { $(
        impl OutputValue for Vec<$item> {
            fn qtype() -> QType { array_type($scalar) }
            fn list() -> Option<OutputList> { Some(OutputList::of::<$item>()) }
            fn of_value(value: &Value) -> Option<Self> {
                let Value::Array(ArrayKind::Dense, $array) = value else { return None };
                $value
            }
            fn fits(value: &Value) -> bool {
                matches!(value, Value::Array(ArrayKind::Dense, array)
                    if array.scalar() == $scalar && ($may_miss || array.present_count() == array.len()))
            }
        }

        output_if_given!([] Vec<$item>);

        single!(Vec<$item>);
    )* };
}

macro_rules! plain_arrays {
    ([] $unit:ident $unit_rows:tt plain { $($(#[$doc:meta])* $plain:ident($rust:ty) $facts:tt)* } $($rest:tt)*) => { $(
        array_input! {
            &[$rust]: Scalar::$plain, list::<Self>(), |field| ArrayView::new(field).array();
            Vec<$rust>: Scalar::$plain, list::<Self>(), |field| ArrayView::new(field).array();
            &[Optional<$rust>]: Scalar::$plain, list::<Self>(), |field| array_of_optionals(field);
            Vec<Optional<$rust>>: Scalar::$plain, list::<Self>(), |field| array_of_optionals(field);
            ArrayView<'_, $rust>: Scalar::$plain, InputShape::Value, |field| field.array();
        }

        impl<S> Sealed<S> for Vec<Option<$rust>> {}
        impl<S, const N: usize> Sealed<S> for [$rust; N] {}

        impl<const N: usize> InputValue for [$rust; N] {
            fn qtype() -> QType { array_type(Scalar::$plain) }
            fn value(&self) -> Value {
                Value::from(ArrayView::new(&self[..]).array())
            }
            fn shape() -> InputShape { list::<Self>() }
        }

        input_if_given!([const N: usize] [$rust; N]);

        array_output! {
            Vec<$rust>: Scalar::$plain, |array| elements(array), false;
            Vec<Optional<$rust>>: Scalar::$plain, |array| optional_elements(array), true;
            Vec<Option<$rust>>: Scalar::$plain, |array| {
                optional_elements::<$rust>(array).map(|all| all.into_iter().map(|one| one.get()).collect())
            }, true;
        }
    )* };
}

for_each_scalar!(plain_arrays []);

/// Returns an array of the texts; `None` is a missing element.
fn array_of_texts<'a>(texts: impl IntoIterator<Item = Option<&'a str>>) -> Array {
    Array::from_scalars(Scalar::Text, texts.into_iter().map(|text| text.map(|text| ScalarValue::Text(text.into()))))
}

/// Returns the text of each element; `None` where the element is missing.
fn texts(array: &Array) -> impl Iterator<Item = Option<String>> + '_ {
    let text = |at| array.text(at).map(str::to_owned);
    (0..array.len()).map(text)
}

array_input! {
    &[&str]: Scalar::Text, list::<Self>(), |field| array_of_texts(field.iter().map(|text| Some(*text)));
    Vec<&str>: Scalar::Text, list::<Self>(), |field| array_of_texts(field.iter().map(|text| Some(*text)));
    &[String]: Scalar::Text, list::<Self>(), |field| array_of_texts(field.iter().map(|text| Some(text.as_str())));
    Vec<String>: Scalar::Text, list::<Self>(), |field| array_of_texts(field.iter().map(|text| Some(text.as_str())));
    Vec<Option<String>>: Scalar::Text, list::<Self>(), |field| array_of_texts(field.iter().map(Option::as_deref));
}

array_output! {
    Vec<String>: Scalar::Text, |array| texts(array).collect(), false;
    Vec<Option<String>>: Scalar::Text, |array| Some(texts(array).collect()), true;
}
