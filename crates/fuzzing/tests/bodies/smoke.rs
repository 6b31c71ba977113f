//! Tests of the fuzzer on a few hundred programs. They also prove that the fuzzer finds defects: a subject that gives wrong answers, panics, or
//! rejects other programs than the rest is found, and the program that shows it is reduced to a few nodes.

use cembra::explain::{Stage, print};
use cembra::metrics::Counters;
use cembra::native::Tier;
use cembra::{Backend, Model, Options, Value};
use cembra_expr::{Node, NodeId, Program};
use cembra_fuzzing::{Answer, Config, Failure, Mismatch, Row, Subject, Subjects, program, run, run_on, try_text};
use cembra_ops::{OverArrays, Typing};
use std::sync::Arc;

fn operators(program: &Program) -> Vec<String> {
    let graph = &program.graph;
    (0..graph.len())
        .filter_map(|at| match graph.node(NodeId::from_index(at)) {
            Node::Operator(name, _) => Some(graph.name(name).to_string()),
            _ => None,
        })
        .collect()
}

#[test]
#[ignore = "takes half a minute where the library is not optimised"]
fn many_programs_agree() {
    // With this seed every kind of fault is among them.
    let config = Config { programs: Some(2400), seed: 48, arrays: 0.0, ..Config::default() };
    let mut told = Vec::new();
    let report = run(&config, &mut |tried| told.push(tried));
    if let Some(mismatch) = report.mismatch() {
        panic!("{mismatch}");
    }
    assert_eq!(told, (1..=2400).collect::<Vec<_>>());
    assert_eq!(report.programs(), 2400);
    let accepted = 2400 - report.rejected();
    assert!(accepted > 200 && report.rejected() > 5, "{report}");
    assert_eq!(report.rows(), accepted * u64::from(config.rows));
    assert!(report.faults() > report.rows() / 100 && report.faults() < report.rows() / 3, "{report}");
    let text = report.to_string();
    // Every kind of fault but those of a caller who gives up or has no time, and that of arrays, of which there are none.
    let faults = text.lines().find(|line| line.starts_with("faults: ")).unwrap();
    assert_eq!(faults.matches(", 0 ").count(), 3, "{faults}");
    assert!([", 0 cancelled", ", 0 deadline", ", 0 size-mismatch"].iter().all(|one| faults.contains(one)), "{faults}");
    let sum = format!(
        "2400 programs, {} rows, 0 mismatches, {} faults, {} rejected",
        report.rows(),
        report.faults(),
        report.rejected()
    );
    assert_eq!(text.lines().last(), Some(&*sum));
    let mut unused = Vec::new();
    for (_, def) in cembra::operators::Registry::standard().iter() {
        let line = text.lines().find(|line| line.split_whitespace().next() == Some(def.name));
        let written: u64 = line.unwrap().split_whitespace().nth(1).unwrap().parse().unwrap();
        // Exports, what changes nothing but a type, and what the host does not have are left out. The suites have them.
        let (family, _) = def.name.split_once('.').unwrap();
        let left_out = matches!(family, "annotation" | "derived_qtype")
            || matches!(def.name, "core._declared" | "core._declared_operand" | "core._extern")
            // Marks of operands are what a text's rule of numbers writes.
            || matches!(def.name, "core._wide" | "core._beside");
        // Arrays are not drawn either, and many operators take nothing else.
        let of_arrays = matches!(def.over_arrays, OverArrays::Own | OverArrays::Kernel(_))
            && (matches!(family, "array" | "edge" | "dict" | "math" | "strings" | "random" | "bool" | "duration")
                || matches!(def.name, "core.map" | "core._in_value" | "core._sum" | "core._median"))
            || matches!(def.name, "dict.keys" | "dict.values" | "dict._ranged" | "dict._ranged_row");
        // What an operator is of structs is not written: the operator is.
        let of_structs = def.name == "core._formed"
            || cembra::operators::Registry::standard().iter().any(|(_, other)| {
                other.of_structs.is_some_and(|op| cembra::operators::Registry::standard().get(op).name == def.name)
            });
        let of_tensors = matches!(def.typing, Typing::OfTensors);
        let of_their_types = ["array", "edge", "child", "parent"].iter().any(|word| def.name.contains(word));
        if !(written > 0 || left_out || of_arrays || of_structs || of_tensors || (family == "qtype" && of_their_types))
        {
            unused.push(def.name);
        }
        assert!(written == 0 || !left_out, "{} is used {written} times", def.name);
    }
    // Each of them can be drawn, as the tests of the catalogue say; some are rare.
    assert!(unused.len() <= 3, "never used: {unused:?}");
}

/// The caller's structs may have any byte in place of a missing boolean. The value that an operator uses instead of it must not depend on that byte.
#[test]
fn a_missing_boolean_is_no_other_boolean() {
    let pairs: Vec<usize> = (0..16).collect();
    let names = |letter: char| pairs.iter().map(|at| format!("{letter}{at}")).collect::<Vec<_>>().join(", ");
    let outputs = pairs.iter().map(|at| format!("output y{at} = not core._presence_and_or(true, a{at}, b{at})\n"));
    let text = format!("input {}: unit?\ninput {}: bool?\n{}", names('a'), names('b'), outputs.collect::<String>());
    assert!(try_text(&text).is_none_or(|mismatch| panic!("{mismatch}")));
}

#[test]
fn other_seeds_agree_too_one_program_each() {
    for seed in 2..60 {
        let config = Config { programs: Some(1), seed, start: seed * 1000, ..Config::default() };
        let report = run(&config, &mut |_| {});
        assert!(report.mismatch().is_none(), "{}", report.mismatch().unwrap());
    }
}

#[test]
fn a_program_depends_on_seed_and_number_only() {
    let config = Config::default();
    let texts = |config: &Config| (0..50).map(|at| print(&program(config, at))).collect::<Vec<_>>();
    let first = texts(&config);
    assert_eq!(first, texts(&Config { programs: Some(7), start: 3, ..config.clone() }));
    let other = texts(&Config { seed: 2, ..config });
    assert_eq!(first.iter().zip(&other).filter(|(a, b)| a == b).count(), 0);
    let distinct: std::collections::BTreeSet<_> = first.iter().collect();
    assert_eq!(distinct.len(), 50);
}

#[test]
fn programs_keep_to_their_limits() {
    // What is inside of a function is not counted.
    let config = Config { max_depth: 4, max_inputs: 3, max_outputs: 2, functions: 0.0, ..Config::default() };
    let mut deepest = 0;
    for number in 0..200 {
        let program = program(&config, number);
        assert!(program.inputs.len() <= 3 && (1..=2).contains(&program.outputs.len()));
        let mut depths = vec![0; program.graph.len()];
        for at in 0..depths.len() {
            let node = NodeId::from_index(at);
            let below = program.graph.operands(node).iter().map(|o| depths[o.index()] + 1).max();
            let operator = matches!(program.graph.node(node), Node::Operator(..));
            depths[at] = below.unwrap_or(u32::from(operator));
        }
        deepest = deepest.max(depths.into_iter().max().unwrap());
    }
    assert_eq!(deepest, 4);
}

/// A subject with a defect: the interpreter, except for models for which `meets` is true, whose answers `does` changes.
struct Broken {
    /// Returns true for the prepared text of a model that shows the defect.
    meets: fn(&str) -> bool,
    does: fn(Vec<Answer>) -> Result<Vec<Answer>, Failure>,
}

impl Subject for Broken {
    fn name(&self) -> &str {
        "broken"
    }

    fn run(&self, model: &Model, options: &Options, rows: &[Row]) -> Result<Vec<Answer>, Failure> {
        let answers = Backend::Interpreter.run(model, options, rows)?;
        let prepared = model.explain(options, Stage::Prepared).map_err(Failure::from)?;
        if (self.meets)(&prepared) { (self.does)(answers) } else { Ok(answers) }
    }
}

fn scalars(programs: u64) -> Config {
    Config { programs: Some(programs), arrays: 0.0, ..Config::default() }
}

fn finds(broken: &Broken) -> Mismatch {
    finds_among(broken, &scalars(2000))
}

fn finds_among(broken: &Broken, config: &Config) -> Mismatch {
    mismatch_among(Subjects { native: broken, ..Subjects::default() }, config)
}

fn mismatch_among(subjects: Subjects<'_>, config: &Config) -> Mismatch {
    let report = run_on(config, subjects, &mut |_| {});
    let mismatch = report.mismatch().expect("a mismatch");
    let text = report.to_string();
    let last = text.lines().last().unwrap_or_default();
    assert!(last.ends_with(" rejected") && last.contains(", 1 mismatches, "), "{text}");
    assert!(text.contains(&mismatch.to_string()), "{text}");
    mismatch.clone()
}

#[test]
fn a_wrong_answer_is_found_and_shrunk() {
    // With this seed there is one that is not in a sequence whose bounds matter.
    let config = Config { seed: 2, ..scalars(2000) };
    let broken = Broken {
        meets: |prepared| prepared.lines().any(|line| line.contains("math.mod(") && line.contains(" : f")),
        does: |answers| {
            let wrong = |values: Vec<Value>| values.into_iter().map(|_| Value::from("wrong")).collect();
            Ok(answers.into_iter().map(|answer| answer.map(wrong)).collect())
        },
    };
    let mismatch = finds_among(&broken, &config);
    let left = operators(mismatch.program());
    assert!(left.len() <= 2 && left.contains(&"math.mod".to_owned()), "{mismatch}");
    assert!(mismatch.program().graph.len() <= 4, "{mismatch}");
    assert_eq!(mismatch.program().outputs.len(), 1);
    let who: Vec<_> = mismatch.answers().iter().map(|(who, _)| &**who).collect();
    assert_eq!(who, ["interpreter", "broken"]);
    assert_eq!(mismatch.answers()[1].1, "'wrong'");
    // What it prints is enough to see it again: the model, the row, the command.
    let text = mismatch.to_string();
    let model = Model::parse(&mismatch.model()).unwrap();
    assert_eq!(model.program(), mismatch.program());
    assert!(text.contains(mismatch.model().trim_end()), "{text}");
    let row = mismatch.row().unwrap();
    assert_eq!(row.values().len(), model.program().inputs.len());
    assert!(text.contains(&format!("row: {row}")), "{text}");
    assert!(text.ends_with(&mismatch.replay()), "{text}");
    let number: u64 = mismatch.replay().rsplit(' ').next().unwrap().parse().unwrap();
    assert_eq!(mismatch.replay(), format!("cembra fuzz --programs 1 --seed 2 --arrays 0 --start {number}"));
}

const ARITHMETIC: [&str; 5] = ["math.mod", "math.floordiv", "math.fmod", "math.pow", "math.divide"];

#[test]
#[ignore = "takes half a minute where the library is not optimised"]
fn a_wrong_answer_inside_of_a_loop_shrinks_to_one_loop() {
    // With this seed one is soon among them.
    let config = Config { functions: 0.3, seed: 6, ..scalars(6000) };
    let broken = Broken {
        // Arithmetic inside of a round: on something that is made of a state.
        meets: |prepared| {
            let mut of_state = Vec::new();
            prepared.lines().filter_map(|line| line.trim().split_once(" = ")).any(|(name, made)| {
                let mut words = made.split(|c: char| !c.is_alphanumeric() && c != '%');
                let depends = words.any(|word| of_state.contains(&word)) && !made.starts_with("core._loop<");
                if depends || made.starts_with("state<") {
                    of_state.push(name);
                }
                depends && ARITHMETIC.iter().any(|name| made.split_once('(').is_some_and(|(op, _)| op == *name))
            })
        },
        does: |answers| {
            let wrong = |values: Vec<Value>| values.into_iter().map(|_| Value::from("wrong")).collect();
            Ok(answers.into_iter().map(|answer| answer.map(wrong)).collect())
        },
    };
    let mismatch = finds_among(&broken, &config);
    let left = operators(mismatch.program());
    let makes = |name: &str| left.iter().filter(|operator| **operator == *name).count();
    assert_eq!(ARITHMETIC.iter().map(|name| makes(name)).sum::<usize>(), 1, "{mismatch}");
    assert_eq!(makes("core.while_loop") + makes("seq.reduce"), 1, "{mismatch}");
    // A function that is applied inside of a round stays one.
    let applied = makes("core.apply");
    assert!(applied <= 1 && makes("core._lambda") <= 2 + applied && left.len() <= 9 + applied, "{mismatch}");
    assert_eq!(mismatch.program().outputs.len(), 1, "{mismatch}");
}

#[test]
#[ignore = "takes half a minute where the library is not optimised"]
fn a_tiered_executor_that_is_wrong_in_its_last_tier_is_found_and_shrunk() {
    let broken = Broken {
        meets: |prepared| prepared.contains("math.mod("),
        does: |mut answers| {
            if let Some(Ok(values)) = answers.last_mut() {
                values.fill(Value::from("wrong"));
            }
            Ok(answers)
        },
    };
    let subjects = Subjects { tiered: &broken, ..Subjects::default() };
    let mismatch = mismatch_among(subjects, &scalars(2000));
    let left = operators(mismatch.program());
    assert!(left.len() <= 2 && left.contains(&"math.mod".to_owned()), "{mismatch}");
    let who: Vec<_> = mismatch.answers().iter().map(|(who, _)| &**who).collect();
    assert_eq!(who, ["interpreter", "broken"]);
    // It runs a share of the programs only.
    let report = run_on(&Config { tiered: 0.0, ..Config::default() }, subjects, &mut |_| {});
    assert!(report.mismatch().is_none(), "{report}");
}

#[test]
fn a_tiered_executor_climbs_all_tiers_while_it_runs_the_rows() {
    let model = Model::parse("input x: f64; exp(x)").unwrap();
    let rows: Vec<Row> = [1.0, 2.0, 3.0].map(|x| Row::new(vec![("x".into(), Value::from(x))])).to_vec();
    for (highest, tiers) in [(Tier::Optimised, 2), (Tier::Quick, 1)] {
        let counters = Arc::new(Counters::default());
        let options = Options::default().tier(highest).metrics(counters.clone());
        let answers = Backend::Tiered.run(&model, &options, &rows).unwrap();
        assert_eq!(answers, Backend::Interpreter.run(&model, &options, &rows).unwrap());
        let counts = counters.counts();
        assert_eq!((counts.compiles, counts.tier_swaps), (tiers, tiers), "{highest:?}");
    }
    // What cannot be compiled would be interpreted on every row.
    let limits = cembra::Limits::default().code_bytes(1);
    let failure = Backend::Tiered.run(&model, &Options::default().limits(limits), &rows).unwrap_err();
    assert!(failure.message.contains("code_bytes"), "{failure}");
}

#[test]
fn a_panic_is_found_and_shrunk() {
    let broken =
        Broken { meets: |prepared| prepared.contains("core.make_tuple"), does: |_| panic!("no tuples, please") };
    // Loops are made of tuples too.
    let mismatch = finds_among(&broken, &Config { functions: 0.0, ..scalars(2000) });
    assert!(operators(mismatch.program()).len() <= 1, "{mismatch}");
    let (who, what) = &mismatch.answers()[0];
    assert!(who == "panic" && what.contains("no tuples, please") && what.contains("smoke.rs"), "{mismatch}");
}

#[test]
fn an_invented_fault_and_a_refusal_are_found() {
    let failure = |message: &str| Failure {
        code: "native",
        operator: None,
        span: None,
        element: None,
        message: message.to_owned(),
    };
    assert_eq!(failure("why").to_string(), "error native: why");
    let broken = Broken {
        meets: |prepared| prepared.contains("math.floordiv"),
        does: |answers| Ok(answers.into_iter().map(|_| Err(fault())).collect()),
    };
    let mismatch = finds_among(&broken, &Config { seed: 2, ..scalars(2000) });
    assert!(operators(mismatch.program()).len() <= 2, "{mismatch}");
    let mismatch = finds(&Broken { meets: |prepared| prepared.contains("math.sqrt"), does: |_| Err(fault()) });
    assert!(operators(mismatch.program()).len() <= 3, "{mismatch}");
    assert_eq!(mismatch.answers()[0].1, "compiled it");
}

fn fault() -> Failure {
    Failure {
        code: "div-by-zero",
        operator: Some("made.up".to_owned()),
        span: None,
        element: None,
        message: "made up".to_owned(),
    }
}

#[test]
fn any_text_is_read_or_refused() {
    let mut texts: Vec<String> = [
        "",
        "\u{0}",
        "input x: f64\noutput y = x",
        "input x: (f32, text?)\noutput y = x.1 ?? \"none\"",
        "output y = (((((((((",
        "output y = missing",
        "x + 1",
        "fn f(a) = f(a)\noutput y = f(1)",
        "output y = core._where(1 < 2, 1)",
        "output y = 1 // 0",
        "input x: bool\noutput y = if x then 1 else 1 // 0",
    ]
    .map(str::to_owned)
    .to_vec();
    texts.push("(".repeat(100_000));
    texts.push(format!("output y = {}1", "-".repeat(100_000)));
    for text in &texts {
        if let Some(mismatch) = try_text(text) {
            panic!("{mismatch}");
        }
    }
}

#[test]
fn rows_are_arguments_of_a_shell() {
    let row = Row::new(vec![
        ("x".into(), Value::from(1.5_f32)),
        ("y".into(), Value::from(None::<i64>)),
        ("odd name".into(), Value::from("it's")),
    ]);
    assert_eq!(row.to_string(), r#"-s x=1.5f32 -s 'y=missing[i64]' -s 'odd name="it'\''s"'"#);
}

/// Programs that broke a law in the past must not break it again.
#[test]
fn what_was_found_stays_mended() {
    for text in [
        // The verifier took an empty tuple for overwritten by its neighbour.
        "output y = (TUPLE{}, TUPLE{}, unit{}, TUPLE{})",
        "input t: ()\ninput m: unit?\noutput y = (t, m, t)\noutput z = t",
        // Typed as nothing, then refused in the name of another operator.
        "output y = bool.logical_if(false, 0.0, 0.0f32, if missing[unit] then missing)",
        "output y = if true then (1, 2) else (3, 4)",
        // The message showed the sign of a NaN, which the backends do not share.
        "input x: f64\noutput y = core.to_int64(math.sigmoid(0.0f32, x, f32{nan}))",
        "input x: f64\noutput y = core.to_int32(-(x / x))",
        // Guards that wait for each other: the condition of one branch takes, in a branch, what the other branch holds.
        "input a: unit?\ninput x: f64\nlet e = math.exp(x)\nlet c = where(a, e > 1.0, missing[unit])\noutput y = where(c, e, 0.0)",
        "input a: unit?\ninput x: f64\nlet e = math.exp(x)\nlet f = math.log(x)\nlet c = where(a, e > 1.0, f > 1.0)\nlet d = where(c, e < 2.0, missing[unit])\noutput y = (where(c, e, f), where(d, f, e))",
        // Nothing may be guarded again and again, in an order that the text does not keep; and what two guards share is.
        "input m: unit?\ninput v: i32\ninput s: text\nlet t0 = seq._range_size(v, v, v)\nlet t1 = strings.contains_regex(s, missing[text])\nlet t2 = core.where(t1, v, t0)\noutput y1 = core.where(m, t2, missing)\noutput y2 = core.where(t1, t0, core._presence_and_or(strings.find(\"\", \"\", t2, missing[i64]), unit{}, t2))",
        "input a, b, c: unit?\ninput v: i32\nlet t0 = 1 // v\nlet t1 = +t0\noutput y1 = if a then t1 else if b then 0 else where(c, t1, t0)",
    ] {
        assert!(try_text(text).is_none(), "{}", try_text(text).unwrap());
    }
    // Fewer operands than parameters: what the text fills in, a builder must give.
    let builder = cembra::program::Builder::new();
    let x = builder.typed_leaf("x", cembra::QType::MASK);
    builder.output("y", builder.call("core._where", &[x, x]));
    let model = Model::from_program(builder.build().unwrap());
    let error = model.compile(&Options::default()).unwrap_err();
    assert_eq!((error.code(), &*error.to_string()), ("arguments", "core._where takes 3 arguments, found 2"));
}

/// Programs look keys up in tables by ranges. Some tables have few ranges, which are compared; some have many, which are bisected.
#[test]
fn tables_by_ranges_are_looked_up_in() {
    let config = Config { seed: 7, ill_typed: 0.0, garbled: 0.0, arrays: 0.0, ..Config::default() };
    let (mut few, mut many) = (0, 0);
    for at in 0..1500 {
        let program = program(&config, at);
        if !operators(&program).iter().any(|name| name == "dict.ranges") {
            continue;
        }
        let model = Model::from_program(program);
        let prepared = model.explain(&Options::default(), Stage::Prepared).unwrap_or_default();
        if prepared.contains("dict._ranged(") { many += 1 } else { few += 1 }
    }
    assert!(few > 5 && many > 5, "{few} {many}");
}
