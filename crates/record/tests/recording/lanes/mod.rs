//! Tests of lane programs (plans recorded for many rows at once): their results, the places where tapes are cut, the
//! branches that become stretches (skippable parts of a tape), and the plans that are refused.

mod harness;

use cembra_expr::parse;
use cembra_ops::Registry;
use cembra_plan::{Plan, build};
use cembra_prepare::{Options, prepare};
use cembra_record::{InputFact, NotLanes, record_lanes};
use cembra_runtime::MachineType;
use cembra_tape::{Body, Instr, KernelReason, LaneProgram, Origin, Port, ValuePart};
use cembra_value::{Budget, Limits, ScalarValue, Value};
use harness::{check, everything, little};

fn plan_of(text: &str) -> Plan {
    let program = parse(text, Registry::standard(), &Limits::default()).expect("a model");
    let prepared = prepare(&program, &|_| None, &Options::default(), &mut |_, _| {}).expect("types");
    build(&prepared.placed().expect("every pass"), &Budget::default()).expect("a plan")
}

fn program_of(text: &str) -> LaneProgram {
    record_lanes(&plan_of(text), &[], &[], everything).expect("a lane program")
}

/// Values for a column of type `qtype`: ordinary values, special values, and missing values if the type is optional.
fn values(qtype: &cembra_runtime::QType) -> Vec<Value> {
    use cembra_runtime::Scalar;
    let scalar = qtype.scalar().expect("inputs are scalars");
    let scalars: Vec<ScalarValue> = match scalar {
        Scalar::Float64 => [1.5, 0.0, -3.25, f64::NAN, 0.3, 1e300, -0.0, 7.0].map(ScalarValue::Float64).to_vec(),
        Scalar::Float32 => [1.5, 0.0, -3.25, f32::NAN, 0.3, 1e30, -0.0, 7.0].map(ScalarValue::Float32).to_vec(),
        Scalar::Int32 => [7, 0, -3, i32::MIN, 1, -1, 1000, i32::MAX].map(ScalarValue::Int32).to_vec(),
        Scalar::Int64 => [7, 0, -3, i64::MIN, 1, -1, 1000, i64::MAX].map(ScalarValue::Int64).to_vec(),
        Scalar::Boolean => [true, false].map(ScalarValue::Boolean).to_vec(),
        Scalar::Text => ["abc", "", "12", " x ", "äöü", "-7"].map(|text| ScalarValue::Text(text.into())).to_vec(),
        Scalar::Unit => vec![ScalarValue::Unit],
        other => panic!("no values of {other:?}"),
    };
    if !qtype.is_optional() {
        return scalars.into_iter().map(Value::Scalar).collect();
    }
    std::iter::once(Value::Missing(scalar)).chain(scalars.into_iter().map(Value::Present)).collect()
}

/// Rows that mix values of the inputs. They are the same in every run of the test.
fn rows(plan: &Plan, count: usize) -> Vec<Vec<Value>> {
    let columns: Vec<Vec<Value>> = plan.inputs().iter().map(|input| values(&plan.value(input.value).qtype)).collect();
    let mut state = 1_u64;
    let mut pick = |column: &Vec<Value>| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        column[(state >> 33) as usize % column.len()].clone()
    };
    (0..count).map(|_| columns.iter().map(&mut pick).collect()).collect()
}

/// Compares a model with the interpreter on 150 rows of all kinds. Returns the number of rows that fail.
fn agrees(text: &str) -> usize {
    agrees_on(150, text)
}

/// Compares a model with the interpreter on `count` rows, and returns the number of rows that fail.
fn agrees_on(count: usize, text: &str) -> usize {
    let plan = plan_of(text);
    match check(&plan, &rows(&plan, count)) {
        Ok(Ok(failed)) => failed,
        Ok(Err(refused)) => panic!("{text}\n{refused}"),
        Err(difference) => panic!("{text}\n{difference}"),
    }
}

/// Compares models with the interpreter, and checks that no row fails.
fn all_agree(texts: &[&str]) {
    for text in texts {
        assert_eq!(agrees(text), 0, "{text}");
    }
}

/// Compares models with the interpreter, and checks that some rows fail and others do not.
fn some_fail(texts: &[&str]) {
    for text in texts {
        let failed = agrees(text);
        assert!((1..150).contains(&failed), "{failed} rows of 150 fail: {text}");
    }
}

/// The number of instructions on the program's tapes for which `of` returns true.
fn count(program: &LaneProgram, of: fn(&Instr) -> bool) -> usize {
    let tapes = program.segments.iter().filter_map(|segment| match &segment.body {
        Body::Tape(tape) => Some(&tape.tape),
        Body::Kernel(_) | Body::Memo(_) => None,
    });
    tapes.map(|tape| tape.instrs().iter().filter(|instr| of(instr)).count()).sum()
}

fn stretches(program: &LaneProgram) -> usize {
    count(program, |instr| matches!(instr, Instr::Begin(_)))
}

/// The segments of a program as letters: `t` for a tape, `k` for a kernel, in capitals if the segment runs once for all
/// rows.
fn shape(program: &LaneProgram) -> String {
    let letter = |segment: &cembra_tape::Segment| match (&segment.body, segment.once) {
        (Body::Tape(_), false) => 't',
        (Body::Tape(_), true) => 'T',
        (Body::Kernel(_), false) => 'k',
        (Body::Kernel(_), true) => 'K',
        (Body::Memo(_), _) => 'm',
    };
    program.segments.iter().map(letter).collect()
}

#[test]
fn straight_lines() {
    all_agree(&[
        "input x: f64\noutput y = x * 2 + 1",
        "input a: f32; input b, c: f64?\nlet d = b * b - 4.0 * a * c\noutput y = d\noutput z = d > 0",
        "input x: f64?; input y: i32?\noutput a = x ?? 1.0\noutput b = core.has(y)\noutput c = y & (x > 0)",
        "input x: bool?; input y: bool\noutput a = x and y\noutput b = x or not y\noutput c = y",
        "input t: text; input u: text?\noutput a = t\noutput b = u\noutput c = t == u\noutput d = u ?? \"none\"",
        "input x: f64\noutput y = x\noutput z = x\noutput l = 7\noutput m = \"text\"\noutput n = missing[f64]",
        "input x: f64; input y: f64?\nlet t = (x + 1.0, (y, 3))\noutput a = t.0\noutput b = t.1.0",
    ]);
}

#[test]
fn conditionals() {
    all_agree(&[
        "input x: f64\noutput y = where(x > 0, x, -x)",
        "input x: f64?; input y: f64\noutput a = where(x > y, x, y)\noutput b = where(x > y, x)",
        "input x, y: f64\noutput z = where(x > 0, where(y > 0, x + y, x - y), where(y < 0, x * y, 1.0))",
        "input x: f64; input t: text; input u: text?\noutput a = where(x > 0, t, \"none\")\noutput b = where(x > 0, u, t)",
        "input x: f64; input b: bool\noutput a = where(x > 0, b, not b)\noutput c = where(x > 0, b)",
        "input x: f64?\noutput y = where(core.has(x), math.exp(x) * math.log(x ?? 1.0), 2.0)",
    ]);
}

#[test]
fn costly_branches() {
    let on = "math.exp(x) * math.log(x + 2.0) * math.exp(y)";
    let off = "math.log(y) + math.exp(x * 0.5) + math.log1p(x)";
    let texts = [
        format!("input x, y: f64\noutput z = where(x > 0, {on}, y)"),
        format!("input x, y: f64\noutput z = where(x > 0, x, {off})"),
        format!("input x, y: f64\noutput z = where(x > 0, {on}, {off})"),
        format!("input x, y: f64\noutput z = where(not (x > 0), {on}, {off})"),
        format!("input x, y: f64; input w: f64?\noutput z = where(w > 0, where(x > 0, {on}, {off}), 1.0)"),
        format!(
            "input x, y: f64; input w: f64?\noutput z = where(w > 0, where(x > 0, {on}, {off}), where(y > 1, {off}, 0.5))"
        ),
        format!("input x, y: f64?\noutput z = where(x > 0, {on})\noutput c = where(x > 0, {off} > 1.0, {on} < 2.0)"),
        format!("input x, y: f64\noutput z = where(x > 0, {on} > 1.0, {off} < 1.0)"),
        format!(
            "input x, y: f64; input w: bool\noutput z = where(x > 0, where(y > 0, w, ({on}) == 1.0 == present), {off} < 1.0)"
        ),
    ];
    for text in &texts[..8] {
        assert_eq!(agrees(text), 0, "{text}");
        let program = program_of(text);
        assert!(stretches(&program) > 0, "{text}\n{program}");
    }
    assert_eq!(stretches(&program_of(&texts[0])), 1);
    assert_eq!(stretches(&program_of(&texts[2])), 2);
}

#[test]
fn failures_are_those_of_the_branches_that_are_taken() {
    all_agree(&[
        "input a, b: i64\noutput y = where(b != 0, a // b, 0)",
        "input a, b: i64\noutput y = where(b != 0, where(a > 0, a // b, a % b), a)",
        "input a: i64; input b: i64?\noutput y = where(b != 0, a // b)",
        "input a: i64; input b: i64\noutput y = where(a > 5, where(b != 0, a // b, 1), where(b == 0, 2, 7 // b))",
    ]);
    some_fail(&[
        "input a, b: i64\noutput y = a // b",
        "input a: i64; input b: i64?\noutput y = a // b",
        "input a, b: i64\noutput y = where(a > 0, a // b, 0)",
        "input a, b: i32\nlet q = a // b\noutput y = where(a > 5, q, 0) + where(a < -1, q * 2, 1)",
    ]);
}

#[test]
fn workloads() {
    for name in ["S1", "S2", "S3", "S4", "S5", "R1k", "B1", "B4f32", "B4f64", "B5"] {
        let path = format!("{}/../../benches/workloads/{name}.cem", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(&path).expect("a workload");
        let plan = plan_of(&text);
        let found = check(&plan, &rows(&plan, 70)).unwrap_or_else(|difference| panic!("{name}: {difference}"));
        assert_eq!(found, Ok(0), "{name}");
        assert_eq!(shape(&program_of(&text)), "t", "{name}");
    }
}

#[test]
fn steps_without_a_rule_are_kernels() {
    all_agree(&[
        "input s: text\noutput n = strings.length(s)",
        "input s: text?; input x: f64\noutput n = strings.length(s) + 1\noutput m = x * 2.0",
        "input s: text?\noutput t = strings.upper(strings.lstrip(s))",
        "input s: text; input x: f64\noutput t = where(x > 0, strings.upper(s), s)",
        "input s: text; input x: f64\noutput t = where(x > 0, strings.length(strings.upper(s)), where(x < 0, strings.length(s) * 2, 0))",
        "input s, t: text?; input x: f64\noutput y = where(strings.length(s) > 2, x * math.exp(x), where(s == t, 1.0, 2.0))",
    ]);
}

#[test]
fn what_can_fail_in_a_branch_fails_there_only() {
    all_agree(&[
        "input x: f64\noutput y = where(x > 0, core.with_assertion(x, x > 0, \"no\"), 0.0)",
        "input s: text; input x: f64\noutput y = where(x > 1e301, strings.parse_int32(s) + 1, 2)",
    ]);
    some_fail(&[
        "input x: f64\noutput y = core.with_assertion(x, x != 0, \"no\")",
        "input x, z: f64\noutput y = where(x > 0, core.with_assertion(z, z != 0, \"no\"), 0.0)",
        "input s: text; input x: f64\noutput y = where(x > 0, core.with_assertion(strings.length(s), x > 1, \"no\"), 2)",
    ]);
}

#[test]
fn what_branches_share_is_evaluated_under_their_masks() {
    // A guard: the quotient is needed in two branches.
    all_agree(&[
        "input a, b: i64\nlet q = a // b\noutput y = where(b != 0, q, 1)\noutput z = where(b != 0, q * 2, 2)",
        "input a, b: i64; input x: f64\nlet q = a // b\nlet s = where(b != 0 and x > 0, q, 1)\noutput y = s\noutput z = where(b > 0, q * 2, s)",
        "input s: text?; input x: f64; input y: f64\nlet u = strings.upper(s)\noutput a = where(x > 0, u)\noutput b = where(y > 0, strings.length(u), 1)",
    ]);
}

#[test]
fn a_kernel_runs_for_the_rows_that_need_it() {
    let program = program_of("input s: text?; input x: f64\noutput t = where(x > 0, strings.length(s), 0)");
    assert_eq!(shape(&program), "tkt", "{program}");
    let Body::Kernel(kernel) = &program.segments[1].body else { panic!("{program}") };
    // The rows of the branch whose text is there; the text is given as it is, in two parts.
    assert!(kernel.rows.is_some(), "{program}");
    assert_eq!((kernel.loads.len(), kernel.stores.len(), kernel.why), (2, 1, KernelReason::NoRule), "{program}");
    // Every row of a plain text at the top.
    let program = program_of("input s: text\noutput t = strings.length(s)");
    assert_eq!(shape(&program), "k", "{program}");
    let Body::Kernel(kernel) = &program.segments[0].body else { panic!("{program}") };
    assert_eq!(kernel.rows, None);
    // It writes the output itself.
    assert_eq!(program.outputs().get(0, ValuePart::Number), Some(kernel.stores[0].column));
}

#[test]
fn what_a_player_lacks_becomes_a_kernel() {
    let plan = plan_of("input a, b: i64; input x: f64\noutput y = where(b != 0, a // b, 0)\noutput z = x * 2.0");
    let program = record_lanes(&plan, &[], &[], everything).expect("a lane program");
    assert_eq!(shape(&program), "t", "{program}");
    let program = record_lanes(&plan, &[], &[], little).expect("a lane program");
    assert_eq!(shape(&program), "tkt", "{program}");
    let Body::Kernel(kernel) = &program.segments[1].body else { panic!("{program}") };
    assert_eq!((kernel.why, kernel.label), (KernelReason::Unsupported, "math.floor_divide"));
    assert_eq!(
        count(&program, |instr| matches!(instr, Instr::FaultIf { .. })),
        0,
        "the kernel fails itself\n{program}"
    );
}

#[test]
fn what_rows_share_is_done_once() {
    let plan = plan_of(
        "input k: f64; input s: text; input x: f64\nlet e = math.exp(k) + math.float(strings.length(s))\noutput y = x * e\noutput n = strings.length(s)",
    );
    let facts = [0, 1, 2].map(|at| InputFact {
        is_shared: &*plan.inputs()[at].name != "x",
        all_present: true,
        is_dictionary: false,
    });
    let program = record_lanes(&plan, &facts, &[], everything).expect("a lane program");
    assert_eq!(program.verify(), Ok(()));
    assert_eq!(shape(&program), "KTt", "{program}");
    assert!(program.once_bytes() > 0 && program.scratch_bytes(1024) == 0, "{program}");
    // Of the rows nothing is left but the product.
    let Body::Tape(tape) = &program.segments[2].body else { panic!("{program}") };
    assert!(tape.tape.instrs().len() <= 6, "{program}");
    let is_shared = |at: usize| program.column(tape.inputs[at]).port == Port::Shared;
    assert_eq!((0..tape.inputs.len()).filter(|at| is_shared(*at)).count(), 2, "{program}");
}

#[test]
fn sums_of_outputs_are_made_behind_all_else() {
    let plan = plan_of(
        "input x, y: f64?; input f: f32; input s: text\noutput d = where(x > 0.0, x * y)\noutput f2 = f\noutput z = d\noutput n = math.float(strings.length(s))",
    );
    assert_eq!(agrees("input x, y: f64?\noutput d = where(x > 0.0, x * y)"), 0);
    let ports = [Port::Chains, Port::Chains, Port::Rows, Port::Chains];
    let program = record_lanes(&plan, &[], &ports, everything).expect("a lane program");
    assert_eq!(program.verify(), Ok(()), "{program}");
    let number = |at: usize| *program.column(program.outputs().get(at, ValuePart::Number).expect("a number"));
    for (at, port) in ports.into_iter().enumerate() {
        assert_eq!((number(at).port, number(at).ty), (port, MachineType::F64), "{program}");
    }
    assert!(program.to_string().contains("output 1 number F64, chains"), "{program}");
    // One select for what is missing, none for what never is.
    assert_eq!(count(&program, |instr| matches!(instr, Instr::Select { .. })), 1, "{program}");
    // There are no sums of integers here.
    let plan = plan_of("input a: i64\noutput b = a + 1");
    let refused = record_lanes(&plan, &[], &[Port::Chains], everything);
    assert!(matches!(refused, Err(NotLanes::Type(_))));
}

#[test]
fn what_depends_on_a_dictionary_alone_is_done_once_for_each_value() {
    let memos = |text: &str, dictionaries: &[&str]| {
        let plan = plan_of(text);
        let fact = |input: &cembra_plan::Input| InputFact {
            is_dictionary: dictionaries.contains(&&*input.name),
            ..InputFact::default()
        };
        let facts: Vec<InputFact> = plan.inputs().iter().map(fact).collect();
        assert_eq!(agrees(text), 0);
        record_lanes(&plan, &facts, &[], everything).expect("a lane program")
    };
    // The comparison, and the rest on one tape.
    let text = "input s: text; input x, y: f64\noutput z = where(s == \"CH\", x * 1.5 + y, x - y)";
    assert_eq!(shape(&memos(text, &["s"])), "mt");
    assert_eq!(shape(&memos(text, &["x", "y"])), "mt", "a product of one of them");
    // A chain of kernels and tapes, several results of which are needed, one in an output of its own.
    let text = "input s: text; input x: f64\nlet l = strings.lower(s)\noutput a = math.float(strings.length(l)) * x\noutput b = l";
    let program = memos(text, &["s"]);
    assert_eq!(shape(&program), "mt", "{program}");
    let Body::Memo(memo) = &program.segments[0].body else { panic!("{program}") };
    assert_eq!((memo.rows, shape(&memo.program), memo.stores.len()), (None, "kkt".to_owned(), 3), "{program}");
    assert!(
        program.outputs().get(0, ValuePart::Number).is_some() && program.outputs().get(1, ValuePart::Pointer).is_some()
    );
    // In a branch, for the rows that take it; what it takes of the steps around it is a part of it.
    let text = "input s: text; input x: f64; input y: f64?\nlet l = strings.length(s)\noutput a = where(x > 0, strings.length(strings.upper(s)) + l, 0)\noutput b = math.float(l) * x";
    let program = memos(text, &["s"]);
    assert_eq!(shape(&program), "mtmt", "{program}");
    let Body::Memo(memo) = &program.segments[2].body else { panic!("{program}") };
    assert!(memo.rows.is_some(), "{program}");
    // Two dictionaries each for itself; what needs both is done row by row.
    let text = "input s: text; input t: text\noutput a = strings.join(strings.upper(s), strings.lower(t))";
    assert_eq!(shape(&memos(text, &["s", "t"])), "mmk");
    assert_eq!(shape(&memos(text, &["t"])), "mkk");
}

#[test]
fn what_is_known_to_be_present_has_no_mask() {
    let plan = plan_of("input a, b: f64?\noutput y = a * b + 1.0");
    let known = InputFact { all_present: true, is_shared: false, is_dictionary: false };
    let program = record_lanes(&plan, &[known; 2], &[], everything).expect("a lane program");
    assert!(
        !program.columns.iter().any(|column| matches!(column.origin, Origin::Input { part: ValuePart::Presence, .. }))
    );
    assert_eq!(count(&program, |instr| matches!(instr, Instr::MaskAnd(..))), 0, "{program}");
    assert_eq!(count(&program_of("input a, b: f64?\noutput y = a * b + 1.0"), |i| matches!(i, Instr::MaskAnd(..))), 1);
}

#[test]
fn what_is_not_recorded() {
    let refused = |text: &str| record_lanes(&plan_of(text), &[], &[], everything).err();
    let is_loop = refused("input n: i64\noutput y = core.while_loop(n, fn(x) = x < 100, fn(x) = x * 2)");
    assert!(matches!(is_loop, Some(NotLanes::Loop(_))), "{is_loop:?}");
    for text in ["input t: (f64, i32)\noutput y = t.0", "input x: f64\noutput y = (x, x + 1.0)"] {
        let found = refused(text);
        assert!(matches!(found, Some(NotLanes::Type(_))), "{text}: {found:?}");
    }
    fn nothing(tape: &cembra_tape::Tape, at: usize) -> bool {
        !matches!(tape.instrs()[at], Instr::Select { .. })
    }
    let plan = plan_of("input x: f64\noutput y = where(x > 0, math.exp(x) * math.log(x), x)");
    assert!(matches!(record_lanes(&plan, &[], &[], nothing), Err(NotLanes::Unplayable(_))));
}

#[test]
fn scratch_is_used_again() {
    // Each text is needed by the next step alone.
    let mut text = "input s: text\nlet t0 = s".to_owned();
    for at in 0..20 {
        text += &format!("\nlet t{} = strings.upper(strings.lstrip(t{at}))", at + 1);
    }
    text += "\noutput y = strings.length(t20)";
    let program = program_of(&text);
    assert_eq!(agrees(&text), 0);
    // Two views, each a pointer and a length, while one is read and the other is written.
    assert_eq!(program.scratch_bytes(64), 4 * 512, "{program}");
    assert_eq!((program.strip_rows(0), program.strip_rows(64 * 64)), (768, 256));
}

/// The example model of the documentation page, evaluated on rows, and its listing there.
#[test]
fn the_page_on_rows_shows_a_program() {
    let page = std::fs::read_to_string(format!("{}/../../docs/rows.md", env!("CARGO_MANIFEST_DIR"))).expect("a page");
    let model = page.split("```cem\n").nth(1).and_then(|rest| rest.split("```").next()).expect("a model");
    let listing = page.split("```text\n").nth(1).and_then(|rest| rest.split("```").next()).expect("a listing");
    assert_eq!(agrees(model), 0);
    assert_eq!(program_of(model).to_string(), listing);
}

#[test]
fn kernels_that_do_not_need_each_other_come_together() {
    let text = "input s, t: text; input x: f64\nlet a = math.float(strings.length(s)) * x\nlet b = math.exp(x)\nlet c = math.float(strings.length(t)) + b\noutput y = a + c";
    assert_eq!(agrees(text), 0);
    let program = program_of(text);
    assert_eq!(shape(&program), "kkt", "{program}");
    // The exponential, which no kernel needs, crosses nothing.
    assert_eq!(program.scratch_bytes(64), 2 * 512, "{program}");
}

#[test]
fn a_condition_that_is_known_is_no_branch() {
    let plan =
        plan_of("input x: f64?; input z: f64\noutput y = where(core.has(x) | (z > 0), math.exp(z) * math.log(z), z)");
    let stretches_if = |all_present| {
        let program =
            record_lanes(&plan, &[InputFact { all_present, is_shared: false, is_dictionary: false }], &[], everything);
        let program = program.expect("a lane program");
        assert_eq!(program.verify(), Ok(()), "{program}");
        stretches(&program)
    };
    assert_eq!((stretches_if(false), stretches_if(true)), (1, 0));
}

/// A long model with shared values, conditionals with costly branches, kernels and texts. It is cut into tapes of
/// limited length and has the same results. A branch is on the same tape as the selection of its result.
#[test]
fn long_tapes_are_cut_where_no_branch_is() {
    let mut text =
        "input x: f64?; input y: f64; input n: i64; input s: text?\nlet a0 = x ?? y; let m0 = n\n".to_owned();
    for at in 1..=500 {
        let before = at - 1;
        text += &match at % 9 {
            0 => format!("let a{at} = if a{before} > {at}.5 then exp(a{before} / 1e6) + sin(y) else y - a{before}\n"),
            4 => format!("let a{at} = if has(x) and n > {at} then a{before} + y else a{before} - x ?? {at}.25\n"),
            7 => format!("let a{at} = a{before} + (strings.find(s, 'b') ?? {at}) * 0.5\n"),
            _ => format!("let a{at} = a{before} * 0.75 + a{} - {at}.125\n", before / 2),
        };
        text += &format!("let m{at} = m{before} * 3 + n // {at}\n");
    }
    for at in (0..=500).step_by(30) {
        text += &format!("output qa{at} = a{at}; output qm{at} = m{at}; output p{at} = x > a{at}\n");
    }
    let program = program_of(&text);
    let tapes = program.tapes();
    let longest = tapes.iter().map(|(_, tape)| tape.tape.instrs().len()).max();
    assert!(tapes.len() > 2 && longest.is_some_and(|longest| longest < 2500), "{} {longest:?}", tapes.len());
    assert_eq!(agrees(&text), 0);
}

/// The number of rows for models with very many outputs, because finding an output in each row takes long.
const FEW_ROWS: usize = 15;

/// A model with `count` outputs.
fn outputs(count: usize, one: impl Fn(usize) -> String) -> String {
    let inputs = "input x: f64?; input n: i64\n".to_owned();
    (0..count).fold(inputs, |text, at| text + &format!("output o{at} = {}\n", one(at)))
}

#[test]
fn tapes_of_many_outputs_are_cut() {
    let of = |count| outputs(count, |at| format!("x * {at}.5"));
    assert_eq!(agrees_on(FEW_ROWS, &of(530)), 0);
    assert_eq!(program_of(&of(1200)).tapes().len(), 3);
    // What is short is one tape.
    assert_eq!(program_of(&of(100)).tapes().len(), 1);
}

#[test]
fn tapes_of_outputs_that_need_no_step_are_cut() {
    let text = outputs(540, |at| if at % 2 == 0 { "n".to_owned() } else { format!("n + {}", at / 2) });
    assert_eq!(agrees_on(FEW_ROWS, &text), 0);
}
