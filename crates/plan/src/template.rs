//! Templates: a template has the initial bytes of every frame (the memory of one evaluation) of a plan. It stays valid
//! without the plan, so executors can drop the plan.

use crate::Plan;
use cembra_runtime::{Frame, QType, Scalar};
use cembra_value::Value;

/// The content of a fresh frame (the memory of one evaluation): literals in their slots, and zeros elsewhere. The
/// template also owns the texts to which literals in the frame point.
#[derive(Clone, Debug, Default)]
pub struct Template {
    /// The content of a fresh frame. It is stored as a frame and not as bytes, because bytes would lose the provenance
    /// of pointers to texts.
    frame: Frame,
    size: usize,
    texts: Box<[Value]>,
}

impl Template {
    /// Makes the template for a plan whose slots are assigned.
    pub(crate) fn of(plan: &Plan) -> Template {
        let size = plan.layout.size() as usize;
        let mut frame = Frame::zeroed(size);
        for (id, value) in &plan.literals {
            // SAFETY: FRAME-SLOT: the slot is this literal's in the plan's layout; the template keeps its texts alive.
            unsafe { value.write_to(frame.ptr(), plan.value(*id).slot) };
        }
        let viewed = |(id, _): &&_| holds_texts(&plan.value(*id).qtype);
        // A clone of a value shares its texts, so they stay alive without the plan.
        let texts = plan.literals.iter().filter(viewed).map(|(_, value)| value.clone()).collect();
        Template { frame, size, texts }
    }

    /// Makes a fresh frame from the template. The frame's views of texts are valid as long as this template, or a clone
    /// of it, lives.
    #[must_use]
    pub fn frame(&self) -> Frame {
        self.frame.clone()
    }

    /// The size in bytes of a frame that is made from this template.
    #[must_use]
    pub fn frame_bytes(&self) -> usize {
        self.size
    }

    /// The bytes of heap memory that the template owns, without texts.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.frame.size() + size_of_val(&*self.texts)
    }
}

/// Returns true if a value of the type `qtype` is a string or a tuple that contains a string.
fn holds_texts(qtype: &QType) -> bool {
    // Types nest only as deep as the text that spelled them.
    match qtype {
        QType::Tuple(fields) => fields.iter().any(holds_texts),
        other => other.scalar().is_some_and(Scalar::is_string),
    }
}
