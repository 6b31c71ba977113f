//! Tests batches of requests, with dictionaries as columns, and structs and lists of structs as outputs. Rows that are
//! evaluated together must have the results of single evaluations.

use crate::lists::{SIZES, assert_same, batch, number};
use cembra::columns::{Bitmap, InputColumn, OutputColumn};
use cembra::values::parse_type;
use cembra::{Backend, Error, Model, OnError, Optional, Options, RunOptions, Scalar, ScalarValue, Value};

const KEYS: [&str; 12] =
    ["", "CH", "DE", "FR", "a key that is longer than a view has room for", "a", "b", "c", "d", "e", "f", "g"];

/// Writes random expressions on the items, dictionaries and scalars that [`HEAD`] declares.
struct Writer(fastrand::Rng);

const HEAD: &str = "
    input items: [{sku: text, kind: text?, price: f64, count: i64, weight: f64?}]
    input rates: dict[text, f64]
    input names: dict[i64, text]
    input currency: text
    input coupon: text?
    input k: f64
";

impl Writer {
    fn list(&mut self, depth: usize) -> String {
        if depth == 0 {
            return ["items.price", "items.weight", "to_float64(items.count)"][self.0.usize(..3)].to_owned();
        }
        let (a, s) = (self.list(depth - 1), self.scalar(depth - 1));
        match self.0.usize(..8) {
            0 => "lookup(items.sku, rates, 1.0)".to_owned(),
            1 => "dict.get(rates, items.kind)".to_owned(),
            2 => format!("({a} * {s})"),
            3 => format!("where(items.sku in rates, {a}, {s})"),
            4 => format!("({a} & has(dict.get(names, items.count)))"),
            5 => "map(fn(i) = i.price * i.count + (i.weight ?? 0.5), items)".to_owned(),
            6 => format!("({a} // {s})"),
            _ => format!("({a} ?? lookup(items.kind, rates, 2.0))"),
        }
    }

    fn scalar(&mut self, depth: usize) -> String {
        if depth == 0 {
            return ["k", "0.5", "(k + 1.0)"][self.0.usize(..3)].to_owned();
        }
        let (a, s) = (self.list(depth - 1), self.scalar(depth - 1));
        match self.0.usize(..8) {
            0..3 => format!("sum({a})"),
            3 => "lookup(currency, rates, 1.0)".to_owned(),
            4 => "(dict.get(rates, coupon) ?? k)".to_owned(),
            5 => format!("(if currency in rates then {s} else sum({a}))"),
            6 => "lookup(\"CH\", rates, 1.08)".to_owned(),
            _ => format!("(if k > 0.5 then {s} // k else dict.get(rates, \"DE\") ?? {s})"),
        }
    }

    fn text(&mut self) -> String {
        let (a, b, s, t) = (self.list(2), self.list(1), self.scalar(2), self.scalar(1));
        format!(
            "{HEAD}
            output lines = map(fn(i, a, b) = {{sku: i.sku, of: {{net: a * i.count, kind: i.kind}}, b: b}}, items, {a}, {b})
            output sums = {{s: {s}, of: {{t: {t}, name: dict.get(names, 2)}}}}
            output bonus = {{x: {t}}} & (k > 0.25)
            output all = items
            output total = {s}"
        )
    }
}

/// The inputs of some rows, as columns and as values.
#[derive(Default)]
struct Rows {
    points: Vec<i64>,
    sku: Vec<&'static str>,
    kind: Vec<Option<&'static str>>,
    price: Vec<f64>,
    count: Vec<i64>,
    weight: Vec<Optional<f64>>,
    rate_points: Vec<i64>,
    rate_keys: Vec<&'static str>,
    rates: Vec<Optional<f64>>,
    name_points: Vec<i64>,
    name_keys: Vec<i64>,
    names: Vec<&'static str>,
    currency: Vec<&'static str>,
    coupon: Vec<Option<&'static str>>,
    k: Vec<f64>,
    items: Vec<Value>,
    rate_maps: Vec<Value>,
    name_maps: Vec<Value>,
}

fn text(value: &str) -> ScalarValue {
    ScalarValue::Text(value.into())
}

impl Rows {
    /// Random rows, `count` of them. With `are_shared` all have the dictionaries of the first row; with `may_fail` a dictionary may have a key
    /// twice, and `k` may be 0.
    fn random(rng: &mut fastrand::Rng, count: usize, are_shared: bool, may_fail: bool) -> Rows {
        let of_item =
            parse_type("{sku: text, kind: text?, price: f64, count: i64, weight: f64?}").expect("it is right");
        let cembra::QType::Tuple(fields) = &of_item else { panic!("a struct") };
        let mut rows = Rows { points: vec![0], rate_points: vec![0], name_points: vec![0], ..Rows::default() };
        for row in 0..count {
            let mut elements = Vec::new();
            for _ in 0..*rng.choice(&SIZES).expect("it is right") {
                let (sku, kind) = (KEYS[rng.usize(..12)], (rng.usize(..4) > 0).then(|| KEYS[rng.usize(..12)]));
                let (price, count) = (number(rng), rng.i64(-3..9));
                let weight = (rng.usize(..4) > 0).then(|| number(rng));
                elements.push(Value::Tuple(fields.with(vec![
                    Value::from(sku),
                    Value::optional(Scalar::Text, kind.map(text)),
                    Value::from(price),
                    Value::from(count),
                    Value::from(weight),
                ])));
                rows.sku.push(sku);
                rows.kind.push(kind);
                rows.price.push(price);
                rows.count.push(count);
                rows.weight.push(weight.into());
            }
            rows.items.push(Value::list(&of_item, elements).expect("it is right"));
            rows.points.push(rows.sku.len() as i64);
            if row == 0 || !are_shared {
                let mut keys = KEYS;
                rng.shuffle(&mut keys);
                let mut keys = keys[..rng.usize(0..=12)].to_vec();
                if may_fail && keys.len() > 1 && rng.usize(..10) == 0 {
                    *keys.last_mut().expect("it is right") = keys[0];
                }
                let entries: Vec<_> =
                    keys.iter().map(|key| (*key, (rng.usize(..4) > 0).then(|| number(rng)))).collect();
                rows.rate_keys.extend(&keys);
                rows.rates.extend(entries.iter().map(|(_, rate)| Optional::from(*rate)));
                let entries = entries.into_iter().map(|(key, rate)| (text(key), rate.map(ScalarValue::Float64)));
                rows.rate_maps.push(Value::map(Scalar::Text, Scalar::Float64, entries).expect("it is right"));
                let mut numbers: Vec<i64> = (-3..20).collect();
                rng.shuffle(&mut numbers);
                numbers.truncate(rng.usize(..20));
                let names: Vec<&str> = numbers.iter().map(|_| KEYS[rng.usize(..12)]).collect();
                let entries =
                    numbers.iter().zip(&names).map(|(key, name)| (ScalarValue::Int64(*key), Some(text(name))));
                rows.name_maps.push(Value::map(Scalar::Int64, Scalar::Text, entries).expect("it is right"));
                rows.name_keys.extend(numbers);
                rows.names.extend(names);
            } else {
                rows.rate_maps.push(rows.rate_maps[0].clone());
                rows.name_maps.push(rows.name_maps[0].clone());
            }
            rows.rate_points.push(rows.rate_keys.len() as i64);
            rows.name_points.push(rows.name_keys.len() as i64);
            rows.currency.push(KEYS[rng.usize(..12)]);
            rows.coupon.push((rng.usize(..3) > 0).then(|| KEYS[rng.usize(..12)]));
            rows.k.push(if may_fail && rng.usize(..12) == 0 { 0.0 } else { number(rng) });
        }
        rows
    }

    fn currencies(&self) -> [Vec<Value>; 3] {
        let coupon = |coupon: &Option<&str>| Value::optional(Scalar::Text, coupon.map(text));
        [
            self.currency.iter().map(|currency| Value::from(*currency)).collect(),
            self.coupon.iter().map(coupon).collect(),
            self.k.iter().map(|k| Value::from(*k)).collect(),
        ]
    }
}

/// The way in which a run gets its inputs: as columns, as values per row, or as one value for all rows.
#[derive(Clone, Copy, PartialEq)]
enum Given {
    Columns,
    Values,
    Shared,
}

type Made = (Vec<OutputColumn>, Vec<usize>, Vec<String>, usize);

fn run(model: &Model, options: &Options, on_error: OnError, rows: &Rows, given: Given) -> Result<Made, Error> {
    let batch = model.batch(options)?;
    let bits = |present: &[bool]| -> Vec<u8> {
        present.chunks(8).map(|bits| bits.iter().rev().fold(0, |all, bit| all << 1 | u8::from(*bit))).collect()
    };
    fn texts(all: &[Option<&'static str>]) -> Vec<&'static str> {
        all.iter().map(|text| text.unwrap_or_default()).collect()
    }
    let (kinds, coupons) = (texts(&rows.kind), texts(&rows.coupon));
    let kind_bits = bits(&rows.kind.iter().map(Option::is_some).collect::<Vec<_>>());
    let coupon_bits = bits(&rows.coupon.iter().map(Option::is_some).collect::<Vec<_>>());
    let of_items = [
        InputColumn::texts(&rows.sku),
        InputColumn::texts(&kinds).present(Bitmap::new(&kind_bits, 0, kinds.len()).expect("it is right")),
        InputColumn::values(&rows.price),
        InputColumn::values(&rows.count),
        InputColumn::optionals(&rows.weight),
    ];
    let of_items = of_items.each_ref().map(|elements| InputColumn::lists(&rows.points[..], elements));
    let of_rates = [InputColumn::texts(&rows.rate_keys), InputColumn::optionals(&rows.rates)];
    let of_rates = of_rates.each_ref().map(|elements| InputColumn::lists(&rows.rate_points[..], elements));
    let of_names = [InputColumn::values(&rows.name_keys), InputColumn::texts(&rows.names)];
    let of_names = of_names.each_ref().map(|elements| InputColumn::lists(&rows.name_points[..], elements));
    let [currencies, coupon_values, ks] = rows.currencies();
    let column = |name: &str| match (name, given) {
        ("rates", Given::Shared) => InputColumn::shared(&rows.rate_maps[0]),
        ("names", Given::Shared) => InputColumn::shared(&rows.name_maps[0]),
        ("items", Given::Values) => InputColumn::any(&rows.items),
        ("rates", Given::Values) => InputColumn::any(&rows.rate_maps),
        ("names", Given::Values) => InputColumn::any(&rows.name_maps),
        ("currency", Given::Values) => InputColumn::any(&currencies),
        ("coupon", Given::Values) => InputColumn::any(&coupon_values),
        ("k", Given::Values) => InputColumn::any(&ks),
        ("items", _) => InputColumn::structs(&of_items),
        ("rates", _) => InputColumn::structs(&of_rates),
        ("names", _) => InputColumn::structs(&of_names),
        ("currency", _) => InputColumn::texts(&rows.currency),
        ("coupon", _) => {
            InputColumn::texts(&coupons).present(Bitmap::new(&coupon_bits, 0, coupons.len()).expect("it is right"))
        }
        (_, _) => InputColumn::values(&rows.k),
    };
    let columns: Vec<_> = batch.inputs().iter().map(|input| column(&input.name)).collect();
    let run = RunOptions::new().rows(rows.k.len()).on_error(on_error);
    let made = batch.run_with(&run, &columns)?;
    let errors = made.failures.iter().map(|one| one.error.message()).collect();
    Ok((made.columns, made.failed, errors, made.row_by_row))
}

#[test]
fn rows_together_give_what_rows_one_by_one_give() {
    let interpreted = Options::default().backend(Backend::Interpreter);
    let (mut together, mut failed) = (0, 0);
    for seed in 0..60 {
        let mut writer = Writer(fastrand::Rng::with_seed(seed));
        let text = writer.text();
        let model = Model::parse(&text).unwrap_or_else(|error| panic!("{text}\n{error}"));
        let rng = &mut writer.0;
        let (count, are_shared, may_fail) = (rng.usize(1..40), rng.bool(), rng.bool());
        let rows = Rows::random(rng, count, are_shared, may_fail);
        assert_eq!(model.batch(&Options::default()).unwrap().row_by_row().map(ToString::to_string), None, "{text}");
        let found = run(
            &model,
            &Options::default(),
            OnError::Fail,
            &rows,
            if are_shared { Given::Shared } else { Given::Columns },
        );
        failed += usize::from(found.is_err());
        together += usize::from(found.as_ref().is_ok_and(|made| made.3 == 0));
        let only = |made: Result<Made, Error>| made.map(|made| made.0);
        let found = only(found);
        if !are_shared {
            assert_same(&text, &found, &only(run(&model, &interpreted, OnError::Fail, &rows, Given::Columns)));
        }
        assert_same(&text, &found, &only(run(&model, &interpreted, OnError::Fail, &rows, Given::Values)));
        let given = if are_shared { Given::Shared } else { Given::Columns };
        let (a, a_failed, a_errors, _) = run(&model, &Options::default(), OnError::Missing, &rows, given).unwrap();
        let (b, b_failed, b_errors, _) = run(&model, &interpreted, OnError::Missing, &rows, Given::Values).unwrap();
        assert_eq!((a_failed, a_errors), (b_failed, b_errors), "{text}");
        assert_same(&text, &Ok(a), &Ok(b));
    }
    // Neither is rare, or the test says little.
    assert!(together > 25 && failed > 5, "{together} {failed}");
}

#[test]
fn what_a_model_makes_of_structs_are_columns() {
    let batch = batch(
        "input items: [{sku: text, price: f64}]; input rates: dict[text, f64]
         output lines = map(fn(i, r) = {sku: i.sku, net: i.price * r}, items, lookup(items.sku, rates, 1.0))
         output first = {price: max(items.price), of: {count: count(items.price)}}",
    );
    assert_eq!(batch.row_by_row().map(ToString::to_string), None);
    let elements = [InputColumn::texts(&["a", "b", "a"]), InputColumn::values(&[1.0, 2.0, 4.0])];
    let items = elements.each_ref().map(|of| InputColumn::lists(&[0_i64, 2, 2, 3][..], of));
    let entries = [InputColumn::texts(&["a", "a", "b"]), InputColumn::values(&[0.5, 3.0, 5.0])];
    let rates = entries.each_ref().map(|of| InputColumn::lists(&[0_i64, 1, 1, 3][..], of));
    let made = batch.run(&[InputColumn::structs(&items), InputColumn::structs(&rates)]).unwrap();
    let lines = made[0].structs().unwrap();
    let (points, nets) = lines[1].lists().unwrap();
    assert_eq!((points, nets.values::<f64>()), (&[0, 2, 2, 3][..], Some(&[0.5, 2.0, 12.0][..])));
    let first = made[1].structs().unwrap();
    assert_eq!(first[1].values::<i64>(), Some(&[2, 0, 1][..]));
    let row = |row| [made[0].value(row), made[1].value(row)].map(|value| value.unwrap().to_string()).join(" ");
    assert_eq!(
        [row(0), row(1), row(2)],
        [
            "[{sku: 'a', net: f64?{0.5}}, {sku: 'b', net: f64?{2}}] {price: f64?{2}, of: {count: i64{2}}}",
            "[] {price: f64?{NA}, of: {count: i64{0}}}",
            "[{sku: 'a', net: f64?{12}}] {price: f64?{4}, of: {count: i64{1}}}",
        ]
    );
}

#[test]
fn what_only_a_row_can_tell_is_asked_of_rows() {
    let (xs, ys) = (InputColumn::values(&[1.0, 2.0, 3.0, 4.0]), InputColumn::values(&[5.0, 6.0, 7.0, 8.0]));
    let (xs, ys) = (InputColumn::lists(&[0_i64, 2, 3, 4][..], &xs), InputColumn::lists(&[0_i64, 1, 3, 4][..], &ys));
    // Fields of a list of structs that a model makes are as long as each other.
    let pairs = batch("input xs, ys: [f64]; output ps = map(fn(a, b) = {x: a, y: b}, xs, ys)");
    assert_eq!(pairs.row_by_row().map(ToString::to_string), None);
    let options = RunOptions::new().on_error(OnError::Missing);
    let made = pairs.run_with(&options, &[xs, ys]).unwrap();
    assert_eq!((made.failed, made.columns[0].presence()), (vec![0, 1], Some(&[0b100][..])));
    assert_eq!(made.columns[0].value(2).unwrap().to_string(), "[{x: f64?{4}, y: f64?{8}}]");
    assert_eq!(made.columns[0].value(0), Some(Value::Nothing));
    // Keys of each row, whose values all rows share.
    let keys = InputColumn::values(&[1_i64, 2, 2, 1, 3, 3]);
    let keys = InputColumn::lists(&[0_i64, 2, 4, 6][..], &keys);
    let shared = Value::from(cembra::Array::from_scalars(Scalar::Float64, [10.0, 20.0].map(|rate| Some(rate.into()))));
    let of_rows = batch("input keys: [i64]; input rates: [f64]; input k: i64; dict.get(dict.make(keys, rates), k)");
    assert_eq!(of_rows.row_by_row().map(ToString::to_string), None);
    let wanted = [2_i64, 1, 3];
    let columns = of_rows.inputs().iter().map(|input| match &*input.name {
        "keys" => keys,
        "rates" => InputColumn::shared(&shared),
        _ => InputColumn::values(&wanted),
    });
    let made = of_rows.run_with(&options, &columns.collect::<Vec<_>>()).unwrap();
    assert_eq!((&made.failed[..], made.failures[0].error.code()), (&[2][..], "invalid"));
    assert_eq!([0, 1].map(|row| made.columns[0].value(row).unwrap().to_string()), ["f64?{20}", "f64?{20}"]);
    let distinct = InputColumn::values(&[1_i64, 2, 2, 1, 3, 4]);
    let distinct = InputColumn::lists(&[0_i64, 2, 4, 6][..], &distinct);
    let run = |keys, rates| {
        let column = |input: &cembra::Field| match &*input.name {
            "keys" => keys,
            "rates" => rates,
            _ => InputColumn::values(&wanted),
        };
        of_rows.run_with(&options, &of_rows.inputs().iter().map(column).collect::<Vec<_>>()).unwrap()
    };
    let made = run(distinct, InputColumn::shared(&shared));
    assert_eq!((made.row_by_row, made.columns[0].values::<f64>()), (0, Some(&[20.0, 20.0, 10.0][..])));
    // A key whose value is in the next row, where that has one more than keys.
    let rates = InputColumn::values(&[10.0, 20.0, 30.0, 40.0, 50.0, 60.0]);
    let made = run(distinct, InputColumn::lists(&[0_i64, 1, 4, 6][..], &rates));
    assert_eq!((made.failed, made.columns[0].value(1).unwrap().to_string()), (vec![0], "f64?{30}".to_owned()));
    // An array that all rows share is there for each where its elements are added.
    let sums = batch("input xs: [f64]; input k: f64; sum(xs * k)");
    let made = sums.run_with(&options, &[InputColumn::shared(&shared), InputColumn::values(&[1.0, 2.0, 4.0])]).unwrap();
    assert_eq!((made.row_by_row, made.columns[0].values::<f64>()), (0, Some(&[30.0, 60.0, 120.0][..])));
    // A dictionary has as many entries in a column as in a value.
    let few = Options::default().limits(cembra::Limits::default().dict_entries(2));
    let model = Model::parse("input rates: dict[i64, f64]; input k: i64; dict.get(rates, k)").unwrap();
    let (keys, rates) = (InputColumn::values(&[1_i64, 2, 1, 2, 3]), InputColumn::values(&[1.0, 2.0, 3.0, 4.0, 5.0]));
    let of_rates = [keys, rates];
    let of_rates = of_rates.each_ref().map(|of| InputColumn::lists(&[0_i64, 2, 5][..], of));
    let made = model.batch(&few).unwrap().run(&[InputColumn::structs(&of_rates), InputColumn::values(&[2_i64, 2])]);
    assert_eq!(made.unwrap_err().code(), "limit");
    let made = model.batch(&Options::default()).unwrap();
    let made = made.run(&[InputColumn::structs(&of_rates), InputColumn::values(&[2_i64, 2])]).unwrap();
    assert_eq!(made[0].values::<f64>(), Some(&[2.0, 4.0][..]));
}
