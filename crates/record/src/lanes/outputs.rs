//! The outputs of a lane program (a plan recorded for many rows at once). Each part of an output is a column, which the
//! segment that computes it writes.

use crate::lanes::drafts::TapeRef;
use crate::lanes::recorder::{Recorder, ValueState};
use crate::line::TapeValue;
use cembra_plan::ValueId;
use cembra_runtime::{MachineType, Scalar};
use cembra_tape::{Cell, Datum, Origin, Output, Port, Presence, Un, Val, ValuePart};

impl Recorder<'_> {
    /// Declares the values `values` as the outputs of the lane program (a plan recorded for many rows at once). `ports` has
    /// the memory layout of each output.
    pub(super) fn outputs(&mut self, values: impl Iterator<Item = ValueId>, ports: &[Port]) {
        let plan = self.plan;
        let ports = ports.iter().copied().chain(std::iter::repeat(Port::Rows));
        for ((index, value), port) in (0..).zip(values).zip(ports) {
            self.cut_long();
            let qtype = &plan.value(value).qtype;
            let is_shared =
                |on: &TapeRef<TapeValue>| self.drafts.done.get(on.draft as usize).is_some_and(|done| done.1);
            let made = match &self.notes[value.index()] {
                ValueState::Made(made) if !is_shared(made) && !self.drafts.is_full(made.draft) => made.clone(),
                _ => {
                    let made = self.value(value);
                    self.drafts.on(made)
                }
            };
            let TapeValue::Scalar(cell) = made.it else { continue };
            let draft = made.draft;
            if qtype.is_optional() {
                match cell.presence {
                    Presence::When(mask) => {
                        self.output(index, ValuePart::Presence, TapeRef { draft, it: Output::Mask(mask) });
                    }
                    known => {
                        let mask = self.drafts.tape().mconst(known == Presence::Present);
                        let on = self.drafts.on(Output::Mask(mask));
                        self.output(index, ValuePart::Presence, on);
                    }
                }
            }
            if port == Port::Chains {
                let added = self.added(value);
                let column = self.drafts.column(
                    MachineType::F64,
                    Port::Chains,
                    Origin::Output { index, part: ValuePart::Number },
                );
                let on = self.drafts.on(Output::Number(added));
                self.drafts.output(on, column);
                continue;
            }
            // A value that is missing in all rows gets a zero datum.
            let (draft, datum) = match cell.presence {
                Presence::Missing => {
                    let scalar = qtype.scalar().unwrap_or(Scalar::Unit);
                    let zero = Datum::from_bits(scalar, 0, self.drafts.tape());
                    (self.drafts.current(), zero)
                }
                _ => (draft, cell.datum),
            };
            match datum {
                Datum::Unit => {}
                Datum::Flag(it) => self.output(index, ValuePart::Flag, TapeRef { draft, it: Output::Mask(it) }),
                Datum::Num(it) => self.output(index, ValuePart::Number, TapeRef { draft, it: Output::Number(it) }),
                Datum::Text { ptr, len } => {
                    self.output(index, ValuePart::Pointer, TapeRef { draft, it: Output::Number(ptr) });
                    self.output(index, ValuePart::Length, TapeRef { draft, it: Output::Number(len) });
                }
            }
        }
    }

    /// The number that a float adds to a sum, on the open tape. It is 0 where the float is missing: adding 0 changes no sum
    /// but -0, and a sum that begins with 0 is not -0.
    fn added(&mut self, value: ValueId) -> Val {
        let TapeValue::Scalar(Cell { presence, datum: Datum::Num(number) }) = self.value(value) else {
            return self.drafts.tape().konst(MachineType::F64, 0);
        };
        let tape = self.drafts.tape();
        let number =
            if tape.ty(number) == MachineType::F64 { number } else { tape.un(Un::Convert(MachineType::F64), number) };
        let zero = tape.konst(MachineType::F64, 0);
        match presence {
            Presence::Present => number,
            Presence::When(mask) => tape.select(mask, number, zero),
            Presence::Missing => zero,
        }
    }

    /// Declares one part of an output of the program. If `on` already has an intermediate column, this column becomes
    /// the output's column. Otherwise a new column becomes an additional output of the tape that computes `on`.
    fn output(&mut self, index: u32, part: ValuePart, on: TapeRef<Output>) {
        let origin = Origin::Output { index, part };
        if let Some(known) = self.drafts.known_column(on)
            && let column = &mut self.drafts.columns[known.index()]
            && matches!(column.origin, Origin::Scratch { .. })
        {
            column.origin = origin;
            return;
        }
        let ty = match (part, on.it) {
            (ValuePart::Presence | ValuePart::Flag, _) => MachineType::Flag,
            (_, Output::Number(val)) => self.drafts.type_of(TapeRef { draft: on.draft, it: val }),
            (_, Output::Mask(_)) => MachineType::Flag,
        };
        let column = self.drafts.column(ty, Port::Rows, origin);
        self.drafts.output(on, column);
    }
}
