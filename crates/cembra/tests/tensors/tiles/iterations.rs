//! Tests iterative solvers, written as statements, against the equations that define their results, such as `a x = b`.

use cembra::tensor::TensorErrorKind;
use cembra::tiles::{MOST_TILES, Options, Run, Screening, Shape, Stop, Tiled, Tiling, Tiling1, World};

/// Returns a symmetric matrix with a dominant diagonal, in tiles of different sizes. Tiles far from the diagonal are
/// absent.
fn band(at_diagonal: impl Fn(i64) -> f64) -> Tiled {
    let axis = Tiling1::new([-3, 4, 9, 9, 20, 37]).expect("ascending");
    let tiling = Tiling::new([&axis, &axis]).expect("few tiles");
    let dense = Shape::dense(&tiling, MOST_TILES).expect("few tiles");
    let element = |at: &[i64]| match at[0].abs_diff(at[1]) {
        0 => at_diagonal(at[0]),
        distance => 0.4 * (-(distance as f64)).exp(),
    };
    let band = Tiled::from_fn(&dense, element).expect("tiles");
    band.truncate(&Screening::threshold(1e-12)).expect("tiles")
}

fn run() -> Run {
    World::from_environment().expect("a world").evaluator(Options::default().threshold(1e-14))
}

/// Returns the largest magnitude of the elements in the result of a statement.
fn largest(run: &mut Run, text: &str, inputs: &[(&str, &Tiled)]) -> f64 {
    let made = run.statement(text, inputs.iter().copied()).expect("a value");
    run.number("tensor.max(abs(e))", [("e", &made)]).expect("a number")
}

const STOP: Stop = Stop { tolerance: 1e-9, most_steps: 60 };

#[test]
fn inverses_multiply_to_the_identity() {
    let (a, mut run) = (band(|at| 2.0 + (at as f64).cos()), run());
    let found = run.inverse(&a, STOP).expect("an inverse");
    assert!(found.steps > 3 && found.residual <= 1e-9, "{found:?}");
    let again = run.inverse(&found.value, STOP).expect("an inverse");
    assert!(largest(&mut run, r#"e("i,j") = a("i,j") - b("i,j")"#, &[("a", &a), ("b", &again.value)]) < 1e-7);
    let text = r#"e("i,j") = a("i,k") * x("k,j") - x("i,k") * a("k,j")"#;
    assert!(largest(&mut run, text, &[("a", &a), ("x", &found.value)]) < 1e-7);
}

#[test]
fn inverse_square_roots_squared_are_inverses() {
    let (a, mut run) = (band(|at| 2.0 + (at as f64).cos()), run());
    let root = run.inverse_square_root(&a, STOP).expect("a root").value;
    let inverse = run.inverse(&a, STOP).expect("an inverse").value;
    let text = r#"e("i,j") = z("i,k") * z("k,j") - x("i,j")"#;
    assert!(largest(&mut run, text, &[("z", &root), ("x", &inverse)]) < 1e-7);
}

#[test]
fn signs_are_their_own_inverses_and_count_levels() {
    // Of 40 levels the 20 with an even number are about 2, the others about -2.
    let (a, mut run) = (band(|at| if at % 2 == 0 { 2.0 } else { -2.0 }), run());
    let sign = run.sign(&a, STOP).expect("a sign").value;
    let trace = run.number(r#"s("i,j").trace()"#, [("s", &sign)]).expect("a number");
    assert!(trace.abs() < 1e-7, "{trace}");
    let text = r#"e("i,j") = s("i,k") * a("k,j") - a("i,k") * s("k,j")"#;
    assert!(largest(&mut run, text, &[("a", &a), ("s", &sign)]) < 1e-7);
}

#[test]
fn systems_are_solved() {
    let (a, mut run) = (band(|at| 2.0 + (at as f64).cos()), run());
    let line = Tiling::new([&a.tiling().axes()[0]]).expect("an axis");
    let b = Tiled::from_fn(&Shape::dense(&line, MOST_TILES).expect("few tiles"), |at| (at[0] as f64).sin());
    let b = b.expect("tiles");
    let found = run.conjugate_gradients(&a, &b, STOP).expect("a solution");
    assert!(found.steps > 3);
    let text = r#"e("i") = a("i,j") * x("j") - b("i")"#;
    assert!(largest(&mut run, text, &[("a", &a), ("x", &found.value), ("b", &b)]) < 1e-8);
    // Nothing is solved by nothing.
    let none = b.masked(&Shape::empty(&line)).expect("no tiles");
    let found = run.conjugate_gradients(&a, &none, STOP).expect("a solution");
    assert_eq!((found.steps, found.value.shape().len()), (0, 0));
}

#[test]
fn iterations_that_do_not_end_say_so() {
    let (a, mut run) = (band(|at| 2.0 + (at as f64).cos()), run());
    let few = run.inverse(&a, Stop { most_steps: 2, ..STOP }).unwrap_err();
    assert_eq!(few.tensor_kind(), Some(TensorErrorKind::Evaluation));
    assert!(few.to_string().contains("after 2 steps"), "{few}");
    // A matrix of zeros has no inverse: it is refused, not waited for.
    let zeros = a.masked(&Shape::empty(a.tiling())).expect("no tiles");
    assert!(run.inverse(&zeros, STOP).is_err());
    let other = Tiling1::blocked(40, 8).expect("a tiling");
    let unlike = Tiling::new([&a.tiling().axes()[0], &other]).expect("few tiles");
    let unlike = Tiled::from_fn(&Shape::dense(&unlike, MOST_TILES).expect("few tiles"), |_| 1.0).expect("tiles");
    let refused = run.sign(&unlike, STOP).unwrap_err();
    assert_eq!(refused.tensor_kind(), Some(TensorErrorKind::SizeMismatch));
}
