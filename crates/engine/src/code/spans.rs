//! Spans of `tracing` around the stages of compiling a model: `prepare`, `plan` and `compile`, each with the model's name, how
//! large is what it is given (`nodes` or `steps`) and how large what it makes. Without the feature `tracing` they are nothing.

/// A stage that runs until it is dropped.
#[must_use]
pub(crate) struct StageSpan {
    #[cfg(feature = "tracing")]
    span: tracing::span::EnteredSpan,
}

/// Opens a span; without the feature it looks at what it is given and does nothing.
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
    /// Preparation of a program of so many nodes.
    pub(crate) fn prepare(model: &str, nodes: usize) -> StageSpan {
        stage!("prepare", model, nodes = nodes, prepared_nodes)
    }

    /// Making a plan of so many prepared nodes.
    pub(crate) fn plan(model: &str, nodes: usize) -> StageSpan {
        stage!("plan", model, nodes = nodes, steps)
    }

    /// Compiling a plan of so many steps.
    pub(crate) fn compile(model: &str, steps: usize, tier: &str) -> StageSpan {
        stage!("compile", model, steps = steps, code_bytes, tier = tier)
    }

    /// Says how much the stage made: nodes, steps or bytes.
    pub(crate) fn made(&self, field: &str, size: usize) {
        #[cfg(feature = "tracing")]
        self.span.record(field, size);
        #[cfg(not(feature = "tracing"))]
        let _ = (field, size);
    }
}
