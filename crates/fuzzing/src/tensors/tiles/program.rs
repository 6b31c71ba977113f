//! Programs on tiled tensors: a graph, tensors for its leaves, and options. A program is evaluated in many ways that must give equal results. The
//! module `meaning` computes the expected results.

use super::operands::{FailingTiles, LazyTensor, Promise, TiledContents};
use crate::config::pick;
use crate::tensors::cuts::{Cuts, Tilings, is_elementwise};
use cembra::Error;
use cembra::errors::Span;
use cembra::tensor::{TensorErrorKind, TensorGraph, TensorNodeId};
use cembra_engine::LibraryProduct;
use cembra_tensor::{Elements, Operation};
use cembra_tiles::{Evaluator, Options, Segment, Tiled};
use fastrand::Rng;
use std::sync::Arc;

/// A program on tiled tensors: a graph, tensors for its leaves, and options.
#[derive(Clone, Debug)]
pub(super) struct Program {
    pub(super) graph: TensorGraph,
    /// The tiled tensors for the leaves, in the order of the leaves.
    pub(super) inputs: Vec<Tiled>,
    pub(super) outputs: Vec<TensorNodeId>,
    /// The tilings of the leaves' axes, one for each extent of an axis.
    pub(super) tilings: Tilings,
    pub(super) settings: Settings,
}

/// The options of a program that may change the bits of its results, and a seed for drawing options that must not change them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Settings {
    pub(super) threshold: f64,
    pub(super) is_screened: bool,
    segment: Segment,
    /// True if the matrix library multiplies tiles, false if the reference implementation does.
    is_by_library: bool,
    pub(super) seed: u64,
}

impl Settings {
    /// Returns random settings for a program.
    pub(super) fn new(random: &mut Rng) -> Settings {
        Settings {
            threshold: *pick(random, &[0.0, 0.0, 0.0, 0.0, 1e-12, 1e-3, 0.1, 0.5, 2.0]),
            is_screened: random.u32(..8) > 0,
            segment: Segment { elements: *pick(random, &[1, 2, 3, 8, 64, 8192]), tiles: *pick(random, &[1, 2, 3, 64]) },
            is_by_library: random.bool(),
            seed: random.u64(..),
        }
    }

    /// Returns the norm below which tiles are dropped.
    pub(super) fn least(&self) -> f64 {
        if self.is_screened { self.threshold } else { 0.0 }
    }

    /// Returns the evaluation options of these settings.
    pub(super) fn options(&self) -> Options {
        Options::default().threshold(self.threshold).screen(self.is_screened).segment(self.segment)
    }

    /// Returns an evaluator with the options `options`, and with the implementation of matrix products that these settings choose. `options` may
    /// differ from the result of [`options`](Self::options) only in options that do not change any bit of a value.
    pub(super) fn evaluator(&self, options: Options) -> Evaluator {
        let run = Evaluator::new(options);
        if self.is_by_library { run.matrices(Arc::new(LibraryProduct)) } else { run }
    }
}

/// The set of nodes of a program whose values are requested from an evaluation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum RequestedNodes {
    /// The values of all float nodes are requested. So each node becomes a tiled tensor, and no operator is fused with the operator that reads its
    /// result.
    Each,
    /// The values of those nodes are requested that always become tiled tensors: nodes that are read twice, or by an operation that is not
    /// elementwise.
    Made,
    /// The values of the outputs are requested.
    Outputs,
}

/// The outcome of an evaluation: the values of the requested nodes, or the error with its kind, message and place in the text.
pub(super) type Outcome = Result<Vec<TiledContents>, (Option<TensorErrorKind>, String, Option<Span>)>;

/// Converts `error` to the form that an [`Outcome`] has for errors: kind, message and place.
pub(super) fn failed(error: &Error) -> (Option<TensorErrorKind>, String, Option<Span>) {
    (error.tensor_kind(), error.to_string(), error.span())
}

impl Program {
    /// Returns the nodes in the set `asked`, in order and without duplicates.
    pub(super) fn asked(&self, asked: RequestedNodes) -> Vec<TensorNodeId> {
        let needed = self.graph.needed(&self.outputs);
        let (mut readers, mut is_whole) = (vec![0_u32; self.graph.len()], vec![false; self.graph.len()]);
        let mut is_wider = vec![false; self.graph.len()];
        for (_, node) in self.graph.nodes().filter(|(id, _)| needed[id.index()]) {
            for operand in node.read() {
                readers[operand.index()] += 1;
                is_whole[operand.index()] |= !is_elementwise(&self.graph, node);
                is_wider[operand.index()] |= *self.graph.extents(*operand) != node.extents[..];
            }
        }
        let is_asked = |id: TensorNodeId| {
            let node = self.graph.node(id);
            if self.outputs.contains(&id) {
                return true;
            }
            match (asked, &node.operation) {
                (RequestedNodes::Outputs, _) => false,
                // Operators may depend on the values of number operands, which are not visible in tiles.
                (_, Operation::Constant(_)) => is_whole[id.index()],
                (RequestedNodes::Each, _) => true,
                // A value that is read for more indices than it has is computed before.
                (RequestedNodes::Made, _) => {
                    let is_shared = readers[id.index()] > 1 || is_wider[id.index()];
                    !is_elementwise(&self.graph, node) || is_whole[id.index()] || is_shared
                }
            }
        };
        let of_floats = self.graph.nodes().filter(|(id, node)| needed[id.index()] && node.scalar.is_float());
        of_floats.map(|(id, _)| id).filter(|id| is_asked(*id)).collect()
    }

    /// Compares two requests: one for only the outputs, and one for all values that become tiled tensors ([`RequestedNodes::Made`]). Returns true if
    /// the evaluator fuses the same operators for both.
    pub(super) fn is_grouped_alike(&self) -> bool {
        let needed = self.graph.needed(&self.outputs);
        let (asked, least) = (self.asked(RequestedNodes::Made), self.asked(RequestedNodes::Outputs));
        let mut is_of_leaves = vec![false; self.graph.len()];
        for (id, node) in self.graph.nodes().filter(|(id, _)| needed[id.index()]) {
            let is_whole = !is_elementwise(&self.graph, node);
            is_of_leaves[id.index()] = is_whole || node.read().iter().any(|operand| is_of_leaves[operand.index()]);
            let is_kept = matches!(node.operation, Operation::Map(_)) && is_of_leaves[id.index()];
            let is_number = matches!(node.operation, Operation::Constant(_));
            if asked.contains(&id) && !(least.contains(&id) || is_whole || is_kept || is_number) {
                return false;
            }
        }
        true
    }

    /// Returns the tilings of the values of all nodes if the nodes `asked` are requested.
    pub(super) fn cuts(&self, asked: &[TensorNodeId]) -> Cuts {
        let mut cuts = Cuts::default();
        cuts.extend(&self.graph, &mut self.tilings.clone(), |id| asked.contains(&id));
        cuts
    }

    /// Returns for each leaf how often an evaluation may request any one of its tiles: at most once per operation that reads the leaf, where fused
    /// operators count as one operation. `None` for a leaf that is broadcast (read for more indices than it has).
    pub(super) fn reads(&self, asked: &[TensorNodeId]) -> Vec<Option<u32>> {
        let needed = self.graph.needed(&self.outputs);
        let mut times = vec![0_u32; self.graph.len()];
        let mut is_wider = vec![false; self.graph.len()];
        let cuts = self.cuts(asked);
        let nodes: Vec<_> = self.graph.nodes().filter(|(id, _)| needed[id.index()]).collect();
        for (id, node) in nodes.into_iter().rev() {
            // A view with all elements in order is the lazy tensor itself.
            let is_view = matches!(
                (&node.operation, node.read().len()),
                (Operation::Axes(_) | Operation::Contract(_) | Operation::Reshape | Operation::Barrier(_), 1)
                    | (Operation::CustomVjp(_), 1)
            );
            let is_made = !is_view && (asked.contains(&id) || !is_elementwise(&self.graph, node));
            // An expression that is constant along an axis is computed again in each expression that reads it.
            let is_read = is_made && !cuts.is_free(&self.graph, id);
            let own = match is_read {
                true => 1,
                false => times[id.index()].saturating_add(u32::from(is_view || is_made)),
            };
            for operand in node.read() {
                times[operand.index()] = times[operand.index()].saturating_add(own);
                let is_wider_here =
                    *self.graph.extents(*operand) != node.extents[..] && is_elementwise(&self.graph, node);
                is_wider[operand.index()] |= is_wider_here || (is_wider[id.index()] && !is_read);
            }
        }
        let of = |leaf: &cembra_tensor::Leaf| (!is_wider[leaf.node.index()]).then_some(times[leaf.node.index()]);
        self.graph.leaves().iter().map(of).collect()
    }

    /// Evaluates the nodes `asked`, with tensors in memory as the values of all leaves.
    pub(super) fn outcome(&self, run: &Evaluator, asked: &[TensorNodeId], elements: &dyn Elements) -> Outcome {
        let inputs: Vec<&Tiled> = self.inputs.iter().collect();
        seen(run.evaluate(&self.graph, asked, &inputs, elements))
    }

    /// Evaluates the nodes `asked` with lazy tensors for some leaves. Also returns for each leaf the number of requests for the tile that was
    /// requested most often; 0 for a leaf that is not lazy.
    pub(super) fn lazy_outcome(
        &self,
        run: &Evaluator,
        asked: &[TensorNodeId],
        promise: Promise,
        failing: Option<FailingTiles>,
        elements: &dyn Elements,
    ) -> Result<(Outcome, Vec<u32>), Error> {
        let mut random = Rng::with_seed(self.settings.seed);
        let lazy = |of: &Tiled| LazyTensor::of(of, promise, failing);
        let lazies = self.inputs.iter().map(|of| (random.u32(..4) > 0).then(|| lazy(of)).transpose());
        let lazies = lazies.collect::<Result<Vec<Option<LazyTensor>>, Error>>()?;
        let either =
            self.inputs.iter().zip(&lazies).map(|(stored, lazy)| lazy.as_ref().map_or(stored, |lazy| &lazy.tiled));
        let made = run.evaluate(&self.graph, asked, &either.collect::<Vec<&Tiled>>(), elements);
        let counts = lazies.iter().map(|lazy| lazy.as_ref().map_or(0, LazyTensor::most_asked)).collect();
        Ok((seen(made), counts))
    }
}

/// Returns the visible content of values. A lazy leaf is stored first, because its norms are only promises.
fn seen(made: Result<Vec<Tiled>, Error>) -> Outcome {
    let seen = |of: &Tiled| TiledContents::of(&of.materialized()?);
    let seen = made.and_then(|made| made.iter().map(seen).collect::<Result<Vec<TiledContents>, Error>>());
    seen.map_err(|error| failed(&error))
}
