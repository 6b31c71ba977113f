//! Listings: the text of a compilation stage, line by line. Each line has its kind and its origins, so that a reader can follow an operator from
//! stage to stage. A listing does not determine how it is presented; formatting a listing gives its lines.

use std::fmt;

/// The text of one compilation stage, such as a plan or machine code. It prints as its lines, each followed by a line end.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Listing {
    lines: Vec<ListingLine>,
}

/// A line of a listing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ListingLine {
    /// The text of the line, without the line end.
    pub text: String,
    /// The kind of the line.
    pub kind: LineKind,
    /// The origins of the line, by index: the expression's nodes that the line comes from. While a stage is listed, they may be indices of other
    /// things, such as the steps of a plan, which [`Listing::map_origins`] replaces. A line that belongs to no node has no origins.
    pub origins: Vec<u32>,
}

/// The kind of a line in a listing.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum LineKind {
    /// A heading of the lines after it, or a count of them.
    Heading,
    /// An input of the stage, with the place of its value.
    Input,
    /// A literal, with the place of its value.
    Literal,
    /// An operation: a node, a step, an instruction of a tape, or a copy.
    Step,
    /// A jump to another line.
    Jump,
    /// An output or a result, with the place of its value.
    Output,
    /// A line of the code generator's language, or of machine code.
    Code,
    /// A remark for the reader.
    Note,
}

impl LineKind {
    /// The kind's name in lower case, for machines that read a listing.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            LineKind::Heading => "heading",
            LineKind::Input => "input",
            LineKind::Literal => "literal",
            LineKind::Step => "step",
            LineKind::Jump => "jump",
            LineKind::Output => "output",
            LineKind::Code => "code",
            LineKind::Note => "note",
        }
    }
}

impl Listing {
    /// Returns a listing without lines.
    #[must_use]
    pub const fn new() -> Listing {
        Listing { lines: Vec::new() }
    }

    /// Returns a listing of the lines of `text`, all of the kind `kind` and without origins.
    #[must_use]
    pub fn of_text(kind: LineKind, text: &str) -> Listing {
        let mut listing = Listing::new();
        text.lines().for_each(|line| listing.push(kind, [], line));
        listing
    }

    /// Appends a line. `text` must not contain a line end.
    pub fn push(&mut self, kind: LineKind, origins: impl IntoIterator<Item = u32>, text: impl fmt::Display) {
        self.lines.push(ListingLine { text: text.to_string(), kind, origins: origins.into_iter().collect() });
    }

    /// Appends the lines of `other`, each after `indent`.
    pub fn append(&mut self, other: Listing, indent: &str) {
        self.lines.extend(other.lines.into_iter().map(|mut line| {
            line.text.insert_str(0, indent);
            line
        }));
    }

    /// Replaces each origin by those that `of` returns for it. Each new origin is kept once per line, in ascending order.
    #[must_use]
    pub fn map_origins<I: IntoIterator<Item = u32>>(mut self, mut of: impl FnMut(u32) -> I) -> Listing {
        for line in &mut self.lines {
            line.origins = line.origins.iter().flat_map(|origin| of(*origin)).collect();
            line.origins.sort_unstable();
            line.origins.dedup();
        }
        self
    }

    /// The lines of the listing, in order.
    #[must_use]
    pub fn lines(&self) -> &[ListingLine] {
        &self.lines
    }
}

impl fmt::Display for Listing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.lines.iter().try_for_each(|line| writeln!(f, "{}", line.text))
    }
}
