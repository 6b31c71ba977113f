//! Explains a model: the result of each compilation stage as text.

use crate::options::StartedOptions;
use crate::{Error, Model, Options};
use crate::{Executor, Field};
use cembra_engine::{ArrayModel, ListRows, lane_listing, operator_name, plan, prepare, refusal};
use cembra_engine::{Executable, TensorPlan, TensorProgram};
use cembra_expr::Program;
use cembra_ops::Registry;
use cembra_plan::StepId;
use cembra_prepare::{Pass, Prepared, RegionModel};
use cembra_runtime::QType;
use cembra_value::Span;
use std::fmt::Write as _;
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

/// The kind of a model's values, which decides its stages.
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
    pub clif: String,
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
    /// The name of the operator that the code belongs to.
    pub operator: String,
    /// The operator's place in the text of the model; `None` if the model was not read from text.
    pub span: Option<Span>,
}

impl Model {
    /// Returns the result of the compilation stage `stage` as text. For a stage that [the model does not have](crate::explain::Summary::stages), the text
    /// names another stage.
    ///
    /// # Errors
    /// If there are problems with types or limits. For the last two stages, also if there is no machine code.
    pub fn explain(&self, options: &Options, stage: Stage) -> Result<String, Error> {
        let options = &self.started(options);
        self.step(|| self.explained(options, stage))
    }

    fn explained(&self, options: &StartedOptions, stage: Stage) -> Result<String, Error> {
        let program = self.selected(options)?;
        if stage != Stage::Expr && TensorProgram::is_of(&program, options) {
            return match stage {
                Stage::Tensors => Ok(listed_plan(&Executor::from(Executable::of(program, options)?))?.to_string()),
                _ => Ok(ModelKind::Tensors.other_stages().to_owned()),
            };
        }
        match stage {
            Stage::Expr => Ok(cembra_expr::print(&program, self.registry())),
            Stage::Passes => {
                let mut text = String::new();
                prepare_watched(&program, options, &mut |pass, changed| {
                    let _ = match changed {
                        None => writeln!(text, "# {}: {} (nothing changed)", pass.name, pass.summary),
                        Some(now) => writeln!(text, "# {}: {}\n{now}", pass.name, pass.summary),
                    };
                })?;
                Ok(text)
            }
            Stage::Prepared => Ok(prepare(&program, options, &mut |_, _| {})?.to_string()),
            Stage::Arrays | Stage::Tensors | Stage::Plan | Stage::Lanes | Stage::Clif | Stage::Asm => {
                let placed = prepare(&program, options, &mut |_, _| {})?.placed()?;
                let has_arrays = placed.model.has_arrays();
                let kind = if has_arrays { ModelKind::Arrays } else { ModelKind::Scalars };
                if !stage.applies(kind) {
                    return Ok(kind.other_stages().to_owned());
                }
                match stage {
                    Stage::Arrays => ArrayModel::of(program, placed, options)?.listing(),
                    Stage::Lanes if has_arrays => Ok(ListRows::of(program, placed, options)?.listing()),
                    Stage::Lanes => Ok(lane_listing(&plan(&placed, &program, options)?)),
                    Stage::Clif => Ok(machine_of(&placed, &program, options)?.clif),
                    Stage::Asm => Ok(machine_of(&placed, &program, options)?.vcode),
                    _ => Ok(plan(&placed, &program, options)?.to_string()),
                }
            }
        }
    }

    /// Returns the native code of the model.
    ///
    /// # Errors
    /// If there are problems with types or limits, if there is no machine code, or if the model has arrays: then each plan has code of its own.
    pub fn machine(&self, options: &Options) -> Result<Machine, Error> {
        let options = &self.started(options);
        self.step(|| {
            let program = self.selected(options)?;
            machine_of(&prepare(&program, options, &mut |_, _| {})?.placed()?, &program, options)
        })
    }
}

/// Returns the plan of a model with tensors in which each axis has the extent [`LISTED_EXTENT`], for listings.
pub(crate) fn listed_plan(executor: &Executor) -> Result<Arc<TensorPlan>, Error> {
    let extents = |field: &Field| match field.qtype {
        QType::Tensor(_, rank) => vec![LISTED_EXTENT; usize::from(rank)],
        _ => Vec::new(),
    };
    let extents: Vec<Vec<usize>> = executor.inputs().iter().map(extents).collect();
    executor.prepare_for(&extents.iter().map(Vec::as_slice).collect::<Vec<_>>())
}

/// Runs the passes of preparation on a program. After each pass, calls `observe` with the printed graph, or with `None` if the pass did not change
/// it.
pub(crate) fn prepare_watched(
    program: &Program,
    options: &StartedOptions,
    observe: &mut dyn FnMut(&Pass, Option<&str>),
) -> Result<Prepared, Error> {
    let mut last = String::new();
    prepare(program, options, &mut |pass, prepared| {
        let now = prepared.to_string();
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
        Origin { bytes, operator: operator_name(&program.graph, node).to_string(), span: program.graph.span(node) }
    };
    let origins = listings.steps.into_iter().map(origin).collect();
    Ok(Machine { clif: listings.clif, vcode: listings.vcode, code: listings.code, origins })
}
