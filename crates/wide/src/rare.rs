//! Calls of scalar functions for single lanes, in cold code outside of the loop. The code stores the vectors on the stack,
//! calls a function of the runtime for the lanes that need it, and returns with all registers restored.

use crate::encode::{Assembler, Code, Gpr, Label, Length, Memory, Operands, Prefix, Rm};
use crate::homes::{ARRAYS, FAILED, PORTS};
use crate::isa::{Isa, MOST_ARGUMENTS};
use crate::program::{Class, Info};
use crate::registers::{PreservedRegister, Registers, RestoreMethod};
use cembra_runtime::RuntimeFn;
use std::ops::Range;

/// The bytes reserved for a vector on the stack: those of the widest vector.
const VECTOR: usize = 64;

/// The stack size in bytes that a call of a scalar function needs: for its arguments, its result and all registers.
pub(crate) const STACK: u32 = (VECTOR * (MOST_ARGUMENTS + 1 + 32) + 64) as u32;

/// The offset in bytes of the vector of results, in the stack memory of a call.
const RESULT: usize = VECTOR * MOST_ARGUMENTS;

/// The offset in bytes of the saved registers, in the stack memory of a call; vectors come first.
const SAVED: usize = RESULT + VECTOR;

/// A position in a loop that calls a scalar function for single lanes.
#[derive(Clone, Debug)]
pub(crate) struct Site {
    /// The label of the loop's jump to the code that calls the function.
    pub(crate) jump: Label,
    /// The position in the code to return to after the call.
    pub(crate) back: usize,
    pub(crate) function: RuntimeFn,
    /// The register and the properties of the mask, which is set in the lanes that the function is called for.
    pub(crate) mask: (u8, Info),
    /// The vector registers that hold the arguments of the called function.
    pub(crate) arguments: [u8; MOST_ARGUMENTS],
    /// The register and the length of the vector of results. Before the call, the register holds the results for the lanes that the function is not
    /// called for.
    pub(crate) result: (u8, Length),
    /// The registers that must be restored after the call, as a range of [`Calls::waiting`].
    pub(crate) waiting: Range<usize>,
    pub(crate) rows: u32,
}

/// The parameters that all calls of scalar functions in a loop share.
pub(crate) struct Calls<'a> {
    pub(crate) registers: &'a Registers,
    pub(crate) isa: Isa,
    /// The offset from `rsp` of the stack memory that calls use, which has [`STACK`] bytes.
    pub(crate) stack: u32,
    /// The number of pointers that the loop was called with. Called functions may overwrite the registers that hold
    /// some of them, so these are loaded again.
    pub(crate) ports: usize,
    pub(crate) faults: bool,
    pub(crate) waiting: &'a [PreservedRegister],
}

impl Calls<'_> {
    fn place(&self, offset: usize) -> Memory {
        Memory::at(Gpr::Rsp, (self.stack + offset as u32).cast_signed())
    }

    /// Returns the stack memory where a register is saved during a call.
    fn saved(&self, class: Class, register: u8) -> Memory {
        match class {
            Class::Vector => self.place(SAVED + VECTOR * usize::from(register)),
            Class::Mask => self.place(SAVED + VECTOR * 32 + 8 * usize::from(register)),
        }
    }

    /// The register that collects the rows that failed, if any can fail; it must be saved too.
    fn failed(&self) -> Option<(Class, u8)> {
        self.faults.then_some(if self.isa == Isa::Avx512 { (Class::Mask, 0) } else { (Class::Vector, FAILED) })
    }

    /// Writes the code that the loop jumps to at `site`: the call for each lane of the mask.
    pub(crate) fn write(&self, asm: &mut Assembler, site: &Site) {
        let registers = self.registers;
        let start = asm.position();
        asm.bind(site.jump, start);
        let whole = registers.whole();
        let store = |asm: &mut Assembler, register: u8, to: Memory| {
            asm.vector(registers.prefix(), Code::Store32, whole, Operands::new(register, 0, Rm::Memory(to)));
        };
        let waiting = &self.waiting[site.waiting.clone()];
        for kept in waiting.iter().filter(|kept| kept.back == RestoreMethod::Saved) {
            let to = self.saved(kept.info.class, kept.register);
            registers.move_slot(asm, kept.info.class, kept.register, to, true);
        }
        if let Some((class, register)) = self.failed() {
            registers.move_slot(asm, class, register, self.saved(class, register), true);
        }
        let (takes, _) = site.function.signature();
        for (number, register) in site.arguments.iter().take(takes.len()).enumerate() {
            store(asm, *register, self.place(VECTOR * number));
        }
        store(asm, site.result.0, self.place(RESULT));
        let (mask, info) = &site.mask;
        let (code, length) = match (info.class, info.element) {
            (Class::Mask, _) => (Code::IntegerFromMask, Length::X),
            (Class::Vector, 8) => (Code::SignsOf64, info.length),
            (Class::Vector, _) => (Code::SignsOf32, info.length),
        };
        asm.vector(Prefix::Vex, code, length, Operands::new(Gpr::Rsi as u8, 0, Rm::Register(*mask)));
        asm.address(Gpr::Rdi, self.place(0));
        asm.set(Gpr::Rdx, site.function as u32);
        asm.set(Gpr::Rcx, site.rows);
        asm.zero_upper();
        asm.set_wide(Gpr::Rax, address());
        asm.call(Gpr::Rax);
        for (number, register) in PORTS.iter().take(self.ports).enumerate() {
            asm.load(*register, Memory::at(ARRAYS, 8 * number as i32));
        }
        for kept in waiting {
            match kept.back {
                RestoreMethod::Saved => {
                    let from = self.saved(kept.info.class, kept.register);
                    registers.move_slot(asm, kept.info.class, kept.register, from, false);
                }
                RestoreMethod::Slot(slot) => {
                    let from = registers.slot(kept.info.class, slot);
                    registers.move_slot(asm, kept.info.class, kept.register, from, false);
                }
                RestoreMethod::Home => registers.load_home(asm, &kept.info, site.rows, kept.register),
            }
        }
        if let Some((class, register)) = self.failed() {
            registers.move_slot(asm, class, register, self.saved(class, register), false);
        }
        let result = Operands::new(site.result.0, 0, Rm::Memory(self.place(RESULT)));
        asm.vector(registers.prefix(), Code::Load32, site.result.1, result);
        let back = asm.jump();
        asm.bind(back, site.back);
    }
}

#[cfg(target_arch = "x86_64")]
fn address() -> u64 {
    // WIDE-CODE: only the code calls it.
    let function: unsafe extern "sysv64" fn(*mut u8, u32, u32, u32) = call_lanes;
    function as usize as u64
}

#[cfg(not(target_arch = "x86_64"))]
fn address() -> u64 {
    0
}

/// Calls a function of the runtime for each lane that is set in `mask`. `function` is its index in `RuntimeFn::ALL`.
/// `vectors` has the function's arguments as consecutive vectors; the results go into the vector at the offset
/// `RESULT`.
///
/// # Safety
/// WIDE-CODE: called by code of this crate, with the number of a function that it can call and its vectors.
#[cfg(target_arch = "x86_64")]
unsafe extern "sysv64" fn call_lanes(vectors: *mut u8, mask: u32, function: u32, rows: u32) {
    let Some(function) = RuntimeFn::ALL.get(function as usize) else { return };
    let (takes, gives) = function.signature();
    let mut mask = mask & (u32::MAX >> (32 - rows.clamp(1, 32)));
    while mask != 0 {
        let lane = mask.trailing_zeros() as usize;
        mask &= mask - 1;
        let mut bits = [0_u64; MOST_ARGUMENTS];
        for (number, (ty, bits)) in takes.iter().zip(&mut bits).enumerate() {
            let size = usize::from(crate::isa::element(*ty));
            // SAFETY: WIDE-CODE: the lane is one of the vector of this argument.
            unsafe {
                let from = vectors.add(VECTOR * number + lane * size);
                from.copy_to_nonoverlapping((&raw mut *bits).cast(), size);
            }
        }
        // SAFETY: STRING-VIEW: functions that take texts are not called so.
        let result = unsafe { function.call_on_bits(&bits[..takes.len()]) };
        let size = usize::from(crate::isa::element(gives));
        // SAFETY: WIDE-CODE: the lane is one of the vector of results.
        unsafe {
            let to = vectors.add(RESULT + lane * size);
            to.copy_from_nonoverlapping((&raw const result).cast(), size);
        }
    }
}
