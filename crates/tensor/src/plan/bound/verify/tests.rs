//! Bound plans that are broken on purpose.

use super::super::binding::Bound;
use super::*;
use crate::body::{Body, InputLine, Line, LineKernel, OneLine, Single, SumKernel};
use crate::node::Reduction;
use crate::{DataMut, Elements, Error, ErrorKind, Layout, Tensor};
use cembra_runtime::Scalar;

/// Binds everything and evaluates nothing.
#[derive(Debug)]
struct Unrun;

fn unrun() -> Error {
    Error::new(ErrorKind::Evaluation, "is not run")
}

impl LineKernel for Unrun {
    fn run(&mut self, _: &[Line<'_>], _: &[isize], _: usize, _: &mut DataMut<'_>) -> Result<(), Error> {
        Err(unrun())
    }

    fn one_line(&self, _: &[InputLine], _: usize) -> Option<Box<dyn OneLine>> {
        None
    }
}

impl Elements for Unrun {
    fn map_into(&self, _: &Body, _: &[Tensor], _: &[usize], _: &mut [DataMut<'_>]) -> Result<(), Error> {
        Err(unrun())
    }

    fn kernel(&self, _: &Body, _: &[isize]) -> Result<Box<dyn LineKernel>, Error> {
        Ok(Box::new(Unrun))
    }

    fn sum_kernel(&self, _: &Body, _: &[isize]) -> Result<Option<Box<dyn SumKernel>>, Error> {
        Ok(None)
    }

    fn single(&self, _: &Body) -> Result<Box<dyn Single>, Error> {
        Err(unrun())
    }

    fn most_bytes(&self) -> u64 {
        u64::MAX
    }

    fn uninterrupted(&self) -> &dyn Elements {
        self
    }

    fn share(&self) -> usize {
        1 << 16
    }
}

/// A graph, its plan, and what it is bound to.
struct Case {
    graph: Graph,
    plan: Plan,
    inputs: Vec<Tensor>,
}

/// Sums, largest and products one after the other, so that memory is used again.
fn chain() -> Result<Case, Error> {
    let mut g = Graph::standard();
    let x = g.leaf("x", Scalar::Float64, &[30, 30])?;
    let mut made = x;
    for _ in 0..4 {
        let [down, across] = [g.reduce(Reduction::Sum, made, &[0])?, g.reduce(Reduction::Max, made, &[1])?];
        let across = g.reshape(across, &[30, 1])?;
        made = g.apply("math.add", &[down, across])?;
        made = g.einsum("ij,jk->ik", &[made, x])?;
    }
    let plan = Plan::of(&g, &[made]);
    let inputs = vec![Tensor::new(&[30, 30], vec![1.0; 900])?];
    Ok(Case { graph: g, plan, inputs })
}

fn check(case: &Case, breaks: impl FnOnce(&mut Bound)) -> Result<Result<(), BoundFlaw>, Error> {
    let mut bound = case.plan.bound_steps(&case.graph, &case.inputs, None, &Unrun)?;
    assert_eq!(verify(&case.plan, &case.graph, &bound), Ok(()), "{}", case.plan.listing(&case.graph));
    breaks(&mut bound);
    Ok(verify(&case.plan, &case.graph, &bound))
}

#[test]
fn slots_have_what_is_read() -> Result<(), Error> {
    let case = chain()?;
    // Each step's value in the memory of the first one of its size: too soon for some.
    let reused = check(&case, |bound| {
        let sizes: Vec<usize> = bound.plan.slots.iter().map(|slot| slot.len).collect();
        let first =
            |slot: u32| sizes.iter().position(|size| *size == sizes[slot as usize]).map_or(slot, |at| at as u32);
        bound.plan.steps.iter_mut().for_each(|step| step.target = first(step.target));
        for seen in bound.values.values_mut() {
            if let Place::Slot(slot) = &mut seen.place {
                *slot = first(*slot);
            }
        }
    })?;
    assert!(
        matches!(reused, Err(BoundFlaw::Overwritten(_) | BoundFlaw::Aliased(_) | BoundFlaw::Operand(_))),
        "{reused:?}"
    );
    let elsewhere = check(&case, |bound| {
        let last = bound.plan.steps.len() - 1;
        bound.plan.steps[last].target = bound.plan.steps[0].target;
    })?;
    assert!(elsewhere.is_err(), "{elsewhere:?}");
    let missing = check(&case, |bound| {
        bound.plan.steps.remove(1);
        bound.step_of.remove(1);
    })?;
    assert!(matches!(missing, Err(BoundFlaw::Overwritten(_))), "{missing:?}");
    Ok(())
}

#[test]
fn values_fit_their_memory() -> Result<(), Error> {
    let case = chain()?;
    let small = check(&case, |bound| bound.plan.slots[0].len -= 1)?;
    assert!(matches!(small, Err(BoundFlaw::Size(_))), "{small:?}");
    let other = check(&case, |bound| bound.plan.slots[0].scalar = Scalar::Int64)?;
    assert!(matches!(other, Err(BoundFlaw::Size(_))), "{other:?}");
    Ok(())
}

#[test]
fn pieces_read_the_elements_of_their_step() -> Result<(), Error> {
    let mut g = Graph::standard();
    let x = g.leaf("x", Scalar::Float64, &[40, 30])?;
    let y = g.leaf("y", Scalar::Float64, &[30])?;
    let sum = g.apply("math.add", &[x, y])?;
    let plan = Plan::of(&g, &[sum]);
    let inputs = vec![Tensor::new(&[40, 30], vec![1.0; 1200])?, Tensor::new(&[30], vec![1.0; 30])?];
    let case = Case { graph: g, plan, inputs };
    // The plan was bound to a matrix that lies the other way.
    let turned = check(&case, |bound| {
        let layout = Layout::within(&[40, 30], [1, 40].as_slice().into(), 0);
        bound.values.insert(x, Seen { place: Place::Input(0), layout });
    })?;
    assert_eq!(turned, Err(BoundFlaw::Operand(sum.index())));
    let swapped = check(&case, |bound| {
        let [a, b] = [bound.values[&x].clone(), bound.values[&y].clone()];
        bound.values.insert(x, Seen { place: b.place, ..a });
    })?;
    assert!(swapped.is_err(), "{swapped:?}");
    Ok(())
}
