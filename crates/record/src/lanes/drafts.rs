//! The segments of a lane program (a plan recorded for many rows at once) while they are recorded. A segment is a tape,
//! or the call of a kernel or a memo. The last segment is the open tape; the earlier segments are complete except for
//! their outputs. When a later segment needs a result of an earlier tape, the earlier tape writes the result to a
//! column (as an output), and the later segment reads the column (as an input).

use cembra_runtime::MachineType;
use cembra_tape::{ColumnId, KernelSegment, LaneColumn, Mask, MemoSegment, Origin, Output, Port, Tape, Val};
use rustc_hash::FxHashMap;

/// The number of instructions after which a tape ends at the next step that allows it. A backend makes one function of
/// each tape, and register allocation takes more than twice as long for twice as many values. Values that later tapes
/// need are stored in columns.
const LONGEST: usize = 2048;

/// The most outputs of the model that one tape writes. The address of each output is needed throughout the loop over
/// rows, and takes a register or a place on the stack.
const MOST_OUTPUTS: usize = 512;

/// A tape that is being recorded, and the columns of its inputs and outputs.
#[derive(Debug, Default)]
pub(super) struct TapeDraft {
    pub(super) tape: Tape,
    pub(super) inputs: Vec<ColumnId>,
    pub(super) outputs: Vec<(Output, ColumnId)>,
}

/// A segment of a lane program (a plan recorded for many rows at once) while it is recorded: a tape, or the call of a kernel
/// or a memo.
#[derive(Debug)]
pub(super) enum Draft {
    Tape(Box<TapeDraft>),
    Kernel(Box<KernelSegment>),
    Memo(Box<MemoSegment>),
}

/// A value on a tape, with the index of the draft (a segment in recording) that contains the tape.
#[derive(Clone, Copy, Debug)]
pub(super) struct TapeRef<T> {
    pub(super) draft: u32,
    pub(super) it: T,
}

/// The segments of a lane program (a plan recorded for many rows at once), while they are recorded.
#[derive(Debug, Default)]
pub(super) struct Drafts {
    /// The completed segments in order. The flag of a segment is true if the segment runs once for all rows, and not
    /// once per row.
    pub(super) done: Vec<(Draft, bool)>,
    /// The tape that is being recorded.
    pub(super) open: TapeDraft,
    pub(super) columns: Vec<LaneColumn>,
    /// The columns that results of earlier tapes are written to. The key is the index of the segment, and the position
    /// of the instruction on its tape.
    given: FxHashMap<(u32, u32), ColumnId>,
    /// The inputs of the open tape that read columns of earlier segments.
    entered: FxHashMap<ColumnId, Output>,
    /// True while the recorder is at steps whose results are the same for all rows.
    pub(super) once: bool,
}

impl Drafts {
    /// The index of the open tape among the segments.
    pub(super) fn current(&self) -> u32 {
        self.done.len() as u32
    }

    /// The tape that is being recorded.
    pub(super) fn tape(&mut self) -> &mut Tape {
        &mut self.open.tape
    }

    /// Pairs `it`, a value on the open tape, with the index of the open tape.
    pub(super) fn on<T>(&self, it: T) -> TapeRef<T> {
        TapeRef { draft: self.current(), it }
    }

    /// Ends the open tape and opens another. Does nothing if the open tape is empty.
    pub(super) fn cut(&mut self) {
        if self.open.tape.instrs().is_empty() {
            return;
        }
        let tape = std::mem::take(&mut self.open);
        self.done.push((Draft::Tape(Box::new(tape)), self.once));
        self.entered.clear();
    }

    /// Returns true if the open tape has reached the limit of instructions or outputs.
    pub(super) fn is_long(&self) -> bool {
        self.open.tape.instrs().len() >= LONGEST || self.is_full(self.current())
    }

    /// Returns true if the tape of the draft with this index has reached the limit of outputs.
    pub(super) fn is_full(&self, draft: u32) -> bool {
        self.draft(draft).outputs.len() >= MOST_OUTPUTS
    }

    /// Ends the open tape and appends `draft`, the call of a kernel or of a memo (the steps that depend on one dictionary
    /// alone).
    pub(super) fn call(&mut self, draft: Draft) {
        self.cut();
        self.done.push((draft, self.once));
    }

    pub(super) fn column(&mut self, ty: MachineType, port: Port, origin: Origin) -> ColumnId {
        self.columns.push(LaneColumn { ty, port, origin });
        ColumnId::from_index(self.columns.len() - 1)
    }

    /// Adds to the program a column of type `ty` for an intermediate value. The column has one element if `once`, else
    /// an element per row.
    pub(super) fn intermediate(&mut self, ty: MachineType, once: bool) -> ColumnId {
        if once {
            self.column(ty, Port::Shared, Origin::Once { offset: 0 })
        } else {
            self.column(ty, Port::Rows, Origin::Scratch { offset: 0 })
        }
    }

    /// Adds an input, which is read from `column`, to the open tape. Returns the input.
    pub(super) fn input(&mut self, column: ColumnId) -> Output {
        self.open.inputs.push(column);
        match self.columns[column.index()].ty {
            MachineType::Flag => Output::Mask(self.open.tape.input_mask()),
            ty => Output::Number(self.open.tape.input(ty)),
        }
    }

    /// Returns the input of the open tape that is read from `column`, a column of an earlier segment. Adds the input if the
    /// tape has no such input yet.
    pub(super) fn enter(&mut self, column: ColumnId) -> Output {
        if let Some(known) = self.entered.get(&column) {
            return *known;
        }
        let entered = self.input(column);
        self.entered.insert(column, entered);
        entered
    }

    /// The draft of a tape, by its number.
    fn draft(&self, number: u32) -> &TapeDraft {
        match self.done.get(number as usize) {
            Some((Draft::Tape(tape), _)) => tape,
            // Values refer only to drafts that are tapes.
            Some((Draft::Kernel(_) | Draft::Memo(_), _)) | None => &self.open,
        }
    }

    /// The column that the value `on` of a tape is read from or written to; `None` if the value has no column yet.
    pub(super) fn known_column(&self, on: TapeRef<Output>) -> Option<ColumnId> {
        let draft = self.draft(on.draft);
        let position = draft.tape.input_at(on.it.index());
        position.map(|at| draft.inputs[at]).or_else(|| self.given.get(&(on.draft, on.it.index() as u32)).copied())
    }

    /// The type of a number on any tape.
    pub(super) fn type_of(&self, val: TapeRef<Val>) -> MachineType {
        self.draft(val.draft).tape.ty(val.it)
    }

    /// Makes the value `on` an output of its tape, written to `column`.
    pub(super) fn output(&mut self, on: TapeRef<Output>, column: ColumnId) {
        let draft = match self.done.get_mut(on.draft as usize) {
            Some((Draft::Tape(tape), _)) => tape,
            _ => &mut self.open,
        };
        draft.outputs.push((on.it, column));
    }

    /// Returns the column that the value `on` of a tape is read from or written to. If there is no such column, makes the
    /// value an output of its tape.
    pub(super) fn column_of(&mut self, on: TapeRef<Output>) -> ColumnId {
        if let Some(known) = self.known_column(on) {
            return known;
        }
        let ty = match on.it {
            Output::Mask(_) => MachineType::Flag,
            Output::Number(val) => self.type_of(TapeRef { draft: on.draft, it: val }),
        };
        let once = self.done.get(on.draft as usize).map_or(self.once, |(_, once)| *once);
        let column = self.intermediate(ty, once);
        self.output(on, column);
        self.given.insert((on.draft, on.it.index() as u32), column);
        column
    }

    /// Returns `mask`, which may be on any tape, as a mask on the open tape. A mask of an earlier tape is read from a
    /// column.
    pub(super) fn mask(&mut self, mask: TapeRef<Mask>) -> Mask {
        if mask.draft == self.current() {
            return mask.it;
        }
        if let Some(known) = self.draft(mask.draft).tape.known(mask.it) {
            return self.open.tape.mconst(known);
        }
        let column = self.column_of(TapeRef { draft: mask.draft, it: Output::Mask(mask.it) });
        match self.enter(column) {
            Output::Mask(mask) => mask,
            // A column of flags is entered as a mask.
            Output::Number(_) => mask.it,
        }
    }

    /// Returns `val`, which may be on any tape, as a number on the open tape. A number of an earlier tape is read from
    /// a column.
    pub(super) fn number(&mut self, val: TapeRef<Val>) -> Val {
        if val.draft == self.current() {
            return val.it;
        }
        let tape = &self.draft(val.draft).tape;
        if let Some(bits) = tape.known_bits(val.it) {
            let ty = tape.ty(val.it);
            return self.open.tape.konst(ty, bits);
        }
        let column = self.column_of(TapeRef { draft: val.draft, it: Output::Number(val.it) });
        match self.enter(column) {
            Output::Number(val) => val,
            // A column of numbers is entered as a number.
            Output::Mask(_) => val.it,
        }
    }
}
