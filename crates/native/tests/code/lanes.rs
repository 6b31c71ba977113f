//! Compares the vector code of tapes, for one, two and four rows at a time, with the interpreter of tapes. The tests
//! run each rule of the operator registry on special and random values, with arguments that are optional and that are
//! not. They run each instruction by itself on each type that it supports, because rules do not use all combinations.
//! They also check accesses to arrays: bits at any address, elements that all rows share, memory around outputs, and
//! any number of rows after the last full group.

use crate::specials;

use cembra_native::ErrorKind;
use cembra_native::lanes::{self, Lanes};
use cembra_ops::{Lower, OperandType, Registry, record};
use cembra_runtime::{CHAINS, Context, FaultKind, MachineType, RuntimeFn, Scalar};
use cembra_tape::{Bin, Cell, Cmp, Datum, Mask, Outcome, Output, Port, Presence, Shift, Tape, TapeLoop, Un, Val};
use cembra_value::{Budget, Limits};
use specials::specials;

/// The number of rows that each tape runs on.
const ROWS: usize = 600;

/// An input or output of a tape, with the bits of its element in each row.
#[derive(Clone)]
struct Column {
    ty: MachineType,
    bits: Vec<u64>,
}

const fn size(ty: MachineType) -> usize {
    match ty {
        MachineType::I32 | MachineType::F32 => 4,
        MachineType::I64 | MachineType::F64 => 8,
        MachineType::Flag => 1,
    }
}

/// Returns the bytes of an array with these elements: numbers, or bits in whole 64-bit words.
fn array(ty: MachineType, rows: &[u64]) -> Vec<u8> {
    match ty {
        MachineType::Flag => {
            let word = |bits: &[u64]| bits.iter().rev().fold(0, |word, bit| word << 1 | *bit);
            rows.chunks(64).flat_map(|bits| word(bits).to_le_bytes()).collect()
        }
        _ => rows.iter().flat_map(|bits| bits.to_le_bytes()[..size(ty)].to_vec()).collect(),
    }
}

/// Returns the bits of the element at the index `row` of an array.
fn element(ty: MachineType, array: &[u8], row: usize) -> u64 {
    match ty {
        MachineType::Flag => u64::from(array[row / 8] >> (row % 8) & 1),
        _ => array[row * size(ty)..][..size(ty)].iter().rev().fold(0, |bits, byte| bits << 8 | u64::from(*byte)),
    }
}

/// The number of bytes before and after each output array. Machine code must not write to them.
const MARGIN: usize = 16;
const CANARY: u8 = 0xAA;

/// Runs a compiled tape on `rows` rows of the inputs, whose arrays begin at odd addresses. An input with `Port::Shared`
/// has one element for all rows. Returns the bytes of the outputs; `None` if a row fails.
fn play(
    function: &dyn TapeLoop,
    inputs: &[(MachineType, Vec<u64>, Port)],
    outputs: &[MachineType],
    rows: usize,
) -> Option<Vec<Vec<u8>>> {
    let mut from: Vec<Vec<u8>> = Vec::new();
    for (ty, bits, port) in inputs {
        let mut array = match port {
            Port::Rows => array(*ty, bits),
            Port::Shared | Port::Chains => bits[0].to_le_bytes().to_vec(),
        };
        // The bits of an input end with the byte of the last row. Bits after the last row may belong to something else.
        if (*ty, *port) == (MachineType::Flag, Port::Rows) {
            array.truncate(rows.div_ceil(8));
            if !rows.is_multiple_of(8)
                && let Some(last) = array.last_mut()
            {
                *last |= 0xFF << (rows % 8);
            }
        }
        array.insert(0, CANARY);
        array.shrink_to_fit();
        from.push(array);
    }
    let bytes = |ty: MachineType| if ty == MachineType::Flag { 8 * rows.div_ceil(64) } else { size(ty) * rows };
    let mut to: Vec<Vec<u8>> = outputs.iter().map(|ty| vec![CANARY; 2 * MARGIN + bytes(*ty)]).collect();
    let ports = from.iter_mut().map(|array| array[1..].as_mut_ptr());
    let ports: Vec<*mut u8> = ports.chain(to.iter_mut().map(|array| array[MARGIN..].as_mut_ptr())).collect();
    // SAFETY: PORTS: the arrays have these types, with as many elements as there are rows.
    let fails = unsafe { function.play(&ports, rows, &mut Context::new()) };
    for (array, ty) in to.iter_mut().zip(outputs) {
        let around = array[..MARGIN].iter().chain(&array[MARGIN + bytes(*ty)..]);
        assert!(around.copied().all(|byte| byte == CANARY), "memory around an output is written");
        array.drain(..MARGIN);
        array.truncate(bytes(*ty));
        if *ty == MachineType::Flag && !fails {
            assert!((rows..8 * array.len()).all(|row| element(*ty, array, row) == 0), "bits behind the last row");
        }
    }
    (!fails).then_some(to)
}

/// Returns `bits`, or a fixed value for all NaNs of a float type, whose bits may differ.
fn canonical(ty: MachineType, bits: u64) -> u64 {
    match ty {
        MachineType::F32 if f32::from_bits(bits as u32).is_nan() => u64::MAX,
        MachineType::F64 if f64::from_bits(bits).is_nan() => u64::MAX,
        _ => bits,
    }
}

/// An output to compare. `within` is the mask of the rows in which it has a meaning; `None` means all rows.
struct Result {
    output: Output,
    within: Option<Mask>,
}

/// Runs a tape with each number of lanes and compares the results with the interpreter. One run takes all rows that
/// succeed. The others take 13 consecutive rows each, whether one of these fails or not.
fn check(name: &str, tape: &Tape, inputs: &[Column], results: &[Result]) {
    let outcomes: Vec<Outcome> = (0..ROWS)
        .map(|row| {
            let bits: Vec<u64> = inputs.iter().map(|column| column.bits[row]).collect();
            // SAFETY: STRING-VIEW: the views among the columns are of texts that live on.
            unsafe { tape.run_on_bits(&bits) }
        })
        .collect();
    let outputs: Vec<Output> = results.iter().map(|result| result.output).collect();
    let types = outputs.iter().map(|output| match output {
        Output::Number(val) => tape.ty(*val),
        Output::Mask(_) => MachineType::Flag,
    });
    let types: Vec<MachineType> = types.collect();
    let mut finished = tape.clone();
    outputs.iter().for_each(|output| finished.output(*output));
    finished.finish();
    let succeeds = |row: &usize| matches!(outcomes[*row], Outcome::Done(_));
    let good: Vec<usize> = (0..ROWS).filter(succeeds).collect();
    let parts = (0..ROWS).step_by(13).map(|start| (start..ROWS.min(start + 13)).collect::<Vec<usize>>());
    let parts: Vec<Vec<usize>> = std::iter::once(good).chain(parts).collect();
    for lanes in Lanes::ALL {
        let budget = Budget::new(Limits::default());
        let ports = vec![Port::Rows; inputs.len()];
        let function = lanes::compile_in(lanes, &finished, &ports, &[], &budget).expect("a machine with lanes");
        for rows in &parts {
            let of_rows = |column: &Column| rows.iter().map(|row| column.bits[*row]).collect();
            let columns: Vec<_> = inputs.iter().map(|column| (column.ty, of_rows(column), Port::Rows)).collect();
            let played = play(&function, &columns, &types, rows.len());
            assert_eq!(played.is_some(), rows.iter().all(succeeds), "{name} in {lanes:?}, rows {rows:?}\n{tape}");
            let Some(arrays) = played else { continue };
            for ((result, ty), array) in results.iter().zip(&types).zip(&arrays) {
                for (number, row) in rows.iter().enumerate() {
                    let Outcome::Done(values) = &outcomes[*row] else { continue };
                    if result.within.is_some_and(|mask| values[mask.index()] == 0) {
                        continue;
                    }
                    let at = match result.output {
                        Output::Number(val) => val.index(),
                        Output::Mask(mask) => mask.index(),
                    };
                    let args: Vec<String> = inputs.iter().map(|column| format!("{:#x}", column.bits[*row])).collect();
                    assert_eq!(
                        canonical(*ty, element(*ty, array, number)),
                        canonical(*ty, values[at]),
                        "{name} in {lanes:?}, row {row}: {}\n{tape}",
                        args.join(" ")
                    );
                }
            }
        }
    }
}

/// Returns the bits of a special number, of random bits, or of a number of common magnitude.
fn number(random: &mut fastrand::Rng, scalar: Scalar) -> u64 {
    let values = specials(scalar);
    if random.bool() {
        return values[random.usize(0..values.len())].bits();
    }
    let any = match random.u8(0..3) {
        0 => random.u64(..),
        1 => random.u64(0..20).wrapping_sub(10),
        _ => return of_float(scalar, (random.f64() - 0.5) * 2.0_f64.powi(random.i32(-8..40))),
    };
    if matches!(machine_type(scalar), MachineType::I32 | MachineType::F32) { any & 0xFFFF_FFFF } else { any }
}

fn of_float(scalar: Scalar, value: f64) -> u64 {
    match machine_type(scalar) {
        MachineType::I32 => u64::from((value as i32).cast_unsigned()),
        MachineType::F32 => u64::from((value as f32).to_bits()),
        MachineType::F64 => value.to_bits(),
        MachineType::I64 | MachineType::Flag => (value as i64).cast_unsigned(),
    }
}

const fn machine_type(scalar: Scalar) -> MachineType {
    match scalar.machine_type() {
        Some(ty) => ty,
        None => MachineType::I64,
    }
}

/// The inputs of a tape that is being recorded, with random columns.
struct Inputs {
    random: fastrand::Rng,
    columns: Vec<Column>,
}

impl Inputs {
    fn new(seed: u64) -> Inputs {
        Inputs { random: fastrand::Rng::with_seed(seed), columns: Vec::new() }
    }

    fn column(&mut self, ty: MachineType, mut bits: impl FnMut(&mut fastrand::Rng) -> u64) {
        let bits = (0..ROWS).map(|_| bits(&mut self.random)).collect();
        self.columns.push(Column { ty, bits });
    }

    fn mask(&mut self, tape: &mut Tape) -> Mask {
        self.column(MachineType::Flag, |random| u64::from(random.u8(0..4) > 0));
        tape.input_mask()
    }

    fn number(&mut self, tape: &mut Tape, scalar: Scalar) -> Val {
        let ty = machine_type(scalar);
        self.column(ty, |random| number(random, scalar));
        tape.input(ty)
    }

    /// Records the inputs for an operand. The payload of a missing value is as random as that of a present value.
    fn cell(&mut self, tape: &mut Tape, operand: OperandType) -> Cell {
        let presence = if operand.optional { Presence::When(self.mask(tape)) } else { Presence::Present };
        let datum = match operand.scalar {
            Scalar::Unit => Datum::Unit,
            Scalar::Boolean => Datum::Flag(self.mask(tape)),
            Scalar::Text | Scalar::Bytes => self.string(tape, operand),
            scalar => Datum::Num(self.number(tape, scalar)),
        };
        Cell { presence, datum }
    }

    /// Records the inputs for a string: its address and length. In rows where the string is missing, they are garbage.
    fn string(&mut self, tape: &mut Tape, operand: OperandType) -> Datum {
        let views: Vec<(u64, u64)> = STRINGS.iter().map(|text| (text.as_ptr() as u64, text.len() as u64)).collect();
        let present = operand.optional.then(|| self.columns[self.columns.len() - 1].bits.clone());
        let rows = (0..ROWS).map(|row| match &present {
            Some(present) if present[row] == 0 => (0x1234_5678_9ABC_DEF0, 0x1234_5678_9ABC_DEF0),
            _ => views[self.random.usize(0..views.len())],
        });
        let (pointers, lengths): (Vec<u64>, Vec<u64>) = rows.collect();
        let ty = MachineType::I64;
        self.columns.extend([pointers, lengths].map(|bits| Column { ty, bits }));
        Datum::Text { ptr: tape.input(ty), len: tape.input(ty) }
    }
}

const STRINGS: &[&str] = &["", "a", "b", "ab", "abc", "äöü", "a longer text, of some words"];

/// Returns the outputs of a cell: its presence, and its payload in the rows where it is present.
fn results(cell: Cell) -> Vec<Result> {
    let everywhere = |output| Result { output, within: None };
    let (within, mut results) = match cell.presence {
        Presence::Present => (None, Vec::new()),
        Presence::Missing => return Vec::new(),
        Presence::When(mask) => (Some(mask), vec![everywhere(Output::Mask(mask))]),
    };
    let datum = match cell.datum {
        Datum::Unit => Vec::new(),
        Datum::Flag(mask) => vec![Output::Mask(mask)],
        Datum::Num(val) => vec![Output::Number(val)],
        Datum::Text { ptr, len } => vec![Output::Number(ptr), Output::Number(len)],
    };
    results.extend(datum.into_iter().map(|output| Result { output, within }));
    results
}

#[test]
fn every_rule_gives_the_same_bits_in_lanes() {
    let mut tapes = 0;
    for (_, def) in Registry::standard().iter() {
        for overload in def.overloads() {
            if !matches!(overload.lower, Lower::Rule(_)) {
                continue;
            }
            for lifted in [false, true] {
                if lifted && overload.lifted.is_none() {
                    continue;
                }
                let (mut tape, mut inputs) = (Tape::new(), Inputs::new(tapes));
                tape.set_site(7);
                let operands = overload.args.iter();
                let operands = operands.map(|arg| OperandType { optional: arg.optional || lifted, ..*arg });
                let cells: Vec<Cell> = operands.map(|operand| inputs.cell(&mut tape, operand)).collect();
                let result = record(&mut tape, def.presence, overload, &cells);
                let types: Vec<String> =
                    cells.iter().zip(overload.args).map(|(_, arg)| arg.qtype().to_string()).collect();
                let name = format!("{}({}) lifted: {lifted}", def.name, types.join(", "));
                check(&name, &tape, &inputs.columns, &results(result));
                tapes += 1;
            }
        }
    }
    assert!(tapes > 300, "only {tapes} tapes");
}

const NUMBERS: [Scalar; 4] = [Scalar::Int32, Scalar::Int64, Scalar::Float32, Scalar::Float64];

fn check_number(name: &str, scalar: Scalar, record: impl Fn(&mut Tape, &mut Inputs, Val) -> Val) {
    let (mut tape, mut inputs) = (Tape::new(), Inputs::new(5));
    let x = inputs.number(&mut tape, scalar);
    let result = record(&mut tape, &mut inputs, x);
    let name = format!("{name} of {scalar:?}");
    check(&name, &tape, &inputs.columns, &[Result { output: Output::Number(result), within: None }]);
}

#[test]
fn every_instruction_on_numbers_gives_the_same_bits_in_lanes() {
    for scalar in NUMBERS {
        let float = matches!(scalar, Scalar::Float32 | Scalar::Float64);
        for op in [Un::Neg, Un::Abs, Un::Sqrt, Un::Floor, Un::Ceil, Un::Trunc] {
            if float || matches!(op, Un::Neg | Un::Abs) {
                check_number(&format!("{op:?}"), scalar, |tape, _, x| tape.un(op, x));
            }
        }
        for to in NUMBERS.map(machine_type) {
            check_number(&format!("to {to:?}"), scalar, |tape, _, x| tape.un(Un::Convert(to), x));
            if size(to) == size(machine_type(scalar)) {
                check_number(&format!("bits as {to:?}"), scalar, |tape, _, x| tape.un(Un::Bitcast(to), x));
            }
        }
        let (both, floats) = ([Bin::Add, Bin::Sub, Bin::Mul], [Bin::Div, Bin::FMin, Bin::FMax, Bin::Copysign]);
        let integers = [Bin::And, Bin::Or, Bin::Xor];
        for op in both.iter().chain(if float { &floats[..] } else { &integers }) {
            check_number(&format!("{op:?}"), scalar, |tape, inputs, x| {
                let y = inputs.number(tape, scalar);
                tape.bin(*op, x, y)
            });
            check_number(&format!("{op:?} with 2"), scalar, |tape, _, x| {
                let two = tape.konst_like(x, 2.0);
                tape.bin(*op, x, two)
            });
        }
        if float {
            check_number("fma", scalar, |tape, inputs, x| {
                let (y, z) = (inputs.number(tape, scalar), inputs.number(tape, scalar));
                tape.fma(x, y, z)
            });
        } else {
            check_number("division", scalar, |tape, _, x| {
                let seven = tape.konst_like(x, -7.0);
                tape.bin(Bin::Div, x, seven)
            });
            for op in [Shift::Left, Shift::Right] {
                check_number(&format!("shift {op:?}"), scalar, |tape, _, x| tape.shift(op, x, 13));
            }
        }
    }
}

/// Returns the bits of a random float for which `Bin::Scale` is defined; sometimes a zero, an infinity or NaN.
fn scaled(scalar: Scalar, random: &mut fastrand::Rng) -> u64 {
    let edges = [0.0, -0.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 1.0, -1.5];
    let range = if scalar == Scalar::Float32 { 90 } else { 950 };
    let ordinary = (1.0 + random.f64()) * f64::from(random.i32(-range..range)).exp2();
    of_float(scalar, if random.u8(..) < 40 { edges[random.usize(..edges.len())] } else { ordinary })
}

#[test]
fn floats_are_scaled_and_split_alike() {
    for scalar in [Scalar::Float32, Scalar::Float64] {
        let (ty, most) = (machine_type(scalar), if scalar == Scalar::Float32 { 252 } else { 2044 });
        let mut tape = Tape::new();
        let mut inputs = Inputs::new(7);
        inputs.column(ty, |random| scaled(scalar, random));
        inputs.column(ty, |random| of_float(scalar, f64::from(random.i32(-most..=most))));
        let (x, power) = (tape.input(ty), tape.input(ty));
        let product = tape.scale(x, power);
        check("scale", &tape, &inputs.columns, &[Result { output: Output::Number(product), within: None }]);

        let mut tape = Tape::new();
        let mut inputs = Inputs::new(8);
        // All positive, finite bits, subnormal ones among them.
        let infinity =
            if scalar == Scalar::Float32 { u64::from(f32::INFINITY.to_bits()) } else { f64::INFINITY.to_bits() };
        inputs.column(ty, |random| if random.bool() { random.u64(1..infinity) } else { random.u64(1..infinity >> 8) });
        let x = tape.input(ty);
        let (mantissa, exponent) = tape.split(x);
        let results = [mantissa, exponent].map(|val| Result { output: Output::Number(val), within: None });
        check("split", &tape, &inputs.columns, &results);
    }
}

#[test]
fn players_that_run_a_stretch_for_nothing_give_what_the_evaluator_gives_that_skips_it() {
    let mut tape = Tape::new();
    let mut inputs = Inputs::new(9);
    let x = inputs.number(&mut tape, Scalar::Float64);
    let zero = tape.konst_like(x, 0.0);
    let negative = tape.cmp(Cmp::Lt, x, zero);
    let positive = tape.mnot(negative);
    tape.begin(positive);
    let root = tape.un(Un::Sqrt, x);
    let large = tape.cmp(Cmp::Gt, root, x);
    let active = tape.set_active(Some(positive));
    let mask = tape.is_nan(root);
    tape.fault_if(mask, FaultKind::Invalid, [Some(x), None]);
    tape.set_active(active);
    tape.end();
    let chosen = tape.select(positive, root, zero);
    let both = tape.mand(positive, large);
    assert_eq!(tape.check_stretches(), Ok(()));
    let results = [Output::Number(chosen), Output::Mask(both)].map(|output| Result { output, within: None });
    check("a stretch", &tape, &inputs.columns, &results);
}

#[test]
fn masks_of_one_width_serve_numbers_of_the_other() {
    for (at, made_of) in NUMBERS.into_iter().enumerate() {
        for (which, used_on) in NUMBERS.into_iter().enumerate() {
            // Half of the comparisons. The next type takes the other half.
            let ops = [Cmp::Eq, Cmp::Ne, Cmp::Lt, Cmp::Le, Cmp::Gt, Cmp::Ge];
            for op in ops.into_iter().skip((at + which) % 2).step_by(2) {
                let (mut tape, mut inputs) = (Tape::new(), Inputs::new(3));
                let [a, b] = [(); 2].map(|()| inputs.number(&mut tape, made_of));
                let [x, y] = [(); 2].map(|()| inputs.number(&mut tape, used_on));
                let given = inputs.mask(&mut tape);
                let (first, second) = (tape.cmp(op, a, b), tape.cmp(op, x, y));
                let opposite = tape.mnot(first);
                let both = tape.mand(first, second);
                let either = tape.mor(opposite, given);
                let one = tape.mxor(either, both);
                let other = tape.mnot(one);
                let numbers = [opposite, both, given, other].map(|mask| Output::Number(tape.select(mask, x, y)));
                let masks = [first, second, opposite, both, either, one, other].map(Output::Mask);
                let outputs = masks.into_iter().chain(numbers);
                let results: Vec<Result> = outputs.map(|output| Result { output, within: None }).collect();
                check(&format!("{made_of:?} {op:?} on {used_on:?}"), &tape, &inputs.columns, &results);
            }
        }
    }
}

#[test]
fn rare_calls_take_the_lanes_that_need_them() {
    // In the functions' own use these arguments are rare; here half of the lanes have one.
    for (scalar, function) in [(Scalar::Float32, RuntimeFn::LogF32), (Scalar::Float64, RuntimeFn::LogF64)] {
        let (mut tape, mut inputs) = (Tape::new(), Inputs::new(9));
        inputs.column(machine_type(scalar), |random| {
            of_float(scalar, if random.bool() { random.f64() } else { -random.f64() * 1e-310 })
        });
        let x = tape.input(machine_type(scalar));
        let logarithm = tape.function(function, &[x]);
        let zero = tape.konst_like(x, 0.0);
        let positive = tape.cmp(Cmp::Gt, x, zero);
        let results = [Output::Number(logarithm), Output::Mask(positive)];
        check("log", &tape, &inputs.columns, &results.map(|output| Result { output, within: None }));
    }
}

#[test]
fn a_row_that_fails_is_noticed_whichever_site_it_fails_at() {
    let (mut tape, mut inputs) = (Tape::new(), Inputs::new(17));
    let mut sum = None;
    for (site, scalar) in NUMBERS.into_iter().chain(NUMBERS).enumerate() {
        inputs.column(machine_type(scalar), |random| of_float(scalar, f64::from(random.u8(..))));
        let x = tape.input(machine_type(scalar));
        let most = tape.konst_like(x, 250.0);
        let above = tape.cmp(Cmp::Gt, x, most);
        tape.set_site(site as u32);
        tape.fault_if(above, FaultKind::ALL[site], [Some(x), (site % 2 == 0).then_some(most)]);
        let x = tape.un(Un::Convert(MachineType::F64), x);
        sum = Some(sum.map_or(x, |sum| tape.bin(Bin::Add, sum, x)));
    }
    let output = Output::Number(sum.expect("a sum"));
    check("several faults", &tape, &inputs.columns, &[Result { output, within: None }]);
}

/// Records a tape with two numbers and two masks as inputs, and one number and three masks as outputs. A row fails if
/// its first number is above 100.
fn ports_tape(scalar: Scalar) -> Tape {
    let mut tape = Tape::new();
    let ty = machine_type(scalar);
    let (x, flag, y, other) = (tape.input(ty), tape.input_mask(), tape.input(ty), tape.input_mask());
    let less = tape.cmp(Cmp::Lt, x, y);
    let both = tape.mand(flag, less);
    let either = tape.mxor(both, other);
    let chosen = tape.select(either, x, y);
    let hundred = tape.konst_like(x, 100.0);
    let large = tape.cmp(Cmp::Gt, x, hundred);
    tape.fault_if(large, FaultKind::Invalid, [Some(x), None]);
    for output in [Output::Number(chosen), Output::Mask(both), Output::Mask(other), Output::Mask(either)] {
        tape.output(output);
    }
    tape.finish();
    tape
}

#[test]
fn any_number_of_rows_and_any_ports_give_what_the_evaluator_gives() {
    let mut random = fastrand::Rng::with_seed(31);
    let each = NUMBERS.into_iter().enumerate().flat_map(|(at, scalar)| {
        Lanes::ALL.into_iter().enumerate().map(move |(which, lanes)| (at + which, scalar, lanes))
    });
    for (turn, scalar, lanes) in each {
        let (tape, ty) = (ports_tape(scalar), machine_type(scalar));
        // A type has all combinations of ports, with some number of lanes. Each number of lanes has all combinations,
        // with some type.
        for shared in (0..16_u8).filter(|shared| (usize::from(*shared) + turn).is_multiple_of(Lanes::ALL.len())) {
            let port = |at: usize| if shared >> at & 1 == 1 { Port::Shared } else { Port::Rows };
            let ports = [0, 1, 2, 3].map(port);
            let budget = Budget::new(Limits::default());
            let function = lanes::compile_in(lanes, &tape, &ports, &[], &budget).expect("compiles");
            for rows in (0..=70).chain([1025]) {
                let fails = rows > 0 && random.u8(..) < 30;
                let failing = if fails { random.usize(..rows) } else { rows };
                let kinds =
                    [(ty, ports[0]), (MachineType::Flag, ports[1]), (ty, ports[2]), (MachineType::Flag, ports[3])];
                let columns: Vec<_> = kinds
                    .into_iter()
                    .enumerate()
                    .map(|(at, (ty, port))| {
                        let bits = |row| match ty {
                            MachineType::Flag => u64::from(random.bool()),
                            _ if at == 0 && row == failing => of_float(scalar, 101.0),
                            _ => of_float(scalar, f64::from(random.i8(-9..9))),
                        };
                        let mut bits: Vec<u64> = (0..rows.max(1)).map(bits).collect();
                        if port == Port::Shared {
                            let first = bits[0];
                            bits.fill(first);
                        }
                        (ty, bits, port)
                    })
                    .collect();
                let of_row = |row: usize| -> Vec<u64> { columns.iter().map(|(_, bits, _)| bits[row]).collect() };
                // SAFETY: STRING-VIEW: the tape is of numbers.
                let outcomes: Vec<Outcome> = (0..rows).map(|row| unsafe { tape.run_on_bits(&of_row(row)) }).collect();
                let types = [ty, MachineType::Flag, MachineType::Flag, MachineType::Flag];
                let played = play(&function, &columns, &types, rows);
                let name = format!("{scalar:?} in {lanes:?}, {rows} rows, {ports:?}");
                let succeed = outcomes.iter().all(|outcome| matches!(outcome, Outcome::Done(_)));
                assert_eq!(played.is_some(), succeed, "{name}");
                let Some(arrays) = played else { continue };
                for (row, outcome) in outcomes.iter().enumerate() {
                    let Outcome::Done(values) = outcome else { continue };
                    for ((output, ty), array) in tape.outputs().iter().zip(types).zip(&arrays) {
                        assert_eq!(element(ty, array, row), values[output.index()], "{name}, row {row}");
                    }
                }
            }
        }
    }
}

/// Row `i` is added to accumulator `i % CHAINS`, whose first value is the one in the array.
#[test]
fn sums_of_any_number_of_rows() {
    let mut tape = Tape::new();
    let (x, flag, y) = (tape.input(MachineType::F64), tape.input_mask(), tape.input(MachineType::F32));
    let (zero, widened) = (tape.konst_like(x, 0.0), tape.un(Un::Convert(MachineType::F64), y));
    let product = tape.bin(Bin::Mul, x, widened);
    let there = tape.select(flag, product, zero);
    for output in [Output::Number(there), Output::Mask(flag), Output::Number(widened), Output::Number(x)] {
        tape.output(output);
    }
    tape.finish();
    let outputs = [Port::Chains, Port::Rows, Port::Chains];
    let mut random = fastrand::Rng::with_seed(32);
    for lanes in Lanes::ALL {
        let function = lanes::compile_in(lanes, &tape, &[Port::Rows; 3], &outputs, &Budget::default());
        let function = function.expect("compiles");
        for rows in (0..=70_usize).chain([127, 128, 1025]) {
            let mut number = || [0.1, -0.0, 7.5, 1e300, f64::INFINITY, f64::NAN][random.usize(..6)];
            let mut xs: Vec<f64> = (0..rows).map(|_| number()).collect();
            let mut ys: Vec<f32> = (0..rows).map(|_| number() as f32).collect();
            let mut bits: Vec<u64> = (0..rows.div_ceil(64)).map(|_| random.u64(..)).collect();
            let mut sums = [[f64::from_bits(0x4009_21FB_5444_2D18); CHAINS + 2]; 2];
            let mut expected = sums;
            for row in 0..rows {
                let chain = 1 + row % CHAINS;
                let product = if bits[row / 64] >> (row % 64) & 1 == 1 { xs[row] * f64::from(ys[row]) } else { 0.0 };
                expected[0][chain] += product;
                expected[1][chain] += f64::from(ys[row]);
            }
            let (mut there, mut copied) = (vec![0_u64; rows.div_ceil(64)], vec![0.0; rows]);
            let [first, second] = &mut sums;
            let ports: [*mut u8; 7] = [
                xs.as_mut_ptr().cast(),
                bits.as_mut_ptr().cast(),
                ys.as_mut_ptr().cast(),
                first[1..].as_mut_ptr().cast(),
                there.as_mut_ptr().cast(),
                second[1..].as_mut_ptr().cast(),
                copied.as_mut_ptr().cast(),
            ];
            // SAFETY: PORTS: the arrays have the rows, and there are as many sums as chains.
            assert!(!unsafe { function.play(&ports, rows, &mut Context::new()) });
            for (sum, expected) in sums.iter().flatten().zip(expected.iter().flatten()) {
                let same = sum.to_bits() == expected.to_bits() || sum.is_nan() && expected.is_nan();
                assert!(same, "{sum} and not {expected} of {rows} rows in {lanes:?}");
            }
        }
    }
    // Only outputs that are FLOAT64 numbers can be summed.
    let refused = |inputs: &[Port], outputs: &[Port]| {
        lanes::compile(&tape, inputs, outputs, &Budget::default()).expect_err("cannot be").kind()
    };
    assert_eq!(refused(&[Port::Rows; 3], &[Port::Rows, Port::Chains]), ErrorKind::Columns);
    assert_eq!(refused(&[Port::Chains, Port::Rows, Port::Rows], &[]), ErrorKind::Columns);
    assert_eq!(refused(&[Port::Rows; 3], &[Port::Rows; 5]), ErrorKind::Columns);
}

#[test]
fn outputs_may_be_the_arrays_of_inputs() {
    let mut tape = Tape::new();
    let (x, flag) = (tape.input(MachineType::F32), tape.input_mask());
    let (doubled, not) = (tape.bin(Bin::Add, x, x), tape.mnot(flag));
    tape.output(Output::Number(doubled));
    tape.output(Output::Mask(not));
    tape.finish();
    let function = lanes::compile(&tape, &[Port::Rows; 2], &[], &Budget::default()).expect("compiles");
    for rows in [1, 4, 63, 64, 67, 130] {
        let (mut numbers, mut bits) = (vec![1.5_f32; rows], vec![0xA5A5_5A5A_0FF0_1234_u64; rows.div_ceil(64)]);
        let (x, flag) = (numbers.as_mut_ptr().cast(), bits.as_mut_ptr().cast());
        // SAFETY: PORTS: inputs and outputs are the same arrays, of the rows.
        assert!(!unsafe { function.play(&[x, flag, x, flag], rows, &mut Context::new()) });
        assert_eq!(numbers, vec![3.0; rows]);
        for row in 0..64 * bits.len() {
            let expected = row < rows && 0xA5A5_5A5A_0FF0_1234_u64 >> (row % 64) & 1 == 0;
            assert_eq!(bits[row / 64] >> (row % 64) & 1 == 1, expected, "row {row} of {rows}");
        }
    }
}
