//! The rule of numbers of a text without a head: integers become f64 where they are divided and where they meet floats, and a fraction that is
//! written becomes one beside a fraction that may be missing. Types are not known here, so an operand that may be such an integer is marked by an
//! operator of its own, which the registry takes apart. What is marked depends on an operator and its operands alone. So the parser marks, and
//! the printer leaves out what reading marks again.
//!
//! An operand is not marked where its operators say that it is no integer, or that no f32 and no written fraction is beside it: `x * 2` of an
//! input that is declared to be an f64 has no marks, since the two make an f64 by themselves.

use crate::infix::{
    AT, AT_LABELS, BESIDE, CAST, DECLARED, DECLARED_OPERAND, IN, IN_RANGE, IN_VALUE, LAMBDA, MAKE_ARRAY, MAKE_NAMED,
    MAKE_TUPLE, OPERATOR, Operation, WHERE, WIDE,
};
use crate::vocabulary::Integers;
use crate::{Graph, NameId, Node, NodeId, Vocabulary};
use cembra_runtime::{QType, Scalar};
use cembra_value::{ScalarValue, Value};
use std::ops::BitOr;

/// The rule for numbers that a file says at its head.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Numbers {
    /// A file without a head: integers become f64, and fractions are as wide as what they meet.
    #[default]
    Unsaid,
    /// `numbers f64`: integers become f64, and fractions are f64.
    Wide,
    /// `numbers f32`: Arolla's rule, by which integers that meet floats become f32.
    Narrow,
}

/// The kinds of elements that a value may have, as far as its operators say.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Kinds(u8);

impl Kinds {
    /// A `missing` without a type, which is of the kind of what it meets.
    const NONE: Kinds = Kinds(0);
    /// Integers.
    const WHOLE: Kinds = Kinds(1 | Kinds::UNSIGNED.0);
    /// Integers that no operator casts by itself.
    const UNSIGNED: Kinds = Kinds(32);
    /// Fractions that are written.
    const WEAK: Kinds = Kinds(2);
    /// Floats that make an f32 of an integer.
    const NARROW: Kinds = Kinds(4 | Kinds::WEAK.0);
    /// Floats of 64 bits, which make one of an integer.
    const WIDE: Kinds = Kinds(8);
    const OTHER: Kinds = Kinds(16);
    const ANY: Kinds = Kinds(63);
    /// Floats of a type, and no numbers: neither makes an integer or a written fraction of anything that it meets.
    const FIRM: Kinds = Kinds(4 | Kinds::WIDE.0 | Kinds::OTHER.0);

    fn may_be(self, kinds: Kinds) -> bool {
        self.0 & kinds.0 != 0
    }

    fn is(self, kinds: Kinds) -> bool {
        self.0 & !kinds.0 == 0
    }

    fn without(self, kinds: Kinds) -> Kinds {
        Kinds(self.0 & !kinds.0)
    }

    /// These with one kind in the place of others.
    fn with(self, kind: Kinds, others: Kinds) -> Kinds {
        if self.may_be(others) { self.without(others) | kind } else { self }
    }

    fn of(qtype: &QType) -> Kinds {
        let scalar = match qtype {
            QType::Array(_, scalar) | QType::Tensor(scalar, _) => Some(*scalar),
            QType::Nothing => return Kinds::NONE,
            _ => qtype.scalar(),
        };
        match scalar {
            Some(Scalar::Float64) => Kinds::WIDE,
            Some(Scalar::UInt64) => Kinds::UNSIGNED,
            Some(scalar) if scalar.is_whole() => Kinds::WHOLE.without(Kinds::UNSIGNED),
            Some(Scalar::WeakFloat) => Kinds::WEAK,
            Some(scalar) if scalar.is_float() => Kinds::NARROW.without(Kinds::WEAK),
            _ => Kinds::OTHER,
        }
    }
}

impl BitOr for Kinds {
    type Output = Kinds;
    fn bitor(self, other: Kinds) -> Kinds {
        Kinds(self.0 | other.0)
    }
}

/// The kinds of what an operator makes, by those of its operands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ResultKinds {
    /// Anything.
    Any,
    /// No numbers.
    Other,
    /// Floats, or what no rule says. What makes floats of integers makes no integers of anything.
    Floats,
    /// The kinds of the first operand.
    First,
    /// The kinds of the elements of the first operand.
    Element,
    /// The common kinds of the operands from this position on.
    All(usize),
    /// The common kinds of the operands from this position on, or no numbers.
    Meeting(usize),
    /// The common kinds of all operands. A difference of dates is an integer with a sign; no float is made without a float.
    Sum,
    /// The kinds of all operands with floats in the place of integers. A quotient of durations is an f64.
    Quotient,
    /// The kind of the type that the operand is declared to be of, or is cast to.
    Typed,
    /// The kinds of the first operand once a declared type has reached it.
    Reached,
    /// `core._wide`
    Wide,
    /// `core._beside`
    Beside,
}

impl ResultKinds {
    fn of(name: &str, integers: Integers) -> ResultKinds {
        let by_call = match integers {
            Integers::Widen | Integers::WidenFirst => ResultKinds::Floats,
            Integers::WidenBesideFloats(from) => ResultKinds::Meeting(from),
            Integers::Stay => ResultKinds::Any,
        };
        let by_token = |operation: &Operation| match operation {
            Operation::Divide | Operation::Power => ResultKinds::Quotient,
            Operation::PresenceAnd | Operation::Negate | Operation::Plus => ResultKinds::First,
            Operation::PresenceOr | Operation::Default => ResultKinds::All(0),
            Operation::Add | Operation::Subtract | Operation::Multiply | Operation::FloorDivide | Operation::Modulo => {
                ResultKinds::Sum
            }
            _ => ResultKinds::Other,
        };
        match name {
            WIDE => ResultKinds::Wide,
            BESIDE => ResultKinds::Beside,
            DECLARED | CAST => ResultKinds::Typed,
            DECLARED_OPERAND => ResultKinds::Reached,
            WHERE => ResultKinds::All(1),
            MAKE_ARRAY => ResultKinds::All(0),
            AT | AT_LABELS => ResultKinds::Element,
            MAKE_TUPLE | MAKE_NAMED | LAMBDA | OPERATOR | IN | IN_RANGE | IN_VALUE => ResultKinds::Other,
            _ => Operation::ALL.iter().find(|operation| operation.name() == name).map_or(by_call, by_token),
        }
    }
}

/// The kinds of the nodes of a graph, as far as they were asked for.
#[derive(Debug, Default)]
pub(super) struct NodeKinds {
    /// The kinds of the first nodes.
    kinds: Vec<Kinds>,
    /// The operators by name, once they were asked for.
    operators: Vec<Option<(Integers, ResultKinds)>>,
}

impl NodeKinds {
    /// Notes the type that an input is declared to be of.
    pub(super) fn declare(&mut self, graph: &Graph, vocabulary: &dyn Vocabulary, leaf: NodeId, qtype: &QType) {
        self.extend(graph, vocabulary, leaf);
        if let Some(kinds) = self.kinds.get_mut(leaf.index()) {
            *kinds = Kinds::of(qtype);
        }
    }

    fn operator(&mut self, graph: &Graph, vocabulary: &dyn Vocabulary, name: NameId) -> (Integers, ResultKinds) {
        if self.operators.len() <= name.index() {
            self.operators.resize(graph.name_count().max(name.index() + 1), None);
        }
        *self.operators[name.index()].get_or_insert_with(|| {
            let name = graph.name(name);
            let integers = vocabulary.resolve(name).map_or(Integers::Stay, |callable| callable.integers);
            (integers, ResultKinds::of(name, integers))
        })
    }

    fn kinds(&mut self, graph: &Graph, vocabulary: &dyn Vocabulary, node: NodeId) -> Kinds {
        self.extend(graph, vocabulary, node);
        self.kinds.get(node.index()).copied().unwrap_or(Kinds::ANY)
    }

    /// Finds the kinds of all nodes up to one. Operands come before their users.
    fn extend(&mut self, graph: &Graph, vocabulary: &dyn Vocabulary, node: NodeId) {
        for at in self.kinds.len()..(node.index() + 1).min(graph.len()) {
            let kinds = match graph.node(NodeId::from_index(at)) {
                // No data have the type of a written fraction.
                Node::Leaf(_) => Kinds::ANY.without(Kinds::WEAK),
                Node::Placeholder(_) => Kinds::ANY,
                Node::Literal(Value::Nothing | Value::Unspecified) => Kinds::NONE,
                Node::Literal(value) => Kinds::of(&value.qtype()),
                Node::Operator(name, operands) => {
                    let (_, makes) = self.operator(graph, vocabulary, name);
                    self.made(graph, makes, operands)
                }
            };
            self.kinds.push(kinds);
        }
    }

    fn made(&self, graph: &Graph, makes: ResultKinds, operands: &[NodeId]) -> Kinds {
        let kinds_from = |first: usize| operands.iter().skip(first).map(|operand| self.kinds[operand.index()]);
        let of = |at: usize| operands.get(at).map_or(Kinds::ANY, |operand| self.kinds[operand.index()]);
        let all_from = |first: usize| {
            let is_firm = kinds_from(first).any(|kinds| kinds != Kinds::NONE && kinds.is(Kinds::FIRM));
            let all = kinds_from(first).fold(Kinds::NONE, Kinds::bitor);
            if is_firm { all.without(Kinds::WHOLE | Kinds::WEAK) } else { all }
        };
        // Two dates have an integer between them.
        let sum_from = |first: usize| {
            let is_between = kinds_from(first).all(|kinds| kinds.may_be(Kinds::OTHER));
            all_from(first) | if is_between { Kinds::WHOLE.without(Kinds::UNSIGNED) } else { Kinds::NONE }
        };
        let named = || match operands.get(1).map(|qtype| graph.node(*qtype)) {
            Some(Node::Literal(Value::Type(qtype))) => Some(qtype),
            _ => None,
        };
        let all = all_from(0);
        let is_wide = || !all.may_be(Kinds::OTHER) && kinds_from(0).any(|kinds| kinds == Kinds::WIDE);
        match makes {
            ResultKinds::Any => Kinds::ANY,
            ResultKinds::Other => Kinds::OTHER,
            // Of a duration or a tuple, say. What may be a float and is firm is a result of floats: a float or a mask.
            ResultKinds::Floats if all.may_be(Kinds::OTHER) && (all == Kinds::OTHER || !all.is(Kinds::FIRM)) => {
                Kinds::ANY.without(Kinds::WHOLE)
            }
            ResultKinds::Floats if all.may_be(Kinds::WHOLE) || all == Kinds::NONE => {
                all.without(Kinds::WHOLE) | Kinds::WIDE | Kinds::OTHER
            }
            ResultKinds::Floats => all | Kinds::OTHER,
            ResultKinds::First => of(0),
            ResultKinds::Element if of(0).may_be(Kinds::OTHER) => Kinds::ANY,
            ResultKinds::Element => of(0),
            ResultKinds::All(first) => all_from(first),
            ResultKinds::Sum | ResultKinds::Quotient if is_wide() => Kinds::WIDE,
            ResultKinds::Sum => sum_from(0),
            ResultKinds::Meeting(from) => sum_from(from) | Kinds::OTHER,
            ResultKinds::Quotient => all.without(Kinds::WHOLE) | Kinds::WIDE,
            ResultKinds::Typed => named().map_or(Kinds::ANY, Kinds::of),
            ResultKinds::Reached if named() == Some(&QType::Scalar(Scalar::Int64)) => of(0),
            ResultKinds::Reached => of(0).with(Kinds::WIDE, Kinds::WHOLE | Kinds::NARROW),
            ResultKinds::Wide => of(0).with(Kinds::WIDE, Kinds::WHOLE),
            ResultKinds::Beside => of(0) | of(0).with(Kinds::WIDE, Kinds::WHOLE | Kinds::WEAK),
        }
    }
}

/// A maker of the marks of the rule in a graph.
pub(super) trait Marker {
    /// The reason why a node is not made.
    type Stop;

    /// The graph, the operators that it may have, and what is known of them.
    fn known(&mut self) -> (&Graph, &dyn Vocabulary, &mut NodeKinds);

    /// The literal that stands for a written integer, which is a node.
    ///
    /// # Errors
    /// There is no room for it.
    fn wide_literal(&mut self, value: f64, written: NodeId) -> Result<NodeId, Self::Stop>;

    /// A mark on the first of the operands.
    ///
    /// # Errors
    /// There is no room for it.
    fn mark(&mut self, mark: &str, operands: &[NodeId]) -> Result<NodeId, Self::Stop>;

    /// The operands of an operator as the rule makes them; none if it leaves them as they are.
    ///
    /// # Errors
    /// There is no room for the marks.
    fn marked_operands(&mut self, operator: NameId, operands: &[NodeId]) -> Result<Option<Vec<NodeId>>, Self::Stop> {
        let (graph, vocabulary, known) = self.known();
        let (integers, _) = known.operator(graph, vocabulary, operator);
        if integers == Integers::Stay {
            return Ok(None);
        }
        let may_be = |known: &mut NodeKinds, kind| {
            operands.iter().filter(|operand| known.kinds(graph, vocabulary, **operand).may_be(kind)).count()
        };
        // Most operators are of floats, and of one written fraction.
        if may_be(known, Kinds::WHOLE) == 0 && may_be(known, Kinds::WEAK) < 2 {
            return Ok(None);
        }
        let mut marked: Vec<NodeId> = operands.into();
        // A quotient of durations is none of floats.
        let is_of_numbers = operands.first().is_none_or(|first| known.kinds(graph, vocabulary, *first) != Kinds::OTHER);
        match integers {
            Integers::Stay => {}
            Integers::Widen | Integers::WidenFirst if !is_of_numbers => return Ok(None),
            Integers::Widen | Integers::WidenFirst => {
                let count = if integers == Integers::Widen { marked.len() } else { 1 };
                for operand in marked.iter_mut().take(count) {
                    *operand = self.widened(*operand)?;
                }
            }
            Integers::WidenBesideFloats(from) => {
                let meeting = marked.get_mut(from..).unwrap_or_default();
                if let [x, y] = meeting {
                    let [before, beside] = [*x, *y];
                    *x = self.beside(before, beside)?;
                    *y = self.beside(beside, before)?;
                } else if let [first, others @ ..] = meeting {
                    // It may meet a u64, which no other integer has a type in common with, before it meets the float.
                    let of_u64 =
                        others.iter().any(|other| known.kinds(graph, vocabulary, *other).may_be(Kinds::UNSIGNED));
                    let floats = if of_u64 { Kinds::NARROW | Kinds::WIDE } else { Kinds::NARROW };
                    // The first becomes an f64 if one of the others is a float, and all others are beside what it became.
                    for other in &*others {
                        *first = self.beside_floats(*first, *other, floats)?;
                    }
                    for other in others {
                        *other = self.beside_floats(*other, *first, floats)?;
                    }
                }
            }
        }
        Ok(Some(marked))
    }

    /// The default of a parameter beside arguments. An f32 becomes a written fraction if one of these may be one, which would be an f32 beside it.
    fn default_beside(&mut self, default: &Value, arguments: &[NodeId]) -> Value {
        let (graph, vocabulary, known) = self.known();
        let mut kinds = arguments.iter().map(|argument| known.kinds(graph, vocabulary, *argument));
        match default {
            Value::Scalar(ScalarValue::Float32(value)) if kinds.any(|kinds| kinds.may_be(Kinds::WEAK)) => {
                Value::Scalar(ScalarValue::WeakFloat(f64::from(*value)))
            }
            _ => default.clone(),
        }
    }

    /// An operand as an f64 if it is an integer.
    ///
    /// # Errors
    /// There is no room for the mark.
    fn widened(&mut self, operand: NodeId) -> Result<NodeId, Self::Stop> {
        let (graph, vocabulary, known) = self.known();
        if !known.kinds(graph, vocabulary, operand).may_be(Kinds::WHOLE) {
            return Ok(operand);
        }
        let wide = match graph.node(operand) {
            Node::Literal(Value::Scalar(ScalarValue::Int32(value))) => f64::from(*value),
            Node::Literal(Value::Scalar(ScalarValue::Int64(value))) => *value as f64,
            _ => return self.mark(WIDE, &[operand]),
        };
        self.wide_literal(wide, operand)
    }

    /// An operand as an f64 if it is an integer and another one is a float, or if it is a written fraction and the other one may be missing.
    ///
    /// # Errors
    /// There is no room for the mark.
    fn beside(&mut self, operand: NodeId, other: NodeId) -> Result<NodeId, Self::Stop> {
        self.beside_floats(operand, other, Kinds::NARROW)
    }

    /// An operand as `beside` makes it, of these floats alone.
    ///
    /// # Errors
    /// There is no room for the mark.
    fn beside_floats(&mut self, operand: NodeId, other: NodeId, floats: Kinds) -> Result<NodeId, Self::Stop> {
        let (graph, vocabulary, known) = self.known();
        let [own, met] = [operand, other].map(|node| known.kinds(graph, vocabulary, node));
        // Beside an f64 an integer becomes one without a mark, but a u64.
        let is_integer =
            own.may_be(Kinds::WHOLE) && met.may_be(floats) || own.may_be(Kinds::UNSIGNED) && met.may_be(Kinds::WIDE);
        let is_literal = matches!(graph.node(other), Node::Literal(_));
        let is_fraction = own.may_be(Kinds::WEAK) && met.may_be(Kinds::WEAK) && !is_literal;
        match () {
            () if operand == other || !is_integer && !is_fraction => Ok(operand),
            () if met.is(Kinds::NARROW | Kinds::WIDE) && !is_fraction => self.widened(operand),
            () => self.mark(BESIDE, &[operand, other]),
        }
    }
}
