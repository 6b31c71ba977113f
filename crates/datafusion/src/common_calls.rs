//! A rule for physical plans that evaluates a call once if a query reads several of its fields. DataFusion finds such common calls itself, but its
//! rules that move accesses to fields towards the data write the call again for each field.

use crate::function::CembraFunction;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::functions::core::getfield::GetFieldFunc;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::projection::ProjectionExpr;
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::projection::ProjectionExec;
use std::any::Any;
use std::sync::Arc;

/// Evaluates a call whose fields are several columns of a projection once, in a projection below it.
#[derive(Debug)]
pub(crate) struct CommonCallRule;

impl PhysicalOptimizerRule for CommonCallRule {
    fn name(&self) -> &str {
        "cembra_common_calls"
    }

    fn schema_check(&self) -> bool {
        true
    }

    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        let split = |node: Arc<dyn ExecutionPlan>| match (node.as_ref() as &dyn Any).downcast_ref::<ProjectionExec>() {
            Some(projection) => Ok(split(projection)?.map_or_else(|| Transformed::no(node), Transformed::yes)),
            None => Ok(Transformed::no(node)),
        };
        plan.transform_up(split).data()
    }
}

/// The projection with its common calls in a projection below it; `None` if there are none.
fn split(projection: &ProjectionExec) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let mut calls: Vec<(Arc<dyn PhysicalExpr>, usize)> = Vec::new();
    for call in projection.expr().iter().filter_map(|column| call_of_field(&column.expr)) {
        match calls.iter_mut().find(|(known, _)| **known == *call) {
            Some((_, count)) => *count += 1,
            None => calls.push((call, 1)),
        }
    }
    calls.retain(|(_, count)| *count > 1);
    if calls.is_empty() {
        return Ok(None);
    }
    // The input's columns keep their indices, and the calls follow.
    let schema = projection.input().schema();
    let mut below: Vec<ProjectionExpr> = Vec::with_capacity(schema.fields().len() + calls.len());
    for (at, field) in schema.fields().iter().enumerate() {
        below.push(ProjectionExpr { expr: Arc::new(Column::new(field.name(), at)), alias: field.name().clone() });
    }
    let first = below.len();
    let name = |number: usize| format!("__cembra_call_{number}");
    for (number, (call, _)) in calls.iter().enumerate() {
        below.push(ProjectionExpr { expr: call.clone(), alias: name(number) });
    }
    let above = projection.expr().iter().map(|column| {
        let replaced = |expr: Arc<dyn PhysicalExpr>| match calls.iter().position(|(call, _)| **call == *expr) {
            Some(number) => {
                let column: Arc<dyn PhysicalExpr> = Arc::new(Column::new(&name(number), first + number));
                Ok(Transformed::new(column, true, TreeNodeRecursion::Jump))
            }
            None => Ok(Transformed::no(expr)),
        };
        let expr = match call_of_field(&column.expr) {
            Some(_) => column.expr.clone().transform_down(replaced).data()?,
            None => column.expr.clone(),
        };
        Ok(ProjectionExpr { expr, alias: column.alias.clone() })
    });
    let above = above.collect::<Result<Vec<_>>>()?;
    let below = Arc::new(ProjectionExec::try_new(below, projection.input().clone())?);
    Ok(Some(Arc::new(ProjectionExec::try_new(above, below)?)))
}

/// The call of a model of which `expr` is a field, or a field of a field. Such an expression is evaluated for all rows, unlike one in a branch of
/// `CASE`.
fn call_of_field(expr: &Arc<dyn PhysicalExpr>) -> Option<Arc<dyn PhysicalExpr>> {
    let (mut expr, mut is_field) = (expr, false);
    loop {
        let call = (expr.as_ref() as &dyn Any).downcast_ref::<ScalarFunctionExpr>()?;
        if let Some(function) = CembraFunction::of(call.fun()) {
            // Each call of an impure function is a call of its own.
            return (is_field && function.is_immutable()).then(|| expr.clone());
        }
        let inner: &dyn Any = call.fun().inner().as_ref();
        if !inner.is::<GetFieldFunc>() {
            return None;
        }
        (expr, is_field) = (call.args().first()?, true);
    }
}
