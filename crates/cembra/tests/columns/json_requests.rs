//! Tests the JSON executor on requests: answers and errors are those of the interpreter, for which each value is read
//! and written separately.

use cembra::json::{Json, JsonExecutor, JsonRow, JsonRows};
use cembra::{Backend, Model, Options, Pool, RunOptions};
use serde_json::{Map, Value as Object, json};
use std::fmt::Write;

const MODEL: &str = "numbers f64
input account: {id: text, since: date, credit: f64?}
input coupon: {code: text, percent: f64, deep: {of: i64}}?
input items: [{sku: text, price: f64, count: i64, weight: f64?, kind: bool}]
input marks: [f64?]; input names: [text?]
input order: {note: text?, lines: [{n: i32}]}
input rates: dict[text, f64]; input days: dict[i32, text]
input code: text; input at: timestamp; input small: f32; input flag: bool?; input big: u64
let nets = items.price * items.count
output total = sum(nets) * lookup(code, rates, 1.0)
output off = (coupon.percent ?? 0.0) + coupon.deep.of ?? 7.0
output credit = account.credit
output \"account\" = account
output coupon_code = coupon.code
output lines = map(fn(i) = {sku: i.sku, net: i.price * i.count, weight: i.weight, kind: i.kind}, items)
output \"marks\" = marks * 2.0
output \"names\" = map(fn(n) = strings.join(n, \"\\\"\"), names)
output note = order.note ?? \"none\"
output n: i64 = sum(map(fn(l) = l.n, order.lines))
output day = lookup(2, days)
output hour = timestamp.hour(at)
output \"small\" = small * small
output \"flag\" = flag
output \"big\" = big
output ratio = total / off";

fn request(random: &mut fastrand::Rng) -> Object {
    let words = ["", "a", "b\"ook", "na\u{ef}ve", "line\nbreak", "\u{1F600}", "x\\y", "plain words that are longer"];
    let word = |random: &mut fastrand::Rng| words[random.usize(0..words.len())];
    let number = |random: &mut fastrand::Rng| match random.u8(0..9) {
        0 => json!("NaN"),
        1 => json!(random.i32(-9..9)),
        2 => json!(1e300),
        3 => json!(-0.0),
        _ => json!(random.f64() * 1000.0),
    };
    let maybe = |random: &mut fastrand::Rng, value: Object| if random.bool() { value } else { Object::Null };
    let items: Vec<Object> = (0..random.usize(0..6))
        .map(|_| {
            let mut item = json!({"sku": word(random), "price": number(random), "count": random.i32(0..9), "kind": random.bool(),
                "other": [1, {"x": []}]});
            let weight = number(random);
            if random.bool() {
                item["weight"] = maybe(random, weight);
            }
            item
        })
        .collect();
    let marks: Vec<Object> = (0..random.usize(0..70))
        .map(|_| {
            let one = number(random);
            maybe(random, one)
        })
        .collect();
    let names: Vec<Object> = (0..random.usize(0..4))
        .map(|_| {
            let one = json!(word(random));
            maybe(random, one)
        })
        .collect();
    let coupon = json!({"percent": number(random), "code": word(random), "deep": {"of": 3}});
    let mut rates = Map::new();
    // One pass takes no escapes in keys.
    let has_escapes = random.u8(0..8) == 0;
    for key in words {
        if random.bool() && (has_escapes || !key.contains(['"', '\n', '\\'])) {
            rates.insert(key.to_owned(), number(random));
        }
    }
    let mut request = json!({
        "account": {"id": word(random), "since": "2020-02-29", "credit": number(random)},
        "items": items, "marks": marks, "names": names, "rates": rates,
        "days": {"1": "one", "2": null, "-7": "x"},
        "order": {"lines": [{"n": 1}, {"n": random.i32(-5..5)}]},
        "code": word(random), "at": "2026-11-28T10:00:00Z", "small": 0.1, "big": u64::MAX, "unknown": {"deep": [[[]]]},
    });
    let object = request.as_object_mut().expect("an object");
    if random.bool() {
        object.insert("coupon".to_owned(), maybe(random, coupon));
    }
    if random.bool() {
        object.insert("flag".to_owned(), json!(random.bool()));
    }
    if random.bool() {
        object["order"]["note"] = json!(word(random));
    }
    request
}

fn executors(text: &str) -> [JsonExecutor; 2] {
    let model = Model::parse(text).expect("a model");
    let executor = |backend| model.json_executor(&Options::default().backend(backend)).expect("an executor");
    [Backend::Native, Backend::Interpreter].map(executor)
}

/// Returns the JSON text with a line break and a space after each comma, colon and opening bracket.
fn spaced(text: &str) -> String {
    let (mut made, mut is_inside, mut is_escaped) = (String::new(), false, false);
    for character in text.chars() {
        is_inside ^= character == '"' && !is_escaped;
        is_escaped = character == '\\' && !is_escaped;
        made.push(character);
        if !is_inside && matches!(character, ',' | ':' | '[' | '{') {
            made.push_str("\n ");
        }
    }
    made
}

#[test]
fn answers_are_those_of_values_one_by_one() {
    let mut random = fastrand::Rng::with_seed(5);
    let [mut pass, mut slow] = executors(MODEL);
    let model = Model::parse(MODEL).expect("a model");
    let mut known =
        model.executor_between::<_, (), Map<String, Object>>(&JsonRows, &Json, &Options::default()).unwrap();
    let mut kept = String::new();
    for round in 0..600 {
        let mut text = request(&mut random).to_string();
        if round % 3 == 0 {
            text = spaced(&text);
        }
        let answer = pass.run(&text).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(answer, slow.run(&text).unwrap(), "{text}");
        pass.run_into(&text, &mut kept).unwrap();
        assert_eq!(answer, kept);
        let mut expected = Map::new();
        known.listen(&JsonRow::parse(text.as_str()).unwrap(), &mut expected).unwrap();
        // Objects inside of others may have their keys in another order there.
        let answer = JsonRow::parse(answer.as_str()).unwrap();
        assert_eq!(answer.fields().count(), expected.len());
        for (name, value) in expected.iter().filter(|(_, value)| !value.to_string().contains('{')) {
            assert_eq!(answer.get(name).unwrap().as_str(), value.to_string(), "{text}");
        }
    }
    // Each request is run twice, and one of eight may have escapes in keys.
    let by_value = pass.runs_by_value();
    assert!((1..250).contains(&by_value) && slow.runs_by_value() == 600, "{by_value}");
}

#[test]
fn what_is_wrong_is_said_alike() {
    let mut random = fastrand::Rng::with_seed(6);
    let [mut pass, mut slow] = executors(MODEL);
    let good = request(&mut random);
    let good_answer = pass.run(&good.to_string()).unwrap();
    assert_eq!(pass.runs_by_value(), 0);
    let mut texts: Vec<String> = vec![
        String::new(),
        "[]".into(),
        "{".into(),
        "{}".into(),
        "7".into(),
        "{\"a\": 1,}".into(),
        "{\"code\": \"\\uD800\"}".into(),
        "[".repeat(100_000),
        format!("{{\"unknown\": {}1{}}}", "[".repeat(10_000), "]".repeat(10_000)),
    ];
    for (path, value) in [
        ("/account/since", json!("2020-02-30")),
        ("/account/id", json!(null)),
        ("/account", json!([])),
        ("/items", json!(null)),
        ("/items", json!([{"sku": "a", "price": 1, "count": 1.5, "kind": true}])),
        ("/items", json!([{"sku": "a"}])),
        ("/items", json!([7])),
        ("/marks", json!([1, "x"])),
        ("/rates", json!({"a": "b"})),
        ("/rates", json!([1])),
        ("/days", json!({"x": "y"})),
        ("/days", json!({"1": "y", "01": "z"})),
        ("/code", json!(1)),
        ("/big", json!(-1)),
        ("/at", json!("now")),
        ("/order", json!({})),
    ] {
        let mut wrong = good.clone();
        *wrong.pointer_mut(path).unwrap() = value;
        texts.push(wrong.to_string());
    }
    // A key that is there twice, which the model reads, and one that it does not.
    let behind = |more: &str| good.to_string().replacen('{', &format!("{{{more},"), 1);
    texts.push(behind("\"code\": \"twice\""));
    texts.push(good.to_string().replacen("\"id\":", "\"id\": \"x\", \"id\":", 1));
    for text in &texts {
        let [found, expected] = [pass.run(text), slow.run(text)].map(|made| made.map_err(|error| error.to_string()));
        assert_eq!(found, expected, "{text:.300}");
        assert!(found.is_err(), "{text:.300}");
        // A run that failed leaves nothing behind.
        assert_eq!(pass.run(&good.to_string()).unwrap(), good_answer);
    }
    assert_eq!(pass.runs_by_value(), texts.len() as u64);
    let ignored = behind("\"more\": 1, \"more\": 2");
    assert_eq!(pass.run(&ignored).unwrap(), good_answer);
    assert_eq!(slow.run(&ignored).unwrap(), good_answer);
}

#[test]
fn numbers_are_rounded_once_however_many_digits_they_have() {
    let model = Model::parse("input x: f64, xs: [f64]; output y = x; output ys = xs * 1.0").unwrap();
    let mut run = model.json_executor(&Options::default()).unwrap();
    let mut random = fastrand::Rng::with_seed(68);
    let mut numbers: Vec<String> =
        ["-0", "0.1", "999999999999999", "0.00000000000001", "9007199254740993", "1e22", "1e-7", "-12.5E3"]
            .map(String::from)
            .into();
    for digits in 1..20 {
        for _ in 0..50 {
            let (count, behind) = (random.u64(..10_u64.pow(digits)), random.usize(0..=digits as usize));
            let text = format!("{count:0width$}", width = digits as usize);
            let (whole, part) = text.split_at(text.len() - behind);
            let whole = whole.trim_start_matches('0');
            let sign = if random.bool() { "-" } else { "" };
            let (whole, point) = (if whole.is_empty() { "0" } else { whole }, if part.is_empty() { "" } else { "." });
            numbers.push(format!("{sign}{whole}{point}{part}"));
        }
    }
    for number in numbers {
        let answer = run.run(&format!("{{\"x\": {number}, \"xs\": [1, {number} , 2.5]}}")).unwrap();
        // Answers have the shortest digits that read back as the number.
        let expected = json!(number.parse::<f64>().unwrap());
        assert_eq!(answer, format!("{{\"y\":{expected},\"ys\":[1.0,{expected},2.5]}}"), "{number}");
    }
    assert_eq!(run.runs_by_value(), 0);
}

#[test]
fn models_of_scalars_and_long_lists_answer_too() {
    let [mut pass, mut slow] = executors(
        "input x: f64; input name: text?; input p: {a: i32, b: (text, f64?)}; output y = x * 2.0; output \"p\" = p; output say = strings.upper(name)",
    );
    for text in [
        r#"{"x": 0.5, "name": "ann", "p": {"a": 1, "b": ["t", null]}}"#,
        r#"{"p": {"b": ["\u00e9", 2], "a": -1}, "x": 1e400, "name": null}"#,
        r#"{"p": {"b": ["x", 2], "a": -1}, "x": 3}"#,
    ] {
        let [found, expected] = [pass.run(text), slow.run(text)].map(|made| made.map_err(|error| error.to_string()));
        assert_eq!(found, expected, "{text}");
    }
    let [mut pass, mut slow] = executors("input x: [i64]; output y = sum(x); output n = x + 1");
    for len in [0, 1, 64, 1_024, 1_025, 5_000] {
        let mut text = "{\"x\": [".to_owned();
        for at in 0..len {
            write!(text, "{}{}", if at > 0 { "," } else { "" }, at * 7 % 1000).unwrap();
        }
        text.push_str("]}");
        assert_eq!(pass.run(&text).unwrap(), slow.run(&text).unwrap(), "{len}");
    }
    assert_eq!(
        executors("output y = 1.5").map(|mut run| run.run("{\"z\": 1}").unwrap()),
        ["{\"y\":1.5}", "{\"y\":1.5}"]
    );
}

#[test]
fn executors_of_json_fit_pools_and_have_options() {
    let model =
        Model::parse("input n: i64; input x: [i64]; output y = sum(x) + seq.reduce(fn(s, i) = s + i, seq.range(n), 0)")
            .unwrap();
    let pool = Pool::new(model.json_executor(&Options::default()).unwrap());
    let text = "{\"n\": 4, \"x\": [1, 2]}";
    assert_eq!(pool.with(|run| run.run(text)).unwrap(), "{\"y\":9}");
    let token = cembra::Cancellation::new();
    token.cancel();
    let cancelled = pool.with(|run| {
        run.set_run_options(&RunOptions::new().cancellation(token));
        run.run(text)
    });
    assert_eq!(cancelled.unwrap_err().code(), "cancelled");
    assert_eq!(pool.with(|run| run.run(text)).unwrap(), "{\"y\":9}");
}

#[test]
fn executors_of_serde_rows_fit_pools_and_have_options() {
    let model = Model::parse("input n: i64; input x: [i64]; output y: i64 = sum(x) + n").expect("a model");
    let pool = Pool::new(model.executor_for_rows::<i64>(&Options::default()).unwrap());
    let row = json!({"n": 4, "x": [1, 2]});
    let mut kept = 0;
    pool.with(|run| run.run_into(&row, &mut kept)).unwrap();
    assert_eq!(kept, 7);
    let token = cembra::Cancellation::new();
    token.cancel();
    let cancelled = pool.with(|run| {
        run.set_cancellation(Some(token));
        run.run_into(&row, &mut kept)
    });
    assert_eq!((cancelled.unwrap_err().code(), kept), ("cancelled", 7));
    assert_eq!(pool.with(|run| run.run(&row)).unwrap(), 7);
}
