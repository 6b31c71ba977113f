//! Makes kernels from functions of the user: defines the types that parameters and results may have, and converts
//! arguments and results. Borrowed texts are valid only during one call. A function must accept them with any lifetime,
//! so it cannot store them.

use crate::kernel::{Body, Operands, Repr, required};
use crate::strings::made::{copied, copied_bytes};
use crate::{KernelData, Lower};
use cembra_runtime::{Bytes, Context, Date, Duration, Excerpt, Fault, Text, Timestamp};
use cembra_value::words_of_panic;
use std::any::Any;
use std::fmt;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Makes it impossible to implement the traits of this file elsewhere, because their implementations are trusted.
mod sealed {
    pub trait Sealed {}

    /// A type that code outside this crate cannot name. So functions with a parameter of this type can be neither
    /// called nor implemented outside this crate.
    #[derive(Debug)]
    pub struct Token;
}

use sealed::{Sealed, Token};

/// A type that a parameter of a user's function may have: `()`, `bool`, `i32`, `i64`, `u64`, `f32`, `f64`, [`Date`],
/// [`Timestamp`], [`Duration`], `&str`, `String`, [`Text`], `&[u8]`, `Vec<u8>`, [`Bytes`], and `Option` of each. Texts and bytes that are borrowed
/// live as long as the call.
#[diagnostic::on_unimplemented(
    message = "operators cannot take a `{Self}`",
    label = "not a type of a parameter",
    note = "parameters may be `bool`, `i32`, `i64`, `u64`, `f32`, `f64`, `Date`, `Timestamp`, `Duration`, `&str`, `String`, `Text`, `&[u8]`, `Vec<u8>`, `Bytes`, `()`, and `Option` of these"
)]
pub trait UserArgument: Sealed {
    /// The type of the argument, with the lifetime of one call.
    type Argument<'call>;
    /// The type of the argument in frames.
    #[doc(hidden)]
    type FrameForm: Repr;

    /// Converts an argument from the type that frames have to the type of the function's parameter, for one call.
    #[doc(hidden)]
    fn give<'call>(held: Self::FrameForm) -> Self::Argument<'call>;
}

/// A type that the result of a user's function may have: `()`, `bool`, `i32`, `i64`, `u64`, `f32`, `f64`, [`Date`],
/// [`Timestamp`], [`Duration`], `String`, `Vec<u8>`, a `&'static str` or other text that lives for ever, and `Option` of each.
/// Owned texts and bytes are copied into the memory of the evaluation.
#[diagnostic::on_unimplemented(
    message = "operators cannot result in a `{Self}`",
    label = "not a type of a result",
    note = "results may be `bool`, `i32`, `i64`, `u64`, `f32`, `f64`, `Date`, `Timestamp`, `Duration`, `String`, `&'static str`, `Vec<u8>`, `()`, and `Option` of these"
)]
pub trait UserResult: Sealed {
    /// The type of the result in frames.
    #[doc(hidden)]
    type FrameForm: Repr;

    /// Converts the function's result to the type that frames have; owned texts and bytes are copied into the arena.
    ///
    /// # Errors
    /// If the arena is full.
    #[doc(hidden)]
    fn keep(self, context: &mut Context, token: Token) -> Result<Self::FrameForm, Fault>;
}

macro_rules! scalars {
    ($($ty:ty),*) => { $(
        impl Sealed for $ty {}

        impl UserArgument for $ty {
            type Argument<'call> = $ty;
            type FrameForm = $ty;

            #[inline]
            fn give<'call>(held: $ty) -> Self::Argument<'call> {
                held
            }
        }

        impl UserResult for $ty {
            type FrameForm = $ty;

            #[inline]
            fn keep(self, _: &mut Context, _: Token) -> Result<$ty, Fault> {
                Ok(self)
            }
        }
    )* };
}

scalars!((), bool, i32, i64, u64, f32, f64, Date, Timestamp, Duration);

macro_rules! strings {
    ($($view:ident, $slice:ty, $owned:ty, |$held:ident| $given:expr, $copied:path;)*) => { $(
        impl Sealed for $view<'_> {}
        impl Sealed for &$slice {}
        impl Sealed for $owned {}

        impl UserArgument for $view<'_> {
            type Argument<'call> = $view<'call>;
            type FrameForm = $view<'static>;

            #[inline]
            fn give<'call>(held: $view<'static>) -> Self::Argument<'call> {
                held
            }
        }

        impl UserArgument for &$slice {
            type Argument<'call> = &'call $slice;
            type FrameForm = $view<'static>;

            #[inline]
            fn give<'call>($held: $view<'static>) -> Self::Argument<'call> {
                $given
            }
        }

        impl UserArgument for $owned {
            type Argument<'call> = $owned;
            type FrameForm = $view<'static>;

            fn give<'call>($held: $view<'static>) -> Self::Argument<'call> {
                $given.to_owned()
            }
        }

        impl UserResult for $view<'static> {
            type FrameForm = $view<'static>;

            #[inline]
            fn keep(self, _: &mut Context, _: Token) -> Result<$view<'static>, Fault> {
                Ok(self)
            }
        }

        impl UserResult for &'static $slice {
            type FrameForm = $view<'static>;

            #[inline]
            fn keep(self, _: &mut Context, _: Token) -> Result<$view<'static>, Fault> {
                Ok($view::new(self))
            }
        }

        impl UserResult for $owned {
            type FrameForm = $view<'static>;

            fn keep(self, context: &mut Context, _: Token) -> Result<$view<'static>, Fault> {
                $copied(context, &self)
            }
        }
    )* };
}

strings! {
    Text, str, String, |held| held.as_str(), copied;
    Bytes, [u8], Vec<u8>, |held| held.as_slice(), copied_bytes;
}

impl<T: Sealed> Sealed for Option<T> {}

impl<T: UserArgument> UserArgument for Option<T>
where
    Option<T::FrameForm>: Repr,
{
    type Argument<'call> = Option<T::Argument<'call>>;
    type FrameForm = Option<T::FrameForm>;

    #[inline]
    fn give<'call>(held: Option<T::FrameForm>) -> Self::Argument<'call> {
        held.map(T::give)
    }
}

impl<T: UserResult> UserResult for Option<T>
where
    Option<T::FrameForm>: Repr,
{
    type FrameForm = Option<T::FrameForm>;

    #[inline]
    fn keep(self, context: &mut Context, _: Token) -> Result<Option<T::FrameForm>, Fault> {
        self.map(|value| value.keep(context, Token)).transpose()
    }
}

/// A function that can be an operator: `Fn(A, B, ..) -> R` of up to six arguments, of types that are [`UserArgument`]s, with
/// a result that is a [`UserResult`]; or [`Fallible`] around one that returns a `Result`.
///
/// A function of plain values is strict: a missing argument gives a missing result and the function is not called. A function
/// that takes an `Option` receives every argument as it is.
///
/// A text is valid for the time of one call. To keep a text, copy it:
///
/// ```compile_fail
/// use cembra_ops::UserOperator;
/// use std::sync::Mutex;
///
/// let kept = Mutex::new(Vec::<&'static str>::new());
/// UserOperator::new("my.keep").function(move |text: &str| {
///     kept.lock().unwrap().push(text);
///     1
/// });
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an operator",
    label = "not a function of types that operators have, for texts of any lifetime",
    note = "an operator is a `Fn` of one to six arguments, `Send`, `Sync` and `'static`, such as `|x: f64, name: &str| -> f64`",
    note = "arguments may be `bool`, `i32`, `i64`, `u64`, `f32`, `f64`, `Date`, `Timestamp`, `Duration`, `&str`, `String`, `&[u8]`, `Vec<u8>` and `Option` of these; results likewise, but no borrowed text other than a `&'static` one",
    note = "arguments need their types written down; a text is `&str`, never `&'static str`: it is there for the time of one call"
)]
pub trait UserFunction<Args: Arguments>: Send + Sync + 'static {
    /// The type of the result.
    type Ret: UserResult;
    /// True if the function cannot fail.
    const TOTAL: bool;

    /// Calls the function with arguments of the types that frames have.
    ///
    /// # Errors
    /// The reason why the function has no result for the arguments.
    #[doc(hidden)]
    fn call(&self, args: Args::FrameForm, token: Token) -> Result<Self::Ret, Reason>;
}

/// A user's function that may fail: `Fn(A, B, ..) -> Result<R, E>`, where `E` is the reason: a `&'static str`, a `String`, an error that implements
/// `Display`, or a [`Reason`] with a code of its own.
#[derive(Clone, Copy, Debug)]
pub struct Fallible<F>(pub F);

/// The reason why a user's function has no result: a code, and the message of the evaluation's error, which is cut after 1,000 characters. A value
/// that implements `Display` can be converted to a reason with the code `invalid`.
#[derive(Clone, Debug)]
pub struct Reason {
    code: Option<&'static str>,
    text: String,
}

impl Reason {
    /// Makes a reason with a code of its own, which [`Error::code`](cembra_value::Error::code) returns. Codes have the form
    /// `no-rate`.
    #[must_use]
    pub fn new(code: &'static str, text: impl fmt::Display) -> Reason {
        Reason { code: Some(code), ..Reason::from(text) }
    }

    /// Converts the reason to a fault. The context stores its text, from which the error is made.
    #[cold]
    fn fault(self, context: &mut Context) -> Fault {
        context.refuse(Excerpt::of_message(self.text), self.code)
    }
}

impl<T: fmt::Display> From<T> for Reason {
    fn from(text: T) -> Reason {
        Reason { code: None, text: text.to_string() }
    }
}

/// The arguments of a user's function, as a tuple.
pub trait Arguments: Sealed {
    /// The types of the arguments in frames.
    #[doc(hidden)]
    type FrameForm: Operands;
}

/// The type of a function's result in frames.
type FrameResult<F, Args> = <<F as UserFunction<Args>>::Ret as UserResult>::FrameForm;

/// The body (the computation) of an operator that calls a user's function.
pub(super) struct UserBody<Args, F>(PhantomData<(Args, F)>);

impl<Args: Arguments, F: UserFunction<Args>> Body for UserBody<Args, F> {
    type Data = F;
    type Args = Args::FrameForm;
    type Ret = FrameResult<F, Args>;
    const STRICT: bool = required(Args::FrameForm::TYPES) == (1 << Args::FrameForm::TYPES.len()) - 1;
    const LOWER: Lower = Lower::Kernel;
    const CHARGED: bool = false;

    /// Calls the function. An error of the function, or a panic, becomes a fault.
    #[inline]
    fn run(function: &F, context: &mut Context, args: Args::FrameForm) -> Result<FrameResult<F, Args>, Fault> {
        match catch_unwind(AssertUnwindSafe(|| function.call(args, Token))) {
            Ok(Ok(result)) => result.keep(context, Token),
            Ok(Err(reason)) => Err(reason.fault(context)),
            Err(payload) => Err(panicked(payload).fault(context)),
        }
    }
}

/// Leaks a function, so that it lives as long as the process, because models contain bare pointers to it.
pub(super) fn forever(function: impl Send + Sync + 'static) -> KernelData {
    KernelData(std::ptr::from_ref(Box::leak(Box::new(function))).cast())
}

#[cold]
#[inline(never)]
fn panicked(payload: Box<dyn Any + Send>) -> Reason {
    Reason::from(format!("the operator panicked: {}", words_of_panic(payload)))
}

macro_rules! user_functions {
    ($(($($arg:ident $ty:ident),*))*) => { $(
        impl<$($ty: UserArgument),*> Sealed for ($($ty,)*) {}

        impl<$($ty: UserArgument),*> Arguments for ($($ty,)*) {
            type FrameForm = ($($ty::FrameForm,)*);
        }

        // The function is called with arguments that live as long as the call. The second bound, with its own types, lets the
        // compiler infer them; it is on a reference, because otherwise they are not inferred for a function known only as `impl
        // Fn`.
        impl<Fun, R, $($ty: UserArgument),*> UserFunction<($($ty,)*)> for Fun
        where
            Fun: Send + Sync + 'static,
            for<'f> &'f Fun: Fn($($ty),*) -> R + Fn($($ty::Argument<'_>),*) -> R,
            R: UserResult,
        {
            type Ret = R;
            const TOTAL: bool = true;

            #[inline]
            fn call(&self, ($($arg,)*): ($($ty::FrameForm,)*), _: Token) -> Result<R, Reason> {
                #[inline(always)]
                fn call<R, $($ty),*>(function: impl Fn($($ty),*) -> R, $($arg: $ty),*) -> R {
                    function($($arg),*)
                }
                Ok(call(self, $($ty::give($arg)),*))
            }
        }

        impl<Fun, R, Why, $($ty: UserArgument),*> UserFunction<($($ty,)*)> for Fallible<Fun>
        where
            Fun: Send + Sync + 'static,
            for<'f> &'f Fun: Fn($($ty),*) -> Result<R, Why> + Fn($($ty::Argument<'_>),*) -> Result<R, Why>,
            R: UserResult,
            Why: Into<Reason>,
        {
            type Ret = R;
            const TOTAL: bool = false;

            #[inline]
            fn call(&self, ($($arg,)*): ($($ty::FrameForm,)*), _: Token) -> Result<R, Reason> {
                #[inline(always)]
                fn call<R, $($ty),*>(function: impl Fn($($ty),*) -> R, $($arg: $ty),*) -> R {
                    function($($arg),*)
                }
                call(&self.0, $($ty::give($arg)),*).map_err(Why::into)
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
