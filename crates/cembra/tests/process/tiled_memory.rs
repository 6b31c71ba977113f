//! The bytes that evaluations on tiled tensors allocate, compared with the bytes in their plans.

use crate::alone;
use crate::counting::peak_of;
use cembra::tensor::Tensor;
use cembra::tiles::{
    MOST_TILES, Operand, Options, Run, Segment, Shape, Step, TensorInformation, TilePlace, Tiled, Tiling, Tiling1,
};
use cembra::{Limits, Model, RunOptions, Scalar};

const EXTENT: u64 = 640;

/// Returns a matrix of random numbers in which the fraction `part` of the tiles is present.
fn matrix(part: f64, seed: u64) -> Tiled {
    let axis = Tiling1::blocked(EXTENT, 32).expect("tiles");
    let tiling = Tiling::new([&axis, &axis]).expect("a tiling");
    Tiled::random::<f64>(&Shape::random(&tiling, part, seed, MOST_TILES).expect("a shape"), seed).expect("memory")
}

/// Returns the most bytes that a step takes: its result and the other memory that it needs at the same time.
fn most(steps: &[Step]) -> usize {
    steps.iter().map(|step| step.bytes + step.held_bytes).max().unwrap_or(0)
}

#[test]
fn evaluations_hold_what_their_plans_say() {
    let _alone = alone();
    let models = [
        "c(\"i,j\") = a(\"i,k\") * b(\"k,j\")",
        "output c(\"i,j\") = a(\"i,k\") * b(\"k,l\") * a(\"l,j\")\noutput d = exp(c) - 1.0",
        "let c(\"i,j\") = a(\"i,k\") * b(\"k,j\")\nlet d(\"i,j\") = 2.0 * c(\"i,j\") - c(\"i,k\") * c(\"k,j\")\ne(\"j,i\") = d(\"i,j\")",
        "let c(\"i,j\") = a(\"i,k\") * b(\"j,k\")\noutput d(\"i\") = c(\"i,j\") * c(\"i,j\")\noutput s = tensor.sum(c * c)",
        "c(\"i,j\") = a(\"i,k\").block([0, 2], [15, 9]) * b(\"k,j\").block([2, 0], [9, 15])",
    ];
    for (part, text) in [1.0, 0.3, 0.05].into_iter().flat_map(|part| models.map(|text| (part, text))) {
        let text = format!("tile i, j, k, l = 32\ninput a: tiled[f64, \"i,k\"], b: tiled[f64, \"k,j\"]\n{text}");
        let model = Model::parse(&text).and_then(|model| model.compile(&cembra::Options::default())).expect("a model");
        let (a, b) = (matrix(part, 1), matrix(part, 2));
        // Screened by nothing, so that the plan has as many tiles as there will be. On the thread that is counted.
        let run = || Run::new(Options::default().threshold(0.0), &cembra::Options::default());
        let known =
            [("a", &a), ("b", &b)].map(|(name, tiled)| (name, TensorInformation::Operand(Operand::Tiled(tiled))));
        let planned = most(&run().tiled(&model).plan(known).expect("a plan"));
        let evaluate =
            || run().tiled(&model).run([("a", Operand::Tiled(&a)), ("b", Operand::Tiled(&b))]).expect("values");
        // The library of products keeps memory for each thread that asks for one: twice a cache, whatever the product.
        drop(evaluate());
        let (made, held) = peak_of(evaluate);
        drop(made);
        // A tenth, and what shapes, plans, tasks and code of elements take.
        let most = planned + planned / 10 + (1 << 20);
        assert!(held <= most, "{held} bytes, of {planned} that were planned: {part}, {text}");
        // And the plan says no more than there is.
        assert!(planned <= held, "{held} bytes, of {planned} that were planned: {part}, {text}");
    }
}

/// Returns the options of a run that takes at most `most` bytes.
fn limited(most: usize) -> RunOptions {
    RunOptions::new().limits(Limits::default().array_bytes(most as u64))
}

/// Returns a lazy matrix with the tiles of `matrix(part, seed)`. A tile is computed when it is needed, from its number.
fn lazy(part: f64, seed: u64) -> Tiled {
    let source = |place: &TilePlace| Tensor::new(&place.extents(), vec![1.0 / (1 + place.number) as f64; 32 * 32]);
    Tiled::lazy(matrix(part, seed).shape(), Scalar::Float64, source).expect("floats")
}

/// A product keeps several tiles of lazy operands, and partial sums, in memory at the same time, as far as the limit
/// allows. The plan states how many bytes these take, and the evaluation takes no more.
#[test]
fn evaluations_hold_as_many_lazy_tiles_as_their_plans_say() {
    let _alone = alone();
    let products = [
        "c(\"i,j\") = a(\"i,k\") * v(\"k,j\")",
        "c(\"i,j\") = v(\"i,k\") * v(\"k,j\")",
        "c(\"j,i\") = v(\"k,i\") * a(\"k,j\")",
        "c(\"i,j\") = a(\"i,k\") * v(\"l,k\") * v(\"l,j\")",
    ];
    let others = ["c(\"i,j\") = a(\"i,j\") + 2.0 * exp(v(\"i,j\"))", "output c = tensor.slice(v, 0, 8, 600)"];
    let (a, v) = (matrix(1.0, 1), lazy(1.0, 2));
    // Half of the tiles of one lazy operand.
    let half = 200 * 32 * 32 * 8;
    for (text, tiles) in products.iter().chain(&others).flat_map(|text| [64, 2].map(|tiles| (text, tiles))) {
        let text = format!("tile i, j, k, l = 32\ninput a: tiled[f64, \"i,k\"], v: tiled[f64, \"k,j\"]\n{text}");
        let model = Model::parse(&text).and_then(|model| model.compile(&cembra::Options::default())).expect("a model");
        let run = |most_bytes: usize| {
            let segment = Segment { elements: 8192, tiles };
            let run = Run::new(Options::default().threshold(0.0).segment(segment), &cembra::Options::default());
            run.run_options(&limited(most_bytes))
        };
        let known =
            [("a", &a), ("v", &v)].map(|(name, tiled)| (name, TensorInformation::Operand(Operand::Tiled(tiled))));
        let plan = |most_bytes: usize| run(most_bytes).tiled(&model).plan(known).map(|steps| most(&steps));
        let evaluate = |most_bytes: usize| {
            run(most_bytes).tiled(&model).run([("a", Operand::Tiled(&a)), ("v", Operand::Tiled(&v))])
        };
        let wide = plan(usize::MAX).expect("a plan");
        for most_bytes in [wide, wide - half] {
            let planned = match plan(most_bytes) {
                Ok(planned) => planned,
                Err(error) => {
                    // Nothing but products holds less where there is less.
                    assert!(
                        most_bytes < wide && !products.iter().any(|product| text.ends_with(product)),
                        "{text}: {error}"
                    );
                    assert_eq!(evaluate(most_bytes).expect_err("an error").to_string(), error.to_string(), "{text}");
                    continue;
                }
            };
            drop(evaluate(most_bytes).expect("values"));
            let (made, held) = peak_of(|| evaluate(most_bytes).expect("values"));
            drop(made);
            let seen = format!(
                "{held} bytes, of {planned} that were planned and {most_bytes} that there may be: {tiles} {text}"
            );
            assert!(planned <= most_bytes && planned <= held && held <= planned + planned / 10, "{seen}");
            // Shapes, plans, tasks and code of elements are not counted.
            assert!(held <= most_bytes + (1 << 20), "{seen}");
        }
    }
}

/// The test has a million tiles of one element. The memory that tiles take besides their elements, and that of plans,
/// counts for the limit before it is allocated.
#[test]
fn tiles_and_plans_count_against_the_limit() {
    const MOST: usize = 64 << 20;
    let _alone = alone();
    let texts = [
        "c(\"i,j\") = a(\"i,k\") * b(\"k,j\")",
        "output s = tensor.sum(a * b)",
        "c(\"i,k\") = 2.0 * exp(a(\"i,k\")) + a(\"i,k\")",
        "c(\"k,i\") = a(\"i,k\")",
        "output c = tensor.slice(a, 0, 1, 990)",
        "output c = tensor.sum(a, 0)",
    ];
    let dense = Tensor::new(&[500, 500], vec![1.0; 500 * 500]).expect("a tensor");
    let run = || Run::new(Options::default(), &cembra::Options::default()).run_options(&limited(MOST));
    let most = MOST + MOST / 4 + (50 << 20);
    for text in texts {
        let text = format!("tile i, j, k = 1\ninput a: tiled[f64, \"i,k\"], b: tiled[f64, \"k,j\"]\n{text}");
        let model = Model::parse(&text).and_then(|model| model.compile(&cembra::Options::default())).expect("a model");
        for extents in [&[1000; 2], &[1_000_000; 2]] {
            let known = ["a", "b"].map(|name| (name, TensorInformation::Extents(extents)));
            let (planned, held) = peak_of(|| run().tiled(&model).plan(known));
            assert_eq!(planned.map(|_| ()).expect_err("too much").code(), "limit", "{extents:?}: {text}");
            assert!(held <= most, "{held} bytes for the plan of {extents:?}: {text}");
        }
        let inputs = [("a", Operand::Dense(&dense)), ("b", Operand::Dense(&dense))];
        let (made, held) = peak_of(|| run().tiled(&model).run(inputs));
        assert_eq!(made.map(|_| ()).expect_err("too much").code(), "limit", "{text}");
        assert!(held <= most, "{held} bytes: {text}");
        let is_product = text.contains("a(\"i,k\") * b(\"k,j\")");
        let plan = |extent: usize| {
            let extents = [extent; 2];
            run().tiled(&model).plan(["a", "b"].map(|name| (name, TensorInformation::Extents(&extents)))).map(|_| ())
        };
        // Fewer tiles, which have room. Their products have none: at 180 beside the tiles of the result, at 200 also without these, which
        // is found while the plan is made.
        for (extent, says) in [(180, "bytes besides elements"), (200, "bytes for a plan of")] {
            let few = plan(extent).map_err(|error| (error.code(), error.message().contains(says)));
            assert_eq!(few.err(), is_product.then_some(("limit", true)), "{extent}: {text}");
        }
    }
}
