//! Tests of the printer: the text for a graph, and that parsing this text gives the same graph.

use crate::anything::Anything;
use crate::common::{Operators, OperatorsOnNumbers, read, read_with};
use crate::random::{program, value};
use cembra_expr::{
    Builder, Expected, Expr, Graph, Output, Program, TestCase, TestValue, parse, print, print_expression,
};
use cembra_runtime::QType;
use cembra_value::{Limits, Value};
use proptest::prelude::*;

#[track_caller]
fn reads_back(program: &Program) {
    let text = print(program, &Operators);
    match parse(&text, &Anything, &Limits::default()) {
        Ok(again) => assert!(again == *program, "{text}\nreads back as\n{}", print(&again, &Operators)),
        Err(problems) => panic!("{text}\n{problems}"),
    }
}

#[test]
fn what_wraps_around_is_called_by_name() {
    // Between written numbers the tokens would be an error.
    let builder = Builder::new();
    let (large, two) = (builder.literal(2_147_483_647), builder.literal(2));
    builder.output("y", (large * two + 1) * -builder.literal(i64::MIN) - large);
    let program = builder.build().unwrap();
    let text = "output y = (math.multiply(2147483647, 2) + 1) * math.neg(-9223372036854775808i64) - 2147483647\n";
    assert_eq!(print(&program, &Operators), text);
    reads_back(&program);
}

/// Parses a text and returns the printed lines of its program, except its inputs.
fn printed_outputs(text: &str) -> Vec<String> {
    let program = read(text);
    reads_back(&program);
    print(&program, &Operators).lines().filter(|line| !line.starts_with("input")).map(str::to_owned).collect()
}

/// Parses a text and returns its outputs with their conversion marks (`core._wide` and others). Also checks that the
/// printed text has no marks, and that parsing it adds the same marks.
fn marked_outputs(text: &str) -> String {
    let program = read_with(text, &OperatorsOnNumbers);
    let printed = print(&program, &OperatorsOnNumbers);
    assert!(!printed.contains("core._") && !printed.contains("numbers f32"), "{text}\n{printed}");
    assert!(read_with(&printed, &OperatorsOnNumbers) == program, "{text}\n{printed}");
    let marked = program.outputs.iter().map(|output| print_expression(&program.graph, output.node));
    marked.collect::<Vec<_>>().join("; ").replace('\n', "; ")
}

#[test]
fn integers_that_become_floats_are_marked() {
    for (text, marked) in [
        ("a / 2", "core._wide(a) / 2.0f64"),
        ("a / b", "core._wide(a) / core._wide(b)"),
        ("sqrt(7)", "math.sqrt(7.0f64)"),
        ("a * 0.5", "core._wide(a) * 0.5"),
        ("2 * 0.5", "2.0f64 * 0.5"),
        ("a * 1", "a * core._beside(1, a)"),
        ("2 * 3", "2 * 3"),
        ("a * b", "core._beside(a, b) * core._beside(b, a)"),
        ("a * a", "a * a"),
        ("a < missing", "a < missing"),
        ("a < \"b\"", "a < \"b\""),
        ("a * 0.5f32", "core._wide(a) * 0.5f32"),
        ("a * 0.5f64", "core._wide(a) * 0.5f64"),
        ("if c then a else 1.5", "if c then core._wide(a) else 1.5"),
        ("if c then a", "if c then a"),
        ("a / 2 / b", "core._wide(a) / 2.0f64 / core._wide(b)"),
        ("a in [1, 2.5]", "let t0 = core._wide(a); (t0 in [core._beside(1, t0), 2.5])"),
        ("a in [1, b]", "let t0 = core._beside(a, b); (t0 in [core._beside(1, t0), core._beside(b, t0)])"),
        ("i64?{7} * 0.5", "core._wide(i64?{7}) * 0.5"),
        ("[i32?]{1, 2} / 2", "core._wide([i32?]{1, 2}) / 2.0f64"),
        // What inputs are declared to be says where there is nothing to mark.
        ("input x, y: f64; (x + 1) * y / 2", "(x + 1) * y / 2.0f64"),
        ("input x: f64?; input n: i64; x * n + n", "x * n + n"),
        ("input x: f32; x * 2", "x * 2.0f64"),
        ("input x: [f32]; input n: i32; x * n", "x * core._wide(n)"),
        ("input n: i64; n / 2 + n", "core._wide(n) / 2.0f64 + n"),
        ("input n: i64?; n * 0.5", "core._wide(n) * 0.5"),
        ("input n: u64; n + 1 < 5", "n + 1 < 5"),
        ("input a, b: date; (b - a) * 0.5", "core._wide(b - a) * 0.5"),
        ("input s: text; s + \"a\"", "s + \"a\""),
        // Functions are marked by what they are applied to.
        ("fn half(x) = x / 2; half(3)", "3.0f64 / 2.0f64"),
        ("input x: f64; fn half(x) = x / 2; half(x)", "x / 2.0f64"),
        ("fn sum(x, y) = x * y; sum(a, 0.5)", "core._wide(a) * 0.5"),
        ("fn sum(x, y) = x * y; sum(a, a)", "a * a"),
        ("map(fn(x) = x * 0.5, a)", "core.map(fn(x) = core._wide(x) * core._beside(0.5, x), a)"),
        // A declared type makes f64 of integers by itself.
        ("output y: f64 = (a * 2 + b) / 3", ""),
        ("output n: i64? = a * 2 + b", ""),
    ] {
        let text = text.replace("map(", "core.map(");
        let found = marked_outputs(&text);
        assert!(marked.is_empty() || found == marked, "{text}\n{found}\n{marked}");
    }
    // Elsewhere `numbers` is a name.
    assert_eq!(printed_outputs("output y = numbers * 2"), ["output y = numbers * 2"]);
}

#[test]
fn files_say_how_their_numbers_are_computed() {
    let told = |text: &str| {
        let program = read_with(text, &OperatorsOnNumbers);
        print_expression(&program.graph, program.outputs[0].node)
    };
    assert_eq!(told("numbers f64; a * 0.5 + sqrt(2)"), "core._wide(a) * 0.5f64 + math.sqrt(2.0f64)");
    assert_eq!(told("numbers f64; WEAK_FLOAT{0.5} * -inf"), "0.5 * f64{-inf}");
    assert_eq!(told("numbers f64; a / 2"), "core._wide(a) / 2.0f64");
    assert_eq!(told("numbers f32; a * 0.5 + a / 2 + sqrt(2)"), "a * 0.5 + a / 2 + math.sqrt(2)");
    // Powers of written integers are integers, unless all numbers are f64.
    assert_eq!(told("(3 ** 17, 2 ** 3 ** 2, -2 ** 2, 7i64 ** 20)"), "(129140163, 512, -(4), 79792266297612001i64)");
    assert_eq!(told("numbers f32; (3 ** 17, (-1) ** 2147483647, 0 ** 0)"), "(129140163, -1, 1)");
    assert_eq!(told("numbers f64; 3 ** 17"), "math.pow(3, 17)");
    assert_eq!(told("2 ** -1"), "2 ** -1");
    assert_eq!(told("a ** 2"), "a ** 2");
    // A declared type takes what an i64 holds, and fails at what none holds.
    assert_eq!(told("output y: i64 = 7 ** 20 + 1").matches("79792266297612001").count(), 1);
    assert_eq!(told("output y: f64 = 7 ** 20"), "core._declared(79792266297612001i64, f64)");
    assert_eq!(told("output y: i64 = 10 ** 30"), "core._declared(core.to_int64(1e30f64), i64)");
}

#[test]
fn what_no_text_without_a_head_marks_is_printed_behind_one() {
    let wide = "input x: f32\noutput y = x * 2.0f64\n";
    let program = read_with(wide, &OperatorsOnNumbers);
    assert_eq!(print(&program, &OperatorsOnNumbers), wide);
    for text in [
        "numbers f32\ninput x: f32\noutput y = x * 2\n",
        "numbers f32\ninput x\noutput y = x / 2\n",
        "numbers f32\ninput x\ninput z\noutput y = core._wide(x) / 2\noutput w = x * z\n",
        "numbers f32\ninput x\noutput y = core._wide(x)\n",
        "numbers f32\ninput x: f64\noutput y = core._wide(x) / 2.0f64\n",
        "numbers f32\ninput x\noutput y = math.round(core._wide(x))\n",
    ] {
        let program = read_with(text, &OperatorsOnNumbers);
        assert_eq!(print(&program, &OperatorsOnNumbers), text);
    }
    // Tokens between written integers mean their value.
    let builder = Builder::new();
    builder.output("y", builder.call("math.pow", &[builder.literal(2), builder.literal(3)]));
    let program = builder.build().unwrap();
    assert_eq!(print(&program, &OperatorsOnNumbers), "output y = math.pow(2, 3)\n");
}

#[test]
fn what_a_declared_type_reaches_is_kept() {
    for (text, again) in [
        ("output y: f64 = cents / 100", "output y: f64 = cents / 100"),
        (
            "output y: f64 = -(a + 1) * a - where(a < 1 + b, a, 2)",
            "output y: f64 = -(a + 1) * a - (if a < 1 + b then a else 2)",
        ),
        ("output n: i64? = a * 2 + b / 3", "output n: i64? = a * 2 + b / 3"),
        ("output y: [f64] = a ?? b.c(1 + 2) ?? 0.5", "output y: [f64?] = a | b.c(1 + 2) | 0.5"),
        // A name, a call and a condition end what it reaches.
        ("let h = a / 2; output y: f64 = h * 3", "output y: f64 = core._declared_operand(a / 2, f64) * 3"),
        ("output y: f64 = (let h = a / 2 in h) * 3", "output y: f64 = core._declared_operand(a / 2, f64) * 3"),
        ("output y: f64 = a", "output y: f64 = a"),
        ("output y: f64 = sqrt(a / 2)", "output y: f64 = math.sqrt(a / 2)"),
        ("output y: f32 = a / 2", "output y: f32 = a / 2"),
        ("fn f(x): f64 = x / 2; output y = f(a)", "output y: f64 = a / 2"),
        ("output y: i64 = t - (d + 30) - -(5)", "output y: i64 = t - (d + 30) - -(5)"),
        ("output y = core._declared(a / 2, f64)", "output y = core._declared(a / 2, f64)"),
    ] {
        let program = read(text);
        let printed = print(&program, &Operators);
        let printed: Vec<&str> = printed.lines().filter(|line| !line.starts_with("input")).collect();
        assert_eq!(printed, [again], "{text}");
        reads_back(&program);
    }
    // `a / 2` of the name and that of the statement are one node, and another one.
    let both = read("let h = a / 2; output x = h; output y: f64 = a / 2 + h");
    let text = "output y: f64 = a / 2 + t0\n";
    assert!(
        print(&both, &Operators).contains("let t0 = a / 2\n") && print(&both, &Operators).ends_with(text),
        "{}",
        print(&both, &Operators)
    );
    reads_back(&both);
}

#[test]
fn declared_graphs_of_any_form_read_back() {
    let mut state = 1_u64;
    let mut random = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    for _ in 0..1_000 {
        let b = Builder::new();
        let mut made =
            vec![b.leaf("a"), b.leaf("b"), b.literal(5), b.literal(2_000_000_000), b.literal(0.5), b.literal(7_i64)];
        let types = ["f64", "i64", "f64?", "f32"].map(|text| Value::Type(cembra_expr::parse_type(text).unwrap()));
        for _ in 0..12 {
            let mut any = || made[random(made.len() as u64) as usize];
            let (x, y, z) = (any(), any(), any());
            let qtype = b.literal(types[random(4) as usize].clone());
            made.push(match random(10) {
                0 => x + y,
                1 => x - y,
                2 => x * y,
                3 => x / y,
                4 => -x,
                5 => b.call("core._where", &[x, y, z]),
                6 => b.call("core.presence_or", &[x, y]),
                7 => b.call("math.sqrt", &[x]),
                8 => b.call("core._declared_operand", &[x, qtype]),
                _ => b.call("core._declared", &[x, qtype]),
            });
        }
        let last = *made.last().unwrap();
        b.output("y", b.call("core._declared", &[last, b.literal(types[random(4) as usize].clone())]));
        b.output("z", made[made.len() - 2]);
        reads_back(&b.build().unwrap());
    }
}

#[test]
fn brackets_are_minimal() {
    for text in [
        "a + b * c",
        "(a + b) * c",
        "a - b - c",
        "a - (b - c)",
        "a ** b ** c",
        "(a ** b) ** c",
        "-x ** 2",
        "(-x) ** 2",
        "(-2) ** x",
        "x ** -2",
        "x ** -y",
        "2 ** x",
        "-(2)",
        "-(-2)",
        "--x",
        "-(2 + x)",
        "-2 ** x",
        "a - -2",
        "+2",
        "not a == b",
        "(not a) == b",
        "a and not b",
        "(a or b) and c",
        "(a < b) < c",
        "a < (b == c)",
        "a | b & c",
        "(a | b) & c",
        "if a then b else c",
        "if a then b",
        "if a then b else if c then d else e",
        "if a then (if b then c) else d",
        "if (if a then b) then c",
        "(if a then b else c) + d",
        "f.g(if a then b, c)",
        "(a, b).1",
        "(5).0",
        "(f32).0",
        "\"a\".0",
        "x.0.1",
        "(-x).0",
        "-x.0",
        "(a,)",
        "()",
        "bool.equal(a, b)",
        "core.cast(x, f32?)",
        "inf - -inf",
        "-(inf)",
        "{}",
        "{x: a, y: if a then b}",
        "{x: a}.x + L.a.x.0.if",
        "{\"odd name\": a, if: (-a).x}",
        "-L.a.x",
        "L.L.x",
        "a.0.x",
        "L[\"odd name\"].x",
        "NAMEDTUPLE{x: 1}.x",
        "fn(x) = x + 1",
        "fn() = 1",
        "f.g(fn(x, y) = if x then y else fn(z) = z, a)",
        "(fn(x) = x) + 1",
        "if (fn(x) = x) then a else fn(y) = y + L.y",
        "fn(x) = let t0 = x + 1 in t0 * t0",
        "fn(x) = fn(y) = let t0 = x + y in let t1 = t0 * y in t1 / t1 + t0",
        "f.g(math.add, bool.equal)",
        "fn(math) = M.math.add(math, math, M.math.add)",
        "fn(p) = p.x + L.p.x",
        "fn(L) = (L).x + L.0",
        "(math.add).x + math.add.0",
    ] {
        let program = read(text);
        assert_eq!(print_expression(&program.graph, program.outputs[0].node), text);
        reads_back(&program);
    }
}

#[test]
fn programs_print_whole() {
    let text = "input a: f32\ninput u: (f32, text?)\ninput b\nlet t0 = b * b\noutput y = t0 + a\noutput z = t0 ** t0\n";
    let program = read("input a: f32, u: (f32, text?)\noutput y = b * b + a\nlet s = b * b\noutput z = s ** (b * b)");
    assert_eq!(print(&program, &Operators), text);
    assert_eq!(print(&read(text), &Operators), text);
    reads_back(&program);
}

#[test]
fn names_never_collide() {
    let b = Builder::new();
    let leaves: Vec<_> = ["t0", "math", "if", "f32", "L", "two words", "", "M", "line\nend", "result"]
        .iter()
        .map(|name| b.leaf(name))
        .collect();
    let t2 = b.typed_leaf("t2", QType::MASK);
    let sum = leaves.iter().fold(t2, |sum, leaf| sum + *leaf);
    let call = b.call("math.sqrt", &[b.call("core.has", &[sum])]);
    let odd = b.call("if", &[b.call("L.x", &[b.call("f64", &[b.call("not.it", &[call])])])]);
    b.output("t1", call * call);
    b.output("core", odd);
    b.output("t0", b.call("t0", &[b.call("bool.equal", &[leaves[4].field(3)])]));
    b.output("an output", sum);
    let program = b.build().unwrap();
    let text = print(&program, &Operators);
    for line in [
        "input t2: unit?",
        "input t0",
        "input \"two words\"",
        "input \"\"",
        "let t3 = t2 + t0 + math + L[\"if\"] + L[\"f32\"] + L + L[\"two words\"] + L[\"\"] + M + L[\"line\\nend\"] + result",
        "let t4 = M.math.sqrt(M.core.has(t3))",
        "output t1 = t4 * t4",
        "output core = M.if(M.L.x(M.f64(M.not.it(t4))))",
        "output \"t0\" = M.t0(bool.equal(L.3))",
        "output \"an output\" = t3",
    ] {
        assert!(text.lines().any(|found| found == line), "{line}\nis not in\n{text}");
    }
    reads_back(&program);
}

#[test]
fn shared_literals_and_leaves_stay_in_place() {
    let program = read("x * 2.0 + x / 2.0");
    assert_eq!(print_expression(&program.graph, program.outputs[0].node), "x * 2.0 + x / 2.0");
}

#[test]
fn an_expression_brings_its_lets() {
    let program = read("let d = a * b; d + sqrt(d)");
    let text = print_expression(&program.graph, program.outputs[0].node);
    assert_eq!(text, "let t0 = a * b\nt0 + math.sqrt(t0)");
    assert!(read(&text) == program);
    let program = read("-(a * b + a * b)");
    let text = print_expression(&program.graph, program.outputs[0].node);
    assert_eq!(text, "let t0 = a * b;\n-(t0 + t0)");
    assert!(read(&text) == program);
}

#[test]
fn placeholders_show_as_such() {
    let mut graph = Graph::new();
    let x = graph.placeholder("x", None);
    let node = graph.operator("math.neg", &[x], None);
    assert_eq!(print_expression(&graph, node), "-P.x");
}

/// Tests long chains of operators, which must be read and printed without recursion: a sum of 1,000,000 terms, and
/// other chains of 20,000 operators.
#[test]
fn long_chains_print_and_read_back() {
    let chains: [for<'b> fn(Expr<'b>, Expr<'b>) -> Expr<'b>; 4] =
        [|chain, x| chain + x, |chain, x| x.pow(chain), |chain, _| -chain, |chain, x| Expr::where_(x, 1, chain)];
    for (index, step) in chains.into_iter().enumerate() {
        let b = Builder::new();
        let x = b.leaf("x");
        let length = if index == 0 { 1_000_000 } else { 20_000 };
        let chain = (0..length).fold(x, |chain, _| step(chain, x));
        b.output("y", chain);
        let program = b.build().unwrap();
        assert!(program.graph.len() > length);
        let text = print(&program, &Operators);
        let again = parse(&text, &Anything, &Limits::default()).unwrap();
        assert!(again == program, "chain {index}");
    }
}

#[test]
fn long_texts_on_one_level_are_no_nesting() {
    let sum = vec!["x"; 500_000].join(" + ");
    let program = read(&sum);
    assert_eq!(program.graph.len(), 500_000);
    for (unit, end, nodes) in
        [("x ** ", "x", 30_001), ("- ", "x", 30_001), ("not ", "x", 30_001), ("if c then 1 else ", "2", 30_003)]
    {
        let program = read(&format!("{}{end}", unit.repeat(30_000)));
        assert_eq!(program.graph.len(), nodes, "{unit}");
        reads_back(&program);
    }
}

/// The tests in a program as texts without spans, for comparisons.
fn tests_of(program: &Program) -> Vec<String> {
    let told = |test: &cembra_expr::ModelTest| {
        let values =
            |values: &[TestValue]| values.iter().map(|v| format!("{}={:?}", v.name, v.literal)).collect::<Vec<_>>();
        let case = |case: &TestCase| match &case.expected {
            Expected::Outputs(outputs) => format!("{:?} {:?}", values(&case.inputs), values(outputs)),
            Expected::Error(code) => format!("{:?} {code}", values(&case.inputs)),
        };
        format!("{} {:?} {:?}", test.name, test.within, test.cases.iter().map(case).collect::<Vec<_>>())
    };
    program.tests.iter().map(told).collect()
}

#[test]
fn tests_are_printed_behind_the_model() {
    let text = r#"
input x: f64?, xs: [f64]
fn double(v) = v * 2.0
output y = double(x)
output "a b" = x
test "one \"case\"" within 1e-9 { x = 0.1, xs = [1, missing, -0.5] } => { y = missing, 'a b' = 1.5f32 }
test 'nothing' { } => { }
test 'an error' { x = missing } => error "div-by-zero"
test 'a table' {
    x, xs => y, 'a b'
    1, [] => 2, (3, "t")   # a comment
    -inf, [0] => error 'limit'; nan, [1] => {a: 1}, date"2026-11-20"
}
test 'no inputs' { => y
    => 1
    => 2
}
test 'no cases' { x => y }
test 'errors only' {
    x => y
    1 => error 'a'
    2 => error 'b'
}
"#;
    let program = parse(text, &Anything, &Limits::default()).unwrap();
    let printed = print(&program, &Operators);
    let again = parse(&printed, &Anything, &Limits::default()).unwrap();
    assert_eq!(again, program);
    let (found, expected) = (tests_of(&again), tests_of(&program));
    assert_eq!(found[..6], expected[..6]);
    // What expects nothing but errors does not say what else it is about: each is a test.
    assert_eq!(found.len(), 8);
    assert_eq!(print(&again, &Operators), printed);
    let lines: Vec<_> = printed.lines().collect();
    assert!(lines.contains(&"test \"one \\\"case\\\"\" within 1e-9 { x = 0.1, xs = [1, missing, -0.5] } => { y = missing, \"a b\" = 1.5f32 }"), "{printed}");
    assert!(
        printed.ends_with("{ x = 1 } => error \"a\"\ntest \"errors only\" { x = 2 } => error \"b\"\n"),
        "{printed}"
    );
    assert!(
        printed.contains("test \"a table\" {\n    x, xs => y, \"a b\"\n    1, [] => 2, TUPLE{3, \"t\"}\n"),
        "{printed}"
    );
}

#[test]
fn deep_literals_get_names() {
    let deep = (0..64).fold(Value::from(1_i32), |value, _| Value::Tuple([value].into()));
    let b = Builder::new();
    let nested = (0..150).fold(b.literal(deep), |e, _| b.tuple(&[e]));
    b.output("y", nested);
    let program = b.build().unwrap();
    reads_back(&program);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(250))]

    #[test]
    fn what_is_printed_reads_back(program in program()) {
        let text = print(&program, &Operators);
        match parse(&text, &Anything, &Limits::default()) {
            Ok(again) => prop_assert!(again == program, "{}\nreads back as\n{}", text, print(&again, &Operators)),
            Err(problems) => prop_assert!(false, "{}\n{}", text, problems),
        }
    }

    #[test]
    fn one_expression_reads_back(program in program()) {
        let output = &program.outputs[0];
        let text = print_expression(&program.graph, output.node);
        match parse(&text, &Anything, &Limits::default()) {
            Ok(again) => {
                let outputs = vec![Output { name: "result".into(), ..output.clone() }];
                let inputs = again.inputs.clone();
                let alone = Program { graph: program.graph.clone(), inputs, outputs, ..Program::default() };
                prop_assert!(again == alone, "{}", text);
            }
            Err(problems) => prop_assert!(false, "{}\n{}", text, problems),
        }
    }

    #[test]
    fn values_read_back(value in value()) {
        let text = cembra_expr::print_value(&value);
        prop_assert_eq!(cembra_expr::parse_value(&text).ok(), Some(value), "{}", text);
    }

    #[test]
    fn any_text_gives_an_answer(source in "[-+*/%&|?<>=!()\\[\\]{},.:;# \n\"'\\\\a-cA-C0-9_L]{0,60}|(let |fn |input |output |if |then |else |not |and |missing|f32|x|\\(|\\)|=|\n|,|1|\\+|\\.|:){0,30}") {
        if let Ok(program) = parse(&source, &Anything, &Limits::default()) {
            let text = print(&program, &Operators);
            let again = parse(&text, &Anything, &Limits::default());
            prop_assert!(again.as_ref().ok() == Some(&program), "{}\n{:?}", text, again);
        }
    }
}
