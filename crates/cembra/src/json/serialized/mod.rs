//! Evaluates models on rows of any Rust type that implements `serde::Serialize`. A row is serialised into cells (memory
//! for one value), one per input that the model needs, and a loader reads the cells. The cell of the field at each
//! position in a row is remembered, so names are looked up only if the fields or their order change. No JSON text is
//! written. For rows of numbers and texts, nothing is allocated once the cells have enough memory.

mod cell;
mod fields;
mod refusals;

use crate::binding::loader::{Accessor, Loader};
use crate::loaders::LoaderRow;
use crate::pool::Evaluator;
use crate::{Error, Executor, Model, ModelExecutor, Options, Output, RunOptions};
use cell::Cell;
use cembra_runtime::{Cancellation, QType};
use cembra_value::guarded_values;
use fields::RowSerializer;
use serde::Serialize;
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

/// The most fields whose cells are remembered. Fields beyond these are looked up by name in each row.
const MOST_REMEMBERED: usize = 4096;

/// The inputs of a model and their values in the current row. Each row is serialised into this struct.
#[derive(Clone, Debug, Default)]
pub(crate) struct SerializedRow {
    cells: Vec<Cell>,
    positions: HashMap<Arc<str>, usize>,
    /// The number of the current row. If a cell was not written in this row, its input is missing.
    round: u64,
    /// The fields of the last rows, in their order: the name of each field, and the cell in which its value is stored.
    shape: Vec<RowFieldCell>,
    /// The key of a map that was serialised last, before its value.
    key: String,
}

#[derive(Clone, Debug)]
struct RowFieldCell {
    name: String,
    cell: Option<usize>,
}

impl SerializedRow {
    /// Returns the cell of the field at position `at` of the row; `None` if the model does not need the field.
    fn cell_of(&mut self, at: usize, name: &str) -> Option<usize> {
        if let Some(remembered) = self.shape.get(at).filter(|remembered| remembered.name == name) {
            return remembered.cell;
        }
        let cell = self.positions.get(name).copied();
        if let Some(remembered) = self.shape.get_mut(at) {
            name.clone_into(&mut remembered.name);
            remembered.cell = cell;
        } else if at == self.shape.len() && at < MOST_REMEMBERED {
            self.shape.push(RowFieldCell { name: name.to_owned(), cell });
        }
        cell
    }
}

/// A loader that creates a new cell (the memory of one input) for each input that is bound.
#[derive(Default)]
struct Cells(RefCell<Vec<Cell>>);

impl Loader<SerializedRow> for Cells {
    fn knows(&self, _: &str) -> bool {
        true
    }

    fn qtype(&self, _: &str, declared: Option<&QType>) -> Option<QType> {
        declared.cloned()
    }

    fn names(&self) -> Vec<String> {
        Vec::new()
    }

    fn bind(&self, name: &str, qtype: &QType) -> Result<Accessor<SerializedRow>, Error> {
        let mut cells = self.0.borrow_mut();
        let at = cells.len();
        cells.push(Cell::new(name, qtype));
        Ok(Accessor::checking(move |row: &SerializedRow| Ok(row.cells[at].value(row.round))))
    }
}

/// A compiled model with a frame (the memory of one evaluation), for one thread. The executor evaluates rows to results of type `O`. A row may have
/// any type that implements `serde::Serialize`: see [`Model::executor_for_rows`]. A clone shares the code, but has another frame.
pub struct SerializeExecutor<O> {
    executor: ModelExecutor<LoaderRow<SerializedRow>, O>,
    row: SerializedRow,
}

impl Model {
    /// Compiles the model for rows of any type that implements `serde::Serialize`: structs, maps, and combinations of them with serde's attributes.
    /// An input is read from the field with the input's name, and has the type that the model declares or [`Options::input_type`] sets. Fields that
    /// are not inputs are ignored.
    ///
    /// Values are read as [`Json`](crate::json::Json) reads the row's JSON form. `None`, `()` and absent fields are missing. A number is accepted for
    /// each integer type that can represent it exactly. For a float type, a number is rounded. Dates, bytes and NaNs may be texts. Tuples, arrays and
    /// lists are sequences; named tuples are structs or maps; dictionaries are maps. There are two differences from JSON: floats are converted
    /// between f32 and f64 as numbers, not as decimal digits; and bytes may be serde's bytes.
    ///
    /// ```
    /// use cembra::{Model, Options};
    /// use serde::Serialize;
    ///
    /// #[derive(Serialize)]
    /// #[serde(rename_all = "camelCase")]
    /// struct Order<'a> { unit_price: f32, count: u16, country: &'a str, note: Option<String> }
    ///
    /// let model = Model::parse(
    ///     "input unitPrice: f64; input count: i32; input country: text; input rebate: f64? = 0.25
    ///      unitPrice * count * (1.0 - (if country == \"CH\" then rebate else 0.0))",
    /// )?;
    /// let mut price = model.executor_for_rows::<f64>(&Options::default())?;
    /// let order = Order { unit_price: 2.5, count: 4, country: "CH", note: None };
    /// assert_eq!(price.run(&order)?, 7.5);
    /// // Rows of another shape, to the same executor.
    /// assert_eq!(price.run(&serde_json::json!({"count": 2, "unitPrice": 8, "country": "CH", "rebate": 0.5}))?, 8.0);
    ///
    /// let error = price.run(&serde_json::json!({"count": 2.5, "unitPrice": 8, "country": "CH"})).unwrap_err();
    /// assert_eq!((error.code(), error.to_string().as_str()), ("values", "input `count` is i32, found 2.5"));
    /// # Ok::<(), cembra::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`executor_from`](Model::executor_from).
    pub fn executor_for_rows<O: Output>(&self, options: &Options) -> Result<SerializeExecutor<O>, Error> {
        let loader = Cells::default();
        let executor = self.executor_from(&loader, options)?;
        let cells = loader.0.into_inner();
        let positions = cells.iter().enumerate().map(|(at, cell)| (cell.name().clone(), at)).collect();
        Ok(SerializeExecutor { executor, row: SerializedRow { cells, positions, ..SerializedRow::default() } })
    }
}

impl<O: Output> SerializeExecutor<O> {
    /// Evaluates the model on the row `row`.
    ///
    /// # Errors
    /// If the evaluation fails, a field is given twice or does not have its input's type, or the row is not a struct or map or cannot be serialised.
    pub fn run<R: Serialize + ?Sized>(&mut self, row: &R) -> Result<O, Error> {
        self.read(row)?;
        self.executor.run(&self.row)
    }

    /// Evaluates the model and writes the result to `output`, as [`ModelExecutor::run_into`] does.
    ///
    /// # Errors
    /// The errors of [`run`](SerializeExecutor::run). Then `output` is unchanged.
    pub fn run_into<R: Serialize + ?Sized>(&mut self, row: &R, output: &mut O) -> Result<(), Error> {
        self.read(row)?;
        self.executor.run_into(&self.row, output)
    }

    /// Sets the cancellation token of later evaluations: they end with the fault `cancelled` once the token is cancelled. `None` removes an earlier
    /// token. A clone starts without a token. Other run options do not change.
    pub fn set_cancellation(&mut self, token: Option<Cancellation>) {
        self.executor.set_cancellation(token);
    }

    /// Sets the token, deadline, threads and limits of later evaluations, in place of earlier options. A clone starts with the default options.
    pub fn set_run_options(&mut self, options: &RunOptions) {
        self.executor.set_run_options(options);
    }

    /// Returns the compiled model, which clones of this executor share.
    #[must_use]
    pub fn executor(&self) -> &Executor {
        self.executor.executor()
    }

    /// The bytes of memory of this executor, as [`ModelExecutor::memory_bytes`] counts them. The texts of the current row are not counted.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let row = size_of_val(&*self.row.cells) + size_of_val(&*self.row.shape);
        self.executor.memory_bytes() + row
    }

    fn read<R: Serialize + ?Sized>(&mut self, row: &R) -> Result<(), Error> {
        self.row.round += 1;
        let read = || row.serialize(RowSerializer(&mut self.row)).map_err(Into::into);
        guarded_values(|| "the `Serialize` of the row".to_owned(), read)
    }
}

impl<O: Output> Evaluator for SerializeExecutor<O> {
    fn set_run_options(&mut self, options: &RunOptions) {
        SerializeExecutor::set_run_options(self, options);
    }
}

impl<O> Clone for SerializeExecutor<O> {
    fn clone(&self) -> Self {
        SerializeExecutor { executor: self.executor.clone(), row: self.row.clone() }
    }
}

impl<O> std::fmt::Debug for SerializeExecutor<O> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("SerializeExecutor").field(&self.executor).finish()
    }
}
