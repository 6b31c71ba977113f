//! The interpreter backend, which is used where native code is not available, and which native code is compared with in
//! tests. It runs a plan as sequences of calls of kernels (functions that compute an operator or copy a value), with
//! instructions that choose the next sequence.

mod bind;

pub use bind::bind;

use cembra_plan::{Base, CompiledLiteral, Function};
use cembra_runtime::{Call, Context, Fault, FaultKind, FramePtr, Kernel, KernelChain, STATUS_OK, Slot};

/// An instruction of the interpreter: it runs a row (a sequence of kernel calls), jumps, or checks for cancellation.
#[derive(Clone, Copy, Debug)]
enum Instruction {
    /// Runs the sequence of calls that begins at `position` in the kernel chain, one after the other without decisions.
    Row { position: u32 },
    /// Jumps to the instruction `target` if the byte at offset `byte` of the frame is 0.
    JumpIfNot { byte: u32, target: u32 },
    /// Jumps to the instruction `target`, the begin of a loop's round, if the byte at offset `byte` of the frame is not
    /// 0. Fails if the evaluation is cancelled or, for a loop that `is_counted`, if the limit on loop rounds is
    /// reached.
    Repeat { byte: u32, target: u32, is_counted: bool, site: u32 },
    /// Jumps to the instruction `target`.
    Jump { target: u32 },
    /// Fails if the evaluation is cancelled. This check is a separate instruction, so that short plans can omit it.
    Poll,
}

/// A plan that is prepared for the interpreter: a function that evaluates the plan once per call.
#[derive(Debug)]
pub struct Interpreted {
    /// The kernel calls of the whole plan, as sequences without decisions. The first sequence begins at position 0 and
    /// needs no instruction to run it, because a small model often has no other.
    calls: KernelChain,
    /// The instructions to run after the first sequence of kernel calls.
    instructions: Vec<Instruction>,
    /// The compiled states of operators, such as regular expressions, to which calls have pointers.
    states: Vec<CompiledLiteral>,
}

impl Interpreted {
    /// Runs the instructions that follow the first sequence of kernel calls. Returns the status of the evaluation.
    ///
    /// # Safety
    /// CALL, and the first row must have been run.
    unsafe fn go_on(&self, frame: FramePtr, context: &mut Context) -> i32 {
        let mut at = 0;
        let mut rounds = context.iterations();
        while let Some(instruction) = self.instructions.get(at) {
            at += 1;
            match instruction {
                Instruction::Row { position } => {
                    // SAFETY: KERNEL-ROW: a row begins there.
                    let status = unsafe { self.calls.call(*position as usize).run(context, frame) };
                    if status != STATUS_OK {
                        return status;
                    }
                }
                Instruction::JumpIfNot { byte, target } => {
                    // SAFETY: FRAME-SLOT: the byte is the presence of a mask in the plan's layout.
                    if unsafe { frame.read(Slot::<u8>::at(*byte)) } == 0 {
                        at = *target as usize;
                    }
                }
                Instruction::Repeat { byte, target, is_counted, site } => {
                    // SAFETY: FRAME-SLOT: the byte is the presence of a mask in the plan's layout.
                    if unsafe { frame.read(Slot::<u8>::at(*byte)) } != 0 {
                        if context.poll_cancelled() {
                            return context.fail(Fault::new(FaultKind::Cancelled));
                        }
                        if *is_counted && rounds == 0 {
                            let status = context.fail(Fault::with(FaultKind::IterationLimit, context.iterations()));
                            context.set_site(*site);
                            return status;
                        }
                        rounds -= u64::from(*is_counted);
                        at = *target as usize;
                    }
                }
                Instruction::Jump { target } => at = *target as usize,
                Instruction::Poll if context.poll_cancelled() => {
                    return context.fail(Fault::new(FaultKind::Cancelled));
                }
                Instruction::Poll => {}
            }
        }
        STATUS_OK
    }
}

impl Function for Interpreted {
    // SAFETY: CALL, as the trait says.
    unsafe fn call(&self, input: FramePtr, output: FramePtr, frame: FramePtr, context: &mut Context) -> i32 {
        // SAFETY: CALL, promised by the caller, for the structs. KERNEL-ROW: the first row begins at the start. CALL,
        // promised by the caller, gives a frame of the plan's layout and the structs that are bound; slots have the
        // types of the overloads (FRAME-SLOT), and the plan was verified to write each before it is read.
        unsafe {
            context.set_structs(input, output);
            let status = self.calls.call(0).run(context, frame);
            if status != STATUS_OK || self.instructions.is_empty() { status } else { self.go_on(frame, context) }
        }
    }

    fn memory_bytes(&self) -> usize {
        let states = self.states.len() * size_of::<CompiledLiteral>();
        self.instructions.len() * size_of::<Instruction>() + self.calls.memory_bytes() + states
    }
}

/// Returns the kernel that copies `size` bytes from the memory area `from` to the memory area `to`. One of the areas
/// must be the frame. The arguments of a call are the offset in each area, then the size.
fn copies(from: Base, to: Base, size: u32) -> Kernel {
    match (from, to) {
        (Base::Frame, Base::Frame) => sized::<FRAME, FRAME>(size),
        (Base::Frame, Base::Input) => sized::<FRAME, INPUT>(size),
        (Base::Frame, Base::Output) => sized::<FRAME, OUTPUT>(size),
        (Base::Input, _) => sized::<INPUT, FRAME>(size),
        (Base::Output, _) => sized::<OUTPUT, FRAME>(size),
    }
}

const FRAME: u8 = Base::Frame as u8;
const INPUT: u8 = Base::Input as u8;
const OUTPUT: u8 = Base::Output as u8;

/// Returns a copy kernel that is compiled for the constant size `size` if there is one, because such a copy is a single
/// move. Otherwise returns the kernel for any size.
fn sized<const FROM: u8, const TO: u8>(size: u32) -> Kernel {
    match size {
        1 => copy::<FROM, TO, 1>,
        4 => copy::<FROM, TO, 4>,
        8 => copy::<FROM, TO, 8>,
        16 => copy::<FROM, TO, 16>,
        _ => copy::<FROM, TO, 0>,
    }
}

// SAFETY: KERNEL-ROW and CALL, promised by whoever runs the row.
unsafe extern "C" fn copy<const FROM: u8, const TO: u8, const SIZE: u32>(
    context: &mut Context,
    frame: FramePtr,
    call: Call,
) -> i32 {
    let memory = |base| match base {
        INPUT => context.input(),
        OUTPUT => context.output(),
        _ => frame,
    };
    let (source, target) = (memory(FROM), memory(TO));
    // SAFETY: KERNEL-ROW, promised by the caller; CALL: both places hold a value of the type whose size this is.
    unsafe {
        let size = if SIZE == 0 { call.slot(2) } else { SIZE };
        source.copy_to(call.slot(0), target, call.slot(1), size);
        call.go_on(3, context, frame)
    }
}
