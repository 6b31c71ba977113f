//! Records steps without a lowering rule. Such a step becomes a call of its operator's kernel, for the rows that reach the
//! step and have all required arguments. The kernel works on slots of the plan's frame, which already contains the literals.

use crate::lanes::drafts::{Draft, TapeRef};
use crate::lanes::recorder::{Recorder, cell, parts};
use crate::line::TapeValue;
use cembra_ops::{OperandType, Overload, PresenceRule};
use cembra_plan::{Action, PlanValue, StepId, ValueId};
use cembra_runtime::{KernelChain, MachineType, Scalar};
use cembra_tape::{Cell, ColumnId, Datum, KernelReason, KernelSegment, Load, Output, Presence, Source, Store};

impl Recorder<'_> {
    /// Records the step `id` as a call of its operator's kernel. `why` is the reason why the step is not recorded on a tape.
    pub(super) fn kernel(&mut self, id: StepId, why: KernelReason) {
        let plan = self.plan;
        let step = plan.step(id);
        let Action::Operator { op, overload, .. } = step.action else { return };
        let def = plan.registry().get(op);
        let overload = &def.overloads()[usize::from(overload)];
        let is_strict = def.presence == PresenceRule::Strict;
        let args = self.cells(step);
        let required = |at: usize| is_strict && !overload.args[at].optional;
        let path = self.path.map(|path| self.drafts.mask(path));
        let tape = self.drafts.tape();
        let mut present = Presence::Present;
        for (at, arg) in args.iter().enumerate() {
            if required(at) {
                present = present.and(arg.presence, tape);
            }
        }
        let rows = path.map_or(present, |path| Presence::When(path).and(present, tape));
        let rows = match rows {
            Presence::Missing => {
                let missing = Cell::missing(overload.ret.scalar, tape);
                return self.note(step.out, TapeValue::Scalar(missing));
            }
            Presence::Present => None,
            Presence::When(mask) => Some(self.drafts.on(Output::Mask(mask))),
        };
        let rows = rows.map(|rows| self.drafts.column_of(rows));
        // A required argument is present, so the kernel takes the bare type.
        let bare = |value: ValueId, is_bare: bool| {
            let value = plan.value(value);
            let inside =
                value.qtype.optional_value_offset().filter(|_| is_bare && value.qtype.scalar() != Some(Scalar::Unit));
            value.slot + inside.unwrap_or(0)
        };
        let mut loads = Vec::new();
        for (at, (value, arg)) in plan.args(step).iter().zip(&args).enumerate() {
            if !self.is_literal(*value) {
                self.load(*value, *arg, required(at), &mut loads);
            }
        }
        let out = bare(step.out, is_strict && !overload.ret.optional);
        let slots = plan.args(step).iter().enumerate().map(|(at, arg)| bare(*arg, required(at))).chain([out]);
        let mut call = KernelChain::default();
        call.push(overload.kernel, plan.data(id).as_ptr(), id.index() as u32, slots);
        call.end();
        // Whether a required argument is missing is known on the tape; the kernel tells whether its own result is missing.
        let presence = (!overload.ret.optional).then(|| self.drafts.on(present));
        let mut stores = Vec::new();
        let columns = self.results(overload, out, &mut stores);
        let (label, site) = (def.name, id.index() as u32);
        let kernel = KernelSegment { label, site, why, call, rows, loads, stores };
        self.drafts.call(Draft::Kernel(Box::new(kernel)));
        self.set_path(self.path);
        let (flag, datum) = columns;
        let flag = flag.map(|column| self.drafts.enter(column));
        let datum = datum.map(|part| part.map(|column| self.drafts.enter(column)));
        let mut result = cell(flag, datum);
        if let Some(presence) = presence {
            result.presence = match presence.it {
                Presence::When(it) => Presence::When(self.drafts.mask(TapeRef { draft: presence.draft, it })),
                known => known,
            };
        }
        self.note(step.out, TapeValue::Scalar(result));
    }

    /// Appends the loads that put an argument into its slot. If `is_bare`, its presence is not loaded, because the kernel
    /// requires the argument.
    fn load(&mut self, value: ValueId, arg: Cell, is_bare: bool, loads: &mut Vec<Load>) {
        let PlanValue { qtype, slot, .. } = self.plan.value(value);
        let inside = qtype.optional_value_offset();
        if inside.is_some() && !is_bare {
            let from = match arg.presence {
                Presence::Present => Source::Constant(1),
                Presence::Missing => Source::Constant(0),
                Presence::When(mask) => self.source(Output::Mask(mask)),
            };
            loads.push(Load { from, ty: MachineType::Flag, offset: *slot });
        }
        let at = slot + inside.unwrap_or(0);
        let mut part = |made: Output, ty: MachineType, offset: u32| {
            let from = self.source(made);
            loads.push(Load { from, ty, offset });
        };
        match arg.datum {
            _ if arg.presence == Presence::Missing => {}
            Datum::Unit => {}
            Datum::Flag(mask) => part(Output::Mask(mask), MachineType::Flag, at),
            Datum::Num(val) => {
                let ty = qtype.scalar().and_then(Scalar::machine_type).unwrap_or(MachineType::I64);
                part(Output::Number(val), ty, at);
            }
            Datum::Text { ptr, len } => {
                part(Output::Number(ptr), MachineType::I64, at);
                part(Output::Number(len), MachineType::I64, at + LENGTH);
            }
        }
    }

    /// The source from which a kernel's argument is loaded: a constant, or a column.
    fn source(&mut self, made: Output) -> Source {
        let tape = self.drafts.tape();
        let known = match made {
            Output::Mask(mask) => tape.known(mask).map(u64::from),
            Output::Number(val) => tape.known_bits(val),
        };
        match known {
            Some(bits) => Source::Constant(bits),
            None => Source::Column(self.drafts.column_of(self.drafts.on(made))),
        }
    }

    /// Adds columns for the result of a kernel that writes to `slot`: one for its presence if the result is optional, and
    /// one for each part of its datum.
    fn results(
        &mut self,
        overload: &Overload,
        slot: u32,
        stores: &mut Vec<Store>,
    ) -> (Option<ColumnId>, [Option<ColumnId>; 2]) {
        let OperandType { scalar, optional } = overload.ret;
        let once = self.drafts.once;
        let mut store = |offset: u32, ty: MachineType, is_presence: bool| {
            let column = self.drafts.intermediate(ty, once);
            stores.push(Store { offset, column, is_presence });
            column
        };
        let presence = optional.then(|| store(slot, MachineType::Flag, true));
        let at = slot + overload.ret.qtype().optional_value_offset().unwrap_or(0);
        let mut length = 0;
        let datum = parts(scalar, |_, ty| {
            let column = store(at + length, ty, false);
            length += LENGTH;
            column
        });
        (presence, datum)
    }
}

/// The offset of the length in a string view, after the 8 bytes of the address.
const LENGTH: u32 = 8;
