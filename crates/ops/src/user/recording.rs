//! Records and checks the lowering rules of users. The instructions of such a rule become machine code, which runs
//! without protection. So the rule runs once, when its operator is registered, on a tape (a list of instructions) of
//! its own. Its instructions are checked one by one, without trusting anything that the rule had access to. The checked
//! instructions are stored, and copied into each model that uses the operator. The rule itself does not run again, so
//! it cannot record other instructions later.
//!
//! The checks: every instruction uses earlier results of the kind and the types that it requires; the divisor of an
//! integer division cannot be 0 or -1; each text is a whole argument, or empty; the result is of the type of the
//! overload.

use crate::OperandType;
use crate::lift;
use cembra_runtime::{FaultKind, MachineType, RuntimeFn, Scalar};
use cembra_tape::{Bin, Cell, Cmp, Datum, Instr, Mask, Presence, Shift, Tape, Un, Val};
use rustc_hash::FxHashSet;

/// The instructions that a user's lowering rule recorded for one overload, after they were checked.
#[derive(Clone, Debug)]
pub struct Recording {
    /// The arguments as the rule received them; they are the first instructions.
    args: Box<[Cell]>,
    instrs: Box<[Instr]>,
    result: Cell,
}

/// The reason why a user's lowering rule is refused.
pub(super) type Refusal = &'static str;

impl Recording {
    /// Runs a lowering rule on arguments of the types `operands` and checks its instructions, for a result of type `ret`. If `total` is set, the
    /// user's function cannot fail, so the rule must not fail either.
    ///
    /// # Errors
    /// The reason why the rule is refused.
    pub(super) fn of(
        operands: &[OperandType],
        ret: OperandType,
        total: bool,
        rule: impl FnOnce(&mut Tape, &[Cell]) -> Cell,
    ) -> Result<Recording, Refusal> {
        let mut tape = Tape::new();
        // The instructions of a mathematical function are right for all of its arguments, which checking them one by one cannot
        // show.
        tape.set_inlining(false);
        let args: Box<[Cell]> = operands.iter().map(|operand| lift::input(&mut tape, *operand)).collect();
        let inputs = tape.instrs().to_vec();
        let result = rule(&mut tape, &args);
        // The rule may have emptied the tape, or put another one in its place.
        let Some(made) = tape.instrs().strip_prefix(&inputs[..]) else {
            return Err("the rule removes its arguments from the tape");
        };
        if made.iter().any(|instr| matches!(instr, Instr::Input(_) | Instr::InputMask)) {
            return Err("the rule adds an input to the tape");
        }
        let mut check =
            Check { instrs: tape.instrs(), made: Vec::with_capacity(tape.instrs().len()), views: Vec::new(), total };
        for (operand, arg) in operands.iter().zip(&args) {
            if let Datum::Text { ptr, len } = arg.datum {
                check.views.push((ptr, len, operand.scalar));
            }
        }
        for instr in tape.instrs() {
            let made = check.instruction(instr)?;
            check.made.push(made);
        }
        check.result(result, ret)?;
        Ok(Recording { args, instrs: tape.instrs().into(), result })
    }

    /// Records the stored instructions on `tape`, for arguments of the types that the rule was run for, and returns the
    /// result.
    pub(crate) fn play(&self, tape: &mut Tape, args: &[Cell]) -> Cell {
        let mut playing = TapeCopy { vals: vec![None; self.instrs.len()], masks: vec![None; self.instrs.len()], tape };
        for (recorded, arg) in self.args.iter().zip(args) {
            let mut datum = arg.datum;
            if let Presence::When(place) = recorded.presence {
                let present = arg.has(playing.tape);
                playing.masks[place.index()] = Some(present);
                datum = datum.viewable(present, playing.tape);
            }
            match (recorded.datum, datum) {
                (Datum::Num(place), Datum::Num(val)) => playing.vals[place.index()] = Some(val),
                (Datum::Flag(place), Datum::Flag(mask)) => playing.masks[place.index()] = Some(mask),
                (Datum::Text { ptr: at_ptr, len: at_len }, Datum::Text { ptr, len }) => {
                    playing.vals[at_ptr.index()] = Some(ptr);
                    playing.vals[at_len.index()] = Some(len);
                }
                _ => {}
            }
        }
        for (at, instr) in self.instrs.iter().enumerate() {
            playing.instruction(at, instr);
        }
        playing.cell(self.result)
    }
}

/// The state of copying recorded instructions to another tape: for each instruction, its result on that tape.
struct TapeCopy<'t> {
    vals: Vec<Option<Val>>,
    masks: Vec<Option<Mask>>,
    tape: &'t mut Tape,
}

impl TapeCopy<'_> {
    /// The number on the other tape that corresponds to `val`. Recordings are checked, so there always is one.
    fn val(&mut self, val: Val) -> Val {
        match self.vals[val.index()] {
            Some(val) => val,
            None => self.tape.konst(MachineType::I32, 0),
        }
    }

    fn mask(&mut self, mask: Mask) -> Mask {
        match self.masks[mask.index()] {
            Some(mask) => mask,
            None => self.tape.mconst(false),
        }
    }

    fn vals(&mut self, vals: &[Val]) -> Vec<Val> {
        vals.iter().map(|val| self.val(*val)).collect()
    }

    fn instruction(&mut self, at: usize, instr: &Instr) {
        enum ResultValue {
            Val(Val),
            Mask(Mask),
            Nothing,
        }
        let made = match *instr {
            // Recordings have no stretches.
            Instr::Input(_) | Instr::InputMask | Instr::Begin(_) | Instr::End => ResultValue::Nothing,
            Instr::Const(ty, bits) => ResultValue::Val(self.tape.konst(ty, bits)),
            Instr::MaskConst(value) => ResultValue::Mask(self.tape.mconst(value)),
            Instr::Un(op, a) => {
                let a = self.val(a);
                ResultValue::Val(self.tape.un(op, a))
            }
            Instr::Bin(op, a, b) => {
                let (a, b) = (self.val(a), self.val(b));
                ResultValue::Val(self.tape.bin(op, a, b))
            }
            Instr::Shift(op, a, amount) => {
                let a = self.val(a);
                ResultValue::Val(self.tape.shift(op, a, amount))
            }
            Instr::Fma(a, b, c) => {
                let (a, b, c) = (self.val(a), self.val(b), self.val(c));
                ResultValue::Val(self.tape.fma(a, b, c))
            }
            Instr::Cmp(op, a, b) => {
                let (a, b) = (self.val(a), self.val(b));
                ResultValue::Mask(self.tape.cmp(op, a, b))
            }
            Instr::Select { mask, on, off, rare } => {
                let (mask, on, off) = (self.mask(mask), self.val(on), self.val(off));
                ResultValue::Val(if rare {
                    self.tape.select_rare(mask, on, off)
                } else {
                    self.tape.select(mask, on, off)
                })
            }
            Instr::MaskAnd(a, b) => {
                let (a, b) = (self.mask(a), self.mask(b));
                ResultValue::Mask(self.tape.mand(a, b))
            }
            Instr::MaskOr(a, b) => {
                let (a, b) = (self.mask(a), self.mask(b));
                ResultValue::Mask(self.tape.mor(a, b))
            }
            Instr::MaskXor(a, b) => {
                let (a, b) = (self.mask(a), self.mask(b));
                ResultValue::Mask(self.tape.mxor(a, b))
            }
            Instr::MaskNot(a) => {
                let a = self.mask(a);
                ResultValue::Mask(self.tape.mnot(a))
            }
            // The site of the fault is the step that is being recorded now.
            Instr::FaultIf { mask, kind, operands, site: _ } => {
                let mask = self.mask(mask);
                let operands = operands.map(|operand| operand.map(|val| self.val(val)));
                self.tape.fault_if(mask, kind, operands);
                ResultValue::Nothing
            }
            Instr::Call(function, ref args) => {
                let args = self.vals(args);
                ResultValue::Val(self.tape.function(function, &args))
            }
            Instr::RareCall { mask, function, ref args, otherwise } => {
                let (mask, args, otherwise) = (self.mask(mask), self.vals(args), self.val(otherwise));
                ResultValue::Val(self.tape.call_where(mask, function, &args, otherwise))
            }
        };
        match made {
            ResultValue::Val(val) => self.vals[at] = Some(val),
            ResultValue::Mask(mask) => self.masks[at] = Some(mask),
            ResultValue::Nothing => {}
        }
    }

    fn cell(&mut self, cell: Cell) -> Cell {
        let presence = match cell.presence {
            Presence::When(mask) => {
                let mask = self.mask(mask);
                Presence::from_mask(mask, self.tape)
            }
            known => known,
        };
        let datum = match cell.datum {
            Datum::Unit => Datum::Unit,
            Datum::Flag(mask) => Datum::Flag(self.mask(mask)),
            Datum::Num(val) => Datum::Num(self.val(val)),
            Datum::Text { ptr, len } => Datum::Text { ptr: self.val(ptr), len: self.val(len) },
        };
        Cell { presence, datum }
    }
}

/// The kind of an instruction's result.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ResultKind {
    Number(MachineType),
    Mask,
    Nothing,
}

/// The state of checking recorded instructions. Facts that the tape itself stores about the instructions are not
/// trusted.
struct Check<'t> {
    instrs: &'t [Instr],
    /// The kind of each result that was checked so far.
    made: Vec<ResultKind>,
    /// The address, the length and the type of each argument that is a string.
    views: Vec<(Val, Val, Scalar)>,
    total: bool,
}

const FOREIGN: Refusal = "the rule uses a value before it is computed, or as another kind of value";
const UNSPECIFIED: Refusal = "the rule scales or splits a float, and the result is unspecified for some floats";
const TYPES: Refusal = "an instruction does not take numbers of these types";

fn is_float(ty: MachineType) -> bool {
    matches!(ty, MachineType::F32 | MachineType::F64)
}

fn is_integer(ty: MachineType) -> bool {
    matches!(ty, MachineType::I32 | MachineType::I64)
}

fn width(ty: MachineType) -> u32 {
    match ty {
        MachineType::I32 | MachineType::F32 => 32,
        MachineType::I64 | MachineType::F64 => 64,
        MachineType::Flag => 1,
    }
}

fn refuse_unless(holds: bool, refusal: Refusal) -> Result<(), Refusal> {
    if holds { Ok(()) } else { Err(refusal) }
}

impl Check<'_> {
    /// The type of an earlier result, which must be a number.
    fn number(&self, val: Val) -> Result<MachineType, Refusal> {
        match self.made.get(val.index()) {
            Some(ResultKind::Number(ty)) => Ok(*ty),
            _ => Err(FOREIGN),
        }
    }

    /// The type of several earlier results, which must be numbers of the same type.
    fn numbers(&self, vals: &[Val]) -> Result<MachineType, Refusal> {
        let Some((first, others)) = vals.split_first() else { return Err(FOREIGN) };
        let ty = self.number(*first)?;
        for other in others {
            refuse_unless(self.number(*other)? == ty, TYPES)?;
        }
        Ok(ty)
    }

    fn masks(&self, masks: &[Mask]) -> Result<(), Refusal> {
        refuse_unless(masks.iter().all(|mask| self.made.get(mask.index()) == Some(&ResultKind::Mask)), FOREIGN)
    }

    /// Checks the next instruction, and returns the kind of its result.
    fn instruction(&self, instr: &Instr) -> Result<ResultKind, Refusal> {
        match *instr {
            Instr::Input(ty) => Ok(ResultKind::Number(ty)),
            Instr::InputMask | Instr::MaskConst(_) => Ok(ResultKind::Mask),
            Instr::Const(ty, bits) => {
                let fits = is_number(ty) && (width(ty) == 64 || bits >> width(ty) == 0);
                refuse_unless(fits, "a constant does not fit its type")?;
                Ok(ResultKind::Number(ty))
            }
            Instr::Un(op, a) => self.unary(op, self.number(a)?).map(ResultKind::Number),
            Instr::Bin(op, a, b) => {
                let ty = self.numbers(&[a, b])?;
                let takes = match op {
                    Bin::Add | Bin::Sub | Bin::Mul | Bin::Div => is_number(ty),
                    Bin::And | Bin::Or | Bin::Xor => is_integer(ty),
                    Bin::FMin | Bin::FMax | Bin::Copysign => is_float(ty),
                    // The result is unspecified for some numbers, so it may differ between backends.
                    Bin::Scale => return Err(UNSPECIFIED),
                };
                refuse_unless(takes, TYPES)?;
                if op == Bin::Div && is_integer(ty) {
                    refuse_unless(
                        self.is_never(b, ty, 0) && self.is_never(b, ty, -1),
                        "the rule divides integers by a value that may be 0 or -1; divide by a constant, or by `select(y == 0 | y == -1, 1, y)`",
                    )?;
                }
                Ok(ResultKind::Number(ty))
            }
            Instr::Shift(Shift::Left | Shift::Right, a, amount) => {
                let ty = self.number(a)?;
                refuse_unless(is_integer(ty), TYPES)?;
                refuse_unless(u32::from(amount) < width(ty), "the rule shifts a number by all of its bits or more")?;
                Ok(ResultKind::Number(ty))
            }
            Instr::Fma(a, b, c) => {
                let ty = self.numbers(&[a, b, c])?;
                refuse_unless(is_float(ty), TYPES)?;
                Ok(ResultKind::Number(ty))
            }
            Instr::Cmp(_, a, b) => {
                self.numbers(&[a, b])?;
                Ok(ResultKind::Mask)
            }
            Instr::Select { mask, on, off, rare: _ } => {
                self.masks(&[mask])?;
                self.numbers(&[on, off]).map(ResultKind::Number)
            }
            Instr::MaskAnd(a, b) | Instr::MaskOr(a, b) | Instr::MaskXor(a, b) => {
                self.masks(&[a, b])?;
                Ok(ResultKind::Mask)
            }
            Instr::MaskNot(a) => {
                self.masks(&[a])?;
                Ok(ResultKind::Mask)
            }
            Instr::FaultIf { mask, kind, operands, site: _ } => {
                self.masks(&[mask])?;
                refuse_unless(!self.total, "the rule can fail, but its function cannot: make the function `Fallible`")?;
                refuse_unless(kind == FaultKind::Invalid, "the rule fails with another fault than `Invalid`")?;
                match operands {
                    [None, None] => {}
                    [Some(ptr), Some(len)] => self.view(ptr, len, Scalar::Text)?,
                    _ => return Err("the message of a fault must be a text, or left out"),
                }
                Ok(ResultKind::Nothing)
            }
            Instr::Begin(_) | Instr::End => {
                Err("the rule begins or ends a section of the tape, which a rule must not do")
            }
            Instr::Call(function, ref args) => self.call(function, args).map(ResultKind::Number),
            Instr::RareCall { mask, function, ref args, otherwise } => {
                self.masks(&[mask])?;
                let ty = self.call(function, args)?;
                refuse_unless(self.number(otherwise)? == ty, TYPES)?;
                Ok(ResultKind::Number(ty))
            }
        }
    }

    fn unary(&self, op: Un, ty: MachineType) -> Result<MachineType, Refusal> {
        let (takes, made) = match op {
            Un::Neg | Un::Abs => (is_number(ty), ty),
            Un::Sqrt | Un::Floor | Un::Ceil | Un::Trunc => (is_float(ty), ty),
            Un::Mantissa | Un::Exponent => return Err(UNSPECIFIED),
            Un::Convert(to) => (is_number(ty) && is_number(to), to),
            Un::Bitcast(to) => (is_number(ty) && is_number(to) && width(ty) == width(to), to),
        };
        refuse_unless(takes, TYPES)?;
        Ok(made)
    }

    /// Checks a call of a function of the runtime, and returns the type of its result. Integer arguments must be views of
    /// texts, each an address and its length; functions with other integers are not for rules of users.
    fn call(&self, function: RuntimeFn, args: &[Val]) -> Result<MachineType, Refusal> {
        let (takes, ret) = function.signature();
        refuse_unless(takes.len() == args.len(), TYPES)?;
        for (ty, arg) in takes.iter().zip(args) {
            refuse_unless(self.number(*arg)? == *ty, TYPES)?;
        }
        let words: Vec<Val> = takes.iter().zip(args).filter(|(ty, _)| is_integer(**ty)).map(|(_, arg)| *arg).collect();
        for view in words.chunks(2) {
            let [ptr, len] = *view else { return Err(TYPES) };
            self.view(ptr, len, Scalar::Text)?;
        }
        Ok(ret)
    }

    /// Checks that an address and a length are a valid string of type `scalar`: that of an argument, a selection
    /// between such strings, or an empty string.
    fn view(&self, ptr: Val, len: Val, scalar: Scalar) -> Result<(), Refusal> {
        const PIECED: Refusal = "a text must have the address and the length of a text that was given";
        let mut open = vec![(ptr, len)];
        let mut seen: FxHashSet<(Val, Val)> = FxHashSet::default();
        while let Some((ptr, len)) = open.pop() {
            refuse_unless([self.number(ptr)?, self.number(len)?] == [MachineType::I64; 2], PIECED)?;
            if !seen.insert((ptr, len)) || self.views.contains(&(ptr, len, scalar)) {
                continue;
            }
            match (&self.instrs[ptr.index()], &self.instrs[len.index()]) {
                (_, Instr::Const(_, 0)) => {}
                (Instr::Select { mask, on, off, .. }, Instr::Select { mask: same, on: n, off: m, .. })
                    if mask == same =>
                {
                    open.extend([(*on, *n), (*off, *m)]);
                }
                (_, Instr::Select { on: n, off: m, .. }) => open.extend([(ptr, *n), (ptr, *m)]),
                (Instr::Select { on, off, .. }, _) => open.extend([(*on, len), (*off, len)]),
                _ => return Err(PIECED),
            }
        }
        Ok(())
    }

    /// Returns true if the instructions prove that an integer is never `number`.
    fn is_never(&self, val: Val, ty: MachineType, number: i64) -> bool {
        match &self.instrs[val.index()] {
            Instr::Const(..) => self.constant(val, ty) != Some(number),
            Instr::Select { mask, on, off, .. } => {
                // Guards nest at most one selection in another.
                let is_never = |val: Val| {
                    matches!(self.instrs[val.index()], Instr::Const(..)) && self.constant(val, ty) != Some(number)
                };
                (is_never(*on) || self.tells(*mask, *on, ty, number, Cmp::Ne))
                    && (is_never(*off) || self.tells(*mask, *off, ty, number, Cmp::Eq))
            }
            _ => false,
        }
    }

    /// Returns true if the instructions prove a relation between a mask and the equality of `val` and `number`. With
    /// `how` = `Eq`, the mask is set wherever they are equal; with `Ne`, it is set only where they differ.
    fn tells(&self, mask: Mask, val: Val, ty: MachineType, number: i64, how: Cmp) -> bool {
        let mut open = vec![mask];
        while let Some(mask) = open.pop() {
            match (&self.instrs[mask.index()], how) {
                (Instr::Cmp(cmp, a, b), _) if *cmp == how => {
                    let is_it = |a: Val, b: Val| a == val && self.constant(b, ty) == Some(number);
                    if is_it(*a, *b) || is_it(*b, *a) {
                        return true;
                    }
                }
                // For `Eq`, one mask of an or is enough; for `Ne`, one mask of an and.
                (Instr::MaskOr(a, b), Cmp::Eq) | (Instr::MaskAnd(a, b), Cmp::Ne) => open.extend([*a, *b]),
                _ => {}
            }
        }
        false
    }

    fn constant(&self, val: Val, ty: MachineType) -> Option<i64> {
        match self.instrs[val.index()] {
            Instr::Const(_, bits) if ty == MachineType::I32 => Some(i64::from((bits as u32).cast_signed())),
            Instr::Const(_, bits) => Some(bits.cast_signed()),
            _ => None,
        }
    }

    /// Checks that a cell is a value of the type `ret`.
    fn result(&self, cell: Cell, ret: OperandType) -> Result<(), Refusal> {
        const RESULT: Refusal = "the result of the rule is not of the function's type";
        match cell.presence {
            Presence::Present => {}
            Presence::Missing => refuse_unless(ret.optional, RESULT)?,
            Presence::When(mask) => {
                refuse_unless(ret.optional, RESULT)?;
                self.masks(&[mask])?;
            }
        }
        match (cell.datum, ret.scalar.machine_type()) {
            (Datum::Unit, None) if ret.scalar == Scalar::Unit => Ok(()),
            (Datum::Flag(mask), Some(MachineType::Flag)) => self.masks(&[mask]),
            (Datum::Num(val), Some(ty)) => refuse_unless(self.number(val)? == ty, RESULT),
            (Datum::Text { ptr, len }, None) if ret.scalar.is_string() => self.view(ptr, len, ret.scalar),
            _ => Err(RESULT),
        }
    }
}

fn is_number(ty: MachineType) -> bool {
    ty != MachineType::Flag
}
