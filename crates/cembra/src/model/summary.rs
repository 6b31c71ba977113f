//! What becomes of a model, in numbers: what runs it, and how much there is of it in each stage. What the stages hold is shown by
//! `explain`.

use crate::Backend;
use crate::Executor;
use crate::model::explain::listed_plan;
use crate::model::explain::{ModelKind, Stage, prepare_watched};
use crate::options::StartedOptions;
use crate::{Error, Model, Options, Signature};
use cembra_engine::{ArrayModel, plan, refusal, tier_name};
use cembra_native::Tier;
use cembra_value::Diagnostic;

/// What becomes of a model.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Summary {
    /// Its inputs and outputs.
    pub signature: Signature,
    /// What runs it, once all tiers are compiled: `Backend::Interpreter` or `Backend::Native`.
    pub backend: Backend,
    /// How much goes into its machine code; none if it is interpreted.
    pub tier: Option<Tier>,
    /// Why it is interpreted although machine code was asked for.
    pub fallback: Option<Diagnostic>,
    /// The nodes that the outputs need of the graph as it was written.
    pub written_nodes: usize,
    /// Those of the graph after preparation.
    pub prepared_nodes: usize,
    /// The names of the passes of preparation that changed the graph, in their order.
    pub changed_by: Vec<&'static str>,
    /// What is done in an evaluation.
    pub work: WorkSummary,
}

/// The steps and the sizes of an evaluation.
#[derive(Clone, Debug)]
pub enum WorkSummary {
    /// A plan.
    Plan {
        /// Its steps.
        steps: usize,
        /// The bytes of its frame.
        frame_bytes: usize,
        /// The bytes of its machine code, if there is any.
        code_bytes: Option<usize>,
    },
    /// An array program.
    Arrays {
        /// Its steps and arrays, and what they take, as the first lines of its listing say it.
        counts: String,
    },
    /// A plan over whole tensors, made at the first run with certain extents.
    Tensors {
        /// Its steps for axes of 64 indices; none if extents of 64 do not fit each other.
        steps: Option<usize>,
    },
}

impl Summary {
    /// The tier of machine code by its name: `quick` or `optimised`.
    #[must_use]
    pub fn tier_name(&self) -> Option<&'static str> {
        self.tier.map(tier_name)
    }

    /// The stages that the model goes through, in their order.
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
    /// Returns a summary of the compiled model in numbers; [`Model::explain`] shows it stage by stage.
    ///
    /// ```
    /// use cembra::{Backend, Model, Options, WorkSummary};
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
    /// Problems with types or limits; with `Backend::Native`, that there is no machine code to be had.
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
