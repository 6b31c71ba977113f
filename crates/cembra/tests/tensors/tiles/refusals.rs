//! Tests the errors of texts on tiled tensors, and their places in the text.

use super::most_bytes;
use cembra::tensor::TensorErrorKind;
use cembra::tiles::{MOST_TILES, Operand, Options, Shape, Stop, Tiled, Tiling, Tiling1, World};
use cembra::{Error, RunOptions};

fn dense(boundaries: &[&[i64]]) -> Tiled {
    let axes: Vec<Tiling1> =
        boundaries.iter().map(|own| Tiling1::new(own.iter().copied()).expect("ascending")).collect();
    let shape = Shape::dense(&Tiling::new(axes).expect("few tiles"), MOST_TILES).expect("few tiles");
    Tiled::from_fn(&shape, |at| at[0] as f64).expect("tiles")
}

/// Evaluates a text on the matrices `a` and `b` of 4 x 4, which have different tilings, and `c` of 4 x 3. Returns the
/// kind of its error, the message, and the text at the error's place.
fn refused(text: &str) -> (TensorErrorKind, String, String) {
    let (a, b, c) = (dense(&[&[0, 2, 4], &[0, 2, 4]]), dense(&[&[0, 1, 4], &[0, 2, 4]]), dense(&[&[0, 2, 4], &[0, 3]]));
    let run = World::from_environment().expect("a world").evaluator(Options::default());
    let mut run = run.run_options(&most_bytes(64 * 8));
    let error: Error =
        run.statement(text, [("a", &a), ("b", &b), ("c", &c)]).map(|made| panic!("{text} is {made:?}")).unwrap_err();
    let span = error.span().map_or("", |span| span.text(text));
    let message = error.message();
    (error.tensor_kind().unwrap_or_else(|| panic!("{text}: {error}")), message, span.to_owned())
}

/// A time limit holds for each evaluation. An iterative solver counts as one evaluation.
#[test]
fn evaluations_in_tiles_have_a_time_limit() {
    let (a, hour) = (dense(&[&[0, 2, 4], &[0, 2, 4]]), std::time::Duration::from_secs(3600));
    let world = World::from_environment().expect("a world");
    let text = r#"tile i, k, j = 2; input a: tiled[f64, "i,k"]; r("i,j") = a("i,k") * a("k,j")"#;
    let model =
        cembra::Model::parse(text).and_then(|model| model.compile(&cembra::Options::default())).expect("a model");
    let timed = |limit| RunOptions::new().time_limit(limit);
    let statement = r#"r("i,j") = a("i,k") * a("k,j")"#;
    for (limit, end) in [(hour, None), (std::time::Duration::ZERO, Some("deadline"))] {
        let mut run = world.evaluator(Options::default()).run_options(&timed(limit));
        // Options without a token or a limit leave the limit.
        let session = run.tiled(&model).run_options(&RunOptions::new().threads(2));
        for _ in 0..2 {
            let code = |made: Result<(), Error>| made.err().map(|error| error.code());
            assert_eq!(code(run.statement(statement, [("a", &a)]).map(drop)), end);
            assert_eq!(code(session.run([("a", Operand::Tiled(&a))]).map(drop)), end);
            let iterated = code(run.inverse(&a, Stop::default()).map(drop));
            assert_eq!(iterated == Some("deadline"), end.is_some(), "{iterated:?}");
        }
        // A token in the place of the limit.
        let token = cembra::Cancellation::new();
        let session = session.run_options(&RunOptions::new().cancellation(token.clone()));
        assert!(session.run([("a", Operand::Tiled(&a))]).is_ok());
        token.cancel();
        assert_eq!(session.run([("a", Operand::Tiled(&a))]).expect_err("cancelled").code(), "cancelled");
    }
}

#[test]
fn unlike_tilings_are_named() {
    for text in [
        r#"r("i,j") = a("i,k") * b("k,j")"#,
        r#"r("i,j") = a("i,j") + b("i,j")"#,
        r#"r("i,j") = exp(a("i,j")) + b("i,j")"#,
        r#"r("i") = b("i,i")"#,
    ] {
        let (kind, message, span) = refused(text);
        assert_eq!(kind, TensorErrorKind::SizeMismatch, "{text}");
        assert!(message.contains("[0, 1, 4]") && message.contains("[0, 2, 4]"), "{text}: {message}");
        assert!(!span.is_empty() && text.contains(&span), "{text}: `{span}`");
    }
}

#[test]
fn operations_that_are_not_for_tiles_are_named_at_their_place() {
    for (text, kind, message, place) in [
        ("-tensor.concat((a, c), 1)", TensorErrorKind::Tiling, "concat", "tensor.concat((a, c), 1)"),
        ("1.0 + tensor.slice(a, 0, 0, 4, 2)", TensorErrorKind::Tiling, "steps of 2", "tensor.slice(a, 0, 0, 4, 2)"),
        (
            "1.0 + tensor.reshape(a, (2, 8))",
            TensorErrorKind::Tiling,
            "tiles would be split",
            "tensor.reshape(a, (2, 8))",
        ),
        ("a > 1.0", TensorErrorKind::ElementType, "bool", "a > 1.0"),
    ] {
        let (found, said, span) = refused(text);
        assert_eq!(found, kind, "{text}: {said}");
        assert!(said.contains(message), "{text}: {said}");
        assert_eq!(span, place, "{text}");
    }
}

#[test]
fn limits_are_those_of_the_options() {
    // 16 elements of 8 bytes fit, and 256 do not.
    let (kind, message, _) = refused(r#"r("i,j,k,l") = a("i,j") * a("k,l")"#);
    assert_eq!(kind, TensorErrorKind::Limit);
    assert!(message.contains("2048 bytes") && message.contains("512"), "{message}");
}

#[test]
fn outputs_are_counted() {
    let a = dense(&[&[0, 2, 4]]);
    let mut run = World::from_environment().expect("a world").evaluator(Options::default());
    let two = run.statement("output x = a; output y = a", [("a", &a)]).unwrap_err();
    assert_eq!(two.tensor_kind(), Some(TensorErrorKind::OperandCount));
    assert!(two.to_string().contains("2 outputs"), "{two}");
    let axes = run.number("a + 1.0", [("a", &a)]).unwrap_err();
    assert_eq!(axes.tensor_kind(), Some(TensorErrorKind::RankMismatch));
    let missing = run.statement("a + b", [("a", &a)]).unwrap_err();
    assert!(missing.to_string().contains('b'), "{missing}");
    // What is wrong with labels is what it is for dense tensors.
    let label = run.statement(r#"r("i") = a("i") * a("j")"#, [("a", &a)]).unwrap_err();
    assert_eq!((label.code(), label.tensor_kind()), ("labels", Some(TensorErrorKind::FreeLabel)));
}
