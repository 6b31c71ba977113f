//! The calendar against that of a library: interpreted, in native code and with its rules played on bits, on dates of all
//! years that have texts and on any others.

use cembra::operators::{Cell, Registry, Tape};
use cembra::{Backend, Date, Duration, Input, Model, Options, Output, Timestamp, Value};
use cembra_ops::{Argument, call, record};
use cembra_runtime::{QType, Scalar};
use cembra_tape::Outcome;
use chrono::{DateTime, Datelike, NaiveDate, TimeDelta, Timelike, Utc};
use fastrand::Rng;

const OF_DATES: [&str; 5] = ["date.year", "date.month", "date.day", "date.weekday", "date.day_of_year"];
const OF_TIMESTAMPS: [&str; 4] = ["timestamp.date", "timestamp.hour", "timestamp.minute", "timestamp.second"];

/// What operators give for each value: interpreted, by native code, and by their rules on bits, which must be the same.
fn parts(operators: &[&str], qtype: &str, values: &[Value]) -> Vec<Vec<Value>> {
    let calls: Vec<String> = operators.iter().map(|name| format!("{name}(x)")).collect();
    let model = Model::parse(&format!("input x: {qtype}; ({},)", calls.join(", "))).expect("a model");
    let run = |backend| {
        let executor = model.compile(&Options::default().backend(backend)).expect("an executor");
        let mut session = executor.session();
        let fields = |value: &Value| match session.evaluate(std::slice::from_ref(value)).expect("no fault").remove(0) {
            Value::Tuple(fields) => fields.to_vec(),
            other => panic!("{other} is no tuple"),
        };
        values.iter().map(fields).collect::<Vec<_>>()
    };
    let interpreted = run(Backend::Interpreter);
    assert_eq!(interpreted, run(Backend::Native));
    for (value, expected) in values.iter().zip(&interpreted) {
        let on_bits: Vec<Value> = operators.iter().map(|name| by_rule(name, value)).collect();
        assert_eq!(on_bits, *expected, "of {value}");
    }
    interpreted
}

/// The rule of an operator, played on bits; its kernel must agree.
fn by_rule(name: &str, value: &Value) -> Value {
    let registry = Registry::standard();
    let def = registry.get(registry.find(name).expect("an operator"));
    let qtype = value.qtype();
    let resolved = def.resolve(&[Argument { qtype: &qtype, literal: None }]).expect("a call");
    let mut tape = Tape::new();
    let machine = qtype.scalar().and_then(Scalar::machine_type).expect("a number");
    let x = Cell::num(tape.input(machine));
    let overload = &def.overloads()[usize::from(resolved.overload.expect("an overload"))];
    let result = record(&mut tape, def.presence, overload, &[x]).val(&mut tape);
    let bits = value.as_scalar().expect("a scalar").bits();
    // SAFETY: STRING-VIEW: there are no strings.
    let Outcome::Done(results) = (unsafe { tape.run_on_bits(&[bits]) }) else { panic!("{name} of {value} fails") };
    let scalar = resolved.signature.ret.scalar().expect("a scalar");
    let found = Value::Scalar(cembra::ScalarValue::from_bits(scalar, results[result.index()]).expect("a number"));
    let kernel = call(def, &resolved, std::slice::from_ref(value)).expect("values of these types").expect("no fault");
    assert_eq!(found, kernel, "{name} of {value}");
    found
}

fn ints<const N: usize>(parts: [u32; N]) -> Vec<Value> {
    parts.map(|part| Value::from(part.cast_signed())).into()
}

#[test]
fn parts_of_dates_are_those_of_a_library() {
    let mut random = Rng::with_seed(20);
    let mut dates: Vec<Date> = (0..2000).map(|_| Date(random.i32(Date::FIRST.0..=Date::LAST.0))).collect();
    for year in [1, 4, 100, 400, 1582, 1600, 1900, 1970, 2000, 2024, 2100, 9999] {
        for (month, day) in [(1, 1), (2, 28), (2, 29), (3, 1), (12, 31)] {
            dates.extend(Date::of(year, month, day));
        }
    }
    let values: Vec<Value> = dates.iter().copied().map(Value::from).collect();
    for (date, found) in dates.into_iter().zip(parts(&OF_DATES, "date", &values)) {
        let theirs = NaiveDate::try_from(date).expect("a date of theirs");
        let (year, weekday) = (theirs.year().cast_unsigned(), theirs.weekday().number_from_monday());
        assert_eq!(found, ints([year, theirs.month(), theirs.day(), weekday, theirs.ordinal()]), "{theirs}");
        assert_eq!((date.to_string(), Date::from(theirs)), (theirs.to_string(), date));
        assert_eq!(theirs.to_string().parse(), Ok(date));
    }
}

#[test]
fn parts_of_timestamps_are_those_of_a_library() {
    let mut random = Rng::with_seed(11);
    let (first, last) = (i64::from(Date::FIRST.0) * Timestamp::DAY, i64::from(Date::LAST.0 + 1) * Timestamp::DAY - 1);
    let mut moments: Vec<Timestamp> = (0..2000).map(|_| Timestamp(random.i64(first..=last))).collect();
    moments.extend([first, last, 0, -1, 1, -Timestamp::DAY, Timestamp::DAY - 1, 1_000_000, 999_999].map(Timestamp));
    let values: Vec<Value> = moments.iter().copied().map(Value::from).collect();
    for (moment, found) in moments.into_iter().zip(parts(&OF_TIMESTAMPS, "timestamp", &values)) {
        let theirs = DateTime::<Utc>::try_from(moment).expect("a moment of theirs");
        let mut expected = vec![Value::from(Date::from(theirs.date_naive()))];
        expected.extend(ints([theirs.hour(), theirs.minute(), theirs.second()]));
        assert_eq!(found, expected, "{theirs}");
        assert_eq!(Timestamp::from(theirs), moment);
        let micros = format!("{}T{}Z", theirs.date_naive(), theirs.time());
        assert_eq!((micros.parse(), moment.to_string().parse()), (Ok(moment), Ok(moment)));
    }
}

/// A hundred thousand days of the years 1 to 9999, in all backends, against the library.
#[test]
fn months_and_weeks_are_those_of_a_library() {
    let model = Model::parse(
        "input d, e: date; input n: i32
         output sum = date.add_months(d, n)
         output months = date.months_between(d, e)
         output years = date.years_between(d, e)
         output week = date.iso_week(d)
         output week_year = date.iso_year(d)
         output quarter = date.quarter(d)
         output length = date.days_in_month(d)
         output start = date.start_of_month(d)
         output end = date.end_of_month(d)
         output made = date.make(date.year(d), date.month(d), date.day(e))
         output leaps = if date.is_leap_year(d) then 1 else 0",
    )
    .expect("a model");
    let mut random = Rng::with_seed(34);
    let mut day = || Date(random.i32(Date::FIRST.0..=Date::LAST.0));
    let days: Vec<(Date, Date)> = (0..100_000).map(|_| (day(), day())).collect();
    // A sum that is within the years: to the month of the other day.
    let rows: Vec<[Value; 3]> = days
        .iter()
        .map(|(d, e)| {
            let [(d_year, d_month, _), (e_year, e_month, _)] = [d, e].map(|date| date.civil());
            [Value::from(*d), Value::from(*e), Value::from(12 * (e_year - d_year) + e_month - d_month)]
        })
        .collect();
    for backend in [Backend::Interpreter, Backend::Native] {
        let executor = model.compile(&Options::default().backend(backend)).expect("an executor");
        let mut session = executor.session();
        for ((d, e), row) in days.iter().zip(&rows) {
            let [d, e] = [d, e].map(|date| NaiveDate::try_from(*date).expect("a date of theirs"));
            let month = |date: NaiveDate, day| NaiveDate::from_ymd_opt(date.year(), date.month(), day);
            let last = |date: NaiveDate| (28..=31).rev().find_map(|day| month(date, day)).expect("a last day");
            let sum = month(e, d.day()).unwrap_or_else(|| last(e));
            // As many months as may be added without going beyond the other day, counted one by one from those of the numbers.
            let of_numbers = 12 * (e.year() - d.year()) + e.month() as i32 - d.month() as i32;
            let beyond = if d <= e { e.day() < d.day() } else { e.day() > d.day() };
            let months = if beyond { of_numbers - (e - d).num_days().signum() as i32 } else { of_numbers };
            let years = if d <= e { e.years_since(d) } else { d.years_since(e) }.expect("years") as i32;
            let date = |date: NaiveDate| Value::from(Date::from(date));
            let expected = [
                date(sum),
                Value::from(i64::from(months)),
                // Theirs are anniversaries, counted from the earlier day.
                Value::from(i64::from(if d <= e { years } else { months / 12 })),
                Value::from(d.iso_week().week() as i32),
                Value::from(d.iso_week().year()),
                Value::from(d.month0() as i32 / 3 + 1),
                Value::from(last(d).day() as i32),
                date(month(d, 1).expect("a first day")),
                date(last(d)),
                Value::from(month(d, e.day()).map(Date::from)),
                Value::from(i32::from(d.leap_year())),
            ];
            assert_eq!(session.evaluate(row).expect("no fault"), expected, "{d} {e}");
        }
    }
}

/// Whatever bits there are, also of years that have no text, at which texts end and at which kernels and rules may.
#[test]
fn every_number_is_a_date() {
    let mut random = Rng::with_seed(5);
    let mut days: Vec<i32> = (0..20_000).map(|_| random.i32(..)).collect();
    days.extend([
        i32::MIN,
        i32::MAX,
        i32::MIN + 1,
        i32::MAX - 1,
        Date::FIRST.0 - 1,
        Date::LAST.0 + 1,
        -719_468,
        -719_469,
    ]);
    // Where centuries and cycles of 400 years begin and end, near and far.
    for cycle in [-14_000, -5, -4, -1, 0, 1, 4, 14_000] {
        let start = cycle * 146_097 - 719_468;
        days.extend([0, 36_524, 73_048, 109_572, 146_097].iter().flat_map(|day| [start + day - 1, start + day]));
    }
    let values: Vec<Value> = days.iter().map(|days| Value::from(Date(*days))).collect();
    for (days, found) in days.into_iter().zip(parts(&OF_DATES, "date", &values)) {
        let (year, month, day) = Date(days).civil();
        assert_eq!(found[..3], [year, month, day].map(Value::from));
        assert_eq!(Date::of(year, month.cast_unsigned(), day.cast_unsigned()), Some(Date(days)));
    }
    let mut micros: Vec<i64> = (0..20_000).map(|_| random.i64(..)).collect();
    micros.extend([i64::MIN, i64::MAX, i64::MIN + 1, -Timestamp::DAY - 1, -Timestamp::DAY, -1, 0, Timestamp::DAY - 1]);
    let values: Vec<Value> = micros.iter().map(|micros| Value::from(Timestamp(*micros))).collect();
    for (micros, found) in micros.into_iter().zip(parts(&OF_TIMESTAMPS, "timestamp", &values)) {
        let of_day = micros.rem_euclid(Timestamp::DAY) / 1_000_000;
        let expected = [of_day / 3600, of_day / 60 % 60, of_day % 60].map(|part| Value::from(part as i32));
        assert_eq!(found[1..], expected);
        assert_eq!(found[0], Value::from(Date(micros.div_euclid(Timestamp::DAY) as i32)));
    }
}

/// Also of years that have no text: what the interpreter gives, its faults included, machine code gives by rules of its own.
#[test]
fn rules_of_the_calendar_are_those_of_kernels_on_any_numbers() {
    let mut random = Rng::with_seed(12);
    let texts = i64::from(Date::FIRST.0) * Timestamp::DAY..i64::from(Date::LAST.0) * Timestamp::DAY;
    let rows: Vec<[Value; 5]> = (0..5000)
        .map(|at| {
            // Numbers of all sizes, and near the ends of the years that have texts.
            let near = [Date::FIRST.0, Date::LAST.0, 0, i32::MIN, i32::MAX][at % 5];
            let mut day = || match random.u32(..3) {
                0 => random.i32(..),
                1 => near.wrapping_add(random.i32(-40..40)),
                _ => random.i32(Date::FIRST.0..=Date::LAST.0),
            };
            let days = [day(), day()].map(|day| Value::from(Date(day)));
            let months = random.i32(..) >> random.u32(..32);
            let moment = if random.bool() { random.i64(texts.clone()) } else { random.i64(..) };
            let second = random.f64() * 61.0 - 0.5;
            let [d, e] = days;
            [d, e, Value::from(months), Value::from(Timestamp(moment)), Value::from(second)]
        })
        .collect();
    let mut failed = 0;
    for expression in [
        "date.add_months(d, n)",
        "date.add_years(d, n)",
        "(date.months_between(d, e), date.years_between(d, e), date.quarter(d), date.iso_year(d), date.iso_week(d))",
        "(date.days_in_month(d), date.is_leap_year(d), date.year(t), date.day_of_year(t), date.iso_week(t), date.weekday(t))",
        "date.start_of_month(d)",
        "date.end_of_month(d)",
        "date.truncate(d, \"year\")",
        "date.truncate(d, \"quarter\")",
        "date.truncate(d, \"week\")",
        "date.truncate(t, \"month\")",
        "date.truncate(t, \"week\")",
        "date.truncate(t, \"day\")",
        "date.truncate(t, \"hour\")",
        "date.truncate(t, \"minute\")",
        "date.truncate(t, \"second\")",
        "date.make(date.year(d), n, date.day(e))",
        "date.make(n, date.month(e), date.day(d))",
        "timestamp.make(d, n, timestamp.minute(t), s)",
        "timestamp.make(d, timestamp.hour(t), timestamp.minute(t), s)",
    ] {
        let text = format!("input d, e: date, n: i32, t: timestamp, s: f64; output y = {expression}");
        let model = Model::parse(&text).expect("a model");
        let names = ["d", "e", "n", "t", "s"];
        let run = |backend| {
            let executor = model.compile(&Options::default().backend(backend)).expect("an executor");
            let places: Vec<usize> = executor
                .inputs()
                .iter()
                .map(|input| names.iter().position(|name| *name == &*input.name).expect("an input"))
                .collect();
            let mut session = executor.session();
            let answer = |row: &[Value; 5]| {
                let given: Vec<Value> = places.iter().map(|place| row[*place].clone()).collect();
                session.evaluate(&given).map_err(|error| error.to_string())
            };
            rows.iter().map(answer).collect::<Vec<_>>()
        };
        let (interpreted, native) = (run(Backend::Interpreter), run(Backend::Native));
        for ((row, interpreted), native) in rows.iter().zip(&interpreted).zip(&native) {
            assert_eq!(interpreted, native, "{expression} of {row:?}");
        }
        failed += interpreted.iter().filter(|answer| answer.is_err()).count();
    }
    assert!(failed > 10_000, "{failed}");
}

#[test]
fn timestamps_are_cut_as_by_a_library() {
    let model = Model::parse(
        "input t: timestamp
         output day = date.truncate(t, \"day\")
         output hour = date.truncate(t, \"hour\")
         output minute = date.truncate(t, \"minute\")
         output second = date.truncate(t, \"second\")
         output week = date.truncate(t, \"week\")
         output quarter = date.truncate(t, \"quarter\")
         output parts = (date.year(t), date.month(t), date.day(t), date.weekday(t), date.day_of_year(t))
         output made = timestamp.make(to_date(t), timestamp.hour(t), timestamp.minute(t), timestamp.second(t))",
    )
    .expect("a model");
    let mut random = Rng::with_seed(13);
    let (first, last) = (i64::from(Date::FIRST.0) * Timestamp::DAY, i64::from(Date::LAST.0 + 1) * Timestamp::DAY - 1);
    for backend in [Backend::Interpreter, Backend::Native] {
        let executor = model.compile(&Options::default().backend(backend)).expect("an executor");
        let mut session = executor.session();
        for _ in 0..100_000 {
            let moment = Timestamp(random.i64(first..=last));
            let theirs = DateTime::<Utc>::try_from(moment).expect("a moment of theirs");
            let day = theirs.date_naive();
            let at = |date: NaiveDate, hour, minute, second| {
                let theirs = date.and_hms_opt(hour, minute, second).expect("a time");
                Value::from(Timestamp::from(theirs.and_utc()))
            };
            let (hour, minute, second) = (theirs.hour(), theirs.minute(), theirs.second());
            let monday = day.week(chrono::Weekday::Mon).first_day();
            let quarter = NaiveDate::from_ymd_opt(day.year(), day.month0() / 3 * 3 + 1, 1).expect("a first day");
            let weekday = day.weekday().number_from_monday();
            let parts = ints([day.year().cast_unsigned(), day.month(), day.day(), weekday, day.ordinal()]);
            let whole = Timestamp::from(day.and_hms_opt(hour, minute, second).expect("a time").and_utc());
            let expected = [
                at(day, 0, 0, 0),
                at(day, hour, 0, 0),
                at(day, hour, minute, 0),
                at(day, hour, minute, second),
                at(monday, 0, 0, 0),
                at(quarter, 0, 0, 0),
                Value::Tuple(parts.into()),
                Value::from(Some(whole)),
            ];
            assert_eq!(session.evaluate(&[Value::from(moment)]).expect("no fault"), expected, "{theirs}");
        }
    }
}

#[derive(Input)]
struct Visit {
    born: Date,
    seen: cembra::Optional<Timestamp>,
    until: Option<Date>,
}

#[derive(Output, Debug, PartialEq)]
struct Found {
    age: Option<i64>,
    next: Date,
    begins: cembra::Optional<Timestamp>,
    left: Option<i64>,
}

#[test]
fn structs_have_fields_of_them() {
    let model = Model::parse(
        "input born: date, seen: timestamp?, until: date?
         output age = timestamp.date(seen) - born
         output next = born + 1
         output begins = to_timestamp(until)
         output left = until - to_date(seen)",
    )
    .expect("a model");
    for backend in [Backend::Interpreter, Backend::Native] {
        let mut run = model.executor::<Visit, Found>(&Options::default().backend(backend)).expect("an executor");
        let born = Date::from(NaiveDate::from_ymd_opt(2024, 2, 28).expect("a day"));
        let noon = Timestamp(i64::from(born.0 + 10) * Timestamp::DAY + Timestamp::DAY / 2);
        let visit = Visit { born, seen: Some(noon).into(), until: Some(Date(0)) };
        let expected = Found {
            age: Some(10),
            next: Date::of(2024, 2, 29).expect("a day"),
            begins: Some(Timestamp(0)).into(),
            left: Some(i64::from(-born.0 - 10)),
        };
        assert_eq!(run.run(&visit).expect("no fault"), expected);
        let visit = Visit { born, seen: None.into(), until: None };
        let expected = Found { age: None, begins: None.into(), left: None, ..expected };
        assert_eq!(run.run(&visit).expect("no fault"), expected);
    }
}

/// Which operators take them is a decision: a new operator on any scalar must say what it does with a date.
#[test]
fn operators_that_take_a_date_are_known() {
    let date = QType::Scalar(Scalar::Date);
    let takes = |count: usize| {
        let all = Registry::standard().iter().map(|(_, def)| def);
        let args = vec![Argument { qtype: &date, literal: None }; count];
        // What is hidden is only reached through what is not.
        let open = all.filter(|def| !def.overloads().is_empty() && !def.name.contains("._"));
        let fits = open.filter(|def| def.resolve(&args).is_ok());
        fits.map(|def| def.name).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(
        takes(1),
        "core.has core.presence_not core.to_optional core.get_optional_value core.to_date core.to_timestamp \
         strings.as_text date.year date.month date.day date.weekday date.day_of_year date.quarter date.iso_year date.iso_week \
         date.is_leap_year date.days_in_month date.start_of_month date.end_of_month"
    );
    assert_eq!(
        takes(2),
        "math.subtract math.maximum math.minimum core.equal core.not_equal core.less core.less_equal core.greater core.greater_equal \
         bool.equal bool.not_equal bool.less bool.less_equal bool.greater bool.greater_equal core.presence_or \
         date.months_between date.years_between"
    );
}

/// A hundred thousand lengths of time, in all backends, against 128-bit integers and against the library.
#[test]
fn durations_are_those_of_a_library_and_of_wider_integers() {
    let outputs = [
        ("sum", "d + e"),
        ("difference", "d - e"),
        ("product", "d * n"),
        ("quotient", "d / n"),
        ("scaled", "d * x"),
        ("ratio", "d / e"),
        ("times", "d // e"),
        ("rest", "d % e"),
        ("later", "t + d"),
        ("earlier", "t - d"),
        ("negative", "-d"),
        ("written", "strings.as_text(d)"),
    ];
    let models = outputs.map(|(_, of)| {
        let text = format!("input d, e: duration; input n: i64; input x: f64; input t: timestamp; {of}");
        Model::parse(&text).expect("a model")
    });
    let mut random = Rng::with_seed(41);
    let mut length = || Duration(random.i64(..) >> random.u32(..60));
    let pairs: Vec<(Duration, Duration)> = (0..100_000).map(|_| (length(), length())).collect();
    let rows: Vec<(Duration, Duration, i64, f64, Timestamp)> = pairs
        .into_iter()
        .map(|(d, e)| {
            let n = random.i64(..) >> random.u32(..64);
            (d, e, if n == 0 { 1 } else { n }, (random.f64() - 0.5) * 8.0, Timestamp(random.i64(..) >> 2))
        })
        .collect();
    let micros = |exact: i128| i64::try_from(exact).ok().map(Duration);
    let half_even = |x: i128, by: i128| {
        let (quotient, rest) = (x.div_euclid(by), x.rem_euclid(by));
        let size = by.abs();
        // What is rounded up is nearer to the next multiple.
        let is_up = 2 * rest > size || (2 * rest == size && quotient % 2 != 0);
        if is_up { quotient + by.signum() } else { quotient }
    };
    let mut faults = 0;
    for backend in [Backend::Interpreter, Backend::Native] {
        for (at, (name, _)) in outputs.iter().enumerate() {
            let options = Options::default().backend(backend);
            let executor = models[at].compile(&options).expect("an executor");
            let names: Vec<&str> = executor.inputs().iter().map(|input| &*input.name).collect();
            let mut session = executor.session();
            for (d, e, n, x, t) in &rows {
                let [dx, ex, nx, tx] = [d.0, e.0, *n, t.0].map(i128::from);
                let expected = match at {
                    0 => micros(dx + ex).map(Value::from),
                    1 => micros(dx - ex).map(Value::from),
                    2 => micros(dx * nx).map(Value::from),
                    3 => micros(half_even(dx, nx)).map(Value::from),
                    4 => micros((d.0 as f64 * x).round_ties_even() as i128).map(Value::from),
                    5 => Some(Value::from(d.0 as f64 / e.0 as f64)),
                    6 | 7 if e.0 == 0 => None,
                    6 => i64::try_from(dx.div_euclid(ex) - i128::from(ex < 0 && dx.rem_euclid(ex) != 0))
                        .ok()
                        .map(Value::from),
                    7 => {
                        let rest = dx.rem_euclid(ex);
                        micros(if ex < 0 && rest != 0 { rest + ex } else { rest }).map(Value::from)
                    }
                    8 => micros(tx + dx).map(|sum| Value::from(Timestamp(sum.0))),
                    9 => micros(tx - dx).map(|difference| Value::from(Timestamp(difference.0))),
                    10 => micros(-dx).map(Value::from),
                    _ => Some(Value::text(d.to_string())),
                };
                let given = names.iter().map(|name| match *name {
                    "d" => Value::from(*d),
                    "e" => Value::from(*e),
                    "n" => Value::from(*n),
                    "x" => Value::from(*x),
                    _ => Value::from(*t),
                });
                let given: Vec<Value> = given.collect();
                match (session.evaluate(&given), expected) {
                    (Ok(found), Some(expected)) => assert!(found[0].same(&expected), "{name} of {given:?}: {found:?}"),
                    (Err(error), None) => {
                        faults += 1;
                        assert_eq!(
                            error.code(),
                            if e.0 == 0 && (6..=7).contains(&at) { "div-by-zero" } else { "time-range" },
                            "{name} of {given:?}"
                        );
                    }
                    (found, expected) => panic!("{name} of {given:?}: {found:?}, not {expected:?}"),
                }
            }
        }
    }
    assert!(faults > 1000, "{faults}");
    for (d, ..) in &rows {
        let theirs = TimeDelta::from(*d);
        assert_eq!(Duration::try_from(theirs), Ok(*d));
        assert_eq!(theirs.num_microseconds(), Some(d.0));
        // Theirs writes days and seconds, as `P1DT43200S`.
        assert_eq!(theirs.to_string().parse(), Ok(*d), "{theirs}");
    }
    assert!(Duration::try_from(TimeDelta::MAX).is_err());
}

/// A request as a service has it: one struct for serde and for the model.
#[derive(serde::Deserialize, serde::Serialize, cembra::Input, Clone, PartialEq, Debug)]
struct Arrival {
    on: Date,
    at: Timestamp,
    stay: Duration,
    left: cembra::Optional<Timestamp>,
    paid: cembra::Mask,
}

#[test]
fn dates_and_moments_are_the_texts_of_json_to_serde() {
    let text = r#"{"on":"2026-11-20","at":"2026-11-20T10:15:00.5Z","stay":"PT36H","left":null,"paid":true}"#;
    let visit: Arrival = serde_json::from_str(text).expect("a visit");
    assert_eq!((visit.on, visit.stay, visit.paid.0), (Date(20_777), Duration(129_600_000_000), true));
    let again = serde_json::to_string(&visit).expect("JSON");
    assert_eq!(again, text.replace("PT36H", "P1DT12H"));
    // What data may write is read, and rounded down; what is left out is missing.
    let late = r#"{"on":"2026-11-20","at":"1969-12-31 23:59:59.999999999+00:00","stay":"-PT0.000000001S","paid":null}"#;
    let visit: Arrival = serde_json::from_str(late).expect("a visit");
    assert_eq!((visit.at, visit.stay, visit.paid.0), (Timestamp(-1), Duration(-1), false));
    assert_eq!(visit.left.get(), None);
    let wrong = serde_json::from_str::<Arrival>(&text.replace("2026-11-20\",", "2026-13-20\",")).expect_err("no month");
    assert!(wrong.to_string().contains("expected a date as 2026-11-20"), "{wrong}");

    // The struct is a row of the model in place, and one of serde.
    let model = Model::parse("output y = (left ?? at) + stay; output d: date = on + 1").expect("a model");
    let mut typed = model.executor::<Arrival, Timestamp>(&Options::default()).expect("it fits");
    let visit: Arrival = serde_json::from_str(text).expect("a visit");
    let expected = Timestamp(visit.at.0 + visit.stay.0);
    assert_eq!(typed.run(&visit).expect("a result"), expected);
    let types = [("at", Scalar::Timestamp), ("stay", Scalar::Duration), ("on", Scalar::Date)];
    let options = Options::default().input_type("left", QType::Optional(Scalar::Timestamp));
    let options =
        types.into_iter().fold(options, |options, (name, scalar)| options.input_type(name, QType::Scalar(scalar)));
    let mut rows = model.executor_for_rows::<Timestamp>(&options).expect("it fits");
    assert_eq!(rows.run(&visit).expect("a result"), expected);
    // As `chrono` writes what `Utc::now()` is.
    let row = serde_json::json!({"at": "2023-11-14T22:13:20.123456789Z", "stay": "PT0.123456789S", "left": null, "on": "2023-11-14"});
    assert_eq!(rows.run(&row).expect("a result"), Timestamp(1_700_000_000_123_456 + 123_456));
}

#[derive(cembra::Input, Clone, Copy)]
struct Stay {
    day: NaiveDate,
    from: DateTime<Utc>,
    local: Option<DateTime<chrono::FixedOffset>>,
    length: TimeDelta,
}

#[derive(cembra::Output, PartialEq, Debug)]
struct Ends {
    next: NaiveDate,
    until: DateTime<Utc>,
    there: Option<DateTime<chrono::FixedOffset>>,
    twice: TimeDelta,
}

#[test]
fn the_types_of_chrono_are_fields() {
    let model = Model::parse(
        "input day: date, from: timestamp, local: timestamp?, length: duration
         output next = day + 1; output until = from + length; output there = local + length; output twice = length * 2",
    )
    .expect("a model");
    let moment = |micros: i64, nanos: i64| {
        DateTime::<Utc>::from_timestamp_micros(micros).expect("a moment") + TimeDelta::nanoseconds(nanos)
    };
    let zone = chrono::FixedOffset::east_opt(7_200).expect("a zone");
    for backend in [Backend::Interpreter, Backend::Native] {
        let mut executor = model.executor::<Stay, Ends>(&Options::default().backend(backend)).expect("it fits");
        let random = &mut Rng::with_seed(9);
        for round in 0..2_000 {
            // Before 1970, too, and with nanoseconds.
            let (at, rest, length) = (
                random.i64(-1_000_000_000_000..1_000_000_000_000),
                random.i64(0..1_000),
                random.i64(-9_999_999..9_999_999),
            );
            let day = NaiveDate::from_num_days_from_ce_opt(random.i32(1..3_000_000)).expect("a day");
            let from = moment(at, rest);
            let local = (round % 3 > 0).then(|| from.with_timezone(&zone));
            let ends =
                executor.run(&Stay { day, from, local, length: TimeDelta::nanoseconds(length) }).expect("a result");
            let micros = length.div_euclid(1_000);
            let until = moment(at + micros, 0);
            let next = day.succ_opt().expect("a day");
            let twice = TimeDelta::microseconds(2 * micros);
            assert_eq!(ends, Ends { next, until, there: local.map(|_| until.fixed_offset()), twice });
        }
        // Lists of them, and a result that `chrono` does not have.
        let first = Model::parse("input days: [date]; days[0] + 1").expect("a model");
        let mut first =
            first.executor::<Days, Option<NaiveDate>>(&Options::default().backend(backend)).expect("it fits");
        let day = NaiveDate::from_ymd_opt(2026, 11, 20).expect("a day");
        assert_eq!(first.run(&Days { days: vec![day, day] }).expect("a result"), day.succ_opt());
        let far = Model::parse("input days: [date]; days[0] + 2_000_000_000").expect("a model");
        let mut far = far.executor::<Days, Option<NaiveDate>>(&Options::default().backend(backend)).expect("it fits");
        let error = far.run(&Days { days: vec![day] }).expect_err("too far");
        assert!(error.to_string().contains("expected a date that `chrono` can hold"), "{error}");
    }
    assert_eq!(Duration::try_from(TimeDelta::nanoseconds(-1)), Ok(Duration(-1)));
    assert_eq!(Timestamp::from(moment(-1, 999).with_timezone(&zone)), Timestamp(-1));
}

#[derive(cembra::Input)]
struct Days {
    days: Vec<NaiveDate>,
}
