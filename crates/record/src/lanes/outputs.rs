//! The outputs of a program: columns of their own, which are written where results are made.

use crate::lanes::drafts::On;
use crate::lanes::recorder::{Note, Recorder};
use crate::line::TapeValue;
use cembra_plan::ValueId;
use cembra_runtime::{MachineType, Scalar};
use cembra_tape::{Datum, Origin, Output, Part, Port, Presence};

impl Recorder<'_> {
    /// States what the outputs of the program are.
    pub(super) fn outputs(&mut self, values: impl Iterator<Item = ValueId>) {
        let plan = self.plan;
        for (index, value) in values.enumerate() {
            let index = index as u32;
            let qtype = &plan.value(value).qtype;
            let is_shared = |on: &On<TapeValue>| self.drafts.done.get(on.draft as usize).is_some_and(|done| done.1);
            let made = match &self.notes[value.index()] {
                Note::Made(made) if !is_shared(made) => made.clone(),
                _ => {
                    let made = self.value(value);
                    self.drafts.on(made)
                }
            };
            let TapeValue::Scalar(cell) = made.it else { continue };
            let draft = made.draft;
            if qtype.is_optional() {
                match cell.presence {
                    Presence::When(mask) => self.output(index, Part::Presence, On { draft, it: Output::Mask(mask) }),
                    known => {
                        let mask = self.drafts.tape().mconst(known == Presence::Present);
                        let on = self.drafts.on(Output::Mask(mask));
                        self.output(index, Part::Presence, on);
                    }
                }
            }
            // What is missing in all rows is zero, wherever its datum is.
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
                Datum::Flag(it) => self.output(index, Part::Flag, On { draft, it: Output::Mask(it) }),
                Datum::Num(it) => self.output(index, Part::Number, On { draft, it: Output::Number(it) }),
                Datum::Text { ptr, len } => {
                    self.output(index, Part::Pointer, On { draft, it: Output::Number(ptr) });
                    self.output(index, Part::Length, On { draft, it: Output::Number(len) });
                }
            }
        }
    }

    /// States a part of an output of the program. What is in a column already is in that of the output from the start; what comes in
    /// from outside, or is an output already, is copied by a tape.
    fn output(&mut self, index: u32, part: Part, on: On<Output>) {
        let origin = Origin::Output { index, part };
        if let Some(known) = self.drafts.known_column(on)
            && let column = &mut self.drafts.columns[known.index()]
            && matches!(column.origin, Origin::Scratch { .. })
        {
            column.origin = origin;
            return;
        }
        let ty = match (part, on.it) {
            (Part::Presence | Part::Flag, _) => MachineType::Flag,
            (_, Output::Number(val)) => self.drafts.type_of(On { draft: on.draft, it: val }),
            (_, Output::Mask(_)) => MachineType::Flag,
        };
        let column = self.drafts.column(ty, Port::Rows, origin);
        self.drafts.output(on, column);
    }
}
