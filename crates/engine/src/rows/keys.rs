//! Keys: which value of a dictionary each row has, by its number, as callers have these numbers.

/// Numbers of values in a dictionary.
#[derive(Clone, Copy, Debug)]
pub enum Keys<'a> {
    /// Of 8 bits.
    I8(&'a [i8]),
    /// Of 16 bits.
    I16(&'a [i16]),
    /// Of 32 bits.
    I32(&'a [i32]),
    /// Of 64 bits.
    I64(&'a [i64]),
    /// Of 8 bits without a sign.
    U8(&'a [u8]),
    /// Of 16 bits without a sign.
    U16(&'a [u16]),
    /// Of 32 bits without a sign.
    U32(&'a [u32]),
    /// Of 64 bits without a sign.
    U64(&'a [u64]),
}

/// The type of numbers of values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KeyType {
    /// Of 8 bits.
    I8,
    /// Of 16 bits.
    I16,
    /// Of 32 bits.
    I32,
    /// Of 64 bits.
    I64,
    /// Of 8 bits without a sign.
    U8,
    /// Of 16 bits without a sign.
    U16,
    /// Of 32 bits without a sign.
    U32,
    /// Of 64 bits without a sign.
    U64,
}

impl KeyType {
    /// Bytes of a number.
    pub(in crate::rows) const fn size(self) -> usize {
        match self {
            KeyType::I8 | KeyType::U8 => 1,
            KeyType::I16 | KeyType::U16 => 2,
            KeyType::I32 | KeyType::U32 => 4,
            KeyType::I64 | KeyType::U64 => 8,
        }
    }
}

macro_rules! with_keys {
    ($keys:expr, $slice:ident => $result:expr) => {
        match $keys {
            Keys::I8($slice) => $result,
            Keys::I16($slice) => $result,
            Keys::I32($slice) => $result,
            Keys::I64($slice) => $result,
            Keys::U8($slice) => $result,
            Keys::U16($slice) => $result,
            Keys::U32($slice) => $result,
            Keys::U64($slice) => $result,
        }
    };
}

pub(in crate::rows) use with_keys;

impl Keys<'_> {
    pub(in crate::rows) fn rows(&self) -> usize {
        with_keys!(self, keys => keys.len())
    }

    pub(in crate::rows) fn key_type(&self) -> KeyType {
        match self {
            Keys::I8(_) => KeyType::I8,
            Keys::I16(_) => KeyType::I16,
            Keys::I32(_) => KeyType::I32,
            Keys::I64(_) => KeyType::I64,
            Keys::U8(_) => KeyType::U8,
            Keys::U16(_) => KeyType::U16,
            Keys::U32(_) => KeyType::U32,
            Keys::U64(_) => KeyType::U64,
        }
    }

    /// Where the first number is.
    pub(in crate::rows) fn address(&self) -> *const u8 {
        with_keys!(self, keys => keys.as_ptr().cast())
    }

    /// True if every key is at least 0 and less than `values`.
    pub(in crate::rows) fn are_less(&self, values: usize) -> bool {
        let values = values as u64;
        // A negative one is more than any. Without a branch, so that several are compared at once.
        with_keys!(self, keys => !keys.iter().fold(false, |wrong, key| wrong | (i128::from(*key) as u64 >= values)))
    }

    /// The number of a row's value; none for a negative one.
    pub(in crate::rows) fn get(&self, row: usize) -> Option<usize> {
        with_keys!(self, keys => usize::try_from(i128::from(*keys.get(row)?)).ok())
    }
}
