//! Summarises a compiled model in numbers: its backend, and its size in each stage. `explain` shows the stages themselves.

use crate::Backend;
use crate::Executor;
use crate::model::explain::listed_plan;
use crate::model::explain::{ModelKind, Stage, prepare_watched};
use crate::options::StartedOptions;
use crate::{Error, Model, Options, Signature};
use cembra_engine::{ArrayModel, plan, refusal, tier_name};
use cembra_native::Tier;
use cembra_value::Diagnostic;

/// A summary of a compiled model in numbers, such as its backend and its number of steps.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Summary {
    /// The model's inputs and outputs.
    pub signature: Signature,
    /// The backend that runs the model once all tiers are compiled: `Backend::Interpreter` or `Backend::Native`.
    pub backend: Backend,
    /// The tier of the machine code; `None` if the model is interpreted.
    pub tier: Option<Tier>,
    /// The reason why the model is interpreted although machine code was requested; else `None`.
    pub fallback: Option<Diagnostic>,
    /// The number of nodes that the outputs need in the graph of the model's text, before preparation.
    pub written_nodes: usize,
    /// The number of nodes in the model's graph after preparation.
    pub prepared_nodes: usize,
    /// The names of the passes of preparation that changed the graph, in the order of the passes.
    pub changed_by: Vec<&'static str>,
    /// The size of the model's plan, such as its number of steps.
    pub work: WorkSummary,
}

/// The size of a model's plan: its number of steps, and further numbers that depend on the kind of model.
#[derive(Clone, Debug)]
pub enum WorkSummary {
    /// The model has only scalars, so it has a plan for one row.
    Plan {
        /// The number of steps in the plan.
        steps: usize,
        /// The size of the frame in bytes.
        frame_bytes: usize,
        /// The size of the machine code in bytes; `None` if there is none.
        code_bytes: Option<usize>,
    },
    /// The model has arrays, so it has an array program.
    Arrays {
        /// The numbers of steps and arrays in the array program and their costs, as the first lines of its listing state
        /// them.
        counts: String,
    },
    /// The model has tensors, so it has a plan over whole tensors. A plan is made at the first run on inputs with given
    /// extents.
    Tensors {
        /// The number of steps in the plan if each axis has extent 64; `None` if the model does not allow these extents.
        steps: Option<usize>,
    },
}

impl Summary {
    /// Returns the name of the machine code's tier: `quick` or `optimised`; `None` if the model is interpreted.
    #[must_use]
    pub fn tier_name(&self) -> Option<&'static str> {
        self.tier.map(tier_name)
    }

    /// Returns the stages of compilation that the model has, in their order.
    pub fn stages(&self) -> impl Iterator<Item = Stage> {
        let kind = match self.work {
            WorkSummary::Plan { .. } => ModelKind::Scalars,
            WorkSummary::Arrays { .. } => ModelKind::Arrays,
            WorkSummary::Tensors { .. } => ModelKind::Tensors,
        };
        Stage::ALL.into_iter().filter(move |stage| stage.applies(kind))
    }
}

impl Model {
    /// Compiles the model and returns a summary of it in numbers. [`Model::explain`] shows the model stage by stage.
    ///
    /// ```
    /// use cembra::explain::WorkSummary;
    /// use cembra::{Backend, Model, Options};
    ///
    /// let model = Model::parse("input x: f64; output y = x * (1.0 + 1.0) + x * 2.0")?;
    /// let summary = model.summary(&Options::default().backend(Backend::Interpreter))?;
    /// assert_eq!((summary.backend, summary.tier_name()), (Backend::Interpreter, None));
    /// assert!(summary.changed_by.contains(&"fold"));
    /// // An input, a literal, a product and a sum are left of an input, two literals, two products and two sums.
    /// assert_eq!((summary.written_nodes, summary.prepared_nodes), (7, 4));
    /// let WorkSummary::Plan { steps, code_bytes, .. } = summary.work else { panic!() };
    /// assert_eq!((steps, code_bytes), (2, None));
    /// # Ok::<(), cembra::Error>(())
    /// ```
    ///
    /// # Errors
    /// If there are problems with types or limits. With `Backend::Native`, also if the model cannot be compiled to machine code.
    pub fn summary(&self, options: &Options) -> Result<Summary, Error> {
        let options = &self.started(options);
        self.step(|| self.summarized(options))
    }

    fn summarized(&self, options: &StartedOptions) -> Result<Summary, Error> {
        let program = self.selected(options)?;
        let graph = &program.graph;
        let needed = graph.reachable(program.outputs.iter().map(|output| output.node));
        let written_nodes = needed.into_iter().filter(|needed| *needed).count();
        if cembra_engine::TensorProgram::is_of(&program, options) {
            let executable = cembra_engine::Executable::of(program, options)?;
            let signature = executable.signature();
            let executor = Executor::from(executable);
            let (backend, tier) = (executor.backend(), executor.tier());
            let work = WorkSummary::Tensors { steps: listed_plan(&executor).ok().map(|plan| plan.counters().steps) };
            let (fallback, changed_by, prepared_nodes) = (None, Vec::new(), written_nodes);
            return Ok(Summary { signature, backend, tier, fallback, written_nodes, prepared_nodes, changed_by, work });
        }
        let mut changed_by = Vec::new();
        let prepared = prepare_watched(&program, options, &mut |pass, changed| {
            changed_by.extend(changed.map(|_| pass.name));
        })?;
        let signature = Model::signature_of(prepared.model(), &program);
        let placed = prepared.placed()?;
        let prepared_nodes = placed.model.needed().iter().filter(|needed| **needed).count();
        let (mut tier, mut fallback) = (None, None);
        let work = if placed.model.has_arrays() {
            let arrays = ArrayModel::of(program.clone(), placed, options)?;
            tier = arrays.tier();
            WorkSummary::Arrays { counts: arrays.counts()? }
        } else {
            let plan = plan(&placed, &program, options)?;
            let mut code_bytes = None;
            if options.backend != Backend::Interpreter {
                match cembra_native::listings(&plan, &plan.frame_binding(), options.tier, options.budget()) {
                    Ok(listings) => (tier, code_bytes) = (Some(options.tier), Some(listings.code.len())),
                    Err(error) if options.backend == Backend::Native => return Err(refusal(&error).into()),
                    Err(error) => fallback = Some(refusal(&error)),
                }
            }
            WorkSummary::Plan { steps: plan.step_count(), frame_bytes: plan.template().frame_bytes(), code_bytes }
        };
        let backend = if tier.is_some() { Backend::Native } else { Backend::Interpreter };
        Ok(Summary { signature, backend, tier, fallback, written_nodes, prepared_nodes, changed_by, work })
    }
}
