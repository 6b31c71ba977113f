//! Applies the number rule of a text without a `numbers` line. By this rule, integers become f64 where they are divided and where the other operand
//! is a float, and a fraction literal (`1.5`) becomes f64 next to an optional float. The parser does not know types yet, so it marks every operand
//! that may have to be converted: it puts the operator `core._wide` or `core._beside` around the operand. Type inference removes these operators. The
//! marks depend only on an operator and its operands, so the printer omits the marks that the parser would add again.
//!
//! An operand is marked only if two conditions hold: an f32 or a fraction literal is next to the operand, and the operators inside of the operand
//! leave open whether it is an integer. For example, `x * 2` has no marks if the input `x` is declared as f64, because an f64 times an integer is an
//! f64 anyway.

use crate::infix::{
    AT, AT_LABELS, BESIDE, CAST, DECLARED, DECLARED_OPERAND, IN, IN_RANGE, IN_VALUE, LAMBDA, MAKE_ARRAY, MAKE_NAMED,
    MAKE_TUPLE, OPERATOR, Operation, WHERE, WIDE,
};
use crate::vocabulary::Integers;
use crate::{Graph, NameId, Node, NodeId, Vocabulary};
use cembra_runtime::{QType, Scalar};
use cembra_value::{ScalarValue, Value};
use std::ops::BitOr;

/// The number rule that the first line of a file selects: the float type that integers and fraction literals (`1.5`) are converted to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Numbers {
    /// The file has no `numbers` line: integers become f64 where they are divided or where the other operand is a float, and a fraction literal takes
    /// the float type of the other operand.
    #[default]
    Undeclared,
    /// The file begins with `numbers f64`: integers become f64 where they are divided or where the other operand is a float, and fraction literals
    /// are f64.
    Wide,
    /// The file begins with `numbers f32`: by Arolla's rule, integers become f32 where they are divided or where the other operand is a float.
    Narrow,
}

/// A set of the kinds that a value's elements may have (integers, floats and others), derived from the operators that compute it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Kinds(u8);

impl Kinds {
    /// A `missing` without a type, which takes the kind of the other operand.
    const NONE: Kinds = Kinds(0);
    /// Integers of any type.
    const WHOLE: Kinds = Kinds(1 | Kinds::UNSIGNED.0);
    /// Integers that no operator casts implicitly: u64.
    const UNSIGNED: Kinds = Kinds(32);
    /// Fraction literals: weak floats.
    const WEAK: Kinds = Kinds(2);
    /// Floats next to which an integer becomes f32.
    const NARROW: Kinds = Kinds(4 | Kinds::WEAK.0);
    /// 64-bit floats, next to which an integer becomes f64.
    const WIDE: Kinds = Kinds(8);
    const OTHER: Kinds = Kinds(16);
    const ANY: Kinds = Kinds(63);
    /// Floats of a fixed type, and values that are not numbers. Next to one of these, an operation's result is neither an integer nor a fraction
    /// literal.
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

    /// Returns this set of kinds, with `kind` in place of the kinds in `others` if it has any of them.
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

/// The rule that derives the kinds (integer, float, other) of an operator's result from the kinds of its operands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ResultKinds {
    /// The result may be of any kind.
    Any,
    /// The result is not a number.
    Other,
    /// The result is a float if the kinds of all operands are known, else it may be of any kind. But an operator that makes floats of integers
    /// never returns integers.
    Floats,
    /// The result has the kinds of the first operand.
    First,
    /// The result has the kinds of the first operand's elements.
    Element,
    /// The result has the common kinds of the operator's operands, beginning with the operand at this index.
    All(usize),
    /// The result has the common kinds of the operator's operands, beginning with the operand at this index; or it is not a number.
    Meeting(usize),
    /// The result has the common kinds of all operands. In addition, the difference of dates is an integer. The result is a float only if an
    /// operand is a float.
    Sum,
    /// The result has the kinds of all operands, with floats in place of integers. The quotient of durations is an f64.
    Quotient,
    /// The result has the kind of the type that is declared for it, or that it is cast to.
    Typed,
    /// The result has the kinds of the first operand, after a declared type has converted it.
    Reached,
    /// The operator is `core._wide`, which converts integers to f64.
    Wide,
    /// The operator is `core._beside`, which converts integers to f64 next to floats.
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

/// The kinds (integer, float, other) that the values of a graph's nodes may have, computed on demand.
#[derive(Debug, Default)]
pub(super) struct NodeKinds {
    /// The kinds of the nodes up to the last one that was requested, by node index.
    kinds: Vec<Kinds>,
    /// For each operator, by name index: which operands the number rule converts, and the kinds of its result. `None` if the operator was not
    /// looked up yet.
    operators: Vec<Option<(Integers, ResultKinds)>>,
}

impl NodeKinds {
    /// Records the declared type `qtype` of the input `leaf`.
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

    /// Computes the kinds of all nodes up to `node`. Operands come before their users.
    fn extend(&mut self, graph: &Graph, vocabulary: &dyn Vocabulary, node: NodeId) {
        for at in self.kinds.len()..(node.index() + 1).min(graph.len()) {
            let kinds = match graph.node(NodeId::from_index(at)) {
                // No data have the type of a fraction literal.
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
        // The difference of two dates is an integer.
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
            // The operands may be durations or tuples; then the result is anything except an integer. Operands of firm kinds that may be floats are
            // floats, so the result is a float or a mask.
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

/// Applies the number rule of a text (the conversion of integers to f64) to the operands of each operator that is added to a graph.
pub(super) trait Marker {
    /// The error if a node cannot be added to the graph.
    type Stop;

    /// Returns the graph, its operators, and the known kinds of its nodes.
    fn known(&mut self) -> (&Graph, &dyn Vocabulary, &mut NodeKinds);

    /// Returns the node of the literal `value`, which replaces the integer literal `written`.
    ///
    /// # Errors
    /// If the graph has no room for the literal.
    fn wide_literal(&mut self, value: f64, written: NodeId) -> Result<NodeId, Self::Stop>;

    /// Returns the node of the mark operator `mark`, applied to `operands`. The first operand is the one that the mark converts.
    ///
    /// # Errors
    /// If the graph has no room for the mark.
    fn mark(&mut self, mark: &str, operands: &[NodeId]) -> Result<NodeId, Self::Stop>;

    /// Returns the operands of `operator` with the conversions of the number rule; `None` if the rule leaves them unchanged.
    ///
    /// # Errors
    /// If the graph has no room for the marks.
    fn marked_operands(&mut self, operator: NameId, operands: &[NodeId]) -> Result<Option<Vec<NodeId>>, Self::Stop> {
        let (graph, vocabulary, known) = self.known();
        let (integers, _) = known.operator(graph, vocabulary, operator);
        if integers == Integers::Stay {
            return Ok(None);
        }
        let may_be = |known: &mut NodeKinds, kind| {
            operands.iter().filter(|operand| known.kinds(graph, vocabulary, **operand).may_be(kind)).count()
        };
        // Most operators have floats as operands, or one fraction literal.
        if may_be(known, Kinds::WHOLE) == 0 && may_be(known, Kinds::WEAK) < 2 {
            return Ok(None);
        }
        let mut marked: Vec<NodeId> = operands.into();
        // A quotient of durations is not one of numbers.
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
                    // The operand may meet a u64 before it meets the float, and u64 has no common type with other integers.
                    let of_u64 =
                        others.iter().any(|other| known.kinds(graph, vocabulary, *other).may_be(Kinds::UNSIGNED));
                    let floats = if of_u64 { Kinds::NARROW | Kinds::WIDE } else { Kinds::NARROW };
                    // The first operand becomes an f64 if another one is a float. Then the others are compared with its new form.
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

    /// Returns the value of `default`, the default of a parameter, in a call with `arguments`. If an argument may be a fraction literal, an f32
    /// default becomes a fraction literal too; otherwise the argument would become f32 because of the default.
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

    /// Returns the node of `operand` converted to f64 if it is an integer.
    ///
    /// # Errors
    /// If the graph has no room for the mark.
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

    /// Returns the node of `operand` converted to f64 if it is an integer and `other` is a float, or if it is a fraction literal and `other` may be
    /// missing.
    ///
    /// # Errors
    /// If the graph has no room for the mark.
    fn beside(&mut self, operand: NodeId, other: NodeId) -> Result<NodeId, Self::Stop> {
        self.beside_floats(operand, other, Kinds::NARROW)
    }

    /// Returns the node of `operand` converted as by [`beside`](Self::beside), but only the kinds in `floats` count as floats.
    ///
    /// # Errors
    /// If the graph has no room for the mark.
    fn beside_floats(&mut self, operand: NodeId, other: NodeId, floats: Kinds) -> Result<NodeId, Self::Stop> {
        let (graph, vocabulary, known) = self.known();
        let [own, met] = [operand, other].map(|node| known.kinds(graph, vocabulary, node));
        // Next to an f64, every integer except u64 becomes an f64 without a mark.
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
