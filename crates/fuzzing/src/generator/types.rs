//! Generates operators on types. When a program is prepared, these operators are replaced by masks and numbers. Programs use their results like any
//! other operand.

use super::Pool;
use super::functions::Sequence;
use crate::config::pick;
use crate::values;
use cembra_expr::{ArgumentForm, NodeId};
use cembra_ops::{OpId, Registry, id};
use cembra_runtime::{QType, Scalar, ShapeType};
use cembra_value::Value;

/// The most levels of nested operators that return types.
const MOST_NESTED: u32 = 2;

/// Operators that test the kind of a type.
const KINDS: &[OpId] = &[
    id::IS_SCALAR_QTYPE,
    id::IS_OPTIONAL_QTYPE,
    id::IS_INTEGRAL_SCALAR_QTYPE,
    id::IS_FLOATING_POINT_SCALAR_QTYPE,
    id::IS_NUMERIC_SCALAR_QTYPE,
    id::IS_INTEGRAL_QTYPE,
    id::IS_FLOATING_POINT_QTYPE,
    id::IS_NUMERIC_QTYPE,
    id::IS_TUPLE_QTYPE,
    id::IS_NAMEDTUPLE_QTYPE,
    id::IS_DERIVED_QTYPE,
    id::IS_SHAPE_QTYPE,
    id::IS_SEQUENCE_QTYPE,
];

/// Operators that make a type from types.
const MAKERS: &[OpId] = &[
    id::GET_SCALAR_QTYPE,
    id::GET_SHAPE_QTYPE,
    id::GET_VALUE_QTYPE,
    id::GET_PRESENCE_QTYPE,
    id::OPTIONAL_LIKE_QTYPE,
    id::GET_FLOAT_QTYPE,
    id::DECAY_DERIVED_QTYPE,
    id::COMMON_QTYPE,
    id::BROADCAST_QTYPE_LIKE,
    id::WITH_VALUE_QTYPE,
    id::CONDITIONAL_QTYPE,
    id::MAKE_TUPLE_QTYPE,
    id::MAKE_SEQUENCE_QTYPE,
    id::SLICE_TUPLE_QTYPE,
    id::GET_FIELD_QTYPE,
];

impl Pool<'_> {
    /// Adds an operator that returns a property of a type, as a mask or a number.
    pub(super) fn question(&mut self) {
        match self.random.u32(..8) {
            0 => {
                let qtype = self.type_of_types(MOST_NESTED);
                self.operator(id::GET_FIELD_COUNT, &[qtype], &QType::INT64);
            }
            1 => {
                let qtype = self.type_of_types(MOST_NESTED);
                let fields = [(id::GET_FIELD_NAMES, QType::TEXT), (id::GET_FIELD_QTYPES, QType::Meta)];
                let (op, element) = pick(self.random, &fields).clone();
                let fields = self.operator(op, &[qtype], &QType::Sequence(element.into()));
                let (op, result) =
                    if self.random.bool() { (id::SEQ_SIZE, QType::INT64) } else { (id::SEQ_ALL_EQUAL, QType::MASK) };
                self.operator(op, &[fields], &result);
            }
            2..=4 => {
                self.kind(MOST_NESTED);
            }
            _ => {
                let types = [(); 2].map(|()| self.type_of_types(MOST_NESTED));
                let op = *pick(self.random, &[id::EQUAL, id::NOT_EQUAL]);
                self.operator(op, &types, &QType::MASK);
            }
        }
    }

    fn kind(&mut self, nested: u32) -> NodeId {
        let qtype = self.type_of_types(nested);
        let op = *pick(self.random, KINDS);
        self.operator(op, &[qtype], &QType::MASK)
    }

    /// Returns a type: a literal, the type of a value, or one made from others.
    fn type_of_types(&mut self, nested: u32) -> NodeId {
        match self.random.u32(..6) {
            0 => {
                let qtype = values::input_type(self.random, 1);
                let value = self.of_type(&qtype);
                let scalar = qtype.scalar().is_some() && self.random.bool();
                let op = if scalar { id::SCALAR_QTYPE_OF } else { id::QTYPE_OF };
                self.operator(op, &[value], &QType::Meta)
            }
            1..=3 if nested > 0 => {
                let op = *pick(self.random, MAKERS);
                let def = Registry::standard().get(op);
                let fixed = def.params.len() - usize::from(def.variadic);
                let count = if def.variadic { fixed + self.random.usize(..4) } else { fixed };
                let operands: Vec<NodeId> = (0..count)
                    .map(|at| match def.params[at.min(def.params.len() - 1)].form {
                        ArgumentForm::Type => self.type_of_types(nested - 1),
                        ArgumentForm::Position => {
                            let position = self.random.i64(-1..3);
                            self.integer(position)
                        }
                        _ => self.kind(nested - 1),
                    })
                    .collect();
                self.operator(op, &operands, &QType::Meta)
            }
            _ => {
                let qtype = match self.random.u32(..8) {
                    0 => QType::Shape(*pick(self.random, &ShapeType::ALL)),
                    _ => values::input_type(self.random, 2),
                };
                self.exactly(Value::Type(qtype))
            }
        }
    }

    /// Adds an operator that chooses between an argument and its default, depending on whether the argument is specified.
    pub(super) fn specified(&mut self) {
        let types = [(); 2].map(|()| values::input_type(self.random, 2));
        let [given, default] = [0, 1].map(|at| self.of_type(&types[at]));
        let (argument, result) =
            if self.random.bool() { (given, &types[0]) } else { (self.exactly(Value::Unspecified), &types[1]) };
        self.operator(id::DEFAULT_IF_UNSPECIFIED, &[argument, default], result);
    }

    /// Returns a slice of the sequence `source`. A bound of the slice outside of the sequence counts as the nearest end of the sequence.
    pub(super) fn sliced(&mut self, source: &Sequence) -> Sequence {
        let [start, stop] = [(); 2].map(|()| {
            if self.random.bool() {
                let position = self.random.i64(-4..6);
                self.integer(position)
            } else {
                self.few()
            }
        });
        let qtype = QType::Sequence(source.element.clone().into());
        let node = self.operator(id::SEQ_SLICE, &[source.node, start, stop], &qtype);
        Sequence { node, element: source.element.clone() }
    }

    /// Adds a test whether all elements of a sequence are equal. Tuples cannot be compared, so they are first mapped to scalars.
    pub(super) fn alike(&mut self) {
        let source = self.sequence();
        let source = match source.element.scalar() {
            Some(_) => source,
            None => {
                let element = QType::of(*pick(self.random, &Scalar::ALL), self.random.bool());
                self.mapped(&source, element)
            }
        };
        self.operator(id::SEQ_ALL_EQUAL, &[source.node], &QType::MASK);
    }
}
