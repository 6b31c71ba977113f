//! Checks of an array program: values are computed before they are used, plans and steps agree on types, and a value
//! that a sweep (a fused loop over elements) computes only for its own stages is not used elsewhere.

use crate::{Action, ArrayProgram, BlockId, Side, Stage, Step, SubPlan, ValueId};
use cembra_runtime::QType;
use rustc_hash::FxHashSet;

/// An inconsistency in an array program. The number in a variant is the index of the value; for [`Flaw::Result`], the
/// index of the block.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Flaw {
    /// A step uses this value, but no earlier step computes it.
    #[error("%{0} is used before it is computed")]
    Unmade(u32),
    /// Two steps compute this value.
    #[error("%{0} is computed twice")]
    MadeTwice(u32),
    /// A plan or a loop's block disagrees with its step on the type of this value.
    #[error("the plan or the loop body for %{0} has an operand or a result of another type")]
    Type(u32),
    /// The step that runs a sweep (a fused loop over elements) does not list this value among its operands although the sweep
    /// reads it. Or the step lists the value as a result although no stage computes it.
    #[error("a fused loop that reads or computes %{0} does not list it exactly")]
    Sweep(u32),
    /// The stage that computes this value goes over groups, although its sweep (fused loop) does not keep groups whole:
    /// it may divide a group between two strips (blocks of elements).
    #[error("%{0} is computed from groups, but its fused loop may divide a group between two blocks")]
    Groups(u32),
    /// The block, which is not the top block, has no result.
    #[error("block {0} has no result")]
    Result(u32),
}

/// The state of a check: the program, and for each value whether it is available so far.
struct Verifier<'p> {
    program: &'p ArrayProgram,
    made: Vec<bool>,
}

/// Checks that an array program is consistent.
///
/// # Errors
/// If the program has an inconsistency. The first one is returned.
pub fn verify(program: &ArrayProgram) -> Result<(), Flaw> {
    let mut verifier = Verifier { program, made: vec![false; program.values.len()] };
    let given = program.inputs.iter().map(|input| &input.value).chain(program.literals.iter().map(|(value, _)| value));
    given.copied().try_for_each(|value| verifier.make(value))?;
    // Blocks nest as deep as conditionals and loops do: this is the stack of open blocks, with the next step and the values made
    // so far.
    let mut open: Vec<(BlockId, usize, Vec<ValueId>)> = vec![(BlockId::TOP, 0, Vec::new())];
    while let Some((block, next, _)) = open.last_mut() {
        let block = *block;
        let Some(step) = program.block(block).steps.get(*next) else {
            let made = open.pop().map(|(.., made)| made).unwrap_or_default();
            if block != BlockId::TOP {
                let result = program.block(block).result.ok_or(Flaw::Result(block.0))?;
                verifier.used(result)?;
                // Values of a block cannot be used outside of it.
                made.into_iter().for_each(|value| verifier.made[value.index()] = false);
            }
            continue;
        };
        *next += 1;
        step.args.iter().try_for_each(|arg| verifier.used(*arg))?;
        verifier.step(step)?;
        step.outs.iter().try_for_each(|out| verifier.make(*out))?;
        if let Some((.., made)) = open.last_mut() {
            made.extend(&step.outs);
        }
        // The value of a conditional or a loop is made here, before its blocks are checked. No block can use it.
        match step.action {
            Action::Where { on, off } => open.extend([(off, 0, Vec::new()), (on, 0, Vec::new())]),
            Action::Loop { round, state } => {
                verifier.make(state)?;
                open.push((round, 0, vec![state]));
            }
            _ => {}
        }
    }
    program.outputs.iter().try_for_each(|(_, value)| verifier.used(*value))
}

impl Verifier<'_> {
    fn make(&mut self, value: ValueId) -> Result<(), Flaw> {
        if std::mem::replace(&mut self.made[value.index()], true) {
            return Err(Flaw::MadeTwice(value.0));
        }
        Ok(())
    }

    fn used(&self, value: ValueId) -> Result<(), Flaw> {
        if self.made[value.index()] { Ok(()) } else { Err(Flaw::Unmade(value.0)) }
    }

    fn step(&mut self, step: &Step) -> Result<(), Flaw> {
        match step.action {
            Action::Map(part) | Action::Scalar(part) => self.plan(step, self.program.part(part)),
            Action::Sweep(sweep) => {
                let sweep = self.program.sweep(sweep);
                sweep.groups.iter().try_for_each(|edge| self.used(*edge))?;
                self.stages(step, &sweep.stages, sweep.groups.is_some())
            }
            Action::Loop { round, state } => self.state(step, round, state),
            Action::Operator(_) | Action::MakeTuple | Action::Field(_) | Action::Where { .. } => Ok(()),
        }
    }

    /// Checks that a loop's state always has one type, and that a round's result is the next state and a mask.
    fn state(&self, step: &Step, round: BlockId, state: ValueId) -> Result<(), Flaw> {
        let qtype = self.program.qtype(state);
        let is_state = |value: &ValueId| self.program.qtype(*value) == qtype;
        let is_end = |value: &ValueId| match self.program.qtype(*value) {
            QType::Tuple(fields) => matches!(&fields[..], [next, QType::MASK] if next == qtype),
            _ => false,
        };
        let result = self.program.block(round).result.ok_or(Flaw::Result(round.0))?;
        let mut ends = step.outs.iter().chain([&result]);
        if step.args.iter().all(is_state) && ends.all(is_end) { Ok(()) } else { Err(Flaw::Type(state.0)) }
    }

    /// Checks that the types of a plan's inputs and outputs are the element types of the step's arguments and results.
    /// The plan may take elements that are not optional only from full arrays (without missing elements).
    fn plan(&self, step: &Step, part: &SubPlan) -> Result<(), Flaw> {
        let fits = |value: ValueId, of_plan: &QType| {
            let found = self.program.qtype(value);
            match (found, of_plan) {
                (QType::Array(_, scalar), QType::Scalar(of_plan) | QType::Optional(of_plan)) => scalar == of_plan,
                _ => found == of_plan,
            }
        };
        for (input, at) in part.plan.inputs().iter().zip(&part.inputs) {
            let value = *step.args.get(*at).ok_or(Flaw::Type(u32::MAX))?;
            let of_plan = &part.plan.value(input.value).qtype;
            let is_sure = of_plan.is_optional() || !matches!(self.program.qtype(value), QType::Array(..));
            if !fits(value, of_plan) || !(is_sure || self.program.is_full(value)) {
                return Err(Flaw::Type(value.0));
            }
        }
        for (output, out) in part.plan.outputs().iter().zip(&step.outs) {
            if !fits(*out, &part.plan.value(output.value).qtype) {
                return Err(Flaw::Type(out.0));
            }
        }
        Ok(())
    }

    fn stages(&mut self, sweep: &Step, stages: &[Stage], has_groups: bool) -> Result<(), Flaw> {
        let args: FxHashSet<ValueId> = sweep.args.iter().copied().collect();
        let mut inside: FxHashSet<ValueId> = FxHashSet::default();
        for Stage { step, over } in stages {
            let first = step.outs.first().map_or(u32::MAX, |out| out.0);
            if *over == Side::Groups && !has_groups {
                return Err(Flaw::Groups(first));
            }
            for arg in &step.args {
                self.used(*arg)?;
                if !inside.contains(arg) && !args.contains(arg) {
                    return Err(Flaw::Sweep(first));
                }
            }
            self.step(step)?;
            for out in &step.outs {
                self.make(*out)?;
                inside.insert(*out);
            }
        }
        // The outputs of the sweep are made again as values of its own step; its other values are no longer available.
        if let Some(out) = sweep.outs.iter().find(|out| !inside.contains(out)) {
            return Err(Flaw::Sweep(out.0));
        }
        inside.into_iter().for_each(|value| self.made[value.index()] = false);
        Ok(())
    }
}
