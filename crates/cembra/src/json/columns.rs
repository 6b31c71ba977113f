//! Collects many rows of JSON as columns, for models that are run on batches. A row is read in one pass over its text, each value directly into its
//! column. If this pass rejects a row, the row is read value by value, as [`JsonRows`](crate::json::JsonRows) does, to get a precise error.

use super::place::{Text, one_pass_error};
use super::reading::{ValueInto, absent};
use super::size::RowSize;
use super::{JsonRow, field};
use crate::{Batch, Error, ValueRef};
use cembra_engine::rows::{Bitmap, InputColumn, column_bytes};
use cembra_runtime::{QType, Scalar};
use cembra_value::{Array, Code, Diagnostic, Limit, Value, ValueColumn};
use serde::Deserializer as _;
use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde_json::Deserializer;
use smallvec::SmallVec;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

/// Collects rows of JSON as the input columns of a batch. Each row is an object with the inputs as fields, as [`Json`](crate::json::Json) reads them.
/// Structs are objects, and lists of structs are arrays of objects. All rows together may have at most as many bytes as the batch's limit
/// `array_bytes` allows; missing values count too.
///
/// ```
/// use cembra::json::JsonColumns;
/// use cembra::{Model, Options, RunOptions};
///
/// let model = Model::parse(
///     "input name: text; input items: [{price: f64, count: i64}]
///      output total = sum(map(fn(i) = i.price * i.count, items))",
/// )?;
/// let batch = model.batch(&Options::default())?;
/// let mut orders = JsonColumns::new(&batch)?;
/// orders.push("{\"name\": \"Ann\", \"items\": [{\"price\": 1.5, \"count\": 2}, {\"price\": 0.25, \"count\": 4}]}")?;
/// orders.push("{\"items\": [], \"name\": \"Bob\", \"id\": 7}")?;
/// let error = orders.push("{\"name\": \"Eve\", \"items\": [{\"price\": 1.5}]}").unwrap_err();
/// assert_eq!(error.to_string(), "input `items.0.count` is i64, but it is missing");
///
/// let made = orders.with(|columns| batch.run_with(&RunOptions::new().rows(2), columns))?;
/// assert_eq!(made.columns[0].value(0), Some(4.0.into()));
/// assert_eq!(made.columns[0].value(1), Some(0.0.into()));
/// # Ok::<(), cembra::Error>(())
/// ```
#[derive(Debug)]
pub struct JsonColumns {
    inputs: Vec<Input>,
    /// The position of each input in the list `inputs`, by the input's name.
    places: HashMap<Arc<str>, usize>,
    /// The position of the input that the first key of the last row named, as a guess for the next row.
    first: usize,
    rows: usize,
    /// True if no row can be read in one pass, because two inputs have the same name or an input is a dictionary whose keys are not texts.
    needs_values: bool,
    /// True if [`try_push`](JsonColumns::try_push) rejects rows with a key that is not an input.
    is_closed: bool,
    /// The memory for a row that is read value by value, because one pass could not read it.
    row: JsonRow,
    /// Counts the bytes that a row needs before the row is read.
    size: RowSize,
    /// An upper bound of the bytes that all rows need so far.
    counted: u64,
    /// The number of rows whose bytes are included in `counted`.
    counted_rows: usize,
    /// The bytes that the row needs that `fits` checked last.
    next: u64,
    /// The bytes of all inputs that are stored as lists of values.
    values_bytes: u64,
    /// The most bytes that all rows may need together.
    most: u64,
}

#[derive(Debug)]
struct Input {
    name: Arc<str>,
    qtype: QType,
    /// The empty list, if it is the default of the input; else `None`.
    empty: Option<Value>,
    kept: JsonColumnData,
    /// True if [`try_push`](JsonColumns::try_push) rejects rows in which conversion to `qtype` would lose information:
    /// see [`refuse_losses`](JsonColumns::refuse_losses).
    is_strict: bool,
    /// True if [`try_push`](JsonColumns::try_push) rejects objects that lack a field of the type.
    is_full: bool,
    /// The input of the next key in the last row, as a guess for the next row.
    next: usize,
    /// The number of rows with a value in this input. While a row is read, an input has one more row once its key was
    /// read.
    rows: usize,
}

/// The values of one input for all rows.
#[derive(Debug)]
enum JsonColumnData {
    Column(ValueColumn),
    /// The input is stored as a list of values: a tensor, or a struct in a model without arrays.
    Values(Vec<Value>),
}

impl JsonColumns {
    /// Returns columns without rows for the inputs of a batch.
    ///
    /// # Errors
    /// If JSON cannot express the type of an input.
    pub fn new(batch: &Batch) -> Result<JsonColumns, Error> {
        let mut columns = JsonColumns::within(batch.array_bytes());
        for input in batch.inputs() {
            if !super::is_json(&input.qtype) {
                let message = format!("input `{}` is {}, which cannot be read from JSON", input.name, input.qtype);
                return Err(Diagnostic::new(Code::Binding, message).into());
            }
            let column = ValueColumn::new(&input.qtype).filter(|_| batch.takes_columns(&input.qtype));
            columns.add(
                &input.name,
                &input.qtype,
                column.map_or(JsonColumnData::Values(Vec::new()), JsonColumnData::Column),
            );
            if let Some(added) = columns.inputs.last_mut() {
                added.empty = input.empty_default();
            }
        }
        Ok(columns)
    }

    /// Returns columns without rows for inputs with these names and types; `None` if a type has values that are not data, such as tensors, or is
    /// nested too deeply. If a name occurs twice, every row is read value by value, which takes longer.
    #[must_use]
    pub fn of_types<'q>(types: impl IntoIterator<Item = (&'q str, &'q QType)>) -> Option<JsonColumns> {
        let mut columns = JsonColumns::within(u64::MAX);
        for (name, qtype) in types {
            columns.add(&name.into(), qtype, JsonColumnData::Column(ValueColumn::new(qtype)?));
        }
        Some(columns)
    }

    /// Returns columns without inputs. `most` is the most bytes that all rows may need.
    fn within(most: u64) -> JsonColumns {
        JsonColumns {
            inputs: Vec::new(),
            places: HashMap::new(),
            first: 0,
            rows: 0,
            needs_values: false,
            is_closed: false,
            row: JsonRow::default(),
            size: RowSize::default(),
            counted: 0,
            counted_rows: 0,
            next: 0,
            values_bytes: 0,
            most,
        }
    }

    fn add(&mut self, name: &Arc<str>, qtype: &QType, kept: JsonColumnData) {
        self.size.add(qtype);
        let is_twice = self.places.insert(name.clone(), self.inputs.len()).is_some();
        self.needs_values |= is_twice || qtype.as_map().is_some_and(|(key, _)| key != Scalar::Text);
        self.inputs.push(Input {
            name: name.clone(),
            qtype: qtype.clone(),
            empty: None,
            kept,
            is_strict: false,
            is_full: false,
            next: self.inputs.len() + 1,
            rows: 0,
        });
    }

    /// Makes [`try_push`](JsonColumns::try_push) reject rows in which the conversion to the type of one input would
    /// lose information: if an object has a field that the type lacks, if a number would become infinite as an f64, or
    /// if an f64 cannot hold an integer exactly. `input` is the index of the input.
    ///
    /// ```
    /// use cembra::json::JsonColumns;
    /// use cembra::values::parse_type;
    ///
    /// let (point, number) = (parse_type("{x: f64}")?, parse_type("f64")?);
    /// let mut columns = JsonColumns::of_types([("p", &point), ("n", &number)]).unwrap();
    /// columns.refuse_losses(0);
    /// assert!(columns.try_push("{\"p\": {\"x\": 1e300}, \"n\": 1e400}"));
    /// assert!(!columns.try_push("{\"p\": {\"x\": 18446744073709551615}, \"n\": 1}"));
    /// assert!(!columns.try_push("{\"p\": {\"x\": 1, \"y\": 2}, \"n\": 1}") && !columns.try_push("{\"p\": {\"x\": 1e400}, \"n\": 1}"));
    /// # Ok::<(), cembra::Error>(())
    /// ```
    pub fn refuse_losses(&mut self, input: usize) {
        if let Some(input) = self.inputs.get_mut(input) {
            input.is_strict = true;
        }
    }

    /// Makes [`try_push`](JsonColumns::try_push) reject rows in which an object lacks a field of the input's type, even an optional one. `input` is
    /// the index of the input.
    ///
    /// ```
    /// use cembra::json::JsonColumns;
    /// use cembra::values::parse_type;
    ///
    /// let point = parse_type("{x: f64, y: f64?}")?;
    /// let mut columns = JsonColumns::of_types([("p", &point)]).unwrap();
    /// assert!(columns.try_push("{\"p\": {\"x\": 1}}"));
    /// columns.refuse_lacking(0);
    /// assert!(columns.try_push("{\"p\": {\"x\": 1, \"y\": null}}") && !columns.try_push("{\"p\": {\"x\": 1}}"));
    /// # Ok::<(), cembra::Error>(())
    /// ```
    pub fn refuse_lacking(&mut self, input: usize) {
        if let Some(input) = self.inputs.get_mut(input) {
            input.is_full = true;
        }
    }

    /// Makes [`try_push`](JsonColumns::try_push) reject rows with a key that is not the name of an input.
    pub fn refuse_others(&mut self) {
        self.is_closed = true;
    }

    /// The number of rows that were added.
    #[must_use]
    pub const fn rows(&self) -> usize {
        self.rows
    }

    /// Returns true if the columns would have at most `most` bytes after the row in `text` was added. The text is only measured, not converted.
    ///
    /// ```
    /// use cembra::json::JsonColumns;
    /// use cembra::values::parse_type;
    ///
    /// let wide = parse_type("[{x: i64?, y: i64?}]")?;
    /// let mut columns = JsonColumns::of_types([("l", &wide)]).unwrap();
    /// assert!(columns.fits("{\"l\": [{}, {}, {}, {}]}", 200) && !columns.fits("{\"l\": [{}, {}, {}, {}]}", 80));
    /// # Ok::<(), cembra::Error>(())
    /// ```
    pub fn fits(&mut self, text: &str, most: u64) -> bool {
        // The row of the previous call is counted only if it was added since then, as a row may be checked repeatedly.
        match self.rows.checked_sub(self.counted_rows) {
            Some(0) => {}
            Some(1) => self.counted = self.counted.saturating_add(self.next),
            _ => self.counted = self.bytes(),
        }
        self.counted_rows = self.rows;
        self.next = self.size.most(text);
        if self.counted.saturating_add(self.next) > most {
            self.counted = self.bytes();
        }
        if self.counted.saturating_add(self.next) > most {
            let JsonColumns { inputs, places, size, .. } = &*self;
            let of = |name: &str| places.get(name).and_then(|at| inputs.get(*at)).map(|input| &input.qtype);
            self.next = size.of(text, of);
        }
        self.counted.saturating_add(self.next) <= most
    }

    /// The bytes of all rows.
    fn bytes(&self) -> u64 {
        let column = |input: &Input| if let JsonColumnData::Column(column) = &input.kept { column.bytes() } else { 0 };
        self.inputs.iter().map(column).fold(self.values_bytes, u64::saturating_add)
    }

    /// Adds the row in `text` to the columns.
    ///
    /// # Errors
    /// If the text is not a JSON object, has an input's key twice, lacks an input that is required, or has a value of another type than the input.
    /// Also if the rows exceed the limit on bytes (`limit`). Then nothing is added.
    pub fn push(&mut self, text: &str) -> Result<(), Error> {
        if !self.fits(text, self.most) {
            let message = format!("the JSON rows exceed {} bytes, the limit `array_bytes`", self.most);
            return Err(Diagnostic::new(Code::Limit, message).hint(Limit::ArrayBytes.hint()).into());
        }
        if self.try_push(text) {
            return Ok(());
        }
        self.row.read(text)?;
        let value = |input: &Input| -> Result<Value, Error> {
            let found = field(&input.name, &input.qtype, self.row.get(&input.name))?;
            let missing = || Error::values(format!("input `{}` is {}, but it is missing", input.name, input.qtype));
            let empty = input.empty.as_ref().filter(|_| matches!(found, ValueRef::Missing)).cloned();
            empty.or_else(|| found.to_value(&input.qtype)).ok_or_else(missing)
        };
        let values = self.inputs.iter().map(value).collect::<Result<Vec<_>, _>>()?;
        self.push_values(&values);
        Ok(())
    }

    /// Adds the row in `text` to the columns if one pass over the text can read it. Otherwise returns false and adds
    /// nothing: the text is wrong, or has a form that only [`push`](JsonColumns::push) reads, such as escapes in a key.
    #[must_use]
    pub fn try_push(&mut self, text: &str) -> bool {
        if self.needs_values || !self.fits(text, self.most) {
            return false;
        }
        let mut from = Deserializer::from_str(text);
        let row = Row {
            inputs: &mut self.inputs,
            places: &self.places,
            first: &mut self.first,
            rows: self.rows,
            text: Text::of(text),
            is_closed: self.is_closed,
            values_bytes: &mut self.values_bytes,
        };
        let read = from.deserialize_map(row).and_then(|()| from.end());
        if read.is_ok() {
            self.rows += 1;
        } else {
            self.truncate(self.rows);
        }
        read.is_ok()
    }

    /// Adds a row of values to the columns: one value per input, in the inputs' order. Each value must have the type of its input.
    pub fn push_values(&mut self, values: &[Value]) {
        self.rows += 1;
        for (at, input) in self.inputs.iter_mut().enumerate() {
            match (&mut input.kept, values.get(at)) {
                (JsonColumnData::Column(column), Some(value)) => column.push(value),
                (JsonColumnData::Column(column), None) => column.push_missing(),
                (JsonColumnData::Values(values), value) => {
                    let missing = || input.qtype.as_optional_struct().and_then(|of| Value::optional_struct(of, None));
                    let value = value.cloned().or_else(missing).unwrap_or(Value::Nothing);
                    self.values_bytes = self.values_bytes.saturating_add(column_bytes(&value));
                    values.push(value);
                }
            }
            input.rows = self.rows;
        }
    }

    /// Adds a row to the columns in which every value is missing, even for types that are not optional. A batch rejects
    /// such a row if a type is not optional.
    pub fn push_missing(&mut self) {
        self.push_values(&[]);
    }

    /// Removes all rows after the first `rows`. Rows that are added later reuse their memory.
    pub fn truncate(&mut self, rows: usize) {
        self.rows = self.rows.min(rows);
        for input in &mut self.inputs {
            match &mut input.kept {
                JsonColumnData::Column(column) => column.truncate(self.rows),
                JsonColumnData::Values(values) => values.truncate(self.rows),
            }
            if self.rows == 0 {
                (self.counted, self.counted_rows, self.values_bytes) = (0, 0, 0);
            }
            input.rows = self.rows;
        }
    }

    /// Calls `run` with the columns of the inputs, in the inputs' order, and returns its result.
    pub fn with<R>(&self, run: impl FnOnce(&[InputColumn<'_>]) -> R) -> R {
        let (mut leaves, mut ends) = (Vec::new(), Vec::with_capacity(self.inputs.len()));
        for input in &self.inputs {
            if let JsonColumnData::Column(column) = &input.kept {
                add_leaves(column, None, &mut leaves);
            }
            ends.push(leaves.len());
        }
        let elements: Vec<InputColumn<'_>> = leaves.iter().map(|leaf| InputColumn::elements(leaf.array)).collect();
        let list = |(leaf, elements)| match leaf {
            &Leaf { lists: Some((points, there)), .. } => {
                let lists = InputColumn::lists(points, elements);
                let bits = there.presence().and_then(|bits| Bitmap::of_words(bits, there.len()));
                bits.map_or(lists, |bits| lists.present(bits))
            }
            _ => *elements,
        };
        let parts: Vec<InputColumn<'_>> = leaves.iter().zip(&elements).map(list).collect();
        let mut start = 0;
        let mut columns = Vec::with_capacity(self.inputs.len());
        for (input, end) in self.inputs.iter().zip(ends) {
            let parts = parts.get(std::mem::replace(&mut start, end)..end).unwrap_or_default();
            columns.push(match (&input.kept, parts) {
                (JsonColumnData::Values(values), _) => InputColumn::any(values),
                (JsonColumnData::Column(_), [one]) if !matches!(input.qtype, QType::Tuple(_)) => *one,
                (JsonColumnData::Column(_), parts) => InputColumn::structs(parts),
            });
        }
        run(&columns)
    }

    /// Returns the columns of the inputs, in the inputs' order; `None` if an input is stored as a list of values.
    #[must_use]
    pub fn into_columns(self) -> Option<Vec<ValueColumn>> {
        let column = |input: Input| if let JsonColumnData::Column(column) = input.kept { Some(column) } else { None };
        self.inputs.into_iter().map(column).collect()
    }
}

/// The array of one scalar field of an input, over all rows. If the field is in a list, the array has the elements of
/// all rows' lists, and `lists` tells them apart.
struct Leaf<'a> {
    array: &'a Array,
    lists: Option<Lists<'a>>,
}

/// The lists of one column: the offsets at which the rows' lists begin and end in the array of all elements, and an
/// array that is missing for rows without a list.
type Lists<'a> = (&'a [i64], &'a Array);

/// Appends the arrays of a column, or of the elements of lists, in the order of [`InputColumn::structs`].
fn add_leaves<'a>(column: &'a ValueColumn, lists: Option<Lists<'a>>, leaves: &mut Vec<Leaf<'a>>) {
    match column {
        ValueColumn::Scalars(array) => leaves.push(Leaf { array: array.array(), lists }),
        ValueColumn::Tuple(fields) => fields.iter().for_each(|field| add_leaves(field, lists, leaves)),
        ValueColumn::Optional { there, of } => {
            leaves.push(Leaf { array: there.array(), lists });
            add_leaves(of, lists, leaves);
        }
        ValueColumn::Lists { points, there, elements } => {
            add_leaves(elements, Some((points, there.array())), leaves);
        }
    }
}

/// The visitor that reads a row's object into the inputs.
struct Row<'c, 't> {
    inputs: &'c mut [Input],
    places: &'c HashMap<Arc<str>, usize>,
    first: &'c mut usize,
    /// The number of complete rows before the row that is being read.
    rows: usize,
    text: Text<'t>,
    is_closed: bool,
    /// The bytes of the inputs that are stored as lists of values.
    values_bytes: &'c mut u64,
}

impl<'de> Visitor<'de> for Row<'_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<(), A::Error> {
        let Row { inputs, places, first, rows, text, is_closed, values_bytes } = self;
        let mut count = |value: &Value| *values_bytes = values_bytes.saturating_add(column_bytes(value));
        let mut others: SmallVec<[&'de str; 16]> = SmallVec::new();
        // The index of the input that the previous key named.
        let mut last = None;
        // A key with escapes is not borrowed, so it is rejected.
        while let Some(key) = object.next_key::<&'de str>()? {
            // Objects mostly have their keys in the order of the previous row.
            let next = last.map_or(*first, |last: usize| inputs[last].next);
            let is_next = inputs.get(next).is_some_and(|input| *input.name == *key);
            let Some(at) = (if is_next { Some(next) } else { places.get(key).copied() }) else {
                if is_closed {
                    return Err(one_pass_error());
                }
                others.push(key);
                object.next_value::<IgnoredAny>()?;
                continue;
            };
            match last {
                Some(last) => inputs[last].next = at,
                None => *first = at,
            }
            last = Some(at);
            let input = &mut inputs[at];
            if input.rows != rows {
                return Err(one_pass_error());
            }
            let (of, at) = (&input.qtype, text.value_after_key(key));
            let text = Text { is_strict: input.is_strict, is_full: input.is_full, ..text };
            match &mut input.kept {
                JsonColumnData::Column(column) => object.next_value_seed(ValueInto { of, column, text, at })?,
                JsonColumnData::Values(values) => {
                    let mut column = ValueColumn::new(of).ok_or_else(one_pass_error)?;
                    object.next_value_seed(ValueInto { of, column: &mut column, text, at })?;
                    let value = column.into_value(of).ok_or_else(one_pass_error)?;
                    count(&value);
                    values.push(value);
                }
            }
            input.rows = rows + 1;
        }
        others.sort_unstable();
        if others.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err(one_pass_error());
        }
        for input in inputs.iter_mut().filter(|input| input.rows == rows) {
            let is_added = match &mut input.kept {
                JsonColumnData::Column(column) => absent(&input.qtype, column),
                JsonColumnData::Values(values) => {
                    let column = ValueColumn::new(&input.qtype);
                    let column = column.and_then(|mut column| absent(&input.qtype, &mut column).then_some(column));
                    let value = column.and_then(|column| column.into_value(&input.qtype));
                    value.inspect(&mut count).map(|value| values.push(value)).is_some()
                }
            };
            if !is_added {
                return Err(one_pass_error());
            }
            input.rows = rows + 1;
        }
        Ok(())
    }
}
