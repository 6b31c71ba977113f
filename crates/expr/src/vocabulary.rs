//! What the parser must know of operators without knowing what they mean: canonical names, parameters and defaults.
//! The registry implements it; the graph itself holds names only.

use cembra_value::Value;

/// A parameter of an operator or function.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Parameter {
    /// The name used in keyword arguments and signatures.
    pub name: &'static str,
    /// What a call that leaves the argument out gets; `None` if it must be given.
    pub default: Option<Value>,
    /// What its arguments look like, as far as their types do not say it.
    pub form: ArgumentForm,
}

impl Parameter {
    /// A parameter whose arguments are of any form.
    #[must_use]
    pub const fn new(name: &'static str, default: Option<Value>) -> Parameter {
        Parameter { name, default, form: ArgumentForm::Any }
    }

    /// The same parameter, with arguments of a form.
    #[must_use]
    pub const fn of(mut self, form: ArgumentForm) -> Parameter {
        self.form = form;
        self
    }
}

/// What the arguments of a parameter look like. It refuses nothing: it is for whoever makes arguments up, and finds few that
/// an operator takes among all of a type.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ArgumentForm {
    /// Whatever the type allows.
    Any,
    /// A regular expression.
    Regex,
    /// What the matches of a regular expression are replaced by.
    Replacement,
    /// The name of a way to treat bytes that are not UTF-8.
    DecodingErrors,
    /// A format with a field for each of the values that follow.
    Format,
    /// The format of a date or a timestamp, as a literal.
    TimeFormat,
    /// The name of a time zone.
    TimeZone,
    /// Which moment is meant where clocks show a time twice, as a literal.
    RepeatedTime,
    /// The names of the values that follow, as a literal with commas between them.
    ArgumentNames,
    /// The names of the fields that follow, likewise.
    FieldNames,
    /// The name of a field, as a literal.
    FieldName,
    /// The name of a unit of the calendar, as a literal.
    CalendarUnit,
    /// The unit of a number that counts the time since 1970, as a literal.
    UnixUnit,
    /// A position among few, or how many of them.
    Position,
    /// A type.
    Type,
}

/// Something that can be called by name.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Callable<'v> {
    /// The canonical name, which is what nodes carry.
    pub name: &'v str,
    /// The parameters in order.
    pub params: &'v [Parameter],
    /// True if the last parameter may be repeated, or left out.
    pub variadic: bool,
    /// The operator that the name means with but one of the parameters given, if that is another one.
    pub of_one: Option<&'v str>,
    /// Which of its operands a text makes f64.
    pub integers: Integers,
}

/// Which operands of an operator a text makes f64, unless it begins with `numbers f32`. Only integers are ever changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Integers {
    /// None of them: integers stay integers.
    #[default]
    Stay,
    /// All of them, as in `a / b`.
    Widen,
    /// The first one, as in `tensor.softmax(x, 0)`.
    WidenFirst,
    /// The operands from this position on, if one of these is a float: all in `a + b`, the branches in `where(c, a, b)`.
    WidenBesideFloats(usize),
}

impl Callable<'_> {
    /// True if arguments may have names of the caller's choice: the operator is variadic and the name of its last parameter
    /// begins with `**`. The names, with commas between them, are then a text for the parameter before it.
    #[must_use]
    pub fn takes_names(&self) -> bool {
        self.variadic && self.params.last().is_some_and(|last| last.name.starts_with("**"))
    }
}

/// The operators that text may name.
pub trait Vocabulary {
    /// The operator with this name or alias.
    fn resolve(&self, name: &str) -> Option<Callable<'_>>;

    /// Names like this one, best first.
    fn suggest(&self, name: &str) -> Vec<String>;
}
