//! Checks on the pages of Parquet between decompression and decoding. Dictionaries and delta-encoded strings declare a number of values, which is
//! checked before the library reserves memory for the values. The lengths of compressed pages are checked earlier, by the module `chunks`. The days
//! of INT96 timestamps are checked too, because days that do not fit into microseconds would wrap around.

#![deny(clippy::arithmetic_side_effects)]

use super::chunks::Chunks;
use super::deltas;
use ::parquet::arrow::arrow_reader::RowGroups;
use ::parquet::basic::{Encoding, Type};
use ::parquet::column::page::{Page, PageIterator, PageMetadata, PageReader};
use ::parquet::errors::ParquetError;
use ::parquet::file::metadata::{ParquetMetaData, RowGroupMetaData};
use ::parquet::file::serialized_reader::SerializedPageReader;
use std::ops::Range;
use std::sync::Arc;

/// The bytes that the library reserves for each delta-encoded string: its two lengths.
const LENGTHS_BYTES: u64 = 8;

/// The bytes of an INT96 timestamp: nanoseconds of the day, then the Julian day number.
const INT96_BYTES: usize = 12;
const INT96_TIME_BYTES: usize = 8;

/// The Julian day number of 1970-01-01.
const INT96_EPOCH: i64 = 2_440_588;

/// The most days before or after 1970 for which the microseconds fit into 64 bits, with any nanoseconds of the day.
const MOST_DAYS: u64 = 106_000_000;

/// The row groups of a Parquet file, whose pages are checked when they are read.
pub(crate) struct Groups {
    chunks: Arc<Chunks>,
    metadata: Arc<ParquetMetaData>,
}

impl Groups {
    /// Makes the row groups of the file `chunks`, whose footer has `metadata`. The pages of the row groups are checked when they are read.
    pub(crate) fn new(chunks: Chunks, metadata: Arc<ParquetMetaData>) -> Groups {
        Groups { chunks: Arc::new(chunks), metadata }
    }
}

impl RowGroups for Groups {
    fn num_rows(&self) -> usize {
        let rows = self.metadata.row_groups().iter().map(|group| usize::try_from(group.num_rows()).unwrap_or(0));
        rows.fold(0, usize::saturating_add)
    }

    fn column_chunks(&self, column: usize) -> Result<Box<dyn PageIterator>, ParquetError> {
        let (chunks, metadata) = (self.chunks.clone(), self.metadata.clone());
        let groups = 0..metadata.num_row_groups();
        Ok(Box::new(Columns { chunks, metadata, column, groups }))
    }

    fn row_groups(&self) -> Box<dyn Iterator<Item = &RowGroupMetaData> + '_> {
        Box::new(self.metadata.row_groups().iter())
    }

    fn metadata(&self) -> &ParquetMetaData {
        &self.metadata
    }
}

/// The chunks of a column in all row groups.
struct Columns {
    chunks: Arc<Chunks>,
    metadata: Arc<ParquetMetaData>,
    column: usize,
    groups: Range<usize>,
}

impl Iterator for Columns {
    type Item = Result<Box<dyn PageReader>, ParquetError>;

    fn next(&mut self) -> Option<Self::Item> {
        let group = self.metadata.row_group(self.groups.next()?);
        let of = group.column(self.column);
        let rows = usize::try_from(group.num_rows()).unwrap_or(0);
        let pages = SerializedPageReader::new(self.chunks.clone(), of, rows, None);
        Some(pages.map(|pages| -> Box<dyn PageReader> {
            let descriptor = of.column_descr();
            let width = match of.column_type() {
                Type::BOOLEAN => 1,
                Type::INT32 | Type::FLOAT | Type::BYTE_ARRAY => 4,
                Type::INT64 | Type::DOUBLE => 8,
                Type::INT96 => 12,
                Type::FIXED_LEN_BYTE_ARRAY => u64::try_from(descriptor.type_length()).unwrap_or(0).max(1),
            };
            let levels = [descriptor.max_rep_level(), descriptor.max_def_level()];
            let is_int96 = of.column_type() == Type::INT96;
            Box::new(Pages { pages, chunks: self.chunks.clone(), column: self.column, width, is_int96, levels })
        }))
    }
}

impl PageIterator for Columns {}

/// The pages of a column in one row group.
struct Pages {
    pages: SerializedPageReader<Chunks>,
    chunks: Arc<Chunks>,
    column: usize,
    /// The fewest bytes that a value takes in a dictionary page.
    width: u64,
    /// True if the values are INT96 timestamps.
    is_int96: bool,
    /// The column's maximum repetition level and maximum definition level.
    levels: [i16; 2],
}

impl Pages {
    /// Checks the number of values that a page declares.
    fn look(&self, page: &Page) -> Result<(), String> {
        let (values, size) = (u64::from(page.num_values()), page.buffer().len() as u64);
        if page.is_dictionary_page() {
            if values > size.checked_div(self.width).unwrap_or(0) {
                return Err(format!("a dictionary of {size} bytes claims to have {values} values"));
            }
            return self.look_at_days(page.buffer());
        }
        if self.is_int96 && page.encoding() == Encoding::PLAIN {
            return self.look_at_days(self.values(page).unwrap_or_default());
        }
        let is_shared = match page.encoding() {
            Encoding::DELTA_LENGTH_BYTE_ARRAY => false,
            Encoding::DELTA_BYTE_ARRAY => true,
            _ => return Ok(()),
        };
        let wrong = || format!("the lengths in a page do not match its {size} bytes and {values} values");
        let data = self.values(page).ok_or_else(wrong)?;
        let first = deltas::lengths(data, values).ok_or_else(wrong)?;
        // If strings share prefixes, the first lengths are those of the prefixes.
        let mut made = first.count.saturating_mul(LENGTHS_BYTES);
        if is_shared {
            let data = data.get(first.bytes..).ok_or_else(wrong)?;
            let second = deltas::lengths(data, values).ok_or_else(wrong)?;
            made = made.saturating_add(first.sum).saturating_add(second.sum);
        }
        self.chunks.make(self.column, made)
    }

    /// Checks the days of INT96 timestamps; other values pass.
    fn look_at_days(&self, values: &[u8]) -> Result<(), String> {
        let mut days =
            values.chunks_exact(INT96_BYTES).filter_map(|value| value.get(INT96_TIME_BYTES..)?.first_chunk::<4>());
        let is_far = |day: &[u8; 4]| i64::from(i32::from_le_bytes(*day)).abs_diff(INT96_EPOCH) > MOST_DAYS;
        if self.is_int96 && days.any(is_far) {
            return Err(format!(
                "a timestamp is more than {MOST_DAYS} days from 1970, which does not fit into 64 bits of microseconds"
            ));
        }
        Ok(())
    }

    /// The values of a data page, after its levels; `None` if the levels are invalid or the page is not a data page.
    fn values<'p>(&self, page: &'p Page) -> Option<&'p [u8]> {
        match page {
            Page::DataPageV2 { buf, def_levels_byte_len, rep_levels_byte_len, .. } => {
                buf.get(usize::try_from(def_levels_byte_len.checked_add(*rep_levels_byte_len)?).ok()?..)
            }
            Page::DataPage { buf, num_values, def_level_encoding, rep_level_encoding, .. } => {
                let mut rest = buf.as_ref();
                for (most, encoding) in self.levels.into_iter().zip([rep_level_encoding, def_level_encoding]) {
                    let most = u16::try_from(most).ok()?;
                    if most == 0 {
                        continue;
                    }
                    rest = match encoding {
                        Encoding::RLE => {
                            let (len, behind) = rest.split_first_chunk::<4>()?;
                            behind.get(usize::try_from(u32::from_le_bytes(*len)).ok()?..)?
                        }
                        // Levels with a fixed number of bits, as early writers encoded them.
                        _ => {
                            let bits = u64::from(*num_values).checked_mul(u64::from(most.ilog2().checked_add(1)?))?;
                            rest.get(usize::try_from(bits.div_ceil(8)).ok()?..)?
                        }
                    };
                }
                Some(rest)
            }
            Page::DictionaryPage { .. } => None,
        }
    }
}

impl PageReader for Pages {
    fn get_next_page(&mut self) -> Result<Option<Page>, ParquetError> {
        let page = self.pages.get_next_page()?;
        if let Some(page) = &page {
            self.look(page).map_err(ParquetError::General)?;
        }
        Ok(page)
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>, ParquetError> {
        self.pages.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<(), ParquetError> {
        self.pages.skip_next_page()
    }

    fn at_record_boundary(&mut self) -> Result<bool, ParquetError> {
        self.pages.at_record_boundary()
    }
}

impl Iterator for Pages {
    type Item = Result<Page, ParquetError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}
