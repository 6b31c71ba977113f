//! A map from a plan's values to notes (any data about a value), with scopes: leaving a scope removes the notes that were
//! added in it. Values are numbered, so the map is an array. A list of the values that have notes makes removing notes as
//! fast as adding them.

use cembra_plan::{Plan, ValueId};

/// A map from a plan's values to notes of type `T`. It has scopes: leaving a scope removes the notes that were added in it.
#[derive(Clone, Debug)]
pub struct ScopedValueMap<T> {
    notes: Vec<Option<T>>,
    /// The values that have notes, in the order in which the notes were made.
    known: Vec<ValueId>,
}

impl<T> Default for ScopedValueMap<T> {
    /// An empty map without room for values; see [`ScopedValueMap::reset`].
    fn default() -> Self {
        ScopedValueMap { notes: Vec::new(), known: Vec::new() }
    }
}

impl<T> ScopedValueMap<T> {
    /// Removes all notes, and allocates memory for notes on all values of `plan`.
    pub fn reset(&mut self, plan: &Plan) {
        self.truncate(0);
        if self.notes.len() < plan.value_count() {
            self.notes.resize_with(plan.value_count(), || None);
        }
    }

    /// The number of values that the map has memory for.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.notes.len()
    }

    /// The note on a value; `None` if the value has no note.
    #[must_use]
    pub fn get(&self, value: ValueId) -> Option<&T> {
        self.notes.get(value.index())?.as_ref()
    }

    /// Sets the note on a value, which stays until [`ScopedValueMap::truncate`] removes it.
    pub fn set(&mut self, value: ValueId, note: T) {
        self.notes[value.index()] = Some(note);
        self.known.push(value);
    }

    /// The number of notes in the map.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.known.len()
    }

    /// Removes all notes except the first `length` that were set.
    pub fn truncate(&mut self, length: usize) {
        for value in self.known.drain(length..) {
            self.notes[value.index()] = None;
        }
    }
}
