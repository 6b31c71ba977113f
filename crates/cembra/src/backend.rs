//! Which backend runs a plan, and falling back from one to the other in the open.

use crate::{Error, Options};
use cembra_expr::{Code, Diagnostic};
use cembra_native::Compiled;
use cembra_plan::{Binding, Function, Plan};
use cembra_runtime::{Context, FramePtr};

/// A way to run a plan. All give the same bits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Backend {
    /// The interpreter.
    Interpreter,
    /// Machine code; an error where it cannot be had.
    Native,
    /// Machine code where it can be had, else the interpreter; `Executor::fallback` tells why.
    #[default]
    Auto,
}

impl Backend {
    /// The name used on the command line and in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Backend::Interpreter => "interpreter",
            Backend::Native => "native",
            Backend::Auto => "auto",
        }
    }
}

/// A plan made runnable, and by what.
#[derive(Debug)]
pub(crate) enum Runnable {
    Interpreted(cembra_interp::Interpreted),
    Native(Compiled),
}

impl Runnable {
    pub(crate) fn function(&self) -> &dyn Function {
        match self {
            Runnable::Interpreted(function) => function,
            Runnable::Native(function) => function,
        }
    }

    /// Calls the function, without a look into a table of methods for machine code: a call of a small model is short.
    ///
    /// # Safety
    /// CALL.
    #[inline]
    pub(crate) unsafe fn call(&self, input: FramePtr, output: FramePtr, frame: FramePtr, context: &mut Context) -> i32 {
        // SAFETY: CALL, promised by the caller.
        unsafe {
            match self {
                Runnable::Interpreted(function) => function.call(input, output, frame, context),
                Runnable::Native(function) => function.call(input, output, frame, context),
            }
        }
    }

    pub(crate) fn backend(&self) -> Backend {
        match self {
            Runnable::Interpreted(_) => Backend::Interpreter,
            Runnable::Native(_) => Backend::Native,
        }
    }
}

/// Makes a plan runnable; if the second value is there, the interpreter had to stand in.
pub(crate) fn bind(options: &Options, plan: &Plan, binding: &Binding) -> Result<(Runnable, Option<Diagnostic>), Error> {
    options.budget().check_time()?;
    let backend = options.backend;
    let interpret = || Runnable::Interpreted(cembra_interp::bind(plan, binding));
    if backend == Backend::Interpreter {
        return Ok((interpret(), None));
    }
    match cembra_native::compile(plan, binding, options.tier, options.budget()) {
        Ok(compiled) => Ok((Runnable::Native(compiled), None)),
        Err(error) => {
            options.budget().check_time()?;
            let diagnostic = refusal(&error);
            match backend {
                Backend::Auto => Ok((interpret(), Some(diagnostic))),
                _ => Err(Error::from(diagnostic)),
            }
        }
    }
}

/// Why there is no machine code: a limit, or what the machine or the code generator cannot do.
pub(crate) fn refusal(error: &cembra_native::Error) -> Diagnostic {
    match error.limit() {
        Some(exceeded) => exceeded.clone(),
        None => Diagnostic::new(Code::Native, error.to_string()).hint("use the interpreter, or `Backend::Auto`"),
    }
}
