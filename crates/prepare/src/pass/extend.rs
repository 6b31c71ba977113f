//! Applies the rewrites that a user added, in the order in which they were registered. For each node, the first rewrite that changes it is used. The
//! results of the rewrites are checked.

use super::{check, rewrite::rebuild};
use crate::pass::Options;
use crate::{Rewriter, TypedModel};
use cembra_expr::Program;
use cembra_value::{Code, Diagnostic, Diagnostics, guarded};

pub(super) fn run(model: &mut TypedModel, program: &Program, options: &Options) -> Result<(), Diagnostics> {
    if options.extensions.is_empty() {
        return Ok(());
    }
    rebuild(model, &options.budget, |new, old, id, operands| {
        let node = new.copy_node(old, id, operands);
        for extension in &options.extensions {
            let transform = || Ok(extension.transform(&mut Rewriter::new(new, options.registry, node), node));
            let made = guarded(transform, |words| {
                Err(Diagnostics::from(Diagnostic::new(Code::Extension, format!("an extension panicked: {words}"))))
            })?;
            // A replacement of another type would break users of the node, so it is ignored, and so is a node of
            // another graph.
            if let Some(made) = made.filter(|made| new.contains(*made) && new.qtype(*made) == new.qtype(node)) {
                return Ok(made);
            }
        }
        Ok(node)
    })?;
    model.rewritten = true;
    check::rewritten(model, program, &options.budget)
}
