//! Prints array programs in the same form as plans: one line per step, below it the plan that the step evaluates, then
//! the blocks of conditionals and loops. The text is only for people and cannot be parsed.

use crate::sweep::{MemoryEstimate, SweepLayout};
use crate::{Action, ArrayProgram, Block, BlockId, Side, Step, ValueId};
use cembra_plan::Plan;
use cembra_runtime::QType;
use std::fmt::{self, Write as _};

/// The indentation of a plan's lines below its step.
const INDENT: &str = "    ";

impl fmt::Display for ArrayProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sweeps = self.sweep_layouts();
        self.write_counts(f, &sweeps)?;
        writeln!(f, "Inputs:")?;
        for input in &self.inputs {
            writeln!(f, "{} = L.{}", self.typed(input.value), input.name)?;
        }
        writeln!(f, "Literals:")?;
        let used = self.used();
        for (value, literal) in self.literals.iter().filter(|(value, _)| used[value.index()]) {
            writeln!(f, "{} = {literal}", self.typed(*value))?;
        }
        // Blocks nest as deep as conditionals and loops do; here they are written one after the other.
        for (at, block) in self.blocks.iter().enumerate() {
            match BlockId(at as u32) {
                BlockId::TOP => writeln!(f, "Steps:")?,
                BlockId(at) => writeln!(f, "Block {at}:")?,
            }
            self.write_block(f, block, &sweeps)?;
        }
        writeln!(f, "Outputs:")?;
        for (name, value) in &self.outputs {
            writeln!(f, "{name} = {}", self.typed(*value))?;
        }
        Ok(())
    }
}

/// A value of a program, printed with its type, as in `f64 %3`.
struct Typed<'p>(&'p QType, ValueId);

impl fmt::Display for Typed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} %{}", self.0, self.1.0)
    }
}

impl ArrayProgram {
    fn typed(&self, value: ValueId) -> Typed<'_> {
        Typed(self.qtype(value), value)
    }

    /// Returns, for each value, whether a step, a block's result or an output uses it. Literals that were copied into
    /// plans are not used.
    fn used(&self) -> Vec<bool> {
        let mut used = vec![false; self.values.len()];
        let args = self.steps().flat_map(|step| &step.args);
        let results = self.blocks.iter().filter_map(|block| block.result.as_ref());
        let outputs = self.outputs.iter().map(|(_, value)| value);
        args.chain(results).chain(outputs).for_each(|value| used[value.index()] = true);
        used
    }

    /// Returns the first lines of the printed form: the numbers of steps and arrays, and the memory that the arrays take.
    #[must_use]
    pub fn counts(&self) -> String {
        let mut counts = String::new();
        // Writing to a string does not fail.
        let _ = self.write_counts(&mut counts, &self.sweep_layouts());
        counts
    }

    fn write_counts(&self, f: &mut impl fmt::Write, sweeps: &[Option<SweepLayout>]) -> fmt::Result {
        let steps = || self.blocks.iter().flat_map(|block| &block.steps);
        let of = |wanted: fn(&Action) -> bool| self.steps().filter(|step| wanted(&step.action)).count();
        let made: usize = steps().map(|step| self.made(step, sweeps).count()).sum();
        // The stages of a sweep that strips cannot hold are run one by one.
        let swept =
            steps().filter(|step| matches!(step.action, Action::Sweep(sweep) if sweeps[sweep.index()].is_some()));
        let only_seen = |step: &Step| self.made(step, &[]).count() - self.made(step, sweeps).count();
        writeln!(
            f,
            "Array program: {} ({}, {} over elements, {} of scalars), {} made, {} only in strips",
            counted(steps().count(), "step"),
            counted(self.sweeps.len(), "sweep"),
            counted(of(|action| matches!(action, Action::Map(_))), "map"),
            counted(of(|action| matches!(action, Action::Scalar(_))), "plan"),
            counted(made, "array"),
            counted(swept.map(only_seen).sum(), "array"),
        )?;
        let written =
            steps().map(|step| self.written(step, sweeps)).fold(MemoryEstimate::default(), MemoryEstimate::and);
        writeln!(
            f,
            "Memory: {} for an element of each array made, {} in {}",
            bytes(written.of_elements + written.of_groups),
            counted(written.strip_bytes, "byte"),
            counted(written.strips, "strip"),
        )
    }

    /// The arrays that a step makes: the outputs of a sweep, or the results of all stages if the sweep has no layout.
    /// Conditionals, loops and tuples make none, because their results were made by other steps; steps of inner blocks are not
    /// counted.
    fn made<'p>(&'p self, step: &'p Step, sweeps: &[Option<SweepLayout>]) -> impl Iterator<Item = ValueId> + use<'p> {
        let (own, stages) = match step.action {
            Action::Where { .. } | Action::Loop { .. } | Action::MakeTuple | Action::Field(_) => (&[][..], &[][..]),
            Action::Sweep(sweep) if !matches!(sweeps.get(sweep.index()), Some(Some(_))) => {
                (&[][..], &self.sweep(sweep).stages[..])
            }
            _ => (&step.outs[..], &[][..]),
        };
        let outs = own.iter().chain(stages.iter().flat_map(|stage| &stage.step.outs));
        outs.copied().filter(|out| matches!(self.qtype(*out), QType::Array(..)))
    }

    /// The memory that a step writes, without the steps of inner blocks.
    fn written(&self, step: &Step, sweeps: &[Option<SweepLayout>]) -> MemoryEstimate {
        if let Action::Sweep(sweep) = step.action
            && let Some(layout) = &sweeps[sweep.index()]
        {
            return layout.written(self);
        }
        let array = |out: ValueId| match self.qtype(out) {
            QType::Array(_, scalar) => MemoryEstimate::of_array(*scalar, !self.is_full(out)),
            _ => MemoryEstimate::default(),
        };
        self.made(step, sweeps).map(array).fold(MemoryEstimate::default(), MemoryEstimate::and)
    }

    /// All steps, including the stages of sweeps.
    fn steps(&self) -> impl Iterator<Item = &Step> {
        let stages = self.sweeps.iter().flat_map(|sweep| &sweep.stages).map(|stage| &stage.step);
        self.blocks.iter().flat_map(|block| &block.steps).chain(stages)
    }

    fn write_block(&self, f: &mut fmt::Formatter<'_>, block: &Block, sweeps: &[Option<SweepLayout>]) -> fmt::Result {
        for step in &block.steps {
            self.write_step(f, step, "", self.written(step, sweeps))?;
            let Action::Sweep(sweep) = step.action else { continue };
            for stage in &self.sweep(sweep).stages {
                let indent = if stage.over == Side::Groups { "    of groups: " } else { INDENT };
                self.write_step(f, &stage.step, indent, MemoryEstimate::default())?;
            }
        }
        match block.result {
            Some(result) => writeln!(f, "result {}", self.typed(result)),
            None => Ok(()),
        }
    }

    fn write_step(
        &self,
        f: &mut fmt::Formatter<'_>,
        step: &Step,
        indent: &str,
        written: MemoryEstimate,
    ) -> fmt::Result {
        f.write_str(indent)?;
        for (at, out) in step.outs.iter().enumerate() {
            write!(f, "{}{}", if at > 0 { ", " } else { "" }, self.typed(*out))?;
        }
        let plan = match step.action {
            Action::Scalar(part) | Action::Map(part) => Some(&self.part(part).plan),
            _ => None,
        };
        match step.action {
            Action::Scalar(_) => f.write_str(" = once")?,
            Action::Map(_) => f.write_str(" = map")?,
            Action::Operator(op) => write!(f, " = {}", self.registry.get(op).name)?,
            Action::Sweep(sweep) => match self.sweep(sweep).groups {
                Some(edge) => write!(f, " = sweep<groups of %{}>", edge.0)?,
                None => f.write_str(" = sweep")?,
            },
            Action::MakeTuple => f.write_str(" = core.make_tuple")?,
            Action::Field(field) => write!(f, " = core.get_nth<{field}>")?,
            Action::Where { on, off } => write!(f, " = where<block {}, block {}>", on.0, off.0)?,
            Action::Loop { round, state } => write!(f, " = loop<block {}, state %{}>", round.0, state.0)?,
        }
        f.write_str("(")?;
        for (at, arg) in step.args.iter().enumerate() {
            write!(f, "{}%{}", if at > 0 { ", " } else { "" }, arg.0)?;
        }
        writeln!(f, "){}", Memory(written))?;
        let indent = if indent.is_empty() { INDENT.to_owned() } else { INDENT.repeat(2) };
        plan.map_or(Ok(()), |plan| write_plan(f, plan, &indent))
    }
}

/// Writes a plan. Its inputs `L.0`, `L.1`.. are the arguments of the step, by position.
fn write_plan(f: &mut fmt::Formatter<'_>, plan: &Plan, indent: &str) -> fmt::Result {
    let mut text = String::new();
    write!(text, "{plan}")?;
    text.lines().try_for_each(|line| writeln!(f, "{indent}{line}"))
}

/// The memory that a step writes, printed after the step; prints nothing if the step writes none.
struct Memory(MemoryEstimate);

impl fmt::Display for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let MemoryEstimate { of_elements, of_groups, strips, strip_bytes } = self.0;
        let parts = [
            (of_elements > 0).then(|| format!("{} an element", bytes(of_elements))),
            (of_groups > 0).then(|| format!("{} a group", bytes(of_groups))),
            (strips > 0).then(|| format!("{} in {}", counted(strip_bytes, "byte"), counted(strips, "strip"))),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        if parts.is_empty() { Ok(()) } else { write!(f, " writes {}", parts.join(", ")) }
    }
}

/// Formats a number of bits in bytes, with a fraction: a presence bit is 0.125 bytes.
fn bytes(bits: u64) -> String {
    format!("{} byte{}", bits as f64 / 8.0, if bits == 8 { "" } else { "s" })
}

fn counted(count: usize, what: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {what}{plural}")
}
