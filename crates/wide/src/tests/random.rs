//! Tests of random tapes: all instructions, widths and masks, more values than registers, instructions that a jump may skip, scalar functions that
//! are called for single lanes, and faults.

use super::{check, columns, random};
use cembra_runtime::{FaultKind, MachineType, RuntimeFn};
use cembra_tape::{Bin, Cmp, Mask, Output, Port, Shift, Tape, Un, Val};

const TYPES: [MachineType; 4] = [MachineType::I32, MachineType::I64, MachineType::F32, MachineType::F64];

/// The properties of a random tape.
#[derive(Clone, Copy)]
struct Style {
    /// The types of its numbers.
    types: &'static [MachineType],
    instructions: usize,
    inputs: usize,
    outputs: usize,
    /// On average, the number of instructions per fault; 0 for no faults. Faults occur in some rows only.
    faults: usize,
    /// True if all outputs are `F32` widened to `F64`, without masks.
    widens: bool,
}

struct Maker {
    tape: Tape,
    random: fastrand::Rng,
    style: Style,
    vals: Vec<Val>,
    masks: Vec<Mask>,
}

impl Maker {
    fn ty(&mut self) -> MachineType {
        self.style.types[self.random.usize(..self.style.types.len())]
    }

    /// Returns a random number of type `ty` from the tape, or a new constant.
    fn val(&mut self, ty: MachineType) -> Val {
        for _ in 0..20 {
            let at = self.random.usize(..self.vals.len());
            if self.tape.ty(self.vals[at]) == ty {
                return self.vals[at];
            }
        }
        let value = [0.0, 1.0, 2.0, -0.5, 3.0, 1e10][self.random.usize(..6)];
        let bits = match ty {
            MachineType::F32 => u64::from((value as f32).to_bits()),
            MachineType::F64 => f64::to_bits(value),
            MachineType::I32 => u64::from(value as i32 as u32),
            _ => value as i64 as u64,
        };
        self.tape.konst(ty, bits)
    }

    fn mask(&mut self) -> Mask {
        let at = self.random.usize(..self.masks.len());
        self.masks[at]
    }

    fn number(&mut self, ty: MachineType, value: f64) -> Val {
        let like = self.val(ty);
        self.tape.konst_like(like, value)
    }

    /// Records `x`, or 1 where `x` is NaN.
    fn clean(&mut self, x: Val) -> Val {
        let one = self.number(self.tape.ty(x), 1.0);
        let nan = self.tape.is_nan(x);
        self.tape.select(nan, one, x)
    }

    /// Records `x` where it is between `low` and `high`, else 1.
    fn between(&mut self, x: Val, low: f64, high: f64) -> Val {
        let ty = self.tape.ty(x);
        let (low, high, one) = (self.number(ty, low), self.number(ty, high), self.number(ty, 1.0));
        let (above, below) = (self.tape.cmp(Cmp::Gt, x, low), self.tape.cmp(Cmp::Lt, x, high));
        let inside = self.tape.mand(above, below);
        self.tape.select(inside, x, one)
    }

    fn one(&mut self) {
        let ty = self.ty();
        if self.random.u8(..6) == 0 {
            // More constants than stay in registers.
            let value = (self.random.f64() * 200.0 - 100.0).round() / 8.0;
            let constant = self.number(ty, value);
            self.vals.push(constant);
        }
        let made = match self.random.u8(..30) {
            0..=2 if ty.is_float() => {
                let (a, b, c) = (self.val(ty), self.val(ty), self.val(ty));
                self.tape.fma(a, b, c)
            }
            3 if ty.is_float() => {
                let op = [Un::Sqrt, Un::Floor, Un::Ceil, Un::Trunc][self.random.usize(..4)];
                let a = self.val(ty);
                self.tape.un(op, a)
            }
            4 if ty.is_float() => {
                let (a, b) = (self.val(ty), self.val(ty));
                let b = self.clean(b);
                self.tape.bin(Bin::Copysign, a, b)
            }
            5 if ty.is_float() => {
                let a = self.val(ty);
                let a = self.between(a, 1e-28, 1e30);
                let power = f64::from(self.random.i32(-200..200));
                let power = self.number(ty, power);
                self.tape.scale(a, power)
            }
            6 if ty.is_float() => {
                let a = self.val(ty);
                let a = self.between(a, 0.0, 3e38);
                let (mantissa, exponent) = self.tape.split(a);
                self.tape.bin(Bin::Sub, exponent, mantissa)
            }
            7 if ty.is_float() => {
                let (a, otherwise, mask) = (self.val(ty), self.val(ty), self.mask());
                let function = if ty == MachineType::F32 { RuntimeFn::AtanF32 } else { RuntimeFn::AtanF64 };
                self.tape.call_where(mask, function, &[a], otherwise)
            }
            8 if ty.is_float() => {
                let a = self.val(ty);
                let a = self.clean(a);
                let to = if ty == MachineType::F32 { MachineType::I32 } else { MachineType::I64 };
                self.tape.un(Un::Bitcast(to), a)
            }
            9 | 10 => {
                let to = self.ty();
                let a = self.val(ty);
                let a = if ty.is_float() && !to.is_float() { self.between(a, -2e9, 2e9) } else { a };
                self.tape.un(Un::Convert(to), a)
            }
            11 if !ty.is_float() => {
                let op = if self.random.bool() { Shift::Left } else { Shift::Right };
                let (a, by) = (self.val(ty), self.random.u8(..32));
                self.tape.shift(op, a, by)
            }
            12 if !ty.is_float() => {
                let op = [Bin::And, Bin::Or, Bin::Xor][self.random.usize(..3)];
                let (a, b) = (self.val(ty), self.val(ty));
                self.tape.bin(op, a, b)
            }
            13 | 14 => {
                let a = self.val(ty);
                self.tape.un(if self.random.bool() { Un::Neg } else { Un::Abs }, a)
            }
            15..=18 => {
                let (mask, on, off) = (self.mask(), self.val(ty), self.val(ty));
                self.tape.select(mask, on, off)
            }
            19..=21 => {
                let op = [Cmp::Eq, Cmp::Ne, Cmp::Lt, Cmp::Le, Cmp::Gt, Cmp::Ge][self.random.usize(..6)];
                let (a, b) = (self.val(ty), self.val(ty));
                let mask = self.tape.cmp(op, a, b);
                return self.masks.push(mask);
            }
            22..=25 => {
                let (a, b) = (self.mask(), self.mask());
                let mask = match self.random.u8(..4) {
                    0 => self.tape.mand(a, b),
                    1 => self.tape.mor(a, b),
                    2 => self.tape.mxor(a, b),
                    _ => self.tape.mnot(a),
                };
                return self.masks.push(mask);
            }
            26 | 27 if ty.is_float() => {
                let op = [Bin::Div, Bin::FMin, Bin::FMax][self.random.usize(..3)];
                let (a, b) = (self.val(ty), self.val(ty));
                self.tape.bin(op, a, b)
            }
            _ => {
                let op = [Bin::Add, Bin::Sub, Bin::Mul][self.random.usize(..3)];
                let (a, b) = (self.val(ty), self.val(ty));
                self.tape.bin(op, a, b)
            }
        };
        self.vals.push(made);
    }

    /// Records a stretch (instructions that a jump may skip). Values computed in it are used after it only under its
    /// mask.
    fn stretch(&mut self, outer: Option<Mask>) {
        let (vals, masks) = (self.vals.len(), self.masks.len());
        let mask = self.mask();
        if self.tape.known(mask).is_some() {
            return;
        }
        self.tape.begin(mask);
        for _ in 0..self.random.usize(5..60) {
            self.one();
        }
        if outer.is_none() && self.random.bool() {
            self.stretch(Some(mask));
        }
        if self.style.faults > 0 && self.random.u8(..4) == 0 {
            let active = outer.map_or(mask, |outer| self.tape.mand(outer, mask));
            self.fault(Some(active));
        }
        self.tape.end();
        let made: Vec<Val> = self.vals.drain(vals..).collect();
        let found: Vec<Mask> = self.masks.drain(masks..).collect();
        for val in made.into_iter().rev().take(6) {
            let off = self.val(self.tape.ty(val));
            let chosen = self.tape.select(mask, val, off);
            self.vals.push(chosen);
        }
        for other in found.into_iter().rev().take(3) {
            let both = self.tape.mand(mask, other);
            self.masks.push(both);
        }
    }

    fn fault(&mut self, active: Option<Mask>) {
        // Rare enough that some tapes of many rows have no failing row.
        let ty = self.ty();
        let a = self.val(ty);
        let seldom = self.number(ty, 77.0);
        let mask = self.tape.cmp(Cmp::Eq, a, seldom);
        let other = self.mask();
        let mask = self.tape.mand(mask, other);
        let before = self.tape.set_active(active);
        self.tape.fault_if(mask, FaultKind::Invalid, [Some(a), None]);
        self.tape.set_active(before);
    }
}

fn make(style: Style, seed: u64) -> Tape {
    let mut maker = Maker { tape: Tape::new(), random: random(seed), style, vals: Vec::new(), masks: Vec::new() };
    for _ in 0..style.inputs {
        let ty = maker.ty();
        let val = maker.tape.input(ty);
        maker.vals.push(val);
        if maker.random.bool() || maker.masks.is_empty() {
            let mask = maker.tape.input_mask();
            maker.masks.push(mask);
        }
    }
    // Every type has at least one input.
    for ty in style.types {
        let val = maker.tape.input(*ty);
        maker.vals.push(val);
    }
    while maker.tape.instrs().len() < style.instructions {
        if maker.random.u8(..60) == 0 {
            maker.stretch(None);
        } else if style.faults > 0 && maker.random.usize(..style.faults) == 0 {
            maker.fault(None);
        }
        maker.one();
    }
    for _ in 0..style.outputs {
        if style.widens {
            let val = maker.val(MachineType::F32);
            let wide = maker.tape.un(Un::Convert(MachineType::F64), val);
            maker.tape.output(Output::Number(wide));
            continue;
        }
        let ty = maker.ty();
        let val = maker.val(ty);
        maker.tape.output(Output::Number(val));
        let mask = maker.mask();
        maker.tape.output(Output::Mask(mask));
    }
    maker.tape.finish();
    assert_eq!(maker.tape.check_stretches(), Ok(()), "seed {seed}\n{}", maker.tape);
    maker.tape
}

const MIXED: Style = Style { types: &TYPES, instructions: 60, inputs: 4, outputs: 2, faults: 0, widens: false };

fn ports(tape: &Tape, seed: u64) -> Vec<Port> {
    let mut random = random(seed);
    let shared = random.u8(..3) == 0;
    tape.inputs().map(|_| if shared && random.u8(..4) == 0 { Port::Shared } else { Port::Rows }).collect()
}

#[test]
fn small_tapes_on_all_small_numbers_of_rows() {
    let counts: Vec<usize> = (0..=70).chain([127, 1000, 1025]).collect();
    for seed in 0..12 {
        let style = Style { instructions: 12 + 8 * seed as usize, ..MIXED };
        let style = match seed % 3 {
            0 => Style { types: &[MachineType::F32, MachineType::I32], ..style },
            _ => style,
        };
        let tape = make(style, seed);
        check(&format!("seed {seed}"), &tape, &ports(&tape, seed), &columns(&tape, 1025, seed), &counts);
    }
}

#[test]
fn tapes_of_all_kinds() {
    for seed in 0..300 {
        let style = Style { instructions: 20 + (seed as usize * 7) % 180, inputs: 1 + seed as usize % 12, ..MIXED };
        let style = match seed % 5 {
            0 => Style { types: &[MachineType::F32], ..style },
            1 => Style { types: &[MachineType::F64], ..style },
            2 => Style { types: &[MachineType::F32, MachineType::F64], ..style },
            _ => style,
        };
        let tape = make(style, 1000 + seed);
        check(&format!("seed {seed}"), &tape, &ports(&tape, seed), &columns(&tape, 75, seed), &[75, 16, 3]);
    }
}

/// Sums of numbers that are widened only to be added: few enough for registers or more, in short and long loops, with and without
/// 64-bit numbers.
#[test]
fn sums_of_floats_of_32_bits() {
    let counts: Vec<usize> = (0..=70).chain([127, 128, 200]).collect();
    for seed in 0..120 {
        let mixed: &[MachineType] = if seed % 4 == 0 { &TYPES } else { &[MachineType::F32, MachineType::I32] };
        let instructions = 4 + (seed as usize * 5) % 150;
        let inputs = 1 + seed as usize % 9;
        let faults = if seed % 10 == 9 { 40 } else { 0 };
        let style = Style { types: mixed, instructions, inputs, outputs: 1 + seed as usize % 3, faults, widens: true };
        let tape = make(style, 4000 + seed);
        let counts = if seed < 12 { &counts[..] } else { &[75, 64, 16, 3] };
        check(&format!("seed {seed}"), &tape, &ports(&tape, seed), &columns(&tape, 200, seed), counts);
    }
}

#[test]
fn more_values_than_registers() {
    for seed in 0..60 {
        let style = Style { instructions: 300 + 20 * seed as usize, inputs: 40, outputs: 30, ..MIXED };
        let style = if seed % 3 == 0 { Style { types: &[MachineType::F32, MachineType::I32], ..style } } else { style };
        let tape = make(style, 2000 + seed);
        check(&format!("seed {seed}"), &tape, &ports(&tape, seed), &columns(&tape, 41, seed), &[41, 32]);
    }
}

#[test]
fn some_rows_fail() {
    let mut failing = 0;
    for seed in 0..150 {
        let style = Style { instructions: 30 + seed as usize, faults: 6, ..MIXED };
        let tape = make(style, 3000 + seed);
        let mut columns = columns(&tape, 70, seed);
        // A row fails if a number equals 77.
        let mut random = random(seed);
        for ((_, ty), column) in tape.inputs().zip(&mut columns) {
            let bits = match ty {
                MachineType::F32 => u64::from(77_f32.to_bits()),
                MachineType::F64 => 77_f64.to_bits(),
                MachineType::Flag => continue,
                _ => 77,
            };
            column[random.usize(..70)] = bits;
        }
        let ports = vec![Port::Rows; columns.len()];
        let case = super::Case::new("faults", &tape, &ports, &columns, 70);
        failing += usize::from(case.expected.iter().any(Option::is_none));
        check(&format!("seed {seed}"), &tape, &ports, &columns, &[0, 1, 5, 13, 32, 64, 70]);
    }
    assert!((20..148).contains(&failing), "{failing}");
}
