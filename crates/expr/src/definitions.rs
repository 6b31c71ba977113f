//! What a text defines, and where: for advice about names and for what must be told once however often a function is called.
//! Nothing that a model means depends on it, so that equal programs may differ in it and files have none.

use cembra_value::Span;
use std::num::NonZeroU32;

/// What kind of name a definition gives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Defines {
    /// A `let`, of a statement or inside of an expression.
    Let,
    /// A function.
    Function,
    /// An output.
    Output,
    /// A parameter. Its definition ends where that of the function does.
    Parameter,
}

/// A definition of a text.
#[derive(Clone, Copy, Debug)]
pub struct Definition {
    /// What it defines.
    pub defines: Defines,
    /// Where the name is.
    pub name: Span,
    /// From the name to the end of what it is given.
    pub whole: Span,
    /// True if the name is used behind it.
    pub is_used: bool,
    /// Where the name ends among all names.
    end: u32,
}

/// The definitions of a text in its order. The names lie one behind the other: a large model has many.
#[derive(Clone, Debug, Default)]
pub struct Definitions {
    all: Vec<Definition>,
    names: String,
    /// How many of a program's inputs, from the first on, the text declares; nothing if there is no text.
    declared_inputs: Option<usize>,
}

/// A definition, counted from one: what may be none takes no more room.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct DefinitionId(NonZeroU32);

impl Definitions {
    /// Adds the definition of a name, whose value ends where `whole` does.
    pub(crate) fn push(&mut self, defines: Defines, text: &str, name: Span, end_of_value: u32) -> DefinitionId {
        self.names.push_str(text);
        let whole = Span::new(name.start, end_of_value.max(name.end));
        self.all.push(Definition { defines, name, whole, is_used: false, end: self.names.len() as u32 });
        // There is one at least.
        DefinitionId(NonZeroU32::MIN.saturating_add(self.all.len() as u32 - 1))
    }

    /// Notes a use of what is defined.
    pub(crate) fn note_use(&mut self, id: DefinitionId) {
        if let Some(one) = self.all.get_mut(id.0.get() as usize - 1) {
            one.is_used = true;
        }
    }

    /// Notes how many inputs the text declares.
    pub(crate) fn set_declared_inputs(&mut self, count: usize) {
        self.declared_inputs = Some(count);
    }

    /// How many of the program's inputs, from the first on, are declared; the others are leaves that nobody declares. Nothing of
    /// a program that was not read from text: files do not say it.
    #[must_use]
    pub fn declared_inputs(&self) -> Option<usize> {
        self.declared_inputs
    }

    /// The definitions with their names, in the order in which they became known.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Definition)> + '_ {
        let mut start = 0;
        self.all.iter().map(move |one| {
            let name = self.names.get(start..one.end as usize).unwrap_or_default();
            start = one.end as usize;
            (name, one)
        })
    }

    /// Bytes of memory, besides itself.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.all.capacity() * size_of::<Definition>() + self.names.capacity()
    }
}
