//! Formats numbers as text: the shortest digits that read back as the same number, laid out as in Arolla and JavaScript
//! (`1.1`, `1e300`).

use super::made::StackText;
use std::fmt::{LowerExp, Write};

/// A buffer with room for the shortest text of any number. The longest such text is a sign, `0.00000` and 17 digits.
pub(super) type Shortest = StackText<40>;

/// The decimal exponents of numbers that are written without an exponent.
const PLAIN: std::ops::Range<i32> = -6..21;

/// Returns the shortest text that reads back as `number`: `1.1`, `-0`, `1e300`, `nan`, `-inf`.
pub(super) fn shortest<F: LowerExp + Into<f64> + Copy>(number: F) -> Shortest {
    let mut text = Shortest::new();
    // The buffer has room for every text, so writing never fails.
    let _ = write_shortest(&mut text, number);
    text
}

fn write_shortest<F: LowerExp + Into<f64> + Copy>(out: &mut Shortest, number: F) -> std::fmt::Result {
    let value: f64 = number.into();
    if !value.is_finite() {
        return out.write_str(if value.is_nan() {
            "nan"
        } else if value < 0.0 {
            "-inf"
        } else {
            "inf"
        });
    }
    // The standard library finds the digits: `-1.2345e-7`.
    let mut scientific = StackText::<40>::new();
    write!(scientific, "{number:e}")?;
    let scientific = scientific.as_str();
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if !PLAIN.contains(&exponent) {
        return out.write_str(scientific);
    }
    let (sign, mantissa) = mantissa.strip_prefix('-').map_or(("", mantissa), |mantissa| ("-", mantissa));
    let (first, rest) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    out.write_str(sign)?;
    match usize::try_from(exponent) {
        Ok(exponent) if exponent < rest.len() => {
            let (whole, part) = rest.split_at(exponent);
            write!(out, "{first}{whole}.{part}")
        }
        Ok(exponent) => write!(out, "{first}{rest}{:0<1$}", "", exponent - rest.len()),
        Err(_) => write!(out, "0.{:0<1$}{first}{rest}", "", exponent.unsigned_abs() as usize - 1),
    }
}

#[cfg(test)]
mod tests {
    use super::shortest;

    #[test]
    fn the_exponent_appears_at_both_ends_of_the_plain_range() {
        for (number, expected) in [
            (0.0, "0"),
            (-0.0, "-0"),
            (1.0, "1"),
            (1.1, "1.1"),
            (-123.456, "-123.456"),
            (100.0, "100"),
            (1e10, "10000000000"),
            (9007199254740993.0, "9007199254740992"),
            (123456789012345680000.0, "123456789012345680000"),
            (9.99e20, "999000000000000000000"),
            (1e20, "100000000000000000000"),
            (1e21, "1e21"),
            (1.5e21, "1.5e21"),
            (1e300, "1e300"),
            (-1.7976931348623157e308, "-1.7976931348623157e308"),
            (1e-6, "0.000001"),
            (1.5e-6, "0.0000015"),
            (-1.2345678901234567e-6, "-0.0000012345678901234567"),
            (9.9e-7, "9.9e-7"),
            (1e-7, "1e-7"),
            (5e-324, "5e-324"),
            (0.1, "0.1"),
            (0.5, "0.5"),
            (f64::NAN, "nan"),
            (-f64::NAN, "nan"),
            (f64::INFINITY, "inf"),
            (f64::NEG_INFINITY, "-inf"),
        ] {
            assert_eq!(shortest(number).as_str(), expected);
        }
    }

    #[test]
    fn single_floats_have_their_own_shortest_digits() {
        for (number, expected) in [
            (0.1_f32, "0.1"),
            (16777216.0, "16777216"),
            (2147483648.0, "2147483600"),
            (3.4028235e38, "3.4028235e38"),
            (1e-45, "1e-45"),
            (0.000001, "0.000001"),
            (9.5e-7, "9.5e-7"),
        ] {
            assert_eq!(shortest(number).as_str(), expected);
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "would take an hour")]
    fn what_is_written_reads_back_as_the_same_number() {
        let mut bits = 0x9E37_79B9_7F4A_7C15_u64;
        for _ in 0..20_000 {
            bits = bits.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let (double, single) = (f64::from_bits(bits), f32::from_bits((bits >> 32) as u32));
            // Also exponents near the limits of the plain range.
            let near = (double.to_bits() >> 12) as f64 * 10_f64.powi((bits % 40) as i32 - 30);
            for number in [double, near] {
                let text = shortest(number);
                assert!(number.is_nan() || text.as_str().parse() == Ok(number), "{number:e} {}", text.as_str());
            }
            let text = shortest(single);
            assert!(single.is_nan() || text.as_str().parse() == Ok(single), "{single:e} {}", text.as_str());
        }
    }
}
