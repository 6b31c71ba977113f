//! The memory of a vectorised program's columns. Columns that are contiguous in the strip (the block of rows) are used in place. All other columns
//! are copied to scratch memory before the program runs, or from scratch memory afterwards.

use cembra_runtime::{Column, ColumnForm, DataForm, FramePtr, MachineType, PresenceForm};
use cembra_tape::{ColumnId, LaneColumn, LaneProgram, Origin, Port, ValuePart};

/// The memory in which a column of a vectorised program has its values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ColumnStorage {
    /// The values are the data of a column of the strip (the block of rows): the column's index, and the offset in bytes.
    Data(u32, u32),
    /// The values are the presence of a column of the strip (the block of rows), by the column's index.
    Presence(u32),
    /// The values are in scratch memory, at this offset in bytes.
    Scratch(u32),
    /// The values are in the frame, at this offset in bytes.
    Frame(u32),
}

impl ColumnStorage {
    /// Returns the address of the element that `column` has for row `start`, a multiple of 64.
    #[inline]
    pub(super) fn address(
        self,
        column: &LaneColumn,
        columns: &[Column],
        start: usize,
        memory: *mut u8,
        frame: FramePtr,
    ) -> *mut u8 {
        let ahead = match (column.port, column.ty) {
            (Port::Shared | Port::Chains, _) => 0,
            (Port::Rows, MachineType::Flag) => start / 8,
            (Port::Rows, ty) => start * ty.size(),
        };
        match self {
            ColumnStorage::Data(at, offset) => columns[at as usize].data.wrapping_add(offset as usize + ahead),
            ColumnStorage::Presence(at) => columns[at as usize].presence.wrapping_add(ahead),
            // Staged elements are those of the current rows only.
            ColumnStorage::Scratch(offset) => memory.wrapping_add(offset as usize),
            ColumnStorage::Frame(offset) => frame.as_ptr().wrapping_add(offset as usize),
        }
    }
}

/// A column that is copied to or from scratch memory, because its values are not contiguous in the caller's memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stage {
    /// The index of the column in the strip (block of rows).
    column: u32,
    /// True if the column's presence is copied. Otherwise its data are copied, from `offset` bytes on.
    is_presence: bool,
    offset: u32,
    ty: MachineType,
    /// The offset in scratch memory, in bytes.
    scratch: u32,
}

impl Stage {
    /// Returns the address of the element for row `start`, and the distance to the next element in bytes.
    fn elements(&self, columns: &[Column], start: usize) -> (*mut u8, isize) {
        let column = &columns[self.column as usize];
        let (first, stride) = if self.is_presence {
            (column.presence, column.presence_stride)
        } else {
            (column.data.wrapping_add(self.offset as usize), column.stride)
        };
        (first.wrapping_offset(stride * start.cast_signed()), stride)
    }

    /// Copies `rows` elements from the column to scratch memory, from row `start` on.
    ///
    /// # Safety
    /// COLUMNS: the column must have the rows, and `memory` must be scratch memory for this program.
    pub(super) unsafe fn gather(&self, columns: &[Column], start: usize, rows: usize, memory: *mut u8) {
        let (first, stride) = self.elements(columns, start);
        let to = memory.wrapping_add(self.scratch as usize);
        // SAFETY: COLUMNS, promised by the caller.
        unsafe {
            match self.ty.size() {
                1 => gather_bits(first, stride, rows, to.cast()),
                4 => gather_numbers::<u32>(first, stride, rows, to.cast()),
                _ => gather_numbers::<u64>(first, stride, rows, to.cast()),
            }
        }
    }

    /// Copies `rows` elements from scratch memory to the column, from row `start` on.
    ///
    /// # Safety
    /// COLUMNS: the column must have the rows, and `memory` must be scratch memory for this program.
    pub(super) unsafe fn scatter(&self, columns: &[Column], start: usize, rows: usize, memory: *const u8) {
        let (first, stride) = self.elements(columns, start);
        if !self.is_presence && columns[self.column as usize].data.is_null() {
            return;
        }
        let from = memory.wrapping_add(self.scratch as usize);
        // SAFETY: COLUMNS, promised by the caller.
        unsafe {
            match self.ty.size() {
                1 => scatter_bits(first, stride, rows, from.cast()),
                4 => scatter_numbers::<u32>(first, stride, rows, from.cast()),
                _ => scatter_numbers::<u64>(first, stride, rows, from.cast()),
            }
        }
    }
}

/// Copies `rows` numbers, `stride` bytes apart, to contiguous memory.
///
/// # Safety
/// COLUMNS: `rows` numbers can be read there, and `to` has room for them.
unsafe fn gather_numbers<T: Copy>(first: *const u8, stride: isize, rows: usize, to: *mut T) {
    let mut from = first;
    for row in 0..rows {
        // SAFETY: COLUMNS, promised by the caller.
        unsafe { to.add(row).write(from.cast::<T>().read_unaligned()) };
        from = from.wrapping_offset(stride);
    }
}

/// Converts `rows` bytes, `stride` bytes apart, to bits: 1 for any byte but 0.
///
/// # Safety
/// COLUMNS: `rows` bytes can be read there, and `to` has room for the bits in whole words.
unsafe fn gather_bits(first: *const u8, stride: isize, rows: usize, to: *mut u64) {
    let mut from = first;
    for word in 0..rows.div_ceil(64) {
        let mut bits = 0;
        for bit in 0..64.min(rows - 64 * word) {
            // SAFETY: COLUMNS, promised by the caller.
            bits |= u64::from(unsafe { *from } != 0) << bit;
            from = from.wrapping_offset(stride);
        }
        // SAFETY: COLUMNS, promised by the caller.
        unsafe { to.add(word).write(bits) };
    }
}

/// Copies `rows` contiguous numbers to places that are `stride` bytes apart.
///
/// # Safety
/// COLUMNS: `from` has `rows` numbers, and there is room for them.
unsafe fn scatter_numbers<T: Copy>(first: *mut u8, stride: isize, rows: usize, from: *const T) {
    let mut to = first;
    for row in 0..rows {
        // SAFETY: COLUMNS, promised by the caller.
        unsafe { to.cast::<T>().write_unaligned(from.add(row).read()) };
        to = to.wrapping_offset(stride);
    }
}

/// Converts `rows` bits to bytes that are `stride` bytes apart.
///
/// # Safety
/// COLUMNS: `from` has `rows` bits, and there is room for the bytes.
unsafe fn scatter_bits(first: *mut u8, stride: isize, rows: usize, from: *const u64) {
    let mut to = first;
    for row in 0..rows {
        // SAFETY: COLUMNS, promised by the caller.
        unsafe { *to = (*from.add(row / 64) >> (row % 64) & 1) as u8 };
        to = to.wrapping_offset(stride);
    }
}

/// The memory of each column of a vectorised program, and the columns that are copied to or from scratch memory.
#[derive(Debug)]
pub(super) struct Staging {
    pub(super) places: Vec<ColumnStorage>,
    pub(super) gathered: Vec<Stage>,
    pub(super) scattered: Vec<Stage>,
    pub(super) bytes_for_64_rows: usize,
    /// The columns of the program that are copied to or from scratch memory: first those that are copied to it, then
    /// the others.
    staged: Vec<ColumnId>,
}

impl Staging {
    /// Decides for each column of `program` where its values are, given the layouts of inputs and outputs. `place` sets the offsets in scratch
    /// memory.
    pub(super) fn of(program: &LaneProgram, inputs: &[ColumnForm], outputs: &[ColumnForm]) -> Staging {
        let mut staging = Staging {
            places: Vec::with_capacity(program.columns.len()),
            gathered: Vec::new(),
            scattered: Vec::new(),
            bytes_for_64_rows: 0,
            staged: Vec::new(),
        };
        let mut written = Vec::new();
        for (at, column) in program.columns.iter().enumerate() {
            let id = ColumnId::from_index(at);
            let (place, stage) = match column.origin {
                Origin::Input { index, part } => of_part(column.ty, inputs[index as usize], index, part),
                Origin::Output { index, part } => {
                    of_part(column.ty, outputs[index as usize], inputs.len() as u32 + index, part)
                }
                Origin::Frame { offset } => (ColumnStorage::Frame(offset), None),
                Origin::Scratch { .. } | Origin::Once { .. } => (ColumnStorage::Scratch(0), None),
            };
            staging.places.push(place);
            let Some(stage) = stage else { continue };
            staging.bytes_for_64_rows += column.bytes_for_64_rows() as usize;
            if matches!(column.origin, Origin::Input { .. }) {
                staging.gathered.push(stage);
                staging.staged.push(id);
            } else {
                staging.scattered.push(stage);
                written.push(id);
            }
        }
        staging.staged.extend(written);
        staging
    }

    /// Sets the offsets in scratch memory for blocks of `rows` rows. Returns the bytes of scratch memory that are needed.
    pub(super) fn place(&mut self, program: &LaneProgram, rows: usize) -> usize {
        let once = program.scratch_bytes(rows).next_multiple_of(8);
        for (at, column) in program.columns.iter().enumerate() {
            let offset = match column.origin {
                Origin::Once { offset } => once + offset as usize,
                _ => match program.scratch_offset(ColumnId::from_index(at), rows) {
                    Some(offset) => offset,
                    None => continue,
                },
            };
            self.places[at] = ColumnStorage::Scratch(offset as u32);
        }
        let mut end = once + program.once_bytes();
        for (stage, id) in self.gathered.iter_mut().chain(&mut self.scattered).zip(&self.staged) {
            let start = end.next_multiple_of(64);
            stage.scratch = start as u32;
            self.places[id.index()] = ColumnStorage::Scratch(start as u32);
            end = start + program.column(*id).bytes_for_64_rows() as usize * rows.div_ceil(64);
        }
        end
    }
}

/// Returns the memory of one part (data or presence) of the column `column` in the strip (block of rows), and the copy
/// to or from scratch memory that it needs; no copy if this memory is used in place.
fn of_part(ty: MachineType, form: ColumnForm, column: u32, part: ValuePart) -> (ColumnStorage, Option<Stage>) {
    let (is_presence, offset, in_place) = match part {
        ValuePart::Presence => (true, 0, form.presence == PresenceForm::Bits),
        ValuePart::Flag => (false, 0, form.data == DataForm::Bits),
        ValuePart::Number => (false, 0, form.is_dense || form.data == DataForm::Chains),
        ValuePart::Pointer => (false, 0, false),
        ValuePart::Length => (false, 8, false),
    };
    if form.is_shared || in_place {
        return (if is_presence { ColumnStorage::Presence(column) } else { ColumnStorage::Data(column, offset) }, None);
    }
    (ColumnStorage::Scratch(0), Some(Stage { column, is_presence, offset, ty, scratch: 0 }))
}
