//! Prints the tests of a model as text. Reading the text gives the same tests, except for spans. Tests are printed after the model. Their original
//! layout is not kept; the formatter can improve it.

use super::spelling::Spelling;
use super::{lexer, quoted, written_literal};
use crate::model_test::{Expected, Literal, ModelTest, TestCase, TestValue};
use cembra_value::{ScalarValue, Value};

/// Appends tests to `out`, each followed by a line end. If the cases of a test name different inputs or outputs, or if all cases expect errors,
/// each case is printed as a test of its own.
pub(super) fn write_tests(out: &mut String, tests: &[ModelTest]) {
    for test in tests {
        match (&test.cases[..], test.cases.first().zip(columns(&test.cases))) {
            ([_, _, ..], Some((first, outputs))) => write_table(out, test, first, outputs),
            ([], _) => {
                write_head(out, test);
                out.push_str("{ => }\n");
            }
            (cases, _) => {
                for case in cases {
                    write_head(out, test);
                    write_values(out, &case.inputs);
                    out.push_str(" => ");
                    match &case.expected {
                        Expected::Outputs(values) => write_values(out, values),
                        Expected::Error(code) => write_error(out, code),
                    }
                    out.push('\n');
                }
            }
        }
    }
}

/// Returns the outputs of the first case that has any, if all cases have the same names in the same order. Then they can be printed as a table.
fn columns(cases: &[TestCase]) -> Option<&[TestValue]> {
    let (inputs, columns) = cases.iter().find_map(|case| match &case.expected {
        Expected::Outputs(values) => Some((&case.inputs, values)),
        Expected::Error(_) => None,
    })?;
    let is_row = |case: &TestCase| {
        let is_expected = match &case.expected {
            Expected::Outputs(values) => have_same_names(values, columns),
            Expected::Error(_) => true,
        };
        is_expected && have_same_names(&case.inputs, inputs)
    };
    (!columns.is_empty() && cases.iter().all(is_row)).then_some(columns)
}

fn have_same_names(a: &[TestValue], b: &[TestValue]) -> bool {
    a.iter().map(|value| &value.name).eq(b.iter().map(|value| &value.name))
}

fn write_table(out: &mut String, test: &ModelTest, first: &TestCase, outputs: &[TestValue]) {
    write_head(out, test);
    out.push_str("{\n    ");
    separated(out, &first.inputs, write_name);
    out.push_str(" => ");
    separated(out, outputs, write_name);
    out.push('\n');
    for case in &test.cases {
        out.push_str("    ");
        separated(out, &case.inputs, write_row_value);
        out.push_str(" => ");
        match &case.expected {
            Expected::Outputs(values) => separated(out, values, write_row_value),
            Expected::Error(code) => write_error(out, code),
        }
        out.push('\n');
    }
    out.push_str("}\n");
}

fn write_head(out: &mut String, test: &ModelTest) {
    out.push_str("test ");
    let _never_fails = quoted::write(out, &test.name);
    if test.within != 0.0 {
        out.push_str(&format!(" within {:e}", test.within));
    }
    out.push(' ');
}

fn write_error(out: &mut String, code: &str) {
    out.push_str("error ");
    let _never_fails = quoted::write(out, code);
}

/// Writes values such as `{ x = 1, y = 2 }`.
fn write_values(out: &mut String, values: &[TestValue]) {
    out.push_str("{ ");
    separated(out, values, |out, value| {
        write_name(out, value);
        out.push_str(" = ");
        write_literal(out, &value.literal);
    });
    out.push_str(if values.is_empty() { "}" } else { " }" });
}

fn separated(out: &mut String, values: &[TestValue], mut write: impl FnMut(&mut String, &TestValue)) {
    for (at, value) in values.iter().enumerate() {
        if at > 0 {
            out.push_str(", ");
        }
        write(out, value);
    }
}

fn write_name(out: &mut String, value: &TestValue) {
    if lexer::is_plain_name(&value.name) {
        out.push_str(&value.name);
    } else {
        let _never_fails = quoted::write(out, &value.name);
    }
}

fn write_row_value(out: &mut String, value: &TestValue) {
    write_literal(out, &value.literal);
}

fn write_literal(out: &mut String, literal: &Literal) {
    match literal {
        Literal::Typed(Value::Scalar(value @ (ScalarValue::Int32(_) | ScalarValue::Int64(_)))) => {
            let _never_fails = written_literal::write_bare(out, value);
            out.push_str(value.scalar().short_name());
        }
        Literal::One(value) | Literal::Typed(value) => {
            let _never_fails = written_literal::write_value(out, value, Spelling::Text);
        }
        Literal::Elements(values) => {
            out.push('[');
            for (at, value) in values.iter().enumerate() {
                if at > 0 {
                    out.push_str(", ");
                }
                let _never_fails = written_literal::write_value(out, value, Spelling::Text);
            }
            out.push(']');
        }
    }
}

/// Returns a literal as text that [`Literal::parse`] can read.
///
/// ```
/// use cembra_expr::{Literal, print_literal};
///
/// let literal = Literal::parse("[1, missing,0.5]").unwrap();
/// assert_eq!(print_literal(&literal), "[1, missing, 0.5]");
/// ```
#[must_use]
pub fn print_literal(literal: &Literal) -> String {
    let mut out = String::new();
    write_literal(&mut out, literal);
    out
}
