//! Records memos. A memo is the part of a block that depends on one dictionary alone, recorded as a program of its own. The
//! memo runs once per value of the dictionary, in a segment that copies the memo's results to the rows that need them.

use crate::lanes::InputFact;
use crate::lanes::drafts::Draft;
use crate::lanes::finish::finish;
use crate::lanes::memos::{Memo, Memos};
use crate::lanes::recorder::{Recorder, cell, parts};
use crate::line::TapeValue;
use cembra_plan::StepId;
use cembra_runtime::{MachineType, Scalar};
use cembra_tape::{CanPlay, MemoSegment, MemoStore, Output, ValuePart};

impl Recorder<'_> {
    /// Records `memo` (steps that depend on one dictionary alone) for the rows that reach the current step. Appends to
    /// `lacking` the steps with an instruction that the backend does not support: one for which `can_play` returns
    /// false.
    pub(super) fn memo(&mut self, memo: &Memo, can_play: CanPlay, lacking: &mut Vec<StepId>) {
        let plan = self.plan;
        // Inside of the memo, a value of the dictionary is a row.
        let facts: Vec<InputFact> = self.facts.iter().map(|fact| InputFact { is_dictionary: false, ..*fact }).collect();
        let none = Memos::default();
        let mut inside = Recorder::of(plan, &facts, self.classes, &none, self.unplayable);
        inside.record_memo(memo, can_play);
        let program = finish(inside.drafts, can_play, lacking);
        let columns = program.outputs();
        let rows = self.path.map(|path| self.drafts.mask(path)).map(|mask| self.drafts.on(Output::Mask(mask)));
        let rows = rows.map(|on| self.drafts.column_of(on));
        let mut stores = Vec::new();
        let mut made = Vec::new();
        for (at, result) in memo.results.iter().enumerate() {
            let mut store = |part: ValuePart, ty: MachineType| {
                let column = self.drafts.intermediate(ty, false);
                stores.extend(columns.get(at, part).map(|result| MemoStore { result, column }));
                column
            };
            let qtype = &plan.value(*result).qtype;
            let presence = qtype.is_optional().then(|| store(ValuePart::Presence, MachineType::Flag));
            let datum = parts(qtype.scalar().unwrap_or(Scalar::Unit), store);
            made.push((*result, presence, datum));
        }
        let segment = MemoSegment { input: memo.input, rows, program, stores };
        self.drafts.call(Draft::Memo(Box::new(segment)));
        self.set_path(self.path);
        for (result, presence, datum) in made {
            let presence = presence.map(|column| self.drafts.enter(column));
            let datum = datum.map(|part| part.map(|column| self.drafts.enter(column)));
            self.note(result, TapeValue::Scalar(cell(presence, datum)));
        }
    }
}
