//! Players of rows as subjects: a model is run as a batch, on columns whose layouts are drawn anew each time (dense, strided
//! either way, bits from any bit on, bytes, dictionaries, one value for all), and on as many copies of the rows as fill some
//! words of bits. Memory of what is missing holds garbage.

use crate::config::{chance, pick};
use crate::subject::{Answer, Failure, Row, Subject};
use crate::values::fresh;
use cembra::{Batch, Bitmap, InputColumn, Keys, Model, OnError, Options, RowFailure, RowPlayer};
use cembra_runtime::{QType, Scalar};
use cembra_value::{ScalarValue, Value};

/// Where no value is.
const GARBAGE: u8 = 0xA7;

/// The values of an input in memory, to be borrowed as a column.
#[derive(Default)]
struct Laid {
    values: Vec<Value>,
    bytes: Vec<u8>,
    /// The first value in the bytes, how far it is to the next, and how far from a value to its presence byte.
    first: usize,
    stride: isize,
    presence: Option<isize>,
    texts: Vec<Vec<u8>>,
    keys: Vec<u16>,
    /// Bits from some bit on, of presence and of truth values.
    present: Vec<u8>,
    truths: Vec<u8>,
    offset: usize,
}

impl Laid {
    fn of(values: Vec<Value>, random: &mut fastrand::Rng) -> Laid {
        let mut laid = Laid { offset: random.usize(..70), ..Laid::default() };
        let size = values.first().map_or(0, |value| value.qtype().scalar().map_or(0, of_scalar));
        let gap = *pick(random, &[0, 0, 1, 8, 19]);
        let has_bytes = chance(random, 0.4);
        // The byte of presence is in front of its value, or some way behind.
        let inside = if has_bytes { 1 } else { 0 };
        let stride = size + inside + gap;
        laid.bytes = vec![GARBAGE; stride * values.len() + 16];
        let backwards = random.bool();
        laid.stride = if backwards { -stride.cast_signed() } else { stride.cast_signed() };
        laid.first = if backwards { stride * values.len().saturating_sub(1) + inside } else { inside };
        laid.presence = has_bytes.then_some(-1);
        let bits = (laid.offset + values.len()).div_ceil(8);
        (laid.present, laid.truths) = (vec![GARBAGE; bits], vec![GARBAGE; bits]);
        for (row, value) in values.iter().enumerate() {
            let at = laid.first.wrapping_add_signed(laid.stride * row.cast_signed());
            let is_present = !matches!(value, Value::Missing(_));
            set(&mut laid.present, laid.offset + row, is_present);
            if has_bytes {
                laid.bytes[at - 1] = if is_present { *pick(random, &[1, 2, 128, 255]) } else { 0 };
            }
            let Some(scalar) = value.as_scalar() else {
                laid.texts.push(b"garbage".to_vec());
                laid.keys.push(u16::MAX);
                continue;
            };
            match scalar {
                ScalarValue::Text(text) => laid.texts.push(text.as_bytes().to_vec()),
                ScalarValue::Bytes(bytes) => laid.texts.push(bytes.to_vec()),
                ScalarValue::Unit => {}
                other => {
                    laid.bytes[at..at + size].copy_from_slice(&other.bits().to_le_bytes()[..size]);
                    set(&mut laid.truths, laid.offset + row, other.bits() & 1 != 0);
                }
            }
            laid.keys.push(laid.texts.len().saturating_sub(1) as u16);
        }
        laid.values = values;
        laid
    }

    /// The values as a column of the type.
    fn column<'a>(
        &'a self,
        qtype: &QType,
        strings: &'a [&'a [u8]],
        texts: &'a [&'a str],
        dictionary: Option<&'a InputColumn<'a>>,
        random: &mut fastrand::Rng,
    ) -> InputColumn<'a> {
        let rows = self.values.len();
        let first = self.values.first();
        if let Some(first) = first
            && random.bool()
            && self.values.iter().all(|value| value.same(first))
        {
            return InputColumn::shared(first);
        }
        let Some(scalar) = qtype.scalar().filter(|_| chance(random, 0.85)) else {
            return InputColumn::any(&self.values);
        };
        let bits = |bytes: &'a [u8]| Bitmap::new(bytes, self.offset, rows);
        let by_bytes = qtype.is_optional() && self.presence.is_some();
        let column = match scalar {
            Scalar::Unit if by_bytes => self.strided(scalar, by_bytes),
            Scalar::Unit => InputColumn::units(rows),
            Scalar::Text => match dictionary.filter(|_| random.bool()) {
                Some(values) => InputColumn::dictionary(Keys::U16(&self.keys), values),
                None => InputColumn::texts(texts),
            },
            Scalar::Bytes => InputColumn::bytes(strings),
            Scalar::Boolean if random.bool() => match bits(&self.truths) {
                Some(truths) => InputColumn::bits(truths),
                None => self.strided(scalar, by_bytes),
            },
            _ => self.strided(scalar, by_bytes),
        };
        let is_strided = by_bytes && !scalar.is_string() && scalar != Scalar::Boolean;
        match bits(&self.present).filter(|_| qtype.is_optional() && !is_strided) {
            Some(present) => column.present(present),
            None => column,
        }
    }

    fn strided(&self, scalar: Scalar, with_presence: bool) -> InputColumn<'_> {
        let first = self.bytes.as_ptr().wrapping_add(self.first);
        let presence = self.presence.filter(|_| with_presence);
        // SAFETY: COLUMNS: `of` put a value, and a byte, there for each row.
        unsafe { InputColumn::strided(scalar, first, self.stride, presence, self.values.len()) }
    }
}

fn of_scalar(scalar: Scalar) -> usize {
    match scalar.machine_type() {
        Some(_) => QType::Scalar(scalar).layout().size as usize,
        None => 0,
    }
}

fn set(bits: &mut [u8], at: usize, value: bool) {
    let byte = &mut bits[at / 8];
    *byte = (*byte & !(1 << (at % 8))) | u8::from(value) << (at % 8);
}

/// Rows are copied to fill strips; each copy must be answered alike.
impl Subject for RowPlayer {
    fn name(&self) -> &str {
        (*self).name()
    }

    fn run(&self, model: &Model, options: &Options, rows: &[Row]) -> Result<Vec<Answer>, Failure> {
        let batch = model.batch(&options.clone().row_player(*self))?;
        let nodes = model.program().graph.len() as u64;
        let mut random = fastrand::Rng::with_seed(nodes << 20 | rows.len() as u64);
        let copies = *pick(&mut random, &[1, 1, 64, 65, 70, 130, 400]);
        let all: Vec<&Row> = rows.iter().cycle().take(rows.len().max(copies * usize::from(!rows.is_empty()))).collect();
        let answers = answers(&batch, &all, &mut random)?;
        // If two copies of a row are answered differently, the later one is shown.
        let answer = |row: usize| {
            let mut copies = answers.iter().skip(row).step_by(rows.len()).cloned();
            let first = copies.next();
            let differs = |other: &Answer| first.as_ref().is_none_or(|first| !crate::subject::same(first, other));
            copies.find(differs).or_else(|| first.clone())
        };
        Ok((0..rows.len()).filter_map(answer).collect())
    }
}

fn answers(batch: &Batch, rows: &[&Row], random: &mut fastrand::Rng) -> Result<Vec<Answer>, Failure> {
    let value = |name: &str, row: &Row| row.get(name).map_or(Value::Nothing, fresh);
    let laid: Vec<Laid> = batch
        .inputs()
        .iter()
        .map(|input| Laid::of(rows.iter().map(|row| value(&input.name, row)).collect(), random))
        .collect();
    let strings: Vec<Vec<&[u8]>> = laid.iter().map(|laid| laid.texts.iter().map(Vec::as_slice).collect()).collect();
    let texts: Vec<Vec<&str>> = strings
        .iter()
        .map(|strings| strings.iter().map(|text| std::str::from_utf8(text).unwrap_or("")).collect())
        .collect();
    let dictionaries: Vec<InputColumn<'_>> = texts.iter().map(|texts| InputColumn::texts(texts)).collect();
    let columns: Vec<InputColumn<'_>> = batch
        .inputs()
        .iter()
        .enumerate()
        .map(|(at, input)| laid[at].column(&input.qtype, &strings[at], &texts[at], Some(&dictionaries[at]), random))
        .collect();
    let run = batch.start().rows(rows.len()).threads(random.usize(1..4)).on_error(OnError::Missing);
    let made = run.keep_failures(usize::MAX).run(&columns)?;
    let mut failures = made.failures.into_iter().peekable();
    let answer = |row: usize| match failures.next_if(|failure| failure.row == row) {
        Some(RowFailure { error, .. }) => Err(error.into()),
        None => Ok(made
            .columns
            .iter()
            .zip(batch.outputs())
            .map(|(column, output)| {
                let value = column.value(row).unwrap_or(Value::Nothing);
                // Other rows that fail make the column optional.
                match value {
                    Value::Present(value) if !output.qtype.is_optional() => Value::Scalar(value),
                    value => value,
                }
            })
            .collect()),
    };
    Ok((0..rows.len()).map(answer).collect())
}
