//! Tests that machine code can be put at any address: the code generator's own module puts it at two addresses, as one
//! function and as several functions that call one another. So machine code may be cached, and be part of an object
//! file.

use cembra_expr::parse;
use cembra_native::{RawFunction, Tier, listings};
use cembra_ops::Registry;
use cembra_plan::build;
use cembra_prepare::{Options, prepare};
use cembra_runtime::{Context, STATUS_OK};
use cembra_value::{Budget, Limits, Value};
use cranelift_codegen::ir::{AbiParam, types};
use cranelift_jit::{JITBuilder, JITModule};
use cranelift_module::{Module, default_libcall_names};

const MODEL: &str = "input x: f64
let s = seq.reduce(fn(sum, i) = sum + exp(x / 8.0) * math.float(i), seq.range(5), 0.0)
output y = where(x > 2.0, math.log1p(x * x) + s, where(x < 0.0, x / 3.0 // 0.5, s - 1.0))
output t = where(x > 1.0, \"more\", \"less\")";

#[test]
fn code_runs_wherever_it_is_put() {
    let program = parse(MODEL, Registry::standard(), &Limits::default()).expect("a model");
    let prepared = prepare(&program, &|_| None, &Options::default(), &mut |_, _| {}).expect("types");
    let placed = prepared.placed().expect("every pass");
    let plan = build(&placed, &Budget::default()).expect("a plan");
    let binding = plan.frame_binding();
    let mut module = JITModule::new(JITBuilder::new(default_libcall_names()).expect("this machine"));
    let mut signature = module.make_signature();
    signature.params.extend([AbiParam::new(types::I64); 4]);
    signature.returns.push(AbiParam::new(types::I32));
    let mut functions = Vec::new();
    for native_steps in [Limits::default().native_steps, 3] {
        let budget = Budget::new(Limits::default().native_steps(native_steps));
        for tier in [Tier::Optimised, Tier::Quick] {
            let code = listings(&plan, &binding, tier, &budget).expect("machine code").code;
            for _ in 0..2 {
                let function = module.declare_anonymous_function(&signature).expect("a name");
                module.define_function_bytes(function, 64, &code, &[]).expect("code without relocations");
                functions.push(function);
            }
        }
    }
    module.finalize_definitions().expect("executable memory");
    let mut context = Context::new();
    for x in [-7.25, 0.0, 1.5, 2.5, 40.0, f64::INFINITY] {
        let mut answers = functions.iter().map(|function| {
            let mut frame = plan.template().frame();
            let input = plan.value(plan.inputs()[0].value).slot;
            // SAFETY: FRAME-SLOT, CODE-ENTRY and CALL: the frame is the plan's, the function was made of the plan for it,
            // and the model calls no kernels.
            unsafe {
                let function: RawFunction = std::mem::transmute(module.get_finalized_function(*function));
                let frame = frame.ptr();
                Value::from(x).write_to(frame, input);
                assert_eq!(function(frame.as_ptr(), frame.as_ptr(), frame.as_ptr(), &raw mut context), STATUS_OK);
                let read = |value| Value::read_from(&plan.value(value).qtype, frame, plan.value(value).slot);
                plan.outputs().iter().map(|output| read(output.value)).collect::<Vec<_>>()
            }
        });
        let first = answers.next().expect("a function");
        assert!(answers.all(|answer| answer.iter().zip(&first).all(|(a, b)| a.same(b))), "{x}: {first:?}");
    }
    // SAFETY: CODE-ALIVE: nothing calls the functions any more.
    unsafe { module.free_memory() };
}
