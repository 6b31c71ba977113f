//! Models that contain arrays, compiled to an array program: a list of steps on whole arrays and on scalars. The
//! program contains plans, which run over the elements of arrays, or once on the scalars between operations on arrays.
//! If anything fails, or may have failed, the reference implementation runs the model again, operator by operator, and
//! its result or error is returned.

use crate::arrays::loops::{self, LoopMemory, LoopPlan, LoopRoom};
use crate::arrays::program::{ArrayHost, CompiledPart, RunMemory, SweepRunners, most_units, run};
use crate::options::choice::{Backend, RowPlayer};
use crate::options::compile_options::{CompileOptions, TimedOptions};
use crate::options::promises;
use crate::options::signature::Field;
use crate::rows::plan_rows::PlanRows;
use crate::scalar::once::{OnceMemory, OncePlan};
use crate::stages::faults;
use crate::stages::plan;
use crate::stages::sites::operator_name;
use cembra_array::{Action, ArrayInput, ArrayProgram, Fusion, PartId, SplitFailure, SubPlan, split};
use cembra_expr::{Program, Sources};
use cembra_native::Tier;
use cembra_ops::MOST_ELEMENTS;
use cembra_prepare::{RegionModel, TypedModel, prepare_part};
use cembra_runtime::{Context, FaultKind, LineKind, Listing};
use cembra_value::Error;
use cembra_value::{Code, Diagnostic, Value};
use cembra_value::{Limits, RunTerms};
use rustc_hash::FxHashSet;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

/// A compiled model that contains arrays: its array program and, once it is needed, a plan with loops for short lists.
#[derive(Debug)]
pub struct ArrayModel {
    compiled: Compiled,
    placed: RegionModel,
    program: Arc<Program>,
    options: CompileOptions,
    inputs: Box<[Field]>,
    /// The plan for short lists, if there is one; made when it is first needed.
    loops: OnceLock<Option<Box<LoopPlan>>>,
    /// The number of runs on short lists so far.
    short_runs: AtomicU32,
    /// The program of the reference implementation, which runs if the compiled program fails. It is compiled when that
    /// first happens.
    reference: OnceLock<Compiled>,
}

/// The memory that the runs of one session share, for a model with arrays.
#[derive(Debug, Default)]
pub(crate) struct ArrayMemory {
    run: RunMemory,
    /// The memory of the plan for short lists.
    loops: Option<Box<(LoopMemory, Context)>>,
    /// For each plan of the program, its memory if it runs on scalars; `None` until it is first run.
    scalars: Vec<Option<OnceMemory>>,
}

impl ArrayMemory {
    /// The bytes of memory that are kept for later runs.
    pub(crate) fn memory_bytes(&self) -> usize {
        let loops = self.loops.as_ref().map_or(0, |kept| kept.0.memory_bytes() + kept.1.arena_bytes());
        let scalars: usize = self.scalars.iter().flatten().map(OnceMemory::memory_bytes).sum();
        size_of::<ArrayMemory>() + self.run.memory_bytes() + loops + scalars
    }

    /// Takes `value` from a caller that no longer needs it. Its memory is kept for later runs, if nothing else refers to it.
    pub(crate) fn recycle(&mut self, value: Value) {
        self.run.recycle(value);
    }
}

/// An array program with the compiled code of its plans and of its fused loops over elements.
#[derive(Debug)]
pub(crate) struct Compiled {
    program: ArrayProgram,
    parts: Vec<CompiledPart>,
    sweeps: SweepRunners,
    limits: Limits,
    /// The source texts that the positions of faults refer to.
    sources: Option<Arc<Sources>>,
}

impl Compiled {
    pub(crate) fn of(
        placed: &RegionModel,
        program: &Arc<Program>,
        fusion: Fusion,
        mut parts: Option<&mut Vec<TypedModel>>,
        options: &TimedOptions,
    ) -> Result<Compiled, Error> {
        let made = split(placed, fusion, |model| {
            if let Some(parts) = &mut parts {
                parts.push(model.clone());
            }
            let part = prepare_part(model, program, &options.prepare)?;
            plan(&part, program, options)
        });
        let node_span = |origin| program.graph.span(origin);
        let array_program = made.map_err(|unsplit| match unsplit {
            SplitFailure::Part(error) => error,
            SplitFailure::Element(node, fault) => Diagnostic::new(fault.code, fault.message).at(node_span(node)).into(),
            SplitFailure::Unsupported(node, why) => {
                let name = operator_name(&program.graph, node);
                Error::from(Diagnostic::new(Code::TypeMismatch, format!("{name}: {why}")).at(node_span(node)))
            }
        })?;
        let steps = array_program.blocks().iter().flat_map(|block| &block.steps);
        let once: FxHashSet<PartId> =
            steps.filter_map(|step| if let Action::Scalar(part) = step.action { Some(part) } else { None }).collect();
        let played = |(at, part): (usize, &SubPlan)| {
            if once.contains(&PartId(at as u32)) {
                CompiledPart::Once(OncePlan::interpreted(program, &part.plan, options).into())
            } else {
                CompiledPart::Rows(PlanRows::of(program, part.plan.clone(), options).into())
            }
        };
        let parts = array_program.parts().iter().enumerate().map(played).collect();
        let sweeps = SweepRunners::of(&array_program);
        let (limits, sources) = (*options.budget().limits(), options.sources.clone());
        Ok(Compiled { program: array_program, parts, sweeps, limits, sources })
    }

    pub(crate) fn run(
        &self,
        program: &Program,
        inputs: &[Value],
        terms: &RunTerms<'_>,
        memory: &mut ArrayMemory,
        results: &mut Vec<Value>,
    ) -> Result<(), Error> {
        let limits = terms.limits.unwrap_or(&self.limits);
        // A number of bytes cannot exceed the largest address.
        let most = limits.array_bytes.min(isize::MAX as u64) / WIDEST;
        if most_units(inputs) as u64 > most.max(MOST_ELEMENTS as u64) {
            return Err(faults::of_units());
        }
        let (arrays, played) = (&self.program, &self.parts[..]);
        let terms = RunTerms { limits: Some(limits), ..*terms };
        let mut host = ArrayHost { arrays, played, program, terms, limits, scalars: &mut memory.scalars };
        let made = run(&mut host, &self.sweeps, inputs, &mut memory.run, results);
        made.map_err(|error| error.in_sources(self.sources.as_deref().map(Sources::shared)))
    }

    /// The inputs of the array program, each with its type and its promise (a guarantee about its values).
    fn inputs(&self, placed: &RegionModel) -> Box<[Field]> {
        let field =
            |input: &ArrayInput| Field::of_leaf(&placed.model.graph, input.leaf, self.program.qtype(input.value));
        self.program.inputs().iter().map(field).collect()
    }

    /// The array program that was compiled.
    pub(crate) const fn program(&self) -> &ArrayProgram {
        &self.program
    }

    /// The bytes of memory that the array program's plans and their code take.
    pub(crate) fn memory_bytes(&self) -> usize {
        let of_part = |played: &CompiledPart| match played {
            CompiledPart::Rows(rows) => rows.memory_bytes(),
            CompiledPart::Once(plan) => plan.memory_bytes(),
        };
        self.parts.iter().map(of_part).sum::<usize>() + self.sweeps.memory_bytes()
    }
}

impl ArrayModel {
    /// Returns the model's inputs and outputs, each with its type.
    pub(crate) fn fields(&self) -> [Box<[Field]>; 2] {
        [self.inputs.clone(), Field::of_outputs(&self.placed.model)]
    }

    /// Returns the bytes of memory that the model and its code take.
    pub(crate) fn memory_bytes(&self) -> usize {
        let reference = self.reference.get();
        let loops =
            self.loops.get().and_then(Option::as_ref).map_or(0, |loops| size_of::<LoopPlan>() + loops.memory_bytes());
        size_of::<ArrayModel>() + self.compiled.memory_bytes() + loops + reference.map_or(0, Compiled::memory_bytes)
    }

    /// Compiles a program that contains arrays.
    ///
    /// # Errors
    /// If an operator is not supported for arrays, or a limit is exceeded.
    pub fn of(program: Arc<Program>, placed: RegionModel, options: &TimedOptions) -> Result<ArrayModel, Error> {
        let fusion = if options.backend == Backend::Interpreter { Fusion::None } else { Fusion::Full };
        let compiled = Compiled::of(&placed, &program, fusion, None, options)?;
        let mut inputs = compiled.inputs(&placed);
        Field::add_defaults(&mut inputs, &program);
        let (options, reference) = (CompileOptions::clone(options), OnceLock::new());
        let (loops, short_runs) = (OnceLock::new(), AtomicU32::new(0));
        Ok(ArrayModel { compiled, placed, program, options, inputs, loops, short_runs, reference })
    }

    /// The plan that evaluates the model on short lists; `None` if the model has none. The first call compiles the plan.
    #[inline]
    pub(crate) fn loops(&self) -> Option<&LoopPlan> {
        match self.loops.get() {
            Some(made) => made.as_deref(),
            None => self.make_loops(),
        }
    }

    #[cold]
    #[inline(never)]
    fn make_loops(&self) -> Option<&LoopPlan> {
        let made = self.loops.get_or_init(|| {
            // The reference must share nothing with the code that it is compared with, and if vectors are chosen as the player
            // of rows, vectors must be used.
            let is_wanted = self.options.backend != Backend::Interpreter
                && matches!(self.options.row_player, RowPlayer::Best | RowPlayer::Native);
            let (parts, options) = self.parts().ok().filter(|_| is_wanted)?;
            let made = LoopPlan::of(&self.program, &self.compiled.program, &parts, &options);
            made.ok()?.ok().map(Box::new)
        });
        made.as_deref()
    }

    /// The plan for short lists for a run on `inputs`; `None` if the model has no such plan, or if the plan is not compiled yet. It is compiled once
    /// runs on short lists are frequent.
    fn loops_for(&self, inputs: &[Value]) -> Option<&LoopPlan> {
        if let Some(made) = self.loops.get() {
            return made.as_deref();
        }
        let len = |value: &Value| match value {
            Value::Array(_, array) => array.len(),
            list => list.list_len().unwrap_or(0),
        };
        // Most lists of a request have the same length, and count once.
        let is_short = inputs.iter().all(|input| len(input) <= LoopRoom::Arrays.most());
        let at_once = self.options.row_player == RowPlayer::Native;
        let is_due = is_short && (at_once || self.short_runs.fetch_add(1, Ordering::Relaxed) >= RUNS_BEFORE_LOOPS);
        if is_due { self.loops() } else { None }
    }

    /// The models of the program's plans, and the options to compile them.
    fn parts(&self) -> Result<(Vec<TypedModel>, TimedOptions), Error> {
        let (mut parts, options) = (Vec::new(), self.options.restarted());
        Compiled::of(&self.placed, &self.program, Fusion::Full, Some(&mut parts), &options)?;
        Ok((parts, options))
    }

    /// The limits that evaluations of the model must not exceed.
    pub(crate) const fn limits(&self) -> &Limits {
        &self.compiled.limits
    }

    /// The tier of the machine code of the model's plans; `None` if the interpreter runs them. The tier of a plan never changes.
    pub fn tier(&self) -> Option<Tier> {
        (self.options.backend != Backend::Interpreter).then_some(self.options.tier)
    }

    /// The text of the array program, and of the plan for short lists.
    ///
    /// # Errors
    /// If a limit is exceeded.
    pub fn listing(&self) -> Result<Listing, Error> {
        let mut listing = self.compiled.program.listing();
        listing.push(LineKind::Heading, [], SHORT_LISTS);
        listing.append(self.short_lists()?, "");
        Ok(listing)
    }

    fn short_lists(&self) -> Result<Listing, Error> {
        let (parts, options) = self.parts()?;
        loops::listing(&self.program, &self.compiled.program, &parts, &options)
    }

    /// The first lines of the listing: the amount of work in the array program, and whether short lists have a plan of their own.
    ///
    /// # Errors
    /// If a limit is exceeded.
    pub fn counts(&self) -> Result<String, Error> {
        let (counts, short) = (self.compiled.program.counts(), self.short_lists()?.to_string());
        let short = if short.starts_with(loops::NONE) { &*short } else { "one plan with loops over elements\n" };
        Ok(format!("{counts}{SHORT_LISTS} {short}"))
    }

    /// Evaluates the model on one value per input, each of exactly the input's type, in memory that only this model uses. Appends the outputs to
    /// `results`.
    pub(crate) fn evaluate(
        &self,
        inputs: &[Value],
        terms: &RunTerms<'_>,
        memory: &mut ArrayMemory,
        results: &mut Vec<Value>,
    ) -> Result<(), Error> {
        promises::check(&self.program, &self.inputs, inputs, self.options.prepare.budget.limits())?;
        if let Some(loops) = self.loops_for(inputs)
            && loops.run((inputs, LoopRoom::Arrays), terms, &self.compiled.limits, &mut memory.loops, results)?
        {
            return Ok(());
        }
        let failed = match self.compiled.run(&self.program, inputs, terms, memory, results) {
            Err(failed) if self.options.backend != Backend::Interpreter => failed,
            made => return made,
        };
        if failed.fault_kind().is_some_and(FaultKind::is_of_token) {
            return Err(failed);
        }
        let reference = match self.reference.get() {
            Some(reference) => reference,
            // An error is not kept, because a compilation that took too long this time may succeed the next time. Two threads
            // may both compile it.
            None => {
                let options = CompileOptions { backend: Backend::Interpreter, ..self.options.clone() };
                let made = Compiled::of(&self.placed, &self.program, Fusion::None, None, &options.restarted())?;
                self.reference.get_or_init(|| made)
            }
        };
        // The failed run's memory is dropped, because the reference may need as much.
        *memory = ArrayMemory::default();
        let terms = RunTerms { threads: 0, ..*terms };
        reference.run(&self.program, inputs, &terms, &mut ArrayMemory::default(), results)
    }
}

/// The heading of the plan for short lists, in a listing.
const SHORT_LISTS: &str = "Short lists:";

/// The number of runs on short lists by fused loops (sweeps), which need no further compilation, before a plan with
/// loops is compiled.
const RUNS_BEFORE_LOOPS: u32 = 8;

/// The most bytes that an element of an array takes, without the contents of strings.
const WIDEST: u64 = 16;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stages::prepare;
    use cembra_ops::Registry;
    use cembra_runtime::{ArrayKind, Scalar};
    use cembra_value::{Array, Edge, Limits, ScalarValue};

    fn compiled(text: &str) -> (ArrayModel, Arc<Program>) {
        let program = cembra_expr::parse(text, Registry::standard(), &Limits::default()).expect("it is right");
        let program = Arc::new(program);
        let options = CompileOptions::default().started(None, None, Registry::standard());
        let placed = prepare(&program, &options, &mut |_, _| {}).and_then(|made| Ok(made.placed()?));
        let made = ArrayModel::of(program.clone(), placed.expect("it is right"), &options);
        (made.expect("it is right"), program)
    }

    /// The elements of a group of more than 64 elements are added in several sequences (chains). Arrays of more than 64
    /// elements are evaluated by vectorised loops, so this test calls the plan with loops itself, with
    /// `LoopRoom::Items`, which does not limit the number of elements.
    #[test]
    fn loops_fold_long_groups_in_the_order_of_sweeps() {
        let (model, program) = compiled(
            "input x: [f64]; input by: splits; output s = math.sum(x * 1.5, into=by); output m = math.mean(x, into=by)
            output p = math.softmax(x, over=by)",
        );
        let sizes = [65, 0, 255, 64, 1, 1_000];
        let number = |at: i64| Some(ScalarValue::from((at as f64 * 1.7).sin() * f64::from(at as u32 * 29 % 16).exp2()));
        let numbers = Array::from_scalars(Scalar::Float64, (0..sizes.iter().sum()).map(number));
        let inputs = [numbers.into(), Edge::from_sizes(ArrayKind::Dense, sizes).expect("it is right").into()];
        let terms = RunTerms::default();
        let (mut found, mut expected) = (Vec::new(), Vec::new());
        let loops = model.loops().expect("there is a plan");
        assert!(loops.run((&inputs, LoopRoom::Items), &terms, model.limits(), &mut None, &mut found).unwrap());
        model.compiled.run(&program, &inputs, &terms, &mut ArrayMemory::default(), &mut expected).unwrap();
        assert_eq!(found.len(), 3);
        assert!(found.iter().zip(&expected).all(|(found, expected)| found.same(expected)));
    }

    /// Memory and fused loops (sweeps) of another program must be refused, and so must values of other types, because
    /// their bytes would be misread.
    #[test]
    fn what_is_of_another_program_is_refused() {
        let numbers = |scalar: Scalar| {
            let elements = (0..100).map(|at| ScalarValue::from_bits(scalar, at));
            Value::from(Array::from_scalars(scalar, elements))
        };
        let (wide, program) = compiled("input x: [i64]; math.sum(x + 1) + math.max(x)");
        let (other, _) = compiled(
            "input x: [i32]; output s = math.sum(x * 2) + array.count(x == 7)
            output t = [7, 8]",
        );
        let (mut memory, mut made) = (ArrayMemory::default(), Vec::new());
        let mut run = |model: &ArrayModel, input: &Value, memory: &mut ArrayMemory| {
            made.clear();
            let ran =
                model.compiled.run(&program, std::slice::from_ref(input), &RunTerms::default(), memory, &mut made);
            ran.map(|()| made[0].to_string())
        };
        let (large, small) = (numbers(Scalar::Int64), numbers(Scalar::Int32));
        for _ in 0..2 {
            // Both programs use the same memory.
            assert_eq!(run(&wide, &large, &mut memory).unwrap(), "i64?{5149}");
            assert_eq!(run(&other, &small, &mut memory).unwrap(), "i64{9901}");
            assert!(run(&wide, &small, &mut memory).is_err() && run(&other, &large, &mut memory).is_err());
        }
        let mut parts = Vec::new();
        let mut of_other = ArrayHost {
            arrays: &wide.compiled.program,
            played: &wide.compiled.parts,
            program: &program,
            terms: RunTerms::default(),
            limits: &wide.compiled.limits,
            scalars: &mut parts,
        };
        let inputs = std::slice::from_ref(&large);
        let sweeps = &other.compiled.sweeps;
        let ran = super::run(&mut of_other, sweeps, inputs, &mut memory.run, &mut made);
        assert!(ran.is_err());
    }
}
