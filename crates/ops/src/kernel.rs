//! From a plain Rust body to kernels: the representation of each Rust type in frames, and the macros that turn a body
//! on scalars into the monomorphic functions the interpreter calls. This is the one place where presence meets kernels.
//!
//! Bodies and kernels state what an operator means; lowering rules state it again, independently.

use crate::Operand;
use cembra_runtime::{FramePtr, Scalar, Slot, Text};

/// A Rust type that operators compute with.
pub(crate) trait Repr: Copy {
    /// Its QType.
    const OPERAND: Operand;
    /// Its optional form; itself if it is one.
    type Lifted: Repr;

    /// Reads it from a slot.
    ///
    /// # Safety
    /// FRAME-SLOT for this type at `offset`.
    unsafe fn load(frame: FramePtr, offset: u32) -> Self;

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
            const OPERAND: Operand = Operand { scalar: Scalar::$scalar, optional: false };
            type Lifted = Option<$ty>;

            #[inline]
            unsafe fn load(frame: FramePtr, offset: u32) -> Self {
                // SAFETY: FRAME-SLOT, promised by the caller.
                let $from = unsafe { frame.read(Slot::<$stored>::at(offset)) };
                $load
            }

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
            const OPERAND: Operand = Operand { scalar: Scalar::$scalar, optional: true };
            type Lifted = Option<$ty>;

            #[inline]
            unsafe fn load(frame: FramePtr, offset: u32) -> Self {
                // SAFETY: FRAME-SLOT, promised by the caller: the presence byte is first, the value at its alignment.
                unsafe {
                    let present = frame.read(Slot::<u8>::at(offset)) != 0;
                    present.then(|| <$ty>::load(frame, offset + $align))
                }
            }

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
    Text<'static>, Text, Text<'static>, 8, |v| v, |v| v;
}

// A unit has no bytes worth reading; its optional is the presence byte alone.
impl Repr for () {
    const OPERAND: Operand = Operand { scalar: Scalar::Unit, optional: false };
    type Lifted = MaskValue;

    #[inline]
    unsafe fn load(_: FramePtr, _: u32) -> Self {}

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
    const OPERAND: Operand = Operand { scalar: Scalar::Unit, optional: true };
    type Lifted = MaskValue;

    #[inline]
    unsafe fn load(frame: FramePtr, offset: u32) -> Self {
        // SAFETY: FRAME-SLOT, promised by the caller.
        mask(unsafe { frame.read(Slot::<u8>::at(offset)) } != 0)
    }

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
/// `try` before the bars: the body returns a `Result<_, Fault>`.
macro_rules! strict {
    (try |$($arg:ident: $ty:ty),*| -> $ret:ty $body:block, $rule:expr) => {{
        fn body($($arg: $ty),*) -> Result<$ret, cembra_runtime::Fault> $body
        $crate::kernel::overload!(body, [$($arg: $ty),*], $ret, $rule, Some({
            unsafe fn lifted(
                context: &mut cembra_runtime::Context,
                frame: cembra_runtime::FramePtr,
                slots: &[u32],
            ) -> i32 {
                use $crate::kernel::Repr;
                let mut slots = slots.iter().copied();
                let mut slot = move || slots.next().unwrap_or(0);
                // SAFETY: FRAME-SLOT, promised by the caller of every kernel, for the optional forms.
                let ($($arg,)*) = unsafe { ($(<<$ty as Repr>::Lifted as Repr>::load(frame, slot()),)*) };
                let result = match ($($arg,)*) {
                    ($(Some($arg),)*) => match body($($arg),*) {
                        Ok(result) => result.lift(),
                        Err(fault) => return context.fail(fault),
                    },
                    _ => <$ret as Repr>::missing(),
                };
                // SAFETY: FRAME-SLOT, promised by the caller of every kernel.
                unsafe { result.store(frame, slot()) };
                cembra_runtime::STATUS_OK
            }
            lifted
        }))
    }};
    (|$($arg:ident: $ty:ty),*| -> $ret:ty $body:block, $rule:expr) => {
        $crate::kernel::strict!(try |$($arg: $ty),*| -> $ret { Ok($body) }, $rule)
    };
}

/// The overload of an operator with its own presence rule: the body sees exactly the types written.
macro_rules! custom {
    (try |$($arg:ident: $ty:ty),*| -> $ret:ty $body:block, $rule:expr) => {{
        fn body($($arg: $ty),*) -> Result<$ret, cembra_runtime::Fault> $body
        $crate::kernel::overload!(body, [$($arg: $ty),*], $ret, $rule, None)
    }};
    (|$($arg:ident: $ty:ty),*| -> $ret:ty $body:block, $rule:expr) => {
        $crate::kernel::custom!(try |$($arg: $ty),*| -> $ret { Ok($body) }, $rule)
    };
}

macro_rules! overload {
    ($body_fn:ident, [$($arg:ident: $ty:ty),*], $ret:ty, $rule:expr, $lifted:expr) => {{
        unsafe fn kernel(
            context: &mut cembra_runtime::Context,
            frame: cembra_runtime::FramePtr,
            slots: &[u32],
        ) -> i32 {
            use $crate::kernel::Repr;
            let mut slots = slots.iter().copied();
            let mut slot = move || slots.next().unwrap_or(0);
            // SAFETY: FRAME-SLOT, promised by the caller of every kernel.
            let ($($arg,)*) = unsafe { ($(<$ty as Repr>::load(frame, slot()),)*) };
            match $body_fn($($arg),*) {
                Ok(result) => {
                    // SAFETY: FRAME-SLOT, promised by the caller of every kernel.
                    unsafe { Repr::store(result, frame, slot()) };
                    cembra_runtime::STATUS_OK
                }
                Err(fault) => context.fail(fault),
            }
        }
        $crate::Overload {
            args: &[$(<$ty as $crate::kernel::Repr>::OPERAND),*],
            ret: <$ret as $crate::kernel::Repr>::OPERAND,
            kernel,
            lifted: $lifted,
            rule: $rule,
        }
    }};
}

pub(crate) use {custom, overload, strict};
