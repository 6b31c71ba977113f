//! Running an array program: its steps in order, values in slots. How plans are run is the business of whoever owns them.

use crate::memory::{RunMemory, RunParts, Slots};
use crate::sweep::{SweepRunner, Swept};
use crate::{Action, ArrayProgram, Block, BlockId, PartId, Step, ValueId};
use cembra_ops::OverArrays;
use cembra_runtime::{BatchFunction, ColumnForm, Context, Fault, FaultKind};
use cembra_value::{Array, Value};
use smallvec::SmallVec;

/// What runs the plans of a program.
pub trait Parts {
    /// Why a run ends early.
    type Error;

    /// Evaluates a plan for so many elements, its arguments being arrays of that size, or the same for all.
    ///
    /// # Errors
    /// An element fails.
    fn map(&mut self, part: PartId, args: &[&Value], elements: usize) -> Result<Vec<Array>, Self::Error>;

    /// Evaluates a plan on scalars.
    ///
    /// # Errors
    /// It fails.
    fn scalar(&mut self, part: PartId, args: &[&Value]) -> Result<Vec<Value>, Self::Error>;

    /// The function that evaluates a plan on columns of these forms; none if rows are evaluated one by one.
    fn function(&self, part: PartId, forms: &[ColumnForm]) -> Option<Box<dyn BatchFunction>>;

    /// A context of the model's limits.
    fn context(&self) -> Context;

    /// Readies such a context for a run.
    fn ready(&self, context: &mut Context);

    /// The error of a program that fails, or may: another way of running it knows more.
    fn unsure(&self) -> Self::Error;

    /// The error of a step that failed.
    fn fault(&self, step: &Step, fault: Fault) -> Self::Error;

    /// Looks whether the run was cancelled.
    ///
    /// # Errors
    /// It was.
    fn poll(&mut self) -> Result<(), Self::Error>;
}

/// Runs a program on values of exactly its inputs' types, in their order, in memory of the program; `sweeps` are its
/// [`ArrayProgram::sweep_runners`]. The results are put behind the others, in the order of its outputs.
///
/// # Errors
/// That of the first step that fails; then there are no results.
pub fn run<P: Parts>(
    program: &ArrayProgram,
    sweeps: &[Option<SweepRunner>],
    parts: &mut P,
    inputs: &[Value],
    memory: &mut RunMemory,
    results: &mut Vec<Value>,
) -> Result<(), P::Error> {
    let mut run = memory.begin(program, inputs);
    let made = run_blocks(program, sweeps, parts, &mut run);
    if made.is_ok() {
        let output = |value: ValueId| run.slots.get(value).cloned().unwrap_or(Value::Nothing);
        results.extend(program.outputs.iter().map(|(_, value)| output(*value)));
    }
    memory.end();
    made
}

fn run_blocks<P: Parts>(
    program: &ArrayProgram,
    sweeps: &[Option<SweepRunner>],
    parts: &mut P,
    run: &mut RunParts<'_>,
) -> Result<(), P::Error> {
    // Where the run is, from the outermost block inwards: a block, its next step, and where its result goes.
    let mut open: SmallVec<[(&Block, usize, Option<ValueId>); 4]> = SmallVec::new();
    open.push((program.block(BlockId::TOP), 0, None));
    while let Some((block, next, to)) = open.last_mut() {
        let Some(step) = block.steps.get(*next) else {
            let result = block.result.and_then(|result| run.slots.get(result).cloned());
            if let (Some(to), Some(result)) = (*to, result) {
                run.slots.set(to, result);
            }
            open.pop();
            continue;
        };
        *next += 1;
        parts.poll()?;
        match step.action {
            Action::Where { on, off } => {
                let condition = run.slots.get(step.args[0]);
                let is_on = condition.is_some_and(|condition| condition.as_scalar().is_some());
                open.push((program.block(if is_on { on } else { off }), 0, Some(step.outs[0])));
            }
            Action::Sweep(sweep) => {
                let swept = match &sweeps[sweep.index()] {
                    Some(runner) => runner.run(program, sweep, run, parts)?,
                    None => Swept::Not,
                };
                match swept {
                    Swept::Made => {}
                    Swept::Failed => return Err(parts.unsure()),
                    Swept::Not => {
                        let stages = &program.sweep(sweep).stages;
                        stages.iter().try_for_each(|stage| evaluate(program, parts, &stage.step, &mut run.slots))?;
                    }
                }
            }
            _ => evaluate(program, parts, step, &mut run.slots)?,
        }
    }
    Ok(())
}

/// Runs a step that is no conditional and no sweep.
fn evaluate<P: Parts>(
    program: &ArrayProgram,
    parts: &mut P,
    step: &Step,
    slots: &mut Slots<'_>,
) -> Result<(), P::Error> {
    let made = results(program, parts, step, slots)?;
    step.outs.iter().zip(made).for_each(|(out, value)| slots.set(*out, value));
    Ok(())
}

/// The results of a step that is no conditional and no sweep.
fn results<P: Parts>(
    program: &ArrayProgram,
    parts: &mut P,
    step: &Step,
    slots: &Slots<'_>,
) -> Result<Vec<Value>, P::Error> {
    // What a step needs was made before it, as the verifier says.
    let nothing = Value::Nothing;
    let args: Vec<&Value> = step.args.iter().map(|arg| slots.get(*arg).unwrap_or(&nothing)).collect();
    match step.action {
        Action::Scalar(part) => parts.scalar(part, &args),
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
            let arrays = parts.map(part, &args, elements)?;
            let made = step.outs.iter().zip(arrays).map(|(out, array)| match program.qtype(*out) {
                cembra_runtime::QType::Array(kind, _) => Value::Array(*kind, array.into()),
                _ => Value::Nothing,
            });
            Ok(made.collect())
        }
        Action::Operator(op) => {
            let values: Vec<Value> = args.into_iter().cloned().collect();
            let OverArrays::Kernel(operator) = program.registry.get(op).over_arrays else {
                return Err(parts.fault(step, Fault::new(FaultKind::Invalid)));
            };
            let made = (operator.evaluate)(&values, program.qtype(step.outs[0]));
            Ok(vec![made.map_err(|fault| parts.fault(step, fault))?])
        }
        Action::MakeTuple => {
            let cembra_runtime::QType::Tuple(types) = program.qtype(step.outs[0]) else { return Ok(Vec::new()) };
            Ok(vec![Value::Tuple(types.with(args.into_iter().cloned().collect()))])
        }
        Action::Field(field) => match args[0] {
            Value::Tuple(fields) => Ok(fields.get(field as usize).cloned().into_iter().collect()),
            _ => Ok(Vec::new()),
        },
        Action::Where { .. } | Action::Sweep(_) => Ok(Vec::new()),
    }
}
