//! `cembra eval` of a model whose text cuts tensors into tiles: arrays are cut as it says, tiles that are small are left out, and the outputs
//! are put together again. Reading arrays and writing results is that of all models with tensors.

use super::eval_arguments::{ArrayFile, NAME, TileArgs};
use crate::failure::{Failure, usage};
use cembra::tiles::{Checkpoint, Journal, Operand, Options, Progress, Run, Step, Tiled, Work};
use cembra::{Error, Executor, Sources, Tensor, Value};
use cembra_runtime::Excerpt;
use comfy_table::{CellAlignment, Table, presets};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

impl TileArgs {
    /// The first option that is given.
    pub(super) fn given(&self) -> Option<&'static str> {
        let given = [("--threshold", self.threshold.is_some()), ("--most-bytes", self.most_bytes.is_some())];
        given.iter().find(|(_, is_given)| *is_given).map(|(option, _)| *option)
    }

    /// An error if something is said of tiles and the model has none.
    pub(super) fn check(&self, model: &Executor) -> Result<(), Failure> {
        match self.given() {
            Some(option) if !model.is_tiled() => {
                let message = format!("`{option}` is of tiles, and the model cuts no tensor into tiles");
                Err(usage(NAME, format!("{message}: it does by `tile i = 64` and inputs `tiled[f64, \"i,j\"]`")))
            }
            _ => Ok(()),
        }
    }

    /// The options of evaluations in tiles.
    pub(super) fn options(&self) -> Options {
        let mut options = Options::default();
        if let Some(threshold) = self.threshold {
            options = options.threshold(threshold);
        }
        if let Some(most) = self.most_bytes {
            options = options.most_bytes(most);
        }
        options
    }

    /// Evaluates a model on the values for its inputs that are not stored, and notes the steps.
    pub(super) fn evaluate(
        &self,
        model: &Executor,
        options: &cembra::Options,
        threads: usize,
        values: &[Value],
        stored: &Stored,
        journal: Journal,
    ) -> Result<Vec<(Arc<str>, Tiled)>, Error> {
        let tensor = |value: &Value| match value {
            Value::Tensor(tensor) => Ok(tensor.clone()),
            Value::Scalar(number) => Tensor::of_value(number).map(Arc::new),
            other => {
                Err(Error::values(format!("a value of type {} in a model that is evaluated in tiles", other.qtype())))
            }
        };
        let tensors = values.iter().map(tensor).collect::<Result<Vec<Arc<Tensor>>, Error>>()?;
        let names = model.inputs().iter().map(|field| &*field.name).filter(|name| !stored.contains_key(*name));
        let dense = names.zip(tensors.iter().map(|tensor| Operand::Dense(tensor)));
        let inputs = dense.chain(stored.iter().map(|(name, tiled)| (&**name, Operand::Tiled(tiled))));
        let mut made = Run::new(self.options().threads(threads), options).journal(journal).model(model, inputs)?;
        let mut output = |name: &Arc<str>| made.remove(&**name).map(|tiled| (name.clone(), tiled));
        Ok(model.outputs().iter().filter_map(|field| output(&field.name)).collect())
    }
}

/// Tensors of checkpoints, by the inputs that they are for.
pub(super) type Stored = BTreeMap<String, Tiled>;

/// The tensors of checkpoints, which are directories among the files for inputs. Their tiles are read when they are needed.
pub(super) fn stored(model: &Executor, files: &[ArrayFile]) -> Result<Stored, Error> {
    let directories = files.iter().filter(|file| model.is_tiled() && file.path.is_dir());
    let stored = |file: &ArrayFile| Ok((file.name.clone(), Checkpoint::open(&file.path)?.lazy(&file.name)?));
    directories.map(stored).collect()
}

/// How far an evaluation is, for a person.
pub(super) fn shown(progress: Progress) -> String {
    let Progress { step, steps, done, of, .. } = progress;
    match (step, of) {
        (0, _) => "cutting tensors into tiles".to_owned(),
        (_, 0) => format!("step {step} of {steps}"),
        _ => format!("step {step} of {steps}, {} %", done.saturating_mul(100) / of),
    }
}

/// The outputs as dense values.
pub(super) fn values(made: Vec<(Arc<str>, Tiled)>) -> Result<Vec<Value>, Error> {
    made.into_iter().map(|(_, tiled)| tiled.to_tensor().map(Value::from)).collect()
}

/// Writes a checkpoint of the outputs, or of some of them.
pub(super) fn write(directory: &Path, made: &[(Arc<str>, Tiled)], only: &[String]) -> Result<(), Error> {
    let is_wanted = |name: &str| only.is_empty() || only.iter().any(|only| *only == *name);
    let wanted = made.iter().filter(|(name, _)| is_wanted(name));
    Checkpoint::write(directory, wanted.map(|(name, tiled)| (&**name, tiled)))
}

/// The steps of an evaluation or a plan, a line for each: where it stands in the text, its tiles of all, its products of all, how much work that is, and
/// the memory that it took beside that of other steps.
pub(super) fn table(steps: &[Step], sources: &Sources) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(["step", "tiles", "of", "products", "of", "flops", "bytes", "held", "tasks"]);
    for step in steps {
        let what = work(step);
        let text = step.span.map_or("", |span| sources.text_at(span));
        let name = if text.is_empty() { what.to_owned() } else { format!("{what} {}", Excerpt::quoted(text)) };
        let (products, of, operations) = match step.work {
            Work::Product { products, of, operations } => (products.to_string(), number(of), number(operations)),
            _ => (String::new(), String::new(), String::new()),
        };
        table.add_row([
            name,
            step.tiles.to_string(),
            number(step.of),
            products,
            of,
            operations,
            step.bytes.to_string(),
            step.held_bytes.to_string(),
            step.tasks.to_string(),
        ]);
    }
    table.column_iter_mut().skip(1).for_each(|column| column.set_cell_alignment(CellAlignment::Right));
    table.lines().map(|line| line.trim_end().to_owned() + "\n").collect()
}

/// What a step does, in a word.
pub(super) const fn work(step: &Step) -> &'static str {
    match step.work {
        Work::Product { .. } => "product",
        Work::Elements => "elements",
        Work::Reduction => "reduction",
        Work::Part => "part",
        _ => "view",
    }
}

/// A count that may be beyond whole numbers, as long ones are read: `1.23e9`.
fn number(count: f64) -> String {
    if count < 1e6 { count.to_string() } else { format!("{count:.2e}") }
}
