//! Operators that parse dates and timestamps from texts, and format them as texts. The format is an operand.

use super::convert::utf8;
use super::made::ArenaText;
use super::parse::of_text;
use super::{invalid, text_fault};
use crate::definition::{Meaning, OpDef, Typing, UNARY, ex, param};
use crate::kernel::strict;
use crate::typing::{Argument, Signature, TypeFault, refuse};
use cembra_expr::ArgumentForm;
use cembra_runtime::{Bytes, Context, Date, Fault, FaultKind, QType, Scalar, Text, TimeTextError, Timestamp};
use cembra_value::time_format::{FormattedMoment, MomentKind, read_date, read_timestamp};
use cembra_value::{Code, ScalarValue, Value};
use smallvec::SmallVec;
use std::fmt::Write;

/// The signature of an operator on a text, date or timestamp and a format. A literal format is checked.
fn types(
    operator: &'static str,
    args: &[Argument<'_>],
    takes: fn(Scalar) -> bool,
    expected: &str,
    kind: MomentKind,
    is_read: bool,
    ret: QType,
) -> Result<Signature, TypeFault> {
    let x = args[0].qtype;
    if !x.scalar().is_some_and(takes) {
        return refuse(0, format!("{operator} expects {expected}, found {x}"));
    }
    let optional = args.iter().any(|arg| arg.qtype.is_optional());
    let mut operands: SmallVec<[QType; 4]> = SmallVec::new();
    operands.push(if optional { x.to_optional() } else { x.clone() });
    if let Some(format) = args.get(1) {
        let Some(ScalarValue::Text(format)) = format.literal.and_then(Value::as_scalar) else {
            let fault = TypeFault::mismatch(format!("{operator} needs a literal text for `format`"), Some(1));
            return Err(fault.hint("write the format here, as in \"%d.%m.%Y\": it is read when the model is compiled"));
        };
        if let Err(wrong) = kind.check(format, is_read) {
            let fault = TypeFault { code: Code::Arguments, ..TypeFault::mismatch(wrong.message, Some(1)) };
            return Err(fault.hint(wrong.hint));
        }
        operands.push(QType::of(Scalar::Text, optional));
    }
    if args.len() > 2 {
        let message = format!("{operator} takes a text and a format, found {} arguments", args.len());
        return Err(TypeFault { code: Code::Arguments, message, operand: Some(2), hint: None });
    }
    Ok(Signature { operands, ret: if optional { ret.to_optional() } else { ret } })
}

/// Parses a text by a format. `read` returns `None` if the text does not match.
fn by_format<T>(text: Text<'static>, format: Text<'static>, read: fn(&str, &str) -> Option<T>) -> Result<T, Fault> {
    read(format.as_str(), text.as_str()).ok_or(text_fault(FaultKind::Parse, text))
}

/// Reads a text as a date of the years 1 to 9999.
fn plain_date(text: &str) -> Result<Date, TimeTextError> {
    Some(Date::from_text(text)?).filter(|date| date.has_text()).ok_or(TimeTextError)
}

/// Reads a text as a timestamp of the years 1 to 9999.
fn plain_timestamp(text: &str) -> Result<Timestamp, TimeTextError> {
    Some(Timestamp::from_data_text(text)?).filter(|moment| moment.has_text()).ok_or(TimeTextError)
}

const PARSE_FAULTS: &[FaultKind] = &[FaultKind::Parse, FaultKind::Invalid];

macro_rules! parse {
    ($name:literal, $alias:literal, $summary:literal, $ty:ident, $plain:expr, $read:expr, [$($example:expr),*]) => {
        OpDef {
            name: $name,
            aliases: &[$alias],
            summary: $summary,
            params: &[param("x"), param("format").of(ArgumentForm::TimeFormat)],
            variadic: true,
            faults: PARSE_FAULTS,
            typing: Typing::Rule(|args| {
                let result = QType::Scalar(Scalar::$ty);
                types($name, args, Scalar::is_string, "a text or bytes", MomentKind::$ty, true, result)
            }),
            meaning: Meaning::Overloads(&[
                strict!(try |x: Text<'static>| -> $ty { of_text(x, $plain) }),
                strict!(try |x: Bytes<'static>| -> $ty { of_text(utf8(x)?, $plain) }),
                strict!(try |x: Text<'static>, format: Text<'static>| -> $ty { by_format(x, format, $read) }),
                strict!(try |x: Bytes<'static>, format: Text<'static>| -> $ty { by_format(utf8(x)?, format, $read) }),
            ]),
            examples: &[$($example),*],
            ..UNARY
        }
    };
}

macro_rules! try_parse {
    ($name:literal, $alias:literal, $summary:literal, $ty:ident, $plain:expr, $read:expr, [$($example:expr),*]) => {
        OpDef {
            name: $name,
            aliases: &[$alias],
            summary: $summary,
            params: &[param("x"), param("format").of(ArgumentForm::TimeFormat)],
            variadic: true,
            typing: Typing::Rule(|args| {
                let result = QType::Optional(Scalar::$ty);
                types($name, args, Scalar::is_string, "a text or bytes", MomentKind::$ty, true, result)
            }),
            meaning: Meaning::Overloads(&[
                strict!(|x: Text<'static>| -> Option<$ty> { of_text(x, $plain).ok() }),
                strict!(|x: Bytes<'static>| -> Option<$ty> {
                    utf8(x).and_then(|x| of_text(x, $plain)).ok()
                }),
                strict!(|x: Text<'static>, format: Text<'static>| -> Option<$ty> { $read(format.as_str(), x.as_str()) }),
                strict!(|x: Bytes<'static>, format: Text<'static>| -> Option<$ty> {
                    utf8(x).ok().and_then(|x| $read(format.as_str(), x.as_str()))
                }),
            ]),
            examples: &[$($example),*],
            ..UNARY
        }
    };
}

pub(crate) static PARSE_DATE: OpDef = parse!(
    "strings.parse_date",
    "parse_date",
    "The date that the string spells, as `2026-11-20`, or in the form of a literal format such as `%d.%m.%Y`; an error if it does not spell a date of the years 1 to 9999.",
    Date,
    plain_date,
    read_date,
    [
        ex("strings.parse_date(\"2026-11-20\")", "date{2026-11-20}"),
        ex("strings.parse_date(\"20.11.2026\", \"%d.%m.%Y\")", "date{2026-11-20}")
    ]
);

pub(crate) static PARSE_TIMESTAMP: OpDef = parse!(
    "strings.parse_timestamp",
    "parse_timestamp",
    "The timestamp that the string spells, as `2026-11-20T10:15:00Z` or `2026-11-20T11:15:00.5+01:00`, or in the form of a literal format such as `%Y-%m-%d %H:%M`, in UTC if the format has no `%z`. Digits of a fraction after the sixth are cut off. An error if the string does not spell a timestamp of the years 1 to 9999.",
    Timestamp,
    plain_timestamp,
    read_timestamp,
    [
        ex("strings.parse_timestamp(\"1970-01-01T01:00:01.5+01:00\")", "timestamp{1970-01-01T00:00:01.5Z}"),
        ex(
            "strings.parse_timestamp(\"20 Nov 2026 10:15 +0100\", \"%d %b %Y %H:%M %z\")",
            "timestamp{2026-11-20T09:15:00Z}"
        )
    ]
);

pub(crate) static TRY_PARSE_DATE: OpDef = try_parse!(
    "strings.try_parse_date",
    "try_parse_date",
    "The date that the string spells, as `2026-11-20`, or in the form of a literal format such as `%d.%m.%Y`; missing if it does not spell a date of the years 1 to 9999.",
    Date,
    plain_date,
    read_date,
    [
        ex("strings.try_parse_date(\"2026-02-29\")", "date?{NA}"),
        ex("strings.try_parse_date(\"20.11.2026\", \"%d.%m.%Y\")", "date?{2026-11-20}")
    ]
);

pub(crate) static TRY_PARSE_TIMESTAMP: OpDef = try_parse!(
    "strings.try_parse_timestamp",
    "try_parse_timestamp",
    "The timestamp that the string spells, as `2026-11-20T10:15:00Z` or `2026-11-20T11:15:00.5+01:00`, or in the form of a literal format such as `%Y-%m-%d %H:%M`; missing if it does not spell a timestamp of the years 1 to 9999.",
    Timestamp,
    plain_timestamp,
    read_timestamp,
    [ex("strings.try_parse_timestamp(\"2026-11-20\")", "timestamp?{NA}")]
);

/// Formats a date or timestamp by a format. Fails outside of the years 1 to 9999.
fn written(
    context: &mut Context,
    moment: Option<Timestamp>,
    number: i64,
    format: Text<'static>,
) -> Result<Text<'static>, Fault> {
    let Some(moment) = moment.filter(|moment| moment.has_text()) else {
        return Err(Fault::with(FaultKind::TimeRange, number.cast_unsigned()));
    };
    let text = FormattedMoment { format: format.as_str(), moment };
    let mut made = ArenaText::new(context, text.most())?;
    write!(made, "{text}").map_err(|_| invalid("the format cannot be written"))?;
    Ok(made.finish())
}

const FORMAT_FAULTS: &[FaultKind] = &[FaultKind::TimeRange, FaultKind::Invalid, FaultKind::ArenaLimit];

pub(crate) static FORMAT_DATE: OpDef = OpDef {
    name: "strings.format_date",
    aliases: &["format_date"],
    summary: "The date as a text in the form of a literal format such as `%d.%m.%Y`: `%Y` is the year in four digits, `%y` in two, `%m` the month, `%b` and `%B` its short and its full name, `%d` the day of the month, `%j` the day of the year, `%a` and `%A` the short and the full name of the weekday, `%%` a percent sign. An error outside of the years 1 to 9999.",
    params: &[param("d"), param("format").of(ArgumentForm::TimeFormat)],
    faults: FORMAT_FAULTS,
    typing: Typing::Rule(|args| {
        types(
            "strings.format_date",
            args,
            |scalar| scalar == Scalar::Date,
            "a date",
            MomentKind::Date,
            false,
            QType::Scalar(Scalar::Text),
        )
    }),
    meaning: Meaning::Overloads(&[strict!(try in context |d: Date, format: Text<'static>| -> Text<'static> {
        // A fault names the date by its own bits.
        written(context, d.midnight(), i64::from(d.0.cast_unsigned()), format)
    })]),
    examples: &[
        ex("strings.format_date(date\"2026-11-20\", \"%d.%m.%Y\")", "'20.11.2026'"),
        ex("strings.format_date(date\"2026-11-20\", \"%A, %d %B\")", "'Friday, 20 November'"),
    ],
    ..UNARY
};

pub(crate) static FORMAT_TIMESTAMP: OpDef = OpDef {
    name: "strings.format_timestamp",
    aliases: &["format_timestamp"],
    summary: "The timestamp as a text in the form of a literal format such as `%Y-%m-%d %H:%M`, in UTC. The format may have all fields of `strings.format_date`, and `%H`, `%M`, `%S` for the hour, minute and second, `%I` for the hour from 1 to 12 with `%p` for `AM` or `PM`, `%f` for six digits of the second's fraction, `%z` for the offset `+0000`. An error outside of the years 1 to 9999.",
    params: &[param("t"), param("format").of(ArgumentForm::TimeFormat)],
    faults: FORMAT_FAULTS,
    typing: Typing::Rule(|args| {
        let takes = |scalar| scalar == Scalar::Timestamp;
        types(
            "strings.format_timestamp",
            args,
            takes,
            "a timestamp",
            MomentKind::Timestamp,
            false,
            QType::Scalar(Scalar::Text),
        )
    }),
    meaning: Meaning::Overloads(&[strict!(try in context |t: Timestamp, format: Text<'static>| -> Text<'static> {
        written(context, Some(t), t.0, format)
    })]),
    examples: &[ex(
        "strings.format_timestamp(timestamp\"2026-11-20T10:15:42.5Z\", \"%d.%m.%Y %H:%M:%S.%f\")",
        "'20.11.2026 10:15:42.500000'",
    )],
    ..UNARY
};
