//! Tests models with long arrays on several threads: results must not depend on the number of threads.

use cembra::values::ArrayKind;
use cembra::{Array, Backend, Edge, Model, Options, Scalar, Value};
use std::slice;

/// Returns an array of the numbers `values`. An element is present if `is_there` returns true for its index; without
/// `is_there`, all are.
fn doubles(values: &[f64], is_there: Option<&dyn Fn(usize) -> bool>) -> Value {
    let word = |is_there: &dyn Fn(usize) -> bool, word: usize| {
        (0..64).fold(0, |bits, at| bits | u64::from(is_there(64 * word + at)) << at)
    };
    let presence =
        is_there.map(|is_there| (0..values.len().div_ceil(64)).map(|at| word(is_there, at)).collect::<Vec<u64>>());
    let write = |all: &mut [f64]| all.copy_from_slice(values);
    let array = Array::of_numbers(Scalar::Float64, values.len(), presence, write).expect("an array");
    Value::Array(ArrayKind::Dense, array.into())
}

/// The input values for the models of this file: two arrays, and an edge that groups their elements.
struct Given {
    x: Value,
    y: Value,
    by: Value,
}

impl Given {
    /// Returns arrays of `size` elements, and an edge that groups them.
    fn of(size: i64) -> Given {
        let mut state = 7_u64;
        let mut next = move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            f64::from((state >> 33) as u32) / f64::from(1_u32 << 31)
        };
        let y: Vec<f64> = (0..size).map(|_| next()).collect();
        let x: Vec<f64> = (0..size).map(|at| if at % 1000 == 999 { -0.0 } else { next() * 2.0 }).collect();
        let mut points = vec![0_i64];
        let mut end = 0;
        while end < size {
            // Empty groups, small ones and some that are longer than a share.
            let length = match points.len() % 50 {
                0 => 0,
                7 => 90_000,
                other => other as i64 * 3,
            };
            end = size.min(end + length);
            points.push(end);
        }
        let by = Value::Edge(Edge::from_split_points(ArrayKind::Dense, points).expect("split points").into());
        Given { x: doubles(&x, Some(&|at: usize| at % 7 != 3)), y: doubles(&y, None), by }
    }

    /// Evaluates the model `text` twice for each number of threads in `threads`, and compares the results with the
    /// interpreter's.
    fn check(&self, text: &str, threads: &[usize]) {
        let model = Model::parse(text).expect(text);
        let executor = model.compile(&Options::default()).expect(text);
        let value = |name: &str| match name {
            "x" => self.x.clone(),
            "y" => self.y.clone(),
            _ => self.by.clone(),
        };
        let inputs: Vec<Value> = executor.inputs().iter().map(|input| value(&input.name)).collect();
        let interpreter = model.compile(&Options::default().backend(Backend::Interpreter)).expect(text);
        let expected = interpreter.session().evaluate(&inputs).expect(text);
        for &threads in threads {
            let mut session = executor.session();
            session.set_threads(threads);
            for _ in 0..2 {
                // Equal values are the same bits.
                assert!(session.evaluate(&inputs).expect(text) == expected, "{text} on {threads} threads");
            }
        }
    }
}

/// The work on a long array is divided among threads. Neither a bit of the result nor the error depends on their
/// number.
#[test]
fn threads_change_no_bit() {
    let models = [
        "input x: [f64?]; input y: [f64]; output a = math.sum(where(x > 0.0, x * y)); output b = math.mean(x + y)
         output c = math.max(x * y); output d = math.min(x); output e = array.count(x > y); output f = math.prod(y / 400.0 + 1.0)
         output g = array.count(x)",
        "input x: [f64?]; input y: [f64]; output z = (x - math.mean(x)) / math.std(x); output w = y > 0.5; output v = x > y",
        "input x: [f64?]; input y: [f64]; let n = core.to_int32(y * 100.0); output a = math.sum(n); output b = math.max(n)
         output c = core.any(x > 1.5); output d = core.all(y < 1.0); output e = bool.logical_any(bool.less(y, 0.0)); output h = bool.logical_all(bool.less(x, 2.0))
         output f = math.sum(core.to_float32(y))",
        "input y: [f64]; input by: splits; math.softmax(y, over=by)",
        "input y: [f64]; input by: splits; output p = math.softmax(y, over=by); output m = math.max(y, into=by)
         output q = y - array.expand(math.mean(y * 2.0, into=by), over=by)",
        "input x: [f64?]; input by: splits; output p = x / array.expand(math.sum(x, into=by), over=by); output n = array.count(x, into=by)",
    ];
    // Of fewer than two blocks of sums one thread does all, of few more two do, and of the last three.
    let sizes: [(i64, &[usize]); 4] =
        [(131_071, &[3]), (131_072, &[2]), (131_073, &[1, 3]), (262_144 + 17, &[0, 2, 3])];
    for (size, threads) in sizes {
        let given = Given::of(size);
        for text in models {
            given.check(text, threads);
        }
        let failing = "input y: [f64]; math.sum(core.to_int32(y * 100.0) // core.to_int32(y * 3000.0))";
        let mut sessions = [Backend::Native, Backend::Interpreter].map(|backend| {
            Model::parse(failing).unwrap().compile(&Options::default().backend(backend)).unwrap().session()
        });
        sessions[0].set_threads(3);
        let [shared, alone] =
            sessions.each_mut().map(|session| session.evaluate(slice::from_ref(&given.y)).unwrap_err().to_string());
        assert_eq!(shared, alone);
    }
}

/// Arrays of 16 MiB and more are written with stores that bypass the caches. This must work for every alignment of the
/// first element that a thread writes.
#[test]
fn what_goes_past_the_caches_is_whole() {
    let given = Given::of((1 << 21) + 1027);
    for text in [
        "input x: [f64?]; let whole = edge.to_scalar(x); output a = math.cum_sum(x, over=whole); output b = math.cum_max(x, over=whole)",
        "input y: [f64]; output a = y * 2.0; output b = y > 0.5; output c = math.sum(y)",
        "input y: [f64]; input by: splits; output p = math.softmax(y, over=by); output m = math.max(y, into=by)",
        "input x: [f64?]; input by: splits; output p = x / array.expand(math.sum(x, into=by), over=by)",
    ] {
        given.check(text, &[1, 3]);
    }
}
