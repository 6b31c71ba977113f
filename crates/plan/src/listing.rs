//! Prints a plan as text (a listing) in the documented format: inputs, literals, the flat program with its jumps, and
//! outputs.

use crate::{Action, Linear, Plan, ValueId};
use cembra_runtime::{QType, TypedSlot};
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
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "Frame: {} bytes", self.layout.size())?;
        writeln!(f, "Inputs:")?;
        for input in &self.inputs {
            writeln!(f, "{} = L.{}", self.slot(input.value), input.name)?;
        }
        writeln!(f, "Init operations:")?;
        for (id, value) in &self.literals {
            writeln!(f, "{} = {value}", self.slot(*id))?;
        }
        writeln!(f, "Eval operations:")?;
        for (at, instruction) in self.flatten().into_iter().enumerate() {
            let after = at as u32 + 1;
            match instruction {
                Linear::Step(id) => {
                    let step = self.step(id);
                    let name = match step.action {
                        Action::Operator { op, .. } => self.registry.get(op).name,
                        _ => "core.make_tuple",
                    };
                    writeln!(f, "{} = {name}({})", self.slot(step.out), self.list(self.args(step)))?;
                }
                Linear::Copy { from, to } => writeln!(f, "{} = core._copy({})", self.slot(to), self.slot(from))?,
                Linear::JumpIfNot { condition, target } => {
                    writeln!(f, "jump_if_not<+{}>({})", target - after, self.slot(condition))?;
                }
                Linear::Repeat { step, target } => {
                    let mask = TypedSlot { offset: self.repeat_slot(self.step(step).out), qtype: QType::MASK };
                    writeln!(f, "jump_if<-{}>({mask})", after - target)?;
                }
                Linear::Jump { target } => writeln!(f, "jump<+{}>()", target - after)?,
            }
        }
        writeln!(f, "Outputs:")?;
        for output in &self.outputs {
            writeln!(f, "{} = {}", output.name, self.slot(output.value))?;
        }
        Ok(())
    }
}
