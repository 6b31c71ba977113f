//! Tapes on arrays: a tape compiled to a loop over rows that plays it on one, two or four of them at a time. What columns of a
//! batch will run on; there is no plan here, no frame and no conditional, only a tape.
//!
//! A row that fails stops the loop as it would stop one that takes row after row: the rows before it are written, it and those
//! after it are not. Of several lanes the loop only finds out that some fail, before it stores any of them; the same tape, one
//! row at a time, then finds the first of them and says why. So code in lanes needs no record of who failed and where.

mod player;
mod rows;
mod strips;
#[cfg(test)]
mod tests;
mod vectors;

use crate::artifact::{Tier, check_alone, host, publish};
use crate::error::{Error, ErrorKind};
use cembra_runtime::{CodePages, Context, STATUS_OK};
use cembra_tape::Tape;
use cembra_value::Budget;
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::isa::OwnedTargetIsa;
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// How many rows are taken at a time. All give the same bits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Lanes {
    /// One: the code is that of single evaluations.
    One,
    /// Two: numbers of 64 bits fill a vector.
    Two,
    /// Four: numbers of 32 bits fill a vector, those of 64 bits two of them.
    Four,
}

impl Lanes {
    /// Every number of lanes.
    pub const ALL: [Lanes; 3] = [Lanes::One, Lanes::Two, Lanes::Four];

    /// The number.
    #[must_use]
    pub const fn count(self) -> usize {
        match self {
            Lanes::One => 1,
            Lanes::Two => 2,
            Lanes::Four => 4,
        }
    }
}

/// The rows that are left: code reads where to begin and end, and says how far it got.
#[repr(C)]
#[derive(Debug)]
struct Progress {
    next: usize,
    end: usize,
}

/// A loop over the rows of the arrays of its inputs and outputs.
///
/// # Safety
/// ROWS: pointers to the arrays of all inputs and outputs, each as long as the rows end.
type Loop = unsafe extern "C" fn(*const *const u8, *const *mut u8, *mut Progress, *mut Context) -> i32;

/// A loop and the memory that its code lives in.
#[derive(Debug)]
struct Code {
    #[expect(dead_code, reason = "the code lives in them")]
    pages: Arc<CodePages>,
    function: Loop,
}

/// A row failed; the context's record says which site of the tape, and why.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Failed {
    /// The first row that fails.
    pub row: usize,
}

/// A tape as a loop over arrays. Its code lives as long as it does.
#[derive(Debug)]
pub struct RowFunction {
    /// Several rows at a time; none for one lane.
    wide: Option<Code>,
    /// One row at a time: what is left at the end, and rows of which some fail.
    single: Code,
    lanes: Lanes,
}

impl RowFunction {
    /// Runs the tape on each of the rows, in order.
    ///
    /// # Errors
    /// The first row that fails. The rows before it are written.
    ///
    /// # Safety
    /// ROWS: there is an array for each input of the tape, in the order in which the inputs were made, and for each output.
    /// Each has as many elements as there are rows, of the input's or output's type, masks being bytes that are 0 or 1. No
    /// output's array overlaps another output's; it overlaps an input's only if both are one array of one type. Numbers that a
    /// rule takes for views of strings are views as in STRING-VIEW.
    // SAFETY: ROWS and STRING-VIEW, promised by the caller.
    pub unsafe fn run(
        &self,
        inputs: &[*const u8],
        outputs: &[*mut u8],
        rows: usize,
        context: &mut Context,
    ) -> Result<(), Failed> {
        let mut progress = Progress { next: 0, end: rows };
        loop {
            if let Some(wide) = &self.wide {
                progress.end = rows;
                // SAFETY: ROWS, promised by the caller; CODE-ALIVE: the pages live as long as self.
                unsafe { (wide.function)(inputs.as_ptr(), outputs.as_ptr(), &raw mut progress, context) };
                progress.end = rows.min(progress.next + self.lanes.count());
            }
            if progress.next == rows {
                return Ok(());
            }
            // SAFETY: ROWS, promised by the caller; CODE-ALIVE: the pages live as long as self.
            let status =
                unsafe { (self.single.function)(inputs.as_ptr(), outputs.as_ptr(), &raw mut progress, context) };
            if status != STATUS_OK {
                return Err(Failed { row: progress.next });
            }
        }
    }
}

/// Compiles a finished tape to a loop over arrays: a number goes to an array of its type, a mask to one of bytes that are 0
/// or 1. Instructions that no output and no fault needs are left out.
///
/// # Errors
/// The machine is not supported, the code exceeds a limit of the budget, or there is no memory for it.
pub fn compile(tape: &Tape, lanes: Lanes, budget: &Budget) -> Result<RowFunction, Error> {
    compile_for(&host(Tier::Optimised)?.fast, tape, lanes, budget)
}

fn compile_for(isa: &OwnedTargetIsa, tape: &Tape, lanes: Lanes, budget: &Budget) -> Result<RowFunction, Error> {
    let wide = match lanes {
        Lanes::One => None,
        Lanes::Two | Lanes::Four if !isa.has_round() => {
            return Err(Error::new(ErrorKind::Unsupported, "lanes need a processor with SSE4.1"));
        }
        Lanes::Two | Lanes::Four => Some(code(isa, tape, lanes, budget)?),
    };
    Ok(RowFunction { wide, single: code(isa, tape, Lanes::One, budget)?, lanes })
}

fn code(isa: &OwnedTargetIsa, tape: &Tape, lanes: Lanes, budget: &Budget) -> Result<Code, Error> {
    let failed = |message: String| Error::new(ErrorKind::CodeGenerator, message);
    // The code generator may panic on what it does not support.
    let made = catch_unwind(AssertUnwindSafe(|| {
        let mut context = cranelift_codegen::Context::new();
        let mut scratch = FunctionBuilderContext::new();
        let mut builder = FunctionBuilder::new(&mut context.func, &mut scratch);
        strips::build(&mut builder, &**isa, tape, lanes);
        builder.finalize(isa.frontend_config());
        context
            .compile(&**isa, &mut ControlPlane::default())
            .map_err(|e| failed(format!("the code generator refused the tape: {}", e.inner)))?;
        Ok::<_, Error>(context)
    }));
    let context = made.unwrap_or_else(|_| Err(failed("the code generator failed on the tape".to_owned())))?;
    let code = context.compiled_code().ok_or_else(|| failed("no code was made".to_owned()))?;
    check_alone(code, budget)?;
    let pages = publish(code.code_buffer())?;
    // SAFETY: CODE-ENTRY: the pages start with a function of this signature, compiled just above.
    let function = unsafe { std::mem::transmute::<*const u8, Loop>(pages.as_ptr()) };
    Ok(Code { pages, function })
}
