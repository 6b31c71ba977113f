//! Lifetimes of an array program's values. A lifetime ends with the last step that uses the value; then the memory of the value is freed. Results of
//! blocks and outputs of the program are never freed.

use crate::{Action, ArrayProgram, BlockId, Step, ValueId};

/// The most levels of blocks between a step that uses a value and the block that computes the value. A value that is
/// used in a deeper block is never freed.
const MOST_NESTED: usize = 64;

/// The lifetimes of an array program's values: for each step of each block, the values whose memory can be freed after
/// the step.
#[derive(Debug, Default)]
pub struct Lifetimes {
    ended: Vec<Vec<Vec<ValueId>>>,
}

/// The position of a step: its block, and its index in the block.
type StepPlace = (BlockId, usize);

/// Stands for the last use of a value that is never freed: an index that no step has.
const NEVER: usize = usize::MAX;

/// The uses of a program's values, from which their lifetimes follow.
struct Uses {
    /// For each value, the step that computes it; `None` for inputs, literals and states of loops.
    homes: Vec<Option<StepPlace>>,
    /// For each block, the step that runs it; `None` for the top block.
    owners: Vec<Option<StepPlace>>,
    /// For each value, the index of the last step that uses it, in the block that computes it; `NEVER` if it must not
    /// be freed.
    last: Vec<usize>,
}

impl Uses {
    /// Records that the step `user` uses a value. If `user` is in an inner block, the use counts for the step that runs
    /// this block.
    fn note(&mut self, value: ValueId, user: StepPlace) {
        let Some((home, _)) = self.homes[value.index()] else { return };
        let (mut block, mut at) = user;
        for _ in 0..MOST_NESTED {
            if block == home {
                let last = &mut self.last[value.index()];
                *last = (*last).max(at);
                return;
            }
            let Some(around) = self.owners[block.index()] else { break };
            (block, at) = around;
        }
        self.last[value.index()] = NEVER;
    }
}

/// The values that a step makes, including values that only the stages of a sweep (a fused loop) use: these need memory if the
/// stages are run one by one.
fn made<'p>(program: &'p ArrayProgram, step: &'p Step) -> impl Iterator<Item = ValueId> + 'p {
    let stages = match step.action {
        Action::Sweep(sweep) => &program.sweep(sweep).stages[..],
        _ => &[],
    };
    let inside = stages.iter().flat_map(|stage| &stage.step.outs).filter(|out| !step.outs.contains(out));
    step.outs.iter().chain(inside).copied()
}

impl Lifetimes {
    /// Computes the lifetimes of the program's values.
    #[must_use]
    pub fn of(program: &ArrayProgram) -> Lifetimes {
        let values = program.values.len();
        let mut uses =
            Uses { homes: vec![None; values], owners: vec![None; program.blocks.len()], last: vec![0; values] };
        let steps = || {
            let blocks = program.blocks.iter().zip(0..);
            blocks
                .flat_map(|(block, at)| block.steps.iter().enumerate().map(move |(step, of)| ((BlockId(at), step), of)))
        };
        for (place, step) in steps() {
            for value in made(program, step) {
                uses.homes[value.index()] = Some(place);
                uses.last[value.index()] = place.1;
            }
            match step.action {
                Action::Where { on, off } => {
                    uses.owners[on.index()] = Some(place);
                    uses.owners[off.index()] = Some(place);
                }
                Action::Loop { round, .. } => uses.owners[round.index()] = Some(place),
                _ => {}
            }
        }
        for (place, step) in steps() {
            step.args.iter().for_each(|arg| uses.note(*arg, place));
            if let Action::Sweep(sweep) = step.action {
                program.sweep(sweep).groups.into_iter().for_each(|edge| uses.note(edge, place));
            }
        }
        for (block, at) in program.blocks.iter().zip(0..) {
            block.result.into_iter().for_each(|result| uses.note(result, (BlockId(at), NEVER)));
        }
        program.outputs.iter().for_each(|(_, output)| uses.note(*output, (BlockId::TOP, NEVER)));
        let mut ended: Vec<Vec<Vec<ValueId>>> =
            program.blocks.iter().map(|block| vec![Vec::new(); block.steps.len()]).collect();
        for (value, (home, last)) in uses.homes.iter().zip(&uses.last).enumerate() {
            if let Some((block, _)) = home
                && let Some(ended) = ended[block.index()].get_mut(*last)
            {
                ended.push(ValueId(value as u32));
            }
        }
        Lifetimes { ended }
    }

    /// The values whose memory can be freed after the step with index `step` in `block`, because no later step uses
    /// them.
    #[inline]
    #[must_use]
    pub fn ended(&self, block: BlockId, step: usize) -> &[ValueId] {
        self.ended.get(block.index()).and_then(|steps| steps.get(step)).map_or(&[], |ended| &ended[..])
    }
}
