//! Tests that vectorised programs (lane programs) give the same results as the interpreter, row by row, on columns of
//! all layouts. The loops of the programs are run by the reference evaluator of tapes, so the tests cover the copies to
//! and from columns and the addresses, not a code generator.

use cembra_engine::rows::{
    Bitmap, BitmapMut, ColumnLayouts, ColumnMut, EndReason, InputColumn, LaneFunction, LineLayout, Misfit, OutputRoom,
    ResultTarget, RowPlan, RunRejection, facts, line_forms, ports,
};
use cembra_expr::parse;
use cembra_ops::Registry;
use cembra_plan::{Plan, build};
use cembra_prepare::{Options, prepare};
use cembra_record::{InputFact, record_lanes};
use cembra_runtime::{
    BatchFunction, CHAINS, Column, ColumnForm, Context, DataForm, FaultRecord, MachineType, Optional, PresenceForm,
    Scalar, Scratch,
};
use cembra_tape::{LaneProgram, Outcome, Output, Port, Tape, TapeLoop, TapeSegment};
use cembra_value::{Budget, Limits, OnError, RunTerms, Value};
use std::mem::offset_of;

/// A loop of a vectorised program, run by the reference evaluator of tapes.
#[derive(Debug)]
struct BitLoop {
    tape: Tape,
    ports: [Vec<Port>; 2],
}

impl BitLoop {
    /// Returns the bits of an input for one row.
    ///
    /// # Safety
    /// PORTS: there is an element for the row.
    unsafe fn input(first: *const u8, ty: MachineType, port: Port, row: usize) -> u64 {
        let row = if port == Port::Shared { 0 } else { row };
        // SAFETY: PORTS, promised by the caller.
        unsafe {
            match (ty, port) {
                (MachineType::Flag, Port::Shared) => u64::from(*first),
                (MachineType::Flag, _) => u64::from(*first.add(row / 8) >> (row % 8) & 1),
                (MachineType::I32 | MachineType::F32, _) => u64::from(first.cast::<u32>().add(row).read_unaligned()),
                _ => first.cast::<u64>().add(row).read_unaligned(),
            }
        }
    }
}

// SAFETY: PORTS: elements are addressed as the contract says.
unsafe impl TapeLoop for BitLoop {
    // SAFETY: PORTS, as the trait says.
    unsafe fn play(&self, ports: &[*mut u8], rows: usize, _: &mut Context) -> bool {
        let (inputs, outputs) = ports.split_at(self.ports[0].len());
        for row in 0..rows {
            let types = self.tape.inputs().map(|(_, ty)| ty);
            let all = inputs.iter().zip(types).zip(&self.ports[0]);
            // SAFETY: PORTS and STRING-VIEW, promised by the caller.
            unsafe {
                let values: Vec<u64> = all.map(|((first, ty), port)| BitLoop::input(*first, ty, *port, row)).collect();
                let Outcome::Done(made) = self.tape.run_on_bits(&values) else { return true };
                for ((output, port), kind) in self.tape.outputs().iter().zip(outputs).zip(&self.ports[1]) {
                    let bits = made[output.index()];
                    let ty = if let Output::Number(val) = output { self.tape.ty(*val) } else { MachineType::Flag };
                    match ty {
                        MachineType::Flag => {
                            if row % 64 == 0 {
                                port.cast::<u64>().add(row / 64).write_unaligned(0);
                            }
                            *port.add(row / 8) |= (bits as u8 & 1) << (row % 8);
                        }
                        MachineType::I32 | MachineType::F32 => {
                            port.cast::<u32>().add(row).write_unaligned(bits as u32);
                        }
                        _ if *kind == Port::Chains => {
                            let sum = port.cast::<f64>().add(row % CHAINS);
                            sum.write_unaligned(sum.read_unaligned() + f64::from_bits(bits));
                        }
                        _ => port.cast::<u64>().add(row).write_unaligned(bits),
                    }
                }
            }
        }
        false
    }

    fn code_bytes(&self) -> usize {
        0
    }
}

fn plan_of(text: &str) -> Plan {
    let program = parse(text, Registry::standard(), &Limits::default()).expect("a model");
    let prepared = prepare(&program, &|_| None, &Options::default(), &mut |_, _| {}).expect("types");
    build(&prepared.placed().expect("every pass"), &Budget::default()).expect("a plan")
}

/// Makes the vectorised program of a plan, for columns with the layouts `forms`.
fn lane_function(plan: &Plan, forms: &[ColumnForm]) -> LaneFunction {
    let (inputs, outputs) = forms.split_at(plan.inputs().len());
    let known: Vec<InputFact> = facts(inputs)
        .map(|[is_shared, all_present, is_dictionary]| InputFact { is_shared, all_present, is_dictionary })
        .collect();
    let outputs: Vec<Port> = ports(outputs).collect();
    let program = record_lanes(plan, &known, &outputs, |_, _| true).expect("a lane program");
    let tape_loop = |(of, tape): (&LaneProgram, &TapeSegment)| {
        Box::new(BitLoop { tape: tape.tape.clone(), ports: tape.ports(of) }) as Box<dyn TapeLoop>
    };
    let loops = program.tapes().into_iter().map(tape_loop).collect();
    // SAFETY: PORTS: the program was recorded above for these forms, the loops play its tapes.
    unsafe { LaneFunction::new(plan, program, loops, forms) }
}

/// A limit on the bytes of strings that no test reaches.
static ROOM: OutputRoom = OutputRoom::of(u64::MAX);

/// Returns the terms of a run on two threads, in strips (blocks) of `strip_rows` rows.
fn terms(strip_rows: usize, on_error: OnError) -> RunTerms<'static> {
    RunTerms { threads: 2, strip_rows, on_error, keep_failures: 5, ..RunTerms::default() }
}

/// Returns the fault that the context recorded.
fn record(context: &Context) -> FaultRecord {
    context.record()
}

/// Runs a plan on columns, by its vectorised program if `in_lanes`, else by the interpreter. Returns the values of new
/// columns, and the rows that failed.
fn run(
    plan: &Plan,
    inputs: &[InputColumn<'_>],
    outputs: Vec<Option<ColumnMut<'_>>>,
    rows: usize,
    in_lanes: bool,
) -> (Vec<Vec<Value>>, Vec<usize>) {
    let batch = RowPlan::of(plan);
    let new = outputs.is_empty();
    let outputs = if new { plan.outputs().iter().map(|_| None).collect() } else { outputs };
    let on_error = if new { OnError::Missing } else { OnError::Fail };
    // New columns are made in the longest strips, and memory of the caller is written in short ones.
    let strip = if new { usize::MAX } else { 64 };
    let mut job = batch.job(inputs, outputs, rows, &terms(strip, on_error), &ROOM).expect("columns that fit");
    let forms = job.forms();
    let function = in_lanes.then(|| Box::new(lane_function(plan, &forms.0)) as Box<dyn BatchFunction>);
    let player = batch.player(&forms, function).expect("a function for these columns");
    let made = batch.run(&mut job, &player, &record).expect("no row stops the run");
    let value = |row: usize| made.columns.iter().flatten().map(|column| column.value(row).expect("a row")).collect();
    ((0..rows).map(value).collect(), made.failed)
}

/// Several strips (blocks of rows) are added to the same sums. Each strip begins with the first sum.
#[test]
fn sums_go_on_from_strip_to_strip() {
    let plan = plan_of("input x: f64?; input k: f64\noutput y = x * k\noutput z = to_float32(x ?? 0.5)");
    let values = ColumnForm {
        data: DataForm::Values,
        presence: PresenceForm::All,
        is_dictionary: false,
        is_shared: false,
        is_dense: true,
        stride_classes: [0; 2],
    };
    let shared = ColumnForm { is_shared: true, is_dense: false, ..values };
    let sums = ColumnForm { data: DataForm::Chains, ..values };
    let with_bits = |form| ColumnForm { presence: PresenceForm::Bits, ..form };
    let forms = [with_bits(values), shared, with_bits(sums), sums];
    let function = lane_function(&plan, &forms);
    let mut scratch = Scratch::new(&function.scratch());
    let mut context = Context::new();
    function.begin(&mut scratch, &context);
    let mut x: Vec<f64> = (0..333_u32).map(|row| f64::from(row) * 0.37 - 20.0).collect();
    let mut there: Vec<u64> = (0..6_u64).map(|word| 0x9E37_79B9_7F4A_7C15_u64.rotate_left(7 * word as u32)).collect();
    let mut k = 1.5_f64;
    let mut found = [[0.0_f64; CHAINS]; 2];
    let mut present = vec![u64::MAX; 6];
    for (start, rows) in [(0, 128), (128, 192), (320, 13)] {
        let column = |data: *mut u8, presence: *mut u64| Column {
            data,
            stride: 8,
            presence: presence.wrapping_add(start / 64).cast(),
            presence_stride: 0,
        };
        let ([y, z], nothing) = (&mut found, std::ptr::null_mut());
        let columns = [
            column(x[start..].as_mut_ptr().cast(), there.as_mut_ptr()),
            Column { stride: 0, ..column((&raw mut k).cast(), nothing) },
            column(y.as_mut_ptr().cast(), present.as_mut_ptr()),
            column(z.as_mut_ptr().cast(), nothing),
        ];
        // SAFETY: COLUMNS: of these forms, with the rows or as many sums as chains.
        unsafe { function.run(&columns, &[], rows, &mut scratch, &mut context) };
        assert!(!scratch.failed.any());
    }
    let mut expected = [[0.0_f64; CHAINS]; 2];
    for (row, x) in x.into_iter().enumerate() {
        let is_there = there[row / 64] >> (row % 64) & 1 == 1;
        assert_eq!(present[row / 64] >> (row % 64) & 1 == 1, is_there, "row {row}");
        expected[0][row % CHAINS] += if is_there { x * k } else { 0.0 };
        expected[1][row % CHAINS] += if is_there { f64::from(x as f32) } else { 0.5 };
    }
    assert_eq!(found, expected);
}

const MODEL: &str = "input x: f64?; input n: i32; input flag: bool?; input name: text; input k: i64?; input m: unit?
    let long = where(strings.length(name) > 2, strings.upper(name), name)
    output y = where(flag == true, x * to_float64(n), x + 0.5)
    output shout = long
    output longer = where(m, strings.length(long) + k)
    output quotient = where(n > 3, k // to_int64(n - 5))
    output holds = m or flag == true
    output same = flag ?? false
    output pass = name";

#[test]
fn columns_of_every_form_give_what_rows_give() {
    let plan = plan_of(MODEL);
    for rows in [0, 1, 63, 64, 65, 130, 1000, 1025, 2300] {
        for offset in [0, 5, 8, 63] {
            let bits = [1, 2, 3, 4, 5].map(|seed: usize| -> Vec<u8> {
                (0..(rows + offset) / 8 + 1).map(|at| (at * 89 + seed * 37 + at * at * seed) as u8).collect()
            });
            let of = |at: usize| Bitmap::new(&bits[at], offset, rows).expect("enough bits");
            let [present, flags, flags_present, k_present, masks] = [0, 1, 2, 3, 4].map(of);
            let x: Vec<f64> = (0..rows).map(|row| row as f64 / 8.0 - 20.0).collect();
            // Faults are rare: in a few rows n is 5.
            let n: Vec<i32> = (0..rows).map(|row| if row % 397 == 70 { 5 } else { row as i32 % 5 }).collect();
            let names: Vec<String> = (0..rows).map(|row| "né!".repeat(row % 4)).collect();
            let k: Vec<i64> = (0..rows).map(|row| row as i64 * 3 - 100).collect();
            let flag = |row: usize| flags_present.get(row).then(|| flags.get(row));
            let flags_in_place: Vec<Optional<bool>> = (0..rows).map(|row| flag(row).into()).collect();
            let x_in_place: Vec<Optional<f64>> = (0..rows).map(|row| present.get(row).then(|| x[row]).into()).collect();
            let shared = Value::from(Some(7_i64));
            let layouts = [
                [
                    InputColumn::values(&x).present(present),
                    InputColumn::values(&n),
                    InputColumn::bits(flags).present(flags_present),
                    InputColumn::owned_texts(&names),
                    InputColumn::values(&k).present(k_present),
                    InputColumn::units(rows).present(masks),
                ],
                [
                    InputColumn::optionals(&x_in_place),
                    InputColumn::values(&n),
                    InputColumn::optionals(&flags_in_place),
                    InputColumn::owned_texts(&names),
                    InputColumn::shared(&shared),
                    InputColumn::units(rows),
                ],
            ];
            for columns in &layouts {
                let expected = run(&plan, columns, Vec::new(), rows, false);
                let found = run(&plan, columns, Vec::new(), rows, true);
                assert_eq!(found.1, expected.1, "{rows} rows from bit {offset}");
                for (row, (found, expected)) in found.0.iter().zip(&expected.0).enumerate() {
                    let is_same = found.iter().zip(expected).all(|(a, b)| a.same(b));
                    assert!(is_same, "row {row} of {rows} from bit {offset}: {found:?} for {expected:?}");
                }
            }
        }
    }
}

#[derive(Clone, Copy)]
#[repr(C)]
struct Made {
    twice: Optional<f64>,
    between: u16,
    holds: u8,
    more: Optional<i32>,
}

#[test]
fn outputs_go_to_fields_of_structs() {
    let plan =
        plan_of("input x: f64; input n: i32?; output a = where(x > 0.0, x * 2.0); output b = n + 1; output c = n > 2");
    for rows in [1, 64, 1500] {
        let x: Vec<f64> = (0..rows).map(|row| row as f64 - 10.0).collect();
        let n: Vec<i32> = (0..rows as i32).map(|row| row % 7).collect();
        let empty = Made { twice: Optional::missing(), between: 77, holds: 3, more: Optional::missing() };
        let mut made = vec![empty; rows];
        let (first, stride): (*mut u8, _) = (made.as_mut_ptr().cast(), size_of::<Made>() as isize);
        let field = |scalar, offset: usize, presence: isize| {
            // SAFETY: COLUMNS: these are the fields of the structs.
            Some(unsafe { ColumnMut::strided(scalar, first.add(offset), stride, Some(presence), rows) })
        };
        let columns = vec![
            field(Scalar::Float64, offset_of!(Made, twice) + 8, -8),
            field(Scalar::Int32, offset_of!(Made, more) + 4, -4),
            field(Scalar::Unit, offset_of!(Made, holds), 0),
        ];
        run(&plan, &[InputColumn::values(&x), InputColumn::values(&n)], columns, rows, true);
        for (row, made) in made.iter().enumerate() {
            assert_eq!(made.twice.get(), (x[row] > 0.0).then_some(2.0 * x[row]));
            assert_eq!((made.more.get(), made.holds), (Some(n[row] + 1), u8::from(n[row] > 2)));
            assert_eq!(made.between, 77, "memory between fields is left alone");
        }
    }
}

#[test]
fn bits_of_the_caller_are_set_and_no_others() {
    let plan = plan_of("input x: f64; output p = x > 3.0; output q = where(x > 9.0, x)");
    for rows in [0, 1, 64, 65, 129, 1100] {
        let x: Vec<f64> = (0..rows).map(|row| (row * 7 % 13) as f64).collect();
        let mut masks = vec![0xFF_u8; rows / 8 + 1];
        let (mut q, mut present) = (vec![1.0; rows], vec![0xFF_u8; rows / 8 + 2]);
        let columns = vec![
            Some(ColumnMut::units(rows).present(BitmapMut::new(&mut masks, 0, rows).expect("enough"))),
            Some(ColumnMut::values(&mut q).present(BitmapMut::new(&mut present, 3, rows).expect("enough"))),
        ];
        run(&plan, &[InputColumn::values(&x)], columns, rows, true);
        for (row, x) in x.iter().enumerate() {
            assert_eq!(masks[row / 8] >> (row % 8) & 1 != 0, *x > 3.0);
            let bit = row + 3;
            assert_eq!(present[bit / 8] >> (bit % 8) & 1 != 0, *x > 9.0);
            assert!(*x <= 9.0 || q[row] == *x);
        }
        assert_eq!(masks[rows / 8] >> (rows % 8), 0xFF >> (rows % 8), "{rows}");
    }
}

/// A kernel leaves zeros in the rows that it is not called for. Otherwise these rows could keep the address of a text
/// from an earlier strip (block of rows).
#[test]
fn rows_without_a_call_have_zeros() {
    let plan = plan_of("input s: text?; output n = strings.length(s) * 2");
    let rows = 300;
    let texts: Vec<String> = (0..rows).map(|row| "x".repeat(row % 7 + 1)).collect();
    // All of the first strip, then every other row.
    let present: Vec<u8> = (0..rows.div_ceil(8)).map(|at| if at < 8 { 0xFF } else { 0x55 }).collect();
    let here = Bitmap::new(&present, 0, rows).expect("bits");
    let (mut numbers, mut bits) = (vec![-7_i64; rows], vec![0_u8; rows.div_ceil(8)]);
    let to = BitmapMut::new(&mut bits, 0, rows).expect("bits");
    let outputs = vec![Some(ColumnMut::values(&mut numbers).present(to))];
    run(&plan, &[InputColumn::owned_texts(&texts).present(here)], outputs, rows, true);
    assert_eq!(bits.len(), present.len());
    for (row, found) in numbers.iter().enumerate() {
        let expected = if here.get(row) { 2 * texts[row].len() as i64 } else { 0 };
        assert_eq!(*found, expected, "row {row}");
    }
}

/// A job or a function that was made for columns of other types or layouts must be refused, because it would read and
/// write outside of the columns.
#[test]
fn what_is_of_another_batch_plays_no_rows() {
    let (wide, narrow) = (plan_of("input x: f64; output y = x * 2.0"), plan_of("input x: i32; output y = x * 2"));
    let (of_wide, of_narrow, same) = (RowPlan::of(&wide), RowPlan::of(&narrow), RowPlan::of(&wide));
    let (x, n) = (vec![1.5; 1_000], vec![3_i32; 1_000]);
    let of_x =
        || of_wide.job(&[InputColumn::values(&x)], vec![None], 1_000, &terms(64, OnError::Fail), &ROOM).expect("a job");
    let of_n = || {
        of_narrow.job(&[InputColumn::values(&n)], vec![None], 1_000, &terms(64, OnError::Fail), &ROOM).expect("a job")
    };
    let forms = of_x().forms();
    assert_eq!(forms, of_n().forms(), "forms do not say of which type numbers are");
    let function = |plan: &Plan| Some(Box::new(lane_function(plan, &forms.0)) as Box<dyn BatchFunction>);
    let player = of_wide.player(&forms, function(&wide)).expect("a player");
    assert!(of_narrow.player(&forms, function(&wide)).is_none() && of_wide.player(&forms, function(&narrow)).is_none());
    for (batch, mut job) in [(&of_narrow, of_n()), (&of_wide, of_n()), (&of_narrow, of_x()), (&same, of_x())] {
        assert!(matches!(batch.run(&mut job, &player, &record), Err(EndReason::Foreign)));
    }
    // Columns of other forms: all rows share one value.
    let one = Value::from(1.5);
    let mut shared =
        of_wide.job(&[InputColumn::shared(&one)], vec![None], 1_000, &terms(64, OnError::Fail), &ROOM).expect("a job");
    assert!(matches!(of_wide.run(&mut shared, &player, &record), Err(EndReason::Foreign)));
    let mut own = of_x();
    let made = of_wide.run(&mut own, &player, &record).expect("its own");
    // After it has run, the job has no memory for outputs.
    assert!(matches!(of_wide.run(&mut own, &player, &record), Err(EndReason::Foreign)));
    assert_eq!(made.columns[0].as_ref().and_then(|column| column.values::<f64>()), Some(&[3.0; 1_000][..]));
    // The same checks for lines.
    let pace = |scalar| LineLayout { scalar, step: 1 };
    let dense = line_forms(&[pace(Scalar::Float64)], &[ResultTarget::Values]);
    let function = lane_function(&wide, &dense.0);
    let player = of_wide.player(&dense, Some(Box::new(function))).expect("a player");
    let other = line_forms(&[LineLayout { scalar: Scalar::Float64, step: 0 }], &[ResultTarget::Values]);
    assert!(of_wide.player(&other, Some(Box::new(lane_function(&wide, &dense.0)))).is_none());
    assert!(of_wide.player(&ColumnLayouts(dense.0[..1].into()), None).is_none());
    assert!(of_wide.bind_lines(&player, &[pace(Scalar::Float64)], ResultTarget::Values, Context::new()).is_some());
    assert!(of_narrow.bind_lines(&player, &[pace(Scalar::Int32)], ResultTarget::Values, Context::new()).is_none());
    assert!(same.bind_lines(&player, &[pace(Scalar::Float64)], ResultTarget::Values, Context::new()).is_none());
}

/// For 2^61 numbers of 8 bytes, the number of bytes overflows to 0.
#[test]
fn rows_that_there_is_no_memory_for_are_refused() {
    let plan = plan_of("input u: unit?; input x: f64; output y = x * 2.0; output z = u; output w = where(u, x)");
    let batch = RowPlan::of(&plan);
    let shared = Value::from(1.5);
    let of = |rows| [InputColumn::units(rows), InputColumn::shared(&shared)];
    for rows in [1 << 61, (1 << 61) + 1, (1 << 62) + 2, usize::MAX, 1 << 50] {
        let refused =
            batch.job(&of(rows), vec![None, None, None], rows, &terms(64, OnError::Fail), &ROOM).expect_err("too many");
        assert_eq!(refused, RunRejection::Output { at: 0, misfit: Misfit::Room { rows } });
        // Memory of the caller is checked before memory for new columns is allocated.
        let mut few = [0.0; 3];
        let outputs = vec![None, None, Some(ColumnMut::values(&mut few))];
        let refused = batch.job(&of(rows), outputs, rows, &terms(64, OnError::Fail), &ROOM).expect_err("too many");
        assert_eq!(refused, RunRejection::Output { at: 2, misfit: Misfit::Rows { found: 3, expected: rows } });
    }
    assert!(batch.job(&of(100), vec![None, None, None], 100, &terms(64, OnError::Fail), &ROOM).is_ok());
}
