//! Compares texts on tiled tensors, in random tiles, with the same texts on dense tensors.

use super::{Tilings, floats};
use cembra::tensor::Tensor;
use cembra::tiles::{Options, Run, Tiled, World};
use cembra::values::print_type;
use cembra::{Backend, Model, QType};
use std::collections::BTreeMap;

/// Returns tensors of random numbers between -1 and 1, by name.
fn tensors() -> BTreeMap<&'static str, Tensor> {
    let mut random = fastrand::Rng::with_seed(7);
    let mut tensor = |extents: &[usize]| {
        let elements = (0..extents.iter().product()).map(|_| random.f64() * 2.0 - 1.0).collect::<Vec<f64>>();
        Tensor::new(extents, elements).expect("as many elements")
    };
    let mut tensors = BTreeMap::from([
        ("a", tensor(&[5, 7])),
        ("b", tensor(&[7, 5])),
        ("c", tensor(&[5, 5])),
        ("d", tensor(&[7, 6, 5])),
        ("x", tensor(&[5])),
        ("y", tensor(&[7])),
        ("s", tensor(&[])),
        ("one", tensor(&[5, 1])),
    ]);
    let half: Vec<f32> = tensors["c"].to_vec::<f64>().expect("f64").into_iter().map(|x| x as f32).collect();
    tensors.insert("f", Tensor::new(&[5, 5], half).expect("as many elements"));
    tensors
}

/// Texts to evaluate, each with one or more outputs.
const TEXTS: &[&str] = &[
    r#"r("i,k") = a("i,j") * b("j,k")"#,
    r#"r("k,i") = a("i,j") * b("j,k") - 2.0 * c("k,i")"#,
    r#"r("i") = a("i,j") * b("j,k") * c("k,l") * x("l")"#,
    r#"r("m,i") = c("i,j") * c("j,k") * c("k,l") * a("l,m")"#,
    r#"r("i,m,k") = d("j,m,k") * a("i,j")"#,
    r#"r("i,j,k") = a("i,j") * c("i,k")"#,
    r#"r("j,i") = x("i") * y("j") * a("i,j")"#,
    r#"r("i,j") = exp(a("i,j")) / exp(x("i")) * y("j")"#,
    r#"c("i,j") += 0.25 * c("j,i") - x("i") * x("j")"#,
    r#"c("i,j") -= c("i,k") * c("k,j")"#,
    r#"c("i,j") *= -c("j,i")"#,
    r#"r("i,j") = (c("i,j") - c("j,i")) / 2.0"#,
    r#"r("i") = c("i,i")"#,
    r#"r("") = a("i,j") * b("j,i")"#,
    "output r = tensor.sum(a, 1)",
    "output r = tensor.sum(d, (0, 2), keep=true) + tensor.sum(d)",
    "output r = tensor.max(d, (0, 2))",
    "output r = tensor.min(a, 0)",
    "output r = tensor.product(c, 1)",
    "output r = tensor.transpose(d, (2, 0, 1)) * 3.0",
    "output r = tensor.slice(d, 0, 2, 6) - 0.5 * tensor.slice(d * d, 0, 2, 6)",
    "output r = where(c > 0.0, math.sqrt(abs(c)), c * x)",
    "output r = one + y",
    "output r = s * a + s",
    "output r = tensor.softmax(c)",
    "output r = f * c",
    "let t = exp(c) - 1.0; output p = t * t; output q = tensor.sum(t, 0) + x",
    r#"let t("i,j") = a("i,k") * b("k,j"); output p("i,j") = t("i,k") * t("k,j"); output q("i,j") = t("i,j") + t("j,i")"#,
    r#"output r = (a("i,j") * a("i,j")).sum()"#,
    r#"output r = c("i,j").trace()"#,
    r#"output r = (c("i,k") * c("k,j")).norm()"#,
    "output r = s + 2.5",
    "output r = a * 1e300 * 0.0",
];

/// Evaluates a text on dense tensors, and returns the outputs by name.
fn dense(text: &str, tensors: &BTreeMap<&'static str, Tensor>) -> BTreeMap<String, Tensor> {
    let declared = tensors.iter().map(|(name, tensor)| {
        let qtype = QType::Tensor(tensor.scalar_type(), tensor.extents().len() as u8);
        format!("input {name}: {}\n", print_type(&qtype))
    });
    let model = Model::parse(&(declared.collect::<String>() + text)).unwrap_or_else(|error| panic!("{text}: {error}"));
    let executor = model.compile(&cembra::Options::default().backend(Backend::Interpreter));
    let executor = executor.unwrap_or_else(|error| panic!("{text}: {error}"));
    let inputs: Vec<Tensor> = executor.inputs().iter().map(|field| tensors[&*field.name].clone()).collect();
    let made = executor.run_reference(&inputs).expect("values");
    executor.outputs().iter().map(|field| field.name.to_string()).zip(made).collect()
}

#[test]
fn texts_agree_with_dense_tensors_in_any_tiles() {
    let tensors = tensors();
    let interpreter = cembra::Options::default().backend(Backend::Interpreter);
    let mut runs = [
        World::from_environment().expect("a world").evaluator(Options::default().threshold(0.0)),
        Run::new(Options::default().threshold(0.0), &interpreter),
    ];
    for text in TEXTS {
        let expected = dense(text, &tensors);
        for seed in 0..8 {
            let mut tilings = Tilings::new(seed);
            let tiled: BTreeMap<&str, Tiled> =
                tensors.iter().map(|(name, tensor)| (*name, tilings.tiled(tensor))).collect();
            for run in &mut runs {
                let made = run.statements(text, tiled.iter().map(|(name, tiled)| (*name, tiled)));
                let made = made.unwrap_or_else(|error| panic!("{text}, seed {seed}: {error}"));
                assert!(made.keys().eq(expected.keys()), "{text}: {:?}", made.keys());
                for (name, expected) in &expected {
                    let found = made[name].to_tensor().expect("a dense tensor");
                    assert_eq!(found.extents(), expected.extents(), "{text}: {name}");
                    assert_eq!(found.scalar_type(), expected.scalar_type(), "{text}: {name}");
                    for (found, expected) in floats(&found).into_iter().zip(floats(expected)) {
                        let near = (found - expected).abs() <= 1e-12 * expected.abs().max(1.0);
                        assert!(near, "{text}, seed {seed}: {name} has {found} for {expected}");
                    }
                }
            }
        }
    }
}

#[test]
fn texts_are_read_once_for_tensors_of_the_same_extents() {
    let tensors = tensors();
    let mut run = World::from_environment().expect("a world").evaluator(Options::default());
    let [a, again] = [1, 2].map(|seed| Tilings::new(seed).tiled(&tensors["c"]));
    let other = Tilings::new(3).tiled(&tensors["f"]);
    let text = r#"r("i,j") = c("j,i")"#;
    for tiled in [&a, &again, &a] {
        let made = run.statement(text, [("c", tiled)]).expect("a transposition");
        assert_eq!(*made.tiling(), tiled.tiling().permuted(&[1, 0]).expect("two axes"));
    }
    assert_eq!(run.texts_read(), 1);
    // Another type is another reading, and the first one is kept.
    run.statement(text, [("c", &other)]).expect("a transposition");
    run.statement(text, [("c", &a)]).expect("a transposition");
    assert_eq!(run.texts_read(), 2);
    for at in 0..64 {
        run.statement(&format!("c + {at}.0"), [("c", &a)]).expect("a sum");
    }
    run.statement(text, [("c", &a)]).expect("a transposition");
    assert_eq!(run.texts_read(), 2 + 64 + 1);
}

#[test]
fn numbers_are_those_of_dense_tensors() {
    let tensors = tensors();
    let mut run = World::from_environment().expect("a world").evaluator(Options::default().threshold(1e-3));
    for text in [
        "tensor.sum(c * c)",
        r#"(c("i,j") * c("j,i")).sum()"#,
        r#"c("i,j").trace() * 1e-9"#,
        // Squares are below the threshold, and so is each of their tiles.
        "let e = 1e-5 * c; tensor.sum(e * e)",
        r#"1e-9 * (c("i,j") * c("i,j")).sum() + 1e-9"#,
        "tensor.max(c) - tensor.min(c)",
        "tensor.sum(f)",
    ] {
        let expected = floats(dense(text, &tensors).values().next().expect("an output"))[0];
        let mut tilings = Tilings::new(4);
        let (c, f) = (tilings.tiled(&tensors["c"]), tilings.tiled(&tensors["f"]));
        let found = run.number(text, [("c", &c), ("f", &f)]).expect("a number");
        // A number below the threshold is not left out.
        assert!((found - expected).abs() <= 1e-6 * expected.abs(), "{text}: {found} for {expected}");
        assert!(found != 0.0, "{text}");
    }
}
