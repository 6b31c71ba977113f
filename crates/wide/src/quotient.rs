//! The code that divides rows if a product with the divisor's parts is not right for one of them. `divisor` describes the parts;
//! `select` decides which divisions become products.

use crate::encode::{Assembler, Code, Label, Length, Operands, Rm};
use crate::program::Info;
use crate::registers::Registers;

/// A place in a loop that jumps to a division if a row requires it.
#[derive(Clone, Debug)]
pub(crate) struct Division {
    /// The jump to the division.
    pub(crate) jump: Label,
    /// The position to return to.
    pub(crate) back: usize,
    /// The register of the dividend.
    pub(crate) dividend: u8,
    /// The divisor, which has a home.
    pub(crate) divisor: Info,
    /// The register and the length of the quotient.
    pub(crate) result: (u8, Length),
    pub(crate) rows: u32,
}

impl Division {
    /// Writes the code that a place jumps to, which divides all lanes.
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
