//! Checks that operators on strings store their results in the arena of the evaluation: once the arena has grown, calls
//! of their kernels allocate nothing.

use crate::counting;

use cembra_ops::{Overload, Registry};
use cembra_runtime::{Context, Frame, FrameLayout, KernelChain, QType, Scalar};
use cembra_value::{ScalarValue, Value};

fn argument(qtype: &QType, position: usize) -> Value {
    let text = ["H\u{e9}llo \u{df} %5d|%.3f w\u{f6}rld 12", "(l+)", "\u{1f600}-", "%s", "x", ""][position];
    let value = match qtype.scalar() {
        Some(Scalar::Unit) => ScalarValue::Unit,
        Some(Scalar::Boolean) => ScalarValue::Boolean(true),
        Some(Scalar::Text) => ScalarValue::Text(text.into()),
        Some(Scalar::Bytes) => ScalarValue::Bytes(text.as_bytes().into()),
        Some(Scalar::Int32) => ScalarValue::Int32(1),
        Some(Scalar::Float32) => ScalarValue::Float32(0.1),
        Some(Scalar::Float64) => ScalarValue::Float64(1e-5),
        Some(other) => ScalarValue::from_bits(other, 1).expect("all others have bits"),
        None => unreachable!("overloads are on scalars"),
    };
    if qtype.is_optional() { Value::Present(value) } else { Value::Scalar(value) }
}

/// The number of allocations of a call, after two equal calls in which the arena has grown.
fn allocations(overload: &Overload, lifted: bool) -> usize {
    let types: Vec<QType> =
        overload.args.iter().map(|operand| QType::of(operand.scalar, operand.optional || lifted)).collect();
    let ret = QType::of(overload.ret.scalar, overload.ret.optional || lifted);
    let mut layout = FrameLayout::default();
    let slots: Vec<u32> =
        types.iter().chain([&ret]).map(|qtype| layout.add(qtype).expect("room in the frame")).collect();
    let mut frame = Frame::zeroed(layout.size() as usize);
    let args: Vec<Value> = types.iter().enumerate().map(|(at, qtype)| argument(qtype, at)).collect();
    for (arg, slot) in args.iter().zip(&slots) {
        // SAFETY: FRAME-SLOT: the layout was made for these types, and the values outlive the calls.
        unsafe { arg.write_to(frame.ptr(), *slot) };
    }
    let mut row = KernelChain::default();
    row.push(overload.kernel(lifted), overload.data.as_ptr(), 0, slots.iter().copied());
    row.end();
    let mut context = Context::new();
    let mut count = 0;
    for _ in 0..3 {
        context.arena().reset();
        let before = counting::so_far();
        // SAFETY: FRAME-SLOT, as above; the kernel is the overload's for these types.
        unsafe {
            row.call(0).run(&mut context, frame.ptr());
        }
        count = counting::so_far() - before;
    }
    count
}

#[test]
fn warm_kernels_of_strings_do_not_allocate() {
    let mut calls = 0;
    for (_, def) in Registry::standard().iter().filter(|(_, def)| def.name.starts_with("strings.")) {
        for overload in def.overloads() {
            for lifted in [false, true] {
                assert_eq!(allocations(overload, lifted && overload.lifted.is_some()), 0, "{} {overload:?}", def.name);
                calls += 1;
            }
        }
    }
    assert!(calls > 100, "only {calls} calls");
}
