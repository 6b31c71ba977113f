//! Renaming of a name, in the text that is open and in the files that it uses.

use crate::analysis::Analysis;
use crate::definition::places;
use cembra::errors::Span;
use cembra_expr::{NameKind, NamedPlace, is_plain_name};
use lsp_types::{Range, TextEdit, Uri, WorkspaceEdit};
use std::collections::HashMap;

/// The reason why a name cannot be renamed: there is no name, or the new name is invalid or in use.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub(crate) enum Refusal {
    /// There is no name at the cursor, or it is one that no text defines.
    #[error("only a name that is defined in a text can be renamed")]
    NoName,
    /// The new name is a word of the language, or not a name.
    #[error("`{0}` cannot be a name: use letters, digits and `_`, and not a word of the language")]
    NotPlain(String),
    /// The new name is already defined in an overlapping scope.
    #[error("`{0}` is already a name")]
    Taken(String),
}

/// The range of the name at the byte index `byte` of the text, if the name can be renamed; otherwise the reason why it cannot.
pub(crate) fn renamable(analysis: &Analysis, byte: usize) -> Result<Range, Refusal> {
    let (span, _) = name_at(analysis, byte)?;
    Ok(analysis.range(span))
}

/// The edits that rename the name at the byte index `byte` of the text to `new`, in all files; or the reason why it cannot be
/// renamed.
#[expect(clippy::mutable_key_type, reason = "the protocol's own type, whose keys do not change")]
pub(crate) fn rename(
    analysis: &Analysis,
    byte: usize,
    new: &str,
    uri: &dyn Fn(&str) -> Option<Uri>,
) -> Result<WorkspaceEdit, Refusal> {
    let (_, name) = name_at(analysis, byte)?;
    if !is_plain_name(new) {
        return Err(Refusal::NotPlain(new.to_owned()));
    }
    let others = analysis.names().names().iter().filter(|other| other.name != name.name);
    // Local names of two functions do not conflict.
    let meet = |other: &NamedPlace| {
        !(name.kind.is_local() && other.kind.is_local())
            || (name.scope.start <= other.scope.end && other.scope.start <= name.scope.end)
    };
    if others.clone().any(|other| analysis.text_at(other.name) == new && meet(other)) {
        return Err(Refusal::Taken(new.to_owned()));
    }
    let mut changes: HashMap<Uri, Vec<TextEdit>> = HashMap::new();
    for place in places(analysis, byte, true) {
        let (file, range) = analysis.place(place);
        let Some(uri) = uri(file) else { continue };
        changes.entry(uri).or_default().push(TextEdit::new(range, new.to_owned()));
    }
    Ok(WorkspaceEdit { changes: Some(changes), ..WorkspaceEdit::default() })
}

/// The span of the name at a byte of the text, and its definition. Names in quotes, which may be any text, and names of the host
/// cannot be changed.
fn name_at(analysis: &Analysis, byte: usize) -> Result<(Span, &NamedPlace), Refusal> {
    let (span, _) = analysis.referent_at(byte).ok_or(Refusal::NoName)?;
    let name = analysis.named_at(byte).ok_or(Refusal::NoName)?;
    let is_plain = is_plain_name(analysis.text_at(name.name)) && is_plain_name(analysis.text_at(span));
    if is_plain && name.kind != NameKind::Extern { Ok((span, name)) } else { Err(Refusal::NoName) }
}
