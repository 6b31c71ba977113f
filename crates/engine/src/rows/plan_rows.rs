//! A plan that is evaluated on many rows. The layouts of the columns decide which backend evaluates them. The machine code is compiled when columns
//! with such layouts first occur, and cached.

use crate::code::cache::{Cache, NewValue};
use crate::options::choice::{Backend, RowPlayer};
use crate::options::compile_options::TimedOptions;
use crate::options::metrics::EventReporter;
use crate::options::signature::Field;
use crate::rows::players::{BackendChoice, choose};
use crate::rows::{BoundLineFunction, LineLayout, ResultTarget, line_forms};
use crate::rows::{
    ColumnLayouts, ColumnMut, EndReason, InputColumn, Job, Misfit, OutputRoom, Player, RowPlan, RowsResult,
    RunRejection,
};
use crate::stages::faults;
use crate::stages::sites::Sites;
use cembra_expr::Program;
use cembra_native::Tier;
use cembra_plan::Plan;
use cembra_runtime::BatchFunction;
use cembra_runtime::Context;
use cembra_value::Error;
use cembra_value::{Budget, Code, Diagnostic, Limits, RunTerms};
use std::sync::Arc;

/// The most combinations of column layouts whose backends are cached. The caller chooses a layout for each column: values, optionals, one value for
/// all rows.
const MOST_PLAYERS: usize = 16;

/// The backend for columns with given layouts. If it is not the best backend, `because` has the reason.
#[derive(Debug)]
struct ChosenBackend {
    player: Player,
    name: RowPlayer,
    because: Option<Diagnostic>,
}

/// A plan, compiled to be evaluated on many rows, with a cache of machine code for the layouts of columns that have occurred.
#[derive(Debug)]
pub(crate) struct PlanRows {
    plan: Arc<Plan>,
    row_plan: RowPlan,
    sites: Sites,
    limits: Limits,
    inputs: Box<[Field]>,
    outputs: Box<[Field]>,
    player: RowPlayer,
    tier: Tier,
    watch: EventReporter,
    /// The backends by the layouts of columns.
    players: Cache<ColumnLayouts, Result<Arc<ChosenBackend>, Error>>,
}

/// The error for columns that do not fit their inputs or outputs, for the reason `refused`.
#[cold]
pub(crate) fn misfit(inputs: &[Field], outputs: &[Field], refused: &RunRejection) -> Error {
    let of = |kind: &str, fields: &[Field], at: usize, misfit: &Misfit| match fields.get(at) {
        Some(Field { name, qtype, .. }) if matches!(misfit, Misfit::Type { .. } | Misfit::Value { .. }) => {
            Error::values(format!("{kind} `{name}` is {qtype}, but the column {misfit}"))
        }
        Some(Field { name, .. }) => Error::values(format!("{kind} `{name}` {misfit}")),
        None => Error::values(refused.to_string()),
    };
    match refused {
        RunRejection::Input { at, misfit } => of("input", inputs, *at, misfit),
        RunRejection::Output { at, misfit } => of("output", outputs, *at, misfit),
        other => Error::values(other.to_string()),
    }
}

/// Returns an error unless the thread is in the default floating-point mode, because in another mode results may differ.
pub(crate) fn check_float_mode() -> Result<(), Error> {
    if cembra_runtime::math::default_float_mode() {
        return Ok(());
    }
    Err(Diagnostic::new(Code::FloatMode, "the thread's floating-point mode is not the default").into())
}

impl PlanRows {
    pub(crate) fn of(program: &Program, plan: impl Into<Arc<Plan>>, options: &TimedOptions) -> PlanRows {
        let plan = plan.into();
        let [inputs, outputs] = Field::of_plan(&plan, program);
        let player = if options.backend == Backend::Interpreter { RowPlayer::Interpreter } else { options.row_player };
        PlanRows {
            row_plan: RowPlan::of(&plan),
            sites: Sites::of(&plan, program, options),
            limits: *options.budget().limits(),
            inputs,
            outputs,
            player,
            tier: options.tier,
            watch: EventReporter::new(options.metrics.as_ref(), options.name.clone()),
            players: Cache::new(MOST_PLAYERS),
            plan,
        }
    }

    pub(crate) const fn watch(&self) -> &EventReporter {
        &self.watch
    }

    pub(crate) fn inputs(&self) -> &[Field] {
        &self.inputs
    }

    pub(crate) fn outputs(&self) -> &[Field] {
        &self.outputs
    }

    /// Returns, for each input of the plan, the index of the same input among the leaves (input nodes) of the model that was planned.
    pub(crate) fn leaves(&self) -> impl ExactSizeIterator<Item = usize> {
        self.plan.inputs().iter().map(|input| input.leaf as usize)
    }

    /// The limits that evaluations of the plan must not exceed.
    pub(crate) const fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Returns the backend that evaluates `rows` rows of columns with the layouts of `inputs`, and the reason if it is not the best backend. Compiles
    /// the backend's code if it is not cached.
    pub(crate) fn player(
        &self,
        inputs: &[InputColumn<'_>],
        rows: usize,
    ) -> Result<(RowPlayer, Option<Diagnostic>), Error> {
        let outputs = self.outputs.iter().map(|_| None).collect();
        let room = OutputRoom::of(0);
        let job = self
            .row_plan
            .job(inputs, outputs, rows, &RunTerms::default(), &room)
            .map_err(|refused| self.misfit(&refused))?;
        let played = self.played_for(&job)?;
        Ok((played.name, played.because.clone()))
    }

    /// Compiles a function that evaluates columns with the layouts `forms`, a strip (a block of rows) at a time; `None` if the interpreter evaluates
    /// the rows one by one.
    pub(crate) fn function(&self, forms: &ColumnLayouts) -> Option<Box<dyn BatchFunction>> {
        choose(&self.plan, forms, self.player, self.tier, &Budget::start(self.limits), &self.watch).ok()?.function
    }

    /// Returns a function that evaluates lines (arrays of numbers that lie at equal distances in memory) with the types
    /// and distances `paces`, and delivers results to `sink`; `None` if the interpreter evaluates the rows of such
    /// lines one by one.
    pub(crate) fn bind_lines(
        &self,
        paces: &[LineLayout],
        sink: ResultTarget,
    ) -> Result<Option<BoundLineFunction>, Error> {
        let forms = line_forms(paces, &[sink]);
        let played = self.played(|known| *known == forms, || forms.clone())?;
        Ok(self.row_plan.bind_lines(&played.player, paces, sink, self.limits.context()))
    }

    /// Makes a context for evaluations with the model's limits.
    pub(crate) fn context(&self) -> Context {
        self.limits.context()
    }

    /// Returns the bytes of memory that the plan, its interpreted code and its machine code take.
    pub(crate) fn memory_bytes(&self) -> usize {
        let code = self.players.sum(|played| {
            let function = played.as_ref().ok().and_then(|played| played.player.function());
            function.map_or(0, |function| function.memory_bytes() as u64)
        });
        let code = usize::try_from(code).unwrap_or(usize::MAX);
        size_of::<PlanRows>() + self.plan.memory_bytes() + self.row_plan.memory_bytes() + code
    }

    /// Returns the backend for the columns of a job.
    fn played_for(&self, job: &Job<'_>) -> Result<Arc<ChosenBackend>, Error> {
        self.played(|known| job.has_forms(known), || job.forms())
    }

    /// Returns the backend for columns with the layouts `forms`. `are_these` compares these layouts with the layouts of
    /// a backend in the cache.
    fn played(
        &self,
        are_these: impl Fn(&ColumnLayouts) -> bool,
        forms: impl Fn() -> ColumnLayouts,
    ) -> Result<Arc<ChosenBackend>, Error> {
        let make = || {
            let budget = Budget::start(self.limits);
            let value = self.choose(&forms(), &budget);
            // A player that exceeded the time limit is not cached, because the next attempt may succeed.
            NewValue { stays: value.is_ok() && budget.check_time().is_ok(), value }
        };
        // Forms have no hash until they are copied, and few are cached.
        self.players.get(0, are_these, &forms, make)
    }

    fn choose(&self, forms: &ColumnLayouts, budget: &Budget) -> Result<Arc<ChosenBackend>, Error> {
        let BackendChoice { function, player, because } =
            choose(&self.plan, forms, self.player, self.tier, budget, &self.watch)?;
        let made = self.row_plan.player(forms, function);
        let made = made.ok_or_else(|| Error::values("the columns belong to another model"))?;
        Ok(Arc::new(ChosenBackend { player: made, name: player, because }))
    }

    fn misfit(&self, refused: &RunRejection) -> Error {
        misfit(&self.inputs, &self.outputs, refused)
    }

    /// Evaluates the plan on `rows` rows, and writes each output into the caller's memory in `outputs`, or into a new column where `outputs` has
    /// `None`. The strings of the outputs may take at most `strings` bytes; `None` stands for the limit on the bytes of arrays.
    pub(crate) fn run(
        &self,
        inputs: &[InputColumn<'_>],
        outputs: Vec<Option<ColumnMut<'_>>>,
        rows: usize,
        terms: &RunTerms<'_>,
        strings: Option<u64>,
    ) -> Result<RowsResult<Error>, Error> {
        let limits = terms.limits.unwrap_or(&self.limits);
        let terms = RunTerms { limits: Some(limits), ..*terms };
        let room = OutputRoom::of(strings.unwrap_or(limits.array_bytes));
        let mut job = match self.row_plan.job(inputs, outputs, rows, &terms, &room) {
            Ok(job) => job,
            Err(refused) => return Err(self.misfit(&refused)),
        };
        let played = self.played_for(&job)?;
        check_float_mode()?;
        self.row_plan.run(&mut job, &played.player, &|context| self.sites.error(context)).map_err(|stop| match stop {
            EndReason::Row(row, error) => error.in_row(row),
            EndReason::Cancelled => Error::ended_by(terms.token),
            EndReason::Strings => faults::of_made(),
            EndReason::TooLong => Error::values("a string has more than 2 GiB, the limit for a string in a column"),
            EndReason::Foreign => Error::values("the columns belong to another batch"),
        })
    }
}
