//! Operators of the user: closures over scalars, dates, optionals and strings, registered at run time. Models call them like
//! any other operator, in every backend. A panic inside a closure becomes an error of the evaluation.
//!
//! The types of arguments and results are in `function`, the checks of lowering rules in `recording`.

mod function;
mod recording;

pub use function::{Arguments, Fallible, Reason, UserArgument, UserFunction, UserResult};
pub use recording::Recording;

use crate::definition::{CompiledFrom, Lower, Meaning, OVERLOADED, OpDef, Overload, PresenceRule};
use crate::kernel::Repr;
use crate::{Compile, CompiledLiteral, OpId, Registry};
use cembra_expr::Parameter;
use cembra_runtime::{FaultKind, Text};
use cembra_tape::{Cell, Tape};
use cembra_value::{Code, Diagnostic, Error, ScalarValue, Value};
use function::{UserBody, forever};

/// An operator of the user that is to be registered: its name and its functions.
#[derive(Debug)]
pub struct UserOperator {
    name: String,
    summary: String,
    params: Vec<String>,
    pure: bool,
    overloads: Vec<UserOverload>,
}

/// A function of an operator that is not registered yet.
#[derive(Debug)]
struct UserOverload {
    /// The overload. Registration completes it with the lowering rule and, for an operator that is compiled from a
    /// literal, with the literal's type.
    overload: Overload,
    total: bool,
    rule: Option<Result<Recording, &'static str>>,
}

impl UserOverload {
    fn of<Args: Arguments, F: UserFunction<Args>>() -> Self {
        UserOverload { overload: Overload::of::<UserBody<Args, F>>(), total: F::TOTAL, rule: None }
    }
}

/// The error for an operator that cannot be registered.
pub(crate) fn refused(message: String) -> Error {
    Diagnostic::new(Code::Registration, message).into()
}

impl UserOperator {
    /// Makes an operator with a name of the form `family.name`.
    #[must_use]
    pub fn new(name: &str) -> Self {
        UserOperator {
            name: name.to_owned(),
            summary: "An operator of the user.".to_owned(),
            params: Vec::new(),
            pure: true,
            overloads: Vec::new(),
        }
    }

    /// Sets the description of the operator, which should be one sentence.
    #[must_use]
    pub fn summary(mut self, summary: &str) -> Self {
        summary.clone_into(&mut self.summary);
        self
    }

    /// Sets the names of the operator's parameters, for keyword arguments; by default `x`, `y`, `z`, `x3`...
    #[must_use]
    pub fn params(mut self, names: &[&str]) -> Self {
        self.params = names.iter().map(|name| (*name).to_owned()).collect();
        self
    }

    /// Declares that equal arguments may give different results, so that calls are never evaluated ahead of time. Equal calls in a model are still
    /// evaluated only once per evaluation.
    #[must_use]
    pub fn impure(mut self) -> Self {
        self.pure = false;
        self
    }

    /// Adds to the operator a function on scalars and strings, or on these and `Option`s. If several functions are
    /// added, they are overloads: the first whose types fit is called. A text argument is valid only during the call:
    /// see [`UserFunction`].
    #[must_use]
    pub fn function<Args: Arguments, F: UserFunction<Args>>(self, function: F) -> Self {
        self.add(function, None)
    }

    /// Adds to the operator a function that can fail. The function's error is the reason of the failure: see [`Fallible`].
    #[must_use]
    pub fn fallible<Args: Arguments, F>(self, function: F) -> Self
    where
        Fallible<F>: UserFunction<Args>,
    {
        self.add(Fallible(function), None)
    }

    /// Adds to the operator a function with a lowering rule: the same computation as instructions, for machine code. See `docs/add-an-operator.md`.
    ///
    /// The rule runs only once, during the call of this method. Its instructions are checked when the operator is registered: every operand has a
    /// type that the instruction takes, integers are divided by a number that is neither 0 nor -1, texts are arguments of the rule, and the result is
    /// of the function's type. It is not checked that the rule computes the same as the function.
    #[must_use]
    pub fn with_rule<Args: Arguments, F: UserFunction<Args>>(
        self,
        function: F,
        rule: impl FnOnce(&mut Tape, &[Cell]) -> Cell,
    ) -> Self {
        let UserOverload { overload: Overload { args, ret, .. }, total, .. } = UserOverload::of::<Args, F>();
        let recording = Recording::of(args, ret, total, rule);
        self.add(function, Some(recording))
    }

    /// Adds to the operator a function that is made when a model is compiled, from the operator's first argument, which
    /// must be a literal text: a table, a forest, a program in another language. Reading the text costs nothing per
    /// evaluation. The operator's arguments after the first are the function's arguments. The function lives as long as
    /// the model. The closure `compile` lives as long as the process; if it fails, its error tells the problem with the
    /// text, and the model does not compile.
    #[must_use]
    pub fn compiled<Args, F, E>(mut self, compile: impl Fn(&str) -> Result<F, E> + Send + Sync + 'static) -> Self
    where
        Args: Arguments,
        F: UserFunction<Args>,
        E: std::fmt::Display,
    {
        let compile = move |literal: &Value| match literal {
            Value::Scalar(ScalarValue::Text(text)) => {
                compile(text).map(CompiledLiteral::new).map_err(|error| error.to_string())
            }
            other => Err(format!("{other} is not a text")),
        };
        let mut made = UserOverload::of::<Args, F>();
        made.overload.compile = Some(Compile { from: CompiledFrom::Text, function: Box::leak(Box::new(compile)) });
        self.overloads.push(made);
        self
    }

    fn add<Args: Arguments, F: UserFunction<Args>>(
        mut self,
        function: F,
        rule: Option<Result<Recording, &'static str>>,
    ) -> Self {
        let mut made = UserOverload { rule, ..UserOverload::of::<Args, F>() };
        made.overload.data = forever(function);
        self.overloads.push(made);
        self
    }
}

impl Registry {
    /// Makes a registry of the operators of the language and `operators`. The registry lives as long as the process: make it once, at start-up, and
    /// share it between all models.
    ///
    /// ```
    /// use cembra_ops::{Registry, UserOperator};
    ///
    /// let registry = Registry::with_operators([
    ///     UserOperator::new("risk.cap").function(|x: f64| x.min(100.0)),
    ///     UserOperator::new("risk.twice").function(|x: i64| x.wrapping_mul(2)),
    /// ])?;
    /// assert!(registry.find("risk.twice").is_some() && registry.find("math.add").is_some());
    /// # Ok::<(), cembra_value::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`register`](Registry::register), for the first operator that is refused.
    pub fn with_operators(operators: impl IntoIterator<Item = UserOperator>) -> Result<&'static Registry, Error> {
        let mut registry = Registry::standard().clone();
        operators.into_iter().try_for_each(|operator| registry.register(operator).map(drop))?;
        Ok(registry.leak())
    }

    /// Adds an operator to the registry. The operator lives as long as the process, so register at start-up, not per
    /// request.
    ///
    /// # Errors
    /// If the name is taken or not of the form `family.name`, the functions cannot be overloads of one operator, or a rule is
    /// refused.
    pub fn register(&mut self, operator: UserOperator) -> Result<OpId, Error> {
        if self.find(&operator.name).is_some() {
            return Err(refused(format!("there is an operator `{}` already", operator.name)));
        }
        self.replace(operator)
    }

    /// Adds an operator to the registry as [`register`](Registry::register) does, or replaces the user's operator of
    /// this name. A model that was parsed with an earlier clone of the registry keeps the replaced operator. The
    /// replaced operator lives on as long as the process.
    ///
    /// ```
    /// use cembra_ops::{Registry, UserOperator};
    ///
    /// let mut registry = Registry::standard().clone();
    /// registry.register(UserOperator::new("risk.cap").function(|x: f64| x.min(100.0)))?;
    /// registry.replace(UserOperator::new("risk.cap").function(|x: f64, most: f64| x.min(most)))?;
    /// assert!(registry.replace(UserOperator::new("math.abs").function(|x: f64| x)).is_err());
    /// # Ok::<(), cembra_value::Error>(())
    /// ```
    ///
    /// # Errors
    /// If an operator of the language has the name, the name does not have the form `family.name`, the functions cannot
    /// be overloads of one operator, or a rule is refused.
    pub fn replace(&mut self, operator: UserOperator) -> Result<OpId, Error> {
        let UserOperator { name, summary, params, pure, overloads } = operator;
        let word = |text: &str| {
            text.starts_with(|c: char| c.is_ascii_alphabetic())
                && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
        };
        if !name.split_once('.').is_some_and(|(family, own)| word(family) && own.split('.').all(word)) {
            return Err(refused(format!("`{name}` is not a name of the form `family.name`")));
        }
        if Registry::standard().find(&name).is_some() {
            return Err(refused(format!("there is an operator `{name}` already")));
        }
        let strict = |o: &UserOverload| o.overload.lifted.is_some();
        // The literal that an operator is compiled from is its first argument.
        let arity = |o: &UserOverload| o.overload.args.len() + usize::from(o.overload.compile.is_some());
        let unlike = || {
            refused(format!("operator `{name}` needs functions with the same number of arguments, all strict or none"))
        };
        let Some(first) = overloads.first() else { return Err(unlike()) };
        let (arguments, all_strict) = (arity(first), strict(first));
        if overloads.iter().any(|o| arity(o) != arguments || strict(o) != all_strict)
            || (!params.is_empty() && params.len() != arguments)
        {
            return Err(unlike());
        }
        let total = overloads.iter().all(|o| o.total);
        let mut made = Vec::with_capacity(overloads.len());
        for UserOverload { mut overload, rule, .. } in overloads {
            match rule {
                None => {}
                Some(Ok(recording)) => overload.lower = Lower::Recording(Box::leak(Box::new(recording))),
                Some(Err(reason)) => {
                    return Err(refused(format!("the rule of operator `{name}` is refused: {reason}")));
                }
            }
            if overload.compile.is_some() {
                overload.args = [&[Text::OPERAND], overload.args].concat().leak();
            }
            made.push(Overload { pure, ..overload });
        }
        let usual = |at| match at {
            0 => "x".to_owned(),
            1 => "y".to_owned(),
            2 => "z".to_owned(),
            _ => format!("x{at}"),
        };
        let names = if params.is_empty() { (0..arguments).map(usual).collect() } else { params };
        let params: Vec<Parameter> = names.into_iter().map(|name| Parameter::new(name.leak(), None)).collect();
        self.add(OpDef {
            name: name.leak(),
            summary: summary.leak(),
            params: params.leak(),
            presence: if all_strict { PresenceRule::Strict } else { PresenceRule::Custom },
            // A panic is an Invalid fault too, but not one that an operator declares.
            faults: if total { &[] } else { &[FaultKind::Invalid] },
            meaning: Meaning::Overloads(made.leak()),
            ..OVERLOADED
        })
    }
}
