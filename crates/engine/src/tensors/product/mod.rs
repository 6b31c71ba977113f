//! Fast products of two operands by labels (as in einsum): runs their plans, by loops or by matrix products. The crate `cembra_tensor` plans
//! products, and defines their meaning by a reference. Results differ from the reference only in the rounding of float sums.

mod across;
mod direct;
mod nest;
mod number;
mod planned;
mod vectors;

pub use cembra_tensor::{MatrixLayout, MatrixProduct, Multiplication, PlainProduct};
pub use planned::{PlannedProduct, Products};

use cembra_tensor::walk::{CopiedAxis, VisitCounter, WalkedAxis, copy_axes, try_walk};
use cembra_tensor::{Data, FusedLabels, Kernel, Labels, Preparation, ProductPlan, Tensor};
use cembra_value::Error;
use cembra_value::tensor::zeros;
use direct::direct;
use nest::nest;
use number::{Memory, Number};
use planned::{TypedProductPlan, form_of};
use smallvec::SmallVec;
use std::ops::AddAssign;

/// Counts of the work that products by labels (einsum of two operands) have done: matrix products, copied operands, temporary arrays.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ProductCounters {
    /// The number of matrix products that were computed.
    pub gemm_calls: u64,
    /// The number of operands and results that were copied into another order.
    pub permutes: u64,
    /// The bytes that were copied into another order, each counted once.
    pub permute_bytes: u64,
    /// The number of temporary arrays that were allocated besides the results.
    pub temporaries: u64,
}

impl AddAssign for ProductCounters {
    fn add_assign(&mut self, other: ProductCounters) {
        self.gemm_calls += other.gemm_calls;
        self.permutes += other.permutes;
        self.permute_bytes += other.permute_bytes;
        self.temporaries += other.temporaries;
    }
}

/// Computes the product of two operands by labels (as in einsum), summed over the labels that the result does not have. The result's elements are in
/// row-major order.
///
/// Products of integers wrap and equal the reference, bit for bit; so do products without sums. Sums of floats are added in another order than in the
/// reference: loops add them in FLOAT64, and matrix products as `matrices` does.
///
/// ```
/// use cembra_engine::{PlainProduct, contract};
/// use cembra_tensor::{Element, Labels, Tensor};
///
/// let labels = Labels { operands: vec![[0, 1][..].into(), [1, 2][..].into()], output: [0, 2][..].into() };
/// let a = Tensor::new(&[2, 2], vec![1.0, 2.0, 3.0, 4.0])?;
/// let (made, counters) = contract(&labels, [&a, &a.transposed(&[1, 0])?], &[2, 2], &PlainProduct)?;
/// assert_eq!(made, f64::data(vec![5.0, 11.0, 11.0, 25.0]));
/// assert_eq!(counters.permutes, 0);
/// # Ok::<(), cembra_value::Error>(())
/// ```
///
/// # Errors
/// If `labels` is not for two operands, the operands or the extents do not fit the labels, or the operands' elements have two types or are not
/// numbers.
pub fn contract(
    labels: &Labels,
    operands: [&Tensor; 2],
    extents: &[usize],
    matrices: &dyn MatrixProduct,
) -> Result<(Data, ProductCounters), Error> {
    TypedProductPlan::of(labels, operands.map(form_of))?.contract(operands, extents, matrices)
}

/// Computes a product into `result`, which is overwritten completely. The operands begin at the positions in `factors`.
fn run_into<T: Number>(
    plan: &ProductPlan,
    factors: &[Memory<'_, T>; 2],
    result: &mut [T],
    matrices: &dyn MatrixProduct,
    watch: &mut VisitCounter<'_>,
    counters: &mut ProductCounters,
) -> Result<(), Error> {
    if let ([Preparation::None, Preparation::None], None) = (&plan.operands, &plan.result) {
        counters.gemm_calls += compute(&plan.kernel, factors, result, matrices, watch)?;
        return Ok(());
    }
    let mut prepared = |of: usize| {
        let made = prepare(&plan.operands[of], factors[of], watch)?;
        if let Some(made) = &made {
            counters.temporaries += 1;
            if matches!(plan.operands[of], Preparation::Permute(_)) {
                counters.permutes += 1;
                counters.permute_bytes += size_of_val(&**made) as u64;
            }
        }
        Ok::<_, Error>(made)
    };
    let made = [prepared(0)?, prepared(1)?];
    let memory = |of: usize| -> Memory<'_, T> {
        match &made[of] {
            Some(made) => (made, 0),
            None => factors[of],
        }
    };
    let factors = [memory(0), memory(1)];
    let Some(axes) = &plan.result else {
        counters.gemm_calls += compute(&plan.kernel, &factors, result, matrices, watch)?;
        return Ok(());
    };
    let mut unordered = zeros(result.len())?;
    counters.gemm_calls += compute(&plan.kernel, &factors, &mut unordered, matrices, watch)?;
    copy_axes(&unordered, 0, result, axes);
    counters.permutes += 1;
    counters.permute_bytes += size_of_val(result) as u64;
    counters.temporaries += 1;
    Ok(())
}

/// Computes a product of operands that are in the order that `kernel` needs; returns the number of matrix products.
fn compute<T: Number>(
    kernel: &Kernel,
    factors: &[Memory<'_, T>; 2],
    to: &mut [T],
    matrices: &dyn MatrixProduct,
    watch: &mut VisitCounter<'_>,
) -> Result<u64, Error> {
    let zero = |is_sum: bool| if is_sum { T::Wide::default() } else { T::NOTHING };
    match kernel {
        Kernel::Zeros => to.fill(T::default()),
        Kernel::Direct { kept, places, is_sum } => direct(factors, to, kept, places, zero(*is_sum), watch)?,
        Kernel::Nest { kept, summed, inner, is_sum } => {
            nest(*factors, to, kept, summed, *inner, zero(*is_sum), watch)?;
        }
        Kernel::Matrices { kept, summed, dimensions } => {
            return multiply(*factors, to, kept, summed, *dimensions, matrices, watch);
        }
    }
    Ok(0)
}

/// Copies an operand into another order, or sums it over labels, as the plan requires. `None` if the operand is used as
/// it is.
fn prepare<T: Number>(
    preparation: &Preparation,
    (elements, first): Memory<'_, T>,
    watch: &mut VisitCounter<'_>,
) -> Result<Option<Vec<T>>, Error> {
    let room = |axes: &[CopiedAxis]| zeros(axes.iter().map(|axis| axis.extent).product());
    match preparation {
        Preparation::None => Ok(None),
        Preparation::Permute(axes) => {
            let mut made = room(axes)?;
            copy_axes(elements, first, &mut made, axes);
            Ok(Some(made))
        }
        Preparation::Sum(axes, summed) => {
            let mut made = room(axes)?;
            let kept: SmallVec<[WalkedAxis<2>; 6]> =
                axes.iter().map(|axis| (axis.extent, [axis.from, axis.to])).collect();
            let summed: SmallVec<[WalkedAxis<1>; 6]> =
                summed.iter().map(|(extent, stride)| (*extent, [*stride])).collect();
            try_walk(&kept, [first, 0], |[from, to]| {
                let mut sum = T::Wide::default();
                try_walk(&summed, [from], |[at]| {
                    sum = T::add(sum, elements[at]);
                    watch.see(1)
                })?;
                made[to] = T::narrow(sum);
                Ok::<_, Error>(())
            })?;
            Ok(Some(made))
        }
    }
}

/// Computes a matrix product for each index of the outer loops; returns their number.
fn multiply<T: Number>(
    [(a, a_first), (b, b_first)]: [Memory<'_, T>; 2],
    to: &mut [T],
    kept: &[FusedLabels],
    summed: &[FusedLabels],
    [rows, columns, terms]: [FusedLabels; 3],
    matrices: &dyn MatrixProduct,
    watch: &mut VisitCounter<'_>,
) -> Result<u64, Error> {
    let axes = |runs: &[FusedLabels]| -> SmallVec<[WalkedAxis<3>; 6]> {
        runs.iter().map(|run| (run.extent, run.strides)).collect()
    };
    let matrix = |of: usize, down: FusedLabels, along: FusedLabels, offset: usize| MatrixLayout {
        offset,
        rows: down.extent,
        columns: along.extent,
        row_stride: down.strides[of],
        column_stride: along.strides[of],
    };
    let mut calls = 0;
    let each = [rows, columns, terms].map(|run| run.extent).into_iter().fold(1, usize::saturating_mul);
    let (kept, summed) = (axes(kept), axes(summed));
    try_walk(&kept, [a_first, b_first, 0], |starts| {
        let mut adds = false;
        try_walk(&summed, starts, |[a_at, b_at, at]| {
            watch.see(each)?;
            let product = Multiplication::new(
                (to, matrix(2, rows, columns, at)),
                (a, matrix(0, rows, terms, a_at)),
                (b, matrix(1, terms, columns, b_at)),
                adds,
            )?;
            T::multiply(matrices, product);
            adds = true;
            calls += 1;
            Ok::<_, Error>(())
        })
    })?;
    Ok(calls)
}
