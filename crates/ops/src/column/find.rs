//! Defines the operators by which a plan looks up keys in dictionaries of its caller: the caller passes a function that
//! looks up keys, and the plan calls it when it needs the value for a key.

use super::COLUMN;
use crate::definition::{Lower, Meaning, OpDef, OperandType, Overload, param};
use crate::kernel::{Body, Repr};
use cembra_runtime::{Bytes, Context, Fault, FaultKind, FramePtr, Scalar, Text};
use std::marker::PhantomData;
use std::mem::MaybeUninit;

/// The result of looking a key up in a dictionary.
#[repr(i32)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lookup {
    /// The dictionary does not have the key.
    Absent = 0,
    /// The dictionary has the key. The value was written; it may be missing.
    Found = 1,
    /// The lookup itself failed, so that the evaluation must stop.
    Failed = 2,
}

/// A dictionary of the caller, as a plan receives it to look up keys during a call: a function and its first argument.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct MapView {
    /// The first argument of `find`, which identifies the dictionary.
    pub map: *const (),
    /// Looks up the key that the second argument points to. Writes the key's value, an optional, to the third argument,
    /// unless the third argument is null.
    ///
    /// # Safety
    /// The first argument must be `map`, the second must point to a key of the dictionary's type, and the third must be
    /// null or point to memory for an optional value of the dictionary (rule COLUMN in `docs/safety.md`).
    pub find: unsafe fn(*const (), FramePtr, FramePtr) -> Lookup,
}

// SAFETY: COLUMN: it is used during calls alone, and whoever makes a call has the dictionary then.
unsafe impl Send for MapView {}
// SAFETY: COLUMN: it is used during calls alone, and whoever makes a call has the dictionary then.
unsafe impl Sync for MapView {}

/// Memory for a key or a value of any type that is not a tuple; an optional text takes the most words.
type Room = MaybeUninit<[u64; 3]>;

/// Looks up a key, and writes its value to `value` unless that is null. Returns true if the dictionary has the key.
///
/// # Safety
/// COLUMN: `view` is the address of a dictionary with such keys, and `value` is null or has room for its values.
unsafe fn ask<K: Repr>(view: u64, key: K, value: FramePtr) -> Result<bool, Fault> {
    let mut room = Room::uninit();
    let place = FramePtr::from_raw(room.as_mut_ptr().cast());
    // SAFETY: COLUMN, promised by the caller. FRAME-SLOT: there is room for the key.
    let sought = unsafe {
        key.store(place, 0);
        let view = &*(view as *const MapView);
        (view.find)(view.map, place, value)
    };
    match sought {
        Lookup::Absent => Ok(false),
        Lookup::Found => Ok(true),
        Lookup::Failed => Err(Fault::new(FaultKind::Invalid)),
    }
}

/// The body (the Rust function) of the operator that looks up the value of a key.
struct Find<K, V>(PhantomData<(K, V)>);

impl<K: Repr + 'static, V: Repr + 'static> Body for Find<K, V>
where
    Option<V>: Repr,
{
    type Data = ();
    type Args = (u64, K);
    type Ret = Option<V>;
    const STRICT: bool = false;
    const LOWER: Lower = Lower::Kernel;

    fn run((): &(), _: &mut Context, (view, key): Self::Args) -> Result<Option<V>, Fault> {
        let mut room = Room::uninit();
        let place = FramePtr::from_raw(room.as_mut_ptr().cast());
        // SAFETY: COLUMN: the plan was made for a dictionary of these types. FRAME-SLOT: the value was written if the key was found.
        unsafe { if ask(view, key, place)? { Ok(<Option<V>>::load(place, 0)) } else { Ok(None) } }
    }
}

/// The body (the Rust function) of the operator that tests whether a dictionary has a key. The result is 0 if the
/// dictionary has the key and missing otherwise; callers use it as a row.
struct Row<K>(PhantomData<K>);

impl<K: Repr + 'static> Body for Row<K> {
    type Data = ();
    type Args = (u64, K);
    type Ret = Option<i64>;
    const STRICT: bool = false;
    const LOWER: Lower = Lower::Kernel;

    fn run((): &(), _: &mut Context, (view, key): Self::Args) -> Result<Option<i64>, Fault> {
        // SAFETY: COLUMN: the plan was made for a dictionary of such keys.
        let found = unsafe { ask(view, key, FramePtr::from_raw(std::ptr::null_mut()))? };
        Ok(found.then_some(0))
    }
}

/// The overloads for one type of keys, with one overload per type of values.
macro_rules! of_key {
    ($key:ty) => {
        [
            Overload::of::<Find<$key, ()>>(),
            Overload::of::<Find<$key, bool>>(),
            Overload::of::<Find<$key, i32>>(),
            Overload::of::<Find<$key, i64>>(),
            Overload::of::<Find<$key, u64>>(),
            Overload::of::<Find<$key, f32>>(),
            Overload::of::<Find<$key, f64>>(),
            Overload::of::<Find<$key, Text<'static>>>(),
            Overload::of::<Find<$key, Bytes<'static>>>(),
        ]
    };
}

static FINDS: [[Overload; 9]; 6] =
    [of_key!(bool), of_key!(i32), of_key!(i64), of_key!(u64), of_key!(Text<'static>), of_key!(Bytes<'static>)];

static ROWS: [Overload; 6] = [
    Overload::of::<Row<bool>>(),
    Overload::of::<Row<i32>>(),
    Overload::of::<Row<i64>>(),
    Overload::of::<Row<u64>>(),
    Overload::of::<Row<Text<'static>>>(),
    Overload::of::<Row<Bytes<'static>>>(),
];

pub(crate) static FIND: OpDef = OpDef {
    name: "column._find",
    summary: "The value for a key in a dictionary of the caller; missing if it has none.",
    params: &[param("map"), param("key")],
    faults: &[FaultKind::Invalid],
    meaning: Meaning::Overloads(FINDS.as_flattened()),
    ..COLUMN
};

pub(crate) static ROW: OpDef = OpDef {
    name: "column._has_key",
    summary: "Present if a dictionary of the caller has a key. The result is a row whose number has no meaning.",
    params: &[param("map"), param("key")],
    faults: &[FaultKind::Invalid],
    meaning: Meaning::Overloads(&ROWS),
    ..COLUMN
};

/// The index of the overload of `COLUMN_FIND` for these types of keys and values. If `value` is `None`, the index of the overload of
/// `COLUMN_HAS_KEY`. Returns `None` if dictionaries cannot have these types.
#[must_use]
pub fn find_overload(key: Scalar, value: Option<Scalar>) -> Option<u16> {
    let is_key =
        |overload: &Overload| overload.args[1] == OperandType { scalar: key.representation(), optional: false };
    let is_value = |overload: &Overload| value.is_none_or(|value| overload.ret.scalar == value.representation());
    let all = if value.is_some() { FINDS.as_flattened() } else { &ROWS };
    all.iter().position(|overload| is_key(overload) && is_value(overload)).map(|at| at as u16)
}
