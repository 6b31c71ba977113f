//! DataFusion's physical expressions, over batches of the size that DataFusion runs. Expressions are trees: a value with several
//! uses is a column that an earlier projection made, as DataFusion's own optimiser has it.

use super::{Binary, Operators, Peer, PeerError, Unary, formula};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use datafusion_common::config::ConfigOptions;
use datafusion_expr::{Operator, ScalarUDF};
use datafusion_functions::math;
use datafusion_physical_expr::expressions::{Column, NegativeExpr, binary, case, cast, is_not_null, lit};
use datafusion_physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use std::sync::Arc;

/// Rows of a batch, unless DataFusion is told otherwise.
const BATCH: usize = 8192;

/// The subject.
pub(super) struct Physical;

impl Peer for Physical {
    const NAME: &'static str = "datafusion";
    type Prepared = Projections;

    fn prepare(workload: &'static str, inputs: &[ArrayRef]) -> Result<Option<Projections>, PeerError> {
        let field = |(at, input): (usize, &ArrayRef)| {
            Field::new(format!("x{at}"), input.data_type().clone(), input.is_nullable())
        };
        let fields = inputs.iter().enumerate().map(field).collect::<Vec<_>>();
        let mut projections = Projections { schema: Schema::new(fields), shared: Vec::new(), outputs: Vec::new() };
        let Some(outputs) = formula(workload, &mut projections)? else { return Ok(None) };
        projections.outputs = outputs;
        Ok(Some(projections))
    }

    fn run(projections: &Projections, inputs: &[ArrayRef]) -> Result<Vec<ArrayRef>, PeerError> {
        let rows = inputs[0].len();
        let mut outputs = vec![Vec::new(); projections.outputs.len()];
        for start in (0..rows).step_by(BATCH) {
            let length = BATCH.min(rows - start);
            let mut columns: Vec<ArrayRef> = inputs.iter().map(|input| input.slice(start, length)).collect();
            let batch = |columns: &[ArrayRef]| {
                let fields = projections.schema.fields()[..columns.len()].to_vec();
                RecordBatch::try_new(Arc::new(Schema::new(fields)), columns.to_vec())
            };
            for shared in &projections.shared {
                let column = shared.evaluate(&batch(&columns)?)?.into_array(length)?;
                columns.push(column);
            }
            let batch = batch(&columns)?;
            for (output, parts) in projections.outputs.iter().zip(&mut outputs) {
                parts.push(output.evaluate(&batch)?.into_array(length)?);
            }
        }
        let whole = |parts: &Vec<ArrayRef>| {
            let parts: Vec<&dyn Array> = parts.iter().map(AsRef::as_ref).collect();
            arrow_select::concat::concat(&parts)
        };
        Ok(outputs.iter().map(whole).collect::<Result<_, _>>()?)
    }
}

type Expression = Arc<dyn PhysicalExpr>;

/// What is evaluated: columns for what has several uses, then the outputs.
pub(super) struct Projections {
    schema: Schema,
    shared: Vec<Expression>,
    outputs: Vec<Expression>,
}

impl Projections {
    fn call(&self, function: Arc<ScalarUDF>, x: &Expression) -> Result<Expression, PeerError> {
        let options = Arc::new(ConfigOptions::default());
        Ok(Arc::new(ScalarFunctionExpr::try_new(function, vec![x.clone()], &self.schema, options)?))
    }
}

impl Operators for Projections {
    type Value = Expression;

    fn input(&self, index: usize) -> Result<Expression, PeerError> {
        Ok(Arc::new(Column::new(self.schema.field(index).name(), index)))
    }

    fn single(&self, number: f32) -> Expression {
        lit(number)
    }

    fn double(&self, number: f64) -> Expression {
        lit(number)
    }

    fn binary(&mut self, operator: Binary, a: &Expression, b: &Expression) -> Result<Expression, PeerError> {
        let operator = match operator {
            Binary::Add => Operator::Plus,
            Binary::Subtract => Operator::Minus,
            Binary::Multiply => Operator::Multiply,
            Binary::Divide => Operator::Divide,
            Binary::AtLeast => Operator::GtEq,
            Binary::Greater => Operator::Gt,
        };
        Ok(binary(a.clone(), operator, b.clone(), &self.schema)?)
    }

    fn unary(&mut self, operator: Unary, x: &Expression) -> Result<Expression, PeerError> {
        match operator {
            Unary::Negative => Ok(Arc::new(NegativeExpr::new(x.clone()))),
            Unary::Absolute => self.call(math::abs(), x),
            Unary::Root => self.call(math::sqrt(), x),
            Unary::Exponential => self.call(math::exp(), x),
            Unary::Logarithm => self.call(math::ln(), x),
            Unary::LogarithmOfSum => {
                let sum = self.binary(Binary::Add, &lit(1.0_f32), x)?;
                self.call(math::ln(), &sum)
            }
            Unary::Wide => Ok(cast(x.clone(), &self.schema, DataType::Float64)?),
        }
    }

    fn choose(
        &mut self,
        mask: &Expression,
        then: &Expression,
        otherwise: Option<&Expression>,
    ) -> Result<Expression, PeerError> {
        Ok(case(None, vec![(mask.clone(), then.clone())], otherwise.cloned())?)
    }

    fn or(&mut self, x: &Expression, default: f32) -> Result<Expression, PeerError> {
        let present = is_not_null(x.clone())?;
        self.choose(&present, x, Some(&lit(default)))
    }

    fn maximum(&mut self, x: &Expression, bound: f32) -> Result<Expression, PeerError> {
        let less = self.binary(Binary::Greater, &lit(bound), x)?;
        self.choose(&less, &lit(bound), Some(x))
    }

    fn minimum(&mut self, x: &Expression, bound: f32) -> Result<Expression, PeerError> {
        let more = self.binary(Binary::Greater, x, &lit(bound))?;
        self.choose(&more, &lit(bound), Some(x))
    }

    fn share(&mut self, x: Expression) -> Result<Expression, PeerError> {
        let name = format!("v{}", self.shared.len());
        let index = self.schema.fields().len();
        let field = Field::new(&name, x.data_type(&self.schema)?, x.nullable(&self.schema)?);
        self.schema = Schema::new(self.schema.fields().iter().cloned().chain([Arc::new(field)]).collect::<Vec<_>>());
        self.shared.push(x);
        Ok(Arc::new(Column::new(&name, index)))
    }
}
