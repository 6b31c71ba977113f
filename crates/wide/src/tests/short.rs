//! Tests of random short tapes, whose loops have a head and a tail: arrays at any address, outputs that overwrite inputs, and
//! all numbers of rows.

use super::{Column, columns, expected, is_nan, output_type, random, sets};
use crate::{Isa, Limits, WideLoop, compile};
use cembra_runtime::{Context, MachineType};
use cembra_tape::{Bin, Cmp, Mask, Output, Port, Shift, Tape, TapeLoop, Un, Val};

/// The most rows: one iteration more than the fewest rows of a loop with a head, and a tail.
const ROWS: usize = 400;

/// The number of bytes before and after the rows of a column that have a pattern.
const AROUND: usize = 128;
const CANARY: u8 = 0xA7;

/// Records a tape with few instructions. It has some inputs of one type and some that all rows share, and few enough
/// inputs and outputs that all their addresses are in registers.
fn tape(random: &mut fastrand::Rng) -> (Tape, Vec<Port>) {
    let ty = [MachineType::F64, MachineType::F32, MachineType::I64, MachineType::I32][random.usize(..4)];
    let narrower = if ty.is_float() { MachineType::F32 } else { MachineType::I32 };
    let mut tape = Tape::new();
    let (mut vals, mut masks): (Vec<Val>, Vec<Mask>) = (Vec::new(), Vec::new());
    let mut ports = Vec::new();
    for number in 0..random.usize(1..=6) {
        let is_shared = number > 0 && random.u8(..4) == 0;
        if is_shared && random.bool() {
            masks.push(tape.input_mask());
        } else {
            vals.push(tape.input(ty));
        }
        ports.push(if is_shared { Port::Shared } else { Port::Rows });
    }
    let mut narrow = Vec::new();
    for _ in 0..random.usize(..7) {
        let [a, b, c] = [(); 3].map(|()| vals[random.usize(..vals.len())]);
        let made = match random.u8(..12) {
            0 | 1 => {
                let op = [Cmp::Eq, Cmp::Ne, Cmp::Lt, Cmp::Le, Cmp::Gt, Cmp::Ge][random.usize(..6)];
                masks.push(tape.cmp(op, a, b));
                continue;
            }
            2 if !masks.is_empty() => {
                let [a, b] = [(); 2].map(|()| masks[random.usize(..masks.len())]);
                masks.push(match random.u8(..4) {
                    0 => tape.mand(a, b),
                    1 => tape.mor(a, b),
                    2 => tape.mxor(a, b),
                    _ => tape.mnot(a),
                });
                continue;
            }
            3 | 4 if !masks.is_empty() => tape.select(masks[random.usize(..masks.len())], a, b),
            5 if ty.is_float() => tape.fma(a, b, c),
            6 if ty.is_float() => tape.bin([Bin::FMin, Bin::FMax][random.usize(..2)], a, b),
            5 => tape.shift(Shift::Left, a, random.u8(..32)),
            6 => tape.bin([Bin::And, Bin::Or, Bin::Xor][random.usize(..3)], a, b),
            7 => tape.un(if random.bool() { Un::Neg } else { Un::Abs }, a),
            8 => tape.konst_like(a, f64::from(random.i8(..))),
            9 if ty != narrower => {
                narrow.push(tape.un(Un::Convert(narrower), a));
                continue;
            }
            _ => tape.bin([Bin::Add, Bin::Sub, Bin::Mul][random.usize(..3)], a, b),
        };
        vals.push(made);
    }
    for _ in 0..random.usize(1..=7 - ports.len()) {
        let recent = vals[vals.len() - 1 - random.usize(..vals.len().min(4))];
        let val = if narrow.is_empty() || random.bool() { recent } else { narrow[random.usize(..narrow.len())] };
        tape.output(Output::Number(val));
    }
    tape.finish();
    (tape, ports)
}

/// The memory of a column, surrounded by a pattern, at any offset in a cache line.
struct Memory {
    bytes: Vec<u8>,
    start: usize,
}

impl Memory {
    fn of(size: usize, place: usize) -> Memory {
        let bytes = vec![CANARY; size + 2 * AROUND + 64];
        let start = AROUND + bytes[AROUND..].as_ptr().align_offset(64) + place;
        Memory { bytes, start }
    }

    fn put(&mut self, values: &[u64], size: usize) {
        for (at, value) in values.iter().enumerate() {
            self.bytes[self.start + at * size..][..size].copy_from_slice(&value.to_le_bytes()[..size]);
        }
    }

    fn value(&self, at: usize, size: usize) -> u64 {
        let mut word = [0; 8];
        word[..size].copy_from_slice(&self.bytes[self.start + at * size..][..size]);
        u64::from_le_bytes(word)
    }

    /// Returns true if the bytes around the column's `size` bytes have not changed.
    fn is_untouched_around(&self, size: usize) -> bool {
        let around = [&self.bytes[..self.start], &self.bytes[self.start + size..]];
        around.into_iter().flatten().all(|byte| *byte == CANARY)
    }
}

struct Short {
    tape: Tape,
    ports: Vec<Port>,
    columns: Vec<Column>,
    /// The results of each row.
    expected: Vec<Vec<u64>>,
}

impl Short {
    fn of(random: &mut fastrand::Rng) -> Short {
        let (tape, ports) = tape(random);
        let columns = columns(&tape, ROWS, random.u64(..));
        let value = |row: usize, (port, column): (&Port, &Column)| column[if *port == Port::Rows { row } else { 0 }];
        let of_row = |row: usize| -> Vec<u64> {
            let given: Vec<u64> = ports.iter().zip(&columns).map(|both| value(row, both)).collect();
            expected(&tape, &given).expect("no row fails")
        };
        let expected = (0..ROWS).map(of_row).collect();
        Short { tape, ports, columns, expected }
    }

    /// Runs `rows` rows of columns at random addresses, some of which are outputs too, and compares the results.
    fn check(&self, (isa, played): (Isa, &WideLoop), rows: usize, random: &mut fastrand::Rng) {
        let Short { tape, ports, columns, expected } = self;
        let (is_aligned, is_past_caches) = (random.u8(..4) > 0, random.bool());
        let mut place = |size: usize| match random.u8(..4) {
            0 => 0,
            _ if is_aligned => random.usize(..64) / size * size,
            _ => random.usize(..64),
        };
        let types: Vec<MachineType> = tape.inputs().map(|(_, ty)| ty).collect();
        let bytes = |ty: MachineType| usize::from(crate::isa::element(ty)).max(1);
        let mut memory: Vec<Memory> = Vec::new();
        for ((ty, port), column) in types.iter().zip(ports).zip(columns) {
            let (size, rows) = (bytes(*ty), if *port == Port::Rows { rows } else { 1 });
            let mut own = Memory::of(size * rows, place(size));
            own.put(&column[..rows], size);
            memory.push(own);
        }
        // The memory of each output: its own, or that of an input.
        let mut outputs: Vec<(usize, usize)> = Vec::new();
        for output in tape.outputs() {
            let ty = output_type(tape, *output);
            let at = random.usize(..2 * types.len());
            let is_free = at < types.len() && types[at] == ty && ports[at] == Port::Rows;
            let at = if is_free && outputs.iter().all(|(other, _)| *other != at) { at } else { memory.len() };
            if at == memory.len() {
                let place = random.usize(..64) / bytes(ty) * bytes(ty);
                memory.push(Memory::of(bytes(ty) * rows, place));
            }
            outputs.push((at, bytes(ty)));
        }
        let starts = (0..types.len()).chain(outputs.iter().map(|(at, _)| *at));
        let starts: Vec<usize> = starts.collect();
        let arrays: Vec<*mut u8> = starts
            .iter()
            .map(|at| {
                let Memory { bytes, start } = &mut memory[*at];
                bytes.as_mut_ptr().wrapping_add(*start)
            })
            .collect();
        let context = &mut Context::new();
        // SAFETY: PORTS: the arrays are those of the tape's inputs and outputs, with `rows` rows; an output is an input of its
        // type, or its own memory.
        let failed = unsafe {
            if is_past_caches {
                played.play_past_caches(&arrays, rows, context)
            } else {
                played.play(&arrays, rows, context)
            }
        };
        cembra_runtime::drain_past_caches();
        let what =
            || format!("{isa:?}, {rows} rows, {outputs:?}, past the caches: {is_past_caches}\n{ports:?}\n{tape}");
        assert!(!failed, "{}", what());
        for (number, (at, size)) in outputs.iter().enumerate() {
            let ty = output_type(tape, tape.outputs()[number]);
            for (row, results) in expected[..rows].iter().enumerate() {
                let (found, expected) = (memory[*at].value(row, *size), results[number]);
                let is_same = found == expected || is_nan(ty, found) && is_nan(ty, expected);
                assert!(is_same, "output {number}, row {row}: {found:x}, not {expected:x}, {}", what());
            }
        }
        for (at, own) in memory.iter().enumerate() {
            let size = match (types.get(at), ports.get(at)) {
                (Some(ty), Some(Port::Rows)) => bytes(*ty) * rows,
                (Some(ty), _) => bytes(*ty),
                _ => outputs.iter().find(|(output, _)| *output == at).map_or(0, |(_, size)| size * rows),
            };
            assert!(own.is_untouched_around(size), "around {at}: {}", what());
            if at < types.len() && outputs.iter().all(|(output, _)| *output != at) {
                let count = size / bytes(types[at]);
                let is_kept = |row: usize| own.value(row, bytes(types[at])) == low(columns[at][row], bytes(types[at]));
                assert!((0..count).all(is_kept), "input {at} is written: {}", what());
            }
        }
    }
}

/// Returns the lowest `bytes` bytes of a word.
fn low(word: u64, bytes: usize) -> u64 {
    word & (u64::MAX >> (64 - 8 * bytes))
}

/// Checks the tapes of these seeds on all numbers of rows.
fn check_tapes(seeds: std::ops::Range<u64>) {
    let (count, mut with_ends) = (seeds.end - seeds.start, 0);
    for seed in seeds {
        let mut random = random(seed);
        let short = Short::of(&mut random);
        for isa in sets() {
            let played = compile(&short.tape, &short.ports, &[], isa, &Limits::default()).expect("compiles");
            with_ends += u64::from(played.entry(ROWS - 1).is_some());
            (1..=ROWS).for_each(|rows| short.check((isa, &played), rows, &mut random));
        }
    }
    assert!(2 * with_ends > count || !Isa::Avx512.is_supported(), "{with_ends} of {count}");
}

#[test]
fn random_short_tapes() {
    check_tapes(0..100);
}

#[test]
#[ignore = "takes minutes"]
fn many_random_short_tapes() {
    check_tapes(1000..20_000);
}
