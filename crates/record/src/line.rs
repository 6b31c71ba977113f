//! Records a straight line (a run of steps without branches, loops and calls) on one tape, with its inputs and results. The
//! inputs are parts of values that are computed outside the line, in the backend's representation. The results are the values
//! that are needed outside the line.

use crate::{Datum, MachineValue, Outline, Presence, ScopedValueMap};
use cembra_ops::record;
use cembra_plan::{Action, Plan, StepId, ValueId};
use cembra_runtime::{MachineType, QType, Scalar};
use cembra_tape::{self as tape, Cell, Mask, Output, Tape, Val};
use cembra_value::{ScalarValue, Value};
use smallvec::SmallVec;

/// The values outside a line of steps, in the backend's representation: parts of type `P`, such as registers.
pub trait Values<P> {
    /// Returns `value` in the backend's parts, such as registers; `None` if the backend does not have the value in parts yet.
    fn held(&self, value: ValueId) -> Option<&MachineValue<P>>;

    /// Returns `value` in the backend's parts, such as registers. Loads the value from memory if the backend does not have it
    /// in parts yet.
    fn bring(&mut self, value: ValueId) -> MachineValue<P>;
}

/// A value of the plan that is recorded on a tape.
#[derive(Clone, Debug)]
pub(crate) enum TapeValue {
    Scalar(Cell),
    Tuple(Vec<TapeValue>),
}

/// A straight line (a run of steps without branches, loops and calls), recorded on a tape. One `Line` is reused for many
/// lines, because most lines have few steps.
#[derive(Debug)]
pub struct Line<P> {
    tape: Tape,
    /// The inputs of the tape, in order. Each is given as a part `P` of the backend that runs the tape, such as a
    /// register.
    inputs: Vec<P>,
    /// The values recorded so far.
    values: ScopedValueMap<TapeValue>,
    /// The values that are needed outside of the line.
    results: Vec<ValueId>,
}

impl<P> Default for Line<P> {
    /// An empty line; [`Line::reset`] prepares it for a plan.
    fn default() -> Self {
        Line { tape: Tape::new(), inputs: Vec::new(), values: ScopedValueMap::default(), results: Vec::new() }
    }
}

impl<P: Copy> Line<P> {
    /// Empties the line, and prepares it for recording steps of `plan`. Mathematical functions are recorded as instructions
    /// if `inlined`, else as calls.
    pub fn reset(&mut self, plan: &Plan, inlined: bool) {
        self.values.reset(plan);
        self.tape.set_inlining(inlined);
    }

    /// The finished tape on which the line's steps are recorded.
    #[must_use]
    pub fn tape(&self) -> &Tape {
        &self.tape
    }

    /// The inputs of the line's tape, in order. For each, the part (such as a register) from which the backend reads the
    /// input.
    #[must_use]
    pub fn inputs(&self) -> &[P] {
        &self.inputs
    }

    /// The values that are needed outside the line (the run of recorded steps), in parts. `part` returns the backend's part,
    /// such as a register, for the result of the instruction at a position of the tape.
    pub fn results(&self, part: impl Fn(usize) -> Option<P>) -> impl Iterator<Item = (ValueId, MachineValue<P>)> {
        self.results.iter().filter_map(move |value| Some((*value, self.values.get(*value)?.export(&part))))
    }

    /// Records `steps`, consecutive steps of the outline's plan without branches, loops and calls, and reads values of other
    /// steps from `outside`.
    pub fn record(&mut self, outline: &Outline<'_>, steps: &[StepId], outside: &mut impl Values<P>) {
        let plan = outline.plan;
        self.tape.clear();
        self.values.truncate(0);
        self.inputs.clear();
        self.results.clear();
        for id in steps {
            let step = plan.step(*id);
            self.tape.set_site(id.index() as u32);
            let value = match step.action {
                Action::Operator { op, overload, .. } => {
                    let def = plan.registry().get(op);
                    let overload = &def.overloads()[usize::from(overload)];
                    let args: SmallVec<[Cell; 4]> =
                        plan.args(step).iter().map(|arg| self.scalar(outline, *arg, outside)).collect();
                    TapeValue::Scalar(record(&mut self.tape, def.presence, overload, &args))
                }
                Action::MakeTuple => {
                    TapeValue::Tuple(plan.args(step).iter().map(|arg| self.import(outline, *arg, outside)).collect())
                }
                // A part of a value in memory is loaded where it is used, without the other parts.
                Action::Field(_) | Action::Has if !self.is_known(outline, plan.args(step)[0], outside) => continue,
                Action::Field(index) => self.field(outline, plan.args(step)[0], index as usize, outside),
                Action::Has => {
                    let presence = self.scalar(outline, plan.args(step)[0], outside).presence;
                    TapeValue::Scalar(Cell { presence, datum: tape::Datum::Unit })
                }
                Action::Where { .. } | Action::Loop { .. } => continue,
            };
            self.values.set(step.out, value);
        }
        let Line { tape, values, results, .. } = self;
        results.extend(steps.iter().map(|id| plan.step(*id).out).filter(|out| outline.leaves_line(*out)));
        for value in results.iter().filter_map(|value| values.get(*value)) {
            value.state(tape);
        }
        tape.finish();
    }

    fn scalar(&mut self, outline: &Outline<'_>, value: ValueId, outside: &mut impl Values<P>) -> Cell {
        match self.import(outline, value, outside) {
            TapeValue::Scalar(cell) => cell,
            // Operators take scalars; their overloads were matched to types.
            TapeValue::Tuple(_) => Cell::missing(Scalar::Unit, &mut self.tape),
        }
    }

    /// Returns true if a value is available without a load: it is on the tape, held in parts by the backend, or a literal.
    fn is_known(&self, outline: &Outline<'_>, value: ValueId, outside: &impl Values<P>) -> bool {
        let made = self.values.get(value).is_some() || outside.held(value).is_some();
        made || outline.locations.literal(value).is_some()
    }

    /// Returns a field of a tuple on the tape. If the backend holds the tuple in parts, the tuple's other fields do not
    /// become inputs.
    fn field(
        &mut self,
        outline: &Outline<'_>,
        tuple: ValueId,
        index: usize,
        outside: &mut impl Values<P>,
    ) -> TapeValue {
        if self.values.get(tuple).is_none()
            && let Some(MachineValue { datum: Datum::Tuple(fields), .. }) = outside.held(tuple)
            && let QType::Tuple(types) = &outline.plan.value(tuple).qtype
        {
            return self.enter(&fields[index], &types[index]);
        }
        match self.import(outline, tuple, outside) {
            TapeValue::Tuple(fields) => fields[index].clone(),
            scalar @ TapeValue::Scalar(_) => scalar,
        }
    }

    /// Returns a value of the plan for use on the line's tape: as it was recorded there before, as constants if it is a
    /// literal, or as new inputs of the tape.
    fn import(&mut self, outline: &Outline<'_>, value: ValueId, outside: &mut impl Values<P>) -> TapeValue {
        if let Some(known) = self.values.get(value) {
            return known.clone();
        }
        let plan = outline.plan;
        let literal = outline.locations.literal(value).map(|at| &plan.literals()[at].1);
        let imported = match literal.and_then(|literal| self.constant(literal)) {
            Some(cell) => TapeValue::Scalar(cell),
            None => {
                let brought = outside.bring(value);
                let mut entered = self.enter(&brought, &plan.value(value).qtype);
                // The address of a literal text is known to the plan's template; its length is a constant of the tape.
                if let TapeValue::Scalar(Cell { datum: tape::Datum::Text { len, .. }, .. }) = &mut entered
                    && let Some(bytes) = literal.and_then(string_bytes)
                {
                    *len = self.tape.konst(MachineType::I64, bytes as u64);
                }
                entered
            }
        };
        self.values.set(value, imported.clone());
        imported
    }

    /// A literal as constants of the tape; `None` for strings and tuples.
    fn constant(&mut self, literal: &Value) -> Option<Cell> {
        match literal {
            Value::Missing(scalar) => Some(Cell::missing(*scalar, &mut self.tape)),
            Value::Scalar(v) | Value::Present(v) if !v.scalar().is_string() => {
                Some(Cell::present(tape::Datum::from_bits(v.scalar(), v.bits(), &mut self.tape)))
            }
            _ => None,
        }
    }

    fn number(&mut self, part: P, ty: MachineType) -> Val {
        self.inputs.push(part);
        self.tape.input(ty)
    }

    fn mask(&mut self, part: P) -> Mask {
        self.inputs.push(part);
        self.tape.input_mask()
    }

    /// Adds inputs to the tape for the parts of a value that the backend holds, and returns the value as these inputs.
    fn enter(&mut self, value: &MachineValue<P>, qtype: &QType) -> TapeValue {
        if let (Datum::Tuple(values), QType::Tuple(types)) = (&value.datum, qtype) {
            return TapeValue::Tuple(
                values.iter().zip(types.iter()).map(|(value, ty)| self.enter(value, ty)).collect(),
            );
        }
        let presence = match value.presence {
            Presence::Present => tape::Presence::Present,
            Presence::Missing => tape::Presence::Missing,
            Presence::Flag(part) => tape::Presence::When(self.mask(part)),
        };
        let datum = match value.datum {
            Datum::Flag(part) => tape::Datum::Flag(self.mask(part)),
            Datum::Num(part) => {
                let ty = qtype.scalar().and_then(Scalar::machine_type).unwrap_or(MachineType::I64);
                tape::Datum::Num(self.number(part, ty))
            }
            Datum::Text(ptr, len) => {
                tape::Datum::Text { ptr: self.number(ptr, MachineType::I64), len: self.number(len, MachineType::I64) }
            }
            Datum::Nothing | Datum::Tuple(_) => {
                tape::Datum::from_bits(qtype.scalar().unwrap_or(Scalar::Unit), 0, &mut self.tape)
            }
        };
        TapeValue::Scalar(Cell { presence, datum })
    }
}

/// The length of a literal string in bytes; `None` for other literals.
fn string_bytes(literal: &Value) -> Option<usize> {
    match literal.as_scalar()? {
        ScalarValue::Text(text) => Some(text.len()),
        ScalarValue::Bytes(bytes) => Some(bytes.len()),
        _ => None,
    }
}

impl TapeValue {
    /// Declares the instructions that make up the value as outputs of the tape.
    fn state(&self, tape: &mut Tape) {
        match self {
            TapeValue::Tuple(fields) => fields.iter().for_each(|field| field.state(tape)),
            TapeValue::Scalar(cell) => {
                match cell.presence {
                    tape::Presence::When(mask) => tape.output(Output::Mask(mask)),
                    tape::Presence::Missing => return,
                    tape::Presence::Present => {}
                }
                match cell.datum {
                    tape::Datum::Unit => {}
                    tape::Datum::Flag(mask) => tape.output(Output::Mask(mask)),
                    tape::Datum::Num(val) => tape.output(Output::Number(val)),
                    tape::Datum::Text { ptr, len } => {
                        tape.output(Output::Number(ptr));
                        tape.output(Output::Number(len));
                    }
                }
            }
        }
    }

    /// Converts a recorded value to the backend's parts, after the tape was run. `part` returns the part that has the
    /// result of the instruction at a position of the tape.
    fn export<P: Copy>(&self, part: &impl Fn(usize) -> Option<P>) -> MachineValue<P> {
        match self {
            TapeValue::Tuple(fields) => {
                MachineValue::present(Datum::Tuple(fields.iter().map(|field| field.export(part)).collect()))
            }
            TapeValue::Scalar(cell) => {
                let presence = match cell.presence {
                    tape::Presence::Present => Presence::Present,
                    tape::Presence::Missing => Presence::Missing,
                    tape::Presence::When(mask) => part(mask.index()).map_or(Presence::Missing, Presence::Flag),
                };
                let datum = match (cell.datum, presence) {
                    (tape::Datum::Unit, _) | (_, Presence::Missing) => Datum::Nothing,
                    (tape::Datum::Flag(mask), _) => part(mask.index()).map_or(Datum::Nothing, Datum::Flag),
                    (tape::Datum::Num(val), _) => part(val.index()).map_or(Datum::Nothing, Datum::Num),
                    (tape::Datum::Text { ptr, len }, _) => match (part(ptr.index()), part(len.index())) {
                        (Some(ptr), Some(len)) => Datum::Text(ptr, len),
                        _ => Datum::Nothing,
                    },
                };
                MachineValue { presence, datum }
            }
        }
    }
}
