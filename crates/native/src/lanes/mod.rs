//! Tapes on arrays: a tape compiled to a loop over rows that plays it on two or four of them at a time, and on single ones at
//! the end. There is no plan here, no frame and no conditional, only a tape and its ports.
//!
//! Of several lanes the loop only finds out that some fail, before it stores any of them: which, and why, is for whoever runs
//! the rows again. So code in lanes needs no record of who failed and where.

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

    /// As many as the widest numbers of a tape that are needed fill a vector with.
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

/// A loop over the rows of arrays.
///
/// # Safety
/// PORTS: pointers to the arrays of all inputs, then of all outputs, as long as there are rows.
type Loop = unsafe extern "C" fn(*const *mut u8, usize, *mut Context) -> i32;

/// A tape as a loop over arrays. Its code lives as long as it does.
#[derive(Debug)]
pub struct LaneLoop {
    pages: Arc<CodePages>,
    function: Loop,
    bytes: usize,
}

// SAFETY: PORTS: the code loads and stores the elements of rows alone, and bits as the contract says.
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

/// What can be played in lanes: everything. What the processor does one by one is done lane by lane.
#[must_use]
pub fn can_play() -> CanPlay {
    |_, _| true
}

/// Compiles a finished tape to a loop over arrays, with as many lanes as suit its numbers; the ports say how each input lies in
/// memory, and each output, if not in rows. Instructions that no output and no fault needs are left out.
///
/// # Errors
/// The machine is not supported, the tape cannot have these ports, the code exceeds a limit of the budget, or there is no memory
/// for it.
pub fn compile(tape: &Tape, inputs: &[Port], outputs: &[Port], budget: &Budget) -> Result<LaneLoop, Error> {
    let isa = host(Tier::Optimised)?.fast;
    // Without SSE4.1 there are no lanes.
    let lanes = if isa.has_round() { Lanes::of(tape) } else { Lanes::One };
    compile_for(&isa, tape, [inputs, outputs], lanes, budget)
}

/// The same with a number of lanes, to compare them.
///
/// # Errors
/// As for `compile`, or the machine has no lanes.
pub fn compile_in(
    lanes: Lanes,
    tape: &Tape,
    inputs: &[Port],
    outputs: &[Port],
    budget: &Budget,
) -> Result<LaneLoop, Error> {
    let isa = host(Tier::Optimised)?.fast;
    if lanes != Lanes::One && !isa.has_round() {
        return Err(Error::new(ErrorKind::Unsupported, "lanes need a processor with SSE4.1"));
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
        return Err(Error::new(ErrorKind::Columns, "the tape's inputs and outputs cannot have these ports"));
    }
    let failed = |message: String| Error::new(ErrorKind::CodeGenerator, message);
    // The code generator may panic on what it does not support.
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
    let code = context.compiled_code().ok_or_else(|| failed("no code was made".to_owned()))?;
    check_alone(code, budget)?;
    let (pages, bytes) = (publish(code.code_buffer())?, code.code_buffer().len());
    // SAFETY: CODE-ENTRY: the pages start with a function of this signature, compiled just above.
    let function = unsafe { std::mem::transmute::<*const u8, Loop>(pages.as_ptr()) };
    Ok(LaneLoop { pages, function, bytes })
}
