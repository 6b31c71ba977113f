//! Statements on tensors by name, and values that are written over a tensor: in its memory where that changes nothing that is read later,
//! in memory of their own otherwise.

use crate::tensors::{Evaluator, Planned};
use cembra_tensor::{Assignment, Error, ErrorKind, Graph, Program, Statement, Tensor};
use std::collections::BTreeMap;

/// The most nodes of a graph that a text may become. Short texts become large graphs: by functions that call others twice, and by gradients of
/// gradients. A plan of so many nodes takes up to a gibibyte while it is made.
pub const MOST_MODEL_NODES: usize = 1 << 18;

/// How a tensor got its value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Written {
    /// Its memory was written over.
    InPlace,
    /// It has memory that was made.
    Made,
    /// It is another layout of memory that an input has.
    Shared,
}

/// What statements did to their targets: how many of them were done in which way.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct StatementCounters {
    /// Those that wrote over the memory of the target.
    pub in_place: usize,
    /// Those that made memory.
    pub made: usize,
    /// Those that gave the target another layout of memory that was there.
    pub shared: usize,
}

impl StatementCounters {
    const fn add(&mut self, written: Written) {
        match written {
            Written::InPlace => self.in_place += 1,
            Written::Made => self.made += 1,
            Written::Shared => self.shared += 1,
        }
    }
}

impl Evaluator {
    /// Runs statements on tensors by name, one after the other. A target that is not there yet is made; all of a right side is evaluated
    /// before its target changes. Where a statement fails, what those before it made stays.
    ///
    /// ```
    /// use cembra::Options;
    /// use cembra::tensor::{Evaluator, Program, Tensor};
    /// use std::collections::BTreeMap;
    ///
    /// let program = Program::parse(r#"c("i,j") = 2.0 * a("i,k") * b("k,j"); c("i,j") += a("j,i")"#)?;
    /// let a = Tensor::new(&[2, 2], vec![1.0, 2.0, 3.0, 4.0])?;
    /// let b = Tensor::new(&[2, 2], vec![0.0, 1.0, 1.0, 0.0])?;
    /// let mut tensors = BTreeMap::from([("a".to_owned(), a), ("b".to_owned(), b)]);
    /// Evaluator::new(&Options::default()).run(&program, &mut tensors)?;
    /// assert_eq!(tensors["c"].to_vec::<f64>()?, [5.0, 5.0, 10.0, 10.0]);
    /// # Ok::<(), cembra::tensor::Error>(())
    /// ```
    ///
    /// # Errors
    /// A name that stands for no tensor, tensors that do not fit the labels, or an element that fails.
    pub fn run(&self, program: &Program, tensors: &mut BTreeMap<String, Tensor>) -> Result<(), Error> {
        self.run_counted(program, tensors).map(|_| ())
    }

    /// Runs statements likewise, and counts where their values were written: as for [`Planned::run_over`].
    ///
    /// ```
    /// use cembra::Options;
    /// use cembra::tensor::{Evaluator, Program, Tensor};
    /// use std::collections::BTreeMap;
    ///
    /// let program = Program::parse(r#"a("i,j") = 2.0 * a("i,j") + b("j,i"); a("i,j") += a("j,i")"#)?;
    /// let tensor = Tensor::new(&[2, 2], vec![1.0, 2.0, 3.0, 4.0])?;
    /// let other = Tensor::new(&[2, 2], vec![0.0, 1.0, 1.0, 0.0])?;
    /// let mut tensors = BTreeMap::from([("a".to_owned(), tensor), ("b".to_owned(), other)]);
    /// let counters = Evaluator::new(&Options::default()).run_counted(&program, &mut tensors)?;
    /// assert_eq!(tensors["a"].to_vec::<f64>()?, [4.0, 12.0, 12.0, 16.0]);
    /// assert_eq!((counters.in_place, counters.made), (1, 1));
    /// # Ok::<(), cembra::tensor::Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`run`](Evaluator::run).
    pub fn run_counted(
        &self,
        program: &Program,
        tensors: &mut BTreeMap<String, Tensor>,
    ) -> Result<StatementCounters, Error> {
        let mut counters = StatementCounters::default();
        for statement in program.statements() {
            counters.add(self.run_statement(statement, tensors)?);
        }
        Ok(counters)
    }

    fn run_statement(&self, statement: &Statement, tensors: &mut BTreeMap<String, Tensor>) -> Result<Written, Error> {
        let find = |name: &str| tensors.get(name).map(|tensor| (tensor.scalar_type(), tensor.extents()));
        let graph = Graph::new(self.registry()).limited(MOST_MODEL_NODES);
        let Assignment { graph, value } = statement.graph(graph, find)?;
        let planned = self.plan(&graph, &[value])?;
        let name = statement.target();
        let mut inputs = Vec::with_capacity(graph.leaves().len() + 1);
        let mut at = graph.leaves().len();
        for (number, leaf) in graph.leaves().iter().enumerate() {
            if *leaf.name == *name {
                at = number;
            }
            let input = tensors.get(&*leaf.name).cloned();
            inputs.push(input.ok_or_else(|| Error::new(ErrorKind::UnknownName, "a name without a tensor"))?);
        }
        // The target is here alone until the statement is done: else there would be two who have its memory.
        let target = tensors.remove(name);
        let is_new = target.is_none();
        match target {
            Some(target) if at < inputs.len() => inputs[at] = target,
            target => inputs.extend(target),
        }
        let written = planned.run_over(&mut inputs, at);
        if (written.is_ok() || !is_new) && at < inputs.len() {
            tensors.insert(name.to_owned(), inputs.swap_remove(at));
        }
        written
    }
}

impl Planned<'_> {
    /// Computes the only output on tensors for the leaves of the graph that was planned, and puts it in the place of one of them; or of one
    /// behind them, which is not read, and need not be there.
    ///
    /// The memory of that tensor is written over if nobody else has it, its elements lie in the order of their indices, type and extents stay, and
    /// the last step reads it only element by element where it writes it, and cannot fail; what is reduced or multiplied before is in other
    /// memory by then. Whatever is done, the value is that of the tensors as they were.
    ///
    /// ```
    /// use cembra::tensor::{Evaluator, Graph, Tensor, Written};
    /// use cembra::{Options, Scalar};
    ///
    /// let mut g = Graph::standard();
    /// let x = g.leaf("x", Scalar::Float64, &[2, 2])?;
    /// let turned = g.transpose(x, &[1, 0])?;
    /// let [twice, both] = [g.apply("math.add", &[x, x])?, g.apply("math.add", &[x, turned])?];
    /// let evaluator = Evaluator::new(&Options::default());
    /// let mut inputs = vec![Tensor::new(&[2, 2], vec![1.0, 2.0, 3.0, 4.0])?];
    /// assert_eq!(evaluator.plan(&g, &[twice])?.run_over(&mut inputs, 0)?, Written::InPlace);
    /// assert_eq!(evaluator.plan(&g, &[both])?.run_over(&mut inputs, 0)?, Written::Made);
    /// assert_eq!(inputs[0].to_vec::<f64>()?, [4.0, 10.0, 10.0, 16.0]);
    /// # Ok::<(), cembra::tensor::Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`run`](Planned::run), or there is not one output, or no such place; then all tensors are what they were.
    pub fn run_over(&self, inputs: &mut Vec<Tensor>, target: usize) -> Result<Written, Error> {
        let leaves = self.graph().leaves().len();
        if self.plan().outputs() != 1 || target > leaves || inputs.len() < leaves {
            return Err(Error::new(ErrorKind::OperandCount, "a value that is none, or has no place"));
        }
        if self.written_in_place(inputs, target)? {
            return Ok(Written::InPlace);
        }
        let Some(made) = self.run(&inputs[..leaves])?.pop() else {
            return Err(Error::new(ErrorKind::OperandCount, "a value that is none"));
        };
        let is_shared = inputs[..leaves].iter().any(|input| input.shares_memory(&made));
        match inputs.get_mut(target) {
            Some(place) => *place = made,
            None => inputs.push(made),
        }
        Ok(if is_shared { Written::Shared } else { Written::Made })
    }
}
