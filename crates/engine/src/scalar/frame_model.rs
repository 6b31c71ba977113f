//! A plan that is run on one row: its function, the frame (memory) that a run begins with, and the steps that can fail.
//! [`Executable`](crate::Executable) counts calls and switches to new tiers.

use crate::options::choice::Backend;
use crate::options::compile_options::TimedOptions;
use crate::options::metrics::EventReporter;
use crate::scalar::backend::{Runnable, bind};
use crate::stages::sites::Sites;
use cembra_expr::Program;
use cembra_plan::{Binding, Plan, Template, ValueId};
use cembra_runtime::{Context, Frame, FramePtr, STATUS_OK};
use cembra_value::{Diagnostic, Error, Value, ValueRun};

/// A compiled model of scalars, whose values are all in a frame (the memory of one evaluation).
#[derive(Debug)]
pub struct FrameModel {
    pub(crate) runnable: Runnable,
    sites: Sites,
    template: Template,
    /// True if a value of the plan is a string. Evaluations of other plans skip the bookkeeping of strings.
    has_strings: bool,
    /// The slots of the inputs and outputs, if values are copied to and from the frame; `None` if the machine code reads and writes structs of the
    /// caller.
    pub(crate) slots: Option<ValueSlots>,
}

/// The slots in a frame from which inputs are read and to which outputs are written, for a model whose callers copy values.
#[derive(Debug)]
pub(crate) struct ValueSlots {
    pub(crate) inputs: Box<[ValueRun]>,
    pub(crate) outputs: Box<[ValueRun]>,
}

impl ValueSlots {
    fn of(plan: &Plan) -> ValueSlots {
        let runs = |values: &mut dyn Iterator<Item = ValueId>| {
            ValueRun::all(values.map(|value| (&plan.value(value).qtype, plan.value(value).slot))).into()
        };
        ValueSlots {
            inputs: runs(&mut plan.inputs().iter().map(|input| input.value)),
            outputs: runs(&mut plan.outputs().iter().map(|output| output.value)),
        }
    }

    /// Writes `values` to the slots of the inputs, up to the first value that is not of its input's type. Returns the number of values that were
    /// written.
    ///
    /// # Safety
    /// FRAME-SLOT and STRING-VIEW (`docs/safety.md`): `frame` must have the layout of the plan. Texts in `values` must outlive all calls on the frame
    /// until its inputs are written again.
    #[inline]
    pub(crate) unsafe fn write(&self, values: &[Value], frame: FramePtr) -> usize {
        let mut rest = values;
        for run in &self.inputs {
            let (these, others) = rest.split_at_checked(run.len()).unwrap_or((rest, &[]));
            // SAFETY: FRAME-SLOT, STRING-VIEW, promised by the caller: the run's slots are those of its inputs.
            let written = unsafe { run.write(these, frame) };
            if written < these.len() {
                return values.len() - rest.len() + written;
            }
            rest = others;
        }
        values.len() - rest.len()
    }

    /// Reads the outputs from their slots, and appends their values to `results`.
    ///
    /// # Safety
    /// FRAME-SLOT and STRING-VIEW (`docs/safety.md`): a call must have written the outputs to the frame, and the bytes to which texts point must
    /// still be alive.
    #[inline]
    pub(crate) unsafe fn read(&self, frame: FramePtr, results: &mut Vec<Value>) {
        for run in &self.outputs {
            // SAFETY: FRAME-SLOT, STRING-VIEW, promised by the caller.
            unsafe { run.read(frame, results) };
        }
    }

    fn memory_bytes(&self) -> usize {
        self.inputs.iter().chain(&self.outputs).map(ValueRun::memory_bytes).sum()
    }
}

impl FrameModel {
    /// Compiles a plan for a backend. With `structs`, the code reads inputs from the fields of the caller's structs that `structs` gives, and writes
    /// outputs to such fields; with `None`, callers copy values to and from the frame. The second result is the reason if the interpreter has to
    /// replace machine code, else `None`.
    ///
    /// # Errors
    /// If a limit is exceeded, or the backend is not available and the interpreter may not replace it.
    pub(crate) fn new(
        program: &Program,
        plan: &Plan,
        structs: Option<Binding>,
        backend: Backend,
        options: &TimedOptions,
        watch: &EventReporter,
    ) -> Result<(FrameModel, Option<Diagnostic>), Error> {
        let slots = structs.is_none().then(|| ValueSlots::of(plan));
        let binding = structs.unwrap_or_else(|| plan.frame_binding());
        let (runnable, reason) = bind(backend, options, plan, &binding, watch)?;
        Ok((FrameModel::of(program, plan, slots, runnable, options), reason))
    }

    /// Makes a model that the interpreter runs, and whose callers copy values to and from the frame.
    pub(crate) fn interpreted(program: &Program, plan: &Plan, options: &TimedOptions) -> FrameModel {
        let runnable = Runnable::Interpreted(cembra_interp::bind(plan, &plan.frame_binding()));
        FrameModel::of(program, plan, Some(ValueSlots::of(plan)), runnable, options)
    }

    fn of(
        program: &Program,
        plan: &Plan,
        slots: Option<ValueSlots>,
        runnable: Runnable,
        options: &TimedOptions,
    ) -> FrameModel {
        let (sites, template) = (Sites::of(plan, program, options), plan.template().clone());
        FrameModel { runnable, sites, template, has_strings: plan.has_strings(), slots }
    }

    /// Makes a frame that contains the plan's literals.
    pub(crate) fn frame(&self) -> Frame {
        self.template.frame()
    }

    /// Returns the size of a frame in bytes.
    pub(crate) fn frame_bytes(&self) -> usize {
        self.template.frame_bytes()
    }

    /// Begins an evaluation: the strings of the previous evaluation, and the work on them, no longer count against the limits.
    #[inline(always)]
    pub(crate) fn begin(&self, context: &mut Context) {
        if self.has_strings {
            context.begin();
        }
    }

    /// Ends an evaluation whose compiled function returned `status`. Returns the error if the evaluation failed.
    #[inline(always)]
    pub(crate) fn end(&self, status: i32, context: &mut Context) -> Result<(), Error> {
        let status = if self.has_strings { context.end(status) } else { status };
        if status == STATUS_OK { Ok(()) } else { Err(self.sites.error(context)) }
    }

    /// Returns the bytes of memory that the model takes, including its code and without its own struct.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.sites.memory_bytes()
            + self.template.memory_bytes()
            + self.runnable.memory_bytes()
            + self.slots.as_ref().map_or(0, ValueSlots::memory_bytes)
    }
}
