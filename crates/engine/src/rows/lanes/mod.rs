//! Runs vectorised programs on a strip, which is a block of rows: inputs that are not contiguous are copied to contiguous columns, compiled loops and
//! kernels run one after the other, and outputs are copied to their columns. This module does not know the code generator: a compiled loop is a
//! `TapeLoop`.

mod bare;
mod gather;
mod kernels;
mod memos;
mod parts;

use bare::InPlaceLoop;
use cembra_plan::{CompiledLiteral, Plan};
use cembra_runtime::{
    BareFunction, BatchFunction, CodePages, Column, ColumnForm, Context, DataForm, DictionaryIndices, FunctionColumns,
    MachineType, PresenceForm, STATUS_OK, Scratch, ScratchLayout,
};
use cembra_tape::{Body, ColumnId, LaneColumn, LaneProgram, Origin, Port, Segment, Source, TapeLoop};
use gather::PrefetchColumn;
use memos::{MemoFunction, MemoStrip, Memos, StringLocation};
use parts::{ColumnStorage, Stage};
use smallvec::SmallVec;
use std::sync::Arc;

/// The most rows that are run again at once, after a strip (a block of rows) has failed, to find the rows that fail.
/// Only programs without kernels, memos (results per dictionary value) and strings are run again this way.
const PROBED: usize = 256;

/// The alignment of addresses in scratch memory, in bytes.
const ALIGNMENT: usize = 64;

/// The most inputs that are prefetched; more would take too many cache lines at once.
const MOST_AHEAD: usize = 4;

/// The addresses of the columns of a vectorised program; most programs have at most 32.
type Addresses = SmallVec<[*mut u8; 32]>;

/// A plan's vectorised program with its code, for columns with given layouts.
#[derive(Debug)]
pub struct LaneFunction {
    program: LaneProgram,
    /// The parts of the program that are computed once per dictionary value (memos), in the order of the segments.
    memos: Vec<MemoFunction>,
    /// For each output, the location of its string in a memo (results computed once per dictionary value); `None` if
    /// the output does not depend on one dictionary alone.
    results: Vec<Option<StringLocation>>,
    /// The indices of the dictionary inputs that memos (results computed once per dictionary value) depend on,
    /// ascending.
    numbered: Vec<u32>,
    /// The compiled loops of the program's tapes (sequences of vector operations), in the order of the segments.
    loops: Vec<Arc<dyn TapeLoop>>,
    /// For each loop, true if it writes only outputs of the model, directly in their columns, and no later segment reads them.
    is_final: Vec<bool>,
    /// The memory of each column of the program.
    places: Vec<ColumnStorage>,
    /// The loop of a program that is a single loop over columns of numbers, which it reads and writes in place; `None`
    /// for other programs.
    bare: Option<Arc<InPlaceLoop>>,
    gathered: Vec<Stage>,
    scattered: Vec<Stage>,
    layout: ScratchLayout,
    made_for: FunctionColumns,
    has_kernels: bool,
    has_strings: bool,
    #[expect(dead_code, reason = "the arguments of kernels point into this memory")]
    states: Vec<CompiledLiteral>,
}

impl LaneFunction {
    /// Returns the memory pages that contain the loops' machine code.
    pub(crate) fn pages(&self) -> impl Iterator<Item = &CodePages> {
        self.loops.iter().filter_map(|played| played.pages())
    }

    /// Makes a function from a plan's vectorised program, which was recorded for columns with these layouts, and from its compiled loops, in the
    /// order of [`LaneProgram::tapes`].
    ///
    /// # Safety
    /// PORTS: the program was recorded from this plan for columns with these layouts. Each loop was compiled from its tape for the ports (columns of
    /// the loop) that result from these layouts.
    #[must_use]
    pub unsafe fn new(
        plan: &Plan,
        program: LaneProgram,
        loops: Vec<Box<dyn TapeLoop>>,
        forms: &[ColumnForm],
    ) -> LaneFunction {
        LaneFunction::with(plan, program, &mut loops.into_iter(), forms)
    }

    fn with(
        plan: &Plan,
        program: LaneProgram,
        compiled: &mut dyn Iterator<Item = Box<dyn TapeLoop>>,
        forms: &[ColumnForm],
    ) -> LaneFunction {
        let inputs = plan.inputs().len();
        let (mut loops, mut memos): (Vec<Arc<dyn TapeLoop>>, _) = (Vec::new(), Vec::new());
        for segment in &program.segments {
            match &segment.body {
                Body::Tape(_) => loops.extend(compiled.next().map(Arc::from)),
                Body::Kernel(_) => {}
                Body::Memo(memo) => memos.push(MemoFunction::new(plan, memo, compiled, forms)),
            }
        }
        let mut numbered: Vec<u32> = memos.iter().map(|memo| memo.input).collect();
        numbered.sort_unstable();
        numbered.dedup();
        let results = memos::string_locations(&program, &memos, forms.len() - inputs);
        let mut staging = parts::Staging::of(&program, &forms[..inputs], &forms[inputs..]);
        let rows = program.strip_rows(staging.bytes_for_64_rows);
        let bytes = ALIGNMENT + staging.place(&program, rows);
        let of_inputs = plan.inputs().iter().map(|input| input.value);
        let of_outputs = plan.outputs().iter().map(|output| output.value);
        let types = of_inputs.chain(of_outputs).map(|value| plan.value(value).qtype.clone()).collect();
        let parts::Staging { places, gathered, scattered, .. } = staging;
        LaneFunction {
            is_final: is_final(&program, &places),
            has_kernels: program.segments.iter().any(|segment| !matches!(segment.body, Body::Tape(_))),
            has_strings: plan.has_strings(),
            made_for: FunctionColumns { types, forms: forms.into() },
            layout: ScratchLayout { rows, bytes, frame: plan.template().frame() },
            states: plan.states(),
            bare: InPlaceLoop::of(&program, &places, &loops),
            program,
            memos,
            results,
            numbered,
            loops,
            places,
            gathered,
            scattered,
        }
    }

    /// Returns true if the rows of a strip (a block of rows) together stayed within the limits for one row.
    fn is_allowed(&self, scratch: &Scratch, context: &mut Context) -> bool {
        let memos = scratch.kept.as_ref().and_then(|kept| kept.downcast_ref::<Memos>());
        context.end(STATUS_OK) == STATUS_OK && memos.is_none_or(|memos| memos.has_room_for_one(context))
    }

    /// The vectorised program, for listings.
    #[must_use]
    pub fn program(&self) -> &LaneProgram {
        &self.program
    }

    /// Returns the input columns that are prefetched while the results of memos (computed once per dictionary value)
    /// are copied to rows, because memory would otherwise be idle during the copies. Empty if the columns may be in the
    /// caches already.
    fn ahead(&self, addresses: &[*mut u8], past_caches: bool) -> SmallVec<[PrefetchColumn; MOST_AHEAD]> {
        if self.memos.is_empty() || !past_caches {
            return SmallVec::new();
        }
        let is_read = |place: &ColumnStorage, column: &LaneColumn| {
            let is_input = matches!((place, column.origin), (ColumnStorage::Data(..), Origin::Input { .. }));
            is_input && column.port == Port::Rows && column.ty != MachineType::Flag
        };
        let columns = self.places.iter().zip(&self.program.columns).zip(addresses);
        let columns = columns.filter(|((place, column), _)| is_read(place, column));
        let ahead =
            columns.map(|((_, column), first)| PrefetchColumn { first: first.cast_const(), size: column.ty.size() });
        ahead.take(MOST_AHEAD).collect()
    }

    /// Runs the program on `rows` rows from row `start` on, which must be a multiple of 64. Returns false if a row
    /// fails.
    ///
    /// # Safety
    /// COLUMNS: the requirements of `run` must hold.
    unsafe fn rows(
        &self,
        columns: &[Column],
        numbers: &[DictionaryIndices<'_>],
        start: usize,
        rows: usize,
        scratch: &mut Scratch,
        context: &mut Context,
    ) -> bool {
        let Scratch { words, frame, failed, kept, .. } = scratch;
        let mut memos = kept.as_mut().and_then(|kept| kept.downcast_mut::<Memos>()).map(|memos| memos.0.iter_mut());
        let mut memos = self.memos.iter().zip(memos.iter_mut().flatten());
        if let Some(bare) = &self.bare {
            let past_caches = scratch.past_caches && self.is_final.contains(&true);
            // SAFETY: COLUMNS, promised by the caller.
            return unsafe { !bare.rows(columns, start, rows, past_caches, &scratch.ahead, context) };
        }
        let memory: *mut u8 = words.as_mut_ptr().cast();
        let memory = memory.wrapping_add(memory.align_offset(ALIGNMENT));
        let frame = frame.ptr();
        for stage in &self.gathered {
            // SAFETY: COLUMNS, promised by the caller; there is scratch memory for the stage.
            unsafe { stage.gather(columns, start, rows, memory) };
        }
        let mut addresses = Addresses::new();
        for (place, column) in self.places.iter().zip(&self.program.columns) {
            addresses.push(place.address(column, columns, start, memory, frame));
        }
        let mut ahead = self.ahead(&addresses, scratch.past_caches);
        let mut loops = self.loops.iter().zip(&self.is_final);
        let mut ports = Addresses::new();
        for segment in &self.program.segments {
            let rows = if segment.once { rows.min(1) } else { rows };
            let fails = match &segment.body {
                Body::Tape(tape) => {
                    let Some((played, is_final)) = loops.next() else { return false };
                    ports.clear();
                    for columns in [&tape.inputs, &tape.outputs] {
                        for column in columns {
                            ports.push(addresses[column.index()]);
                        }
                    }
                    // SAFETY: PORTS: the columns are those of the tape's inputs and outputs, each with the rows.
                    unsafe {
                        let past_caches = *is_final && scratch.past_caches;
                        play(&**played, &ports, rows, past_caches, &scratch.ahead, context)
                    }
                }
                // SAFETY: COLUMNS, promised by the caller, for the addresses.
                Body::Kernel(kernel) => unsafe {
                    !kernels::call_rows(kernel, &self.program, &addresses, rows, frame, context)
                },
                Body::Memo(_) => {
                    let Some((function, memo)) = memos.next() else { return false };
                    let Ok(at) = self.numbered.binary_search(&function.input) else { return false };
                    let of_rows = numbers[at].of_rows.wrapping_add(start);
                    let numbers = DictionaryIndices { of_rows, ..numbers[at] };
                    // SAFETY: COLUMNS, promised by the caller, for columns, numbers and addresses.
                    unsafe {
                        let strip = MemoStrip {
                            columns,
                            numbers: &numbers,
                            program: &self.program,
                            addresses: &addresses,
                            rows,
                        };
                        memo.play(function, strip, &ahead, |row| failed.add(start + row));
                    }
                    ahead.clear();
                    false
                }
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

    fn made_for(&self) -> &FunctionColumns {
        &self.made_for
    }

    fn rows(&self) -> usize {
        self.layout.rows
    }

    fn numbered(&self) -> &[u32] {
        &self.numbered
    }

    fn reads(&self, input: usize) -> bool {
        let is_of = |origin: Origin| matches!(origin, Origin::Input { index, .. } if index as usize == input);
        self.program.columns.iter().any(|column| is_of(column.origin))
    }

    fn result_of(&self, output: usize) -> Option<u32> {
        let StringLocation { memo, .. } = self.results.get(output)?.as_ref()?;
        Some(self.memos[*memo].input)
    }

    fn results(&self, output: usize, scratch: &Scratch, known: &mut u64, f: &mut dyn FnMut(u32, Option<&[u8]>)) {
        let memos = scratch.kept.as_ref().and_then(|kept| kept.downcast_ref::<Memos>());
        if let (Some(memos), Some(Some(result))) = (memos, self.results.get(output)) {
            memos.results(result, known, f);
        }
    }

    fn begin(&self, scratch: &mut Scratch, context: &Context) {
        match scratch.kept.as_mut().and_then(|kept| kept.downcast_mut::<Memos>()) {
            Some(memos) => memos.begin(context),
            None if self.memos.is_empty() => {}
            None => scratch.kept = Some(Box::new(Memos::of(&self.memos, context))),
        }
    }

    // SAFETY: COLUMNS, as the trait says.
    unsafe fn run(
        &self,
        columns: &[Column],
        numbers: &[DictionaryIndices<'_>],
        rows: usize,
        scratch: &mut Scratch,
        context: &mut Context,
    ) {
        if self.has_strings {
            context.begin();
        }
        if let Some(memos) = scratch.kept.as_mut().and_then(|kept| kept.downcast_mut::<Memos>()) {
            memos.drop_large();
        }
        // SAFETY: COLUMNS, promised by the caller.
        let succeeds = unsafe { self.rows(columns, numbers, 0, rows, scratch, context) };
        // All rows together have the limits of one. Most strips stay within them; otherwise rows are run one by one.
        if succeeds && (!self.has_strings || self.is_allowed(scratch, context)) {
            // Rows that are run again begin with an empty arena, which drops the strings that kernels made for other rows. So all rows are run
            // again.
            let is_made = |segment: &Segment| matches!(segment.body, Body::Kernel(_));
            if self.has_strings && scratch.failed.any() && self.program.segments.iter().any(is_made) {
                scratch.failed.add_all(0..rows);
            }
            return;
        }
        if self.has_kernels || self.has_strings || rows <= PROBED {
            scratch.failed.add_all(0..rows);
            return;
        }
        for start in (0..rows).step_by(PROBED) {
            let end = (start + PROBED).min(rows);
            // SAFETY: COLUMNS, promised by the caller.
            if !unsafe { self.rows(columns, numbers, start, end - start, scratch, context) } {
                scratch.failed.add_all(start..end);
            }
        }
    }

    fn bare(&self) -> Option<Arc<dyn BareFunction>> {
        let bare = self.bare.clone().filter(|_| !self.has_strings)?;
        Some(bare)
    }

    fn memory_bytes(&self) -> usize {
        let code: usize = self.loops.iter().map(|played| played.code_bytes()).sum();
        let memos: usize = self.memos.iter().map(MemoFunction::memory_bytes).sum();
        code + memos + self.program.memory_bytes() + size_of_val(&self.places[..])
    }
}

/// Runs a loop. With `past_caches`, its results bypass the caches; otherwise the addresses `ahead` may be prefetched. Returns true if a row failed.
///
/// # Safety
/// PORTS: the requirements of `TapeLoop::play` must hold.
unsafe fn play(
    played: &dyn TapeLoop,
    ports: &[*mut u8],
    rows: usize,
    past_caches: bool,
    ahead: &[usize],
    context: &mut Context,
) -> bool {
    // SAFETY: PORTS, promised by the caller.
    unsafe {
        if past_caches {
            played.play_past_caches(ports, rows, context)
        } else {
            played.play_fetching(ports, rows, ahead, context)
        }
    }
}

/// Returns true for each tape (a loop of the program) that writes only outputs of the model, directly to their columns,
/// if no later segment reads these.
fn is_final(program: &LaneProgram, places: &[ColumnStorage]) -> Vec<bool> {
    let reads = |segment: &Segment, column: ColumnId| match &segment.body {
        Body::Tape(tape) => tape.inputs.contains(&column),
        Body::Kernel(kernel) => {
            kernel.rows == Some(column) || kernel.loads.iter().any(|load| load.from == Source::Column(column))
        }
        Body::Memo(memo) => memo.rows == Some(column),
    };
    let is_final = |(at, segment): (usize, &Segment)| match &segment.body {
        Body::Kernel(_) | Body::Memo(_) => None,
        Body::Tape(tape) => Some(tape.outputs.iter().all(|column| {
            let is_in_place = matches!(places[column.index()], ColumnStorage::Data(..) | ColumnStorage::Presence(_));
            is_in_place && !program.segments[at + 1..].iter().any(|later| reads(later, *column))
        })),
    };
    program.segments.iter().enumerate().filter_map(is_final).collect()
}

/// Returns for each output column, by its layout in `forms`, how the program must write it: one result per row, or results added to sums.
pub fn ports(forms: &[ColumnForm]) -> impl Iterator<Item = Port> + '_ {
    forms.iter().map(|form| if form.data == DataForm::Chains { Port::Chains } else { Port::Rows })
}

/// Returns three facts about each column, given the column layouts: whether all rows share one value, whether all rows are present, and whether it is
/// a dictionary column.
pub fn facts(forms: &[ColumnForm]) -> impl Iterator<Item = [bool; 3]> + '_ {
    forms.iter().map(|form| [form.is_shared, form.presence == PresenceForm::All, form.is_dictionary])
}
