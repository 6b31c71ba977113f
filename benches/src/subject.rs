//! The subjects: the ways to compute a workload's answers that are measured against each other, and how each is called
//! once a row.

use crate::Error;
use crate::row::{Answer, Bits, Row};
use crate::workload::{Comparison, RawFunction, Workload};
use cembra::native::Tier;
use cembra::operators::Context;
use cembra::{Backend, Model, ModelExecutor, Options, Session, Value};
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
/// The same, compiled in the quick tier.
pub const NATIVE_QUICK: &str = "native-quick";
/// Interpreted until the optimised code is there.
pub const TIERED: &str = "tiered";
/// The compiled function through `ModelExecutor::run_into`.
pub const NATIVE_TYPED: &str = "native-typed";
/// The compiled function through `ModelExecutor::run`, which moves the outputs once more.
pub const NATIVE_MOVED: &str = "native-moved";
/// The compiled function through `Session::evaluate_into`.
pub const NATIVE_DYNAMIC: &str = "native-dynamic";

/// Subjects of one family must give the same bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Family {
    /// The hand-written limit, with the platform's mathematical functions.
    Limit,
    /// Cembra's backends, and the limit with their functions.
    Cembra,
    /// Another library, of this name: nobody's bits but its own.
    Peer(&'static str),
}

/// What a call may start before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Chain {
    /// Before the call before it has ended: the processor overlaps them as far as it can.
    Free,
    /// Not before the answer of the call before it is there: the address of its row is made to depend on it.
    Dependent,
}

/// A way to compute a workload's answers.
pub trait Subject<W: Workload> {
    /// The name in tables and records.
    fn name(&self) -> &'static str;

    /// Whose bits it must give.
    fn family(&self) -> Family;

    /// How its answers are compared with the expected ones and with the limit's.
    fn comparison(&self) -> Comparison {
        W::COMPARISON
    }

    /// The answer for one row.
    ///
    /// # Errors
    /// The evaluation fails.
    fn answer(&mut self, row: &W::Input) -> Result<W::Output, Error>;

    /// Computes the answers of all rows, one call a row, and drops them: what is timed. It is [`each`] over some function.
    ///
    /// # Errors
    /// An evaluation fails.
    fn sweep(&mut self, rows: &[W::Input], chain: Chain) -> Result<(), Error>;
}

/// Calls a function once a row, with a place for its answer.
///
/// # Errors
/// The first error of the function.
#[inline(always)]
pub fn each<R, A: Bits>(
    rows: &[R],
    chain: Chain,
    answer: &mut A,
    mut call: impl FnMut(&R, &mut A) -> Result<(), Error>,
) -> Result<(), Error> {
    // Somebody may be looking: every answer has to be written.
    black_box(&raw mut *answer);
    match chain {
        Chain::Free => rows.iter().try_for_each(|row| call(row, answer)),
        Chain::Dependent => {
            let (nothing, mut offset) = (black_box(0), 0);
            for at in 0..rows.len() {
                call(&rows[at + offset], answer)?;
                offset = answer.bits() as usize & nothing;
            }
            Ok(())
        }
    }
}

/// All subjects of a workload, the limit first.
///
/// # Errors
/// The workload does not compile.
pub fn all<W: Workload + 'static>() -> Result<Vec<Box<dyn Subject<W>>>, Error> {
    let mut subjects = limits::<W>();
    subjects.push(Box::new(Typed::<W>::new(INTERPRETER, Way::INTERPRETER, false)?));
    subjects.push(Box::new(native::<W>(NATIVE, executor::<W>(Way::NATIVE)?)?));
    subjects.push(Box::new(native::<W>(NATIVE_QUICK, executor::<W>(Way::NATIVE_QUICK)?)?));
    subjects.push(Box::new(Typed::<W>::new(NATIVE_TYPED, Way::NATIVE, false)?));
    subjects.push(Box::new(Typed::<W>::new(NATIVE_MOVED, Way::NATIVE, true)?));
    subjects.push(Box::new(Dynamic::new::<W>(NATIVE_DYNAMIC, Way::NATIVE)?));
    Ok(subjects)
}

/// A way to make a model callable.
#[derive(Clone, Copy, Debug)]
pub struct Way {
    /// The name of subjects that differ in nothing else.
    pub name: &'static str,
    /// What runs.
    pub backend: Backend,
    /// In which tier, if that is native code.
    pub tier: Tier,
}

impl Way {
    /// Interpreted.
    pub const INTERPRETER: Way = Way { name: INTERPRETER, backend: Backend::Interpreter, tier: Tier::Optimised };
    /// Compiled.
    pub const NATIVE: Way = Way { name: NATIVE, backend: Backend::Native, tier: Tier::Optimised };
    /// Compiled in the quick tier.
    pub const NATIVE_QUICK: Way = Way { name: NATIVE_QUICK, backend: Backend::Native, tier: Tier::Quick };
    /// Interpreted at first; compiled in the background, or when that is asked for.
    pub const TIERED: Way = Way { name: TIERED, backend: Backend::Tiered, tier: Tier::Optimised };
    /// Those that are what they are before the first call.
    pub const ALL: [Way; 3] = [Way::INTERPRETER, Way::NATIVE, Way::NATIVE_QUICK];

    /// The options that go this way.
    #[must_use]
    pub fn options(self) -> Options {
        Options::default().backend(self.backend).tier(self.tier)
    }
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
/// The workload does not compile this way.
pub fn executor<W: Workload>(way: Way) -> Result<ExecutorOf<W>, Error> {
    Model::parse(W::SOURCE).and_then(|model| model.executor(&way.options())).map_err(model_error::<W>)
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
pub(crate) struct Nothing;

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

    fn sweep(&mut self, rows: &[W::Input], chain: Chain) -> Result<(), Error> {
        let (frame, context) = self.surroundings.scratch();
        // SAFETY: BARE-CALL: for the call, a pointer to a context is a pointer.
        let function = unsafe { std::mem::transmute::<RawFunction<C>, RawFunction<u8>>(self.function) };
        call_bare::<W>(self.name, function, (frame, context.cast()), rows, chain)
    }
}

/// Calls a bare function for all rows. The same loop for all of them: where a compiler puts a loop is a fifth of what a call of S1
/// takes.
#[inline(never)]
fn call_bare<W: Workload>(
    subject: &'static str,
    function: RawFunction<u8>,
    (frame, context): (*mut u8, *mut u8),
    rows: &[W::Input],
    chain: Chain,
) -> Result<(), Error> {
    each(rows, chain, &mut W::Output::default(), |row, answer| {
        let (input, output) = (std::ptr::from_ref(row).cast(), std::ptr::from_mut(answer).cast());
        // SAFETY: BARE-CALL, as in `answer`.
        let status = unsafe { function(input, output, frame, context) };
        if status == 0 { Ok(()) } else { Err(Error::Status { subject, status }) }
    })
}

/// An executor used as a user would.
pub(crate) struct Typed<W: Workload> {
    name: &'static str,
    executor: ExecutorOf<W>,
    /// Outputs are returned, not written where the caller has them.
    moved: bool,
}

impl<W: Workload> Typed<W> {
    /// The executor of the workload's model.
    pub(crate) fn new(name: &'static str, way: Way, moved: bool) -> Result<Self, Error> {
        Ok(Typed { name, executor: executor::<W>(way)?, moved })
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
    fn sweep(&mut self, rows: &[W::Input], chain: Chain) -> Result<(), Error> {
        let executor = black_box(&mut self.executor);
        let answer = &mut W::Output::default();
        if self.moved {
            each(rows, chain, answer, |row, answer| {
                *answer = executor.run(row).map_err(model_error::<W>)?;
                Ok(())
            })
        } else {
            each(rows, chain, answer, |row, answer| executor.run_into(row, answer).map_err(model_error::<W>))
        }
    }
}

/// A session called with values, which are made of the row for each call, into a list that is used again.
struct Dynamic {
    name: &'static str,
    session: Session,
    values: Vec<Value>,
}

impl Dynamic {
    fn new<W: Workload>(name: &'static str, way: Way) -> Result<Self, Error> {
        let executor =
            Model::parse(W::SOURCE).and_then(|model| model.compile(&way.options())).map_err(model_error::<W>)?;
        let inputs = executor.inputs().iter().map(|input| &*input.name);
        if !inputs.eq(W::Input::NAMES.iter().copied()) {
            return Err(Error::Inputs { workload: W::NAME });
        }
        let values = vec![Value::Nothing; executor.inputs().len()];
        Ok(Dynamic { name, session: executor.session(), values })
    }
}

impl<W: Workload> Subject<W> for Dynamic {
    fn name(&self) -> &'static str {
        self.name
    }

    fn family(&self) -> Family {
        Family::Cembra
    }

    fn answer(&mut self, row: &W::Input) -> Result<W::Output, Error> {
        row.write_values(&mut self.values);
        let found = self.session.evaluate(&self.values).map_err(model_error::<W>)?;
        W::Output::from_values(&found).ok_or(Error::Inputs { workload: W::NAME })
    }

    #[inline(never)]
    fn sweep(&mut self, rows: &[W::Input], chain: Chain) -> Result<(), Error> {
        let (session, values) = (black_box(&mut self.session), &mut self.values[..]);
        each(rows, chain, &mut Vec::new(), |row, answer| {
            row.write_values(values);
            session.evaluate_into(values, answer).map_err(model_error::<W>)
        })
    }
}
