//! The order in which products of several tensors are taken, two at a time: any order gives the same sums, at costs that differ by orders
//! of magnitude. Up to [`EXHAUSTIVE`] factors the best order is found, for more a good one.

use crate::body::{Elements, LOOKED_AT};
use crate::node::{Axis, Labels, Operation};
use crate::{Extents, TensorGraph, TensorNodeId};
use cembra_value::Error;
use cembra_value::tensor::index_count;
use smallvec::SmallVec;
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

/// The most factors for which all orders are looked at.
const EXHAUSTIVE: usize = 8;

/// The most factors for which each two are compared; more are multiplied in their order.
const COMPARED: usize = 128;

/// A set of labels, a bit for each.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
struct Set([u128; 2]);

impl Set {
    fn of(labels: &[Axis]) -> Set {
        labels.iter().fold(Set::default(), |mut set, label| {
            set.0[usize::from(*label / 128)] |= 1 << (label % 128);
            set
        })
    }

    fn and(self, other: Set) -> Set {
        Set([self.0[0] & other.0[0], self.0[1] & other.0[1]])
    }

    fn or(self, other: Set) -> Set {
        Set([self.0[0] | other.0[0], self.0[1] | other.0[1]])
    }

    fn has(self, label: Axis) -> bool {
        self.0[usize::from(label / 128)] >> (label % 128) & 1 != 0
    }

    fn remove(&mut self, label: Axis) {
        self.0[usize::from(label / 128)] &= !(1 << (label % 128));
    }

    fn labels(self) -> impl Iterator<Item = Axis> {
        let Set(mut words) = self;
        std::iter::from_fn(move || {
            let at = words.iter().position(|word| *word != 0)?;
            let bit = words[at].trailing_zeros();
            words[at] &= words[at] - 1;
            Some((128 * at) as Axis + bit as Axis)
        })
    }
}

/// What kind of product two operands make, by their labels.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum ProductClass {
    /// One of them has no labels.
    Scale,
    /// All labels are in both and in the result.
    Hadamard,
    /// Nothing is summed, and no label is in both.
    Outer,
    /// What is in both is summed: a product of matrices, of a matrix and a vector, or of vectors.
    Contraction,
    /// Labels in both that stay, beside others.
    General,
}

impl ProductClass {
    /// The class, and whether an operand has a label that nothing else has, over which it is summed before.
    ///
    /// ```
    /// use cembra_tensor::{Labels, ProductClass};
    ///
    /// let labels = Labels { operands: vec![[0, 1][..].into(), [1, 2][..].into()], output: [0, 2][..].into() };
    /// assert_eq!(ProductClass::of(&labels), Some((ProductClass::Contraction, false)));
    /// ```
    #[must_use]
    pub fn of(labels: &Labels) -> Option<(ProductClass, bool)> {
        let [a, b] = labels.operands.as_slice() else { return None };
        let (a, b, output) = (Set::of(a), Set::of(b), Set::of(&labels.output));
        let lone =
            |own: Set, other: Set| own.labels().any(|label| !other.or(output).labels().any(|known| known == label));
        let reduces = lone(a, b) || lone(b, a);
        let empty = Set::default();
        let is_scale = a == empty || b == empty;
        let [a, b] = [a.and(b.or(output)), b.and(a.or(output))];
        let both = a.and(b);
        let kept = both.and(output);
        let class = if is_scale {
            ProductClass::Scale
        } else if both == empty {
            ProductClass::Outer
        } else if a == b && kept == a {
            ProductClass::Hadamard
        } else if kept == empty {
            ProductClass::Contraction
        } else {
            ProductClass::General
        };
        Some((class, reduces))
    }

    /// The class as text.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            ProductClass::Scale => "scale",
            ProductClass::Hadamard => "hadamard",
            ProductClass::Outer => "outer",
            ProductClass::Contraction => "contraction",
            ProductClass::General => "general",
        }
    }
}

/// An order of products, and what it costs.
#[derive(Clone, PartialEq, Debug)]
pub struct ProductOrder {
    /// For each product the positions of its factors in the list of what is left; they are taken out, and the product is put behind.
    pub pairs: Vec<[usize; 2]>,
    /// Multiplications and additions: for each product the product of the extents of all its labels, twice if one is summed over.
    pub operations: f64,
    /// The elements of the largest product.
    pub largest: f64,
}

/// What a set of factors costs.
#[derive(Clone, Copy, Debug)]
struct Cost {
    operations: f64,
    largest: f64,
    /// The factors of the last product, as sets of factors.
    parts: [usize; 2],
}

impl Cost {
    fn is_less(&self, other: &Cost) -> bool {
        (self.operations, self.largest) < (other.operations, other.largest)
    }
}

/// The factors of a product: their labels, those of the result, and the extents of labels.
struct Factors<'l> {
    sets: Vec<Set>,
    output: Set,
    extents: &'l [usize],
}

impl Factors<'_> {
    fn size(&self, set: Set) -> f64 {
        set.labels().map(|label| self.extents[usize::from(label)] as f64).product()
    }

    /// What the product of two costs, and its labels, where others are left.
    fn product(&self, a: Set, b: Set, others: Set) -> (f64, Set) {
        let all = a.or(b);
        let kept = all.and(self.output.or(others));
        let size = self.size(all);
        (if kept == all { size } else { 2.0 * size }, kept)
    }
}

impl ProductOrder {
    /// An order for the factors of a product, whose labels have these extents.
    #[must_use]
    pub fn of(labels: &Labels, extents: &[usize]) -> ProductOrder {
        let sets: Vec<Set> = labels.operands.iter().map(|own| Set::of(own)).collect();
        let factors = Factors { sets, output: Set::of(&labels.output), extents };
        match factors.sets.len() {
            0..=2 => ProductOrder::in_order(&factors),
            3..=EXHAUSTIVE => ProductOrder::best(&factors),
            len if len <= COMPARED => {
                // Neither rule is always the better one.
                let by_size = ProductOrder::greedy(&factors, |_, kept, parts| kept - parts);
                let by_cost = ProductOrder::greedy(&factors, |operations, _, _| operations);
                if by_cost.operations < by_size.operations { by_cost } else { by_size }
            }
            _ => ProductOrder::in_order(&factors),
        }
    }

    fn none() -> ProductOrder {
        ProductOrder { pairs: Vec::new(), operations: 0.0, largest: 0.0 }
    }

    /// The first two, then the product with the next, and so on.
    fn in_order(factors: &Factors<'_>) -> ProductOrder {
        let mut order = ProductOrder::none();
        // What comes behind a factor is known from the end.
        let mut behind = vec![Set::default(); factors.sets.len() + 1];
        for at in (0..factors.sets.len()).rev() {
            behind[at] = behind[at + 1].or(factors.sets[at]);
        }
        let mut product = factors.sets.first().copied().unwrap_or_default();
        for at in 1..factors.sets.len() {
            let (operations, kept) = factors.product(product, factors.sets[at], behind[at + 1]);
            // The product is the last that is left, and the next factor the first, but for the first two.
            order.pairs.push(if at == 1 { [0, 1] } else { [0, factors.sets.len() - at] });
            order.operations += operations;
            order.largest = order.largest.max(factors.size(kept));
            product = kept;
        }
        order
    }

    /// Of all orders the cheapest; of those the one whose largest product is the smallest; of those the first.
    fn best(factors: &Factors<'_>) -> ProductOrder {
        let count = factors.sets.len();
        let full = (1_usize << count) - 1;
        let all_of = |part: usize| {
            (0..count).filter(|at| part >> at & 1 != 0).fold(Set::default(), |all, at| all.or(factors.sets[at]))
        };
        let labels: Vec<Set> = (0..=full)
            .map(|part| {
                if part.count_ones() == 1 {
                    all_of(part)
                } else {
                    all_of(part).and(factors.output.or(all_of(full & !part)))
                }
            })
            .collect();
        let mut costs = vec![Cost { operations: 0.0, largest: 0.0, parts: [0, 0] }; full + 1];
        for part in (1..=full).filter(|part: &usize| part.count_ones() > 1) {
            let mut best: Option<Cost> = None;
            // Each split once: the first factor is in the first half.
            let first = part & part.wrapping_neg();
            let mut half = part;
            while half != 0 {
                half = (half - 1) & part;
                if half & first == 0 || half == 0 {
                    continue;
                }
                let rest = part & !half;
                let all = labels[half].or(labels[rest]);
                let size = factors.size(all);
                let operations = costs[half].operations
                    + costs[rest].operations
                    + if all == labels[part] { size } else { 2.0 * size };
                let largest = costs[half].largest.max(costs[rest].largest).max(factors.size(labels[part]));
                let cost = Cost { operations, largest, parts: [half, rest] };
                if best.is_none_or(|best| cost.is_less(&best)) {
                    best = Some(cost);
                }
            }
            costs[part] = best.unwrap_or(costs[part]);
        }
        // The splits, from the whole down, are the products, from the last up.
        let mut splits = vec![full];
        let mut at = 0;
        while at < splits.len() {
            let parts = costs[splits[at]].parts;
            splits.extend(parts.into_iter().filter(|part: &usize| part.count_ones() > 1));
            at += 1;
        }
        let mut left: Vec<usize> = (0..count).map(|at| 1 << at).collect();
        let mut pairs = Vec::new();
        for split in splits.into_iter().rev() {
            let place = |part: usize| left.iter().position(|known| *known == part).unwrap_or(0);
            let [a, b] = costs[split].parts.map(place);
            pairs.push([a.min(b), a.max(b)]);
            left.remove(a.max(b));
            left.remove(a.min(b));
            left.push(split);
        }
        ProductOrder { pairs, operations: costs[full].operations, largest: costs[full].largest }
    }

    /// Always the two whose product is the best by some rule of its operations, its size, and the sizes of the two.
    fn greedy(factors: &Factors<'_>, rule: impl Fn(f64, f64, f64) -> f64) -> ProductOrder {
        let mut order = ProductOrder::none();
        let mut candidates =
            Candidates { factors, rule, made: Vec::new(), uses: Uses::default(), pairs: BinaryHeap::new() };
        factors.sets.iter().for_each(|set| candidates.uses.add(*set));
        factors.sets.iter().for_each(|set| candidates.compare(*set));
        let mut left: Vec<usize> = (0..factors.sets.len()).collect();
        while let Some(Reverse(Candidate { pair: [a, b], .. })) = candidates.pairs.pop() {
            let Some((operations, kept)) = candidates.multiply([a, b]) else { continue };
            // What is left is in ascending order.
            let [first, second] = [a, b].map(|of| left.binary_search(&of).unwrap_or(0));
            left.remove(second);
            left.remove(first);
            left.push(candidates.made.len() - 1);
            order.pairs.push([first, second]);
            order.operations += operations;
            order.largest = order.largest.max(factors.size(kept));
        }
        order
    }
}

/// The pairs of factors, and of products of them, that may be multiplied next.
///
/// What the product of a pair is like does not change when two others are multiplied: whatever label the pair shares with them their product
/// has, too. So each pair is looked at once, when its second factor is there.
struct Candidates<'f, R> {
    factors: &'f Factors<'f>,
    rule: R,
    /// The factors, and the products in the order in which they are made; what was multiplied is none.
    made: Vec<Option<Set>>,
    uses: Uses,
    /// Pairs of what is in `made`, those that were multiplied since included.
    pairs: BinaryHeap<Reverse<Candidate>>,
}

impl<R: Fn(f64, f64, f64) -> f64> Candidates<'_, R> {
    /// Compares a factor, whose uses are counted already, with all that are there.
    fn compare(&mut self, second: Set) {
        for (at, first) in self.made.iter().enumerate() {
            let Some(first) = *first else { continue };
            let (operations, kept) = self.factors.product(first, second, self.uses.others([first, second]));
            let [one, other, kept] = [first, second, kept].map(|set| self.factors.size(set));
            let value = (self.rule)(operations, kept, one + other);
            // What shares no label is left for the end.
            let is_apart = first.and(second) == Set::default();
            self.pairs.push(Reverse(Candidate { is_apart, value, pair: [at, self.made.len()] }));
        }
        self.made.push(Some(second));
    }

    /// What the product of a pair costs, and its labels. None if one of them was multiplied before.
    fn multiply(&mut self, [a, b]: [usize; 2]) -> Option<(f64, Set)> {
        let (one, other) = (self.made[a]?, self.made[b]?);
        let (operations, kept) = self.factors.product(one, other, self.uses.others([one, other]));
        (self.made[a], self.made[b]) = (None, None);
        self.uses.multiply([one, other], kept);
        self.compare(kept);
        Some((operations, kept))
    }
}

/// How many of some factors have each label.
struct Uses([u32; Axis::MAX as usize + 1]);

impl Default for Uses {
    fn default() -> Self {
        Uses([0; Axis::MAX as usize + 1])
    }
}

impl Uses {
    fn add(&mut self, set: Set) {
        set.labels().for_each(|label| self.0[usize::from(label)] += 1);
    }

    /// Puts a product in the place of two factors.
    fn multiply(&mut self, factors: [Set; 2], product: Set) {
        factors.into_iter().flat_map(Set::labels).for_each(|label| self.0[usize::from(label)] -= 1);
        self.add(product);
    }

    /// The labels of two of the factors that others have too.
    fn others(&self, [one, other]: [Set; 2]) -> Set {
        let own = |label: Axis| u32::from(one.has(label)) + u32::from(other.has(label));
        let mut others = one.or(other);
        others
            .labels()
            .filter(|label| self.0[usize::from(*label)] == own(*label))
            .for_each(|label| others.remove(label));
        others
    }
}

/// Two factors that may be multiplied next. The least is the best, and of equal ones that which was there first.
struct Candidate {
    /// They share no label.
    is_apart: bool,
    value: f64,
    pair: [usize; 2],
}

impl Ord for Candidate {
    fn cmp(&self, other: &Candidate) -> Ordering {
        (self.is_apart.cmp(&other.is_apart)).then(self.value.total_cmp(&other.value)).then(self.pair.cmp(&other.pair))
    }
}

impl PartialOrd for Candidate {
    fn partial_cmp(&self, other: &Candidate) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Candidate {
    fn eq(&self, other: &Candidate) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Candidate {}

impl TensorGraph {
    /// What outputs need, with all products of several factors as products of two; all leaves stay. None where there are no such products. The
    /// graph is for dense tensors: a slice among zeros has lost the node that says how it is tiled.
    ///
    /// # Errors
    /// The graph that is made has too many nodes, or there is no time for it: `elements` says so.
    pub fn with_ordered_products(
        &self,
        outputs: &[TensorNodeId],
        elements: &dyn Elements,
    ) -> Result<Option<(TensorGraph, Vec<TensorNodeId>)>, Error> {
        let needed = self.needed(outputs);
        let is_long = |node: &crate::Node| matches!(node.operation, Operation::Contract(_)) && node.operands.len() > 2;
        if !self.nodes().any(|(id, node)| needed[id.index()] && is_long(node)) {
            return Ok(None);
        }
        let needed = self.needed_for_gradients(outputs);
        let mut made = self.successor();
        let mut new: Vec<Option<TensorNodeId>> = vec![None; self.len()];
        for leaf in self.leaves() {
            let node = self.node(leaf.node);
            new[leaf.node.index()] = Some(made.leaf(&leaf.name, node.scalar, &node.extents)?);
        }
        for (id, node) in self.nodes().filter(|(id, _)| needed[id.index()]) {
            if new[id.index()].is_some() {
                continue;
            }
            let mut node = node.without_cuts();
            for operand in &mut node.operands {
                *operand = new[operand.index()].unwrap_or(*operand);
            }
            if is_long(&node) || id.index().is_multiple_of(LOOKED_AT) {
                elements.go_on()?;
            }
            let plain = made.intern(node)?;
            new[id.index()] = Some(made.ordered(plain)?.0);
        }
        Ok(Some((made, outputs.iter().filter_map(|output| new[output.index()]).collect())))
    }

    /// A product of several factors as products of two, in the order that costs the least; and what that is. Other nodes are as they are,
    /// and so is a product of which that order would make tensors of more axes or elements than there may be.
    ///
    /// # Errors
    /// The graph has too many nodes.
    pub fn ordered(&mut self, product: TensorNodeId) -> Result<(TensorNodeId, Option<ProductOrder>), Error> {
        let node = self.node(product).clone();
        let Operation::Contract(labels) = &node.operation else { return Ok((product, None)) };
        if node.operands.len() < 3 {
            return Ok((product, None));
        }
        let extents: Vec<SmallVec<[usize; 6]>> =
            node.operands.iter().map(|operand| self.extents(*operand).into()).collect();
        let extents = labels.label_extents(&extents.iter().map(|extents| &extents[..]).collect::<Vec<_>>())?;
        let order = ProductOrder::of(labels, &extents);
        let mut left: Vec<(TensorNodeId, SmallVec<[Axis; 8]>)> =
            node.operands.iter().copied().zip(labels.operands.iter().cloned()).collect();
        let mut uses = Uses::default();
        left.iter().for_each(|(_, own)| uses.add(Set::of(own)));
        for [a, b] in &order.pairs {
            let (second, first) = (left.remove(*b.max(a)), left.remove(*b.min(a)));
            let [one, other] = [&first.1, &second.1].map(|own| Set::of(own));
            let kept = one.or(other).and(uses.others([one, other]).or(Set::of(&labels.output)));
            uses.multiply([one, other], kept);
            // The last product has the labels in the order of the result.
            let output: SmallVec<[Axis; 8]> =
                if left.is_empty() { labels.output.clone() } else { kept.labels().collect() };
            if index_count(&output.iter().map(|label| extents[usize::from(*label)]).collect::<Extents>()).is_err() {
                return Ok((product, None));
            }
            let pair = Labels { operands: vec![first.1, second.1], output: output.clone() };
            left.push((self.contract(pair, &[first.0, second.0])?, output));
        }
        Ok((left.pop().map_or(product, |(node, _)| node), Some(order)))
    }
}
