//! The texts that a model is read from, and spans in these texts. Spans count bytes as if the texts followed each other in one long text, so a span
//! determines which text it is in. The code that reads `use` statements (`crates/expr/src/text/sources.rs`) adds the texts of used files.

use crate::{Lines, Span};
use cembra_runtime::Excerpt;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

/// The texts of a model, the model's own text first. There is always at least one.
#[derive(Clone, Debug)]
pub struct Texts(Vec<NamedText>);

#[derive(Clone, Debug)]
struct NamedText {
    name: String,
    text: Arc<str>,
    /// The offset at which spans in this text begin: after the previous text and one line end.
    start: usize,
    /// The lines of the text. They are found when a place in the text is first requested.
    lines: OnceLock<Lines>,
}

impl NamedText {
    fn new(name: String, text: Arc<str>, start: usize) -> NamedText {
        NamedText { name, text, start, lines: OnceLock::new() }
    }
}

/// A span in one of a model's texts, with that text.
#[derive(Clone, Copy)]
pub struct SourcePlace<'t> {
    /// The name of the text that contains the span.
    pub name: &'t str,
    /// The whole text that contains the span.
    pub text: &'t str,
    /// The span, counted from the beginning of this text.
    pub span: Span,
    /// The lines of the text, which all places in the text share.
    lines: &'t OnceLock<Lines>,
}

impl PartialEq for SourcePlace<'_> {
    fn eq(&self, other: &Self) -> bool {
        (self.name, self.text, self.span) == (other.name, other.text, other.span)
    }
}

impl Eq for SourcePlace<'_> {}

impl fmt::Debug for SourcePlace<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SourcePlace { name, text, span, .. } = self;
        f.debug_struct("SourcePlace").field("name", name).field("text", text).field("span", span).finish()
    }
}

/// The most bytes of a place that are considered for a quotation: more than the shown characters take.
const QUOTED_BYTES: usize = 512;

impl<'t> SourcePlace<'t> {
    /// The line and the column where the span begins, both counted from 1; columns are characters.
    #[must_use]
    pub fn line_and_column(&self) -> (usize, usize) {
        self.lines().line_and_column(self.text, self.span.start as usize)
    }

    /// The numbers of characters before the start and the end of the span. The span itself counts bytes.
    #[must_use]
    pub fn characters(&self) -> (usize, usize) {
        let count = |end: u32| {
            let end = self.text.floor_char_boundary(end as usize);
            self.text[..end].chars().count()
        };
        (count(self.span.start), count(self.span.end))
    }

    /// The byte range of the line with number `line` of the text, counted from 1, without its line end.
    pub(crate) fn line(&self, line: usize) -> Range<usize> {
        self.lines().range(self.text, line.saturating_sub(1))
    }

    /// The lines of the text, which are found once for all of its places.
    fn lines(&self) -> &'t Lines {
        self.lines.get_or_init(|| Lines::of(self.text))
    }

    /// The beginning of the text at the span, as messages quote it; `None` if the span is empty.
    #[must_use]
    pub fn quoted(&self) -> Option<Excerpt<'t>> {
        let text = self.text.get(self.span.start as usize..self.span.end as usize).filter(|text| !text.is_empty())?;
        let text = &text[..text.floor_char_boundary(QUOTED_BYTES)];
        Some(Excerpt::quoted(text.lines().next().unwrap_or_default()))
    }
}

impl Texts {
    /// Returns a collection with the single text `text`, called `name`.
    #[must_use]
    pub fn alone(name: &str, text: impl Into<Arc<str>>) -> Texts {
        Texts(vec![NamedText::new(name.to_owned(), text.into(), 0)])
    }

    /// Appends a text to the collection.
    pub fn push(&mut self, name: String, text: Arc<str>) {
        let start = self.end() + 1;
        self.0.push(NamedText::new(name, text, start));
    }

    /// The model's own text.
    #[must_use]
    pub fn main(&self) -> &str {
        &self.0[0].text
    }

    /// The texts that the model is read from, with their names; the model's own text is first.
    pub fn texts(&self) -> impl Iterator<Item = (&str, &Arc<str>)> {
        self.0.iter().map(|named| (&*named.name, &named.text))
    }

    /// The text at `span`, in whichever text that is; empty if the span does not belong to any.
    #[must_use]
    pub fn text_at(&self, span: Span) -> &str {
        let SourcePlace { text, span, .. } = self.place(span);
        span.text(text)
    }

    /// Renames the model's own text to `name`.
    pub fn rename(&mut self, name: &str) {
        name.clone_into(&mut self.0[0].name);
    }

    /// The names of the texts that the model is read from; the model's own text is first.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|named| &*named.name)
    }

    /// Returns the text that `span` belongs to, and the span in that text.
    #[must_use]
    pub fn place(&self, span: Span) -> SourcePlace<'_> {
        // The first start is 0.
        let at = self.0.partition_point(|named| named.start <= span.start as usize).saturating_sub(1);
        let NamedText { name, text, start, lines } = &self.0[at];
        let shifted = |place: u32| place.saturating_sub(*start as u32);
        SourcePlace { name, text, span: Span::new(shifted(span.start), shifted(span.end)), lines }
    }

    /// The bytes of memory that the texts hold, without the struct itself. Texts that are shared with other models
    /// count too.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let lines = |named: &NamedText| named.lines.get().map_or(0, Lines::memory_bytes);
        let texts: usize = self.0.iter().map(|named| named.text.len() + named.name.capacity() + lines(named)).sum();
        texts + self.0.capacity() * size_of::<NamedText>()
    }

    /// The number of texts that the model is read from.
    #[must_use]
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// The name of the text at index `at`.
    #[must_use]
    pub fn name(&self, at: usize) -> &str {
        &self.0[at].name
    }

    /// The text at index `at`, and the offset at which spans in this text begin.
    #[must_use]
    pub fn text_and_start(&self, at: usize) -> (&str, usize) {
        let NamedText { text, start, .. } = &self.0[at];
        (text, *start)
    }

    /// The end of the spans in all texts: the number of bytes of all texts, with one line end between each two texts.
    #[must_use]
    pub fn end(&self) -> usize {
        self.0.last().map_or(0, |named| named.start + named.text.len())
    }
}
