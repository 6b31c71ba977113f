//! Spans: ranges of source text.

/// A range of bytes in the source text of a model, from `start` up to, but without, `end`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Span {
    /// The index of the span's first byte.
    pub start: u32,
    /// The index of the byte after the span's last.
    pub end: u32,
}

impl Span {
    /// Returns the span of the bytes from `start` up to, but without, `end`.
    #[must_use]
    pub const fn new(start: u32, end: u32) -> Self {
        Span { start, end }
    }

    /// The smallest span that covers both spans.
    #[must_use]
    pub fn to(self, other: Span) -> Span {
        Span { start: self.start.min(other.start), end: self.end.max(other.end) }
    }

    /// The part of `source` that this span covers; empty if the span is not of this source.
    #[must_use]
    pub fn text(self, source: &str) -> &str {
        source.get(self.start as usize..self.end as usize).unwrap_or("")
    }
}
