//! Tests blocks of tiles in models: results on dense and tiled tensors, the tilings that labels must have, which lazy
//! tiles are computed, how many bytes are in use, and errors.

use super::{Tilings, floats, most_bytes};
use cembra::tensor::{Tensor, TensorErrorKind};
use cembra::tiles::{
    Base, Journal, MOST_TILES, Operand, Options, Run, Screening, Shape, StepKind, TilePlace, Tiled, Tiling, Tiling1,
    World,
};
use cembra::{Backend, Error, Executor, Model, Scalar};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

fn compiled(text: &str, backend: Backend) -> Result<Executor, Error> {
    Model::parse(text)?.compile(&cembra::Options::default().backend(backend))
}

fn tensor(extents: &[usize]) -> Tensor {
    let count: usize = extents.iter().product();
    Tensor::new(extents, (0..count).map(|at| (at * 7 % 11) as f64 - 3.0).collect()).expect("a tensor")
}

fn axis(boundaries: &[i64]) -> Tiling1 {
    Tiling1::new(boundaries.iter().copied()).expect("ascending boundaries")
}

fn cut(tensor: &Tensor, axes: &[Tiling1]) -> Tiled {
    let tiling = Tiling::new(axes).expect("few tiles");
    Tiled::from_tensor(tensor, &tiling, &Screening::threshold(0.0)).expect("tiles")
}

fn runs() -> [Run; 2] {
    [Backend::Native, Backend::Interpreter]
        .map(|backend| Run::new(Options::default().threshold(0.0), &cembra::Options::default().backend(backend)))
}

const MODEL: &str = r#"
    tile i, j = 4
    tile k = [-2, 0, 3, 3, 5]
    tile m = [0, 3]
    tile p = [0, 3, 3, 5]
    input a: tiled[f64, "i,k"], b: tiled[f64, "k,j"], c: tiled[f64, "j"]
    output part("i,p") = a("i,p").block([1, 1], [3, 4])
    r("i,j") = -exp(a("i,m").block([0, 1], [1, 2])) * b("m,j").block([1, 0], [2, 2])
    output nested("i,x") = a("i,m").block([0, 1], [2, 4]).block([1, 0], [2, 1]) * b("m,x").block([1, 1], [2, 2])
    output whole = tensor.sum(tensor.block(a, (0, 1), (3, 2)), 1)
    output none("j") = c("j").block([1], [1])
    output diagonal = b("i,q").block([2, 0], [4, 1]).sum() * c("j").block([0], [2]).squared_norm()
    let square("i,j") = a("i,k") * b("k,j")
    output corner("i,j") = square("i,j").block([1, 0], [2, 1]) - square("j,i").block([1, 0], [2, 1])
"#;

/// The model `MODEL` for dense tensors: ranges of elements replace the blocks of tiles.
const DENSE: &str = r#"
    input a, b: tensor[f64, 2], c: tensor[f64, 1]
    let a_part = tensor.slice(tensor.slice(a, 0, 4, 9), 1, 2, 7)
    output part("i,p") = a_part("i,p")
    let a_first = tensor.slice(tensor.slice(a, 0, 0, 4), 1, 2, 5)
    let b_first = tensor.slice(b, 0, 2, 5)
    r("i,j") = -exp(a_first("i,m")) * b_first("m,j")
    let a_next = tensor.slice(tensor.slice(a, 0, 4, 8), 1, 2, 5)
    let b_next = tensor.slice(tensor.slice(b, 0, 2, 5), 1, 4, 7)
    output nested("i,x") = a_next("i,m") * b_next("m,x")
    output whole = tensor.sum(tensor.slice(a, 1, 2, 5), 1)
    output none = tensor.slice(c, 0, 4, 4)
    let b_last = tensor.slice(tensor.slice(b, 0, 5, 7), 1, 0, 4)
    output diagonal = b_last("i,q").sum() * c("j").squared_norm()
    let square("i,j") = a("i,k") * b("k,j")
    let inner = tensor.slice(tensor.slice(square, 0, 4, 8), 1, 0, 4)
    output corner("i,j") = inner("i,j") - inner("j,i")
"#;

#[test]
fn blocks_are_the_elements_of_their_tiles() {
    let (a, b, c) = (tensor(&[9, 7]), tensor(&[7, 7]), tensor(&[7]));
    for backend in [Backend::Native, Backend::Interpreter] {
        let expected = compiled(DENSE, backend).expect("a model");
        let expected = expected.session().run_tensors(&[a.clone(), b.clone(), c.clone()]).expect("values").to_vec();
        let executor = compiled(MODEL, backend).expect("a model");
        assert!(executor.has_blocks());
        let inputs = [a.clone(), b.clone(), c.clone()];
        let on_dense = executor.session().run_tensors(&inputs).expect("values").to_vec();
        let reference = executor.run_reference(&inputs).expect("values");
        let run = Run::new(Options::default(), &cembra::Options::default().backend(backend));
        let operands = [("a", Operand::Dense(&a)), ("b", (&b).into()), ("c", (&c).into())];
        let made = run.tiled(&executor).run(operands).expect("values");
        for (at, field) in executor.outputs().iter().enumerate() {
            let name = &*field.name;
            let tiled = made[name].to_tensor().expect("memory");
            for found in [&on_dense[at], &reference[at], &tiled] {
                assert_eq!(found.extents(), expected[at].extents(), "{name}");
                for (found, expected) in floats(found).into_iter().zip(floats(&expected[at])) {
                    assert!(
                        (found - expected).abs() <= 1e-12 * expected.abs().max(1.0),
                        "{name}: {found} for {expected}"
                    );
                }
            }
        }
        let axes = |name: &str| made[name].tiling().axes().to_vec();
        assert_eq!(axes("part"), [axis(&[0, 4, 5]), axis(&[0, 3, 3, 5])]);
        assert_eq!(axes("r"), [axis(&[0, 4]), axis(&[0, 4, 7])]);
        assert_eq!(axes("none"), [axis(&[0])]);
        assert_eq!(axes("corner"), [axis(&[0, 4]), axis(&[0, 4])]);
    }
}

#[test]
fn a_block_of_a_statement_is_that_of_the_tensor_however_it_is_cut() {
    let dense = tensor(&[9, 7]);
    for (rows, columns) in [
        (axis(&[0, 4, 8, 9]), axis(&[0, 3, 3, 5, 7])),
        (axis(&[-3, 1, 2, 6]), axis(&[5, 6, 8, 10, 12])),
        (Tiling1::blocked(9, 3).expect("tiles"), Tiling1::blocked(7, 2).expect("tiles")),
    ] {
        let a = cut(&dense, &[rows.clone(), columns.clone()]);
        for run in &mut runs() {
            let made = run.statement(r#"c("i,j") = a("i,j").block([0, 1], [2, 3])"#, [("a", &a)]).expect("a block");
            let expected = a.block(&[0..2, 1..3], Base::Zero).expect("a block");
            assert_eq!(made.to_tensor().expect("memory"), expected.to_tensor().expect("memory"));
            let ends = expected.tiling().axes().iter().map(Tiling1::upper);
            assert!(made.tiling().axes().iter().map(Tiling1::upper).eq(ends));
            assert!(made.tiling().axes().iter().all(|axis| axis.lower() == 0));
            // A block of all tiles begins at 0, too.
            let text = format!("tensor.block(a, (0, 0), ({}, {}))", rows.tiles(), columns.tiles());
            let whole = run.statement(&text, [("a", &a)]).expect("a block");
            let all = a.block(&[0..rows.tiles(), 0..columns.tiles()], Base::Zero).expect("a block");
            assert_eq!((whole.tiling(), whole.shape().norms()), (all.tiling(), all.shape().norms()));
            assert_eq!(whole.to_tensor().expect("memory"), dense);
        }
    }
}

#[test]
fn a_text_with_blocks_is_compiled_once_and_has_a_graph_for_other_tiles() {
    let dense = tensor(&[6]);
    let [threes, twos] = [axis(&[0, 3, 6]), axis(&[0, 2, 4, 6])].map(|axis| cut(&dense, &[axis]));
    let mut run = World::from_environment().expect("a world").evaluator(Options::default());
    let text = r#"b("i") = a("i").block([1], [2])"#;
    let mut of = |a: &Tiled| floats(&run.statement(text, [("a", a)]).expect("a block").to_tensor().expect("memory"));
    let elements = floats(&dense);
    assert_eq!(of(&threes), elements[3..6]);
    assert_eq!(of(&twos), elements[2..4]);
    assert_eq!(of(&threes), elements[3..6]);
    assert_eq!(run.texts_read(), 1);
}

#[test]
fn operators_hand_on_how_their_operands_are_cut() {
    let tensors =
        BTreeMap::from([("a", tensor(&[5, 7])), ("b", tensor(&[7, 6])), ("x", tensor(&[7])), ("s", tensor(&[]))]);
    for (of, rank) in [
        ("tensor.transpose(a)", 2),
        ("a + exp(x)", 2),
        ("tensor.sum(a, 1)", 1),
        ("tensor.max(a, 0, keep=true)", 2),
        ("tensor.reshape(a, (5, 1, 7))", 3),
        ("s * a - 1.0", 2),
        (r#"let t("i,j") = a("i,k") * b("k,j")"#, 2),
        (r#"let t("i") = 2.0 * a("i,k") * x("k")"#, 1),
    ] {
        for seed in 0..6 {
            let mut tilings = Tilings::new(seed);
            let tiled: BTreeMap<&str, Tiled> =
                tensors.iter().map(|(name, tensor)| (*name, tilings.tiled(tensor))).collect();
            let given = || tiled.iter().map(|(name, tiled)| (*name, tiled));
            let defined = if of.starts_with("let") { of.to_owned() } else { format!("let t = {of}") };
            for run in &mut runs() {
                let whole = run.statement(&format!("{defined}; output r = t"), given()).expect(of);
                // The last tile of each axis that has elements.
                let filled = |axis: &Tiling1| {
                    (0..axis.tiles()).rev().find(|at| axis.range(*at).is_some_and(|own| !own.is_empty()))
                };
                let last: Vec<u64> = whole.tiling().axes().iter().map(|axis| filled(axis).expect("elements")).collect();
                assert_eq!(last.len(), rank, "{of}");
                let list = |by: u64| last.iter().map(|at| (at + by).to_string()).collect::<Vec<String>>().join(", ");
                let block = format!("{defined}; output r = tensor.block(t, [{}], [{}])", list(0), list(1));
                let made =
                    run.statement(&block, given()).unwrap_or_else(|error| panic!("{block}, seed {seed}: {error}"));
                let ranges: Vec<_> = last.iter().map(|at| *at..at + 1).collect();
                let expected = whole.block(&ranges, Base::Zero).expect("a block");
                assert_eq!(made.tiling(), expected.tiling(), "{block}, seed {seed}");
                assert_eq!(made.to_tensor().expect("memory"), expected.to_tensor().expect("memory"), "{block}");
            }
        }
    }
}

#[test]
fn labels_are_cut_as_the_blocks_are() {
    let model = |cuts: &str, line: &str| {
        format!(
            "tile i = 8\ntile k = [-3, 0, 17, 40, 61]\n{cuts}\ninput a: tiled[f64, \"i\"], b: tiled[f64, \"k\"]\n{line}"
        )
    };
    for (cuts, line) in [
        ("", "c(\"i\") = a(\"i\").block([1], [3])"),
        ("tile p = 8", "c(\"p\") = a(\"p\").block([1], [3])"),
        ("tile p = [0, 8, 13]", "c(\"p\") = a(\"p\").block([1], [3])"),
        ("", "c(\"p\") = a(\"p\").block([1], [2])"),
        ("tile p = 9", "c(\"p\") = a(\"p\").block([1], [2])"),
        ("tile p = [0, 23, 44]", "c(\"p\") = b(\"p\").block([2], [4])"),
        ("tile p = 23", "c(\"p\") = b(\"p\").block([2], [4])"),
        ("", "c(\"p\") = b(\"p\").block([1], [2])"),
        ("tile p = [0, 3, 20, 43, 64]", "c(\"p\") = b(\"p\").block([0], [4])"),
        // The tiles of a block are counted from 0 on.
        ("tile p = [0, 21]", "c(\"p\") = b(\"p\").block([2], [4]).block([1], [2])"),
        ("", "output c = tensor.block(b, [0], [2])"),
        ("", "c(\"p\") = b(\"p\").block([3], [3])"),
    ] {
        let text = model(cuts, line);
        for backend in [Backend::Native, Backend::Interpreter] {
            let executor = compiled(&text, backend).unwrap_or_else(|error| panic!("{text}: {error}"));
            let (a, b) = (tensor(&[21]), tensor(&[64]));
            let run = Run::new(Options::default(), &cembra::Options::default().backend(backend));
            let made = run
                .tiled(&executor)
                .run([("a", Operand::Dense(&a)), ("b", Operand::Dense(&b))])
                .unwrap_or_else(|error| panic!("{text}: {error}"));
            let input = if &*executor.inputs()[0].name == "a" { a } else { b };
            let dense = executor.session().run_tensors(&[input]).expect("values")[0].clone();
            assert_eq!(made["c"].to_tensor().expect("memory"), dense, "{text}");
        }
    }
    let sizes = TensorErrorKind::SizeMismatch;
    for (cuts, line, place, kind, message, hint) in [
        (
            "",
            "c(\"k\") = b(\"k\").block([2], [4])",
            "b(\"k\").block([2], [4])",
            sizes,
            "this axis of the block is cut at [0, 23, 44], and `k` is cut at [-3, 0, 17, 40, 61]",
            "use a label for the axis that is cut like the block: `tile .. = [0, 23, 44]`",
        ),
        (
            "",
            "c(\"p\") = b(\"p\").block([2], [4])",
            "b(\"p\").block([2], [4])",
            sizes,
            "this axis of the block is cut at [0, 23, 44], and the axis of `p` is one tile",
            "cut the label like the block: `tile p = [0, 23, 44]`",
        ),
        (
            "",
            "c(\"p\") = a(\"p\").block([0], [2])",
            "a(\"p\").block([0], [2])",
            sizes,
            "this axis of the block is cut in tiles of 8, and the axis of `p` is one tile",
            "cut the label like the block: `tile p = 8`",
        ),
        (
            "tile p = [0, 8, 17]",
            "c(\"p\") = a(\"p\").block([0], [2])",
            "a(\"p\").block([0], [2])",
            sizes,
            "this axis of the block is cut in tiles of 8, and `p` is cut at [0, 8, 17]",
            "use a label for the axis that is cut like the block: `tile .. = 8`",
        ),
        (
            "tile p = [5, 28, 49]",
            "c(\"p\") = b(\"p\").block([2], [4])",
            "b(\"p\").block([2], [4])",
            sizes,
            "this axis of the block is cut at [0, 23, 44], and `p` is cut at [5, 28, 49]",
            "use a label for the axis that is cut like the block: `tile .. = [0, 23, 44]`",
        ),
        (
            "tile p = 8",
            "let t = exp(tensor.block(b, [1], [3])); c(\"p\") = t(\"p\")",
            "t(\"p\")",
            sizes,
            "this axis of the block is cut at [0, 17, 40], and `p` is cut in tiles of 8",
            "use a label for the axis that is cut like the block: `tile .. = [0, 17, 40]`",
        ),
        // Which tiles there are is known before data are.
        (
            "",
            "c(\"p\") = b(\"p\").block([2], [5])",
            "b(\"p\").block([2], [5])",
            TensorErrorKind::Index,
            "the block has the tiles 2 to 5 of axis 0, whose number of tiles is 4",
            "count the tiles of an axis from 0, and write the tile after the last one in the second list",
        ),
        (
            "",
            "c(\"p\") = b(\"p\").block([2], [4]).block([1], [3])",
            "b(\"p\").block([2], [4]).block([1], [3])",
            TensorErrorKind::Index,
            "the block has the tiles 1 to 3 of axis 0, whose number of tiles is 2",
            "count the tiles of an axis from 0, and write the tile after the last one in the second list",
        ),
        (
            "",
            "c(\"i\") = a(\"i\").block([2], [4]).block([1], [3])",
            "a(\"i\").block([2], [4]).block([1], [3])",
            TensorErrorKind::Index,
            "the block has the tiles 1 to 3 of axis 0, whose number of tiles is 2",
            "count the tiles of an axis from 0, and write the tile after the last one in the second list",
        ),
    ] {
        let text = model(cuts, line);
        let error = compiled(&text, Backend::Native).map(|_| ()).expect_err(&text);
        assert_eq!(error.tensor_kind(), Some(kind), "{text}: {error}");
        assert_eq!(error.span().map(|span| span.text(&text)), Some(place), "{text}: {error}");
        let problem = &error.diagnostics()[0];
        assert_eq!((problem.message(), problem.hints().first().map(|hint| &**hint)), (message, Some(hint)), "{text}");
    }
}

/// Returns the error that compiling a statement on a matrix gives: its kind, its message and the text at its place.
fn refused(line: &str) -> (Option<TensorErrorKind>, String, String) {
    let text = format!("tile i, j = 4\ninput a: tiled[f64, \"i,j\"], n: tensor[f64, 2]\n{line}");
    let error = compiled(&text, Backend::Native).map(|_| ()).expect_err(line);
    let place = error.span().map_or("", |span| span.text(&text));
    (error.tensor_kind(), error.diagnostics()[0].message().to_owned(), place.to_owned())
}

#[test]
fn lists_that_are_no_block_are_refused_when_the_model_is_compiled() {
    for (line, kind, message, place) in [
        (
            "b(\"i,j\") = a(\"i,j\").block([0], [1])",
            TensorErrorKind::RankMismatch,
            "the tensor has 2 axes, but the number of tiles in the list is 1",
            "[0]",
        ),
        (
            "b(\"i,j\") = a(\"i,j\").block([0, 0], [1, 1, 1])",
            TensorErrorKind::RankMismatch,
            "the tensor has 2 axes, but the number of tiles in the list is 3",
            "[1, 1, 1]",
        ),
        (
            "b(\"i,j\") = a(\"i,j\").block([0, 2], [1, 1])",
            TensorErrorKind::Index,
            "the tiles 2 to 1 of axis 1 are not a block",
            "[1, 1]",
        ),
        (
            "output b = tensor.block(a, (0, 0), (1, -1))",
            TensorErrorKind::Index,
            "the tile number -1 is negative",
            "(1, -1)",
        ),
        (
            "output b = tensor.block(a, (0, 0), (1, 1.0))",
            TensorErrorKind::Syntax,
            "this argument must be an integer as a literal, not weak_float{1}",
            "1.0",
        ),
        (
            "output b = tensor.block(n, [0, 0], [1, 2])",
            TensorErrorKind::Index,
            "the block has the tiles 0 to 2 of axis 1, whose number of tiles is 1",
            "tensor.block(n, [0, 0], [1, 2])",
        ),
        ("b(\"i\") = a(\"i,j\").block([0, 0], [1, 1])", TensorErrorKind::ImplicitReduction, "", ""),
    ] {
        let (found, said, at) = refused(line);
        assert_eq!(found, Some(kind), "{line}: {said}");
        if !message.is_empty() {
            assert_eq!((&*said, &*at), (message, place), "{line}");
        }
    }
}

#[test]
fn tiles_that_data_do_not_have_are_refused_at_their_place() {
    let text = "tile i, j = 4; tile k = [0, 3, 6]\ninput a: tiled[f64, \"i,j\"], b: tiled[f64, \"k\"]\nc(\"i,j\") = a(\"i,j\").block([0, 1], [1, 3])\nd(\"k\") = b(\"k\").block([0], [2])";
    for backend in [Backend::Native, Backend::Interpreter] {
        let executor = compiled(text, backend).expect("a model");
        let (short, b) = (tensor(&[4, 8]), tensor(&[6]));
        let run = Run::new(Options::default(), &cembra::Options::default().backend(backend));
        let tiled =
            run.tiled(&executor).run([("a", Operand::Dense(&short)), ("b", (&b).into())]).map(|_| ()).unwrap_err();
        let dense = executor.session().run_tensors(&[short, b.clone()]).map(|_| ()).unwrap_err();
        for error in [tiled, dense] {
            assert_eq!(error.tensor_kind(), Some(TensorErrorKind::Index), "{error}");
            assert_eq!(error.span().map(|span| span.text(text)), Some("a(\"i,j\").block([0, 1], [1, 3])"), "{error}");
            assert!(error.to_string().contains("tiles 1 to 3 of axis 1, whose number of tiles is 2"), "{error}");
        }
        // Of dense tensors only a block asks how its axis is cut.
        let error = executor.session().run_tensors(&[tensor(&[4, 12]), tensor(&[7])]).map(|_| ()).unwrap_err();
        assert_eq!(error.tensor_kind(), Some(TensorErrorKind::SizeMismatch), "{error}");
        assert!(error.to_string().contains("axis 0 has 7 elements"), "{error}");
        assert!(executor.session().run_tensors(&[tensor(&[4, 9]), b.clone()]).is_ok());
    }
    // A text that cuts nothing has axes of one tile.
    let plain = compiled("input a: tensor[f64, 1]\nb(\"i\") = a(\"i\").block([0], [1]) + a(\"i\")", Backend::Native);
    let plain = plain.expect("a model");
    assert_eq!(floats(&plain.session().run_tensors(&[tensor(&[3])]).expect("values")[0]), [-6.0, 8.0, 0.0]);
    let two =
        compiled("input a: tensor[f64, 1]\nb(\"i\") = a(\"i\").block([0], [2])", Backend::Native).expect("a model");
    let error = two.session().run_tensors(&[tensor(&[3])]).map(|_| ()).unwrap_err();
    assert!(error.to_string().contains("tiles 0 to 2 of axis 0, whose number of tiles is 1"), "{error}");
    // How some values are cut is not known.
    let text = "tile i = 2\ninput a: tiled[f64, \"i\"], n: tensor[i64, 1]\nlet t = tensor.take(a, n)\noutput b = tensor.block(t, [0], [1])";
    let taken = compiled(text, Backend::Native).expect("a model");
    let index = Tensor::new(&[2], vec![0_i64, 1]).expect("a tensor");
    let error = taken.session().run_tensors(&[tensor(&[4]), index]).map(|_| ()).unwrap_err();
    assert_eq!(error.tensor_kind(), Some(TensorErrorKind::Tiling), "{error}");
}

/// Returns a lazy tensor with the elements `10 i + j` in tiles of two by two, and a counter of the tiles computed so
/// far.
fn counted(extents: [u64; 2]) -> (Tiled, Arc<AtomicUsize>) {
    let made = Arc::new(AtomicUsize::new(0));
    let counter = made.clone();
    let axes = extents.map(|extent| Tiling1::blocked(extent, 2).expect("tiles"));
    let shape = Shape::dense(&Tiling::new(axes).expect("few tiles"), MOST_TILES).expect("few tiles");
    let source = move |place: &TilePlace| {
        counter.fetch_add(1, Ordering::Relaxed);
        let [rows, columns] = [0, 1].map(|axis| place.ranges[axis].clone());
        let elements = rows.flat_map(|row| columns.clone().map(move |column| (row * 10 + column) as f64));
        Tensor::new(&place.extents(), elements.collect())
    };
    (Tiled::lazy(&shape, Scalar::Float64, source).expect("a lazy tensor"), made)
}

#[test]
fn products_make_the_tiles_of_a_lazy_block_that_they_need() {
    let (lazy, made) = counted([8, 8]);
    let x = cut(&tensor(&[4]), &[Tiling1::blocked(4, 2).expect("tiles")]);
    // One tile of the vector is present, so one column of tiles of the block is needed.
    let x = x
        .masked(&Shape::of_norms(x.tiling(), [(1, 1.0)], &Screening::threshold(0.0)).expect("a shape"))
        .expect("tiles");
    let elements = floats(&x.to_tensor().expect("memory"));
    for (text, row, column) in [
        (r#"r("i") = a("i,k").block([1, 2], [4, 4]) * x("k")"#, 10.0, 1.0),
        // Turned, and a block of a block.
        (r#"r("i") = a("k,i").block([2, 1], [4, 4]) * x("k")"#, 1.0, 10.0),
        (r#"r("i") = a("i,k").block([1, 1], [4, 4]).block([0, 1], [3, 3]) * x("k")"#, 10.0, 1.0),
    ] {
        for run in &mut runs() {
            made.store(0, Ordering::Relaxed);
            let found =
                run.statement(text, [("a", &lazy), ("x", &x)]).unwrap_or_else(|error| panic!("{text}: {error}"));
            let of = |at: usize| -> f64 {
                let (i, k) = ((at + 2) as f64, |k: usize| (k + 4) as f64);
                (2..4).map(|at| (i * row + k(at) * column) * elements[at]).sum()
            };
            assert_eq!(floats(&found.to_tensor().expect("memory")), (0..6).map(of).collect::<Vec<f64>>(), "{text}");
            assert_eq!(made.load(Ordering::Relaxed), 3, "{text}");
        }
    }
    // What is read by others is stored, and no tile beside the block is made.
    for text in ["output r = exp(tensor.block(a, [0, 0], [1, 2]))", r#"r("i,j") = a("i,j").block([1, 1], [2, 3])"#] {
        let mut run = World::from_environment().expect("a world").evaluator(Options::default().threshold(0.0));
        made.store(0, Ordering::Relaxed);
        let found = run.statement(text, [("a", &lazy)]).expect(text);
        assert!(!found.is_lazy());
        assert_eq!(made.load(Ordering::Relaxed), 2, "{text}");
    }
}

#[test]
fn blocks_take_no_bytes_and_copy_nothing() {
    let a = cut(&tensor(&[8, 8]), &[Tiling1::blocked(8, 2).expect("tiles"), Tiling1::blocked(8, 2).expect("tiles")]);
    let b = cut(&tensor(&[8, 8]), a.tiling().axes());
    let bytes = 8 * 8 * 8;
    let with = |text: &str, most: usize| {
        let run = World::from_environment().expect("a world").evaluator(Options::default().threshold(0.0));
        let made = run.run_options(&most_bytes(most)).statement(text, [("a", &a), ("b", &b)]);
        made.map_err(|error| format!("{most} bytes: {error}"))
    };
    let is_least = |text: &str, least: usize| {
        assert_eq!(with(text, least).err(), None, "{text}");
        assert!(with(text, least - 1).is_err_and(|error| error.contains("exceed")), "{text}");
    };
    // Blocks of an input are the caller's memory, also those without the first tile.
    is_least(r#"r("i,j") = a("i,k").block([2, 0], [4, 4]) * a("j,k").block([0, 0], [2, 4])"#, bytes / 4);
    // Those of what a step made are a part of it: beside the last product there is the first one, and nothing else.
    let of_product = r#"
        let s("i,j") = a("i,k") * a("j,k")
        r("i,j") = s("i,k").block([2, 0], [4, 4]) * s("j,k").block([0, 0], [2, 4])
    "#;
    is_least(of_product, bytes + bytes / 4);
    // A block beside what it is of is not counted twice.
    let beside = r#"
        let s("i,j") = a("i,k") * a("j,k")
        r("i,j") = s("i,k").block([2, 0], [4, 4]) * s("j,k")
    "#;
    is_least(beside, bytes + bytes / 2);
    // A block that outlives what it is of takes its own bytes.
    let outlives = r#"
        let s("i,j") = a("i,k") * a("j,k")
        let t = tensor.block(s, [0, 0], [2, 2])
        let v("i,j") = a("i,k") * b("j,k")
        r("i,j") = t("i,k") * v("j,k").block([2, 2], [4, 4])
    "#;
    is_least(outlives, bytes + bytes / 4);
    // Only ranges that begin or end within tiles are copied.
    let journal = Journal::default();
    let run = World::from_environment().expect("a world").evaluator(Options::default().threshold(0.0));
    let text = r#"
        let s("i,j") = a("i,k") * a("j,k")
        let u = tensor.slice(s, 0, 1, 5)
        r("i,j") = s("i,k").block([2, 0], [4, 2]) * s("j,k").block([0, 0], [2, 2])
        q("i,j") = u("i,k") * s("j,k").block([0, 0], [2, 4])
    "#;
    run.journal(journal.clone()).statements(text, [("a", &a)]).expect("values");
    let count = |work: StepKind| journal.steps().iter().filter(|step| step.work == work).count();
    assert_eq!((count(StepKind::View), count(StepKind::Part)), (3, 1), "{:?}", journal.steps());
}

#[test]
fn gradients_go_through_blocks() {
    let text = "tile i, j = 2\ninput a: tiled[f64, \"i,j\"]\nlet y = (a(\"i,j\").block([0, 1], [1, 3]) * a(\"i,j\").block([0, 1], [1, 3])).sum()\noutput g = tensor.grad(y, a)";
    let a = tensor(&[4, 5]);
    for backend in [Backend::Native, Backend::Interpreter] {
        let executor = compiled(text, backend).expect("a model");
        let made = executor.session().run_tensors(std::slice::from_ref(&a)).expect("values")[0].clone();
        let expected: Vec<f64> = floats(&a)
            .into_iter()
            .enumerate()
            .map(|(at, element)| if at / 5 < 2 && at % 5 >= 2 { 2.0 * element } else { 0.0 })
            .collect();
        assert_eq!(floats(&made), expected);
        assert_eq!(executor.run_reference(std::slice::from_ref(&a)).expect("values")[0], made);
    }
}

#[test]
fn a_model_with_blocks_is_the_same_from_a_file() {
    let model = Model::parse(MODEL).expect("a model");
    assert!(Model::from_binary(&model.to_binary()).expect("a model").program() == model.program());
}
