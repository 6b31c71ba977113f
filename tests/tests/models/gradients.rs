//! Gradients where they are delicate: `gradients.toml` lists them by hand for every operator with a derivative and for the operations on whole tensors,
//! which are taken from the registry, so that none is left out. Each is also tried in a branch that is not taken.

use cembra::{Backend, Model, Options, Scalar, Tensor};
use cembra_ops::Registry;
use cembra_tensor::TensorGraph;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    operator: Vec<Case>,
    number: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    /// The operators that the text is about.
    names: Vec<String>,
    text: String,
    /// The operands, and the derivative by each: `x` and `by_x`, `y` and `by_y`. What the script beside JAX reads is here too.
    #[serde(flatten)]
    values: BTreeMap<String, toml::Value>,
}

/// The operands that the derivatives are taken by.
const OPERANDS: [&str; 4] = ["x", "y", "z", "w"];

fn table() -> Table {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("gradients.toml");
    let text = std::fs::read_to_string(path).expect("a table of gradients");
    toml::from_str(&text).expect("a table")
}

/// Appends the numbers of nested lists; the extents of the innermost list are the last.
fn numbers(value: &toml::Value, extents: &mut Vec<usize>, found: &mut Vec<f64>, depth: usize) {
    match value {
        toml::Value::Array(of) => {
            if extents.len() == depth {
                extents.push(of.len());
            }
            of.iter().for_each(|of| numbers(of, extents, found, depth + 1));
        }
        toml::Value::Float(number) => found.push(*number),
        other => panic!("no number: {other}"),
    }
}

fn floats(value: &toml::Value) -> Tensor {
    let (mut extents, mut found) = (Vec::new(), Vec::new());
    numbers(value, &mut extents, &mut found, 0);
    Tensor::new(&extents, found).expect("a tensor")
}

fn truths(value: &toml::Value) -> Tensor {
    let truths: Vec<bool> =
        value.as_array().expect("a list").iter().map(|own| own.as_bool().expect("a truth")).collect();
    Tensor::new(&[truths.len()], truths).expect("a tensor")
}

impl Case {
    fn operands(&self) -> impl Iterator<Item = &'static str> {
        OPERANDS.into_iter().filter(|name| self.values.contains_key(*name))
    }

    /// The derivatives by all operands, in one list.
    fn expected(&self) -> Vec<(&'static str, Vec<f64>)> {
        let by = |name| floats(&self.values[&format!("by_{name}")]).to_vec::<f64>().expect("floats");
        self.operands().map(|name| (name, by(name))).collect()
    }

    /// A model of the derivatives of what the text makes, where `keep` holds; all are of the sum of `kept`.
    fn model(&self, kept: &str, keep: &str) -> String {
        let mut text = String::new();
        for name in self.operands() {
            let rank = floats(&self.values[name]).extents().len();
            text += &format!("input {name}: tensor[f64, {rank}]\n");
        }
        if self.values.contains_key("c") {
            text += "input c: tensor[bool, 1]\n";
        }
        text += &format!("input keep: {keep}\n");
        let defined = if self.text.contains("let n = ") { self.text.clone() } else { format!("let n = {}", self.text) };
        text += &defined.replace("; let ", "\nlet ");
        text += &format!("\nlet kept = {kept}\n");
        for name in self.operands() {
            text += &format!("output by_{name} = tensor.grad(kept, {name})\n");
        }
        text
    }

    /// The derivatives where these are kept, by all operands, in one list for each.
    fn gradients(&self, model: &str, keep: &Tensor, backend: Backend) -> Vec<Vec<f64>> {
        let options = Options::default().backend(backend);
        let executor = Model::parse(model)
            .and_then(|model| model.compile(&options))
            .unwrap_or_else(|error| panic!("{model}\n{error}"));
        let input = |name: &str| match name {
            "keep" => keep.clone(),
            "c" => truths(&self.values["c"]),
            name => floats(&self.values[name]),
        };
        let inputs: Vec<Tensor> = executor.inputs().iter().map(|field| input(&field.name)).collect();
        let mut session = executor.session();
        let outputs = session.run_tensors(&inputs).unwrap_or_else(|error| panic!("{model}\n{error}"));
        outputs.iter().map(|output| output.to_vec::<f64>().expect("floats")).collect()
    }

    /// How many derivatives were held against the table; those that differ are appended to `wrong`.
    fn check(
        &self,
        [kept, of]: [&str; 2],
        keep: &Tensor,
        is_kept: impl Fn(usize) -> bool,
        wrong: &mut Vec<String>,
    ) -> usize {
        let model = self.model(kept, of);
        let mut count = 0;
        for backend in [Backend::Native, Backend::Interpreter] {
            let made = self.gradients(&model, keep, backend);
            for ((name, expected), made) in self.expected().into_iter().zip(made) {
                assert_eq!(expected.len(), made.len(), "{model}");
                for (at, (expected, made)) in expected.into_iter().zip(made).enumerate() {
                    let expected = if is_kept(at) { expected } else { 0.0 };
                    let is_near = expected.is_finite() && (made - expected).abs() <= 1e-12 * expected.abs();
                    if !(made == expected || is_near || made.is_nan() && expected.is_nan()) {
                        let kept = if is_kept(at) { "" } else { ", not taken" };
                        wrong
                            .push(format!("{}{kept}: by {name}[{at}] {made}, not {expected} ({backend:?})", self.text));
                    }
                    count += 1;
                }
            }
        }
        count
    }
}

#[test]
fn gradients_are_those_of_the_table_and_zero_in_branches_that_are_not_taken() {
    let (table, mut wrong, mut count) = (table(), Vec::new(), 0);
    for case in &table.operator {
        let len = floats(&case.values["x"]).extents().iter().product::<usize>();
        let forms = ["tensor.sum(tensor.where(keep, n, 0.0))", "tensor[bool, 1]"];
        let kept: [fn(usize) -> bool; 3] = [|_| true, |_| false, |at| at % 2 == 0];
        for is_kept in kept {
            let keep = Tensor::new(&[len], (0..len).map(is_kept).collect()).expect("a tensor");
            count += case.check(forms, &keep, is_kept, &mut wrong);
        }
        let all = Tensor::new(&[len], vec![true; len]).expect("a tensor");
        count += case.check(["tensor.sum(n)", "tensor[bool, 1]"], &all, |_| true, &mut wrong);
    }
    for case in &table.number {
        for is_kept in [true, false] {
            let form = ["tensor.where(keep, n, 0.0)", "bool"];
            count += case.check(form, &Tensor::scalar(is_kept), |_| is_kept, &mut wrong);
        }
        count += case.check(["n", "bool"], &Tensor::scalar(true), |_| true, &mut wrong);
    }
    assert!(wrong.is_empty(), "{} of {count} derivatives:\n{}", wrong.len(), wrong.join("\n"));
    assert!(count > 2000, "{count}");
}

#[test]
fn the_table_has_every_operator_with_a_derivative() {
    let table = table();
    let listed: BTreeSet<&str> =
        table.operator.iter().chain(&table.number).flat_map(|case| case.names.iter().map(String::as_str)).collect();
    let mut absent = Vec::new();
    for (op, def) in Registry::standard().iter() {
        let mut graph = TensorGraph::standard();
        let mut leaf = |scalar| graph.leaf("", scalar, &[2]).expect("a leaf");
        let (truth, number) = (leaf(Scalar::Boolean), leaf(Scalar::Float64));
        let is_of_tensors = (1..=4).any(|count| {
            let mut operands = vec![number; count];
            let is_of_numbers = graph.map(op, &operands).is_ok();
            operands[0] = truth;
            is_of_numbers || (count > 1 && graph.map(op, &operands).is_ok())
        });
        if def.derivative.is_some() && is_of_tensors && !listed.contains(def.name) {
            absent.push(def.name);
        }
        // Labels, truth values, positions, and what the pages of tiles and arrays are about.
        const OTHERS: [&str; 9] = [
            "tensor._at",
            "tensor._bind",
            "tensor._assign",
            "tensor.argmax",
            "tensor.argmin",
            "tensor.any",
            "tensor.all",
            "tensor.block",
            "tensor.of_array",
        ];
        if def.typing.is_of_tensors()
            && !listed.contains(def.name)
            && !OTHERS.contains(&def.name)
            && def.name != "array.of_tensor"
        {
            absent.push(def.name);
        }
    }
    assert!(absent.is_empty(), "{absent:?}");
}
