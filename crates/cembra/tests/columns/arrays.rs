//! Tests the results and errors of models with arrays. The fuzzer, not this file, checks in general that fused programs
//! (several operators in one loop) give the results of the interpreter.

use cembra::errors::Code;
use cembra::json::{Json, JsonRow, JsonRows};
use cembra::native::Target;
use cembra::operators::{Registry, UserOperator};
use cembra::values::{ArrayData, ArrayKind};
use cembra::{
    Array, Backend, Cancellation, Error, FaultKind, Limits, Model, Options, Pool, Scalar, ScalarValue, Value,
};
use cembra_engine::LoadedRows;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

fn evaluate(text: &str, inputs: &[Value], backend: Backend) -> Result<Vec<Value>, Error> {
    Model::parse(text)?.compile(&Options::default().backend(backend))?.session().evaluate(inputs)
}

/// Evaluates the model `text` with both backends, checks that they agree, and returns the outputs as text. The native
/// backend fuses operators into loops, the interpreter does not.
fn shown(text: &str, inputs: &[Value]) -> String {
    let [fused, reference] =
        [Backend::Native, Backend::Interpreter].map(|backend| match evaluate(text, inputs, backend) {
            Ok(values) => values.iter().map(Value::to_string).collect::<Vec<_>>().join("; "),
            Err(error) => format!("{}: {}", error.code(), error.message()),
        });
    assert_eq!(fused, reference, "{text}");
    fused
}

fn doubles(values: &[Option<f64>]) -> Value {
    let array = Array::from_scalars(Scalar::Float64, values.iter().map(|value| value.map(ScalarValue::Float64)));
    Value::Array(ArrayKind::Dense, array.into())
}

#[test]
fn operators_lift_over_arrays() {
    let x = doubles(&[Some(1.0), None, Some(-3.0)]);
    let cases = [
        ("input x: [f64?]; x * 2.0 + 1.0", "[3, NA, -5]"),
        ("input x: [f64?]; where(x > 0.0, x)", "[1, NA, NA]"),
        ("input x: [f64?]; (x ?? 7.0) ** 2", "[1, 49, 9]"),
        ("input x: [f64?]; core.has(x)", "[unit, NA, unit]"),
        ("input x: [f64?]; core.zeros_like(x)", "[0, 0, 0]"),
        ("input x: [f64?]; math.sum(where(x < 0.0, x * x))", "f64{9}"),
        ("input x: [f64?]; if x > 0.0 then 1 else 2", "[1, 2, 2]"),
        ("input x: [f64?]; x[0] + x[2]", "f64?{-2}"),
        ("input x: [f64?]; strings.as_text(x)", "['1', NA, '-3']"),
        ("input x: [f64?]; core.cast(x, QTYPE{[f32?]})", "[1, NA, -3]"),
        ("input x: [f64?]; array.count(x, into=edge.from_sizes([1, 0, 2]))", "[1, 0, 1]"),
        ("input x: [f64?]; let t = (x, array.size(x)); t.1", "i64{3}"),
        (
            "input x: [f64?]; output y = x + 1.0; output n = math.mean(x); output z = x - math.mean(x)",
            "[2, NA, -2]; f64?{-1}; [2, NA, -2]",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(shown(text, std::slice::from_ref(&x)), expected, "{text}");
    }
}

#[test]
fn a_mask_as_an_index_selects_elements() {
    let x = doubles(&[Some(1.0), None, Some(-3.0), Some(2.0)]);
    for (text, expected) in [
        ("input x: [f64?]; x[x > 0.0]", "[1, 2]"),
        ("input x: [f64?]; x[not has(x)]", "[NA]"),
        ("input x: [f64?]; sum(x[x < 1.5] * 2.0)", "f64{-4}"),
        ("input x: [f64?]; x[x > 5.0]", "[]"),
        ("input x: [f64?]; array.size(x[x > -5.0 and x < 2.0])", "i64{2}"),
        ("input x: [f64?]; x[x > 0.0][1]", "f64?{2}"),
        ("input x: [f64?]; array.at(x, x == 2.0)", "[2]"),
        ("input x: [f64?]; [\"a\", \"b\", \"c\", \"d\"][has(x)]", "['a', 'c', 'd']"),
        ("input x: [f64?]; x[[3, 0]]", "[2, 1]"),
        ("input x: [f64?]; x[[1.0, 2.0] > 0.0]", "size-mismatch: "),
    ] {
        let found = shown(text, std::slice::from_ref(&x));
        assert!(
            if expected.ends_with(' ') { found.starts_with(expected) } else { found == expected },
            "{text}: {found}"
        );
    }
    let error = evaluate("input x: [f64], b: [bool]; x[b]", &[], Backend::Native).expect_err("no index");
    assert_eq!(error.diagnostics()[0].hints(), ["write `a[b == true]` for the elements where `b` is true"]);
}

#[test]
fn conditions_of_scalars_choose_and_those_of_elements_select() {
    let x = doubles(&[Some(1.0), Some(0.0)]);
    let one = "input x: [f64?]; input c: bool; if c then x // 0.0 else x";
    assert_eq!(shown(one, &[x.clone(), Value::from(false)]), "[1, 0]");
    assert!(shown(one, &[x.clone(), Value::from(true)]).starts_with("div-by-zero: math.floor_divide"));
    // Both arms are computed for each element, and may fail.
    let each = "input x: [f64?]; where(x > 0.0, 6.0 // x, x)";
    assert!(shown(each, std::slice::from_ref(&x)).starts_with("div-by-zero"));
    // A missing element does not.
    assert_eq!(shown(each, &[doubles(&[Some(4.0), None])]), "[1, NA]");
    let sums = "input x: [f64?]; input c: bool; if c then math.sum(x) else math.sum(x // 0.0)";
    assert_eq!(shown(sums, &[x, Value::from(true)]), "f64{1}");
}

/// Conditionals and loops over scalars work if their conditions and bounds are computed from arrays, such as `sum(x)`.
#[test]
fn scalars_are_chosen_and_looped_over_by_what_arrays_say() {
    let x = doubles(&[Some(1.0), Some(3.0)]);
    for (text, expected) in [
        ("input x: [f64?]; input k: i32; if math.sum(x) > 9.0 then 1 // k else 5", "5"),
        ("input x: [f64?]; input k: i32; if math.sum(x) > 2.0 then (if k > 0 then 1 // k else 7) else 5", "7"),
        ("input x: [f64?]; input k: i32; k + seq.reduce(math.add, seq.range(core.to_int64(math.sum(x))), 0)", "i64{6}"),
        (
            "input x: [f64?]; input k: i32; let n = core.to_int64(math.sum(x))\n\
             seq.reduce(fn(s, i) = if i > k then s + i * n else s, seq.range(n), 1)",
            "i64{25}",
        ),
        ("input x: [f64?]; input k: i32; seq.reduce(fn(s, i) = s + k + math.sum(x) * i, seq.range(3), 0)", "f64{12}"),
    ] {
        assert_eq!(shown(text, &[x.clone(), Value::from(0)]), expected, "{text}");
    }
}

#[test]
fn loops_over_arrays_end_by_their_limit_or_are_cancelled() {
    let x = doubles(&[Some(1.0), None]);
    let model = Model::parse("input x: [f64?]; core.while_loop(x, fn(s) = core.has(x[0]), fn(s) = s + 1.0)").unwrap();
    for backend in [Backend::Native, Backend::Interpreter] {
        let limits = |loop_iterations| Limits::default().loop_iterations(loop_iterations);
        let options = |most| Options::default().backend(backend).limits(limits(most));
        let error = model.compile(&options(3)).unwrap().session().evaluate(std::slice::from_ref(&x)).unwrap_err();
        assert_eq!((error.code(), error.fault_kind()), ("iteration-limit", Some(FaultKind::IterationLimit)));
        assert_eq!(error.operator(), Some("core.while_loop"));
        let (executor, token) = (model.compile(&options(u64::MAX)).unwrap(), Cancellation::new());
        let ended = std::thread::scope(|scope| {
            let run = scope.spawn(|| {
                let mut session = executor.session();
                session.set_cancellation(Some(token.clone()));
                session.evaluate(std::slice::from_ref(&x))
            });
            token.cancel();
            run.join().unwrap()
        });
        assert_eq!(ended.unwrap_err().code(), "cancelled");
    }
    // Exactly the limit is allowed: a first round, and two more.
    let three = "input x: [f64?]; seq.reduce(fn(s, i) = s + x, seq.range(core.to_int64(math.sum(x)) + 2), x)";
    for (most, expected) in [(2, true), (1, false)] {
        let limits = Limits::default().loop_iterations(most);
        let model = Model::parse(three).unwrap().compile(&Options::default().limits(limits)).unwrap();
        assert_eq!(model.session().evaluate(std::slice::from_ref(&x)).is_ok(), expected, "{most}");
    }
}

/// Arrays of units take no memory, so they may have any length. Arrays computed from them would take too much memory or
/// time, so both backends reject lengths above the limit `array_bytes`.
#[test]
fn units_without_end_are_refused() {
    let units = |len: usize| {
        let array = Array::from_parts(Scalar::Unit, len, ArrayData::Units, None).unwrap();
        Value::Array(ArrayKind::Dense, array.into())
    };
    for text in ["input x: [unit]; where(x, 1.0)", "input x: [unit]; math.sum(where(x, 1))", "input x: [unit]; x"] {
        for backend in [Backend::Native, Backend::Interpreter] {
            let mut session =
                Model::parse(text).unwrap().compile(&Options::default().backend(backend)).unwrap().session();
            // So many of 8 bytes are as many bytes as there are addresses, and none.
            for len in [(1 << 28) + 1, 1 << 61, usize::MAX] {
                let error = session.evaluate(&[units(len)]).unwrap_err();
                assert_eq!(error.fault_kind(), Some(FaultKind::ArenaLimit), "{text}: {error}");
                assert!(error.diagnostics()[0].hints()[0].ends_with("or raise the limit `array_bytes`"));
            }
            assert!(session.evaluate(&[units(70)]).is_ok());
        }
    }
    // What a plan would make is counted before it is made.
    let limits = Limits::default().array_bytes(1 << 20);
    let model = Model::parse("input x: [unit]; where(x, 1.0)").unwrap();
    for backend in [Backend::Native, Backend::Interpreter] {
        let mut session = model.compile(&Options::default().backend(backend).limits(limits)).unwrap().session();
        let error = session.evaluate(&[units(1 << 28)]).unwrap_err();
        assert_eq!((error.code(), error.operator()), ("arena-limit", Some("where")), "{error}");
    }
}

/// If computing an element fails, the evaluation fails, even if another operator ignores the element's value, as
/// `empty_like` does.
#[test]
fn what_fails_in_an_element_fails_though_its_value_is_not_asked_for() {
    let x = doubles(&[Some(1.0), None, Some(0.0)]);
    for text in [
        "input x: [f64?]; core.empty_like(1.0 // x)",
        "input x: [f64?]; core.zeros_like(x + 1.0 // x)",
        "input x: [f64?]; 5.0 ?? (1.0 // x)",
        "input x: [f64?]; if unit{} then 2.5f32 else 1.0 // x",
        "input x: [f64?]; where(x > 0.0, x, 1.0 // x)",
        "input x: [f64?]; core.empty_like(core.map(fn(e) = 1.0 // e, x))",
    ] {
        assert!(shown(text, std::slice::from_ref(&x)).starts_with("div-by-zero: math.floor_divide"), "{text}");
    }
}

/// Regression tests for bugs that the fuzzer found in sweeps (passes over arrays in blocks).
#[test]
fn what_was_found_in_sweeps_stays_mended() {
    let x = doubles(&[Some(1.0), Some(2.0), Some(4.0)]);
    for (text, expected) in [
        ("input x: [f64?]; math._sum_sparse(x, DENSE_ARRAY_TO_SCALAR_EDGE{2})", "size-mismatch: "),
        ("input x: [f64?]; output y = unit{} and [unit?]{present}; output n = x[0]", "[unit]; f64?{1}"),
        ("input x: [f64?]; x[0] + math.log(array.randint_with_shape(DENSE_ARRAY_SHAPE{1}, [i32?]{NA}, 0, 0))", "[NA]"),
        // WEAK_FLOAT and its optional have FLOAT32 in common.
        (
            "input x: [f64?]; output y = ARRAY_WEAK_FLOAT{NA, 2.0e-143} > ARRAY_WEAK_FLOAT{0.0, 0.0}; output n = x[0]",
            "[NA, unit]; f64?{1}",
        ),
        // Groups without elements, alone in a strip.
        ("input x: [f64?]; let e = edge.from_sizes([0]); array.expand(math._sum_sparse([i32?]{}, e), e) * x[0]", "[]"),
        // What is counted over one edge is not there while groups of another come.
        (
            "input x: [f64?]; let e = edge.from_sizes([1, 2]); let d = x - array.expand(math.sum(x, e), e)\n\
             array.expand(array.count(d * 2.0, edge{0, 1, 0 : 2}), e)",
            "[2, 1, 1]",
        ),
    ] {
        let found = shown(text, std::slice::from_ref(&x));
        assert!(found == expected || expected.ends_with(": ") && found.starts_with(expected), "{found}\n{text}");
    }
    // More groups than elements, and than a strip has.
    let sizes: Vec<Option<ScalarValue>> =
        (0..5000).map(|at| Some(ScalarValue::Int64(if at == 2500 { 3 } else { 0 }))).collect();
    let sizes = Value::Array(ArrayKind::Dense, Array::from_scalars(Scalar::Int64, sizes).into());
    let text = "input x: [f64?]; input s: [i64?]; let e = edge.from_sizes(s); let m = math.mean(x, e)\n\
                output y = x - array.expand(m * 3.0, e); output n = array.count(m)";
    assert_eq!(shown(text, &[x, sizes]), "[-6, -5, -3]; i64{1}");
}

/// A sum over values of groups adds them in the order for an array with one element per group, not per element. The
/// order of a sum depends on the length of its array.
#[test]
fn sums_of_groups_are_in_the_order_of_groups() {
    let text = "input x: [f64]; let groups = array.slice(x, 0, 40);
                let e = edge.from_sizes(array.expand(2, over=edge.to_scalar(groups)));
                let d = x - array.expand(math.sum(x, into=e) / 3.0, over=e);
                let s = math.sum(d, into=e) * 1.5;
                output apart = array.expand(s, over=e) + x;
                output total = math.sum(s)";
    let x: Vec<_> = (0..80).map(|at| Some(f64::from(at * at % 17) / 7.0 + f64::from(at % 5) * 1e9)).collect();
    let inputs = [doubles(&x)];
    let [native, interpreter] = [Backend::Native, Backend::Interpreter].map(|backend| evaluate(text, &inputs, backend));
    assert_eq!(native.unwrap(), interpreter.unwrap());
}

/// An array that is expanded to groups has one element per group. Expanding it over another edge with another number of
/// groups is an error.
#[test]
fn groups_that_are_made_of_other_groups_have_a_size() {
    let text = "input points: [i64?]
                let g = core.to_uint64(array.expand([0.0, 0.0, 0.0], edge{2, 2, 1, 0, 0 : 3}))
                array.expand(g, edge.from_split_points(points))";
    let points = Array::from_scalars(Scalar::Int64, [0, 2, 4, 5].map(|point| Some(ScalarValue::Int64(point))));
    let inputs = [Value::Array(ArrayKind::Dense, points.into())];
    for backend in [Backend::Native, Backend::Interpreter] {
        assert_eq!(evaluate(text, &inputs, backend).unwrap_err().code(), "size-mismatch");
    }
}

/// An array that is combined with the groups of one edge must have one element per group, even if it is also expanded
/// over another edge.
#[test]
fn what_is_looked_at_over_two_edges_fits_both() {
    let text = "input x: [f64]; input g: [f64]
                let by = edge.from_sizes(array.expand(1, over=edge.to_scalar(x)))
                let other = edge.from_mapping(array.expand(0i64, over=edge.to_scalar(x)), array.size(g))
                x * array.expand(math.sum(x, into=by) * g, over=by) + array.expand(g, over=other)";
    let numbers = |count: u32| doubles(&(0..count).map(|at| Some(f64::from(at))).collect::<Vec<_>>());
    for backend in [Backend::Native, Backend::Interpreter] {
        assert!(evaluate(text, &[numbers(40), numbers(40)], backend).is_ok());
        for size in [2, 39, 41] {
            let fault = evaluate(text, &[numbers(40), numbers(size)], backend).unwrap_err();
            assert_eq!(fault.code(), "size-mismatch", "{size}");
        }
    }
}

/// `zeros_like` of an expanded array needs only the array's size. The size is still checked against the arrays and
/// edges that are combined with it.
#[test]
fn sizes_of_what_nobody_looks_at_are_compared() {
    let text = "input sizes, of: [i64?]
                let like = array.expand([1.5f32], over=edge.from_mapping(of, 1))
                array.expand(core.zeros_like(like), over=edge.from_sizes(sizes))";
    let integers = |all: &[Option<i64>]| -> Value {
        let all = Array::from_scalars(Scalar::Int64, all.iter().map(|one| one.map(ScalarValue::Int64)));
        Value::Array(ArrayKind::Dense, all.into())
    };
    for backend in [Backend::Native, Backend::Interpreter] {
        let made = |of: &[Option<i64>]| evaluate(text, &[integers(&[Some(2), Some(1)]), integers(of)], backend);
        assert_eq!(made(&[Some(0), None]).expect("two groups")[0].to_string(), "[0, 0, 0]");
        for of in [&[][..], &[Some(0)], &[None; 3]] {
            assert_eq!(made(of).unwrap_err().code(), "size-mismatch", "{of:?}");
        }
    }
}

/// Returns `len` pseudo-random numbers, the same in each call; about one in nine is from `specials`.
fn drawn(len: usize, specials: &[f64]) -> Vec<Option<f64>> {
    let mut state = 7_u64;
    let mut draw = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as f64
    };
    let next = |_| {
        let (pick, number) = (draw() as usize, draw() / 2_f64.powi(30) - 1.0);
        Some(if pick % 9 == 0 && !specials.is_empty() { specials[pick / 9 % specials.len()] } else { number })
    };
    (0..len).map(next).collect()
}

fn edge<E: std::fmt::Debug>(edge: Result<cembra::Edge, E>) -> Value {
    Value::Edge(edge.expect("an edge").into())
}

/// Asserts that the native backend gives the interpreter's values for the model `text`, bit for bit.
fn agree(text: &str, inputs: &[Value]) {
    let [fused, reference] = [Backend::Native, Backend::Interpreter].map(|backend| evaluate(text, inputs, backend));
    let (fused, reference) = (fused.expect(text), reference.expect(text));
    assert_eq!(fused.len(), reference.len());
    assert!(fused.iter().zip(&reference).all(|(a, b)| a.same(b)), "{text}");
}

#[test]
fn values_of_groups_meet_elements_as_in_the_reference() {
    let specials = [0.0, -0.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 5e-324, -1e-310, 1e-160, 1e300, -1e305];
    // Empty groups, groups of a few vectors, and one that is longer than a strip.
    let sizes: Vec<i64> = (0..90).map(|at| [0, 1, 7, 8, 9, 31, 0, 64, 65, 200][at % 10]).chain([3000, 0, 5]).collect();
    let len = sizes.iter().sum::<i64>() as usize;
    let splits = edge(cembra::Edge::from_sizes(ArrayKind::Dense, sizes));
    // Elements of no group are few, then many; a group has no element, another only one.
    let mapping = |holes: usize| {
        let id = |at: usize| if at == 9 { 41 } else { (at * 7919 / 3 % 40) as i64 };
        let ids = (0..len).map(|at| (at % holes != 3).then_some(ScalarValue::Int64(id(at))));
        edge(cembra::Edge::from_mapping(ArrayKind::Dense, Array::from_scalars(Scalar::Int64, ids), 43))
    };
    let texts = [
        "math.softmax(x, over=by)",
        "x / array.expand(math.sum(x, into=by), over=by)",
        "(x - array.expand(math.mean(x, into=by), over=by)) / array.expand(math.max(x, into=by), over=by)",
        "output least = math.min(x, into=by); output share = x / array.expand(math.min(x, into=by) * 1e-150, over=by)",
        "array.expand(math.max(x, into=by), over=by) / x",
        "x / array.expand(array.count(x, into=by), over=by)",
        "output n = array.count(x, into=by); output s = math.sum(x, into=by); output m = math.mean(x, into=by)",
        "array.count(math.abs(x) > array.expand(math.std(x, into=by), over=by))",
        "x - array.expand(math.std(x, into=by), over=by)",
        "output most = math.max(x, into=by); output e = array.expand(math.max(x, into=by), over=by)",
    ];
    for specials in [&[][..], &specials, &specials[..2], &[1e-320, 3.0]] {
        let full = drawn(len, specials);
        let gaps =
            full.iter().enumerate().map(|(at, x)| x.filter(|_| at % 11 != 0 && at % 500 > 70)).collect::<Vec<_>>();
        for text in texts {
            for (of, values) in [("f64", &full), ("f64?", &gaps)] {
                let of = |by: &str| format!("input x: [{of}]; input by: {by}; {text}");
                let x = doubles(values);
                agree(&of("splits"), &[x.clone(), splits.clone()]);
                agree(&of("mapping"), &[x.clone(), mapping(100)]);
                agree(&of("mapping"), &[x, mapping(4)]);
            }
        }
    }
}

#[test]
fn errors_say_what_and_where() {
    let x = doubles(&[Some(1.0), None]);
    let y = doubles(&[Some(1.0)]);
    let error = evaluate("input x, y: [f64?]\noutput z = x + y", &[x.clone(), y.clone()], Backend::Native).unwrap_err();
    assert_eq!((error.code(), error.message().as_str()), ("size-mismatch", "+: argument sizes mismatch: (2, 1)"));
    assert!(error.span().is_some());
    assert_eq!(
        shown("input x: [f64?]; x[2]", std::slice::from_ref(&x)),
        "index-range: array.at: the sequence has no element 2i64"
    );
    let element =
        evaluate("input x: [f64?]; 1.0 // (x - 3.0)", &[doubles(&[None, Some(4.0), Some(3.0)])], Backend::Auto);
    let element = element.unwrap_err();
    assert_eq!((element.element(), element.row()), (Some(2), None));
    assert_eq!(element.message(), "math.floor_divide: division by zero, in element 2");
    let misfit = evaluate("input x: [f64?]; x", &[Value::from(1.0)], Backend::Native).unwrap_err();
    assert_eq!(misfit.code(), "values");
    // A literal array is no literal of each element.
    let decoded = Model::parse("strings.static_decode([b\"a\"])").unwrap().compile(&Options::default());
    assert!(decoded.unwrap_err().to_string().contains("needs a literal for `x`"));
    let wrong = Model::parse("input x: [f64?]; input y: [text]; x + y").unwrap().compile(&Options::default());
    assert_eq!(wrong.unwrap_err().code(), "type-mismatch");
    // The first that fails in the order of the text is told.
    let two = "input x, y: [f64?]; output a = math.sum(x // 0.0); output b = x + y";
    assert!(shown(two, &[x, y]).starts_with("div-by-zero"));
}

#[test]
fn empty_arrays_are_arrays() {
    let none = doubles(&[]);
    for (text, expected) in [
        ("input x: [f64?]; x * 2.0", "[]"),
        ("input x: [f64?]; math.sum(x)", "f64{0}"),
        ("input x: [f64?]; math.mean(x + 1.0)", "f64?{NA}"),
        ("input x: [f64?]; math.sum(x, into=edge.from_sizes([0, 0]))", "[0, 0]"),
    ] {
        assert_eq!(shown(text, std::slice::from_ref(&none)), expected, "{text}");
    }
}

#[test]
fn every_other_way_in_is_refused() {
    /// Returns true if `made` is the error that a function does not support models with arrays.
    fn is_refused<T>(made: Result<T, Error>) -> bool {
        made.is_err_and(|error| error.code() == Code::Arrays.as_str() && !error.diagnostics()[0].hints().is_empty())
    }
    let options = Options::default();
    // Arrays that neither come in nor go out are arrays as well.
    for text in ["input k: f64; math.sum([k, 1.0])", "input k: f64; input x: [f64?]; x * k", "input k: f64; [k] * 2.0"]
    {
        let model = Model::parse(text).unwrap();
        let executor = model.compile(&options).unwrap();
        assert!(is_refused(LoadedRows::of(&executor, &[vec![Value::from(1.0)]])), "{text}");
        assert!(is_refused(model.machine(&options)), "{text}");
        let object = model.object("f", &Target::host(), &options);
        assert!(is_refused(object), "{text}");
    }
}

/// Loaders read arrays, lists of structs, dictionaries and optional structs from rows of JSON and of serde, and
/// listeners receive outputs of these types.
#[test]
fn loaders_and_listeners_take_them() {
    let options = Options::default();
    let inside = Model::parse("input k: f64; math.sum([k, 1.0])").unwrap();
    let mut run = inside.executor_from::<_, f64>(&JsonRows, &options).unwrap();
    assert_eq!(run.run(&JsonRow::parse("{\"k\": 2.5}").unwrap()).unwrap(), 3.5);
    let text = "input items: [{price: f64, kind: text?}]; input rates: dict[text, f64]; input who: {name: text}?; input xs: [i32?]
         output total = sum(items.price * (dict.get(rates, items.kind) ?? 1.0))
         output name = who.name ?? \"nobody\"
         output dear = items[items.price > 1.0]
         output whole = who
         output twice = xs * 2";
    let model = Model::parse(text).unwrap();
    let row = json!({"items": [{"price": 1.5, "kind": "a"}, {"price": 0.5}], "rates": {"a": 2}, "who": {"name": "Ann"}, "xs": [1, null]});
    let bare = json!({"items": [], "rates": {}, "xs": []});
    let mut heard = serde_json::Map::new();
    let mut run = model.executor_between::<_, (), _>(&Json, &Json, &options).unwrap();
    run.listen(&row, &mut heard).unwrap();
    let expected = json!({"total": 3.5, "name": "Ann", "dear": [{"price": 1.5, "kind": "a"}], "whole": {"name": "Ann"}, "twice": [2, null]});
    assert_eq!(serde_json::Value::from(heard.clone()), expected);
    run.listen(&bare, &mut heard).unwrap();
    let expected = json!({"total": 0.0, "name": "nobody", "dear": [], "whole": null, "twice": []});
    assert_eq!(serde_json::Value::from(heard.clone()), expected);
    let error = run.listen(&json!({"items": [{"kind": "a"}], "rates": {}, "xs": []}), &mut heard).unwrap_err();
    assert_eq!(error.to_string(), "input `items.0.price` is f64, but it is missing");
    let error = run.listen(&json!({"rates": {}, "xs": []}), &mut heard).unwrap_err();
    assert_eq!(error.to_string(), "input `items` is [{price: f64, kind: text?}], but it is missing");
    let error = run.listen(&json!({"items": [], "rates": null, "xs": []}), &mut heard).unwrap_err();
    assert_eq!(error.to_string(), "input `rates` is dict[text, f64], but it is missing");
    // The same by serde, of any shape of rows.
    let mut run = model.executor_for_rows::<f64>(&options).unwrap();
    assert_eq!((run.run(&row).unwrap(), run.run(&bare).unwrap(), run.run(&row).unwrap()), (3.5, 0.0, 3.5));
    // A struct that may be missing, in a model that is evaluated row by row.
    let model = Model::parse(
        "input who: {name: text, home: {city: text?}}?; (who.name ?? \"nobody\") + (who.home.city ?? \"-\")",
    )
    .unwrap();
    let mut run = model.executor_for_rows::<String>(&options).unwrap();
    assert_eq!(run.run(&json!({"who": {"name": "Ann", "home": {"city": "Bern"}}})).unwrap(), "AnnBern");
    assert_eq!(run.run(&json!({"who": null})).unwrap(), "nobody-");
    assert_eq!(run.run(&json!({})).unwrap(), "nobody-");
    assert_eq!(run.run(&json!({"who": {"name": "Bob", "home": {}}})).unwrap(), "Bob-");
    let error = run.run(&json!({"who": {"name": "Bob"}})).unwrap_err();
    assert_eq!(error.to_string(), "input `who.home` is {city: text?}, but it is missing");
}

#[test]
fn sessions_pools_and_listeners_take_them() {
    let model = Model::parse("input x: [f64?]; output y = x * 2.0; output s = math.sum(x)").unwrap();
    let x = doubles(&[Some(1.5), None]);
    for backend in [Backend::Interpreter, Backend::Native, Backend::Auto, Backend::Tiered] {
        let executor = model.compile(&Options::default().backend(backend)).unwrap();
        executor.finish_tiers();
        let pool = Pool::new(executor.session());
        for _ in 0..3 {
            let found = pool.with(|session| session.evaluate(std::slice::from_ref(&x))).unwrap();
            assert_eq!(found.iter().map(Value::to_string).collect::<Vec<_>>(), ["[3, NA]", "f64{1.5}"], "{backend:?}");
        }
        let mut told = Vec::new();
        let mut session = executor.session().clone();
        let main = session.listen(std::slice::from_ref(&x), &mut |name, value| told.push(format!("{name} = {value}")));
        assert_eq!((main.unwrap().to_string().as_str(), &*told), ("[3, NA]", &["s = f64{1.5}".to_owned()][..]));
        // After an error, and with a token.
        assert_eq!(session.evaluate(&[]).unwrap_err().code(), "values");
        let token = Cancellation::new();
        session.set_cancellation(Some(token.clone()));
        assert!(session.evaluate(std::slice::from_ref(&x)).is_ok());
        token.cancel();
        assert_eq!(session.evaluate(std::slice::from_ref(&x)).unwrap_err().code(), "cancelled");
        assert!(executor.memory_bytes() > 1000);
    }
    let only = model.compile(&Options::default().outputs(["s"])).unwrap();
    assert_eq!(only.session().evaluate(&[x]).unwrap(), [Value::from(1.5)]);
}

/// Results of Arolla 0.0.4 for operators that this library once rejected or added later.
#[test]
fn values_are_those_of_arolla() {
    let sparse = "array.as_array(x)";
    let cases = [
        (format!("array.at({sparse}, [2, missing, 0])"), "[7, NA, 5]"),
        ("array.at(x, array.as_array([2, missing, 0]))".to_owned(), "[7, NA, 5]"),
        ("core.cast_values(x, f64)".to_owned(), "[5, 6, 7]"),
        ("core.cast_values([5.5, missing, -7.0], i32)".to_owned(), "[5, NA, -7]"),
        ("core.map(fn(e, t) = core.cast_values(e, t) / 2.0, x, f64)".to_owned(), "[2.5, 3, 3.5]"),
        ("edge.indices(edge.from_mapping([0, 1, 0, missing, 1], 2))".to_owned(), "[0, 0, 1, NA, 1]"),
        ("edge.indices(edge.from_sizes([2, 0, 3]))".to_owned(), "[0, 1, 0, 1, 2]"),
        ("edge.indices(edge.to_scalar(x))".to_owned(), "[0, 1, 2]"),
        (
            "edge.mapping(edge.as_dense_array_edge(edge.from_mapping(array.as_array([0, 1, missing]), 2)))".to_owned(),
            "[0, 1, NA]",
        ),
        (
            "edge.mapping(edge.group_by2([5, 6, 5, 7, 6, missing], edge.from_sizes([3, 3])).0)".to_owned(),
            "[0, 1, 0, 2, 3, NA]",
        ),
        ("edge.mapping(edge.group_by2([5, 6, 5, 7, 6, missing], edge.from_sizes([3, 3])).1)".to_owned(), "[0, 0, 1, 1]"),
        (
            "edge.mapping(edge.group_by2([5, 6, 5, 7, 6, missing], edge.from_mapping([1, 1, 0, missing, 1, 0], 3)).0)".to_owned(),
            "[0, 1, 2, NA, 1, NA]",
        ),
        (
            "edge.parent_size(edge.group_by2([5, 6, 5, 7, 6, missing], edge.from_mapping([1, 1, 0, missing, 1, 0], 3)).1)".to_owned(),
            "3",
        ),
        ("edge.mapping(edge.group_by2(([5, 6, 5], [1, missing, 1]), edge.from_sizes([2, 1])).1)".to_owned(), "[0, 1]"),
        ("edge.sizes(edge.group_by2([5, 6, 5]).1)".to_owned(), "[2]"),
        ("math.searchsorted([1.0, 2.0, 2.0, 5.0], [0.0, 1.0, 2.0, 3.0, 5.0, 9.0, missing])".to_owned(), "[0, 0, 1, 3, 3, 4, NA]"),
        ("math.searchsorted([1.0, 2.0, 2.0, 5.0], [0.0, 1.0, 2.0, 3.0, 5.0, 9.0], true)".to_owned(), "[0, 1, 3, 3, 4, 4]"),
        ("math.searchsorted([1, 2, 3], 2.5)".to_owned(), "2"),
        ("math.searchsorted([1.0, 2.0], missing[f32]) ?? -1".to_owned(), "-1"),
        ("qtype.make_tuple_qtype(qtype.get_field_qtypes(QTYPE{(i32, text)})) == QTYPE{(i32, text)}".to_owned(), "present"),
    ];
    let x = Array::from_scalars(Scalar::Int32, [5, 6, 7].map(|value| Some(ScalarValue::Int32(value))));
    for (text, expected) in cases {
        for backend in [Backend::Native, Backend::Interpreter] {
            let model = Model::parse(&format!("input x: [i32?]; output r = {text}; output all = array.size(x)"));
            let executor = model.and_then(|model| model.compile(&Options::default().backend(backend)));
            let executor = executor.unwrap_or_else(|error| panic!("{text}: {error}"));
            let made = executor.session().evaluate(&[Value::Array(ArrayKind::Dense, x.clone().into())]);
            let made = made.unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(made[0].to_string().replace("i64{", "").replace('}', ""), expected, "{text} {backend:?}");
        }
    }
}

/// A pass over groups never splits a group, however large. If the run is cancelled in one stage of the computation on a
/// large group, the next stage does not begin.
#[test]
fn a_large_group_ends_between_its_stages() {
    let (token, later) = (Cancellation::new(), Arc::new(AtomicUsize::new(0)));
    let mut registry = Registry::standard().clone();
    let (stop, count) = (token.clone(), later.clone());
    let first = UserOperator::new("my.first").function(move |x: i64| {
        stop.cancel();
        x
    });
    let second = UserOperator::new("my.second").function(move |x: i64| {
        count.fetch_add(1, Ordering::Relaxed);
        x
    });
    registry.register(first).expect("a new name");
    registry.register(second).expect("a new name");
    let text = "input x: [i64]; let e = edge.from_sizes([array.size(x)]); let y = my.first(x)
        math.sum(my.second(y - array.expand(math.sum(y, e), over=e)), e)";
    let registry = registry.leak();
    let model = Model::parse_with(text, registry, &Limits::default()).expect("it is right");
    let executor = model.compile(&Options::default().registry(registry)).expect("it is right");
    let mut session = executor.session();
    let x = Value::from(Array::from_scalars(Scalar::Int64, (0..100_000).map(|at| Some(ScalarValue::Int64(at)))));
    assert_eq!(session.evaluate(std::slice::from_ref(&x)).unwrap()[0].to_string(), "[-499990000050000]");
    assert_eq!(later.swap(0, Ordering::Relaxed), 100_000);
    session.set_cancellation(Some(token));
    assert_eq!(session.evaluate(std::slice::from_ref(&x)).unwrap_err().code(), "cancelled");
    assert_eq!(later.load(Ordering::Relaxed), 0);
}

/// Arolla's rewrites change bits of results, so they are applied to the whole model, not only to its fused parts.
/// Results then do not depend on the backend.
#[test]
fn rewrites_that_change_bits_do_not_depend_on_the_backend() {
    let text = "input s: [f64?]; output y = s + (s + core.map(fn(i) = i + 1.0f64, s))";
    let s = Value::from(Array::from_scalars(Scalar::Float64, [Some(ScalarValue::from(0.745_473_703_309_587_6))]));
    let made = [Backend::Native, Backend::Interpreter].map(|backend| {
        let options = Options::default().backend(backend).compat(true);
        let mut session = Model::parse(text).unwrap().compile(&options).unwrap().session();
        // After some runs a plan with loops takes short lists.
        (0..20).map(|_| session.evaluate(std::slice::from_ref(&s)).unwrap()[0].to_string()).collect::<Vec<_>>()
    });
    let [native, interpreter] = made;
    assert_eq!(native, interpreter);
    assert!(native.iter().all(|made| *made == native[0]));
}
