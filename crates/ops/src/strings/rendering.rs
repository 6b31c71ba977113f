//! Prints single values by the fields of `printf` formats, such as `%8.3f`, as Abseil and C do. Widths and precisions
//! count characters in a format of type TEXT, and bytes in a format of type BYTES.

use super::Reason;
use super::fields::Field;
use super::made::{ArenaBytes, StackText};
use crate::strings::limits;
use std::fmt::Write;

/// The unit of widths and precisions: characters or bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Unit {
    Byte,
    Character,
}

impl Unit {
    /// True if a unit begins with this byte. A character of UTF-8 begins with any byte but `10xxxxxx`.
    fn begins_with(self, byte: u8) -> bool {
        self == Unit::Byte || byte & 0xC0 != 0x80
    }

    /// The number of units of a string.
    fn count(self, string: &[u8]) -> usize {
        string.iter().filter(|byte| self.begins_with(**byte)).count()
    }

    /// The first `most` units of a string.
    fn cut(self, string: &[u8], most: usize) -> &[u8] {
        let mut begins = string.iter().enumerate().filter(|(_, byte)| self.begins_with(**byte));
        &string[..begins.nth(most).map_or(string.len(), |(at, _)| at)]
    }
}

/// A field of a format with its width and precision as numbers, ready to print a value.
#[derive(Clone, Copy, Debug)]
pub(super) struct ResolvedField {
    /// The flags and the conversion of the field.
    field: Field,
    unit: Unit,
    /// The least width of the result in units (characters or bytes).
    width: usize,
    precision: Option<usize>,
}

/// A value that a field of a format prints.
#[derive(Clone, Copy, Debug)]
pub(super) enum PrintedValue<'v> {
    /// An integer, and the integer's bits in the width of its type, zero-extended to 64 bits.
    Integer(i64, u64),
    Float(f64),
    Boolean(bool),
    String(&'v [u8]),
}

/// A buffer for the digits of any number in any precision.
type Digits = StackText<{ limits::FIELD_WIDTH + 400 }>;

/// A value as text before it is padded to the field's width.
#[derive(Clone, Copy)]
struct Body<'b> {
    /// A sign, or a prefix such as `0x`.
    sign: &'static str,
    /// The number of zeros between the sign and the text.
    zeros: usize,
    text: &'b [u8],
    /// True if zeros may pad the text to the field's width, as the flag `0` asks for.
    may_fill: bool,
}

impl<'b> Body<'b> {
    fn plain(text: &'b [u8]) -> Self {
        Body { sign: "", zeros: 0, text, may_fill: false }
    }
}

/// The error message for a field whose argument is of another kind, such as `%d` for a string.
const MISMATCH: &str =
    "a field of the format does not fit its argument: `d` is for integers, `f` for numbers, `s` for strings";

fn mismatch() -> Reason {
    Reason(MISMATCH)
}

impl ResolvedField {
    pub(super) const fn new(field: Field, unit: Unit, width: usize, precision: Option<usize>) -> Self {
        ResolvedField { field, unit, width, precision }
    }

    /// The first characters (or bytes) of a string, as many as the precision says.
    fn cut(self, string: &[u8]) -> &[u8] {
        self.precision.map_or(string, |most| self.unit.cut(string, most))
    }

    /// Checks that `value` is of a kind that the field can print.
    ///
    /// # Errors
    /// If the value is of another kind.
    pub(super) fn check(self, value: PrintedValue<'_>) -> Result<(), Reason> {
        self.body(value, &mut Digits::new()).map(|_| ())
    }

    fn sign(self, negative: bool) -> &'static str {
        match self.field {
            _ if negative => "-",
            Field { plus: true, .. } => "+",
            Field { space: true, .. } => " ",
            _ => "",
        }
    }

    fn body<'b>(self, value: PrintedValue<'b>, digits: &'b mut Digits) -> Result<Body<'b>, Reason> {
        // The buffer has room for all digits, so writing never fails.
        match (value, self.field.conversion) {
            (PrintedValue::String(string), b's' | b'v') => Ok(Body::plain(self.cut(string))),
            (PrintedValue::Boolean(value), b'v') => Ok(Body::plain(if value { b"true" } else { b"false" })),
            (PrintedValue::Boolean(_) | PrintedValue::Integer(..), b's') | (PrintedValue::String(_), _) => {
                Err(mismatch())
            }
            (PrintedValue::Boolean(value), _) => self.body(PrintedValue::Integer(value.into(), value.into()), digits),
            (PrintedValue::Integer(_, bits), b'c') if self.field.wide => {
                let char = char::from_u32(bits as u32)
                    .ok_or(Reason("the argument of a field `%lc` must be the number of a Unicode character"))?;
                let _ = digits.write_char(char);
                Ok(Body::plain(self.cut(digits.as_bytes())))
            }
            (PrintedValue::Integer(_, bits), b'c') => {
                digits.push_byte(bits as u8);
                Ok(Body::plain(digits.as_bytes()))
            }
            (PrintedValue::Integer(value, _), conversion) if is_of_floats(conversion) => {
                Ok(self.float(value as f64, conversion, digits))
            }
            (PrintedValue::Integer(value, bits), conversion) => Ok(self.integer(value, bits, conversion, digits)),
            (PrintedValue::Float(value), b'v') => Ok(self.float(value, b'g', digits)),
            (PrintedValue::Float(value), conversion) if is_of_floats(conversion) => {
                Ok(self.float(value, conversion, digits))
            }
            (PrintedValue::Float(_), _) => Err(mismatch()),
        }
    }

    fn integer<'b>(self, value: i64, bits: u64, conversion: u8, digits: &'b mut Digits) -> Body<'b> {
        let _ = match conversion {
            _ if value == 0 && self.precision == Some(0) => Ok(()),
            b'u' => write!(digits, "{bits}"),
            b'o' => write!(digits, "{bits:o}"),
            b'x' => write!(digits, "{bits:x}"),
            b'X' => write!(digits, "{bits:X}"),
            _ => write!(digits, "{}", value.unsigned_abs()),
        };
        let text = digits.as_bytes();
        let mut zeros = self.precision.unwrap_or(0).saturating_sub(text.len());
        let sign = match conversion {
            b'x' if self.field.alternate && bits != 0 => "0x",
            b'X' if self.field.alternate && bits != 0 => "0X",
            b'o' if self.field.alternate && zeros == 0 && text.first() != Some(&b'0') => {
                zeros = 1;
                ""
            }
            b'u' | b'o' | b'x' | b'X' => "",
            _ => self.sign(value < 0),
        };
        Body { sign, zeros, text, may_fill: self.precision.is_none() }
    }

    fn float<'b>(self, value: f64, conversion: u8, digits: &'b mut Digits) -> Body<'b> {
        let upper = conversion.is_ascii_uppercase();
        if !value.is_finite() {
            let text = match (value.is_nan(), upper) {
                (true, false) => "nan",
                (true, true) => "NAN",
                (false, false) => "inf",
                (false, true) => "INF",
            };
            return Body { sign: self.sign(value < 0.0), zeros: 0, text: text.as_bytes(), may_fill: false };
        }
        let size = value.abs();
        let sign = self.sign(value.is_sign_negative());
        if matches!(conversion, b'a' | b'A') {
            let _ = write_hexadecimal(digits, size, self.precision, self.field.alternate, upper);
            return Body { sign: prefixed(sign, upper), zeros: 0, text: digits.as_bytes(), may_fill: true };
        }
        let precision = self.precision.unwrap_or(6);
        let _ = match conversion.to_ascii_lowercase() {
            b'f' => write_fixed(digits, size, precision, self.field.alternate),
            b'e' => write_scientific(digits, size, precision, self.field.alternate, upper),
            _ => {
                let significant = precision.max(1);
                let exponent = exponent_of(size, significant);
                let places = usize::try_from(significant as i32 - 1 - exponent).ok();
                match places.filter(|_| exponent >= -4) {
                    Some(places) => write_fixed(digits, size, places, self.field.alternate),
                    None => write_scientific(digits, size, significant - 1, self.field.alternate, upper),
                }
                .map(|()| {
                    if !self.field.alternate {
                        digits.trim_zeros();
                    }
                })
            }
        };
        Body { sign, zeros: 0, text: digits.as_bytes(), may_fill: true }
    }

    /// The most bytes that printing `value` by the field can take.
    pub(super) fn most(self, value: PrintedValue<'_>) -> usize {
        let precision = self.precision.unwrap_or(6);
        let float = |value: f64| match self.field.conversion {
            _ if !value.is_finite() => 4,
            b'f' | b'F' => 3 + whole_digits(value) + precision,
            // A sign, a prefix, a digit, a point, and an exponent of four digits with its letter and sign.
            b'a' | b'A' => 11 + precision.max(HEX_PLACES),
            // Zeros before the digits take no more room than an exponent.
            _ => 10 + precision.max(1),
        };
        let body = match value {
            PrintedValue::String(string) => {
                let body = self.cut(string);
                return body.len() + self.width.saturating_sub(self.unit.count(body));
            }
            // One character, of four bytes at most.
            PrintedValue::Integer(..) if self.field.conversion == b'c' => return 4 + self.width,
            PrintedValue::Float(value) => float(value),
            PrintedValue::Integer(value, _) if is_of_floats(self.field.conversion) => float(value as f64),
            PrintedValue::Boolean(_) if is_of_floats(self.field.conversion) => float(1.0),
            // A sign or a prefix, and 64 bits as octal digits.
            PrintedValue::Integer(..) | PrintedValue::Boolean(_) => 2 + self.precision.unwrap_or(0).max(23),
        };
        body.max(self.width)
    }

    /// Prints `value` by the field to `made`.
    ///
    /// # Errors
    /// If the field is for another kind of value.
    pub(super) fn write(self, made: &mut ArenaBytes<'_>, value: PrintedValue<'_>) -> Result<(), Reason> {
        let mut digits = Digits::new();
        let mut body = self.body(value, &mut digits)?;
        let fill = self.width.saturating_sub(body.sign.len() + body.zeros + self.unit.count(body.text));
        let (mut before, mut behind) = (0, 0);
        match self.field {
            Field { left: true, .. } => behind = fill,
            Field { zero: true, .. } if body.may_fill => body.zeros += fill,
            _ => before = fill,
        }
        (0..before).for_each(|_| made.push_str(" "));
        made.push_str(body.sign);
        (0..body.zeros).for_each(|_| made.push_str("0"));
        made.push_bytes(body.text);
        (0..behind).for_each(|_| made.push_str(" "));
        Ok(())
    }
}

/// Returns true for the conversions that print floats, and integers as floats.
fn is_of_floats(conversion: u8) -> bool {
    matches!(conversion, b'a' | b'A' | b'e' | b'E' | b'f' | b'F' | b'g' | b'G')
}

/// An upper bound for the digits before the point of a number, rounding included.
fn whole_digits(value: f64) -> usize {
    // 0.30103 is a little more than the logarithm of two.
    let bits = (value.to_bits() >> 52 & 0x7ff).saturating_sub(1022);
    2 + (bits as usize * 30103) / 100_000
}

/// The number of hexadecimal digits in the fraction of a binary64.
const HEX_PLACES: usize = 13;

/// The prefix of a hexadecimal number, `0x` or `0X`, after the sign `sign`.
fn prefixed(sign: &str, upper: bool) -> &'static str {
    match (sign, upper) {
        ("-", false) => "-0x",
        ("-", true) => "-0X",
        ("+", false) => "+0x",
        ("+", true) => "+0X",
        (" ", false) => " 0x",
        (" ", true) => " 0X",
        (_, false) => "0x",
        (_, true) => "0X",
    }
}

/// Writes a number that is not negative as C's `%.{precision}a` does, but without the prefix `0x`. Without a precision,
/// all digits are written. Subnormal numbers have a zero before the point.
fn write_hexadecimal(
    digits: &mut Digits,
    size: f64,
    precision: Option<usize>,
    point: bool,
    upper: bool,
) -> std::fmt::Result {
    const FRACTION: u64 = (1 << 52) - 1;
    let (exponent, fraction) = ((size.to_bits() >> 52) as i32, size.to_bits() & FRACTION);
    let (mut mantissa, exponent) = match exponent {
        0 if fraction == 0 => (0, 0),
        0 => (fraction, -1022),
        _ => (fraction | (FRACTION + 1), exponent - 1023),
    };
    let places = precision.unwrap_or(HEX_PLACES - (fraction | (FRACTION + 1)).trailing_zeros() as usize / 4);
    if let Some(cut @ 1..) = HEX_PLACES.checked_sub(places) {
        // To the nearest, and to an even digit from the middle. A carry makes the digit before the point a 2.
        let unit = 1_u64 << (4 * cut);
        let rest = mantissa & (unit - 1);
        mantissa -= rest;
        if rest > unit / 2 || (rest == unit / 2 && mantissa & unit != 0) {
            mantissa += unit;
        }
    }
    write!(digits, "{}", mantissa >> 52)?;
    if places > 0 || point {
        digits.write_str(".")?;
    }
    let mut hex = StackText::<HEX_PLACES>::new();
    match upper {
        true => write!(hex, "{:013X}", mantissa & FRACTION)?,
        false => write!(hex, "{:013x}", mantissa & FRACTION)?,
    }
    write!(digits, "{:0<places$}", &hex.as_str()[..places.min(HEX_PLACES)])?;
    write!(digits, "{}{exponent:+}", if upper { 'P' } else { 'p' })
}

/// Writes a number that is not negative as C's `%.{precision}f` does.
fn write_fixed(digits: &mut Digits, size: f64, precision: usize, point: bool) -> std::fmt::Result {
    write!(digits, "{size:.precision$}{}", if precision == 0 && point { "." } else { "" })
}

/// Writes a number that is not negative as C's `%.{precision}e` does: the exponent has a sign and at least two digits.
fn write_scientific(digits: &mut Digits, size: f64, precision: usize, point: bool, upper: bool) -> std::fmt::Result {
    let mut scientific = Digits::new();
    write!(scientific, "{size:.precision$e}")?;
    let scientific = scientific.as_str();
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((scientific, "0"));
    let (sign, exponent) = exponent.strip_prefix('-').map_or(('+', exponent), |exponent| ('-', exponent));
    let point = if precision == 0 && point { "." } else { "" };
    write!(digits, "{mantissa}{point}{}{sign}{exponent:0>2}", if upper { 'E' } else { 'e' })
}

/// The decimal exponent of a number that is rounded to `significant` significant digits.
fn exponent_of(size: f64, significant: usize) -> i32 {
    let mut scientific = Digits::new();
    let _ = write!(scientific, "{size:.0$e}", significant - 1);
    scientific.as_str().split_once('e').and_then(|(_, exponent)| exponent.parse().ok()).unwrap_or(0)
}

impl Digits {
    /// Removes the zeros at the end of a fraction, and its point if no digit is left.
    fn trim_zeros(&mut self) {
        let text = self.as_str();
        let mantissa = text.find(['e', 'E']).unwrap_or(text.len());
        if !text[..mantissa].contains('.') {
            return;
        }
        let kept = text[..mantissa].trim_end_matches('0').trim_end_matches('.').len();
        self.remove(kept..mantissa);
    }
}

#[cfg(test)]
mod tests {
    use super::super::fields::{Amount, Fields, Piece};
    use super::*;
    use cembra_runtime::Context;

    fn rendered(format: &str, value: PrintedValue<'_>) -> Result<String, Reason> {
        rendered_in(Unit::Character, format, value)
    }

    fn rendered_in(unit: Unit, format: &str, value: PrintedValue<'_>) -> Result<String, Reason> {
        let mut context = Context::new();
        let mut made = ArenaBytes::new(&mut context, 2000).expect("room");
        let mut fields = Fields::new(format.as_bytes());
        let mut most = 0;
        while let Some(piece) = fields.next()? {
            match piece {
                Piece::Literal(text) => {
                    most += text.len();
                    made.push_bytes(text);
                }
                Piece::Field(field) => {
                    let fixed = |amount| match amount {
                        Amount::Fixed(amount) => Some(amount),
                        _ => None,
                    };
                    let form = ResolvedField::new(field, unit, fixed(field.width).unwrap_or(0), fixed(field.precision));
                    most += form.most(value);
                    form.check(value)?;
                    form.write(&mut made, value)?;
                }
            }
        }
        let text = String::from_utf8(made.finish().as_slice().to_vec()).expect("UTF-8");
        assert!(text.len() <= most, "{format} of {value:?}: {text} is longer than {most}");
        Ok(text)
    }

    fn integer(format: &str, value: i32) -> String {
        rendered(format, PrintedValue::Integer(value.into(), value.cast_unsigned().into())).expect("a text")
    }

    fn float(format: &str, value: f64) -> String {
        rendered(format, PrintedValue::Float(value)).expect("a text")
    }

    #[test]
    fn integers_are_rendered_as_in_c() {
        for (format, value, expected) in [
            ("%d", -42, "-42"),
            ("%i|", 7, "7|"),
            ("%v", -7, "-7"),
            ("%5d", 42, "   42"),
            ("%-5d", 42, "42   "),
            ("%05d", -42, "-0042"),
            ("%-05d", 42, "42   "),
            ("%+d", 42, "+42"),
            ("% d", 42, " 42"),
            ("%+ d", 42, "+42"),
            ("%.4d", 42, "0042"),
            ("%6.4d", -42, " -0042"),
            ("%06.4d", 42, "  0042"),
            ("%.0d", 0, ""),
            ("%3.0d", 0, "   "),
            ("%u", -1, "4294967295"),
            ("%x", -1, "ffffffff"),
            ("%X", 48879, "BEEF"),
            ("%#x", 255, "0xff"),
            ("%#X", 255, "0XFF"),
            ("%#x", 0, "0"),
            ("%08x", 255, "000000ff"),
            ("%#010x", 255, "0x000000ff"),
            ("%o", 8, "10"),
            ("%#o", 8, "010"),
            ("%#o", 0, "0"),
            ("%#.0o", 0, "0"),
            ("%#.5o", 8, "00010"),
            ("%c", 65, "A"),
            ("%3c", 65, "  A"),
            ("%lld", 5, "5"),
            ("%hhx", 255, "ff"),
            ("%.2f", 3, "3.00"),
            ("%g", 1_000_000, "1e+06"),
            ("100%% of %d", 5, "100% of 5"),
            ("%%%%%d", 5, "%%5"),
            ("%d", i32::MIN, "-2147483648"),
        ] {
            assert_eq!(integer(format, value), expected, "{format}");
        }
    }

    #[test]
    fn floats_are_rendered_as_in_c() {
        for (format, value, expected) in [
            ("%f", 1.5, "1.500000"),
            ("%.2f", -1.005, "-1.00"),
            ("%.0f", 0.5, "0"),
            ("%.0f", 1.5, "2"),
            ("%.0f", 2.5, "2"),
            ("%.2f", 0.125, "0.12"),
            ("%.2f", 0.375, "0.38"),
            ("%.1f", 0.25, "0.2"),
            ("%.20f", 0.1, "0.10000000000000000555"),
            ("%#.0f", 3.0, "3."),
            ("%8.3f", 3.1418, "   3.142"),
            ("%-8.3f", 3.1418, "3.142   "),
            ("%08.3f", -3.1418, "-003.142"),
            ("%+.1f", 2.0, "+2.0"),
            ("% .1f", 2.0, " 2.0"),
            ("%.1f", -0.0, "-0.0"),
            ("%e", 12345.678, "1.234568e+04"),
            ("%.2e", 1e-300, "1.00e-300"),
            ("%.0e", 15.0, "2e+01"),
            ("%#.0e", 15.0, "2.e+01"),
            ("%E", 0.00012, "1.200000E-04"),
            ("%g", 0.0001, "0.0001"),
            ("%g", 0.00001, "1e-05"),
            ("%g", 123456.0, "123456"),
            ("%g", 1234567.0, "1.23457e+06"),
            ("%g", 999999.5, "1e+06"),
            ("%g", 100.0, "100"),
            ("%g", 0.0, "0"),
            ("%g", -0.0, "-0"),
            ("%.3g", 1234.5, "1.23e+03"),
            ("%.10g", 0.1, "0.1"),
            ("%.0g", 1.5, "2"),
            ("%#g", 1.0, "1.00000"),
            ("%G", 1e-10, "1E-10"),
            ("%v", 0.5, "0.5"),
            ("%f", f64::INFINITY, "inf"),
            ("%F", f64::NEG_INFINITY, "-INF"),
            ("%06f", f64::INFINITY, "   inf"),
            ("%+f", f64::INFINITY, "+inf"),
            ("%g", f64::NAN, "nan"),
            ("%e", -f64::NAN, "nan"),
        ] {
            assert_eq!(float(format, value), expected, "{format} {value}");
        }
        assert_eq!(integer("%1000d", 1).len(), 1000);
        assert_eq!(float("%.1000f", f64::MAX).len(), 309 + 1 + 1000);
        assert_eq!(float("%.1000e", f64::MIN_POSITIVE).len(), 1 + 1 + 1000 + 5);
    }

    #[test]
    fn hexadecimal_digits_are_those_of_the_number() {
        for (format, value, expected) in [
            ("%a", 0.0, "0x0p+0"),
            ("%.2A", -0.0, "-0X0.00P+0"),
            ("%#a", 1.0, "0x1.p+0"),
            ("%a", 0.1, "0x1.999999999999ap-4"),
            ("%.1a", -3.0, "-0x1.8p+1"),
            ("%.0a", -3.0, "-0x2p+1"),
            ("%#.0a", 1.0, "0x1.p+0"),
            ("%.1a", 1.03125, "0x1.0p+0"),
            ("%.1a", 1.09375, "0x1.2p+0"),
            ("%.1a", 1.96875, "0x2.0p+0"),
            ("%.2A", 1.96875, "0X1.F8P+0"),
            ("%.12a", f64::MAX, "0x2.000000000000p+1023"),
            ("%.15a", 0.1, "0x1.999999999999a00p-4"),
            ("%a", f64::from_bits(1), "0x0.0000000000001p-1022"),
            ("%.2a", 1e-310, "0x0.01p-1022"),
            ("%020a", -1.5, "-0x000000000001.8p+0"),
            ("%-12a|", 1.0, "0x1p+0      |"),
            ("% .3a", 0.5, " 0x1.000p-1"),
            ("%+A", f64::INFINITY, "+INF"),
        ] {
            assert_eq!(float(format, value), expected, "{format} {value}");
        }
        assert_eq!(integer("%a", 5), "0x1.4p+2");
        assert_eq!(float("%.1000a", f64::MIN_POSITIVE).len(), 4 + 1000 + 6);
    }

    #[test]
    fn strings_and_booleans_have_fields_of_their_own() {
        let of = |format, value| rendered(format, value).expect("a text");
        assert_eq!(of("<%s", PrintedValue::String(b"ab")), "<ab");
        assert_eq!(of("%5s", PrintedValue::String(b"ab")), "   ab");
        assert_eq!(of("%05s", PrintedValue::String(b"ab")), "   ab");
        assert_eq!(of("%-5s", PrintedValue::String(b"ab")), "ab   ");
        assert_eq!(of("%.1s", PrintedValue::String(b"ab")), "a");
        let greek = PrintedValue::String("\u{3b1}\u{1f600}c".as_bytes());
        for (format, characters, bytes) in [
            ("%5s|", "  \u{3b1}\u{1f600}c|", "\u{3b1}\u{1f600}c|"),
            ("%-4s|", "\u{3b1}\u{1f600}c |", "\u{3b1}\u{1f600}c|"),
            ("%.2s", "\u{3b1}\u{1f600}", "\u{3b1}"),
            ("%3.1s", "  \u{3b1}", "  \u{3b1}"),
            ("%.9s", "\u{3b1}\u{1f600}c", "\u{3b1}\u{1f600}c"),
            ("%.0s", "", ""),
            ("%9s", "      \u{3b1}\u{1f600}c", "  \u{3b1}\u{1f600}c"),
        ] {
            assert_eq!(of(format, greek), characters, "{format}");
            if format != "%3.1s" {
                assert_eq!(rendered_in(Unit::Byte, format, greek).expect("a text"), bytes, "{format}");
            }
        }
        let wide = |unit, format| rendered_in(unit, format, PrintedValue::Integer(0x1F600, 0x1F600)).expect("a text");
        assert_eq!(wide(Unit::Character, "%3lc"), "  \u{1f600}");
        assert_eq!(wide(Unit::Byte, "%6lc"), "  \u{1f600}");
        assert_eq!(wide(Unit::Character, "%1000lc").len(), 999 + 4);
        assert_eq!(of("%v", PrintedValue::Boolean(true)), "true");
        assert_eq!(of("%v", PrintedValue::Boolean(false)), "false");
        assert_eq!(of("%d", PrintedValue::Boolean(true)), "1");
    }

    #[test]
    fn fields_of_another_kind_are_refused() {
        let kind = Err(mismatch());
        for (format, value) in [
            ("%d", PrintedValue::Float(1.0)),
            ("%x", PrintedValue::Float(1.0)),
            ("%s", PrintedValue::Float(1.0)),
            ("%s", PrintedValue::Integer(1, 1)),
            ("%s", PrintedValue::Boolean(true)),
            ("%d", PrintedValue::String(b"1")),
            ("%f", PrintedValue::String(b"1")),
            ("%c", PrintedValue::String(b"1")),
        ] {
            assert_eq!(rendered(format, value), kind, "{format}");
        }
    }
}
