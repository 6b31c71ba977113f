//! The operators of a statement that the declared type goes through. A node does not say whether it was written in the statement or is
//! meant by a name, so that the statement's own operators are noted while it is read, if a type that reaches operands stands in front.

use super::Parser;
use super::expression::Operand;
use crate::infix::DECLARED_OPERAND;
use crate::reach::{Reach, passed};
use crate::text::cursor::Stop;
use crate::{NameId, Node, NodeId};
use cembra_runtime::QType;
use cembra_value::{Diagnostic, Span, Value};
use rustc_hash::FxHashSet;

/// An operator of the statement that is being read, by its number.
pub(super) type PartId = u32;

/// An operator of the statement that is being read. Its operands have smaller numbers.
#[derive(Clone, Debug)]
pub(super) struct WrittenOperator {
    name: NameId,
    span: Span,
    operands: Vec<(NodeId, Option<PartId>, Span)>,
}

/// A result of written integers that its type does not hold. It is no problem if the declared type reaches it.
#[derive(Clone, Debug)]
pub(super) struct Overflow {
    problem: Diagnostic,
    span: Span,
    /// True if an i64 holds the result.
    fits_long: bool,
    /// The node of a power.
    power: Option<NodeId>,
}

/// What is noted of a statement.
#[derive(Clone, Debug, Default)]
pub(super) struct Noted {
    /// True if the statement declares a type that reaches operands.
    reaches: bool,
    parts: Vec<WrittenOperator>,
    overflows: Vec<Overflow>,
}

impl Noted {
    /// Forgets the statement before.
    pub(super) fn clear(&mut self) {
        self.reaches = false;
        self.parts.clear();
        self.overflows.clear();
    }

    /// Notes that a type is declared.
    pub(super) fn declare(&mut self, reach: Option<Reach>) {
        self.reaches |= reach.is_some();
    }

    /// Keeps a result that its type does not hold until the statement is read.
    pub(super) fn overflow(&mut self, problem: Diagnostic, span: Span, fits_long: bool) {
        self.overflows.push(Overflow { problem, span, fits_long, power: None });
    }

    /// Notes the node of a power, whose result may not fit.
    pub(super) fn note_power(&mut self, node: NodeId, span: Span) {
        if let Some(overflow) = self.overflows.last_mut().filter(|overflow| overflow.span == span) {
            overflow.power = Some(node);
        }
    }

    /// Forgets that powers do not fit which a declared type reaches.
    fn settle_powers(&mut self, reached: &FxHashSet<NodeId>) {
        self.overflows.retain(|overflow| overflow.power.is_none_or(|power| !reached.contains(&power)));
    }
}

impl Parser<'_, '_> {
    /// Notes an operator, if a type may go through it.
    pub(super) fn note_part(&mut self, node: Option<NodeId>, operands: &[Operand], span: Span) -> Option<PartId> {
        if !self.noted.reaches {
            return None;
        }
        let Node::Operator(name, made_of) = self.program.graph.node(node?) else { return None };
        if !Reach::Wide.passes(self.program.graph.name(name)) {
            return None;
        }
        // What was left out has no place of its own.
        let operand = |(at, node): (usize, &NodeId)| {
            // Without its mark, which is made again of what a declared type makes of it.
            let plain = |operand: &Operand| (operand.node.unwrap_or(*node), operand.part, operand.span);
            operands.get(at).map_or((*node, None, span), plain)
        };
        let operands = made_of.iter().enumerate().map(operand).collect();
        self.noted.parts.push(WrittenOperator { name, span, operands });
        u32::try_from(self.noted.parts.len() - 1).ok()
    }

    /// The value with its operands as the declared type makes them.
    pub(super) fn reached(&mut self, value: Operand, reach: Reach, declared: Span) -> Result<Operand, Stop> {
        let Some(root) = value.part else {
            self.noted.settle_powers(&value.node.into_iter().collect());
            return Ok(value);
        };
        let passes = |parser: &Self, at: PartId| {
            let part = &parser.noted.parts[at as usize];
            reach.passes(parser.program.graph.name(part.name))
        };
        if !passes(self, root) {
            return Ok(value);
        }
        // An operator has one place in the text, so that none is met twice.
        let (mut met, mut next) = (vec![root], 0);
        while let Some(at) = met.get(next).copied() {
            next += 1;
            let part = &self.noted.parts[at as usize];
            met.extend(self.passed_by(part).filter_map(|(_, part, _)| part).filter(|at| passes(self, *at)));
        }
        met.sort_unstable();
        let spans: FxHashSet<Span> = met.iter().map(|at| self.noted.parts[*at as usize].span).collect();
        let settles =
            |overflow: &Overflow| spans.contains(&overflow.span) && (overflow.fits_long || reach == Reach::Wide);
        self.noted.overflows.retain(|overflow| !settles(overflow));
        let (mut made, mut ends): (Vec<NodeId>, FxHashSet<NodeId>) =
            (Vec::with_capacity(met.len()), FxHashSet::default());
        for at in &met {
            let WrittenOperator { name, span, operands } = self.noted.parts[*at as usize].clone();
            let first = operands.len() - passed(self.program.graph.name(name), &operands).len();
            let mut new: Vec<NodeId> = Vec::with_capacity(operands.len());
            for (index, (node, part, place)) in operands.into_iter().enumerate() {
                let known = part.and_then(|part| met.binary_search(&part).ok());
                new.push(match known {
                    _ if index < first => node,
                    Some(known) => made[known],
                    None => {
                        ends.insert(node);
                        self.reached_operand(node, reach, place, declared)?
                    }
                });
            }
            made.push(self.operator(name, &new, span)?);
        }
        self.noted.settle_powers(&ends);
        Ok(Operand { node: made.pop().or(value.node), ..value })
    }

    fn passed_by<'p>(
        &self,
        part: &'p WrittenOperator,
    ) -> impl Iterator<Item = (NodeId, Option<PartId>, Span)> + use<'p> {
        passed(self.program.graph.name(part.name), &part.operands).iter().copied()
    }

    fn reached_operand(&mut self, node: NodeId, reach: Reach, place: Span, declared: Span) -> Result<NodeId, Stop> {
        if !reach.marks(&self.program.graph, node) {
            return Ok(node);
        }
        let qtype = self.literal(Value::Type(QType::Scalar(reach.scalar())), declared)?;
        let name = self.program.graph.intern(DECLARED_OPERAND);
        self.operator(name, &[node, qtype], place)
    }

    /// True if results that do not fit wait for the end of the statement.
    pub(super) fn may_be_reached(&self) -> bool {
        self.noted.reaches
    }

    /// Reports the results that their types do not hold, and that no declared type reaches.
    pub(super) fn report_overflows(&mut self) {
        let mut told: Option<Span> = None;
        for Overflow { problem, span, .. } in std::mem::take(&mut self.noted.overflows) {
            // Of what is made of one it is no news.
            if told.is_none_or(|told| span.end < told.start || told.end < span.start) {
                self.cursor.report(problem);
                told = Some(span);
            }
        }
    }
}
