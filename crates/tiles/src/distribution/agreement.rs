//! The facts that ranks compare before they evaluate: the program, the tilings, the present tiles, the options that
//! affect results, and facts about the machines. Ranks with different facts would wait for tiles that no rank sends, or
//! compute different bits.

use crate::link::Ranks;
use crate::{Options, TileMap, Tiled};
use cembra_tensor::{TensorGraph, TensorNodeId};
use cembra_value::Error;
use std::fmt::{self, Write};
use std::hash::{DefaultHasher, Hasher};
use std::sync::Arc;

/// Facts about a machine and its software, each with a name and a value. They must be the same on all ranks.
pub(crate) type Facts = Arc<[(String, String)]>;

/// A writer that hashes the text that is formatted into it.
struct Hashed(DefaultHasher);

impl Write for Hashed {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.write(text.as_bytes());
        Ok(())
    }
}

/// Checks that all ranks are about to evaluate the same graph, with the same options, on inputs with the same tilings
/// and tiles, and with the same facts `given`.
///
/// # Errors
/// If a fact differs between ranks: the first such fact, as the same error on all ranks. Or if the link between ranks
/// failed.
pub(crate) fn agree(
    ranks: &Ranks,
    given: &Facts,
    options: &Options,
    map: Option<&TileMap>,
    graph: &TensorGraph,
    outputs: &[TensorNodeId],
    inputs: &[&Tiled],
) -> Result<(), Error> {
    let mut facts: Vec<(String, String)> = given.to_vec();
    facts.push(("the options".into(), options.of_results()));
    facts.push(("the assignment of tiles to ranks".into(), format!("{map:?}")));
    let mut program = Hashed(DefaultHasher::new());
    for (_, node) in graph.nodes() {
        let nodes = node.read();
        // A hash cannot fail.
        let _written = write!(program, "{:?}{:?}{:?}{nodes:?};", node.operation, node.scalar, node.extents);
    }
    let _written = write!(program, "{outputs:?}");
    facts.push(("the program".into(), format!("{:016x}", program.0.finish())));
    for (leaf, input) in graph.leaves().iter().zip(inputs) {
        for (at, axis) in input.tiling().axes().iter().enumerate() {
            facts.push((format!("the tiling of `{}`, axis {at}", leaf.name), format!("{axis:?}")));
        }
        let mut hasher = DefaultHasher::new();
        for (number, norm) in input.shape().iter() {
            hasher.write_u64(number);
            hasher.write_u64(norm.to_bits());
        }
        let tiles = format!("{} tiles ({:016x})", input.shape().len(), hasher.finish());
        facts.push((format!("the tiles of `{}`", leaf.name), tiles));
        facts.push((format!("the location of the tiles of `{}`", leaf.name), whereabouts(input)));
    }
    ranks.agree(&facts)
}

/// Describes which ranks have the tiles of a tensor, so that ranks can compare it.
fn whereabouts(tiled: &Tiled) -> String {
    match tiled.spread() {
        None if tiled.is_lazy() => "computed when they are needed".into(),
        None => "on each rank".into(),
        Some(spread) => {
            let mut hasher = DefaultHasher::new();
            spread.owners().iter().for_each(|owner| hasher.write_u32(*owner));
            format!("shared out ({:016x})", hasher.finish())
        }
    }
}
