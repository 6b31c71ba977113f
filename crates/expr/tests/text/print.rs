//! What graphs print as, and that it reads back as the same graph.

use crate::common::{Anything, read};
use cembra_expr::{
    Builder, Expr, Graph, Input, Limits, NodeId, Output, Program, ScalarValue, Value, parse, print, print_expression,
};
use cembra_runtime::{QType, Scalar};
use proptest::prelude::*;

#[track_caller]
fn reads_back(program: &Program) {
    let text = print(program);
    match parse(&text, &Anything, &Limits::default()) {
        Ok(again) => assert!(again == *program, "{text}\nreads back as\n{}", print(&again)),
        Err(problems) => panic!("{text}\n{problems}"),
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
    assert_eq!(print(&program), text);
    assert_eq!(print(&read(text)), text);
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
    let text = print(&program);
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

/// Every form of chain that a loop must read and print: 1,000,000 nodes long.
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
        let text = print(&program);
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

#[test]
fn deep_literals_get_names() {
    let deep = (0..256).fold(Value::from(1_i32), |value, _| Value::Tuple([value].into()));
    let b = Builder::new();
    let nested = (0..150).fold(b.literal(deep), |e, _| b.tuple(&[e]));
    b.output("y", nested);
    let program = b.build().unwrap();
    reads_back(&program);
}

fn scalar() -> impl Strategy<Value = ScalarValue> {
    prop_oneof![
        Just(ScalarValue::Unit),
        any::<bool>().prop_map(ScalarValue::Boolean),
        any::<i32>().prop_map(ScalarValue::Int32),
        any::<i64>().prop_map(ScalarValue::Int64),
        (-3_i64..4).prop_map(ScalarValue::Int64),
        any::<u32>().prop_map(|bits| ScalarValue::Float32(f32::from_bits(bits))),
        any::<u64>().prop_map(|bits| ScalarValue::Float64(f64::from_bits(bits))),
        any::<u64>().prop_map(|bits| ScalarValue::WeakFloat(f64::from_bits(bits))),
        prop_oneof![
            Just(f64::NAN),
            Just(-f64::NAN),
            Just(f64::INFINITY),
            Just(-0.0),
            Just(f64::from_bits(0x7ff0_0000_0000_0001))
        ]
        .prop_map(ScalarValue::WeakFloat),
        ".{0,6}".prop_map(|text| ScalarValue::Text(text.into())),
    ]
}

fn scalar_type() -> impl Strategy<Value = Scalar> {
    prop::sample::select(Scalar::ALL.to_vec())
}

fn qtype() -> impl Strategy<Value = QType> {
    let simple = (scalar_type(), any::<bool>()).prop_map(|(scalar, optional)| QType::of(scalar, optional));
    simple.prop_recursive(3, 8, 3, |inner| prop::collection::vec(inner, 0..3).prop_map(QType::tuple))
}

fn value() -> impl Strategy<Value = Value> {
    let simple = prop_oneof![
        scalar().prop_map(Value::Scalar),
        scalar().prop_map(Value::Present),
        scalar_type().prop_map(Value::Missing),
        qtype().prop_map(Value::Type),
        Just(Value::Type(QType::Meta)),
        Just(Value::Nothing),
    ];
    simple.prop_recursive(3, 8, 3, |inner| {
        prop::collection::vec(inner, 0..3).prop_map(|fields| Value::Tuple(fields.into()))
    })
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        prop::sample::select(vec![
            "x", "y", "t0", "t1", "math", "L", "M", "P", "if", "f32", "result", "NA", "b", "inf"
        ])
        .prop_map(str::to_owned),
        "[a-z]{1,2}",
        ".{0,3}",
    ]
}

const OPERATORS: &[(&str, usize)] = &[
    ("math.add", 2),
    ("math.subtract", 2),
    ("math.multiply", 2),
    ("math.divide", 2),
    ("math.floordiv", 2),
    ("math.mod", 2),
    ("math.pow", 2),
    ("math.pow", 2),
    ("math.neg", 1),
    ("math.neg", 1),
    ("math.pos", 1),
    ("core.presence_and", 2),
    ("core.presence_or", 2),
    ("core.less", 2),
    ("core.equal", 2),
    ("core.not_equal", 2),
    ("core.greater_equal", 2),
    ("core._not", 1),
    ("core._and", 2),
    ("core._or", 2),
    ("core._where", 3),
    ("core._where", 3),
    ("core.make_tuple", 0),
    ("core.make_tuple", 1),
    ("core.make_tuple", 2),
    ("core.get_nth", 2),
    ("core.get_nth", 2),
    ("math.sqrt", 1),
    ("math.add", 3),
    ("core._not", 0),
    ("core._where", 2),
    ("x.y", 1),
    ("x", 1),
    ("bool.equal", 2),
    ("if", 1),
];

#[derive(Clone, Debug)]
enum Step {
    Leaf(String),
    Literal(Value),
    Operator(usize, [prop::sample::Index; 3]),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        2 => name().prop_map(Step::Leaf),
        2 => value().prop_map(Step::Literal),
        6 => (0..OPERATORS.len(), any::<[prop::sample::Index; 3]>()).prop_map(|(at, operands)| Step::Operator(at, operands)),
    ]
}

fn program() -> impl Strategy<Value = Program> {
    let steps = prop::collection::vec(step(), 1..40);
    let outputs = prop::collection::vec((name(), any::<prop::sample::Index>()), 1..4);
    let inputs = prop::collection::vec((name(), prop::option::of(qtype())), 0..3);
    (steps, outputs, inputs).prop_map(|(steps, outputs, inputs)| {
        let mut program = Program::default();
        let graph = &mut program.graph;
        let mut nodes: Vec<NodeId> = Vec::new();
        for step in steps {
            let node = match step {
                Step::Leaf(name) => graph.leaf(&name, None),
                Step::Literal(value) => graph.literal(value, None),
                Step::Operator(_, _) if nodes.is_empty() => graph.leaf("first", None),
                Step::Operator(at, operands) => {
                    let (name, arity) = OPERATORS[at];
                    // Mostly recent nodes, so that graphs grow deep.
                    let recent = &nodes[nodes.len().saturating_sub(6)..];
                    let operands: Vec<_> = operands[..arity].iter().map(|index| *index.get(recent)).collect();
                    graph.operator(name, &operands, None)
                }
            };
            nodes.push(node);
        }
        for (name, index) in outputs {
            if !program.outputs.iter().any(|output| *output.name == *name) {
                program.outputs.push(Output { name: name.into(), node: *index.get(&nodes), span: None });
            }
        }
        for (name, qtype) in inputs {
            if !program.inputs.iter().any(|input| *input.name == *name) {
                program.inputs.push(Input { name: name.into(), qtype, span: None });
            }
        }
        // Leaves that are not declared follow, as a parser would add them.
        let needed = program.graph.reachable(program.outputs.iter().map(|output| output.node));
        for index in (0..needed.len()).filter(|index| needed[*index]) {
            if let cembra_expr::Node::Leaf(name) = program.graph.node(NodeId::from_index(index)) {
                let name = program.graph.name(name).clone();
                if !program.inputs.iter().any(|input| input.name == name) {
                    program.inputs.push(Input { name, qtype: None, span: None });
                }
            }
        }
        program
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn what_is_printed_reads_back(program in program()) {
        let text = print(&program);
        match parse(&text, &Anything, &Limits::default()) {
            Ok(again) => prop_assert!(again == program, "{}\nreads back as\n{}", text, print(&again)),
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
                let alone = Program { graph: program.graph.clone(), inputs: again.inputs.clone(), outputs };
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
            let text = print(&program);
            let again = parse(&text, &Anything, &Limits::default());
            prop_assert!(again.as_ref() == Ok(&program), "{}\n{:?}", text, again);
        }
    }
}
