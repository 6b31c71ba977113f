//! Operators of the user: closures over scalars, optionals and strings, registered at run time and from then on like any
//! other operator, callable from text in every backend. A panic inside becomes an error of the evaluation.

use crate::definition::{Data, Lower, Meaning, OpDef, Operand, Overload, PresenceRule, Rule, Typing};
use crate::direct::{Direct, Register, are_there, next_bit, required};
use crate::kernel::{Repr, Slots};
use crate::{Compile, OpId, Registry, State};
use cembra_expr::Parameter;
use cembra_runtime::{Answer, Call, Context, Fault, FaultKind, FramePtr, Kernel, Text};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A function that can be an operator: `Fn(A, B, ..) -> R` of up to six arguments, each a type that operators compute with;
/// or [`Fallible`] around one that returns a `Result`.
///
/// A function of plain scalars is strict: a missing argument gives a missing result and the function is not called. One
/// that takes an `Option` sees every argument as it is.
pub trait UserFunction<Args: Arguments>: Send + Sync + 'static {
    /// The type of the result.
    type Ret: Repr;
    /// True if the function does not fail.
    const TOTAL: bool;

    /// Calls it.
    ///
    /// # Errors
    /// What is wrong with the arguments.
    fn call(&self, args: Args) -> Result<Self::Ret, &'static str>;
}

/// A function that may fail: `Fn(A, B, ..) -> Result<R, &'static str>`, the text saying what is wrong with the arguments.
#[derive(Clone, Copy, Debug)]
pub struct Fallible<F>(pub F);

/// Arguments of a function, as a tuple.
pub trait Arguments: Sized {
    /// Their types.
    const OPERANDS: &'static [Operand];

    /// Reads them from the first slots of a list.
    ///
    /// # Safety
    /// KERNEL-ROW and FRAME-SLOT for these types.
    unsafe fn load(frame: FramePtr, slots: &mut Slots) -> Self;

    /// Reads their optional forms; `None` if one is missing.
    ///
    /// # Safety
    /// KERNEL-ROW and FRAME-SLOT for the optional forms of these types.
    unsafe fn load_lifted(frame: FramePtr, slots: &mut Slots) -> Option<Self>;

    /// The function on registers, if all types fit.
    fn direct<F: UserFunction<Self>>() -> Option<Direct>;
}

/// Runs a user's function. A reason, or a panic, is a fault.
#[inline]
fn guarded<Args: Arguments, F: UserFunction<Args>>(function: &F, args: Args) -> Result<F::Ret, Fault> {
    match catch_unwind(AssertUnwindSafe(|| function.call(args))) {
        Ok(result) => result.map_err(invalid),
        Err(payload) => Err(panicked(payload)),
    }
}

#[cold]
#[inline(never)]
fn invalid(reason: &'static str) -> Fault {
    Fault { kind: FaultKind::Invalid, operands: [reason.as_ptr() as u64, reason.len() as u64] }
}

#[cold]
#[inline(never)]
fn panicked(payload: Box<dyn Any + Send>) -> Fault {
    // What was thrown may throw again when it is dropped.
    if let Err(again) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        std::mem::forget(again);
    }
    invalid("the operator panicked")
}

/// The kernel of a function on its own types.
///
/// # Safety
/// FRAME-SLOT for these types, as for every kernel; OPERATOR-DATA: the data is the function.
unsafe extern "C" fn kernel<Args: Arguments, F: UserFunction<Args>>(
    context: &mut Context,
    frame: FramePtr,
    call: Call,
) -> i32 {
    let mut slots = Slots::of(call);
    // SAFETY: KERNEL-ROW and FRAME-SLOT, promised by the caller of every kernel; OPERATOR-DATA: the data is the overload's
    // own function.
    unsafe {
        let args = Args::load(frame, &mut slots);
        match guarded(&*call.data().cast::<F>(), args) {
            Ok(result) => result.store(frame, slots.next()),
            Err(fault) => return call.fail(context, fault),
        }
        slots.go_on(context, frame)
    }
}

/// The kernel of a strict function on the optional forms of its types.
///
/// # Safety
/// FRAME-SLOT for these forms, as for every kernel; OPERATOR-DATA: the data is the function.
unsafe extern "C" fn lifted<Args: Arguments, F: UserFunction<Args>>(
    context: &mut Context,
    frame: FramePtr,
    call: Call,
) -> i32 {
    let mut slots = Slots::of(call);
    // SAFETY: KERNEL-ROW and FRAME-SLOT, promised by the caller of every kernel, for the optional forms; OPERATOR-DATA, as
    // above.
    unsafe {
        let args = Args::load_lifted(frame, &mut slots);
        let result = match args.map(|args| guarded(&*call.data().cast::<F>(), args)) {
            None => F::Ret::missing(),
            Some(Ok(result)) => result.lift(),
            Some(Err(fault)) => return call.fail(context, fault),
        };
        result.store(frame, slots.next());
        slots.go_on(context, frame)
    }
}

macro_rules! user_functions {
    ($(($($arg:ident $ty:ident),*))*) => { $(
        impl<$($ty: Repr),*> Arguments for ($($ty,)*) {
            const OPERANDS: &'static [Operand] = &[$($ty::OPERAND),*];

            // SAFETY: FRAME-SLOT and KERNEL-ROW, as the trait says.
            unsafe fn load(frame: FramePtr, slots: &mut Slots) -> Self {
                // SAFETY: FRAME-SLOT, promised by the caller.
                unsafe { ($($ty::load(frame, slots.next()),)*) }
            }

            unsafe fn load_lifted(frame: FramePtr, slots: &mut Slots) -> Option<Self> {
                // SAFETY: FRAME-SLOT, promised by the caller.
                unsafe {
                    $(let $arg = $ty::load_lifted(frame, slots.next());)*
                    Some(($($arg?,)*))
                }
            }

            fn direct<Fun: UserFunction<Self>>() -> Option<Direct> {
                // SAFETY: DIRECT-CALL and OPERATOR-DATA, as [`Direct`] says.
                unsafe extern "C" fn direct<Fun: UserFunction<($($ty,)*)>, $($ty: Repr),*>(
                    context: &mut Context,
                    data: *const (),
                    present: u64,
                    $($arg: $ty::Machine),*
                ) -> Answer {
                    let required = const { required(&[$($ty::OPERAND),*]) };
                    if !are_there(present, required) {
                        return Answer::MISSING;
                    }
                    let mut present = present;
                    let args = ($($ty::arrive($arg, next_bit(&mut present)),)*);
                    // SAFETY: OPERATOR-DATA: the data is the overload's own function.
                    match guarded(unsafe { &*data.cast::<Fun>() }, args) {
                        Ok(result) => result.leave(),
                        Err(fault) => {
                            context.fail(fault);
                            Answer::FAULT
                        }
                    }
                }
                // SAFETY: DIRECT-CALL, as `direct`, whose type it is.
                type Typed<$($ty),*> = unsafe extern "C" fn(
                    &mut Context, *const (), u64, $(<$ty as Register>::Machine),*
                ) -> Answer;
                // SAFETY: DIRECT-CALL: the function is made from these types.
                unsafe {
                    let function = std::mem::transmute::<Typed<$($ty),*>, Direct>(direct::<Fun, $($ty),*>);
                    crate::direct::direct(&[$($ty::FITS,)* Fun::Ret::FITS], function)
                }
            }
        }

        impl<Fun, R, $($ty: Repr),*> UserFunction<($($ty,)*)> for Fun
        where
            Fun: Fn($($ty),*) -> R + Send + Sync + 'static,
            R: Repr,
        {
            type Ret = R;
            const TOTAL: bool = true;

            fn call(&self, ($($arg,)*): ($($ty,)*)) -> Result<R, &'static str> {
                Ok(self($($arg),*))
            }
        }

        impl<Fun, R, $($ty: Repr),*> UserFunction<($($ty,)*)> for Fallible<Fun>
        where
            Fun: Fn($($ty),*) -> Result<R, &'static str> + Send + Sync + 'static,
            R: Repr,
        {
            type Ret = R;
            const TOTAL: bool = false;

            fn call(&self, ($($arg,)*): ($($ty,)*)) -> Result<R, &'static str> {
                self.0($($arg),*)
            }
        }
    )* };
}

user_functions! {
    (a A)
    (a A, b B)
    (a A, b B, c C)
    (a A, b B, c C, d D)
    (a A, b B, c C, d D, e E)
    (a A, b B, c C, d D, e E, f F)
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
    args: Vec<Operand>,
    ret: Operand,
    kernel: Kernel,
    lifted: Kernel,
    direct: Option<Direct>,
    data: Data,
    compile: Option<Compile>,
    total: bool,
    rule: Option<Rule>,
}

impl UserOverload {
    /// The overload of a function whose data is still to come.
    fn of<Args: Arguments, F: UserFunction<Args>>() -> Self {
        UserOverload {
            args: Args::OPERANDS.to_vec(),
            ret: F::Ret::OPERAND,
            kernel: kernel::<Args, F>,
            lifted: lifted::<Args, F>,
            direct: Args::direct::<F>(),
            data: Data::NONE,
            compile: None,
            total: F::TOTAL,
            rule: None,
        }
    }
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
    pub fn function<Args: Arguments, F: UserFunction<Args>>(self, function: F) -> Self {
        self.add(function, None)
    }

    /// A function that can fail.
    #[must_use]
    pub fn fallible<Args: Arguments, F>(self, function: F) -> Self
    where
        Fallible<F>: UserFunction<Args>,
    {
        self.add(Fallible(function), None)
    }

    /// A function with a lowering rule: the same meaning as instructions, for machine code. See `docs/add-an-operator.md`.
    #[must_use]
    pub fn with_rule<Args: Arguments, F: UserFunction<Args>>(self, function: F, rule: Rule) -> Self {
        self.add(function, Some(rule))
    }

    /// A function that is made when a model is compiled, from the operator's first argument, which must be a literal text:
    /// a table, a forest, a program in another language. Reading it costs nothing per evaluation. The operator's other
    /// arguments are the function's, in their order. The function lives as long as the model; the closure that makes it, as
    /// long as the process. Its error says what is wrong with the text; then the model does not compile.
    #[must_use]
    pub fn compiled<Args, F, E>(mut self, compile: impl Fn(&str) -> Result<F, E> + Send + Sync + 'static) -> Self
    where
        Args: Arguments,
        F: UserFunction<Args>,
        E: std::fmt::Display,
    {
        let compile = move |text: &str| compile(text).map(State::new).map_err(|error| error.to_string());
        let mut overload = UserOverload::of::<Args, F>();
        overload.args.insert(0, Text::OPERAND);
        overload.compile = Some(Compile(Box::leak(Box::new(compile))));
        self.overloads.push(overload);
        self
    }

    fn add<Args: Arguments, F: UserFunction<Args>>(mut self, function: F, rule: Option<Rule>) -> Self {
        // An operator lives as long as the process: models hold bare pointers to its functions.
        let data = Data(std::ptr::from_ref(Box::leak(Box::new(function))).cast());
        self.overloads.push(UserOverload { data, rule, ..UserOverload::of::<Args, F>() });
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
                args: o.args.leak(),
                ret: o.ret,
                kernel: o.kernel,
                lifted: all_strict.then_some(o.lifted),
                lower: o.rule.map_or(Lower::Kernel, Lower::Rule),
                direct: o.direct,
                data: o.data,
                compile: o.compile,
                pure,
            })
            .collect();
        let usual = |at| match at {
            0 => "x".to_owned(),
            1 => "y".to_owned(),
            2 => "z".to_owned(),
            _ => format!("x{at}"),
        };
        let names = if params.is_empty() { (0..arity).map(usual).collect() } else { params };
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
