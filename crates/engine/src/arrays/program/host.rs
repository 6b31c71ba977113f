//! The environment in which an array program runs: it runs the program's plans, over the elements of arrays or once on
//! scalars, and provides the limits of the run and the errors of failed steps.

use crate::rows::plan_rows::PlanRows;
use crate::rows::{Bitmap, ColumnLayouts, InputColumn, OutputColumn, OutputParts};
use crate::scalar::once::{OnceMemory, OncePlan};
use crate::stages::faults::{self, FailedOperator};
use crate::stages::sites::operator_name;
use cembra_array::{ArrayProgram, PartId, Step};
use cembra_expr::Program;
use cembra_runtime::{BatchFunction, ColumnForm, Context, Fault, FaultKind, Scalar, Text};
use cembra_value::Error;
use cembra_value::{Array, ArrayData, StringViews, Value, useful_threads};
use cembra_value::{Limits, RunTerms};

/// The compiled code of one plan of an array program.
#[derive(Debug)]
pub(crate) enum CompiledPart {
    /// The plan runs once per element, over the elements of arrays.
    Rows(Box<PlanRows>),
    /// The plan runs once, on scalars.
    Once(Box<OncePlan>),
}

/// The environment of one run of an array program: the program, its compiled plans, and the limits, threads and
/// cancellation of the run.
#[derive(Debug)]
pub(crate) struct ArrayHost<'r> {
    /// The array program that is run.
    pub(crate) arrays: &'r ArrayProgram,
    /// The compiled code of each plan of the array program.
    pub(crate) played: &'r [CompiledPart],
    /// The source program that the array program was made from.
    pub(crate) program: &'r Program,
    pub(crate) terms: RunTerms<'r>,
    /// The limits of this run: by default, the limits that the model was compiled with.
    pub(crate) limits: &'r Limits,
    /// The memory of each plan that runs on scalars; `None` before its first run, and for a plan that runs only on arrays.
    pub(crate) scalars: &'r mut Vec<Option<OnceMemory>>,
}

impl ArrayHost<'_> {
    /// Runs the plan `part` once per row, for `rows` rows. The strings that the plan makes may take at most `strings`
    /// bytes.
    fn rows(&self, part: PartId, args: &[&Value], rows: usize, strings: u64) -> Result<Vec<OutputColumn>, Error> {
        let part_of = self.arrays.part(part);
        let args: Vec<&Value> = part_of.inputs.iter().map(|at| args[*at]).collect();
        let optional = part_of.plan.inputs().iter().map(|input| part_of.plan.value(input.value).qtype.is_optional());
        let buffers: Vec<Vec<&[u8]>> = args.iter().map(|arg| buffers(arg)).collect();
        let columns: Option<Vec<InputColumn<'_>>> = args
            .iter()
            .zip(&buffers)
            .zip(optional)
            .map(|((arg, buffers), optional)| column(arg, optional, buffers))
            .collect();
        let columns = columns.ok_or_else(|| Error::values("an operand of a plan cannot be read as a column"))?;
        let CompiledPart::Rows(rows_of) = &self.played[part.index()] else {
            return Err(Error::values("a plan for scalars cannot be evaluated for rows"));
        };
        let terms = RunTerms { limits: Some(self.limits), ..self.terms.inside() };
        let outputs = rows_of.outputs().iter().map(|_| None).collect();
        Ok(rows_of.run(&columns, outputs, rows, &terms, Some(strings))?.columns.into_iter().flatten().collect())
    }

    /// Evaluates the plan `part` for `elements` elements. `args` must be arrays of `elements` elements, or scalars that all elements share. The
    /// strings that the plan makes may take at most `room` bytes.
    ///
    /// # Errors
    /// If an element fails, or strings take more than `room` bytes.
    pub(super) fn map(&self, part: PartId, args: &[&Value], elements: usize, room: u64) -> Result<Vec<Array>, Error> {
        let arrays: Option<Vec<Array>> =
            self.rows(part, args, elements, room).map_err(Error::in_element)?.into_iter().map(array).collect();
        arrays.ok_or_else(|| Error::values("a result of a plan is not an array"))
    }

    /// Evaluates the plan `part` on the scalars `args`, and appends its outputs to `results`.
    ///
    /// # Errors
    /// If the evaluation fails.
    pub(super) fn scalar(&mut self, part: PartId, args: &[&Value], results: &mut Vec<Value>) -> Result<(), Error> {
        let CompiledPart::Once(plan) = &self.played[part.index()] else {
            return Err(Error::values("a plan for elements cannot be evaluated for one row"));
        };
        if self.scalars.is_empty() {
            self.scalars.resize_with(self.played.len(), || None);
        }
        let memory = self.scalars[part.index()].get_or_insert_with(|| plan.memory());
        let inputs = self.arrays.part(part).inputs.iter().map(|at| args[*at].clone());
        plan.run(memory, inputs, self.terms.token, self.limits, results)
    }

    /// The compiled function that evaluates the plan `part` on columns with the layouts `forms`; `None` if the interpreter evaluates the elements one
    /// by one.
    pub(super) fn function(&self, part: PartId, forms: &[ColumnForm]) -> Option<Box<dyn BatchFunction>> {
        match &self.played[part.index()] {
            CompiledPart::Rows(batch) => batch.function(&ColumnLayouts(forms.into())),
            CompiledPart::Once(_) => None,
        }
    }

    /// Makes a context for evaluations with the limits of the run.
    pub(super) fn context(&self) -> Context {
        self.limits.context()
    }

    /// Prepares a context for the run: sets its limits, and the token that cancels it.
    pub(super) fn ready(&self, context: &mut Context) {
        self.limits.hold_in(context);
        context.set_cancellation(self.terms.token.cloned());
    }

    /// The most loop iterations that all loops of the run may make together.
    pub(super) fn most_rounds(&self) -> u64 {
        self.limits.loop_iterations
    }

    /// The maximum number of bytes that the arrays of the run may take at the same time. Inputs are not counted.
    pub(super) fn most_array_bytes(&self) -> u64 {
        self.limits.array_bytes
    }

    /// The error for a step whose arrays exceed the limit on bytes.
    pub(super) fn exceeds(&self, step: &Step) -> Error {
        faults::of_arrays(self.failed(step))
    }

    /// The error for a run that fails, or may have failed. The caller then evaluates the model in another way, which gives the reason.
    pub(super) fn unsure(&self) -> Error {
        Error::values("an element may have failed")
    }

    /// Describes a failed step for an error.
    fn failed(&self, step: &Step) -> FailedOperator {
        let name = operator_name(&self.program.graph, step.origin).to_string();
        FailedOperator { name, span: self.program.graph.span(step.origin) }
    }

    /// The error for the step `step`, which failed with `fault`.
    pub(super) fn fault(&self, step: &Step, fault: Fault) -> Error {
        let Fault { kind, operands } = fault;
        if kind == FaultKind::Cancelled {
            return Error::ended_by(self.terms.token);
        }
        let operand = (kind == FaultKind::IndexRange).then(|| Value::from(operands[0].cast_signed()));
        let sizes = format!("({}, {})", operands[0], operands[1]);
        let text = match kind {
            FaultKind::SizeMismatch => &sizes,
            // Operators have a largest size of arrays, whatever the limits of the model are.
            FaultKind::ArenaLimit => "an array would be larger than the operators support",
            // SAFETY: STRING-VIEW: the kernels of array operators view texts that live as long as the process.
            FaultKind::Invalid | FaultKind::Assertion => unsafe {
                Text::from_raw(operands[0] as *const u8, operands[1] as usize).as_str()
            },
            _ => "",
        };
        let result = self.arrays.qtype(step.outs[0]);
        let fault = faults::of_operator(kind, self.failed(step), operand, result, text);
        fault.calls(self.program.graph.calls_to(step.origin)).into()
    }

    /// The number of threads that the run may use.
    pub(super) fn threads(&self) -> usize {
        useful_threads(self.terms.threads)
    }

    /// Checks whether the run was cancelled, or its time is over.
    ///
    /// # Errors
    /// If the run was cancelled, or its time is over.
    pub(super) fn poll(&self) -> Result<(), Error> {
        match self.terms.token {
            Some(token) if token.is_cancelled() => Err(Error::ended_by(self.terms.token)),
            _ => Ok(()),
        }
    }
}

/// The buffers of an array's strings; empty for other values.
fn buffers(value: &Value) -> Vec<&[u8]> {
    match value {
        Value::Array(_, array) => match array.data() {
            ArrayData::Strings(strings) => strings.parts().1.iter().map(Vec::as_slice).collect(),
            _ => Vec::new(),
        },
        _ => Vec::new(),
    }
}

/// Returns a value as a column: an array becomes the column of its elements, and all rows share any other value. If
/// `is_optional` is false, the array's presence bits are ignored. `None` if a column cannot have the array's type.
fn column<'a>(value: &'a Value, is_optional: bool, buffers: &'a [&'a [u8]]) -> Option<InputColumn<'a>> {
    let Value::Array(_, array) = value else { return Some(InputColumn::shared(value)) };
    let len = array.len();
    let bits = |words: &'a [u64]| Bitmap::of_words(words, len);
    let column = match array.data() {
        ArrayData::Units => InputColumn::units(len),
        ArrayData::Bits(words) => InputColumn::bits(bits(words)?),
        ArrayData::Numbers(_) => match array.scalar().representation() {
            Scalar::Int32 => InputColumn::values(array.numbers::<i32>()?),
            Scalar::Int64 => InputColumn::values(array.numbers::<i64>()?),
            Scalar::UInt64 => InputColumn::values(array.numbers::<u64>()?),
            Scalar::Float32 => InputColumn::values(array.numbers::<f32>()?),
            Scalar::Float64 => InputColumn::values(array.numbers::<f64>()?),
            _ => return None,
        },
        // SAFETY: STRING-VIEW: the views of an array refer to its buffers, and those of texts were made of texts.
        ArrayData::Strings(strings) => unsafe { InputColumn::views(array.scalar(), strings.parts().0, buffers) },
    };
    Some(match array.presence().filter(|_| is_optional) {
        Some(words) => column.present(bits(words)?),
        None => column,
    })
}

/// Converts an output column to an array; `None` if an array cannot have the type.
fn array(column: OutputColumn) -> Option<Array> {
    let (rows, scalar) = (column.rows(), column.qtype().scalar()?);
    let (_, parts, presence) = column.into_parts();
    let data = match parts {
        OutputParts::Nothing => ArrayData::Units,
        OutputParts::Numbers(words) => ArrayData::Numbers(words),
        OutputParts::Bits(words) => ArrayData::Bits(words),
        OutputParts::Strings(views, buffers) => {
            // SAFETY: STRING-VIEW: a column has made its views itself, and texts of texts.
            ArrayData::Strings(unsafe { StringViews::from_known_parts(views, buffers, scalar == Scalar::Text) })
        }
        // The inputs of an array program are neither dictionaries nor of types that are not scalars.
        OutputParts::Any(_) | OutputParts::Dictionary { .. } | OutputParts::Lists(..) | OutputParts::Structs(_) => {
            return None;
        }
    };
    Array::from_parts(scalar, rows, data, presence)
}
