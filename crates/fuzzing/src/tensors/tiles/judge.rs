//! Checks the laws for programs on tiled tensors:
//!
//! - The value of each operation follows from the values of its operands, up to the rounding of sums in any order. A tile of the value is absent
//!   exactly if absent tiles of the operands imply it, or if its norm is below the threshold. The stored norm of each tile is the norm of its
//!   elements.
//! - Bits, norms, tiles and errors do not depend on threads, ranks, blocks, byte limits, reused memory, the backend, or whether tiles are stored or
//!   computed on demand. Input tensors do not change.
//! - A plan has the same steps as the evaluation, and the same errors about limits.
//!
//! A program that breaks a law is reduced: to one output, and as few tiles as possible.

use super::estimates;
use super::meaning::{self, Meaning, Origin, Value, floats, is_zero};
use super::operands::{ALL, FailingTiles, LazyTensor, Promise, TiledContents, norm_of, positions};
use super::program::{Outcome, Program, RequestedNodes, failed};
use crate::config::pick;
use crate::tensors::Finding;
use crate::tensors::cuts::{is_elementwise, whole};
use crate::tensors::graphs::Case;
use crate::tensors::judge::shown;
use crate::tensors::tiles::TileReport;
use cembra::tensor::{Tensor, TensorErrorKind, TensorNodeId, same_bits};
use cembra::{Backend, Error, Options};
use cembra_tensor::{Elements, Operation};
use cembra_tiles::link::Link;
use cembra_tiles::{Journal, Shape, Tiled};
use fastrand::Rng;
use std::sync::Arc;

/// The most smaller programs that are tried.
const MOST_TRIES: usize = 300;

/// The evaluators that judge programs on tiled tensors, and the statistics of the run.
pub(super) struct TileJudge {
    interpreter: cembra_engine::Evaluator,
    native: cembra_engine::Evaluator,
    /// The link to the processes that try the same programs together with this one, as ranks; `None` if this process runs alone.
    link: Option<Arc<dyn Link>>,
    pub(super) report: TileReport,
}

/// A law (property that must hold) that a program on tiled tensors breaks.
#[derive(Clone, Debug)]
pub(super) struct BrokenLaw {
    pub(super) what: String,
    pub(super) detail: String,
}

impl BrokenLaw {
    pub(super) fn new(what: impl Into<String>, detail: impl Into<String>) -> BrokenLaw {
        BrokenLaw { what: what.into(), detail: detail.into() }
    }
}

/// The reason why a check of a law ends early.
#[derive(Debug)]
pub(super) enum CheckError {
    /// The law that is checked is broken.
    Wrong(BrokenLaw),
    /// The value to check could not be computed.
    Other(Error),
}

impl From<BrokenLaw> for CheckError {
    fn from(wrong: BrokenLaw) -> CheckError {
        CheckError::Wrong(wrong)
    }
}

impl From<Error> for CheckError {
    fn from(error: Error) -> CheckError {
        CheckError::Other(error)
    }
}

/// The result of checking a law: success, a broken law, or an error that prevented the check.
pub(super) type Checked = Result<(), CheckError>;

/// Returns the broken law, if the check `checked` found one.
///
/// # Errors
/// If the value to check could not be computed.
pub(super) fn wrong_of(checked: Checked) -> Result<Option<BrokenLaw>, Error> {
    match checked {
        Ok(()) => Ok(None),
        Err(CheckError::Wrong(wrong)) => Ok(Some(wrong)),
        Err(CheckError::Other(error)) => Err(error),
    }
}

impl TileJudge {
    pub(super) fn new(link: Option<Arc<dyn Link>>) -> TileJudge {
        let [interpreter, native] = [Backend::Interpreter, Backend::Native]
            .map(|backend| cembra_engine::Evaluator::new(&Options::default().backend(backend)));
        TileJudge { interpreter, native, link, report: TileReport::default() }
    }

    /// Returns the interpreter, for the evaluation of expressions on elements. The interpreter computes one operator after the other.
    pub(super) fn host(&self) -> impl Elements {
        self.interpreter.host()
    }

    /// Returns the law that `program` breaks, with a smaller program that breaks the same law, if one was found; `None` if all laws hold.
    pub(super) fn judge(&mut self, program: &Program) -> Result<Option<Finding>, Error> {
        wrong_of(self.check(program))?.map(|wrong| self.shown(program, wrong)).transpose()
    }

    /// Checks all laws for a program.
    fn check(&mut self, program: &Program) -> Checked {
        let random = &mut Rng::with_seed(program.settings.seed);
        let before = program.inputs.iter().map(TiledContents::of).collect::<Result<Vec<TiledContents>, Error>>()?;
        for asked in [RequestedNodes::Each, RequestedNodes::Made] {
            self.check_meaning(program, asked)?;
        }
        if program.settings.least() == 0.0 && program.is_grouped_alike() {
            let run = program.settings.evaluator(program.settings.options());
            let (all, outputs) = (program.asked(RequestedNodes::Made), program.asked(RequestedNodes::Outputs));
            let whole = program.outcome(&run, &all, &self.interpreter.host());
            let part = |whole: Vec<TiledContents>| {
                let pairs = all.iter().zip(whole).filter(|(id, _)| outputs.contains(id));
                pairs.map(|(_, seen)| seen).collect::<Vec<TiledContents>>()
            };
            let (expected, found) = (whole.map(part), program.outcome(&run, &outputs, &self.interpreter.host()));
            if found != expected {
                let detail = first_difference(&expected, &found);
                return Err(BrokenLaw::new("what else is asked for changes a value", detail).into());
            }
        }
        let asked = *pick(random, &[RequestedNodes::Each, RequestedNodes::Made, RequestedNodes::Outputs]);
        self.check_ways(program, asked, random)?;
        self.check_errors(program, asked, random)?;
        self.check_plan(program, asked, random)?;
        let after = program.inputs.iter().map(TiledContents::of).collect::<Result<Vec<TiledContents>, Error>>()?;
        if before == after { Ok(()) } else { Err(BrokenLaw::new("a tensor that is given changes", "").into()) }
    }

    /// Compares the value of each requested node with its meaning.
    fn check_meaning(&mut self, program: &Program, asked: RequestedNodes) -> Checked {
        let (graph, nodes) = (&program.graph, program.asked(asked));
        let host = self.interpreter.host();
        let inputs: Vec<&Tiled> = program.inputs.iter().collect();
        let made = program.settings.evaluator(program.settings.options()).evaluate(graph, &nodes, &inputs, &host);
        let (needed, cuts) = (graph.needed(&program.outputs), program.cuts(&nodes));
        let refused = graph.nodes().map(|(id, _)| id).find(|id| needed[id.index()] && cuts.of(*id).is_none());
        let made = match (made, refused) {
            (Ok(made), None) => made,
            (Ok(_), Some(node)) => {
                return Err(
                    BrokenLaw::new("what is to be refused is evaluated", format!("node {}", node.index())).into()
                );
            }
            (Err(error), None) => {
                return Err(BrokenLaw::new("what is cut alike is refused", format!("{error} {asked:?}")).into());
            }
            (Err(error), Some(_)) => {
                use TensorErrorKind::{ElementType, SizeMismatch, Tiling};
                let kind = error.tensor_kind();
                if asked == RequestedNodes::Made {
                    self.report.refused += 1;
                    self.report.unlike += u64::from(kind == Some(SizeMismatch));
                }
                return match kind {
                    Some(ElementType | SizeMismatch | Tiling) => Ok(()),
                    _ => Err(BrokenLaw::new("what is refused has another error", error.to_string()).into()),
                };
            }
        };
        self.report.evaluated += u64::from(asked == RequestedNodes::Made);
        let mut values: Vec<Option<Value>> = vec![None; graph.len()];
        // The values that are constant along an axis, which expressions compute again.
        let mut free: Vec<Option<Value>> = vec![None; graph.len()];
        for (id, node) in graph.nodes().filter(|(id, _)| needed[id.index()]) {
            let place = nodes.iter().position(|asked| *asked == id);
            if let Operation::Leaf(at) = node.operation {
                values[id.index()] = Some(value_of(&program.inputs[at as usize])?);
                continue;
            }
            let is_computed_again = |id: &TensorNodeId| is_elementwise(graph, node) && cuts.is_free(graph, *id);
            let value = |id: &TensorNodeId| match is_computed_again(id) {
                true => free[id.index()].as_ref(),
                false => values[id.index()].as_ref(),
            };
            let operands: Option<Vec<&Value>> = node.read().iter().map(value).collect();
            let number = |operand: &TensorNodeId| match graph.node(*operand).operation {
                Operation::Constant(bits) if !nodes.contains(operand) => Some(bits),
                _ => None,
            };
            let numbers: Vec<Option<u64>> = node.read().iter().map(number).collect();
            let meaning = meaning::of_node(node, &operands.unwrap_or_default(), &numbers, &host)?;
            let Some(meaning) = meaning else {
                return Err(BrokenLaw::new("an operation that tiled tensors do not have is evaluated", "").into());
            };
            free[id.index()] = cuts.is_free(graph, id).then(|| meaning.value.clone());
            let Some(place) = place else {
                values[id.index()] = Some(meaning.value);
                continue;
            };
            self.report.values += 1;
            let (tiled, own) = (&made[place], cuts.of(id).map(|cuts| whole(cuts, &node.extents)).unwrap_or_default());
            let is_cut_so = tiled
                .tiling()
                .axes()
                .iter()
                .zip(&own)
                .zip(&node.extents)
                .all(|((axis, cut), extent)| *extent == 1 || cut.as_ref() == Some(axis));
            if tiled.tiling().rank() != own.len() || tiled.scalar_type() != node.scalar || !is_cut_so {
                let detail = format!("found {:?} of {}, expected {own:?}", tiled.tiling(), tiled.scalar_type().name());
                return Err(BrokenLaw::new("a value is cut at other boundaries", detail).into());
            }
            let contents = TiledContents::of(tiled)?;
            if let Some(wrong) = wrong_of(check_value(&contents, &meaning, program.settings.least()))? {
                let detail = format!("node {} of {asked:?}: {}", id.index(), wrong.detail);
                return Err(BrokenLaw { detail, ..wrong }.into());
            }
            // Operators that are requested separately are estimated separately.
            let of_inputs = |operand: &TensorNodeId| match graph.node(*operand).operation {
                Operation::Leaf(at) => program.inputs.get(at as usize),
                _ => made.get(nodes.iter().position(|asked| asked == operand)?),
            };
            let operands: Option<Vec<&Tiled>> = node.read().iter().map(of_inputs).collect();
            let is_estimated =
                asked == RequestedNodes::Each && !node.extents.is_empty() && !node.read().iter().any(is_computed_again);
            let estimates = operands.filter(|_| is_estimated);
            for (tile, estimate) in estimates.and_then(|of| estimates::of_node(node, &of)).into_iter().flatten() {
                let least = program.settings.least();
                if estimate < least * (1.0 - 1e-9) && tiled.shape().norm(tile).is_some() {
                    let detail = format!("node {}, tile {tile}: {estimate:e}, the threshold is {least:e}", id.index());
                    return Err(
                        BrokenLaw::new("a tile is present whose estimate is below the threshold", detail).into()
                    );
                }
            }
            values[id.index()] = Some(value_of(tiled)?);
        }
        Ok(())
    }

    /// Checks that other evaluations give results with equal bits: with other numbers of threads and ranks, other block sizes, machine code, or lazy
    /// tiles.
    fn check_ways(&self, program: &Program, asked: RequestedNodes, random: &mut Rng) -> Checked {
        let nodes = program.asked(asked);
        let (host, native) = (self.interpreter.host(), self.native.host());
        let options = || program.settings.options();
        let run = program.settings.evaluator(options());
        let expected = program.outcome(&run, &nodes, &host);
        let is_same = |found: &Outcome| match (found, &expected) {
            (Err(found), Err(expected)) => found.0 == expected.0,
            (found, expected) => found == expected,
        };
        let check = |is_same: bool, by: &str, found: &Outcome| {
            if is_same {
                return Ok(());
            }
            let detail = format!("{asked:?}, by {by}: {}", first_difference(&expected, found));
            Err(CheckError::from(BrokenLaw::new(format!("{by} change a value"), detail)))
        };
        // This evaluation reuses the memory of dropped values.
        let again = program.outcome(&run, &nodes, &host);
        check(again == expected, "values before it", &again)?;
        for (threads, block_bytes) in [(2, *pick(random, &[0, 64])), (5, *pick(random, &[0, 100, 1000])), (1, 0)] {
            let run = program.settings.evaluator(options().block_bytes(block_bytes)).threads(threads);
            let found = program.outcome(&run, &nodes, &host);
            let by = format!("{threads} threads with blocks of {block_bytes} bytes");
            check(found == expected, &by, &found)?;
        }
        let found = program.outcome(&program.settings.evaluator(options()).most_bytes(1 << 40), &nodes, &native);
        check(is_same(&found), "machine code", &found)?;
        let threads = *pick(random, &[1, 2, 5]);
        let run = program.settings.evaluator(options().block_bytes(*pick(random, &[0, 1 << 20]))).threads(threads);
        let (found, counts) = program.lazy_outcome(&run, &nodes, Promise::True, None, &host)?;
        check(is_same(&found), "tiles that are made on demand", &found)?;
        if asked != RequestedNodes::Outputs && found.is_ok() {
            let over = counts.iter().zip(program.reads(&nodes)).enumerate();
            if let Some((leaf, (count, most))) =
                over.into_iter().find(|(_, (count, most))| most.is_some_and(|most| **count > most))
            {
                let detail = format!("{asked:?}: leaf {leaf}, {count} times, though it is read {most:?} times");
                return Err(BrokenLaw::new("a tile is asked for more often than it is read", detail).into());
            }
        }
        let size = *pick(random, &[2, 3, 4, 6]);
        let threads = *pick(random, &[1, 2, 5]);
        let on_ranks = program.settings.evaluator(options().block_bytes(*pick(random, &[0, 1 << 20]))).threads(threads);
        for (rank, found) in program
            .on_ranks(size, self.link.as_ref(), &on_ranks, &nodes, &|| self.interpreter.host())
            .iter()
            .enumerate()
        {
            check(is_same(found), &format!("{size} ranks, as rank {rank} has it,"), found)?;
        }
        // Unknown norms keep all tiles, like a threshold of 0.
        if program.settings.least() == 0.0 {
            let (found, _) = program.lazy_outcome(&run, &nodes, Promise::Unknown, None, &host)?;
            let (Ok(found), Ok(expected)) = (&found, &expected) else {
                return check(is_same(&found), "norms that are not known", &found);
            };
            for ((found, expected), id) in found.iter().zip(expected).zip(&nodes) {
                if found.tiles != expected.tiles || found.elements != expected.elements {
                    let detail = format!("node {} of {asked:?}", id.index());
                    return Err(BrokenLaw::new("norms that are not known change a value", detail).into());
                }
                if let Some(detail) = found.wrong_norm() {
                    let detail = format!(
                        "node {} of {asked:?}, of operands with norms that are not known: {detail}",
                        id.index()
                    );
                    return Err(BrokenLaw::new("a norm is not that of the elements", detail).into());
                }
            }
        }
        Ok(())
    }

    /// Checks that an evaluation that fails has the same error with any number of threads.
    fn check_errors(&self, program: &Program, asked: RequestedNodes, random: &mut Rng) -> Checked {
        let nodes = program.asked(asked);
        let host = self.interpreter.host();
        let run = |threads: usize, most_bytes: usize| {
            let options = program.settings.options().block_bytes(64);
            program.settings.evaluator(options).threads(threads).most_bytes(most_bytes)
        };
        let check = |is_same: bool, what: &str, by: &str, a: &Outcome, b: &Outcome| {
            let wrong = || BrokenLaw::new(what, format!("{asked:?}, {by}: {}", first_difference(a, b)));
            if is_same { Ok(()) } else { Err(CheckError::from(wrong())) }
        };
        if random.u32(..3) == 0 {
            let each = random.u64(1..5);
            let failing = Some(FailingTiles { each, first: random.u64(..each) });
            let (expected, _) = program.lazy_outcome(&run(1, usize::MAX), &nodes, Promise::True, failing, &host)?;
            for threads in [2, 5] {
                let (found, _) =
                    program.lazy_outcome(&run(threads, usize::MAX), &nodes, Promise::True, failing, &host)?;
                let (what, by) = ("threads change which tile fails", format!("on {threads} threads"));
                check(expected == found, what, &by, &expected, &found)?;
            }
        }
        if random.u32(..4) == 0 {
            let most = *pick(random, &[0, 8, 64, 200, 1000, 5000]);
            let enough = program.outcome(&run(1, usize::MAX), &nodes, &host);
            let expected = program.outcome(&run(1, most), &nodes, &host);
            let (what, by) = ("few bytes change a value", format!("{most} bytes"));
            check(expected.is_err() || expected == enough, what, &by, &enough, &expected)?;
            let (lazy, _) = program.lazy_outcome(&run(1, most), &nodes, Promise::True, None, &host)?;
            check(lazy.is_err() || lazy == enough, what, &format!("{by}, lazy tiles"), &enough, &lazy)?;
            for threads in [2, 5] {
                let found = program.outcome(&run(threads, most), &nodes, &host);
                let (found_lazy, _) = program.lazy_outcome(&run(threads, most), &nodes, Promise::True, None, &host)?;
                let (what, by) = ("threads change what few bytes come to", format!("on {threads} threads"));
                check(expected == found, what, &by, &expected, &found)?;
                check(lazy == found_lazy, what, &by, &lazy, &found_lazy)?;
            }
        }
        Ok(())
    }

    /// Compares a plan with the recorded steps of the evaluation. With a threshold, a plan has estimates instead of norms, so this does nothing.
    fn check_plan(&self, program: &Program, asked: RequestedNodes, random: &mut Rng) -> Checked {
        if program.settings.least() > 0.0 {
            return Ok(());
        }
        let (nodes, host) = (program.asked(asked), self.interpreter.host());
        let promise = *pick(random, &[Promise::True, Promise::Unknown]);
        let lazy = |of: &Tiled| (random.u32(..3) == 0).then(|| LazyTensor::of(of, promise, None)).transpose();
        let lazies = program.inputs.iter().map(lazy).collect::<Result<Vec<Option<LazyTensor>>, Error>>()?;
        let inputs = program.inputs.iter().zip(&lazies);
        let inputs: Vec<&Tiled> =
            inputs.map(|(stored, lazy)| lazy.as_ref().map_or(stored, |lazy| &lazy.tiled)).collect();
        let most = *pick(random, &[usize::MAX, usize::MAX, 0, 64, 200, 1000, 5000]);
        let journal = Journal::default();
        let options = program.settings.options().block_bytes(*pick(random, &[0, 100, 1 << 20]));
        let run = program.settings.evaluator(options).most_bytes(most).journal(journal.clone());
        let made = run.evaluate(&program.graph, &nodes, &inputs, &host).map(|_| journal.steps());
        let planned = run.plan_graph(&program.graph, &nodes, &inputs, &host);
        let (made, planned) = (made.map_err(|error| failed(&error)), planned.map_err(|error| failed(&error)));
        // A failing element is only found when it is computed.
        if made == planned || matches!(made, Err((Some(TensorErrorKind::Evaluation), ..))) {
            return Ok(());
        }
        let detail = format!("{asked:?}, {most} bytes: the evaluation {made:?}, the plan {planned:?}");
        Err(BrokenLaw::new("a plan has other steps than the evaluation", detail).into())
    }

    /// Returns the finding for the first node that breaks the law, with as few tiles as possible.
    fn shown(&mut self, program: &Program, wrong: BrokenLaw) -> Result<Finding, Error> {
        let report = self.report.clone();
        let (mut program, mut wrong) = (program.clone(), wrong);
        let mut tries = MOST_TRIES;
        let mut is_taken = |judge: &mut TileJudge, smaller: Program, program: &mut Program, wrong: &mut BrokenLaw| {
            tries = tries.saturating_sub(1);
            match judge.check(&smaller) {
                Err(CheckError::Wrong(found)) if found.what == wrong.what && tries > 0 => {
                    (*program, *wrong) = (smaller, found);
                    true
                }
                _ => false,
            }
        };
        let nodes = program.graph.nodes().filter(|(_, node)| node.scalar.is_float());
        for id in nodes.map(|(id, _)| id).collect::<Vec<TensorNodeId>>() {
            let smaller = Program { outputs: vec![id], ..program.clone() };
            if is_taken(self, smaller, &mut program, &mut wrong) {
                break;
            }
        }
        for at in 0..program.inputs.len() {
            for tile in program.inputs[at].shape().tiles().to_vec() {
                let of = &program.inputs[at];
                let others = of.shape().iter().filter(|(number, _)| *number != tile);
                let without = of.masked(&Shape::of_norms(of.tiling(), others.collect::<Vec<_>>(), &ALL)?)?;
                let mut smaller = program.clone();
                smaller.inputs[at] = without;
                is_taken(self, smaller, &mut program, &mut wrong);
            }
        }
        self.report = report;
        let dense = program.inputs.iter().map(Tiled::to_tensor).collect::<Result<Vec<Tensor>, Error>>()?;
        let last = program.outputs.clone();
        let case = Case { graph: program.graph.clone(), inputs: dense, outputs: program.outputs.clone() };
        let mut finding = shown(&case, &wrong.what, |node| last.len() == 1 && node == last[0]);
        for (leaf, input) in program.graph.leaves().iter().zip(&program.inputs) {
            let (tiling, tiles) = (input.tiling(), input.shape().tiles());
            finding.text += &format!("leaf {} is cut at {tiling:?}, tiles {tiles:?} are present\n", leaf.node.index());
        }
        finding.text += &format!("{:?}\n{}", program.settings, wrong.detail);
        Ok(finding)
    }
}

/// Describes the first difference between two outcomes.
fn first_difference(expected: &Outcome, found: &Outcome) -> String {
    let (Ok(a), Ok(b)) = (expected, found) else {
        let shown = |of: &Outcome| {
            of.as_ref().map_or_else(|error| format!("{error:?}"), |values| format!("{} values", values.len()))
        };
        return format!("{} for {}", shown(found), shown(expected));
    };
    let Some(at) = (0..a.len()).find(|at| a.get(*at) != b.get(*at)) else {
        return "as many values as are asked for".to_owned();
    };
    let (a, b) = (&a[at], &b[at]);
    if a.tiles != b.tiles {
        return format!("value {at} has tiles {:?} for {:?}", b.tiles, a.tiles);
    }
    for (tile, (a, b)) in a.tiles.iter().zip(a.elements.iter().zip(&b.elements)) {
        if let Some(element) = (0..a.len()).find(|element| a.get(*element) != b.get(*element)) {
            let [a, b] = [a, b].map(|elements| elements.get(element).map(|bits| f64::from_bits(*bits)));
            return format!("value {at}, tile {tile}, element {element}: {b:?} for {a:?}");
        }
    }
    format!("value {at} has norms {:?} for {:?}", numbers(&b.norms), numbers(&a.norms))
}

fn numbers(bits: &[u64]) -> Vec<f64> {
    bits.iter().map(|bits| f64::from_bits(*bits)).collect()
}

/// Returns the elements of the tiled tensor `tiled`, and for each element whether its tile is present.
pub(super) fn value_of(tiled: &Tiled) -> Result<Value, Error> {
    let elements = tiled.to_tensor()?;
    let mut origins = vec![Origin::Absent; elements.layout().len()];
    for number in tiled.shape().tiles() {
        positions(tiled.tiling(), *number).into_iter().for_each(|at| origins[at] = Origin::Present);
    }
    Value::new(elements, &origins)
}

/// Checks that the norms in `found` are the norms of its elements. `place` names the value in messages.
pub(super) fn check_norms(place: &str, found: &TiledContents) -> Checked {
    let wrong = |detail| BrokenLaw::new(format!("{place}a norm is not that of the elements"), detail);
    found.wrong_norm().map_or(Ok(()), |detail| Err(wrong(detail).into()))
}

/// Compares a tiled value with its meaning. Tiles whose norms are below the threshold may be absent.
fn check_value(found: &TiledContents, meaning: &Meaning, least: f64) -> Checked {
    check_norms("", found)?;
    let (expected, origins) = (meaning.value.floats()?, meaning.value.origins()?);
    let is_number = found.tiling.rank() == 0;
    let slack = meaning.screened * least;
    for number in (0..found.tiling.tiles()).filter(|number| found.tiling.volume(*number) > 0.0) {
        let positions = positions(&found.tiling, number);
        let is_nothing = |at: &usize| match origins[*at] {
            Origin::Absent => true,
            Origin::Number { .. } => is_zero(cembra::Scalar::Float64, expected[*at].to_bits()),
            Origin::Present => false,
        };
        let is_present = !positions.iter().all(is_nothing);
        let Some(elements) = found.tile(number) else {
            if !is_present {
                continue;
            }
            let own: Vec<f64> = positions.iter().map(|at| expected[*at]).collect();
            let apart = positions.iter().map(|at| meaning.distance(*at)).fold(0.0, f64::max);
            let norm = norm_of(&own);
            // A number is never dropped because of its own norm.
            let is_small = !is_number && least > 0.0 && norm < least * (1.0 + 1e-6) + apart;
            let is_lost = slack > 0.0 && own.iter().all(|element| element.abs() <= slack + apart);
            if is_small || is_lost || (apart.is_infinite() && least > 0.0) {
                continue;
            }
            let detail = format!(
                "tile {number} is absent, its elements have a norm of {norm:e}, and the threshold is {least:e}"
            );
            return Err(BrokenLaw::new("a tile is left out", detail).into());
        };
        if !is_present {
            let detail = format!("tile {number} has {elements:?}");
            return Err(BrokenLaw::new("a tile is present that is to be absent", detail).into());
        }
        for (at, found) in positions.iter().zip(elements) {
            let (expected, apart) = (expected[*at], meaning.distance(*at));
            let is_same = found == expected || (found.is_nan() && expected.is_nan());
            let is_near = (found - expected).abs() <= apart + slack;
            if !(is_same || is_near || apart.is_infinite()) {
                let detail =
                    format!("element {at}: {found:e} for {expected:e}, which may be {:e} apart", apart + slack);
                return Err(BrokenLaw::new("an operation does not give what it means", detail).into());
            }
        }
    }
    Ok(())
}

/// Checks that the elements of `found` equal `expected`, whichever tiles are present. The signs of zeros are ignored. `place` names the value in
/// messages.
pub(super) fn check_bits(place: &str, found: &Tiled, expected: &Tensor) -> Checked {
    let dense = found.to_tensor()?;
    if dense.extents() != expected.extents() || dense.scalar_type() != expected.scalar_type() {
        let detail = format!("{found:?} for {expected:?}");
        return Err(BrokenLaw::new(format!("{place}a value has other extents"), detail).into());
    }
    let pairs = floats(&dense)?.into_iter().zip(floats(expected)?);
    let is_same = |(a, b): (f64, f64)| a == b || (a.is_nan() && b.is_nan());
    if same_bits(&dense, expected) || pairs.into_iter().all(is_same) {
        return Ok(());
    }
    let detail = format!("found {dense:?}\nexpected {expected:?}");
    Err(BrokenLaw::new(format!("{place}a value is another one"), detail).into())
}
