//! Computes one element that a `Reader` is asked for. Elements that wait for other elements are on an explicit stack;
//! computed elements are kept in a table until the read ends. The indices and operands of all waiting elements are in
//! lists that only grow at their ends, so nothing is allocated per element.

use super::Reader;
use super::cell::{Cell, Term};
use super::folding::{Folding, Wide};
use crate::scalar::once::SingleElement;
use cembra_tensor::named_index;
use cembra_tensor::{Axis, Custom, Elements, MOST_AXES, Node, Operation, Slice, TensorErrorKind, TensorNodeId};
use cembra_value::Error;
use cembra_value::ScalarValue;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// An index of a node's element.
type Index = SmallVec<[usize; MOST_AXES]>;

/// An element whose computation waits for other elements.
#[derive(Clone, Copy, Debug)]
struct Frame {
    node: TensorNodeId,
    /// The element's number among the node's elements.
    position: usize,
    /// The start of the element's index in the list of indices. The index in the space that is reduced follows it.
    index: usize,
    /// The start, in the list of arguments, of the elements that were computed for this element.
    arguments: usize,
    /// The progress of the computation, such as the number of terms so far. Its meaning depends on the operation.
    stage: usize,
    is_begun: bool,
}

/// The outcome of continuing the computation of a waiting element.
enum Step {
    /// The element is computed: the number has its bits.
    Done(u64),
    /// The element needs an element of this node first; the index of that element is at the end of the list of indices.
    Ask(TensorNodeId),
}

/// The memory that the computation of an element uses: elements that wait, elements that are computed, and their indices.
pub(super) struct Workspace {
    frames: Vec<Frame>,
    indices: Vec<usize>,
    arguments: Vec<u64>,
    folds: Vec<Folding>,
    known: FxHashMap<(TensorNodeId, usize), u64>,
    singles: Vec<SingleElement>,
}

impl Workspace {
    pub(super) fn new(singles: Vec<SingleElement>) -> Workspace {
        Workspace {
            frames: Vec::new(),
            indices: Vec::new(),
            arguments: Vec::new(),
            folds: Vec::new(),
            known: FxHashMap::default(),
            singles,
        }
    }

    /// Computes the bits of the element at `index` of the reader's node.
    pub(super) fn element(&mut self, on: &Reader<'_>, index: &[usize]) -> Result<u64, Error> {
        // An earlier access may have ended with an error.
        self.frames.clear();
        self.indices.clear();
        self.arguments.clear();
        self.folds.clear();
        // Drops the large table of an earlier access if later ones need little of it.
        if self.known.capacity() > (64 * self.known.len()).max(1 << 14) {
            self.known = FxHashMap::default();
        }
        self.known.clear();
        self.indices.extend(index);
        let mut given = self.ask(on, on.output)?;
        loop {
            let Some(frame) = self.frames.last().copied() else {
                return given.ok_or_else(|| Error::tensors(TensorErrorKind::Evaluation, "an element was not computed"));
            };
            given = match self.advance(on, frame, given)? {
                Step::Ask(node) => self.ask(on, node)?,
                Step::Done(bits) => {
                    self.frames.pop();
                    self.indices.truncate(frame.index);
                    self.arguments.truncate(frame.arguments);
                    self.remember(on, frame, bits)?;
                    Some(bits)
                }
            };
        }
    }

    fn remember(&mut self, on: &Reader<'_>, frame: Frame, bits: u64) -> Result<(), Error> {
        /// The approximate bytes of an entry in the table of computed elements.
        const ENTRY: usize = 2 * size_of::<((TensorNodeId, usize), u64)>();
        let most = on.host.most_bytes();
        if self.known.len() as u64 >= most / ENTRY as u64 {
            let message = format!("a single element depends on more elements than fit into the limit of {most} bytes");
            return Err(Error::tensors(TensorErrorKind::Limit, message).hint("evaluate the whole tensor"));
        }
        self.known.insert((frame.node, frame.position), bits);
        Ok(())
    }

    /// Returns the element of a node whose index is at the end of the list, and removes the index; `None` if the element
    /// must wait for others.
    fn ask(&mut self, on: &Reader<'_>, mut id: TensorNodeId) -> Result<Option<u64>, Error> {
        loop {
            let node = on.graph.node(id);
            let first = self.indices.len() - node.extents.len();
            let found = match &node.operation {
                Operation::Leaf(number) => {
                    let input = &on.inputs[*number as usize];
                    Some(input.data().bits(input.layout().position(&self.indices[first..])?))
                }
                Operation::Constant(bits) => Some(*bits),
                Operation::Tensor(constant) => {
                    let value = constant.tensor();
                    Some(value.data().bits(value.layout().position(&self.indices[first..])?))
                }
                Operation::Iota => self.indices.last().map(|index| *index as u64),
                Operation::Custom(_) if !on.customs.contains_key(&id) => {
                    let value = on.whole(id)?;
                    Some(value.data().bits(value.layout().position(&self.indices[first..])?))
                }
                Operation::Seed(_) => {
                    let message = "a gradient of a custom operator must be linear in the cotangent";
                    return Err(Error::tensors(TensorErrorKind::Evaluation, message));
                }
                _ => match seen(on, node, &self.indices[first..]) {
                    ElementSource::Element(operand, index) => {
                        self.indices.truncate(first);
                        self.indices.extend(index);
                        id = operand;
                        continue;
                    }
                    ElementSource::Zero => Some(0),
                    ElementSource::Computed => None,
                },
            };
            if let Some(bits) = found {
                self.indices.truncate(first);
                return Ok(Some(bits));
            }
            let position = position(&node.extents, &self.indices[first..]);
            if let Some(bits) = self.known.get(&(id, position)) {
                self.indices.truncate(first);
                return Ok(Some(*bits));
            }
            let arguments = self.arguments.len();
            self.frames.push(Frame { node: id, position, index: first, arguments, stage: 0, is_begun: false });
            return Ok(None);
        }
    }

    /// Continues the computation of the waiting element `frame`. `given` is the element that it has requested; `None`
    /// if it has requested none yet.
    fn advance(&mut self, on: &Reader<'_>, mut frame: Frame, given: Option<u64>) -> Result<Step, Error> {
        let node = on.graph.node(frame.node);
        let step = match &node.operation {
            Operation::Take(axis) => self.take(on, node, &mut frame, *axis, given),
            Operation::PlaceTake(axis) => self.place_take(on, node, &mut frame, *axis, given),
            Operation::Custom(custom) => self.custom(on, node, &mut frame, custom, given),
            _ => match on.cells.get(&frame.node) {
                Some(cell) => self.cell(cell, node, &mut frame, given),
                None => Err(Error::tensors(
                    TensorErrorKind::Evaluation,
                    "a single element of this tensor cannot be computed, because other operators compute the tensor",
                )),
            },
        };
        if let Some(last) = self.frames.last_mut() {
            (last.stage, last.is_begun) = (frame.stage, true);
        }
        step
    }

    /// Continues the computation of an element of a map, a reduction, or a product.
    fn cell(&mut self, cell: &Cell, node: &Node, frame: &mut Frame, given: Option<u64>) -> Result<Step, Error> {
        let space = frame.index + node.extents.len();
        if !frame.is_begun {
            self.indices.resize(space + cell.rank, 0);
            for (own, axis) in cell.kept.iter().enumerate() {
                self.indices[space + usize::from(*axis)] = self.indices[frame.index + own];
            }
            if let Some((reduction, order)) = cell.fold {
                self.folds.push(Folding::new(node.scalar, reduction, order, cell.terms));
            }
        }
        self.arguments.extend(given);
        let fold_of =
            |folds: &mut Vec<Folding>| folds.pop().map(|fold| Step::Done(fold.finish().narrowed(node.scalar)));
        let lost = || Error::tensors(TensorErrorKind::Evaluation, "a reduction has no state");
        if cell.terms == 0 {
            return fold_of(&mut self.folds).ok_or_else(lost);
        }
        loop {
            let arguments = &self.arguments[frame.arguments..];
            let next = match (cell.term, arguments) {
                (Term::Choice, [condition]) => 1 + usize::from(*condition == 0),
                (Term::Choice, [_, _]) => cell.inputs.len(),
                _ => arguments.len(),
            };
            if let Some((wanted, view)) = cell.inputs.get(next) {
                let index: Index = view.index(&self.indices[space..]).collect();
                self.indices.extend(index);
                return Ok(Step::Ask(*wanted));
            }
            let wide = |bits: &u64| Wide::of(node.scalar, *bits);
            let term = match cell.term {
                Term::Same => arguments.first().map(wide),
                Term::Choice => arguments.get(1).map(wide),
                Term::Product => arguments.iter().map(wide).reduce(Wide::times),
                Term::Body(number) => Some(wide(&self.singles[number].evaluate(arguments)?)),
            };
            let term = term.ok_or_else(|| Error::tensors(TensorErrorKind::Evaluation, "an element has no operands"))?;
            self.arguments.truncate(frame.arguments);
            if cell.fold.is_none() {
                return Ok(Step::Done(term.narrowed(node.scalar)));
            }
            self.folds.last_mut().ok_or_else(lost)?.add(term);
            frame.stage += 1;
            if frame.stage == cell.terms {
                return fold_of(&mut self.folds).ok_or_else(lost);
            }
            for (axis, extent) in cell.walk.iter().rev() {
                let place = &mut self.indices[space + usize::from(*axis)];
                *place += 1;
                if *place < *extent {
                    break;
                }
                *place = 0;
            }
        }
    }

    /// Continues the computation of an element of a user's operation: first requests the elements that the operation
    /// reads, then computes the result. In the list of indices, the list of elements to read follows the element's own
    /// index.
    fn custom(
        &mut self,
        on: &Reader<'_>,
        node: &Node,
        frame: &mut Frame,
        custom: &Custom,
        given: Option<u64>,
    ) -> Result<Step, Error> {
        let list = frame.index + node.extents.len();
        let (Some(form), Some(inputs)) = (custom.element_form(), on.customs.get(&frame.node)) else {
            let message = format!("the operator `{}` cannot compute single elements any more", custom.name());
            return Err(Error::tensors(TensorErrorKind::Evaluation, message));
        };
        let own = Index::from_slice(&self.indices[frame.index..list]);
        if !frame.is_begun {
            self.indices.push(0);
            self.indices[list] = custom.reads(form, inputs, &own, &mut self.indices)?;
            frame.stage = list + 1;
        }
        self.arguments.extend(given);
        if self.arguments.len() - frame.arguments < self.indices[list] {
            let input = self.indices[frame.stage];
            let (first, next) = (frame.stage + 1, frame.stage + 1 + inputs[input].extents.len());
            frame.stage = next;
            self.indices.extend_from_within(first..next);
            return Ok(Step::Ask(node.operands[input]));
        }
        let mut read: SmallVec<[ScalarValue; 8]> = SmallVec::new();
        let mut at = list + 1;
        for bits in &self.arguments[frame.arguments..] {
            let input = &inputs[self.indices[at]];
            read.extend(ScalarValue::from_bits(input.scalar, *bits));
            at += 1 + input.extents.len();
        }
        custom.element(form, node.scalar, inputs, &own, &read).map(Step::Done)
    }

    /// Continues the computation of an element of a gather: requests the index value, then the element at that index.
    fn take(
        &mut self,
        on: &Reader<'_>,
        node: &Node,
        frame: &mut Frame,
        axis: Axis,
        given: Option<u64>,
    ) -> Result<Step, Error> {
        let (axis, [of, named]) = (usize::from(axis), [node.operands[0], node.operands[1]]);
        let behind = axis + on.graph.extents(named).len();
        frame.stage += 1;
        match (frame.stage, given) {
            (1, _) => {
                self.indices.extend_from_within(frame.index + axis..frame.index + behind);
                Ok(Step::Ask(named))
            }
            (2, Some(bits)) => {
                let index = index_of(on, named, bits, on.graph.extents(of)[axis])?;
                self.indices.extend_from_within(frame.index..frame.index + axis);
                self.indices.push(index);
                self.indices.extend_from_within(frame.index + behind..frame.index + node.extents.len());
                Ok(Step::Ask(of))
            }
            (_, Some(bits)) => Ok(Step::Done(bits)),
            _ => Err(Error::tensors(TensorErrorKind::Evaluation, "an index was not computed")),
        }
    }

    /// Continues the computation of an element of a scatter: requests each index value in turn. If the value is this
    /// element's index along the axis, adds the operand's element for that value.
    fn place_take(
        &mut self,
        on: &Reader<'_>,
        node: &Node,
        frame: &mut Frame,
        axis: Axis,
        mut given: Option<u64>,
    ) -> Result<Step, Error> {
        let (axis, [of, named]) = (usize::from(axis), [node.operands[0], node.operands[1]]);
        let extents = on.graph.extents(named);
        let count: usize = extents.iter().product();
        if !frame.is_begun {
            self.arguments.push(0);
        }
        loop {
            // In even stages, the previous element is added and the next index is asked for; in odd stages, that index has
            // arrived.
            let number = frame.stage / 2;
            if frame.stage.is_multiple_of(2) {
                let sum = &mut self.arguments[frame.arguments];
                if let Some(bits) = given.take() {
                    let [sum_before, added] = [*sum, bits].map(|bits| Wide::of(node.scalar, bits));
                    *sum = sum_before.plus(added, node.scalar).narrowed(node.scalar);
                }
                if number == count {
                    return Ok(Step::Done(*sum));
                }
                frame.stage += 1;
                self.indices.extend(index(extents, number));
                return Ok(Step::Ask(named));
            }
            frame.stage += 1;
            let Some(bits) = given.take() else {
                return Err(Error::tensors(TensorErrorKind::Evaluation, "an index was not computed"));
            };
            let own = self.indices[frame.index + axis];
            if index_of(on, named, bits, node.extents[axis])? == own {
                self.indices.extend_from_within(frame.index..frame.index + axis);
                self.indices.extend(index(extents, number));
                self.indices.extend_from_within(frame.index + axis + 1..frame.index + node.extents.len());
                return Ok(Step::Ask(of));
            }
        }
    }
}

/// Converts the bits of an element of `named` to an index along an axis with the extent `extent`.
fn index_of(on: &Reader<'_>, named: TensorNodeId, bits: u64, extent: usize) -> Result<usize, Error> {
    match Wide::of(on.graph.scalar(named), bits) {
        Wide::Integer(index) => named_index(index, extent),
        _ => Err(Error::tensors(TensorErrorKind::ElementType, "indices are i32 or i64")),
    }
}

/// The number of the element at `index` in row-major order, where the last axis varies fastest.
fn position(extents: &[usize], index: &[usize]) -> usize {
    extents.iter().zip(index).fold(0, |position, (extent, index)| position * extent + index)
}

/// The index of the element with the number `number` in row-major order.
pub(super) fn index(extents: &[usize], number: usize) -> Index {
    let mut index = Index::from_elem(0, extents.len());
    let mut rest = number;
    for (place, extent) in index.iter_mut().zip(extents).rev() {
        (*place, rest) = (rest % extent, rest / extent);
    }
    index
}

/// The source of an element of an operation that only rearranges elements, such as a slice or a reshape.
enum ElementSource {
    /// The element equals an element of an operand: the operand, and the index of that element.
    Element(TensorNodeId, Index),
    Zero,
    /// The element must be computed.
    Computed,
}

/// Returns the source of the element at the index `own` of an operation that only rearranges elements. For any other
/// operation, the element must be computed.
fn seen(on: &Reader<'_>, node: &Node, own: &[usize]) -> ElementSource {
    let Some(operand) = node.operands.first().copied() else { return ElementSource::Computed };
    let extents = on.graph.extents(operand);
    let element = |index: Index| ElementSource::Element(operand, index);
    match &node.operation {
        Operation::Axes(to) => element(to.iter().map(|axis| own[usize::from(*axis)]).collect()),
        Operation::Slice(slices) => {
            let along = |(slice, index): (&Slice, &usize)| {
                slice.start.wrapping_add_signed(slice.step.wrapping_mul(index.cast_signed()))
            };
            element(slices.iter().zip(own).map(along).collect())
        }
        Operation::CustomVjp(_) | Operation::Barrier(_) => element(own.into()),
        Operation::Broadcast => {
            let own = &own[own.len() - extents.len()..];
            element(extents.iter().zip(own).map(|(extent, index)| if *extent == 1 { 0 } else { *index }).collect())
        }
        Operation::Reshape => element(index(extents, position(&node.extents, own))),
        Operation::PlaceAxes(to) => {
            let mut index = Index::from_elem(usize::MAX, extents.len());
            for (axis, at) in to.iter().zip(own) {
                let place = &mut index[usize::from(*axis)];
                if *place != usize::MAX && *place != *at {
                    return ElementSource::Zero;
                }
                *place = *at;
            }
            element(index)
        }
        Operation::PlaceSlice(slices) => {
            let mut index = Index::new();
            for (slice, at) in slices.iter().zip(own) {
                let distance = at.cast_signed().wrapping_sub(slice.start.cast_signed());
                let (steps, rest) = (distance / slice.step, distance % slice.step);
                match usize::try_from(steps) {
                    Ok(steps) if rest == 0 && steps < slice.count => index.push(steps),
                    _ => return ElementSource::Zero,
                }
            }
            element(index)
        }
        Operation::Concat(axis) => {
            let axis = usize::from(*axis);
            let mut index = Index::from_slice(own);
            for operand in &node.operands {
                let extent = on.graph.extents(*operand)[axis];
                if index[axis] < extent {
                    return ElementSource::Element(*operand, index);
                }
                index[axis] -= extent;
            }
            ElementSource::Computed
        }
        _ => ElementSource::Computed,
    }
}
