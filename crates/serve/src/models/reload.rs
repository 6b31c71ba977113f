//! The thread that reads the folder of models again: shortly after a file changed, and also every few seconds, because a network file system may not
//! report changes. This thread compiles the models, so requests never wait for a compilation.

use super::Models;
use notify::event::{AccessKind, AccessMode, EventKind};
use notify::{RecursiveMode, Watcher as _};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};
use tracing::{error, info, warn};

/// The time without further events after which the folder is read.
const QUIET: Duration = Duration::from_millis(100);

/// The most time from the first event to reading the folder.
const LONGEST_WAIT: Duration = Duration::from_secs(1);

/// The time between two looks at the folder without an event.
const RESCAN: Duration = Duration::from_secs(3);

/// The most files and folders that a look at the folder compares.
const MOST_ENTRIES: usize = 20_000;

/// A message to the thread.
enum Message {
    Changed,
    Stop,
}

/// The thread that keeps the models up to date. The thread ends when the `Watcher` is dropped.
pub(crate) struct Watcher {
    to_thread: Sender<Message>,
    thread: Option<JoinHandle<()>>,
}

impl Watcher {
    /// Starts the thread, which reads the folder of models at once.
    pub(crate) fn start(models: Arc<Models>) -> std::io::Result<Watcher> {
        let (to_thread, messages) = channel();
        let events = to_thread.clone();
        let work = move || watch(&models, &messages, events);
        let thread = std::thread::Builder::new().name("reload".to_owned()).spawn(work)?;
        Ok(Watcher { to_thread, thread: Some(thread) })
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        // The thread is gone already if nothing receives the message.
        let _gone = self.to_thread.send(Message::Stop);
        if let Some(thread) = self.thread.take() {
            let _panicked = thread.join();
        }
    }
}

fn watch(models: &Models, messages: &Receiver<Message>, events: Sender<Message>) {
    let folder = &models.settings.arguments.folder;
    let watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
        let is_change = event.is_ok_and(|event| match event.kind {
            // Reading the files causes events, too.
            EventKind::Access(AccessKind::Close(AccessMode::Write)) => true,
            EventKind::Access(_) => false,
            _ => true,
        });
        if is_change {
            let _stopped = events.send(Message::Changed);
        }
    });
    // The watcher is in place before the first reading, so no change between the two is lost.
    let _watcher = watcher
        .and_then(|mut watcher| {
            watcher.watch(folder, RecursiveMode::Recursive)?;
            Ok(watcher)
        })
        .inspect_err(|error| warn!("the folder is not watched, and read every {RESCAN:?} instead: {error}"));
    let mut seen = state(folder);
    reload(models);
    loop {
        match messages.recv_timeout(RESCAN) {
            Ok(Message::Changed) => {
                if !wait_for_quiet(messages) {
                    return;
                }
                seen = state(folder);
                reload(models);
            }
            Err(RecvTimeoutError::Timeout) => {
                let now = state(folder);
                if now != seen || !models.are_loaded() {
                    seen = now;
                    reload(models);
                }
            }
            Ok(Message::Stop) | Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

/// Waits until no event arrives for a while. Returns false if the thread must stop.
fn wait_for_quiet(messages: &Receiver<Message>) -> bool {
    let start = Instant::now();
    while start.elapsed() < LONGEST_WAIT {
        match messages.recv_timeout(QUIET) {
            Ok(Message::Changed) => {}
            Ok(Message::Stop) | Err(RecvTimeoutError::Disconnected) => return false,
            Err(RecvTimeoutError::Timeout) => break,
        }
    }
    true
}

fn reload(models: &Models) {
    match models.reload() {
        Ok(lines) => lines.iter().for_each(|line| info!("{line}")),
        Err(problem) => error!("the models stay as they are: {problem}"),
    }
}

/// The files of a folder and its subfolders, with their sizes and times of change. `None` if they cannot be read.
fn state(folder: &Path) -> Option<Vec<(std::path::PathBuf, u64, SystemTime)>> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).ok()?.flatten() {
            // Follows links, as the models do.
            let Ok(known) = std::fs::metadata(entry.path()) else { continue };
            // A link to a folder may lead in a circle.
            if known.is_dir() && entry.file_type().is_ok_and(|own| own.is_dir()) {
                folders.push(entry.path());
            }
            let changed = known.modified().unwrap_or(SystemTime::UNIX_EPOCH);
            found.push((entry.path(), known.len(), changed));
            if found.len() > MOST_ENTRIES {
                return Some(found);
            }
        }
    }
    found.sort();
    Some(found)
}
