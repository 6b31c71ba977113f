//! The first pass of preparation, type inference. It looks up operator names, assigns types to leaves (inputs), infers the type of every node, and
//! binds operators to their overloads, with explicit casts. All problems are reported together, each at the text that caused it. Calls of functions
//! are inlined by this pass: see the module `function`.

mod days;
mod external;
mod free;
mod function;
mod instance;
mod map;
mod partial;
mod passed;

use crate::graph::Operand;
use crate::pass::cast::{cast_by, cast_to, conditional_of_arrays, literal_as};
use crate::pass::fold::written_array;
use crate::pass::{Options, evaluate_constant};
use crate::type_table::scalar_type;
use crate::{Id, Kind, TypedGraph, TypedModel};
use cembra_expr::{ForeignUse, Graph, Node, NodeId, Program, Vocabulary, foreign_hint};
use cembra_ops::{
    Meaning, OpId, Registry, ResolvedCall, Structure, TypeFault, Typing, becomes_wide, compare_types, id, list_types,
};
use cembra_runtime::{Excerpt, Extent, QType, Scalar};
use cembra_value::{Array, Budget, Code, Diagnostic, Diagnostics, Dict, Limits, Promise, ScalarValue, Value};
use days::UnmarkedOperands;
use external::Externs;
use function::Functions;
use passed::EnvironmentId;
use smallvec::SmallVec;
use std::cell::LazyCell;
use std::sync::Arc;

pub use partial::node_types;

/// The name of an input, its type, and its promise (a guarantee about its values that the type does not state).
type TypedLeaf = (Arc<str>, QType, Promise);

/// Finds the type and the promise of each input of the program. A promise is a guarantee about values that their type does not state. An input that
/// is not used need not have a type.
pub(super) fn leaves(
    program: &Program,
    leaf_type: &dyn Fn(&str) -> Option<QType>,
    limits: &Limits,
) -> Result<Vec<TypedLeaf>, Diagnostics> {
    let (found, problems) = find_leaves(program, leaf_type, limits);
    Diagnostics::check(problems)?;
    Ok(found)
}

/// Returns the model of a program before its nodes are typed. The model has leaves, but no nodes and no outputs.
pub(super) fn model_of_leaves(leaves: Vec<TypedLeaf>, program: &Program, options: &Options) -> TypedModel {
    let names: Vec<Arc<str>> = leaves.iter().map(|(name, _, _)| name.clone()).collect();
    let promises: Vec<Promise> = leaves.iter().map(|(_, _, promise)| *promise).collect();
    TypedModel {
        registry: options.registry,
        graph: TypedGraph::new(names.into(), program.graph.len()).with_promises(promises.into()),
        leaves: leaves.into_iter().map(|(name, qtype, _)| (name, qtype)).collect(),
        outputs: Vec::new(),
        rewritten: false,
    }
}

/// Finds the inputs that have types, and the problems of the inputs that have none.
fn find_leaves(
    program: &Program,
    leaf_type: &dyn Fn(&str) -> Option<QType>,
    limits: &Limits,
) -> (Vec<TypedLeaf>, Vec<Diagnostic>) {
    let mut found = Vec::new();
    let mut problems = Vec::new();
    // Computed only if some input has no type.
    let needed = LazyCell::new(|| program.needed_inputs());
    for (at, input) in program.inputs.iter().enumerate() {
        if problems.len() >= limits.problems.max(1) {
            break;
        }
        let given = leaf_type(&input.name).map(|given| given.as_input());
        if let Err(problem) = input.check_default() {
            problems.push(problem);
            continue;
        }
        let qtype = match (&input.qtype, given) {
            // A value that is always present needs no default.
            (Some(declared), Some(given)) if input.default.is_some() && declared.scalar() == given.scalar() => given,
            (Some(declared), Some(given)) if *declared != given => {
                problems.push(
                    Diagnostic::new(
                        Code::InputType,
                        format!("input `{}` is declared {declared}, but is given as {given}", input.name),
                    )
                    .at(input.span)
                    .label(format!("declared {declared} here")),
                );
                continue;
            }
            (Some(QType::Tensor(..)), _) | (None, Some(QType::Tensor(..))) => {
                let message = format!(
                    "input `{}` is a tensor, but this way of evaluation takes only scalars, tuples and arrays",
                    input.name
                );
                problems.push(Diagnostic::new(Code::Tensors, message).at(input.span).hint(
                    "evaluate the model as a whole: with `Model::compile` in Rust, or with the command `cembra eval`",
                ));
                continue;
            }
            (Some(qtype), _) => qtype.clone(),
            (None, Some(qtype)) => qtype,
            (None, None) if needed[at] => {
                let problem = Diagnostic::new(Code::MissingInputType, format!("input `{}` has no type", input.name));
                let is_declared = program.definitions.declared_inputs().is_none_or(|declared| at < declared);
                let similar = program.similar_name(&input.name, input.span).filter(|_| !is_declared);
                let known = foreign_hint(ForeignUse::Value, &input.name).filter(|_| !is_declared);
                let problem = match similar {
                    _ if let Some(hint) = known => problem.hint(hint),
                    Some(similar) => problem.hint(format!("did you mean `{}`?", similar.name)),
                    None => problem,
                };
                problems
                    .push(problem.at(input.span).hint(format!("declare the type, as in `input {}: f64`", input.name)));
                continue;
            }
            (None, None) => continue,
        };
        if let Err(problem) = input.promise.admit(&input.name, &qtype) {
            problems.push(problem.at(input.span));
            continue;
        }
        found.push((input.name.clone(), qtype, input.promise));
    }
    (found, problems)
}

pub(super) fn run(model: &mut TypedModel, program: &Program, options: &Options) -> Result<(), Diagnostics> {
    let graph = &program.graph;
    let mut typer = Typer::new(model, program, options)?;
    model.graph.set_distinct(true);
    let needed = typer.needed(program.outputs.iter().map(|o| o.node));
    for (at, needed) in needed.into_iter().enumerate() {
        options.budget.check_visit(at)?;
        let node = NodeId::from_index(at);
        if needed && typer.typed[at].is_none() && scalar_literal(graph, node).is_none() {
            let typed = typer.node(model, node, EnvironmentId::ROOT);
            typer.typed[at] = Some(typed);
            if let Some(id) = typed {
                typer.admit(model, id).map_err(|problem| problem.at(graph.span(node)))?;
            }
        }
        if !typer.has_room() {
            return Diagnostics::check(typer.problems);
        }
    }
    for output in &program.outputs {
        if let Some((value, _)) =
            (output.node.index() < graph.len()).then(|| scalar_literal(graph, output.node)).flatten()
        {
            typer.literal(model, output.node, value);
        }
        match typer.typed.get(output.node.index()) {
            Some(Some(Some(id))) => {
                let id = typer.output(model, output, *id, options);
                model.outputs.push((output.name.clone(), id));
            }
            // The problem was reported already.
            Some(_) => {}
            None => {
                let message = format!("output `{}` is a node of another graph", output.name);
                typer.report(output.node, Diagnostic::new(Code::Builder, message).at(output.span));
            }
        }
    }
    if program.outputs.is_empty() {
        typer.problems.push(Diagnostic::new(Code::NoOutput, "the model has no output").hint("add `output y = ..`"));
    }
    model.graph.set_distinct(false);
    Diagnostics::check(typer.problems)
}

/// The default of a leaf (input), and where it replaces the leaf's own value.
#[derive(Clone, Copy)]
enum Fallback<'a> {
    /// The leaf has no default: its own value is used.
    None,
    /// This default is used where the leaf is missing.
    Missing(&'a ScalarValue),
    /// This default is used everywhere, because no value is given for the leaf.
    Absent(&'a ScalarValue),
    /// An empty list or dictionary is used, because no value is given for the leaf.
    Empty,
}

/// For each leaf (input), its default and where it is used; empty if no input has a default.
fn defaults<'a>(program: &'a Program, model: &TypedModel, options: &Options) -> Vec<Fallback<'a>> {
    if program.inputs.iter().all(|input| input.default.is_none() && !input.is_empty_by_default) {
        return Vec::new();
    }
    // The leaves are in the order of the inputs, but some inputs have no leaf.
    let mut inputs = program.inputs.iter();
    let default_of = |name: &Arc<str>| {
        let input = inputs.find(|input| input.name == *name)?;
        let is_absent = options.absent.contains(&**name);
        if is_absent && input.is_empty_by_default {
            return Some(Fallback::Empty);
        }
        let default = input.default.as_ref()?;
        Some(if is_absent { Fallback::Absent(default) } else { Fallback::Missing(default) })
    };
    let found = model.leaves.iter().map(|(name, _)| name).map(default_of);
    found.map(|default| default.unwrap_or(Fallback::None)).collect()
}

/// The literal of an array without elements, or of a dictionary without entries; `None` for other types.
fn empty_literal(qtype: &QType) -> Option<Value> {
    if let Some((key, value)) = qtype.as_map() {
        let [keys, values] = [key, value].map(|scalar| Array::from_scalars(scalar, []));
        return Dict::new(keys, values).ok().map(|dict| Value::Dict(dict.into()));
    }
    Value::empty_collection(qtype).filter(|empty| matches!(empty, Value::Array(..)))
}

/// The most operands of a call whose types the message of a problem may show.
const OPERANDS_SHOWN: usize = 64;

/// The state of type inference for one program.
struct Typer<'a> {
    graph: &'a Graph,
    registry: &'static Registry,
    /// For each name in the graph, the operator with this name; `None` until the name is looked up.
    operators: Vec<Option<OpId>>,
    /// The operators that were chosen, by the types of operands, in place of the operators that the program names.
    chosen: SmallVec<[OpId; 2]>,
    /// The indices of the leaves, sorted by name.
    leaves: Vec<u32>,
    /// For each leaf (input), by its index, its default and where it is used; empty if no input has a default.
    defaults: Vec<Fallback<'a>>,
    limits: &'a Limits,
    budget: &'a Budget,
    /// The total size that the types of further nodes may have, a limit against types that grow with each node.
    allowance: Extent,
    problems: Vec<Diagnostic>,
    /// The operators of the host that the program declares.
    externs: Externs<'a>,
    /// For each expression node that depends on no parameter, its typed node. The outer `None` means that the node was not typed yet. The inner
    /// `None` means that the node or an operand has an error, which was reported.
    typed: Vec<Option<Option<Id>>>,
    /// For each literal, the node of its last cast; `None` before the first.
    cast_literals: Vec<Option<Id>>,
    functions: Functions,
    days: UnmarkedOperands,
}

impl<'a> Typer<'a> {
    /// The state before any node was typed.
    fn new(model: &TypedModel, program: &'a Program, options: &'a Options) -> Result<Self, Diagnostics> {
        let graph = &program.graph;
        let mut leaves: Vec<u32> = (0..model.leaves.len() as u32).collect();
        leaves.sort_unstable_by_key(|at| &model.leaves[*at as usize].0);
        let mut problems = Vec::new();
        let externs = external::externs(program, options, &mut problems);
        Ok(Typer {
            graph,
            registry: options.registry,
            operators: vec![None; graph.name_count()],
            chosen: SmallVec::new(),
            leaves,
            defaults: defaults(program, model, options),
            limits: options.budget.limits(),
            budget: &options.budget,
            allowance: options.budget.limits().type_allowance(),
            problems,
            externs,
            typed: vec![None; graph.len()],
            cast_literals: vec![None; graph.len()],
            functions: Functions::of(graph, options.registry)?,
            days: UnmarkedOperands::of(graph, options.registry),
        })
    }
}

impl Typer<'_> {
    /// Returns true if more problems may be reported.
    fn has_room(&self) -> bool {
        self.problems.len() < self.limits.problems.max(1)
    }

    /// Types a node whose operands are typed; `None` if there is a problem, which is reported.
    fn node(&mut self, model: &mut TypedModel, node: NodeId, environment: EnvironmentId) -> Option<Id> {
        match self.graph.node(node) {
            Node::Leaf(name) => {
                let name = self.graph.name(name);
                match self.leaves.binary_search_by_key(&name, |at| &model.leaves[*at as usize].0) {
                    Ok(at) => {
                        let at = self.leaves[at] as usize;
                        self.leaf(model, at, node)
                    }
                    Err(_) => {
                        let message = format!("leaf `{name}` has no type");
                        self.report(node, Diagnostic::new(Code::MissingInputType, message).at(self.graph.span(node)));
                        None
                    }
                }
            }
            Node::Placeholder(_) if let Some(argument) = self.functions.argument(environment, node) => Some(argument),
            Node::Placeholder(name) => {
                let message = format!("`{}` is a parameter outside of its function", self.graph.name(name));
                self.report(node, Diagnostic::new(Code::Name, message).at(self.graph.span(node)));
                None
            }
            Node::Literal(value) => Some(self.literal(model, node, value)),
            Node::Operator(name, operands) if let Some(declared) = self.externs.get(&name).copied() => {
                let mut given: SmallVec<[Id; 4]> = SmallVec::new();
                for operand in operands {
                    given.push(match scalar_literal(self.graph, *operand) {
                        Some((value, _)) => self.literal(model, *operand, value),
                        None => self.known(environment, *operand).flatten()?,
                    });
                }
                let op = self.registry.find(&declared.name);
                self.external(model, node, declared, op, &given)
            }
            Node::Operator(name, operands) => {
                let op = match self.operators[name.index()] {
                    Some(op) => op,
                    None => {
                        let Some(op) = self.registry.find(self.graph.name(name)) else {
                            self.unknown(node, self.graph.name(name));
                            return None;
                        };
                        self.operators[name.index()] = Some(op);
                        // An operator may have several names, and a cast may be explicit or implicit.
                        let is_other = self.registry.get(op).name != &**self.graph.name(name);
                        if is_other || is_cast(self.registry, op) || self.chosen.contains(&op) {
                            model.graph.set_distinct(false);
                        }
                        op
                    }
                };
                if op == id::LAMBDA {
                    model.graph.set_distinct(false);
                    return self.lambda(model, node, environment);
                }
                let mut given: SmallVec<[Operand<'_>; 4]> = SmallVec::new();
                for operand in operands {
                    given.push(match scalar_literal(self.graph, *operand) {
                        Some((value, qtype)) => Operand::Literal { node: *operand, value, qtype },
                        None => Operand::Node(self.known(environment, *operand).flatten()?),
                    });
                }
                let op = self.meant(model, node, op, &given)?;
                self.retype_operand_of_date(model, node, environment, op, &mut given)?;
                self.applied(model, node, op, &given)
            }
        }
    }

    /// The operator that the named operator `op` stands for on operands of these types; `None` if the number of operands is wrong, which is reported.
    fn meant(&mut self, model: &mut TypedModel, node: NodeId, op: OpId, given: &[Operand<'_>]) -> Option<OpId> {
        if !self.registry.get(op).is_replaceable(given.iter().map(|operand| operand.qtype(&model.graph))) {
            return Some(op);
        }
        // The operator that it means may take another number of operands.
        if let Err(fault) = self.registry.get(op).check_count(given.len()) {
            self.unresolved(model, node, op, given, &fault);
            return None;
        }
        Some(self.choose(model, op, given))
    }

    /// Applies an operator to typed operands; `None` if there is a problem, which is reported.
    fn applied(&mut self, model: &mut TypedModel, node: NodeId, op: OpId, given: &[Operand<'_>]) -> Option<Id> {
        let marked = match (op, given) {
            (id::WIDE, [x]) => Some((x, None)),
            (id::BESIDE, [x, y]) => Some((x, Some(y.qtype(&model.graph)))),
            _ => None,
        };
        // Most marks on numbers have no effect.
        if let Some((x, beside)) = marked
            && becomes_wide(x.qtype(&model.graph), beside).is_none()
        {
            model.graph.set_distinct(false);
            return Some(match *x {
                Operand::Node(x) => x,
                Operand::Literal { node, value, .. } => self.literal(model, node, value),
            });
        }
        let made = match self.registry.get(op).meaning {
            Meaning::Overloads(_) => self.operator(model, node, op, given),
            _ => self.structure(model, node, op, given),
        };
        if let (Some(_), Some(check)) = (made, self.registry.get(op).literals) {
            // A regular expression of a few bytes can take milliseconds to compile, so the time is checked first.
            if let Err(problem) = self.budget.check_time() {
                self.report(node, problem);
                return None;
            }
            if let Err(fault) = check(&model.graph.arguments(given)) {
                self.unresolved(model, node, op, given, &fault);
                return None;
            }
        }
        made
    }

    /// The operator that the named operator `written` stands for on operands of these types.
    fn choose(&mut self, model: &mut TypedModel, written: OpId, given: &[Operand<'_>]) -> OpId {
        let types: SmallVec<[&QType; 4]> = given.iter().map(|operand| operand.qtype(&model.graph)).collect();
        let op = self.registry.meant(written, &types);
        drop(types);
        if op != written && !self.chosen.contains(&op) {
            self.chosen.push(op);
            // The program may also use it by its own name.
            if self.operators.contains(&Some(op)) {
                model.graph.set_distinct(false);
            }
        }
        op
    }

    /// Makes the node for the value of the leaf (input) with the index `at`: the leaf, its default, or the default where the leaf is missing.
    fn leaf(&mut self, model: &mut TypedModel, at: usize, node: NodeId) -> Option<Id> {
        let TypedModel { graph, leaves, .. } = model;
        let (default, is_absent) = match self.defaults.get(at) {
            Some(Fallback::Missing(default)) if leaves[at].1.is_optional() => (*default, false),
            Some(Fallback::Absent(default)) => (*default, true),
            Some(Fallback::Empty) if let Some(empty) = empty_literal(&leaves[at].1) => {
                graph.set_distinct(false);
                return Some(graph.literal(empty, node));
            }
            _ => {
                let leaf = graph.add_of_distinct(Kind::Leaf(at as u32), &[], &leaves[at].1, node);
                return if leaves[at].1.as_map().is_some() { self.given_dict(model, leaf, node) } else { Some(leaf) };
            }
        };
        // Equal defaults become one literal.
        graph.set_distinct(false);
        let default = graph.literal(Value::Scalar(default.clone()), node);
        if is_absent {
            return Some(default);
        }
        let leaf = graph.add_of_distinct(Kind::Leaf(at as u32), &[], &leaves[at].1, node);
        self.operator(model, node, id::PRESENCE_OR, &[Operand::Node(leaf), Operand::Node(default)])
    }

    /// Makes the dictionary for an input that has keys and values as two arrays, the fields of `leaf`.
    fn given_dict(&mut self, model: &mut TypedModel, leaf: Id, node: NodeId) -> Option<Id> {
        model.graph.set_distinct(false);
        let mut members = [leaf; 2];
        for (at, member) in members.iter_mut().enumerate() {
            let index = model.graph.literal(Value::from(at as i64), node);
            *member = self.structure(model, node, id::PART, &[Operand::Node(leaf), Operand::Node(index)])?;
        }
        self.structure(model, node, id::DICT_MAKE, &members.map(Operand::Node))
    }

    /// Adds a literal node to the typed graph, without a cast.
    fn literal(&mut self, model: &mut TypedModel, node: NodeId, value: &Value) -> Id {
        match self.typed[node.index()] {
            Some(Some(known)) => known,
            _ => {
                let made = model.graph.literal_of_distinct(value.clone(), node);
                self.typed[node.index()] = Some(Some(made));
                made
            }
        }
    }

    /// Adds a node to the typed graph that applies an operator with overloads.
    fn operator(&mut self, model: &mut TypedModel, node: NodeId, op: OpId, given: &[Operand<'_>]) -> Option<Id> {
        if let [Operand::Node(x), Operand::Node(y)] = *given
            && let Some(made) = self.of_types(model, node, op, [x, y])
        {
            return made;
        }
        let resolved = model.graph.resolve_given(self.registry, op, given);
        let resolved = resolved.map_err(|fault| self.unresolved(model, node, op, given, &fault)).ok()?;
        let bound = self.bind(model, node, op, &resolved, given);
        let problem = |message| Diagnostic::new(Code::TypeMismatch, message).at(self.graph.span(node));
        bound.map_err(problem).map_err(|problem| self.report(node, problem)).ok()
    }

    /// Adds a node to the typed graph that applies an operator, with casts of the operands. The operator was resolved
    /// for these operands.
    fn bind(
        &mut self,
        model: &mut TypedModel,
        node: NodeId,
        op: OpId,
        resolved: &ResolvedCall,
        given: &[Operand<'_>],
    ) -> Result<Id, String> {
        let mut operands: SmallVec<[Id; 4]> = SmallVec::new();
        for (operand, wanted) in given.iter().zip(&resolved.signature.operands) {
            operands.push(match *operand {
                Operand::Node(id) => cast_to(&mut model.graph, self.registry, id, wanted, node)?,
                Operand::Literal { node: literal, value, qtype } => {
                    let known = self.cast_literals[literal.index()];
                    match known.filter(|known| model.graph.qtype(*known) == wanted) {
                        Some(known) => known,
                        None if qtype == wanted => self.literal(model, literal, value),
                        None => {
                            let made = self.cast_literal(model, literal, value, wanted, node)?;
                            *self.cast_literals[literal.index()].insert(made)
                        }
                    }
                }
            });
        }
        if op == id::WHERE && resolved.overload.is_none() {
            model.graph.set_distinct(false);
            return conditional_of_arrays(&mut model.graph, self.registry, resolved, &operands, node);
        }
        let qtype = &resolved.signature.ret;
        Ok(model.graph.add_of_distinct(Kind::bound(op, resolved), &operands, qtype, node))
    }

    /// Adds a literal node to the typed graph that is cast to the wider type `wanted`, for the operator `user`, which
    /// requires that type.
    fn cast_literal(
        &mut self,
        model: &mut TypedModel,
        literal: NodeId,
        value: &Value,
        wanted: &QType,
        user: NodeId,
    ) -> Result<Id, String> {
        match literal_as(self.registry, value, wanted)? {
            Some(value) => Ok(model.graph.literal_of_distinct(value, user)),
            None => {
                let made = self.literal(model, literal, value);
                cast_to(&mut model.graph, self.registry, made, wanted, user)
            }
        }
    }

    /// Adds a node to the typed graph that applies an operator without overloads: one that makes tuples or reads their
    /// fields, or a composite operator.
    fn structure(&mut self, model: &mut TypedModel, node: NodeId, op: OpId, given: &[Operand<'_>]) -> Option<Id> {
        let mut operands: SmallVec<[Id; 4]> = given
            .iter()
            .map(|operand| match *operand {
                Operand::Node(id) => id,
                Operand::Literal { node, value, .. } => self.literal(model, node, value),
            })
            .collect();
        if let (id::MAKE_NAMED, Some(names)) = (op, operands.first_mut())
            && let Some(value) = made_of_literals(&model.graph, self.registry, *names, self.limits)
        {
            model.graph.set_distinct(false);
            *names = model.graph.literal(value, node);
        }
        match self.registry.get(op).meaning {
            Meaning::Instantiate(instantiate) => {
                model.graph.set_distinct(false);
                return self.instantiate(model, node, op, instantiate, &operands);
            }
            Meaning::Structure(Structure::Named) => {
                model.graph.set_distinct(false);
                return self.named(model, node, &operands);
            }
            _ => {}
        }
        if let [x, y] = *operands
            && let Some(made) = self.of_types(model, node, op, [x, y])
        {
            return made;
        }
        let resolved = model.graph.resolve(self.registry, op, &operands);
        let resolved = resolved.map_err(|fault| self.unresolved(model, node, op, given, &fault)).ok()?;
        let qtype = &resolved.signature.ret;
        Some(model.graph.add_of_distinct(Kind::bound(op, &resolved), &operands, qtype, node))
    }

    /// Reports that an operator does not take these operands.
    fn unresolved(&mut self, model: &TypedModel, node: NodeId, op: OpId, given: &[Operand<'_>], fault: &TypeFault) {
        let types: Vec<QType> = given.iter().map(|operand| operand.qtype(&model.graph).clone()).collect();
        let alike = matches!(self.registry.get(op).typing, Typing::Promote(_));
        self.fault(node, fault, &types, alike);
    }

    /// Makes the result of an operator on two type literals. The outer `None` means that the operator or its operands are others. The inner `None`
    /// means that there is a problem, which is reported.
    fn of_types(&mut self, model: &mut TypedModel, node: NodeId, op: OpId, operands: [Id; 2]) -> Option<Option<Id>> {
        match self.compare_types(model, op, operands) {
            Ok(value) => {
                let value = value?;
                model.graph.set_distinct(false);
                Some(Some(model.graph.literal(value, node)))
            }
            Err(problem) => {
                self.report(node, problem.at(self.graph.span(node)));
                Some(None)
            }
        }
    }

    /// The value of an operator on two type literals; `None` for other operators and operands. The value is computed in this pass because later
    /// passes have no types as values.
    fn compare_types(&mut self, model: &TypedModel, op: OpId, [x, y]: [Id; 2]) -> Result<Option<Value>, Diagnostic> {
        let (Some(x), Some(y)) = (model.graph.value(x), model.graph.value(y)) else { return Ok(None) };
        if let Value::Type(qtype @ (QType::Tuple(_) | QType::Sequence(_))) = x {
            self.spend(qtype.extent(self.allowance).fields)?;
        }
        Ok(compare_types(op, x, y))
    }

    /// Reports a type fault at the operand that causes it, with the types of operands as labels at their places in the text. If a single operand
    /// causes the fault, the other operands are shown only if `alike` is true: then all operands should have one type.
    fn fault(&mut self, node: NodeId, fault: &TypeFault, types: &[QType], alike: bool) {
        let operands = self.graph.operands(node);
        let whole = self.graph.span(node);
        // A shared operand has many places; the one inside of this call is meant. Only the first ones are searched.
        let inside = |at: usize| {
            let whole = whole?;
            let mut spans = self.graph.spans(*operands.get(at)?).take(256);
            // A default has the span of the call.
            spans.find(|span| whole.start <= span.start && span.end <= whole.end && *span != whole)
        };
        let label = |at: usize| match types.get(at) {
            Some(QType::Nothing) => "this value has no type".to_owned(),
            Some(qtype) => format!("this is {qtype}"),
            None => String::new(),
        };
        let is_declared = matches!(self.graph.node(node), Node::Operator(name, _)
            if self.operators[name.index()] == Some(id::DECLARED));
        // The argument of a parameter with a type is outside of this call.
        let argument = |at: usize| self.graph.span(*operands.get(at)?).filter(|_| is_declared);
        let blamed = fault.operand.and_then(|at| Some((at, inside(at).or_else(|| argument(at))?)));
        let mut diagnostic = Diagnostic::new(fault.code, fault.message.clone());
        diagnostic = match blamed {
            Some((at, span)) => diagnostic.at(span).label(label(at)),
            None => diagnostic.at(whole),
        };
        if let Some(span) = inside(1).filter(|_| is_declared) {
            diagnostic = diagnostic.also(span, "declared here");
        } else if fault.code == Code::TypeMismatch && (alike || blamed.is_none()) {
            let others = (0..types.len().min(OPERANDS_SHOWN))
                .filter(|at| blamed.is_none_or(|(blamed, _)| blamed != *at) && types[*at] != QType::Meta);
            let places: Vec<_> = others.filter_map(|at| Some((at, inside(at)?))).take(4).collect();
            if places.is_empty() && blamed.is_none() {
                diagnostic = diagnostic.label(format!("operands are {}", list_types(types, ", ")));
            }
            for (at, span) in places {
                diagnostic = diagnostic.also(span, label(at));
            }
        }
        if let Some(hint) = &fault.hint {
            diagnostic = diagnostic.hint(hint.clone());
        }
        self.report(node, diagnostic);
    }

    fn unknown(&mut self, node: NodeId, name: &str) {
        let message = format!("there is no operator `{}`", Excerpt::quoted(name));
        let mut diagnostic = Diagnostic::new(Code::UnknownName, message).at(self.graph.span(node));
        let last = name.rsplit('.').next().unwrap_or(name);
        let known = foreign_hint(ForeignUse::Call, name).or_else(|| foreign_hint(ForeignUse::Call, last));
        if let Some(hint) = known {
            diagnostic = diagnostic.hint(hint);
        } else if let Some(near) = self.registry.suggest(name).first() {
            diagnostic = diagnostic.hint(format!("did you mean `{near}`?"));
        }
        self.report(node, diagnostic);
    }

    /// Checks an output: it must have a type, and a weak float becomes FLOAT64 unless an option keeps it.
    fn output(&mut self, model: &mut TypedModel, output: &cembra_expr::Output, id: Id, options: &Options) -> Id {
        let typed = &mut model.graph;
        let qtype = typed.qtype(id).clone();
        match qtype {
            _ if !qtype.is_run_time() && !self.has_room() => id,
            _ if !qtype.is_run_time() => {
                self.problems.push(
                    Diagnostic::new(Code::UntypedOutput, format!("output `{}` has no type", output.name))
                        .at(output.span.or(self.graph.span(output.node)))
                        .hint(match qtype {
                            QType::Meta => "use the type in `core.cast(x, f32)`: a type is not a value",
                            QType::Unspecified => "use `unspecified` only for an argument that is not given: `unspecified` is not a value",
                            QType::Function => "call the function, or pass it to `core.map_tuple` or `seq.map`: a function is not a value",
                            QType::Dict(..) | QType::Tuple(_) => "look up a key in the dictionary, as in `lookup(x, {\"a\": 1}, 0)`: a dictionary is not a value",
                            QType::Sequence(_) => "use `seq.reduce` to make one value of the sequence, or `seq.at` for an element: a sequence is not a value",
                            _ => "write the type, as in `missing[f32]`",
                        }),
                );
                id
            }
            _ if options.keep_weak_outputs => id,
            _ => strengthen(typed, self.registry, id, output.node),
        }
    }
}

/// The value and the type of a literal that may be cast to another type by its use; `None` for other nodes.
fn scalar_literal(graph: &Graph, node: NodeId) -> Option<(&Value, &'static QType)> {
    let Node::Literal(value) = graph.node(node) else { return None };
    let qtype = match value {
        Value::Scalar(scalar) => scalar_type(scalar.scalar(), false),
        Value::Present(scalar) => scalar_type(scalar.scalar(), true),
        Value::Missing(scalar) => scalar_type(*scalar, true),
        _ => return None,
    };
    Some((value, qtype))
}

/// The value of the node `made` if it is an operator on literals, for example the tuple of texts with the names of a tuple's fields. `None` if the
/// value cannot be computed.
fn made_of_literals(graph: &TypedGraph, registry: &Registry, made: Id, limits: &Limits) -> Option<Value> {
    written_array(graph, registry, made, limits.literal_bytes)
        .or_else(|| evaluate_constant(graph, registry, made, |operand| graph.value(operand)))
}

/// Returns true for operators that are used as implicit casts.
fn is_cast(registry: &Registry, op: OpId) -> bool {
    op == id::TO_OPTIONAL || Scalar::ALL.into_iter().any(|scalar| registry.cast_to(scalar) == Some(op))
}

/// Casts a node that is a weak float to FLOAT64. If the node makes a tuple, casts the fields that are weak floats. Returns other nodes unchanged.
fn strengthen(typed: &mut TypedGraph, registry: &Registry, id: Id, origin: NodeId) -> Id {
    match typed.qtype(id).clone() {
        QType::Scalar(Scalar::WeakFloat) | QType::Optional(Scalar::WeakFloat) => {
            // This cast exists.
            cast_by(typed, registry, id::TO_FLOAT64, id, origin).unwrap_or(id)
        }
        // The recursion is bounded: types nest only as deep as the text or the builder may nest them.
        QType::Tuple(types) => {
            let Some(fields) = typed.made_fields(id).map(SmallVec::<[Id; 4]>::from_slice) else { return id };
            let strong: SmallVec<[Id; 4]> =
                fields.iter().map(|field| strengthen(typed, registry, *field, origin)).collect();
            if strong == fields {
                return id;
            }
            let qtype = QType::Tuple(types.with(strong.iter().map(|field| typed.qtype(*field).clone()).collect()));
            let (kind, origin) = (typed.kind(id), typed.origin(id));
            // The names of a named tuple come before its fields.
            let mut names: SmallVec<[Id; 1]> = typed.operands(id)[..typed.operands(id).len() - fields.len()].into();
            if typed.op(id) == Some(id::FORMED) {
                names = SmallVec::from_elem(typed.literal(Value::Type(qtype.clone()), origin), 1);
            }
            let operands: SmallVec<[Id; 4]> = names.iter().chain(&strong).copied().collect();
            typed.add(kind, &operands, &qtype, origin)
        }
        _ => id,
    }
}
