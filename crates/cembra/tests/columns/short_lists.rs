//! Tests models on short lists, which run as one plan with loops over the elements. Results have the bits of the
//! interpreter, which applies one operator after the other to whole arrays, at all lengths around which the algorithm
//! changes, and also if the lists are fields of Rust structs.

use cembra::explain::{RowPlayer, Stage};
use cembra::values::ArrayKind;
use cembra::{Array, Backend, Edge, Executor, Limits, Model, Options, Scalar, ScalarValue, Session, Value};
use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

const INPUTS: &str = "input x: [f64?]; input f: [f32?]; input n: [i64?]; input k: [i32?]; input b: [bool?]; input t: [text?]; input w: [f64]
input items: [{sku: text, price: f64, count: i64, weight: f64?, on: date}]
input rates: dict[text, f64]; input days: dict[i64, text]
input code: text; input limit: f64; input by: splits
";

fn word(text: &str) -> ScalarValue {
    ScalarValue::Text(text.into())
}

/// Returns random values for the inputs, with lists of `len` elements.
fn values(random: &mut fastrand::Rng, len: usize) -> Vec<Value> {
    let number = |random: &mut fastrand::Rng| match random.u8(0..20) {
        0 => f64::NAN,
        1 => -0.0,
        2 => 0.0,
        3 => f64::INFINITY,
        4 => -1e300,
        _ => (random.f64() - 0.4) * (random.i32(-9..9) as f64).exp2(),
    };
    let words = ["", "a", "book", "toy", "na\u{ef}ve", "a longer word that is no longer than it has to be"];
    let mut array = |scalar: Scalar, one: &mut dyn FnMut(&mut fastrand::Rng) -> ScalarValue, full: bool| {
        let full = full || random.bool();
        let elements: Vec<Option<ScalarValue>> =
            (0..len).map(|_| (full || random.u8(0..4) > 0).then(|| one(random))).collect();
        Value::from(Array::from_scalars(scalar, elements))
    };
    let mut all = vec![
        array(Scalar::Float64, &mut |random| number(random).into(), false),
        array(Scalar::Float32, &mut |random| (number(random) as f32).into(), false),
        array(Scalar::Int64, &mut |random| random.i64(-3..300).into(), false),
        array(Scalar::Int32, &mut |random| random.i32(-3..9).into(), false),
        array(Scalar::Boolean, &mut |random| random.bool().into(), false),
        array(Scalar::Text, &mut |random| word(random.choice(words).expect("it is right")), false),
        array(Scalar::Float64, &mut |random| number(random).into(), true),
    ];
    let arrays = [
        array(Scalar::Text, &mut |random| word(random.choice(words).expect("it is right")), true),
        array(Scalar::Float64, &mut |random| number(random).into(), true),
        array(Scalar::Int64, &mut |random| random.i64(0..200).into(), true),
        array(Scalar::Float64, &mut |random| number(random).into(), false),
        array(Scalar::Date, &mut |random| ScalarValue::Date(cembra::Date(random.i32(20_000..21_000))), true),
    ];
    let qtype = Model::parse(&format!("{INPUTS}limit + sum(items.price)")).expect("it is right");
    let qtype = qtype.compile(&Options::default()).expect("it is right").inputs()[0].qtype.clone();
    let arrays = arrays.into_iter().map(|array| match array {
        Value::Array(_, array) => (*array).clone(),
        _ => unreachable!(),
    });
    all.push(Value::list_of_arrays(&qtype, arrays).expect("it is right"));
    // In any order.
    let mut keys = ["CHF", "EUR", "book"];
    random.shuffle(&mut keys);
    let rates: Vec<&str> = keys.into_iter().filter(|_| random.bool()).collect();
    all.push(
        Value::map(
            Scalar::Text,
            Scalar::Float64,
            rates.iter().map(|key| (word(key), Some((key.len() as f64 * 0.375).into()))),
        )
        .expect("it is right"),
    );
    let days = (0..7_i64).filter(|_| random.bool()).map(|key| (key.into(), (key % 3 > 0).then(|| word("day"))));
    all.push(Value::map(Scalar::Int64, Scalar::Text, days.collect::<Vec<_>>()).expect("it is right"));
    all.push(Value::from(random.choice(["CHF", "EUR", "", "x"]).expect("it is right")));
    all.push(Value::from(number(random)));
    all.push(Edge::from_sizes(ArrayKind::Dense, sizes(random, len)).expect("it is right").into());
    all
}

/// Returns random group sizes that add up to `len`; some groups are empty.
fn sizes(random: &mut fastrand::Rng, len: usize) -> Vec<i64> {
    // Sums of more than 64 elements have another order.
    let most = *random.choice(&[len, 3, 64, 65, 255]).expect("it is right");
    let (mut sizes, mut left) = (Vec::new(), len);
    while left > 0 || random.u8(0..3) == 0 {
        let size = if random.bool() { most.min(left) } else { random.usize(0..=most.min(left)) };
        sizes.push(size as i64);
        left -= size;
    }
    sizes
}

/// Models that have a plan with loops over elements.
const LOOPED: &[&str] = &[
    "output y = sum(x); output z = mean(x); output p = prod(x * 0.01); output lo = min(x); output hi = max(x)",
    "output y = sum(f); output z = mean(f); output lo = min(f); output hi = max(f)",
    "output y = sum(n); output z = mean(n); output p = prod(k); output lo = min(k); output hi = max(n)",
    // Integers that FLOAT32 does not hold.
    "output y = mean(n * 123456791); output z = mean(k * 123456791)",
    "output c = count(x); output a = any(x > 1.0); output e = all(x > -1.0); output d = count(t); output s = array.size(t)",
    "output a = logical_any(b); output c = logical_all(b); output d = count(b)",
    "output y = sum(x * x + 1.0) / (count(x > 0.0) + 1)",
    "output y = sum(x & (x > limit)); output z = sum((x | 0.5) * 2.0)",
    "output y = sum(w); output z = mean(w * w); output top = max(w); output c = w + 1.0; output d = w ?? limit",
    // One pass after another over the same list.
    "let top = max(x) ?? 0.0; let e = math.exp(x - top); output share = e / sum(e); output y = sum(e)",
    "let m = mean(x) ?? 0.0; let v = mean((x - m) * (x - m)); output y = v; output far = count(x > m)",
    "output y = x * 2.0; output z = n + 1; output c = b; output u = f * f; output v = t",
    // What a loop makes and carries: numbers of each type, masks, elements that may be missing and that may not.
    "let a = x * -2.0; output y = sum(a); output z = mean(a); output lo = min(a); output hi = max(a); output c = count(a)",
    "let a = f * f; output y = sum(a); output z = mean(a); output lo = min(a); output hi = max(a); output c = count(a)",
    "let a = n * 3; output y = sum(a); output z = mean(a); output lo = min(a); output hi = max(a); output m = math.sum(a)",
    "let a = k + k; output y = sum(a); output z = mean(a); output lo = min(a); output hi = max(a); output c = count(a)",
    "let a = w * -1.0; output y = sum(a); output z = mean(a); output lo = min(a); output hi = max(a); output m = math.sum(a)",
    "output a = any(w * 2.0 > limit); output e = all(w * 2.0 > limit); output g = all(x * 2.0 > limit); output h = all(n > 0)",
    "let a = core.to_float32(w); output y = sum(a); output z = mean(a); output lo = min(a); output m = math.sum(x - w)",
    // Lists of structs, texts in and out.
    "let nets = map(fn(i) = i.price * i.count * (if i.count >= 100 then 0.9 else if i.count >= 10 then 0.95 else 1.0), items)
     output goods = sum(nets); output books = sum(nets & (items.sku == \"book\")); output top = max(nets)
     output weight = sum(map(fn(i) = (i.weight ?? 0.5) * i.count, items))
     output lines = map(fn(i) = {sku: i.sku, net: i.price * i.count, heavy: i.weight}, items)",
    "output said = map(fn(i) = strings.join(i.sku, \"/\", strings.upper(i.sku)), items); output size = sum(strings.length(t))",
    "output last = max(items.on); output first = min(items.on); output late = count(items.on > date\"2026-01-01\")",
    // What is lazy stays so.
    "output y = if limit > 0.0 then sum(x) else if limit > -1.0 then sum(items.price) * limit else 0.0",
    "let rare = sum(map(fn(v) = if v > limit then math.log(v) else v * 0.5, x)); output y = if code == \"CHF\" then rare else 1.0",
    // Dictionaries.
    "output y = lookup(code, rates, 1.0) * sum(items.price); output z = has(dict.get(rates, code)); output s = sum(w)",
    "output day = lookup(3i64, days, \"none\"); output has_it = dict.contains(days, 3i64); output y = count(x)",
    "output y = sum(items.price * lookup(items.sku, rates, 0.5)); output z = count(dict.get(rates, t)); output d = lookup(n, days)",
    // Scalars that may fail, whether there are elements that need them or not.
    "output y = n + 7 // array.size(n)",
    "output y = map(fn(v) = v ?? limit // 0.0, x); output z = sum(map(fn(v) = v + 1 // (array.size(n) - 1), n))",
    // Elements that may fail.
    "output y = sum(n // (n - 7)); output z = sum(items.count)",
    "output y = count(n % (n + 1) > 0)",
    "let q = n // (n - 7); output y = sum(q & (n > 10)); output z = count(q)",
    // Groups.
    "output y = sum(x, into=by); output z = mean(x, into=by); output p = prod(x * 0.01, into=by); output lo = min(x, into=by)",
    "output y = sum(f, into=by); output z = mean(f * f, into=by); output lo = min(f, into=by); output hi = max(f, into=by)",
    "output y = sum(n, into=by); output z = mean(k, into=by); output p = prod(k, into=by); output m = math.sum(n * 2, into=by)",
    "output y = sum(w, into=by); output z = mean(w, into=by); output hi = max(w * w, into=by); output m = math.sum(w, into=by)",
    "output c = count(t, into=by); output a = any(x > limit, into=by); output e = all(w > -1.0, into=by); output d = count(b, into=by)",
    "output a = logical_any(b, into=by); output c = logical_all(b, into=by); output d = logical_any(core.to_bool(w), into=by)",
    "output y = array.expand(sum(x, into=by), over=by); output z = w - array.expand(mean(w, into=by), over=by)",
    "output y = math.softmax(w, over=by); output z = math.softmax(x, over=by); output u = math.softmax(f * 2.0, over=by)",
    "output s = edge.sizes(by); output g = edge.parent_size(by); output e = edge.child_size(by); output a = array.size(sum(x, into=by))",
    "let s = edge.sizes(by); output y = array.expand(s * 2, over=by) + n; output z = sum(s); output m = max(s) ?? 0i64",
    // What is made of groups goes on to elements, and back.
    "let top = max(x, into=by); let e = math.exp(x - array.expand(top, over=by)); let s = sum(e, into=by)
     output share = e / array.expand(s, over=by); output y = sum(s); output z = mean(top); output c = count(top > limit)",
    "let m = mean(w, into=by) ?? 0.0; let v = mean((w - array.expand(m, over=by)) * (w - array.expand(m, over=by)), into=by)
     output y = v; output far = count(w > array.expand(m + math.sqrt(v ?? 0.0), over=by), into=by); output all = sum(v)",
    "output best = max(items.on, into=by); output net = sum(items.price * items.count, into=by); output y = array.expand(count(items.sku == \"book\", into=by), by)",
    "output y = if limit > 0.0 then sum(sum(x, into=by)) else sum(array.expand(max(w, into=by), over=by))",
    "output y = sum(n // (n - 7), into=by); output z = array.expand(7 // sum(k, into=by), over=by)",
];

/// Models that have no plan with loops, and the reason: they always run in sweeps, passes over arrays in blocks.
const SWEPT: &[(&str, &str)] = &[
    ("output y = array.slice(x, 0, 1)", "the operator needs whole arrays"),
    ("output y = math.cum_sum(x)", "the operator is a scan"),
    ("output y = sum(x, into=edge.from_sizes(n))", "edge"),
    ("output y = math.cum_sum(x, over=by)", "the operator is a scan"),
    ("output y = by; output z = sum(x, into=by)", "an input is also an output"),
    ("output y = sum(x + [1.0, 2.0])", "a literal array"),
];

fn evaluate((executor, session): &mut (Executor, Session), inputs: &[Value]) -> Result<Vec<Value>, String> {
    const NAMES: [&str; 13] = ["x", "f", "n", "k", "b", "t", "w", "items", "rates", "days", "code", "limit", "by"];
    let place = |name: &str| NAMES.iter().position(|known| *known == name).expect("an input");
    let given: Vec<Value> = executor.inputs().iter().map(|input| inputs[place(&input.name)].clone()).collect();
    let first = session.evaluate(&given).map_err(|error| error.to_string());
    // What a run leaves to the next one changes nothing.
    assert_eq!(format!("{first:?}"), format!("{:?}", session.evaluate(&given).map_err(|error| error.to_string())));
    first
}

#[test]
fn short_lists_have_the_bits_of_the_reference() {
    let mut random = fastrand::Rng::with_seed(68);
    for text in LOOPED {
        let model = Model::parse(&format!("{INPUTS}{text}")).unwrap_or_else(|error| panic!("{text}: {error}"));
        let listing = model.explain(&Options::default(), Stage::Arrays).unwrap();
        let short = listing.split("Short lists:\n").nth(1).unwrap();
        assert!(short.starts_with("Frame: "), "{text}\n{short}");
        // Plans with loops are compiled at once for the second, and after some runs for the first.
        let options = Options::default();
        let native = options.clone().backend(Backend::Native);
        let mut sessions =
            [&native, &native.clone().row_player(RowPlayer::Native), &options.backend(Backend::Interpreter)]
                .map(|options| model.compile(options).unwrap())
                .map(|executor| (executor.clone(), executor.session()));
        for len in [0, 1, 2, 3, 20, 63, 64, 65, 127, 255, 1_000, 1_025, 0, 1, 5, 21, 32, 62, 64] {
            let inputs = values(&mut random, len);
            let [first, found, expected] = sessions.each_mut().map(|session| evaluate(session, &inputs));
            assert_eq!(format!("{first:?}"), format!("{found:?}"), "{text}, {len}");
            match (&found, &expected) {
                (Ok(found), Ok(expected)) => {
                    for (at, (found, expected)) in found.iter().zip(expected).enumerate() {
                        assert!(found.same(expected), "{text}, {len}, output {at}\n{found}\n{expected}");
                    }
                }
                (found, expected) => assert_eq!(found, expected, "{text}, {len}"),
            }
        }
    }
}

#[test]
fn programs_without_such_a_plan_say_why() {
    for (text, why) in SWEPT {
        let model = Model::parse(&format!("{INPUTS}{text}")).unwrap_or_else(|error| panic!("{text}: {error}"));
        let listing = model.explain(&Options::default(), Stage::Arrays).unwrap();
        let short = listing.split("Short lists:\n").nth(1).unwrap();
        assert!(short.starts_with("no plan with loops") && short.contains(why), "{text}: {short}");
    }
}

#[derive(cembra::Input, Clone)]
struct Place {
    lat: f64,
    lon: f64,
}

/// A list item whose fields have another order than in the model; some fields are not in the model.
#[derive(cembra::Input, Clone)]
struct Item {
    note: String,
    weight: Option<f64>,
    count: i64,
    kept: cembra::Optional<f64>,
    price: f64,
    sku: String,
    place: Place,
}

#[derive(cembra::Input, Clone)]
struct Coupon {
    until: i32,
    percent: f64,
    code: String,
}

#[derive(cembra::Input, Clone)]
struct Request {
    rates: HashMap<String, f64>,
    days: BTreeMap<i64, Option<String>>,
    items: Vec<Item>,
    numbers: Vec<f64>,
    three: [i64; 3],
    coupon: Option<Coupon>,
    code: String,
}

#[derive(cembra::Output, Default, Debug, PartialEq)]
struct Line {
    sku: String,
    net: f64,
    weight: Option<f64>,
}

#[derive(cembra::Output, Default, Debug, PartialEq)]
struct Answer {
    goods: f64,
    weight: f64,
    most: Option<f64>,
    rate: f64,
    day: Option<String>,
    off: f64,
    total: i64,
    far: f64,
    lines: Vec<Line>,
    doubled: Vec<f64>,
}

const REQUEST: &str = "numbers f64
input items: [{sku: text, price: f64, count: i64, weight: f64?, kept: f64?, place: {lon: f64}}]
input coupon: {code: text, percent: f64}?
input rates: dict[text, f64]; input days: dict[i64, text]; input numbers: [f64]; input three: [i64]; input code: text
let nets = items.price * items.count
output goods = sum(nets)
output weight = sum(map(fn(i) = (i.weight ?? 0.25) + (i.kept ?? 0.0), items))
output most = max(nets)
output rate = lookup(code, rates, 1.0)
output day = lookup(2i64, days)
output off = coupon.percent ?? 0.0
output total: i64 = sum(three)
output far = sum(items.place.lon)
output lines = map(fn(i) = {sku: i.sku, net: i.price * i.count, weight: i.weight}, items)
output doubled = (numbers * 2.0) ?? 0.0";

fn request(random: &mut fastrand::Rng, len: usize) -> Request {
    let item = |random: &mut fastrand::Rng| Item {
        note: "a note".to_owned(),
        weight: random.bool().then(|| random.f64()),
        count: random.i64(0..200),
        kept: random.bool().then(|| random.f64()).into(),
        price: random.f64() * 100.0,
        sku: "s".repeat(random.usize(0..30)),
        place: Place { lat: 1.0, lon: random.f64() },
    };
    Request {
        rates: ["CHF", "EUR", "USD"].into_iter().filter(|_| random.bool()).map(|key| (key.to_owned(), 1.5)).collect(),
        days: (0..4).filter(|_| random.bool()).map(|day| (day, (day != 1).then(|| format!("day {day}")))).collect(),
        items: (0..len).map(|_| item(random)).collect(),
        numbers: (0..len).map(|_| random.f64()).collect(),
        three: [1, random.i64(0..9), 3],
        coupon: random.bool().then(|| Coupon { until: 7, percent: random.f64(), code: "c".to_owned() }),
        code: (*random.choice(["CHF", "EUR", "GBP"]).expect("it is right")).to_owned(),
    }
}

fn expected(request: &Request) -> Answer {
    let nets: Vec<f64> = request.items.iter().map(|item| item.price * item.count as f64).collect();
    let weights = request.items.iter().map(|item| item.weight.unwrap_or(0.25) + item.kept.get().unwrap_or(0.0));
    let line = |(item, net): (&Item, &f64)| Line { sku: item.sku.clone(), net: *net, weight: item.weight };
    Answer {
        goods: nets.iter().fold(0.0, |sum, net| sum + net),
        weight: weights.fold(0.0, |sum, weight| sum + weight),
        most: nets.iter().copied().reduce(f64::max),
        rate: request.rates.get(&request.code).copied().unwrap_or(1.0),
        day: request.days.get(&2).cloned().flatten(),
        off: request.coupon.as_ref().map_or(0.0, |coupon| coupon.percent),
        total: request.three.iter().sum(),
        far: request.items.iter().fold(0.0, |sum, item| sum + item.place.lon),
        lines: request.items.iter().zip(&nets).map(line).collect(),
        doubled: request.numbers.iter().map(|number| number * 2.0).collect(),
    }
}

#[test]
fn requests_are_read_where_they_lie() {
    let model = Model::parse(REQUEST).unwrap();
    let mut random = fastrand::Rng::with_seed(7);
    for backend in [Backend::Native, Backend::Interpreter, Backend::Tiered] {
        let mut executor = model.executor::<Request, Answer>(&Options::default().backend(backend)).unwrap();
        let mut kept = Answer::default();
        for round in 0..200 {
            let len = [0, 1, 2, 3, 30, 64][round % 6];
            let request = request(&mut random, len);
            let expected = expected(&request);
            assert_eq!(executor.run(&request).unwrap(), expected, "{backend:?}, {len}");
            executor.run_into(&request, &mut kept).unwrap();
            assert_eq!(kept, expected, "{backend:?}, {len}, kept");
        }
        // With chains, the last place may be another than by hand.
        let long = request(&mut random, 3_000);
        let answer = executor.run(&long).unwrap();
        assert_eq!(answer.lines, expected(&long).lines);
        assert!((answer.goods - expected(&long).goods).abs() < 1e-6 * answer.goods.abs());
        executor.run_into(&long, &mut kept).unwrap();
        assert_eq!(kept, answer);
    }
}

/// Copies of fields of all kinds, small enough to run under Miri, which checks accesses to memory. Machine code does
/// not run under Miri; on a target without a code generator, the plan is interpreted.
#[test]
fn fields_of_every_kind_are_moved() {
    let model = Model::parse(REQUEST).unwrap();
    // It takes minutes there.
    let options = Options::default().limits(Limits::default().compile_time(Duration::from_secs(3600)));
    let mut executor = model.executor::<Request, Answer>(&options).unwrap();
    let mut random = fastrand::Rng::with_seed(68);
    let mut kept = Answer::default();
    for len in [2, 0, 1, 3] {
        let request = request(&mut random, len);
        let expected = expected(&request);
        assert_eq!(executor.run(&request).unwrap(), expected, "{len}");
        executor.run_into(&request, &mut kept).unwrap();
        assert_eq!(kept, expected, "{len}, kept");
    }
    let mut by_json = model.json_executor(&options).unwrap();
    let mut answer = String::new();
    for (items, goods, lines) in [
        (
            r#"{"sku": "a", "price": 2.5, "count": 4, "kept": 1, "place": {"lon": 1}, "note": ["\u0041"]}"#,
            "10.0",
            r#"{"sku":"a","net":10.0,"weight":null}"#,
        ),
        ("", "0.0", ""),
    ] {
        let text = format!(
            r#"{{"items": [{items}], "coupon": {{"code": "c\n", "percent": 5}}, "rates": {{"EUR": 2, "CHF": 1}}, "days": {{"2": "x"}},
                "numbers": [1, 2.5], "three": [1, 2, 3], "code": "EUR"}}"#
        );
        by_json.run_into(&text, &mut answer).unwrap();
        assert!(answer.contains(&format!("\"goods\":{goods},")), "{answer}");
        assert!(answer.ends_with(&format!("\"lines\":[{lines}],\"doubled\":[2.0,5.0]}}")), "{answer}");
        assert!(answer.contains("\"rate\":2.0,\"day\":\"x\",\"off\":5.0,\"total\":6,"), "{answer}");
    }
    assert_eq!(by_json.runs_by_value(), 0);
}

/// Sums of more than 64 elements are added in 64 partial sums, in plans with loops too.
#[test]
fn longer_requests_have_the_bits_of_the_reference() {
    let model = Model::parse(REQUEST).unwrap();
    let executor = |backend| model.executor::<Request, Answer>(&Options::default().backend(backend)).unwrap();
    let [mut native, mut reference] = [Backend::Native, Backend::Interpreter].map(executor);
    let mut random = fastrand::Rng::with_seed(9);
    for len in [63, 64, 65, 127, 128, 129, 255, 340, 341, 500, 511, 512, 1_000, 1_024, 66_000] {
        let mut request = request(&mut random, len);
        request.numbers.truncate(1_000 - len.min(1_000));
        assert_eq!(native.run(&request).unwrap(), reference.run(&request).unwrap(), "{len}");
    }
}

#[test]
fn fields_are_matched_by_name_and_misfits_say_which() {
    #[derive(cembra::Input)]
    struct Other {
        items: Vec<Place>,
    }
    let told = |text: &str| {
        let made = Model::parse(text).unwrap().executor::<Other, f64>(&Options::default());
        made.map(|_| ()).unwrap_err().to_string()
    };
    assert_eq!(
        told("input items: [{lat: f64, alt: f64}]; output y: f64 = sum(items.alt)"),
        "input `items.alt` is f64, but its struct has no field `alt`; write `#[cembra(rename = \"alt\")]` to give a field that name; the struct has lat, lon"
    );
    assert_eq!(
        told("input items: [{lat: i64}]; output y: f64 = sum(items.lat) * 1.0"),
        "input `items.lat` is i64, but its field is f64"
    );
}

#[test]
fn memory_of_a_large_run_is_counted_and_given_back_after_small_ones() {
    let text = "input x: [f64]; input t: text; output y = math.cum_sum(x); output z = strings.upper(t)";
    let mut session = Model::parse(text).unwrap().compile(&Options::default()).unwrap().session();
    let inputs = |elements: usize, letters: usize| {
        let elements = (0..elements).map(|_| Some(ScalarValue::from(1.0)));
        [Value::from(Array::from_scalars(Scalar::Float64, elements)), Value::from("a".repeat(letters).as_str())]
    };
    let mut outputs = Vec::new();
    session.evaluate_into(&inputs(10, 10), &mut outputs).unwrap();
    let before = session.memory_bytes();
    assert!(before < 1 << 20, "{before}");
    for (elements, letters) in [(1_000_000, 10), (10, 8 << 20)] {
        // The memory of an output is the session's once the next run has taken its place.
        session.evaluate_into(&inputs(elements, letters), &mut outputs).unwrap();
        session.evaluate_into(&inputs(10, 10), &mut outputs).unwrap();
        let large = session.memory_bytes();
        assert!(large > 8_000_000, "{large}");
        for _ in 0..40 {
            session.evaluate_into(&inputs(10, 10), &mut outputs).unwrap();
        }
        let after = session.memory_bytes();
        assert!(after < 2 * before, "{before}, {after} after {elements} elements and {letters} letters");
    }
}

#[derive(cembra::Input)]
struct Order {
    items: Vec<Named>,
}

#[derive(cembra::Input)]
struct Named {
    sku: String,
}

#[test]
fn errors_that_need_no_element_are_told_of_no_elements() {
    let limits = Limits::default().arena_bytes(0);
    let unfolded = &["fold", "optimise"][..];
    for (value, passes, code) in [
        ("0i64 // 0i64", &[][..], "div-by-zero"),
        ("0i64 // 0i64", unfolded, "div-by-zero"),
        ("strings.length(strings.join(\"a\", \"b\"))", unfolded, "arena-limit"),
    ] {
        let text = format!("input items: [{{sku: text}}]; output y = map(fn(i) = {value}, items)");
        let model = Model::parse(&text).unwrap();
        let options = Options::default().limits(limits);
        let options = passes.iter().fold(options, |options, pass| options.without_pass(pass));
        let native = options.clone().backend(Backend::Native).row_player(RowPlayer::Native);
        for options in [&native, &options.backend(Backend::Interpreter)] {
            let mut structs = model.executor::<Order, Vec<Option<i64>>>(options).unwrap();
            let mut json = model.json_executor(options).unwrap();
            let answers = [
                structs.run(&Order { items: Vec::new() }).map(|found| format!("{found:?}")),
                json.run("{\"items\": []}"),
            ];
            let codes = answers.map(|answer| answer.map_err(|error| error.code()));
            assert_eq!(codes, [Err(code), Err(code)], "{text}, {passes:?}");
        }
    }
}
