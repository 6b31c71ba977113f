//! Keys of a dictionary column: each row has the index of its value in the dictionary, in the caller's integer type.

/// The keys of a dictionary column, one per row: indices of values in the dictionary.
#[derive(Clone, Copy, Debug)]
pub enum Keys<'a> {
    /// The keys are signed integers of 8 bits.
    I8(&'a [i8]),
    /// The keys are signed integers of 16 bits.
    I16(&'a [i16]),
    /// The keys are signed integers of 32 bits.
    I32(&'a [i32]),
    /// The keys are signed integers of 64 bits.
    I64(&'a [i64]),
    /// The keys are unsigned integers of 8 bits.
    U8(&'a [u8]),
    /// The keys are unsigned integers of 16 bits.
    U16(&'a [u16]),
    /// The keys are unsigned integers of 32 bits.
    U32(&'a [u32]),
    /// The keys are unsigned integers of 64 bits.
    U64(&'a [u64]),
}

/// The integer type of the keys in a dictionary column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KeyType {
    /// Keys are signed integers of 8 bits.
    I8,
    /// Keys are signed integers of 16 bits.
    I16,
    /// Keys are signed integers of 32 bits.
    I32,
    /// Keys are signed integers of 64 bits.
    I64,
    /// Keys are unsigned integers of 8 bits.
    U8,
    /// Keys are unsigned integers of 16 bits.
    U16,
    /// Keys are unsigned integers of 32 bits.
    U32,
    /// Keys are unsigned integers of 64 bits.
    U64,
}

impl KeyType {
    /// Returns the size of one key in bytes.
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

    /// Returns the address of the first row's key.
    pub(in crate::rows) fn address(&self) -> *const u8 {
        with_keys!(self, keys => keys.as_ptr().cast())
    }

    /// Returns true if every key is at least 0 and less than `values`.
    pub(in crate::rows) fn are_less(&self, values: usize) -> bool {
        let values = values as u64;
        // A negative key becomes larger than any count. No branch, so that several keys are compared at once.
        with_keys!(self, keys => !keys.iter().fold(false, |wrong, key| wrong | (i128::from(*key) as u64 >= values)))
    }

    /// Returns the key of row `row`; `None` if the key is negative, or the row does not exist.
    pub(in crate::rows) fn get(&self, row: usize) -> Option<usize> {
        with_keys!(self, keys => usize::try_from(i128::from(*keys.get(row)?)).ok())
    }
}
