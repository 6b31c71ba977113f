//! The interpreter backend: a plan as rows of calls, of the operators' kernels and of copies, and instructions that say
//! which row comes next. It is the fallback where native code cannot be had, and the oracle native code is tested against.

mod bind;

pub use bind::bind;

use cembra_plan::{Base, CompiledLiteral, Function};
use cembra_runtime::{Call, Context, Fault, FaultKind, FramePtr, Kernel, KernelChain, STATUS_OK, Slot};

/// What to do between rows.
#[derive(Clone, Copy, Debug)]
enum Instruction {
    /// Runs the row that begins there. There is nothing to decide between its calls: they go on with each other.
    Row { position: u32 },
    /// Goes to an instruction if the byte is 0.
    JumpIfNot { byte: u32, target: u32 },
    /// Goes to an instruction if the byte is not 0 and the loop may go on.
    Repeat { byte: u32, target: u32, is_counted: bool, site: u32 },
    /// Goes to an instruction.
    Jump { target: u32 },
    /// Ends a cancelled evaluation. An instruction of its own, so that short plans pay nothing for it.
    Poll,
}

/// A plan bound for interpretation.
#[derive(Debug)]
pub struct Interpreted {
    /// The calls. The first row is at the start: small models are little else, so it is no instruction.
    calls: KernelChain,
    /// What comes after the first row.
    instructions: Vec<Instruction>,
    /// What calls point to.
    states: Vec<CompiledLiteral>,
}

impl Interpreted {
    /// Runs the instructions.
    ///
    /// # Safety
    /// CALL, and the first row was run.
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
        // SAFETY: CALL, promised by the caller, for the structs. KERNEL-ROW: the first row begins at the start. CALL, promised by the caller, gives a frame of the plan's
        // layout and the structs that are bound; slots have the types of the overloads (FRAME-SLOT), and the plan was
        // verified to write each before it is read.
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

/// The kernel that copies this many bytes from one memory to another; one of them is the frame. Its slots are the places in
/// both, then the size.
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

/// A size that is known is a move instead of a call.
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
