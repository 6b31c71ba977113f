//! The instructions of a tape (a typed program without branches), and the types `Val` and `Mask`, which identify the
//! number or the truth value that an instruction computes. The identity is the position of the instruction on the tape.

use cembra_runtime::{FaultKind, MachineType, RuntimeFn};
use smallvec::SmallVec;

/// A number on a tape, identified by the position of the instruction that computes it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Val(pub(crate) u32);

/// A truth value on a tape: one bit per lane (a row that is processed together with other rows). The backend chooses
/// how the bits are stored.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Mask(pub(crate) u32);

impl Val {
    /// The position on the tape of the instruction that computes this number.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl Mask {
    /// The position on the tape of the instruction that computes this mask.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// An operation on one number, such as negation, rounding or conversion.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Un {
    /// Negation; wraps for integers, flips the sign bit of floats.
    Neg,
    /// Absolute value; wraps for integers, clears the sign bit of floats.
    Abs,
    /// Correctly rounded square root.
    Sqrt,
    /// Largest whole number that is not above the operand.
    Floor,
    /// Smallest whole number that is not below the operand.
    Ceil,
    /// Whole part, rounded towards zero.
    Trunc,
    /// Conversion to another number type, by sign extension, truncation, or rounding to nearest even. If a float does
    /// not fit an integer type, the result is unspecified, and the lowering rule must not use it.
    Convert(MachineType),
    /// Reinterpretation of the bits as another type of the same width.
    Bitcast(MachineType),
    /// Mantissa of a positive, finite float, from 3/4 to below 3/2. The float is the mantissa times two to the power
    /// [`Un::Exponent`]. For other numbers the result is unspecified, and the lowering rule must not use it.
    Mantissa,
    /// Exponent of two that belongs to [`Un::Mantissa`]: a whole number, as a float of the operand's type.
    Exponent,
}

/// An operation on two numbers of one type, such as the sum, the minimum or the bitwise and.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Bin {
    /// Sum; wraps for integers.
    Add,
    /// Difference; wraps for integers.
    Sub,
    /// Product; wraps for integers.
    Mul,
    /// Quotient; truncated for integers. The lowering rule must ensure that an integer divisor is neither 0 nor -1.
    Div,
    /// Bitwise and, integers only.
    And,
    /// Bitwise or, integers only.
    Or,
    /// Bitwise exclusive or, integers only.
    Xor,
    /// Minimum as `a < b ? a : b`: the second operand if an operand is NaN or both are equal.
    FMin,
    /// Maximum as `a > b ? a : b`: the second operand if an operand is NaN or both are equal.
    FMax,
    /// The magnitude of the first operand with the sign of the second, floats only.
    Copysign,
    /// `a * 2^b` for floats `a` and `b`, rounded once. The power `b` must be a whole number of at most
    /// [`Bin::most_scale`] in magnitude. The number `a` must be zero, infinite, NaN, or at least two to the power
    /// [`Bin::least_scaled`] in magnitude. If both are NaN, the result is NaN. For other operands the result is
    /// unspecified.
    Scale,
}

impl Bin {
    /// The largest magnitude that the exponent `b` of the product `a * 2^b` ([`Bin::Scale`]) may have, for numbers of type `ty`.
    #[must_use]
    pub const fn most_scale(ty: MachineType) -> f64 {
        if matches!(ty, MachineType::F32) { 252.0 } else { 2044.0 }
    }

    /// The binary exponent of the smallest numbers of type `ty` that [`Bin::Scale`] can scale. The product with a
    /// smaller number could be rounded twice, because scaling is computed as a product with two factors.
    #[must_use]
    pub const fn least_scaled(ty: MachineType) -> i32 {
        if matches!(ty, MachineType::F32) { -100 } else { -960 }
    }
}

/// The direction of a shift of an integer by a constant.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Shift {
    /// Shift to the left.
    Left,
    /// Shift to the right; zeros are shifted in.
    Right,
}

/// A comparison of two numbers. Integers are compared as signed numbers. If an operand is NaN, `Ne` is true and the
/// other comparisons are false.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Cmp {
    /// The first number equals the second.
    Eq,
    /// The first number does not equal the second.
    Ne,
    /// The first number is less than the second.
    Lt,
    /// The first number is less than or equal to the second.
    Le,
    /// The first number is greater than the second.
    Gt,
    /// The first number is greater than or equal to the second.
    Ge,
}

/// An instruction of a tape, such as an input, a constant, an operation or a call. The instruction's position on the
/// tape identifies its result.
#[derive(Clone, PartialEq, Debug)]
pub enum Instr {
    /// Reads the next input of the tape, a number of this type.
    Input(MachineType),
    /// Reads the next input of the tape, a mask.
    InputMask,
    /// Makes a constant of this type, given as zero-extended bits.
    Const(MachineType, u64),
    /// Makes a constant mask.
    MaskConst(bool),
    /// Performs this operation on one number.
    Un(Un, Val),
    /// Performs this operation on two numbers of one type.
    Bin(Bin, Val, Val),
    /// Shifts a number by a constant.
    Shift(Shift, Val, u8),
    /// Computes `a * b + c` from its three operands in order, rounded once.
    Fma(Val, Val, Val),
    /// Compares two numbers. The result is a mask.
    Cmp(Cmp, Val, Val),
    /// Selects the number `on` where the mask holds, else `off`.
    Select {
        /// The mask that selects between `on` and `off`.
        mask: Mask,
        /// The result of the instruction where the mask holds.
        on: Val,
        /// The result of the instruction where the mask does not hold.
        off: Val,
        /// True if the mask marks a special case, so that it is expected to have the same value in nearly all rows.
        rare: bool,
    },
    /// Makes the mask that holds where both masks hold.
    MaskAnd(Mask, Mask),
    /// Makes the mask that holds where at least one of the masks holds.
    MaskOr(Mask, Mask),
    /// Makes the mask that holds where exactly one of the masks holds.
    MaskXor(Mask, Mask),
    /// Makes the mask that holds where this mask does not hold.
    MaskNot(Mask),
    /// Stops the evaluation with a fault if the mask holds in any lane.
    FaultIf {
        /// The mask that holds in the lanes that have the fault.
        mask: Mask,
        /// The kind of the fault.
        kind: FaultKind,
        /// Up to two numbers for the message of the fault.
        operands: [Option<Val>; 2],
        /// The index of the plan's step that the fault is reported for.
        site: u32,
    },
    /// Calls this runtime function with these arguments. The result is a number.
    Call(RuntimeFn, SmallVec<[Val; 4]>),
    /// Calls a runtime function in the lanes in which the mask holds; in other lanes the result is `otherwise`. It is
    /// used for rare arguments of mathematical functions, which need a slow algorithm.
    RareCall {
        /// The mask of the lanes that call the function.
        mask: Mask,
        /// The runtime function that is called.
        function: RuntimeFn,
        /// The arguments of the function.
        args: SmallVec<[Val; 4]>,
        /// The result of the instruction where the mask does not hold.
        otherwise: Val,
    },
    /// Begins a stretch (the instructions up to the matching `End`), whose results matter only where the mask holds. A
    /// backend may jump over a stretch if its mask holds in no lane, or may always run it. After the stretch, its
    /// results must be used only where that mask holds: see [`Tape::check_stretches`].
    ///
    /// [`Tape::check_stretches`]: crate::Tape::check_stretches
    Begin(Mask),
    /// Ends the innermost open stretch, a range of instructions that a backend may jump over.
    End,
}

/// An output of a tape: a number or a mask on the tape.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Output {
    /// The output is this number.
    Number(Val),
    /// The output is this mask.
    Mask(Mask),
}

impl Output {
    /// The position on the tape of the instruction that computes this output.
    #[must_use]
    pub const fn index(self) -> usize {
        match self {
            Output::Number(val) => val.index(),
            Output::Mask(mask) => mask.index(),
        }
    }
}

impl Instr {
    /// Returns true for inputs and constants, which belong to no stretch (a skippable range of instructions) even if
    /// they are recorded inside one.
    #[must_use]
    pub const fn is_shared(&self) -> bool {
        matches!(self, Instr::Input(_) | Instr::InputMask | Instr::Const(..) | Instr::MaskConst(_))
    }

    /// Calls `f` with the position of each operand of the instruction.
    pub fn for_each_operand(&self, mut f: impl FnMut(usize)) {
        match self {
            Instr::Input(_) | Instr::InputMask | Instr::Const(..) | Instr::MaskConst(_) | Instr::End => {}
            Instr::Begin(mask) => f(mask.index()),
            Instr::Un(_, a) | Instr::Shift(_, a, _) => f(a.index()),
            Instr::Bin(_, a, b) | Instr::Cmp(_, a, b) => [a, b].into_iter().for_each(|val| f(val.index())),
            Instr::Fma(a, b, c) => [a, b, c].into_iter().for_each(|val| f(val.index())),
            Instr::Select { mask, on, off, .. } => [mask.index(), on.index(), off.index()].into_iter().for_each(f),
            Instr::MaskAnd(a, b) | Instr::MaskOr(a, b) | Instr::MaskXor(a, b) => {
                [a, b].into_iter().for_each(|mask| f(mask.index()));
            }
            Instr::MaskNot(a) => f(a.index()),
            Instr::FaultIf { mask, operands, .. } => {
                f(mask.index());
                operands.iter().flatten().for_each(|val| f(val.index()));
            }
            Instr::Call(_, args) => args.iter().for_each(|val| f(val.index())),
            Instr::RareCall { mask, args, otherwise, .. } => {
                f(mask.index());
                args.iter().for_each(|val| f(val.index()));
                f(otherwise.index());
            }
        }
    }

    /// Replaces the position of each operand by the position that `moved` returns for it.
    pub(crate) fn move_operands(&mut self, moved: impl Fn(u32) -> u32) {
        let val = |val: &mut Val| val.0 = moved(val.0);
        let truth = |mask: &mut Mask| mask.0 = moved(mask.0);
        match self {
            Instr::Input(_) | Instr::InputMask | Instr::Const(..) | Instr::MaskConst(_) | Instr::End => {}
            Instr::Begin(mask) => truth(mask),
            Instr::Un(_, a) | Instr::Shift(_, a, _) => val(a),
            Instr::Bin(_, a, b) | Instr::Cmp(_, a, b) => [a, b].into_iter().for_each(val),
            Instr::Fma(a, b, c) => [a, b, c].into_iter().for_each(val),
            Instr::Select { mask, on, off, .. } => {
                truth(mask);
                [on, off].into_iter().for_each(val);
            }
            Instr::MaskAnd(a, b) | Instr::MaskOr(a, b) | Instr::MaskXor(a, b) => [a, b].into_iter().for_each(truth),
            Instr::MaskNot(a) => truth(a),
            Instr::FaultIf { mask, operands, .. } => {
                truth(mask);
                operands.iter_mut().flatten().for_each(val);
            }
            Instr::Call(_, args) => args.iter_mut().for_each(val),
            Instr::RareCall { mask, args, otherwise, .. } => {
                truth(mask);
                args.iter_mut().for_each(val);
                val(otherwise);
            }
        }
    }
}

impl Output {
    /// Returns the output with its position replaced by the position that `moved` returns for it.
    pub(crate) fn moved(self, moved: impl Fn(u32) -> u32) -> Output {
        match self {
            Output::Number(val) => Output::Number(Val(moved(val.0))),
            Output::Mask(mask) => Output::Mask(Mask(moved(mask.0))),
        }
    }
}
