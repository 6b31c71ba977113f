//! Links of the pages lead to files and headings that there are, and the table of contents has every page.

use super::{read, root};
use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

/// The pages of `docs/`, with their paths from the root.
pub(crate) fn pages() -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![root().join("docs")];
    while let Some(folder) = folders.pop() {
        let entries = std::fs::read_dir(&folder).expect("a folder");
        for path in entries.map(|entry| entry.expect("an entry").path()) {
            if path.is_dir() && path.file_name().is_none_or(|name| name != "target" && name != "node_modules") {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                found.push(path.strip_prefix(root()).expect("inside").to_owned());
            }
        }
    }
    found.sort();
    found
}

/// The lines of a page that are not in blocks of code.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut in_code = false;
    text.lines().filter(move |line| {
        let is_fence = line.trim_start().starts_with("```");
        in_code ^= is_fence;
        !in_code && !is_fence
    })
}

/// What a page links to, as it is written.
fn links(text: &str) -> Vec<String> {
    // Spans of code are no links; one ends with as many quotes as it begins with.
    let prose: Vec<&str> = prose(text).collect();
    let mut rest = &*prose.join("\n");
    let mut shown = String::new();
    while let Some(at) = rest.find('`') {
        shown += &rest[..at];
        let behind = rest[at..].trim_start_matches('`');
        let quotes = &rest[at..rest.len() - behind.len()];
        rest = behind.split_once(quotes).map_or(behind, |(_, behind)| behind);
    }
    shown += rest;
    let targets = shown.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
    targets.map(|(target, _)| target.to_owned()).collect()
}

/// The names by which the headings of a page are linked to.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for line in prose(text) {
        let title = line.trim_start_matches('#');
        if title.len() == line.len() || !title.starts_with(' ') {
            continue;
        }
        let letters = title.trim().chars().flat_map(char::to_lowercase);
        let kept = letters.filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        let name: String = kept.map(|c| if c == ' ' { '-' } else { c }).collect();
        let again = (1..).map(|count| format!("{name}-{count}")).find(|other| !found.contains(other));
        found.insert(if found.contains(&name) { again.expect("numbers do not end") } else { name });
    }
    found
}

/// The path without `..` inside of it.
fn plain(path: &Path) -> PathBuf {
    let mut found = PathBuf::new();
    for part in path.components() {
        if part == Component::ParentDir {
            found.pop();
        } else {
            found.push(part);
        }
    }
    found
}

/// What is wrong with a link of a page.
fn broken(page: &Path, link: &str) -> Option<&'static str> {
    if link.contains("://") || link.starts_with("mailto:") {
        return None;
    }
    let (path, anchor) = link.split_once('#').map_or((link, None), |(path, anchor)| (path, Some(anchor)));
    let target = if path.is_empty() { page.to_owned() } else { plain(&page.parent().expect("a folder").join(path)) };
    if !root().join(&target).exists() {
        return Some("there is no such file");
    }
    let anchor = anchor?;
    (!anchors(&read(&target)).contains(anchor)).then_some("there is no such heading")
}

#[test]
fn links_lead_to_files_and_headings() {
    let mut wrong = Vec::new();
    let mut count = 0;
    let others = ["README.md", "CHANGELOG.md", "benches/README.md"].map(PathBuf::from);
    for page in pages().into_iter().chain(others) {
        for link in links(&read(&page)) {
            count += 1;
            if let Some(what) = broken(&page, &link) {
                wrong.push(format!("{}: {link}: {what}", page.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count > 200, "{count} links");
}

#[test]
fn the_book_has_every_page_once() {
    let summary = read("docs/SUMMARY.md");
    let links = links(&summary);
    let listed: BTreeSet<PathBuf> = links.iter().map(|link| Path::new("docs").join(link)).collect();
    assert_eq!(listed.len(), links.len(), "docs/SUMMARY.md lists a page twice");
    // A book is made of chapters: what is listed and is no link cannot be one.
    for line in summary.lines().filter(|line| line.trim_start().starts_with("- ")) {
        let is_link = line.trim_start().starts_with("- [") && line.ends_with(".md)");
        assert!(is_link, "docs/SUMMARY.md lists what is no page: {line}");
    }
    let expected: BTreeSet<PathBuf> = pages().into_iter().filter(|page| !page.ends_with("SUMMARY.md")).collect();
    let lacking: Vec<_> = expected.difference(&listed).collect();
    let strange: Vec<_> = listed.difference(&expected).collect();
    assert!(lacking.is_empty() && strange.is_empty(), "docs/SUMMARY.md lacks {lacking:?}, and lists {strange:?}");
}

/// A chapter of the guide is a screen or two. The one on tensors is longer: it has all that they do, in sections.
#[test]
fn chapters_of_the_guide_are_short() {
    let is_short = |page: &PathBuf| page.starts_with("docs/guide") && !page.ends_with("tensors.md");
    for page in pages().into_iter().filter(is_short) {
        let lines = read(&page).lines().count();
        assert!(lines <= 170, "{} has {lines} lines", page.display());
    }
}

#[test]
fn what_is_wrong_with_a_link_is_found() {
    let page = Path::new("docs/guide/README.md");
    assert_eq!(broken(page, "install.md"), None);
    assert_eq!(broken(page, "instal.md"), Some("there is no such file"));
    assert_eq!(broken(page, "../language.md#let--in"), None);
    assert_eq!(broken(page, "../language.md#let-in"), Some("there is no such heading"));
    assert_eq!(links("[a](b.md) `[c](d.md)`\n```\n[e](f.md)\n```\n[``g`](``](h.md)"), ["b.md", "h.md"]);
    assert_eq!(Vec::from_iter(anchors("# A `b`, c\n```\n# d\n```\n## e\n## e\n#f")), ["a-b-c", "e", "e-1"]);
}
