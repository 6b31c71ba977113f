//! Tests that one call for several lines (sets of rows in separate arrays) gives the same results as one call per line.

use super::{bits, random, sets};
use crate::{Isa, Limits, WideLoop, compile};
use cembra_runtime::{CHAINS, Context, MachineType, RuntimeFn};
use cembra_tape::{Bin, Cmp, Output, Port, Tape, TapeLoop, Un};

/// The number of lines.
const COUNT: usize = 5;
/// The distance between the starts of two lines, in numbers.
const APART: usize = 300;

/// Records the product of a column with the difference between another column and a shared number. FLOAT32 products are
/// widened to FLOAT64.
fn tape(ty: MachineType) -> Tape {
    let mut tape = Tape::new();
    let (x, shared, y) = (tape.input(ty), tape.input(ty), tape.input(ty));
    let difference = tape.bin(Bin::Sub, x, shared);
    let mut product = tape.bin(Bin::Mul, difference, y);
    if ty == MachineType::F32 {
        product = tape.un(Un::Convert(MachineType::F64), product);
    }
    tape.output(Output::Number(product));
    tape.finish();
    tape
}

fn compiled(tape: &Tape, isa: Isa, outputs: &[Port]) -> WideLoop {
    compile(tape, &[Port::Rows, Port::Shared, Port::Rows], outputs, isa, &Limits::default()).expect("a loop")
}

#[test]
fn lines_are_played_as_each_of_them_is() {
    let mut is_played = false;
    for ty in [MachineType::F32, MachineType::F64] {
        let (tape, size) = (tape(ty), ty.size());
        let mut random = random(7);
        let mut column = || -> Vec<u8> {
            let numbers = (0..COUNT * APART).map(|_| bits(&mut random, ty).to_le_bytes());
            numbers.flat_map(|bytes| bytes[..size].to_vec()).collect()
        };
        let columns = [column(), column(), column()];
        for isa in sets() {
            let played = compiled(&tape, isa, &[Port::Chains]);
            // Less than an iteration, several iterations, and steps after them.
            for rows in [16, 64, 96, 256, 7] {
                // Sums continue from their current values.
                let sums: Vec<[f64; CHAINS]> = (0..COUNT).map(|line| [line as f64; CHAINS]).collect();
                let mut expected = sums.clone();
                let apart = (APART * size).cast_signed();
                let start =
                    |column: usize, line: usize| columns[column].as_ptr().wrapping_add(line * APART * size).cast_mut();
                // The shared numbers of lines are next to each other, the second column goes backwards.
                let shared = |line: usize| columns[1].as_ptr().wrapping_add(line * size).cast_mut();
                for (line, sums) in expected.iter_mut().enumerate() {
                    let ports = [start(0, line), shared(line), start(2, COUNT - 1 - line), sums.as_mut_ptr().cast()];
                    // SAFETY: PORTS: columns have the rows of each line, and sums are as many.
                    assert!(!unsafe { played.play(&ports, rows, &mut Context::new()) });
                }
                for ahead in [&[][..], &[(start(0, 1).addr(), apart), (1, -7)]] {
                    let mut own = sums.clone();
                    let ports = [start(0, 0), shared(0), start(2, COUNT - 1), own.as_mut_ptr().cast()];
                    let shifts = [apart, size.cast_signed(), -apart, size_of::<[f64; CHAINS]>().cast_signed()];
                    // SAFETY: PORTS, as above.
                    let result = unsafe { played.play_lines(&ports, &shifts, [rows, COUNT], ahead) };
                    if rows == 7 || isa != Isa::Avx512 {
                        assert_eq!(result, None, "{isa:?}, {rows} rows");
                        continue;
                    }
                    assert_eq!(result, Some(false), "{rows} rows");
                    is_played = true;
                    for (line, (own, expected)) in own.iter().zip(&expected).enumerate() {
                        for (own, expected) in own.iter().zip(expected) {
                            let is_same = own.to_bits() == expected.to_bits() || own.is_nan() && expected.is_nan();
                            assert!(is_same, "line {line} of {rows} rows: {own}, not {expected}");
                        }
                    }
                }
            }
        }
    }
    assert!(is_played || !Isa::Avx512.is_supported());
}

/// A loop that writes rows has no sums to store at the end of a line, so one call cannot run several lines.
#[test]
fn loops_of_rows_are_called_for_each_line() {
    let tape = tape(MachineType::F64);
    for isa in sets() {
        let played = compiled(&tape, isa, &[Port::Rows]);
        let (mut numbers, shared, mut to) = ([1.5_f64; 64], 0.5_f64, [0.0_f64; 64]);
        let shared = std::ptr::from_ref(&shared).cast_mut().cast();
        let ports = [numbers.as_mut_ptr().cast(), shared, numbers.as_mut_ptr().cast(), to.as_mut_ptr().cast()];
        // SAFETY: PORTS: there are the rows of both lines.
        let result = unsafe { played.play_lines(&ports, &[256, 0, 256, 256], [32, 2], &[]) };
        assert_eq!(result, None, "{isa:?}");
        assert!(to.iter().all(|number| *number == 0.0));
    }
}

/// A loop with a rare call runs one line at a time: after the call, the code would continue in the first line.
#[test]
fn loops_with_rare_calls_are_played_line_by_line() {
    let mut tape = Tape::new();
    let (x, limit) = (tape.input(MachineType::F64), tape.input(MachineType::F64));
    let rare = tape.cmp(Cmp::Gt, x, limit);
    let called = tape.call_where(rare, RuntimeFn::SinF64, &[x], x);
    tape.output(Output::Number(called));
    tape.finish();
    let columns: Vec<f64> = (0..COUNT * APART).map(|row| row as f64).collect();
    let limit = 100.0_f64;
    for isa in sets() {
        let ports = [Port::Rows, Port::Shared];
        let played = compile(&tape, &ports, &[Port::Chains], isa, &Limits::default()).expect("a loop");
        let mut sums = [[0.0_f64; CHAINS]; COUNT];
        let ports =
            [columns.as_ptr().cast_mut().cast(), (&raw const limit).cast_mut().cast(), sums.as_mut_ptr().cast()];
        let shifts = [(APART * size_of::<f64>()).cast_signed(), 0, size_of::<[f64; CHAINS]>().cast_signed()];
        // SAFETY: PORTS: the column has the rows of each line, the shared number is one, and there are sums for each line.
        let result = unsafe { played.play_lines(&ports, &shifts, [256, COUNT], &[]) };
        assert_eq!(result, None, "{isa:?}");
    }
}
