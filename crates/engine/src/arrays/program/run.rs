//! Runs an array program: executes its steps in order, with their values in slots. `host.rs` runs the plans of steps,
//! and `sweep.rs` runs fused loops.

use super::host::ArrayHost;
use super::memory::{RunMemory, RunParts, Slots};
use super::runner::{SweepRunner, SweepRunners};
use super::sweep::SweepOutcome;
use cembra_array::{Action, ArrayProgram, Block, BlockId, Step, ValueId, element_bits};
use cembra_ops::{ArrayOperands, OverArrays};
use cembra_runtime::{Fault, FaultKind, QType};
use cembra_value::Error;
use cembra_value::Value;
use smallvec::SmallVec;

/// Runs the array program of `host` on `inputs`, which must have exactly the types of the program's inputs, with the
/// program's compiled loops `sweeps`. Appends the outputs to `results`, in the order of the program.
///
/// # Errors
/// The error of the first step that fails; nothing is appended to `results` in this case. If the values have other
/// types than the inputs, or if the compiled loops belong to another program, the error is [`ArrayHost::unsure`].
pub(crate) fn run(
    host: &mut ArrayHost<'_>,
    sweeps: &SweepRunners,
    inputs: &[Value],
    memory: &mut RunMemory,
    results: &mut Vec<Value>,
) -> Result<(), Error> {
    let program = host.arrays;
    if !sweeps.are_of(program) || !program.takes(inputs) {
        return Err(host.unsure());
    }
    let mut run = memory.begin(program, inputs, host.most_array_bytes());
    let made = run_blocks(program, sweeps.all(), host, &mut run);
    if made.is_ok() {
        let output = |value: ValueId| run.slots.get(value).cloned().unwrap_or(Value::Nothing);
        results.extend(program.outputs().iter().map(|(_, value)| output(*value)));
    }
    memory.end();
    made
}

/// A block of steps that is being run: the whole program, a branch of a conditional, or the body of a loop.
struct OpenBlock<'p> {
    id: BlockId,
    block: &'p Block,
    /// The index of the block's next step.
    next: usize,
    /// The step that contains the block; `None` for the block of the whole program. If the step is a loop, also the
    /// slot of the loop's state.
    of: Option<(&'p Step, Option<ValueId>)>,
}

fn run_blocks(
    program: &ArrayProgram,
    sweeps: &[Option<SweepRunner>],
    host: &mut ArrayHost<'_>,
    run: &mut RunParts<'_>,
) -> Result<(), Error> {
    let mut rounds = host.most_rounds();
    // The open blocks, from the outermost inwards.
    let mut open: SmallVec<[OpenBlock<'_>; 4]> = SmallVec::new();
    let of = |id, of| OpenBlock { id, block: program.block(id), next: 0, of };
    open.push(of(BlockId::TOP, None));
    while let Some(OpenBlock { id, block, next, of: step_of }) = open.last_mut() {
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
                host.poll()?;
                if rounds == 0 {
                    return Err(host.fault(step, Fault::with(FaultKind::IterationLimit, host.most_rounds())));
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
        host.poll()?;
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
                    Some(runner) => runner.run(program, sweep, run, host)?,
                    None => SweepOutcome::NotRun,
                };
                match swept {
                    SweepOutcome::Made => count(host, step, run)?,
                    SweepOutcome::Failed => return Err(host.unsure()),
                    SweepOutcome::NotRun => {
                        let stages = &program.sweep(sweep).stages;
                        stages.iter().try_for_each(|stage| evaluate(program, host, &stage.step, run))?;
                    }
                }
            }
            _ => evaluate(program, host, step, run)?,
        }
    }
    Ok(())
}

/// The state for the next iteration of a loop, taken from `made`, the result of the last iteration; `None` if the loop
/// has ended.
fn next_state(made: &Value) -> Option<Value> {
    let Value::Tuple(fields) = made else { return None };
    match &fields[..] {
        [next, again] if again.as_scalar().is_some() => Some(next.clone()),
        _ => None,
    }
}

/// Counts the bytes of a step's results, and returns an error if the run exceeds its limit.
fn count(host: &mut ArrayHost<'_>, step: &Step, run: &mut RunParts<'_>) -> Result<(), Error> {
    if run.count(&step.outs, host.most_array_bytes()) { Ok(()) } else { Err(host.exceeds(step)) }
}

/// Runs a step that is not a conditional, a loop or a sweep (a fused loop over elements).
fn evaluate(
    program: &ArrayProgram,
    host: &mut ArrayHost<'_>,
    step: &Step,
    run: &mut RunParts<'_>,
) -> Result<(), Error> {
    // An earlier step that failed may have left results.
    run.results.clear();
    let is_new = matches!(step.action, Action::Map(_) | Action::Operator(_));
    let most = host.most_array_bytes();
    let room = if is_new { run.min_room(most) } else { 0 };
    if let Err(failed) = results(program, host, step, &run.slots, room, run.results) {
        // It may have failed for lack of memory although an exact count leaves more.
        let Some(room) = run.exact_room(most).filter(|found| is_new && *found > room) else { return Err(failed) };
        run.results.clear();
        results(program, host, step, &run.slots, room, run.results)?;
    }
    step.outs.iter().zip(run.results.drain(..)).for_each(|(out, value)| run.slots.set(*out, value));
    // The fields of a tuple were made by other steps.
    if is_new { count(host, step, run) } else { Ok(()) }
}

/// Appends the results of a step that is not a conditional, a loop or a sweep (a fused loop over elements). New arrays
/// may take at most `room` bytes.
fn results(
    program: &ArrayProgram,
    host: &mut ArrayHost<'_>,
    step: &Step,
    slots: &Slots<'_>,
    room: u64,
    results: &mut Vec<Value>,
) -> Result<(), Error> {
    // The arguments of a step were made before it, as the verifier ensures.
    let nothing = Value::Nothing;
    let args: SmallVec<[&Value; 8]> = step.args.iter().map(|arg| slots.get(*arg).unwrap_or(&nothing)).collect();
    match step.action {
        Action::Scalar(part) => host.scalar(part, &args, results)?,
        Action::Map(part) => {
            let mut sizes = args.iter().filter_map(|arg| match arg {
                Value::Array(_, array) => Some(array.len()),
                _ => None,
            });
            let elements = sizes.next().unwrap_or(0);
            if let Some(other) = sizes.find(|size| *size != elements) {
                let operands = [elements as u64, other as u64];
                return Err(host.fault(step, Fault { kind: FaultKind::SizeMismatch, operands }));
            }
            // A lower bound: presence bits and the buffers of strings come on top.
            let bits = |out: &ValueId| program.qtype(*out).of_each().scalar().map_or(0, element_bits);
            let bits: u64 = step.outs.iter().map(bits).sum();
            let Some(left) = room.checked_sub(bits.saturating_mul(elements as u64) / 8) else {
                return Err(host.exceeds(step));
            };
            let arrays = host.map(part, &args, elements, left)?;
            let made = step.outs.iter().zip(arrays).map(|(out, array)| match program.qtype(*out) {
                QType::Array(kind, _) => Value::Array(*kind, array.into()),
                _ => Value::Nothing,
            });
            results.extend(made);
        }
        Action::Operator(op) => {
            let values: Vec<Value> = args.into_iter().cloned().collect();
            let OverArrays::Kernel(operator) = program.registry().get(op).over_arrays else {
                return Err(host.fault(step, Fault::new(FaultKind::Invalid)));
            };
            let is_cancelled = || host.poll().is_err();
            let made =
                (operator.evaluate)(&ArrayOperands::new(&values, &is_cancelled, room), program.qtype(step.outs[0]));
            let failed =
                |fault| if fault == ArrayOperands::NO_MEMORY { host.exceeds(step) } else { host.fault(step, fault) };
            results.push(made.map_err(failed)?);
        }
        Action::MakeTuple => {
            if let QType::Tuple(types) = program.qtype(step.outs[0]) {
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
