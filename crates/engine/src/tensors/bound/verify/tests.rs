//! Tests of the verifier, with bound plans that are broken on purpose.

use super::*;
use crate::options::choice::Backend;
use crate::options::compile_options::CompileOptions;
use crate::tensors::evaluator::Evaluator;
use cembra_runtime::Scalar;
use cembra_tensor::{Layout, Reduction, Tensor};
use cembra_value::Error;

/// A graph, its plan, and the inputs that the plan is bound to.
struct Case {
    graph: TensorGraph,
    plan: Plan,
    inputs: Vec<Tensor>,
}

/// Sums, maxima and products one after the other, so that memory is reused.
fn chain() -> Result<Case, Error> {
    let mut g = TensorGraph::standard();
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

fn check(case: &Case, breaks: impl FnOnce(&mut BindingResult)) -> Result<Result<(), BoundFlaw>, Error> {
    let options = CompileOptions { backend: Backend::Interpreter, ..CompileOptions::default() };
    let evaluator = Evaluator::new(&options);
    let mut bound = BindingResult::of(&case.plan, &case.graph, &case.inputs, None, &evaluator.host())?;
    assert_eq!(verify(&case.plan, &case.graph, &bound), Ok(()), "{}", case.plan.listing(&case.graph));
    breaks(&mut bound);
    Ok(verify(&case.plan, &case.graph, &bound))
}

#[test]
fn slots_have_what_is_read() -> Result<(), Error> {
    let case = chain()?;
    // Each value is put into the memory of the first one of its size, too early for some.
    let reused = check(&case, |bound| {
        let sizes: Vec<usize> = bound.plan.slots.iter().map(|slot| slot.len).collect();
        let first =
            |slot: u32| sizes.iter().position(|size| *size == sizes[slot as usize]).map_or(slot, |at| at as u32);
        bound.plan.steps.iter_mut().for_each(|step| step.target = first(step.target));
        for seen in bound.values.values_mut() {
            if let ValueOrigin::Slot(slot) = &mut seen.place {
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
    let mut g = TensorGraph::standard();
    let x = g.leaf("x", Scalar::Float64, &[40, 30])?;
    let y = g.leaf("y", Scalar::Float64, &[30])?;
    let sum = g.apply("math.add", &[x, y])?;
    let plan = Plan::of(&g, &[sum]);
    let inputs = vec![Tensor::new(&[40, 30], vec![1.0; 1200])?, Tensor::new(&[30], vec![1.0; 30])?];
    let case = Case { graph: g, plan, inputs };
    // The plan was bound to a transposed matrix.
    let turned = check(&case, |bound| {
        let layout = Layout::within(&[40, 30], [1, 40].as_slice().into(), 0);
        bound.values.insert(x, StridedView { place: ValueOrigin::Input(0), layout });
    })?;
    assert_eq!(turned, Err(BoundFlaw::Operand(sum.index())));
    let swapped = check(&case, |bound| {
        let [a, b] = [bound.values[&x].clone(), bound.values[&y].clone()];
        bound.values.insert(x, StridedView { place: b.place, ..a });
    })?;
    assert!(swapped.is_err(), "{swapped:?}");
    Ok(())
}

#[test]
fn steps_are_run_under_the_conditions_of_the_plan() -> Result<(), Error> {
    let mut g = TensorGraph::standard();
    let [c, d] = [g.leaf("c", Scalar::Boolean, &[])?, g.leaf("d", Scalar::Boolean, &[])?];
    let x = g.leaf("x", Scalar::Float64, &[4, 4])?;
    let gram = g.einsum("ik,jk->ij", &[x, x])?;
    let inner = g.apply("tensor.where", &[d, gram, x])?;
    let chosen = g.apply("tensor.where", &[c, inner, x])?;
    let plan = Plan::of(&g, &[chosen]);
    let truth = Tensor::new(&[], vec![true])?;
    let case = Case { graph: g, plan, inputs: vec![truth.clone(), truth, Tensor::new(&[4, 4], vec![1.0; 16])?] };
    let guarded = |bound: &mut BindingResult, breaks: fn(&mut BoundStep)| {
        bound.plan.steps.iter_mut().filter(|step| !step.guard.is_empty()).for_each(breaks);
    };
    let breaks: [fn(&mut BoundStep); 3] =
        [|step| step.guard[1].1 = false, |step| step.guard = [].into(), |step| step.guard.swap(0, 1)];
    for breaks in breaks {
        assert_eq!(check(&case, |bound| guarded(bound, breaks))?, Err(BoundFlaw::Guard(gram.index())));
    }
    Ok(())
}
