//! Tests of the parser: precedence, statements, names, calls and literals, and the spans that are recorded for them.

use crate::anything::Anything;
use crate::common::{Operators, list, lists, read};
use cembra_expr::{Builder, Expr, Node, NodeId, Program, parse, parse_type, parse_value, print, print_value};
use cembra_runtime::{ArrayKind, Fields, Names, QType, Scalar};
use cembra_value::{ArrayBuilder, Edge, Limits, Promise, ScalarValue, Span, Value};

/// Makes a dense array of integers, where `None` is a missing element.
fn array(elements: &[Option<i32>]) -> Value {
    let mut made = ArrayBuilder::new(Scalar::Int32, elements.len());
    for element in elements {
        made.push(element.map(ScalarValue::Int32).as_ref());
    }
    Value::Array(ArrayKind::Dense, made.finish().into())
}

/// Makes an edge with two elements in one group, given by split points.
fn splits(kind: ArrayKind) -> Value {
    Edge::from_split_points(kind, vec![0, 2]).expect("split points").into()
}

fn means(source: &str, expected: &str) {
    assert_eq!(lists(source), [expected], "{source}");
}

#[test]
fn operators_bind_as_the_table_says() {
    for (source, expected) in [
        ("a + b * c", "(_plus a (multiply b c))"),
        ("a * b + c", "(_plus (multiply a b) c)"),
        ("a - b - c", "(subtract (subtract a b) c)"),
        ("a - (b - c)", "(subtract a (subtract b c))"),
        ("a / b * c // d % e", "(remainder (floor_divide (multiply (divide a b) c) d) e)"),
        ("a ** b ** c", "(pow a (pow b c))"),
        ("-x ** 2", "(neg (pow x 2))"),
        ("(-x) ** 2", "(pow (neg x) 2)"),
        ("x ** -1", "(pow x -1)"),
        ("x ** -y ** z * w", "(multiply (pow x (neg (pow y z))) w)"),
        ("x ** - + y", "(pow x (neg (pos y)))"),
        ("-a * b", "(multiply (neg a) b)"),
        ("- - a", "(neg (neg a))"),
        ("+a - +b", "(subtract (pos a) (pos b))"),
        ("a & b + c", "(presence_and a (_plus b c))"),
        ("a | b & c", "(presence_or a (presence_and b c))"),
        ("a ?? b | c", "(presence_or (presence_or a b) c)"),
        ("a < b | c", "(less a (presence_or b c))"),
        ("a <= b + c", "(less_equal a (_plus b c))"),
        ("not a == b", "(_not (equal a b))"),
        ("not not a", "(_not (_not a))"),
        ("not a and not b or c", "(_or (_and (_not a) (_not b)) c)"),
        ("a or b and c", "(_or a (_and b c))"),
        ("a > b and c >= d", "(_and (greater a b) (greater_equal c d))"),
        ("a != b", "(not_equal a b)"),
        ("(a < b) < c", "(less (less a b) c)"),
        ("if a then b else c + d", "(_where a b (_plus c d))"),
        ("if a then b", "(_where a b missing)"),
        ("if a then b else if c then d else e", "(_where a b (_where c d e))"),
        ("if a then if b then c else d", "(_where a (_where b c d) missing)"),
        ("if if a then b else c then d else e", "(_where (_where a b c) d e)"),
        ("if if a then b then c", "(_where (_where a b missing) c missing)"),
        ("if a then b else if c then d", "(_where a b (_where c d missing))"),
        ("(if a then b else c) + d", "(_plus (_where a b c) d)"),
        ("if a or b then not c else d and e", "(_where (_or a b) (_not c) (_and d e))"),
        ("f.g(if a then b, c)", "(f.g (_where a b missing) c)"),
        ("a.0.1 ** b.2", "(pow (get_nth (get_nth a 0i64) 1i64) (get_nth b 2i64))"),
        ("-x.0", "(neg (get_nth x 0i64))"),
        ("(a, b).1", "(get_nth (make_tuple a b) 1i64)"),
        ("((a))", "a"),
        ("(a,)", "(make_tuple a)"),
        ("()", "(make_tuple)"),
        ("(a, b,)", "(make_tuple a b)"),
    ] {
        means(source, expected);
    }
}

#[test]
fn a_minus_belongs_to_the_number_behind_it() {
    for (source, expected) in [
        ("-2147483648", "-2147483648"),
        ("-2147483649", "-2147483649i64"),
        ("- 5", "-5"),
        ("--5", "(neg -5)"),
        ("a - -5", "(subtract a -5)"),
        ("a -5", "(subtract a 5)"),
        ("-5 ** 2", "(neg 25)"),
        ("-5\n** 2", "(neg 25)"),
        ("-5 * 2", "(multiply -5 2)"),
        ("x ** -5 ** 2", "(pow x (neg 25))"),
        ("-inf", "-inf"),
        ("-nan", "-nan"),
        ("-(5)", "(neg 5)"),
        ("+5", "(pos 5)"),
    ] {
        means(source, expected);
    }
}

#[test]
fn a_line_goes_on_where_it_must() {
    for (source, expected) in [
        ("a +\n b", "(_plus a b)"),
        ("a\n + b\n\n# note\n * c", "(_plus a (multiply b c))"),
        ("a\n- b", "(subtract a b)"),
        ("(a\n)", "a"),
        ("f.g\n.h(a)", ""),
        ("any(a\n,\nb\n)", "(any a b)"),
        ("any(sqrt\n(a)\n.0)", "(any (get_nth (sqrt a) 0i64))"),
        ("if a\nthen b\nelse c", "(_where a b c)"),
        ("if a then\n b else\n c", "(_where a b c)"),
        ("a\nand b\nor c", "(_or (_and a b) c)"),
        ("a\n?? b", "(presence_or a b)"),
        ("a <\n b", "(less a b)"),
        ("not\n a", "(_not a)"),
        ("-\n 5", "-5"),
        ("a ** # power\r\n b", "(pow a b)"),
    ] {
        if expected.is_empty() {
            assert!(parse(source, &Operators, &Limits::default()).is_err(), "{source}");
        } else {
            means(source, expected);
        }
    }
    assert_eq!(lists("output x = a\noutput y =\n b; output z = c;\n;"), ["a", "b", "c"]);
    assert_eq!(lists("let t = a; t\n + 1"), ["(_plus a 1)"]);
}

#[test]
fn statements_define_names() {
    let program = read(
        "# quadratic\ninput a: f32\ninput b, c: f64, m: text?\ninput u\n\
         let d = b*b - 4.0*a*c\nlet s = math.pow(d, 0.5)\n\
         output first = where(d >= 0, (-b + s) / 2.0 / a)\noutput second = if d >= 0 then first else z",
    );
    let inputs: Vec<_> = program.inputs.iter().map(|input| (&*input.name, input.qtype.clone())).collect();
    assert_eq!(
        inputs,
        [
            ("a", Some(QType::FLOAT32)),
            ("b", Some(QType::FLOAT64)),
            ("c", Some(QType::FLOAT64)),
            ("m", Some(QType::Optional(Scalar::Text))),
            ("u", None),
            ("z", None),
        ]
    );
    assert_eq!(program.outputs.iter().map(|output| &*output.name).collect::<Vec<_>>(), ["first", "second"]);
    assert_eq!(program.graph.operands(program.outputs[1].node)[1], program.outputs[0].node);
}

#[test]
fn leaves_are_those_that_outputs_need_in_the_order_of_use() {
    let program = read("let unused = q + 1\nfn f(x) = x + k\noutput y = f(b) * a + L.a + L[\"odd name\"] + L.if");
    let names: Vec<_> = program.inputs.iter().map(|input| &*input.name).collect();
    assert_eq!(names, ["k", "b", "a", "odd name", "if"]);
    assert_eq!(program.outputs[0].name.as_ref(), "y");
    assert_eq!(read("a * 2").outputs[0].name.as_ref(), "result");
}

#[test]
fn names_in_quotes_define_nothing() {
    let source = "input \"if\": f32, \"x\": i64\noutput \"x\" = x + L.if\noutput \"two words\" = L[\"x\"]";
    let program = read(source);
    let inputs: Vec<_> = program.inputs.iter().map(|input| &*input.name).collect();
    let outputs: Vec<_> = program.outputs.iter().map(|output| &*output.name).collect();
    assert_eq!((inputs, outputs), (vec!["if", "x"], vec!["x", "two words"]));
    assert_eq!(lists(source), ["(_plus x if)", "x"]);
}

#[test]
fn an_output_may_export_a_definition_under_its_own_name() {
    assert_eq!(lists("let d = a * a\noutput d = d\noutput e = d"), ["(multiply a a)", "(multiply a a)"]);
}

#[test]
fn functions_are_copied_into_their_calls() {
    for (source, expected) in [
        ("fn f(x, y) = x * y + 1; f(a, b)", "(_plus (multiply a b) 1)"),
        ("fn f(x) = x; f(a)", "a"),
        ("fn f() = 1; f()", "1"),
        ("fn f(x) = k; f(a)", "k"),
        ("fn f(x) = x - k\nfn g(k) = f(k * k)\ng(a)", "(subtract (multiply a a) k)"),
        ("fn f(x, y) = x - y\nfn g(x, y) = f(y, x)\ng(a, b)", "(subtract b a)"),
        ("fn f(x, y) = x - y; f(y=a, x=b)", "(subtract b a)"),
        ("fn f(x, y) = x - y; f(a, y=b)", "(subtract a b)"),
        ("let x = 7\nfn f(x) = x + 1\nf(x)", "(_plus 7 1)"),
        ("fn sqrt(x) = x + 1; sqrt(a) + M.sqrt(a)", "(_plus (_plus a 1) (sqrt a))"),
        ("fn f(x) = x ** 2\nf(f(a))", "(pow (pow a 2) 2)"),
        ("fn f(x) = (x, x.1)\nf(a).0", "(get_nth (make_tuple a (get_nth a 1i64)) 0i64)"),
    ] {
        means(source, expected);
    }
}

#[test]
fn functions_are_values() {
    for (source, expected) in [
        ("fn(x, y) = x + y * k", "(_lambda (_plus P.x (multiply P.y k)) P.x P.y)"),
        ("fn() = 1", "(_lambda 1)"),
        // As far as an expression goes; inside, the names hide those further out.
        ("f.g(fn(x) = x + 1, x)", "(f.g (_lambda (_plus P.x 1) P.x) x)"),
        ("(fn(x) = x, 1).0", "(get_nth (make_tuple (_lambda P.x P.x) 1) 0i64)"),
        (
            "if fn(x) = x then fn(x) = x else fn(x) = x",
            "(_where (_lambda P.x P.x) (_lambda P.x_2 P.x_2) (_lambda P.x_3 P.x_3))",
        ),
        ("fn(x) = (fn(x) = x, x)", "(_lambda (make_tuple (_lambda P.x_2 P.x_2) P.x) P.x)"),
        ("fn(x) = fn(y) = x - y", "(_lambda (_lambda (subtract P.x P.y) P.y) P.x)"),
        ("let x = a; f.g(fn(y) = x + y, fn(x) = x, x)", "(f.g (_lambda (_plus a P.y) P.y) (_lambda P.x P.x) a)"),
        ("f.g(\n  fn(x) = x,\n  fn(y) =\n y)", "(f.g (_lambda P.x P.x) (_lambda P.y P.y))"),
        // The names of functions, and the paths of operators.
        ("fn sq(x) = x * x; f.g(sq, sq)", "(f.g (_lambda (multiply P.x P.x) P.x) (_lambda (multiply P.x P.x) P.x))"),
        ("fn f(x) = x; fn g(x) = x; (f, g)", "(make_tuple (_lambda P.x P.x) (_lambda P.x_2 P.x_2))"),
        ("fn id(x) = x; fn(x) = id(x)", "(_lambda P.x P.x)"),
        (
            "f.g(math.sqrt, M.sqrt, bool.equal, sqrt)",
            "(f.g (_operator \"math.sqrt\") (_operator \"math.sqrt\") (_operator \"bool.equal\") sqrt)",
        ),
        // What is called by the name of a value is applied.
        ("let h = fn(x) = x; h(a)", "(apply (_lambda P.x P.x) a)"),
        ("fn(h, a) = h(a, h)", "(_lambda (apply P.h P.a P.h) P.h P.a)"),
        (
            "fn twice(h, x) = h(h(x)); twice(math.sqrt, a)",
            "(apply (_operator \"math.sqrt\") (apply (_operator \"math.sqrt\") a))",
        ),
        ("let o = math.sqrt; fn(o) = M.o.p(o)", "(_lambda (o.p P.o) P.o)"),
        (
            "let t = (math.sqrt, 1); let f = t.0; f(a)",
            "(apply (get_nth (make_tuple (_operator \"math.sqrt\") 1) 0i64) a)",
        ),
        // Local names.
        ("(let t = a + 1 in t * t) + t", "(_plus (multiply (_plus a 1) (_plus a 1)) t)"),
        ("fn(x) = let t = x in let x = t + 1 in x - t", "(_lambda (subtract (_plus P.x 1) P.x) P.x)"),
        ("(let t = let u = 1 in u + 1\n in t)", "(_plus 1 1)"),
        ("(\n let t = fn(x) = x in\n let u = t(2) in\n u)", "(apply (_lambda P.x P.x) 2)"),
        ("(let in = 1 in in, let t = in in t)", "(make_tuple 1 in)"),
        ("(let t = (a in [1]) in t, in in in..in + 1)", "(make_tuple (_in a 1) (_in_range in in (_plus in 1)))"),
        ("not a + 1 in [b,] and c not in 3..7", "(_and (_not (_in (_plus a 1) b)) (_not (_in_range c 3 7)))"),
        ("a in []\n", "(_in a)"),
        ("(if a then let t = 1 in t else let t = 2 in t, t)", "(make_tuple (_where a 1 2) t)"),
    ] {
        assert_eq!(lists(source), [expected.replace("math.", "").replace("core.", "")], "{source}");
    }
}

#[test]
fn functions_inside_of_functions_are_copied_with_parameters_of_their_own() {
    for (source, expected) in [
        // What depends on the parameters of the function, and only that.
        (
            "fn add(k) = fn(x) = x + k\n(add(1), add(a), add(1))",
            "(make_tuple (_lambda (_plus P.x_2 1) P.x_2) (_lambda (_plus P.x_3 a) P.x_3) (_lambda (_plus P.x_2 1) P.x_2))",
        ),
        (
            "fn f(k) = (fn(x) = x + 1, k)\n(f(1), f(a))",
            "(make_tuple (make_tuple (_lambda (_plus P.x 1) P.x) 1) (make_tuple (_lambda (_plus P.x 1) P.x) a))",
        ),
        (
            "fn f(k) = fn(x) = ((fn(y) = y - x), fn(z) = z, k)\nf(1)",
            "(_lambda (make_tuple (_lambda (subtract P.y_2 P.x_2) P.y_2) (_lambda P.z P.z) 1) P.x_2)",
        ),
        // Through a second function, and as a value.
        (
            "fn add(k) = fn(x) = x + k\nfn both(k, l) = (add(k), add(l))\nboth(1, 2)",
            "(make_tuple (_lambda (_plus P.x_4 1) P.x_4) (_lambda (_plus P.x_5 2) P.x_5))",
        ),
        ("fn add(k) = fn(x) = x + k\nf.g(add)", "(f.g (_lambda (_lambda (_plus P.x_2 P.k) P.x_2) P.k))"),
        // An argument that has the name of a parameter inside is not taken for it.
        ("fn add(k) = fn(x) = x + k\nfn(x) = add(x)", "(_lambda (_lambda (_plus P.x_3 P.x_2) P.x_3) P.x_2)"),
    ] {
        assert_eq!(lists(source), [expected], "{source}");
    }
}

#[test]
fn very_many_functions_are_read_in_one_go() {
    let many = "fn(x) = x, ".repeat(100_000);
    let program = read(&format!("f.g({many})"));
    assert_eq!(program.graph.operands(program.outputs[0].node).len(), 100_000);
    let chain: String = (0..50_000).map(|at| format!("let t{} = t{at} + x in ", at + 1)).collect();
    let program = read(&format!("fn(x) = let t0 = x in {chain}t50000"));
    assert_eq!(program.graph.len(), 50_002);
    let text = print(&program, &Operators);
    assert!(read(&text) == program);
}

#[test]
fn doubling_stays_linear() {
    let calls = "d(".repeat(200);
    let source = format!("fn d(x) = x + x\n{calls}a{}", ")".repeat(200));
    let program = read(&source);
    // The leaf, the placeholder, the body, and one node for each call.
    assert_eq!(program.graph.len(), 203);
}

#[test]
fn calls_go_through_the_vocabulary() {
    for (source, expected) in [
        ("sqrt(a)", "(sqrt a)"),
        ("M.math.sqrt(a)", "(sqrt a)"),
        ("M . math\n. sqrt(a)", ""),
        ("(M . math\n. sqrt(a))", "(sqrt a)"),
        ("M.sqrt(x=a)", "(sqrt a)"),
        ("where(c, a)", "(_where c a missing)"),
        ("where(c, other=b, value=a)", "(_where c a b)"),
        ("clip(a)", "(clip a 0 1.0)"),
        ("clip(a, hi=2)", "(clip a 0 2)"),
        ("clip(hi=a == b, x=c)", "(clip c 0 (equal a b))"),
        ("clip(a,)", "(clip a 0 1.0)"),
        ("bool.equal(a, b)", "(bool.equal a b)"),
        ("f32.x.if(a)", "(f32.x.if a)"),
        ("exp(exp)", "(exp exp)"),
        ("core.cast(x, f32)", "(cast x f32)"),
        ("core.cast(x, OPTIONAL_INT64)", "(cast x i64?)"),
        ("core.cast(x, i64? , to=1 == 1)", ""),
    ] {
        if expected.is_empty() {
            assert!(parse(source, &Operators, &Limits::default()).is_err(), "{source}");
        } else {
            means(source, expected);
        }
    }
    let program = parse("M.if(a) + M.L.x(L.x)", &Anything, &Limits::default()).unwrap();
    assert_eq!(list(&program.graph, program.outputs[0].node), "(core._plus (if a) (L.x x))");
}

#[test]
fn values_read_and_print() {
    let weak = |v| Value::Scalar(ScalarValue::WeakFloat(v));
    let cases = [
        ("7", Value::from(7_i32), "7"),
        ("7i64", Value::from(7_i64), "7i64"),
        ("int64{7}", Value::from(7_i64), "7i64"),
        ("-3", Value::from(-3_i32), "-3"),
        ("+3", Value::from(3_i32), "3"),
        ("1.5", weak(1.5), "1.5"),
        ("weak_float{0.5}", weak(0.5), "0.5"),
        ("1e300", weak(1e300), "1e300"),
        ("1.5f32", Value::from(1.5_f32), "1.5f32"),
        ("FLOAT32{1}", Value::from(1.0_f32), "1.0f32"),
        ("float64{1}", Value::from(1.0_f64), "1.0f64"),
        ("f64{-1e-7}", Value::from(-1e-7_f64), "-1e-7f64"),
        ("float64{-inf}", Value::from(f64::NEG_INFINITY), "f64{-inf}"),
        ("FLOAT32{nan}", Value::from(f32::NAN), "f32{nan}"),
        ("FLOAT32{-nan}", Value::from(-f32::NAN), "f32{-nan}"),
        ("FLOAT32{nan:0x7fc00001}", Value::from(f32::from_bits(0x7fc0_0001)), "f32{nan:0x7fc00001}"),
        (
            "WEAK_FLOAT{nan:0xfff8000000000001}",
            weak(f64::from_bits(0xfff8_0000_0000_0001)),
            "weak_float{nan:0xfff8000000000001}",
        ),
        ("nan", weak(f64::NAN), "nan"),
        ("-inf", weak(f64::NEG_INFINITY), "-inf"),
        ("-0.0", weak(-0.0), "-0.0"),
        ("true", Value::from(true), "true"),
        ("BOOLEAN{false}", Value::from(false), "false"),
        (r#""a\n\"b\"""#, Value::from("a\n\"b\""), r#""a\n\"b\"""#),
        ("'it\\'s'", Value::from("it's"), "\"it's\""),
        ("optional_text{'a'}", Value::from(Some::<std::sync::Arc<str>>("a".into())), "text?{\"a\"}"),
        ("OPTIONAL_TEXT{NA}", Value::Missing(Scalar::Text), "missing[text]"),
        ("OPTIONAL_INT64{3}", Value::from(Some(3_i64)), "i64?{3}"),
        ("i64?{-3i64}", Value::from(Some(-3_i64)), "i64?{-3}"),
        ("f32?{inf}", Value::from(Some(f32::INFINITY)), "f32?{inf}"),
        ("present", Value::Present(ScalarValue::Unit), "present"),
        ("OPTIONAL_UNIT{present}", Value::Present(ScalarValue::Unit), "present"),
        ("missing", Value::Nothing, "missing"),
        ("missing[unit]", Value::Missing(Scalar::Unit), "missing[unit]"),
        ("missing[FLOAT32]", Value::Missing(Scalar::Float32), "missing[f32]"),
        ("UNIT{}", Value::Scalar(ScalarValue::Unit), "unit{}"),
        ("unit{unit}", Value::Scalar(ScalarValue::Unit), "unit{}"),
        ("f32", Value::Type(QType::FLOAT32), "f32"),
        (
            "QTYPE{(f32, (text?,), ())}",
            Value::Type(parse_type("(f32, (text?,), ())").unwrap()),
            "QTYPE{(f32, (text?,), ())}",
        ),
        ("QTYPE", Value::Type(QType::Meta), "QTYPE"),
        ("NOTHING", Value::Type(QType::Nothing), "NOTHING"),
        ("UNSPECIFIED", Value::Type(QType::Unspecified), "UNSPECIFIED"),
        ("UNSPECIFIED{}", Value::Unspecified, "UNSPECIFIED{}"),
        ("unspecified{}", Value::Unspecified, "UNSPECIFIED{}"),
        ("TUPLE{}", Value::Tuple([].into()), "TUPLE{}"),
        ("(1, true)", Value::Tuple([Value::from(1_i32), Value::from(true)].into()), "TUPLE{1, true}"),
        ("(1,)", Value::Tuple([Value::from(1_i32)].into()), "TUPLE{1}"),
        ("(1)", Value::from(1_i32), "1"),
        (
            "tuple{1, (missing,)}",
            Value::Tuple([Value::from(1_i32), Value::Tuple([Value::Nothing].into())].into()),
            "TUPLE{1, TUPLE{missing}}",
        ),
        (
            "NAMEDTUPLE{x: 1, \"odd name\": {if: true}}",
            named("x,odd name", [Value::from(1_i32), named("if", [Value::from(true)])]),
            "NAMEDTUPLE{x: 1, \"odd name\": NAMEDTUPLE{if: true}}",
        ),
        ("namedtuple{}", named("", []), "NAMEDTUPLE{}"),
        ("weak_float?{0.5}", Value::Present(ScalarValue::WeakFloat(0.5)), "weak_float?{0.5}"),
        ("missing[WEAK_FLOAT]", Value::Missing(Scalar::WeakFloat), "missing[weak_float]"),
        ("DENSE_ARRAY_INT32{1, NA}", array(&[Some(1), None]), "[i32?]{1, NA}"),
        ("[i32?]{}", array(&[]), "[i32?]{}"),
        ("[INT32?]{-1}", array(&[Some(-1)]), "[i32?]{-1}"),
        ("TUPLE{[i32?]{1}}", Value::Tuple([array(&[Some(1)])].into()), "TUPLE{[i32?]{1}}"),
        ("DENSE_ARRAY_EDGE{0, 2}", splits(ArrayKind::Dense), "edge{0, 2}"),
        ("edge{0, 2}", splits(ArrayKind::Dense), "edge{0, 2}"),
        ("ARRAY_EDGE{0, 2}", splits(ArrayKind::Sparse), "ARRAY_EDGE{0, 2}"),
    ];
    for (text, value, printed) in cases {
        assert_eq!(parse_value(text).unwrap(), value, "{text}");
        assert_eq!(print_value(&value), printed);
        assert_eq!(parse_value(printed).unwrap(), value, "{printed}");
        // In an expression brackets make a node; every other form is the same literal there.
        if !text.starts_with(['(', '+']) {
            let program = read(text);
            assert_eq!(program.graph.node(program.outputs[0].node), Node::Literal(&value), "{text}");
        }
    }
}

fn named<const N: usize>(names: &str, values: [Value; N]) -> Value {
    let names = Names::parse(names).expect("names");
    Value::Tuple(Fields::named(names, values).expect("a value for each name"))
}

#[test]
fn named_tuples_are_operators_with_their_names_as_a_text() {
    for (text, expected) in [
        ("{x: a, y: {},}", "(namedtuple.make \"x,y\" a (namedtuple.make \"\"))"),
        ("{\"odd name\": 1, if: 2}.if", "(namedtuple.get_field (namedtuple.make \"odd name,if\" 1 2) \"if\")"),
        ("{x: a + 1,\n output: if a then b}", "(namedtuple.make \"x,output\" (_plus a 1) (_where a b missing))"),
        ("input t; t.x.0.y", "(namedtuple.get_field (get_nth (namedtuple.get_field t \"x\") 0i64) \"y\")"),
        ("L.t.x", "(namedtuple.get_field t \"x\")"),
        ("let t = {x: 1}; -t.x ** 2", "(neg (pow (namedtuple.get_field (namedtuple.make \"x\" 1) \"x\") 2))"),
        ("fn f(t) = t.x; f(L.a)", "(namedtuple.get_field a \"x\")"),
    ] {
        assert_eq!(lists(text), [expected], "{text}");
    }
}

#[test]
fn types_read_under_both_names() {
    for (text, qtype) in [
        ("f32", QType::FLOAT32),
        ("FLOAT32", QType::FLOAT32),
        ("bool?", QType::Optional(Scalar::Boolean)),
        ("BOOLEAN?", QType::Optional(Scalar::Boolean)),
        ("OPTIONAL_WEAK_FLOAT", QType::Optional(Scalar::WeakFloat)),
        ("unit", QType::UNIT),
        ("OPTIONAL_UNIT", QType::MASK),
        ("(f32, text?)", QType::tuple([QType::FLOAT32, QType::Optional(Scalar::Text)])),
        ("(\n i32,\n)", QType::tuple([QType::INT32])),
        ("(i32)", QType::INT32),
        ("()", QType::tuple([])),
        ("{x: f32, \"odd name\": (text?, {})}", {
            let inner = QType::tuple([QType::Optional(Scalar::Text), named("", []).qtype()]);
            let names = Names::parse("x,odd name").unwrap();
            QType::Tuple(Fields::named(names, [QType::FLOAT32, inner]).unwrap())
        }),
    ] {
        assert_eq!(parse_type(text).unwrap(), qtype, "{text}");
        assert_eq!(parse_type(&cembra_expr::print_type(&qtype)).unwrap(), qtype, "{text}");
    }
}

#[test]
fn inputs_keep_what_they_promise() {
    let program = read(
        "input a, b: [f64], c: [f64?], d: ([f64])\ninput e: DENSE_ARRAY_FLOAT64, f: ([f64],), g: mapping, h: splits\n\
         input i: edge, j: DENSE_ARRAY_EDGE, k: ARRAY_FLOAT64, mapping: f64?, l: [ text ], splits\nmapping + splits",
    );
    let promises: Vec<_> = program.inputs.iter().map(|input| (&*input.name, input.promise)).collect();
    use Promise::{Full, Mapping, Nothing, Splits};
    assert_eq!(
        promises,
        [
            ("a", Full),
            ("b", Full),
            ("c", Nothing),
            ("d", Full),
            ("e", Nothing),
            ("f", Nothing),
            ("g", Mapping),
            ("h", Splits),
            ("i", Nothing),
            ("j", Nothing),
            ("k", Nothing),
            ("mapping", Nothing),
            ("l", Full),
            ("splits", Nothing),
        ]
    );
    let array = |scalar| Some(QType::Array(ArrayKind::Dense, scalar));
    let types: Vec<_> = [0, 2, 4, 12].map(|at| program.inputs[at].qtype.clone()).into();
    assert_eq!(types, [array(Scalar::Float64), array(Scalar::Float64), array(Scalar::Float64), array(Scalar::Text)]);
    assert_eq!(program.inputs[6].qtype, program.inputs[8].qtype);
    assert_eq!(
        print(&program, &Operators),
        "input a: [f64]\ninput b: [f64]\ninput c: [f64?]\ninput d: [f64]\ninput e: [f64?]\ninput f: ([f64?],)\n\
         input g: mapping\ninput h: splits\ninput i: edge\ninput j: edge\ninput k: ARRAY_FLOAT64\n\
         input mapping: f64?\ninput l: [text]\ninput splits\noutput result = mapping + splits\n"
    );
}

#[test]
fn nodes_know_where_they_stand() {
    let source = "let d = (a + b) * a\noutput y = d + clip(a, hi=3) ";
    let program = read(source);
    let at = |id: NodeId| program.graph.span(id).unwrap_or_default().text(source);
    let sum = program.outputs[0].node;
    let [product, clip] = program.graph.operands(sum) else { panic!("a sum has two operands") };
    assert_eq!((at(sum), at(*product), at(*clip)), ("d + clip(a, hi=3)", "(a + b) * a", "clip(a, hi=3)"));
    let a = program.graph.operands(*product)[1];
    let everywhere: Vec<_> = program.graph.spans(a).map(|span| span.start).collect();
    assert_eq!(everywhere, [9, 18, 40]);
    assert_eq!(program.inputs[0].span, Some(Span::new(9, 10)));
    assert_eq!(program.outputs[0].span.unwrap().text(source), "y");
}

#[test]
fn copies_of_a_body_know_body_and_call() {
    let source = "fn f(x) = (x + 1) * 2; f(a)";
    let program = read(source);
    let product = program.outputs[0].node;
    let texts: Vec<_> = program.graph.spans(product).map(|span| span.text(source)).collect();
    assert_eq!(texts, ["(x + 1) * 2", "f(a)"]);
    let sum = program.graph.operands(product)[0];
    assert_eq!(program.graph.spans(sum).map(|span| span.text(source)).collect::<Vec<_>>(), ["x + 1"]);
}

#[test]
fn the_builder_makes_the_nodes_of_the_text() {
    let b = Builder::new();
    let (x, y) = (b.typed_leaf("x", QType::FLOAT64), b.leaf("y"));
    let t = (x + 1.5) * y - (2 / y).remainder(x) + -y;
    let c = !x.lt(1).and(y.ge(x)).or(x.eq_(y).and(y.ne_(0.5)).and(x.le(y)).and(x.gt(y)));
    b.output("t", t);
    b.output("w", Expr::where_(c, x.floor_divide(2).pow(0.5), (x & c) | y.or_default(3)));
    let scale = b.function(&["v"], |args| args[0] * y);
    b.output("f", b.tuple(&[scale, b.operator("math.sqrt"), scale.apply(&[x])]));
    b.output("r", b.named_tuple(&[("a", x), ("odd name", y)]).named_field("a"));
    b.output("n", b.call("math.sqrt", &[b.tuple(&[x, b.literal(2.0_f32)]).field(1)]));
    let built = b.build().unwrap();
    let text = "input x: f64\noutput t = (x + 1.5) * y - 2 / y % x + -y\n\
         output w = if not (x < 1 and y >= x or x == y and y != 0.5 and x <= y and x > y) \
         then (x // 2) ** 0.5 else x & (not (x < 1 and y >= x or x == y and y != 0.5 and x <= y and x > y)) | (y ?? 3)\n\
         let scale = fn(v) = v * y\noutput f = (scale, math.sqrt, scale(x))\n\
         output r = {a: x, \"odd name\": y}.a\noutput n = math.sqrt((x, 2f32).1)";
    let read = read(text);
    let lists = |program: &Program| -> Vec<_> {
        program.outputs.iter().map(|output| list(&program.graph, output.node)).collect()
    };
    assert_eq!(lists(&built), lists(&read));
    assert_eq!(built, read);
}

#[test]
fn lines_assign_where_there_are_tensors() {
    let lines = "a(\"i\") -= b(\"i\"); c(\"i\") = a(\"i\"); c(\"i\") *= c(\"i\"); a(\"i\") = 2 * c(\"i\")";
    let of = |inputs: &str| format!("input {inputs}\n{lines}");
    let first = "(subtract a (tensor._assign a (tensor._bind (tensor._at b 'i') 'i') 'i'))";
    let second = format!("(tensor._bind (tensor._at {first} 'i') 'i')");
    let third =
        format!("(multiply {second} (tensor._assign {second} (tensor._bind (tensor._at {second} 'i') 'i') 'i'))");
    let last = format!("(tensor._assign {first} (tensor._bind (multiply 2 (tensor._at {third} 'i')) 'i') 'i')");
    assert_eq!(lists(&of("a, b: tensor[f64, 1]")), [last, third].map(|made| made.replace('\'', "\"")));
    let names: Vec<String> =
        read(&of("a, b: tensor[f64, 1]")).outputs.iter().map(|output| output.name.to_string()).collect();
    assert_eq!(names, ["a", "c"]);
    // Elsewhere `a("i")` is a call, and a value is compared by `==`.
    let problems = parse(&of("a, b: f64"), &Operators, &Limits::default()).unwrap_err();
    assert_eq!(problems.diagnostics()[0].message(), "`a` is not a function and cannot be called");
    assert_eq!(lists("input a: tensor[f64, 1]\na(\"i\") == 1"), ["(equal (tensor._at a \"i\") 1)"]);
    assert_eq!(lists("input a: tensor[f64, 1]\na(\"i\")\n  - 1"), ["(subtract (tensor._at a \"i\") 1)"]);
}

#[test]
fn methods_stand_behind_brackets_and_labels() {
    let of = |expression: &str| lists(&format!("input a: tensor[f64, 2]\noutput n = {expression}")).remove(0);
    assert_eq!(of("-a(\"i,j\").norm() ** 2"), "(neg (pow (tensor._whole.norm (tensor._at a \"i,j\")) 2))");
    assert_eq!(of("(a + 1)\n"), "(_plus a 1)");
    assert_eq!(of("((a,).0).sum().max()"), "(tensor._whole.max (tensor._whole.sum (get_nth (make_tuple a) 0i64)))");
    for (of, message) in [
        ("a.sum()", "a field of a value cannot be called"),
        ("(a, a).sum()", "a field of a value cannot be called"),
        ("(a).sum(1)", "the method `sum` takes no arguments"),
        ("(a).sum(", "the method `sum` takes no arguments"),
    ] {
        let text = format!("input a: tensor[f64, 2]\noutput n = {of}");
        let problems = parse(&text, &Operators, &Limits::default()).unwrap_err();
        assert_eq!(problems.diagnostics()[0].message(), message, "{of}");
    }
    let problems = parse("input a: f64\noutput n = (a).sum()", &Operators, &Limits::default()).unwrap_err();
    assert_eq!(problems.diagnostics()[0].message(), "a field of a value cannot be called");
}

#[test]
fn hidden_marks_do_not_matter() {
    assert_eq!(lists("\u{FEFF}output y = a\r\noutput z = b\r\n"), ["a", "b"]);
}
