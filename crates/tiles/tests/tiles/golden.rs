//! Tests against golden data of block sparsity, made with NumPy: the estimates before tiles are computed, the tiles
//! that are kept, and their elements.
//!
//! `tests/golden/README.md` describes them.

use crate::ranks::{self, Bits, gathered_bits};
use crate::threads::{all_bits, on_five_threads};
use cembra_runtime::Scalar;
use cembra_tiles::{Evaluator, Options, Screening, Shape, TileMap, Tiled, Tiling, Tiling1};
use cembra_value::Error;
use cembra_value::tensor::Tensor;
use flate2::read::GzDecoder;
use serde_json::Value as Json;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

const CASES: usize = 150;

/// Reads an array from JSON, as its extents and elements.
fn array(json: &Json) -> (Vec<usize>, Vec<f64>) {
    let extents = json["shape"].as_array().expect("a shape").iter().map(|n| n.as_u64().expect("a number") as usize);
    let digits = json["hex"].as_str().expect("digits");
    let width = if json["dtype"] == "f32" { 8 } else { 16 };
    let element = |at: usize| {
        let bits = u64::from_str_radix(&digits[at..at + width], 16).expect("digits");
        if width == 8 { f64::from(f32::from_bits(bits as u32)) } else { f64::from_bits(bits) }
    };
    (extents.collect(), (0..digits.len()).step_by(width).map(element).collect())
}

fn tensor(json: &Json) -> Tensor {
    let (extents, elements) = array(json);
    Tensor::new(&extents, elements).expect("as many elements as indices")
}

/// The tiling of a tensor with a letter for each axis.
fn tiling(case: &Json, letters: &str) -> Tiling {
    let axis = |letter: char| {
        let bounds = case["tile_bounds"][letter.to_string()].as_array().expect("boundaries").iter();
        Tiling1::new(bounds.map(|bound| bound.as_i64().expect("a number"))).expect("ascending")
    };
    Tiling::new(letters.chars().map(axis)).expect("few tiles")
}

/// Asserts that the norms of a shape are those of `expected`, an array with a norm for each tile of the grid; 0 stands
/// for an absent tile.
fn check_norms(shape: &Shape, expected: &Json, tolerance: f64, id: &str) {
    let (extents, norms) = array(expected);
    assert_eq!(extents.iter().product::<usize>() as u64, shape.tiling().tiles(), "{id}");
    for (tile, expected) in (0..).zip(norms) {
        let found = shape.norm(tile);
        match found {
            None => assert_eq!(expected, 0.0, "{id}: tile {tile} is absent"),
            Some(found) => {
                assert!(expected > 0.0, "{id}: tile {tile} is present");
                assert!((found - expected).abs() <= tolerance * expected, "{id}: tile {tile}: {found} for {expected}");
            }
        }
    }
}

fn labels(case: &Json) -> Vec<&str> {
    case["indices"].as_array().expect("labels").iter().map(|letters| letters.as_str().expect("letters")).collect()
}

/// Returns the shape of the result as it is estimated from the shapes of the operands, and the result.
fn evaluate(case: &Json, run: &Evaluator, screening: &Screening, operands: &[Tiled]) -> (Shape, Tiled) {
    let shape = |at: usize| operands[at].shape();
    let made = match case["op"].as_str().expect("an operator") {
        "add" => (shape(0).added(shape(1), screening), run.add(&operands[0], &operands[1])),
        "hadamard" => (shape(0).multiplied(shape(1), screening), run.hadamard(&operands[0], &operands[1])),
        "scale" => {
            let factor = case["factor"].as_f64().expect("a factor");
            (shape(0).scaled(factor, screening), run.scale(&operands[0], factor))
        }
        labels => {
            let plan = run.plan(labels, &operands[0], &operands[1], None);
            (plan.map(|plan| plan.shape().clone()), run.product(labels, &operands[0], &operands[1]))
        }
    };
    (made.0.expect("an estimate"), made.1.expect("a result"))
}

/// The operands of a case.
fn operands(case: &Json) -> Vec<Tiled> {
    let screening = Screening::threshold(case["threshold"].as_f64().expect("a threshold"));
    let arrays = case["operands"].as_array().expect("operands").iter();
    let operand = |(letters, array): (&&str, &Json)| {
        Tiled::from_tensor(&tensor(array), &tiling(case, letters), &screening).expect("an operand")
    };
    labels(case).iter().zip(arrays).map(operand).collect()
}

/// The results of a case on each rank, with operands that are distributed over the ranks.
fn on_ranks(case: &Json, size: usize, threads: usize) -> Vec<Result<Bits, Error>> {
    let threshold = case["threshold"].as_f64().expect("a threshold");
    let (operands, screening) = (operands(case), Screening::threshold(threshold));
    let options = Options::default().threshold(threshold).block_bytes(0);
    let seed = (size * threads) as u64;
    ranks::on_ranks(size, seed, &options, |run, _| {
        let run = &run.clone().threads(threads);
        let maps = [TileMap::square(size), TileMap::hashed()];
        let shared = operands.iter().zip(maps.iter().cycle()).map(|(of, map)| run.distributed(of, map));
        let (_, result) = evaluate(case, run, &screening, &shared.collect::<Result<Vec<Tiled>, Error>>()?);
        gathered_bits(run, &result)
    })
}

/// Runs a case with blocks of result tiles of `block_bytes` bytes, on `threads` threads, and returns the result.
fn check(case: &Json, block_bytes: usize, threads: usize) -> Tiled {
    let id = case["id"].as_str().expect("an id");
    let tolerance = case["norm_rtol"].as_f64().expect("a tolerance");
    let threshold = case["threshold"].as_f64().expect("a threshold");
    let screening = Screening::threshold(threshold);
    let run = Evaluator::new(Options::default().threshold(threshold).block_bytes(block_bytes)).threads(threads);
    let mut operands = Vec::new();
    for ((letters, array), norms) in labels(case)
        .iter()
        .zip(case["operands"].as_array().expect("operands"))
        .zip(case["operand_norms"].as_array().expect("norms"))
    {
        let operand = Tiled::from_tensor(&tensor(array), &tiling(case, letters), &screening).expect("an operand");
        assert_eq!(operand.scalar_type(), Scalar::Float64);
        check_norms(operand.shape(), norms, tolerance, id);
        operands.push(operand);
    }
    let (estimate, result) = evaluate(case, &run, &screening, &operands);
    check_norms(&estimate, &case["result_norms"], tolerance, id);

    let kept: Vec<Vec<u64>> = serde_json::from_value(case["result_nonzero_tiles"].clone()).expect("coordinates");
    let number = |index: &Vec<u64>| result.tiling().number_of(index).expect("a tile");
    let kept: Vec<u64> = kept.iter().map(number).collect();
    assert_eq!(result.shape().tiles(), kept, "{id}");
    assert_eq!(*result.tiling(), tiling(case, case["result"].as_str().expect("labels")), "{id}");

    let expected = tensor(&case["expected"]);
    let found = result.to_tensor().expect("a dense tensor");
    assert_eq!(found.extents(), expected.extents(), "{id}");
    let (_, bounds) = array(&case["atol"]);
    let elements = |tensor: &Tensor| tensor.to_vec::<f64>().expect("floats");
    for ((found, expected), bound) in elements(&found).iter().zip(elements(&expected)).zip(bounds) {
        assert!((found - expected).abs() <= bound, "{id}: {found} for {expected}");
    }
    // The norms of the result are those of its elements, and estimates are no less.
    let all = Tiled::from_tensor(&expected, result.tiling(), &Screening::threshold(0.0)).expect("a tensor");
    for (tile, norm) in result.shape().iter() {
        let expected = all.shape().norm(tile).expect("a tile");
        assert!((norm - expected).abs() <= 1e-12 * expected.max(norm), "{id}: tile {tile}: {norm} for {expected}");
        assert!(norm <= estimate.norm(tile).expect("an estimate") * (1.0 + 1e-12), "{id}: tile {tile}");
    }
    result
}

#[test]
fn golden_cases_of_block_sparsity_pass() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/tensor/blocksparse.jsonl.gz");
    let lines = BufReader::new(GzDecoder::new(File::open(path).expect("the golden data"))).lines();
    let mut cases = 0;
    for line in lines {
        let case: Json = serde_json::from_str(&line.expect("a line")).expect("JSON");
        let at_once = check(&case, 1 << 18, 1);
        // One result tile at a time, by one thread or by several.
        for threads in [1, 2, 5] {
            let again = on_five_threads(|| check(&case, 0, threads));
            assert_eq!(all_bits(&again), all_bits(&at_once), "{}", case["id"]);
        }
        on_five_threads(|| {
            for (size, threads) in [1, 2, 3, 4, 6].into_iter().flat_map(|size| [1, 2, 5].map(|threads| (size, threads)))
            {
                for made in on_ranks(&case, size, threads) {
                    assert_eq!(made.unwrap(), all_bits(&at_once), "{} on {size} ranks", case["id"]);
                }
            }
        });
        cases += 1;
    }
    assert_eq!(cases, CASES);
}
