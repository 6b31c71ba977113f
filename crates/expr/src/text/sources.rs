//! The texts that a model is read from: the model's own text, and the texts of the files that it uses. They are collected before parsing. Spans
//! count as if the texts were concatenated, so a span identifies its text. If the resolver returns the same `Arc` for several models, they share
//! the text in memory.

use super::cursor::Cursor;
use super::lexer::PlacedText;
use super::parser::table::TABLE;
use super::quoted;
use super::token::TokenKind;
use cembra_value::{Code, Diagnostic, Limit, Limits, Source, Span, Texts, guarded};
use foldhash::fast::RandomState;
use rustc_hash::FxHashMap;
use std::collections::{HashMap, HashSet};
use std::io;
use std::ops::Deref;
use std::sync::Arc;

/// The first word of a `use` statement, before a text. Everywhere else it is an ordinary name.
pub(super) const USE: &str = "use";

/// A file that a text uses (`use "common.cem"`): its name and its text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UsedFile {
    /// The name that identifies the file and appears in messages: a path, or another name of the resolver's choice.
    pub name: String,
    /// The text of the file. If a resolver returns the same `Arc` to several models, the text is in memory once.
    pub text: Arc<str>,
}

/// Finds the files that texts use, so that the host application decides which files exist. A function can be a resolver.
pub trait Resolver {
    /// Returns the file that `name` denotes in the text called `from`. Files with equal names are one file, which is read once.
    ///
    /// # Errors
    /// If the file does not exist or cannot be read.
    fn resolve(&self, name: &str, from: &str) -> io::Result<UsedFile>;

    /// Returns the name that [`UsedFile::name`] of the file would have; `None` if it is unknown before the file is read. A file with a known name is
    /// read once, even if a text spells it in several ways, such as `a.cem` and `./a.cem`.
    fn name_of(&self, _name: &str, _from: &str) -> Option<String> {
        None
    }
}

impl<F: Fn(&str, &str) -> io::Result<UsedFile>> Resolver for F {
    fn resolve(&self, name: &str, from: &str) -> io::Result<UsedFile> {
        self(name, from)
    }
}

/// The texts of a model, and for each `use` statement in them the file that it denotes.
#[derive(Clone, Debug)]
pub struct Sources {
    /// The model's own text, then the files, in the order of their spans.
    texts: Arc<Texts>,
    /// The index of the file for each `use`, by the start of the name's span.
    used: FxHashMap<u32, usize>,
    /// The problems with used files that were not found.
    pub(super) problems: Vec<Diagnostic>,
}

impl Deref for Sources {
    type Target = Texts;

    fn deref(&self) -> &Texts {
        &self.texts
    }
}

impl<'s> From<&'s Sources> for Source<'s> {
    fn from(sources: &'s Sources) -> Self {
        Source::from(&**sources.shared())
    }
}

impl Sources {
    /// Returns the sources of a model with a single text. `name` names the text in messages. The text must not use files.
    #[must_use]
    pub fn alone(name: &str, text: impl Into<Arc<str>>) -> Sources {
        Sources { texts: Arc::new(Texts::alone(name, text)), used: FxHashMap::default(), problems: Vec::new() }
    }

    /// Returns the sources for a text that cannot be read. Parsing them reports the error.
    #[must_use]
    pub fn unreadable(name: &str, error: &io::Error) -> Sources {
        let problem = Diagnostic::new(Code::Use, format!("`{name}` cannot be read: {error}"));
        Sources { problems: vec![problem], ..Sources::alone(name, "") }
    }

    /// Returns the sources of a model: its text, and all files that it uses, directly or indirectly. Problems with the files are reported when the
    /// model is parsed.
    ///
    /// ```
    /// use cembra_expr::{Sources, UsedFile};
    /// use cembra_value::{Limits, Span};
    ///
    /// let files = |name: &str, _: &str| match name {
    ///     "tax.cem" => Ok(UsedFile { name: name.to_owned(), text: "let vat = 0.081".into() }),
    ///     _ => Err(std::io::ErrorKind::NotFound.into()),
    /// };
    /// let sources = Sources::gather("m.cem", "use \"tax.cem\"\nprice * vat", &Limits::default(), &files);
    /// assert_eq!(sources.names().collect::<Vec<_>>(), ["m.cem", "tax.cem"]);
    /// let place = sources.place(Span::new(30, 33));
    /// assert_eq!((place.name, place.span.text(place.text)), ("tax.cem", "vat"));
    /// ```
    #[must_use]
    pub fn gather(name: &str, text: impl Into<Arc<str>>, limits: &Limits, resolver: &dyn Resolver) -> Sources {
        let mut sources = Sources::alone(name, text);
        // For each text, whether it is a table, which uses no files.
        let mut are_tables = vec![false];
        let most = limits.source_bytes.min(u32::MAX as usize);
        let mut known: HashMap<String, usize, RandomState> = HashMap::default();
        known.insert(name.to_owned(), 0);
        // Names in all texts are counted, so that the number of resolved spellings is limited.
        let mut names: HashSet<String, RandomState> = HashSet::default();
        // The number of files that were read again, because the resolver did not know their names in advance.
        let mut repeated: usize = 0;
        let mut at = 0;
        // The parser reports a text that is too long.
        while at < sources.count() && sources.main().len() <= most {
            // Within one text, a name always denotes the same file.
            let mut asked: HashMap<String, Option<usize>, RandomState> = HashMap::default();
            let uses = if are_tables[at] { Vec::new() } else { sources.uses(at, limits) };
            for (span, name, is_table) in uses {
                if let Some(known) = asked.get(&name) {
                    sources.used.extend(known.map(|file| (span.start, file)));
                    continue;
                }
                names.insert(name.clone());
                if names.len() > limits.files {
                    sources.problems.push(limits.exceeded(Limit::Files).at(span));
                    return sources;
                }
                let from = sources.name(at);
                // A panic here is ignored, because `resolve` panics too or else finds the file.
                let named = guarded(|| resolver.name_of(&name, from), |_| None);
                if let Some(file) = named.and_then(|found| known.get(&found)) {
                    sources.used.insert(span.start, *file);
                    asked.insert(name, Some(*file));
                    continue;
                }
                let panicked = |words: &str| Err(io::Error::other(format!("its resolver panicked: {words}")));
                let found = match guarded(|| resolver.resolve(&name, from), panicked) {
                    Ok(found) => found,
                    Err(error) => {
                        let problem = Diagnostic::new(Code::Use, format!("`{name}` cannot be read: {error}"));
                        sources.problems.push(problem.at(span));
                        asked.insert(name, None);
                        continue;
                    }
                };
                if let Some(file) = known.get(&found.name) {
                    repeated = repeated.saturating_add(found.text.len());
                    if repeated > most {
                        sources.problems.push(limits.exceeded(Limit::SourceBytes).at(span));
                        return sources;
                    }
                    sources.used.insert(span.start, *file);
                    asked.insert(name, Some(*file));
                    continue;
                }
                let start = sources.end() + 1;
                let exceeded = match found.text.len() > most.saturating_sub(start) {
                    true => Some(Limit::SourceBytes),
                    false => Some(Limit::Files).filter(|_| sources.count() > limits.files),
                };
                if let Some(limit) = exceeded {
                    sources.problems.push(limits.exceeded(limit).at(span));
                    return sources;
                }
                let file = sources.count();
                known.insert(found.name.clone(), file);
                asked.insert(name, Some(file));
                sources.used.insert(span.start, file);
                Arc::make_mut(&mut sources.texts).push(found.name, found.text);
                are_tables.push(is_table);
            }
            at += 1;
        }
        sources
    }

    /// Returns the file names in the `use` and `table` statements of a file. Each has its span, and true if its statement is a `table`.
    fn uses(&self, file: usize, limits: &Limits) -> Vec<(Span, String, bool)> {
        let mut cursor = Cursor::of_file(self, file, limits);
        let mut found = Vec::new();
        let mut depth = 0_usize;
        // True inside of a statement that names a table.
        let mut is_table = false;
        while cursor.token.kind != TokenKind::End && !cursor.given_up {
            let token = cursor.token;
            let begins = depth == 0 && (token.first_on_line || cursor.previous_kind == TokenKind::Semicolon);
            depth = token.kind.depth_behind(depth);
            cursor.advance();
            let (name, kind) = (cursor.token.span, cursor.token.kind);
            let is_word = |word: &str| begins && token.kind == TokenKind::Word && cursor.text(token.span) == word;
            if begins {
                is_table = is_word(TABLE) && kind == TokenKind::Word;
            }
            let names_file = is_word(USE) || is_table && token.kind == TokenKind::Equals;
            if names_file
                && kind == TokenKind::Text
                && let Ok(text) = quoted::decode(cursor.text(name), name)
            {
                found.push((name, text.into_owned(), is_table));
            }
            // Options follow the file name; their values are not files.
            is_table &= token.kind != TokenKind::Equals;
        }
        found
    }

    /// Returns the texts of the model and its files. Errors keep a reference to these texts, to show places in them.
    #[must_use]
    pub fn shared(&self) -> &Arc<Texts> {
        &self.texts
    }

    /// Renames the model's own text to `name`.
    pub fn rename(&mut self, name: &str) {
        Arc::make_mut(&mut self.texts).rename(name);
    }

    /// Returns the index of the file that a `use` statement denotes. `name` is the span of the file's name in the statement. `None` if the file was
    /// not found.
    pub(super) fn used_at(&self, name: Span) -> Option<usize> {
        self.used.get(&name.start).copied()
    }

    /// Returns the text of the file with the index `file`, and the offset of its spans.
    pub(super) fn placed(&self, file: usize) -> PlacedText<'_> {
        let (text, start) = self.text_and_start(file);
        PlacedText { text, start }
    }
}
