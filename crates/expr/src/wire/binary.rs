//! The binary form of programs: protobuf, small and quick to read. The messages and their field numbers are in `messages`.

use super::assembly::Assembly;
use super::messages::{self, Header, Kind};
use super::numbering::Numbering;
use super::{
    FORMAT, check_header, check_length, claims, damaged, is_of_truth_values, literal, parameters_of, version_of,
};
use crate::text::Spelling;
use crate::{NameId, Node, Program};
use cembra_value::{Code, Diagnostic, Error, Limits, Span};
use prost::Message;

/// Returns the program as protobuf. [`read_binary`] reads it back as an equal program, including spans.
#[must_use]
pub fn write_binary(program: &Program) -> Vec<u8> {
    let graph = &program.graph;
    let numbering = Numbering::of(program);
    let mut file = messages::Program { format: FORMAT.to_owned(), version: version_of(program), ..Default::default() };
    let mut positions: Vec<Option<u32>> = vec![None; graph.name_count()];
    let mut position = |file: &mut messages::Program, name: NameId| {
        let found = *positions[name.index()].get_or_insert_with(|| {
            file.names.push(graph.name(name).to_string());
            file.names.len() as u32 - 1
        });
        file.subjects.push(found);
    };
    for (number, id) in numbering.nodes.iter().enumerate() {
        let kind = match graph.node(*id) {
            Node::Leaf(name) => {
                position(&mut file, name);
                Kind::Leaf
            }
            Node::Placeholder(name) => {
                position(&mut file, name);
                Kind::Placeholder
            }
            Node::Literal(value) => {
                file.literals.push(literal::write(value));
                Kind::Literal
            }
            Node::Operator(name, operands) => {
                position(&mut file, name);
                file.arities.push(operands.len() as u32);
                file.operands.extend(operands.iter().map(|operand| number as u32 - numbering.number(*operand)));
                Kind::Operator
            }
        };
        file.kinds.push(kind.into());
    }
    if numbering.nodes.iter().any(|id| graph.span(*id).is_some()) {
        for id in &numbering.nodes {
            let before = file.span_starts.len();
            for span in graph.spans(*id) {
                file.span_starts.push(span.start);
                file.span_lengths.push(length(span));
            }
            file.span_counts.push((file.span_starts.len() - before) as u32);
        }
    }
    file.inputs.extend(program.inputs.iter().map(|input| messages::Input {
        name: input.name.to_string(),
        qtype: input.spelled_type(Spelling::File),
        span: input.span.map(write_span),
        default: input.default.clone().map(|value| messages::Scalar { value: Some(value) }),
        is_empty: input.is_empty_by_default,
    }));
    file.externs.extend(program.externs.iter().map(|declared| messages::Extern {
        name: declared.name.to_string(),
        parameters: parameters_of(declared),
        result: Spelling::File.type_text(&declared.result),
        span: declared.span.map(write_span),
    }));
    let rules = program.tiles.iter();
    file.tiles.extend(rules.map(|rule| messages::TileRule { cut: rule.to_string(), span: rule.span.map(write_span) }));
    file.outputs.extend(program.outputs.iter().map(|output| messages::Output {
        name: output.name.to_string(),
        node: numbering.number(output.node),
        span: output.span.map(write_span),
    }));
    file.encode_to_vec()
}

fn length(span: Span) -> u32 {
    span.end.saturating_sub(span.start)
}

fn write_span(span: Span) -> messages::Span {
    messages::Span { start: span.start, length: length(span) }
}

/// Reads a program that [`write_binary`] of this or an older version wrote. Memory and time are bounded by the length of the file and by the limits.
///
/// # Errors
/// If the file is not a program, is of a newer version or damaged (code `wire`), or exceeds a limit.
pub fn read_binary(bytes: &[u8], limits: &Limits) -> Result<Program, Error> {
    Ok(read(bytes, limits)?)
}

fn unreadable(error: &prost::DecodeError) -> Diagnostic {
    Diagnostic::new(Code::Wire, format!("the file is damaged: {error}"))
}

fn read(bytes: &[u8], limits: &Limits) -> Result<Program, Diagnostic> {
    check_length(bytes.len(), limits)?;
    // Another version may use other field numbers, so only the header is read first.
    let header = Header::decode(bytes).map_err(|error| unreadable(&error))?;
    check_header(Some(&header.format), header.version.into())?;
    claims::check(bytes, limits)?;
    let file = messages::Program::decode(bytes).map_err(|error| unreadable(&error))?;
    let mut assembly = Assembly::new(limits);
    let types = file.inputs.iter().map(|input| input.qtype.as_deref());
    assembly.has_truth_values = is_of_truth_values(header.version.into(), types);

    let mut operators: Vec<Option<NameId>> = vec![None; file.names.len()];
    let mut literals = file.literals.into_iter();
    let mut subjects = Column::new("subjects", &file.subjects);
    let mut arities = Column::new("arities", &file.arities);
    let mut operands = Column::new("operands", &file.operands);
    let mut span_counts = Column::new("span_counts", &file.span_counts);
    let mut span_starts = Column::new("span_starts", &file.span_starts);
    let mut span_lengths = Column::new("span_lengths", &file.span_lengths);
    for kind in &file.kinds {
        let number = assembly.len();
        let kind = Kind::try_from(*kind).map_err(|_| assembly.damaged_node("the kind of the node is unknown"))?;
        if kind == Kind::Literal {
            let found = literals
                .next()
                .ok_or_else(|| damaged("literals", "the list of literals ends before the last literal of the nodes"))?;
            let value = literal::read(found, limits, &assembly)?;
            assembly.literal(value)?;
        } else {
            let position = subjects.next()? as usize;
            let name = file.names.get(position);
            let name = name.ok_or_else(|| assembly.damaged_node(format_args!("there is no name {position}")))?;
            match kind {
                Kind::Leaf => assembly.leaf(name)?,
                Kind::Placeholder => assembly.placeholder(name)?,
                Kind::Operator | Kind::Literal => {
                    let name = match operators[position] {
                        Some(known) => known,
                        None => *operators[position].insert(assembly.operator_name(name)?),
                    };
                    let arity = arities.next()?;
                    let operand = |_| {
                        let distance = operands.next()? as usize;
                        // A distance of 0 would be the node itself, which is not before itself.
                        number.checked_sub(distance).ok_or_else(|| {
                            damaged(format_args!("nodes[{number}]"), "an operand is before the first node")
                        })
                    };
                    assembly.operator(name, (0..arity).map(operand))?;
                }
            }
        }
        if !file.span_counts.is_empty() {
            for _ in 0..span_counts.next()? {
                let start = span_starts.next()?;
                assembly.span(start, start.checked_add(span_lengths.next()?))?;
            }
        }
    }
    if literals.next().is_some() {
        return Err(damaged(
            "literals",
            "the list of literals has more entries than there are literals among the nodes",
        ));
    }
    for column in [subjects, arities, operands, span_counts, span_starts, span_lengths] {
        column.finish()?;
    }
    let ends = |span: &Option<messages::Span>| span.map(|span| (span.start, span.start.checked_add(span.length)));
    for input in file.inputs {
        assembly.input(&input.name, input.qtype.as_deref(), ends(&input.span))?;
        if let Some(default) = input.default {
            assembly.default_of_input(default.value)?;
        }
        if input.is_empty {
            assembly.empty_default_of_input()?;
        }
    }
    for declared in &file.externs {
        assembly.external(&declared.name, &declared.parameters, &declared.result, ends(&declared.span))?;
    }
    for rule in &file.tiles {
        assembly.tile_rule(&rule.cut, ends(&rule.span))?;
    }
    for output in &file.outputs {
        assembly.output(&output.name, output.node, ends(&output.span))?;
    }
    assembly.finish()
}

/// A column of numbers that the nodes consume one by one.
struct Column<'m> {
    name: &'static str,
    numbers: std::slice::Iter<'m, u32>,
}

impl<'m> Column<'m> {
    fn new(name: &'static str, numbers: &'m [u32]) -> Self {
        Column { name, numbers: numbers.iter() }
    }

    fn next(&mut self) -> Result<u32, Diagnostic> {
        self.numbers.next().copied().ok_or_else(|| damaged(self.name, "the list ends before the last node"))
    }

    fn finish(mut self) -> Result<(), Diagnostic> {
        match self.numbers.next() {
            None => Ok(()),
            Some(_) => Err(damaged(self.name, "the list goes on after the last node")),
        }
    }
}
