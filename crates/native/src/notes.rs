//! Something noted of each of a plan's values, as far as there is anything to note. Values are numbered, so the notes are an
//! array; what is in it is listed too, so that forgetting takes no longer than noting did.

use cembra_plan::{Plan, ValueId};

/// A note of some values of a plan.
#[derive(Clone, Debug)]
pub(crate) struct Notes<T> {
    notes: Vec<Option<T>>,
    /// The values that there are notes of, in the order these were made.
    known: Vec<ValueId>,
}

impl<T> Default for Notes<T> {
    /// Of no values.
    fn default() -> Self {
        Notes { notes: Vec::new(), known: Vec::new() }
    }
}

impl<T> Notes<T> {
    /// No notes yet, of the values of this plan.
    pub(crate) fn of(plan: &Plan) -> Self {
        Notes { notes: (0..plan.value_count()).map(|_| None).collect(), known: Vec::new() }
    }

    pub(crate) fn get(&self, value: ValueId) -> Option<&T> {
        self.notes.get(value.index())?.as_ref()
    }

    pub(crate) fn set(&mut self, value: ValueId, note: T) {
        self.notes[value.index()] = Some(note);
        self.known.push(value);
    }

    /// How many notes were made.
    pub(crate) fn len(&self) -> usize {
        self.known.len()
    }

    /// Forgets all notes but the first so many.
    pub(crate) fn truncate(&mut self, length: usize) {
        for value in self.known.drain(length..) {
            self.notes[value.index()] = None;
        }
    }
}
