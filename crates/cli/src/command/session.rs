//! The state of an interactive session: definitions, values of inputs, and the evaluation of a line. Reading lines and printing answers is the task
//! of `repl`.
//!
//! A session is the growing text of a model: every expression is evaluated as the end of that text, so it has the same meaning and the same
//! errors as in a file.

mod given;

use super::bench::seconds;
use super::eval::ran;
use super::{explain, test};
use crate::arguments::Assignment;
use crate::deadline::Deadline;
use crate::failure::Failure;
use crate::inputs::needed;
use crate::source::ModelText;
use cembra::errors::{Code, Diagnostic, Span};
use cembra::explain::Stage;
use cembra::operators::Registry;
use cembra::program::{Literal, cast_literal};
use cembra::{Executor, Model, Options, QType, RunOptions, Value};
use cembra_engine::LoadedRows;
use cembra_expr::Input;
use cembra_table::schema::spelled;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// The most problems that are stored to be shown again.
const KEPT_PROBLEMS: usize = 10;

/// The commands of the interactive session: the name, the arguments, and a description of each.
pub(crate) const COMMANDS: &[(&str, &str, &str)] = &[
    (":type", "EXPR", "the type of an expression"),
    (":explain", "EXPR [STAGE]", "the result of a stage for an expression: expr, passes, prepared, plan, clif, asm"),
    (":time", "EXPR", "the time to compile and to evaluate an expression"),
    (":set", "NAME = LITERAL", "sets the value of an input; without arguments, lists the values"),
    (":test", "", "runs the tests of the session again"),
    (":errors", "", "shows the last problems again"),
    (":help", "", "this list"),
    (":quit", "", "ends the session"),
];

/// The words that begin a definition, which stays part of the session.
const DEFINING: [&str; 4] = ["let", "fn", "input", "extern"];

/// The answer of an interactive session to a line of the user: text to print, or the end of the session.
#[derive(Debug)]
pub(crate) enum Answer {
    /// The text to print, which ends with a line end; it is empty if there is nothing to print.
    PrintedText(String),
    /// The user wants to end the session.
    Quit,
}

/// The state of an interactive session: the text of its definitions, and the values that inputs were given.
#[derive(Debug, Default)]
pub(crate) struct Session {
    /// Names with the statements that define them, in the order they were given.
    definitions: Vec<(String, String)>,
    /// The values of inputs, by name.
    values: BTreeMap<String, Value>,
    /// The last problems as they were shown, the oldest first.
    problems: VecDeque<String>,
}

impl Session {
    /// Handles one input of the user: a command, a definition, or an expression.
    ///
    /// # Errors
    /// If the input has a problem. The session is then unchanged.
    pub(crate) fn take(&mut self, input: &str) -> Result<Answer, Failure> {
        let input = input.trim();
        if let Some(command) = input.strip_prefix(':') {
            return self.command(command);
        }
        // A line with only comments is not an expression.
        if input.lines().all(|line| line.trim_start().starts_with('#')) {
            return Ok(Answer::PrintedText(String::new()));
        }
        match defined(input) {
            Some(name) if self.define(&name, input)? => match is_test(input) {
                true => self.test(Some(&name)).map(Answer::PrintedText),
                false => Ok(Answer::PrintedText(String::new())),
            },
            _ => self.evaluate(input).map(Answer::PrintedText),
        }
    }

    /// Stores a problem, in the form in which it was shown, for the command `:errors`.
    pub(crate) fn note_problem(&mut self, shown: String) {
        if self.problems.len() == KEPT_PROBLEMS {
            self.problems.pop_front();
        }
        self.problems.push_back(shown);
    }

    /// The names that an expression in the session may begin with: operators, their short names, and the names that the session defines.
    pub(crate) fn names(&self) -> BTreeSet<String> {
        let operators = cembra::operators::reference::names(Registry::standard());
        let operators = operators.into_iter().map(|(name, _)| name);
        let own = self.definitions.iter().map(|(name, _)| name).chain(self.values.keys());
        operators.map(str::to_owned).chain(own.cloned()).collect()
    }

    /// Runs a command, whose text has no colon.
    fn command(&mut self, command: &str) -> Result<Answer, Failure> {
        let (name, rest) = command.split_once(char::is_whitespace).unwrap_or((command, ""));
        let rest = rest.trim();
        Ok(Answer::PrintedText(match (name, rest) {
            ("quit" | "q", _) => return Ok(Answer::Quit),
            ("help", _) => help(),
            ("test", _) => self.test(None)?,
            ("errors", _) if self.problems.is_empty() => "there were no errors\n".to_owned(),
            ("errors", _) => self.problems.iter().map(|shown| format!("{shown}\n")).collect(),
            ("set", "") => self.values.iter().map(|(name, value)| line(name, value)).collect(),
            ("set", assignment) => {
                self.set(command, assignment)?;
                String::new()
            }
            ("type" | "explain" | "time", "") => {
                return Err(self.refuse(command, format!("`:{name}` takes an expression")));
            }
            ("type", expression) => self.types(expression)?,
            ("explain", expression) => self.explain(expression)?,
            ("time", expression) => self.time(expression)?,
            _ => {
                let message = format!("there is no command `:{name}`");
                return Err(
                    self.refuse_with(command, Diagnostic::new(Code::Syntax, message).hint("`:help` lists them"))
                );
            }
        }))
    }

    /// The failure of the command `command`, with a syntax error `message`.
    fn refuse(&self, command: &str, message: String) -> Failure {
        self.refuse_with(command, Diagnostic::new(Code::Syntax, message))
    }

    fn refuse_with(&self, command: &str, problem: Diagnostic) -> Failure {
        let source = ModelText::session(format!(":{command}"));
        Failure::Model { source, problems: vec![problem], notes: Vec::new() }
    }

    /// Gives an input the value of an assignment. `command` is the whole command, for messages.
    fn set(&mut self, command: &str, assignment: &str) -> Result<(), Failure> {
        // The literal ends where the command ends.
        let written = assignment.split_once('=').map_or("", |(_, literal)| literal.trim());
        let end = (1 + command.trim_end().len()) as u32;
        let start = end.saturating_sub(written.len() as u32);
        let given = Assignment::parse_written(assignment)
            .map_err(|problems| self.refuse_with(command, problems.diagnostics()[0].clone()))?;
        let name = given.name.clone();
        if self.definitions.iter().any(|(known, text)| *known == name && !text.starts_with("input")) {
            return Err(self.refuse(command, format!("`{name}` is defined in the session, so it is not an input")));
        }
        let input = self.declared(&name)?;
        let value = given::value_of(&given, input.as_ref()).map_err(|problem| {
            // The problem's place is counted from the start of the literal.
            let place =
                problem.span().map_or(Span::new(start, end), |span| Span::new(start + span.start, start + span.end));
            self.refuse_with(command, problem.at(place))
        })?;
        self.values.insert(name, value);
        Ok(())
    }

    /// The session's declaration of an input; `None` if it has none.
    fn declared(&self, name: &str) -> Result<Option<Input>, Failure> {
        let model = self.text("0").parse()?;
        Ok(model.program().inputs.iter().find(|input| *input.name == *name).cloned())
    }

    /// Stores a definition, in place of one with the same name. Returns false if an expression follows it in the same input.
    fn define(&mut self, name: &str, input: &str) -> Result<bool, Failure> {
        let mut changed = self.definitions.clone();
        match changed.iter_mut().find(|(known, _)| known == name) {
            Some((_, text)) => input.clone_into(text),
            // This definition comes first, because it applies to all later statements.
            None if name == NUMBERS => changed.insert(0, (name.to_owned(), input.to_owned())),
            None => changed.push((name.to_owned(), input.to_owned())),
        }
        // The definitions with an expression at the end are a model; so is a text that already ends with one.
        let text = ModelText::session(format!("{}0", joined(&changed)));
        let Err(failure) = text.parse() else {
            let before = std::mem::replace(&mut self.definitions, changed);
            if let Err(failure) = self.check(name, input) {
                self.definitions = before;
                return Err(failure);
            }
            return Ok(true);
        };
        if self.text(input).parse().is_ok() { Ok(false) } else { Err(failure) }
    }

    /// Checks the types of a value that was just defined, if the values of all its inputs are known. Refuses an input that is a tensor,
    /// because it would prevent all other evaluations.
    fn check(&self, name: &str, input: &str) -> Result<(), Failure> {
        if input.starts_with("input") {
            let source = self.text("0");
            let tensor = |input: &Input| matches!(input.qtype, Some(QType::Tensor(..)));
            let Some(span) =
                source.parse()?.program().inputs.iter().find(|input| tensor(input)).map(|input| input.span)
            else {
                return Ok(());
            };
            let problem = Diagnostic::new(Code::Tensors, "a session cannot evaluate tensors").at(span);
            let problems = vec![problem.hint("write a model with tensors to a file, and use `cembra eval`")];
            return Err(Failure::Model { source, problems, notes: Vec::new() });
        }
        if !input.starts_with("let") {
            return Ok(());
        }
        let text = self.text(name);
        let model = text.parse()?;
        let known = |input: &&Input| input.qtype.is_some() || self.values.contains_key(&*input.name);
        if needed(&model, &[]).iter().all(known) {
            model.signature(&self.options(&model)).map_err(|error| text.blame(&error))?;
        }
        Ok(())
    }

    /// The session's text with `input` at its end.
    fn text(&self, input: &str) -> ModelText {
        ModelText::session(format!("{}{input}", joined(&self.definitions)))
    }

    /// The options with the types of the values for undeclared inputs.
    fn options(&self, model: &Model) -> Options {
        let free = model.program().inputs.iter().filter(|input| input.qtype.is_none());
        free.fold(Options::default(), |options, input| match self.values.get(&*input.name) {
            Some(value) => options.input_type(&input.name, value.qtype()),
            None => options,
        })
    }

    /// Compiles the model that ends with `input`, and returns it with the values of its inputs.
    fn compiled(&self, input: &str) -> Result<(ModelText, Executor, Vec<Value>), Failure> {
        let text = self.text(input);
        let model = text.parse()?;
        let mut problems = Vec::new();
        let mut values = BTreeMap::new();
        for input in needed(&model, &[]) {
            let name = &input.name;
            let declared = input.qtype.as_ref();
            let optional = declared.filter(|declared| declared.is_optional()).and_then(QType::scalar);
            let absent = input.default.as_ref().map(|default| default.scalar()).or(optional);
            let problem =
                match self.values.get(&**name) {
                    // An input without a value is missing, as in data without its column.
                    None if let Some(scalar) = absent => {
                        values.insert(name.clone(), Value::Missing(scalar));
                        continue;
                    }
                    None if input.is_empty_by_default
                        && let Some(empty) = declared.and_then(Value::empty_collection) =>
                    {
                        values.insert(name.clone(), empty);
                        continue;
                    }
                    None => {
                        let problem = Diagnostic::new(Code::Binding, format!("input `{name}` has no value"));
                        problem.hint(meant(name).unwrap_or_else(|| {
                            format!("give a value, as in `:set {name} = {}`", given::example(declared))
                        }))
                    }
                    Some(value) => match declared
                        .map_or(Some(value.clone()), |declared| cast_literal(&Literal::One(value.clone()), declared))
                    {
                        Some(value) => {
                            values.insert(name.clone(), value);
                            continue;
                        }
                        // The input was given its value before its type.
                        None => given::unfit(input, Some(&value.qtype())),
                    },
                };
            problems.push(problem.at(input.span));
        }
        if !problems.is_empty() {
            return Err(Failure::Model { source: text, problems, notes: Vec::new() });
        }
        let executor = model.compile(&self.options(&model)).map_err(|error| text.blame(&error))?;
        let row = executor.inputs().iter().filter_map(|field| values.get(&field.name).cloned()).collect();
        Ok((text, executor, row))
    }

    /// Evaluates an expression after the definitions; returns its value or outputs as text.
    fn evaluate(&self, input: &str) -> Result<String, Failure> {
        let (text, executor, row) = self.compiled(input)?;
        let found = executor.session().evaluate(&row).map_err(|error| text.blame(&error))?;
        let outputs = executor.outputs();
        Ok(match (outputs, &*found) {
            ([one], [value]) if &*one.name == "result" => format!("{}\n", shown(value)),
            _ => outputs.iter().zip(&found).map(|(field, value)| line(&field.name, value)).collect(),
        })
    }

    /// Runs the tests of the session, or only the one stored under `name`. The values defined by `let` are the outputs.
    fn test(&self, name: Option<&str>) -> Result<String, Failure> {
        let kept = |known: &str, text: &str| !is_test(text) || name.is_none_or(|name| name == known);
        let texts = self.definitions.iter().filter(|(known, text)| kept(known, text));
        let lets = self.definitions.iter().filter(|(_, text)| text.starts_with("let"));
        let outputs = lets.map(|(name, _)| format!("output {name} = {name}\n"));
        let text = ModelText::session(texts.map(|(_, text)| format!("{text}\n")).chain(outputs).collect());
        let model = text.parse()?;
        Ok(test::tested(&text, &model, &RunOptions::new(), &Deadline::start(None)).0)
    }

    /// The type of an expression, as text.
    fn types(&self, expression: &str) -> Result<String, Failure> {
        let text = self.text(expression);
        let model = text.parse()?;
        let signature = model.signature(&self.options(&model)).map_err(|error| text.blame(&error))?;
        Ok(match &*signature.outputs {
            [one] if &*one.name == "result" => format!("{}\n", spelled(&one.qtype)),
            all => all.iter().map(|field| format!("{}: {}\n", field.name, spelled(&field.qtype))).collect(),
        })
    }

    /// The result of a stage for an expression, as text. The stage is the last word, by default the plan.
    fn explain(&self, expression: &str) -> Result<String, Failure> {
        let named = expression.rsplit_once(char::is_whitespace).and_then(|(expression, last)| {
            Some((expression, Stage::ALL.into_iter().find(|stage| stage.name() == last)?))
        });
        let (expression, stage) = named.unwrap_or((expression, Stage::Plan));
        let text = self.text(expression);
        let model = text.parse()?;
        explain::one(&text, &model, &self.options(&model), stage)
    }

    /// The times of compiling and evaluating an expression, as text.
    fn time(&self, expression: &str) -> Result<String, Failure> {
        let (text, executor, row) = self.compiled(expression)?;
        let blame = |error| text.blame(&error);
        let compile = seconds(|| {
            let model = text.read_again()?;
            model.compile(&self.options(&model)).map(drop)
        });
        let mut loaded = LoadedRows::of(&executor, std::slice::from_ref(&row)).map_err(blame)?;
        let evaluate = seconds(|| loaded.evaluate()).map_err(blame)?;
        let by = ran(&executor);
        let compile = 1e6 * compile.map_err(blame)?;
        Ok(format!("compile: {compile:.1} us\nevaluate: {:.1} ns by {by}\n", 1e9 * evaluate))
    }
}

/// The hint that a command was meant, if a name looks like one.
fn meant(name: &str) -> Option<String> {
    let name = if name == "exit" { "quit" } else { name };
    let (command, ..) = COMMANDS.iter().find(|(command, ..)| command.strip_prefix(':') == Some(name))?;
    Some(format!("did you mean `{command}`?"))
}

/// The key of the statement `numbers ..` among the definitions of a session. It has a space, so it differs from every name of the language.
const NUMBERS: &str = "numbers f64";

/// Returns true for a test; `test` may also be a name.
fn is_test(input: &str) -> bool {
    input.strip_prefix("test").is_some_and(|rest| rest.trim_start().starts_with(['"', '\'']))
}

/// The name that an input defines; `None` if it does not begin with a definition.
fn defined(input: &str) -> Option<String> {
    if is_test(input) {
        // A test replaces one with the same name, as definitions do.
        let end = input.find('{').unwrap_or(input.len());
        return Some(input[..end].trim_end().to_owned());
    }
    let (word, rest) = input.split_once(char::is_whitespace)?;
    if word == "numbers" && matches!(rest.trim(), "f64" | "f32") {
        return Some(NUMBERS.to_owned());
    }
    if word == "use" && rest.trim_start().starts_with(['"', '\'']) {
        return Some(input.to_owned());
    }
    // The name of an operator has dots.
    let (rest, dot) = match word {
        "extern" => (rest.trim_start().strip_prefix("fn ")?, Some('.')),
        _ => (rest, None),
    };
    let is_of_name = |c: &char| c.is_alphanumeric() || *c == '_' || Some(*c) == dot;
    let name: String = rest.trim_start().chars().take_while(is_of_name).collect();
    (DEFINING.contains(&word) && !name.is_empty()).then_some(name)
}

fn joined(definitions: &[(String, String)]) -> String {
    definitions.iter().map(|(_, text)| format!("{text}\n")).collect()
}

fn line(name: &str, value: &Value) -> String {
    format!("{name} = {}\n", shown(value))
}

/// The most elements of a list that is shown in full; of a longer one, the first elements and their number are shown.
const MOST_SHOWN: usize = 100;

/// A value as text, shortened if it is a long list.
fn shown(value: &Value) -> String {
    let len = match value {
        Value::Array(_, array) => array.len(),
        _ => value.list_len().unwrap_or(0),
    };
    if len > MOST_SHOWN { value.to_string() } else { cembra::values::print_value(value) }
}

fn help() -> String {
    let commands = COMMANDS.iter().map(|(name, takes, does)| format!("{:<24} {does}\n", format!("{name} {takes}")));
    let intro = "An expression is evaluated; `let`, `fn`, `input` and `test` stay for the session.\n";
    std::iter::once(intro.to_owned()).chain(commands).collect()
}

/// Returns true if `input` must be continued on the next line: a bracket is open, or it ends with an operator or a word that needs an
/// operand.
pub(crate) fn is_incomplete(input: &str) -> bool {
    if input.trim_start().starts_with(':') {
        return false;
    }
    let mut depth = 0_i64;
    // The text without its strings and comments.
    let mut code = String::new();
    for line in input.lines() {
        let mut characters = line.chars();
        while let Some(character) = characters.next() {
            match character {
                '#' => break,
                '\'' | '"' => {
                    // A string ends on its line, or is an error that no further line can correct.
                    while let Some(inside) = characters.next() {
                        match inside {
                            '\\' => drop(characters.next()),
                            end if end == character => break,
                            _ => {}
                        }
                    }
                    code.push('0');
                    continue;
                }
                '(' | '[' | '{' => depth += 1,
                ')' | ']' | '}' => depth -= 1,
                _ => {}
            }
            code.push(character);
        }
        code.push('\n');
    }
    let code = code.trim_end();
    let word = code.rsplit(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default();
    let wants_more = ["and", "or", "not", "if", "then", "else", "let", "fn", "input", "output"].contains(&word)
        || code.ends_with(['+', '-', '*', '/', '%', '=', '<', '>', '&', '|', ',', ':', '.'])
        || code.ends_with("??");
    depth > 0 || wants_more
}

#[cfg(test)]
mod tests {
    use super::*;

    fn say(session: &mut Session, input: &str) -> String {
        match session.take(input) {
            Ok(Answer::PrintedText(text)) => text,
            Ok(Answer::Quit) => "quit".to_owned(),
            Err(Failure::Model { problems, .. }) => format!("error: {}", problems[0].message()),
            Err(other) => format!("{other:?}"),
        }
    }

    #[test]
    fn definitions_and_values_stay() {
        let mut session = Session::default();
        assert_eq!(say(&mut session, "let d = 3"), "");
        assert_eq!(say(&mut session, "fn sq(x) = x * x"), "");
        assert_eq!(say(&mut session, "sq(d) + 1"), "10\n");
        assert_eq!(say(&mut session, ":set x = 1.5"), "");
        assert_eq!(say(&mut session, "sq(x) + d"), "5.25f64\n");
        assert_eq!(say(&mut session, "let d = 4"), "");
        assert_eq!(say(&mut session, "(d, d + 1)"), "TUPLE{4, 5}\n");
        assert_eq!(say(&mut session, ":set"), "x = 1.5f64\n");
        assert_eq!(say(&mut session, "output a = d\noutput b = x"), "a = 4\nb = 1.5f64\n");
        assert_eq!(say(&mut session, "let e = d * 2; e + 1"), "9\n");
        assert_eq!(say(&mut session, "e"), "error: input `e` has no value");
        assert_eq!(say(&mut session, ":quit"), "quit");
    }

    #[test]
    fn what_is_wrong_changes_nothing() {
        let mut session = Session::default();
        assert_eq!(say(&mut session, "let d = 3"), "");
        assert!(say(&mut session, "let d = (1").starts_with("error: "));
        assert!(say(&mut session, "let d = math.sqrt(\"a\")").starts_with("error: "));
        assert!(say(&mut session, "let f = frobnicate(1)").starts_with("error: "));
        assert!(say(&mut session, "input t: tensor[f64, 2]").starts_with("error: a session cannot evaluate tensors"));
        assert_eq!(say(&mut session, "d"), "3\n");
        assert_eq!(say(&mut session, ":set d = 4"), "error: `d` is defined in the session, so it is not an input");
        assert_eq!(say(&mut session, ":set y = missing"), "error: `y = missing` has no type");
        assert_eq!(say(&mut session, ":frob"), "error: there is no command `:frob`");
        assert_eq!(say(&mut session, ":type"), "error: `:type` takes an expression");
        assert_eq!(say(&mut session, "# nothing"), "");
        let Err(Failure::Model { problems, .. }) = session.take("exit") else { panic!("`exit` has no value") };
        assert_eq!(problems[0].hints(), ["did you mean `:quit`?"]);
        // It is a name like any other, once it has a value.
        assert_eq!(say(&mut session, ":set exit = 1"), "");
        assert_eq!(say(&mut session, "exit"), "1i64\n");
    }

    #[test]
    fn declared_inputs_take_values_of_their_type() {
        let mut session = Session::default();
        assert_eq!(say(&mut session, "input n: f32?"), "");
        assert_eq!(say(&mut session, ":type n * 2.0"), "f32?\n");
        assert_eq!(say(&mut session, "(n * 2.0) ?? 7.0"), "7.0f32\n");
        assert_eq!(say(&mut session, ":set n = 2"), "");
        assert_eq!(say(&mut session, ":type n * 2"), "f64?\n");
        assert_eq!(say(&mut session, "(n * 2.0) ?? 0.0"), "4.0f32\n");
        assert_eq!(say(&mut session, ":set"), "n = f32?{2.0}\n");
        // A value of another type is refused at once, and the old value stays.
        assert_eq!(say(&mut session, ":set n = \"a\""), "error: input `n` is f32?, but its value is text");
        assert_eq!(say(&mut session, "(n * 2.0) ?? 0.0"), "4.0f32\n");
        assert_eq!(say(&mut session, ":set n = missing"), "");
        assert_eq!(say(&mut session, "(n * 2.0) ?? 0.0"), "0.0f32\n");
        assert_eq!(say(&mut session, "input xs: [f64]; input m: unit?"), "");
        let gap = "error: input `xs` is [f64], but element 1 of the array is missing";
        assert_eq!(say(&mut session, ":set xs = [1, missing, 0.5]"), gap);
        assert_eq!(say(&mut session, ":set xs = [1, 0.5]"), "");
        assert_eq!(say(&mut session, "sum(xs)"), "1.5f64\n");
        assert_eq!(
            say(&mut session, ":set xs = [1, \"a\"]"),
            "error: input `xs` is [f64], but its value is of several types"
        );
        assert_eq!(say(&mut session, ":set m = true"), "");
        assert_eq!(say(&mut session, "m"), "present\n");
        // A type that is declared later is checked where the value is used.
        assert_eq!(say(&mut session, ":set k = 1.5"), "");
        assert_eq!(say(&mut session, "input k: i32"), "");
        assert_eq!(say(&mut session, "k"), "error: input `k` is i32, but its value is f64");
        assert_eq!(say(&mut session, ":set k = missing"), "error: input `k` is i32, but its value is missing");
    }

    /// The assignments that hints for `:set` propose are accepted.
    #[test]
    fn hints_are_true_of_the_session() {
        let mut session = Session::default();
        let hints = |session: &mut Session, input: &str| match session.take(input) {
            Err(Failure::Model { problems, source, .. }) => {
                let shown = problems[0].span().map(|span| source.sources().text_at(span).to_owned());
                (problems[0].hints().to_vec(), shown)
            }
            other => panic!("{other:?}"),
        };
        assert_eq!(say(&mut session, "input name: text"), "");
        assert_eq!(hints(&mut session, "name").0, ["give a value, as in `:set name = \"abc\"`"]);
        assert_eq!(say(&mut session, "input day: date?"), "");
        let (another, at) = hints(&mut session, ":set day =  1.5 ");
        assert_eq!(
            (another, at.as_deref()),
            (vec!["set another value, as in `:set day = 2026-11-20`".to_owned()], Some("1.5"))
        );
        // An input that is declared as a text needs no quotes.
        assert_eq!(say(&mut session, ":set name = ab"), "");
        assert_eq!(say(&mut session, "name"), "\"ab\"\n");
        let (quotes, _) = hints(&mut session, ":set other = abc");
        assert_eq!(quotes.last().unwrap(), "write quotes around a text: `other = \"abc\"`");
        assert_eq!(hints(&mut session, ":set  other = 1 + 2 ").1.as_deref(), Some("+"));
        assert_eq!(say(&mut session, ":set name = \"abc\""), "");
        assert_eq!(say(&mut session, "name"), "\"abc\"\n");
        assert!(hints(&mut session, "frobnicate(1)").0.is_empty());
    }

    #[test]
    fn inputs_with_defaults_need_no_values() {
        let mut session = Session::default();
        assert_eq!(say(&mut session, "input n: f32? = 2"), "");
        assert_eq!(say(&mut session, ":type n"), "f32\n");
        assert_eq!(say(&mut session, "n * 2.0"), "4.0f32\n");
        assert_eq!(say(&mut session, ":set n = 3"), "");
        assert_eq!(say(&mut session, "n * 2.0"), "6.0f32\n");
    }

    #[test]
    fn operators_of_the_host_may_be_declared() {
        let mut session = Session::default();
        assert_eq!(say(&mut session, "extern fn fx.rate(text): f64?"), "");
        assert_eq!(say(&mut session, ":type fx.rate(\"CHF\") ?? 1"), "f64\n");
        assert_eq!(
            say(&mut session, "fx.rate(\"CHF\")"),
            "error: `fx.rate` is declared as `extern`, but this host does not have the operator"
        );
        assert_eq!(say(&mut session, "let extern = 2"), "");
        assert_eq!(say(&mut session, "extern + 1"), "3\n");
    }

    #[test]
    fn tests_run_at_once_and_again() {
        let mut session = Session::default();
        assert_eq!(say(&mut session, "input x: f64"), "");
        assert_eq!(say(&mut session, "let double = x * 2.0"), "");
        assert_eq!(say(&mut session, "let half = y / 2.0"), "");
        assert_eq!(say(&mut session, "test \"two\" { x = 2 } => { double = 4 }"), "<session>: 1 case passed\n");
        let failed =
            "<session>:4: test \"three\" failed\n- double = 4.0\n+ double = 6.0\n\n<session>: 1 case, 1 failed\n";
        assert_eq!(say(&mut session, "test 'three' { x = 3 } => { double = 4 }"), failed);
        assert!(say(&mut session, ":test").ends_with("<session>: 2 cases, 1 failed\n"));
        // A test with the same name is replaced.
        assert_eq!(say(&mut session, "test 'three' { x = 3 } => { double = 6 }"), "<session>: 1 case passed\n");
        assert_eq!(say(&mut session, ":test"), "<session>: 2 cases passed\n");
        // Tests are not values. `test` is a name if no text in quotes follows.
        assert_eq!(say(&mut session, "let test = 5"), "");
        assert_eq!(say(&mut session, "test + 1"), "6\n");
    }

    #[test]
    fn an_open_bracket_or_an_operator_at_the_end_wants_more() {
        for text in ["(1", "f(\n1,", "1 +", "x and", "let y =", "if a then", "a ??", "1 + # why", "[", "1 -\n"] {
            assert!(is_incomplete(text), "{text}");
        }
        for text in ["", "1", "(1)", "\"(\"", "'a\\'('", "1 # (", "x: i32?", "1)", "band", ":set x =", "\"open +"] {
            assert!(!is_incomplete(text), "{text}");
        }
    }

    #[test]
    fn names_are_those_of_the_language_and_the_session() {
        let mut session = Session::default();
        say(&mut session, "let quite_new = 1");
        say(&mut session, ":set other_new = 1");
        let names = session.names();
        for name in ["math.sqrt", "sqrt", "quite_new", "other_new"] {
            assert!(names.contains(name), "{name}");
        }
        assert!(!names.iter().any(|name| name.contains("._")));
    }
}
