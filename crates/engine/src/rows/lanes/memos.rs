//! Memos: results that depend only on a value of a dictionary are computed when a row first needs that value, and copied to all rows that have the
//! value's dictionary key. Each thread keeps results for the length of a run, in tables with one entry per computed value.

use crate::rows::lanes::LaneFunction;
use crate::rows::lanes::gather::{LINE, Mask, PrefetchColumn, ResultTable, gather};
use crate::rows::lanes::kernels::element;
use cembra_plan::Plan;
use cembra_runtime::{
    Arena, BatchFunction, Bytes, Column, ColumnForm, Context, DataForm, Dictionary, DictionaryIndices, MachineType,
    PresenceForm, QType, STRIP_ROWS, Scratch, prefetch,
};
use cembra_tape::{ColumnId, LaneProgram, MemoSegment, Origin, Port, TapeLoop, ValuePart};
use smallvec::SmallVec;

/// A chunk of dictionary values may take at most a row's limits (on work and on bytes of strings) divided by this
/// number. A chunk that takes more is computed again value by value, so that the consumption of each value is known.
const PART_OF_LIMIT: u64 = 4;

/// The rows for which a memo (results computed once per dictionary value) writes results: their columns, their dictionary keys, and the start address
/// of each column of the vectorised program.
#[derive(Clone, Copy, Debug)]
pub(super) struct MemoStrip<'s> {
    pub(super) columns: &'s [Column],
    pub(super) numbers: &'s DictionaryIndices<'s>,
    pub(super) program: &'s LaneProgram,
    pub(super) addresses: &'s [*mut u8],
    pub(super) rows: usize,
}

/// A memo: the part of a vectorised program that is computed once per dictionary value, with its code.
#[derive(Debug)]
pub(super) struct MemoFunction {
    pub(super) input: u32,
    rows: Option<ColumnId>,
    function: LaneFunction,
    /// The number of inputs of the model.
    inputs: usize,
    /// The bytes of a value of the dictionary.
    cell: usize,
    results: Vec<ResultLayout>,
    /// The parts of results (presence, number or address) that are stored in tables, each as a tuple: the index of the
    /// result, the part, its type, and the column, with an element per row, that the part is copied to.
    parts: Vec<(usize, ValuePart, MachineType, ColumnId)>,
}

/// The memory layout of a memo's result, for a chunk of dictionary values.
#[derive(Debug)]
struct ResultLayout {
    form: ColumnForm,
    /// The bytes per value; 0 for bits. Bits follow the values, in whole words.
    size: usize,
}

impl Default for ResultLayout {
    fn default() -> Self {
        ResultLayout { form: ColumnForm { data: DataForm::Nothing, ..ColumnForm::DENSE }, size: 0 }
    }
}

/// The results that one thread has computed for the values of a dictionary. Results are stored in the order in which they were computed, from index 1
/// on.
#[derive(Debug)]
pub(in crate::rows) struct Memo {
    /// The index of the results of each dictionary key in the tables; 0 while these results are not computed. The last
    /// entry is for missing values.
    places: Vec<u32>,
    /// The dictionary key of each computed result, by the index of the result; index 0 is unused.
    pub(in crate::rows) numbers: Vec<u32>,
    /// The tables of results: one for each stored part of a result, such as its presence. An entry is a number or a truth value, and its index is
    /// that of the result. Entry 0 is zero.
    pub(in crate::rows) tables: Vec<Vec<u64>>,
    /// The indices of results whose computation failed, ascending.
    failing: Vec<u32>,
    /// A second table for each stored part, by dictionary key; after the last key it has an entry for missing values.
    /// Empty for memos (results per dictionary value) that only some rows need, for results with strings, and for large
    /// dictionaries.
    by_number: Vec<ResultTable>,
    /// The number of dictionary values whose results are computed, and whether the results for a missing value are
    /// computed.
    known: (u32, bool),
    /// For each row of the strip (the block of rows), the index of its results in the tables; 0 for rows that need
    /// none.
    of_rows: Vec<u32>,
    /// The strings of results.
    texts: Arena,
    /// The number of times in a run that all results were dropped to free their memory.
    pub(in crate::rows) forgotten: u32,
    /// The most work on strings that a chunk of values took in this run. `bytes` is the most memory that its strings
    /// took.
    work: u64,
    bytes: usize,
    scratch: Scratch,
    context: Context,
    /// Memory for a chunk: values, bits of presence, then the results.
    cells: Vec<u64>,
}

/// The location of an output's string in the tables of a memo (results computed once per dictionary value), for an output that depends on one
/// dictionary alone.
#[derive(Debug)]
pub(super) struct StringLocation {
    /// The index of the memo that computes the string.
    pub(super) memo: usize,
    /// The table with the presence (`None` if the output is never missing), and those with the address and the length.
    presence: Option<usize>,
    pointer: usize,
    length: usize,
}

/// Returns, for each of `outputs` outputs, the location of its string in the tables of a memo (results computed once
/// per dictionary value). `None` unless all parts of the output (presence, address, length) are parts of one result of
/// a memo that all rows need, and nothing else in the program reads the string.
pub(super) fn string_locations(
    program: &LaneProgram,
    memos: &[MemoFunction],
    outputs: usize,
) -> Vec<Option<StringLocation>> {
    if memos.is_empty() {
        return (0..outputs).map(|_| None).collect();
    }
    // For each column: whether a segment reads it, and the memo and table that it comes from.
    let mut is_read = vec![false; program.columns.len()];
    for segment in &program.segments {
        segment.for_each_read(|column| is_read[column.index()] = true);
    }
    let mut tables: Vec<Option<(usize, usize)>> = vec![None; program.columns.len()];
    for (memo, function) in memos.iter().enumerate() {
        for (table, (.., column)) in function.parts.iter().enumerate() {
            tables[column.index()].get_or_insert((memo, table));
        }
    }
    let columns = program.outputs();
    let of_output = |output: usize| {
        let column = |part: ValuePart| columns.get(output, part);
        let (pointer, length) = (column(ValuePart::Pointer)?, column(ValuePart::Length)?);
        if is_read[pointer.index()] || is_read[length.index()] {
            return None;
        }
        let (memo, pointer) = tables[pointer.index()]?;
        let function = &memos[memo];
        let table = |column: ColumnId| tables[column.index()].filter(|(of, _)| *of == memo).map(|(_, table)| table);
        let length = table(length)?;
        let presence = match column(ValuePart::Presence) {
            Some(column) => Some(table(column)?),
            None => None,
        };
        let result = |table: usize| function.parts[table].0;
        let is_one = result(length) == result(pointer) && presence.is_none_or(|at| result(at) == result(pointer));
        (is_one && function.rows.is_none()).then_some(StringLocation { memo, presence, pointer, length })
    };
    (0..outputs).map(of_output).collect()
}

/// The memos (results computed once per dictionary value) of one thread, in the order of the program.
#[derive(Debug)]
pub(in crate::rows) struct Memos(pub(in crate::rows) Vec<Memo>);

impl MemoFunction {
    pub(super) fn new(
        plan: &Plan,
        memo: &MemoSegment,
        loops: &mut dyn Iterator<Item = Box<dyn TapeLoop>>,
        forms: &[ColumnForm],
    ) -> MemoFunction {
        let qtype = &plan.value(plan.inputs()[memo.input as usize].value).qtype;
        let cell = qtype.scalar().map_or(0, |scalar| QType::Scalar(scalar).layout().size as usize);
        let mut results: Vec<ResultLayout> = Vec::new();
        for column in &memo.program.columns {
            let Origin::Output { index, part } = column.origin else { continue };
            if results.len() <= index as usize {
                results.resize_with(index as usize + 1, ResultLayout::default);
            }
            let ResultLayout { form, size } = &mut results[index as usize];
            match part {
                ValuePart::Presence => form.presence = PresenceForm::Bits,
                ValuePart::Flag => (form.data, *size) = (DataForm::Bits, 0),
                ValuePart::Number => (form.data, *size) = (DataForm::Values, column.ty.size()),
                ValuePart::Pointer | ValuePart::Length => {
                    (form.data, *size) = (DataForm::Values, size_of::<Bytes<'_>>());
                }
            }
        }
        let inside = forms[..plan.inputs().len()].iter().map(|form| ColumnForm { is_dictionary: false, ..*form });
        let forms: Vec<ColumnForm> = inside.chain(results.iter().map(|cells| cells.form)).collect();
        let part = |result: ColumnId| match memo.program.column(result).origin {
            Origin::Output { index, part } => (index as usize, part, memo.program.column(result).ty),
            // Results are outputs.
            _ => (0, ValuePart::Presence, MachineType::Flag),
        };
        let parts = memo.stores.iter().map(|store| {
            let (index, part, ty) = part(store.result);
            (index, part, ty, store.column)
        });
        MemoFunction {
            input: memo.input,
            rows: memo.rows,
            function: LaneFunction::with(plan, memo.program.clone(), loops, &forms),
            inputs: plan.inputs().len(),
            cell,
            results,
            parts: parts.collect(),
        }
    }

    /// Makes the empty tables in which one thread stores the results of this memo (the part of a program that is
    /// computed once per dictionary value).
    fn memo(&self, context: &Context) -> Memo {
        let most = self.chunk();
        let results: usize = self.results.iter().map(|cells| cells.words(most)).sum();
        Memo {
            places: Vec::new(),
            numbers: vec![0],
            tables: vec![vec![0]; self.parts.len()],
            failing: Vec::new(),
            by_number: Vec::new(),
            known: (0, false),
            of_rows: Vec::new(),
            texts: Arena::new(usize::MAX),
            forgotten: 0,
            work: 0,
            bytes: 0,
            scratch: Scratch::new(&self.function.scratch()),
            context: context.like(),
            cells: vec![0; words(most * self.cell) + most.div_ceil(64) + results],
        }
    }

    /// Makes, for each stored part of the results, a table by dictionary key. The list is empty unless all rows need
    /// the results, no part is a string, and the tables are small enough.
    fn by_number(&self, values: usize) -> Vec<ResultTable> {
        let is_string = |part: &ValuePart| matches!(part, ValuePart::Pointer | ValuePart::Length);
        if self.rows.is_some() || self.parts.iter().any(|(_, part, ..)| is_string(part)) {
            return Vec::new();
        }
        let tables = self.parts.iter().map(|(_, _, ty, _)| ResultTable::new(*ty, values));
        tables.collect::<Option<Vec<_>>>().unwrap_or_default()
    }

    /// The most dictionary values that are computed at once.
    fn chunk(&self) -> usize {
        BatchFunction::rows(&self.function).min(STRIP_ROWS)
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.function.memory_bytes()
    }
}

impl Memos {
    pub(super) fn of(functions: &[MemoFunction], context: &Context) -> Memos {
        Memos(functions.iter().map(|function| function.memo(context)).collect())
    }

    /// Begins a run: drops all results, because the run may have other dictionaries.
    pub(super) fn begin(&mut self, context: &Context) {
        for memo in &mut self.0 {
            memo.forget();
            (memo.forgotten, memo.work, memo.bytes) = (0, 0, 0);
            memo.context.set_cancellation(context.cancellation());
        }
    }

    /// Limits memory: if the strings of a memo (results computed once per dictionary value) together take more bytes
    /// than the limit for one row, drops all results of that memo.
    pub(super) fn drop_large(&mut self) {
        for memo in &mut self.0 {
            if memo.texts.used() > memo.context.arena().limit() {
                memo.forget();
                memo.forgotten += 1;
            }
        }
    }

    /// Calls `f` with each result that was computed since the last call of this function: with the dictionary key of the result, and with its string,
    /// or `None` if it is missing. `known` records the results that were already passed to `f`; `known` must be 0 for the first call in a run.
    pub(super) fn results(&self, of: &StringLocation, known: &mut u64, f: &mut dyn FnMut(u32, Option<&[u8]>)) {
        let memo = &self.0[of.memo];
        let first = if *known >> 32 == u64::from(memo.forgotten) { (*known as u32).max(1) } else { 1 };
        for place in first as usize..memo.numbers.len() {
            let is_there = of.presence.is_none_or(|at| memo.tables[at][place] != 0);
            let (address, len) = (memo.tables[of.pointer][place] as usize, memo.tables[of.length][place] as usize);
            // SAFETY: STRING-VIEW: a present string is a view of the memo's texts.
            let string = (is_there && len > 0)
                .then(|| unsafe { std::slice::from_raw_parts(std::ptr::with_exposed_provenance(address), len) });
            f(memo.numbers[place], if is_there { Some(string.unwrap_or_default()) } else { None });
        }
        *known = u64::from(memo.forgotten) << 32 | memo.numbers.len() as u64;
    }

    /// Returns true if computing one dictionary value in each memo (the part of a program that is computed per
    /// dictionary value) stays within the limits on work and string bytes, given the amounts already used in `context`.
    pub(super) fn has_room_for_one(&self, context: &Context) -> bool {
        let work = self.0.iter().map(|memo| memo.work).sum();
        context.has_room(work, self.0.iter().map(|memo| memo.bytes).sum())
    }
}

impl Memo {
    /// Drops all results. The time is proportional to the number of computed values.
    fn forget(&mut self) {
        for number in self.numbers.drain(1..) {
            if let Some(place) = self.places.get_mut(number as usize) {
                *place = 0;
            }
            self.by_number.iter_mut().for_each(|results| results.note(number, None));
        }
        self.tables.iter_mut().for_each(|table| table.truncate(1));
        self.known = (0, false);
        self.failing.clear();
        self.texts.reset();
    }

    /// Computes the results that the rows need and that are not known yet, and copies results to the columns of all rows that need them. `fails` is
    /// called for each row whose value fails, with the row's index in the strip (the block of rows). Meanwhile the columns `ahead` are prefetched.
    ///
    /// # Safety
    /// COLUMNS: columns, dictionary keys and addresses are those of one strip, and begin at the same row. This memo was made for `function`. There is
    /// an address for each column of the program.
    pub(super) unsafe fn play(
        &mut self,
        function: &MemoFunction,
        strip: MemoStrip<'_>,
        ahead: &[PrefetchColumn],
        mut fails: impl FnMut(usize),
    ) {
        let MemoStrip { columns, numbers, program, addresses, rows } = strip;
        let values = numbers.dictionary.values() as usize + 1;
        if self.places.len() < values {
            self.forget();
            // New memory is zero; pages that are not used are not touched.
            self.places = vec![0; values];
            self.by_number = function.by_number(values);
        }
        if self.of_rows.len() < rows {
            self.of_rows.resize(rows.next_multiple_of(64), 0);
        }
        // SAFETY: COLUMNS, promised by the caller.
        let of_rows = unsafe { std::slice::from_raw_parts(numbers.of_rows, rows) };
        // If one part of a result is known, all parts are, so only the first is checked.
        let (known, knows_none) = self.known;
        let mut sure = known == numbers.dictionary.values() && (knows_none || numbers.all_present);
        let mut ahead = ahead;
        let mut is_known = !self.by_number.is_empty();
        for ((_, _, ty, column), results) in function.parts.iter().zip(&self.by_number) {
            let to = addresses[column.index()];
            // SAFETY: COLUMNS, promised by the caller: numbers are those of values, or of none.
            is_known = results.len() >= values && unsafe { results.gather(of_rows, *ty, to, sure, ahead) };
            if !is_known {
                break;
            }
            (sure, ahead) = (true, &[]);
        }
        if is_known {
            return;
        }
        let mask = function
            .rows
            .map(|rows| Mask { first: addresses[rows.index()], is_shared: program.column(rows).port == Port::Shared });
        // SAFETY: COLUMNS, promised by the caller: numbers are those of values, or of none.
        if !unsafe { self.look_up(of_rows, mask) } {
            // SAFETY: COLUMNS, promised by the caller.
            unsafe {
                self.compute(function, columns, numbers.dictionary, of_rows, mask);
                self.look_up(of_rows, mask);
            }
        }
        for ((_, _, ty, column), table) in function.parts.iter().zip(&self.tables) {
            let to = addresses[column.index()];
            // Strings that the output takes by key.
            if let Origin::Output { index, part: ValuePart::Pointer | ValuePart::Length } =
                program.column(*column).origin
                && columns[function.inputs + index as usize].data.is_null()
            {
                continue;
            }
            // SAFETY: COLUMNS, promised by the caller; each place is one of the tables.
            unsafe { gather(table, &self.of_rows[..rows], *ty, to) };
        }
        if !self.failing.is_empty() {
            let is_failing = |place: &u32| self.failing.binary_search(place).is_ok();
            let found = self.of_rows[..rows].iter().enumerate().filter(|(_, place)| is_failing(place));
            found.for_each(|(row, _)| fails(row));
        }
    }

    /// Stores for each row in `of_rows` the index of its results in the tables, or 0 if the row does not need results.
    /// Returns false if the results of a row are not computed yet.
    ///
    /// # Safety
    /// COLUMNS: there is a place for each number, and a bit for each row.
    unsafe fn look_up(&mut self, of_rows: &[u32], mask: Option<Mask>) -> bool {
        let Some(mask) = mask else {
            // A place of 0 wraps to a number with the highest bit set. Other places are below it, because there are fewer values.
            let (places, mut unknown) = (&self.places[..], 0);
            // SAFETY: COLUMNS, promised by the caller.
            let mut find = |to: &mut u32, number: u32| unsafe {
                *to = *places.get_unchecked(number as usize);
                unknown |= to.wrapping_sub(1);
            };
            let (to, of_rows) = (self.of_rows[..of_rows.len()].as_chunks_mut::<LINE>(), of_rows.as_chunks::<LINE>());
            for (to, numbers) in to.0.iter_mut().zip(of_rows.0) {
                prefetch(numbers.as_ptr().wrapping_add(STRIP_ROWS));
                to.iter_mut().zip(numbers).for_each(|(to, number)| find(to, *number));
            }
            to.1.iter_mut().zip(of_rows.1).for_each(|(to, number)| find(to, *number));
            return unknown >> 31 == 0;
        };
        let mut all = true;
        self.of_rows[..of_rows.len()].fill(0);
        // SAFETY: COLUMNS, promised by the caller.
        unsafe {
            mask.for_each(of_rows.len(), |row| {
                let place = *self.places.get_unchecked(of_rows[row] as usize);
                self.of_rows[row] = place;
                all &= place != 0;
            });
        }
        all
    }

    /// Computes the results of all dictionary values that rows need and whose results are not computed yet.
    ///
    /// # Safety
    /// COLUMNS: the requirements of `play` must hold.
    unsafe fn compute(
        &mut self,
        function: &MemoFunction,
        columns: &[Column],
        dictionary: &dyn Dictionary,
        of_rows: &[u32],
        mask: Option<Mask>,
    ) {
        let mut wanted: Vec<u32> = Vec::new();
        let first = self.numbers.len();
        let mut want = |row: usize| {
            let place = &mut self.places[of_rows[row] as usize];
            if *place == 0 {
                *place = (first + wanted.len()) as u32;
                wanted.push(of_rows[row]);
            }
        };
        match mask {
            None => (0..of_rows.len()).for_each(want),
            // SAFETY: COLUMNS, promised by the caller.
            Some(mask) => unsafe { mask.for_each(of_rows.len(), &mut want) },
        }
        for chunk in wanted.chunks(function.chunk()) {
            // SAFETY: COLUMNS, promised by the caller.
            unsafe {
                if self.run(function, columns, dictionary, chunk, PART_OF_LIMIT) {
                    self.keep(function, chunk.len());
                } else {
                    for (at, number) in chunk.iter().enumerate() {
                        if self.run(function, columns, dictionary, std::slice::from_ref(number), 1) {
                            self.keep(function, 1);
                        } else {
                            self.failing.push((self.numbers.len() + at) as u32);
                            self.tables.iter_mut().for_each(|table| table.push(0));
                        }
                    }
                }
            }
            self.numbers.extend_from_slice(chunk);
        }
        for place in first..self.numbers.len() {
            if self.failing.binary_search(&(place as u32)).is_ok() {
                continue;
            }
            let number = self.numbers[place];
            for (results, table) in self.by_number.iter_mut().zip(&self.tables) {
                results.note(number, Some(table[place]));
            }
            if number < dictionary.values() { self.known.0 += 1 } else { self.known.1 = true }
        }
    }

    /// Computes the results of a chunk of dictionary values. Returns false if a value fails, or if the chunk takes more
    /// than a row's limits divided by `part`.
    ///
    /// # Safety
    /// COLUMNS: the requirements of `play` must hold; the chunk has at most `MemoFunction::chunk` values.
    unsafe fn run(
        &mut self,
        function: &MemoFunction,
        columns: &[Column],
        dictionary: &dyn Dictionary,
        chunk: &[u32],
        part: u64,
    ) -> bool {
        let most = function.chunk();
        let Memo { cells, scratch, context, .. } = self;
        let data: *mut u8 = cells.as_mut_ptr().cast();
        let presence = cells.as_mut_ptr().wrapping_add(words(most * function.cell));
        let input = Column { data, stride: function.cell.cast_signed(), presence: presence.cast(), presence_stride: 0 };
        for start in (0..chunk.len()).step_by(64) {
            let mut bits = 0;
            for (at, number) in chunk[start..].iter().take(64).enumerate() {
                // SAFETY: COLUMNS: there is a cell for each value of a chunk.
                let is_there = unsafe { dictionary.write(*number, data.add((start + at) * function.cell)) };
                bits |= u64::from(is_there) << at;
            }
            // SAFETY: COLUMNS: there is a bit for each value of a chunk.
            unsafe { presence.add(start / 64).write(bits) };
        }
        let mut inside: SmallVec<[Column; 16]> = columns[..function.inputs].into();
        inside[function.input as usize] = input;
        let mut next = presence.wrapping_add(most.div_ceil(64));
        for cells in &function.results {
            inside.push(cells.column(next, most));
            next = next.wrapping_add(cells.words(most));
        }
        scratch.texts.reset();
        // SAFETY: COLUMNS: columns of the forms that the function was made for, in memory of a chunk.
        unsafe { function.function.run(&inside, &[], chunk.len(), scratch, context) };
        if scratch.failed.any() {
            scratch.failed.drain().for_each(drop);
            return false;
        }
        let (work, bytes) = (context.work_done(), context.arena().used());
        let is_little = context.string_work() / part >= work && context.arena().limit() as u64 / part >= bytes as u64;
        if is_little {
            (self.work, self.bytes) = (self.work.max(work), self.bytes.max(bytes));
        }
        is_little
    }

    /// Appends the results of a chunk of values, which the function has written to `cells`, to the tables.
    ///
    /// # Safety
    /// COLUMNS: `values` values were computed. STRING-VIEW: strings of results are alive.
    unsafe fn keep(&mut self, function: &MemoFunction, values: usize) {
        let most = function.chunk();
        let first = self.cells.as_mut_ptr().wrapping_add(words(most * function.cell) + most.div_ceil(64));
        for ((result, part, ty, _), table) in function.parts.iter().zip(&mut self.tables) {
            let before: usize = function.results[..*result].iter().map(|cells| cells.words(most)).sum();
            let cells = &function.results[*result];
            let column = cells.column(first.wrapping_add(before), most);
            for at in 0..values {
                // SAFETY: COLUMNS and STRING-VIEW, promised by the caller; missing values are not read.
                let bits = unsafe {
                    let is_there = || {
                        cells.form.presence == PresenceForm::All || element(column.presence, MachineType::Flag, at) != 0
                    };
                    match part {
                        ValuePart::Presence => element(column.presence, MachineType::Flag, at),
                        ValuePart::Flag | ValuePart::Number => element(column.data, *ty, at),
                        ValuePart::Pointer | ValuePart::Length if !is_there() => 0,
                        ValuePart::Length => element(column.data, *ty, 2 * at + 1),
                        ValuePart::Pointer => {
                            let bytes = column.data.cast::<Bytes<'_>>().add(at).read_unaligned();
                            let piece = self.texts.allocate(bytes.as_slice().len()).unwrap_or_default();
                            piece.copy_from_slice(bytes.as_slice());
                            piece.as_ptr().expose_provenance() as u64
                        }
                    }
                };
                table.push(bits);
            }
        }
    }
}

impl ResultLayout {
    /// Returns the words of memory for a chunk of `most` values.
    fn words(&self, most: usize) -> usize {
        words(most * self.size) + 2 * most.div_ceil(64)
    }

    /// Returns the column of a chunk of `most` values in `memory`.
    fn column(&self, memory: *mut u64, most: usize) -> Column {
        let presence = memory.wrapping_add(words(most * self.size) + most.div_ceil(64)).cast();
        Column { data: memory.cast(), stride: self.size.cast_signed(), presence, presence_stride: 0 }
    }
}

fn words(bytes: usize) -> usize {
    bytes.div_ceil(8)
}
