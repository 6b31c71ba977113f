//! The JSON form: for people, diffs and other programs. One line for each input, node and output.
//!
//! ```json
//! {
//! "format": "cembra-program",
//! "version": 1,
//! "inputs": [
//!   {"name":"x","type":"f32?"}
//! ],
//! "nodes": [
//!   {"leaf":"x"},
//!   {"literal":"1.5"},
//!   {"operator":"math.add","operands":[0,1]}
//! ],
//! "outputs": [
//!   {"name":"y","node":2}
//! ]
//! }
//! ```
//!
//! Types and literals are strings in the notation of the text language. It keeps every bit of a float and every digit of a
//! 64-bit integer, also where a reader of JSON makes floats of all numbers.

use super::assembly::Assembly;
use super::numbering::Numbering;
use super::{FORMAT, check_header, check_length, damaged_text, is_of_truth_values, parameters_of, version_of};
use crate::text::Spelling;
use crate::text::parse_value_within;
use crate::{Node, Program, print_default};
use cembra_value::{Diagnostic, Error, Limit, Limits, Span};
use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize as DeriveDeserialize, Serialize};
use std::borrow::Cow;
use std::cell::Cell;
use std::fmt::{self, Write};
use std::marker::PhantomData;

/// Start and end.
type SpanPair = (u32, u32);

#[derive(Serialize, DeriveDeserialize)]
#[serde(deny_unknown_fields)]
struct InputLine<'a> {
    name: Cow<'a, str>,
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    qtype: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    default: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    span: Option<SpanPair>,
}

#[derive(Serialize, DeriveDeserialize)]
#[serde(deny_unknown_fields)]
struct OutputLine<'a> {
    name: Cow<'a, str>,
    node: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    span: Option<SpanPair>,
}

#[derive(Serialize, DeriveDeserialize)]
#[serde(deny_unknown_fields)]
struct ExternLine<'a> {
    name: Cow<'a, str>,
    parameters: String,
    result: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    span: Option<SpanPair>,
}

#[derive(Serialize, DeriveDeserialize)]
#[serde(deny_unknown_fields)]
struct TileLine<'a> {
    /// The statement of the text language.
    cut: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    span: Option<SpanPair>,
}

/// A node as written: one of the first four, and operands exactly for an operator.
#[derive(Default, Serialize)]
struct NodeLine<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    leaf: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    placeholder: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    literal: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    operator: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    operands: Option<Vec<u32>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    spans: Vec<SpanPair>,
}

/// A node as read.
enum NodeKind {
    Leaf(String),
    Placeholder(String),
    Literal(String),
    Operator(String, Vec<u32>),
}

struct ReadNode {
    kind: NodeKind,
    spans: Vec<SpanPair>,
}

impl TryFrom<NodeLine<'_>> for ReadNode {
    type Error = &'static str;

    fn try_from(line: NodeLine<'_>) -> Result<Self, Self::Error> {
        let NodeLine { leaf, placeholder, literal, operator, operands, spans } = line;
        let kind = match (leaf, placeholder, literal, operator, operands) {
            (Some(name), None, None, None, None) => NodeKind::Leaf(name.into()),
            (None, Some(name), None, None, None) => NodeKind::Placeholder(name.into()),
            (None, None, Some(text), None, None) => NodeKind::Literal(text.into()),
            (None, None, None, Some(name), Some(operands)) => NodeKind::Operator(name.into(), operands),
            _ => return Err("a node is a `leaf`, a `placeholder`, a `literal`, or an `operator` with `operands`"),
        };
        Ok(ReadNode { kind, spans })
    }
}

/// What is read first, of a file of any version.
#[derive(DeriveDeserialize)]
struct Header {
    format: Option<String>,
    version: Option<u64>,
}

/// A program of versions 1 to 4.
struct File {
    inputs: Vec<InputLine<'static>>,
    externs: Vec<ExternLine<'static>>,
    tiles: Vec<TileLine<'static>>,
    nodes: Vec<ReadNode>,
    outputs: Vec<OutputLine<'static>>,
}

/// The keys of a file.
const KEYS: &[&str] = &["format", "version", "inputs", "externs", "tiles", "nodes", "outputs"];

/// The keys of a node.
const NODE_KEYS: &[&str] = &["leaf", "placeholder", "literal", "operator", "operands", "spans"];

/// What a file may still hold: it is counted while it is read, before there is memory for it.
struct Allowance {
    operands: Cell<usize>,
    spans: Cell<usize>,
    /// The limit that was exceeded.
    exceeded: Cell<Option<Limit>>,
}

/// Finds the position of a key that was not there yet.
fn key<E: serde::de::Error>(key: &str, keys: &'static [&'static str], seen: &mut [bool]) -> Result<&'static str, E> {
    let Some(at) = keys.iter().position(|known| *known == key) else { return Err(E::unknown_field(key, keys)) };
    if std::mem::replace(&mut seen[at], true) {
        return Err(E::duplicate_field(keys[at]));
    }
    Ok(keys[at])
}

/// Reads a program whose lists may have up to `most` elements.
#[derive(Clone, Copy)]
struct ReadFile<'f> {
    most: usize,
    allowance: &'f Allowance,
}

impl<'de> DeserializeSeed<'de> for ReadFile<'_> {
    type Value = File;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<File, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'f> ReadFile<'f> {
    /// One of the lists, whose elements are read so.
    fn list<S>(self, left: &'f Cell<usize>, element: S) -> ReadList<'f, S> {
        left.set(self.most);
        ReadList { left, limit: Limit::Nodes, exceeded: &self.allowance.exceeded, element }
    }
}

impl<'de> Visitor<'de> for ReadFile<'_> {
    type Value = File;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("struct File")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<File, M::Error> {
        let mut seen = [false; KEYS.len()];
        let (mut inputs, mut externs, mut tiles) = (Vec::new(), Vec::new(), Vec::new());
        let (mut nodes, mut outputs) = (None, None);
        let left = Cell::new(0);
        while let Some(found) = map.next_key::<String>()? {
            match key(&found, KEYS, &mut seen)? {
                "inputs" => inputs = map.next_value_seed(self.list(&left, PhantomData))?,
                "externs" => externs = map.next_value_seed(self.list(&left, PhantomData))?,
                "tiles" => tiles = map.next_value_seed(self.list(&left, PhantomData))?,
                "nodes" => nodes = Some(map.next_value_seed(self.list(&left, NodeSeed(self.allowance)))?),
                "outputs" => outputs = Some(map.next_value_seed(self.list(&left, PhantomData))?),
                _ => map.next_value::<IgnoredAny>().map(drop)?,
            }
        }
        if let Some(at) = seen[..2].iter().position(|seen| !seen) {
            return Err(M::Error::missing_field(KEYS[at]));
        }
        Ok(File {
            inputs,
            externs,
            tiles,
            nodes: nodes.ok_or_else(|| M::Error::missing_field("nodes"))?,
            outputs: outputs.ok_or_else(|| M::Error::missing_field("outputs"))?,
        })
    }
}

/// Reads a list of what `element` reads, and says which limit it exceeds if it has more elements than are left.
struct ReadList<'f, S> {
    left: &'f Cell<usize>,
    limit: Limit,
    exceeded: &'f Cell<Option<Limit>>,
    element: S,
}

impl<'de, S: DeserializeSeed<'de> + Copy> DeserializeSeed<'de> for ReadList<'_, S> {
    type Value = Vec<S::Value>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Vec<S::Value>, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de, S: DeserializeSeed<'de> + Copy> Visitor<'de> for ReadList<'_, S> {
    type Value = Vec<S::Value>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a sequence")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Vec<S::Value>, A::Error> {
        let mut found = Vec::new();
        while let Some(element) = elements.next_element_seed(self.element)? {
            let Some(left) = self.left.get().checked_sub(1) else {
                self.exceeded.set(Some(self.limit));
                return Err(A::Error::custom("there are too many elements"));
            };
            self.left.set(left);
            found.push(element);
        }
        Ok(found)
    }
}

/// Reads a node.
#[derive(Clone, Copy)]
struct NodeSeed<'f>(&'f Allowance);

impl<'f> NodeSeed<'f> {
    /// One of the lists of a node.
    fn list<T>(self, left: &'f Cell<usize>) -> ReadList<'f, PhantomData<T>> {
        ReadList { left, limit: Limit::Operands, exceeded: &self.0.exceeded, element: PhantomData }
    }
}

impl<'de> DeserializeSeed<'de> for NodeSeed<'_> {
    type Value = ReadNode;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<ReadNode, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for NodeSeed<'_> {
    type Value = ReadNode;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("struct NodeLine")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<ReadNode, M::Error> {
        let mut seen = [false; NODE_KEYS.len()];
        let mut line = NodeLine::default();
        while let Some(found) = map.next_key::<Cow<'_, str>>()? {
            match key(&found, NODE_KEYS, &mut seen)? {
                "leaf" => line.leaf = map.next_value()?,
                "placeholder" => line.placeholder = map.next_value()?,
                "literal" => line.literal = map.next_value()?,
                "operator" => line.operator = map.next_value()?,
                "operands" => line.operands = Some(map.next_value_seed(self.list(&self.0.operands))?),
                _ => line.spans = map.next_value_seed(self.list(&self.0.spans))?,
            }
        }
        line.try_into().map_err(M::Error::custom)
    }
}

/// The program as JSON; [`read_json`] reads it back as an equal one, spans included.
#[must_use]
pub fn write_json(program: &Program) -> String {
    let graph = &program.graph;
    let numbering = Numbering::of(program);
    let pair = |span: Span| (span.start, span.end.max(span.start));
    let mut out = String::new();
    let _never_fails = writeln!(out, "{{\n\"format\": \"{FORMAT}\",\n\"version\": {},", version_of(program));
    let inputs = program.inputs.iter().map(|input| InputLine {
        name: (*input.name).into(),
        qtype: input.spelled_type(Spelling::File),
        default: input.default.as_ref().map(print_default),
        span: input.span.map(pair),
    });
    write_lines(&mut out, "inputs", inputs, ",");
    if !program.externs.is_empty() {
        let externs = program.externs.iter().map(|declared| ExternLine {
            name: (*declared.name).into(),
            parameters: parameters_of(declared),
            result: Spelling::File.type_text(&declared.result),
            span: declared.span.map(pair),
        });
        write_lines(&mut out, "externs", externs, ",");
    }
    if !program.tiles.is_empty() {
        let tiles = program.tiles.iter();
        let tiles = tiles.map(|rule| TileLine { cut: rule.to_string().into(), span: rule.span.map(pair) });
        write_lines(&mut out, "tiles", tiles, ",");
    }
    let nodes = numbering.nodes.iter().map(|id| {
        let mut line = NodeLine { spans: graph.spans(*id).map(pair).collect(), ..NodeLine::default() };
        match graph.node(*id) {
            Node::Leaf(name) => line.leaf = Some((&**graph.name(name)).into()),
            Node::Placeholder(name) => line.placeholder = Some((&**graph.name(name)).into()),
            Node::Literal(value) => line.literal = Some(Spelling::File.value_text(value).into()),
            Node::Operator(name, operands) => {
                line.operator = Some((&**graph.name(name)).into());
                line.operands = Some(operands.iter().map(|operand| numbering.number(*operand)).collect());
            }
        }
        line
    });
    write_lines(&mut out, "nodes", nodes, ",");
    let outputs = program.outputs.iter().map(|output| OutputLine {
        name: (*output.name).into(),
        node: numbering.number(output.node),
        span: output.span.map(pair),
    });
    write_lines(&mut out, "outputs", outputs, "");
    out.push_str("}\n");
    out
}

fn write_lines(out: &mut String, key: &str, lines: impl Iterator<Item = impl Serialize>, behind: &str) {
    let _never_fails = write!(out, "\"{key}\": [");
    for (index, line) in lines.enumerate() {
        out.push_str(if index == 0 { "\n  " } else { ",\n  " });
        // Strings and numbers in structs can always be written.
        if let Ok(line) = serde_json::to_string(&line) {
            out.push_str(&line);
        }
    }
    let _never_fails = writeln!(out, "\n]{behind}");
}

/// Reads what [`write_json`] of this or an older version wrote, or what another program wrote in its form. Memory and
/// time are bounded by the length of the text and by the limits.
///
/// # Errors
/// That the text is not a program, is of a newer version or damaged (code `wire`), or exceeds a limit.
pub fn read_json(text: &str, limits: &Limits) -> Result<Program, Error> {
    Ok(read(text, limits)?)
}

/// Reads JSON of a form. The deepest form has four levels, and the reader skips the rest without recursion.
fn decode<'t, S: DeserializeSeed<'t>>(text: &'t str, form: S) -> Result<S::Value, Diagnostic> {
    let mut reader = serde_json::Deserializer::from_str(text);
    let found = form.deserialize(&mut reader).and_then(|found| reader.end().map(|()| found));
    found.map_err(|error| {
        let whole = error.to_string();
        let what = whole.rsplit_once(" at line ").map_or(&*whole, |(what, _)| what);
        // What is wrong may quote the file.
        let what: String = what.chars().take(200).collect();
        super::damaged(format_args!("line {}, column {}", error.line(), error.column()), what)
    })
}

fn read(text: &str, limits: &Limits) -> Result<Program, Diagnostic> {
    check_length(text.len(), limits)?;
    // Another version may have other fields, so the header alone is read first.
    let header: Header = decode(text, PhantomData)?;
    check_header(header.format.as_deref(), header.version.unwrap_or(0))?;
    let most = |limit: usize| limit.min(u32::MAX as usize);
    let allowance = Allowance {
        operands: Cell::new(most(limits.operands)),
        spans: Cell::new(most(limits.operands)),
        exceeded: Cell::new(None),
    };
    let read = decode(text, ReadFile { most: most(limits.nodes), allowance: &allowance });
    let file = match allowance.exceeded.get() {
        Some(limit) => Err(limits.exceeded(limit)),
        None => read,
    }?;
    let mut assembly = Assembly::new(limits);
    let types = file.inputs.iter().map(|input| input.qtype.as_deref());
    assembly.has_truth_values = is_of_truth_values(header.version.unwrap_or(0), types);
    for node in file.nodes {
        match node.kind {
            NodeKind::Leaf(name) => assembly.leaf(&name)?,
            NodeKind::Placeholder(name) => assembly.placeholder(&name)?,
            NodeKind::Literal(text) => {
                let value = parse_value_within(&text, limits);
                let place = || format!("nodes[{}]", assembly.len());
                let value = value.map_err(|problems| damaged_text(&place(), &problems))?;
                assembly.literal(value)?;
            }
            NodeKind::Operator(name, operands) => {
                let name = assembly.operator_name(&name)?;
                assembly.operator(name, operands.iter().map(|operand| Ok(*operand as usize)))?;
            }
        }
        for (start, end) in node.spans {
            assembly.span(start, Some(end))?;
        }
    }
    let ends = |span: Option<SpanPair>| span.map(|(start, end)| (start, Some(end)));
    for input in &file.inputs {
        assembly.input(&input.name, input.qtype.as_deref(), ends(input.span))?;
        if let Some(default) = &input.default {
            assembly.spelled_default_of_input(default)?;
        }
    }
    for declared in &file.externs {
        assembly.external(&declared.name, &declared.parameters, &declared.result, ends(declared.span))?;
    }
    for rule in &file.tiles {
        assembly.tile_rule(&rule.cut, ends(rule.span))?;
    }
    for output in &file.outputs {
        assembly.output(&output.name, output.node, ends(output.span))?;
    }
    assembly.finish()
}
