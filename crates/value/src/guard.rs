//! Calls of user code: loaders, listeners, operators, readers, links between ranks. A panic in user code becomes an
//! error that names the called code. `docs/safety.md` has the rule that requires this.

use crate::Error;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The most payloads that are dropped after a panic. A drop may panic again, with another payload, which is dropped
/// too; the payload after the last of these is leaked.
const MOST_DROPS: usize = 16;

/// Runs user code. If the code panics, the result is that of `error`, which is passed the panic's message. State that
/// the code may have changed must not be trusted after a panic.
///
/// ```
/// use cembra_value::{Error, guarded};
///
/// let made = guarded(|| panic!("no row {}", 7), |words| Err::<(), _>(Error::values(format!("the loader panicked: {words}"))));
/// assert_eq!(made.unwrap_err().to_string(), "the loader panicked: no row 7");
/// ```
#[inline]
pub fn guarded<R>(code: impl FnOnce() -> R, error: impl FnOnce(&str) -> R) -> R {
    match catch_unwind(AssertUnwindSafe(code)) {
        Ok(made) => made,
        Err(payload) => error(&words_of_panic(payload)),
    }
}

/// Runs user code that returns a `Result`. A panic becomes an [`Error::values`] whose message begins with `what`.
///
/// # Errors
/// If the code returns an error, or if it panics.
#[inline]
pub fn guarded_values<R>(what: impl FnOnce() -> String, code: impl FnOnce() -> Result<R, Error>) -> Result<R, Error> {
    guarded(code, |words| Err(Error::values(format!("{} panicked: {words}", what()))))
}

/// Returns the message of a panic, and drops its payload. If that drop panics, the second panic is caught too.
#[cold]
#[inline(never)]
#[must_use]
pub fn words_of_panic(payload: Box<dyn Any + Send>) -> String {
    let words = payload.downcast_ref::<&str>().copied();
    let words = words.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    let words = words.unwrap_or("a panic without a message").to_owned();
    let mut next = Some(payload);
    for _ in 0..MOST_DROPS {
        let Some(payload) = next.take() else { return words };
        next = catch_unwind(AssertUnwindSafe(|| drop(payload))).err();
    }
    std::mem::forget(next);
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::panic_any;
    use std::sync::atomic::{AtomicUsize, Ordering};

    static DROPS: AtomicUsize = AtomicUsize::new(0);

    /// A payload whose drop panics with another payload, this many times in a row.
    struct Again(usize);

    impl Drop for Again {
        fn drop(&mut self) {
            DROPS.fetch_add(1, Ordering::Relaxed);
            if let Some(left) = self.0.checked_sub(1) {
                panic_any(Again(left));
            }
        }
    }

    #[test]
    fn a_payload_is_dropped_and_may_panic_again() {
        let words = |code: fn()| {
            let run = || {
                code();
                String::new()
            };
            guarded(run, str::to_owned)
        };
        assert_eq!(words(|| panic!("no {}", "row")), "no row");
        assert_eq!(words(|| panic!("no row")), "no row");
        assert_eq!(words(|| panic_any(Again(3))), "a panic without a message");
        assert_eq!(DROPS.swap(0, Ordering::Relaxed), 4);
        // The chain of drops is cut.
        assert_eq!(words(|| panic_any(Again(1000))), "a panic without a message");
        assert!(DROPS.load(Ordering::Relaxed) <= MOST_DROPS);
    }
}
