//! The processes (ranks) that an MPI launcher started together with this one. A process that fails must end the others, because they may wait for
//! it inside MPI forever. If a command cannot divide its work among ranks, only the first process computes.

use cembra::Error;
use cembra::tiles::World;
use cembra::tiles::link::Launch;
use std::io::Write;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The state of this process in relation to the other ranks.
enum State {
    /// This process has not joined the other ranks, so they may wait for it.
    NotJoined,
    /// This process has joined the other ranks, which the world connects.
    Joined(World),
    /// This process and the other ranks no longer wait for each other.
    Left,
}

static STATE: Mutex<State> = Mutex::new(State::NotJoined);

fn state() -> MutexGuard<'static, State> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The launcher's environment; `None` without a launcher, or if the launcher started only this process.
fn launch() -> Option<Launch> {
    let launch = Launch::of(|name| std::env::var(name).ok()).ok().flatten();
    launch.filter(|launch| launch.rank > 0 || launch.size != Some(1))
}

/// Returns true if this is the first of the MPI launcher's processes, or if there is no launcher.
pub(crate) fn is_first() -> bool {
    launch().is_none_or(|launch| launch.rank == 0)
}

/// Makes only the first rank compute, for the reason `why`. Returns true on that rank, which prints a note if other ranks exist.
pub(crate) fn works_alone(why: &str) -> bool {
    *state() = State::Left;
    match launch() {
        Some(Launch { rank: 0, size, .. }) => {
            let size = size.map_or_else(|| "several".to_owned(), |size| size.to_string());
            let _unwritten = writeln!(std::io::stderr(), "note: rank 0 of {size} computes alone: {why}");
            true
        }
        Some(_) => false,
        None => true,
    }
}

/// Joins the other ranks, and returns the world that connects them. Must be called on the thread that evaluates. A second call returns the
/// same world.
///
/// # Errors
/// The errors of [`World::from_environment`].
pub(crate) fn join() -> Result<World, Error> {
    if let State::Joined(world) = &*state() {
        return Ok(world.clone());
    }
    let world = World::from_environment()?;
    *state() = State::Joined(world.clone());
    Ok(world)
}

/// Disconnects from the other ranks. Every rank must call this function. Must be called on the thread that joined, after all clones of the world
/// are dropped.
pub(crate) fn leave() {
    let before = std::mem::replace(&mut *state(), State::Left);
    drop(before);
}

/// Ends the other ranks, after this process failed and reported its failure. If no other rank can be waiting for this process, does nothing.
pub(crate) fn end_all() {
    let before = std::mem::replace(&mut *state(), State::Left);
    match before {
        State::Joined(world) if world.size() > 1 => {
            if let Some(ranks) = world.ranks() {
                ranks.link().abort(1);
            }
        }
        // Launchers wait for the others if a process exits before it has joined, but end them all if a signal ends it.
        State::NotJoined if launch().is_some() => end_by_signal(),
        _ => {}
    }
}

/// Ends this process by a signal.
fn end_by_signal() {
    #[cfg(unix)]
    {
        use rustix::process::{Signal, getpid, kill_process};
        let _unsent = kill_process(getpid(), Signal::KILL);
    }
}
