//! Tiled tensors with block sparsity: tensors that are cut into tiles, where tiles with small elements are left out.
//!
//! * A [`Tiling`] cuts each axis at boundaries ([`Tiling1`]). The grid may have 2^40 tiles: no list is as long as the grid.
//! * A [`Shape`] lists the present tiles, with the norm of each: the root of the sum of squares of its elements,
//!   divided by their number. The shape of a result is estimated from the shapes of its operands.
//! * A [`Tiled`] tensor has elements for each tile of its shape. They are stored, or a function computes them when they
//!   are needed (a lazy tensor).
//! * A [`SymbolicProduct`] is the plan of a product, made from shapes alone: the tiles of the result, the products of
//!   two tiles that they need, and the order in which these are added.
//! * An [`Evaluator`] computes products, sums and functions of tensors, on several threads and within a memory limit.
//!   The order of sums follows from shapes, so the bits of results depend neither on which results are computed
//!   together nor on the thread or rank that computes them.
//! * A `Checkpoint` is a directory of files with tensors, which are read as a whole or tile by tile. It needs the
//!   feature `checkpoints`.
//! * [`Evaluator::evaluate`] evaluates a graph of products, sums and functions. The caller passes the implementation of
//!   elementwise expressions. [`Evaluator::plan_graph`] lists the steps, from shapes alone.
//! * [`link`] connects ranks (processes, or threads that act as processes) that share an evaluation: by messages, and
//!   by collective operations of all ranks.
//!
//! An absent tile is exactly zero, so its product with anything is zero, too: `0 * inf` is NaN only where both tiles are present.
//!
//! This crate does not depend on a compiler or a matrix library: matrices are multiplied by a
//! [`MatrixProduct`](cembra_tensor::MatrixProduct), and elementwise expressions are evaluated by
//! [`Elements`](cembra_tensor::Elements), which the caller provides.
//!
//! ```
//! use cembra_tiles::{Evaluator, Options, Screening, Shape, Tiled, Tiling, Tiling1};
//!
//! // A band: elements far from the diagonal are below the threshold, and their tiles are never made.
//! let sites = Tiling1::new([0, 30, 70, 100])?;
//! let tiling = Tiling::new([&sites, &sites])?;
//! let decay = |distance: f64| (-distance / 4.0).exp();
//! let norm = |at: &[u64]| Ok(decay(at[0].abs_diff(at[1]).saturating_sub(1) as f64 * 30.0));
//! let shape = Shape::from_fn(&tiling, &Screening::threshold(1e-2), norm)?;
//! assert_eq!(shape.len(), 7);
//! let h = Tiled::from_fn(&shape, |at| decay(at[0].abs_diff(at[1]) as f64))?;
//!
//! let run = Evaluator::new(Options::default().threshold(1e-8));
//! let square = run.product("ij,jk->ik", &h, &h)?;
//! let trace = (0..100).map(|at| square.get::<f64>(&[at, at])).sum::<Result<f64, _>>()?;
//! assert!((trace - 400.5).abs() < 0.1, "{trace}");
//! # Ok::<(), cembra_value::Error>(())
//! ```

#[cfg(feature = "checkpoints")]
mod checkpoint;
mod distribution;
mod elements;
mod error;
mod evaluator;
mod graph;
mod journal;
pub mod link;
mod options;
mod product;
mod shape;
mod tasks;
mod tiled;

#[cfg(feature = "checkpoints")]
pub use checkpoint::Checkpoint;
pub use elements::operations::TileOperation;
pub use evaluator::Evaluator;
pub use graph::ResumeState;
pub use journal::{Journal, Progress, Step, StepKind};
pub use options::{Options, Segment};
pub use product::symbolic::SymbolicProduct;
pub use shape::sparse::{MOST_TILES, MOST_VISITED, Screening, Shape};
pub use shape::tiling::{Base, Ranges, TileIndex, Tiling};
pub use shape::tiling1::Tiling1;
pub use tiled::array_file::ArrayPlace;
pub use tiled::tile::{ALIGNMENT, Float, Tile};
pub use tiled::tile_map::TileMap;
pub use tiled::{TilePlace, TileSource, Tiled};
