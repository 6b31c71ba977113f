//! `cembra eval` of a model whose text cuts tensors into tiles: input arrays are cut into tiles, small tiles are left out, and the tiles of outputs
//! are assembled. Arrays are read, and results are written, as in `eval_tensors`.

use super::eval_arguments::{ArrayFile, NAME, RankArgs, TileArgs};
use crate::failure::{Failure, usage};
use crate::ranks;
use cembra::program::Sources;
use cembra::tensor::TensorErrorKind;
use cembra::tiles::link::Launch;
use cembra::tiles::{
    Checkpoint, Journal, Operand, Options, Progress, Run, Screening, Step, StepKind, TileMap, Tiled, TiledValue,
    Tiling, Tiling1, World,
};
use cembra::{Error, Executor, Limits, QType, RunOptions, Tensor, Value};
use cembra_runtime::Excerpt;
use comfy_table::{CellAlignment, Table, presets};
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::Arc;

impl TileArgs {
    /// The name of the first option about tiles that is given; `None` if no such option is given.
    pub(super) fn given(&self) -> Option<&'static str> {
        let given = [("--threshold", self.threshold.is_some()), ("--most-bytes", self.most_bytes.is_some())];
        given.iter().find(|(_, is_given)| *is_given).map(|(option, _)| *option)
    }

    /// Returns an error if an option about tiles is given for a model without tiles.
    pub(super) fn check(&self, is_tiled: bool) -> Result<(), Failure> {
        match self.given() {
            Some(option) if !is_tiled => {
                let message =
                    format!("leave `{option}` out: it applies to tiles, but the model does not cut tensors into tiles");
                Err(usage(
                    NAME,
                    format!("{message}; write `tile i = 64` and an input of type `tiled[f64, \"i,j\"]` to cut tensors"),
                ))
            }
            _ => Ok(()),
        }
    }

    /// The options for evaluation in tiles.
    pub(super) fn options(&self) -> Options {
        self.threshold.into_iter().fold(Options::default(), Options::threshold)
    }

    /// The options for one evaluation in tiles, with its memory limit.
    pub(super) fn run_options(&self) -> RunOptions {
        let limits = |most: usize| Limits::default().array_bytes(most as u64);
        self.most_bytes.map(limits).into_iter().fold(RunOptions::new(), RunOptions::limits)
    }
}

impl RankArgs {
    /// Returns an error if options about ranks or checkpoints do not apply to the model, or conflict with an MPI launcher.
    pub(super) fn check(&self, is_tiled: bool, writes_checkpoint: bool) -> Result<(), Failure> {
        let given =
            [("--ranks", self.ranks.is_some()), ("--any-processor", self.any_processor), ("--resume", self.resume)];
        if let Some((option, _)) = given.iter().find(|(_, is_given)| *is_given && !is_tiled) {
            return Err(usage(
                NAME,
                format!("leave `{option}` out: it applies to tiles, but the model does not cut tensors into tiles"),
            ));
        }
        if self.resume && !writes_checkpoint {
            return Err(usage(NAME, "`--resume` must be used with a checkpoint: `-o DIRECTORY.tiles`"));
        }
        match Launch::of(|name| std::env::var(name).ok()) {
            Ok(Some(launch)) if self.ranks.is_some() && launch.size != Some(1) => {
                Err(usage(NAME, "leave `--ranks` out: a launcher of MPI started this process as a rank already"))
            }
            _ => Ok(()),
        }
    }
}

/// The tensor in a checkpoint that identifies its run. No output can have this name.
const RUN: &str = "#run";

/// An evaluation in tiles: the model, the values of its inputs, the options, and the journal of its steps.
pub(super) struct Task {
    pub(super) model: Executor,
    /// The text of the model, and the texts of the files that it uses.
    pub(super) text: Box<str>,
    pub(super) options: cembra::Options,
    pub(super) tiles: TileArgs,
    pub(super) ranks: RankArgs,
    /// The number of threads that each rank computes with.
    pub(super) threads: usize,
    /// The values of those inputs that are not in `stored`, in the order of the inputs.
    pub(super) values: Vec<Value>,
    pub(super) stored: Stored,
    pub(super) journal: Journal,
    /// The directory of the checkpoint (tensors stored tile by tile) that the outputs are written to; `None` if the outputs are returned instead.
    /// The next field, `only`, has the names of the requested outputs; empty for all.
    pub(super) directory: Option<PathBuf>,
    pub(super) only: Vec<String>,
}

/// The outputs of the model by name, on rank 0. Empty on other ranks, and if the outputs were written to a checkpoint.
pub(super) type Outputs = Vec<(Arc<str>, TiledValue)>;

impl Task {
    /// Evaluates the model on all ranks. An error that occurs on all ranks is returned on rank 0 only; on any other rank the error is `None`.
    pub(super) fn run(&self) -> Result<Outputs, Option<Error>> {
        let Some(ranks) = self.ranks.ranks else {
            let world = ranks::join()?;
            let (made, is_first) = (self.on(&world, None), world.rank() == 0);
            drop(world);
            ranks::leave();
            return made.map_err(|error| if is_first || error.code() == "link" { Some(error) } else { None });
        };
        // Threads share the tiles of the inputs.
        let session = self.evaluator(&World::alone()).tiled(&self.model);
        let inputs = session.cut_inputs(self.operands()).map_err(Some)?;
        let made = World::on_threads(ranks.get(), |world| self.on(&world, Some(&inputs)));
        // If a rank ends early, the others have an error of the link. The error of that rank gives the reason.
        let is_first = |made: &Result<Outputs, Error>| {
            made.as_ref().is_err_and(|error| error.tensor_kind() != Some(TensorErrorKind::Link))
        };
        let first = made.iter().position(is_first).unwrap_or(0);
        made.into_iter().nth(first).unwrap_or_else(|| Ok(Outputs::new())).map_err(Some)
    }

    fn evaluator(&self, world: &World) -> Run {
        let world = if self.ranks.any_processor { world.clone().any_processor() } else { world.clone() };
        let run = self.tiles.run_options().threads(self.threads);
        world.evaluator_with(self.tiles.options(), &self.options).run_options(&run)
    }

    /// The values for all inputs, by name.
    fn operands(&self) -> impl Iterator<Item = (&str, Operand<'_>)> {
        let names =
            self.model.inputs().iter().map(|field| &*field.name).filter(|name| !self.stored.contains_key(*name));
        let values = names.zip(self.values.iter().map(Operand::Value));
        values.chain(self.stored.iter().map(|(name, tiled)| (&**name, Operand::Tiled(tiled))))
    }

    /// Evaluates the model as one rank of `world`. `inputs` has the inputs that are cut into tiles already; the remaining inputs are cut here.
    fn on(&self, world: &World, inputs: Option<&BTreeMap<String, Tiled>>) -> Result<Outputs, Error> {
        let run = self.evaluator(world);
        // All ranks take the same steps, so the journal of one is enough.
        let run = if world.rank() == 0 { run.journal(self.journal.clone()) } else { run };
        // Other ranks wait for the first step, and are told that this rank does not take it.
        let give_up = |error| run.evaluator().give_up(error);
        let inputs = self.operands().map(|(name, own)| match inputs.and_then(|inputs| inputs.get(name)) {
            Some(cut) => (name, Operand::Tiled(cut)),
            None => (name, own),
        });
        let this_run = self.this_run().map_err(give_up)?;
        let known = self.known(&this_run, world.rank() == 0).map_err(give_up)?;
        let keep = |made: &BTreeMap<String, Tiled>| match (&self.directory, self.ranks.resume) {
            (Some(directory), true) => {
                let outputs = made.iter().map(|(name, tiled)| (&**name, tiled));
                run.evaluator().checkpoint(directory, outputs.chain([(RUN, &this_run)]))
            }
            _ => Ok(()),
        };
        let mut made = run.tiled(&self.model).evaluate_from(inputs, known, keep)?;
        let is_wanted = |name: &str| self.only.is_empty() || self.only.iter().any(|only| *only == *name);
        if let Some(directory) = &self.directory {
            // Resumed outputs are in the checkpoint already, except for numbers that are computed beside tensors.
            let is_done = self.ranks.resume && made.values().all(|value| matches!(value, TiledValue::Tiled(_)));
            if !is_done {
                let is_kept = |value: &TiledValue| self.ranks.resume && matches!(value, TiledValue::Tiled(_));
                let wanted = made.into_iter().filter(|(name, value)| is_wanted(name) || is_kept(value));
                let wanted = wanted.map(|(name, value)| Ok((name, value.into_tiled()?)));
                let wanted: Vec<(String, Tiled)> = wanted.collect::<Result<_, Error>>()?;
                let of_run = self.ranks.resume.then_some((RUN, &this_run));
                let wanted = wanted.iter().map(|(name, tiled)| (&**name, tiled));
                run.evaluator().checkpoint(directory, wanted.chain(of_run))?;
            }
            return Ok(Outputs::new());
        }
        // Only rank 0 needs the tiles of outputs.
        let to_first = TileMap::by(|_| 0);
        let mut outputs = Outputs::new();
        for field in self.model.outputs() {
            let Some(made) = made.remove(&*field.name) else { continue };
            let made = match made {
                TiledValue::Tiled(tiled) => TiledValue::Tiled(run.evaluator().distributed(&tiled, &to_first)?),
                TiledValue::Value(value) => TiledValue::Value(value),
            };
            outputs.push((field.name.clone(), made));
        }
        Ok(if world.rank() == 0 { outputs } else { Outputs::new() })
    }

    /// The fingerprint of this run, which differs for other texts, inputs and thresholds: a 64-bit hash as four numbers of 16 bits.
    fn this_run(&self) -> Result<Tiled, Error> {
        let mut hasher = DefaultHasher::new();
        self.text.hash(&mut hasher);
        self.tiles.threshold.map(f64::to_bits).hash(&mut hasher);
        for value in self.values.iter().filter(|_| self.ranks.resume) {
            match value {
                Value::Tensor(tensor) => {
                    tensor.extents().hash(&mut hasher);
                    tensor.positions().for_each(|at| tensor.data().bits(at).hash(&mut hasher));
                }
                other => other.to_string().hash(&mut hasher),
            }
        }
        for (name, tiled) in &self.stored {
            name.hash(&mut hasher);
            tiled.shape().iter().for_each(|(tile, norm)| (tile, norm.to_bits()).hash(&mut hasher));
        }
        let hash = hasher.finish();
        let numbers = [0, 16, 32, 48].map(|shift| f64::from((hash >> shift) as u16));
        let tiling = Tiling::new([Tiling1::blocked(4, 4)?])?;
        Tiled::from_tensor(&Tensor::new(&[4], numbers.to_vec())?, &tiling, &Screening::threshold(0.0))
    }

    /// The outputs that the checkpoint already has, if the run resumes another one. With `are_checked`, all of their tiles are read once,
    /// because no step reads them.
    fn known(&self, this_run: &Tiled, are_checked: bool) -> Result<BTreeMap<String, Tiled>, Error> {
        let Some(directory) = self.directory.as_ref().filter(|_| self.ranks.resume) else { return Ok(BTreeMap::new()) };
        if !Checkpoint::is_in(directory) {
            return Ok(BTreeMap::new());
        }
        let checkpoint = Checkpoint::open(directory)?;
        if !checkpoint.names().any(|name| name == RUN) || checkpoint.read(RUN)?.to_tensor()? != this_run.to_tensor()? {
            let message = format!(
                "{}: the checkpoint belongs to another model, other inputs or another threshold",
                directory.display()
            );
            let error = Error::tensors(TensorErrorKind::File, message);
            return Err(error.hint("use another directory, or leave `--resume` out to overwrite this one"));
        }
        let is_output = |name: &&str| self.model.outputs().iter().any(|field| *field.name == **name);
        let known = checkpoint.names().filter(is_output).map(|name| Ok((name.to_owned(), checkpoint.lazy(name)?)));
        let known: BTreeMap<String, Tiled> = known.collect::<Result<_, Error>>()?;
        for tiled in known.values().filter(|_| are_checked) {
            tiled.tiles().try_for_each(|read| read.map(drop))?;
        }
        Ok(known)
    }
}

/// The input tensors that are read from checkpoints, by the name of the input.
pub(super) type Stored = BTreeMap<String, Tiled>;

/// Opens the tensors of those `files` that are checkpoints (directories of tiles). Tiles are read only when they are needed.
pub(super) fn stored(model: &Executor, files: &[ArrayFile]) -> Result<Stored, Error> {
    let files = files.iter().filter(|_| model.is_tiled()).filter_map(|file| Some((file, file.in_checkpoint()?)));
    let stored = |(file, (directory, tensor)): (&ArrayFile, (&Path, &str))| {
        let checkpoint = Checkpoint::open(directory)?;
        let lazy = checkpoint.lazy(tensor).map_err(|error| match checkpoint.names().next() {
            Some(other) if checkpoint.names().all(|name| name != tensor) => {
                let names: Vec<String> =
                    checkpoint.names().take(8).map(|name| Excerpt::quoted(name).to_string()).collect();
                let names = names.join("`, `");
                let directory = directory.display();
                error.hint(format!(
                    "use `--input {}={directory}:{other}` for another tensor: the checkpoint has `{names}`",
                    file.name
                ))
            }
            _ => error,
        });
        Ok((file.name.clone(), lazy?))
    };
    files.map(stored).collect()
}

/// The progress of an evaluation, as text for the progress bar.
pub(super) fn shown(progress: Progress) -> String {
    let Progress { step, steps, done, of, .. } = progress;
    match (step, of) {
        (0, _) => "cutting tensors into tiles".to_owned(),
        (_, 0) => format!("step {step} of {steps}"),
        _ => format!("step {step} of {steps}, {} %", done.saturating_mul(100) / of),
    }
}

/// Converts the outputs to dense values.
pub(super) fn values(made: Outputs) -> Result<Vec<Value>, Error> {
    made.into_iter().map(|(_, value)| value.to_value()).collect()
}

/// Returns an error if an output cannot be written to a checkpoint because it is not a tensor. `only` has the names of the requested
/// outputs; empty for all.
pub(super) fn check_outputs(model: &Executor, only: &[String]) -> Result<(), Failure> {
    let is_wanted = |name: &str| only.is_empty() || only.iter().any(|only| *only == *name);
    let is_held = |qtype: &QType| match qtype {
        QType::Tensor(..) => true,
        // A number is a tensor without axes.
        QType::Scalar(scalar) => scalar.is_float(),
        _ => false,
    };
    match model.outputs().iter().find(|field| is_wanted(&field.name) && !is_held(&field.qtype)) {
        Some(field) => {
            let message =
                format!("output `{}` is {}, which a checkpoint cannot hold", field.name, field.spelled_type());
            Err(usage(NAME, format!("{message}: choose tensors with `--only`, or write `.json`")))
        }
        None => Ok(()),
    }
}

/// Formats the steps of an evaluation or a plan as a table, one step per line. The columns are the step's text, the number of tiles of its result,
/// its number of products of tiles, its operations, its bytes, the bytes of other results that are in memory during the step, and its tasks. The two
/// columns `of` have the most tiles and the most products that are possible.
pub(super) fn table(steps: &[Step], sources: &Sources) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(["step", "tiles", "of", "products", "of", "flops", "bytes", "held", "tasks"]);
    for step in steps {
        let what = work(step);
        let text = step.span.map_or("", |span| sources.text_at(span));
        let name = if text.is_empty() { what.to_owned() } else { format!("{what} {}", Excerpt::quoted(text)) };
        let (products, of, operations) = match step.work {
            StepKind::Product { products, of, operations } => (products.to_string(), number(of), number(operations)),
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

/// The kind of `step`, in one word.
pub(super) const fn work(step: &Step) -> &'static str {
    match step.work {
        StepKind::Product { .. } => "product",
        StepKind::Elements => "elements",
        StepKind::Reduction => "reduction",
        StepKind::Part => "part",
        _ => "view",
    }
}

/// Formats a count; one from a million on as `1.23e9`.
fn number(count: f64) -> String {
    if count < 1e6 { count.to_string() } else { format!("{count:.2e}") }
}
