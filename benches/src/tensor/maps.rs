//! Elementwise programs, sums and a loss beside hand-written loops of the same; products of a tensor and a vector in each of its axes beside
//! what the memory gives.

use super::{CEMBRA, Run, failed, measure, show};
use crate::Error;
use crate::batch::subject::has_512;
use crate::measure::{Effort, Task, interleave};
use crate::record::Record;
use crate::subject::LIMIT;
use cembra::tensor::{CompileGraph, Element, Reduction, TensorGraph, TensorNodeId};
use cembra::{Options, Scalar, Session, Tensor};

type Made<T> = Result<T, cembra::Error>;

/// A program over some inputs of so many elements.
struct Case {
    name: &'static str,
    len: usize,
    is_sum: bool,
}

const CASES: [Case; 6] = [
    Case { name: "chain-1e3", len: 1_000, is_sum: false },
    Case { name: "chain-1e5", len: 100_000, is_sum: false },
    Case { name: "chain-1e7", len: 10_000_000, is_sum: false },
    Case { name: "sum(a*b)-1e3", len: 1_000, is_sum: true },
    Case { name: "sum(a*b)-1e5", len: 100_000, is_sum: true },
    Case { name: "sum(a*b)-1e7", len: 10_000_000, is_sum: true },
];

/// The elements of a page of memory.
const PAGE: usize = 4096 / size_of::<f64>();

const LOSS: &str = "softmax-cross-entropy-4096x1024";

/// A product of a tensor of so many axes and a vector, over one of them.
const VECTORS: [(&str, usize, usize); 12] = [
    ("ttv-3-0", 3, 0),
    ("ttv-3-1", 3, 1),
    ("ttv-3-2", 3, 2),
    ("ttv-4-0", 4, 0),
    ("ttv-4-1", 4, 1),
    ("ttv-4-2", 4, 2),
    ("ttv-4-3", 4, 3),
    ("ttv-5-0", 5, 0),
    ("ttv-5-1", 5, 1),
    ("ttv-5-2", 5, 2),
    ("ttv-5-3", 5, 3),
    ("ttv-5-4", 5, 4),
];

pub(super) fn run(wants: &dyn Fn(&str) -> bool, effort: Effort, records: &mut Vec<Record>) -> Result<(), Error> {
    for case in CASES.iter().filter(|case| wants(case.name)) {
        records.extend(elementwise(case, effort).map_err(failed(case.name))??);
    }
    if wants(LOSS) {
        records.extend(loss(effort).map_err(failed(LOSS))??);
    }
    for (name, rank, axis) in VECTORS.into_iter().filter(|(name, _, _)| wants(name)) {
        records.extend(vector(name, (rank, axis), effort).map_err(failed(name))??);
    }
    Ok(())
}

/// Numbers between -1 and 1.
fn numbers(len: usize, seed: u64) -> Vec<f64> {
    let mut random = fastrand::Rng::with_seed(seed);
    (0..len).map(|_| 2.0 * random.f64() - 1.0).collect()
}

/// Runs a session, whose memory is kept, as that of the limit is.
fn ours<'i, T: Element + Into<f64>>(name: &'static str, mut session: Session, inputs: &'i [Tensor]) -> Run<'i> {
    Box::new(move |to| {
        let made = session.run_tensors(inputs).map_err(failed(name))?;
        show(T::of(made[0].data()).unwrap_or_default(), to);
        Ok(())
    })
}

/// Calls a function of the limit, with vectors where it is true that the processor has them.
macro_rules! limit {
    ($has_512:expr, $name:ident($($arg:expr),*)) => {
        if $has_512 {
            cembra_limit_columns_512::tensors::$name($($arg),*)
        } else {
            cembra_limit_columns_plain::tensors::$name($($arg),*)
        }
    };
}

fn elementwise(case: &Case, effort: Effort) -> Made<Result<Vec<Record>, Error>> {
    let (graph, output) = if case.is_sum { sum_of_products(case.len)? } else { chain(case.len)? };
    let executor = graph.compile(&[output], &Options::default())?;
    let columns: Vec<Vec<f64>> = (0..graph.leaves().len()).map(|at| numbers(case.len, at as u64)).collect();
    let tensors = columns.into_iter().map(|column| Tensor::new(&[case.len], column));
    let inputs = tensors.collect::<Result<Vec<Tensor>, _>>()?;
    // The same memory is read: how it is aligned counts for calls as short as these.
    let columns: Vec<&[f64]> = inputs.iter().filter_map(|input| f64::of(input.data())).collect();
    let has_512 = has_512();
    let mut session = executor.session();
    // A load waits for a store before it whose address has the same place in a page. Where outputs begin is nobody's merit: both begin at
    // one place of their pages.
    let made = f64::of(session.run_tensors(&inputs)?[0].data()).unwrap_or_default().as_ptr().addr();
    let limit: Run<'_> = if case.is_sum {
        Box::new(|to| {
            show(&[limit!(has_512, sum_of_products(columns[0], columns[1]))], to);
            Ok(())
        })
    } else {
        let columns = &columns;
        let (mut room, len) = (vec![0.0; case.len + PAGE], case.len);
        let skipped = made.wrapping_sub(room.as_ptr().addr()) / size_of::<f64>() % PAGE;
        Box::new(move |shown| {
            let columns = [0, 1, 2, 3].map(|at: usize| columns[at]);
            let to = &mut room[skipped..][..len];
            limit!(has_512, chain(columns, to));
            show(to, shown);
            Ok(())
        })
    };
    Ok(measure(case.name, [ours::<f64>(case.name, session, &inputs), limit], 1e-9, effort))
}

fn chain(len: usize) -> Made<(TensorGraph, TensorNodeId)> {
    let mut g = TensorGraph::standard();
    let mut leaf = |name| g.leaf(name, Scalar::Float64, &[len]);
    let [a, b, c, d] = [leaf("a")?, leaf("b")?, leaf("c")?, leaf("d")?];
    let product = g.apply("math.multiply", &[a, b])?;
    let sum = g.apply("math.add", &[product, c])?;
    let scaled = g.apply("math.multiply", &[sum, d])?;
    let difference = g.apply("math.subtract", &[scaled, a])?;
    Ok((g, difference))
}

fn sum_of_products(len: usize) -> Made<(TensorGraph, TensorNodeId)> {
    let mut g = TensorGraph::standard();
    let mut leaf = |name| g.leaf(name, Scalar::Float64, &[len]);
    let [a, b] = [leaf("a")?, leaf("b")?];
    let product = g.apply("math.multiply", &[a, b])?;
    let sum = g.reduce(Reduction::Sum, product, &[0])?;
    Ok((g, sum))
}

fn loss(effort: Effort) -> Made<Result<Vec<Record>, Error>> {
    const EXTENTS: [usize; 2] = [4096, 1024];
    let mut g = TensorGraph::standard();
    let [z, y] = [g.leaf("z", Scalar::Float32, &EXTENTS)?, g.leaf("y", Scalar::Float32, &EXTENTS)?];
    let output = g.softmax_cross_entropy(z, y)?;
    let executor = g.compile(&[output], &Options::default())?;
    let len = EXTENTS[0] * EXTENTS[1];
    let scores: Vec<f32> = numbers(len, 1).into_iter().map(|number| number as f32 * 4.0).collect();
    let shares: Vec<f32> = numbers(len, 2).into_iter().map(|number| number.abs() as f32 / 512.0).collect();
    let inputs = [Tensor::new(&EXTENTS, scores.clone())?, Tensor::new(&EXTENTS, shares.clone())?];
    let has_512 = has_512();
    let limit: Run<'_> = Box::new(|to| {
        show(&[limit!(has_512, softmax_cross_entropy(&scores, &shares, EXTENTS[1]))], to);
        Ok(())
    });
    Ok(measure(LOSS, [ours::<f32>(LOSS, executor.session(), &inputs), limit], 1e-4, effort))
}

/// A tensor of 2^24 elements or fewer times a vector, beside a triad that moves as many bytes: what the memory gives.
fn vector(name: &'static str, (rank, axis): (usize, usize), effort: Effort) -> Made<Result<Vec<Record>, Error>> {
    let extent = (f64::from(1 << 24)).powf(1.0 / rank as f64).floor() as usize;
    let extents = vec![extent; rank];
    let len: usize = extents.iter().product();
    let letters = &"abcde"[..rank];
    let kept: String = letters.chars().filter(|letter| letters.find(*letter) != Some(axis)).collect();
    let spec = format!("{letters},{}->{kept}", &letters[axis..=axis]);
    let mut g = TensorGraph::standard();
    let [t, v] = [g.leaf("t", Scalar::Float64, &extents)?, g.leaf("v", Scalar::Float64, &[extent])?];
    let output = g.einsum(&spec, &[t, v])?;
    let executor = g.compile(&[output], &Options::default())?;
    let inputs = [Tensor::new(&extents, numbers(len, 1))?, Tensor::new(&[extent], numbers(extent, 2))?];
    // Two columns are read and one is written.
    let rows = (len + len / extent) / 3;
    let (b, c) = (numbers(rows, 1), numbers(rows, 2));
    let mut to = vec![0.0; rows];
    let mut run = ours::<f64>(name, executor.session(), &inputs);
    let has_512 = has_512();
    let triad = Box::new(move || {
        limit!(has_512, triad(&b, &c, &mut to));
        std::hint::black_box(&to);
        Ok(())
    });
    let metric = "us_per_run";
    let task = |subject, run| Task { subject, metric, unit: "us", per_second: 1e6, calls: 1, run };
    let mut tasks = [task(CEMBRA, Box::new(move || run(None))), task(LIMIT, triad)];
    let samples = match interleave(&mut tasks, effort) {
        Ok(samples) => samples,
        Err(error) => return Ok(Err(error)),
    };
    Ok(Ok(tasks.iter().zip(&samples).map(|(task, samples)| Record::of(name, task, samples)).collect()))
}
