//! Plans as text: one line per step, which shows the values that the step computes, reads and drops. For products the
//! line also has the labels, the tensors that are copied into another order, and the method. The text assumes inputs in
//! row-major order, and products that are computed as matrix products. If the tensors of a run have other layouts, the
//! run's own counters differ from the text.

use super::{Condition, Plan, PlanCounters, Region, Step, Work, is_view};
use crate::Data;
use crate::body::{Body, BodyStep, Operand};
use crate::node::{Axes, Axis, Labels, Operation};
use crate::product::{FusedLabels, Kernel, ProductPlan};
use crate::walk::CopiedAxis;
use crate::{Layout, TensorGraph, TensorNodeId};
use cembra_runtime::{Excerpt, LineKind, Listing};
use cembra_value::Error;
use cembra_value::ScalarValue;
use rustc_hash::{FxHashMap, FxHashSet};

impl Plan {
    /// Lists a line for each step, and a line for the plan's counters. `graph` must be the graph that was planned. The origins of a line are the
    /// indices of the graph's nodes that the step computes.
    ///
    /// For a product the line has: the labels; the method, which is matrix products (`gemm`, with rows, columns and terms) or loops; the operands
    /// that are copied (`[P (ba)]`: into memory in the order of the labels `ba`); whether the result is copied from another order of its labels; and
    /// the number of copied bytes if all inputs are in row-major order.
    ///
    /// ```
    /// use cembra_runtime::Scalar;
    /// use cembra_tensor::{TensorGraph, Plan};
    ///
    /// let mut g = TensorGraph::standard();
    /// let a = g.leaf("a", Scalar::Float32, &[3, 4, 5])?;
    /// let b = g.leaf("b", Scalar::Float32, &[4, 6])?;
    /// let product = g.einsum("ijk,jl->lik", &[a, b])?;
    /// let listing = Plan::of(&g, &[product]).listing(&g).to_string();
    /// let line = "%2 [6, 3, 5] = contract abc,bd->dac by gemm 15x6x4 (%0 [P (acb)], %1); moves 240 bytes; drops %0, %1";
    /// assert_eq!(listing.lines().next(), Some(line));
    /// # Ok::<(), cembra_value::Error>(())
    /// ```
    #[must_use]
    pub fn listing(&self, graph: &TensorGraph) -> Listing {
        let mut listing = Listing::new();
        let mut lines = Lines { graph, layouts: FxHashMap::default(), permutes: 0, bytes: 0 };
        for step in &self.steps {
            let inner = match &step.work {
                Work::Rows { steps, .. } | Work::SharedReductions(steps) => &steps[..],
                _ => &[],
            };
            // A step that contains steps has a line before them and one after them.
            let text = lines.line(step);
            let count = text.lines().count();
            for (at, line) in text.lines().enumerate() {
                let own = at.checked_sub(1).and_then(|at| inner.get(at)).filter(|_| at + 1 < count).unwrap_or(step);
                listing.push(LineKind::Step, computed(own, graph), line);
            }
        }
        let PlanCounters { steps, kernels, temporaries, temp_bytes } = self.counters;
        listing.push(LineKind::Output, [], format_args!("outputs {}", names(&self.outputs)));
        let mut counts = format!("{steps} steps, {kernels} kernels, {temporaries} temporaries of {temp_bytes} bytes");
        if lines.permutes > 0 {
            counts.push_str(&format!(", {} permutes of {} bytes", lines.permutes, lines.bytes));
        }
        listing.push(LineKind::Note, [], counts);
        listing
    }
}

/// The nodes that a step computes: its own, and those between it and the nodes that the step reads.
fn computed(step: &Step, graph: &TensorGraph) -> Vec<u32> {
    let mut seen: FxHashSet<TensorNodeId> = step.reads(graph).into_iter().collect();
    let (mut found, mut open) = (Vec::new(), vec![step.node]);
    while let Some(node) = open.pop() {
        if seen.insert(node) {
            found.push(node.index() as u32);
            open.extend(&graph.node(node).operands);
        }
    }
    found
}

fn name(node: TensorNodeId) -> String {
    format!("%{}", node.index())
}

fn names(nodes: &[TensorNodeId]) -> String {
    nodes.iter().map(|node| name(*node)).collect::<Vec<String>>().join(", ")
}

/// Formats a label as a letter, or as a number in brackets after the 52 letters.
fn letter(label: Axis) -> String {
    match label {
        0..26 => char::from(b'a' + label).to_string(),
        26..52 => char::from(b'A' + (label - 26)).to_string(),
        _ => format!("<{label}>"),
    }
}

fn letters(labels: &[Axis]) -> String {
    labels.iter().map(|label| letter(*label)).collect()
}

/// Formats lists of labels as `einsum` writes them, such as `ab,bc->ac`.
fn spec(labels: &Labels) -> String {
    let operands: Vec<String> = labels.operands.iter().map(|own| letters(own)).collect();
    format!("{}->{}", operands.join(","), letters(&labels.output))
}

/// The operators of an expression in order, with their constant operands: these show a scale that is folded into a product.
fn operators(graph: &TensorGraph, body: &Body) -> String {
    const MOST: usize = 8;
    let constant = |operand: &Operand| {
        let BodyStep::Constant(scalar, bits) = body.steps.get((*operand as usize).checked_sub(body.inputs.len())?)?
        else {
            return None;
        };
        ScalarValue::from_bits(*scalar, *bits)
    };
    let applied = |step: &BodyStep| {
        let BodyStep::Apply(op, operands) = step else { return None };
        let mut text = graph.registry().get(op.id()).name.to_owned();
        if op.has_texts() || operands.iter().any(|operand| constant(operand).is_some()) {
            let shown = |operand| constant(operand).map_or_else(|| "_".to_owned(), |value| value.to_string());
            let operands = op.with_texts(operands.iter().map(shown), |own| format!("\"{}\"", Excerpt::quoted(own)));
            text.push_str(&format!("({})", operands.join(", ")));
        }
        Some(text)
    };
    let count = body.steps.iter().filter(|step| matches!(step, BodyStep::Apply(..))).count();
    let first: Vec<String> = body.steps.iter().filter_map(applied).take(MOST).collect();
    if count <= MOST { first.join(" ") } else { format!("{} .. {count} operators", first.join(" ")) }
}

/// The copies that a product needs, and its method. `orders` has the order of labels that each operand is copied into
/// and that the result is copied from; `None` for a tensor that is not copied. `bytes` is the size of all copies.
#[derive(Default)]
struct ProductCopies {
    orders: [Option<Axes>; 3],
    bytes: u64,
    /// The method by which the product is computed.
    kernel: String,
}

/// The state of a listing: the layouts of views, and the total number and bytes of copies.
struct Lines<'p> {
    graph: &'p TensorGraph,
    /// The memory layouts of the views that were listed so far.
    layouts: FxHashMap<TensorNodeId, Layout>,
    permutes: usize,
    bytes: u64,
}

impl Lines<'_> {
    /// Formats the line of a step. A step that contains several steps has an additional line for each of them.
    fn line(&mut self, step: &Step) -> String {
        let graph = self.graph;
        let mut read: Vec<String> = step.reads(graph).into_iter().map(name).collect();
        let mut moved = String::new();
        let of = |what: &str, region: Option<&Region>| match region {
            Some(region) if !region.body.steps.is_empty() => format!(" {what} {}", operators(graph, &region.body)),
            _ => String::new(),
        };
        let work = match &step.work {
            Work::Map(region) => format!("map {}", operators(graph, &region.body)),
            Work::Product { product, then } => {
                let ProductCopies { orders, bytes, kernel } = self.moved(*product).unwrap_or_default();
                let mark = |order: &Option<Axes>| match order {
                    Some(order) => format!(" [P ({})]", letters(order)),
                    None => String::new(),
                };
                // The operands of the product are the first nodes that are read.
                for (operand, order) in read.iter_mut().zip(&orders[..2]) {
                    operand.push_str(&mark(order));
                }
                if bytes > 0 {
                    moved = format!("; moves {bytes} bytes");
                }
                self.bytes = self.bytes.saturating_add(bytes);
                self.permutes += orders.iter().flatten().count();
                let then = of("then", then.as_ref());
                format!("{}{} by {kernel}{then}", self.operation(*product), mark(&orders[2]))
            }
            Work::Reduce { reduction, axes, of: inner, then } => {
                let (inner, then) = (of("of", Some(inner)), of("then", then.as_ref()));
                format!("reduce {reduction:?} {:?}{inner}{then}", &axes[..])
            }
            Work::Rows { depth, steps } => {
                let lines: Vec<String> = steps.iter().map(|step| format!("\n    {}", self.line(step))).collect();
                format!("rows of {depth} axes{}\n   ", lines.concat())
            }
            Work::SharedReductions(steps) => {
                let lines: Vec<String> = steps.iter().map(|step| format!("\n    {}", self.line(step))).collect();
                format!("in one loop{}\n   ", lines.concat())
            }
            Work::Node => self.operation(step.node),
        };
        let dropped = match &step.last_uses[..] {
            [] => String::new(),
            nodes => format!("; drops {}", names(nodes)),
        };
        let mut guard = String::new();
        for (number, Condition { node, holds }) in step.guard.iter().enumerate() {
            guard.push_str(if number == 0 { "; only if " } else { " and " });
            guard.push_str(if *holds { "" } else { "not " });
            guard.push_str(&name(*node));
        }
        let extents = graph.extents(step.node);
        format!("{} {extents:?} = {work} ({}){moved}{guard}{dropped}", name(step.node), read.join(", "))
    }

    fn operation(&self, node: TensorNodeId) -> String {
        match &self.graph.node(node).operation {
            Operation::Contract(labels) => format!("contract {}", spec(labels)),
            operation => format!("{operation:?}").to_lowercase(),
        }
    }

    /// The copies that a product of two operands needs, and its method.
    fn moved(&mut self, product: TensorNodeId) -> Result<ProductCopies, Error> {
        let node = self.graph.node(product);
        let (Operation::Contract(labels), [a, b]) = (&node.operation, &node.operands[..]) else {
            return Ok(ProductCopies::default());
        };
        let layouts = [self.layout(*a)?, self.layout(*b)?];
        let size = Data::element_size(node.scalar).unwrap_or(0);
        let plan = ProductPlan::of(labels, layouts.each_ref(), size)?;
        let extents = labels.label_extents(&layouts.each_ref().map(Layout::extents))?;
        let count = |runs: &[FusedLabels]| runs.iter().map(|run| run.extent).product::<usize>();
        let kernel = match &plan.kernel {
            Kernel::Zeros => "zeros".to_owned(),
            Kernel::Nest { .. } => "loops".to_owned(),
            Kernel::Direct { .. } => "terms".to_owned(),
            Kernel::Matrices { kept, summed, dimensions: [rows, columns, terms] } => {
                let times = match count(kept) * count(summed) {
                    1 => String::new(),
                    times => format!("{times} "),
                };
                format!("{times}gemm {}x{}x{}", rows.extent, columns.extent, terms.extent)
            }
        };
        let copied = plan.copied();
        let elements = |axes: &[CopiedAxis]| axes.iter().map(|axis| axis.extent).product::<usize>();
        let bytes = copied.iter().flatten().map(|axes| (elements(axes) * size) as u64).sum();
        let order = |axes: Option<&[CopiedAxis]>, own: &Axes, stride: fn(&CopiedAxis) -> isize| -> Option<Axes> {
            // The axes are those of the labels in ascending order, without labels of one index.
            let long = (0..extents.len() as Axis).filter(|label| extents[usize::from(*label)] != 1);
            let mut order: Vec<(Axis, &CopiedAxis)> = long.filter(|label| own.contains(label)).zip(axes?).collect();
            order.sort_by_key(|(_, axis)| std::cmp::Reverse(stride(axis)));
            Some(order.into_iter().map(|(label, _)| label).collect())
        };
        let [left, right, result] = copied;
        let orders = [
            order(left, &labels.operands[0], |axis| axis.to),
            order(right, &labels.operands[1], |axis| axis.to),
            order(result, &labels.output, |axis| axis.from),
        ];
        Ok(ProductCopies { orders, bytes, kernel })
    }

    /// The memory layout of a node. If the node is a view, the tensor that it views is assumed to be in row-major
    /// order.
    fn layout(&mut self, node: TensorNodeId) -> Result<Layout, Error> {
        let mut views = Vec::new();
        let mut base = node;
        while !self.layouts.contains_key(&base) && is_view(self.graph, self.graph.node(base)) {
            views.push(base);
            base = self.graph.node(base).operands[0];
        }
        let mut layout = match self.layouts.get(&base) {
            Some(known) => known.clone(),
            None => Layout::row_major(self.graph.extents(base))?,
        };
        for view in views.into_iter().rev() {
            let node = self.graph.node(view);
            layout = match &node.operation {
                Operation::Axes(to) => {
                    let to: Vec<usize> = to.iter().map(|axis| usize::from(*axis)).collect();
                    layout.with_axes(&to)?
                }
                Operation::Slice(slices) => layout.sliced(slices)?,
                Operation::Broadcast => layout.broadcast_to(&node.extents)?,
                Operation::Reshape => layout.reshaped(&node.extents)?.unwrap_or(Layout::row_major(&node.extents)?),
                _ => layout,
            };
            self.layouts.insert(view, layout.clone());
        }
        Ok(layout)
    }
}
