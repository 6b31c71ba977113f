//! The outline of a text: the names that its statements define, and its tests.

use crate::analysis::Analysis;
use crate::hover::declaration;
use cembra::errors::Span;
use cembra_expr::NameKind;
use lsp_types::{DocumentSymbol, SymbolKind};

/// The outline of the main text: the names that its statements define, and its tests, in their order.
pub(crate) fn symbols(analysis: &Analysis) -> Vec<DocumentSymbol> {
    let is_listed = |kind: NameKind| !kind.is_local() && kind != NameKind::Leaf;
    let names = analysis.names().names().iter().filter(|name| is_listed(name.kind) && analysis.is_own(name.name));
    let mut found: Vec<(Span, DocumentSymbol)> = Vec::new();
    for name in names {
        let kind = match name.kind {
            NameKind::Function | NameKind::Extern => SymbolKind::FUNCTION,
            NameKind::Input => SymbolKind::VARIABLE,
            NameKind::Table => SymbolKind::ARRAY,
            NameKind::Output => SymbolKind::PROPERTY,
            _ => SymbolKind::CONSTANT,
        };
        let detail = declaration(analysis, name);
        found.push((name.name, symbol(analysis, name.name, name.whole, kind, Some(detail))));
    }
    for test in analysis.program().tests.iter().filter(|test| analysis.is_own(test.span)) {
        found.push((test.span, symbol(analysis, test.span, test.span, SymbolKind::METHOD, None)));
    }
    found.sort_by_key(|(span, _)| *span);
    found.into_iter().map(|(_, symbol)| symbol).collect()
}

#[expect(deprecated, reason = "the type has no other constructor")]
fn symbol(analysis: &Analysis, name: Span, whole: Span, kind: SymbolKind, detail: Option<String>) -> DocumentSymbol {
    DocumentSymbol {
        name: analysis.text_at(name).to_owned(),
        detail,
        kind,
        tags: None,
        deprecated: None,
        range: analysis.range(whole.to(name)),
        selection_range: analysis.range(name),
        children: None,
    }
}
