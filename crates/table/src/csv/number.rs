//! Fast parsing of numbers in the most frequent spellings, directly from the bytes of a CSV block. Any other spelling, and numbers that this fast
//! method cannot convert exactly, are parsed by the module `scalar`. Both methods give the same value.

/// The powers of ten that are exact as an f64, and those that are exact as an f32.
const POWERS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20,
    1e21, 1e22,
];
const SMALL_POWERS: [f32; 11] = [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10];

/// Up to this bound every integer is exact as an f64, and as an f32.
const EXACT: u64 = 1 << 53;
const SMALL_EXACT: u64 = 1 << 24;

/// The most digits that always fit into 64 bits.
const MOST_DIGITS: usize = 19;

/// A decimal number: `digits` divided by ten to the power `scale`, with its sign.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Decimal {
    negative: bool,
    digits: u64,
    scale: usize,
    /// The index of the byte after the number.
    end: usize,
}

/// Parses the number that starts at the index `at` of `bytes` and ends at `delimiter` or a line end. The number must consist of digits, with an
/// optional sign before them and an optional point. `None` if the field has any other text or too many digits.
#[inline(always)]
pub(crate) fn decimal(bytes: &[u8], at: usize, delimiter: u8) -> Option<Decimal> {
    // The sign has no branch, because it is unpredictable in many columns.
    let first = bytes.get(at).copied().unwrap_or(b'\n');
    let negative = first == b'-';
    let mut at = at + usize::from(negative | (first == b'+'));
    let mut digits = 0_u64;
    let whole = run(bytes, &mut at, &mut digits);
    let mut scale = 0;
    if bytes.get(at) == Some(&b'.') {
        at += 1;
        let point = at;
        run(bytes, &mut at, &mut digits);
        scale = at - point;
    }
    if whole + scale == 0 || whole + scale > MOST_DIGITS {
        return None;
    }
    match bytes.get(at) {
        None | Some(b'\n' | b'\r') => {}
        Some(byte) if *byte == delimiter => {}
        Some(_) => return None,
    }
    Some(Decimal { negative, digits, scale, end: at })
}

/// Appends a run of digits to `digits`, moves `at` after it, and returns its length.
#[inline(always)]
fn run(bytes: &[u8], at: &mut usize, digits: &mut u64) -> usize {
    let start = *at;
    while let Some(byte) = bytes.get(*at) {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            break;
        }
        // The result is not used if there are more digits than fit.
        *digits = digits.wrapping_mul(10).wrapping_add(u64::from(digit));
        *at += 1;
    }
    *at - start
}

impl Decimal {
    /// The index of the byte after the number, where its field ends.
    #[inline(always)]
    pub(crate) fn end(self) -> usize {
        self.end
    }

    /// Returns true if this number, spelled as `text`, would be written with the same digits again: it has no plus and no leading zero, is not
    /// `-0`, and has a fraction or at most `most` digits. If the result is false, digits may be lost.
    #[inline(always)]
    pub(crate) fn is_usual(self, text: &[u8], most: usize) -> bool {
        let sign = usize::from(self.negative);
        // The length of the whole part, with the point if there is a fraction.
        let whole = text.len() - sign - self.scale;
        match text.get(sign) {
            Some(b'+') | None => false,
            Some(b'0') if self.scale > 0 => whole == 2,
            Some(b'0') => whole == 1 && !self.negative,
            Some(_) => self.scale > 0 || whole <= most,
        }
    }

    /// The number as the nearest f64, if one division of exact f64s computes it: only the quotient is rounded. `None` if the digits or the power of
    /// ten are not exact.
    #[inline(always)]
    pub(crate) fn to_f64(self) -> Option<f64> {
        let power = POWERS.get(self.scale).filter(|_| self.digits <= EXACT)?;
        let magnitude = self.digits as f64 / power;
        Some(f64::from_bits(magnitude.to_bits() | u64::from(self.negative) << 63))
    }

    /// The number as the nearest f32, if one division of exact f32s computes it: only the quotient is rounded. `None` if the digits or the power of
    /// ten are not exact.
    #[inline(always)]
    pub(crate) fn to_f32(self) -> Option<f32> {
        let power = SMALL_POWERS.get(self.scale).filter(|_| self.digits <= SMALL_EXACT)?;
        let magnitude = self.digits as f32 / power;
        Some(f32::from_bits(magnitude.to_bits() | u32::from(self.negative) << 31))
    }

    /// The number as an `i64`; `None` if it has a fraction or its digits exceed an `i64`.
    #[inline(always)]
    pub(crate) fn to_i64(self) -> Option<i64> {
        let magnitude = i64::try_from(self.digits).ok().filter(|_| self.scale == 0)?;
        Some(if self.negative { -magnitude } else { magnitude })
    }

    /// The number as an `i32`; `None` if it has a fraction or does not fit.
    #[inline(always)]
    pub(crate) fn to_i32(self) -> Option<i32> {
        self.to_i64().and_then(|wide| i32::try_from(wide).ok())
    }

    /// The number as a `u64`; `None` if it has a fraction or a minus sign.
    #[inline(always)]
    pub(crate) fn to_u64(self) -> Option<u64> {
        (self.scale == 0 && !self.negative).then_some(self.digits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scalar;
    use cembra_runtime::Scalar;
    use cembra_value::ScalarValue;

    /// Compares the results of both ways of parsing.
    fn check(text: &str) {
        let field = format!("x,{text},y");
        let Some(found) = decimal(field.as_bytes(), 2, b',') else { return };
        assert_eq!(found.end(), 2 + text.len(), "{text}");
        let read = |scalar, found: Option<ScalarValue>| {
            let Some(found) = found else { return };
            let expected = scalar::parse(scalar, text).unwrap_or_else(|| panic!("{text} as {scalar}"));
            assert!(found.same(&expected), "{text}: {found} for {expected}");
        };
        read(Scalar::Float64, found.to_f64().map(ScalarValue::Float64));
        read(Scalar::Float32, found.to_f32().map(ScalarValue::Float32));
        read(Scalar::Int64, found.to_i64().map(ScalarValue::Int64));
        read(Scalar::Int32, found.to_i32().map(ScalarValue::Int32));
        read(Scalar::UInt64, found.to_u64().map(ScalarValue::UInt64));
    }

    #[test]
    fn common_spellings_are_read_as_all_are() {
        for text in [
            "0",
            "-0",
            "+7",
            "007",
            "1.",
            ".5",
            "-.5",
            "123456789.123456789",
            "9007199254740993",
            "9007199254740992.0",
            "0.30000000000000004",
            "1234567890123456789",
            "9223372036854775807",
            "9223372036854775808",
            "2147483648",
            "-2147483648",
            "16777217",
            "0.1",
            "1.000000059604644775",
            "33554435.5",
            "9999999999999999999",
            "1e5",
            "",
            "-",
            ".",
        ] {
            check(text);
        }
        let mut random = fastrand::Rng::with_seed(7);
        for _ in 0..200_000 {
            let digits = random.u64(..) >> random.u32(..64);
            let text = digits.to_string();
            let point = random.usize(..=text.len());
            check(&text);
            check(&format!("-{}.{}", &text[..point], &text[point..]));
        }
        let long = "12345678901234567890";
        assert_eq!(decimal(long.as_bytes(), 0, b','), None, "more digits than are read here");
        assert!(decimal(b"9007199254740993", 0, b',').expect("digits").to_f64().is_none(), "no float is the number");
        assert_eq!(decimal(b"1 ", 0, b','), None);
    }
}
