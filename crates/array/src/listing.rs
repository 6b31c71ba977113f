//! The printed form of array programs: a line for each step, then the plans.

use crate::{Action, ArrayProgram, BlockId};
use std::fmt;

impl fmt::Display for ArrayProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, value) in &self.inputs {
            writeln!(f, "%{} = input {name} : {}", value.0, self.qtype(*value))?;
        }
        for (value, literal) in &self.literals {
            writeln!(f, "%{} = {literal} : {}", value.0, self.qtype(*value))?;
        }
        // Blocks stand inside of each other as deep as conditionals nest; they are written one after the other.
        for (at, block) in self.blocks.iter().enumerate() {
            if BlockId(at as u32) != BlockId::TOP {
                writeln!(f, "block {at}:")?;
            }
            for step in &block.steps {
                for (at, out) in step.outs.iter().enumerate() {
                    write!(f, "{}%{}", if at > 0 { ", " } else { "" }, out.0)?;
                }
                match step.action {
                    Action::Scalar(part) => write!(f, " = scalar<{}>", part.0)?,
                    Action::Map(part) => write!(f, " = map<{}>", part.0)?,
                    Action::Operator(op) => write!(f, " = {}", self.registry.get(op).name)?,
                    Action::MakeTuple => f.write_str(" = tuple")?,
                    Action::Field(field) => write!(f, " = field<{field}>")?,
                    Action::Where { on, off } => write!(f, " = where<{}, {}>", on.0, off.0)?,
                }
                f.write_str("(")?;
                for (at, arg) in step.args.iter().enumerate() {
                    write!(f, "{}%{}", if at > 0 { ", " } else { "" }, arg.0)?;
                }
                f.write_str(")")?;
                for (at, out) in step.outs.iter().enumerate() {
                    write!(f, "{}{}", if at > 0 { ", " } else { " : " }, self.qtype(*out))?;
                }
                writeln!(f)?;
            }
            if let Some(result) = block.result {
                writeln!(f, "result %{}", result.0)?;
            }
        }
        for (name, value) in &self.outputs {
            writeln!(f, "{name} = %{}", value.0)?;
        }
        for (at, part) in self.parts.iter().enumerate() {
            let inputs: Vec<String> = part.inputs.iter().map(ToString::to_string).collect();
            writeln!(f, "\nplan {at} of arguments {}:\n{}", inputs.join(", "), part.plan)?;
        }
        Ok(())
    }
}
