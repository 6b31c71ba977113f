//! Templates: what a fresh frame holds. They stand alone, so that executors need not keep the plan that one was made for.

use crate::Plan;
use cembra_runtime::{Frame, QType, Scalar};
use cembra_value::Value;

/// A fresh frame, literals in their slots and zeros elsewhere, with the texts that are viewed there.
#[derive(Clone, Debug, Default)]
pub struct Template {
    /// Not its bytes: views of texts are pointers, which a number cannot stand for.
    frame: Frame,
    size: usize,
    texts: Box<[Value]>,
}

impl Template {
    /// The template of a plan whose slots are assigned.
    pub(crate) fn of(plan: &Plan) -> Template {
        let size = plan.layout.size() as usize;
        let mut frame = Frame::zeroed(size);
        for (id, value) in &plan.literals {
            // SAFETY: FRAME-SLOT: the slot is this literal's in the plan's layout; the template keeps its texts alive.
            unsafe { value.write_to(frame.ptr(), plan.value(*id).slot) };
        }
        let viewed = |(id, _): &&_| holds_texts(&plan.value(*id).qtype);
        // A clone of a value shares its texts: what is viewed is kept, whatever becomes of the plan.
        let texts = plan.literals.iter().filter(viewed).map(|(_, value)| value.clone()).collect();
        Template { frame, size, texts }
    }

    /// A fresh frame. Its views of texts are good as long as this template, or a clone, lives.
    #[must_use]
    pub fn frame(&self) -> Frame {
        self.frame.clone()
    }

    /// The bytes of a frame.
    #[must_use]
    pub fn frame_bytes(&self) -> usize {
        self.size
    }

    /// Bytes of memory the template holds, besides itself; texts apart.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.frame.size() + size_of_val(&*self.texts)
    }
}

/// True if values of a type are, or hold, views of memory elsewhere.
fn holds_texts(qtype: &QType) -> bool {
    // Types nest only as deep as the text that spelled them.
    match qtype {
        QType::Tuple(fields) => fields.iter().any(holds_texts),
        other => other.scalar().is_some_and(Scalar::is_string),
    }
}
