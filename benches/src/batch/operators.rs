//! What runs columns one operator at a time, as subjects: Arrow's kernels, and DataFusion's physical expressions. The formulas
//! are written once, for both. Models with special arguments are left out: Arrow orders NaN above all numbers.

mod arrow;
mod datafusion;

use super::columns::{Column, Columns};
use super::subject::{BatchSubject, Bound, Offer, in_parallel, parts};
use super::workload::{Batch, Rows};
use crate::Error;
use crate::subject::Family;
use arrow_array::types::{Float32Type, Float64Type};
use arrow_array::{Array, ArrayRef, PrimitiveArray};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer, ScalarBuffer};
use std::sync::Arc;

type PeerError = Box<dyn std::error::Error + Send + Sync>;

/// Operators of two columns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Binary {
    Add,
    Subtract,
    Multiply,
    Divide,
    AtLeast,
    Greater,
}

/// Operators of one column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Unary {
    Negative,
    Absolute,
    Root,
    Exponential,
    Logarithm,
    /// Of the sum with 1.
    LogarithmOfSum,
    /// FLOAT32 to FLOAT64.
    Wide,
}

/// What a library does with one operator. Numbers have the type that the models give them.
trait Operators {
    /// A column, or what will be one, or a number.
    type Value: Clone;

    fn input(&self, index: usize) -> Result<Self::Value, PeerError>;
    fn single(&self, number: f32) -> Self::Value;
    fn double(&self, number: f64) -> Self::Value;
    fn binary(&mut self, operator: Binary, a: &Self::Value, b: &Self::Value) -> Result<Self::Value, PeerError>;
    fn unary(&mut self, operator: Unary, x: &Self::Value) -> Result<Self::Value, PeerError>;
    /// `otherwise` where the mask is false; missing if there is none.
    fn choose(
        &mut self,
        mask: &Self::Value,
        then: &Self::Value,
        otherwise: Option<&Self::Value>,
    ) -> Result<Self::Value, PeerError>;
    /// A number where the value is missing.
    fn or(&mut self, x: &Self::Value, default: f32) -> Result<Self::Value, PeerError>;
    fn maximum(&mut self, x: &Self::Value, bound: f32) -> Result<Self::Value, PeerError>;
    fn minimum(&mut self, x: &Self::Value, bound: f32) -> Result<Self::Value, PeerError>;
    /// A value with several uses.
    fn share(&mut self, x: Self::Value) -> Result<Self::Value, PeerError> {
        Ok(x)
    }
}

/// The outputs of a workload; `None` if it is not written down here.
fn formula<O: Operators>(workload: &str, o: &mut O) -> Result<Option<Vec<O::Value>>, PeerError> {
    Ok(Some(match workload {
        "B1" => {
            let product = o.binary(Binary::Multiply, &o.input(0)?, &o.input(1)?)?;
            vec![o.binary(Binary::Add, &product, &o.input(2)?)?]
        }
        "B2" => roots(o)?,
        "B3" | "S3" => vec![score(o)?],
        "B4f32" => {
            let one = o.single(1.0);
            vec![squash(o, &one, &o.input(0)?)?]
        }
        "B4f64" => {
            let one = o.double(1.0);
            vec![squash(o, &one, &o.input(0)?)?]
        }
        "B5" => vec![price(o)?],
        _ => return Ok(None),
    }))
}

fn roots<O: Operators>(o: &mut O) -> Result<Vec<O::Value>, PeerError> {
    let (a, b, c) = (o.input(0)?, o.input(1)?, o.input(2)?);
    let four_a = o.binary(Binary::Multiply, &o.single(4.0), &a)?;
    let four_a = o.unary(Unary::Wide, &four_a)?;
    let square = o.binary(Binary::Multiply, &b, &b)?;
    let product = o.binary(Binary::Multiply, &four_a, &c)?;
    let d = o.binary(Binary::Subtract, &square, &product)?;
    let d = o.share(d)?;
    // What is missing stays missing; and DataFusion refuses the root of a negative number.
    let real = o.binary(Binary::AtLeast, &d, &o.double(0.0))?;
    let s = o.unary(Unary::Root, &d)?;
    let s = o.choose(&real, &s, None)?;
    let s = o.share(s)?;
    let minus_b = o.unary(Unary::Negative, &b)?;
    let wide = o.unary(Unary::Wide, &a)?;
    let (minus_b, wide) = (o.share(minus_b)?, o.share(wide)?);
    let root = |sign| -> Result<O::Value, PeerError> {
        let sum = o.binary(sign, &minus_b, &s)?;
        let half = o.binary(Binary::Divide, &sum, &o.double(2.0))?;
        o.binary(Binary::Divide, &half, &wide)
    };
    [Binary::Add, Binary::Subtract].into_iter().map(root).collect()
}

fn squash<O: Operators>(o: &mut O, one: &O::Value, x: &O::Value) -> Result<O::Value, PeerError> {
    let minus = o.unary(Unary::Negative, x)?;
    let power = o.unary(Unary::Exponential, &minus)?;
    let sum = o.binary(Binary::Add, one, &power)?;
    o.binary(Binary::Divide, one, &sum)
}

fn score<O: Operators>(o: &mut O) -> Result<O::Value, PeerError> {
    let defaults = [0.5, 1.0, 2.0, 0.0, 0.1, 0.2, 3.0, 0.5, -0.5, 0.3];
    let mut v = Vec::new();
    for (input, default) in defaults.into_iter().enumerate() {
        let value = o.or(&o.input(input)?, default)?;
        v.push(o.share(value)?);
    }
    let mut terms = Vec::new();
    for x in &v[..4] {
        let positive = o.maximum(x, 0.0)?;
        let log = o.unary(Unary::LogarithmOfSum, &positive)?;
        terms.push(o.share(log)?);
    }
    for (x, (low, high)) in v[4..7].iter().zip([(-1.0, 1.0), (0.0, 2.0), (0.5, 4.0)]) {
        let clipped = o.maximum(x, low)?;
        let clipped = o.minimum(&clipped, high)?;
        terms.push(o.share(clipped)?);
    }
    let one = o.single(1.0);
    for (x, (factor, offset)) in v[7..9].iter().zip([(1.5, 0.2), (-0.7, 0.1)]) {
        let x = o.binary(Binary::Multiply, x, &o.single(factor))?;
        let x = o.binary(Binary::Add, &x, &o.single(offset))?;
        terms.push(squash(o, &one, &x)?);
    }
    let [l0, l1, l2, l3, k0, k1, k2, s0, s1] = &terms[..] else { return Err("nine terms".into()) };
    let mut t = o.binary(Binary::Multiply, l0, &o.single(0.3))?;
    t = o.binary(Binary::Add, &t, &o.single(-0.1))?;
    for (term, weight) in [(l1, -0.2), (l2, 0.15), (l3, 0.4), (k0, 0.25), (k1, -0.35), (k2, 0.05), (s0, 0.6)] {
        let product = o.binary(Binary::Multiply, term, &o.single(weight))?;
        t = o.binary(Binary::Add, &t, &product)?;
    }
    let t = o.share(t)?;
    let more = o.binary(Binary::Multiply, &o.single(0.3), s1)?;
    let more = o.binary(Binary::Add, &t, &more)?;
    let less = o.binary(Binary::Multiply, &t, &o.single(0.9))?;
    let high = o.binary(Binary::Greater, &v[9], &o.single(0.5))?;
    let chosen = o.choose(&high, &more, Some(&less))?;
    let product = o.binary(Binary::Multiply, l0, k0)?;
    let product = o.binary(Binary::Multiply, &product, &o.single(0.05))?;
    let u = o.binary(Binary::Add, &chosen, &product)?;
    let y = squash(o, &one, &u)?;
    let y = o.share(y)?;
    let y = o.maximum(&y, 0.01)?;
    let y = o.share(y)?;
    o.minimum(&y, 0.99)
}

fn price<O: Operators>(o: &mut O) -> Result<O::Value, PeerError> {
    let (s, k, t) = (o.input(0)?, o.input(1)?, o.input(2)?);
    let root = o.unary(Unary::Root, &t)?;
    let v = o.binary(Binary::Multiply, &o.double(0.3), &root)?;
    let v = o.share(v)?;
    let ratio = o.binary(Binary::Divide, &s, &k)?;
    let log = o.unary(Unary::Logarithm, &ratio)?;
    let drift = o.binary(Binary::Multiply, &o.double(0.065), &t)?;
    let sum = o.binary(Binary::Add, &log, &drift)?;
    let d1 = o.binary(Binary::Divide, &sum, &v)?;
    let d1 = o.share(d1)?;
    let d2 = o.binary(Binary::Subtract, &d1, &v)?;
    let d2 = o.share(d2)?;
    let (first, second) = (distribution(o, &d1)?, distribution(o, &d2)?);
    let rate = o.binary(Binary::Multiply, &o.double(-0.02), &t)?;
    let discount = o.unary(Unary::Exponential, &rate)?;
    let strike = o.binary(Binary::Multiply, &k, &discount)?;
    let strike = o.binary(Binary::Multiply, &strike, &second)?;
    let stock = o.binary(Binary::Multiply, &s, &first)?;
    o.binary(Binary::Subtract, &stock, &strike)
}

fn distribution<O: Operators>(o: &mut O, d: &O::Value) -> Result<O::Value, PeerError> {
    let one = o.double(1.0);
    let size = o.unary(Unary::Absolute, d)?;
    let scaled = o.binary(Binary::Multiply, &o.double(0.231_641_9), &size)?;
    let sum = o.binary(Binary::Add, &one, &scaled)?;
    let q = o.binary(Binary::Divide, &one, &sum)?;
    let q = o.share(q)?;
    let mut series = o.double(1.330_274_429);
    for coefficient in [-1.821_255_978, 1.781_477_937, -0.356_563_782, 0.319_381_530] {
        let product = o.binary(Binary::Multiply, &q, &series)?;
        series = o.binary(Binary::Add, &o.double(coefficient), &product)?;
    }
    let series = o.binary(Binary::Multiply, &q, &series)?;
    let half = o.binary(Binary::Multiply, &o.double(-0.5), d)?;
    let exponent = o.binary(Binary::Multiply, &half, d)?;
    let power = o.unary(Unary::Exponential, &exponent)?;
    let density = o.binary(Binary::Multiply, &o.double(0.398_942_280_401_432_7), &power)?;
    let tail = o.binary(Binary::Multiply, &density, &series)?;
    let tail = o.share(tail)?;
    let rest = o.binary(Binary::Subtract, &one, &tail)?;
    let positive = o.binary(Binary::Greater, d, &o.double(0.0))?;
    o.choose(&positive, &rest, Some(&tail))
}

/// A library on Arrow's arrays.
trait Peer: 'static {
    /// The name of its subject.
    const NAME: &'static str;
    /// What it keeps from run to run.
    type Prepared: Send + Sync;

    /// Whatever can be done before there are rows; `None` for a workload that is not written down.
    fn prepare(workload: &'static str, inputs: &[ArrayRef]) -> Result<Option<Self::Prepared>, PeerError>;

    /// The outputs of all rows.
    fn run(prepared: &Self::Prepared, inputs: &[ArrayRef]) -> Result<Vec<ArrayRef>, PeerError>;
}

/// The subjects of this module that can do a workload.
pub fn all<W: Batch>() -> Vec<Offer<W>> {
    let can = W::SPECIAL == 0.0 && !["S5", "R1k"].contains(&W::NAME);
    let offer = |name, subject: Box<dyn BatchSubject<W>>| {
        if can { Ok(subject) } else { Err((name, format!("{name}: {} is not written down", W::NAME))) }
    };
    vec![
        offer(arrow::Kernels::NAME, Box::new(Foreign::<arrow::Kernels>(std::marker::PhantomData))),
        offer(datafusion::Physical::NAME, Box::new(Foreign::<datafusion::Physical>(std::marker::PhantomData))),
    ]
}

/// A peer as a subject.
struct Foreign<P>(std::marker::PhantomData<P>);

/// Some rows of it.
struct Part<P: Peer> {
    prepared: P::Prepared,
    inputs: Vec<ArrayRef>,
    outputs: Result<Vec<ArrayRef>, PeerError>,
}

struct BoundForeign<W: Batch, P: Peer> {
    parts: Vec<Part<P>>,
    workload: std::marker::PhantomData<W>,
}

impl<W: Batch, P: Peer> BatchSubject<W> for Foreign<P> {
    fn name(&self) -> &'static str {
        P::NAME
    }

    fn family(&self) -> Family {
        Family::Peer(P::NAME)
    }

    fn bind<'a>(&'a self, rows: &'a Rows<W>, threads: usize) -> Result<Box<dyn Bound + 'a>, Error> {
        let mut bound = BoundForeign::<W, P> { parts: Vec::new(), workload: std::marker::PhantomData };
        let inputs: Vec<ArrayRef> =
            rows.columns.columns.iter().map(|column| array(column, rows.columns.rows)).collect();
        for (start, length) in parts(rows.columns.rows, threads) {
            let inputs: Vec<ArrayRef> = inputs.iter().map(|input| input.slice(start, length)).collect();
            let prepared = P::prepare(W::NAME, &inputs).map_err(peer_error::<W>)?;
            let prepared = prepared.ok_or(Error::Inputs { workload: W::NAME })?;
            bound.parts.push(Part { prepared, inputs, outputs: Ok(Vec::new()) });
        }
        Ok(Box::new(bound))
    }
}

fn peer_error<W: Batch>(source: PeerError) -> Error {
    Error::Stage { workload: W::NAME, source }
}

impl<W: Batch, P: Peer> Bound for BoundForeign<W, P> {
    fn run(&mut self) -> Result<(), Error> {
        in_parallel(&mut self.parts, |part| part.outputs = P::run(&part.prepared, &part.inputs));
        for part in &mut self.parts {
            if part.outputs.is_err() {
                let outputs = std::mem::replace(&mut part.outputs, Ok(Vec::new()));
                outputs.map_err(peer_error::<W>)?;
            }
        }
        Ok(())
    }

    fn outputs(&self) -> Columns {
        let rows = self.parts.iter().map(|part| part.inputs[0].len()).sum();
        let mut columns = Columns::new(W::OUTPUT_KINDS, rows);
        let mut from = 0;
        for part in &self.parts {
            for (array, column) in part.outputs.iter().flatten().zip(&mut columns.columns) {
                for row in 0..array.len() {
                    column.set(from + row, value(array, row));
                }
            }
            from += part.inputs[0].len();
        }
        columns
    }
}

/// A copy of a column.
fn array(column: &Column, rows: usize) -> ArrayRef {
    let values = (0..rows).map(|row| column.get(row));
    let nulls = column.kind().is_optional.then(|| {
        let present: BooleanBuffer = values.clone().map(|value| value.is_some()).collect();
        NullBuffer::new(present)
    });
    let values = values.map(|value| value.unwrap_or(0.0));
    if column.kind().is_double {
        Arc::new(PrimitiveArray::<Float64Type>::new(values.collect(), nulls))
    } else {
        let values: Vec<f32> = values.map(|value| value as f32).collect();
        let values = ScalarBuffer::new(Buffer::from_vec(values), 0, rows);
        Arc::new(PrimitiveArray::<Float32Type>::new(values, nulls))
    }
}

/// A value of an output.
fn value(array: &ArrayRef, row: usize) -> Option<f64> {
    if array.is_null(row) {
        return None;
    }
    let any = array.as_any();
    let single = any.downcast_ref::<PrimitiveArray<Float32Type>>().map(|array| array.value(row).into());
    single.or_else(|| any.downcast_ref::<PrimitiveArray<Float64Type>>().map(|array| array.value(row)))
}
