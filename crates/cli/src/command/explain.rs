//! `cembra explain`: shows the compilation of a model: a summary on one screen, or the result of each stage down to the machine code.

use super::explain_tensors::{self, InputExtents};
use super::explain_tiles::{self, PlanArgs};
use super::{options_with_types, overview, print, print_json, tell_json, write_file};
use crate::arguments::{ModelArgs, Report, WarningArgs};
use crate::failure::{Failure, usage};
use crate::source::ModelText;
use cembra::explain::Stage;
use cembra::{Error, Model, Options};
use cembra_page::{file_document, machine_listing};
use cembra_prepare::{PASSES, Pass};
use clap::ValueEnum;
use clap::builder::PossibleValue;
use serde::{Serialize, Serializer};
use std::path::{Path, PathBuf};

const NAME: &str = "explain";

/// The value of `--stage` for all stages.
const ALL: &str = "all";
const ALL_SUMMARY: &str = "all stages, one after the other";

/// Shows a summary of a compiled model, or with `--stage` the result of a stage
#[derive(clap::Args, Debug)]
#[command(override_usage = "cembra explain [OPTIONS] <MODEL>\n       cembra explain [OPTIONS] -e <EXPR>")]
pub(crate) struct Args {
    #[command(flatten)]
    model: ModelArgs,

    /// The stage to show; by default, a summary on one screen is shown
    #[arg(long, value_enum)]
    stage: Option<StageChoice>,

    /// The last pass of preparation to run; the stages up to it are shown
    #[arg(long, value_name = "PASS", value_parser = PASSES.iter().map(pass_value).collect::<Vec<_>>())]
    stop_after: Option<String>,

    /// The extents of the axes of a tensor, `a=64x32`, or of a label of a model in tiles, `i=1000`: the steps of a model with tensors
    /// depend on them; may be given several times
    #[arg(long, value_name = "NAME=NxM", value_parser = InputExtents::parse)]
    extents: Vec<InputExtents>,

    #[command(flatten)]
    plan: PlanArgs,

    /// The format of the answer; as JSON, an object with numbers, or with a text for each stage
    #[arg(long, value_enum, default_value_t)]
    format: Report,

    /// Write a page to this file that shows all stages with their lines linked, sample rows, tests and times; open it in a browser
    #[arg(long, value_name = "FILE", conflicts_with_all = ["stage", "stop_after", "extents", "format"])]
    html: Option<PathBuf>,

    /// Allow the rewrites that may change the sign of a zero, a NaN or a rounding
    #[arg(long)]
    compat: bool,

    #[command(flatten)]
    warnings: WarningArgs,
}

fn pass_value(pass: &Pass) -> PossibleValue {
    PossibleValue::new(pass.name).help(pass.summary)
}

/// The choice of a stage, or of all stages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum StageChoice {
    One(Stage),
    All,
}

impl ValueEnum for StageChoice {
    fn value_variants<'a>() -> &'a [Self] {
        const CHOICES: [StageChoice; Stage::ALL.len() + 1] = {
            let mut choices = [StageChoice::All; Stage::ALL.len() + 1];
            let mut at = 0;
            while at < Stage::ALL.len() {
                choices[at] = StageChoice::One(Stage::ALL[at]);
                at += 1;
            }
            choices
        };
        &CHOICES
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(match self {
            StageChoice::One(stage) => PossibleValue::new(stage.name()).help(stage.summary()),
            StageChoice::All => PossibleValue::new(ALL).help(ALL_SUMMARY),
        })
    }
}

/// Runs `cembra explain`.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let tell = |failure| if args.format == Report::Json { tell_json(failure) } else { failure };
    let text = args.model.load(NAME).map_err(tell)?;
    if let Some(path) = &args.html {
        args.plan.refuse("a page shows one that needs no data")?;
        return write_page(args, &text, path);
    }
    if args.stage.is_none_or(|stage| matches!(stage, StageChoice::One(Stage::Plan | Stage::Tensors))) {
        let model = text.parse().map_err(tell)?;
        let options = options_with_types(&text, &model, &args.model, NAME).map_err(tell)?;
        if model.has_tensors(&options) {
            explain_model_with_tensors(args, &text, &model, &options).map_err(tell)?;
            args.warnings.tell(&text, &model, &options);
            return Ok(());
        }
    }
    args.plan.refuse("the command does not show that plan here").map_err(tell)?;
    // A model whose preparation ends early has no plan, so its stages are shown.
    let stage = args.stage.or_else(|| args.stop_after.as_ref().map(|_| StageChoice::All));
    let Some(stage) = stage else { return overview(args, &text) };
    let shown = explain(args, &text, stage);
    match args.format {
        Report::Text => {
            let shown = shown?;
            let one = shown.len() == 1;
            let text: String = shown
                .iter()
                .map(|(stage, text)| if one { text.clone() } else { format!("== {} ==\n{text}\n", stage.name()) })
                .collect();
            print(&text)
        }
        Report::Json => {
            let stages = shown.map_err(tell_json)?;
            print_json(&StageTexts(stages))
        }
    }
}

/// Writes the page of a model. A text with errors has no page, because its errors are shown here.
fn write_page(args: &Args, text: &ModelText, path: &Path) -> Result<(), Failure> {
    let model = text.parse()?;
    let options = options_with_types(text, &model, &args.model, NAME)?.compat(args.compat);
    model.compile(&options).map_err(|error| text.blame(&error))?;
    let page = file_document(text.sources(), args.model.folder().as_deref(), &options, &text.limits());
    write_file(path, page.html.as_bytes(), "cannot write the page")?;
    args.warnings.tell(text, &model, &options);
    Ok(())
}

/// Explains a model with tensors: its steps in tiles if it cuts tensors, unless the stage of tensors is requested.
fn explain_model_with_tensors(args: &Args, text: &ModelText, model: &Model, options: &Options) -> Result<(), Failure> {
    let executor = model.compile(options).map_err(|error| text.blame(&error))?;
    match (executor.is_tiled(), args.stage) {
        (true, None) => explain_tiles::run(&args.plan, text, &executor, &args.extents, args.format),
        (is_tiled, _) => {
            args.plan.refuse(if is_tiled {
                "the steps of a stage do not show tiles"
            } else {
                "the model does not cut tensors into tiles"
            })?;
            explain_tensors::run(text, &executor, &args.extents, args.format)
        }
    }
}

/// Shows the summary of a model on one screen.
fn overview(args: &Args, text: &ModelText) -> Result<(), Failure> {
    let summary = || {
        let model = text.parse()?;
        let options = options_with_types(text, &model, &args.model, NAME)?.compat(args.compat);
        let summary = model.summary(&options).map_err(|error| text.blame(&error))?;
        args.warnings.tell(text, &model, &options);
        Ok(summary)
    };
    match args.format {
        Report::Text => print(&overview::to_text(&summary()?, ALL, ALL_SUMMARY)),
        Report::Json => print_json(&overview::to_json(&summary().map_err(tell_json)?)),
    }
}

/// The stages as JSON: an object with their texts, in order.
struct StageTexts(Vec<(Stage, String)>);

impl Serialize for StageTexts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(stage, text)| (stage.name(), text)))
    }
}

/// The requested stages, with their texts, each of which ends with a line end.
fn explain(args: &Args, text: &ModelText, stage: StageChoice) -> Result<Vec<(Stage, String)>, Failure> {
    let model = text.parse()?;
    let mut options = options_with_types(text, &model, &args.model, NAME)?.compat(args.compat);
    if let Some(pass) = &args.stop_after {
        options = options.stop_after(pass);
    }
    // A model whose preparation stops early may not be fit for later stages.
    let reached =
        |stage: Stage| args.stop_after.is_none() || matches!(stage, Stage::Expr | Stage::Passes | Stage::Prepared);
    let stages: Vec<Stage> = match stage {
        StageChoice::All => Stage::ALL.into_iter().filter(|stage| reached(*stage)).collect(),
        StageChoice::One(stage) if reached(stage) => vec![stage],
        StageChoice::One(stage) => {
            let message =
                format!("stage `{}` comes after the pass of `--stop-after`, so leave `--stop-after` out", stage.name());
            return Err(usage(NAME, message));
        }
    };
    let shown = stages.into_iter().map(|stage| Ok((stage, one(text, &model, &options, stage)?)));
    let shown = shown.collect::<Result<_, Failure>>()?;
    args.warnings.tell(text, &model, &options);
    Ok(shown)
}

/// The text that `cembra explain` shows for one stage of a model; it ends with a line end.
pub(crate) fn one(text: &ModelText, model: &Model, options: &Options, stage: Stage) -> Result<String, Failure> {
    let shown = match stage {
        Stage::Asm => machine_listing(model, options, text.sources()).map(|listing| listing.to_string()),
        _ => model.explain(options, stage),
    };
    let shown = shown.map_err(|error: Error| text.blame(&error))?;
    Ok(if shown.ends_with('\n') { shown } else { shown + "\n" })
}
