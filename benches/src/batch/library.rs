//! The library's own ways over many rows, as subjects.

use super::subject::BatchSubject;
use super::workload::Batch;
use crate::Error;

/// A way of the library.
#[derive(Clone, Copy, Debug)]
pub struct Form {
    /// The name in tables and records.
    pub name: &'static str,
}

/// All of them, in the order of reports.
pub const FORMS: [Form; 6] = [
    Form { name: "interpreter-rows" },
    Form { name: "native-rows" },
    Form { name: "lanes-128" },
    Form { name: "wide-avx2" },
    Form { name: "wide-avx512" },
    Form { name: "native-batch" },
];

/// The library's subject for a workload; the reason if it cannot go this way. This is all there is between the library and the
/// measuring: bind `rows.columns` (values and presence by `Columns::addresses`) to the inputs and `Columns::new(W::OUTPUT_KINDS, ..)`
/// to the outputs, run, and make everything anew from `W::SOURCE` in `compile`.
///
/// # Errors
/// The workload does not compile.
pub fn cembra_subject<W: Batch>(form: Form) -> Result<Result<Box<dyn BatchSubject<W>>, String>, Error> {
    Ok(Err(format!("{}: the library has no batches yet", form.name)))
}
