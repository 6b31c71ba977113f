//! A running server: its threads, its start, and its end. Connections are in `connections`, requests in `routes`, and the state that they share is in
//! `state`.

use crate::arguments::Settings;
use crate::connections;
use crate::guard::Guard;
use crate::metrics::Metrics;
use crate::models::{Models, Watcher};
use crate::state::{PAGE_WORKERS, Page, Stage, State};
use crate::work::Work;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;

/// A running server. It runs until [`shut_down`](Server::shut_down) is called; dropping the `Server` ends it at once.
pub struct Server {
    runtime: Runtime,
    address: SocketAddr,
    state: Arc<State>,
    accepting: tokio::task::JoinHandle<()>,
    _watcher: Watcher,
}

impl Server {
    /// Binds the address, starts the threads, and begins to read the models. When this function returns, requests are accepted; a model answers
    /// requests once it is compiled.
    ///
    /// # Errors
    /// If the folder cannot be read or the address cannot be bound.
    pub fn start(settings: Settings) -> io::Result<Server> {
        let folder = &settings.arguments.folder;
        std::fs::read_dir(folder).map_err(|error| {
            io::Error::new(error.kind(), format!("the folder `{}` cannot be read: {error}", folder.display()))
        })?;
        let settings = Arc::new(settings);
        let streams = Work::most_streams(&settings);
        let runtime = Builder::new_multi_thread()
            .worker_threads(settings.threads)
            // Streams, rows that take long, and the page; names of hosts and files are never looked up.
            .max_blocking_threads(streams + settings.threads + PAGE_WORKERS)
            .thread_name("serve")
            .enable_all()
            .build()?;
        let listen = settings.arguments.listen;
        let bound = runtime.block_on(TcpListener::bind(listen));
        let listener = bound
            .map_err(|error| io::Error::new(error.kind(), format!("--listen {listen} cannot be bound: {error}")))?;
        let address = listener.local_addr()?;
        let metrics = Arc::new(Metrics::new());
        let models = Arc::new(Models::new(settings.clone(), metrics.clone()));
        let page = (!settings.arguments.no_page).then(Page::new).transpose()?;
        let state = Arc::new(State {
            guard: Guard::new(&settings, address.port()),
            work: Work::new(&settings, streams),
            models: models.clone(),
            metrics,
            page,
            stage: watch::Sender::new(Stage::Runs),
            settings,
        });
        let watcher = Watcher::start(models)?;
        let accepting = runtime.spawn(connections::accept(listener, state.clone()));
        Ok(Server { runtime, address, state, accepting, _watcher: watcher })
    }

    /// The address that the server listens on, with the port that the system chose for port 0.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Begins to end the server: new connections are not accepted any more, and requests that have arrived are still answered.
    pub fn shut_down(&self) {
        self.state.stage.send_if_modified(|stage| {
            let runs = *stage == Stage::Runs;
            *stage = (*stage).max(Stage::Drains);
            runs
        });
    }

    /// Waits until [`shut_down`](Server::shut_down) was called and all requests are answered.
    pub fn wait(self) {
        let Server { runtime, accepting, .. } = self;
        // The task ends after the last connection. It is only cancelled with the runtime.
        let _ended = runtime.block_on(accepting);
        runtime.shutdown_background();
    }

    /// Waits for SIGTERM or SIGINT, and then ends the server as [`shut_down`](Server::shut_down) and [`wait`](Server::wait) do. A second
    /// signal ends the process at once.
    ///
    /// # Errors
    /// If the signals cannot be received.
    pub fn run_until_signal(self) -> io::Result<()> {
        let mut signals = {
            let _inside = self.runtime.enter();
            Signals::new()?
        };
        self.runtime.block_on(signals.next());
        tracing::info!("ends after the requests in progress; another signal ends it at once");
        self.shut_down();
        self.runtime.spawn(async move {
            signals.next().await;
            tracing::warn!("ends at once");
            std::process::exit(1);
        });
        self.wait();
        Ok(())
    }
}

/// The signals that end a server.
#[cfg(unix)]
struct Signals(tokio::signal::unix::Signal, tokio::signal::unix::Signal);

#[cfg(unix)]
impl Signals {
    fn new() -> io::Result<Signals> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Signals(signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?))
    }

    async fn next(&mut self) {
        tokio::select! { _ = self.0.recv() => {}, _ = self.1.recv() => {} }
    }
}

/// The signal that ends a server: Control-C.
#[cfg(not(unix))]
struct Signals;

#[cfg(not(unix))]
impl Signals {
    fn new() -> io::Result<Signals> {
        Ok(Signals)
    }

    async fn next(&mut self) {
        if tokio::signal::ctrl_c().await.is_err() {
            // Without the signal, the server runs until its process is ended.
            std::future::pending::<()>().await;
        }
    }
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server").field("address", &self.address).finish_non_exhaustive()
    }
}
