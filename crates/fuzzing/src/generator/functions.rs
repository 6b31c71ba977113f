//! Generates functions, sequences and loops. A function's body is grown like the rest of a program, but in a scope. While the scope is open, the
//! function's parameters can be operands. After the scope, the parameters and all nodes that use them cannot.
//!
//! Loops are short: a range has at most a few integers, and a loop ends after a few rounds.

use super::{HIDDEN, Pool};
use crate::config::pick;
use crate::values;
use cembra_expr::NodeId;
use cembra_ops::{OpId, Registry, id};
use cembra_runtime::{QType, Scalar};
use cembra_value::Value;

/// The most levels of functions inside of functions.
const MOST_NESTED: u32 = 2;

/// A generated sequence: the node that computes it, and the type of its elements.
pub(super) struct Sequence {
    pub(super) node: NodeId,
    pub(super) element: QType,
}

impl Pool<'_> {
    /// Adds a random operator on functions or sequences to the program.
    pub(super) fn grow_function(&mut self) {
        if self.nested >= MOST_NESTED {
            return;
        }
        match self.random.u32(..12) {
            0..=2 => self.reduce(),
            3 | 4 => self.repeat(),
            5 => self.element(),
            6 => self.apply_function(),
            7 => self.tuples(),
            8 => self.masks(),
            9 => self.alike(),
            10 => self.specified(),
            // Operators on types are many and cheap, so several are added.
            _ => (0..4).for_each(|_| self.question()),
        }
    }

    /// Adds the operator `op` with the result type `qtype`, one level deeper than its deepest operand.
    pub(super) fn operator(&mut self, op: OpId, operands: &[NodeId], qtype: &QType) -> NodeId {
        let depth = 1 + operands.iter().map(|o| self.depths[o.index()].min(self.config.max_depth)).max().unwrap_or(0);
        for operand in operands {
            self.used[operand.index()] = true;
        }
        let node = self.graph.operator(name_of(op), operands, None);
        self.note(node, qtype, depth)
    }

    /// Returns a node that is the literal `value`.
    pub(super) fn integer(&mut self, value: i64) -> NodeId {
        self.exactly(Value::from(value))
    }

    /// Returns a random function whose parameters have the types `parameters`, and whose results have the type `result`.
    pub(super) fn function(&mut self, parameters: &[QType], result: &QType) -> NodeId {
        let name = self.binary_operator(parameters, result);
        if let Some(name) = name {
            let name = self.exactly(Value::text(name));
            return self.operator(id::NAMED, &[name], &QType::Function);
        }
        self.nested += 1;
        let from = self.types.len();
        let mut operands = vec![NodeId::from_index(0)];
        operands.extend(parameters.iter().map(|qtype| self.parameter(qtype, 0)));
        for _ in 0..self.random.u32(1..8) {
            self.grow();
        }
        let made = (from..self.types.len()).map(NodeId::from_index);
        let mut fitting: Vec<NodeId> =
            made.filter(|node| self.types[node.index()] == *result && self.depths[node.index()] < HIDDEN).collect();
        fitting.sort_by_key(|node| self.depths[node.index()]);
        operands[0] = match fitting.last() {
            Some(deepest) => *deepest,
            None => self.of_type(result),
        };
        let function = self.operator(id::LAMBDA, &operands, &QType::Function);
        self.hide(from, &operands[1..]);
        self.nested -= 1;
        function
    }

    /// Adds a parameter of type `qtype` for a function that is being generated.
    pub(super) fn parameter(&mut self, qtype: &QType, depth: u32) -> NodeId {
        self.placeholders += 1;
        let node = self.graph.placeholder(&format!("p{}", self.placeholders), None);
        self.note(node, qtype, depth)
    }

    /// Makes the nodes of a function's body, which begin with the node `from`, and its `parameters` unusable as operands. Literals and inputs can
    /// still be used.
    pub(super) fn hide(&mut self, from: usize, parameters: &[NodeId]) {
        for at in (from..self.types.len()).map(NodeId::from_index) {
            if !self.graph.operands(at).is_empty() || parameters.contains(&at) {
                self.depths[at.index()] = HIDDEN;
            }
        }
    }

    /// Returns now and then the name of an operator with exactly these types; otherwise `None`.
    fn binary_operator(&mut self, parameters: &[QType], result: &QType) -> Option<&'static str> {
        let alike = parameters.len() == 2 && parameters.iter().all(|qtype| qtype == result);
        let numeric = result.scalar().is_some_and(Scalar::is_numeric);
        (alike && numeric && self.random.bool())
            .then(|| name_of(*pick(self.random, &[id::ADD, id::MULTIPLY, id::MAXIMUM, id::SUBTRACT])))
    }

    /// Returns a node whose value is a small number, for the length of a sequence or the rounds of a loop.
    pub(super) fn few(&mut self) -> NodeId {
        if self.random.bool() {
            let count = self.random.i64(-1..6);
            return self.integer(count);
        }
        let (count, most) = (self.of_type(&QType::INT64), self.integer(5));
        self.operator(id::MINIMUM, &[count, most], &QType::INT64)
    }

    /// Returns a random sequence, such as a range of integers.
    pub(super) fn sequence(&mut self) -> Sequence {
        let type_of = |qtype: &QType| QType::Sequence(qtype.clone().into());
        match self.random.u32(..7) {
            0 | 1 => {
                let mut operands = vec![self.few(), self.exactly(Value::Missing(Scalar::Int64)), self.integer(1)];
                if self.random.bool() {
                    let start = self.random.i64(-3..3);
                    let step = *pick(self.random, &[1, 2, -1, 3, 1, 2, -1, 3, 1, 2, -1, 3, -2, 5, i64::MIN, 0]);
                    operands = vec![self.integer(start), operands[0], self.integer(step)];
                    if step < 0 {
                        operands.swap(0, 1);
                    }
                }
                Sequence {
                    node: self.operator(id::SEQ_RANGE, &operands, &type_of(&QType::INT64)),
                    element: QType::INT64,
                }
            }
            2 => {
                let element = values::input_type(self.random, 1);
                let values: Vec<NodeId> = (0..self.random.u32(1..4)).map(|_| self.of_type(&element)).collect();
                Sequence { node: self.operator(id::SEQ_MAKE, &values, &type_of(&element)), element }
            }
            3 => {
                let element = values::input_type(self.random, 1);
                let operands = [self.of_type(&element), self.few()];
                Sequence { node: self.operator(id::SEQ_REPEAT, &operands, &type_of(&element)), element }
            }
            4 => {
                // Different sizes would be an error, so both are views of one sequence.
                let first = self.sequence();
                let second = if self.random.u32(..8) == 0 {
                    self.sequence()
                } else {
                    let element = values::input_type(self.random, 1);
                    self.mapped(&first, element)
                };
                let parts = [first, second];
                let element = QType::tuple(parts.iter().map(|part| part.element.clone()));
                let operands = parts.map(|part| part.node);
                Sequence { node: self.operator(id::SEQ_ZIP, &operands, &type_of(&element)), element }
            }
            5 => {
                let source = self.sequence();
                self.sliced(&source)
            }
            _ => {
                let source = self.sequence();
                let element = values::input_type(self.random, 1);
                self.mapped(&source, element)
            }
        }
    }

    /// Maps a sequence with a random function whose results have the type `element`.
    pub(super) fn mapped(&mut self, source: &Sequence, element: QType) -> Sequence {
        let function = self.function(std::slice::from_ref(&source.element), &element);
        let qtype = QType::Sequence(element.clone().into());
        Sequence { node: self.operator(id::SEQ_MAP, &[function, source.node], &qtype), element }
    }

    fn reduce(&mut self) {
        let sequence = self.sequence();
        let state = values::input_type(self.random, 2);
        let function = self.function(&[state.clone(), sequence.element], &state);
        let initial = self.of_type(&state);
        self.operator(id::SEQ_REDUCE, &[function, sequence.node, initial], &state);
    }

    /// Adds a loop over a counter and another value.
    fn repeat(&mut self) {
        let carried = values::input_type(self.random, 2);
        let state = QType::tuple([QType::INT64, carried.clone()]);
        let rounds = self.few();
        let step = self.function(std::slice::from_ref(&carried), &carried);
        let first = [self.integer(0), self.of_type(&carried)];
        let first = self.operator(id::MAKE_TUPLE, &first, &state);
        let [condition, body] = [true, false].map(|is_condition| {
            let from = self.types.len();
            let state_node = self.parameter(&state, HIDDEN);
            let (zero, one) = (self.integer(0), self.integer(1));
            let count = self.operator(id::GET_NTH, &[state_node, zero], &QType::INT64);
            let result = if is_condition {
                self.operator(id::LESS, &[count, rounds], &QType::MASK)
            } else {
                let value = self.operator(id::GET_NTH, &[state_node, one], &carried);
                let value = self.operator(id::APPLY, &[step, value], &carried);
                let count = self.operator(id::ADD, &[count, one], &QType::INT64);
                self.operator(id::MAKE_TUPLE, &[count, value], &state)
            };
            let function = self.operator(id::LAMBDA, &[result, state_node], &QType::Function);
            self.hide(from, &[]);
            function
        });
        self.operator(id::WHILE_LOOP, &[first, condition, body], &state);
    }

    fn element(&mut self) {
        let sequence = self.sequence();
        if self.random.u32(..4) == 0 {
            self.operator(id::SEQ_SIZE, &[sequence.node], &QType::INT64);
            return;
        }
        let index = self.few();
        self.operator(id::SEQ_AT, &[sequence.node, index], &sequence.element);
    }

    fn masks(&mut self) {
        let source = self.sequence();
        let function = self.function(&[source.element], &QType::MASK);
        let mapped = self.operator(id::SEQ_MAP, &[function, source.node], &QType::Sequence(QType::MASK.into()));
        let op = *pick(self.random, &[id::SEQ_ANY, id::SEQ_ALL]);
        self.operator(op, &[mapped], &QType::MASK);
    }

    fn apply_function(&mut self) {
        let types = [values::input_type(self.random, 2), values::input_type(self.random, 2)];
        let result = values::input_type(self.random, 2);
        let function = self.function(&types, &result);
        let args = types.map(|qtype| self.of_type(&qtype));
        if self.random.bool() {
            self.operator(id::APPLY, &[function, args[0], args[1]], &result);
        } else {
            let qtype = QType::tuple([self.types[args[1].index()].clone()]);
            let last = self.operator(id::MAKE_TUPLE, &args[1..], &qtype);
            self.operator(id::APPLY_VARARGS, &[function, args[0], last], &result);
        }
    }

    fn tuples(&mut self) {
        let element = values::input_type(self.random, 1);
        let fields: Vec<NodeId> = (0..self.random.u32(1..4)).map(|_| self.of_type(&element)).collect();
        let qtype = QType::tuple(vec![element.clone(); fields.len()]);
        let tuple = self.operator(id::MAKE_TUPLE, &fields, &qtype);
        if self.random.bool() {
            let result = values::input_type(self.random, 1);
            let function = self.function(&[element], &result);
            let qtype = QType::tuple(vec![result; fields.len()]);
            self.operator(id::MAP_TUPLE, &[function, tuple], &qtype);
        } else {
            let function = self.function(&[element.clone(), element.clone()], &element);
            self.operator(id::REDUCE_TUPLE, &[function, tuple], &element);
        }
    }
}

fn name_of(op: OpId) -> &'static str {
    Registry::standard().get(op).name
}
