//! Prints problems (errors and warnings) for the command: as text, with colours on a terminal, or as JSON. Problems with models are rendered by the
//! library.

use annotate_snippets::{Group, Level, Origin};
use cembra::errors::{Diagnostic, Renderer, Span};
use cembra::program::Sources;
use cembra_runtime::visible;
use cembra_table::error::DataError;
use serde::Serialize;
use std::io::IsTerminal;

/// Returns true if messages may be coloured: standard error is a terminal and `NO_COLOR` is not set.
pub(crate) fn stderr_takes_colour() -> bool {
    std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// The renderer for problems with models. With `colour`, the text has colours.
pub(crate) fn renderer(colour: bool) -> Renderer {
    if colour { Renderer::styled() } else { Renderer::plain() }
}

/// Renders `warnings` about a model as text, followed by the number `more` of warnings that are not listed.
pub(crate) fn render_warnings(warnings: &[Diagnostic], more: usize, source: &Sources, colour: bool) -> String {
    let notes = (more > 0).then(|| format!("there are {more} more warnings"));
    renderer(colour).warnings(warnings, notes.as_slice(), source)
}

/// Renders an error about data (a file, a column, a row) as text.
pub(crate) fn render_data(error: &DataError, colour: bool) -> String {
    let message = match error.column() {
        Some(column) => format!("column `{}`: {}", visible(column), error.message()),
        None => error.message(),
    };
    let title = Level::ERROR.primary_title(message).id(error.code().as_str());
    let place = error.file().map(|file| {
        let origin = Origin::path(visible(file));
        error.line().map_or(origin.clone(), |line| origin.line(usize::try_from(line).unwrap_or(usize::MAX)))
    });
    let group = place.map_or(Group::with_title(title.clone()), |place| title.element(place));
    let hints = error.hints().iter().map(|hint| Level::HELP.message(visible(hint)));
    let renderer = if colour { annotate_snippets::Renderer::styled() } else { annotate_snippets::Renderer::plain() };
    renderer.render(&[group.elements(hints)])
}

/// A problem with a model or with data, in the form for JSON. The keys are written in the order of the fields.
#[derive(Serialize)]
#[serde(untagged)]
pub(crate) enum ProblemJson<'a> {
    Model {
        code: &'static str,
        message: &'a str,
        file: &'a str,
        at: Option<PlaceJson<'a>>,
        label: &'a str,
        others: Vec<LabelJson<'a>>,
        hints: &'a [String],
    },
    Data {
        code: &'static str,
        message: String,
        file: Option<&'a str>,
        line: Option<u64>,
        data_column: Option<&'a str>,
        hints: &'a [String],
    },
}

/// A place in the text of a model, in the form for JSON.
#[derive(Serialize)]
pub(crate) struct PlaceJson<'a> {
    /// The name of the file that has the place; `None` if it is the model's own text.
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'a str>,
    line: usize,
    column: usize,
    start: u32,
    end: u32,
}

/// A label of a problem at a place in the text, in the form for JSON.
#[derive(Serialize)]
pub(crate) struct LabelJson<'a> {
    at: PlaceJson<'a>,
    text: &'a str,
}

/// Converts `problems` with a model to the form for JSON. `source` has the text that they are in.
pub(crate) fn to_json<'a>(problems: &'a [Diagnostic], source: &'a Sources) -> Vec<ProblemJson<'a>> {
    problems.iter().map(|one| diagnostic_to_json(one, source)).collect()
}

/// Converts an error about data to the form for JSON: a list with one problem.
pub(crate) fn data_to_json(error: &DataError) -> Vec<ProblemJson<'_>> {
    vec![ProblemJson::Data {
        code: error.code().as_str(),
        message: error.message(),
        file: error.file(),
        line: error.line(),
        data_column: error.column(),
        hints: error.hints(),
    }]
}

fn diagnostic_to_json<'a>(problem: &'a Diagnostic, source: &'a Sources) -> ProblemJson<'a> {
    let main = source.names().next().unwrap_or_default();
    let place = |span: Span| {
        let place = source.place(span);
        let (line, column) = place.line_and_column();
        PlaceJson {
            file: Some(place.name).filter(|file| *file != main),
            line,
            column,
            start: span.start,
            end: span.end,
        }
    };
    let labels = problem.others().iter().map(|label| LabelJson { at: place(label.span), text: &label.text });
    ProblemJson::Model {
        code: problem.code().as_str(),
        message: problem.message(),
        file: main,
        at: problem.span().map(place),
        label: problem.label_text(),
        others: labels.collect(),
        hints: problem.hints(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cembra::errors::Code;
    use cembra_table::error::DataCode;
    use serde_json::{json, to_value};

    #[test]
    fn problems_of_data_show_the_file_and_the_line() {
        let error = DataError::new(DataCode::ColumnType, "expected f64, found `a`")
            .in_file("rows.csv")
            .on_line(3)
            .in_column("x")
            .hint("declare `input x: text?`");
        assert_eq!(
            render_data(&error, false),
            "error[column-type]: column `x`: expected f64, found `a`\n--> rows.csv:3\n = help: declare `input x: text?`"
        );
        assert_eq!(render_data(&DataError::new(DataCode::Io, "gone"), false), "error[io]: gone");
        assert_eq!(
            to_value(data_to_json(&error)).expect("it is JSON"),
            json!([{
                "code": "column-type",
                "message": "expected f64, found `a`",
                "file": "rows.csv",
                "line": 3,
                "data_column": "x",
                "hints": ["declare `input x: text?`"],
            }])
        );
    }

    #[test]
    fn programs_get_every_place_as_numbers() {
        let problem =
            Diagnostic::new(Code::Name, "twice").at(Span::new(7, 8)).label("again").also(Span::new(0, 1), "first");
        assert_eq!(
            to_value(to_json(&[problem], &Sources::alone("model.cem", "a = 1\né a"))).expect("it is JSON"),
            json!([{
                "code": "name",
                "message": "twice",
                "file": "model.cem",
                "at": { "line": 2, "column": 1, "start": 7, "end": 8 },
                "label": "again",
                "others": [{ "at": { "line": 1, "column": 1, "start": 0, "end": 1 }, "text": "first" }],
                "hints": [],
            }])
        );
    }
}
