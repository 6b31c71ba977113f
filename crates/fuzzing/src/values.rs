//! Random values of every type, for rows and literals. Half of the values are numbers of ordinary size, so that most results are numbers too. Special
//! values (NaN, infinities, extremes) tend to reveal errors.

use crate::Config;
use crate::config::{chance, pick};
use cembra_expr::{ArgumentForm, Input};
use cembra_runtime::{Fields, MachineType, Names, QType, Scalar};
use cembra_value::{Array, Dict, Edge, ScalarValue, Tensor, Value};
use fastrand::Rng;
use std::cmp::Ordering;

const INT32: &[i32] =
    &[0, 1, -1, 2, -2, 3, 7, 10, -10, i32::MIN, i32::MAX, i32::MIN + 1, i32::MAX - 1, 1 << 24, 46_341];

const UINT64: &[u64] =
    &[0, 1, 2, (1 << 31) - 1, 1 << 32, (1 << 53) + 1, (1 << 63) - 1, 1 << 63, (1 << 63) + 1025, u64::MAX - 1, u64::MAX];

const INT64: &[i64] = &[
    0,
    1,
    -1,
    2,
    -3,
    1 << 31,
    -(1 << 31),
    (1 << 31) - 1,
    -(1 << 31) - 1,
    (1 << 53) + 1,
    1 << 62,
    i64::MIN,
    i64::MAX,
    i64::MIN + 1,
];

/// Special values for both float types. Rounded to f32, some become infinities, zeros and subnormals.
const FLOAT: &[f64] = &[
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    -0.5,
    1.5,
    2.5,
    -2.5,
    f64::NAN,
    f64::INFINITY,
    f64::NEG_INFINITY,
    f64::MAX,
    f64::MIN,
    f64::MIN_POSITIVE,
    5e-324,
    -5e-324,
    f64::EPSILON,
    0.1,
    0.499_999_999_999_999_94,
    16_777_217.0,
    9_007_199_254_740_993.0,
    2_147_483_648.0,
    2_147_483_647.5,
    -2_147_483_648.5,
    -2_147_483_649.0,
    9_223_372_036_854_775_808.0,
    -9_223_372_036_854_775_808.0,
    9_223_372_036_854_774_784.0,
    709.8,
    -745.2,
    88.8,
    3.402_823_466_385_288_6e38,
    3.5e38,
    1.401_298_464_324_817e-45,
    1.175_494_350_822_287_5e-38,
    1e-300,
    1e300,
];

const TEXT: &[&str] = &[
    "",
    "a",
    "ab",
    "abc",
    "é",
    "e\u{301}",
    "日本語",
    "\u{0}",
    "it's \"quoted\" \\ {}",
    "two\nlines\t",
    " \u{a0}padded\u{2003} ",
    "🌲",
    // In another case, these are longer or shorter, or have none.
    "ßİǅΣςﬃ",
    "a text that is longer than sixteen bytes and not kept inline by anything",
    // Numbers, and texts that resemble numbers.
    "12",
    " 7",
    "-0",
    "+3",
    "007",
    "1e5",
    "-.5",
    "0x1p3",
    "1_000",
    "inf",
    "-Infinity",
    "nan",
    "2147483648",
    "-9223372036854775808",
    "99999999999999999999",
    "1.000000059604644775390626",
    // Dates and timestamps, and texts that resemble them.
    "2024-02-29",
    "2023-02-29",
    "1969-12-31T23:59:59.5Z",
    "1970-01-01T00:00:00",
    "1e-400",
    "١",
];

/// Texts of a special form: well-formed ones and malformed ones.
struct TextSamples {
    good: &'static [&'static str],
    bad: &'static [&'static str],
}

impl TextSamples {
    /// Returns a text, mostly a well-formed one, because a malformed one is a fault in every row.
    fn any(&self, random: &mut Rng) -> &'static str {
        let bad = !self.bad.is_empty() && random.u32(..16) == 0;
        let texts = if bad { self.bad } else { self.good };
        texts[random.usize(..texts.len())]
    }
}

/// Regular expressions.
const REGEX: TextSamples = TextSamples {
    good: &[
        "",
        "x",
        "(x+)",
        "^.$",
        "(?i)X(Y?)",
        "([0-9]+)",
        "(\\p{L})",
        "(?s)(.*)y",
        "x|(y)",
        "()",
        "(a*)*(a|aa)+b",
        "(x)(y)",
    ],
    bad: &["[", "(", "a{2,1}", "(?=a)", "\\1", "\\pL{2000}"],
};

/// Replacements for the matches of regular expressions.
const REPLACEMENT: TextSamples =
    TextSamples { good: &["", "-", "\\0\\0", "é\\1", "\\\\"], bad: &["\\x", "\\9", "a\\"] };

/// The names of ways to handle bytes that are not UTF-8.
const ERRORS: TextSamples = TextSamples { good: &["strict", "ignore", "replace"], bad: &["", "other"] };

/// The units of the calendar. The hour and smaller units do not exist for dates.
const UNITS: TextSamples = TextSamples {
    good: &["year", "quarter", "month", "week", "day", "hour", "minute", "second"],
    bad: &["", "decade"],
};

/// The units of numbers that count the time since 1970.
const UNIX_UNITS: TextSamples = TextSamples { good: &["s", "ms", "us", "ns"], bad: &["", "min"] };

/// Formats of dates and timestamps.
const TIME_FORMATS: TextSamples = TextSamples {
    good: &[
        "%Y-%m-%d",
        "%d.%m.%Y",
        "%Y",
        "%y%j",
        "%d %b %Y",
        "%A, %d %B %Y",
        "%Y-%m-%dT%H:%M:%S%z",
        "%Y%m%d %H%M%S.%f",
    ],
    bad: &["", "%", "%q", "%H", "%Y %m %b"],
};

/// Time zones: with and without summer time, with unusual offsets, links, and names of no zone.
const TIME_ZONES: TextSamples = TextSamples {
    good: &[
        "UTC",
        "Europe/Zurich",
        "America/New_York",
        "Asia/Kathmandu",
        "Australia/Lord_Howe",
        "US/Pacific",
        "Etc/GMT+12",
    ],
    bad: &["", "europe/zurich", "Mars/Base"],
};

/// The choices of a moment when a local time occurs twice.
const REPEATED: TextSamples = TextSamples { good: &["earlier", "later", "missing"], bad: &["", "both"] };

/// Formats of `printf`, and a few of `format`.
const FORMAT: TextSamples = TextSamples {
    good: &[
        "",
        "%d",
        "%s",
        "%v and %v",
        "%5.2f|%-8s|",
        "%+d%%",
        "%05x %o %X",
        "%e %g %a",
        "%.3A",
        "%1$s|%1$v",
        "%2$-7v%1$+.2e",
        "%*.*f",
        "%.1s",
        "é%c",
        "{a}",
        "{{b}}",
        "%v",
    ],
    bad: &["%", "%q", "%*d", "%999999999d", "{a:05d} {{b}} {b}", "{a:.2f}{a}", "{", "{c}", "}", "{a:%}"],
};

/// Names for the arguments of a format.
const NAMES: TextSamples = TextSamples { good: &["a", "a,b", "a,b,c", "b,a", ""], bad: &["a,a", "a b"] };

/// The names for the fields of named tuples. They are few, so that a requested field often exists.
pub(crate) const FIELDS: &[&str] = &["a", "b", "odd name", "if"];

const BYTES: &[&[u8]] = &[
    b"",
    b"\0",
    b"\xff",
    b"\xc3",
    b"\xc3\xa9",
    b"\xed\xa0\x80",
    b"\xf0\x9f\x8c\xb2",
    b"x",
    b" 7\t",
    b"1e5",
    b"bytes that are longer than sixteen and not kept inline by anything \xfe",
];

/// Returns a random number of ordinary size.
fn ordinary(random: &mut Rng) -> f64 {
    match random.u32(..4) {
        0 => f64::from(random.i32(-10..=10)),
        1 => f64::from(random.i32(-40..=40)) / 4.0,
        2 => (random.f64() - 0.5) * 20.0,
        _ => random.f64(),
    }
}

fn float(random: &mut Rng, config: &Config) -> f64 {
    if chance(random, config.special) {
        return *pick(random, FLOAT);
    }
    match random.u32(..12) {
        // A random exponent.
        0 => f64::from_bits(random.u64(..) & !(0x7FF << 52) | (random.u64(1..0x7FF) << 52)),
        1 => (random.f64() - 0.5) * 1e6,
        _ => ordinary(random),
    }
}

/// Returns a random value of the type `scalar`. A value of a type such as date, which is stored as an integer, is made from a random integer.
pub(crate) fn scalar(random: &mut Rng, scalar: Scalar, config: &Config) -> ScalarValue {
    let value = of_representation(random, scalar.representation(), config);
    ScalarValue::from_bits(scalar, value.bits()).unwrap_or(value)
}

fn of_representation(random: &mut Rng, scalar: Scalar, config: &Config) -> ScalarValue {
    let special = chance(random, config.special);
    match scalar {
        Scalar::Boolean => ScalarValue::Boolean(random.bool()),
        Scalar::Int32 if special => ScalarValue::Int32(*pick(random, INT32)),
        Scalar::Int32 if random.u32(..8) == 0 => ScalarValue::Int32(random.i32(..)),
        Scalar::Int32 => ScalarValue::Int32(random.i32(-12..=12)),
        Scalar::Int64 if special => ScalarValue::Int64(*pick(random, INT64)),
        Scalar::Int64 if random.u32(..8) == 0 => ScalarValue::Int64(random.i64(..)),
        Scalar::Int64 => ScalarValue::Int64(random.i64(-12..=12)),
        Scalar::Float32 => ScalarValue::Float32(float(random, config) as f32),
        Scalar::Float64 => ScalarValue::Float64(float(random, config)),
        Scalar::UInt64 if special => ScalarValue::UInt64(*pick(random, UINT64)),
        Scalar::UInt64 if random.u32(..8) == 0 => ScalarValue::UInt64(random.u64(..)),
        Scalar::UInt64 => ScalarValue::UInt64(random.u64(..=12)),
        Scalar::Bytes if special => ScalarValue::Bytes((*pick(random, BYTES)).into()),
        Scalar::Bytes => ScalarValue::Bytes((*pick::<&[u8]>(random, &[b"x", b"y", b"xy", b"yx", b"x\xffyz"])).into()),
        Scalar::Text if special => ScalarValue::Text((*pick(random, TEXT)).into()),
        Scalar::Text => ScalarValue::Text(["x", "y", "xy", "yx", "xyz"][random.usize(..5)].into()),
        _ => ScalarValue::Unit,
    }
}

/// Returns dictionaries for each type of keys and of values. Some values are missing. The dictionaries differ in the number of keys, and in whether
/// the keys are close to each other. Programs look up keys in these dictionaries.
pub(crate) fn dictionaries() -> impl Iterator<Item = Value> {
    let keys = Scalar::ALL.into_iter().filter(|key| Dict::may_be_keys(*key));
    let types = keys.flat_map(|key| Scalar::ALL.into_iter().map(move |value| (key, value)));
    types.enumerate().filter_map(|(turn, (key, value))| {
        let mut random = Rng::with_seed(turn as u64);
        // Ordinary numbers are close to each other; special ones are not.
        let config = Config { special: [0.0, 1.0, 0.2][turn % 3], ..Config::default() };
        let mut keys: Vec<ScalarValue> = Vec::new();
        for _ in 0..[3, 9, 16][turn / 2 % 3] {
            let drawn = scalar(&mut random, key, &config);
            if !keys.contains(&drawn) {
                keys.push(drawn);
            }
        }
        let value_of = |_| (random.u32(..5) > 0).then(|| scalar(&mut random, value, &config));
        let values = Array::from_scalars(value, keys.iter().map(value_of).collect::<Vec<_>>());
        Dict::new(Array::from_scalars(key, keys.into_iter().map(Some)), values).ok().map(Value::from)
    })
}

/// Returns dictionaries whose keys are ranges, for each type of bounds. Some dictionaries have few ranges, which are searched linearly, some have
/// many, which are bisected. Some have gaps between ranges, or an unbounded first and last range.
pub(crate) fn ranges() -> impl Iterator<Item = Value> {
    let bounds = Scalar::ALL.into_iter().filter(|scalar| Dict::may_be_bounds(*scalar) && *scalar != Scalar::WeakFloat);
    let types = bounds.flat_map(|bound| (0..4).map(move |turn| (bound, turn)));
    types.enumerate().filter_map(|(at, (bound, turn))| {
        let mut random = Rng::with_seed(at as u64);
        let config = Config { special: [0.2, 0.8][turn % 2], ..Config::default() };
        let mut bounds: Vec<ScalarValue> =
            (0..[6, 200][turn / 2]).map(|_| scalar(&mut random, bound, &config)).collect();
        bounds.retain(|bound| Dict::order_of_bounds(bound, bound).is_some());
        bounds.sort_by(|a, b| Dict::order_of_bounds(a, b).unwrap_or(Ordering::Equal));
        bounds.dedup_by(|a, b| Dict::order_of_bounds(a, b) == Some(Ordering::Equal));
        let (mut from, mut to) = (Vec::new(), Vec::new());
        for pair in bounds.windows(2).filter(|_| random.u32(..6) > 0) {
            from.push(Some(pair[0].clone()).filter(|_| !from.is_empty() || turn % 2 == 0));
            to.push(Some(pair[1].clone()));
        }
        if let Some(last) = to.last_mut().filter(|_| turn % 2 == 1) {
            *last = None;
        }
        let value = Scalar::ALL[at % Scalar::ALL.len()];
        let value_of = |_| (random.u32(..5) > 0).then(|| scalar(&mut random, value, &config));
        let values = Array::from_scalars(value, from.iter().map(value_of).collect::<Vec<_>>());
        let [from, to] = [from, to].map(|bounds| Array::from_scalars(bound, bounds));
        Dict::of_ranges(&from, &to, &values).ok().filter(|dict| !dict.is_empty()).map(Value::from)
    })
}

/// Returns the arrays that a dictionary of ranges can be made from: the start of each range, its end, and the values. `None` for a dictionary of
/// single keys.
pub(crate) fn columns_of(dict: &Dict) -> Option<[Value; 3]> {
    let ranges = dict.ranges()?;
    let within = || (0..dict.len()).filter(|at| ranges.get(*at).is_some());
    let bound = |at: usize| dict.keys().get(at);
    let column = |scalar, values: Vec<Option<ScalarValue>>| {
        Value::Array(cembra_runtime::ArrayKind::Dense, Array::from_scalars(scalar, values).into())
    };
    Some([
        column(dict.keys().scalar(), within().map(bound).collect()),
        column(
            dict.keys().scalar(),
            within().map(|at| if at + 1 < dict.len() { bound(at + 1) } else { None }).collect(),
        ),
        column(dict.values().scalar(), within().map(|at| dict.values().get(at)).collect()),
    ])
}

/// Returns a random text for an argument of the form `form`, such as a regular expression; `None` if the argument is not a text. With an arbitrary
/// text, most programs would fail at the check of the argument.
pub(crate) fn text_of(random: &mut Rng, form: ArgumentForm) -> Option<&'static str> {
    let texts = match form {
        ArgumentForm::Regex => REGEX,
        ArgumentForm::Replacement => REPLACEMENT,
        ArgumentForm::DecodingErrors => ERRORS,
        ArgumentForm::CalendarUnit => UNITS,
        ArgumentForm::UnixUnit => UNIX_UNITS,
        ArgumentForm::TimeFormat => TIME_FORMATS,
        ArgumentForm::TimeZone => TIME_ZONES,
        ArgumentForm::RepeatedTime => REPEATED,
        ArgumentForm::Format => FORMAT,
        ArgumentForm::ArgumentNames => NAMES,
        ArgumentForm::FieldName => TextSamples { good: FIELDS, bad: &[] },
        // There must be as many names as fields.
        ArgumentForm::FieldNames | ArgumentForm::Position | ArgumentForm::Type | ArgumentForm::Any => return None,
    };
    Some(texts.any(random))
}

/// Returns true if a frame cannot hold values of type `qtype`, because `qtype` is or contains an array type.
pub(crate) fn has_arrays(qtype: &QType) -> bool {
    !qtype.is_framed()
}

/// Returns a random size for the arrays of a row, 0 if no input has arrays. All arrays of the row get this size, because most models need arrays of
/// equal size.
pub(crate) fn row_size(random: &mut Rng, inputs: &[Input]) -> usize {
    let some = inputs.iter().any(|input| input.qtype.as_ref().is_some_and(has_arrays));
    if some { random.usize(..7) * random.usize(..20) } else { 0 }
}

/// Returns true if `qtype` is an optional struct, or a struct with an optional struct among its fields or their fields.
pub(crate) fn has_optional_structs(qtype: &QType) -> bool {
    match qtype {
        QType::Tuple(fields) => qtype.as_optional_struct().is_some() || fields.iter().any(has_optional_structs),
        _ => false,
    }
}

/// Returns the type `qtype` with f64 in place of weak floats.
pub(crate) fn without_weak(qtype: &QType) -> QType {
    match qtype {
        QType::Scalar(Scalar::WeakFloat) => QType::FLOAT64,
        QType::Optional(Scalar::WeakFloat) => QType::Optional(Scalar::Float64),
        QType::Tuple(fields) => QType::Tuple(fields.map(without_weak)),
        other => other.clone(),
    }
}

/// Returns a random type for an input. Tuples nest at most `depth` levels deep.
pub(crate) fn input_type(random: &mut Rng, depth: u32) -> QType {
    if depth > 0 && random.u32(..8) == 0 {
        let fields: Vec<QType> = (0..random.u32(..4)).map(|_| input_type(random, depth - 1)).collect();
        let names = random.bool().then(|| Names::new(FIELDS.iter().take(fields.len()).copied()).ok()).flatten();
        let named = names.and_then(|names| Fields::named(names, fields.clone()));
        return QType::Tuple(named.unwrap_or_else(|| fields.into()));
    }
    QType::of(*pick(random, &Scalar::ALL), random.bool())
}

/// Returns simple values of the type `qtype`, for shrinking; the simplest is first.
pub(crate) fn simple(qtype: &QType) -> Vec<Value> {
    let scalars = |of: Scalar| match of {
        Scalar::Unit => vec![ScalarValue::Unit],
        Scalar::Text => vec![ScalarValue::Text("".into()), ScalarValue::Text("a".into())],
        Scalar::Bytes => vec![ScalarValue::Bytes([].into()), ScalarValue::Bytes([b'a'].into())],
        _ => {
            let one = match of.machine_type() {
                Some(MachineType::F32) => u64::from(1_f32.to_bits()),
                Some(MachineType::F64) => 1_f64.to_bits(),
                _ => 1,
            };
            [0, one].into_iter().filter_map(|bits| ScalarValue::from_bits(of, bits)).collect()
        }
    };
    match qtype {
        QType::Scalar(of) => scalars(*of).into_iter().map(Value::Scalar).collect(),
        QType::Optional(of) => {
            std::iter::once(Value::Missing(*of)).chain(scalars(*of).into_iter().map(Value::Present)).collect()
        }
        QType::Tuple(_) if let Some(of) = qtype.as_optional_struct() => std::iter::once(None)
            .chain(simple(of).into_iter().map(Some))
            .filter_map(|of_one| Value::optional_struct(of, of_one))
            .collect(),
        // Values of the same size are in `arrays::simpler`.
        QType::Tuple(_) if qtype.element().is_some() => Vec::new(),
        QType::Tuple(fields) => {
            let first: Option<Vec<Value>> = fields.iter().map(|field| simple(field).into_iter().next()).collect();
            first.into_iter().map(|values| Value::Tuple(fields.with(values))).collect()
        }
        QType::Shape(shape) => vec![Value::Shape(*shape)],
        // Values of the same size are in `arrays::simpler`.
        _ => Vec::new(),
    }
}

/// Returns a copy of `value` that shares no memory with it. If the original is freed, a reference that a backend wrongly keeps after a call
/// dangles, and a test finds it.
pub(crate) fn fresh(value: &Value) -> Value {
    let copy = |v: &ScalarValue| match v {
        ScalarValue::Text(text) => ScalarValue::Text(text.to_string().into()),
        ScalarValue::Bytes(bytes) => ScalarValue::Bytes(bytes.to_vec().into()),
        other => other.clone(),
    };
    match value {
        Value::Scalar(v) => Value::Scalar(copy(v)),
        Value::Present(v) => Value::Present(copy(v)),
        Value::Tuple(fields) => Value::Tuple(fields.map(fresh)),
        Value::Array(kind, array) => Value::Array(*kind, Array::clone(array).into()),
        Value::Edge(edge) => Edge::clone(edge).into(),
        Value::Tensor(tensor) => {
            let copy = Tensor::of_data(tensor.extents(), tensor.gathered());
            copy.map_or_else(|_| value.clone(), Value::from)
        }
        other => other.clone(),
    }
}
