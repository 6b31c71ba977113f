//! Plans that are one line of inputs, mapped or summed at once, with an output of their own: run again and again, they need no step, slot or
//! list of lines, but a look at how the inputs lie, and a call.

use super::reduce::put_total;
use super::{BoundPlan, BoundWork, PartWork};
use crate::body::{OneLine, OneTarget};
use crate::{Data, Layout, Tensor, sums};
use cembra_runtime::{CHAINS, Scalar};

/// A plan that is one line.
#[derive(Debug)]
pub(super) struct OneCall {
    line: Box<dyn OneLine>,
    inputs: Box<[Lies]>,
    /// Zeros between runs; none where elements are written.
    chains: Option<Box<[f64; CHAINS]>>,
}

/// How an input lies, wherever it begins.
#[derive(Debug)]
struct Lies {
    scalar: Scalar,
    axes: Axes,
}

/// The extents and strides of axes; most lines have one.
#[derive(Debug)]
enum Axes {
    One(usize, isize),
    Any(Box<[(usize, isize)]>),
}

impl Lies {
    #[inline]
    fn fits(&self, input: &Tensor) -> bool {
        let layout = input.layout();
        let (extents, strides) = (layout.extents(), layout.strides());
        let lies = match &self.axes {
            Axes::One(extent, stride) => matches!((extents, strides), ([e], [s]) if e == extent && s == stride),
            Axes::Any(axes) => {
                let is_axis = |((extent, stride), axis): ((&usize, &isize), &_)| (*extent, *stride) == *axis;
                extents.len() == axes.len() && extents.iter().zip(strides).zip(axes).all(is_axis)
            }
        };
        lies && input.scalar_type() == self.scalar
    }
}

impl OneCall {
    /// None if the plan is something else.
    pub(super) fn of(plan: &BoundPlan) -> Option<OneCall> {
        let [step] = &plan.steps[..] else { return None };
        let BoundWork::Pieces(workers, _) = &step.work else { return None };
        let [worker] = &workers[..] else { return None };
        let [part] = &worker.cut.only()?[..] else { return None };
        if part.left.is_some() || part.over.is_some() {
            return None;
        }
        let (line, chains) = match &part.work {
            PartWork::Map(map) => (map.one_line()?, None),
            PartWork::Reduce(reduce) => (reduce.one_line()?, Some(Box::new([0.0; CHAINS]))),
            PartWork::Product(_) => return None,
        };
        let lies = |(scalar, layout): &(Scalar, Layout)| Lies {
            scalar: *scalar,
            axes: match (layout.extents(), layout.strides()) {
                ([extent], [stride]) => Axes::One(*extent, *stride),
                (extents, strides) => Axes::Any(extents.iter().copied().zip(strides.iter().copied()).collect()),
            },
        };
        Some(OneCall { line, inputs: plan.inputs.iter().map(lies).collect(), chains })
    }

    /// Runs it on inputs, and writes the elements of the output, all of the memory of which is given. False if inputs lie otherwise, or an
    /// element fails or may: then what is in the memory is anything.
    #[inline(never)]
    pub(super) fn run(&mut self, inputs: &[Tensor], to: &mut Data) -> bool {
        let OneCall { line, inputs: lies, chains } = self;
        if inputs.len() != lies.len() || !lies.iter().zip(inputs).all(|(lies, input)| lies.fits(input)) {
            return false;
        }
        let Some(chains) = chains else { return line.run(inputs, OneTarget::Elements(to.all_mut())) };
        let is_summed = line.run(inputs, OneTarget::Sums(chains));
        let mut total = [0.0];
        sums::take_sums(std::slice::from_mut(chains), &mut total);
        is_summed && put_total(total[0], &mut to.all_mut())
    }
}
