//! Shapes of tiled tensors, without elements: tilings of axes and of tensors, the present tiles of a grid with their norms (`sparse.rs`), and the
//! shapes of results (`algebra.rs`).

pub(crate) mod algebra;
pub(crate) mod mixing;
pub(crate) mod sparse;
pub(crate) mod tiling;
pub(crate) mod tiling1;
pub(crate) mod weighing;
