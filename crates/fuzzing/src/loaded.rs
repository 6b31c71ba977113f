//! Runs programs whose inputs a loader supplies on demand. For each row, records the outputs and the inputs that were requested.

use crate::subject::Row;
use crate::values::fresh;
use cembra::loaders::{Accessor, Listener, Loader, Setter};
use cembra::{Backend, Error, Model, Options, QType};
use cembra_value::{Value, ValueRef};
use std::cell::RefCell;
use std::collections::HashSet;
use std::sync::Arc;

/// The outputs that a backend gives for a row, and the inputs that it requested from the loader.
pub(crate) struct LoadedAnswer {
    /// The outputs for the row; `None` for a fault.
    pub(crate) outputs: Option<Vec<Value>>,
    /// The names of the inputs that were requested, in order.
    pub(crate) asked: Vec<Arc<str>>,
}

impl LoadedAnswer {
    /// Returns the name of an input that was requested twice, or that is not in `needed`; `None` if every request was necessary.
    pub(crate) fn needless(&self, needed: Option<&HashSet<Arc<str>>>) -> Option<&Arc<str>> {
        let mut asked = HashSet::new();
        self.asked.iter().find(|name| !asked.insert(*name) || needed.is_some_and(|needed| !needed.contains(*name)))
    }
}

/// A row, and the names that were requested from it.
struct AskedRow {
    row: Row,
    asked: RefCell<Vec<Arc<str>>>,
}

/// A loader for rows that record the requested names.
struct RequestLoader;

impl Loader<AskedRow> for RequestLoader {
    fn knows(&self, _: &str) -> bool {
        true
    }

    fn qtype(&self, _: &str, declared: Option<&QType>) -> Option<QType> {
        declared.cloned()
    }

    fn names(&self) -> Vec<String> {
        Vec::new()
    }

    fn bind(&self, name: &str, _: &QType) -> Result<Accessor<AskedRow>, Error> {
        let name: Arc<str> = name.into();
        Ok(Accessor::new(move |row: &AskedRow| {
            row.asked.borrow_mut().push(name.clone());
            Ok(row.row.get(&name).map_or(ValueRef::Missing, ValueRef::from))
        }))
    }
}

/// A listener that stores all outputs, in their order.
struct OutputCollector;

impl Listener<Vec<Value>> for OutputCollector {
    fn knows(&self, _: &str) -> bool {
        true
    }

    fn qtype(&self, _: &str, given: &QType) -> QType {
        given.clone()
    }

    fn names(&self) -> Vec<String> {
        Vec::new()
    }

    fn bind(&self, _: &str, qtype: &QType) -> Result<Setter<Vec<Value>>, Error> {
        let qtype = qtype.clone();
        Ok(Setter::new(move |outputs: &mut Vec<Value>, value| {
            outputs.push(value.to_value(&qtype).ok_or_else(|| Error::values("an output of another type"))?);
            Ok(())
        }))
    }
}

/// Returns the answers of both backends to `rows`, by the backend's name. A backend that cannot compile the model is left out, because other checks
/// report that.
pub(crate) fn answers(model: &Model, options: &Options, rows: &[Row]) -> Vec<(&'static str, Vec<LoadedAnswer>)> {
    let backends = [("interpreter with a loader", Backend::Interpreter), ("native with a loader", Backend::Native)];
    let made = backends.into_iter().filter_map(|(name, backend)| {
        let mut executor = model
            .executor_between::<AskedRow, (), _>(&RequestLoader, &OutputCollector, &options.clone().backend(backend))
            .ok()?;
        let answers = rows.iter().map(|row| {
            // The values are copies that are dropped with the row, so that a view of an earlier row's text would be dangling.
            let values = row.values().iter().map(|(name, value)| (name.clone(), fresh(value))).collect();
            let row = AskedRow { row: Row::new(values), asked: RefCell::default() };
            let mut outputs = Vec::new();
            let heard = executor.listen(&row, &mut outputs);
            LoadedAnswer { outputs: heard.is_ok().then_some(outputs), asked: row.asked.into_inner() }
        });
        Some((name, answers.collect()))
    });
    made.collect()
}
