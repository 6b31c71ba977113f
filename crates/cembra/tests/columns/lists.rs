//! Tests batches of models with arrays, where columns of lists are inputs and outputs. Rows that are evaluated together
//! must have the results and failures of single evaluations, bit for bit.

use cembra::columns::{Bitmap, ColumnMut, InputColumn, ListOffsets, OutputColumn};
use cembra::doors::OutputParts;
use cembra::explain::Stage;
use cembra::values::{ArrayData, ArrayKind};
use cembra::{
    Array, Backend, Batch, Cancellation, Error, FaultKind, Limits, Model, OnError, Optional, Options, QType,
    RunOptions, Scalar, Value,
};

pub(crate) fn batch(text: &str) -> Batch {
    Model::parse(text).and_then(|model| model.batch(&Options::default())).expect("a model for many rows")
}

/// A column of lists of optional numbers.
#[derive(Clone, Default)]
struct Lists {
    offsets: Vec<i64>,
    elements: Vec<Optional<f64>>,
}

impl Lists {
    fn of(rows: &[&[Option<f64>]]) -> Lists {
        let mut lists = Lists { offsets: vec![0], ..Lists::default() };
        for row in rows {
            lists.push(row.iter().copied());
        }
        lists
    }

    fn push(&mut self, row: impl Iterator<Item = Option<f64>>) {
        self.elements.extend(row.map(Optional::from));
        self.offsets.push(self.elements.len() as i64);
    }

    fn elements(&self) -> InputColumn<'_> {
        InputColumn::optionals(&self.elements)
    }
}

/// Returns the value of each row as text.
fn shown(column: &OutputColumn) -> Vec<String> {
    (0..column.rows()).map(|row| column.value(row).expect("a row").to_string()).collect()
}

const SCORER: &str = "input xs: [f64?]; input k: f64; output s = math.sum(xs * k); output z = xs / math.max(xs)";

#[test]
fn each_row_has_its_own_list() {
    let lists = Lists::of(&[&[Some(1.0), Some(4.0)], &[], &[Some(3.0), None, Some(-6.0)]]);
    let (elements, k) = (lists.elements(), [2.0, 3.0, 10.0]);
    let scorer = batch(SCORER);
    assert!(scorer.row_by_row().is_none());
    let made = scorer.run(&[InputColumn::lists(&lists.offsets[..], &elements), InputColumn::values(&k)]).unwrap();
    // A sum is there for each row, and its column says so.
    assert_eq!((made[0].qtype(), made[0].presence()), (&QType::FLOAT64, None));
    assert_eq!(made[0].values::<f64>(), Some(&[10.0, 0.0, -30.0][..]));
    assert_eq!(shown(&made[1]), ["[0.25, 1]", "[]", "[1, NA, -2]"]);
    let (offsets, elements) = made[1].lists().unwrap();
    assert_eq!((offsets, elements.rows()), (&[0, 2, 2, 5][..], 5));
    let OutputParts::Lists(offsets, elements) = made[1].clone().into_parts().1 else { panic!("lists") };
    assert_eq!((offsets.len(), elements.presence().unwrap()[0] & 0b11111), (4, 0b10111));
}

#[test]
fn the_program_over_rows_is_explained() {
    let explain = |text: &str| Model::parse(text).unwrap().explain(&Options::default(), Stage::Lanes).unwrap();
    let listing = explain(SCORER);
    for line in
        ["is the edge that assigns elements to the rows of `xs`", "is the scalars of `k`", "array.expand(", "math.sum("]
    {
        assert!(listing.contains(line), "{line}: {listing}");
    }
    assert_eq!(
        explain("input xs: [f64?]; xs[1]"),
        "rows are evaluated one by one because of array.at: the operator cannot be computed for the arrays of many rows at once.\n"
    );
}

/// Checks for each model whether its rows are evaluated together, as expected.
#[test]
fn what_has_no_form_over_rows_goes_row_by_row() {
    let together = [
        "input x: [f64?]; input k: f64?; math.sum(x) + (k ?? 1.0)",
        "input x: [f64?]; input k: f64; if k > 0.0 then math.sum(x) // k else 0.0",
        "input x: [f64?]; input k: f64; if k > 0.0 then x // k else x",
        "input x: [f64?]; math.std(x) / math.var(x)",
        "input x: [f64?]; math.softmax(x)",
        "input x, y: [f64?]; math.correlation(x, y)",
        "input x: [f64?]; math.cum_sum(x, over=edge.to_scalar(x))",
        "input x: [f64?]; array.dense_rank(x)",
        "input x: [f64?]; array.rolling_mean(array.sort(array.shift(x, 1)), 3)",
        "input x: [f64?]; math.median(x) + math.inverse_cdf(x, 0.25)",
        "input x: [f64?]; array.iota(shape_of(x)) * array.size(x)",
        "input x: [f64?]; core.const_with_shape(shape_of(x), 1.5)",
        "input x: [f64?]; input k: f64; core.const_with_shape(shape_of(x), k)",
        "input x: [f64?]; core.map(fn(a) = a * a + 1.0, x)",
        "input x: [f64?]; input t: text; math.sum(x) > strings.length(t)",
        "input t: [text]; input s: text; array.count(strings.contains(t, s))",
        "input b: [bool]; bool.logical_any(b)",
        "input x: [f64?]; any(x > 1.0)",
        "input x: [f64?]; input n: i64; output a = 7; output b = n; output c = core.zeros_like(x)",
    ];
    for text in together {
        assert_eq!(batch(text).row_by_row().map(ToString::to_string), None, "{text}");
    }
    let apart = [
        ("input x: [f64?]; x[0]", "because of array.at: the operator cannot be computed"),
        ("input x: [f64?]; math.sum(x, into=edge.from_sizes([array.size(x)]))", "cannot be computed"),
        ("input x: [f64?]; input e: splits; math.sum(x, into=e)", "is neither a scalar nor a dense array"),
        ("input a, b: f64; math.sum([a, b])", "because of array.make_dense_array: the operator cannot be computed"),
        (
            "input x: [f64?]; input k: f64; core.map(fn(a, k) = a * k, x, k)",
            "has arguments that are scalars of the row",
        ),
        ("input x: [f64?]; (x, [1.0, 2.0])", "the struct has a field that is neither"),
        (
            "input x: [f64?]; input q: f64; math.inverse_cdf(x, q)",
            "an operand is neither an array per row nor a scalar that all rows share",
        ),
        (
            "input x: [f64?]; input n: i64; array.rolling_sum(x, n)",
            "an operand is neither an array per row nor a scalar that all rows share",
        ),
    ];
    for (text, reason) in apart {
        let found = batch(text).row_by_row().map(|reason| reason.message().to_owned());
        assert!(found.as_ref().is_some_and(|found| found.contains(reason)), "{text}: {found:?}");
    }
}

/// Asserts that two runs have equal results in all rows, or the same error.
pub(crate) fn assert_same(text: &str, a: &Result<Vec<OutputColumn>, Error>, b: &Result<Vec<OutputColumn>, Error>) {
    match (a, b) {
        (Ok(a), Ok(b)) => {
            for (a, b) in a.iter().zip(b) {
                assert_eq!((a.qtype(), a.rows()), (b.qtype(), b.rows()), "{text}");
                for row in 0..a.rows() {
                    let (a, b) = (a.value(row).expect("a row"), b.value(row).expect("a row"));
                    assert!(a.same(&b), "{text}\nrow {row}: {a} and {b}");
                }
            }
        }
        (Err(a), Err(b)) => {
            assert_eq!((a.to_string(), a.row(), a.span()), (b.to_string(), b.row(), b.span()), "{text}");
        }
        (a, b) => panic!("{text}\n{a:?}\n{b:?}"),
    }
}

/// Asserts that the batch evaluates rows together. The one exception is a model that uses only the number of elements
/// whose computation may fail.
pub(crate) fn assert_together(batch: &Batch, text: &str) {
    let reason = batch.row_by_row().map(ToString::to_string);
    assert!(
        reason.as_ref().is_none_or(
            |reason| reason.contains("only the number of elements is needed, but computing the elements may fail")
        ),
        "{text}: {reason:?}"
    );
}

/// Writes random expressions on the lists `xs` and `ys`, and the scalars `k` and `m`.
pub(crate) struct Writer(pub(crate) fastrand::Rng);

impl Writer {
    pub(crate) fn list(&mut self, depth: usize) -> String {
        if depth == 0 {
            return ["xs", "ys", "xs"][self.0.usize(..3)].to_owned();
        }
        let (a, b, s, t) = (self.list(depth - 1), self.list(depth - 1), self.scalar(depth - 1), self.scalar(depth - 1));
        match self.0.usize(..16) {
            0 => format!("({a} + {b})"),
            1 => format!("({a} * {s})"),
            2 => format!("({s} - {a})"),
            3 => format!("({a} / ({b} ?? 2.0))"),
            4 => format!("({a} // {s})"),
            5 => format!("where({a} > {b}, {a}, {s})"),
            6 => format!("(if {s} > {t} then {a} else {b})"),
            7 => format!("(if {s} > {t} then {a} // {t} else {b})"),
            8 => format!("({a} ?? {s})"),
            9 => format!("math.cum_sum({a}, over=edge.to_scalar({b}))"),
            10 => format!("to_float64(array.dense_rank({a}))"),
            11 => format!("to_float64(array.ordinal_rank({a}, descending=true))"),
            12 => format!("math.softmax({a})"),
            13 => format!("exp(min({a}, 3.0))"),
            14 => format!("(to_float64(array.iota(shape_of({a}))) + {b})"),
            _ => format!("core.map(fn(a, b) = a * 2.0 - (b ?? 1.0), {a}, {b})"),
        }
    }

    pub(crate) fn scalar(&mut self, depth: usize) -> String {
        if depth == 0 {
            return ["k", "m", "0.5", "(k + m)", "2.0"][self.0.usize(..5)].to_owned();
        }
        let (a, b, s, t) = (self.list(depth - 1), self.list(depth - 1), self.scalar(depth - 1), self.scalar(depth - 1));
        match self.0.usize(..16) {
            0..4 => format!("math.sum({a})"),
            4 => format!("math.mean({a})"),
            5 => format!("(math.max({a}) ?? {s})"),
            6 => format!("math.prod({a})"),
            7 => format!("math.std({a})"),
            8 => format!("to_float64(array.count({a} > {s}))"),
            9 => format!("to_float64(array.size({a}))"),
            10 => format!("math.correlation({a}, {b})"),
            11 => format!("(if {s} > {t} then {s} // {t} else {t})"),
            12 => format!("({s} * {t})"),
            13 => format!("math.median({a})"),
            14 => format!("to_float64(math.argmax({a}))"),
            _ => format!("(if any({a} > {b}) then math.sum({a}) else {s})"),
        }
    }
}

pub(crate) fn number(rng: &mut fastrand::Rng) -> f64 {
    match rng.usize(..20) {
        0 => 0.0,
        1 => -0.0,
        2 => f64::NAN,
        3 => f64::INFINITY,
        _ => f64::from(rng.i32(-40..40)) / 8.0 + rng.f64() / 1024.0,
    }
}

/// Lengths of lists: the order of a sum changes above 64 elements.
pub(crate) const SIZES: [usize; 9] = [0, 0, 1, 2, 5, 63, 64, 65, 200];

#[test]
fn rows_together_give_what_rows_one_by_one_give() {
    let interpreted = Options::default().backend(Backend::Interpreter);
    let (mut together, mut failed, mut apart) = (0, 0, 0);
    for seed in 0..120 {
        let mut writer = Writer(fastrand::Rng::with_seed(seed));
        let depth = writer.0.usize(1..4);
        let (list, scalar) = (writer.list(depth), writer.scalar(depth));
        let text = format!(
            "input xs, ys: [f64?]\ninput k: f64\ninput m: f64?\noutput list = {list}\noutput scalar = {scalar}"
        );
        let model = Model::parse(&text).unwrap();
        let rng = &mut writer.0;
        let rows = rng.usize(0..40);
        let (mut xs, mut ys) = (Lists::of(&[]), Lists::of(&[]));
        let misfit = if rng.usize(..8) == 0 { rng.usize(..40) } else { usize::MAX };
        for row in 0..rows {
            let size = *rng.choice(&SIZES).unwrap();
            let mut element = |_| (rng.usize(..5) > 0).then(|| number(rng));
            xs.push((0..size).map(&mut element));
            ys.push((0..size + usize::from(row == misfit)).map(&mut element));
        }
        let k: Vec<f64> = (0..rows).map(|_| number(rng)).collect();
        let m: Vec<Optional<f64>> = (0..rows).map(|_| (rng.usize(..4) > 0).then(|| number(rng)).into()).collect();
        let (x_elements, y_elements) = (xs.elements(), ys.elements());
        let column = |name: &str| match name {
            "xs" => InputColumn::lists(&xs.offsets[..], &x_elements),
            "ys" => InputColumn::lists(&ys.offsets[..], &y_elements),
            "k" => InputColumn::values(&k),
            _ => InputColumn::optionals(&m),
        };
        let run = |options: &Options, on_error| {
            let batch = model.batch(options).unwrap();
            let columns: Vec<_> = batch.inputs().iter().map(|input| column(&input.name)).collect();
            let made = batch.run_with(&RunOptions::new().rows(rows).on_error(on_error), &columns)?;
            let errors: Vec<String> = made.failures.iter().map(|one| one.error.message()).collect();
            Ok((made.columns, made.failed, errors, made.row_by_row))
        };
        assert_together(&model.batch(&Options::default()).unwrap(), &text);
        assert!(model.batch(&interpreted).unwrap().row_by_row().is_some());
        let found = run(&Options::default(), OnError::Fail);
        failed += usize::from(found.is_err());
        together += usize::from(found.as_ref().is_ok_and(|made| made.3 == 0));
        apart += usize::from(found.as_ref().is_ok_and(|made| made.3 > 0));
        let reference = run(&interpreted, OnError::Fail);
        assert!(reference.as_ref().is_ok_and(|made| made.3 == rows) || found.is_err(), "{text}");
        assert_same(&text, &found.map(|made| made.0), &reference.map(|made| made.0));
        let [(a, a_failed, a_errors, _), (b, b_failed, b_errors, _)] =
            [Options::default(), interpreted.clone()].map(|options| run(&options, OnError::Missing).unwrap());
        assert_eq!((a_failed, a_errors), (b_failed, b_errors), "{text}");
        assert_same(&text, &Ok(a), &Ok(b));
    }
    // Neither is rare, or the test says little.
    assert!(together > 60 && failed > 10 && apart < 25, "{together} {failed} {apart}");
}

#[test]
fn sums_have_the_bits_of_whole_arrays() {
    let mut rng = fastrand::Rng::with_seed(5);
    let mut lists = Lists::of(&[]);
    for size in [0, 1, 63, 64, 65, 127, 1000, 65_536, 70_000, 3] {
        lists.push((0..size).map(|_| (rng.usize(..9) > 0).then(|| rng.f64() - 0.3)));
    }
    let text = "input x: [f64?]; output sum = math.sum(x); output mean = math.mean(x); output all = math.prod(1.0 + x / 100.0)";
    let elements = lists.elements();
    let made = batch(text).run(&[InputColumn::lists(&lists.offsets[..], &elements)]).unwrap();
    let mut session = Model::parse(text).unwrap().compile(&Options::default()).unwrap().session();
    for row in 0..10 {
        let qtype = QType::Array(ArrayKind::Dense, Scalar::Float64);
        let list = InputColumn::lists(&lists.offsets[..], &elements).value(&qtype, row).unwrap();
        let expected = session.evaluate(&[list]).unwrap();
        for (column, expected) in made.iter().zip(&expected) {
            assert_eq!(column.value(row).as_ref(), Some(expected), "{row}");
        }
    }
}

#[test]
fn many_rows_are_cut_and_shared_out_without_a_trace() {
    let mut rng = fastrand::Rng::with_seed(9);
    let (rows, mut lists) = (70_001, Lists::of(&[]));
    for row in 0..rows {
        let size = if row % 10_000 == 77 { 40_000 } else { rng.usize(..7) };
        lists.push((0..size).map(|at| (at % 3 != 1).then(|| rng.f64())));
    }
    let k: Vec<f64> = (0..rows).map(|row| (row % 13) as f64).collect();
    let (elements, scorer) = (lists.elements(), batch(SCORER));
    let columns = [InputColumn::lists(&lists.offsets[..], &elements), InputColumn::values(&k)];
    let one = scorer.run(&columns);
    let several = scorer.run_with(&RunOptions::new().threads(3), &columns).map(|made| made.columns);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
    let two = RunOptions::new().threads(2);
    let pooled = pool.install(|| scorer.run_with(&two, &columns)).map(|made| made.columns);
    assert_same(SCORER, &one, &several);
    assert_same(SCORER, &one, &pooled);
    let one = one.unwrap();
    for row in [0, 76, 77, 78, 32_768, 69_999, 70_000] {
        let ends = lists.offsets[row] as usize..lists.offsets[row + 1] as usize;
        // Short ones are added in order.
        if ends.len() <= 64 {
            let sum = lists.elements[ends.clone()].iter().filter_map(|x| x.get()).fold(0.0, |sum, x| sum + x * k[row]);
            assert_eq!(one[0].values::<f64>().unwrap()[row], sum, "{row}");
        }
        assert_eq!(one[1].lists().unwrap().0[row], lists.offsets[row]);
    }
}

#[test]
fn the_first_row_that_fails_is_the_error() {
    let text = "input x, y: [f64?]; input k: f64\noutput z = x // k\noutput s = math.sum(x + y)";
    let x = Lists::of(&[&[Some(1.0)], &[None, Some(2.0)], &[Some(3.0), Some(4.0)], &[Some(5.0)]]);
    let y = Lists::of(&[&[Some(1.0)], &[None, Some(2.0)], &[Some(3.0)], &[Some(5.0)]]);
    let (xs, ys) = (x.elements(), y.elements());
    let columns = |k: &'static [f64; 4]| {
        [InputColumn::lists(&x.offsets[..], &xs), InputColumn::lists(&y.offsets[..], &ys), InputColumn::values(k)]
    };
    let batch = batch(text);
    // In the order of the inputs.
    assert_eq!(batch.inputs().iter().map(|input| &*input.name).collect::<Vec<_>>(), ["x", "y", "k"]);
    let error = batch.run(&columns(&[1.0, 0.0, 1.0, 1.0])).unwrap_err();
    assert_eq!(error.message(), "math.floor_divide: division by zero, in element 1 of row 1");
    assert_eq!((error.row(), error.element(), error.span().is_some()), (Some(1), Some(1), true));
    let error = batch.run(&columns(&[1.0, 2.0, 1.0, 0.0])).unwrap_err();
    assert_eq!(error.message(), "+: argument sizes mismatch: (2, 1), in row 2");
    let made = batch.run_with(&RunOptions::new().on_error(OnError::Missing), &columns(&[1.0, 0.0, 1.0, 2.0])).unwrap();
    assert_eq!((made.failed, made.row_by_row), (vec![1, 2], 4));
    assert_eq!(made.failures.iter().map(|one| one.error.code()).collect::<Vec<_>>(), ["div-by-zero", "size-mismatch"]);
    assert_eq!(shown(&made.columns[0]), ["[1]", "missing", "missing", "[2]"]);
    assert_eq!((made.columns[0].presence(), made.columns[1].presence()), (Some(&[0b1001][..]), Some(&[0b1001][..])));
    assert_eq!(made.columns[1].qtype(), &QType::Optional(Scalar::Float64));
    let made = batch
        .run_with(&RunOptions::new().on_error(OnError::Missing).keep_failures(1), &columns(&[1.0, 0.0, 1.0, 2.0]))
        .unwrap();
    assert_eq!((made.failed.len(), made.failures.len()), (2, 1));
}

#[test]
fn lists_come_in_many_layouts() {
    let sum = batch("input x: [i32?]; math.sum(x)");
    let numbers = [9, 1, 2, 3, 4, 5, 6];
    let elements = InputColumn::values(&numbers);
    let sums = |column| sum.run(&[column]).unwrap()[0].values::<i32>().unwrap().to_vec();
    // Points need not begin with 0, nor end with the last element.
    assert_eq!(sums(InputColumn::lists(&[1_i32, 3, 3, 6][..], &elements)), [3, 0, 12]);
    assert_eq!(sums(InputColumn::lists(&[1_i64, 3, 3, 6][..], &elements)), [3, 0, 12]);
    assert_eq!(sums(InputColumn::lists(ListOffsets::Fixed { size: 2, rows: 3 }, &elements)), [10, 5, 9]);
    assert_eq!(sums(InputColumn::lists(&[] as &[i64], &elements)), [] as [i32; 0]);
    let bits = [0b101_0110_u8];
    let some = elements.present(Bitmap::new(&bits, 0, 7).unwrap());
    assert_eq!(sums(InputColumn::lists(&[0_i64, 3, 7][..], &some)), [3, 10]);
    // All rows share one, or have values of their own.
    let value: Value = cembra::values::parse_value("[i32?]{1, NA, 5}").unwrap();
    let made = batch("input x: [i32?]; input k: i32; math.sum(x * k)");
    for factors in [&[1, 2, 3][..], &[4]] {
        let products = made.run(&[InputColumn::shared(&value), InputColumn::values(factors)]).unwrap();
        assert!(
            products[0].values::<i32>().unwrap().iter().eq(factors.iter().map(|k| 6 * k).collect::<Vec<_>>().iter())
        );
    }
    assert_eq!(sums(InputColumn::any(&[value.clone(), value])), [6, 6]);
    let texts = InputColumn::texts(&["a", "bcd", "", "ef"]);
    let longest = batch("input t: [text]; math.max(strings.length(t))");
    let made = longest.run(&[InputColumn::lists(&[0_i64, 1, 4][..], &texts)]).unwrap();
    assert_eq!(shown(&made[0]), ["i64?{1}", "i64?{3}"]);
    let flags = InputColumn::bits(Bitmap::new(&[0b0110], 0, 4).unwrap());
    let any = batch("input b: [bool]; bool.logical_any(b)");
    let made = any.run(&[InputColumn::lists(&[0_i64, 1, 4][..], &flags)]).unwrap();
    assert_eq!(shown(&made[0]), ["bool?{false}", "bool?{true}"]);
}

/// Inputs that take no memory per row may have any number of rows: units, empty lists, values that all rows share,
/// structs of fields without size. The memory for their results is counted before it is allocated.
#[test]
fn more_rows_than_there_may_be_are_refused_before_there_is_memory_for_them() {
    let limited = |text: &str| {
        let limits = Limits::default().array_bytes(8_000);
        Model::parse(text).and_then(|model| model.batch(&Options::default().limits(limits))).expect("a model")
    };
    let none = InputColumn::values(&[] as &[f64]);
    let units = InputColumn::units(usize::MAX);
    let empty = |rows| InputColumn::lists(ListOffsets::Fixed { size: 0, rows }, &none);
    let of_units = InputColumn::lists(ListOffsets::Fixed { size: 1, rows: usize::MAX }, &units);
    let (scalar, array): (Value, Value) = (1.0.into(), cembra::values::parse_value("[f64?]{1, 5}").unwrap());
    let refused = |batch: &Batch, column: InputColumn<'_>, rows: usize| {
        let error = batch.run_with(&RunOptions::new().rows(rows), &[column]).unwrap_err();
        assert_eq!((error.fault_kind(), error.row()), (Some(FaultKind::ArenaLimit), None), "{error}");
        let hint = "make fewer or smaller arrays, or raise the limit `array_bytes`";
        assert_eq!(error.diagnostics()[0].hints(), [hint], "{error}");
        let text = "the outputs of all rows exceed the limit `array_bytes`";
        assert_eq!(error.message(), text);
    };
    for rows in [usize::MAX, usize::MAX / 8, 1 << 40, 1 << 33] {
        for text in ["input x: [f64?]; math.sum(x)", "input x: [f64?]; x * 2.0", "input x: [f64?]; x[0]"] {
            refused(&batch(text), empty(rows), rows);
            refused(&batch(text), InputColumn::shared(&array), rows);
        }
        for text in ["input x: f64; x * 2.0", "input x: f64; x > 1.0", "input x: f64; (x, x)"] {
            refused(&batch(text), InputColumn::shared(&scalar), rows);
        }
        refused(&batch("input x: unit; x"), InputColumn::units(rows), rows);
    }
    refused(&batch("input x: [unit]; array.count(x)"), of_units, usize::MAX);
    // Of one row with so many elements, it is the row that is refused.
    let one = InputColumn::lists(ListOffsets::Fixed { size: usize::MAX, rows: 1 }, &units);
    let points = [0, i64::MAX];
    let less = InputColumn::units(i64::MAX as usize);
    for lists in [one, InputColumn::lists(&points[..], &less)] {
        for text in ["input x: [unit]; where(x, 1.0)", "input x: [unit]; array.count(x)", "input x: [unit]; x"] {
            let error = batch(text).run(&[lists]).unwrap_err();
            assert_eq!((error.fault_kind(), error.row()), (Some(FaultKind::ArenaLimit), Some(0)), "{text}: {error}");
        }
    }
    assert!(batch("input x: unit; x").player(&[units]).is_err());
    // An array of units that all rows share may be as long.
    for len in [1 << 61, usize::MAX] {
        let array = Array::from_parts(Scalar::Unit, len, ArrayData::Units, None).unwrap();
        let shared = Value::Array(ArrayKind::Dense, array.into());
        refused(&batch("input x: [unit]; where(x, 1.0)"), InputColumn::shared(&shared), 2);
        let count = batch("input x: [unit]; array.count(x)")
            .run_with(&RunOptions::new().rows(2), &[InputColumn::shared(&shared)]);
        let error = count.unwrap_err();
        assert_eq!((error.fault_kind(), error.row()), (Some(FaultKind::ArenaLimit), Some(0)), "{error}");
    }
    assert!(batch("input x: [f64?]; x * 2.0").player(&[empty(usize::MAX)]).is_err());
    // Exactly the limit is allowed: of a row and its output, of a row with 2 elements and where they end.
    let double = limited("input x: f64; x * 2.0");
    let made = double.run_with(&RunOptions::new().rows(8_000 / 9), &[InputColumn::shared(&scalar)]).unwrap();
    assert_eq!(made.columns[0].values::<f64>(), Some(&[2.0; 8_000 / 9][..]));
    refused(&double, InputColumn::shared(&scalar), 8_000 / 9 + 1);
    let lists = limited("input x: [f64?]; x * 2.0");
    assert_eq!(
        lists.run_with(&RunOptions::new().rows(8_000 / 25), &[InputColumn::shared(&array)]).unwrap().columns[0].rows(),
        320
    );
    refused(&lists, InputColumn::shared(&array), 8_000 / 25 + 1);
    // Columns with memory for each row are no more than that, whatever the limit is: of what comes in, or of what goes out.
    let numbers = vec![3.0; 2_000];
    assert_eq!(double.run(&[InputColumn::values(&numbers)]).unwrap()[0].rows(), 2_000);
    let mut twice = vec![0.0; 2_000];
    double
        .run_into(&RunOptions::new(), &[InputColumn::shared(&scalar)], vec![Some(ColumnMut::values(&mut twice))])
        .unwrap();
    assert_eq!(twice, [2.0; 2_000]);
}

#[test]
fn what_is_no_list_is_refused() {
    let sum = batch("input x: [f64?]; math.sum(x)");
    let elements = InputColumn::values(&[1.0, 2.0, 3.0]);
    let refused = |column| sum.run(&[column]).unwrap_err().to_string();
    let bits = [0b101];
    let missing = InputColumn::lists(&[0_i64, 1, 2, 3][..], &elements).present(Bitmap::new(&bits, 0, 3).unwrap());
    assert_eq!(refused(missing), "input `x` is missing in row 1");
    assert_eq!(
        refused(InputColumn::lists(&[0_i64, 2, 1][..], &elements)),
        "input `x` has more elements in row 1 than its column of elements"
    );
    assert_eq!(
        refused(InputColumn::lists(&[0_i32, 2, 4][..], &elements)),
        "input `x` has more elements in row 1 than its column of elements"
    );
    assert_eq!(refused(elements), "input `x` is [f64?], but the column is f64");
    let whole = InputColumn::values(&[1_i64]);
    assert_eq!(refused(InputColumn::lists(&[0_i64, 1][..], &whole)), "input `x` is [f64?], but the column is i64");
    let lists = InputColumn::lists(&[0_i64, 1][..], &elements);
    assert_eq!(
        refused(InputColumn::lists(&[0_i64, 1][..], &lists)),
        "input `x` has lists, but their elements are not a column of scalars"
    );
    let double = batch("input x: f64; x * 2.0");
    assert_eq!(double.run(&[lists]).unwrap_err().to_string(), "input `x` is f64, but the column is [f64?]");
    assert_eq!(
        sum.run_with(&RunOptions::new().rows(1), &[]).unwrap_err().to_string(),
        "there are 0 input columns for 1 inputs"
    );
    let error = sum.run_into(&RunOptions::new(), &[lists], vec![Some(ColumnMut::values(&mut [0.0]))]).unwrap_err();
    assert_eq!(
        error.message(),
        "output `result` must not be given memory: a model with arrays makes new columns for its outputs"
    );
}

#[test]
fn rows_are_evaluated_in_order_where_that_is_seen_and_stop_when_they_are_told() {
    let sum = batch("input x: [f64?]; math.sum(x)");
    let elements = InputColumn::values(&[1.0, 2.0]);
    let lists = InputColumn::lists(&[0_i64, 1, 2][..], &elements);
    let token = Cancellation::new();
    token.cancel();
    let error = sum.run_with(&RunOptions::new().cancellation(token), &[lists]).unwrap_err();
    assert_eq!(error.fault_kind(), Some(FaultKind::Cancelled));
    // No rows at all, though the model would fail.
    let fails = batch("input x: [f64?]; output a = 1 // 0; output b = x // 0.0");
    let made = fails.run(&[InputColumn::lists(&[0_i64][..], &elements)]).unwrap();
    assert_eq!(made.iter().map(OutputColumn::rows).collect::<Vec<_>>(), [0, 0]);
}

/// Checks all aggregations, scans and rankings, in batches and in single evaluations.
#[test]
fn operators_on_whole_arrays_are_those_of_groups() {
    let together = [
        "math.sum(i)",
        "math.prod(i)",
        "math.mean(i)",
        "math.min(x)",
        "math.max(x)",
        "math.min(i)",
        "math.argmin(x)",
        "math.argmax(i)",
        "math.median(x)",
        "math.median(i)",
        "math.inverse_cdf(x, 0.3)",
        "quantile(x, 0.3)",
        "quantile(i, 0.3)",
        "median(x)",
        "median(i)",
        "math.cdf(x)",
        "math.cdf(x, weights=y)",
        "math.skew(x)",
        "math.kurtosis(x)",
        "math.covariance(x, y)",
        "math.weighted_average(x, y)",
        "array.collapse(i, edge.to_scalar(i))",
        "array.collapse(t, edge.to_scalar(t))",
        "array.count(t)",
        "array.cum_count(x, over=edge.to_scalar(x))",
        "array.agg_index(x, over=edge.from_shape(shape_of(x)))",
        "math.cum_max(x, over=edge.to_scalar(x))",
        "math.cum_min(i, over=edge.to_scalar(i))",
        "math.cum_sum(i, over=edge.to_scalar(y))",
        "math.cum_prod(x, over=edge.to_scalar(x))",
        "array.sort(x)",
        "array.sort(t, descending=true)",
        "array.shift(i, 1)",
        "array.shift(t, -2)",
        "array.rolling_sum(x, 3)",
        "array.rolling_mean(i, 2)",
        "array.rolling_min(y, 2, over=edge.to_scalar(y))",
        "array.rolling_max(i, 40)",
        "array.dense_rank(t)",
        "array.dense_rank(i, descending=true)",
        "array.ordinal_rank(x, tie_breaker=i)",
        "bool.logical_any(b)",
        "bool.logical_all(b)",
        "any(core.has(x))",
        "all(core.has(x))",
        "array.size(t)",
        "array.array_shape_size(shape_of(t))",
        "edge.child_size(edge.to_scalar(b))",
        "core.const_with_shape(edge.child_shape(edge.to_scalar(b)), s)",
        "strings.agg_join(t, edge.to_scalar(t), \", \")",
        "array.inverse_mapping(array.ordinal_rank(y ?? 1.0))",
    ];
    let mut rng = fastrand::Rng::with_seed(3);
    let (mut offsets, rows) = (vec![0_i64], 60);
    for _ in 0..rows {
        offsets.push(offsets[offsets.len() - 1] + *rng.choice(&SIZES).unwrap() as i64);
    }
    let elements = offsets[rows] as usize;
    let mut optionals = || -> Vec<Optional<f64>> {
        (0..elements).map(|_| (rng.usize(..5) > 0).then(|| number(&mut rng)).into()).collect()
    };
    let (x, y) = (optionals(), optionals());
    let i: Vec<Optional<i64>> = (0..elements).map(|_| (rng.usize(..5) > 0).then(|| rng.i64(-3..9)).into()).collect();
    let b: Vec<Optional<bool>> = (0..elements).map(|_| (rng.usize(..9) > 0).then(|| rng.bool()).into()).collect();
    let t: Vec<&str> = (0..elements).map(|_| *rng.choice(&["a", "", "a text of some length", "bc"]).unwrap()).collect();
    let s: Vec<&str> = (0..rows).map(|_| *rng.choice(&["x", "another text of some length"]).unwrap()).collect();
    let (x, y) = (InputColumn::optionals(&x), InputColumn::optionals(&y));
    let (i, b, t) = (InputColumn::optionals(&i), InputColumn::optionals(&b), InputColumn::texts(&t));
    for expression in together {
        let text = format!(
            "input x, y: [f64?]; input i: [i64?]; input b: [bool?]; input t: [text]; input s: text\n{expression}"
        );
        let model = Model::parse(&text).unwrap();
        let run = |options: Options| {
            let batch = model.batch(&options).unwrap();
            let columns = batch.inputs().iter().map(|input| match &*input.name {
                "s" => InputColumn::texts(&s),
                name => {
                    let elements = match name {
                        "x" => &x,
                        "y" => &y,
                        "i" => &i,
                        "b" => &b,
                        _ => &t,
                    };
                    InputColumn::lists(&offsets[..], elements)
                }
            });
            let columns: Vec<_> = columns.collect();
            let made = batch.run_with(&RunOptions::new().rows(rows), &columns)?;
            Ok((made.columns, made.row_by_row))
        };
        let found = run(Options::default());
        let alone = found.as_ref().map_or(0, |made: &(Vec<OutputColumn>, usize)| made.1);
        assert_eq!(alone, 0, "{expression}");
        let reference = run(Options::default().backend(Backend::Interpreter));
        assert_same(&text, &found.map(|made| made.0), &reference.map(|made| made.0));
    }
}

/// A row fails if one of its elements fails, even if the model uses only the number of elements.
#[test]
fn rows_whose_elements_fail_have_no_size() {
    let lists = Lists::of(&[&[Some(1.0)], &[Some(2.0), None]]);
    let elements = lists.elements();
    for text in ["array.size(xs // k)", "array.iota(shape_of(xs // k))"] {
        let batch = batch(&format!("input xs: [f64?]; input k: f64; {text}"));
        let columns = [InputColumn::lists(&lists.offsets[..], &elements), InputColumn::values(&[1.0, 0.0])];
        let error = batch.run(&columns).expect_err(text);
        assert_eq!((error.code(), error.row()), ("div-by-zero", Some(1)), "{text}");
    }
    assert_eq!(batch("input xs: [f64?]; array.size(xs * 2.0)").row_by_row().map(ToString::to_string), None);
}

/// An input list that is omitted is empty if its default is `[]`.
#[test]
fn lists_may_be_empty_by_default() {
    let text = "input k: f64, a: [f64] = [], items: [{v: f64, n: text?}] = []
        output n = array.size(a)
        output s = k + sum(a) + sum(items.v)
        test \"left out\" { k = 1 } => { n = 0, s = 1 }
        test \"given\" { k = 1, a = [2, 3], items = [{v: 4}] } => { n = 2, s = 10 }";
    let model = Model::parse(text).expect("a model");
    let printed = cembra::explain::print(model.program());
    assert!(printed.contains("a: [f64] = []\n") && printed.contains("n: text?}] = []\n"), "{printed}");
    assert_eq!(
        Model::parse(&printed).expect("what was printed").program(),
        Model::parse(text.split("test").next().expect("a model")).expect("a model").program()
    );
    let again = Model::from_binary(&model.to_binary()).expect("what was written is read");
    for backend in [Backend::Native, Backend::Interpreter] {
        let options = Options::default().backend(backend);
        assert_eq!(model.run_tests(&options).failures.len(), 0);
        for model in [&model, &again] {
            let executor = model.compile(&options).expect("compiled");
            assert_eq!(executor.inputs()[1].declaration(), "[f64] = []");
            let made = executor.session().evaluate(&[Value::from(0.5)]).expect("values");
            assert_eq!(made, [Value::from(0_i64), Value::from(0.5)]);
        }
    }
    // Every door of JSON has them: rows, one text, objects of serde, columns.
    let texts = ["{\"k\": 1}", "{\"k\": 1, \"a\": null, \"items\": null}", "{\"k\": 1, \"a\": [], \"items\": []}"];
    let full = "{\"k\": 1, \"a\": [2], \"items\": [{\"v\": 3, \"n\": null}]}";
    let model = Model::parse(
        "input k: f64, a: [f64] = [], items: [{v: f64, n: text?}] = []\noutput s = k + sum(a) + sum(items.v)",
    );
    let model = model.expect("a model");
    for backend in [Backend::Native, Backend::Interpreter] {
        let options = Options::default().backend(backend);
        let mut rows = model.executor_from::<_, f64>(&cembra::json::JsonRows, &options).expect("an executor");
        let mut one = model.json_executor(&options).expect("an executor");
        let mut objects = model.executor_from::<_, f64>(&cembra::json::Json, &options).expect("an executor");
        let batch = model.batch(&options).expect("a batch");
        let mut columns = cembra::json::JsonColumns::new(&batch).expect("columns");
        for (text, expected) in texts.map(|text| (text, 1.0)).into_iter().chain([(full, 6.0)]) {
            assert_eq!(
                rows.run(&cembra::json::JsonRow::parse(text).expect("JSON")).expect("a sum"),
                expected,
                "{text}"
            );
            assert_eq!(one.run(text).expect("an answer"), format!("{{\"s\":{expected:?}}}"), "{text}");
            let object: serde_json::Value = serde_json::from_str(text).expect("JSON");
            assert_eq!(objects.run(&object).expect("a sum"), expected, "{text}");
            columns.push(text).expect("a row");
        }
        let made = columns.with(|columns| batch.run(columns)).expect("sums");
        let sums: Vec<_> = (0..4).map(|row| made[0].value(row).expect("a row")).collect();
        assert_eq!(sums, [1.0, 1.0, 1.0, 6.0].map(Value::from));
    }
    let strict = Model::parse("input a: [f64]; sum(a)").expect("a model");
    let mut strict = strict.executor_from::<_, f64>(&cembra::json::JsonRows, &Options::default()).expect("an executor");
    assert!(strict.run(&cembra::json::JsonRow::parse("{}").expect("JSON")).is_err());
    for (wrong, says) in [
        ("input a: [f64] = [1.0]; sum(a)", "the default of a list must be `[]`"),
        ("input a: [f64] = 1.0; sum(a)", "the default of a list must be `[]`"),
        ("input a: (f64, f64) = []; a.0", "only an optional input can have a default"),
        ("input a: dict[text, f64] = {\"a\": 1.0}; lookup(\"a\", a)", "the default of a dictionary must be `{}`"),
        ("input a: dict[text, f64] = []; lookup(\"a\", a)", "the default of a dictionary must be `{}`"),
    ] {
        assert_eq!(Model::parse(wrong).expect_err(wrong).diagnostics()[0].message(), says);
    }
}

/// An input dictionary that is omitted is empty if its default is `{}`.
#[test]
fn dictionaries_may_be_empty_by_default() {
    let text = "input k: text, rates: dict[text, f64] = {}, days: dict[i64, date] = {}
        output rate = lookup(k, rates, 0.5)
        output is_known = k in rates
        output day = lookup(7, days)
        test \"left out\" { k = \"a\" } => { rate = 0.5, is_known = missing, day = missing }
        test \"given\" { k = \"a\", rates = {\"a\": 2} } => { rate = 2, is_known = present }";
    let model = Model::parse(text).expect("a model");
    let printed = cembra::explain::print(model.program());
    assert!(
        printed.contains("rates: dict[text, f64] = {}\n") && printed.contains("days: dict[i64, date] = {}\n"),
        "{printed}"
    );
    assert_eq!(
        Model::parse(&printed).expect("what was printed").program(),
        Model::parse(text.split("test").next().expect("a model")).expect("a model").program()
    );
    let again = Model::from_binary(&model.to_binary()).expect("what was written is read");
    for backend in [Backend::Native, Backend::Interpreter] {
        let options = Options::default().backend(backend);
        assert_eq!(model.run_tests(&options).failures.len(), 0);
        for model in [&model, &again] {
            let executor = model.compile(&options).expect("compiled");
            assert_eq!(executor.inputs()[1].declaration(), "dict[text, f64] = {}");
            let made = executor.session().evaluate(&[Value::from("a")]).expect("values");
            assert_eq!(made, [Value::from(0.5), Value::Missing(Scalar::Unit), Value::Missing(Scalar::Date)]);
        }
    }
    let model = Model::parse("input k: text, rates: dict[text, f64] = {}; lookup(k, rates, 0.5)").expect("a model");
    for backend in [Backend::Native, Backend::Interpreter] {
        let options = Options::default().backend(backend);
        let mut rows = model.executor_from::<_, f64>(&cembra::json::JsonRows, &options).expect("an executor");
        let mut one = model.json_executor(&options).expect("an executor");
        let mut objects = model.executor_from::<_, f64>(&cembra::json::Json, &options).expect("an executor");
        let batch = model.batch(&options).expect("a batch");
        let mut columns = cembra::json::JsonColumns::new(&batch).expect("columns");
        let texts = ["{\"k\": \"a\"}", "{\"k\": \"a\", \"rates\": null}", "{\"k\": \"a\", \"rates\": {}}"];
        for (text, expected) in
            texts.map(|text| (text, 0.5)).into_iter().chain([("{\"k\": \"a\", \"rates\": {\"a\": 2}}", 2.0)])
        {
            assert_eq!(
                rows.run(&cembra::json::JsonRow::parse(text).expect("JSON")).expect("a rate"),
                expected,
                "{text}"
            );
            assert_eq!(one.run(text).expect("an answer"), format!("{{\"result\":{expected:?}}}"), "{text}");
            let object: serde_json::Value = serde_json::from_str(text).expect("JSON");
            assert_eq!(objects.run(&object).expect("a rate"), expected, "{text}");
            columns.push(text).expect("a row");
        }
        let made = columns.with(|columns| batch.run(columns)).expect("rates");
        let rates: Vec<_> = (0..4).map(|row| made[0].value(row).expect("a row")).collect();
        assert_eq!(rates, [0.5, 0.5, 0.5, 2.0].map(Value::from));
    }
    // Structs of Rust without the field.
    #[derive(cembra::Input)]
    struct Key<'t> {
        k: &'t str,
    }
    let mut executor = model.executor::<Key<'_>, f64>(&Options::default()).expect("an executor");
    assert_eq!(executor.run(&Key { k: "a" }).expect("a rate"), 0.5);
}
