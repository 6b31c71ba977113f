//! Plans on one thread and on several, by each player that the machine has: none of it changes a bit of what comes out.

use cembra::tensor::{Error, ErrorKind, Evaluator, Graph, NodeId, Tensor, same_bits};
use cembra::{Model, Options, RowPlayer};
use std::sync::LazyLock;

/// The numbers of threads.
const THREADS: [usize; 3] = [1, 2, 5];

/// An evaluator for each player and number of threads. One element is worth a thread, so that there are pieces of what is small.
static EVALUATORS: LazyLock<Vec<(String, Evaluator)>> = LazyLock::new(|| {
    let mut all = Vec::new();
    for player in RowPlayer::ALL {
        let options = Options::default().row_player(player);
        // A player that this machine has not refuses.
        let is_there =
            || Model::parse("input x: f64; x + 1.0")?.batch(&options)?.run(&[cembra::InputColumn::values(&[1.0])]);
        if is_there().is_err() {
            continue;
        }
        for threads in THREADS {
            let name = format!("{} on {threads} threads", player.name());
            all.push((name, Evaluator::new(&options).threads(threads).share(1)));
        }
    }
    all
});

/// An error if a plan makes something else of inputs by some player, on some number of threads, or when it is run again.
pub(super) fn check(graph: &Graph, output: NodeId, inputs: &[Tensor], expected: &Tensor) -> Result<(), Error> {
    for (name, evaluator) in &*EVALUATORS {
        let planned = evaluator.plan(graph, &[output])?;
        for run in ["first", "second"] {
            let made = planned.run(inputs)?;
            if made.len() != 1 || !same_bits(&made[0], expected) {
                let message = format!("{name}, {run} run: {made:?}, not {expected:?}");
                return Err(Error::new(ErrorKind::Evaluation, message));
            }
        }
    }
    Ok(())
}
