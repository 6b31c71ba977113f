//! The tests in a model's text: values of inputs, and the expected outputs. They do not affect the meaning of a model: equal programs may have
//! different tests, and model files (protobuf) store none.

use crate::text::parse_literal;
use cembra_value::{Error, Span, Value};
use std::sync::Arc;

/// A literal in a test, which gives the value of an input or an output. The literal has the type of that input or
/// output.
#[derive(Clone, PartialEq, Debug)]
pub enum Literal {
    /// A single value. An integer stands for any integer type that can hold it.
    One(Value),
    /// A single integer with a type suffix, such as `5i32`.
    Typed(Value),
    /// The elements of an array, written in square brackets.
    Elements(Vec<Value>),
}

impl Literal {
    /// Reads `text` as a literal, or as literals in square brackets.
    ///
    /// # Errors
    /// If the text is neither a literal nor a list of literals.
    pub fn parse(text: &str) -> Result<Literal, Error> {
        Ok(parse_literal(text)?)
    }

    /// Returns true if the literal stands for the elements of an array.
    #[must_use]
    pub const fn is_array(&self) -> bool {
        matches!(self, Literal::Elements(_))
    }
}

/// A `test` statement of a model: a name, and cases with input values and expected results.
#[derive(Clone, Debug)]
pub struct ModelTest {
    /// The name of the test, as reports show it.
    pub name: Arc<str>,
    /// The span of the test's name.
    pub span: Span,
    /// The tolerance for outputs that are floats: absolute, or relative to the expected value if that is larger than one.
    pub within: f64,
    /// The test's cases, in the order of the text.
    pub cases: Vec<TestCase>,
}

/// A case of a test: input values and the expected result.
#[derive(Clone, Debug)]
pub struct TestCase {
    /// The span of the case in the text.
    pub span: Span,
    /// The values of the inputs in this case.
    pub inputs: Vec<TestValue>,
    /// The expected result of this case.
    pub expected: Expected,
}

/// The value of an input or an output in a test.
#[derive(Clone, Debug)]
pub struct TestValue {
    /// The name of the input or output that the value is for.
    pub name: Arc<str>,
    /// The value as written, not yet converted to the type of the input or output.
    pub literal: Literal,
    /// The span of the value in the text.
    pub span: Span,
}

/// The expected result of a test case.
#[derive(Clone, Debug)]
pub enum Expected {
    /// The evaluation must give these outputs; outputs that are not listed are not checked.
    Outputs(Vec<TestValue>),
    /// The evaluation must fail with an error that has this code.
    Error(Arc<str>),
}
