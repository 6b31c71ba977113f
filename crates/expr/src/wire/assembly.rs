//! Assembles a program from the content of a model file, in any version of the format. Every name, index and size is checked before it is used.

use super::{damaged, damaged_text, of_truth_values};
use crate::text::{
    InputType, is_word, literal_bytes, parse_input_type_within, parse_tile_rule_within, parse_type_within,
    value_nesting,
};
use crate::{Extern, Input, NameId, NodeId, Output, Program, TileRule};
use cembra_runtime::QType;
use cembra_value::{Code, Diagnostic, Limit, Limits, ScalarValue, Span, Value};
use foldhash::fast::RandomState;
use std::collections::HashSet;
use std::sync::Arc;

/// A program that is being assembled from the content of a file.
pub(super) struct Assembly<'l> {
    limits: &'l Limits,
    /// True if the comparisons, `and` and `or` in the file give truth values (booleans), false if they give masks.
    pub(super) has_truth_values: bool,
    program: Program,
    /// The node of the graph for each node number in the file. Equal nodes of the file become one node of the graph.
    nodes: Vec<NodeId>,
    operands: Vec<NodeId>,
    operand_count: usize,
    span_count: usize,
    literal_bytes: usize,
    input_names: HashSet<Arc<str>, RandomState>,
    output_names: HashSet<Arc<str>, RandomState>,
    extern_names: HashSet<Arc<str>, RandomState>,
    cut_labels: HashSet<Arc<str>, RandomState>,
}

impl<'l> Assembly<'l> {
    pub(super) fn new(limits: &'l Limits) -> Self {
        Assembly {
            limits,
            has_truth_values: false,
            program: Program::default(),
            nodes: Vec::new(),
            operands: Vec::new(),
            operand_count: 0,
            span_count: 0,
            literal_bytes: 0,
            input_names: HashSet::default(),
            output_names: HashSet::default(),
            extern_names: HashSet::default(),
            cut_labels: HashSet::default(),
        }
    }

    /// The number of nodes that were read so far.
    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Returns the error that the current node is damaged.
    pub(super) fn damaged_node(&self, what: impl std::fmt::Display) -> Diagnostic {
        damaged(format_args!("nodes[{}]", self.len()), what)
    }

    /// Returns an error if `nodes`, the number of nodes read so far, exceeds the limit on nodes. An input counts as a node too, because it has a
    /// leaf.
    pub(super) fn check_count(&self, nodes: usize) -> Result<(), Diagnostic> {
        if nodes > self.limits.nodes.min(u32::MAX as usize) { Err(self.limits.exceeded(Limit::Nodes)) } else { Ok(()) }
    }

    fn check_name(&self, name: &str) -> Result<(), Diagnostic> {
        if name.len() > self.limits.name_bytes { Err(self.limits.exceeded(Limit::NameBytes)) } else { Ok(()) }
    }

    /// Adds the bytes of a literal to the count of literal bytes. Returns an error if the count exceeds the limit.
    fn count_literal(&mut self, bytes: usize) -> Result<(), Diagnostic> {
        self.literal_bytes = self.literal_bytes.saturating_add(bytes);
        let is_within = self.literal_bytes <= self.limits.literal_bytes;
        if is_within { Ok(()) } else { Err(self.limits.exceeded(Limit::LiteralBytes)) }
    }

    /// Adds the leaf `name` to the program, as the next node of the file.
    pub(super) fn leaf(&mut self, name: &str) -> Result<(), Diagnostic> {
        self.check_name(name)?;
        let node = self.program.graph.leaf(name, None);
        self.nodes.push(node);
        Ok(())
    }

    pub(super) fn placeholder(&mut self, name: &str) -> Result<(), Diagnostic> {
        self.check_name(name)?;
        let node = self.program.graph.placeholder(name, None);
        self.nodes.push(node);
        Ok(())
    }

    pub(super) fn literal(&mut self, value: Value) -> Result<(), Diagnostic> {
        if value_nesting(&value, self.limits.tuple_nesting) > self.limits.tuple_nesting {
            return Err(self.limits.exceeded(Limit::TupleNesting));
        }
        self.count_literal(literal_bytes(&value))?;
        let node = self.program.graph.literal(value, None);
        self.nodes.push(node);
        Ok(())
    }

    /// Returns the name id of the operator that is being read.
    pub(super) fn operator_name(&mut self, name: &str) -> Result<NameId, Diagnostic> {
        self.check_name(name)?;
        if !name.split('.').all(is_word) {
            return Err(self.damaged_node(format_args!("`{}` cannot be the name of an operator", name.escape_debug())));
        }
        let name = if self.has_truth_values { of_truth_values(name) } else { name };
        Ok(self.program.graph.intern(name))
    }

    /// Adds an operator node to the program. `operands` are the numbers of its operands in the file.
    pub(super) fn operator(
        &mut self,
        name: NameId,
        operands: impl Iterator<Item = Result<usize, Diagnostic>>,
    ) -> Result<(), Diagnostic> {
        self.operands.clear();
        for operand in operands {
            let operand = operand?;
            self.operand_count += 1;
            if self.operand_count > self.limits.operands.min(u32::MAX as usize) {
                return Err(self.limits.exceeded(Limit::Operands));
            }
            match self.nodes.get(operand) {
                Some(node) => self.operands.push(*node),
                None => {
                    let position = self.operands.len();
                    let what =
                        format_args!("operand {position} is the node {operand}, which must come before this node");
                    return Err(self.damaged_node(what));
                }
            }
        }
        let node = self.program.graph.operator_named(name, &self.operands, None);
        self.nodes.push(node);
        Ok(())
    }

    /// Adds a span in the text to the last node.
    pub(super) fn span(&mut self, start: u32, end: Option<u32>) -> Result<(), Diagnostic> {
        self.span_count += 1;
        if self.span_count > self.limits.operands.min(u32::MAX as usize) {
            return Err(self.limits.exceeded(Limit::Operands));
        }
        let number = self.len().saturating_sub(1);
        let span = checked_span(start, end, format_args!("nodes[{number}]"))?;
        if let Some(node) = self.nodes.last() {
            self.program.graph.note_span(*node, Some(span));
        }
        Ok(())
    }

    /// Adds an input to the program, with its name, its type as text, and the start and end of its span.
    pub(super) fn input(
        &mut self,
        name: &str,
        qtype: Option<&str>,
        span: Option<(u32, Option<u32>)>,
    ) -> Result<(), Diagnostic> {
        let place = format!("inputs[{}]", self.program.inputs.len());
        self.check_name(name)?;
        let declared = qtype.map(|text| self.input_type(text, &place)).transpose()?;
        let span = span.map(|(start, end)| checked_span(start, end, &place)).transpose()?;
        let name: Arc<str> = name.into();
        if !self.input_names.insert(name.clone()) {
            return Err(damaged(place, format_args!("the input `{}` is in the list twice", name.escape_debug())));
        }
        self.program.graph.leaf(&name, None);
        self.check_count(self.program.graph.len())?;
        let untyped = Input::untyped(name, span);
        self.program.inputs.push(match declared {
            Some(InputType { qtype, promise, labels }) => Input { qtype: Some(qtype), promise, labels, ..untyped },
            None => untyped,
        });
        Ok(())
    }

    /// Sets the default of the last input.
    pub(super) fn default_of_input(&mut self, default: Option<ScalarValue>) -> Result<(), Diagnostic> {
        let at = self.program.inputs.len().saturating_sub(1);
        let Some(default) = default.filter(|_| !self.program.inputs.is_empty()) else {
            return Err(damaged(format_args!("inputs[{at}]"), "the default of the input is not a value"));
        };
        self.count_literal(literal_bytes(&Value::Scalar(default.clone())))?;
        let input = &mut self.program.inputs[at];
        input.default = Some(default);
        input.check_default().map_err(|problem| damaged(format_args!("inputs[{at}]"), problem.message()))
    }

    /// Sets the default `[]` or `{}` of the last input.
    pub(super) fn empty_default_of_input(&mut self) -> Result<(), Diagnostic> {
        let at = self.program.inputs.len().saturating_sub(1);
        let Some(input) = self.program.inputs.last_mut() else { return Ok(()) };
        input.is_empty_by_default = true;
        input.check_default().map_err(|problem| damaged(format_args!("inputs[{at}]"), problem.message()))
    }

    /// Adds to the program an operator of the host application. `parameters` is the tuple type of its parameters, as
    /// text.
    pub(super) fn external(
        &mut self,
        name: &str,
        parameters: &str,
        result: &str,
        span: Option<(u32, Option<u32>)>,
    ) -> Result<(), Diagnostic> {
        let place = format!("externs[{}]", self.program.externs.len());
        self.check_name(name)?;
        if !name.split('.').all(is_word) {
            let what = format_args!("`{}` cannot be the name of an operator", name.escape_debug());
            return Err(damaged(place, what));
        }
        let is_scalar = |qtype: &QType| matches!(qtype, QType::Scalar(_) | QType::Optional(_));
        let (parameters, result) = (self.qtype(parameters, &place)?, self.qtype(result, &place)?);
        let parameters = match parameters {
            QType::Tuple(fields) if fields.names().is_none() => fields.iter().cloned().collect(),
            _ => vec![parameters],
        };
        if !parameters.iter().chain([&result]).all(is_scalar) {
            return Err(damaged(place, "the parameters and the result of the operator must be scalars"));
        }
        let span = span.map(|(start, end)| checked_span(start, end, &place)).transpose()?;
        let name: Arc<str> = name.into();
        if !self.extern_names.insert(name.clone()) {
            return Err(damaged(place, format_args!("the operator `{}` is in the list twice", name.escape_debug())));
        }
        self.program.externs.push(Extern { name, parameters, result, span });
        self.check_count(self.program.graph.len().saturating_add(self.program.externs.len()))
    }

    /// Adds to the program a rule that cuts axes into tiles, given as a statement of the text language.
    pub(super) fn tile_rule(&mut self, statement: &str, span: Option<(u32, Option<u32>)>) -> Result<(), Diagnostic> {
        let place = format!("tiles[{}]", self.program.tiles.len());
        let rule = parse_tile_rule_within(statement, self.limits);
        let rule = rule.map_err(|problems| damaged_text(&place, &problems))?;
        self.count_literal(rule.cut.bytes())?;
        for label in &rule.labels {
            if !self.cut_labels.insert(label.clone()) {
                return Err(damaged(place, format_args!("the label `{label}` is cut twice")));
            }
        }
        let span = span.map(|(start, end)| checked_span(start, end, &place)).transpose()?;
        self.check_count(self.program.tiles.len())?;
        self.program.tiles.push(TileRule { span, ..rule });
        Ok(())
    }

    /// Parses the type and promise of an input, in the spelling of the text language.
    fn input_type(&self, text: &str, place: &str) -> Result<InputType, Diagnostic> {
        let found = parse_input_type_within(text, self.limits);
        let found = found.map_err(|problems| damaged_text(place, &problems))?;
        if !found.qtype.is_declarable() {
            return Err(damaged(place, format_args!("an input cannot have the type {}", found.qtype)));
        }
        Ok(found)
    }

    /// Parses a type in the spelling of the text language.
    pub(super) fn qtype(&self, text: &str, place: &str) -> Result<QType, Diagnostic> {
        parse_type_within(text, self.limits).map_err(|problems| damaged_text(place, &problems))
    }

    /// Adds an output to the program. `number` is the number of its node, which must have been added before.
    pub(super) fn output(
        &mut self,
        name: &str,
        number: u32,
        span: Option<(u32, Option<u32>)>,
    ) -> Result<(), Diagnostic> {
        let place = format!("outputs[{}]", self.program.outputs.len());
        self.check_name(name)?;
        let Some(node) = self.nodes.get(number as usize).copied() else {
            return Err(damaged(place, format_args!("there is no node {number}")));
        };
        let span = span.map(|(start, end)| checked_span(start, end, &place)).transpose()?;
        let name: Arc<str> = name.into();
        if !self.output_names.insert(name.clone()) {
            return Err(damaged(place, format_args!("the output `{}` is in the list twice", name.escape_debug())));
        }
        self.program.outputs.push(Output { name, node, span });
        Ok(())
    }

    /// Returns the program, in which every leaf without a declaration has become an input. Fails if there is no output.
    pub(super) fn finish(mut self) -> Result<Program, Diagnostic> {
        if self.program.outputs.is_empty() {
            return Err(Diagnostic::new(Code::NoOutput, "the model has no output")
                .hint("add an output: the list of outputs in the file is empty"));
        }
        self.program.add_undeclared_inputs();
        Ok(self.program)
    }
}

fn checked_span(start: u32, end: Option<u32>, place: impl std::fmt::Display) -> Result<Span, Diagnostic> {
    match end {
        Some(end) if start <= end => Ok(Span::new(start, end)),
        _ => Err(damaged(place, "a span ends before it begins")),
    }
}
