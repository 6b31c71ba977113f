//! The language of `printf` formats, and single values rendered by its fields: C's, without `*`, `%a`, `%n` and numbered
//! arguments. As in C, widths and precisions of strings are in bytes.

use super::invalid;
use super::made::{ArenaBytes, StackText};
use cembra_expr::Limits;
use cembra_runtime::{Bytes, Context, Fault};
use std::fmt::Write;

/// A field of a format: `%-8.3f`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Field {
    left: bool,
    plus: bool,
    space: bool,
    alternate: bool,
    zero: bool,
    width: usize,
    precision: Option<usize>,
    conversion: u8,
}

/// A format up to the end of a field, or to its own end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Piece<'f> {
    /// What is before the field, percent signs still doubled.
    pub(super) literal: &'f [u8],
    /// The field, if there is one more.
    pub(super) field: Option<Field>,
    /// What follows.
    pub(super) rest: &'f [u8],
}

/// Splits a format behind its first field.
///
/// # Errors
/// The field is not one.
pub(super) fn first_piece(format: &[u8]) -> Result<Piece<'_>, Fault> {
    let mut from = 0;
    while let Some(at) = memchr::memchr(b'%', &format[from..]) {
        let percent = from + at;
        if format.get(percent + 1) == Some(&b'%') {
            from = percent + 2;
            continue;
        }
        let (field, rest) = read_field(&format[percent + 1..])?;
        return Ok(Piece { literal: &format[..percent], field: Some(field), rest });
    }
    Ok(Piece { literal: format, field: None, rest: &[] })
}

/// Reads a field behind its percent sign.
fn read_field(text: &[u8]) -> Result<(Field, &[u8]), Fault> {
    let mut field = Field::default();
    let mut rest = text;
    while let [flag @ (b'-' | b'+' | b' ' | b'#' | b'0'), behind @ ..] = rest {
        match flag {
            b'-' => field.left = true,
            b'+' => field.plus = true,
            b' ' => field.space = true,
            b'#' => field.alternate = true,
            _ => field.zero = true,
        }
        rest = behind;
    }
    (field.width, rest) = read_number(rest)?;
    if let [b'.', behind @ ..] = rest {
        let (precision, behind) = read_number(behind)?;
        field.precision = Some(precision);
        rest = behind;
    }
    // C's sizes of integers mean nothing here.
    while let [b'h' | b'l' | b'L' | b'j' | b'z' | b't' | b'q', behind @ ..] = rest {
        rest = behind;
    }
    match rest {
        [conversion @ (b'd' | b'i' | b'u' | b'o' | b'x' | b'X' | b'c'), behind @ ..]
        | [conversion @ (b'e' | b'E' | b'f' | b'F' | b'g' | b'G' | b's' | b'v'), behind @ ..] => {
            field.conversion = *conversion;
            Ok((field, behind))
        }
        _ => Err(invalid("the format has a field that is malformed")),
    }
}

fn read_number(text: &[u8]) -> Result<(usize, &[u8]), Fault> {
    let (mut number, mut rest) = (0, text);
    while let [digit @ b'0'..=b'9', behind @ ..] = rest {
        number = number * 10 + usize::from(digit - b'0');
        if number > Limits::FIELD_WIDTH {
            return Err(invalid("the format has a width or a precision of more than 1000"));
        }
        rest = behind;
    }
    Ok((number, rest))
}

/// A value to render.
#[derive(Clone, Copy, Debug)]
pub(super) enum Rendered<'v> {
    /// An integer, and its bits in its own width, zero-extended.
    Integer(i64, u64),
    Float(f64),
    Boolean(bool),
    String(&'v [u8]),
}

/// Room for the digits of any number in any precision.
type Digits = StackText<{ Limits::FIELD_WIDTH + 400 }>;

/// A rendered value before it is padded.
#[derive(Clone, Copy)]
struct Body<'b> {
    /// A sign, or a prefix such as `0x`.
    sign: &'static str,
    /// How many zeros are between the sign and the text.
    zeros: usize,
    text: &'b [u8],
    /// True if the width may be filled with zeros.
    may_fill: bool,
}

impl<'b> Body<'b> {
    fn plain(text: &'b [u8]) -> Self {
        Body { sign: "", zeros: 0, text, may_fill: false }
    }
}

fn mismatch() -> Fault {
    invalid("a field of the format is of another kind than its argument")
}

impl Field {
    fn sign(self, negative: bool) -> &'static str {
        match self {
            _ if negative => "-",
            Field { plus: true, .. } => "+",
            Field { space: true, .. } => " ",
            _ => "",
        }
    }

    fn body<'b>(self, value: Rendered<'b>, digits: &'b mut Digits) -> Result<Body<'b>, Fault> {
        // There is room for all digits: writing never fails.
        match (value, self.conversion) {
            (Rendered::String(string), b's' | b'v') => {
                Ok(Body::plain(&string[..self.precision.unwrap_or(string.len()).min(string.len())]))
            }
            (Rendered::Boolean(value), b'v') => Ok(Body::plain(if value { b"true" } else { b"false" })),
            (Rendered::Boolean(_) | Rendered::Integer(..), b's') | (Rendered::String(_), _) => Err(mismatch()),
            (Rendered::Boolean(value), _) => self.body(Rendered::Integer(value.into(), value.into()), digits),
            (Rendered::Integer(_, bits), b'c') => {
                digits.push_byte(bits as u8);
                Ok(Body::plain(digits.as_bytes()))
            }
            (Rendered::Integer(value, _), b'e' | b'E' | b'f' | b'F' | b'g' | b'G') => {
                Ok(self.float(value as f64, self.conversion, digits))
            }
            (Rendered::Integer(value, bits), conversion) => Ok(self.integer(value, bits, conversion, digits)),
            (Rendered::Float(value), b'v') => Ok(self.float(value, b'g', digits)),
            (Rendered::Float(value), conversion @ (b'e' | b'E' | b'f' | b'F' | b'g' | b'G')) => {
                Ok(self.float(value, conversion, digits))
            }
            (Rendered::Float(_), _) => Err(mismatch()),
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
            b'x' if self.alternate && bits != 0 => "0x",
            b'X' if self.alternate && bits != 0 => "0X",
            b'o' if self.alternate && zeros == 0 && text.first() != Some(&b'0') => {
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
        let precision = self.precision.unwrap_or(6);
        let _ = match conversion.to_ascii_lowercase() {
            b'f' => write_fixed(digits, size, precision, self.alternate),
            b'e' => write_scientific(digits, size, precision, self.alternate, upper),
            _ => {
                let significant = precision.max(1);
                let exponent = exponent_of(size, significant);
                let places = usize::try_from(significant as i32 - 1 - exponent).ok();
                match places.filter(|_| exponent >= -4) {
                    Some(places) => write_fixed(digits, size, places, self.alternate),
                    None => write_scientific(digits, size, significant - 1, self.alternate, upper),
                }
                .map(|()| {
                    if !self.alternate {
                        digits.trim_zeros();
                    }
                })
            }
        };
        Body { sign: self.sign(value.is_sign_negative()), zeros: 0, text: digits.as_bytes(), may_fill: true }
    }

    /// Renders a value behind the literal text of the field's piece.
    ///
    /// # Errors
    /// The field is for another kind of value, or the arena is full.
    pub(super) fn render(
        self,
        context: &mut Context,
        literal: &[u8],
        value: Rendered<'_>,
    ) -> Result<Bytes<'static>, Fault> {
        let mut digits = Digits::new();
        let mut body = self.body(value, &mut digits)?;
        let len = body.sign.len() + body.zeros + body.text.len();
        let fill = self.width.saturating_sub(len);
        let (mut before, mut behind) = (0, 0);
        match self {
            Field { left: true, .. } => behind = fill,
            Field { zero: true, .. } if body.may_fill => body.zeros += fill,
            _ => before = fill,
        }
        let mut made = ArenaBytes::new(context, literal_len(literal) + len + fill)?;
        push_literal(&mut made, literal);
        (0..before).for_each(|_| made.push_str(" "));
        made.push_str(body.sign);
        (0..body.zeros).for_each(|_| made.push_str("0"));
        made.push_bytes(body.text);
        (0..behind).for_each(|_| made.push_str(" "));
        Ok(made.finish())
    }
}

/// C's `%.{precision}f` of a number that is not negative.
fn write_fixed(digits: &mut Digits, size: f64, precision: usize, point: bool) -> std::fmt::Result {
    write!(digits, "{size:.precision$}{}", if precision == 0 && point { "." } else { "" })
}

/// C's `%.{precision}e` of a number that is not negative: its exponent has a sign and two digits at least.
fn write_scientific(digits: &mut Digits, size: f64, precision: usize, point: bool, upper: bool) -> std::fmt::Result {
    let mut scientific = Digits::new();
    write!(scientific, "{size:.precision$e}")?;
    let scientific = scientific.as_str();
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((scientific, "0"));
    let (sign, exponent) = exponent.strip_prefix('-').map_or(('+', exponent), |exponent| ('-', exponent));
    let point = if precision == 0 && point { "." } else { "" };
    write!(digits, "{mantissa}{point}{}{sign}{exponent:0>2}", if upper { 'E' } else { 'e' })
}

/// The decimal exponent of a number that is rounded to so many significant digits.
fn exponent_of(size: f64, significant: usize) -> i32 {
    let mut scientific = Digits::new();
    let _ = write!(scientific, "{size:.0$e}", significant - 1);
    scientific.as_str().split_once('e').and_then(|(_, exponent)| exponent.parse().ok()).unwrap_or(0)
}

impl Digits {
    /// Takes away the zeros at the end of a fraction, and its point if nothing is left of it.
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

fn literal_len(literal: &[u8]) -> usize {
    literal.len() - literal_percents(literal).count()
}

/// The doubled percent signs of a literal.
fn literal_percents(literal: &[u8]) -> impl Iterator<Item = usize> {
    memchr::memmem::find_iter(literal, b"%%")
}

fn push_literal(made: &mut ArenaBytes<'_>, literal: &[u8]) {
    let mut from = 0;
    for percent in literal_percents(literal) {
        made.push_bytes(&literal[from..=percent]);
        from = percent + 2;
    }
    made.push_bytes(&literal[from..]);
}

/// A literal with its percent signs as they are meant.
///
/// # Errors
/// The arena is full.
pub(super) fn unescaped(context: &mut Context, literal: &[u8]) -> Result<Bytes<'static>, Fault> {
    let mut made = ArenaBytes::new(context, literal_len(literal))?;
    push_literal(&mut made, literal);
    Ok(made.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rendered(format: &str, value: Rendered<'_>) -> Result<String, String> {
        let reason = |fault: Fault| {
            // SAFETY: STRING-VIEW: the reasons of this file are static.
            let reason =
                unsafe { cembra_runtime::Text::from_raw(fault.operands[0] as *const u8, fault.operands[1] as usize) };
            reason.as_str().to_owned()
        };
        let piece = first_piece(format.as_bytes()).map_err(reason)?;
        let field = piece.field.expect("a field");
        let mut context = Context::new();
        let bytes = field.render(&mut context, piece.literal, value).map_err(reason)?;
        Ok(String::from_utf8(bytes.as_slice().to_vec()).expect("UTF-8"))
    }

    fn integer(format: &str, value: i32) -> String {
        rendered(format, Rendered::Integer(value.into(), value.cast_unsigned().into())).expect("a text")
    }

    fn float(format: &str, value: f64) -> String {
        rendered(format, Rendered::Float(value)).expect("a text")
    }

    #[test]
    fn integers_are_rendered_as_in_c() {
        for (format, value, expected) in [
            ("%d", -42, "-42"),
            ("%i|", 7, "7"),
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
        assert_eq!(float("%.1000f", f64::MAX).len(), 309 + 1 + 1000);
        assert_eq!(float("%.1000e", f64::MIN_POSITIVE).len(), 1 + 1 + 1000 + 5);
    }

    #[test]
    fn strings_and_booleans_have_fields_of_their_own() {
        let of = |format, value| rendered(format, value).expect("a text");
        assert_eq!(of("<%s", Rendered::String(b"ab")), "<ab");
        assert_eq!(of("%5s", Rendered::String(b"ab")), "   ab");
        assert_eq!(of("%05s", Rendered::String(b"ab")), "   ab");
        assert_eq!(of("%-5s", Rendered::String(b"ab")), "ab   ");
        assert_eq!(of("%.1s", Rendered::String(b"ab")), "a");
        assert_eq!(of("%.9v", Rendered::String(b"ab")), "ab");
        assert_eq!(of("%3s", Rendered::String("\u{e9}".as_bytes())), " \u{e9}");
        assert_eq!(of("%v", Rendered::Boolean(true)), "true");
        assert_eq!(of("%6v", Rendered::Boolean(false)), " false");
        assert_eq!(of("%d", Rendered::Boolean(true)), "1");
    }

    #[test]
    fn fields_of_another_kind_are_refused() {
        let kind = Err("a field of the format is of another kind than its argument".to_owned());
        for (format, value) in [
            ("%d", Rendered::Float(1.0)),
            ("%x", Rendered::Float(1.0)),
            ("%s", Rendered::Float(1.0)),
            ("%s", Rendered::Integer(1, 1)),
            ("%s", Rendered::Boolean(true)),
            ("%d", Rendered::String(b"1")),
            ("%f", Rendered::String(b"1")),
            ("%c", Rendered::String(b"1")),
        ] {
            assert_eq!(rendered(format, value), kind, "{format}");
        }
    }

    #[test]
    fn malformed_fields_are_refused() {
        let malformed = Err("the format has a field that is malformed".to_owned());
        for format in [
            "%",
            "a%",
            "%q",
            "%-",
            "%5",
            "%.",
            "%.3",
            "%l",
            "%*d",
            "%1$d",
            "%n",
            "%a",
            "%5%",
            "%d".trim_end_matches('d'),
            "% ",
        ] {
            assert_eq!(rendered(format, Rendered::Integer(1, 1)), malformed, "{format}");
        }
        let wide = Err("the format has a width or a precision of more than 1000".to_owned());
        for format in ["%1001d", "%.1001f", "%99999999999999999999d"] {
            assert_eq!(rendered(format, Rendered::Integer(1, 1)), wide, "{format}");
        }
        assert_eq!(integer("%1000d", 1).len(), 1000);
    }

    #[test]
    fn pieces_end_behind_their_field() {
        let piece = first_piece(b"a%%b%5dc%s").expect("a piece");
        assert_eq!((piece.literal, piece.rest), (&b"a%%b"[..], &b"c%s"[..]));
        let piece = first_piece(piece.rest).expect("a piece");
        assert_eq!((piece.literal, piece.rest), (&b"c"[..], &b""[..]));
        assert_eq!(first_piece(b"a%%").expect("a piece"), Piece { literal: b"a%%", field: None, rest: b"" });
        let mut context = Context::new();
        assert_eq!(unescaped(&mut context, b"a%%b%%%%").expect("room").as_slice(), b"a%b%%");
    }
}
