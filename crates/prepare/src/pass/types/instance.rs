//! The builder that operators on functions and sequences, such as `seq.reduce`, use to make their nodes in the typed
//! graph. A builder is for one node of the program, and refers to typed nodes by handles. It also makes loops, and
//! infers the type of their state.

use super::Typer;
use super::passed::CompileTimeOperand;
use crate::graph::LoopId;
use crate::pass::cast::bind_resolved;
use crate::{Id, Kind, TypedModel};
use cembra_expr::NodeId;
use cembra_ops::{
    Expansion, ExpansionError, Instantiation, Meaning, NodeHandle, OpId, Round, Sequence, TypeFault, common_type, id,
    structs,
};
use cembra_runtime::{Fields, Form, QType, Scalar};
use cembra_value::{Code, Diagnostic, Value};
use smallvec::SmallVec;
use std::rc::Rc;

/// The most times that the type inference of a loop may begin again because a round gives the state a wider type.
const WIDENINGS: usize = 4;

/// The builder of the typed nodes for one node of the program, which is an operator on functions or sequences.
pub(super) struct Instance<'t, 'g, 'p> {
    pub(super) typer: &'t mut Typer<'g>,
    pub(super) model: &'p mut TypedModel,
    pub(super) node: NodeId,
}

pub(super) fn id_of(arg: NodeHandle) -> Id {
    Id::from_index(arg.0 as usize)
}

/// Returns the error for a limit that is exceeded while an operator is applied. The error names no operand.
pub(super) fn exceeded(problem: Diagnostic) -> ExpansionError {
    let fault = TypeFault { code: problem.code(), ..TypeFault::mismatch(problem.message(), None) };
    ExpansionError::Fault(problem.hints().iter().fold(fault, TypeFault::hint))
}

/// Returns the error for a model whose calls make too many nodes.
pub(super) fn too_much(message: String) -> ExpansionError {
    let fault = TypeFault { code: Code::Limit, ..TypeFault::mismatch(message, None) };
    ExpansionError::Fault(fault.hint("split the model, or call fewer functions"))
}

pub(super) fn arg_of(id: Id) -> NodeHandle {
    NodeHandle(id.index() as u32)
}

impl Instance<'_, '_, '_> {
    /// Applies the operator `op` to typed operands, and returns the new node.
    pub(super) fn apply_operator(&mut self, op: OpId, args: &[NodeHandle]) -> Result<NodeHandle, ExpansionError> {
        self.typer.spend(1 + args.len()).map_err(exceeded)?;
        if let (id::PART, &[of, index]) = (op, args)
            && let Some(member) = self.made_member(of, index)
        {
            return Ok(member);
        }
        if let Meaning::Instantiate(make) = self.typer.registry.get(op).meaning {
            self.typer.registry.get(op).check_count(args.len())?;
            return make(self, args);
        }
        let operands: SmallVec<[Id; 4]> = args.iter().map(|arg| id_of(*arg)).collect();
        let mut op = op;
        let types = operands.iter().map(|id| self.model.graph.qtype(*id));
        if self.typer.registry.get(op).is_replaceable(types.clone()) {
            self.typer.registry.get(op).check_count(args.len())?;
            op = self.typer.registry.meant(op, &types.collect::<SmallVec<[&QType; 4]>>());
            if let Meaning::Instantiate(make) = self.typer.registry.get(op).meaning {
                return make(self, args);
            }
        }
        if let [x, y] = *operands
            && let Some(value) = self.typer.compare_types(self.model, op, [x, y]).map_err(exceeded)?
        {
            return Ok(self.literal(value));
        }
        let graph = &mut self.model.graph;
        let resolved = graph.resolve(self.typer.registry, op, &operands)?;
        let bound = bind_resolved(graph, self.typer.registry, op, &resolved, &operands, self.node);
        Ok(arg_of(bound.map_err(|message| TypeFault::mismatch(message, None))?))
    }

    /// The member `index` of a tuple, if the node `of` makes this tuple from its members; else `None`. With it, the
    /// other members are not needed.
    fn made_member(&self, of: NodeHandle, index: NodeHandle) -> Option<NodeHandle> {
        let index = usize::try_from(self.model.graph.value(id_of(index))?.as_scalar()?.bits()).ok()?;
        self.model.graph.made_fields(id_of(of))?.get(index).map(|member| arg_of(*member))
    }

    /// The members of a tuple, struct or optional struct `arg`, each cast to the type of the field in `wide`.
    fn members_widened(&mut self, arg: NodeHandle, wide: &Fields<QType>) -> Result<Vec<NodeHandle>, TypeFault> {
        let mut widened = Vec::with_capacity(1 + wide.len());
        for (index, member) in wide.iter().enumerate() {
            let index = self.literal(Value::from(index as i64));
            let part = self.apply(id::PART, &[arg, index])?;
            widened.push(self.widened(part, member)?);
        }
        Ok(widened)
    }

    /// Casts a value to a wider type: scalars and elements of arrays directly, tuples field by field.
    fn widened(&mut self, arg: NodeHandle, wide: &QType) -> Result<NodeHandle, TypeFault> {
        let found = self.qtype(arg);
        // The recursion is bounded: types nest only as deep as the text that spelled them.
        match wide {
            _ if found == *wide => Ok(arg),
            QType::Tuple(fields) if wide.as_tuple().is_some() => {
                let members = self.members_widened(arg, fields)?;
                structs::make_struct(self, fields, members)
            }
            QType::Tuple(fields) => {
                let members = match wide.as_optional_struct() {
                    Some(of) if found.as_optional_struct().is_none() => {
                        let [has, found] = structs::optional_parts(self, "a declaration", arg, wide)?;
                        vec![has, self.widened(found, of)?]
                    }
                    _ => self.members_widened(arg, fields)?,
                };
                structs::formed(self, wide, &members)
            }
            QType::Optional(scalar) | QType::Scalar(scalar) => {
                let mut cast = arg;
                if found.scalar() != Some(*scalar) {
                    let op = self.typer.registry.cast_to(*scalar);
                    let op = op.ok_or_else(|| {
                        TypeFault::mismatch(format!("a value of type {found} cannot become one of type {wide}"), None)
                    })?;
                    cast = self.apply(op, &[cast])?;
                }
                if wide.is_optional() && !self.qtype(cast).is_optional() {
                    cast = self.apply(id::TO_OPTIONAL, &[cast])?;
                }
                Ok(cast)
            }
            QType::Array(_, scalar) => match self.typer.registry.cast_to(*scalar) {
                Some(op) => self.apply(op, &[arg]),
                None => Ok(arg),
            },
            QType::Shape(_)
            | QType::ArrayShape(_)
            | QType::Edge(_)
            | QType::Meta
            | QType::Nothing
            | QType::Unspecified
            | QType::Function
            | QType::Dict(..)
            | QType::Sequence(_)
            | QType::Tensor(..) => Ok(arg),
        }
    }

    /// Makes the nodes of a loop's round, for a state with the type of `init`. Returns the id of the loop, the state
    /// that the round reads, the next state, and the condition for another round.
    fn round(
        &mut self,
        init: NodeHandle,
        condition: Round<'_>,
        next: Round<'_>,
    ) -> Result<(LoopId, NodeHandle, NodeHandle, NodeHandle), ExpansionError> {
        let functions = &mut self.typer.functions;
        if functions.loop_depth >= LoopId::MOST_DEPTH {
            return Err(too_much(format!("loops run inside of loops more than {} levels deep", LoopId::MOST_DEPTH)));
        }
        functions.loops += 1;
        functions.loop_depth += 1;
        let id = LoopId::new(functions.loops, functions.loop_depth);
        let qtype = self.qtype(init);
        let state = arg_of(self.model.graph.add(Kind::State(id), &[], &qtype, self.node));
        let made = next(self, state).and_then(|next| Ok((next, condition(self, next)?)));
        self.typer.functions.loop_depth -= 1;
        let (next, again) = made?;
        Ok((id, state, next, again))
    }

    /// Converts a condition to a mask.
    fn mask(&mut self, condition: NodeHandle) -> Result<NodeHandle, TypeFault> {
        match self.qtype(condition) {
            QType::MASK => Ok(condition),
            QType::UNIT => self.apply(id::TO_OPTIONAL, &[condition]),
            found => {
                let fault = TypeFault::mismatch(format!("the condition of a loop must be a mask, found {found}"), None);
                Err(if found.scalar() == Some(Scalar::Boolean) { fault.hint("write `b == true`") } else { fault })
            }
        }
    }
}

impl Expansion for Instance<'_, '_, '_> {
    fn qtype(&self, arg: NodeHandle) -> QType {
        self.model.graph.qtype(id_of(arg)).clone()
    }

    fn value(&self, arg: NodeHandle) -> Option<Value> {
        self.model.graph.value(id_of(arg)).cloned()
    }

    fn literal(&mut self, value: Value) -> NodeHandle {
        arg_of(self.model.graph.literal(value, self.node))
    }

    fn apply(&mut self, operator: OpId, args: &[NodeHandle]) -> Result<NodeHandle, TypeFault> {
        match self.apply_operator(operator, args) {
            Ok(made) => Ok(made),
            Err(ExpansionError::Fault(fault)) => Err(TypeFault { operand: None, ..fault }),
            // Operators are applied to values here, which reports nothing.
            Err(ExpansionError::Reported) => {
                let name = self.typer.registry.get(operator).name;
                Err(TypeFault::mismatch(format!("{name} cannot be applied"), None))
            }
        }
    }
}

impl Instantiation for Instance<'_, '_, '_> {
    fn widen(&mut self, arg: NodeHandle, wide: &QType) -> Result<NodeHandle, TypeFault> {
        self.widened(arg, wide)
    }

    fn call(&mut self, function: NodeHandle, args: &[NodeHandle]) -> Result<NodeHandle, ExpansionError> {
        let arguments: SmallVec<[Id; 4]> = args.iter().map(|arg| id_of(*arg)).collect();
        let made = self.typer.call(self.model, self.node, id_of(function), &arguments)?;
        Ok(arg_of(made))
    }

    fn spend(&mut self, steps: usize) -> Result<(), ExpansionError> {
        self.typer.spend(steps).map_err(exceeded)
    }

    fn sequence(&self, arg: NodeHandle) -> Option<Rc<Sequence>> {
        let Kind::CompileTime(at) = self.model.graph.kind(id_of(arg)) else { return None };
        match self.typer.functions.passed.get(at as usize) {
            Some(CompileTimeOperand::Sequence(sequence)) => Some(sequence.clone()),
            _ => None,
        }
    }

    fn make_sequence(&mut self, sequence: Sequence) -> NodeHandle {
        arg_of(self.typer.pass_sequence(self.model, sequence, self.node))
    }

    fn unknown(&mut self, qtype: &QType) -> NodeHandle {
        self.typer.functions.loops += 1;
        let kind = Kind::State(LoopId::new(self.typer.functions.loops, 0));
        arg_of(self.model.graph.add(kind, &[], qtype, self.node))
    }

    fn map(&mut self, function: NodeHandle, args: &[NodeHandle]) -> Result<NodeHandle, ExpansionError> {
        self.map_arrays(function, args)
    }

    fn repeat(
        &mut self,
        init: NodeHandle,
        condition: Round<'_>,
        next: Round<'_>,
    ) -> Result<NodeHandle, ExpansionError> {
        let mut init = init;
        for _ in 0..=WIDENINGS {
            let qtype = self.qtype(init);
            if !qtype.is_run_time() {
                return Err(TypeFault::mismatch(
                    format!("the state of a loop cannot be a value of type {qtype}"),
                    Some(0),
                )
                .into());
            }
            let first = condition(self, init)?;
            let first = self.mask(first)?;
            let (id, _, following, again) = self.round(init, condition, next)?;
            let found = self.qtype(following);
            let Some(wide) = common_state(&qtype, &found) else {
                let message =
                    format!("the state of a loop must keep its type, but it starts as {qtype} and becomes {found}");
                return Err(TypeFault::mismatch(message, None).into());
            };
            if wide != qtype {
                init = self.widened(init, &wide)?;
                continue;
            }
            let following = self.widened(following, &wide)?;
            let again = self.mask(again)?;
            let round = self.apply(id::MAKE_TUPLE, &[following, again])?;
            let ends = QType::tuple([wide.clone(), QType::MASK]);
            let graph = &mut self.model.graph;
            let last = graph.add(Kind::Loop(id), &[id_of(init), id_of(round)], &ends, self.node);
            let zero = self.literal(Value::from(0_i64));
            let last = self.apply(id::GET_NTH, &[arg_of(last), zero])?;
            let operands = [first, last, init].map(id_of);
            return Ok(arg_of(self.model.graph.add(Kind::LAZY, &operands, &wide, self.node)));
        }
        let message = "the type of a loop's state must not grow with each round";
        Err(TypeFault::mismatch(message, None).into())
    }
}

/// The common type of a loop's state that has the type `a` before a round and the type `b` after it. For tuples, the
/// common type is found field by field. `None` if there is none.
fn common_state(a: &QType, b: &QType) -> Option<QType> {
    match (a, b) {
        _ if a == b => Some(a.clone()),
        // A scalar does not determine the number of elements.
        (QType::Array(..), other) | (other, QType::Array(..)) if !matches!(other, QType::Array(..)) => None,
        (QType::Tuple(a), QType::Tuple(b)) if a.form() != b.form() || *a.form() != Form::Tuple => {
            structs::common_struct(&QType::Tuple(a.clone()), &QType::Tuple(b.clone()))
        }
        (QType::Tuple(a), QType::Tuple(b)) if a.len() == b.len() && a.names() == b.names() => {
            let fields: Option<Vec<QType>> = a.iter().zip(b.iter()).map(|(a, b)| common_state(a, b)).collect();
            Some(QType::Tuple(a.with(fields?)))
        }
        _ => common_type(a, b),
    }
}
