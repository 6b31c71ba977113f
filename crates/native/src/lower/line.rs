//! A straight line of steps: recorded on one tape, which is played once it is known what of it is used.

use super::Lowering;
use crate::cells::{Cell, Datum, Presence};
use crate::notes::Notes;
use crate::player::Player;
use cembra_ops as ops;
use cembra_plan::{Action, Plan, StepId, ValueId};
use cembra_runtime::{MachineType, QType, Scalar};
use cembra_tape::{self as tape, Tape};
use cembra_value::{ScalarValue, Value};
use cranelift_codegen::ir;

/// A value of the plan on a tape.
#[derive(Clone)]
enum TapeCell {
    Scalar(tape::Cell),
    Tuple(Vec<TapeCell>),
}

impl Lowering<'_, '_, '_> {
    /// Records a straight line of steps and plays it.
    pub(super) fn line(&mut self, steps: &[StepId]) {
        let plan = self.plan;
        self.tape.clear();
        let mut line = std::mem::take(self.line);
        for id in steps {
            let step = plan.step(*id);
            self.tape.set_site(id.index() as u32);
            let cell = match step.action {
                Action::Operator { op, overload, .. } => {
                    let def = self.plan.registry().get(op);
                    let overload = &def.overloads()[usize::from(overload)];
                    let args: smallvec::SmallVec<[tape::Cell; 4]> =
                        plan.args(step).iter().map(|arg| self.scalar(&mut line, *arg)).collect();
                    TapeCell::Scalar(ops::lower(self.tape, def.presence, overload, &args))
                }
                Action::MakeTuple => {
                    TapeCell::Tuple(plan.args(step).iter().map(|arg| self.import(&mut line, *arg)).collect())
                }
                // A part of what is in memory is loaded where it is used, without the rest.
                Action::Field(_) | Action::Has if !self.is_known(&line, plan.args(step)[0]) => continue,
                Action::Field(index) => self.field(&mut line, plan.args(step)[0], index as usize),
                Action::Has => {
                    let presence = self.scalar(&mut line, plan.args(step)[0]).presence;
                    TapeCell::Scalar(tape::Cell { presence, datum: tape::Datum::Unit })
                }
                Action::Where { .. } | Action::Loop { .. } => continue,
            };
            line.cells.set(step.out, cell);
        }
        let Line { cells, inputs, kept, vals, masks, live, values } = &mut line;
        let homes = &self.outline.homes;
        // A value is put into its slot also if only its parts are used elsewhere.
        let is_used = |out: &ValueId| self.outline.escapes[out.index()] || homes.is_stored(*out);
        kept.extend(steps.iter().map(|id| plan.step(*id).out).filter(is_used));
        for value in &*kept {
            if let Some(cell) = cells.get(*value) {
                cell.roots(vals, masks);
            }
        }
        self.tape.mark_live(vals, masks, live);
        let roots = vals.iter().map(|val| val.index()).chain(masks.iter().map(|mask| mask.index()));
        Player::play(self.builder, &mut self.around, self.tape, live, inputs, roots, values);
        for value in &*kept {
            if let Some(cell) = cells.get(*value) {
                let cell = cell.export(values);
                self.made(*value, cell);
            }
        }
        line.clear();
        *self.line = line;
    }

    fn scalar(&mut self, line: &mut Line, value: ValueId) -> tape::Cell {
        match self.import(line, value) {
            TapeCell::Scalar(cell) => cell,
            // Operators take scalars; their overloads were matched to types.
            TapeCell::Tuple(_) => tape::Cell::missing(Scalar::Unit, self.tape),
        }
    }

    /// True for a value that is not only in memory.
    fn is_known(&self, line: &Line, value: ValueId) -> bool {
        let made = line.cells.get(value).is_some() || self.registers.get(value).is_some();
        made || self.outline.homes.literal(value).is_some()
    }

    /// A field of a tuple; the others stay where they are.
    fn field(&mut self, line: &mut Line, tuple: ValueId, index: usize) -> TapeCell {
        if line.cells.get(tuple).is_none()
            && let Some(Cell { datum: Datum::Tuple(fields), .. }) = self.registers.get(tuple)
            && let QType::Tuple(types) = &self.plan.value(tuple).qtype
        {
            return line.enter(self.tape, &fields[index], &types[index]);
        }
        match self.import(line, tuple) {
            TapeCell::Tuple(fields) => fields[index].clone(),
            scalar @ TapeCell::Scalar(_) => scalar,
        }
    }

    /// A value on the tape of the line: made there, a literal, or an input of the tape.
    fn import(&mut self, line: &mut Line, value: ValueId) -> TapeCell {
        if let Some(cell) = line.cells.get(value) {
            return cell.clone();
        }
        let plan = self.plan;
        let literal = self.outline.homes.literal(value).map(|at| &plan.literals()[at].1);
        let cell = match literal.and_then(|literal| self.constant(literal)) {
            Some(cell) => TapeCell::Scalar(cell),
            None => {
                let cell = self.cell(value);
                let mut cell = line.enter(self.tape, &cell, &plan.value(value).qtype);
                // Where a literal text is, its template knows; how long it is, the tape.
                if let TapeCell::Scalar(tape::Cell { datum: tape::Datum::Text { len, .. }, .. }) = &mut cell
                    && let Some(bytes) = literal.and_then(text_bytes)
                {
                    *len = self.tape.konst(MachineType::I64, bytes as u64);
                }
                cell
            }
        };
        line.cells.set(value, cell.clone());
        cell
    }

    /// A literal as constants of the tape; none for texts and tuples.
    fn constant(&mut self, literal: &Value) -> Option<tape::Cell> {
        match literal {
            Value::Missing(scalar) => Some(tape::Cell::missing(*scalar, self.tape)),
            Value::Scalar(v) | Value::Present(v) if !v.scalar().is_string() => {
                Some(tape::Cell::present(tape::Datum::from_bits(v.scalar(), v.bits(), self.tape)))
            }
            _ => None,
        }
    }
}

/// The length of a literal text.
fn text_bytes(literal: &Value) -> Option<usize> {
    match literal.as_scalar()? {
        ScalarValue::Text(text) => Some(text.len()),
        ScalarValue::Bytes(bytes) => Some(bytes.len()),
        _ => None,
    }
}

/// The straight line being recorded, in memory that the next one uses again: many lines are a few steps long.
#[derive(Default)]
pub(super) struct Line {
    /// What came in from outside.
    inputs: Vec<ir::Value>,
    /// The values so far.
    cells: Notes<TapeCell>,
    /// The values that are used elsewhere, and the instructions whose results they are made of.
    kept: Vec<ValueId>,
    vals: Vec<tape::Val>,
    masks: Vec<tape::Mask>,
    /// For each instruction whether it is needed, and what the player made of it.
    live: Vec<bool>,
    values: Vec<Option<ir::Value>>,
}

impl Line {
    /// An empty line of steps of this plan.
    pub(super) fn of(plan: &Plan) -> Self {
        Line { cells: Notes::of(plan), ..Line::default() }
    }

    /// Empties the line.
    fn clear(&mut self) {
        self.cells.truncate(0);
        self.inputs.clear();
        self.kept.clear();
        self.vals.clear();
        self.masks.clear();
    }

    fn number(&mut self, tape: &mut Tape, value: ir::Value, ty: MachineType) -> tape::Val {
        self.inputs.push(value);
        tape.input(ty)
    }

    fn flag(&mut self, tape: &mut Tape, value: ir::Value) -> tape::Mask {
        self.inputs.push(value);
        tape.input_mask()
    }

    /// Makes machine values inputs of the tape.
    fn enter(&mut self, tape: &mut Tape, cell: &Cell, qtype: &QType) -> TapeCell {
        if let (Datum::Tuple(cells), QType::Tuple(types)) = (&cell.datum, qtype) {
            let fields = cells.iter().zip(types.iter()).map(|(cell, ty)| self.enter(tape, cell, ty)).collect();
            return TapeCell::Tuple(fields);
        }
        let presence = match cell.presence {
            Presence::Present => tape::Presence::Present,
            Presence::Missing => tape::Presence::Missing,
            Presence::Flag(flag) => tape::Presence::When(self.flag(tape, flag)),
        };
        let datum = match &cell.datum {
            Datum::Flag(value) => tape::Datum::Flag(self.flag(tape, *value)),
            Datum::Num(value) => {
                let ty = qtype.scalar().and_then(Scalar::machine_type).unwrap_or(MachineType::I64);
                tape::Datum::Num(self.number(tape, *value, ty))
            }
            Datum::Text(ptr, len) => tape::Datum::Text {
                ptr: self.number(tape, *ptr, MachineType::I64),
                len: self.number(tape, *len, MachineType::I64),
            },
            Datum::Nothing | Datum::Tuple(_) => tape::Datum::from_bits(qtype.scalar().unwrap_or(Scalar::Unit), 0, tape),
        };
        TapeCell::Scalar(tape::Cell { presence, datum })
    }
}

impl TapeCell {
    /// The instructions whose results the cell is made of.
    fn roots(&self, vals: &mut Vec<tape::Val>, masks: &mut Vec<tape::Mask>) {
        match self {
            TapeCell::Tuple(fields) => fields.iter().for_each(|field| field.roots(vals, masks)),
            TapeCell::Scalar(cell) => {
                match cell.presence {
                    tape::Presence::When(mask) => masks.push(mask),
                    tape::Presence::Missing => return,
                    tape::Presence::Present => {}
                }
                match cell.datum {
                    tape::Datum::Unit => {}
                    tape::Datum::Flag(mask) => masks.push(mask),
                    tape::Datum::Num(val) => vals.push(val),
                    tape::Datum::Text { ptr, len } => vals.extend([ptr, len]),
                }
            }
        }
    }

    /// The cell in machine values, after the tape was played.
    fn export(&self, values: &[Option<ir::Value>]) -> Cell {
        match self {
            TapeCell::Tuple(fields) => Cell {
                presence: Presence::Present,
                datum: Datum::Tuple(fields.iter().map(|field| field.export(values)).collect()),
            },
            TapeCell::Scalar(cell) => {
                let presence = match cell.presence {
                    tape::Presence::Present => Presence::Present,
                    tape::Presence::Missing => Presence::Missing,
                    tape::Presence::When(mask) => values[mask.index()].map_or(Presence::Missing, Presence::Flag),
                };
                let datum = match (cell.datum, presence) {
                    (tape::Datum::Unit, _) | (_, Presence::Missing) => Datum::Nothing,
                    (tape::Datum::Flag(mask), _) => values[mask.index()].map_or(Datum::Nothing, Datum::Flag),
                    (tape::Datum::Num(val), _) => values[val.index()].map_or(Datum::Nothing, Datum::Num),
                    (tape::Datum::Text { ptr, len }, _) => match (values[ptr.index()], values[len.index()]) {
                        (Some(ptr), Some(len)) => Datum::Text(ptr, len),
                        _ => Datum::Nothing,
                    },
                };
                Cell { presence, datum }
            }
        }
    }
}
