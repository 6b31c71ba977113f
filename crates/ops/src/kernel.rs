//! Makes overloads from plain Rust functions on scalars, called bodies: for `|x: i32, y: i32| x + y` this file derives
//! the kernel, which reads the arguments from a frame and writes the result, the kernel for optional arguments, and the
//! function with arguments in registers. It also defines how each Rust type is stored in frames. No other file handles
//! missing arguments for bodies.
//!
//! Bodies and kernels define the meaning of an operator; lowering rules define it again, independently.

use crate::direct::{Register, RegisterFn, WeakF64, direct, next_bit};
use crate::work::Work;
use crate::{KernelData, Lower, OperandType, Overload, Rule};
use cembra_runtime::{
    Bytes, Call, Context, Date, Duration, Fault, FramePtr, RegisterResult, Scalar, Slot, Text, Timestamp,
};
use cembra_tape::{Bin, Cell, Tape, Un};
use std::marker::PhantomData;
use std::ptr::NonNull;

/// A Rust type that operators compute with: `()`, `bool`, `i32`, `i64`, `u64`, `f32`, `f64`, `Date`, `Timestamp`,
/// `Duration`, `Text`, `Bytes`, and `Option` of each. The trait is implemented here for these types and for no others.
pub trait Repr: Copy + Register + Work {
    /// The type of an operand with this representation.
    const OPERAND: OperandType;
    /// The optional form of the type; the type itself if it is optional.
    type Lifted: Repr;

    /// Reads a value of this type from the frame's slot at `offset`.
    ///
    /// # Safety
    /// There must be a slot for this type at `offset` (rule FRAME-SLOT in `docs/safety.md`).
    unsafe fn load(frame: FramePtr, offset: u32) -> Self;

    /// Reads the optional form of a value from the frame's slot at `offset`; `None` if the value is missing. A value of a type that is already
    /// optional is read unchanged.
    ///
    /// # Safety
    /// There must be a slot for the optional form of the type at `offset` (rule FRAME-SLOT in `docs/safety.md`).
    unsafe fn load_lifted(frame: FramePtr, offset: u32) -> Option<Self>;

    /// Writes a value of this type to the frame's slot at `offset`.
    ///
    /// # Safety
    /// There must be a slot for this type at `offset` (rule FRAME-SLOT in `docs/safety.md`).
    unsafe fn store(self, frame: FramePtr, offset: u32);

    /// Converts a value to the optional form of its type, as a present value.
    fn lift(self) -> Self::Lifted;

    /// The missing value in the optional form of the type.
    fn missing() -> Self::Lifted;
}

/// A mask as a Rust value: an optional unit, which is present if a condition holds.
pub(crate) type MaskValue = Option<()>;

/// The mask that is present if `value` is true.
pub(crate) const fn mask(value: bool) -> MaskValue {
    if value { Some(()) } else { None }
}

macro_rules! repr {
    ($($ty:ty, $scalar:ident, $stored:ty, $align:expr, |$from:ident| $load:expr, |$to:ident| $store:expr;)*) => { $(
        impl Repr for $ty {
            const OPERAND: OperandType = OperandType { scalar: Scalar::$scalar, optional: false };
            type Lifted = Option<$ty>;

            // SAFETY: FRAME-SLOT, as the trait says.
            #[inline]
            unsafe fn load(frame: FramePtr, offset: u32) -> Self {
                // SAFETY: FRAME-SLOT, promised by the caller.
                let $from = unsafe { frame.read(Slot::<$stored>::at(offset)) };
                $load
            }

            // SAFETY: FRAME-SLOT, as the trait says.
            #[inline]
            unsafe fn load_lifted(frame: FramePtr, offset: u32) -> Option<Self> {
                // SAFETY: FRAME-SLOT, promised by the caller.
                unsafe { <Option<$ty>>::load(frame, offset) }
            }

            // SAFETY: FRAME-SLOT, as the trait says.
            #[inline]
            unsafe fn store(self, frame: FramePtr, offset: u32) {
                let $to = self;
                // SAFETY: FRAME-SLOT, promised by the caller.
                unsafe { frame.write(Slot::<$stored>::at(offset), $store) }
            }

            #[inline]
            fn lift(self) -> Self::Lifted {
                Some(self)
            }

            #[inline]
            fn missing() -> Self::Lifted {
                None
            }
        }

        impl Repr for Option<$ty> {
            const OPERAND: OperandType = OperandType { scalar: Scalar::$scalar, optional: true };
            type Lifted = Option<$ty>;

            // SAFETY: FRAME-SLOT, as the trait says.
            #[inline]
            unsafe fn load(frame: FramePtr, offset: u32) -> Self {
                // SAFETY: FRAME-SLOT, promised by the caller: the presence byte is first, the value at its alignment.
                unsafe {
                    let present = frame.read(Slot::<u8>::at(offset)) != 0;
                    present.then(|| <$ty>::load(frame, offset + $align))
                }
            }

            // SAFETY: FRAME-SLOT, as the trait says.
            #[inline]
            unsafe fn load_lifted(frame: FramePtr, offset: u32) -> Option<Self> {
                // SAFETY: FRAME-SLOT, promised by the caller.
                Some(unsafe { Self::load(frame, offset) })
            }

            // SAFETY: FRAME-SLOT, as the trait says.
            #[inline]
            unsafe fn store(self, frame: FramePtr, offset: u32) {
                // SAFETY: FRAME-SLOT, promised by the caller: the presence byte is first, the value at its alignment.
                unsafe {
                    frame.write(Slot::at(offset), u8::from(self.is_some()));
                    if let Some(value) = self {
                        value.store(frame, offset + $align);
                    }
                }
            }

            #[inline]
            fn lift(self) -> Self::Lifted {
                self
            }

            #[inline]
            fn missing() -> Self::Lifted {
                None
            }
        }
    )* };
}

repr! {
    bool, Boolean, u8, 1, |v| v != 0, |v| u8::from(v);
    i32, Int32, i32, 4, |v| v, |v| v;
    i64, Int64, i64, 8, |v| v, |v| v;
    f32, Float32, f32, 4, |v| v, |v| v;
    f64, Float64, f64, 8, |v| v, |v| v;
    WeakF64, WeakFloat, f64, 8, |v| WeakF64(v), |v| v.0;
    u64, UInt64, u64, 8, |v| v, |v| v;
    Date, Date, Date, 4, |v| v, |v| v;
    Timestamp, Timestamp, Timestamp, 8, |v| v, |v| v;
    Duration, Duration, Duration, 8, |v| v, |v| v;
    Text<'static>, Text, Text<'static>, 8, |v| v, |v| v;
    Bytes<'static>, Bytes, Bytes<'static>, 8, |v| v, |v| v;
}

// A unit has no bytes to read; its optional is the presence byte alone.
impl Repr for () {
    const OPERAND: OperandType = OperandType { scalar: Scalar::Unit, optional: false };
    type Lifted = MaskValue;

    // SAFETY: FRAME-SLOT, as the trait says.
    #[inline]
    unsafe fn load(_: FramePtr, _: u32) -> Self {}

    // SAFETY: FRAME-SLOT, as the trait says.
    #[inline]
    unsafe fn load_lifted(frame: FramePtr, offset: u32) -> Option<Self> {
        // SAFETY: FRAME-SLOT, promised by the caller.
        unsafe { MaskValue::load(frame, offset) }
    }

    // SAFETY: FRAME-SLOT, as the trait says.
    #[inline]
    unsafe fn store(self, frame: FramePtr, offset: u32) {
        // SAFETY: FRAME-SLOT, promised by the caller. A unit reads as present where its byte is aliased as a mask.
        unsafe { frame.write(Slot::at(offset), 1_u8) }
    }

    #[inline]
    fn lift(self) -> Self::Lifted {
        Some(())
    }

    #[inline]
    fn missing() -> Self::Lifted {
        None
    }
}

impl Repr for MaskValue {
    const OPERAND: OperandType = OperandType { scalar: Scalar::Unit, optional: true };
    type Lifted = MaskValue;

    // SAFETY: FRAME-SLOT, as the trait says.
    #[inline]
    unsafe fn load(frame: FramePtr, offset: u32) -> Self {
        // SAFETY: FRAME-SLOT, promised by the caller.
        mask(unsafe { frame.read(Slot::<u8>::at(offset)) } != 0)
    }

    // SAFETY: FRAME-SLOT, as the trait says.
    #[inline]
    unsafe fn load_lifted(frame: FramePtr, offset: u32) -> Option<Self> {
        // SAFETY: FRAME-SLOT, promised by the caller.
        Some(unsafe { Self::load(frame, offset) })
    }

    // SAFETY: FRAME-SLOT, as the trait says.
    #[inline]
    unsafe fn store(self, frame: FramePtr, offset: u32) {
        // SAFETY: FRAME-SLOT, promised by the caller.
        unsafe { frame.write(Slot::at(offset), u8::from(self.is_some())) }
    }

    #[inline]
    fn lift(self) -> Self::Lifted {
        self
    }

    #[inline]
    fn missing() -> Self::Lifted {
        None
    }
}

/// The computation (body) of an operator for one list of types, built in or defined by the user. The kernel, the kernel
/// for optionals and the function with arguments in registers are derived from the body in this file.
pub trait Body: Sized {
    /// The data that the body uses besides its arguments: nothing, or the function of a user's operator.
    type Data: 'static;
    /// The types of the arguments, as a tuple.
    type Args: Operands;
    /// The type of the result.
    type Ret: Repr;
    /// True if the body receives only present arguments. For a missing argument, the derived functions return a missing
    /// result without calling the body.
    const STRICT: bool;
    /// The way in which the overload becomes machine code.
    const LOWER: Lower;
    /// True if each call is charged the work of reading its string arguments. False for a body with a rule, because it
    /// does not read them.
    const CHARGED: bool = matches!(Self::LOWER, Lower::Kernel);

    /// Computes the result of the operator.
    ///
    /// # Errors
    /// The fault that the arguments cause.
    fn run(data: &Self::Data, context: &mut Context, args: Self::Args) -> Result<Self::Ret, Fault>;
}

/// The arguments of a body (the Rust function of an operator): a tuple of values in frames. Implemented here for up to eight values, and nowhere
/// else.
pub trait Operands: Sized {
    /// The types of the arguments.
    const TYPES: &'static [OperandType];
    /// True if an argument is a string.
    const STRINGS: bool;
    /// The function on registers that is derived from the body `B` with these arguments.
    type OnRegisters<B: Body<Args = Self>>: RegisterForm;

    /// Reads the arguments from the next slots of a call.
    ///
    /// # Safety
    /// The call must have a slot of the right type for each argument (rules KERNEL-ROW and FRAME-SLOT in
    /// `docs/safety.md`).
    unsafe fn load(frame: FramePtr, slots: &mut Slots) -> Self;

    /// Reads the optional forms of the arguments from the next slots of a call; `None` if an argument is missing.
    ///
    /// # Safety
    /// The call must have a slot for the optional form of each argument (rules KERNEL-ROW and FRAME-SLOT in
    /// `docs/safety.md`).
    unsafe fn load_lifted(frame: FramePtr, slots: &mut Slots) -> Option<Self>;

    /// The work of reading the strings among the arguments, in bytes.
    fn work(&self) -> usize;
}

/// Provides the function with arguments in registers that is derived from a body (the Rust function of an operator).
pub trait RegisterForm {
    /// The function; `None` if a value of one of the types does not fit into a register.
    const FUNCTION: Option<RegisterFn>;
}

/// The [`RegisterForm`] of the body `B` (the Rust function of an operator) for the argument types `Args`.
pub struct OnRegisters<B, Args>(PhantomData<(B, Args)>);

macro_rules! operands {
    ($(($($arg:ident $ty:ident),*))*) => { $(
        impl<$($ty: Repr),*> Operands for ($($ty,)*) {
            const TYPES: &'static [OperandType] = &[$($ty::OPERAND),*];
            const STRINGS: bool = false $(|| $ty::STRING)*;
            type OnRegisters<Own: Body<Args = Self>> = OnRegisters<Own, Self>;

            // SAFETY: KERNEL-ROW and FRAME-SLOT, as the trait says.
            #[inline(always)]
            unsafe fn load(frame: FramePtr, slots: &mut Slots) -> Self {
                // SAFETY: KERNEL-ROW and FRAME-SLOT, promised by the caller.
                unsafe { ($($ty::load(frame, slots.next()),)*) }
            }

            // SAFETY: KERNEL-ROW and FRAME-SLOT, as the trait says.
            #[inline(always)]
            unsafe fn load_lifted(frame: FramePtr, slots: &mut Slots) -> Option<Self> {
                // SAFETY: KERNEL-ROW and FRAME-SLOT, promised by the caller.
                unsafe {
                    $(let $arg = $ty::load_lifted(frame, slots.next());)*
                    Some(($($arg?,)*))
                }
            }

            #[inline(always)]
            fn work(&self) -> usize {
                let ($($arg,)*) = self;
                0_usize $(.saturating_add($arg.work()))*
            }
        }

        impl<Own: Body<Args = ($($ty,)*)>, $($ty: Repr),*> RegisterForm for OnRegisters<Own, ($($ty,)*)> {
            const FUNCTION: Option<RegisterFn> = {
                // SAFETY: DIRECT-CALL and OPERATOR-DATA, as [`RegisterFn`] says.
                unsafe extern "C" fn function<Own: Body<Args = ($($ty,)*)>, $($ty: Repr),*>(
                    context: &mut Context,
                    data: *const (),
                    present: u64,
                    $($arg: $ty::Machine),*
                ) -> RegisterResult {
                    let mut bits = present;
                    let args = ($($ty::arrive($arg, next_bit(&mut bits)),)*);
                    // SAFETY: OPERATOR-DATA, promised by the caller.
                    unsafe { on_registers::<Own>(data, context, present, args) }
                }
                // SAFETY: DIRECT-CALL, as `function`, whose type it is.
                type Typed<$($ty),*> =
                    unsafe extern "C" fn(&mut Context, *const (), u64, $(<$ty as Register>::Machine),*) -> RegisterResult;
                // SAFETY: DIRECT-CALL: the function is made from these types.
                unsafe {
                    let function = std::mem::transmute::<Typed<$($ty),*>, RegisterFn>(function::<Own, $($ty),*>);
                    direct(&[$($ty::FITS,)* Own::Ret::FITS], function)
                }
            };
        }
    )* };
}

operands! {
    (a A)
    (a A, b B)
    (a A, b B, c C)
    (a A, b B, c C, d D)
    (a A, b B, c C, d D, e E)
    (a A, b B, c C, d D, e E, f F)
    (a A, b B, c C, d D, e E, f F, g G)
    (a A, b B, c C, d D, e E, f F, g G, h H)
}

/// Runs a body after charging the work for its strings. If the strings are long, also checks for cancellation after the
/// body.
///
/// # Safety
/// `data` must be the data of the body `B` (rule OPERATOR-DATA in `docs/safety.md`).
#[inline(always)]
unsafe fn run<B: Body>(data: *const (), context: &mut Context, args: B::Args) -> Result<B::Ret, Fault> {
    let work = if const { B::CHARGED && B::Args::STRINGS } { args.work() } else { 0 };
    if const { B::CHARGED && B::Args::STRINGS } {
        context.charge(work)?;
    }
    let data: *const B::Data = if size_of::<B::Data>() == 0 { NonNull::dangling().as_ptr() } else { data.cast() };
    // SAFETY: OPERATOR-DATA, promised by the caller; data without a size may be at any address. USER-FUNCTION: texts that a
    // user's function is given are views for the time of the call.
    let made = B::run(unsafe { &*data }, context, args)?;
    if const { B::CHARGED && B::Args::STRINGS } {
        context.check_after(work)?;
    }
    Ok(made)
}

/// The kernel of a body on its own types.
///
/// # Safety
/// The call must have the slots of these types and the data of the body (rules KERNEL-ROW, FRAME-SLOT and OPERATOR-DATA in
/// `docs/safety.md`).
unsafe extern "C" fn kernel<B: Body>(context: &mut Context, frame: FramePtr, call: Call) -> i32 {
    let mut slots = Slots::of(call);
    // SAFETY: KERNEL-ROW, FRAME-SLOT and OPERATOR-DATA, promised by the caller of every kernel: one slot for each argument, in
    // order, and one for the result.
    unsafe {
        let args = B::Args::load(frame, &mut slots);
        match run::<B>(call.data(), context, args) {
            Ok(result) => result.store(frame, slots.next()),
            Err(fault) => return call.fail(context, fault),
        }
        slots.go_on(context, frame)
    }
}

/// The kernel of a strict body on the optional forms of its types: a missing argument makes the result missing.
///
/// # Safety
/// The call must have the slots of the optional forms and the data of the body (rules KERNEL-ROW, FRAME-SLOT and
/// OPERATOR-DATA in `docs/safety.md`).
unsafe extern "C" fn lifted<B: Body>(context: &mut Context, frame: FramePtr, call: Call) -> i32 {
    let mut slots = Slots::of(call);
    // SAFETY: KERNEL-ROW, FRAME-SLOT and OPERATOR-DATA, as for `kernel`, for the optional forms.
    unsafe {
        let result = match B::Args::load_lifted(frame, &mut slots) {
            Some(args) => match run::<B>(call.data(), context, args) {
                Ok(result) => result.lift(),
                Err(fault) => return call.fail(context, fault),
            },
            None => B::Ret::missing(),
        };
        result.store(frame, slots.next());
        slots.go_on(context, frame)
    }
}

/// The arguments that are not optional, as a bit set: the body is called only if these are present.
pub(crate) const fn required(args: &[OperandType]) -> u64 {
    let (mut at, mut bits) = (0, 0);
    while at < args.len() {
        if !args[at].optional {
            bits |= 1 << at;
        }
        at += 1;
    }
    bits
}

/// Runs a body on arguments in registers. If an argument that must be present is missing, the result is missing.
///
/// # Safety
/// `data` must be the data of the body `B` (rule OPERATOR-DATA in `docs/safety.md`).
#[inline(always)]
unsafe fn on_registers<B: Body>(data: *const (), context: &mut Context, present: u64, args: B::Args) -> RegisterResult {
    let required = const { required(B::Args::TYPES) };
    if present & required != required {
        return RegisterResult::MISSING;
    }
    // SAFETY: OPERATOR-DATA, promised by the caller.
    match unsafe { run::<B>(data, context, args) } {
        Ok(result) => result.leave(),
        Err(fault) => {
            context.fail(fault);
            RegisterResult::FAULT
        }
    }
}

impl Overload {
    /// Makes the overload whose computation is the body `B`, a Rust function on scalars.
    pub(crate) const fn of<B: Body>() -> Overload {
        Overload {
            args: B::Args::TYPES,
            ret: B::Ret::OPERAND,
            kernel: kernel::<B>,
            lifted: if B::STRICT { Some(lifted::<B>) } else { None },
            lower: B::LOWER,
            direct: match B::LOWER {
                Lower::Kernel => <B::Args as Operands>::OnRegisters::<B>::FUNCTION,
                _ => None,
            },
            data: KernelData::NONE,
            compile: None,
            pure: true,
        }
    }
}

/// The lowering rule of an operator whose result is its first operand.
pub(crate) const SAME: Rule = |_, a| a[0];

/// The lowering rule that records the operation `op` on one number.
pub(crate) fn one(t: &mut Tape, op: Un, a: &[Cell]) -> Cell {
    let x = a[0].val(t);
    Cell::num(t.un(op, x))
}

/// The lowering rule that records the operation `op` on two numbers.
pub(crate) fn two(t: &mut Tape, op: Bin, a: &[Cell]) -> Cell {
    let (x, y) = (a[0].val(t), a[1].val(t));
    Cell::num(t.bin(op, x, y))
}

/// Makes the overload of a strict operator: `strict!(|x: i32, y: i32| -> i32 { body }, rule)`. The body receives
/// present scalars.
macro_rules! strict {
    ($($body:tt)*) => { $crate::kernel::overload!(true, $($body)*) };
}

/// Makes the overload of an operator that handles missing arguments itself: the body receives exactly the types in its
/// signature.
macro_rules! custom {
    ($($body:tt)*) => { $crate::kernel::overload!(false, $($body)*) };
}

macro_rules! overload {
    ($strict:literal, try in $context:ident |$($arg:ident: $ty:ty),*| -> $ret:ty $body:block $(, $rule:expr)? $(,)?) => {{
        struct Own;
        impl $crate::kernel::Body for Own {
            type Data = ();
            type Args = ($($ty,)*);
            type Ret = $ret;
            const STRICT: bool = $strict;
            // The rule, if there is one.
            const LOWER: $crate::Lower = [$($crate::Lower::Rule($rule),)? $crate::Lower::Kernel][0];

            #[inline]
            fn run(
                (): &(),
                $context: &mut cembra_runtime::Context,
                ($($arg,)*): Self::Args,
            ) -> Result<$ret, cembra_runtime::Fault> $body
        }
        $crate::Overload::of::<Own>()
    }};
    ($strict:literal, try |$($arg:ident: $ty:ty),*| -> $ret:ty $body:block $($rest:tt)*) => {
        $crate::kernel::overload!($strict, try in _context |$($arg: $ty),*| -> $ret $body $($rest)*)
    };
    ($strict:literal, |$($arg:ident: $ty:ty),*| -> $ret:ty $body:block $($rest:tt)*) => {
        $crate::kernel::overload!($strict, try in _context |$($arg: $ty),*| -> $ret { Ok($body) } $($rest)*)
    };
}

/// Iterates over the slots of a call, in order: the arguments, then the result.
pub struct Slots {
    call: Call,
    taken: usize,
}

impl Slots {
    /// Makes the iterator over the slots of the call `call`.
    #[inline(always)]
    pub(crate) fn of(call: Call) -> Self {
        Slots { call, taken: 0 }
    }

    /// Returns the offset of the next slot in the frame.
    ///
    /// # Safety
    /// The call must be in a row (sequence) of kernel calls that is running, and have one more slot (rule KERNEL-ROW in
    /// `docs/safety.md`).
    #[inline(always)]
    pub(crate) unsafe fn next(&mut self) -> u32 {
        self.taken += 1;
        // SAFETY: KERNEL-ROW, promised by the caller.
        unsafe { self.call.slot(self.taken - 1) }
    }

    /// Runs the next call of the row (sequence of kernel calls). All slots of this call must have been read.
    ///
    /// # Safety
    /// The call must be in a row of kernel calls that is running (rule KERNEL-ROW in `docs/safety.md`).
    #[inline(always)]
    pub(crate) unsafe fn go_on(self, context: &mut Context, frame: FramePtr) -> i32 {
        // SAFETY: KERNEL-ROW, promised by the caller.
        unsafe { self.call.go_on(self.taken, context, frame) }
    }
}

pub(crate) use {custom, overload, strict};
