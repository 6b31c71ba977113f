//! What `explain` shows: the facts a plan must have, read from the listings, and the listings themselves as snapshots.

use cembra::explain::Stage;
use cembra::{Backend, Model, Options};
use std::collections::BTreeMap;

const QUADRATIC: &str = include_str!("../../../docs/examples/quadratic.cem");

/// Maps in front of and behind an aggregation, and a conditional between arrays.
const ARRAYS: &str = "input x, y: [f64?]
input k: f64
let p = where(x > 0.0, x * y + k)
output total = math.sum(p)
output shares = if k > 1.0 then p / math.sum(p) else y
";

/// Conditionals in both branches, in a condition's place, with faults and sharing.
const NESTED: &str = "input x, y: f64
input n: i32?
let p = x * y
output r = if x > 0 then (if y > 0 then sqrt(p) else floordiv(x, y)) else (if n > 2 then 10 % n ?? 0 else p)
output c = where(where(x > y, has(n), y > 0), n, 7)
";

fn explain(text: &str, options: &Options, stage: Stage) -> String {
    Model::parse(text).expect("a model").explain(options, stage).expect("a listing")
}

/// A plan's listing, taken apart.
struct Listing {
    literals: Vec<String>,
    /// The instructions in order: slot, operator and arguments of those that write one, else only the operator.
    steps: Vec<Step>,
}

struct Step {
    slot: Option<String>,
    operator: String,
    arguments: Vec<String>,
}

impl Listing {
    fn of(text: &str, options: &Options) -> Listing {
        let listing = explain(text, options, Stage::Plan);
        let part = |from: &str, to: &str| {
            let (_, rest) = listing.split_once(from).expect(from);
            let (part, _) = rest.split_once(to).expect(to);
            part.lines().map(str::to_owned).collect::<Vec<_>>()
        };
        let literals = part("Init operations:\n", "Eval operations:\n");
        let literals = literals.iter().map(|line| line.split_once(" = ").expect("a literal").1.to_owned()).collect();
        let steps = part("Eval operations:\n", "Outputs:\n").iter().map(|line| Step::read(line)).collect();
        Listing { literals, steps }
    }

    fn count(&self, operator: &str) -> usize {
        self.steps.iter().filter(|step| step.operator == operator).count()
    }

    fn one(&self, operator: &str) -> &Step {
        let mut found = self.steps.iter().filter(|step| step.operator == operator);
        let step = found.next().unwrap_or_else(|| panic!("{operator} is there"));
        assert!(found.next().is_none(), "{operator} is there once");
        step
    }

    fn maker(&self, slot: &str, before: usize) -> &Step {
        let made = self.steps[..before].iter().rev().find(|step| step.slot.as_deref() == Some(slot));
        made.unwrap_or_else(|| panic!("{slot} is made before"))
    }

    fn position(&self, operator: &str) -> usize {
        self.steps.iter().position(|step| step.operator == operator).unwrap_or_else(|| panic!("{operator} is there"))
    }
}

impl Step {
    fn read(line: &str) -> Step {
        let (slot, call) = match line.split_once(" = ") {
            Some((slot, call)) => (Some(slot.to_owned()), call),
            None => (None, line),
        };
        let (operator, arguments) = call.split_once('(').expect("an instruction");
        let arguments = arguments.trim_end_matches(')').split(", ").filter(|a| !a.is_empty()).map(str::to_owned);
        Step { slot, operator: operator.to_owned(), arguments: arguments.collect() }
    }
}

#[test]
fn literals_of_the_quadratic_are_initialised_once() {
    let mut literals = Listing::of(QUADRATIC, &Options::default()).literals;
    literals.sort();
    assert_eq!(literals, ["4.", "f64{0}", "f64{2}"]);
    let mut kept = Listing::of(QUADRATIC, &Options::default().without_pass("optimise")).literals;
    kept.sort();
    assert_eq!(kept, ["4.", "f64{0.5}", "f64{0}", "f64{2}"]);
}

#[test]
fn casts_of_the_quadratic_are_written_out() {
    let plan = Listing::of(QUADRATIC, &Options::default());
    // 4.0 * a is a product of FLOAT32, cast before it meets c.
    let at = plan.position("core.to_float64");
    let narrow = &plan.steps[at].arguments[0];
    assert!(narrow.starts_with("f32"), "{narrow}");
    let product = plan.maker(narrow, at);
    assert_eq!(product.operator, "math.multiply");
    assert!(product.arguments.iter().all(|a| a.starts_with("f32")), "{:?}", product.arguments);
    let cast = plan.steps[at].slot.as_ref().expect("a result");
    let used = plan.steps[at + 1..].iter().find(|step| step.arguments.contains(cast)).expect("a use");
    assert_eq!((used.operator.as_str(), used.arguments.len()), ("math.multiply", 2));
    // Once for that product, once for the divisor `a`, which both branches share.
    assert_eq!(plan.count("core.to_float64"), 2);
}

#[test]
fn the_power_of_one_half_is_lowered() {
    let plan = Listing::of(QUADRATIC, &Options::default());
    assert_eq!((plan.count("math._pow_half"), plan.count("math.pow")), (1, 0));
    assert_eq!(plan.one("math._pow_half").arguments.len(), 1);
    let kept = Listing::of(QUADRATIC, &Options::default().without_pass("optimise"));
    assert_eq!((kept.count("math._pow_half"), kept.count("math.pow")), (0, 1));
    assert_eq!(kept.one("math.pow").arguments.len(), 2);
}

#[test]
fn negation_and_root_are_shared() {
    let plan = Listing::of(QUADRATIC, &Options::default());
    let root = plan.one("math._pow_half").slot.clone().expect("a slot");
    let negative = plan.one("math.neg").slot.clone().expect("a slot");
    let sum = &plan.one("math.add").arguments;
    let last = plan.steps.iter().rev().find(|step| step.operator == "math.subtract").expect("a difference");
    assert_eq!(sum, &[negative, root]);
    assert_eq!(&last.arguments, sum);
    assert_eq!(plan.count("core.greater_equal"), 1);
}

#[test]
fn each_where_is_a_jump_over_its_branch() {
    let plan = Listing::of(QUADRATIC, &Options::default().without_pass("select"));
    let condition = plan.one("core.greater_equal").slot.clone().expect("a slot");
    let jumps: Vec<usize> =
        (0..plan.steps.len()).filter(|at| plan.steps[*at].operator.starts_with("jump_if_not")).collect();
    assert_eq!(jumps.len(), 2);
    assert_eq!(plan.count("core.where") + plan.count("core._short_circuit_where"), 0);
    for at in jumps {
        assert_eq!(plan.steps[at].arguments, std::slice::from_ref(&condition));
        // The target is behind the jump that ends the branch: there begins the other branch, a copy of the missing value.
        let far: usize =
            plan.steps[at].operator["jump_if_not<+".len()..].trim_end_matches('>').parse().expect("a number");
        assert_eq!(plan.steps[at + far].operator, "jump<+1>");
        assert_eq!(plan.steps[at + far + 1].operator, "core._copy");
        let divisions = plan.steps[at..at + far].iter().filter(|step| step.operator == "math.divide").count();
        assert_eq!(divisions, 2);
    }
    // No division is outside of the branches.
    assert_eq!(plan.count("math.divide"), 4);
}

#[test]
fn slots_are_given_again() {
    let plan = Listing::of(QUADRATIC, &Options::default().without_pass("select"));
    let mut writes: BTreeMap<&str, usize> = BTreeMap::new();
    let first_jump = plan.steps.iter().position(|step| step.slot.is_none()).expect("a jump");
    // Before the first jump, so that two branches writing one slot do not count.
    for step in &plan.steps[..first_jump] {
        *writes.entry(step.slot.as_deref().expect("a slot")).or_default() += 1;
    }
    assert!(writes.values().any(|count| *count >= 2), "{writes:?}");
    let model = Model::parse(QUADRATIC).expect("a model");
    let prepared =
        cembra_prepare::prepare(model.program(), &|_| None, &cembra_prepare::Options::default(), &mut |_, _| {});
    let placed = prepared.expect("types").placed().expect("every pass");
    let plan = cembra_plan::build(&placed, &cembra_value::Budget::default()).expect("a plan");
    assert!(plan.reused_slots() >= 1);
}

#[test]
fn a_where_is_two_blocks_in_the_code() {
    let options = Options::default().without_pass("select");
    let clif = explain(QUADRATIC, &options, Stage::Clif);
    // Instructions stand behind the step that they are for.
    let lines = || clif.lines().map(|line| line.split_once('@').map_or(line, |(_, line)| &line[4..]).trim_start());
    assert_eq!(lines().filter(|line| line.starts_with("brif")).count(), 2, "{clif}");
    let block = |line: &str| line.starts_with("block");
    // For each its branches and its join, behind the entry.
    assert_eq!(lines().filter(|line| block(line)).count(), 7, "{clif}");
    // Divisions are in the branches only.
    let (entry, rest) = clif.split_once("block1:").expect("a branch");
    assert!(!entry.contains("fdiv"), "{entry}");
    assert_eq!(rest.matches("fdiv").count(), 2, "{rest}");
}

#[test]
fn a_conditional_is_a_branch_unless_its_condition_is_known() {
    let options = Options::default().without_pass("select");
    let branches = |text: &str| {
        let text = format!("input x, y: f64; let c = x > y; let a = where(c, x * 3, y); output z = {text}");
        explain(&text, &options, Stage::Clif).matches("brif").count()
    };
    assert_eq!(branches("(a, where(c, 5.0, y / x), where(c, x - y, 7.0))"), 3);
    assert_eq!(branches("where(x > 1, a + where(c, 5.0, y / x), y * x)"), 3);
    assert_eq!(branches("a + where(core.has(x), x / 2, x * 2)"), 1);
}

#[test]
fn native_code_uses_no_memory_but_for_inputs_and_outputs() {
    let clif = explain(QUADRATIC, &Options::default(), Stage::Clif);
    assert_eq!(clif.matches("load.").count(), 3, "{clif}");
    assert_eq!(clif.matches("store").count(), 4, "{clif}");
}

#[test]
fn passes_can_be_left_out_and_stopped_after() {
    let all = explain(QUADRATIC, &Options::default(), Stage::Passes);
    let stopped = explain(QUADRATIC, &Options::default().stop_after("fold"), Stage::Passes);
    assert!(all.starts_with(&stopped), "{stopped}");
    assert_eq!(stopped.matches("\n# ").count() + 1, 3);
    let model = Model::parse(QUADRATIC).expect("a model");
    for pass in ["types", "expand", "fold", "optimise", "extensions"] {
        let error = model.explain(&Options::default().stop_after(pass), Stage::Plan).expect_err("no regions yet");
        assert!(error.to_string().contains("not fully prepared"), "{error}");
    }
}

/// The function without what depends on the machine: its calling convention.
fn portable(clif: &str) -> String {
    let (head, body) = clif.split_once(" {\n").expect("a function");
    let (signature, _) = head.rsplit_once(' ').expect("a calling convention");
    format!("{signature} {{\n{body}")
}

#[test]
fn listings_of_the_quadratic() {
    let options = Options::default();
    insta::assert_snapshot!("quadratic_passes", explain(QUADRATIC, &options, Stage::Passes));
    insta::assert_snapshot!("quadratic_plan", explain(QUADRATIC, &options, Stage::Plan));
    insta::assert_snapshot!("quadratic_clif", portable(&explain(QUADRATIC, &options, Stage::Clif)));
}

#[test]
fn listings_of_nested_conditionals() {
    let options = Options::default();
    insta::assert_snapshot!("nested_passes", explain(NESTED, &options, Stage::Passes));
    insta::assert_snapshot!("nested_plan", explain(NESTED, &options, Stage::Plan));
    insta::assert_snapshot!("nested_clif", portable(&explain(NESTED, &options, Stage::Clif)));
}

#[test]
fn the_listing_of_arrays_has_a_step_for_each_map() {
    let options = Options::default();
    let listing = explain(ARRAYS, &options, Stage::Arrays);
    insta::assert_snapshot!("arrays", listing);
    // Operator by operator, each of the model's is a step.
    let unfused = explain(ARRAYS, &options.backend(Backend::Interpreter), Stage::Arrays);
    let maps = |listing: &str| listing.lines().filter(|line| line.contains(" = map(")).count();
    assert_eq!((maps(&listing), maps(&unfused)), (2, 5), "{unfused}");
    assert_eq!(
        explain(QUADRATIC, &Options::default(), Stage::Arrays),
        "The model has no arrays and no tensors: `plan` shows its steps.\n"
    );
    let lanes = explain(ARRAYS, &Options::default(), Stage::Lanes);
    assert!(lanes.starts_with("Over many rows:\nL.0 is the elements of all rows of `x`\n"), "{lanes}");
    for stage in [Stage::Plan, Stage::Clif, Stage::Asm] {
        assert!(explain(ARRAYS, &Options::default(), stage).starts_with("The model has arrays"), "{stage:?}");
    }
}

/// The counters of an array program: arrays made, arrays only in strips, what is written of each element, bytes of strips.
fn counters(text: &str, options: &Options) -> (usize, usize, f64, usize) {
    let listing = explain(text, options, Stage::Arrays);
    let number = |before: &str| {
        let (head, _) = listing.split_once(before).unwrap_or_else(|| panic!("{before}: {listing}"));
        head.rsplit([' ', ',']).next().expect("a number").parse::<f64>().expect("a number")
    };
    let plural = |one: &str, more: &str| number(if listing.contains(more) { more } else { one });
    (
        plural(" array stored", " arrays stored") as usize,
        plural(" array kept only", " arrays kept only") as usize,
        plural(" byte per element of", " bytes per element of"),
        plural(" byte in ", " bytes in ") as usize,
    )
}

#[test]
fn listings_of_arrays_say_what_is_written_to_memory() {
    let fused = |text: &str| counters(text, &Options::default());
    let sweeps = |text: &str| {
        explain(text, &Options::default(), Stage::Arrays).lines().filter(|line| line.contains(" = sweep")).count()
    };
    // What is only summed is nowhere.
    let sum = "input x, y: [f64?]; math.sum(where(x > 0, x * y))";
    assert_eq!(fused(sum), (0, 1, 0.0, 0));
    // The mask, the zero that it is compared with aside, the product and what is chosen: operator by operator each is written.
    assert_eq!(counters(sum, &Options::default().backend(Backend::Interpreter)), (3, 0, 0.125 + 2.0 * 8.125, 0));
    // Ten operators and three sums of what they make: one pass, and 1,024 values with their bits at a time.
    let chain = "input x, y: [f64?]; let p = math.abs((x + y) * 2.0 - x / 3.0) * y - (x * 0.5 + 1.0) * (y + 4.0)";
    let sums = "output a = math.sum(p); output b = math.max(p); output c = math.mean(p * p)";
    let three = format!("{chain}; {sums}");
    assert_eq!((sweeps(&three), fused(&three)), (1, (0, 2, 0.0, 1024 * 8 + 1024 / 8)));
    // A softmax of groups stores its result alone: values without bits, since each element's group has an element.
    let softmax = "input x: [f64], by: splits; math.softmax(x, over=by)";
    let (made, _, written, _) = fused(softmax);
    assert_eq!((sweeps(softmax), made, written), (1, 1, 8.0));
    // Over a mapping each step waits for all of the one before: maxima and sums are arrays, of which groups have an element.
    let (made, _, _, _) = fused("input x: [f64], by: mapping; math.softmax(x, over=by)");
    assert!(made > 1, "{made}");
    // What is expanded and then mapped is read by index.
    let expanded = "input x: [f64?], v: [f64?], by: mapping; math.sum(x * array.expand(v, over=by))";
    let (made, only_seen, written, _) = fused(expanded);
    assert_eq!((sweeps(expanded), made, only_seen, written), (1, 0, 2, 0.0));
    // Sums of groups are arrays of them.
    let listing = explain("input x: [f64], by: splits; math.sum(x * x, into=by)", &Options::default(), Stage::Arrays);
    assert!(listing.contains(" writes 8 bytes a group"), "{listing}");
    // Nothing goes over more arrays than 128 in strips: a plan makes the array, and then it is summed.
    let many = |count: usize| {
        let names: Vec<String> = (0..count).map(|at| format!("x{at}")).collect();
        format!("input {}: [f64]; math.sum({})", names.join(", "), names.join(" + "))
    };
    assert_eq!((fused(&many(128)), fused(&many(129))), ((0, 1, 0.0, 0), (1, 0, 8.0, 0)));
    // A result of bits: values, and presence where one may be missing.
    assert_eq!(fused("input x: [f64?]; output b = bool.less(x, 1.0); output c = array.count(x > 0)").2, 0.25);
}

#[test]
fn listings_show_what_inputs_promise() {
    let text = "input x, y: [f64], z: [f64?], by: splits, of: mapping, any: edge\n\
                output s = math.sum(x + y, into=by)\noutput t = math.sum(z, into=of) + math.sum(y, into=any)\n";
    let printed = explain(text, &Options::default(), Stage::Expr);
    let inputs: Vec<&str> = printed.lines().filter(|line| line.starts_with("input ")).collect();
    assert_eq!(
        inputs,
        [
            "input x: [f64]",
            "input y: [f64]",
            "input z: [f64?]",
            "input by: splits",
            "input of: mapping",
            "input any: edge"
        ]
    );
    let prepared = explain(text, &Options::default(), Stage::Prepared);
    let leaves: Vec<&str> =
        prepared.lines().filter_map(|line| line.split_once(" = L.")).map(|(_, leaf)| leaf).collect();
    assert_eq!(
        leaves,
        ["x : [f64?], full", "y : [f64?], full", "z : [f64?]", "by : edge, splits", "of : edge, mapping", "any : edge",]
    );
}
