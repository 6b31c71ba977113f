//! Tests of a loop's head and tail: rows before the first aligned load and after the last whole vector, with arrays at all
//! alignments.

use super::{Case, bits, columns, is_nan, random, sets};
use crate::{Isa, Limits, compile};
use cembra_runtime::{Context, MachineType};
use cembra_tape::{Bin, Cmp, Output, Port, Tape, TapeLoop, Un};

/// The most rows: several iterations, several steps, and a tail.
const ROWS: usize = 300;

/// Records a tape with `inputs` inputs of a type and two outputs. The first output is the sum of all inputs, the first
/// of them negated. The second is the maximum of this sum and the first input.
fn tape(ty: MachineType, inputs: usize) -> Tape {
    let mut tape = Tape::new();
    let first = tape.input(ty);
    let sum = (1..inputs).fold(tape.un(Un::Neg, first), |sum, _| {
        let column = tape.input(ty);
        tape.bin(Bin::Add, sum, column)
    });
    let less = tape.cmp(Cmp::Lt, sum, first);
    let greater = tape.select(less, first, sum);
    tape.output(Output::Number(sum));
    tape.output(Output::Number(greater));
    tape.finish();
    tape
}

#[test]
fn rows_are_played_once_wherever_columns_begin() {
    for (ty, inputs) in [(MachineType::F64, 1), (MachineType::F64, 4), (MachineType::F32, 2), (MachineType::I32, 5)] {
        let tape = tape(ty, inputs);
        let columns = columns(&tape, ROWS, inputs as u64);
        let ports = vec![Port::Rows; inputs];
        let case = Case::new("ends", &tape, &ports, &columns, ROWS);
        for isa in sets() {
            let played = compile(&tape, &ports, &[], isa, &Limits::default()).expect("compiles");
            assert_eq!(played.entry(ROWS - 1).is_some(), isa == Isa::Avx512, "rows that are no whole steps");
            assert!(played.entry(3).is_none(), "fewer than a step");
            (1..=ROWS).for_each(|rows| case.check(isa, &played, rows, rows as u64));
        }
    }
}

/// The output is also the input: a row that was computed twice would read its own result.
#[test]
fn an_output_may_be_an_input_wherever_columns_begin() {
    for ty in [MachineType::F64, MachineType::F32] {
        let size = ty.size();
        let mut tape = Tape::new();
        let (x, y) = (tape.input(ty), tape.input(ty));
        let sum = tape.bin(Bin::Add, x, y);
        tape.output(Output::Number(sum));
        tape.finish();
        let mut random = random(11);
        let column: Vec<u64> = (0..ROWS).map(|_| bits(&mut random, ty)).collect();
        let columns = [column.clone(), column];
        let case = Case::new("in place", &tape, &[Port::Rows; 2], &columns, ROWS);
        for isa in sets() {
            let played = compile(&tape, &[Port::Rows; 2], &[], isa, &Limits::default()).expect("compiles");
            for (rows, place) in (1..ROWS).flat_map(|rows| [(rows, rows % 64), (rows, 16)]) {
                let mut memory = vec![0_u64; ROWS + 32];
                let start = memory.as_mut_ptr().cast::<u8>();
                let start = start.wrapping_add(start.align_offset(64) + place / size * size);
                for (row, bits) in columns[0][..rows].iter().enumerate() {
                    // SAFETY: PORTS: there is room for as many numbers as rows, at most a line further on.
                    unsafe { start.add(row * size).copy_from(bits.to_le_bytes().as_ptr(), size) };
                }
                // SAFETY: PORTS: the output is both inputs, of their type, for this many rows.
                assert!(!unsafe { played.play(&[start, start, start], rows, &mut Context::new()) });
                for row in 0..rows {
                    let mut bytes = [0; 8];
                    // SAFETY: PORTS, as above.
                    unsafe { bytes.as_mut_ptr().copy_from(start.add(row * size), size) };
                    let (found, expected) = (u64::from_le_bytes(bytes), case.expected[row].as_ref().expect("fails")[0]);
                    let is_same = found == expected || is_nan(ty, found) && is_nan(ty, expected);
                    assert!(is_same, "{isa:?}, row {row} of {rows}, {place} bytes into a line: {found:x}");
                }
            }
        }
    }
}

/// Loops that read or write bits have no head and no tail: bits are stored in bytes, and a head or tail need not begin
/// at a byte.
#[test]
fn loops_of_bits_have_no_ends() {
    let mut tape = Tape::new();
    let (mask, x, other) = (tape.input_mask(), tape.input(MachineType::F64), tape.input(MachineType::F64));
    let chosen = tape.select(mask, x, other);
    tape.output(Output::Number(chosen));
    tape.finish();
    let columns = columns(&tape, ROWS, 3);
    let ports = [Port::Rows, Port::Rows, Port::Shared];
    let case = Case::new("bits", &tape, &ports, &columns, ROWS);
    for isa in sets() {
        let played = compile(&tape, &ports, &[], isa, &Limits::default()).expect("compiles");
        (1..=ROWS).for_each(|rows| case.check(isa, &played, rows, rows as u64));
    }
}

/// The tape has as many masks as there are mask registers. A head or tail needs one of these registers for itself.
#[test]
fn ends_have_a_mask_that_nobody_else_has() {
    let mut tape = Tape::new();
    let (x, y) = (tape.input(MachineType::F64), tape.input(MachineType::F64));
    let [a, b, c, d] = [(); 4].map(|()| tape.input_mask());
    let less = tape.cmp(Cmp::Lt, x, y);
    let (first, second) = (tape.mxor(a, b), tape.mxor(c, d));
    // Seven masks wait here.
    let others = [tape.mor(first, c), tape.mand(second, a), tape.mor(less, b)];
    let [all, last] = [tape.mxor(others[0], others[1]), tape.mand(others[2], d)];
    let mask = tape.mor(all, last);
    let chosen = tape.select(mask, x, y);
    tape.output(Output::Number(chosen));
    tape.finish();
    let ports = [Port::Rows, Port::Rows, Port::Shared, Port::Shared, Port::Shared, Port::Shared];
    for isa in sets() {
        let played = compile(&tape, &ports, &[], isa, &Limits::default()).expect("compiles");
        assert_eq!(played.entry(ROWS - 1).is_some(), isa == Isa::Avx512, "a short body");
        for masks in 0..16_u64 {
            let mut columns = columns(&tape, ROWS, masks);
            (0..4).for_each(|mask| columns[2 + mask][0] = masks >> mask & 1);
            let case = Case::new("masks", &tape, &ports, &columns, ROWS);
            [9, 31, 150, ROWS].into_iter().for_each(|rows| case.check(isa, &played, rows, masks));
        }
    }
}
