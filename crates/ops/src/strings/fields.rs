//! Parses `printf` formats field by field: `%-8.3f`, `%*d`, `%2$s`. The format language is Abseil's, without `%n` and
//! `%p`. `rendering.rs` prints values by the parsed fields.

use super::Reason;
use crate::strings::limits;

/// The width or the precision of a field, as the format gives it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Amount {
    /// The format gives no width (or precision) for the field.
    #[default]
    None,
    /// The format gives this number as the width or precision.
    Fixed(usize),
    /// The format gives `*`: the width or precision is the value of the argument with this index.
    Argument(usize),
}

/// A field of a format, such as `%-8.3f`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Field {
    pub(super) left: bool,
    pub(super) plus: bool,
    pub(super) space: bool,
    pub(super) alternate: bool,
    pub(super) zero: bool,
    pub(super) width: Amount,
    pub(super) precision: Amount,
    pub(super) conversion: u8,
    /// True if the field is `%lc`, which prints a character by its number; `%c` prints a byte.
    pub(super) wide: bool,
    /// The index of the argument that the field prints.
    pub(super) argument: usize,
}

/// A part of a format: literal text or a field.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Piece<'f> {
    Literal(&'f [u8]),
    Field(Field),
}

/// A parser of a format, with the rest of the format that is still to be parsed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fields<'f> {
    text: &'f [u8],
    /// The part of the format that follows `text`.
    last: &'f [u8],
    /// True if the parser is directly after a percent sign.
    in_field: bool,
    /// The number of arguments that fields without numbers have taken so far.
    taken: usize,
    /// True if fields name their arguments by number. All fields do, or none does.
    numbered: bool,
}

fn malformed() -> Reason {
    Reason("the format has a field that is malformed")
}

/// Checks that `number`, a width or a precision, is within the limit.
///
/// # Errors
/// If the number exceeds the limit.
pub(super) fn within_limit(number: usize) -> Result<usize, Reason> {
    match number <= limits::FIELD_WIDTH {
        true => Ok(number),
        false => Err(Reason("the format has a width or a precision of more than 1000")),
    }
}

impl<'f> Fields<'f> {
    pub(super) const fn new(text: &'f [u8]) -> Self {
        Fields { text, last: b"", in_field: false, taken: 0, numbered: false }
    }

    /// Makes a parser that begins inside of a field, directly after the field's percent sign. The text to parse is
    /// `text` followed by `last`.
    pub(super) const fn of_field(text: &'f [u8], last: &'f [u8]) -> Self {
        Fields { text, last, in_field: true, taken: 0, numbered: false }
    }

    /// Returns the next part of the format; `None` at the end.
    ///
    /// # Errors
    /// If a percent sign is not followed by a valid field.
    pub(super) fn next(&mut self) -> Result<Option<Piece<'f>>, Reason> {
        if self.in_field {
            self.in_field = false;
            return self.field().map(Some);
        }
        if self.text.is_empty() && self.last.is_empty() {
            return Ok(None);
        }
        let from = if self.text.is_empty() { &mut self.last } else { &mut self.text };
        let literal = &from[..memchr::memchr(b'%', from).unwrap_or(from.len())];
        *from = &from[literal.len()..];
        if !literal.is_empty() {
            return Ok(Some(Piece::Literal(literal)));
        }
        self.skip();
        self.field().map(Some)
    }

    fn peek(&self) -> Option<u8> {
        self.text.first().or(self.last.first()).copied()
    }

    fn skip(&mut self) {
        let from = if self.text.is_empty() { &mut self.last } else { &mut self.text };
        *from = from.get(1..).unwrap_or_default();
    }

    /// Skips the next byte if it is `byte`, and returns whether it was.
    fn take(&mut self, byte: u8) -> bool {
        let taken = self.peek() == Some(byte);
        if taken {
            self.skip();
        }
        taken
    }

    /// Reads a field after its percent sign.
    fn field(&mut self) -> Result<Piece<'f>, Reason> {
        if self.take(b'%') {
            return Ok(Piece::Literal(b"%"));
        }
        let mut field = Field::default();
        let start = *self;
        match self.index()? {
            Some(argument) if self.numbered || self.taken == 0 => {
                (field.argument, self.numbered) = (argument, true);
            }
            None if !self.numbered => *self = start,
            _ => return Err(Reason("either all fields of the format must have the number of their argument, or none")),
        }
        let plain = self.text.len() + self.last.len();
        while let Some(flag @ (b'-' | b'+' | b' ' | b'#' | b'0')) = self.peek() {
            match flag {
                b'-' => field.left = true,
                b'+' => field.plus = true,
                b' ' => field.space = true,
                b'#' => field.alternate = true,
                _ => field.zero = true,
            }
            self.skip();
        }
        field.width = match self.take(b'*') {
            true => Amount::Argument(self.star()?),
            false => self.number()?.map_or(Ok(Amount::None), |width| within_limit(width).map(Amount::Fixed))?,
        };
        if self.take(b'.') {
            field.precision = match self.take(b'*') {
                true => Amount::Argument(self.star()?),
                false => Amount::Fixed(within_limit(self.number()?.unwrap_or(0))?),
            };
        }
        // C's size letters for integers are ignored.
        if let Some(size @ (b'h' | b'l' | b'L' | b'j' | b'z' | b't' | b'q')) = self.peek() {
            self.skip();
            let long = matches!(size, b'h' | b'l') && self.take(size);
            field.wide = size == b'l' && !long;
        }
        let plain = plain == self.text.len() + self.last.len();
        field.conversion = match self.peek() {
            Some(b'v') if !plain => {
                return Err(Reason("a field `%v` of the format must not have flags, a width or a precision"));
            }
            Some(conversion) if b"cdiouxXfFeEgGaAsv".contains(&conversion) => conversion,
            _ => return Err(malformed()),
        };
        self.skip();
        if !self.numbered {
            field.argument = self.taken;
            self.taken += 1;
        }
        Ok(Piece::Field(field))
    }

    /// Parses what follows a `*`, and returns the index of the argument that has the width or precision.
    fn star(&mut self) -> Result<usize, Reason> {
        if self.numbered {
            return self.index()?.ok_or_else(malformed);
        }
        self.taken += 1;
        Ok(self.taken - 1)
    }

    /// Parses an argument's number and a dollar sign, and returns the argument's index. `None` if something else
    /// follows; a part of it may have been consumed.
    fn index(&mut self) -> Result<Option<usize>, Reason> {
        let from_one = matches!(self.peek(), Some(b'1'..=b'9'));
        Ok(match from_one {
            true => self.number()?.filter(|_| self.take(b'$')).map(|number| number - 1),
            false => None,
        })
    }

    /// Parses a number of up to nine digits; `None` if there is no digit.
    fn number(&mut self) -> Result<Option<usize>, Reason> {
        let mut number = None::<usize>;
        let mut digits = 0;
        while let Some(digit @ b'0'..=b'9') = self.peek() {
            number = Some(number.unwrap_or(0).saturating_mul(10).saturating_add(usize::from(digit - b'0')));
            digits += 1;
            self.skip();
        }
        match number {
            Some(number) if digits > 9 => Err(within_limit(number).err().unwrap_or_else(malformed)),
            number => Ok(number),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(mut fields: Fields<'_>) -> Result<Vec<Piece<'_>>, Reason> {
        let mut pieces = Vec::new();
        while let Some(piece) = fields.next()? {
            pieces.push(piece);
        }
        Ok(pieces)
    }

    fn plain(conversion: u8, argument: usize) -> Field {
        Field { conversion, argument, ..Field::default() }
    }

    #[test]
    fn a_format_is_text_and_fields() {
        let (text, field) = (Piece::Literal, Piece::Field);
        assert_eq!(pieces(Fields::new(b"")), Ok(vec![]));
        assert_eq!(
            pieces(Fields::new(b"a%%b%5dc%s")),
            Ok(vec![
                text(b"a"),
                text(b"%"),
                text(b"b"),
                field(Field { width: Amount::Fixed(5), ..plain(b'd', 0) }),
                text(b"c"),
                field(plain(b's', 1)),
            ])
        );
        let stars = Field { left: true, width: Amount::Argument(0), precision: Amount::Argument(1), ..plain(b'f', 2) };
        assert_eq!(pieces(Fields::new(b"%-*.*f%d")), Ok(vec![field(stars), field(plain(b'd', 3))]));
        let stars = Field { width: Amount::Argument(0), precision: Amount::Argument(6), ..plain(b'f', 2) };
        assert_eq!(pieces(Fields::new(b"%3$*1$.*7$f%3$d")), Ok(vec![field(stars), field(plain(b'd', 2))]));
        let point = Field { precision: Amount::Fixed(0), ..plain(b'e', 0) };
        assert_eq!(pieces(Fields::new(b"%.e")), Ok(vec![field(point)]));
    }

    #[test]
    fn a_field_may_be_without_its_percent_sign_and_its_end() {
        let wide = Field { width: Amount::Fixed(5), ..plain(b'd', 0) };
        assert_eq!(pieces(Fields::of_field(b"5", b"d")), Ok(vec![Piece::Field(wide)]));
        assert_eq!(
            pieces(Fields::of_field(b"d!", b"d")),
            Ok(vec![Piece::Field(plain(b'd', 0)), Piece::Literal(b"!"), Piece::Literal(b"d")])
        );
        assert_eq!(pieces(Fields::of_field(b"%", b"d")), Ok(vec![Piece::Literal(b"%"), Piece::Literal(b"d")]));
        assert!(pieces(Fields::of_field(b"5%", b"d")).is_err());
    }

    #[test]
    fn what_abseil_refuses_is_refused() {
        for format in [
            "%",
            "%5",
            "%.",
            "%l",
            "%q",
            "%n",
            "%p",
            "%5%",
            "%l%",
            "%y",
            "%D",
            "%5.-3d",
            "%llld",
            "%hld",
            "%LLf",
            "%qqd",
            "%5v",
            "%.1v",
            "%+v",
            "%lv",
            "%1$5v",
            "%1$",
            "%1$%",
            "%0$d",
            "%01$d",
            "%-1$d",
            "%1$d %d",
            "%d %1$d",
            "%1$d %5d",
            "%*1$d",
            "%1$*d",
            "%1$.*d",
            "%*$d",
            "%.0000000000d",
            "%1001d",
            "%.1001f",
            "%99999999999999999999d",
            "%\u{e9}",
        ] {
            assert!(pieces(Fields::new(format.as_bytes())).is_err(), "{format}");
        }
        for format in [
            "%hhd",
            "%ld",
            "%lld",
            "%Lf",
            "%jd",
            "%zd",
            "%td",
            "%qd",
            "%1$v",
            "%1$d%1$d",
            "%1000.1000f",
            "%0000000000005d",
        ] {
            assert!(pieces(Fields::new(format.as_bytes())).is_ok(), "{format}");
        }
    }
}
