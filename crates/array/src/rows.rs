//! Converts a model with arrays, which describes one row, to a model over many rows. A scalar of a row becomes an array
//! over the rows. An array of a row becomes part of one array with the elements of all rows, together with an edge,
//! which assigns each element to its row. For example `math.sum(x) * k` becomes `math.sum(x, into=edge) * k`. An
//! operator on a whole array becomes an operator on groups, and scalars are expanded where they are combined with
//! elements. The result is an ordinary model with arrays.
//!
//! Not every operator can be converted. If one cannot, the result is an [`Obstacle`] with the reason, and the caller
//! evaluates the rows one by one. The converted model may also fail although no row would fail by itself: a conditional
//! may evaluate a branch that no row takes, and lists of different sizes are an error even if no row combines them. So
//! if the model fails, the caller must evaluate the rows one by one too.

use crate::fullness::position;
use crate::struct_columns::{StructColumn, count, struct_columns};
use cembra_ops::{ArrayForm, OpId, OverArrays, Structure, TypeFault, id};
use cembra_prepare::{Id, Kind, RegionId, RegionModel, Regions, TypedGraph, TypedModel};
use cembra_runtime::{ArrayKind, EdgeType, QType, Scalar};
use cembra_value::{Promise, ScalarValue, Value};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::sync::Arc;

/// The contents of a leaf (an input) in a model over rows. The number in a variant is the index of one of the model's
/// [columns](RowsModel::columns).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RowsLeaf {
    /// The leaf has the scalars of this column, one per row.
    Scalars(usize),
    /// The leaf has the elements of all lists in this column, row after row.
    Elements(usize),
    /// The leaf is the edge that assigns the elements of this column's lists to their rows.
    Edge(usize),
    /// The leaf has, for each row, the index of the first element of the row's list in this column.
    Starts(usize),
    /// The leaf has, for each row, the index after the last element of the row's list in this column.
    Ends(usize),
}

/// The contents of an output's column in a model over rows: one value for all rows, a scalar per row, or a list per
/// row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RowsOutput {
    /// The column is one value that all rows share.
    Shared,
    /// The column has a scalar per row.
    Scalars,
    /// The column has the elements of all rows' lists. Each row's list has the same length as the row's list in the
    /// input column with this index.
    Elements(usize),
}

/// A model over many rows, made from a model for one row, and the relation of its inputs and outputs to those of the
/// original model.
#[derive(Clone, Debug)]
pub struct RowsModel {
    /// The model over many rows. Its only lazy conditionals are conditionals on elements.
    pub placed: RegionModel,
    /// The contents of each leaf. The leaf with index 3 has the name `3` in the model.
    pub leaves: Vec<RowsLeaf>,
    /// For each output of the original model, the contents of each of its [columns](struct_columns). Each column is an
    /// output of the new model.
    pub outputs: Vec<Vec<RowsOutput>>,
    /// For each column of the original model's leaves (inputs): the index of the leaf, and the index of the column
    /// among the [columns](struct_columns) of the leaf's type.
    pub columns: Vec<(usize, usize)>,
    /// For each column, the index of the first column whose lists must have the same lengths, row by row, as the lists
    /// of this column.
    pub spaces: Vec<usize>,
    /// For each column, whether the model uses the elements only to search them for keys. If all rows have the same
    /// elements in such a column, the caller may pass the elements once for all rows.
    pub sought: Vec<bool>,
}

/// The reason why a model with arrays cannot be converted to a model over rows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Obstacle {
    /// The node that cannot be converted.
    pub node: Id,
    /// The reason, as a sentence, such as "the condition is not a scalar per row".
    pub why: &'static str,
}

/// The kind of value that a node becomes over many rows. A space (set of arrays whose lists have the same sizes) is
/// named by one of its columns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum RowsKind {
    /// The node is one value for all rows.
    Shared,
    /// The node is a scalar per row.
    Scalars,
    /// The node is a list of elements per row, in this space (set of arrays whose lists have the same sizes).
    Elements(usize),
    /// The node is the shape (number of elements) of each row's list in this space.
    Shape(usize),
    /// The node is an edge (a grouping of elements): it puts all elements of a row's list in this space into one group.
    Whole(usize),
    /// The node is the index of a key among the elements of the space `among`: one key per element of the space `of`, or one
    /// per row if `of` is `None`.
    Found { among: usize, of: Option<usize> },
    /// The node is a struct: a leaf, a part of one, or made from columns.
    Struct,
}

/// Converts a model with arrays to a model over many rows.
///
/// # Errors
/// If a node cannot be converted. The error names the first such node.
pub fn over_rows(placed: &RegionModel) -> Result<RowsModel, Obstacle> {
    let model = &placed.model;
    let (mut columns, mut of_leaves, mut starts, mut spaces) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for (leaf, (_, qtype)) in model.leaves.iter().enumerate() {
        let start = columns.len();
        starts.push(start);
        // Leaves without columns are refused at their first use.
        for (at, part) in struct_columns(qtype).into_iter().flatten().enumerate() {
            columns.push((leaf, at));
            spaces.push(start + part.first_list_column.unwrap_or(at));
            of_leaves.push(part);
        }
    }
    let nodes = vec![None; columns.len()];
    let forms = vec![RowsKind::Shared; model.graph.len()];
    let may_fail = vec![false; model.graph.len()];
    let members = FxHashMap::default();
    let mut forms = RowsAnalysis { model, forms, may_fail, columns, parts: of_leaves, starts, members, spaces, nodes };
    let needed = model.needed();
    for node in model.graph.ids().filter(|node| needed[node.index()]) {
        forms.forms[node.index()] = forms.of(node)?;
        forms.may_fail[node.index()] = forms.fails(node);
    }
    Rewriter::new(forms).run(&needed)
}

/// A column of a value. Either a node that is itself a scalar or an array; or the column with this index, which belongs
/// to a leaf, and the node that is the leaf or one of its fields.
enum RowColumn {
    Node(Id),
    Column(usize, Id),
}

/// The kind of value that each node of a model becomes over many rows, found in the order of the graph.
struct RowsAnalysis<'m> {
    model: &'m TypedModel,
    forms: Vec<RowsKind>,
    /// For each node visited so far, whether it or a node that it depends on may fail.
    may_fail: Vec<bool>,
    /// The columns of leaves. For each, the index of its leaf, and its index among the columns of the leaf's type.
    columns: Vec<(usize, usize)>,
    /// The type of each column, its promise about missing elements, and the list that it is a field of.
    parts: Vec<StructColumn>,
    /// The first column of each leaf.
    starts: Vec<usize>,
    /// For each node that is a struct, the first column of each of its members.
    members: FxHashMap<Id, Vec<usize>>,
    /// For each column of lists, another column whose lists must have the same sizes, or the column itself. Following
    /// these leads to the column that represents the space.
    spaces: Vec<usize>,
    /// For each column, the node of the original model that has its values; `None` if there is none.
    nodes: Vec<Option<Id>>,
}

/// The index of an aggregation's or scan's operand that gives the groups, such as `into`; `None` if the operator has no
/// such parameter.
fn edge_operand(registry: &cembra_ops::Registry, op: OpId) -> Option<usize> {
    registry.get(op).params.iter().position(|param| matches!(param.name, "into" | "over"))
}

/// The branch that a conditional takes if its condition is a literal; else `None`.
fn chosen(graph: &TypedGraph, node: Id) -> Option<Id> {
    match (graph.kind(node), graph.operands(node)) {
        (Kind::Where { .. }, [condition, on, off]) => {
            Some(if graph.value(*condition)?.as_scalar().is_some() { *on } else { *off })
        }
        _ => None,
    }
}

impl RowsAnalysis<'_> {
    /// The column that represents the space of `column`, which is the set of columns whose lists have the same sizes.
    fn space(&self, mut column: usize) -> usize {
        while self.spaces[column] != column {
            column = self.spaces[column];
        }
        column
    }

    /// The index of the first column of a node that is a leaf or a field of a struct leaf; `None` for other nodes.
    fn column(&self, node: Id) -> Option<usize> {
        let graph = &self.model.graph;
        match (graph.kind(node), graph.operands(node)) {
            (Kind::Leaf(leaf), _) => self.starts.get(leaf as usize).copied(),
            (Kind::Operator { op, .. }, [of, index])
                if self.model.registry.structure(op) == Some(Structure::GetNth) =>
            {
                self.members.get(of)?.get(position(graph, *index)?).copied()
            }
            _ => None,
        }
    }

    /// Records that the lists of two columns must have the same size in each row, and returns their common space.
    fn join(&mut self, a: usize, b: usize) -> usize {
        let (a, b) = (self.space(a), self.space(b));
        self.spaces[a.max(b)] = a.min(b);
        a.min(b)
    }

    /// Returns true if the node, or a node that it depends on, may fail. The operands must have been visited.
    fn fails(&self, node: Id) -> bool {
        let (graph, registry) = (&self.model.graph, self.model.registry);
        let by_itself = match graph.kind(node) {
            Kind::Operator { op, .. } => op == id::MAP || !registry.get(op).is_total(),
            _ => false,
        };
        by_itself || graph.operands(node).iter().any(|operand| self.may_fail[operand.index()])
    }

    fn of_operand(&self, node: Id) -> RowsKind {
        self.forms[node.index()]
    }

    /// Determines the kind of value that a node becomes over many rows. The kinds of the operands must be known.
    fn of(&mut self, node: Id) -> Result<RowsKind, Obstacle> {
        let (graph, registry) = (&self.model.graph, self.model.registry);
        let obstacle = |why| Obstacle { node, why };
        let operands = graph.operands(node);
        if let Some(column) = self.column(node) {
            let qtype = graph.qtype(node);
            return match (self.nodes.get_mut(column), qtype) {
                (Some(_), QType::Tuple(members)) if struct_columns(qtype).is_some() => {
                    let starts = members.iter().scan(column, |next, member| {
                        let start = *next;
                        *next += count(member);
                        Some(start)
                    });
                    self.members.insert(node, starts.collect());
                    Ok(RowsKind::Struct)
                }
                (Some(of), QType::Scalar(_) | QType::Optional(_)) => {
                    *of = Some(node);
                    Ok(RowsKind::Scalars)
                }
                (Some(of), QType::Array(ArrayKind::Dense, _)) => {
                    *of = Some(node);
                    Ok(RowsKind::Elements(column))
                }
                _ => Err(obstacle("the input is neither a scalar nor a dense array")),
            };
        }
        match graph.kind(node) {
            Kind::Literal(_) => return Ok(RowsKind::Shared),
            Kind::Leaf(_) => return Err(obstacle("the input is neither a scalar nor a dense array")),
            Kind::Loop(_) | Kind::State(_) => return Err(obstacle("a loop cannot be evaluated for many rows at once")),
            Kind::CompileTime(_) => return Err(obstacle("a type or a function is not a value")),
            Kind::Operator { .. } | Kind::Where { .. } => {}
        }
        if let Some(fields) = graph.made_fields(node) {
            return self.of_struct(node, fields);
        }
        if let Some((op, Some(overload), _)) = graph.operator(node)
            && registry.get(op).overloads().get(usize::from(overload)).is_some_and(|overload| !overload.pure)
        {
            return Err(obstacle("the operator has side effects, so rows must be evaluated in order"));
        }
        let is_shared = operands.iter().all(|operand| self.of_operand(*operand) == RowsKind::Shared);
        match graph.kind(node) {
            Kind::Operator { overload: Some(_), .. } if is_shared => Ok(RowsKind::Shared),
            Kind::Where { .. } => self.of_conditional(node),
            _ if graph.is_elementwise(registry, node) => self.of_elementwise(node),
            Kind::Operator { op, .. } => match (registry.structure(op), registry.get(op).over_arrays) {
                (None, OverArrays::Kernel(operator)) => self.of_kernel(node, op, operator.form),
                // An operator on scalars of a row becomes one on arrays over the rows, element by element.
                (None | Some(Structure::Has), OverArrays::Elementwise | OverArrays::Expanded) => {
                    let is_scalar = |operand: &Id| match self.of_operand(*operand) {
                        RowsKind::Shared | RowsKind::Scalars => true,
                        RowsKind::Found { of, .. } => op == id::HAS && of.is_none(),
                        _ => false,
                    };
                    let is_of_scalars = operands.iter().all(is_scalar) && graph.qtype(node).scalar().is_some();
                    is_of_scalars.then_some(RowsKind::Scalars).ok_or(obstacle("an operand is not a scalar"))
                }
                _ => Err(obstacle("the operator cannot be computed for the arrays of many rows at once")),
            },
            _ => Err(obstacle("the operator cannot be computed for the arrays of many rows at once")),
        }
    }

    /// Determines the kind of value that a struct, or a list of structs, made from `members` becomes over many rows.
    fn of_struct(&mut self, node: Id, members: &[Id]) -> Result<RowsKind, Obstacle> {
        let qtype = self.model.graph.qtype(node);
        if struct_columns(qtype).is_none_or(|columns| columns.is_empty()) {
            return Err(Obstacle { node, why: "the struct cannot be stored in columns" });
        }
        let mut parts = Vec::new();
        if !members.iter().all(|member| self.add_parts(*member, &mut parts)) {
            return Err(Obstacle { node, why: "the struct has a field that is neither a scalar nor an array per row" });
        }
        if qtype.element().is_some() {
            let mut space = None;
            for part in &parts {
                let RowsKind::Elements(of) = self.of_part(part) else {
                    return Err(Obstacle { node, why: "the list has a field that is not an array per row" });
                };
                space = Some(space.map_or(of, |other| self.join(of, other)));
            }
        }
        Ok(RowsKind::Struct)
    }

    /// Appends the columns of a value to `parts`. Returns false if the value cannot be divided into columns.
    fn add_parts(&self, node: Id, parts: &mut Vec<RowColumn>) -> bool {
        let graph = &self.model.graph;
        match (self.of_operand(node), self.column(node)) {
            (RowsKind::Struct, Some(first)) => {
                parts.extend((first..first + count(graph.qtype(node))).map(|column| RowColumn::Column(column, node)));
                true
            }
            // Types nest only as deep as the text that spelled them.
            (RowsKind::Struct, None) => {
                graph.made_fields(node).is_some_and(|of| of.iter().all(|member| self.add_parts(*member, parts)))
            }
            (RowsKind::Shared, _) if graph.qtype(node).scalar().is_none() => false,
            (RowsKind::Shared | RowsKind::Scalars | RowsKind::Elements(_), _) => {
                parts.push(RowColumn::Node(node));
                true
            }
            _ => false,
        }
    }

    /// The kind of value that a column of a value becomes over many rows.
    fn of_part(&self, part: &RowColumn) -> RowsKind {
        match *part {
            RowColumn::Node(node) => self.of_operand(node),
            RowColumn::Column(column, _) if matches!(self.parts[column].qtype, QType::Array(..)) => {
                RowsKind::Elements(column)
            }
            RowColumn::Column(..) => RowsKind::Scalars,
        }
    }

    /// The space (set of arrays whose lists have the same sizes) of the operands that are elements; `None` if all
    /// operands are scalars. Fails for an operand that is neither.
    fn common_space(&mut self, node: Id, operands: &[Id]) -> Result<Option<usize>, Obstacle> {
        let mut space = None;
        for operand in operands {
            space = match (self.of_operand(*operand), space) {
                (RowsKind::Elements(leaf), None) => Some(leaf),
                (RowsKind::Elements(leaf), Some(other)) => Some(self.join(leaf, other)),
                (RowsKind::Scalars, space) => space,
                (RowsKind::Found { of: Some(of), .. }, None) if self.model.graph.op(node) == Some(id::HAS) => Some(of),
                (RowsKind::Shared, space) if self.model.graph.qtype(*operand).is_framed() => space,
                _ => return Err(Obstacle { node, why: "an operand is neither a scalar nor an array per row" }),
            };
        }
        Ok(space)
    }

    fn of_elementwise(&mut self, node: Id) -> Result<RowsKind, Obstacle> {
        let operands = self.model.graph.operands(node);
        let maps = self.model.graph.op(node) == Some(id::MAP);
        // The first operand of a map is the number of its body. The body is typed for the scalars of a row.
        if maps && operands.iter().any(|operand| self.of_operand(*operand) == RowsKind::Scalars) {
            return Err(Obstacle { node, why: "the function of the map has arguments that are scalars of the row" });
        }
        let space = self.common_space(node, if maps { &operands[1..] } else { operands })?;
        space
            .map(RowsKind::Elements)
            .ok_or(Obstacle { node, why: "the operator computes only with arrays that all rows share" })
    }

    fn of_conditional(&mut self, node: Id) -> Result<RowsKind, Obstacle> {
        let graph = &self.model.graph;
        let operands = graph.operands(node);
        if let Some(branch) = chosen(graph, node) {
            return Ok(self.of_operand(branch));
        }
        if self.of_operand(operands[0]) != RowsKind::Scalars {
            return Err(Obstacle { node, why: "the condition is not a scalar per row" });
        }
        let space = self.common_space(node, &operands[1..])?;
        match graph.qtype(node) {
            QType::Scalar(_) | QType::Optional(_) if space.is_none() => Ok(RowsKind::Scalars),
            QType::Array(..) if operands[1..].iter().all(|o| matches!(self.of_operand(*o), RowsKind::Elements(_))) => {
                space
                    .map(RowsKind::Elements)
                    .ok_or(Obstacle { node, why: "the operator computes only with arrays that all rows share" })
            }
            _ => Err(Obstacle { node, why: "a branch is neither a scalar nor an array per row" }),
        }
    }

    /// Determines the kind of value that an operator on whole arrays becomes over many rows.
    fn of_kernel(&mut self, node: Id, op: OpId, form: ArrayForm) -> Result<RowsKind, Obstacle> {
        let (graph, registry) = (&self.model.graph, self.model.registry);
        let operands = graph.operands(node);
        let first = self.of_operand(operands[0]);
        if matches!(op, id::SHAPE_OF | id::EDGE_TO_SCALAR | id::ARRAY_SIZE)
            && matches!(first, RowsKind::Elements(_))
            && self.may_fail[operands[0].index()]
        {
            // The model over rows would compute the number of elements but not the elements, so it would miss their failures.
            return Err(Obstacle {
                node,
                why: "only the number of elements is needed, but computing the elements may fail",
            });
        }
        match (op, first) {
            (id::SHAPE_OF, RowsKind::Elements(space)) | (id::EDGE_CHILD_SHAPE, RowsKind::Whole(space)) => {
                return Ok(RowsKind::Shape(space));
            }
            (id::EDGE_TO_SCALAR, RowsKind::Elements(space)) | (id::EDGE_FROM_SHAPE, RowsKind::Shape(space)) => {
                return Ok(RowsKind::Whole(space));
            }
            (id::ARRAY_SIZE, RowsKind::Elements(_))
            | (id::ARRAY_SHAPE_SIZE, RowsKind::Shape(_))
            | (id::EDGE_CHILD_SIZE, RowsKind::Whole(_)) => return Ok(RowsKind::Scalars),
            (id::ARRAY_IOTA, RowsKind::Shape(space)) => return Ok(RowsKind::Elements(space)),
            (id::CONST_WITH_SHAPE, RowsKind::Shape(space)) => {
                let of = self.of_operand(operands[1]);
                let is_scalar = matches!(of, RowsKind::Shared | RowsKind::Scalars);
                return is_scalar
                    .then_some(RowsKind::Elements(space))
                    .ok_or(Obstacle { node, why: "an operand is not a scalar" });
            }
            (id::DICT_ROWS, RowsKind::Elements(among)) => {
                return match self.of_operand(operands[1]) {
                    RowsKind::Elements(of) => Ok(RowsKind::Found { among, of: Some(of) }),
                    RowsKind::Shared | RowsKind::Scalars if graph.qtype(operands[1]).is_framed() => {
                        Ok(RowsKind::Found { among, of: None })
                    }
                    _ => Err(Obstacle { node, why: "the key is neither a scalar nor an array per row" }),
                };
            }
            (id::ARRAY_AT, RowsKind::Elements(values))
                if let RowsKind::Found { among, of } = self.of_operand(operands[1]) =>
            {
                self.join(values, among);
                return Ok(of.map_or(RowsKind::Scalars, RowsKind::Elements));
            }
            _ => {}
        }
        let is_of_groups = matches!(form, ArrayForm::Reduce(_) | ArrayForm::Scan | ArrayForm::Whole);
        let edge = edge_operand(registry, op).filter(|_| is_of_groups);
        let edge =
            edge.ok_or(Obstacle { node, why: "the operator cannot be computed for the arrays of many rows at once" })?;
        let mut space = match self.of_operand(operands[edge]) {
            RowsKind::Shared if *graph.qtype(operands[edge]) == QType::Unspecified => None,
            RowsKind::Whole(space) => Some(space),
            _ => return Err(Obstacle { node, why: "the elements of a row are divided into groups" }),
        };
        for (at, operand) in operands.iter().enumerate().filter(|(at, _)| *at != edge) {
            space = match (self.of_operand(*operand), space) {
                (RowsKind::Elements(leaf), None) => Some(leaf),
                (RowsKind::Elements(leaf), Some(other)) => Some(self.join(leaf, other)),
                (RowsKind::Shared, space) if !matches!(graph.qtype(operands[at]), QType::Array(..)) => space,
                _ => {
                    return Err(Obstacle {
                        node,
                        why: "an operand is neither an array per row nor a scalar that all rows share",
                    });
                }
            };
        }
        let space =
            space.ok_or(Obstacle { node, why: "the operator computes only with arrays that all rows share" })?;
        match (form, graph.qtype(node)) {
            (ArrayForm::Reduce(_) | ArrayForm::Whole, QType::Scalar(_) | QType::Optional(_)) => Ok(RowsKind::Scalars),
            (ArrayForm::Scan | ArrayForm::Whole, QType::Array(..)) => Ok(RowsKind::Elements(space)),
            _ => Err(Obstacle { node, why: "the operator cannot be computed for the arrays of many rows at once" }),
        }
    }
}

/// The state while the graph over rows is built from the kinds of values that the nodes become.
struct Rewriter<'m> {
    forms: RowsAnalysis<'m>,
    graph: TypedGraph,
    leaves: Vec<RowsLeaf>,
    /// The leaf of each column, once a node needs it.
    of_columns: Vec<Option<Id>>,
    /// The edge of each space, once a node needs it.
    edges: Vec<Option<Id>>,
    /// The leaves `Starts` and `Ends` of each space (the bounds of each row's list), once a node needs them.
    points: Vec<Option<[Id; 2]>>,
    /// For each node of the original model, the node over rows; `None` if the node is not visited yet, or if none is
    /// made for it.
    copies: Vec<Option<Id>>,
}

const EDGE: QType = QType::Edge(EdgeType::Arrays(ArrayKind::Dense));
const POINTS: QType = QType::Array(ArrayKind::Dense, Scalar::Int64);

impl<'m> Rewriter<'m> {
    fn new(forms: RowsAnalysis<'m>) -> Self {
        let model = forms.model;
        // Room for the values of each column, for its edge and for its points.
        let names: Arc<[Arc<str>]> = (0..4 * forms.columns.len()).map(|at| Arc::from(at.to_string())).collect();
        Rewriter {
            graph: model.graph.empty_over(names),
            leaves: Vec::new(),
            of_columns: vec![None; forms.columns.len()],
            edges: vec![None; forms.columns.len()],
            points: vec![None; forms.columns.len()],
            copies: vec![None; model.graph.len()],
            forms,
        }
    }

    fn run(mut self, needed: &[bool]) -> Result<RowsModel, Obstacle> {
        let model = self.forms.model;
        for node in model.graph.ids().filter(|node| needed[node.index()]) {
            let made = self.node(node)?;
            let form = self.forms.of_operand(node);
            if let (RowsKind::Scalars | RowsKind::Elements(_), Some(made)) = (form, made) {
                let wanted = model.graph.qtype(node).of_each().scalar();
                let is_right = matches!(self.graph.qtype(made), QType::Array(_, scalar) if Some(*scalar) == wanted);
                if !is_right {
                    return Err(Obstacle {
                        node,
                        why: "the result would have another type if many rows were evaluated at once",
                    });
                }
            }
            self.copies[node.index()] = made;
        }
        let mut outputs = Vec::with_capacity(model.outputs.len());
        let mut nodes = Vec::with_capacity(model.outputs.len());
        for (name, node) in &model.outputs {
            let columns = self.columns_of(*node)?;
            outputs.push(columns.iter().map(|(_, of)| *of).collect());
            nodes.extend(columns.into_iter().map(|(column, _)| (name.clone(), column)));
        }
        let sought = self.sought(&outputs);
        let Rewriter { graph, leaves, forms, .. } = self;
        let types = leaves.iter().enumerate().map(|(at, leaf)| {
            let of = |column: usize| forms.parts[column].qtype.of_each().scalar().unwrap_or(Scalar::Unit);
            let qtype = match *leaf {
                RowsLeaf::Scalars(column) | RowsLeaf::Elements(column) => QType::Array(ArrayKind::Dense, of(column)),
                RowsLeaf::Edge(_) => EDGE,
                RowsLeaf::Starts(_) | RowsLeaf::Ends(_) => POINTS,
            };
            (Arc::from(at.to_string()), qtype)
        });
        let leaf_types = types.collect();
        let promises = leaves.iter().map(|leaf| match *leaf {
            // A scalar that is not optional in a row is present in every row.
            RowsLeaf::Scalars(column) if !forms.parts[column].qtype.is_optional() => Promise::Full,
            RowsLeaf::Scalars(_) => Promise::Nothing,
            RowsLeaf::Elements(column) => match (&forms.parts[column], forms.columns[column]) {
                (StructColumn { first_list_column: Some(_), promise, .. }, _) => *promise,
                // The promise of a leaf is not part of its type.
                (_, (leaf, 0)) => model.graph.leaf_promise(leaf as u32),
                _ => Promise::Nothing,
            },
            RowsLeaf::Edge(_) => Promise::Splits,
            RowsLeaf::Starts(_) | RowsLeaf::Ends(_) => Promise::Full,
        });
        let graph = graph.with_promises(promises.collect());
        let of_nodes = vec![RegionId::TOP; graph.len()];
        let spaces = (0..forms.columns.len()).map(|column| forms.space(column)).collect();
        let model = TypedModel {
            registry: model.registry,
            graph,
            leaves: leaf_types,
            outputs: nodes,
            rewritten: model.rewritten,
        };
        let regions = Regions { of_nodes, ..Regions::default() };
        Ok(RowsModel {
            placed: RegionModel { model, regions },
            leaves,
            outputs,
            columns: forms.columns,
            spaces,
            sought,
        })
    }

    /// Returns the node and the contents of each column of an output.
    fn columns_of(&mut self, node: Id) -> Result<Vec<(Id, RowsOutput)>, Obstacle> {
        let obstacle = Obstacle { node, why: "the output is neither a scalar nor an array per row" };
        let mut parts = Vec::new();
        if !self.forms.add_parts(node, &mut parts) {
            return Err(obstacle);
        }
        let column = |part: &RowColumn| {
            let form = match self.forms.of_part(part) {
                RowsKind::Shared => RowsOutput::Shared,
                RowsKind::Elements(space) => RowsOutput::Elements(self.forms.space(space)),
                _ => RowsOutput::Scalars,
            };
            let node = match *part {
                RowColumn::Node(node) => self.copies[node.index()].ok_or(obstacle.clone())?,
                RowColumn::Column(column, origin) => self.column(column, origin),
            };
            Ok((node, form))
        };
        parts.iter().map(column).collect()
    }

    /// Returns, for each column, whether its elements are only searched for keys. This is so if the column's space
    /// needs no edge, is not in an output, and has only columns of one leaf.
    fn sought(&self, outputs: &[Vec<RowsOutput>]) -> Vec<bool> {
        let RowsAnalysis { columns, .. } = &self.forms;
        let mut sought: Vec<bool> = self.edges.iter().map(Option::is_none).collect();
        for output in outputs.iter().flatten() {
            if let RowsOutput::Elements(space) = output {
                sought[*space] = false;
            }
        }
        for (column, (leaf, _)) in columns.iter().enumerate() {
            let space = self.forms.space(column);
            sought[space] &= columns[space].0 == *leaf;
        }
        (0..columns.len()).map(|column| sought[self.forms.space(column)]).collect()
    }

    /// Returns the leaf of a column, and makes the leaf if it does not exist yet.
    fn column(&mut self, column: usize, origin: Id) -> Id {
        if let Some(leaf) = self.of_columns[column] {
            return leaf;
        }
        let qtype = &self.forms.parts[column].qtype;
        let is_list = matches!(qtype, QType::Array(..));
        let array = QType::Array(ArrayKind::Dense, qtype.of_each().scalar().unwrap_or(Scalar::Unit));
        let leaf =
            self.leaf(if is_list { RowsLeaf::Elements(column) } else { RowsLeaf::Scalars(column) }, &array, origin);
        self.of_columns[column] = Some(leaf);
        leaf
    }

    fn leaf(&mut self, leaf: RowsLeaf, qtype: &QType, origin: Id) -> Id {
        self.leaves.push(leaf);
        let origin = self.forms.model.graph.origin(origin);
        self.graph.add(Kind::Leaf(self.leaves.len() as u32 - 1), &[], qtype, origin)
    }

    fn apply(&mut self, node: Id, op: OpId, operands: &[Id]) -> Result<Id, Obstacle> {
        let model = self.forms.model;
        let made = self.graph.apply(model.registry, op, operands, model.graph.origin(node));
        made.map_err(|_: TypeFault| Obstacle {
            node,
            why: "the operator cannot be computed for the arrays of many rows at once",
        })
    }

    /// Returns the edge (grouping) that assigns the elements of a space to their rows, and makes the edge if it does
    /// not exist yet.
    fn edge(&mut self, space: usize) -> Id {
        let space = self.forms.space(space);
        if let Some(edge) = self.edges[space] {
            return edge;
        }
        let origin = self.forms.nodes[space].unwrap_or(Id::from_index(0));
        let edge = self.leaf(RowsLeaf::Edge(space), &EDGE, origin);
        self.edges[space] = Some(edge);
        edge
    }

    /// The node over rows for `node`.
    fn copy(&self, node: Id) -> Result<Id, Obstacle> {
        self.copies[node.index()].ok_or(Obstacle { node, why: "an operand is neither a scalar nor an array per row" })
    }

    /// The node over rows for an operand, expanded to the elements of a space if the operand is a scalar per row.
    fn expanded(&mut self, operand: Id, space: usize, node: Id) -> Result<Id, Obstacle> {
        let copy = self.copy(operand)?;
        if self.forms.of_operand(operand) != RowsKind::Scalars {
            return Ok(copy);
        }
        let edge = self.edge(space);
        self.apply(node, id::ARRAY_EXPAND, &[copy, edge])
    }

    /// Makes the node over rows for `node`. `None` for shapes, for structs, and for edges with one group per row: the
    /// nodes that use them make what they need.
    fn node(&mut self, node: Id) -> Result<Option<Id>, Obstacle> {
        let model = self.forms.model;
        let graph = &model.graph;
        let form = self.forms.of_operand(node);
        if let Some(branch) = chosen(graph, node) {
            return Ok(self.copies[branch.index()]);
        }
        let made = match (graph.kind(node), form) {
            (_, RowsKind::Shape(_) | RowsKind::Whole(_) | RowsKind::Struct) => return Ok(None),
            _ if let Some(column) = self.forms.column(node) => self.column(column, node),
            (_, RowsKind::Shared) => {
                let operands: Result<SmallVec<[Id; 4]>, _> =
                    graph.operands(node).iter().map(|o| self.copy(*o)).collect();
                self.graph.copy_node(graph, node, &operands?)
            }
            (kind, RowsKind::Scalars | RowsKind::Elements(_) | RowsKind::Found { .. }) => {
                self.computed(node, kind, form)?
            }
        };
        Ok(Some(made))
    }

    fn computed(&mut self, node: Id, kind: Kind, form: RowsKind) -> Result<Id, Obstacle> {
        let model = self.forms.model;
        let graph = &model.graph;
        let operands = graph.operands(node);
        let is_elementwise = graph.is_elementwise(model.registry, node);
        if let RowsKind::Found { among, of } = form {
            return self.find(node, among, of);
        }
        if let Some([values, row]) = graph.as_op(node, id::ARRAY_AT) {
            let (values, row) = (self.copy(*values)?, self.copy(*row)?);
            return self.apply(node, id::ARRAY_AT, &[values, row]);
        }
        if let (Kind::Operator { op, .. }, false) = (kind, is_elementwise)
            && let OverArrays::Kernel(_) = model.registry.get(op).over_arrays
        {
            return self.of_groups(node, op);
        }
        let copies = operands.iter().map(|operand| match form {
            RowsKind::Elements(space) => self.expanded(*operand, space, node),
            _ => self.copy(*operand),
        });
        let copies = copies.collect::<Result<SmallVec<[Id; 4]>, _>>()?;
        match kind {
            Kind::Where { .. } => {
                // A row evaluates only the branch that it takes. For elements the same holds wherever laziness is possible.
                let made = self.apply(node, id::WHERE, &copies)?;
                let (operands, qtype) = (self.graph.operands(made).to_vec(), self.graph.qtype(made).clone());
                Ok(self.graph.add(Kind::Where { overload: None }, &operands, &qtype, graph.origin(node)))
            }
            // The elements of an array over rows are optional already.
            Kind::Operator { op: id::TO_OPTIONAL, .. } => Ok(copies[0]),
            Kind::Operator { op: id::MAP, .. } => Ok(self.graph.copy_node(graph, node, &copies)),
            Kind::Operator { op, .. } => {
                let made = self.apply(node, op, &copies)?;
                let is_lifted = self.graph.is_elementwise(model.registry, made);
                is_lifted.then_some(made).ok_or(Obstacle {
                    node,
                    why: "the operator cannot be computed for the arrays of many rows at once",
                })
            }
            _ => Err(Obstacle { node, why: "the operator cannot be computed for the arrays of many rows at once" }),
        }
    }

    /// Makes the node that finds keys among the elements of the space `among`. There is one key for each row, or one
    /// for each element of the space `of`.
    fn find(&mut self, node: Id, among: usize, of: Option<usize>) -> Result<Id, Obstacle> {
        let graph = &self.forms.model.graph;
        let (operands, origin) = (graph.operands(node), graph.origin(node));
        let [keys, mut key] = [self.copy(operands[0])?, self.copy(operands[1])?];
        let among = self.forms.space(among);
        let points = self.points[among].unwrap_or_else(|| {
            let leaf = self.forms.nodes[among].unwrap_or(node);
            [RowsLeaf::Starts(among), RowsLeaf::Ends(among)].map(|of| self.leaf(of, &POINTS, leaf))
        });
        self.points[among] = Some(points);
        if self.forms.of_operand(operands[1]) == RowsKind::Shared {
            let shape = self.apply(node, id::SHAPE_OF, &[points[0]])?;
            key = self.apply(node, id::CONST_WITH_SHAPE, &[shape, key])?;
        }
        let over = match of {
            Some(of) => self.edge(of),
            None => self.graph.literal(Value::Unspecified, origin),
        };
        self.apply(node, id::DICT_ROWS_IN, &[keys, points[0], points[1], key, over])
    }

    /// Applies the operator `op`, which works on the whole array of a row, to groups: each row's elements are one
    /// group.
    fn of_groups(&mut self, node: Id, op: OpId) -> Result<Id, Obstacle> {
        let model = self.forms.model;
        let operands = model.graph.operands(node);
        let origin = model.graph.origin(node);
        match self.forms.of_operand(operands[0]) {
            // The number of elements in each row.
            RowsKind::Elements(space) | RowsKind::Shape(space) | RowsKind::Whole(space)
                if matches!(op, id::ARRAY_SIZE | id::ARRAY_SHAPE_SIZE | id::EDGE_CHILD_SIZE) =>
            {
                let edge = self.edge(space);
                return self.apply(node, id::EDGE_SIZES, &[edge]);
            }
            RowsKind::Shape(space) => {
                let edge = self.edge(space);
                let shape = self.apply(node, id::EDGE_CHILD_SHAPE, &[edge])?;
                if op == id::ARRAY_IOTA {
                    let unit = self.graph.literal(Value::Scalar(ScalarValue::Unit), origin);
                    let units = self.apply(node, id::CONST_WITH_SHAPE, &[shape, unit])?;
                    return self.apply(node, id::ARRAY_AGG_INDEX, &[units, edge]);
                }
                let value = self.copy(operands[1])?;
                return match self.forms.of_operand(operands[1]) {
                    RowsKind::Shared => self.apply(node, id::CONST_WITH_SHAPE, &[shape, value]),
                    _ => self.apply(node, id::ARRAY_EXPAND, &[value, edge]),
                };
            }
            _ => {}
        }
        let Some(at) = edge_operand(model.registry, op) else {
            return Err(Obstacle { node, why: "the operator cannot be computed for the arrays of many rows at once" });
        };
        let mut copies: SmallVec<[Id; 4]> = SmallVec::new();
        let mut space = None;
        for operand in operands {
            if let RowsKind::Elements(of) | RowsKind::Whole(of) = self.forms.of_operand(*operand) {
                space = Some(of);
            }
        }
        let edge = self
            .edge(space.ok_or(Obstacle { node, why: "the operator computes only with arrays that all rows share" })?);
        for (position, operand) in operands.iter().enumerate() {
            copies.push(if position == at { edge } else { self.copy(*operand)? });
        }
        self.apply(node, op, &copies)
    }
}
