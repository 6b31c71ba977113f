//! Operators by which a plan reads, writes and aggregates columns. A column here is a sequence of elements in memory
//! outside the frame, a fixed number of bytes apart. Operands give the address of the first element and this distance.
//! An element has the memory layout of a slot in a frame.
//!
//! Texts, builders and rewrites cannot use these operators, because their operands are addresses:
//! [`Registry::find`](crate::Registry::find) does not find the operators. They occur in plans for short lists, which
//! `cembra-array` makes, and in plans that read inputs on demand, which `cembra-prepare` makes.

mod ask;
mod find;
mod fold;

pub(crate) use ask::ASK;
pub use ask::InputsView;
pub(crate) use find::{FIND, ROW};
pub use find::{Lookup, MapView, find_overload};
pub(crate) use fold::FOLD;
pub use fold::fold_overload;

use crate::definition::{
    CUSTOM, Lower, Meaning, MemoryAccess, OpDef, OperandType, OverArrays, Overload, Typing, param,
};
use crate::kernel::{Body, Repr};
use crate::typing::refuse;
use cembra_runtime::{Bytes, Context, Fault, FramePtr, QType, Text};
use std::marker::PhantomData;

/// Default fields for the records of operators on columns. Operand types do not select an overload of these operators;
/// only [`overload`] and [`fold_overload`] do.
const COLUMN: OpDef = OpDef {
    typing: Typing::Rule(|_| refuse(0, "only plans can use operators that read or write columns".to_owned())),
    over_arrays: OverArrays::Own,
    is_of_plans: true,
    ..CUSTOM
};

/// The address of an element, as a frame that has only this element.
///
/// # Safety
/// The column must have an element at this position (rule COLUMN in `docs/safety.md`).
#[inline(always)]
unsafe fn element(base: u64, stride: i64, at: i64) -> FramePtr {
    FramePtr::from_raw((base as *mut u8).wrapping_offset((stride.wrapping_mul(at)) as isize))
}

/// The body (the Rust function) of the operator that reads an element of type `T`.
struct ReadElement<T>(PhantomData<T>);

impl<T: Repr + 'static> Body for ReadElement<T> {
    type Data = ();
    type Args = (u64, i64, i64);
    type Ret = T;
    const STRICT: bool = false;
    const LOWER: Lower = Lower::Memory(MemoryAccess::Read);

    fn run((): &(), _: &mut Context, (base, stride, at): Self::Args) -> Result<T, Fault> {
        // SAFETY: COLUMN: the plan reads the column at positions that it has. FRAME-SLOT: elements are of the overload's type.
        Ok(unsafe { T::load(element(base, stride, at), 0) })
    }
}

/// The body (the Rust function) of the operator that writes an element of type `T`. The result is the position of the
/// element, so that a step which must run after the write can use it as an operand.
struct WriteElement<T>(PhantomData<T>);

impl<T: Repr + 'static> Body for WriteElement<T> {
    type Data = ();
    type Args = (u64, i64, i64, T);
    type Ret = i64;
    const STRICT: bool = false;
    const LOWER: Lower = Lower::Memory(MemoryAccess::Write);

    fn run((): &(), _: &mut Context, (base, stride, at, value): Self::Args) -> Result<i64, Fault> {
        // SAFETY: COLUMN: the plan writes to the column at positions that it has, and no other code uses it during the call.
        // FRAME-SLOT: elements are of the overload's type.
        unsafe { value.store(element(base, stride, at), 0) };
        Ok(at)
    }
}

macro_rules! accesses {
    ($($ty:ty),*) => {
        const READS: &[Overload] = &[$(Overload::of::<ReadElement<$ty>>(), Overload::of::<ReadElement<Option<$ty>>>()),*];
        const WRITES: &[Overload] = &[$(
            Overload { pure: false, ..Overload::of::<WriteElement<$ty>>() },
            Overload { pure: false, ..Overload::of::<WriteElement<Option<$ty>>>() }
        ),*];
        const ASKS: &[Overload] =
            &[$(Overload::of::<ask::InputRead<$ty>>(), Overload::of::<ask::InputRead<Option<$ty>>>()),*];
        const TYPES: &[OperandType] = &[$(<$ty as Repr>::OPERAND, <Option<$ty> as Repr>::OPERAND),*];
    };
}

accesses!((), bool, i32, i64, u64, f32, f64, Text<'static>, Bytes<'static>);

pub(crate) static READ: OpDef = OpDef {
    name: "column._read",
    summary: "An element of a column.",
    params: &[param("base"), param("stride"), param("at")],
    meaning: Meaning::Overloads(READS),
    ..COLUMN
};

pub(crate) static WRITE: OpDef = OpDef {
    name: "column._write",
    summary: "Writes an element of a column, and gives its position.",
    params: &[param("base"), param("stride"), param("at"), param("x")],
    meaning: Meaning::Overloads(WRITES),
    ..COLUMN
};

/// The index of the overload for elements or inputs of type `element`, which is the same in the operators `READ`, `WRITE` and `ASK`; `None` if
/// columns cannot have elements of this type.
#[must_use]
pub fn overload(element: &QType) -> Option<u16> {
    let (QType::Scalar(scalar) | QType::Optional(scalar)) = element else { return None };
    let wanted = OperandType { scalar: scalar.representation(), optional: element.is_optional() };
    TYPES.iter().position(|of| *of == wanted).map(|at| at as u16)
}
