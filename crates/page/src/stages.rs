//! The stages of a model as the page shows them: each line with the expression nodes that it comes from. Also the use of the frame over time, and the
//! steps of the work on tiles.

use crate::machine::machine_listing;
use crate::text::{Range, Units};
use cembra::explain::{Listing, Stage};
use cembra::program::{AxisCut, Sources};
use cembra::tiles::{self, StepKind, TensorInformation, TileExecutor, Tiling1, World};
use cembra::{Error, Model, Options, QType};
use serde::Serialize;
use std::collections::BTreeMap;

/// The most steps of a plan whose machine code is shown: a page of more would take seconds to open.
const MOST_STEPS: usize = 2_000;

/// A node of the expression, with its places in the main text.
#[derive(Serialize, Debug)]
pub(crate) struct NodeView {
    id: usize,
    pub(crate) label: String,
    spans: Vec<[usize; 2]>,
}

/// The nodes of the model's expression. A node that the main text does not have is listed too, without places.
pub(crate) fn nodes(model: &Model, options: &Options, units: &Units) -> Result<Vec<NodeView>, Error> {
    let nodes = model.origins(options)?.into_iter().enumerate().map(|(id, node)| {
        let ranges = node.spans.iter().filter_map(|span| units.range(*span));
        NodeView { id, label: node.operator, spans: ranges.map(|Range { from, to }| [from, to]).collect() }
    });
    Ok(nodes.collect())
}

/// A line of a stage.
#[derive(Serialize, Debug)]
pub(crate) struct LineView {
    #[serde(rename = "t")]
    text: String,
    #[serde(rename = "k")]
    kind: &'static str,
    #[serde(rename = "n")]
    nodes: Vec<u32>,
}

/// A stage of compilation, with its lines, or with a note if it is not shown.
#[derive(Serialize, Debug)]
pub(crate) struct StageView {
    pub(crate) name: String,
    summary: String,
    group: &'static str,
    linked: bool,
    note: Option<String>,
    pub(crate) lines: Vec<LineView>,
}

impl StageView {
    fn of(name: String, summary: String, group: &'static str, listing: &Listing) -> StageView {
        let lines: Vec<LineView> = listing
            .lines()
            .iter()
            .map(|line| LineView { text: line.text.clone(), kind: line.kind.name(), nodes: line.origins.clone() })
            .collect();
        let linked = lines.iter().any(|line| !line.nodes.is_empty());
        StageView { name, summary, group, linked, note: None, lines }
    }

    fn noted(stage: Stage, note: String) -> StageView {
        let (name, summary) = (stage.name().to_owned(), stage.summary().to_owned());
        StageView { name, summary, group: stage.name(), linked: false, note: Some(note), lines: Vec::new() }
    }
}

/// The stages of a model, from its passes to its machine code, without the source. `frame` is the use of the model's frame over time; `None` if it
/// has no frame.
pub(crate) fn stages(
    model: &Model,
    options: &Options,
    sources: &Sources,
    frame: Option<&FrameView>,
) -> Result<Vec<StageView>, Error> {
    let listed = |stage: Stage| match stage {
        Stage::Asm => machine_listing(model, options, sources),
        stage => model.listing(options, stage),
    };
    // A machine without native code has no listing of it.
    let shown = |stage: Stage| match listed(stage) {
        Ok(listing) => whole(stage, &listing),
        Err(error) => StageView::noted(stage, error.message().to_owned()),
    };
    if model.has_tensors(options) {
        return Ok(vec![shown(Stage::Tensors)]);
    }
    let mut stages = passes(&model.listing(options, Stage::Passes)?);
    stages.push(whole(Stage::Prepared, &model.listing(options, Stage::Prepared)?));
    match frame {
        None => stages.extend([Stage::Arrays, Stage::Lanes].map(shown)),
        Some(frame) => {
            stages.extend([Stage::Plan, Stage::Lanes].map(shown));
            stages.extend([Stage::Clif, Stage::Asm].map(|stage| {
                if frame.has_shown_code() {
                    return shown(stage);
                }
                let (steps, name) = (frame.steps, stage.name());
                let note = format!(
                    "The plan has {steps} steps. Machine code is shown for at most {MOST_STEPS}; `cembra explain --stage {name}` prints it."
                );
                StageView::noted(stage, note)
            }));
        }
    }
    Ok(stages)
}

fn whole(stage: Stage, listing: &Listing) -> StageView {
    StageView::of(stage.name().to_owned(), stage.summary().to_owned(), stage.name(), listing)
}

/// The passes of preparation that changed the graph, each as a stage. In the listing a heading begins each pass.
fn passes(listing: &Listing) -> Vec<StageView> {
    let mut shown = Vec::new();
    let mut lines = listing.lines().iter().peekable();
    while let Some(heading) = lines.next() {
        let Some((name, summary)) = heading.text.strip_prefix("# ").and_then(|text| text.split_once(": ")) else {
            continue;
        };
        let mut own = Listing::new();
        while let Some(line) = lines.next_if(|line| !line.text.starts_with("# ")) {
            if !line.text.is_empty() {
                own.push(line.kind, line.origins.iter().copied(), &line.text);
            }
        }
        if !own.lines().is_empty() {
            shown.push(StageView::of(format!("passes: {name}"), summary.to_owned(), Stage::Passes.name(), &own));
        }
    }
    shown
}

/// A slot of the frame during the time that it holds one value.
#[derive(Serialize, Debug)]
struct SlotView {
    offset: u32,
    bytes: u32,
    #[serde(rename = "type")]
    qtype: String,
    what: String,
    from: usize,
    to: usize,
    #[serde(rename = "n")]
    nodes: Vec<u32>,
}

/// The use of a frame over time: the values that its slots hold.
#[derive(Serialize, Debug)]
pub(crate) struct FrameView {
    bytes: usize,
    steps: usize,
    slots: Vec<SlotView>,
}

impl FrameView {
    /// Returns true if the plan is so short that its machine code is shown.
    pub(crate) const fn has_shown_code(&self) -> bool {
        self.steps <= MOST_STEPS
    }
}

/// The use of the model's frame over time; `None` for a model without a frame, such as a model with arrays.
pub(crate) fn frame(model: &Model, options: &Options) -> Option<FrameView> {
    let frame = model.frame_use(options).ok()?;
    let slots = frame.slots.into_iter().map(|slot| SlotView {
        offset: slot.offset,
        bytes: slot.size,
        qtype: slot.qtype.to_string(),
        what: slot.name,
        from: slot.first,
        to: slot.last,
        nodes: slot.origin.into_iter().collect(),
    });
    Some(FrameView { bytes: frame.bytes, steps: frame.positions, slots: slots.collect() })
}

/// A step of the work in tiles, as cells of a table.
#[derive(Serialize, Debug)]
struct WorkRow {
    cells: Vec<String>,
    #[serde(rename = "n")]
    nodes: Vec<usize>,
}

/// The steps of a model that cuts tensors into tiles, as a table.
#[derive(Serialize, Debug)]
pub(crate) struct WorkView {
    title: &'static str,
    columns: [&'static str; 7],
    rows: Vec<WorkRow>,
    note: String,
}

/// The number of tiles along an axis whose extent nothing gives.
const TILES: usize = 8;

/// The steps of a model that cuts tensors into tiles. `None` for other models, and if the steps cannot be planned without data. An axis has the
/// extent that the model gives it; if the model gives none, eight tiles are assumed.
pub(crate) fn work(model: &Model, options: &Options, units: &Units, nodes: &[NodeView]) -> Option<WorkView> {
    let executor = model.compile(options).ok().filter(cembra::Executor::is_tiled)?;
    let mut extents: BTreeMap<&str, usize> = BTreeMap::new();
    for (label, cut) in executor.cuts() {
        let extent = match cut {
            AxisCut::Blocks(size) => usize::try_from(*size).ok()?.checked_mul(TILES)?,
            AxisCut::Boundaries(boundaries) => Tiling1::new(boundaries.iter().copied()).ok()?.extent(),
        };
        extents.insert(label, extent);
    }
    let mut known: Vec<(&str, Vec<usize>)> = Vec::new();
    for field in executor.inputs().iter().filter(|field| matches!(field.qtype, QType::Tensor(_, 1..))) {
        let labels = field.labels.as_deref()?.split(',').map(str::trim);
        known.push((&field.name, labels.map(|label| extents.get(label).copied().unwrap_or(TILES)).collect()));
    }
    let known = known.iter().map(|(name, extents)| (*name, TensorInformation::Extents(extents)));
    let session = executor.tiled(&World::alone(), tiles::Options::default()).ok()?;
    let steps = session.plan(known).ok()?;
    let rows = steps.iter().map(|step| {
        let (name, products, operations) = match step.work {
            StepKind::Product { products, operations, .. } => {
                ("product", products.to_string(), format!("{operations:.3e}"))
            }
            StepKind::Elements => ("elements", String::new(), String::new()),
            StepKind::Reduction => ("reduction", String::new(), String::new()),
            _ => ("view", String::new(), String::new()),
        };
        let range = step.span.and_then(|span| units.range(span));
        let is_of_step = |node: &&NodeView| range.is_some_and(|range| node.spans.contains(&[range.from, range.to]));
        let cells = [
            name.to_owned(),
            step.tiles.to_string(),
            step.of.to_string(),
            products,
            operations,
            step.bytes.to_string(),
            step.tasks.to_string(),
        ];
        WorkRow { cells: cells.to_vec(), nodes: nodes.iter().filter(is_of_step).map(|node| node.id).collect() }
    });
    let assumed: Vec<String> = extents.iter().map(|(label, extent)| format!("{label} = {extent}")).collect();
    Some(WorkView {
        title: "Tiles",
        columns: ["step", "tiles", "tiles if all are present", "products", "operations", "bytes", "tasks"],
        rows: rows.collect(),
        note: format!("Planned without data, for axes of {}.", assumed.join(", ")),
    })
}
