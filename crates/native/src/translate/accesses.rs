//! Loads and stores of single column elements. Columns are outside of the memory that a function receives, so an element's
//! address is computed from the step's operands.

use super::body::Body;
use crate::emit::{Memory, memory};
use cembra_plan::{StepId, ValueId};
use cembra_record::{Datum, MemoryAccess};
use cranelift_codegen::ir::{self, InstBuilder, types};

impl Body<'_, '_, '_> {
    /// Emits the load or store of the column element that step `id` accesses.
    pub(super) fn access(&mut self, id: StepId, access: MemoryAccess) {
        let plan = self.plan();
        let step = plan.step(id);
        let [base, stride, at, ..] = plan.args(step) else { return };
        let (start, stride, position) = (self.number(*base), self.number(*stride), self.number(*at));
        let inside = self.builder.ins().imul(stride, position);
        let address = self.builder.ins().iadd(start, inside);
        let place = Memory { base: address, offset: 0, region: self.columns(), constant: false, aligned: true };
        let made = match (access, plan.args(step)) {
            (MemoryAccess::Write, [.., written]) => {
                let held = self.value(*written);
                memory::store(self.builder, &plan.value(*written).qtype, &held, place);
                self.value(*at)
            }
            _ => memory::load(self.builder, &plan.value(step.out).qtype, place),
        };
        self.made(step.out, made);
    }

    /// Returns the register that holds `value`, which must be a 64-bit integer.
    fn number(&mut self, value: ValueId) -> ir::Value {
        match self.value(value).datum {
            Datum::Num(number) => number,
            _ => memory::zero(self.builder, types::I64),
        }
    }
}
