//! The data of a page: all that it shows of one model, as one JSON object. A text with errors has problems and no stages.

use crate::evaluation::{self, BranchView, Evaluation, PlotView, RowsView, SignatureView, TestView, TimeView};
use crate::stages::{self, FrameView, NodeView, StageView, WorkView};
use crate::text::{self, CheckedText, Grammar, Problem, Range, Units};
use cembra::program::Sources;
use cembra::{Error, Limits, Model, Options, RunOptions, Signature};
use serde::Serialize;

/// The text that an editor shows for a place of the model.
#[derive(Serialize, Debug)]
pub(crate) struct HoverView {
    #[serde(flatten)]
    pub(crate) range: Range,
    pub(crate) text: String,
}

/// A page's server, with its access token.
#[derive(Serialize, Debug)]
pub(crate) struct ServerView<'t> {
    pub(crate) token: &'t str,
}

/// The data that the page shows of a model.
#[derive(Serialize, Debug, Default)]
pub(crate) struct PageData<'t> {
    version: &'static str,
    name: String,
    text: String,
    pub(crate) server: Option<ServerView<'t>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) grammar: Option<Grammar>,
    pub(crate) diagnostics: Vec<Problem>,
    pub(crate) hovers: Vec<HoverView>,
    nodes: Vec<NodeView>,
    pub(crate) stages: Vec<StageView>,
    frame: Option<FrameView>,
    work: Option<WorkView>,
    signature: Option<SignatureView>,
    rows: Option<RowsView>,
    pub(crate) plots: Vec<PlotView>,
    tests: Vec<TestView>,
    coverage: Vec<BranchView>,
    times: Vec<TimeView>,
}

impl PageData<'_> {
    /// Reads the main text of `sources`, compiles it, and evaluates its tests and sample rows. `with_plots` adds plots along the first sample row.
    pub(crate) fn of(
        sources: &Sources,
        options: &Options,
        limits: &Limits,
        run: &RunOptions,
        with_plots: bool,
    ) -> Self {
        let (text, units) = (sources.main().to_owned(), Units::of(sources.main()));
        let name = sources.names().next().unwrap_or_default().to_owned();
        let mut data = PageData { version: env!("CARGO_PKG_VERSION"), name, text, ..PageData::default() };
        let CheckedText { model, mut problems } = text::check(sources, options, limits);
        if let Some((model, signature)) = model
            && let Err(error) = data.add_model(&model, &signature, sources, &units, options, run, with_plots)
        {
            problems.extend(error.diagnostics());
        }
        data.diagnostics = problems.iter().map(|problem| Problem::of(problem, sources, &units)).collect();
        data
    }

    #[expect(clippy::too_many_arguments, reason = "these are the parts of a text that was read")]
    fn add_model(
        &mut self,
        model: &Model,
        signature: &Signature,
        sources: &Sources,
        units: &Units,
        options: &Options,
        run: &RunOptions,
        with_plots: bool,
    ) -> Result<(), Error> {
        self.signature = Some(SignatureView::of(&signature.inputs, &signature.outputs));
        self.nodes = stages::nodes(model, options, units)?;
        self.frame = stages::frame(model, options);
        self.stages = stages::stages(model, options, sources, self.frame.as_ref())?;
        if model.has_tensors(options) {
            self.work = stages::work(model, options, units, &self.nodes);
            return Ok(());
        }
        let mut evaluation = Evaluation::of(model, options, run)?;
        let rows = evaluation.sample(model, sources);
        if let Some(first) = rows.first().filter(|_| with_plots) {
            self.plots = evaluation.plots(first);
        }
        if self.frame.as_ref().is_some_and(FrameView::has_shown_code) {
            self.times = evaluation.times(model, options, &rows).unwrap_or_default();
        }
        self.rows = Some(evaluation.rows(rows));
        (self.tests, self.coverage) = evaluation::tests(model, options, run, units);
        Ok(())
    }
}
