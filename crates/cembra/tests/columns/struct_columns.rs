//! Tests structs and lists of structs as columns: rows that are evaluated together must have the results of single
//! evaluations.

use crate::lists::{SIZES, Writer, assert_same, assert_together, batch, number};
use cembra::columns::{Bitmap, InputColumn, OutputColumn};
use cembra::values::parse_type;
use cembra::{Backend, Error, Model, OnError, Optional, Options, QType, RunOptions, Scalar, ScalarValue, Value};

/// Returns a struct value of type `qtype` with the fields `fields`.
fn of_type(qtype: &QType, fields: Vec<Value>) -> Value {
    let QType::Tuple(types) = qtype else { panic!("{qtype} is no struct") };
    Value::Tuple(types.with(fields))
}

#[test]
fn rows_together_give_what_rows_one_by_one_give() {
    let interpreted = Options::default().backend(Backend::Interpreter);
    let (item, point) = (parse_type("{x: f64?, y: f64}").unwrap(), parse_type("{k: f64, m: f64?}").unwrap());
    let (mut together, mut failed) = (0, 0);
    for seed in 1000..1100 {
        let mut writer = Writer(fastrand::Rng::with_seed(seed));
        let depth = writer.0.usize(1..4);
        let (list, scalar) = (writer.list(depth), writer.scalar(depth));
        let text = format!(
            "input items: [{item}]\ninput p: {point}?\nlet xs = items.x\nlet ys = items.y\nlet k = p.k ?? 1.5\nlet m = p.m
             output list = {list}\noutput scalar = {scalar}"
        );
        let model = Model::parse(&text).unwrap();
        let rng = &mut writer.0;
        let rows = rng.usize(0..40);
        let (mut offsets, mut y, mut mask) = (vec![0_i64], Vec::new(), Vec::new());
        let mut x: Vec<Optional<f64>> = Vec::new();
        let (mut k, mut m): (Vec<Optional<f64>>, Vec<Optional<f64>>) = (Vec::new(), Vec::new());
        let (mut lists, mut points) = (Vec::new(), Vec::new());
        for _ in 0..rows {
            let size = *rng.choice(&SIZES).unwrap();
            let elements: Vec<(Option<f64>, f64)> =
                (0..size).map(|_| ((rng.usize(..5) > 0).then(|| number(rng)), number(rng))).collect();
            x.extend(elements.iter().map(|(x, _)| Optional::from(*x)));
            y.extend(elements.iter().map(|(_, y)| *y));
            offsets.push(x.len() as i64);
            let elements = elements.iter().map(|(x, y)| of_type(&item, vec![Value::from(*x), Value::from(*y)]));
            lists.push(Value::list(&item, elements).unwrap());
            let (is_there, of_k, of_m) = (rng.usize(..4) > 0, number(rng), (rng.usize(..4) > 0).then(|| number(rng)));
            // Where there is no struct, its columns may have anything.
            mask.push(is_there);
            k.push((is_there || rng.bool()).then_some(of_k).into());
            m.push(of_m.into());
            let fields = || of_type(&point, vec![Value::from(of_k), Value::from(of_m)]);
            points.push(Value::optional_struct(&point, is_there.then(fields)).unwrap());
        }
        let bytes: Vec<u8> =
            mask.chunks(8).map(|bits| bits.iter().rev().fold(0, |all, bit| all << 1 | u8::from(*bit))).collect();
        let mask = InputColumn::units(rows).present(Bitmap::new(&bytes, 0, rows).unwrap());
        let of_points = [mask, InputColumn::optionals(&k), InputColumn::optionals(&m)];
        let elements = [InputColumn::optionals(&x), InputColumn::values(&y)];
        let of_lists = elements.each_ref().map(|elements| InputColumn::lists(&offsets[..], elements));
        let run = |options: &Options, on_error, as_values: bool| {
            let batch = model.batch(options).unwrap();
            let columns = batch.inputs().iter().map(|input| match (&*input.name, as_values) {
                ("p", false) => InputColumn::structs(&of_points),
                ("p", true) => InputColumn::any(&points),
                (_, false) => InputColumn::structs(&of_lists),
                (_, true) => InputColumn::any(&lists),
            });
            let made =
                batch.run_with(&RunOptions::new().rows(rows).on_error(on_error), &columns.collect::<Vec<_>>())?;
            let errors: Vec<String> = made.failures.iter().map(|one| one.error.message()).collect();
            Ok((made.columns, made.failed, errors, made.row_by_row))
        };
        assert_together(&model.batch(&Options::default()).unwrap(), &text);
        let found = run(&Options::default(), OnError::Fail, false);
        failed += usize::from(found.is_err());
        together += usize::from(found.as_ref().is_ok_and(|made| made.3 == 0));
        let only = |made: Result<(Vec<OutputColumn>, _, _, _), Error>| made.map(|made| made.0);
        let found = only(found);
        assert_same(&text, &found, &only(run(&interpreted, OnError::Fail, true)));
        assert_same(&text, &found, &only(run(&interpreted, OnError::Fail, false)));
        let [(a, a_failed, a_errors, _), (b, b_failed, b_errors, _)] =
            [(false, Options::default()), (true, interpreted.clone())]
                .map(|(as_values, options)| run(&options, OnError::Missing, as_values).unwrap());
        assert_eq!((a_failed, a_errors), (b_failed, b_errors), "{text}");
        assert_same(&text, &Ok(a), &Ok(b));
    }
    // Neither is rare, or the test says little.
    assert!(together > 50 && failed > 5, "{together} {failed}");
}

#[test]
fn texts_of_structs_in_structs_are_read_in_columns() {
    let model = "
        input order: {buyer: {name: text, vip: bool?}, id: i64}
        input items: [{at: {price: f64, day: date?}, kind: text}]
        output label = if order.buyer.vip then order.buyer.name else \"-\"
        output books = sum(items.at.price & (items.kind == \"book\"))
        output days = count(items.at.day > date\"2026-01-01\")
        output id = order.id + 1";
    let batch = batch(model);
    assert_eq!(batch.row_by_row().map(ToString::to_string), None);
    let names = ["Ann", "a name that is longer than that", "Cem"];
    let vip: [Optional<bool>; 3] = [true.into(), true.into(), Optional::missing()];
    let order = [InputColumn::texts(&names), InputColumn::optionals(&vip), InputColumn::values(&[1_i64, 2, 3])];
    let kinds = InputColumn::texts(&["book", "toy", "book", "book"]);
    let prices = InputColumn::values(&[1.0, 2.0, 4.0, 8.0]);
    let days: [Optional<cembra::Date>; 4] =
        std::array::from_fn(|at| cembra::Date::of(2026, 1, 1 + at as u32).filter(|_| at != 3).into());
    let days = InputColumn::optionals(&days);
    let offsets = [0_i32, 3, 3, 4];
    let items = [&prices, &days, &kinds].map(|elements| InputColumn::lists(&offsets[..], elements));
    let made = batch.run(&[InputColumn::structs(&order), InputColumn::structs(&items)]).unwrap();
    let row = |row| made.iter().map(|column| column.value(row).unwrap().to_string()).collect::<Vec<_>>().join(" ");
    assert_eq!(
        [row(0), row(1), row(2)],
        [
            "'Ann' f64{5} i64{2} i64{2}",
            "'a name that is longer than that' f64{0} i64{0} i64{3}",
            "'-' f64{8} i64{0} i64{4}"
        ]
    );
}

#[test]
fn columns_that_are_not_those_of_the_struct_are_refused() {
    let batch =
        batch("input p: {k: f64}?; input items: [{x: f64, y: f64?}]; output s = math.sum(items.x) + (p.k ?? 0.5)");
    let (numbers, two) = (InputColumn::values(&[1.0, 2.0]), InputColumn::units(2));
    let offsets = [0_i64, 1, 2];
    let lists = InputColumn::lists(&offsets[..], &numbers);
    let error = |p: &[InputColumn<'_>], items: &[InputColumn<'_>]| {
        batch.run(&[InputColumn::structs(p), InputColumn::structs(items)]).map(|_| ()).unwrap_err().to_string()
    };
    let good = ([two, numbers], [lists, lists]);
    assert!(batch.run(&[InputColumn::structs(&good.0), InputColumn::structs(&good.1)]).is_ok());
    let fault = "input `p` must have the columns of its type: one for each scalar and each field of a list, and a mask before the columns of an optional struct";
    assert_eq!(error(&[numbers], &good.1), fault);
    assert_eq!(error(&[two, numbers, numbers], &good.1), fault);
    assert!(error(&[numbers, numbers], &good.1).contains("is f64"), "{}", error(&[numbers, numbers], &good.1));
    assert_eq!(error(&[two, InputColumn::structs(&[numbers])], &good.1), fault);
    let marked = InputColumn::structs(&good.0).present(Bitmap::new(&[0b01], 0, 2).unwrap());
    assert_eq!(batch.run(&[marked, InputColumn::structs(&good.1)]).unwrap_err().to_string(), fault);
    let gap = InputColumn::values(&[1.0, 2.0]).present(Bitmap::new(&[0b01], 0, 2).unwrap());
    assert_eq!(error(&[two, gap], &good.1), "input `p` is missing in row 1");
    let shared = Value::Missing(Scalar::Float64);
    assert_eq!(error(&[two, InputColumn::shared(&shared)], &good.1), "input `p` is missing in row 0");
    // The fields of a list are of one size, and its scalars are there.
    let shorter = InputColumn::lists(&[0_i64, 1, 1][..], &numbers);
    assert_eq!(
        error(&good.0, &[lists, shorter]),
        "input `items` has a list in row 1 whose fields have different lengths"
    );
    let lacks = InputColumn::lists(&offsets[..], &gap);
    assert_eq!(error(&good.0, &[lacks, lists]), "input `items` is missing in row 1");
    assert!(batch.run(&[InputColumn::structs(&good.0), InputColumn::structs(&[lists, lacks])]).is_ok());
    // Models without arrays make values of them.
    let plain = crate::lists::batch("input p: {k: f64}; p.k + 1.0");
    assert_eq!(plain.run(&[InputColumn::structs(&[numbers])]).unwrap()[0].values::<f64>(), Some(&[2.0, 3.0][..]));
    let refused = plain.run(&[InputColumn::structs(&[gap])]).unwrap_err().to_string();
    assert_eq!(refused, "input `p` is missing in row 1");
    let refused = plain.run(&[InputColumn::structs(&[numbers, numbers])]).unwrap_err().to_string();
    assert!(refused.contains("must have the columns of its type"), "{refused}");
    let few = RunOptions::new().limits(cembra::Limits::default().array_bytes(64));
    assert_eq!(plain.run_with(&few, &[InputColumn::structs(&[numbers])]).unwrap_err().code(), "arena-limit");
    let values = [ScalarValue::Float64(1.0)].map(|k| of_type(&parse_type("{k: f64}").unwrap(), vec![Value::Scalar(k)]));
    assert_eq!(plain.run(&[InputColumn::any(&values)]).unwrap()[0].values::<f64>(), Some(&[2.0][..]));
}
