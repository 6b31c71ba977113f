//! Operators of the user: closures over scalars, optionals and strings, registered at run time and from then on like any
//! other operator, callable from text in every backend. A panic inside becomes an error of the evaluation.

use crate::definition::{Data, Lower, Meaning, OpDef, Operand, Overload, PresenceRule, Rule, Typing};
use crate::kernel::{Repr, next};
use crate::{OpId, Registry};
use cembra_expr::Parameter;
use cembra_runtime::{Context, Fault, FaultKind, FramePtr, Kernel, STATUS_OK};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A function that can be an operator: `Fn(A, B, ..) -> R` of up to six arguments, each a type that operators compute with.
///
/// A function of plain scalars is strict: a missing argument gives a missing result and the function is not called. One
/// that takes an `Option` sees every argument as it is.
pub trait UserFunction<Args>: Send + Sync + 'static {
    /// Argument types.
    const ARGS: &'static [Operand];
    /// Result type.
    const RET: Operand;
    /// The kernel on these types.
    const KERNEL: Kernel;
    /// The kernel on the optional forms.
    const LIFTED: Kernel;
}

/// A function that may fail: `Fn(A, B, ..) -> Result<R, &'static str>`, the text saying what is wrong with the arguments.
#[derive(Clone, Copy, Debug)]
pub struct Fallible<F>(pub F);

/// What a function returns: a value, or a value or a reason.
trait Returned {
    type Value: Repr;
    fn returned(self) -> Result<Self::Value, Fault>;
}

struct Plain<T>(T);

impl<T: Repr> Returned for Plain<T> {
    type Value = T;
    fn returned(self) -> Result<T, Fault> {
        Ok(self.0)
    }
}

impl<T: Repr> Returned for Result<T, &'static str> {
    type Value = T;
    fn returned(self) -> Result<T, Fault> {
        self.map_err(invalid)
    }
}

fn invalid(reason: &'static str) -> Fault {
    Fault { kind: FaultKind::Invalid, operands: [reason.as_ptr() as u64, reason.len() as u64] }
}

/// Runs a user's function; a panic is a fault.
fn guarded<R: Returned>(f: impl FnOnce() -> R) -> Result<R::Value, Fault> {
    match catch_unwind(AssertUnwindSafe(f)) {
        Ok(result) => result.returned(),
        Err(_) => Err(invalid("the operator panicked")),
    }
}

macro_rules! user_functions {
    ($(($($arg:ident $ty:ident),*))*) => { $(
        user_functions!(@one F, F, ($($arg $ty),*), R, Plain, |f| f);
        user_functions!(@one Fallible<F>, F, ($($arg $ty),*), Result<R, &'static str>, (|r| r), |f| &f.0);
    )* };
    (@one $this:ty, $f:ident, ($($arg:ident $ty:ident),*), $ret:ty, $wrap:tt, |$me:ident| $call:expr) => {
        impl<$f, R, $($ty),*> UserFunction<($($ty,)* $ret,)> for $this
        where
            $f: Fn($($ty),*) -> $ret + Send + Sync + 'static,
            R: Repr,
            $($ty: Repr,)*
        {
            const ARGS: &'static [Operand] = &[$($ty::OPERAND),*];
            const RET: Operand = R::OPERAND;
            const KERNEL: Kernel = {
                unsafe extern "C" fn kernel<$f, R, $($ty),*>(
                    context: &mut Context,
                    frame: FramePtr,
                    slots: *const u32,
                    data: *const (),
                ) -> i32
                where
                    $f: Fn($($ty),*) -> $ret + Send + Sync + 'static,
                    R: Repr,
                    $($ty: Repr,)*
                {
                    let mut slots = slots;
                    // SAFETY: FRAME-SLOT, promised by the caller of every kernel; the data is the overload's own closure.
                    unsafe {
                        let $me = &*data.cast::<$this>();
                        let function: &$f = $call;
                        $(let $arg = <$ty as Repr>::load(frame, next(&mut slots));)*
                        match guarded(|| $wrap(function($($arg),*))) {
                            Ok(result) => result.store(frame, next(&mut slots)),
                            Err(fault) => return context.fail(fault),
                        }
                    }
                    STATUS_OK
                }
                kernel::<$f, R, $($ty),*>
            };
            const LIFTED: Kernel = {
                unsafe extern "C" fn lifted<$f, R, $($ty),*>(
                    context: &mut Context,
                    frame: FramePtr,
                    slots: *const u32,
                    data: *const (),
                ) -> i32
                where
                    $f: Fn($($ty),*) -> $ret + Send + Sync + 'static,
                    R: Repr,
                    $($ty: Repr,)*
                {
                    let mut slots = slots;
                    // SAFETY: FRAME-SLOT, promised by the caller of every kernel, for the optional forms; the data is the
                    // overload's own closure.
                    unsafe {
                        let $me = &*data.cast::<$this>();
                        let function: &$f = $call;
                        $(let $arg = <$ty as Repr>::load_lifted(frame, next(&mut slots));)*
                        let result = match ($($arg,)*) {
                            ($(Some($arg),)*) => match guarded(|| $wrap(function($($arg),*))) {
                                Ok(result) => result.lift(),
                                Err(fault) => return context.fail(fault),
                            },
                            _ => R::missing(),
                        };
                        result.store(frame, next(&mut slots));
                    }
                    STATUS_OK
                }
                lifted::<$f, R, $($ty),*>
            };
        }
    };
}

user_functions! {
    (a A)
    (a A, b B)
    (a A, b B, c C)
    (a A, b B, c C, d D)
    (a A, b B, c C, d D, e E)
    (a A, b B, c C, d D, e E, g G)
}

/// An operator to be registered.
#[derive(Debug)]
pub struct UserOperator {
    name: String,
    summary: String,
    params: Vec<String>,
    pure: bool,
    overloads: Vec<UserOverload>,
}

#[derive(Debug)]
struct UserOverload {
    args: &'static [Operand],
    ret: Operand,
    kernel: Kernel,
    lifted: Kernel,
    data: Data,
    total: bool,
    rule: Option<Rule>,
}

/// Why an operator was not registered.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RegisterError {
    /// The name is not `family.name` in letters, digits and underscores.
    #[error("`{0}` is not a name of the form `family.name`")]
    Name(String),
    /// The name is taken.
    #[error("there is an operator `{0}` already")]
    Taken(String),
    /// There is no function, or functions of unlike kinds.
    #[error("operator `{0}` needs functions of one arity, all strict or none")]
    Functions(String),
    /// The registry is full.
    #[error("a registry holds up to 65,535 operators")]
    Full,
}

impl UserOperator {
    /// An operator called `family.name`.
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

    /// What it does, in a sentence.
    #[must_use]
    pub fn summary(mut self, summary: &str) -> Self {
        summary.clone_into(&mut self.summary);
        self
    }

    /// The names of its parameters, for keyword arguments; by default `x`, `y`, `z`, `x3`...
    #[must_use]
    pub fn params(mut self, names: &[&str]) -> Self {
        self.params = names.iter().map(|name| (*name).to_owned()).collect();
        self
    }

    /// Equal arguments need not give equal results: calls are never evaluated ahead of time. Calls that are written alike
    /// are still one call an evaluation.
    #[must_use]
    pub fn impure(mut self) -> Self {
        self.pure = false;
        self
    }

    /// A function on scalars, or on scalars and `Option`s. More of them are overloads; the first that fits is taken.
    #[must_use]
    pub fn function<Args, F: UserFunction<Args>>(self, function: F) -> Self {
        self.add(function, true, None)
    }

    /// A function that can fail.
    #[must_use]
    pub fn fallible<Args, F>(self, function: F) -> Self
    where
        Fallible<F>: UserFunction<Args>,
    {
        self.add(Fallible(function), false, None)
    }

    /// A function with a lowering rule: the same meaning as instructions, for machine code. See `docs/add-an-operator.md`.
    #[must_use]
    pub fn with_rule<Args, F: UserFunction<Args>>(self, function: F, rule: Rule) -> Self {
        self.add(function, true, Some(rule))
    }

    fn add<Args, F: UserFunction<Args>>(mut self, function: F, total: bool, rule: Option<Rule>) -> Self {
        // An operator lives as long as the process: models hold bare pointers to its functions.
        let data = Data(std::ptr::from_ref(Box::leak(Box::new(function))).cast());
        self.overloads.push(UserOverload {
            args: F::ARGS,
            ret: F::RET,
            kernel: F::KERNEL,
            lifted: F::LIFTED,
            data,
            total,
            rule,
        });
        self
    }
}

impl Registry {
    /// Adds an operator. It lives as long as the process: register at start-up, not per request.
    ///
    /// # Errors
    /// The name is taken or not of the form `family.name`, or the functions do not go together.
    pub fn register(&mut self, operator: UserOperator) -> Result<OpId, RegisterError> {
        let UserOperator { name, summary, params, pure, overloads } = operator;
        let word = |text: &str| {
            text.starts_with(|c: char| c.is_ascii_alphabetic())
                && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
        };
        if !name.split_once('.').is_some_and(|(family, own)| word(family) && own.split('.').all(word)) {
            return Err(RegisterError::Name(name));
        }
        if self.find(&name).is_some() {
            return Err(RegisterError::Taken(name));
        }
        let strict = |o: &UserOverload| o.args.iter().all(|arg| !arg.optional);
        let Some(first) = overloads.first() else { return Err(RegisterError::Functions(name)) };
        let (arity, all_strict) = (first.args.len(), strict(first));
        if overloads.iter().any(|o| o.args.len() != arity || strict(o) != all_strict)
            || (!params.is_empty() && params.len() != arity)
        {
            return Err(RegisterError::Functions(name));
        }
        let total = overloads.iter().all(|o| o.total);
        let overloads: Vec<Overload> = overloads
            .into_iter()
            .map(|o| Overload {
                args: o.args,
                ret: o.ret,
                kernel: o.kernel,
                lifted: all_strict.then_some(o.lifted),
                lower: o.rule.map_or(Lower::Kernel, Lower::Rule),
                data: o.data,
                pure,
            })
            .collect();
        let usual = ["x", "y", "z", "x3", "x4", "x5"].map(str::to_owned);
        let names = if params.is_empty() { usual[..arity].to_vec() } else { params };
        let params: Vec<Parameter> =
            names.into_iter().map(|name| Parameter { name: name.leak(), default: None }).collect();
        self.add(OpDef {
            name: name.leak(),
            aliases: &[],
            summary: summary.leak(),
            params: params.leak(),
            variadic: false,
            presence: if all_strict { PresenceRule::Strict } else { PresenceRule::Custom },
            // A panic is an Invalid fault too, but not one that an operator declares.
            faults: if total { &[] } else { &[FaultKind::Invalid] },
            typing: Typing::Overloads,
            meaning: Meaning::Overloads(overloads.leak()),
            laws: &[],
            examples: &[],
        })
    }
}
