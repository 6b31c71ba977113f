//! Expressions of elements: what the maps of a graph do to one element, for whatever evaluates it on many. One map is a body of one
//! step, a region of maps that are evaluated together is a body of several.

use crate::maps::{ElementOperator, OperandType};
use crate::{Data, DataMut, Error, Layout, Products, Tensor};
use cembra_runtime::{Chains, Scalar};
use smallvec::SmallVec;
use std::fmt::Debug;

/// Where a step of a body has an operand from: the inputs come first, then the steps.
pub type Operand = u32;

/// A step of a body.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum BodyStep {
    /// A constant: its type, and its bits in the layout of frames.
    Constant(Scalar, u64),
    /// A scalar operator on what came before, which is of exactly the types that it takes, and on the texts that it has.
    Apply(ElementOperator, SmallVec<[Operand; 3]>),
}

/// An expression of elements, complete in itself: equal bodies mean the same.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Body {
    /// The types of the inputs.
    pub inputs: Vec<Scalar>,
    /// The steps in their order.
    pub steps: Vec<BodyStep>,
    /// What comes out, and its type.
    pub outputs: Vec<(Operand, Scalar)>,
}

impl Body {
    /// One operator on operands of these types. Literals are part of the body, the others are its inputs.
    pub(crate) fn of_operator(op: &ElementOperator, operands: &[OperandType], result: Scalar) -> Body {
        let inputs: Vec<Scalar> =
            operands.iter().filter(|(_, bits)| bits.is_none()).map(|(scalar, _)| *scalar).collect();
        let mut steps = Vec::new();
        let mut input = 0..;
        let places = operands.iter().map(|(scalar, bits)| match bits {
            Some(bits) => {
                steps.push(BodyStep::Constant(*scalar, *bits));
                (inputs.len() + steps.len() - 1) as Operand
            }
            None => input.next().unwrap_or(0),
        });
        let places = places.collect();
        steps.push(BodyStep::Apply(op.clone(), places));
        let outputs = vec![((inputs.len() + steps.len() - 1) as Operand, result)];
        Body { inputs, steps, outputs }
    }
}

/// An expression of elements that is ready to be evaluated on one element of each input, in memory of its own.
pub trait Single: Send + Debug {
    /// The first output, by its bits in the layout of frames, of the bits of the inputs.
    ///
    /// # Errors
    /// There are not as many as inputs, or the element fails.
    fn evaluate(&mut self, inputs: &[u64]) -> Result<u64, Error>;

    /// The same with other memory, for somebody else.
    fn fork(&self) -> Box<dyn Single>;
}

/// Elements of memory: one, and how far it is to each other one.
#[derive(Clone, Copy, Debug)]
pub struct Line<'a> {
    /// The memory.
    pub data: &'a Data,
    /// The position of the first element.
    pub first: usize,
    /// From one element to the next; 0 where there is but one.
    pub step: isize,
}

/// An expression of elements that is ready to be evaluated on lines, in memory of its own.
pub trait LineKernel: Send + Debug {
    /// Evaluates so many elements of each line, and writes the first output over what is in memory; again and again, as often as there is
    /// memory for, for lines that each begin so many elements behind those before.
    ///
    /// # Errors
    /// Lines or memory do not fit, or an element fails.
    fn run(&mut self, lines: &[Line<'_>], shifts: &[isize], length: usize, to: &mut DataMut<'_>) -> Result<(), Error>;

    /// The same for one line of so many elements, the same number in each call, of these lines of tensors; none where there is more to be done,
    /// or an input is not looked at.
    fn one_line(&self, lines: &[InputLine], length: usize) -> Option<Box<dyn OneLine>>;
}

/// The line of an input of a body: which of several tensors has it, how this lies, and how far behind its first element the line begins.
#[derive(Clone, Debug)]
pub struct InputLine {
    input: usize,
    further: usize,
    /// The extent and the stride of the one axis that most tensors have which are lines.
    axis: (usize, isize),
    /// The same of all axes where there are more.
    axes: Option<Box<[(usize, isize)]>>,
}

impl InputLine {
    pub(crate) fn of(input: usize, further: usize, layout: &Layout) -> InputLine {
        let axes: Box<[(usize, isize)]> = layout.axes().collect();
        let (axis, axes) = if let [axis] = axes[..] { (axis, None) } else { ((0, 0), Some(axes)) };
        InputLine { input, further, axis, axes }
    }

    /// Which tensor has it.
    #[must_use]
    pub const fn input(&self) -> usize {
        self.input
    }

    /// The memory that it is in, and the position where it begins. None if there is no such tensor, or it lies otherwise; what is in memory, and
    /// how much, nobody asks.
    #[must_use]
    #[inline]
    pub fn find<'t>(&self, tensors: &'t [Tensor]) -> Option<(&'t Data, usize)> {
        let tensor = tensors.get(self.input)?;
        let layout = tensor.layout();
        let fits = match &self.axes {
            None => layout.is_of_axis(self.axis),
            Some(axes) => layout.is_of_axes(axes),
        };
        fits.then(|| (tensor.data(), layout.offset().wrapping_add(self.further)))
    }
}

/// Where what comes of one line goes.
#[derive(Debug)]
pub enum OneTarget<'d> {
    /// To memory of as many elements.
    Elements(DataMut<'d>),
    /// Added to sums, that of element `i` to sum `i` modulo so many, none of which is -0 before.
    Sums(&'d mut Chains),
}

/// An expression of elements on one line, with as little around it as there can be.
pub trait OneLine: Send + Debug {
    /// Evaluates it on tensors, of which there are as many as when it was made. False if that cannot be done, because one has other elements or
    /// lies otherwise, or an element fails or may: then what is in the target is anything.
    fn run(&mut self, tensors: &[Tensor], to: OneTarget<'_>) -> bool;
}

/// Memory that is read soon: while a line is summed, as much of it as the line has may be fetched from a position on. There may be nothing.
#[derive(Clone, Copy, Debug)]
pub struct Soon<'a> {
    /// The memory.
    pub data: &'a Data,
    /// The position that belongs to the first line.
    pub first: usize,
    /// From it to that of the next line.
    pub shift: isize,
}

/// An expression of elements, of a type of floats, that is ready to be summed over lines.
pub trait SumKernel: Send + Debug {
    /// Adds the first output to sums, for so many elements of each line: that of element `i` to sum `i` modulo so many, none of which is -0
    /// before; so many times, for lines that each begin so many elements behind those before, each time to the next of the sums. False if that
    /// cannot be done, because there are not as many sums, or an element fails or may: then sums are anything.
    fn sum_each(
        &mut self,
        lines: (&[Line<'_>], &[Soon<'_>]),
        shifts: &[isize],
        counts: [usize; 2],
        sums: &mut [Chains],
    ) -> bool;

    /// The same for one line of so many elements, the same number in each call, of these lines of tensors; none where there is more to be done,
    /// or an input is not looked at.
    fn one_line(&self, lines: &[InputLine], length: usize) -> Option<Box<dyn OneLine>>;
}

/// Something that may be done on another thread.
pub type Task<'t> = Box<dyn FnOnce() + Send + 't>;

/// How many nodes of a graph are visited between two looks at whether to go on.
pub(crate) const LOOKED_AT: usize = 256;

/// What evaluates expressions of elements.
pub trait Elements: Sync {
    /// Evaluates a body on the elements of tensors of the types of its inputs, each broadcast to the extents of the result, and writes the
    /// elements of each output, the last axis the fastest, over what is in memory of their type.
    ///
    /// # Errors
    /// The body cannot be compiled, the memory does not fit, or an element fails.
    fn map_into(
        &self,
        body: &Body,
        operands: &[Tensor],
        extents: &[usize],
        outputs: &mut [DataMut<'_>],
    ) -> Result<(), Error>;

    /// Evaluates a body likewise: the elements of each output.
    ///
    /// # Errors
    /// As for [`map_into`](Elements::map_into).
    fn map(&self, body: &Body, operands: &[Tensor], extents: &[usize]) -> Result<Vec<Data>, Error> {
        let rows = extents.iter().product();
        let zeros = body.outputs.iter().map(|(_, scalar)| Data::zeros(*scalar, rows));
        let mut outputs = zeros.collect::<Result<Vec<Data>, Error>>()?;
        let mut all: Vec<DataMut<'_>> = outputs.iter_mut().map(Data::all_mut).collect();
        self.map_into(body, operands, extents, &mut all)?;
        Ok(outputs)
    }

    /// A body that is evaluated on lines of these steps.
    ///
    /// # Errors
    /// The body cannot be compiled.
    fn kernel(&self, body: &Body, steps: &[isize]) -> Result<Box<dyn LineKernel>, Error>;

    /// A body that is summed over lines of these steps; none where that is not done at once.
    ///
    /// # Errors
    /// The body cannot be compiled.
    fn sum_kernel(&self, body: &Body, steps: &[isize]) -> Result<Option<Box<dyn SumKernel>>, Error>;

    /// A body that is evaluated on one element of each input.
    ///
    /// # Errors
    /// The body cannot be compiled.
    fn single(&self, body: &Body) -> Result<Box<dyn Single>, Error>;

    /// The most bytes that a tensor may have.
    fn most_bytes(&self) -> u64;

    /// An error if the run, or the rewriting, is to end. It is asked before each step, and while a long one goes on.
    ///
    /// # Errors
    /// It is to end.
    fn go_on(&self) -> Result<(), Error> {
        Ok(())
    }

    /// The same, which nothing ends before it is done.
    fn uninterrupted(&self) -> &dyn Elements;

    /// How many threads there are for a run. Results do not depend on it.
    fn threads(&self) -> usize {
        1
    }

    /// How many elements are worth a turn of a thread.
    fn share(&self) -> usize;

    /// Does all of these, in any order and on as many threads as there are.
    fn together(&self, tasks: Vec<Task<'_>>) {
        tasks.into_iter().for_each(|task| task());
    }

    /// What computes the products of plans. Without, they are what the reference makes of them, bit for bit.
    fn products(&self) -> Option<&Products> {
        None
    }
}
