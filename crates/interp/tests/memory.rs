//! Tests of the memory that the interpreter reads and writes: frames that move, literals whose plan is dropped, strings
//! over many chunks of the arena, structs with arbitrary bytes in missing values. The tests use only a plan and the
//! interpreter, and are small, so tools that check each memory access, such as Miri, can run them.

use cembra_expr::parse;
use cembra_interp::{Interpreted, bind};
use cembra_ops::Registry;
use cembra_plan::{Base, Binding, Function, Plan, Template, ValueLocation, build};
use cembra_prepare::{Options, prepare};
use cembra_runtime::{Context, FaultKind, Frame, FramePtr, Optional, QType, STATUS_OK, Scalar, Slot, Text};
use cembra_value::{Budget, Limits, ScalarValue, Value};
use std::mem::MaybeUninit;

fn plan(source: &str) -> Plan {
    let program = parse(source, Registry::standard(), &Limits::default()).expect("a program");
    let prepared = prepare(&program, &|_| None, &Options::default(), &mut |_, _| {}).expect("types");
    let placed = prepared.placed().expect("every pass");
    build(&placed, &Budget::default()).expect("a plan")
}

/// A model with the frame and the context in which it is evaluated several times.
struct Session {
    function: Interpreted,
    template: Template,
    frame: Frame,
    context: Context,
    inputs: Vec<(QType, u32)>,
    outputs: Vec<(QType, u32)>,
}

impl Session {
    fn new(source: &str) -> Session {
        let plan = plan(source);
        let slot = |value| (plan.value(value).qtype.clone(), plan.value(value).slot);
        let template = plan.template().clone();
        Session {
            function: bind(&plan, &plan.frame_binding()),
            frame: template.frame(),
            template,
            context: Context::new(),
            inputs: plan.inputs().iter().map(|input| slot(input.value)).collect(),
            outputs: plan.outputs().iter().map(|output| slot(output.value)).collect(),
        }
    }

    fn run(&mut self, values: &[Value]) -> Result<Vec<Value>, FaultKind> {
        assert_eq!(values.len(), self.inputs.len());
        self.context.arena().reset();
        let frame = self.frame.ptr();
        // SAFETY: CALL, FRAME-SLOT and STRING-VIEW: the frame is one of the plan's template, values are of the inputs'
        // types and live until the outputs are copied.
        unsafe {
            for (value, (qtype, slot)) in values.iter().zip(&self.inputs) {
                assert!(value.is_of(qtype), "{value} of {qtype}");
                value.write_to(frame, *slot);
            }
            if self.function.call(frame, frame, frame, &mut self.context) != STATUS_OK {
                return Err(FaultKind::from_number(self.context.record().kind).expect("a fault"));
            }
            Ok(self.outputs.iter().map(|(qtype, slot)| Value::read_from(qtype, frame, *slot)).collect())
        }
    }
}

#[test]
fn literals_inputs_and_made_strings_are_viewed_side_by_side() {
    let source = "input t: text; input u: text?; input b: bytes
         let long = strings.replace(strings.upper(t), \"A\", \"<a long replacement of the letter>\")
         output all = strings.join(long, \"|\", t, \"|\", u ?? \"no text\")
         output first = strings.find(long, \"LONG\") ?? -1
         output pair = (\"a literal\", strings.lower(t))
         output size = strings.length(b)";
    let mut session = Session::new(source);
    for round in 0..3 {
        for len in [0, 1, 50, 3, 400] {
            let text = "a".repeat(len) + "é";
            let optional = (len % 2 == 0).then(|| format!("present {round}"));
            let values = [
                Value::from(text.as_str()),
                Value::optional(Scalar::Text, optional.as_deref().map(|text| ScalarValue::Text(text.into()))),
                Value::Scalar(ScalarValue::Bytes(vec![7; len].into())),
            ];
            let found = session.run(&values).expect("no fault");
            drop(values);
            let long = "<a long replacement of the letter>".repeat(len) + "É";
            let all = format!("{long}|{text}|{}", optional.as_deref().unwrap_or("no text"));
            let pair = Value::Tuple([Value::from("a literal"), Value::from(text.as_str())].into());
            assert_eq!(found, [Value::from(all.as_str()), Value::from(-1_i64), pair, Value::from(len as i64)]);
            // Frame and context go elsewhere with their owner; what points into them does not matter between calls.
            session = *Box::new(session);
        }
        // A further frame of the same template, whose plan is long gone.
        session.frame = session.template.frame();
    }
    assert!(session.context.arena_bytes() > 4096 * 2, "{} bytes", session.context.arena_bytes());
}

#[test]
fn a_loop_over_texts_makes_one_after_the_other() {
    let source = "input n: i64; input t: text
         output r = seq.reduce(fn(made, i) = strings.join(made, \"-\", t), seq.range(n), \"\")";
    let mut session = Session::new(source);
    for count in [1_i64, 2, 200, 5] {
        let found = session.run(&[Value::from(count), Value::from("word")]).expect("no fault");
        assert_eq!(found, [Value::from("-word".repeat(count as usize).as_str())]);
    }
}

/// The text that a fault reports is in the arena or in an input. The caller must read it before the next evaluation
/// begins.
#[test]
fn a_fault_leaves_the_session_as_it_was() {
    let mut session = Session::new("input t: text; output n = strings.parse_int32(strings.strip(t)) + 1");
    assert_eq!(session.run(&[Value::from(" 41 ")]).expect("a number"), [Value::from(42)]);
    assert_eq!(session.run(&[Value::from(" x1 ")]), Err(FaultKind::Parse));
    let record = session.context.record();
    // SAFETY: STRING-VIEW: the operands view what was parsed, a part of the input, which is a literal here.
    let _ = unsafe { Text::from_raw(record.operands[0] as *const u8, 0) };
    assert_eq!(session.run(&[Value::from("7")]).expect("a number"), [Value::from(8)]);
}

#[repr(C)]
struct Input<'t> {
    x: f64,
    known: bool,
    yes: Optional<bool>,
    name: Optional<Text<'t>>,
    y: Optional<f64>,
}

#[repr(C)]
struct Output<'t> {
    sum: Optional<f64>,
    both: Optional<bool>,
    greeting: Text<'t>,
    /// The output `large`, a mask: true if it is present.
    large: bool,
}

/// Structs of the caller, as `ModelExecutor` and compiled models take them, may have arbitrary bytes in the value of a
/// missing optional.
#[test]
fn structs_hold_anything_behind_what_is_missing() {
    let plan = plan(
        "input x: f64; input known: bool; input yes: bool?; input name: text?; input y: f64?
         let twice = x * 2.0
         output sum = twice + y
         output both = bool.logical_and(known, yes)
         output greeting = name ?? \"nobody\"
         output large = twice > 100.0",
    );
    let place = |name: &str| match name {
        "x" => (Base::Input, std::mem::offset_of!(Input<'_>, x)),
        "known" => (Base::Input, std::mem::offset_of!(Input<'_>, known)),
        "yes" => (Base::Input, std::mem::offset_of!(Input<'_>, yes)),
        "name" => (Base::Input, std::mem::offset_of!(Input<'_>, name)),
        _ => (Base::Input, std::mem::offset_of!(Input<'_>, y)),
    };
    let place_out = |name: &str| match name {
        "sum" => (Base::Output, std::mem::offset_of!(Output<'_>, sum)),
        "both" => (Base::Output, std::mem::offset_of!(Output<'_>, both)),
        "greeting" => (Base::Output, std::mem::offset_of!(Output<'_>, greeting)),
        _ => (Base::Output, std::mem::offset_of!(Output<'_>, large)),
    };
    let of = |(base, offset)| ValueLocation { base, offset: offset as u32 };
    let binding = Binding {
        inputs: plan.inputs().iter().map(|input| of(place(&input.name))).collect(),
        outputs: plan.outputs().iter().map(|output| of(place_out(&output.name))).collect(),
    };
    let (function, mut frame, mut context) = (bind(&plan, &binding), plan.template().frame(), Context::new());
    for at in 0..32_u32 {
        let owned = format!("name {at}");
        let mut input = Input {
            x: f64::from(at) * 4.0,
            known: at & 16 == 0,
            yes: if at & 1 == 0 { garbage() } else { Optional::present(at & 8 == 0) },
            name: if at & 2 == 0 { garbage() } else { Optional::present(Text::new(&owned)) },
            y: if at & 4 == 0 { garbage() } else { Optional::present(1.0) },
        };
        let mut output = MaybeUninit::<Output<'_>>::zeroed();
        let (from, to) = (FramePtr::from_raw((&raw mut input).cast()), FramePtr::from_raw(output.as_mut_ptr().cast()));
        // SAFETY: CALL: places are the offsets of fields of the inputs' and outputs' types.
        let status = unsafe { function.call(from, to, frame.ptr(), &mut context) };
        assert_eq!(status, STATUS_OK);
        // SAFETY: FIELD-TABLE: every field was written, but for what is behind missing values.
        let output = unsafe { output.assume_init() };
        let twice = input.x * 2.0;
        assert_eq!(output.sum.get(), input.y.get().map(|y| twice + y));
        let both = if input.known { input.yes.get() } else { Some(false) };
        assert_eq!((output.both.get(), output.large), (both, twice > 100.0));
        assert_eq!(output.greeting.as_str(), if at & 2 == 0 { "nobody" } else { &owned });
    }
}

/// Makes a missing optional with arbitrary bytes in its value.
fn garbage<T: Copy>() -> Optional<T> {
    let mut value = MaybeUninit::<Optional<T>>::uninit();
    // SAFETY: FRAME-SLOT: the presence byte is first; the rest may be anything.
    unsafe {
        value.as_mut_ptr().cast::<u8>().write_bytes(0xA5, size_of::<Optional<T>>());
        FramePtr::from_raw(value.as_mut_ptr().cast()).write(Slot::at(0), 0_u8);
        value.assume_init()
    }
}

#[test]
fn a_limit_of_the_arena_is_a_fault_and_not_a_piece() {
    let mut session = Session::new("input t: text; output r = strings.join(t, t, t)");
    session.context = Context::with_arena_limit(100);
    assert_eq!(
        session.run(&[Value::from("a".repeat(33).as_str())]).expect("room"),
        [Value::from("a".repeat(99).as_str())]
    );
    assert_eq!(session.run(&[Value::from("a".repeat(34).as_str())]), Err(FaultKind::ArenaLimit));
    assert_eq!(session.context.record().operands[0], 100);
}
