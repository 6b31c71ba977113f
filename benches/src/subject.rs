//! The subjects: the ways to compute a workload's answers that are measured against each other.

use crate::Error;
use crate::workload::{RawFunction, Workload};
use cembra::{Backend, Context, Model, ModelExecutor, Options};
use std::hint::black_box;

/// The hand-written limit, compiled for this processor: what ratios refer to.
pub const LIMIT: &str = "limit";
/// The hand-written limit, compiled for the baseline of the architecture.
pub const LIMIT_BASELINE: &str = "limit-baseline";
/// The hand-written limit with its own mathematical functions, inlined: cembra's algorithms.
pub const LIMIT_INLINED: &str = "limit-inlined";
/// The interpreter, through `ModelExecutor::run`.
pub const INTERPRETER: &str = "interpreter";
/// The compiled function itself, called on the input struct.
pub const NATIVE: &str = "native";
/// The compiled function through `ModelExecutor::run`.
pub const NATIVE_TYPED: &str = "native-typed";

/// Subjects of one family must give the same bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Family {
    /// The hand-written limit, with the platform's mathematical functions.
    Limit,
    /// Cembra's backends, and the limit with their functions.
    Cembra,
}

/// A way to compute a workload's answers.
pub trait Subject<W: Workload> {
    /// The name in tables and records.
    fn name(&self) -> &'static str;

    /// Whose bits it must give.
    fn family(&self) -> Family;

    /// The answer for one row.
    ///
    /// # Errors
    /// The evaluation fails.
    fn answer(&mut self, row: &W::Input) -> Result<W::Output, Error>;

    /// Computes the answers of all rows, one call a row, and drops them: what is timed.
    ///
    /// # Errors
    /// An evaluation fails.
    fn sweep(&mut self, rows: &[W::Input]) -> Result<(), Error>;
}

/// All subjects of a workload, the limit first.
///
/// # Errors
/// The workload does not compile.
pub fn all<W: Workload + 'static>() -> Result<Vec<Box<dyn Subject<W>>>, Error> {
    let mut subjects = limits::<W>();
    subjects.push(Box::new(Typed::<W>::new(INTERPRETER, Backend::Interpreter)?));
    subjects.push(Box::new(native::<W>(NATIVE, executor::<W>(Backend::Native)?)?));
    subjects.push(Box::new(Typed::<W>::new(NATIVE_TYPED, Backend::Native)?));
    Ok(subjects)
}

/// The hand-written limit in all builds.
#[must_use]
pub fn limits<W: Workload>() -> Vec<Box<dyn Subject<W>>> {
    let limit = |name, family, build| Box::new(Bare::new(name, family, build, Nothing)) as Box<dyn Subject<W>>;
    vec![
        limit(LIMIT, Family::Limit, W::LIMIT),
        limit(LIMIT_INLINED, Family::Cembra, W::LIMIT_INLINED),
        limit(LIMIT_BASELINE, Family::Limit, W::LIMIT_BASELINE),
    ]
}

/// The executor type of a workload.
pub type ExecutorOf<W> = ModelExecutor<<W as Workload>::Input, <W as Workload>::Output>;

/// The executor of a workload's model.
///
/// # Errors
/// The workload does not compile with this backend.
pub fn executor<W: Workload>(backend: Backend) -> Result<ExecutorOf<W>, Error> {
    let options = Options::default().backend(backend);
    Model::parse(W::SOURCE).and_then(|model| model.executor(&options)).map_err(model_error::<W>)
}

pub(crate) fn model_error<W: Workload>(source: cembra::Error) -> Error {
    Error::Model { workload: W::NAME, source: Box::new(source) }
}

/// What a bare function wants besides the structs.
pub(crate) trait Scratch<C> {
    /// A frame and a context, valid until `self` is next used, moved or dropped.
    fn scratch(&mut self) -> (*mut u8, *mut C);
}

/// The limit looks at neither.
struct Nothing;

impl Scratch<u8> for Nothing {
    fn scratch(&mut self) -> (*mut u8, *mut u8) {
        (std::ptr::null_mut(), std::ptr::null_mut())
    }
}

impl<I: cembra::Input, O: cembra::Output> Scratch<Context> for ModelExecutor<I, O> {
    fn scratch(&mut self) -> (*mut u8, *mut Context) {
        ModelExecutor::scratch(self)
    }
}

/// A function called through its pointer, with nothing around it.
pub(crate) struct Bare<C, S> {
    name: &'static str,
    family: Family,
    function: RawFunction<C>,
    /// Owns the function's code too, where it was compiled.
    surroundings: S,
}

impl<C, S: Scratch<C>> Bare<C, S> {
    /// A function and what it wants besides the structs.
    pub(crate) fn new(name: &'static str, family: Family, function: RawFunction<C>, surroundings: S) -> Self {
        Bare { name, family, function, surroundings }
    }
}

/// The bare function of a natively compiled executor.
pub(crate) fn native<W: Workload>(
    name: &'static str,
    executor: ExecutorOf<W>,
) -> Result<Bare<Context, ExecutorOf<W>>, Error> {
    let function = executor.raw().ok_or(Error::NoBareFunction { workload: W::NAME })?;
    Ok(Bare::new(name, Family::Cembra, function, executor))
}

impl<W: Workload, C, S: Scratch<C>> Subject<W> for Bare<C, S> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn family(&self) -> Family {
        self.family
    }

    fn answer(&mut self, row: &W::Input) -> Result<W::Output, Error> {
        let mut answer = W::Output::default();
        let (input, output) = (std::ptr::from_ref(row).cast(), std::ptr::from_mut(&mut answer).cast());
        let (frame, context) = self.surroundings.scratch();
        // SAFETY: BARE-CALL: the function was made for exactly these structs, all of whose fields are in place (by hand,
        // or by the executor in `surroundings`, which keeps its code), and the scratch is its own.
        let status = unsafe { (self.function)(input, output, frame, context) };
        if status == 0 { Ok(answer) } else { Err(Error::Status { subject: self.name, status }) }
    }

    #[inline(never)]
    fn sweep(&mut self, rows: &[W::Input]) -> Result<(), Error> {
        // The compiler must not know whom it calls.
        let function = black_box(self.function);
        let mut answer = W::Output::default();
        let output: *mut u8 = std::ptr::from_mut(&mut answer).cast();
        let (frame, context) = self.surroundings.scratch();
        let mut status = 0;
        for row in rows {
            // SAFETY: BARE-CALL, as in `answer`.
            status |= unsafe { function(std::ptr::from_ref(row).cast(), output, frame, context) };
        }
        black_box(answer);
        if status == 0 { Ok(()) } else { Err(Error::Status { subject: self.name, status }) }
    }
}

/// An executor used as a user would.
struct Typed<W: Workload> {
    name: &'static str,
    executor: ExecutorOf<W>,
}

impl<W: Workload> Typed<W> {
    fn new(name: &'static str, backend: Backend) -> Result<Self, Error> {
        Ok(Typed { name, executor: executor::<W>(backend)? })
    }
}

impl<W: Workload> Subject<W> for Typed<W> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn family(&self) -> Family {
        Family::Cembra
    }

    fn answer(&mut self, row: &W::Input) -> Result<W::Output, Error> {
        self.executor.run(row).map_err(model_error::<W>)
    }

    #[inline(never)]
    fn sweep(&mut self, rows: &[W::Input]) -> Result<(), Error> {
        let executor = black_box(&mut self.executor);
        for row in rows {
            black_box(executor.run(row).map_err(model_error::<W>)?);
        }
        Ok(())
    }
}
