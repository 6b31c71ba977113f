//! The table of scalar types, which states every property of a type once. All other lists of scalar types are generated from the table by a macro, or
//! use the functions of [`Scalar`]. The table does not state what operators do with a type.

use crate::{Date, Duration, Layout, MachineType, Timestamp};
use std::fmt;

/// Passes the table of scalar types to a macro, after the tokens that the caller gives in brackets.
///
/// A row is a variant, in brackets the Rust type of a value, and these facts: Arolla's name; the name in the text language, which people
/// read; the category; the type of a value in a register; the type whose representation it shares, if that is another one; and the
/// encoding of a value in the binary form of models, as a codec of `prost` and a number, which must not change. The sections of rows
/// differ in the storage of a value:
///
/// * `unit`: no storage.
/// * `plain`: a Rust type that is [`Plain`].
/// * `weak`: a Rust type that is [`Plain`] and stands for another scalar type already.
/// * `view`: memory elsewhere.
#[macro_export]
macro_rules! for_each_scalar {
    ($then:ident [$($given:tt)*]) => {
        $then! {
            [$($given)*]
            unit {
                /// A type with one value. Its optional form is a mask: present or missing.
                Unit { "UNIT", "unit", Unit, None, message = 1 }
            }
            plain {
                /// `true` or `false`.
                Boolean(bool) { "BOOLEAN", "bool", Truth, Some(Flag), bool = 2 }
                /// Signed 32-bit integer, two's complement.
                Int32(i32) { "INT32", "i32", Integer, Some(I32), sint32 = 3 }
                /// Signed 64-bit integer, two's complement.
                Int64(i64) { "INT64", "i64", Integer, Some(I64), sint64 = 4 }
                /// Unsigned 64-bit integer: compared, cast and passed on, but not computed with.
                UInt64(u64) { "UINT64", "u64", Unsigned, Some(I64), uint64 = 5 }
                /// IEEE 754 binary32.
                Float32(f32) { "FLOAT32", "f32", Float, Some(F32), float = 6 }
                /// IEEE 754 binary64.
                Float64(f64) { "FLOAT64", "f64", Float, Some(F64), double = 7 }
                /// A day of the Gregorian calendar. Arolla has no such type.
                Date($crate::Date) { "DATE", "date", Moment like Int32, Some(I32), sint32 = 11 }
                /// A moment, to the microsecond. Arolla has no such type.
                Timestamp($crate::Timestamp) { "TIMESTAMP", "timestamp", Moment like Int64, Some(I64), sint64 = 12 }
                /// A length of time, to the microsecond. Arolla has no such type.
                Duration($crate::Duration) { "DURATION", "duration", Length like Int64, Some(I64), sint64 = 13 }
            }
            weak {
                /// A float with the bits and arithmetic of `Float64`. In an operation with another float type, the result has that type.
                WeakFloat(f64) { "WEAK_FLOAT", "weak_float", Float like Float64, Some(F64), double = 8 }
            }
            view {
                /// A string of bytes.
                Bytes([u8]) { "BYTES", "bytes", String, None, bytes = 10 }
                /// UTF-8 text.
                Text(str) { "TEXT", "text", String, None, string = 9 }
            }
        }
    };
}

/// The category of a scalar type, such as integers or strings. Predicates such as `is_float` use it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Unit,
    Truth,
    Integer,
    Unsigned,
    Float,
    Moment,
    Length,
    String,
}

/// A row of the table of scalar types, as a value: the names, category and machine type of one scalar type.
struct Facts {
    name: &'static str,
    short_name: &'static str,
    kind: Kind,
    machine: Option<MachineType>,
    representation: Option<Scalar>,
}

macro_rules! scalars {
    ([] $($section:ident { $(
        $(#[$doc:meta])*
        $variant:ident $(($rust:ty))? {
            $name:literal, $short:literal, $kind:ident $(like $like:ident)?, $machine:expr, $codec:ident = $number:literal
        }
    )* })*) => {
        /// A scalar type. The list is exhaustive, so that the compiler reports a new type to every `match`.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        #[repr(u8)]
        pub enum Scalar { $($($(#[$doc])* $variant,)*)* }

        impl Scalar {
            /// Every scalar type, in the order used by listings.
            pub const ALL: [Scalar; FACTS.len()] = [$($(Scalar::$variant,)*)*];
        }

        const FACTS: &[Facts] = {
            use MachineType::{F32, F64, Flag, I32, I64};
            &[$($(Facts {
                name: $name,
                short_name: $short,
                kind: Kind::$kind,
                machine: $machine,
                representation: first!($(Some(Scalar::$like),)? None),
            },)*)*]
        };
    };
}

macro_rules! first {
    ($first:expr $(, $rest:expr)?) => {
        $first
    };
}

for_each_scalar!(scalars []);

impl Scalar {
    const fn facts(self) -> &'static Facts {
        &FACTS[self as usize]
    }

    /// Arolla's name of the type, such as `FLOAT32`. The text language reads this name too.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.facts().name
    }

    /// The name of the type in the text language, such as `f32` or `text`. The type is displayed under this name.
    #[must_use]
    pub const fn short_name(self) -> &'static str {
        self.facts().short_name
    }

    /// The type whose representation in memory this type shares, such as `Float64` for `WeakFloat`; for most types, the type itself.
    /// Operators without an overload for a type compute with its representation.
    #[must_use]
    pub const fn representation(self) -> Scalar {
        match self.facts().representation {
            Some(other) => other,
            None => self,
        }
    }

    /// The machine type that holds a value of this type in a register; `None` for a unit, which needs no register, and for strings,
    /// which need two.
    #[inline]
    #[must_use]
    pub const fn machine_type(self) -> Option<MachineType> {
        self.facts().machine
    }

    /// Returns true for the signed integer types, which have arithmetic.
    #[must_use]
    pub const fn is_integer(self) -> bool {
        matches!(self.facts().kind, Kind::Integer)
    }

    /// Returns true for the floating-point types, `WeakFloat` included.
    #[must_use]
    pub const fn is_float(self) -> bool {
        matches!(self.facts().kind, Kind::Float)
    }

    /// Returns true for signed integers and floats.
    #[must_use]
    pub const fn is_numeric(self) -> bool {
        self.is_integer() || self.is_float()
    }

    /// Returns true for types that are written in digits: integers, signed or not, and floats.
    #[must_use]
    pub const fn is_number(self) -> bool {
        self.is_numeric() || matches!(self.facts().kind, Kind::Unsigned)
    }

    /// Returns true for the element types of tensors: booleans, signed integers, and floats other than `WeakFloat`.
    #[must_use]
    pub const fn is_tensor_element(self) -> bool {
        matches!(self, Scalar::Boolean | Scalar::Int32 | Scalar::Int64 | Scalar::Float32 | Scalar::Float64)
    }

    /// Returns true for integers, signed or not.
    #[must_use]
    pub const fn is_whole(self) -> bool {
        matches!(self.facts().kind, Kind::Integer | Kind::Unsigned)
    }

    /// Returns true for the types between which `core.cast` casts: numbers, booleans and `UInt64`.
    #[must_use]
    pub const fn is_castable(self) -> bool {
        self.is_number() || matches!(self.facts().kind, Kind::Truth)
    }

    /// Returns true for types that fit in a register but are neither numbers nor booleans: literals and JSON write their values in
    /// quotes.
    #[must_use]
    pub const fn is_quoted(self) -> bool {
        self.machine_type().is_some() && !self.is_castable()
    }

    /// Returns true for dates and timestamps, which are points in time, unlike durations.
    #[must_use]
    pub const fn is_moment(self) -> bool {
        matches!(self.facts().kind, Kind::Moment)
    }

    /// Returns true for texts and bytes, which are views of memory elsewhere.
    #[must_use]
    pub const fn is_string(self) -> bool {
        matches!(self.facts().kind, Kind::String)
    }

    /// The size and alignment in a frame of a value of this type.
    #[inline]
    pub(crate) const fn layout(self) -> Layout {
        match self.machine_type() {
            Some(MachineType::Flag) => Layout { size: 1, align: 1 },
            Some(MachineType::I32 | MachineType::F32) => Layout { size: 4, align: 4 },
            Some(MachineType::I64 | MachineType::F64) => Layout { size: 8, align: 8 },
            // A pointer and a length.
            None if self.is_string() => Layout { size: 16, align: 8 },
            None => Layout { size: 1, align: 1 },
        }
    }
}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.short_name())
    }
}

/// A Rust type for the values of a scalar type, with the same size as such a value in a frame.
pub trait Plain: Copy {
    /// The type of the number or truth value that represents a value of this type.
    type Raw;
    /// The type that is read from memory for a value of this type: a byte for a truth value, else `Raw`.
    type Stored: Copy;

    /// Converts the value from its representation in memory.
    fn from_stored(stored: Self::Stored) -> Self;

    /// The number or truth value that represents the value.
    fn raw(self) -> Self::Raw;

    /// The value that the number or truth value `raw` represents.
    fn from_raw(raw: Self::Raw) -> Self;

    /// The value's bits in a word, zero-extended.
    fn to_word(self) -> u64;

    /// The value with these bits; higher bits are ignored.
    fn from_word(bits: u64) -> Self;
}

macro_rules! numbers {
    ($($ty:ty as $stored:ty, |$from:ident| $bits:expr, |$to:ident| $value:expr;)*) => { $(
        impl Plain for $ty {
            type Raw = $ty;
            type Stored = $stored;

            #[inline]
            fn from_stored(stored: $stored) -> $ty {
                Plain::from_word(stored.to_word())
            }

            #[inline]
            fn raw(self) -> $ty {
                self
            }

            #[inline]
            fn from_raw(raw: $ty) -> $ty {
                raw
            }

            #[inline]
            fn to_word(self) -> u64 {
                let $from = self;
                $bits
            }

            #[inline]
            fn from_word($to: u64) -> $ty {
                $value
            }
        }
    )* };
}

numbers! {
    u8 as u8, |v| u64::from(v), |bits| bits as u8;
    bool as u8, |v| u64::from(v), |bits| bits != 0;
    i32 as i32, |v| u64::from(v.cast_unsigned()), |bits| (bits as u32).cast_signed();
    i64 as i64, |v| v.cast_unsigned(), |bits| bits.cast_signed();
    u64 as u64, |v| v, |bits| bits;
    f32 as f32, |v| u64::from(v.to_bits()), |bits| f32::from_bits(bits as u32);
    f64 as f64, |v| v.to_bits(), |bits| f64::from_bits(bits);
}

macro_rules! made_of {
    ($($ty:ident of $raw:ty;)*) => { $(
        impl Plain for $ty {
            type Raw = $raw;
            type Stored = $raw;

            #[inline]
            fn from_stored(stored: $raw) -> $ty {
                $ty(stored)
            }

            #[inline]
            fn raw(self) -> $raw {
                self.0
            }

            #[inline]
            fn from_raw(raw: $raw) -> $ty {
                $ty(raw)
            }

            #[inline]
            fn to_word(self) -> u64 {
                self.0.to_word()
            }

            #[inline]
            fn from_word(bits: u64) -> $ty {
                $ty(Plain::from_word(bits))
            }
        }
    )* };
}

made_of! {
    Date of i32;
    Timestamp of i64;
    Duration of i64;
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    macro_rules! rows {
        ([] unit { $($unit:tt)* } plain { $($(#[$doc:meta])* $variant:ident($rust:ty) $facts:tt)* } $($rest:tt)*) => {
            [$((Scalar::$variant, size_of::<$rust>(), align_of::<$rust>(), <$rust>::from_word(u64::MAX).to_word()),)*]
        };
    }

    #[test]
    fn a_plain_type_is_as_large_as_its_values() {
        for (scalar, size, align, bits) in for_each_scalar!(rows []) {
            let layout = scalar.layout();
            assert_eq!((layout.size as usize, layout.align as usize), (size, align), "{scalar}");
            let most = if scalar == Scalar::Boolean { 1 } else { u64::MAX >> (64 - 8 * layout.size) };
            assert_eq!(bits, most, "{scalar}");
        }
    }

    macro_rules! numbers_of {
        ([] $($section:ident { $($(#[$doc:meta])* $variant:ident $(($rust:ty))? {
            $name:literal, $short:literal, $kind:ident $(like $like:ident)?, $machine:expr, $codec:ident = $number:literal
        })* })*) => {
            [$($($number,)*)*]
        };
    }

    #[test]
    fn names_and_numbers_are_given_once() {
        let names: HashSet<_> = Scalar::ALL.iter().flat_map(|scalar| [scalar.name(), scalar.short_name()]).collect();
        assert_eq!(names.len(), 2 * Scalar::ALL.len());
        let numbers: HashSet<u32> = for_each_scalar!(numbers_of []).into();
        assert_eq!(numbers.len(), Scalar::ALL.len());
    }

    #[test]
    fn a_representation_represents_itself() {
        for scalar in Scalar::ALL {
            let other = scalar.representation();
            assert_eq!((other.representation(), other.machine_type()), (other, scalar.machine_type()), "{scalar}");
        }
        assert_eq!(Scalar::WeakFloat.representation(), Scalar::Float64);
    }
}
