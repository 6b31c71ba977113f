//! Statements that use files: `use "common.cem"`. A file is read once, at its first use, with a namespace of its own. The definitions of a file, and
//! those of the files that it uses, become names in every file that uses it.

use super::call::Callee;
use super::numbers::FileRule;
use super::{Meaning, NameMap, Parser, Symbol, used_before_definition};
use crate::Referent;
use crate::text::cursor::{ReadingState, Stop};
use crate::text::lexer::PlacedText;
use crate::text::sources::Sources;
use cembra_value::{Code, Diagnostic, Limit, Span};
use rustc_hash::{FxHashMap, FxHashSet};
use std::borrow::Cow;

/// The files of a model while it is parsed: which are being read, which are complete, and the names that they define.
#[derive(Default)]
pub(super) struct Files<'s> {
    /// The texts of the files; `None` for a text that cannot use files.
    sources: Option<&'s Sources>,
    /// The files that are being read, each with the saved state of the file that uses it, the innermost last.
    open: Vec<Open<'s>>,
    /// For each file that was read completely, the meanings of its names.
    read: FxHashMap<usize, NameMap<&'s str, Symbol>>,
    /// The files whose names are already names of the current file.
    taken: FxHashSet<usize>,
    /// The file that the current statement uses and that is read after the statement, with the span of its name; `None` if there is none.
    next: Option<(usize, Span)>,
}

/// A file that is being read.
struct Open<'s> {
    file: usize,
    /// The place of the `use` statement.
    used: Span,
    /// The saved position in the file that uses this file.
    place: ReadingState<'s>,
    symbols: NameMap<&'s str, Symbol>,
    callees: NameMap<Cow<'s, str>, Callee>,
    taken: FxHashSet<usize>,
    rule: FileRule,
}

impl<'s> Files<'s> {
    pub(super) fn of(sources: &'s Sources) -> Self {
        Files { sources: Some(sources), ..Files::default() }
    }

    /// Returns true while a used file is being read.
    pub(super) fn is_inside(&self) -> bool {
        !self.open.is_empty()
    }
}

impl<'s> Parser<'s, '_> {
    /// Reads the quoted name of a file. `None` if there is no such file, which is reported.
    fn named_file(&mut self) -> Result<Option<(&'s Sources, usize)>, Stop> {
        let span = self.cursor.token.span;
        let name = self.quoted_name()?;
        let Some(sources) = self.files.sources else {
            let problem =
                Diagnostic::new(Code::Use, format!("`{name}` cannot be used: other files are not available here"));
            self.cursor.report(
                problem.at(span).hint(
                    "use the command, which looks for files beside the model's file, or in Rust `Sources::gather`",
                ),
            );
            return Ok(None);
        };
        self.note_referent(span, |_| Some(Referent::File(sources.used_at(span)?)));
        // The reason why the file is missing is reported already.
        Ok(sources.used_at(span).map(|file| (sources, file)))
    }

    /// Reads the quoted name of a file, and returns the file's text. Returns `None` if the file does not exist, after reporting that.
    pub(super) fn data_file(&mut self) -> Result<Option<PlacedText<'s>>, Stop> {
        Ok(self.named_file()?.map(|(sources, file)| sources.placed(file)))
    }

    /// Reads `use "name"`.
    pub(super) fn use_file(&mut self) -> Result<(), Stop> {
        self.cursor.advance();
        let span = self.cursor.token.span;
        let Some((sources, file)) = self.named_file()? else { return Ok(()) };
        let from = self.files.open.iter().position(|open| open.file == file).map(|at| at + 1);
        let from = if file == 0 { Some(0) } else { from };
        if let Some(from) = from {
            let others = self.files.open[from..].iter().map(|open| sources.name(open.file));
            let names: Vec<String> =
                [sources.name(file)].into_iter().chain(others).map(|name| format!("`{name}`")).collect();
            let message = format!("{} uses itself", names.join(", which uses "));
            self.cursor.report(Diagnostic::new(Code::Use, message).at(span));
        } else if self.files.read.contains_key(&file) {
            self.take_names_of(file, span);
        } else {
            self.files.next = Some((file, span));
        }
        Ok(())
    }

    /// Moves to the file that the last statement uses, if there is one that was not read yet.
    pub(super) fn open_next_file(&mut self) {
        let (Some((file, used)), Some(sources)) = (self.files.next.take(), self.files.sources) else { return };
        let place = self.cursor.go_to(sources.placed(file));
        let (symbols, callees) = (std::mem::take(&mut self.symbols), std::mem::take(&mut self.callees));
        let taken = std::mem::take(&mut self.files.taken);
        let rule = std::mem::take(&mut self.rule);
        self.files.open.push(Open { file, used, place, symbols, callees, taken, rule });
    }

    /// Ends the current file, and returns to the text that uses it. Returns false at the end of the main text.
    pub(super) fn close_file(&mut self) -> bool {
        let Some(Open { file, used, place, symbols, callees, taken, rule }) = self.files.open.pop() else {
            return false;
        };
        self.rule = rule;
        self.files.taken = taken;
        self.cursor.come_back(place);
        let mut names = std::mem::replace(&mut self.symbols, symbols);
        self.callees = callees;
        names.retain(|name, symbol| {
            let is_leaf = matches!(symbol.meaning, Meaning::Leaf(_));
            if is_leaf {
                let problem =
                    Diagnostic::new(Code::Use, format!("`{name}` is not defined in this file")).at(symbol.span);
                let problem = problem.also(used, "the file is used here");
                self.cursor.report(
                    problem.hint(
                        "make the name a parameter of a function: a file that another file uses cannot have inputs",
                    ),
                );
            }
            !is_leaf
        });
        self.files.read.insert(file, names);
        self.take_names_of(file, used);
        true
    }

    /// Adds the definitions of a file to the names of the file that uses it.
    fn take_names_of(&mut self, file: usize, used: Span) {
        if !self.files.taken.insert(file) {
            return;
        }
        let Some(names) = self.files.read.remove(&file) else { return };
        // Many files may use many names of each other.
        self.instantiation = self.instantiation.saturating_add(4 * names.len());
        if self.instantiation > self.cursor.limits().instantiation {
            self.cursor.limit(Limit::Instantiation, Some(used));
            return;
        }
        for (name, symbol) in &names {
            let problem = match self.symbols.get(name) {
                None => {
                    self.note_callee_defined(name, used);
                    self.symbols.insert(name, *symbol);
                    continue;
                }
                Some(known) if known.span == symbol.span => continue,
                Some(Symbol { meaning: Meaning::Leaf(_), span, .. }) => used_before_definition(name, *span, used),
                Some(known) => Diagnostic::new(Code::Name, format!("`{name}` is defined twice"))
                    .at(used)
                    .label("by this file")
                    .also(known.span, "defined here")
                    .also(symbol.span, "defined in the file here"),
            };
            self.cursor.report(problem);
        }
        self.files.read.insert(file, names);
    }

    /// Reports an error if the current file is a used file, which must have only definitions. `found` names the statement for the message.
    pub(super) fn only_definitions(&mut self, found: &str) -> Result<(), Stop> {
        if !self.files.is_inside() {
            return Ok(());
        }
        let span = self.cursor.token.span;
        let problem = Diagnostic::new(Code::Use, format!("a file that another file uses cannot have {found}")).at(span);
        Err(self.cursor.stop(problem.hint("leave only functions, constants and operators of the host in this file")))
    }
}
