//! Tests of the tiered backend's synchronisation, under a scheduler that tries many orders of threads. The tests
//! compile the library's files, with locks and atomics of the scheduler in place of those of the standard library.

#[path = "../src/scalar/tiers/ladder.rs"]
mod ladder;
#[path = "../src/scalar/tiers/queue.rs"]
mod queue;

/// The synchronisation types that the two files use, taken from the scheduler.
mod sync {
    pub(crate) use shuttle::sync::{Condvar, Mutex, MutexGuard, PoisonError, atomic};
    pub(crate) use shuttle::thread;
}

use ladder::{RUNGS, TierList};
use queue::{Job, Queue};
use shuttle::thread;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// The number of thread orders that are tried.
const ORDERS: usize = 5_000;

/// The numbers of events in one run of a test, for all models together.
#[derive(Default)]
struct Tally {
    climbs: AtomicUsize,
    refused: AtomicUsize,
    /// The number of pieces of code that exist.
    live: AtomicUsize,
}

/// The compiled code of a tier. A call must not run code that was dropped.
struct Code {
    rung: usize,
    is_alive: AtomicBool,
    tally: Arc<Tally>,
}

impl Code {
    fn new(rung: usize, tally: &Arc<Tally>) -> Self {
        tally.live.fetch_add(1, Ordering::SeqCst);
        Code { rung, is_alive: AtomicBool::new(true), tally: tally.clone() }
    }

    fn call(&self) {
        // The call takes time, in which other threads run.
        thread::yield_now();
        assert!(self.is_alive.load(Ordering::SeqCst));
    }
}

impl Drop for Code {
    fn drop(&mut self) {
        self.is_alive.store(false, Ordering::SeqCst);
        self.tally.live.fetch_sub(1, Ordering::SeqCst);
    }
}

/// A model with the tiers of the library. The model is compiled once, by the first thread that begins.
struct Model {
    ladder: TierList<Code>,
    by_hand: bool,
    tally: Arc<Tally>,
}

impl Model {
    fn new(calls: u32, by_hand: bool, tally: &Arc<Tally>) -> Arc<Model> {
        Arc::new(Model { ladder: TierList::new(calls), by_hand, tally: tally.clone() })
    }

    fn climb(&self) {
        if !self.ladder.start() {
            return;
        }
        self.tally.climbs.fetch_add(1, Ordering::SeqCst);
        for rung in 1..=RUNGS {
            thread::yield_now();
            self.ladder.add(rung, Code::new(rung, &self.tally));
            if !self.by_hand {
                self.ladder.choose_next();
            }
        }
        self.ladder.finish();
    }

    /// Calls the model and returns the rung (the position of the tier) that ran; 0 for the interpreter.
    fn call(self: &Arc<Self>, queue: &Arc<Queue<Model>>) -> usize {
        match self.ladder.chosen() {
            Some((rung, code)) => {
                assert_eq!(code.rung, rung);
                code.call();
                rung
            }
            None => {
                if self.ladder.count_call() && !self.ladder.request(1, || queue.push(Arc::downgrade(self))) {
                    self.tally.refused.fetch_add(1, Ordering::SeqCst);
                }
                0
            }
        }
    }
}

impl Job for Model {
    fn run(&self) {
        self.climb();
    }
}

#[test]
fn callers_climb_up_and_never_down() {
    shuttle::check_random(
        || {
            let tally = Arc::new(Tally::default());
            let queue = Arc::new(Queue::new(4, 1));
            let model = Model::new(2, false, &tally);
            let threads: Vec<_> = (0..3)
                .map(|_| {
                    let (model, queue) = (model.clone(), queue.clone());
                    thread::spawn(move || {
                        let rungs: Vec<usize> = (0..5).map(|_| model.call(&queue)).collect();
                        assert!(rungs.is_sorted(), "{rungs:?}");
                    })
                })
                .collect();
            for one in threads {
                one.join().unwrap();
            }
            // More than two calls were made, so compiling was requested.
            model.ladder.wait();
            assert!(model.ladder.is_finished());
            assert_eq!((model.call(&queue), tally.climbs.load(Ordering::SeqCst)), (RUNGS, 1));
            assert_eq!(model.ladder.functions().count(), RUNGS);
        },
        ORDERS,
    );
}

#[test]
fn by_hand_every_tier_is_taken_once_whoever_advances() {
    shuttle::check_random(
        || {
            let tally = Arc::new(Tally::default());
            let queue = Arc::new(Queue::new(4, 1));
            let model = Model::new(1, true, &tally);
            let threads: Vec<_> = (0..3)
                .map(|_| {
                    let (model, queue) = (model.clone(), queue.clone());
                    thread::spawn(move || {
                        model.call(&queue);
                        // A thread that waits compiles the model if no other thread has begun.
                        model.climb();
                        model.ladder.wait();
                        let mut swaps = 0;
                        for _ in 0..RUNGS {
                            let (chosen, is_new) = model.ladder.choose_next();
                            swaps += usize::from(is_new);
                            assert!(model.call(&queue) >= chosen);
                        }
                        swaps
                    })
                })
                .collect();
            let swaps: usize = threads.into_iter().map(|one| one.join().unwrap()).sum();
            assert_eq!((swaps, tally.climbs.load(Ordering::SeqCst)), (RUNGS, 1));
        },
        ORDERS,
    );
}

#[test]
fn who_is_refused_asks_again_after_as_many_calls_as_said() {
    let alone = || {
        let ladder = TierList::<()>::new(2);
        assert_eq!([(); 3].map(|()| ladder.count_call()), [false, true, false]);
        assert!(!ladder.request(3, || false));
        assert_eq!([(); 4].map(|()| ladder.count_call()), [false, false, true, false]);
        assert!(ladder.request(3, || true));
        assert!(ladder.request(3, || unreachable!("it was asked for")));
        assert!(!ladder.count_call());
    };
    shuttle::check_random(alone, 1);
}

#[test]
fn what_is_dropped_is_skipped_and_what_is_refused_asks_again() {
    let refused = Arc::new(AtomicUsize::new(0));
    let (skipped, compiled) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let seen = (refused.clone(), skipped.clone(), compiled.clone());
    shuttle::check_random(
        move || {
            let tally = Arc::new(Tally::default());
            let queue = Arc::new(Queue::new(1, 2));
            let threads: Vec<_> = (0..3)
                .map(|_| {
                    let (queue, tally) = (queue.clone(), tally.clone());
                    thread::spawn(move || {
                        let model = Model::new(1, false, &tally);
                        for _ in 0..4 {
                            model.call(&queue);
                        }
                    })
                })
                .collect();
            for one in threads {
                one.join().unwrap();
            }
            // A model that is not dropped is compiled at last, however often the queue refused it.
            let kept = Model::new(1, false, &tally);
            while kept.call(&queue) == 0 {
                thread::yield_now();
            }
            kept.ladder.wait();
            let climbs = tally.climbs.load(Ordering::SeqCst);
            assert!((1..=4).contains(&climbs));
            seen.0.fetch_add(tally.refused.load(Ordering::SeqCst), Ordering::SeqCst);
            seen.1.fetch_add(4 - climbs, Ordering::SeqCst);
            seen.2.fetch_add(climbs, Ordering::SeqCst);
            drop(kept);
            // The threads of the queue end when no job waits, and drop the last references.
            while tally.live.load(Ordering::SeqCst) > 0 {
                thread::yield_now();
            }
        },
        ORDERS,
    );
    // Each of these events has happened in some order of threads.
    assert!(
        refused.load(Ordering::SeqCst) > 0 && skipped.load(Ordering::SeqCst) > 0 && compiled.load(Ordering::SeqCst) > 0
    );
}
