//! The parser's view of operators: canonical names, parameters and defaults, without the meaning of operators. The operator registry implements it.
//! The graph has only the operators' names.

use cembra_value::Value;

/// A parameter of an operator or function.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Parameter {
    /// The parameter's name, as keyword arguments and signatures use it.
    pub name: &'static str,
    /// The parameter's value in a call that leaves the argument out; `None` if the argument is required.
    pub default: Option<Value>,
    /// The requirement on the parameter's arguments in addition to their type, for example that a text is a regular expression.
    pub form: ArgumentForm,
}

impl Parameter {
    /// Returns a parameter with the name `name`, whose arguments may have any form.
    #[must_use]
    pub const fn new(name: &'static str, default: Option<Value>) -> Parameter {
        Parameter { name, default, form: ArgumentForm::Any }
    }

    /// Returns this parameter with arguments of the form `form`.
    #[must_use]
    pub const fn of(mut self, form: ArgumentForm) -> Parameter {
        self.form = form;
        self
    }
}

/// The form of a parameter's arguments. It is a hint for programs that generate random arguments, because few values of the parameter's type are
/// valid. The parser rejects no argument because of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ArgumentForm {
    /// The argument is any value of its type.
    Any,
    /// The argument is a regular expression.
    Regex,
    /// The argument is the replacement for the matches of a regular expression.
    Replacement,
    /// The argument is the name of a way to handle bytes that are not UTF-8.
    DecodingErrors,
    /// The argument is a format string with one field per argument that follows.
    Format,
    /// The argument is the format of a date or a timestamp, as a literal.
    TimeFormat,
    /// The argument is the name of a time zone.
    TimeZone,
    /// The argument chooses between the two moments of a local time that occurs twice, as a literal.
    RepeatedTime,
    /// The argument has the names of the arguments that follow, as a literal, separated by commas.
    ArgumentNames,
    /// The argument has the names of the fields that follow, as a literal, separated by commas.
    FieldNames,
    /// The argument is the name of a field, as a literal.
    FieldName,
    /// The argument is the name of a unit of the calendar, as a literal.
    CalendarUnit,
    /// The argument is the unit of a number that counts the time since 1970, as a literal.
    UnixUnit,
    /// The argument is a small index or count.
    Position,
    /// The argument is a type.
    Type,
}

/// An operator or function that can be called by name: its parameters, and how integer operands are converted.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Callable<'v> {
    /// The canonical name of the operator, which its nodes have.
    pub name: &'v str,
    /// The operator's parameters in order.
    pub params: &'v [Parameter],
    /// True if the operator's last parameter may be repeated or left out.
    pub variadic: bool,
    /// The name of the operator that a call with a single argument denotes, if that is another operator; `None` if such a call denotes this operator.
    pub of_one: Option<&'v str>,
    /// The operands that a text converts from integers to f64, unless it begins with `numbers f32`.
    pub integers: Integers,
}

/// The operands of an operator that a text converts to f64, unless it begins with `numbers f32`. Only integers are converted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Integers {
    /// No operand is converted: integers stay integers.
    #[default]
    Stay,
    /// Every operand is converted, as in `a / b`.
    Widen,
    /// The first operand is converted, as in `tensor.softmax(x, 0)`.
    WidenFirst,
    /// The operands from this index on are converted if one of them is a float. The index is 0 for `a + b`, and 1 for `where(c, a, b)`, where only
    /// the branches are converted.
    WidenBesideFloats(usize),
}

impl Callable<'_> {
    /// Returns true if the caller chooses the names of arguments: the operator is variadic, and the name of its last parameter begins with `**`. The
    /// chosen names, separated by commas, become a text: the argument of the parameter before the last.
    #[must_use]
    pub fn takes_names(&self) -> bool {
        self.variadic && self.params.last().is_some_and(|last| last.name.starts_with("**"))
    }
}

/// The operators that a text may name: it resolves names, and suggests similar names.
pub trait Vocabulary {
    /// Returns the operator with the name or alias `name`; `None` if no operator has it.
    fn resolve(&self, name: &str) -> Option<Callable<'_>>;

    /// Returns names of operators that are similar to `name`, best first.
    fn suggest(&self, name: &str) -> Vec<String>;
}
