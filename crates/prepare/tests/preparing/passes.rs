//! Tests of each pass of preparation on small expressions: the graph before and after it, and options that leave a pass
//! out or stop after it.

use cembra_expr::{Graph, Output, Program, parse};
use cembra_ops::{Registry, id};
use cembra_prepare::{Extension, Id, Kind, Mode, Options, PASSES, Prepared, RegionId, Rewriter, prepare};
use cembra_value::{Code, Diagnostic, Limits, ScalarValue, Value};
use std::sync::Arc;

/// Returns the name of each pass that ran, with the graph after it.
fn stages(text: &str, options: &Options) -> Vec<(&'static str, Prepared)> {
    let program = parse(text, Registry::standard(), &Limits::default()).expect("a model");
    let mut stages = Vec::new();
    prepare(&program, &|_| None, options, &mut |pass, prepared| stages.push((pass.name, prepared.clone())))
        .unwrap_or_else(|error| panic!("{error}"));
    stages
}

/// Returns the lines of the graph after the pass `pass`, with nodes numbered in the order of their lines.
fn after(text: &str, pass: &str, options: &Options) -> Vec<String> {
    let stages = stages(text, options);
    let (_, prepared) = stages.iter().find(|(name, _)| *name == pass).expect("a pass that ran");
    renumbered(prepared)
}

fn renumbered(prepared: &Prepared) -> Vec<String> {
    let mut numbers: Vec<String> = Vec::new();
    let text = prepared.to_string();
    text.lines()
        .map(|line| {
            let mut pieces = line.split('%');
            let mut new = pieces.next().unwrap_or_default().to_owned();
            for piece in pieces {
                let digits = piece.len() - piece.trim_start_matches(|c: char| c.is_ascii_digit()).len();
                let (old, rest) = piece.split_at(digits);
                let number = numbers.iter().position(|known| known == old).unwrap_or_else(|| {
                    numbers.push(old.to_owned());
                    numbers.len() - 1
                });
                new.push_str(&format!("%{number}{rest}"));
            }
            new
        })
        .collect()
}

fn default(text: &str, pass: &str) -> Vec<String> {
    after(text, pass, &Options::default())
}

#[test]
fn an_operator_that_stands_for_others_takes_its_own_number_of_operands() {
    // The parser counts operands itself; files and builders have any number.
    let mut graph = Graph::new();
    let text = graph.literal(Value::text("a"), None);
    let node = graph.operator("core._plus", &[text], None);
    let outputs = vec![Output { name: "y".into(), node, span: None }];
    let program = Program { graph, outputs, ..Program::default() };
    let refused = prepare(&program, &|_| None, &Options::default(), &mut |_, _| {}).expect_err("one operand");
    assert!(refused.to_string().contains("core._plus takes 2 arguments, found 1"), "{refused}");
}

#[test]
fn dictionaries_of_literals_are_literals_and_others_are_their_arrays() {
    // More bytes of strings than are folded elsewhere.
    let keys: Vec<String> = (0..50).map(|at| format!("\"{at:_>30}\"")).collect();
    let values: Vec<String> = (0..50).map(|at| at.to_string()).collect();
    let known = format!("input x: text\ndict.get(dict.make([{}], [{}]), x)", keys.join(", "), values.join(", "));
    let lines = default(&known, "expand");
    assert!(lines.len() == 4 && lines[2].starts_with("%2 = dict._table("), "{lines:?}");
    assert_eq!(
        default("input k: [i32]\ninput v: [f32]\ninput x: i64\ndict.get(dict.make(k, v), x)", "expand"),
        [
            "%0 = L.k : [i32?], full",
            "%1 = L.v : [f32?], full",
            "%2 = L.x : i64",
            "%3 = core.to_int64(%0) : [i64?]",
            "%4 = dict._rows(%3, %2) : i64?",
            "%5 = array.at(%1, %4) : f32?",
            "result = %5",
        ]
    );
}

#[test]
fn types_are_inferred_and_names_resolved() {
    assert_eq!(
        default("numbers f32\ninput x: f32\ninput y: i64?\nM.math.add(x, max(y, 1))", "types"),
        [
            "%0 = L.x : f32",
            "%1 = L.y : i64?",
            "%2 = i64?{1} : i64?",
            "%3 = math.maximum(%1, %2) : i64?",
            "%4 = core.to_optional(%0) : f32?",
            "%5 = core.to_float32(%3) : f32?",
            "%6 = math.add(%4, %5) : f32?",
            "result = %6",
        ]
    );
}

#[test]
fn weak_outputs_are_cast_unless_they_are_kept() {
    assert_eq!(
        default("1.5", "types"),
        ["%0 = weak_float{1.5} : weak_float", "%1 = core.to_float64(%0) : f64", "result = %1"]
    );
    let kept = Options { keep_weak_outputs: true, ..Options::default() };
    assert_eq!(after("1.5", "types", &kept), ["%0 = weak_float{1.5} : weak_float", "result = %0"]);
}

#[test]
fn composite_operators_are_replaced() {
    let lowered = |expression: &str| {
        let text = format!("input x: i32?, b: bool, m: unit?\n{expression}");
        default(&text, "expand").into_iter().filter(|line| line.contains('(')).collect::<Vec<_>>()
    };
    assert_eq!(lowered("if m then x else 1"), ["%3 = core.where(%1, %0, %2) : i32?"]);
    assert_eq!(lowered("not b"), ["%1 = bool.logical_not(%0) : bool"]);
    assert_eq!(lowered("not m"), ["%1 = core.presence_not(%0) : unit?"]);
    assert_eq!(lowered("m and m"), ["%1 = core.presence_and(%0, %0) : unit?"]);
    assert_eq!(lowered("b or m"), ["%3 = core.equal(%0, %2) : unit?", "%4 = core.presence_or(%3, %1) : unit?"]);
    assert_eq!(lowered("cast(x, f64?)"), ["%1 = core.to_float64(%0) : f64?"]);
    assert_eq!(lowered("cast(b, i32?)"), ["%1 = core.to_int32(%0) : i32", "%2 = core.to_optional(%1) : i32?"]);
    // Only the type of the operand is used.
    assert_eq!(default("input x: i32?\nones_like(x + 1)", "expand"), ["%0 = i32?{1} : i32?", "result = %0"]);
    assert_eq!(default("input x: i32\ncore.identity(x)", "expand"), ["%0 = L.x : i32", "result = %0"]);
}

#[test]
fn casts_are_written_out_scalar_first_and_shared() {
    assert_eq!(
        default("input i: i32\ninput x: f64?\n(i + x) * i", "types"),
        [
            "%0 = L.i : i32",
            "%1 = L.x : f64?",
            "%2 = core.to_float64(%0) : f64",
            "%3 = core.to_optional(%2) : f64?",
            "%4 = math.add(%3, %1) : f64?",
            "%5 = math.multiply(%4, %3) : f64?",
            "result = %5",
        ]
    );
}

#[test]
fn every_operator_is_bound_once_composite_ones_are_replaced() {
    let text = "input x: f32?, t: (i32, text)\nwhere(x > 1, t.0 // 2, abs(t.0)) ?? -1";
    for (pass, prepared) in stages(text, &Options::default()) {
        let (model, needed) = (prepared.model(), prepared.model().needed());
        let bound = |id: Id| !matches!(model.graph.kind(id), Kind::Operator { op, overload: None, .. } if op != id::GET_NTH && op != id::MAKE_TUPLE);
        assert_eq!(model.graph.ids().filter(|id| needed[id.index()]).all(bound), pass != "types", "{pass}");
    }
}

#[test]
fn nodes_that_differ_only_until_they_are_cast_are_one() {
    let products = |expression: &str| {
        let lines = default(&format!("input x: f32, y: f64\n{expression}"), "types");
        lines.iter().filter(|line| line.contains("math.multiply")).count()
    };
    assert_eq!(products("y * 3 + y * 2.0"), 2);
    // Literals of two types, and one that is written as what the other is cast to.
    assert_eq!(products("y * 2 + y * 2.0"), 1);
    assert_eq!(products("y * f64{2.0} + y * 2.0"), 1);
    assert_eq!(products("y * 2.0 + y * f64{2.0}"), 1);
    // Casts that are written and implied, in either order; one behind another; and two names of one operator.
    assert_eq!(products("x * y + core.to_float64(x) * y"), 1);
    assert_eq!(products("core.to_float64(x) * y + x * y"), 1);
    assert_eq!(products("x * (y & (y > 1.0)) + core.to_float64(x) * (y & (y > 1.0))"), 1);
    assert_eq!(products("max(x, y) * y + math.maximum(x, y) * y"), 1);
    // Of two types each, there are two.
    assert_eq!(products("y * 2.0 + x * 2.0 + y * 2.0 * (x * 2.0)"), 3);
}

#[test]
fn an_untyped_missing_becomes_a_typed_one() {
    assert_eq!(
        default("input x: f32\nx ?? missing", "types")[1..3],
        ["%1 = f32?{NA} : f32?", "%2 = core.presence_or(%0, %1) : f32"]
    );
}

#[test]
fn operators_on_literals_are_folded() {
    assert_eq!(
        default("input x: f32\nx * (2.0 * 3.0 - 1.0)", "fold"),
        ["%0 = L.x : f32", "%1 = 5. : f32", "%2 = math.multiply(%0, %1) : f32", "result = %2"]
    );
    assert_eq!(default("(missing[i32] // 0, 7 // 2).1 + 1", "fold"), ["%0 = 4 : i32", "result = %0"]);
}

#[test]
fn folding_leaves_what_fails() {
    let lines = default("input x: i32\nx + 1 // (2 - 2)", "fold");
    assert_eq!(lines[1..4], ["%1 = 1 : i32", "%2 = 0 : i32", "%3 = math.floor_divide(%1, %2) : i32"]);
}

#[test]
fn folding_does_not_cross_the_order_of_operations() {
    // x + 1 + 2 is (x + 1) + 2; sums of literals on the right are not gathered.
    let lines = default("input x: i32\nx + 1 + 2", "optimise");
    assert_eq!(lines.iter().filter(|line| line.contains("math.add")).count(), 2);
}

#[test]
fn the_optimiser_has_two_modes() {
    let text = "input x: f64\nx + 0.0";
    let strict = default(text, "optimise");
    assert!(strict.iter().any(|line| line.contains("math.add")), "{strict:?}");
    let compat = Options { mode: Mode::Compat, ..Options::default() };
    assert_eq!(after(text, "optimise", &compat), ["%0 = L.x : f64", "result = %0"]);
}

#[test]
fn conditionals_with_something_to_skip_become_lazy() {
    let lines = default("input x: i32\nwhere(x > 0, x * x, x)", "where");
    assert!(lines.iter().any(|line| line.contains("core._short_circuit_where")), "{lines:?}");
    let lines = default("input x: i32\nwhere(x > 0, x, 1)", "where");
    assert!(lines.iter().any(|line| line.contains("core.where")), "{lines:?}");
    assert!(!lines.iter().any(|line| line.contains("_short_circuit")), "{lines:?}");
}

#[test]
fn what_has_a_rule_leaves_a_branch_in_a_loop_and_what_is_opaque_stays() {
    let region = |expression: &str, wanted: &str| {
        let text = format!(
            "input n: i64, x: f64, t: text\nseq.reduce(fn(s, i) = s + where(i > 2, {expression}, 1.0), seq.range(n), 0.0)"
        );
        let program = parse(&text, Registry::standard(), &Limits::default()).expect("a model");
        let prepared = prepare(&program, &|_| None, &Options::default(), &mut |_, _| {}).expect("types");
        let placed = prepared.placed().expect("every pass");
        let op = Registry::standard().find(wanted).expect("an operator");
        let graph = &placed.model.graph;
        let node = graph.ids().find(|id| graph.op(*id) == Some(op)).expect("a node");
        // How many regions are around it: the conditional of the loop is one, its rounds are the next.
        let around = std::iter::successors(Some(placed.region(node)), |region| {
            (*region != RegionId::TOP).then(|| placed.regions.tree.parent(*region))
        });
        around.count() - 1
    };
    assert_eq!(region("math.exp(x)", "math.exp"), 1);
    assert_eq!(region("math.exp(s)", "math.exp"), 3);
    assert_eq!(region("1.0 * strings.length(strings.upper(t))", "strings.upper"), 3);
    assert_eq!(region("1.0 * (7 // strings.length(t))", "math.floor_divide"), 3);
}

#[test]
fn cheap_branches_are_both_computed() {
    let is_lazy = |text: &str| default(text, "select").iter().any(|line| line.contains("_short_circuit"));
    assert!(!is_lazy("input x: i32\nwhere(x > 0, x * x, x)"));
    assert!(!is_lazy("input x: f64\nwhere(x > 0.0, (x - 1.0) / x)"));
    // What can fail, what is called, what costs more than a wrong guess, and a conditional around such.
    assert!(is_lazy("input x: i32\nwhere(x > 0, 7 // x, x)"));
    assert!(is_lazy("input x: f64\nwhere(x > 0.0, math.fmod(x, 3.0), x)"));
    assert!(is_lazy("input x: f64\nwhere(x > 0.0, math.exp(x), x)"));
    assert!(is_lazy("input x: f64\nwhere(x > 0.0, 1.0 / (1.0 / (1.0 / (1.0 / x))), x)"));
    assert!(is_lazy("input x: i32\nwhere(x > 1, where(x > 0, 7 // x, x), x)"));
    // Of nested conditionals the innermost, fewer if they cost more.
    let kinds = |arm: &str| {
        let rule = |rest, k| format!("where(x > k, {arm}, {rest})").replace('k', &format!("{k}.75"));
        let lines = default(&format!("input x: f64\n{}", (1..13).fold("x".to_owned(), rule)), "select");
        ["_short_circuit", "core.where"].map(|name| lines.iter().filter(|line| line.contains(name)).count())
    };
    assert_eq!(kinds("x * k"), [2, 10]);
    assert_eq!(kinds("k / (x - k) / k"), [9, 3]);
    assert_eq!(kinds("1.0 / (k / (k / (k / x)))"), [12, 0]);
    // A value or none is the value under a mask, whether or not it was optional before.
    for input in ["f64", "f64?"] {
        let lines = default(&format!("input x: {input}\nwhere(x > 0.0, x * x)"), "select");
        let last = &lines[lines.len() - 2];
        assert!(last.contains("core.presence_and(") && last.ends_with(" : f64?"), "{lines:?}");
        assert!(!lines.iter().any(|line| line.contains("to_optional") || line.contains("missing")), "{lines:?}");
    }
}

#[test]
fn passes_run_in_order_and_can_be_stopped_after() {
    let text = "input x: f64\nwhere(x > 1.0 + 1.0, x ** 0.5)";
    let names: Vec<&str> = PASSES.iter().map(|pass| pass.name).collect();
    assert_eq!(names, ["types", "expand", "fold", "optimise", "extensions", "where", "select"]);
    let all = stages(text, &Options::default());
    assert_eq!(all.iter().map(|(name, _)| *name).collect::<Vec<_>>(), names);
    for (at, name) in names.iter().enumerate() {
        let stopped = stages(text, &Options { stop_after: Some((*name).to_owned()), ..Options::default() });
        assert_eq!(stopped.len(), at + 1);
        for ((_, full), (_, part)) in all.iter().zip(&stopped) {
            assert_eq!(full.to_string(), part.to_string());
        }
    }
}

#[test]
fn optional_passes_can_be_left_out() {
    let text = "input x: f64\nwhere(x > 1.0 + 1.0, x ** 0.5)";
    let all = stages(text, &Options::default());
    for name in ["fold", "optimise", "extensions", "select"] {
        let without = stages(text, &Options { without: vec![name.to_owned()], ..Options::default() });
        assert_eq!(without.len(), all.len(), "a pass that is left out is still observed");
        let at = PASSES.iter().position(|pass| pass.name == name).expect("a pass");
        assert_eq!(without[at].1.to_string(), without[at - 1].1.to_string(), "{name}");
    }
}

#[test]
fn rewrites_can_be_left_out_one_by_one() {
    let text = "input x: i32\n(x * 1 + 0) * 2";
    assert_eq!(default(text, "optimise").len(), 4);
    let without = |name: &str| Options { without_rewrites: vec![name.to_owned()], ..Options::default() };
    let lines = after(text, "optimise", &without("a * 1 -> a"));
    assert_eq!(lines.iter().filter(|line| line.contains("math.multiply")).count(), 2, "{lines:?}");
    let lines = after(text, "optimise", &without("a + 0 -> a, for integers"));
    assert_eq!(lines.iter().filter(|line| line.contains("math.add")).count(), 1, "{lines:?}");
}

#[test]
fn options_must_name_what_there_is() {
    let program = parse("input x: f64\nx", Registry::standard(), &Limits::default()).expect("a model");
    let messages = |options: &Options| {
        let problems =
            prepare(&program, &|_| None, options, &mut |_, _| panic!("a pass ran")).expect_err("bad options");
        let told = |problem: &Diagnostic| {
            assert_eq!(problem.code(), Code::Option);
            problem.to_string()
        };
        problems.as_slice().iter().map(told).collect::<Vec<_>>()
    };
    let options = Options {
        without: ["fold", "folds", "where"].map(str::to_owned).into(),
        without_rewrites: ["a * 1 -> a", "a * 1 -> 1"].map(str::to_owned).into(),
        stop_after: Some("casts".to_owned()),
        ..Options::default()
    };
    let known = "the passes are `types`, `expand`, `fold`, `optimise`, `extensions`, `where`, `select`";
    assert_eq!(
        messages(&options),
        [
            format!("there is no pass `folds`; {known}"),
            format!("there is no pass `casts`; {known}"),
            "pass `where` cannot be left out; leave out only these: `fold`, `optimise`, `extensions`, `select`"
                .to_owned(),
            "there is no rewrite `a * 1 -> 1`; use a name from `docs/rewrites.md`".to_owned(),
        ]
    );
}

/// An extension that replaces the sum of two equal operands by another expression.
#[derive(Debug)]
struct Doubles {
    with: fn(&mut Rewriter<'_>, Id) -> Option<Id>,
}

impl Extension for Doubles {
    fn transform(&self, rewriter: &mut Rewriter<'_>, node: Id) -> Option<Id> {
        match *rewriter.matches(node, "math.add")? {
            [a, b] if a == b => (self.with)(rewriter, a),
            _ => None,
        }
    }
}

fn with_extensions(all: &[fn(&mut Rewriter<'_>, Id) -> Option<Id>]) -> Options {
    let extensions = all.iter().map(|with| Arc::new(Doubles { with: *with }) as Arc<dyn Extension>);
    Options { extensions: extensions.collect(), ..Options::default() }
}

#[test]
fn extensions_replace_nodes_in_the_order_they_are_given() {
    let seven = |rewriter: &mut Rewriter<'_>, _| Some(rewriter.literal(Value::from(7)));
    let eight = |rewriter: &mut Rewriter<'_>, _| Some(rewriter.literal(Value::from(8)));
    let text = "input x: i32\nx + x + x * 2";
    assert_eq!(after(text, "extensions", &with_extensions(&[seven, eight]))[1], "%1 = 7 : i32");
    assert_eq!(after(text, "extensions", &with_extensions(&[|_, _| None, eight, seven]))[1], "%1 = 8 : i32");
    let options = Options { without: vec!["extensions".to_owned()], ..with_extensions(&[seven]) };
    assert!(!after(text, "extensions", &options).iter().any(|line| line.contains("= 7")));
}

#[test]
fn what_an_extension_applies_is_cast_and_not_transformed_again() {
    let product = |rewriter: &mut Rewriter<'_>, operand| {
        assert_eq!((rewriter.input(operand), rewriter.operator(operand)), (Some("x"), None));
        let two = rewriter.literal(Value::from(2_i32));
        let double = rewriter.apply("math.multiply", &[operand, two]).ok()?;
        // A sum of equal operands again, which stays.
        let twice = rewriter.apply("math.add", &[double, double]).ok()?;
        rewriter.apply("math.subtract", &[twice, double]).ok()
    };
    let lines = after("input x: f64?\nx + x", "extensions", &with_extensions(&[product]));
    assert_eq!(
        lines,
        [
            "%0 = L.x : f64?",
            "%1 = f64?{2} : f64?",
            "%2 = math.multiply(%0, %1) : f64?",
            "%3 = math.add(%2, %2) : f64?",
            "%4 = math.subtract(%3, %2) : f64?",
            "result = %4",
        ]
    );
}

#[test]
fn what_an_extension_cannot_apply_is_said() {
    let refused = |rewriter: &mut Rewriter<'_>, operand| {
        let mut told =
            |operator: &str, operands: &[Id]| rewriter.apply(operator, operands).map_err(|fault| fault.message());
        assert_eq!(
            told("math.nothing", &[operand]),
            Err("an extension cannot apply `math.nothing`: there is no such operator, or it is made of others"
                .to_owned())
        );
        assert!(told("math.add", &[operand]).is_err_and(|message| message.contains("takes 2 arguments")));
        assert!(told("strings.upper", &[operand]).is_err());
        None
    };
    let lines = after("input x: i32\nx + x", "extensions", &with_extensions(&[refused]));
    assert_eq!(lines[1], "%1 = math.add(%0, %0) : i32");
}

#[test]
fn an_extension_cannot_change_a_type() {
    let wrong = |rewriter: &mut Rewriter<'_>, _| Some(rewriter.literal(Value::Scalar(ScalarValue::Float32(7.0))));
    let lines = after("input x: i32\nx + x", "extensions", &with_extensions(&[wrong]));
    assert_eq!(lines[1], "%1 = math.add(%0, %0) : i32");
}

#[test]
fn problems_of_types_are_reported_together() {
    let text = "input x: f32, t: text\noutput a = x + t\noutput b = -t\noutput c = (x + t) * 2";
    let program = parse(text, Registry::standard(), &Limits::default()).expect("a model");
    let problems = prepare(&program, &|_| None, &Options::default(), &mut |_, _| {}).expect_err("ill-typed");
    let spans: Vec<&str> =
        problems.as_slice().iter().filter_map(|problem| problem.span()).map(|span| span.text(text)).collect();
    // What is made of an erroneous value is not reported again.
    assert_eq!(spans.len(), 2, "{spans:?}");
}

#[test]
fn a_missing_type_is_asked_for_only_if_the_input_is_used() {
    let program = parse("input x, unused\noutput y = x", Registry::standard(), &Limits::default()).expect("a model");
    let given = |name: &str| (name == "x").then_some(cembra_runtime::QType::FLOAT64);
    let prepared = prepare(&program, &given, &Options::default(), &mut |_, _| {}).expect("all types needed are there");
    assert_eq!(renumbered(&prepared), ["%0 = L.x : f64", "y = %0"]);
    let problems = prepare(&program, &|_| None, &Options::default(), &mut |_, _| {}).expect_err("no type");
    assert_eq!(problems.as_slice().len(), 1);
}
