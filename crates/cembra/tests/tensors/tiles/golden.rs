//! Tests the golden cases (stored inputs with expected results) of labelled statements and of products by labels, on
//! tensors in random tiles. `tests/src/tensor` describes the format of the cases: elements are bits in hexadecimal
//! digits, with any strides.

use super::{Tilings, floats};
use cembra::tensor::{Data, Layout, Tensor, TensorGraph};
use cembra::tiles::{Options, Run, TileMap, Tiled, World};
use cembra::{Backend, Error, RunOptions};
use flate2::read::GzDecoder;
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::fs::File;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{BufRead, BufReader};
use std::path::Path;

fn cases(name: &str) -> Vec<Json> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/tensor").join(name);
    let lines = BufReader::new(GzDecoder::new(File::open(path).expect("golden data"))).lines();
    lines.map(|line| serde_json::from_str(&line.expect("a line")).expect("JSON")).collect()
}

fn list<T: TryFrom<i64>>(json: &Json) -> Vec<T> {
    let number = |json: &Json| json.as_i64().and_then(|number| T::try_from(number).ok()).expect("a number");
    json.as_array().expect("a list").iter().map(number).collect()
}

fn tensor(json: &Json) -> Tensor {
    let digits = json["hex"].as_str().expect("digits");
    let bits = |width: usize| {
        let chunks = (0..digits.len()).step_by(width).map(move |at| &digits[at..at + width]);
        chunks.map(|chunk| u64::from_str_radix(chunk, 16).expect("digits"))
    };
    let flat = if json["dtype"] == "f32" {
        Data::Float32(bits(8).map(|bits| f32::from_bits(bits as u32)).collect::<Vec<f32>>().into())
    } else {
        assert_eq!(json["dtype"], "f64");
        Data::Float64(bits(16).map(f64::from_bits).collect::<Vec<f64>>().into())
    };
    let extents: Vec<usize> = list(&json["shape"]);
    let offset = json["offset"].as_u64().unwrap_or(0) as usize;
    let layout = match json.get("strides") {
        Some(strides) => Layout::strided(&extents, &list::<isize>(strides), offset, flat.len()),
        None => Layout::row_major(&extents),
    };
    Tensor::from_parts(flat, layout.expect("a layout")).expect("a tensor")
}

/// Compares a result with the expected value of a case. The error describes the difference.
fn check(case: &Json, found: &Tiled) -> Result<(), String> {
    let (expected, found) = (tensor(&case["expected"]), found.to_tensor().expect("a dense tensor"));
    let bounds =
        if case["check"] == "atol" { floats(&tensor(&case["atol"])) } else { vec![0.0; expected.layout().len()] };
    assert_eq!(bounds.len(), expected.layout().len());
    if (expected.scalar_type(), expected.extents()) != (found.scalar_type(), found.extents()) {
        return Err(format!("{found:?} for {expected:?}"));
    }
    for ((expected, found), bound) in floats(&expected).into_iter().zip(floats(&found)).zip(bounds) {
        let is_same = expected == found || (expected.is_nan() && found.is_nan());
        // A distance that is no number is not near.
        let is_near = (expected - found).abs() <= bound;
        if !(is_same || is_near) {
            return Err(format!("{found} for {expected}, which may be {bound} apart"));
        }
    }
    Ok(())
}

/// Returns the runs that evaluate cases: one with a threshold of 0 and machine code, and one without screening
/// (dropping of small tiles) and with the interpreter.
fn runs() -> [Run; 2] {
    let machine = cembra::Options::default();
    [
        Run::new(Options::default().threshold(0.0), &machine),
        Run::new(Options::default().screen(false), &machine.clone().backend(Backend::Interpreter)),
    ]
}

/// Evaluates all cases of a file, and returns the number of evaluations, and the number of rejected ones for each
/// reason.
fn evaluate(
    name: &str,
    mut case: impl FnMut(&mut Run, &Json, u64) -> Result<(), Error>,
) -> (usize, BTreeMap<String, usize>) {
    let (mut count, mut refused) = (0, BTreeMap::new());
    let mut runs = runs();
    for (seed, json) in (0..).zip(cases(name)) {
        for run in &mut runs {
            count += 1;
            if let Err(error) = case(run, &json, seed) {
                *refused.entry(format!("{}: {error}", error.code())).or_insert(0) += 1;
            }
        }
    }
    (count, refused)
}

#[test]
fn statements_of_the_golden_data() {
    let (count, refused) = evaluate("stmt.jsonl.gz", |run, case, seed| {
        if case["check"] == "error" {
            // What is wrong with labels is found before there are tiles.
            return Ok(());
        }
        let mut tilings = Tilings::new(seed);
        let inputs = case["inputs"].as_object().expect("tensors").iter();
        let inputs: Vec<(&str, Tiled)> = inputs.map(|(name, json)| (&**name, tilings.tiled(&tensor(json)))).collect();
        let text = case["text"].as_str().expect("a text");
        let made = run.statement(text, inputs.iter().map(|(name, tiled)| (*name, tiled)))?;
        if let Err(wrong) = check(case, &made) {
            panic!("{}: {text}: {wrong}", case["id"]);
        }
        Ok(())
    });
    assert_eq!((count, refused), (2 * 455, BTreeMap::new()));
}

#[test]
fn products_of_the_golden_data() {
    let (count, refused) = evaluate("einsum.jsonl.gz", |run, case, seed| {
        let mut tilings = Tilings::new(seed);
        let operands: Vec<Tensor> = case["operands"].as_array().expect("operands").iter().map(tensor).collect();
        let spec = case["spec"].as_str().expect("labels");
        let mut graph = TensorGraph::standard();
        let leaf = |tensor: &Tensor| graph.leaf("", tensor.scalar_type(), tensor.extents());
        let leaves = operands.iter().map(leaf).collect::<Result<Vec<_>, Error>>()?;
        let product = match graph.einsum(spec, &leaves) {
            Err(_) if case["check"] == "error" => return Ok(()),
            product => product?,
        };
        let tiled: Vec<Tiled> = operands.iter().map(|operand| tilings.tiled(operand)).collect();
        let made = run.graph(&graph, &[product], &tiled.iter().collect::<Vec<_>>())?;
        if let Err(wrong) = check(case, &made[0]) {
            panic!("{}: {spec}: {wrong}", case["id"]);
        }
        Ok(())
    });
    assert_eq!((count, refused), (2 * 1109, BTreeMap::new()));
}

/// Evaluates all golden cases on the ranks of `world`, and returns a hash of each result, over all bits of its elements
/// and norms, or of its error.
fn hashes(world: &World, threads: usize) -> Result<Vec<u64>, Error> {
    let run = world.evaluator(Options::default().threshold(0.0).block_bytes(64));
    let mut run = run.run_options(&RunOptions::new().threads(threads));
    let map = TileMap::square(world.size());
    let mut hashes = Vec::new();
    let mut note = |run: &Run, made: Result<Tiled, Error>| -> Result<(), Error> {
        let mut hasher = DefaultHasher::new();
        match made {
            Ok(made) => {
                let whole = run.evaluator().gathered(&made)?;
                whole.shape().iter().for_each(|(tile, norm)| (tile, norm.to_bits()).hash(&mut hasher));
                let dense = whole.to_tensor()?;
                (0..dense.layout().len()).for_each(|at| dense.data().bits(at).hash(&mut hasher));
            }
            Err(error) => error.to_string().hash(&mut hasher),
        }
        hashes.push(hasher.finish());
        Ok(())
    };
    for (seed, case) in (0..).zip(cases("stmt.jsonl.gz")).filter(|(_, case)| case["check"] != "error") {
        let mut tilings = Tilings::new(seed);
        let mut inputs = Vec::new();
        for (name, json) in case["inputs"].as_object().expect("tensors") {
            let tiled = tilings.tiled(&tensor(json));
            // Some are shared out, others are on each rank.
            let is_shared = seed % 3 > 0;
            inputs.push((&**name, if is_shared { run.evaluator().distributed(&tiled, &map)? } else { tiled }));
        }
        let text = case["text"].as_str().expect("a text");
        let made = run.statement(text, inputs.iter().map(|(name, tiled)| (*name, tiled)));
        note(&run, made)?;
    }
    for (seed, case) in (0..).zip(cases("einsum.jsonl.gz")).filter(|(_, case)| case["check"] != "error") {
        let mut tilings = Tilings::new(seed);
        let mut graph = TensorGraph::standard();
        let (mut leaves, mut tiled) = (Vec::new(), Vec::new());
        for json in case["operands"].as_array().expect("operands") {
            let operand = tensor(json);
            leaves.push(graph.leaf("", operand.scalar_type(), operand.extents())?);
            tiled.push(run.evaluator().distributed(&tilings.tiled(&operand), &map)?);
        }
        let product = graph.einsum(case["spec"].as_str().expect("labels"), &leaves)?;
        let made = run.graph(&graph, &[product], &tiled.iter().collect::<Vec<_>>());
        note(&run, made.map(|mut made| made.remove(0)))?;
    }
    Ok(hashes)
}

/// Asserts that all numbers of ranks and threads give the bits of one process with one thread.
fn compare(ranks: &[usize], threads: &[usize]) {
    let expected = hashes(&World::alone(), 1).expect("all cases");
    assert!(expected.len() > 1400, "{}", expected.len());
    for (ranks, threads) in ranks.iter().flat_map(|ranks| threads.iter().map(move |threads| (*ranks, *threads))) {
        for found in World::on_threads(ranks, |world| hashes(&world, threads)) {
            assert_eq!(found.expect("all cases"), expected, "{ranks} ranks of {threads} threads");
        }
    }
}

#[test]
fn golden_cases_on_ranks() {
    compare(&[3], &[1]);
}

#[test]
#[ignore = "takes a minute"]
fn golden_cases_on_any_number_of_ranks_and_threads() {
    compare(&[1, 2, 3, 4, 6], &[1, 2, 5]);
}
