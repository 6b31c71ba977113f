//! Arrays for tests, between pages that fault on access and otherwise surrounded by a pattern, so that tests detect every
//! access outside of an array.

use cembra_runtime::MachineType;
use memmap2::MmapMut;
use region::Protection;
use std::cell::RefCell;
use std::ops::{Deref, DerefMut};

const CANARY: u8 = 0xA7;

thread_local! {
    /// Pages that are no longer in use by an array of this thread. Tests make many arrays, and mapping, protecting and
    /// unmapping pages would take most of their time.
    static FREE: RefCell<Vec<MmapMut>> = const { RefCell::new(Vec::new()) };
}

/// Usable pages between two pages that fault.
struct Pages(Option<MmapMut>);

impl Pages {
    /// Returns pages of which `room` bytes are usable; `room` must be a multiple of the page size.
    fn of(room: usize) -> Pages {
        let page = region::page::size();
        let free = FREE.with_borrow_mut(|free| {
            free.iter().position(|pages| pages.len() == room + 2 * page).map(|at| free.swap_remove(at))
        });
        let memory = free.unwrap_or_else(|| {
            let memory = MmapMut::map_anon(room + 2 * page).expect("pages");
            for guard in [0, page + room] {
                // SAFETY: GUARD-PAGES: whole pages of this mapping, which nothing uses.
                unsafe { region::protect(memory.as_ptr().add(guard), page, Protection::NONE) }.expect("protected");
            }
            memory
        });
        let mut pages = Pages(Some(memory));
        pages[page..page + room].fill(CANARY);
        pages
    }
}

impl Deref for Pages {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.0.as_deref().expect("pages, until they are dropped")
    }
}

impl DerefMut for Pages {
    fn deref_mut(&mut self) -> &mut [u8] {
        self.0.as_deref_mut().expect("pages, until they are dropped")
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        FREE.with_borrow_mut(|free| free.extend(self.0.take()));
    }
}

pub(super) struct Guarded {
    memory: Pages,
    /// The range of the usable pages.
    usable: std::ops::Range<usize>,
    start: usize,
    size: usize,
    is_output: bool,
}

impl Guarded {
    /// Reserves memory for `size` bytes, at one of the ends of its pages or somewhere between them.
    fn new(size: usize, is_output: bool, random: &mut fastrand::Rng) -> Guarded {
        let page = region::page::size();
        let room = (size + 128).next_multiple_of(page);
        let start = page
            + match random.u8(..5) {
                0 => 0,
                1..=3 => room - size,
                _ => random.usize(..=room - size),
            };
        Guarded { memory: Pages::of(room), usable: page..page + room, start, size, is_output }
    }

    pub(super) fn column(ty: MachineType, values: &[u64], random: &mut fastrand::Rng) -> Guarded {
        let size = crate::isa::element(ty) as usize;
        if size == 0 {
            let mut array = Guarded::new(values.len().div_ceil(8), false, random);
            // The bits after the last row are random.
            let start = array.start;
            array.memory[start..start + values.len().div_ceil(8)].fill(random.u8(..));
            for (row, value) in values.iter().enumerate() {
                let byte = &mut array.memory[start + row / 8];
                *byte = *byte & !(1 << (row % 8)) | (*value as u8 & 1) << (row % 8);
            }
            return array;
        }
        let mut array = Guarded::new(values.len() * size, false, random);
        for (row, value) in values.iter().enumerate() {
            let at = array.start + row * size;
            array.memory[at..at + size].copy_from_slice(&value.to_le_bytes()[..size]);
        }
        array
    }

    pub(super) fn shared(ty: MachineType, value: u64, random: &mut fastrand::Rng) -> Guarded {
        let size = (crate::isa::element(ty) as usize).max(1);
        let mut array = Guarded::new(size, false, random);
        let at = array.start;
        array.memory[at..at + size].copy_from_slice(&value.to_le_bytes()[..size]);
        array
    }

    pub(super) fn output(ty: MachineType, rows: usize, random: &mut fastrand::Rng) -> Guarded {
        let size = match crate::isa::element(ty) as usize {
            0 => 8 * rows.div_ceil(64),
            size => size * rows,
        };
        Guarded::new(size, true, random)
    }

    pub(super) fn start(&self) -> *mut u8 {
        self.memory.as_ptr().wrapping_add(self.start).cast_mut()
    }

    /// The value at index `row` of the array.
    pub(super) fn value(&self, ty: MachineType, row: usize) -> u64 {
        match crate::isa::element(ty) as usize {
            0 => u64::from(self.memory[self.start + row / 8] >> (row % 8) & 1),
            size => {
                let mut bytes = [0; 8];
                bytes[..size].copy_from_slice(&self.memory[self.start + row * size..][..size]);
                u64::from_le_bytes(bytes)
            }
        }
    }

    /// Checks that nothing was written around the array.
    pub(super) fn check_surroundings(&self, name: &str) {
        let (before, behind) = (self.usable.start..self.start, self.start + self.size..self.usable.end);
        for at in before.chain(behind) {
            assert_eq!(self.memory[at], CANARY, "{name}: written {at} of {:?} ({})", self.usable, self.is_output);
        }
    }
}
