//! Tests models that map a function over lists of structs: the compiler keeps only as much of a function as its result
//! needs, however many fields an element has.

use crate::alone;
use crate::counting::{peak_of, so_far};
use cembra::{Backend, Limits, Model, Options};

/// The texts `item(0)`, `item(1)` and so on, with commas between them.
fn listed(count: usize, item: impl Fn(usize) -> String) -> String {
    (0..count).map(item).collect::<Vec<_>>().join(", ")
}

/// Returns models on structs with `count` fields, in which each field depends on only a few others.
fn models(count: usize) -> [String; 5] {
    let fields = listed(count, |at| format!("f{at}: i64"));
    let of_each = |each: &dyn Fn(usize) -> String| listed(count, |at| format!("f{at}: {}", each(at)));
    [
        format!("input l: [{{{fields}}}]; output n = array.size(map(fn(v) = v, l))"),
        format!(
            "input l: [{{{fields}}}]; output n = map(fn(v) = {{{}}}, l).f1",
            of_each(&|at| format!("v.f{at} + v.f0"))
        ),
        format!(
            "input l: [{{{fields}}}]; output n = map(fn(v) = namedtuple.union(v, {{g: v.f1 * 2i64, f0: 1i64}}), l).g"
        ),
        format!(
            "input l: [i64], {}; output n = map(fn(v) = {{{}}}, l).f1",
            listed(count, |at| format!("x{at}: i64")),
            of_each(&|at| format!("v + x{at}"))
        ),
        format!(
            "input {}; output n = map(fn({}) = {{{}}}, {}).f1",
            listed(count, |at| format!("x{at}: [i64]")),
            listed(count, |at| format!("v{at}")),
            of_each(&|at| format!("v{at} + 1")),
            listed(count, |at| format!("x{at}"))
        ),
    ]
}

/// Compiling takes memory linear in the number of fields. It once took 220 MB for 2,000 fields, and 3.3 GB for 8,000.
#[test]
fn bodies_are_as_large_as_their_results() {
    let _alone = alone();
    let options = Options::default().backend(Backend::Interpreter);
    let taken = |text: &str| {
        let (made, taken) = peak_of(|| Model::parse(text).and_then(|model| model.compile(&options)).map(drop));
        made.unwrap_or_else(|error| panic!("{error}"));
        taken
    };
    for (few, many) in models(250).iter().zip(&models(1_000)) {
        let [few, many_taken] = [taken(few), taken(many)];
        let shown = &many[many.len() - 60..];
        assert!(many_taken < 6 * few && many_taken < 16 << 20, "{few} bytes became {many_taken}: {shown}");
    }
}

/// Structs that contain the previous struct twice, so their size doubles, are stopped by the limit on fields. Sixteen
/// of them once took 12 GB.
#[test]
fn structs_that_double_end_with_the_limit_of_fields() {
    let _alone = alone();
    let lets: String = (1..60).map(|at| format!("let l{at} = map(fn(v) = {{a: v, b: v}}, l{})\n", at - 1)).collect();
    let text = format!("input l: [{{x: i64}}]\nlet l0 = l\n{lets}output n = array.size(l59)");
    let limits = Limits::default().tuple_fields(200_000);
    let options = Options::default().limits(limits);
    let (made, taken) = peak_of(|| Model::parse(&text).and_then(|model| model.compile(&options)).map(drop));
    let error = made.expect_err("a limit");
    assert!(error.to_string().contains("`tuple_fields`"), "{error}");
    assert!(taken < 16 << 20, "{taken} bytes");
}

/// Arrays that a function is mapped over must have one length, even an array that no result reads.
#[test]
fn arrays_that_no_field_reads_are_as_long_as_the_others() {
    let ten = listed(9, |_| "[1, 2, 3]".to_owned());
    let text = |last: &str| {
        format!(
            "let r = map(fn(a, b, c, d, e, f, g, h, i, j) = {{x: a + b, y: j, z: 7}}, {ten}, {last})\noutput x = r.x\noutput z = r.z"
        )
    };
    let run = |last: &str| {
        let executor = Model::parse(&text(last)).and_then(|model| model.compile(&Options::default())).expect("a model");
        executor.session().evaluate(&[]).map(|outputs| outputs.iter().map(ToString::to_string).collect::<Vec<_>>())
    };
    assert_eq!(run("[4, 5, 6]").expect("values"), ["[2, 4, 6]", "[7, 7, 7]"]);
    assert!(run("[4, 5]").expect_err("one is shorter").to_string().contains("(3, 2)"));
    let kept = "let l = [{p: 1, q: missing[i32]}, {p: 3, q: 4}]
        let m = map(fn(v) = {p: v.p, q: v.q, r: v.q ?? 9, s: {t: v}}, l)
        output p = m.p\noutput q = m.q\noutput r = m.r\noutput t = m.s.t.q";
    let executor = Model::parse(kept).and_then(|model| model.compile(&Options::default())).expect("a model");
    let outputs = executor.session().evaluate(&[]).expect("values");
    let shown: Vec<String> = outputs.iter().map(ToString::to_string).collect();
    assert_eq!(shown, ["[1, 3]", "[NA, 4]", "[9, 4]", "[NA, 4]"]);
}

/// Functions that call the previous function twice, so their expansion doubles, take no memory besides the nodes of the
/// graph.
#[test]
fn functions_that_double_take_no_more_than_the_graph() {
    let _alone = alone();
    let functions: String =
        (1..24).map(|at| format!("fn f{at}(x) = f{0}(x + {at}) * f{0}(x * 2 + {at})\n", at - 1)).collect();
    let text = format!("fn f0(x) = x + 1\n{functions}output y = f23(L.x)");
    let nodes = 400_000;
    let (made, taken) = peak_of(|| Model::parse_within(&text, &Limits::default().nodes(nodes)).map(drop));
    let error = made.expect_err("a limit");
    assert!(error.to_string().contains("`nodes`"), "{error}");
    assert!(taken < 100 * nodes, "{} bytes a node", taken / nodes);
}

/// If a model exceeds a limit, `check` prepares it only once: a second preparation, for warnings that depend on types,
/// would only reach the same limit.
#[test]
fn a_check_beyond_a_limit_prepares_the_model_once() {
    let _alone = alone();
    let lets: String = (1..12).map(|at| format!("let l{at} = map(fn(v) = {{a: v, b: v}}, l{})\n", at - 1)).collect();
    let model =
        Model::parse(&format!("input l: [{{x: i64}}]\nlet l0 = l\n{lets}output n = array.size(l11)")).expect("a model");
    let options = Options::default().limits(Limits::default().tuple_fields(20_000));
    let allocations = |run: &dyn Fn()| {
        let before = so_far();
        run();
        so_far() - before
    };
    let signature = allocations(&|| assert!(model.signature(&options).is_err()));
    let check = allocations(&|| assert!(model.check(&options).0.is_err()));
    assert!(check < signature * 3 / 2, "{check} allocations, {signature} of them for the signature");
}
