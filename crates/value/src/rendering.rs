//! The rendering of problems for people: excerpts of the texts, marks below the spans, and hints. Problems are found
//! elsewhere; only this file deals with colours and cuts long lines.
//!
//! An excerpt shows the first line of each span, cut to 160 characters around the span, so that a model of one endless
//! line gives a short message.

use crate::texts::{SourcePlace, Texts};
use crate::{Diagnostic, Span};
use annotate_snippets::{AnnotationKind, Group, Level, Origin, Padding, Snippet};
use cembra_runtime::{visible, visible_lines};
use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

/// The name that messages give to a model or a text without a name.
pub const UNNAMED: &str = "model";

/// The most characters of a line in an excerpt.
const EXCERPT_CHARS: usize = 160;

/// The source of problems: the texts that a model was read from, with their names.
///
/// A source is made from a `Model`, from its text, or from `Sources`:
///
/// ```
/// use cembra::errors::Source;
/// use cembra::Model;
///
/// let text = "output y = x +";
/// let error = Model::parse(text).unwrap_err();
/// assert_eq!(error.render(Source::new("rules/y.cem", text)).lines().nth(1), Some(" --> rules/y.cem:1:15"));
/// assert_eq!(error.render(text).lines().nth(1), Some(" --> model:1:15"));
/// ```
#[derive(Clone, Debug)]
pub struct Source<'s> {
    texts: Cow<'s, Texts>,
    /// False if the source has no text to show, because the model was not read from text.
    is_text: bool,
}

impl<'s> Source<'s> {
    /// Returns a source with one text. `name` is the name of a file or a similar name.
    #[must_use]
    pub fn new(name: &str, text: &str) -> Source<'s> {
        Source { texts: Cow::Owned(Texts::alone(name, text)), is_text: true }
    }

    /// Returns a source without text, called `name`.
    pub fn without_text(name: &str) -> Source<'s> {
        Source { is_text: false, ..Source::new(name, "") }
    }

    /// Returns the text that `span` belongs to, and the span in that text.
    #[doc(hidden)]
    pub fn place(&self, span: Span) -> SourcePlace<'_> {
        self.texts.place(span)
    }

    /// The excerpt for a place, and the name of its text.
    fn excerpt(&self, span: Span) -> (Excerpt<'_>, Cow<'_, str>) {
        let place = self.texts.place(span);
        (Excerpt::of(place), shown_name(place.name))
    }
}

impl<'s> From<&'s Texts> for Source<'s> {
    fn from(texts: &'s Texts) -> Self {
        Source { texts: Cow::Borrowed(texts), is_text: true }
    }
}

impl From<&str> for Source<'_> {
    fn from(text: &str) -> Self {
        Source::new("", text)
    }
}

fn shown_name(name: &str) -> Cow<'_, str> {
    visible(if name.is_empty() { UNNAMED } else { name })
}

/// Renders problems and warnings as text for people.
///
/// ```
/// use cembra::errors::Renderer;
/// use cembra::{Model, Options};
///
/// let model = Model::parse("input x: f64?; if x == missing then 0.0 else 1.0")?.named("unknown.cem");
/// let shown = Renderer::plain().warnings(model.warnings(&Options::default()).as_slice(), &[], &model);
/// assert!(shown.starts_with("warning[missing-comparison]: ") && shown.contains(" --> unknown.cem:1:19"));
/// # Ok::<(), cembra::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Renderer(annotate_snippets::Renderer);

impl Renderer {
    /// Returns a renderer for plain text, as for logs and files.
    #[must_use]
    pub fn plain() -> Renderer {
        Renderer::of(annotate_snippets::Renderer::plain())
    }

    /// Returns a renderer for text with colours, for terminals that support them.
    #[must_use]
    pub fn styled() -> Renderer {
        Renderer::of(annotate_snippets::Renderer::styled())
    }

    fn of(renderer: annotate_snippets::Renderer) -> Renderer {
        // Lines are cut here already, so the library must not cut them.
        Renderer(renderer.term_width(4 * EXCERPT_CHARS))
    }

    /// Renders problems, with an empty line between them. The `notes` about the circumstances come after the last
    /// problem.
    #[must_use]
    pub fn errors<'s>(&self, problems: &[Diagnostic], notes: &[String], source: impl Into<Source<'s>>) -> String {
        self.render(&Level::ERROR, problems, notes, &source.into())
    }

    /// Renders warnings, with an empty line between them. The `notes` about the circumstances come after the last
    /// warning.
    #[must_use]
    pub fn warnings<'s>(&self, warnings: &[Diagnostic], notes: &[String], source: impl Into<Source<'s>>) -> String {
        self.render(&Level::WARNING, warnings, notes, &source.into())
    }

    fn render(&self, level: &Level<'_>, problems: &[Diagnostic], notes: &[String], source: &Source<'_>) -> String {
        let shown = problems.iter().enumerate().map(|(index, one)| {
            let notes = if index + 1 == problems.len() { notes } else { &[] };
            let shown = self.0.render(&report(level, one, notes, source));
            // The empty line of the group before a line that is cut.
            match shown.strip_prefix('\n') {
                Some(shown) => shown.to_owned(),
                None => shown,
            }
        });
        shown.collect::<Vec<_>>().join("\n\n")
    }
}

/// Displays a span of a model's text in one line: the file, the line, the column, and the text at the span.
pub struct Expression<'t>(SourcePlace<'t>);

impl<'t> Expression<'t> {
    pub(crate) fn at(place: SourcePlace<'t>) -> Self {
        Expression(place)
    }
}

impl fmt::Display for Expression<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (place, (line, column)) = (self.0, self.0.line_and_column());
        match place.name {
            "" => write!(f, "line {line}, column {column}")?,
            name => write!(f, "{}:{line}:{column}", visible(name))?,
        }
        place.quoted().map_or(Ok(()), |quoted| write!(f, ": `{quoted}`"))
    }
}

/// Makes the annotated excerpts of one problem, as one group where possible. An excerpt whose line is cut on the left
/// gets a group of its own, with an explicit origin (name, line and column), because the library would count columns
/// from the start of the excerpt. The library separates the first group from the others, so an empty group comes first
/// in this case, and the lines between excerpts and messages are written explicitly.
fn report<'a>(
    level: &Level<'a>,
    problem: &'a Diagnostic,
    notes: &'a [String],
    source: &'a Source<'_>,
) -> Vec<Group<'a>> {
    let primary = problem.span().map(|span| (span, AnnotationKind::Primary, problem.label_text()));
    let others = problem.others().iter().map(|label| (label.span, AnnotationKind::Context, label.text.as_str()));
    let places = primary.into_iter().chain(others).filter(|_| source.is_text);
    let mut places: Vec<_> = places.map(|(span, kind, text)| (source.excerpt(span), kind, text)).collect();

    let title = level.clone().primary_title(visible(problem.message())).id(problem.code().as_str());
    let mut group = Group::with_title(title);
    if places.is_empty() {
        group = group.element(Origin::path(shown_name(source.texts.names().next().unwrap_or_default())));
    }
    let mut groups = Vec::new();
    while !places.is_empty() {
        // All places that the excerpt of the first place shows are put into one snippet.
        let (excerpt, name) = places[0].0.clone();
        let here: Vec<_>;
        (here, places) = places.into_iter().partition(|((other, file), ..)| *file == name && excerpt.shows(other));
        let annotations = here.into_iter().map(|((place, _), kind, text)| {
            let text = (!text.is_empty()).then(|| visible(text));
            kind.span(excerpt.shown(&place.bytes)).label(text)
        });
        let annotations: Vec<_> = annotations.collect();
        let snippet = Snippet::source(excerpt.text()).line_start(excerpt.line).annotations(annotations);
        if excerpt.mark().is_empty() {
            group = group.element(snippet.path(name.clone()));
        } else {
            let origin = Origin::path(name).line(excerpt.line).char_column(excerpt.column);
            if groups.is_empty() {
                groups.push(Group::with_level(level.clone()));
            }
            groups.push(group.element(origin));
            group = Group::with_level(level.clone()).element(snippet);
        }
    }
    if !groups.is_empty() && notes.len() + problem.hints().len() > 0 {
        group = group.element(Padding);
    }
    group = with_messages(group, &Level::NOTE, notes);
    group = with_messages(group, &Level::HELP, problem.hints());
    groups.push(group);
    groups
}

fn with_messages<'a>(mut group: Group<'a>, level: &Level<'a>, messages: &'a [String]) -> Group<'a> {
    for message in messages {
        group = group.element(level.clone().message(visible(message)));
    }
    group
}

/// The part of a line around a place in the text, which a message shows.
#[derive(Clone, Debug)]
struct Excerpt<'a> {
    source: &'a str,
    /// The number of the line that contains the place, counted from 1.
    line: usize,
    /// The column of the place's start in characters, counted from 1.
    column: usize,
    /// The place as a range of bytes of the source, up to the end of its first line.
    bytes: Range<usize>,
    /// The part of the line that is shown, as a range of bytes of the source.
    window: Range<usize>,
    /// The line without its line end, as a range of bytes of the source.
    whole: Range<usize>,
}

impl<'a> Excerpt<'a> {
    fn of(place: SourcePlace<'a>) -> Excerpt<'a> {
        let SourcePlace { text: source, span, .. } = place;
        let (line, column) = place.line_and_column();
        let start = source.floor_char_boundary((span.start as usize).min(source.len()));
        let Range { start: from, end: to } = place.line(line);
        let start = start.min(to);
        let end = source.ceil_char_boundary(span.end as usize).clamp(start, to);
        // The width that the place leaves is divided between the text before and after it.
        let place_chars = source[start..end].chars().take(EXCERPT_CHARS).count();
        let before = (EXCERPT_CHARS - place_chars) / 2;
        let line_before = source[from..start].chars().rev().take(before).map(char::len_utf8);
        let before_chars = line_before.clone().count();
        let first = start - line_before.sum::<usize>();
        let width = source[start..to].chars().take(EXCERPT_CHARS - before_chars).map(char::len_utf8);
        let last = start + width.sum::<usize>();
        Excerpt { source, line, column, bytes: start..end, window: first..last, whole: from..to }
    }

    /// Returns true if `other` starts within the part that is shown.
    fn shows(&self, other: &Excerpt<'_>) -> bool {
        self.line == other.line && (self.window.start..=self.window.end).contains(&other.bytes.start)
    }

    /// The part that is shown, with marks where the line continues.
    fn text(&self) -> String {
        let end = if self.window.end < self.whole.end { "…" } else { "" };
        format!("{}{}{end}", self.mark(), visible_lines(&self.source[self.window.clone()]))
    }

    fn mark(&self) -> &'static str {
        if self.window.start > self.whole.start { "…" } else { "" }
    }

    /// The range in the result of `text` that corresponds to a range of bytes of the source.
    fn shown(&self, bytes: &Range<usize>) -> Range<usize> {
        let shift = |at: usize| {
            let before = &self.source[self.window.start..at.clamp(self.window.start, self.window.end)];
            self.mark().len() + visible_lines(before).len()
        };
        shift(bytes.start)..shift(bytes.end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Code;

    fn shown(problem: Diagnostic, text: &str) -> String {
        Renderer::plain().errors(&[problem], &[], Source::new("model.cem", text))
    }

    #[test]
    fn a_problem_shows_its_lines_and_its_hints() {
        let text = "input x: f32\r\nlet y = x + é 'a'\r\noutput y";
        let problem = Diagnostic::new(Code::TypeMismatch, "math.add takes numbers")
            .at(Span::new(26, 32))
            .label("this is text")
            .also(Span::new(22, 23), "this is f32")
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
  |         -   ^^^^^ this is text
  |         |
  |         this is f32
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
        // A span of another text is a bug, but must not cause a panic.
        assert_eq!(at(Some(Span::new(70, 90))), at(Some(Span::new(7, 7))));
    }

    #[test]
    fn a_long_line_is_cut_around_the_place() {
        let text = format!("a\n{} + bad + {}\nz", "1".repeat(300), "2".repeat(1_000_000));
        let problem = Diagnostic::new(Code::UnknownName, "no name `bad`").at(Span::new(305, 308));
        let expected = format!(
            "error[unknown-name]: no name `bad`\n --> model.cem:2:304\n  |\n2 | …{} + bad + {}…\n  | {}^^^",
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
        let text = "a b\n\tc\u{1b}[31m\u{9b}2J\u{202e}é";
        let shown = Renderer::plain().errors(&[problem], &[], Source::new("m\u{9b}.cem", text));
        assert_eq!(
            shown,
            "\
error[no-output]: a\\u{1b}[31m
 --> m\\u{9b}.cem:2:2
  |
2 |     c\\u{1b}[31m\\u{9b}2J\\u{202e}é
  |     ^ b\\u{1b}[31m
  |
  = help: c\\u{1b}[31m"
        );
        // Marks stay below their places, even after characters that are shown as several.
        let behind = Diagnostic::new(Code::NoOutput, "é").at(Span::new(19, 21));
        let shown = Renderer::plain().errors(&[behind], &[], Source::new("m.cem", text));
        let lines: Vec<&str> = shown.lines().collect();
        assert_eq!(lines[3].find('é'), lines[4].find('^'), "{shown}");
    }

    #[test]
    fn colour_is_only_where_it_is_asked_for() {
        let problem = Diagnostic::new(Code::NoOutput, "no output");
        assert!(Renderer::styled().errors(&[problem], &[], "").contains('\u{1b}'));
    }

    #[test]
    fn notes_stand_under_the_last_problem() {
        let problems = [Diagnostic::new(Code::NoOutput, "one"), Diagnostic::new(Code::NoOutput, "two").hint("try")];
        assert_eq!(
            Renderer::plain().errors(&problems, &["in row 3".to_owned()], Source::new("m.cem", "")),
            "error[no-output]: one\n--> m.cem\n\nerror[no-output]: two\n--> m.cem\n = note: in row 3\n = help: try"
        );
    }
}
