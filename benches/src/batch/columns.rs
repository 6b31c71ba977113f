//! Columns of a benchmark: aligned values and bits of presence in memory of their own, read and written one by one as data.

use std::iter;

/// The type of a column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Kind {
    /// FLOAT64, else FLOAT32.
    pub is_double: bool,
    /// With a bit of presence for each row.
    pub is_optional: bool,
}

/// FLOAT32.
pub const SINGLE: Kind = Kind { is_double: false, is_optional: false };
/// FLOAT64.
pub const DOUBLE: Kind = Kind { is_double: true, is_optional: false };
/// Optional FLOAT32.
pub const OPTIONAL_SINGLE: Kind = Kind { is_double: false, is_optional: true };
/// Optional FLOAT64.
pub const OPTIONAL_DOUBLE: Kind = Kind { is_double: true, is_optional: true };

impl Kind {
    /// Bits of a row, presence included.
    #[must_use]
    pub fn bits(self) -> usize {
        8 * self.size() + usize::from(self.is_optional)
    }

    /// Bytes of a value.
    #[must_use]
    pub fn size(self) -> usize {
        if self.is_double { 8 } else { 4 }
    }
}

/// A line of the caches: what a column starts at.
#[repr(C, align(64))]
#[derive(Clone, Copy)]
struct Line([u8; 64]);

/// Bytes from the start of a line on.
#[derive(Clone)]
struct Bytes(Vec<Line>);

impl Bytes {
    fn zeros(bytes: usize) -> Self {
        Bytes(vec![Line([0; 64]); bytes.div_ceil(64)])
    }

    fn at<const N: usize>(&self, byte: usize) -> [u8; N] {
        let line = &self.0[byte / 64].0[byte % 64..];
        std::array::from_fn(|at| line[at])
    }

    fn set(&mut self, byte: usize, bytes: &[u8]) {
        self.0[byte / 64].0[byte % 64..][..bytes.len()].copy_from_slice(bytes);
    }

    /// The first so many bytes over and over, which are whole lines.
    fn repeated(&self, period: usize, bytes: usize) -> Self {
        let lines = &self.0[..period / 64];
        Bytes(lines.iter().copied().cycle().take(bytes.div_ceil(64)).collect())
    }
}

/// Values of one type for many rows.
#[derive(Clone)]
pub struct Column {
    kind: Kind,
    values: Bytes,
    presence: Option<Bytes>,
}

impl Column {
    /// Zeros, and nothing present of an optional.
    #[must_use]
    pub fn new(kind: Kind, rows: usize) -> Self {
        let presence = kind.is_optional.then(|| Bytes::zeros(rows.div_ceil(8)));
        Column { kind, values: Bytes::zeros(rows * kind.size()), presence }
    }

    /// The type.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The value of a row, widened.
    #[must_use]
    pub fn get(&self, row: usize) -> Option<f64> {
        if let Some(presence) = &self.presence {
            let [byte] = presence.at(row / 8);
            if byte >> (row % 8) & 1 == 0 {
                return None;
            }
        }
        Some(if self.kind.is_double {
            f64::from_le_bytes(self.values.at(8 * row))
        } else {
            f32::from_le_bytes(self.values.at(4 * row)).into()
        })
    }

    /// Writes a row's value; a missing one as zero.
    pub fn set(&mut self, row: usize, value: Option<f64>) {
        if let Some(presence) = &mut self.presence {
            let [byte] = presence.at(row / 8);
            let bit = 1 << (row % 8);
            presence.set(row / 8, &[if value.is_some() { byte | bit } else { byte & !bit }]);
        }
        let value = value.unwrap_or(0.0);
        if self.kind.is_double {
            self.values.set(8 * row, &value.to_le_bytes());
        } else {
            self.values.set(4 * row, &(value as f32).to_le_bytes());
        }
    }

    /// Where the values are.
    #[must_use]
    pub fn values(&self) -> *const u8 {
        self.values.0.as_ptr().cast()
    }

    /// Where the bits of an optional's presence are.
    #[must_use]
    pub fn presence(&self) -> Option<*const u8> {
        self.presence.as_ref().map(|presence| presence.0.as_ptr().cast())
    }

    fn addresses_mut(&mut self) -> impl Iterator<Item = (*mut u8, usize)> {
        let values = (self.values.0.as_mut_ptr().cast(), 8 * self.kind.size());
        iter::once(values).chain(self.presence.as_mut().map(|presence| (presence.0.as_mut_ptr().cast(), 1)))
    }
}

/// Columns of the same rows.
#[derive(Clone)]
pub struct Columns {
    /// How many rows.
    pub rows: usize,
    /// One for each input or output, in order of declaration.
    pub columns: Vec<Column>,
}

impl Columns {
    /// Columns of these types.
    #[must_use]
    pub fn new(kinds: &[Kind], rows: usize) -> Self {
        Columns { rows, columns: kinds.iter().map(|kind| Column::new(*kind, rows)).collect() }
    }

    /// These rows, a multiple of 512, over and over.
    #[must_use]
    pub fn repeated(&self, rows: usize) -> Self {
        let repeat = |bytes: &Bytes, bits: usize| bytes.repeated(self.rows * bits / 8, (rows * bits).div_ceil(8));
        let column = |column: &Column| Column {
            kind: column.kind,
            values: repeat(&column.values, 8 * column.kind.size()),
            presence: column.presence.as_ref().map(|presence| repeat(presence, 1)),
        };
        Columns { rows, columns: self.columns.iter().map(column).collect() }
    }

    /// All values of a row.
    #[must_use]
    pub fn row(&self, row: usize) -> Vec<Option<f64>> {
        self.columns.iter().map(|column| column.get(row)).collect()
    }

    /// Writes all values of a row.
    pub fn set_row(&mut self, row: usize, values: &[Option<f64>]) {
        for (column, value) in self.columns.iter_mut().zip(values) {
            column.set(row, *value);
        }
    }

    /// Where the values from a row on are, a multiple of 8, each optional's presence after its values.
    #[must_use]
    pub fn addresses(&self, row: usize) -> Vec<*const u8> {
        let values = |column: &Column| column.values().wrapping_add(row * column.kind.size());
        let presence = |column: &Column| column.presence().map(|bits| bits.wrapping_add(row / 8));
        self.columns.iter().flat_map(|column| iter::once(values(column)).chain(presence(column))).collect()
    }

    /// Where to write them.
    pub fn addresses_mut(&mut self, row: usize) -> Vec<*mut u8> {
        let columns = self.columns.iter_mut().flat_map(Column::addresses_mut);
        columns.map(|(address, bits)| address.wrapping_add(row * bits / 8)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_what_was_written() {
        let mut columns = Columns::new(&[OPTIONAL_SINGLE, DOUBLE], 512);
        for row in 0..512 {
            let value = row as f64 * 0.5;
            columns.set_row(row, &[(row % 3 != 0).then_some(value), Some(-value)]);
        }
        columns.set_row(7, &[None, Some(8.0)]);
        assert_eq!((columns.row(5), columns.row(7)), (vec![Some(2.5), Some(-2.5)], vec![None, Some(8.0)]));
        let longer = columns.repeated(1100);
        assert_eq!((longer.row(1029), longer.row(1099)), (columns.row(5), columns.row(1099 - 1024)));
        let addresses = longer.addresses(64);
        assert_eq!(addresses.len(), 3);
        assert_eq!(addresses[1] as usize - longer.addresses(0)[1] as usize, 8);
        assert!(longer.addresses(0).iter().all(|address| address.addr() % 64 == 0));
    }
}
