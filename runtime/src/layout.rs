//! The layout of values in memory: the size and the alignment of a type, and the constants by which code generators and object files know the offsets
//! of its fields.

/// The size and the alignment of a type, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Layout {
    /// The type's size in bytes, a multiple of `align`.
    pub size: u32,
    /// The type's alignment in bytes, a power of two, at most 8.
    pub align: u32,
}

impl Layout {
    /// Returns the smallest multiple of this alignment that is at least `offset`.
    #[must_use]
    pub const fn align_up(self, offset: u32) -> u32 {
        (offset + self.align - 1) & !(self.align - 1)
    }
}

/// Defines the constants by which code generators and object files know the offsets of a type's fields, and the list of these constants for the
/// agreement. A constant is `offset of a.b`, or `size` for the size of the whole type.
macro_rules! layout {
    (@name offset of $($field:ident).+) => { concat!($(".", stringify!($field)),+) };
    (@name size) => { ".size" };
    (@number offset of $($field:ident).+) => { std::mem::offset_of!(Self, $($field).+) };
    (@number size) => { size_of::<Self>() };
    ($owner:ident $(<$lifetime:lifetime>)?: $number:ty {
        $($(#[$doc:meta])* $vis:vis $constant:ident = ($($part:tt)+);)*
    }) => {
        impl $owner $(<$lifetime>)? {
            $(
                $(#[$doc])*
                $vis const $constant: $number = layout!(@number $($part)+) as $number;
            )*

            /// The names and values of this type's layout constants, for the agreement between machine code and this crate.
            pub(crate) const LAYOUT: &[(&str, u64)] = &[
                $((concat!(stringify!($owner), layout!(@name $($part)+)), Self::$constant as u64)),*
            ];
        }
    };
}
pub(crate) use layout;
