//! The options that Python callers give for evaluations: the number of threads, a time limit, a cancellation token, and limits.

use crate::errors;
use crate::interrupt::Token;
use crate::settings::{limits_of, spelled_limits};
use cembra::RunOptions;
use pyo3::prelude::*;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// The options for evaluations that a Python caller passed to `run`, `table` or `session`.
#[derive(Clone, Default)]
pub(crate) struct Terms {
    threads: usize,
    time_limit: Option<Duration>,
    cancellation: Option<cembra::Cancellation>,
    limits: Option<cembra::Limits>,
}

impl Terms {
    /// Checks the caller's options for evaluations. `time_limit` is in seconds.
    pub(crate) fn of(
        threads: usize,
        time_limit: Option<f64>,
        cancellation: Option<&Bound<'_, Token>>,
        limits: Option<BTreeMap<String, Bound<'_, PyAny>>>,
    ) -> PyResult<Terms> {
        let limits = limits.map(|limits| limits_of(&spelled_limits(Some(limits))?)).transpose()?;
        let seconds = |seconds: f64| {
            let refused =
                |_| errors::data(format!("time_limit must be a number of seconds, at least 0, not {seconds}"));
            Duration::try_from_secs_f64(seconds).map_err(refused)
        };
        let time_limit = time_limit.map(seconds).transpose()?;
        let cancellation = cancellation.map(|token| token.get().0.clone());
        Ok(Terms { threads, time_limit, cancellation, limits })
    }

    /// The options for one evaluation that begins now.
    pub(crate) fn call(&self) -> CallTerms {
        CallTerms { options: self.options(), stay: self.time_limit.is_none() }
    }

    /// The library's run options for an evaluation that begins now. The time limit becomes a deadline, which also ends the conversions of
    /// arguments and results.
    pub(crate) fn options(&self) -> RunOptions {
        let mut options = RunOptions::new().threads(self.threads.max(1));
        // A deadline that the clock cannot represent never comes.
        if let Some(deadline) = self.time_limit.and_then(|limit| Instant::now().checked_add(limit)) {
            options = options.deadline(deadline);
        }
        if let Some(token) = &self.cancellation {
            options = options.cancellation(token.clone());
        }
        if let Some(limits) = self.limits {
            options = options.limits(limits);
        }
        options
    }
}

/// The options for one evaluation that begins now, with the time limit as a deadline.
pub(crate) struct CallTerms {
    pub(crate) options: RunOptions,
    /// True if the options have no deadline. Then they hold for every evaluation of a session, and the session sets them only once.
    pub(crate) stay: bool,
}

impl Default for CallTerms {
    fn default() -> Self {
        CallTerms { options: RunOptions::new(), stay: true }
    }
}
