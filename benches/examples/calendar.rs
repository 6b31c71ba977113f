//! Calendars, durations and tables by ranges over columns, beside loops written by hand over the same columns: nanoseconds per row, minima of
//! interleaved rounds. `cargo run --release --manifest-path benches/Cargo.toml --example calendar [rows]`.

use cembra::{
    Batch, ColumnMut, Date, Duration, Error, InputColumn, Limits, Model, Options, Registry, Sources, Timestamp,
    UsedFile,
};
use cembra_benches::measure::shortest;
use std::hint::black_box;
use std::io::Write;

/// Rounds of a comparison.
const ROUNDS: usize = 15;

/// Year, month from March and day from 0, as the days of a date are commonly taken apart.
fn from_march(date: Date) -> (i32, i32, i32) {
    let days = date.0 + 719_468;
    let (cycle, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let of_year = day - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    (year + 400 * cycle, month, of_year - (153 * month + 2) / 5)
}

/// Full years from one date to a later one.
fn age(born: Date, today: Date) -> i32 {
    let [(born, born_month, born_day), (now, month, day)] = [born, today].map(from_march);
    // Both count years from March, so that they are compared alike.
    now - born - i32::from((month, day) < (born_month, born_day))
}

/// The first day of the month.
fn month_of(date: Date) -> Date {
    Date(date.0 - from_march(date).2)
}

fn batch(source: &str) -> Result<Batch, Error> {
    Model::parse(source)?.batch(&Options::default())
}

/// A model with a table of `ranges` ranges, in which it looks `x` up.
fn lookup(ranges: usize) -> Result<Batch, Error> {
    let mut rows = "from,value\n".to_owned();
    for at in 0..ranges {
        // A text takes all that is written.
        let _never_fails = std::fmt::Write::write_fmt(&mut rows, format_args!("{at}.0,{}.5\n", at % 1000));
    }
    let limits = Limits { source_bytes: 1 << 28, literal_bytes: 1 << 30, ..Limits::default() };
    let text = "table bands: ranges of f64 -> f64 = \"bands.csv\"\ninput x: f64\noutput y = lookup(x, bands, 0.0)";
    let used = |_: &str, _: &str| Ok(UsedFile { name: "bands.csv".to_owned(), text: rows.as_str().into() });
    let sources = Sources::gather("model.cem", text, &limits, &used);
    Model::parse_sources(sources, Registry::standard(), &limits)?.batch(&Options::default().limits(limits))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let rows: usize = std::env::args().nth(1).map_or(Ok(1_000_000), |rows| rows.parse())?;
    let mut random = fastrand::Rng::with_seed(7);
    let today = Date::of(2026, 11, 26).unwrap_or_default();
    let born: Vec<Date> = (0..rows).map(|_| Date(today.0 - random.i32(0..36_000))).collect();
    let moments: Vec<Timestamp> = (0..rows).map(|_| Timestamp(random.i64(0..1 << 50))).collect();
    let earlier: Vec<Timestamp> = moments.iter().map(|at| Timestamp(at.0 - random.i64(0..1 << 40))).collect();
    let mut out = std::io::stdout().lock();
    let mut report = |name: &str, [cembra, by_hand]: [f64; 2]| {
        let [cembra, by_hand] = [cembra, by_hand].map(|taken| taken / rows as f64);
        writeln!(out, "{name:<28} {cembra:7.3} ns, by hand {by_hand:7.3} ns, ratio {:.2}", cembra / by_hand)
    };

    let (mut years, mut by_hand) = (vec![0; rows], vec![0; rows]);
    let ages = batch("input born, today: date; date.years_between(born, today)")?;
    let shared = today.into();
    let inputs = [InputColumn::values(&born), InputColumn::shared(&shared)];
    let taken = shortest(
        ROUNDS,
        || ages.start().run_into(&inputs, vec![Some(ColumnMut::values(&mut years))]).map(drop),
        || {
            by_hand.iter_mut().zip(&born).for_each(|(to, born)| *to = age(*born, black_box(today)));
            Ok(())
        },
    );
    assert_eq!(years, by_hand);
    report("age in years", taken)?;

    let (mut months, mut by_hand) = (vec![Date(0); rows], vec![Date(0); rows]);
    let truncated = batch("input born: date; date.truncate(born, \"month\")")?;
    let taken = shortest(
        ROUNDS,
        || truncated.start().run_into(&inputs[..1], vec![Some(ColumnMut::values(&mut months))]).map(drop),
        || {
            by_hand.iter_mut().zip(&born).for_each(|(to, born)| *to = month_of(*born));
            Ok(())
        },
    );
    assert_eq!(months, by_hand);
    report("truncation to months", taken)?;

    let (mut lengths, mut by_hand) = (vec![Duration(0); rows], vec![Duration(0); rows]);
    let differences = batch("input t, u: timestamp; t - u")?;
    let both = [InputColumn::values(&moments), InputColumn::values(&earlier)];
    let taken = shortest(
        ROUNDS,
        || differences.start().run_into(&both, vec![Some(ColumnMut::values(&mut lengths))]).map(drop),
        || {
            // The first overflow ends the loop.
            let rows = by_hand.iter_mut().zip(moments.iter().zip(&earlier));
            let mut made = rows.map(|(to, (t, u))| t.0.checked_sub(u.0).map(|micros| *to = Duration(micros)));
            made.try_for_each(|done| done).ok_or_else(|| Error::values("beyond 64 bits"))
        },
    );
    assert_eq!(lengths, by_hand);
    report("timestamp - timestamp", taken)?;

    let mut hours = vec![0.0; rows];
    let mut by_hand = vec![0.0; rows];
    let in_hours = batch("input t, u: timestamp; duration.hours(t - u)")?;
    let taken = shortest(
        ROUNDS,
        || in_hours.start().run_into(&both, vec![Some(ColumnMut::values(&mut hours))]).map(drop),
        || {
            let rows = by_hand.iter_mut().zip(moments.iter().zip(&earlier));
            let mut made = rows.map(|(to, (t, u))| t.0.checked_sub(u.0).map(|micros| *to = micros as f64 / 3.6e9));
            made.try_for_each(|done| done).ok_or_else(|| Error::values("beyond 64 bits"))
        },
    );
    assert_eq!(hours, by_hand);
    report("hours between timestamps", taken)?;

    for ranges in [10, 1_000, 1_000_000] {
        let bands = lookup(ranges)?;
        let bounds: Vec<f64> = (0..ranges).map(|at| at as f64).collect();
        let values: Vec<f64> = (0..ranges).map(|at| (at % 1000) as f64 + 0.5).collect();
        // Some keys are below the first range.
        let keys: Vec<f64> = (0..rows).map(|_| (random.f64() * 1.01 - 0.01) * ranges as f64).collect();
        let (mut found, mut by_hand) = (vec![0.0; rows], vec![0.0; rows]);
        let column = [InputColumn::values(&keys)];
        let taken = shortest(
            ROUNDS,
            || bands.start().run_into(&column, vec![Some(ColumnMut::values(&mut found))]).map(drop),
            || {
                for (to, key) in by_hand.iter_mut().zip(&keys) {
                    let at = bounds.partition_point(|bound| bound <= key);
                    *to = at.checked_sub(1).map_or(0.0, |at| values[at]);
                }
                Ok(())
            },
        );
        assert_eq!(found, by_hand);
        report(&format!("a table of {ranges} ranges"), taken)?;
    }
    Ok(())
}
