//! How problems look: with an excerpt of the source on a terminal, or as JSON. What is wrong is decided elsewhere; this
//! is the only place that knows of colours and columns.
//!
//! An excerpt shows the first line of each place pointed at, cut to 160 characters around it, so that a model of one
//! endless line gives a message of a few.

use crate::data::error::DataError;
use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer, Snippet, normalize_untrusted_str};
use cembra::{Diagnostic, Sources, Span};
use serde::Serialize;
use std::io::IsTerminal;
use std::ops::Range;

/// The longest excerpt of a line, in characters.
const EXCERPT_CHARS: usize = 160;

/// A model's text and its name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Source<'a> {
    /// The file's name, or what stands for it.
    pub(crate) name: &'a str,
    /// The texts: the model's own, and the files that it uses.
    pub(crate) sources: &'a Sources,
}

impl<'a> Source<'a> {
    /// The excerpt of a place, and what the text that it is of is called.
    fn excerpt(self, span: Span) -> (Excerpt<'a>, &'a str) {
        let place = self.sources.place(span);
        let is_main = self.sources.names().next() == Some(place.name);
        (Excerpt::of(place.text, place.span), if is_main { self.name } else { place.name })
    }
}

/// True if messages may be coloured: standard error is a terminal and `NO_COLOR` is not set.
pub(crate) fn stderr_takes_colour() -> bool {
    std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// The problems of a model for people. The notes, about the circumstances, stand under the last of them.
pub(crate) fn render(problems: &[Diagnostic], notes: &[String], source: Source<'_>, colour: bool) -> String {
    render_as(&Level::ERROR, problems, notes, source, colour)
}

/// The warnings of a model for people, and how many more there are.
pub(crate) fn render_warnings(warnings: &[Diagnostic], more: usize, source: Source<'_>, colour: bool) -> String {
    let notes = (more > 0).then(|| format!("there are {more} more warnings"));
    render_as(&Level::WARNING, warnings, notes.as_slice(), source, colour)
}

fn render_as(level: &Level<'_>, problems: &[Diagnostic], notes: &[String], source: Source<'_>, colour: bool) -> String {
    let renderer = renderer(colour);
    let shown = problems.iter().enumerate().map(|(index, one)| {
        let notes = if index + 1 == problems.len() { notes } else { &[] };
        renderer.render(&report(level, one, notes, source))
    });
    shown.collect::<Vec<_>>().join("\n\n")
}

/// A problem of the data for people.
pub(crate) fn render_data(error: &DataError, colour: bool) -> String {
    let message = match error.column() {
        Some(column) => format!("column `{column}`: {}", error.message()),
        None => error.message(),
    };
    let title = Level::ERROR.primary_title(message).id(error.code().as_str());
    let place = error.file().map(|file| {
        let origin = Origin::path(file);
        error.line().map_or(origin.clone(), |line| origin.line(usize::try_from(line).unwrap_or(usize::MAX)))
    });
    let group = place.map_or(Group::with_title(title.clone()), |place| title.element(place));
    renderer(colour).render(&[with_messages(group, &Level::HELP, error.hints())])
}

/// A problem for programs, of a model or of the data. The keys are written in this order.
#[derive(Serialize)]
#[serde(untagged)]
pub(crate) enum Told<'a> {
    Model {
        code: &'static str,
        message: &'a str,
        file: &'a str,
        at: Option<PlaceTold<'a>>,
        label: &'a str,
        others: Vec<LabelTold<'a>>,
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

#[derive(Serialize)]
pub(crate) struct PlaceTold<'a> {
    /// The file, if it is another than that of the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'a str>,
    line: usize,
    column: usize,
    start: u32,
    end: u32,
}

#[derive(Serialize)]
pub(crate) struct LabelTold<'a> {
    at: PlaceTold<'a>,
    text: &'a str,
}

/// The problems of a model for programs.
pub(crate) fn to_json<'a>(problems: &'a [Diagnostic], source: Source<'a>) -> Vec<Told<'a>> {
    problems.iter().map(|one| diagnostic_to_json(one, source)).collect()
}

/// A problem of the data for programs: a list of one.
pub(crate) fn data_to_json(error: &DataError) -> Vec<Told<'_>> {
    vec![Told::Data {
        code: error.code().as_str(),
        message: error.message(),
        file: error.file(),
        line: error.line(),
        data_column: error.column(),
        hints: error.hints(),
    }]
}

fn diagnostic_to_json<'a>(problem: &'a Diagnostic, source: Source<'a>) -> Told<'a> {
    let place = |span: Span| {
        let (start, file) = source.excerpt(span);
        PlaceTold {
            file: Some(file).filter(|file| *file != source.name),
            line: start.line,
            column: start.column,
            start: span.start,
            end: span.end,
        }
    };
    let labels = problem.others().iter().map(|label| LabelTold { at: place(label.span), text: &label.text });
    Told::Model {
        code: problem.code().as_str(),
        message: problem.message(),
        file: source.name,
        at: problem.span().map(place),
        label: problem.label_text(),
        others: labels.collect(),
        hints: problem.hints(),
    }
}

fn renderer(colour: bool) -> Renderer {
    let renderer = if colour { Renderer::styled() } else { Renderer::plain() };
    // Lines are cut here already, by the rule above.
    renderer.term_width(4 * EXCERPT_CHARS)
}

/// One problem as annotated excerpts: one group, but for an excerpt whose line is cut on the left. The library would
/// count the columns of the excerpt, so that one goes without a path into a group under an origin of its own.
fn report<'a>(level: &Level<'a>, problem: &'a Diagnostic, notes: &'a [String], source: Source<'a>) -> Vec<Group<'a>> {
    let primary = problem.span().map(|span| (span, AnnotationKind::Primary, problem.label_text()));
    let others = problem.others().iter().map(|label| (label.span, AnnotationKind::Context, label.text.as_str()));
    let places = primary.into_iter().chain(others);
    let mut places: Vec<_> = places.map(|(span, kind, text)| (source.excerpt(span), kind, text)).collect();

    let title = level.clone().primary_title(problem.message()).id(problem.code().as_str());
    let mut group = Group::with_title(title);
    if places.is_empty() {
        group = group.element(Origin::path(source.name));
    }
    let mut groups = Vec::new();
    while !places.is_empty() {
        // Everything that the excerpt of the first place shows goes into one picture.
        let (excerpt, name) = places[0].0.clone();
        let here: Vec<_>;
        (here, places) = places.into_iter().partition(|((other, file), ..)| *file == name && excerpt.shows(other));
        let annotations = here.into_iter().map(|((place, _), kind, text)| {
            let text = (!text.is_empty()).then(|| normalize_untrusted_str(text));
            kind.span(excerpt.shown(&place.bytes)).label(text)
        });
        let annotations: Vec<_> = annotations.collect();
        let snippet = Snippet::source(excerpt.text()).line_start(excerpt.line).annotations(annotations);
        if excerpt.mark().is_empty() {
            group = group.element(snippet.path(name));
        } else {
            let origin = Origin::path(name).line(excerpt.line).char_column(excerpt.column);
            groups.extend([group.element(origin), Group::with_level(level.clone()).element(snippet)]);
            group = Group::with_level(level.clone());
        }
    }
    group = with_messages(group, &Level::NOTE, notes);
    group = with_messages(group, &Level::HELP, problem.hints());
    if !group.is_empty() {
        groups.push(group);
    }
    groups
}

fn with_messages<'a>(mut group: Group<'a>, level: &Level<'a>, messages: &[String]) -> Group<'a> {
    for message in messages {
        group = group.element(level.clone().message(normalize_untrusted_str(message)));
    }
    group
}

/// The part of a line around a place.
#[derive(Clone, Debug)]
struct Excerpt<'a> {
    source: &'a str,
    /// The line, counted from 1.
    line: usize,
    /// The character of the line that the place starts at, counted from 1.
    column: usize,
    /// The place, as bytes of the source; ends with its first line.
    bytes: Range<usize>,
    /// What is shown of the line, as bytes of the source.
    window: Range<usize>,
    /// The whole line without its end, as bytes of the source.
    whole: Range<usize>,
}

impl<'a> Excerpt<'a> {
    fn of(source: &'a str, span: Span) -> Excerpt<'a> {
        let start = source.floor_char_boundary((span.start as usize).min(source.len()));
        let from = source[..start].rfind('\n').map_or(0, |newline| newline + 1);
        let to = source[start..].find('\n').map_or(source.len(), |newline| start + newline);
        let to = if source[from..to].ends_with('\r') { to - 1 } else { to };
        let start = start.min(to);
        let end = source.ceil_char_boundary(span.end as usize).clamp(start, to);
        // What is left of the width after the place itself, half before and half behind it.
        let place_chars = source[start..end].chars().take(EXCERPT_CHARS).count();
        let before = (EXCERPT_CHARS - place_chars) / 2;
        let line_before = source[from..start].chars().rev().take(before).map(char::len_utf8);
        let before_chars = line_before.clone().count();
        let first = start - line_before.sum::<usize>();
        let width = source[start..to].chars().take(EXCERPT_CHARS - before_chars).map(char::len_utf8);
        let last = start + width.sum::<usize>();
        Excerpt {
            source,
            line: source[..from].matches('\n').count() + 1,
            column: source[from..start].chars().count() + 1,
            bytes: start..end,
            window: first..last,
            whole: from..to,
        }
    }

    /// True if `other` starts within what is shown here.
    fn shows(&self, other: &Excerpt<'_>) -> bool {
        self.line == other.line && (self.window.start..=self.window.end).contains(&other.bytes.start)
    }

    /// What is shown, with marks where the line goes on.
    fn text(&self) -> String {
        let end = if self.window.end < self.whole.end { "…" } else { "" };
        format!("{}{}{end}", self.mark(), &self.source[self.window.clone()])
    }

    fn mark(&self) -> &'static str {
        if self.window.start > self.whole.start { "…" } else { "" }
    }

    /// Where bytes of the source lie in `text`.
    fn shown(&self, bytes: &Range<usize>) -> Range<usize> {
        let shift = |at: usize| at.clamp(self.window.start, self.window.end) - self.window.start + self.mark().len();
        shift(bytes.start)..shift(bytes.end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::error::DataCode;
    use cembra::Code;
    use serde_json::{json, to_value};

    fn shown(problem: Diagnostic, text: &str) -> String {
        render(&[problem], &[], Source { name: "model.cem", sources: &Sources::alone("model.cem", text) }, false)
    }

    #[test]
    fn a_problem_shows_its_lines_and_its_hints() {
        let text = "input x: f32\r\nlet y = x + é 'a'\r\noutput y";
        let problem = Diagnostic::new(Code::TypeMismatch, "math.add takes numbers")
            .at(Span::new(26, 32))
            .label("this is TEXT")
            .also(Span::new(22, 23), "this is FLOAT32")
            .also(Span::new(6, 7), "declared here")
            .hint("convert it")
            .hint("or not");
        assert_eq!(
            shown(problem, text),
            "\
error[type-mismatch]: math.add takes numbers
 --> model.cem:2:13
  |
2 | let y = x + é 'a'
  |         -   ^^^^^ this is TEXT
  |         |
  |         this is FLOAT32
  |
 ::: model.cem:1:7
  |
1 | input x: f32
  |       - declared here
  |
  = help: convert it
  = help: or not"
        );
    }

    #[test]
    fn a_place_may_be_nowhere_empty_or_many_lines() {
        let at = |span: Option<Span>| shown(Diagnostic::new(Code::NoOutput, "no output").at(span), "a b\n(\n)");
        assert_eq!(at(None), "error[no-output]: no output\n--> model.cem");
        assert_eq!(
            at(Some(Span::new(3, 3))),
            "error[no-output]: no output\n --> model.cem:1:4\n  |\n1 | a b\n  |    ^"
        );
        assert_eq!(at(Some(Span::new(4, 7))), "error[no-output]: no output\n --> model.cem:2:1\n  |\n2 | (\n  | ^");
        assert_eq!(at(Some(Span::new(7, 7))), "error[no-output]: no output\n --> model.cem:3:2\n  |\n3 | )\n  |  ^");
        // A span of another text is a mistake of ours, and still no reason to fall over.
        assert_eq!(at(Some(Span::new(70, 90))), at(Some(Span::new(7, 7))));
    }

    #[test]
    fn a_long_line_is_cut_around_the_place() {
        let text = format!("a\n{} + bad + {}\nz", "1".repeat(300), "2".repeat(1_000_000));
        let problem = Diagnostic::new(Code::UnknownName, "no name `bad`").at(Span::new(305, 308));
        let expected = format!(
            "error[unknown-name]: no name `bad`\n --> model.cem:2:304\n  |\n  |\n2 | …{} + bad + {}…\n  | {}^^^",
            "1".repeat(75),
            "2".repeat(76),
            " ".repeat(79),
        );
        assert_eq!(shown(problem, &text), expected);

        let whole = Diagnostic::new(Code::UnknownName, "all").at(Span::new(2, 1_000_000)).hint("less");
        let expected = format!(
            "error[unknown-name]: all\n --> model.cem:2:1\n  |\n2 | {}…\n  | {}\n  |\n  = help: less",
            "1".repeat(160),
            "^".repeat(160),
        );
        assert_eq!(shown(whole, &text), expected);
    }

    #[test]
    fn nothing_shown_can_steer_a_terminal() {
        let problem =
            Diagnostic::new(Code::NoOutput, "a\u{1b}[31m").at(Span::new(5, 6)).label("b\u{1b}[31m").hint("c\u{1b}[31m");
        let shown = shown(problem, "a b\n\tc\u{1b}[31m");
        assert!(!shown.contains('\u{1b}'), "{shown}");
        assert!(shown.contains("2 |     c␛[31m\n  |     ^ b␛[31m"), "{shown}");
    }

    #[test]
    fn colour_is_only_where_it_is_asked_for() {
        let problem = Diagnostic::new(Code::NoOutput, "no output");
        assert!(
            render(&[problem], &[], Source { name: "m", sources: &Sources::alone("m", "") }, true).contains('\u{1b}')
        );
    }

    #[test]
    fn notes_stand_under_the_last_problem() {
        let problems = [Diagnostic::new(Code::NoOutput, "one"), Diagnostic::new(Code::NoOutput, "two").hint("try")];
        assert_eq!(
            render(
                &problems,
                &["in row 3".to_owned()],
                Source { name: "m.cem", sources: &Sources::alone("m.cem", "") },
                false
            ),
            "error[no-output]: one\n--> m.cem\n\nerror[no-output]: two\n--> m.cem\n = note: in row 3\n = help: try"
        );
    }

    #[test]
    fn problems_of_data_show_the_file_and_the_line() {
        let error = DataError::new(DataCode::ColumnType, "expected FLOAT64, found `a`")
            .in_file("rows.csv")
            .on_line(3)
            .in_column("x")
            .hint("declare `input x: text?`");
        assert_eq!(
            render_data(&error, false),
            "error[column-type]: column `x`: expected FLOAT64, found `a`\n--> rows.csv:3\n = help: declare `input x: text?`"
        );
        assert_eq!(render_data(&DataError::new(DataCode::Io, "gone"), false), "error[io]: gone");
        assert_eq!(
            to_value(data_to_json(&error)).expect("it is JSON"),
            json!([{
                "code": "column-type",
                "message": "expected FLOAT64, found `a`",
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
            to_value(to_json(
                &[problem],
                Source { name: "model.cem", sources: &Sources::alone("model.cem", "a = 1\né a") }
            ))
            .expect("it is JSON"),
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
