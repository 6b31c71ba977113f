//! The last stage of recording a lane program (a plan recorded for many rows at once). From the last segment to the first,
//! instructions and outputs that no later segment needs are removed. Then columns are numbered anew, in the order in which
//! segments use them.

use crate::lanes::drafts::{Draft, Drafts};
use cembra_plan::StepId;
use cembra_tape::{Body, CanPlay, ColumnId, LaneColumn, LaneProgram, Origin, Segment, Source, TapeSegment};

/// Returns the finished program. Appends to `lacking` the steps with an instruction that the backend does not support:
/// one for which `can_play` returns false.
pub(super) fn finish(drafts: Drafts, can_play: CanPlay, lacking: &mut Vec<StepId>) -> LaneProgram {
    let Drafts { done, open, columns, once, .. } = drafts;
    let mut needed: Vec<bool> = columns.iter().map(|column| matches!(column.origin, Origin::Output { .. })).collect();
    let mut segments: Vec<Segment> = Vec::with_capacity(done.len() + 1);
    let last = std::iter::once((Draft::Tape(Box::new(open)), once));
    for (draft, once) in last.chain(done.into_iter().rev()) {
        let body = match draft {
            Draft::Tape(mut draft) => {
                let tape = &mut draft.tape;
                draft.outputs.retain(|(_, column)| needed[column.index()]);
                draft.outputs.iter().for_each(|(output, _)| tape.output(*output));
                tape.finish();
                let live: Vec<bool> = tape.inputs().map(|(at, _)| tape.live()[at]).collect();
                let mut live = live.into_iter();
                draft.inputs.retain(|_| live.next() == Some(true));
                tape.sweep();
                if tape.instrs().is_empty() {
                    continue;
                }
                let cannot = (0..tape.instrs().len()).filter(|at| !can_play(tape, *at));
                lacking.extend(cannot.map(|at| StepId::from_index(tape.site(at) as usize)));
                let outputs = draft.outputs.into_iter().map(|(_, column)| column).collect();
                Body::Tape(TapeSegment { tape: draft.tape, inputs: draft.inputs, outputs })
            }
            Draft::Kernel(mut kernel) => {
                // The presence is always stored, because it decides how the other parts are read.
                kernel.stores.retain(|store| store.is_presence || needed[store.column.index()]);
                Body::Kernel(*kernel)
            }
            Draft::Memo(mut memo) => {
                memo.stores.retain(|store| needed[store.column.index()]);
                Body::Memo(memo)
            }
        };
        let segment = Segment { once, body };
        segment.for_each_read(|column| needed[column.index()] = true);
        segments.push(segment);
    }
    segments.reverse();
    lacking.sort_unstable();
    lacking.dedup();
    let columns = renumber(&mut segments, &columns);
    LaneProgram::new(columns, segments)
}

/// Numbers the columns in the order in which segments first name them, and returns the columns that segments name.
fn renumber(segments: &mut [Segment], columns: &[LaneColumn]) -> Vec<LaneColumn> {
    let mut numbers: Vec<Option<ColumnId>> = vec![None; columns.len()];
    let mut kept: Vec<LaneColumn> = Vec::with_capacity(columns.len());
    let mut number = |column: &mut ColumnId| {
        *column = *numbers[column.index()].get_or_insert_with(|| {
            kept.push(columns[column.index()]);
            ColumnId::from_index(kept.len() - 1)
        });
    };
    for segment in segments {
        match &mut segment.body {
            Body::Tape(tape) => tape.inputs.iter_mut().chain(&mut tape.outputs).for_each(&mut number),
            Body::Kernel(kernel) => {
                kernel.rows.iter_mut().for_each(&mut number);
                for load in &mut kernel.loads {
                    if let Source::Column(column) = &mut load.from {
                        number(column);
                    }
                }
                kernel.stores.iter_mut().for_each(|store| number(&mut store.column));
            }
            Body::Memo(memo) => {
                memo.rows.iter_mut().for_each(&mut number);
                memo.stores.iter_mut().for_each(|store| number(&mut store.column));
            }
        }
    }
    kept
}
