//! Every limit: what is exactly at it is taken, what is one beyond it is refused with an error that names it.

use cembra::errors::{Code, Limit};
use cembra::operators::{Registry, limits as operator_limits};
use cembra::program::{Builder, Resolver, Sources, UsedFile, read_binary};
use cembra::{Backend, Error, Limits, Model, ModelSet, Options, QType, RunOptions, Scalar, ScalarValue, Value, tensor};
use std::cell::Cell;
use std::io;
use std::time::Duration;

const BOTH: [Backend; 2] = [Backend::Interpreter, Backend::Native];

fn with(change: impl FnOnce(&mut Limits)) -> Limits {
    let mut limits = Limits::default();
    change(&mut limits);
    limits
}

/// Reads, compiles and evaluates a model without inputs, everything within the limits.
fn run(source: &str, limits: &Limits, backend: Backend) -> Result<Value, Error> {
    let model = Model::parse_within(source, limits)?;
    let executor = model.compile(&Options::default().backend(backend).limits(*limits))?;
    executor.session().evaluate(&[]).map(|mut values| values.remove(0))
}

/// Checks that the error names the limit, its value and what to do.
#[track_caller]
fn assert_exceeds(error: &Error, limits: &Limits, limit: Limit) {
    assert_eq!(error.code(), "limit", "{error}");
    let diagnostics = error.diagnostics();
    let expected = format!("the model exceeds the limit `{}` of {}", limit.name(), limits.show(limit));
    assert_eq!(diagnostics[0].message(), expected);
    let hint = format!("or raise the limit `{}`", limit.name());
    assert!(diagnostics[0].hints().iter().any(|found| found.ends_with(&hint)), "{error}");
}

/// Checks, in both backends, that a model fits a limit of `most` and not one of one less.
#[track_caller]
fn holds(source: &str, limit: Limit, most: usize, set: fn(&mut Limits, usize)) {
    for backend in BOTH {
        let (enough, less) = (with(|limits| set(limits, most)), with(|limits| set(limits, most - 1)));
        if let Err(error) = run(source, &enough, backend) {
            panic!("{}: {error}", backend.name());
        }
        let error = run(source, &less, backend).expect_err("one less than needed");
        assert_exceeds(&error, &less, limit);
    }
}

#[test]
fn source_bytes() {
    holds("1 + 23", Limit::SourceBytes, 6, |limits, most| limits.source_bytes = most);
}

#[test]
fn nesting_of_text() {
    holds("(((1)))", Limit::Nesting, 3, |limits, most| limits.nesting = most);
}

#[test]
fn nesting_of_tuples_made_step_by_step() {
    let source = "let a = (1, 2)\nlet b = (a, 3)\nlet c = (b,)\nlet d = (c, c)\nd";
    holds(source, Limit::TupleNesting, 4, |limits, most| limits.tuple_nesting = most);
}

#[test]
fn nesting_of_types_made_step_by_step() {
    let source = "let a = qtype.make_tuple_qtype(f32)\nlet b = qtype.make_sequence_qtype(a)\n\
                  let c = qtype.make_tuple_qtype(b, i32)\nc == f32";
    holds(source, Limit::TupleNesting, 3, |limits, most| limits.tuple_nesting = most);
}

/// Looked at after each step: what is made of so many deep types takes time and stack.
#[test]
fn nesting_of_what_an_operator_makes_again_and_again() {
    let source = "core.reduce_tuple(core.make_tuple, (1, 2, 3, 4, 5))";
    holds(source, Limit::TupleNesting, 4, |limits, most| limits.tuple_nesting = most);
    let fields = vec!["1"; 100_000].join(", ");
    let types = vec!["i32"; 100_000].join(", ");
    for source in [
        format!("core.reduce_tuple(core.make_tuple, ({fields}))"),
        format!("seq.reduce(qtype.make_tuple_qtype, qtype.get_field_qtypes(QTYPE{{({types})}}), f32) == f32"),
    ] {
        let error = run(&source, &Limits::default(), Backend::Interpreter).expect_err("too deep");
        assert_exceeds(&error, &Limits::default(), Limit::TupleNesting);
    }
}

#[test]
fn nodes() {
    // Three literals and two sums.
    holds("1 + 2 + 3", Limit::Nodes, 5, |limits, most| limits.nodes = most);
}

#[test]
fn operands() {
    // A sum of two, and a tuple of five.
    holds("let a = 1 + 2\n(a, a, a, a, a)", Limit::Operands, 7, |limits, most| limits.operands = most);
    let build = |operands| {
        let b = Builder::with_limits(with(|limits| limits.operands = operands));
        let x = b.typed_leaf("x", QType::INT32);
        // What comes behind is not made.
        let sums = (0..1_000).fold(b.tuple(&[x, x, x]), |all, _| b.tuple(&[all, x]));
        b.output("y", sums);
        b.build()
    };
    assert_eq!(build(2_003).expect("it fits").graph.operand_count(), 2_003);
    for (operands, limits) in [2_002, 10].map(|operands| (operands, with(|limits| limits.operands = operands))) {
        let error = build(operands).expect_err("one less");
        assert_exceeds(&error, &limits, Limit::Operands);
    }
}

#[test]
fn literal_bytes() {
    // Five bytes of text, and its place in a frame.
    holds("\"hello\"", Limit::LiteralBytes, 21, |limits, most| limits.literal_bytes = most);
}

#[test]
fn name_bytes() {
    holds("let amount = 1\namount + 1", Limit::NameBytes, 6, |limits, most| limits.name_bytes = most);
}

#[test]
fn instantiation() {
    // Each call visits one operator and its two operands.
    holds("numbers f32\nfn f(x) = x + 1\nf(f(2))", Limit::Instantiation, 6, |limits, most| limits.instantiation = most);
}

#[test]
fn problems() {
    let source = "let a = one(1)\nlet b = two(2)\nlet c = three(3)\na + b + c";
    for most in 1..=3 {
        let error = Model::parse_within(source, &with(|limits| limits.problems = most)).expect_err("wrong");
        assert_eq!(error.diagnostics().len(), most);
    }
    // Types, and inputs without types, are found later.
    for source in ["output a = 1 + \"a\"; output b = 2 + \"b\"; output c = 3 + \"c\"", "x + y + z"] {
        let model = Model::parse(source).expect("a model");
        for most in 1..=3 {
            let options = Options::default().limits(with(|limits| limits.problems = most));
            assert_eq!(model.compile(&options).expect_err("ill-typed").diagnostics().len(), most);
        }
    }
}

#[test]
fn tuple_fields() {
    // A pair, a pair of pairs with six fields in all, and its first field.
    let source = "let a = (1, 2)\nlet b = (a, a)\nb.0.1";
    holds(source, Limit::TupleFields, 10, |limits, most| limits.tuple_fields = most);
}

#[test]
fn tuple_fields_of_types_that_are_made() {
    // A type of a pair, and one of a pair of pairs.
    let source = "let a = qtype.make_tuple_qtype(f32, f32)\nlet b = qtype.make_tuple_qtype(a, a)\nb == f32";
    holds(source, Limit::TupleFields, 8, |limits, most| limits.tuple_fields = most);
}

#[test]
fn a_type_of_an_input_is_measured_too() {
    let doubled = (0..60).fold(QType::INT32, |inner, _| QType::tuple([inner.clone(), inner]));
    let b = Builder::new();
    let x = b.typed_leaf("x", doubled.clone());
    b.output("y", x);
    assert_eq!(b.build().expect_err("2^60 fields").code(), "limit");
    let model = Model::parse("x").expect("a model");
    let error = model.compile(&Options::default().input_type("x", doubled)).expect_err("2^60 fields");
    assert_exceeds(&error, &Limits::default(), Limit::TupleFields);
}

#[test]
fn frame_bytes() {
    let model = Model::parse("input x, y: f64; x + y").expect("a model");
    for backend in BOTH {
        let compile = |bytes| {
            let limits = with(|limits| limits.frame_bytes = bytes);
            (model.compile(&Options::default().backend(backend).limits(limits)), limits)
        };
        let inputs = [Value::from(1.5), Value::from(2.5)];
        let executor = compile(24).0.expect("three slots of eight bytes");
        assert_eq!(executor.session().evaluate(&inputs).expect("a value"), [Value::from(4.0)]);
        let (refused, limits) = compile(23);
        assert_exceeds(&refused.expect_err("too small"), &limits, Limit::FrameBytes);
    }
}

/// Compiles for both native backends: an error, and what the automatic choice says when it falls back.
#[track_caller]
fn refused_by_native(model: &Model, limits: Limits, limit: Limit, inputs: &[Value], expected: &Value) {
    let native = Options::default().backend(Backend::Native).limits(limits);
    assert_exceeds(&model.compile(&native).expect_err("beyond the limit"), &limits, limit);
    let executor = model.compile(&Options::default().limits(limits)).expect("it is interpreted");
    assert_eq!(executor.backend(), Backend::Interpreter);
    let reason = executor.fallback().expect("a reason");
    assert!(reason.code() == Code::Limit && reason.message().contains(limit.name()), "{reason}");
    assert_eq!(executor.session().evaluate(inputs).expect("a value").first(), Some(expected));
}

/// How many functions a model becomes.
fn functions(model: &Model, limits: Limits) -> usize {
    let machine = model.machine(&Options::default().limits(limits)).expect("machine code");
    machine.clif.lines().iter().filter(|line| line.text.starts_with("function")).count()
}

#[test]
fn beyond_native_steps_there_are_several_functions() {
    let at = |steps| with(|limits| limits.native_steps = steps);
    // Two steps; and a pair of an input: two fields as input, three steps and one field taken.
    for (source, steps) in [("input x: f64; x * 2.0 + 1.0", 2), ("input x: (f64, f64); x.0 * x.1", 5)] {
        let model = Model::parse(source).expect("a model");
        assert_eq!(functions(&model, at(steps)), 1, "{source}");
        assert!(functions(&model, at(steps - 1)) > 1, "{source}");
    }
}

#[test]
fn native_fields() {
    let native = Options::default().backend(Backend::Native);
    let at = |fields| with(|limits| (limits.native_steps, limits.native_fields) = (2, fields));
    let model = Model::parse("input x: (f64, f64, f64); (x.0, x.1 + x.2)").expect("a model");
    let inputs = [Value::Tuple([1.0, 2.0, 3.0].map(Value::from).into())];
    let result = Value::Tuple([1.0, 5.0].map(Value::from).into());
    let executor = model.compile(&native.limits(at(2))).expect("it fits");
    assert_eq!(executor.session().evaluate(&inputs).expect("a value"), std::slice::from_ref(&result));
    refused_by_native(&model, at(1), Limit::NativeFields, &inputs, &result);
}

#[test]
fn what_branches_share_is_not_repeated_in_all_of_them() {
    let branches = |count: usize| {
        let mut source = String::from("input x, z0: f64\nlet s = x * x + x\n");
        for n in 1..=count {
            source.push_str(&format!("let z{n} = if x > {n} then s else z{} + 1\n", n - 1));
        }
        Model::parse(&format!("{source}z{count}")).expect("a model")
    };
    // Few steps each, but two of them once more in each of the branches.
    let limits = with(|limits| limits.native_steps = 150);
    assert_eq!(functions(&branches(20), limits), 1);
    assert!(functions(&branches(40), limits) > 1);
}

#[test]
fn code_bytes() {
    let model = Model::parse("input x: f64; x * 2.0 + 1.0").expect("a model");
    let size = model.machine(&Options::default()).expect("machine code").code.len();
    let at = |bytes| with(|limits| limits.code_bytes = bytes);
    let executor = model.compile(&Options::default().limits(at(size))).expect("it fits");
    assert_eq!(executor.backend(), Backend::Native);
    refused_by_native(&model, at(size - 1), Limit::CodeBytes, &[Value::from(3.0)], &Value::from(7.0));
}

#[test]
fn compile_time() {
    let model = Model::parse("input x: f64; x * 2.0 + 1.0").expect("a model");
    let none = with(|limits| limits.compile_time = Duration::ZERO);
    let long = with(|limits| limits.compile_time = Duration::from_secs(3600));
    for backend in [Backend::Interpreter, Backend::Native, Backend::Auto] {
        let options = Options::default().backend(backend);
        assert!(model.compile(&options.clone().limits(long)).is_ok());
        let options = options.limits(none);
        assert_exceeds(&model.compile(&options).expect_err("no time"), &none, Limit::CompileTime);
        assert_exceeds(&model.signature(&options).expect_err("no time"), &none, Limit::CompileTime);
        assert_exceeds(&model.machine(&options).expect_err("no time"), &none, Limit::CompileTime);
    }
    // The same options can be used again: each compilation begins anew.
    let options = Options::default().limits(long);
    assert!(model.compile(&options).is_ok() && model.compile(&options).is_ok());
}

/// Thousands of patterns that are folded take no longer than sums would be let.
#[test]
fn compile_time_of_patterns() {
    let pattern = |n: usize| format!("strings.contains_regex(\"a\", \"{n}\\\\pL{{1,9}}\")");
    let source = (0..4000).map(|n| format!("output y{n} = {}\n", pattern(n))).collect::<String>();
    let model = Model::parse(&source).expect("a model");
    let limits = with(|limits| limits.compile_time = Duration::from_millis(300));
    let start = std::time::Instant::now();
    let error = model.compile(&Options::default().backend(Backend::Interpreter).limits(limits)).expect_err("no time");
    assert_exceeds(&error, &limits, Limit::CompileTime);
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
}

#[test]
fn arena_bytes() {
    let model = Model::parse("input a, b: text; strings.join(a, b)").expect("a model");
    for backend in BOTH {
        let evaluate = |bytes| {
            let limits = with(|limits| limits.arena_bytes = bytes);
            let executor = model.compile(&Options::default().backend(backend).limits(limits)).expect("a model");
            executor.session().evaluate(&[Value::from("abc"), Value::from("de")])
        };
        assert_eq!(evaluate(5).expect("five bytes"), [Value::from("abcde")]);
        let error = evaluate(4).expect_err("one byte less");
        assert_eq!((error.code(), error.operator()), ("arena-limit", Some("strings.join")));
        assert!(error.to_string().contains("`arena_bytes`"), "{error}");
        assert!(error.diagnostics()[0].hints()[0].ends_with("or raise the limit `arena_bytes`"));
    }
}

#[test]
fn loop_iterations() {
    // A loop of n rounds goes round again n - 1 times; the limit is that of all loops of an evaluation.
    let model = Model::parse(
        "input n: i64
         seq.reduce(math.add, seq.range(n), 0i64) + seq.reduce(fn(s, i) = s + 2, seq.range(n), 0i64)",
    )
    .expect("a model");
    for backend in BOTH {
        let evaluate = |rounds| {
            let limits = with(|limits| limits.loop_iterations = rounds);
            let executor = model.compile(&Options::default().backend(backend).limits(limits)).expect("a model");
            executor.session().evaluate(&[Value::from(6_i64)])
        };
        assert_eq!(evaluate(10).expect("two loops of six rounds"), [Value::from(27_i64)]);
        let error = evaluate(9).expect_err("one less");
        assert_eq!((error.code(), error.operator()), ("iteration-limit", Some("seq.reduce")));
        assert!(error.to_string().contains("`loop_iterations`"), "{error}");
        assert!(error.diagnostics()[0].hints()[0].ends_with("or raise the limit `loop_iterations`"));
    }
}

/// Each limit of runs: the options may lower that which the model was read within, the run may lower both, and neither raises one.
#[test]
fn runs_lower_limits_and_raise_none() {
    let high = Limits::default();
    let cases = [
        ("strings.join(strings.as_text(n), \"abcde\")", "arena-limit", high.arena_bytes(4)),
        ("array.iota(array.make_dense_array_shape(n))", "arena-limit", high.array_bytes(64)),
        ("seq.reduce(math.add, seq.range(n), 0i64)", "iteration-limit", high.loop_iterations(4)),
        // A plan of numbers beside arrays.
        (
            "let x = array.iota(array.make_dense_array_shape(n)); seq.reduce(fn(s, i) = s + math.sum(x), seq.range(n), 0i64)",
            "iteration-limit",
            high.loop_iterations(4),
        ),
        ("strings.length(strings.as_text(n * 10_000))", "work-limit", high.string_work(4)),
    ];
    for (source, code, low) in cases {
        for of_model in [high, low] {
            let model = Model::parse_within(&format!("input n: i64; {source}"), &of_model).expect(source);
            for (of_options, of_run) in [(high, high), (low, high), (high, low), (low, low)] {
                for backend in BOTH {
                    let options = Options::default().backend(backend).limits(of_options);
                    let mut session = model.compile(&options).expect(source).session();
                    session.set_run_options(&RunOptions::new().limits(of_run));
                    let made = session.evaluate(&[Value::from(9_i64)]).map(drop).map_err(|error| error.code());
                    let expected = if [of_model, of_options, of_run] == [high; 3] { Ok(()) } else { Err(code) };
                    assert_eq!(made, expected, "{source}");
                }
            }
        }
    }
}

/// A model keeps the limits that it was read within, on every way from it to a result.
#[test]
fn a_model_keeps_its_limits() {
    #[derive(cembra::Input)]
    struct Row {
        n: i64,
    }
    let text = "input n: i64; seq.reduce(fn(s, i) = s + i, seq.range(n), 0i64)";
    let limits = with(|limits| limits.loop_iterations = 1_000);
    let code = |made: Result<(), Error>| made.map_err(|error| error.code());
    let read = Model::parse_within(text, &limits).expect("a model");
    let models = [
        Model::parse_with(text, Registry::standard(), &limits).expect("a model"),
        Model::parse_sources(Sources::alone("m.cem", text), Registry::standard(), &limits).expect("a model"),
        read.with_program(read.program().clone()).named("other"),
        read,
    ];
    let most = with(|limits| limits.loop_iterations = u64::MAX);
    for backend in BOTH {
        for limits in [Limits::default(), most] {
            let options = Options::default().backend(backend).limits(limits);
            for model in &models {
                let mut session = model.compile(&options).expect("an executor").session();
                session.set_run_options(&RunOptions::new().limits(most));
                let batch = model.batch(&options).expect("a batch");
                let mut typed = model.executor::<Row, i64>(&options).expect("an executor");
                for (n, expected) in [(1_001, Ok(())), (1_002, Err("iteration-limit"))] {
                    assert_eq!(code(session.evaluate(&[Value::from(n)]).map(drop)), expected);
                    assert_eq!(code(batch.run(&[cembra::columns::InputColumn::values(&[n])]).map(drop)), expected);
                    assert_eq!(code(typed.run(&Row { n }).map(drop)), expected);
                }
            }
        }
        // Default limits of reading lower none of the options, and higher limits of reading raise none.
        let raised = Options::default().backend(backend).limits(with(|limits| limits.loop_iterations = 20_000_000));
        let run = |model: &Model, options: &Options, n: i64| {
            code(model.compile(options).expect("an executor").session().evaluate(&[Value::from(n)]).map(drop))
        };
        assert_eq!(run(&Model::parse(text).expect("a model"), &raised, 10_000_100), Ok(()));
        let read = Model::parse_within(text, &most).expect("a model");
        assert_eq!(run(&read, &raised, 10_000_100), Ok(()));
        assert_eq!(run(&read, &Options::default().backend(backend), 10_000_100), Err("iteration-limit"));
    }
    // Limits of compiling, too.
    let small = with(|limits| limits.frame_bytes = 8);
    let model = Model::parse_within(text, &small).expect("a model");
    assert_exceeds(&model.compile(&Options::default()).expect_err("too small"), &small, Limit::FrameBytes);
    let few = with(|limits| limits.problems = 2);
    let unused: String = (0..9).map(|at| format!("let a{at} = {at}\n")).collect();
    let model = Model::parse_within(&format!("{unused}1"), &few).expect("a model");
    assert_eq!(model.warnings(&Options::default()).as_slice().len(), 2);
}

/// Work on strings is counted alike in both backends, and its limit is the fault of no operator.
#[test]
fn string_work() {
    let text = "a".repeat(300);
    for (source, work) in [
        ("strings.length(t) + strings.length(u)", 600),
        ("strings.contains(t, u) or strings.contains(u, t)", 1200),
        ("strings.join(t, strings.substr(u, 100))", 800),
        ("t == u", 300),
        ("t < strings.substr(u, 10)", 590),
        // Shorter ones are compared for nothing.
        ("strings.substr(t, 100) == strings.substr(u, 100)", 600),
        (
            "seq.reduce(fn(s, i) = s + strings.length(strings.substr(t, i)), seq.range(10), strings.length(u))",
            300 + 10 * 300 + 2955,
        ),
        ("where(t != u, strings.length(strings.join(t, u)), 0i64)", 300),
    ] {
        let model = Model::parse(&format!("input t, u: text; {source}")).expect(source);
        for backend in BOTH {
            let evaluate = |work| {
                let limits = with(|limits| limits.string_work = work);
                let executor = model.compile(&Options::default().backend(backend).limits(limits)).expect(source);
                let mut session = executor.session();
                // Each evaluation has as much.
                let all: Vec<_> = (0..3)
                    .map(|_| session.evaluate(&[Value::from(text.as_str()), Value::from(text.as_str())]))
                    .collect();
                assert!(all.array_windows().all(|[a, b]| a.is_ok() == b.is_ok()), "{source}");
                all.into_iter().next().expect("three")
            };
            if let Err(error) = evaluate(work) {
                panic!("{source}, {}: {error}", backend.name());
            }
            let error = evaluate(work - 1).expect_err(source);
            assert_eq!((error.code(), error.operator(), error.span()), ("work-limit", None, None), "{source}");
            assert!(error.to_string().contains("`string_work`"), "{error}");
            assert!(error.diagnostics()[0].hints()[0].ends_with("or raise the limit `string_work`"));
        }
    }
}

#[test]
fn patterns_and_texts_that_are_large_together() {
    // Letters in no order, so that no automaton is small.
    let mut bits = 0x9E37_79B9_u32;
    let mut letter = || {
        bits ^= bits << 13;
        bits ^= bits >> 17;
        bits ^= bits << 5;
        if bits & 1 == 0 { 'a' } else { 'b' }
    };
    let text: String = (0..1_000_000).map(|_| letter()).collect();
    let model = Model::parse("input t, p: text; strings.extract_regex(t, p)").expect("a model");
    let start = std::time::Instant::now();
    for backend in BOTH {
        let executor = model.compile(&Options::default().backend(backend)).expect("a model");
        let matched = |pattern: &str| {
            executor
                .session()
                .evaluate(&[Value::from(text.as_str()), Value::from(pattern)])
                .map(|mut all| all.remove(0))
        };
        let error = matched("(a[ab]{10000}c)").expect_err("too large");
        assert!(
            error.code() == "invalid" && error.to_string().contains("too large for a text of this length"),
            "{error}"
        );
        assert_eq!(matched("((?:a|b|ab)*c)").expect("small"), Value::Missing(Scalar::Text));
        assert_eq!(
            matched("([ab]{20})$").expect("small"),
            Value::Present(ScalarValue::Text(text[text.len() - 20..].into()))
        );
    }
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
}

#[test]
fn instantiation_of_functions_that_are_values() {
    let source = "numbers f32\nlet twice = fn(f, x) = f(f(x))\ntwice(fn(x) = x * 2, 3)";
    holds(source, Limit::Instantiation, 45, |limits, most| limits.instantiation = most);
}

/// An operator on a sequence counts what it becomes, at each place where it stands.
#[test]
fn instantiation_of_sequences() {
    let once = "let s = seq.make(10, 20, 30)\nseq.at(s, 1 + 1)";
    holds(once, Limit::Instantiation, 19, |limits, most| limits.instantiation = most);
    let twice = "let s = seq.make(10, 20, 30)\nseq.at(s, 1 + 1) + seq.at(s, 0 + 1)";
    holds(twice, Limit::Instantiation, 38, |limits, most| limits.instantiation = most);
}

/// A type is long where it was made, and may be asked for its fields in a few letters.
#[test]
fn instantiation_of_what_is_made_of_types() {
    let fields = "seq.size(qtype.get_field_qtypes(QTYPE{(i32, f32, text)}))";
    holds(fields, Limit::Instantiation, 3, |limits, most| limits.instantiation = most);
    let names = "seq.size(qtype.get_field_names(QTYPE{{a: i32, b: f32, c: text, d: i32}}))";
    holds(names, Limit::Instantiation, 4, |limits, most| limits.instantiation = most);
    let equal = "QTYPE{(i32, (f32, text))} == QTYPE{(i32, (f32, i32))}";
    holds(equal, Limit::Instantiation, 4, |limits, most| limits.instantiation = most);
}

#[test]
fn files() {
    let model = Model::parse("input x: f64; x * 2.0 + 1.0").expect("a model");
    let binary = model.to_binary();
    // Five nodes: an input, two literals and two operators.
    for (limit, most, set) in [
        (Limit::FileBytes, binary.len(), (|limits, most| limits.file_bytes = most) as fn(&mut Limits, usize)),
        (Limit::Nodes, 5, |limits, most| limits.nodes = most),
        (Limit::LiteralBytes, 16, |limits, most| limits.literal_bytes = most),
        (Limit::NameBytes, 13, |limits, most| limits.name_bytes = most),
        // The operators have four operands, and the lists of spans have five entries.
        (Limit::Operands, 5, |limits, most| limits.operands = most),
    ] {
        assert!(read_binary(&binary, &with(|limits| set(limits, most))).is_ok(), "{limit:?}");
        let less = with(|limits| set(limits, most - 1));
        assert_exceeds(&read_binary(&binary, &less).expect_err("one less"), &less, limit);
    }
}

#[test]
fn files_that_a_text_uses() {
    let find = |name: &str, _: &str| Ok(UsedFile { name: name.to_owned(), text: "let one = 1".into() });
    let read = |limits: &Limits| {
        let sources = Sources::gather("m", "use \"a\"; use \"a\"; one", limits, &find);
        Model::parse_sources(sources, Registry::standard(), limits)
    };
    // The file is one, and there is a line end between it and the text.
    for (limit, most, set) in [
        (Limit::Files, 1, (|limits, most| limits.files = most) as fn(&mut Limits, usize)),
        (Limit::SourceBytes, 21 + 1 + 11, |limits, most| limits.source_bytes = most),
    ] {
        assert!(read(&with(|limits| set(limits, most))).is_ok(), "{limit:?}");
        let less = with(|limits| set(limits, most - 1));
        assert_exceeds(&read(&less).expect_err("one less"), &less, limit);
    }
}

/// Two spellings are two names, whatever file they mean; a file whose name is known is not read again.
#[test]
fn spellings_of_a_file_that_a_text_uses() {
    struct Counted(Cell<usize>);
    impl Resolver for Counted {
        fn resolve(&self, _: &str, _: &str) -> io::Result<UsedFile> {
            self.0.set(self.0.get() + 1);
            Ok(UsedFile { name: "one".to_owned(), text: "let one = 1".into() })
        }
        fn name_of(&self, _: &str, _: &str) -> Option<String> {
            Some("one".to_owned())
        }
    }
    let text = |count: usize| (0..count).map(|at| format!("use \"{}one\"; ", "./".repeat(at))).collect::<String>();
    let read = |count: usize, limits: &Limits, resolver: &dyn Resolver| {
        let sources = Sources::gather("m", text(count) + "one", limits, resolver);
        Model::parse_sources(sources, Registry::standard(), limits)
    };
    let (limits, counted) = (with(|limits| limits.files = 7), Counted(Cell::new(0)));
    assert!(read(7, &limits, &counted).is_ok());
    assert_eq!(counted.0.get(), 1);
    assert_exceeds(&read(8, &limits, &counted).expect_err("one more"), &limits, Limit::Files);
    // A resolver that knows no name beforehand reads again, within the bytes of a text.
    let again = |_: &str, _: &str| Ok(UsedFile { name: "one".to_owned(), text: "let one = 1".into() });
    let limits = with(|limits| limits.source_bytes = 16 + text(8).len());
    assert!(read(2, &limits, &again).is_ok());
    let limits = with(|limits| limits.source_bytes = 3 * 11 + 4);
    assert_exceeds(&read(2, &limits, &again).expect_err("too long"), &limits, Limit::SourceBytes);
}

#[test]
fn models_of_a_folder() {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, text) in [("a", "use \"c/d.txt\"; d"), ("b", "1.5"), ("c", "use \"c/d.txt\"; 2 * d")] {
        std::fs::write(folder.path().join(name).with_extension("cem"), text).expect("a file");
    }
    std::fs::create_dir(folder.path().join("c")).expect("a folder");
    std::fs::write(folder.path().join("c/d.txt"), "let d = 1.0").expect("a file");
    let load = |limits: &Limits| {
        ModelSet::load_within(folder.path(), Registry::standard(), limits, |_, model| Ok(model.clone()))
    };
    // The models, and the file that two of them use: read once, and parsed with each.
    for (limit, most, set) in [
        (Limit::SetModels, 3, (|limits, most| limits.set_models = most) as fn(&mut Limits, usize)),
        (Limit::SetBytes, 16 + 11 + 3 + 20, |limits, most| limits.set_bytes = most),
        (Limit::SetParsedBytes, 16 + 11 + 3 + 20 + 11, |limits, most| limits.set_parsed_bytes = most as u64),
    ] {
        assert!(load(&with(|limits| set(limits, most))).is_ok(), "{limit:?}");
        let less = with(|limits| set(limits, most - 1));
        assert_exceeds(&load(&less).expect_err("one less"), &less, limit);
    }
}

#[test]
fn fields_of_formats() {
    for backend in BOTH {
        for operator in ["strings.printf(\"%WIDTHd\", 7)", "strings.printf(\"%.WIDTHf\", 7.0)"] {
            let source = |width: usize| operator.replace("WIDTH", &width.to_string());
            let value = run(&source(operator_limits::FIELD_WIDTH), &Limits::default(), backend).expect("a text");
            assert!(value.to_string().len() > operator_limits::FIELD_WIDTH);
            let error =
                run(&source(operator_limits::FIELD_WIDTH + 1), &Limits::default(), backend).expect_err("too wide");
            assert!(error.code() == "arguments" && error.to_string().contains("more than 1000"), "{error}");
        }
    }
}

#[test]
fn patterns() {
    let matched = |text: &str, pattern: &str, backend| {
        let model = Model::parse("input t, p: text; strings.contains_regex(t, p)").expect("a model");
        let executor = model.compile(&Options::default().backend(backend)).expect("a model");
        executor.session().evaluate(&[Value::from(text), Value::from(pattern)])
    };
    let (a, letters) = ("a", |count| "a".repeat(count));
    for backend in BOTH {
        assert!(matched(&letters(operator_limits::MATCHED_BYTES), a, backend).is_ok());
        let error = matched(&letters(operator_limits::MATCHED_BYTES + 1), a, backend).expect_err("too long");
        assert!(error.to_string().contains("1 MiB"), "{error}");
        // A pattern of this length is too large once compiled, unless it says one thing again and again.
        let class = |count: usize| format!("[{}]", "a".repeat(count - 2));
        assert!(matched(a, &class(operator_limits::PATTERN_BYTES), backend).is_ok());
        let error = matched(a, &class(operator_limits::PATTERN_BYTES + 1), backend).expect_err("too long");
        assert!(error.to_string().contains("64 KiB"), "{error}");
        let error = matched(a, "(a{1000}){1000}", backend).expect_err("too large");
        assert!(error.to_string().contains("compiles to more than 1 MiB"), "{error}");
    }
}

/// `docs/limits.md` lists every limit by name.
#[test]
fn all_are_documented() {
    let page = include_str!("../../../docs/limits.md");
    for limit in Limit::ALL {
        assert!(page.contains(&format!("| `{}` |", limit.name())), "{}", limit.name());
    }
}

/// And every limit that nobody sets, by its name and its value.
#[test]
fn fixed_limits_are_documented_with_their_values() {
    let page = include_str!("../../../docs/limits.md");
    let others = [
        ("MOST_AXES", tensor::MOST_AXES),
        ("MOST_FACTORS", tensor::MOST_FACTORS),
        ("MOST_LABELS", tensor::MOST_LABELS),
        ("MOST_MODEL_NODES", tensor::MOST_MODEL_NODES),
        ("STACK_BYTES", cembra_native::STACK_BYTES),
    ];
    for (name, value) in operator_limits::ALL.iter().copied().chain(others) {
        assert!(page.contains(&format!("| `{name}` | {value} |")), "{name} is {value}");
    }
    let listed = page.lines().filter(|line| line.starts_with("| `") && line.contains(|c: char| c.is_uppercase()));
    let fixed = listed.filter(|line| line[3..].chars().take_while(|c| *c != '`').all(|c| c.is_uppercase() || c == '_'));
    assert_eq!(fixed.count(), operator_limits::ALL.len() + others.len(), "a limit is listed that there is not");
}

/// What comes in is not counted, nor what a round of a loop no longer has; what is made is, whoever makes it.
#[test]
fn array_bytes() {
    use cembra::values::ArrayKind;
    use cembra::{Array, Scalar, ScalarValue};
    let elements = |count: i64| Array::from_scalars(Scalar::Int64, (0..count).map(|at| Some(ScalarValue::Int64(at))));
    let x = Value::Array(ArrayKind::Dense, elements(1024).into());
    let evaluate = |text: &str, backend, bytes| {
        let limits = with(|limits| limits.array_bytes = bytes);
        let model = Model::parse(text).expect("a model");
        let executor = model.compile(&Options::default().backend(backend).limits(limits)).expect("a model");
        executor.session().evaluate(std::slice::from_ref(&x))
    };
    let one = 8 * 1024;
    for backend in BOTH {
        for (text, most, operator) in [
            ("input x: [i64]; array.slice(x, 1, 1023)", one, "array.slice"),
            ("input x: [i64]; output y = x + 1; output z = x * 2", 2 * one, "math.multiply"),
            (
                "input x: [i64]; output y = cum_sum(x, over=edge.to_scalar(x)); output z = x * 2",
                2 * one,
                "math.multiply",
            ),
            ("input x: [i64]; array.iota(array.make_dense_array_shape(array.size(x) * 2))", 2 * one, "array.iota"),
        ] {
            // Arrays may have a little more memory than elements, and bits of presence.
            evaluate(text, backend, most + most / 8).expect(text);
            let error = evaluate(text, backend, most - 9).expect_err(text);
            assert_eq!((error.code(), error.operator()), ("arena-limit", Some(operator)), "{text}");
            assert!(
                error.message().ends_with("the arrays of one evaluation exceed the limit `array_bytes`"),
                "{error}"
            );
            assert!(error.diagnostics()[0].hints()[0].ends_with("or raise the limit `array_bytes`"));
        }
        // Nothing of it is made.
        assert!(evaluate("input x: [i64]; output y = x; output n = array.size(x)", backend, 0).is_ok());
        // Nor is there anything of what nobody asks for any more.
        let chain = "input x: [i64]; if array.size(x) > 0 then (((x + 1) * 2 - 3) // 5) * 7 else x";
        assert!(evaluate(chain, backend, 2 * one + one / 2).is_ok());
        let rounds = "input x: [i64]; seq.reduce(fn(s, i) = s + i, seq.range(array.size(x)), x)";
        assert!(evaluate(rounds, backend, 3 * one).is_ok());
        assert!(evaluate(rounds, backend, one - 1).is_err());
        let grows = "input x: [i64]; core.while_loop(x, fn(s) = array.size(s) > 0, fn(s) = array.concat(s, s))";
        assert_eq!(evaluate(grows, backend, 100 * one).expect_err("too large").operator(), Some("array.concat"));
    }
}

#[test]
fn dict_entries() {
    let model = Model::parse("input d: dict[i64, f64]; lookup(3, d)").expect("a model");
    let of = |count: i64| {
        let entries = (0..count).map(|key| (ScalarValue::from(key), Some(ScalarValue::from(key as f64 / 2.0))));
        Value::map(Scalar::Int64, Scalar::Float64, entries).expect("entries")
    };
    for backend in BOTH {
        let limits = with(|limits| limits.dict_entries = 4);
        let executor = model.compile(&Options::default().backend(backend).limits(limits)).expect("a model");
        assert_eq!(executor.session().evaluate(&[of(4)]).expect("four entries"), [Value::from(Some(1.5))]);
        let error = executor.session().evaluate(&[of(5)]).expect_err("one more");
        assert_eq!(error.code(), "limit");
        assert!(error.to_string().contains("`dict_entries`"), "{error}");
        // A million keys are found as four are.
        let executor = model.compile(&Options::default().backend(backend)).expect("a model");
        assert_eq!(executor.session().evaluate(&[of(1_000_000)]).expect("a million entries"), [Value::from(Some(1.5))]);
    }
}
