//! Plans of scalars between the arrays of a model. They are interpreted: to compile a few operators takes longer than thousands of
//! runs of them.

use crate::compile_options::Started;
use crate::evaluation::EvaluationLimits;
use crate::sites::Sites;
use cembra_expr::Program;
use cembra_interp::Interpreted;
use cembra_plan::{Function, Plan, Template, ValueId};
use cembra_runtime::{Cancellation, Context, Frame, STATUS_OK};
use cembra_value::Error;
use cembra_value::{Value, ValueRun};

/// A plan of scalars, to be run once for each run of its model.
#[derive(Debug)]
pub(crate) struct OncePlan {
    function: Interpreted,
    template: Template,
    sites: Sites,
    limits: EvaluationLimits,
    inputs: Vec<ValueRun>,
    outputs: Vec<ValueRun>,
}

/// What one run after the other needs.
#[derive(Debug)]
pub(crate) struct OnceMemory {
    frame: Frame,
    context: Context,
    inputs: Vec<Value>,
}

impl OncePlan {
    pub(crate) fn of(program: &Program, plan: &Plan, options: &Started) -> OncePlan {
        let runs = |values: &mut dyn Iterator<Item = ValueId>| {
            ValueRun::all(values.map(|value| (&plan.value(value).qtype, plan.value(value).slot)))
        };
        OncePlan {
            function: cembra_interp::bind(plan, &plan.frame_binding()),
            template: plan.template().clone(),
            sites: Sites::of(plan, program, options),
            limits: EvaluationLimits::of(options),
            inputs: runs(&mut plan.inputs().iter().map(|input| input.value)),
            outputs: runs(&mut plan.outputs().iter().map(|output| output.value)),
        }
    }

    pub(crate) fn memory(&self) -> OnceMemory {
        OnceMemory { frame: self.template.frame(), context: self.limits.context(), inputs: Vec::new() }
    }

    /// Evaluates the plan on values of exactly its inputs' types, within limits. The results are put behind the others.
    ///
    /// # Errors
    /// It fails, or was cancelled.
    pub(crate) fn run<'v>(
        &self,
        memory: &mut OnceMemory,
        inputs: impl Iterator<Item = &'v Value>,
        token: Option<&Cancellation>,
        limits: &EvaluationLimits,
        results: &mut Vec<Value>,
    ) -> Result<(), Error> {
        let OnceMemory { frame, context, inputs: values } = memory;
        values.clear();
        values.extend(inputs.cloned());
        let frame = frame.ptr();
        context.set_cancellation(token.cloned());
        limits.hold_in(context);
        context.begin();
        let mut rest = &values[..];
        for run in &self.inputs {
            let (these, others) = rest.split_at_checked(run.len()).unwrap_or((rest, &[]));
            // SAFETY: FRAME-SLOT: the run's slots are those of its inputs in a frame of the plan; STRING-VIEW: the values outlive
            // the call, and nothing reads the frame's inputs after it.
            let written = unsafe { run.write(these, frame) };
            if written < run.len() {
                return Err(Error::values("a plan of scalars is given other values than it takes"));
            }
            rest = others;
        }
        // SAFETY: CALL: the function is of the plan, bound in its frame, which was made from the plan's template.
        let status = unsafe { self.function.call(frame, frame, frame, context) };
        if context.end(status) != STATUS_OK {
            return Err(self.sites.error(context));
        }
        for run in &self.outputs {
            // SAFETY: FRAME-SLOT: the call wrote these outputs to their slots; STRING-VIEW: what a text views is still alive.
            unsafe { run.read(frame, results) };
        }
        Ok(())
    }

    /// Bytes of memory besides itself.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.function.memory_bytes()
    }
}
