//! Runs plans as typed executors do: inputs are read from a struct of the caller, and outputs are written to a second struct. Memory that is not
//! written is filled with garbage, so the payload of a missing value is arbitrary. A backend may continue with the frame of another backend, as
//! when an executor changes tiers.

use crate::subject::{Row, stage};
use crate::values::fresh;
use cembra::native::Tier;
use cembra_plan::{Base, Binding, Function, Plan, ValueId, ValueLocation};
use cembra_runtime::{Context, Frame, FrameLayout, STATUS_OK};
use cembra_value::{Budget, Limits, Value};

/// The binding of a plan's inputs and outputs to structs of their own.
struct Structs {
    binding: Binding,
    input: FrameLayout,
    output: FrameLayout,
}

impl Structs {
    /// Returns the structs for a plan; `None` if one would be too large.
    fn of(plan: &Plan) -> Option<Structs> {
        let (mut input, mut output) = (FrameLayout::default(), FrameLayout::default());
        let places = |base, layout: &mut FrameLayout, values: &mut dyn Iterator<Item = ValueId>| {
            values.map(|value| Some(ValueLocation { base, offset: layout.add(&plan.value(value).qtype)? })).collect()
        };
        let inputs: Option<Vec<ValueLocation>> =
            places(Base::Input, &mut input, &mut plan.inputs().iter().map(|input| input.value));
        let outputs: Option<Vec<ValueLocation>> =
            places(Base::Output, &mut output, &mut plan.outputs().iter().map(|output| output.value));
        let binding = Binding { inputs: inputs?, outputs: outputs? };
        Some(Structs { binding, input, output })
    }
}

/// Runs `plan` in place on `rows`, and returns the outputs of each row for each backend, by name. In one more run, both backends take turns with
/// one frame. `None` in place of outputs stands for a fault. A backend that cannot compile the plan is left out; other checks report that.
pub(crate) fn answers(
    plan: &Plan,
    rows: &[Row],
    limits: &Limits,
    tier: Tier,
) -> Vec<(&'static str, Vec<Option<Vec<Value>>>)> {
    let Some(structs) = Structs::of(plan) else { return Vec::new() };
    let interpreted = cembra_interp::bind(plan, &structs.binding);
    let mut all = vec![("interpreter in place", run(plan, &structs, &[&interpreted], rows, limits))];
    if let Ok(compiled) = cembra_native::compile(plan, &structs.binding, tier, &Budget::new(*limits)) {
        all.push(("native in place", run(plan, &structs, &[&compiled], rows, limits)));
        all.push(("tiered in place", run(plan, &structs, &[&interpreted, &compiled], rows, limits)));
    }
    all
}

/// Runs the rows. `functions` take turns: each runs its share of the rows, in order.
fn run(
    plan: &Plan,
    structs: &Structs,
    functions: &[&dyn Function],
    rows: &[Row],
    limits: &Limits,
) -> Vec<Option<Vec<Value>>> {
    let mut frame = plan.template().frame();
    let mut context = Context::with_arena_limit(limits.arena_bytes);
    let garbage = |layout: &FrameLayout, byte: u8| Frame::from_bytes(&vec![byte; layout.size() as usize]);
    rows.iter()
        .enumerate()
        .map(|(at, row)| {
            let function = functions[stage(at, rows.len(), functions.len())];
            let mut input = garbage(&structs.input, 0xAA);
            let mut output = garbage(&structs.output, 0x55);
            let values: Vec<Value> =
                plan.inputs().iter().map(|leaf| row.get(&leaf.name).map(fresh)).collect::<Option<_>>()?;
            if values.iter().zip(plan.inputs()).any(|(value, leaf)| value.qtype() != plan.value(leaf.value).qtype) {
                return None;
            }
            for (value, place) in values.iter().zip(&structs.binding.inputs) {
                // SAFETY: FRAME-SLOT: the place is in the layout the memory was made for, of the type just checked.
                unsafe { value.write_to(input.ptr(), place.offset) };
            }
            context.set_iterations(limits.loop_iterations);
            context.set_string_work(limits.string_work);
            context.begin();
            // SAFETY: CALL: the frame is of this plan's template, the functions were bound to these places, and the texts in
            // `values` live until the outputs are read.
            let status = unsafe { function.call(input.ptr(), output.ptr(), frame.ptr(), &mut context) };
            let status = context.end(status);
            let read = |output: &mut Frame| {
                plan.outputs()
                    .iter()
                    .zip(&structs.binding.outputs)
                    // SAFETY: FRAME-SLOT: the call wrote a value of this type there.
                    .map(|(out, place)| unsafe {
                        Value::read_from(&plan.value(out.value).qtype, output.ptr(), place.offset)
                    })
                    .collect()
            };
            (status == STATUS_OK).then(|| read(&mut output))
        })
        .collect()
}
