//! Tests gradients through blocks of tiles and ranges of elements: gradients in tiles equal those of the same model on
//! dense tensors. Elements are small whole numbers, of which sums are exact in every order, so results must be equal.

use super::{floats, most_bytes};
use cembra::tensor::{Tensor, TensorErrorKind};
use cembra::tiles::{
    Base, Journal, Operand, Options, Run, Screening, Step, StepKind, TensorInformation, Tiled, Tiling, Tiling1, World,
};
use cembra::{Backend, Error, Executor, Model, RunOptions};
use fastrand::Rng;

const BACKENDS: [Backend; 2] = [Backend::Native, Backend::Interpreter];

fn compiled(text: &str, backend: Backend) -> Executor {
    Model::parse(text)
        .and_then(|model| model.compile(&cembra::Options::default().backend(backend)))
        .unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn run(options: Options, backend: Backend) -> Run {
    Run::new(options, &cembra::Options::default().backend(backend))
}

/// Returns random tile boundaries of an axis with at least one element. Tiles have any size, some are empty, and the
/// first index is not always 0.
fn boundaries(rng: &mut Rng) -> Vec<i64> {
    let mut at = rng.i64(-3..4);
    let mut boundaries = vec![at];
    for _ in 0..rng.usize(2..5) {
        at += rng.i64(0..4);
        boundaries.push(at);
    }
    boundaries.push(at + 2);
    boundaries
}

fn extent(boundaries: &[i64]) -> usize {
    boundaries[0].abs_diff(boundaries[boundaries.len() - 1]) as usize
}

/// Returns a tensor of whole numbers in which some tiles have only zeros.
fn numbers(rng: &mut Rng, scalar: &str, cuts: &[&[i64]]) -> Tensor {
    let extents: Vec<usize> = cuts.iter().map(|own| extent(own)).collect();
    let axes = cuts.iter().map(|own| Tiling1::new(own.iter().copied()).expect("ascending"));
    let tiling = Tiling::new(axes).expect("few tiles");
    let absent: Vec<bool> = (0..tiling.tiles()).map(|_| rng.u32(0..3) == 0).collect();
    let count: usize = extents.iter().product();
    let element = |at: usize| {
        let (mut rest, mut index) = (at, vec![0; extents.len()]);
        for axis in (0..extents.len()).rev() {
            index[axis] = cuts[axis][0] + (rest % extents[axis]) as i64;
            rest /= extents[axis];
        }
        let tile = tiling.tile_of(&index).expect("a tile");
        if absent[tile as usize] { 0 } else { rng.i8(-3..4) }
    };
    let elements: Vec<i8> = (0..count).map(element).collect();
    match scalar {
        "f32" => Tensor::new(&extents, elements.into_iter().map(f32::from).collect()),
        _ => Tensor::new(&extents, elements.into_iter().map(f64::from).collect()),
    }
    .expect("a tensor")
}

/// A block of tiles: for each axis, the first tile, and the end, which is one more than the last tile.
type Block = [Vec<usize>; 2];

fn block(rng: &mut Rng, cuts: &[&[i64]]) -> Block {
    let ends = cuts.iter().map(|own| [0, 1].map(|_| rng.usize(0..own.len())));
    let (first, last): (Vec<usize>, Vec<usize>) = ends.map(|[a, b]| (a.min(b), a.max(b))).unzip();
    [first, last]
}

/// Models that compute a number `y`, whose gradients with respect to `a` and `b` are tested. The axes of `a` are `i`
/// and `k`, those of `b` are `k` and `j`. `A`, `B` and so on stand for blocks.
const TEXTS: [&str; 14] = [
    "let y = tensor.sum(tensor.block(a, A) * tensor.block(a, A)) + tensor.sum(tensor.block(b, B))",
    // Two blocks that may share tiles, and all elements.
    "let y = tensor.sum(tensor.block(a, A) * tensor.block(a, A) * tensor.block(a, A)) - 2.0 * tensor.sum(tensor.block(a, C)) + tensor.sum(b * b)",
    r#"let s("i,j") = a("i,k") * b("k,j"); let y = tensor.sum(tensor.block(s, S) * tensor.block(s, S))"#,
    // Of a product that the gradient does not need.
    r#"let s("i,j") = a("i,k") * b("k,j"); let y = tensor.sum(tensor.block(3.0 - s, S))"#,
    "let t = tensor.transpose(a * a); let y = tensor.sum(tensor.block(t, T) * tensor.block(tensor.transpose(a), T)) + tensor.sum(b)",
    // Blocks of blocks: of some tiles all, and none.
    "let p = tensor.block(a, A); let y = tensor.sum(tensor.block(p, P) * tensor.block(p, P)) + tensor.sum(tensor.block(b, N))",
    // A gradient has blocks, too, and a gradient.
    "let w = tensor.sum(tensor.block(a, A) * tensor.block(a, A) * tensor.block(a, A)); let g = tensor.grad(w, a); let y = tensor.sum(tensor.block(g, C) * tensor.block(a, C)) + tensor.sum(b * b)",
    // Rows and columns.
    "let r = tensor.sum(a * a, 1); let y = tensor.sum(tensor.block(r, R) * tensor.block(r, R)) + tensor.sum(tensor.block(tensor.sum(b, 0, keep=true), K))",
    "let m = tensor.reshape(a, (XI, 1, XK)) * tensor.reshape(a, (1, XI, XK)); let y = tensor.sum(tensor.block(m, M) * tensor.block(m, M)) + tensor.sum(b)",
    // Ranges that begin and end within tiles, and blocks of them are whole.
    "let y = tensor.sum(tensor.slice(a, 0, F, L) * tensor.slice(a, 0, F, L) * 2.0) + tensor.sum(tensor.slice(tensor.slice(b, 1, G, H), 0, V, W) * 3.0)",
    "let y = tensor.sum(tensor.slice(a * a, 0, F, L)) + tensor.sum(tensor.slice(b * b, 1, G, H))",
    "let d = tensor.block(a, ALL); let y = tensor.sum(d * d * d) + tensor.sum(tensor.block(b * b, B))",
    // Branches, of products too, whose factors are computed.
    r#"let c = a * a - 1.0; let s("i,j") = c("i,k") * b("k,j"); let y = tensor.sum(tensor.where(s > 1.0, s, 0.0)) + tensor.sum(tensor.relu(a))"#,
    "let y = tensor.sum(a * a) + tensor.sum(tensor.block(tensor.maximum(b * b, b), B))",
];

struct Case {
    text: String,
    a: Tensor,
    b: Tensor,
    cuts: [Vec<i64>; 3],
}

fn case(rng: &mut Rng, template: &str, scalar: &str) -> Case {
    let [i, k, j] = [0; 3].map(|_| boundaries(rng));
    let (a, b) = (numbers(rng, scalar, &[&i, &k]), numbers(rng, scalar, &[&k, &j]));
    let list = |numbers: &[usize]| format!("[{}]", numbers.iter().map(usize::to_string).collect::<Vec<_>>().join(", "));
    let lists = |block: &Block| format!("{}, {}", list(&block[0]), list(&block[1]));
    let of_a = block(rng, &[&i, &k]);
    // Of the tiles of a block, but for the empty ones at its ends, one is any more.
    let filled = |own: &[i64], first: usize, last: usize| {
        let mut tiles = (first..last).filter(|at| own[*at] < own[at + 1]);
        tiles.clone().next().zip(tiles.next_back()).map_or(0, |(first, last)| last + 1 - first)
    };
    let counts = [filled(&i, of_a[0][0], of_a[1][0]), filled(&k, of_a[0][1], of_a[1][1])];
    let of_block: Block = [counts.map(|count| count / 2).to_vec(), counts.to_vec()];
    let range = |rng: &mut Rng, own: &[i64]| {
        let ends = [0, 1].map(|_| rng.usize(0..=extent(own)));
        [ends[0].min(ends[1]), ends[0].max(ends[1])]
    };
    let mut text = template.to_owned();
    for (name, value) in [
        ("XI", extent(&i).to_string()),
        ("XK", extent(&k).to_string()),
        ("ALL", lists(&[vec![0, 0], vec![i.len() - 1, k.len() - 1]])),
        ("A)", lists(&of_a) + ")"),
        ("B)", lists(&block(rng, &[&k, &j])) + ")"),
        ("C)", lists(&block(rng, &[&i, &k])) + ")"),
        ("S)", lists(&block(rng, &[&i, &j])) + ")"),
        ("T)", lists(&block(rng, &[&k, &i])) + ")"),
        ("P)", lists(&of_block) + ")"),
        ("N)", lists(&[vec![1, 0], vec![1, j.len() - 1]]) + ")"),
        ("R)", lists(&block(rng, &[&i])) + ")"),
        ("K)", lists(&[vec![0, 1], vec![1, 2]]) + ")"),
        ("M)", lists(&block(rng, &[&i, &i, &k])) + ")"),
    ] {
        text = text.replace(name, &value);
    }
    for (names, [start, end]) in
        [(["F, ", "L)"], range(rng, &i)), (["G, ", "H)"], range(rng, &j)), (["V, ", "W)"], range(rng, &k))]
    {
        text = text.replace(names[0], &format!("{start}, ")).replace(names[1], &format!("{end})"));
    }
    let cut = |own: &[i64]| format!("[{}]", own.iter().map(i64::to_string).collect::<Vec<_>>().join(", "));
    let text = format!(
        "tile i = {}\ntile k = {}\ntile j = {}\ninput a: tiled[{scalar}, \"i,k\"], b: tiled[{scalar}, \"k,j\"]\n{text}\noutput by_a = tensor.grad(y, a)\noutput by_b = tensor.grad(y, b)\noutput step = a - 0.5 * tensor.grad(y, a)",
        cut(&i),
        cut(&k),
        cut(&j)
    );
    Case { text, a, b, cuts: [i, k, j] }
}

#[test]
fn gradients_in_tiles_are_those_of_dense_tensors() {
    let mut rng = Rng::with_seed(120);
    let mut is_absent = 0;
    for at in 0..TEXTS.len() * 24 {
        let template = TEXTS[at % TEXTS.len()];
        let scalar = if (at / TEXTS.len()).is_multiple_of(3) { "f32" } else { "f64" };
        let Case { text, a, b, cuts } = case(&mut rng, template, scalar);
        let backend = BACKENDS[at % 2];
        let executor = compiled(&text, backend);
        let inputs = [a.clone(), b.clone()];
        let dense = executor.session().run_tensors(&inputs).unwrap_or_else(|error| panic!("{text}: {error}")).to_vec();
        let reference = executor.run_reference(&inputs).expect("values");
        let operands = || [("a", Operand::Dense(&a)), ("b", (&b).into())];
        // Zeros are tiles, or absent.
        for threshold in [0.0, 1e-30] {
            let mut bits = Vec::new();
            for threads in [1, 2, 5] {
                let journal = Journal::default();
                let terms = RunOptions::new().threads(threads);
                let run =
                    run(Options::default().threshold(threshold), backend).run_options(&terms).journal(journal.clone());
                let made = run.tiled(&executor).run(operands()).unwrap_or_else(|error| panic!("{text}: {error}"));
                if threshold == 0.0 {
                    let known = operands().map(|(name, operand)| (name, TensorInformation::Operand(operand)));
                    assert_eq!(run.tiled(&executor).plan(known).expect("a plan"), journal.steps(), "{text}");
                }
                let mut all = Vec::new();
                for (at, field) in executor.outputs().iter().enumerate() {
                    let tiled = &made[&*field.name];
                    let found = tiled.to_tensor().expect("memory");
                    assert_eq!(found.extents(), dense[at].extents(), "{text}");
                    assert_eq!(floats(&found), floats(&dense[at]), "{text}, {}", field.name);
                    assert_eq!(floats(&found), floats(&reference[at]), "{text}, {}", field.name);
                    is_absent += usize::from((tiled.shape().len() as u64) < tiled.tiling().tiles());
                    let norms = tiled.shape().norms().iter().map(|norm| norm.to_bits()).collect::<Vec<u64>>();
                    all.push((tiled.shape().tiles().to_vec(), norms, floats(&found)));
                }
                // What is stepped by a gradient is cut as it was.
                let axes = cuts[..2].iter().map(|own| Tiling1::new(own.iter().copied()).expect("ascending"));
                assert!(made["step"].tiling().axes().iter().cloned().eq(axes), "{text}");
                bits.push(all);
            }
            assert!(bits[0] == bits[1] && bits[1] == bits[2], "{text}");
        }
    }
    assert!(is_absent > 400, "{is_absent}");
}

/// Gradients of statements have the tilings of the tensors. The axes do not begin at 0, and the statements use blocks,
/// math functions and fractions.
#[test]
fn gradients_of_statements_are_cut_as_the_tensors() {
    let text = r#"
        let e = exp(0.1 * h) * x
        let c("i,j") = e("i,k").block([1, 0], [3, 2]) * h("k,j").block([0, 0], [2, 4])
        let y = c("i,j").squared_norm() + tensor.sum(math.log(tensor.block(x, [0], [3]) + 9.0))
        output by_h = tensor.grad(y, h)
        output by_x = tensor.grad(y, x)
        output next = h - 0.01 * tensor.grad(y, h)
    "#;
    let axis = Tiling1::new([-2, 1, 3, 3, 8]).expect("ascending");
    let (matrix, vector) = (Tiling::new([&axis, &axis]).expect("tiles"), Tiling::new([&axis]).expect("tiles"));
    let element = |at: usize| (at * 7 % 11) as f64 * 0.25 - 1.0;
    let h = Tensor::new(&[10, 10], (0..100).map(element).collect()).expect("a tensor");
    let x = Tensor::new(&[10], (0..10).map(element).collect()).expect("a tensor");
    let all = Screening::threshold(0.0);
    let (tiled_h, tiled_x) =
        (Tiled::from_tensor(&h, &matrix, &all).expect("tiles"), Tiled::from_tensor(&x, &vector, &all).expect("tiles"));
    let cuts = "tile m, l = [-2, 1, 3, 3, 8]; tile i = [0, 2]; tile k = [0, 3, 5]; tile j = [0, 3, 5, 5, 10]";
    let dense_text = format!("{cuts}\ninput h: tiled[f64, \"m,l\"], x: tiled[f64, \"l\"]\n{text}");
    for backend in BACKENDS {
        let mut run = run(Options::default().threshold(0.0), backend);
        let made = run.statements(text, [("h", &tiled_h), ("x", &tiled_x)]);
        let made = made.unwrap_or_else(|error| panic!("{error:?}"));
        let executor = compiled(&dense_text, backend);
        let dense = executor.session().run_tensors(&[h.clone(), x.clone()]).expect("values").to_vec();
        for (field, expected) in executor.outputs().iter().zip(&dense) {
            let tiled = &made[&*field.name];
            assert_eq!(tiled.tiling(), if &*field.name == "by_x" { &vector } else { &matrix });
            let found = floats(&tiled.to_tensor().expect("memory"));
            assert!(floats(expected).iter().any(|element| *element != 0.0));
            for (found, expected) in found.into_iter().zip(floats(expected)) {
                assert!((found - expected).abs() <= 1e-12 * expected.abs().max(1.0), "{found} for {expected}");
                assert!(expected != 0.0 || found == 0.0);
            }
        }
    }
}

#[test]
fn tiles_outside_of_the_block_are_absent_and_those_within_are_shared() {
    let axis = Tiling1::blocked(8, 2).expect("tiles");
    let tiling = Tiling::new([&axis, &axis]).expect("few tiles");
    let tensor = Tensor::new(&[8, 8], (1..=64).map(f64::from).collect()).expect("a tensor");
    let tiled = |present: &dyn Fn(u64) -> bool| {
        let all = Tiled::from_tensor(&tensor, &tiling, &Screening::threshold(0.0)).expect("tiles");
        let norms = (0..16).filter(|tile| present(*tile)).map(|tile| (tile, 1.0));
        let shape = cembra::tiles::Shape::of_norms(&tiling, norms, &Screening::threshold(0.0)).expect("a shape");
        all.masked(&shape).expect("tiles")
    };
    let (a, b) = (tiled(&|_| true), tiled(&|tile| tile % 3 != 0));
    // The block has the tiles 5, 6, 9 and 10, of which `b` lacks 6 and 9.
    let text = "let y = tensor.sum(tensor.block(a, [1, 1], [3, 3]) * tensor.block(b, [1, 1], [3, 3]))";
    let steps = |text: &str, most: usize| -> Result<(Tiled, Vec<Step>), Error> {
        let journal = Journal::default();
        let run = World::from_environment()?.evaluator(Options::default().threshold(0.0));
        let run = run.run_options(&most_bytes(most)).journal(journal.clone());
        let made = { run }.statement(&format!("{text}; output g = tensor.grad(y, a)"), [("a", &a), ("b", &b)])?;
        Ok((made, journal.steps()))
    };
    let (gradient, made) = steps(text, usize::MAX).expect("a gradient");
    assert_eq!((gradient.shape().tiles(), gradient.tiling()), (&[5, 10][..], &tiling));
    let of = b.block(&[1..3, 1..3], Base::Zero).expect("a block");
    assert_eq!(gradient.shape().norms(), of.shape().norms());
    // Nothing is copied to its place, and what was placed is not counted twice.
    let last = made.last().expect("steps");
    assert_eq!((last.work, last.tiles, last.bytes), (StepKind::View, 2, 2 * 4 * 8));
    let least = made.iter().filter(|step| step.work != StepKind::View).map(|step| step.bytes + step.held_bytes).max();
    let least = least.unwrap_or(0);
    assert_eq!(steps(text, least).expect("a gradient").1, made);
    // Rows within tiles are copied among zeros.
    let text = "let y = tensor.sum(tensor.slice(a, 0, 3, 4) * tensor.slice(b, 0, 3, 4))";
    let (gradient, made) = steps(text, usize::MAX).expect("a gradient");
    assert_eq!(gradient.shape().tiles(), [4, 5, 7]);
    assert_eq!(made.last().map(|step| (step.work, step.bytes)), Some((StepKind::Part, 3 * 4 * 8)));
}

#[test]
fn slices_in_steps_have_no_gradient_in_tiles() {
    let axis = Tiling1::blocked(6, 2).expect("tiles");
    let tensor = Tensor::new(&[6], vec![1.0; 6]).expect("a tensor");
    let a = Tiled::from_tensor(&tensor, &Tiling::new([axis]).expect("tiles"), &Screening::threshold(0.0));
    let a = a.expect("tiles");
    let text = "let y = tensor.sum(tensor.slice(a, 0, 0, 6, 2)); output g = tensor.grad(y, a)";
    let error = run(Options::default(), Backend::Native).statement(text, [("a", &a)]).expect_err("an error");
    assert_eq!(error.tensor_kind(), Some(TensorErrorKind::Tiling), "{error}");
    assert!(error.to_string().contains("steps of 2"), "{error}");
    assert!(error.span().is_some_and(|span| span.text(text).contains("tensor.grad")), "{error}");
}

/// A tensor of ones may be the gradient for one tensor and a factor in the gradient for another. In each place, it has
/// the tiling of the tensors that it is combined with.
#[test]
fn numbers_that_several_read_are_cut_as_what_each_reads_them_with() {
    let [a, b] = [&[-1, 1, 4][..], &[0, 3, 5]].map(|own| {
        let axis = Tiling1::new(own.iter().copied()).expect("ascending");
        let tensor = Tensor::new(&[5], (1..6).map(f64::from).collect()).expect("a tensor");
        Tiled::from_tensor(&tensor, &Tiling::new([axis]).expect("tiles"), &Screening::threshold(0.0)).expect("tiles")
    });
    let text = r#"
        let y = tensor.sum(a * a) + tensor.sum(b) + tensor.sum(tensor.block(a, [1], [2]))
        output by_a = tensor.grad(y, a)
        output by_b = tensor.grad(y, b)
        output both = a + tensor.grad(y, b)
    "#;
    for backend in BACKENDS {
        let mut run = run(Options::default().threshold(0.0), backend);
        let made = run.statements(text, [("a", &a), ("b", &b)]).unwrap_or_else(|error| panic!("{error:?}"));
        let elements = |name: &str| floats(&made[name].to_tensor().expect("memory"));
        assert_eq!(elements("by_a"), [2.0, 4.0, 7.0, 9.0, 11.0]);
        assert_eq!((elements("by_b"), elements("both")), (vec![1.0; 5], vec![2.0, 3.0, 4.0, 5.0, 6.0]));
        assert_eq!([made["by_a"].tiling(), made["both"].tiling()], [a.tiling(); 2]);
    }
}
