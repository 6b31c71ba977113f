//! Tests of compiled loops against the reference evaluator of tapes: every instruction, and tapes of all kinds, on arrays
//! between pages that fault.

mod arrays;
mod edges;
mod ends;
mod instructions;
mod lines;
mod quotients;
mod random;
mod short;

use crate::{Isa, Limits, WideLoop, compile};
use arrays::Guarded;
use cembra_runtime::{CHAINS, Context, MachineType};
use cembra_tape::{Outcome, Output, Port, Tape, TapeLoop};

/// The bits of an input in each row, or a single element that all rows share.
type Column = Vec<u64>;

/// The instruction sets of this machine.
fn sets() -> impl Iterator<Item = Isa> {
    Isa::ALL.into_iter().filter(|isa| isa.is_supported())
}

/// The random generator for a seed.
fn random(seed: u64) -> fastrand::Rng {
    fastrand::Rng::with_seed(seed)
}

/// Returns the bits of a special, common or arbitrary number.
fn bits(random: &mut fastrand::Rng, ty: MachineType) -> u64 {
    let special = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        0.5,
        -2.0,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::NAN,
        f64::MIN_POSITIVE,
        f64::MAX,
        5e-324,
        1e-310,
        1e-40,
        3e38,
        2_147_483_648.0,
        9.3e18,
        710.0,
    ];
    let kind = random.u8(..10);
    let float = match kind {
        0..=2 => special[random.usize(..special.len())],
        3..=7 => random.f64() * 40.0 - 20.0,
        _ => f64::NAN,
    };
    let integer = match kind {
        0 | 1 => [0, 1, -1, i64::MAX, i64::MIN, i64::from(i32::MAX), i64::from(i32::MIN)][random.usize(..7)],
        2..=4 => random.i64(-20..20),
        _ => random.i64(..),
    };
    match ty {
        MachineType::Flag => random.bool().into(),
        MachineType::I32 => u64::from(integer as u32),
        MachineType::I64 => integer.cast_unsigned(),
        MachineType::F32 if kind > 7 => random.u32(..).into(),
        MachineType::F32 => u64::from((float as f32).to_bits()),
        MachineType::F64 if kind > 7 => random.u64(..),
        MachineType::F64 => float.to_bits(),
    }
}

fn is_nan(ty: MachineType, bits: u64) -> bool {
    match ty {
        MachineType::F32 => f32::from_bits(bits as u32).is_nan(),
        MachineType::F64 => f64::from_bits(bits).is_nan(),
        _ => false,
    }
}

/// The evaluator's outputs for a row; `None` if the row fails.
fn expected(tape: &Tape, row: &[u64]) -> Option<Vec<u64>> {
    // SAFETY: STRING-VIEW: tapes here are of numbers.
    match unsafe { tape.run_on_bits(row) } {
        Outcome::Done(results) => Some(tape.outputs().iter().map(|output| results[output.index()]).collect()),
        Outcome::Stopped(..) => None,
    }
}

fn output_type(tape: &Tape, output: Output) -> MachineType {
    match output {
        Output::Number(val) => tape.ty(val),
        Output::Mask(_) => MachineType::Flag,
    }
}

/// The method of a loop that runs the rows: with normal stores, with non-temporal stores, or with prefetches.
#[derive(Clone, Copy)]
enum PlayMode {
    Plain,
    PastCaches,
    Fetching,
}

/// A tape, the rows that it is run on, and the expected results.
struct Case<'a> {
    name: &'a str,
    tape: &'a Tape,
    ports: &'a [Port],
    /// The ports of the outputs.
    outputs: Vec<Port>,
    columns: &'a [Column],
    /// The evaluator's outputs for each row; `None` for rows that fail.
    expected: Vec<Option<Vec<u64>>>,
}

impl<'a> Case<'a> {
    fn new(name: &'a str, tape: &'a Tape, ports: &'a [Port], columns: &'a [Column], rows: usize) -> Self {
        let value = |row: usize, (port, column): (&Port, &Column)| column[if *port == Port::Rows { row } else { 0 }];
        let row = |row: usize| -> Vec<u64> { ports.iter().zip(columns).map(|both| value(row, both)).collect() };
        let expected = (0..rows).map(|number| expected(tape, &row(number))).collect();
        Case { name, tape, ports, outputs: vec![Port::Rows; tape.outputs().len()], columns, expected }
    }

    /// Returns this case with sums of all FLOAT64 outputs instead of their rows; `None` if no output is FLOAT64.
    fn of_sums(self) -> Option<Self> {
        let is_number = |output: &Output| output_type(self.tape, *output) == MachineType::F64;
        let port = |output: &Output| if is_number(output) { Port::Chains } else { Port::Rows };
        let outputs: Vec<Port> = self.tape.outputs().iter().map(port).collect();
        outputs.contains(&Port::Chains).then_some(Case { outputs, ..self })
    }

    /// Compiles the tape for an instruction set and checks it on each of these numbers of rows.
    fn check_all(&self, isa: Isa, counts: &[usize]) {
        let Case { name, tape, ports, outputs, .. } = self;
        let played = compile(tape, ports, outputs, isa, &Limits::default());
        let played = played.unwrap_or_else(|error| panic!("{name} with {isa:?}: {error}\n{tape}"));
        for rows in counts {
            self.check(isa, &played, *rows, *rows as u64);
        }
    }

    /// Runs the rows by each method, and compares with the expected results. `seed` chooses the addresses of the
    /// arrays.
    fn check(&self, isa: Isa, played: &WideLoop, rows: usize, seed: u64) {
        for way in [PlayMode::Plain, PlayMode::PastCaches, PlayMode::Fetching] {
            self.check_play(isa, played, rows, seed, way);
        }
    }

    fn check_play(&self, isa: Isa, played: &WideLoop, rows: usize, seed: u64, way: PlayMode) {
        let Case { name, tape, ports, outputs: kinds, columns, expected } = self;
        let mut place = random(seed);
        let inputs: Vec<Guarded> = tape
            .inputs()
            .zip(ports.iter().zip(*columns))
            .map(|((_, ty), (port, column))| match port {
                Port::Rows => Guarded::column(ty, &column[..rows], &mut place),
                Port::Shared | Port::Chains => Guarded::shared(ty, column[0], &mut place),
            })
            .collect();
        let types: Vec<MachineType> = tape.outputs().iter().map(|output| output_type(tape, *output)).collect();
        // Sums continue from their current values.
        let starts: Vec<u64> = (0..CHAINS as u32).map(|chain| (f64::from(chain) * 1.1).to_bits()).collect();
        let memory = |(ty, kind): (&MachineType, &Port)| match kind {
            Port::Chains => Guarded::column(*ty, &starts, &mut place),
            Port::Rows | Port::Shared => Guarded::output(*ty, rows, &mut place),
        };
        let outputs: Vec<Guarded> = types.iter().zip(kinds).map(memory).collect();
        let arrays: Vec<*mut u8> = inputs.iter().chain(&outputs).map(Guarded::start).collect();
        // SAFETY: PORTS: the arrays are made for the tape's inputs and outputs and this many rows.
        let failed = unsafe {
            let context = &mut Context::new();
            match way {
                PlayMode::Plain => played.play(&arrays, rows, context),
                PlayMode::PastCaches => played.play_past_caches(&arrays, rows, context),
                // Some of the addresses are unmapped, and pages before and after arrays fault.
                PlayMode::Fetching => played.play_fetching(&arrays, rows, &[arrays[0].addr() + 4 * rows, 1], context),
            }
        };
        let fails = expected[..rows].iter().any(Option::is_none);
        assert_eq!(failed, fails, "{name} with {isa:?}, {rows} rows\n{tape}");
        for array in inputs.iter().chain(&outputs) {
            array.check_surroundings(name);
        }
        if fails {
            return;
        }
        for (number, (ty, output)) in types.iter().zip(&outputs).enumerate() {
            if kinds[number] == Port::Chains {
                let mut sums: Vec<f64> = starts.iter().copied().map(f64::from_bits).collect();
                for (row, expected) in expected[..rows].iter().enumerate() {
                    sums[row % CHAINS] += expected.as_ref().map_or(0.0, |row| f64::from_bits(row[number]));
                }
                for (chain, sum) in sums.into_iter().enumerate() {
                    let found = f64::from_bits(output.value(*ty, chain));
                    let same = found.to_bits() == sum.to_bits() || found.is_nan() && sum.is_nan();
                    assert!(same, "{name} with {isa:?}, sum {chain} of {rows} rows: {found}, not {sum}\n{tape}");
                }
                continue;
            }
            for (row, expected) in expected[..rows].iter().enumerate() {
                let (found, expected) = (output.value(*ty, row), expected.as_ref().map_or(0, |row| row[number]));
                let same = found == expected || is_nan(*ty, found) && is_nan(*ty, expected);
                let given: Vec<u64> = columns.iter().map(|column| *column.get(row).unwrap_or(&column[0])).collect();
                assert!(
                    same,
                    "{name} with {isa:?}, output {number}, row {row} of {rows}: {given:x?} gives {found:x}, not {expected:x}\n{tape}"
                );
            }
            if *ty == MachineType::Flag {
                for row in rows..rows.next_multiple_of(64) {
                    assert_eq!(output.value(*ty, row), 0, "{name}: bit {row} behind {rows} rows");
                }
            }
        }
    }
}

/// Checks a tape on each of these numbers of rows with every instruction set, and also with sums of its outputs.
fn check(name: &str, tape: &Tape, ports: &[Port], columns: &[Column], counts: &[usize]) {
    let most = counts.iter().copied().max().unwrap_or_default();
    let case = Case::new(name, tape, ports, columns, most);
    let sets = || sets().filter(|isa| can_play(tape, *isa));
    sets().for_each(|isa| case.check_all(isa, counts));
    if let Some(case) = case.of_sums() {
        sets().for_each(|isa| case.check_all(isa, counts));
    }
}

fn can_play(tape: &Tape, isa: Isa) -> bool {
    let plays = isa.can_play();
    let live = tape.live();
    (0..tape.instrs().len()).all(|at| !live[at] || plays(tape, at))
}

/// Returns columns with special, common and arbitrary numbers for the tape's inputs.
fn columns(tape: &Tape, rows: usize, seed: u64) -> Vec<Column> {
    let mut random = random(seed);
    tape.inputs().map(|(_, ty)| (0..rows).map(|_| bits(&mut random, ty)).collect()).collect()
}
