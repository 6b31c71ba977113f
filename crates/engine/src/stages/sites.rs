//! The steps of a model that can fail. For each step, a site has the operator as it was written, its span in the text, and the types that errors of
//! the step name. Executors keep these facts instead of the program and the plan, which are many times as large.

use crate::options::compile_options::TimedOptions;
use crate::stages::faults::{self, FailedOperator};
use cembra_expr::{Calls, Graph, Node, NodeId, Program, Sources, written};
use cembra_plan::{Action, Plan, StepId};
use cembra_runtime::{Context, Excerpt, FaultKind, QType, Scalar, Text};
use cembra_value::Error;
use cembra_value::{ScalarValue, Span, Value};
use std::sync::Arc;

/// A step of a plan that can fail, with the facts that its errors name: operator, span in the text, and types.
#[derive(Clone, Debug)]
pub struct Site {
    /// The index of the step in the plan.
    pub step: StepId,
    /// The name of the operator, as it was written.
    pub operator: Arc<str>,
    /// The span of the operator in the text of the model; `None` if there is no text.
    pub span: Option<Span>,
    origin: NodeId,
    /// The scalar type of the operator's first argument; `None` if this argument is not a scalar. Faults record the bits of this argument.
    pub(crate) operand: Option<Scalar>,
    /// The type of the result of the step.
    pub result: QType,
}

/// The steps of a plan that can fail, in the order of the plan, each with its operator, span and types.
#[derive(Clone, Debug)]
pub struct Sites {
    sites: Box<[Site]>,
    /// The source texts that the spans refer to; `None` if there are none.
    sources: Option<Arc<Sources>>,
    /// The calls of functions that contain the steps.
    calls: Option<Arc<Calls>>,
}

impl Sites {
    /// Finds the steps of `plan` that can fail. The plan must be made from `program`.
    #[must_use]
    pub fn of(plan: &Plan, program: &Program, options: &TimedOptions) -> Sites {
        let fails = |step: &StepId| match plan.step(*step).action {
            Action::Operator { op, overload, .. } => plan.registry().effects(op, overload).may_stop(),
            Action::Loop { .. } => true,
            Action::MakeTuple | Action::Field(_) | Action::Has | Action::Where { .. } => false,
        };
        let site = |id: StepId| {
            let step = plan.step(id);
            let operands = if matches!(step.action, Action::Operator { .. }) { plan.args(step) } else { &[] };
            Site {
                step: id,
                operator: operator_name(&program.graph, step.origin),
                span: program.graph.span(step.origin),
                origin: step.origin,
                operand: operands.first().and_then(|operand| plan.value(*operand).qtype.scalar()),
                result: plan.value(step.out).qtype.clone(),
            }
        };
        let sites = (0..plan.step_count()).map(StepId::from_index).filter(fails).map(site).collect();
        Sites { sites, sources: options.sources.clone(), calls: program.graph.calls().cloned() }
    }

    /// Returns all steps that can fail, in the order of the plan.
    #[must_use]
    pub fn all(&self) -> &[Site] {
        &self.sites
    }

    fn find(&self, step: StepId) -> Option<&Site> {
        let at = self.sites.binary_search_by_key(&step.index(), |site| site.step.index()).ok()?;
        self.sites.get(at)
    }

    /// Returns the error for the fault that an evaluation recorded in `context`.
    #[cold]
    pub(crate) fn error(&self, context: &Context) -> Error {
        let record = context.record();
        let kind = FaultKind::from_number(record.kind).unwrap_or(FaultKind::Assertion);
        if kind.is_of_evaluation() {
            return Error::of_evaluation(kind);
        }
        let site = self.find(StepId::from_index(record.site as usize));
        let operator = site.map_or("", |site| &site.operator).to_owned();
        let operand =
            site.and_then(|site| ScalarValue::from_bits(site.operand?, record.operands[0])).map(Value::Scalar);
        let text = match kind {
            // SAFETY: STRING-VIEW: the message is a view of an input or a literal of the call that just stopped, or of the reason that the context
            // keeps.
            FaultKind::Assertion | FaultKind::Invalid | FaultKind::Parse => unsafe {
                Text::from_raw(record.operands[0] as *const u8, record.operands[1] as usize).as_str()
            },
            _ => "",
        };
        let result = site.map_or(&QType::UNIT, |site| &site.result);
        let span = site.and_then(|site| site.span);
        let calls = site.zip(self.calls.as_ref()).map(|(site, calls)| calls.leading_to(site.origin, &[], span));
        let failed = FailedOperator { name: operator, span };
        let fault = faults::of_operator(kind, failed, operand, result, text).calls(calls.unwrap_or_default());
        let fault = fault.code(context.reason_code());
        Error::from(fault).in_sources(self.sources.as_deref().map(Sources::shared))
    }

    /// The bytes of memory that the sites take, without names and texts, which the program and the model own.
    pub(crate) fn memory_bytes(&self) -> usize {
        size_of_val(&*self.sites)
    }
}

/// The name of the operator that the node `node` of `graph` applies, as it was written.
pub fn operator_name(graph: &Graph, node: NodeId) -> Arc<str> {
    match graph.node(node) {
        // An operator of the text language only has the name that the text has.
        Node::Operator(name, _) => match written(graph.name(name)) {
            Some(text) => text.into(),
            None => graph.name(name).clone(),
        },
        Node::Leaf(name) | Node::Placeholder(name) => graph.name(name).clone(),
        Node::Literal(value) => Excerpt::of_value(value).into(),
    }
}
