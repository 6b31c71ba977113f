//! Calls. An operator is called if it has no lowering rule, by which it would be emitted inline. If the types of the
//! operator fit in registers, its arguments and its result are passed in registers. Otherwise it is called as a kernel:
//! its arguments are stored to the frame, and its result is loaded from the frame. A large plan is split into several
//! functions. They call each other with the addresses of the same input, output and frame.

use super::body::Body;
use super::exits::Exits;
use crate::emit::{EmittedValue, memory};
use cembra_plan::StepId;
use cembra_record::{Callee, Datum, MachineValue, Presence};
use cembra_runtime::{Context, KernelCall, QType, RegisterResult, STATUS_FAULT, Scalar};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{
    self, AbiParam, ExtFuncData, ExternalName, InstBuilder, MemFlagsData, SigRef, UserExternalName, types,
};

/// The signatures of called functions, each imported at its first use.
#[derive(Default)]
pub(super) struct Calls {
    kernel: Option<SigRef>,
    piece: Option<SigRef>,
}

fn number_type(qtype: &QType) -> Option<ir::Type> {
    qtype.scalar().and_then(memory::number_type)
}

impl Calls {
    /// Emits the call of the operator function for step `id`, if the step needs a call.
    pub(super) fn step(&mut self, body: &mut Body<'_, '_, '_>, exits: &mut Exits, id: StepId) {
        let Some((callee, number)) = body.outline.callee(id) else { return };
        exits.poll(body.builder, &body.state);
        let entry = |field: i32| KernelCall::SIZE * number as i32 + field;
        let flags = MemFlagsData::trusted().with_readonly().with_can_move();
        let context = body.state.environment.context;
        let table = body.builder.ins().load(types::I64, flags, context, Context::CALLS_OFFSET);
        let out = body.plan().step(id).out;
        let mut load = |field: i32| body.builder.ins().load(types::I64, flags, table, entry(field));
        let function = load(KernelCall::FUNCTION_OFFSET);
        match callee {
            Callee::Kernel(_) => {
                let call = load(KernelCall::CALL_OFFSET);
                let result = self.kernel(body, id, function, call);
                body.made_in_slot(out, result);
            }
            Callee::Registers(_) => {
                let data = load(KernelCall::DATA_OFFSET);
                let result = on_registers(body, id, function, data);
                body.made(out, result);
            }
        }
    }

    /// Emits the call of a kernel: stores the arguments to their slots in the frame, and loads the result from its
    /// slot.
    fn kernel(&mut self, body: &mut Body<'_, '_, '_>, id: StepId, kernel: ir::Value, call: ir::Value) -> EmittedValue {
        let plan = body.plan();
        let step = plan.step(id);
        for arg in plan.args(step) {
            if !body.outline.locations.lies_in_slot(*arg) {
                let held = body.value(*arg);
                body.store(*arg, &held, plan.place(*arg));
            }
        }
        let signature = *self.kernel.get_or_insert_with(|| {
            let mut signature = ir::Signature::new(body.state.environment.isa.default_call_conv());
            signature.params.extend([AbiParam::new(types::I64); 3]);
            signature.returns.push(AbiParam::new(types::I32));
            body.builder.import_signature(signature)
        });
        let args = [body.state.environment.context, body.memories.frame(), call];
        let call = body.builder.ins().call_indirect(signature, kernel, &args);
        let status = body.builder.inst_results(call)[0];
        leave_on_fault(body, status, status, id);
        let from = body.memory(plan.place(step.out)).written_during_the_call();
        memory::load(body.builder, &plan.value(step.out).qtype, from)
    }

    /// Emits the call of another function (piece) of the plan, by its number. When the functions are put together, the number is resolved to a
    /// relative address. The calling function returns at once if the callee fails.
    pub(super) fn piece(&mut self, body: &mut Body<'_, '_, '_>, exits: &mut Exits, number: usize) {
        let signature = *self.piece.get_or_insert_with(|| {
            let own = body.builder.func.signature.clone();
            body.builder.import_signature(own)
        });
        let name = UserExternalName::new(0, number as u32);
        let name = ExternalName::user(body.builder.func.declare_imported_user_function(name));
        let callee = ExtFuncData { name, signature, colocated: true, patchable: false };
        let callee = body.builder.import_function(callee);
        let [input, output, frame] = body.memories.addresses;
        let call = body.builder.ins().call(callee, &[input, output, frame, body.state.environment.context]);
        let status = body.builder.inst_results(call)[0];
        exits.leave_on_status(body.builder, status);
    }
}

/// Emits the call of a function whose arguments and result are in registers, by the calling convention of `cembra_ops`.
fn on_registers(body: &mut Body<'_, '_, '_>, id: StepId, function: ir::Value, data: ir::Value) -> EmittedValue {
    let plan = body.plan();
    let step = plan.step(id);
    let mut signature = ir::Signature::new(body.state.environment.isa.default_call_conv());
    signature.params.extend([AbiParam::new(types::I64); 3]);
    signature.returns.extend([AbiParam::new(types::I64); 2]);
    let mut args = vec![body.state.environment.context, data];
    // The bits of present arguments, one per argument. `always` has the bits of arguments that are present in every
    // evaluation.
    let (mut always, mut sometimes) = (0, Vec::new());
    let mut values = Vec::new();
    for (at, arg) in plan.args(step).iter().enumerate() {
        let held = body.value(*arg);
        match held.presence {
            Presence::Present => always |= 1 << at,
            Presence::Missing => {}
            Presence::Flag(flag) => sometimes.push((at, flag)),
        }
        let value = in_register(body, &held, &plan.value(*arg).qtype);
        signature.params.push(AbiParam::new(body.builder.func.dfg.value_type(value)));
        values.push(value);
    }
    let mut present = body.builder.ins().iconst(types::I64, always);
    for (at, flag) in sometimes {
        let wide = body.builder.ins().uextend(types::I64, flag);
        let bit = body.builder.ins().ishl_imm_u(wide, at as i64);
        present = body.builder.ins().bor(present, bit);
    }
    args.push(present);
    args.extend(values);
    let signature = body.builder.import_signature(signature);
    let call = body.builder.ins().call_indirect(signature, function, &args);
    let [status, bits] = [0, 1].map(|at| body.builder.inst_results(call)[at]);
    let qtype = &plan.value(step.out).qtype;
    let status = body.builder.ins().ireduce(types::I32, status);
    let presence = if qtype.is_optional() {
        let failed = body.builder.ins().icmp_imm_u(IntCC::Equal, status, i64::from(STATUS_FAULT));
        leave_on_fault(body, failed, status, id);
        let missing = i64::from(RegisterResult::STATUS_MISSING);
        Presence::Flag(body.builder.ins().icmp_imm_u(IntCC::NotEqual, status, missing))
    } else {
        leave_on_fault(body, status, status, id);
        Presence::Present
    };
    MachineValue { presence, datum: datum(body, bits, qtype) }
}

/// Returns the register with an argument's value; its content is unspecified if the argument is missing.
fn in_register(body: &mut Body<'_, '_, '_>, held: &EmittedValue, qtype: &QType) -> ir::Value {
    match held.datum {
        Datum::Num(value) => value,
        Datum::Flag(value) => body.builder.ins().uextend(types::I64, value),
        _ => memory::zero(body.builder, number_type(qtype).unwrap_or(types::I64)),
    }
}

/// Converts the 64 bits of a call's result to a datum of the type `qtype`.
fn datum(body: &mut Body<'_, '_, '_>, bits: ir::Value, qtype: &QType) -> Datum<ir::Value> {
    let ins = body.builder.ins();
    let same = MemFlagsData::new();
    match number_type(qtype) {
        Some(types::F64) => Datum::Num(ins.bitcast(types::F64, same, bits)),
        Some(types::F32) => {
            let half = ins.ireduce(types::I32, bits);
            Datum::Num(body.builder.ins().bitcast(types::F32, same, half))
        }
        Some(types::I32) => Datum::Num(ins.ireduce(types::I32, bits)),
        Some(_) => Datum::Num(bits),
        None if qtype.scalar() == Some(Scalar::Boolean) => Datum::Flag(ins.ireduce(types::I8, bits)),
        None => Datum::Nothing,
    }
}

/// Emits a return with the status `status` if `failed` is not 0. The called function has filled the fault record except
/// for the site, which is stored here.
fn leave_on_fault(body: &mut Body<'_, '_, '_>, failed: ir::Value, status: ir::Value, site: StepId) {
    let [leaves, goes_on] = [(); 2].map(|()| body.builder.create_block());
    body.builder.set_cold_block(leaves);
    body.builder.ins().brif(failed, leaves, &[], goes_on, &[]);
    body.builder.seal_block(leaves);
    body.builder.seal_block(goes_on);
    body.builder.switch_to_block(leaves);
    let site = body.builder.ins().iconst(types::I32, site.index() as i64);
    let (flags, context) = (body.state.context_flags(), body.state.environment.context);
    body.builder.ins().store(flags, site, context, Context::FAULT_SITE_OFFSET);
    body.builder.ins().return_(&[status]);
    body.builder.switch_to_block(goes_on);
}
