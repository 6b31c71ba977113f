//! The last stage of building an array program. If several steps are computed in the same pass over the same elements,
//! they are combined into one sweep (a fused loop). The sweeps and all other steps are appended to the blocks of the
//! program, in the order of the passes.

use crate::passes::Pass;
use crate::{Action, ArrayProgram, BlockId, Side, Stage, Step, Sweep, SweepId, ValueId};
use rustc_hash::{FxHashMap, FxHashSet};

/// A step that is to be added to a program, with its block, its pass over elements, and its side (whether the step has
/// a value per element or per group).
#[derive(Debug)]
pub(crate) struct PendingStep {
    pub(crate) step: Step,
    pub(crate) block: BlockId,
    pub(crate) pass: Pass,
    pub(crate) over: Side,
    /// True if the step is computed during its pass, one strip (block of consecutive elements) after the other. If
    /// false, the step runs before the pass.
    pub(crate) is_swept: bool,
}

/// Adds `steps` to a program that is otherwise complete, combining them into sweeps (fused loops over elements). Each step must come after the steps
/// whose results it reads. A domain is a set of arrays of the same size. For each domain that an edge divides into contiguous groups, `edges` has
/// this edge.
pub(crate) fn fuse(program: &mut ArrayProgram, mut steps: Vec<PendingStep>, edges: &FxHashMap<u32, ValueId>) {
    // The operands of a step come from an earlier pass, or from earlier in `steps`; a stable sort keeps that order.
    steps.sort_by_key(|ready| (ready.pass.number, ready.is_swept));
    let mut sweeps: FxHashMap<(BlockId, Pass), SweepId> = FxHashMap::default();
    let mut owners: Vec<Option<SweepId>> = vec![None; program.values.len()];
    for PendingStep { step, block, pass, over, is_swept } in steps {
        let block_steps = &mut program.blocks[block.index()].steps;
        if !is_swept {
            block_steps.push(step);
            continue;
        }
        let sweep = *sweeps.entry((block, pass)).or_insert_with(|| {
            program.sweeps.push(Sweep { stages: Vec::new(), groups: None });
            let sweep = SweepId(program.sweeps.len() as u32 - 1);
            let action = Action::Sweep(sweep);
            block_steps.push(Step { action, args: Vec::new(), outs: Vec::new(), origin: step.origin });
            sweep
        });
        step.outs.iter().for_each(|out| owners[out.index()] = Some(sweep));
        program.sweeps[sweep.index()].stages.push(Stage { step, over });
    }
    for ((_, pass), sweep) in sweeps {
        let sweep = &mut program.sweeps[sweep.index()];
        sweep.groups = edges.get(&pass.domain).copied().filter(|edge| sees_groups(sweep, *edge));
        if sweep.groups.is_none() {
            sweep.stages.iter_mut().for_each(|stage| stage.over = Side::Elements);
        }
    }
    let kept = kept(program, &owners);
    for block in &mut program.blocks {
        for step in &mut block.steps {
            let Action::Sweep(sweep) = step.action else { continue };
            let stages = &program.sweeps[sweep.index()].stages;
            let inside = |value: &ValueId| owners[value.index()] == Some(sweep);
            let args = stages.iter().flat_map(|stage| &stage.step.args).copied();
            step.args = args.filter(|arg| !inside(arg)).collect();
            step.args.sort_unstable();
            step.args.dedup();
            let outs = stages.iter().flat_map(|stage| &stage.step.outs).copied();
            step.outs = outs.filter(|out| kept[out.index()]).collect();
        }
    }
}

/// Returns true if a stage of the sweep that goes over elements may read a result per group that the same sweep
/// computes. `edge` groups the elements.
fn sees_groups(sweep: &Sweep, edge: ValueId) -> bool {
    let is_over = |side: Side| sweep.stages.iter().any(|stage| stage.over == side);
    let made: FxHashSet<ValueId> = sweep.stages.iter().flat_map(|stage| &stage.step.outs).copied().collect();
    let expands = |stage: &Stage| {
        matches!(stage.step.action, Action::Operator(cembra_ops::id::ARRAY_EXPAND))
            && stage.step.args[1] == edge
            && made.contains(&stage.step.args[0])
    };
    is_over(Side::Elements) && (is_over(Side::Groups) || sweep.stages.iter().any(expands))
}

/// Returns, for each value, whether it is needed outside of the sweep that computes it: a step outside reads it, or it
/// is the result of a block or an output of the program.
fn kept(program: &ArrayProgram, owners: &[Option<SweepId>]) -> Vec<bool> {
    let mut kept = vec![false; program.values.len()];
    for (at, sweep) in program.sweeps.iter().enumerate() {
        for arg in sweep.stages.iter().flat_map(|stage| &stage.step.args) {
            kept[arg.index()] |= owners[arg.index()] != Some(SweepId(at as u32));
        }
    }
    for block in &program.blocks {
        block.steps.iter().flat_map(|step| &step.args).for_each(|arg| kept[arg.index()] = true);
        block.result.iter().for_each(|result| kept[result.index()] = true);
    }
    program.outputs.iter().for_each(|(_, value)| kept[value.index()] = true);
    kept
}
