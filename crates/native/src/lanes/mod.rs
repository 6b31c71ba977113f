//! Tapes on arrays: a tape, which is a straight-line program, is compiled to a loop over rows that computes two or four rows at
//! a time in vectors, and the last rows singly. The input is only the tape and a description of its arrays, without a plan, a
//! frame or conditionals.
//!
//! Code that computes several rows at once only finds out whether any of these rows fails, and does so before it stores their results. Such code
//! records no faults: to learn which row fails and why, the caller must run the rows again.

mod player;
mod ports;
mod strips;
#[cfg(test)]
mod tests;
mod vectors;

use crate::artifact::{Tier, check_alone, host, publish};
use crate::error::{Error, ErrorKind};
use cembra_runtime::{CodePages, Context, MachineType, STATUS_OK};
use cembra_tape::{CanPlay, Instr, Port, Tape, TapeLoop, Un};
use cembra_value::Budget;
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::isa::OwnedTargetIsa;
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// The number of rows that vector code computes at a time. The bits of results do not depend on it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Lanes {
    /// The code computes a single row at a time, by the same instructions as a single evaluation.
    One,
    /// The code computes two rows at a time: 64-bit numbers fill a 128-bit vector.
    Two,
    /// The code computes four rows at a time: 32-bit numbers fill a 128-bit vector, 64-bit numbers fill two.
    Four,
}

impl Lanes {
    /// The numbers of rows that code can compute at a time.
    pub const ALL: [Lanes; 3] = [Lanes::One, Lanes::Two, Lanes::Four];

    /// The number of rows that are computed at a time.
    #[must_use]
    pub const fn count(self) -> usize {
        match self {
            Lanes::One => 1,
            Lanes::Two => 2,
            Lanes::Four => 4,
        }
    }

    /// Returns the number of lanes with which the widest numbers of a tape fill one vector. Only live instructions
    /// count.
    fn of(tape: &Tape) -> Lanes {
        // All other numbers are as wide as their operands.
        let made = |instr: &Instr| match instr {
            Instr::Input(ty) | Instr::Const(ty, _) | Instr::Un(Un::Convert(ty), _) => Some(*ty),
            Instr::Call(function, _) => Some(function.signature().1),
            _ => None,
        };
        let mut live = tape.instrs().iter().zip(tape.live()).filter(|(_, live)| **live);
        let is_wide = live.any(|(instr, _)| matches!(made(instr), Some(MachineType::I64 | MachineType::F64)));
        if is_wide { Lanes::Two } else { Lanes::Four }
    }
}

/// The type of the compiled function: a loop over the rows of arrays. It takes the addresses of the arrays, the number
/// of rows and the context, and returns `STATUS_OK` or the status of a failure.
///
/// # Safety
/// The pointers must be to the arrays of all inputs, then of all outputs, each with an element per row (rule PORTS in
/// `docs/safety.md`).
type Loop = unsafe extern "C" fn(*const *mut u8, usize, *mut Context) -> i32;

/// A tape, which is a straight-line program, compiled to a loop over arrays. Its machine code lives as long as this value.
#[derive(Debug)]
pub struct LaneLoop {
    pages: Arc<CodePages>,
    function: Loop,
    bytes: usize,
}

// SAFETY: PORTS: the code accesses the elements of the rows only, and bits as the contract states.
unsafe impl TapeLoop for LaneLoop {
    // SAFETY: PORTS and STRING-VIEW, promised by the caller.
    unsafe fn play(&self, ports: &[*mut u8], rows: usize, context: &mut Context) -> bool {
        // SAFETY: PORTS, promised by the caller; CODE-ALIVE: the pages live as long as self.
        unsafe { (self.function)(ports.as_ptr(), rows, context) != STATUS_OK }
    }

    fn pages(&self) -> Option<&CodePages> {
        Some(&self.pages)
    }

    fn code_bytes(&self) -> usize {
        self.bytes
    }
}

/// Returns the function that tells which instructions of a tape can be compiled to vector code: all of them. An instruction without a vector form is
/// computed lane by lane.
#[must_use]
pub fn can_play() -> CanPlay {
    |_, _| true
}

/// Compiles a finished tape to a loop over arrays, with the number of lanes that suits its types. `inputs` and `outputs` describe the memory layout
/// of each array; an output without a description has one element per row. An instruction is left out if neither an output nor a fault needs it.
///
/// # Errors
/// If the machine is not supported, the tape cannot have these array layouts, the machine code exceeds a limit of the budget,
/// or there is no memory for it.
pub fn compile(tape: &Tape, inputs: &[Port], outputs: &[Port], budget: &Budget) -> Result<LaneLoop, Error> {
    let isa = host(Tier::Optimised)?.fast;
    // Lanes need SSE4.1.
    let lanes = if isa.has_round() { Lanes::of(tape) } else { Lanes::One };
    compile_for(&isa, tape, [inputs, outputs], lanes, budget)
}

/// Compiles a finished tape as [`compile`] does, but with the given number of lanes, so that callers can compare numbers of lanes.
///
/// # Errors
/// The errors of [`compile`], or an error if the machine does not have the vector instructions that several lanes need.
pub fn compile_in(
    lanes: Lanes,
    tape: &Tape,
    inputs: &[Port],
    outputs: &[Port],
    budget: &Budget,
) -> Result<LaneLoop, Error> {
    let isa = host(Tier::Optimised)?.fast;
    if lanes != Lanes::One && !isa.has_round() {
        return Err(Error::new(
            ErrorKind::Unsupported,
            "evaluating several rows at once needs a processor with SSE4.1",
        ));
    }
    compile_for(&isa, tape, [inputs, outputs], lanes, budget)
}

fn compile_for(
    isa: &OwnedTargetIsa,
    tape: &Tape,
    [inputs, outputs]: [&[Port]; 2],
    lanes: Lanes,
    budget: &Budget,
) -> Result<LaneLoop, Error> {
    if !Port::fit(inputs, outputs, tape) {
        return Err(Error::new(
            ErrorKind::Columns,
            "the memory layouts of the columns do not fit the inputs and outputs of the tape",
        ));
    }
    let failed = |message: String| Error::new(ErrorKind::CodeGenerator, message);
    // The code generator may panic on input that it does not support.
    let made = catch_unwind(AssertUnwindSafe(|| {
        let mut context = cranelift_codegen::Context::new();
        let mut scratch = FunctionBuilderContext::new();
        let mut builder = FunctionBuilder::new(&mut context.func, &mut scratch);
        strips::build(&mut builder, &**isa, tape, [inputs, outputs], lanes);
        builder.finalize(isa.frontend_config());
        context
            .compile(&**isa, &mut ControlPlane::default())
            .map_err(|e| failed(format!("the code generator refused the tape: {}", e.inner)))?;
        Ok::<_, Error>(context)
    }));
    let context = made.unwrap_or_else(|_| Err(failed("the code generator failed on the tape".to_owned())))?;
    let code = context.compiled_code().ok_or_else(|| failed("the code generator made no code".to_owned()))?;
    check_alone(code, budget)?;
    let (pages, bytes) = (publish(code.code_buffer())?, code.code_buffer().len());
    // SAFETY: CODE-ENTRY: the pages start with a function of this signature, compiled just above.
    let function = unsafe { std::mem::transmute::<*const u8, Loop>(pages.as_ptr()) };
    Ok(LaneLoop { pages, function, bytes })
}
