//! Calls of the libraries that read foreign file formats. Such a library may panic on a broken file; this module turns the panic into an error.
//! Exhausted memory or stack ends the process and cannot be caught here: the modules `messages` and `chunks` prevent it by checking lengths and
//! depths before such a call.
//!
//! The panic hook, which prints panics, belongs to the program. The hook can call [`is_guarded`] and print nothing for a panic that becomes an
//! error.

use crate::error::DataError;
use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

thread_local! {
    /// True while this thread is inside a guarded call.
    static GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Returns true while this thread is inside a call whose panics become errors.
#[must_use]
pub fn is_guarded() -> bool {
    GUARDED.try_with(Cell::get).unwrap_or(false)
}

/// Runs `call`, which may panic on bytes that are not valid in the format `format`. After an error, the caller must not use any value that `call`
/// could change.
///
/// # Errors
/// The error of `call`; if `call` panicked, an error that says so.
pub(crate) fn guarded<R>(format: &str, call: impl FnOnce() -> Result<R, DataError>) -> Result<R, DataError> {
    /// Restores the flag, also after a panic.
    struct Reset(bool);
    impl Drop for Reset {
        fn drop(&mut self) {
            let _gone = GUARDED.try_with(|flag| flag.set(self.0));
        }
    }
    let reset = Reset(GUARDED.replace(true));
    let made = catch_unwind(AssertUnwindSafe(call));
    drop(reset);
    made.unwrap_or_else(|payload| Err(DataError::unreadable(format!("not {format}: {}", message(payload.as_ref())))))
}

fn message(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    // Some messages show the unexpected value on further lines.
    text.and_then(|text| text.lines().next()).unwrap_or("its reader panicked")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_an_error_and_the_flag_is_put_back() {
        assert!(!is_guarded());
        let read = guarded::<()>("Arrow", || {
            assert!(is_guarded());
            let inner = guarded("Parquet", || Ok(7)).expect("a number");
            assert!(is_guarded(), "{inner}");
            panic!("no such {}\nleft", "buffer")
        });
        assert_eq!(read.expect_err("a panic").to_string(), "not Arrow: no such buffer");
        assert!(!is_guarded());
        let read = guarded::<()>("Arrow", || Err(DataError::unreadable("cut short")));
        assert_eq!(read.expect_err("an error").to_string(), "cut short");
    }
}
