//! Runs programs on requests as services do: with the inputs in JSON, and in a Rust struct whose lists have items of a Rust type. Both are
//! evaluated by machine code and by the interpreter. The answers must equal the answers of the reference subject, which gets the inputs as dynamic
//! values.

use crate::edit::stripped;
use crate::subject::{Answer, Failure, Row, shown};
use cembra::explain::{RowPlayer, print};
use cembra::{Backend, Input, Mask, Model, ModelExecutor, Optional, Options, Output};
use cembra_expr::Program;
use cembra_runtime::{ArrayKind, QType, Scalar};
use cembra_value::{Array, Limits, ScalarValue, Value};
use std::collections::HashMap;
use std::fmt::Write;

/// The possible fields of the input `items`, with their types. A program declares some of them, in any order.
pub(crate) const FIELDS: [(&str, &str); 6] =
    [("price", "f64"), ("count", "i64"), ("kind", "text"), ("note", "text?"), ("weight", "f64?"), ("vip", "bool")];

/// The inputs of requests besides `items`, with their types.
pub(crate) const INPUTS: [(&str, &str); 5] = [
    ("marks", "[f64?]"),
    ("rates", "dict[text, f64]"),
    ("coupon", "{percent: f64, code: text}?"),
    ("code", "text"),
    ("limit", "f64"),
];

/// An item, with more fields than any program declares, in an order that no program has.
#[derive(Input, Clone, Default)]
struct Item {
    spare: u8,
    note: Option<String>,
    vip: bool,
    price: f64,
    weight: Option<f64>,
    odd: [i32; 3],
    kind: String,
    count: i64,
}

#[derive(Input, Clone, Default)]
struct Coupon {
    code: String,
    spare: i32,
    percent: f64,
}

#[derive(Input, Clone, Default)]
struct Request {
    limit: f64,
    coupon: Option<Coupon>,
    items: Vec<Item>,
    rates: HashMap<String, Option<f64>>,
    code: String,
    marks: Vec<Optional<f64>>,
}

/// An item of an output that is a list of structs.
#[derive(Output, Clone, Default)]
struct Line {
    n: Option<i64>,
    kind: Option<String>,
    net: Option<f64>,
}

/// A program on requests, its rows, and the limits on an evaluation.
pub(crate) struct Requests<'c> {
    pub(crate) program: &'c Program,
    pub(crate) rows: &'c [Row],
    pub(crate) limits: Limits,
}

/// Returns true if the inputs of the program are those of requests, and if its outputs, which have `types`, can be compared as JSON.
pub(crate) fn takes(case: &Requests<'_>, types: &[Option<QType>]) -> bool {
    let is_known = |name: &str, qtype: &QType| match (name, qtype) {
        ("items", list) => list.element().is_some_and(|element| match element {
            QType::Tuple(fields) if fields.names().is_some() => fields.iter().enumerate().all(|(at, field)| {
                let known = FIELDS.iter().find(|(known, _)| **known == *fields.label(at));
                known.is_some_and(|(_, spelled)| field.to_string() == *spelled)
            }),
            _ => false,
        }),
        (name, qtype) => INPUTS.iter().any(|(known, spelled)| *known == name && qtype.to_string() == *spelled),
    };
    let mut inputs = case.program.inputs.iter();
    let mut outputs = case.program.outputs.iter();
    inputs.all(|input| input.qtype.as_ref().is_some_and(|qtype| is_known(&input.name, qtype)))
        && outputs.all(|output| types[output.node.index()].as_ref().is_some_and(has_json))
}

/// Returns true if this module can compare values of the type with JSON.
fn has_json(qtype: &QType) -> bool {
    let is_plain = |scalar: &Scalar| {
        use Scalar::{Boolean, Float32, Float64, Int32, Int64, Text, UInt64, Unit, WeakFloat};
        matches!(scalar, Unit | Boolean | Int32 | Int64 | UInt64 | Float32 | Float64 | WeakFloat | Text)
    };
    // Types nest only as deep as the text that spelled them.
    match qtype {
        QType::Scalar(scalar) | QType::Optional(scalar) | QType::Array(ArrayKind::Dense, scalar) => is_plain(scalar),
        QType::Tuple(_) if let Some(of) = qtype.as_optional_struct().or(qtype.element()) => has_json(of),
        QType::Tuple(_) if qtype.as_map().is_some() => false,
        QType::Tuple(fields) => fields.iter().all(has_json),
        _ => false,
    }
}

/// A row with different answers: its index, and each answer with a name for how it was computed, such as by JSON.
pub(crate) type Difference = (usize, Vec<(String, String)>);

/// Runs the program of `case` on its rows, and a second time on the first row. The inputs are given as JSON and as Rust structs, each on both
/// backends. Returns the first row whose answers differ from `answers`, those of the reference; `None` if all are equal.
pub(crate) fn difference(
    case: &Requests<'_>,
    model: &Model,
    options: &Options,
    answers: &[Answer],
) -> Option<Difference> {
    let native = options.clone().backend(Backend::Native);
    let no_code = case.limits.code_bytes(0);
    let interpreted = options.clone().backend(Backend::Auto).limits(no_code).row_player(RowPlayer::Native);
    let rows: Vec<&Row> = case.rows.iter().chain(case.rows.first()).collect();
    in_json("JSON", model, &native, &rows, answers)
        .or_else(|| in_json("JSON, interpreted", model, &interpreted, &rows, answers))
        .or_else(|| in_structs(case, model, [&native, &interpreted], &rows, answers))
}

fn differ(row: usize, rows: usize, name: &str, found: String, answer: &Answer) -> Option<Difference> {
    // The last answer is that of the first row, repeated.
    let row = if row + 1 < rows { row } else { 0 };
    Some((row, vec![("interpreter".to_owned(), shown(answer)), (name.to_owned(), found)]))
}

fn in_json(name: &str, model: &Model, options: &Options, rows: &[&Row], answers: &[Answer]) -> Option<Difference> {
    let mut executor = match model.json_executor(options) {
        Ok(executor) => executor,
        Err(error) => return Some((0, vec![(name.to_owned(), format!("refused: {error}"))])),
    };
    let mut text = String::new();
    for (at, (row, answer)) in rows.iter().zip(answers).enumerate() {
        let request = json_of(row, at % 2 == 1);
        let found = executor.run_into(&request, &mut text).map_err(Failure::from);
        let is_same = match (&found, answer) {
            (Ok(()), Ok(values)) => {
                let outputs = &model.program().outputs;
                let mut rest = &*text;
                let read = values.iter().zip(outputs).enumerate().all(|(at, (value, output))| {
                    skip(&mut rest, if at == 0 { "{" } else { "," })
                        && skip(&mut rest, &format!("\"{}\":", output.name))
                        && read(&mut rest, value)
                });
                read && rest == if values.is_empty() { "{}" } else { "}" }
            }
            (Err(found), Err(expected)) => found == expected,
            _ => false,
        };
        if !is_same {
            let found = found.map_or_else(|failure| failure.to_string(), |()| text.clone());
            return differ(at, rows.len(), name, found, answer);
        }
    }
    None
}

/// Returns the request as a JSON object. With `reversed`, keys have another order, and missing values are left out.
fn json_of(row: &Row, reversed: bool) -> String {
    let mut out = String::from("{");
    let mut add = |name: &str, value: &Value| {
        if reversed && is_missing(value) {
            return;
        }
        if out.len() > 1 {
            out.push(',');
        }
        let _never_fails = write!(out, "\"{name}\":");
        write_json(&mut out, value, reversed);
    };
    let values = row.values();
    if reversed {
        values.iter().rev().for_each(|(name, value)| add(name, value));
    } else {
        values.iter().for_each(|(name, value)| add(name, value));
        add("unknown", &Value::from(1.5));
    }
    out + "}"
}

fn is_missing(value: &Value) -> bool {
    matches!(value, Value::Missing(_)) || value.as_optional_struct().is_some_and(|of| of.is_none())
}

fn write_json(out: &mut String, value: &Value, reversed: bool) {
    let list = |out: &mut String, elements: &mut dyn Iterator<Item = Value>| {
        out.push('[');
        for (at, element) in elements.enumerate() {
            if at > 0 {
                out.push(',');
            }
            write_json(out, &element, reversed);
        }
        out.push(']');
    };
    // Types nest only as deep as the text that spelled them.
    match value {
        Value::Missing(_) => out.push_str("null"),
        Value::Scalar(scalar) | Value::Present(scalar) => out.push_str(&spelled(scalar)),
        Value::Array(_, array) => list(out, &mut (0..array.len()).map(|at| array.value(at))),
        Value::Tuple(_) if value.qtype().as_map().is_some() => {
            out.push('{');
            for at in 0..value.list_len().unwrap_or(0) {
                let Some(Value::Tuple(entry)) = value.element(at) else { continue };
                if at > 0 {
                    out.push(',');
                }
                entry.iter().enumerate().for_each(|(at, part)| {
                    write_json(out, part, reversed);
                    if at == 0 {
                        out.push(':');
                    }
                });
            }
            out.push('}');
        }
        Value::Tuple(_) if let Some(len) = value.list_len() => {
            list(out, &mut (0..len).filter_map(|at| value.element(at)));
        }
        Value::Tuple(_) if let Some(of) = value.as_optional_struct() => match of {
            Some(of) => write_json(out, of, reversed),
            None => out.push_str("null"),
        },
        Value::Tuple(fields) => {
            let mut places: Vec<usize> = (0..fields.len()).collect();
            if reversed {
                places.reverse();
            }
            out.push('{');
            let mut is_first = true;
            for at in places {
                let Some(field) = fields.get(at).filter(|field| !(reversed && is_missing(field))) else { continue };
                let comma = if std::mem::take(&mut is_first) { "" } else { "," };
                let _never_fails = write!(out, "{comma}\"{}\":", fields.label(at));
                write_json(out, field, reversed);
            }
            out.push('}');
        }
        _ => out.push_str("null"),
    }
}

/// Returns a scalar as JSON.
fn spelled(scalar: &ScalarValue) -> String {
    let float = |value: f64, finite: String| match value {
        value if value.is_nan() => "\"NaN\"".to_owned(),
        f64::INFINITY => "\"Infinity\"".to_owned(),
        f64::NEG_INFINITY => "\"-Infinity\"".to_owned(),
        _ => finite,
    };
    match scalar {
        ScalarValue::Unit => "true".to_owned(),
        ScalarValue::Boolean(value) => value.to_string(),
        ScalarValue::Int32(value) => value.to_string(),
        ScalarValue::Int64(value) => value.to_string(),
        ScalarValue::UInt64(value) => value.to_string(),
        ScalarValue::Float32(value) => float(f64::from(*value), format!("{value:?}")),
        ScalarValue::Float64(value) | ScalarValue::WeakFloat(value) => float(*value, format!("{value:?}")),
        ScalarValue::Text(text) => {
            let mut out = String::from("\"");
            for character in text.chars() {
                match character {
                    '"' | '\\' => out.extend(['\\', character]),
                    '\n' => out.push_str("\\n"),
                    '\t' => out.push_str("\\t"),
                    '\r' => out.push_str("\\r"),
                    '\u{8}' => out.push_str("\\b"),
                    '\u{c}' => out.push_str("\\f"),
                    control if control < ' ' => {
                        let _never_fails = write!(out, "\\u{:04x}", control as u32);
                    }
                    other => out.push(other),
                }
            }
            out + "\""
        }
        other => format!("{other:?}"),
    }
}

fn skip(rest: &mut &str, wanted: &str) -> bool {
    let found = rest.strip_prefix(wanted);
    *rest = found.unwrap_or(rest);
    found.is_some()
}

/// Reads a value from JSON text. Returns false if the text has another value.
fn read(rest: &mut &str, value: &Value) -> bool {
    let list = |rest: &mut &str, elements: &mut dyn Iterator<Item = Value>| {
        skip(rest, "[")
            && elements.enumerate().all(|(at, element)| (at == 0 || skip(rest, ",")) && read(rest, &element))
            && skip(rest, "]")
    };
    // Types nest only as deep as the text that spelled them.
    match value {
        Value::Missing(_) => skip(rest, "null"),
        Value::Scalar(scalar) | Value::Present(scalar) => read_scalar(rest, scalar),
        Value::Array(_, array) => list(rest, &mut (0..array.len()).map(|at| array.value(at))),
        Value::Tuple(_) if let Some(len) = value.list_len() => {
            list(rest, &mut (0..len).filter_map(|at| value.element(at)))
        }
        Value::Tuple(_) if let Some(of) = value.as_optional_struct() => match of {
            Some(of) => read(rest, of),
            None => skip(rest, "null"),
        },
        Value::Tuple(fields) if fields.names().is_some() => {
            skip(rest, "{")
                && fields.iter().enumerate().all(|(at, field)| {
                    (at == 0 || skip(rest, ","))
                        && skip(rest, &format!("\"{}\":", fields.label(at)))
                        && read(rest, field)
                })
                && skip(rest, "}")
        }
        Value::Tuple(fields) => list(rest, &mut fields.iter().cloned()),
        _ => false,
    }
}

fn read_scalar(rest: &mut &str, scalar: &ScalarValue) -> bool {
    let mut number = || {
        let end = rest.find([',', ']', '}']).unwrap_or(rest.len());
        let (number, behind) = rest.split_at(end);
        *rest = behind;
        number
    };
    // The shortest digits may have two spellings.
    match scalar {
        ScalarValue::Float64(value) | ScalarValue::WeakFloat(value) if value.is_finite() => {
            number().parse::<f64>().is_ok_and(|found| found.to_bits() == value.to_bits())
        }
        ScalarValue::Float32(value) if value.is_finite() => {
            number().parse::<f32>().is_ok_and(|found| found.to_bits() == value.to_bits())
        }
        other => skip(rest, &spelled(other)),
    }
}

impl Request {
    /// Converts a row to a request. Fields that the program does not declare have arbitrary values.
    fn of(row: &Row) -> Request {
        let mut request = Request::default();
        for (name, value) in row.values() {
            match (&**name, value) {
                ("limit", Value::Scalar(ScalarValue::Float64(value))) => request.limit = *value,
                ("code", Value::Scalar(ScalarValue::Text(text))) => request.code = text.to_string(),
                ("coupon", value) => {
                    request.coupon = value.as_optional_struct().flatten().map(|of| Coupon {
                        code: member(of, "code").and_then(text).unwrap_or_default(),
                        spare: 7,
                        percent: member(of, "percent").and_then(float).unwrap_or_default(),
                    });
                }
                ("marks", Value::Array(_, array)) => {
                    request.marks = (0..array.len()).map(|at| float(&array.value(at)).into()).collect();
                }
                ("rates", value) => {
                    let entries = (0..value.list_len().unwrap_or(0)).filter_map(|at| match value.element(at)? {
                        Value::Tuple(entry) => Some((text(entry.first()?)?, float(entry.get(1)?))),
                        _ => None,
                    });
                    request.rates = entries.collect();
                }
                ("items", value) => {
                    let elements = (0..value.list_len().unwrap_or(0)).filter_map(|at| value.element(at));
                    request.items = elements.map(|element| Item::of(&element)).collect();
                }
                _ => {}
            }
        }
        request
    }
}

impl Item {
    fn of(value: &Value) -> Item {
        let integer = |value: &Value| match value {
            Value::Scalar(ScalarValue::Int64(value)) => Some(*value),
            _ => None,
        };
        Item {
            spare: 9,
            note: member(value, "note").and_then(text),
            vip: member(value, "vip").is_some_and(|value| *value == Value::from(true)),
            price: member(value, "price").and_then(float).unwrap_or(-1.0),
            weight: member(value, "weight").and_then(float),
            odd: [1, 2, 3],
            kind: member(value, "kind").and_then(text).unwrap_or_default(),
            count: member(value, "count").and_then(integer).unwrap_or(-1),
        }
    }
}

fn member<'v>(value: &'v Value, name: &str) -> Option<&'v Value> {
    let Value::Tuple(fields) = value else { return None };
    fields.iter().enumerate().find(|(at, _)| *fields.label(*at) == *name).map(|(_, field)| field)
}

fn float(value: &Value) -> Option<f64> {
    match value {
        Value::Scalar(ScalarValue::Float64(value)) | Value::Present(ScalarValue::Float64(value)) => Some(*value),
        _ => None,
    }
}

fn text(value: &Value) -> Option<String> {
    match value {
        Value::Scalar(ScalarValue::Text(text)) | Value::Present(ScalarValue::Text(text)) => Some(text.to_string()),
        _ => None,
    }
}

/// An output of a Rust type, which can be converted to a value of the model's type.
trait RequestOutput: Output + Default + Clone {
    fn told(&self, qtype: &QType) -> Value;
}

macro_rules! told {
    ($($ty:ty: $scalar:ident;)*) => { $(
        impl RequestOutput for $ty {
            fn told(&self, _: &QType) -> Value {
                Value::Scalar(ScalarValue::$scalar(self.clone().into()))
            }
        }
        impl RequestOutput for Option<$ty> {
            fn told(&self, _: &QType) -> Value {
                Value::optional(Scalar::$scalar, self.clone().map(|value| ScalarValue::$scalar(value.into())))
            }
        }
        impl RequestOutput for Vec<Option<$ty>> {
            fn told(&self, _: &QType) -> Value {
                let scalar = |element: &Option<$ty>| element.clone().map(|value| ScalarValue::$scalar(value.into()));
                Array::from_scalars(Scalar::$scalar, self.iter().map(scalar)).into()
            }
        }
    )* };
}

told! { f64: Float64; f32: Float32; i64: Int64; i32: Int32; String: Text; }

impl RequestOutput for Mask {
    fn told(&self, _: &QType) -> Value {
        (*self).into()
    }
}

impl RequestOutput for Vec<Line> {
    fn told(&self, qtype: &QType) -> Value {
        let Some(element @ QType::Tuple(fields)) = qtype.element() else { return Value::Nothing };
        let line = |line: &Line| {
            let field = |at: usize, of: &QType| {
                let value = match &*fields.label(at) {
                    "n" => line.n.map(ScalarValue::from),
                    "net" => line.net.map(ScalarValue::from),
                    _ => line.kind.clone().map(|kind| ScalarValue::Text(kind.into())),
                };
                match (of, value) {
                    (QType::Optional(scalar), value) => Value::optional(*scalar, value),
                    (_, Some(value)) => Value::Scalar(value),
                    (_, None) => Value::Nothing,
                }
            };
            let values: Vec<Value> = fields.iter().enumerate().map(|(at, of)| field(at, of)).collect();
            Value::Tuple(fields.with(values))
        };
        Value::list(element, self.iter().map(line)).unwrap_or(Value::Nothing)
    }
}

/// Returns true if the type is a list of [`Line`]s.
fn is_of_lines(qtype: &QType) -> bool {
    let Some(QType::Tuple(fields)) = qtype.element() else { return false };
    let spelled = |at: usize| match &*fields.label(at) {
        "n" => "i64",
        "net" => "f64",
        "kind" => "text",
        _ => "none",
    };
    fields.len() == 3
        && fields.names().is_some()
        && fields.iter().enumerate().all(|(at, of)| of.to_string().trim_end_matches('?') == spelled(at))
}

/// A function that runs a model with one output on requests.
type Runner = fn(&Model, &Options, &QType, &[Request]) -> Result<Vec<Result<Value, Failure>>, Failure>;

fn runner(qtype: &QType) -> Option<Runner> {
    macro_rules! of {
        ($($scalar:ident: $ty:ty;)*) => {
            match qtype {
                $(
                    QType::Scalar(Scalar::$scalar) => Some(run::<$ty> as Runner),
                    QType::Optional(Scalar::$scalar) => Some(run::<Option<$ty>>),
                    QType::Array(ArrayKind::Dense, Scalar::$scalar) => Some(run::<Vec<Option<$ty>>>),
                )*
                QType::Optional(Scalar::Unit) => Some(run::<Mask>),
                list if is_of_lines(list) => Some(run::<Vec<Line>>),
                _ => None,
            }
        };
    }
    of! { Float64: f64; Float32: f32; Int64: i64; Int32: i32; Text: String; }
}

/// The most outputs of a program that are computed alone. Each needs a compilation.
const MOST_ALONE: usize = 2;

fn in_structs(
    case: &Requests<'_>,
    model: &Model,
    ways: [&Options; 2],
    rows: &[&Row],
    answers: &[Answer],
) -> Option<Difference> {
    let requests: Vec<Request> = rows.iter().map(|row| Request::of(row)).collect();
    let compiled = model.compile(&ways[0].clone().backend(Backend::Interpreter)).ok()?;
    let outputs = compiled.outputs().iter().enumerate();
    let known = outputs.filter_map(|(at, output)| Some((at, output, runner(&output.qtype)?)));
    for (at, output, runner) in known.take(MOST_ALONE) {
        // The first output is the main one.
        let outputs = vec![case.program.outputs[at].clone()];
        let text = print(&stripped(&Program { outputs, ..case.program.clone() }));
        let Ok(model) = Model::parse(&text) else { continue };
        let alone = |options: &Options| runner(&model, options, &output.qtype, &requests);
        let reference = alone(&ways[0].clone().backend(Backend::Interpreter));
        for (name, options) in ["a struct", "a struct, interpreted"].into_iter().zip(ways) {
            let (reference, found) = match (&reference, alone(options)) {
                (Ok(reference), Ok(found)) => (reference, found),
                (Err(reference), Err(found)) if *reference == found => continue,
                (_, found) => {
                    let found = found.map_or_else(|failure| failure.to_string(), |_| "compiled it".to_owned());
                    return Some((0, vec![(name.to_owned(), found)]));
                }
            };
            for (row, (found, reference)) in found.iter().zip(reference).enumerate() {
                // An output may fail together with others although it does not fail alone.
                let expected = match &answers[row] {
                    Ok(values) => Ok(&values[at]),
                    Err(_) => reference.as_ref(),
                };
                let is_same = match (found, expected) {
                    (Ok(found), Ok(expected)) => found.same(expected),
                    (Err(found), Err(expected)) => found == expected,
                    _ => false,
                };
                if !is_same {
                    let found = shown(&found.clone().map(|value| vec![value]));
                    let answer = expected.map(|value| vec![value.clone()]).map_err(Clone::clone);
                    return differ(row, rows.len(), &format!("{name}, `{}` alone", output.name), found, &answer);
                }
            }
        }
    }
    None
}

/// Runs a model with one output on the requests. Results are written alternately to a new value and over the previous request's value.
fn run<O: RequestOutput>(
    model: &Model,
    options: &Options,
    qtype: &QType,
    requests: &[Request],
) -> Result<Vec<Result<Value, Failure>>, Failure> {
    let mut executor: ModelExecutor<Request, O> = model.executor(options)?;
    let mut kept = O::default();
    let answers = requests.iter().enumerate().map(|(at, request)| {
        if at % 2 == 0 {
            return executor.run(request).map(|made| made.told(qtype)).map_err(Failure::from);
        }
        executor.run_into(request, &mut kept).map(|()| kept.told(qtype)).map_err(Failure::from)
    });
    Ok(answers.collect())
}
