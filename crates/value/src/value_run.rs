//! Runs of values: adjacent values of one type in a list of values, with the slots of a frame that they are written to.
//! The type is examined once per run, and the loops do not branch on which values are missing, because such a branch is
//! mispredicted half of the time.

use crate::{ScalarValue, Value};
use cembra_runtime::{FramePtr, Plain, QType, Scalar, Slot, for_each_scalar};
use std::mem::MaybeUninit;

/// The tag of `Value::Scalar`, as VALUE-LAYOUT states it.
const SCALAR: u8 = 0;
/// The tag of `Value::Present`.
const PRESENT: u8 = 1;
/// The tag of `Value::Missing`.
const MISSING: u8 = 2;

/// The offset of the scalar in a `Value`, or of a missing value's type: after the tag, at the alignment of the largest scalar.
const INSIDE: usize = 8;

/// Checks the part of VALUE-LAYOUT that depends on the machine. This rule of `docs/safety.md` states how a `Value` is
/// laid out in memory.
const _: () = assert!(align_of::<ScalarValue>() == INSIDE && align_of::<u64>() == 8 && align_of::<f64>() == 8);

/// A run of values: adjacent values of one type in a list, with a slot of a frame for each.
#[derive(Debug)]
pub struct ValueRun {
    qtype: QType,
    /// The number of bytes of a value without its presence, if it is a scalar; else 0.
    width: u32,
    slots: Box<[u32]>,
}

impl ValueRun {
    /// Divides a list of types, each with the offset of its slot, into runs of equal types.
    #[must_use]
    pub fn all<'t>(types: impl IntoIterator<Item = (&'t QType, u32)>) -> Vec<ValueRun> {
        let mut runs: Vec<(&QType, Vec<u32>)> = Vec::new();
        for (qtype, slot) in types {
            match runs.last_mut() {
                Some((last, slots)) if *last == qtype => slots.push(slot),
                _ => runs.push((qtype, vec![slot])),
            }
        }
        let width = |qtype: &QType| qtype.scalar().map_or(0, |scalar| QType::Scalar(scalar).layout().size);
        let run = |(qtype, slots): (&QType, Vec<u32>)| ValueRun {
            qtype: qtype.clone(),
            width: width(qtype),
            slots: slots.into(),
        };
        runs.into_iter().map(run).collect()
    }

    /// The number of values in the run.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Returns true if the run has no values. No run made by [`all`](ValueRun::all) is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Writes each value to its slot, up to the first value that is not of the run's type. Returns the number of values written.
    /// Texts become views of the values.
    ///
    /// # Safety
    /// FRAME-SLOT: each slot is of the run's type in a frame that is alive and writable; texts of the values outlive every
    /// read of the views.
    // SAFETY: FRAME-SLOT and STRING-VIEW, promised by the caller.
    #[inline]
    #[must_use]
    pub unsafe fn write(&self, values: &[Value], frame: FramePtr) -> usize {
        let slots = &*self.slots;
        // SAFETY: FRAME-SLOT, promised by the caller; the size is that of the scalar.
        unsafe {
            match (&self.qtype, self.width) {
                (QType::Scalar(scalar), 8) => write_plain::<u64>(values, *scalar, slots, frame),
                (QType::Scalar(scalar), 4) => write_plain::<u32>(values, *scalar, slots, frame),
                (QType::Optional(scalar), 8) => write_optional::<u64>(values, *scalar, slots, frame),
                (QType::Optional(scalar), 4) => write_optional::<u32>(values, *scalar, slots, frame),
                _ => self.write_others(values, frame),
            }
        }
    }

    /// The bytes of memory that the run holds, including its struct itself.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        size_of::<ValueRun>() + size_of_val(&*self.slots)
    }

    /// Iterates over the values in the run's slots of `frame`. Texts are copied.
    ///
    /// # Safety
    /// FRAME-SLOT (`docs/safety.md`): the conditions of [`read`](ValueRun::read) must hold as long as the iterator is used.
    pub unsafe fn values(&self, frame: FramePtr) -> impl Iterator<Item = Value> {
        // SAFETY: FRAME-SLOT, promised by the caller.
        self.slots.iter().map(move |slot| unsafe { Value::read_from(&self.qtype, frame, *slot) })
    }

    /// Appends the values in the run's slots of `frame` to `values`. Texts are copied.
    ///
    /// # Safety
    /// FRAME-SLOT (`docs/safety.md`): values of the run's type were written to the slots, and the texts that they view are
    /// alive.
    #[inline]
    pub unsafe fn read(&self, frame: FramePtr, values: &mut Vec<Value>) {
        macro_rules! of_each_number {
            ([] $unit:ident $unit_rows:tt plain { $($(#[$doc:meta])* $plain:ident($rust:ty) $facts:tt)* } $($rest:tt)*) => {
                match &self.qtype {
                    $(
                        QType::Scalar(Scalar::$plain) => self.read_plain::<$rust>(frame, values),
                        QType::Optional(Scalar::$plain) => self.read_optional::<$rust>(frame, values),
                    )*
                    _ => self.read_others(frame, values),
                }
            };
        }
        // SAFETY: FRAME-SLOT, promised by the caller, for the types of the patterns.
        unsafe { for_each_scalar!(of_each_number []) }
    }

    /// Reads numbers.
    ///
    /// # Safety
    /// FRAME-SLOT, as for `read`; `T` is the type.
    #[inline(always)]
    unsafe fn read_plain<T: Plain + Into<Value>>(&self, frame: FramePtr, values: &mut Vec<Value>) {
        // SAFETY: FRAME-SLOT, promised by the caller.
        let stored = |slot: &u32| unsafe { frame.read(Slot::<T::Stored>::at(*slot)) };
        values.extend(self.slots.iter().map(|slot| T::from_stored(stored(slot)).into()));
    }

    /// Reads numbers that may be missing.
    ///
    /// # Safety
    /// FRAME-SLOT, as for `read`; `T` is the type when present.
    #[inline(always)]
    unsafe fn read_optional<T: Plain>(&self, frame: FramePtr, values: &mut Vec<Value>)
    where
        Option<T>: Into<Value>,
    {
        values.extend(self.slots.iter().map(|slot| {
            // SAFETY: FRAME-SLOT, promised by the caller: the presence byte is first, the value at its alignment; it is there
            // if it is present.
            unsafe {
                let present = frame.read(Slot::<u8>::at(*slot)) != 0;
                let value = frame.read(Slot::<MaybeUninit<T::Stored>>::at(*slot + size_of::<T>() as u32));
                present.then(|| T::from_stored(value.assume_init())).into()
            }
        }));
    }

    /// Reads values of all types except numbers and optional numbers.
    ///
    /// # Safety
    /// FRAME-SLOT and STRING-VIEW, as for `read`.
    #[inline(never)]
    unsafe fn read_others(&self, frame: FramePtr, values: &mut Vec<Value>) {
        // SAFETY: FRAME-SLOT and STRING-VIEW, promised by the caller.
        values.extend(self.slots.iter().map(|slot| unsafe { Value::read_from(&self.qtype, frame, *slot) }));
    }

    /// Writes values of all types except numbers and optional numbers. It is a separate function, so that `write` is
    /// short.
    ///
    /// # Safety
    /// FRAME-SLOT, as for `write`.
    #[inline(never)]
    unsafe fn write_others(&self, values: &[Value], frame: FramePtr) -> usize {
        for (at, (value, slot)) in values.iter().zip(&self.slots).enumerate() {
            if !value.is_of(&self.qtype) {
                return at;
            }
            // SAFETY: FRAME-SLOT, promised by the caller for the type that was just compared.
            unsafe { value.write_to(frame, *slot) };
        }
        values.len()
    }
}

/// The address of a number's bits inside the `Value` that holds it.
#[inline(always)]
fn bits_of<T>(value: &Value) -> *const T {
    // The scalar's own tag is at its start, before the bits.
    std::ptr::from_ref(value).wrapping_byte_add(INSIDE + size_of::<T>()).cast()
}

/// The tag of a value, which is its first byte.
#[inline(always)]
fn tag(value: &Value) -> u8 {
    // SAFETY: VALUE-LAYOUT: a value starts with its tag.
    unsafe { std::ptr::from_ref(value).cast::<u8>().read() }
}

/// The number of the scalar type of a value.
///
/// # Safety
/// VALUE-LAYOUT: the value is a scalar, or a present or missing optional.
#[inline(always)]
unsafe fn scalar_of(value: &Value) -> u8 {
    // SAFETY: VALUE-LAYOUT: inside is a scalar, which starts with the number of its type, or that number alone.
    unsafe { std::ptr::from_ref(value).cast::<u8>().add(INSIDE).read() }
}

/// Writes numbers of a type that takes as many bytes as `T`.
///
/// # Safety
/// FRAME-SLOT, as for `ValueRun::write`; VALUE-LAYOUT: `T` is as large as the scalar, which is a number.
#[inline(always)]
unsafe fn write_plain<T: Copy>(values: &[Value], scalar: Scalar, slots: &[u32], frame: FramePtr) -> usize {
    for (at, (value, slot)) in values.iter().zip(slots).enumerate() {
        // SAFETY: VALUE-LAYOUT: the tag says that there is a scalar, and the scalar's that it is a number of this size.
        // FRAME-SLOT, promised by the caller.
        unsafe {
            if tag(value) != SCALAR || scalar_of(value) != scalar as u8 {
                return at;
            }
            frame.write(Slot::at(*slot), *bits_of::<T>(value));
        }
    }
    values.len()
}

/// The bits of a missing number in a frame.
static ZEROS: u64 = 0;

/// Writes numbers that may be missing, of a type that takes as many bytes as `T`.
///
/// # Safety
/// FRAME-SLOT and VALUE-LAYOUT, as for `write_plain`.
#[inline(always)]
unsafe fn write_optional<T: Copy>(values: &[Value], scalar: Scalar, slots: &[u32], frame: FramePtr) -> usize {
    for (at, (value, slot)) in values.iter().zip(slots).enumerate() {
        let tag = tag(value);
        let present = tag == PRESENT;
        // SAFETY: VALUE-LAYOUT: the tag says that there is an optional, and what follows that it is one of this type. FRAME-SLOT,
        // promised by the caller: the presence byte is first, the value at its alignment. `T` is at most as large as `ZEROS`.
        unsafe {
            if !matches!(tag, PRESENT | MISSING) || scalar_of(value) != scalar as u8 {
                return at;
            }
            frame.write(Slot::at(*slot), u8::from(present));
            // A missing value has no bits. Machine code computes with the slot's data and drops the result. With zeros, memory
            // checkers find no branch on uninitialised bytes.
            let zeros = std::ptr::from_ref(&ZEROS).cast::<T>();
            let bits = std::hint::select_unpredictable(present, bits_of::<T>(value), zeros);
            frame.write(Slot::at(*slot + size_of::<T>() as u32), *bits);
        }
    }
    values.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use cembra_runtime::{Frame, ShapeType};

    /// Checks VALUE-LAYOUT for values of each scalar type.
    #[test]
    fn values_are_laid_out_as_runs_read_them() {
        assert_eq!((size_of::<ScalarValue>(), size_of::<Value>()), (24, 32));
        for (number, scalar) in Scalar::ALL.into_iter().enumerate() {
            let bits = 0x0102_0304_0506_0701;
            let value = ScalarValue::from_bits(scalar, bits).unwrap_or_else(|| match scalar {
                Scalar::Text => ScalarValue::Text("".into()),
                _ => ScalarValue::Bytes([].into()),
            });
            assert_eq!((scalar as usize, value.scalar()), (number, scalar));
            let values = [(SCALAR, Value::Scalar(value.clone())), (PRESENT, Value::Present(value))];
            for (expected, value) in values.into_iter().chain([(MISSING, Value::Missing(scalar))]) {
                assert_eq!(tag(&value), expected);
                // SAFETY: VALUE-LAYOUT: all of these are scalars or optionals.
                assert_eq!(unsafe { scalar_of(&value) }, number as u8);
                if expected != MISSING && scalar.is_numeric() {
                    let found = match QType::Scalar(scalar).layout().size {
                        // SAFETY: VALUE-LAYOUT: a number of this size is there.
                        4 => u64::from(unsafe { *bits_of::<u32>(&value) }),
                        // SAFETY: VALUE-LAYOUT: a number of this size is there.
                        _ => unsafe { *bits_of::<u64>(&value) },
                    };
                    assert_eq!(found, value.as_scalar().unwrap().bits());
                }
            }
        }
        let others =
            [Value::Tuple([].into()), Value::Shape(ShapeType::Scalar), Value::Type(QType::UNIT), Value::Nothing];
        assert!(others.iter().all(|value| tag(value) > MISSING));
    }

    #[test]
    fn runs_are_of_neighbours() {
        let types = [QType::FLOAT32, QType::FLOAT32, QType::FLOAT64, QType::FLOAT32];
        let runs = ValueRun::all(types.iter().zip([0, 4, 8, 16]));
        let found: Vec<_> = runs.iter().map(|run| (run.qtype.clone(), &*run.slots)).collect();
        let expected: [(QType, &[u32]); 3] =
            [(QType::FLOAT32, &[0, 4]), (QType::FLOAT64, &[8]), (QType::FLOAT32, &[16])];
        assert_eq!(found, expected);
    }

    /// Every value, between two fitting ones, for a run of every type: it is written as `write_to` does, or refused.
    #[test]
    fn a_run_writes_what_is_of_its_type() {
        let mut values =
            vec![Value::Tuple([Value::from(1_i32)].into()), Value::Nothing, Value::Shape(ShapeType::Scalar)];
        for scalar in Scalar::ALL {
            let value = ScalarValue::from_bits(scalar, 0x0102_0304_0506_0701);
            let value = value.unwrap_or_else(|| match scalar {
                Scalar::Text => ScalarValue::Text("text".into()),
                _ => ScalarValue::Bytes([1, 2].into()),
            });
            values.extend([Value::Scalar(value.clone()), Value::Present(value), Value::Missing(scalar)]);
        }
        for fitting in values.iter().filter(|value| value.qtype() != QType::Nothing) {
            let qtype = fitting.qtype();
            let runs = ValueRun::all([(&qtype, 0), (&qtype, 32), (&qtype, 64)]);
            for value in &values {
                let mut frame = Frame::zeroed(96);
                let list = [fitting.clone(), value.clone(), fitting.clone()];
                // SAFETY: FRAME-SLOT: every type used here fits into 32 bytes.
                let written = unsafe { runs[0].write(&list, frame.ptr()) };
                assert_eq!(written, if value.is_of(&qtype) { 3 } else { 1 }, "{value:?} of {qtype}");
                for (at, value) in list[..written].iter().enumerate() {
                    // SAFETY: FRAME-SLOT: it was just written.
                    let back = unsafe { Value::read_from(&qtype, frame.ptr(), 32 * at as u32) };
                    assert_eq!(back, *value);
                }
                if written == list.len() {
                    let mut back = vec![Value::Nothing];
                    // SAFETY: FRAME-SLOT: all were just written.
                    unsafe { runs[0].read(frame.ptr(), &mut back) };
                    assert_eq!((&back[0], &back[1..]), (&Value::Nothing, &list[..]));
                }
            }
        }
    }
}
