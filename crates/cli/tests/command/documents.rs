//! Tests of the documentation: the commands on its pages must print what the pages show.

use super::shell::{Shell, repository};
use cembra::FaultKind;
use cembra::errors::Code;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// The environment variable with which the tests rewrite generated text instead of comparing it.
const REWRITE: &str = "CEMBRA_REWRITE";

#[test]
fn the_page_of_operators_is_up_to_date() {
    let path = repository("docs/operators.md");
    let page = Shell::new().stdout(&["ops", "--markdown"]);
    if std::env::var_os(REWRITE).is_some() {
        fs::write(&path, &page).expect("the page is written");
    }
    let found = fs::read_to_string(&path).unwrap_or_default();
    assert!(found == page, "docs/operators.md is out of date: run this test with {REWRITE}=1");
}

#[test]
fn the_commands_of_the_examples_run() {
    let page = fs::read_to_string(repository("docs/examples/README.md")).expect("the page is there");
    let commands: Vec<&str> = page.lines().filter_map(|line| line.strip_prefix("    cembra ")).collect();
    assert!(commands.len() >= 4, "{commands:?}");
    let shell = Shell::new();
    for command in commands {
        // The commands quote nothing but whole arguments.
        let args: Vec<&str> = command.split(' ').map(|arg| arg.trim_matches('\'')).collect();
        let mut run = shell.command(&args);
        let outcome = run.current_dir(repository("")).output().expect("the binary runs");
        let said = String::from_utf8_lossy(&outcome.stderr).into_owned();
        assert!(outcome.status.success() && said.is_empty() && !outcome.stdout.is_empty(), "{command}: {said}");
    }
}

/// `docs/errors.md` must have a heading or an anchor for each code of an error, a warning or a fault.
#[test]
fn the_page_of_errors_has_an_anchor_for_each_code() {
    let page = fs::read_to_string(repository("docs/errors.md")).expect("the page is there");
    let codes = Code::ALL.iter().map(|code| code.as_str()).chain(FaultKind::ALL.map(FaultKind::name));
    let has_anchor =
        |code: &str| page.contains(&format!("\n### {code}\n")) || page.contains(&format!("<a id=\"{code}\"></a>"));
    let lacking: Vec<&str> = codes.filter(|code| !has_anchor(code)).collect();
    assert!(lacking.is_empty(), "docs/errors.md has no anchor for {lacking:?}");
}

/// The pages and folders of pages whose `console` blocks are run.
const CONSOLE: [&str; 6] =
    ["docs/guide", "docs/from", "docs/arrays.md", "docs/errors.md", "docs/limits.md", "docs/tables.md"];

#[test]
#[cfg(unix)]
fn what_pages_show_of_the_command_is_what_it_prints() {
    let mut pages: Vec<PathBuf> = Vec::new();
    for name in CONSOLE.map(repository).iter().filter(|path| path.exists()) {
        let folder = fs::read_dir(name).into_iter().flatten();
        let found = folder
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| path.extension().is_some_and(|e| e == "md"));
        pages.extend(found.chain(name.is_file().then(|| name.clone())));
    }
    pages.sort();
    assert!(pages.len() > 20, "{pages:?}");
    let mut wrong = Vec::new();
    let mut commands = 0;
    for page in pages {
        let text = fs::read_to_string(&page).expect("the page is there");
        let shown = Console::new().played(&text, &mut commands);
        if shown == text {
            continue;
        }
        if std::env::var_os(REWRITE).is_some() {
            fs::write(&page, &shown).expect("the page is written");
        } else {
            let lines = text.lines().zip(shown.lines());
            let first = lines.enumerate().find(|(_, (said, printed))| said != printed);
            wrong.push(format!("{}: {first:?}", page.display()));
        }
    }
    assert!(
        wrong.is_empty(),
        "out of date; run this test with {REWRITE}=1 and read the difference:\n{}",
        wrong.join("\n")
    );
    assert!(commands > 60, "{commands} commands");
}

/// Runs the `console` blocks of one page in a new folder, in which `docs` is the folder of the repository.
///
/// A block that begins with `# NAME.cem` is written to that file, and so is the text after `$ cat NAME`. If `docs/examples` has a file of that name,
/// the block must be equal to it. In a `console` block, a command follows `$ `, over several lines as long as a quote is open, and its output is
/// below it. Commands that do not call `cembra` are not run.
struct Console {
    shell: Shell,
}

impl Console {
    fn new() -> Console {
        let shell = Shell::new();
        #[cfg(unix)]
        std::os::unix::fs::symlink(repository("docs").canonicalize().expect("a folder"), shell.path("docs"))
            .expect("a link");
        Console { shell }
    }

    /// Returns the page with the actual output of its commands, and adds the number of its commands to `commands`.
    fn played(&self, page: &str, commands: &mut usize) -> String {
        let mut shown = String::new();
        let mut lines = page.lines();
        while let Some(line) = lines.next() {
            shown += line;
            shown += "\n";
            let Some(info) = line.strip_prefix("```") else { continue };
            let block: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
            if info == "console" {
                self.play(&block, &mut shown, commands);
            } else {
                if let Some(name) =
                    block.first().and_then(|first| first.strip_prefix("# ")).filter(|name| is_a_model(name))
                {
                    self.file(name, &block);
                }
                shown.extend(block.iter().flat_map(|line| [line, "\n"]));
            }
            shown += "```\n";
        }
        shown
    }

    fn play(&self, block: &[&str], shown: &mut String, commands: &mut usize) {
        let mut at = 0;
        while at < block.len() {
            let mut command = block[at].strip_prefix("$ ").expect("a block begins with a command").to_owned();
            at += 1;
            while command.matches('\'').count() % 2 == 1 {
                command = format!("{command}\n{}", block[at]);
                at += 1;
            }
            let below = block[at..].iter().take_while(|line| !line.starts_with("$ ")).count();
            let said = &block[at..at + below];
            at += below;
            *shown += &format!("$ {command}\n");
            if let Some(name) = command.strip_prefix("cat ") {
                self.file(name, said);
            }
            if command.split(' ').any(|word| word == "cembra") {
                *shown += &self.printed(&command);
                *commands += 1;
            } else {
                shown.extend(said.iter().flat_map(|line| [line, "\n"]));
            }
        }
    }

    fn file(&self, name: &str, lines: &[&str]) {
        let text: String = lines.iter().flat_map(|line| [line, "\n"]).collect();
        if let Ok(example) = fs::read_to_string(repository("docs/examples").join(name)) {
            assert_eq!(text, example, "docs/examples/{name}");
        }
        fs::write(self.shell.path(name), text).expect("the file is written");
    }

    /// Runs a command and returns its standard output and standard error together, as a terminal shows them.
    fn printed(&self, command: &str) -> String {
        let binary = Path::new(env!("CARGO_BIN_EXE_cembra")).parent().expect("a folder");
        let path = std::env::var_os("PATH").unwrap_or_default();
        let path =
            std::env::join_paths([binary.to_owned()].into_iter().chain(std::env::split_paths(&path))).expect("a path");
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", &format!("exec 2>&1\n{command}")]).env("PATH", path).env_remove("NO_COLOR");
        let output = shell.current_dir(self.shell.path("")).stdin(Stdio::null()).output().expect("the shell runs");
        String::from_utf8(output.stdout).expect("the output is UTF-8")
    }
}

fn is_a_model(name: &str) -> bool {
    name.ends_with(".cem") && !name.contains(' ')
}
