//! The first pass: operator names are looked up, leaves get their types, and the type of every node is inferred. All
//! problems are reported together, each at the text that caused it.

use crate::pass::{Options, Prepared};
use crate::{Id, Kind};
use cembra_expr::{Code, Diagnostic, Diagnostics, Graph, Node, NodeId, Program, Vocabulary};
use cembra_ops::{OpId, Registry, TypeFault, id};
use cembra_runtime::{QType, Scalar};
use smallvec::SmallVec;
use std::sync::Arc;

/// The type of each input of the program that has one; inputs nobody uses need none.
pub(super) fn leaves(
    program: &Program,
    leaf_type: &dyn Fn(&str) -> Option<QType>,
) -> Result<Vec<(Arc<str>, QType)>, Diagnostics> {
    let mut found = Vec::new();
    let mut problems = Vec::new();
    let used = used_leaves(program);
    for input in &program.inputs {
        let given = leaf_type(&input.name);
        let qtype = match (&input.qtype, given) {
            (Some(declared), Some(given)) if *declared != given => {
                problems.push(
                    Diagnostic::new(
                        Code::InputType,
                        format!("input `{}` is declared {declared}, but its data is {given}", input.name),
                    )
                    .at(input.span),
                );
                continue;
            }
            (Some(qtype), _) => qtype.clone(),
            (None, Some(qtype)) => qtype,
            (None, None) if used.contains(&input.name) => {
                problems.push(
                    Diagnostic::new(Code::MissingInputType, format!("input `{}` has no type", input.name))
                        .at(input.span)
                        .hint(format!("declare it, as in `input {}: f64`", input.name)),
                );
                continue;
            }
            (None, None) => continue,
        };
        found.push((input.name.clone(), qtype));
    }
    Diagnostics::check(problems)?;
    Ok(found)
}

fn used_leaves(program: &Program) -> rustc_hash::FxHashSet<Arc<str>> {
    let graph = &program.graph;
    let needed = graph.reachable(program.outputs.iter().map(|o| o.node));
    (0..graph.len())
        .filter(|at| needed[*at])
        .filter_map(|at| match graph.node(NodeId::from_index(at)) {
            Node::Leaf(name) => Some(graph.name(name).clone()),
            _ => None,
        })
        .collect()
}

pub(super) fn run(prepared: &mut Prepared, program: &Program, options: &Options) -> Result<(), Diagnostics> {
    let graph = &program.graph;
    let mut typer =
        Typer { graph, registry: options.registry, operators: vec![None; graph.name_count()], problems: Vec::new() };
    let needed = graph.reachable(program.outputs.iter().map(|o| o.node));
    // A node whose operand failed is not reported again.
    let mut map: Vec<Option<Id>> = vec![None; graph.len()];
    for at in 0..graph.len() {
        if needed[at] {
            map[at] = typer.node(prepared, NodeId::from_index(at), &map);
        }
    }
    for output in &program.outputs {
        if let Some(id) = map[output.node.index()] {
            let id = typer.output(prepared, output, id, options);
            prepared.outputs.push((output.name.clone(), id));
        }
    }
    if program.outputs.is_empty() {
        typer.problems.push(Diagnostic::new(Code::NoOutput, "the model has no output").hint("add `output y = ..`"));
    }
    Diagnostics::check(typer.problems)
}

struct Typer<'a> {
    graph: &'a Graph,
    registry: &'static Registry,
    /// What each name means as an operator, looked up once.
    operators: Vec<Option<OpId>>,
    problems: Vec<Diagnostic>,
}

impl Typer<'_> {
    fn node(&mut self, prepared: &mut Prepared, node: NodeId, map: &[Option<Id>]) -> Option<Id> {
        match self.graph.node(node) {
            Node::Leaf(name) => {
                let name = self.graph.name(name);
                match prepared.leaves.iter().position(|(leaf, _)| leaf == name) {
                    Some(at) => {
                        let qtype = prepared.leaves[at].1.clone();
                        Some(prepared.graph.leaf(at as u32, qtype, node))
                    }
                    None => {
                        let message = format!("leaf `{name}` has no type");
                        self.problems.push(Diagnostic::new(Code::MissingInputType, message).at(self.graph.span(node)));
                        None
                    }
                }
            }
            Node::Placeholder(name) => {
                let message = format!("`{}` is a parameter outside of its function", self.graph.name(name));
                self.problems.push(Diagnostic::new(Code::Name, message).at(self.graph.span(node)));
                None
            }
            Node::Literal(value) => Some(prepared.graph.literal(value.clone(), node)),
            Node::Operator(name, operands) => {
                let op = match self.operators[name.index()] {
                    Some(op) => op,
                    None => {
                        let Some(op) = self.registry.find(self.graph.name(name)) else {
                            self.unknown(node, self.graph.name(name));
                            return None;
                        };
                        self.operators[name.index()] = Some(op);
                        op
                    }
                };
                let operands: SmallVec<[Id; 4]> = operands.iter().map(|o| map[o.index()]).collect::<Option<_>>()?;
                self.operator(prepared, node, op, &operands)
            }
        }
    }

    fn operator(&mut self, prepared: &mut Prepared, node: NodeId, op: OpId, operands: &[Id]) -> Option<Id> {
        let typed = &mut prepared.graph;
        match typed.resolve(self.registry, op, operands) {
            Ok(resolved) => {
                let kind = Kind::Operator { op, overload: None, lifted: false };
                Some(typed.add(kind, operands, resolved.signature.ret, node))
            }
            Err(fault) => {
                let types: Vec<String> = operands.iter().map(|o| typed.qtype(*o).to_string()).collect();
                self.fault(node, &fault, &types);
                None
            }
        }
    }

    /// Reports a type fault at the operand to blame, showing the types of all operands.
    fn fault(&mut self, node: NodeId, fault: &TypeFault, types: &[String]) {
        let operands = self.graph.operands(node);
        let whole = self.graph.span(node);
        let blamed = fault.operand.and_then(|at| Some((self.graph.span(*operands.get(at)?)?, types.get(at)?)));
        let mut diagnostic = Diagnostic::new(fault.code, fault.message.clone());
        diagnostic = match (blamed, whole) {
            // A shared operand may have been written elsewhere first; then the call itself is the better place.
            (Some((span, qtype)), Some(whole)) if whole.start <= span.start && span.end <= whole.end => {
                diagnostic.at(span).label(format!("this is {qtype}"))
            }
            _ => {
                let mut diagnostic = diagnostic.at(whole);
                if fault.code == Code::TypeMismatch {
                    diagnostic = diagnostic.label(format!("operands are {}", types.join(", ")));
                }
                diagnostic
            }
        };
        if let Some(hint) = &fault.hint {
            diagnostic = diagnostic.hint(hint.clone());
        }
        self.problems.push(diagnostic);
    }

    fn unknown(&mut self, node: NodeId, name: &str) {
        let mut diagnostic =
            Diagnostic::new(Code::UnknownName, format!("there is no operator `{name}`")).at(self.graph.span(node));
        if let Some(near) = self.registry.suggest(name).first() {
            diagnostic = diagnostic.hint(format!("did you mean `{near}`?"));
        }
        self.problems.push(diagnostic);
    }

    /// An output: must have a type, and a weak float becomes FLOAT64 unless asked otherwise.
    fn output(&mut self, prepared: &mut Prepared, output: &cembra_expr::Output, id: Id, options: &Options) -> Id {
        let typed = &mut prepared.graph;
        let qtype = typed.qtype(id).clone();
        match qtype {
            QType::Nothing | QType::Meta => {
                self.problems.push(
                    Diagnostic::new(Code::UntypedOutput, format!("output `{}` has no type", output.name))
                        .at(output.span.or(self.graph.span(output.node)))
                        .hint("write the type, as in `missing[f32]`"),
                );
                id
            }
            QType::Scalar(Scalar::WeakFloat) | QType::Optional(Scalar::WeakFloat) if !options.keep_weak_outputs => {
                let kind = Kind::Operator { op: id::TO_FLOAT64, overload: None, lifted: false };
                typed.add(kind, &[id], QType::of(Scalar::Float64, qtype.is_optional()), output.node)
            }
            _ => id,
        }
    }
}
