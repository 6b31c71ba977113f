//! Tests models with very many names, very long names and invalid ids, as an attacker may write them: the time is
//! linear in the number of names, and messages are short.

use cembra::errors::Code;
use cembra::explain::print;
use cembra::loaders::{AccessorsListener, AccessorsLoader, Fields};
use cembra::native::Target;
use cembra::program::{NodeId, read_binary};
use cembra::{Error, Limits, Model, Options, QType, Scalar, Value};
use cembra_expr::{Output, Program, write_binary};
use std::fmt::Write as _;
use std::time::{Duration, Instant};

#[derive(cembra::Input)]
struct Row {
    x: f64,
}

/// Returns a model with `count` different outputs.
fn with_outputs(count: usize) -> Model {
    let mut text = String::from("input x: f64\n");
    for n in 0..count {
        let _ = writeln!(text, "output y{n} = x + {n}");
    }
    Model::parse(&text).expect("a model")
}

/// A bound on the time of these tests. Code that is quadratic in the number of names takes minutes, and longer without
/// optimisation.
const LONG: Duration = Duration::from_secs(60);

#[test]
fn a_listener_to_very_many_outputs() {
    const MANY: usize = 200_000;
    let model = with_outputs(MANY);
    let start = Instant::now();
    let listener = (0..MANY).fold(AccessorsListener::new(), |all, n| {
        all.with(&format!("y{n}"), |sum: &mut f64, value| {
            if let cembra::ValueRef::Float64(value) = value {
                *sum += value;
            }
        })
    });
    let options = Options::default().backend(cembra::Backend::Interpreter);
    let mut run = model.executor_between::<Row, (), _>(&Fields::<Row>::new(), &listener, &options).expect("a model");
    let mut sum = 0.0;
    run.listen(&Row { x: 1.0 }, &mut sum).expect("values");
    assert_eq!(sum, (MANY * (MANY + 1) / 2) as f64);
    let all = AccessorsListener::new().others(|count: &mut usize, _, _| *count += 1);
    let mut run = model.executor_between::<Row, (), _>(&Fields::<Row>::new(), &all, &options).expect("a model");
    let mut count = 0;
    run.listen(&Row { x: 1.0 }, &mut count).expect("values");
    assert_eq!(count, MANY);
    assert!(start.elapsed() < LONG, "{:?}", start.elapsed());
}

#[test]
fn a_later_accessor_takes_the_place_of_an_earlier_one() -> Result<(), Error> {
    let loader = AccessorsLoader::new()
        .with("x", QType::FLOAT64, |_: &()| 1.0.into())
        .with("y", QType::FLOAT64, |()| 10.0.into())
        .with("x", QType::FLOAT64, |()| 2.0.into());
    assert_eq!(cembra::loaders::Loader::names(&loader), ["x", "y"]);
    let mut run = Model::parse("output z = x + y; output w = x")?.executor_between::<(), f64, Vec<f64>>(
        &loader,
        &AccessorsListener::new().with("w", |_: &mut Vec<f64>, _| panic!("replaced")).with("w", |heard, value| {
            if let cembra::ValueRef::Float64(value) = value {
                heard.push(value);
            }
        }),
        &Options::default(),
    )?;
    let mut heard = Vec::new();
    assert_eq!(run.listen(&(), &mut heard)?, 12.0);
    assert_eq!(heard, [2.0]);
    Ok(())
}

#[test]
fn an_object_file_of_names_that_c_does_not_tell_apart() {
    let mut text = String::new();
    for n in 0..20_000 {
        // Names that differ, and are all the same letters and underscores in C.
        let name: String = (0..15).map(|bit| if n >> bit & 1 == 0 { '+' } else { '-' }).collect();
        let _ = writeln!(text, "output \"a{name}\" = {n}.5f64");
    }
    let model = Model::parse(&text).expect("a model");
    let start = Instant::now();
    let options = Options::default().limits(Limits::default().native_fields(100_000));
    let object = model.object("many", &Target::host(), &options).expect("an object file");
    let header = object.header();
    let mut fields: Vec<&str> = header
        .lines()
        .filter_map(|line| line.strip_prefix("    double ")?.split_once(';'))
        .map(|(name, _)| name)
        .collect();
    assert_eq!(fields.len(), 20_000);
    fields.sort_unstable();
    fields.dedup();
    assert_eq!(fields.len(), 20_000);
    assert!(start.elapsed() < LONG, "{:?}", start.elapsed());
}

/// Returns the total length of the texts in the error's diagnostics.
fn told(error: &Error) -> usize {
    let all = error.diagnostics();
    assert!(!all.is_empty() && all.len() <= 100, "{} problems", all.len());
    all.iter()
        .map(|one| {
            let others: usize = one.others().iter().map(|other| other.text.len()).sum();
            let hints: usize = one.hints().iter().map(String::len).sum();
            one.message().len() + one.label_text().len() + others + hints
        })
        .sum()
}

#[test]
fn what_is_said_of_long_texts_is_short() {
    let long = "ä".repeat(1 << 20);
    let hundred = |line: &dyn Fn(usize) -> String| (0..200).map(|n| line(n) + "\n").collect::<String>();
    let field = hundred(&|n| format!("output y{n} = namedtuple.get_field(r, t) + {n}"));
    let format = hundred(&|n| format!("output y{n} = strings.format(f, x={n})"));
    let exports = hundred(&|n| format!("output y{n} = annotation.export({n}, t)"));
    let names = hundred(&|n| format!("output y{n} = namedtuple.make(d, {n}, {n})"));
    let wide = (0..1000).map(|n| format!("{:b<1000}: f64", format!("n{n}"))).collect::<Vec<_>>().join(", ");
    let types = hundred(&|n| format!("output y{n} = w + {n}"));
    for source in [
        format!("let t = \"{long}\"\nlet r = {{a: 1}}\n{field}"),
        format!("let f = \"{{{long}}}\"\n{format}"),
        format!("let t = \"{long}\"\n{exports}"),
        format!("let d = \"{long},{long}\"\n{names}"),
        format!("input w: {{{wide}}}\n{types}"),
        format!("input w: f64\nlet t = \"{long}\"\noutput y = core.cast(t, f64)"),
        format!("output y = {}x", "7".repeat(1 << 20)),
        format!("output y = - #{long}\n 7x"),
    ] {
        let error = Model::parse(&source).and_then(|model| model.compile(&Options::default())).expect_err("wrong");
        assert!(told(&error) < 400_000, "{}: {}", error.code(), told(&error));
        assert!(error.to_string().len() < 400_000);
    }
    // A fault of an evaluation quotes what it failed on.
    let model = Model::parse("input t: text; strings.parse_int32(t)").expect("a model");
    let executor = model.compile(&Options::default()).expect("a model");
    let error = executor.session().evaluate(&[(&*long).into()]).expect_err("no number");
    assert!(error.to_string().contains("ää") && error.to_string().len() < 300, "{}", error.to_string().len());
    let error = Error::values(long);
    assert!(error.to_string().len() < 3_000);
}

#[test]
fn ids_of_another_graph_are_errors() {
    let foreign = |made: &dyn Fn(&mut Program) -> NodeId| {
        let mut program = Program::default();
        program.graph.leaf("x", None);
        let node = made(&mut program);
        program.outputs.push(Output { name: "y".into(), node, span: None });
        program
    };
    let far = NodeId::from_index(1_000_000);
    for program in [
        foreign(&|_| far),
        foreign(&|program| program.graph.operator("core.make_tuple", &[far, far], None)),
        foreign(&|program| program.graph.operator("math.neg", &[far], None)),
    ] {
        assert!(!print(&program).is_empty());
        assert_eq!(program, program.clone());
        let limits = Limits::default();
        let again = read_binary(&write_binary(&program), &limits);
        let error = Model::from_program(program).compile(&Options::default()).expect_err("no node");
        let code = error.diagnostics()[0].code();
        assert!([Code::Builder, Code::TypeMismatch, Code::UntypedOutput].contains(&code), "{error}");
        // Of a file nobody can tell any more, but that it holds no value of a type.
        if let Ok(program) = again {
            assert!(Model::from_program(program).compile(&Options::default()).is_err());
        }
    }
}

/// Returns a value of the type `qtype`, different for each `n`.
fn filled(qtype: &QType, n: &mut i64) -> Value {
    *n += 1;
    match qtype {
        QType::Tuple(types) => Value::Tuple(types.with(types.iter().map(|of| filled(of, n)).collect())),
        QType::Optional(scalar) if *n % 3 == 0 => Value::Missing(*scalar),
        QType::Optional(Scalar::Int64) => Value::Present((*n * 5).into()),
        QType::Optional(_) => Value::Present((*n as i32).into()),
        QType::Scalar(Scalar::Boolean) => (*n % 2 == 0).into(),
        QType::Scalar(Scalar::Text) => format!("t{n}").as_str().into(),
        _ => (*n as f64).into(),
    }
}

/// Machine code copies structs with very many fields, and single fields of them, with the interpreter's results.
#[test]
fn wide_structs_are_as_the_interpreter_has_them() {
    let fields = (0..1_500).map(|n| match n % 4 {
        0 => format!("f{n}: f64"),
        1 => format!("f{n}: i64?"),
        2 => format!("f{n}: text"),
        _ => format!("f{n}: {{a: bool, b: i32?}}"),
    });
    let qtype = format!("{{{}}}", fields.collect::<Vec<_>>().join(", "));
    let text = format!(
        "input c: bool; input a: {qtype}; input b: {qtype}
         output o = if c then a else b; output p = (a, {{q: b, r: (if c then b else a).f4}}); output s = a"
    );
    let model = Model::parse(&text).expect("a model");
    let run = |backend, c: bool| {
        let executor = model.compile(&Options::default().backend(backend)).expect("it compiles");
        let [a, b] = [3, 7].map(|mut n| filled(&executor.inputs()[1].qtype, &mut n));
        let outputs = executor.session().evaluate(&[c.into(), a.clone(), b.clone()]).expect("values");
        assert!(outputs[0].same(if c { &a } else { &b }) && outputs[2].same(&a), "{outputs:?}");
        outputs
    };
    for c in [false, true] {
        let (native, interpreted) = (run(cembra::Backend::Native, c), run(cembra::Backend::Interpreter, c));
        assert!(native.iter().zip(&interpreted).all(|(a, b)| a.same(b)));
    }
}

/// The processor time that this thread has spent so far. Other programs on the machine do not lengthen it.
fn processor_time() -> Duration {
    let spent = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    spent.try_into().expect("the time since the thread began")
}

/// Returns a bound of `seconds` seconds. With a sanitizer, which slows the code generator, the bound is ten times as long.
fn within(seconds: u64) -> Duration {
    let is_watched = std::env::var_os("CEMBRA_WATCHED").is_some();
    Duration::from_secs(if is_watched { 10 * seconds } else { seconds })
}

/// The compile time is linear in the number of fields. Checking the plan and allocating registers each took seconds
/// once, and no limit on time ends these steps.
#[test]
fn a_conditional_of_wide_structs_compiles_in_linear_time() {
    let fields = (0..14_000).map(|n| format!("f{n}: f64")).collect::<Vec<_>>().join(", ");
    let text = format!("input c: bool; input a: {{{fields}}}; input b: {{{fields}}}; output o = if c then a else b");
    let model = Model::parse(&text).expect("a model");
    let start = processor_time();
    let summary = model.summary(&Options::default()).expect("a summary");
    assert_eq!(summary.backend, cembra::Backend::Native);
    let spent = processor_time() - start;
    assert!(spent < within(4), "{spent:?}");
    // What loops and conditionals carry in registers counts ten times.
    let fields = |each: &dyn Fn(usize) -> String| (0..2_500).map(each).collect::<Vec<_>>().join(", ");
    let text = format!(
        "input a: {{{}}}; output o = core.while_loop(a, fn(s) = s.f0 < 9.0, fn(s) = {{{}}}).f7",
        fields(&|n| format!("f{n}: f64")),
        fields(&|n| format!("f{n}: s.f{n} + 1.0"))
    );
    let model = Model::parse(&text).expect("a model");
    let error = model.compile(&Options::default().backend(cembra::Backend::Native)).expect_err("a limit");
    assert!(error.to_string().contains("`native_fields`"), "{error}");
    let executor = model.compile(&Options::default()).expect("it is interpreted");
    let row = filled(&executor.inputs()[0].qtype, &mut 0);
    // Its first field is 2, and its eighth 9.
    assert!(executor.session().evaluate(&[row]).expect("values")[0].same(&Value::from(16.0)));
}

/// A model is cloned for each of its tests, so a clone must not reserve more memory than it uses.
#[test]
fn very_many_tests_of_a_model() {
    const MANY: usize = 6_000;
    let mut text = String::from("input x: f64\noutput y = x / 2\n");
    for n in 0..MANY {
        let _ = write!(text, "test \"t{n}\" {{ x = {n} }} => {{ y = 2.5 }}; ");
    }
    let model = Model::parse(&text).expect("a model");
    // A clone has no more than there is, but for the table of nodes.
    let cloned = model.program().graph.clone().memory_bytes();
    assert!(cloned < 1 << 12, "{cloned} bytes");
    let start = processor_time();
    let report = model.run_tests(&Options::default());
    assert_eq!((report.cases, report.failures.len()), (MANY, MANY - 1));
    let spent = processor_time() - start;
    assert!(spent < within(3), "{spent:?}");
}
