//! `cembra ops`: what operators there are, and what each of them does.

use super::print;
use crate::data::schema::nearest;
use crate::failure::{Failure, usage};
use crate::reference;
use cembra::Registry;

const NAME: &str = "ops";

/// Lists the operators, or tells all about one
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// The name of an operator (`math.add`), its short name (`add`) or its sign (`+`)
    #[arg(value_name = "NAME")]
    name: Option<String>,

    /// Print the page of all operators, which is `docs/operators.md`
    #[arg(long, conflicts_with = "name")]
    markdown: bool,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let registry = Registry::standard();
    match &args.name {
        None if args.markdown => print(&reference::markdown(registry)),
        None => print(&reference::list(registry)),
        Some(name) => print(&one(registry, name)?),
    }
}

/// The operator of this name, or that is written so.
fn one(registry: &Registry, name: &str) -> Result<String, Failure> {
    if let Some(id) = registry.find(name.strip_prefix("M.").unwrap_or(name)) {
        return Ok(reference::detail(registry.get(id)));
    }
    let all = reference::public(registry);
    // `+` finds `x + y`.
    let written: Vec<_> = all
        .iter()
        .filter(|def| reference::short_forms(def).iter().any(|form| form.split(' ').any(|word| word == name)))
        .map(|def| reference::detail(def))
        .collect();
    if !written.is_empty() {
        return Ok(written.join("\n"));
    }
    let names = || all.iter().flat_map(|def| std::iter::once(&def.name).chain(def.aliases)).copied();
    let hint = match nearest(name, names()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => "`cembra ops` lists them all".to_owned(),
    };
    Err(usage(NAME, format!("there is no operator `{name}`; {hint}")))
}
