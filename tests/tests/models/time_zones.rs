//! Clocks of all time zones against those of Python, in both backends. The data are of one release of the database.

use cembra::{Backend, Model, Options, Timestamp, Value};

const DATA: &str = include_str!("../../time_zones.csv");

fn seconds(text: &str) -> Timestamp {
    Timestamp(text.parse::<i64>().expect("seconds") * 1_000_000)
}

#[test]
fn the_data_are_of_the_release_that_the_library_has() {
    let release = cembra::operators::time_zones();
    let first = DATA.lines().next().unwrap_or_default();
    assert!(first.ends_with(&format!("tzdata {release}.")), "{first}: the library has {release}");
}

#[test]
fn clocks_of_all_zones_are_those_of_python() {
    let shown = Model::parse("input t: timestamp, zone: text; timestamp.local(t, zone)").expect("a model");
    let meant = Model::parse(
        "input t: timestamp, zone: text
         output earlier = timestamp.from_local(t, zone, \"earlier\")
         output later = timestamp.from_local(t, zone, \"later\")
         output only = timestamp.from_local(t, zone, \"missing\")",
    )
    .expect("a model");
    let mut tried = [0, 0];
    for backend in [Backend::Interpreter, Backend::Native] {
        let compiled = |model: &Model| model.compile(&Options::default().backend(backend)).expect("an executor");
        let (shown, meant) = (compiled(&shown), compiled(&meant));
        let (mut shown, mut meant) = (shown.session(), meant.session());
        for line in DATA.lines().filter(|line| !line.starts_with('#')) {
            let fields: Vec<&str> = line.split(',').collect();
            let row = |moment: Timestamp| [Value::from(moment), Value::text(fields[0])];
            match fields[1..] {
                [moment, ahead] => {
                    let (moment, ahead) = (seconds(moment), seconds(ahead));
                    // A microsecond before the next second it is as at its beginning.
                    for more in [0, 999_999] {
                        let found = shown.evaluate(&row(Timestamp(moment.0 + more))).expect("no fault");
                        assert_eq!(found, [Value::from(Timestamp(moment.0 + more + ahead.0))], "{line}");
                    }
                    tried[0] += 1;
                }
                [clock, earlier, later] => {
                    let of = |text: &str| (!text.is_empty()).then(|| seconds(text));
                    let only = of(earlier).filter(|_| earlier == later);
                    let expected = [of(earlier), of(later), only].map(Value::from);
                    assert_eq!(meant.evaluate(&row(seconds(clock))).expect("no fault"), expected, "{line}");
                    tried[1] += 1;
                }
                _ => panic!("{line} has another number of fields"),
            }
        }
    }
    assert!(tried[0] > 4000 && tried[1] > 3000, "{tried:?}");
}
