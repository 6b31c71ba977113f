//! Products of any number of tiled tensors by labels. Diagonals (labels that an operand has twice) and sums over labels
//! of one operand alone are computed first. The remaining factors are multiplied two at a time, in the order that takes
//! the fewest operations on present tiles. Shapes alone decide the order. For up to four factors, all orders are
//! compared. For up to sixteen factors, the cheapest pair is always next. More factors use the order that would be best
//! for dense tensors. `product/` computes the product of two factors.

use crate::elements::reduction::reduce;
use crate::elements::views::{with_axes, with_new_ones};
use crate::tiled::Tiled;
use crate::{Evaluator, Options, Shape, SymbolicProduct, Tiling, Tiling1};
use cembra_runtime::Scalar;
use cembra_tensor::{Axes, Axis, LabelSet, Labels, ProductCost, ProductOrder, Reduction};
use cembra_value::Error;
use cembra_value::tensor::{Extents, TensorErrorKind as Kind};
use std::collections::HashMap;

/// The most factors of a product for which all orders are planned.
const EXHAUSTIVE: usize = 4;

/// The most factors of a product for which pairs are planned, to choose the cheapest next.
const PLANNED: usize = 16;

/// The most products of tiles that the plan of a candidate product visits: a few hundredths of a second.
const MOST_VISITED: u64 = 1 << 20;

/// An operand of a product, or a product of some of the operands, with the label of each of its axes.
type Labelled<T> = (T, Axes);

/// Multiplies the operands by labels, and sums over the labels that the result does not have.
///
/// # Errors
/// If axes with the same label have different tilings, there are too many tiles or products, the memory limit does not suffice, or a lazy tile cannot
/// be computed.
pub(crate) fn contract(run: &Evaluator, labels: &Labels, operands: Vec<Tiled>) -> Result<Tiled, Error> {
    let mut left: Vec<Labelled<Tiled>> = Vec::with_capacity(operands.len());
    for (tiled, own) in operands.iter().cloned().zip(&labels.operands) {
        let (distinct, to) = without_repeats(own);
        left.push((if distinct.len() < own.len() { with_axes(run, &tiled, &to)? } else { tiled }, distinct));
    }
    if has_unlike_ones(&left) {
        for (tiled, _) in &mut left {
            *tiled = with_new_ones(tiled, &tiled.tiling().extents())?;
        }
    }
    for at in 0..left.len() {
        let is_elsewhere = |label: &Axis| {
            labels.output.contains(label)
                || left.iter().enumerate().any(|(other, (_, own))| other != at && own.contains(label))
        };
        let alone: Axes =
            (0..left[at].1.len() as Axis).filter(|axis| !is_elsewhere(&left[at].1[usize::from(*axis)])).collect();
        if !alone.is_empty() {
            let kept: Axes = left[at].1.iter().copied().filter(is_elsewhere).collect();
            left[at] = (reduce(run, Reduction::Sum, &alone, &left[at].0)?, kept);
        }
    }
    // The bytes of each factor that is not an operand itself.
    let own_bytes = |(factor, operand): (&Labelled<Tiled>, &Tiled)| match factor.0.shares_tiles(operand) {
        true => 0,
        false => factor.0.present_bytes(),
    };
    let mut bytes: Vec<usize> = left.iter().zip(&operands).map(own_bytes).collect();
    let pairs = order(run, labels, &left)?;
    for [a, b] in pairs {
        // Both factors, and the factors that wait, are held beside the product.
        let held = bytes.iter().copied().fold(0, usize::saturating_add);
        let run = &run.beside(held);
        let (right, own) = (left.remove(a.max(b)), left.remove(a.min(b)));
        let stays = |label: &Axis| labels.output.contains(label) || left.iter().any(|(_, own)| own.contains(label));
        // The last product has the labels in the order of the result.
        let output = if left.is_empty() { labels.output.clone() } else { kept(&own.1, &right.1, stays) };
        let made = product(run, &own, &right, &output)?;
        bytes.remove(a.max(b));
        bytes.remove(a.min(b));
        bytes.push(made.present_bytes());
        left.push((made, output));
    }
    match left.pop() {
        Some((made, own)) if own == labels.output => Ok(made),
        Some((made, own)) => {
            let place =
                |label: &Axis| labels.output.iter().position(|known| known == label).unwrap_or_default() as Axis;
            with_axes(run, &made, &own.iter().map(place).collect::<Axes>())
        }
        None => Err(Error::tensors(Kind::OperandCount, "a product must have two tiled tensors, found no")),
    }
}

/// Returns true if two axes with the same label and a single index have different tilings. They differ only by empty
/// tiles around the index, so they can be made equal.
fn has_unlike_ones(factors: &[Labelled<Tiled>]) -> bool {
    let axes = || factors.iter().flat_map(|(tiled, own)| own.iter().zip(tiled.tiling().axes()));
    let mut known: HashMap<Axis, &Tiling1> = HashMap::new();
    axes().filter(|(_, axis)| axis.extent() == 1).any(|(label, axis)| *known.entry(*label).or_insert(axis) != axis)
}

/// The distinct labels of a list, and for each label of the list its position among these.
fn without_repeats(labels: &Axes) -> (Axes, Axes) {
    let mut distinct = Axes::new();
    let mut to = Axes::new();
    for label in labels {
        let at = distinct.iter().position(|known| known == label).unwrap_or_else(|| {
            distinct.push(*label);
            distinct.len() - 1
        });
        to.push(at as Axis);
    }
    (distinct, to)
}

/// Returns the labels of two factors that stay in their product, those of `a` first.
fn kept(a: &Axes, b: &Axes, stays: impl Fn(&Axis) -> bool) -> Axes {
    let new = b.iter().copied().filter(|label| !a.contains(label));
    a.iter().copied().chain(new).filter(stays).collect()
}

/// Computes the product of two factors by their labels.
fn product(run: &Evaluator, a: &Labelled<Tiled>, b: &Labelled<Tiled>, output: &Axes) -> Result<Tiled, Error> {
    let text = letters(&[&a.1, &b.1], output);
    if output.is_empty() {
        // A result without axes is not screened: a small number is not left out, as a tile is.
        let number = Tiling::new(std::iter::empty::<Tiling1>())?;
        let made = run.product_within(&text, &a.0, &b.0, &Shape::dense(&number, 1)?)?;
        // A number must be on all ranks.
        return if made.is_distributed() { run.gathered(&made) } else { Ok(made) };
    }
    run.product(&text, &a.0, &b.0)
}

/// Formats labels as a text, a letter for each.
fn letters(operands: &[&Axes], output: &Axes) -> String {
    let mut known = Axes::new();
    let mut text = String::new();
    for (at, own) in operands.iter().enumerate() {
        text.push_str(if at > 0 { "," } else { "" });
        for label in *own {
            text.push(letter(&mut known, *label));
        }
    }
    text.push_str("->");
    output.iter().for_each(|label| text.push(letter(&mut known, *label)));
    text
}

/// The letter of a label, by its position in `known`. Two tensors have fewer labels than there are letters.
fn letter(known: &mut Axes, label: Axis) -> char {
    let at = known.iter().position(|known| *known == label).unwrap_or_else(|| {
        known.push(label);
        known.len() - 1
    });
    let at = at as u8;
    char::from(if at < 26 { b'a' + at } else { b'A' + at % 26 })
}

/// The order in which pairs of factors are multiplied. A pair is two positions in the list of remaining factors, from
/// which both factors are then removed; their product is appended.
fn order(run: &Evaluator, labels: &Labels, factors: &[Labelled<Tiled>]) -> Result<Vec<[usize; 2]>, Error> {
    let Some(scalar) = factors.first().map(|(tiled, _)| tiled.scalar_type()) else { return Ok(Vec::new()) };
    let options = run.options().clone().most_products(MOST_VISITED.min(run.options().most_products));
    let cost = PlannedProducts { options, scalar };
    let own = Labels { operands: factors.iter().map(|(_, own)| own.clone()).collect(), output: labels.output.clone() };
    let shapes = factors.iter().map(|(tiled, own)| (tiled.shape().clone(), own.clone())).collect();
    let found = match factors.len() {
        0..=2 => None,
        3..=EXHAUSTIVE => ProductOrder::best(&own, shapes, &cost)?,
        len if len <= PLANNED => ProductOrder::greedy(&own, shapes, &cost, |operations, _, _| operations)?,
        _ => None,
    };
    if let Some(found) = found {
        return Ok(found.pairs);
    }
    let extents: Vec<Extents> = factors.iter().map(|(tiled, _)| tiled.tiling().extents()).collect();
    let extents = own.label_extents(&extents.iter().map(|extents| &extents[..]).collect::<Vec<_>>())?;
    Ok(ProductOrder::of(&own, &extents).pairs)
}

/// The cost of products of tiled tensors: the multiplications of elements of present tiles, counted by a plan of each product. Factors without a
/// common label are multiplied last, because their product is larger than either.
struct PlannedProducts {
    options: Options,
    scalar: Scalar,
}

impl ProductCost for PlannedProducts {
    type Factor = Labelled<Shape>;

    const APART_LAST: bool = true;

    const LAST_OF_EQUAL: bool = false;

    fn product(
        &self,
        [a, b]: [&Labelled<Shape>; 2],
        _: LabelSet,
        stays: LabelSet,
    ) -> Result<Option<(Labelled<Shape>, f64)>, Error> {
        let output = kept(&a.1, &b.1, |label| stays.has(*label));
        let labels = Labels { operands: vec![a.1.clone(), b.1.clone()], output };
        let plan = match SymbolicProduct::of(&labels, [&a.0, &b.0], None, self.scalar, &self.options) {
            Ok(plan) => plan,
            Err(error) if error.tensor_kind() == Some(Kind::Limit) => return Ok(None),
            Err(error) => return Err(error),
        };
        let operations = plan.multiplications(&a.0);
        Ok(Some(((plan.shape().clone(), labels.output), operations)))
    }

    fn size(&self, _: &Labelled<Shape>) -> f64 {
        0.0
    }

    fn precedence([a, b]: [usize; 2]) -> [usize; 2] {
        [b, a]
    }
}
