//! Instruction selection for masks: comparisons, and logic on their results. With AVX-512 a mask is in a mask register. With AVX2 it is a vector
//! whose lanes are as wide as the compared numbers. Where lanes of another width are needed, the vector is converted.
//!
//! A comparison that only a conjunction or a negation uses becomes a part of that instruction. A negation is computed at its first use.

use super::{Selector, by_element};
use crate::encode::{Code, Length};
use crate::program::{Class, Info, MachineOpKind, Op, Preset, Value, ValueMemory};
use cembra_runtime::MachineType;
use cembra_tape::{Cmp, Instr, Port};

/// The largest distance, in instructions, between a comparison and the conjunction that it becomes a part of: the compared values
/// stay in registers until then.
const NEAR: usize = 16;

/// A comparison of two numbers, or its negation.
#[derive(Clone, Copy)]
struct Comparison {
    op: Cmp,
    operands: [Value; 2],
    float: bool,
    opposite: bool,
}

impl Selector<'_> {
    /// The index, in `Selection::values`, of a mask with lanes of `element` bytes.
    fn width(&self, element: u8) -> usize {
        usize::from(!self.is_avx512() && element == 8)
    }

    /// Adds a new mask to the program. Without mask registers (AVX2) its lanes have `element` bytes.
    fn new_mask(&mut self, home: ValueMemory, element: u8) -> Value {
        if self.is_avx512() {
            return self.program.value(Info { home, class: Class::Mask, length: Length::X, element: 1 });
        }
        self.vector(home, element)
    }

    /// Returns the size of a lane in bytes for which the rows of a step (one vector of rows) fill a vector.
    fn widest(&self) -> u8 {
        if self.is_avx512() || self.program.rows == 8 { 4 } else { 8 }
    }

    pub(super) fn input_mask(&mut self, at: usize, port: u32, kind: Port) {
        let element = self.widest();
        let value = match kind {
            Port::Rows if self.is_avx512() => self.new_mask(ValueMemory::Bits(port, self.step), element),
            Port::Rows => {
                let byte = self.new_mask(ValueMemory::Bits(port, self.step), element);
                let bits = self.bits_of_lanes(element);
                let whole = self.whole();
                let found = self.plain(Code::AndVector, element, whole, [byte, bits], 0);
                self.plain(by_element(element, [Code::Equal32, Code::Equal64]), element, whole, [found, bits], 0)
            }
            // Inputs are never sums.
            Port::Shared | Port::Chains => {
                let slot = self.preset(Preset::Shared(port));
                self.new_mask(ValueMemory::Slot(slot), element)
            }
        };
        let width = self.width(element);
        self.selection.values[at][width] = value;
    }

    /// Returns a vector whose lanes have one bit each: the bit for the lane's row in a byte of bits. If a step has four
    /// rows, alternate steps use the lower and the upper half of a byte.
    fn bits_of_lanes(&mut self, element: u8) -> Value {
        if let Some(known) = self.selection.bits_of_lanes {
            return known;
        }
        let made = if element == 4 {
            self.pooled([0, 2, 4, 6].map(|lane| 1 << lane | 1 << (lane + 1 + 32)), element)
        } else {
            let [lower, upper] = [0, 4].map(|first| [0, 1, 2, 3].map(|lane| 1_u64 << (first + lane)));
            let offset = 8 * self.program.pool.len() as u32;
            self.program.pool.extend(lower.into_iter().chain(upper));
            self.vector(ValueMemory::Halves(offset), element)
        };
        self.selection.bits_of_lanes = Some(made);
        made
    }

    /// Returns the index of the stack slot that is filled with `preset` before the loop.
    fn preset(&mut self, preset: Preset) -> u32 {
        let presets = &mut self.program.presets;
        let known = presets.iter().position(|other| *other == preset);
        known.unwrap_or_else(|| {
            presets.push(preset);
            presets.len() - 1
        }) as u32
    }

    /// Selects the machine instructions for `instr`, an instruction that makes a mask and has the index `at` in the tape.
    pub(super) fn mask_instr(&mut self, at: usize, instr: &Instr) {
        let (value, element) = match instr {
            Instr::MaskConst(holds) => {
                let slot = self.preset(Preset::Constant(*holds));
                let element = self.widest();
                (self.new_mask(ValueMemory::Slot(slot), element), element)
            }
            Instr::Cmp(_, a, _) if !self.is_part(at) => {
                let element = self.program.info(self.number(a.index())).element;
                match self.comparison(at) {
                    Some(comparison) => (self.compare(comparison, Value::NONE), element),
                    None => return,
                }
            }
            Instr::MaskAnd(a, b) => {
                let (a, b) = (a.index(), b.index());
                let element = self.common(a, b);
                (self.conjunction(a, b, element), element)
            }
            Instr::MaskOr(a, b) => {
                let element = self.common(a.index(), b.index());
                let operands = [a, b].map(|mask| self.mask(mask.index(), element));
                (self.logic([Code::MaskOr8, Code::MaskOr16, Code::OrVector], element, operands), element)
            }
            Instr::MaskXor(a, b) => {
                let element = self.common(a.index(), b.index());
                let operands = [a, b].map(|mask| self.mask(mask.index(), element));
                (self.logic([Code::MaskXor8, Code::MaskXor16, Code::XorVector], element, operands), element)
            }
            // The mask is computed at its first use.
            _ => return,
        };
        let width = self.width(element);
        self.selection.values[at][width] = value;
    }

    /// Returns the bytes per lane in which two masks are combined: 4 if both have this width, else 8, because a mask is
    /// converted to 8 bytes per lane by one instruction.
    fn common(&self, a: usize, b: usize) -> u8 {
        if self.is_avx512() || self.program.rows == 8 {
            return 4;
        }
        let has = |mask: usize, element: u8| match self.selection.values[mask] {
            [Value::NONE, Value::NONE] => self.natural(mask) == element,
            values => values[usize::from(element == 8)].is_some(),
        };
        if has(a, 4) && has(b, 4) { 4 } else { 8 }
    }

    /// Selects the conjunction of the masks at the indices `a` and `b` of the tape.
    fn conjunction(&mut self, a: usize, b: usize, element: u8) -> Value {
        if self.is_avx512() {
            for (compared, other) in [(b, a), (a, b)] {
                let made = self.selection.values[compared][0].is_some();
                if !made
                    && self.is_part(compared)
                    && let Some(comparison) = self.comparison(compared)
                {
                    let other = self.mask(other, element);
                    return self.compare(comparison, other);
                }
            }
        }
        for (not, other) in [(a, b), (b, a)] {
            if let Instr::MaskNot(inner) = &self.tape.instrs()[not]
                && self.selection.needs.uses[not] == 1
                && !self.is_part(inner.index())
            {
                let operands = [self.mask(inner.index(), element), self.mask(other, element)];
                return self.logic([Code::MaskAndNot8, Code::MaskAndNot16, Code::AndNotVector], element, operands);
            }
        }
        let operands = [self.mask(a, element), self.mask(b, element)];
        self.logic([Code::MaskAnd8, Code::MaskAnd16, Code::AndVector], element, operands)
    }

    /// Returns true for a comparison that is computed as a part of the one instruction that uses it.
    fn is_part(&self, at: usize) -> bool {
        let needs = &self.selection.needs;
        let user = needs.user[at] as usize;
        matches!(self.tape.instrs()[at], Instr::Cmp(..))
            && needs.uses[at] == 1
            && user < self.tape.instrs().len()
            && user - at <= NEAR
            && match &self.tape.instrs()[user] {
                Instr::MaskNot(_) => true,
                // Of two comparisons, only the later becomes a part.
                Instr::MaskAnd(a, b) => self.is_avx512() && a != b && at == a.index().max(b.index()),
                _ => false,
            }
    }

    fn comparison(&mut self, at: usize) -> Option<Comparison> {
        let Instr::Cmp(op, a, b) = &self.tape.instrs()[at] else { return None };
        let ty: MachineType = self.tape.ty(*a);
        if self.selection.opposite[a.index()] {
            let op = match op {
                Cmp::Lt => Cmp::Gt,
                Cmp::Le => Cmp::Ge,
                Cmp::Gt => Cmp::Lt,
                Cmp::Ge => Cmp::Le,
                same => *same,
            };
            let operands = [self.number(a.index()), self.opposite_constant(*b)];
            return Some(Comparison { op, operands, float: true, opposite: false });
        }
        let operands = [self.number(a.index()), self.number(b.index())];
        Some(Comparison { op: *op, operands, float: ty.is_float(), opposite: false })
    }

    /// Returns the mask of the tape's instruction at index `at`, with lanes of any width. If the mask has been computed already, it is returned in
    /// the width that it has; otherwise in the width that needs no conversion.
    pub(super) fn mask_of_any_width(&mut self, at: usize) -> Value {
        let element = match self.selection.values[at] {
            [Value::NONE, Value::NONE] => self.natural(at),
            [Value::NONE, _] => 8,
            _ => 4,
        };
        self.mask(at, element)
    }

    /// Returns the width in which a mask is computed without a conversion, in bytes per lane.
    fn natural(&self, at: usize) -> u8 {
        let of = |at: usize| match &self.tape.instrs()[at] {
            Instr::Cmp(_, a, _) if !self.is_avx512() => Some(self.program.info(self.number(a.index())).element),
            _ => None,
        };
        match &self.tape.instrs()[at] {
            _ if self.is_avx512() => 4,
            Instr::MaskNot(inner) => match of(inner.index()) {
                Some(element) => element,
                None if self.selection.values[inner.index()][1].is_some() => 8,
                None => 4,
            },
            _ => of(at).unwrap_or(4),
        }
    }

    /// Returns the mask of the tape's instruction at index `at` with lanes of `element` bytes. If the mask does not exist in this width yet, it is
    /// converted or computed.
    pub(super) fn mask(&mut self, at: usize, element: u8) -> Value {
        let width = self.width(element);
        let known = self.selection.values[at][width];
        if known.is_some() {
            return known;
        }
        let other = self.selection.values[at][1 - width];
        let value = if other.is_some() {
            self.rewidened(other, element)
        } else {
            let natural = self.natural(at);
            let made = self.made_late(at, natural);
            if self.width(natural) == width {
                made
            } else {
                self.selection.values[at][1 - width] = made;
                self.selection.late.push((at as u32, 1 - width));
                self.rewidened(made, element)
            }
        };
        self.selection.values[at][width] = value;
        self.selection.late.push((at as u32, width));
        value
    }

    /// Computes a mask that was left to its first use, in the width `element`, its natural one.
    fn made_late(&mut self, at: usize, element: u8) -> Value {
        match &self.tape.instrs()[at] {
            Instr::MaskNot(inner) => {
                let inner = inner.index();
                let unmade = self.selection.values[inner].iter().all(|value| !value.is_some());
                match self.comparison(inner) {
                    Some(comparison) if unmade => {
                        let opposite = Comparison { opposite: true, ..comparison };
                        self.compare(opposite, Value::NONE)
                    }
                    _ => {
                        let mask = self.mask(inner, element);
                        self.negated(mask, element)
                    }
                }
            }
            _ => match self.comparison(at) {
                Some(comparison) => self.compare(comparison, Value::NONE),
                None => {
                    debug_assert!(false, "v{at} is used as a mask but was not evaluated");
                    self.new_mask(ValueMemory::None, element)
                }
            },
        }
    }

    /// Selects the negation of a mask.
    fn negated(&mut self, mask: Value, element: u8) -> Value {
        if !self.is_avx512() {
            let ones = self.constant(if element == 4 { 0xFFFF_FFFF } else { u64::MAX }, element);
            let length = self.length(element);
            return self.plain(Code::XorVector, element, length, [mask, ones], 0);
        }
        let code = if self.program.rows == 8 { Code::MaskNot8 } else { Code::MaskNot16 };
        let result = self.new_mask(ValueMemory::None, element);
        let op = self.op(MachineOpKind::Plain(code), Length::X);
        self.program.ops.push(Op { result, operands: [Value::NONE, mask, Value::NONE, Value::NONE], ..op });
        result
    }

    /// Selects a logical operation on two masks whose lanes have `element` bytes. `codes` are three instructions for the operation: for mask
    /// registers of 8 bits, for those of 16 bits, and for vectors.
    pub(super) fn logic(&mut self, codes: [Code; 3], element: u8, operands: [Value; 2]) -> Value {
        if !self.is_avx512() {
            let length = self.length(element);
            return self.plain(codes[2], element, length, operands, 0);
        }
        let result = self.new_mask(ValueMemory::None, element);
        let op = self.op(MachineOpKind::Plain(codes[usize::from(self.program.rows == 16)]), Length::Y);
        let [a, b] = operands;
        self.program.ops.push(Op { result, operands: [a, b, Value::NONE, Value::NONE], ..op });
        result
    }

    /// Selects the conversion of a mask in vectors to lanes of `element` bytes.
    fn rewidened(&mut self, mask: Value, element: u8) -> Value {
        if element == 8 {
            return self.plain(Code::WidenInt, 8, Length::Y, [Value::NONE, mask], 0);
        }
        self.even_words(mask)
    }

    /// Returns a vector of the lower 32 bits of each 64-bit element of `vector`, which has four elements.
    pub(super) fn even_words(&mut self, vector: Value) -> Value {
        let upper = self.plain(Code::UpperHalf, 4, Length::Y, [vector, Value::NONE], 1);
        self.plain(Code::Shuffle32, 4, Length::X, [vector, upper], 0x88)
    }

    /// Selects a comparison of two numbers. With AVX-512, the result is false in lanes where the mask `under` is.
    fn compare(&mut self, comparison: Comparison, under: Value) -> Value {
        let Comparison { op, operands: [a, b], float, opposite } = comparison;
        let element = self.program.info(a).element;
        let length = self.length(element);
        // Ordered predicates, except for not equal, quiet on NaN; their opposites are unordered.
        let predicate = match (op, opposite) {
            (Cmp::Eq, false) | (Cmp::Ne, true) => 0x00,
            (Cmp::Eq, true) | (Cmp::Ne, false) => 0x04,
            (Cmp::Lt, false) => 0x11,
            (Cmp::Le, false) => 0x12,
            (Cmp::Gt, false) => 0x1E,
            (Cmp::Ge, false) => 0x1D,
            (Cmp::Lt, true) => 0x15,
            (Cmp::Le, true) => 0x16,
            (Cmp::Gt, true) => 0x1A,
            (Cmp::Ge, true) => 0x19,
        };
        if self.is_avx512() {
            let (code, immediate) = if float {
                (by_element(element, [Code::Cmp32, Code::Cmp64]), predicate)
            } else {
                let predicate = match (op, opposite) {
                    (Cmp::Eq, false) | (Cmp::Ne, true) => 0,
                    (Cmp::Lt, false) | (Cmp::Ge, true) => 1,
                    (Cmp::Le, false) | (Cmp::Gt, true) => 2,
                    (Cmp::Ne, false) | (Cmp::Eq, true) => 4,
                    (Cmp::Ge, false) | (Cmp::Lt, true) => 5,
                    (Cmp::Gt, false) | (Cmp::Le, true) => 6,
                };
                (by_element(element, [Code::CmpInt32, Code::CmpInt64]), predicate)
            };
            return self.tested(code, [a, b], immediate, under);
        }
        if float {
            let code = by_element(element, [Code::CmpVector32, Code::CmpVector64]);
            return self.plain(code, element, length, [a, b], predicate);
        }
        let (equal, greater) = ([Code::Equal32, Code::Equal64], [Code::Greater32, Code::Greater64]);
        let (codes, operands, negated) = match op {
            Cmp::Eq => (equal, [a, b], false),
            Cmp::Ne => (equal, [a, b], true),
            Cmp::Gt => (greater, [a, b], false),
            Cmp::Le => (greater, [a, b], true),
            Cmp::Lt => (greater, [b, a], false),
            Cmp::Ge => (greater, [b, a], true),
        };
        let found = self.plain(by_element(element, codes), element, length, operands, 0);
        if negated == opposite { found } else { self.negated(found, element) }
    }

    /// Selects an instruction that compares or tests two vectors, and returns the mask register for its result. The result is false in each lane
    /// where the mask `under` is false.
    pub(super) fn tested(&mut self, code: Code, [a, b]: [Value; 2], immediate: u8, under: Value) -> Value {
        let element = self.program.info(a).element;
        let result = self.new_mask(ValueMemory::None, element);
        let op = self.op(MachineOpKind::Plain(code), self.length(element));
        self.program.ops.push(Op { result, operands: [a, b, Value::NONE, Value::NONE], immediate, mask: under, ..op });
        result
    }

    /// Selects a comparison of two vectors, for vectors that are not results of the tape's instructions. `float` tells whether their elements are
    /// floats.
    pub(super) fn compared(&mut self, op: Cmp, operands: [Value; 2], float: bool) -> Value {
        self.compare(Comparison { op, operands, float, opposite: false }, Value::NONE)
    }
}
