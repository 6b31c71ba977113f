//! `cembra check`: prints the inputs and outputs of a model, or its errors and warnings.

use super::{options_with_types, print, print_json, tell_json};
use crate::arguments::{Assignment, DataOptions, ModelArgs, Report};
use crate::data_files::{DataFiles, Opening};
use crate::diagnose;
use crate::failure::{Failure, usage};
use crate::inputs::InputSources;
use crate::source::ModelText;
use cembra::errors::{Code, Diagnostic, Warnings};
use cembra::{Error, Field, Model, Options, Signature};
use cembra_value::dashed_code;
use clap::builder::{EnumValueParser, PossibleValue, TypedValueParser};
use clap::{Arg, Command, ValueEnum};
use serde::Serialize;
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::path::PathBuf;
use std::sync::LazyLock;

const NAME: &str = "check";

/// Prints the inputs and outputs of a model with their types, or what is wrong with it
///
/// With DATA, the types of undeclared inputs are inferred from the data, as in `cembra eval`, and printed with the rows that decided
/// them.
#[derive(clap::Args, Debug)]
#[command(
    override_usage = "cembra check [OPTIONS] <MODEL> [DATA]...\n       cembra check [OPTIONS] -e <EXPR> [DATA]..."
)]
pub(crate) struct Args {
    #[command(flatten)]
    model: ModelArgs,

    /// The files with the rows, all of one format; `-` is standard input, `'b*.csv'` all files with matching names
    #[arg(value_name = "DATA")]
    data: Vec<PathBuf>,

    /// A value for an input without a column in DATA: `-s x=1.5`, `-s 'name="Ann"'`
    #[arg(short = 's', long = "set", value_name = "NAME=VALUE", value_parser = Assignment::parse)]
    set: Vec<Assignment>,

    #[command(flatten)]
    data_options: DataOptions,

    /// The format of the answer; as JSON, problems are written to standard output too
    #[arg(long, value_enum, default_value_t)]
    format: Report,

    /// Silences a warning; may be given several times
    #[arg(short = 'A', long, value_parser = WhichParser, value_name = "WARNING")]
    allow: Vec<Which>,

    /// Makes a warning an error, or all of them with `warnings`; may be given several times
    #[arg(short = 'D', long, value_parser = WhichParser, value_name = "WARNING")]
    deny: Vec<Which>,
}

/// The argument of `--allow` and `--deny`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Which {
    /// Every warning is allowed or denied.
    All,
    /// The warnings with this code are allowed or denied.
    One(Code),
}

impl Which {
    fn codes(self) -> impl Iterator<Item = Code> {
        Code::WARNINGS.iter().copied().filter(move |code| self == Which::All || self == Which::One(*code))
    }
}

impl ValueEnum for Which {
    fn value_variants<'a>() -> &'a [Self] {
        static CHOICES: LazyLock<Vec<Which>> =
            LazyLock::new(|| Code::WARNINGS.iter().map(|code| Which::One(*code)).chain([Which::All]).collect());
        &CHOICES
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(match self {
            Which::All => "warnings",
            Which::One(code) => code.as_str(),
        }))
    }
}

/// A parser for codes that may be spelled with `-` or `_`. Messages use the canonical spelling.
#[derive(Clone)]
struct WhichParser;

impl TypedValueParser for WhichParser {
    type Value = Which;

    fn parse_ref(&self, command: &Command, option: Option<&Arg>, value: &OsStr) -> Result<Which, clap::Error> {
        let dashed = value.to_str().map(|value| OsString::from(dashed_code(value)));
        EnumValueParser::new().parse_ref(command, option, dashed.as_deref().unwrap_or(value))
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(Which::value_variants().iter().filter_map(Which::to_possible_value)))
    }
}

/// Runs `cembra check`.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let checked = check(args);
    match args.format {
        Report::Text => tell(checked?, args),
        Report::Json => {
            let Checked { text, signature, warnings: found, feed } = checked.map_err(tell_json)?;
            let warnings = diagnose::to_json(found.as_slice(), text.sources());
            let signature = match &signature {
                Ok(signature) => signature,
                Err(error) => {
                    let problems = text.advise(error);
                    let problems = diagnose::to_json(&problems, text.sources());
                    print_json(&Wrong { problems, warnings })?;
                    return Err(Failure::Reported);
                }
            };
            let (mut inputs, outputs) = (told(&signature.inputs), told(&signature.outputs));
            let mut decided = decided(feed.as_ref());
            inputs.iter_mut().for_each(|input| input.from = decided.remove(input.name));
            print_json(&CheckReport { inputs, outputs, warnings })?;
            let is_denied = found.as_slice().iter().any(|one| is_denied(one, args));
            if is_denied { Err(Failure::Reported) } else { Ok(()) }
        }
    }
}

/// The result of checking a model.
struct Checked {
    text: ModelText,
    signature: Result<Signature, Error>,
    warnings: Warnings,
    /// The inputs, with the types from the data; `None` without data.
    feed: Option<InputSources>,
}

/// Checks a model with the types of the command line and of the data.
fn check(args: &Args) -> Result<Checked, Failure> {
    let (text, paths) = args.model.load_with(&args.data, NAME)?;
    let model = text.parse()?;
    let mut options = options_with_types(&text, &model, &args.model, NAME)?;
    let feed = feed(args, &text, &model, &options, DataFiles::of(&paths)?)?;
    if let Some(feed) = &feed {
        options = feed.with_types(options);
    }
    for code in args.allow.iter().flat_map(|which| which.codes()) {
        options = options.allow(code);
    }
    let (signature, warnings) = model.check(&options);
    Ok(Checked { text, signature, warnings, feed })
}

/// The place in the data that decided an input's type, as text, by the name of the input.
fn decided(feed: Option<&InputSources>) -> HashMap<&str, String> {
    feed.iter().flat_map(|feed| feed.inferred()).map(|(inferred, from)| (&*inferred.name, from)).collect()
}

/// Opens the data and finds the types of the inputs; `None` without data.
fn feed(
    args: &Args,
    text: &ModelText,
    model: &Model,
    options: &Options,
    files: DataFiles,
) -> Result<Option<InputSources>, Failure> {
    let data_options = args.data_options.clone();
    let most_bytes = text.limits().array_bytes;
    let opening = Opening { options: data_options, most_bytes, tolerant: false, bar: None };
    let Some(dataset) = files.open(&opening)? else {
        args.data_options.check_origins(None, false, false, NAME)?;
        return match args.set.first() {
            Some(_) => Err(usage(
                NAME,
                "leave `-s` out: it gives values of inputs without a column in DATA, and there is no DATA",
            )),
            None => Ok(None),
        };
    };
    if model.has_tensors(options) {
        return Err(usage(NAME, "leave DATA out: the types of tensors cannot be inferred from data"));
    }
    InputSources::of_data((text, model), &args.model, &args.set, &args.data_options, dataset, NAME).map(Some)
}

fn is_denied(warning: &Diagnostic, args: &Args) -> bool {
    args.deny.iter().any(|which| which.codes().any(|code| code == warning.code()))
}

/// Prints the result as text: warnings and errors to standard error, inputs and outputs to standard output.
fn tell(checked: Checked, args: &Args) -> Result<(), Failure> {
    let Checked { text, signature, warnings, feed } = checked;
    let more = warnings.count() - warnings.as_slice().len();
    // With an error there is a failure anyway.
    let (denied, shown): (Vec<_>, Vec<_>) =
        warnings.as_slice().iter().cloned().partition(|warning| signature.is_ok() && is_denied(warning, args));
    if !shown.is_empty() {
        let shown = diagnose::render_warnings(&shown, more, text.sources(), diagnose::stderr_takes_colour());
        // If standard error is closed, the warnings are lost.
        let _ =
            writeln!(std::io::stderr(), "{shown}{}", if signature.is_ok() && denied.is_empty() { "" } else { "\n" });
    }
    match signature {
        Err(error) => {
            let failure = text.blame(&error);
            Err(feed.iter().fold(failure, |failure, feed| feed.explain_types(failure)))
        }
        Ok(_) if !denied.is_empty() => Err(Failure::Model { source: text, problems: denied, notes: Vec::new() }),
        Ok(signature) => print(&to_text(&signature, &decided(feed.as_ref()))),
    }
}

fn to_text(signature: &Signature, decided: &HashMap<&str, String>) -> String {
    let line = |kind: &str, field: &Field, from: Option<&String>| {
        let from = from.map(|from| format!("  # {from}")).unwrap_or_default();
        format!("{kind} {}: {}{from}\n", field.name, field.declaration())
    };
    let inputs = signature.inputs.iter().map(|field| line("input", field, decided.get(&*field.name)));
    inputs.chain(signature.outputs.iter().map(|field| line("output", field, None))).collect()
}

/// The report of `check` as JSON. The keys are written in this order.
#[derive(Serialize)]
struct CheckReport<'a> {
    inputs: Vec<FieldJson<'a>>,
    outputs: Vec<FieldJson<'a>>,
    warnings: Vec<diagnose::ProblemJson<'a>>,
}

/// The report as JSON for a model whose types do not fit.
#[derive(Serialize)]
struct Wrong<'a> {
    problems: Vec<diagnose::ProblemJson<'a>>,
    warnings: Vec<diagnose::ProblemJson<'a>>,
}

/// An input or output of a model, in the JSON that `cembra check` prints.
#[derive(Serialize)]
pub(super) struct FieldJson<'a> {
    name: &'a str,
    #[serde(rename = "type")]
    qtype: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    default: Option<String>,
    /// The place in the data that decided the type; `None` if the data did not decide it.
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<String>,
}

/// Returns inputs or outputs in the form for JSON.
pub(super) fn told(fields: &[Field]) -> Vec<FieldJson<'_>> {
    fields
        .iter()
        .map(|field| FieldJson {
            name: &field.name,
            qtype: field.spelled_type(),
            default: field.spelled_default(),
            from: None,
        })
        .collect()
}
