//! Lists a plan in the documented format: inputs, literals, the flat program with its jumps, and outputs. The origins of the lines are the nodes of the
//! model's expression.

use crate::{Action, Linear, Plan, StepId, ValueId};
use cembra_runtime::{LineKind, Listing, QType, TypedSlot};
use std::fmt;

impl Plan {
    /// The slot of the value `value`, with its type.
    #[must_use]
    pub fn slot(&self, value: ValueId) -> TypedSlot {
        let value = self.value(value);
        TypedSlot { offset: value.slot, qtype: value.qtype.clone() }
    }

    fn list(&self, values: &[ValueId]) -> String {
        values.iter().map(|v| self.slot(*v).to_string()).collect::<Vec<_>>().join(", ")
    }

    /// The index of the expression's node that the step was made for.
    #[must_use]
    pub fn origin(&self, step: StepId) -> u32 {
        self.step(step).origin.index() as u32
    }

    /// Lists the plan. The origins of a line are the indices of expression nodes.
    #[must_use]
    pub fn listing(&self) -> Listing {
        let mut listing = Listing::new();
        listing.push(LineKind::Heading, [], format_args!("Frame: {} bytes", self.layout.size()));
        listing.push(LineKind::Heading, [], "Inputs:");
        for input in &self.inputs {
            listing.push(LineKind::Input, [], format_args!("{} = L.{}", self.slot(input.value), input.name));
        }
        listing.push(LineKind::Heading, [], "Init operations:");
        for (id, value) in &self.literals {
            listing.push(LineKind::Literal, [], format_args!("{} = {value}", self.slot(*id)));
        }
        listing.push(LineKind::Heading, [], "Eval operations:");
        for (at, instruction) in self.flatten().into_iter().enumerate() {
            let after = at as u32 + 1;
            match instruction {
                Linear::Step(id) => {
                    let step = self.step(id);
                    let name = match step.action {
                        Action::Operator { op, .. } => self.registry.get(op).name,
                        _ => "core.make_tuple",
                    };
                    let text = format_args!("{} = {name}({})", self.slot(step.out), self.list(self.args(step)));
                    listing.push(LineKind::Step, [self.origin(id)], text);
                }
                Linear::Copy { from, to, step } => {
                    let text = format_args!("{} = core._copy({})", self.slot(to), self.slot(from));
                    listing.push(LineKind::Step, [self.origin(step)], text);
                }
                Linear::JumpIfNot { condition, target, step } => {
                    let text = format_args!("jump_if_not<+{}>({})", target - after, self.slot(condition));
                    listing.push(LineKind::Jump, [self.origin(step)], text);
                }
                Linear::Repeat { step, target } => {
                    let mask = TypedSlot { offset: self.repeat_slot(self.step(step).out), qtype: QType::MASK };
                    let text = format_args!("jump_if<-{}>({mask})", after - target);
                    listing.push(LineKind::Jump, [self.origin(step)], text);
                }
                Linear::Jump { target, step } => {
                    listing.push(LineKind::Jump, [self.origin(step)], format_args!("jump<+{}>()", target - after));
                }
            }
        }
        listing.push(LineKind::Heading, [], "Outputs:");
        for output in &self.outputs {
            listing.push(LineKind::Output, [], format_args!("{} = {}", output.name, self.slot(output.value)));
        }
        listing
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.listing().fmt(f)
    }
}
