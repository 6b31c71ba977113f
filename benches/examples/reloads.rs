//! How late answers are while models are replaced: two threads ask for quotes of three items, first by hand, then by models of a folder that
//! stay, then by models of which one is replaced each tenth of a second. Nanoseconds, of all quotes of both threads.
//! `cargo run --release --manifest-path benches/Cargo.toml --example reloads [quotes of a thread]`.

use cembra::{Backend, ModelExecutor, ModelSet, Options, Pool};
use example_quote::{MODEL, Order, Quote, by_hand, random};
use std::hint::black_box;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

type Error = Box<dyn std::error::Error + Send + Sync>;

const THREADS: usize = 2;
const ITEMS: usize = 3;
const PAUSE: Duration = Duration::from_millis(100);
const NAMES: [&str; 5] = ["north", "east", "south", "west", "middle"];

/// The answering side: the function by hand, or models, which may be replaced meanwhile.
#[derive(Clone, Copy)]
enum Answers {
    ByHand,
    Models(Backend, bool),
}

/// Writes the model of a name; each version differs from the one before it in a comment.
fn write_model(folder: &Path, name: &str, version: usize) -> std::io::Result<()> {
    std::fs::write(folder.join(format!("{name}.cem")), format!("# version {version}\n{MODEL}"))
}

/// Replaces one model after another until `stop` is set. Returns the number of replaced models.
fn replace(
    folder: &Path,
    set: &ModelSet<Pool<ModelExecutor<Order, Quote>>>,
    stop: &AtomicBool,
) -> Result<usize, Error> {
    let mut replaced = 0;
    while !stop.load(Ordering::Relaxed) {
        std::thread::sleep(PAUSE);
        replaced += 1;
        write_model(folder, NAMES[replaced % NAMES.len()], replaced)?;
        let reload = set.reload()?;
        assert_eq!((reload.replaced.len(), reload.failed.len()), (1, 0));
    }
    Ok(replaced)
}

/// The times of quotes of all threads, sorted, and how many models were replaced.
fn times(answers: Answers, folder: &Path, orders: &[Order], each: usize) -> Result<(Vec<u32>, usize), Error> {
    let (backend, is_replaced) = match answers {
        Answers::ByHand => (Backend::Auto, false),
        Answers::Models(backend, is_replaced) => (backend, is_replaced),
    };
    let set = ModelSet::load_with(folder, move |name, model| {
        model.run_tests(&Options::default()).check()?;
        Ok(Pool::new(model.executor::<Order, Quote>(&Options::default().name(name).backend(backend))?))
    })?;
    let expected: Vec<u64> = orders.iter().map(|order| by_hand::quote(order).total.to_bits()).collect();
    let stop = AtomicBool::new(false);
    let ask = |thread: usize| -> Result<Vec<u32>, Error> {
        let mut times = Vec::with_capacity(each);
        for at in 0..each {
            let row = (at * 7 + thread * 13) % orders.len();
            let begin = Instant::now();
            let quote = match answers {
                Answers::ByHand => by_hand::quote(black_box(&orders[row])),
                Answers::Models(..) => {
                    let pool = set.get(NAMES[at % NAMES.len()]).ok_or("a model is gone")?;
                    pool.with(|executor| executor.run(&orders[row]))?
                }
            };
            times.push(u32::try_from(begin.elapsed().as_nanos()).unwrap_or(u32::MAX));
            assert_eq!(quote.total.to_bits(), expected[row]);
        }
        Ok(times)
    };
    std::thread::scope(|scope| {
        let replaces = is_replaced.then(|| scope.spawn(|| replace(folder, &set, &stop)));
        let ask = &ask;
        let asked: Vec<_> = (0..THREADS).map(|thread| scope.spawn(move || ask(thread))).collect();
        let mut all = Vec::with_capacity(THREADS * each);
        for thread in asked {
            all.extend(thread.join().map_err(|_| "a thread panicked")??);
        }
        stop.store(true, Ordering::Relaxed);
        let replaced = replaces.map_or(Ok(Ok(0)), |thread| thread.join().map_err(|_| "a thread panicked"))??;
        all.sort_unstable();
        Ok((all, replaced))
    })
}

fn main() -> Result<(), Error> {
    let each: usize = std::env::args().nth(1).map_or(Ok(500_000), |each| each.parse())?;
    let folder = tempfile::tempdir()?;
    NAMES.iter().try_for_each(|name| write_model(folder.path(), name, 0))?;
    let mut random = fastrand::Rng::with_seed(3);
    let orders: Vec<Order> = (0..256).map(|_| random::order(&mut random, ITEMS)).collect();
    let mut out = std::io::stdout().lock();
    for (name, answers) in [
        ("by hand", Answers::ByHand),
        ("models that stay", Answers::Models(Backend::Auto, false)),
        ("models replaced, native", Answers::Models(Backend::Auto, true)),
        ("models replaced, tiered", Answers::Models(Backend::Tiered, true)),
        ("models that stay, again", Answers::Models(Backend::Auto, false)),
    ] {
        let (times, replaced) = times(answers, folder.path(), &orders, each)?;
        let at = |share: f64| times[((times.len() as f64 * share) as usize).min(times.len() - 1)];
        let [half, p99, p999, last] = [0.5, 0.99, 0.999, 1.0].map(at);
        let ratio = f64::from(p99) / f64::from(half);
        writeln!(
            out,
            "{name:24} p50 {half:6} p99 {p99:6} ({ratio:4.1} times p50) p99.9 {p999:7} last {last:9}; {replaced} replaced"
        )?;
    }
    Ok(())
}
