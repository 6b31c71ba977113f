//! Evaluates many rows, whose input and output columns are in the memory of a C program. All outputs are computed before the first is copied to
//! that memory. So outputs are written either completely or not at all, and their memory may overlap the inputs.

#![deny(clippy::arithmetic_side_effects)]

use crate::errors::Error;
use crate::failure::Failure;
use crate::kinds;
use crate::layouts::{Column, ColumnMut};
use crate::memory::{
    AnyBits, ByteString, Flag, KnownPresence, Presence, PresenceMemory, PresenceMut, Strided, StridedMut, Text,
    gathered, roomy, slice,
};
use crate::row_value::{RowPath, not_given};
use crate::session::{Session, with_session};
use compiler::columns::{ArrayView, Bitmap, InputColumn, OutputColumn};
use compiler::values::{ArrayBuilder, ArrayData};
use compiler::{Array, Date, Duration, QType, Scalar, ScalarValue, Timestamp, Value};
use std::collections::HashMap;
use std::fmt::Display;

/// Calls a macro with pairs: the Rust type of each number type, and its variant of `Scalar`.
macro_rules! for_each_number {
    ($then:ident) => {
        $then! { i32 Int32, i64 Int64, u64 UInt64, f32 Float32, f64 Float64, Date Date, Timestamp Timestamp, Duration Duration }
    };
}

/// The values of a C column, after all checks. Texts are known to be UTF-8.
#[derive(Debug)]
pub(crate) struct CheckedColumn<'a> {
    scalar: Scalar,
    count: usize,
    values: Values<'a>,
    presence: KnownPresence,
    /// True if all rows share one value (stride 0), so that only the first value has memory.
    is_one: bool,
}

/// Reads the presence of the `count` values of `column`. `what` names the column in errors.
///
/// # Safety
/// C-MEMORY (`docs/safety.md`): the presence must be as `cembra_compiler.h` requires for a `cembra_column` of `count` values.
pub(crate) unsafe fn presence(
    column: &Column,
    count: usize,
    what: impl Display + Copy,
) -> Result<KnownPresence, Failure> {
    let Column { presence_form: form, presence: first, presence_stride: stride, presence_bit: bit, .. } = *column;
    let memory = PresenceMemory { form, first, stride, bit };
    // SAFETY: C-MEMORY, promised by the caller.
    unsafe { Presence::new(memory, count, format_args!("the presence of {what}")) }?.read()
}

/// Returns the string at index `at`, or the first one if the list is shorter, because then all indices share that string.
fn string<T: Copy>(all: &[T], at: usize) -> Option<T> {
    all.get(at).or_else(|| all.first()).copied()
}

macro_rules! values {
    ($($rust:ident $scalar:ident),*) => {
        /// The values of a C column, in a variant for each type.
        #[derive(Debug)]
        enum Values<'a> {
            Units,
            Flags(Strided<'a, Flag>),
            Texts(Vec<&'a str>),
            Bytes(Vec<&'a [u8]>),
            $(
                /// Values of one number type.
                $scalar(Strided<'a, $rust>),
            )*
        }

        impl<'a> CheckedColumn<'a> {
            /// Reads and checks the `count` values of `column`. `what` names the column in errors.
            ///
            /// # Safety
            /// C-MEMORY (`docs/safety.md`): `column` must be as `cembra_compiler.h` requires for a `cembra_column` of `count` values.
            pub(crate) unsafe fn of(column: &Column, count: usize, what: impl Display + Copy) -> Result<Self, Failure> {
                // SAFETY: C-MEMORY, promised by the caller.
                unsafe { CheckedColumn::with(column, count, presence(column, count, what)?, what) }
            }

            /// Reads and checks the `count` values of `column`, whose presence was read before. The text of a missing value is not read.
            ///
            /// # Safety
            /// C-MEMORY (`docs/safety.md`): `column` must have the address and the stride of `count` values.
            pub(crate) unsafe fn with(
                column: &Column,
                count: usize,
                presence: KnownPresence,
                what: impl Display + Copy,
            ) -> Result<Self, Failure> {
                let scalar = kinds::scalar(column.kind)
                    .ok_or_else(|| Failure::unknown("CEMBRA_KIND_* of a column", column.kind))?;
                let is_there = |at: usize| presence.is_present(at);
                let (data, stride) = (column.data, column.stride);
                let values = match scalar {
                    _ if presence.is_none => Values::Units,
                    Scalar::Unit => Values::Units,
                    // SAFETY: C-MEMORY, promised by the caller.
                    Scalar::Boolean => Values::Flags(unsafe { Strided::new(data, stride, count, what) }?),
                    Scalar::Text => {
                        // SAFETY: C-MEMORY, promised by the caller.
                        let texts: Strided<'a, Text<'a>> = unsafe { Strided::new(data, stride, count, what) }?;
                        Values::Texts(strings(texts, is_there, stride == 0, |text| text.read(what))?)
                    }
                    Scalar::Bytes => {
                        // SAFETY: C-MEMORY, promised by the caller.
                        let all: Strided<'a, ByteString<'a>> = unsafe { Strided::new(data, stride, count, what) }?;
                        Values::Bytes(strings(all, is_there, stride == 0, |bytes| bytes.read(what))?)
                    }
                    // SAFETY: C-MEMORY, promised by the caller.
                    $(Scalar::$scalar => Values::$scalar(unsafe { Strided::new(data, stride, count, what) }?),)*
                    Scalar::WeakFloat => return Err(Failure::unknown("CEMBRA_KIND_* of a column", column.kind)),
                };
                let are_alike = presence.is_none || scalar == Scalar::Unit || stride == 0;
                let is_one = count > 0 && presence.words.is_none() && are_alike;
                Ok(CheckedColumn { scalar, count, values, presence, is_one })
            }

            /// The number of values in the column.
            pub(crate) const fn count(&self) -> usize {
                self.count
            }

            /// The presence of the column's values.
            pub(crate) const fn presence(&self) -> &KnownPresence {
                &self.presence
            }

            /// Returns the index of the first value in the column that is missing although the struct around it is present. `outer` is the presence
            /// of these structs; with `None`, all of them are present.
            pub(crate) fn first_missing(&self, outer: Option<&KnownPresence>) -> Option<usize> {
                if !self.presence.is_none && self.presence.words.is_none() {
                    return None;
                }
                let is_here = |at: usize| outer.is_none_or(|outer| outer.is_present(at));
                (0..self.count).find(|at| !self.presence.is_present(*at) && is_here(*at))
            }

            /// Returns the value that all rows of the column share, as a value of the type `qtype`; `None` if each row has a value of its own.
            pub(crate) fn one(&self, qtype: &QType) -> Option<Value> {
                if self.presence.is_none {
                    return Some(Value::Missing(self.scalar));
                }
                let one = if self.is_one { self.shared() } else { None }?;
                Some(if qtype.is_optional() { Value::Present(one) } else { Value::Scalar(one) })
            }

            /// Returns the first value of the column, which all rows share; `None` if the column has no rows.
            fn shared(&self) -> Option<ScalarValue> {
                Some(match &self.values {
                    Values::Units => ScalarValue::Unit,
                    Values::Flags(flags) => ScalarValue::Boolean(flags.iter().next()?.is_set()),
                    Values::Texts(texts) => ScalarValue::Text((*texts.first()?).into()),
                    Values::Bytes(all) => ScalarValue::Bytes((*all.first()?).into()),
                    $(Values::$scalar(all) => ScalarValue::$scalar(all.iter().next()?),)*
                })
            }

            /// Fails if an array with the values of this column would need more than `most` bytes.
            pub(crate) fn check_size(&self, most: u64) -> Result<(), Failure> {
                let (count, scalar) = (self.count, self.scalar);
                let size = if scalar == Scalar::Unit { 0 } else { QType::Scalar(scalar).layout().size as usize };
                // The array has memory per element, except for a single shared value and for units, which take one bit each if any is missing.
                let bytes = count.checked_mul(size).and_then(|bytes| bytes.checked_add(count.div_ceil(8)));
                let exceeds = || Failure::argument(format!("an array of {count} elements exceeds the limit `array_bytes`"));
                let bytes = bytes.filter(|bytes| *bytes as u64 <= most).ok_or_else(exceeds)?;
                if !scalar.is_string() {
                    return Ok(());
                }
                // Each element has its own copy, also of a text that several share.
                let len = |at: usize| match &self.values {
                    Values::Texts(texts) => string(texts, at).map_or(0, str::len),
                    Values::Bytes(all) => string(all, at).map_or(0, <[u8]>::len),
                    _ => 0,
                };
                let present = (0..count).filter(|at| self.presence.is_present(*at));
                let bytes = present.map(len).fold(bytes, usize::saturating_add);
                if bytes as u64 > most { Err(exceeds()) } else { Ok(()) }
            }

            /// Appends the column's values to the array `made`, which has the same type. If `is_full`, a missing value is appended as zero (or as an
            /// empty string).
            pub(crate) fn add_to(&self, made: &mut ArrayBuilder, is_full: bool) {
                let is_there = |at: usize| self.presence.is_present(at);
                let bits = |at: usize, bits: u64| if is_there(at) { Some(bits) } else { is_full.then_some(0) };
                let indices = 0..self.count;
                match &self.values {
                    _ if self.presence.is_none => {
                        let zero = is_full.then(|| ScalarValue::zero(self.scalar));
                        indices.for_each(|_| made.push(zero.as_ref()));
                    }
                    Values::Units => indices.for_each(|at| made.push_bits(bits(at, 0))),
                    Values::Flags(flags) => {
                        let all = flags.iter().enumerate();
                        all.for_each(|(at, flag)| made.push_bits(bits(at, flag.is_set().into())));
                    }
                    Values::Texts(texts) => {
                        let text = |at: usize| string(texts, at).filter(|_| is_there(at)).or(is_full.then_some(""));
                        indices.for_each(|at| made.push_text(text(at)));
                    }
                    Values::Bytes(all) => {
                        let bytes = |at: usize| string(all, at).filter(|_| is_there(at)).or(is_full.then_some(b"".as_slice()));
                        indices.for_each(|at| made.push_bytes(bytes(at)));
                    }
                    $(Values::$scalar(all) => {
                        let all = all.iter().enumerate();
                        all.for_each(|(at, number)| made.push_bits(bits(at, ScalarValue::$scalar(number).bits())));
                    })*
                }
            }

            /// Returns the column's values as an array. Fails if the array needs more than `most` bytes.
            pub(crate) fn array(mut self, most: u64) -> Result<Array, Failure> {
                self.check_size(most)?;
                let (count, scalar) = (self.count, self.scalar);
                match &self.values {
                    Values::Units if scalar == Scalar::Unit => {
                        let none = self.presence.is_none.then(|| vec![0; count.div_ceil(64)]);
                        Array::from_parts(scalar, count, ArrayData::Units, none.or(self.presence.words.take()))
                            .ok_or_else(|| Failure::argument("the data and the presence bits do not make an array of units"))
                    }
                    $(Values::$scalar(all) => {
                        let bits = self.presence.words.as_ref().and_then(|words| Bitmap::of_words(words, count));
                        let copied;
                        let elements: &[$rust] = match all.contiguous() {
                            Some(elements) => elements,
                            None => {
                                let mut list = roomy(count)?;
                                list.extend(all.iter());
                                copied = list;
                                &copied
                            }
                        };
                        let view = ArrayView::new(elements);
                        Ok(bits.and_then(|bits| view.present(bits)).unwrap_or(view).array())
                    })*
                    _ => {
                        let mut made = ArrayBuilder::new(scalar, count);
                        self.add_to(&mut made, false);
                        Ok(made.finish())
                    }
                }
            }
        }

        /// The memory that an output's values are written to, by type.
        #[derive(Debug)]
        enum Places {
            Nowhere,
            Units,
            Flags(StridedMut<Flag>),
            Texts(StridedMut<Text<'static>>),
            Bytes(StridedMut<ByteString<'static>>),
            $(
                /// Values of one number type.
                $scalar(StridedMut<$rust>),
            )*
        }

        impl Places {
            /// Checks the memory that `column` gives for the values of an output.
            ///
            /// # Safety
            /// C-MEMORY: as `cembra_compiler.h` requires for a `cembra_column_mut` for `rows` values of this type.
            unsafe fn of(
                column: &ColumnMut,
                scalar: Scalar,
                rows: usize,
                what: impl Display + Copy,
            ) -> Result<Places, Failure> {
                let (data, stride) = (column.data, column.stride);
                Ok(match scalar {
                    Scalar::Unit => Places::Units,
                    // SAFETY: C-MEMORY, promised by the caller.
                    Scalar::Boolean => Places::Flags(unsafe { StridedMut::new(data, stride, rows, what) }?),
                    // SAFETY: C-MEMORY, promised by the caller.
                    Scalar::Text => Places::Texts(unsafe { StridedMut::new(data, stride, rows, what) }?),
                    // SAFETY: C-MEMORY, promised by the caller.
                    Scalar::Bytes => Places::Bytes(unsafe { StridedMut::new(data, stride, rows, what) }?),
                    // SAFETY: C-MEMORY, promised by the caller.
                    Scalar::WeakFloat => Places::Float64(unsafe { StridedMut::new(data, stride, rows, what) }?),
                    // SAFETY: C-MEMORY, promised by the caller.
                    $(Scalar::$scalar => Places::$scalar(unsafe { StridedMut::new(data, stride, rows, what) }?),)*
                })
            }

            /// Copies the values of a computed column to C's memory. Texts are written as pointers into `column`.
            fn write(self, column: &OutputColumn) {
                let rows = column.rows();
                match self {
                    Places::Nowhere | Places::Units => {}
                    Places::Flags(places) => {
                        let words = column.bits().unwrap_or_default();
                        let bit = |at: usize| words.get(at / 64).is_some_and(|word| word >> (at % 64) & 1 != 0);
                        places.write((0..rows).map(|at| bit(at).into()));
                    }
                    Places::Texts(places) => {
                        places.write((0..rows).map(|at| crate::views::kept_text(column.text(at).unwrap_or(""))));
                    }
                    Places::Bytes(places) => {
                        places.write((0..rows).map(|at| ByteString::kept(column.string(at).unwrap_or(&[]))));
                    }
                    $(Places::$scalar(places) => places.write_all(column.values::<$rust>().unwrap_or_default()),)*
                }
            }
        }
    };
}

for_each_number!(values);

/// Reads the strings that are present; a missing one becomes empty. If `are_one`, all rows share one string, and only that string is returned.
fn strings<'a, T: AnyBits, S: ?Sized>(
    all: Strided<'a, T>,
    is_there: impl Fn(usize) -> bool,
    are_one: bool,
    read: impl Fn(T) -> Result<&'a S, Failure>,
) -> Result<Vec<&'a S>, Failure>
where
    &'a S: Default,
{
    let count = if are_one { all.iter().len().min(1) } else { all.iter().len() };
    let mut made = roomy(count)?;
    for (at, one) in all.iter().take(count).enumerate() {
        made.push(if are_one || is_there(at) { read(one)? } else { Default::default() });
    }
    Ok(made)
}

/// The values of an input column, converted where C has them in another form than the library.
enum ColumnValues<'a> {
    Column(InputColumn<'a>),
    Bits(Vec<u64>),
    Texts(Vec<&'a str>),
    Bytes(Vec<&'a [u8]>),
    Shared(Value),
}

/// An input column, with the memory of its converted values.
struct Input<'a> {
    staged: ColumnValues<'a>,
    presence: Option<Vec<u64>>,
    rows: usize,
}

macro_rules! staged {
    ($($rust:ident $scalar:ident),*) => {
        impl<'a> Input<'a> {
            /// Converts the values for an input of the type `qtype`.
            fn of(loaded: CheckedColumn<'a>, qtype: &QType) -> Result<Input<'a>, Failure> {
                let (rows, scalar) = (loaded.count, loaded.scalar);
                let staged = if let Some(one) = loaded.one(qtype) {
                    ColumnValues::Shared(one)
                } else {
                    match loaded.values {
                        Values::Units => ColumnValues::Column(InputColumn::units(rows)),
                        Values::Flags(flags) => ColumnValues::Bits(gathered(flags.iter().map(|flag| flag.is_set()))?),
                        Values::Texts(texts) => ColumnValues::Texts(repeated(texts, rows)?),
                        Values::Bytes(all) => ColumnValues::Bytes(repeated(all, rows)?),
                        $(Values::$scalar(all) => ColumnValues::Column(match all.contiguous() {
                            Some(all) => InputColumn::values(all),
                            None => all.column(scalar),
                        }),)*
                    }
                };
                Ok(Input { staged, presence: loaded.presence.words, rows })
            }
        }
    };
}

for_each_number!(staged);

/// Returns `rows` strings: a list of one string is repeated, any other list is returned as it is.
fn repeated<T: Copy>(mut all: Vec<T>, rows: usize) -> Result<Vec<T>, Failure> {
    if let [one] = all[..] {
        let mut every = roomy(rows)?;
        every.resize(rows, one);
        all = every;
    }
    Ok(all)
}

impl Input<'_> {
    fn column(&self) -> InputColumn<'_> {
        let none = || InputColumn::units(0);
        let column = match &self.staged {
            ColumnValues::Column(column) => *column,
            ColumnValues::Bits(words) => Bitmap::of_words(words, self.rows).map_or_else(none, InputColumn::bits),
            ColumnValues::Texts(texts) => InputColumn::texts(texts),
            ColumnValues::Bytes(all) => InputColumn::bytes(all),
            ColumnValues::Shared(value) => return InputColumn::shared(value),
        };
        let bits = self.presence.as_ref().and_then(|words| Bitmap::of_words(words, self.rows));
        bits.map_or(column, |bits| column.present(bits))
    }
}

/// The memory that one output is written to: its values and their presence.
struct Output {
    places: Places,
    presence: PresenceMut,
}

impl Output {
    /// Checks the memory that `column` gives for the output `field`, and that its kind fits.
    ///
    /// # Safety
    /// C-MEMORY: as `cembra_compiler.h` requires for a `cembra_column_mut` for `rows` values.
    unsafe fn of(column: &ColumnMut, field: &compiler::Field, rows: usize) -> Result<Output, Failure> {
        if column.kind == kinds::NONE {
            return Ok(Output { places: Places::Nowhere, presence: PresenceMut::Nowhere });
        }
        let what = format!("output `{}`", field.name);
        let scalar = field.qtype.scalar().filter(|scalar| kinds::of_scalar(*scalar) == column.kind);
        let scalar = scalar.ok_or_else(|| {
            let spelled = field.spelled_type();
            Failure::values(format!("{what} is {spelled}, which a column of kind {} cannot hold", column.kind))
        })?;
        let memory = PresenceMemory {
            form: column.presence_form,
            first: column.presence,
            stride: column.presence_stride,
            bit: column.presence_bit,
        };
        // SAFETY: C-MEMORY, promised by the caller.
        let presence = unsafe { PresenceMut::new(memory, rows, format_args!("the presence of {what}")) }?;
        // SAFETY: C-MEMORY, promised by the caller.
        Ok(Output { places: unsafe { Places::of(column, scalar, rows, &what) }?, presence })
    }

    /// Returns an error if a row of the output is missing but the caller gave no memory for presence.
    fn check(&self, field: &compiler::Field, column: &OutputColumn) -> Result<(), Failure> {
        if matches!(self.places, Places::Nowhere) || self.presence.is_there() || column.presence().is_none() {
            return Ok(());
        }
        match (0..column.rows()).find(|row| !column.is_present(*row)) {
            Some(row) => {
                let name = &field.name;
                Err(Failure::values(format!(
                    "output `{name}` is missing in row {row}, but its column has CEMBRA_PRESENCE_ALL: give CEMBRA_PRESENCE_BYTES or CEMBRA_PRESENCE_BITS"
                )))
            }
            None => Ok(()),
        }
    }

    fn write(self, column: &OutputColumn) {
        self.presence.write(column.rows(), |row| column.is_present(row));
        self.places.write(column);
    }
}

impl Session {
    /// Evaluates `rows` rows: reads `inputs`, writes `outputs`.
    ///
    /// # Safety
    /// C-MEMORY: as `cembra_compiler.h` requires for the columns.
    unsafe fn run_columns(&mut self, rows: usize, inputs: &[Column], outputs: &[ColumnMut]) -> Result<(), Failure> {
        self.forget();
        let compiled = self.compiled.clone();
        let batch = compiled.batch()?;
        let (known, wanted) = (compiled.executor.inputs(), batch.outputs());
        if inputs.len() != known.len() {
            let message = format!("the model has {} inputs, but {} columns are given", known.len(), inputs.len());
            return Err(Failure::values(message));
        }
        if outputs.len() != wanted.len() {
            let message = format!("the model has {} outputs, but {} columns are given", wanted.len(), outputs.len());
            return Err(Failure::values(message));
        }
        let by_name: HashMap<&str, &Column> = known.iter().map(|field| &*field.name).zip(inputs).collect();
        let mut staged = Vec::with_capacity(inputs.len());
        for field in batch.inputs() {
            let column = by_name.get(&*field.name).copied();
            let column = column.ok_or_else(|| Failure::values(format!("input `{}` has no column", field.name)))?;
            staged.push(match (column.kind, &field.qtype) {
                (kinds::NONE, _) => Input { staged: ColumnValues::Shared(not_given(field)?), presence: None, rows },
                (_, qtype) if qtype.scalar().is_none() => {
                    let message = format!(
                        "input `{}` is {}, which a `cembra_column` cannot hold",
                        field.name,
                        field.spelled_type()
                    );
                    return Err(Failure::values(
                        message + ": call `cembra_session_evaluate` for each row, or `cembra_session_run_arrow`",
                    ));
                }
                // SAFETY: C-MEMORY, promised by the caller.
                _ => Input::of(unsafe { CheckedColumn::of(column, rows, RowPath::input(&field.name)) }?, &field.qtype)?,
            });
        }
        // SAFETY: C-MEMORY, promised by the caller.
        let place = |(column, field): (&ColumnMut, &compiler::Field)| unsafe { Output::of(column, field, rows) };
        let places: Vec<Output> = outputs.iter().zip(wanted).map(place).collect::<Result<_, _>>()?;
        let columns: Vec<InputColumn<'_>> = staged.iter().map(Input::column).collect();
        let made = batch.run_with(&self.options_now().clone().rows(rows), &columns)?;
        for ((place, field), column) in places.iter().zip(wanted).zip(&made.columns) {
            place.check(field, column)?;
        }
        self.columns = made.columns;
        (self.failed, self.failures) = (made.failed, made.failures);
        for (place, column) in places.into_iter().zip(&self.columns) {
            place.write(column);
        }
        // The caller reads only strings later; numbers were copied.
        if !self.columns.iter().any(|column| column.qtype().scalar().is_some_and(Scalar::is_string)) {
            self.columns.clear();
        }
        Ok(())
    }
}

/// Evaluates `rows` rows: reads `input_count` columns at `inputs`, writes `output_count` columns at `outputs`.
///
/// # Safety
/// C-MEMORY (`docs/safety.md`): the columns must be as `cembra_compiler.h` requires.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cembra_session_run_columns(
    session: Option<&mut Session>,
    rows: usize,
    inputs: *const Column,
    input_count: usize,
    outputs: *const ColumnMut,
    output_count: usize,
) -> Option<Box<Error>> {
    with_session(session, |session| {
        // SAFETY: C-MEMORY, promised by the caller.
        unsafe {
            let inputs = slice(inputs, input_count, "`inputs`")?;
            let outputs = slice(outputs, output_count, "`outputs`")?;
            session.run_columns(rows, inputs, outputs)
        }
    })
}
