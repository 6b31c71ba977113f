//! Compares lane programs (plans recorded for many rows at once) with the interpreter. The program is interpreted on
//! bits, and each row must have the interpreter's result bit for bit. A strip (a block of rows that are evaluated
//! together) must fail exactly if the interpreter fails in one of its rows.

use cembra_plan::{Function, Plan};
use cembra_record::{InputFact, NotLanes, record_lanes};
use cembra_runtime::{CHAINS, Context, FramePtr, QType, STATUS_OK, Scalar};
use cembra_tape::{BitColumns, CanPlay, LaneProgram, Port, ValuePart};
use cembra_value::{ScalarValue, Value};

/// The bits in a column where the presence is 0. As a number they are arbitrary; as the address of a string they are
/// invalid.
const NOISE: u64 = 0x5A5A_5A5A_5A5A_5A5A;

/// The outputs of a row; `None` if its evaluation fails.
pub(crate) type Answer = Option<Vec<Value>>;

/// The interpreter's outputs for each row.
pub(crate) fn interpreted(plan: &Plan, rows: &[Vec<Value>]) -> Vec<Answer> {
    let bound = cembra_interp::bind(plan, &plan.frame_binding());
    let mut context = Context::new();
    let answer = |row: &Vec<Value>| {
        let mut frame = plan.template().frame();
        context.begin();
        // SAFETY: FRAME-SLOT and CALL: the frame is of the plan's layout, inputs are of the plan's types and outlive the
        // call, as outputs do that are read.
        unsafe {
            for (input, value) in plan.inputs().iter().zip(row) {
                value.write_to(frame.ptr(), plan.value(input.value).slot);
            }
            let nothing = FramePtr::from_raw(std::ptr::null_mut());
            let status = bound.call(nothing, nothing, frame.ptr(), &mut context);
            (context.end(status) == STATUS_OK).then(|| {
                let mut read = |value| {
                    let value = plan.value(value);
                    Value::read_from(&value.qtype, frame.ptr(), value.slot)
                };
                plan.outputs().iter().map(|output| read(output.value)).collect()
            })
        }
    };
    rows.iter().map(answer).collect()
}

/// The bits of a part of a value.
fn part_of(value: &Value, part: ValuePart) -> u64 {
    let scalar = match (part, value) {
        (ValuePart::Presence, _) => return u64::from(!matches!(value, Value::Missing(_))),
        (_, Value::Scalar(scalar) | Value::Present(scalar)) => scalar,
        _ => return if part == ValuePart::Flag { 1 } else { NOISE },
    };
    let view = match scalar {
        ScalarValue::Text(text) => text.as_bytes(),
        ScalarValue::Bytes(bytes) => bytes,
        other => return other.bits(),
    };
    match part {
        ValuePart::Pointer => view.as_ptr().expose_provenance() as u64,
        _ => view.len() as u64,
    }
}

/// The value of an output in one row, read from the program's columns.
fn output(program: &LaneProgram, columns: &BitColumns, index: usize, qtype: &QType, row: usize) -> Value {
    let bits = |part: ValuePart| {
        let column =
            program.outputs().get(index, part).unwrap_or_else(|| panic!("a {part} of output {index}\n{program}"));
        columns.bits(column, row)
    };
    let scalar = qtype.scalar().expect("outputs are scalars");
    if qtype.is_optional() && bits(ValuePart::Presence) == 0 {
        return Value::Missing(scalar);
    }
    let text = || {
        let (ptr, len) = (bits(ValuePart::Pointer) as usize, bits(ValuePart::Length) as usize);
        // SAFETY: STRING-VIEW: of an input, a literal or the arena of the context, all of which are alive.
        unsafe { if len == 0 { &[] } else { std::slice::from_raw_parts(std::ptr::with_exposed_provenance(ptr), len) } }
    };
    let value = match scalar {
        Scalar::Text => ScalarValue::Text(std::str::from_utf8(text()).expect("UTF-8").into()),
        Scalar::Bytes => ScalarValue::Bytes(text().into()),
        Scalar::Unit => ScalarValue::Unit,
        Scalar::Boolean => ScalarValue::Boolean(bits(ValuePart::Flag) != 0),
        other => ScalarValue::from_bits(other, bits(ValuePart::Number)).expect("a number"),
    };
    if qtype.is_optional() { Value::Present(value) } else { Value::Scalar(value) }
}

/// Runs the program on `rows` as one strip (block of rows); `None` if the strip fails.
fn run(plan: &Plan, program: &LaneProgram, rows: &[Vec<Value>]) -> Option<(BitColumns, Context)> {
    let mut frame = plan.template().frame();
    let mut context = Context::new();
    let input = |index: u32, part: ValuePart, row: usize| part_of(&rows[row][index as usize], part);
    // SAFETY: CALL, OPERATOR-DATA and STRING-VIEW: the frame is of the plan's template, which lives, as the plan's states do;
    // views are of values that outlive the call.
    let columns = unsafe { program.run_on_bits(rows.len(), &input, frame.ptr(), &mut context) };
    columns.filter(|_| context.end(STATUS_OK) == STATUS_OK).map(|columns| (columns, context))
}

/// The outputs of the program for `rows` as one strip (block of rows); `None` if the strip fails.
pub(crate) fn played(plan: &Plan, program: &LaneProgram, rows: &[Vec<Value>]) -> Option<Vec<Vec<Value>>> {
    // Texts may lie in the arena of the context.
    let (columns, _context) = run(plan, program, rows)?;
    let outputs = |row: usize| {
        let one = |(index, of): (usize, &cembra_plan::Output)| {
            output(program, &columns, index, &plan.value(of.value).qtype, row)
        };
        plan.outputs().iter().enumerate().map(one).collect()
    };
    Some((0..rows.len()).map(outputs).collect())
}

/// The facts about inputs whose columns have these values. Without `shares` no input is shared, and without
/// `are_dictionaries` no input is a dictionary.
pub(crate) fn facts(plan: &Plan, rows: &[Vec<Value>], shares: bool, are_dictionaries: bool) -> Vec<InputFact> {
    let fact = |at: usize| InputFact {
        is_shared: shares && rows.iter().all(|row| row[at] == rows[0][at]),
        all_present: rows.iter().all(|row| !matches!(row[at], Value::Missing(_))),
        is_dictionary: are_dictionaries,
    };
    (0..plan.inputs().len()).map(fact).collect()
}

/// A backend that supports every instruction.
pub(crate) fn everything(_: &cembra_tape::Tape, _: usize) -> bool {
    true
}

/// A backend that supports neither divisions nor calls.
pub(crate) fn little(tape: &cembra_tape::Tape, at: usize) -> bool {
    use cembra_tape::{Bin, Instr};
    !matches!(tape.instrs()[at], Instr::Bin(Bin::Div, ..) | Instr::Call(..) | Instr::RareCall { .. })
}

/// Compares a program with the interpreter: with all rows in one strip (block of rows), with only the rows that do not
/// fail, and with each row alone.
fn compare(plan: &Plan, program: &LaneProgram, rows: &[Vec<Value>], expected: &[Answer]) -> Result<(), String> {
    program.verify().map_err(|fault| format!("{fault}\n{program}"))?;
    let check = |rows: &[Vec<Value>], expected: &[Answer]| {
        let found = played(plan, program, rows);
        let expected: Option<Vec<&Vec<Value>>> = expected.iter().map(Option::as_ref).collect();
        match (found, expected) {
            (None, None) => Ok(()),
            (Some(found), Some(expected)) => {
                for (at, (found, expected)) in found.iter().zip(&expected).enumerate() {
                    for (output, (found, expected)) in found.iter().zip(*expected).enumerate() {
                        if !found.same(expected) {
                            let row = &rows[at];
                            return Err(format!(
                                "output {output} of {row:?} is {found}, not {expected}\n{program}\n{plan}"
                            ));
                        }
                    }
                }
                Ok(())
            }
            (found, _) => {
                let does = if found.is_some() { "does not fail" } else { "fails" };
                Err(format!("the strip of {} rows {does}: {rows:?}\n{program}\n{plan}", rows.len()))
            }
        }
    };
    check(rows, expected)?;
    let done = rows.iter().zip(expected).filter(|(_, answer)| answer.is_some());
    let (rows_done, expected_done): (Vec<_>, Vec<_>) = done.map(|(row, answer)| (row.clone(), answer.clone())).unzip();
    check(&rows_done, &expected_done)?;
    for (row, answer) in rows.iter().zip(expected) {
        check(std::slice::from_ref(row), std::slice::from_ref(answer))?;
    }
    Ok(())
}

/// The number of a present float; `None` for other values.
fn float(value: &Value) -> Option<f64> {
    match value {
        Value::Scalar(ScalarValue::Float64(x)) | Value::Present(ScalarValue::Float64(x)) => Some(*x),
        Value::Scalar(ScalarValue::Float32(x)) | Value::Present(ScalarValue::Float32(x)) => Some(f64::from(*x)),
        _ => None,
    }
}

/// Ports that ask for the sum over rows of each output that is a float.
fn sums(plan: &Plan) -> Vec<Port> {
    let is_float = |scalar| matches!(scalar, Some(Scalar::Float32 | Scalar::Float64));
    let port = |qtype: &QType| if is_float(qtype.scalar()) { Port::Chains } else { Port::Rows };
    plan.outputs().iter().map(|output| port(&plan.value(output.value).qtype)).collect()
}

/// Compares a program whose outputs are summed over rows with sums of the interpreter's results, on rows that do not
/// fail.
fn compare_sums(plan: &Plan, program: &LaneProgram, rows: &[Vec<Value>], expected: &[Answer]) -> Result<(), String> {
    program.verify().map_err(|fault| format!("{fault}\n{program}"))?;
    let (columns, _) = run(plan, program, rows).ok_or_else(|| format!("the sum of {rows:?} fails\n{program}"))?;
    for (index, _) in sums(plan).iter().enumerate().filter(|(_, port)| **port == Port::Chains) {
        let mut sums = [0.0; CHAINS];
        let presence = program.outputs().get(index, ValuePart::Presence);
        for (row, answer) in expected.iter().flatten().enumerate() {
            let value = float(&answer[index]);
            sums[row % CHAINS] += value.unwrap_or(0.0);
            if presence.is_some_and(|presence| columns.bits(presence, row) != u64::from(value.is_some())) {
                return Err(format!("output {index} of {:?}: its presence is wrong\n{program}", rows[row]));
            }
        }
        let number =
            program.outputs().get(index, ValuePart::Number).ok_or_else(|| format!("no output {index}\n{program}"))?;
        for (chain, sum) in sums.into_iter().enumerate() {
            let found = f64::from_bits(columns.bits(number, chain));
            if found.to_bits() != sum.to_bits() && !(found.is_nan() && sum.is_nan()) {
                return Err(format!("sum {chain} of output {index} is {found}, not {sum}\n{program}\n{plan}"));
            }
        }
    }
    Ok(())
}

/// Records a plan with and without facts about its inputs, for backends that support all or only some instructions.
/// Compares each program with the interpreter, also with outputs summed over rows. Returns the number of rows that
/// fail, or the reason why the plan cannot be recorded.
///
/// # Errors
/// A description of the first difference.
pub(crate) fn check(plan: &Plan, rows: &[Vec<Value>]) -> Result<Result<usize, NotLanes>, String> {
    let expected = interpreted(plan, rows);
    let done = rows.iter().zip(&expected).filter(|(_, answer)| answer.is_some());
    let (rows_done, expected_done): (Vec<_>, Vec<_>) = done.map(|(row, answer)| (row.clone(), answer.clone())).unzip();
    for can_play in [everything as CanPlay, little] {
        let kinds = [(false, false), (true, false), (false, true), (true, true)];
        let known = kinds.map(|(shares, are_dictionaries)| facts(plan, rows, shares, are_dictionaries));
        for known in std::iter::once(Vec::new()).chain(known) {
            let program = match record_lanes(plan, &known, &[], can_play) {
                Ok(program) => program,
                Err(refused) => return Ok(Err(refused)),
            };
            compare(plan, &program, rows, &expected)?;
            if let Ok(program) = record_lanes(plan, &known, &sums(plan), can_play) {
                compare_sums(plan, &program, &rows_done, &expected_done)?;
            }
        }
    }
    Ok(Ok(expected.iter().filter(|answer| answer.is_none()).count()))
}
