//! Calls of operators that have no rule: on registers where the types fit them, else of a kernel, whose arguments are put
//! into the frame and whose result is taken from there.

use crate::cells::{self, Cell, Datum, Presence};
use crate::lower::Lowering;
use cembra_ops::{Lower, RegisterFn};
use cembra_plan::{Action, Plan, StepId, ValueId};
use cembra_runtime::{Context, Kernel, KernelCall, QType, RegisterResult, STATUS_FAULT, Scalar};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{self, AbiParam, InstBuilder, MemFlagsData, types};

/// What a step without a rule calls.
#[derive(Clone, Copy)]
pub(crate) enum Callee {
    Kernel(Kernel),
    RegisterFn(RegisterFn),
}

impl Callee {
    /// The address for the table of calls.
    pub(crate) fn address(self) -> *const () {
        match self {
            Callee::Kernel(kernel) => kernel as *const (),
            Callee::RegisterFn(function) => function as *const (),
        }
    }
}

/// What a step calls, if its operator has no rule.
pub(crate) fn callee(plan: &Plan, step: StepId) -> Option<Callee> {
    let Action::Operator { op, overload, lifted } = plan.step(step).action else { return None };
    let overload = &plan.registry().get(op).overloads()[usize::from(overload)];
    let callee = overload.direct.map_or(Callee::Kernel(overload.kernel(lifted)), Callee::RegisterFn);
    matches!(overload.lower, Lower::Kernel).then_some(callee)
}

/// The steps that call something, in the order their calls are numbered: that of the plan's steps.
pub(crate) fn steps(plan: &Plan) -> impl Iterator<Item = (StepId, Callee)> {
    (0..plan.step_count()).map(StepId::from_index).filter_map(|id| Some((id, callee(plan, id)?)))
}

/// True if a step may compare strings in instructions: one that is given two and has a rule.
pub(crate) fn compares_strings(plan: &Plan) -> bool {
    let is_string = |value: &ValueId| plan.value(*value).qtype.scalar().is_some_and(Scalar::is_string);
    (0..plan.step_count()).map(StepId::from_index).any(|id| {
        let step = plan.step(id);
        let operator = matches!(step.action, Action::Operator { .. });
        operator && plan.args(step).iter().filter(|arg| is_string(arg)).count() == 2 && callee(plan, id).is_none()
    })
}

fn number_type(qtype: &QType) -> Option<ir::Type> {
    qtype.scalar().and_then(cells::number_type)
}

impl Lowering<'_, '_, '_> {
    /// The call of a step that has one.
    pub(crate) fn call(&mut self, id: StepId) {
        let Some((callee, number)) = self.callee(id) else { return };
        self.cancelled.poll(self.builder, &self.around);
        let entry = |field: i32| KernelCall::SIZE * number as i32 + field;
        let flags = MemFlagsData::trusted().with_readonly().with_can_move();
        let table = self.builder.ins().load(types::I64, flags, self.around.context, Context::CALLS_OFFSET);
        let mut load = |field: i32| self.builder.ins().load(types::I64, flags, table, entry(field));
        let function = load(KernelCall::FUNCTION_OFFSET);
        let out = self.plan.step(id).out;
        match callee {
            Callee::Kernel(_) => {
                let call = load(KernelCall::CALL_OFFSET);
                let cell = self.call_kernel(id, function, call);
                self.made_in_slot(out, cell);
            }
            Callee::RegisterFn(_) => {
                let data = load(KernelCall::DATA_OFFSET);
                let cell = self.call_direct(id, function, data);
                self.made(out, cell);
            }
        }
    }

    /// Calls a kernel: the arguments go to their slots in the frame, the result comes from its own.
    fn call_kernel(&mut self, id: StepId, kernel: ir::Value, call: ir::Value) -> Cell {
        let plan = self.plan;
        let step = plan.step(id);
        for arg in plan.args(step) {
            if !self.lies_in_slot(*arg) {
                let cell = self.cell(*arg);
                let to = self.memory(plan.place(*arg));
                cells::store(self.builder, &plan.value(*arg).qtype, &cell, to);
            }
        }
        let signature = self.kernel_signature();
        let args = [self.around.context, self.params[2], call];
        let call = self.builder.ins().call_indirect(signature, kernel, &args);
        let status = self.builder.inst_results(call)[0];
        self.leave_on_fault(status, status, id);
        let from = self.memory(plan.place(step.out)).written_during_the_call();
        cells::load(self.builder, &plan.value(step.out).qtype, from)
    }

    /// Calls a function on registers, as `cembra_ops` lays such calls down.
    fn call_direct(&mut self, id: StepId, function: ir::Value, data: ir::Value) -> Cell {
        let plan = self.plan;
        let step = plan.step(id);
        let mut signature = ir::Signature::new(self.around.isa.default_call_conv());
        signature.params.extend([AbiParam::new(types::I64); 3]);
        signature.returns.extend([AbiParam::new(types::I64); 2]);
        let mut args = vec![self.around.context, data];
        // Bit by bit which arguments are there: first those that always are.
        let (mut always, mut sometimes) = (0, Vec::new());
        let mut values = Vec::new();
        for (at, arg) in plan.args(step).iter().enumerate() {
            let cell = self.cell(*arg);
            match cell.presence {
                Presence::Present => always |= 1 << at,
                Presence::Missing => {}
                Presence::Flag(flag) => sometimes.push((at, flag)),
            }
            let value = self.in_register(&cell, &plan.value(*arg).qtype);
            signature.params.push(AbiParam::new(self.builder.func.dfg.value_type(value)));
            values.push(value);
        }
        let mut present = self.builder.ins().iconst(types::I64, always);
        for (at, flag) in sometimes {
            let wide = self.builder.ins().uextend(types::I64, flag);
            let bit = self.builder.ins().ishl_imm_u(wide, at as i64);
            present = self.builder.ins().bor(present, bit);
        }
        args.push(present);
        args.extend(values);
        let signature = self.builder.import_signature(signature);
        let call = self.builder.ins().call_indirect(signature, function, &args);
        let [status, bits] = [0, 1].map(|at| self.builder.inst_results(call)[at]);
        let qtype = &plan.value(step.out).qtype;
        let status = self.builder.ins().ireduce(types::I32, status);
        let presence = if qtype.is_optional() {
            let failed = self.builder.ins().icmp_imm_u(IntCC::Equal, status, i64::from(STATUS_FAULT));
            self.leave_on_fault(failed, status, id);
            let missing = i64::from(RegisterResult::STATUS_MISSING);
            Presence::Flag(self.builder.ins().icmp_imm_u(IntCC::NotEqual, status, missing))
        } else {
            self.leave_on_fault(status, status, id);
            Presence::Present
        };
        Cell { presence, datum: self.datum(bits, qtype) }
    }

    /// What a register holds of a value; anything for one that is missing.
    fn in_register(&mut self, cell: &Cell, qtype: &QType) -> ir::Value {
        match cell.datum {
            Datum::Num(value) => value,
            Datum::Flag(value) => self.builder.ins().uextend(types::I64, value),
            _ => cells::zero(self.builder, number_type(qtype).unwrap_or(types::I64)),
        }
    }

    /// The value that an answer's bits are.
    fn datum(&mut self, bits: ir::Value, qtype: &QType) -> Datum {
        let ins = self.builder.ins();
        let same = MemFlagsData::new();
        match number_type(qtype) {
            Some(types::F64) => Datum::Num(ins.bitcast(types::F64, same, bits)),
            Some(types::F32) => {
                let half = ins.ireduce(types::I32, bits);
                Datum::Num(self.builder.ins().bitcast(types::F32, same, half))
            }
            Some(types::I32) => Datum::Num(ins.ireduce(types::I32, bits)),
            Some(_) => Datum::Num(bits),
            None if qtype.scalar() == Some(Scalar::Boolean) => Datum::Flag(ins.ireduce(types::I8, bits)),
            None => Datum::Nothing,
        }
    }

    fn kernel_signature(&mut self) -> ir::SigRef {
        if let Some(known) = self.kernel_signature {
            return known;
        }
        let mut signature = ir::Signature::new(self.around.isa.default_call_conv());
        signature.params.extend([AbiParam::new(types::I64); 3]);
        signature.returns.push(AbiParam::new(types::I32));
        let reference = self.builder.import_signature(signature);
        *self.kernel_signature.insert(reference)
    }

    /// Leaves the function with the status of a call that failed; it has filled the fault record but for the site.
    fn leave_on_fault(&mut self, failed: ir::Value, status: ir::Value, site: StepId) {
        let [leaves, goes_on] = [(); 2].map(|()| self.builder.create_block());
        self.builder.set_cold_block(leaves);
        self.builder.ins().brif(failed, leaves, &[], goes_on, &[]);
        self.builder.seal_block(leaves);
        self.builder.seal_block(goes_on);
        self.builder.switch_to_block(leaves);
        let site = self.builder.ins().iconst(types::I32, site.index() as i64);
        let flags = MemFlagsData::trusted().with_alias_region(Some(self.around.context_region));
        self.builder.ins().store(flags, site, self.around.context, Context::FAULT_SITE_OFFSET);
        self.builder.ins().return_(&[status]);
        self.builder.switch_to_block(goes_on);
    }
}
