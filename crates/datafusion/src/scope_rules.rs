//! Two rules that link a query with the functions in it. A rule for logical plans gives all functions of a query a common scope. A rule for physical
//! plans adds a node at the root, which ends evaluations when the result is dropped, and tells the scope the query's memory pool.

use crate::function::CembraFunction;
use crate::scope::QueryScope;
use cembra::Cancellation;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::config::ConfigOptions;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{Expr, LogicalPlan, ScalarUDF};
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::stream::RecordBatchReceiverStreamBuilder;
use datafusion::physical_plan::{
    ChildrenPropertiesMode, DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties,
    RecordBatchStream, ReplaceChildrenOptions, apply_expression_roots,
};
use futures_core::Stream;
use std::any::Any;
use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// Gives the functions of a query a common scope.
#[derive(Debug)]
pub(crate) struct ScopeRule;

impl OptimizerRule for ScopeRule {
    fn name(&self) -> &str {
        "cembra_scope"
    }

    fn rewrite(&self, plan: LogicalPlan, _: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>, DataFusionError> {
        let scope = Arc::new(QueryScope::default());
        let scoped = |expr: Expr| match expr {
            Expr::ScalarFunction(ScalarFunction { func, args }) => {
                match CembraFunction::of(&func).filter(|of| of.scope().is_none()) {
                    Some(of) => {
                        let func = Arc::new(ScalarUDF::from(of.in_scope(scope.clone())));
                        Ok(Transformed::yes(Expr::ScalarFunction(ScalarFunction { func, args })))
                    }
                    None => Ok(Transformed::no(Expr::ScalarFunction(ScalarFunction { func, args }))),
                }
            }
            other => Ok(Transformed::no(other)),
        };
        plan.transform_down_with_subqueries(|node| node.map_expressions(|expr| expr.transform_up(scoped)))
    }
}

/// Adds the node at the root of a query that opens its scope.
#[derive(Debug)]
pub(crate) struct ScopeRootRule;

impl PhysicalOptimizerRule for ScopeRootRule {
    fn name(&self) -> &str {
        "cembra_scope_root"
    }

    fn schema_check(&self) -> bool {
        true
    }

    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        let mut scopes: Vec<Arc<QueryScope>> = Vec::new();
        plan.apply(|node| {
            node.apply_expressions(&mut |root| {
                root.apply(|expr| {
                    let function = (expr.as_ref() as &dyn Any).downcast_ref::<ScalarFunctionExpr>();
                    if let Some(scope) =
                        function.and_then(|of| CembraFunction::of(of.fun())).and_then(CembraFunction::scope)
                        && !scopes.iter().any(|known| Arc::ptr_eq(known, scope))
                    {
                        scopes.push(scope.clone());
                    }
                    Ok(TreeNodeRecursion::Continue)
                })
            })
        })?;
        if scopes.is_empty() {
            return Ok(plan);
        }
        Ok(Arc::new(ScopeExec::new(plan, scopes.into())))
    }
}

/// The root of a query with functions of cembra. It runs all partitions of its input in tasks of their own, so that the result can be dropped while a
/// function is evaluated, and cancels the token of its scopes when that happens.
#[derive(Debug)]
struct ScopeExec {
    input: Arc<dyn ExecutionPlan>,
    scopes: Arc<[Arc<QueryScope>]>,
    properties: Arc<PlanProperties>,
}

impl ScopeExec {
    fn new(input: Arc<dyn ExecutionPlan>, scopes: Arc<[Arc<QueryScope>]>) -> ScopeExec {
        let of_input = input.properties();
        let mut equivalence = of_input.equivalence_properties().clone();
        if of_input.partitioning.partition_count() > 1 {
            // Rows of several partitions come in any order.
            equivalence.clear_orderings();
            equivalence.clear_per_partition_constants();
        }
        let one = Partitioning::UnknownPartitioning(1);
        let properties = PlanProperties::new(equivalence, one, of_input.emission_type, of_input.boundedness);
        ScopeExec { properties: Arc::new(properties), input, scopes }
    }
}

impl DisplayAs for ScopeExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CembraScopeExec")
    }
}

impl ExecutionPlan for ScopeExec {
    fn name(&self) -> &str {
        "CembraScopeExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![self.input.properties().partitioning.partition_count() == 1]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let mut children = children.into_iter();
        let (Some(input), None) = (children.next(), children.next()) else {
            return Err(DataFusionError::Internal("CembraScopeExec must have one child".to_owned()));
        };
        Ok(Arc::new(ScopeExec::new(input, self.scopes.clone())))
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        self.replace_children(children, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute))
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        apply_expression_roots([] as [&Arc<dyn PhysicalExpr>; 0], f)
    }

    fn execute(&self, _: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let token = Cancellation::new();
        for scope in &*self.scopes {
            scope.begin(&token, context.memory_pool());
        }
        let partitions = self.input.properties().partitioning.partition_count();
        let mut tasks = RecordBatchReceiverStreamBuilder::new(self.schema(), partitions);
        for partition in 0..partitions {
            let (rows, input, context) = (tasks.tx(), self.input.clone(), context.clone());
            tasks.spawn(async move {
                let mut stream = input.execute(partition, context)?;
                while let Some(batch) = poll_fn(|cx| stream.as_mut().poll_next(cx)).await {
                    if rows.send(batch).await.is_err() {
                        break;
                    }
                }
                Ok(())
            });
        }
        Ok(Box::pin(ScopedStream { rows: tasks.build(), scopes: self.scopes.clone(), token }))
    }
}

/// The rows of a query. When it is dropped, evaluations that still run for it are cancelled.
struct ScopedStream {
    rows: SendableRecordBatchStream,
    scopes: Arc<[Arc<QueryScope>]>,
    token: Cancellation,
}

impl Drop for ScopedStream {
    fn drop(&mut self) {
        self.token.cancel();
        self.scopes.iter().for_each(|scope| scope.end());
    }
}

impl Stream for ScopedStream {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<RecordBatch>>> {
        self.rows.as_mut().poll_next(cx)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.rows.size_hint()
    }
}

impl RecordBatchStream for ScopedStream {
    fn schema(&self) -> SchemaRef {
        self.rows.schema()
    }
}
