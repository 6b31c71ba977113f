//! Models with arrays: what users see of them, and that fused programs give what the reference gives, operator by operator.

use cembra::{
    Array, ArrayKind, Backend, Cancellation, Code, Edge, Error, JsonRows, Model, Options, Pool, Scalar, ScalarValue,
    Target, Value,
};

fn evaluate(text: &str, inputs: &[Value], backend: Backend) -> Result<Vec<Value>, Error> {
    Model::parse(text)?.compile(&Options::default().backend(backend))?.session().evaluate(inputs)
}

/// The printed outputs, the same with and without fusing.
fn shown(text: &str, inputs: &[Value]) -> String {
    let [fused, reference] =
        [Backend::Native, Backend::Interpreter].map(|backend| match evaluate(text, inputs, backend) {
            Ok(values) => values.iter().map(Value::to_string).collect::<Vec<_>>().join("; "),
            Err(error) => format!("{}: {error}", error.code()),
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
        ("input x: [f64?]; math.sum(where(x < 0.0, x * x))", "float64{9}"),
        ("input x: [f64?]; if x > 0.0 then 1 else 2", "[1, 2, 2]"),
        ("input x: [f64?]; x[0] + x[2]", "optional_float64{-2}"),
        ("input x: [f64?]; strings.as_text(x)", "['1', NA, '-3']"),
        ("input x: [f64?]; core.cast(x, QTYPE{[f32?]})", "[1, NA, -3]"),
        ("input x: [f64?]; array.count(x, into=edge.from_sizes([1, 0, 2]))", "[1, 0, 1]"),
        ("input x: [f64?]; let t = (x, array.size(x)); t.1", "int64{3}"),
        (
            "input x: [f64?]; output y = x + 1.0; output n = math.mean(x); output z = x - math.mean(x)",
            "[2, NA, -2]; optional_float64{-1}; [2, NA, -2]",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(shown(text, std::slice::from_ref(&x)), expected, "{text}");
    }
}

#[test]
fn conditions_of_scalars_choose_and_those_of_elements_select() {
    let x = doubles(&[Some(1.0), Some(0.0)]);
    let one = "input x: [f64?]; input c: bool; if c then x // 0.0 else x";
    assert_eq!(shown(one, &[x.clone(), Value::from(false)]), "[1, 0]");
    assert!(shown(one, &[x.clone(), Value::from(true)]).starts_with("div_by_zero: math.floordiv"));
    // Both arms are computed for each element, and may fail.
    let each = "input x: [f64?]; where(x > 0.0, 6.0 // x, x)";
    assert!(shown(each, std::slice::from_ref(&x)).starts_with("div_by_zero"));
    // A missing element does not.
    assert_eq!(shown(each, &[doubles(&[Some(4.0), None])]), "[1, NA]");
    let sums = "input x: [f64?]; input c: bool; if c then math.sum(x) else math.sum(x // 0.0)";
    assert_eq!(shown(sums, &[x, Value::from(true)]), "float64{1}");
}

#[test]
fn errors_say_what_and_where() {
    let x = doubles(&[Some(1.0), None]);
    let y = doubles(&[Some(1.0)]);
    let error = evaluate("input x, y: [f64?]\noutput z = x + y", &[x.clone(), y.clone()], Backend::Native).unwrap_err();
    assert_eq!(
        (error.code(), error.to_string().as_str()),
        ("size_mismatch", "math.add: argument sizes mismatch: (2, 1)")
    );
    assert!(error.span().is_some());
    assert_eq!(
        shown("input x: [f64?]; x[2]", std::slice::from_ref(&x)),
        "index_range: array.at: the sequence has no element 2i64"
    );
    let element =
        evaluate("input x: [f64?]; 1.0 // (x - 3.0)", &[doubles(&[None, Some(4.0), Some(3.0)])], Backend::Auto);
    let element = element.unwrap_err();
    assert_eq!((element.element(), element.row()), (Some(2), None));
    assert_eq!(element.to_string(), "math.floordiv: division by zero, in element 2");
    let misfit = evaluate("input x: [f64?]; x", &[Value::from(1.0)], Backend::Native).unwrap_err();
    assert_eq!(misfit.code(), "values");
    let wrong = Model::parse("input x: [f64?]; input y: [text]; x + y").unwrap().compile(&Options::default());
    assert_eq!(wrong.unwrap_err().code(), "type-mismatch");
    // The first that fails in the order of the text is told.
    let two = "input x, y: [f64?]; output a = math.sum(x // 0.0); output b = x + y";
    assert!(shown(two, &[x, y]).starts_with("div_by_zero"));
}

#[test]
fn empty_arrays_are_arrays() {
    let none = doubles(&[]);
    for (text, expected) in [
        ("input x: [f64?]; x * 2.0", "[]"),
        ("input x: [f64?]; math.sum(x)", "float64{0}"),
        ("input x: [f64?]; math.mean(x + 1.0)", "optional_float64{NA}"),
        ("input x: [f64?]; math.sum(x, into=edge.from_sizes([0, 0]))", "[0, 0]"),
    ] {
        assert_eq!(shown(text, std::slice::from_ref(&none)), expected, "{text}");
    }
}

/// A random expression of an array of doubles, over arrays `x` and `y`, a scalar `k` and an edge `by`.
fn expression(random: &mut fastrand::Rng, depth: usize) -> String {
    let mut inner = || expression(random, depth - 1);
    if depth == 0 {
        return ["x", "y", "k", "1.5f64", "(x + k)"][random.usize(..5)].to_owned();
    }
    let (a, b, c) = (inner(), inner(), inner());
    match random.usize(..13) {
        0 => format!("({a} + {b})"),
        1 => format!("({a} * {b} - x)"),
        2 => format!("where({a} > {b}, {c} + x, y)"),
        3 => format!("({a} ?? {b})"),
        4 => format!("(x - math.sum({a} + x))"),
        5 => format!("(y * (math.mean({a} + y) ?? 0.25))"),
        6 => format!("math.sqrt(math.abs({a}))"),
        7 => format!("(if k > 0.0 then {a} + x else {b} + y)"),
        8 => format!("(if core.has(math.mean(x)) then x + ({a}) else y * 2.0)"),
        9 => format!("(({a}) // ({b} + 3.0))"),
        10 => format!("(x + core.to_float64(array.count({a} > {b} & (x > 0.0))))"),
        11 => format!("(x * (x[{}] ?? k))", random.usize(..3)),
        _ => format!("math.maximum({a}, {b})"),
    }
}

#[test]
fn fused_programs_give_what_the_reference_gives() {
    let mut random = fastrand::Rng::with_seed(20_261_121);
    let (mut failed, mut done) = (0, 0);
    for round in 0..150 {
        let depth = 1 + round % 3;
        let text = format!(
            "input x, y: [f64?]\ninput k: f64\ninput by: edge\noutput a = {} + x\noutput b = math.sum({} + x, into=by)\noutput c = x + k",
            expression(&mut random, depth),
            expression(&mut random, depth)
        );
        let compiled = [Backend::Native, Backend::Interpreter]
            .map(|backend| Model::parse(&text).unwrap().compile(&Options::default().backend(backend)));
        let [fused, reference] = compiled.map(|compiled| compiled.unwrap_or_else(|error| panic!("{error}\n{text}")));
        let names: Vec<String> = fused.inputs().iter().map(|input| input.name.to_string()).collect();
        for len in [0_usize, 1, 3, 64, 65, 700, 3000] {
            let mut array = |len| {
                let values: Vec<Option<f64>> =
                    (0..len).map(|_| (random.u8(..5) > 0).then(|| f64::from(random.i32(-40..40)) * 0.25)).collect();
                doubles(&values)
            };
            // Now and then the sizes differ.
            let (x, y) = (array(len), array(if len == 65 { 64 } else { len }));
            let k = Value::from(f64::from(random.i32(-3..3)));
            let split = random.usize(..=len) as i64;
            let by = Value::from(Edge::from_sizes(ArrayKind::Dense, [split, 0, len as i64 - split]).unwrap());
            let all = [("x", x), ("y", y), ("k", k), ("by", by)];
            let inputs: Vec<Value> = names
                .iter()
                .map(|name| all.iter().find(|(known, _)| known == name).expect("an input").1.clone())
                .collect();
            match (fused.session().evaluate(&inputs), reference.session().evaluate(&inputs)) {
                (Ok(a), Ok(b)) => {
                    assert!(a.iter().zip(&b).all(|(a, b)| a.same(b)), "{len} elements\n{text}");
                    done += 1;
                }
                (Err(a), Err(b)) => {
                    assert_eq!((a.code(), a.to_string()), (b.code(), b.to_string()), "{len} elements\n{text}");
                    failed += 1;
                }
                (a, b) => panic!("{len} elements: {a:?} but {b:?}\n{text}"),
            }
        }
    }
    assert!(done > 400 && failed > 100, "{done} and {failed}");
}

#[test]
fn every_other_way_in_is_refused() {
    #[derive(cembra::Input)]
    struct Row {
        k: f64,
    }
    /// True if it is the error that only sessions evaluate such models.
    fn is_refused<T>(made: Result<T, Error>) -> bool {
        made.is_err_and(|error| error.code() == Code::Arrays.as_str() && !error.diagnostics()[0].hints().is_empty())
    }
    let options = Options::default();
    // Arrays that neither come in nor go out are arrays as well.
    for text in ["input k: f64; math.sum([k, 1.0])", "input k: f64; input x: [f64?]; x * k", "input k: f64; [k] * 2.0"]
    {
        let model = Model::parse(text).unwrap();
        let executor = model.compile(&options).unwrap();
        assert!(is_refused(model.batch(&options)), "{text}");
        assert!(is_refused(executor.batch()), "{text}");
        assert!(is_refused(executor.load(&[vec![Value::from(1.0)]])), "{text}");
        assert!(is_refused(model.machine(&options)), "{text}");
        let object = model.object("f", &Target::host(), &options);
        assert!(is_refused(object), "{text}");
    }
    let inside = Model::parse("input k: f64; math.sum([k, 1.0])").unwrap();
    assert!(is_refused(inside.executor::<Row, f64>(&options)));
    assert!(is_refused(inside.executor_from::<_, f64>(&JsonRows, &options)));
    let taken = Model::parse("input k: f64; input x: [f64?]; math.sum(x * k)").unwrap();
    assert!(is_refused(taken.executor_from::<_, f64>(&JsonRows, &options)));
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
            assert_eq!(
                found.iter().map(Value::to_string).collect::<Vec<_>>(),
                ["[3, NA]", "float64{1.5}"],
                "{backend:?}"
            );
        }
        let mut told = Vec::new();
        let mut session = executor.session().clone();
        let main = session.listen(std::slice::from_ref(&x), &mut |name, value| told.push(format!("{name} = {value}")));
        assert_eq!((main.unwrap().to_string().as_str(), &*told), ("[3, NA]", &["s = float64{1.5}".to_owned()][..]));
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
