//! Tests random assignments to tensors (those of `cembra fuzz --tensors`) on tiled tensors. The statements are parsed and compiled through the public
//! interface. Their values are compared with explicit sums over the index labels, and judged like the values of random graphs. Tensors are used
//! directly, or as blocks of larger tensors. Elements are small integers, so all results are exact.

use super::judge::{TileJudge, check_bits, wrong_of};
use super::operands::{ALL, Sparsity};
use super::program::{Program, RequestedNodes, Settings};
use crate::tensors::Finding;
use crate::tensors::cuts::Tilings;
use crate::tensors::leaves::{self, Values};
use crate::tensors::statements::statement;
use cembra::program::AxisCut;
use cembra::{Error, Model, Options, Scalar};
use cembra_tiles::Tiled;
use fastrand::Rng;
use std::collections::BTreeMap;

/// An extent that is larger than those of the labels' axes.
const LONGER: usize = 5;

/// Tests a random statement, and returns the law that it breaks, if any.
pub(super) fn check(random: &mut Rng, judge: &mut TileJudge) -> Result<Option<Finding>, Error> {
    let mut statement = statement(random)?;
    let mut settings = Settings::new(random);
    // All elements are present only without a threshold.
    if random.bool() {
        settings.threshold = 0.0;
    }
    let sparsity = Sparsity::new(random, settings.least() > 0.0);
    let has_blocks = random.u32(..3) == 0;
    let seed = random.u64(..);
    let mut tilings = if has_blocks { Tilings::of_blocks(seed) } else { Tilings::new(seed) };
    let (mut tiled, mut blocks) = (BTreeMap::new(), BTreeMap::new());
    for (name, tensor) in &mut statement.tensors {
        let mut own = sparsity.tiled(random, tensor, &tilings.tiling(tensor.extents())?)?;
        *tensor = own.to_tensor()?;
        if has_blocks && name != "c" && random.u32(..3) > 0 {
            let block = larger(random, &own, &mut tilings)?;
            own = block.0;
            blocks.insert(name.clone(), block.1);
        }
        tiled.insert(name.clone(), own);
    }
    statement.line = with_blocks(&statement.line, &blocks);
    let text = statement.text();
    let executor = Model::parse(&text)?.compile(&Options::default())?;
    let inputs: Vec<Tiled> = executor.inputs().iter().filter_map(|field| tiled.get(&*field.name).cloned()).collect();
    let extents: Vec<Vec<usize>> = inputs.iter().map(|own| own.tiling().extents().to_vec()).collect();
    let extents: Vec<&[usize]> = extents.iter().map(Vec::as_slice).collect();
    let cut = |own: &Tiled| -> Vec<Option<AxisCut>> {
        let axes = own.tiling().axes().iter();
        axes.map(|axis| Some(AxisCut::Boundaries(axis.boundaries().collect()))).collect()
    };
    let (graph, outputs) = match executor.has_blocks() {
        true => {
            let cuts: Vec<_> = inputs.iter().map(cut).collect();
            executor.graph_for_tiles(&extents, &cuts, &vec![None; cuts.len()])?
        }
        false => executor.graph_for(&extents)?,
    };
    let program = Program { graph, inputs, outputs, tilings, settings };
    if let Some(mut finding) = judge.judge(&program)? {
        finding.text = format!("{text}\n{}", finding.text);
        return Ok(Some(finding));
    }
    if settings.least() > 0.0 {
        return Ok(None);
    }
    let inputs: Vec<&Tiled> = program.inputs.iter().collect();
    let run = settings.evaluator(settings.options());
    let made = match run.evaluate(&program.graph, &program.asked(RequestedNodes::Outputs), &inputs, &judge.host()) {
        Ok(made) => made,
        // Tiled tensors support everything in these statements.
        Err(error) => return Ok(Some(Finding { what: format!("a statement on tiles fails: {error}"), text })),
    };
    let Some(made) = made.first() else { return Ok(None) };
    let wrong = wrong_of(check_bits("", made, &statement.expected()?))?;
    Ok(wrong.map(|wrong| Finding {
        what: format!("a statement on tiles: {}", wrong.what),
        text: format!("{text}\nof {:?}\nin {tiled:?}\n{}\n{settings:?}", statement.tensors, wrong.detail),
    }))
}

/// Returns a tensor that contains `own` as a block, and the text that selects this block.
fn larger(random: &mut Rng, own: &Tiled, tilings: &mut Tilings) -> Result<(Tiled, String), Error> {
    let (mut extents, mut start, mut stop) = (Vec::new(), Vec::new(), Vec::new());
    for axis in own.tiling().axes() {
        let (extent, tiles) = match random.u32(..4) {
            0 => (axis.extent(), 0..axis.tiles()),
            _ => tilings.wider(axis.extent(), LONGER)?,
        };
        extents.push(extent);
        start.push(tiles.start);
        stop.push(tiles.end);
    }
    let around = leaves::tensor(random, Scalar::Float64, &extents, Values::Small)?;
    let around = Tiled::from_tensor(&around, &tilings.tiling(&extents)?, &ALL)?;
    Ok((around.with_block(&start, own)?, format!(".block({start:?}, {stop:?})")))
}

/// Returns the line with some tensors replaced by blocks.
fn with_blocks(line: &str, blocks: &BTreeMap<String, String>) -> String {
    let (mut made, mut rest) = (String::new(), line);
    // Labels follow names.
    while let Some(at) = rest.find("(\"") {
        let start = rest[..at].rfind(|c: char| !c.is_ascii_alphanumeric()).map_or(0, |before| before + 1);
        let end = rest[at..].find("\")").map_or(rest.len(), |length| at + length + 2);
        made += &rest[..end];
        made += blocks.get(&rest[start..at]).map_or("", String::as_str);
        rest = &rest[end..];
    }
    made + rest
}
