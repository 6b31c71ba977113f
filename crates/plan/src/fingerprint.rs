//! Hashes everything in a plan that determines its machine code, as a key for compiled code. The code here names every
//! field of a plan, including fields that are not hashed. So after a field is added, the code does not compile until
//! someone decides whether to hash the field.

use crate::{Action, Block, Input, Output, Plan, PlanValue, Step};
use cembra_ops::{Lower, OpDef, OpId, Overload, Registry, time_zones};
use std::hash::{Hash, Hasher};

impl Plan {
    /// Returns true if the plan's machine code has instructions that a user's own lowering rule records. The rule is
    /// code of this process, so a hash of the plan does not determine the machine code.
    #[must_use]
    pub fn has_rules_of_users(&self) -> bool {
        let foreign = |step: &Step| match step.action {
            Action::Operator { op, overload, .. } => {
                let def = self.registry.get(op);
                !matches!(def.overloads()[usize::from(overload)].lower, Lower::Kernel) && !is_standard(def)
            }
            _ => false,
        };
        self.steps.iter().any(foreign)
    }

    /// Hashes everything that the plan's machine code depends on, except the operators' own code. If two plans pass
    /// equal data to the hasher, their machine code is equal, provided that both use the same version of cembra and no
    /// lowering rules of users. Names of inputs and outputs are not hashed, nor are the data that calls pass to
    /// kernels.
    pub fn hash_code(&self, state: &mut impl Hasher) {
        let Plan {
            registry: _,
            values,
            steps,
            args,
            blocks,
            inputs,
            literals,
            outputs,
            states: _,
            layout,
            template: _,
            reused_slots: _,
        } = self;
        // Literals may have been made of local times, so they depend on the time zone data.
        time_zones().hash(state);
        state.write_usize(values.len());
        for PlanValue { qtype, slot, owner } in values {
            (qtype, slot, owner).hash(state);
        }
        state.write_usize(steps.len());
        for Step { action, args_start, args_len, out, origin: _ } in steps {
            (args_start, args_len, out).hash(state);
            self.hash_action(action, state);
        }
        args.hash(state);
        state.write_usize(blocks.len());
        for Block { steps, result } in blocks {
            (steps, result).hash(state);
        }
        state.write_usize(inputs.len());
        for Input { name: _, leaf: _, value } in inputs {
            value.hash(state);
        }
        literals.hash(state);
        state.write_usize(outputs.len());
        for Output { name: _, value } in outputs {
            value.hash(state);
        }
        (layout.size(), layout.align()).hash(state);
    }

    fn hash_action(&self, action: &Action, state: &mut impl Hasher) {
        std::mem::discriminant(action).hash(state);
        match action {
            Action::Operator { op, overload, lifted } => {
                self.hash_operator(*op, *overload, state);
                lifted.hash(state);
            }
            Action::MakeTuple | Action::Has => {}
            Action::Field(index) => index.hash(state),
            Action::Where { on, off } => (on, off).hash(state),
            Action::Loop { round, state: value, is_counted } => (round, value, is_counted).hash(state),
        }
    }

    /// Hashes an operator by its name, because the numbers of operators differ between registries.
    fn hash_operator(&self, op: OpId, overload: u16, state: &mut impl Hasher) {
        let def = self.registry.get(op);
        (def.name, overload, is_standard(def)).hash(state);
        if is_standard(def) {
            return;
        }
        let Overload { args, ret, kernel: _, lifted, lower, direct, data: _, compile, pure: _ } =
            &def.overloads()[usize::from(overload)];
        (args, ret, lifted.is_some(), matches!(lower, Lower::Kernel)).hash(state);
        (direct.is_some(), compile.is_some(), std::mem::discriminant(&def.presence)).hash(state);
    }
}

/// Returns true if the operator is defined by cembra and not by a user.
fn is_standard(def: &'static OpDef) -> bool {
    let standard = Registry::standard();
    def.is_of_plans || standard.find(def.name).is_some_and(|known| std::ptr::eq(standard.get(known), def))
}
