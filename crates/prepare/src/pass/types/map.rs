//! Maps functions over arrays, as in `core.map(fn(v) = v * 2, x)`. A function is typed once, on one element of each array, and becomes the body of a
//! mapping node. A value that the body uses but that depends on no element is captured: it becomes an operand of the node.

use super::instance::{Instance, arg_of, exceeded, id_of};
use crate::graph::Body;
use crate::{Id, Kind, TypedGraph};
use cembra_ops::{Expansion, ExpansionError, Instantiation, NodeHandle, TypeFault, id, structs};
use cembra_runtime::{ArrayKind, QType};
use cembra_value::{ScalarValue, Value};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::sync::Arc;

/// The kind that all arrays among the arguments have, dense or not.
fn array_kind(g: &dyn Expansion, args: &[NodeHandle]) -> Result<ArrayKind, TypeFault> {
    let mut found = None;
    for (at, arg) in args.iter().enumerate() {
        let qtype = &g.qtype(*arg);
        match qtype {
            QType::Array(kind, _) if found.is_some_and(|found| found != *kind) => {
                let message = format!("core.map expects all arrays to be dense, or none, found {qtype} among others");
                return Err(TypeFault::mismatch(message, Some(1 + at)));
            }
            QType::Array(kind, _) => found = Some(*kind),
            // The arrays of a list are dense.
            list if list.element().is_some() && found.is_some_and(|found| found != ArrayKind::Dense) => {
                let message = format!("core.map expects all arrays to be dense, or none, found {list} among others");
                return Err(TypeFault::mismatch(message, Some(1 + at)));
            }
            list if list.element().is_some() => found = Some(ArrayKind::Dense),
            // A type as an argument is a compile-time value.
            QType::Meta => {}
            qtype if qtype.is_framed() && qtype.is_run_time() => {}
            _ => {
                let message =
                    format!("core.map expects arrays, and values that are the same for all elements, found {qtype}");
                return Err(TypeFault::mismatch(message, Some(1 + at)));
            }
        }
    }
    found.ok_or_else(|| {
        TypeFault::mismatch("core.map expects at least one array", None)
            .hint("write `core.apply(fn(v) = v * 2, x)` for one value, or `core.map_tuple` for the fields of a tuple")
    })
}

/// The largest number of arguments with arrays for which every mapping node compares the lengths of the arrays, which must be equal. For more
/// arguments, a single node compares all lengths.
const COMPARED: usize = 8;

/// The number of steps that a node or an operand of a body counts as. It is more than 1 because every body has its own copies of nodes that several
/// fields need, and all bodies are kept.
const OF_A_BODY: usize = 4;

/// An array that a function is mapped over.
struct Mapped {
    operand: NodeHandle,
    /// The index of the argument that the array belongs to. A list is an argument with several arrays.
    argument: usize,
    /// True if the type of a list promises that no element is missing.
    is_promised: bool,
}

/// The arrays that a function is mapped over, and an analysis of the function's nodes. From it, the body that computes each result is extracted.
#[derive(Default)]
struct Extraction {
    arrays: Vec<Mapped>,
    /// For each node that stands for an unknown element of an array, the index of this array in `arrays`.
    elements: FxHashMap<Id, usize>,
    /// The index of the first node that may depend on elements.
    from: usize,
    /// The indices of the arrays whose lengths every mapping node compares, whether or not its body uses them: one array per argument.
    compared: Vec<usize>,
    /// For each node from `from` on, the node that has its value: for a field of a struct that is made there, the value of that field. So a
    /// body that reads one field of an element does not need the others.
    values: Vec<Id>,
    /// For each node from `from` on, true if its value depends on an element, so that it is computed in a body.
    is_inside: Vec<bool>,
}

/// The body of a mapping node, and the operands of the node: one per leaf of the body, and then arrays of which only the lengths are compared.
struct Extracted {
    body: Body,
    operands: Vec<Id>,
}

impl Extraction {
    /// The node whose value the node `node` has. It differs from `node` if `node` reads a field of a tuple that the function makes: then it is the
    /// node of that field.
    fn value_of(&self, node: Id) -> Id {
        let at = node.index().checked_sub(self.from);
        at.and_then(|at| self.values.get(at)).copied().unwrap_or(node)
    }

    /// Returns true if the value of a node depends on an element.
    fn is_inside(&self, node: Id) -> bool {
        let at = node.index().checked_sub(self.from);
        at.and_then(|at| self.is_inside.get(at)).is_some_and(|is_inside| *is_inside)
    }

    /// The operands of a node of the function, each replaced by the node that has its value.
    fn operands<'g>(&'g self, graph: &'g TypedGraph, node: Id) -> impl Iterator<Item = Id> + 'g {
        graph.operands(node).iter().map(|operand| self.value_of(*operand))
    }

    /// Computes `values` and `is_inside` for the nodes of the function, operands before users. A value that depends on no element is
    /// captured, so it is rebuilt without tuples that have an element in another field.
    fn find_values(&mut self, graph: &mut TypedGraph) {
        for node in (self.from + self.values.len()..graph.len()).map(Id::from_index) {
            let operands: SmallVec<[Id; 4]> = self.operands(graph, node).collect();
            let is_inside =
                matches!(graph.kind(node), Kind::State(_)) || operands.iter().any(|operand| self.is_inside(*operand));
            let value = match self.taken_field(graph, node) {
                Some(field) => self.value_of(field),
                None if is_inside => node,
                None => graph.with_operands(node, &operands),
            };
            self.is_inside.push(is_inside);
            self.values.push(value);
        }
    }

    /// The node of the field that `node` reads from a tuple, if another node makes this tuple from its fields; else `None`.
    fn taken_field(&self, graph: &TypedGraph, node: Id) -> Option<Id> {
        let (of, index) = match (graph.op(node)?, graph.operands(node)) {
            (id::GET_NTH | id::PART, [of, index]) => {
                (*of, usize::try_from(graph.value(*index)?.as_scalar()?.bits()).ok()?)
            }
            (id::GET_FIRST, [of]) => (*of, 0),
            (id::GET_SECOND, [of]) => (*of, 1),
            (id::GET_FIELD, [of, name]) => {
                let Some(ScalarValue::Text(name)) = graph.value(*name)?.as_scalar() else { return None };
                (*of, graph.qtype(*of).as_tuple()?.position(name)?)
            }
            _ => return None,
        };
        let (mut of, mut index) = (self.value_of(of), index);
        // Of a field that both tuples have, the second tuple's is used.
        while let Some([first, second]) = graph.as_op(of, id::UNION) {
            let name = graph.qtype(of).as_tuple()?.label(index);
            let position = |tuple: Id| graph.qtype(tuple).as_tuple()?.position(&name);
            (of, index) = match (position(*second), position(*first)) {
                (Some(index), _) => (self.value_of(*second), index),
                (None, index) => (self.value_of(*first), index?),
            };
        }
        graph.made_fields(of)?.get(index).copied()
    }

    /// The nodes that the result needs and that may depend on elements, operands before users.
    fn candidates(&self, graph: &TypedGraph, result: Id) -> Vec<Id> {
        let mut found = FxHashMap::default();
        let mut open = vec![self.value_of(result)];
        while let Some(node) = open.pop() {
            if node.index() >= self.from && found.insert(node, ()).is_none() {
                open.extend(self.operands(graph, node));
            }
        }
        let mut found: Vec<Id> = found.into_keys().collect();
        found.sort_unstable();
        found
    }

    /// Extracts the body that computes `result`. Its leaves are only the arrays and captured values that it uses, so the size of all bodies
    /// together does not depend on the number of arrays.
    fn body(&self, graph: &TypedGraph, result: Id) -> Result<Extracted, TypeFault> {
        let result = self.value_of(result);
        let mut members = self.candidates(graph, result);
        members.retain(|member| self.is_inside(*member));
        let mut captured: Vec<Id> = Vec::new();
        let used = members.iter().flat_map(|member| self.operands(graph, *member)).chain([result]);
        for operand in used {
            let found = graph.qtype(operand);
            if !found.is_framed() {
                let message = format!("core.map: the function must compute with scalars, found {found} in it");
                return Err(TypeFault::mismatch(message, Some(0)));
            }
            if !self.is_inside(operand) && graph.value(operand).is_none() {
                captured.push(operand);
            }
        }
        captured.sort_unstable();
        captured.dedup();
        let mut arrays: Vec<usize> = members.iter().filter_map(|member| self.elements.get(member)).copied().collect();
        arrays.sort_unstable();
        let operands: Vec<Id> = arrays.iter().map(|at| id_of(self.arrays[*at].operand)).chain(captured).collect();
        let names: Arc<[Arc<str>]> = (0..operands.len()).map(|at| Arc::from(at.to_string())).collect();
        let mut body = TypedGraph::new(names, members.len() + operands.len() - arrays.len());
        let mut copies: FxHashMap<Id, Id> = FxHashMap::default();
        for (at, node) in operands.iter().enumerate().skip(arrays.len()) {
            let leaf = body.add(Kind::Leaf(at as u32), &[], graph.qtype(*node), graph.origin(*node));
            copies.insert(*node, leaf);
        }
        let copy = |body: &mut TypedGraph, copies: &mut FxHashMap<Id, Id>, node: Id| match copies.get(&node) {
            Some(copy) => *copy,
            None => {
                let copy = body.copy_node(graph, node, &[]);
                copies.insert(node, copy);
                copy
            }
        };
        for member in members {
            let leaf = self.elements.get(&member).and_then(|at| arrays.binary_search(at).ok());
            let made = match leaf {
                Some(leaf) => body.add(Kind::Leaf(leaf as u32), &[], graph.qtype(member), graph.origin(member)),
                None => {
                    let operands: Vec<Id> =
                        self.operands(graph, member).map(|operand| copy(&mut body, &mut copies, operand)).collect();
                    body.copy_node(graph, member, &operands)
                }
            };
            copies.insert(member, made);
        }
        let result = copy(&mut body, &mut copies, result);
        let mut operands = operands;
        let argument = |at: &usize| self.arrays[*at].argument;
        let is_read = |at: &usize| arrays.binary_search_by_key(&argument(at), argument).is_ok();
        operands.extend(self.compared.iter().filter(|at| !is_read(at)).map(|at| id_of(self.arrays[*at].operand)));
        Ok(Extracted { body: Body { graph: body, result }, operands })
    }

    /// The array whose elements are the results, if the function returns the elements unchanged; else `None`. It is also `None` if the lengths of
    /// several arrays must be compared.
    fn as_it_is(&self, graph: &TypedGraph, result: Id) -> Option<NodeHandle> {
        let result = self.value_of(result);
        let of = |node: Id| self.elements.get(&self.value_of(node)).map(|at| &self.arrays[*at]);
        let found = match graph.as_op(result, id::PRESENCE_OR) {
            Some([element, _]) => of(*element).filter(|array| array.is_promised),
            _ => of(result),
        };
        found.filter(|_| self.compared.len() == 1).map(|array| array.operand)
    }
}

impl Instance<'_, '_, '_> {
    /// Maps a function over arrays and lists. Returns the arrays that contain its results for each element. An argument that is neither an array nor
    /// a list has one value, which is used for all elements.
    pub(super) fn map_arrays(
        &mut self,
        function: NodeHandle,
        args: &[NodeHandle],
    ) -> Result<NodeHandle, ExpansionError> {
        let kind = array_kind(self, args)?;
        let from = self.model.graph.len();
        let mut extraction = Extraction { from, ..Extraction::default() };
        let mut one_each = args.to_vec();
        for (argument, arg) in one_each.iter_mut().enumerate() {
            let qtype = self.qtype(*arg);
            let Extraction { arrays, elements, compared, .. } = &mut extraction;
            let first = arrays.len();
            let mut unknown = |g: &mut dyn Instantiation, operand: NodeHandle, is_promised: bool| {
                let one = g.unknown(&g.qtype(operand).of_each());
                elements.insert(id_of(one), arrays.len());
                arrays.push(Mapped { operand, argument, is_promised });
                one
            };
            if let Some(element) = qtype.element() {
                self.admit_structs(element)?;
                // Each array of a list is an operand.
                *arg = structs::flattened(self, *arg, &mut |g, operand, of| {
                    Ok(unknown(g, operand, matches!(of, QType::Scalar(_))))
                })?;
            } else if matches!(qtype, QType::Array(..)) {
                *arg = unknown(self, *arg, false);
            }
            compared.extend((first < arrays.len()).then_some(first));
        }
        let result = self.call(function, &one_each)?;
        if extraction.compared.len() > COMPARED {
            // The elements of the first array, after all lengths were compared.
            let first = extraction.compared[0];
            let one = self.unknown(&self.qtype(extraction.arrays[first].operand).of_each());
            extraction.elements.insert(id_of(one), first);
            extraction.find_values(&mut self.model.graph);
            let operand = self.mapped(one, kind, &extraction)?;
            extraction.arrays.push(Mapped { operand, argument: usize::MAX, is_promised: false });
            extraction.compared = vec![extraction.arrays.len() - 1];
        }
        if !matches!(self.qtype(result), QType::Tuple(_)) {
            extraction.find_values(&mut self.model.graph);
            return self.mapped(result, kind, &extraction);
        }
        let element = structs::strong(&self.qtype(result));
        // A struct that contains another one twice doubles with each `map`, so lists are checked before their arrays are made.
        self.admit_structs(&element)?;
        let mut arrays = Vec::new();
        let leaves = structs::leaves(self, result)?;
        extraction.find_values(&mut self.model.graph);
        for leaf in leaves {
            arrays.push(self.mapped(leaf, kind, &extraction)?);
        }
        Ok(structs::list_of_arrays(self, &element, &mut arrays.into_iter())?)
    }

    /// Fails if a struct, or a struct in it, is too large. All of them are checked because each becomes a node of its own.
    fn admit_structs(&mut self, qtype: &QType) -> Result<(), ExpansionError> {
        let mut open = vec![qtype];
        while let Some(inner) = open.pop() {
            let QType::Tuple(fields) = inner else { continue };
            self.typer.admit_type(inner).map_err(exceeded)?;
            open.extend(fields.iter().filter(|field| matches!(field, QType::Tuple(_))));
        }
        Ok(())
    }

    /// Makes the array of the scalars that the node `result` of a function has for the elements of arrays.
    fn mapped(
        &mut self,
        result: NodeHandle,
        kind: ArrayKind,
        extraction: &Extraction,
    ) -> Result<NodeHandle, ExpansionError> {
        let found = self.qtype(result);
        let Some(scalar) = found.scalar() else {
            return Err(TypeFault::mismatch(format!("core.map cannot make an array of {found}"), Some(0)).into());
        };
        if let Some(array) = extraction.as_it_is(&self.model.graph, id_of(result)) {
            return Ok(array);
        }
        let Extracted { body, operands: of_body } = extraction.body(&self.model.graph, id_of(result))?;
        self.spend(OF_A_BODY * (body.graph.len() + of_body.len()))?;
        let number = self.model.graph.keep_body(body);
        let mut operands = vec![id_of(self.literal(Value::from(number)))];
        operands.extend(of_body);
        let kind_of_node = Kind::Operator { op: id::MAP, overload: None, lifted: false };
        Ok(arg_of(self.model.graph.add(kind_of_node, &operands, &QType::Array(kind, scalar), self.node)))
    }
}
