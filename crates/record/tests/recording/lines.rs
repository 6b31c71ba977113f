//! Tests of straight lines (steps recorded on one tape). A test backend names each part of a value by the value and a
//! number, and interprets the tapes on bits. Checked are the values that a line reads from outside, its results, and
//! the constants that it knows.

use cembra_expr::parse;
use cembra_ops::Registry;
use cembra_plan::{Action, Binding, BlockId, Plan, StepId, ValueId, build};
use cembra_prepare::{Options, prepare};
use cembra_record::{
    Datum, Line, MachineValue, Outline, Presence, ScopedValueMap, Segment, Values, gather, part_types,
};
use cembra_runtime::QType;
use cembra_tape::{Instr, Outcome};
use cembra_value::{Budget, Limits};
use std::collections::HashMap;

/// A part of a value: the value, and the number of the part.
type ValuePart = (ValueId, usize);

/// The values outside of lines: the backend's parts for each value, and the bits of each part.
#[derive(Default)]
struct Outside {
    held: ScopedValueMap<MachineValue<ValuePart>>,
    bits: HashMap<ValuePart, u64>,
    /// The values that a line read from outside, in the order of the reads.
    brought: Vec<ValueId>,
    types: Vec<QType>,
}

impl Values<ValuePart> for Outside {
    fn held(&self, value: ValueId) -> Option<&MachineValue<ValuePart>> {
        self.held.get(value)
    }

    fn bring(&mut self, value: ValueId) -> MachineValue<ValuePart> {
        if let Some(held) = self.held.get(value) {
            return held.clone();
        }
        self.brought.push(value);
        let mut parts = (0..).map(|number| (value, number));
        let brought = gather(&self.types[value.index()], &mut parts);
        self.held.set(value, brought.clone());
        brought
    }
}

impl Outside {
    /// Makes an empty state with room for the values of `plan`.
    fn of(plan: &Plan) -> Self {
        let types = (0..plan.value_count()).map(|at| plan.value(ValueId::from_index(at)).qtype.clone()).collect();
        let mut outside = Outside { types, ..Outside::default() };
        outside.held.reset(plan);
        outside
    }
}

/// Records the first line of a plan. Returns the line, and the state with the values that the line read from outside.
fn first_line(outline: &Outline<'_>) -> (Line<ValuePart>, Outside) {
    let plan = outline.plan;
    let Some(Segment::Line(steps)) = Segment::first(plan, &plan.block(BlockId::TOP).steps) else { panic!("a line") };
    let (mut line, mut outside) = (Line::default(), Outside::of(plan));
    line.reset(plan, true);
    line.record(outline, steps, &mut outside);
    (line, outside)
}

fn plan_of(text: &str) -> (Plan, Binding) {
    let program = parse(text, Registry::standard(), &Limits::default()).expect("a model");
    let prepared = prepare(&program, &|_| None, &Options::default(), &mut |_, _| {}).expect("types");
    let plan = build(&prepared.placed().expect("every pass"), &Budget::default()).expect("a plan");
    let binding = plan.frame_binding();
    (plan, binding)
}

/// Records and interprets all lines of a plan without conditionals, calls and loops, on the bits of its inputs. Returns
/// the bits of the first output's parts, and the values that remain outside of lines.
fn play(plan: &Plan, binding: &Binding, inputs: &[&[u64]]) -> (MachineValue<u64>, Outside) {
    let outline = Outline::of(plan, binding, false, &Budget::default()).expect("within the limits");
    let mut outside = Outside::of(plan);
    for (input, bits) in plan.inputs().iter().zip(inputs) {
        for (number, bits) in bits.iter().enumerate() {
            outside.bits.insert((input.value, number), *bits);
        }
    }
    let mut line = Line::default();
    line.reset(plan, true);
    let mut steps = &plan.block(BlockId::TOP).steps[..];
    while let Some(segment) = Segment::first(plan, steps) {
        steps = &steps[segment.step_count()..];
        let Segment::Line(these) = segment else { panic!("{segment:?} is no line") };
        line.record(&outline, these, &mut outside);
        let bits: Vec<u64> = line.inputs().iter().map(|part| outside.bits[part]).collect();
        // SAFETY: STRING-VIEW: there are no strings.
        let Outcome::Done(results) = (unsafe { line.tape().run_on_bits(&bits) }) else { panic!("a fault") };
        let mut fresh: Vec<(ValuePart, u64)> = Vec::new();
        let mut made = Vec::new();
        for (value, held) in line.results(|at| Some((ValueId::from_index(0), at))) {
            let named = renamed(&held, &mut |(_, at)| {
                fresh.push(((value, fresh.len()), results[at]));
                (value, fresh.len() - 1)
            });
            made.push((value, named));
        }
        outside.bits.extend(fresh);
        made.into_iter().for_each(|(value, held)| outside.held.set(value, held));
    }
    let output = outside.bring(plan.outputs()[0].value);
    let output = renamed(&output, &mut |part| outside.bits[&part]);
    (output, outside)
}

/// Converts the parts of a value by `name`, and keeps its structure.
fn renamed<P: Copy, Q>(value: &MachineValue<P>, name: &mut impl FnMut(P) -> Q) -> MachineValue<Q> {
    let presence = match value.presence {
        Presence::Present => Presence::Present,
        Presence::Missing => Presence::Missing,
        Presence::Flag(part) => Presence::Flag(name(part)),
    };
    let datum = match &value.datum {
        Datum::Nothing => Datum::Nothing,
        Datum::Flag(part) => Datum::Flag(name(*part)),
        Datum::Num(part) => Datum::Num(name(*part)),
        Datum::Text(ptr, len) => Datum::Text(name(*ptr), name(*len)),
        Datum::Tuple(fields) => Datum::Tuple(fields.iter().map(|field| renamed(field, name)).collect()),
    };
    MachineValue { presence, datum }
}

fn f(value: f64) -> u64 {
    value.to_bits()
}

#[test]
fn a_line_takes_what_it_needs_and_gives_what_others_need() {
    let (plan, binding) =
        plan_of("input a: f64; input b: f64?; input unused: f64\nlet d = a * a - 4.0 * b\noutput y = d + 1.0");
    let (found, outside) = play(&plan, &binding, &[&[f(3.0)], &[1, f(2.0)]]);
    assert_eq!(found, MachineValue { presence: Presence::Flag(1), datum: Datum::Num(f(2.0)) });
    assert_eq!(outside.brought.len(), 2, "literals are not brought in");
    let (found, _) = play(&plan, &binding, &[&[f(3.0)], &[0, f(2.0)]]);
    assert_eq!(found.presence, Presence::Flag(0));
}

#[test]
fn what_is_known_of_presence_crosses_lines() {
    // The conditional divides the steps into lines; what is before it knows that the sum is there.
    let (plan, binding) = plan_of("input a: f64; input b: i32\noutput y = (b // 2) & (a + 1.0 == a + 1.0)");
    let outline = Outline::of(&plan, &binding, false, &Budget::default()).expect("within the limits");
    assert!(outline.pieces.is_whole());
    let (found, _) = play(&plan, &binding, &[&[f(1.5)], &[7]]);
    assert_eq!(found, MachineValue { presence: Presence::Flag(1), datum: Datum::Num(3) });
    let (plan, binding) = plan_of("input a: f64\noutput y = core.to_optional(a) + 1.0");
    let (found, _) = play(&plan, &binding, &[&[f(1.5)]]);
    assert_eq!(found, MachineValue { presence: Presence::Present, datum: Datum::Num(f(2.5)) });
}

#[test]
fn a_field_of_a_tuple_brings_in_no_other() {
    let (plan, binding) = plan_of("input t: (f64, (i32, f64))\noutput y = t.1.1 * 2.0");
    let mut types = Vec::new();
    part_types(&plan.value(plan.inputs()[0].value).qtype, &mut types);
    assert_eq!(types.len(), 3);
    // Taken out of what is in memory, the field is a value of its own, with parts of its own.
    let outline = Outline::of(&plan, &binding, false, &Budget::default()).expect("within the limits");
    let (line, outside) = first_line(&outline);
    assert_eq!(line.inputs().len(), 1, "{}", line.tape());
    assert_eq!(outside.brought.len(), 1);
    assert!(outline.locations.lies_in_slot(outside.brought[0]), "it is read from inside of the tuple");
}

#[test]
fn lines_end_at_calls_conditionals_and_loops() {
    let (plan, _) = plan_of(
        "input s: text; input x: f64\nlet n = strings.length(s)\nlet e = where(x > 0.0, math.log(x) * math.exp(x) * math.exp(-x), math.exp(x) * math.exp(x * 2.0))\noutput y = math.float(n) + e + 1.0",
    );
    let mut steps: &[StepId] = &plan.block(BlockId::TOP).steps;
    let mut kinds = Vec::new();
    while let Some(segment) = Segment::first(&plan, steps) {
        steps = &steps[segment.step_count()..];
        kinds.push(match segment {
            Segment::Access(..) => "access",
            Segment::Line(_) => "line",
            Segment::Where(_) => "where",
            Segment::Loop(_) => "loop",
            Segment::Call(_) => "call",
        });
    }
    assert_eq!(kinds.iter().filter(|kind| **kind == "call").count(), 1, "{kinds:?}\n{plan}");
    assert_eq!(kinds.iter().filter(|kind| **kind == "where").count(), 1, "{kinds:?}\n{plan}");
    assert!(!kinds.windows(2).any(|two| two == ["line", "line"]), "{kinds:?}");
    let (plan, _) = plan_of("input n: i64\noutput y = core.while_loop(n, fn(x) = x < 100, fn(x) = x * 2)");
    let has_loop = |at: usize| matches!(plan.step(StepId::from_index(at)).action, Action::Loop { .. });
    assert!((0..plan.step_count()).any(has_loop));
}

#[test]
fn only_what_is_needed_is_live() {
    let (plan, binding) = plan_of("input a, b: f64?\noutput y = core.has(a + b)");
    let (found, _) = play(&plan, &binding, &[&[1, f(1.0)], &[0, f(2.0)]]);
    assert_eq!(found.presence, Presence::Flag(0));
    let outline = Outline::of(&plan, &binding, false, &Budget::default()).expect("within the limits");
    let (line, _) = first_line(&outline);
    let live = |instr: &Instr, live: &bool| *live && matches!(instr, Instr::Bin(..));
    let sums =
        line.tape().instrs().iter().zip(line.tape().live()).filter(|(instr, needed)| live(instr, needed)).count();
    assert_eq!(sums, 0, "nobody needs the sum\n{}", line.tape());
}
