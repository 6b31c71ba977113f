//! Generates random tensor graphs. Nodes are added to a pool, from which most operands are drawn. A node that the graph rejects is drawn again, so
//! the generator need not know which operands fit. Graphs for tiled tensors have float leaves and mostly operators that tiled tensors support; in
//! most of them, axes that are combined have the same tiling.

mod views;

use super::cuts::{Cuts, Tilings};
use super::leaves::{self, MOST, SCALARS, Values};
use super::user;
use crate::config::pick;
use cembra::Error;
use cembra::Scalar;
use cembra::operators::Registry;
use cembra::tensor::{Labels, Reduction, RewriteRule, Tensor, TensorGraph, TensorNodeId};
use cembra_ops::{OpId, OverArrays};
use fastrand::Rng;
use std::sync::OnceLock;

/// A random tensor graph, tensors for its leaves, and its outputs.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(super) graph: TensorGraph,
    pub(super) inputs: Vec<Tensor>,
    pub(super) outputs: Vec<TensorNodeId>,
}

/// A random tensor graph under construction, with the values of its leaves and the pool of nodes that may become operands.
pub(super) struct Growth<'r> {
    pub(super) random: &'r mut Rng,
    pub(super) graph: TensorGraph,
    pub(super) inputs: Vec<Tensor>,
    pub(super) pool: Vec<TensorNodeId>,
    base: Vec<usize>,
    /// The tilings, for a graph on tiled tensors; `None` for other graphs.
    cutting: Option<Cutting>,
}

/// The additional state of a graph for tiled tensors.
struct Cutting {
    tilings: Tilings,
    cuts: Cuts,
    values: Values,
}

/// The most elements of a node in a graph for tiled tensors. The next constant is the most products of elements for one node. Each node is computed
/// in about a dozen ways, so these graphs are small.
const MOST_TILED: usize = 500;
const MOST_TILED_PRODUCTS: usize = 6_000;

pub(super) type NodeResult = Result<TensorNodeId, Error>;

/// An operator that cannot fail, with operand types that it accepts.
type Form = (OpId, Vec<Scalar>);

/// Returns the operators for maps: for each operator on elements that cannot fail, the lists of operand types that it accepts.
fn forms() -> &'static [Vec<Form>] {
    static FORMS: OnceLock<Vec<Vec<Form>>> = OnceLock::new();
    FORMS.get_or_init(|| {
        let registry = Registry::standard();
        let mut graph = TensorGraph::standard();
        let leaves = SCALARS.map(|scalar| graph.leaf("", scalar, &[]));
        let mut forms = Vec::new();
        for (op, def) in registry.iter() {
            let is_of_elements = matches!(def.over_arrays, OverArrays::Elementwise | OverArrays::Expanded);
            let count = def.params.len();
            if !is_of_elements || !def.is_total() || def.variadic || !(1..=3).contains(&count) {
                continue;
            }
            let mut own = Vec::new();
            for mut number in 0..SCALARS.len().pow(count as u32) {
                let digits: Vec<usize> =
                    (0..count).map(|_| (number % SCALARS.len(), number /= SCALARS.len()).0).collect();
                let operands: Vec<TensorNodeId> = digits.iter().filter_map(|at| leaves[*at].clone().ok()).collect();
                if graph.map(op, &operands).is_ok() {
                    own.push((op, digits.iter().map(|at| SCALARS[*at]).collect()));
                }
            }
            if !own.is_empty() {
                forms.push(own);
            }
        }
        forms
    })
}

/// Returns a random graph, and up to three of its nodes as outputs.
pub(super) fn case(random: &mut Rng) -> Result<Case, Error> {
    let base = leaves::base(random);
    let mut growth = Growth::of_base(random, base, None);
    for _ in 0..growth.random.u32(1..=4) {
        let scalar = *pick(growth.random, &SCALARS);
        growth.leaf(scalar, Values::Any)?;
    }
    for _ in 0..growth.random.u32(2..=16) {
        // A rejected node is left out.
        let Ok(made) = growth.node() else { continue };
        growth.add(made);
    }
    Ok(growth.finish().0)
}

/// Returns a random graph for tiled tensors with up to three float outputs, and the tilings of its axes.
pub(super) fn tiled_case(random: &mut Rng) -> Result<(Case, Tilings), Error> {
    let base = leaves::base(random);
    let values = *pick(random, &[Values::Small, Values::Small, Values::Any, Values::Any, Values::Tame]);
    let cutting = Cutting { tilings: Tilings::new(random.u64(..)), cuts: Cuts::default(), values };
    let mut growth = Growth::of_base(random, base, Some(cutting));
    let usual = *pick(growth.random, &[Scalar::Float64, Scalar::Float64, Scalar::Float32]);
    for _ in 0..growth.random.u32(1..=4) {
        let scalar = if growth.random.u32(..12) == 0 { *pick(growth.random, &FLOATS) } else { usual };
        growth.leaf(scalar, values)?;
    }
    for _ in 0..growth.random.u32(1..=10) {
        let Ok(made) = growth.tiled_node() else { continue };
        growth.add(made);
    }
    let graph = &growth.graph;
    growth.pool.retain(|id| graph.scalar(*id).is_float());
    let (case, cutting) = growth.finish();
    Ok((case, cutting.map_or_else(|| Tilings::new(0), |cutting| cutting.tilings)))
}

/// The element types that tiles can have.
const FLOATS: [Scalar; 2] = [Scalar::Float32, Scalar::Float64];

impl<'r> Growth<'r> {
    /// Returns a graph without nodes.
    fn of_base(random: &'r mut Rng, base: Vec<usize>, cutting: Option<Cutting>) -> Growth<'r> {
        Growth { random, graph: TensorGraph::standard(), inputs: Vec::new(), pool: Vec::new(), base, cutting }
    }

    /// Returns the graph, with some of the last nodes as outputs.
    fn finish(self) -> (Case, Option<Cutting>) {
        let count = self.random.usize(1..=3);
        let newest = self.pool.iter().rev().take(5).copied().collect::<Vec<TensorNodeId>>();
        let outputs = self.random.choose_multiple(newest, count);
        (Case { graph: self.graph, inputs: self.inputs, outputs }, self.cutting)
    }

    /// Starts a graph with `count` leaves of type f64.
    pub(super) fn of_floats(random: &'r mut Rng, count: usize) -> Result<Growth<'r>, Error> {
        let base: Vec<usize> = (0..5).map(|_| *pick(random, &[1, 2, 3, 3, 5])).collect();
        let mut growth = Growth::of_base(random, base, None);
        for _ in 0..count {
            growth.leaf(Scalar::Float64, Values::Tame)?;
        }
        Ok(growth)
    }

    fn leaf(&mut self, scalar: Scalar, values: Values) -> NodeResult {
        let mut extents = leaves::extents(self.random, &self.base);
        while self.cutting.is_some() && extents.iter().product::<usize>() > MOST_TILED {
            extents.remove(0);
        }
        let tensor = leaves::tensor(self.random, scalar, &extents, values)?;
        self.input(tensor)
    }

    /// Adds a leaf to the graph, with `tensor` as its value.
    pub(super) fn input(&mut self, tensor: Tensor) -> NodeResult {
        let name = format!("a{}", self.inputs.len());
        let made = self.graph.leaf(&name, tensor.scalar_type(), tensor.extents())?;
        self.inputs.push(tensor);
        self.pool.push(made);
        Ok(made)
    }

    /// Adds the node `made` to the pool of operands, unless it is too large.
    pub(super) fn add(&mut self, made: TensorNodeId) {
        let count = self.graph.extents(made).iter().product::<usize>();
        if let Some(Cutting { tilings, cuts, .. }) = &mut self.cutting {
            cuts.extend(&self.graph, tilings, |_| false);
            // A few rejected nodes are kept, to test the rejection.
            let is_taken = cuts.of(made).is_some() || self.random.u32(..15) == 0;
            if count > MOST_TILED || !is_taken {
                return;
            }
        }
        if count <= 2 * MOST {
            self.pool.push(made);
        }
    }

    /// Returns a random node of the pool, preferably one that was added late.
    pub(super) fn any(&mut self) -> TensorNodeId {
        let from = if self.random.bool() { self.pool.len().saturating_sub(4) } else { 0 };
        self.pool[self.random.usize(from..self.pool.len())]
    }

    /// Adds a node that `make` makes from any node of the pool.
    fn of_any(&mut self, make: fn(&mut Self, TensorNodeId) -> NodeResult) -> NodeResult {
        let x = self.any();
        make(self, x)
    }

    /// Returns a node with a type. If there is none, casts a node whose cast cannot fail.
    fn of(&mut self, scalar: Scalar) -> NodeResult {
        let graph = &self.graph;
        let fitting: Vec<TensorNodeId> = self.pool.iter().copied().filter(|id| graph.scalar(*id) == scalar).collect();
        if !fitting.is_empty() {
            return Ok(*pick(self.random, &fitting));
        }
        if let Some(Cutting { values, .. }) = self.cutting {
            let any = self.any();
            return match scalar {
                Scalar::Float32 | Scalar::Float64 if self.random.bool() => self.leaf(scalar, values),
                Scalar::Boolean if self.graph.scalar(any).is_float() => {
                    let zero = self.graph.constant(self.graph.scalar(any), 0.0)?;
                    self.graph.apply("core.greater", &[any, zero])
                }
                _ => self.constant(scalar),
            };
        }
        if self.random.bool() { self.leaf(scalar, Values::Any) } else { self.constant(scalar) }
    }

    /// Adds a constant with a special or small number as its value.
    pub(super) fn constant(&mut self, scalar: Scalar) -> NodeResult {
        let numbers: &[f64] = match scalar {
            Scalar::Boolean => &[0.0, 1.0],
            Scalar::Int32 | Scalar::Int64 => {
                &[0.0, 1.0, -1.0, 2.0, 3.0, 4.0, 5.0, -7.0, 64.0, 65536.0, -2_147_483_648.0]
            }
            _ => &[
                0.0,
                -0.0,
                1.0,
                -1.0,
                2.0,
                3.0,
                4.0,
                5.0,
                0.5,
                0.25,
                -2.0,
                -0.5,
                0.1,
                1e-40,
                3e38,
                1e308,
                5e-324,
                f64::INFINITY,
                f64::NAN,
                8.507_059_173_023_462e37,
                1.701_411_834_604_692_3e38,
                6.0,
            ],
        };
        let number = *pick(self.random, numbers);
        self.graph.constant(scalar, number)
    }

    fn node(&mut self) -> NodeResult {
        match self.random.u32(..100) {
            0..25 => self.map(),
            25..45 => self.rule(),
            45..70 => self.of_any(Self::view),
            70..80 => self.of_any(Self::reduction),
            80..88 => self.product(),
            88..91 => self.conditional(),
            91..94 => self.composite(),
            94 => self.cast(),
            95 => self.rounded(),
            96..98 => self.indices_or_known(),
            _ => self.pattern_of_views(),
        }
    }

    /// Adds a node to a graph for tiled tensors.
    fn tiled_node(&mut self) -> NodeResult {
        match self.random.u32(..100) {
            0..20 => self.arithmetic(),
            20..32 => self.map(),
            32..38 => self.rule(),
            38..58 => self.of_any(Self::view),
            58..70 => self.of_any(Self::reduction),
            70..90 => self.product(),
            90..94 => self.composite(),
            94..98 => {
                let condition = self.of(Scalar::Boolean)?;
                let x = self.any();
                let y = self.of(self.graph.scalar(x))?;
                self.graph.apply("tensor.where", &[condition, x, y])
            }
            98 => self.indices_or_known(),
            _ => self.pattern_of_views(),
        }
    }

    /// Adds a sum, difference, product or quotient of two nodes, or of a node and a number.
    fn arithmetic(&mut self) -> NodeResult {
        let op = *pick(self.random, &["math.add", "math.add", "math.subtract", "math.multiply", "math.divide"]);
        let x = self.any();
        let y = match self.random.u32(..6) {
            0 => self.constant(self.graph.scalar(x))?,
            // The other operand has the same extents.
            1..4 => {
                let graph = &self.graph;
                let alike = self.pool.iter().copied().filter(|id| {
                    graph.extents(*id) == graph.extents(x) && graph.scalar(*id) == graph.scalar(x) && *id != x
                });
                let alike: Vec<TensorNodeId> = alike.collect();
                self.random.choice(alike).unwrap_or(x)
            }
            _ => self.any(),
        };
        let operands = if self.random.bool() { [x, y] } else { [y, x] };
        self.graph.apply(op, &operands)
    }

    fn map(&mut self) -> NodeResult {
        let own = pick(self.random, forms());
        let mut form = pick(self.random, own).clone();
        if self.cutting.is_some() {
            // The elements of tiles are floats, so forms with other elements are rare.
            let of_floats: Vec<&Form> =
                own.iter().filter(|form| form.1.iter().all(|scalar| scalar.is_float())).collect();
            if let Some(own) = self.random.choice(of_floats) {
                form = own.clone();
            }
        }
        let operands = form.1.iter().map(|scalar| self.of(*scalar)).collect::<Result<Vec<_>, _>>()?;
        match self.graph.map(form.0, &operands) {
            Ok(made) => Ok(made),
            // Operands with equal shapes always fit, if the types allow it.
            Err(_) => self.graph.map(form.0, &vec![operands[0]; operands.len()]),
        }
    }

    /// Adds a choice between two nodes by one truth value. Mostly, a branch is a new sequence of nodes that only the choice uses.
    fn conditional(&mut self) -> NodeResult {
        let truth = self.of(Scalar::Boolean)?;
        let axes: Vec<usize> = (0..self.graph.extents(truth).len()).collect();
        let reduction = *pick(self.random, &[Reduction::Any, Reduction::All]);
        let condition = self.graph.reduce(reduction, truth, &axes)?;
        let mut branch = self.any();
        for _ in 0..self.random.u32(..3) {
            branch = match self.random.u32(..3) {
                0 => self.reduction(branch)?,
                1 => self.composite().or_else(|_| self.product())?,
                _ => self.product().or_else(|_| self.map())?,
            };
        }
        let other = self.of(self.graph.scalar(branch))?;
        let operands = if self.random.bool() { [condition, branch, other] } else { [condition, other, branch] };
        self.graph.apply("tensor.where", &operands)
    }

    /// Adds an operator with a literal operand.
    fn rounded(&mut self) -> NodeResult {
        let x = self.any();
        if self.random.u32(..4) == 0 {
            return self.graph.apply("round", &[x]);
        }
        let digits = self.random.i32(-3..=5);
        let digits = self.graph.constant(Scalar::Int32, digits.into())?;
        self.graph.apply("round", &[x, digits])
    }

    fn cast(&mut self) -> NodeResult {
        let x = self.any();
        // Only casts that cannot fail are made.
        let wide = match self.graph.scalar(x) {
            Scalar::Int32 => *pick(self.random, &[Scalar::Int64, Scalar::Float64, Scalar::Float32]),
            Scalar::Float32 | Scalar::Int64 => Scalar::Float64,
            _ => Scalar::Float32,
        };
        let there = self.graph.cast(x, wide)?;
        let back = if self.random.bool() { self.graph.scalar(x) } else { *pick(self.random, &SCALARS[3..]) };
        let is_whole = !back.is_float() && wide.is_float() && self.graph.scalar(x) != Scalar::Int32;
        if is_whole { Ok(there) } else { self.graph.cast(there, back) }
    }

    /// Adds the pattern of a rewrite rule, applied to any nodes of one type.
    fn rule(&mut self) -> NodeResult {
        // Rules with constants only apply to some constants, so they are drawn more often.
        let (with, without): (Vec<&RewriteRule<'_>>, Vec<&RewriteRule<'_>>) =
            cembra_tensor::rules().iter().partition(|rule| rule.pattern.contains('#'));
        let rules = if self.random.u32(..3) == 0 { with } else { without };
        let rule = *pick(self.random, &rules);
        let scalar = *pick(self.random, if self.cutting.is_some() { &FLOATS[..] } else { &SCALARS[1..] });
        let mut names: Vec<(String, TensorNodeId)> = Vec::new();
        /// An operator whose operands are being read.
        struct Open<'t>(&'t str, Vec<TensorNodeId>);
        let mut open: Vec<Open<'_>> = Vec::new();
        let mut rest = rule.pattern;
        loop {
            let end = rest.find(['(', ')', ',']).unwrap_or(rest.len());
            let (word, after) = (rest[..end].trim(), &rest[end..]);
            if let Some(after) = after.strip_prefix('(') {
                open.push(Open(word, Vec::new()));
                rest = after;
                continue;
            }
            rest = after;
            if !word.is_empty() {
                let is_condition = open.last().is_some_and(|Open(op, operands)| {
                    *op == "bool.logical_not" || (*op == "tensor.where" && operands.is_empty())
                });
                let made = self.part(word, if is_condition { Scalar::Boolean } else { scalar }, &mut names)?;
                if let Some(Open(_, operands)) = open.last_mut() {
                    operands.push(made);
                }
            }
            if let Some(after) = rest.strip_prefix(')') {
                rest = after;
                let Some(Open(op, operands)) = open.pop() else { return self.constant(scalar) };
                let mut operands = operands;
                if operands.len() == 2 && self.random.u32(..3) == 0 {
                    operands.reverse();
                }
                let made = self.graph.apply(op, &operands)?;
                match open.last_mut() {
                    Some(Open(_, operands)) => operands.push(made),
                    None => return Ok(made),
                }
            } else {
                rest = rest.strip_prefix(',').unwrap_or("");
            }
        }
    }

    fn part(&mut self, word: &str, scalar: Scalar, names: &mut Vec<(String, TensorNodeId)>) -> NodeResult {
        if let Ok(number) = word.parse::<f64>() {
            return self.graph.constant(scalar, number);
        }
        if let Some((_, known)) = names.iter().find(|(name, _)| name == word) {
            return Ok(*known);
        }
        let made = if word.starts_with('#') { self.constant(scalar)? } else { self.of(scalar)? };
        names.push((word.to_owned(), made));
        Ok(made)
    }

    /// Returns a random subset of the axes 0 to `rank - 1`, rarely an empty one.
    pub(super) fn axes(&mut self, rank: usize) -> Vec<usize> {
        let chosen: Vec<usize> = (0..rank).filter(|_| self.random.bool()).collect();
        if chosen.is_empty() && rank > 0 && self.random.u32(..8) > 0 { vec![self.random.usize(..rank)] } else { chosen }
    }

    fn reduction(&mut self, x: TensorNodeId) -> NodeResult {
        use Reduction::{All, Any, Max, Min, Product, Sum};
        let is_truth = self.graph.scalar(x) == Scalar::Boolean;
        let how = *pick(self.random, if is_truth { &[Any, All] } else { &[Sum, Sum, Sum, Product, Max, Min] });
        let axes = self.axes(self.graph.extents(x).len());
        // A second reduction over the same axes may share the loop.
        if !is_truth && self.random.u32(..3) == 0 {
            let other = self.graph.reduce(*pick(self.random, &[Sum, Max, Min]), x, &axes)?;
            self.add(other);
        }
        if self.random.u32(..4) == 0 {
            return self.graph.reduce_keeping(how, x, &axes);
        }
        let made = self.graph.reduce(how, x, &axes)?;
        // A reduction of a reduction can be merged if the order of terms does not matter.
        if self.random.u32(..4) > 0 {
            return Ok(made);
        }
        let axes = self.axes(self.graph.extents(made).len());
        self.graph.reduce(how, made, &axes)
    }

    /// Adds a product of up to three nodes, summed by labels that fit their extents. Sometimes a factor has a label twice.
    pub(super) fn product(&mut self) -> NodeResult {
        /// The most products of elements.
        const MOST_PRODUCTS: usize = 60_000;
        let first = self.any();
        let is_fitting = |graph: &TensorGraph, id: &TensorNodeId| {
            graph.scalar(*id) != Scalar::Boolean && (!graph.scalar(*id).is_float() || graph.scalar(first).is_float())
        };
        let mut operands = vec![first];
        let pool: Vec<TensorNodeId> = self.pool.iter().copied().filter(|id| is_fitting(&self.graph, id)).collect();
        for _ in 0..*pick(self.random, &[0, 1, 1, 1, 2, 2, 3]) {
            if let Some(operand) = self.random.choice(&pool) {
                operands.push(*operand);
            }
        }
        let mut extents: Vec<usize> = Vec::new();
        let mut labels = Labels { operands: Vec::new(), output: cembra_tensor::Axes::new() };
        for operand in &operands {
            let mut own = cembra_tensor::Axes::new();
            for extent in self.graph.extents(*operand) {
                let known: Vec<usize> = (0..extents.len()).filter(|label| extents[*label] == *extent).collect();
                let label = match self.random.choice(&known) {
                    Some(label) if self.random.u32(..4) > 0 => *label,
                    _ => {
                        extents.push(*extent);
                        extents.len() - 1
                    }
                };
                own.push(label as u8);
            }
            labels.operands.push(own);
        }
        let share = self.random.u32(..4);
        let mut output: Vec<u8> = (0..extents.len() as u8).filter(|_| self.random.u32(..4) < share).collect();
        self.random.shuffle(&mut output);
        labels.output = output.into_iter().collect();
        let most = if self.cutting.is_some() { MOST_TILED_PRODUCTS } else { MOST_PRODUCTS };
        if extents.iter().product::<usize>() > most || labels.output.len() > 6 {
            return Ok(first);
        }
        self.graph.contract(labels, &operands)
    }

    /// Adds a composite operation, such as a softmax, a mean or a user extension.
    pub(super) fn composite(&mut self) -> NodeResult {
        let x = self.any();
        let axis = self.random.usize(..self.graph.extents(x).len().max(1));
        match self.random.u32(..9) {
            0 => self.graph.softmax(x, axis),
            1 => self.graph.log_softmax(x, axis),
            2 => self.graph.logsumexp(x, axis),
            3 => self.graph.layer_norm(x, axis, 1e-3),
            4 => {
                let axes = self.axes(self.graph.extents(x).len());
                self.graph.mean(x, &axes)
            }
            5 => self.graph.barrier(x),
            6 => user::sine(&mut self.graph, x),
            7 => user::reversed(&mut self.graph, x, self.random.bool()),
            _ => {
                let y = self.any();
                self.graph.softmax_cross_entropy(x, y)
            }
        }
    }

    /// Adds the indices of the largest or smallest elements, or a tensor whose elements are part of the graph.
    fn indices_or_known(&mut self) -> NodeResult {
        let x = self.any();
        let axis = self.random.usize(..self.graph.extents(x).len().max(1));
        match self.random.u32(..3) {
            0 => self.graph.argmax(x, axis),
            1 => self.graph.argmin(x, axis),
            _ => {
                let (scalar, extents) = (*pick(self.random, &SCALARS), leaves::extents(self.random, &self.base));
                let tensor = leaves::tensor(self.random, scalar, &extents, Values::Any)?;
                self.graph.constant_tensor(&tensor)
            }
        }
    }
}
