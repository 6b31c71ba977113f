//! Prints array programs in the same form as plans: one line per step, below it the plan that the step evaluates, then
//! the blocks of conditionals and loops. The text is only for people and cannot be parsed.

use crate::sweep::{MemoryEstimate, SweepLayout};
use crate::{Action, ArrayProgram, Block, BlockId, Side, Step, ValueId};
use cembra_runtime::{LineKind, Listing, QType};
use std::fmt;

/// The indentation of a plan's lines below its step.
const INDENT: &str = "    ";

impl fmt::Display for ArrayProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.listing().fmt(f)
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

    /// Lists the program: counts, inputs, literals, the steps of each block with the plans that they evaluate, and outputs. Each line of the listing
    /// has origins: the indices of the expression nodes that the line comes from.
    #[must_use]
    pub fn listing(&self) -> Listing {
        let sweeps = self.sweep_layouts();
        let mut listing = self.counts_with(&sweeps);
        listing.push(LineKind::Heading, [], "Inputs:");
        for input in &self.inputs {
            listing.push(LineKind::Input, [], format_args!("{} = L.{}", self.typed(input.value), input.name));
        }
        listing.push(LineKind::Heading, [], "Literals:");
        let used = self.used();
        for (value, literal) in self.literals.iter().filter(|(value, _)| used[value.index()]) {
            listing.push(LineKind::Literal, [], format_args!("{} = {literal}", self.typed(*value)));
        }
        // Blocks nest as deep as conditionals and loops do; here they are listed one after the other.
        for (at, block) in self.blocks.iter().enumerate() {
            match BlockId(at as u32) {
                BlockId::TOP => listing.push(LineKind::Heading, [], "Steps:"),
                BlockId(at) => listing.push(LineKind::Heading, [], format_args!("Block {at}:")),
            }
            self.list_block(&mut listing, block, &sweeps);
        }
        listing.push(LineKind::Heading, [], "Outputs:");
        for (name, value) in &self.outputs {
            listing.push(LineKind::Output, [], format_args!("{name} = {}", self.typed(*value)));
        }
        listing
    }

    /// Returns the first lines of the listing: the numbers of steps and arrays, and the memory that the arrays take.
    #[must_use]
    pub fn counts(&self) -> Listing {
        self.counts_with(&self.sweep_layouts())
    }

    fn counts_with(&self, sweeps: &[Option<SweepLayout>]) -> Listing {
        let mut listing = Listing::new();
        let steps = || self.blocks.iter().flat_map(|block| &block.steps);
        let of = |wanted: fn(&Action) -> bool| self.steps().filter(|step| wanted(&step.action)).count();
        let made: usize = steps().map(|step| self.made(step, sweeps).count()).sum();
        // The stages of a sweep that strips cannot hold are run one by one.
        let swept =
            steps().filter(|step| matches!(step.action, Action::Sweep(sweep) if sweeps[sweep.index()].is_some()));
        let only_seen = |step: &Step| self.made(step, &[]).count() - self.made(step, sweeps).count();
        let counts = format_args!(
            "Array program: {} ({}, {} over elements, {} of scalars), {} stored, {} kept only in blocks of elements",
            counted(steps().count(), "step"),
            counted(self.sweeps.len(), "sweep"),
            counted(of(|action| matches!(action, Action::Map(_))), "map"),
            counted(of(|action| matches!(action, Action::Scalar(_))), "plan"),
            counted(made, "array"),
            counted(swept.map(only_seen).sum(), "array"),
        );
        listing.push(LineKind::Heading, [], counts);
        let written =
            steps().map(|step| self.written(step, sweeps)).fold(MemoryEstimate::default(), MemoryEstimate::and);
        let memory = format_args!(
            "Memory: {} per element of the stored arrays, {} in {}",
            bytes(written.of_elements + written.of_groups),
            counted(written.strip_bytes, "byte"),
            counted(written.strips, "block"),
        );
        listing.push(LineKind::Heading, [], memory);
        listing
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

    fn list_block(&self, listing: &mut Listing, block: &Block, sweeps: &[Option<SweepLayout>]) {
        for step in &block.steps {
            self.list_step(listing, step, "", self.written(step, sweeps));
            let Action::Sweep(sweep) = step.action else { continue };
            for stage in &self.sweep(sweep).stages {
                let indent = if stage.over == Side::Groups { "    of groups: " } else { INDENT };
                self.list_step(listing, &stage.step, indent, MemoryEstimate::default());
            }
        }
        if let Some(result) = block.result {
            listing.push(LineKind::Output, [], format_args!("result {}", self.typed(result)));
        }
    }

    fn list_step(&self, listing: &mut Listing, step: &Step, indent: &str, written: MemoryEstimate) {
        let outs: Vec<String> = step.outs.iter().map(|out| self.typed(*out).to_string()).collect();
        let args: Vec<String> = step.args.iter().map(|arg| format!("%{}", arg.0)).collect();
        let plan = match step.action {
            Action::Scalar(part) | Action::Map(part) => Some(&self.part(part).plan),
            _ => None,
        };
        let action = match step.action {
            Action::Scalar(_) => "once".to_owned(),
            Action::Map(_) => "map".to_owned(),
            Action::Operator(op) => self.registry.get(op).name.to_owned(),
            Action::Sweep(sweep) => match self.sweep(sweep).groups {
                Some(edge) => format!("sweep<groups of %{}>", edge.0),
                None => "sweep".to_owned(),
            },
            Action::MakeTuple => "core.make_tuple".to_owned(),
            Action::Field(field) => format!("core.get_nth<{field}>"),
            Action::Where { on, off } => format!("where<block {}, block {}>", on.0, off.0),
            Action::Loop { round, state } => format!("loop<block {}, state %{}>", round.0, state.0),
        };
        let (outs, args, memory) = (outs.join(", "), args.join(", "), Memory(written));
        let text = format_args!("{indent}{outs} = {action}({args}){memory}");
        listing.push(LineKind::Step, [step.origin.index() as u32], text);
        if let Some(plan) = plan {
            // The plan's inputs `L.0`, `L.1`.. are the arguments of the step, by position.
            listing.append(plan.listing(), &if indent.is_empty() { INDENT.to_owned() } else { INDENT.repeat(2) });
        }
    }
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
