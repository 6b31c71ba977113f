//! Machine code as a listing: disassembled, with the operator and the place in the text above the instructions that compute it.

use crate::disassembly::{self, Note};
use cembra::doors::Origin;
use cembra::errors::Code;
use cembra::explain::{Listing, Stage};
use cembra::program::Sources;
use cembra::{Error, Model, Options};

/// Lists the machine code of a model, disassembled on x86-64. The origins of a line are indices in the list of [`Model::origins`]. If the model as a
/// whole has no machine code, the listing says so.
///
/// # Errors
/// The errors of [`Model::explain`].
pub fn machine_listing(model: &Model, options: &Options, sources: &Sources) -> Result<Listing, Error> {
    if !cfg!(target_arch = "x86_64") {
        return model.listing(options, Stage::Asm);
    }
    match model.machine(options) {
        Ok(machine) => {
            let note = |Origin { bytes, node, operator, span }: Origin| {
                let place = span.map(|span| sources.place(span).line_and_column());
                let place = place.map_or_else(String::new, |(line, column)| format!("  ({line}:{column})"));
                Note { bytes, text: operator + &place, origin: node }
            };
            let notes: Vec<Note> = machine.origins.into_iter().map(note).collect();
            Ok(disassembly::listing(&machine.code, &notes))
        }
        Err(error) if error.code() == Code::Arrays.as_str() => model.listing(options, Stage::Asm),
        Err(error) => Err(error),
    }
}
