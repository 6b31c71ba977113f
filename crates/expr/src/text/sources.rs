//! The texts that a model is read from: its own, and those of the files that it uses. They are found before anything is read. Spans
//! count as if each text followed the one before it, so that a span says in which of them it is; a text itself is shared by all
//! models whose resolver hands it out.

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

/// The word that begins such a statement, before a text. It is a name everywhere else.
pub(super) const USE: &str = "use";

/// A file that a text uses.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UsedFile {
    /// What tells it from others, and what messages call it: a path, or whatever the resolver likes.
    pub name: String,
    /// What is in it. A resolver that answers several models with one `Arc` has the text in memory once.
    pub text: Arc<str>,
}

/// Finds the files that texts use: the host decides what there is. A function is one.
pub trait Resolver {
    /// The file that the text called `from` means by `name`. Equal names of files are one file, which is read once.
    ///
    /// # Errors
    /// There is none, or it cannot be read.
    fn resolve(&self, name: &str, from: &str) -> io::Result<UsedFile>;

    /// The name that [`UsedFile::name`] of that file would have, if that is known before the file is read. A file whose name is known is
    /// read once, however many spellings of it a text has (`a.cem`, `./a.cem`).
    fn name_of(&self, _name: &str, _from: &str) -> Option<String> {
        None
    }
}

impl<F: Fn(&str, &str) -> io::Result<UsedFile>> Resolver for F {
    fn resolve(&self, name: &str, from: &str) -> io::Result<UsedFile> {
        self(name, from)
    }
}

/// The texts of a model, which are [`Texts`], and the file that each of its `use` means.
#[derive(Clone, Debug)]
pub struct Sources {
    /// The model's own text, then the files, in the order of their starts.
    texts: Arc<Texts>,
    /// The file that each `use` means, by where its name begins.
    used: FxHashMap<u32, usize>,
    /// Why files are not there.
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
    /// A text that is called so, and that may use no files.
    #[must_use]
    pub fn alone(name: &str, text: impl Into<Arc<str>>) -> Sources {
        Sources { texts: Arc::new(Texts::alone(name, text)), used: FxHashMap::default(), problems: Vec::new() }
    }

    /// A text that cannot be read: whoever reads it is told so.
    #[must_use]
    pub fn unreadable(name: &str, error: &io::Error) -> Sources {
        let problem = Diagnostic::new(Code::Use, format!("`{name}` cannot be read: {error}"));
        Sources { problems: vec![problem], ..Sources::alone(name, "") }
    }

    /// A text with all files that it uses, and that these use. What is wrong with them is told when the model is read.
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
        // Whether each text is of a table: that uses nothing.
        let mut are_tables = vec![false];
        let most = limits.source_bytes.min(u32::MAX as usize);
        let mut known: HashMap<String, usize, RandomState> = HashMap::default();
        known.insert(name.to_owned(), 0);
        // The names of all texts count, so that few spellings of one file are asked for.
        let mut names: HashSet<String, RandomState> = HashSet::default();
        // Files that were read once more, as their resolver knew no better.
        let mut repeated: usize = 0;
        let mut at = 0;
        // Whoever reads the text tells that it is too long.
        while at < sources.count() && sources.main().len() <= most {
            // A name means one file wherever it is used in a text.
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
                // What panics here panics in `resolve` too, or else that finds the file.
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

    /// The names that the statements of a file use, with where they stand, and whether they are of tables.
    fn uses(&self, file: usize, limits: &Limits) -> Vec<(Span, String, bool)> {
        let mut cursor = Cursor::of_file(self, file, limits);
        let mut found = Vec::new();
        let mut depth = 0_usize;
        // True in a statement that names a table.
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
            // After the file come options, whose values are not files.
            is_table &= token.kind != TokenKind::Equals;
        }
        found
    }

    /// The texts alone, shared: errors keep them to show their places.
    #[must_use]
    pub fn shared(&self) -> &Arc<Texts> {
        &self.texts
    }

    /// Calls the model's own text so from now on.
    pub fn rename(&mut self, name: &str) {
        Arc::make_mut(&mut self.texts).rename(name);
    }

    /// The file that the `use` of a name at this place means.
    pub(super) fn used_at(&self, name: Span) -> Option<usize> {
        self.used.get(&name.start).copied()
    }

    /// The text of a file, and where its spans begin.
    pub(super) fn placed(&self, file: usize) -> PlacedText<'_> {
        let (text, start) = self.text_and_start(file);
        PlacedText { text, start }
    }
}
