//! The definitions in a text and their spans, for advice about names and for problems that are reported once per function. They do not affect the
//! meaning of a model: equal programs may have different definitions, and model files (protobuf) store none.

use cembra_value::Span;
use std::num::NonZeroU32;

/// The kind of a definition in a model's text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Defines {
    /// A `let` defines the name, as a statement or inside of an expression.
    Let,
    /// A named function: `fn name(..) = ..`.
    Function,
    /// An output of the model: `output name = ..`.
    Output,
    /// A parameter of a function. Its definition ends where the function's definition ends.
    Parameter,
}

/// A definition of a name in a model's text: its kind, its spans, and whether the name is used.
#[derive(Clone, Copy, Debug)]
pub struct Definition {
    /// The kind of this definition.
    pub defines: Defines,
    /// The span of the defined name in the text.
    pub name: Span,
    /// The span from the defined name to the end of its value.
    pub whole: Span,
    /// True if the text uses the defined name after its definition.
    pub is_used: bool,
    /// The end of the name in [`Definitions::names`].
    end: u32,
}

/// The definitions in a text, in the order of the text, for advice about names. All names are concatenated in one string, because a large model has
/// many.
#[derive(Clone, Debug, Default)]
pub struct Definitions {
    all: Vec<Definition>,
    names: String,
    /// The number of inputs that the text declares, which are the first inputs of the program; `None` if the program was not read from text.
    declared_inputs: Option<usize>,
}

/// The index of a definition plus one, so that an `Option` of it takes no extra memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct DefinitionId(NonZeroU32);

impl Definitions {
    /// Adds to the list the definition of the name at the span `name`, whose value ends at `end_of_value`.
    pub(crate) fn push(&mut self, defines: Defines, text: &str, name: Span, end_of_value: u32) -> DefinitionId {
        self.names.push_str(text);
        let whole = Span::new(name.start, end_of_value.max(name.end));
        self.all.push(Definition { defines, name, whole, is_used: false, end: self.names.len() as u32 });
        // There is at least one definition now.
        DefinitionId(NonZeroU32::MIN.saturating_add(self.all.len() as u32 - 1))
    }

    /// Records that the text uses the definition `id`.
    pub(crate) fn note_use(&mut self, id: DefinitionId) {
        if let Some(one) = self.all.get_mut(id.0.get() as usize - 1) {
            one.is_used = true;
        }
    }

    /// Sets the number of inputs that the text declares.
    pub(crate) fn set_declared_inputs(&mut self, count: usize) {
        self.declared_inputs = Some(count);
    }

    /// The number of inputs that the text declares. They are the first inputs of the program; any further inputs are leaves without a declaration.
    /// `None` for a program that was not read from text, because model files do not store this number.
    #[must_use]
    pub fn declared_inputs(&self) -> Option<usize> {
        self.declared_inputs
    }

    /// Iterates over the definitions and their names, in the order in which the parser found the definitions.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Definition)> + '_ {
        let mut start = 0;
        self.all.iter().map(move |one| {
            let name = self.names.get(start..one.end as usize).unwrap_or_default();
            start = one.end as usize;
            (name, one)
        })
    }

    /// The bytes of heap memory that the definitions own.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.all.capacity() * size_of::<Definition>() + self.names.capacity()
    }
}
