//! `cembra eval` of a model whose text cuts tensors into tiles: arrays are cut as it says, tiles that are small are left out, and the outputs
//! are put together again. Reading arrays and writing results is that of all models with tensors.

use super::eval_arguments::NAME;
use crate::failure::{Failure, usage};
use cembra::tiles::{Journal, Operand, Options, Run, Step, Work};
use cembra::{Error, Executor, Sources, Tensor, Value};

use cembra_runtime::Excerpt;
use comfy_table::{CellAlignment, Table, presets};
use std::sync::Arc;

/// What is said of tiles on the command line.
#[derive(clap::Args, Clone, Debug)]
pub(super) struct TileArgs {
    /// Leave tiles out whose norm per element is below NUMBER, in a model that cuts tensors into tiles; by default the epsilon of their type
    #[arg(long, value_name = "NUMBER", value_parser = parse_threshold)]
    threshold: Option<f64>,

    /// End with an error before tiles take more memory: `4G`, `500M`, or a number of bytes
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    most_bytes: Option<usize>,
}

impl TileArgs {
    /// An error if something is said of tiles and the model has none.
    pub(super) fn check(&self, model: &Executor) -> Result<(), Failure> {
        let given = [("--threshold", self.threshold.is_some()), ("--most-bytes", self.most_bytes.is_some())];
        match given.iter().find(|(_, is_given)| *is_given) {
            Some((option, _)) if !model.is_tiled() => {
                let message = format!("`{option}` is of tiles, and the model cuts no tensor into tiles");
                Err(usage(NAME, format!("{message}: it does by `tile i = 64` and inputs `tiled[f64, \"i,j\"]`")))
            }
            _ => Ok(()),
        }
    }

    /// Evaluates a model on the values for its inputs, and notes the steps.
    pub(super) fn evaluate(
        &self,
        model: &Executor,
        options: &cembra::Options,
        threads: usize,
        values: &[Value],
        journal: Journal,
    ) -> Result<Vec<Value>, Error> {
        let mut of_tiles = Options::default().threads(threads);
        if let Some(threshold) = self.threshold {
            of_tiles = of_tiles.threshold(threshold);
        }
        if let Some(most) = self.most_bytes {
            of_tiles = of_tiles.most_bytes(most);
        }
        let tensor = |value: &Value| match value {
            Value::Tensor(tensor) => Ok(tensor.clone()),
            Value::Scalar(number) => Tensor::of_value(number).map(Arc::new),
            other => {
                Err(Error::values(format!("a value of type {} in a model that is evaluated in tiles", other.qtype())))
            }
        };
        let tensors = values.iter().map(tensor).collect::<Result<Vec<Arc<Tensor>>, Error>>()?;
        let names = model.inputs().iter().map(|field| &*field.name);
        let inputs = names.zip(tensors.iter().map(|tensor| Operand::Dense(tensor)));
        let mut made = Run::new(of_tiles, options).journal(journal).model(model, inputs)?;
        let mut output = |name: &str| made.remove(name).map(|tiled| tiled.to_tensor().map(Value::from));
        model.outputs().iter().filter_map(|field| output(&field.name)).collect()
    }
}

/// The steps of an evaluation, a line for each: where it stands in the text, its tiles of all, its products of all, how much work that was, and
/// the memory that it took beside that of other steps.
pub(super) fn table(steps: &[Step], sources: &Sources) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(["step", "tiles", "of", "products", "of", "flops", "bytes", "held", "tasks"]);
    for step in steps {
        let what = match step.work {
            Work::Product { .. } => "product",
            Work::Elements => "elements",
            Work::Reduction => "reduction",
            _ => "view",
        };
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

/// A count that may be beyond whole numbers, as long ones are read: `1.23e9`.
fn number(count: f64) -> String {
    if count < 1e6 { count.to_string() } else { format!("{count:.2e}") }
}

/// Reads a number from 0 on.
fn parse_threshold(argument: &str) -> Result<f64, String> {
    let threshold = argument.trim().parse::<f64>().ok().filter(|threshold| *threshold >= 0.0);
    threshold.ok_or_else(|| "expected a number from 0 on, as in `--threshold 1e-8`".to_owned())
}

/// Reads a number of bytes, in units of 1,024, of their squares, and so on.
fn parse_bytes(argument: &str) -> Result<usize, String> {
    const UNITS: &str = "KMGT";
    let text = argument.trim();
    let unit = text.chars().last().and_then(|last| UNITS.find(last.to_ascii_uppercase()));
    let (number, shift) = match unit {
        Some(unit) => (&text[..text.len() - 1], 10 * (unit + 1)),
        None => (text, 0),
    };
    let bytes =
        number.trim().parse::<usize>().ok().and_then(|number| number.checked_mul(1_usize.checked_shl(shift as u32)?));
    bytes.ok_or_else(|| "expected a number of bytes, as in `--most-bytes 4G`".to_owned())
}
