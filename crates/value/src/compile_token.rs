//! The cancellation token of a thread's compilations, for a caller that must be able to stop a compilation. Without a
//! token, only [`Limits::compile_time`](crate::Limits) ends a compilation.

use cembra_runtime::Cancellation;
use std::cell::RefCell;

thread_local! {
    /// The token of this thread's compilations.
    static TOKEN: RefCell<Option<Cancellation>> = const { RefCell::new(None) };
}

/// Runs `compile`. Once `token` is cancelled, reading texts and compiling models on this thread fail as if the time
/// limit had been exceeded. Code of a model that was not finished for this reason is compiled again when it is next
/// needed.
///
/// ```
/// use cembra_value::{Budget, Limits, compile_until};
/// use cembra_runtime::Cancellation;
///
/// let token = Cancellation::new();
/// token.cancel();
/// let budget = Budget::start(Limits::default());
/// assert!(compile_until(&token, || budget.check_time()).is_err());
/// assert!(budget.check_time().is_ok());
/// ```
pub fn compile_until<T>(token: &Cancellation, compile: impl FnOnce() -> T) -> T {
    /// Restores the thread's previous cancellation token when it is dropped, also after a panic.
    struct Before(Option<Cancellation>);
    impl Drop for Before {
        fn drop(&mut self) {
            TOKEN.set(self.0.take());
        }
    }
    let _before = Before(TOKEN.replace(Some(token.clone())));
    compile()
}

/// Returns true if the token that was given for this thread's compilations is cancelled.
#[must_use]
pub fn is_compile_ended() -> bool {
    // A destructor of the thread may compile after the token was destroyed.
    let is_ended =
        |token: &RefCell<Option<Cancellation>>| token.borrow().as_ref().is_some_and(Cancellation::is_cancelled);
    TOKEN.try_with(is_ended).unwrap_or(false)
}
