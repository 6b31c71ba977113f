//! Equality, hashes and printing of tensors. They depend on elements and extents (numbers of indices per axis), but not
//! on the memory layout, so a view and its copy are equal.

use super::element::Element;
use super::layout::{Extents, Layout, Strides};
use super::tensor::Tensor;
use crate::{ScalarValue, with_data};
use std::fmt;
use std::hash::{Hash, Hasher};

/// A function that returns true if two elements count as the same.
type IsSame<T> = fn(T, T) -> bool;

fn by_bits<T: Element>(a: T, b: T) -> bool {
    a.bits() == b.bits()
}

/// Returns true if both elements have the same bits, or both are NaN.
fn by_bits_or_nan<T: Element>(a: T, b: T) -> bool {
    // Only a NaN differs from itself.
    let is_nan = |element: T| !element.eq(&element);
    by_bits(a, b) || (is_nan(a) && is_nan(b))
}

/// The layouts of two tensors with the same extents, without the axes along which both tensors repeat one element. A
/// view may have any number of indices along such an axis, so comparing all of them could take arbitrarily long.
fn without_shared_axes(a: &Layout, b: &Layout) -> [Layout; 2] {
    let kept = |axis: &usize| a.strides()[*axis] != 0 || b.strides()[*axis] != 0 || a.extents()[*axis] == 0;
    [a, b].map(|layout| {
        let axes = (0..layout.rank()).filter(kept);
        let extents: Extents = axes.clone().map(|axis| layout.extents()[axis]).collect();
        let strides: Strides = axes.map(|axis| layout.strides()[axis]).collect();
        Layout::within(&extents, strides, layout.offset())
    })
}

/// Returns true if two tensors have the same type and extents, and if `is_same` holds for all pairs of elements.
fn all_same<T: Element>(own: &[T], a: &Tensor, b: &Tensor, is_same: IsSame<T>) -> bool {
    let Some(others) = T::of(b.data()).filter(|_| a.extents() == b.extents()) else { return false };
    let [a, b] = without_shared_axes(a.layout(), b.layout());
    a.positions().zip(b.positions()).all(|(x, y)| is_same(own[x], others[y]))
}

impl Tensor {
    /// Returns true if both tensors have the same type, extents and elements. All NaNs count as the same.
    #[must_use]
    pub fn same(&self, other: &Tensor) -> bool {
        with_data!(self.data(), own => all_same(own, self, other, by_bits_or_nan))
    }
}

/// Tensors are equal if their types, extents and the bits of all elements are, whatever the layouts: `-0.0` differs from `0.0`,
/// and a NaN equals itself.
impl PartialEq for Tensor {
    fn eq(&self, other: &Tensor) -> bool {
        // A tensor equals itself, without a comparison of elements.
        let is_itself = self.shares_memory(other) && self.layout() == other.layout();
        is_itself || with_data!(self.data(), own => all_same(own, self, other, by_bits))
    }
}

impl Eq for Tensor {}

impl Hash for Tensor {
    /// Hashes the type, the extents and at most a few thousand elements at even distances, because a view may have any number of
    /// indices.
    fn hash<H: Hasher>(&self, state: &mut H) {
        const MOST: usize = 4096;
        (self.scalar_type(), self.extents()).hash(state);
        let len = self.layout().len();
        let step = len.div_ceil(MOST).max(1);
        for at in (0..len).step_by(step) {
            self.data().bits(nth_position(self.layout(), at)).hash(state);
        }
    }
}

/// The position in memory of element number `nth`, in the order of indices.
fn nth_position(layout: &Layout, nth: usize) -> usize {
    let (mut rest, mut at) = (nth, layout.offset());
    for (extent, stride) in layout.extents().iter().zip(layout.strides()).rev() {
        at = at.wrapping_add_signed(stride.wrapping_mul((rest % extent).cast_signed()));
        rest /= extent;
    }
    at
}

impl fmt::Display for Tensor {
    /// Prints type, extents and elements: `tensor[f64, 2]{[2, 2]: 1, 2, 3, 4}`. Of many elements, the first ten are printed.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 10;
        write!(f, "{}{{{:?}: ", self.qtype(), self.extents())?;
        for (at, position) in self.positions().take(SHOWN).enumerate() {
            f.write_str(if at > 0 { ", " } else { "" })?;
            let element = ScalarValue::from_bits(self.scalar_type(), self.data().bits(position));
            element.map_or(Ok(()), |element| element.fmt_bare(f))?;
        }
        let len = self.layout().len();
        if len > SHOWN { write!(f, ", ... ({len} elements)}}") } else { f.write_str("}") }
    }
}

/// Prints the extents and the elements of the first 64 indices.
impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 64;
        write!(f, "{}{:?} ", self.scalar_type().name(), self.extents())?;
        let mut list = f.debug_list();
        with_data!(self.data(), elements => list.entries(self.positions().take(SHOWN).map(|at| elements[at])));
        if self.layout().len() > SHOWN { list.finish_non_exhaustive() } else { list.finish() }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Slice, Tensor};
    use crate::Value;
    use cembra_runtime::{QType, Scalar};
    use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

    fn hash(value: &Value) -> u64 {
        BuildHasherDefault::<DefaultHasher>::default().hash_one(value)
    }

    fn copy(view: &Tensor) -> Tensor {
        Tensor::of_data(view.extents(), view.gathered()).unwrap()
    }

    #[test]
    fn a_view_and_its_copy_are_one_value() {
        let whole = Tensor::new(&[3, 4], (0..12).map(f64::from).collect()).unwrap();
        let backwards = Slice { start: 3, step: -2, count: 2 };
        let many = Tensor::new(&[5, 1], vec![1_i64, 2, 3, 4, 5]).unwrap().broadcast_to(&[3, 5, 2000]).unwrap();
        let views = [
            whole.clone(),
            whole.transposed(&[1, 0]).unwrap(),
            whole.sliced(&[Slice::all(3), backwards]).unwrap(),
            whole.sliced(&[Slice { start: 1, step: 1, count: 0 }, Slice::all(4)]).unwrap(),
            Tensor::scalar(true).broadcast_to(&[2, 3]).unwrap(),
            many,
        ];
        for (at, view) in views.iter().enumerate() {
            let (view, copied) = (Value::from(view.clone()), Value::from(copy(view)));
            assert_eq!(view, copied);
            assert!(view.same(&copied));
            assert_eq!(hash(&view), hash(&copied));
            for other in &views[..at] {
                assert_ne!(view, Value::from(other.clone()));
            }
        }
    }

    #[test]
    fn equality_is_of_type_extents_and_bits() {
        let of = |extents: &[usize], elements: &[f64]| Value::from(Tensor::new(extents, elements.to_vec()).unwrap());
        let nan = f64::from_bits(f64::NAN.to_bits() ^ 1);
        assert_eq!(of(&[2], &[f64::NAN, 1.0]), of(&[2], &[f64::NAN, 1.0]));
        assert_ne!(of(&[1], &[f64::NAN]), of(&[1], &[nan]));
        assert!(of(&[1], &[f64::NAN]).same(&of(&[1], &[nan])));
        assert_ne!(of(&[1], &[0.0]), of(&[1], &[-0.0]));
        assert!(!of(&[1], &[0.0]).same(&of(&[1], &[-0.0])));
        assert_ne!(of(&[2, 1], &[1.0, 2.0]), of(&[1, 2], &[1.0, 2.0]));
        assert_ne!(of(&[0, 2], &[]), of(&[2, 0], &[]));
        assert_ne!(of(&[2], &[1.0, 2.0]), of(&[2], &[1.0, 3.0]));
        let zeros = |scalar| Value::from(Tensor::zeros(scalar, &[2]).unwrap());
        assert_ne!(zeros(Scalar::Int32), zeros(Scalar::Float32));
        assert!(!zeros(Scalar::Int64).same(&zeros(Scalar::Float64)));
        // Elements that repeat along an axis in both are compared once.
        let view = |element: f64| Tensor::scalar(element).broadcast_to(&[1 << 20, 1 << 20]).unwrap();
        assert_eq!(view(1.0), view(1.0));
        assert_ne!(view(1.0), view(2.0));
        assert_eq!(hash(&view(1.0).into()), hash(&view(1.0).into()));
        assert_ne!(hash(&view(1.0).into()), hash(&view(2.0).into()));
    }

    #[test]
    fn few_elements_are_printed_and_many_counted() {
        let small = Tensor::new(&[2, 2], vec![1.5, f64::NAN, -0.0, f64::INFINITY]).unwrap();
        assert_eq!(Value::from(small).to_string(), "tensor[f64, 2]{[2, 2]: 1.5, nan, -0, inf}");
        assert_eq!(Value::from(Tensor::scalar(true)).to_string(), "tensor[bool, 0]{[]: true}");
        assert_eq!(Tensor::zeros(Scalar::Int32, &[3, 0]).unwrap().to_string(), "tensor[i32, 2]{[3, 0]: }");
        let view = Value::from(Tensor::scalar(7_i64).broadcast_to(&[1 << 20, 1 << 20]).unwrap());
        assert_eq!(view.qtype(), QType::Tensor(Scalar::Int64, 2));
        let shown = "tensor[i64, 2]{[1048576, 1048576]: 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, ... (1099511627776 elements)}";
        assert_eq!(view.to_string(), shown);
        assert!(format!("{view:?}").len() < 400, "{view:?}");
    }
}
