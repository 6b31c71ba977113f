//! Tests of vector code for an old processor, which has little more than the required instructions: no fused
//! multiply-add, no comparisons of 64-bit integers, and no instructions with three operands. Tests outside of this
//! crate run vector code for this machine's processor, which has more instructions.

use super::*;
use cembra_ops::{Lower, OperandType, Registry, record};
use cembra_runtime::{MachineType, Scalar};
use cembra_tape::{Cell, Datum, Mask, Outcome, Output, Presence, Tape};
use cranelift_codegen::isa::lookup;
use cranelift_codegen::settings::{self, Configurable};

const ROWS: usize = 70;

fn old_processor() -> OwnedTargetIsa {
    let mut builder = lookup(target_lexicon::Triple::host()).expect("this architecture");
    for feature in ["has_sse3", "has_ssse3", "has_sse41"] {
        builder.enable(feature).expect("an extension of x86-64");
    }
    builder.finish(settings::Flags::new(settings::builder())).expect("an instruction set")
}

/// Records an input of an operand's type; `None` for strings, which are not in vectors.
fn input(tape: &mut Tape, operand: OperandType) -> Option<Cell> {
    let presence = if operand.optional { Presence::When(tape.input_mask()) } else { Presence::Present };
    let datum = match operand.scalar.machine_type() {
        Some(MachineType::Flag) => Datum::Flag(tape.input_mask()),
        Some(ty) => Datum::Num(tape.input(ty)),
        None if operand.scalar.is_string() => return None,
        None => Datum::Unit,
    };
    Some(Cell { presence, datum })
}

/// Returns random bits, or the bits of a number between -20 and 20.
fn bits(random: &mut fastrand::Rng, ty: MachineType) -> u64 {
    let small = random.f64() * 40.0 - 20.0;
    match ty {
        MachineType::Flag => u64::from(random.bool()),
        MachineType::I32 if random.bool() => u64::from((small as i32).cast_unsigned()),
        MachineType::F32 if random.bool() => u64::from((small as f32).to_bits()),
        MachineType::I64 if random.bool() => (small as i64).cast_unsigned(),
        MachineType::F64 if random.bool() => small.to_bits(),
        MachineType::I32 | MachineType::F32 => u64::from(random.u32(..)),
        MachineType::I64 | MachineType::F64 => random.u64(..),
    }
}

fn is_nan(ty: MachineType, bits: u64) -> bool {
    match ty {
        MachineType::F32 => f32::from_bits(bits as u32).is_nan(),
        MachineType::F64 => f64::from_bits(bits).is_nan(),
        _ => false,
    }
}

/// Runs the tape on random rows, with each number of lanes.
fn check(name: &str, tape: &Tape, output: Output, within: Option<Mask>, isa: &OwnedTargetIsa) {
    let mut random = fastrand::Rng::with_seed(tape.instrs().len() as u64);
    let types = tape.inputs().map(|(_, ty)| ty);
    let columns: Vec<Column> = types.map(|ty| (ty, (0..ROWS).map(|_| bits(&mut random, ty)).collect())).collect();
    check_rows(name, tape, output, within, isa, &columns);
}

/// The type of an input, and the input's bits in each row.
type Column = (MachineType, Vec<u64>);

/// Returns the size of a number in bytes.
fn size(ty: MachineType) -> usize {
    crate::emit::clif_type(ty).bytes() as usize
}

/// Returns the bytes of an input's array with these rows.
fn array(ty: MachineType, rows: &[u64]) -> Vec<u8> {
    match ty {
        MachineType::Flag => {
            let byte = |bits: &[u64]| bits.iter().rev().fold(0, |byte, bit| byte << 1 | *bit as u8);
            rows.chunks(8).map(byte).collect()
        }
        _ => rows.iter().flat_map(|bits| bits.to_le_bytes()[..size(ty)].to_vec()).collect(),
    }
}

/// Runs the tape on these rows, with each number of lanes: first all rows, then the rows that succeed.
fn check_rows(name: &str, tape: &Tape, output: Output, within: Option<Mask>, isa: &OwnedTargetIsa, columns: &[Column]) {
    let (at, ty) = match output {
        Output::Number(val) => (val.index(), tape.ty(val)),
        Output::Mask(mask) => (mask.index(), MachineType::Flag),
    };
    let mut finished = tape.clone();
    finished.output(output);
    finished.finish();
    let of_row = |row: &usize| -> Vec<u64> { columns.iter().map(|(_, column)| column[*row]).collect() };
    let all: Vec<usize> = (0..ROWS).collect();
    // SAFETY: STRING-VIEW: views in the columns are of texts that live on.
    let outcome = |row: &usize| unsafe { tape.run_on_bits(&of_row(row)) };
    let good: Vec<usize> = all.iter().copied().filter(|row| matches!(outcome(row), Outcome::Done(_))).collect();
    for lanes in Lanes::ALL {
        let ports = vec![Port::Rows; columns.len()];
        let function = compile_for(isa, &finished, [&ports, &[]], lanes, &Budget::default()).expect("compiles");
        for rows in [&all, &good] {
            let of_rows = |column: &[u64]| -> Vec<u64> { rows.iter().map(|row| column[*row]).collect() };
            let mut arrays: Vec<Vec<u8>> = columns.iter().map(|(ty, column)| array(*ty, &of_rows(column))).collect();
            let mut written = vec![0; (rows.len() * size(ty)).next_multiple_of(8)];
            let ports = arrays.iter_mut().map(Vec::as_mut_ptr).chain([written.as_mut_ptr()]);
            let ports: Vec<*mut u8> = ports.collect();
            // SAFETY: PORTS: the arrays have the tape's types, with as many elements as there are rows.
            let fails = unsafe { function.play(&ports, rows.len(), &mut Context::new()) };
            assert_eq!(fails, rows.len() > good.len(), "{name} in {lanes:?}\n{tape}");
            if fails {
                continue;
            }
            for (number, row) in rows.iter().enumerate() {
                let Outcome::Done(results) = outcome(row) else { panic!("{name} stops") };
                let mut bytes = [0; 8];
                match ty {
                    MachineType::Flag => bytes[0] = written[number / 8] >> (number % 8) & 1,
                    _ => bytes[..size(ty)].copy_from_slice(&written[number * size(ty)..][..size(ty)]),
                }
                let (found, expected) = (u64::from_le_bytes(bytes), results[at]);
                let counts = within.is_none_or(|mask| results[mask.index()] != 0);
                let same = found == expected || (is_nan(ty, found) && is_nan(ty, expected));
                let inputs = of_row(row);
                assert!(same || !counts, "{name} in {lanes:?}: {inputs:x?} gives {found:x}, not {expected:x}\n{tape}");
            }
        }
    }
}

#[test]
fn rules_give_the_same_bits_without_newer_instructions() {
    let isa = old_processor();
    assert!(isa.has_round() && !isa.has_native_fma());
    let mut tapes = 0;
    for (_, def) in Registry::standard().iter() {
        for overload in def.overloads().iter().filter(|overload| matches!(overload.lower, Lower::Rule(_))) {
            let mut tape = Tape::new();
            let cells: Option<Vec<Cell>> = overload.args.iter().map(|arg| input(&mut tape, *arg)).collect();
            let Some(cells) = cells else { continue };
            let Cell { presence, datum } = record(&mut tape, def.presence, overload, &cells);
            let within = if let Presence::When(mask) = presence { Some(mask) } else { None };
            let output = match datum {
                Datum::Num(val) => Output::Number(val),
                Datum::Flag(mask) => Output::Mask(mask),
                Datum::Unit | Datum::Text { .. } => match within {
                    Some(mask) => Output::Mask(mask),
                    None => continue,
                },
            };
            let within = within.filter(|mask| output != Output::Mask(*mask));
            check(def.name, &tape, output, within, &isa);
            tapes += 1;
        }
    }
    assert!(tapes > 150, "only {tapes} tapes");
}

/// The inputs are pointers to texts and their lengths. Where a text is missing, they are garbage, which must not be
/// used.
#[test]
fn texts_are_compared_in_each_lane_that_has_them() {
    let words = [
        "",
        "gold",
        "golf",
        "silver",
        "gold\0",
        "g\u{f8}ld",
        "a text of more than sixteen bytes",
        "a text of more than sixteen",
    ];
    let isa = old_processor();
    let mut random = fastrand::Rng::with_seed(7);
    let types = [MachineType::Flag, MachineType::I64, MachineType::I64];
    let mut tapes = 0;
    for (_, def) in
        Registry::standard().iter().filter(|(_, def)| def.name.contains("equal") || def.name.contains("less"))
    {
        let is_text = |operand: &OperandType| operand.scalar == Scalar::Text;
        for overload in def.overloads().iter().filter(|overload| overload.args.iter().all(is_text)) {
            let mut tape = Tape::new();
            let cells = [(); 2].map(|()| {
                let presence = Presence::When(tape.input_mask());
                let [ptr, len] = [(); 2].map(|()| tape.input(MachineType::I64));
                Cell { presence, datum: Datum::Text { ptr, len } }
            });
            let Cell { presence: Presence::When(within), datum } = record(&mut tape, def.presence, overload, &cells)
            else {
                panic!("{} of texts that may be missing may be missing", def.name);
            };
            let mut columns: Vec<Column> = [types, types].concat().into_iter().map(|ty| (ty, Vec::new())).collect();
            for _ in 0..ROWS {
                for side in columns.chunks_mut(3) {
                    let word = words[random.usize(..words.len())];
                    let (present, ptr, len) = match random.u8(..4) {
                        0 => (0, 8, 1 << 40),
                        _ => (1, word.as_ptr().addr() as u64, word.len() as u64),
                    };
                    side.iter_mut().zip([present, ptr, len]).for_each(|((_, column), bits)| column.push(bits));
                }
            }
            let (output, within) = match datum {
                Datum::Flag(mask) => (Output::Mask(mask), Some(within)),
                _ => (Output::Mask(within), None),
            };
            check_rows(def.name, &tape, output, within, &isa, &columns);
            tapes += 1;
        }
    }
    assert!(tapes >= 8, "only {tapes} tapes");
}
