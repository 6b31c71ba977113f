//! Dictionaries of columns that are copied to an Arrow file. The file has one growing dictionary per column, while each batch may come with
//! a dictionary of its own. The values of a batch's dictionary are found in the file's dictionary or added to it, and the batch's keys are
//! converted to the file's keys.

use crate::error::{DataCode, DataError};
use crate::foreign;
use arrow_array::builder::PrimitiveBuilder;
use arrow_array::types::ArrowDictionaryKeyType;
use arrow_array::{Array, ArrayRef, DictionaryArray, RecordBatch, UInt64Array, downcast_dictionary_array, make_array};
use arrow_buffer::ArrowNativeType;
use arrow_schema::{DataType, Schema};
use std::collections::HashMap;
use std::sync::Arc;

/// The most distinct values of a dictionary, and the most bytes of their texts.
const MOST_VALUES: usize = 1 << 20;
const MOST_BYTES: usize = 1 << 30;

/// The most values that may be copied because dictionaries differ: `COPIES_OF_ROW` per row, plus `COPIES`. Each time values are added,
/// those before are copied.
const COPIES_OF_ROW: usize = 256;
const COPIES: usize = 1 << 24;

/// The dictionaries of an Arrow file that is being written: the distinct values of each dictionary column so far, to which later batches add
/// values.
#[derive(Default)]
pub(super) struct Dictionaries {
    /// The dictionaries so far, in the order in which the schema lists them.
    known: Vec<Dictionary>,
    rows: usize,
    /// The number of dictionary values copied so far.
    copies: usize,
}

/// A dictionary of the file, with its values so far.
struct Dictionary {
    values: ArrayRef,
    /// The index of each value in the dictionary, by the value's text; the key `None` stands for a null value. The map stays empty until a batch
    /// has a different dictionary.
    numbers: HashMap<Option<Vec<u8>>, usize>,
    bytes: usize,
}

/// The reason why rows cannot be written.
enum Refused {
    Many,
    Often,
    Arrow(String),
}

impl Dictionaries {
    /// Returns true if a column of `schema` is a dictionary, or has one nested in it.
    pub(super) fn are_in(schema: &Schema) -> bool {
        schema.fields().iter().any(|field| foreign::has(field.data_type(), is_dictionary))
    }

    /// Returns `rows` with their dictionary keys converted to keys of the file's dictionaries. Values that the file's dictionaries lack are added.
    ///
    /// # Errors
    /// If the dictionaries of a column have more values together than one dictionary can have, or if the dictionary changes too often from batch to
    /// batch.
    pub(super) fn renumbered(&mut self, rows: &RecordBatch) -> Result<RecordBatch, DataError> {
        self.rows = self.rows.saturating_add(rows.num_rows());
        let (mut columns, mut next) = (Vec::with_capacity(rows.num_columns()), 0);
        for (column, field) in rows.columns().iter().zip(rows.schema_ref().fields()) {
            if !foreign::has(field.data_type(), is_dictionary) {
                columns.push(column.clone());
                continue;
            }
            let made = self.array(column, &mut next).map_err(|refused| {
                let message = match refused {
                    Refused::Many => {
                        "the dictionaries of the column have more values together than one dictionary of an Arrow file can have"
                    }
                    Refused::Often => "the dictionary of the column changes too often for an Arrow file",
                    Refused::Arrow(message) => return DataError::new(DataCode::Io, message).in_column(field.name()),
                };
                let error = DataError::new(DataCode::ColumnType, message).in_column(field.name());
                error.hint("write Parquet, JSON or CSV, which need no common dictionary")
            })?;
            columns.push(made);
        }
        crate::batch(&rows.schema(), columns, rows.num_rows())
    }

    /// Renumbers an array. Recurses into nested types; `is_shown` limits the depth.
    fn array(&mut self, array: &ArrayRef, next: &mut usize) -> Result<ArrayRef, Refused> {
        downcast_dictionary_array!(
            array => self.dictionary(array, next),
            _ => {
                let data = array.to_data();
                let parts = data.child_data().iter().map(|part| {
                    let part = self.array(&make_array(part.clone()), next)?;
                    Ok(part.to_data())
                });
                let parts = parts.collect::<Result<Vec<_>, _>>()?;
                let made = data.into_builder().child_data(parts).build();
                made.map(make_array).map_err(|error| Refused::Arrow(error.to_string()))
            }
        )
    }

    /// Converts an array to the dictionary of the file at index `next`, and increments `next`.
    fn dictionary<K: ArrowDictionaryKeyType>(
        &mut self,
        array: &DictionaryArray<K>,
        next: &mut usize,
    ) -> Result<ArrayRef, Refused> {
        let at = *next;
        *next += 1;
        let found = array.values();
        let Some(known) = self.known.get_mut(at) else {
            self.known.push(Dictionary { values: found.clone(), numbers: HashMap::new(), bytes: 0 });
            return Ok(Arc::new(array.clone()));
        };
        if known.has(found) {
            return with_values(array.keys().clone(), &known.values);
        }
        let (numbers, added) = known.numbers_of(array)?;
        if !added.is_empty() {
            self.copies = self.copies.saturating_add(known.values.len());
            if self.copies > self.rows.saturating_mul(COPIES_OF_ROW).saturating_add(COPIES) {
                return Err(Refused::Often);
            }
            known.add(found, added)?;
        }
        let mut keys = PrimitiveBuilder::<K>::with_capacity(array.len());
        for row in 0..array.len() {
            let number = array.key(row).and_then(|key| numbers.get(&key));
            let number = number.map(|number| K::Native::from_usize(*number).ok_or(Refused::Many)).transpose()?;
            keys.append_option(number);
        }
        with_values(keys.finish(), &known.values)
    }
}

impl Dictionary {
    /// Returns true if a dictionary has the same values.
    fn has(&self, found: &ArrayRef) -> bool {
        let (found, own) = (found.to_data(), self.values.to_data());
        found.ptr_eq(&own) || found.len() == own.len() && found == own
    }

    /// Returns the file's indices of the values that rows use, by their keys, and the keys of the values that are new.
    fn numbers_of<K: ArrowDictionaryKeyType>(
        &mut self,
        array: &DictionaryArray<K>,
    ) -> Result<(HashMap<usize, usize>, Vec<u64>), Refused> {
        if self.numbers.is_empty() {
            for at in (0..self.values.len()).rev() {
                self.number(at, at)?;
            }
        }
        let (mut numbers, mut added) = (HashMap::new(), Vec::new());
        for key in (0..array.len()).filter_map(|row| array.key(row)) {
            if numbers.contains_key(&key) {
                continue;
            }
            let value = text(array.values().as_ref(), key);
            let number = match self.numbers.get(&value) {
                Some(number) => *number,
                None => {
                    let number = self.values.len() + added.len();
                    self.insert(value, number)?;
                    added.push(key as u64);
                    number
                }
            };
            numbers.insert(key, number);
        }
        Ok((numbers, added))
    }

    fn number(&mut self, at: usize, number: usize) -> Result<(), Refused> {
        self.insert(text(self.values.as_ref(), at), number)
    }

    fn insert(&mut self, value: Option<Vec<u8>>, number: usize) -> Result<(), Refused> {
        self.bytes = self.bytes.saturating_add(value.as_ref().map_or(0, Vec::len));
        if self.bytes > MOST_BYTES || self.numbers.len() >= MOST_VALUES {
            return Err(Refused::Many);
        }
        self.numbers.insert(value, number);
        Ok(())
    }

    /// Appends the values at the indices `added` of another dictionary.
    fn add(&mut self, found: &ArrayRef, added: Vec<u64>) -> Result<(), Refused> {
        let wrong = |error: arrow_schema::ArrowError| Refused::Arrow(error.to_string());
        let added = arrow_select::take::take(found.as_ref(), &UInt64Array::from(added), None).map_err(wrong)?;
        self.values = arrow_select::concat::concat(&[self.values.as_ref(), added.as_ref()]).map_err(wrong)?;
        Ok(())
    }
}

const fn is_dictionary(of: &DataType) -> bool {
    matches!(of, DataType::Dictionary(..))
}

fn text(values: &dyn Array, at: usize) -> Option<Vec<u8>> {
    let mut text = Vec::new();
    foreign::write_text(&mut text, values, at).then_some(text)
}

fn with_values<K: ArrowDictionaryKeyType>(
    keys: arrow_array::PrimitiveArray<K>,
    values: &ArrayRef,
) -> Result<ArrayRef, Refused> {
    match DictionaryArray::try_new(keys, Arc::clone(values)) {
        Ok(made) => Ok(Arc::new(made)),
        Err(error) => Err(Refused::Arrow(error.to_string())),
    }
}
