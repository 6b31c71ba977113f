//! `docs/speed.md` is made from the records of the benchmarks. Set `CEMBRA_REWRITE` to write it instead of comparing.

use super::{hold, read};
use serde_json::Value as Json;
use std::fmt::Write as _;

/// The results of one run of `versus`.
struct Record {
    name: &'static str,
    results: Vec<Json>,
}

impl Record {
    fn read(name: &'static str) -> Record {
        let results = serde_json::from_str(&read(format!("benches/record/{name}.json"))).expect("JSON");
        Record { name, results }
    }

    fn result(&self, workload: &str, subject: &str, metric: &str) -> Option<&Json> {
        let is = |result: &&Json, key: &str, value: &str| result[key] == value;
        self.results.iter().find(|result| {
            is(result, "workload", workload) && is(result, "subject", subject) && is(result, "metric", metric)
        })
    }

    /// The best round.
    fn best(&self, workload: &str, subject: &str, metric: &str) -> Option<f64> {
        self.result(workload, subject, metric)?["min"].as_f64()
    }

    /// The middle round.
    fn median(&self, workload: &str, subject: &str, metric: &str) -> Option<f64> {
        self.result(workload, subject, metric)?["median"].as_f64()
    }
}

/// Three digits, or the whole number if it has more.
fn number(value: f64) -> String {
    match value {
        value if value >= 99.95 => thousands(value.round()),
        value if value >= 9.995 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

fn thousands(value: f64) -> String {
    let digits = format!("{value:.0}");
    let groups: Vec<&str> =
        digits.as_bytes().rchunks(3).rev().map(|group| std::str::from_utf8(group).expect("digits")).collect();
    groups.join(",")
}

/// A table with a line for each workload: what it is, a time, and how many times as long the subjects take.
fn ratios(
    page: &mut String,
    record: &Record,
    (metric, base): (&str, &str),
    workloads: &[(&str, &str)],
    subjects: &[(&str, &str)],
) {
    let unit = |name: &str| {
        subjects.iter().find(|(subject, _)| *subject == name).map_or(name.to_owned(), |(_, title)| (*title).to_owned())
    };
    let _ = write!(page, "| | model | {} |", unit(base));
    let others = || subjects.iter().filter(|(subject, _)| *subject != base);
    others().for_each(|(_, title)| _ = write!(page, " {title} |"));
    let _ = writeln!(page, "\n|---|---|{}", "---|".repeat(subjects.len()));
    for (workload, what) in workloads {
        let limit = record.best(workload, base, metric).unwrap_or_else(|| panic!("{workload} of {}", record.name));
        let _ = write!(page, "| {workload} | {what} | {} |", number(limit));
        for (subject, _) in others() {
            let cell =
                record.best(workload, subject, metric).map_or_else(|| "-".to_owned(), |time| number(time / limit));
            let _ = write!(page, " {cell} |");
        }
        page.push('\n');
    }
    page.push('\n');
}

const SCALAR: [(&str, &str); 5] = [
    ("S1", "`x * 2 + 1`"),
    ("S2", "roots of a quadratic, missing where there are none"),
    ("S3", "a score of ten optional inputs, with `log1p` and `exp`"),
    ("S4", "a sum of 77 products of 32 inputs"),
    ("S5", "twelve nested rules"),
];

const HEAD: &str = "\
# Speed

Times of models, of the same formulas by hand in Rust, and of other libraries. A test makes this page from
[records](../benches/record/README.md). Times are of the best round. [Benchmarks](../benches/README.md) says what is measured and how.

Compare ratios, which depend less on the machine than times. A ratio is a time divided by that of the code by hand; below 1 is faster. The code
by hand uses `if`, and is not a lower bound.

";

#[test]
fn the_page_of_speed_is_made_from_the_records() {
    let mut page = HEAD.to_owned();
    calls(&mut page);
    peers(&mut page);
    compiling(&mut page);
    rows(&mut page);
    arrays(&mut page);
    tensors(&mut page);
    texts(&mut page);
    user(&mut page);
    life(&mut page);
    page += RERUN;
    hold("docs/speed.md", &page);
}

fn calls(page: &mut String) {
    let record = Record::read("2026-11-21-scalar-6");
    *page += "\
## One call

Nanoseconds per call by hand, then ratios of cembra: the compiled function called on a struct; `ModelExecutor::run_into`, which programs call;
`Session::evaluate_into`, on values; and the interpreter.

";
    let subjects = [
        ("limit", "by hand, ns"),
        ("native", "compiled function"),
        ("native-typed", "`run_into`"),
        ("native-dynamic", "values"),
        ("interpreter", "interpreter"),
    ];
    ratios(page, &record, ("ns_per_call", "limit"), &SCALAR, &subjects);
    *page += "If each call waits for the result of the call before it:\n\n";
    ratios(page, &record, ("ns_per_call_dependent", "limit"), &SCALAR, &subjects);
    *page += "\
Record `2026-11-21-scalar-6`: an Intel Xeon, 2 processors of a virtual machine, quiet. The code by hand calls the platform's
`expf` and `log1pf`; with cembra's algorithms instead, S3 takes ";
    let inlined = record.best("S3", "limit-inlined", "ns_per_call").expect("a time");
    let _ = write!(page, "{} ns. `cargo bench-versus scalar`\n\n", number(inlined));
}

fn peers(page: &mut String) {
    let record = Record::read("2026-11-20-scalar-4");
    *page += "\
## Beside other libraries

Nanoseconds per call of `ModelExecutor::run_into`, then other libraries' times divided by it: fasteval 0.2, which has no missing values; exmex
0.21; cel 0.15, an implementation of CEL in Rust. A dash means that the library cannot express the model.

";
    let subjects = [
        ("native-typed", "cembra, ns"),
        ("interpreter", "cembra's interpreter"),
        ("fasteval", "fasteval"),
        ("exmex", "exmex"),
        ("cel", "cel"),
    ];
    ratios(page, &record, ("ns_per_call", "native-typed"), &SCALAR, &subjects);
    *page += "\
Record `2026-11-20-scalar-4`: an Intel Xeon, 2 processors of a virtual machine, quiet. There is no record of rhai, DataFusion or Arrow's
kernels. `cargo bench-versus-peers scalar`

";
}

fn compiling(page: &mut String) {
    let record = Record::read("2026-11-21-compile-6");
    *page += "\
## From text to a function

Microseconds of `Model::parse` and `Model::executor` together. C1k to C100k have a thousand to a hundred thousand operators; R100k has rules.

| model | interpreter | optimised code | quick code | code from a cache, without reading and planning |
|---|---|---|---|---|
";
    for workload in ["S1", "S2", "S3", "S4", "S5", "C1k", "C10k", "C100k", "R100k"] {
        let _ = write!(page, "| {workload} |");
        for (subject, metric) in
            [("interpreter", "us_total"), ("native", "us_total"), ("native-quick", "us_total"), ("native", "us_cached")]
        {
            let cell = record.best(workload, subject, metric).map_or_else(String::new, number);
            let _ = write!(page, " {cell} |");
        }
        page.push('\n');
    }
    *page += "
Record `2026-11-21-compile-6`, on the machine of `scalar-6`. `cargo bench-versus compile`

Microseconds beside other libraries, which interpret. Record `2026-11-20-compile-4`, on the machine of `2026-11-20-scalar-4`, so these times
cannot be compared with those of cembra above.

| model | cembra's interpreter | optimised code | quick code | fasteval | exmex | cel |
|---|---|---|---|---|---|---|
";
    let record = Record::read("2026-11-20-compile-4");
    for (workload, _) in SCALAR {
        let _ = write!(page, "| {workload} |");
        for subject in ["interpreter", "native", "native-quick", "fasteval", "exmex", "cel"] {
            let cell = record.best(workload, subject, "us_total").map_or_else(|| "-".to_owned(), number);
            let _ = write!(page, " {cell} |");
        }
        page.push('\n');
    }
    page.push('\n');
}

fn rows(page: &mut String) {
    let record = Record::read("2026-11-21-batch-2");
    *page += "\
## Many rows

Nanoseconds per row of code by hand over 100,000 rows in columns, on one thread (the best of AVX-512, AVX2 and the compiler's own vectors).
Then the ratios of cembra's batches, and of the compiled function for one row, called in a loop.

";
    let workloads = [
        ("B1", "`a * b + c`"),
        ("B2", "S2 over columns"),
        ("B3", "S3 over columns"),
        ("B4f32", "a logistic function of `f32`"),
        ("B4f64", "a logistic function of `f64`"),
        ("B5", "the Black-Scholes price of an option"),
        ("S5", "twelve nested rules"),
    ];
    let subjects = [("limit-inlined", "by hand, ns"), ("native-batch", "batch"), ("scalar-calls", "calls")];
    ratios(page, &record, ("ns_per_row_1e5", "limit-inlined"), &workloads, &subjects);
    *page += "\
Record `2026-11-21-batch-2`: an Intel Xeon with AVX-512, 2 processors of a busy virtual machine. So figures of two threads and of ten million
rows are not shown. `cargo bench-versus batch`

";
}

fn arrays(page: &mut String) {
    let record = Record::read("2026-11-21-arrays-3");
    *page += "\
## Arrays

Nanoseconds per element of code by hand in AVX-512, for 100,000 elements on one thread, then cembra's ratio.

";
    let workloads = [
        ("A1", "the sum of `x * y` where `x` is positive"),
        ("A2", "standard scores, by mean and deviation"),
        ("A3", "sum, mean and count by group, from a mapping"),
        ("A4", "softmax within contiguous groups"),
        ("A5", "running sum and running maximum"),
        ("A6", "index of the maximum, median, ninth decile by group"),
        ("A7", "sum and mean of a logistic curve in `f32`"),
        ("A8", "number of elements over two deviations from their group's mean"),
    ];
    ratios(page, &record, ("ns_per_row_1e5", "limit"), &workloads, &[("limit", "by hand, ns"), ("cembra", "cembra")]);
    let request = |subject| number(record.best("Q20", subject, "ns_per_call").expect("a time"));
    let _ = write!(
        page,
        "A request of ten arrays of 20 elements, three sums by group and a softmax, takes {} ns in cembra and {} ns by hand.\n\n\
         Record `2026-11-21-arrays-3` does not name the machine; earlier ones of that day are of an Intel Xeon with AVX-512, 2 processors of a \
         virtual\nmachine, quiet. `cargo bench-versus arrays`\n\n",
        request("cembra"),
        request("limit"),
    );
}

fn tensors(page: &mut String) {
    let record = Record::read("2026-11-23-tensor-2");
    *page += "\
## Tensors

The limit is the time of faer (for products by labels, with the same numbers of rows, columns and terms) or of loops by hand, compiled for the
processor, on one thread. Then cembra's ratio.

";
    let workloads = [
        ("product-64-f32", "64 x 64 matrices, `f32`"),
        ("product-64-f64", "64 x 64 matrices, `f64`"),
        ("product-512-f32", "512 x 512 matrices, `f32`"),
        ("product-512-f64", "512 x 512 matrices, `f64`"),
        ("product-1024-f32", "1,024 x 1,024 matrices, `f32`"),
        ("product-1024-f64", "1,024 x 1,024 matrices, `f64`"),
        ("ijk,kl->ijl", "`ijk,kl->ijl`, extents 128, `f32`"),
        ("ijk,jl->lik", "`ijk,jl->lik`"),
        ("bij,bjk->bik", "`bij,bjk->bik`"),
        ("ijk,ikl->jil", "`ijk,ikl->jil`"),
        ("relu(2ab+bias)-512-f32", "`relu(2ab + bias)`, 512 x 512, `f32`; limit: the product"),
        ("chain-1e3", "`(a * b + c) * d - a`, 1,000 elements, `f64`"),
        ("chain-1e5", "100,000 elements"),
        ("chain-1e7", "10,000,000 elements"),
        ("sum(a*b)-1e3", "the sum of `a * b`, 1,000 elements, `f64`"),
        ("sum(a*b)-1e5", "100,000 elements"),
        ("sum(a*b)-1e7", "10,000,000 elements"),
        ("softmax-cross-entropy-4096x1024", "softmax cross-entropy, 4096 x 1024, `f32`"),
    ];
    ratios(page, &record, ("us_per_run", "limit"), &workloads, &[("limit", "limit, us"), ("cembra", "cembra")]);
    let small = |metric| record.best("3x3-and-bias", "cembra", metric).expect("a time");
    let node = |metric| number(record.best("nodes-10000", "cembra", metric).expect("a time"));
    let loss = |subject| record.median("softmax-cross-entropy-4096x1024", subject, "us_per_run").expect("a time");
    let _ = write!(
        page,
        "Both sides keep memory for results between runs. A call on 1,000 elements also checks its inputs. Of the median times, the ratio of\n\
         softmax cross-entropy is {}.\n\n\
         | | |\n|---|---|\n\
         | a product of 3 x 3 with a bias: from the text of a model to the first result | {} us |\n\
         | a call in a session, of a graph; of a model in text | {} ns; {} ns |\n\
         | such calls without sessions | {} ns; {} ns |\n\
         | rewriting; planning, per node | {} us; {} us |\n\
         | planning a product of thirty factors in a chain | {} us |\n\n\
         Record `2026-11-23-tensor-2`: an AMD EPYC, 2 processors of a virtual machine, quiet. `cargo bench-versus tensor`\n\n",
        number(loss("cembra") / loss("limit")),
        number(small("us_text_to_first_result")),
        number(small("ns_per_call_of_session")),
        number(small("ns_per_call_of_model_session")),
        number(small("ns_per_call")),
        number(small("ns_per_call_of_model")),
        node("us_to_rewrite"),
        node("us_to_plan"),
        number(record.best("factors-30", "cembra", "us_to_plan_chain").expect("a time")),
    );
}

fn texts(page: &mut String) {
    let record = Record::read("2026-11-21-texts-1");
    *page += "\
## Texts

Nanoseconds per call by hand of formulas that compare texts, then ratios. Each call of cembra copies the texts' addresses and lengths, which is
most of `Equal`.

";
    let workloads = [
        ("T1", "ten factors of a price, by rules over six texts"),
        ("T2", "six factors, by search in texts, their length and order"),
        ("Equal", "`tier == \"gold\"`"),
    ];
    let subjects = [("limit", "by hand, ns"), ("native-typed", "`run_into`"), ("interpreter", "interpreter")];
    ratios(page, &record, ("ns_per_call", "limit"), &workloads, &subjects);
    *page += "\
Record `2026-11-21-texts-1` does not name the machine. `cargo bench-versus texts`

";
}

fn user(page: &mut String) {
    let record = Record::read("2026-11-20-user-3");
    *page += "\
## Operators of your own

Nanoseconds per call of a Rust function through a pointer. Then the ratios of a model that only calls the function: as an operator of the
library, as a closure of the user, and as a closure that may fail.

";
    let workloads = [
        ("U1", "the remainder of two `f64`"),
        ("U2", "the remainder of optional `f64`"),
        ("U3", "a quantile of the normal distribution"),
    ];
    let subjects = [
        ("limit", "by hand, ns"),
        ("built-in", "of the library"),
        ("closure", "a closure"),
        ("fallible", "one that may fail"),
    ];
    ratios(page, &record, ("ns_per_call", "limit"), &workloads, &subjects);
    *page += "\
Record `2026-11-20-user-3`: an Intel Xeon, 2 processors of a virtual machine, quiet. U3 refuses some arguments, so it has no plain
closure. `cargo bench-versus user`

";
}

fn life(page: &mut String) {
    let native = Record::read("2026-11-20-life-native-2");
    let interpreter = Record::read("2026-11-20-life-interpreter-2");
    *page += "\
## Ten thousand models

Medians for ten thousand different small models in one process at once. Each has six `f64` inputs, one output and about ten operators. A model
of 30 operators with texts, tables and dates takes 24 to 29 KB.

| | compiled | interpreted |
|---|---|---|
";
    for (metric, what) in [
        ("us_load", "from text to a callable model, us"),
        ("ns_first_call", "the first call, ns"),
        ("ns_call", "a call after calls of all others, ns"),
        ("ns_warm_call", "a second call right after, ns"),
        ("us_drop", "dropping it, us"),
        ("resident_bytes_per_model", "memory of the process per model, bytes"),
    ] {
        let cell = |record: &Record, subject| number(record.median("life", subject, metric).expect("a time"));
        let _ = writeln!(page, "| {what} | {} | {} |", cell(&native, "native"), cell(&interpreter, "interpreter"));
    }
    let clock = number(native.median("life", "clock", "ns_clock").expect("a time"));
    let _ = write!(
        page,
        "\nTimes include reading the clock, {clock} ns. Records `2026-11-20-life-native-2` and `2026-11-20-life-interpreter-2`: an Intel Xeon, \
         2\nprocessors of a virtual machine, quiet. `cargo bench-versus life --models 10000`\n\n",
    );
}

const RERUN: &str = "\
## Measuring again

```sh
cargo bench-versus scalar
cargo bench-versus compile
cargo bench-versus batch --most-rows 100000
cargo bench-versus arrays --most-rows 100000
cargo bench-versus tensor
cargo bench-versus texts
cargo bench-versus user
cargo bench-versus life --models 10000
cargo bench-versus-peers scalar   # with the other libraries
```

`--json FILE` writes a record. Before anything is timed, every subject must give the expected outputs.
";
