//! The order in which a product of several tensors is computed, two factors at a time. Any order gives the same sums,
//! but the costs differ by orders of magnitude: `A * B * v` with a vector `v` is much cheaper as `A * (B * v)`. Up to
//! [`EXHAUSTIVE`] factors the cheapest order is found; for more factors a greedy search finds a good one.

use crate::body::{Elements, LOOKED_AT};
use crate::node::{Axis, Labels, Operation};
use crate::{Extents, TensorGraph, TensorNodeId};
use cembra_value::Error;
use cembra_value::tensor::index_count;
use smallvec::SmallVec;
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

/// The most factors for which all orders are compared.
const EXHAUSTIVE: usize = 8;

/// The most factors for which all pairs are compared to choose the next product. More factors are multiplied from left to right.
const COMPARED: usize = 128;

/// A set of axis labels, one bit per label.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct LabelSet([u128; 2]);

impl LabelSet {
    fn of(labels: &[Axis]) -> LabelSet {
        labels.iter().fold(LabelSet::default(), |mut set, label| {
            set.0[usize::from(*label / 128)] |= 1 << (label % 128);
            set
        })
    }

    fn and(self, other: LabelSet) -> LabelSet {
        LabelSet([self.0[0] & other.0[0], self.0[1] & other.0[1]])
    }

    fn or(self, other: LabelSet) -> LabelSet {
        LabelSet([self.0[0] | other.0[0], self.0[1] | other.0[1]])
    }

    /// Returns true if the set of labels contains `label`.
    #[must_use]
    pub fn has(self, label: Axis) -> bool {
        self.0[usize::from(label / 128)] >> (label % 128) & 1 != 0
    }

    fn remove(&mut self, label: Axis) {
        self.0[usize::from(label / 128)] &= !(1 << (label % 128));
    }

    fn labels(self) -> impl Iterator<Item = Axis> {
        let LabelSet(mut words) = self;
        std::iter::from_fn(move || {
            let at = words.iter().position(|word| *word != 0)?;
            let bit = words[at].trailing_zeros();
            words[at] &= words[at] - 1;
            Some((128 * at) as Axis + bit as Axis)
        })
    }
}

/// The kind of a product of two operands, such as an outer product or a contraction, which follows from the labels of
/// their axes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum ProductClass {
    /// An operand has no labels: it is a number by which the other operand is scaled.
    Scale,
    /// Both operands and the result have the same labels, so the product is elementwise.
    Hadamard,
    /// No label is in both operands, so nothing is summed: an outer product.
    Outer,
    /// The labels that both operands have are summed: a matrix product, a matrix-vector product, or a dot product.
    Contraction,
    /// Some labels that both operands have stay in the result, and there are other labels too: for example a batch of matrix products.
    General,
}

impl ProductClass {
    /// Returns the class of a product; `None` if it does not have two operands. The flag is true if a label occurs in
    /// only one operand and not in the result. The operand is summed over this label first.
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
        let (a, b, output) = (LabelSet::of(a), LabelSet::of(b), LabelSet::of(&labels.output));
        let lone = |own: LabelSet, other: LabelSet| {
            own.labels().any(|label| !other.or(output).labels().any(|known| known == label))
        };
        let reduces = lone(a, b) || lone(b, a);
        let empty = LabelSet::default();
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

    /// The name of the class in lower case, such as `outer`.
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

/// An order in which a product of several factors is computed, with its cost.
#[derive(Clone, PartialEq, Debug)]
pub struct ProductOrder {
    /// For each product of two factors, the positions of the factors in the list of remaining factors. Both are removed from the list, and their
    /// product is appended.
    pub pairs: Vec<[usize; 2]>,
    /// The total cost of this order, in operations. For dense tensors, a product of two factors costs the product of the extents of all its labels,
    /// or twice that if a label is summed over.
    pub operations: f64,
    /// The number of elements of the largest product of two factors that this order computes.
    pub largest: f64,
}

/// A cost model for products of two factors, by which an order of products is chosen.
pub trait ProductCost {
    /// A factor of the product, or a product of several factors.
    type Factor;

    /// Returns the product of two factors, and the number of operations that it takes. Both factors together have the labels `all`, and their
    /// product has the labels `kept`. `None` if the product is too large to be considered.
    ///
    /// # Errors
    /// If the factors cannot be multiplied.
    fn product(
        &self,
        factors: [&Self::Factor; 2],
        all: LabelSet,
        kept: LabelSet,
    ) -> Result<Option<(Self::Factor, f64)>, Error>;

    /// Returns the number of elements of a factor. If two orders need equally many operations, the order with the smaller products is better.
    fn size(&self, factor: &Self::Factor) -> f64;

    /// True if factors without a common label are multiplied only when no pair of factors with a common label is left,
    /// even if that costs more.
    const APART_LAST: bool;

    /// True if, among orders of equal cost, the order that is found last is taken; if false, the first one.
    const LAST_OF_EQUAL: bool;

    /// Returns a key that breaks ties between pairs of factors with equal cost: the pair with the smallest key is multiplied first. `pair` has the
    /// numbers of the two factors; products are numbered after the original factors.
    fn precedence(pair: [usize; 2]) -> [usize; 2];
}

/// The cost model for dense tensors. A product costs the product of the extents of all labels, or twice that if a label
/// is summed over. A factor is represented by its number of elements.
struct Dense<'l> {
    extents: &'l [usize],
}

impl Dense<'_> {
    fn elements(&self, set: LabelSet) -> f64 {
        set.labels().map(|label| self.extents[usize::from(label)] as f64).product()
    }
}

impl ProductCost for Dense<'_> {
    type Factor = f64;

    const APART_LAST: bool = false;

    const LAST_OF_EQUAL: bool = true;

    fn product(&self, _: [&f64; 2], all: LabelSet, kept: LabelSet) -> Result<Option<(f64, f64)>, Error> {
        let size = self.elements(all);
        Ok(Some(if kept == all { (size, size) } else { (self.elements(kept), 2.0 * size) }))
    }

    fn size(&self, factor: &f64) -> f64 {
        *factor
    }

    fn precedence(pair: [usize; 2]) -> [usize; 2] {
        pair
    }
}

/// The best product found for a set of factors, with its total cost.
struct Planned<F> {
    product: F,
    operations: f64,
    largest: f64,
    /// The two factors of the last product, each as a set of the original factors.
    parts: [usize; 2],
}

impl ProductOrder {
    /// Chooses an order in which the factors of the product `labels` are multiplied. `extents` has the extent of each label.
    #[must_use]
    pub fn of(labels: &Labels, extents: &[usize]) -> ProductOrder {
        let cost = Dense { extents };
        let sizes = || labels.operands.iter().map(|own| cost.elements(LabelSet::of(own))).collect();
        // A product of dense tensors is never too large to be considered.
        let found = match labels.operands.len() {
            0..=2 => Ok(None),
            3..=EXHAUSTIVE => ProductOrder::best(labels, sizes(), &cost),
            len if len <= COMPARED => {
                // Neither rule is always better, so both are tried.
                let by_size = ProductOrder::greedy(labels, sizes(), &cost, |_, product, [a, b]| product - (a + b));
                let by_cost = ProductOrder::greedy(labels, sizes(), &cost, |operations, _, _| operations);
                match (by_size, by_cost) {
                    (Ok(Some(by_size)), Ok(Some(by_cost))) if by_cost.operations >= by_size.operations => {
                        Ok(Some(by_size))
                    }
                    (_, by_cost) => by_cost,
                }
            }
            _ => Ok(None),
        };
        found.ok().flatten().unwrap_or_else(|| ProductOrder::in_order(labels, &cost))
    }

    fn none() -> ProductOrder {
        ProductOrder { pairs: Vec::new(), operations: 0.0, largest: 0.0 }
    }

    /// Multiplies the first two factors, then their product with the next, and so on.
    fn in_order(labels: &Labels, cost: &Dense<'_>) -> ProductOrder {
        let sets: Vec<LabelSet> = labels.operands.iter().map(|own| LabelSet::of(own)).collect();
        let mut order = ProductOrder::none();
        // `behind[at]` has the labels of the result and of all factors from `at` on.
        let mut behind = vec![LabelSet::of(&labels.output); sets.len() + 1];
        for at in (0..sets.len()).rev() {
            behind[at] = behind[at + 1].or(sets[at]);
        }
        let mut product = sets.first().copied().unwrap_or_default();
        for at in 1..sets.len() {
            let all = product.or(sets[at]);
            product = all.and(behind[at + 1]);
            let size = cost.elements(all);
            // The product so far is the last remaining factor, and the next factor is the first one, except for the first product.
            order.pairs.push(if at == 1 { [0, 1] } else { [0, sets.len() - at] });
            order.operations += if product == all { size } else { 2.0 * size };
            order.largest = order.largest.max(cost.elements(product));
        }
        order
    }

    /// Returns the order of products that needs the fewest operations. If several orders need equally few, returns the
    /// order whose largest product is the smallest. `None` if every order has a product that is too large to be
    /// considered. The time is exponential in the number of factors.
    ///
    /// # Errors
    /// The errors of [`ProductCost::product`].
    pub fn best<C: ProductCost>(
        labels: &Labels,
        factors: Vec<C::Factor>,
        cost: &C,
    ) -> Result<Option<ProductOrder>, Error> {
        let count = factors.len();
        let full = (1_usize << count) - 1;
        let all_of = |part: usize| {
            let own = labels.operands.iter().enumerate().filter(|(at, _)| part >> at & 1 != 0);
            own.fold(LabelSet::default(), |all, (_, own)| all.or(LabelSet::of(own)))
        };
        let output = LabelSet::of(&labels.output);
        let sets: Vec<LabelSet> = (0..=full)
            .map(|part| match part.count_ones() {
                1 => all_of(part),
                _ => all_of(part).and(output.or(all_of(full & !part))),
            })
            .collect();
        let mut factors = factors.into_iter();
        let mut made: Vec<Option<Planned<C::Factor>>> = Vec::with_capacity(full + 1);
        for part in 0..=full {
            if part.count_ones() == 1 {
                let own = |product| Planned { product, operations: 0.0, largest: 0.0, parts: [0, 0] };
                made.push(factors.next().map(own));
                continue;
            }
            let mut best: Option<Planned<C::Factor>> = None;
            // Visits each split once: the first factor is always in the first half.
            let first = part & part.wrapping_neg();
            for is_apart in [false, true] {
                let mut next = first;
                while next != part {
                    let half = next;
                    next = half.wrapping_sub(part) & part;
                    let rest = part & !half;
                    let is_unlike = C::APART_LAST && (sets[half].and(sets[rest]) == LabelSet::default()) != is_apart;
                    if half & first == 0 || is_unlike {
                        continue;
                    }
                    let (Some(a), Some(b)) = (&made[half], &made[rest]) else { continue };
                    let before = a.operations + b.operations;
                    if best.as_ref().is_some_and(|best| best.operations < before) {
                        continue;
                    }
                    let product = cost.product([&a.product, &b.product], sets[half].or(sets[rest]), sets[part])?;
                    let Some((product, operations)) = product else { continue };
                    let largest = a.largest.max(b.largest).max(cost.size(&product));
                    let operations = before + operations;
                    let is_better = |best: &Planned<C::Factor>| {
                        let (new, known) = ((operations, largest), (best.operations, best.largest));
                        new < known || (C::LAST_OF_EQUAL && new == known)
                    };
                    if best.as_ref().is_none_or(is_better) {
                        best = Some(Planned { product, operations, largest, parts: [half, rest] });
                    }
                }
                if best.is_some() || !C::APART_LAST {
                    break;
                }
            }
            made.push(best);
        }
        let Some(Some(whole)) = made.last() else { return Ok(None) };
        let parts = |set: usize| made[set].as_ref().map_or([0, 0], |planned| planned.parts);
        // The splits, from the whole down, are the products, from the last up.
        let mut splits = vec![full];
        let mut at = 0;
        while at < splits.len() {
            splits.extend(parts(splits[at]).into_iter().filter(|part: &usize| part.count_ones() > 1));
            at += 1;
        }
        let mut left: Vec<usize> = (0..count).map(|at| 1 << at).collect();
        let mut pairs = Vec::new();
        for split in splits.into_iter().rev() {
            let place = |part: usize| left.iter().position(|known| *known == part).unwrap_or(0);
            let [a, b] = parts(split).map(place);
            pairs.push([a.min(b), a.max(b)]);
            left.remove(a.max(b));
            left.remove(a.min(b));
            left.push(split);
        }
        Ok(Some(ProductOrder { pairs, operations: whole.operations, largest: whole.largest }))
    }

    /// Returns the order that always multiplies the best pair of factors next. The best pair has the smallest value of `rule`, which is given the
    /// operations, the size of the product, and the sizes of the two factors. Pairs without a common label come last. `None` if only products
    /// remain that are too large to be considered.
    ///
    /// # Errors
    /// The errors of [`ProductCost::product`].
    pub fn greedy<C: ProductCost>(
        labels: &Labels,
        factors: Vec<C::Factor>,
        cost: &C,
        rule: impl Fn(f64, f64, [f64; 2]) -> f64,
    ) -> Result<Option<ProductOrder>, Error> {
        let output = LabelSet::of(&labels.output);
        let (uses, pairs, apart) = (Uses::default(), BinaryHeap::new(), Vec::new());
        let mut candidates = Candidates { cost, rule, output, made: Vec::new(), uses, pairs, apart };
        let sets: Vec<LabelSet> = labels.operands.iter().map(|own| LabelSet::of(own)).collect();
        sets.iter().for_each(|set| candidates.uses.add(*set));
        let mut left: Vec<usize> = (0..sets.len()).collect();
        for factor in factors.into_iter().zip(sets) {
            candidates.compare(factor)?;
        }
        let mut order = ProductOrder::none();
        while left.len() > 1 {
            let Some(Candidate { pair, operations, .. }) = candidates.next()? else { return Ok(None) };
            // `left` is in ascending order.
            let [first, second] = pair.map(|of| left.binary_search(&of).unwrap_or(0));
            left.remove(second);
            left.remove(first);
            left.push(candidates.made.len());
            order.pairs.push([first, second]);
            order.operations += operations;
            let Some(size) = candidates.multiply(pair)? else { return Ok(None) };
            order.largest = order.largest.max(size);
        }
        Ok(Some(order))
    }
}

/// The candidates for the next multiplication, which combine two factors, or products of factors, into one product.
///
/// The product of a pair does not change when two other factors are multiplied: a label that the pair shares with them
/// is also a label of their product. So each pair is considered once: when its second factor is added, or, if its
/// factors share no label, when no other pairs are left.
struct Candidates<'c, C: ProductCost, R> {
    cost: &'c C,
    rule: R,
    output: LabelSet,
    /// The factors, then the products in the order in which they are made, with their labels; `None` for a factor that was multiplied.
    made: Vec<Option<(C::Factor, LabelSet)>>,
    uses: Uses,
    /// Pairs of entries of `made`, including pairs with a factor that was multiplied since.
    pairs: BinaryHeap<Reverse<Candidate>>,
    /// Pairs of factors without a common label whose cost was not computed yet.
    apart: Vec<[usize; 2]>,
}

impl<C: ProductCost, R: Fn(f64, f64, [f64; 2]) -> f64> Candidates<'_, C, R> {
    /// Appends a factor, whose labels `uses` counts already, and computes the cost of its products with all remaining
    /// factors.
    fn compare(&mut self, second: (C::Factor, LabelSet)) -> Result<(), Error> {
        let (at, set) = (self.made.len(), second.1);
        self.made.push(Some(second));
        for first in 0..at {
            match &self.made[first] {
                Some((_, own)) if own.and(set) == LabelSet::default() => self.apart.push([first, at]),
                Some(_) => self.look_at([first, at], false)?,
                None => {}
            }
        }
        Ok(())
    }

    /// Adds a pair to the candidates, unless one of its factors was multiplied before, or its product is too large to
    /// be considered.
    fn look_at(&mut self, pair: [usize; 2], is_apart: bool) -> Result<(), Error> {
        let [Some((first, a)), Some((second, b))] = pair.map(|at| self.made[at].as_ref()) else { return Ok(()) };
        let all = a.or(*b);
        let kept = all.and(self.output.or(self.uses.others([*a, *b])));
        if let Some((product, operations)) = self.cost.product([first, second], all, kept)? {
            let [size, a, b] = [&product, first, second].map(|factor| self.cost.size(factor));
            let value = (self.rule)(operations, size, [a, b]);
            let precedence = C::precedence(pair);
            self.pairs.push(Reverse(Candidate { is_apart, value, precedence, pair, operations }));
        }
        Ok(())
    }

    /// Returns the best pair; `None` if no pair is left.
    fn next(&mut self) -> Result<Option<Candidate>, Error> {
        loop {
            if self.pairs.peek().is_none_or(|Reverse(best)| best.is_apart) {
                for pair in std::mem::take(&mut self.apart) {
                    self.look_at(pair, true)?;
                }
            }
            let Some(Reverse(best)) = self.pairs.pop() else { return Ok(None) };
            if best.pair.iter().all(|at| self.made[*at].is_some()) {
                return Ok(Some(best));
            }
        }
    }

    /// Replaces a pair by its product, and returns the number of elements of the product. The product is computed again
    /// here, because keeping the products of all pairs could take too much memory.
    fn multiply(&mut self, pair: [usize; 2]) -> Result<Option<f64>, Error> {
        let [Some((first, a)), Some((second, b))] = pair.map(|at| self.made[at].take()) else { return Ok(None) };
        let all = a.or(b);
        let kept = all.and(self.output.or(self.uses.others([a, b])));
        let Some((product, _)) = self.cost.product([&first, &second], all, kept)? else { return Ok(None) };
        let size = self.cost.size(&product);
        self.uses.multiply([a, b], kept);
        self.compare((product, kept))?;
        Ok(Some(size))
    }
}

/// The number of remaining factors that have each label.
struct Uses([u32; Axis::MAX as usize + 1]);

impl Default for Uses {
    fn default() -> Self {
        Uses([0; Axis::MAX as usize + 1])
    }
}

impl Uses {
    fn add(&mut self, set: LabelSet) {
        set.labels().for_each(|label| self.0[usize::from(label)] += 1);
    }

    /// Counts two factors as replaced by their product.
    fn multiply(&mut self, factors: [LabelSet; 2], product: LabelSet) {
        factors.into_iter().flat_map(LabelSet::labels).for_each(|label| self.0[usize::from(label)] -= 1);
        self.add(product);
    }

    /// Returns the labels of two factors that other remaining factors have too.
    fn others(&self, [one, other]: [LabelSet; 2]) -> LabelSet {
        let own = |label: Axis| u32::from(one.has(label)) + u32::from(other.has(label));
        let mut others = one.or(other);
        others
            .labels()
            .filter(|label| self.0[usize::from(*label)] == own(*label))
            .for_each(|label| others.remove(label));
        others
    }
}

/// A candidate for the next multiplication: two factors that may be combined into one product. The least candidate, in
/// the order of this type, is the best.
struct Candidate {
    /// True if the factors share no label.
    is_apart: bool,
    value: f64,
    precedence: [usize; 2],
    pair: [usize; 2],
    operations: f64,
}

impl Ord for Candidate {
    fn cmp(&self, other: &Candidate) -> Ordering {
        let by_value = self.is_apart.cmp(&other.is_apart).then(self.value.total_cmp(&other.value));
        by_value.then(self.precedence.cmp(&other.precedence))
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
    /// Returns a new graph for `outputs`, and the outputs in the new graph. In the new graph, products of several
    /// factors are replaced by products of two. All leaves stay. `None` if the graph has no product of more than two
    /// factors. The new graph is for dense tensors only: a slice placed among zeros no longer has the operand that
    /// determines its tiles (blocks).
    ///
    /// # Errors
    /// If the new graph has too many nodes, or [`elements.go_on`](Elements::go_on) ends the rewriting.
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
            let mut node = node.without_tiling_only_operands();
            for operand in &mut node.operands {
                *operand = new[operand.index()].unwrap_or(*operand);
            }
            if is_long(&node) || id.index().is_multiple_of(LOOKED_AT) {
                elements.go_on()?;
            }
            made.set_span(self.span(id));
            let plain = made.intern(node)?;
            new[id.index()] = Some(made.ordered(plain)?.0);
        }
        Ok(Some((made, outputs.iter().filter_map(|output| new[output.index()]).collect())))
    }

    /// Replaces the node `product`, a product of several factors, by products of two in a cheap order, and returns that order. Any other node is
    /// returned unchanged, with `None`. A product is returned unchanged too if its order needs an intermediate tensor with more axes or elements than
    /// allowed.
    ///
    /// # Errors
    /// If the graph has too many nodes.
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
        left.iter().for_each(|(_, own)| uses.add(LabelSet::of(own)));
        for [a, b] in &order.pairs {
            let (second, first) = (left.remove(*b.max(a)), left.remove(*b.min(a)));
            let [one, other] = [&first.1, &second.1].map(|own| LabelSet::of(own));
            let kept = one.or(other).and(uses.others([one, other]).or(LabelSet::of(&labels.output)));
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
