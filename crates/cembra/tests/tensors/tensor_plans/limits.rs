//! Limits of plans: what they make beside the values of their steps counts as these do, what is no more does not; and whatever takes long asks
//! whether to go on.

use cembra::tensor::{
    Body, DataMut, Elements, Error, ErrorKind, Evaluator, Graph, Labels, LineKernel, Products, Reduction, Single,
    SumKernel, Tensor, TensorModel, same_bits,
};
use cembra::{Cancellation, Limits, Options, RunOptions, Scalar};
use std::sync::atomic::{AtomicUsize, Ordering};

fn limited(array_bytes: u64) -> Evaluator {
    Evaluator::new(&Options::default().limits(Limits { array_bytes, ..Limits::default() }))
}

/// What a model gives by a plan, by an executor and by sessions of both: of each the last outputs of three runs, or why there are none.
fn each_way(model: &TensorModel, on: &Evaluator, inputs: &[Tensor]) -> Vec<Result<Vec<Tensor>, ErrorKind>> {
    let extents: Vec<&[usize]> = inputs.iter().map(Tensor::extents).collect();
    let executor = model.executor(on);
    let mut all = Vec::new();
    match model.plan(on, &extents) {
        Ok(planned) => {
            let mut session = planned.session();
            all.push((0..3).map(|_| planned.run(inputs)).last().expect("a run").map_err(|error| error.kind()));
            let again = (0..3).map(|_| session.run(inputs).map(<[Tensor]>::to_vec)).last();
            all.push(again.expect("a run").map_err(|error| error.kind()));
        }
        Err(error) => all.push(Err(error.kind())),
    }
    let mut session = executor.session();
    all.push((0..3).map(|_| executor.run(inputs)).last().expect("a run").map_err(|error| error.kind()));
    let again = (0..3).map(|_| session.run(inputs).map(<[Tensor]>::to_vec)).last();
    all.push(again.expect("a run").map_err(|error| error.kind()));
    all
}

/// A model needs so many bytes, however it is run, and gives what the reference gives; with less it is refused.
fn needs(text: &str, named: &[(&str, Tensor)], most: u64) {
    let model = TensorModel::parse(text).expect("a model");
    let inputs: Vec<Tensor> = named.iter().map(|(_, tensor)| tensor.clone()).collect();
    let inputs = &inputs[..];
    let named = named.iter().map(|(name, tensor)| ((*name).to_owned(), tensor.clone())).collect();
    let expected = model.evaluate_unplanned(&limited(1 << 40), &named).expect("a value");
    for threads in [1, 3] {
        for made in each_way(&model, &limited(most).threads(threads).share(100), inputs) {
            let made = made.unwrap_or_else(|error| panic!("{text}: {error:?} with {threads} threads"));
            assert!(made.iter().zip(&expected).all(|(made, (_, expected))| same_bits(made, expected)), "{made:?}");
        }
        for made in each_way(&model, &limited(most - 1).threads(threads).share(100), inputs) {
            assert_eq!(made.expect_err(text), ErrorKind::Limit, "{text}, {threads} threads");
        }
    }
}

fn numbers(extents: &[usize]) -> Tensor {
    let count: usize = extents.iter().product();
    Tensor::new(extents, (0..count).map(|at| (at % 13) as f64 / 16.0 - 0.25).collect()).expect("a tensor")
}

#[test]
fn what_rows_leave_for_each_other_is_limited() {
    // A row of `z` is 320,000 bytes, of `m` one number.
    let text = "
        input x: tensor[f64, 3], y: tensor[f64, 1]
        let z = exp(x + y)
        let m = tensor.sum(z, (1, 2), keep=true)
        output out = tensor.sum(z / m, (1, 2))";
    needs(text, &[("x", numbers(&[2, 200, 1])), ("y", numbers(&[200]))], 320_000 + 8 + 16);
}

#[test]
fn what_rows_left_and_nobody_reads_any_more_is_room_for_others() {
    // Of `a`, `b` and `c` two at a time, of 320,000 bytes each.
    let text = "
        input x: tensor[f64, 3], y: tensor[f64, 1]
        let a = exp(x + y)
        let b = exp(a / tensor.sum(a, (1, 2), keep=true))
        let c = exp(b / tensor.sum(b, (1, 2), keep=true))
        output out = tensor.sum(c / tensor.sum(c, (1, 2), keep=true), (1, 2))";
    needs(text, &[("x", numbers(&[2, 200, 1])), ("y", numbers(&[200]))], 2 * 320_000 + 8 + 16);
    // Rows of 2,880,000 bytes, of which there are those of one step at a time, and products of 4,800.
    let text = "
        input x: tensor[f64, 3], y: tensor[f64, 1]
        let z = exp(x + y)
        let first = tensor.sum(z / tensor.sum(z, (1, 2), keep=true), (1, 2))
        let w = exp(x * tensor.sum(first) + y)
        output out = tensor.sum(w / tensor.sum(w, (1, 2), keep=true), (1, 2))";
    needs(text, &[("x", numbers(&[2, 600, 1])), ("y", numbers(&[600]))], 2_880_000 + 4_800 + 8 + 8 + 8 + 16);
    // Nor has a plan that is kept any of it: there is room for several.
    let (model, on) = (TensorModel::parse(text).expect("a model"), limited(3_200_000));
    let executor = model.executor(&on);
    for extent in 601..606 {
        executor.run(&[numbers(&[2, extent, 1]), numbers(&[extent])]).expect("sums");
    }
    assert_eq!(executor.counters().kept, 5);
}

fn integers(extents: &[usize]) -> Tensor {
    let count: usize = extents.iter().product();
    Tensor::new(extents, (0..count as i64).collect()).expect("a tensor")
}

#[test]
fn what_is_taken_of_large_views_makes_no_lists() {
    // A view of a tera, of which nothing is taken.
    let nothing = "
        input x: tensor[f64, 3], i: tensor[i64, 1]
        let w = tensor.broadcast(x, (1000000, 1000000, 1))
        output y = tensor.take(w, i, 2)";
    let model = TensorModel::parse(nothing).expect("a model");
    for made in each_way(&model, &limited(8), &[numbers(&[1, 1, 1]), integers(&[0])]) {
        assert_eq!(made.expect("nothing")[0].extents(), [1_000_000, 1_000_000, 0]);
    }
    let rows = "
        input x: tensor[f64, 3], i: tensor[i64, 1]
        let w = tensor.broadcast(x, (1000000, 1000000, 1, 0))
        output y = tensor.take(w, i, 2)";
    let model = TensorModel::parse(rows).expect("a model");
    for made in each_way(&model, &limited(8), &[numbers(&[1, 1, 0]), integers(&[1])]) {
        assert_eq!(made.expect("nothing")[0].extents(), [1_000_000, 1_000_000, 1, 0]);
    }
    // Elements that are taken a million times are added to as often.
    let many = "
        input w: tensor[f64, 2], i: tensor[i64, 1]
        output g = tensor.grad(tensor.sum(tensor.take(w, tensor.broadcast(i, (500, 2000, 2)))), w)";
    let inputs = [("w", numbers(&[5, 1])), ("i", integers(&[2]))];
    let model = TensorModel::parse(many).expect("a model");
    let named = inputs.iter().map(|(name, tensor)| ((*name).to_owned(), tensor.clone())).collect();
    for made in [model.evaluate(&limited(1 << 30), &named), model.evaluate_unplanned(&limited(1 << 30), &named)] {
        assert_eq!(made.expect("a gradient")[0].1.to_vec::<f64>().expect("floats"), [1e6, 1e6, 0.0, 0.0, 0.0]);
    }
    // What is outside is found, in however many places, and where nothing is taken too.
    let outside = "
        input w: tensor[f64, 2], i: tensor[i32, 2]
        output y = tensor.take(w, tensor.broadcast(i, (1000000, 1000000, 1, 3)), 1)";
    let indices = Tensor::new(&[1, 3], vec![0, 1, 2]).expect("a tensor");
    let on = limited(1 << 20);
    let planned = TensorModel::parse(outside).expect("a model").plan(&on, &[&[0, 2], &[1, 3]]).expect("a plan");
    let error = planned.run(&[numbers(&[0, 2]), indices]).expect_err("outside");
    assert_eq!((error.kind(), error.to_string()), (ErrorKind::Index, "index 2 of an axis of 2".to_owned()));
}

#[test]
fn copies_of_operands_are_limited() {
    // Both are copied into another order, 57,600 bytes each.
    let text = r#"
        input x: tensor[f64, 3], y: tensor[f64, 3]
        let a = tensor.broadcast(x, (2, 60, 60))
        let b = tensor.broadcast(y, (60, 60, 2))
        output c("i,j") = a("i,p,q") * b("p,q,j")"#;
    let inputs = [("x", numbers(&[1, 60, 1])), ("y", numbers(&[1, 60, 2]))];
    needs(text, &inputs, 2 * 57_600 + 32);
    let labels = Labels { operands: vec![[0, 2, 3][..].into(), [2, 3, 1][..].into()], output: [0, 1][..].into() };
    let wide = [inputs[0].1.broadcast_to(&[2, 60, 60]), inputs[1].1.broadcast_to(&[60, 60, 2])].map(Result::unwrap);
    for (most, is_allowed) in [(2 * 57_600 + 32, true), (2 * 57_600 + 31, false)] {
        let made = limited(most).contract(&labels, [&wide[0], &wide[1]], &[2, 2]);
        assert_eq!(made.map_err(|error| error.kind()).err(), (!is_allowed).then_some(ErrorKind::Limit));
    }
}

/// An evaluator that ends what it does when it was asked so often.
struct Ending<'e> {
    on: &'e Evaluator,
    left: AtomicUsize,
}

impl Elements for Ending<'_> {
    fn map_into(&self, body: &Body, of: &[Tensor], extents: &[usize], to: &mut [DataMut<'_>]) -> Result<(), Error> {
        self.on.map_into(body, of, extents, to)
    }

    fn kernel(&self, body: &Body, steps: &[isize]) -> Result<Box<dyn LineKernel>, Error> {
        self.on.kernel(body, steps)
    }

    fn sum_kernel(&self, body: &Body, steps: &[isize]) -> Result<Option<Box<dyn SumKernel>>, Error> {
        self.on.sum_kernel(body, steps)
    }

    fn single(&self, body: &Body) -> Result<Box<dyn Single>, Error> {
        self.on.single(body)
    }

    fn most_bytes(&self) -> u64 {
        self.on.most_bytes()
    }

    fn go_on(&self) -> Result<(), Error> {
        let left = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        left.map(drop).map_err(|_| Error::new(ErrorKind::Cancelled, "it was asked often enough"))
    }

    fn uninterrupted(&self) -> &dyn Elements {
        self.on
    }

    fn share(&self) -> usize {
        Elements::share(self.on)
    }

    fn products(&self) -> Option<&Products> {
        self.on.products()
    }
}

#[test]
fn products_ask_whether_to_go_on() {
    long_products("f64");
}

#[test]
fn products_of_integers_ask_whether_to_go_on() {
    long_products("i32");
}

fn long_products(scalar: &str) {
    // Years of steps, of tensors of a few elements.
    const LONG: usize = 1 << 45;
    let products = [
        // One line, and lines of several sums.
        (r#"output s("") = a("i,j") * a("i,j")"#, [1, 1], [30_000_000, 30_000_000], [1, 1], [1, 1]),
        (r#"output s("j") = a("i,j") * b("i,j")"#, [1, 7], [LONG, 7], [1, 7], [LONG, 7]),
        (r#"output s("i") = a("i,j") * b("i,j")"#, [7, 1], [7, LONG], [7, 1], [7, LONG]),
        // Lines that are added, each times a number.
        (r#"output s("j,k") = a("i,j") * b("i,k")"#, [1, 9], [LONG, 9], [1, 1], [LONG, 1]),
    ];
    for (product, own, wide, other, other_wide) in products {
        let text = format!(
            "input x: tensor[{scalar}, 2], y: tensor[{scalar}, 2]\nlet a = tensor.broadcast(x, ({}, {}))\n\
                 let b = tensor.broadcast(y, ({}, {}))\n{product}",
            wide[0], wide[1], other_wide[0], other_wide[1]
        );
        let model = TensorModel::parse(&text).expect("a model");
        let tensor = |extents: &[usize]| {
            let ones = Tensor::new(extents, vec![1.0; extents.iter().product()]).expect("a tensor");
            if scalar == "f64" { ones } else { Tensor::new(extents, vec![1; ones.layout().len()]).expect("a tensor") }
        };
        let inputs = [tensor(&own), tensor(&other)];
        for on in [limited(1 << 20), limited(1 << 20).in_order()] {
            let planned = model.plan(&on, &[&own, &other]).expect("a plan");
            let ending = Ending { on: &on, left: 6.into() };
            let error = planned.plan().run(planned.graph(), &inputs, &ending).expect_err("it ends");
            assert_eq!((error.kind(), ending.left.into_inner()), (ErrorKind::Cancelled, 0), "{text}");
        }
    }
}

#[test]
fn the_reference_asks_whether_to_go_on() {
    let mut g = Graph::standard();
    let x = g.leaf("x", Scalar::Float64, &[1, 3]).expect("a leaf");
    let i = g.leaf("i", Scalar::Int64, &[1]).expect("a leaf");
    let wide = g.broadcast(x, &[1 << 45, 3]).expect("a view");
    let many = g.broadcast(i, &[1 << 45]).expect("a view");
    let taken = g.take(x, many, 1).expect("elements");
    let sum = g.reduce(Reduction::Sum, taken, &[0, 1]).expect("a sum");
    let gradient = g.gradients(sum, &[x]).expect("a gradient")[0];
    let product = g.einsum("ij,ij->j", &[wide, wide]).expect("a product");
    let largest = g.reduce(Reduction::Max, wide, &[0]).expect("a reduction");
    let on = limited(1 << 20);
    for output in [product, largest, gradient] {
        let ending = Ending { on: &on, left: 20.into() };
        let inputs = [numbers(&[1, 3]), integers(&[1])];
        let error = cembra::tensor::evaluate(&g, &[output], &inputs, &ending).expect_err("it ends");
        assert_eq!((error.kind(), ending.left.into_inner()), (ErrorKind::Cancelled, 0), "{output:?}");
    }
}

#[test]
fn sums_that_stay_in_registers_ask_whether_to_go_on() {
    let text = r#"
        input x: tensor[f64, 3], y: tensor[f64, 1]
        let a = tensor.broadcast(x, (10000, 100000, 8))
        let b = tensor.broadcast(y, (10000, 100000))
        output s("b,j") = a("b,i,j") * b("b,i")"#;
    let on = limited(1 << 20);
    let planned = TensorModel::parse(text).expect("a model").plan(&on, &[&[1, 1, 8], &[100_000]]).expect("a plan");
    let ending = Ending { on: &on, left: 20.into() };
    let inputs = [numbers(&[1, 1, 8]), numbers(&[100_000])];
    let error = planned.plan().run(planned.graph(), &inputs, &ending).expect_err("it ends");
    assert_eq!(error.kind(), ErrorKind::Cancelled);
}

#[test]
fn what_is_taken_asks_whether_to_go_on() {
    let text = "
        input w: tensor[f64, 1], i: tensor[i64, 1]
        output g = tensor.grad(tensor.sum(tensor.take(w, tensor.broadcast(i, (1000000, 1000000)))), w)";
    let on = limited(1 << 20);
    let planned = TensorModel::parse(text).expect("a model").plan(&on, &[&[5], &[1]]).expect("a plan");
    let ending = Ending { on: &on, left: 20.into() };
    let error = planned.plan().run(planned.graph(), &[numbers(&[5]), integers(&[1])], &ending).expect_err("it ends");
    assert_eq!(error.kind(), ErrorKind::Cancelled);
}

/// A plan that was bound for more is not run within less; and others have it as it was.
#[test]
fn limits_of_a_run_hold_for_plans_that_are_bound() {
    let text = "
        input x: tensor[f64, 1]
        let y = exp(x + x)
        output out = tensor.sum(y * y / tensor.sum(y))
        output rest = y";
    let model = TensorModel::parse(text).expect("a model");
    let within = |array_bytes: u64| RunOptions::new().limits(Limits { array_bytes, ..Limits::default() });
    let x = [numbers(&[1000])];
    for threads in [1, 3] {
        let on = limited(1 << 30).threads(threads).share(100);
        let executor = model.executor(&on);
        let planned = model.plan(&on, &[&[1000]]).expect("a plan");
        let (mut session, mut of_plan) = (executor.session(), planned.session());
        let expected = executor.run(&x).expect("there is room");
        for _ in 0..2 {
            for (options, has_room) in [(within(1 << 20), true), (within(7999), false), (RunOptions::new(), true)] {
                session.set_run_options(&options);
                of_plan.set_run_options(&options);
                let made = [
                    executor.run_with(&x, &options),
                    planned.run_with(&x, &options),
                    session.run(&x).map(<[Tensor]>::to_vec),
                    of_plan.run(&x).map(<[Tensor]>::to_vec),
                ];
                for made in made {
                    match made {
                        Ok(made) => {
                            assert!(
                                has_room
                                    && made.iter().zip(&expected).all(|(made, expected)| same_bits(made, expected))
                            );
                        }
                        Err(error) => assert_eq!((has_room, error.kind()), (false, ErrorKind::Limit), "{error}"),
                    }
                }
                assert!(executor.run(&x).is_ok() && planned.run(&x).is_ok());
            }
        }
        // A session is ended, too.
        let token = Cancellation::new();
        token.cancel();
        session.set_run_options(&RunOptions::new().cancellation(token));
        assert_eq!(session.run(&x).map(<[Tensor]>::len).unwrap_err().kind(), ErrorKind::Cancelled);
    }
}
