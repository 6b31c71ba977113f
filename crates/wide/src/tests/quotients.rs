//! Tests of divisions by a divisor that all rows share, against true divisions: divisors and dividends of all kinds, with
//! quotients as near as possible to the middle between two floats.

use super::{random, sets};
use crate::{Limits, WideLoop, compile};
use cembra_runtime::{Context, MachineType};
use cembra_tape::{Bin, Output, Port, Tape, TapeLoop};

/// The number of rows in the longest vector.
const VECTOR: usize = 16;

/// A float type, whose numbers are given by their bits.
#[derive(Clone, Copy)]
struct Float {
    ty: MachineType,
    bits: u32,
    /// The number of bits in a mantissa, including the leading one.
    digits: u32,
    /// The largest binary exponent.
    most: i32,
    /// Two exponents of two. Divisions by a divisor from the first power to below the second are computed as
    /// multiplications.
    range: [i32; 2],
    divide: fn(u64, u64) -> u64,
}

const DOUBLE: Float = Float {
    ty: MachineType::F64,
    bits: 64,
    digits: 53,
    most: 1023,
    range: [-459, 1022],
    divide: |x, s| (f64::from_bits(x) / f64::from_bits(s)).to_bits(),
};

const SINGLE: Float = Float {
    ty: MachineType::F32,
    bits: 32,
    digits: 24,
    most: 127,
    range: [-40, 126],
    divide: |x, s| (f32::from_bits(x as u32) / f32::from_bits(s as u32)).to_bits().into(),
};

impl Float {
    fn sign(self) -> u64 {
        1 << (self.bits - 1)
    }

    /// The binary exponent of a number, whatever its sign.
    fn power(self, bits: u64) -> i32 {
        ((bits & (self.sign() - 1)) >> (self.digits - 1)) as i32 - self.most
    }

    fn any(self, random: &mut fastrand::Rng) -> u64 {
        random.u64(..) & (self.sign() | (self.sign() - 1))
    }

    /// The number with this exponent and these mantissa bits, without the leading one. Exponents below the least normal give
    /// subnormal numbers.
    fn number(self, power: i32, mantissa: u64) -> u64 {
        let biased = u64::from((power + self.most).max(0).cast_unsigned()) << (self.digits - 1);
        biased | mantissa & ((1 << (self.digits - 1)) - 1)
    }

    /// Zeros, infinities, NaN, the ends of the subnormal and the normal numbers, and one with its neighbours; of both signs.
    fn special(self) -> Vec<u64> {
        let [normal, one, infinity] = [1 - self.most, 0, self.most + 1].map(|power| self.number(power, 0));
        let positive = [0, 1, 2, 3, 5, normal - 1, normal, normal + 1, one - 1, one, one + 1, infinity - 1, infinity];
        let nan = infinity + 1;
        positive.into_iter().chain([nan]).flat_map(|bits| [bits, bits | self.sign()]).collect()
    }

    /// Divisors besides the special ones: around the ends of the range, and with few or all digits.
    fn divisors(self) -> Vec<u64> {
        let all = u64::MAX;
        let ends = self.range.into_iter().flat_map(|power| {
            let end = self.number(power, 0);
            [end - 1, end, end + 1, self.number(power, all), self.number(power - 1, all)]
        });
        let few = [-3, -1, 0, 1, 2, 9]
            .into_iter()
            .flat_map(|power| [0, 1, 1 << (self.digits - 2), all, all - 1].map(|m| self.number(power, m)));
        let more: Vec<u64> = ends.chain(few).collect();
        let negative = more.iter().map(|bits| bits | self.sign());
        self.special().into_iter().chain(negative).chain(more.iter().copied()).collect()
    }

    /// Dividends for one divisor. A dividend that requires a division makes its whole vector be divided, so some vectors have
    /// several of them, and many have none.
    fn dividends(self, divisor: u64, count: usize, random: &mut fastrand::Rng) -> Vec<u64> {
        let (mut found, power) = (Vec::with_capacity(count + VECTOR), self.power(divisor));
        // Products are moderate if their binary exponents are between about `-end` and `end`.
        let end = (self.most + 1) / 2;
        let [zero, nan] = [0, self.number(self.most + 1, 1)];
        while found.len() < count {
            let (kind, within) = (random.u8(..8), random.i32(4..6));
            for _ in 0..VECTOR {
                let (any, mantissa) = (random.u8(..16), random.u64(..));
                let bits = match (kind, any) {
                    (0, ..4) => self.any(random),
                    (0, _) => self.special()[random.usize(..28)],
                    // Around the ends, and near them.
                    (1, _) => self.near(power + [-end, end][random.usize(..2)], 4, mantissa, random),
                    (2, _) => self.near(power + [4 - end, end - 4][random.usize(..2)], 3, mantissa, random),
                    (3, _) => self.between(divisor, power + within - end, 3, random),
                    (4, _) => [zero, nan][random.usize(..2)],
                    (_, 0) => zero,
                    (_, 1) => nan,
                    (_, 2) => self.near(power, 20, mantissa, random),
                    // Few digits of both: quotients that are numbers.
                    (_, 3 | 4) => self.near(power, 3, divisor.wrapping_mul(random.u64(..16)), random),
                    (_, _) => self.between(divisor, power, 9, random),
                };
                found.push(if random.bool() { bits ^ self.sign() } else { bits });
            }
        }
        found
    }

    /// A number with a power near `power`.
    fn near(self, power: i32, by: i32, mantissa: u64, random: &mut fastrand::Rng) -> u64 {
        let power = power + random.i32(-by..=by);
        self.number(power.clamp(-self.most, self.most), mantissa)
    }

    /// A number whose quotient is as near to the middle between two floats as the divisor's odd mantissa allows: the product of
    /// the mantissa and the digits of such a middle exceeds a power of two times the number by a small number.
    fn between(self, divisor: u64, power: i32, by: i32, random: &mut fastrand::Rng) -> u64 {
        let leading = 1_u64 << (self.digits - 1);
        let odd = u128::from(divisor & (leading - 1) | leading | 1);
        // Each step doubles the number of correct digits.
        let mut inverse = 1_u128;
        for _ in 0..6 {
            inverse = inverse.wrapping_mul(2_u128.wrapping_sub(odd.wrapping_mul(inverse)));
        }
        let modulus = 1_u128 << (self.digits + 1);
        let distance = u128::from(random.u64(0..16)) * 2 + 1;
        let distance = if random.bool() { distance } else { modulus - distance };
        let middle = distance.wrapping_mul(inverse) % modulus;
        let dividend = (odd * middle).saturating_sub(distance % modulus) >> (self.digits + 1);
        self.near(power, by, dividend as u64, random)
    }

    fn is_nan(self, bits: u64) -> bool {
        bits & (self.sign() - 1) > self.number(self.most + 1, 0)
    }
}

/// The bytes of numbers in memory.
fn stored(float: Float, numbers: &[u64]) -> Vec<u8> {
    let size = float.bits as usize / 8;
    numbers.iter().flat_map(|bits| bits.to_le_bytes().into_iter().take(size)).collect()
}

fn compiled(tape: &mut Tape, output: cembra_tape::Val, ports: &[Port]) -> Vec<WideLoop> {
    tape.output(Output::Number(output));
    tape.finish();
    sets().map(|isa| compile(tape, ports, &[], isa, &Limits::default()).expect("compiles")).collect()
}

/// Divides `dividends` by a compiled loop, and compares with divisions. `at` has the divisor if it is an input, and is
/// empty if it is a constant.
fn check(float: Float, played: &WideLoop, divisor: u64, at: &[u64], dividends: &[u64]) {
    let (mut shared, mut rows) = (stored(float, at), stored(float, dividends));
    let mut quotients = vec![0_u8; rows.len()];
    let mut ports = vec![rows.as_mut_ptr()];
    ports.extend((!at.is_empty()).then_some(shared.as_mut_ptr()));
    ports.push(quotients.as_mut_ptr());
    // SAFETY: PORTS: the rows, the divisor if it is an input, and as many quotients.
    let failed = unsafe { played.play(&ports, dividends.len(), &mut Context::new()) };
    assert!(!failed);
    let size = float.bits as usize / 8;
    for (dividend, found) in dividends.iter().zip(quotients.chunks_exact(size)) {
        let mut bytes = [0; 8];
        bytes[..size].copy_from_slice(found);
        let (found, expected) = (u64::from_le_bytes(bytes), (float.divide)(*dividend, divisor));
        let same = found == expected || float.is_nan(found) && float.is_nan(expected);
        assert!(same, "{:?}: {dividend:x} / {divisor:x} gives {found:x}, not {expected:x}", float.ty);
    }
}

/// Checks `divisors` divisors of each type with `rows` dividends each.
fn check_many(divisors: usize, rows: usize, seed: u64) {
    for float in [DOUBLE, SINGLE] {
        let mut random = random(seed);
        let mut tape = Tape::new();
        let (x, s) = (tape.input(float.ty), tape.input(float.ty));
        let quotient = tape.bin(Bin::Div, x, s);
        let loops = compiled(&mut tape, quotient, &[Port::Rows, Port::Shared]);
        let mut all = float.divisors();
        while all.len() < divisors {
            let mantissa = random.u64(..);
            all.push(match random.u8(..8) {
                0 => float.any(&mut random),
                1 => float.number(random.i32(-float.most..=float.most), mantissa),
                2 | 3 => {
                    let end = float.range[random.usize(..2)];
                    float.near(end, 1, mantissa | u64::from(random.bool()), &mut random)
                }
                _ => float.near(0, 8, mantissa | 1, &mut random),
            });
        }
        for divisor in all {
            let dividends = float.dividends(divisor, rows, &mut random);
            for played in &loops {
                check(float, played, divisor, &[divisor], &dividends);
            }
        }
    }
}

#[test]
fn by_what_all_rows_share() {
    check_many(2_000, 640, 1);
}

/// Compares a thousand million quotients: `cargo test --release -p cembra-wide -- --ignored`.
#[test]
#[ignore = "takes minutes"]
fn by_what_all_rows_share_at_length() {
    check_many(100_000, 5_000, 2);
}

#[test]
fn by_constants() {
    for float in [DOUBLE, SINGLE] {
        let mut random = random(3);
        let mut all = float.divisors();
        all.extend((0..100).map(|_| float.number(random.i32(-8..8), random.u64(..))));
        for divisor in all {
            let mut tape = Tape::new();
            let x = tape.input(float.ty);
            let s = tape.konst(float.ty, divisor);
            let quotient = tape.bin(Bin::Div, x, s);
            let dividends = float.dividends(divisor, 500, &mut random);
            for played in compiled(&mut tape, quotient, &[Port::Rows]) {
                check(float, &played, divisor, &[], &dividends);
            }
        }
    }
}

/// Rows that require a division are among others that do not, also in stretches that a jump may skip, with more values
/// than registers.
#[test]
fn many_in_one_loop() {
    for (ty, other) in [
        (MachineType::F64, MachineType::F64),
        (MachineType::F32, MachineType::F32),
        (MachineType::F32, MachineType::F64),
    ] {
        let mut tape = Tape::new();
        let given = tape.input_mask();
        let rows: Vec<_> = (0..6).map(|_| tape.input(ty)).collect();
        let shared: Vec<_> = (0..12).map(|_| tape.input(ty)).collect();
        let beside = tape.input(other);
        let zero = tape.konst(ty, 0);
        let mut outputs = Vec::new();
        for (number, s) in shared.iter().enumerate() {
            let x = rows[number % rows.len()];
            let sum = tape.bin(Bin::Add, x, rows[0]);
            let quotient = tape.bin(Bin::Div, sum, *s);
            let again = tape.bin(Bin::Div, x, *s);
            // In the first quotient both operands are shared; in the second the dividend is a quotient.
            let of_shared = tape.bin(Bin::Div, shared[0], *s);
            let of_quotient = tape.bin(Bin::Div, quotient, *s);
            outputs.extend([quotient, again, of_shared, of_quotient]);
        }
        tape.begin(given);
        let three = tape.konst_like(zero, 3.0);
        let made: Vec<_> = outputs.iter().map(|val| tape.bin(Bin::Div, *val, three)).collect();
        tape.end();
        for val in made {
            let chosen = tape.select(given, val, zero);
            tape.output(Output::Number(chosen));
        }
        outputs.iter().for_each(|val| tape.output(Output::Number(*val)));
        tape.output(Output::Number(beside));
        tape.finish();
        assert_eq!(tape.check_stretches(), Ok(()));
        let mut ports = vec![Port::Rows; 7];
        ports.extend([Port::Shared; 12]);
        ports.push(Port::Rows);
        for seed in 0..6 {
            let mut columns = super::columns(&tape, 200, seed);
            columns[0] = (0..200).map(|row| u64::from(row % 64 > 32 && row % 3 == 0)).collect();
            if seed < 3 {
                // Divisors for which products are right.
                let mut random = random(seed);
                let number = |random: &mut fastrand::Rng| random.f64() * 9.0 + 0.5;
                for column in &mut columns[7..19] {
                    let number = number(&mut random);
                    column[0] =
                        if ty == MachineType::F64 { number.to_bits() } else { (number as f32).to_bits().into() };
                }
            }
            super::check("quotients", &tape, &ports, &columns, &[200, 64, 16, 3]);
        }
    }
}

/// The nearest integer with at most `bits` significant bits; the even one if two are nearest.
fn rounded(number: i128, bits: u32) -> i128 {
    let size = number.unsigned_abs();
    let more = (128 - size.leading_zeros()).saturating_sub(bits);
    let (kept, rest) = (size >> more, size & ((1 << more) - 1));
    let half = (1_u128 << more) / 2;
    let up = more > 0 && (rest > half || rest == half && kept % 2 == 1);
    (((kept + u128::from(up)) << more) as i128) * number.signum()
}

/// Returns twice the quotient, plus one if there is a remainder.
fn quotient(a: i128, b: i128) -> i128 {
    2 * (a / b) + i128::from(a % b != 0)
}

/// Does the steps of the method on integers, for all mantissas with few bits. This confirms the proof in
/// `docs/wide.md`.
#[test]
fn all_numbers_of_few_bits() {
    let (mut far, mut inexact) = (0, 0);
    for bits in 2..=9 {
        let mantissas = 1_i128 << (bits - 1)..1 << bits;
        // The binary places of the inverse.
        let places = 2 * bits + 5;
        for (s, x) in mantissas.clone().flat_map(|s| mantissas.clone().map(move |x| (s, x))) {
            let inverse = rounded(quotient(1 << (places - 1), s), bits);
            let near = rounded(x * inverse, bits);
            let exact = s * near - (x << places);
            let left = rounded(exact, bits);
            let mended = rounded((near << places) - left * inverse, bits);
            let divided = quotient(x << (2 * places), s);
            let expected = rounded(divided, bits);
            assert_eq!(2 * mended, expected, "{x} / {s} of {bits} bits");
            far += i32::from((near << (places + 1)).abs_diff(divided) > 1 << (128 - expected.leading_zeros() - bits));
            inexact += i32::from(left != exact);
        }
    }
    assert!(
        far > 0 && inexact > 0,
        "products further than one number away, and what is left of them with a bit too many"
    );
}
