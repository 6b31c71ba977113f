//! Conversion of a text's problems to diagnostics of the protocol. The library finds the problems, so their messages
//! are the same as in `cembra check`.

use crate::analysis::Analysis;
use cembra::errors::{Code, Diagnostic};
use lsp_types::{
    DiagnosticRelatedInformation, DiagnosticSeverity, DiagnosticTag, Location, NumberOrString, Range, Uri,
};

/// The source of a problem, as editors show it.
const SOURCE: &str = "cembra";

/// Converts the problems of a text and of the files that it uses to diagnostics, each with the name of the file that has the
/// problem. `uri` returns the address of a file by its name.
pub(crate) fn diagnostics_by_file(
    analysis: &Analysis,
    name: &str,
    uri: &dyn Fn(&str) -> Option<Uri>,
) -> Vec<(String, lsp_types::Diagnostic)> {
    let told = |problem: &Diagnostic| {
        let (file, range) = problem.span().map_or((name, Range::default()), |span| analysis.place(span));
        let related = problem.others().iter().filter_map(|label| {
            let (file, range) = analysis.place(label.span);
            let location = Location::new(uri(file)?, range);
            Some(DiagnosticRelatedInformation { location, message: label.text.clone() })
        });
        let related: Vec<_> = related.collect();
        let made = lsp_types::Diagnostic {
            range,
            severity: Some(severity(problem.code())),
            code: Some(NumberOrString::String(problem.code().as_str().to_owned())),
            source: Some(SOURCE.to_owned()),
            message: message(problem),
            related_information: (!related.is_empty()).then_some(related),
            tags: is_unnecessary(problem.code()).then(|| vec![DiagnosticTag::UNNECESSARY]),
            ..lsp_types::Diagnostic::default()
        };
        (file.to_owned(), made)
    };
    analysis.problems().iter().map(told).collect()
}

/// Returns true if `problem` says that the text has no output. In a text of definitions this is not a mistake, because other texts can use the
/// definitions.
pub(crate) fn is_without_output(problem: &lsp_types::Diagnostic) -> bool {
    matches!(&problem.code, Some(NumberOrString::String(code)) if code == Code::NoOutput.as_str())
}

fn severity(code: Code) -> DiagnosticSeverity {
    match code {
        Code::NoOutput => DiagnosticSeverity::INFORMATION,
        _ if code.is_warning() => DiagnosticSeverity::WARNING,
        _ => DiagnosticSeverity::ERROR,
    }
}

/// Returns true for code that has no effect, which editors show paler.
fn is_unnecessary(code: Code) -> bool {
    matches!(code, Code::UnusedLet | Code::UnreachableBranch)
}

/// The message, the text at the place, and the hints, each on a line.
fn message(problem: &Diagnostic) -> String {
    let mut text = problem.message().to_owned();
    if !problem.label_text().is_empty() {
        text = format!("{text}\n{}", problem.label_text());
    }
    problem.hints().iter().fold(text, |text, hint| format!("{text}\nhelp: {hint}"))
}
