//! Calls of operators that cannot be vectorised: the kernel of such an operator is called row by row, for the rows that need it. The kernel's
//! arguments are copied from columns to the slots of a frame, and its result from a slot to columns.

use cembra_runtime::{Context, FramePtr, MachineType, STATUS_OK};
use cembra_tape::{KernelSegment, LaneProgram, Port, Source};
use smallvec::SmallVec;

/// Calls the kernel of `segment` for each row that needs the kernel's result, according to the mask of the segment.
/// Returns false if a call fails.
///
/// # Safety
/// COLUMNS: `addresses` has the address of each column of the program, and each column has `rows` rows. KERNEL-ROW and FRAME-SLOT: the frame is of
/// the plan that the program was recorded from.
pub(super) unsafe fn call_rows(
    segment: &KernelSegment,
    program: &LaneProgram,
    addresses: &[*mut u8],
    rows: usize,
    frame: FramePtr,
    context: &mut Context,
) -> bool {
    // SAFETY: COLUMNS and FRAME-SLOT, promised by the caller, for all that follows.
    unsafe {
        let mut stores: SmallVec<[Store; 4]> = SmallVec::new();
        for store in &segment.stores {
            let ty = program.column(store.column).ty;
            let bytes = if ty == MachineType::Flag { rows.div_ceil(64) * 8 } else { rows * ty.size() };
            let address = addresses[store.column.index()];
            address.write_bytes(0, bytes);
            stores.push(Store { address, ty, offset: store.offset, is_presence: store.is_presence, word: 0 });
        }
        let mut loads = Vec::with_capacity(segment.loads.len());
        for load in &segment.loads {
            match load.from {
                Source::Constant(bits) => frame.write_bits(load.ty, load.offset, bits),
                Source::Column(column) => {
                    let is_shared = program.column(column).port == Port::Shared;
                    let address = addresses[column.index()];
                    if is_shared {
                        frame.write_bits(load.ty, load.offset, shared(address, load.ty));
                    } else {
                        loads.push((address, load.ty, load.offset));
                    }
                }
            }
        }
        let call = segment.call.call(0);
        let asked = match segment.rows.map(|asked| (addresses[asked.index()], program.column(asked).port)) {
            Some((address, Port::Shared)) if *address == 0 => return true,
            Some((address, port)) if port != Port::Shared => Some(address),
            _ => None,
        };
        for start in (0..rows).step_by(64) {
            let all = u64::MAX >> (64 - (rows - start).min(64));
            let mut left = asked.map_or(all, |address| word(address, start, rows));
            let mut is_done = true;
            while left != 0 {
                let at = left.trailing_zeros() as usize;
                for (address, ty, offset) in &loads {
                    frame.write_bits(*ty, *offset, element(*address, *ty, start + at));
                }
                is_done = call.run(context, frame) == STATUS_OK;
                if !is_done {
                    break;
                }
                for store in &mut stores {
                    let bits = frame.read_bits(store.ty, store.offset);
                    match store.ty {
                        // Flags of 64 rows are written at once.
                        MachineType::Flag => store.word |= bits << at,
                        ty => set_element(store.address, ty, start + at, bits),
                    }
                    if store.is_presence && bits == 0 {
                        // The value of a missing result is not read.
                        break;
                    }
                }
                left &= left - 1;
            }
            for store in stores.iter_mut().filter(|store| store.ty == MachineType::Flag) {
                store.address.cast::<u64>().add(start / 64).write_unaligned(std::mem::take(&mut store.word).to_le());
            }
            if !is_done {
                return false;
            }
        }
        true
    }
}

/// A column that results of the kernel are stored in.
struct Store {
    address: *mut u8,
    ty: MachineType,
    offset: u32,
    is_presence: bool,
    /// For flags, the bits of the current 64 rows.
    word: u64,
}

/// Returns the bits of up to 64 rows from row `start` on. Reads no further than the byte of the last row.
///
/// # Safety
/// COLUMNS: there is a bit for each row.
pub(super) unsafe fn word(first: *const u8, start: usize, rows: usize) -> u64 {
    let mut word = [0; 8];
    let bytes = (rows - start).min(64).div_ceil(8);
    // SAFETY: COLUMNS, promised by the caller.
    unsafe { std::ptr::copy_nonoverlapping(first.add(start / 8), word.as_mut_ptr(), bytes) };
    let word = u64::from_le_bytes(word);
    match rows - start {
        left @ 0..64 => word & ((1 << left) - 1),
        _ => word,
    }
}

/// Returns the element at `address`, which all rows share.
///
/// # Safety
/// COLUMNS: the element exists.
pub(super) unsafe fn shared(address: *const u8, ty: MachineType) -> u64 {
    // SAFETY: COLUMNS, promised by the caller.
    unsafe { if ty == MachineType::Flag { u64::from(*address) } else { element(address, ty, 0) } }
}

/// Returns the element of row `row` in the column that begins at `first`.
///
/// # Safety
/// COLUMNS: the element exists.
#[inline]
pub(super) unsafe fn element(first: *const u8, ty: MachineType, row: usize) -> u64 {
    // SAFETY: COLUMNS, promised by the caller.
    unsafe {
        match ty.size() {
            1 => u64::from(*first.add(row / 8) >> (row % 8) & 1),
            4 => u64::from(first.cast::<u32>().add(row).read_unaligned()),
            _ => first.cast::<u64>().add(row).read_unaligned(),
        }
    }
}

/// Sets the element of a row to a number; flags are not supported.
///
/// # Safety
/// COLUMNS: the element exists.
#[inline]
unsafe fn set_element(first: *mut u8, ty: MachineType, row: usize, bits: u64) {
    // SAFETY: COLUMNS, promised by the caller.
    unsafe {
        match ty.size() {
            4 => first.cast::<u32>().add(row).write_unaligned(bits as u32),
            _ => first.cast::<u64>().add(row).write_unaligned(bits),
        }
    }
}
