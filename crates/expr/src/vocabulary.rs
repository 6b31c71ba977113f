//! The parser's view of operators: canonical names, parameters and defaults, without their meaning. The registry implements it; the graph only has
//! names.

use cembra_value::Value;

/// A parameter of an operator or function.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Parameter {
    /// The name used in keyword arguments and signatures.
    pub name: &'static str,
    /// The value for a call that leaves the argument out; `None` if the argument is required.
    pub default: Option<Value>,
    /// The form of the arguments, as far as their types do not determine it.
    pub form: ArgumentForm,
}

impl Parameter {
    /// Returns a parameter whose arguments have any form.
    #[must_use]
    pub const fn new(name: &'static str, default: Option<Value>) -> Parameter {
        Parameter { name, default, form: ArgumentForm::Any }
    }

    /// Returns the parameter with arguments of the form `form`.
    #[must_use]
    pub const fn of(mut self, form: ArgumentForm) -> Parameter {
        self.form = form;
        self
    }
}

/// The form of a parameter's arguments. It is a hint for generators of arguments, because few values of the type would be valid. Nothing is rejected
/// by it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ArgumentForm {
    /// Any value of the type.
    Any,
    /// A regular expression.
    Regex,
    /// The replacement for the matches of a regular expression.
    Replacement,
    /// The name of a way to handle bytes that are not UTF-8.
    DecodingErrors,
    /// A format with one field per value that follows.
    Format,
    /// The format of a date or a timestamp, as a literal.
    TimeFormat,
    /// The name of a time zone.
    TimeZone,
    /// The choice of a moment when a local time occurs twice, as a literal.
    RepeatedTime,
    /// The names of the values that follow, as a literal, separated by commas.
    ArgumentNames,
    /// The names of the fields that follow, as a literal, separated by commas.
    FieldNames,
    /// The name of a field, as a literal.
    FieldName,
    /// The name of a unit of the calendar, as a literal.
    CalendarUnit,
    /// The unit of a number that counts the time since 1970, as a literal.
    UnixUnit,
    /// A small index or count.
    Position,
    /// A type.
    Type,
}

/// An operator or function that can be called by name.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Callable<'v> {
    /// The canonical name, which nodes have.
    pub name: &'v str,
    /// The parameters in order.
    pub params: &'v [Parameter],
    /// True if the last parameter may be repeated or left out.
    pub variadic: bool,
    /// The other operator that a call with a single argument denotes; `None` if there is none.
    pub of_one: Option<&'v str>,
    /// The operands that a text converts from integers to f64.
    pub integers: Integers,
}

/// The operands of an operator that a text converts to f64, unless it begins with `numbers f32`. Only integers are converted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Integers {
    /// None: integers stay integers.
    #[default]
    Stay,
    /// Every operand, as in `a / b`.
    Widen,
    /// The first one, as in `tensor.softmax(x, 0)`.
    WidenFirst,
    /// The operands from this index on, if one of them is a float: all in `a + b`, the branches in `where(c, a, b)`.
    WidenBesideFloats(usize),
}

impl Callable<'_> {
    /// Returns true if the caller chooses the names of arguments: the operator is variadic, and the name of its last parameter begins with `**`. The
    /// chosen names, separated by commas, become a text for the parameter before it.
    #[must_use]
    pub fn takes_names(&self) -> bool {
        self.variadic && self.params.last().is_some_and(|last| last.name.starts_with("**"))
    }
}

/// The operators that a text may name.
pub trait Vocabulary {
    /// Returns the operator with this name or alias.
    fn resolve(&self, name: &str) -> Option<Callable<'_>>;

    /// Returns names similar to this one, best first.
    fn suggest(&self, name: &str) -> Vec<String>;
}
