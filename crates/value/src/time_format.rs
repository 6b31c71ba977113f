//! The language for formats of dates and timestamps, such as `%d.%m.%Y`: the letters of C's `strftime` as Python has
//! them in its C locale, with four-digit years. A format is short, so it is parsed again for each text.

use cembra_runtime::{Date, Excerpt, Timestamp};
use smallvec::SmallVec;
use std::fmt;
use std::ops::RangeInclusive;

/// The most bytes that a format of dates or timestamps may have.
pub const TIME_FORMAT_BYTES: usize = 256;

/// A letter of a format, such as `%Y`: a part of a date or time, in one spelling.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Letter {
    Year,
    ShortYear,
    Month,
    MonthName,
    ShortMonthName,
    Day,
    DayOfYear,
    WeekdayName,
    ShortWeekdayName,
    Hour,
    HourOfTwelve,
    Half,
    Minute,
    Second,
    Microseconds,
    Offset,
}

/// The part of a date or time that a letter of a format stands for. A format for reading must not have two letters for one part.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(usize)]
enum Field {
    Year,
    Month,
    Day,
    DayOfYear,
    Weekday,
    Hour,
    Half,
    Minute,
    Second,
    Microseconds,
    Offset,
}

/// The number of parts that a date or time may have.
const FIELDS: usize = Field::Offset as usize + 1;

/// The letters of formats. For each: its meaning, the part of a date or time that it stands for, and the name of this
/// part in messages.
const LETTERS: [(char, Letter, Field, &str); 16] = [
    ('Y', Letter::Year, Field::Year, "year"),
    ('y', Letter::ShortYear, Field::Year, "year"),
    ('m', Letter::Month, Field::Month, "month"),
    ('B', Letter::MonthName, Field::Month, "month"),
    ('b', Letter::ShortMonthName, Field::Month, "month"),
    ('d', Letter::Day, Field::Day, "day"),
    ('j', Letter::DayOfYear, Field::DayOfYear, "day of the year"),
    ('A', Letter::WeekdayName, Field::Weekday, "weekday"),
    ('a', Letter::ShortWeekdayName, Field::Weekday, "weekday"),
    ('H', Letter::Hour, Field::Hour, "hour"),
    ('I', Letter::HourOfTwelve, Field::Hour, "hour"),
    ('p', Letter::Half, Field::Half, "half of the day"),
    ('M', Letter::Minute, Field::Minute, "minute"),
    ('S', Letter::Second, Field::Second, "second"),
    ('f', Letter::Microseconds, Field::Microseconds, "fraction"),
    ('z', Letter::Offset, Field::Offset, "offset"),
];

/// The number of letters for dates, which come first; the others are for timestamps only.
const OF_DATES: usize = 9;

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// The halves of a day: before noon, and from noon on.
const HALVES: [&str; 2] = ["AM", "PM"];

const WEEKDAYS: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

/// The most digits of a fraction that are read, down to nanoseconds.
const FRACTION_DIGITS: usize = 9;

/// The type of the values that a format reads or writes: dates or timestamps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MomentKind {
    /// The format is for dates.
    Date,
    /// The format is for timestamps.
    Timestamp,
}

/// A piece of a format: a text, white space, or a letter for a part of the moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Piece<'f> {
    /// A text of the format that stands for itself.
    Text(&'f str),
    /// White space of the format, which matches any amount of white space.
    White(&'f str),
    /// A letter of the format, for a part of the moment, by the letter's index in `LETTERS`.
    Letter(usize),
}

/// The pieces of a format, in order; a malformed piece is the last one.
#[derive(Clone, Copy, Debug)]
struct Pieces<'f>(&'f str);

impl<'f> Iterator for Pieces<'f> {
    /// A piece, or the character after a `%` that begins no letter; `None` at the end of the format.
    type Item = Result<Piece<'f>, Option<char>>;

    fn next(&mut self) -> Option<Self::Item> {
        let first = self.0.chars().next()?;
        if first == '%' {
            let letter = self.0.chars().nth(1);
            let found = LETTERS.iter().position(|(name, ..)| Some(*name) == letter);
            let piece = match (letter, found) {
                (Some('%'), _) => Piece::Text(&self.0[..1]),
                (_, Some(at)) => Piece::Letter(at),
                (letter, None) => {
                    self.0 = "";
                    return Some(Err(letter));
                }
            };
            self.0 = &self.0[2..];
            return Some(Ok(piece));
        }
        let is_white = first.is_ascii_whitespace();
        let ends = |c: char| c == '%' || c.is_ascii_whitespace() != is_white;
        let (piece, rest) = self.0.split_at(self.0.find(ends).unwrap_or(self.0.len()));
        self.0 = rest;
        Some(Ok(if is_white { Piece::White(piece) } else { Piece::Text(piece) }))
    }
}

/// The error for a text that is not a valid format of times, or not a valid time zone.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TimeFormatError {
    /// The error message for the wrong text.
    pub message: String,
    /// The hint for how to correct the wrong text.
    pub hint: String,
}

impl MomentKind {
    fn letters(self) -> &'static [(char, Letter, Field, &'static str)] {
        if self == MomentKind::Date { &LETTERS[..OF_DATES] } else { &LETTERS }
    }

    const fn name(self) -> &'static str {
        if matches!(self, MomentKind::Date) { "a date" } else { "a timestamp" }
    }

    /// Checks a format for values of this type: for writing, or for reading if `is_read`. A format for reading must
    /// have a year, and no part twice.
    ///
    /// # Errors
    /// If the format is too long, or has a part that values of this type lack; if `is_read`, also if it lacks a year, or has a
    /// part twice.
    pub fn check(self, format: &str, is_read: bool) -> Result<(), TimeFormatError> {
        let wrong = |message: String, hint: &str| Err(TimeFormatError { message, hint: hint.to_owned() });
        if format.len() > TIME_FORMAT_BYTES {
            return wrong(
                format!("the format has {} bytes; the limit is {TIME_FORMAT_BYTES} bytes", format.len()),
                "use a shorter one",
            );
        }
        let known = || self.letters().iter().map(|(letter, ..)| format!("%{letter}")).collect::<Vec<_>>().join(" ");
        let mut letters = [None; FIELDS];
        for piece in Pieces(format) {
            let at = match piece {
                Err(None) => return wrong("the format ends with a `%`".to_owned(), "write `%%` for a percent sign"),
                Err(Some(letter)) => {
                    let letter = letter.to_string();
                    let message = format!(
                        "the format has `%{}`, which is not a part of {}",
                        Excerpt::quoted(&letter),
                        self.name()
                    );
                    return wrong(message, &format!("use the parts {}, or `%%` for a percent sign", known()));
                }
                Ok(Piece::Letter(at)) => at,
                Ok(_) => continue,
            };
            let (letter, _, field, name) = LETTERS[at];
            if at >= self.letters().len() {
                return wrong(
                    format!("the format has `%{letter}`, but a date has no {name}"),
                    &format!("use the parts of a date: {}", known()),
                );
            }
            if let (true, Some(before)) = (is_read, letters[field as usize].replace(letter)) {
                return wrong(
                    format!("the format has the {name} twice, as `%{before}` and as `%{letter}`"),
                    "leave one of the two parts out",
                );
            }
        }
        let half = letters[Field::Half as usize];
        match (letters[Field::Hour as usize], half) {
            (Some('I'), None) if is_read => {
                return wrong(
                    "the format has `%I`, but not the half of the day".to_owned(),
                    "write `%p` for `AM` or `PM`, or `%H`",
                );
            }
            (Some('H') | None, Some(_)) if is_read => {
                return wrong("the format has `%p`, but no hour from 1 to 12".to_owned(), "write `%I` for the hour");
            }
            _ => {}
        }
        match letters[Field::Year as usize] {
            None if is_read => {
                wrong(format!("the format must have the year to read a {}", &self.name()[2..]), "write `%Y`")
            }
            _ => Ok(()),
        }
    }
}

/// Returns true if `format` has an offset from UTC.
#[must_use]
pub fn has_offset(format: &str) -> bool {
    Pieces(format).any(|piece| matches!(piece, Ok(Piece::Letter(at)) if LETTERS[at].2 == Field::Offset))
}

/// Reads decimal digits; `None` if their count is not in `lengths`, or the number is not from `least` to `most`.
fn digits(text: &[u8], lengths: RangeInclusive<usize>, least: i32, most: i32) -> Option<i32> {
    if !lengths.contains(&text.len()) || !text.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let number = text.iter().fold(0, |number, digit| 10 * number + i32::from(digit - b'0'));
    (least..=most).contains(&number).then_some(number)
}

/// The index of a name among `names`, from 1. If `short`, the text has the first three letters of a name.
fn named(text: &[u8], names: &[&str], short: bool) -> Option<i32> {
    let is_it = |name: &&str| if short { &name[..3] } else { *name }.as_bytes().eq_ignore_ascii_case(text);
    names.iter().position(is_it).map(|at| at as i32 + 1)
}

/// Reads `Z`, `+HHMM` or `+HH:MM` as minutes.
fn offset(text: &[u8]) -> Option<i32> {
    let (sign, [a, b, rest @ ..]) = text.split_first()? else { return (text == b"Z").then_some(0) };
    let minutes = if let [b':', minutes @ ..] = rest { minutes } else { rest };
    let minutes = 60 * digits(&[*a, *b], 2..=2, 0, 23)? + digits(minutes, 2..=2, 0, 59)?;
    match sign {
        b'+' => Some(minutes),
        b'-' => Some(-minutes),
        _ => None,
    }
}

impl Letter {
    /// The most bytes of a text that the letter is read from.
    const fn longest(self) -> usize {
        match self {
            Letter::Year => 4,
            Letter::ShortYear | Letter::Month | Letter::Day | Letter::Minute | Letter::Second => 2,
            Letter::Hour | Letter::HourOfTwelve | Letter::Half => 2,
            Letter::ShortMonthName | Letter::ShortWeekdayName | Letter::DayOfYear => 3,
            Letter::MonthName | Letter::WeekdayName => 9,
            Letter::Microseconds => FRACTION_DIGITS,
            Letter::Offset => 6,
        }
    }

    /// Reads the value that the letter stands for from exactly these bytes; `None` if they do not spell one.
    fn read(self, text: &[u8]) -> Option<i32> {
        match self {
            Letter::Year => digits(text, 4..=4, 0, 9999),
            // The centuries are those of POSIX.
            Letter::ShortYear => {
                digits(text, 2..=2, 0, 99).map(|year| if year < 69 { 2000 + year } else { 1900 + year })
            }
            Letter::Month => digits(text, 1..=2, 1, 12),
            Letter::MonthName => named(text, &MONTHS, false),
            Letter::ShortMonthName => named(text, &MONTHS, true),
            Letter::Day => match text {
                [b' ', day] => digits(&[*day], 1..=1, 1, 9),
                _ => digits(text, 1..=2, 1, 31),
            },
            Letter::DayOfYear => digits(text, 1..=3, 1, 366),
            Letter::WeekdayName => named(text, &WEEKDAYS, false),
            Letter::ShortWeekdayName => named(text, &WEEKDAYS, true),
            Letter::Hour => digits(text, 1..=2, 0, 23),
            Letter::HourOfTwelve => digits(text, 1..=2, 1, 12),
            Letter::Half => {
                HALVES.iter().position(|half| half.as_bytes().eq_ignore_ascii_case(text)).map(|at| at as i32)
            }
            Letter::Minute => digits(text, 1..=2, 0, 59),
            // Leap seconds are refused once everything is read, so that no other way to read the digits is tried.
            Letter::Second => digits(text, 1..=2, 0, 61),
            // Digits beyond microseconds are cut off, which rounds down.
            Letter::Microseconds => digits(text, 1..=FRACTION_DIGITS, 0, 999_999_999)
                .map(|fraction| fraction * 10_i32.pow((FRACTION_DIGITS - text.len()) as u32) / 1_000),
            Letter::Offset => offset(text),
        }
    }

    /// True if the letter is read from digits alone.
    const fn is_digits(self) -> bool {
        !matches!(
            self,
            Letter::MonthName
                | Letter::ShortMonthName
                | Letter::WeekdayName
                | Letter::ShortWeekdayName
                | Letter::Half
                | Letter::Offset
        )
    }

    /// The length and the value of the longest prefix of `text` that spells the letter, with a length among `lengths`.
    fn longest_of(self, text: &[u8], lengths: RangeInclusive<usize>) -> Option<(usize, i32)> {
        let (least, most) = lengths.into_inner();
        (least..=most.min(text.len())).rev().find_map(|length| Some((length, self.read(&text[..length])?)))
    }
}

/// The fewest bytes of a text that the letter at `piece` may be read from. If letters of digits are adjacent, each must
/// have all of its digits: by `%d%m%Y`, `1022026` could be the first or the tenth of February. A fraction may have any
/// number of digits.
fn shortest(pieces: &[Piece<'_>], piece: usize) -> usize {
    let letter = |at: Option<usize>| match at.and_then(|at| pieces.get(at)) {
        Some(Piece::Letter(at)) => Some(LETTERS[*at].1).filter(|letter| letter.is_digits()),
        _ => None,
    };
    match letter(Some(piece)) {
        Some(Letter::Microseconds) | None => 1,
        Some(own) if letter(piece.checked_sub(1)).or(letter(Some(piece + 1))).is_some() => own.longest(),
        Some(_) => 1,
    }
}

/// The value of each part of the moment that was read from a text; `None` for a part that was not read.
type FieldValues = [Option<i32>; FIELDS];

/// Reads the whole text by a format. If a letter can be read from several lengths, the longest is tried first. `None`
/// if the text does not match. If `is_padded`, adjacent numbers must have all of their digits.
fn found(format: &str, text: &str, is_padded: bool) -> Option<FieldValues> {
    let text = text.as_bytes();
    let pieces: SmallVec<[Piece<'_>; 24]> = Pieces(format).collect::<Result<_, _>>().ok()?;
    let mut found: FieldValues = [None; FIELDS];
    // The piece, the start and the length of each letter that was read. Each letter occurs once, so there are few ways to read a
    // text.
    let mut taken: SmallVec<[(usize, usize, usize); 16]> = SmallVec::new();
    let (mut piece, mut at, mut most) = (0, 0, usize::MAX);
    loop {
        let rest = &text[at..];
        let length = match pieces.get(piece) {
            None if rest.is_empty() => return Some(found),
            None => None,
            Some(Piece::Text(wanted)) => rest.starts_with(wanted.as_bytes()).then_some(wanted.len()),
            Some(Piece::White(_)) => {
                Some(rest.iter().take_while(|byte| byte.is_ascii_whitespace()).count()).filter(|count| *count > 0)
            }
            Some(Piece::Letter(letter)) => {
                let (_, letter, field, _) = LETTERS[*letter];
                let least = if is_padded { shortest(&pieces, piece) } else { 1 };
                let lengths = least..=most.min(letter.longest());
                letter.longest_of(rest, lengths).map(|(length, value)| {
                    found[field as usize] = Some(value);
                    taken.push((piece, at, length));
                    length
                })
            }
        };
        (piece, at, most) = match length {
            Some(length) => (piece + 1, at + length, usize::MAX),
            // The letter that was read last is read again, from fewer bytes.
            None => {
                let (before, from, length) = taken.pop()?;
                (before, from, length - 1)
            }
        };
    }
}

fn date_of(found: &FieldValues) -> Option<Date> {
    let part = |what: Field| found[what as usize];
    let year = part(Field::Year)?;
    match part(Field::DayOfYear) {
        Some(day) => {
            let date = Date(Date::of_parts(year, 1, 1)?.0 + day - 1);
            (date.civil().0 == year).then_some(date)
        }
        None => Date::of_parts(year, part(Field::Month).unwrap_or(1), part(Field::Day).unwrap_or(1)),
    }
}

/// Reads a date from `text` by `format`. A month or a day that the format lacks is 1; a weekday is read, but not
/// checked. `None` if the text does not match the format.
#[must_use]
pub fn read_date(format: &str, text: &str) -> Option<Date> {
    date_of(&found(format, text, false)?)
}

/// Reads a date in a file by `format`, as [`read_date`] does, but numbers without a separator in between must have all
/// of their digits: `01022026` for `%d%m%Y`. Otherwise, `1022026` could be the first or the tenth of February.
#[must_use]
pub fn read_padded_date(format: &str, text: &str) -> Option<Date> {
    date_of(&found(format, text, true)?)
}

/// Reads a timestamp from `text` by `format`. Parts of the time that the format lacks are 0, and without an offset the
/// time is in UTC. `None` if the text does not match the format.
#[must_use]
pub fn read_timestamp(format: &str, text: &str) -> Option<Timestamp> {
    timestamp_of(&found(format, text, false)?)
}

/// Reads a timestamp in a file by `format`, as [`read_timestamp`] does, but numbers without a separator in between must
/// have all of their digits: `0102` for `%d%m`.
#[must_use]
pub fn read_padded_timestamp(format: &str, text: &str) -> Option<Timestamp> {
    timestamp_of(&found(format, text, true)?)
}

fn timestamp_of(found: &FieldValues) -> Option<Timestamp> {
    if found[Field::Second as usize].is_some_and(|second| second >= 60) {
        return None;
    }
    let part = |what: Field| i64::from(found[what as usize].unwrap_or(0));
    // Twelve o'clock is the first hour of its half of the day.
    let hour = match found[Field::Half as usize] {
        Some(half) => part(Field::Hour) % 12 + 12 * i64::from(half),
        None => part(Field::Hour),
    };
    let minutes = hour * 60 + part(Field::Minute) - part(Field::Offset);
    let micros = (minutes * 60 + part(Field::Second)) * 1_000_000 + part(Field::Microseconds);
    Some(Timestamp(date_of(found)?.midnight()?.0 + micros)).filter(|moment| moment.has_text())
}

/// A moment with the format by which it is printed. The printed text ends where the format is malformed.
#[derive(Clone, Copy, Debug)]
pub struct FormattedMoment<'f> {
    /// The format that the moment is printed by.
    pub format: &'f str,
    /// The moment to print, which must be in the years 1 to 9999.
    pub moment: Timestamp,
}

impl FormattedMoment<'_> {
    /// The most bytes that the printed moment can have.
    #[must_use]
    pub fn most(&self) -> usize {
        // A letter takes two bytes of the format, and at most nine of the text.
        self.format.len() * 5
    }
}

impl fmt::Display for FormattedMoment<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let date = self.moment.date();
        let (year, month, day) = date.civil();
        let (hour, minute, second, micros) = self.moment.time();
        let (month_name, weekday_name) = (MONTHS[month as usize - 1], WEEKDAYS[date.weekday() as usize - 1]);
        for piece in Pieces(self.format) {
            let letter = match piece {
                Ok(Piece::Text(text) | Piece::White(text)) => {
                    f.write_str(text)?;
                    continue;
                }
                Ok(Piece::Letter(at)) => LETTERS[at].1,
                Err(_) => return Ok(()),
            };
            match letter {
                Letter::Year => write!(f, "{year:04}"),
                Letter::ShortYear => write!(f, "{:02}", year.rem_euclid(100)),
                Letter::Month => write!(f, "{month:02}"),
                Letter::MonthName => f.write_str(month_name),
                Letter::ShortMonthName => f.write_str(&month_name[..3]),
                Letter::Day => write!(f, "{day:02}"),
                Letter::DayOfYear => write!(f, "{:03}", date.day_of_year()),
                Letter::WeekdayName => f.write_str(weekday_name),
                Letter::ShortWeekdayName => f.write_str(&weekday_name[..3]),
                Letter::Hour => write!(f, "{hour:02}"),
                Letter::HourOfTwelve => write!(f, "{:02}", (hour + 11) % 12 + 1),
                Letter::Half => f.write_str(HALVES[usize::from(hour >= 12)]),
                Letter::Minute => write!(f, "{minute:02}"),
                Letter::Second => write!(f, "{second:02}"),
                Letter::Microseconds => write!(f, "{micros:06}"),
                Letter::Offset => f.write_str("+0000"),
            }?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moment(text: &str) -> Timestamp {
        text.parse().expect("a timestamp")
    }

    #[test]
    fn texts_are_read_whole() {
        for (format, text, expected) in [
            ("%d.%m.%Y", "20.11.2026", Some("2026-11-20")),
            ("%d.%m.%Y", "1.2.2026", Some("2026-02-01")),
            ("%d.%m.%Y", "20.11.2026 ", None),
            ("%d.%m.%Y", "29.02.2026", None),
            ("%d.%m.%Y", "20.11.26", None),
            ("%d.%m.%Y", "20.11.0000", None),
            ("%Y%m%d", "20261120", Some("2026-11-20")),
            ("%Y%m%d", "2026131", Some("2026-01-31")),
            ("%Y%m%d", "202612", Some("2026-01-02")),
            ("%d %b %y", "20 nov 68", Some("2068-11-20")),
            ("%d %b %y", "20 NOV 69", Some("1969-11-20")),
            ("%A, %d %B %Y", "friday,  20 November 2026", Some("2026-11-20")),
            ("%a %d %b %Y", "Mon 20 Nov 2026", Some("2026-11-20")),
            ("%B%Y", "May2026", Some("2026-05-01")),
            ("%Y-%j", "2024-366", Some("2024-12-31")),
            ("%Y-%j", "2023-366", None),
            ("%Y-%j", "2023-0", None),
            ("%Y", "2026", Some("2026-01-01")),
            ("%%%Y", "%2026", Some("2026-01-01")),
            ("%m%d %Y", "1 5 2026", Some("2026-01-05")),
            ("\u{e9}%Y", "\u{e9}2026", Some("2026-01-01")),
            ("%Y", "\u{662}026", None),
        ] {
            let expected = expected.map(|text| text.parse().expect("a date"));
            assert_eq!(read_date(format, text), expected, "{format} {text}");
        }
    }

    #[test]
    fn digits_of_files_next_to_digits_have_their_zeros() {
        for (format, text, expected) in [
            ("%d%m%Y", "01022026", Some("2026-02-01")),
            ("%d%m%Y", "1022026", None),
            ("%Y%m%d", "2026131", None),
            ("%y%m%d", "50101", None),
            ("%Y%j", "2026032", Some("2026-02-01")),
            ("%Y%j", "202632", None),
            ("%m%d %Y", "01 5 2026", Some("2026-01-05")),
            ("%m%d %Y", "1 5 2026", None),
            ("%d%b%Y", "1Feb2026", Some("2026-02-01")),
            ("%d.%m.%Y", "1.2.2026", Some("2026-02-01")),
        ] {
            let expected = expected.map(|text| text.parse().expect("a date"));
            assert_eq!(read_padded_date(format, text), expected, "{format} {text}");
        }
        for (format, text, expected) in [
            ("%Y %H%M", "2026 0102", Some("2026-01-01T01:02:00Z")),
            ("%Y %H%M", "2026 12", None),
            ("%Y %H:%M", "2026 1:2", Some("2026-01-01T01:02:00Z")),
            ("%Y %S%f", "2026 015", Some("2026-01-01T00:00:01.5Z")),
            ("%Y %S%f", "2026 15", None),
        ] {
            assert_eq!(read_padded_timestamp(format, text), expected.map(moment), "{format} {text}");
        }
    }

    #[test]
    fn offsets_lead_to_utc() {
        for (format, text, expected) in [
            ("%Y-%m-%dT%H:%M:%S%z", "2026-11-20T10:15:42Z", Some("2026-11-20T10:15:42Z")),
            ("%Y-%m-%dT%H:%M:%S%z", "2026-11-20T00:15:42+01:30", Some("2026-11-19T22:45:42Z")),
            ("%Y-%m-%dT%H:%M:%S%z", "2026-11-20T10:15:42-0800", Some("2026-11-20T18:15:42Z")),
            ("%Y-%m-%dT%H:%M:%S%z", "2026-11-20T10:15:42+2400", None),
            ("%Y-%m-%dT%H:%M:%S%z", "2026-11-20T10:15:42+1", None),
            ("%Y-%m-%dT%H:%M:%S%z", "2026-11-20T10:15:42", None),
            ("%Y %H%M", "2026 12", Some("2026-01-01T01:02:00Z")),
            ("%Y %S.%f", "2026 1.5", Some("2026-01-01T00:00:01.5Z")),
            ("%Y %S.%f", "2026 1.000001", Some("2026-01-01T00:00:01.000001Z")),
            ("%Y %S.%f", "2026 1.0000001", Some("2026-01-01T00:00:01Z")),
            ("%Y %S.%f", "1969 1.123456789", Some("1969-01-01T00:00:01.123456Z")),
            ("%Y %S.%f", "2026 1.0000000001", None),
            ("%Y %I:%M %p", "2026 12:30 am", Some("2026-01-01T00:30:00Z")),
            ("%Y %I:%M %p", "2026 12:30 PM", Some("2026-01-01T12:30:00Z")),
            ("%Y %I:%M%p", "2026 1:05PM", Some("2026-01-01T13:05:00Z")),
            ("%Y %p %I", "2026 AM 11", Some("2026-01-01T11:00:00Z")),
            ("%Y %I %p", "2026 0 AM", None),
            ("%Y %I %p", "2026 13 PM", None),
            ("%Y %S", "2026 60", None),
            ("%Y %S%f", "2026 615", None),
            ("%Y %H", "2026 24", None),
            ("%Y%z", "0001+0001", None),
            ("%Y-%m-%d %H:%M%z", "9999-12-31 23:59-0001", None),
        ] {
            assert_eq!(read_timestamp(format, text), expected.map(moment), "{format} {text}");
        }
    }

    #[test]
    fn what_is_written_is_read_again() {
        let all = "%a %A %b %B %d %f %H %I %p %j %m %M %S %y %Y %z %%";
        let write = |format, moment| FormattedMoment { format, moment }.to_string();
        assert_eq!(
            write(all, moment("0987-03-05T04:05:06.000700Z")),
            "Mon Monday Mar March 05 000700 04 04 AM 064 03 05 06 87 0987 +0000 %"
        );
        let mut random = fastrand::Rng::with_seed(3);
        let span = i64::from(Date::FIRST.0) * Timestamp::DAY..i64::from(Date::LAST.0) * Timestamp::DAY;
        for _ in 0..20_000 {
            let of = Timestamp(random.i64(span.clone()));
            for format in
                ["%Y-%m-%dT%H:%M:%S.%f%z", "%A %j %Y%H%M%S%f", "%Y-%m-%d %I%p %M:%S.%f", "%Y%B%d%a%H:%M:%S.%f"]
            {
                let text = write(format, of);
                assert_eq!(read_timestamp(format, &text), Some(of), "{format} {text}");
                assert!(text.len() <= FormattedMoment { format, moment: of }.most());
            }
        }
    }

    #[test]
    fn wrong_formats_are_refused() {
        for (kind, is_read, format, message) in [
            (MomentKind::Date, true, "%Y %H", "a date has no hour"),
            (MomentKind::Date, false, "%z", "a date has no offset"),
            (MomentKind::Date, true, "%Y %q", "`%q`, which is not a part of a date"),
            (MomentKind::Timestamp, false, "%", "ends with a `%`"),
            (MomentKind::Timestamp, true, "%Y %m %b", "the month twice, as `%m` and as `%b`"),
            (MomentKind::Timestamp, true, "%Y %I:%M", "`%I`, but not the half of the day"),
            (MomentKind::Timestamp, true, "%Y %H:%M %p", "`%p`, but no hour from 1 to 12"),
            (MomentKind::Timestamp, true, "%Y %p", "`%p`, but no hour from 1 to 12"),
            (MomentKind::Timestamp, true, "%Y %H %I", "the hour twice, as `%H` and as `%I`"),
            (MomentKind::Timestamp, true, "%H:%M", "must have the year to read a timestamp"),
        ] {
            let wrong = kind.check(format, is_read).expect_err(format);
            assert!(wrong.message.contains(message), "{}", wrong.message);
        }
        assert!(MomentKind::Timestamp.check(&"%Y".repeat(128), false).is_ok());
        assert!(MomentKind::Timestamp.check(&"x".repeat(257), false).is_err());
    }
}
