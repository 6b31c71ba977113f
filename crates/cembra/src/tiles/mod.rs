//! Tiled tensors, and statements of the text language on them. The crate `cembra-tiles` has the tensors and evaluates
//! graphs on them. This module parses and compiles the statements, and provides `cembra-tiles` with compiled element
//! expressions and matrix products.
//!
//! ```
//! use cembra::tiles::{Options, Shape, Tiled, Tiling, Tiling1, World, MOST_TILES};
//!
//! let world = World::from_environment()?;
//! let axis = Tiling1::new([0, 3, 7, 12])?;
//! let shape = Shape::dense(&Tiling::new([&axis, &axis])?, MOST_TILES)?;
//! let a = Tiled::from_fn(&shape, |at| if at[0].abs_diff(at[1]) < 2 { 1.0 } else { 0.0 })?;
//!
//! let mut run = world.evaluator(Options::default().threshold(1e-8));
//! let square = run.statement(r#"b("i,j") = a("i,k") * a("k,j") - a("i,j")"#, [("a", &a)])?;
//! assert_eq!(square.get::<f64>(&[0, 2])?, 1.0);
//! assert_eq!(run.number(r#"(a("i,j") * b("j,i")).sum()"#, [("a", &a), ("b", &square)])?, 44.0);
//! # Ok::<(), cembra::Error>(())
//! ```

mod iterations;
mod parts;
mod run;
mod session;
mod world;

#[cfg(feature = "json")]
pub use cembra_tiles::Checkpoint;
pub use cembra_tiles::link;
pub use cembra_tiles::{
    ALIGNMENT, Base, Evaluator, Float, Journal, MOST_TILES, MOST_VISITED, Options, Progress, Ranges, Screening,
    Segment, Shape, Step, StepKind, Tile, TileMap, TileOperation, TilePlace, Tiled, Tiling, Tiling1,
};
pub use iterations::{Solution, Stop};
pub use parts::TiledValue;
pub use run::Run;
pub use session::{Operand, TensorInformation, TiledSession};
pub use world::{TileExecutor, World};
