//! Tests of the plan verifier: plans that are broken on purpose, one for each flaw that it finds.

use super::*;
use crate::node::Reduction;
use cembra_runtime::Scalar;

/// A graph, its plan, and the nodes that tests name.
struct Case {
    graph: TensorGraph,
    plan: Plan,
    nodes: Vec<TensorNodeId>,
}

/// A graph with maps, views, a reduction, and two outputs: the sums of the rows of `exp(x.T + y)`, and their squares beside `y`.
fn sums() -> Result<Case, cembra_value::Error> {
    let mut g = TensorGraph::standard();
    let x = g.leaf("x", Scalar::Float64, &[6, 4])?;
    let y = g.leaf("y", Scalar::Float64, &[6])?;
    let turned = g.transpose(x, &[1, 0])?;
    let added = g.apply("math.add", &[turned, y])?;
    let exp = g.apply("math.exp", &[added])?;
    let sums = g.reduce(Reduction::Sum, exp, &[1])?;
    let column = g.reshape(sums, &[4, 1])?;
    let squares = g.apply("math.multiply", &[column, y])?;
    let plan = Plan::of(&g, &[sums, squares]);
    Ok(Case { graph: g, plan, nodes: vec![x, y, sums, squares] })
}

fn softmax() -> Result<Case, cembra_value::Error> {
    let mut g = TensorGraph::standard();
    let x = g.leaf("x", Scalar::Float64, &[300, 200])?;
    let softmax = g.softmax(x, 1)?;
    let plan = Plan::of(&g, &[softmax]);
    Ok(Case { graph: g, plan, nodes: vec![x, softmax] })
}

/// A graph with a sum and a maximum of one tensor, which share a loop.
fn shared() -> Result<Case, cembra_value::Error> {
    let mut g = TensorGraph::standard();
    let x = g.leaf("x", Scalar::Float64, &[30, 20])?;
    let [sum, most] = [g.reduce(Reduction::Sum, x, &[1])?, g.reduce(Reduction::Max, x, &[1])?];
    let plan = Plan::of(&g, &[sum, most]);
    Ok(Case { graph: g, plan, nodes: vec![x, sum, most] })
}

fn check(case: &Case, breaks: impl FnOnce(&mut Plan)) -> Result<(), PlanFlaw> {
    assert_eq!(verify(&case.graph, &case.plan), Ok(()), "{}", case.plan.listing(&case.graph));
    let mut plan = case.plan.clone();
    breaks(&mut plan);
    verify(&case.graph, &plan)
}

/// The step of a plan that makes a node.
fn step(plan: &mut Plan, node: TensorNodeId) -> &mut Step {
    plan.steps.iter_mut().find(|step| step.node == node).expect("a step")
}

fn reduced(plan: &mut Plan, node: TensorNodeId) -> &mut Region {
    match &mut step(plan, node).work {
        Work::Reduce { of, .. } => of,
        other => panic!("{other:?} is no reduction"),
    }
}

#[test]
fn values_are_there_when_they_are_read() -> Result<(), cembra_value::Error> {
    let case = sums()?;
    let [_, _, sums, squares] = case.nodes[..] else { unreachable!() };
    let missing = check(&case, |plan| plan.steps.retain(|step| step.node != sums));
    assert_eq!(missing, Err(PlanFlaw::Unmade(sums.index())));
    let late = check(&case, |plan| plan.steps.reverse());
    assert!(matches!(late, Err(PlanFlaw::Unmade(_))), "{late:?}");
    let twice = check(&case, |plan| {
        let again = step(plan, squares);
        again.last_uses.clear();
        let again = again.clone();
        plan.steps.push(again);
    });
    assert_eq!(twice, Err(PlanFlaw::MadeTwice(squares.index())));
    Ok(())
}

#[test]
fn values_are_not_dropped_before_they_are_read() -> Result<(), cembra_value::Error> {
    let case = sums()?;
    let [_, y, sums, squares] = case.nodes[..] else { unreachable!() };
    // The squares read a view of it, and it is an output.
    let early = check(&case, |plan| step(plan, sums).last_uses.push(sums));
    assert!(matches!(early, Err(PlanFlaw::Dropped(_))), "{early:?}");
    let output = check(&case, |plan| step(plan, squares).last_uses.push(sums));
    assert_eq!(output, Err(PlanFlaw::Dropped(sums.index())));
    let input = check(&case, |plan| step(plan, sums).last_uses.push(y));
    assert_eq!(input, Err(PlanFlaw::Dropped(y.index())));
    Ok(())
}

#[test]
fn steps_compute_what_the_graph_says() -> Result<(), cembra_value::Error> {
    let case = sums()?;
    let [x, _, sums, _] = case.nodes[..] else { unreachable!() };
    let registry = case.graph.registry();
    let other = registry.find("math.subtract").expect("an operator");
    let operator = check(&case, |plan| {
        let BodyStep::Apply(op, _) = &mut reduced(plan, sums).body.steps[0] else { panic!("no operator") };
        *op = other.into();
    });
    assert!(matches!(operator, Err(PlanFlaw::Computed(_))), "{operator:?}");
    let operands = check(&case, |plan| reduced(plan, sums).inputs.swap(0, 1));
    assert!(operands.is_err(), "{operands:?}");
    let axes = check(&case, |plan| {
        let Work::Reduce { axes, .. } = &mut step(plan, sums).work else { panic!("no reduction") };
        axes[0] = 0;
    });
    assert_eq!(axes, Err(PlanFlaw::Computed(sums.index())));
    let reduction = check(&case, |plan| {
        let Work::Reduce { reduction, .. } = &mut step(plan, sums).work else { panic!("no reduction") };
        *reduction = Reduction::Max;
    });
    assert_eq!(reduction, Err(PlanFlaw::Computed(sums.index())));
    let input_type = check(&case, |plan| reduced(plan, sums).body.inputs[0] = Scalar::Float32);
    assert!(matches!(input_type, Err(PlanFlaw::Type(_))), "{input_type:?}");
    // The matrix is not transposed: its second axis is longer than the space's.
    let view = check(&case, |plan| {
        let inputs = &mut reduced(plan, sums).inputs;
        let at = inputs.iter().position(|(node, _)| *node == x).expect("an input");
        inputs[at].1 = View::along(&[0, 1], &[6, 4]);
    });
    assert!(view.is_err(), "{view:?}");
    // Reading the first row for all rows is within the extents, but wrong.
    let shared = check(&case, |plan| {
        let inputs = &mut reduced(plan, sums).inputs;
        let at = inputs.iter().position(|(node, _)| *node == x).expect("an input");
        inputs[at].1 = View::along(&[1, 0], &[6, 1]);
    });
    assert!(matches!(shared, Err(PlanFlaw::Computed(_))), "{shared:?}");
    let rank = check(&case, |plan| {
        let inputs = &mut reduced(plan, sums).inputs;
        let at = inputs.iter().position(|(node, _)| *node == x).expect("an input");
        inputs[at].1 = View::along(&[1], &[6]);
    });
    assert_eq!(rank, Err(PlanFlaw::Outside(x.index())));
    Ok(())
}

#[test]
fn steps_over_rows_stay_in_their_rows() -> Result<(), cembra_value::Error> {
    let case = softmax()?;
    let [_, made] = case.nodes[..] else { unreachable!() };
    let deeper = check(&case, |plan| {
        let Work::Rows { depth, .. } = &mut step(plan, made).work else { panic!("no rows") };
        *depth += 1;
    });
    assert_eq!(deeper, Err(PlanFlaw::Rows(made.index())));
    let order = check(&case, |plan| {
        let Work::Rows { steps, .. } = &mut step(plan, made).work else { panic!("no rows") };
        steps.swap(0, 1);
    });
    assert!(order.is_err(), "{order:?}");
    Ok(())
}

#[test]
fn reductions_in_one_loop_are_over_the_same_axes() -> Result<(), cembra_value::Error> {
    let case = shared()?;
    let [_, _, most] = case.nodes[..] else { unreachable!() };
    let unlike = check(&case, |plan| {
        let Work::SharedReductions(steps) = &mut plan.steps[0].work else { panic!("no loop") };
        let Work::Reduce { axes, .. } = &mut steps[1].work else { panic!("no reduction") };
        axes[0] = 0;
    });
    assert_eq!(unlike, Err(PlanFlaw::Loop(most.index())));
    Ok(())
}

/// The conditional `if any(c) then gram else x`, where the operand of the product is in a branch of another conditional.
fn conditional() -> Result<Case, cembra_value::Error> {
    let mut g = TensorGraph::standard();
    let c = g.leaf("c", Scalar::Boolean, &[4])?;
    let d = g.leaf("d", Scalar::Boolean, &[])?;
    let x = g.leaf("x", Scalar::Float64, &[4, 4])?;
    let any = g.reduce(Reduction::Any, c, &[0])?;
    let sums = g.reduce(Reduction::Sum, x, &[0])?;
    let inner = g.apply("tensor.where", &[d, sums, x])?;
    let gram = g.einsum("ik,jk->ij", &[inner, x])?;
    let chosen = g.apply("tensor.where", &[any, gram, x])?;
    let plan = Plan::of(&g, &[chosen]);
    Ok(Case { graph: g, plan, nodes: vec![any, sums, gram, chosen, d] })
}

#[test]
fn steps_are_skipped_only_where_nothing_chosen_is_made_of_them() -> Result<(), cembra_value::Error> {
    let case = conditional()?;
    let [any, sums, gram, chosen, d] = case.nodes[..] else { unreachable!() };
    let guard = |plan: &Plan, node| plan.steps.iter().find(|step| step.node == node).map(|step| step.guard.clone());
    let holds = |node| Condition { node, holds: true };
    assert_eq!(guard(&case.plan, gram).as_deref(), Some(&[holds(any)][..]));
    assert_eq!(guard(&case.plan, sums).as_deref(), Some(&[holds(any), holds(d)][..]));
    let otherwise = check(&case, |plan| step(plan, gram).guard[0].holds = false);
    assert_eq!(otherwise, Err(PlanFlaw::Skipped(gram.index())));
    // The conditional itself is an output.
    let always = check(&case, |plan| step(plan, chosen).guard.push(holds(any)));
    assert_eq!(always, Err(PlanFlaw::Skipped(chosen.index())));
    let early = check(&case, |plan| {
        let at = plan.steps.iter().position(|step| step.node == any).expect("a step");
        let condition = plan.steps.remove(at);
        plan.steps.push(condition);
    });
    assert_eq!(early, Err(PlanFlaw::Unmade(any.index())));
    let number = check(&case, |plan| step(plan, gram).guard.push(holds(sums)));
    assert!(number.is_err(), "{number:?}");
    Ok(())
}
