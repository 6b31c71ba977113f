//! Tests short models that need far more memory than their limit allows. Values are counted before memory is allocated
//! for them, and while they are computed.

use crate::{alone, peak};
use cembra::columns::{InputColumn, ListOffsets};
use cembra::{Backend, FaultKind, Limits, Model, Options, RunOptions, Value};

const LIMIT: u64 = 32 << 20;

/// Returns the number of kibibytes by which the process may grow: the limit plus a quarter, and 100 MiB for the library
/// and its stacks. There is no bound under a sanitizer, which keeps freed memory to find late reads.
fn beyond() -> usize {
    let is_watched = std::env::var_os("CEMBRA_WATCHED").is_some();
    if is_watched { usize::MAX } else { (LIMIT as usize / 1024) * 5 / 4 + (100 << 10) }
}

fn options(backend: Backend) -> Options {
    Options::default().backend(backend).limits(Limits::default().array_bytes(LIMIT))
}

/// Models that once took from 1 to 10 GiB before they failed, or that ended the process.
#[test]
fn a_short_model_takes_no_more_memory_than_the_limit() {
    let _alone = alone();
    let models = [
        // A million strings of 50,000 bytes.
        "input n: i64; let s = strings.as_text(array.iota(array.make_dense_array_shape(n)) + 123456789)
         let a = s + s + s + s + s + s + s + s + s; let b = a + a + a + a + a + a + a + a + a
         array.count(b + b + b + b + b + b + b + b)",
        "input n: i64; math.sum(array.iota(array.make_dense_array_shape(3)), into=edge.from_mapping([0, 1, 0], n * 200))",
        "input n: i64; math.var(array.iota(array.make_dense_array_shape(3)), into=edge.from_mapping([0, 1, 0], n * 200))",
        "input n: i64; array.count(array.iota(array.make_dense_array_shape(3)), into=edge.from_mapping([0, 1, 0], n * 200))",
        "input n: i64; math.cum_sum(array.iota(array.make_dense_array_shape(3)), over=edge.from_mapping([0, 1, 0], n * 200))",
        "input n: i64; array.count(array.iota(array.make_dense_array_shape(n * 200)))",
        "input n: i64; array.size(array.shaped(5, array.make_dense_array_shape(n * 200)))",
        "input n: i64; array.size(array.expand([1, 2], edge.from_sizes([n * 100, n * 100])))",
        "input n: i64; array.size(edge.mapping(edge.from_sizes([n * 100, n * 100])))",
        "input n: i64; array.size(edge.sizes(edge.from_mapping([0, 1], n * 200)))",
        "input n: i64; array.size(array.from_indices_and_values([0, 1], [5, 6], n * 200))",
        "input n: i64; array.size(array.randint_with_shape(array.make_dense_array_shape(n * 200), 0, 5, 1))",
        // Strings that are written out often: LONG is one of 196 bytes.
        "input n: i64; array.size(array.shaped(LONG, array.make_dense_array_shape(n)))",
        "input n: i64; array.size(core.const_with_shape(array.make_dense_array_shape(n), LONG))",
        "input n: i64; array.size(array.expand([LONG, LONG], edge.from_sizes([n // 3, n // 3])))",
        "input n: i64; array.size([LONG][array.iota(array.make_dense_array_shape(n)) * 0])",
        "input n: i64; array.size(array.take([LONG, LONG], array.iota(array.make_dense_array_shape(n)) * 0))",
        "input n: i64; let s = array.shaped(LONG, array.make_dense_array_shape(n // 10))
         array.size(core.get_first(array.interleave(s, s, s, s, s, s, s, s, s, s, s, s, s, s, s, s)))",
        "input n: i64; array.size(core.get_first(strings.split(array.shaped(LONG, array.make_dense_array_shape(n // 10)), \"\")))",
        "input n: i64; array.size(core.get_first(strings.findall_regex(
         array.shaped(LONG, array.make_dense_array_shape(n // 10)), \"((((((((((.+))))))))))\")))",
        "input n: i64; strings.length(strings.agg_join(array.shaped(\"\", array.make_dense_array_shape(n)), sep=LONG))",
        "input n: i64; array.count(random.sample(array.make_dense_array_shape(n * 100), 0.5, 1))",
        "input n: i64; array.count(random.sample_n(array.make_dense_array_shape(n * 50), 10, 1))",
        "input n: i64; array.size(edge.mapping(edge.pair_right([n // 100])))",
        "input n: i64; array.size(edge.mapping(edge.compose(edge.from_mapping([0], 1), edge.from_sizes([n * 100]))))",
    ];
    let long = format!("\"{}\"", "a text of ten ".repeat(14));
    for text in models {
        let text = &*text.replace("LONG", &long);
        for backend in [Backend::Native, Backend::Interpreter] {
            let executor = Model::parse(text).and_then(|model| model.compile(&options(backend))).expect(text);
            let mut session = executor.session();
            let before = peak();
            let error = session.evaluate(&[Value::from(1_000_000_i64)]).expect_err(text);
            let taken = peak().saturating_sub(before);
            assert_eq!(error.fault_kind(), Some(FaultKind::ArenaLimit), "{text}: {error}");
            assert!(taken < beyond(), "{text}: {taken} KiB on {backend:?}, {error}");
            // And few are made.
            assert!(session.evaluate(&[Value::from(10_i64)]).is_ok(), "{text}");
        }
    }
}

/// Lists and their strings count for the limit also when rows are evaluated one by one.
#[test]
fn lists_of_rows_take_no_more_memory_than_the_limit() {
    let _alone = alone();
    // Texts of which some ten thousand rows are more than the limit.
    let long = format!("\"{}\"", "and a text of ten ".repeat(20));
    let texts = [
        "input n: [i64]; array.iota(array.make_dense_array_shape(array.size(n) * 250000))",
        "input n: [i64]; strings.as_text(n + 1) + LONG",
        "input n: [i64]; strings.agg_join(strings.as_text(n + 1) + LONG, sep=';')",
    ];
    let elements = vec![100_i64; 400_000];
    let column = InputColumn::values(&elements);
    for text in texts {
        let text = &*text.replace("LONG", &long);
        for backend in [Backend::Native, Backend::Interpreter] {
            let batch = Model::parse(text).and_then(|model| model.batch(&options(backend))).expect(text);
            let rows = |rows: usize| {
                let lists = InputColumn::lists(ListOffsets::Fixed { size: 4, rows }, &column);
                batch.run_with(&RunOptions::new().threads(2), &[lists])
            };
            assert_eq!(rows(2).unwrap().columns[0].rows(), 2);
            let before = peak();
            let error = rows(100_000).expect_err(text);
            let taken = peak().saturating_sub(before);
            assert_eq!(error.fault_kind(), Some(FaultKind::ArenaLimit), "{text}: {error}");
            assert!(taken < beyond(), "{text}: {taken} KiB on {backend:?}, {error}");
        }
    }
}

/// Results that are wider than their inputs count by their own size. These models once took from four to thirty-two
/// times the limit.
#[test]
fn wide_values_of_rows_take_no_more_memory_than_the_limit() {
    let _alone = alone();
    let numbers = vec![100_i64; 200_000];
    let flags = vec![true; 8_000_000];
    let fields = ["n"; 20].join(", ");
    let texts = [
        // 20 values of 32 bytes for each row.
        (format!("input n: i64; ({fields})"), false),
        ("input n: [bool]; core.where(n == true, 1i64, 2i64)".to_owned(), true),
        ("input n: [bool]; array.iota(array.make_dense_array_shape(array.size(n)))".to_owned(), true),
    ];
    for (text, is_list) in &texts {
        for backend in [Backend::Native, Backend::Interpreter] {
            let batch = Model::parse(text).and_then(|model| model.batch(&options(backend))).expect(text);
            let rows = |rows: usize| {
                let column = InputColumn::values(&flags);
                let column = match is_list {
                    true => InputColumn::lists(ListOffsets::Fixed { size: 1000, rows: rows / 25 }, &column),
                    false => InputColumn::values(&numbers[..rows]),
                };
                batch.run_with(&RunOptions::new().threads(2), &[column])
            };
            assert!(rows(100).unwrap().columns[0].value(1).is_some());
            let before = peak();
            let error = rows(200_000).map(drop).expect_err(text);
            let taken = peak().saturating_sub(before);
            assert_eq!(error.fault_kind(), Some(FaultKind::ArenaLimit), "{text}: {error}");
            assert!(taken < beyond(), "{text}: {taken} KiB on {backend:?}, {error}");
        }
    }
}

/// Strings that no later step reads are freed during the run. This sequence of slices once kept all of its arrays to
/// the end: 220 MB.
#[test]
fn strings_that_nobody_needs_are_given_back() {
    let _alone = alone();
    let mut text = format!(
        "input n: i64; let s0 = array.shaped(\"{}\", array.make_dense_array_shape(n))",
        "a text of ten ".repeat(14)
    );
    (0..20).for_each(|at| text += &format!("\nlet s{} = array.slice(s{at}, 0, -1)", at + 1));
    text += "\narray.size(s20)";
    for backend in [Backend::Native, Backend::Interpreter] {
        let executor = Model::parse(&text).and_then(|model| model.compile(&options(backend))).expect("it is right");
        let before = peak();
        let made =
            executor.session().evaluate(&[Value::from(50_000_i64)]).expect("two arrays at a time are within the limit");
        let taken = peak().saturating_sub(before);
        assert_eq!(made, [Value::from(50_000_i64)]);
        assert!(taken < beyond(), "{taken} KiB on {backend:?}");
    }
}

/// A pass over groups keeps a whole group in memory, however large. Here, 80 intermediate columns for one group of
/// 300,000 elements would take 190 MB, so they must not be kept at the same time.
#[test]
fn a_large_group_takes_no_more_memory_than_the_limit() {
    let _alone = alone();
    let mut text =
        "input n: i64; let a0 = array.iota(array.make_dense_array_shape(n)); let e = edge.from_sizes([n])".to_owned();
    (0..40).for_each(|at| text += &format!("\nlet a{} = a{at} - array.expand(math.sum(a{at}, e), over=e)", at + 1));
    text += "\nmath.sum(a40, e)";
    for backend in [Backend::Native, Backend::Interpreter] {
        let executor = Model::parse(&text).and_then(|model| model.compile(&options(backend))).expect("it is right");
        let mut session = executor.session();
        // The sum of the elements less their sum, forty times.
        let sum = |n: i64| (0..40).fold(n * (n - 1) / 2, |sum, _| sum.wrapping_sub(n.wrapping_mul(sum)));
        for n in [10, 300_000, 1000] {
            let before = peak();
            let made = session.evaluate(&[Value::from(n)]).expect("four arrays at a time are within the limit");
            let taken = peak().saturating_sub(before);
            assert_eq!(made[0].to_string(), format!("[{}]", sum(n)));
            assert!(taken < beyond(), "{taken} KiB on {backend:?}");
        }
    }
}
