//! Completions for the word before the cursor: names in scope, operators, words of the language, types, and names of a call's arguments. The module
//! also finds the signature of the call around the cursor.

use crate::analysis::Analysis;
use crate::hover::{declaration, operator};
use cembra::QType;
use cembra::errors::Span;
use cembra::operators::{Registry, reference};
use cembra::values::print_type;
use cembra_expr::{BLOCK, CursorContext, ExpectedAt, NameKind, NamedPlace, OpenCall, Referent, cursor_context};
use lsp_types::{
    CompletionItem, CompletionItemKind, CompletionList, CompletionTextEdit, Documentation, MarkupContent, MarkupKind,
    ParameterInformation, ParameterLabel, Range, SignatureHelp, SignatureInformation, TextEdit,
};
use std::borrow::Cow;
use std::collections::HashSet;

/// The words that may begin a statement. The words that may begin a value are in `VALUES`.
const STATEMENTS: &[&str] = &["input", "let", "fn", "output", "extern fn", "use", "table", "tile", "test"];
const VALUES: &[&str] = &["if", "not", "true", "false", "present", "missing", "inf", "nan", "fn", "let"];
/// The words that may follow a value.
const OPERATORS: &[&str] = &["then", "else", "and", "or", "in", "not in"];

/// The most names that one list of completions contains.
const MOST: usize = 1_000;

/// The group of an item in the list of completions. Items are sorted by group, in the order of the variants.
#[derive(Clone, Copy)]
enum Rank {
    Argument,
    Name,
    Word,
    Operator,
}

/// The completions for the word at the byte index `byte` of the text. If more than `MOST` names are in scope, only names that
/// contain the word are listed; the list is marked as incomplete, so that the editor asks again after more letters.
pub(crate) fn complete(analysis: &Analysis, byte: usize) -> CompletionList {
    let context = context(analysis, byte);
    let range = analysis.range(Span::new(context.word.start, context.word.end));
    let list = List { range, items: Vec::new(), is_incomplete: false };
    let list = match context.expected {
        ExpectedAt::Nothing => list,
        ExpectedAt::Statement => list.words(STATEMENTS).values(analysis, &context),
        ExpectedAt::Operand => list.arguments(analysis, &context).values(analysis, &context),
        ExpectedAt::Operator => list.words(OPERATORS),
        ExpectedAt::Type => list.types(),
    };
    CompletionList { is_incomplete: list.is_incomplete, items: list.items }
}

/// The syntactic context of a byte of the text.
fn context(analysis: &Analysis, byte: usize) -> CursorContext {
    cursor_context(analysis.text(), analysis.statement_start(byte), byte)
}

/// Returns the completion `item` with the documentation of its operator. A completion item that is not an operator is returned unchanged.
pub(crate) fn resolve(mut item: CompletionItem) -> CompletionItem {
    let is_operator = item.kind == Some(CompletionItemKind::FUNCTION) && item.documentation.is_none();
    if let Some(def) = is_operator.then(|| operator(&item.label)).flatten() {
        let value = reference::entry(def);
        item.documentation = Some(Documentation::MarkupContent(MarkupContent { kind: MarkupKind::Markdown, value }));
    }
    item
}

/// The signature of the call around the byte index `byte` of the text; `None` outside of calls.
pub(crate) fn signature(analysis: &Analysis, byte: usize) -> Option<SignatureHelp> {
    let call = context(analysis, byte).call?;
    let callee = callee(analysis, &call)?;
    let count = callee.parameters.len();
    let active = if callee.variadic { call.argument.min(count.saturating_sub(1)) } else { call.argument };
    let active = u32::try_from(active).ok().filter(|active| (*active as usize) < count);
    let parameters = callee
        .parameters
        .into_iter()
        .map(|name| ParameterInformation { label: ParameterLabel::Simple(name), documentation: None });
    let information = SignatureInformation {
        label: callee.form,
        documentation: callee.summary.map(|summary| Documentation::String(summary.into_owned())),
        parameters: Some(parameters.collect()),
        active_parameter: active,
    };
    Some(SignatureHelp { signatures: vec![information], active_signature: Some(0), active_parameter: active })
}

/// The called function, as an editor shows it.
struct Callee {
    form: String,
    parameters: Vec<String>,
    variadic: bool,
    summary: Option<Cow<'static, str>>,
}

/// The function of a call: a function of the text, or an operator. `None` if it is not known.
fn callee(analysis: &Analysis, call: &OpenCall) -> Option<Callee> {
    let written = analysis.text_at(call.callee);
    // The text may have been parsed differently before the bracket was written.
    let names = analysis.names();
    let byte = call.callee.start;
    let known = match names.at(byte).filter(|(span, _)| *span == call.callee) {
        Some((_, Referent::Name(name))) => names.named_at(name),
        _ => names.known_at(byte, own_length(analysis)).filter(|one| analysis.text_at(one.name) == written).last(),
    };
    if let Some(function) = known.filter(|one| matches!(one.kind, NameKind::Function | NameKind::Extern)) {
        let within = |at: Span| function.signature.start <= at.start && at.end <= function.signature.end;
        let parameters = names.names().iter().filter(|one| one.kind == NameKind::Parameter && within(one.name));
        return Some(Callee {
            form: analysis.text_at(function.signature).to_owned(),
            parameters: parameters.map(|one| analysis.text_at(one.name).to_owned()).collect(),
            variadic: false,
            summary: None,
        });
    }
    if let Some(tensor) = known.and_then(|known| labelled(analysis, known)) {
        return Some(tensor);
    }
    if let Some(block) = block(analysis, call) {
        return Some(block);
    }
    let def = operator(written.strip_prefix("M.").unwrap_or(written))?;
    Some(Callee {
        form: reference::call_form(def),
        parameters: def.params.iter().map(|param| param.name.to_owned()).collect(),
        variadic: def.variadic,
        summary: Some(def.summary.into()),
    })
}

/// The signature of the method `block`, after `a("i,j").block(`. Its parameters are the two lists; the tensor before the dot is not a parameter.
fn block(analysis: &Analysis, call: &OpenCall) -> Option<Callee> {
    let def = operator(BLOCK)?;
    let method = BLOCK.rsplit('.').next().unwrap_or(BLOCK);
    let is_method =
        analysis.text_at(call.callee) == method && analysis.text_before(call.callee).trim_end().ends_with('.');
    let parameters: Vec<String> = def.params.iter().skip(1).map(|param| param.name.to_owned()).collect();
    is_method.then(|| Callee {
        form: format!("{method}({})", parameters.join(", ")),
        parameters,
        variadic: false,
        summary: Some(def.summary.into()),
    })
}

/// The signature of a tensor with labels, such as `a("i,j")`; `None` if the name does not stand for a tensor.
fn labelled(analysis: &Analysis, known: &NamedPlace) -> Option<Callee> {
    let declared = || analysis.input(known.name)?.qtype.as_ref();
    let qtype = analysis.type_of(known).or_else(declared)?;
    let QType::Tensor(_, rank) = qtype else { return None };
    // One letter per axis; a tensor has at most 16 axes.
    let letters: Vec<String> = ('i'..='z').take(usize::from(*rank)).map(String::from).collect();
    let labels = format!("\"{}\"", letters.join(","));
    Some(Callee {
        form: format!("{}({labels})", analysis.text_at(known.name)),
        parameters: vec![labels],
        variadic: false,
        summary: Some(format!("{}: a label for each axis", print_type(qtype)).into()),
    })
}

fn own_length(analysis: &Analysis) -> u32 {
    u32::try_from(analysis.text().len()).unwrap_or(u32::MAX)
}

/// A list of completion items, each of which may replace the word before the cursor.
struct List {
    range: Range,
    items: Vec<CompletionItem>,
    is_incomplete: bool,
}

impl List {
    fn push(&mut self, label: &str, kind: CompletionItemKind, rank: Rank, detail: Option<String>) {
        self.items.push(CompletionItem {
            label: label.to_owned(),
            kind: Some(kind),
            detail,
            sort_text: Some(format!("{}{label}", rank as u8)),
            text_edit: Some(CompletionTextEdit::Edit(TextEdit::new(self.range, label.to_owned()))),
            ..CompletionItem::default()
        });
    }

    fn words(mut self, words: &[&str]) -> List {
        for word in words {
            self.push(word, CompletionItemKind::KEYWORD, Rank::Word, None);
        }
        self
    }

    fn types(mut self) -> List {
        for scalar in cembra::Scalar::ALL.into_iter().filter(|scalar| *scalar != cembra::Scalar::WeakFloat) {
            self.push(scalar.short_name(), CompletionItemKind::TYPE_PARAMETER, Rank::Word, None);
        }
        for rank in 1..=2 {
            let tensor = print_type(&QType::Tensor(cembra::Scalar::Float64, rank));
            let detail = if rank == 1 { "a tensor of one axis" } else { "a tensor of two axes" };
            self.push(&tensor, CompletionItemKind::TYPE_PARAMETER, Rank::Word, Some(detail.to_owned()));
        }
        self
    }

    /// Adds the names of a call's arguments to the list of completions.
    fn arguments(mut self, analysis: &Analysis, context: &CursorContext) -> List {
        let call = context.call.filter(|call| call.begins);
        if let Some(callee) = call.and_then(|call| callee(analysis, &call)) {
            for name in callee.parameters.iter().filter(|name| !name.starts_with('*')) {
                self.push(&format!("{name}="), CompletionItemKind::FIELD, Rank::Argument, None);
            }
        }
        self
    }

    /// Adds everything that an expression can begin with: names, operators and words.
    fn values(mut self, analysis: &Analysis, context: &CursorContext) -> List {
        let mut seen: HashSet<&str> = HashSet::new();
        // A name is not in scope inside of the statement that defines it.
        let statement = analysis.statement_start(context.word.start as usize);
        let is_here = |name: &NamedPlace| name.whole.start as usize == statement && !name.kind.is_local();
        let goes_on = context.expected != ExpectedAt::Statement;
        let known = analysis.names().known_at(context.word.start, own_length(analysis));
        let known: Vec<_> = known.filter(|name| !(goes_on && is_here(name))).collect();
        // Of equal names the innermost is listed.
        let word = analysis.text_at(context.word);
        let are_many = known.len() > MOST;
        for name in known.into_iter().rev() {
            let written = analysis.text_at(name.name);
            let is_text = written.starts_with(['"', '\'']);
            if name.kind == NameKind::Leaf || is_text || are_many && !written.contains(word) || !seen.insert(written) {
                continue;
            }
            if seen.len() > MOST {
                break;
            }
            let kind = match name.kind {
                NameKind::Function | NameKind::Extern => CompletionItemKind::METHOD,
                NameKind::Let | NameKind::Local | NameKind::Table => CompletionItemKind::CONSTANT,
                _ => CompletionItemKind::VARIABLE,
            };
            self.push(written, kind, Rank::Name, Some(declaration(analysis, name)));
        }
        self.is_incomplete |= are_many;
        let mut list = self.words(VALUES);
        for (name, def) in reference::names(Registry::standard()) {
            let detail = if name == def.name { String::new() } else { format!("{}: ", def.name) };
            let detail = format!("{detail}{}", reference::headline(def));
            list.push(name, CompletionItemKind::FUNCTION, Rank::Operator, Some(detail));
        }
        list
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::positions::Encoding;
    use cembra::Limits;
    use cembra::program::Sources;
    use std::collections::BTreeSet;

    fn analysis(text: &str) -> Analysis {
        Analysis::of(Sources::alone("m.cem", text), BTreeSet::new(), &Limits::default(), Encoding::Utf8)
    }

    /// The names of the text that may be completed at a byte, the innermost first.
    fn names(text: &str, at: usize) -> Vec<String> {
        let items = complete(&analysis(text), at).items.into_iter();
        items
            .filter(|item| item.sort_text.as_deref().is_some_and(|key| key.starts_with('1')))
            .map(|item| item.label)
            .collect()
    }

    #[test]
    fn names_are_known_where_they_may_be_used() {
        let text = "fn f(p) = p * 2\nlet y = (let q = 1 in q + 1) + 2\noutput z = y";
        let at = |part: &str| text.find(part).unwrap() + part.len();
        assert_eq!(names(text, at("= p")), ["p"]);
        assert_eq!(names(text, at("in q")), ["q", "f"]);
        assert_eq!(names(text, at(") + ")), ["f"]);
        assert_eq!(names(text, at("z = y")), ["y", "f"]);
        let text = "let x = 1\nlet g = fn(a) = (let x = 2.0 in a * x)\noutput y = x + ";
        let detail = |byte: usize| {
            let mut items = complete(&analysis(text), byte).items.into_iter();
            items.find(|item| item.label == "x").and_then(|item| item.detail)
        };
        assert_eq!(names(text, text.find(" * x").unwrap() + 4), ["x", "a"]);
        assert_eq!(detail(text.find(" * x").unwrap() + 4).as_deref(), Some("let x: f64"));
        assert_eq!(names(text, text.len()), ["g", "x"]);
        assert_eq!(detail(text.len()).as_deref(), Some("let x: i32"));
    }

    #[test]
    fn many_names_are_told_by_their_word() {
        let text: String =
            (0..3_000).map(|at| format!("let name{at} = {at}\n")).collect::<String>() + "output y = name299";
        let list = complete(&analysis(&text), text.len());
        assert!(list.is_incomplete);
        let found = names(&text, text.len());
        assert_eq!((found.len(), &*found[0], &*found[10]), (11, "name2999", "name299"));
        assert_eq!(names(&text, text.len() - 7).len(), MOST);
    }
}
