//! Every rule of the registry in lanes: as code that takes one row at a time, two and four, against the evaluator of tapes on
//! bits, on special and random values, bare and lifted to optionals. And every instruction by itself, on every type that it is
//! for: rules do not use all of them.

#[path = "../../ops/tests/specials/mod.rs"]
mod specials;

use cembra_native::lanes::{self, Failed, Lanes};
use cembra_ops::{Lower, OperandType, Registry, record};
use cembra_runtime::{Context, FaultKind, MachineType, RuntimeFn, Scalar};
use cembra_tape::{Bin, Cell, Cmp, Datum, Mask, Outcome, Output, Presence, Shift, Tape, Un, Val};
use cembra_value::{Budget, Limits};
use specials::specials;

/// How many rows each tape runs on.
const ROWS: usize = 600;

/// A column of a test, as bits: of an input or of an output.
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

impl Column {
    /// The column as an array of its type.
    fn bytes(&self) -> Vec<u8> {
        self.bits.iter().flat_map(|bits| bits.to_le_bytes()[..size(self.ty)].to_vec()).collect()
    }

    fn of_bytes(ty: MachineType, bytes: &[u8]) -> Column {
        let bits = |bytes: &[u8]| bytes.iter().rev().fold(0, |bits, byte| bits << 8 | u64::from(*byte));
        Column { ty, bits: bytes.chunks(size(ty)).map(bits).collect() }
    }
}

/// A number's bits, but one NaN for all of them.
fn canonical(ty: MachineType, bits: u64) -> u64 {
    match ty {
        MachineType::F32 if f32::from_bits(bits as u32).is_nan() => u64::MAX,
        MachineType::F64 if f64::from_bits(bits).is_nan() => u64::MAX,
        _ => bits,
    }
}

/// An output, where it counts: everywhere, or where a mask holds.
struct Result {
    output: Output,
    within: Option<Mask>,
}

/// Runs a tape on the rows with each number of lanes and compares with the evaluator, fault by fault.
fn check(name: &str, tape: &Tape, inputs: &[Column], results: &[Result]) {
    let outcomes: Vec<Outcome> = (0..ROWS)
        .map(|row| {
            let bits: Vec<u64> = inputs.iter().map(|column| column.bits[row]).collect();
            // SAFETY: STRING-VIEW: the views among the columns are of texts that live on.
            unsafe { tape.run_on_bits(&bits) }
        })
        .collect();
    let arrays: Vec<Vec<u8>> = inputs.iter().map(Column::bytes).collect();
    let outputs: Vec<Output> = results.iter().map(|result| result.output).collect();
    let types = outputs.iter().map(|output| match output {
        Output::Number(val) => tape.ty(*val),
        Output::Mask(_) => MachineType::Flag,
    });
    let types: Vec<MachineType> = types.collect();
    let mut finished = tape.clone();
    outputs.iter().for_each(|output| finished.output(*output));
    finished.finish();
    for lanes in Lanes::ALL {
        let budget = Budget::new(Limits::default());
        let function = lanes::compile(&finished, lanes, &budget).expect("a machine with lanes");
        let mut written: Vec<Vec<u8>> = types.iter().map(|ty| vec![0xAA; ROWS * size(*ty)]).collect();
        let mut context = Context::new();
        let mut start = 0;
        while start < ROWS {
            let from: Vec<*const u8> =
                arrays.iter().zip(inputs).map(|(array, column)| array[start * size(column.ty)..].as_ptr()).collect();
            let to: Vec<*mut u8> =
                written.iter_mut().zip(&types).map(|(array, ty)| array[start * size(*ty)..].as_mut_ptr()).collect();
            // SAFETY: ROWS: the arrays have these types and `ROWS` elements from the start on.
            let done = unsafe { function.run(&from, &to, ROWS - start, &mut context) };
            let stopped = (start..ROWS).find(|row| matches!(outcomes[*row], Outcome::Stopped(..)));
            let failed = stopped.map(|row| Failed { row: row - start });
            assert_eq!(done.err(), failed, "{name} in {lanes:?}, from row {start}\n{tape}");
            let Some(row) = stopped else { break };
            let Outcome::Stopped(fault, site) = &outcomes[row] else { unreachable!() };
            let record = context.record();
            assert_eq!(
                (record.site, record.kind, record.operands),
                (*site, fault.kind as u32, fault.operands),
                "{name} in {lanes:?}"
            );
            for (array, ty) in written.iter().zip(&types) {
                let after = &array[row * size(*ty)..];
                assert!(after.iter().all(|byte| *byte == 0xAA), "{name} in {lanes:?} writes rows that fail");
            }
            start = row + 1;
        }
        for ((result, ty), array) in results.iter().zip(&types).zip(&written) {
            let found = Column::of_bytes(*ty, array);
            for (row, outcome) in outcomes.iter().enumerate() {
                let Outcome::Done(values) = outcome else { continue };
                if result.within.is_some_and(|mask| values[mask.index()] == 0) {
                    continue;
                }
                let at = match result.output {
                    Output::Number(val) => val.index(),
                    Output::Mask(mask) => mask.index(),
                };
                let args: Vec<String> = inputs.iter().map(|column| format!("{:#x}", column.bits[row])).collect();
                assert_eq!(
                    canonical(*ty, found.bits[row]),
                    canonical(*ty, values[at]),
                    "{name} in {lanes:?}, row {row}: {}\n{tape}",
                    args.join(" ")
                );
            }
        }
    }
}

/// Bits of a number: special, random, or of a common size.
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

/// Inputs of a tape, with their columns.
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

    /// A value from outside; the payload of a missing one is as random as any other.
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

    /// A view where the string is present, and garbage elsewhere.
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

/// The outputs that a cell is made of.
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

/// A float that can be scaled, as `Bin::Scale` has it.
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
    for made_of in NUMBERS {
        for used_on in NUMBERS {
            for op in [Cmp::Eq, Cmp::Ne, Cmp::Lt, Cmp::Le, Cmp::Gt, Cmp::Ge] {
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
    // The functions' own rare arguments are rare: here a lane is one of them half of the time.
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
fn the_first_row_that_fails_is_found_whichever_site_it_fails_at() {
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

#[test]
fn rows_that_are_no_multiple_of_the_lanes_are_all_done_and_no_more() {
    let mut tape = Tape::new();
    let x = tape.input(MachineType::F32);
    let doubled = tape.bin(Bin::Add, x, x);
    tape.output(Output::Number(doubled));
    tape.finish();
    for lanes in Lanes::ALL {
        let budget = Budget::new(Limits::default());
        let function = lanes::compile(&tape, lanes, &budget).expect("compiles");
        for rows in 0..12 {
            let numbers = [1.5_f32; 12];
            let mut found = [0_f32; 12];
            let (from, to) = ([numbers.as_ptr().cast()], [found.as_mut_ptr().cast()]);
            // SAFETY: ROWS: 12 elements are not less than the rows.
            unsafe { function.run(&from, &to, rows, &mut Context::new()) }.expect("nothing fails");
            let expected: Vec<f32> = (0..12).map(|row| if row < rows { 3.0 } else { 0.0 }).collect();
            assert_eq!(found[..], expected, "{lanes:?}");
        }
    }
}
