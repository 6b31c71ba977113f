//! Tests of every tape instruction with every type: an instruction set either refuses it, or gives the results of the
//! reference evaluator for all operands whose result is specified.

use super::{bits, can_play, check, random, sets};
use crate::Isa;
use cembra_runtime::{MachineType, RuntimeFn};
use cembra_tape::{Bin, Cmp, Mask, Output, Port, Shift, Tape, Un, Val};
use std::collections::BTreeSet;

const TYPES: [MachineType; 4] = [MachineType::I32, MachineType::I64, MachineType::F32, MachineType::F64];

const UNARY: [Un; 16] = [
    Un::Neg,
    Un::Abs,
    Un::Sqrt,
    Un::Floor,
    Un::Ceil,
    Un::Trunc,
    Un::Convert(MachineType::I32),
    Un::Convert(MachineType::I64),
    Un::Convert(MachineType::F32),
    Un::Convert(MachineType::F64),
    Un::Bitcast(MachineType::I32),
    Un::Bitcast(MachineType::I64),
    Un::Bitcast(MachineType::F32),
    Un::Bitcast(MachineType::F64),
    Un::Mantissa,
    Un::Exponent,
];

const BINARY: [Bin; 11] = [
    Bin::Add,
    Bin::Sub,
    Bin::Mul,
    Bin::Div,
    Bin::And,
    Bin::Or,
    Bin::Xor,
    Bin::FMin,
    Bin::FMax,
    Bin::Copysign,
    Bin::Scale,
];

const COMPARISONS: [Cmp; 6] = [Cmp::Eq, Cmp::Ne, Cmp::Lt, Cmp::Le, Cmp::Gt, Cmp::Ge];

const COUNTS: [usize; 5] = [1, 7, 16, 64, 300];

/// The value of a float, given by its bits.
fn value(ty: MachineType, bits: u64) -> f64 {
    if ty == MachineType::F32 { f32::from_bits(bits as u32).into() } else { f64::from_bits(bits) }
}

fn of_value(ty: MachineType, value: f64) -> u64 {
    if ty == MachineType::F32 { u64::from((value as f32).to_bits()) } else { value.to_bits() }
}

/// Returns columns for inputs of these types, with random rows for which `suits` holds.
fn suiting(types: &[MachineType], seed: u64, suits: impl Fn(&[u64]) -> bool) -> Vec<Vec<u64>> {
    let mut random = random(seed);
    let mut columns = vec![Vec::new(); types.len()];
    while columns[0].len() < 300 {
        let row: Vec<u64> = types.iter().map(|ty| bits(&mut random, *ty)).collect();
        if suits(&row) {
            columns.iter_mut().zip(row).for_each(|(column, bits)| column.push(bits));
        }
    }
    columns
}

/// Tests one instruction on inputs of these types: alone, and together with a float of each width, which may change the
/// number of rows in a step. Returns the instruction sets that can execute it.
fn play(
    name: &str,
    types: &[MachineType],
    columns: &[Vec<u64>],
    record: impl Fn(&mut Tape, &[Val]) -> Output,
) -> BTreeSet<IsaNumber> {
    let mut played = BTreeSet::new();
    for beside in [None, Some(MachineType::F32), Some(MachineType::F64)] {
        let mut tape = Tape::new();
        let inputs: Vec<Val> = types.iter().map(|ty| tape.input(*ty)).collect();
        let output = record(&mut tape, &inputs);
        tape.output(output);
        let mut columns = columns.to_vec();
        if let Some(ty) = beside {
            let other = tape.input(ty);
            let root = tape.un(Un::Sqrt, other);
            tape.output(Output::Number(root));
            columns.push(vec![of_value(ty, 2.0); 300]);
        }
        tape.finish();
        for isa in sets().filter(|isa| can_play(&tape, *isa)) {
            played.insert(isa as IsaNumber);
        }
        let ports = vec![Port::Rows; columns.len()];
        check(name, &tape, &ports, &columns, &COUNTS);
    }
    played
}

/// The number of an instruction set.
type IsaNumber = u8;

fn both() -> BTreeSet<IsaNumber> {
    sets().map(|isa| isa as IsaNumber).collect()
}

#[test]
fn operations_on_one_number() {
    let mut count = 0;
    for op in UNARY {
        for ty in TYPES {
            let name = format!("{op:?} of {ty:?}");
            let columns = suiting(&[ty], count, |row| match op {
                Un::Convert(MachineType::I32) if ty.is_float() => value(ty, row[0]).abs() < 2_147_483_000.0,
                Un::Convert(MachineType::I64) if ty.is_float() => value(ty, row[0]).abs() < 9.2e18,
                Un::Mantissa | Un::Exponent if ty.is_float() => {
                    value(ty, row[0]) > 0.0 && value(ty, row[0]).is_finite()
                }
                _ => true,
            });
            let played = play(&name, &[ty], &columns, |tape, inputs| Output::Number(tape.un(op, inputs[0])));
            let double = |ty: MachineType| matches!(ty, MachineType::I64 | MachineType::F64);
            let refused = match op {
                Un::Sqrt | Un::Floor | Un::Ceil | Un::Trunc | Un::Mantissa | Un::Exponent => !ty.is_float(),
                Un::Bitcast(to) => double(to) != double(ty),
                _ => false,
            };
            let expected = if refused { BTreeSet::new() } else { both() };
            assert_eq!(played, expected, "{name}");
            count += 1;
        }
    }
}

/// Integers with special halves, and integers half way between two floats.
#[test]
fn long_integers_as_floats_and_back() {
    let mut random = random(11);
    let mut column: Vec<u64> = Vec::new();
    for bits in 0..64 {
        for _ in 0..40 {
            let power = 1_u64 << bits;
            let half = if bits > 25 { power >> random.u32(20..56).min(bits) } else { 0 };
            let near = power.wrapping_add(half).wrapping_add(random.u64(0..3)).wrapping_sub(1);
            column.push(if random.bool() { near } else { near.wrapping_neg() });
            column.push(random.u64(..) >> random.u32(0..64));
        }
    }
    let rows = column.len();
    for to in [MachineType::F32, MachineType::F64] {
        let mut tape = Tape::new();
        let x = tape.input(MachineType::I64);
        let float = tape.un(Un::Convert(to), x);
        tape.output(Output::Number(float));
        // Without the lower half, and with one bit of it.
        for kept in [0xFFF0_0000_0000_0000, 0xFFFF_FFFF_0000_0000, 0xFFFF_FFFF_8000_0000] {
            let places = tape.konst(MachineType::I64, kept);
            let cut = tape.bin(Bin::And, x, places);
            let cut = tape.un(Un::Convert(to), cut);
            tape.output(Output::Number(cut));
        }
        // Back from floats that fit.
        let bound = tape.konst_like(float, 9.2e18);
        let size = tape.un(Un::Abs, float);
        let fits = tape.cmp(Cmp::Lt, size, bound);
        let half = tape.konst_like(float, 0.5);
        let part = tape.bin(Bin::Mul, float, half);
        for float in [float, part] {
            let zero = tape.konst_like(float, 0.0);
            let float = tape.select(fits, float, zero);
            let back = tape.un(Un::Convert(MachineType::I64), float);
            tape.output(Output::Number(back));
        }
        tape.finish();
        check("long", &tape, &[Port::Rows], &[column.clone()], &[rows]);
    }
}

#[test]
fn operations_on_two_numbers() {
    let mut count = 100;
    for op in BINARY {
        for ty in TYPES {
            let name = format!("{op:?} of {ty:?}");
            let columns = suiting(&[ty, ty], count, |row| {
                if op != Bin::Scale || !ty.is_float() {
                    // The sign of a NaN is unspecified.
                    return op != Bin::Copysign || !ty.is_float() || !value(ty, row[1]).is_nan();
                }
                let a = value(ty, row[0]);
                a == 0.0 || !a.is_finite() || a.abs() >= f64::from(Bin::least_scaled(ty)).exp2()
            });
            let mut columns = columns;
            if op == Bin::Scale && ty.is_float() {
                let most = Bin::most_scale(ty);
                let mut random = random(count);
                columns[1] = (0..300).map(|_| of_value(ty, (random.f64() * 2.0 * most - most).round())).collect();
            }
            let played =
                play(&name, &[ty, ty], &columns, |tape, inputs| Output::Number(tape.bin(op, inputs[0], inputs[1])));
            let plays = match op {
                Bin::Add | Bin::Sub | Bin::Mul => true,
                Bin::And | Bin::Or | Bin::Xor => !ty.is_float(),
                _ => ty.is_float(),
            };
            assert_eq!(played, if plays { both() } else { BTreeSet::new() }, "{name}");
            // With constants, which may be read from memory, on either side.
            if plays && op != Bin::Scale {
                for bits in [of_value(ty, 2.0), of_value(ty, -0.125), of_value(ty, -0.75), of_value(ty, 3e-39), 0, 3] {
                    play(&name, &[ty], &columns[..1], |tape, inputs| {
                        let constant = tape.konst(ty, bits);
                        Output::Number(tape.bin(op, inputs[0], constant))
                    });
                    play(&name, &[ty], &columns[1..], |tape, inputs| {
                        let constant = tape.konst(ty, bits);
                        Output::Number(tape.bin(op, constant, inputs[0]))
                    });
                }
            }
            count += 1;
        }
    }
}

/// Scaled floats that are zero where a mask does not hold, with and without other users.
#[test]
fn scaled_or_zero() {
    for ty in [MachineType::F32, MachineType::F64] {
        let most = Bin::most_scale(ty);
        let mut random = random(7);
        let numbers: Vec<u64> = (0..300).map(|_| of_value(ty, random.f64() + 0.5)).collect();
        // Every other power is out of range, where the scaled float is unspecified.
        let powers: Vec<u64> = (0..300)
            .map(|row| of_value(ty, (random.f64() * 2.0 * most - most).round() - f64::from(row % 2) * 1e9))
            .collect();
        for times in 0..4 {
            let mut tape = Tape::new();
            let (x, power) = (tape.input(ty), tape.input(ty));
            let bound = tape.konst_like(power, -most);
            let zero = tape.konst_like(x, 0.0);
            let below = tape.cmp(Cmp::Lt, power, bound);
            let kept = tape.mnot(below);
            let (mask, power) = if times == 0 { (kept, power) } else { (kept, tape.select(below, zero, power)) };
            // A power that was computed by subtracting the offset that scaling adds again.
            let counted = if times == 0 {
                power
            } else {
                let (digits, bias) = if ty == MachineType::F32 { (23, 127.0) } else { (52, 1023.0) };
                let offset = tape.konst_like(x, 1.5 * f64::from(digits).exp2() + 2.0 * bias);
                let shifted = tape.bin(Bin::Add, power, offset);
                tape.bin(Bin::Sub, shifted, offset)
            };
            let scaled = tape.scale(x, counted);
            let chosen = match times {
                0 | 1 => tape.select(mask, scaled, zero),
                2 => tape.select(below, zero, scaled),
                _ => {
                    tape.output(Output::Number(scaled));
                    tape.select_rare(mask, scaled, zero)
                }
            };
            tape.output(Output::Number(chosen));
            tape.finish();
            check("scaled or zero", &tape, &[Port::Rows; 2], &[numbers.clone(), powers.clone()], &[300; 2]);
        }
    }
}

#[test]
fn the_rest() {
    for ty in TYPES {
        let width = if matches!(ty, MachineType::I64 | MachineType::F64) { 64 } else { 32 };
        for op in [Shift::Left, Shift::Right] {
            for by in [0, 1, 17, 31, 32, 63] {
                let columns = suiting(&[ty], u64::from(by), |_| true);
                let plays = !ty.is_float() && by < width;
                if !plays {
                    let mut tape = Tape::new();
                    let x = tape.input(ty);
                    let shifted = tape.shift(op, x, by);
                    assert!(!Isa::ALL.iter().any(|isa| isa.can_play()(&tape, shifted.index())));
                    continue;
                }
                let played =
                    play("a shift", &[ty], &columns, |tape, inputs| Output::Number(tape.shift(op, inputs[0], by)));
                assert_eq!(played, both(), "{op:?} of {ty:?} by {by}");
            }
        }
        for op in COMPARISONS {
            let columns = suiting(&[ty, ty], 200, |_| true);
            let mut near = columns.clone();
            near[1].iter_mut().zip(&columns[0]).step_by(2).for_each(|(b, a)| *b = *a);
            let name = format!("{op:?} of {ty:?}");
            type MaskOperator = fn(&mut Tape, Mask) -> Mask;
            let made: [MaskOperator; 3] = [
                |_, mask| mask,
                |tape, mask| tape.mnot(mask),
                |tape, mask| {
                    let not = tape.mnot(mask);
                    tape.mxor(mask, not)
                },
            ];
            for make in made {
                let played = play(&name, &[ty, ty], &near, |tape, inputs| {
                    let mask = tape.cmp(op, inputs[0], inputs[1]);
                    Output::Mask(make(tape, mask))
                });
                assert_eq!(played, both());
            }
        }
        let columns = suiting(&[ty, ty, ty], 300, |_| true);
        if ty.is_float() {
            let fma = play("fma", &[ty, ty, ty], &columns, |tape, x| Output::Number(tape.fma(x[0], x[1], x[2])));
            assert_eq!(fma, both());
        }
        let select = play("select", &[ty, ty, ty], &columns, |tape, x| {
            let mask = tape.cmp(Cmp::Lt, x[0], x[1]);
            Output::Number(tape.select(mask, x[1], x[2]))
        });
        assert_eq!(select, both());
        let constant = play("constant", &[ty], &columns[..1], |tape, _| Output::Number(tape.konst(ty, 0x3F80_1234)));
        assert_eq!(constant, both());
        let itself = play("itself", &[ty], &columns[..1], |_, x| Output::Number(x[0]));
        assert_eq!(itself, both());
    }
    // Products and sums in all orders, with repeated operands and constants.
    let ty = MachineType::F64;
    let columns = suiting(&[ty, ty, ty], 400, |_| true);
    for order in 0..27 {
        let pick = |place: usize| order / 3_usize.pow(place as u32) % 3;
        for (constants, again) in (0..64).map(|number| (number % 8, number / 8)) {
            let mut tape = Tape::new();
            let x = [(); 3].map(|()| tape.input(ty));
            let constant = tape.konst(ty, 2.5_f64.to_bits());
            let operand = |place: usize| if constants >> place & 1 == 1 { constant } else { x[pick(place)] };
            let mut operands = [0, 1, 2].map(operand);
            // Negated operands, some of which have other users too.
            for place in (0..3).filter(|place| (order + constants + again) >> place & 1 == 1) {
                operands[place] = tape.un(Un::Neg, operands[place]);
                if again == 5 {
                    tape.output(Output::Number(operands[place]));
                }
            }
            let mut sum = tape.fma(operands[0], operands[1], operands[2]);
            for place in (0..3).filter(|place| again >> place & 1 == 1) {
                sum = tape.bin(Bin::Add, sum, x[place]);
            }
            tape.output(Output::Number(sum));
            tape.finish();
            check("fma", &tape, &[Port::Rows; 3], &columns, &[9, 16]);
        }
    }
}

#[test]
fn every_function_that_may_be_rare() {
    let mut played = 0;
    for function in RuntimeFn::ALL {
        let (takes, gives) = function.signature();
        if function.takes_context() {
            let mut tape = Tape::new();
            let args: Vec<Val> = takes.iter().map(|ty| tape.input(*ty)).collect();
            let (mask, otherwise) = (tape.input_mask(), tape.input(gives));
            let called = tape.call_where(mask, *function, &args, otherwise);
            assert!(!Isa::ALL.iter().any(|isa| isa.can_play()(&tape, called.index())), "{}", function.symbol());
            continue;
        }
        let columns = suiting(&[takes, &[gives]].concat(), 500, |_| true);
        let types = [takes, &[gives]].concat();
        let sets = play(function.symbol(), &types, &columns, |tape, inputs| {
            let mask = tape.cmp(Cmp::Le, inputs[0], inputs[0]);
            let (args, otherwise) = inputs.split_at(takes.len());
            Output::Number(tape.call_where(mask, *function, args, otherwise[0]))
        });
        assert_eq!(sets, both(), "{}", function.symbol());
        played += 1;
    }
    assert!(played > 30);
}
