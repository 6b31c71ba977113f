//! Products by labels (einsum of two operands) that are planned once for operands of given types and layouts, and the cache of such plans. A plan
//! decides how the product is computed.

use super::number::Number;
use super::{ProductCounters, run_into};
use crate::code::cache::{Cache, NewValue, hash_of};
use cembra_runtime::Scalar;
use cembra_tensor::walk::{StopCheck, VisitCounter};
use cembra_tensor::{
    Data, DataMut, Extents, Labels, Layout, MatrixProduct, ProductPlan, Tensor, TensorBytes, TensorErrorKind,
};
use cembra_value::Error;
use cembra_value::tensor::no_element;
use std::sync::Arc;

/// The element type and the layout of an operand for which a product is planned.
pub(crate) type OperandForm<'o> = (Scalar, &'o Layout);

pub(super) fn form_of(operand: &Tensor) -> OperandForm<'_> {
    (operand.scalar_type(), operand.layout())
}

/// The key of a planned product: labels, and the element type and the layouts of the operands.
#[derive(Clone, Debug)]
struct ProductKey {
    labels: Labels,
    layouts: [Layout; 2],
    scalar: Scalar,
}

impl ProductKey {
    /// Returns true if these operands have the same type, extents and strides. Their offsets in memory may differ.
    fn fit(&self, operands: [OperandForm<'_>; 2]) -> bool {
        let is_like =
            |(known, (scalar, layout)): (&Layout, OperandForm<'_>)| known.lies_as(layout) && self.scalar == scalar;
        self.layouts.iter().zip(operands).all(is_like)
    }
}

/// A plan of a product by labels (einsum of two operands), for operands of given types, extents and strides. Only the elements and their offsets in
/// memory are given at each run.
#[derive(Debug)]
pub(super) struct TypedProductPlan {
    factors: ProductKey,
    /// The extents of the result.
    extents: Extents,
    /// The number of elements of the result.
    len: usize,
    plan: ProductPlan,
}

impl TypedProductPlan {
    pub(super) fn of(labels: &Labels, operands: [OperandForm<'_>; 2]) -> Result<TypedProductPlan, Error> {
        let [left, right] = operands.map(|(scalar, _)| scalar);
        if left != right {
            let message =
                format!("a product cannot have elements of type {} and {}", left.short_name(), right.short_name());
            return Err(Error::tensors(TensorErrorKind::ElementType, message).hint("cast one of the tensors"));
        }
        let bytes = Data::element_size(left).ok_or_else(|| no_element_of_products(left))?;
        let extents = labels.output_extents(&operands.map(|(_, layout)| layout.extents()))?;
        let plan = ProductPlan::of(labels, operands.map(|(_, layout)| layout), bytes)?;
        let layouts = operands.map(|(_, layout)| layout.clone());
        let len = extents.iter().product();
        Ok(TypedProductPlan {
            factors: ProductKey { labels: labels.clone(), layouts, scalar: left },
            extents,
            len,
            plan,
        })
    }

    /// Computes the product of two operands; the result has new memory.
    pub(super) fn contract(
        &self,
        operands: [&Tensor; 2],
        extents: &[usize],
        matrices: &dyn MatrixProduct,
    ) -> Result<(Data, ProductCounters), Error> {
        if self.extents[..] != *extents {
            let message = format!("a product has the extents {:?}, not {extents:?}", &self.extents[..]);
            return Err(Error::tensors(TensorErrorKind::SizeMismatch, message));
        }
        let mut made = Data::zeros(self.factors.scalar, self.len)?;
        let counters = self.run_into(operands, &mut made, 0, matrices)?;
        Ok((made, counters))
    }

    /// Computes the product of operands with the planned types and layouts, and overwrites `to` from position `first`
    /// on.
    fn run_into(
        &self,
        operands: [&Tensor; 2],
        to: &mut Data,
        first: usize,
        matrices: &dyn MatrixProduct,
    ) -> Result<ProductCounters, Error> {
        let mut to = part(to, first, self.len)?;
        let factors = operands.map(|operand| (operand.data(), operand.layout().offset()));
        let mut counters = ProductCounters::default();
        self.run_at(&factors, &mut to, matrices, &|| Ok(()), &mut counters)?;
        Ok(counters)
    }

    /// Computes the product of the operands that begin at these positions of memory. Stops with an error if `go_on`
    /// returns one.
    fn run_at(
        &self,
        factors: &[(&Data, usize); 2],
        to: &mut DataMut<'_>,
        matrices: &dyn MatrixProduct,
        go_on: StopCheck<'_>,
        counters: &mut ProductCounters,
    ) -> Result<(), Error> {
        let watch = &mut VisitCounter::new(go_on);
        match self.factors.scalar {
            Scalar::Int32 => self.run_typed::<i32>(factors, to, matrices, watch, counters),
            Scalar::Int64 => self.run_typed::<i64>(factors, to, matrices, watch, counters),
            Scalar::Float32 => self.run_typed::<f32>(factors, to, matrices, watch, counters),
            Scalar::Float64 => self.run_typed::<f64>(factors, to, matrices, watch, counters),
            other => Err(no_element_of_products(other)),
        }
    }

    fn run_typed<T: Number>(
        &self,
        [(left, a_first), (right, b_first)]: &[(&Data, usize); 2],
        to: &mut DataMut<'_>,
        matrices: &dyn MatrixProduct,
        watch: &mut VisitCounter<'_>,
        counters: &mut ProductCounters,
    ) -> Result<(), Error> {
        let to = T::of_part(to.reborrow()).filter(|to| to.len() == self.len);
        let (Some(a), Some(b), Some(to)) = (T::of(left), T::of(right), to) else {
            return Err(Error::tensors(
                TensorErrorKind::ElementType,
                "a product was planned for another type of elements",
            ));
        };
        run_into(&self.plan, &[(a, *a_first), (b, *b_first)], to, matrices, watch, counters)
    }
}

/// Returns `len` elements of memory from position `first` on.
fn part(to: &mut Data, first: usize, len: usize) -> Result<DataMut<'_>, Error> {
    let memory = to.len();
    let others = to.all_mut().split_at(first).and_then(|[_, others]| others.split_at(len));
    others.map(|[part, _]| part).ok_or_else(|| {
        let message = format!(
            "a product of {len} elements from position {first} on does not fit into {memory} elements of memory"
        );
        Error::tensors(TensorErrorKind::Index, message)
    })
}

#[cold]
fn no_element_of_products(scalar: Scalar) -> Error {
    no_element(scalar).hint("the elements of a product must be i32, i64, f32 or f64")
}

/// A product by labels (einsum of two operands), planned for operands of given types and layouts. The planned product can run any number of times,
/// and on several threads at once. A run looks nothing up in a cache.
#[derive(Debug)]
pub struct PlannedProduct {
    form: TypedProductPlan,
    matrices: &'static dyn MatrixProduct,
}

impl PlannedProduct {
    /// Returns true if `operands` have the planned types, extents and strides. Their offsets in memory may differ.
    #[must_use]
    pub fn fits(&self, operands: [&Tensor; 2]) -> bool {
        self.form.factors.fit(operands.map(form_of))
    }

    /// The extents of the product's result.
    #[must_use]
    pub fn extents(&self) -> &[usize] {
        &self.form.extents
    }

    /// Computes the product of `operands`, which must have the planned types and layouts. The result's elements overwrite `to` contiguously from
    /// position `first` on. If an error is returned, `to` is unchanged.
    ///
    /// # Errors
    /// If the operands do not have the planned types and layouts, or `to` has elements of another type, or too few elements.
    pub fn run_into(&self, operands: [&Tensor; 2], to: &mut Data, first: usize) -> Result<ProductCounters, Error> {
        if !self.fits(operands) {
            return Err(Error::tensors(
                TensorErrorKind::SizeMismatch,
                "a product was planned for operands with other types or extents",
            ));
        }
        self.form.run_into(operands, to, first, self.matrices)
    }

    /// The number of indices of the first axis per panel (a range of that axis); `None` if the product is not divided
    /// into panels.
    pub(crate) fn panel(&self) -> Option<usize> {
        let TypedProductPlan { factors: ProductKey { labels, .. }, extents, plan, .. } = &self.form;
        let (first, extent) = (labels.output.first()?, extents.first()?);
        let has: [bool; 2] = std::array::from_fn(|of| labels.operands.get(of).is_some_and(|own| own.contains(first)));
        plan.panel(*extent, has)
    }

    /// Computes the product of operands whose first elements are at these positions of memory. Stops with an error if `go_on` returns one.
    pub(crate) fn run_at(
        &self,
        factors: &[(&Data, usize); 2],
        to: &mut DataMut<'_>,
        go_on: StopCheck<'_>,
        counters: &mut ProductCounters,
    ) -> Result<(), Error> {
        self.form.run_at(factors, to, self.matrices, go_on, counters)
    }

    /// The temporary arrays that a run allocates, each by its element type and length.
    pub(crate) fn temporaries(&self) -> impl Iterator<Item = (Scalar, usize)> {
        self.form.plan.temporaries(self.form.len).map(|len| (self.form.factors.scalar, len))
    }

    /// Checks that the result and the temporary arrays together take at most `most` bytes.
    ///
    /// # Errors
    /// If the result and the temporary arrays take more bytes.
    pub fn check_bytes(&self, most: u64) -> Result<(), Error> {
        let mut held = TensorBytes::with_limit(most);
        held.take(self.form.factors.scalar, &self.form.extents)?;
        self.temporaries().try_for_each(|(scalar, len)| held.take(scalar, &[len]))
    }
}

/// The most planned products in the cache.
const MOST_KNOWN: usize = 1024;

/// A cache of product plans, which computes products of two operands by labels (as in einsum). It can be shared between threads.
#[derive(Debug)]
pub struct Products {
    matrices: &'static dyn MatrixProduct,
    known: Cache<ProductKey, Result<Arc<PlannedProduct>, Error>>,
}

impl Products {
    /// Makes an empty cache of product plans, which computes matrix products by `matrices`.
    #[must_use]
    pub fn new(matrices: &'static dyn MatrixProduct) -> Products {
        Products { matrices, known: Cache::new(MOST_KNOWN) }
    }

    /// Computes the product of two operands by labels, as [`contract`](crate::contract) does.
    ///
    /// # Errors
    /// The errors of [`contract`](crate::contract).
    pub fn contract(
        &self,
        labels: &Labels,
        operands: [&Tensor; 2],
        extents: &[usize],
    ) -> Result<(Data, ProductCounters), Error> {
        self.planned(labels, operands)?.form.contract(operands, extents, self.matrices)
    }

    /// Returns the product planned for the labels `labels` and for operands of these types, extents and strides, so that it can run several times.
    ///
    /// ```
    /// use cembra_engine::{PlainProduct, Products};
    /// use cembra_tensor::{Element, Labels, Tensor};
    ///
    /// let products = Products::new(&PlainProduct);
    /// let labels = Labels { operands: vec![[0, 1][..].into(), [1][..].into()], output: [0][..].into() };
    /// let (a, x) = (Tensor::new(&[2, 2], vec![1.0, 2.0, 3.0, 4.0])?, Tensor::new(&[2], vec![10.0, 1.0])?);
    /// let planned = products.planned(&labels, [&a, &x])?;
    /// let mut to = f64::data(vec![-1.0; 3]);
    /// planned.run_into([&a, &x], &mut to, 1)?;
    /// assert_eq!(to, f64::data(vec![-1.0, 12.0, 34.0]));
    /// # Ok::<(), cembra_value::Error>(())
    /// ```
    ///
    /// # Errors
    /// If `labels` is not for two operands, the operands do not fit the labels, or the operands' elements have two types or are not numbers.
    pub fn planned(&self, labels: &Labels, operands: [&Tensor; 2]) -> Result<Arc<PlannedProduct>, Error> {
        self.planned_for(labels, operands.map(form_of))
    }

    /// Returns the product planned for operands of these types and layouts. The operands' elements need not exist yet.
    pub(crate) fn planned_for(
        &self,
        labels: &Labels,
        operands: [OperandForm<'_>; 2],
    ) -> Result<Arc<PlannedProduct>, Error> {
        let of = operands.map(|(scalar, layout)| (layout.extents(), layout.strides(), scalar));
        let factors = || {
            let layouts = operands.map(|(_, layout)| layout.clone());
            ProductKey { labels: labels.clone(), layouts, scalar: operands[0].0 }
        };
        let make = || {
            let form = TypedProductPlan::of(labels, operands);
            let value = form.map(|form| Arc::new(PlannedProduct { form, matrices: self.matrices }));
            // Errors are not cached.
            NewValue { stays: value.is_ok(), value }
        };
        let is_it = |known: &ProductKey| known.labels == *labels && known.fit(operands);
        self.known.get(hash_of((labels, of)), is_it, factors, make)
    }
}
