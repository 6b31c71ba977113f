//! `cembra explain` of a model with tensors: the steps by which it is evaluated. They depend on the extents of its inputs, which `--extents`
//! gives; other axes have 64 indices.

use super::{print, print_json};
use crate::arguments::Report;
use crate::failure::{Failure, usage};
use crate::inputs::check_among;
use crate::source::ModelText;
use cembra::tensor::LISTED_EXTENT;
use cembra::{Model, Options, QType};
use std::collections::BTreeMap;

const NAME: &str = "explain";

/// Extents of an input: `a=64x32`.
#[derive(Clone, Debug)]
pub(super) struct InputExtents {
    name: String,
    extents: Vec<usize>,
}

impl InputExtents {
    pub(super) fn parse(argument: &str) -> Result<InputExtents, String> {
        let read = argument.split_once('=').and_then(|(name, extents)| {
            let extents =
                extents.split('x').map(|extent| extent.trim().parse().ok()).collect::<Option<Vec<usize>>>()?;
            (!name.trim().is_empty()).then(|| InputExtents { name: name.trim().to_owned(), extents })
        });
        read.ok_or_else(|| "expected a name and extents, as in `a=64x32`".to_owned())
    }
}

/// Shows the steps of a model with tensors.
pub(super) fn run(
    text: &ModelText,
    model: &Model,
    options: &Options,
    extents: &[InputExtents],
    format: Report,
) -> Result<(), Failure> {
    let model = model.compile(options).map_err(|error| text.blame(&error))?;
    let mut given = BTreeMap::new();
    for one in extents {
        check_among(&one.name, "input", model.inputs().iter().map(|field| &*field.name), "--extents", NAME)?;
        given.insert(&*one.name, &one.extents);
    }
    let mut own = Vec::with_capacity(model.inputs().len());
    for field in model.inputs() {
        let rank = if let QType::Tensor(_, rank) = field.qtype { usize::from(rank) } else { 0 };
        own.push(match given.get(&*field.name) {
            Some(extents) if extents.len() != rank => {
                let message =
                    format!("`--extents` gives `{}` {} axes, and it is {}", field.name, extents.len(), field.qtype);
                return Err(usage(NAME, message));
            }
            Some(extents) => (*extents).clone(),
            None => vec![LISTED_EXTENT; rank],
        });
    }
    let extents: Vec<&[usize]> = own.iter().map(Vec::as_slice).collect();
    let plan = model.prepare_for(&extents).map_err(|error| text.blame(&error))?.to_string();
    match format {
        Report::Json => print_json(&BTreeMap::from([("plan", plan)])),
        Report::Text => {
            let mut shown = String::new();
            for (field, extents) in model.inputs().iter().zip(&own) {
                shown.push_str(&format!("input {}: {}", field.name, field.declaration()));
                shown.push_str(&if extents.is_empty() { "\n".to_owned() } else { format!(" of {extents:?}\n") });
            }
            for field in model.outputs() {
                shown.push_str(&format!("output {}: {}\n", field.name, field.qtype));
            }
            print(&format!("{shown}\n{plan}{}", if plan.ends_with('\n') { "" } else { "\n" }))
        }
    }
}
