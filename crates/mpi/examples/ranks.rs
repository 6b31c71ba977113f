//! Measures how fast ranks multiply tiled matrices together, and counts the bytes that they send. Usage: `ranks N TILE
//! PART THREADS [RANKS]`. The program runs under an MPI launcher, with `RANKS` threads as ranks, or with one rank
//! alone. `benches/python/ranks.py` runs it in all these ways and prints the ratios of their times.
//!
//! Rank 0 prints one line: the seconds of the fastest product, the operations of one product, the bytes that all ranks
//! sent for it, the bytes that a grid of ranks must send for dense matrices of the same size, the bytes if each tile
//! were sent to all ranks, and a hash of the result.

use cembra_engine::LibraryProduct;
use cembra_tiles::link::{Error, Link, Ranks, run_ranks};
use cembra_tiles::{Evaluator, MOST_TILES, Options, Shape, TileMap, Tiling, Tiling1};
use std::hash::{DefaultHasher, Hasher};
use std::io::Write;
use std::sync::Arc;
use std::time::Instant;

/// The number of times that the product is computed; the fastest counts.
const TIMES: usize = 5;

/// The matrices that are multiplied: `n` rows and columns, in tiles of `tile` rows and columns.
#[derive(Clone, Copy)]
struct Matrices {
    n: u64,
    tile: u64,
    /// The fraction of the tiles that are present, from 0 to 1.
    part: f64,
    threads: usize,
}

/// The measurements of one rank.
struct Found {
    seconds: f64,
    operations: f64,
    sent: u64,
    least: u64,
    all: u64,
    hash: u64,
}

fn measure(of: Matrices, link: Option<Arc<dyn Link>>) -> Result<Found, Error> {
    let ranks = link.map(|link| Ranks::new(link).map(Arc::new)).transpose()?;
    let size = ranks.as_ref().map_or(1, |ranks| ranks.link().size());
    let run = Evaluator::new(Options::default().threshold(0.0)).threads(of.threads).matrices(Arc::new(LibraryProduct));
    let run = ranks.iter().fold(run, |run, ranks| run.ranks(ranks.clone(), []));
    let axis = Tiling1::blocked(of.n, of.tile)?;
    let tiling = Tiling::new([&axis, &axis])?;
    let shape = |seed| match of.part {
        1.0 => Shape::dense(&tiling, MOST_TILES),
        part => Shape::random(&tiling, part, seed, MOST_TILES),
    };
    let shared = run.clone().tile_map(TileMap::square(size));
    let (a, b) = (shared.random::<f64>(&shape(1)?, 1)?, shared.random::<f64>(&shape(2)?, 2)?);
    let plan = run.plan("ij,jk->ik", &a, &b, None)?;
    let operations = 2.0 * plan.product_count() as f64 * (of.tile as f64).powi(3);
    let (mut seconds, mut made) = (f64::INFINITY, None);
    let before = ranks.as_ref().map_or(0, |ranks| ranks.sent().bytes);
    for _ in 0..TIMES {
        // Memory of the one before is used again.
        drop(made.take());
        if let Some(ranks) = &ranks {
            ranks.settle(Ok(()))?;
        }
        let start = Instant::now();
        made = Some(run.product("ij,jk->ik", &a, &b)?);
        seconds = seconds.min(start.elapsed().as_secs_f64());
    }
    let own = ranks.as_ref().map_or(0, |ranks| (ranks.sent().bytes - before) / TIMES as u64);
    let sent = match &ranks {
        None => 0,
        Some(ranks) => {
            let all = ranks.all_gather(own.to_le_bytes().to_vec())?;
            all.iter().filter_map(|bytes| bytes.first_chunk().copied()).map(u64::from_le_bytes).sum()
        }
    };
    let mut hasher = DefaultHasher::new();
    if let Some(made) = &made {
        // The norms of all tiles are on each rank, and each is one of all elements of its tile.
        for (tile, norm) in made.shape().iter() {
            hasher.write_u64(tile);
            hasher.write_u64(norm.to_bits());
        }
    }
    let rows = (1..=size.isqrt()).rev().find(|rows| size.is_multiple_of(*rows)).unwrap_or(1) as u64;
    let (columns, bytes) = (size as u64 / rows, [a.memory_bytes() as u64, b.memory_bytes() as u64]);
    let least = bytes[0] * (columns - 1) + bytes[1] * (rows - 1);
    let all = (bytes[0] + bytes[1]) * (size as u64 - 1);
    Ok(Found { seconds, operations, sent, least, all, hash: hasher.finish() })
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [n, tile, part, threads, rest @ ..] = &*arguments else {
        return Err("N TILE PART THREADS [RANKS]".into());
    };
    let of = Matrices { n: n.parse()?, tile: tile.parse()?, part: part.parse()?, threads: threads.parse()? };
    let found = if let [ranks] = rest {
        run_ranks(ranks.parse()?, |link| measure(of, Some(link))).into_iter().next().ok_or("no ranks")??
    } else {
        let link = cembra_mpi::from_environment()?;
        let rank = link.as_ref().map_or(0, |link| link.rank());
        let found = measure(of, link)?;
        if rank > 0 {
            return Ok(());
        }
        found
    };
    let Found { seconds, operations, sent, least, all, hash } = found;
    writeln!(std::io::stdout(), "{seconds:.4} {operations:e} {sent} {least} {all} {hash:016x}")?;
    Ok(())
}
