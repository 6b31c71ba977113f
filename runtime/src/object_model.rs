//! The description of a compiled model that an object file contains as data.

use crate::layout::layout;
use crate::{RawFunction, Text};

/// The description of a model in an object file. The file defines it as read-only data, under the model's name followed
/// by `_model`. Programs only pass on references to it.
#[repr(C)]
#[derive(Debug)]
pub struct ObjectModel {
    pub(crate) revision: u32,
    pub(crate) frame_bytes: u32,
    pub(crate) interface: u64,
    pub(crate) function: RawFunction,
    pub(crate) texts: *const LiteralText,
    pub(crate) text_count: u64,
    pub(crate) sites: *const Site,
    pub(crate) site_count: u64,
}

// SAFETY: OBJECT-MODEL: the model is read-only data of the program.
unsafe impl Send for ObjectModel {}
// SAFETY: OBJECT-MODEL: threads share read-only data.
unsafe impl Sync for ObjectModel {}

/// A text literal of a model, with its slot. A frame has the view of the text in this slot from the start, because machine code contains no addresses
/// of texts.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct LiteralText {
    pub(crate) slot: u64,
    pub(crate) text: Text<'static>,
}

/// A site (a step of a model whose operator can fail): an entry of the model's table of sites.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Site {
    pub(crate) step: u32,
    pub(crate) start: u32,
    pub(crate) end: u32,
    unused: u32,
    pub(crate) operator: Text<'static>,
    pub(crate) result: Text<'static>,
}

layout! {
    ObjectModel: u32 {
        /// Offset in a model's description of the interface revision, 4 bytes.
        pub REVISION_OFFSET = (offset of revision);
        /// Offset in a model's description of the size of frames, 4 bytes.
        pub FRAME_BYTES_OFFSET = (offset of frame_bytes);
        /// Offset in a model's description of the fingerprint (8 bytes) of the agreement between machine code and this crate for which the file was
        /// made.
        pub INTERFACE_OFFSET = (offset of interface);
        /// Offset in a model's description of the pointer to the compiled function.
        pub FUNCTION_OFFSET = (offset of function);
        /// Offset in a model's description of the pointer to the table of text literals.
        pub TEXTS_OFFSET = (offset of texts);
        /// Offset in a model's description of the number of text literals, 8 bytes.
        pub TEXT_COUNT_OFFSET = (offset of text_count);
        /// Offset in a model's description of the pointer to the table of sites (steps that can fail), in the order of
        /// their steps.
        pub SITES_OFFSET = (offset of sites);
        /// Offset in a model's description of the number of sites, 8 bytes.
        pub SITE_COUNT_OFFSET = (offset of site_count);
        /// The size of a model's whole description, in bytes.
        pub SIZE = (size);
    }
}

layout! {
    LiteralText: u32 {
        SLOT_OFFSET = (offset of slot);
        TEXT_OFFSET = (offset of text);
        SIZE = (size);
    }
}

layout! {
    Site: u32 {
        STEP_OFFSET = (offset of step);
        START_OFFSET = (offset of start);
        END_OFFSET = (offset of end);
        OPERATOR_OFFSET = (offset of operator);
        RESULT_OFFSET = (offset of result);
        SIZE = (size);
    }
}

impl ObjectModel {
    /// The size in bytes of an entry in the table of text literals: the slot as 8 bytes, then the text.
    pub const TEXT_SIZE: u32 = LiteralText::SIZE;
    /// The size in bytes of an entry in the table of sites. An entry has 4 bytes each for the step, and for the start and the end of the operator's
    /// position in the model's text; 4 unused bytes; the operator's name; and the type of its result.
    pub const SITE_SIZE: u32 = Site::SIZE;

    /// The model's table of text literals.
    pub(crate) fn texts(&self) -> &[LiteralText] {
        // SAFETY: OBJECT-MODEL: `texts` points to `text_count` entries.
        if self.text_count == 0 { &[] } else { unsafe { table(self.texts, self.text_count) } }
    }

    /// The site (description) of the plan's step `step`; `None` if the step cannot fail, because then the table has no entry for it.
    pub(crate) fn site(&self, step: u32) -> Option<&Site> {
        // SAFETY: OBJECT-MODEL: `sites` points to `site_count` entries.
        let sites = if self.site_count == 0 { &[] } else { unsafe { table(self.sites, self.site_count) } };
        sites.binary_search_by_key(&step, |site| site.step).ok().map(|at| &sites[at])
    }
}

/// Returns a table of an object file.
///
/// # Safety
/// OBJECT-MODEL: there are `count` entries from `first` on, as long as the program runs.
unsafe fn table<T>(first: *const T, count: u64) -> &'static [T] {
    // SAFETY: OBJECT-MODEL, promised by the caller.
    unsafe { std::slice::from_raw_parts(first, count as usize) }
}
