//! Tests which tiles of results are present: those that follow from the operands' tiles, the order of products, and
//! absent tiles in expressions per element.

use cembra::tensor::Tensor;
use cembra::tiles::{Options, Screening, Shape, Tiled, Tiling, Tiling1, World};

/// Returns the tiling of a square matrix with `tiles` tiles of two elements along each axis.
fn grid(tiles: u64) -> Tiling {
    let axis = Tiling1::blocked(2 * tiles, 2).expect("few tiles");
    Tiling::new([&axis, &axis]).expect("few tiles")
}

/// Returns a tensor in which the tiles `tiles` are present, with all their elements `element`.
fn filled(tiling: &Tiling, tiles: &[u64], element: f64) -> Tiled {
    let norms = tiles.iter().map(|tile| (*tile, f64::INFINITY));
    let shape = Shape::of_norms(tiling, norms, &Screening::threshold(0.0)).expect("a shape");
    Tiled::from_fn(&shape, |_| element).expect("tiles")
}

fn made(text: &str, inputs: &[(&str, &Tiled)]) -> Tiled {
    let mut run = World::from_environment().expect("a world").evaluator(Options::default().threshold(1e-9));
    run.statement(text, inputs.iter().copied()).unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[test]
fn expressions_of_elements_have_the_tiles_that_zeros_leave() {
    let tiling = grid(2);
    let (a, b, c) = (filled(&tiling, &[0, 1], 2.0), filled(&tiling, &[1, 2], 3.0), filled(&tiling, &[0], 5.0));
    let inputs = [("a", &a), ("b", &b), ("c", &c)];
    for (text, tiles, elements) in [
        // Unions, where zeros make zero.
        ("a + b", &[0, 1, 2][..], &[2.0, 5.0, 3.0][..]),
        ("abs(a - b) + math.sqrt(c)", &[0, 1, 2], &[2.0 + 5.0_f64.sqrt(), 1.0, 3.0]),
        ("where(a > 0.0, -a, b)", &[0, 1, 2], &[-2.0, -2.0, 3.0]),
        // Intersections of products, within sums of others.
        ("a * b", &[1], &[6.0]),
        ("exp(a) * b * 0.5", &[1, 2], &[1.5 * 2.0_f64.exp(), 1.5]),
        ("exp(a * b) - 1.0", &[1], &[6.0_f64.exp() - 1.0]),
        ("a * b + c", &[0, 1], &[5.0, 6.0]),
        // All tiles, where zeros make something else.
        ("exp(a)", &[0, 1, 2, 3], &[2.0_f64.exp(), 2.0_f64.exp(), 1.0, 1.0]),
        ("a + 1.0", &[0, 1, 2, 3], &[3.0, 3.0, 1.0, 1.0]),
        ("(a + 1.0) * b", &[1, 2], &[9.0, 3.0]),
        ("a * 0.0 + 2.0", &[0, 1, 2, 3], &[2.0, 2.0, 2.0, 2.0]),
    ] {
        let found = made(text, &inputs);
        assert_eq!(found.shape().tiles(), tiles, "{text}");
        for ((_, tile), expected) in found.tiles().map(|tile| tile.expect("a tile")).zip(elements) {
            let elements = tile.elements::<f64>();
            let near = |found: &f64| (found - expected).abs() <= 1e-14 * expected.abs();
            assert!(elements.len() == 4 && elements.iter().all(near), "{text}: {elements:?} for {expected}");
        }
    }
}

#[test]
fn an_absent_tile_times_infinity_is_zero() {
    let tiling = grid(2);
    let (a, b, c) = (filled(&tiling, &[0], 1.0), filled(&tiling, &[0, 1], f64::INFINITY), filled(&tiling, &[1], 4.0));
    let found = made("a * b + c", &[("a", &a), ("b", &b), ("c", &c)]);
    assert_eq!(found.get::<f64>(&[0, 0]).expect("an element"), f64::INFINITY);
    assert_eq!(found.get::<f64>(&[0, 2]).expect("an element"), 4.0);
    // Where both are present elements are multiplied as they are.
    let zeros = filled(&tiling, &[0], 0.0);
    let found = made("z * b + c", &[("z", &zeros), ("b", &b), ("c", &c)]);
    assert!(found.get::<f64>(&[0, 0]).expect("an element").is_nan());
}

#[test]
fn estimates_leave_tiles_of_expressions_out() {
    let tiling = grid(2);
    let (a, b) = (filled(&tiling, &[0, 1], 1e-6), filled(&tiling, &[1, 2], 1e-6));
    // Of `a * b + b` tile 2 is that of `b`; of `a * b * 0.5` nothing is left, as 1e-12 is below the threshold.
    assert_eq!(made("a * b + b", &[("a", &a), ("b", &b)]).shape().tiles(), [1, 2]);
    assert!(made("a * b * 0.5", &[("a", &a), ("b", &b)]).shape().is_empty());
    // Nothing is known of an exponential.
    assert_eq!(made("(exp(a) - 1.0) * b", &[("a", &a), ("b", &b)]).shape().tiles(), [1]);
}

#[test]
fn tensors_with_fewer_axes_leave_the_tiles_of_others() {
    let (tiling, axis) = (grid(3), Tiling1::blocked(6, 2).expect("few tiles"));
    let line = Tiling::new([&axis]).expect("few tiles");
    let a = filled(&tiling, &[0, 4, 5], 2.0);
    let x = Tiled::from_fn(&Shape::of_norms(&line, [(1, 1.0)], &Screening::threshold(0.0)).expect("a shape"), |_| 3.0);
    let x = x.expect("a line");
    let inputs = [("a", &a), ("x", &x)];
    for (text, tiles) in [
        (r#"r("i,j") = a("i,j") * x("i")"#, &[4, 5][..]),
        (r#"r("i,j") = a("i,j") * x("j")"#, &[4]),
        (r#"r("j,i") = a("i,j") * x("i")"#, &[4, 7]),
        (r#"r("i,j") = x("i") * x("j")"#, &[4]),
        (r#"r("i") = a("i,j") * x("j")"#, &[1]),
        ("a + x", &[0, 1, 4, 5, 7]),
        ("tensor.sum(a, 1)", &[0, 1]),
        ("tensor.max(-a, 0)", &[]),
    ] {
        let found = made(text, &inputs).truncate(&Screening::threshold(1e-9)).expect("tiles");
        assert_eq!(found.shape().tiles(), tiles, "{text}");
    }
    // The largest of negative elements and of absent ones is 0, and the smallest of two columns is that of both.
    let found = made("tensor.min(a, 0)", &inputs);
    assert_eq!(found.to_tensor().expect("a tensor"), Tensor::new(&[6], vec![0.0; 6]).expect("six"));
}

#[test]
fn the_order_of_products_is_that_of_present_tiles() {
    // Extents alone say nothing of the order: all matrices are of one size. Tiles say that the last two leave one tile.
    let tiling = grid(12);
    let all: Vec<u64> = (0..144).collect();
    let (a, b) = (filled(&tiling, &all, 1.0), filled(&tiling, &all, 1.0));
    let c = filled(&tiling, &[0], 1.0);
    let text = r#"r("i,l") = a("i,j") * b("j,k") * c("k,l")"#;
    // 12 products of tiles, and 144: from the left it would be 1,728 and 12.
    let mut run = World::from_environment().expect("a world").evaluator(Options::default().most_products(200));
    let found = run.statement(text, [("a", &a), ("b", &b), ("c", &c)]).expect("few products");
    assert_eq!(found.get::<f64>(&[23, 1]).expect("an element"), 48.0);
    assert_eq!(found.shape().len(), 12);
    // Likewise among five, of which pairs are compared.
    let text = r#"r("i,n") = a("i,j") * b("j,k") * a("k,l") * b("l,m") * c("m,n")"#;
    assert_eq!(run.statement(text, [("a", &a), ("b", &b), ("c", &c)]).expect("few products").shape().len(), 12);
}
