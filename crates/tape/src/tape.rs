//! The type `Tape` with its methods: lowering rules record instructions with some of them, and backends read
//! instructions with others. Only operations on masks and selections are simplified while they are recorded, for
//! example if a mask is constant. All other operations stay as the rule recorded them, because backends choose the
//! machine instructions.

use crate::{Bin, Cmp, Instr, Mask, Output, Shift, Un, Val};
use cembra_runtime::{FaultKind, MachineType, RuntimeFn};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// A typed program without branches: instructions, inputs and outputs. Instructions are recorded one after the other;
/// then [`Tape::finish`] finds out which of them are needed.
#[derive(Clone, Debug, Default)]
pub struct Tape {
    pub(crate) instrs: Vec<Instr>,
    pub(crate) types: Vec<MachineType>,
    /// For each instruction, the index of the plan's step that it was recorded for.
    sites: Vec<u32>,
    constants: FxHashMap<(MachineType, u64), Val>,
    mask_constants: [Option<Mask>; 2],
    active: Option<Mask>,
    site: u32,
    /// The positions of the inputs on the tape, in the order in which they were recorded.
    inputs: Vec<u32>,
    outputs: Vec<Output>,
    /// For each instruction, true if an output or a fault needs it. The list is empty until the tape is finished.
    live: Vec<bool>,
    pub(crate) calling: bool,
}

impl Tape {
    /// Makes an empty tape.
    #[must_use]
    pub fn new() -> Self {
        Tape::default()
    }

    /// Removes all instructions, but keeps the allocated memory and the setting of `set_inlining`.
    pub fn clear(&mut self) {
        self.instrs.clear();
        self.types.clear();
        self.sites.clear();
        self.constants.clear();
        self.mask_constants = [None; 2];
        self.active = None;
        self.site = 0;
        self.inputs.clear();
        self.outputs.clear();
        self.live.clear();
    }

    /// The bytes of heap memory that the tape owns.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        size_of_val(&self.instrs[..]) + size_of_val(&self.types[..]) + size_of_val(&self.sites[..]) + self.live.len()
    }

    /// The instructions of the tape, in order.
    #[must_use]
    pub fn instrs(&self) -> &[Instr] {
        &self.instrs
    }

    /// The position and the type of each input of the tape, `Flag` for masks, in the order in which the inputs were
    /// recorded.
    pub fn inputs(&self) -> impl ExactSizeIterator<Item = (usize, MachineType)> + '_ {
        self.inputs.iter().map(|at| (*at as usize, self.types[*at as usize]))
    }

    /// The index among the tape's inputs of the instruction at `position`; `None` if this instruction is not an input.
    #[must_use]
    pub fn input_at(&self, position: usize) -> Option<usize> {
        self.inputs.binary_search(&(position as u32)).ok()
    }

    /// Returns true if the mask `a` was recorded as the negation of `b`.
    #[must_use]
    pub fn is_not(&self, a: Mask, b: Mask) -> bool {
        matches!(self.instrs[a.index()], Instr::MaskNot(inner) if inner == b)
    }

    /// Declares that `output`, a value on the tape, is an output of the tape.
    pub fn output(&mut self, output: Output) {
        self.outputs.push(output);
    }

    /// The outputs of the tape, in the order in which they were declared.
    #[must_use]
    pub fn outputs(&self) -> &[Output] {
        &self.outputs
    }

    /// The index of the plan's step for which the instruction at position `at` was first recorded. Other steps of the
    /// plan may use the instruction too.
    #[must_use]
    pub fn site(&self, at: usize) -> u32 {
        self.sites.get(at).copied().unwrap_or_default()
    }

    /// Sets the index of the plan's step that the following instructions are recorded for.
    pub fn set_site(&mut self, site: u32) {
        self.site = site;
    }

    /// Restricts the faults that are recorded from now on to the mask `active`, for example the mask that holds where
    /// all arguments of an operator are present. Returns the previous mask; `None` means no restriction.
    pub fn set_active(&mut self, active: Option<Mask>) -> Option<Mask> {
        std::mem::replace(&mut self.active, active)
    }

    /// The mask to which faults that are recorded now are restricted; `None` if such faults are not restricted.
    #[must_use]
    pub fn active(&self) -> Option<Mask> {
        self.active
    }

    fn push(&mut self, instr: Instr) -> u32 {
        let ty = match &instr {
            Instr::Input(ty) | Instr::Const(ty, _) | Instr::Un(Un::Convert(ty) | Un::Bitcast(ty), _) => *ty,
            Instr::Un(_, a) | Instr::Bin(_, a, _) | Instr::Shift(_, a, _) | Instr::Fma(a, _, _) => self.ty(*a),
            Instr::Select { on: like, .. } | Instr::RareCall { otherwise: like, .. } => self.ty(*like),
            Instr::Call(function, _) => function.signature().1,
            _ => MachineType::Flag,
        };
        self.types.push(ty);
        self.sites.push(self.site);
        self.instrs.push(instr);
        self.instrs.len() as u32 - 1
    }

    /// Records an input that is a number of type `ty`.
    pub fn input(&mut self, ty: MachineType) -> Val {
        let at = self.push(Instr::Input(ty));
        self.inputs.push(at);
        Val(at)
    }

    /// Records an input that is a mask.
    pub fn input_mask(&mut self) -> Mask {
        let at = self.push(Instr::InputMask);
        self.inputs.push(at);
        Mask(at)
    }

    /// Returns a constant of type `ty` with these zero-extended bits. Equal constants are recorded as one instruction.
    pub fn konst(&mut self, ty: MachineType, bits: u64) -> Val {
        if let Some(&known) = self.constants.get(&(ty, bits)) {
            return known;
        }
        let val = Val(self.push(Instr::Const(ty, bits)));
        self.constants.insert((ty, bits), val);
        val
    }

    /// Returns the constant `value` in the type of `like`. The value must be a small whole number or a fraction that is
    /// exact in both float types.
    pub fn konst_like(&mut self, like: Val, value: f64) -> Val {
        let ty = self.ty(like);
        let bits = match ty {
            MachineType::I32 => u64::from((value as i32).cast_unsigned()),
            MachineType::I64 => (value as i64).cast_unsigned(),
            MachineType::F32 => u64::from((value as f32).to_bits()),
            MachineType::F64 => value.to_bits(),
            MachineType::Flag => u64::from(value != 0.0),
        };
        self.konst(ty, bits)
    }

    /// Returns a constant mask. Equal constants are recorded as one instruction.
    pub fn mconst(&mut self, value: bool) -> Mask {
        if let Some(known) = self.mask_constants[usize::from(value)] {
            return known;
        }
        let mask = Mask(self.push(Instr::MaskConst(value)));
        self.mask_constants[usize::from(value)] = Some(mask);
        mask
    }

    /// The value of `mask` if it is constant; else `None`.
    #[must_use]
    pub fn known(&self, mask: Mask) -> Option<bool> {
        match self.instrs[mask.index()] {
            Instr::MaskConst(value) => Some(value),
            _ => None,
        }
    }

    /// The bits of `val` if it is a constant number; else `None`.
    #[must_use]
    pub fn known_bits(&self, val: Val) -> Option<u64> {
        match self.instrs[val.index()] {
            Instr::Const(_, bits) => Some(bits),
            _ => None,
        }
    }

    /// The type of a number; `Flag` if the instruction makes a mask.
    #[must_use]
    pub fn ty(&self, val: Val) -> MachineType {
        self.types[val.index()]
    }

    /// Records the operation `op` on one number.
    pub fn un(&mut self, op: Un, a: Val) -> Val {
        Val(self.push(Instr::Un(op, a)))
    }

    /// Records the operation `op` on two numbers of one type.
    pub fn bin(&mut self, op: Bin, a: Val, b: Val) -> Val {
        Val(self.push(Instr::Bin(op, a, b)))
    }

    /// Records the computation of `a * 2^power`, rounded once: see [`Bin::Scale`].
    pub fn scale(&mut self, a: Val, power: Val) -> Val {
        self.bin(Bin::Scale, a, power)
    }

    /// Records the splitting of a positive, finite float into a mantissa and a power of two: see [`Un::Mantissa`] and
    /// [`Un::Exponent`].
    pub fn split(&mut self, a: Val) -> (Val, Val) {
        (self.un(Un::Mantissa, a), self.un(Un::Exponent, a))
    }

    /// Begins a stretch: a range of instructions whose results matter only where the mask holds. A backend may jump
    /// over the stretch if the mask holds in no lane.
    pub fn begin(&mut self, mask: Mask) {
        self.push(Instr::Begin(mask));
    }

    /// Ends the innermost open stretch, a range of instructions that a backend may jump over.
    pub fn end(&mut self) {
        self.push(Instr::End);
    }

    /// Records a shift by the constant `amount`, which must be less than the width of the type in bits.
    pub fn shift(&mut self, op: Shift, a: Val, amount: u8) -> Val {
        Val(self.push(Instr::Shift(op, a, amount)))
    }

    /// Records the computation of `a * b + c`, rounded once.
    pub fn fma(&mut self, a: Val, b: Val, c: Val) -> Val {
        Val(self.push(Instr::Fma(a, b, c)))
    }

    /// Records a comparison of two numbers of one type.
    pub fn cmp(&mut self, op: Cmp, a: Val, b: Val) -> Mask {
        Mask(self.push(Instr::Cmp(op, a, b)))
    }

    /// Returns the mask that holds where the float `a` is NaN; a constant mask if `a` is constant.
    pub fn is_nan(&mut self, a: Val) -> Mask {
        match self.known_bits(a) {
            Some(bits) => {
                let nan = match self.ty(a) {
                    MachineType::F32 => f32::from_bits(bits as u32).is_nan(),
                    MachineType::F64 => f64::from_bits(bits).is_nan(),
                    _ => false,
                };
                self.mconst(nan)
            }
            None => self.cmp(Cmp::Ne, a, a),
        }
    }

    /// Returns `on` where the mask holds, else `off`. Use this method if the mask differs from row to row; see also
    /// [`Tape::select_rare`].
    pub fn select(&mut self, mask: Mask, on: Val, off: Val) -> Val {
        self.select_with(mask, on, off, false)
    }

    /// Returns `on` where the mask holds, else `off`. Use this method for a special case, whose mask is the same in
    /// nearly all rows; see also [`Tape::select`].
    pub fn select_rare(&mut self, mask: Mask, on: Val, off: Val) -> Val {
        self.select_with(mask, on, off, true)
    }

    fn select_with(&mut self, mask: Mask, on: Val, off: Val, rare: bool) -> Val {
        match self.known(mask) {
            Some(true) => on,
            Some(false) => off,
            None if on == off => on,
            None => Val(self.push(Instr::Select { mask, on, off, rare })),
        }
    }

    /// Returns the mask that holds where both `a` and `b` hold.
    pub fn mand(&mut self, a: Mask, b: Mask) -> Mask {
        match (self.known(a), self.known(b)) {
            (Some(true), _) => b,
            (_, Some(true)) | (Some(false), _) => a,
            (_, Some(false)) => b,
            _ if a == b => a,
            _ => Mask(self.push(Instr::MaskAnd(a, b))),
        }
    }

    /// Returns the mask that holds where `a` or `b` holds.
    pub fn mor(&mut self, a: Mask, b: Mask) -> Mask {
        match (self.known(a), self.known(b)) {
            (Some(false), _) => b,
            (_, Some(false)) | (Some(true), _) => a,
            (_, Some(true)) => b,
            _ if a == b => a,
            _ => Mask(self.push(Instr::MaskOr(a, b))),
        }
    }

    /// Returns the mask that holds where exactly one of `a` and `b` holds.
    pub fn mxor(&mut self, a: Mask, b: Mask) -> Mask {
        match (self.known(a), self.known(b)) {
            (Some(false), _) => b,
            (_, Some(false)) => a,
            (Some(true), _) => self.mnot(b),
            (_, Some(true)) => self.mnot(a),
            _ => Mask(self.push(Instr::MaskXor(a, b))),
        }
    }

    /// Returns the mask that holds where `a` does not hold.
    pub fn mnot(&mut self, a: Mask) -> Mask {
        match (&self.instrs[a.index()], self.known(a)) {
            (_, Some(value)) => self.mconst(!value),
            (Instr::MaskNot(inner), _) => *inner,
            _ => Mask(self.push(Instr::MaskNot(a))),
        }
    }

    /// Returns the mask that equals `on` where `mask` holds, and `off` elsewhere.
    pub fn mselect(&mut self, mask: Mask, on: Mask, off: Mask) -> Mask {
        match (self.known(on), self.known(off)) {
            _ if on == off => on,
            (Some(true), _) => self.mor(mask, off),
            (_, Some(false)) => self.mand(mask, on),
            _ => {
                let inside = self.mand(mask, on);
                let not = self.mnot(mask);
                let outside = self.mand(not, off);
                self.mor(inside, outside)
            }
        }
    }

    /// Records that the evaluation stops with a fault of the kind `kind` where both `mask` and the mask of
    /// [`Tape::set_active`] hold. The fault's message shows the `operands`.
    pub fn fault_if(&mut self, mask: Mask, kind: FaultKind, operands: [Option<Val>; 2]) {
        let mask = match self.active {
            Some(active) => self.mand(active, mask),
            None => mask,
        };
        if self.known(mask) != Some(false) {
            let site = self.site;
            self.push(Instr::FaultIf { mask, kind, operands, site });
        }
    }

    /// Records a call of a runtime function and returns its result.
    pub fn call(&mut self, function: RuntimeFn, args: &[Val]) -> Val {
        Val(self.push(Instr::Call(function, SmallVec::from_slice(args))))
    }

    /// Records a call of a runtime function in the lanes in which the mask holds, and returns the result; in other
    /// lanes the result is `otherwise`. Mathematical functions are called in this way for rare arguments.
    pub fn call_where(&mut self, mask: Mask, function: RuntimeFn, args: &[Val], otherwise: Val) -> Val {
        match self.known(mask) {
            Some(true) => self.call(function, args),
            Some(false) => otherwise,
            None => Val(self.push(Instr::RareCall { mask, function, args: SmallVec::from_slice(args), otherwise })),
        }
    }

    /// Finishes the tape, once all instructions and outputs are recorded: finds the instructions that outputs and
    /// faults need. The begin and the end of a stretch (skippable range of instructions) are needed if any instruction
    /// in it is needed.
    pub fn finish(&mut self) {
        self.live.clear();
        self.live.resize(self.instrs.len(), false);
        for output in &self.outputs {
            self.live[output.index()] = true;
        }
        // For each open stretch, from the end backwards: the position of its end, and whether anything in it is needed.
        let mut open: Vec<(usize, bool)> = Vec::new();
        for at in (0..self.instrs.len()).rev() {
            let instr = &self.instrs[at];
            match instr {
                Instr::End => open.push((at, false)),
                Instr::Begin(_) => {
                    if let Some((end, true)) = open.pop() {
                        (self.live[at], self.live[end]) = (true, true);
                    }
                }
                Instr::FaultIf { .. } => self.live[at] = true,
                _ => {}
            }
            if self.live[at] {
                if let Some((_, needed)) = open.last_mut() {
                    *needed |= !instr.is_shared();
                }
                instr.for_each_operand(|operand| self.live[operand] = true);
            }
        }
    }

    /// For each instruction of the tape, true if an output or a fault needs it. The tape must be finished.
    #[must_use]
    pub fn live(&self) -> &[bool] {
        debug_assert_eq!(self.live.len(), self.instrs.len(), "the tape is not finished");
        &self.live
    }

    /// Removes the instructions that no output and no fault needs, including unneeded inputs. The tape must be
    /// finished, and no instruction may be recorded on it afterwards.
    pub fn sweep(&mut self) {
        if self.live().iter().all(|live| *live) {
            return;
        }
        // The new position of each instruction that stays.
        let mut moved: Vec<u32> = vec![0; self.instrs.len()];
        let mut kept = 0;
        for at in 0..self.instrs.len() {
            if !self.live[at] {
                continue;
            }
            moved[at] = kept as u32;
            self.instrs[at].move_operands(|operand| moved[operand as usize]);
            self.instrs.swap(at, kept);
            (self.types[kept], self.sites[kept]) = (self.types[at], self.sites[at]);
            kept += 1;
        }
        self.instrs.truncate(kept);
        self.types.truncate(kept);
        self.sites.truncate(kept);
        self.inputs.retain(|at| self.live[*at as usize]);
        self.inputs.iter_mut().for_each(|at| *at = moved[*at as usize]);
        self.outputs.iter_mut().for_each(|output| *output = output.moved(|at| moved[at as usize]));
        self.live.clear();
        self.live.resize(kept, true);
        self.constants.clear();
        self.mask_constants = [None; 2];
        self.active = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_needed_is_swept_away() {
        let mut tape = Tape::new();
        let (unused, x, y) = (tape.input(MachineType::F64), tape.input(MachineType::F64), tape.input_mask());
        tape.bin(Bin::Add, unused, x);
        let two = tape.konst(MachineType::F64, 2_f64.to_bits());
        tape.set_site(7);
        let product = tape.bin(Bin::Mul, x, two);
        let not = tape.mnot(y);
        let chosen = tape.select(not, product, x);
        tape.fault_if(y, FaultKind::Invalid, [Some(product), None]);
        tape.output(Output::Number(chosen));
        tape.finish();
        tape.sweep();
        assert_eq!(tape.inputs().collect::<Vec<_>>(), [(0, MachineType::F64), (1, MachineType::Flag)]);
        assert_eq!((tape.live().len(), tape.site(2), tape.site(3)), (7, 0, 7));
        let swept = "v0 = input F64\nv1 = input mask\nv2 = const F64 0x4000000000000000\nv3 = Mul v0 v2\nv4 = not v1\n\
                     v5 = select v4 v3 v0\nv6 = fault_if v1 invalid at 7\n-> v5\n";
        assert_eq!(tape.to_string(), swept);
        assert_eq!((tape.input_at(1), tape.input_at(2)), (Some(1), None));
    }
}
