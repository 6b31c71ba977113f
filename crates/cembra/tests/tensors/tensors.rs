//! Tests tensors: views, rejected operations, the rewriting of expressions and its cost, and statements.

use super::statements;
use crate::compiled::{kind_of, message_of, run};
use cembra::Error;
use cembra::errors::Span;
use cembra::operators::{Extension, Id};
use cembra::tensor::{
    CompileGraph, Element, Exactness, Layout, Reduction, RewriteRule, Slice, Tensor, TensorErrorKind, TensorGraph,
    TensorNodeId, same_bits,
};
use cembra::{Executor, Limits, Model, Options, Scalar};
use cembra_engine::Evaluator;
use cembra_tensor::{Expression, Operation, Rewriter, Rewritten};
use std::collections::BTreeMap;
use std::slice::from_ref;
use std::sync::Arc;

fn evaluator() -> Evaluator {
    Evaluator::new(&Options::default())
}

fn compiled(graph: &TensorGraph, output: TensorNodeId) -> Executor {
    graph.compile(&[output], &Options::default()).expect("an executor")
}

fn rewritten(graph: &TensorGraph, output: TensorNodeId) -> Rewritten {
    Rewriter::default().rewrite(graph, &[output], &evaluator().host()).expect("a graph")
}

/// Returns the number of nodes that the outputs need, without leaves and constants.
fn computed(rewritten: &Rewritten) -> usize {
    let needed = rewritten.graph.needed(&rewritten.outputs);
    let is_computed = |operation: &Operation| !matches!(operation, Operation::Leaf(_) | Operation::Constant(_));
    rewritten.graph.nodes().filter(|(id, node)| needed[id.index()] && is_computed(&node.operation)).count()
}

fn applied(rewritten: &Rewritten) -> Vec<(&str, usize)> {
    rewritten.applied.iter().map(|(name, count)| (&**name, *count)).collect()
}

fn values<T: Element>(graph: &TensorGraph, output: TensorNodeId, inputs: &[Tensor]) -> Vec<T> {
    let executor = compiled(graph, output);
    let made = executor.run_reference(inputs).expect("values");
    let rewritten = rewritten(graph, output);
    let same = evaluator().evaluate(&rewritten.graph, &rewritten.outputs, inputs).expect("values");
    assert!(same_bits(&made[0], &same[0]), "{:?}", rewritten.applied);
    let planned = run(&executor, inputs).expect("values");
    assert!(same_bits(&made[0], &planned[0]), "{planned:?} is not {made:?}");
    made[0].to_vec().expect("elements of the type")
}

#[test]
fn equal_terms_are_one_node_and_one_rewrite() {
    for scalar in [Scalar::Float32, Scalar::Float64, Scalar::Int32, Scalar::Int64] {
        let mut g = TensorGraph::standard();
        let a = g.leaf("a", scalar, &[3]).unwrap();
        let two = g.apply("math.add", &[a, a]).unwrap();
        assert_eq!((computed(&rewritten(&g, two)), applied(&rewritten(&g, two))), (1, vec![("add_self_to_2x", 1)]));
        let three = g.apply("math.add", &[two, a]).unwrap();
        assert_eq!((computed(&rewritten(&g, three)), applied(&rewritten(&g, three))), (1, vec![("add_multiple", 1)]));
        // What is computed is as much itself as what is given.
        let b = g.leaf("b", scalar, &[3]).unwrap();
        let [left, right] = [[a, b], [b, a]].map(|operands| g.apply("math.multiply", &operands).unwrap());
        let sum = g.apply("math.add", &[left, right]).unwrap();
        let made = rewritten(&g, sum);
        assert_eq!((computed(&made), applied(&made)), (2, vec![("add_self_to_2x", 1)]), "a * b + b * a");
    }
}

#[test]
fn types_that_are_mixed_are_cast_before_anything_is_rewritten() {
    let mut g = TensorGraph::standard();
    let a = g.leaf("a", Scalar::Int32, &[2]).unwrap();
    let b = g.leaf("b", Scalar::Float32, &[2]).unwrap();
    let [left, right] = [g.apply("math.add", &[a, b]).unwrap(), g.apply("math.add", &[b, a]).unwrap()];
    let sum = g.apply("math.add", &[left, right]).unwrap();
    assert_eq!(g.scalar(sum), Scalar::Float32);
    let made = rewritten(&g, sum);
    assert_eq!(applied(&made), [("add_self_to_2x", 1)]);
    let inputs = [Tensor::new(&[2], vec![1, -2]).unwrap(), Tensor::new(&[2], vec![0.5_f32, 0.25]).unwrap()];
    assert_eq!(values::<f32>(&g, sum, &inputs), [3.0, -3.5]);
}

#[test]
fn five_terms_fold_and_six_do_not() {
    let mut g = TensorGraph::standard();
    let a = g.leaf("a", Scalar::Float32, &[]).unwrap();
    let mut sum = a;
    for terms in 2..=6 {
        sum = g.apply("math.add", &[sum, a]).unwrap();
        assert_eq!(computed(&rewritten(&g, sum)), if terms < 6 { 1 } else { 2 }, "{terms} terms");
    }
    // Of a third of the patterns, six times a number is another one than the sum of six.
    let inputs = [Tensor::scalar(0.1_f32)];
    let in_order = (1..6).fold(0.1_f32, |sum, _| sum + 0.1);
    assert_eq!(values::<f32>(&g, sum, &inputs), [in_order]);
}

#[test]
fn inexact_rules_need_their_switch() {
    let mut g = TensorGraph::standard();
    let a = g.leaf("a", Scalar::Float64, &[2]).unwrap();
    let difference = g.apply("math.subtract", &[a, a]).unwrap();
    assert_eq!(computed(&rewritten(&g, difference)), 1);
    let relaxed = Rewriter::default().allow(Exactness::FiniteOnly);
    let made = relaxed.rewrite(&g, &[difference], &evaluator().host()).unwrap();
    assert_eq!(applied(&made), [("sub_self", 1)]);
    let found = evaluator().evaluate(&made.graph, &made.outputs, &[Tensor::new(&[2], vec![1.0, f64::NAN]).unwrap()]);
    assert_eq!(found.unwrap()[0].to_vec::<f64>().unwrap(), [0.0, 0.0]);
}

#[test]
fn users_rules_are_rules() {
    let mut g = TensorGraph::standard();
    let x = g.leaf("x", Scalar::Float64, &[2]).unwrap();
    let e = g.apply("exp", &[x]).unwrap();
    let logarithm = g.apply("log", &[e]).unwrap();
    let rule = RewriteRule::exact("log_of_exp", "log(exp(x))", "x");
    let made = Rewriter::default().rule(&rule, &g).unwrap().rewrite(&g, &[logarithm], &evaluator().host()).unwrap();
    assert_eq!((computed(&made), applied(&made)), (0, vec![("log_of_exp", 1)]));
    for (pattern, replacement, message) in [
        ("log(exp(x)", "x", "a rule expects `,` or `)` at ``"),
        ("log(x)", "y", "the replacement has `y`, which is not in the pattern"),
        ("lag(x)", "x", "there is no operator `lag`, at `x)`"),
        ("x", "x", "a pattern must be an operator with operands"),
        ("log(x) x", "x", "a rule has more than one expression at ` x`"),
    ] {
        let refused = Rewriter::default().rule(&RewriteRule::exact("wrong", pattern, replacement), &g).unwrap_err();
        assert_eq!((refused.tensor_kind(), refused.to_string().as_str()), (Some(TensorErrorKind::Syntax), message));
    }
}

#[test]
fn views_are_one_view_and_go_into_products() {
    let mut g = TensorGraph::standard();
    let a = g.leaf("a", Scalar::Float64, &[2, 3, 4]).unwrap();
    let there = g.transpose(a, &[2, 0, 1]).unwrap();
    let back = g.transpose(there, &[1, 2, 0]).unwrap();
    assert_eq!(rewritten(&g, back).outputs, rewritten(&g, a).outputs);
    let b = g.leaf("b", Scalar::Float64, &[4, 5]).unwrap();
    let product = g.einsum("kij,kl->lij", &[there, b]).unwrap();
    let order = g.transpose(product, &[1, 2, 0]).unwrap();
    let made = rewritten(&g, order);
    assert_eq!(computed(&made), 1, "{:?}", made.applied);
    let slices = |start, count| [Slice { start, step: 1, count }, Slice::all(3), Slice::all(4)];
    let first = g.slice(a, &slices(1, 1)).unwrap();
    let second = g.slice(first, &slices(0, 1)).unwrap();
    assert_eq!(second, first, "a slice of everything is nothing");
    let reversed = [Slice { start: 1, step: -1, count: 2 }, Slice::all(3), Slice::all(4)];
    let once = g.slice(a, &reversed).unwrap();
    let twice = g.slice(once, &reversed).unwrap();
    assert_eq!(computed(&rewritten(&g, twice)), 0);
}

#[test]
fn sums_do_not_notice_how_they_are_laid_out() {
    // Numbers of which every order of summation gives another result.
    let numbers: Vec<f64> =
        (0..4 * 400).map(|at| ((at * 7919 % 1601) as f64).sin() * 1e10_f64.powi(at % 3 - 1)).collect();
    let plain = Tensor::new(&[4, 400], numbers.clone()).unwrap();
    let mut moved = vec![0.0; numbers.len()];
    for row in 0..4 {
        for column in 0..400 {
            moved[column * 4 + row] = numbers[row * 400 + column];
        }
    }
    let layout = Layout::strided(&[4, 400], &[1, 4], 0, moved.len()).unwrap();
    let other = Tensor::from_parts(f64::data(moved), layout).unwrap();
    assert_eq!(plain, other);
    for axes in [&[0][..], &[1], &[0, 1]] {
        let mut g = TensorGraph::standard();
        let x = g.leaf("x", Scalar::Float64, &[4, 400]).unwrap();
        let sum = g.reduce(Reduction::Sum, x, axes).unwrap();
        assert_eq!(values::<f64>(&g, sum, from_ref(&plain)), values::<f64>(&g, sum, from_ref(&other)));
    }
    // Chains of 64 for the last axis, in order for the first.
    let mut g = TensorGraph::standard();
    let x = g.leaf("x", Scalar::Float64, &[4, 400]).unwrap();
    let (rows, columns) = (g.reduce(Reduction::Sum, x, &[1]).unwrap(), g.reduce(Reduction::Sum, x, &[0]).unwrap());
    let mut chains = [0.0; 64];
    numbers[..400].iter().enumerate().for_each(|(at, number)| chains[at % 64] += number);
    for width in [32, 16, 8, 4, 2, 1] {
        (0..width).for_each(|at| chains[at] += chains[at + width]);
    }
    assert_eq!(values::<f64>(&g, rows, from_ref(&plain))[0].to_bits(), chains[0].to_bits());
    let in_order = (0..4).fold(0.0, |sum, row| sum + numbers[row * 400 + 7]);
    assert_eq!(values::<f64>(&g, columns, &[plain])[7].to_bits(), in_order.to_bits());
}

#[test]
fn sums_keep_their_positions_when_axes_move() {
    // A transposition in front of a sum over both axes moves what is added to what: it stays where it is.
    let mut g = TensorGraph::standard();
    let x = g.leaf("x", Scalar::Float64, &[3, 50]).unwrap();
    let turned = g.transpose(x, &[1, 0]).unwrap();
    let all = g.reduce(Reduction::Sum, turned, &[0, 1]).unwrap();
    assert!(!rewritten(&g, all).applied.contains_key("reduce_axes"));
    let largest = g.reduce(Reduction::Max, turned, &[0, 1]).unwrap();
    assert!(rewritten(&g, largest).applied.contains_key("reduce_axes"));
    let numbers: Vec<f64> = (0..150).map(|at| 1.0 / f64::from(at + 1)).collect();
    values::<f64>(&g, all, &[Tensor::new(&[3, 50], numbers.clone()).unwrap()]);
    // The sum of one element begins with +0.
    let one = g.leaf("one", Scalar::Float64, &[1, 2]).unwrap();
    let sum = g.reduce(Reduction::Sum, one, &[0]).unwrap();
    let inputs = [Tensor::new(&[3, 50], numbers).unwrap(), Tensor::new(&[1, 2], vec![-0.0, 1.0]).unwrap()];
    assert_eq!(values::<f64>(&g, sum, &inputs)[0].to_bits(), 0);
}

#[test]
fn what_is_refused_says_why() {
    let mut g = TensorGraph::standard();
    let a = g.leaf("a", Scalar::Float64, &[2, 3]).unwrap();
    let truth = g.leaf("t", Scalar::Boolean, &[2, 3]).unwrap();
    let refused =
        |made: Result<TensorNodeId, Error>| made.map_err(|error| (kind_of(&error), message_of(&error))).unwrap_err();
    let b = g.leaf("b", Scalar::Float64, &[2, 2]).unwrap();
    assert_eq!(
        refused(g.apply("math.add", &[a, b])),
        (TensorErrorKind::Broadcast, "tensors of [2, 3] and [2, 2] do not broadcast".to_owned())
    );
    assert_eq!(refused(g.apply("math.ad", &[a, a])).0, TensorErrorKind::UnknownName);
    assert_eq!(refused(g.apply("core.less", &[a, a])).0, TensorErrorKind::ElementType);
    assert_eq!(refused(g.reduce(Reduction::Sum, truth, &[0])).0, TensorErrorKind::ElementType);
    assert_eq!(refused(g.reduce(Reduction::Any, a, &[0])).0, TensorErrorKind::ElementType);
    assert_eq!(refused(g.reduce(Reduction::Sum, a, &[2])).0, TensorErrorKind::Axis);
    assert_eq!(refused(g.reduce(Reduction::Sum, a, &[1, 1])).0, TensorErrorKind::Axis);
    assert_eq!(refused(g.transpose(a, &[0, 0])).0, TensorErrorKind::Axis);
    assert_eq!(refused(g.reshape(a, &[7])).0, TensorErrorKind::SizeMismatch);
    assert_eq!(refused(g.leaf("x", Scalar::Text, &[1])).0, TensorErrorKind::ElementType);
    assert_eq!(refused(g.leaf("x", Scalar::Float64, &[1; 17])).0, TensorErrorKind::RankMismatch);
    assert_eq!(refused(g.leaf("x", Scalar::Float64, &[usize::MAX, 2])).0, TensorErrorKind::Limit);
    assert_eq!(refused(g.constant(Scalar::Int32, 0.5)).0, TensorErrorKind::ElementType);
    assert_eq!(refused(g.gradients(a, &[a]).map(|made| made[0])).0, TensorErrorKind::NotDifferentiable);
    let quantiles = g.apply("math.t_distribution_inverse_cdf", &[a, a]);
    let whole = quantiles.and_then(|x| g.reduce(Reduction::Sum, x, &[0, 1])).unwrap();
    let message = "math.t_distribution_inverse_cdf has no derivative".to_owned();
    assert_eq!(refused(g.gradients(whole, &[a]).map(|made| made[0])), (TensorErrorKind::NotDifferentiable, message));
    let view = Tensor::scalar(1.0).broadcast_to(&[2]).unwrap();
    assert_eq!(view.clone().to_mut().unwrap_err().tensor_kind(), Some(TensorErrorKind::OverlappingTarget));
    assert_eq!(Tensor::new(&[2], vec![1.0]).unwrap_err().tensor_kind(), Some(TensorErrorKind::SizeMismatch));
    assert_eq!(view.get::<f32>(&[0]).unwrap_err().tensor_kind(), Some(TensorErrorKind::ElementType));
    assert_eq!(view.get::<f64>(&[2]).unwrap_err().tensor_kind(), Some(TensorErrorKind::Index));
    assert!(TensorGraph::standard().limited(1).leaf("a", Scalar::Int32, &[]).is_ok());
    let mut small = TensorGraph::standard().limited(1);
    small.leaf("a", Scalar::Int32, &[]).unwrap();
    assert_eq!(refused(small.leaf("b", Scalar::Int32, &[])).0, TensorErrorKind::Limit);
}

#[test]
fn an_element_that_fails_is_an_error() {
    let mut g = TensorGraph::standard();
    let a = g.leaf("a", Scalar::Int32, &[2]).unwrap();
    let quotient = g.apply("math.floordiv", &[a, a]).unwrap();
    let executor = compiled(&g, quotient);
    let inputs = [Tensor::new(&[2], vec![1, 0]).unwrap()];
    for made in [executor.run_reference(&inputs), run(&executor, &inputs)] {
        let failed = made.unwrap_err();
        assert_eq!(kind_of(&failed), TensorErrorKind::Evaluation);
        assert!(failed.to_string().contains("division by zero"), "{failed}");
    }
    let index = g.leaf("i", Scalar::Int64, &[1]).unwrap();
    let taken = g.take(a, index, 0).unwrap();
    let inputs = [Tensor::new(&[2], vec![1, 1]).unwrap(), Tensor::new(&[1], vec![-1_i64]).unwrap()];
    let executor = compiled(&g, taken);
    for made in [executor.run_reference(&inputs), run(&executor, &inputs)] {
        assert_eq!(kind_of(&made.unwrap_err()), TensorErrorKind::Index);
    }
}

#[test]
fn tensors_have_no_more_bytes_than_they_may() {
    let mut g = TensorGraph::standard();
    let x = g.leaf("x", Scalar::Float64, &[]).unwrap();
    let wide = g.broadcast(x, &[1 << 20, 1 << 20]).unwrap();
    let sum = g.apply("math.add", &[wide, wide]).unwrap();
    let evaluated = |node| evaluator().evaluate(&g, &[node], &[Tensor::scalar(1.0)]);
    assert_eq!(evaluated(wide).unwrap()[0].extents(), [1 << 20, 1 << 20], "a view takes none");
    assert_eq!(evaluated(sum).unwrap_err().tensor_kind(), Some(TensorErrorKind::Limit));
    // A view is no output if a copy of it takes too much.
    for node in [wide, sum] {
        let (executor, inputs) = (compiled(&g, node), [Tensor::scalar(1.0)]);
        for made in [executor.run_reference(&inputs), run(&executor, &inputs)] {
            assert_eq!(kind_of(&made.unwrap_err()), TensorErrorKind::Limit);
        }
    }
    // No product of extents overflows, also where one of them is 0.
    for extents in [[usize::MAX, 2, 0], [0, usize::MAX, usize::MAX], [1 << 40, 1 << 40, 1]] {
        assert_eq!(Tensor::zeros(Scalar::Float64, &extents).unwrap_err().tensor_kind(), Some(TensorErrorKind::Limit));
    }
    // As many as there may be, for which no system has memory.
    let error = Tensor::zeros(Scalar::Float64, &[1 << 57]).unwrap_err();
    assert_eq!(
        (error.tensor_kind(), message_of(&error).ends_with("the system has no memory")),
        (Some(TensorErrorKind::Limit), true)
    );
    assert_eq!(Tensor::zeros(Scalar::Float64, &[3, 0, 5]).unwrap().to_vec::<f64>().unwrap(), [0.0; 0]);
}

#[test]
fn long_chains_and_deep_parentheses_are_nothing_special() {
    let mut g = TensorGraph::standard();
    let x = g.leaf("x", Scalar::Float64, &[2]).unwrap();
    let mut chain = x;
    for _ in 0..100_000 {
        chain = g.apply("sin", &[chain]).unwrap();
    }
    let sum = g.reduce(Reduction::Sum, chain, &[0]).unwrap();
    let gradient = g.gradients(sum, &[x]).unwrap()[0];
    let made = rewritten(&g, gradient);
    assert!(made.graph.len() > 100_000);
    drop(g);
    let deep = format!("y(\"i\") = {}x(\"i\"){}", "(".repeat(100_000), ")".repeat(100_000));
    let minus = format!("y(\"i\") = {}x(\"i\")", "- ".repeat(100_001));
    let long = format!("y(\"i\") = x(\"i\"){}", " + x(\"i\")".repeat(100_000));
    let methods = format!("y(\"i\") = x(\"i\"){} * x(\"i\")", ".sum()".repeat(10_000));
    let limits = Limits::default().nesting(1 << 20).nodes(1 << 20).source_bytes(1 << 24);
    for (lines, expected) in [(deep, 1.0), (minus, -1.0), (long, 100_001.0), (methods, 1.0)] {
        let tensors = BTreeMap::from([("x".to_owned(), Tensor::new(&[1], vec![1.0]).unwrap())]);
        let model = Model::parse_within(&statements::model(&lines, &tensors), &limits).unwrap();
        let executor = model.compile(&Options::default().limits(limits)).unwrap();
        assert_eq!(run(&executor, &[tensors["x"].clone()]).unwrap()[0].to_vec::<f64>().unwrap(), [expected]);
    }
}

#[test]
fn statements_say_where_they_are_wrong() {
    let declared = "input a: tensor[f64, 1], b: tensor[f64, 1], m: tensor[f64, 2], n: tensor[f64, 2]\n";
    for (line, code, kind, place) in [
        ("c(\"i\") = ", "syntax", None, "the end"),
        ("c(\"i\") = a(\"i\"", "name", None, "a"),
        ("c(\"i\") = a(\"i\") b", "syntax", None, "b"),
        ("c(\"i\") = a(\"1\")", "labels", Some(TensorErrorKind::BadLabel), "a(\"1\")"),
        ("c(\"i\") = a(\"i\").size()", "unknown-name", None, "size"),
        ("c(\"i\") = (a(\"i\") + b(\"i\")", "bracket", None, "("),
        ("c(\"i\") = m(\"i,k\") * n(\"k,l\")", "labels", Some(TensorErrorKind::FreeLabel), "n(\"k,l\")"),
        ("c(\"i\") = a(\"i\") + m(\"i,j\")", "labels", Some(TensorErrorKind::ImplicitReduction), "m(\"i,j\")"),
        (
            "c(\"i\") = m(\"i,j\").trace()",
            "labels",
            Some(TensorErrorKind::UnboundTargetLabel),
            "(\"i\") = m(\"i,j\").trace()",
        ),
    ] {
        let text = format!("{declared}{line}");
        let error = Model::parse(&text).and_then(|model| model.compile(&Options::default())).unwrap_err();
        let span = error.span().expect("a place");
        let found = if span.start as usize >= text.trim_end().len() { "the end" } else { span.text(&text) };
        let found_kind = error.tensor_kind();
        assert_eq!((error.code(), found_kind, found), (code, kind, place), "{line}: {error}");
    }
    // By what is labelled elements are divided, too.
    let mut tensors = BTreeMap::from([("a".to_owned(), Tensor::new(&[2], vec![2.0, 4.0]).unwrap())]);
    statements::run("c(\"i\") = 1 / a(\"i\")", &mut tensors).unwrap();
    assert_eq!(tensors["c"].to_vec::<f64>().unwrap(), [0.5, 0.25]);
}

#[test]
fn numbers_are_made_of_whole_expressions() {
    let a = Tensor::new(&[2, 2], vec![1.0, -2.0, 3.0, 4.0]).unwrap();
    let mut tensors = BTreeMap::from([("a".to_owned(), a)]);
    for (expression, expected) in [
        ("a(\"i,j\").sum()", 6.0),
        ("a(\"i,j\").product()", -24.0),
        ("a(\"i,j\").min()", -2.0),
        ("a(\"i,j\").absmin()", 1.0),
        ("a(\"i,j\").absmax()", 4.0),
        ("a(\"i,j\").squared_norm()", 30.0),
        ("a(\"i,j\").trace()", 5.0),
        ("(a(\"i,j\") * a(\"j,i\")).sum()", 1.0 - 12.0 + 16.0),
        ("-(a(\"i,j\") * a(\"j,k\")).sum() / 2", -5.0),
        ("2 * (a(\"i,j\") + a(\"j,i\")).max() - 1", 15.0),
    ] {
        tensors.remove("s");
        statements::run(&format!("s(\"\") = {expression}"), &mut tensors).unwrap();
        assert_eq!(tensors["s"].to_vec::<f64>().unwrap(), [expected], "{expression}");
    }
}

#[test]
fn layouts_share_a_position_or_surely_none() {
    let layout = |extents: &[usize], strides: &[isize], offset| Layout::strided(extents, strides, offset, 100).unwrap();
    // Every other element from 0 on, and from 1 on; columns; halves; one element that both have; none.
    for (a, b, is_disjoint) in [
        (layout(&[10], &[2], 0), layout(&[10], &[2], 1), true),
        (layout(&[10], &[2], 0), layout(&[10], &[2], 4), false),
        (layout(&[10], &[2], 0), layout(&[5], &[3], 1), false),
        (layout(&[4], &[6], 0), layout(&[3], &[-4], 15), true),
        (layout(&[4], &[6], 0), layout(&[3], &[-4], 12), false),
        (layout(&[5], &[1], 0), layout(&[5], &[1], 5), true),
        (layout(&[5], &[1], 0), layout(&[5], &[1], 4), false),
        (layout(&[], &[], 7), layout(&[3], &[0], 7), false),
        (layout(&[0], &[1], 0), layout(&[5], &[1], 0), true),
    ] {
        assert_eq!([a.is_disjoint(&b), b.is_disjoint(&a)], [is_disjoint; 2], "{a:?} and {b:?}");
    }
}

#[test]
fn extremes_share_their_gradient_and_products_with_zeros_have_one() {
    for (reduction, elements, expected) in [
        (Reduction::Max, [3.0, 1.0, 3.0], [0.5, 0.0, 0.5]),
        (Reduction::Min, [2.0, 2.0, 2.0], [1.0 / 3.0; 3]),
        (Reduction::Product, [2.0, 3.0, 5.0], [15.0, 10.0, 6.0]),
        (Reduction::Product, [2.0, 0.0, 5.0], [0.0, 10.0, 0.0]),
        (Reduction::Product, [0.0, 3.0, 0.0], [0.0; 3]),
    ] {
        let mut g = TensorGraph::standard();
        let x = g.leaf("x", Scalar::Float64, &[3]).unwrap();
        let number = g.reduce(reduction, x, &[0]).unwrap();
        let gradient = g.gradients(number, &[x]).unwrap()[0];
        let inputs = [Tensor::new(&[3], elements.to_vec()).unwrap()];
        assert_eq!(values::<f64>(&g, gradient, &inputs), expected, "{reduction:?} of {elements:?}");
    }
}

#[test]
fn a_sum_that_is_turned_keeps_its_order() {
    // 200 terms whose sum in order is another one than that of 64 chains.
    let elements: Vec<f64> = (0..400).map(|at| 1.0 / f64::from(at + 1)).collect();
    for (extents, axis) in [([200, 2], 0), ([2, 200], 1)] {
        let mut g = TensorGraph::standard();
        let x = g.leaf("x", Scalar::Float64, &extents).unwrap();
        let turned = g.transpose(x, &[1, 0]).unwrap();
        let [plain, sum] =
            [(x, axis), (turned, 1 - axis)].map(|(x, axis)| g.reduce(Reduction::Sum, x, &[axis]).unwrap());
        let inputs = [Tensor::new(&extents, elements.clone()).unwrap()];
        assert_ne!(values::<f64>(&g, plain, &inputs), values::<f64>(&g, sum, &inputs), "{extents:?}");
    }
}

#[test]
fn windows_that_overlap_are_copied_to_be_reshaped() {
    let layout = Layout::strided(&[3, 2], &[1, 1], 0, 4).unwrap();
    let windows = Tensor::from_parts(i32::data(vec![1, 2, 3, 4]), layout).unwrap();
    assert_eq!(windows.reshaped(&[6]).unwrap().to_vec::<i32>().unwrap(), [1, 2, 2, 3, 3, 4]);
}

#[test]
fn elements_that_lie_together_are_reduced_as_those_that_do_not() {
    // Lines of more sums than are added to at a time, and sums of several blocks; with a rest each.
    for (extents, axis) in
        [(&[3, 5000][..], 0), (&[2, 3, 4500], 1), (&[2, 70_001], 1), (&[3, 100], 1), (&[70_001, 2], 0)]
    {
        let count: usize = extents.iter().product();
        let number = |at: usize| ((at * 7919 % 1601) as f64).sin() * 10_f64.powi((at % 7) as i32 - 3);
        let together = Tensor::new(extents, (0..count).map(number).collect()).expect("a tensor");
        // The same elements, of which neighbours along each axis lie apart.
        let reversed: Vec<usize> = (0..extents.len()).rev().collect();
        let apart = together.transposed(&reversed).and_then(|turned| turned.row_major().transposed(&reversed));
        let apart = apart.expect("a view");
        assert_ne!(together.layout(), apart.layout());
        for reduction in [Reduction::Sum, Reduction::Product, Reduction::Max, Reduction::Min] {
            let mut g = TensorGraph::standard();
            let x = g.leaf("x", Scalar::Float64, extents).expect("a leaf");
            let made = g.reduce(reduction, x, &[axis]).expect("a node");
            let executor = compiled(&g, made);
            let [a, b] = [&together, &apart].map(|x| executor.run_reference(from_ref(x)).expect("a value").remove(0));
            assert!(same_bits(&a, &b), "{reduction:?} of {extents:?} over {axis}");
        }
    }
}

#[test]
fn slices_have_steps_and_their_strides_lead_to_elements() {
    let x = Tensor::new(&[2, 3], vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0]).unwrap();
    let flat = Slice { start: 1, step: 0, count: 1 };
    assert_eq!(x.sliced(&[flat, Slice::all(3)]).unwrap_err().tensor_kind(), Some(TensorErrorKind::Index));
    let mut g = TensorGraph::standard();
    let leaf = g.leaf("x", Scalar::Float64, &[3]).unwrap();
    for count in [0, 1, 3] {
        let error = g.slice(leaf, &[Slice { start: 0, step: 0, count }]).unwrap_err();
        assert_eq!(error.tensor_kind(), Some(TensorErrorKind::Index), "{count}");
    }
    // One index has no next one, however far it would be.
    let last = x.sliced(&[Slice { start: 1, step: isize::MAX, count: 1 }, Slice::all(3)]).unwrap();
    assert_eq!(last.to_vec::<f64>().unwrap(), [4.0, 5.0, 6.0]);
    let none = Layout::strided(&[0, 5], &[1, isize::MAX], 0, 0).unwrap();
    let none = none.sliced(&[Slice::all(0), Slice { start: 3, step: 1, count: 1 }]).unwrap();
    assert_eq!(none.extents(), [0, 1]);
}

#[test]
fn products_of_more_terms_than_can_be_counted_are_refused_where_they_are_gone_through() {
    let mut g = TensorGraph::standard();
    let x = g.leaf("x", Scalar::Float64, &[]).unwrap();
    let a = g.broadcast(x, &[1 << 16]).unwrap();
    let all = g.einsum("i,j,k,l->", &[a; 4]).unwrap();
    let inputs = [Tensor::scalar(1.0)];
    let executor = compiled(&g, all);
    assert_eq!(kind_of(&executor.run_reference(&inputs).unwrap_err()), TensorErrorKind::Limit);
    let read = executor.reader(0, &inputs).and_then(|reader| reader.value(&[]));
    assert_eq!(kind_of(&read.unwrap_err()), TensorErrorKind::Limit);
    // Each sum by itself can be had.
    assert_eq!(run(&executor, &inputs).unwrap()[0].to_vec::<f64>().unwrap(), [(2.0_f64).powi(64)]);
    // As many as there are numbers, and none.
    let none = g.leaf("none", Scalar::Float64, &[0]).unwrap();
    let no_terms = g.einsum("i,j,k,l,m->", &[a, a, a, none, none]).unwrap();
    let inputs = [Tensor::scalar(1.0), Tensor::zeros(Scalar::Float64, &[0]).unwrap()];
    assert_eq!(compiled(&g, no_terms).run_reference(&inputs).unwrap()[0].to_vec::<f64>().unwrap(), [0.0]);
}

#[test]
fn what_is_broadcast_to_nothing_cannot_fail() {
    let mut g = TensorGraph::standard();
    let [x, y] = ["x", "y"].map(|name| g.leaf(name, Scalar::Int64, &[1]).unwrap());
    let [x, y] = [x, y].map(|leaf| g.broadcast(leaf, &[0]).unwrap());
    let quotient = g.apply("math.floordiv", &[x, y]).unwrap();
    let inputs = [Tensor::new(&[1], vec![1_i64]).unwrap(), Tensor::new(&[1], vec![0_i64]).unwrap()];
    assert!(values::<i64>(&g, quotient, &inputs).is_empty());
}

#[test]
fn parts_are_of_one_expression() {
    let mut g = TensorGraph::standard();
    let x = g.leaf("x", Scalar::Float64, &[2]).unwrap();
    let here = Span::default();
    let mut other = Expression::new("i", here).unwrap();
    let mut far = other.tensor(x, "i", here).unwrap();
    for _ in 0..3 {
        far = other.negated(far, here).unwrap();
    }
    let mut e = Expression::new("i", here).unwrap();
    let own = e.tensor(x, "i", here).unwrap();
    assert_eq!(e.quotient(own, far, here).unwrap_err().tensor_kind(), Some(TensorErrorKind::UnknownName));
}

/// A user-defined rewrite that replaces the exponential by the square root.
#[derive(Debug)]
struct RootForExponential;

impl Extension for RootForExponential {
    fn transform(&self, rewriter: &mut cembra::operators::Rewriter<'_>, node: Id) -> Option<Id> {
        let operands = rewriter.matches(node, "math.exp")?.to_vec();
        rewriter.apply("math.sqrt", &operands).ok()
    }
}

#[test]
fn rewrites_of_users_reach_expressions_of_elements() {
    let mut g = TensorGraph::standard();
    let x = g.leaf("x", Scalar::Float64, &[3]).expect("a leaf");
    let exponential = g.apply("math.exp", &[x]).expect("a node");
    let double = g.apply("math.add", &[exponential, exponential]).expect("a node");
    let input = [Tensor::new(&[3], vec![0.0, 0.25, 4.0]).expect("a tensor")];
    let on = |options: &Options| -> Vec<f64> {
        let executor = g.compile(&[double], options).expect("an executor");
        let values = [executor.run_reference(&input), run(&executor, &input)];
        let [one, other] = values.map(|values| values.expect("values")[0].to_vec::<f64>().expect("floats"));
        assert_eq!(one, other);
        one
    };
    assert_eq!(on(&Options::default().extension(Arc::new(RootForExponential))), [0.0, 1.0, 4.0]);
    assert_eq!(on(&Options::default())[0], 2.0);
}
