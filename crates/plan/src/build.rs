//! Builds a plan from a prepared model. Nodes of the expression graph become steps in depth-first order, so that values
//! have short lifetimes and need few slots. A step belongs to the block for its region: the top, a branch of a
//! conditional, or a round of a loop.

use crate::error::PlanError;
use crate::{Action, Block, BlockId, Input, Output, Plan, PlanValue, Step, StepId, Template, ValueId, slots};
use cembra_ops::{CompiledLiteral, OpId, Registry, Structure, id};
use cembra_prepare::{Id, Kind, LoopId, RegionId, RegionModel, Regions, TypedModel};
use cembra_runtime::{FrameLayout, QType};
use cembra_value::{Budget, Value};
use rustc_hash::FxHashMap;

/// Makes the plan for a prepared model.
///
/// # Errors
/// If a limit is exceeded, if the model has arrays, if an operator cannot be compiled from its literal (such as a
/// regular expression), or if a user's rewrite made a model that cannot run.
pub fn build(placed: &RegionModel, budget: &Budget) -> Result<Plan, PlanError> {
    budget.check_time()?;
    let RegionModel { model, regions } = placed;
    if model.has_arrays() {
        return Err(PlanError::Arrays);
    }
    let nodes = model.graph.len();
    let mut builder = Builder {
        model,
        regions,
        budget,
        registry: model.registry,
        plan: Plan {
            registry: model.registry,
            values: Vec::with_capacity(nodes),
            steps: Vec::with_capacity(nodes),
            args: Vec::with_capacity(nodes * 2),
            blocks: vec![Block::default()],
            inputs: Vec::new(),
            literals: Vec::new(),
            outputs: Vec::new(),
            states: FxHashMap::default(),
            layout: FrameLayout::default(),
            template: Template::default(),
            reused_slots: 0,
        },
        values: vec![None; nodes],
        blocks: vec![None; regions.tree.count()],
        loops: FxHashMap::default(),
    };
    builder.blocks[RegionId::TOP.index()] = Some(BlockId::TOP);
    builder.add_inputs();
    for (_, output) in &model.outputs {
        builder.add(*output)?;
    }
    for (name, output) in &model.outputs {
        let value = builder.value(*output);
        builder.plan.outputs.push(Output { name: name.clone(), value });
    }
    let mut plan = builder.plan;
    slots::assign(&mut plan, budget)?;
    plan.template = Template::of(&plan);
    if model.rewritten {
        crate::verify(&plan).map_err(PlanError::Unsound)?;
    }
    debug_assert_eq!(crate::verify(&plan), Ok(()));
    Ok(plan)
}

struct Builder<'p> {
    model: &'p TypedModel,
    regions: &'p Regions,
    budget: &'p Budget,
    registry: &'p Registry,
    plan: Plan,
    values: Vec<Option<ValueId>>,
    /// The block of each region; `None` until it is needed.
    blocks: Vec<Option<BlockId>>,
    /// For each loop found so far, the value of the loop's result and the value of its state.
    loops: FxHashMap<LoopId, [ValueId; 2]>,
}

impl<'p> Builder<'p> {
    fn new_value(&mut self, node: Id) -> ValueId {
        let id = ValueId::from_index(self.plan.values.len());
        // The type is cloned in place: cloning it on the stack, in parts, and then copying it would stall the
        // processor.
        self.plan.values.push(PlanValue { qtype: QType::Nothing, slot: 0, owner: None });
        self.plan.values[id.index()].qtype = self.model.graph.qtype(node).clone();
        self.values[node.index()] = Some(id);
        id
    }

    /// The value of a node that was already added to the plan.
    fn value(&self, node: Id) -> ValueId {
        self.values[node.index()].unwrap_or(ValueId::from_index(0))
    }

    /// Adds to the plan the inputs that outputs need, in the order of the program's leaves. They are the first values
    /// of the plan.
    fn add_inputs(&mut self) {
        let graph = &self.model.graph;
        let needed = self.model.needed();
        let mut leaves: Vec<(u32, Id)> = graph
            .ids()
            .filter(|id| needed[id.index()])
            .filter_map(|id| match graph.kind(id) {
                Kind::Leaf(leaf) => Some((leaf, id)),
                _ => None,
            })
            .collect();
        leaves.sort_unstable();
        for (leaf, id) in leaves {
            let value = self.new_value(id);
            self.plan.inputs.push(Input { name: graph.leaf_name(leaf).clone(), leaf, value });
        }
    }

    /// Adds to the plan the operands of a node and then the node itself, without recursion.
    fn add(&mut self, root: Id) -> Result<(), PlanError> {
        let mut stack: Vec<(Id, u32)> = vec![(root, 0)];
        while let Some((node, next)) = stack.last_mut() {
            let node = *node;
            if self.values[node.index()].is_some() {
                stack.pop();
                continue;
            }
            match self.operands(node).get(*next as usize) {
                Some(operand) => {
                    *next += 1;
                    if self.values[operand.index()].is_none() {
                        stack.push((*operand, 0));
                    }
                }
                None => {
                    stack.pop();
                    self.finish(node)?;
                }
            }
        }
        Ok(())
    }

    fn finish(&mut self, node: Id) -> Result<(), PlanError> {
        self.budget.check_visit(self.plan.steps.len())?;
        let graph = &self.model.graph;
        let action = match graph.kind(node) {
            Kind::Leaf(_) => return Ok(()),
            Kind::State(id) => {
                let [_, state] = self.loop_values(id, graph.qtype(node));
                self.values[node.index()] = Some(state);
                return Ok(());
            }
            Kind::CompileTime(_) => {
                return Err(PlanError::Unsound("a function is left over from type inference".to_owned()));
            }
            Kind::Literal(_) => {
                let value = graph.value(node).cloned().unwrap_or(Value::Nothing);
                // The slot is as large as the type of the node.
                if !value.is_of(graph.qtype(node)) {
                    return Err(PlanError::Unsound("a literal has another type than its node".to_owned()));
                }
                let id = self.new_value(node);
                self.plan.literals.push((id, value));
                return Ok(());
            }
            Kind::Operator { op, overload, lifted } => match (self.registry.structure(op), overload) {
                (Some(Structure::MakeTuple | Structure::MakeNamed), _) => Action::MakeTuple,
                (Some(Structure::GetNth), _) => Action::Field(self.field_index(node)),
                (Some(Structure::Has), _) if self.views_presence(node) => Action::Has,
                (_, Some(overload)) => Action::Operator { op, overload, lifted },
                (_, None) => return Err(self.unsound(op)),
            },
            Kind::Where { overload } if !self.regions.branches.contains_key(&node) => match overload {
                Some(overload) => Action::Operator { op: id::WHERE, overload, lifted: false },
                None => return Err(self.unsound(id::WHERE)),
            },
            Kind::Where { .. } => {
                let [on, off] = self.regions.branches.get(&node).copied().unwrap_or([RegionId::TOP; 2]);
                let operands = graph.operands(node);
                let (on_value, off_value) = (self.value(operands[1]), self.value(operands[2]));
                let (on, off) = (self.block(on), self.block(off));
                self.plan.blocks[on.index()].result = Some(on_value);
                self.plan.blocks[off.index()].result = Some(off_value);
                Action::Where { on, off }
            }
            Kind::Loop(id) => {
                let [init, round] = [0, 1].map(|at| graph.operands(node)[at]);
                let region = self.regions.loops.get(&node).copied().unwrap_or(RegionId::TOP);
                let (result, block) = (self.value(round), self.block(region));
                self.plan.blocks[block.index()].result = Some(result);
                let [_, state] = self.loop_values(id, graph.qtype(init));
                Action::Loop { round: block, state, is_counted: !id.is_over_elements() }
            }
        };
        let all = graph.operands(node);
        let state = self.state(node, &action)?;
        let args = match action {
            // The branches of a conditional and the round of a loop are results of their blocks.
            Action::Where { .. } | Action::Loop { .. } => &all[..1],
            // The literal that an operator is compiled from is not an argument of the step.
            _ if state.is_some() => &all[1..],
            _ => self.operands(node),
        };
        let args_start = self.plan.args.len() as u32;
        for arg in args {
            let value = self.value(*arg);
            self.plan.args.push(value);
        }
        let out = match graph.kind(node) {
            Kind::Loop(id) => {
                let [out, _] = self.loop_values(id, graph.qtype(all[0]));
                self.values[node.index()] = Some(out);
                out
            }
            _ => self.new_value(node),
        };
        if matches!(action, Action::Has | Action::Field(_)) {
            self.plan.values[out.index()].owner = Some(self.value(all[0]));
        }
        let step = StepId::from_index(self.plan.steps.len());
        if let Some(state) = state {
            self.plan.states.insert(step, state);
        }
        let args_len = args.len() as u32;
        self.plan.steps.push(Step { action, args_start, args_len, out, origin: graph.origin(node) });
        let block = self.block(self.regions.of_nodes[node.index()]);
        self.plan.blocks[block.index()].steps.push(step);
        Ok(())
    }

    /// The result of a loop, and the state inside of it, which is a view of the result.
    fn loop_values(&mut self, id: LoopId, state: &QType) -> [ValueId; 2] {
        let values = &mut self.plan.values;
        *self.loops.entry(id).or_insert_with(|| {
            let out = ValueId::from_index(values.len());
            let ends = QType::tuple([state.clone(), QType::MASK]);
            values.push(PlanValue { qtype: ends, slot: 0, owner: None });
            values.push(PlanValue { qtype: state.clone(), slot: 0, owner: Some(out) });
            [out, ValueId::from_index(values.len() - 1)]
        })
    }

    /// The operands of a node that are values at run time: all but the index in an access to a field, and the names in
    /// a named tuple.
    fn operands(&self, node: Id) -> &'p [Id] {
        let graph = &self.model.graph;
        let all = graph.operands(node);
        match graph.op(node).and_then(|op| self.registry.structure(op)) {
            Some(Structure::GetNth) => &all[..1],
            Some(Structure::MakeNamed) => all.get(1..).unwrap_or(all),
            _ => all,
        }
    }

    /// The state that an operator compiles from its literal operand, such as a regular expression; `None` if the
    /// operator compiles nothing.
    fn state(&self, node: Id, action: &Action) -> Result<Option<CompiledLiteral>, PlanError> {
        let Action::Operator { op, overload, .. } = *action else { return Ok(None) };
        let def = self.registry.get(op);
        let Some(compile) = def.overloads()[usize::from(overload)].compile else { return Ok(None) };
        let graph = &self.model.graph;
        let literal = graph.operands(node).first().and_then(|operand| graph.value(*operand));
        // Typing requires a plain literal; a rewrite of the user may have replaced it.
        let Some(literal) = literal.filter(|literal| compile.takes(literal)) else {
            return Err(PlanError::Unsound(format!(
                "the first operand of {} must be a literal, because the operator is compiled from it",
                def.name
            )));
        };
        let failed = |reason| PlanError::Compile { operator: def.name, reason, origin: graph.origin(node) };
        compile.compile(literal).map(Some).map_err(failed)
    }

    /// Returns the block of a region, and adds the block if the region has none yet.
    fn block(&mut self, region: RegionId) -> BlockId {
        let blocks = &mut self.plan.blocks;
        *self.blocks[region.index()].get_or_insert_with(|| {
            blocks.push(Block::default());
            BlockId::from_index(blocks.len() - 1)
        })
    }

    /// The error for an operator without a kernel, which only a user's rewrite can cause.
    fn unsound(&self, op: OpId) -> PlanError {
        PlanError::Unsound(format!("{} has no kernel", self.registry.get(op).name))
    }

    fn views_presence(&self, node: Id) -> bool {
        let operand = self.model.graph.operands(node)[0];
        matches!(self.model.graph.qtype(operand), QType::Optional(_))
    }

    fn field_index(&self, node: Id) -> u32 {
        let index = self.model.graph.operands(node).get(1).and_then(|index| self.model.graph.value(*index));
        index.and_then(Value::as_scalar).map_or(0, |index| index.bits() as u32)
    }
}
