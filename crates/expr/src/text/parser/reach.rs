//! Records the operators that are written in a statement, because the statement's declared type may convert their operands. The graph does not tell
//! whether a node was written in the statement or is the value of a name. So operators are recorded while the statement is read, if its declared type
//! affects operands.

use super::Parser;
use super::expression::Operand;
use crate::infix::DECLARED_OPERAND;
use crate::reach::{OperandConversion, passed};
use crate::text::cursor::Stop;
use crate::{NameId, Node, NodeId};
use cembra_runtime::QType;
use cembra_value::{Diagnostic, Span, Value};
use rustc_hash::FxHashSet;

/// The index of an operator among those that were recorded in the current statement.
pub(super) type PartId = u32;

/// An operator that was recorded in the current statement, because a declared type may convert its operands. The operators among its operands have
/// smaller indices.
#[derive(Clone, Debug)]
pub(super) struct WrittenOperator {
    name: NameId,
    span: Span,
    operands: Vec<(NodeId, Option<PartId>, Span)>,
}

/// A result of integer literals that its type cannot hold. It is not an error if the statement declares a wider type.
#[derive(Clone, Debug)]
pub(super) struct Overflow {
    problem: Diagnostic,
    span: Span,
    /// True if an i64 can hold the result.
    fits_long: bool,
    /// The node of the result, if the operation is a power; else `None`.
    power: Option<NodeId>,
}

/// The operators of the current statement that its declared type may affect, and the results of integer literals that overflow unless the declared
/// type is wider.
#[derive(Clone, Debug, Default)]
pub(super) struct StatementRecord {
    /// True if the statement declares a type that affects operands.
    reaches: bool,
    parts: Vec<WrittenOperator>,
    overflows: Vec<Overflow>,
}

impl StatementRecord {
    /// Clears the record, for another statement.
    pub(super) fn clear(&mut self) {
        self.reaches = false;
        self.parts.clear();
        self.overflows.clear();
    }

    /// Records that the statement declares a type, if the type affects operands.
    pub(super) fn declare(&mut self, reach: Option<OperandConversion>) {
        self.reaches |= reach.is_some();
    }

    /// Records a result of integer literals that does not fit in its type. The result is reported at the end of the statement, unless the statement's
    /// declared type can hold it.
    pub(super) fn overflow(&mut self, problem: Diagnostic, span: Span, fits_long: bool) {
        self.overflows.push(Overflow { problem, span, fits_long, power: None });
    }

    /// Records that `node` is the power of integer literals at `span`. This has an effect only if the power was recorded because it does not fit in
    /// its type.
    pub(super) fn note_power(&mut self, node: NodeId, span: Span) {
        if let Some(overflow) = self.overflows.last_mut().filter(|overflow| overflow.span == span) {
            overflow.power = Some(node);
        }
    }

    /// Removes the overflows of powers to which a declared type applies.
    fn settle_powers(&mut self, reached: &FxHashSet<NodeId>) {
        self.overflows.retain(|overflow| overflow.power.is_none_or(|power| !reached.contains(&power)));
    }
}

impl Parser<'_, '_> {
    /// Records the operator `node` if a declared type may apply to its operands. Returns the operator's index among the recorded operators; `None`
    /// if it was not recorded.
    pub(super) fn note_part(&mut self, node: Option<NodeId>, operands: &[Operand], span: Span) -> Option<PartId> {
        if !self.noted.reaches {
            return None;
        }
        let Node::Operator(name, made_of) = self.program.graph.node(node?) else { return None };
        if !OperandConversion::Wide.passes(self.program.graph.name(name)) {
            return None;
        }
        // An omitted branch has no place of its own.
        let operand = |(at, node): (usize, &NodeId)| {
            // The operand without its mark, because the declared type may change the operand before it is marked again.
            let plain = |operand: &Operand| (operand.node.unwrap_or(*node), operand.part, operand.span);
            operands.get(at).map_or((*node, None, span), plain)
        };
        let operands = made_of.iter().enumerate().map(operand).collect();
        self.noted.parts.push(WrittenOperator { name, span, operands });
        u32::try_from(self.noted.parts.len() - 1).ok()
    }

    /// Returns `value` after the declared type has converted its operands.
    pub(super) fn reached(
        &mut self,
        value: Operand,
        reach: OperandConversion,
        declared: Span,
    ) -> Result<Operand, Stop> {
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
        // An operator has one place in the text, so none is visited twice.
        let (mut met, mut next) = (vec![root], 0);
        while let Some(at) = met.get(next).copied() {
            next += 1;
            let part = &self.noted.parts[at as usize];
            met.extend(self.passed_by(part).filter_map(|(_, part, _)| part).filter(|at| passes(self, *at)));
        }
        met.sort_unstable();
        let spans: FxHashSet<Span> = met.iter().map(|at| self.noted.parts[*at as usize].span).collect();
        let settles = |overflow: &Overflow| {
            spans.contains(&overflow.span) && (overflow.fits_long || reach == OperandConversion::Wide)
        };
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

    fn reached_operand(
        &mut self,
        node: NodeId,
        reach: OperandConversion,
        place: Span,
        declared: Span,
    ) -> Result<NodeId, Stop> {
        if !reach.marks(&self.program.graph, node) {
            return Ok(node);
        }
        let qtype = self.literal(Value::Type(QType::Scalar(reach.scalar())), declared)?;
        let name = self.program.graph.intern(DECLARED_OPERAND);
        self.operator(name, &[node, qtype], place)
    }

    /// Returns true if a result that does not fit in its type is reported only at the end of the statement, because the statement's declared type may
    /// be able to hold it.
    pub(super) fn defers_overflows(&self) -> bool {
        self.noted.reaches
    }

    /// Reports the recorded results of integer literals that do not fit in their types.
    pub(super) fn report_overflows(&mut self) {
        let mut told: Option<Span> = None;
        for Overflow { problem, span, .. } in std::mem::take(&mut self.noted.overflows) {
            // A result that contains a reported one is not reported again.
            if told.is_none_or(|told| span.end < told.start || told.end < span.start) {
                self.cursor.report(problem);
                told = Some(span);
            }
        }
    }
}
