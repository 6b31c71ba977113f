//! The subjects of columns: the ways to compute a workload's outputs for many rows at once. A subject is bound to rows, and
//! what comes of that is run as often as it is measured: so nothing is looked up or allocated in a run that a user would
//! not have looked up or allocated in each.

use super::columns::Columns;
use super::library;
use super::workload::{Batch, ColumnsFunction, Rows};
use crate::Error;
use crate::measure::Run;
use crate::row::Answer;
use crate::subject::{Family, Way};
use cembra::operators::Context;
use cembra::{Model, ModelExecutor};

/// Hand-written, in vectors of 512 bits.
pub const LIMIT_512: &str = "limit-512";
/// Hand-written, in vectors of 256 bits.
pub const LIMIT_256: &str = "limit-256";
/// Plain Rust, as the compiler vectorises it.
pub const LIMIT_PLAIN: &str = "limit-plain";
/// The scalar native function, called once a row on structs.
pub const SCALAR_CALLS: &str = "scalar-calls";

/// A way to compute a workload's outputs for many rows.
pub trait BatchSubject<W: Batch> {
    /// The name in tables and records.
    fn name(&self) -> &'static str;

    /// Whose bits it must give.
    fn family(&self) -> Family;

    /// The most rows that it is given.
    fn most_rows(&self) -> usize {
        usize::MAX
    }

    /// The most threads that it is given.
    fn most_threads(&self) -> usize {
        2
    }

    /// Makes all of it anew from the model's text, if it is made of that, and drops it.
    fn compile(&self) -> Option<Run<'static>> {
        None
    }

    /// Brings the rows to the form that it reads, and makes room for the outputs: what is not measured.
    ///
    /// # Errors
    /// It cannot do so.
    fn bind<'a>(&'a self, rows: &'a Rows<W>, threads: usize) -> Result<Box<dyn Bound + 'a>, Error>;
}

/// A subject on rows.
pub trait Bound {
    /// Computes all rows: what is measured.
    ///
    /// # Errors
    /// The evaluation fails.
    fn run(&mut self) -> Result<(), Error>;

    /// What the last run gave.
    fn outputs(&self) -> Columns;
}

/// A subject; or its name and why it is left out.
pub type Offer<W> = Result<Box<dyn BatchSubject<W>>, (&'static str, String)>;

/// The subjects of a workload: the scalar calls first, whose outputs are the reference.
///
/// # Errors
/// The workload does not compile.
pub fn all<W: Batch>() -> Result<Vec<Offer<W>>, Error> {
    let mut offers: Vec<Offer<W>> = vec![Ok(Box::new(ScalarCalls))];
    offers.extend(limits::<W>().into_iter().map(Ok));
    for form in library::FORMS {
        offers.push(library::cembra_subject::<W>(form)?.map_err(|reason| (form.name, reason)));
    }
    #[cfg(feature = "peers")]
    offers.extend(super::operators::all::<W>());
    Ok(offers)
}

/// The hand-written limits that this processor can run.
#[must_use]
pub fn limits<W: Batch>() -> Vec<Box<dyn BatchSubject<W>>> {
    let mut found: Vec<Box<dyn BatchSubject<W>>> = Vec::new();
    if let Some(limits) = W::LIMITS {
        if has_512() {
            found.push(Box::new(Limit { name: LIMIT_512, function: limits.wide }));
        }
        if has_256() {
            found.push(Box::new(Limit { name: LIMIT_256, function: limits.narrow }));
        }
        found.push(Box::new(Limit { name: LIMIT_PLAIN, function: limits.plain }));
    }
    found
}

/// True if vectors of 512 bits can be run.
#[must_use]
pub fn has_512() -> bool {
    ["avx512f", "avx512dq", "avx512bw", "avx512vl"].into_iter().all(has)
}

/// True if vectors of 256 bits can be run.
#[must_use]
pub fn has_256() -> bool {
    ["avx2", "fma", "bmi1", "bmi2", "lzcnt", "popcnt"].into_iter().all(has)
}

#[cfg(not(target_arch = "x86_64"))]
fn has(_: &str) -> bool {
    false
}

#[cfg(target_arch = "x86_64")]
fn has(feature: &str) -> bool {
    match feature {
        "avx512f" => std::is_x86_feature_detected!("avx512f"),
        "avx512dq" => std::is_x86_feature_detected!("avx512dq"),
        "avx512bw" => std::is_x86_feature_detected!("avx512bw"),
        "avx512vl" => std::is_x86_feature_detected!("avx512vl"),
        "avx2" => std::is_x86_feature_detected!("avx2"),
        "fma" => std::is_x86_feature_detected!("fma"),
        "bmi1" => std::is_x86_feature_detected!("bmi1"),
        "bmi2" => std::is_x86_feature_detected!("bmi2"),
        "lzcnt" => std::is_x86_feature_detected!("lzcnt"),
        "popcnt" => std::is_x86_feature_detected!("popcnt"),
        _ => false,
    }
}

/// Rows `0..rows` in as many parts as threads, each of whole bytes of bits.
pub(super) fn parts(rows: usize, threads: usize) -> Vec<(usize, usize)> {
    let part = rows.div_ceil(threads).next_multiple_of(64);
    (0..rows).step_by(part.max(1)).map(|start| (start, part.min(rows - start))).collect()
}

/// Runs two parts at once, or one.
pub(super) fn in_parallel<P: Send>(parts: &mut [P], run: impl Fn(&mut P) + Sync) {
    match parts {
        [] => {}
        [one] => run(one),
        [first, others @ ..] => {
            rayon::join(|| run(first), || others.iter_mut().for_each(&run));
        }
    }
}

/// A function of the limit's crates.
pub struct Limit {
    /// The name in tables and records.
    pub name: &'static str,
    /// What runs.
    pub function: ColumnsFunction,
}

/// Some rows of it.
struct Part {
    rows: usize,
    inputs: Vec<*const u8>,
    outputs: Vec<*mut u8>,
}

// SAFETY: BARE-COLUMNS: no two parts write the same bytes, and their owner owns the columns.
unsafe impl Send for Part {}

/// The limit on columns.
pub struct BoundLimit {
    function: ColumnsFunction,
    outputs: Columns,
    parts: Vec<Part>,
}

impl Limit {
    /// The function on these columns, by so many threads.
    ///
    /// # Safety
    /// BARE-COLUMNS: they are the function's, and outlive what is returned.
    #[must_use]
    pub unsafe fn on(&self, inputs: &Columns, mut outputs: Columns, threads: usize) -> BoundLimit {
        let parts = parts(inputs.rows, threads);
        let part =
            |(start, rows)| Part { rows, inputs: inputs.addresses(start), outputs: outputs.addresses_mut(start) };
        let parts = parts.into_iter().map(part).collect();
        BoundLimit { function: self.function, outputs, parts }
    }
}

impl<W: Batch> BatchSubject<W> for Limit {
    fn name(&self) -> &'static str {
        self.name
    }

    fn family(&self) -> Family {
        Family::Limit
    }

    fn bind<'a>(&'a self, rows: &'a Rows<W>, threads: usize) -> Result<Box<dyn Bound + 'a>, Error> {
        let outputs = Columns::new(W::OUTPUT_KINDS, rows.columns.rows);
        // SAFETY: BARE-COLUMNS: the function is of this workload, and what is returned borrows the rows.
        Ok(Box::new(unsafe { self.on(&rows.columns, outputs, threads) }))
    }
}

impl Bound for BoundLimit {
    #[inline]
    fn run(&mut self) -> Result<(), Error> {
        let function = self.function;
        in_parallel(&mut self.parts, |part| {
            // SAFETY: BARE-COLUMNS, promised when this was made.
            unsafe { function(part.rows, part.inputs.as_ptr(), part.outputs.as_ptr()) };
        });
        Ok(())
    }

    fn outputs(&self) -> Columns {
        self.outputs.clone()
    }
}

/// The scalar native function, called in a loop over structs.
struct ScalarCalls;

impl<W: Batch> BatchSubject<W> for ScalarCalls {
    fn name(&self) -> &'static str {
        SCALAR_CALLS
    }

    fn family(&self) -> Family {
        Family::Cembra
    }

    fn most_rows(&self) -> usize {
        100_000
    }

    fn compile(&self) -> Option<Run<'static>> {
        Some(Box::new(|| executor::<W>().map(drop)))
    }

    fn bind<'a>(&'a self, rows: &'a Rows<W>, threads: usize) -> Result<Box<dyn Bound + 'a>, Error> {
        let executor = executor::<W>()?;
        let part = |(start, length): (usize, usize)| Calls {
            executor: executor.clone(),
            inputs: &rows.structs[start..start + length],
            answers: vec![W::Output::default(); length],
            status: 0,
        };
        Ok(Box::new(BoundCalls::<W> { parts: parts(rows.structs.len(), threads).into_iter().map(part).collect() }))
    }
}

type ExecutorOf<W> = ModelExecutor<<W as Batch>::Input, <W as Batch>::Output>;

fn executor<W: Batch>() -> Result<ExecutorOf<W>, Error> {
    Model::parse(W::SOURCE).and_then(|model| model.executor(&Way::NATIVE.options())).map_err(model_error_of::<W>)
}

/// A model's error under the workload's name.
pub(super) fn model_error_of<W: Batch>(source: cembra::Error) -> Error {
    Error::Model { workload: W::NAME, source: Box::new(source) }
}

/// Some rows of it.
struct Calls<'a, W: Batch> {
    executor: ExecutorOf<W>,
    inputs: &'a [W::Input],
    answers: Vec<W::Output>,
    status: i32,
}

struct BoundCalls<'a, W: Batch> {
    parts: Vec<Calls<'a, W>>,
}

impl<W: Batch> Calls<'_, W> {
    fn run(&mut self) {
        let Some(function) = self.executor.raw() else {
            self.status = -1;
            return;
        };
        let (frame, context): (*mut u8, *mut Context) = self.executor.scratch();
        let mut status = 0;
        for (input, answer) in self.inputs.iter().zip(&mut self.answers) {
            let (input, output) = (std::ptr::from_ref(input).cast(), std::ptr::from_mut(answer).cast());
            // SAFETY: BARE-CALL: the executor's own function, structs and scratch; all fields are in place.
            status |= unsafe { function(input, output, frame, context) };
        }
        self.status = status;
    }
}

impl<W: Batch> Bound for BoundCalls<'_, W> {
    fn run(&mut self) -> Result<(), Error> {
        in_parallel(&mut self.parts, Calls::run);
        match self.parts.iter().find(|part| part.status != 0) {
            Some(part) => Err(Error::Status { subject: SCALAR_CALLS, status: part.status }),
            None => Ok(()),
        }
    }

    fn outputs(&self) -> Columns {
        let answers: Vec<_> = self.parts.iter().flat_map(|part| &part.answers).collect();
        let mut outputs = Columns::new(W::OUTPUT_KINDS, answers.len());
        for (row, answer) in answers.into_iter().enumerate() {
            outputs.set_row(row, &answer.values());
        }
        outputs
    }
}
