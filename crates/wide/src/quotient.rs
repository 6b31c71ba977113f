//! The machine code of a loop that divides rows after all, where a product with the parts of the divisor is not right for one of them.
//! What those parts are is in `divisor`; which instructions of a tape become products is decided by `select`.

use crate::encode::{Assembler, Code, Label, Length, Operands, Rm};
use crate::program::Info;
use crate::registers::Registers;

/// A place of a loop where rows are divided after all, if one of them asks for that.
#[derive(Clone, Debug)]
pub(crate) struct Division {
    /// The jump away.
    pub(crate) jump: Label,
    /// Where to come back to.
    pub(crate) back: usize,
    /// The register of what is divided.
    pub(crate) dividend: u8,
    /// Where the divisor is.
    pub(crate) divisor: Info,
    /// That of the quotient.
    pub(crate) result: (u8, Length),
    pub(crate) rows: u32,
}

impl Division {
    /// Writes what the place jumps to: all lanes are divided.
    pub(crate) fn write(&self, asm: &mut Assembler, registers: &Registers) {
        let start = asm.position();
        asm.bind(self.jump, start);
        let (result, length) = self.result;
        registers.load_home(asm, &self.divisor, self.rows, result);
        let code = if self.divisor.element == 8 { Code::Div64 } else { Code::Div32 };
        let operands = Operands::new(result, self.dividend, Rm::Register(result));
        asm.vector(registers.prefix(), code, length, operands);
        let back = asm.jump();
        asm.bind(back, self.back);
    }
}
