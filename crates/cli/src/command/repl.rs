//! `cembra repl`: an interactive session on a terminal, or one that reads lines from other input. `session` interprets the lines.

use super::print;
use super::session::{Answer, COMMANDS, Session, is_incomplete};
use crate::diagnose;
use crate::failure::Failure;
use cembra::operators::{Registry, reference};
use cembra_table::error::DataError;
use rustyline::completion::Completer;
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::DefaultHistory;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{CompletionType, Config, Context, Editor, Helper};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::{self, BufRead, IsTerminal};
use std::path::PathBuf;

/// Evaluates what is typed, line by line
///
/// Definitions with `let`, `fn`, `input` and `test` stay for the session. `:set x = 1.5` gives an input its value, and `:help` lists the commands. A
/// line continues on the next one while a bracket is open or an operator is last; an empty line ends the input. If standard input is not a terminal,
/// lines are read in the same way, without a prompt, and the exit status is 1 if a line has an error.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {}

/// Runs `cembra repl`.
pub(crate) fn run(_: &Args) -> Result<(), Failure> {
    if io::stdin().is_terminal() { on_terminal() } else { on_lines(io::stdin().lock()) }
}

/// Evaluates one input of the user and prints the answer. Sets `failed` if the input has an error. Returns false if the input ends the session.
fn answer(session: &mut Session, input: &str, failed: &mut bool) -> Result<bool, Failure> {
    match session.take(input) {
        Ok(Answer::PrintedText(text)) => print(&text)?,
        Ok(Answer::Quit) => return Ok(false),
        Err(failure) => {
            *failed = true;
            failure.report();
            if let Some(shown) = failure.shown(diagnose::stderr_takes_colour()) {
                session.note_problem(shown);
            }
        }
    }
    Ok(true)
}

fn on_lines(lines: impl BufRead) -> Result<(), Failure> {
    let mut session = Session::default();
    let (mut input, mut failed) = (String::new(), false);
    for line in lines.lines() {
        let line = line.map_err(|cause| DataError::io("cannot read", cause).in_file("<stdin>"))?;
        input += &line;
        input.push('\n');
        if is_incomplete(&input) && !line.trim().is_empty() {
            continue;
        }
        if !answer(&mut session, &std::mem::take(&mut input), &mut failed)? {
            break;
        }
    }
    if !input.is_empty() {
        answer(&mut session, &input, &mut failed)?;
    }
    if failed { Err(Failure::Reported) } else { Ok(()) }
}

fn on_terminal() -> Result<(), Failure> {
    let unusable = |cause: ReadlineError| DataError::io("cannot use the terminal", io::Error::other(cause));
    // The tab key completes the common prefix of all candidates; pressed again, it lists them.
    let config = Config::builder().completion_type(CompletionType::List).build();
    let mut editor: Editor<Prompt, DefaultHistory> = Editor::with_config(config).map_err(unusable)?;
    let mut session = Session::default();
    editor.set_helper(Some(Prompt { names: session.names(), signs: reference::signs(Registry::standard()) }));
    let history = history_file();
    if let Some(path) = &history {
        // The first session has no history file, and a missing file is not an error.
        let _ = editor.load_history(path);
    }
    let mut failed = false;
    loop {
        match editor.readline("> ") {
            Ok(input) => {
                if input.trim().is_empty() {
                    continue;
                }
                // The line is saved at once, because a session may end abruptly.
                if editor.add_history_entry(input.as_str()).is_ok_and(|added| added)
                    && let Some(path) = &history
                {
                    let _ = editor.append_history(path);
                }
                if !answer(&mut session, &input, &mut failed)? {
                    break;
                }
                if let Some(prompt) = editor.helper_mut() {
                    prompt.names = session.names();
                }
            }
            Err(ReadlineError::Interrupted) => {}
            Err(ReadlineError::Eof) => break,
            Err(cause) => return Err(unusable(cause).into()),
        }
    }
    Ok(())
}

/// The path of the history file, in the user's directory for state; `None` if there is none or it cannot be made.
fn history_file() -> Option<PathBuf> {
    let folder = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let under = |base: OsString, rest: &str| PathBuf::from(base).join(rest);
    let state = if cfg!(windows) {
        folder("LOCALAPPDATA").map(PathBuf::from)
    } else {
        let own = folder("XDG_STATE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
        own.or_else(|| Some(under(folder("HOME")?, ".local/state")))
    }?;
    let folder = state.join("cembra");
    std::fs::create_dir_all(&folder).ok()?;
    Some(folder.join("history"))
}

/// The helper of the line editor: it decides whether an input is complete, and completes names.
struct Prompt {
    names: BTreeSet<String>,
    /// Pairs of an operator sign, such as `+`, and the name of the operator that the sign stands for.
    signs: Vec<(&'static str, &'static str)>,
}

impl Prompt {
    /// The start of the word before the cursor, and its completions.
    fn words(&self, line: &str, pos: usize) -> (usize, Vec<String>) {
        let before = &line[..pos];
        let part = |c: char| c.is_alphanumeric() || c == '_' || c == '.';
        let start =
            before.rfind(|c: char| !part(c)).map_or(0, |at| at + before[at..].chars().next().map_or(1, char::len_utf8));
        if start == 1 && before.starts_with(':') {
            let commands = COMMANDS.iter().map(|(name, ..)| *name).filter(|name| name.starts_with(before));
            return (0, commands.map(str::to_owned).collect());
        }
        let word = &before[start..];
        if word.is_empty() {
            return self.of_sign(before).unwrap_or((start, Vec::new()));
        }
        let names = self.names.range(word.to_owned()..).take_while(|name| name.starts_with(word));
        let names: Vec<_> = names.cloned().collect();
        if !names.is_empty() {
            return (start, names);
        }
        // Names that contain the word elsewhere are offered only if no name begins with it: they would hide its completions.
        (start, self.names.iter().filter(|name| name.contains(word)).cloned().collect())
    }

    /// The operator for a sign before the cursor, in a place where an operand must stand.
    fn of_sign(&self, before: &str) -> Option<(usize, Vec<String>)> {
        let belongs = |rest: &str| rest.is_empty() || rest.ends_with(['(', '[', ',', '=']);
        let (sign, _) = self
            .signs
            .iter()
            .find(|(sign, _)| before.strip_suffix(sign).is_some_and(|rest| belongs(rest.trim_end())))?;
        let names = self.signs.iter().filter(|(other, _)| other == sign).map(|(_, name)| (*name).to_owned());
        Some((before.len() - sign.len(), names.collect()))
    }
}

impl Completer for Prompt {
    type Candidate = String;

    fn complete(&self, line: &str, pos: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<String>)> {
        Ok(self.words(line, pos))
    }
}

impl Validator for Prompt {
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        let input = context.input();
        // An empty line ends an incomplete input.
        let ended = input.ends_with('\n');
        let more = is_incomplete(input) && !ended;
        Ok(if more { ValidationResult::Incomplete } else { ValidationResult::Valid(None) })
    }
}

impl Hinter for Prompt {
    type Hint = String;
}

impl Highlighter for Prompt {}

impl Helper for Prompt {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_before_the_cursor_is_completed() {
        let names = ["math.sqrt", "math.sign", "sqrt", "größe"].map(str::to_owned).into();
        let prompt = Prompt { names, signs: reference::signs(Registry::standard()) };
        let words = |line: &str| prompt.words(line, line.len());
        assert_eq!(words("1 + math.s"), (4, vec!["math.sign".to_owned(), "math.sqrt".to_owned()]));
        assert_eq!(words("é(sq"), (3, vec!["sqrt".to_owned()]));
        assert_eq!(words("grö"), (0, vec!["größe".to_owned()]));
        assert_eq!(words(":ty"), (0, vec![":type".to_owned()]));
        assert_eq!(words(":type sq"), (6, vec!["sqrt".to_owned()]));
        assert_eq!(words("1 + "), (4, Vec::new()));
        // A word that begins no name is searched within all names.
        assert_eq!(words("1 + qrt"), (4, vec!["math.sqrt".to_owned(), "sqrt".to_owned()]));
        assert_eq!(words("nowhere"), (0, Vec::new()));
        // A sign in place of an operand is completed to the operator's name.
        assert_eq!(words("??"), (0, vec!["core.presence_or".to_owned()]));
        assert_eq!(words("let f = seq.reduce(**"), (19, vec!["math.pow".to_owned()]));
        assert_eq!(words("x ??"), (4, Vec::new()));
        assert_eq!(words("-"), (1, Vec::new()));
        // The text after the cursor does not count.
        assert_eq!(prompt.words("sq + 1", 2), (0, vec!["sqrt".to_owned()]));
    }
}
