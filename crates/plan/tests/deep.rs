//! Tests of deep and long models. Preparing, planning, verifying, listing and dropping them must not recurse, and must
//! take almost linear time. Every test runs on a stack of 2 MB, and would not end in reasonable time if a stage were
//! quadratic.

// No test of it is short, and none runs unsafe code.
#![cfg(not(miri))]

use cembra_expr::{Builder, Expr, Program};
use cembra_plan::{Linear, Plan, build, verify};
use cembra_prepare::{Options, prepare};
use cembra_runtime::QType;
use cembra_value::Budget;

const DEPTH: i32 = 50_000;

/// Plans a program on a thread with a small stack, and calls `check` with the plan on this thread. `body` makes the
/// only output from the inputs `x` and `y` of type INT32.
fn plan_deep(body: impl for<'b> FnOnce(Expr<'b>, Expr<'b>) -> Expr<'b> + Send + 'static, check: fn(&Plan)) {
    let run = move || {
        let b = Builder::new();
        let (x, y) = (b.typed_leaf("x", QType::INT32), b.typed_leaf("y", QType::INT32));
        let z = body(x, y);
        b.output("z", z);
        let program = b.build().expect("a program");
        let plan = plan_of(&program);
        assert_eq!(verify(&plan), Ok(()));
        check(&plan);
        assert!(plan.to_string().lines().count() > plan.step_count());
        // What is dropped here is dropped on the small stack too.
        drop((plan, program));
    };
    let thread = std::thread::Builder::new().stack_size(2 << 20).spawn(run).expect("a thread");
    thread.join().expect("no overflow and no panic");
}

fn plan_of(program: &Program) -> Plan {
    // Without selections, so that every conditional is one in the plan.
    let options = Options { without: vec!["select".to_owned()], ..Options::default() };
    let prepared = prepare(program, &|_| None, &options, &mut |_, _| {}).expect("types");
    let placed = prepared.placed().expect("every pass");
    build(&placed, &Budget::default()).expect("a plan")
}

fn jumps(plan: &Plan) -> usize {
    plan.flatten().iter().filter(|instruction| matches!(instruction, Linear::JumpIfNot { .. })).count()
}

#[test]
fn a_chain_of_else_branches() {
    plan_deep(
        |x, y| (0..DEPTH).fold(y * 7, |z, k| Expr::where_(x.gt(k), x + k, z)),
        |plan| {
            assert_eq!(jumps(plan), DEPTH as usize);
            assert_eq!(plan.block_count(), 2 * DEPTH as usize + 1);
        },
    );
}

#[test]
fn a_chain_of_then_branches() {
    plan_deep(
        |x, y| (0..DEPTH).fold(y * 7, |z, k| Expr::where_(x.gt(k), z, x - k)),
        |plan| assert_eq!(jumps(plan), DEPTH as usize),
    );
}

#[test]
fn branches_that_alternate_and_compute() {
    plan_deep(
        |x, y| {
            (0..DEPTH).fold(y, |z, k| {
                let (here, there) = (x.floordiv(k + 1), z * k);
                if k % 2 == 0 { Expr::where_(x.gt(k), here, there) } else { Expr::where_(x.gt(k), there, here) }
            })
        },
        |plan| assert!(jumps(plan) >= DEPTH as usize - 1),
    );
}

#[test]
fn a_chain_of_conditions() {
    plan_deep(
        |x, y| {
            let z = (0..DEPTH).fold(y.gt(0), |z, k| Expr::where_(z, x.gt(k), y.lt(k)));
            Expr::where_(z, x, y)
        },
        |plan| assert!(plan.step_count() > 2 * DEPTH as usize),
    );
}

#[test]
fn values_shared_between_the_branches_of_every_level() {
    // Each level's value is computed before the next, whose branches both use it.
    plan_deep(
        |x, y| {
            let z = (0..DEPTH).fold(y, |z, k| Expr::where_(x.gt(k), z, z + k));
            z * z
        },
        |plan| assert!(jumps(plan) >= DEPTH as usize - 1 && plan.reused_slots() > DEPTH as usize / 2),
    );
}

#[test]
fn a_value_of_the_top_used_in_the_innermost_branch_and_everywhere() {
    plan_deep(
        |x, y| {
            let shared = x * y;
            (0..DEPTH).fold(shared + 1, |z, k| Expr::where_(y.gt(k), shared - k, z))
        },
        |plan| assert_eq!(jumps(plan), DEPTH as usize),
    );
}

#[test]
fn conditionals_side_by_side() {
    plan_deep(
        |x, y| (0..DEPTH).fold(y, |z, k| z + Expr::where_(x.gt(k), x.floordiv(k), -y)),
        |plan| {
            assert!(jumps(plan) >= DEPTH as usize - 1);
            // However many there are, a few slots do besides the literals'.
            assert!(plan.layout().size() < 4 * (DEPTH as u32 + 1_000), "{} bytes", plan.layout().size());
        },
    );
}

#[test]
fn a_long_difference() {
    plan_deep(
        |x, y| (0..2 * DEPTH).fold(x * y, |z, _| z - 1),
        |plan| {
            assert_eq!(plan.step_count(), 2 * DEPTH as usize + 1);
            assert_eq!((plan.literals().len(), jumps(plan)), (1, 0));
            assert!(plan.layout().size() <= 20, "{} bytes", plan.layout().size());
        },
    );
}

#[test]
fn a_long_branch() {
    plan_deep(
        |x, y| Expr::where_(y.gt(0), (0..DEPTH).fold(x, |z, k| z.floordiv(y) + k), x),
        |plan| assert_eq!((jumps(plan), plan.block_count()), (1, 3)),
    );
}

#[test]
fn a_sum_that_nests_to_the_right() {
    // All operands wait: every one needs a slot of its own.
    plan_deep(|x, y| (0..DEPTH).fold(y, |z, k| x * k - z), |plan| assert!(plan.step_count() >= 2 * DEPTH as usize - 1));
}

#[test]
fn operators_that_view_their_operands() {
    plan_deep(
        |x, y| {
            let optional = (0..DEPTH).fold(Expr::where_(x.gt(0), y, cembra_value::Value::Nothing), |z, k| z - k);
            optional.or_default(0)
        },
        |plan| assert!(plan.step_count() >= DEPTH as usize),
    );
}
