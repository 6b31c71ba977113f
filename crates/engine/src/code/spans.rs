//! Spans of `tracing` around the stages of compiling a model: `prepare`, `plan` and `compile`. Each span has the model's name, the size of the
//! stage's input (`nodes` or `steps`), and the size of the stage's result. Without the feature `tracing` the spans do nothing.

/// The `tracing` span of a compilation stage. The span ends when the `StageSpan` is dropped.
#[must_use]
pub(crate) struct StageSpan {
    #[cfg(feature = "tracing")]
    span: tracing::span::EnteredSpan,
}

/// Opens a span. Without the feature `tracing` the macro evaluates its arguments and does nothing.
macro_rules! stage {
    ($name:literal, $model:expr, $given:ident = $size:expr, $made:ident $(, $other:ident = $value:expr)*) => {{
        #[cfg(feature = "tracing")]
        {
            let made = tracing::field::Empty;
            let span =
                tracing::debug_span!(target: "cembra", $name, model = $model, $given = $size $(, $other = $value)*, $made = made);
            StageSpan { span: span.entered() }
        }
        #[cfg(not(feature = "tracing"))]
        {
            let _ = ($model, $size $(, $value)*);
            StageSpan {}
        }
    }};
}

impl StageSpan {
    /// Opens the span of preparing a program with `nodes` nodes.
    pub(crate) fn prepare(model: &str, nodes: usize) -> StageSpan {
        stage!("prepare", model, nodes = nodes, prepared_nodes)
    }

    /// Opens the span of planning `nodes` prepared nodes.
    pub(crate) fn plan(model: &str, nodes: usize) -> StageSpan {
        stage!("plan", model, nodes = nodes, steps)
    }

    /// Opens the span of compiling a plan with `steps` steps.
    pub(crate) fn compile(model: &str, steps: usize, tier: &str) -> StageSpan {
        stage!("compile", model, steps = steps, code_bytes, tier = tier)
    }

    /// Records the size of the stage's result (nodes, steps or bytes) in the field `field`.
    pub(crate) fn made(&self, field: &str, size: usize) {
        #[cfg(feature = "tracing")]
        self.span.record(field, size);
        #[cfg(not(feature = "tracing"))]
        let _ = (field, size);
    }
}
