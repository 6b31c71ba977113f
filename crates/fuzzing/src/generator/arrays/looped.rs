//! Generates loops with an array as their state. Each round applies several operators to the array, one after the other. The second operands of
//! these operators are arrays from outside the loop, the number of the round, or aggregates of all elements.

use super::Grower;
use crate::catalogue::Catalogue;
use crate::config::pick;
use cembra_expr::NodeId;
use cembra_ops::id;
use cembra_runtime::{QType, Scalar};
use cembra_value::Value;

impl Grower<'_> {
    /// Adds a loop with an array as its state to the program. Returns its node; `None` if it has no value on the first row.
    pub(super) fn looped(&mut self) -> Option<NodeId> {
        let size = self.focus();
        let scalar = self.scalar_at(size);
        let qtype = QType::Array(self.kind, scalar);
        // Operands from outside are chosen first, before there are nodes without a value outside of the loop.
        let [start, others @ ..] = [(); 4].map(|()| self.array(scalar, size));
        let rounds = self.pool.few();
        let from = self.pool.types.len();
        let [state, index] = [&qtype, &QType::INT64].map(|qtype| self.pool.parameter(qtype, 0));
        let mut next = state;
        for _ in 0..self.pool.random.u32(1..6) {
            let other = *pick(self.pool.random, &others);
            let made = self.changed(next, index, other);
            next = made.filter(|made| self.pool.types[made.index()] == qtype).unwrap_or(next);
        }
        let function = self.pool.operator(id::LAMBDA, &[next, state, index], &QType::Function);
        self.pool.hide(from, &[state, index]);
        let range = [rounds, self.pool.exactly(Value::Missing(Scalar::Int64)), self.pool.integer(1)];
        let range = self.pool.operator(id::SEQ_RANGE, &range, &QType::Sequence(QType::INT64.into()));
        let node = self.pool.operator(id::SEQ_REDUCE, &[function, range, start], &qtype);
        self.tried(node)
    }

    /// Adds one step that a round applies to the array.
    fn changed(&mut self, array: NodeId, index: NodeId, other: NodeId) -> Option<NodeId> {
        let catalogue = Catalogue::standard();
        let pairs = [id::ADD, id::SUBTRACT, id::MULTIPLY, id::MAXIMUM, id::PRESENCE_OR, id::FLOORDIV];
        let pair = catalogue.known(*pick(self.pool.random, &pairs))?;
        match self.pool.random.u32(..6) {
            0 | 1 => self.pool.apply(pair, &[array, other]),
            2 => self.pool.apply(pair, &[other, array]),
            3 => {
                let all = self.aggregated(vec![array])?;
                self.pool.apply(pair, &[array, all])
            }
            4 => {
                let most = self.pool.random.i64(..4);
                let most = self.pool.integer(most);
                let early = self.pool.apply(catalogue.known(id::LESS)?, &[index, most])?;
                let arms = if self.pool.random.bool() { [array, other] } else { [other, array] };
                self.pool.apply(catalogue.known(id::WHERE)?, &[early, arms[0], arms[1]])
            }
            _ => {
                let cast = [id::TO_INT64, id::TO_INT32, id::TO_FLOAT64, id::TO_FLOAT32];
                let cast = catalogue.known(*pick(self.pool.random, &cast))?;
                let index = self.pool.apply(cast, &[index])?;
                self.pool.apply(pair, &[array, index])
            }
        }
    }
}
