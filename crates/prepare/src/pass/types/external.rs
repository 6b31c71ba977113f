//! Types the calls of operators that a program declares and the host application provides. Arguments are cast to the declared types, like arguments
//! of functions. The host's operator must have these types. If the host has no such operator, the call is typed, but cannot be evaluated.

use super::Typer;
use super::instance::{Instance, arg_of, exceeded, id_of};
use crate::pass::Options;
use crate::{Id, TypedModel};
use cembra_expr::{Extern, NameId, NodeId, Program};
use cembra_ops::{Argument, Expansion, ExpansionError, OpId, Registry, TypeFault, id};
use cembra_value::{Code, Diagnostic, Value};
use rustc_hash::FxHashMap;

/// The operators that a program declares, by their names in the program's graph.
pub(super) type Externs<'a> = FxHashMap<NameId, &'a Extern>;

/// Collects the operators that a program declares. Reports each declaration that does not match the host application's operator.
pub(super) fn externs<'a>(program: &'a Program, options: &Options, problems: &mut Vec<Diagnostic>) -> Externs<'a> {
    let most = options.budget.limits().problems.max(1);
    let mut found = Externs::default();
    for declared in &program.externs {
        if let Some(fault) = misfit(declared, options.registry)
            && problems.len() < most
        {
            problems.push(fault);
        }
        // The graph may have no name for an operator that is not called.
        if let Some(name) = program.graph.find_name(&declared.name) {
            found.insert(name, declared);
        }
    }
    found
}

/// The problem of a declaration that does not match the host's operator; `None` if it matches, or if the host has no operator of this name.
fn misfit(declared: &Extern, registry: &Registry) -> Option<Diagnostic> {
    let op = registry.find(&declared.name)?;
    let args: Vec<Argument<'_>> = declared.parameters.iter().map(|qtype| Argument { qtype, literal: None }).collect();
    let name = &declared.name;
    let problem = match registry.get(op).resolve(&args) {
        Ok(resolved) if resolved.signature.ret == declared.result => return None,
        Ok(resolved) => {
            let (given, found) = (declared.spelled_types(), cembra_expr::print_type(&resolved.signature.ret));
            Diagnostic::new(
                Code::Extern,
                format!("`{name}` is declared `{given}`, but the host's operator results in {found}"),
            )
        }
        Err(fault) => {
            let given = declared.spelled_types();
            let message = format!("`{name}` is declared `{given}`, but the host's operator differs: {}", fault.message);
            Diagnostic::new(Code::Extern, message)
        }
    };
    Some(problem.at(declared.span).hint("declare the operator with the types of the host's operator"))
}

impl Typer<'_> {
    /// Types a call of a declared operator. `op` is the host application's operator of this name; `None` if the host has none.
    pub(super) fn external(
        &mut self,
        model: &mut TypedModel,
        node: NodeId,
        declared: &Extern,
        op: Option<OpId>,
        operands: &[Id],
    ) -> Option<Id> {
        model.graph.set_distinct(false);
        let types: Vec<_> = operands.iter().map(|operand| model.graph.qtype(*operand).clone()).collect();
        let made = self.external_call(model, node, declared, op, operands);
        match made {
            Ok(made) => Some(made),
            Err(ExpansionError::Fault(fault)) => {
                self.fault(node, &fault, &types, false);
                None
            }
            Err(ExpansionError::Reported) => None,
        }
    }

    fn external_call(
        &mut self,
        model: &mut TypedModel,
        node: NodeId,
        declared: &Extern,
        op: Option<OpId>,
        operands: &[Id],
    ) -> Result<Id, ExpansionError> {
        let Extern { name, parameters, result, .. } = declared;
        if operands.len() != parameters.len() {
            let message = format!("{name} takes {} arguments, found {}", parameters.len(), operands.len());
            return Err(TypeFault { code: Code::Arguments, ..TypeFault::mismatch(message, None) }.into());
        }
        self.spend(operands.len()).map_err(exceeded)?;
        let mut instance = Instance { typer: self, model, node };
        let mut args = Vec::with_capacity(2 + operands.len());
        if op.is_none() {
            args.push(instance.literal(Value::text(&**name)));
            args.push(instance.literal(Value::Type(result.clone())));
        }
        for (at, (operand, wanted)) in operands.iter().zip(parameters).enumerate() {
            let wanted = instance.literal(Value::Type(wanted.clone()));
            let arg = instance.apply_operator(id::DECLARED, &[arg_of(*operand), wanted]);
            args.push(arg.map_err(|stop| match stop {
                ExpansionError::Fault(fault) => ExpansionError::Fault(TypeFault { operand: Some(at), ..fault }),
                ExpansionError::Reported => ExpansionError::Reported,
            })?);
        }
        instance.apply_operator(op.unwrap_or(id::EXTERN), &args).map(id_of)
    }
}
