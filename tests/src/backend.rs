//! cembra's backends, and as engines. Whatever makes machine code is strict: a program that it cannot compile fails rather than
//! stays interpreted. Tiers are changed by hand, so that nothing hangs on when they are.

use crate::decode::ErrorKind;
use crate::engine::{Engine, Failure, Subject};
use cembra::native::Tiering;
use cembra::{Backend, Executor, Model, Options, Session};
use cembra_expr::Program;
use cembra_runtime::QType;
use cembra_value::Value;

/// The backends that are compared with each other.
pub const BACKENDS: [Backend; 3] = [Backend::Interpreter, Backend::Native, Backend::Tiered];

/// The options of a backend; one with tiers climbs all of them, when it is told to.
#[must_use]
pub fn on(backend: Backend, options: Options) -> Options {
    options.backend(backend).tiering(Tiering::default().by_hand(true).every_tier(true))
}

/// What something gives in each tier of an executor made with the options of [`on`], from the interpreter to the highest; once,
/// if its backend has no tiers.
pub fn in_each_tier<R>(executor: &Executor, mut run: impl FnMut() -> R) -> Vec<R> {
    executor.finish_tiers();
    let mut all = vec![run()];
    let mut tier = executor.tier();
    while executor.advance() != tier {
        tier = executor.tier();
        all.push(run());
    }
    all
}

/// One of cembra's backends, with options.
#[derive(Clone, Debug)]
pub struct CembraEngine {
    name: &'static str,
    backend: Backend,
    options: Options,
}

impl CembraEngine {
    /// The interpreter.
    #[must_use]
    pub fn interpreter(options: Options) -> CembraEngine {
        CembraEngine::new("interp", Backend::Interpreter, options)
    }

    /// Machine code.
    #[must_use]
    pub fn native(options: Options) -> CembraEngine {
        CembraEngine::new("native", Backend::Native, options)
    }

    /// The interpreter for the first row of a program, quick machine code for the second, optimised code for the others.
    #[must_use]
    pub fn tiered(options: Options) -> CembraEngine {
        CembraEngine::new("tiered", Backend::Tiered, options)
    }

    fn new(name: &'static str, backend: Backend, options: Options) -> CembraEngine {
        // The data have weak floats as results, which an API for Rust would turn into doubles.
        CembraEngine { name, backend, options: on(backend, options).keep_weak_outputs(true) }
    }
}

/// A compiled program: `used` says where in the program's inputs each of the executor's comes from.
struct Compiled {
    executor: Executor,
    session: Session,
    used: Vec<usize>,
    inputs: Vec<Value>,
}

impl Engine for CembraEngine {
    fn name(&self) -> &'static str {
        self.name
    }

    fn output_type(&self, program: &Program) -> Result<QType, Failure> {
        let signature = Model::from_program(program.clone()).signature(&self.options).map_err(|e| failure(&e))?;
        one_output(signature.outputs.iter().map(|field| &field.qtype))
    }

    fn prepare(&self, program: &Program) -> Result<Box<dyn Subject>, Failure> {
        let executor = Model::from_program(program.clone()).compile(&self.options).map_err(|e| failure(&e))?;
        executor.finish_tiers();
        if executor.fallback().is_some() || !is_asked_for(self.backend, &executor) {
            return Err(contract("another backend than the one asked for"));
        }
        one_output(executor.outputs().iter().map(|field| &field.qtype))?;
        let position = |name: &str| program.inputs.iter().position(|input| input.name.as_ref() == name);
        let used = executor.inputs().iter().map(|field| position(&field.name)).collect::<Option<Vec<_>>>();
        let Some(used) = used else { return Err(contract("an input that the program does not have")) };
        Ok(Box::new(Compiled { session: executor.session(), executor, used, inputs: Vec::new() }))
    }
}

impl Subject for Compiled {
    fn output(&self) -> &QType {
        &self.executor.outputs()[0].qtype
    }

    fn evaluate(&mut self, inputs: &[Value]) -> Result<Value, Failure> {
        self.inputs.clear();
        self.inputs.extend(self.used.iter().map(|index| inputs[*index].clone()));
        let outputs = self.session.evaluate(&self.inputs).map_err(|e| failure(&e));
        self.executor.advance();
        let mut outputs = outputs?;
        match outputs.pop() {
            Some(output) if outputs.is_empty() => Ok(output),
            _ => Err(contract("another number of outputs than one")),
        }
    }
}

/// True if the executor runs by the backend. A backend with tiers begins with the interpreter, and arrays have no tiers, so both
/// are right for it.
fn is_asked_for(backend: Backend, executor: &Executor) -> bool {
    match backend {
        Backend::Interpreter => executor.tier().is_none(),
        Backend::Native => executor.tier().is_some(),
        _ => true,
    }
}

fn one_output<'a>(mut outputs: impl Iterator<Item = &'a QType>) -> Result<QType, Failure> {
    match (outputs.next(), outputs.next()) {
        (Some(qtype), None) => Ok(qtype.clone()),
        _ => Err(contract("another number of outputs than one")),
    }
}

fn failure(error: &cembra::Error) -> Failure {
    Failure { kind: ErrorKind::of_code(error.code()), message: error.message() }
}

/// The library does not do what it says.
fn contract(found: &str) -> Failure {
    Failure { kind: None, message: format!("cembra reports {found}") }
}
