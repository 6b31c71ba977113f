//! The texts that an editor has open, and the files that they use. An open text is read from the editor, even where another text
//! uses it; every other file is read from the disk.

use crate::analysis::Analysis;
use crate::positions::{Encoding, Positions};
use crate::uri::{name_of, path_of, uri_of};
use cembra::Limits;
use cembra::program::{Folder, Sources, UsedFile};
use lsp_types::{TextDocumentContentChangeEvent, Uri};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;
use std::rc::Rc;

/// A text that is open in the editor: its URI, its version, and the analysis of that version.
#[derive(Debug)]
pub(crate) struct Document {
    /// The address of the text, as the editor writes it.
    pub(crate) uri: Uri,
    /// The version number that the editor gave the text.
    pub(crate) version: i32,
    text: String,
    /// The analysis of this version of the text; `None` until it is needed.
    analysis: Option<Rc<Analysis>>,
}

/// The texts that are open in the editor, by name.
#[derive(Debug)]
pub(crate) struct Documents {
    open: BTreeMap<String, Document>,
    limits: Limits,
    encoding: Encoding,
}

impl Documents {
    /// An empty collection of open texts, which are read within `limits`; `encoding` is the unit in which the editor counts positions within a line.
    pub(crate) fn new(encoding: Encoding, limits: Limits) -> Documents {
        Documents { open: BTreeMap::new(), limits, encoding }
    }

    /// The names of the open texts.
    pub(crate) fn names(&self) -> Vec<String> {
        self.open.keys().cloned().collect()
    }

    /// The open text with the name `name`; `None` if it is not open.
    pub(crate) fn get(&self, name: &str) -> Option<&Document> {
        self.open.get(name)
    }

    /// The address of the text `name`, open or not; `None` if the name is not a path.
    pub(crate) fn uri(&self, name: &str) -> Option<Uri> {
        self.open.get(name).map(|document| document.uri.clone()).or_else(|| uri_of(name))
    }

    /// Adds `text` to the open texts.
    pub(crate) fn open(&mut self, uri: Uri, version: i32, text: String) {
        let name = name_of(&uri);
        self.open.insert(name.clone(), Document { uri, version, text, analysis: None });
        self.changed(&name);
    }

    /// Applies the editor's changes to the open text at `uri`; ignores a text that is not open.
    pub(crate) fn change(&mut self, uri: &Uri, version: i32, changes: Vec<TextDocumentContentChangeEvent>) {
        let name = name_of(uri);
        let Some(document) = self.open.get_mut(&name) else { return };
        document.version = version;
        for change in changes {
            let Some(range) = change.range else {
                document.text = change.text;
                continue;
            };
            let positions = Positions::of(&document.text, self.encoding);
            let [start, end] = [range.start, range.end].map(|position| positions.byte(&document.text, position));
            document.text.replace_range(start.min(end)..start.max(end), &change.text);
        }
        self.changed(&name);
    }

    /// Removes the text at `uri` from the open texts, so that the file on the disk is read again.
    pub(crate) fn close(&mut self, uri: &Uri) {
        let name = name_of(uri);
        self.open.remove(&name);
        self.changed(&name);
    }

    /// Drops the analyses that depend on the text `name`, which has changed.
    pub(crate) fn changed(&mut self, name: &str) {
        for (open, document) in &mut self.open {
            if open == name || document.analysis.as_ref().is_some_and(|analysis| analysis.looks_for(name)) {
                document.analysis = None;
            }
        }
    }

    /// Drops all analyses, because any file may have changed.
    pub(crate) fn all_changed(&mut self) {
        for document in self.open.values_mut() {
            document.analysis = None;
        }
    }

    /// The analysis of the open text `name`, computed if necessary; `None` if no text with this name is open.
    pub(crate) fn analysis(&mut self, name: &str) -> Option<Rc<Analysis>> {
        if let Some(known) = &self.open.get(name)?.analysis {
            return Some(known.clone());
        }
        let made = Rc::new(self.analyse(name, self.open.get(name)?));
        self.open.get_mut(name)?.analysis = Some(made.clone());
        Some(made)
    }

    fn analyse(&self, name: &str, document: &Document) -> Analysis {
        let looked_for = RefCell::new(BTreeSet::new());
        let is_file = path_of(&document.uri).is_some();
        let beside = Path::new(name).parent().unwrap_or(Path::new(""));
        let folder = Folder::new(beside, self.limits.source_bytes);
        let resolver = |used: &str, from: &str| {
            if !is_file {
                return Err(io::Error::other("the text is not in a file yet, so there are no files beside it"));
            }
            let path = folder.path_of(used, from)?;
            let name = path.display().to_string();
            looked_for.borrow_mut().insert(name.clone());
            match self.open.get(&name) {
                Some(open) => Ok(UsedFile { name, text: open.text.as_str().into() }),
                None => folder.read(&path),
            }
        };
        let sources = Sources::gather(name, document.text.as_str(), &self.limits, &resolver);
        Analysis::of(sources, looked_for.into_inner(), &self.limits, self.encoding)
    }
}
