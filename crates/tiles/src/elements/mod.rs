//! Operations on tiled tensors that are not products: elementwise operators and functions, reductions, ranges of elements, changes of tilings,
//! permutations of axes, and storing tensors or moving them between ranks. The operations are methods of tensors and of evaluators. Expressions of a
//! graph are in `graph/`.

pub(crate) mod blocks;
pub(crate) mod exact;
pub(crate) mod moving;
pub(crate) mod operations;
pub(crate) mod operators;
pub(crate) mod recut;
pub(crate) mod reduction;
pub(crate) mod reductions;
pub(crate) mod regions;
pub(crate) mod stored;
pub(crate) mod views;
