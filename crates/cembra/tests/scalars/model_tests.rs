//! Tests the tests in a model's text: which cases pass, which fail, and the messages, in both backends.

use cembra::testing::{Mismatch, TestReport};
use cembra::{Backend, Model, Options};

fn both(text: &str) -> TestReport {
    let model = Model::parse(text).expect("a model");
    let [first, second] =
        [Backend::Interpreter, Backend::Native].map(|backend| model.run_tests(&Options::default().backend(backend)));
    assert_eq!(format!("{first:?}"), format!("{second:?}"));
    first
}

/// Runs the tests of a model, and returns the reasons of failures as text, each with the text of its case.
fn failures(text: &str) -> Vec<String> {
    let told = |mismatch: &Mismatch| match mismatch {
        Mismatch::Output { name, expected, found } => format!("{name}: {expected}, {found}"),
        Mismatch::Error { expected, found } => {
            let found = found.as_ref().map_or("none".to_owned(), |error| error.code().to_owned());
            format!("error {}, {found}", expected.as_deref().unwrap_or("none"))
        }
        Mismatch::Unfit(problem) => problem.to_string(),
        other => format!("{other:?}"),
    };
    let report = both(text);
    let lines = report.failures.iter().map(|failure| {
        let why: Vec<_> = failure.mismatches.iter().map(told).collect();
        format!("{} | {}", failure.span.text(text), why.join(" | "))
    });
    lines.collect()
}

#[test]
fn what_is_expected_passes() {
    let report = both(
        r#"
input age: f64? = 30, income: i64?, who: text
let test = 2.0
output score = age * test
output rich = income > 1_000
output say = strings.join("hello ", who)
output third = 1 // income

test "values are cast" { age = 4, who = "Ann", income = 7 } => { score = 8, say = 'hello Ann', rich = missing }
test "what may be missing need not be given" { who = "Bob" } => { score = 60.0, rich = missing }
test "only what the outputs need" { income = 2000 } => { rich = present }
test "errors" { income = 0, who = "" } => error "div-by-zero"
test "codes in either spelling" { income = 0, who = "" } => error "div-by-zero"
test "tables" {
    age, income => score, rich
    1,   1001   => 2,     present   # a comment
    missing, missing => 60, missing

    -0.5, 5 => -1, missing; 0, 5 => -0.0, missing
}
test "of errors too" {
    income => third
    0      => error "div_by_zero"
    3      => 0
}
test "nothing" { who = "" } => { }
"#,
    );
    assert_eq!((report.cases, report.failures.len()), (12, 0), "{report:?}");
}

#[test]
fn types_of_undeclared_inputs_are_those_of_the_test() {
    assert!(
        failures("output y = x + x; test \"a\" { x = 1 } => { y = 2 }; test \"b\" { x = 0.5 } => { y = 1 }").is_empty()
    );
    let text = "output y = x ?? 7\ntest \"a\" {\n x => y\n 1 => 1\n missing => 7\n 3000000000 => 3000000000 }";
    assert!(failures(text).is_empty());
}

#[test]
fn tolerance_is_of_floats_only() {
    let text = "input x: f64; output y = (x, x * 1e6); test \"t\" within 1e-3 { x = 1 } => { y = (1.0005, 1000900) }";
    assert!(failures(text).is_empty());
    let exact = text.replace(" within 1e-3", "");
    assert_eq!(failures(&exact).len(), 1);
    let too_far = text.replace("1.0005", "1.0011");
    assert_eq!(failures(&too_far).len(), 1);
    let found = failures("input x: i32; output y = x; test \"t\" within 10 { x = 1 } => { y = 2 }");
    assert_eq!(found, ["{ x = 1 } => { y = 2 } | y: 2, 1"]);
    // No tolerance makes a number of what is none.
    let found = failures(
        "input x: f64; output y = x; test \"t\" within 10 {\nx => y\nnan => 1\ninf => 1\nnan => nan\ninf => inf\n1 => inf\n1 => -inf }",
    );
    assert_eq!(
        found,
        ["nan => 1 | y: 1.0, nan", "inf => 1 | y: 1.0, inf", "1 => inf | y: inf, 1.0", "1 => -inf | y: -inf, 1.0"]
    );
}

#[test]
fn arrays_are_compared_element_by_element() {
    let model = "input x: [f64?]; output y = x * 2.0; test \"t\" within 1e-6 { x = [1, missing, 0.5] } => { y = [2.0000001, missing, 1] }";
    assert!(failures(model).is_empty());
    let found = failures(&model.replace("missing, 1]", "0.0, 1]"));
    assert_eq!(found.len(), 1, "{found:?}");
}

#[test]
fn what_is_not_expected_is_told() {
    let model = "input x: i32; output y = 6 // x; output z: f32 = x\n";
    let of = |test: &str| failures(&format!("{model}{test}"));
    assert_eq!(
        of("test \"a\" { x = 2 } => { z = 2.5, y = 4 }"),
        ["{ x = 2 } => { z = 2.5, y = 4 } | z: 2.5, 2.0 | y: 4, 3"]
    );
    assert_eq!(of("test \"a\" { x = 0 } => { y = 4 }"), ["{ x = 0 } => { y = 4 } | error none, div-by-zero"]);
    assert_eq!(
        of("test \"a\" { x = 1 } => error \"div-by-zero\""),
        ["{ x = 1 } => error \"div-by-zero\" | error div-by-zero, none"]
    );
    assert_eq!(
        of("test \"a\" { x = 0 } => error \"cast_range\""),
        ["{ x = 0 } => error \"cast_range\" | error cast_range, div-by-zero"]
    );
    assert_eq!(of("test \"a\" { x = 2 } => { y = \"a\" }"), ["{ x = 2 } => { y = \"a\" } | y: \"a\", 3"]);
    assert_eq!(
        of("test \"a\" { x = 0.5 } => { y = 1 }"),
        ["{ x = 0.5 } => { y = 1 } | input `x` is i32, and the test gives it `0.5`"]
    );
    assert_eq!(
        of("test \"a\" {} => { y = 1 }"),
        ["{} => { y = 1 } | input `x` is i32, and the test gives it no value"]
    );
    assert!(of("test \"a\" { xx = 1 } => { y = 1 }")[0].starts_with("\"a\" | the model has no input `xx`"));
    assert!(of("test \"a\" { x = 1 } => { yy = 1 }")[0].starts_with("\"a\" | the model has no output `yy`"));
}

#[test]
fn tests_that_are_none_are_refused() {
    for (test, says) in [
        ("test \"a\" { x = 1 } { y = 1 }", "expected `=>` between the inputs and the outputs of the test"),
        ("test \"a\" { x = 1 } => 5", "expected `{` and the outputs, or `error` and a code in quotes, found `5`"),
        ("test \"a\" { x = 1 + 1 } => { y = 1 }", "expected `,` or `}`, found `+`"),
        ("test \"a\" { x = y } => { y = 1 }", "expected a literal, found `y`"),
        ("test \"a\" within { x = 1 } => { y = 1 }", "expected a number, as in `within 1e-9`, found `{`"),
        ("test \"a\" {\n x => y\n 1, 2 => 1 }", "expected `=>` between the inputs and the outputs of the test"),
        ("test \"a\" {\n x => y\n 1 => 1, 2 }", "expected the end of the line, or `;`, found `,`"),
        ("test \"a\" {\n x, z => y\n 1 => 1 }", "expected `,` and the value of `z`, found `=`"),
        ("test \"a\" { x = 1 } => { y = 1", "this bracket is never closed"),
    ] {
        let error = Model::parse(&format!("output y = x\n{test}")).unwrap_err();
        assert_eq!(error.diagnostics()[0].message(), says, "{test}");
    }
    // A word like any other elsewhere.
    assert!(Model::parse("let test = 1; let within = test; within + test").unwrap().test_names().next().is_none());
}

/// Every kind of failure has a message at the place of its case. If the evaluation fails, the message also shows the
/// place of the failing operator.
#[test]
fn an_error_says_all_that_is_wrong_and_where() {
    let text = "input x: i32
output y = 6 // x
test \"other\" { x = 2 } => { y = 4 }
test \"fails\" { x = 0 } => { y = 1 }
test \"passes\" { x = 2 } => { y = 3 }
test \"no error\" { x = 1 } => error \"div-by-zero\"
test \"another error\" { x = 0 } => error \"cast-range\"
test \"unfit\" { x = 0.5 } => { y = 1 }";
    let error = both(text).check().expect_err("failures");
    assert_eq!(error.code(), "failed-test");
    let place = |span: Option<cembra::errors::Span>| span.map_or_else(String::new, |span| span.text(text).to_owned());
    let problems = error.diagnostics();
    let found: Vec<(&str, String)> = problems.iter().map(|one| (one.message(), place(one.span()))).collect();
    let case = |place: &str| place.to_owned();
    assert_eq!(
        found,
        [
            ("test \"other\" fails: `y` must be 4, but is 3", case("{ x = 2 } => { y = 4 }")),
            ("test \"fails\" fails: math.floor_divide: division by zero", case("{ x = 0 } => { y = 1 }")),
            (
                "test \"no error\" fails: expected the error `div-by-zero`, found no error",
                case("{ x = 1 } => error \"div-by-zero\"")
            ),
            (
                "test \"another error\" fails: expected the error `cast-range`, found the error `div-by-zero`",
                case("{ x = 0 } => error \"cast-range\"")
            ),
            ("test \"unfit\" fails: input `x` is i32, and the test gives it `0.5`", case("{ x = 0.5 } => { y = 1 }")),
        ]
    );
    let shown = error.render(text);
    assert_eq!(shown.matches("it fails here").count(), 2, "{shown}");
    assert!(both("input x: i32; output y = x; test \"a\" { x = 1 } => { y = 1 }").check().is_ok());
}

#[test]
fn optional_fields_and_optional_structs_may_be_left_out() {
    let model = "input items: [{price: f64, paid: bool?, tag: {name: text}?}], limit: {most: f64, of: text?}?
        output total = sum(items.price)
        output paid = array.count(items.paid == true)
        output tagged = array.count(items.tag.name)
        output most = limit.most ?? 100.0
        output first = {price: limit.most, tag: limit.of}\n";
    let of = |test: &str| failures(&format!("{model}{test}"));
    for passes in [
        "test \"a\" { items = [{price: 1.5}, {paid: true, price: 2}] } => { total = 3.5, paid = 1, most = 100 }",
        "test \"a\" { items = [{price: 1, tag: {name: 'x'}}], limit = {most: 5} } => { total = 1, tagged = 1, most = 5 }",
        "test \"a\" { items = [], limit = missing } => { total = 0, tagged = 0, most = 100 }",
        "test \"a\" {\n items, limit => paid, most, first\n [{price: 1, paid: false}], {of: 'a', most: 2} => 0, 2, {price: 2, tag: 'a'}\n }",
        "test \"a\" { } => error \"binding\"",
    ] {
        let found = of(passes);
        // The list is no optional field: it has to be there.
        let expected = usize::from(passes.contains("{ }"));
        assert_eq!(found.len(), expected, "{passes}: {found:?}");
    }
    let unfit = |items: &str| {
        let found = of(&format!("test \"a\" {{ items = {items} }} => {{ total = 1 }}"));
        found[0].split_once("and the test gives it ").expect("a message").1.to_owned()
    };
    assert_eq!(unfit("[{price: 1}, {paid: true}]"), "`[{price: 1}, {paid: true}]`: element 1 lacks `price`");
    assert_eq!(
        unfit("[{price: 1, cost: 2}]"),
        "`[{price: 1, cost: 2}]`: element 0 has `cost`, which is not a field of the type"
    );
    assert_eq!(
        unfit("[{price: 1, tag: {x: 1}}]"),
        "`[{price: 1, tag: {x: 1}}]`: `tag` of element 0 has `x`, which is not a field of the type"
    );
    assert_eq!(unfit("[{price: \"1\"}]"), "`[{price: \"1\"}]`: `price` of element 0 is text, not f64");
    let found = of("test \"a\" { items = [], limit = {of: \"x\"} } => { most = 1 }");
    assert!(found[0].ends_with("and the test gives it `{of: \"x\"}`: it lacks `most`"), "{found:?}");
}
