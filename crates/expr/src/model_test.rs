//! Tests that a text has of itself: values of inputs, and what the outputs are to be. They are no part of what a model means, so that
//! equal programs may differ in them and files have none.

use crate::text::parse_literal;
use cembra_value::{Error, Span, Value};
use std::sync::Arc;

/// A literal of which something else says which type it is to be of.
#[derive(Clone, PartialEq, Debug)]
pub enum Literal {
    /// A value. An integer is a number of any type of integers that has it.
    One(Value),
    /// An integer with its type, as `5i32`.
    Typed(Value),
    /// The elements of an array.
    Elements(Vec<Value>),
}

impl Literal {
    /// Reads a literal, or literals in square brackets.
    ///
    /// # Errors
    /// It is neither.
    pub fn parse(text: &str) -> Result<Literal, Error> {
        Ok(parse_literal(text)?)
    }

    /// True for the elements of an array.
    #[must_use]
    pub const fn is_array(&self) -> bool {
        matches!(self, Literal::Elements(_))
    }
}

/// A test.
#[derive(Clone, Debug)]
pub struct ModelTest {
    /// What it is called.
    pub name: Arc<str>,
    /// Where that stands.
    pub span: Span,
    /// How far outputs that are floats may be from what is expected: so much, or such a part of it if it is larger than one.
    pub within: f64,
    /// What is tried.
    pub cases: Vec<TestCase>,
}

/// A case of a test.
#[derive(Clone, Debug)]
pub struct TestCase {
    /// Where it stands.
    pub span: Span,
    /// Values of inputs.
    pub inputs: Vec<TestValue>,
    /// What comes of them.
    pub expected: Expected,
}

/// The value of an input or an output in a test.
#[derive(Clone, Debug)]
pub struct TestValue {
    /// Of which.
    pub name: Arc<str>,
    /// The value, which is not of its type yet.
    pub literal: Literal,
    /// Where it stands.
    pub span: Span,
}

/// What a test expects.
#[derive(Clone, Debug)]
pub enum Expected {
    /// These outputs; others are not looked at.
    Outputs(Vec<TestValue>),
    /// An error with this code.
    Error(Arc<str>),
}
