//! `cembra explain` of a model that cuts tensors into tiles: the steps of its evaluation, with the number of tiles and tile products of each step.
//! The steps are planned from the input files, or from the extents and the number of tiles of each input. No tile is computed.

use super::eval_arguments::{ArrayFile, TileArgs};
use super::explain_tensors::{InputExtents, check_rank, given, header};
use super::{eval_tensors, eval_tiles, print, print_json};
use crate::arguments::{Assignment, Report};
use crate::deadline::Deadline;
use crate::failure::{Failure, usage};
use crate::inputs::check_among;
use crate::source::ModelText;
use cembra::program::{AxisCut, Sources};
use cembra::tiles::{Step, StepKind, TensorInformation, TileExecutor, Tiled, Tiling1, World};
use cembra::{Executor, Field, QType, Tensor};
use cembra_table::Spelling;
use serde_json::{Value, json};
use std::collections::BTreeMap;

const NAME: &str = "explain";

/// Options for planning a model in tiles, besides the extents of its inputs.
#[derive(clap::Args, Debug)]
pub(super) struct PlanArgs {
    /// Plan a model in tiles for the tensor of a file, `--input a=a.npy`, or of a checkpoint, `a=DIRECTORY` or
    /// `a=DIRECTORY:b`; may be given several times
    #[arg(long, value_name = "NAME=FILE", value_parser = ArrayFile::parse)]
    input: Vec<ArrayFile>,

    /// Plan a model in tiles as if about this fraction of an input's tiles were present: `--fill a=0.1`; may be given several times
    #[arg(long, value_name = "NAME=PART", value_parser = Fill::parse)]
    fill: Vec<Fill>,

    /// A value for an input of a model in tiles that is not a tensor: `-s by=0.5`; without one, the value is unknown, and an optional
    /// value is missing
    #[arg(short = 's', long = "set", value_name = "NAME=VALUE", value_parser = Assignment::parse)]
    set: Vec<Assignment>,

    #[command(flatten)]
    tiles: TileArgs,
}

/// The fraction of an input's tiles that are present, from 0 to 1, as the command line gives it: `a=0.1`.
#[derive(Clone, Debug)]
struct Fill {
    name: String,
    part: f64,
}

impl Fill {
    fn parse(argument: &str) -> Result<Fill, String> {
        let read = argument.split_once('=').and_then(|(name, part)| {
            let part = part.trim().parse().ok().filter(|part| (0.0..=1.0).contains(part))?;
            (!name.trim().is_empty()).then(|| Fill { name: name.trim().to_owned(), part })
        });
        read.ok_or_else(|| "expected a name and a fraction from 0 to 1, as in `a=0.1`".to_owned())
    }
}

impl PlanArgs {
    /// Returns an error if an option about tiles is given although the command shows no tiles. `why` is the reason, for the message.
    pub(super) fn refuse(&self, why: &str) -> Result<(), Failure> {
        let given =
            [("--input", !self.input.is_empty()), ("--fill", !self.fill.is_empty()), ("-s", !self.set.is_empty())];
        let given = given.into_iter().find(|(_, is_given)| *is_given).map(|(option, _)| option);
        match given.or_else(|| self.tiles.given()) {
            Some(option) => Err(usage(NAME, format!("leave `{option}` out: it applies to a plan in tiles, but {why}"))),
            None => Ok(()),
        }
    }
}

/// The information about an input from which a plan is made: its value, or only its extents.
enum Input<'i> {
    /// The input is this tensor: the array of a file, or a number of the command line as a tensor without axes.
    Tensor(Tensor),
    /// The input has this value, which is not a tensor.
    Other(cembra::Value),
    /// The input is this tensor, whose tiles are stored in a checkpoint (a directory of tiles).
    Stored(&'i Tiled),
    /// Only the extents of the input are known.
    Extents(Vec<usize>),
}

impl Input<'_> {
    fn extents(&self) -> Vec<usize> {
        match self {
            Input::Tensor(tensor) => tensor.extents().to_vec(),
            Input::Other(_) => Vec::new(),
            Input::Stored(tiled) => tiled.tiling().extents().to_vec(),
            Input::Extents(extents) => extents.clone(),
        }
    }
}

/// The information about the inputs of a model, by the names of the inputs.
type Inputs<'i> = BTreeMap<&'i str, Input<'i>>;

/// Shows the steps of a model with tensors in tiles.
pub(super) fn run(
    args: &PlanArgs,
    text: &ModelText,
    model: &Executor,
    extents: &[InputExtents],
    format: Report,
) -> Result<(), Failure> {
    let stored = eval_tiles::stored(model, &args.input).map_err(|error| text.blame(&error))?;
    let mut inputs = Inputs::new();
    let most_bytes = text.limits().array_bytes;
    for file in &args.input {
        let field = input(model, &file.name, "--input")?;
        let known = match stored.get(&file.name) {
            Some(tiled) => Input::Stored(tiled),
            None => Input::Tensor(eval_tensors::array_of(file, field, most_bytes, most_bytes)?),
        };
        insert(&mut inputs, field, known)?;
    }
    for constant in &args.set {
        let field = input(model, &constant.name, "-s")?;
        let known = match eval_tensors::value_of(constant, field, &Spelling::default(), NAME)? {
            Some(value) => Input::Other(value),
            None => Input::Tensor(eval_tensors::number_of(constant, field, NAME)?),
        };
        insert(&mut inputs, field, known)?;
    }
    let names = model.inputs().iter().map(|field| &*field.name).chain(model.inputs().iter().flat_map(labels_of));
    let extents = given(extents, "input or label", names)?;
    for field in model.inputs() {
        if let Some(own) = extents.get(&*field.name) {
            check_rank(field, own.len())?;
            insert(&mut inputs, field, Input::Extents(own.to_vec()))?;
        }
    }
    let labels = extents_of_labels(text, model, &extents, &inputs)?;
    for field in model.inputs() {
        if !inputs.contains_key(&*field.name) && matches!(field.qtype, QType::Tensor(..) | QType::Scalar(_)) {
            inputs.insert(&field.name, Input::Extents(extents_by_labels(field, &labels)?));
        }
    }
    let fills = fills(model, &args.fill, &inputs)?;
    let known = inputs.iter().zip(0..).map(|((name, input), seed)| {
        let known: TensorInformation<'_> = match (input, fills.get(name)) {
            (Input::Tensor(tensor), _) => tensor.into(),
            (Input::Other(value), _) => TensorInformation::Operand(value.into()),
            (Input::Stored(tiled), _) => (*tiled).into(),
            (Input::Extents(extents), Some(part)) => TensorInformation::Part { extents, part: *part, seed },
            (Input::Extents(extents), None) => TensorInformation::Extents(extents),
        };
        (*name, known)
    });
    let deadline = Deadline::start(Some(text.limits().compile_time));
    let run = args.tiles.run_options().cancellation(deadline.token().clone());
    let session = model.tiled(&World::alone(), args.tiles.options()).map_err(|error| text.blame(&error))?;
    let steps = session.run_options(&run).plan(known).map_err(|error| text.blame(&error))?;
    match format {
        Report::Json => print_json(&to_json(&steps, text.sources())),
        Report::Text => {
            let extents = |field: &Field| inputs.get(&*field.name).map(Input::extents).unwrap_or_default();
            let note = if args.tiles.threshold == Some(0.0) { "" } else { AT_MOST };
            let (header, table) = (header(model, extents), eval_tiles::table(&steps, text.sources()));
            print(&format!("{header}\n{table}\nat most {} bytes at once\n{note}", peak_bytes(&steps)))
        }
    }
}

/// The note under the table for a plan that may leave small tiles out.
const AT_MOST: &str =
    "An evaluation computes at most this many tiles and products: the plan only estimates the norms of results.\n";

/// The input `name`, which the option `option` gives.
fn input<'m>(model: &'m Executor, name: &str, option: &str) -> Result<&'m Field, Failure> {
    check_among(name, "input", model.inputs().iter().map(|field| &*field.name), option, NAME)?;
    let found = model.inputs().iter().find(|field| *field.name == *name);
    found.ok_or_else(|| usage(NAME, format!("`{option}`: the model has no input `{name}`")))
}

fn insert<'i>(inputs: &mut Inputs<'i>, field: &'i Field, known: Input<'i>) -> Result<(), Failure> {
    match inputs.insert(&field.name, known) {
        None => Ok(()),
        Some(_) => Err(usage(NAME, format!("input `{}` is given twice", field.name))),
    }
}

/// Returns the fractions of present tiles that `--fill` gives, by the name of the input. Only the extents of such an input may be known, not its
/// tensor.
fn fills<'m>(model: &'m Executor, given: &[Fill], inputs: &Inputs<'_>) -> Result<BTreeMap<&'m str, f64>, Failure> {
    let mut fills: BTreeMap<&str, f64> = BTreeMap::new();
    for Fill { name, part } in given {
        let field = input(model, name, "--fill")?;
        if !matches!(inputs.get(&**name), Some(Input::Extents(_))) {
            return Err(usage(
                NAME,
                format!("leave `--fill` out for input `{name}`: its tiles are known from its file or value"),
            ));
        }
        if fills.insert(&field.name, *part).is_some() {
            return Err(usage(NAME, format!("`--fill` gives `{name}` twice")));
        }
    }
    Ok(fills)
}

/// The labels of an input's axes; empty if it has none.
fn labels_of(field: &Field) -> impl Iterator<Item = &str> + Clone {
    field.labels.as_deref().unwrap_or_default().split(',').filter(|label| !label.is_empty())
}

/// The extents of labels: those given, those of labels whose tile boundaries the model gives, and those of inputs.
fn extents_of_labels<'l>(
    text: &ModelText,
    model: &'l Executor,
    given: &BTreeMap<&str, &[usize]>,
    inputs: &Inputs<'_>,
) -> Result<BTreeMap<&'l str, usize>, Failure> {
    let mut known = BTreeMap::new();
    for (label, cut) in model.cuts() {
        if let AxisCut::Boundaries(boundaries) = cut {
            let tiling = Tiling1::new(boundaries.iter().copied()).map_err(|error| text.blame(&error))?;
            known.insert(label, tiling.extent());
        }
    }
    // A name of both an input and a label means the input.
    let is_input = |name: &str| model.inputs().iter().any(|field| *field.name == *name);
    for label in model.inputs().iter().flat_map(labels_of).filter(|label| !is_input(label)) {
        match given.get(label) {
            Some([extent]) => {
                known.insert(label, *extent);
            }
            Some(extents) => {
                let message =
                    format!("`--extents` gives the label `{label}` {} axes, but a label must have one", extents.len());
                return Err(usage(NAME, message));
            }
            None => {}
        }
    }
    for field in model.inputs() {
        let own = inputs.get(&*field.name).map(Input::extents).unwrap_or_default();
        for (label, extent) in labels_of(field).zip(own) {
            known.entry(label).or_insert(extent);
        }
    }
    Ok(known)
}

/// The extents of an input that is known only by its labels; empty for a number.
fn extents_by_labels(field: &Field, known: &BTreeMap<&str, usize>) -> Result<Vec<usize>, Failure> {
    let name = &field.name;
    if !matches!(field.qtype, QType::Tensor(_, 1..)) {
        return Ok(Vec::new());
    }
    if field.labels.is_none() {
        let message =
            format!("there are no extents for the input `{name}` ({}): write `--extents {name}=NxM`", field.qtype);
        return Err(usage(NAME, message));
    }
    let extent = |label| match known.get(label) {
        Some(extent) => Ok(*extent),
        None => {
            let message =
                format!("there is no extent for the label `{label}` of input `{name}`: write `--extents {label}=N`");
            Err(usage(
                NAME,
                format!("{message}, or `--input {name}=FILE`; `--stage tensors` shows the plan without tiles"),
            ))
        }
    };
    labels_of(field).map(extent).collect()
}

/// Returns the most bytes that a step needs: those of its result, and of the other results that are in memory during the step.
fn peak_bytes(steps: &[Step]) -> usize {
    steps.iter().map(|step| step.bytes.saturating_add(step.held_bytes)).max().unwrap_or(0)
}

fn to_json(steps: &[Step], sources: &Sources) -> Value {
    let step = |step: &Step| {
        let mut made = json!({
            "work": eval_tiles::work(step),
            "text": step.span.map(|span| sources.text_at(span)),
            "tiles": step.tiles,
            "tiles_of_all": step.of,
            "bytes": step.bytes,
            "held_bytes": step.held_bytes,
            "tasks": step.tasks,
        });
        if let StepKind::Product { products, of, operations } = step.work {
            made["products"] = products.into();
            made["products_of_all"] = of.into();
            made["operations"] = operations.into();
        }
        made
    };
    json!({ "steps": steps.iter().map(step).collect::<Vec<Value>>(), "peak_bytes": peak_bytes(steps) })
}
