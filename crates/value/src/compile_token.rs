//! The token that ends the compilations of a thread, for callers that wait for one and may be told to stop. Without it only
//! [`Limits::compile_time`](crate::Limits) ends a compilation.

use cembra_runtime::Cancellation;
use std::cell::RefCell;

thread_local! {
    /// The token of the compilations that this thread runs.
    static TOKEN: RefCell<Option<Cancellation>> = const { RefCell::new(None) };
}

/// Runs `compile`. Once `token` is cancelled, texts that this thread reads and models that it compiles end as if their time were over. Code that
/// a model keeps, and that was not finished for this reason, is compiled again when it is next needed.
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
    /// Gives the thread the token back that it had before, after a panic too.
    struct Before(Option<Cancellation>);
    impl Drop for Before {
        fn drop(&mut self) {
            TOKEN.set(self.0.take());
        }
    }
    let _before = Before(TOKEN.replace(Some(token.clone())));
    compile()
}

/// True once the token of this thread's compilations is cancelled.
#[must_use]
pub fn is_compile_ended() -> bool {
    // A destructor of the thread may compile when the token is gone.
    let is_ended =
        |token: &RefCell<Option<Cancellation>>| token.borrow().as_ref().is_some_and(Cancellation::is_cancelled);
    TOKEN.try_with(is_ended).unwrap_or(false)
}
