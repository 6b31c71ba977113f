//! Cancellation: a flag that one thread raises and the evaluations it was given to look at.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What a context without a token points to: a flag that is never raised.
pub(crate) static NEVER: AtomicBool = AtomicBool::new(false);

/// A token that ends evaluations. Clones are the same token; it may be given to any number of evaluations, on any threads.
/// Once it is cancelled it stays so.
///
/// ```
/// let token = cembra_runtime::Cancellation::new();
/// let same = token.clone();
/// std::thread::spawn(move || same.cancel()).join().unwrap();
/// assert!(token.is_cancelled());
/// ```
#[derive(Clone, Debug, Default)]
pub struct Cancellation(Arc<AtomicBool>);

impl Cancellation {
    /// A token that is not cancelled.
    #[must_use]
    pub fn new() -> Self {
        Cancellation::default()
    }

    /// Asks every evaluation that was given the token to end. Returns at once; they end when they next look.
    pub fn cancel(&self) {
        // Relaxed: the flag hands nothing over but itself.
        self.0.store(true, Ordering::Relaxed);
    }

    /// True once `cancel` was called.
    #[inline]
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// The flag, which lives as long as the token.
    pub(crate) fn flag(&self) -> *const AtomicBool {
        Arc::as_ptr(&self.0)
    }
}
