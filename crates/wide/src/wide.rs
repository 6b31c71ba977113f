//! Compiled loops: the machine code of a tape (a straight-line program) in executable memory. This module also runs the rows after the last full
//! vector, if the code itself does not.

use crate::divisor::Divisor;
use crate::error::{Error, Reason};
use crate::isa::{Isa, element};
use crate::limits::Limits;
use crate::loops::Workspace;
use cembra_runtime::quotient::Parts;
use cembra_runtime::{CodeMemory, CodePages, Context, LoopEntry, MachineType, chain_of};
use cembra_tape::{Output, Port, Tape, TapeLoop};
use smallvec::SmallVec;
use std::cell::RefCell;
use std::mem::MaybeUninit;
use std::sync::{Arc, OnceLock};

/// The largest capacity, in instructions, with which a thread keeps its workspace for the next compilation.
const MOST_KEPT: usize = 1 << 13;

thread_local! {
    /// The memory of the thread's last compilation. `None` during a compilation and once the thread is ending.
    static WORKSPACE: RefCell<Option<Box<Workspace>>> = const { RefCell::new(None) };
}

/// The type of the machine code's entry. Its arguments are an array of pointers to inputs and outputs, the number of
/// rows, and the number of lines (sets of rows in separate arrays). If the number of lines is not 1, the shift of each
/// pointer from line to line follows the pointers in the array. Returns a number other than 0 if a row failed.
///
/// # Safety
/// The code must be entered as `WIDE-CODE` in `docs/safety.md` says, with arrays that have the rows (rule PORTS there).
#[cfg(target_arch = "x86_64")]
type Entry = LoopEntry;

/// The properties of an input or output that are needed to run the last rows separately.
#[derive(Clone, Copy, Debug)]
struct PortUse {
    /// The size of an element in bytes; 0 for bits.
    element: u8,
    /// True if no rows of the array are read: all rows share an element, or the code does not use the input.
    untouched: bool,
    /// True if rows are not stored in the output, but added to its partial sums.
    sums: bool,
}

/// The most rows in a step (one vector of rows). The bits of a mask for a step fit in a 64-bit word.
const STEP_ROWS: usize = 32;
const _: () = assert!(STEP_ROWS < u64::BITS as usize);

/// The most bytes of an array that a step uses: a 64-bit number per row.
const STEP_BYTES: usize = 8 * STEP_ROWS;

/// The most inputs and outputs for which running the last rows allocates no memory.
const FEW_PORTS: usize = 32;

/// The most inputs and outputs, including addresses to prefetch, for which a call of a prefetching loop allocates no
/// memory.
const FEW_FETCHING: usize = 16;

/// The bytes of an array that one step of a loop uses.
#[repr(C, align(64))]
struct ArrayStep([u8; STEP_BYTES]);

/// A tape (a straight-line program) compiled to a loop over many rows. The machine code is freed with this value.
#[derive(Debug)]
pub struct WideLoop {
    pages: Arc<CodePages>,
    /// The variant of the code with non-temporal stores and prefetches, made at its first use. It contains `None` if
    /// its memory could not be allocated.
    streaming: OnceLock<Option<Arc<CodePages>>>,
    /// The bytes, with their positions, in which that variant differs from `pages`.
    changes: Box<[(u32, u8)]>,
    entry: usize,
    instructions: usize,
    /// The number of rows in a call of the code must be a multiple of this number. If `plays_rest` is set, any number
    /// from this one on is allowed.
    rows: usize,
    /// The number of rows in a vector.
    lanes: usize,
    plugs: Vec<PortUse>,
    inputs: usize,
    /// True if an input or output that the code uses is an array of bits.
    has_bits: bool,
    /// True if an array has bits or partial sums. The code must then run each row once, and must begin at a multiple of
    /// a step's rows.
    is_ordered: bool,
    /// The divisors that the code needs together with their inverses. Pointers to both follow the pointers to inputs
    /// and outputs.
    divisors: Box<[Divisor]>,
    /// The number of addresses from which the code prefetches. They follow all other pointers.
    fetches: usize,
    /// True if one call of the code can run several lines (sets of rows in separate arrays).
    lines: bool,
    /// True if the code also runs the rows after the last whole step, provided that there is at least one whole step.
    plays_rest: bool,
    /// The variant of the loop that prefetches from addresses of its caller; `None` if no output is summed.
    fetching: Option<Box<WideLoop>>,
}

/// Compiles a tape to a loop over many rows for the instruction set `isa`. `inputs` has the memory layout of each input. `outputs` has the layouts of
/// the first outputs; the remaining outputs have one element per row. An instruction is left out if no output and no fault needs it.
///
/// # Errors
/// If the machine lacks the instruction set, if the tape has an instruction that no loop can execute, if the memory layouts
/// do not fit the tape, if a limit is exceeded, or if memory for the code cannot be allocated.
pub fn compile(tape: &Tape, inputs: &[Port], outputs: &[Port], isa: Isa, limits: &Limits) -> Result<WideLoop, Error> {
    if !isa.is_supported() {
        return Err(Reason::Unsupported.into());
    }
    if !Port::fit(inputs, outputs, tape) {
        return Err(Reason::Ports(tape.inputs().len()).into());
    }
    let kept = WORKSPACE.try_with(RefCell::take).unwrap_or_default();
    let mut workspace = kept.unwrap_or_default();
    let mut publish = |fetches| publish(&mut workspace, tape, [inputs, outputs], isa, limits, fetches);
    let made = publish(false).and_then(|made| {
        let fetching = if outputs.contains(&Port::Chains) { Some(Box::new(publish(true)?)) } else { None };
        Ok(WideLoop { fetching, ..made })
    });
    if workspace.capacity() <= MOST_KEPT {
        // Fails only while the thread is ending.
        let _ = WORKSPACE.try_with(|place| place.replace(Some(workspace)));
    }
    Ok(made?)
}

/// Compiles one variant of a loop, with or without prefetches, and makes its code executable.
fn publish(
    workspace: &mut Workspace,
    tape: &Tape,
    [inputs, outputs]: [&[Port]; 2],
    isa: Isa,
    limits: &Limits,
    fetches: bool,
) -> Result<WideLoop, Reason> {
    let made = workspace.make(tape, [inputs, outputs], isa, limits, fetches)?;
    let pages = published(made.code)?;
    let (entry, instructions) = (made.entry, made.instructions);
    let (rows, lanes, changes) = (made.rows as usize, made.lanes as usize, made.changes.into());
    let divisors = made.divisors.into();
    let (fetches, lines, plays_rest) = (made.fetches, made.lines, made.plays_rest);
    let mut plugs = Vec::with_capacity(inputs.len() + tape.outputs().len());
    plugs.extend(tape.inputs().zip(inputs).map(|((at, ty), port)| {
        let untouched = *port == Port::Shared || !workspace.is_played(at);
        PortUse { element: element(ty), untouched, sums: false }
    }));
    let ports = outputs.iter().copied().chain(std::iter::repeat(Port::Rows));
    plugs.extend(tape.outputs().iter().zip(ports).map(|(output, port)| {
        let ty = match output {
            Output::Number(val) => tape.ty(*val),
            Output::Mask(_) => MachineType::Flag,
        };
        PortUse { element: element(ty), untouched: false, sums: port == Port::Chains }
    }));
    let streaming = OnceLock::new();
    let inputs = inputs.len();
    debug_assert!(rows.is_power_of_two(), "the rows of a step must be a power of two");
    let has_bits = plugs.iter().any(|plug| plug.element == 0 && !plug.untouched);
    let is_ordered = has_bits || plugs.iter().any(|plug| plug.sums);
    Ok(WideLoop {
        pages,
        streaming,
        changes,
        entry,
        instructions,
        rows,
        lanes,
        plugs,
        inputs,
        has_bits,
        is_ordered,
        divisors,
        fetches,
        lines,
        plays_rest,
        fetching: None,
    })
}

/// Copies code into executable memory.
fn published(code: &[u8]) -> Result<Arc<CodePages>, Reason> {
    let mut memory = CodeMemory::allocate(code.len())?;
    memory.write(code);
    Ok(memory.publish()?)
}

impl WideLoop {
    /// The machine instructions of the loop, without the constants that follow them.
    #[must_use]
    pub fn code(&self) -> &[u8] {
        &self.pages.bytes()[..self.instructions]
    }

    /// Returns the variant of the code with non-temporal stores; `None` if there is no memory for it.
    fn streaming(&self) -> Option<&CodePages> {
        let streaming = self.streaming.get_or_init(|| {
            let mut code = self.pages.bytes().to_vec();
            self.changes.iter().for_each(|(at, byte)| code[*at as usize] = *byte);
            published(&code).ok()
        });
        streaming.as_deref()
    }

    /// The index of the first row from which on the vectors of all outputs are aligned, as non-temporal stores require; `None` if there is no such
    /// row. `ports` has the arrays of the inputs, then of the outputs.
    pub(crate) fn head(&self, ports: &[*mut u8]) -> Option<usize> {
        let outputs = || self.plugs.iter().zip(ports).skip(self.inputs).filter(|(plug, _)| plug.element > 0);
        let is_aligned = |head: usize| {
            outputs().all(|(plug, port)| {
                let element = usize::from(plug.element);
                // A vector's bytes are a power of two.
                (port.addr() + head * element) & (self.lanes * element - 1) == 0
            })
        };
        (0..self.lanes).step_by(if self.has_bits { 8 } else { 1 }).find(|head| is_aligned(*head))
    }

    /// Returns true if the code can run `rows` rows by itself, without `tail`.
    #[inline(always)]
    fn plays(&self, rows: usize) -> bool {
        rows >= self.rows && (self.plays_rest || rows & (self.rows - 1) == 0)
    }

    /// Runs the code on `rows` rows, a number that it [can run](WideLoop::plays). Returns true if a row failed.
    ///
    /// # Safety
    /// The arrays must have `rows` rows (rule PORTS in `docs/safety.md`). The code must be this loop's. If it is the
    /// variant with non-temporal stores, the vectors of outputs must be aligned.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn enter(&self, code: &CodePages, ports: &[*mut u8], rows: usize, ahead: &[usize]) -> bool {
        debug_assert!(self.plays(rows), "{rows} rows");
        if self.divisors.is_empty() && self.fetches == 0 {
            // SAFETY: PORTS, promised by the caller; CODE-ALIVE: the pages live as long as self.
            return unsafe { self.entry_of(code)(ports.as_ptr(), rows, 1) != 0 };
        }
        // SAFETY: PORTS, promised by the caller.
        unsafe { self.enter_with_more(code, ports, rows, ahead) }
    }

    /// The function at the entry of this loop's code.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    fn entry_of(&self, code: &CodePages) -> Entry {
        // SAFETY: WIDE-CODE: the code was compiled with this signature, and there it begins.
        unsafe { std::mem::transmute::<*const u8, Entry>(code.as_ptr().wrapping_add(self.entry)) }
    }

    /// Runs the code with additional pointers after those to inputs and outputs: to divisors and their inverses, and to
    /// addresses to prefetch.
    ///
    /// # Safety
    /// The arrays must have `rows` rows, as for `enter` (rule PORTS in `docs/safety.md`).
    #[cfg(target_arch = "x86_64")]
    unsafe fn enter_with_more(&self, code: &CodePages, ports: &[*mut u8], rows: usize, ahead: &[usize]) -> bool {
        let entry = self.entry_of(code);
        let address =
            |at: usize| std::ptr::without_provenance_mut(ahead.get(at % ahead.len().max(1)).copied().unwrap_or(0));
        let mut few = [std::ptr::null_mut(); FEW_FETCHING];
        let tape = self.plugs.len();
        if let Some(all) = few.get_mut(..tape + self.fetches).filter(|_| self.divisors.is_empty()) {
            all[..tape].copy_from_slice(&ports[..tape]);
            all[tape..].iter_mut().enumerate().for_each(|(at, port)| *port = address(at));
            // SAFETY: PORTS, promised by the caller; CODE-ALIVE: the pages live as long as self.
            return unsafe { entry(all.as_ptr(), rows, 1) != 0 };
        }
        let mut parts: SmallVec<[Parts; 4]> = SmallVec::with_capacity(self.divisors.len());
        for divisor in &self.divisors {
            let mut bits = 0_u64;
            // SAFETY: PORTS, promised by the caller: there is the one number of so many bytes, the first of a word's.
            unsafe {
                let from = ports[divisor.port as usize];
                from.copy_to_nonoverlapping((&raw mut bits).cast(), usize::from(divisor.element));
            }
            parts.push(divisor.parts(bits));
        }
        let mut all: SmallVec<[*mut u8; 32]> = SmallVec::from_slice(&ports[..self.plugs.len()]);
        all.extend(parts.iter_mut().flatten().map(|part| (&raw mut *part).cast()));
        // Prefetching reads nothing, so these addresses may be unmapped.
        all.extend((0..self.fetches).map(address));
        // SAFETY: PORTS, promised by the caller, and for each divisor its parts; CODE-ALIVE: the pages live as long as self.
        unsafe { entry(all.as_ptr(), rows, 1) != 0 }
    }

    /// Runs the rows of `count` lines (sets of rows in separate arrays). `None` if the code cannot run several lines in
    /// one call, or cannot run `rows` rows by itself.
    ///
    /// # Safety
    /// The arrays of each line must have its rows (rule PORTS in `docs/safety.md`).
    #[cfg(target_arch = "x86_64")]
    unsafe fn enter_lines(
        &self,
        ports: &[*mut u8],
        shifts: &[isize],
        [rows, count]: [usize; 2],
        ahead: &[(usize, isize)],
    ) -> Option<bool> {
        let tape = self.plugs.len();
        if !self.lines || !self.plays(rows) || count == 0 || ports.len() != tape || shifts.len() != tape {
            return None;
        }
        // All ports, followed by their shifts.
        let mut all: SmallVec<[*mut u8; 2 * FEW_FETCHING]> = SmallVec::from_slice(ports);
        let fetched = |at: usize| ahead.get(at % ahead.len().max(1)).copied().unwrap_or_default();
        let number = |number: usize| std::ptr::without_provenance_mut(number);
        all.extend((0..self.fetches).map(|at| number(fetched(at).0)));
        all.extend(shifts.iter().map(|shift| number(shift.cast_unsigned())));
        all.extend((0..self.fetches).map(|at| number(fetched(at).1.cast_unsigned())));
        // SAFETY: PORTS, promised by the caller; CODE-ALIVE: the pages live as long as self. Of what is fetched nothing is read.
        Some(unsafe { self.entry_of(&self.pages)(all.as_ptr(), rows, count) != 0 })
    }

    /// Returns `None`, because on this architecture there is no code.
    ///
    /// # Safety
    /// The arrays of each line must have its rows (rule PORTS in `docs/safety.md`).
    #[cfg(not(target_arch = "x86_64"))]
    unsafe fn enter_lines(&self, _: &[*mut u8], _: &[isize], _: [usize; 2], _: &[(usize, isize)]) -> Option<bool> {
        None
    }

    /// Is never called, because on this architecture no loop can be compiled.
    ///
    /// # Safety
    /// The arrays must have `rows` rows, a multiple of a step's rows (rule PORTS in `docs/safety.md`).
    #[cfg(not(target_arch = "x86_64"))]
    unsafe fn enter(&self, _: &CodePages, _: &[*mut u8], _: usize, _: &[usize]) -> bool {
        debug_assert!(false, "a loop was compiled, with its entry at {}", self.entry);
        true
    }

    /// Runs the rows after the last whole step, as one step on copies in which the last row is repeated. The repeated
    /// rows give what the last row gives, so they fail only if it does.
    ///
    /// # Safety
    /// PORTS: from `first` on, a multiple of a step's rows, there are `rows` rows, fewer than a step has.
    #[inline(never)]
    unsafe fn tail(&self, ports: &[*mut u8], first: usize, rows: usize) -> bool {
        let mut few = [const { MaybeUninit::uninit() }; FEW_PORTS];
        let mut many = Vec::new();
        let parts: &mut [MaybeUninit<ArrayStep>] = match few.get_mut(..self.plugs.len()) {
            Some(parts) => parts,
            None => {
                many.resize_with(self.plugs.len(), MaybeUninit::uninit);
                &mut many
            }
        };
        let mut copies: SmallVec<[*mut u8; FEW_PORTS]> = SmallVec::with_capacity(self.plugs.len());
        for ((number, plug), part) in self.plugs.iter().enumerate().zip(&mut *parts) {
            if plug.untouched {
                copies.push(ports[number]);
                continue;
            }
            let part = part.as_mut_ptr().cast::<u8>();
            let (start, size) = plug.bytes(first, rows);
            // SAFETY: PORTS, promised by the caller: so much belongs to the rows; a part has room for a step.
            unsafe {
                if number < self.inputs {
                    plug.copy_repeating(ports[number].add(start), rows, part, self.rows);
                } else if plug.sums {
                    // The sums of the repeated rows are not copied back.
                    part.copy_from_nonoverlapping(ports[number].add(start), size);
                }
            }
            copies.push(part);
        }
        // SAFETY: PORTS: the copies are of a step's rows, and each of a port alone.
        let failed = unsafe { self.enter(&self.pages, &copies, self.rows, &[]) };
        for (number, plug) in self.plugs.iter().enumerate().skip(self.inputs) {
            let (start, size) = plug.bytes(first, rows);
            // SAFETY: PORTS, promised by the caller: so much belongs to the rows; the code wrote a step's.
            unsafe {
                let to = ports[number].add(start);
                to.copy_from_nonoverlapping(copies[number], size);
                if plug.element == 0 && !rows.is_multiple_of(8) {
                    *to.add(size - 1) &= (1 << (rows % 8)) - 1;
                }
            }
        }
        failed
    }
}

impl PortUse {
    /// Returns the offset in bytes of row `first` in an array, and the size in bytes of `rows` rows.
    fn bytes(self, first: usize, rows: usize) -> (usize, usize) {
        match usize::from(self.element) {
            0 => (first / 8, rows.div_ceil(8)),
            size if self.sums => (chain_of(first) * size, rows * size),
            size => (first * size, rows * size),
        }
    }

    /// Copies `rows` rows, and repeats the last of them until there are `step` rows.
    ///
    /// # Safety
    /// PORTS: there are `rows` rows, at least one and fewer than a step has. There is room for a step.
    unsafe fn copy_repeating(self, from: *const u8, rows: usize, to: *mut u8, step: usize) {
        // SAFETY: PORTS, promised by the caller.
        unsafe {
            match usize::from(self.element) {
                0 => {
                    let byte = |bits: u64, at: usize| bits | u64::from(from.add(at).read()) << (8 * at);
                    let bits = (0..rows.div_ceil(8)).fold(0, byte);
                    let behind = u64::MAX << rows;
                    let repeated = if bits >> (rows - 1) & 1 == 1 { bits | behind } else { bits & !behind };
                    to.cast::<u64>().write(repeated);
                }
                4 => copy_elements::<4>(from, rows, to, step),
                _ => copy_elements::<8>(from, rows, to, step),
            }
        }
    }
}

/// Copies elements of `SIZE` bytes, and repeats the last of them until there are `step` elements. They are few, so they
/// are copied one by one.
///
/// # Safety
/// PORTS: there are `rows` rows, at least one, and room for a step.
unsafe fn copy_elements<const SIZE: usize>(from: *const u8, rows: usize, to: *mut u8, step: usize) {
    let (from, to) = (from.cast::<[u8; SIZE]>(), to.cast::<[u8; SIZE]>());
    for row in 0..step {
        // SAFETY: PORTS, promised by the caller.
        unsafe { to.add(row).write(from.add(row.min(rows - 1)).read()) };
    }
}

impl WideLoop {
    /// Runs all rows: `code` runs the whole steps, and the rows after them are run separately. Returns true if a row
    /// failed.
    ///
    /// # Safety
    /// The arrays must have `rows` rows (rule PORTS in `docs/safety.md`). If `code` is the variant with non-temporal
    /// stores, the vectors of outputs must be aligned.
    #[inline(always)]
    unsafe fn play_by(&self, code: &CodePages, ports: &[*mut u8], rows: usize, ahead: &[usize]) -> bool {
        let left = if self.plays(rows) { 0 } else { rows & (self.rows - 1) };
        let whole = rows - left;
        let mut failed = false;
        if whole > 0 {
            // SAFETY: PORTS, promised by the caller.
            failed = unsafe { self.enter(code, ports, whole, ahead) };
        }
        if left > 0 {
            // SAFETY: PORTS, promised by the caller: these rows are left.
            failed |= unsafe { if whole > 0 { self.behind(ports, rows) } else { self.tail(ports, whole, left) } };
        }
        failed
    }

    /// Runs all rows, and clears the bits of outputs after the last row, up to whole words.
    ///
    /// # Safety
    /// The arrays must have `rows` rows (rule PORTS in `docs/safety.md`).
    #[inline(always)]
    unsafe fn play_whole_words(&self, ports: &[*mut u8], rows: usize, ahead: &[usize]) -> bool {
        // SAFETY: PORTS, promised by the caller.
        unsafe {
            let failed = self.play_by(&self.pages, ports, rows, ahead);
            if self.has_bits {
                self.fill_words(ports, rows);
            }
            failed
        }
    }

    /// Runs the rows after the last whole step. If rows may be computed twice (no output is an input, and no array has
    /// bits or partial sums), this is one step on the last rows of all. Otherwise it is `tail`, on copies of the rows.
    ///
    /// # Safety
    /// PORTS: for `rows` rows, more than a step has.
    #[inline(never)]
    unsafe fn behind(&self, ports: &[*mut u8], rows: usize) -> bool {
        let (inputs, outputs) = ports[..self.plugs.len()].split_at(self.inputs);
        if self.is_ordered || self.plugs.len() > FEW_PORTS || outputs.iter().any(|output| inputs.contains(output)) {
            let left = rows & (self.rows - 1);
            // SAFETY: PORTS, promised by the caller.
            return unsafe { self.tail(ports, rows - left, left) };
        }
        let mut last = [std::ptr::null_mut(); FEW_PORTS];
        for ((last, port), plug) in last.iter_mut().zip(ports).zip(&self.plugs) {
            *last = if plug.untouched { *port } else { port.wrapping_add(plug.bytes(rows - self.rows, 0).0) };
        }
        // SAFETY: PORTS, promised by the caller, for the last rows; rows that were played before give the same again.
        unsafe { self.enter(&self.pages, &last, self.rows, &[]) }
    }

    /// Clears the bits of outputs after the last row, up to whole words.
    ///
    /// # Safety
    /// The arrays must have `rows` rows (rule PORTS in `docs/safety.md`).
    unsafe fn fill_words(&self, ports: &[*mut u8], rows: usize) {
        let (bytes, words) = (rows.div_ceil(8), 8 * rows.div_ceil(64));
        for (number, plug) in self.plugs.iter().enumerate().skip(self.inputs) {
            if plug.element == 0 && bytes < words {
                // SAFETY: PORTS, promised by the caller: outputs of bits have whole words.
                unsafe { ports[number].add(bytes).write_bytes(0, words - bytes) };
            }
        }
    }
}

// SAFETY: PORTS: the code reads and writes the rows that it is entered with, which are whole steps unless it has ends; the tail
// handles the rows that are left.
unsafe impl TapeLoop for WideLoop {
    // SAFETY: PORTS, promised by the caller.
    unsafe fn play(&self, ports: &[*mut u8], rows: usize, _: &mut Context) -> bool {
        // SAFETY: PORTS, promised by the caller.
        unsafe { self.play_whole_words(ports, rows, &[]) }
    }

    // SAFETY: PORTS, promised by the caller.
    unsafe fn play_fetching(&self, ports: &[*mut u8], rows: usize, ahead: &[usize], _: &mut Context) -> bool {
        let played = self.fetching.as_deref().filter(|_| !ahead.is_empty()).unwrap_or(self);
        // SAFETY: PORTS, promised by the caller.
        unsafe { played.play_whole_words(ports, rows, ahead) }
    }

    // SAFETY: PORTS, promised by the caller.
    unsafe fn play_lines(
        &self,
        ports: &[*mut u8],
        shifts: &[isize],
        counts: [usize; 2],
        ahead: &[(usize, isize)],
    ) -> Option<bool> {
        let played = self.fetching.as_deref().filter(|_| !ahead.is_empty()).unwrap_or(self);
        // SAFETY: PORTS, promised by the caller.
        unsafe { played.enter_lines(ports, shifts, counts, ahead) }
    }

    // SAFETY: PORTS, promised by the caller.
    unsafe fn play_past_caches(&self, ports: &[*mut u8], rows: usize, context: &mut Context) -> bool {
        // The rows after a head would not begin with the first of the sums.
        let sums = self.plugs.iter().any(|plug| plug.sums);
        let head = self.head(ports).filter(|head| *head < rows && !sums);
        let (Some(head), Some(code)) = (head, self.streaming()) else {
            // SAFETY: PORTS, promised by the caller.
            return unsafe { self.play(ports, rows, context) };
        };
        let mut behind: SmallVec<[*mut u8; 32]> = SmallVec::from_slice(ports);
        let mut failed = false;
        if head > 0 {
            // SAFETY: PORTS, promised by the caller: there are more rows than that.
            failed = unsafe { self.tail(ports, 0, head) };
            for (port, plug) in behind.iter_mut().zip(&self.plugs).filter(|(_, plug)| !plug.untouched) {
                *port = port.wrapping_add(plug.bytes(head, 0).0);
            }
        }
        // SAFETY: PORTS, promised by the caller, for the rows that are left; the head ends where vectors are aligned.
        failed |= unsafe { self.play_by(code, &behind, rows - head, &[]) };
        // SAFETY: PORTS, promised by the caller.
        unsafe { self.fill_words(ports, rows) };
        failed
    }

    #[cfg(target_arch = "x86_64")]
    fn entry(&self, rows: usize) -> Option<LoopEntry> {
        (self.plays(rows) && self.divisors.is_empty() && self.fetches == 0 && !self.has_bits)
            .then(|| self.entry_of(&self.pages))
    }

    fn pages(&self) -> Option<&CodePages> {
        Some(&self.pages)
    }

    fn code_bytes(&self) -> usize {
        let streaming = self.streaming.get().and_then(Option::as_deref);
        let fetching = self.fetching.as_ref().map_or(0, |fetching| fetching.code_bytes());
        self.pages.size() + streaming.map_or(0, CodePages::size) + fetching
    }
}
