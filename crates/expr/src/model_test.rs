//! The tests in a model's text: values of inputs, and the expected outputs. They do not affect the meaning of a model: equal programs may have
//! different tests, and files have none.

use crate::text::parse_literal;
use cembra_value::{Error, Span, Value};
use std::sync::Arc;

/// A literal whose type is determined elsewhere.
#[derive(Clone, PartialEq, Debug)]
pub enum Literal {
    /// A value. An integer stands for any integer type that can hold it.
    One(Value),
    /// An integer with a type suffix, such as `5i32`.
    Typed(Value),
    /// The elements of an array.
    Elements(Vec<Value>),
}

impl Literal {
    /// Reads a literal, or literals in square brackets.
    ///
    /// # Errors
    /// If the text is neither.
    pub fn parse(text: &str) -> Result<Literal, Error> {
        Ok(parse_literal(text)?)
    }

    /// Returns true for the elements of an array.
    #[must_use]
    pub const fn is_array(&self) -> bool {
        matches!(self, Literal::Elements(_))
    }
}

/// A test of a model.
#[derive(Clone, Debug)]
pub struct ModelTest {
    /// The name of the test.
    pub name: Arc<str>,
    /// The place of the name.
    pub span: Span,
    /// The tolerance for outputs that are floats: absolute, or relative to the expected value if that is larger than one.
    pub within: f64,
    /// The cases of the test.
    pub cases: Vec<TestCase>,
}

/// A case of a test.
#[derive(Clone, Debug)]
pub struct TestCase {
    /// The place of the case.
    pub span: Span,
    /// The values of inputs.
    pub inputs: Vec<TestValue>,
    /// The expected result.
    pub expected: Expected,
}

/// The value of an input or an output in a test.
#[derive(Clone, Debug)]
pub struct TestValue {
    /// The name of the input or output.
    pub name: Arc<str>,
    /// The value, not yet converted to the type of the input or output.
    pub literal: Literal,
    /// The place of the value.
    pub span: Span,
}

/// The expected result of a case.
#[derive(Clone, Debug)]
pub enum Expected {
    /// The outputs to compare; other outputs are not checked.
    Outputs(Vec<TestValue>),
    /// An error with this code.
    Error(Arc<str>),
}
