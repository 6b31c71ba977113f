//! Tests of special cases: scalar functions that are called for few and many lanes, outputs that overwrite inputs, the rules of operators, and tapes
//! that are wrong or too large.

use super::{Case, bits, check, columns, random, sets};
use crate::{ErrorKind, Isa, Limits, compile};
use cembra_ops::{Lower, OperandType, Registry, record};
use cembra_runtime::{CHAINS, Context, MachineType, RuntimeFn};
use cembra_tape::{Bin, Cell, Cmp, Datum, Output, Port, Presence, Tape, TapeLoop, Un, Val};

#[test]
fn rare_calls_in_few_and_many_lanes() {
    for ty in [MachineType::F32, MachineType::F64] {
        let functions = if ty == MachineType::F32 {
            [RuntimeFn::LogF32, RuntimeFn::SinF32]
        } else {
            [RuntimeFn::LogF64, RuntimeFn::SinF64]
        };
        for share in [0, 10, 100] {
            let mut tape = Tape::new();
            let (x, y) = (tape.input(ty), tape.input(ty));
            let (one, shared) = (tape.konst_like(x, 1.0), tape.input(ty));
            let rare = tape.cmp(Cmp::Gt, x, one);
            let mut sum = tape.bin(Bin::Mul, y, shared);
            // Many numbers and constants wait in registers meanwhile.
            let waiting: Vec<Val> = (0..40)
                .map(|number| {
                    let factor = tape.konst_like(x, f64::from(number) + 0.5);
                    tape.fma(y, factor, x)
                })
                .collect();
            for function in functions {
                let called = tape.call_where(rare, function, &[x], y);
                sum = tape.bin(Bin::Add, sum, called);
            }
            let power = if ty == MachineType::F32 { RuntimeFn::PowF32 } else { RuntimeFn::PowF64 };
            let called = tape.call_where(rare, power, &[x, y], x);
            sum = tape.bin(Bin::Sub, sum, called);
            for (number, other) in waiting.into_iter().enumerate() {
                let factor = tape.konst_like(x, number as f64 + 0.25);
                sum = tape.fma(other, factor, sum);
            }
            tape.output(Output::Number(sum));
            tape.output(Output::Mask(rare));
            tape.finish();
            let mut random = random(share);
            let mut column = |of: &mut dyn FnMut(&mut fastrand::Rng) -> f64| -> Vec<u64> {
                let bits = |x: f64| if ty == MachineType::F32 { (x as f32).to_bits().into() } else { x.to_bits() };
                (0..300).map(|_| bits(of(&mut random))).collect()
            };
            let columns = [
                column(&mut |random| if random.u64(..100) < share { 1.5 + random.f64() } else { random.f64() }),
                column(&mut |random| random.f64() * 3.0),
                column(&mut |_| 2.0),
            ];
            let ports = [Port::Rows, Port::Rows, Port::Shared];
            check(&format!("{share} % rare"), &tape, &ports, &columns, &[300, 16, 5]);
        }
    }
}

/// A mask that all rows share is set in all lanes of a register, and a step may have fewer rows than a mask register
/// has lanes.
#[test]
fn rare_calls_where_a_shared_mask_says() {
    for holds in [0, 1] {
        let ty = MachineType::F64;
        let mut tape = Tape::new();
        let (x, mask) = (tape.input(ty), tape.input_mask());
        // A computed value, which is not in memory.
        let x = tape.un(Un::Floor, x);
        let waiting: Vec<Val> = (1..30)
            .map(|number| {
                let factor = tape.konst_like(x, f64::from(number));
                tape.bin(Bin::Mul, x, factor)
            })
            .collect();
        let mut sum = tape.call_where(mask, RuntimeFn::AtanF64, &[x], waiting[0]);
        for other in waiting {
            sum = tape.bin(Bin::Sub, other, sum);
        }
        sum = tape.bin(Bin::Mul, sum, x);
        tape.output(Output::Number(sum));
        tape.finish();
        let columns = [columns(&tape, 40, 2)[0].clone(), vec![holds]];
        check("shared mask", &tape, &[Port::Rows, Port::Shared], &columns, &[40, 8, 3]);
    }
}

/// An instruction that needs many registers, on inputs that nothing else uses, among more constants than registers.
#[test]
fn constants_leave_registers_for_every_instruction() {
    let ty = MachineType::F64;
    let mut tape = Tape::new();
    let mut least = tape.input(ty);
    let args = [(); 4].map(|()| tape.input(ty));
    let mask = tape.input_mask();
    for number in 0..40 {
        let bound = tape.konst_like(least, 40.0 - f64::from(number) / 8.0);
        least = tape.bin(if number % 2 == 0 { Bin::FMin } else { Bin::FMax }, bound, least);
    }
    tape.output(Output::Number(least));
    let called = tape.call_where(mask, RuntimeFn::FmaF64, &args[..3], args[3]);
    tape.output(Output::Number(called));
    tape.finish();
    let columns = columns(&tape, 40, 8);
    check("constants", &tape, &[Port::Rows; 6], &columns, &[40, 16]);
}

#[test]
fn an_output_may_be_an_input() {
    // An iteration has four steps, two steps, parts of two, or one step.
    for (ty, more) in
        [MachineType::F32, MachineType::F64].into_iter().flat_map(|ty| [0, 20, 90, 300].map(|more| (ty, more)))
    {
        let mut tape = Tape::new();
        let (x, mask) = (tape.input(ty), tape.input_mask());
        let root = tape.un(Un::Sqrt, x);
        let mut sum = tape.bin(Bin::Add, root, x);
        for number in 0..more {
            sum = tape.bin(if number % 2 == 0 { Bin::Sub } else { Bin::FMax }, x, sum);
        }
        let chosen = tape.select(mask, sum, x);
        let less = tape.cmp(Cmp::Lt, root, x);
        let other = tape.mxor(less, mask);
        tape.output(Output::Number(chosen));
        tape.output(Output::Mask(other));
        tape.finish();
        let columns = columns(&tape, 150, 5);
        let ports = [Port::Rows; 2];
        let case = Case::new("in place", &tape, &ports, &columns, 150);
        for isa in sets() {
            let played = compile(&tape, &ports, &[], isa, &Limits::default()).expect("compiles");
            for rows in [1, 8, 63, 64, 150] {
                let size = usize::from(crate::isa::element(ty));
                let mut numbers: Vec<u8> =
                    columns[0][..rows].iter().flat_map(|bits| bits.to_le_bytes()[..size].to_vec()).collect();
                let mut words = vec![0_u64; rows.div_ceil(64)];
                for (row, bit) in columns[1][..rows].iter().enumerate() {
                    words[row / 64] |= bit << (row % 64);
                }
                let arrays = [numbers.as_mut_ptr(), words.as_mut_ptr().cast()];
                // SAFETY: PORTS: both outputs are an input of their type, for this many rows.
                let failed =
                    unsafe { played.play(&[arrays[0], arrays[1], arrays[0], arrays[1]], rows, &mut Context::new()) };
                assert!(!failed);
                for row in 0..rows {
                    let expected = case.expected[row].as_ref().expect("no row fails");
                    let mut bytes = [0; 8];
                    bytes[..size].copy_from_slice(&numbers[row * size..][..size]);
                    let found = u64::from_le_bytes(bytes);
                    assert!(found == expected[0] || super::is_nan(ty, found) && super::is_nan(ty, expected[0]));
                    assert_eq!(words[row / 64] >> (row % 64) & 1, expected[1]);
                }
            }
        }
    }
}

/// Outputs in the memory of other inputs: a step reads an input before it stores an output over it.
#[test]
fn outputs_may_be_inputs_of_one_another() {
    const ROWS: usize = 150;
    for more in [0, 20, 90, 300] {
        let mut tape = Tape::new();
        let (x, y) = (tape.input(MachineType::F64), tape.input(MachineType::F64));
        let (a, b) = (tape.input_mask(), tape.input_mask());
        let sum = (0..more).fold(x, |sum, number| tape.bin(if number % 2 == 0 { Bin::Sub } else { Bin::FMax }, y, sum));
        let less = tape.cmp(Cmp::Lt, x, y);
        let not_less = tape.mnot(less);
        // All other outputs are in memory that is read for later outputs.
        [y, x].into_iter().for_each(|val| tape.output(Output::Number(val)));
        [b, a, not_less].into_iter().for_each(|mask| tape.output(Output::Mask(mask)));
        [sum, x].into_iter().for_each(|val| tape.output(Output::Number(val)));
        tape.finish();
        let columns = columns(&tape, ROWS, 5);
        let ports = [Port::Rows; 4];
        let mut outputs = [Port::Rows; 7];
        let case = Case::new("in one another", &tape, &ports, &columns, ROWS);
        for (isa, is_summed) in sets().flat_map(|isa| [(isa, false), (isa, true)]) {
            outputs[6] = if is_summed { Port::Chains } else { Port::Rows };
            let played = compile(&tape, &ports, &outputs, isa, &Limits::default()).expect("compiles");
            for rows in [1, 8, 63, 64, ROWS] {
                let bits_of = |column: &[u64]| -> Vec<u64> {
                    let word = |bits: &[u64]| bits.iter().zip(0..).fold(0, |word, (bit, at)| word | bit << at);
                    column[..rows].chunks(64).map(word).collect()
                };
                let mut numbers = [columns[0].clone(), columns[1].clone(), vec![0; ROWS], vec![0; ROWS]];
                let mut masks = [bits_of(&columns[2]), bits_of(&columns[3]), vec![0; rows.div_ceil(64)]];
                let [x, y, sum, last] = numbers.each_mut().map(|numbers| numbers.as_mut_ptr().cast::<u8>());
                let [a, b, less] = masks.each_mut().map(|words| words.as_mut_ptr().cast::<u8>());
                let arrays = [x, y, a, b, x, y, a, b, less, sum, last];
                // SAFETY: PORTS: outputs are inputs of their type or memory of their own, for this many rows, or sums.
                assert!(!unsafe { played.play(&arrays, rows, &mut Context::new()) });
                let results = |number: usize| -> Vec<u64> {
                    case.expected[..rows].iter().map(|row| row.as_ref().expect("no row fails")[number]).collect()
                };
                let is_same = |found: &[u64], expected: &[u64]| {
                    let same = |(a, b): (&u64, &u64)| {
                        a == b || super::is_nan(MachineType::F64, *a) && super::is_nan(MachineType::F64, *b)
                    };
                    found.iter().zip(expected).all(same)
                };
                for (number, output) in [(0, 0), (1, 1), (2, 5)] {
                    assert!(
                        is_same(&numbers[number], &results(output)),
                        "{isa:?}, {more}, output {output}, {rows} rows"
                    );
                }
                for (number, output) in [(0, 2), (1, 3), (2, 4)] {
                    assert_eq!(
                        masks[number],
                        bits_of(&results(output)),
                        "{isa:?}, {more}, output {output}, {rows} rows"
                    );
                }
                let mut last = results(6);
                if is_summed {
                    let mut sums = vec![0.0; CHAINS];
                    last.iter().zip(0..).for_each(|(bits, row)| sums[row % CHAINS] += f64::from_bits(*bits));
                    last = sums.into_iter().map(f64::to_bits).collect();
                }
                assert!(is_same(&numbers[3], &last), "{isa:?}, {more}, sums: {is_summed}, {rows} rows");
            }
        }
    }
}

/// A loop of numbers only may compute the last rows twice, but not if an output is also an input.
#[test]
fn an_output_of_numbers_may_be_an_input() {
    for ty in [MachineType::F32, MachineType::F64] {
        let mut tape = Tape::new();
        let x = tape.input(ty);
        let root = tape.un(Un::Sqrt, x);
        let sum = tape.bin(Bin::Add, root, x);
        tape.output(Output::Number(sum));
        tape.finish();
        let columns = columns(&tape, 150, 5);
        let case = Case::new("numbers in place", &tape, &[Port::Rows], &columns, 150);
        let size = usize::from(crate::isa::element(ty));
        for isa in sets() {
            let played = compile(&tape, &[Port::Rows], &[], isa, &Limits::default()).expect("compiles");
            for rows in [1, 7, 33, 63, 64, 149, 150] {
                let mut numbers: Vec<u8> =
                    columns[0][..rows].iter().flat_map(|bits| bits.to_le_bytes()[..size].to_vec()).collect();
                let array = numbers.as_mut_ptr();
                // SAFETY: PORTS: the output is the input, of its type, for this many rows.
                assert!(!unsafe { played.play(&[array, array], rows, &mut Context::new()) });
                for row in 0..rows {
                    let expected = case.expected[row].as_ref().expect("no row fails")[0];
                    let mut bytes = [0; 8];
                    bytes[..size].copy_from_slice(&numbers[row * size..][..size]);
                    let found = u64::from_le_bytes(bytes);
                    assert!(
                        found == expected || super::is_nan(ty, found) && super::is_nan(ty, expected),
                        "{row} of {rows}"
                    );
                }
            }
        }
    }
}

/// Negated floats that are bounded and then used in fused operations and comparisons only, and others with more users.
#[test]
fn opposites_of_bounded_numbers_are_taken_with_the_other_sign() {
    for ty in [MachineType::F32, MachineType::F64] {
        for (bound, least, needed) in
            [(1.5, true, false), (-1.5, false, false), (0.0, true, false), (-0.0, false, false), (2.0, true, true)]
        {
            for op in [Cmp::Lt, Cmp::Le, Cmp::Gt, Cmp::Ge, Cmp::Eq, Cmp::Ne] {
                let mut tape = Tape::new();
                let (x, y) = (tape.input(ty), tape.input(ty));
                let minus = tape.un(Un::Neg, x);
                let [limit, other] = [bound, -0.5].map(|value| tape.konst_like(x, value));
                let bounded = tape.bin(if least { Bin::FMin } else { Bin::FMax }, limit, minus);
                let square = tape.fma(bounded, bounded, y);
                let product = tape.fma(y, bounded, square);
                let sum = tape.fma(y, product, bounded);
                let holds = tape.cmp(op, bounded, other);
                let not = tape.mnot(holds);
                let less = tape.cmp(Cmp::Lt, x, y);
                let both = tape.mand(not, less);
                let chosen = tape.select(both, sum, product);
                tape.output(Output::Number(chosen));
                tape.output(Output::Mask(holds));
                if needed {
                    tape.output(Output::Number(bounded));
                }
                tape.finish();
                let values = [-3.0, -1.5, -0.5, -0.0, 0.0, 0.5, 1.5, 3.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN];
                let bits = |value: f64| {
                    if ty == MachineType::F32 { u64::from((value as f32).to_bits()) } else { value.to_bits() }
                };
                let all = || values.iter().flat_map(|x| values.iter().map(|y| [*x, *y]));
                let columns = [0, 1].map(|number| all().map(|pair| bits(pair[number])).collect());
                check("opposites", &tape, &[Port::Rows; 2], &columns, &[121, 5]);
            }
        }
    }
}

/// Outputs at each offset in a cache line: rows before the first aligned vectors are computed like the rows after the
/// last step.
#[test]
fn what_goes_past_the_caches_begins_where_vectors_are_aligned() {
    for has_bits in [false, true] {
        let mut tape = Tape::new();
        let (x, y) = (tape.input(MachineType::F64), tape.input(MachineType::F32));
        let wide = tape.un(Un::Convert(MachineType::F64), y);
        let sum = tape.bin(Bin::Add, x, wide);
        let twice = tape.bin(Bin::Add, y, y);
        tape.output(Output::Number(sum));
        tape.output(Output::Number(twice));
        if has_bits {
            let less = tape.cmp(Cmp::Lt, x, wide);
            tape.output(Output::Mask(less));
        }
        tape.finish();
        let rows = 203;
        let xs: Vec<f64> = (0..rows).map(f64::from).collect();
        let ys: Vec<f32> = (0..203_u8).map(|row| f32::from(row % 7) * 50.0).collect();
        for isa in sets() {
            let played = compile(&tape, &[Port::Rows; 2], &[], isa, &Limits::default()).expect("compiles");
            let lanes = if isa == Isa::Avx512 { 8 } else { 4 };
            for (first, second) in (0..16).flat_map(|first| (0..16).map(move |second| (first, second))) {
                let mut sums = Lines([[0_u64; 8]; 40]);
                let mut doubles = Lines([[0_u64; 8]; 40]);
                let mut bits = [u64::MAX; 5];
                let sums: *mut u8 = (&raw mut sums).cast();
                let doubles: *mut u8 = (&raw mut doubles).cast();
                let (sums, doubles) = (sums.wrapping_add(8 * first), doubles.wrapping_add(4 * second));
                let inputs: [*mut u8; 2] = [xs.as_ptr().cast_mut().cast(), ys.as_ptr().cast_mut().cast()];
                let ports = [inputs[0], inputs[1], sums, doubles, bits.as_mut_ptr().cast()];
                let ports = &ports[..4 + usize::from(has_bits)];
                let head = (0..lanes).find(|head| {
                    (first + head) % lanes == 0 && (second + head) % lanes == 0 && (!has_bits || head % 8 == 0)
                });
                assert_eq!(played.head(ports), head, "{isa:?} {first} {second} {has_bits}");
                // SAFETY: PORTS: the arrays have these rows.
                let failed = unsafe { played.play_past_caches(ports, rows as usize, &mut Context::new()) };
                assert!(!failed);
                for row in 0..rows as usize {
                    // SAFETY: PORTS: the arrays have these rows.
                    let (sum, double) = unsafe {
                        (sums.cast::<f64>().add(row).read_unaligned(), doubles.cast::<f32>().add(row).read_unaligned())
                    };
                    assert_eq!((sum, double), (xs[row] + f64::from(ys[row]), ys[row] + ys[row]), "{row}");
                    let less = xs[row] < f64::from(ys[row]);
                    assert!(!has_bits || less == (bits[row / 64] >> (row % 64) & 1 == 1), "{row}");
                }
                assert!(!has_bits || bits[3] >> (rows % 64) == 0 && bits[4] == u64::MAX, "whole words, no more");
            }
        }
    }
}

/// Memory of whole cache lines.
#[repr(C, align(64))]
struct Lines([[u64; 8]; 40]);

/// Values that are computed in a stretch that is jumped over, and again after it.
#[test]
fn what_a_stretch_made_is_not_there_behind_it() {
    let mut tape = Tape::new();
    let (x, given, n) = (tape.input(MachineType::F64), tape.input_mask(), tape.input(MachineType::I32));
    let (zero, none) = (tape.konst(MachineType::F64, 0), tape.konst(MachineType::I32, 0));
    let positive = tape.cmp(Cmp::Gt, n, none);
    // A negation is made at its first use, which is in the stretch.
    let not = tape.mnot(positive);
    tape.begin(given);
    let mut long = x;
    for _ in 0..30 {
        long = tape.fma(long, x, x);
    }
    // A mask in the other width, a root, a mantissa: each is computed again after the stretch.
    let one = tape.select(not, long, x);
    let (mantissa, root) = (tape.un(Un::Mantissa, x), tape.un(Un::Sqrt, x));
    let sum = tape.bin(Bin::Add, root, mantissa);
    let sum = tape.bin(Bin::Add, sum, one);
    tape.end();
    let (root, mantissa, exponent) = (tape.un(Un::Sqrt, x), tape.un(Un::Mantissa, x), tape.un(Un::Exponent, x));
    let chosen = tape.select(given, sum, zero);
    let other = tape.select(positive, zero, x);
    for val in [root, mantissa, exponent, chosen, other] {
        tape.output(Output::Number(val));
    }
    tape.output(Output::Mask(not));
    tape.finish();
    let mut random = random(3);
    let numbers = (0..200).map(|_| (random.f64() + 0.5).to_bits()).collect();
    // Whole steps in which the mask holds nowhere, somewhere and everywhere.
    let given = (0..200).map(|row| u64::from(row % 64 > 32 && (row % 64 < 48 || row % 3 == 0))).collect();
    let columns = [numbers, given, (0..200).map(|row| row % 2).collect()];
    assert_eq!(tape.check_stretches(), Ok(()));
    let ports = [Port::Rows; 3];
    check("behind a stretch", &tape, &ports, &columns, &[200, 64, 16]);
}

/// Inputs belong to no stretch, wherever they are recorded. That includes masks, which instructions make from bits.
#[test]
fn an_input_in_a_stretch_is_there_behind_it() {
    for ty in [MachineType::F64, MachineType::F32] {
        let mut tape = Tape::new();
        let given = tape.input_mask();
        let not = tape.mnot(given);
        tape.begin(not);
        let (present, x) = (tape.input_mask(), tape.input(ty));
        let inner = tape.input_mask();
        tape.begin(inner);
        let (shared, other) = (tape.input_mask(), tape.input_mask());
        // Long enough to be worth a jump.
        let long = (0..30).fold(x, |long, _| tape.fma(long, x, x));
        tape.end();
        let chosen = tape.select(inner, long, x);
        tape.end();
        let chosen = tape.select(not, chosen, x);
        tape.output(Output::Number(chosen));
        for mask in [present, inner, shared, other] {
            tape.output(Output::Mask(mask));
        }
        tape.finish();
        assert_eq!(tape.check_stretches(), Ok(()));
        let mut columns = columns(&tape, 200, 11);
        // Whole steps in which one branch is taken, and others in which both are.
        columns[0] = (0..200).map(|row| u64::from(row % 64 < 32 || row % 3 == 0)).collect();
        let ports = [Port::Rows, Port::Rows, Port::Rows, Port::Rows, Port::Shared, Port::Rows];
        check("inputs in a stretch", &tape, &ports, &columns, &[200, 64, 16, 3]);
    }
}

/// Records the inputs for an argument of an operator, with its presence; `None` for strings.
fn argument(tape: &mut Tape, operand: OperandType) -> Option<Cell> {
    let presence = if operand.optional { Presence::When(tape.input_mask()) } else { Presence::Present };
    let datum = match operand.scalar.machine_type() {
        Some(MachineType::Flag) => Datum::Flag(tape.input_mask()),
        Some(ty) => Datum::Num(tape.input(ty)),
        None if operand.scalar.is_string() => return None,
        None => Datum::Unit,
    };
    Some(Cell { presence, datum })
}

/// The data of missing values are unspecified, so they are replaced by zero.
#[test]
fn the_rules_of_all_operators() {
    let (mut tapes, mut refused) = (0, 0);
    for (_, def) in Registry::standard().iter() {
        for overload in def.overloads().iter().filter(|overload| matches!(overload.lower, Lower::Rule(_))) {
            let mut tape = Tape::new();
            let cells: Option<Vec<Cell>> = overload.args.iter().map(|arg| argument(&mut tape, *arg)).collect();
            let Some(cells) = cells else { continue };
            let Cell { presence, datum } = record(&mut tape, def.presence, overload, &cells);
            let present = match presence {
                Presence::When(mask) => mask,
                Presence::Present => tape.mconst(true),
                Presence::Missing => tape.mconst(false),
            };
            tape.output(Output::Mask(present));
            match datum {
                Datum::Num(val) => {
                    let ty = tape.ty(val);
                    let zero = tape.konst(ty, 0);
                    let chosen = tape.select(present, val, zero);
                    tape.output(Output::Number(chosen));
                }
                Datum::Flag(mask) => {
                    let both = tape.mand(present, mask);
                    tape.output(Output::Mask(both));
                }
                Datum::Unit | Datum::Text { .. } => {}
            }
            tape.finish();
            let ports = vec![Port::Rows; tape.inputs().len()];
            let columns = columns(&tape, 100, tapes);
            if !super::can_play(&tape, Isa::Avx512) {
                refused += 1;
                continue;
            }
            // A failing row hides the results of the others, so the other rows are checked separately too.
            let case = Case::new(def.name, &tape, &ports, &columns, 100);
            let kept: Vec<usize> = (0..100).filter(|row| case.expected[*row].is_some()).collect();
            let kept: Vec<Vec<u64>> =
                columns.iter().map(|column| kept.iter().map(|row| column[*row]).collect()).collect();
            let rows = kept.first().map_or(0, Vec::len);
            check(def.name, &tape, &ports, &columns, &[100]);
            check(def.name, &tape, &ports, &kept, &[rows, rows / 2]);
            tapes += 1;
        }
    }
    assert!(tapes > 150, "only {tapes} tapes, {refused} refused");
}

#[test]
fn wrong_tapes_are_refused() {
    let isa = Isa::Avx512;
    if !isa.is_supported() {
        return;
    }
    let refused = |tape: &Tape, ports: &[Port], limits: &Limits| {
        compile(tape, ports, &[], isa, limits).map(|_| ()).map_err(|error| error.kind())
    };
    let fine = Limits::default();
    let mut tape = Tape::new();
    let x = tape.input(MachineType::F64);
    let called = tape.call(RuntimeFn::ExpF64, &[x]);
    tape.output(Output::Number(called));
    assert_eq!(refused(&tape, &[Port::Rows], &fine), Err(ErrorKind::Instruction(1)));
    assert_eq!(refused(&tape, &[], &fine), Err(ErrorKind::Ports(1)));
    // Sums must be outputs, and 64-bit numbers.
    assert_eq!(refused(&tape, &[Port::Chains], &fine), Err(ErrorKind::Ports(1)));
    let mut tape = Tape::new();
    let x = tape.input(MachineType::F32);
    tape.output(Output::Number(x));
    let sums = compile(&tape, &[Port::Rows], &[Port::Chains], isa, &fine).map(|_| ()).map_err(|error| error.kind());
    assert_eq!(sums, Err(ErrorKind::Ports(1)));
    // A tape that is not finished, with unmatched marks of stretches and mismatched types: invalid in every way.
    let mut tape = Tape::new();
    let x = tape.input(MachineType::F64);
    let mask = tape.cmp(Cmp::Lt, x, x);
    tape.end();
    tape.begin(mask);
    tape.output(Output::Number(x));
    assert_eq!(refused(&tape, &[Port::Rows], &fine), Ok(()));
    let y = tape.input(MachineType::F32);
    let sum = tape.bin(Bin::Add, x, y);
    tape.output(Output::Number(sum));
    assert_eq!(refused(&tape, &[Port::Rows; 2], &fine), Err(ErrorKind::Instruction(sum.index())));
    // Results that are not numbers, not masks or not on the tape.
    for output in [Output::Number(sum), Output::Mask(mask)] {
        let mut tape = Tape::new();
        tape.output(output);
        assert_eq!(refused(&tape, &[], &fine), Err(ErrorKind::Instruction(output.index())));
        while tape.instrs().len() <= output.index() {
            match output {
                Output::Number(_) => drop(tape.input_mask()),
                Output::Mask(_) => drop(tape.input(MachineType::F64)),
            }
        }
        let ports = vec![Port::Rows; tape.inputs().len()];
        assert_eq!(refused(&tape, &ports, &fine), Err(ErrorKind::Instruction(output.index())));
    }
    assert_eq!(refused(&Tape::new(), &[], &fine), Ok(()));
}

/// A tape of `instructions` instructions, many of whose results are used much later.
fn giant(instructions: usize, waiting: usize) -> Tape {
    let mut tape = Tape::new();
    let x = tape.input(MachineType::F64);
    let mut vals = vec![x];
    let mut random = random(9);
    while tape.instrs().len() < instructions {
        let a = vals[random.usize(vals.len().saturating_sub(waiting)..vals.len())];
        let constant = tape.konst(MachineType::F64, bits(&mut random, MachineType::F64) & !(0x7FF << 52) | 1023 << 52);
        let last = vals[vals.len() - 1];
        let next = tape.fma(a, constant, last);
        vals.push(next);
    }
    tape.output(Output::Number(vals[vals.len() - 1]));
    tape.finish();
    tape
}

#[test]
fn giant_tapes_compile_or_say_what_they_exceed() {
    for isa in sets() {
        let tape = giant(100_000, 60);
        let played = compile(&tape, &[Port::Rows], &[], isa, &Limits::default()).expect("compiles");
        assert!(played.code().len() > 200_000);
        let columns = columns(&tape, 9, 1);
        let case = Case::new("giant", &tape, &[Port::Rows], &columns, 9);
        case.check(isa, &played, 9, 1);
        let few = Limits { code_bytes: 100_000, ..Limits::default() };
        let error = compile(&tape, &[Port::Rows], &[], isa, &few).expect_err("too long");
        assert_eq!(error.kind(), ErrorKind::Code(100_000));
        let tape = giant(40_000, 15_000);
        let error = compile(&tape, &[Port::Rows], &[], isa, &Limits::default()).expect_err("too deep");
        assert_eq!(error.kind(), ErrorKind::Stack(64 << 10));
        let deep = Limits { stack_bytes: 1 << 20, ..Limits::default() };
        let tape = giant(6_000, 1_500);
        let played = compile(&tape, &[Port::Rows], &[], isa, &deep).expect("compiles");
        let case = Case::new("deep", &tape, &[Port::Rows], &columns, 9);
        case.check(isa, &played, 9, 1);
    }
}
