//! Plans on one thread and on several, by each player that the machine has: none of it changes a bit of what comes out.

use super::{Subject, TensorEngine, differs, only};
use cembra::columns::InputColumn;
use cembra::explain::RowPlayer;
use cembra::tensor::same_bits;
use cembra::{Error, Model, Options, Tensor};
use std::sync::LazyLock;

/// The numbers of threads.
const THREADS: [usize; 3] = [1, 2, 5];

/// The players of this machine, with options for each. One element is worth a thread, so that small tensors have pieces.
static PLAYERS: LazyLock<Vec<(&'static str, Options)>> = LazyLock::new(|| {
    let mut all = Vec::new();
    for player in RowPlayer::ALL {
        let options = Options::default().row_player(player).min_parallel_elements(1);
        // A player that this machine has not refuses.
        let try_it = || Model::parse("input x: f64; x + 1.0")?.batch(&options)?.run(&[InputColumn::values(&[1.0])]);
        if try_it().is_ok() {
            all.push((player.name(), options));
        }
    }
    all
});

/// An error if a session makes something else of inputs than an engine did: by some player, on some number of threads, or when it runs again.
pub(super) fn check(
    on: &TensorEngine,
    subject: Subject<'_>,
    inputs: &[Tensor],
    expected: &Tensor,
) -> Result<(), Error> {
    for (player, options) in &*PLAYERS {
        let executor = subject.compile(&options.clone().reference_order(on.in_order))?;
        for threads in THREADS {
            let mut session = executor.session();
            session.set_threads(threads);
            for run in ["first", "second"] {
                let made = only(session.run_tensors(inputs)?)?;
                if !same_bits(made, expected) {
                    let message = format!("{player} on {threads} threads, {run} run: {made:?}, not {expected:?}");
                    return Err(differs(message));
                }
            }
        }
    }
    Ok(())
}
