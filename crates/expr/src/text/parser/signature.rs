//! Signatures: the binding of arguments to parameters, for operators and functions.

use super::NameMap;
use super::call::Keyword;
use crate::Callable;
use crate::text::elsewhere::{ForeignUse, foreign_hint};
use cembra_value::{Code, Diagnostic, Span, Value};

/// The parameters of a callee (an operator or a function of the text), for binding the arguments of a call.
#[derive(Clone, Copy)]
pub(super) enum Signature<'a> {
    /// The callee is an operator, with this signature.
    Operator(&'a Callable<'a>),
    /// The callee is a function, with this name and these names of parameters.
    Function(&'a str, &'a [&'a str]),
}

/// The value that a call binds to a parameter: an argument, or the parameter's default.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Bound {
    /// The value is the argument at this index of the call.
    Argument(usize),
    /// The value is the parameter's default.
    Default(Value),
}

impl<'a> Signature<'a> {
    fn len(self) -> usize {
        match self {
            Signature::Operator(callable) => callable.params.len(),
            Signature::Function(_, params) => params.len(),
        }
    }

    fn parameter(self, index: usize) -> &'a str {
        match self {
            Signature::Operator(callable) => callable.params.get(index).map_or("", |p| p.name),
            Signature::Function(_, params) => params.get(index).copied().unwrap_or(""),
        }
    }

    fn default(self, index: usize) -> Option<&'a Value> {
        match self {
            Signature::Operator(callable) => callable.params.get(index)?.default.as_ref(),
            Signature::Function(..) => None,
        }
    }

    /// Returns the index of the parameter for chosen argument names, if the caller may choose them; `None` otherwise.
    fn names(self) -> Option<usize> {
        match self {
            Signature::Operator(callable) if callable.takes_names() => self.fixed().checked_sub(1),
            _ => None,
        }
    }

    fn is_variadic(self) -> bool {
        matches!(self, Signature::Operator(callable) if callable.variadic)
    }

    /// The number of parameters that take exactly one argument: all except a variadic last one.
    fn fixed(self) -> usize {
        self.len().saturating_sub(usize::from(self.is_variadic()))
    }

    /// Returns true if a call with `count` arguments and no keywords binds them in order, one to one.
    pub(super) fn takes_exactly(self, count: usize) -> bool {
        if self.is_variadic() { count >= self.fixed() } else { count == self.len() }
    }

    /// Returns the form of a call, such as `math.round(x, digits=0)`. An operator without a public name has the name in the text.
    fn form(self, written: &str) -> String {
        let name = match self {
            Signature::Operator(callable) if callable.name.contains("._") => written,
            Signature::Operator(callable) => callable.name,
            Signature::Function(name, _) => name,
        };
        let parameters = (0..self.len()).map(|index| {
            let parameter = self.parameter(index);
            match self.default(index) {
                _ if index >= self.fixed() && self.names().is_some() => parameter.to_owned(),
                _ if index >= self.fixed() => format!("{parameter}, .."),
                Some(Value::Unspecified) => format!("{parameter}=.."),
                Some(value) => format!("{parameter}={}", crate::print_value(value)),
                None => parameter.to_owned(),
            }
        });
        let mut parameters: Vec<_> = parameters.take(20).collect();
        if self.len() > 20 || (self.is_variadic() && self.len() == 0) {
            parameters.push("..".into());
        }
        format!("{name}({})", parameters.join(", "))
    }

    /// Returns the value for each parameter in order. If the last parameter is variadic, its further arguments follow.
    ///
    /// `written` is the callee's name in the text, `call` the span of the whole call. The first `count - keywords.len()` arguments have no keywords.
    pub(super) fn bind(
        self,
        written: &str,
        call: Span,
        count: usize,
        keywords: &[Keyword<'_>],
    ) -> Result<Vec<Bound>, Box<Diagnostic>> {
        let fault = |message: String, span: Span| {
            let problem = Diagnostic::new(Code::Arguments, message).at(span);
            Box::new(problem.hint(format!("its form is `{}`", self.form(written))))
        };
        let positional = count - keywords.len();
        if positional > self.len() && !self.is_variadic() {
            let (most, given) = (self.len(), positional);
            let plural = if most == 1 { "" } else { "s" };
            return Err(fault(format!("`{written}` takes {most} argument{plural}, {given} given"), call));
        }
        let mut bound: Vec<Option<Bound>> = (0..positional).map(|index| Some(Bound::Argument(index))).collect();
        bound.resize(bound.len().max(self.fixed()), None);
        let places: NameMap<&str, usize> = match keywords {
            [] => NameMap::default(),
            _ => (0..self.fixed()).map(|parameter| (self.parameter(parameter), parameter)).collect(),
        };
        // Chosen names are joined into one text, and their values come after all others.
        let chosen = self.names().filter(|place| bound[*place].is_none());
        let mut names = String::new();
        let mut known: NameMap<&str, ()> = NameMap::default();
        for (index, keyword) in keywords.iter().enumerate() {
            let argument = Some(Bound::Argument(positional + index));
            let twice = || fault(format!("the argument `{}` is given twice", keyword.name), keyword.span);
            match (places.get(keyword.name), chosen) {
                (Some(&place), _) if bound[place].is_some() => return Err(twice()),
                (Some(&place), _) => bound[place] = argument,
                (None, Some(_)) if known.insert(keyword.name, ()).is_some() => return Err(twice()),
                (None, Some(_)) => {
                    names.extend([if names.is_empty() { "" } else { "," }, keyword.name]);
                    bound.push(argument);
                }
                (None, None) => {
                    let problem =
                        Diagnostic::new(Code::Arguments, format!("`{written}` has no parameter `{}`", keyword.name));
                    let known = match self {
                        Signature::Operator(callable) if callable.name.starts_with("tensor.") => {
                            foreign_hint(ForeignUse::TensorArgument, keyword.name)
                        }
                        Signature::Operator(_) => foreign_hint(ForeignUse::Argument, keyword.name),
                        Signature::Function(..) => None,
                    };
                    let problem = known.into_iter().fold(problem.at(keyword.span), Diagnostic::hint);
                    return Err(Box::new(problem.hint(format!("its form is `{}`", self.form(written)))));
                }
            }
        }
        if let Some(place) = chosen.filter(|_| !names.is_empty())
            && bound[place].replace(Bound::Default(Value::text(names))).is_some()
        {
            return Err(fault(format!("the argument `{}` is given twice", self.parameter(place)), call));
        }
        let filled = bound.into_iter().enumerate().map(|(index, bound)| {
            bound
                .or_else(|| self.default(index).cloned().map(Bound::Default))
                .ok_or_else(|| fault(format!("`{written}` lacks the argument `{}`", self.parameter(index)), call))
        });
        filled.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Integers, Parameter};

    static ROUND: [Parameter; 2] = [Parameter::new("x", None), Parameter::new("digits", Some(Value::Nothing))];

    fn bind(callable: &Callable<'_>, count: usize, keywords: &[&str]) -> Result<String, String> {
        let keywords: Vec<_> =
            keywords.iter().map(|name| Keyword { name, span: Span::new(7, 8), position: 0 }).collect();
        let signature = Signature::Operator(callable);
        match signature.bind("round", Span::new(0, 9), count, &keywords) {
            Ok(bound) => Ok(format!("{bound:?}")),
            Err(problem) => Err(problem.to_string()),
        }
    }

    #[test]
    fn arguments_find_their_parameters() {
        let round =
            Callable { name: "math.round", params: &ROUND, variadic: false, of_one: None, integers: Integers::Stay };
        assert_eq!(bind(&round, 1, &[]).unwrap(), "[Argument(0), Default(Nothing)]");
        assert_eq!(bind(&round, 2, &["digits", "x"]).unwrap(), "[Argument(1), Argument(0)]");
        assert_eq!(bind(&round, 2, &["digits"]).unwrap(), "[Argument(0), Argument(1)]");
        let form = "its form is `math.round(x, digits=missing)`";
        for (count, keywords, message) in [
            (0, &[] as &[&str], "`round` lacks the argument `x`"),
            (3, &[], "`round` takes 2 arguments, 3 given"),
            (2, &["x"], "the argument `x` is given twice"),
            (3, &["x", "x"], "the argument `x` is given twice"),
            (2, &["y"], "`round` has no parameter `y`"),
        ] {
            assert_eq!(bind(&round, count, keywords).unwrap_err(), format!("{message}; {form}"));
        }
    }

    #[test]
    fn a_variadic_parameter_takes_any_number() {
        let or = Callable { name: "core.or", params: &ROUND, variadic: true, of_one: None, integers: Integers::Stay };
        assert_eq!(bind(&or, 1, &[]).unwrap(), "[Argument(0)]");
        assert_eq!(bind(&or, 3, &[]).unwrap(), "[Argument(0), Argument(1), Argument(2)]");
        assert_eq!(
            bind(&or, 0, &[]).unwrap_err(),
            "`round` lacks the argument `x`; its form is `core.or(x, digits, ..)`"
        );
        let any = Callable { name: "any", params: &[], variadic: true, of_one: None, integers: Integers::Stay };
        assert_eq!(bind(&any, 2, &[]).unwrap(), "[Argument(0), Argument(1)]");
    }

    #[test]
    fn names_of_the_callers_choice_become_an_argument() {
        static FORMAT: [Parameter; 3] = [
            Parameter::new("fmt", None),
            Parameter::new("names", Some(Value::Nothing)),
            Parameter::new("**values", None),
        ];
        let format =
            Callable { name: "format", params: &FORMAT, variadic: true, of_one: None, integers: Integers::Stay };
        let names = |names: &str| format!("Default({:?})", Value::text(names));
        assert_eq!(bind(&format, 1, &[]).unwrap(), "[Argument(0), Default(Nothing)]");
        assert_eq!(bind(&format, 2, &["x"]).unwrap(), format!("[Argument(0), {}, Argument(1)]", names("x")));
        assert_eq!(
            bind(&format, 3, &["x", "fmt", "y"]).unwrap(),
            format!("[Argument(1), {}, Argument(0), Argument(2)]", names("x,y"))
        );
        assert_eq!(bind(&format, 4, &[]).unwrap(), "[Argument(0), Argument(1), Argument(2), Argument(3)]");
        let form = "its form is `format(fmt, names=missing, **values)`";
        for (count, keywords, message) in [
            (1, &["x"] as &[&str], "`round` lacks the argument `fmt`"),
            (3, &["x", "x"], "the argument `x` is given twice"),
            (3, &["x", "names"], "the argument `names` is given twice"),
            (3, &["x"], "`round` has no parameter `x`"),
        ] {
            assert_eq!(bind(&format, count, keywords).unwrap_err(), format!("{message}; {form}"));
        }
    }
}
