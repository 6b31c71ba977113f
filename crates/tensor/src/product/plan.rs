//! Plans of products of two operands by labels, such as `ij,jk->ik`. A plan decides which labels are the rows, the
//! columns and the summed terms of matrix products, which labels are looped over, and which tensors are copied. This
//! file computes no products.
//!
//! A group of labels can be one dimension of a matrix if, in each tensor that has these labels, the elements along the
//! group are at equal distances in memory. Otherwise, either some of the labels are looped over, or an operand is
//! copied into the order that is needed, or the result is computed in another order and then copied. Each of the three
//! tensors may be copied or not; all eight choices are compared.

use super::places::ProductPositions;
use crate::Layout;
use crate::node::Labels;
use crate::walk::CopiedAxis;
use cembra_value::Error;
use smallvec::SmallVec;
use std::ops::RangeInclusive;

/// The fewest multiplications of a product of matrices that is one slice of a larger product.
const LEAST_SLICE: usize = 64 * 64 * 64;

/// The fewest multiplications of a panel, a part of the result that is computed as a product of its own; and the fewest
/// rows or columns of a panel that has only some of the rows or columns of a matrix. With fewer, the work that a matrix
/// product does once per panel would be too large a part of its time.
const LEAST_PANEL: usize = 1 << 26;
const LEAST_LINES: usize = 256;

/// Labels of a product that are treated as one label, with one stride per tensor. For example, two labels with the
/// indices `i` and `j` get one index `i * J + j`; `J` is the extent of the second label.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct FusedLabels {
    /// The number of index combinations of the fused labels.
    pub extent: usize,
    /// The strides of the fused labels in the left operand, the right operand and the result, in elements. A stride is
    /// 0 if the tensor does not have the labels.
    pub strides: [isize; 3],
}

/// The preparation of an operand before the product: a copy, a sum over labels, or nothing.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Preparation {
    /// The operand is not prepared, but read in its own layout.
    None,
    /// The operand is copied, with its axes in another order.
    Permute(Vec<CopiedAxis>),
    /// The operand is summed over the labels that no other tensor has. Each such label is given by its extent and
    /// stride in the second list. The result has the axes in the first list.
    Sum(Vec<CopiedAxis>, Vec<(usize, isize)>),
}

/// The method by which a product is computed once its operands are prepared, such as loops or matrix products.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Kernel {
    /// Nothing is computed: the result has no elements, or its elements are sums without terms, which are 0.
    Zeros,
    /// The elements are summed term by term. The product is small, so starting a matrix product would take longer.
    Direct {
        /// The labels of the result, over which the product loops.
        kept: Vec<FusedLabels>,
        /// The memory positions of the product's elements and terms.
        places: ProductPositions,
        /// False if no label is summed over, not even a label of extent 1. Then a product of -0 stays -0.
        is_sum: bool,
    },
    /// Nested loops: the outer loops are over labels of the result, the inner ones over labels that are summed. Used
    /// for products of elements, of vectors, and of a matrix and a vector.
    Nest {
        /// The labels of the result, each of which is a loop.
        kept: Vec<FusedLabels>,
        /// The labels that are summed over, each of which is a loop.
        summed: Vec<FusedLabels>,
        /// The index of the innermost loop in the list `kept` followed by `summed`.
        inner: usize,
        /// False if no label is summed over, not even a label of extent 1. Then a product of -0 stays -0.
        is_sum: bool,
    },
    /// Matrix products, one for each index of the loops around them.
    Matrices {
        /// The labels of the result over which the matrix products are looped.
        kept: Vec<FusedLabels>,
        /// The labels that are summed over in loops: each matrix product is added to the products before it.
        summed: Vec<FusedLabels>,
        /// The labels that are the rows, the columns and the terms of each matrix product.
        dimensions: [FusedLabels; 3],
    },
}

/// The plan of a product of two operands by labels: how the operands are prepared, how the product is computed, and how the result is copied.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ProductPlan {
    /// The preparation of the left and of the right operand, such as a copy.
    pub operands: [Preparation; 2],
    /// The method by which the product is computed once the operands are prepared.
    pub kernel: Kernel,
    /// The axes of the copy of the result into row-major order; `None` if the result is computed in row-major order.
    pub result: Option<Vec<CopiedAxis>>,
}

/// A label of more than one index, with its stride in each tensor that has it.
#[derive(Clone, Copy, Debug)]
struct Label {
    extent: usize,
    strides: [Option<isize>; 3],
}

impl Label {
    fn stride(&self, of: usize) -> isize {
        self.strides[of].unwrap_or(0)
    }

    fn run(&self) -> FusedLabels {
        FusedLabels { extent: self.extent, strides: [0, 1, 2].map(|of| self.stride(of)) }
    }

    /// Tells for both operands and the result whether they have the label.
    fn is_in(&self) -> [bool; 3] {
        self.strides.map(|stride| stride.is_some())
    }
}

/// Labels, by their positions, in runs. The labels of a run can be fused into one label, because their strides nest:
/// the stride of a label is the stride of the next label times the next label's extent.
type Runs = Vec<SmallVec<[usize; 4]>>;

const BATCH: [bool; 3] = [true, true, true];
const ROWS: [bool; 3] = [true, false, true];
const COLUMNS: [bool; 3] = [false, true, true];
const TERMS: [bool; 3] = [true, true, false];

impl ProductPlan {
    /// The fewest multiplications per panel (a part of the result) if a product that is computed in loops is split into
    /// panels.
    pub const LEAST_LOOPS: usize = 1 << 21;

    /// The most adjacent result elements whose sums a loop computes at the same time.
    pub const CHUNK: usize = 4096;

    /// The range of numbers of adjacent result elements whose sums all stay in vector registers: at least the sums in one register, at most the sums
    /// in eight.
    pub const IN_REGISTERS: RangeInclusive<usize> = 8..=64;

    /// Plans a product by `labels` for operands with the layouts `layouts`, whose elements have `bytes` bytes each. The result is in
    /// row-major order.
    ///
    /// ```
    /// use cembra_tensor::{Labels, Layout, ProductPlan};
    ///
    /// let labels = Labels { operands: vec![[0, 1][..].into(), [1, 2][..].into()], output: [0, 2][..].into() };
    /// let a = Layout::row_major(&[2, 3])?;
    /// let b = Layout::row_major(&[4, 3])?.with_axes(&[1, 0])?;
    /// assert_eq!(ProductPlan::of(&labels, [&a, &b], 4)?.permutes(), 0);
    /// # Ok::<(), cembra_value::Error>(())
    /// ```
    ///
    /// # Errors
    /// If `labels` does not have two operands, or the layouts do not fit `labels`.
    pub fn of(labels: &Labels, layouts: [&Layout; 2], bytes: usize) -> Result<ProductPlan, Error> {
        let extents = layouts.map(Layout::extents);
        let result = Layout::row_major(&labels.output_extents(&extents)?)?;
        let all = labels.label_extents(&extents)?;
        if all.contains(&0) {
            let operands = [Preparation::None, Preparation::None];
            return Ok(ProductPlan { operands, kernel: Kernel::Zeros, result: None });
        }
        let lists = [(&labels.operands[0], layouts[0]), (&labels.operands[1], layouts[1]), (&labels.output, &result)];
        let label = |(at, extent): (usize, &usize)| {
            // A label that an operand has twice selects a diagonal.
            let stride = |(own, layout): (&crate::Axes, &Layout)| {
                let uses = own.iter().zip(layout.strides()).filter(|(own, _)| usize::from(**own) == at);
                uses.map(|(_, stride)| *stride).reduce(isize::wrapping_add)
            };
            Label { extent: *extent, strides: lists.map(stride) }
        };
        let found: Vec<Label> = all.iter().enumerate().filter(|(_, extent)| **extent != 1).map(label).collect();
        let direct = direct(&found, labels.is_sum()).map(|kernel| {
            let operands = [Preparation::None, Preparation::None];
            ProductPlan { operands, kernel, result: None }
        });
        Ok(direct.unwrap_or_else(|| Planning::new(found, labels.is_sum(), bytes).plan()))
    }

    /// Returns the number of indices per panel, if the result is split into panels along its first label, which has
    /// `extent` indices. A panel is computed as a product of its own, and all panels together take about as long as the
    /// unsplit product. `has` tells which operands have the label. `None` if the product is not split, because it is
    /// too small, or because a copy would be repeated for each panel.
    #[must_use]
    pub fn panel(&self, extent: usize, has: [bool; 2]) -> Option<usize> {
        // The preparation of an operand without the label would be repeated for each panel.
        let is_repeated = |(operand, has): (&Preparation, bool)| !has && *operand != Preparation::None;
        if self.result.is_some() || self.operands.iter().zip(has).any(is_repeated) {
            return None;
        }
        let size = |runs: &[FusedLabels]| runs.iter().map(|run| run.extent).fold(1, usize::saturating_mul);
        let (kept, summed, dimensions) = match &self.kernel {
            Kernel::Matrices { kept, summed, dimensions } => (kept, summed, dimensions),
            Kernel::Nest { kept, summed, .. } => {
                let each = (size(kept).saturating_mul(size(summed)) / extent.max(1)).max(1);
                // Adjacent elements of an operand are walked `CHUNK` at a time anyhow.
                let lies_together = |run: &&FusedLabels| run.strides[2] == 1 && run.strides[..2].contains(&1);
                let line = kept.iter().find(lies_together).filter(|run| run.extent >= extent);
                let least = line.map_or(1, |run| ProductPlan::CHUNK.div_ceil(run.extent / extent.max(1)));
                let panels =
                    Some(extent / ProductPlan::LEAST_LOOPS.div_ceil(each).max(least)).filter(|panels| *panels > 1)?;
                return Some(extent.div_ceil(panels) / least * least);
            }
            _ => return None,
        };
        let each = (size(kept).saturating_mul(size(summed)).saturating_mul(size(dimensions)) / extent.max(1)).max(1);
        // Rows or columns of the matrices have the label in front of others, if they have it; else panels are of whole matrices.
        let len = size(kept).saturating_mul(size(&dimensions[..2]));
        let has_all = |run: &&FusedLabels| run.strides[2].unsigned_abs().saturating_mul(run.extent) == len;
        let lines = dimensions[..2].iter().find(has_all).map_or(LEAST_LINES, |run| run.extent / extent.max(1));
        let most = LEAST_PANEL.div_ceil(each).max(LEAST_LINES.div_ceil(lines.max(1)));
        let panels = Some(extent / most).filter(|panels| *panels > 1)?;
        Some(extent.div_ceil(panels))
    }

    /// The number of tensors, among the operands and the result, that are copied into another order.
    #[must_use]
    pub fn permutes(&self) -> usize {
        self.copied().iter().flatten().count()
    }

    /// The number of elements of each temporary tensor, if the result has `result` elements.
    pub fn temporaries(&self, result: usize) -> impl Iterator<Item = usize> {
        let prepared = self.operands.iter().filter_map(|operand| match operand {
            Preparation::None => None,
            Preparation::Permute(axes) | Preparation::Sum(axes, _) => {
                Some(axes.iter().map(|axis| axis.extent).fold(1, usize::saturating_mul))
            }
        });
        prepared.chain(self.result.is_some().then_some(result))
    }

    /// For each operand and the result, the axes of the copy into another order; `None` for a tensor that is not copied. The axes are in the
    /// ascending order of their labels, without axes of extent 1.
    pub(crate) fn copied(&self) -> [Option<&[CopiedAxis]>; 3] {
        let operand = |of: usize| match &self.operands[of] {
            Preparation::Permute(axes) => Some(&axes[..]),
            _ => None,
        };
        [operand(0), operand(1), self.result.as_deref()]
    }
}

/// An operand of a product without matrices may be copied if the other operand is at least this many times as large.
const LARGE: usize = 16;

/// The most multiplications whose memory positions are listed, per iteration of the loops around them.
const FEW: usize = 128;

/// Plans a small product as direct sums, with a list of all memory positions; `None` if it has too many
/// multiplications.
fn direct(labels: &[Label], is_sum: bool) -> Option<Kernel> {
    let is_few = |of: &dyn Fn(&Label) -> bool| {
        let extents = labels.iter().filter(|label| of(label)).map(|label| label.extent);
        extents.fold(1, usize::saturating_mul) <= FEW
    };
    let has = |group: [bool; 3]| labels.iter().any(|label| label.is_in() == group);
    let is_looped: fn(&Label) -> bool = if is_few(&|_| true) {
        |_| false
    } else if is_few(&|label| label.is_in() != BATCH) && [ROWS, COLUMNS, TERMS].into_iter().all(has) {
        |label| label.is_in() == BATCH
    } else {
        return None;
    };
    let in_order = |is_looped_over: bool| {
        let mut kept: Vec<&Label> =
            labels.iter().filter(|label| label.strides[2].is_some() && is_looped(label) == is_looped_over).collect();
        kept.sort_by_key(|label| std::cmp::Reverse(label.stride(2)));
        kept
    };
    let elements = in_order(false).into_iter().map(|label| (label.extent, label.run().strides));
    // Terms are in the order of the labels' numbers.
    let summed = labels.iter().filter(|label| label.strides[2].is_none());
    let terms = summed.map(|label| (label.extent, [label.stride(0), label.stride(1)]));
    let kept = in_order(true).into_iter().map(Label::run).collect();
    Some(Kernel::Direct { kept, places: ProductPositions::new(elements, terms), is_sum })
}

/// A choice of copies. `cost` is the number of bytes that they read and write.
struct Choice {
    cost: usize,
    /// Whether the left operand, the right operand and the result are copied, so that their order in memory can be
    /// chosen.
    is_made: [bool; 3],
    /// The rows, columns and terms, each divided into runs of labels that can be fused. The last run is the dimension
    /// of the matrices, the other runs are looped over.
    groups: [Runs; 3],
}

/// The state while a product is planned.
struct Planning {
    labels: Vec<Label>,
    /// Labels that only one operand has. They are summed first, and the sums can then have any order at no cost.
    lone: [Vec<Label>; 2],
    is_sum: bool,
    bytes: usize,
}

impl Planning {
    fn new(found: Vec<Label>, is_sum: bool, bytes: usize) -> Planning {
        let lone = |operand: usize| {
            let only: [bool; 3] = std::array::from_fn(|of| of == operand);
            found.iter().filter(|label| label.is_in() == only).copied().collect()
        };
        let lone = [lone(0), lone(1)];
        let labels = found.into_iter().filter(|label| label.is_in().iter().filter(|is_in| **is_in).count() > 1);
        Planning { labels: labels.collect(), lone, is_sum, bytes }
    }

    /// The positions of the labels that exactly the tensors `is_in` have.
    fn group(&self, is_in: [bool; 3]) -> SmallVec<[usize; 8]> {
        (0..self.labels.len()).filter(|at| self.labels[*at].is_in() == is_in).collect()
    }

    fn plan(mut self) -> ProductPlan {
        let before = self.labels.clone();
        let summed_before = [0, 1].map(|operand: usize| !self.lone[operand].is_empty());
        let groups = [ROWS, COLUMNS, TERMS].map(|group| self.group(group));
        if groups.iter().any(|group| group.is_empty()) {
            let is_made = [0, 1].map(|of: usize| self.make_for_lines(of, summed_before[of]));
            let kernel = self.nest();
            return self.finished(&before, [is_made[0], is_made[1], false], kernel);
        }
        let choice = self.best(&groups, summed_before);
        // In memory whose order we choose, the labels that are looped over come first.
        let batch = self.ordered(self.group(BATCH).into_iter().collect(), &[2, 0, 1]);
        let [rows, columns, terms] = &choice.groups;
        let flat = |runs: &Runs| runs.iter().flatten().copied().collect::<Vec<usize>>();
        let orders = [[flat(rows), flat(terms)], [flat(terms), flat(columns)], [flat(rows), flat(columns)]];
        for (of, order) in orders.into_iter().enumerate() {
            let mut is_made = [false; 3];
            is_made[of] = choice.is_made[of];
            let order: Vec<usize> = batch.iter().copied().chain(order.into_iter().flatten()).collect();
            self.make(is_made, &order);
        }
        let mut kept = self.nested(self.group(BATCH).into_iter().collect(), &[0, 1, 2]);
        let sliced = |runs: &Runs| runs[..runs.len() - 1].iter().map(|run| self.run(run)).collect::<Vec<FusedLabels>>();
        let mut loops: Vec<FusedLabels> = kept.drain(..).map(|run| self.run(&run)).collect();
        loops.extend(sliced(rows));
        loops.extend(sliced(columns));
        let dimensions = [rows, columns, terms].map(|runs| self.run(&runs[runs.len() - 1]));
        let kernel = Kernel::Matrices { kept: loops, summed: sliced(terms), dimensions };
        self.finished(&before, choice.is_made, kernel)
    }

    /// The choice of copies that moves the fewest bytes.
    fn best(&self, groups: &[SmallVec<[usize; 8]>; 3], summed_before: [bool; 2]) -> Choice {
        // For each group of labels, the two tensors that have it: 0 and 1 are the operands, 2 is the result.
        const OWNERS: [[usize; 2]; 3] = [[0, 2], [1, 2], [0, 1]];
        let mut best: Option<Choice> = None;
        // The choices in which the left operand stays come last among equal ones, so the left operand is copied first.
        for mask in 0..8_u8 {
            let is_made = [0, 1, 2].map(|of: usize| mask & (1 << of) != 0);
            if (summed_before[0] && !is_made[0]) || (summed_before[1] && !is_made[1]) {
                continue;
            }
            let moved = |of: usize| is_made[of] && !summed_before.get(of).is_some_and(|summed| *summed);
            let moved = (0..3).filter(|of| moved(*of)).fold(0_usize, |sum, of| sum.saturating_add(self.size(of)));
            let cost = moved.saturating_mul(2 * self.bytes);
            if best.as_ref().is_some_and(|best| best.cost <= cost) {
                continue;
            }
            let mut at = 0;
            let runs = OWNERS.map(|owners| {
                let fixed: SmallVec<[usize; 2]> = owners.into_iter().filter(|owner| !is_made[*owner]).collect();
                let order: Vec<usize> = groups[at].iter().copied().collect();
                at += 1;
                let mut runs = if fixed.is_empty() {
                    vec![self.ordered(order, &owners).into_iter().collect()]
                } else {
                    self.nested(order, &fixed)
                };
                // The matrices have the longest run; of two equally long ones, that with the smaller strides.
                let key = |run: &SmallVec<[usize; 4]>| {
                    let FusedLabels { extent, strides } = self.run(run);
                    (extent, std::cmp::Reverse(strides.map(isize::unsigned_abs)))
                };
                runs.sort_by_key(key);
                runs
            });
            let is_sliced = runs.iter().any(|runs| runs.len() > 1);
            let longest = runs.iter().filter_map(|runs| runs.last()).map(|run| self.run(run).extent);
            let inner = longest.fold(1_usize, usize::saturating_mul);
            if !is_sliced || inner >= LEAST_SLICE {
                best = Some(Choice { cost, is_made, groups: runs });
            }
        }
        // If all three tensors are copied nothing is sliced, so there always is a choice.
        best.unwrap_or(Choice {
            cost: 0,
            is_made: [true; 3],
            groups: groups.each_ref().map(|g| vec![g.iter().copied().collect()]),
        })
    }

    /// The number of elements of tensor number `of`: 0 and 1 are the operands, 2 is the result.
    fn size(&self, of: usize) -> usize {
        self.labels.iter().filter(|label| label.strides[of].is_some()).map(|label| label.extent).product()
    }

    /// Sorts labels by descending stride in the first of the tensors `of`. Ties are broken by the strides in the next ones.
    fn ordered(&self, mut labels: Vec<usize>, of: &[usize]) -> Vec<usize> {
        let key = |at: &usize| -> SmallVec<[std::cmp::Reverse<usize>; 3]> {
            of.iter().map(|of| std::cmp::Reverse(self.labels[*at].stride(*of).unsigned_abs())).collect()
        };
        labels.sort_by_key(key);
        labels
    }

    /// Splits labels into runs whose strides nest in all of the tensors `of`, so that each run can be fused into one
    /// label.
    fn nested(&self, labels: Vec<usize>, of: &[usize]) -> Runs {
        let mut runs: Runs = Vec::new();
        for at in self.ordered(labels, of) {
            let nests = |last: &usize| {
                let (outer, inner) = (&self.labels[*last], &self.labels[at]);
                of.iter().all(|of| Some(outer.stride(*of)) == inner.stride(*of).checked_mul(inner.extent.cast_signed()))
            };
            match runs.last_mut() {
                Some(run) if run.last().is_some_and(nests) => run.push(at),
                _ => runs.push(SmallVec::from_slice(&[at])),
            }
        }
        runs
    }

    /// Fuses labels into one label, which has the stride of the last one in each tensor.
    fn run(&self, labels: &[usize]) -> FusedLabels {
        let extent = labels.iter().map(|at| self.labels[*at].extent).product();
        let strides = labels.last().map_or([0; 3], |at| self.labels[*at].run().strides);
        FusedLabels { extent, strides }
    }

    /// Gives the tensors marked in `is_made` the strides of memory in which the labels are in the order `order`.
    fn make(&mut self, is_made: [bool; 3], order: &[usize]) {
        for of in (0..3).filter(|of| is_made[*of]) {
            let mut stride = 1;
            for at in order.iter().rev() {
                let label = &mut self.labels[*at];
                if let Some(own) = &mut label.strides[of] {
                    *own = stride;
                    stride *= label.extent.cast_signed();
                }
            }
        }
    }

    /// Plans the copy of an operand into the order of the result and of the other operand, so that innermost loops read
    /// adjacent elements. This is done if the operand is summed, which copies it anyway, or if it is much smaller than
    /// the other operand. Returns true if the operand is copied.
    fn make_for_lines(&mut self, of: usize, is_summed: bool) -> bool {
        if !is_summed && self.size(of).saturating_mul(LARGE) > self.size(1 - of) {
            return false;
        }
        let order = self.ordered((0..self.labels.len()).collect(), &[2, 1 - of, of]);
        let before: Vec<isize> = self.labels.iter().map(|label| label.stride(of)).collect();
        self.make(std::array::from_fn(|at| at == of), &order);
        is_summed || self.labels.iter().zip(before).any(|(label, stride)| label.stride(of) != stride)
    }

    /// Plans nested loops over all labels. Labels whose strides nest in all tensors are one loop.
    fn nest(&self) -> Kernel {
        // Where terms are summed, the result is the smaller tensor, so the larger operand is read in its order.
        let (large, small) = if self.size(0) < self.size(1) { (1, 0) } else { (0, 1) };
        let has_sums = self.labels.iter().any(|label| label.strides[2].is_none());
        let order = if has_sums { [large, 2, small] } else { [2, large, small] };
        let runs = |is_kept: bool| -> Vec<FusedLabels> {
            let labels = (0..self.labels.len()).filter(|at| self.labels[*at].strides[2].is_some() == is_kept);
            self.nested(labels.collect(), &order).iter().map(|run| self.run(run)).collect()
        };
        let (mut kept, summed) = (runs(true), runs(false));
        // About the cost of a step of a loop: more where elements are apart, the most where each has a cache line of its own, and a share
        // of the cost of starting the loop.
        let apart = |stride: &isize| match stride {
            0..=1 => 0.0,
            _ => 2.0 + stride.unsigned_abs().min(64) as f64 / 64.0,
        };
        let begin = |run: &FusedLabels| {
            let is_scaled = run.strides[2] != 0 && (run.strides[0] == 0) != (run.strides[1] == 0);
            if is_scaled && !summed.is_empty() { 4.0 } else { 16.0 }
        };
        let cost =
            |run: &FusedLabels| 1.0 + run.strides.iter().map(apart).sum::<f64>() + begin(run) / run.extent as f64;
        let costs = kept.iter().chain(&summed).map(cost).enumerate();
        let inner = costs.min_by(|a, b| a.1.total_cmp(&b.1)).map_or(0, |(at, _)| at);
        let products =
            |line: &FusedLabels| summed.iter().map(|run| run.extent).fold(line.extent, usize::saturating_mul);
        if kept.get(inner).is_some_and(|line| line.extent < *ProductPlan::IN_REGISTERS.start() && products(line) <= FEW)
        {
            // Starting lines would be most of the work.
            let line = kept.remove(inner);
            let terms = summed.iter().map(|run| (run.extent, [run.strides[0], run.strides[1]]));
            let places = ProductPositions::new(std::iter::once((line.extent, line.strides)), terms);
            return Kernel::Direct { kept, places, is_sum: self.is_sum };
        }
        Kernel::Nest { kept, summed, inner, is_sum: self.is_sum }
    }

    fn finished(&self, before: &[Label], is_made: [bool; 3], kernel: Kernel) -> ProductPlan {
        let copied = |of: usize| -> Vec<CopiedAxis> {
            let axes = before.iter().zip(&self.labels).filter(|(label, _)| label.strides[of].is_some());
            axes.map(|(from, to)| CopiedAxis { extent: from.extent, from: from.stride(of), to: to.stride(of) })
                .collect()
        };
        let operand = |of: usize| match (is_made[of], self.lone[of].as_slice()) {
            (_, lone @ [_, ..]) => {
                Preparation::Sum(copied(of), lone.iter().map(|label| (label.extent, label.stride(of))).collect())
            }
            (true, []) => Preparation::Permute(copied(of)),
            (false, []) => Preparation::None,
        };
        let back = |axis: CopiedAxis| CopiedAxis { extent: axis.extent, from: axis.to, to: axis.from };
        let result = is_made[2].then(|| copied(2).into_iter().map(back).collect());
        ProductPlan { operands: [operand(0), operand(1)], kernel, result }
    }
}
