//! What there is on a tape: numbers and masks, named by the positions of the instructions that make them, and the instructions.

use cembra_runtime::{FaultKind, MachineType, RuntimeFn};
use smallvec::SmallVec;

/// A number on a tape.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Val(pub(crate) u32);

/// A truth value on a tape: one bit per lane, however the player stores it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Mask(pub(crate) u32);

impl Val {
    /// The position of the instruction that made it.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl Mask {
    /// The position of the instruction that made it.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Operations on one number.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Un {
    /// Negation; wraps for integers, flips the sign bit of floats.
    Neg,
    /// Absolute value; wraps for integers, clears the sign bit of floats.
    Abs,
    /// Correctly rounded square root.
    Sqrt,
    /// Largest whole number not above.
    Floor,
    /// Smallest whole number not below.
    Ceil,
    /// Whole part.
    Trunc,
    /// To another number type: sign-extended, truncated, or rounded to nearest even. A float that does not fit an
    /// integer gives something unspecified: the rule masks it.
    Convert(MachineType),
    /// The same bits as another type of the same width.
    Bitcast(MachineType),
    /// The mantissa of a positive, finite float: it times two to a whole power, from 3/4 to below 3/2. Of other numbers
    /// something unspecified: the rule masks it.
    Mantissa,
    /// The power that goes with the mantissa, a whole number as a float of the same type.
    Exponent,
}

/// Operations on two numbers of one type.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Bin {
    /// Sum; wraps for integers.
    Add,
    /// Difference; wraps for integers.
    Sub,
    /// Product; wraps for integers.
    Mul,
    /// Quotient. Integers truncate; the rule keeps the divisor from 0 and from -1.
    Div,
    /// Bitwise and, integers only.
    And,
    /// Bitwise or, integers only.
    Or,
    /// Bitwise exclusive or, integers only.
    Xor,
    /// `a < b ? a : b`: the second operand on NaN and ties.
    FMin,
    /// `a > b ? a : b`: the second operand on NaN and ties.
    FMax,
    /// The magnitude of the first with the sign of the second, floats only.
    Copysign,
    /// The first times two to the power of the second, rounded once; floats only. The second is a whole number, up to
    /// [`Bin::most_scale`] or its opposite; the first is zero, an infinity, NaN, or at least two to the power of
    /// [`Bin::least_scaled`] in magnitude. NaN if both are NaN. Of other numbers something unspecified.
    Scale,
}

impl Bin {
    /// The largest power that numbers of a type can be scaled by.
    #[must_use]
    pub const fn most_scale(ty: MachineType) -> f64 {
        if matches!(ty, MachineType::F32) { 252.0 } else { 2044.0 }
    }

    /// The binary exponent of the smallest numbers that are scaled: of smaller ones a product of factors could be rounded twice.
    #[must_use]
    pub const fn least_scaled(ty: MachineType) -> i32 {
        if matches!(ty, MachineType::F32) { -100 } else { -960 }
    }
}

/// Shifts of an integer by a constant.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Shift {
    /// To the left.
    Left,
    /// To the right, zeros in.
    Right,
}

/// Comparisons: ordered for floats, signed for integers. `Ne` holds where a NaN is involved.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Cmp {
    /// Equal.
    Eq,
    /// Not equal.
    Ne,
    /// Less.
    Lt,
    /// Less or equal.
    Le,
    /// Greater.
    Gt,
    /// Greater or equal.
    Ge,
}

/// One instruction; its result is named by its position.
#[derive(Clone, PartialEq, Debug)]
pub enum Instr {
    /// A number from outside.
    Input(MachineType),
    /// A mask from outside.
    InputMask,
    /// A constant.
    Const(MachineType, u64),
    /// A constant mask.
    MaskConst(bool),
    /// One operand.
    Un(Un, Val),
    /// Two operands.
    Bin(Bin, Val, Val),
    /// A shift by a constant.
    Shift(Shift, Val, u8),
    /// `a * b + c`, rounded once.
    Fma(Val, Val, Val),
    /// A comparison.
    Cmp(Cmp, Val, Val),
    /// The first where the mask holds, else the second.
    Select {
        /// The condition.
        mask: Mask,
        /// Where it holds.
        on: Val,
        /// Where it does not.
        off: Val,
        /// True if the mask is expected to be constant in practice (a special case), not data.
        rare: bool,
    },
    /// Both.
    MaskAnd(Mask, Mask),
    /// Either.
    MaskOr(Mask, Mask),
    /// One of them but not both.
    MaskXor(Mask, Mask),
    /// The other.
    MaskNot(Mask),
    /// Stops the evaluation where the mask holds.
    FaultIf {
        /// Where to stop.
        mask: Mask,
        /// Why.
        kind: FaultKind,
        /// What to report.
        operands: [Option<Val>; 2],
        /// The step of the plan to blame.
        site: u32,
    },
    /// A call of a runtime function that returns a number.
    Call(RuntimeFn, SmallVec<[Val; 4]>),
    /// A call where the mask holds, which is rare for a mathematical function; elsewhere a number that is there already.
    RareCall {
        /// Where to call.
        mask: Mask,
        /// What.
        function: RuntimeFn,
        /// On what.
        args: SmallVec<[Val; 4]>,
        /// The result where the mask does not hold.
        otherwise: Val,
    },
    /// Begins a stretch that matters only where the mask holds: a player may jump over it where it holds in none of its
    /// lanes, or ignore it. What the stretch makes is used behind it under that mask only: see [`Tape::check_stretches`].
    ///
    /// [`Tape::check_stretches`]: crate::Tape::check_stretches
    Begin(Mask),
    /// Ends the stretch that was begun last.
    End,
}

/// A result of a tape.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Output {
    /// A number.
    Number(Val),
    /// A mask.
    Mask(Mask),
}

impl Output {
    /// The position of the instruction that made it.
    #[must_use]
    pub const fn index(self) -> usize {
        match self {
            Output::Number(val) => val.index(),
            Output::Mask(mask) => mask.index(),
        }
    }
}

impl Instr {
    /// True for what belongs to no stretch wherever it stands: inputs and constants.
    #[must_use]
    pub const fn is_shared(&self) -> bool {
        matches!(self, Instr::Input(_) | Instr::InputMask | Instr::Const(..) | Instr::MaskConst(_))
    }

    /// Calls `f` with the position of each operand.
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

    /// Gives operands new positions.
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
    /// The same result at a new position.
    pub(crate) fn moved(self, moved: impl Fn(u32) -> u32) -> Output {
        match self {
            Output::Number(val) => Output::Number(Val(moved(val.0))),
            Output::Mask(mask) => Output::Mask(Mask(moved(mask.0))),
        }
    }
}
