//! `cembra explain` of a model with tensors: the steps of its evaluation. The steps depend on the extents of the inputs, which `--extents`
//! gives; an axis without a given extent has 64 indices. `explain_tiles.rs` shows steps in tiles.

use super::{print, print_json};
use crate::arguments::Report;
use crate::failure::{Failure, usage};
use crate::inputs::check_among;
use crate::source::ModelText;
use cembra::tensor::LISTED_EXTENT;
use cembra::{Executor, Field, QType};
use std::collections::BTreeMap;

const NAME: &str = "explain";

/// The extents that the command line gives to an input: `a=64x32`.
#[derive(Clone, Debug)]
pub(super) struct InputExtents {
    name: String,
    extents: Vec<usize>,
}

impl InputExtents {
    /// Parses the command-line argument `name=NxM`.
    pub(super) fn parse(argument: &str) -> Result<InputExtents, String> {
        let read = argument.split_once('=').and_then(|(name, extents)| {
            let extents =
                extents.split('x').map(|extent| extent.trim().parse().ok()).collect::<Option<Vec<usize>>>()?;
            (!name.trim().is_empty()).then(|| InputExtents { name: name.trim().to_owned(), extents })
        });
        read.ok_or_else(|| "expected a name and extents, as in `a=64x32`".to_owned())
    }
}

/// Returns the extents of `--extents` by name. Each name must be one of `known`, and may occur once.
pub(super) fn given<'e>(
    extents: &'e [InputExtents],
    what: &str,
    known: impl Iterator<Item = &'e str> + Clone,
) -> Result<BTreeMap<&'e str, &'e [usize]>, Failure> {
    let mut given = BTreeMap::new();
    for InputExtents { name, extents } in extents {
        check_among(name, what, known.clone(), "--extents", NAME)?;
        if given.insert(&**name, &**extents).is_some() {
            return Err(usage(NAME, format!("`--extents` gives `{name}` twice")));
        }
    }
    Ok(given)
}

/// Checks that the input `field` has `rank` axes.
pub(super) fn check_rank(field: &Field, rank: usize) -> Result<(), Failure> {
    match field.qtype {
        QType::Tensor(_, own) if usize::from(own) == rank => Ok(()),
        _ => {
            let message =
                format!("`--extents` gives `{}` {rank} axes, but its type is {}", field.name, field.spelled_type());
            Err(usage(NAME, message))
        }
    }
}

/// The inputs of `model` with their extents, and its outputs, as text.
pub(super) fn header(model: &Executor, extents: impl Fn(&Field) -> Vec<usize>) -> String {
    let mut shown = String::new();
    for field in model.inputs() {
        let extents = extents(field);
        shown.push_str(&format!("input {}: {}", field.name, field.declaration()));
        shown.push_str(&if extents.is_empty() { "\n".to_owned() } else { format!(" of {extents:?}\n") });
    }
    for field in model.outputs() {
        shown.push_str(&format!("output {}: {}\n", field.name, field.qtype));
    }
    shown
}

/// Shows the steps of a model with dense tensors.
pub(super) fn run(text: &ModelText, model: &Executor, extents: &[InputExtents], format: Report) -> Result<(), Failure> {
    let given = given(extents, "input", model.inputs().iter().map(|field| &*field.name))?;
    let mut own = Vec::with_capacity(model.inputs().len());
    for field in model.inputs() {
        let rank = if let QType::Tensor(_, rank) = field.qtype { usize::from(rank) } else { 0 };
        own.push(match given.get(&*field.name) {
            Some(extents) => {
                check_rank(field, extents.len())?;
                extents.to_vec()
            }
            None => vec![LISTED_EXTENT; rank],
        });
    }
    let extents: Vec<&[usize]> = own.iter().map(Vec::as_slice).collect();
    let plan = model.prepare_for(&extents).map_err(|error| text.blame(&error))?.to_string();
    match format {
        Report::Json => print_json(&BTreeMap::from([("plan", plan)])),
        Report::Text => {
            let of = |field: &Field| model.inputs().iter().zip(&own).find(|(known, _)| known.name == field.name);
            let shown = header(model, |field| of(field).map(|(_, own)| own.clone()).unwrap_or_default());
            print(&format!("{shown}\n{plan}{}", if plan.ends_with('\n') { "" } else { "\n" }))
        }
    }
}
