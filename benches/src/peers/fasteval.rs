//! fasteval: compiled expressions over variables that it reads through pointers, which is how it is fastest.

use super::{Peer, PeerError, infix};
use fasteval::{Compiler, EmptyNamespace, Evaler, Instruction, Parser, Slab};
use std::cell::Cell;

pub(super) struct Fasteval {
    expressions: Vec<(Slab, Instruction)>,
    /// What the expressions point to.
    variables: Box<[Cell<f64>]>,
}

impl Peer for Fasteval {
    const NAME: &'static str = "fasteval";
    const MISSING: Option<&'static str> = None;

    fn operator(name: &str, operands: &[&str]) -> Option<String> {
        Some(match (name, operands) {
            // There is no condition. These operators give the deciding operand; the workload's arms are never 0.
            ("core._where" | "core.where", [condition, yes, no]) => format!("(({condition} && {yes}) || {no})"),
            _ => return infix(name, operands),
        })
    }

    fn compile(texts: &[String], names: &'static [&'static str]) -> Result<Self, PeerError> {
        let variables: Box<[Cell<f64>]> = names.iter().map(|_| Cell::new(0.0)).collect();
        let mut expressions = Vec::new();
        for text in texts {
            let mut slab = Slab::with_capacity(text.len());
            for (name, variable) in names.iter().zip(&variables) {
                // SAFETY: PEER-VARIABLE: the variables are on the heap and live as long as the expressions.
                unsafe { slab.ps.add_unsafe_var((*name).to_owned(), &*variable.as_ptr()) };
            }
            let parser = Parser { expr_len_limit: usize::MAX, expr_depth_limit: usize::MAX };
            let parsed = parser.parse(text, &mut slab.ps)?;
            let compiled = parsed.from(&slab.ps).compile(&slab.ps, &mut slab.cs);
            expressions.push((slab, compiled));
        }
        Ok(Fasteval { expressions, variables })
    }

    fn run(&mut self, inputs: &[Option<f64>], outputs: &mut Vec<Option<f64>>) -> Result<(), PeerError> {
        for (variable, input) in self.variables.iter().zip(inputs) {
            variable.set(input.unwrap_or(f64::NAN));
        }
        outputs.clear();
        for (slab, expression) in &self.expressions {
            outputs.push(Some(expression.eval(slab, &mut EmptyNamespace)?));
        }
        Ok(())
    }
}
