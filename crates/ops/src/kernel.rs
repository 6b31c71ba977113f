//! From a plain Rust body to kernels: the representation of each Rust type in frames, and the macros that turn a body
//! on scalars into the monomorphic functions the interpreter calls. This is the one place where presence meets kernels.
//!
//! Bodies and kernels state what an operator means; lowering rules state it again, independently.

use crate::OperandType;
use crate::direct::Register;
use cembra_runtime::{Bytes, Call, Context, FramePtr, Scalar, Slot, Text};

/// A Rust type that operators compute with: `()`, `bool`, `i32`, `i64`, `u64`, `f32`, `f64`, `Text`, `Bytes`, and
/// `Option` of each. Implemented here for all of them and nowhere else.
pub trait Repr: Copy + Register {
    /// Its QType.
    const OPERAND: OperandType;
    /// Its optional form; itself if it is one.
    type Lifted: Repr;

    /// Reads it from a slot.
    ///
    /// # Safety
    /// FRAME-SLOT for this type at `offset`.
    unsafe fn load(frame: FramePtr, offset: u32) -> Self;

    /// Reads its optional form from a slot, `None` for a missing value; a type that is optional is read as it is.
    ///
    /// # Safety
    /// FRAME-SLOT for the optional form at `offset`.
    unsafe fn load_lifted(frame: FramePtr, offset: u32) -> Option<Self>;

    /// Writes it to a slot.
    ///
    /// # Safety
    /// FRAME-SLOT for this type at `offset`.
    unsafe fn store(self, frame: FramePtr, offset: u32);

    /// As an optional.
    fn lift(self) -> Self::Lifted;

    /// The missing optional.
    fn missing() -> Self::Lifted;
}

/// A `WEAK_FLOAT`, where it must be told from a `FLOAT64`.
#[derive(Clone, Copy)]
pub(crate) struct Weak(pub(crate) f64);

/// An optional unit.
pub(crate) type MaskValue = Option<()>;

/// A mask from a truth value.
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
    Weak, WeakFloat, f64, 8, |v| Weak(v), |v| v.0;
    u64, UInt64, u64, 8, |v| v, |v| v;
    Text<'static>, Text, Text<'static>, 8, |v| v, |v| v;
    Bytes<'static>, Bytes, Bytes<'static>, 8, |v| v, |v| v;
}

// A unit has no bytes worth reading; its optional is the presence byte alone.
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

/// The overload of a strict operator: `strict!(|x: i32, y: i32| -> i32 { body }, rule)`. The body sees present scalars.
///
/// `try` before the bars: the body returns a `Result<_, Fault>`. `try in context` before the bars: it also gets the
/// evaluation context, for its arena. Without a rule, machine code calls the kernel.
macro_rules! strict {
    (try in $context:ident |$($arg:ident: $ty:ty),*| -> $ret:ty $body:block $(, $rule:expr)?) => {{
        fn body($context: &mut cembra_runtime::Context, $($arg: $ty),*) -> Result<$ret, cembra_runtime::Fault> $body
        $crate::kernel::overload!(body, [$($arg: $ty),*], $ret, [$($rule)?], Some({
            // SAFETY: FRAME-SLOT, as [`cembra_runtime::Kernel`] says, for the optional forms of the types.
            unsafe extern "C" fn lifted(
                context: &mut cembra_runtime::Context,
                frame: cembra_runtime::FramePtr,
                call: cembra_runtime::Call,
            ) -> i32 {
                use $crate::kernel::Repr;
                let mut slots = $crate::kernel::Slots::of(call);
                // SAFETY: KERNEL-ROW and FRAME-SLOT, promised by the caller of every kernel: one slot for each argument, in
                // order, in their optional forms, and one for the result.
                unsafe {
                    $(let $arg = <<$ty as Repr>::Lifted as Repr>::load(frame, slots.next());)*
                    let result = match ($($arg,)*) {
                        ($(Some($arg),)*) => match $crate::work::charged!(
                            context, [$($arg: $ty),*], [$($rule)?], body(context, $($arg),*)
                        ) {
                            Ok(result) => result.lift(),
                            Err(fault) => return call.fail(context, fault),
                        },
                        _ => <$ret as Repr>::missing(),
                    };
                    result.store(frame, slots.next());
                    slots.go_on(context, frame)
                }
            }
            lifted
        }))
    }};
    (try |$($arg:ident: $ty:ty),*| -> $ret:ty $body:block $(, $rule:expr)?) => {
        $crate::kernel::strict!(try in _context |$($arg: $ty),*| -> $ret $body $(, $rule)?)
    };
    (|$($arg:ident: $ty:ty),*| -> $ret:ty $body:block $(, $rule:expr)?) => {
        $crate::kernel::strict!(try in _context |$($arg: $ty),*| -> $ret { Ok($body) } $(, $rule)?)
    };
}

/// The overload of an operator with its own presence rule: the body sees exactly the types written.
macro_rules! custom {
    (try in $context:ident |$($arg:ident: $ty:ty),*| -> $ret:ty $body:block $(, $rule:expr)?) => {{
        fn body($context: &mut cembra_runtime::Context, $($arg: $ty),*) -> Result<$ret, cembra_runtime::Fault> $body
        $crate::kernel::overload!(body, [$($arg: $ty),*], $ret, [$($rule)?], None)
    }};
    (try |$($arg:ident: $ty:ty),*| -> $ret:ty $body:block $(, $rule:expr)?) => {
        $crate::kernel::custom!(try in _context |$($arg: $ty),*| -> $ret $body $(, $rule)?)
    };
    (|$($arg:ident: $ty:ty),*| -> $ret:ty $body:block $(, $rule:expr)?) => {
        $crate::kernel::custom!(try in _context |$($arg: $ty),*| -> $ret { Ok($body) } $(, $rule)?)
    };
}

macro_rules! overload {
    ($body_fn:ident, [$($arg:ident: $ty:ty),*], $ret:ty, [$($rule:expr)?], $lifted:expr) => {{
        // SAFETY: FRAME-SLOT, as [`cembra_runtime::Kernel`] says.
        unsafe extern "C" fn kernel(
            context: &mut cembra_runtime::Context,
            frame: cembra_runtime::FramePtr,
            call: cembra_runtime::Call,
        ) -> i32 {
            use $crate::kernel::Repr;
            let mut slots = $crate::kernel::Slots::of(call);
            // SAFETY: KERNEL-ROW and FRAME-SLOT, promised by the caller of every kernel: one slot for each argument, in
            // order, and one for the result.
            unsafe {
                $(let $arg = <$ty as Repr>::load(frame, slots.next());)*
                match $crate::work::charged!(context, [$($arg: $ty),*], [$($rule)?], $body_fn(context, $($arg),*)) {
                    Ok(result) => Repr::store(result, frame, slots.next()),
                    Err(fault) => return call.fail(context, fault),
                }
                slots.go_on(context, frame)
            }
        }
        $crate::Overload {
            args: &[$(<$ty as $crate::kernel::Repr>::OPERAND),*],
            ret: <$ret as $crate::kernel::Repr>::OPERAND,
            kernel,
            lifted: $lifted,
            lower: $crate::kernel::lower!($($rule)?),
            direct: $crate::kernel::direct!($body_fn, [$($arg: $ty),*], $ret, [$($rule)?]),
            data: $crate::KernelData::NONE,
            compile: None,
            pure: true,
        }
    }};
}

macro_rules! lower {
    () => {
        $crate::Lower::Kernel
    };
    ($rule:expr) => {
        $crate::Lower::Rule($rule)
    };
}

/// The form on registers of an overload without a rule.
macro_rules! direct {
    ($body_fn:ident, [$($arg:ident: $ty:ty),*], $ret:ty, [$rule:expr]) => {
        None
    };
    ($body_fn:ident, [$($arg:ident: $ty:ty),*], $ret:ty, []) => {{
        use $crate::direct::Register;
        // SAFETY: DIRECT-CALL, as [`crate::RegisterFn`] says.
        unsafe extern "C" fn direct(
            context: &mut cembra_runtime::Context,
            _: *const (),
            present: u64,
            $($arg: <$ty as Register>::Machine),*
        ) -> cembra_runtime::RegisterResult {
            const REQUIRED: u64 = $crate::direct::required(&[$(<$ty as $crate::kernel::Repr>::OPERAND),*]);
            if !$crate::direct::are_there(present, REQUIRED) {
                return cembra_runtime::RegisterResult::MISSING;
            }
            let mut present = present;
            $(let $arg = <$ty as Register>::arrive($arg, $crate::direct::next_bit(&mut present));)*
            match $body_fn(context, $($arg),*) {
                Ok(result) => Register::leave(result),
                Err(fault) => {
                    context.fail(fault);
                    cembra_runtime::RegisterResult::FAULT
                }
            }
        }
        // SAFETY: DIRECT-CALL: the function is made from these types.
        unsafe {
            $crate::direct::direct(
                &[$(<$ty as Register>::FITS,)* <$ret as Register>::FITS],
                std::mem::transmute::<
                    unsafe extern "C" fn(
                        &mut cembra_runtime::Context,
                        *const (),
                        u64,
                        $(<$ty as Register>::Machine),*
                    ) -> cembra_runtime::RegisterResult,
                    $crate::RegisterFn,
                >(direct),
            )
        }
    }};
}

/// The slots of a call, in order.
pub struct Slots {
    call: Call,
    taken: usize,
}

impl Slots {
    /// All slots of a call.
    #[inline(always)]
    pub(crate) fn of(call: Call) -> Self {
        Slots { call, taken: 0 }
    }

    /// The next one.
    ///
    /// # Safety
    /// KERNEL-ROW, and there is one more.
    #[inline(always)]
    pub(crate) unsafe fn next(&mut self) -> u32 {
        self.taken += 1;
        // SAFETY: KERNEL-ROW, promised by the caller.
        unsafe { self.call.slot(self.taken - 1) }
    }

    /// Goes on with the call behind this one, all of whose slots were taken.
    ///
    /// # Safety
    /// KERNEL-ROW.
    #[inline(always)]
    pub(crate) unsafe fn go_on(self, context: &mut Context, frame: FramePtr) -> i32 {
        // SAFETY: KERNEL-ROW, promised by the caller.
        unsafe { self.call.go_on(self.taken, context, frame) }
    }
}

pub(crate) use {custom, direct, lower, overload, strict};
