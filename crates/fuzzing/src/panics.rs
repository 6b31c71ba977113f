//! Turns panics into findings: catches them with their message and place, and keeps them off the terminal while programs are tried.

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

thread_local! {
    static CATCHING: Cell<bool> = const { Cell::new(false) };
    static CAUGHT: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// Runs `body`. If there was a panic inside, returns the message of the first one, even if the library caught that panic.
pub(crate) fn caught<R>(body: impl FnOnce() -> R) -> Result<R, String> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        // Other threads, and this one outside of `caught`, report panics as before.
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if CATCHING.get() {
                CAUGHT.with_borrow_mut(|caught| caught.push(info.to_string()));
            } else {
                before(info);
            }
        }));
    });
    CAUGHT.with_borrow_mut(Vec::clear);
    let outer = CATCHING.replace(true);
    let result = catch_unwind(AssertUnwindSafe(body));
    CATCHING.set(outer);
    let first = CAUGHT.with_borrow_mut(|caught| caught.drain(..).next());
    match (result, first) {
        (Ok(result), None) => Ok(result),
        (_, Some(message)) => Err(message),
        (Err(_), None) => Err("a panic without a message".to_owned()),
    }
}
