//! The two ways to extend the compiler itself. An operator is compiled, once for each model, from a text that the model
//! holds: here a decision tree. And a rewrite in preparation, which sees every node of the graph, replaces calls of an
//! operator by what is cheaper: here trees that are small, by conditionals.
//!
//! Run it with `cargo run -p example-extension`. What it prints is asserted by its test, in both backends.

use cembra::explain::Stage;
use cembra::operators::{Extension, Id, Registry, Rewriter, UserOperator};
use cembra::{Error, Limits, Model, Options, ScalarValue, Value};
use std::io::Write;
use std::sync::Arc;

/// A decision tree over one number: `x < 3 ? 10 : 20`, written `3(10,20)`; branches may be trees.
#[derive(Debug)]
enum Tree {
    Leaf(f64),
    Split { at: f64, below: Box<Tree>, above: Box<Tree> },
}

impl Tree {
    /// Reads a tree. The text may come from a stranger: the depth is bounded, and what is wrong is said.
    fn parse(text: &str) -> Result<Tree, String> {
        let (tree, rest) = Tree::prefix(text, 50)?;
        if rest.is_empty() { Ok(tree) } else { Err(format!("`{rest}` is left over")) }
    }

    /// The tree that a text begins with, and what follows it.
    fn prefix(text: &str, depth: u32) -> Result<(Tree, &str), String> {
        let end = text.find(['(', ',', ')']).unwrap_or(text.len());
        let (number, rest) = text.split_at(end);
        let number: f64 = number.parse().map_err(|_| format!("`{number}` is not a number"))?;
        let Some(rest) = rest.strip_prefix('(') else { return Ok((Tree::Leaf(number), rest)) };
        let depth = depth.checked_sub(1).ok_or("more than 50 levels")?;
        let (below, rest) = Tree::prefix(rest, depth)?;
        let (above, rest) = Tree::prefix(rest.strip_prefix(',').ok_or("a `,` is missing")?, depth)?;
        let rest = rest.strip_prefix(')').ok_or("a `)` is missing")?;
        Ok((Tree::Split { at: number, below: below.into(), above: above.into() }, rest))
    }

    fn value(&self, x: f64) -> f64 {
        let mut tree = self;
        loop {
            match tree {
                Tree::Leaf(value) => return *value,
                Tree::Split { at, below, above } => tree = if x < *at { below } else { above },
            }
        }
    }
}

/// The operators of the language, and `forest.tree(TREE, x)`.
fn registry() -> Result<&'static Registry, Error> {
    let mut registry = Registry::standard().clone();
    registry.register(
        UserOperator::new("forest.tree")
            .params(&["tree", "x"])
            .summary("The value of a decision tree, written `split(below,above)`.")
            // Reading the text happens when a model is compiled. The closure that it gives lives as long as the model, is
            // shared by its sessions, and is all that an evaluation runs.
            .compiled(|text: &str| {
                let tree = Tree::parse(text)?;
                Ok::<_, String>(move |x: f64| tree.value(x))
            }),
    )?;
    Ok(registry.leak())
}

/// Replaces trees with one split by a conditional of the language, which machine code needs no call for.
#[derive(Debug)]
struct SmallTrees;

impl Extension for SmallTrees {
    fn transform(&self, rewriter: &mut Rewriter<'_>, node: Id) -> Option<Id> {
        let [tree, x] = *rewriter.matches(node, "forest.tree")? else { return None };
        let Some(ScalarValue::Text(text)) = rewriter.value(tree)?.as_scalar() else { return None };
        let Ok(Tree::Split { at, below, above }) = Tree::parse(text) else { return None };
        let (Tree::Leaf(below), Tree::Leaf(above)) = (*below, *above) else { return None };
        // Of an optional `x` the conditional is of another type than the call, because it sends a missing number above. Such
        // a replacement is not taken.
        let [at, below, above] = [at, below, above].map(|number| rewriter.literal(Value::from(number)));
        let is_below = rewriter.apply("core.less", &[x, at]).ok()?;
        rewriter.apply("core.where", &[is_below, below, above]).ok()
    }
}

/// Models that hold trees, each with an input `x`.
const MODELS: &[(&str, f64)] = &[
    ("input x: f64; forest.tree('3(10,20)', x)", 2.5),
    ("input x: f64; forest.tree('3(10,20)', x)", f64::NAN),
    ("input x: f64; forest.tree('3(1(5,7),20)', x) + forest.tree('0(100,200)', x)", 2.5),
    ("input x: f64; let t = '3(10,20)'; forest.tree(t, x) + forest.tree(t, missing[f64])", 2.5),
];

fn model(source: &str, registry: &'static Registry) -> Result<Model, Error> {
    Model::parse_with(source, registry, &Limits::default())
}

/// The value of a model, and how many calls of `forest.tree` its plan is left with.
fn answer(source: &str, x: f64, options: &Options, registry: &'static Registry) -> Result<(String, usize), Error> {
    let model = model(source, registry)?;
    let values = model.compile(options)?.session().evaluate(&[Value::from(x)])?;
    Ok((cembra::values::print_value(&values[0]), model.explain(options, Stage::Plan)?.matches("forest.tree").count()))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let registry = registry()?;
    let plain = Options::default().registry(registry);
    let extended = plain.clone().extension(Arc::new(SmallTrees));
    let mut out = std::io::stdout().lock();
    for (source, x) in MODELS {
        writeln!(out, "{source}, x = {x}")?;
        for (name, options) in [("compiled", &plain), ("rewritten", &extended)] {
            let (value, calls) = answer(source, *x, options, registry)?;
            writeln!(out, "  {name}: {value} with {calls} calls")?;
        }
    }
    // A text that is no tree is an error of compiling, at its place in the source.
    let error = model("input x: f64; forest.tree('3(10', x)", registry)?.compile(&plain).err();
    writeln!(out, "{}", error.map_or_else(String::new, |error| error.to_string()))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use cembra::Backend;

    #[test]
    fn trees_give_their_values_compiled_or_rewritten() {
        let registry = registry().expect("a new name");
        // Value, calls without the rewriter, calls with it.
        let expected = [("10.0f64", 1, 0), ("20.0f64", 1, 0), ("207.0f64", 2, 1), ("missing[f64]", 2, 1)];
        for backend in [Backend::Interpreter, Backend::Native] {
            let plain = Options::default().registry(registry).backend(backend);
            let extended = plain.clone().extension(Arc::new(SmallTrees));
            for ((source, x), (value, compiled, rewritten)) in MODELS.iter().zip(expected) {
                let answer = |options| answer(source, *x, options, registry).expect("it compiles");
                assert_eq!(answer(&plain), (value.to_owned(), compiled), "{source} {backend:?}");
                assert_eq!(answer(&extended), (value.to_owned(), rewritten), "{source} {backend:?}");
            }
        }
    }

    #[test]
    fn texts_that_are_no_trees_are_refused_where_they_stand() {
        let registry = registry().expect("a new name");
        for (tree, message) in [
            ("3(10", "forest.tree: a `,` is missing"),
            ("3(10,20", "forest.tree: a `)` is missing"),
            ("3(10,20))", "forest.tree: `)` is left over"),
            ("three(10,20)", "forest.tree: `three` is not a number"),
        ] {
            let source = format!("input x: f64; 1 + forest.tree('{tree}', x)");
            let model = model(&source, registry).expect("a model");
            let error = model.compile(&Options::default().registry(registry)).expect_err("no tree");
            assert_eq!((error.code(), error.to_string().as_str()), ("literal", message));
            assert_eq!(error.span().map(|span| span.text(&source)), Some(&source[18..]));
        }
        let deep = format!("{}0{}", "1(".repeat(60), ",0)".repeat(60));
        assert_eq!(Tree::parse(&deep).expect_err("too deep"), "more than 50 levels");
    }
}
