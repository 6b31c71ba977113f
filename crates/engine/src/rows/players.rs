//! The choice of the backend that evaluates a model on many rows. Only this file knows all of these backends; it chooses a backend, and gives the
//! reason if a faster backend cannot be used.

use crate::code::machine_code::{compile_rows, refusal};
use crate::options::choice::RowPlayer;
use crate::options::metrics::{Event, EventReporter};
use crate::rows::{ColumnLayouts, LaneFunction, facts, ports};
use cembra_native::Tier;
use cembra_plan::{Action, Input, Plan, StepId};
use cembra_record::{InputFact, NotLanes, record_lanes};
use cembra_runtime::{BatchFunction, LineKind, Listing};
use cembra_tape::{CanPlay, LaneProgram, Port, Tape, TapeLoop};
use cembra_value::Error;
use cembra_value::{Budget, Code, Diagnostic};
use cembra_wide::Isa;

/// The backend chosen for columns with given layouts, and the reason for not using a faster one.
#[derive(Debug)]
pub(crate) struct BackendChoice {
    /// The function that evaluates a strip (a block of rows) at a time; `None` if the interpreter evaluates rows one by one.
    pub(crate) function: Option<Box<dyn BatchFunction>>,
    /// The backend that was chosen.
    pub(crate) player: RowPlayer,
    /// The reason why the backend is not the best one; `None` if it is.
    pub(crate) because: Option<Diagnostic>,
}

/// Returns true if an operator of the plan has an effect that a user can see. Rows are then evaluated in order, each once.
pub(crate) fn is_impure(plan: &Plan) -> bool {
    (0..plan.step_count()).any(|at| match plan.step(StepId::from_index(at)).action {
        Action::Operator { op, overload, .. } => !plan.registry().get(op).overloads()[usize::from(overload)].pure,
        _ => false,
    })
}

/// Chooses and compiles the backend for columns with the layouts `forms`.
///
/// # Errors
/// If the machine does not have the backend that the options ask for.
pub(crate) fn choose(
    plan: &Plan,
    forms: &ColumnLayouts,
    wanted: RowPlayer,
    tier: Tier,
    budget: &Budget,
    watch: &EventReporter,
) -> Result<BackendChoice, Error> {
    let interpreter = |because| BackendChoice { function: None, player: RowPlayer::Interpreter, because };
    if wanted == RowPlayer::Interpreter {
        return Ok(interpreter(None));
    }
    if is_impure(plan) {
        return Ok(interpreter(Some(row_by_row(
            "an operator has side effects, so each row must be evaluated once, in order",
        ))));
    }
    if !is_there(wanted) {
        let message = format!("this machine does not support the row player `{}`", wanted.name());
        return Err(Diagnostic::new(Code::Native, message).hint("use the default row player").into());
    }
    let mut because = None;
    for player in order(wanted) {
        let made: Result<Box<dyn BatchFunction>, Diagnostic> = match lanes(player) {
            Some(lanes) => {
                let make = || lane_function(plan, forms, &lanes, budget);
                let made = compile_rows(plan, player, watch, make, |made, list| made.pages().for_each(list));
                made.map(|made| Box::new(made) as _)
            }
            None => {
                let make =
                    || cembra_native::compile_rows(plan, &forms.0, tier, budget).map_err(|error| refusal(&error));
                let made = compile_rows(plan, player, watch, make, |made, list| list(made.pages()));
                made.map(|made| Box::new(made) as _)
            }
        };
        match made {
            Ok(function) => return Ok(BackendChoice { function: Some(function), player, because }),
            Err(reason) => because = because.or(Some(reason)),
        }
    }
    if let Some(reason) = &because {
        watch.record(&Event::Fallback { reason });
    }
    Ok(interpreter(because))
}

/// The backends to try, the fastest first.
fn order(wanted: RowPlayer) -> Vec<RowPlayer> {
    match wanted {
        RowPlayer::Best => {
            let all = [RowPlayer::Avx512, RowPlayer::Avx2, RowPlayer::Lanes128, RowPlayer::Native];
            all.into_iter().filter(|player| is_there(*player)).collect()
        }
        // Plans that vectors cannot run are run row by row.
        RowPlayer::Avx512 | RowPlayer::Avx2 | RowPlayer::Lanes128 => vec![wanted, RowPlayer::Native],
        RowPlayer::Interpreter => Vec::new(),
        one => vec![one],
    }
}

/// True if this machine has the backend's instructions.
fn is_there(player: RowPlayer) -> bool {
    match player {
        RowPlayer::Avx512 => Isa::Avx512.is_supported(),
        RowPlayer::Avx2 => Isa::Avx2.is_supported(),
        _ => true,
    }
}

/// A backend with vector instructions: the operations that it supports, and the function that compiles a tape (the body
/// of a loop, as a sequence of vector operations).
struct Lanes {
    can_play: CanPlay,
    compile: fn(&Tape, [&[Port]; 2], &Budget) -> Loop,
}

/// A compiled tape (a loop of vector operations), or the reason why the tape could not be compiled.
type Loop = Result<Box<dyn TapeLoop>, Diagnostic>;

fn lanes(player: RowPlayer) -> Option<Lanes> {
    fn wide(tape: &Tape, [inputs, outputs]: [&[Port]; 2], isa: Isa, budget: &Budget) -> Loop {
        let limits = cembra_wide::Limits { code_bytes: budget.limits().code_bytes, ..cembra_wide::Limits::default() };
        match cembra_wide::compile(tape, inputs, outputs, isa.suited(tape, inputs), &limits) {
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
        RowPlayer::Lanes128 => Lanes {
            can_play: cembra_native::lanes::can_play(),
            compile: |tape, [inputs, outputs], budget| match cembra_native::lanes::compile(
                tape, inputs, outputs, budget,
            ) {
                Ok(played) => Ok(Box::new(played)),
                Err(error) => Err(refusal(&error)),
            },
        },
        RowPlayer::Best | RowPlayer::Native | RowPlayer::Interpreter => return None,
    })
}

/// Returns the text of the vectorised program of a plan, for the widest vectors that this machine has, or the reason why the plan has no such
/// program.
pub fn listing(plan: &Plan) -> Listing {
    let fact =
        |input: &Input| InputFact { all_present: !plan.value(input.value).qtype.is_optional(), ..InputFact::default() };
    let facts: Vec<InputFact> = plan.inputs().iter().map(fact).collect();
    let can_play = Isa::best().map_or_else(cembra_native::lanes::can_play, Isa::can_play);
    match record_lanes(plan, &facts, &[], can_play) {
        Ok(program) => {
            let steps = plan.step_count();
            program.listing().map_origins(|step| {
                let step = Some(step as usize).filter(|step| *step < steps);
                step.map(|step| plan.origin(StepId::from_index(step)))
            })
        }
        Err(why) => Listing::of_text(LineKind::Note, &format!("Rows are evaluated one by one: {why}.")),
    }
}

/// Records the vectorised program (lane program) of a plan, for columns with the layouts `forms`.
fn lane_program(plan: &Plan, forms: &ColumnLayouts, can_play: CanPlay) -> Result<LaneProgram, NotLanes> {
    let (inputs, outputs) = forms.0.split_at(plan.inputs().len());
    let known: Vec<InputFact> = facts(inputs)
        .map(|[is_shared, all_present, is_dictionary]| InputFact { is_shared, all_present, is_dictionary })
        .collect();
    let outputs: Vec<Port> = ports(outputs).collect();
    record_lanes(plan, &known, &outputs, can_play)
}

/// Compiles the vectorised program of a plan, for columns with the layouts `forms`, to the vector instructions of
/// `lanes`.
fn lane_function(
    plan: &Plan,
    forms: &ColumnLayouts,
    lanes: &Lanes,
    budget: &Budget,
) -> Result<LaneFunction, Diagnostic> {
    let program = lane_program(plan, forms, lanes.can_play).map_err(|refused| row_by_row(&refused.to_string()))?;
    let mut loops = Vec::with_capacity(program.segments.len());
    for (of, tape) in program.tapes() {
        budget.check_time()?;
        let [inputs, outputs] = tape.ports(of);
        loops.push((lanes.compile)(&tape.tape, [&inputs, &outputs], budget)?);
    }
    // SAFETY: PORTS: the program was recorded above for these forms, and each loop compiled of its tape.
    Ok(unsafe { LaneFunction::new(plan, program, loops, &forms.0) })
}

/// The reason why rows are evaluated one by one.
fn row_by_row(why: &str) -> Diagnostic {
    Diagnostic::new(Code::Option, why.to_owned())
}
