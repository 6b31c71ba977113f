//! `cembra check`: says what a model takes and gives, or what is wrong with it.

use super::{options_with_types, print, print_json, tell_json};
use crate::arguments::{ModelArgs, Report};
use crate::failure::Failure;
use cembra::{Field, Signature};
use serde::Serialize;

const NAME: &str = "check";

/// Prints the inputs and outputs of a model with their types, or what is wrong with it
#[derive(clap::Args, Debug)]
#[command(override_usage = "cembra check [OPTIONS] <MODEL>\n       cembra check [OPTIONS] -e <EXPR>")]
pub(crate) struct Args {
    #[command(flatten)]
    model: ModelArgs,

    /// The form of the answer; as JSON, problems are on standard output too
    #[arg(long, value_enum, default_value_t)]
    format: Report,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let found = signature(args);
    match args.format {
        Report::Text => print(&to_text(&found?)),
        Report::Json => print_json(&to_json(&found.map_err(tell_json)?)),
    }
}

fn signature(args: &Args) -> Result<Signature, Failure> {
    let text = args.model.load(NAME)?;
    let model = text.parse()?;
    let options = options_with_types(&text, &model, &args.model, NAME)?;
    model.signature(&options).map_err(|error| text.blame(&error))
}

fn to_text(signature: &Signature) -> String {
    let line = |kind: &str, field: &Field| format!("{kind} {}: {}\n", field.name, field.spelled_type());
    let inputs = signature.inputs.iter().map(|field| line("input", field));
    inputs.chain(signature.outputs.iter().map(|field| line("output", field))).collect()
}

/// The answer for programs. The keys are written in this order.
#[derive(Serialize)]
struct Told<'a> {
    inputs: Vec<FieldTold<'a>>,
    outputs: Vec<FieldTold<'a>>,
}

#[derive(Serialize)]
struct FieldTold<'a> {
    name: &'a str,
    #[serde(rename = "type")]
    qtype: String,
}

fn to_json(signature: &Signature) -> Told<'_> {
    Told { inputs: told(&signature.inputs), outputs: told(&signature.outputs) }
}

fn told(fields: &[Field]) -> Vec<FieldTold<'_>> {
    fields.iter().map(|field| FieldTold { name: &field.name, qtype: field.spelled_type() }).collect()
}
