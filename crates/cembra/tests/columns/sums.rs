//! Tests sums of computed elements, such as `sum(x * y)`: every row player (backend) gives the bits of the interpreter,
//! for any number of elements. Where possible, the compiled code adds the elements while it computes them, in blocks of
//! any length.

use cembra::explain::RowPlayer;
use cembra::values::ArrayKind;
use cembra::{Array, Backend, Model, Options, Scalar, Value};

/// Numbers of elements around all limits: of sums in sequence (64), of words of bits, and of the blocks in which
/// elements are computed and added.
const SIZES: [usize; 16] = [0, 1, 2, 63, 64, 65, 128, 1023, 1024, 1025, 16_384, 16_390, 65_535, 65_536, 65_537, 70_000];

/// The number of elements from which on a model is tested with only one in three row players, to save time; which ones,
/// changes from model to model.
const LARGE: usize = 16_384;
const ONE_IN: usize = 3;

const MODELS: &[&str] = &[
    "input x: [f64?]; input y: [f64]; math.sum(where(x > 0.0, x * y))",
    // What is summed is counted too.
    "input x: [f64?]; input y: [f64]\nlet p = where(x > 0.0, x * y)\noutput s = math.sum(p); output n = array.count(p); output m = math.mean(p)",
    // Nothing is missing.
    "input x: [f64?]; input y: [f64]; output s = math.sum(y * y); output n = array.count(x)",
    // Two sums of one plan, three, and so many that they do not stay in registers.
    "input x: [f64?]; input y: [f64]\noutput a = math.sum(x * 2.0); output b = math.sum(y - 1.0)",
    "input x: [f64?]; input y: [f64]\noutput a = math.sum(x * 2.0); output b = math.mean(y - 1.0); output c = math.sum(x * y)",
    // Sums of FLOAT32 are made in FLOAT64.
    "input x: [f64?]; input y: [f64]\nlet f = core.to_float32(x * y)\noutput a = math.sum(f * f); output b = math.mean(f + f)",
    // Seen by somebody else, in strips and as an array.
    "input x: [f64?]; input y: [f64]\nlet p = x * y\noutput s = math.sum(p); output m = math.max(p); output t = math.sum(x - y)",
    "input x: [f64?]; input y: [f64]\noutput p = x * y; output s = math.sum(p); output t = math.sum(p + x)",
    "input x: [f64?]; input y: [f64]\nlet p = x * y\noutput s = math.sum(p); output c = math.cum_sum(p, over=edge.to_scalar(p))",
    // Longer bodies, with conditions, functions and calls of kernels.
    "input x: [f64?]; input y: [f64]; math.sum(where(y > 1.0, math.exp(x), math.log(y) * x) + math.sigmoid(x, 0.5, 2.0))",
    "input x: [f64?]; input y: [f64]; math.sum(math.float(strings.length(strings.as_text(core.to_int64(y)))) * x)",
    "input x: [f64?]; input y: [f64]; math.sum(x ?? y) + math.sum(math.sqrt(y * y) / (y + 0.5))",
    // What all elements share, and results of an earlier pass.
    "input x: [f64?]; input y: [f64]; math.sum((x - math.mean(x)) * y) / math.std(y)",
    // Zeros of the other sign, all of them missing, NaNs.
    "input x: [f64?]; input y: [f64]; output s = math.sum(y * 0.0 * (0.0 - 1.0)); output n = array.count(x)",
    "input x: [f64?]; input y: [f64]; math.mean(where(y > 1.0e300, x * y))",
    "input x: [f64?]; input y: [f64]; math.sum(where(x < 0.0, math.sqrt(x) * y, x))",
    // Over groups: no sum of all.
    "input x: [f64?]; input y: [f64]; math.sum(x * y, into=edge.from_mapping(core.to_int64(y * 0.0), 1))",
];

/// Returns the next pseudo-random number. Sums of these numbers are rounded; some are zeros of both signs.
fn number(state: &mut u64) -> f64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    let drawn = *state >> 40;
    match drawn % 50 {
        0 => 0.0,
        1 => -0.0,
        _ => (drawn as f64 / 3e5 - 27.0) * if drawn.is_multiple_of(7) { 1e9 } else { 1.3 },
    }
}

/// Returns two arrays of `size` elements. In the first, `gaps` percent of the elements are missing.
fn inputs(size: usize, gaps: u64) -> Vec<Value> {
    let mut state = size as u64 + 77;
    let mut words = |all: &mut [f64]| all.iter_mut().for_each(|to| *to = number(&mut state));
    let mut draw = gaps + 3;
    let mut bit = || {
        draw = draw.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        u64::from((draw >> 33) % 100 >= gaps)
    };
    let presence = (0..size.div_ceil(64)).map(|_| (0..64).fold(0, |word, at| word | bit() << at)).collect();
    let presence = (gaps > 0).then_some(presence);
    let x = Array::of_numbers(Scalar::Float64, size, presence, &mut words).expect("an array");
    let y = Array::of_numbers(Scalar::Float64, size, None, &mut words).expect("an array");
    [x, y].map(|array| Value::Array(ArrayKind::Dense, array.into())).to_vec()
}

fn options(player: RowPlayer) -> Options {
    Options::default().backend(Backend::Native).row_player(player)
}

#[test]
fn sums_have_the_bits_of_the_reference() {
    let given: Vec<(usize, u64, Vec<Value>)> = SIZES
        .into_iter()
        .zip([[0, 30], [100, 0], [1, 60]].into_iter().cycle())
        .flat_map(|(size, gaps)| gaps.map(|gaps| (size, gaps, inputs(size, gaps))))
        .collect();
    for (number, text) in MODELS.iter().enumerate() {
        let model = Model::parse(text).expect("a model");
        let reference = model.compile(&Options::default().backend(Backend::Interpreter)).expect("an executor");
        let mut reference = reference.session();
        // A session keeps its memory from one number of elements to the next.
        let session = |player| {
            let session = model.compile(&options(player)).expect("an executor").session();
            match session.clone().evaluate(&inputs(100, 10)) {
                // A machine may lack a player.
                Err(error) if error.code() == "native" => None,
                made => Some((player, made.map(|_| session).expect(text))),
            }
        };
        let mut sessions: Vec<_> = RowPlayer::ALL.into_iter().filter_map(session).collect();
        for (turn, (size, gaps, inputs)) in given.iter().enumerate() {
            let expected = reference.evaluate(inputs).expect("values");
            let is_run = |at: usize| *size < LARGE || (at + turn + number).is_multiple_of(ONE_IN);
            for (_, (player, session)) in sessions.iter_mut().enumerate().filter(|(at, _)| is_run(*at)) {
                let found = session.evaluate(inputs).expect("values");
                for (found, expected) in found.iter().zip(&expected) {
                    let what = || format!("{player:?}, {size} elements, {gaps} % missing\n{text}");
                    assert!(found.same(expected), "{found} is not {expected}: {}", what());
                }
            }
        }
    }
}

/// If an element fails, the sum of the elements before it does not affect the next evaluation.
#[test]
fn an_element_that_fails_is_the_error() {
    let model = Model::parse("input x: [f64?]; input y: [f64]; math.sum(y // x)").expect("a model");
    let mut inputs = inputs(3000, 10);
    let zero_at = |element: usize| {
        let write =
            |all: &mut [f64]| all.iter_mut().enumerate().for_each(|(at, to)| *to = (at as f64) - element as f64);
        Value::Array(ArrayKind::Dense, Array::of_numbers(Scalar::Float64, 3000, None, write).expect("an array").into())
    };
    for player in [RowPlayer::Best, RowPlayer::Lanes128, RowPlayer::Native] {
        let mut session = model.compile(&options(player)).expect("an executor").session();
        let before = session.evaluate(&inputs).map(|made| made[0].to_string());
        for element in [0, 70, 2999] {
            let good = std::mem::replace(&mut inputs[0], zero_at(element));
            let error = session.evaluate(&inputs).expect_err("a division by zero");
            assert_eq!((error.code(), error.element()), ("div-by-zero", Some(element)), "{player:?}");
            inputs[0] = good;
            let again = session.evaluate(&inputs).map(|made| made[0].to_string());
            assert_eq!(before.as_ref().ok(), again.as_ref().ok(), "{player:?}");
        }
    }
}
