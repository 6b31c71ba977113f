//! Tests batches (evaluations of many rows): for every layout of columns, results are those of a session that evaluates
//! row by row.

use cembra::columns::{Bitmap, BitmapMut, ColumnMut, InputColumn, Keys};
use cembra::explain::RowPlayer;
use cembra::{Batch, Cancellation, Limits, Model, OnError, Optional, Options, RunOptions, ScalarValue, Session, Value};

/// Returns true if this machine supports `player`, a backend that evaluates many rows at a time.
fn is_there(player: RowPlayer) -> bool {
    let model = Model::parse("input x: f64; x + 1.0").expect("a model");
    let batch = model.batch(&Options::default().row_player(player)).expect("a batch");
    batch.run(&[InputColumn::values(&[1.0])]).is_ok()
}

/// Returns the backends for many rows that this machine supports.
pub(super) fn players() -> impl Iterator<Item = RowPlayer> {
    RowPlayer::ALL.into_iter().filter(|player| is_there(*player))
}

pub(super) fn batches(source: &str) -> (Session, Vec<Batch>) {
    let model = Model::parse(source).expect("a model");
    let session = model.compile(&Options::default()).expect("an executor").session();
    let batch = |player| model.batch(&Options::default().row_player(player)).expect("a batch");
    (session, players().map(batch).collect())
}

/// Returns `rows` numbers with a long period: neighbouring blocks of rows differ.
fn numbers(rows: usize) -> Vec<f64> {
    (0..rows).map(|row| ((row * 7919 + 13) % 1009) as f64 / 64.0 - 7.0).collect()
}

#[test]
fn columns_in_any_layout_are_evaluated_as_rows_are() {
    let source = "input x: f64?; input flag: bool; input name: text; input n: i32
        output y = where(flag, x * 2.0, x + to_float64(n))
        output long = strings.length(name) > n
        output greeting = strings.join(name, '!')
        output both = flag";
    let (mut session, batches) = batches(source);
    for rows in [0, 1, 63, 64, 65, 130, 1000, 1025, 2500] {
        for offset in [0, 3, 8, 61] {
            let x = numbers(rows);
            let present: Vec<u8> = (0..(rows + offset).div_ceil(8)).map(|at| (at * 89 + 37) as u8).collect();
            let flags: Vec<u8> = (0..(rows + offset).div_ceil(8)).map(|at| (at * 57 + 11) as u8).collect();
            let texts: Vec<String> = (0..rows).map(|row| "né".repeat(row % 11)).collect();
            let slices: Vec<&str> = texts.iter().map(String::as_str).collect();
            let n: Vec<i32> = (0..rows as i32).map(|row| row % 9 - 2).collect();
            let presence = Bitmap::new(&present, offset, rows).unwrap();
            let flag = Bitmap::new(&flags, offset, rows).unwrap();
            let bools: Vec<bool> = (0..rows).map(|row| flag.get(row)).collect();
            let optional: Vec<Optional<f64>> =
                (0..rows).map(|row| if presence.get(row) { x[row].into() } else { Optional::missing() }).collect();
            let expected: Vec<Vec<Value>> = (0..rows)
                .map(|row| {
                    let inputs =
                        [optional[row].get().into(), bools[row].into(), texts[row].as_str().into(), n[row].into()];
                    session.evaluate(&inputs).unwrap()
                })
                .collect();
            let values: Vec<Vec<Value>> = vec![
                optional.iter().map(|x| x.get().into()).collect(),
                bools.iter().map(|flag| (*flag).into()).collect(),
                texts.iter().map(|text| text.as_str().into()).collect(),
                n.iter().map(|n| (*n).into()).collect(),
            ];
            let layouts: [[InputColumn<'_>; 4]; 3] = [
                [
                    InputColumn::values(&x).present(presence),
                    InputColumn::bits(flag),
                    InputColumn::texts(&slices),
                    InputColumn::values(&n),
                ],
                [
                    InputColumn::optionals(&optional),
                    InputColumn::values(&bools),
                    InputColumn::owned_texts(&texts),
                    InputColumn::values(&n),
                ],
                [0, 1, 2, 3].map(|at| InputColumn::any(&values[at])),
            ];
            for batch in &batches {
                for columns in &layouts {
                    let made = batch.run(columns).unwrap();
                    for (row, expected) in expected.iter().enumerate() {
                        let found: Vec<Value> = made.iter().map(|column| column.value(row).unwrap()).collect();
                        assert!(
                            found.iter().zip(expected).all(|(a, b)| a.same(b)),
                            "{batch:?} row {row} of {rows}, offset {offset}: {found:?} for {expected:?}"
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn outputs_go_where_the_caller_wants_them() {
    let (_, batches) = batches("input x: f64; output y = x * 2.0; output z = where(x > 0.0, x); output p = x > 0.0");
    for batch in &batches {
        for rows in [0, 1, 64, 100, 1100] {
            let x = numbers(rows);
            let mut y = vec![7.0; rows];
            let mut z = vec![7.0; rows];
            for offset in [0, 5] {
                let mut present = vec![0xFF; rows / 8 + 2];
                let mut optional = vec![Optional::missing(); rows];
                let mut masks = vec![0; rows / 8 + 2];
                let bits = BitmapMut::new(&mut masks, offset, rows).unwrap();
                batch
                    .run_into(
                        &RunOptions::new(),
                        &[InputColumn::values(&x)],
                        vec![
                            Some(ColumnMut::values(&mut y)),
                            Some(ColumnMut::optionals(&mut optional)),
                            Some(ColumnMut::units(rows).present(bits)),
                        ],
                    )
                    .unwrap();
                let z_bits = BitmapMut::new(&mut present, offset, rows).unwrap();
                let mut masks_again = vec![0; rows];
                let more = BitmapMut::new(&mut masks_again, 0, rows).unwrap();
                batch
                    .run_into(
                        &RunOptions::new(),
                        &[InputColumn::values(&x)],
                        vec![
                            Some(ColumnMut::values(&mut y)),
                            Some(ColumnMut::values(&mut z).present(z_bits)),
                            Some(ColumnMut::units(rows).present(more)),
                        ],
                    )
                    .unwrap();
                let (present, masks) =
                    (Bitmap::new(&present, offset, rows).unwrap(), Bitmap::new(&masks, offset, rows).unwrap());
                for row in 0..rows {
                    let positive = x[row] > 0.0;
                    assert_eq!(y[row], 2.0 * x[row]);
                    assert_eq!((present.get(row), masks.get(row)), (positive, positive));
                    assert_eq!(optional[row].get(), positive.then_some(x[row]));
                    assert!(!positive || z[row] == x[row]);
                }
            }
        }
    }
}

#[test]
fn a_dictionary_is_its_values() {
    let (_, batches) =
        batches("input name: text?; output upper = strings.upper(name); output n = strings.length(name)");
    let words = ["red", "green", "blue"];
    let values = InputColumn::texts(&words);
    let keys: Vec<i16> = (0..500).map(|row| (row * 7 % 5) as i16 - 1).collect();
    let present: Vec<u8> = (0..63).map(|at| (at * 37 + 90) as u8).collect();
    let presence = Bitmap::new(&present, 2, 500).unwrap();
    let columns = [InputColumn::dictionary(Keys::I16(&keys), &values).present(presence)];
    for batch in &batches {
        let strange = (0..500).find(|row| presence.get(*row) && !(0..3).contains(&keys[*row])).unwrap();
        let error = batch.run(&columns).unwrap_err().to_string();
        assert_eq!(error, format!("input `name` has a key in row {strange} that is not in the dictionary"));
    }
    let keys: Vec<u8> = (0..500).map(|row| if presence.get(row) { (row % 3) as u8 } else { 200 }).collect();
    let columns = [InputColumn::dictionary(Keys::U8(&keys), &values).present(presence)];
    for batch in &batches {
        let made = batch.run(&columns).unwrap();
        for row in 0..500 {
            let word = presence.get(row).then(|| words[row % 3]);
            assert_eq!(made[0].text(row), word.map(str::to_uppercase).as_deref());
            assert_eq!(made[1].value(row).unwrap(), Value::from(word.map(|word| word.len() as i64)));
        }
    }
}

#[test]
fn a_dictionary_of_no_plain_column_is_refused() {
    let (_, batches) = batches("input n: i64; n + 1");
    let (numbers, keys) = ([5_i64, 7], [1_u8, 0, 1]);
    let plain = InputColumn::values(&numbers);
    let inner = InputColumn::dictionary(Keys::U8(&keys), &plain);
    let any = [Value::from(Some(3_i64))];
    let value = Value::from(Some(4_i64));
    for batch in &batches {
        let made = batch.run(&[inner]).unwrap();
        assert_eq!(made[0].values::<i64>(), Some(&[8, 6, 8][..]));
        let refused = |values: InputColumn<'_>| {
            batch.run(&[InputColumn::dictionary(Keys::U8(&[0]), &values)]).unwrap_err().to_string()
        };
        for values in [inner, InputColumn::any(&any), InputColumn::shared(&value)] {
            assert_eq!(
                refused(values),
                "input `n` is a dictionary, but its values are not a column of numbers or strings"
            );
        }
        // A value that is missing in the dictionary, behind keys that are there and one that is not looked at.
        let holes = plain.present(Bitmap::new(&[0b01], 0, 2).unwrap());
        let present = Bitmap::new(&[0b0111], 0, 4).unwrap();
        let column = InputColumn::dictionary(Keys::U8(&keys), &holes).present(present);
        assert_eq!(batch.run(&[column]).unwrap_err().to_string(), "input `n` is missing in row 0");
    }
}

#[test]
fn the_first_failing_row_is_the_error() {
    let (_, batches) = batches("input x, y: i64; x // y");
    for batch in &batches {
        for rows in [70, 3000, 50_000] {
            let x: Vec<i64> = (0..rows as i64).collect();
            for faults in [vec![0], vec![rows - 1], vec![65, 66, rows - 1]] {
                let mut y = vec![3_i64; rows];
                faults.iter().for_each(|row| y[*row] = 0);
                let columns = [InputColumn::values(&x), InputColumn::values(&y)];
                for (threads, strip) in [(1, usize::MAX), (3, usize::MAX), (3, 0), (3, 200)] {
                    let options = RunOptions::new().threads(threads).strip_rows(strip);
                    let error = batch.run_with(&options, &columns).unwrap_err();
                    assert_eq!((error.row(), error.code()), (Some(faults[0]), "div-by-zero"));
                    let options = options.on_error(OnError::Missing).keep_failures(2);
                    let made = batch.run_with(&options, &columns).unwrap();
                    assert_eq!(made.failed, faults);
                    assert_eq!(made.failures.len(), faults.len().min(2));
                    for (row, x) in x.iter().enumerate() {
                        let expected = Value::from((!faults.contains(&row)).then_some(x / 3));
                        assert_eq!(made.columns[0].value(row).unwrap(), expected);
                    }
                }
            }
        }
    }
}

/// If rows fail on several threads, the error is that of the row with the lowest index, also if another thread failed
/// earlier in time.
#[test]
fn a_thread_that_fails_early_does_not_stop_those_in_front_of_it() {
    let (_, batches) = batches("input x, y: i64; x // y");
    let rows = 400_000;
    let x = vec![7_i64; rows];
    let mut y = vec![3_i64; rows];
    // Of 12 ranges the third, and those that other threads begin with.
    for row in [80_000, 100_005, 200_005, 300_005] {
        y[row] = 0;
    }
    // The best player is the first.
    let best = &batches[0];
    for _ in 0..40 {
        let columns = [InputColumn::values(&x), InputColumn::values(&y)];
        let error = best.run_with(&RunOptions::new().threads(3), &columns).unwrap_err();
        assert_eq!(error.row(), Some(80_000));
    }
}

#[test]
fn what_does_not_fit_is_refused_with_its_name() {
    let (_, batches) = batches("input x: f64; input y: i32?; output z = x * to_float64(y ?? 1)");
    let (x, y) = (numbers(100), vec![1_i32; 100]);
    let mut bits = [0xFF; 13];
    bits[9] = 0xFB;
    let holes = Bitmap::new(&bits, 0, 100).unwrap();
    let short = Bitmap::new(&bits, 0, 99).unwrap();
    let (good, other) = (InputColumn::values(&x), InputColumn::values(&y));
    let mut narrow = vec![0_f32; 100];
    for batch in &batches {
        let refused = |columns: &[InputColumn<'_>]| batch.run(columns).unwrap_err().to_string();
        assert_eq!(refused(&[good]), "there are 1 input columns for 2 inputs");
        assert_eq!(refused(&[other, other]), "input `x` is f64, but the column is i32");
        assert_eq!(refused(&[good.present(holes), other]), "input `x` is missing in row 74");
        assert_eq!(refused(&[good, InputColumn::values(&y[1..])]), "input `y` has 99 rows where there are 100");
        assert_eq!(refused(&[good.present(short), other]), "input `x` has 99 rows where there are 100");
        let output = vec![Some(ColumnMut::values(&mut narrow))];
        let error = batch.run_into(&RunOptions::new(), &[good, other], output).unwrap_err().to_string();
        assert_eq!(error, "output `z` is f64, but the column is f32");
        let mut plain = vec![0.0; 100];
        let output = vec![Some(ColumnMut::values(&mut plain))];
        let options = RunOptions::new().on_error(OnError::Missing);
        let error = batch.run_into(&options, &[good, other], output).unwrap_err().to_string();
        assert_eq!(error, "output `z` must have memory that marks the present rows");
        // The memory of an output that there is not, that is to be made, or that is another type's.
        let (of_first, of_second) = (InputColumn::of_output(0), InputColumn::of_output(1));
        let no_memory = |at| {
            format!(
                "input `x` reads the memory of output {at}, but no memory that can be read was given for that output"
            )
        };
        assert_eq!(
            batch.run_with(&RunOptions::new().rows(100), &[of_first, other]).unwrap_err().to_string(),
            no_memory(0)
        );
        let mut doubles = vec![1.5; 100];
        let mut refused = |x: InputColumn<'_>, y: InputColumn<'_>| {
            batch
                .run_into(&RunOptions::new(), &[x, y], vec![Some(ColumnMut::values(&mut doubles))])
                .unwrap_err()
                .to_string()
        };
        assert_eq!(refused(of_second, other), no_memory(1));
        assert_eq!(refused(good, of_first), "input `y` is i32?, but the column is f64");
        assert_eq!(refused(of_first.present(holes), other), "input `x` is missing in row 74");
        assert_eq!(doubles, [1.5; 100]);
    }
}

#[test]
fn one_value_is_shared_by_all_rows() {
    let (_, batches) = batches("input x: f64; input k: f64?; input s: text; output y = x * (k ?? 2.0); output t = s");
    let x = numbers(200);
    for (k, factor) in [(Value::from(Some(3.0)), 3.0), (Value::from(None::<f64>), 2.0)] {
        let text = Value::from("shared");
        let columns = [InputColumn::values(&x), InputColumn::shared(&k), InputColumn::shared(&text)];
        for batch in &batches {
            let made = batch.run(&columns).unwrap();
            let expected: Vec<f64> = x.iter().map(|x| x * factor).collect();
            assert_eq!(made[0].values::<f64>(), Some(&expected[..]));
            assert!((0..200).all(|row| made[1].text(row) == Some("shared")));
        }
    }
    let nothing = Model::parse("output one = 1.5").unwrap().batch(&Options::default()).unwrap();
    let error = nothing.run(&[]).unwrap_err().to_string();
    assert_eq!(error, "no column is given, so the number of rows is unknown: in Rust, call `RunOptions::rows`");
    let made = nothing.run_with(&RunOptions::new().rows(3), &[]).unwrap();
    assert_eq!(made.columns[0].rows(), 3);
}

#[test]
fn a_cancelled_run_ends() {
    let (_, batches) = batches("input x: f64; x + 1.0");
    let x = numbers(5000);
    let token = Cancellation::new();
    token.cancel();
    for batch in &batches {
        let error =
            batch.run_with(&RunOptions::new().cancellation(token.clone()), &[InputColumn::values(&x)]).unwrap_err();
        assert_eq!(error.code(), "cancelled");
    }
}

/// A requested row player (backend for many rows) is the one that runs; none is silently replaced by another.
#[test]
fn the_player_that_is_asked_for_plays() {
    let model =
        Model::parse("input x: f64; input s: text; output y = x * 2.0 + 1.0; output t = strings.upper(s)").unwrap();
    let (x, texts) = ([1.0], ["a"]);
    for player in players() {
        let batch = model.batch(&Options::default().row_player(player)).unwrap();
        let (found, because) = batch.player(&[InputColumn::values(&x), InputColumn::texts(&texts)]).unwrap();
        if player == RowPlayer::Best {
            assert_ne!(found, RowPlayer::Interpreter);
        } else {
            assert_eq!((found, because), (player, None));
        }
    }
}

/// A model whose outputs are all literals gives them for all rows, even if the limit allows one step per function.
#[test]
fn literals_alone_are_given_for_all_rows() {
    let model = Model::parse("output y = 0; output t = {a: 3.0f64, b: {c: b'y', d: 2.5}, e: -8.0}").unwrap();
    let limits = Limits::default().native_steps(1);
    let expected = model.compile(&Options::default()).unwrap().session().evaluate(&[]).unwrap();
    for player in players() {
        let batch = model.batch(&Options::default().limits(limits).row_player(player)).unwrap();
        let made = batch.run_with(&RunOptions::new().rows(70), &[]).unwrap();
        for row in 0..70 {
            let found: Vec<Value> = made.columns.iter().map(|column| column.value(row).unwrap()).collect();
            assert_eq!(found, expected, "{player:?}");
        }
    }
}

/// Rows fail in the middle of a long strip (a block of rows that one call evaluates); exactly these become missing.
/// Booleans and presence are given as bits, and as bytes with other values than 1.
#[test]
fn rows_that_fail_are_missing_and_no_others() {
    let source = "input x: i64?; input f: bool?; output q = where(f == true, 100 // x, x); output twice = x + x";
    let (mut session, batches) = batches(source);
    let rows = 2000;
    let zero = |row: usize| row % 61 == 40;
    let x: Vec<i64> = (0..rows).map(|row| if zero(row) { 0 } else { row as i64 - 700 }).map(|x| x.max(-50)).collect();
    let bytes: Vec<u8> = (0..rows / 8).map(|at| (at * 61 + 21) as u8 | 16).collect();
    let (truths, known) = (Bitmap::new(&bytes, 0, rows).unwrap(), Bitmap::new(&bytes[1..], 0, rows - 8).unwrap());
    let rows = rows - 8;
    let truths_here = Bitmap::new(&bytes, 0, rows).unwrap();
    // A presence byte, seven others, the value.
    let cells: Vec<[u8; 16]> = (0..rows)
        .map(|row| {
            let mut cell = [0xEE; 16];
            cell[0] = if known.get(row) { [1, 2, 128, 255][row % 4] } else { 0 };
            cell[8..].copy_from_slice(&x[row].to_le_bytes());
            cell
        })
        .collect();
    let first = cells.as_ptr().cast::<u8>();
    // SAFETY: COLUMNS: each cell has a value behind its presence.
    let in_cells = unsafe { InputColumn::strided(cembra::Scalar::Int64, first.add(8), 16, Some(-8), rows) };
    let flag = InputColumn::bits(truths_here).present(known);
    for batch in &batches {
        for column in [in_cells, InputColumn::values(&x[..rows]).present(known)] {
            let made = batch.run_with(&RunOptions::new().on_error(OnError::Missing), &[column, flag]).unwrap();
            let mut failed = Vec::new();
            for (row, x) in x[..rows].iter().enumerate() {
                let known = known.get(row);
                let inputs = [Value::from(known.then_some(*x)), known.then(|| truths.get(row)).into()];
                let found: Vec<Value> = made.columns.iter().map(|column| column.value(row).unwrap()).collect();
                match session.evaluate(&inputs) {
                    Ok(expected) => assert_eq!(found, expected, "row {row}"),
                    Err(error) => {
                        assert_eq!(error.code(), "div-by-zero");
                        failed.push(row);
                        assert_eq!(found, [Value::from(None::<i64>), Value::from(None::<i64>)], "row {row}");
                    }
                }
            }
            assert!(failed.len() > 2, "{failed:?}");
            assert_eq!(made.failed, failed);
            // Whatever was in the caller's memory before.
            let mut places = [(); 2].map(|()| vec![Optional::present(7_i64); rows]);
            let outputs = places.iter_mut().map(|place| Some(ColumnMut::optionals(place))).collect();
            batch.run_into(&RunOptions::new().on_error(OnError::Missing), &[column, flag], outputs).unwrap();
            assert!(failed.iter().all(|row| places.iter().all(|place| !place[*row].is_present())));
        }
    }
}

/// The limit on work counts per row, not for all rows together. The number of rows is so large that vector backends
/// write results with stores that bypass the caches, to memory of any alignment.
#[test]
fn millions_of_rows_are_rows() {
    let rows = (1 << 21) + 77;
    let model =
        Model::parse("input x: f64\noutput y = where(x >= 0.0, math.sqrt(x), -x)\noutput z = x * 0.5 + y").unwrap();
    let x = numbers(rows);
    for player in [RowPlayer::Avx512, RowPlayer::Avx2].into_iter().filter(|player| is_there(*player)) {
        let batch = model.batch(&Options::default().row_player(player)).unwrap();
        for start in [0, 1] {
            let mut y = vec![f64::NAN; rows + start];
            let mut z = vec![f64::NAN; rows + start];
            let outputs = [&mut y, &mut z].map(|numbers| Some(ColumnMut::values(&mut numbers[start..])));
            batch.run_into(&RunOptions::new().threads(2), &[InputColumn::values(&x)], outputs.into()).unwrap();
            for (row, x) in x.iter().enumerate() {
                let expected = if *x >= 0.0 { x.sqrt() } else { -x };
                assert_eq!((y[row + start], z[row + start]), (expected, x * 0.5 + expected), "{player:?} {row}");
            }
            assert!(y[..start].iter().chain(&z[..start]).all(|before| before.is_nan()));
        }
    }
}

#[test]
fn limits_are_a_rows() {
    let model = Model::parse("input a, b: text; output same = a == b; output upper = strings.upper(a)").unwrap();
    let limits = Limits::default().string_work(2_000).arena_bytes(1_000);
    let a: Vec<String> = (0..300).map(|_| "x".repeat(600)).collect();
    for long in [None, Some(290)] {
        let mut b = a.clone();
        let mut a = a.clone();
        if let Some(row) = long {
            (a[row], b[row]) = ("y".repeat(3_000), "y".repeat(3_000));
        }
        for player in players() {
            let batch = model.batch(&Options::default().limits(limits).row_player(player)).unwrap();
            let made = batch.run(&[InputColumn::owned_texts(&a), InputColumn::owned_texts(&b)]);
            match long {
                None => assert_eq!(made.unwrap()[1].text(299), Some("X".repeat(600).as_str())),
                Some(row) => assert_eq!(made.unwrap_err().row(), Some(row)),
            }
        }
    }
    // Comparisons alone, which are instructions and end nothing before the row is over.
    let model = Model::parse("input a, b: text; output same = a == b").unwrap();
    let long = ["z".repeat(3_000)];
    for player in players() {
        let batch = model.batch(&Options::default().limits(limits).row_player(player)).unwrap();
        let error = batch.run(&[InputColumn::owned_texts(&long), InputColumn::owned_texts(&long)]).unwrap_err();
        assert_eq!((error.code(), error.row()), ("work-limit", Some(0)), "{player:?}");
    }
}

/// Outputs overwrite the memory of the inputs that they are computed from, in every layout of the caller's memory. Some
/// outputs read inputs that others overwrite, some steps call functions, and some rows fail and are evaluated again.
#[test]
fn outputs_go_over_the_inputs_that_they_are_made_of() {
    let source = "input x: f64?; input n: i64?; input f: bool?; input k: i32; input p: unit?; input m: f64
        output a = x * 2.0 + to_float64(n) + to_float64(strings.length(strings.join('é', strings.decode(b'y'))))
        output b = where(f == true, 100 // n, n + 1)
        output c = where(x > m, f, true)
        output d = where(n > 0, k + 1)
        output e = p and x > 0.0
        output g = m + x";
    let (mut session, batches) = batches(source);
    for (rows, threads, zeros) in
        [(0, 1, true), (1, 1, false), (64, 1, true), (130, 1, false), (3000, 1, true), (40_000, 3, true)]
    {
        let n: Vec<Optional<i64>> = (0..rows as i64)
            .map(|row| match row % 61 {
                40 if zeros => 0.into(),
                7 | 33 => Optional::missing(),
                other => (other * 5 + 1).into(),
            })
            .collect();
        let x = numbers(rows);
        let m = x.iter().map(|x| x / 2.0 + 1.0).collect::<Vec<_>>();
        let bytes = |seed: usize| (0..rows / 8 + 12).map(|at| (at * 61 + seed) as u8).collect::<Vec<_>>();
        // Truth values, their presence, that of the numbers and of the units.
        let (truths, known, there, units) = (bytes(21), bytes(5), bytes(77), bytes(130));
        fn bits(bytes: &[u8], offset: usize, rows: usize) -> Bitmap<'_> {
            Bitmap::new(bytes, offset, rows).unwrap()
        }
        let k: Vec<Optional<i32>> = (0..rows as i32).map(|row| (row - 70).into()).collect();
        let expected: Vec<_> = (0..rows)
            .map(|row| {
                let flag = bits(&known, 9, rows).get(row).then(|| bits(&truths, 3, rows).get(row));
                let unit = if bits(&units, 61, rows).get(row) {
                    Value::from(cembra::Mask(true))
                } else {
                    Value::from(cembra::Mask(false))
                };
                let number = bits(&there, 0, rows).get(row).then_some(x[row]);
                session.evaluate(&[
                    number.into(),
                    n[row].get().into(),
                    flag.into(),
                    k[row].get().unwrap().into(),
                    unit,
                    m[row].into(),
                ])
            })
            .collect();
        let failed: Vec<usize> = (0..rows).filter(|row| expected[*row].is_err()).collect();
        assert!(rows < 3000 || failed.len() > 2, "{failed:?}");
        for batch in &batches {
            let (mut n, mut x, mut m, mut k) =
                (n.clone(), x.clone(), m.iter().map(|m| (*m).into()).collect::<Vec<Optional<f64>>>(), k.clone());
            let (mut truths, mut known, mut there, mut units) =
                (truths.clone(), known.clone(), there.clone(), units.clone());
            let to = |bytes, offset| BitmapMut::new(bytes, offset, rows).unwrap();
            let outputs = vec![
                Some(ColumnMut::values(&mut x).present(to(&mut there, 0))),
                Some(ColumnMut::optionals(&mut n)),
                Some(ColumnMut::bits(to(&mut truths, 3)).present(to(&mut known, 9))),
                Some(ColumnMut::optionals(&mut k)),
                Some(ColumnMut::units(rows).present(to(&mut units, 61))),
                Some(ColumnMut::optionals(&mut m)),
            ];
            let inputs = [0, 1, 2, 3, 4, 5].map(InputColumn::of_output);
            let options = RunOptions::new().threads(threads).on_error(OnError::Missing);
            assert_eq!(batch.run_into(&options, &inputs, outputs).unwrap().failed, failed);
            for (row, expected) in expected.iter().enumerate() {
                let found: Vec<Value> = vec![
                    bits(&there, 0, rows).get(row).then_some(x[row]).into(),
                    n[row].get().into(),
                    bits(&known, 9, rows).get(row).then(|| bits(&truths, 3, rows).get(row)).into(),
                    k[row].get().into(),
                    cembra::Mask(bits(&units, 61, rows).get(row)).into(),
                    m[row].get().into(),
                ];
                match expected {
                    Ok(expected) => assert_eq!(found, *expected, "{batch:?} row {row} of {rows}"),
                    Err(_) => {
                        assert!(found.iter().all(|value| matches!(value, Value::Missing(_))), "row {row}: {found:?}");
                    }
                }
            }
        }
    }
}

#[test]
fn players_are_kept_for_so_many_forms_of_columns() {
    let model = Model::parse("input a, b, c: f64?; output y = a + b * c").expect("a model");
    let batch = model.batch(&Options::default().row_player(RowPlayer::Lanes128)).expect("a batch");
    let numbers = [1.0, 2.0, 3.0];
    let optionals = numbers.map(Optional::from);
    let two = Value::Present(ScalarValue::Float64(2.0));
    let column = |form: usize| match form {
        0 => (InputColumn::values(&numbers), numbers),
        1 => (InputColumn::optionals(&optionals), numbers),
        _ => (InputColumn::shared(&two), [2.0; 3]),
    };
    let mut held = vec![batch.memory_bytes()];
    // The second time the first of them were dropped.
    for forms in (0..27).chain(0..27) {
        let [(a, of_a), (b, of_b), (c, of_c)] = [forms / 9, forms / 3 % 3, forms % 3].map(column);
        let made = batch.run_with(&RunOptions::new().rows(3), &[a, b, c]).expect("columns").columns;
        for row in 0..3 {
            let expected = ScalarValue::Float64(of_a[row] + of_b[row] * of_c[row]);
            assert_eq!(made[0].value(row), Some(Value::Present(expected)), "{forms}");
        }
        held.push(batch.memory_bytes());
    }
    let added: Vec<usize> = held.windows(2).take(16).map(|held| held[1] - held[0]).collect();
    let largest = added.iter().max().expect("some");
    assert!(added.iter().all(|added| *added > 0), "{added:?}");
    assert!(held.iter().all(|held_now| *held_now <= held[0] + 16 * largest + 4096), "{held:?}");
}
