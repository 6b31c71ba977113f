//! The report of a fuzzer run: statistics that show how much the programs covered, and the mismatch found, if any.

use crate::judge::{Finding, Verdict};
use crate::subject::{Answer, Row};
use cembra::explain::print;
use cembra::native::Tier;
use cembra_expr::{Node, NodeId, Program};
use cembra_ops::{Argument, OpId, OperandType, Registry, ResolvedCall, id};
use cembra_plan::{Action, StepId};
use cembra_runtime::{FaultKind, QType};
use cembra_value::{Limits, ScalarValue, Value};
use std::collections::BTreeMap;
use std::fmt;

/// The statistics of a fuzzer run, and the mismatch found, if any. `Display` prints both and a summary line.
#[derive(Clone, Debug, Default)]
pub struct Report {
    programs: u64,
    rows: u64,
    /// The number of programs on arrays, and the number of those that fail in their first row.
    of_arrays: [u64; 2],
    refused: u64,
    unreadable: u64,
    variants: u64,
    conditionals: u64,
    loops: u64,
    eager: u64,
    shared: u64,
    nodes: u64,
    depths: Vec<u64>,
    operators: BTreeMap<OpId, Use>,
    faults: BTreeMap<&'static str, u64>,
    values: Values,
    mismatch: Option<Mismatch>,
}

/// The number of uses of an operator.
#[derive(Clone, Debug, Default)]
struct Use {
    /// The number of times that generated programs use the operator.
    written: u64,
    /// The number of times that plans, under any options, use each overload of the operator, by the overload's index and whether it is lifted to
    /// arrays or optionals.
    planned: BTreeMap<(u16, bool), u64>,
}

/// Counts of the values of outputs over all rows: all values, and those that are missing, NaN or infinite.
#[derive(Clone, Debug, Default)]
struct Values {
    total: u64,
    missing: u64,
    nan: u64,
    infinite: u64,
}

impl Report {
    /// The number of programs that the run tried.
    #[must_use]
    pub fn programs(&self) -> u64 {
        self.programs
    }

    /// The number of rows that the run evaluated. A row counts once, although every subject evaluates it.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// The number of evaluated rows that ended in a fault.
    #[must_use]
    pub fn faults(&self) -> u64 {
        self.faults.values().sum()
    }

    /// The number of programs on arrays, among the programs that compile.
    #[must_use]
    pub fn of_arrays(&self) -> u64 {
        self.of_arrays[0]
    }

    /// The number of programs on arrays that fail on their first row.
    #[must_use]
    pub fn failing_of_arrays(&self) -> u64 {
        self.of_arrays[1]
    }

    /// The number of invalid programs that all backends rejected, as they must.
    #[must_use]
    pub fn rejected(&self) -> u64 {
        self.refused + self.unreadable
    }

    /// Returns the mismatch that ended the run; `None` if there was none.
    #[must_use]
    pub fn mismatch(&self) -> Option<&Mismatch> {
        self.mismatch.as_ref()
    }

    /// Records `mismatch`, if any, as the one that ended the run.
    pub(crate) fn end(&mut self, mismatch: Option<Mismatch>) {
        self.mismatch = mismatch;
    }

    /// Counts a damaged text that is not a valid program.
    pub(crate) fn note_unreadable(&mut self) {
        self.programs += 1;
        self.unreadable += 1;
    }

    /// Adds a judged program with `rows` rows to the statistics. `varied` is true if the program was also judged under options that differ from the
    /// default.
    pub(crate) fn note(&mut self, program: &Program, verdict: &Verdict, rows: usize, varied: bool) {
        self.programs += 1;
        if verdict.refused {
            self.refused += 1;
            return;
        }
        self.variants += u64::from(varied);
        self.rows += rows as u64;
        self.eager += verdict.eager;
        if verdict.of_arrays {
            self.of_arrays[0] += 1;
            self.of_arrays[1] += u64::from(verdict.answers.first().is_some_and(Result::is_err));
        }
        self.note_program(program);
        for plan in &verdict.plans {
            for at in 0..plan.step_count() {
                let step = plan.step(StepId::from_index(at));
                match step.action {
                    Action::Operator { op, overload, lifted } => {
                        let used = self.operators.entry(op).or_default();
                        *used.planned.entry((overload, lifted)).or_default() += 1;
                    }
                    // Presence is read in place. The type of its operand determines which overload it stands for.
                    Action::Has => {
                        let arg = Argument { qtype: &plan.value(plan.args(step)[0]).qtype, literal: None };
                        if let Ok(ResolvedCall { overload: Some(overload), lifted, .. }) =
                            Registry::standard().get(id::HAS).resolve(&[arg])
                        {
                            let used = self.operators.entry(id::HAS).or_default();
                            *used.planned.entry((overload, lifted)).or_default() += 1;
                        }
                    }
                    Action::Where { .. } => self.conditionals += 1,
                    Action::Loop { .. } => self.loops += 1,
                    _ => {}
                }
            }
        }
        // The last answer is that of the first row, repeated.
        for answer in verdict.answers.iter().take(rows) {
            self.note_answer(answer);
        }
    }

    fn note_program(&mut self, program: &Program) {
        let graph = &program.graph;
        let needed = graph.reachable(program.outputs.iter().map(|output| output.node));
        let mut depths = vec![0_usize; graph.len()];
        let mut uses = vec![0_u32; graph.len()];
        for index in (0..graph.len()).filter(|index| needed[*index]) {
            if let Node::Operator(name, operands) = graph.node(NodeId::from_index(index)) {
                depths[index] = 1 + operands.iter().map(|operand| depths[operand.index()]).max().unwrap_or(0);
                operands.iter().for_each(|operand| uses[operand.index()] += 1);
                if let Some(op) = Registry::standard().find(graph.name(name)) {
                    self.operators.entry(op).or_default().written += 1;
                }
                self.nodes += 1;
            }
        }
        self.shared += (0..graph.len()).filter(|at| depths[*at] > 0 && uses[*at] > 1).count() as u64;
        let depth = program.outputs.iter().map(|output| depths[output.node.index()]).max().unwrap_or(0);
        if self.depths.len() <= depth {
            self.depths.resize(depth + 1, 0);
        }
        self.depths[depth] += 1;
    }

    fn note_answer(&mut self, answer: &Answer) {
        match answer {
            Ok(values) => {
                let mut stack: Vec<&Value> = values.iter().collect();
                while let Some(value) = stack.pop() {
                    match value {
                        Value::Tuple(fields) => stack.extend(fields.iter()),
                        value => self.values.note(value),
                    }
                }
            }
            Err(failure) => *self.faults.entry(failure.code).or_default() += 1,
        }
    }
}

impl Values {
    fn note(&mut self, value: &Value) {
        self.total += 1;
        let float = match value {
            Value::Missing(_) => {
                self.missing += 1;
                return;
            }
            Value::Scalar(v) | Value::Present(v) => match v {
                ScalarValue::Float32(v) => f64::from(*v),
                ScalarValue::Float64(v) | ScalarValue::WeakFloat(v) => *v,
                _ => return,
            },
            _ => return,
        };
        self.nan += u64::from(float.is_nan());
        self.infinite += u64::from(float.is_infinite());
    }
}

impl Report {
    /// Writes the overloads that no plan used, which this run did not test.
    fn untouched(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (op, def) in Registry::standard().iter() {
            let planned = self.operators.get(&op).map(|used| &used.planned);
            for (at, overload) in def.overloads().iter().enumerate() {
                for lifted in [false, true] {
                    let run = planned.is_some_and(|planned| planned.contains_key(&(at as u16, lifted)));
                    if !run && (!lifted || overload.lifted.is_some()) {
                        let arg = |arg: &OperandType| QType::of(arg.scalar, arg.optional || lifted).to_string();
                        let args: Vec<String> = overload.args.iter().map(arg).collect();
                        writeln!(f, "never run: {}({})", def.name, args.join(", "))?;
                    }
                }
            }
        }
        Ok(())
    }
}

fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { 100.0 * part as f64 / whole as f64 }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:<28} {:>9} {:>9}  overloads run", "operator", "written", "planned")?;
        let never = Use::default();
        for (op, def) in Registry::standard().iter() {
            let used = self.operators.get(&op).unwrap_or(&never);
            let planned: u64 = used.planned.values().sum();
            write!(f, "{:<28} {:>9} {:>9}", def.name, used.written, planned)?;
            let all = def.overloads();
            if !all.is_empty() {
                let kernels = |o: &cembra_ops::Overload| 1 + u64::from(o.lifted.is_some());
                write!(f, "  {}/{}", used.planned.len(), all.iter().map(kernels).sum::<u64>())?;
            }
            writeln!(f)?;
        }
        self.untouched(f)?;
        let programs: u64 = self.depths.iter().sum();
        write!(f, "depth:")?;
        for (depth, count) in self.depths.iter().enumerate() {
            write!(f, " {depth}:{count}")?;
        }
        writeln!(f)?;
        writeln!(
            f,
            "per program: {:.1} operators, {:.1} of them shared, {:.1} lazy conditionals, {:.1} loops; {} also under other options",
            self.nodes as f64 / programs.max(1) as f64,
            self.shared as f64 / programs.max(1) as f64,
            self.conditionals as f64 / programs.max(1) as f64,
            self.loops as f64 / programs.max(1) as f64,
            self.variants
        )?;
        let values = &self.values;
        writeln!(
            f,
            "results: {} values, {:.1} % missing, {:.1} % NaN, {:.1} % infinite",
            values.total,
            percent(values.missing, values.total),
            percent(values.nan, values.total),
            percent(values.infinite, values.total)
        )?;
        write!(f, "faults: {:.1} % of rows", percent(self.faults(), self.rows))?;
        for kind in FaultKind::ALL {
            write!(f, ", {} {}", self.faults.get(kind.name()).unwrap_or(&0), kind.name())?;
        }
        writeln!(f, "; {} of what two branches share", self.eager)?;
        let [arrays, failed] = self.of_arrays;
        writeln!(f, "arrays: {arrays} programs, {:.1} % of them fail", percent(failed, arrays))?;
        writeln!(f, "rejected: {} ill-typed programs, {} unreadable texts", self.refused, self.unreadable)?;
        if let Some(mismatch) = &self.mismatch {
            writeln!(f, "\n{mismatch}\n")?;
        }
        write!(
            f,
            "{} programs, {} rows, {} mismatches, {} faults, {} rejected",
            self.programs,
            self.rows,
            u64::from(self.mismatch.is_some()),
            self.faults(),
            self.rejected()
        )
    }
}

/// A law that a program breaks, with the smallest program found that breaks it, and the answers that differ.
#[derive(Clone, Debug)]
pub struct Mismatch {
    pub(crate) program: Program,
    pub(crate) text: Option<String>,
    pub(crate) row: Option<Row>,
    pub(crate) limits: Limits,
    pub(crate) tier: Tier,
    pub(crate) finding: Finding,
    pub(crate) number: u64,
    pub(crate) replay: String,
}

impl Mismatch {
    /// Returns the smallest program found that breaks the law.
    #[must_use]
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// Returns the text of the smallest program.
    #[must_use]
    pub fn model(&self) -> String {
        self.text.clone().unwrap_or_else(|| print(&self.program))
    }

    /// Returns the row on which the program breaks the law; `None` if the law does not concern a row.
    #[must_use]
    pub fn row(&self) -> Option<&Row> {
        self.row.as_ref()
    }

    /// Returns the names of the subjects or checks that differ, each with its answer.
    #[must_use]
    pub fn answers(&self) -> &[(String, String)] {
        &self.finding.said
    }

    /// Returns the command that regenerates and judges the original program. All settings that the command does not name must be those of the run.
    #[must_use]
    pub fn replay(&self) -> String {
        self.replay.clone()
    }
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "mismatch in program {}: {}", self.number, self.finding.law.broken())?;
        if !self.finding.options.is_empty() {
            write!(f, " ({})", self.finding.options)?;
        }
        writeln!(f, "\n\n{}", self.model().trim_end())?;
        if let Some(row) = &self.row {
            writeln!(f, "\nrow: {row}")?;
        }
        let Limits { arena_bytes, loop_iterations, native_steps, .. } = self.limits;
        if self.limits != Limits::default() {
            let limits = format!("arena_bytes {arena_bytes}, loop_iterations {loop_iterations}");
            writeln!(f, "limits: {limits}, native_steps {native_steps}")?;
        }
        if self.tier != Tier::default() {
            writeln!(f, "tier: {:?}", self.tier)?;
        }
        writeln!(f)?;
        for (who, what) in &self.finding.said {
            writeln!(f, "{who}: {what}")?;
        }
        write!(f, "\nreplay: {}", self.replay())
    }
}
