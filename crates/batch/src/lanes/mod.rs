//! Lane programs at work: a strip's inputs become dense columns, segment by segment is played by compiled loops and kernels,
//! outputs get to where they belong. Which code plays the tapes is not known here: a loop is a `TapeLoop`.

mod kernels;
mod parts;

use cembra_plan::{CompiledLiteral, Plan};
use cembra_runtime::{BatchFunction, Column, ColumnForm, Context, PresenceForm, STATUS_OK, Scratch, ScratchLayout};
use cembra_tape::{Body, ColumnId, LaneProgram, Segment, Source, TapeLoop};
use parts::{Place, Stage};
use smallvec::SmallVec;

/// The rows that are played again at once to find those that fail, where no kernel is called twice for that.
const PROBED: usize = 256;

/// What the addresses in scratch memory are aligned to.
const ALIGNMENT: usize = 64;

/// The addresses of a strip's columns; most models have fewer.
type Addresses = SmallVec<[*mut u8; 32]>;

/// A plan's lane program with its code, for columns of some forms.
#[derive(Debug)]
pub struct LaneFunction {
    program: LaneProgram,
    /// One for each tape, in the order of the segments.
    loops: Vec<Box<dyn TapeLoop>>,
    /// For each of them whether its outputs are the model's alone, and nobody reads them again.
    is_final: Vec<bool>,
    /// Where each column of the program is.
    places: Vec<Place>,
    gathered: Vec<Stage>,
    scattered: Vec<Stage>,
    layout: ScratchLayout,
    has_kernels: bool,
    has_strings: bool,
    #[expect(dead_code, reason = "what kernels are given lies in them")]
    states: Vec<CompiledLiteral>,
}

impl LaneFunction {
    /// A program of a plan, recorded for columns of these forms, and the loops of its tapes in the order of its segments.
    #[must_use]
    pub fn new(plan: &Plan, program: LaneProgram, loops: Vec<Box<dyn TapeLoop>>, forms: &[ColumnForm]) -> LaneFunction {
        let inputs = plan.inputs().len();
        let mut staging = parts::Staging::of(&program, &forms[..inputs], &forms[inputs..]);
        let rows = program.strip_rows(staging.bytes_for_64_rows.div_ceil(64));
        let bytes = ALIGNMENT + staging.place(&program, rows);
        let parts::Staging { places, gathered, scattered, .. } = staging;
        LaneFunction {
            is_final: is_final(&program, &places),
            has_kernels: program.segments.iter().any(|segment| matches!(segment.body, Body::Kernel(_))),
            has_strings: plan.has_strings(),
            layout: ScratchLayout { rows, bytes, frame: plan.template().frame() },
            states: plan.states(),
            program,
            loops,
            places,
            gathered,
            scattered,
        }
    }

    /// The program, for listings.
    #[must_use]
    pub fn program(&self) -> &LaneProgram {
        &self.program
    }

    /// Plays rows from a multiple of 64 on; false if some row of them fails.
    ///
    /// # Safety
    /// COLUMNS, as for `run`.
    unsafe fn rows(
        &self,
        columns: &[Column],
        start: usize,
        rows: usize,
        scratch: &mut Scratch,
        context: &mut Context,
    ) -> bool {
        let memory: *mut u8 = scratch.words.as_mut_ptr().cast();
        let memory = memory.wrapping_add(memory.align_offset(ALIGNMENT));
        let frame = scratch.frame.ptr();
        for stage in &self.gathered {
            // SAFETY: COLUMNS, promised by the caller; there is scratch memory for the stage.
            unsafe { stage.gather(columns, start, rows, memory) };
        }
        let mut addresses = Addresses::new();
        for (place, column) in self.places.iter().zip(&self.program.columns) {
            addresses.push(place.address(column, columns, start, memory, frame));
        }
        let mut loops = self.loops.iter().zip(&self.is_final);
        let mut ports = Addresses::new();
        for segment in &self.program.segments {
            let rows = if segment.once { rows.min(1) } else { rows };
            let fails = match &segment.body {
                Body::Tape(tape) => {
                    let Some((played, is_final)) = loops.next() else { return false };
                    ports.clear();
                    ports.extend(tape.inputs.iter().chain(&tape.outputs).map(|column| addresses[column.index()]));
                    // SAFETY: PORTS: the columns are those of the tape's inputs and outputs, each with the rows.
                    unsafe {
                        if *is_final && scratch.past_caches {
                            played.play_past_caches(&ports, rows, context)
                        } else {
                            played.play(&ports, rows, context)
                        }
                    }
                }
                // SAFETY: COLUMNS, promised by the caller, for the addresses.
                Body::Kernel(kernel) => unsafe {
                    !kernels::call_rows(kernel, &self.program, &addresses, rows, frame, context)
                },
            };
            if fails {
                return false;
            }
        }
        for stage in &self.scattered {
            // SAFETY: COLUMNS, promised by the caller; the stage was written.
            unsafe { stage.scatter(columns, start, rows, memory) };
        }
        true
    }
}

// SAFETY: COLUMNS: columns are addressed by their forms, and scratch memory by the layout.
unsafe impl BatchFunction for LaneFunction {
    fn scratch(&self) -> ScratchLayout {
        self.layout.clone()
    }

    fn rows(&self) -> usize {
        self.layout.rows
    }

    // SAFETY: COLUMNS, as the trait says.
    unsafe fn run(&self, columns: &[Column], rows: usize, scratch: &mut Scratch, context: &mut Context) {
        if self.has_strings {
            context.begin();
        }
        // SAFETY: COLUMNS, promised by the caller.
        let succeeds = unsafe { self.rows(columns, 0, rows, scratch, context) };
        // All rows together have the allowance of one: most need none of it, and else rows are run one by one.
        if succeeds && (!self.has_strings || context.end(STATUS_OK) == STATUS_OK) {
            return;
        }
        if self.has_kernels || self.has_strings || rows <= PROBED {
            scratch.failed.add_all(0..rows);
            return;
        }
        for start in (0..rows).step_by(PROBED) {
            let end = (start + PROBED).min(rows);
            // SAFETY: COLUMNS, promised by the caller.
            if !unsafe { self.rows(columns, start, end - start, scratch, context) } {
                scratch.failed.add_all(start..end);
            }
        }
    }

    fn memory_bytes(&self) -> usize {
        let code: usize = self.loops.iter().map(|played| played.code_bytes()).sum();
        code + self.program.memory_bytes() + size_of_val(&self.places[..])
    }
}

/// For each tape of a program whether all numbers that it makes are outputs in their place, which no later segment reads.
fn is_final(program: &LaneProgram, places: &[Place]) -> Vec<bool> {
    let reads = |segment: &Segment, column: ColumnId| match &segment.body {
        Body::Tape(tape) => tape.inputs.contains(&column),
        Body::Kernel(kernel) => {
            kernel.rows == Some(column) || kernel.loads.iter().any(|load| load.from == Source::Column(column))
        }
    };
    let is_final = |(at, segment): (usize, &Segment)| match &segment.body {
        Body::Kernel(_) => None,
        Body::Tape(tape) => Some(tape.outputs.iter().all(|column| {
            let is_in_place = matches!(places[column.index()], Place::Data(..) | Place::Presence(_));
            is_in_place && !program.segments[at + 1..].iter().any(|later| reads(later, *column))
        })),
    };
    program.segments.iter().enumerate().filter_map(is_final).collect()
}

/// What is known of columns of these forms before their rows are, for the recorder: whether all rows share one value, and
/// whether all are present.
pub fn facts(forms: &[ColumnForm]) -> impl Iterator<Item = (bool, bool)> + '_ {
    forms.iter().map(|form| (form.is_shared, form.presence == PresenceForm::All))
}
