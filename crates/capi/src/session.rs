//! Sessions: the memory and the limits of evaluations, and the results of the last evaluation, which C may still read.

use crate::errors::{Error, border, catch_panics, write_if_some};
use crate::failure::{Failure, require_non_null};
use crate::memory::Text;
use crate::options::set_limit;
use crate::program::{Compiled, Program};
use crate::views::Views;
use compiler::columns::OutputColumn;
use compiler::{Cancellation, Limits, OnError, RowFailure, RunOptions, Value};
use std::mem::MaybeUninit;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// `cembra_session`: a handle for evaluating a program. It has the memory and the limits of the evaluations. A session allows only one call at a
/// time.
#[derive(Debug)]
pub struct Session {
    pub(crate) compiled: Arc<Compiled>,
    pub(crate) inner: compiler::Session,
    /// The input values of the current or last row.
    pub(crate) row: Vec<Value>,
    /// The output values of the last row that was evaluated.
    pub(crate) made: Vec<Value>,
    /// The C structs for the values in `made`, which C may still read.
    pub(crate) views: Views,
    /// The output columns of the last call. They are kept only if C has pointers to their texts.
    pub(crate) columns: Vec<OutputColumn>,
    pub(crate) failed: Vec<usize>,
    pub(crate) failures: Vec<RowFailure>,
    pub(crate) run: RunOptions,
    pub(crate) deadline: Option<Duration>,
    limits: Limits,
    /// True if an evaluation panicked, so that the session's state is unknown.
    is_broken: bool,
}

impl Session {
    fn of(compiled: &Arc<Compiled>) -> Session {
        // A limit that is not set here stays as the model was compiled with.
        let limits = Limits::default()
            .arena_bytes(usize::MAX)
            .array_bytes(u64::MAX)
            .loop_iterations(u64::MAX)
            .string_work(u64::MAX);
        Session {
            compiled: compiled.clone(),
            inner: compiled.executor.session(),
            row: Vec::new(),
            made: Vec::new(),
            views: Views::default(),
            columns: Vec::new(),
            failed: Vec::new(),
            failures: Vec::new(),
            run: RunOptions::new(),
            deadline: None,
            limits,
            is_broken: false,
        }
    }

    /// Returns the run options, with a deadline that counts from this moment.
    pub(crate) fn options_now(&self) -> RunOptions {
        // A moment beyond the clock's range counts as no deadline. The deadline also covers making the views of outputs.
        let deadline = self.deadline.and_then(|limit| Instant::now().checked_add(limit));
        deadline.into_iter().fold(self.run.clone(), RunOptions::deadline)
    }

    /// The most bytes that an array or a tensor may have in an evaluation: the smaller of the program's limit and the session's.
    pub(crate) fn array_bytes(&self) -> u64 {
        self.limits.array_bytes.min(self.compiled.array_bytes)
    }

    /// Drops the views and columns of the last evaluation.
    #[inline]
    pub(crate) fn forget(&mut self) {
        self.views.clear();
        self.columns.clear();
        self.failed.clear();
        self.failures.clear();
    }
}

/// Runs `evaluate` with a session. Fails if an earlier evaluation in the session panicked.
pub(crate) fn with_session(
    session: Option<&mut Session>,
    evaluate: impl FnOnce(&mut Session) -> Result<(), Failure>,
) -> Option<Box<Error>> {
    border(|| {
        let session = require_non_null(session, "`session`")?;
        if session.is_broken {
            return Err(Error::internal("an earlier evaluation of this session panicked"));
        }
        session.is_broken = true;
        let evaluated = evaluate(session);
        session.is_broken = false;
        evaluated.map_err(|failure| session.compiled.error(failure))
    })
}

/// Changes the run options of a session.
fn set(session: Option<&mut Session>, change: impl FnOnce(&mut Session) -> Result<(), Failure>) -> Option<Box<Error>> {
    with_session(session, |session| {
        change(session)?;
        session.inner.set_run_options(&session.run);
        Ok(())
    })
}

/// Creates a session for a program. Writes its handle to `session`, or null on failure.
#[unsafe(no_mangle)]
pub extern "C" fn cembra_session_new(
    program: Option<&Program>,
    session: Option<&mut MaybeUninit<Option<Box<Session>>>>,
) -> Option<Box<Error>> {
    border(|| {
        let session = require_non_null(session, "`session`")?.write(None);
        *session = Some(Box::new(Session::of(&require_non_null(program, "`program`")?.0)));
        Ok(())
    })
}

/// Frees a session. Null is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn cembra_session_free(session: Option<Box<Session>>) {
    catch_panics((), || drop(session));
}

/// Sets the token that cancels later evaluations in the session; null removes it.
#[unsafe(no_mangle)]
pub extern "C" fn cembra_session_set_cancellation(
    session: Option<&mut Session>,
    token: Option<&Cancellation>,
) -> Option<Box<Error>> {
    set(session, |session| {
        session.run = std::mem::take(&mut session.run).cancellation(token.cloned());
        Ok(())
    })
}

/// Sets the deadline of the session's later evaluations, in milliseconds after each call begins; 0 removes it.
#[unsafe(no_mangle)]
pub extern "C" fn cembra_session_set_deadline(session: Option<&mut Session>, milliseconds: u64) -> Option<Box<Error>> {
    set(session, |session| {
        session.deadline = (milliseconds > 0).then(|| Duration::from_millis(milliseconds));
        Ok(())
    })
}

/// The limits that a session may set for its runs.
const RUN_LIMITS: [&str; 4] = ["arena_bytes", "array_bytes", "loop_iterations", "string_work"];

/// Sets a limit of the session's later evaluations. `name` must be the name of a limit that applies to evaluations, for example `array_bytes`.
#[unsafe(no_mangle)]
pub extern "C" fn cembra_session_set_limit(
    session: Option<&mut Session>,
    name: Text<'_>,
    value: u64,
) -> Option<Box<Error>> {
    set(session, |session| {
        let name = name.read("`name`")?;
        if !RUN_LIMITS.contains(&name) {
            let known = RUN_LIMITS.join(", ");
            return Err(Failure::argument(format!("the name of a limit must be one of {known}, not `{name}`")));
        }
        set_limit(&mut session.limits, name, value)?;
        session.run = std::mem::take(&mut session.run).limits(session.limits);
        Ok(())
    })
}

/// Sets the number of threads for the session's later evaluations; 0 counts as 1.
#[unsafe(no_mangle)]
pub extern "C" fn cembra_session_set_threads(session: Option<&mut Session>, threads: usize) -> Option<Box<Error>> {
    set(session, |session| {
        session.run = std::mem::take(&mut session.run).threads(threads.max(1));
        Ok(())
    })
}

/// Sets the treatment of rows that fail. With `CEMBRA_ON_ERROR_STOP`, the call ends with an error; with `CEMBRA_ON_ERROR_MISSING`, the outputs of the
/// row are missing.
#[unsafe(no_mangle)]
pub extern "C" fn cembra_session_set_on_error(session: Option<&mut Session>, on_error: u32) -> Option<Box<Error>> {
    set(session, |session| {
        let on_error = match on_error {
            1 => OnError::Fail,
            2 => OnError::Missing,
            other => return Err(Failure::unknown("CEMBRA_ON_ERROR_*", other)),
        };
        session.run = std::mem::take(&mut session.run).on_error(on_error);
        Ok(())
    })
}

/// Returns the number of rows that failed in the session's last call; 0 for null.
#[unsafe(no_mangle)]
pub extern "C" fn cembra_session_failed_count(session: Option<&Session>) -> usize {
    session.map_or(0, |session| session.failed.len())
}

/// Writes to `row` the index of a row that failed in the last call. `index` counts the failed rows from 0. Returns false and writes nothing if fewer
/// rows failed.
#[unsafe(no_mangle)]
pub extern "C" fn cembra_session_failed_row(
    session: Option<&Session>,
    index: usize,
    row: Option<&mut MaybeUninit<usize>>,
) -> bool {
    write_if_some(session.and_then(|session| session.failed.get(index)).copied(), row)
}

/// Returns the error of a row that failed in the last call; null if no error is stored for the row. `index` counts the failed rows from 0.
#[unsafe(no_mangle)]
pub extern "C" fn cembra_session_failure(session: Option<&Session>, index: usize) -> Option<Box<Error>> {
    border(|| match session.and_then(|session| Some((session, session.failures.get(index)?))) {
        Some((session, failure)) => Err(session.compiled.error(failure.error.clone().into())),
        None => Ok(()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Options;

    #[test]
    fn a_session_that_panicked_evaluates_no_more() {
        let compiled = Compiled::of("input x: f64; x + 1.0", &Options::default()).expect("a model");
        let mut session = Session::of(&Arc::new(compiled));
        // A failed evaluation leaves the session unchanged.
        let says = |error: Option<Box<Error>>, words: &str| format!("{error:?}").contains(words);
        assert!(says(
            with_session(Some(&mut session), |_| Err(Failure::null("the value"))),
            "the value must not be null"
        ));
        assert!(with_session(Some(&mut session), |_| Ok(())).is_none());
        assert!(says(with_session(Some(&mut session), |_| panic!("a defect")), "a defect"));
        for _ in 0..2 {
            assert!(says(with_session(Some(&mut session), |_| Ok(())), "earlier evaluation of this session panicked"));
        }
    }
}
