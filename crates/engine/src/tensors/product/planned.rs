//! Products that were planned once, for operands of these types and layouts, and what keeps those that it has met. How they are computed
//! is said by their plans, not here.

use super::number::Number;
use super::{ProductCounters, run_into};
use crate::code::cache::{Cache, NewValue, hash_of};
use cembra_runtime::Scalar;
use cembra_tensor::walk::{GoOn, Watch};
use cembra_tensor::{
    Data, DataMut, Extents, Labels, Layout, MatrixProduct, ProductPlan, Tensor, TensorBytes, TensorErrorKind,
};
use cembra_value::Error;
use cembra_value::tensor::no_element;
use std::sync::Arc;

/// What a product is planned for of an operand: the type of its elements, and its layout.
pub(crate) type OperandForm<'o> = (Scalar, &'o Layout);

pub(super) fn form_of(operand: &Tensor) -> OperandForm<'_> {
    (operand.scalar_type(), operand.layout())
}

/// What is multiplied: labels, and operands of some type, extents and strides.
#[derive(Clone, Debug)]
struct Factors {
    labels: Labels,
    layouts: [Layout; 2],
    scalar: Scalar,
}

impl Factors {
    /// True if these operands are as those. They may begin elsewhere in their memory.
    fn fit(&self, operands: [OperandForm<'_>; 2]) -> bool {
        let is_like =
            |(known, (scalar, layout)): (&Layout, OperandForm<'_>)| known.lies_as(layout) && self.scalar == scalar;
        self.layouts.iter().zip(operands).all(is_like)
    }
}

/// A product by labels of operands of some type, extents and strides: all that is known of it but the elements, and where the first are.
#[derive(Debug)]
pub(super) struct Form {
    factors: Factors,
    /// Those of the result.
    extents: Extents,
    /// The number of elements of the result.
    len: usize,
    plan: ProductPlan,
}

impl Form {
    pub(super) fn of(labels: &Labels, operands: [OperandForm<'_>; 2]) -> Result<Form, Error> {
        let [left, right] = operands.map(|(scalar, _)| scalar);
        if left != right {
            let message = format!("a product of elements of type {} and {}", left.short_name(), right.short_name());
            return Err(Error::tensors(TensorErrorKind::ElementType, message).hint("cast one of them"));
        }
        let bytes = Data::element_size(left).ok_or_else(|| no_element_of_products(left))?;
        let extents = labels.output_extents(&operands.map(|(_, layout)| layout.extents()))?;
        let plan = ProductPlan::of(labels, operands.map(|(_, layout)| layout), bytes)?;
        let layouts = operands.map(|(_, layout)| layout.clone());
        let len = extents.iter().product();
        Ok(Form { factors: Factors { labels: labels.clone(), layouts, scalar: left }, extents, len, plan })
    }

    /// The product as memory of its own.
    pub(super) fn contract(
        &self,
        operands: [&Tensor; 2],
        extents: &[usize],
        matrices: &dyn MatrixProduct,
    ) -> Result<(Data, ProductCounters), Error> {
        if self.extents[..] != *extents {
            let message = format!("a product of {:?} is not of {extents:?}", &self.extents[..]);
            return Err(Error::tensors(TensorErrorKind::SizeMismatch, message));
        }
        let mut made = Data::zeros(self.factors.scalar, self.len)?;
        let counters = self.run_into(operands, &mut made, 0, matrices)?;
        Ok((made, counters))
    }

    /// The product of operands like those that it was planned for, over what is in memory from a position on.
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

    /// The same of memory of operands, and the positions where they begin, unless it is to end before.
    fn run_at(
        &self,
        factors: &[(&Data, usize); 2],
        to: &mut DataMut<'_>,
        matrices: &dyn MatrixProduct,
        go_on: GoOn<'_>,
        counters: &mut ProductCounters,
    ) -> Result<(), Error> {
        let watch = &mut Watch::new(go_on);
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
        watch: &mut Watch<'_>,
        counters: &mut ProductCounters,
    ) -> Result<(), Error> {
        let to = T::of_part(to.reborrow()).filter(|to| to.len() == self.len);
        let (Some(a), Some(b), Some(to)) = (T::of(left), T::of(right), to) else {
            return Err(Error::tensors(
                TensorErrorKind::ElementType,
                "a product of other elements than it was planned for",
            ));
        };
        run_into(&self.plan, &[(a, *a_first), (b, *b_first)], to, matrices, watch, counters)
    }
}

/// `len` elements of memory from a position on.
fn part(to: &mut Data, first: usize, len: usize) -> Result<DataMut<'_>, Error> {
    let memory = to.len();
    let others = to.all_mut().split_at(first).and_then(|[_, others]| others.split_at(len));
    others.map(|[part, _]| part).ok_or_else(|| {
        let message = format!("a product of {len} elements from {first} on is not within memory of {memory}");
        Error::tensors(TensorErrorKind::Index, message)
    })
}

#[cold]
fn no_element_of_products(scalar: Scalar) -> Error {
    no_element(scalar).hint("elements of products are i32, i64, f32 or f64")
}

/// A product that was planned, to be run as often as one likes, and by several threads at once. Nothing is looked up for a run.
#[derive(Debug)]
pub struct PlannedProduct {
    form: Form,
    matrices: &'static dyn MatrixProduct,
}

impl PlannedProduct {
    /// True if these operands have the type, the extents and the strides that it was planned for. They may begin elsewhere in their memory.
    #[must_use]
    pub fn fits(&self, operands: [&Tensor; 2]) -> bool {
        self.form.factors.fit(operands.map(form_of))
    }

    /// The extents of the result.
    #[must_use]
    pub fn extents(&self) -> &[usize] {
        &self.form.extents
    }

    /// The product of operands like those that it was planned for. Its elements are written one after the other over what is in memory,
    /// from a position on. Where that is refused, the memory is as it was.
    ///
    /// # Errors
    /// The operands are other ones than those that it was planned for, or the memory has other elements or too few.
    pub fn run_into(&self, operands: [&Tensor; 2], to: &mut Data, first: usize) -> Result<ProductCounters, Error> {
        if !self.fits(operands) {
            return Err(Error::tensors(
                TensorErrorKind::SizeMismatch,
                "a product of other operands than it was planned for",
            ));
        }
        self.form.run_into(operands, to, first, self.matrices)
    }

    /// How many indices of the first axis make a panel, a product of its own, if the product has several.
    pub(crate) fn panel(&self) -> Option<usize> {
        let Form { factors: Factors { labels, .. }, extents, plan, .. } = &self.form;
        let (first, extent) = (labels.output.first()?, extents.first()?);
        let has: [bool; 2] = std::array::from_fn(|of| labels.operands.get(of).is_some_and(|own| own.contains(first)));
        plan.panel(*extent, has)
    }

    /// The same of the memory of such operands, and the positions where they begin, unless it is to end before.
    pub(crate) fn run_at(
        &self,
        factors: &[(&Data, usize); 2],
        to: &mut DataMut<'_>,
        go_on: GoOn<'_>,
        counters: &mut ProductCounters,
    ) -> Result<(), Error> {
        self.form.run_at(factors, to, self.matrices, go_on, counters)
    }

    /// What is made beside the result while it runs, each by its type and its size.
    pub(crate) fn temporaries(&self) -> impl Iterator<Item = (Scalar, usize)> {
        self.form.plan.temporaries(self.form.len).map(|len| (self.form.factors.scalar, len))
    }

    /// An error if the result, and what is copied for it, would take more bytes than they may.
    ///
    /// # Errors
    /// They would.
    pub fn check_bytes(&self, most: u64) -> Result<(), Error> {
        let mut held = TensorBytes::none(most);
        held.take(self.form.factors.scalar, &self.form.extents)?;
        self.temporaries().try_for_each(|(scalar, len)| held.take(scalar, &[len]))
    }
}

/// The most products whose plans are kept.
const MOST_KNOWN: usize = 1024;

/// What computes products of two operands, and keeps the plans of those that it has met. Shared between threads.
#[derive(Debug)]
pub struct Products {
    matrices: &'static dyn MatrixProduct,
    known: Cache<Factors, Result<Arc<PlannedProduct>, Error>>,
}

impl Products {
    /// Products by way of these products of matrices.
    #[must_use]
    pub fn new(matrices: &'static dyn MatrixProduct) -> Products {
        Products { matrices, known: Cache::new(MOST_KNOWN) }
    }

    /// The product of two operands by labels, as [`contract`](crate::contract) gives it.
    ///
    /// # Errors
    /// As for [`contract`](crate::contract).
    pub fn contract(
        &self,
        labels: &Labels,
        operands: [&Tensor; 2],
        extents: &[usize],
    ) -> Result<(Data, ProductCounters), Error> {
        self.planned(labels, operands)?.form.contract(operands, extents, self.matrices)
    }

    /// The product by these labels of operands of these types, extents and strides, planned: for who runs it more than once.
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
    /// The labels are not two lists, the operands do not fit them, or their elements are of two types or no numbers.
    pub fn planned(&self, labels: &Labels, operands: [&Tensor; 2]) -> Result<Arc<PlannedProduct>, Error> {
        self.planned_for(labels, operands.map(form_of))
    }

    /// The same, of operands whose elements are not there yet.
    pub(crate) fn planned_for(
        &self,
        labels: &Labels,
        operands: [OperandForm<'_>; 2],
    ) -> Result<Arc<PlannedProduct>, Error> {
        let of = operands.map(|(scalar, layout)| (layout.extents(), layout.strides(), scalar));
        let factors = || {
            let layouts = operands.map(|(_, layout)| layout.clone());
            Factors { labels: labels.clone(), layouts, scalar: operands[0].0 }
        };
        let make = || {
            let form = Form::of(labels, operands);
            let value = form.map(|form| Arc::new(PlannedProduct { form, matrices: self.matrices }));
            // An error is one of a call, and takes no memory here.
            NewValue { stays: value.is_ok(), value }
        };
        let is_it = |known: &Factors| known.labels == *labels && known.fit(operands);
        self.known.get(hash_of((labels, of)), is_it, factors, make)
    }
}
