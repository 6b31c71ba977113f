//! What was compiled for a few forms of data, kept for whoever asks next: so many at the most. It is searched one entry after the other, as
//! keys are compared in more ways than one and most models meet one or two. What is kept for thousands of keys wants a table instead.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The values that were asked for last, by their keys. Whoever has a value keeps it after it was dropped here.
///
/// ```
/// use cembra_value::Recent;
///
/// let recent = Recent::new(2);
/// for name in ["one", "three", "one", "five"] {
///     recent.find(|known| *known == name).unwrap_or_else(|| recent.keep(name, name.len().into()));
/// }
/// assert_eq!(recent.find(|known| *known == "one"), Some(3.into()));
/// assert_eq!(recent.find(|known| *known == "three"), None);
/// ```
#[derive(Debug)]
pub struct Recent<K, T> {
    most: usize,
    /// The one that was asked for last is the last; at most `most`.
    entries: Mutex<Vec<(K, Arc<T>)>>,
}

impl<K, T> Recent<K, T> {
    /// Room for so many, and for one at least.
    #[must_use]
    pub const fn new(most: usize) -> Recent<K, T> {
        Recent { most: if most == 0 { 1 } else { most }, entries: Mutex::new(Vec::new()) }
    }

    fn entries(&self) -> MutexGuard<'_, Vec<(K, Arc<T>)>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The value of the key that is wanted.
    pub fn find(&self, is_wanted: impl Fn(&K) -> bool) -> Option<Arc<T>> {
        let mut entries = self.entries();
        let at = entries.iter().rposition(|(key, _)| is_wanted(key))?;
        entries[at..].rotate_left(1);
        entries.last().map(|(_, value)| value.clone())
    }

    /// Keeps a value for a key, in the place of the one that was not asked for the longest if there is no more room. If another thread
    /// kept one for this key meanwhile, that one is the value.
    pub fn keep(&self, key: K, value: Arc<T>) -> Arc<T>
    where
        K: PartialEq,
    {
        if let Some(kept) = self.find(|known| *known == key) {
            return kept;
        }
        let mut entries = self.entries();
        if entries.len() >= self.most {
            entries.remove(0);
        }
        entries.push((key, value.clone()));
        value
    }

    /// Of all values that are kept, how many bytes each has.
    pub fn bytes(&self, of_each: impl Fn(&T) -> usize) -> usize {
        self.entries().iter().map(|(_, value)| of_each(value)).sum()
    }
}
