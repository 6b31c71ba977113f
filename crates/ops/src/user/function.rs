//! What crosses between an evaluation and a user's function: the types of parameters and results, and how a Rust function
//! becomes kernels. A function is given texts for the time of one call only: it is called for every lifetime, so nothing
//! that it keeps can be a part of them.

use crate::direct::{Register, RegisterFn, are_there, next_bit, required};
use crate::kernel::{Repr, Slots};
use crate::strings::made::{copied, copied_bytes};
use crate::{KernelData, OperandType};
use cembra_runtime::{Bytes, Call, Context, Fault, FaultKind, FramePtr, Kernel, RegisterResult, Text};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Keeps the traits of this file to the types they are implemented for here: what they say is trusted.
mod sealed {
    pub trait Sealed {}

    /// Nobody else can name it, so nobody else can write a function that takes it.
    #[derive(Debug)]
    pub struct Token;
}

use sealed::{Sealed, Token};

/// A type that a parameter of a user's function may have: `()`, `bool`, `i32`, `i64`, `u64`, `f32`, `f64`, `&str`, `String`,
/// [`Text`], `&[u8]`, `Vec<u8>`, [`Bytes`], and `Option` of each. Texts and bytes that are borrowed live as long as the call.
#[diagnostic::on_unimplemented(
    message = "operators cannot take a `{Self}`",
    label = "not a type of a parameter",
    note = "parameters may be `bool`, `i32`, `i64`, `u64`, `f32`, `f64`, `&str`, `String`, `Text`, `&[u8]`, `Vec<u8>`, `Bytes`, `()`, and `Option` of these"
)]
pub trait UserArgument: Sealed {
    /// The type with the lifetime of one call.
    type Given<'call>;
    /// How frames hold it.
    #[doc(hidden)]
    type Held: Repr;

    /// The argument of one call.
    #[doc(hidden)]
    fn give<'call>(held: Self::Held) -> Self::Given<'call>;
}

/// A type that the result of a user's function may have: `()`, `bool`, `i32`, `i64`, `u64`, `f32`, `f64`, `String`, `Vec<u8>`,
/// a `&'static str` or other text that lives for ever, and `Option` of each. What is owned is copied into the memory of the
/// evaluation.
#[diagnostic::on_unimplemented(
    message = "operators cannot result in a `{Self}`",
    label = "not a type of a result",
    note = "results may be `bool`, `i32`, `i64`, `u64`, `f32`, `f64`, `String`, `&'static str`, `Vec<u8>`, `()`, and `Option` of these"
)]
pub trait UserResult: Sealed {
    /// How frames hold it.
    #[doc(hidden)]
    type Held: Repr;

    /// Puts it where the evaluation can have it.
    ///
    /// # Errors
    /// The arena is full.
    #[doc(hidden)]
    fn keep(self, context: &mut Context, token: Token) -> Result<Self::Held, Fault>;
}

macro_rules! scalars {
    ($($ty:ty),*) => { $(
        impl Sealed for $ty {}

        impl UserArgument for $ty {
            type Given<'call> = $ty;
            type Held = $ty;

            #[inline]
            fn give<'call>(held: $ty) -> Self::Given<'call> {
                held
            }
        }

        impl UserResult for $ty {
            type Held = $ty;

            #[inline]
            fn keep(self, _: &mut Context, _: Token) -> Result<$ty, Fault> {
                Ok(self)
            }
        }
    )* };
}

scalars!((), bool, i32, i64, u64, f32, f64);

macro_rules! strings {
    ($($view:ident, $slice:ty, $owned:ty, |$held:ident| $given:expr, $copied:path;)*) => { $(
        impl Sealed for $view<'_> {}
        impl Sealed for &$slice {}
        impl Sealed for $owned {}

        impl UserArgument for $view<'_> {
            type Given<'call> = $view<'call>;
            type Held = $view<'static>;

            #[inline]
            fn give<'call>(held: $view<'static>) -> Self::Given<'call> {
                held
            }
        }

        impl UserArgument for &$slice {
            type Given<'call> = &'call $slice;
            type Held = $view<'static>;

            #[inline]
            fn give<'call>($held: $view<'static>) -> Self::Given<'call> {
                $given
            }
        }

        impl UserArgument for $owned {
            type Given<'call> = $owned;
            type Held = $view<'static>;

            fn give<'call>($held: $view<'static>) -> Self::Given<'call> {
                $given.to_owned()
            }
        }

        impl UserResult for $view<'static> {
            type Held = $view<'static>;

            #[inline]
            fn keep(self, _: &mut Context, _: Token) -> Result<$view<'static>, Fault> {
                Ok(self)
            }
        }

        impl UserResult for &'static $slice {
            type Held = $view<'static>;

            #[inline]
            fn keep(self, _: &mut Context, _: Token) -> Result<$view<'static>, Fault> {
                Ok($view::new(self))
            }
        }

        impl UserResult for $owned {
            type Held = $view<'static>;

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
    Option<T::Held>: Repr,
{
    type Given<'call> = Option<T::Given<'call>>;
    type Held = Option<T::Held>;

    #[inline]
    fn give<'call>(held: Option<T::Held>) -> Self::Given<'call> {
        held.map(T::give)
    }
}

impl<T: UserResult> UserResult for Option<T>
where
    Option<T::Held>: Repr,
{
    type Held = Option<T::Held>;

    #[inline]
    fn keep(self, context: &mut Context, _: Token) -> Result<Option<T::Held>, Fault> {
        self.map(|value| value.keep(context, Token)).transpose()
    }
}

/// A function that can be an operator: `Fn(A, B, ..) -> R` of up to six arguments, of types that are [`UserArgument`]s, with
/// a result that is a [`UserResult`]; or [`Fallible`] around one that returns a `Result`.
///
/// A function of plain values is strict: a missing argument gives a missing result and the function is not called. One that
/// takes an `Option` sees every argument as it is.
///
/// A text is there for the time of one call. What must be kept is copied:
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
    note = "arguments may be `bool`, `i32`, `i64`, `u64`, `f32`, `f64`, `&str`, `String`, `&[u8]`, `Vec<u8>` and `Option` of these; results likewise, but no borrowed text other than a `&'static` one",
    note = "arguments need their types written down; a text is `&str`, never `&'static str`: it is there for the time of one call"
)]
pub trait UserFunction<Args: Arguments>: Send + Sync + 'static {
    /// The type of the result.
    type Ret: UserResult;
    /// True if the function does not fail.
    const TOTAL: bool;

    /// Calls it.
    ///
    /// # Errors
    /// What is wrong with the arguments.
    #[doc(hidden)]
    fn call(&self, args: Args::Held, token: Token) -> Result<Self::Ret, &'static str>;
}

/// A function that may fail: `Fn(A, B, ..) -> Result<R, &'static str>`, the text saying what is wrong with the arguments.
#[derive(Clone, Copy, Debug)]
pub struct Fallible<F>(pub F);

/// Arguments of a function, as a tuple.
pub trait Arguments: Sealed + Sized {
    /// Their types.
    #[doc(hidden)]
    const OPERANDS: &'static [OperandType];
    /// How frames hold them.
    #[doc(hidden)]
    type Held;

    /// Reads them from the first slots of a list.
    ///
    /// # Safety
    /// KERNEL-ROW and FRAME-SLOT for these types.
    #[doc(hidden)]
    unsafe fn load(frame: FramePtr, slots: &mut Slots) -> Self::Held;

    /// Reads their optional forms; `None` if one is missing.
    ///
    /// # Safety
    /// KERNEL-ROW and FRAME-SLOT for the optional forms of these types.
    #[doc(hidden)]
    unsafe fn load_lifted(frame: FramePtr, slots: &mut Slots) -> Option<Self::Held>;

    /// The function on registers, if all types fit.
    #[doc(hidden)]
    fn direct<F: UserFunction<Self>>() -> Option<RegisterFn>;
}

/// The type of a function's result in frames.
type Kept<F, Args> = <<F as UserFunction<Args>>::Ret as UserResult>::Held;

/// What an overload is made from: a function's types, and how it is called.
#[derive(Debug)]
pub(super) struct Callable {
    pub(super) args: &'static [OperandType],
    pub(super) ret: OperandType,
    pub(super) kernel: Kernel,
    pub(super) lifted: Kernel,
    pub(super) direct: Option<RegisterFn>,
    pub(super) total: bool,
}

impl Callable {
    /// A function whose data is given to kernels at each call.
    pub(super) fn of<Args: Arguments, F: UserFunction<Args>>() -> Self {
        Callable {
            args: Args::OPERANDS,
            ret: <Kept<F, Args> as Repr>::OPERAND,
            kernel: kernel::<Args, F>,
            lifted: lifted::<Args, F>,
            direct: Args::direct::<F>(),
            total: F::TOTAL,
        }
    }
}

/// A function that lives as long as the process: models hold bare pointers to it.
pub(super) fn forever(function: impl Send + Sync + 'static) -> KernelData {
    KernelData(std::ptr::from_ref(Box::leak(Box::new(function))).cast())
}

/// Runs a user's function. A reason, or a panic, is a fault.
#[inline]
fn guarded<Args: Arguments, F: UserFunction<Args>>(
    function: &F,
    context: &mut Context,
    args: Args::Held,
) -> Result<Kept<F, Args>, Fault> {
    match catch_unwind(AssertUnwindSafe(|| function.call(args, Token))) {
        Ok(Ok(result)) => result.keep(context, Token),
        Ok(Err(reason)) => Err(invalid(reason)),
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
    // SAFETY: KERNEL-ROW, FRAME-SLOT, OPERATOR-DATA and USER-FUNCTION: the caller of every kernel promises the first two, the data
    // is the overload's own function, and the texts that it is given are views for the time of the call.
    unsafe {
        let args = Args::load(frame, &mut slots);
        match guarded(&*call.data().cast::<F>(), context, args) {
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
        let result = match args.map(|args| guarded(&*call.data().cast::<F>(), context, args)) {
            None => Kept::<F, Args>::missing(),
            Some(Ok(result)) => result.lift(),
            Some(Err(fault)) => return call.fail(context, fault),
        };
        result.store(frame, slots.next());
        slots.go_on(context, frame)
    }
}

macro_rules! user_functions {
    ($(($($arg:ident $ty:ident),*))*) => { $(
        impl<$($ty: UserArgument),*> Sealed for ($($ty,)*) {}

        impl<$($ty: UserArgument),*> Arguments for ($($ty,)*) {
            const OPERANDS: &'static [OperandType] = &[$(<$ty::Held as Repr>::OPERAND),*];
            type Held = ($($ty::Held,)*);

            // SAFETY: FRAME-SLOT and KERNEL-ROW, as the trait says.
            unsafe fn load(frame: FramePtr, slots: &mut Slots) -> Self::Held {
                // SAFETY: FRAME-SLOT, promised by the caller.
                unsafe { ($(<$ty::Held as Repr>::load(frame, slots.next()),)*) }
            }

            unsafe fn load_lifted(frame: FramePtr, slots: &mut Slots) -> Option<Self::Held> {
                // SAFETY: FRAME-SLOT, promised by the caller.
                unsafe {
                    $(let $arg = <$ty::Held as Repr>::load_lifted(frame, slots.next());)*
                    Some(($($arg?,)*))
                }
            }

            fn direct<Fun: UserFunction<Self>>() -> Option<RegisterFn> {
                // SAFETY: DIRECT-CALL and OPERATOR-DATA, as [`RegisterFn`] says.
                unsafe extern "C" fn direct<Fun: UserFunction<($($ty,)*)>, $($ty: UserArgument),*>(
                    context: &mut Context,
                    data: *const (),
                    present: u64,
                    $($arg: <$ty::Held as Register>::Machine),*
                ) -> RegisterResult {
                    let required = const { required(&[$(<$ty::Held as Repr>::OPERAND),*]) };
                    if !are_there(present, required) {
                        return RegisterResult::MISSING;
                    }
                    let mut present = present;
                    let args = ($(<$ty::Held as Register>::arrive($arg, next_bit(&mut present)),)*);
                    // SAFETY: OPERATOR-DATA: the data is the overload's own function.
                    match guarded(unsafe { &*data.cast::<Fun>() }, context, args) {
                        Ok(result) => result.leave(),
                        Err(fault) => {
                            context.fail(fault);
                            RegisterResult::FAULT
                        }
                    }
                }
                // SAFETY: DIRECT-CALL, as `direct`, whose type it is.
                type Typed<$($ty),*> = unsafe extern "C" fn(
                    &mut Context, *const (), u64, $(<<$ty as UserArgument>::Held as Register>::Machine),*
                ) -> RegisterResult;
                let fits = [$(<$ty::Held as Register>::FITS,)* <Kept<Fun, Self> as Register>::FITS];
                // SAFETY: DIRECT-CALL: the function is made from these types.
                unsafe {
                    let function = std::mem::transmute::<Typed<$($ty),*>, RegisterFn>(direct::<Fun, $($ty),*>);
                    crate::direct::direct(&fits, function)
                }
            }
        }

        // A function is called with what lives as long as the call. It is a function of its own types too, so that these are
        // found; by way of a reference, because else they would not be for functions that are known as `impl Fn` only.
        impl<Fun, R, $($ty: UserArgument),*> UserFunction<($($ty,)*)> for Fun
        where
            Fun: Send + Sync + 'static,
            for<'f> &'f Fun: Fn($($ty),*) -> R + Fn($($ty::Given<'_>),*) -> R,
            R: UserResult,
        {
            type Ret = R;
            const TOTAL: bool = true;

            #[inline]
            fn call(&self, ($($arg,)*): ($($ty::Held,)*), _: Token) -> Result<R, &'static str> {
                #[inline(always)]
                fn call<R, $($ty),*>(function: impl Fn($($ty),*) -> R, $($arg: $ty),*) -> R {
                    function($($arg),*)
                }
                Ok(call(self, $($ty::give($arg)),*))
            }
        }

        impl<Fun, R, $($ty: UserArgument),*> UserFunction<($($ty,)*)> for Fallible<Fun>
        where
            Fun: Send + Sync + 'static,
            for<'f> &'f Fun: Fn($($ty),*) -> Result<R, &'static str> + Fn($($ty::Given<'_>),*) -> Result<R, &'static str>,
            R: UserResult,
        {
            type Ret = R;
            const TOTAL: bool = false;

            #[inline]
            fn call(&self, ($($arg,)*): ($($ty::Held,)*), _: Token) -> Result<R, &'static str> {
                #[inline(always)]
                fn call<R, $($ty),*>(function: impl Fn($($ty),*) -> R, $($arg: $ty),*) -> R {
                    function($($arg),*)
                }
                call(&self.0, $($ty::give($arg)),*)
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
