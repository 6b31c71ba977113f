//! A map from a plan's values to what is known of them, in scopes: what was noted last is forgotten first. Values are
//! numbered, so the map is an array; what is in it is listed too, so that forgetting takes no longer than noting did.

use cembra_plan::{Plan, ValueId};

/// What is known of some values of a plan.
#[derive(Clone, Debug)]
pub struct ScopedValueMap<T> {
    notes: Vec<Option<T>>,
    /// The values that there are notes of, in the order these were made.
    known: Vec<ValueId>,
}

impl<T> Default for ScopedValueMap<T> {
    /// Of no values.
    fn default() -> Self {
        ScopedValueMap { notes: Vec::new(), known: Vec::new() }
    }
}

impl<T> ScopedValueMap<T> {
    /// Forgets everything, and makes room for the values of this plan.
    pub fn reset(&mut self, plan: &Plan) {
        self.truncate(0);
        if self.notes.len() < plan.value_count() {
            self.notes.resize_with(plan.value_count(), || None);
        }
    }

    /// How many values there is room for.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.notes.len()
    }

    /// What is known of a value.
    #[must_use]
    pub fn get(&self, value: ValueId) -> Option<&T> {
        self.notes.get(value.index())?.as_ref()
    }

    /// Notes what a value is, for as long as the scope lasts.
    pub fn set(&mut self, value: ValueId, note: T) {
        self.notes[value.index()] = Some(note);
        self.known.push(value);
    }

    /// How many notes were made.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.known.len()
    }

    /// Forgets all notes but the first so many.
    pub fn truncate(&mut self, length: usize) {
        for value in self.known.drain(length..) {
            self.notes[value.index()] = None;
        }
    }
}
