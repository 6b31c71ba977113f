//! Instruction selection for quotients of floats: multiplications by the inverse if the divisor is a constant or shared by
//! all rows, else divisions.

use super::{Selector, by_element};
use crate::divisor::{Divisor, exact_inverse};
use crate::encode::Code;
use crate::isa::element;
use crate::program::{MachineOpKind, Op, Value, ValueMemory};
use cembra_runtime::MachineType;
use cembra_runtime::quotient::{moderate, parts};
use cembra_tape::Bin;

/// The predicate of a comparison instruction that holds where two numbers differ and neither is NaN.
const DIFFERENT: u8 = 0x0C;

impl Selector<'_> {
    pub(super) fn quotient(&mut self, ty: MachineType, a: Value, b: Value) -> Value {
        let element = element(ty);
        let constant = match self.program.info(b).home {
            ValueMemory::Pool(offset) => Some(self.program.pool[offset as usize / 8]),
            _ => None,
        };
        if let Some(reciprocal) = constant.and_then(|bits| exact_inverse(ty, bits)) {
            let reciprocal = self.constant(reciprocal, element);
            return self.binary(Bin::Mul, ty, a, reciprocal);
        }
        let parts = if self.selection.mends && self.differs(a) { self.parts(b) } else { None };
        match parts {
            Some(parts) => self.mended(a, b, parts),
            None => self.two(by_element(element, [Code::Div32, Code::Div64]), a, b),
        }
    }

    /// Returns true for a value that may have a different number in each row.
    fn differs(&self, value: Value) -> bool {
        !matches!(self.program.info(value).home, ValueMemory::Pool(_) | ValueMemory::Shared(_))
    }

    /// Returns the divisor and its inverse for a division by multiplication; `None` if rows do not share the divisor,
    /// or if a constant divisor has no inverse that can be used.
    fn parts(&mut self, divisor: Value) -> Option<[Value; 2]> {
        let info = *self.program.info(divisor);
        match info.home {
            ValueMemory::Pool(offset) => {
                let parts = parts(info.element, self.program.pool[offset as usize / 8])?;
                Some(parts.map(|bits| self.constant(bits, info.element)))
            }
            ValueMemory::Shared(port) => {
                let divisor = Divisor { port, element: info.element };
                let known = self.program.divisors.iter().position(|other| *other == divisor);
                let number = known.unwrap_or_else(|| {
                    self.program.divisors.push(divisor);
                    self.program.divisors.len() - 1
                });
                // The ports after those of the tape.
                let first = self.tape.inputs().len() + self.tape.outputs().len() + 2 * number;
                Some([first, first + 1].map(|port| self.shared(port as u32, info.element)))
            }
            _ => None,
        }
    }

    /// Selects the product of `a` with the inverse, which is then corrected. If the corrected product may be wrong in
    /// some row, all rows of the step are divided by `b` instead.
    fn mended(&mut self, a: Value, b: Value, [divisor, inverse]: [Value; 2]) -> Value {
        let element = self.program.info(a).element;
        let near = self.two(by_element(element, [Code::Mul32, Code::Mul64]), a, inverse);
        let left = self.fma([near, divisor, a], 2);
        let mended = self.fma([left, inverse, near], 1);
        let mask = self.is_not_moderate(near, a);
        let result = self.vector(ValueMemory::None, element);
        let op = self.op(MachineOpKind::Quotient(b), self.length(element));
        self.program.ops.push(Op { result, operands: [mended, a, Value::NONE, Value::NONE], mask, ..op });
        result
    }

    /// Selects the mask of rows whose product is not moderate (too large or too small for an exact correction),
    /// although the dividend is neither zero nor NaN.
    fn is_not_moderate(&mut self, product: Value, a: Value) -> Value {
        let element = self.program.info(a).element;
        let length = self.length(element);
        let zero = self.constant(0, element);
        let [added, bit] = moderate(element);
        let sum = by_element(element, [Code::AddInt32, Code::AddInt64]);
        if self.is_avx512() {
            let compares = by_element(element, [Code::Cmp32, Code::Cmp64]);
            let differs = self.tested(compares, [a, zero], DIFFERENT, Value::NONE);
            let [added, bit] = [added, bit].map(|bits| self.constant(bits, element));
            let moved = self.two(sum, product, added);
            return self.tested(by_element(element, [Code::TestNot32, Code::TestNot64]), [moved, bit], 0, differs);
        }
        let differs = self.plain(
            by_element(element, [Code::CmpVector32, Code::CmpVector64]),
            element,
            length,
            [a, zero],
            DIFFERENT,
        );
        // The sign is shifted out, so that the tested bit becomes the sign bit.
        let added = self.constant(2 * added, element);
        let twice = self.two(sum, product, product);
        let moved = self.two(sum, twice, added);
        self.two(Code::AndNotVector, moved, differs)
    }
}
