//! Tests statements that write their value over a tensor: in the tensor's memory if no later step reads the old
//! elements, and always with the value of the right side from before the assignment.

use super::statements;
use cembra::tensor::{
    CompileGraph, Data, OutputMemory, Reduction, Slice, Tensor, TensorGraph, TensorNodeId, same_bits,
};
use cembra::{Backend, Executor, Options, Scalar, Session};
use std::collections::BTreeMap;

fn numbers(extents: &[usize], seed: usize) -> Tensor {
    let number = |at: usize| (((at + seed) * 7919 % 1601) as f64 - 800.0) / 16.0;
    Tensor::new(extents, (0..extents.iter().product()).map(number).collect()).expect("a tensor")
}

/// Compiles a graph for both backends, with and without the reference's order of sums, and for several threads; each
/// with a session.
fn each_way(graph: &TensorGraph, node: TensorNodeId) -> [(Executor, Session); 4] {
    let with = |backend, is_in_order, threads| {
        let options = Options::default().backend(backend).reference_order(is_in_order).min_parallel_elements(1000);
        let executor = graph.compile(&[node], &options).expect("an executor");
        let mut session = executor.session();
        session.set_threads(threads);
        (executor, session)
    };
    let native = |is_in_order, threads| with(Backend::Native, is_in_order, threads);
    [with(Backend::Interpreter, false, 1), native(false, 1), native(true, 1), native(false, 3)]
}

/// Runs the assignment of a value, which `build` makes of `x` and `y`, to `x`, in all configurations and twice each.
/// Asserts that the value is the reference's, and returns which memory it was written to. No other reference to the
/// tensors exists.
fn written(
    extents: [&[usize]; 2],
    build: impl Fn(&mut TensorGraph, TensorNodeId, TensorNodeId) -> TensorNodeId,
) -> OutputMemory {
    let mut g = TensorGraph::standard();
    let [x, y] = [("x", extents[0]), ("y", extents[1])]
        .map(|(name, extents)| g.leaf(name, Scalar::Float64, extents).expect("a leaf"));
    let value = build(&mut g, x, y);
    let mut all = Vec::new();
    for (executor, mut session) in each_way(&g, value) {
        let plan = executor.prepare_for(&extents).expect("a plan");
        let mut tensors = vec![numbers(extents[0], 1), numbers(extents[1], 2)];
        for _ in 0..2 {
            let expected = executor.run_reference(&tensors).expect("a value");
            let before = std::ptr::from_ref(tensors[0].data());
            all.push(session.run_over(&mut tensors, 0).expect("a value"));
            let is_same = std::ptr::eq(before, tensors[0].data());
            assert_eq!(is_same, all.last() != Some(&OutputMemory::Made), "{plan}");
            if tensors[0].extents() != extents[0] {
                return all[0];
            }
            assert!(same_bits(&tensors[0], &expected[0]), "{plan}\n{:?} is not {:?}", tensors[0], expected[0]);
        }
    }
    assert!(all.iter().all(|written| *written == all[0]), "{all:?}");
    all[0]
}

fn map(g: &mut TensorGraph, op: &str, operands: &[TensorNodeId]) -> TensorNodeId {
    g.apply(op, operands).expect("a value")
}

#[test]
fn what_is_read_where_it_is_written_is_written_over() {
    // Fewer elements than a block has, some blocks with a rest of one line and of several, and more than a thread does at once.
    for extents in [&[3][..], &[], &[10_000], &[130, 70], &[5, 1, 4099], &[0, 3]] {
        let one_more = |g: &mut TensorGraph, x: TensorNodeId, _| {
            let one = g.constant(Scalar::Float64, 1.0).unwrap();
            map(g, "math.add", &[x, one])
        };
        assert_eq!(written([extents, &[]], one_more), OutputMemory::InPlace);
        let both = |g: &mut TensorGraph, x: TensorNodeId, y: TensorNodeId| {
            let two = g.constant(Scalar::Float64, 2.0).unwrap();
            let twice = map(g, "math.multiply", &[two, x]);
            map(g, "math.subtract", &[twice, y])
        };
        assert_eq!(written([extents, extents], both), OutputMemory::InPlace);
        assert_eq!(
            written([extents, &[1]], both),
            if extents.is_empty() { OutputMemory::Made } else { OutputMemory::InPlace }
        );
        // The target is not read at all.
        let other = |g: &mut TensorGraph, _, y: TensorNodeId| map(g, "math.neg", &[y]);
        assert_eq!(written([extents, extents], other), OutputMemory::InPlace);
    }
    // Another tensor may be seen in any order.
    let turned = |g: &mut TensorGraph, x: TensorNodeId, y: TensorNodeId| {
        let y = g.transpose(y, &[1, 0]).unwrap();
        map(g, "math.add", &[x, y])
    };
    assert_eq!(written([&[90, 110], &[110, 90]], turned), OutputMemory::InPlace);
    assert_eq!(written([&[90, 90], &[90, 90]], turned), OutputMemory::InPlace);
    // Two transpositions are none.
    let twice = |g: &mut TensorGraph, x: TensorNodeId, y: TensorNodeId| {
        let turned = g.transpose(x, &[1, 0]).unwrap();
        let back = g.transpose(turned, &[1, 0]).unwrap();
        map(g, "math.multiply", &[back, y])
    };
    assert_eq!(written([&[90, 90], &[90, 90]], twice), OutputMemory::InPlace);
}

#[test]
fn what_is_read_elsewhere_gets_memory() {
    let add = |g: &mut TensorGraph, a, b| map(g, "math.add", &[a, b]);
    let transposed = |g: &mut TensorGraph, x, _| {
        let turned = g.transpose(x, &[1, 0]).unwrap();
        add(g, x, turned)
    };
    assert_eq!(written([&[90, 90], &[]], transposed), OutputMemory::Made);
    let first_row = |g: &mut TensorGraph, x, _| {
        let row = g.slice(x, &[Slice { start: 0, step: 1, count: 1 }, Slice::all(100)]).unwrap();
        add(g, x, row)
    };
    assert_eq!(written([&[90, 100], &[]], first_row), OutputMemory::Made);
    let first_column = |g: &mut TensorGraph, x, _| {
        let column = g.slice(x, &[Slice::all(90), Slice { start: 0, step: 1, count: 1 }]).unwrap();
        add(g, x, column)
    };
    assert_eq!(written([&[90, 100], &[]], first_column), OutputMemory::Made);
    let diagonal = |g: &mut TensorGraph, x, _| {
        let diagonal = g.with_axes(x, &[0, 0]).unwrap();
        add(g, x, diagonal)
    };
    assert_eq!(written([&[90, 90], &[]], diagonal), OutputMemory::Made);
    let backwards = |g: &mut TensorGraph, x, _| {
        let back = g.slice(x, &[Slice { start: 9999, step: -1, count: 10_000 }]).unwrap();
        add(g, x, back)
    };
    assert_eq!(written([&[10_000], &[]], backwards), OutputMemory::Made);
    // Shifted by one to the right and to the left, what is left over from the other tensor.
    for (own, other, is_first) in [(0, 9999, false), (1, 0, true)] {
        let shifted = |g: &mut TensorGraph, x, y| {
            let own = g.slice(x, &[Slice { start: own, step: 1, count: 9999 }]).unwrap();
            let own = map(g, "math.neg", &[own]);
            let other = g.slice(y, &[Slice { start: other, step: 1, count: 1 }]).unwrap();
            let parts = if is_first { [own, other] } else { [other, own] };
            g.concat(&parts, 0).unwrap()
        };
        assert_eq!(written([&[10_000], &[10_000]], shifted), OutputMemory::Made);
    }
    let reshaped = |g: &mut TensorGraph, x, _| {
        let flat = g.reshape(x, &[8100]).unwrap();
        let cut = g.slice(flat, &[Slice { start: 0, step: 1, count: 90 }]).unwrap();
        add(g, x, cut)
    };
    assert_eq!(written([&[90, 90], &[]], reshaped), OutputMemory::Made);
    let product = |g: &mut TensorGraph, x, _| g.einsum("ij,jk->ik", &[x, x]).unwrap();
    assert_eq!(written([&[20, 20], &[]], product), OutputMemory::Made);
    let more_of_a_product = |g: &mut TensorGraph, x, y| {
        let product = g.einsum("ij,jk->ik", &[x, y]).unwrap();
        add(g, product, x)
    };
    assert_eq!(written([&[80, 80], &[80, 80]], more_of_a_product), OutputMemory::Made);
    // Another layout of memory that is there takes none.
    let turned = |g: &mut TensorGraph, x, _| g.transpose(x, &[1, 0]).unwrap();
    assert_eq!(written([&[90, 90], &[]], turned), OutputMemory::Shared);
    assert_eq!(written([&[90, 80], &[]], turned), OutputMemory::Shared);
}

#[test]
fn what_is_reduced_or_multiplied_first_is_in_other_memory() {
    let below = |axis: usize| {
        move |g: &mut TensorGraph, x: TensorNodeId, _| {
            let sums = g.reduce_keeping(Reduction::Sum, x, &[axis]).unwrap();
            map(g, "math.subtract", &[x, sums])
        }
    };
    assert_eq!(written([&[70, 130], &[]], below(0)), OutputMemory::InPlace);
    // By rows, of which there are several pieces.
    assert_eq!(written([&[1000, 130], &[]], below(1)), OutputMemory::InPlace);
    let softmax = |g: &mut TensorGraph, x, _| g.softmax(x, 1).unwrap();
    assert_eq!(written([&[1000, 130], &[]], softmax), OutputMemory::InPlace);
    // A row backwards is within the rows, columns are not.
    let backwards = |axis: usize| {
        move |g: &mut TensorGraph, x: TensorNodeId, _| {
            let mut slices = [Slice::all(130), Slice::all(130)];
            slices[axis] = Slice { start: 129, step: -1, count: 130 };
            let back = g.slice(x, &slices).unwrap();
            let sums = g.reduce_keeping(Reduction::Sum, back, &[1]).unwrap();
            let below = map(g, "math.subtract", &[back, sums]);
            map(g, "math.multiply", &[below, x])
        }
    };
    assert_eq!(written([&[130, 130], &[]], backwards(1)), OutputMemory::InPlace);
    assert_eq!(written([&[130, 130], &[]], backwards(0)), OutputMemory::Made);
    // A sum that is added, of something else, and of the target itself, of which another sum is needed then.
    let added = |g: &mut TensorGraph, x: TensorNodeId, y: TensorNodeId| {
        let sums = g.reduce(Reduction::Sum, y, &[1]).unwrap();
        map(g, "math.add", &[x, sums])
    };
    assert_eq!(written([&[100], &[100, 300]], added), OutputMemory::InPlace);
    let of_itself = |g: &mut TensorGraph, x: TensorNodeId, y: TensorNodeId| {
        let product = map(g, "math.multiply", &[x, y]);
        let sums = g.reduce(Reduction::Sum, product, &[1]).unwrap();
        map(g, "math.add", &[x, sums])
    };
    assert_eq!(written([&[300], &[300, 300]], of_itself), OutputMemory::Made);
}

/// Runs the statements of a text, one after the other, and returns which memory each wrote its value to.
fn run(text: &str, tensors: &mut BTreeMap<String, Tensor>) -> Vec<OutputMemory> {
    text.split(';').map(|line| statements::run_over(line.trim(), tensors).expect("a value")).collect()
}

fn named<const N: usize>(tensors: [(&str, Tensor); N]) -> BTreeMap<String, Tensor> {
    tensors.map(|(name, tensor)| (name.to_owned(), tensor)).into()
}

#[test]
fn statements_write_over_what_nobody_else_has() {
    let ones = || Tensor::new(&[2, 2], vec![1.0, 2.0, 3.0, 4.0]).unwrap();
    // A product that is added and does not read the target.
    let mut tensors = named([("x", ones()), ("a", ones())]);
    assert_eq!(run(r#"x("i,k") += a("i,j") * a("j,k")"#, &mut tensors), [OutputMemory::InPlace]);
    assert_eq!(tensors["x"].to_vec::<f64>().unwrap(), [8.0, 12.0, 18.0, 26.0]);
    // One that does, and a sum.
    assert_eq!(
        run(r#"x("i,k") += x("i,j") * a("j,k"); s("") = x("i,j").sum()"#, &mut tensors),
        [OutputMemory::Made; 2]
    );
    assert_eq!(tensors["x"].to_vec::<f64>().unwrap(), [52.0, 76.0, 114.0, 166.0]);
    assert_eq!(tensors["s"].to_vec::<f64>().unwrap(), [408.0]);
    // The target is no tensor yet, or is not read.
    assert_eq!(
        run(r#"t("i,j") = 3 * a("i,j"); t("j,i") = 2 * a("i,j")"#, &mut tensors),
        [OutputMemory::Made, OutputMemory::InPlace]
    );
    assert_eq!(tensors["t"].to_vec::<f64>().unwrap(), [2.0, 6.0, 4.0, 8.0]);
    // Somebody else keeps what he has.
    let kept = tensors["x"].clone();
    assert_eq!(run(r#"x("i,j") *= a("i,j")"#, &mut tensors), [OutputMemory::Made]);
    assert_eq!(kept.to_vec::<f64>().unwrap(), [52.0, 76.0, 114.0, 166.0]);
    assert_eq!(tensors["x"].to_vec::<f64>().unwrap(), [52.0, 152.0, 342.0, 664.0]);
    // So does another name, which gets a layout of the memory only; then both have memory of their own.
    assert_eq!(
        run(r#"y("i,j") = x("j,i"); x("i,j") -= y("i,j"); x("i,j") *= y("i,j")"#, &mut tensors),
        [OutputMemory::Shared, OutputMemory::Made, OutputMemory::InPlace]
    );
    assert_eq!(tensors["y"].to_vec::<f64>().unwrap(), [52.0, 342.0, 152.0, 664.0]);
    assert_eq!(tensors["x"].to_vec::<f64>().unwrap(), [0.0, -190.0 * 342.0, 190.0 * 152.0, 0.0]);
}

#[test]
fn a_part_of_larger_memory_is_written_over_alone() {
    let all = Tensor::new(&[4, 2], (0..8).map(f64::from).collect()).unwrap();
    let rows = |start, step| all.sliced(&[Slice { start, step, count: 2 }, Slice::all(2)]).unwrap();
    let own = |tensor: Tensor| Tensor::from_parts(tensor.data().clone(), tensor.layout().clone()).unwrap();
    let twice = r#"x("i,j") = 2 * x("i,j")"#;
    // Somebody else has all of it.
    let mut tensors = named([("x", rows(1, 1))]);
    assert_eq!(run(twice, &mut tensors), [OutputMemory::Made]);
    assert_eq!(all.to_vec::<f64>().unwrap(), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]);
    // Nobody has.
    let mut tensors = named([("x", own(rows(1, 1)))]);
    assert_eq!(run(twice, &mut tensors), [OutputMemory::InPlace]);
    assert_eq!(tensors["x"].to_vec::<f64>().unwrap(), [4.0, 6.0, 8.0, 10.0]);
    let whole = Tensor::new(&[8], vec![0.0, 1.0, 4.0, 6.0, 8.0, 10.0, 6.0, 7.0]).unwrap();
    assert_eq!(tensors["x"].data(), whole.data());
    // Every other row, and rows backwards.
    for (start, step) in [(0, 2), (3, -1)] {
        let mut tensors = named([("x", own(rows(start, step)))]);
        let expected: Vec<f64> = rows(start, step).to_vec::<f64>().unwrap().iter().map(|x| 2.0 * x).collect();
        assert_eq!(run(twice, &mut tensors), [OutputMemory::Made]);
        assert_eq!(tensors["x"].to_vec::<f64>().unwrap(), expected);
    }
}

#[test]
fn what_fails_changes_nothing() {
    let mut g = TensorGraph::standard();
    let [x, y] = ["x", "y"].map(|name| g.leaf(name, Scalar::Int64, &[10_000]).unwrap());
    let quotient = g.apply("math.floordiv", &[x, y]).unwrap();
    let one = g.constant(Scalar::Int64, 1.0).unwrap();
    let more = g.apply("math.add", &[quotient, one]).unwrap();
    let on_each = |session: &mut Session, divisor: i64| {
        let mut divisors = vec![2; 10_000];
        divisors[9_000] = divisor;
        let whole = |elements| Tensor::new(&[10_000], elements).unwrap();
        let mut tensors = vec![whole((0..10_000).collect()), whole(divisors)];
        let written = session.run_over(&mut tensors, 0);
        (written.ok(), tensors[0].to_vec::<i64>().unwrap())
    };
    // What may fail is computed in other memory, whether it fails or not; what follows it is written over the target.
    for (_, mut session) in each_way(&g, quotient) {
        assert_eq!(on_each(&mut session, 0), (None, (0..10_000).collect()));
        assert_eq!(on_each(&mut session, 2), (Some(OutputMemory::Made), (0..10_000).map(|x| x / 2).collect()));
    }
    for (_, mut session) in each_way(&g, more) {
        assert_eq!(on_each(&mut session, 0), (None, (0..10_000).collect()));
        assert_eq!(on_each(&mut session, 2), (Some(OutputMemory::InPlace), (0..10_000).map(|x| x / 2 + 1).collect()));
    }
    // The target of a statement that fails is there as it was.
    let mut tensors = named([("x", numbers(&[3], 1)), ("y", numbers(&[4], 1))]);
    for run in [statements::run, |line: &str, tensors: &mut _| statements::run_over(line, tensors).map(drop)] {
        assert!(run(r#"x("i") += 1.0 * y("i")"#, &mut tensors).is_err());
        assert_eq!(tensors["x"], numbers(&[3], 1));
    }
}

#[test]
fn a_plan_writes_over_tensors_that_lie_otherwise() {
    let mut g = TensorGraph::standard();
    let [x, y] = ["x", "y"].map(|name| g.leaf(name, Scalar::Float64, &[120, 70]).unwrap());
    let sum = g.apply("math.add", &[x, y]).unwrap();
    let turned = || numbers(&[70, 120], 3).transposed(&[1, 0]).unwrap();
    let plain = || numbers(&[120, 70], 1);
    // Rows of larger memory, which nobody else has.
    let part = || {
        let all = numbers(&[200, 70], 2).sliced(&[Slice { start: 9, step: 1, count: 120 }, Slice::all(70)]).unwrap();
        Tensor::from_parts(all.data().clone(), all.layout().clone()).unwrap()
    };
    for (_, mut session) in each_way(&g, sum) {
        for (target, mut tensors, expected) in [
            (0, vec![plain(), plain()], OutputMemory::InPlace),
            (0, vec![plain(), turned()], OutputMemory::InPlace),
            (0, vec![part(), turned()], OutputMemory::InPlace),
            (1, vec![plain(), turned()], OutputMemory::Made),
            (1, vec![turned(), plain()], OutputMemory::InPlace),
            (1, vec![part(), part()], OutputMemory::InPlace),
            (2, vec![plain(), turned(), plain()], OutputMemory::InPlace),
            (2, vec![part(), part(), part()], OutputMemory::InPlace),
            (2, vec![plain(), turned(), turned()], OutputMemory::Made),
            (2, vec![plain(), plain()], OutputMemory::Made),
        ] {
            // The session writes to the memory of neither this tensor nor the target.
            let value = session.run_tensors(&tensors[..2]).unwrap().to_vec();
            assert_eq!(session.run_over(&mut tensors, target).unwrap(), expected);
            assert!(same_bits(&tensors[target], &value[0]));
            if tensors[target].data().len() > 120 * 70 {
                // What is before and behind is as it was.
                let (made, before) = (tensors[target].data(), numbers(&[200, 70], 2));
                let all = |data: &Data| Tensor::from_parts(data.clone(), before.layout().clone()).unwrap();
                for (start, count) in [(0, 9), (129, 71)] {
                    let rows = [Slice { start, step: 1, count }, Slice::all(70)];
                    assert!(same_bits(&all(made).sliced(&rows).unwrap(), &before.sliced(&rows).unwrap()));
                }
            }
        }
        // Both are one memory, or there is no place.
        let one = plain();
        assert_eq!(session.run_over(&mut vec![one.clone(), one], 0).unwrap(), OutputMemory::Made);
        assert!(session.run_over(&mut vec![plain(), plain()], 3).is_err());
    }
}
