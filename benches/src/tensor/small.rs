//! The smallest programs: a product of 3 x 3 and a bias, from the graph or the text to something callable and per call; how long rewriting
//! and planning take per node; how long a product of many factors takes to plan; and how often something is compiled.

use super::{CEMBRA, failed};
use crate::Error;
use crate::measure::{Effort, Task, interleave};
use crate::record::Record;
use cembra::tensor::{CompileGraph, TensorGraph, TensorNodeId};
use cembra::{Model, Options, Scalar, Tensor};
use cembra_engine::Evaluator;
use cembra_engine::run_plan;
use cembra_tensor::{Plan, Rewriter};
use std::sync::Arc;

const SMALL: &str = "3x3-and-bias";
const MODEL: &str = r#"
input a: tensor[f64, 2], b: tensor[f64, 2], bias: tensor[f64, 1]
let product("i,j") = a("i,k") * b("k,j")
output c = product + bias"#;
const NODES: &str = "nodes-10000";
const FACTORS: &str = "factors-30";
const SHAPES: &str = "shapes-1000";

type Made<T> = Result<T, cembra::Error>;

pub(super) fn run(wants: &dyn Fn(&str) -> bool, effort: Effort, records: &mut Vec<Record>) -> Result<(), Error> {
    if wants(SMALL) {
        records.extend(small(effort).map_err(failed(SMALL))??);
    }
    if wants(NODES) {
        records.extend(nodes(effort).map_err(failed(NODES))??);
    }
    if wants(FACTORS) {
        records.extend(factors(effort)?);
    }
    if wants(SHAPES) {
        // One evaluator has all graphs: what it compiles does not depend on extents.
        let on = Arc::new(Evaluator::new(&Options::default()));
        for extent in 2..=1001 {
            let (graph, output) = product_and_bias(extent).map_err(failed(SHAPES))?;
            let inputs = inputs(extent).map_err(failed(SHAPES))?;
            on.plan(&graph, &[output]).and_then(|planned| run_plan(&planned, &inputs)).map_err(failed(SHAPES))?;
        }
        let misses = on.kernel_counters().misses as f64;
        records.push(Record::count(SHAPES, CEMBRA, "compilations", "", misses));
    }
    Ok(())
}

fn product_and_bias(extent: usize) -> Made<(TensorGraph, TensorNodeId)> {
    let mut g = TensorGraph::standard();
    let a = g.leaf("a", Scalar::Float64, &[extent, 3])?;
    let b = g.leaf("b", Scalar::Float64, &[3, 3])?;
    let bias = g.leaf("bias", Scalar::Float64, &[3])?;
    let product = g.einsum("ij,jk->ik", &[a, b])?;
    let sum = g.apply("math.add", &[product, bias])?;
    Ok((g, sum))
}

fn inputs(extent: usize) -> Made<[Tensor; 3]> {
    let tensor = |extents: &[usize]| Tensor::new(extents, vec![0.5; extents.iter().product()]);
    Ok([tensor(&[extent, 3])?, tensor(&[3, 3])?, tensor(&[3])?])
}

fn task<'t>(
    metric: &'static str,
    per_second: f64,
    calls: usize,
    run: impl FnMut() -> Result<(), Error> + 't,
) -> Task<'t> {
    let unit = if per_second == 1e9 { "ns" } else { "us" };
    Task { subject: CEMBRA, metric, unit, per_second, calls, run: Box::new(run) }
}

fn measured(workload: &'static str, mut tasks: Vec<Task<'_>>, effort: Effort) -> Result<Vec<Record>, Error> {
    let samples = interleave(&mut tasks, effort)?;
    Ok(tasks.iter().zip(&samples).map(|(task, samples)| Record::of(workload, task, samples)).collect())
}

fn small(effort: Effort) -> Made<Result<Vec<Record>, Error>> {
    let options = Options::default();
    let (graph, output) = product_and_bias(3)?;
    let inputs = inputs(3)?;
    let compile = || {
        // With nothing kept of what was compiled before; and the first call, which compiles.
        let (graph, output) = product_and_bias(3).map_err(failed(SMALL))?;
        let mut session = graph.compile(&[output], &options).map_err(failed(SMALL))?.session();
        std::hint::black_box(session.run_tensors(&inputs).map_err(failed(SMALL))?);
        Ok(())
    };
    let mut session = graph.compile(&[output], &options)?.session();
    let call = || session.run_tensors(&inputs).map(|made| _ = std::hint::black_box(made)).map_err(failed(SMALL));
    let compile_model = || {
        let model = Model::parse(MODEL).map_err(failed(SMALL))?;
        let mut session = model.compile(&options).map_err(failed(SMALL))?.session();
        std::hint::black_box(session.run_tensors(&inputs).map_err(failed(SMALL))?);
        Ok(())
    };
    let mut model_session = Model::parse(MODEL)?.compile(&options)?.session();
    let call_model =
        || model_session.run_tensors(&inputs).map(|made| _ = std::hint::black_box(made)).map_err(failed(SMALL));
    let tasks = vec![
        task("us_to_first_result", 1e6, 1, compile),
        task("us_text_to_first_result", 1e6, 1, compile_model),
        task("ns_per_call_of_session", 1e9, 1, call),
        task("ns_per_call_of_model_session", 1e9, 1, call_model),
    ];
    Ok(measured(SMALL, tasks, effort))
}

/// A chain of sums, products and views of ten thousand nodes.
fn nodes(effort: Effort) -> Made<Result<Vec<Record>, Error>> {
    const COUNT: usize = 10_000;
    let mut g = TensorGraph::standard();
    let x = g.leaf("x", Scalar::Float64, &[8, 8])?;
    let y = g.leaf("y", Scalar::Float64, &[8, 8])?;
    let mut made = x;
    for at in 0..COUNT / 2 {
        made = match at % 4 {
            0 => g.apply("math.multiply", &[made, y])?,
            1 => g.transpose(made, &[1, 0])?,
            2 => g.apply("math.neg", &[made])?,
            _ => g.apply("math.subtract", &[made, x])?,
        };
        made = g.apply("math.add", &[made, y])?;
    }
    let count = g.len();
    let on = Evaluator::new(&Options::default());
    let rewriter = Rewriter::default();
    let rewrite = || {
        rewriter.rewrite(&g, &[made], &on.host()).map(|made| drop(std::hint::black_box(made))).map_err(failed(NODES))
    };
    let plan = || {
        std::hint::black_box(Plan::of(&g, &[made]));
        Ok(())
    };
    Ok(measured(NODES, vec![task("us_to_rewrite", 1e6, count, rewrite), task("us_to_plan", 1e6, count, plan)], effort))
}

/// Products of thirty factors, in a chain and where each label is in three factors or more; with their order, from the labels to a plan.
fn factors(effort: Effort) -> Result<Vec<Record>, Error> {
    const COUNT: usize = 30;
    let letters: Vec<char> = ('a'..='z').chain('A'..='Z').collect();
    let mut random = fastrand::Rng::with_seed(30);
    let chain = |at: usize| vec![at, at + 1];
    let mut meshed = |at: usize| (0..4).map(|step| (at * 7 + step * step * 3 + random.usize(..2)) % 40).collect();
    let chain: Vec<Vec<usize>> = (0..COUNT).map(chain).collect();
    let mut mesh: Vec<Vec<usize>> = (0..COUNT).map(&mut meshed).collect();
    mesh.iter_mut().for_each(|labels| {
        labels.sort_unstable();
        labels.dedup();
    });
    let tasks = [("us_to_plan_chain", chain, [0, COUNT]), ("us_to_plan_mesh", mesh, [0, 1])];
    let tasks = tasks.map(|(metric, factors, kept)| {
        let written = |labels: &[usize]| labels.iter().map(|label| letters[*label]).collect::<String>();
        let factor = factors.iter().map(|labels| written(labels)).collect::<Vec<String>>().join(",");
        let spec = format!("{factor}->{}", written(&kept));
        task(metric, 1e6, 1, move || {
            let mut g = TensorGraph::standard();
            let leaf = |labels: &Vec<usize>, g: &mut TensorGraph, at: usize| {
                let extents: Vec<usize> = labels.iter().map(|label| 2 + label % 5).collect();
                g.leaf(&format!("x{at}"), Scalar::Float64, &extents)
            };
            let leaves = factors.iter().enumerate().map(|(at, labels)| leaf(labels, &mut g, at));
            let leaves = leaves.collect::<Result<Vec<TensorNodeId>, _>>().map_err(failed(FACTORS))?;
            let product = g.einsum(&spec, &leaves).map_err(failed(FACTORS))?;
            let on = Arc::new(Evaluator::new(&Options::default()));
            std::hint::black_box(on.plan(&g, &[product]).map_err(failed(FACTORS))?);
            Ok(())
        })
    });
    measured(FACTORS, tasks.into(), effort)
}
