//! Tests rows that are Rust structs, read and written in place by every row player (backend for many rows).

use super::batch::players;
use cembra::{Model, Optional, Options};

#[derive(cembra::Input)]
struct Visit {
    age: Optional<f32>,
    name: String,
    weight: Option<f64>,
    known: bool,
    id: i64,
}

#[derive(cembra::Output, Clone, Debug, Default, PartialEq)]
struct Report {
    label: String,
    heavy: cembra::Mask,
    age: Optional<f32>,
    id: i64,
    note: Option<String>,
}

#[test]
fn structs_are_read_and_written_in_place() {
    let source = "input age: f32?; input name: text; input weight: f64?; input known: bool; input id: i64
        output label = strings.join(name, '/', strings.decode(b'x'))
        output heavy = weight > 80.0
        output \"age\" = where(known, age)
        output \"id\" = id * 3
        output note = where(weight < 60.0, name)";
    let model = Model::parse(source).unwrap();
    let rows: Vec<Visit> = (0..2100_i64)
        .map(|row| Visit {
            age: if row % 3 == 0 { Optional::missing() } else { (row as f32).into() },
            name: format!("n{}", row % 50),
            weight: (row % 7 != 2).then_some(40.0 + (row % 61) as f64),
            known: row % 5 < 3,
            id: row - 1000,
        })
        .collect();
    for player in players() {
        let mut executor = model.executor::<Visit, Report>(&Options::default().row_player(player)).unwrap();
        let mut found = vec![Report::default(); rows.len()];
        executor.run_many(&rows, &mut found).unwrap();
        for (row, found) in rows.iter().zip(&found) {
            assert_eq!(*found, executor.run(row).unwrap());
        }
        assert_eq!(executor.run_many(&rows, &mut found[1..]).unwrap_err().code(), "values");
    }
}

#[derive(cembra::Input)]
struct Parcel {
    weight: f64,
    limit: Optional<f32>,
    discount: Option<f64>,
    fragile: bool,
    express: Optional<bool>,
    count: i32,
}

#[derive(cembra::Output, Clone, Debug, Default, PartialEq)]
struct Price {
    total: Optional<f64>,
    over: cembra::Mask,
    each: Option<f64>,
    fragile: bool,
    count: i32,
}

/// Fields that are read in place have the size of their struct as stride; fields that are copied to a temporary column
/// have the stride of that column.
#[test]
fn fields_of_structs_of_different_sizes_are_told_apart() {
    let source = "input weight: f64; input limit: f32?; input discount: f64?; input fragile: bool; input express: bool?
        input count: i32
        output total = where((express ?? false) == true, weight * 2.5 - (discount ?? 0.25))
        output over = weight > limit
        output each = discount / math.float(count)
        output \"fragile\" = if count > 7 then true else fragile
        output \"count\" = count * 2";
    let model = Model::parse(source).unwrap();
    let rows: Vec<Parcel> = (0..1100_i32)
        .map(|row| Parcel {
            weight: f64::from(row % 83) - 0.125,
            limit: if row % 4 == 1 { Optional::missing() } else { ((row % 57) as f32).into() },
            discount: (row % 6 != 5).then_some(f64::from(row % 13) / 8.0),
            fragile: row % 11 == 0,
            express: if row % 5 == 2 { Optional::missing() } else { (row % 3 == 0).into() },
            count: row % 10 + 1,
        })
        .collect();
    for player in players() {
        let mut executor = model.executor::<Parcel, Price>(&Options::default().row_player(player)).unwrap();
        let mut found = vec![Price::default(); rows.len()];
        executor.run_many(&rows, &mut found).unwrap();
        for (row, found) in rows.iter().zip(&found) {
            assert_eq!(*found, executor.run(row).unwrap(), "{player:?}");
        }
        assert_eq!(found[0].total.get(), Some(-0.3125), "{player:?}");
        assert_eq!((found[7].total.get(), found[7].fragile, found[7].count), (None, true, 16), "{player:?}");
    }
}
