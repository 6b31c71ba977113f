//! Tests user-defined operations in tensor graphs: their answers are checked, they become steps of plans and may have
//! derivatives, and an operation that can compute a single element is used by readers of elements.

use crate::compiled::{kind_of, message_of, run};
use cembra::Error;
use cembra::tensor::{
    CompileGraph, ElementForm, ElementReads, Reader, Reduction, Slice, Tensor, TensorErrorKind, TensorGraph, TensorMut,
    TensorNodeId, TensorOp, TensorType, same_bits,
};
use cembra::{Backend, Cancellation, Executor, Limits, Options, Scalar, ScalarValue};
use cembra_engine::Evaluator;
use cembra_tensor::Rewriter;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

fn options() -> Options {
    Options::default().reference_order(true)
}

fn compiled(graph: &TensorGraph, outputs: &[TensorNodeId]) -> Executor {
    graph.compile(outputs, &options()).expect("an executor")
}

fn numbers(extents: &[usize], seed: usize) -> Tensor {
    let count = extents.iter().product();
    Tensor::new(extents, (0..count).map(|at| ((at * 37 + seed * 11 + 5) as f64).sin()).collect()).expect("a value")
}

/// A user-defined operation: cumulative sums along the last axis, from the first element on or, if `is_reversed`, from
/// the last.
struct Cumulative {
    is_reversed: bool,
    has_form: bool,
}

impl Cumulative {
    fn forward(has_form: bool) -> Arc<Cumulative> {
        Arc::new(Cumulative { is_reversed: false, has_form })
    }
}

impl TensorOp for Cumulative {
    fn name(&self) -> &'static str {
        "cumulative"
    }

    fn identity(&self) -> Option<Vec<u8>> {
        Some(vec![u8::from(self.is_reversed), u8::from(self.has_form)])
    }

    fn shape(&self, inputs: &[TensorType]) -> Result<TensorType, Error> {
        match inputs {
            [x] if x.scalar == Scalar::Float64 && !x.extents.is_empty() => Ok(x.clone()),
            _ => Err(Error::tensors(TensorErrorKind::ElementType, "sums are of one tensor of f64 with an axis")),
        }
    }

    fn execute(&self, inputs: &[Tensor], output: &mut TensorMut<'_>) -> Result<(), Error> {
        let row = output.extents().last().copied().unwrap_or(1).max(1);
        let from = inputs[0].to_vec::<f64>()?;
        for (to, from) in output.as_mut_slice::<f64>()?.chunks_mut(row).zip(from.chunks(row)) {
            let mut sum = 0.0;
            for at in 0..row {
                let at = if self.is_reversed { row - 1 - at } else { at };
                sum += from[at];
                to[at] = sum;
            }
        }
        Ok(())
    }

    fn element_form(&self) -> Option<&dyn ElementForm> {
        self.has_form.then_some(self)
    }

    fn vjp(
        &self,
        graph: &mut TensorGraph,
        _: &[TensorNodeId],
        _: TensorNodeId,
        cotangent: TensorNodeId,
    ) -> Result<Option<Vec<Option<TensorNodeId>>>, Error> {
        let op = Cumulative { is_reversed: !self.is_reversed, has_form: self.has_form };
        Ok(Some(vec![Some(graph.custom(Arc::new(op), &[cotangent])?)]))
    }
}

impl ElementForm for Cumulative {
    fn reads(&self, inputs: &[TensorType], index: &[usize], wanted: &mut ElementReads<'_>) -> Result<(), Error> {
        let (last, row) = (index.len() - 1, inputs[0].extents[index.len() - 1]);
        let mut index = index.to_vec();
        let range: Vec<usize> =
            if self.is_reversed { (index[last]..row).rev().collect() } else { (0..=index[last]).collect() };
        for at in range {
            index[last] = at;
            wanted.element(0, &index)?;
        }
        Ok(())
    }

    fn element(&self, _: &[TensorType], _: &[usize], read: &[ScalarValue]) -> Result<ScalarValue, Error> {
        let number = |value: &ScalarValue| if let ScalarValue::Float64(number) = value { *number } else { f64::NAN };
        Ok(ScalarValue::Float64(read.iter().map(number).fold(0.0, |sum, number| sum + number)))
    }
}

/// Returns the value of a node by the reference, and asserts that rewriting, plans and readers of elements give the
/// same bits.
fn value(graph: &TensorGraph, node: TensorNodeId, inputs: &[Tensor]) -> Tensor {
    let mut found = None;
    for backend in [Backend::Interpreter, Backend::Native] {
        let options = options().backend(backend);
        let (executor, on) = (graph.compile(&[node], &options).expect("an executor"), Evaluator::new(&options));
        let value = executor.run_reference(inputs).expect("a value").remove(0);
        let made = Rewriter::default().rewrite(graph, &[node], &on.host()).expect("a graph");
        let rewritten = on.evaluate(&made.graph, &made.outputs, inputs).expect("a value").remove(0);
        let planned = run(&executor, inputs).expect("a value").remove(0);
        assert!(same_bits(&value, &rewritten) && same_bits(&value, &planned));
        let prepared = executor.reader(0, inputs).expect("a reader");
        let once = Reader::once(graph, node, inputs, &on).expect("a reader");
        for reader in [prepared, once] {
            for (number, expected) in value.to_vec::<f64>().expect("floats").into_iter().enumerate() {
                let mut rest = number;
                let mut index: Vec<usize> =
                    value.extents().iter().rev().map(|extent| (rest % extent, rest /= extent).0).collect();
                index.reverse();
                assert_eq!(reader.get::<f64>(&index).expect("an element").to_bits(), expected.to_bits(), "{index:?}");
            }
        }
        found = Some(value);
    }
    found.expect("a value")
}

#[test]
fn operations_of_users_are_nodes_like_others() {
    for has_form in [true, false] {
        let mut g = TensorGraph::standard();
        let [x, y] = [[3, 5], [5, 3]].map(|extents| g.leaf("", Scalar::Float64, &extents).unwrap());
        let turned = g.transpose(y, &[1, 0]).unwrap();
        let product = g.apply("math.multiply", &[x, turned]).unwrap();
        let sums = g.custom(Cumulative::forward(has_form), &[product]).unwrap();
        assert_eq!(g.custom(Cumulative::forward(has_form), &[product]).unwrap(), sums);
        assert_ne!(g.custom(Cumulative::forward(!has_form), &[product]).unwrap(), sums);
        let twice = g.apply("math.add", &[sums, sums]).unwrap();
        let wave = g.apply("sin", &[twice]).unwrap();
        let inputs = [numbers(&[3, 5], 0), numbers(&[5, 3], 1)];
        let made = value(&g, wave, &inputs).to_vec::<f64>().unwrap();
        let [x_row, y_all] = [&inputs[0], &inputs[1]].map(|tensor| tensor.to_vec::<f64>().unwrap());
        let sum = (0..3).fold(0.0, |sum, at| sum + x_row[5 + at] * y_all[at * 3 + 1]);
        assert_eq!(made[5 + 2], (2.0 * sum).sin());
        // One step for the product, one for the sums, one for what comes after.
        let plan = compiled(&g, &[wave]).prepare_for(&[&[3, 5], &[5, 3]]).unwrap();
        assert_eq!(plan.counters().steps, 3);
        assert!(plan.to_string().contains("custom(cumulative)"), "{plan}");
    }
}

#[test]
fn derivatives_of_operations_of_users_are_those_of_differences() {
    let mut g = TensorGraph::standard();
    let x = g.leaf("x", Scalar::Float64, &[2, 4]).unwrap();
    let sums = g.custom(Cumulative::forward(true), &[x]).unwrap();
    let waves = g.apply("sin", &[sums]).unwrap();
    let number = g.reduce(Reduction::Sum, waves, &[0, 1]).unwrap();
    let gradient = g.gradients(number, &[x]).unwrap()[0];
    let input = numbers(&[2, 4], 3);
    let found = value(&g, gradient, std::slice::from_ref(&input)).to_vec::<f64>().unwrap();
    let tangent = g.tangents(&[number], &[x], &[waves]).unwrap()[0];
    let (mut along, direction) = (0.0, value(&g, waves, std::slice::from_ref(&input)).to_vec::<f64>().unwrap());
    for (element, found) in found.iter().enumerate() {
        let moved = |step: f64| {
            let mut elements = input.to_vec::<f64>().unwrap();
            elements[element] += step;
            value(&g, number, &[Tensor::new(&[2, 4], elements).unwrap()]).get::<f64>(&[]).unwrap()
        };
        let difference = (moved(1e-5) - moved(-1e-5)) / 2e-5;
        assert!((found - difference).abs() < 1e-8, "{found} is not {difference}");
        along += found * direction[element];
    }
    assert!((value(&g, tangent, &[input]).get::<f64>(&[]).unwrap() - along).abs() < 1e-12);
}

/// A user-defined operation without operands: a Hilbert matrix, which computes its own elements.
struct Hilbert(usize);

impl TensorOp for Hilbert {
    fn name(&self) -> &'static str {
        "hilbert"
    }

    fn identity(&self) -> Option<Vec<u8>> {
        Some(self.0.to_le_bytes().to_vec())
    }

    fn shape(&self, _: &[TensorType]) -> Result<TensorType, Error> {
        Ok(TensorType::new(Scalar::Float64, &[self.0, self.0]))
    }

    fn element_form(&self) -> Option<&dyn ElementForm> {
        Some(self)
    }
}

impl ElementForm for Hilbert {
    fn reads(&self, _: &[TensorType], _: &[usize], _: &mut ElementReads<'_>) -> Result<(), Error> {
        Ok(())
    }

    fn element(&self, _: &[TensorType], index: &[usize], _: &[ScalarValue]) -> Result<ScalarValue, Error> {
        Ok(ScalarValue::Float64(1.0 / (index[0] + index[1] + 1) as f64))
    }
}

#[test]
fn inputs_may_make_their_elements() {
    let mut g = TensorGraph::standard();
    let small = g.custom(Arc::new(Hilbert(4)), &[]).unwrap();
    let product = g.einsum("ij,jk->ik", &[small, small]).unwrap();
    let made = value(&g, product, &[]);
    let expected = (0..4).fold(0.0, |sum, at| sum + 1.0 / f64::from(at + 2) * (1.0 / f64::from(at + 4)));
    assert_eq!(made.get::<f64>(&[1, 3]).unwrap(), expected);
    // A matrix that no memory holds.
    let large = g.custom(Arc::new(Hilbert(1 << 28)), &[]).unwrap();
    let half = g.constant(Scalar::Float64, 0.5).unwrap();
    let scaled = g.apply("math.multiply", &[large, half]).unwrap();
    let executor = compiled(&g, &[scaled]);
    assert_eq!(executor.reader(0, &[]).unwrap().value(&[9, 90]).unwrap(), ScalarValue::Float64(0.005));
    for made in [executor.run_reference(&[]), run(&executor, &[])] {
        assert_eq!(kind_of(&made.unwrap_err()), TensorErrorKind::Limit);
    }
}

#[test]
fn long_chains_of_operations_of_users_take_no_stack() {
    let mut g = TensorGraph::standard();
    let x = g.leaf("x", Scalar::Float64, &[2]).unwrap();
    let mut made = x;
    for _ in 0..50_000 {
        made = g.custom(Cumulative::forward(true), &[made]).unwrap();
    }
    let executor = compiled(&g, &[made]);
    let reader = executor.reader(0, &[Tensor::new(&[2], vec![1.0, 0.5]).unwrap()]).unwrap();
    assert_eq!(reader.value(&[1]).unwrap(), ScalarValue::Float64(50_000.5));
}

/// A user-defined operation that counts its executions, and returns the count.
struct Counter(Arc<AtomicUsize>);

impl TensorOp for Counter {
    fn name(&self) -> &'static str {
        "counter"
    }

    fn shape(&self, _: &[TensorType]) -> Result<TensorType, Error> {
        Ok(TensorType::new(Scalar::Int64, &[2]))
    }

    fn execute(&self, _: &[Tensor], output: &mut TensorMut<'_>) -> Result<(), Error> {
        let count = self.0.fetch_add(1, Ordering::Relaxed) as i64;
        output.set(&[0], count)?;
        output.set(&[1], count)
    }
}

#[test]
fn what_has_a_state_is_like_nothing_else() {
    let count = Arc::new(AtomicUsize::new(0));
    let mut g = TensorGraph::standard();
    let op: Arc<dyn TensorOp> = Arc::new(Counter(count.clone()));
    let [first, second] = [(); 2].map(|()| g.custom(op.clone(), &[]).unwrap());
    assert_ne!(first, second);
    let difference = g.apply("math.subtract", &[first, second]).unwrap();
    let executor = compiled(&g, &[difference]);
    assert_eq!(run(&executor, &[]).unwrap()[0].to_vec::<i64>().unwrap(), [-1, -1]);
    assert_eq!(count.load(Ordering::Relaxed), 2);
    // A reader executes each once, whatever is read how often.
    let reader = executor.reader(0, &[]).unwrap();
    for index in [0, 1, 0] {
        assert_eq!(reader.get::<i64>(&[index]).unwrap(), -1);
    }
    assert_eq!(count.load(Ordering::Relaxed), 4);
    // In a graph that was rewritten, too.
    let mut made = Rewriter::default().rewrite(&g, &[first, second], &Evaluator::new(&options()).host()).unwrap();
    let third = made.graph.custom(op, &[]).unwrap();
    assert!(made.outputs[0] != made.outputs[1] && !made.outputs.contains(&third));
}

/// A user-defined operation that multiplies by the number of its executions so far, including this one.
struct Scaled(AtomicUsize);

impl TensorOp for Scaled {
    fn name(&self) -> &'static str {
        "scaled"
    }

    fn shape(&self, inputs: &[TensorType]) -> Result<TensorType, Error> {
        Ok(inputs[0].clone())
    }

    fn execute(&self, inputs: &[Tensor], output: &mut TensorMut<'_>) -> Result<(), Error> {
        let count = self.0.fetch_add(1, Ordering::Relaxed) as f64 + 1.0;
        output.set(&[], count * inputs[0].get::<f64>(&[])?)
    }

    fn vjp(
        &self,
        graph: &mut TensorGraph,
        inputs: &[TensorNodeId],
        output: TensorNodeId,
        cotangent: TensorNodeId,
    ) -> Result<Option<Vec<Option<TensorNodeId>>>, Error> {
        let scale = graph.apply("math.divide", &[output, inputs[0]])?;
        Ok(Some(vec![Some(graph.apply("math.multiply", &[scale, cotangent])?)]))
    }
}

#[test]
fn what_has_a_state_is_not_computed_again_for_gradients() {
    let mut g = TensorGraph::standard();
    let x = g.leaf("x", Scalar::Float64, &[]).unwrap();
    let made = g.custom(Arc::new(Scaled(AtomicUsize::new(6))), &[x]).unwrap();
    let square = g.apply("math.multiply", &[made, made]).unwrap();
    let gradient = g.gradients_with(square, &[x], &[made, square]).unwrap()[0];
    let found = compiled(&g, &[square, gradient]).run_reference(&[Tensor::scalar(3.0)]).unwrap();
    // 7 times 3, squared; its derivative is twice that, 7 times.
    assert_eq!([0, 1].map(|at| found[at].get::<f64>(&[]).unwrap()), [441.0, 294.0]);
}

/// The error in a faulty user-defined operation.
#[derive(Clone, Copy, Debug)]
enum Fault {
    Panics,
    WritesAnotherType,
    WritesOutside,
    NothingToDo,
    ElementOfAnotherType,
    ReadsOutside,
    ReadsAnotherInput,
    ElementPanics,
    NoDerivative,
    DerivativeOfOtherExtents,
    DerivativesOfMore,
    DerivativePanics,
    ShapePanics,
}

struct Wrong(Fault);

impl TensorOp for Wrong {
    fn name(&self) -> &'static str {
        "wrong"
    }

    fn shape(&self, inputs: &[TensorType]) -> Result<TensorType, Error> {
        assert!(!matches!(self.0, Fault::ShapePanics), "as it was told to");
        Ok(inputs[0].clone())
    }

    fn execute(&self, inputs: &[Tensor], output: &mut TensorMut<'_>) -> Result<(), Error> {
        match self.0 {
            Fault::Panics => panic!("as it was told to"),
            Fault::WritesAnotherType => output.as_mut_slice::<f32>().map(|_| ()),
            Fault::WritesOutside => output.set(&[2], 1.0),
            Fault::NothingToDo => Ok(()),
            _ => output.assign(&inputs[0]),
        }
    }

    fn element_form(&self) -> Option<&dyn ElementForm> {
        matches!(
            self.0,
            Fault::ElementOfAnotherType | Fault::ReadsOutside | Fault::ReadsAnotherInput | Fault::ElementPanics
        )
        .then_some(self)
    }

    fn vjp(
        &self,
        graph: &mut TensorGraph,
        _: &[TensorNodeId],
        _: TensorNodeId,
        cotangent: TensorNodeId,
    ) -> Result<Option<Vec<Option<TensorNodeId>>>, Error> {
        Ok(match self.0 {
            Fault::DerivativeOfOtherExtents => Some(vec![Some(graph.reduce(Reduction::Sum, cotangent, &[0])?)]),
            Fault::DerivativesOfMore => Some(vec![Some(cotangent); 2]),
            Fault::DerivativePanics => panic!("as it was told to"),
            _ => None,
        })
    }
}

impl ElementForm for Wrong {
    fn reads(&self, _: &[TensorType], index: &[usize], wanted: &mut ElementReads<'_>) -> Result<(), Error> {
        match self.0 {
            Fault::ReadsOutside => wanted.element(0, &[index[0] + 2]),
            Fault::ReadsAnotherInput => wanted.element(1, index),
            _ => wanted.element(0, index),
        }
    }

    fn element(&self, _: &[TensorType], _: &[usize], read: &[ScalarValue]) -> Result<ScalarValue, Error> {
        match self.0 {
            Fault::ElementOfAnotherType => Ok(ScalarValue::Float32(1.0)),
            Fault::ElementPanics => panic!("as it was told to"),
            _ => Ok(read[0].clone()),
        }
    }
}

#[test]
fn what_operations_of_users_answer_is_not_trusted() {
    let input = numbers(&[2], 0);
    let inputs = std::slice::from_ref(&input);
    let graph = |fault: Fault| {
        let mut g = TensorGraph::standard();
        let x = g.leaf("x", Scalar::Float64, &[2]).unwrap();
        let made = g.custom(Arc::new(Wrong(fault)), &[x]).unwrap();
        (g, x, made)
    };
    for (fault, kind) in [
        (Fault::Panics, Some(TensorErrorKind::Evaluation)),
        (Fault::WritesAnotherType, Some(TensorErrorKind::ElementType)),
        (Fault::WritesOutside, Some(TensorErrorKind::Index)),
        (Fault::NothingToDo, None),
    ] {
        let (g, _, made) = graph(fault);
        let executor = compiled(&g, &[made]);
        let (mut session, reader) = (executor.session(), executor.reader(0, inputs).unwrap());
        // A second time, so that nothing is left locked or half made.
        for _ in 0..2 {
            let found = [
                executor.run_reference(inputs).map(|mut made| made.remove(0).get::<f64>(&[1]).unwrap()),
                run(&executor, inputs).map(|mut made| made.remove(0).get::<f64>(&[1]).unwrap()),
                session.run_tensors(inputs).map(|made| made[0].get::<f64>(&[1]).unwrap()),
                reader.get::<f64>(&[1]),
            ];
            for found in found {
                assert_eq!(found.as_ref().map_err(kind_of), kind.as_ref().map_or(Ok(&0.0), |kind| Err(*kind)));
            }
        }
    }
    for (fault, kind) in [
        (Fault::ElementOfAnotherType, TensorErrorKind::ElementType),
        (Fault::ReadsOutside, TensorErrorKind::Index),
        (Fault::ReadsAnotherInput, TensorErrorKind::OperandCount),
        (Fault::ElementPanics, TensorErrorKind::Evaluation),
    ] {
        let (g, _, made) = graph(fault);
        let executor = compiled(&g, &[made]);
        let reader = executor.reader(0, inputs).unwrap();
        for _ in 0..2 {
            assert_eq!(reader.get::<f64>(&[1]).unwrap_err().tensor_kind().expect("of tensors"), kind, "{fault:?}");
        }
    }
    for (fault, message) in [
        (Fault::NoDerivative, "`wrong` has no derivative"),
        (
            Fault::DerivativeOfOtherExtents,
            "the gradient of `wrong` gives input 0 a cotangent f64 of [], not f64 of [2]",
        ),
        (Fault::DerivativesOfMore, "the gradient of `wrong` has 2 cotangents for 1 inputs"),
        (Fault::DerivativePanics, "`wrong` panicked: as it was told to"),
    ] {
        let (mut g, x, made) = graph(fault);
        let number = g.reduce(Reduction::Sum, made, &[0]).unwrap();
        assert_eq!(g.gradients(number, &[x]).unwrap_err().to_string(), message);
    }
    let mut g = TensorGraph::standard();
    let x = g.leaf("x", Scalar::Float64, &[2]).unwrap();
    let error = g.custom(Arc::new(Wrong(Fault::ShapePanics)), &[x]).unwrap_err();
    assert_eq!((error.to_string().as_str(), g.len()), ("`wrong` panicked: as it was told to", 1));
}

/// A user-defined operation that declares a result with the given element type and extents.
struct Shaped(Scalar, Vec<usize>);

impl TensorOp for Shaped {
    fn name(&self) -> &'static str {
        "shaped"
    }

    fn shape(&self, _: &[TensorType]) -> Result<TensorType, Error> {
        Ok(TensorType::new(self.0, &self.1))
    }
}

#[test]
fn shapes_that_no_tensor_has_are_refused() {
    let mut g = TensorGraph::standard();
    let mut refused = |scalar, extents: &[usize]| {
        g.custom(Arc::new(Shaped(scalar, extents.to_vec())), &[]).unwrap_err().tensor_kind().expect("of tensors")
    };
    assert_eq!(refused(Scalar::Text, &[1]), TensorErrorKind::ElementType);
    assert_eq!(refused(Scalar::Float64, &[1; 17]), TensorErrorKind::RankMismatch);
    assert_eq!(refused(Scalar::Float64, &[usize::MAX, 2]), TensorErrorKind::Limit);
    let large = g.custom(Arc::new(Shaped(Scalar::Float64, vec![1000])), &[]).unwrap();
    let limits = Limits::default().array_bytes(7999);
    let executor = g.compile(&[large], &Options::default().limits(limits)).unwrap();
    for made in [executor.run_reference(&[]), run(&executor, &[])] {
        assert_eq!(kind_of(&made.unwrap_err()), TensorErrorKind::Limit);
    }
    assert_eq!(executor.reader(0, &[]).unwrap().value(&[0]).unwrap_err().tensor_kind(), Some(TensorErrorKind::Limit));
    let executor = compiled(&g, &[large]);
    for made in [executor.run_reference(&[]), run(&executor, &[])] {
        let message = "`shaped` can neither be executed as a whole nor element by element";
        assert_eq!(message_of(&made.unwrap_err()), message);
    }
}

/// Tensors that exist at the same time count together for the limit. Freed tensors and views do not count.
#[test]
fn tensors_take_no_more_memory_together_than_they_may() {
    let mut g = TensorGraph::standard();
    let x = g.leaf("x", Scalar::Float64, &[100]).unwrap();
    let input = [Tensor::new(&[100], (0..100).map(f64::from).collect()).unwrap()];
    let mut sums = vec![g.reduce(Reduction::Sum, x, &[0]).unwrap()];
    for _ in 0..4 {
        let last = sums[sums.len() - 1];
        let moved = g.apply("math.subtract", &[x, last]).unwrap();
        let moved = g.barrier(moved).unwrap();
        let turned = g.slice(moved, &[Slice { start: 99, step: -1, count: 100 }]).unwrap();
        sums.push(g.reduce(Reduction::Max, turned, &[0]).unwrap());
    }
    let maps: Vec<TensorNodeId> =
        ["math.neg", "math.abs", "tensor.square"].map(|op| g.apply(op, &[x]).unwrap()).to_vec();
    let limited = |g: &TensorGraph, outputs: &[TensorNodeId], array_bytes| {
        let limits = Limits::default().array_bytes(array_bytes);
        g.compile(outputs, &Options::default().limits(limits)).unwrap()
    };
    let [small, large] = [1700, 2400];
    for bytes in [small, large] {
        // One of 800 bytes at a time.
        let executor = limited(&g, &sums[4..], bytes);
        assert!(executor.run_reference(&input).is_ok());
        assert!(run(&executor, &input).is_ok());
    }
    // Of 8,000 bytes, 7,200 and so on, one after the other: a session keeps all only where it may.
    let lengths = (1..10).map(|at| 100 * (10 - at));
    let mut parts = vec![g.concat(&[x; 10], 0).unwrap()];
    for count in lengths {
        let part = g.slice(parts[parts.len() - 1], &[Slice { start: 1, step: 1, count }]).unwrap();
        let next = g.apply("math.neg", &[part]).unwrap();
        parts.push(g.barrier(next).unwrap());
    }
    let last = parts[parts.len() - 1];
    let refused = limited(&g, &[last], large).run_reference(&input).unwrap_err();
    assert_eq!(kind_of(&refused), TensorErrorKind::Limit);
    for array_bytes in [20_000, 1 << 20] {
        let executor = limited(&g, &[last], array_bytes);
        let expected = executor.run_reference(&input).unwrap()[0].to_vec::<f64>().unwrap();
        let mut session = executor.session();
        for _ in 0..3 {
            assert_eq!(session.run_tensors(&input).unwrap()[0].to_vec::<f64>().unwrap(), expected);
        }
    }
    let executor = limited(&g, &maps, small);
    for error in [executor.run_reference(&input).unwrap_err(), run(&executor, &input).unwrap_err()] {
        let message = "with a tensor of [100], tensors take 2400 bytes; the limit for an evaluation is 1700";
        assert_eq!((kind_of(&error), message_of(&error)), (TensorErrorKind::Limit, message.to_owned()));
    }
    let executor = limited(&g, &maps, large);
    assert!(executor.run_reference(&input).is_ok() && run(&executor, &input).is_ok());
}

#[test]
fn plans_take_no_more_time_than_models_may() {
    let mut g = TensorGraph::standard();
    let x = g.leaf("x", Scalar::Float64, &[2]).unwrap();
    let mut sum = x;
    for _ in 0..1000 {
        sum = g.apply("math.subtract", &[sum, x]).unwrap();
    }
    let product = g.einsum("i,i,i->i", &[x, x, x]).unwrap();
    let limits = Limits::default().compile_time(std::time::Duration::ZERO);
    let limited = Options::default().limits(limits);
    for output in [sum, product] {
        let error = g.compile(&[output], &limited).unwrap_err();
        let message = "the model exceeds the limit `compile_time` of 0ns";
        assert!(kind_of(&error) == TensorErrorKind::Limit && error.to_string().starts_with(message), "{error}");
        assert!(g.compile(&[output], &options()).is_ok());
    }
}

/// A user-defined operation that calls a function when it is executed. No two of these are considered equal.
struct Does<F>(F);

impl<F: Fn() + Send + Sync + 'static> TensorOp for Does<F> {
    fn name(&self) -> &'static str {
        "does"
    }

    fn identity(&self) -> Option<Vec<u8>> {
        None
    }

    fn shape(&self, inputs: &[TensorType]) -> Result<TensorType, Error> {
        Ok(inputs[0].clone())
    }

    fn execute(&self, _: &[Tensor], _: &mut TensorMut<'_>) -> Result<(), Error> {
        self.0();
        Ok(())
    }
}

#[test]
fn a_run_ends_when_its_token_is_cancelled() {
    let token = Cancellation::new();
    let ran = Arc::new(AtomicUsize::new(0));
    let mut g = TensorGraph::standard();
    let x = g.leaf("x", Scalar::Float64, &[100]).expect("a leaf");
    let (cancels, counts) = (token.clone(), ran.clone());
    let cancelled = g.custom(Arc::new(Does(move || cancels.cancel())), &[x]).expect("a node");
    let count = move || _ = counts.fetch_add(1, Ordering::Relaxed);
    let last = g.custom(Arc::new(Does(count)), &[cancelled]).expect("a node");
    let mut session = compiled(&g, &[last]).session();
    let inputs = [numbers(&[100], 1)];
    session.set_cancellation(Some(token));
    let error = session.run_tensors(&inputs).expect_err("it was cancelled");
    assert_eq!((kind_of(&error), ran.load(Ordering::Relaxed)), (TensorErrorKind::Cancelled, 0));
    // Without a token nothing ends the run.
    session.set_cancellation(None);
    assert!(session.run_tensors(&inputs).is_ok());
    assert_eq!(ran.load(Ordering::Relaxed), 1);
}
