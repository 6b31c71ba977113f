//! Products of two tensors by labels, beside the library of matrices called for the same numbers of rows, columns and terms; and what
//! follows a product beside the product alone.

use super::{Run, failed, measure, show};
use crate::Error;
use crate::measure::Effort;
use crate::record::Record;
use cembra::tensor::{CompileGraph, Element, TensorGraph, TensorNodeId};
use cembra::{Executor, Options, Scalar, Tensor};
use faer::linalg::matmul::matmul;
use faer::traits::ComplexField;
use faer::{Accum, MatMut, MatRef, Par};

/// A product by labels, all of one extent, and the matrices of the same size: how many products, rows, columns and terms.
struct Case {
    names: [&'static str; 2],
    labels: &'static str,
    extent: usize,
    matrices: [usize; 4],
}

const CASES: [Case; 7] = [
    square("product-64-f32", "product-64-f64", 64),
    square("product-512-f32", "product-512-f64", 512),
    square("product-1024-f32", "product-1024-f64", 1024),
    case("ijk,kl->ijl", [1, 128 * 128, 128, 128]),
    case("ijk,jl->lik", [1, 128 * 128, 128, 128]),
    case("bij,bjk->bik", [128, 128, 128, 128]),
    case("ijk,ikl->jil", [128, 128, 128, 128]),
];

const fn square(single: &'static str, double: &'static str, extent: usize) -> Case {
    Case { names: [single, double], labels: "ij,jk->ik", extent, matrices: [1, extent, extent, extent] }
}

const fn case(labels: &'static str, matrices: [usize; 4]) -> Case {
    Case { names: [labels, ""], labels, extent: 128, matrices }
}

pub(super) fn run(wants: &dyn Fn(&str) -> bool, effort: Effort, records: &mut Vec<Record>) -> Result<(), Error> {
    for case in &CASES {
        let [single, double] = case.names;
        if wants(single) {
            records.extend(product(single, case, |number| number as f32, effort)?);
        }
        if !double.is_empty() && wants(double) {
            records.extend(product(double, case, |number| number, effort)?);
        }
    }
    if wants(EPILOGUE) {
        records.extend(epilogue(effort)?);
    }
    Ok(())
}

/// Small whole numbers, whose sums of products are exact.
fn wholes<T>(count: usize, number: impl Fn(f64) -> T) -> Vec<T> {
    (0..count).map(|at| number((at * 7 % 5) as f64 - 2.0)).collect()
}

/// Products of matrices that lie one behind the other, into memory that is kept, as ours is.
fn by_library<T: ComplexField + Copy>(
    [left, right]: [&[T]; 2],
    [products, rows, columns, terms]: [usize; 4],
    one: T,
    to: &mut [T],
) {
    for product in 0..products {
        let left = &left[product * rows * terms..][..rows * terms];
        let right = &right[product * terms * columns..][..terms * columns];
        let to = &mut to[product * rows * columns..][..rows * columns];
        matmul(
            MatMut::from_row_major_slice_mut(to, rows, columns),
            Accum::Replace,
            MatRef::from_row_major_slice(left, rows, terms),
            MatRef::from_row_major_slice(right, terms, columns),
            one,
            Par::Seq,
        );
    }
}

fn product<T: Element + ComplexField + Into<f64>>(
    name: &'static str,
    case: &Case,
    number: fn(f64) -> T,
    effort: Effort,
) -> Result<Vec<Record>, Error> {
    let Case { labels, extent, matrices, .. } = case;
    let (operands, output) = labels.split_once("->").unwrap_or((labels, ""));
    let tensors = operands.split(',').map(|own| {
        let extents = vec![*extent; own.len()];
        Tensor::new(&extents, wholes(extents.iter().product(), number))
    });
    let inputs = tensors.collect::<Result<Vec<Tensor>, _>>().map_err(failed(name))?;
    let mut session = by_labels(labels, &inputs).map_err(failed(name))?.session();
    // The limit has the same sizes, and only for plain matrices the same numbers.
    let is_same = output.len() == 2;
    let shown = |elements: &[T], to: Option<&mut Vec<f64>>| show(elements, to.filter(|_| is_same));
    let ours: Run<'_> = Box::new(|to| {
        let made = session.run_tensors(&inputs).map_err(failed(name))?;
        shown(T::of(made[0].data()).unwrap_or_default(), to);
        Ok(())
    });
    let [products, rows, columns, terms] = *matrices;
    let (left, right) = (wholes(products * rows * terms, number), wholes(products * terms * columns, number));
    let mut to = vec![number(0.0); products * rows * columns];
    let limit: Run<'_> = Box::new(|shows| {
        by_library([&left, &right], *matrices, number(1.0), &mut to);
        shown(&to, shows);
        Ok(())
    });
    measure(name, [ours, limit], 1e-6, effort)
}

/// A product of tensors, compiled.
fn by_labels(labels: &str, inputs: &[Tensor]) -> Result<Executor, cembra::Error> {
    let mut g = TensorGraph::standard();
    let leaves = inputs.iter().map(|input| g.leaf("", input.scalar_type(), input.extents()));
    let leaves = leaves.collect::<Result<Vec<TensorNodeId>, _>>()?;
    let product = g.einsum(labels, &leaves)?;
    g.compile(&[product], &Options::default())
}

const EPILOGUE: &str = "relu(2ab+bias)-512-f32";

/// A product and what follows it beside the product alone.
fn epilogue(effort: Effort) -> Result<Vec<Record>, Error> {
    const EXTENT: usize = 512;
    let (graph, output) = positive_part(EXTENT).map_err(failed(EPILOGUE))?;
    let executor = graph.compile(&[output], &Options::default()).map_err(failed(EPILOGUE))?;
    let square = wholes(EXTENT * EXTENT, |number| number as f32);
    let matrix = Tensor::new(&[EXTENT; 2], square.clone()).map_err(failed(EPILOGUE))?;
    let bias = Tensor::new(&[EXTENT], wholes(EXTENT, |number| number as f32)).map_err(failed(EPILOGUE))?;
    let inputs = [matrix.clone(), matrix, bias];
    let mut session = executor.session();
    // The limit is the product alone: there is nothing to compare.
    let ours: Run<'_> = Box::new(|_| {
        let made = session.run_tensors(&inputs).map_err(failed(EPILOGUE))?;
        show(f32::of(made[0].data()).unwrap_or_default(), None);
        Ok(())
    });
    let mut to = vec![0.0_f32; EXTENT * EXTENT];
    let limit: Run<'_> = Box::new(|_| {
        by_library([&square, &square], [1, EXTENT, EXTENT, EXTENT], 1.0, &mut to);
        show(&to, None);
        Ok(())
    });
    measure(EPILOGUE, [ours, limit], 0.0, effort)
}

fn positive_part(extent: usize) -> Result<(TensorGraph, TensorNodeId), cembra::Error> {
    let mut g = TensorGraph::standard();
    let a = g.leaf("a", Scalar::Float32, &[extent; 2])?;
    let b = g.leaf("b", Scalar::Float32, &[extent; 2])?;
    let bias = g.leaf("bias", Scalar::Float32, &[extent])?;
    let product = g.einsum("ij,jk->ik", &[a, b])?;
    let two = g.constant(Scalar::Float32, 2.0)?;
    let twice = g.apply("math.multiply", &[two, product])?;
    let sum = g.apply("math.add", &[twice, bias])?;
    let zero = g.constant(Scalar::Float32, 0.0)?;
    let positive = g.apply("maximum", &[sum, zero])?;
    Ok((g, positive))
}
