//! Puts values into memory as columns of every layout that callers may use: dense, strided in both directions, in a dictionary, one value for all
//! rows, or with a dynamic type. The presence of values is stored as bits from any offset, or as bytes next to the values. The module also makes
//! memory for outputs. All bytes that are not values are garbage: missing values, gaps between values, and bits outside of the rows.

use crate::config::{chance, pick};
use cembra::columns::{Bitmap, BitmapMut, ColumnMut, InputColumn, Keys};
use cembra_runtime::{QType, Scalar};
use cembra_value::{ScalarValue, Value};

/// The byte that fills memory without values.
const GARBAGE: u8 = 0xA7;

/// The most entries that are searched before a dictionary gets a duplicate entry.
const ENTRIES: usize = 64;

/// The layout of a column's values in memory: contiguous, strided, in a dictionary, or one value for all rows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Layout {
    /// Values are contiguous; truth values are bits.
    Dense,
    /// Values are in structs that follow one another in memory (positive stride). Texts are in one buffer.
    Forwards,
    /// Values are in structs with a negative stride: the last row is first in memory.
    Backwards,
    /// Rows have keys into a dictionary of distinct values.
    Dictionary,
    /// Values have the dynamic type [`Value`].
    Any,
    /// A single value is stored for all rows. This layout is possible only if the values of all rows are equal.
    Shared,
}

impl Layout {
    /// The list of all layouts of a column.
    pub const ALL: [Layout; 6] =
        [Layout::Dense, Layout::Forwards, Layout::Backwards, Layout::Dictionary, Layout::Any, Layout::Shared];
}

/// The layout of a column's values and of its presence.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shape {
    /// The layout of the column's values.
    pub layout: Layout,
    /// True if the presence of a value is stored in a byte before the value. If this is false, or the layout does not support it, the presence is
    /// stored in a bit.
    pub in_bytes: bool,
    /// The index of the first used bit in the bitmaps of presence and of truth values.
    pub offset: usize,
}

impl Shape {
    /// Returns a random shape; dense and strided layouts are more frequent.
    pub fn random(random: &mut fastrand::Rng) -> Shape {
        let layout = if random.bool() { *pick(random, &Layout::ALL[..3]) } else { *pick(random, &Layout::ALL) };
        Shape { layout, in_bytes: chance(random, 0.4), offset: random.usize(..70) }
    }
}

/// A column in memory, in a certain layout: either values that can be borrowed as an input column, or memory for an output column.
#[derive(Debug)]
pub struct ColumnMemory {
    shape: Shape,
    rows: usize,
    /// The values of an input column; empty for an output column.
    values: Vec<Value>,
    bytes: Vec<u8>,
    /// The index in `bytes` of the first value. The next two fields are the size of a value, and the stride between values, in bytes.
    first: usize,
    size: usize,
    stride: isize,
    /// The bits of presence and of truth values.
    present: Vec<u8>,
    truths: Vec<u8>,
    texts: Vec<Vec<u8>>,
    /// The bytes of all texts, one text after the other without separators. The next field, `offsets`, has the start of each text.
    joined: Vec<u8>,
    offsets: Vec<i32>,
    keys: Vec<u32>,
    entries: Option<Box<ColumnMemory>>,
}

/// The strings (texts or bytes) of a column in memory, as a list of slices.
#[derive(Debug)]
pub struct Lists<'a> {
    bytes: Vec<&'a [u8]>,
    texts: Vec<&'a str>,
    entries: Option<Box<Lists<'a>>>,
}

impl ColumnMemory {
    /// Puts `values`, which have the type `qtype`, into memory in the layout `shape`.
    #[must_use]
    pub fn of(values: Vec<Value>, qtype: &QType, shape: Shape, random: &mut fastrand::Rng) -> ColumnMemory {
        let mut laid = ColumnMemory::memory(values.len(), qtype, shape, random);
        for (row, value) in values.iter().enumerate() {
            laid.put(row, value, random);
            laid.offsets.push(laid.joined.len() as i32);
            let text = laid.texts.last().map_or(&[][..], Vec::as_slice);
            laid.joined.extend(text);
        }
        laid.offsets.push(laid.joined.len() as i32);
        laid.values = values;
        if shape.layout == Layout::Dictionary && qtype.scalar().is_some() {
            laid.number(qtype, random);
        }
        laid
    }

    /// Allocates memory for `rows` output values of type `qtype` in the layout `shape`, filled with garbage.
    #[must_use]
    pub fn memory(rows: usize, qtype: &QType, shape: Shape, random: &mut fastrand::Rng) -> ColumnMemory {
        let size = qtype.scalar().filter(|scalar| scalar.machine_type().is_some());
        let size = size.map_or(0, |scalar| QType::Scalar(scalar).layout().size as usize);
        let gap = if shape.layout == Layout::Dense { 0 } else { *pick(random, &[1, 8, 19]) };
        // The presence byte is directly before its value.
        let before = usize::from(shape.in_bytes);
        let stride = before + size + gap;
        let is_backwards = shape.layout == Layout::Backwards;
        let bits = (shape.offset + rows).div_ceil(8);
        ColumnMemory {
            shape,
            rows,
            values: Vec::new(),
            bytes: vec![GARBAGE; stride * rows + 16],
            first: before + if is_backwards { stride * rows.saturating_sub(1) } else { 0 },
            size,
            stride: if is_backwards { -stride.cast_signed() } else { stride.cast_signed() },
            present: vec![GARBAGE; bits],
            truths: vec![GARBAGE; bits],
            texts: Vec::new(),
            joined: Vec::new(),
            offsets: Vec::new(),
            keys: Vec::new(),
            entries: None,
        }
    }

    /// Returns the offset of a row's value.
    fn at(&self, row: usize) -> usize {
        self.first.wrapping_add_signed(self.stride * row.cast_signed())
    }

    fn put(&mut self, row: usize, value: &Value, random: &mut fastrand::Rng) {
        let (at, is_present) = (self.at(row), !matches!(value, Value::Missing(_)));
        set(&mut self.present, self.shape.offset + row, is_present);
        if self.shape.in_bytes {
            self.bytes[at - 1] = if is_present { *pick(random, &[1, 2, 128, 255]) } else { 0 };
        }
        match value.as_scalar() {
            Some(ScalarValue::Text(text)) => self.texts.push(text.as_bytes().to_vec()),
            Some(ScalarValue::Bytes(bytes)) => self.texts.push(bytes.to_vec()),
            Some(ScalarValue::Unit) => {}
            Some(other) => {
                self.bytes[at..at + self.size].copy_from_slice(&other.bits().to_le_bytes()[..self.size]);
                set(&mut self.truths, self.shape.offset + row, other.bits() & 1 != 0);
            }
            None => self.texts.push(b"garbage".to_vec()),
        }
    }

    /// Assigns dictionary keys to the values. A missing value has an invalid key, or the key of a missing entry.
    fn number(&mut self, qtype: &QType, random: &mut fastrand::Rng) {
        let mut entries: Vec<Value> = Vec::new();
        for (row, value) in self.values.iter().enumerate() {
            if matches!(value, Value::Missing(_)) && random.bool() {
                self.keys.push(u32::MAX);
                continue;
            }
            set(&mut self.present, self.shape.offset + row, true);
            let known = entries.iter().take(ENTRIES).position(|entry| entry.same(value));
            self.keys.push(known.unwrap_or_else(|| {
                entries.push(value.clone());
                entries.len() - 1
            }) as u32);
        }
        let shape = Shape { layout: Layout::Dense, in_bytes: false, offset: random.usize(..70) };
        self.entries = Some(Box::new(ColumnMemory::of(entries, qtype, shape, random)));
    }

    /// Returns slices of the column's strings.
    #[must_use]
    pub fn lists(&self) -> Lists<'_> {
        let bytes: Vec<&[u8]> = self.texts.iter().map(Vec::as_slice).collect();
        let texts = bytes.iter().map(|text| std::str::from_utf8(text).unwrap_or("")).collect();
        Lists { bytes, texts, entries: self.entries.as_ref().map(|entries| Box::new(entries.lists())) }
    }

    /// Returns the values of the column's dictionary as a column; `None` if this column has no dictionary. `lists` has the column's strings.
    #[must_use]
    pub fn dictionary<'a>(&'a self, qtype: &QType, lists: &'a Lists<'a>) -> Option<InputColumn<'a>> {
        let (entries, lists) = self.entries.as_ref().zip(lists.entries.as_ref())?;
        Some(entries.column(qtype, lists, None))
    }

    /// Returns the values as an input column of type `qtype`.
    #[must_use]
    pub fn column<'a>(
        &'a self,
        qtype: &QType,
        lists: &'a Lists<'a>,
        dictionary: Option<&'a InputColumn<'a>>,
    ) -> InputColumn<'a> {
        let layout = self.shape.layout;
        if let (Layout::Shared, Some(first)) = (layout, self.values.first())
            && self.values.iter().all(|value| value.same(first))
        {
            return InputColumn::shared(first);
        }
        let Some(scalar) = qtype.scalar().filter(|_| layout != Layout::Any) else {
            return InputColumn::any(&self.values);
        };
        let present = Bitmap::new(&self.present, self.shape.offset, self.rows).filter(|_| qtype.is_optional());
        let column = match (scalar, dictionary) {
            (_, Some(values)) => InputColumn::dictionary(Keys::U32(&self.keys), values),
            (Scalar::Text, _) if layout == Layout::Forwards => {
                InputColumn::checked_offsets(&self.offsets, &self.joined).unwrap_or(InputColumn::texts(&lists.texts))
            }
            (Scalar::Text, _) => InputColumn::texts(&lists.texts),
            (Scalar::Bytes, _) => InputColumn::bytes(&lists.bytes),
            (Scalar::Boolean, _) if layout == Layout::Dense => {
                match Bitmap::new(&self.truths, self.shape.offset, self.rows) {
                    Some(truths) => InputColumn::bits(truths),
                    None => InputColumn::units(self.rows),
                }
            }
            _ => {
                let first = self.bytes.as_ptr().wrapping_add(self.first);
                let presence = (self.is_by_bytes(scalar) && qtype.is_optional()).then_some(-1);
                // SAFETY: COLUMNS: `of` put a value, and a byte, there for each row.
                let column = unsafe { InputColumn::strided(scalar, first, self.stride, presence, self.rows) };
                if presence.is_some() {
                    return column;
                }
                column
            }
        };
        present.map_or(column, |present| column.present(present))
    }

    /// Returns true if presence is stored as bytes next to the values.
    fn is_by_bytes(&self, scalar: Scalar) -> bool {
        self.shape.in_bytes && !(scalar == Scalar::Boolean && self.shape.layout == Layout::Dense)
    }

    /// Returns true if the memory of an output may have this layout.
    #[must_use]
    pub fn is_memory(&self) -> bool {
        matches!(self.shape.layout, Layout::Dense | Layout::Forwards | Layout::Backwards)
    }

    /// Returns this memory as an output column of type `qtype`, to be written; `None` for strings, whose memory has no fixed size.
    pub fn column_mut(&mut self, qtype: &QType) -> Option<ColumnMut<'_>> {
        let scalar = qtype.scalar().filter(|scalar| !scalar.is_string())?;
        let Shape { layout, offset, .. } = self.shape;
        let by_bytes = self.is_by_bytes(scalar);
        let column = if scalar == Scalar::Boolean && layout == Layout::Dense {
            ColumnMut::bits(BitmapMut::new(&mut self.truths, offset, self.rows)?)
        } else {
            let first = self.bytes.as_mut_ptr().wrapping_add(self.first);
            let presence = (by_bytes && qtype.is_optional()).then_some(-1);
            // SAFETY: COLUMNS: there is room for a value, and a byte, for each row.
            unsafe { ColumnMut::strided(scalar, first, self.stride, presence, self.rows) }
        };
        match (by_bytes || !qtype.is_optional(), BitmapMut::new(&mut self.present, offset, self.rows)) {
            (true, _) => Some(column),
            (false, bits) => Some(column.present(bits?)),
        }
    }

    /// Returns the value that an evaluation wrote for row `row` to this memory; `None` if outputs of type `qtype` are not written to memory.
    #[must_use]
    pub fn value(&self, qtype: &QType, row: usize) -> Option<Value> {
        let (scalar, at) = (qtype.scalar()?, self.at(row));
        let is_present = !qtype.is_optional()
            || if self.is_by_bytes(scalar) {
                self.bytes[at - 1] != 0
            } else {
                get(&self.present, self.shape.offset + row)
            };
        let value = || {
            if scalar == Scalar::Unit {
                return Some(ScalarValue::Unit);
            }
            let mut bits = [0; 8];
            bits[..self.size].copy_from_slice(&self.bytes[at..at + self.size]);
            let is_bit = scalar == Scalar::Boolean && self.shape.layout == Layout::Dense;
            let truth = u64::from(get(&self.truths, self.shape.offset + row));
            ScalarValue::from_bits(scalar, if is_bit { truth } else { u64::from_le_bytes(bits) })
        };
        let value = if is_present { Some(value()?) } else { None };
        if qtype.is_optional() { Some(Value::optional(scalar, value)) } else { value.map(Value::Scalar) }
    }

    /// Returns true if an evaluation has changed neither the bytes between values nor the bits outside of the rows.
    #[must_use]
    pub fn is_intact(&self) -> bool {
        let mut bytes = self.bytes.clone();
        for row in 0..self.rows {
            let at = self.at(row);
            bytes[at - usize::from(self.shape.in_bytes)..at + self.size].fill(GARBAGE);
        }
        let outside = |bits: &[u8]| {
            let rows = self.shape.offset..self.shape.offset + self.rows;
            (0..8 * bits.len())
                .filter(|bit| !rows.contains(bit))
                .all(|bit| get(bits, bit) == (GARBAGE >> (bit % 8) & 1 != 0))
        };
        bytes.iter().all(|byte| *byte == GARBAGE) && outside(&self.present) && outside(&self.truths)
    }
}

fn set(bits: &mut [u8], at: usize, value: bool) {
    let byte = &mut bits[at / 8];
    *byte = (*byte & !(1 << (at % 8))) | u8::from(value) << (at % 8);
}

fn get(bits: &[u8], at: usize) -> bool {
    bits[at / 8] >> (at % 8) & 1 != 0
}
