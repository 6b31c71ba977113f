//! The library's own ways over many rows, as subjects: a batch on columns by each of its players, and on slices of structs.

use super::columns::{Column, Columns};
use super::subject::{BatchSubject, Bound, model_error_of};
use super::workload::{Batch, Rows};
use crate::Error;
use crate::measure::Run;
use crate::row::{Answer, Row};
use crate::subject::Family;
use cembra::columns::{Bitmap, BitmapMut, ColumnMut, InputColumn};
use cembra::explain::RowPlayer;
use cembra::{Model, ModelExecutor, Options, RunOptions};

/// A way of the library.
#[derive(Clone, Copy, Debug)]
pub struct Form {
    /// The name in tables and records.
    pub name: &'static str,
    /// What plays rows.
    player: RowPlayer,
    /// On slices of structs, else on columns.
    on_structs: bool,
}

const fn on_columns(name: &'static str, player: RowPlayer) -> Form {
    Form { name, player, on_structs: false }
}

/// All of them, in the order of reports.
pub const FORMS: [Form; 8] = [
    on_columns("interpreter-rows", RowPlayer::Interpreter),
    on_columns("native-rows", RowPlayer::Native),
    on_columns("lanes-128", RowPlayer::Lanes128),
    on_columns("wide-avx2", RowPlayer::Avx2),
    on_columns("wide-avx512", RowPlayer::Avx512),
    on_columns("native-batch", RowPlayer::Best),
    Form { name: "native-rows-structs", player: RowPlayer::Native, on_structs: true },
    Form { name: "native-batch-structs", player: RowPlayer::Best, on_structs: true },
];

/// The library's subject for a workload; the reason if it cannot go this way.
///
/// # Errors
/// The workload does not compile.
pub fn cembra_subject<W: Batch>(form: Form) -> Result<Result<Box<dyn BatchSubject<W>>, String>, Error> {
    let batch = batch::<W>(form.player)?;
    let rows = Rows::<W>::expected()?.0;
    let (found, because) = match batch.player(&inputs::<W>(&batch, &rows.columns)) {
        Ok(found) => found,
        Err(error) => return Ok(Err(error.to_string())),
    };
    if form.player != RowPlayer::Best && form.player != found {
        let because = because.map_or(String::new(), |reason| reason.message().to_owned());
        return Ok(Err(format!("`{}` would play: {because}", found.name())));
    }
    Ok(Ok(if form.on_structs { Box::new(OnStructs { form }) } else { Box::new(OnColumns { form }) }))
}

fn batch<W: Batch>(player: RowPlayer) -> Result<cembra::Batch, Error> {
    let options = Options::default().row_player(player);
    Model::parse(W::SOURCE).and_then(|model| model.batch(&options)).map_err(model_error_of::<W>)
}

/// The columns of a model's inputs.
fn inputs<'a, W: Batch>(batch: &cembra::Batch, columns: &'a Columns) -> Vec<InputColumn<'a>> {
    let column = |name: &str| W::Input::NAMES.iter().position(|known| *known == name).map(|at| &columns.columns[at]);
    batch.inputs().iter().filter_map(|input| Some(input_column(column(&input.name)?, columns.rows))).collect()
}

fn input_column(column: &Column, rows: usize) -> InputColumn<'_> {
    let values = if column.kind().is_double {
        // SAFETY: BARE-COLUMNS: the column has so many values of its type.
        InputColumn::values(unsafe { std::slice::from_raw_parts(column.values().cast::<f64>(), rows) })
    } else {
        // SAFETY: BARE-COLUMNS: the column has so many values of its type.
        InputColumn::values(unsafe { std::slice::from_raw_parts(column.values().cast::<f32>(), rows) })
    };
    // SAFETY: BARE-COLUMNS: an optional has a bit for each row.
    let bits = column.presence().map(|bits| unsafe { std::slice::from_raw_parts(bits, rows.div_ceil(8)) });
    match bits.and_then(|bits| Bitmap::new(bits, 0, rows)) {
        Some(present) => values.present(present),
        None => values,
    }
}

/// A batch on columns.
struct OnColumns {
    form: Form,
}

struct BoundColumns<'a> {
    batch: cembra::Batch,
    inputs: Vec<InputColumn<'a>>,
    outputs: Columns,
    threads: usize,
}

impl<W: Batch> BatchSubject<W> for OnColumns {
    fn name(&self) -> &'static str {
        self.form.name
    }

    fn family(&self) -> Family {
        Family::Cembra
    }

    fn most_rows(&self) -> usize {
        if self.form.player == RowPlayer::Interpreter { 10_000 } else { usize::MAX }
    }

    /// To where the first row could be evaluated.
    fn compile(&self) -> Option<Run<'static>> {
        let player = self.form.player;
        let rows = Rows::<W>::expected().ok()?.0.columns;
        Some(Box::new(move || {
            let batch = batch::<W>(player)?;
            batch.player(&inputs::<W>(&batch, &rows)).map(drop).map_err(model_error_of::<W>)
        }))
    }

    fn bind<'a>(&'a self, rows: &'a Rows<W>, threads: usize) -> Result<Box<dyn Bound + 'a>, Error> {
        let batch = batch::<W>(self.form.player)?;
        let inputs = inputs::<W>(&batch, &rows.columns);
        let outputs = Columns::new(W::OUTPUT_KINDS, rows.columns.rows);
        Ok(Box::new(BoundColumns { batch, inputs, outputs, threads }))
    }
}

impl Bound for BoundColumns<'_> {
    fn run(&mut self) -> Result<(), Error> {
        let rows = self.outputs.rows;
        let mut columns = Vec::with_capacity(self.outputs.columns.len());
        let kinds: Vec<_> = self.outputs.columns.iter().map(Column::kind).collect();
        let mut addresses = self.outputs.addresses_mut(0).into_iter();
        for kind in kinds {
            let Some(values) = addresses.next() else { break };
            let column = if kind.is_double {
                // SAFETY: BARE-COLUMNS: the column has so many values of its type, and nobody else uses it.
                ColumnMut::values(unsafe { std::slice::from_raw_parts_mut(values.cast::<f64>(), rows) })
            } else {
                // SAFETY: BARE-COLUMNS: the column has so many values of its type, and nobody else uses it.
                ColumnMut::values(unsafe { std::slice::from_raw_parts_mut(values.cast::<f32>(), rows) })
            };
            let bits = if kind.is_optional { addresses.next() } else { None };
            // SAFETY: BARE-COLUMNS: an optional has a bit for each row.
            let bits = bits.map(|bits| unsafe { std::slice::from_raw_parts_mut(bits, rows.div_ceil(8)) });
            columns.push(Some(match bits.and_then(|bits| BitmapMut::new(bits, 0, rows)) {
                Some(present) => column.present(present),
                None => column,
            }));
        }
        let made = self.batch.run_into(&RunOptions::new().threads(self.threads), &self.inputs, columns);
        made.map(drop).map_err(|source| Error::Model { workload: "batch", source: Box::new(source) })
    }

    fn outputs(&self) -> Columns {
        self.outputs.clone()
    }
}

/// A batch on slices of structs.
struct OnStructs {
    form: Form,
}

struct BoundStructs<'a, W: Batch> {
    executor: ModelExecutor<W::Input, W::Output>,
    inputs: &'a [W::Input],
    outputs: Vec<W::Output>,
}

impl<W: Batch> BatchSubject<W> for OnStructs {
    fn name(&self) -> &'static str {
        self.form.name
    }

    fn family(&self) -> Family {
        Family::Cembra
    }

    fn most_rows(&self) -> usize {
        100_000
    }

    fn most_threads(&self) -> usize {
        1
    }

    fn bind<'a>(&'a self, rows: &'a Rows<W>, _: usize) -> Result<Box<dyn Bound + 'a>, Error> {
        let options = Options::default().row_player(self.form.player);
        let executor =
            Model::parse(W::SOURCE).and_then(|model| model.executor(&options)).map_err(model_error_of::<W>)?;
        let outputs = vec![W::Output::default(); rows.structs.len()];
        Ok(Box::new(BoundStructs::<W> { executor, inputs: &rows.structs, outputs }))
    }
}

impl<W: Batch> Bound for BoundStructs<'_, W> {
    fn run(&mut self) -> Result<(), Error> {
        self.executor.run_many(self.inputs, &mut self.outputs).map_err(model_error_of::<W>)
    }

    fn outputs(&self) -> Columns {
        let mut outputs = Columns::new(W::OUTPUT_KINDS, self.outputs.len());
        for (row, answer) in self.outputs.iter().enumerate() {
            outputs.set_row(row, &answer.values());
        }
        outputs
    }
}
