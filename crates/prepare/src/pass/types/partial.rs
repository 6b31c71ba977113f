//! Finds the types of the nodes of a program that may have errors, for editors. Nodes that cannot be typed, and the
//! nodes that use them, have no type here; the typing pass reports their problems.

use super::{Typer, find_leaves, model_of_leaves, scalar_literal};
use crate::pass::Options;
use crate::pass::types::passed::EnvironmentId;
use cembra_expr::{NodeId, Program};
use cembra_runtime::QType;

/// Returns the type of each expression node, by index; `None` for nodes that depend on a parameter, and for nodes with errors. Nodes that no output
/// needs have types too. If a limit is exceeded, the remaining nodes have no types.
pub fn node_types(
    program: &Program,
    leaf_type: &dyn Fn(&str) -> Option<QType>,
    options: &Options,
) -> Vec<Option<QType>> {
    let graph = &program.graph;
    let mut types = vec![None; graph.len()];
    let (leaves, _) = find_leaves(program, leaf_type, options.budget.limits());
    let mut model = model_of_leaves(leaves, program, options);
    let Ok(mut typer) = Typer::new(&model, program, options) else { return types };
    let needed = typer.needed((0..graph.len()).map(NodeId::from_index));
    for (at, needed) in needed.into_iter().enumerate() {
        if options.budget.check_visit(at).is_err() {
            break;
        }
        let node = NodeId::from_index(at);
        if let Some((_, qtype)) = scalar_literal(graph, node) {
            types[at] = Some(qtype.clone());
        } else if needed {
            let typed = typer.node(&mut model, node, EnvironmentId::ROOT);
            typer.problems.clear();
            typer.typed[at] = Some(typed);
            if let Some(id) = typed {
                if typer.admit(&model, id).is_err() {
                    break;
                }
                types[at] = Some(model.graph.qtype(id).clone());
            }
        }
    }
    types
}
