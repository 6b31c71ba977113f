//! Tests reductions of tensors against simple implementations in this file: the documented order in which floats are
//! added, and the largest float with NaNs and zeros of both signs. Elements have various layouts in memory, and are
//! reduced by plans, by the reference and one at a time.

use cembra::tensor::{CompileGraph, Element, Reduction, Slice, TensorGraph, TensorNodeId, same_bits};
use cembra::{Executor, Options, Scalar, Tensor};
use std::slice::from_ref;

/// Lengths around the limits at which the order of sums changes: 64 elements are added in sequence, more in 64 partial
/// sums, and blocks have 65,536 elements.
const LENGTHS: [usize; 12] = [1, 2, 63, 64, 65, 127, 128, 130, 1000, 65_536, 65_537, 65_601];

/// The number of rows of each tensor; a reduction gives one number per row.
const LINES: usize = 3;

/// Returns the sum of the numbers in the documented order: for more than 64 numbers, blocks of 65,536, each added in 64
/// partial sums.
fn in_chains(numbers: &[f64]) -> f64 {
    if numbers.len() <= 64 {
        return numbers.iter().fold(0.0, |sum, number| sum + number);
    }
    let mut total = 0.0;
    for block in numbers.chunks(65_536) {
        let mut chains = [0.0; 64];
        for (at, number) in block.iter().enumerate() {
            chains[at % 64] += number;
        }
        for width in [32, 16, 8, 4, 2, 1] {
            for at in 0..width {
                chains[at] += chains[at + width];
            }
        }
        total += chains[0];
    }
    total
}

/// Returns the largest or smallest number; NaN if one of them is NaN. -0 is less than 0.
fn extreme(reduction: Reduction, numbers: &[f64]) -> f64 {
    if numbers.iter().any(|number| number.is_nan()) {
        return f64::NAN;
    }
    let all = numbers.iter().copied();
    let found = if reduction == Reduction::Max { all.max_by(f64::total_cmp) } else { all.min_by(f64::total_cmp) };
    found.expect("a number")
}

/// Returns tensors with rows of `length` of the same elements and different layouts: contiguous rows, rows with gaps
/// between them, and rows whose elements have a large or a negative stride.
fn lying<T: Element>(elements: &[T], length: usize) -> Vec<Tensor> {
    let together = Tensor::new(&[LINES, length], elements.to_vec()).expect("a tensor");
    let apart = together.transposed(&[1, 0]).and_then(|turned| turned.row_major().transposed(&[1, 0]));
    let mut wide = Vec::new();
    let mut backwards: Vec<T> = Vec::new();
    for line in elements.chunks(length) {
        wide.extend_from_slice(line);
        wide.extend_from_slice(&elements[..5.min(length)]);
        backwards.extend(line.iter().rev());
    }
    let gaps = Tensor::new(&[LINES, length + 5.min(length)], wide).expect("a tensor");
    let gaps = gaps.sliced(&[Slice::all(LINES), Slice { start: 0, step: 1, count: length }]);
    let backwards = Tensor::new(&[LINES, length], backwards).expect("a tensor");
    let backwards = backwards.sliced(&[Slice::all(LINES), Slice { start: length - 1, step: -1, count: length }]);
    vec![together, apart.expect("a view"), gaps.expect("a view"), backwards.expect("a view")]
}

/// Returns a graph with three reductions over the last axis: of an input, of its negation, and of its differences from
/// the first reduction.
fn reduced(scalar: Scalar, length: usize, reduction: Reduction) -> (TensorGraph, [TensorNodeId; 3]) {
    let mut g = TensorGraph::standard();
    let x = g.leaf("x", scalar, &[LINES, length]).expect("a leaf");
    let plain = g.reduce(reduction, x, &[1]).expect("a node");
    let opposite = g.apply("math.neg", &[x]).expect("a node");
    let opposite = g.reduce(reduction, opposite, &[1]).expect("a node");
    let kept = g.reshape(plain, &[LINES, 1]).expect("a node");
    let below = g.apply("math.subtract", &[x, kept]).expect("a node");
    let below = g.reduce(reduction, below, &[1]).expect("a node");
    (g, [plain, opposite, below])
}

fn compiled(graph: &TensorGraph, node: TensorNodeId) -> Executor {
    graph.compile(&[node], &Options::default()).expect("an executor")
}

/// Returns the output as a plan computes it, and as the reference does.
fn run(executor: &Executor, inputs: &[Tensor]) -> [Tensor; 2] {
    let mut session = executor.session();
    let planned = session.run_tensors(inputs).expect("a value")[0].clone();
    [planned, executor.run_reference(inputs).expect("a value").remove(0)]
}

/// Asserts that the output is `expected`, computed by the reference, by a plan, and, for short rows, one element at a
/// time.
fn check<T: Element>(executor: &Executor, inputs: &[Tensor], expected: &[T], what: &dyn Fn() -> String) {
    let expected = Tensor::new(&[expected.len()], expected.to_vec()).expect("a tensor");
    let [planned, found] = run(executor, inputs);
    assert!(same_bits(&found, &expected), "{found:?} is not {expected:?}: {}", what());
    assert!(same_bits(&planned, &expected), "{planned:?} is not {expected:?}: {}, planned", what());
    if inputs[0].extents()[1] < 1000 {
        let reader = executor.reader(0, inputs).expect("a reader");
        let read = (0..LINES).map(|line| reader.get::<T>(&[line]).expect("an element")).collect();
        let read = Tensor::new(&[LINES], read).expect("a tensor");
        assert!(same_bits(&read, &expected), "{read:?} is not {expected:?}: {}, read", what());
    }
}

/// Returns a number of which sums are rounded, so that their order matters.
fn number(at: usize) -> f64 {
    ((at * 7919 % 1601) as f64).sin() * 10_f64.powi((at % 7) as i32 - 3)
}

#[test]
fn floats_are_added_in_the_order_that_is_stated() {
    for length in LENGTHS {
        let numbers: Vec<f64> = (0..LINES * length).map(number).collect();
        let singles: Vec<f32> = numbers.iter().map(|number| *number as f32).collect();
        let sums = |map: &dyn Fn(usize, f64) -> f64| -> Vec<f64> {
            let line = |line: &[f64]| line.iter().enumerate().map(|(at, number)| map(at, *number)).collect::<Vec<_>>();
            numbers.chunks(length).map(|own| in_chains(&line(own))).collect()
        };
        let (g, [plain, opposite, _]) = reduced(Scalar::Float64, length, Reduction::Sum);
        let [plain, opposite] = [plain, opposite].map(|node| compiled(&g, node));
        for (way, x) in lying(&numbers, length).iter().enumerate() {
            check(&plain, from_ref(x), &sums(&|_, number| number), &|| format!("{length} numbers, way {way}"));
            check(&opposite, from_ref(x), &sums(&|_, number| -number), &|| format!("{length} opposites, way {way}"));
        }
        let (g, [plain, ..]) = reduced(Scalar::Float32, length, Reduction::Sum);
        let plain = compiled(&g, plain);
        let expected: Vec<f32> = sums(&|_, number| f64::from(number as f32)).iter().map(|sum| *sum as f32).collect();
        for (way, x) in lying(&singles, length).iter().enumerate() {
            check(&plain, from_ref(x), &expected, &|| format!("{length} singles, way {way}"));
        }
    }
}

#[test]
fn products_are_rounded_before_they_are_added() {
    for length in LENGTHS {
        let [a, b] = [0, 77].map(|seed| (seed..seed + LINES * length).map(number).collect::<Vec<f64>>());
        let [a_single, b_single] = [&a, &b].map(|all| all.iter().map(|x| *x as f32).collect::<Vec<f32>>());
        let lines = |products: Vec<f64>| -> Vec<f64> { products.chunks(length).map(in_chains).collect() };
        let doubles = lines(a.iter().zip(&b).map(|(a, b)| a * b).collect());
        let singles = lines(a_single.iter().zip(&b_single).map(|(a, b)| f64::from(a * b)).collect());
        let singles: Vec<f32> = singles.into_iter().map(|sum| sum as f32).collect();
        // One line for all, and squares.
        let repeated = lines((0..LINES * length).map(|at| a[at] * b[at % length]).collect());
        let squares = lines(a.iter().map(|a| a * a).collect());
        for scalar in [Scalar::Float64, Scalar::Float32] {
            let mut g = TensorGraph::standard();
            let [x, y] = ["x", "y"].map(|name| g.leaf(name, scalar, &[LINES, length]).expect("a leaf"));
            let one = g.slice(y, &[Slice { start: 0, step: 1, count: 1 }, Slice::all(length)]).expect("a node");
            let mut sum = |factors: [TensorNodeId; 2]| {
                let product = g.apply("math.multiply", &factors).expect("a node");
                g.reduce(Reduction::Sum, product, &[1]).expect("a node")
            };
            let [product, by_one, square] = [sum([x, y]), sum([x, one]), sum([x, x])].map(|node| compiled(&g, node));
            if scalar == Scalar::Float32 {
                for (way, (x, y)) in lying(&a_single, length).into_iter().zip(lying(&b_single, length)).enumerate() {
                    check(&product, &[x, y], &singles, &|| format!("{length} singles, way {way}"));
                }
                continue;
            }
            for (way, (x, y)) in lying(&a, length).into_iter().zip(lying(&b, length)).enumerate() {
                let inputs = [x, y];
                check(&product, &inputs, &doubles, &|| format!("{length} products, way {way}"));
                check(&by_one, &inputs, &repeated, &|| format!("{length} products by one line, way {way}"));
                check(&square, &inputs, &squares, &|| format!("{length} squares, way {way}"));
            }
            // One lies in lines, the other does not.
            let mixed = [lying(&a, length).remove(0), lying(&b, length).remove(1)];
            check(&product, &mixed, &doubles, &|| format!("{length} products of two ways"));
        }
    }
}

#[test]
fn whole_numbers_wrap_wherever_they_are_added() {
    for length in LENGTHS.into_iter().filter(|length| *length < 2000) {
        let a: Vec<i32> = (0..LINES * length).map(|at| (at as i32).wrapping_mul(0x2545_f491)).collect();
        let sums: Vec<i32> =
            a.chunks(length).map(|line| line.iter().fold(0, |sum: i32, x| sum.wrapping_add(*x))).collect();
        let squares = |line: &[i32]| line.iter().fold(0, |sum: i32, x| sum.wrapping_add(x.wrapping_mul(*x)));
        let squares: Vec<i32> = a.chunks(length).map(squares).collect();
        let most: Vec<i32> = a.chunks(length).map(|line| line.iter().copied().max().expect("a number")).collect();
        let least: Vec<i32> = a.chunks(length).map(|line| line.iter().copied().min().expect("a number")).collect();
        for x in lying(&a, length) {
            for (reduction, expected) in [(Reduction::Sum, &sums), (Reduction::Max, &most), (Reduction::Min, &least)] {
                let (g, [plain, ..]) = reduced(Scalar::Int32, length, reduction);
                check(&compiled(&g, plain), from_ref(&x), expected, &|| format!("{reduction:?} of {length}"));
            }
            let mut g = TensorGraph::standard();
            let leaf = g.leaf("x", Scalar::Int32, &[LINES, length]).expect("a leaf");
            let square = g.apply("math.multiply", &[leaf, leaf]).expect("a node");
            let sum = g.reduce(Reduction::Sum, square, &[1]).expect("a node");
            check(&compiled(&g, sum), from_ref(&x), &squares, &|| format!("squares of {length}"));
        }
    }
}

/// Asserts that the largest and smallest number of each row of `length` numbers is right, as f64 and as f32.
fn check_extremes(numbers: &[f64], length: usize) {
    let singles: Vec<f32> = numbers.iter().map(|number| *number as f32).collect();
    for reduction in [Reduction::Max, Reduction::Min] {
        let of = |map: &dyn Fn(f64, f64) -> f64| -> [Vec<f64>; 2] {
            let line = |line: &[f64]| {
                let found = extreme(reduction, line);
                extreme(reduction, &line.iter().map(|number| map(*number, found)).collect::<Vec<_>>())
            };
            let single: Vec<f64> = singles.iter().copied().map(f64::from).collect();
            [numbers, &single[..]].map(|all| all.chunks(length).map(line).collect())
        };
        let expected = [of(&|number, _| number), of(&|number, _| -number)];
        let (g, nodes) = reduced(Scalar::Float64, length, reduction);
        let [plain, opposite, below] = nodes.map(|node| compiled(&g, node));
        let (narrow, [narrow_plain, narrow_opposite, _]) = reduced(Scalar::Float32, length, reduction);
        let [narrow_plain, narrow_opposite] = [narrow_plain, narrow_opposite].map(|node| compiled(&narrow, node));
        let [differences, _] = of(&|number, found| number - found);
        for (way, (x, single)) in lying(numbers, length).iter().zip(&lying(&singles, length)).enumerate() {
            let what = || format!("{reduction:?} of {length} such as {:?}, way {way}", &numbers[..3.min(length)]);
            check(&below, from_ref(x), &differences, &what);
            for (node, narrow_node, [double, narrowed]) in
                [(&plain, &narrow_plain, &expected[0]), (&opposite, &narrow_opposite, &expected[1])]
            {
                check(node, from_ref(x), double, &what);
                let narrowed: Vec<f32> = narrowed.iter().map(|number| *number as f32).collect();
                check(narrow_node, from_ref(single), &narrowed, &what);
            }
        }
    }
}

#[test]
fn the_largest_and_the_smallest_are_exact_wherever_they_are() {
    let negative_nan = f64::from_bits(f64::NAN.to_bits() | 1 << 63);
    let signaling = f64::from_bits(f64::INFINITY.to_bits() | 1 << 40);
    let specials = [0.0, -0.0, f64::NAN, negative_nan, signaling, f64::INFINITY, f64::NEG_INFINITY];
    let lengths = [1, 63, 64, 65, 300];
    // Among zeros of either sign, among others, and among those beyond whose size there are NaNs alone.
    let grounds = [0.0, -0.0, 1e-40, -1e-40, 3.5, -3.5, f64::INFINITY, f64::NEG_INFINITY];
    for (at, ground) in grounds.into_iter().enumerate() {
        for (which, special) in specials.into_iter().enumerate() {
            // Each length has all grounds, and all special numbers.
            let length = lengths[(at + which) % lengths.len()];
            let mut numbers = vec![ground; LINES * length];
            // At the beginning, at the end, and where chains begin again.
            for (line, at) in [0, length - 1, 64.min(length - 1)].into_iter().enumerate() {
                numbers[line * length + at] = special;
            }
            check_extremes(&numbers, length);
        }
    }
    for length in [1000, 65_537, 65_601] {
        let numbers: Vec<f64> = (0..LINES * length).map(number).collect();
        check_extremes(&numbers, length);
        let mut with_nan = numbers.clone();
        with_nan[2 * length - 1] = f64::NAN;
        check_extremes(&with_nan, length);
    }
}

#[test]
fn reductions_side_by_side_are_in_order() {
    // As many sums as are made at a time, and some more.
    for (count, width) in [(1, 3), (2, 70), (65, 70), (70, 2100)] {
        let mut numbers: Vec<f64> = (0..count * width).map(number).collect();
        numbers[width / 2] = f64::NAN;
        numbers[width - 1] = -0.0;
        let column = |at: usize| numbers.iter().skip(at).step_by(width).copied().collect::<Vec<f64>>();
        let x = Tensor::new(&[count, width], numbers.clone()).expect("a tensor");
        for reduction in [Reduction::Sum, Reduction::Max, Reduction::Min] {
            let of = |column: Vec<f64>| match reduction {
                Reduction::Sum => column.iter().fold(0.0, |sum, number| sum + number),
                _ => extreme(reduction, &column),
            };
            let mut g = TensorGraph::standard();
            let leaf = g.leaf("x", Scalar::Float64, &[count, width]).expect("a leaf");
            let opposite = g.apply("math.neg", &[leaf]).expect("a node");
            for (node, sign) in [(leaf, 1.0), (opposite, -1.0)] {
                let made = g.reduce(reduction, node, &[0]).expect("a node");
                let expected = (0..width).map(|at| of(column(at).iter().map(|number| sign * number).collect()));
                let expected = Tensor::new(&[width], expected.collect::<Vec<f64>>()).expect("a tensor");
                for found in run(&compiled(&g, made), from_ref(&x)) {
                    assert!(same_bits(&found, &expected), "{reduction:?} of {count} x {width}, times {sign}");
                }
            }
        }
    }
}

#[test]
fn nothing_is_reduced_to_what_changes_nothing() {
    for (extents, axis, count) in [([0, 3], 0, 3), ([3, 0], 1, 3), ([0, 3], 1, 0)] {
        let mut g = TensorGraph::standard();
        let x = g.leaf("x", Scalar::Float32, &extents).expect("a leaf");
        let square = g.apply("math.multiply", &[x, x]).expect("a node");
        let empty = Tensor::new(&extents, Vec::<f32>::new()).expect("a tensor");
        for (reduction, neutral) in [(Reduction::Sum, 0.0), (Reduction::Product, 1.0)] {
            for of in [x, square] {
                let made = g.reduce(reduction, of, &[axis]).expect("a node");
                for found in run(&compiled(&g, made), from_ref(&empty)) {
                    assert_eq!(*found.data(), f32::data(vec![neutral; count]), "{reduction:?} of {extents:?}");
                }
            }
        }
    }
}

#[test]
fn sums_over_axes_that_lie_across_are_those_of_their_positions() {
    // Of several blocks of lines with a rest, of few lines, of long ones, and of more axes.
    for (extents, axes) in [
        (&[300, 700][..], &[0, 1][..]),
        (&[7, 300], &[0, 1]),
        (&[9, 17_000], &[0, 1]),
        (&[16_000, 20], &[0, 1]),
        (&[5, 40, 90], &[0, 1, 2]),
        (&[5, 40, 90], &[1, 2]),
        (&[40, 5, 90], &[0, 2]),
    ] {
        let count: usize = extents.iter().product();
        let numbers = (0..count).map(|at| ((at * 7919 % 1601) as f64).sin() * 10_f64.powi((at % 7) as i32 - 3));
        let x = Tensor::new(extents, numbers.collect()).expect("a tensor");
        let mut order: Vec<usize> = (0..extents.len()).collect();
        let last = order.len() - 1;
        order.swap(last - 1, last);
        let turned = |x: &Tensor| x.transposed(&order).expect("a view").row_major().transposed(&order).expect("a view");
        let back: Vec<Slice> =
            extents.iter().map(|count| Slice { start: count - 1, step: -1, count: *count }).collect();
        let backwards = turned(&x.sliced(&back).expect("a view")).sliced(&back).expect("a view");
        for reduction in [Reduction::Sum, Reduction::Max] {
            let mut g = TensorGraph::standard();
            let leaf = g.leaf("x", Scalar::Float64, extents).expect("a leaf");
            let reduced = g.reduce(reduction, leaf, axes).expect("a node");
            let executor = compiled(&g, reduced);
            let [expected, reference] = run(&executor, from_ref(&x));
            assert!(same_bits(&expected, &reference), "{reduction:?} of {extents:?} over {axes:?}");
            for other in [turned(&x), backwards.clone()] {
                for found in run(&executor, from_ref(&other)) {
                    assert!(same_bits(&found, &expected), "{reduction:?} of {extents:?} over {axes:?}");
                }
            }
        }
    }
}
