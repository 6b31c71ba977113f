//! `Optional<T>`: a value that may be missing, in the layout of frames and compiled code. Rust structs must use it for
//! fields that are read and written in place, because `Option<T>` has no guaranteed layout.

use std::mem::MaybeUninit;

/// A value that may be missing: the presence flag at offset 0, the value at its own alignment.
///
/// The value of a missing optional is unspecified and not read; comparisons treat all missing values as equal.
#[repr(C)]
pub struct Optional<T> {
    present: u8,
    /// The optional's value. If the optional is missing, these bytes need not be a valid value of the type.
    value: MaybeUninit<T>,
}

impl<T: Copy> Copy for Optional<T> {}

impl<T: Copy> Clone for Optional<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: Copy> Optional<T> {
    /// A missing value.
    #[must_use]
    pub const fn missing() -> Self {
        // Zeros instead of uninitialised memory, for code that copies the value whether it is present or not.
        Optional { present: 0, value: MaybeUninit::zeroed() }
    }

    /// A present value.
    #[must_use]
    pub const fn present(value: T) -> Self {
        Optional { present: 1, value: MaybeUninit::new(value) }
    }

    /// A value that is present if the condition holds.
    #[must_use]
    pub const fn present_if(condition: bool, value: T) -> Self {
        Optional { present: condition as u8, value: MaybeUninit::new(value) }
    }

    /// Returns true if the optional's value is present.
    #[must_use]
    pub const fn is_present(&self) -> bool {
        self.present != 0
    }

    /// A reference to the optional's value; `None` if it is missing.
    #[must_use]
    pub const fn as_ref(&self) -> Option<&T> {
        // SAFETY: FRAME-SLOT: code that sets the presence, here or in memory, has written the value.
        if self.present != 0 { Some(unsafe { self.value.assume_init_ref() }) } else { None }
    }

    /// The optional's value; `None` if it is missing.
    #[must_use]
    pub const fn get(&self) -> Option<T> {
        // SAFETY: FRAME-SLOT: code that sets the presence, here or in memory, has written the value.
        if self.present != 0 { Some(unsafe { self.value.assume_init() }) } else { None }
    }
}

impl<T: Copy> Default for Optional<T> {
    fn default() -> Self {
        Optional::missing()
    }
}

impl<T: Copy> From<Option<T>> for Optional<T> {
    fn from(value: Option<T>) -> Self {
        value.map_or_else(Optional::missing, Optional::present)
    }
}

impl<T: Copy> From<T> for Optional<T> {
    fn from(value: T) -> Self {
        Optional::present(value)
    }
}

impl<T: Copy> From<Optional<T>> for Option<T> {
    fn from(value: Optional<T>) -> Self {
        value.get()
    }
}

impl<T: Copy + PartialEq> PartialEq for Optional<T> {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

impl<T: Copy + std::fmt::Debug> std::fmt::Debug for Optional<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.get().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::{align_of, offset_of, size_of};

    #[test]
    fn layout_is_that_of_frames() {
        assert_eq!(
            (size_of::<Optional<f32>>(), offset_of!(Optional<f32>, value), align_of::<Optional<f32>>()),
            (8, 4, 4)
        );
        assert_eq!((size_of::<Optional<f64>>(), offset_of!(Optional<f64>, value)), (16, 8));
        assert_eq!((size_of::<Optional<bool>>(), offset_of!(Optional<bool>, value)), (2, 1));
        assert_eq!(size_of::<Optional<()>>(), 1);
        assert_eq!(offset_of!(Optional<f64>, present), 0);
    }

    #[test]
    fn missing_values_are_equal_whatever_they_hold() {
        let stale = Optional { present: 0, value: MaybeUninit::new(7) };
        assert_eq!(stale, Optional::missing());
        assert_ne!(Optional::present(7), Optional::missing());
    }

    /// Models write arbitrary bytes to missing values. If the compiler relied on a valid boolean, it could represent
    /// `None` by a 2 in that byte.
    #[test]
    fn what_is_behind_a_missing_value_is_not_looked_at() {
        let outer: Vec<Option<Optional<bool>>> = (0..=255_u8)
            .map(|behind| {
                // SAFETY: FRAME-SLOT: the presence is a byte, and there is room for a boolean, but it is not initialised.
                Some(unsafe { std::mem::transmute::<[u8; 2], Optional<bool>>([0, behind]) })
            })
            .collect();
        assert!(outer.iter().all(|outer| outer.is_some_and(|optional| optional.get().is_none())));
        assert_eq!(size_of::<Option<Optional<bool>>>(), 3);
    }
}
