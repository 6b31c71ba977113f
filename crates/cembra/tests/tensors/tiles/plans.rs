//! Tests plans of models in tiles: a plan lists the steps of the evaluation. Also tests the errors for extents, shapes
//! and fractions of tiles that do not fit.

use super::most_bytes;
use cembra::tensor::{Tensor, TensorErrorKind};
use cembra::tiles::{
    Journal, MOST_TILES, Operand, Options, Run, Screening, Shape, Step, StepKind, TensorInformation, Tiled, Tiling,
    Tiling1,
};
use cembra::{Error, Executor, Model};

fn compiled(text: &str) -> Executor {
    Model::parse(text).and_then(|model| model.compile(&cembra::Options::default())).expect("a model")
}

fn run(options: Options) -> Run {
    Run::new(options, &cembra::Options::default())
}

/// Returns a tensor in which about a third of all tiles of 4 x 4 elements are zero.
fn tensor(extents: &[usize], seed: usize) -> Tensor {
    let count: usize = extents.iter().product();
    let width = extents.last().copied().unwrap_or(1);
    let element = |at: usize| {
        let (row, column) = (at / width / 4, at % width / 4);
        if (row * 5 + column * 7 + seed).is_multiple_of(3) { 0.0 } else { (at * 7 % 11) as f64 - 3.5 }
    };
    Tensor::new(extents, (0..count).map(element).collect()).expect("a tensor")
}

const TEXT: &str = r#"
    tile i, j, k, l = 4
    input a: tiled[f64, "i,k"], b: tiled[f64, "k,j"], v: tensor[f64, 1], by: f64
    let c("i,j") = by * a("i,k") * b("k,j") + math.sqrt(abs(a("i,k"))) * b("k,j")
    c("i,j") += a("i,k") * b("k,l") * b("j,l")
    output grown = exp(c * c) * c
    output sums = tensor.sum(c, 1)
    output most = tensor.max(c)
    output squared("") = v("p") * v("p")
    output transposed = tensor.transpose(b) + 1.0
"#;

/// The steps of a plan or an evaluation, or the kind and text of its error.
type Outcome = Result<Vec<Step>, (Option<TensorErrorKind>, String)>;

fn outcomes(text: &str, options: &Options, most: usize, inputs: &[(&str, Operand<'_>)]) -> (Outcome, Outcome) {
    let model = compiled(text);
    let journal = Journal::default();
    let run = run(options.clone()).run_options(&most_bytes(most)).journal(journal.clone());
    let failed = |error: Error| (error.tensor_kind(), format!("{error:?}"));
    let known = inputs.iter().map(|(name, operand)| (*name, TensorInformation::Operand(*operand)));
    let planned = run.tiled(&model).plan(known).map_err(failed);
    let made = run.tiled(&model).run(inputs.iter().copied()).map(|_| journal.steps()).map_err(failed);
    (planned, made)
}

#[test]
fn steps_are_those_of_the_evaluation() {
    let (a, b, v, by) = (tensor(&[23, 17], 1), tensor(&[17, 17], 2), tensor(&[5], 0), Tensor::scalar(0.5));
    let dense = [("a", Operand::Dense(&a)), ("b", (&b).into()), ("v", (&v).into()), ("by", (&by).into())];
    for (threshold, block_bytes) in [(0.0, 1 << 20), (1e-300, 0), (1e-300, 500)] {
        let options = Options::default().threshold(threshold).block_bytes(block_bytes);
        let (planned, made) = outcomes(TEXT, &options, usize::MAX, &dense);
        assert_eq!(planned, made);
        let steps = made.expect("values");
        assert!(steps.len() > 8 && steps.iter().any(|step| step.work == StepKind::Elements), "{steps:?}");
        // Zeros are tiles only where nothing is left out.
        assert_eq!(steps.iter().all(|step| step.tiles as f64 == step.of), threshold == 0.0);
        let most = steps.iter().map(|step| step.bytes + step.held_bytes).max().expect("steps");
        for bytes in (0..most + 100).step_by(most / 20) {
            let (planned, made) = outcomes(TEXT, &options, bytes, &dense);
            assert_eq!(planned, made, "{bytes}");
        }
        let (planned, made) = outcomes(TEXT, &options, most - 1, &dense);
        assert_eq!(planned, made);
        assert_eq!(made.map(|_| ()).expect_err("an error").0, Some(TensorErrorKind::Limit));
    }
    // Where nothing is known of norms all tiles are there.
    let (_, made) = outcomes(TEXT, &Options::default().threshold(0.0), usize::MAX, &dense);
    let known = [
        ("a", TensorInformation::Extents(&[23, 17])),
        ("b", (&b).into()),
        ("v", TensorInformation::Extents(&[5])),
        ("by", TensorInformation::Extents(&[])),
    ];
    let planned = run(Options::default().threshold(0.0)).tiled(&compiled(TEXT)).plan(known).expect("steps");
    assert_eq!(Ok(planned), made);
}

#[test]
fn shapes_are_enough() {
    let model =
        compiled("tile i, k = 10\ninput h: tiled[f32, \"i,k\"]\np(\"i,k\") = h(\"i,q\") * h(\"q,k\")\ntile q = 10");
    let axis = Tiling1::blocked(1_000_000, 10).expect("few tiles");
    let tiling = Tiling::new([&axis, &axis]).expect("few tiles");
    // A band of three tiles, of a grid of ten billion.
    let band =
        (0..100_000_u64).flat_map(|row| (row.saturating_sub(1)..(row + 2).min(100_000)).map(move |at| (row, at)));
    let norms = band.map(|(row, at)| (row * 100_000 + at, if row == at { 1.0 } else { 1e-4 }));
    let shape = Shape::of_norms(&tiling, norms, &Screening::threshold(0.0)).expect("a shape");
    let steps =
        |threshold: f64| run(Options::default().threshold(threshold)).tiled(&model).plan([("h", (&shape).into())]);
    let product = |steps: &[Step]| match steps {
        [.., Step { work: StepKind::Product { products, of, .. }, tiles, bytes, .. }] => {
            (*products, *of, *tiles, *bytes)
        }
        steps => panic!("{steps:?}"),
    };
    let all = product(&steps(0.0).expect("steps"));
    assert_eq!(all, (899_990, 1e15, 499_994, 499_994 * 400));
    // Neighbours of neighbours are estimated as 1e-8, times the square of ten elements.
    assert_eq!(product(&steps(2e-6).expect("steps")).2, 299_998);
    let part = TensorInformation::Part { extents: &[10_000, 10_000], part: 0.01, seed: 3 };
    let steps = run(Options::default()).tiled(&model).plan([("h", part)]).expect("steps");
    assert!(product(&steps).0.abs_diff(100_000) < 10_000, "{steps:?}");
}

#[test]
fn statements_have_plans_without_tiles() {
    let axis = Tiling1::blocked(23, 4).expect("a tiling");
    let tiling = Tiling::new([&axis, &axis]).expect("few tiles");
    let a = Tiled::from_tensor(&tensor(&[23, 23], 1), &tiling, &Screening::threshold(0.0)).expect("tiles");
    let text = r#"c("i,j") = a("i,k") * a("k,j") - a("i,j"); output norm = c("i,j").squared_norm()"#;
    let journal = Journal::default();
    let mut run = run(Options::default().threshold(0.0)).journal(journal.clone());
    let shape = Tiled::planned(a.shape(), a.scalar_type()).expect("a plan");
    let planned = run.statements_plan(text, [("a", &shape)]).expect("steps");
    assert!(journal.steps().is_empty() && planned.len() > 2, "{planned:?}");
    run.statements(text, [("a", &a)]).expect("tensors");
    assert_eq!((planned, run.texts_read()), (journal.steps(), 1));
    // A text is wrong or right as it is in evaluations.
    for wrong in ["a + b", "exp(a"] {
        let refused = run.statements_plan(wrong, [("a", &shape)]).expect_err("an error").to_string();
        assert_eq!(refused, run.statements(wrong, [("a", &a)]).expect_err("an error").to_string());
    }
}

#[test]
fn what_does_not_fit_is_refused_as_in_evaluations() {
    let text = "tile i = 4; tile k = [0, 2, 5]\ninput a: tiled[f64, \"i,k\"], b: tiled[f64, \"i\"]\nc(\"k\") = a(\"i,k\") * b(\"i\")";
    let model = compiled(text);
    let refused = |a: TensorInformation<'_>, b: TensorInformation<'_>| {
        let error = run(Options::default()).tiled(&model).plan([("a", a), ("b", b)]).expect_err("an error");
        (error.tensor_kind(), error.to_string())
    };
    let nine = TensorInformation::Extents(&[9]);
    let (kind, message) = refused(TensorInformation::Extents(&[9, 6]), nine);
    assert_eq!(kind, Some(TensorErrorKind::SizeMismatch));
    assert!(message.starts_with("the label `k` has 5 indices, but 6 in input `a`"), "{message}");
    assert_eq!(refused(TensorInformation::Extents(&[8, 5]), nine).0, Some(TensorErrorKind::SizeMismatch));
    assert_eq!(refused(TensorInformation::Extents(&[9]), nine).0, Some(TensorErrorKind::RankMismatch));
    assert_eq!(refused(TensorInformation::Extents(&[usize::MAX, 5]), nine).0, Some(TensorErrorKind::Limit));
    assert_eq!(
        refused(TensorInformation::Extents(&[1 << 50, 5]), TensorInformation::Extents(&[1 << 50])).0,
        Some(TensorErrorKind::Limit)
    );
    let part = |part: f64| TensorInformation::Part { extents: &[9, 5], part, seed: 0 };
    assert_eq!(refused(part(1.5), nine).0, Some(TensorErrorKind::Norm));
    let threes = Tiling::new([Tiling1::blocked(9, 3).expect("tiles")]).expect("a tiling");
    let shape = Shape::dense(&threes, MOST_TILES).expect("few tiles");
    let (kind, message) = refused(part(0.5), (&shape).into());
    assert_eq!(kind, Some(TensorErrorKind::SizeMismatch));
    assert!(message.contains("input `b` is declared with the tiling"), "{message}");
    let planned = Tiled::planned(&shape, cembra::Scalar::Float64).expect("a shape");
    assert_eq!(refused(part(0.5), (&planned).into()).0, Some(TensorErrorKind::SizeMismatch));
    let error = run(Options::default()).tiled(&model).plan([("b", nine)]).expect_err("an error");
    assert!(error.to_string().contains("no tensor is given for `a`"), "{error}");
    // Axes without elements have no tiles.
    let steps = run(Options::default())
        .tiled(&model)
        .plan([("a", TensorInformation::Extents(&[0, 5])), ("b", TensorInformation::Extents(&[0]))]);
    assert_eq!(steps.expect("steps").iter().map(|step| step.tiles).sum::<usize>(), 0);
    // Operations that tiles do not have are named with their place.
    let text = "tile i = 2; input a: tiled[f64, \"i\"]; 1.0 + tensor.reshape(a, (3, 3))";
    let error = run(Options::default()).tiled(&compiled(text)).plan([("a", nine)]).expect_err("an error");
    assert_eq!(error.span().map(|span| span.text(text)), Some("tensor.reshape(a, (3, 3))"));
    assert!(error.to_string().contains("tiles would be split"), "{error}");
}
