//! `cembra ops`: lists the operators and describes them.

use super::print;
use crate::failure::{Failure, usage};
use cembra::operators::{Registry, reference};
use cembra_table::schema::nearest;

const NAME: &str = "ops";

/// Lists the operators, or describes one in full
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// The name of an operator (`math.add`), its short name (`add`), its sign (`+`), or a part of names (`date`)
    #[arg(value_name = "NAME")]
    name: Option<String>,

    /// Print the page of all operators, which is `docs/operators.md`
    #[arg(long, conflicts_with = "name")]
    markdown: bool,
}

/// Runs `cembra ops`.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let registry = Registry::standard();
    match &args.name {
        None if args.markdown => print(&reference::markdown(registry)),
        None => print(&reference::list(&reference::public(registry))),
        Some(name) => print(&found(registry, name)?),
    }
}

/// The operators with this name or sign in full, and those with `name` in their names, one per line.
fn found(registry: &Registry, name: &str) -> Result<String, Failure> {
    let name = name.strip_prefix("M.").unwrap_or(name);
    let called = reference::called(registry, name);
    let mut like = reference::named_like(registry, name);
    like.retain(|def| called.iter().all(|one| one.name != def.name));
    let mut parts: Vec<_> = called.iter().map(|def| reference::detail(def)).collect();
    if !like.is_empty() {
        parts.push(reference::list(&like));
    }
    if !parts.is_empty() {
        return Ok(parts.join("\n"));
    }
    let all = reference::public(registry);
    let names = || all.iter().flat_map(|def| std::iter::once(&def.name).chain(def.aliases)).copied();
    let hint = match nearest(name, names()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => "`cembra ops` lists all operators".to_owned(),
    };
    Err(usage(NAME, format!("there is no operator `{name}`; {hint}")))
}
