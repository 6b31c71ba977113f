//! Divides an array program's steps into loops over elements and steps outside of loops. The steps are visited in the
//! order of evaluation, each step after the steps that compute its operands.

use super::folds::reads_column;
use super::{EdgeInput, InputPath, LoopFailure, LoopList, LoopValue, field_type, is_unspecified};
use crate::joined::UnionFind;
use crate::{Action, ArrayProgram, BlockId, PartId, Step, ValueId};
use cembra_expr::NodeId;
use cembra_ops::{Fold, StripMethod, id};
use cembra_runtime::{ArrayKind, EdgeType, QType};
use rustc_hash::FxHashMap;

/// The most steps of a program that becomes one plan. A longer program spends most of its time in the steps, so
/// starting them faster saves little.
const MOST_STEPS: usize = 512;

/// The most loops: a set of loops is stored as the bits of a `u64`.
const MOST_LOOPS: usize = 64;

/// The deepest nesting of conditionals in a program that becomes one plan.
const MOST_DEPTH: usize = 32;

/// A loop, or a step outside of loops. Units are in the order of evaluation: each comes after the units whose results it needs.
#[derive(Debug)]
pub(super) enum Unit<'p> {
    /// A step that evaluates a plan on scalars, and the step's block.
    Scalar(&'p Step, BlockId),
    /// A step that aggregates an array. The number is the index of the loop that may compute the aggregation.
    Fold(&'p Step, Fold, usize),
    /// A step whose result is the number of elements in the list with this index.
    Size(&'p Step, usize),
    /// A step that looks up `key` in the dictionary input `map`. The step's result is the value for the key or, if `is_value`
    /// is false, whether the dictionary has the key.
    Find { step: &'p Step, map: InputPath, key: ValueId, is_value: bool },
    /// A step that is a conditional, and the blocks of its branches.
    Where(&'p Step, [BlockId; 2]),
    /// The loop with this index. The loop's position among the units is the position of its last step.
    Loop(usize),
}

/// The work that a loop does for a step, element by element: evaluating a plan, looking up a key, aggregating a group.
#[derive(Clone, Debug)]
pub(super) enum ElementWork {
    /// The loop evaluates this plan for each element.
    Map(PartId),
    /// The loop looks each element up in this dictionary.
    Find(InputPath),
    /// The loop goes over the groups of this edge (a grouping of elements), and aggregates the elements of each group.
    Fold(Fold, EdgeInput),
    /// The loop gives each element the value of the element's group. This edge assigns elements to groups.
    Expand(EdgeInput),
    /// The loop goes over the groups of this edge (a grouping of elements), and counts the elements of each group.
    Size(EdgeInput),
}

/// A step of the array program that a loop runs for each element of its list.
#[derive(Debug)]
pub(super) struct ElementStep<'p> {
    pub(super) step: &'p Step,
    /// The operands of the step.
    pub(super) args: Vec<ValueId>,
    pub(super) work: ElementWork,
}

/// A loop over the elements of a list: the steps that it runs for each element, and the aggregations that it computes.
#[derive(Debug)]
pub(super) struct Loop<'p> {
    /// The index of the list that the loop goes over.
    pub(super) list: usize,
    /// The block whose steps the loop runs.
    pub(super) block: BlockId,
    /// The steps that the loop runs for each element, in order.
    pub(super) steps: Vec<ElementStep<'p>>,
    /// The aggregations that the loop computes: their state is part of the loop's state.
    pub(super) folds: Vec<(&'p Step, Fold)>,
    /// The loops that must end before this one begins, one bit per loop.
    needs: u64,
    /// True once another loop needs this one. From then on this loop must not wait for more loops.
    is_closed: bool,
}

/// The steps of an array program, divided into loops and steps outside of loops.
#[derive(Debug)]
pub(super) struct Members<'p> {
    pub(super) program: &'p ArrayProgram,
    /// For each value of the program, its representation in the model with loops, such as a column or a tuple; `None` if the
    /// value has not been visited.
    pub(super) forms: Vec<Option<LoopValue>>,
    pub(super) lists: Vec<LoopList>,
    /// Sets of lists that must have the same length (disjoint sets of the indices of lists).
    spaces: UnionFind,
    pub(super) loops: Vec<Loop<'p>>,
    pub(super) units: Vec<Unit<'p>>,
    /// For each value, the loops whose results it depends on, one bit per loop.
    needs: Vec<u64>,
    /// For each value of the program, whether it is an array that a loop must write to memory.
    pub(super) is_written: Vec<bool>,
    /// The index of each list.
    known: FxHashMap<LoopList, usize>,
    /// The number of steps visited so far.
    steps: usize,
}

impl<'p> Members<'p> {
    pub(super) fn of(program: &'p ArrayProgram) -> Result<Members<'p>, LoopFailure> {
        // A value has at most two lists: the elements and the groups of an edge.
        let first = Members::read(program, UnionFind::new(2 * program.value_count()))?;
        // In the second pass, lists get the same indices, and all lists of the same length are known. So steps over such lists
        // share loops.
        Members::read(program, first.spaces)
    }

    fn read(program: &'p ArrayProgram, spaces: UnionFind) -> Result<Members<'p>, LoopFailure> {
        let count = program.value_count();
        let mut members = Members {
            program,
            forms: vec![None; count],
            lists: Vec::new(),
            spaces,
            loops: Vec::new(),
            units: Vec::new(),
            needs: vec![0; count],
            is_written: vec![false; count],
            known: FxHashMap::default(),
            steps: 0,
        };
        for (at, input) in program.inputs().iter().enumerate() {
            let path = InputPath { input: at, fields: Vec::new() };
            members.forms[input.value.index()] = Some(members.of_input(path, program.qtype(input.value), None)?);
        }
        for (value, literal) in program.literals() {
            let form = match literal {
                literal if is_unspecified(literal) => LoopValue::Unspecified,
                _ if program.qtype(*value).is_framed() => LoopValue::Framed,
                _ => return Err(LoopFailure::new(None, "a literal array cannot be read by a loop")),
            };
            members.forms[value.index()] = Some(form);
        }
        members.block(BlockId::TOP, 0)?;
        for (_, output) in program.outputs() {
            members.give_out(*output)?;
        }
        Ok(members)
    }

    /// Returns the representation of an input, or of a field of an input, in the model with loops. `list` is the index
    /// of the list of structs that encloses the field; `None` if there is none.
    fn of_input(&mut self, path: InputPath, qtype: &QType, list: Option<usize>) -> Result<LoopValue, LoopFailure> {
        Ok(match qtype {
            _ if qtype.is_framed() => LoopValue::Leaf(path),
            QType::Array(ArrayKind::Dense, _) => {
                let list = list.unwrap_or_else(|| self.list(LoopList::Items(path.clone())));
                LoopValue::Column(path, list)
            }
            QType::Edge(EdgeType::Arrays(ArrayKind::Dense)) => {
                let elements = self.list(LoopList::EdgeElements(path.clone()));
                let groups = self.list(LoopList::EdgeGroups(path.clone()));
                LoopValue::Edge(EdgeInput { path, elements, groups })
            }
            QType::Tuple(_) => LoopValue::Input(path),
            _ => return Err(LoopFailure::new(None, "the type of an input cannot be read by a loop")),
        })
    }

    /// Returns the index of a list, and adds the list if it is new.
    fn list(&mut self, list: LoopList) -> usize {
        let lists = &mut self.lists;
        *self.known.entry(list).or_insert_with_key(|list| {
            lists.push(list.clone());
            lists.len() - 1
        })
    }

    /// Returns, for each list, the index of the first list that must have the same length. This may be the list itself.
    pub(super) fn spaces(&self) -> Vec<usize> {
        let mut spaces = self.spaces.clone();
        (0..self.lists.len()).map(|list| spaces.find(list) as usize).collect()
    }

    /// Returns the representation of field `at` of the input value at `path`.
    fn field_of_input(&mut self, path: &InputPath, at: u32) -> Result<LoopValue, LoopFailure> {
        let mut qtype = self.program.qtype(self.program.inputs()[path.input].value);
        // The outermost list of structs on the path determines the number of elements.
        let mut list = qtype.element().map(|_| InputPath { input: path.input, fields: Vec::new() });
        let mut fields = Vec::with_capacity(path.fields.len() + 1);
        for field in path.fields.iter().copied().chain([at]) {
            if qtype.as_map().is_some() {
                return Ok(LoopValue::MapPart(path.clone(), field == 0));
            }
            qtype = field_type(qtype, field).ok_or(LoopFailure::new(None, "a field does not exist"))?;
            fields.push(field);
            if list.is_none() && qtype.element().is_some() && matches!(qtype, QType::Tuple(_)) {
                list = Some(InputPath { input: path.input, fields: fields.clone() });
            }
        }
        let list = list.map(|path| self.list(LoopList::Items(path)));
        self.of_input(InputPath { input: path.input, fields }, qtype, list)
    }

    fn block(&mut self, block: BlockId, depth: usize) -> Result<(), LoopFailure> {
        let program = self.program;
        for step in &program.block(block).steps {
            self.steps += 1;
            let origin = Some(step.origin);
            if self.steps > MOST_STEPS || depth > MOST_DEPTH {
                return Err(LoopFailure::new(
                    origin,
                    "the model has more steps or nested conditionals than a plan with loops may have",
                ));
            }
            match step.action {
                Action::Sweep(sweep) => {
                    for stage in &program.sweep(sweep).stages {
                        self.step(block, &stage.step)?;
                    }
                }
                Action::Where { on, off } => {
                    let out = step.outs[0];
                    if !program.qtype(out).is_framed() {
                        return Err(LoopFailure::new(
                            origin,
                            "a condition that chooses between arrays is not supported in loops",
                        ));
                    }
                    let mut needs = self.needs_of(&step.args);
                    for branch in [on, off] {
                        self.block(branch, depth + 1)?;
                        needs |= program.block(branch).result.map_or(0, |result| self.needs[result.index()]);
                    }
                    self.framed(&[out], needs);
                    self.units.push(Unit::Where(step, [on, off]));
                }
                _ => self.step(block, step)?,
            }
        }
        Ok(())
    }

    /// The loops that these values depend on, one bit per loop.
    fn needs_of(&self, values: &[ValueId]) -> u64 {
        values.iter().fold(0, |needs, value| needs | self.needs[value.index()])
    }

    /// Records that values are stored in the frame, and that they depend on the results of the loops `needs`, one bit
    /// per loop.
    fn framed(&mut self, values: &[ValueId], needs: u64) {
        for value in values {
            self.forms[value.index()] = Some(LoopValue::Framed);
            self.needs[value.index()] = needs;
        }
    }

    fn form(&self, value: ValueId) -> Result<LoopValue, LoopFailure> {
        self.forms[value.index()]
            .clone()
            .ok_or(LoopFailure::new(None, "an operand is computed after the step that uses it"))
    }

    fn step(&mut self, block: BlockId, step: &'p Step) -> Result<(), LoopFailure> {
        let program = self.program;
        let origin = Some(step.origin);
        let refuse = |why| Err(LoopFailure::new(origin, why));
        match step.action {
            Action::Scalar(_) => {
                if !step.outs.iter().all(|out| program.qtype(*out).is_framed()) {
                    return refuse("the result is neither a scalar nor a tuple");
                }
                let needs = self.needs_of(&step.args);
                self.framed(&step.outs, needs);
                self.units.push(Unit::Scalar(step, block));
            }
            Action::Map(part) => {
                self.member(block, ElementStep { step, args: step.args.clone(), work: ElementWork::Map(part) })?;
            }
            Action::Field(at) => {
                let [of, out] = [step.args[0], step.outs[0]];
                let form = match self.form(self.resolved(of))? {
                    LoopValue::Input(path) => self.field_of_input(&path, at)?,
                    LoopValue::Tuple(values) => match values.get(at as usize) {
                        Some(value) => {
                            self.needs[out.index()] = self.needs[value.index()];
                            LoopValue::Same(self.resolved(*value))
                        }
                        None => return refuse("a field does not exist"),
                    },
                    _ => return refuse("a field is taken from a value that is not a tuple"),
                };
                self.forms[out.index()] = Some(form);
            }
            Action::MakeTuple => self.forms[step.outs[0].index()] = Some(LoopValue::Tuple(step.args.clone())),
            Action::Operator(id::ARRAY_SIZE) => {
                let (list, _) = self.array(step.args[0], origin)?;
                self.size(step, list);
            }
            Action::Operator(op @ (id::EDGE_SIZES | id::EDGE_CHILD_SIZE | id::EDGE_PARENT_SIZE)) => {
                let LoopValue::Edge(edge) = self.form(self.resolved(step.args[0]))? else {
                    return refuse("the groups do not come from an edge that is an input");
                };
                match op {
                    id::EDGE_CHILD_SIZE => self.size(step, edge.elements),
                    id::EDGE_PARENT_SIZE => self.size(step, edge.groups),
                    _ => self.member(block, ElementStep { step, args: Vec::new(), work: ElementWork::Size(edge) })?,
                }
            }
            Action::Operator(id::ARRAY_EXPAND) => {
                let LoopValue::Edge(edge) = self.form(self.resolved(step.args[1]))? else {
                    return refuse("the groups do not come from an edge that is an input");
                };
                let args = vec![step.args[0]];
                self.member(block, ElementStep { step, args, work: ElementWork::Expand(edge) })?;
            }
            Action::Operator(id::DICT_ROWS) => {
                let LoopValue::MapPart(path, true) = self.form(self.resolved(step.args[0]))? else {
                    return refuse("the keys are looked up in an array, not in a dictionary that is an input");
                };
                let (out, key) = (step.outs[0], self.resolved(step.args[1]));
                if matches!(program.qtype(key), QType::Array(..)) {
                    self.forms[out.index()] = Some(LoopValue::MapRow(path, key));
                    return Ok(());
                }
                if program.qtype(key).is_optional() {
                    return refuse("the key of the lookup may be missing");
                }
                self.forms[out.index()] = Some(LoopValue::MapRow(path.clone(), key));
                self.needs[out.index()] = self.needs[key.index()];
                self.units.push(Unit::Find { step, map: path, key, is_value: false });
            }
            Action::Operator(id::ARRAY_AT) => {
                let [values, row] = [0, 1].map(|at| self.form(self.resolved(step.args[at])));
                let (LoopValue::MapPart(of, false), LoopValue::MapRow(path, key)) = (values?, row?) else {
                    return refuse("the operator needs whole arrays, so a loop over elements cannot compute it");
                };
                if of != path {
                    return refuse("the keys and the values come from different dictionaries");
                }
                if matches!(program.qtype(key), QType::Array(..)) {
                    return self.member(block, ElementStep { step, args: vec![key], work: ElementWork::Find(path) });
                }
                let needs = self.needs[key.index()];
                self.framed(&step.outs, needs);
                self.units.push(Unit::Find { step, map: path, key, is_value: true });
            }
            Action::Operator(op) => match program.registry().get(op).in_strips {
                Some(StripMethod::Fold(fold)) => {
                    let of = step.args[0];
                    match step.args.get(1).map(|into| self.form(self.resolved(*into))).transpose()? {
                        None | Some(LoopValue::Unspecified) => {}
                        Some(LoopValue::Edge(edge)) => {
                            let work = ElementWork::Fold(fold, edge);
                            return self.member(block, ElementStep { step, args: vec![of], work });
                        }
                        Some(_) => return refuse("the groups do not come from an edge that is an input"),
                    }
                    let (list, maker) = self.array(of, origin)?;
                    if !matches!(program.qtype(of), QType::Array(_, scalar) if !reads_column(fold, *scalar)) {
                        self.write(of);
                    }
                    let by = match maker {
                        Some(maker) => maker,
                        None => self.open_loop(block, list, origin, |_, _| true)?,
                    };
                    self.framed(&step.outs, 1 << by);
                    self.loops[by].folds.push((step, fold));
                    self.units.push(Unit::Fold(step, fold, by));
                }
                Some(StripMethod::Scan(_)) => {
                    return refuse("the operator is a scan, such as a running sum, which is not supported in loops");
                }
                None => return refuse("the operator needs whole arrays, so a loop over elements cannot compute it"),
            },
            Action::Loop { .. } => return refuse("the state of the loop has arrays"),
            Action::Sweep(_) | Action::Where { .. } => {
                return refuse("a conditional or a loop cannot be a step of another loop over elements");
            }
        }
        Ok(())
    }

    /// Adds a step whose result is the number of elements in a list.
    fn size(&mut self, step: &'p Step, list: usize) {
        self.framed(&step.outs, 0);
        self.units.push(Unit::Size(step, list));
    }

    /// Returns the value that `value` stands for. If `value` is a field taken from a tuple, this is the value that the tuple was made with; else it
    /// is `value` itself.
    pub(super) fn resolved(&self, value: ValueId) -> ValueId {
        match self.forms[value.index()] {
            Some(LoopValue::Same(other)) => other,
            _ => value,
        }
    }

    /// Returns the index of the list whose elements an array has, and the index of the loop that computes the array;
    /// `None` for the loop of an input.
    fn array(&self, value: ValueId, origin: Option<NodeId>) -> Result<(usize, Option<usize>), LoopFailure> {
        match self.form(self.resolved(value))? {
            LoopValue::Column(_, list) => Ok((list, None)),
            LoopValue::Made { by, list } => Ok((list, Some(by))),
            _ => Err(LoopFailure::new(origin, "the operand is not an array that a loop can read")),
        }
    }

    /// Records that an array must be written to memory.
    fn write(&mut self, value: ValueId) {
        let value = self.resolved(value);
        if matches!(self.forms[value.index()], Some(LoopValue::Made { .. })) {
            self.is_written[value.index()] = true;
        }
    }

    /// Records that the arrays in an output must be written to memory.
    fn give_out(&mut self, output: ValueId) -> Result<(), LoopFailure> {
        let mut stack = vec![output];
        while let Some(value) = stack.pop() {
            match self.form(value)? {
                LoopValue::Tuple(values) => stack.extend(values),
                LoopValue::Same(other) => stack.push(other),
                LoopValue::Input(_) | LoopValue::MapPart(..) | LoopValue::MapRow(..) | LoopValue::Edge(_) => {
                    return Err(LoopFailure::new(None, "an input is also an output"));
                }
                _ => self.write(value),
            }
        }
        Ok(())
    }

    /// `loops` and all loops that must end before them, one bit per loop.
    fn closure(&self, loops: u64) -> u64 {
        let mut all = loops;
        for (at, of) in self.loops.iter().enumerate() {
            if loops >> at & 1 != 0 {
                all |= of.needs;
            }
        }
        all
    }

    /// Returns the index of the last loop in the block `block` that goes over a list of this length and for which
    /// `fits` holds. Makes a new loop if there is none.
    fn open_loop(
        &mut self,
        block: BlockId,
        list: usize,
        origin: Option<NodeId>,
        fits: impl Fn(&Self, usize) -> bool,
    ) -> Result<usize, LoopFailure> {
        let list = self.spaces.find(list) as usize;
        let is_open = |at: &usize| {
            let of = &self.loops[*at];
            of.list == list && of.block == block && fits(self, *at)
        };
        if let Some(at) = (0..self.loops.len()).rev().find(is_open) {
            return Ok(at);
        }
        if self.loops.len() == MOST_LOOPS {
            return Err(LoopFailure::new(origin, "the model needs more than 64 loops, which is the limit"));
        }
        let of = Loop { list, block, steps: Vec::new(), folds: Vec::new(), needs: 0, is_closed: false };
        self.loops.push(of);
        self.place(self.loops.len() - 1);
        Ok(self.loops.len() - 1)
    }

    /// Moves a loop to the end of the units, because it runs where its last step is.
    fn place(&mut self, at: usize) {
        self.units.retain(|unit| !matches!(unit, Unit::Loop(of) if *of == at));
        self.units.push(Unit::Loop(at));
    }

    /// Adds a step to a loop over its list. The step joins an existing loop unless it needs a complete result of that
    /// loop; else a new loop is made.
    fn member(&mut self, block: BlockId, member: ElementStep<'p>) -> Result<(), LoopFailure> {
        let (step, args) = (member.step, member.args.clone());
        let origin = Some(step.origin);
        let (mut lists, mut scalars, mut makers) = (Vec::new(), 0, 0);
        for arg in &args {
            if matches!(self.program.qtype(*arg), QType::Array(..)) {
                let (list, maker) = self.array(*arg, origin)?;
                lists.push(list);
                makers |= maker.map_or(0, |maker| 1 << maker);
            } else if matches!(self.form(self.resolved(*arg))?, LoopValue::Framed | LoopValue::Leaf(_)) {
                scalars |= self.needs[arg.index()];
            } else {
                return Err(LoopFailure::new(origin, "an operand is neither an array nor a scalar"));
            }
        }
        // An array on the other side of an edge is read at another position than the element's, so the loop that makes it must be
        // over.
        let list = match &member.work {
            ElementWork::Map(_) | ElementWork::Find(_) => lists.first().copied(),
            ElementWork::Fold(_, edge) | ElementWork::Size(edge) => {
                lists.push(edge.elements);
                scalars |= std::mem::take(&mut makers);
                Some(edge.groups)
            }
            ElementWork::Expand(edge) => {
                lists.push(edge.groups);
                scalars |= std::mem::take(&mut makers);
                Some(edge.elements)
            }
        };
        let list = list.ok_or(LoopFailure::new(origin, "the map has no array among its operands"))?;
        for pair in lists.windows(2) {
            self.spaces.join(pair[0], pair[1]);
        }
        let scalars = self.closure(scalars);
        let at = self.open_loop(block, list, origin, |members, at| {
            let (of, needs) = (&members.loops[at], scalars | members.closure(makers & !(1 << at)));
            // A closed loop takes only steps that make it wait for no further loop, because another loop waits for it.
            needs >> at & 1 == 0 && (!of.is_closed || needs & !of.needs == 0)
        })?;
        let needs = (scalars | self.closure(makers)) & !(1 << at);
        for (other, of) in self.loops.iter_mut().enumerate() {
            of.is_closed |= needs >> other & 1 != 0;
        }
        self.loops[at].needs |= needs;
        self.loops[at].steps.push(member);
        self.place(at);
        for arg in &args {
            let arg = self.resolved(*arg);
            if matches!(self.forms[arg.index()], Some(LoopValue::Made { by, .. }) if by != at) {
                self.is_written[arg.index()] = true;
            }
        }
        for out in &step.outs {
            self.forms[out.index()] = Some(LoopValue::Made { by: at, list });
            self.needs[out.index()] = 1 << at;
        }
        Ok(())
    }
}
