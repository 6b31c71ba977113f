//! The table of scalar types: what there is to say of each of them, once. Whatever else knows all scalar types is made from
//! it, by the macro that hands the table on or by asking the type. What operators do with a type is not said here.

use crate::{Date, Duration, Layout, MachineType, Timestamp};
use std::fmt;

/// Hands the table of scalar types to a macro, behind what else is given for it in brackets.
///
/// A row is a variant, in brackets the Rust type that holds a value, and the facts: Arolla's name; the
/// name of the text language, which people read; the kind; how a value lies in a register; the type whose representation it shares, where
/// that is another; how the binary form of models writes a value, as a codec of `prost` and a number, which is never changed.
/// Rows are in sections, by what holds a value:
///
/// * `unit`: nothing does.
/// * `plain`: a Rust type that is [`Plain`].
/// * `weak`: likewise, but the Rust type stands for a plain one already.
/// * `view`: memory elsewhere.
#[macro_export]
macro_rules! for_each_scalar {
    ($then:ident [$($given:tt)*]) => {
        $then! {
            [$($given)*]
            unit {
                /// One value; its optional form, a mask, says yes or no.
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
                /// The bits and arithmetic of `Float64`; takes on the float type of whatever it meets.
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

/// What a scalar type is like.
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

/// A row of the table.
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
        /// A scalar type. The list is exhaustive, so that whoever matches it is told by the compiler about a new one.
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

    /// Arolla's name (`FLOAT32`), which the text language reads too.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.facts().name
    }

    /// The name of the text language (`f32`, `text`), under which the type is shown.
    #[must_use]
    pub const fn short_name(self) -> &'static str {
        self.facts().short_name
    }

    /// The type whose representation this type shares: `Float64` for `WeakFloat`, else itself. Operators that are not
    /// written for a type compute with its representation.
    #[must_use]
    pub const fn representation(self) -> Scalar {
        match self.facts().representation {
            Some(other) => other,
            None => self,
        }
    }

    /// How a value lies in a register; none for a unit, which needs none, and for strings, which take two.
    #[inline]
    #[must_use]
    pub const fn machine_type(self) -> Option<MachineType> {
        self.facts().machine
    }

    /// True for the signed integer types, which can be computed with.
    #[must_use]
    pub const fn is_integer(self) -> bool {
        matches!(self.facts().kind, Kind::Integer)
    }

    /// True for the floating-point types, `WeakFloat` included.
    #[must_use]
    pub const fn is_float(self) -> bool {
        matches!(self.facts().kind, Kind::Float)
    }

    /// True for integers and floats.
    #[must_use]
    pub const fn is_numeric(self) -> bool {
        self.is_integer() || self.is_float()
    }

    /// True for what is written in digits: numbers and unsigned integers.
    #[must_use]
    pub const fn is_number(self) -> bool {
        self.is_numeric() || matches!(self.facts().kind, Kind::Unsigned)
    }

    /// True for what elements of tensors may be: truth values, and numbers that a processor has.
    #[must_use]
    pub const fn is_tensor_element(self) -> bool {
        matches!(self, Scalar::Boolean | Scalar::Int32 | Scalar::Int64 | Scalar::Float32 | Scalar::Float64)
    }

    /// True for integers, with a sign or without one.
    #[must_use]
    pub const fn is_whole(self) -> bool {
        matches!(self.facts().kind, Kind::Integer | Kind::Unsigned)
    }

    /// True for what `core.cast` casts among each other: numbers, booleans and `UInt64`.
    #[must_use]
    pub const fn is_castable(self) -> bool {
        self.is_number() || matches!(self.facts().kind, Kind::Truth)
    }

    /// True for what is held in a register and is neither a number nor a truth value: literals and JSON write it in quotes.
    #[must_use]
    pub const fn is_quoted(self) -> bool {
        self.machine_type().is_some() && !self.is_castable()
    }

    /// True for dates and timestamps, which are places in time and no lengths of it.
    #[must_use]
    pub const fn is_moment(self) -> bool {
        matches!(self.facts().kind, Kind::Moment)
    }

    /// True for texts and bytes, which are views of memory elsewhere.
    #[must_use]
    pub const fn is_string(self) -> bool {
        matches!(self.facts().kind, Kind::String)
    }

    /// Size and alignment of a value in a frame.
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

/// A Rust type that holds the values of a scalar type and is as large as one in a frame.
pub trait Plain: Copy {
    /// The number or truth value that it is made of; itself if it is one.
    type Raw;
    /// What is read where a value lies: a byte in place of a truth value, else what it is made of.
    type Stored: Copy;

    /// The value that was stored so.
    fn from_stored(stored: Self::Stored) -> Self;

    /// What it is made of.
    fn raw(self) -> Self::Raw;

    /// The value that is made of this.
    fn from_raw(raw: Self::Raw) -> Self;

    /// Its bits in a word, zero-extended.
    fn to_word(self) -> u64;

    /// The value with these bits; what is above them is not looked at.
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
