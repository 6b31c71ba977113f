//! Values that are written over a tensor: in its memory where that changes nothing that is read later, in memory of their own otherwise.

use crate::tensors::Planned;
use cembra_tensor::{Error, ErrorKind, Tensor};

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
