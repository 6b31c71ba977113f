//! Tests readers of single elements of tensors: an element has the bits that it has in the whole tensor; only the
//! values that it depends on are computed, each once; and repeated accesses do not allocate.

use crate::compiled::kind_of;
use crate::counting;
use cembra::Error;

use cembra::tensor::{
    CompileGraph, Reader, Reduction, Slice, Tensor, TensorErrorKind, TensorGraph, TensorNodeId, same_bits,
};
use cembra::{Backend, Executor, Limits, Options, Scalar, ScalarValue};
use cembra_engine::Evaluator;

fn backends() -> [Options; 2] {
    [Backend::Interpreter, Backend::Native].map(|backend| Options::default().backend(backend))
}

fn compiled(graph: &TensorGraph, node: TensorNodeId, options: &Options) -> Executor {
    graph.compile(&[node], options).expect("an executor")
}

/// Reads one element, without compiling expressions for it.
fn get(
    graph: &TensorGraph,
    node: TensorNodeId,
    inputs: &[Tensor],
    (options, index): (&Options, &[usize]),
) -> Result<ScalarValue, Error> {
    Reader::once(graph, node, inputs, &Evaluator::new(options))?.value(index)
}

/// Returns a tensor of numbers of many magnitudes.
fn numbers(extents: &[usize], seed: usize) -> Tensor {
    let count = extents.iter().product();
    let number = |at: usize| (((at + seed) * 7919 % 1601) as f64).sin() * 10_f64.powi((at % 7) as i32 - 3);
    Tensor::new(extents, (0..count).map(number).collect()).expect("a value")
}

/// Compares each element that a reader gives, for all kinds of readers, with the whole tensor.
fn check(graph: &TensorGraph, node: TensorNodeId, inputs: &[Tensor]) {
    for options in backends() {
        let (executor, on) = (compiled(graph, node, &options), Evaluator::new(&options));
        let whole = executor.run_reference(inputs).expect("a value").remove(0).to_vec::<f64>().expect("floats");
        let prepared = executor.reader(0, inputs).expect("a reader");
        let once = Reader::once(graph, node, inputs, &on).expect("a reader");
        for reader in [prepared, once] {
            let extents = reader.extents().to_vec();
            for (number, expected) in whole.iter().enumerate() {
                let mut rest = number;
                let mut index: Vec<usize> =
                    extents.iter().rev().map(|extent| (rest % extent, rest /= extent).0).collect();
                index.reverse();
                let found = reader.get::<f64>(&index).expect("an element");
                assert!(
                    same_bits(&Tensor::scalar(found), &Tensor::scalar(*expected)),
                    "{found} at {index:?}, not {expected}"
                );
            }
        }
    }
}

#[test]
fn elements_of_what_has_no_operands_are_read_by_their_indices() {
    let mut g = TensorGraph::standard();
    let x = g.leaf("", Scalar::Float64, &[4, 5]).unwrap();
    let known = g.constant_tensor(&numbers(&[5, 4], 3).transposed(&[1, 0]).unwrap()).unwrap();
    let shifted = g.apply("math.add", &[x, known]).unwrap();
    let turned = g.transpose(known, &[1, 0]).unwrap();
    let best = g.argmax(shifted, 0).unwrap();
    let indices = g.iota(7).unwrap();
    let inputs = [numbers(&[4, 5], 0)];
    for node in [shifted, turned, known, best, indices] {
        let float = g.cast(node, Scalar::Float64).unwrap();
        check(&g, float, &inputs);
    }
}

#[test]
fn elements_are_those_of_the_whole() {
    let mut g = TensorGraph::standard();
    let [a, b, c] = [[30, 200], [200, 30], [30, 30]].map(|extents| g.leaf("", Scalar::Float64, &extents).unwrap());
    let inputs = [numbers(&[30, 200], 0), numbers(&[200, 30], 1), numbers(&[30, 30], 2)];
    let softmax = g.softmax(a, 1).unwrap();
    let product = g.einsum("ij,jk->ki", &[softmax, b]).unwrap();
    let sums = g.reduce_keeping(Reduction::Sum, b, &[0]).unwrap();
    let shifted = g.apply("math.add", &[product, sums]).unwrap();
    let diagonal = g.einsum("ii->i", &[c]).unwrap();
    let scaled = g.apply("math.multiply", &[shifted, diagonal]).unwrap();
    let normal = g.layer_norm(scaled, 0, 1e-3).unwrap();
    let cut =
        g.slice(normal, &[Slice { start: 28, step: -3, count: 9 }, Slice { start: 1, step: 2, count: 14 }]).unwrap();
    let flat = g.reshape(cut, &[7, 18]).unwrap();
    check(&g, flat, &inputs);
    // What derivatives are made of: zeros about a slice and a diagonal, and sums over what was broadcast.
    let total = g.reduce(Reduction::Sum, flat, &[0, 1]).unwrap();
    let gradients = g.gradients(total, &[c]).unwrap();
    check(&g, gradients[0], &inputs);
}

#[test]
fn sums_have_their_order() {
    // Chains of 64 for the last axis, several of them side by side for the first, and one after the other.
    for axes in [&[0][..], &[1], &[0, 1]] {
        let mut g = TensorGraph::standard();
        let x = g.leaf("x", Scalar::Float64, &[7, 400]).unwrap();
        let wave = g.apply("sin", &[x]).unwrap();
        let sum = g.reduce(Reduction::Sum, wave, axes).unwrap();
        check(&g, sum, &[numbers(&[7, 400], 3)]);
    }
    let mut g = TensorGraph::standard();
    let x = g.leaf("x", Scalar::Float32, &[70_000]).unwrap();
    let sum = g.reduce(Reduction::Sum, x, &[0]).unwrap();
    let x = Tensor::new(&[70_000], (0..70_000).map(|at| 1.0 / (at as f32 + 0.5)).collect()).unwrap();
    let x = std::slice::from_ref(&x);
    for options in backends() {
        let executor = compiled(&g, sum, &options);
        let whole = ScalarValue::Float32(executor.run_reference(x).unwrap()[0].get::<f32>(&[]).unwrap());
        assert_eq!(executor.reader(0, x).unwrap().value(&[]).unwrap(), whole);
        assert_eq!(get(&g, sum, x, (&options, &[])).unwrap(), whole);
    }
}

#[test]
fn scatters_gathers_and_integers_wrap_alike() {
    let mut g = TensorGraph::standard();
    let x = g.leaf("x", Scalar::Int32, &[3, 4]).unwrap();
    let named = g.leaf("named", Scalar::Int64, &[2, 2]).unwrap();
    let taken = g.take(x, named, 1).unwrap();
    let scattered = g.place_take(taken, named, 1, &[3, 6]).unwrap();
    let both = g.concat(&[x, scattered], 1).unwrap();
    let product = g.reduce(Reduction::Product, both, &[0]).unwrap();
    let squares = g.einsum("ij,ij,ik->jk", &[both, both, both]).unwrap();
    let elements = vec![i32::MAX, 2, -3, 4, 5, i32::MIN, 7, 8, 9, 10, 65_536, 12];
    let inputs = [Tensor::new(&[3, 4], elements).unwrap(), Tensor::new(&[2, 2], vec![3_i64, 0, 0, 2]).unwrap()];
    let nodes = [taken, scattered, both, product, squares];
    for options in backends() {
        // Outputs are read by their positions.
        let executor = g.compile(&nodes, &options).unwrap();
        for (at, whole) in executor.run_reference(&inputs).unwrap().iter().enumerate() {
            let extents = whole.extents().to_vec();
            let reader = executor.reader(at, &inputs).unwrap();
            for number in 0..extents.iter().product() {
                let mut rest = number;
                let mut index: Vec<usize> =
                    extents.iter().rev().map(|extent| (rest % extent, rest /= extent).0).collect();
                index.reverse();
                assert_eq!(reader.get::<i32>(&index).unwrap(), whole.get::<i32>(&index).unwrap(), "{index:?}");
            }
        }
        // An index outside of its axis is an error, if it is looked at.
        let wrong = [inputs[0].clone(), Tensor::new(&[2, 2], vec![3_i64, 0, 4, 2]).unwrap()];
        let reader = executor.reader(0, &wrong).unwrap();
        assert_eq!(reader.get::<i32>(&[0, 0, 0]).unwrap(), 4);
        assert_eq!(reader.get::<i32>(&[0, 1, 0]).unwrap_err().tensor_kind(), Some(TensorErrorKind::Index));
        // The scatter has six places, and looks at what belongs to the one that is read.
        let reader = executor.reader(1, &wrong).unwrap();
        let at = |index: &[usize]| [reader.value(index), get(&g, scattered, &wrong, (&options, index))];
        assert_eq!(at(&[0, 0]).map(Result::unwrap), [const { ScalarValue::Int32(i32::MAX) }; 2]);
        assert_eq!(at(&[0, 4]).map(|made| made.unwrap_err().tensor_kind()), [Some(TensorErrorKind::Index); 2]);
    }
}

#[test]
fn only_what_is_needed_is_computed() {
    let mut g = TensorGraph::standard();
    let [a, b] = [[2, 3], [2, 3]].map(|extents| g.leaf("", Scalar::Int32, &extents).unwrap());
    let quotient = g.apply("math.floordiv", &[a, b]).unwrap();
    let rows = g.reduce(Reduction::Sum, quotient, &[1]).unwrap();
    let inputs = [vec![6, 7, 8, 9, 10, 11], vec![2, 2, 2, 3, 0, 3]].map(|all| Tensor::new(&[2, 3], all).unwrap());
    for options in backends() {
        let executor = compiled(&g, rows, &options);
        assert_eq!(kind_of(&executor.run_reference(&inputs).unwrap_err()), TensorErrorKind::Evaluation);
        let reader = executor.reader(0, &inputs).unwrap();
        assert_eq!(reader.get::<i32>(&[0]).unwrap(), 10);
        assert_eq!(reader.get::<i32>(&[1]).unwrap_err().tensor_kind(), Some(TensorErrorKind::Evaluation));
        // An access that failed leaves nothing behind.
        assert_eq!(reader.get::<i32>(&[0]).unwrap(), 10);
        assert_eq!(
            get(&g, rows, &inputs, (&options, &[1])).unwrap_err().tensor_kind(),
            Some(TensorErrorKind::Evaluation)
        );
    }
}

#[test]
fn indices_and_types_are_checked() {
    let mut g = TensorGraph::standard();
    let x = g.leaf("x", Scalar::Float64, &[2, 3]).unwrap();
    let wave = g.apply("sin", &[x]).unwrap();
    let inputs = [numbers(&[2, 3], 0)];
    let [options, _] = backends();
    let executor = compiled(&g, wave, &options);
    let reader = executor.reader(0, &inputs).unwrap();
    for (index, kind) in [
        (&[0][..], TensorErrorKind::RankMismatch),
        (&[2, 0], TensorErrorKind::Index),
        (&[0, 3], TensorErrorKind::Index),
    ] {
        assert_eq!(reader.get::<f64>(index).unwrap_err().tensor_kind(), Some(kind));
        assert_eq!(get(&g, wave, &inputs, (&options, index)).unwrap_err().tensor_kind(), Some(kind));
    }
    assert_eq!(reader.get_linear::<f64>(4).unwrap(), reader.get::<f64>(&[1, 1]).unwrap());
    assert_eq!(reader.get_linear::<f64>(6).unwrap_err().tensor_kind(), Some(TensorErrorKind::Index));
    assert_eq!(reader.get::<f32>(&[0, 0]).unwrap_err().tensor_kind(), Some(TensorErrorKind::ElementType));
    assert_eq!(kind_of(&executor.reader(0, &[]).unwrap_err()), TensorErrorKind::OperandCount);
    assert_eq!(kind_of(&executor.reader(1, &inputs).unwrap_err()), TensorErrorKind::OperandCount);
    let nothing = g.leaf("nothing", Scalar::Float64, &[0, 3]).unwrap();
    let sum = g.reduce(Reduction::Sum, nothing, &[0]).unwrap();
    let inputs = [numbers(&[2, 3], 0), numbers(&[0, 3], 0)];
    assert_eq!(get(&g, sum, &inputs, (&options, &[2])).unwrap(), ScalarValue::Float64(0.0));
    assert_eq!(get(&g, nothing, &inputs, (&options, &[0, 0])).unwrap_err().tensor_kind(), Some(TensorErrorKind::Index));
    let executor = g.compile(&[sum, nothing], &options).unwrap();
    assert_eq!(executor.reader(0, &inputs).unwrap().value(&[2]).unwrap(), ScalarValue::Float64(0.0));
    assert_eq!(
        executor.reader(1, &inputs).unwrap().value(&[0, 0]).unwrap_err().tensor_kind(),
        Some(TensorErrorKind::Index)
    );
}

#[test]
fn long_chains_take_no_stack() {
    const LINKS: usize = 20_000;
    let mut g = TensorGraph::standard();
    let [x, y] = ["x", "y"].map(|name| g.leaf(name, Scalar::Float64, &[2]).unwrap());
    let mut made = x;
    for _ in 0..LINKS {
        let sum = g.apply("math.add", &[made, y]).unwrap();
        made = g.apply("math.multiply", &[sum, y]).unwrap();
    }
    let inputs = [vec![0.5, 2.0], vec![0.75, -0.5]].map(|all| Tensor::new(&[2], all).unwrap());
    let expected = (0..LINKS).fold(2.0, |made, _| (made - 0.5) * -0.5);
    for options in backends() {
        assert_eq!(get(&g, made, &inputs, (&options, &[1])).unwrap(), ScalarValue::Float64(expected));
        let executor = compiled(&g, made, &options);
        assert_eq!(executor.reader(0, &inputs).unwrap().get::<f64>(&[1]).unwrap(), expected);
    }
}

#[test]
fn nothing_is_computed_twice() {
    // Each element is the sum of two of the node before: without knowing those there would be 2^60 of them.
    let mut g = TensorGraph::standard();
    let mut made = g.leaf("x", Scalar::Float64, &[64]).unwrap();
    for width in (4..64).rev() {
        let slice = |start| [Slice { start, step: 1, count: width }];
        let [left, right] = [slice(0), slice(1)].map(|slice| g.slice(made, &slice).unwrap());
        made = g.apply("math.add", &[left, right]).unwrap();
    }
    check(&g, made, &[Tensor::new(&[64], (0..64).map(|at| f64::from(at) * 0.1).collect()).unwrap()]);
    // Products of products: an element is made of rows of all before.
    let mut g = TensorGraph::standard();
    let x = g.leaf("x", Scalar::Float64, &[12, 12]).unwrap();
    let half = g.constant(Scalar::Float64, 0.2).unwrap();
    let mut made = x;
    for _ in 0..20 {
        let product = g.einsum("ij,jk->ik", &[made, x]).unwrap();
        made = g.apply("math.multiply", &[product, half]).unwrap();
    }
    check(&g, made, &[Tensor::new(&[12, 12], (0..144).map(|at| f64::from(at).sin()).collect()).unwrap()]);
}

#[test]
fn what_needs_too_much_is_refused() {
    let mut g = TensorGraph::standard();
    let x = g.leaf("x", Scalar::Float64, &[300]).unwrap();
    let wave = g.apply("sin", &[x]).unwrap();
    let column = g.reshape(wave, &[300, 1]).unwrap();
    let square = g.apply("math.multiply", &[column, wave]).unwrap();
    let square = g.apply("cos", &[square]).unwrap();
    let matrix = g.einsum("ij,jk->ik", &[square, square]).unwrap();
    let trace = g.einsum("ii->", &[matrix]).unwrap();
    let limits = Limits::default().array_bytes(64 << 10);
    let executor = g.compile(&[trace, matrix], &Options::default().limits(limits)).unwrap();
    let inputs = [numbers(&[300], 0)];
    let reader = executor.reader(0, &inputs).unwrap();
    let refused = reader.get::<f64>(&[]).unwrap_err();
    assert_eq!(
        (refused.tensor_kind(), refused.diagnostics()[0].hints()),
        (Some(TensorErrorKind::Limit), &["evaluate the whole tensor".to_owned()][..])
    );
    assert!(executor.reader(1, &inputs).unwrap().get::<f64>(&[3, 299]).is_ok());
}

#[test]
fn accesses_allocate_nothing() {
    let mut g = TensorGraph::standard();
    let [a, b] = [[20, 100], [100, 20]].map(|extents| g.leaf("", Scalar::Float64, &extents).unwrap());
    let softmax = g.softmax(a, 1).unwrap();
    let product = g.einsum("ij,jk->ki", &[softmax, b]).unwrap();
    let inputs = [numbers(&[20, 100], 0), numbers(&[100, 20], 1)];
    for options in backends() {
        let executor = compiled(&g, product, &options);
        let reader = executor.reader(0, &inputs).unwrap();
        let mut sum = 0.0;
        let mut read = || (0..20).for_each(|at| sum += reader.get::<f64>(&[at, 19 - at]).unwrap());
        read();
        let before = counting::so_far();
        read();
        assert_eq!(counting::so_far() - before, 0);
    }
}

#[test]
fn threads_share_a_reader() {
    let mut g = TensorGraph::standard();
    let x = g.leaf("x", Scalar::Float64, &[8, 50]).unwrap();
    let softmax = g.softmax(x, 1).unwrap();
    let inputs = [numbers(&[8, 50], 0)];
    let [_, options] = backends();
    let executor = compiled(&g, softmax, &options);
    let whole = executor.run_reference(&inputs).unwrap().remove(0);
    let reader = executor.reader(0, &inputs).unwrap();
    std::thread::scope(|scope| {
        for row in 0..8 {
            let (reader, whole) = (&reader, &whole);
            scope.spawn(move || {
                for column in 0..50 {
                    let index = [row, column];
                    assert_eq!(reader.get::<f64>(&index).unwrap(), whole.get::<f64>(&index).unwrap());
                }
            });
        }
    });
}
