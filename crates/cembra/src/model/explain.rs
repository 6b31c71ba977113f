//! Shows how a model is compiled: a listing of each stage, with the expression nodes that each line comes from, and the use of the frame (the memory
//! for the values of one evaluation).

use crate::options::StartedOptions;
use crate::{Error, Model, Options};
use crate::{Executor, Field};
use cembra_engine::{ArrayModel, ListRows, lane_listing, operator_name, plan, prepare, refusal};
use cembra_engine::{Executable, TensorPlan, TensorProgram};
use cembra_expr::{NodeId, Program};
use cembra_ops::Registry;
use cembra_plan::{SlotUse, StepId, ValueId};
use cembra_prepare::{Pass, Prepared, RegionModel};
use cembra_runtime::{LineKind, Listing, QType};
use cembra_value::Span;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

/// Prints a program as text of the language, with the operators of the standard registry. Parsing this text gives an equal program with the same
/// tests. Used files, functions and named values are replaced by their definitions. The text begins with `numbers f32` if the program converts
/// integers to f32, because they would become f64 otherwise. For a model with user-defined operators, use [`Model::explain`].
#[must_use]
pub fn print(program: &Program) -> String {
    cembra_expr::print(program, Registry::standard())
}

/// A stage of compiling a model, from its text to machine code, that [`Model::explain`] shows.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Stage {
    /// The stage shows the model's expressions, printed as text of the language.
    Expr,
    /// The stage shows the model's graph after each pass of preparation that changed it.
    Passes,
    /// The stage shows the model's graph after all passes of preparation.
    Prepared,
    /// The stage shows the array program and the plans for its elements, for a model with arrays.
    Arrays,
    /// The stage shows the steps over whole tensors, for a model with tensors, planned for axes of extent 64.
    Tensors,
    /// The stage shows the plan for one row: its literals, steps and slots.
    Plan,
    /// The stage shows the plan for many rows at a time: its columns, and the segments that are evaluated over them. For a model with arrays: the
    /// array program for the arrays of many rows.
    Lanes,
    /// The stage shows the function that is passed to the code generator, in the generator's own language (CLIF).
    Clif,
    /// The stage shows the code generator's own listing of the machine code.
    Asm,
}

/// The kind of a model's values, which decides the stages of its compilation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum ModelKind {
    /// All values of the model are scalars, which are in a frame.
    Scalars,
    /// The model has arrays, and perhaps scalars.
    Arrays,
    /// The model has tensors, and perhaps other values.
    Tensors,
}

impl ModelKind {
    /// Returns the text to show for a stage that a model of this kind does not have.
    const fn other_stages(self) -> &'static str {
        match self {
            ModelKind::Scalars => "The model has no arrays and no tensors: `plan` shows its steps.\n",
            ModelKind::Arrays => "The model has arrays: `arrays` shows its steps, and the plans for their elements.\n",
            ModelKind::Tensors => "The model has tensors: `tensors` shows its steps.\n",
        }
    }
}

/// The extent that each axis is assumed to have in the listing of a model with tensors.
pub const LISTED_EXTENT: usize = 64;

impl Stage {
    /// All stages of compilation, in their order.
    pub const ALL: [Stage; 9] = [
        Stage::Expr,
        Stage::Passes,
        Stage::Prepared,
        Stage::Arrays,
        Stage::Tensors,
        Stage::Plan,
        Stage::Lanes,
        Stage::Clif,
        Stage::Asm,
    ];

    /// The stage's name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.words().0
    }

    /// Returns a short description of the stage.
    #[must_use]
    pub const fn summary(self) -> &'static str {
        self.words().1
    }

    /// Returns the stage's name, and the description of what the stage shows.
    const fn words(self) -> (&'static str, &'static str) {
        match self {
            Stage::Expr => ("expr", "the model printed back"),
            Stage::Passes => ("passes", "the typed graph after each pass of preparation that changed it"),
            Stage::Prepared => ("prepared", "the graph after the last pass"),
            Stage::Arrays => ("arrays", "the steps on whole arrays, and the plans for their elements"),
            Stage::Tensors => ("tensors", "the steps over whole tensors, for axes of 64 indices"),
            Stage::Plan => ("plan", "the steps, the places of their values in the frame, and the literals"),
            Stage::Lanes => ("lanes", "the steps for many rows at a time"),
            Stage::Clif => ("clif", "the input of the code generator"),
            Stage::Asm => ("asm", "the machine code, with the operator of each part"),
        }
    }

    /// Returns true if a model of the kind `kind` has this stage.
    pub(crate) const fn applies(self, kind: ModelKind) -> bool {
        match self {
            Stage::Expr => true,
            Stage::Passes | Stage::Prepared | Stage::Lanes => !matches!(kind, ModelKind::Tensors),
            Stage::Arrays => matches!(kind, ModelKind::Arrays),
            Stage::Tensors => matches!(kind, ModelKind::Tensors),
            Stage::Plan | Stage::Clif | Stage::Asm => matches!(kind, ModelKind::Scalars),
        }
    }
}

/// The native code of a model, with its listings.
#[derive(Clone, Debug)]
pub struct Machine {
    /// The function that was passed to the code generator, as text in the generator's own language (CLIF).
    pub clif: Listing,
    /// The code generator's own listing of the machine code.
    pub vcode: String,
    /// The bytes of the machine code.
    pub code: Vec<u8>,
    /// The ranges of the machine code that belong to operators, in order and without overlaps. The code between these ranges loads inputs, stores
    /// outputs, and enters and leaves the function.
    pub origins: Vec<Origin>,
}

/// A range of machine code, and the operator that it belongs to. The code generator moves and merges instructions; code that serves several operators
/// is attributed to one of them.
#[derive(Clone, Debug)]
pub struct Origin {
    /// The range of bytes in the machine code.
    pub bytes: Range<usize>,
    /// The node of the model's expression that the code belongs to, as an index in the list of [`Model::origins`].
    pub node: u32,
    /// The name of the operator that the code belongs to.
    pub operator: String,
    /// The operator's place in the text of the model; `None` if the model was not read from text.
    pub span: Option<Span>,
}

/// A node of a model's expression: an input, a literal or the use of an operator. An expression that the text has several times is one node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ExpressionNode {
    /// The name of the node's operator, as the text has it.
    pub operator: String,
    /// The places of the node in the text, beginning with the first place; empty if the model was not read from text.
    pub spans: Vec<Span>,
}

/// The use of a frame (the memory for the values of one evaluation) over time: the slots for the values.
#[derive(Clone, PartialEq, Debug)]
pub struct FrameUse {
    /// The size of the frame, in bytes.
    pub bytes: usize,
    /// The number of positions in time: each step of an evaluation is a position, and so is the end of each conditional or loop.
    pub positions: usize,
    /// The slots, one per value. Slots may have the same bytes if their values are needed at different times.
    pub slots: Vec<SlotBox>,
}

/// A slot of a frame during the time that it holds one value.
#[derive(Clone, PartialEq, Debug)]
pub struct SlotBox {
    /// The offset of the slot in the frame, in bytes.
    pub offset: u32,
    /// The size of the slot, in bytes.
    pub size: u32,
    /// The type of the value.
    pub qtype: QType,
    /// The name of the input, the literal, or the operator that computes the value.
    pub name: String,
    /// The expression's node that computes the value, as an index in the list of [`Model::origins`]; `None` for inputs and literals.
    pub origin: Option<u32>,
    /// The position in time at which the value is written. Positions are counted from 0: each step of an evaluation is a position, and so is the end
    /// of each conditional or loop.
    pub first: usize,
    /// The position in time of the value's last use; equal to [`FrameUse::positions`] if the slot holds the value until the end of the evaluation.
    pub last: usize,
}

impl Model {
    /// Returns the result of the compilation stage `stage` as text. For a stage that [the model does not have](crate::explain::Summary::stages), the
    /// text names a stage that the model has.
    ///
    /// # Errors
    /// If there are problems with types or limits. For the stages `clif` and `asm`, also if the model cannot be compiled to machine code.
    pub fn explain(&self, options: &Options, stage: Stage) -> Result<String, Error> {
        Ok(self.listing(options, stage)?.to_string())
    }

    /// Returns the result of the compilation stage `stage` line by line. The origins of a line are the expression nodes that the line comes from, as
    /// indices in the list that [`Model::origins`] returns for the same options. The stages `expr` and `asm` have no origins;
    /// [`Model::machine`](crate::doors) returns the origins of machine code.
    ///
    /// ```
    /// use cembra::explain::Stage;
    /// use cembra::{Model, Options};
    ///
    /// let model = Model::parse("input x, y: f64; exp(x * y)")?;
    /// let (options, origins) = (Options::default(), model.origins(&Options::default())?);
    /// let plan = model.listing(&options, Stage::Plan)?;
    /// let product = plan.lines().iter().find(|line| line.text.contains("math.multiply")).unwrap();
    /// assert_eq!(origins[product.origins[0] as usize].operator, "math.multiply");
    /// assert_eq!(origins[product.origins[0] as usize].spans[0].text("input x, y: f64; exp(x * y)"), "x * y");
    /// # Ok::<(), cembra::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`Model::explain`].
    pub fn listing(&self, options: &Options, stage: Stage) -> Result<Listing, Error> {
        let options = &self.started(options);
        self.step(|| self.listed(options, stage))
    }

    fn listed(&self, options: &StartedOptions, stage: Stage) -> Result<Listing, Error> {
        let program = self.selected(options)?;
        let other_stages = |kind: ModelKind| Ok(Listing::of_text(LineKind::Note, kind.other_stages()));
        if stage != Stage::Expr && TensorProgram::is_of(&program, options) {
            if stage != Stage::Tensors {
                return other_stages(ModelKind::Tensors);
            }
            let nodes = nodes_by_span(&program);
            let plan = listed_plan(&Executor::from(Executable::of(program, options)?))?;
            return Ok(plan.listing(|span| nodes.get(&span).cloned().unwrap_or_default()));
        }
        match stage {
            Stage::Expr => Ok(Listing::of_text(LineKind::Code, &cembra_expr::print(&program, self.registry()))),
            Stage::Passes => {
                let mut listing = Listing::new();
                prepare_watched(&program, options, &mut |pass, changed| {
                    let Pass { name, summary, .. } = pass;
                    match changed {
                        None => {
                            listing.push(LineKind::Heading, [], format_args!("# {name}: {summary} (nothing changed)"));
                        }
                        Some(now) => {
                            listing.push(LineKind::Heading, [], format_args!("# {name}: {summary}"));
                            listing.append(now.clone(), "");
                            listing.push(LineKind::Note, [], "");
                        }
                    }
                })?;
                Ok(listing)
            }
            Stage::Prepared => Ok(prepare(&program, options, &mut |_, _| {})?.listing()),
            Stage::Arrays | Stage::Tensors | Stage::Plan | Stage::Lanes | Stage::Clif | Stage::Asm => {
                let placed = prepare(&program, options, &mut |_, _| {})?.placed()?;
                let has_arrays = placed.model.has_arrays();
                let kind = if has_arrays { ModelKind::Arrays } else { ModelKind::Scalars };
                if !stage.applies(kind) {
                    return other_stages(kind);
                }
                match stage {
                    Stage::Arrays => ArrayModel::of(program, placed, options)?.listing(),
                    Stage::Lanes if has_arrays => Ok(ListRows::of(program, placed, options)?.listing()),
                    Stage::Lanes => Ok(lane_listing(&plan(&placed, &program, options)?)),
                    Stage::Clif => Ok(machine_of(&placed, &program, options)?.clif),
                    Stage::Asm => Ok(Listing::of_text(LineKind::Code, &machine_of(&placed, &program, options)?.vcode)),
                    _ => Ok(plan(&placed, &program, options)?.listing()),
                }
            }
        }
    }

    /// Returns the nodes of the model's expression, which lines of a [`Listing`] name by index.
    ///
    /// # Errors
    /// If there are problems with types or limits.
    pub fn origins(&self, options: &Options) -> Result<Vec<ExpressionNode>, Error> {
        let options = &self.started(options);
        self.step(|| {
            let program = self.selected(options)?;
            let nodes = (0..program.graph.len()).map(|node| {
                let node = NodeId::from_index(node);
                let operator = operator_name(&program.graph, node).to_string();
                ExpressionNode { operator, spans: program.graph.spans(node).collect() }
            });
            Ok(nodes.collect())
        })
    }

    /// Returns the use of the frame (the memory for the values of one evaluation) over time, for a model of scalars.
    ///
    /// # Errors
    /// If there are problems with types or limits, or if the model has arrays or tensors.
    pub fn frame_use(&self, options: &Options) -> Result<FrameUse, Error> {
        let options = &self.started(options);
        self.step(|| {
            let program = self.selected(options)?;
            let plan = plan(&prepare(&program, options, &mut |_, _| {})?.placed()?, &program, options)?;
            let (positions, uses) = plan.slot_uses();
            let named: HashMap<ValueId, String> =
                (plan.inputs().iter().map(|input| (input.value, input.name.to_string())))
                    .chain(plan.literals().iter().map(|(value, literal)| (*value, literal.to_string())))
                    .collect();
            let slots = uses.into_iter().map(|SlotUse { value, step, first, last }| {
                let slot = plan.slot(value);
                let name = match step {
                    Some(step) => operator_name(&program.graph, plan.step(step).origin).to_string(),
                    None => named.get(&value).cloned().unwrap_or_default(),
                };
                let size = slot.qtype.layout().size;
                SlotBox {
                    offset: slot.offset,
                    size,
                    qtype: slot.qtype,
                    name,
                    origin: step.map(|step| plan.origin(step)),
                    first,
                    last,
                }
            });
            Ok(FrameUse { bytes: plan.template().frame_bytes(), positions, slots: slots.collect() })
        })
    }

    /// Returns the native code of the model.
    ///
    /// # Errors
    /// If there are problems with types or limits, if the model cannot be compiled to machine code, or if the model has arrays. A model with arrays
    /// has several plans, each with separate code.
    pub fn machine(&self, options: &Options) -> Result<Machine, Error> {
        let options = &self.started(options);
        self.step(|| {
            let program = self.selected(options)?;
            machine_of(&prepare(&program, options, &mut |_, _| {})?.placed()?, &program, options)
        })
    }
}

/// Returns the plan of a model with tensors, for listings. Each axis is assumed to have the extent [`LISTED_EXTENT`].
pub(crate) fn listed_plan(executor: &Executor) -> Result<Arc<TensorPlan>, Error> {
    let extents = |field: &Field| match field.qtype {
        QType::Tensor(_, rank) => vec![LISTED_EXTENT; usize::from(rank)],
        _ => Vec::new(),
    };
    let extents: Vec<Vec<usize>> = executor.inputs().iter().map(extents).collect();
    executor.prepare_for(&extents.iter().map(Vec::as_slice).collect::<Vec<_>>())
}

/// The nodes of a program's expression by their places in the text.
fn nodes_by_span(program: &Program) -> HashMap<Span, Vec<u32>> {
    let mut nodes: HashMap<Span, Vec<u32>> = HashMap::new();
    for node in 0..program.graph.len() {
        for span in program.graph.spans(NodeId::from_index(node)) {
            nodes.entry(span).or_default().push(node as u32);
        }
    }
    nodes
}

/// Runs the passes of preparation on a program. After each pass, calls `observe` with the listing of the graph, or with `None` if the pass did not
/// change the graph.
pub(crate) fn prepare_watched(
    program: &Program,
    options: &StartedOptions,
    observe: &mut dyn FnMut(&Pass, Option<&Listing>),
) -> Result<Prepared, Error> {
    let mut last = Listing::new();
    prepare(program, options, &mut |pass, prepared| {
        let now = prepared.listing();
        observe(pass, (now != last).then_some(&now));
        last = now;
    })
}

fn machine_of(placed: &RegionModel, program: &Program, options: &StartedOptions) -> Result<Machine, Error> {
    let plan = plan(placed, program, options)?;
    let listings = cembra_native::listings(&plan, &plan.frame_binding(), options.tier, options.budget())
        .map_err(|error| Error::from(refusal(&error)))?;
    let origin = |(bytes, step): (Range<usize>, StepId)| {
        let node = plan.step(step).origin;
        let operator = operator_name(&program.graph, node).to_string();
        Origin { bytes, node: plan.origin(step), operator, span: program.graph.span(node) }
    };
    let origins = listings.steps.into_iter().map(origin).collect();
    let clif = listings.clif.map_origins(|step| [plan.origin(StepId::from_index(step as usize))]);
    Ok(Machine { clif, vcode: listings.vcode, code: listings.code, origins })
}
