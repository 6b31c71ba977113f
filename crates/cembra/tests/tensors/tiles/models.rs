//! Tests models whose text cuts tensors into tiles: their results, and the errors when they are compiled and when they
//! get data.

use super::floats;
use cembra::tensor::{Tensor, TensorErrorKind};
use cembra::tiles::{Operand, Options, Run, Screening, Tiled, Tiling, Tiling1};
use cembra::{Backend, Error, Executor, Model};
use std::collections::BTreeMap;

fn compiled(text: &str) -> Result<Executor, Error> {
    Model::parse(text)?.compile(&cembra::Options::default())
}

fn tensor(extents: &[usize]) -> Tensor {
    let count: usize = extents.iter().product();
    Tensor::new(extents, (0..count).map(|at| (at * 7 % 11) as f64 - 3.0).collect()).expect("a tensor")
}

fn evaluated(text: &str, inputs: &[(&str, &Tensor)]) -> Result<BTreeMap<String, Tiled>, Error> {
    let model = compiled(text)?;
    Run::new(Options::default(), &cembra::Options::default())
        .tiled(&model)
        .run(inputs.iter().map(|(name, tensor)| (*name, Operand::Dense(tensor))))
}

const TEXT: &str = r#"
    tile i, j = 4
    tile k = [-2, 0, 3, 3, 5]
    input a: tiled[f64, "i,k"], b: tiled[f64, "k,j"], v: tensor[f64, 1], by: f64
    c("i,j") = by * a("i,k") * b("k,j") + exp(a("i,k")) * b("k,j")
    c("i,j") += a("i,k") * b("k,j")
    output sums = tensor.sum(c, 1)
    output squared("") = v("p") * v("p")
    output transposed = tensor.transpose(b)
"#;

#[test]
fn values_are_those_of_dense_tensors_and_tiles_those_of_labels() {
    let (a, b, v, by) = (tensor(&[9, 7]), tensor(&[7, 6]), tensor(&[5]), Tensor::scalar(0.5));
    for backend in [Backend::Native, Backend::Interpreter] {
        let options = cembra::Options::default().backend(backend);
        let model = Model::parse(TEXT).expect("a model").compile(&options).expect("an executor");
        assert!(model.is_tiled());
        let run = Run::new(Options::default(), &options);
        let dense = [("a", Operand::Dense(&a)), ("b", (&b).into()), ("v", (&v).into()), ("by", (&by).into())];
        let made = run.tiled(&model).run(dense).expect("values");
        let mut session = model.session();
        let expected = session.run_tensors(&[a.clone(), b.clone(), v.clone(), by.clone()]).expect("values");
        for (field, dense) in model.outputs().iter().zip(expected) {
            let (tiled, dense) = (floats(&made[&*field.name].to_tensor().expect("memory")), floats(dense));
            let scale = dense.iter().fold(1.0_f64, |most, element| most.max(element.abs()));
            assert_eq!(tiled.len(), dense.len(), "{}", field.name);
            assert!(tiled.iter().zip(&dense).all(|(a, b)| (a - b).abs() <= 1e-13 * scale), "{}", field.name);
        }
        let axes = |name: &str| made[name].tiling().axes().to_vec();
        let fours = |extent| Tiling1::blocked(extent, 4).expect("tiles");
        assert_eq!(axes("c"), [fours(9), fours(6)]);
        assert_eq!(axes("sums"), [fours(9)]);
        assert_eq!(axes("transposed"), [fours(6), Tiling1::new([-2, 0, 3, 3, 5]).expect("tiles")]);
        // A tensor that is cut already is taken as it is, and gives the same bits.
        let tiling = Tiling::new([fours(9), Tiling1::new([-2, 0, 3, 3, 5]).expect("tiles")]).expect("a tiling");
        let cut = Tiled::from_tensor(&a, &tiling, &Screening::threshold(f64::EPSILON)).expect("tiles");
        let again = [("a", Operand::Tiled(&cut)), ("b", (&b).into()), ("v", (&v).into()), ("by", (&by).into())];
        let again = run.tiled(&model).run(again).expect("values");
        assert_eq!(again["c"].to_tensor().expect("memory"), made["c"].to_tensor().expect("memory"));
    }
}

#[test]
fn small_tiles_are_left_out_and_numbers_are_not() {
    let text = "tile i = 2\ninput x: tiled[f64, \"i\"], by: f64\ny(\"i\") = x(\"i\") * by";
    let model = compiled(text).expect("a model");
    let x = Tensor::new(&[6], vec![1.0, 0.0, 1e-9, 0.0, 0.0, 2.0]).expect("a tensor");
    let by = Tensor::scalar(1e-12);
    let run = Run::new(Options::default().threshold(1e-8), &cembra::Options::default());
    let made = run.tiled(&model).run([("x", Operand::Dense(&x)), ("by", Operand::Dense(&by))]).expect("values");
    assert_eq!(made["y"].shape().tiles(), [0; 0]);
    let by = Tensor::scalar(3.0);
    let made = run.tiled(&model).run([("x", Operand::Dense(&x)), ("by", Operand::Dense(&by))]).expect("values");
    assert_eq!(floats(&made["y"].to_tensor().expect("memory")), [3.0, 0.0, 0.0, 0.0, 0.0, 6.0]);
}

#[test]
fn labels_that_are_cut_otherwise_are_refused_when_the_model_is_compiled() {
    for (text, place, message) in [
        (
            "input a: tiled[f64, \"i\"]\ntile i = 4; tile p = 5\nb(\"p\") = a(\"p\")",
            "a(\"p\")",
            "`i` is cut in tiles of 4, and `p` is cut in tiles of 5",
        ),
        (
            "input a: tiled[f64, \"i\"]\ntile i = [0, 1, 3]\nb(\"p\") = a(\"p\")",
            "a(\"p\")",
            "`i` is cut at [0, 1, 3], and the axis of `p` is one tile",
        ),
        (
            "input a: tensor[f64, 2]\ntile j = 4\nb(\"i,j\") = a(\"i,j\")",
            "a(\"i,j\")",
            "the axis is one tile, and `j` is cut in tiles of 4",
        ),
        // What a line makes is cut as its labels are, and what is made of it element by element likewise.
        (
            "input a: tiled[f64, \"i\"]\ntile i, k = 4; tile p = 5\nlet b(\"k\") = a(\"k\")\nlet c = exp(b) + 1.0\nd(\"p\") = c(\"p\")",
            "c(\"p\")",
            "`k` is cut in tiles of 4, and `p` is cut in tiles of 5",
        ),
        (
            "input a: tiled[f64, \"i\"]\ntile i = 4; tile p = 5\na(\"i\") += a(\"i\")\nd(\"p\") = a(\"p\")",
            "a(\"p\")",
            "`i` is cut in tiles of 4, and `p` is cut in tiles of 5",
        ),
    ] {
        let error = compiled(text).expect_err(text);
        assert_eq!(error.tensor_kind(), Some(TensorErrorKind::SizeMismatch), "{text}: {error}");
        assert_eq!(error.span().map(|span| span.text(text)), Some(place), "{text}: {error}");
        assert!(error.to_string().contains(message), "{text}: {error}");
    }
    for text in [
        "input a: tiled[f64, \"i\"]\ntile i, p = 4\nb(\"p\") = a(\"p\")",
        "input a: tiled[f64, \"i\"]\ntile i = [0, 4]; tile p = [0, 4]\nb(\"p\") = a(\"p\")",
        "input a: tiled[f64, \"i,j\"]\ntile i = 3\nb(\"i,q\") = a(\"i,q\")",
        "input a: tensor[f64, 2]\nb(\"i,j\") = a(\"i,j\")",
    ] {
        compiled(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    }
}

#[test]
fn data_that_do_not_fit_the_cuts_are_refused() {
    let text = "tile i = 4; tile k = [0, 2, 5]\ninput a: tiled[f64, \"i,k\"], b: tiled[f64, \"i\"]\nc(\"k\") = a(\"i,k\") * b(\"i\")";
    let kind = |a: &[usize], b: &[usize]| {
        let error = evaluated(text, &[("a", &tensor(a)), ("b", &tensor(b))]).map(|_| ()).expect_err("an error");
        (error.tensor_kind(), error.to_string())
    };
    let (found, message) = kind(&[9, 5], &[8]);
    assert_eq!(found, Some(TensorErrorKind::SizeMismatch));
    assert!(message.starts_with("the label `i` has 9 indices, but 8 in input `b`"), "{message}");
    let (found, message) = kind(&[9, 6], &[9]);
    assert_eq!(found, Some(TensorErrorKind::SizeMismatch));
    assert!(message.starts_with("the label `k` has 5 indices, but 6 in input `a`"), "{message}");
    assert_eq!(kind(&[9, 5, 1], &[9]).0, Some(TensorErrorKind::RankMismatch));
    let error = evaluated(text, &[("a", &tensor(&[9, 5]))]).map(|_| ()).expect_err("an error");
    assert!(error.to_string().contains("no tensor is given for `b`"), "{error}");
    // Tiles of another size: the error says what to do.
    let model = compiled(text).expect("a model");
    let threes = Tiling::new([Tiling1::blocked(9, 3).expect("tiles")]).expect("a tiling");
    let cut = Tiled::from_tensor(&tensor(&[9]), &threes, &Screening::threshold(0.0)).expect("tiles");
    let a = tensor(&[9, 5]);
    let run = Run::new(Options::default(), &cembra::Options::default());
    let error =
        run.tiled(&model).run([("a", (&a).into()), ("b", Operand::Tiled(&cut))]).map(|_| ()).expect_err("an error");
    assert_eq!(error.tensor_kind(), Some(TensorErrorKind::SizeMismatch));
    assert!(format!("{error:?}").contains("retile") || error.diagnostics()[0].hints()[0].contains("retile"), "{error}");
    let fours = Tiling::new([Tiling1::blocked(9, 4).expect("tiles")]).expect("a tiling");
    let retiled = cut.retile(&fours, &Screening::threshold(0.0)).expect("tiles");
    assert!(run.tiled(&model).run([("a", (&a).into()), ("b", Operand::Tiled(&retiled))]).is_ok());
}

#[test]
fn texts_of_statements_cut_nothing() {
    let axis = Tiling1::blocked(4, 2).expect("tiles");
    let a = Tiled::from_tensor(&tensor(&[4]), &Tiling::new([axis]).expect("a tiling"), &Screening::threshold(0.0));
    let a = a.expect("tiles");
    let mut run = Run::new(Options::default(), &cembra::Options::default());
    let error = run.statement("tile i = 2; b(\"i\") = a(\"i\")", [("a", &a)]).map(|_| ()).expect_err("an error");
    assert!(error.to_string().contains("must not use `tile`"), "{error}");
}

/// A statement that changes a tensor repeats operands along the labels that they lack, and the tensor keeps its tiling.
#[test]
fn lines_that_change_a_tensor_in_tiles_repeat_what_lacks_its_labels() {
    let text = r#"
        tile i, j, k = 4
        input a: tiled[f64, "i,j"], b: tiled[f64, "i,j"], c: tiled[f64, "i,j"], e: tiled[f64, "i"], s: f64
        a("i,j") += e("j")
        b("i,j") = e("j") * s
        c("i,j") *= e("i")
        c("i,j") -= 1.0
        output d("i,k") = b("j,i") * a("j,k")"#;
    let (a, e, s) = (tensor(&[9, 9]), tensor(&[9]), Tensor::scalar(0.5));
    for backend in [Backend::Native, Backend::Interpreter] {
        let options = cembra::Options::default().backend(backend);
        let model = Model::parse(text).expect("a model").compile(&options).expect("an executor");
        let mut session = model.session();
        let given = [a.clone(), a.clone(), a.clone(), e.clone(), s.clone()];
        let dense = session.run_tensors(&given).expect("values").to_vec();
        let run = Run::new(Options::default(), &options);
        let given = [("a", &a), ("b", &a), ("c", &a), ("e", &e), ("s", &s)];
        let given = given.map(|(name, tensor)| (name, Operand::Dense(tensor)));
        let made = run.tiled(&model).run(given).expect("tiles");
        for (field, dense) in model.outputs().iter().zip(&dense) {
            assert_eq!(floats(&made[&*field.name].to_tensor().expect("memory")), floats(dense), "{}", field.name);
        }
        let fours = Tiling1::blocked(9, 4).expect("tiles");
        for name in ["a", "b", "c", "d"] {
            assert_eq!(made[name].tiling().axes(), [fours.clone(), fours.clone()], "{name}");
        }
    }
}

/// Sums of operands with different labels are evaluated in tiles too.
#[test]
fn addends_that_lack_labels_are_repeated_tile_by_tile() {
    let text = r#"
        tile i, j = 4
        input a: tiled[f64, "i,j"], e: tiled[f64, "i"], s: f64
        output shifted("i,j") = a("i,j") + e("i") + s
        output quotient("i,j") = a("i,j") / (e("i") + e("j") + 10.0)"#;
    let (a, e, s) = (tensor(&[9, 9]), tensor(&[9]), Tensor::scalar(0.5));
    let model = compiled(text).expect("a model");
    let mut session = model.session();
    let dense = session.run_tensors(&[a.clone(), e.clone(), s.clone()]).expect("values").to_vec();
    let made = evaluated(text, &[("a", &a), ("e", &e), ("s", &s)]).expect("tiles");
    for (field, dense) in model.outputs().iter().zip(&dense) {
        assert_eq!(floats(&made[&*field.name].to_tensor().expect("memory")), floats(dense), "{}", field.name);
    }
}
