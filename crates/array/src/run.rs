//! Running an array program: its steps in order, values in slots. How plans are run is the business of whoever owns them.

use crate::memory::{RunMemory, RunParts, Slots};
use crate::sweep::{SweepRunner, Swept, element_bits};
use crate::{Action, ArrayProgram, Block, BlockId, PartId, Step, SweepRunners, ValueId};
use cembra_ops::{ArrayOperands, OverArrays};
use cembra_runtime::{BatchFunction, ColumnForm, Context, Fault, FaultKind};
use cembra_value::{Array, Value};
use smallvec::SmallVec;

/// What runs the plans of a program.
pub trait Parts {
    /// Why a run ends early.
    type Error;

    /// Evaluates a plan for so many elements, its arguments being arrays of that size, or the same for all. Strings that are made may take
    /// so many bytes.
    ///
    /// # Errors
    /// An element fails, or strings take more.
    fn map(&mut self, part: PartId, args: &[&Value], elements: usize, room: u64) -> Result<Vec<Array>, Self::Error>;

    /// Evaluates a plan on scalars. The results are put behind the others.
    ///
    /// # Errors
    /// It fails.
    fn scalar(&mut self, part: PartId, args: &[&Value], results: &mut Vec<Value>) -> Result<(), Self::Error>;

    /// The function that evaluates a plan on columns of these forms; none if rows are evaluated one by one.
    fn function(&self, part: PartId, forms: &[ColumnForm]) -> Option<Box<dyn BatchFunction>>;

    /// A context of the model's limits.
    fn context(&self) -> Context;

    /// Readies such a context for a run.
    fn ready(&self, context: &mut Context);

    /// How often the rounds of all loops may begin again in a run.
    fn most_rounds(&self) -> u64;

    /// The most bytes of arrays that a run may have at a time, those that come in apart.
    fn most_array_bytes(&self) -> u64;

    /// The error of a step that made more than that.
    fn exceeds(&self, step: &Step) -> Self::Error;

    /// The error of a program that fails, or may: another way of running it knows more.
    fn unsure(&self) -> Self::Error;

    /// The error of a step that failed.
    fn fault(&self, step: &Step, fault: Fault) -> Self::Error;

    /// How many threads a run may be shared by.
    fn threads(&self) -> usize;

    /// Looks whether the run was cancelled.
    ///
    /// # Errors
    /// It was.
    fn poll(&self) -> Result<(), Self::Error>;
}

/// Runs a program on values of exactly its inputs' types, in their order, in memory of the program; `sweeps` are its
/// [`ArrayProgram::sweep_runners`]. The results are put behind the others, in the order of its outputs.
///
/// # Errors
/// That of the first step that fails; then there are no results. Of values of other types, and sweeps of another program,
/// [`Parts::unsure`].
pub fn run<P: Parts>(
    program: &ArrayProgram,
    sweeps: &SweepRunners,
    parts: &mut P,
    inputs: &[Value],
    memory: &mut RunMemory,
    results: &mut Vec<Value>,
) -> Result<(), P::Error> {
    if !sweeps.are_of(program) || !program.takes(inputs) {
        return Err(parts.unsure());
    }
    let mut run = memory.begin(program, inputs, parts.most_array_bytes());
    let made = run_blocks(program, sweeps.all(), parts, &mut run);
    if made.is_ok() {
        let output = |value: ValueId| run.slots.get(value).cloned().unwrap_or(Value::Nothing);
        results.extend(program.outputs.iter().map(|(_, value)| output(*value)));
    }
    memory.end();
    made
}

/// A block that is being run.
struct Open<'p> {
    id: BlockId,
    block: &'p Block,
    /// The number of its next step.
    next: usize,
    /// The step whose block it is, and the state if it is the round of a loop; none for the top block.
    of: Option<(&'p Step, Option<ValueId>)>,
}

fn run_blocks<P: Parts>(
    program: &ArrayProgram,
    sweeps: &[Option<SweepRunner>],
    parts: &mut P,
    run: &mut RunParts<'_>,
) -> Result<(), P::Error> {
    let mut rounds = parts.most_rounds();
    // Where the run is, from the outermost block inwards.
    let mut open: SmallVec<[Open<'_>; 4]> = SmallVec::new();
    let of = |id, of| Open { id, block: program.block(id), next: 0, of };
    open.push(of(BlockId::TOP, None));
    while let Some(Open { id, block, next, of: step_of }) = open.last_mut() {
        let block = *block;
        if let Some(last) = next.checked_sub(1) {
            run.release_behind(*id, last);
        }
        let Some(step) = block.steps.get(*next) else {
            let Some((step, state)) = *step_of else { return Ok(()) };
            let result = block.result.and_then(|result| run.slots.get(result).cloned());
            block.steps.iter().flat_map(|step| &step.outs).for_each(|out| run.release(*out));
            let again = state.zip(result.as_ref().and_then(next_state));
            state.into_iter().for_each(|state| run.release(state));
            if let Some((state, following)) = again {
                // A round may have no steps of its own.
                parts.poll()?;
                if rounds == 0 {
                    return Err(parts.fault(step, Fault::with(FaultKind::IterationLimit, parts.most_rounds())));
                }
                rounds -= 1;
                *next = 0;
                run.slots.set(state, following);
            } else {
                result.into_iter().for_each(|result| run.slots.set(step.outs[0], result));
                open.pop();
            }
            continue;
        };
        *next += 1;
        parts.poll()?;
        match step.action {
            Action::Where { on, off } => {
                let condition = run.slots.get(step.args[0]);
                let is_on = condition.is_some_and(|condition| condition.as_scalar().is_some());
                open.push(of(if is_on { on } else { off }, Some((step, None))));
            }
            Action::Loop { round, state } => {
                let init = run.slots.get(step.args[0]).cloned();
                init.into_iter().for_each(|init| run.slots.set(state, init));
                open.push(of(round, Some((step, Some(state)))));
            }
            Action::Sweep(sweep) => {
                let swept = match &sweeps[sweep.index()] {
                    Some(runner) => runner.run(program, sweep, run, parts)?,
                    None => Swept::Not,
                };
                match swept {
                    Swept::Made => count(parts, step, run)?,
                    Swept::Failed => return Err(parts.unsure()),
                    Swept::Not => {
                        let stages = &program.sweep(sweep).stages;
                        stages.iter().try_for_each(|stage| evaluate(program, parts, &stage.step, run))?;
                    }
                }
            }
            _ => evaluate(program, parts, step, run)?,
        }
    }
    Ok(())
}

/// The state of the next round, if there is one, by what the last round made.
fn next_state(made: &Value) -> Option<Value> {
    let Value::Tuple(fields) = made else { return None };
    match &fields[..] {
        [next, again] if again.as_scalar().is_some() => Some(next.clone()),
        _ => None,
    }
}

/// Counts what a step made.
fn count<P: Parts>(parts: &mut P, step: &Step, run: &mut RunParts<'_>) -> Result<(), P::Error> {
    if run.count(&step.outs, parts.most_array_bytes()) { Ok(()) } else { Err(parts.exceeds(step)) }
}

/// Runs a step that is no conditional, no loop and no sweep.
fn evaluate<P: Parts>(
    program: &ArrayProgram,
    parts: &mut P,
    step: &Step,
    run: &mut RunParts<'_>,
) -> Result<(), P::Error> {
    // What it has of an earlier step, which failed, is nobody's.
    run.results.clear();
    let is_new = matches!(step.action, Action::Map(_) | Action::Operator(_));
    let most = parts.most_array_bytes();
    let room = if is_new { run.room(most) } else { 0 };
    if let Err(failed) = results(program, parts, step, &run.slots, room, run.results) {
        // It may have failed for want of room, of which there was more than was known.
        let Some(room) = run.looked_room(most).filter(|found| is_new && *found > room) else { return Err(failed) };
        run.results.clear();
        results(program, parts, step, &run.slots, room, run.results)?;
    }
    step.outs.iter().zip(run.results.drain(..)).for_each(|(out, value)| run.slots.set(*out, value));
    // What tuples have was made by others.
    if is_new { count(parts, step, run) } else { Ok(()) }
}

/// Puts the results of a step that is no conditional, no loop and no sweep behind others; what is new in them is to fit into so
/// many bytes.
fn results<P: Parts>(
    program: &ArrayProgram,
    parts: &mut P,
    step: &Step,
    slots: &Slots<'_>,
    room: u64,
    results: &mut Vec<Value>,
) -> Result<(), P::Error> {
    // What a step needs was made before it, as the verifier says.
    let nothing = Value::Nothing;
    let args: SmallVec<[&Value; 8]> = step.args.iter().map(|arg| slots.get(*arg).unwrap_or(&nothing)).collect();
    match step.action {
        Action::Scalar(part) => parts.scalar(part, &args, results)?,
        Action::Map(part) => {
            let mut sizes = args.iter().filter_map(|arg| match arg {
                Value::Array(_, array) => Some(array.len()),
                _ => None,
            });
            let elements = sizes.next().unwrap_or(0);
            if let Some(other) = sizes.find(|size| *size != elements) {
                let operands = [elements as u64, other as u64];
                return Err(parts.fault(step, Fault { kind: FaultKind::SizeMismatch, operands }));
            }
            // At least: bits of presence may be there too, and what strings are long.
            let bits = |out: &ValueId| program.qtype(*out).of_each().scalar().map_or(0, element_bits);
            let bits: u64 = step.outs.iter().map(bits).sum();
            let Some(left) = room.checked_sub(bits.saturating_mul(elements as u64) / 8) else {
                return Err(parts.exceeds(step));
            };
            let arrays = parts.map(part, &args, elements, left)?;
            let made = step.outs.iter().zip(arrays).map(|(out, array)| match program.qtype(*out) {
                cembra_runtime::QType::Array(kind, _) => Value::Array(*kind, array.into()),
                _ => Value::Nothing,
            });
            results.extend(made);
        }
        Action::Operator(op) => {
            let values: Vec<Value> = args.into_iter().cloned().collect();
            let OverArrays::Kernel(operator) = program.registry.get(op).over_arrays else {
                return Err(parts.fault(step, Fault::new(FaultKind::Invalid)));
            };
            let is_cancelled = || parts.poll().is_err();
            let made =
                (operator.evaluate)(&ArrayOperands::new(&values, &is_cancelled, room), program.qtype(step.outs[0]));
            let failed =
                |fault| if fault == ArrayOperands::NO_ROOM { parts.exceeds(step) } else { parts.fault(step, fault) };
            results.push(made.map_err(failed)?);
        }
        Action::MakeTuple => {
            if let cembra_runtime::QType::Tuple(types) = program.qtype(step.outs[0]) {
                results.push(Value::Tuple(types.with(args.into_iter().cloned().collect())));
            }
        }
        Action::Field(field) => {
            if let Value::Tuple(fields) = args[0] {
                results.extend(fields.get(field as usize).cloned());
            }
        }
        Action::Where { .. } | Action::Loop { .. } | Action::Sweep(_) => {}
    }
    Ok(())
}
