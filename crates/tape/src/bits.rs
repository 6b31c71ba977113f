//! The reference evaluator of tapes (sequences of instructions without branches): it runs a tape instruction by
//! instruction on the bits of the tape's inputs. Tests compare its results with those of backends and of operators' own
//! code. It needs no code generator and no fused machine instructions, so it runs even under Miri.

use crate::{Bin, Cmp, Instr, Mask, Shift, Tape, Un, Val};
use cembra_runtime::{Fault, MachineType, math};

/// The outcome of running a tape: the bits of every instruction's result, or the fault that stopped the tape.
#[derive(Clone, PartialEq, Debug)]
pub enum Outcome {
    /// The tape ran to its end: the result of each instruction, by its position. Masks are 0 or 1, numbers are
    /// zero-extended bits.
    Done(Vec<u64>),
    /// The tape stopped at this fault. The second field is the index of the plan's step that the failed instruction was
    /// recorded for.
    Stopped(Fault, u32),
}

impl Tape {
    /// Runs the tape on the bits of its inputs, in the order in which the inputs were recorded. Results of a stretch (a
    /// skippable range of instructions) whose mask does not hold are poison, which must not change any output.
    ///
    /// # Safety
    /// STRING-VIEW: inputs and constants that the tape uses as views of strings (an address and a length) must be views of live strings.
    #[must_use]
    pub unsafe fn run_on_bits(&self, inputs: &[u64]) -> Outcome {
        let mut results: Vec<u64> = Vec::with_capacity(self.instrs.len());
        let mut inputs = inputs.iter().copied();
        // The number of nested open stretches that are skipped.
        let mut skipped = 0_usize;
        for (at, instr) in self.instrs.iter().enumerate() {
            let holds = |mask: &Mask| results[mask.index()] != 0;
            match instr {
                Instr::Begin(mask) => skipped += usize::from(skipped > 0 || !holds(mask)),
                Instr::End => skipped = skipped.saturating_sub(1),
                _ => {}
            }
            if skipped > 0 && !instr.is_shared() {
                results.push(poison(self.types[at]));
                continue;
            }
            let val = |v: &Val| results[v.index()];
            let mask = |m: &Mask| results[m.index()] != 0;
            let result = match instr {
                Instr::Input(_) | Instr::InputMask => inputs.next().unwrap_or(0),
                Instr::Const(_, bits) => *bits,
                Instr::MaskConst(value) => u64::from(*value),
                Instr::Begin(_) | Instr::End => 0,
                Instr::Un(op, a) => unary(*op, self.ty(*a), val(a)),
                Instr::Bin(op, a, b) => binary(*op, self.ty(*a), val(a), val(b)),
                Instr::Shift(op, a, by) => shift(*op, self.ty(*a), val(a), u32::from(*by)),
                Instr::Fma(a, b, c) => match self.ty(*a) {
                    MachineType::F32 => of_f32(math::in_software_f32(f32b(val(a)), f32b(val(b)), f32b(val(c)))),
                    _ => math::in_software_f64(f64b(val(a)), f64b(val(b)), f64b(val(c))).to_bits(),
                },
                Instr::Cmp(op, a, b) => u64::from(compare(*op, self.ty(*a), val(a), val(b))),
                Instr::Select { mask: m, on, off, .. } => {
                    if mask(m) {
                        val(on)
                    } else {
                        val(off)
                    }
                }
                Instr::MaskAnd(a, b) => u64::from(mask(a) & mask(b)),
                Instr::MaskOr(a, b) => u64::from(mask(a) | mask(b)),
                Instr::MaskXor(a, b) => u64::from(mask(a) ^ mask(b)),
                Instr::MaskNot(a) => u64::from(!mask(a)),
                Instr::FaultIf { mask: m, kind, operands, site } => {
                    if mask(m) {
                        let operands = operands.map(|v| v.map_or(0, |v| results[v.index()]));
                        return Outcome::Stopped(Fault { kind: *kind, operands }, *site);
                    }
                    0
                }
                Instr::Call(function, args) => {
                    let bits: Vec<u64> = args.iter().map(val).collect();
                    // SAFETY: STRING-VIEW, promised by the caller.
                    unsafe { function.call_on_bits(&bits) }
                }
                Instr::RareCall { mask: m, function, args, otherwise } => {
                    if mask(m) {
                        let bits: Vec<u64> = args.iter().map(val).collect();
                        // SAFETY: STRING-VIEW, promised by the caller.
                        unsafe { function.call_on_bits(&bits) }
                    } else {
                        val(otherwise)
                    }
                }
            };
            results.push(result);
        }
        Outcome::Done(results)
    }
}

/// The bits that stand for an unusable result of type `ty`, such as the result of a skipped instruction.
fn poison(ty: MachineType) -> u64 {
    match ty {
        MachineType::I32 | MachineType::F32 => 0x5A5A_5A5A,
        MachineType::I64 | MachineType::F64 => 0x5A5A_5A5A_5A5A_5A5A,
        MachineType::Flag => 1,
    }
}

/// `a * 2^power`, rounded once; `None` if [`Bin::Scale`] leaves the result unspecified.
fn scaled(ty: MachineType, a: f64, power: f64) -> Option<f64> {
    if a.is_nan() && power.is_nan() {
        return Some(a);
    }
    let is_scaled = a == 0.0 || !a.is_finite() || a.abs() >= f64::from(Bin::least_scaled(ty)).exp2();
    let fits = is_scaled && power.fract() == 0.0 && power.abs() <= Bin::most_scale(ty);
    fits.then(|| libm::scalbn(a, power as i32))
}

/// Splits a positive, finite float into a mantissa from 3/4 to below 3/2 and a power of two; `None` for any other
/// number.
fn split(a: f64) -> Option<(f64, f64)> {
    if !(a > 0.0 && a.is_finite()) {
        return None;
    }
    let (fraction, exponent) = libm::frexp(a);
    let doubles = fraction < 0.75;
    let mantissa = if doubles { 2.0 * fraction } else { fraction };
    Some((mantissa, f64::from(exponent - i32::from(doubles))))
}

fn f32b(bits: u64) -> f32 {
    f32::from_bits(bits as u32)
}

fn f64b(bits: u64) -> f64 {
    f64::from_bits(bits)
}

fn i32b(bits: u64) -> i32 {
    (bits as u32).cast_signed()
}

fn i64b(bits: u64) -> i64 {
    bits.cast_signed()
}

fn of_i32(value: i32) -> u64 {
    u64::from(value.cast_unsigned())
}

fn of_f32(value: f32) -> u64 {
    u64::from(value.to_bits())
}

fn unary(op: Un, ty: MachineType, a: u64) -> u64 {
    use MachineType::{F32, F64, Flag, I32, I64};
    match (op, ty) {
        (Un::Neg, I32) => of_i32(i32b(a).wrapping_neg()),
        (Un::Neg, I64) => i64b(a).wrapping_neg().cast_unsigned(),
        (Un::Neg, F32) => a ^ 0x8000_0000,
        (Un::Neg, _) => a ^ (1 << 63),
        (Un::Abs, I32) => of_i32(i32b(a).wrapping_abs()),
        (Un::Abs, I64) => i64b(a).wrapping_abs().cast_unsigned(),
        (Un::Abs, F32) => a & 0x7FFF_FFFF,
        (Un::Abs, _) => a & !(1 << 63),
        (Un::Sqrt, F32) => of_f32(f32b(a).sqrt()),
        (Un::Sqrt, _) => f64b(a).sqrt().to_bits(),
        (Un::Floor, F32) => of_f32(f32b(a).floor()),
        (Un::Floor, _) => f64b(a).floor().to_bits(),
        (Un::Ceil, F32) => of_f32(f32b(a).ceil()),
        (Un::Ceil, _) => f64b(a).ceil().to_bits(),
        (Un::Trunc, F32) => of_f32(f32b(a).trunc()),
        (Un::Trunc, _) => f64b(a).trunc().to_bits(),
        (Un::Bitcast(_), _) => a,
        (Un::Mantissa | Un::Exponent, _) => {
            let parts = split(if ty == F32 { f64::from(f32b(a)) } else { f64b(a) });
            let part = parts.map(|(mantissa, exponent)| if op == Un::Mantissa { mantissa } else { exponent });
            // Both are exact in either type.
            part.map_or(poison(ty), |part| if ty == F32 { of_f32(part as f32) } else { part.to_bits() })
        }
        (Un::Convert(to), from) => match (from, to) {
            (I32, I64) => i64::from(i32b(a)).cast_unsigned(),
            (I32, F32) => of_f32(i32b(a) as f32),
            (I32, F64) => f64::from(i32b(a)).to_bits(),
            (I64, I32) => a & 0xFFFF_FFFF,
            (I64, F32) => of_f32(i64b(a) as f32),
            (I64, F64) => (i64b(a) as f64).to_bits(),
            (F32, I32) => of_i32(f32b(a) as i32),
            (F32, I64) => (f32b(a) as i64).cast_unsigned(),
            (F32, F64) => f64::from(f32b(a)).to_bits(),
            (F64, I32) => of_i32(f64b(a) as i32),
            (F64, I64) => (f64b(a) as i64).cast_unsigned(),
            (F64, F32) => of_f32(f64b(a) as f32),
            (I32, I32) | (I64, I64) | (F32, F32) | (F64, F64) | (Flag, _) | (_, Flag) => a,
        },
    }
}

fn binary(op: Bin, ty: MachineType, a: u64, b: u64) -> u64 {
    if op == Bin::Scale {
        return match ty {
            // The product is exact in binary64, whose range is wider: it is rounded once, to binary32.
            MachineType::F32 => {
                scaled(ty, f64::from(f32b(a)), f64::from(f32b(b))).map_or(poison(ty), |x| of_f32(x as f32))
            }
            _ => scaled(ty, f64b(a), f64b(b)).map_or(poison(ty), f64::to_bits),
        };
    }
    macro_rules! float {
        ($from:ident, $to:expr) => {{
            let (x, y) = ($from(a), $from(b));
            $to(match op {
                Bin::Add => x + y,
                Bin::Sub => x - y,
                Bin::Mul => x * y,
                Bin::Div => x / y,
                Bin::FMin => {
                    if x < y {
                        x
                    } else {
                        y
                    }
                }
                Bin::FMax => {
                    if x > y {
                        x
                    } else {
                        y
                    }
                }
                Bin::Copysign => x.copysign(y),
                Bin::And | Bin::Or | Bin::Xor | Bin::Scale => x,
            })
        }};
    }
    macro_rules! int {
        ($from:ident, $to:expr) => {{
            let (x, y) = ($from(a), $from(b));
            $to(match op {
                Bin::Add => x.wrapping_add(y),
                Bin::Sub => x.wrapping_sub(y),
                Bin::Mul => x.wrapping_mul(y),
                // A rule that lets a zero divisor through is wrong; the result is a poison that no `eval` gives.
                Bin::Div => x.checked_div(y).unwrap_or(0x5A5A_5A5A),
                Bin::And => x & y,
                Bin::Or => x | y,
                Bin::Xor => x ^ y,
                Bin::FMin | Bin::FMax | Bin::Copysign | Bin::Scale => x,
            })
        }};
    }
    match ty {
        MachineType::F32 => float!(f32b, of_f32),
        MachineType::F64 => float!(f64b, f64::to_bits),
        MachineType::I32 => int!(i32b, of_i32),
        _ => int!(i64b, i64::cast_unsigned),
    }
}

fn shift(op: Shift, ty: MachineType, a: u64, by: u32) -> u64 {
    match (op, ty) {
        (Shift::Left, MachineType::I32) => u64::from((a as u32) << by),
        (Shift::Left, _) => a << by,
        (Shift::Right, _) => a >> by,
    }
}

fn compare(op: Cmp, ty: MachineType, a: u64, b: u64) -> bool {
    let order = match ty {
        MachineType::F32 => f32b(a).partial_cmp(&f32b(b)),
        MachineType::F64 => f64b(a).partial_cmp(&f64b(b)),
        MachineType::I32 => Some(i32b(a).cmp(&i32b(b))),
        _ => Some(i64b(a).cmp(&i64b(b))),
    };
    match op {
        Cmp::Eq => order.is_some_and(std::cmp::Ordering::is_eq),
        Cmp::Ne => !order.is_some_and(std::cmp::Ordering::is_eq),
        Cmp::Lt => order.is_some_and(std::cmp::Ordering::is_lt),
        Cmp::Le => order.is_some_and(std::cmp::Ordering::is_le),
        Cmp::Gt => order.is_some_and(std::cmp::Ordering::is_gt),
        Cmp::Ge => order.is_some_and(std::cmp::Ordering::is_ge),
    }
}
