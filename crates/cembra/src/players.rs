//! What plays a model on many rows: the one place that knows all players, chooses among them, and says why.

use crate::choice::RowPlayer;
use crate::error::Error;
use cembra_batch::{Forms, LaneFunction, facts};
use cembra_plan::{Action, Plan, StepId};
use cembra_record::{InputFact, NotLanes, record_lanes};
use cembra_runtime::BatchFunction;
use cembra_tape::{Body, CanPlay, LaneProgram, Port, Tape, TapeLoop};
use cembra_value::{Budget, Code, Diagnostic};
use cembra_wide::Isa;

/// What evaluates the rows of columns of some forms, and why not something faster.
#[derive(Debug)]
pub(crate) struct Chosen {
    /// None if the interpreter does.
    pub(crate) function: Option<Box<dyn BatchFunction>>,
    /// Which player that is.
    pub(crate) player: RowPlayer,
    /// Why it is not the best of all.
    pub(crate) because: Option<Diagnostic>,
}

/// True if some operator does what a user can see: then rows are evaluated in order, each once.
pub(crate) fn is_impure(plan: &Plan) -> bool {
    (0..plan.step_count()).any(|at| match plan.step(StepId::from_index(at)).action {
        Action::Operator { op, overload, .. } => !plan.registry().get(op).overloads()[usize::from(overload)].pure,
        _ => false,
    })
}

/// Chooses what evaluates the rows of columns of these forms, and makes it.
///
/// # Errors
/// The player that was asked for cannot play the model, or not on this machine.
pub(crate) fn choose(plan: &Plan, forms: &Forms, wanted: RowPlayer, budget: &Budget) -> Result<Chosen, Error> {
    let interpreter = |because| Chosen { function: None, player: RowPlayer::Interpreter, because };
    if wanted == RowPlayer::Interpreter {
        return Ok(interpreter(None));
    }
    if is_impure(plan) {
        return Ok(interpreter(Some(row_by_row("an operator is not pure: rows are evaluated in order, each once"))));
    }
    let mut because = None;
    for player in order(wanted) {
        let made = match lanes(player) {
            Some(lanes) => lane_function(plan, forms, &lanes, budget),
            None => Err(row_by_row("there is no machine code for rows")),
        };
        match made {
            Ok(function) => return Ok(Chosen { function: Some(function), player, because }),
            Err(reason) if wanted != RowPlayer::Best && player == wanted => {
                // A model that no lanes can play is no fault of the caller's.
                because = Some(reason);
            }
            Err(reason) => because = because.or(Some(reason)),
        }
    }
    match (wanted, because) {
        (RowPlayer::Avx512 | RowPlayer::Avx2, Some(reason)) if reason.code() == Code::Native => Err(reason.into()),
        (_, because) => Ok(interpreter(because)),
    }
}

/// The players to try, the best first.
fn order(wanted: RowPlayer) -> Vec<RowPlayer> {
    match wanted {
        RowPlayer::Best => vec![RowPlayer::Avx512, RowPlayer::Avx2],
        RowPlayer::Interpreter => Vec::new(),
        one => vec![one],
    }
}

/// A player of lanes: what it can play, and how it compiles a tape.
struct Lanes {
    can_play: CanPlay,
    compile: fn(&Tape, &[Port], &Budget) -> Result<Box<dyn TapeLoop>, Diagnostic>,
}

fn lanes(player: RowPlayer) -> Option<Lanes> {
    fn wide(tape: &Tape, ports: &[Port], isa: Isa, budget: &Budget) -> Result<Box<dyn TapeLoop>, Diagnostic> {
        let limits = cembra_wide::Limits { code_bytes: budget.limits().code_bytes, ..cembra_wide::Limits::default() };
        match cembra_wide::compile(tape, ports, isa, &limits) {
            Ok(played) => Ok(Box::new(played)),
            Err(error) => Err(Diagnostic::new(Code::Native, error.to_string())),
        }
    }
    Some(match player {
        RowPlayer::Avx512 => Lanes {
            can_play: Isa::Avx512.can_play(),
            compile: |tape, ports, budget| wide(tape, ports, Isa::Avx512, budget),
        },
        RowPlayer::Avx2 => Lanes {
            can_play: Isa::Avx2.can_play(),
            compile: |tape, ports, budget| wide(tape, ports, Isa::Avx2, budget),
        },
        _ => return None,
    })
}

/// The lane program of a plan for columns of these forms.
pub(crate) fn lane_program(plan: &Plan, forms: &Forms, can_play: CanPlay) -> Result<LaneProgram, NotLanes> {
    let known: Vec<InputFact> = facts(&forms.0[..plan.inputs().len()])
        .map(|(is_shared, all_present)| InputFact { is_shared, all_present })
        .collect();
    record_lanes(plan, &known, can_play)
}

fn lane_function(
    plan: &Plan,
    forms: &Forms,
    lanes: &Lanes,
    budget: &Budget,
) -> Result<Box<dyn BatchFunction>, Diagnostic> {
    let program = lane_program(plan, forms, lanes.can_play).map_err(|refused| row_by_row(&refused.to_string()))?;
    let mut loops = Vec::with_capacity(program.segments.len());
    for segment in &program.segments {
        if let Body::Tape(tape) = &segment.body {
            let ports: Vec<Port> = tape.inputs.iter().map(|column| program.column(*column).port).collect();
            loops.push((lanes.compile)(&tape.tape, &ports, budget)?);
        }
    }
    Ok(Box::new(LaneFunction::new(plan, program, loops, &forms.0)))
}

/// The reason that rows are evaluated one by one.
fn row_by_row(why: &str) -> Diagnostic {
    Diagnostic::new(Code::Option, why.to_owned())
}
