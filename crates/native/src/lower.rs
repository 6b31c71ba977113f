//! From a plan to a function: straight lines of steps are recorded on one tape each and played; conditionals become
//! basic blocks that meet again. Values stay in registers; memory is touched for inputs, outputs and literal texts only.

mod rounds;

use crate::call::{self, Callee};
use crate::cancel::Cancelled;
use crate::cells::{self, Cell, Datum, Memory, Presence};
use crate::player::{Player, Surroundings};
use cembra_expr::{ScalarValue, Value};
use cembra_ops::{self as ops, Tape};
use cembra_plan::{Action, Base, Binding, BlockId, Place, Plan, StepId, ValueId};
use cembra_runtime::{MachineType, QType, STATUS_OK, Scalar};
use cranelift_codegen::ir::{self, AliasRegion, AliasRegionData, BlockArg, InstBuilder, types};
use cranelift_codegen::isa::TargetIsa;
use cranelift_frontend::{FunctionBuilder, Variable};
use rustc_hash::FxHashMap;

/// A value of the plan on a tape.
#[derive(Clone)]
enum TapeCell {
    Scalar(ops::Cell),
    Tuple(Vec<TapeCell>),
}

struct Regions {
    input: AliasRegion,
    output: AliasRegion,
    frame: AliasRegion,
}

/// Builds the body of a function whose parameters are input, output, frame and context. `marks_steps` makes its instructions
/// tell which steps they are for.
pub(crate) fn lower(
    builder: &mut FunctionBuilder<'_>,
    isa: &dyn TargetIsa,
    plan: &Plan,
    binding: &Binding,
    tape: &mut Tape,
    marks_steps: bool,
) {
    let entry = builder.create_block();
    builder.append_block_params_for_function_params(entry);
    builder.switch_to_block(entry);
    builder.seal_block(entry);
    let params: Vec<ir::Value> = builder.block_params(entry).to_vec();
    let mut region = |user_id: u32, description: &'static str| {
        builder.func.dfg.alias_regions.insert(AliasRegionData { user_id, description: description.into() })
    };
    let regions = Regions { input: region(0, "input"), output: region(1, "output"), frame: region(2, "frame") };
    let context_region = region(3, "context");
    let around =
        Surroundings { isa, context: params[3], context_region, signatures: FxHashMap::default(), marks_steps };
    let mut lowering = Lowering {
        escapes: escapes(plan),
        calls: call::steps(plan).zip(0..).map(|((step, callee), number)| (step, (callee, number))).collect(),
        kernel_signature: None,
        cancelled: Cancelled::default(),
        cells: vec![None; plan.value_count()],
        in_frame: vec![false; plan.value_count()],
        literals: vec![None; plan.value_count()],
        plan,
        builder,
        around,
        params: [params[0], params[1], params[2]],
        regions,
        tape,
        rounds_left: None,
    };
    lowering.count_rounds();
    for (at, (value, _)) in plan.literals().iter().enumerate() {
        lowering.literals[value.index()] = Some(at as u32);
    }
    for (input, place) in plan.inputs().iter().zip(&binding.inputs) {
        let from = lowering.memory(*place);
        let cell = cells::load(lowering.builder, &plan.value(input.value).qtype, from);
        lowering.in_frame[input.value.index()] = *place == plan.place(input.value);
        lowering.cells[input.value.index()] = Some(cell);
    }
    lowering.blocks();
    lowering.around.mark(lowering.builder, None);
    for (output, place) in plan.outputs().iter().zip(&binding.outputs) {
        let cell = lowering.cell(output.value);
        let to = lowering.memory(*place);
        cells::store(lowering.builder, &plan.value(output.value).qtype, &cell, to);
    }
    let status = lowering.builder.ins().iconst(types::I32, i64::from(STATUS_OK));
    lowering.builder.ins().return_(&[status]);
    lowering.cancelled.finish(lowering.builder, &lowering.around);
}

/// True for a step that is no part of a straight line: a conditional, a loop, or the call of an operator's function.
pub(crate) fn stands_alone(plan: &Plan, step: StepId) -> bool {
    matches!(plan.step(step).action, Action::Where { .. } | Action::Loop { .. }) || call::callee(plan, step).is_some()
}

/// The straight line of each step, and how many lines there are. A straight line ends at a step that stands alone.
pub(crate) fn lines(plan: &Plan) -> (Vec<u32>, u32) {
    let mut line = 0;
    let mut lines: Vec<u32> = vec![0; plan.step_count()];
    for block in 0..plan.block_count() {
        line += 1;
        for id in &plan.block(BlockId::from_index(block)).steps {
            let alone = u32::from(stands_alone(plan, *id));
            line += alone;
            lines[id.index()] = line;
            line += alone;
        }
    }
    (lines, line + 1)
}

/// Which values are used outside of the straight line that makes them.
fn escapes(plan: &Plan) -> Vec<bool> {
    let (lines, _) = lines(plan);
    let mut line_of: Vec<u32> = vec![u32::MAX; plan.value_count()];
    let mut escapes = vec![false; plan.value_count()];
    for (at, line) in lines.iter().enumerate() {
        line_of[plan.step(StepId::from_index(at)).out.index()] = *line;
    }
    for (at, line) in lines.into_iter().enumerate() {
        for arg in plan.args(plan.step(StepId::from_index(at))) {
            escapes[arg.index()] |= line_of[arg.index()] != line;
        }
    }
    for block in 0..plan.block_count() {
        if let Some(result) = plan.block(BlockId::from_index(block)).result {
            escapes[result.index()] = true;
        }
    }
    for output in plan.outputs() {
        escapes[output.value.index()] = true;
    }
    escapes
}

pub(crate) struct Lowering<'a, 'b, 'f> {
    pub(crate) plan: &'a Plan,
    pub(crate) builder: &'a mut FunctionBuilder<'b>,
    pub(crate) around: Surroundings<'f>,
    pub(crate) params: [ir::Value; 3],
    regions: Regions,
    tape: &'a mut Tape,
    escapes: Vec<bool>,
    /// What steps call, and the position of each call in the table.
    pub(crate) calls: FxHashMap<StepId, (Callee, u32)>,
    pub(crate) kernel_signature: Option<ir::SigRef>,
    pub(crate) cells: Vec<Option<Cell>>,
    pub(crate) literals: Vec<Option<u32>>,
    pub(crate) cancelled: Cancelled,
    /// Inputs that the caller puts into their slots.
    pub(crate) in_frame: Vec<bool>,
    /// How many rounds the loops may yet run.
    rounds_left: Option<Variable>,
}

impl Lowering<'_, '_, '_> {
    pub(crate) fn memory(&self, place: Place) -> Memory {
        let (base, region) = match place.base {
            Base::Input => (self.params[0], self.regions.input),
            Base::Output => (self.params[1], self.regions.output),
            Base::Frame => (self.params[2], self.regions.frame),
        };
        Memory { base, offset: place.offset, region, constant: true }
    }

    /// The machine values of a value; those of a literal are made where they are asked for.
    pub(crate) fn cell(&mut self, value: ValueId) -> Cell {
        if let Some(cell) = &self.cells[value.index()] {
            return cell.clone();
        }
        let plan = self.plan;
        match self.literals[value.index()] {
            Some(at) => {
                let place = plan.place(value);
                self.literal_cell(&plan.literals()[at as usize].1, place)
            }
            None => {
                debug_assert!(false, "{value:?} is used before it is made");
                Cell { presence: Presence::Missing, datum: Datum::Nothing }
            }
        }
    }

    fn literal_cell(&mut self, literal: &Value, place: Place) -> Cell {
        let qtype = literal.qtype();
        match literal {
            Value::Scalar(v) | Value::Present(v) => {
                let inside = qtype.optional_value_offset().unwrap_or(0);
                let datum = match v {
                    ScalarValue::Unit => Datum::Nothing,
                    ScalarValue::Boolean(v) => Datum::Flag(self.builder.ins().iconst(types::I8, i64::from(*v))),
                    ScalarValue::Int32(v) => {
                        Datum::Num(self.builder.ins().iconst(types::I32, i64::from(v.cast_unsigned())))
                    }
                    ScalarValue::Int64(v) => Datum::Num(self.builder.ins().iconst(types::I64, *v)),
                    ScalarValue::UInt64(v) => Datum::Num(self.builder.ins().iconst(types::I64, v.cast_signed())),
                    ScalarValue::Float32(v) => Datum::Num(self.builder.ins().f32const(*v)),
                    ScalarValue::Float64(v) | ScalarValue::WeakFloat(v) => Datum::Num(self.builder.ins().f64const(*v)),
                    // The frame's template holds a view of the text: code with an address in it could not be moved.
                    ScalarValue::Text(_) | ScalarValue::Bytes(_) => {
                        let from = self.memory(Place { offset: place.offset + inside, ..place });
                        return Cell {
                            presence: Presence::Present,
                            datum: cells::load(self.builder, &QType::TEXT, from).datum,
                        };
                    }
                };
                Cell { presence: Presence::Present, datum }
            }
            Value::Missing(_) => Cell { presence: Presence::Missing, datum: Datum::Nothing },
            Value::Tuple(fields) => {
                let fields = fields
                    .iter()
                    .zip(qtype.field_offsets())
                    .map(|(field, inside)| self.literal_cell(field, Place { offset: place.offset + inside, ..place }))
                    .collect();
                Cell { presence: Presence::Present, datum: Datum::Tuple(fields) }
            }
            Value::Shape(_) | Value::Type(_) | Value::Nothing => {
                Cell { presence: Presence::Present, datum: Datum::Nothing }
            }
        }
    }

    /// All blocks from the top one on, without recursion.
    fn blocks(&mut self) {
        enum Todo {
            Steps(BlockId, usize),
            Else {
                step: StepId,
                off: ir::Block,
                join: ir::Block,
            },
            Join {
                step: StepId,
                join: ir::Block,
            },
            /// A round of a loop is done; rounds start at the block.
            Again {
                step: StepId,
                start: ir::Block,
            },
            /// One branch only, for a condition that is known.
            Known {
                step: StepId,
                branch: BlockId,
            },
        }
        let plan = self.plan;
        let mut stack = vec![Todo::Steps(BlockId::TOP, 0)];
        while let Some(todo) = stack.pop() {
            match todo {
                Todo::Steps(block, at) => {
                    let steps = &plan.block(block).steps[at..];
                    let alone = |id: &StepId| {
                        let structure = matches!(plan.step(*id).action, Action::Where { .. } | Action::Loop { .. });
                        structure || self.calls.contains_key(id)
                    };
                    let line = steps.iter().position(alone).unwrap_or(steps.len());
                    if line > 0 {
                        self.line(&steps[..line]);
                    }
                    let Some(&id) = steps.get(line) else { continue };
                    stack.push(Todo::Steps(block, at + line + 1));
                    let step = plan.step(id);
                    self.around.mark(self.builder, Some(id.index() as u32));
                    let (on, off) = match step.action {
                        Action::Where { on, off } => (on, off),
                        Action::Loop { round, state } => {
                            let start = self.begin_rounds(plan.args(step)[0], state);
                            stack.push(Todo::Again { step: id, start });
                            stack.push(Todo::Steps(round, 0));
                            continue;
                        }
                        _ => {
                            self.call(id);
                            continue;
                        }
                    };
                    match self.cell(plan.args(step)[0]).presence {
                        Presence::Present => {
                            stack.push(Todo::Known { step: id, branch: on });
                            stack.push(Todo::Steps(on, 0));
                        }
                        Presence::Missing => {
                            stack.push(Todo::Known { step: id, branch: off });
                            stack.push(Todo::Steps(off, 0));
                        }
                        Presence::Flag(flag) => {
                            let [on_block, off_block, join] = [(); 3].map(|()| self.builder.create_block());
                            let mut params = Vec::new();
                            cells::join_types(&plan.value(step.out).qtype, &mut params);
                            for ty in params {
                                self.builder.append_block_param(join, ty);
                            }
                            self.builder.ins().brif(flag, on_block, &[], off_block, &[]);
                            self.builder.seal_block(on_block);
                            self.builder.seal_block(off_block);
                            self.builder.switch_to_block(on_block);
                            stack.push(Todo::Else { step: id, off: off_block, join });
                            stack.push(Todo::Steps(on, 0));
                        }
                    }
                }
                Todo::Again { step, start } => {
                    if let Action::Loop { round, state } = plan.step(step).action {
                        self.around.mark(self.builder, Some(step.index() as u32));
                        self.end_round(step, round, state, start);
                    }
                }
                Todo::Else { step, off, join } => {
                    let Action::Where { on, off: off_steps } = plan.step(step).action else { continue };
                    self.jump_to_join(step, on, join);
                    self.builder.switch_to_block(off);
                    stack.push(Todo::Join { step, join });
                    stack.push(Todo::Steps(off_steps, 0));
                }
                Todo::Join { step, join } => {
                    let Action::Where { off, .. } = plan.step(step).action else { continue };
                    self.jump_to_join(step, off, join);
                    self.builder.seal_block(join);
                    self.builder.switch_to_block(join);
                    let out = plan.step(step).out;
                    let mut params = self.builder.block_params(join).to_vec().into_iter();
                    self.cells[out.index()] = Some(cells::gather(&plan.value(out).qtype, &mut params));
                }
                Todo::Known { step, branch } => {
                    if let Some(result) = plan.block(branch).result {
                        let cell = self.cell(result);
                        self.cells[plan.step(step).out.index()] = Some(cell);
                    }
                }
            }
        }
    }

    fn jump_to_join(&mut self, step: StepId, branch: BlockId, join: ir::Block) {
        let Some(result) = self.plan.block(branch).result else { return };
        self.around.mark(self.builder, Some(step.index() as u32));
        let cell = self.cell(result);
        let mut values = Vec::new();
        cells::spread(self.builder, &self.plan.value(self.plan.step(step).out).qtype, &cell, &mut values);
        let args: Vec<BlockArg> = values.into_iter().map(BlockArg::from).collect();
        self.builder.ins().jump(join, &args);
    }

    /// Records a straight line of steps and plays it.
    fn line(&mut self, steps: &[StepId]) {
        let plan = self.plan;
        self.tape.clear();
        let mut line = Line { inputs: Vec::new(), cells: FxHashMap::default() };
        for id in steps {
            let step = plan.step(*id);
            self.tape.set_site(id.index() as u32);
            let cell = match step.action {
                Action::Operator { op, overload, .. } => {
                    let def = self.plan.registry().get(op);
                    let overload = &def.overloads()[usize::from(overload)];
                    let args: smallvec::SmallVec<[ops::Cell; 4]> =
                        plan.args(step).iter().map(|arg| self.scalar(&mut line, *arg)).collect();
                    TapeCell::Scalar(ops::lower(self.tape, def.presence, overload, &args))
                }
                Action::MakeTuple => {
                    TapeCell::Tuple(plan.args(step).iter().map(|arg| self.import(&mut line, *arg)).collect())
                }
                Action::Field(index) => match self.import(&mut line, plan.args(step)[0]) {
                    TapeCell::Tuple(fields) => fields[index as usize].clone(),
                    scalar @ TapeCell::Scalar(_) => scalar,
                },
                Action::Has => {
                    let presence = self.scalar(&mut line, plan.args(step)[0]).presence;
                    TapeCell::Scalar(ops::Cell { presence, datum: ops::Datum::Unit })
                }
                Action::Where { .. } | Action::Loop { .. } => continue,
            };
            line.cells.insert(step.out, cell);
        }
        let kept: Vec<ValueId> =
            steps.iter().map(|id| plan.step(*id).out).filter(|out| self.escapes[out.index()]).collect();
        let (mut vals, mut masks) = (Vec::new(), Vec::new());
        for value in &kept {
            line.cells[value].roots(&mut vals, &mut masks);
        }
        let live = self.tape.live(vals, masks);
        let values = Player::play(self.builder, &mut self.around, self.tape, &live, &line.inputs);
        for value in kept {
            self.cells[value.index()] = Some(line.cells[&value].export(&values));
        }
    }

    fn scalar(&mut self, line: &mut Line, value: ValueId) -> ops::Cell {
        match self.import(line, value) {
            TapeCell::Scalar(cell) => cell,
            // Operators take scalars; their overloads were matched to types.
            TapeCell::Tuple(_) => ops::Cell::missing(Scalar::Unit, self.tape),
        }
    }

    /// A value on the tape of the line: made there, a literal, or an input of the tape.
    fn import(&mut self, line: &mut Line, value: ValueId) -> TapeCell {
        if let Some(cell) = line.cells.get(&value) {
            return cell.clone();
        }
        let plan = self.plan;
        let literal = self.literals[value.index()].map(|at| &plan.literals()[at as usize].1);
        let cell = match literal.and_then(|literal| self.constant(literal)) {
            Some(cell) => TapeCell::Scalar(cell),
            None => {
                let cell = self.cell(value);
                line.enter(self.tape, self.builder, &cell, &plan.value(value).qtype)
            }
        };
        line.cells.insert(value, cell.clone());
        cell
    }

    /// A literal as constants of the tape; none for texts and tuples.
    fn constant(&mut self, literal: &Value) -> Option<ops::Cell> {
        match literal {
            Value::Missing(scalar) => Some(ops::Cell::missing(*scalar, self.tape)),
            Value::Scalar(v) | Value::Present(v) if !v.scalar().is_string() => {
                Some(ops::Cell::present(ops::Datum::from_bits(v.scalar(), v.bits(), self.tape)))
            }
            _ => None,
        }
    }
}

/// The straight line being recorded: what came in from outside, and the cells of values so far.
struct Line {
    inputs: Vec<ir::Value>,
    cells: FxHashMap<ValueId, TapeCell>,
}

impl Line {
    fn number(&mut self, tape: &mut Tape, value: ir::Value, ty: MachineType) -> ops::Val {
        self.inputs.push(value);
        tape.input(ty)
    }

    fn flag(&mut self, tape: &mut Tape, value: ir::Value) -> ops::Mask {
        self.inputs.push(value);
        tape.input_mask()
    }

    /// Makes machine values inputs of the tape.
    fn enter(&mut self, tape: &mut Tape, builder: &FunctionBuilder<'_>, cell: &Cell, qtype: &QType) -> TapeCell {
        if let (Datum::Tuple(cells), QType::Tuple(types)) = (&cell.datum, qtype) {
            let fields = cells.iter().zip(types.iter()).map(|(cell, ty)| self.enter(tape, builder, cell, ty)).collect();
            return TapeCell::Tuple(fields);
        }
        let presence = match cell.presence {
            Presence::Present => ops::Presence::Present,
            Presence::Missing => ops::Presence::Missing,
            Presence::Flag(flag) => ops::Presence::When(self.flag(tape, flag)),
        };
        let datum = match &cell.datum {
            Datum::Flag(value) => ops::Datum::Flag(self.flag(tape, *value)),
            Datum::Num(value) => {
                let ty = match builder.func.dfg.value_type(*value) {
                    types::I32 => MachineType::I32,
                    types::F32 => MachineType::F32,
                    types::F64 => MachineType::F64,
                    _ => MachineType::I64,
                };
                ops::Datum::Num(self.number(tape, *value, ty))
            }
            Datum::Text(ptr, len) => ops::Datum::Text {
                ptr: self.number(tape, *ptr, MachineType::I64),
                len: self.number(tape, *len, MachineType::I64),
            },
            Datum::Nothing | Datum::Tuple(_) => ops::Datum::from_bits(qtype.scalar().unwrap_or(Scalar::Unit), 0, tape),
        };
        TapeCell::Scalar(ops::Cell { presence, datum })
    }
}

impl TapeCell {
    /// The instructions whose results the cell is made of.
    fn roots(&self, vals: &mut Vec<ops::Val>, masks: &mut Vec<ops::Mask>) {
        match self {
            TapeCell::Tuple(fields) => fields.iter().for_each(|field| field.roots(vals, masks)),
            TapeCell::Scalar(cell) => {
                match cell.presence {
                    ops::Presence::When(mask) => masks.push(mask),
                    ops::Presence::Missing => return,
                    ops::Presence::Present => {}
                }
                match cell.datum {
                    ops::Datum::Unit => {}
                    ops::Datum::Flag(mask) => masks.push(mask),
                    ops::Datum::Num(val) => vals.push(val),
                    ops::Datum::Text { ptr, len } => vals.extend([ptr, len]),
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
                    ops::Presence::Present => Presence::Present,
                    ops::Presence::Missing => Presence::Missing,
                    ops::Presence::When(mask) => values[mask.index()].map_or(Presence::Missing, Presence::Flag),
                };
                let datum = match (cell.datum, presence) {
                    (ops::Datum::Unit, _) | (_, Presence::Missing) => Datum::Nothing,
                    (ops::Datum::Flag(mask), _) => values[mask.index()].map_or(Datum::Nothing, Datum::Flag),
                    (ops::Datum::Num(val), _) => values[val.index()].map_or(Datum::Nothing, Datum::Num),
                    (ops::Datum::Text { ptr, len }, _) => match (values[ptr.index()], values[len.index()]) {
                        (Some(ptr), Some(len)) => Datum::Text(ptr, len),
                        _ => Datum::Nothing,
                    },
                };
                Cell { presence, datum }
            }
        }
    }
}
