//! Compares the `where` pass with Arolla's dominator rule, on random graphs. By this rule, a node is in a branch if it
//! is the branch's root and has no other use, or if the root dominates it; all other nodes are evaluated before the
//! conditional. The test computes dominators by their definition: it removes the root, and finds the nodes that outputs
//! no longer reach.

use cembra_expr::{Builder, Expr, Program};
use cembra_prepare::{Id, Kind, Options, RegionId, RegionModel, TypedGraph, TypedModel, prepare};
use cembra_runtime::QType;
use std::collections::{BTreeMap, BTreeSet};

/// A branch of a conditional: its node, and 1 for the first branch or 2 for the second.
type Branch = (Id, usize);

fn is_operator(graph: &TypedGraph, node: Id) -> bool {
    matches!(graph.kind(node), Kind::Operator { .. } | Kind::Where { .. })
}

fn is_conditional(graph: &TypedGraph, node: Id) -> bool {
    matches!(graph.kind(node), Kind::Where { .. })
}

/// Returns the nodes that the outputs reach if the node `without` is removed from the graph.
fn reachable_without(model: &TypedModel, without: Option<Id>) -> BTreeSet<Id> {
    let mut found = BTreeSet::new();
    let mut stack: Vec<Id> = model.outputs.iter().map(|(_, id)| *id).collect();
    while let Some(node) = stack.pop() {
        if Some(node) != without && found.insert(node) {
            stack.extend(model.graph.operands(node));
        }
    }
    found
}

/// Returns the operators in each branch of each conditional, by the dominator rule.
fn by_dominators(model: &TypedModel) -> BTreeMap<Branch, BTreeSet<Id>> {
    let graph = &model.graph;
    let all = reachable_without(model, None);
    let mut uses: BTreeMap<Id, usize> = BTreeMap::new();
    for (_, output) in &model.outputs {
        *uses.entry(*output).or_default() += 1;
    }
    for operand in all.iter().flat_map(|node| graph.operands(*node)) {
        *uses.entry(*operand).or_default() += 1;
    }
    let mut branches = BTreeMap::new();
    for node in all.iter().filter(|node| is_conditional(graph, **node)) {
        for branch in [1, 2] {
            let root = graph.operands(*node)[branch];
            let mut inside = BTreeSet::new();
            // A conditional that uses one value for its condition and a branch, or for both branches, uses it twice.
            if uses[&root] == 1 {
                let others = reachable_without(model, Some(root));
                inside.extend(all.difference(&others).filter(|node| is_operator(graph, **node)));
            }
            branches.insert((*node, branch), inside);
        }
    }
    branches
}

/// Returns the innermost branch that contains each operator, by the dominator rule; `None` if no branch contains it.
fn expected(model: &TypedModel) -> BTreeMap<Id, Option<Branch>> {
    let branches = by_dominators(model);
    let operators = reachable_without(model, None).into_iter().filter(|node| is_operator(&model.graph, *node));
    operators
        .map(|node| {
            let around = branches.iter().filter(|(_, inside)| inside.contains(&node));
            (node, around.min_by_key(|(_, inside)| inside.len()).map(|(branch, _)| *branch))
        })
        .collect()
}

fn check(program: &Program, without: &[&str]) -> Counts {
    let options =
        Options { without: without.iter().chain(&["select"]).map(ToString::to_string).collect(), ..Options::default() };
    let prepared = prepare(program, &|_| None, &options, &mut |_, _| {}).expect("types");
    let shown = prepared.to_string();
    let RegionModel { model, regions } = prepared.placed().expect("every pass");
    let mut branch_of: BTreeMap<RegionId, Branch> = BTreeMap::new();
    for (node, [on, off]) in &regions.branches {
        branch_of.insert(*on, (*node, 1));
        branch_of.insert(*off, (*node, 2));
    }
    let expected = expected(&model);
    let mut counts = Counts::default();
    for (node, branch) in &expected {
        let region = regions.of_nodes[node.index()];
        let found = (region != RegionId::TOP).then(|| *branch_of.get(&region).expect("a region of a lazy conditional"));
        assert_eq!(found, *branch, "%{} of\n{shown}", node.index());
        counts.inside += usize::from(found.is_some());
        if is_conditional(&model.graph, *node) {
            // A conditional is lazy if there is something to skip, and its branches are regions inside its own.
            let lazy = expected.values().any(|inner| matches!(inner, Some((at, _)) if at == node));
            assert_eq!(regions.branches.contains_key(node), lazy, "%{} of\n{shown}", node.index());
            for inner in regions.branches.get(node).into_iter().flatten() {
                assert_eq!(regions.tree.parent(*inner), region);
            }
            *if lazy { &mut counts.lazy } else { &mut counts.eager } += 1;
            counts.nested += usize::from(lazy && found.is_some());
        }
    }
    counts
}

#[derive(Default, Debug)]
struct Counts {
    inside: usize,
    lazy: usize,
    eager: usize,
    nested: usize,
}

/// Makes a random program of numbers and masks over a few leaves. Most steps use recent values, because more operators
/// are in branches if few values are used again.
fn random_program(random: &mut fastrand::Rng) -> Program {
    let b = Builder::new();
    let mut numbers: Vec<Expr<'_>> = ["a", "b", "c"].map(|name| b.typed_leaf(name, QType::INT32)).into();
    let mut masks = vec![b.typed_leaf("m", QType::MASK)];
    let spread = random.usize(2..12);
    for step in 0..random.usize(3..60) {
        let last =
            |from: &[Expr<'_>], random: &mut fastrand::Rng| from.len() - 1 - random.usize(..from.len().min(spread));
        let (x, y) = (numbers[last(&numbers, random)], numbers[last(&numbers, random)]);
        let (m, n) = (masks[last(&masks, random)], masks[last(&masks, random)]);
        match random.u8(..10) {
            0..4 => {
                let condition = if random.bool() { m } else { x.lt(step as i32) };
                numbers.push(b.call("core.where", &[condition, x, y]));
            }
            4 => masks.push(b.call("core.where", &[m, n, x.gt(y)])),
            5 => masks.push(x.lt(y)),
            6 => numbers.push(x.floordiv(step as i32)),
            7 => numbers.push(-x),
            8 => numbers.push(x + y),
            _ => numbers.push(x * y - step as i32),
        }
    }
    b.output("main", numbers[numbers.len() - 1]);
    for at in 0..random.usize(..3) {
        let value = if random.bool() { numbers[random.usize(..numbers.len())] } else { masks[masks.len() - 1] };
        b.output(&format!("side{at}"), value);
    }
    b.build().expect("a program")
}

#[test]
fn regions_are_what_dominators_say() {
    let mut random = fastrand::Rng::with_seed(11);
    let mut sum = Counts::default();
    for _ in 0..3_000 {
        let program = random_program(&mut random);
        for without in [&[][..], &["fold", "optimise"]] {
            let counts = check(&program, without);
            sum.inside += counts.inside;
            sum.lazy += counts.lazy;
            sum.eager += counts.eager;
            sum.nested += counts.nested;
        }
    }
    // The generator makes enough of everything.
    assert!(sum.inside > 10_000 && sum.lazy > 5_000 && sum.eager > 5_000 && sum.nested > 1_000, "{sum:?}");
}
