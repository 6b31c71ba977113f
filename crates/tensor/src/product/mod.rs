//! Products of two operands by labels, the fast way: a plan made from labels and layouts, and what carries it out by products of matrices.
//! What products mean is said by the reference; results are as near to it as the sums of products of matrices are exact.

mod matrix;
mod nest;
mod number;
mod plan;
mod walk;

pub use matrix::{MatrixLayout, MatrixProduct, Multiplication, PlainProduct};
pub use plan::{CopiedAxis, Kernel, Preparation, ProductPlan, Run};

use crate::element::no_element;
use crate::node::Labels;
use crate::{Data, Error, ErrorKind, Extents, Layout, Tensor};
use cembra_runtime::Scalar;
use nest::{Memory, nest};
use number::Number;
use rustc_hash::{FxBuildHasher, FxHashMap};
use smallvec::SmallVec;
use std::hash::BuildHasher;
use std::ops::AddAssign;
use std::sync::{Arc, Mutex, PoisonError};
use walk::{WalkedAxis, copy, walk};

/// What products by labels took.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Products of matrices.
    pub gemm_calls: u64,
    /// Operands and results that were copied into another order.
    pub permutes: u64,
    /// The bytes of what was copied, counted once.
    pub permute_bytes: u64,
    /// Memory that was made beside the result.
    pub temporaries: u64,
}

impl AddAssign for Counters {
    fn add_assign(&mut self, other: Counters) {
        self.gemm_calls += other.gemm_calls;
        self.permutes += other.permutes;
        self.permute_bytes += other.permute_bytes;
        self.temporaries += other.temporaries;
    }
}

/// The product of two operands by labels, summed over the labels that the result does not have. Its elements are those of the result's
/// indices in their order.
///
/// Integers wrap, and are what the reference makes of them. So are products without sums, bit for bit. Sums of floats are added in another
/// order: in FLOAT64 where no matrices are multiplied, as `matrices` adds them where they are.
///
/// ```
/// use cembra_tensor::{Data, Labels, PlainProduct, Tensor, contract};
///
/// let labels = Labels { operands: vec![[0, 1][..].into(), [1, 2][..].into()], output: [0, 2][..].into() };
/// let a = Tensor::new(&[2, 2], vec![1.0, 2.0, 3.0, 4.0])?;
/// let (made, counters) = contract(&labels, [&a, &a.transposed(&[1, 0])?], &[2, 2], &PlainProduct)?;
/// assert_eq!(made, Data::Float64(vec![5.0, 11.0, 11.0, 25.0]));
/// assert_eq!((counters.gemm_calls, counters.permutes), (1, 0));
/// # Ok::<(), cembra_tensor::Error>(())
/// ```
///
/// # Errors
/// There are not two lists of labels, the operands or the extents do not fit them, or the operands' elements are of two types or no numbers.
pub fn contract(
    labels: &Labels,
    operands: [&Tensor; 2],
    extents: &[usize],
    matrices: &dyn MatrixProduct,
) -> Result<(Data, Counters), Error> {
    let known = Known::of(labels, operands)?;
    known.run(operands, extents, matrices)
}

/// A product that was planned: for operands of these layouts it is as it was planned.
#[derive(Debug)]
struct Known {
    labels: Labels,
    layouts: [Layout; 2],
    scalar: Scalar,
    /// Those of the result.
    extents: Extents,
    plan: ProductPlan,
}

impl Known {
    fn of(labels: &Labels, operands: [&Tensor; 2]) -> Result<Known, Error> {
        let [left, right] = operands.map(Tensor::scalar_type);
        if left != right {
            let message = format!("a product of elements of type {} and {}", left.name(), right.name());
            return Err(Error::new(ErrorKind::ElementType, message).hint("cast one of them"));
        }
        let bytes = Data::element_size(left).ok_or_else(|| no_element_of_products(left))?;
        let extents = labels.output_extents(&operands.map(Tensor::extents))?;
        let plan = ProductPlan::of(labels, operands.map(Tensor::layout), bytes)?;
        let layouts = operands.map(|operand| operand.layout().clone());
        Ok(Known { labels: labels.clone(), layouts, scalar: left, extents, plan })
    }

    /// True if it is the product by these labels of such operands.
    fn is_of(&self, labels: &Labels, operands: [&Tensor; 2]) -> bool {
        let is_like =
            |(layout, operand): (&Layout, &Tensor)| layout == operand.layout() && self.scalar == operand.scalar_type();
        self.labels == *labels && self.layouts.iter().zip(operands).all(is_like)
    }

    fn run(
        &self,
        operands: [&Tensor; 2],
        extents: &[usize],
        matrices: &dyn MatrixProduct,
    ) -> Result<(Data, Counters), Error> {
        if self.extents[..] != *extents {
            let message = format!("a product of {:?} is not of {extents:?}", &self.extents[..]);
            return Err(Error::new(ErrorKind::SizeMismatch, message));
        }
        let (plan, len) = (&self.plan, extents.iter().product());
        match (&**operands[0].data(), &**operands[1].data()) {
            (Data::Int32(a), Data::Int32(b)) => run(plan, operands, [a, b], len, matrices),
            (Data::Int64(a), Data::Int64(b)) => run(plan, operands, [a, b], len, matrices),
            (Data::Float32(a), Data::Float32(b)) => run(plan, operands, [a, b], len, matrices),
            (Data::Float64(a), Data::Float64(b)) => run(plan, operands, [a, b], len, matrices),
            _ => Err(no_element_of_products(operands[0].scalar_type())),
        }
    }
}

/// The most products whose plans are kept.
const MOST_KNOWN: usize = 1024;

/// What computes products of two operands, and keeps the plans of those that it has met. Shared between threads.
#[derive(Debug)]
pub struct Products {
    matrices: &'static dyn MatrixProduct,
    /// By the hashes of what they are of.
    known: Mutex<FxHashMap<u64, Arc<Known>>>,
}

impl Products {
    /// Products by way of these products of matrices.
    #[must_use]
    pub fn new(matrices: &'static dyn MatrixProduct) -> Products {
        Products { matrices, known: Mutex::default() }
    }

    /// The product of two operands by labels, as [`contract`] gives it.
    ///
    /// # Errors
    /// As for [`contract`].
    pub fn contract(
        &self,
        labels: &Labels,
        operands: [&Tensor; 2],
        extents: &[usize],
    ) -> Result<(Data, Counters), Error> {
        self.known(labels, operands)?.run(operands, extents, self.matrices)
    }

    fn known(&self, labels: &Labels, operands: [&Tensor; 2]) -> Result<Arc<Known>, Error> {
        let of = (labels, operands.map(|operand| (operand.layout(), operand.scalar_type())));
        let hash = FxBuildHasher.hash_one(of);
        let all = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = all().get(&hash).filter(|known| known.is_of(labels, operands)) {
            return Ok(known.clone());
        }
        let made = Arc::new(Known::of(labels, operands)?);
        let mut all = all();
        if all.len() == MOST_KNOWN {
            all.clear();
        }
        all.insert(hash, made.clone());
        Ok(made)
    }
}

#[cold]
fn no_element_of_products(scalar: Scalar) -> Error {
    no_element(scalar).hint("elements of products are i32, i64, f32 or f64")
}

fn run<T: Number>(
    plan: &ProductPlan,
    operands: [&Tensor; 2],
    elements: [&[T]; 2],
    len: usize,
    matrices: &dyn MatrixProduct,
) -> Result<(Data, Counters), Error> {
    let mut counters = Counters::default();
    if plan.kernel == Kernel::Zeros {
        return Ok((T::data(vec![T::default(); len]), counters));
    }
    let mut prepared = |of: usize| {
        let first = operands[of].layout().offset();
        let made = prepare(&plan.operands[of], elements[of], first)?;
        counters.temporaries += 1;
        if matches!(plan.operands[of], Preparation::Permute(_)) {
            counters.permutes += 1;
            counters.permute_bytes += size_of_val(&*made) as u64;
        }
        Some(made)
    };
    let made = [prepared(0), prepared(1)];
    let memory = |of: usize| -> Memory<'_, T> {
        match &made[of] {
            Some(made) => (made, 0),
            None => (elements[of], operands[of].layout().offset()),
        }
    };
    let factors = [memory(0), memory(1)];
    let mut result = vec![T::default(); len];
    match &plan.kernel {
        Kernel::Zeros => {}
        Kernel::Nest { kept, summed, inner, is_sum } => {
            let zero = if *is_sum { T::Wide::default() } else { T::NOTHING };
            nest(factors, &mut result, (kept, summed), *inner, zero);
        }
        Kernel::Matrices { kept, summed, dimensions } => {
            counters.gemm_calls += multiply(factors, &mut result, (kept, summed), *dimensions, matrices)?;
        }
    }
    if let Some(axes) = &plan.result {
        let mut ordered = vec![T::default(); len];
        copy(&result, 0, &mut ordered, axes);
        counters.permutes += 1;
        counters.permute_bytes += size_of_val(&*ordered) as u64;
        counters.temporaries += 1;
        result = ordered;
    }
    Ok((T::data(result), counters))
}

/// An operand as it is needed, if it is not yet.
fn prepare<T: Number>(preparation: &Preparation, elements: &[T], first: usize) -> Option<Vec<T>> {
    let zeros = |axes: &[CopiedAxis]| vec![T::default(); axes.iter().map(|axis| axis.extent).product()];
    match preparation {
        Preparation::None => None,
        Preparation::Permute(axes) => {
            let mut made = zeros(axes);
            copy(elements, first, &mut made, axes);
            Some(made)
        }
        Preparation::Sum(axes, summed) => {
            let mut made = zeros(axes);
            let kept: SmallVec<[WalkedAxis<2>; 6]> =
                axes.iter().map(|axis| (axis.extent, [axis.from, axis.to])).collect();
            let summed: SmallVec<[WalkedAxis<1>; 6]> =
                summed.iter().map(|(extent, stride)| (*extent, [*stride])).collect();
            walk(&kept, [first, 0], |[from, to]| {
                let mut sum = T::Wide::default();
                walk(&summed, [from], |[at]| sum = T::add(sum, elements[at]));
                made[to] = T::narrow(sum);
            });
            Some(made)
        }
    }
}

/// A product of matrices for all indices of what is looped over; how many there were.
fn multiply<T: Number>(
    [(a, a_first), (b, b_first)]: [Memory<'_, T>; 2],
    to: &mut [T],
    (kept, summed): (&[Run], &[Run]),
    [rows, columns, terms]: [Run; 3],
    matrices: &dyn MatrixProduct,
) -> Result<u64, Error> {
    let axes =
        |runs: &[Run]| -> SmallVec<[WalkedAxis<3>; 6]> { runs.iter().map(|run| (run.extent, run.strides)).collect() };
    let matrix = |of: usize, down: Run, along: Run, offset: usize| MatrixLayout {
        offset,
        rows: down.extent,
        columns: along.extent,
        row_stride: down.strides[of],
        column_stride: along.strides[of],
    };
    let mut calls = 0;
    let mut refused = None;
    let (kept, summed) = (axes(kept), axes(summed));
    walk(&kept, [a_first, b_first, 0], |starts| {
        let mut adds = false;
        walk(&summed, starts, |[a_at, b_at, at]| {
            let product = Multiplication::new(
                (to, matrix(2, rows, columns, at)),
                (a, matrix(0, rows, terms, a_at)),
                (b, matrix(1, terms, columns, b_at)),
                adds,
            );
            match product {
                Ok(product) => T::multiply(matrices, product),
                Err(error) => refused = Some(error),
            }
            adds = true;
            calls += 1;
        });
    });
    refused.map_or(Ok(calls), Err)
}
