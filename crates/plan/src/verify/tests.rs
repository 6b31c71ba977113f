//! Tests of the plan verifier with damaged plans. Each kind of damage has a test, and random damage is compared with an
//! oracle that runs every path of the plan on a frame of marked bytes.

use super::{slots, types, verify};
use crate::{Action, BlockId, Plan, StepId, ValueId, build};
use cembra_expr::{Builder, Expr, Program, parse};
use cembra_ops::Registry;
use cembra_prepare::{Options, prepare};
use cembra_runtime::QType;
use cembra_value::{Budget, Limits};
use std::collections::BTreeMap;

fn plan_of(program: &Program) -> Plan {
    // Without selections, so that there are conditionals to damage.
    let options = Options { without: vec!["select".to_owned()], ..Options::default() };
    let prepared = prepare(program, &|_| None, &options, &mut |_, _| {}).expect("types");
    let placed = prepared.placed().expect("every pass");
    build(&placed, &Budget::default()).expect("a plan")
}

fn plan(text: &str) -> Plan {
    plan_of(&parse(text, Registry::standard(), &Limits::default()).expect("a model"))
}

/// The result of the step with the number `n`, from 0, among the steps with the operator `operator`.
fn made(plan: &Plan, operator: &str, n: usize) -> ValueId {
    step(plan, operator, n).1
}

fn step(plan: &Plan, operator: &str, n: usize) -> (StepId, ValueId) {
    let steps = (0..plan.step_count()).map(StepId::from_index);
    let wanted = |id: &StepId| match plan.step(*id).action {
        Action::Operator { op, .. } => Registry::standard().get(op).name == operator,
        Action::Where { .. } => operator == "where",
        Action::Loop { .. } => operator == "loop",
        Action::MakeTuple => operator == "tuple",
        Action::Has => operator == "has",
        Action::Field(_) => operator == "field",
    };
    let id = steps.filter(wanted).nth(n).unwrap_or_else(|| panic!("no {operator}"));
    (id, plan.step(id).out)
}

fn refused(plan: &Plan, with: &str) {
    let error = verify(plan).expect_err(with);
    assert!(error.contains(with), "{error}\n{plan}");
    assert!(!every_path_is_right(plan), "the oracle sees no harm: {error}\n{plan}");
}

const QUADRATIC: &str = "input a, b, c: f64
let d = b*b - 4.0*a*c
output first = where(d >= 0, (-b + sqrt(d)) / 2.0 / a)
output second = where(d >= 0, (-b - sqrt(d)) / 2.0 / a)";

#[test]
fn sound_plans_pass() {
    for text in [
        QUADRATIC,
        "input x: i32\noutput y = x\noutput z = x",
        "output y = 1",
        "output t = ()",
        "input t: (i32, (f64?, text))\noutput y = t.1.0\noutput z = (t, has(t.1.0))",
        "input x: i32, m: unit?\noutput y = where(m, where(x > 0, x * x, x + 1), where(x > 1, x // 2, x % 3))",
    ] {
        let plan = plan(text);
        assert_eq!(verify(&plan), Ok(()), "{plan}");
        assert!(every_path_is_right(&plan), "{plan}");
    }
}

#[test]
fn a_slot_taken_from_a_living_value_is_found() {
    let mut plan = plan(QUADRATIC);
    let (negative, root) = (made(&plan, "math.neg", 0), made(&plan, "math.sqrt", 0));
    plan.values[root.index()].slot = plan.value(negative).slot;
    refused(&plan, "its slot has the value");
}

#[test]
fn a_slot_taken_in_a_branch_from_a_value_that_is_needed_behind_it_is_found() {
    let mut plan = plan(QUADRATIC);
    let (negative, sum) = (made(&plan, "math.neg", 0), made(&plan, "math.add", 0));
    // The first branch overwrites what the second conditional reads.
    plan.values[sum.index()].slot = plan.value(negative).slot;
    refused(&plan, "its slot has the value None");
}

#[test]
fn partly_overlapping_slots_are_found() {
    let mut plan = plan("input x: i32, y: i64\nlet a = x * x\nlet b = y * y\noutput z = b + a");
    let (narrow, wide) = (made(&plan, "math.multiply", 0), made(&plan, "math.multiply", 1));
    let slots = [plan.value(narrow).slot, plan.value(wide).slot];
    // The later value overwrites half of the earlier one.
    let first =
        (0..plan.step_count()).map(|at| plan.step(StepId::from_index(at)).out).find(|v| [narrow, wide].contains(v));
    match first == Some(narrow) {
        true => plan.values[wide.index()].slot = slots[0] / 8 * 8,
        false => plan.values[narrow.index()].slot = slots[1] + 4,
    }
    refused(&plan, "its slot has the value");
}

#[test]
fn unaligned_slots_and_slots_outside_of_the_frame_are_found() {
    let sound = plan("input x: f64\noutput y = x * x + x");
    let product = made(&sound, "math.multiply", 0);
    for slot in [1, 4, sound.layout().size() - 4, sound.layout().size(), u32::MAX - 7] {
        let mut plan = sound.clone();
        plan.values[product.index()].slot = slot;
        refused(&plan, "unaligned or outside");
    }
}

#[test]
fn writing_over_inputs_and_literals_is_found() {
    let sound = plan("input x, unused: f64\noutput y = x * x + 2.0\noutput z = unused");
    let sum = made(&sound, "math.add", 0);
    let literal = sound.literals()[0].0;
    for fixed in [sound.inputs()[0].value, sound.inputs()[1].value, literal] {
        let mut plan = sound.clone();
        plan.values[sum.index()].slot = plan.value(fixed).slot;
        refused(&plan, "overwrites an input or a literal");
    }
}

#[test]
fn writing_over_a_finished_output_is_found() {
    let mut plan = plan("input x: f64\noutput y = x * x\noutput z = sqrt(x) + x");
    let (output, root) = (made(&plan, "math.multiply", 0), made(&plan, "math.sqrt", 0));
    plan.values[root.index()].slot = plan.value(output).slot;
    refused(&plan, "its slot has the value");
}

#[test]
fn reading_before_writing_is_found() {
    let mut plan = plan("input x: f64\noutput y = sqrt(x * x)");
    plan.blocks[0].steps.reverse();
    refused(&plan, "its slot has the value None");
}

#[test]
fn a_step_in_the_wrong_block_is_found() {
    let sound = plan("input x, y: f64\nlet p = x * y\noutput z = where(x > y, p + 1.0, p - 1.0) + p");
    let (id, _) = step(&sound, "math.multiply", 0);
    let (_, [on, off]) = conditional(&sound);
    for branch in [on, off] {
        let mut plan = sound.clone();
        plan.blocks[0].steps.retain(|step| *step != id);
        plan.blocks[branch.index()].steps.insert(0, id);
        refused(&plan, "its slot has the value None");
    }
    // The value is written in both branches, so it is there on every path; still, steps after them must not rely on it.
    let mut plan = sound;
    plan.blocks[0].steps.retain(|step| *step != id);
    plan.blocks[on.index()].steps.insert(0, id);
    assert!(verify(&plan).is_err());
}

fn conditional(plan: &Plan) -> (ValueId, [BlockId; 2]) {
    let (id, out) = step(plan, "where", 0);
    match plan.step(id).action {
        Action::Where { on, off } => (out, [on, off]),
        _ => panic!("a conditional"),
    }
}

#[test]
fn reading_what_only_the_other_branch_made_is_found() {
    let mut plan = plan("input x, y: f64\noutput z = where(x > y, sqrt(x) + 1.0, sqrt(y) - 1.0)");
    let other = made(&plan, "math.sqrt", 0);
    let (difference, _) = step(&plan, "math.subtract", 0);
    let at = plan.step(difference).args_start as usize;
    plan.args[at] = other;
    refused(&plan, "its slot has the value");
}

#[test]
fn a_result_that_its_branch_did_not_make_is_found() {
    let sound = plan("input x, y: f64\noutput z = where(x > y, sqrt(x), sqrt(y))");
    let (_, [on, off]) = conditional(&sound);
    let mut plan = sound.clone();
    plan.blocks[on.index()].result = sound.block(off).result;
    refused(&plan, "its slot has the value");
    let mut plan = sound.clone();
    plan.blocks[off.index()].result = sound.block(on).result;
    refused(&plan, "its slot has the value");
}

#[test]
fn views_elsewhere_than_in_their_owners_are_found() {
    let sound = plan("input x, y: i32?\nlet s = x + y\noutput p = where(has(s), 1, 2)\noutput v = s");
    let presence = made(&sound, "has", 0);
    let mut plan = sound.clone();
    plan.values[presence.index()].slot += 4;
    refused(&plan, "inside the slot of the value that contains it");
    let mut moved = sound;
    moved.values[presence.index()].owner = None;
    assert!(verify(&moved).is_err());
    let fields = plan_of_fields();
    let field = made(&fields, "field", 0);
    let mut plan = fields;
    plan.values[field.index()].slot -= 4;
    refused(&plan, "inside the slot of the value that contains it");
}

fn plan_of_fields() -> Plan {
    plan("input t: (i32, i32, i32)\noutput y = t.1 * 2")
}

/// The oracle: runs every path of a plan, and marks each byte of the frame with the value that was last written to it.
/// Returns true if all bytes of a value have its mark whenever the value is read.
fn every_path_is_right(plan: &Plan) -> bool {
    let wheres: Vec<StepId> = (0..plan.step_count())
        .map(StepId::from_index)
        .filter(|id| matches!(plan.step(*id).action, Action::Where { .. }))
        .collect();
    assert!(wheres.len() <= 10, "too many paths");
    let placed = (0..plan.value_count()).map(ValueId::from_index).all(|value| {
        let layout = plan.value(value).qtype.layout();
        let slot = plan.value(value).slot;
        slot.is_multiple_of(layout.align)
            && slot.checked_add(layout.size).is_some_and(|end| end <= plan.layout().size())
    });
    placed
        && (0..1_u32 << wheres.len()).all(|choices| {
            let choice = wheres.iter().enumerate().map(|(at, id)| (*id, choices >> at & 1 == 1)).collect();
            let mut path = Path { plan, choice, bytes: vec![None; plan.layout().size() as usize] };
            path.run().is_some()
        })
}

struct Path<'p> {
    plan: &'p Plan,
    choice: BTreeMap<StepId, bool>,
    bytes: Vec<Option<ValueId>>,
}

impl Path<'_> {
    fn run(&mut self) -> Option<()> {
        let plan = self.plan;
        let fixed: Vec<ValueId> =
            plan.inputs.iter().map(|input| input.value).chain(plan.literals.iter().map(|(id, _)| *id)).collect();
        for value in &fixed {
            self.mark(*value);
        }
        self.block(BlockId::TOP, &fixed)?;
        plan.outputs.iter().try_for_each(|output| self.see(output.value))
    }

    // The plans of these tests nest a few levels.
    fn block(&mut self, block: BlockId, fixed: &[ValueId]) -> Option<()> {
        let plan = self.plan;
        for id in &plan.block(block).steps {
            let step = plan.step(*id);
            let first = plan.args(step).first();
            let view = matches!(step.action, Action::Has | Action::Field(_));
            for arg in plan.args(step).iter().filter(|_| !view) {
                self.see(*arg)?;
            }
            if view && plan.value(step.out).owner != first.copied() {
                return None;
            }
            match step.action {
                Action::Has if plan.value(step.out).slot != plan.value(*first?).slot => return None,
                Action::Field(index) => {
                    let of = plan.value(*first?);
                    if plan.value(step.out).slot != of.slot + of.qtype.field_offset(index as usize)? {
                        return None;
                    }
                    self.see(step.out)?;
                }
                Action::Has => self.see(step.out)?,
                Action::Where { on, off } => {
                    let branch = if self.choice[id] { on } else { off };
                    self.block(branch, fixed)?;
                    self.copy(plan.block(branch).result?, step.out)?;
                    self.make(step.out, fixed)?;
                }
                Action::Loop { round, state, .. } => {
                    let (at, out) = (plan.value(state), plan.value(step.out));
                    if at.owner != Some(step.out) || at.slot != out.slot {
                        return None;
                    }
                    self.copy(*first?, state)?;
                    self.make(step.out, fixed)?;
                    for _ in 0..2 {
                        self.block(round, fixed)?;
                        self.copy(plan.block(round).result?, step.out)?;
                        self.make(step.out, fixed)?;
                    }
                }
                _ => self.make(step.out, fixed)?,
            }
        }
        Some(())
    }

    fn slot(&self, value: ValueId) -> std::ops::Range<usize> {
        let at = self.plan.value(value);
        at.slot as usize..(at.slot + at.qtype.layout().size) as usize
    }

    fn mark(&mut self, value: ValueId) {
        let slot = self.slot(value);
        self.bytes[slot].fill(Some(value));
    }

    fn make(&mut self, value: ValueId, fixed: &[ValueId]) -> Option<()> {
        let slot = self.slot(value);
        let hits = |other: &ValueId| {
            let other = self.slot(*other);
            slot.start.max(other.start) < slot.end.min(other.end)
        };
        if fixed.iter().any(hits) {
            return None;
        }
        self.mark(value);
        Some(())
    }

    /// Reads the value `from` for a copy to `to`; `None` if the value is damaged or the two have different types.
    fn copy(&self, from: ValueId, to: ValueId) -> Option<()> {
        (self.plan.value(from).qtype == self.plan.value(to).qtype).then(|| self.see(from))?
    }

    /// Reads a value; `None` if a byte of it was not written by the value or, for a view, by the value that contains
    /// it.
    fn see(&self, value: ValueId) -> Option<()> {
        let mut owner = value;
        while let Some(of) = self.plan.value(owner).owner {
            owner = of;
        }
        self.bytes[self.slot(value)].iter().all(|byte| *byte == Some(owner)).then_some(())
    }
}

/// Models with loops in branches, branches in loops, loops in loops, and a state whose fields are swapped in each
/// round.
const LOOPS: [&str; 3] = [
    "input a, b: f64; input n: i64
     let r = seq.reduce(fn(s, i) = where(s > a, s / 2.0, s + i * b), seq.range(n), a)
     output y = where(r > b, r * r, a - b); output z = r",
    "input n, m: i64
     output y = core.while_loop((n, m, 0i64), fn(s) = s.0 > s.2, fn(s) = (s.1, s.0 - 1i64, s.2 + m // 2i64)).1 + n * m",
    "input n: i64; input x: f64?
     let t = x * x
     output y = seq.reduce(fn(s, i) = s + seq.reduce(fn(p, j) = p * t + j, seq.range(i), x), seq.range(n), t) + t",
];

/// Makes a random program of values of a few types, with at most six conditionals.
fn random_program(random: &mut fastrand::Rng) -> Program {
    let b = Builder::new();
    let mut numbers: Vec<Expr<'_>> = ["a", "b", "c"].map(|name| b.typed_leaf(name, QType::FLOAT64)).into();
    let mut optionals = vec![b.typed_leaf("n", QType::Optional(cembra_runtime::Scalar::Int32))];
    let mut conditionals = 0;
    for _ in 0..random.usize(4..30) {
        let pick = |random: &mut fastrand::Rng, from: &[Expr<'_>]| from.len() - 1 - random.usize(..from.len().min(6));
        let (x, y) = (numbers[pick(random, &numbers)], numbers[pick(random, &numbers)]);
        let (n, m) = (optionals[pick(random, &optionals)], optionals[pick(random, &optionals)]);
        let mask = match random.u8(..3) {
            0 => x.gt(y),
            1 => b.call("core.has", &[n]),
            _ => n.lt(m),
        };
        match random.u8(..9) {
            0 | 1 if conditionals < 6 => {
                conditionals += 1;
                numbers.push(Expr::where_(mask, x, y));
            }
            2 if conditionals < 6 => {
                conditionals += 1;
                optionals.push(Expr::where_(mask, n, m));
            }
            3 => numbers.push(b.tuple(&[x, n, y]).field(2 * random.u32(..2))),
            4 => optionals.push(n + m),
            5 => numbers.push(n.or_default(x)),
            6 => numbers.push(-x),
            7 => numbers.push(x * y),
            _ => numbers.push(x.floordiv(y)),
        }
    }
    for at in 0..random.usize(1..4) {
        let value = numbers[numbers.len() - 1 - at.min(numbers.len() - 1)];
        b.output(
            &format!("out{at}"),
            if random.bool() { value } else { b.tuple(&[value, optionals[optionals.len() - 1]]) },
        );
    }
    b.build().expect("a program")
}

/// Makes one random change to a plan.
fn damage(plan: &mut Plan, random: &mut fastrand::Rng) {
    let values = plan.values.len();
    let (one, other) = (random.usize(..values), random.usize(..values));
    match random.u8(..6) {
        0 | 1 => plan.values[one].slot = plan.values[other].slot,
        2 => plan.values[one].slot = plan.values[one].slot.wrapping_add_signed(random.i32(-3..3) * 4),
        3 if !plan.args.is_empty() => {
            let at = random.usize(..plan.args.len());
            plan.args[at] = ValueId::from_index(one);
        }
        4 => {
            let block = random.usize(..plan.blocks.len());
            let steps = &mut plan.blocks[block].steps;
            if steps.len() > 1 {
                let at = random.usize(..steps.len() - 1);
                steps.swap(at, at + 1);
            }
        }
        _ => {
            let block = random.usize(..plan.blocks.len());
            if plan.blocks[block].result.is_some() {
                plan.blocks[block].result = Some(ValueId::from_index(one));
            }
        }
    }
}

#[test]
fn random_damage_is_found_exactly_where_some_path_goes_wrong() {
    let mut random = fastrand::Rng::with_seed(2);
    let (mut found, mut harmless) = (0, 0);
    for round in 0..400 {
        let sound = match round % 4 {
            0 => plan(LOOPS[round / 4 % LOOPS.len()]),
            _ => plan_of(&random_program(&mut random)),
        };
        assert_eq!(verify(&sound), Ok(()), "round {round}\n{sound}");
        assert!(every_path_is_right(&sound), "round {round}\n{sound}");
        for _ in 0..20 {
            let mut plan = sound.clone();
            damage(&mut plan, &mut random);
            // The oracle tracks bytes; the only types that matter to it are those of copies.
            let verdict = slots(&plan);
            let copied = plan.steps.iter().all(|step| types::copies(&plan, step));
            assert_eq!(verdict.is_ok() && copied, every_path_is_right(&plan), "round {round}: {verdict:?}\n{plan}");
            *if verdict.is_ok() && copied { &mut harmless } else { &mut found } += 1;
        }
    }
    assert!(found > 2000 && harmless > 500, "{found} found, {harmless} harmless");
}

#[test]
fn steps_on_values_of_other_types_are_found() {
    let wrong = "does not accept the types of its operands";
    let mistyped = |plan: &Plan| assert!(verify(plan).is_err_and(|error| error.contains(wrong)), "{plan}");
    // A view of the second field with the index of the first, at the offset that the second would have if both had one
    // type.
    let mut fields = plan("input t: (i64, f64)\noutput y = t.1 + 1.0f64");
    let (step, view) = step(&fields, "field", 0);
    fields.steps[step.index()].action = Action::Field(0);
    fields.values[view.index()].slot -= 8;
    assert_eq!(slots(&fields), Ok(()));
    mistyped(&fields);
    // A number is used as another type of the same size.
    let mut numbers = plan("input a: f64, b: i64\noutput y = a + a\noutput z = b");
    let (input, args) = (numbers.inputs()[1].value, numbers.step(StepId::from_index(0)).args_start as usize);
    numbers.args[args] = input;
    assert_eq!(slots(&numbers), Ok(()));
    mistyped(&numbers);
    // A tuple with more arguments than its type has fields.
    let mut tuple = plan("input a: f64\noutput t = (a, a)");
    let made = made(&tuple, "tuple", 0);
    tuple.values[made.index()].qtype = QType::tuple([QType::FLOAT64, QType::INT64]);
    mistyped(&tuple);
}
