//! Instruction selection for numbers: arithmetic, conversions and selections. An operation that the instruction set lacks is composed of other
//! operations. If several backends need the same composition, it is defined once, in `cembra_tape`.

use super::{Selector, by_element, by_type};
use crate::encode::{Code, Length};
use crate::isa::element;
use crate::program::{MachineOpKind, Op, Value, ValueMemory};
use cembra_runtime::MachineType;
use cembra_tape::{Bin, Cmp, Instr, Shift, Tape, Un, scaling, splitting};

/// The immediate of the mantissa instruction for mantissas from 3/4 to below 3/2, with the operand's sign.
const FROM_THREE_QUARTERS: u8 = 3;

/// The number of preceding instructions searched for the one that computed an integer.
const NEAR: usize = 8;
/// The number of preceding instructions searched for the one that computed the power of a scaling.
const FAR: usize = 48;

impl Selector<'_> {
    /// Selects the machine instruction `code` on one operand, whose result is as wide as the operand.
    fn one(&mut self, code: Code, a: Value, immediate: u8) -> Value {
        let element = self.program.info(a).element;
        let length = self.length(element);
        self.plain(code, element, length, [Value::NONE, a], immediate)
    }

    /// Selects the machine instruction `code` on two operands, whose result is as wide as the operands.
    pub(super) fn two(&mut self, code: Code, a: Value, b: Value) -> Value {
        let element = self.program.info(a).element;
        let length = self.length(element);
        self.plain(code, element, length, [a, b], 0)
    }

    /// Returns the constant in which only the sign bit of an element is set.
    fn sign(&mut self, element: u8) -> Value {
        self.constant(1 << (8 * element - 1), element)
    }

    pub(super) fn unary(&mut self, op: Un, ty: MachineType, a: Value) -> Value {
        let element = element(ty);
        match op {
            Un::Neg if ty.is_float() => {
                let sign = self.sign(element);
                self.two(by_element(element, [Code::Xor32, Code::Xor64]), a, sign)
            }
            Un::Neg => {
                let zero = self.constant(0, element);
                self.two(by_element(element, [Code::SubInt32, Code::SubInt64]), zero, a)
            }
            Un::Abs if ty.is_float() => {
                let rest = self.constant(u64::MAX >> (65 - 8 * u32::from(element)), element);
                self.two(by_element(element, [Code::And32, Code::And64]), a, rest)
            }
            Un::Abs if element == 8 && !self.is_avx512() => {
                let zero = self.constant(0, element);
                let negative = self.two(Code::Greater64, zero, a);
                let flipped = self.two(Code::XorVector, a, negative);
                self.two(Code::SubInt64, flipped, negative)
            }
            Un::Abs => self.one(by_element(element, [Code::AbsInt32, Code::AbsInt64]), a, 0),
            Un::Sqrt => self.one(by_element(element, [Code::Sqrt32, Code::Sqrt64]), a, 0),
            // The immediates suppress the exception for inexact results.
            Un::Floor => self.round(element, a, 9),
            Un::Ceil => self.round(element, a, 10),
            Un::Trunc => self.round(element, a, 11),
            Un::Bitcast(_) => a,
            Un::Convert(to) => self.convert(ty, to, a),
            Un::Mantissa | Un::Exponent if !self.is_avx512() => {
                self.expand(splitting(ty), &[a], usize::from(op == Un::Exponent))
            }
            Un::Mantissa => self.mantissa(element, a),
            Un::Exponent => {
                let exponents = by_element(element, [Code::Exponent32, Code::Exponent64]);
                let mantissa = self.mantissa(element, a);
                let exponent = self.one(exponents, a, 0);
                // A mantissa below one has the exponent -1. Subtracting it adds one to the result.
                let doubled = self.one(exponents, mantissa, 0);
                self.two(by_element(element, [Code::Sub32, Code::Sub64]), exponent, doubled)
            }
        }
    }

    fn round(&mut self, element: u8, a: Value, how: u8) -> Value {
        let codes =
            if self.is_avx512() { [Code::Round32, Code::Round64] } else { [Code::RoundVector32, Code::RoundVector64] };
        self.one(by_element(element, codes), a, how)
    }

    fn mantissa(&mut self, element: u8, a: Value) -> Value {
        if let Some((_, known)) = self.selection.mantissas.iter().rev().take(4).find(|(operand, _)| *operand == a) {
            return *known;
        }
        let made = self.one(by_element(element, [Code::Mantissa32, Code::Mantissa64]), a, FROM_THREE_QUARTERS);
        self.selection.mantissas.push((a, made));
        made
    }

    fn convert(&mut self, from: MachineType, to: MachineType, a: Value) -> Value {
        use MachineType::{F32, F64, I32, I64};
        if !self.is_avx512() {
            match (from, to) {
                (I64, F64 | F32) => return self.long_to_float(a, to),
                (F64, I64) => return self.float_to_long(a),
                (F32, I64) => {
                    let wide = self.convert(F32, F64, a);
                    return self.float_to_long(wide);
                }
                _ => {}
            }
        }
        let code = match (from, to) {
            (I32, I64) => Code::WidenInt,
            (I32, F32) => Code::IntToFloat32,
            (I32, F64) => Code::IntToFloat32x64,
            (I64, I32) if !self.is_avx512() => return self.even_words(a),
            (I64, I32) => {
                let length = self.length(8);
                return self.plain(Code::NarrowInt, 4, length, [a, Value::NONE], 0);
            }
            (I64, F32) => Code::IntToFloat64x32,
            (I64, F64) => Code::IntToFloat64,
            (F32, F64) => Code::Widen,
            (F64, F32) => Code::Narrow,
            (F32, I32) => Code::FloatToInt32,
            (F32, I64) => Code::FloatToInt32x64,
            (F64, I32) => Code::FloatToInt64x32,
            (F64, I64) => Code::FloatToInt64,
            _ => return a,
        };
        let length: Length = self.length(element(from).max(element(to)));
        self.plain(code, element(to), length, [Value::NONE, a], 0)
    }

    /// Converts a 64-bit integer to a float with AVX2, which has no instruction for it. Each half becomes a float
    /// exactly, with an exponent of its own, and their sum is rounded once.
    fn long_to_float(&mut self, a: Value, to: MachineType) -> Value {
        // 2^84, for the upper half with an inverted sign.
        let turned = self.constant(0x4530_0000_8000_0000, 8);
        let upper = self.shift(Shift::Right, 8, a, 32);
        let upper = self.two(Code::XorVector, upper, turned);
        if to == MachineType::F64 && self.has_upper_half_only(a) {
            return self.two(Code::Sub64, upper, turned);
        }
        // 2^52, whose low bits take the lower half, and the sum of both offsets.
        let [low, unit] = [0xFFFF_FFFF, 0x4330_0000_0000_0000].map(|bits| self.constant(bits, 8));
        let both = self.constant(0x4530_0000_8010_0000, 8);
        let lower = self.two(Code::AndVector, a, low);
        let lower = self.two(Code::OrVector, lower, unit);
        let upper = self.two(Code::Sub64, upper, both);
        let sum = self.two(Code::Add64, upper, lower);
        if to == MachineType::F64 {
            return sum;
        }
        // A sum that was rounded is made odd, so that rounding it to fewer digits gives the same as rounding the exact sum. If
        // the sum is even and inexact, it is replaced by the other neighbour of the exact sum.
        let rounded = self.two(Code::Sub64, sum, upper);
        let lost = self.two(Code::Sub64, lower, rounded);
        let [zero, one] = [0, 1].map(|bits| self.constant(bits, 8));
        let digit = self.two(Code::AndVector, sum, one);
        let is_even = self.two(Code::Equal64, digit, zero);
        let is_inexact = self.compared(Cmp::Ne, [lost, zero], true);
        let changes = self.two(Code::AndVector, is_even, is_inexact);
        // All ones where the sum and the lost part differ in sign: then the other neighbour is nearer to zero.
        let signs = self.two(Code::XorVector, sum, lost);
        let nearer = self.two(Code::Greater64, zero, signs);
        let step = self.two(Code::OrVector, nearer, one);
        let step = self.two(Code::AndVector, step, changes);
        let odd = self.two(Code::AddInt64, sum, step);
        self.convert(MachineType::F64, MachineType::F32, odd)
    }

    /// Returns true if a recent instruction cleared the lower half of a 64-bit integer, as when the exponent of a float
    /// is taken.
    fn has_upper_half_only(&self, value: Value) -> bool {
        let Some(op) = self.program.ops.iter().rev().take(NEAR).find(|op| op.result == value) else { return false };
        let cuts = |operand: &Value| match operand.is_some().then(|| self.program.info(*operand).home) {
            Some(ValueMemory::Pool(offset)) => self.program.pool[offset as usize / 8] << 32 == 0,
            _ => false,
        };
        op.kind == MachineOpKind::Plain(Code::AndVector) && op.operands.iter().any(cuts)
    }

    /// Converts a float below 2^63 to a 64-bit integer without its fraction, with AVX2, which has no instruction for
    /// it. Both halves are exact, and are read from the low bits of floats with an exponent of their own.
    fn float_to_long(&mut self, a: Value) -> Value {
        let [down, up] = [(-32_f64).exp2(), -(32_f64.exp2())].map(|value| self.constant(value.to_bits(), 8));
        // The offsets for a half with a sign, and for one without.
        let [signed, unit] = [0x4338_0000_0000_0000, 0x4330_0000_0000_0000].map(|bits| self.constant(bits, 8));
        let whole = self.round(8, a, 11);
        let upper = self.two(Code::Mul64, whole, down);
        let upper = self.round(8, upper, 9);
        let lower = self.fma([upper, up, whole], 0);
        let upper = self.two(Code::Add64, upper, signed);
        let upper = self.shift(Shift::Left, 8, upper, 32);
        let lower = self.two(Code::Add64, lower, unit);
        let lower = self.two(Code::XorVector, lower, unit);
        self.two(Code::OrVector, upper, lower)
    }

    pub(super) fn binary(&mut self, op: Bin, ty: MachineType, a: Value, b: Value) -> Value {
        let element = element(ty);
        let (op, a, b) = match op {
            Bin::Mul if self.is_two(ty, a) => (Bin::Mul, b, a),
            _ => (op, a, b),
        };
        let code = match op {
            // An addition needs no constant.
            Bin::Mul if self.is_two(ty, b) => {
                let code = by_type(ty, [Code::Add32, Code::Add64], [Code::AddInt32, Code::AddInt64]);
                return self.two(code, a, a);
            }
            Bin::Add => by_type(ty, [Code::Add32, Code::Add64], [Code::AddInt32, Code::AddInt64]),
            Bin::Sub => by_type(ty, [Code::Sub32, Code::Sub64], [Code::SubInt32, Code::SubInt64]),
            Bin::Mul if ty == MachineType::I64 && !self.is_avx512() => return self.long_product(a, b),
            Bin::Mul => by_type(ty, [Code::Mul32, Code::Mul64], [Code::MulInt32, Code::MulInt64]),
            Bin::Div => return self.quotient(ty, a, b),
            Bin::FMin => by_element(element, [Code::Min32, Code::Min64]),
            Bin::FMax => by_element(element, [Code::Max32, Code::Max64]),
            Bin::And if !self.is_avx512() => Code::AndVector,
            Bin::Or if !self.is_avx512() => Code::OrVector,
            Bin::Xor if !self.is_avx512() => Code::XorVector,
            Bin::And => by_element(element, [Code::AndInt32, Code::AndInt64]),
            Bin::Or => by_element(element, [Code::OrInt32, Code::OrInt64]),
            Bin::Xor => by_element(element, [Code::XorInt32, Code::XorInt64]),
            Bin::Scale if self.is_avx512() => by_element(element, [Code::Scale32, Code::Scale64]),
            Bin::Scale => return self.expand(scaling(ty), &[a, b], 0),
            Bin::Copysign => return self.copysign(element, a, b),
        };
        self.two(code, a, b)
    }

    /// Returns true for the constant 2 of a float type.
    fn is_two(&self, ty: MachineType, value: Value) -> bool {
        let ValueMemory::Pool(offset) = self.program.info(value).home else { return false };
        let bits = self.program.pool[offset as usize / 8];
        match ty {
            MachineType::F32 => bits as u32 == 2_f32.to_bits(),
            MachineType::F64 => bits == 2_f64.to_bits(),
            _ => false,
        }
    }

    fn copysign(&mut self, element: u8, a: Value, b: Value) -> Value {
        let sign = self.sign(element);
        let length = self.length(element);
        if self.is_avx512() {
            let result = self.vector(ValueMemory::None, element);
            let op = self.op(MachineOpKind::Merge, length);
            self.program.ops.push(Op { result, operands: [a, b, sign, Value::NONE], ..op });
            return result;
        }
        let sign_of_b = self.two(by_element(element, [Code::And32, Code::And64]), b, sign);
        let size_of_a = self.two(by_element(element, [Code::AndNot32, Code::AndNot64]), sign, a);
        self.two(by_element(element, [Code::Or32, Code::Or64]), size_of_a, sign_of_b)
    }

    /// Computes the low 64 bits of a product of 64-bit integers, from products of 32 by 32 bits.
    fn long_product(&mut self, a: Value, b: Value) -> Value {
        let [a_high, b_high] = [a, b].map(|value| self.shift(Shift::Right, 8, value, 32));
        let (one, other) = (self.two(Code::MulHalves, a, b_high), self.two(Code::MulHalves, a_high, b));
        let crossed = self.two(Code::AddInt64, one, other);
        let crossed = self.shift(Shift::Left, 8, crossed, 32);
        let low = self.two(Code::MulHalves, a, b);
        self.two(Code::AddInt64, low, crossed)
    }

    pub(super) fn shift(&mut self, op: Shift, element: u8, a: Value, by: u8) -> Value {
        let code = match op {
            Shift::Left => by_element(element, [Code::Left32, Code::Left64]),
            Shift::Right => by_element(element, [Code::Right32, Code::Right64]),
        };
        self.one(code, a, by)
    }

    /// Selects a blend of two vectors: `on` where the mask is set, else `off`.
    pub(super) fn blend(&mut self, mask: Value, on: Value, off: Value) -> Value {
        let element = self.program.info(on).element;
        let length = self.length(element);
        let result = self.vector(ValueMemory::None, element);
        let op = if !self.is_avx512() && self.is_zero(off) {
            let op = self.op(MachineOpKind::Plain(Code::AndVector), length);
            Op { operands: [mask, on, Value::NONE, Value::NONE], ..op }
        } else if !self.is_avx512() {
            let code = by_element(element, [Code::BlendVector32, Code::BlendVector64]);
            Op { operands: [off, on, mask, Value::NONE], ..self.op(MachineOpKind::Plain(code), length) }
        } else if self.is_zero(off) {
            let code = by_element(element, [Code::Load32, Code::Load64]);
            let op = self.op(MachineOpKind::Plain(code), length);
            Op { operands: [Value::NONE, on, Value::NONE, Value::NONE], mask, zeroing: true, ..op }
        } else {
            let code = by_element(element, [Code::Blend32, Code::Blend64]);
            Op { operands: [off, on, Value::NONE, Value::NONE], mask, ..self.op(MachineOpKind::Plain(code), length) }
        };
        self.program.ops.push(Op { result, ..op });
        result
    }

    /// Selects a scaling of `a` by the power of two `power` where the mask is set; the other lanes become zero. The other lanes are not computed, so
    /// subnormal results there take no time.
    pub(super) fn scaled_or_zero(&mut self, mask: Value, [a, power]: [Value; 2]) -> Value {
        let element = self.program.info(a).element;
        let result = self.vector(ValueMemory::None, element);
        let op =
            self.op(MachineOpKind::Plain(by_element(element, [Code::Scale32, Code::Scale64])), self.length(element));
        self.program.ops.push(Op { result, operands: [a, power, Value::NONE, Value::NONE], mask, zeroing: true, ..op });
        result
    }

    pub(super) fn is_zero(&self, value: Value) -> bool {
        matches!(self.program.info(value).home, ValueMemory::Pool(offset) if self.program.pool[offset as usize / 8] == 0)
    }

    /// Returns the minuend `m` of `difference = m - number`, if a recent instruction computed this difference; else
    /// `None`.
    fn taken_from(&self, difference: Value, number: Value) -> Option<Value> {
        let recent = self.program.ops.iter().rev().take(FAR).take_while(|op| op.kind != MachineOpKind::End);
        let made = recent.filter(|op| op.result == difference).find(|op| op.operands[1] == number)?;
        matches!(made.kind, MachineOpKind::Plain(Code::Sub32 | Code::Sub64)).then_some(made.operands[0])
    }

    /// Inlines an expansion (a tape that composes an operation of others) and returns its output with the index
    /// `output`.
    fn expand(&mut self, tape: &Tape, inputs: &[Value], output: usize) -> Value {
        let mut inputs = inputs.iter().copied();
        let mut made = std::mem::take(&mut self.selection.expanded);
        made.clear();
        for instr in tape.instrs() {
            let value = match instr {
                Instr::Input(_) => inputs.next().unwrap_or(Value::NONE),
                Instr::Const(ty, bits) => self.constant(*bits, element(*ty)),
                Instr::Un(op, a) => self.unary(*op, tape.ty(*a), made[a.index()]),
                Instr::Bin(op, a, b) => {
                    let (op, ty, a, b) = (*op, tape.ty(*a), made[a.index()], made[b.index()]);
                    // The only float additions in expansions add an offset to a power, which is exact.
                    let known = if op == Bin::Add && ty.is_float() { self.taken_from(a, b) } else { None };
                    known.unwrap_or_else(|| self.binary(op, ty, a, b))
                }
                Instr::Shift(op, a, by) => self.shift(*op, element(tape.ty(*a)), made[a.index()], *by),
                Instr::Cmp(op, a, b) => self.compared(*op, [made[a.index()], made[b.index()]], tape.ty(*a).is_float()),
                Instr::Select { mask, on, off, .. } => {
                    self.blend(made[mask.index()], made[on.index()], made[off.index()])
                }
                _ => {
                    debug_assert!(false, "an expansion must not contain the instruction `{instr:?}`");
                    Value::NONE
                }
            };
            made.push(value);
        }
        let result = made[tape.outputs()[output].index()];
        self.selection.expanded = made;
        result
    }
}
