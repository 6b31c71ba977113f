//! Uses between the modules of a crate, found by the paths in their code: paths of `use` lines, and paths that begin with `crate` or `super`
//! anywhere. A name that a module has from another by a `use` line counts for the module that defines the name. Paths that macros make are not seen.
//!
//! The file of a folder may name the modules in the folder, because both are one idea. Tests may name any module.

use crate::house::sources;
use std::collections::{BTreeMap, BTreeSet};

/// The path of a module from the root of its crate, as in `["text", "lexer"]`.
type Module = Vec<String>;

/// A path as it is written, in parts, and the name that it has in its file.
type Import = (Vec<String>, String);

/// The modules of a crate.
struct Crate {
    /// The imports of each module, by the names that they have there.
    imports: BTreeMap<Module, BTreeMap<String, Vec<String>>>,
    /// The paths in the code of each module.
    paths: BTreeMap<Module, Vec<Vec<String>>>,
}

/// Returns, for each module of the crate at `folder`, the modules that it names. A module deeper than `depth` counts for the module of that depth
/// that contains it.
pub(super) fn uses(folder: &str, depth: usize) -> BTreeMap<String, BTreeSet<String>> {
    let all = Crate::read(folder);
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (module, paths) in &all.paths {
        let from = &module[..module.len().min(depth)];
        for named in paths.iter().filter_map(|path| all.named(module, path)) {
            let to = &named[..named.len().min(depth)];
            if !from.is_empty() && !to.is_empty() && !to.starts_with(from) {
                found.entry(from.join("/")).or_default().insert(to.join("/"));
            }
        }
    }
    found
}

impl Crate {
    fn read(folder: &str) -> Crate {
        let source = format!("{folder}/src/");
        let mut found = Crate { imports: BTreeMap::new(), paths: BTreeMap::new() };
        for (path, text) in sources() {
            let Some(path) = path.strip_prefix(&source).map(|path| path.trim_end_matches(".rs")) else { continue };
            if path.split('/').any(|part| part == "tests") {
                continue;
            }
            let mut module: Module = path.split('/').map(ToOwned::to_owned).collect();
            if module.last().is_some_and(|last| last == "mod") || path == "lib" || path == "main" {
                module.pop();
            }
            let code = without_literals(without_tests(&text));
            let (imports, mut paths) = (imports(&code), paths(&code));
            paths.extend(imports.iter().map(|(path, _)| path.clone()));
            found.imports.insert(module.clone(), imports.into_iter().map(|(path, name)| (name, path)).collect());
            found.paths.insert(module, paths);
        }
        found
    }

    /// Returns the module that a path of `module` leads to; `None` for a path into another crate, and for one that begins with a name of the module
    /// itself.
    fn named(&self, module: &Module, path: &[String]) -> Option<Module> {
        let (mut at, mut rest) = match path.first()?.as_str() {
            "crate" => (Module::new(), &path[1..]),
            "super" => (module.clone(), path),
            _ => return None,
        };
        // An import may lead to another, but not in a circle.
        for _ in 0..16 {
            while let Some((_, behind)) = rest.split_first().filter(|(first, _)| *first == "super") {
                at.pop();
                rest = behind;
            }
            while let Some((first, behind)) = rest.split_first() {
                at.push(first.clone());
                if !self.paths.contains_key(&at) {
                    at.pop();
                    break;
                }
                rest = behind;
            }
            let Some(import) = rest.first().and_then(|name| self.imports.get(&at)?.get(name)) else { break };
            rest = import;
            match rest.first().map(String::as_str) {
                Some("crate") => (at, rest) = (Module::new(), &rest[1..]),
                Some("super") => {}
                Some("self") => rest = &rest[1..],
                Some(first) if self.paths.contains_key(&[&at[..], &[first.to_owned()]].concat()) => {}
                // The path leads into another crate.
                _ => break,
            }
        }
        Some(at)
    }
}

/// Returns the types and traits that the public module `module` exports: for each name the module, the name, and the path that it comes from. `text`
/// is the module's file; modules written in it are modules of their own.
pub(super) fn exports(module: &str, text: &str) -> Vec<(String, String, String)> {
    let mut open = vec![(module.to_owned(), without_literals(without_tests(text)))];
    let mut found = Vec::new();
    while let Some((module, mut code)) = open.pop() {
        while let Some((start, end)) = inner_module(&code) {
            let inner: String = code.drain(start..end).collect();
            let (head, body) = inner.split_once('{').expect("a body");
            let name = head.trim_start_matches("pub mod ").trim();
            let path = if module.is_empty() { name.to_owned() } else { format!("{module}::{name}") };
            open.push((path, body.trim_end_matches('}').to_owned()));
        }
        let mut paths = Vec::new();
        for (at, word) in code.match_indices("pub use ") {
            if let Some((tree, _)) = code[at + word.len()..].split_once(';') {
                expand(&[], tree.trim(), &mut paths);
            }
        }
        let mut names: Vec<(String, String)> = paths.into_iter().map(|(path, name)| (name, path.join("::"))).collect();
        for kind in ["struct", "enum", "trait", "type"] {
            let word = format!("pub {kind} ");
            let own = code.match_indices(&word).map(|(at, _)| {
                let rest = &code[at + word.len()..];
                rest[..rest.find(|c: char| !c.is_alphanumeric()).unwrap_or(rest.len())].to_owned()
            });
            names.extend(own.map(|name| (name.clone(), format!("{module}::{name}"))));
        }
        let types = names
            .into_iter()
            .filter(|(name, _)| name.starts_with(char::is_uppercase) && name.contains(char::is_lowercase));
        found.extend(types.map(|(name, path)| (module.clone(), name, path)));
    }
    found
}

/// Returns the start and the end of a `pub mod` with its body.
fn inner_module(code: &str) -> Option<(usize, usize)> {
    let is_inner = |at: &usize| code[*at..].find(['{', ';']).is_some_and(|end| code[at + end..].starts_with('{'));
    let start = code.match_indices("pub mod ").map(|(at, _)| at).find(is_inner)?;
    let mut depth = 0_usize;
    for (at, c) in code[start..].char_indices() {
        depth = match c {
            '{' => depth + 1,
            '}' if depth == 1 => return Some((start, start + at + 1)),
            '}' => depth.saturating_sub(1),
            _ => depth,
        };
    }
    None
}

/// Returns the text of a file without the tests at its end.
pub(super) fn without_tests(text: &str) -> &str {
    text.match_indices("#[cfg(test)]")
        .map(|(at, _)| at)
        .find_map(|at| {
            let (item, _) = text[at..].split_once('\n')?.1.split_once('\n')?;
            (item.starts_with("mod ") && item.ends_with('{')).then(|| &text[..at])
        })
        .unwrap_or(text)
}

/// Returns Rust code without comments, and with empty texts and characters.
fn without_literals(text: &str) -> String {
    separated(text).0
}

/// Returns the texts in Rust code: its string literals as they are written, with lines that are joined by a backslash in one.
pub(super) fn literals(text: &str) -> Vec<String> {
    separated(text).1
}

/// Returns Rust code without comments and literals, and its string literals.
fn separated(text: &str) -> (String, Vec<String>) {
    let text: Vec<char> = text.chars().collect();
    let mut texts = Vec::new();
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    let mut code = String::with_capacity(text.len());
    let mut at = 0;
    let next = |at: usize| text.get(at).copied().unwrap_or(' ');
    while at < text.len() {
        match text[at] {
            '/' if next(at + 1) == '/' => at = (at..text.len()).find(|at| text[*at] == '\n').unwrap_or(text.len()),
            'r' if matches!(next(at + 1), '"' | '#') && !code.ends_with(is_name) => {
                let marks = (at + 1..text.len()).take_while(|at| text[*at] == '#').count();
                let start = at + 1 + marks;
                if next(start) == '"' {
                    let ends = |at: &usize| text[*at] == '"' && (1..=marks).all(|mark| next(at + mark) == '#');
                    let end = (start + 1..text.len()).find(ends).unwrap_or(text.len());
                    texts.push(text[start + 1..end].iter().collect());
                    at = end + 1 + marks;
                } else {
                    // A raw identifier, as `r#type`.
                    at = start;
                }
            }
            '"' => {
                let start = at + 1;
                at = start;
                while at < text.len() && text[at] != '"' {
                    at += if text[at] == '\\' { 2 } else { 1 };
                }
                let lines: String = text[start..at.min(text.len())].iter().collect();
                let parts: Vec<&str> = lines.split("\\\n").collect();
                texts.push(parts.iter().map(|part| part.trim_start_matches(['\n', ' '])).collect());
                at += 1;
            }
            '\'' if next(at + 1) == '\\' => {
                at = (at + 3..text.len()).find(|at| text[*at] == '\'').map_or(text.len(), |end| end + 1);
            }
            '\'' if next(at + 2) == '\'' => at += 3,
            c => {
                code.push(if c == '\n' { ' ' } else { c });
                at += 1;
            }
        }
    }
    (code, texts)
}

/// Returns the imports of the `use` lines of a file.
fn imports(code: &str) -> Vec<Import> {
    let mut found = Vec::new();
    for (at, _) in code.match_indices("use ") {
        if code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_') {
            continue;
        }
        if let Some((tree, _)) = code[at + 4..].split_once(';') {
            expand(&[], tree.trim(), &mut found);
        }
    }
    found
}

/// Adds the paths of a tree as `a::{b, c::{self, d as e}}`. Trees of this project are a few levels deep.
fn expand(before: &[String], tree: &str, found: &mut Vec<Import>) {
    let parts = |path: &str| -> Vec<String> {
        let parts = path.split("::").map(|part| part.trim().to_owned()).filter(|part| !part.is_empty());
        before.iter().cloned().chain(parts).collect()
    };
    if let Some((path, list)) = tree.split_once('{') {
        let before = parts(path);
        let list = list.trim_end().trim_end_matches('}');
        let (mut depth, mut start) = (0_usize, 0);
        for (at, c) in list.char_indices().chain([(list.len(), ',')]) {
            match c {
                '{' => depth += 1,
                '}' => depth = depth.saturating_sub(1),
                ',' if depth == 0 || at == list.len() => {
                    let item = list[start..at].trim();
                    if !item.is_empty() {
                        expand(&before, item, found);
                    }
                    start = at + 1;
                }
                _ => {}
            }
        }
        return;
    }
    let (path, name) = tree.split_once(" as ").map_or((tree, None), |(path, name)| (path, Some(name.trim())));
    let mut path = parts(path);
    if path.last().is_some_and(|last| last == "self") {
        path.pop();
    }
    let Some(last) = path.last().cloned() else { return };
    found.push((path, name.map_or(last, ToOwned::to_owned)));
}

/// Returns the paths in code that begin with `crate` or `super`; those of `use` lines end at their first list.
fn paths(code: &str) -> Vec<Vec<String>> {
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    let mut found = Vec::new();
    let starts = code.match_indices("crate::").chain(code.match_indices("super::")).map(|(at, _)| at);
    // A `super::` after another one belongs to the same path.
    for at in starts.filter(|at| !code[..*at].ends_with(|c: char| is_name(c) || c == ':' || c == '$')) {
        let line = code[..at].trim_end();
        if line.ends_with("use") {
            continue;
        }
        let parts = code[at..].split("::").map_while(|part| {
            let end = part.find(|c| !is_name(c)).unwrap_or(part.len());
            (end > 0).then(|| (&part[..end], end == part.len()))
        });
        let mut path = Vec::new();
        for (part, goes_on) in parts {
            path.push(part.to_owned());
            if !goes_on {
                break;
            }
        }
        found.push(path);
    }
    found
}

/// Returns the modules that are in a circle, or between two circles.
pub(super) fn circle(uses: &BTreeMap<String, BTreeSet<String>>) -> BTreeSet<String> {
    let mut left = uses.clone();
    loop {
        let before = left.len();
        let open: BTreeSet<String> = left.keys().cloned().collect();
        left.retain(|_, used| used.iter().any(|used| open.contains(used)));
        let used: BTreeSet<String> = left.values().flatten().cloned().collect();
        left.retain(|module, _| used.contains(module));
        if left.len() == before {
            return left.into_keys().collect();
        }
    }
}
