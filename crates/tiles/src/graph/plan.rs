//! Plans of graphs: the steps that an evaluation would take, from shapes alone. A plan runs an evaluation on tensors without tiles. Each
//! step determines the tiles of its result and checks the memory limit, and the result has estimated norms. The code of the steps is in the
//! files that evaluate them; this file makes the tensors without tiles.

use crate::journal::Step;
use crate::tiled::planned::{PlanTiles, without_tiles};
use crate::tiled::tile::check_float;
use crate::{Evaluator, Journal, Shape, Tiled};
use cembra_runtime::Scalar;
use cembra_tensor::{Elements, TensorGraph, TensorNodeId};
use cembra_value::Error;
use cembra_value::tensor::Layout;

impl PlanTiles {
    /// Makes a planned tensor with the tiles of `shape`, which stands for a result computed from this planned tensor's tiles. If `keeps_all` is true,
    /// the result has all of this tensor's tiles in the same order, and stored tiles are not copied.
    pub(crate) fn stored(&self, shape: Shape, scalar: Scalar, keeps_all: bool) -> Tiled {
        let planned = if keeps_all && !self.is_lazy() { self.clone() } else { PlanTiles::new(false) };
        Tiled::of_plan(shape, scalar, planned)
    }

    /// Makes a planned tensor whose axis `to[i]` is axis `i` of `of`. Its tiles are computed from the tiles at `positions` of `of`. A tile
    /// is copied unless its elements keep their order.
    ///
    /// # Errors
    /// If a tile has more elements than a tensor may have, or `to` leaves out an axis of the result.
    pub(crate) fn with_axes(
        &self,
        of: &Tiled,
        to: &[usize],
        shape: Shape,
        positions: impl Iterator<Item = usize> + Clone,
    ) -> Result<Tiled, Error> {
        let mut keeps_all = positions.clone().is_sorted_by(|a, b| a < b);
        for position in positions {
            if !keeps_all {
                break;
            }
            let extents = of.shape().tiles().get(position).and_then(|tile| of.tiling().tile_extents(*tile));
            let Some(extents) = extents else { continue };
            keeps_all = Layout::row_major(&extents)?.with_axes(to)?.is_row_major();
        }
        Ok(self.stored(shape, of.scalar_type(), keeps_all))
    }
}

impl Tiled {
    /// Makes a tensor of which only the shape is known, for [plans](Evaluator::plan_graph). The tensor stands for a stored tensor, but has no tiles;
    /// requesting a tile is an error.
    ///
    /// # Errors
    /// If tiles cannot have elements of type `scalar`.
    pub fn planned(shape: &Shape, scalar: Scalar) -> Result<Tiled, Error> {
        check_float(scalar)?;
        Ok(Tiled::of_plan(shape.clone(), scalar, PlanTiles::new(false)))
    }

    /// Returns true if the tensor is for plans, so that it has a shape (the list of present tiles) but no elements.
    #[must_use]
    pub const fn is_planned(&self) -> bool {
        self.plan().is_some()
    }

    /// The tensor for use in a plan, with its shape alone.
    fn as_planned(&self) -> Tiled {
        match self.plan() {
            Some(_) => self.clone(),
            None => Tiled::of_plan(self.shape().clone(), self.scalar_type(), PlanTiles::new(self.is_lazy())),
        }
    }
}

impl Evaluator {
    /// Lists the steps that [`evaluate`](Evaluator::evaluate) would take, with the tiles and bytes of each result, and the products of
    /// tiles. No tile is computed or read, so inputs may be [lazy](Tiled::lazy), or have only a shape ([`Tiled::planned`]). Elementwise
    /// expressions are evaluated only at zeros, to find out where they are 0.
    ///
    /// An evaluation knows the norms of its intermediate results, whereas a plan has only estimates, which are at least
    /// as large. So if tiles are left out, the plan has at least as many tiles as the evaluation. At a threshold of 0
    /// the numbers of the plan are equal to those of the evaluation.
    ///
    /// ```
    /// use cembra_runtime::Scalar;
    /// use cembra_tensor::TensorGraph;
    /// use cembra_tiles::{Evaluator, Options, Screening, Shape, Tiled, Tiling, Tiling1, StepKind};
    /// # use cembra_tensor::{Body, DataMut, Elements};
    /// # use cembra_value::{Error, tensor::Tensor};
    /// # struct NoElements;
    /// # impl Elements for NoElements {
    /// #     fn map_into(&self, _: &Body, _: &[Tensor], _: &[usize], _: &mut [DataMut<'_>]) -> Result<(), Error> {
    /// #         Ok(())
    /// #     }
    /// #     fn most_bytes(&self) -> u64 {
    /// #         u64::MAX
    /// #     }
    /// # }
    /// # let elements = NoElements;
    ///
    /// let mut graph = TensorGraph::standard();
    /// let leaf = graph.leaf("a", Scalar::Float64, &[1_000_000, 1_000_000])?;
    /// let square = graph.einsum("ij,jk->ik", &[leaf, leaf])?;
    ///
    /// let axis = Tiling1::blocked(1_000_000, 1000)?;
    /// let diagonal = (0..1000).map(|at| (at * 1001, 1.0));
    /// let shape = Shape::of_norms(&Tiling::new([&axis, &axis])?, diagonal, &Screening::threshold(0.0))?;
    /// let a = Tiled::planned(&shape, Scalar::Float64)?;
    /// // The square would take 8 GB. A plan makes none of its tiles.
    /// let steps = Evaluator::new(Options::default()).plan_graph(&graph, &[square], &[&a], &elements)?;
    /// assert_eq!((steps[0].tiles, steps[0].bytes), (1000, 8_000_000_000));
    /// assert_eq!(steps[0].work, StepKind::Product { products: 1000, of: 1e9, operations: 2e12 });
    /// # Ok::<(), cembra_value::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`evaluate`](Evaluator::evaluate), except those of computing tiles. The memory limit may fail the plan although the
    /// evaluation would take fewer bytes.
    pub fn plan_graph(
        &self,
        graph: &TensorGraph,
        outputs: &[TensorNodeId],
        inputs: &[&Tiled],
        elements: &dyn Elements,
    ) -> Result<Vec<Step>, Error> {
        let journal = Journal::default();
        let run = self.of_plan(journal.clone());
        let inputs: Vec<Tiled> = inputs.iter().map(|input| input.as_planned()).collect();
        run.evaluate(graph, outputs, &inputs.iter().collect::<Vec<&Tiled>>(), elements)?;
        Ok(journal.steps())
    }

    /// Returns an error if an operand has no tiles, unless this evaluator only plans.
    pub(crate) fn check_tiles(&self, operands: &[&Tiled]) -> Result<(), Error> {
        if !self.workers.is_plan && operands.iter().any(|operand| operand.is_planned()) {
            Err(without_tiles())
        } else {
            Ok(())
        }
    }
}
