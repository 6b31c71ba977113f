//! Measures compiled loops over columns: prints the nanoseconds per row, in calls of 1,024 rows, and the microseconds
//! to compile a loop, for the tapes of the workloads B1 to B5. Each figure is the minimum of many runs. It is still too
//! large if other programs use the processor meanwhile.
//!
//! Usage: `cargo run --release -p cembra-wide --example columns [WORKLOAD [list]]`. With `list`, the machine code is
//! printed too.

use cembra_ops::{Registry, record};
use cembra_runtime::{Context, MachineType};
use cembra_tape::{Cell, Datum, Output, Port, Presence, Tape, TapeLoop};
use cembra_wide::{Isa, Limits, WideLoop, compile};
use iced_x86::{Decoder, DecoderOptions, Formatter, IntelFormatter};
use std::hint::black_box;
use std::time::Instant;

const ROWS: usize = 100_000;
const STRIP: usize = 1_024;

/// A tape that is being recorded by the rules of operators.
struct Recorder {
    tape: Tape,
}

impl Recorder {
    fn new() -> Recorder {
        Recorder { tape: Tape::new() }
    }

    fn input(&mut self, ty: MachineType) -> Cell {
        Cell::num(self.tape.input(ty))
    }

    fn optional(&mut self, ty: MachineType) -> Cell {
        Cell { presence: Presence::When(self.tape.input_mask()), ..self.input(ty) }
    }

    fn number(&mut self, ty: MachineType, value: f64) -> Cell {
        let bits = if ty == MachineType::F32 { u64::from((value as f32).to_bits()) } else { value.to_bits() };
        Cell::num(self.tape.konst(ty, bits))
    }

    /// Records an operator by its first overload for arguments of these types. Overloads for which the same arguments
    /// are optional come first.
    fn op(&mut self, name: &str, args: &[Cell]) -> Cell {
        let ty = |cell: &Cell| match cell.datum {
            Datum::Num(val) => Some(self.tape.ty(val)),
            Datum::Flag(_) => Some(MachineType::Flag),
            _ => None,
        };
        let types: Vec<Option<MachineType>> = args.iter().map(ty).collect();
        for (_, def) in Registry::standard().iter().filter(|(_, def)| def.name == name) {
            for exact in [true, false] {
                for overload in def.overloads() {
                    let takes = |(operand, (ty, cell)): (&cembra_ops::OperandType, (&Option<MachineType>, &Cell))| {
                        operand.scalar.machine_type() == *ty
                            && (!exact || operand.optional == (cell.presence != Presence::Present))
                    };
                    if overload.args.len() == args.len() && overload.args.iter().zip(types.iter().zip(args)).all(takes)
                    {
                        return record(&mut self.tape, def.presence, overload, args);
                    }
                }
            }
        }
        panic!("{name} takes no {types:?}")
    }

    fn two(&mut self, name: &str, a: Cell, b: Cell) -> Cell {
        self.op(name, &[a, b])
    }

    fn with(&mut self, name: &str, a: Cell, b: f64) -> Cell {
        let ty = self.ty(a);
        let b = self.number(ty, b);
        self.op(name, &[a, b])
    }

    fn from(&mut self, name: &str, a: f64, b: Cell) -> Cell {
        let ty = self.ty(b);
        let a = self.number(ty, a);
        self.op(name, &[a, b])
    }

    fn ty(&self, cell: Cell) -> MachineType {
        match cell.datum {
            Datum::Num(val) => self.tape.ty(val),
            _ => MachineType::F64,
        }
    }

    fn add(&mut self, a: Cell, b: Cell) -> Cell {
        self.two("math.add", a, b)
    }

    fn mul(&mut self, a: Cell, b: Cell) -> Cell {
        self.two("math.multiply", a, b)
    }

    fn squash(&mut self, x: Cell) -> Cell {
        let minus = self.op("math.neg", &[x]);
        let power = self.op("math.exp", &[minus]);
        let sum = self.from("math.add", 1.0, power);
        self.from("math.divide", 1.0, sum)
    }

    fn clip(&mut self, x: Cell, low: f64, high: f64) -> Cell {
        let x = self.with("math.maximum", x, low);
        self.with("math.minimum", x, high)
    }

    fn output(mut self, cells: &[Cell]) -> Tape {
        for cell in cells {
            if let Presence::When(mask) = cell.presence {
                self.tape.output(Output::Mask(mask));
            }
            match cell.datum {
                Datum::Num(val) => self.tape.output(Output::Number(val)),
                Datum::Flag(mask) => self.tape.output(Output::Mask(mask)),
                _ => {}
            }
        }
        self.tape.finish();
        self.tape
    }
}

const F32: MachineType = MachineType::F32;
const F64: MachineType = MachineType::F64;

fn product() -> Tape {
    let mut r = Recorder::new();
    let (a, b, c) = (r.input(F64), r.input(F64), r.input(F64));
    let product = r.mul(a, b);
    let sum = r.add(product, c);
    r.output(&[sum])
}

fn quadratic() -> Tape {
    let mut r = Recorder::new();
    let (a, b, c) = (r.input(F32), r.input(F64), r.input(F64));
    let Datum::Num(narrow) = a.datum else { panic!("a number") };
    let a = Cell::num(r.tape.un(cembra_tape::Un::Convert(F64), narrow));
    let square = r.mul(b, b);
    let four = r.from("math.multiply", 4.0, a);
    let other = r.mul(four, c);
    let d = r.two("math.subtract", square, other);
    let s = r.op("math.sqrt", &[d]);
    let zero = r.number(F64, 0.0);
    let real = r.two("core.greater_equal", d, zero);
    let minus = r.op("math.neg", &[b]);
    let [first, second] = ["math.add", "math.subtract"].map(|op| {
        let sum = r.two(op, minus, s);
        let half = r.with("math.divide", sum, 2.0);
        let root = r.two("math.divide", half, a);
        Cell { presence: real.presence, ..root }
    });
    r.output(&[first, second])
}

fn scoring() -> Tape {
    let mut r = Recorder::new();
    let defaults = [0.5, 1.0, 2.0, 0.0, 0.1, 0.2, 3.0, 0.5, -0.5, 0.3];
    let v: Vec<Cell> = defaults
        .into_iter()
        .map(|default| {
            let x = r.optional(F32);
            let (Presence::When(mask), Datum::Num(val)) = (x.presence, x.datum) else { panic!("optional") };
            let default = r.tape.konst_like(val, default);
            Cell::num(r.tape.select(mask, val, default))
        })
        .collect();
    let l: Vec<Cell> = (0..4)
        .map(|at| {
            let x = r.with("math.maximum", v[at], 0.0);
            r.op("math.log1p", &[x])
        })
        .collect();
    let k = [r.clip(v[4], -1.0, 1.0), r.clip(v[5], 0.0, 2.0), r.clip(v[6], 0.5, 4.0)];
    let [s0, s1] = [(7, 1.5, 0.2), (8, -0.7, 0.1)].map(|(at, by, plus)| {
        let x = r.with("math.multiply", v[at], by);
        let x = r.with("math.add", x, plus);
        r.squash(x)
    });
    let mut t = r.with("math.multiply", l[0], 0.3);
    t = r.with("math.add", t, -0.1);
    for (x, by) in [(l[1], -0.2), (l[2], 0.15), (l[3], 0.4), (k[0], 0.25), (k[1], -0.35), (k[2], 0.05), (s0, 0.6)] {
        let term = r.with("math.multiply", x, by);
        t = r.add(t, term);
    }
    let half = r.number(F32, 0.5);
    let above = r.two("core.greater", v[9], half);
    let scaled = r.from("math.multiply", 0.3, s1);
    let on = r.add(t, scaled);
    let off = r.with("math.multiply", t, 0.9);
    let (Presence::When(mask), Datum::Num(on), Datum::Num(off)) = (above.presence, on.datum, off.datum) else {
        panic!("a mask and numbers")
    };
    let chosen = Cell::num(r.tape.select(mask, on, off));
    let product = r.mul(l[0], k[0]);
    let product = r.with("math.multiply", product, 0.05);
    let u = r.add(chosen, product);
    let y = r.squash(u);
    let y = r.clip(y, 0.01, 0.99);
    r.output(&[y])
}

fn sigmoid(ty: MachineType) -> Tape {
    let mut r = Recorder::new();
    let x = r.input(ty);
    let y = r.squash(x);
    r.output(&[y])
}

fn black_scholes() -> Tape {
    let mut r = Recorder::new();
    let (s, k, t) = (r.input(F64), r.input(F64), r.input(F64));
    let root = r.op("math.sqrt", &[t]);
    let v = r.from("math.multiply", 0.3, root);
    let ratio = r.two("math.divide", s, k);
    let log = r.op("math.log", &[ratio]);
    let drift = r.from("math.multiply", 0.065, t);
    let sum = r.add(log, drift);
    let d1 = r.two("math.divide", sum, v);
    let d2 = r.two("math.subtract", d1, v);
    let mut cdf = |d: Cell| {
        let size = r.op("math.abs", &[d]);
        let q = r.from("math.multiply", 0.231_641_9, size);
        let q = r.from("math.add", 1.0, q);
        let q = r.from("math.divide", 1.0, q);
        let half = r.from("math.multiply", -0.5, d);
        let power = r.mul(half, d);
        let power = r.op("math.exp", &[power]);
        let weight = r.from("math.multiply", 0.398_942_280_401_432_7, power);
        let mut sum = r.with("math.multiply", q, 1.330_274_429);
        for c in [-1.821_255_978, 1.781_477_937, -0.356_563_782, 0.319_381_530] {
            sum = r.from("math.add", c, sum);
            sum = r.mul(q, sum);
        }
        let tail = r.mul(weight, sum);
        let zero = r.number(F64, 0.0);
        let above = r.two("core.greater", d, zero);
        let other = r.from("math.subtract", 1.0, tail);
        let (Presence::When(mask), Datum::Num(on), Datum::Num(off)) = (above.presence, other.datum, tail.datum) else {
            panic!("a mask and numbers")
        };
        Cell::num(r.tape.select(mask, on, off))
    };
    let (n1, n2) = (cdf(d1), cdf(d2));
    let gain = r.mul(s, n1);
    let discount = r.from("math.multiply", -0.02, t);
    let discount = r.op("math.exp", &[discount]);
    let cost = r.mul(k, discount);
    let cost = r.mul(cost, n2);
    let call = r.two("math.subtract", gain, cost);
    r.output(&[call])
}

/// Returns an array of type `ty` with random numbers between `low` and `high`. In an array of bits, a bit is set where
/// such a number is below 0.7.
fn array(random: &mut fastrand::Rng, ty: MachineType, [low, high]: [f64; 2]) -> Vec<u8> {
    let mut number = || low + (high - low) * random.f64();
    match ty {
        MachineType::Flag => {
            (0..ROWS.div_ceil(64) * 8).map(|_| (0..8).map(|bit| u8::from(number() < 0.7) << bit).sum()).collect()
        }
        F32 => (0..ROWS).flat_map(|_| (number() as f32).to_ne_bytes()).collect(),
        _ => (0..ROWS).flat_map(|_| number().to_ne_bytes()).collect(),
    }
}

fn bytes(ty: MachineType, rows: usize) -> usize {
    match ty {
        MachineType::Flag => rows / 8,
        MachineType::I32 | F32 => 4 * rows,
        _ => 8 * rows,
    }
}

/// Computes the workload B1 by hand-written code with vectors of 512 bits, to compare the compiled loops with.
///
/// # Safety
/// FEATURE: the processor has AVX-512 F. PORTS: the arrays have all of the rows.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
unsafe fn product_by_hand(arrays: &[*mut u8]) {
    use std::arch::x86_64::{_mm512_add_pd, _mm512_loadu_pd, _mm512_mul_pd, _mm512_storeu_pd};
    let [a, b, c, y] = [0, 1, 2, 3].map(|number| arrays[number].cast::<f64>());
    for row in (0..ROWS).step_by(8) {
        // SAFETY: PORTS: 8 rows from here on are there.
        unsafe {
            let product = _mm512_mul_pd(_mm512_loadu_pd(a.add(row)), _mm512_loadu_pd(b.add(row)));
            _mm512_storeu_pd(y.add(row), _mm512_add_pd(product, _mm512_loadu_pd(c.add(row))));
        }
    }
}

/// Runs a compiled loop on all rows, in calls of at most `STRIP` rows.
fn play(played: &WideLoop, arrays: &[*mut u8], types: &[MachineType]) {
    let mut ports = arrays.to_vec();
    for first in (0..ROWS).step_by(STRIP) {
        for ((port, array), ty) in ports.iter_mut().zip(arrays).zip(types) {
            *port = array.wrapping_add(bytes(*ty, first));
        }
        // SAFETY: PORTS: the arrays have all of the rows, and whole words of bits.
        let failed = unsafe { played.play(&ports, STRIP.min(ROWS - first), &mut Context::new()) };
        assert!(!black_box(failed));
    }
}

#[expect(clippy::print_stdout, reason = "what it is for")]
fn list(code: &[u8]) {
    for instruction in &mut Decoder::new(64, code, DecoderOptions::NONE) {
        let mut text = String::new();
        IntelFormatter::new().format(&instruction, &mut text);
        println!("{:6x} {text}", instruction.ip());
    }
}

fn least(times: usize, mut f: impl FnMut()) -> f64 {
    (0..times)
        .map(|_| {
            let start = Instant::now();
            f();
            start.elapsed().as_secs_f64()
        })
        .fold(f64::INFINITY, f64::min)
}

/// A workload: its name, its tape, the bounds of its inputs, the value that replaces a tenth of the first number's
/// rows, if any, and the nanoseconds per row of hand-written code on the processor that the budgets were measured on.
type Work = (&'static str, Tape, [f64; 2], Option<f64>, f64);

#[expect(clippy::print_stdout, reason = "what it is for")]
fn main() {
    let only = std::env::args().nth(1);
    let lists = std::env::args().nth(2).is_some_and(|word| word == "list");
    let works: [Work; 8] = [
        ("B1", product(), [-1.0, 1.0], None, 0.29),
        ("B2", quadratic(), [0.5, 2.0], None, 0.53),
        ("B3", scoring(), [-2.0, 6.0], None, 1.4),
        ("B4 f32", sigmoid(F32), [-8.0, 8.0], None, 0.12),
        ("B4 f64", sigmoid(F64), [-8.0, 8.0], None, 0.38),
        ("B5", black_scholes(), [0.5, 2.0], None, 3.3),
        ("B3 10 % rare", scoring(), [-2.0, 6.0], Some(f64::INFINITY), 1.4),
        ("B5 10 % rare", black_scholes(), [0.5, 2.0], Some(0.0), 3.3),
    ];
    for (name, tape, bounds, special, limit) in works {
        if only.as_ref().is_some_and(|only| !name.starts_with(only.as_str())) {
            continue;
        }
        let mut random = fastrand::Rng::with_seed(1);
        let mut types: Vec<MachineType> = tape.inputs().map(|(_, ty)| ty).collect();
        let ports = vec![Port::Rows; types.len()];
        types.extend(tape.outputs().iter().map(|output| match output {
            Output::Number(val) => tape.ty(*val),
            Output::Mask(_) => MachineType::Flag,
        }));
        let mut arrays: Vec<Vec<u8>> = types.iter().map(|ty| array(&mut random, *ty, bounds)).collect();
        if let Some(special) = special {
            let (at, size) = if types[0] == F64 { (0, 8) } else { (1, 4) };
            for row in (0..ROWS).filter(|_| random.u8(..10) == 0) {
                let bytes =
                    if size == 8 { special.to_ne_bytes().to_vec() } else { (special as f32).to_ne_bytes().to_vec() };
                arrays[at][row * size..][..size].copy_from_slice(&bytes);
            }
        }
        let pointers: Vec<*mut u8> = arrays.iter_mut().map(|array| array.as_mut_ptr()).collect();
        #[cfg(target_arch = "x86_64")]
        if name == "B1" && Isa::Avx512.is_supported() {
            // SAFETY: FEATURE, PORTS: as asked for and made just above.
            let row = least(200, || unsafe { product_by_hand(&pointers) }) * 1e9 / ROWS as f64;
            println!("{name:12} by hand: {row:.3} ns a row");
        }
        for isa in Isa::ALL.into_iter().filter(|isa| isa.is_supported()) {
            let make = || compile(&tape, &ports, &[], isa, &Limits::default()).expect("compiles");
            let played = make();
            if lists {
                list(played.code());
            }
            let row = least(200, || play(&played, &pointers, &types)) * 1e9 / ROWS as f64;
            let call = |rows: usize| {
                let mut context = Context::new();
                1e9 * least(2000, || {
                    // SAFETY: PORTS: as above.
                    black_box(unsafe { played.play(&pointers, rows, &mut context) });
                })
            };
            // The loops are kept, so that the time to free their pages is not measured.
            let mut kept = Vec::new();
            let made = least(500, || kept.push(black_box(make()))) * 1e6;
            println!(
                "{name:12} {isa:?}: {row:.3} ns a row (limit {limit}), {:.0} ns for 16 rows, {:.0} for 13, {made:.1} us to make, {} bytes",
                call(16),
                call(13),
                played.code().len(),
            );
        }
    }
}
