//! Prepares a plan to be run by the chosen backend. If machine code is not available, the interpreter runs the plan instead, and the reason is
//! recorded.

use crate::code::machine_code::compile;
use crate::options::choice::Backend;
use crate::options::compile_options::TimedOptions;
use crate::options::metrics::EventReporter;
use crate::scalar::tiers::Tiered;
use cembra_interp::Interpreted;
use cembra_native::{Compiled, Tier};
use cembra_plan::{Binding, Function, Plan};
use cembra_value::Diagnostic;
use cembra_value::Error;

/// A runnable plan, by the backend that runs it.
// As in `ExecutableForm`, the tag is a byte of its own.
#[derive(Debug)]
#[repr(u8)]
pub(crate) enum Runnable {
    Interpreted(Interpreted),
    Native(Compiled, Tier),
    Tiered(Box<Tiered>),
}

impl Runnable {
    /// The function that a call of the model would run now.
    pub(crate) fn function(&self) -> &dyn Function {
        match self {
            Runnable::Interpreted(function) => function,
            Runnable::Native(function, _) => function,
            Runnable::Tiered(tiered) => tiered.function(),
        }
    }

    /// The machine code that a call of the model would run now; `None` if the interpreter runs it.
    pub(crate) fn compiled(&self) -> Option<&Compiled> {
        match self {
            Runnable::Interpreted(_) => None,
            Runnable::Native(compiled, _) => Some(compiled),
            Runnable::Tiered(tiered) => tiered.compiled(),
        }
    }

    /// The tier of the machine code that a call of the model would run now; `None` if the interpreter runs it.
    pub(crate) fn tier(&self) -> Option<Tier> {
        match self {
            Runnable::Interpreted(_) => None,
            Runnable::Native(_, tier) => Some(*tier),
            Runnable::Tiered(tiered) => tiered.tier(),
        }
    }

    /// The bytes of memory that the code takes, besides this struct itself.
    pub(crate) fn memory_bytes(&self) -> usize {
        match self {
            Runnable::Tiered(tiered) => size_of::<Tiered>() + tiered.memory_bytes(),
            fixed => fixed.function().memory_bytes(),
        }
    }
}

/// Prepares a plan to be run by a backend. The second result is the reason if the interpreter has to replace machine code, else `None`.
pub(crate) fn bind(
    backend: Backend,
    options: &TimedOptions,
    plan: &Plan,
    binding: &Binding,
    watch: &EventReporter,
) -> Result<(Runnable, Option<Diagnostic>), Error> {
    options.budget().check_time()?;
    let interpret = || cembra_interp::bind(plan, binding);
    match backend {
        Backend::Interpreter => return Ok((Runnable::Interpreted(interpret()), None)),
        Backend::Tiered => {
            let tiered = Tiered::new(interpret(), plan.clone(), binding.clone(), options);
            return Ok((Runnable::Tiered(Box::new(tiered)), None));
        }
        Backend::Native | Backend::Auto => {}
    }
    match compile(plan, binding, options.tier, options.budget(), options.code_cache.as_ref(), watch) {
        Ok(compiled) => Ok((Runnable::Native(compiled, options.tier), None)),
        Err(reason) => {
            options.budget().check_time()?;
            match backend {
                Backend::Native => Err(Error::from(reason)),
                _ => Ok((Runnable::Interpreted(interpret()), Some(reason))),
            }
        }
    }
}
