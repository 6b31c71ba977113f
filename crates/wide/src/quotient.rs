//! The code that divides a vector of rows if a multiplication by the divisor's inverse is not exact for one of the rows. `divisor` describes the
//! method; `select` decides which divisions become multiplications.

use crate::encode::{Assembler, Code, Label, Length, Operands, Rm};
use crate::program::Info;
use crate::registers::Registers;

/// A jump from a loop to code that divides a vector of rows. The jump is taken if a multiplication by the divisor's inverse is not exact for one of
/// these rows.
#[derive(Clone, Debug)]
pub(crate) struct Division {
    /// The label of the loop's jump to the division.
    pub(crate) jump: Label,
    /// The position in the code to return to after the division.
    pub(crate) back: usize,
    /// The vector register that holds the dividend of the division.
    pub(crate) dividend: u8,
    /// The home (memory) from which the division loads the divisor, and the divisor's sizes.
    pub(crate) divisor: Info,
    /// The vector register for the quotient, and its length.
    pub(crate) result: (u8, Length),
    pub(crate) rows: u32,
}

impl Division {
    /// Writes the code that the loop jumps to, which divides all lanes and jumps back.
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
