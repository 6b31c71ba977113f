//! The Python objects for outputs of many rows: NumPy arrays, or columns of the same package (such as pandas) as the inputs. An output that equals an
//! input has the type of the input's column. In pandas, the other outputs have the same kind of types (NumPy, nullable or Arrow) as the columns from
//! which they are computed.

use crate::columns::{Column, Origin, Out, Rows, Target};
use crate::packages::{Family, Package, frames};
use crate::phases::Phases;
use cembra::RowFailure;
use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::PyList;
use std::collections::HashMap;

/// The outputs of a model for many rows, as Python objects, and the rows that failed.
pub(crate) struct RowsOutputs<'py> {
    pub(crate) outputs: Vec<Bound<'py, PyAny>>,
    /// The pandas index of the rows of the outputs; `None` if they have no index.
    pub(crate) index: Option<Bound<'py, PyAny>>,
    /// The indices of the rows whose evaluation failed.
    pub(crate) failed: Vec<usize>,
    pub(crate) failures: Vec<RowFailure>,
}

/// The Python package of the objects that a run's outputs become, and for pandas their index.
pub(crate) struct OutputForm<'py> {
    /// The Python package of the outputs; `None` for NumPy.
    package: Option<Package>,
    /// The pandas index of the rows; `None` if the outputs do not have one.
    index: Option<Bound<'py, PyAny>>,
    /// True if the outputs become the columns of one frame.
    is_table: bool,
}

impl<'py> OutputForm<'py> {
    /// Determines the Python package and the pandas index of the outputs: those of `table`, if it is given, else those of the input columns
    /// `columns`. If no input that the model reads is a column, `unread`, a column that the model does not read, decides.
    pub(crate) fn of(
        py: Python<'py>,
        phases: &Phases,
        columns: &[Option<Column<'py>>],
        unread: Option<Bound<'py, PyAny>>,
        table: Option<(Package, Option<Bound<'py, PyAny>>)>,
    ) -> PyResult<Self> {
        if let Some((package, index)) = table {
            return Ok(OutputForm { package: Some(package), index, is_table: true });
        }
        let named = phases.columns.iter().zip(columns).filter_map(|(input, column)| {
            let origin = column.as_ref()?.origin.as_ref()?;
            Some((input.as_ref().map_or("", |input| &input.name), origin.object.clone(), origin.package))
        });
        let mut named: Vec<(&str, Bound<'py, PyAny>, Package)> = named.collect();
        if let Some(unread) =
            unread.filter(|_| named.is_empty() && columns.iter().flatten().all(|column| column.rows().is_none()))
        {
            let package = Package::of(&unread)?;
            if package != Package::Other {
                named.push(("", unread, package));
            }
        }
        let is_pandas = |package: &Package| matches!(package, Package::Pandas(_));
        let Some(first) =
            named.iter().map(|(.., package)| *package).find(is_pandas).or(named.first().map(|first| first.2))
        else {
            return Ok(OutputForm { package: None, index: None, is_table: false });
        };
        let index = match is_pandas(&first) {
            true => {
                let series =
                    named.iter().filter(|(.., package)| is_pandas(package)).map(|(name, object, _)| (*name, object));
                let index = frames(py)?.call_method1("common_index", (PyList::new(py, series)?,))?;
                Some(index).filter(|index| !index.is_none())
            }
            false => None,
        };
        Ok(OutputForm { package: Some(first), index, is_table: false })
    }

    /// The kind of column that each output becomes, in the order of the model's outputs.
    pub(crate) fn targets(
        &self,
        model: &cembra::Model,
        phases: &Phases,
        columns: &[Option<Column<'py>>],
    ) -> Vec<Target> {
        let all = |target| vec![target; phases.last.batch.outputs().len()];
        match self.package {
            None => all(Target::Numpy),
            Some(Package::Pandas(_)) => {
                let families = phases.columns.iter().zip(columns).filter_map(|(input, column)| {
                    let (input, column) = (input.as_ref()?, column.as_ref()?);
                    let family = column.origin.as_ref().map_or(Family::Numpy, |origin| origin.package.family());
                    column.rows().map(|_| (&*input.name, family))
                });
                let families = phases.families(model, Family::Numpy, &families.collect::<HashMap<_, _>>());
                families.into_iter().map(|family| Target::Package(Package::Pandas(family))).collect()
            }
            Some(package) => all(Target::Package(package)),
        }
    }

    /// Converts the outputs to the objects that the caller gets, such as a pandas Series for each output of a call, or a column of the resulting
    /// table. Arrays that the caller passed as `out` are returned unchanged.
    pub(crate) fn outputs(
        &self,
        py: Python<'py>,
        phases: &Phases,
        columns: &[Option<Column<'py>>],
        rows: usize,
        made: Rows<'py>,
        out: &[Out<'py>],
    ) -> PyResult<RowsOutputs<'py>> {
        let Rows { mut outputs, failed, failures, kept } = made;
        let mut index = self.index.clone();
        if let (Some(kept), Some(whole)) = (&kept, &index) {
            index = Some(whole.get_item(kept)?);
        }
        if self.package.is_some() {
            let fields = phases.last.batch.outputs().iter().zip(&phases.sources);
            for (made, (field, source)) in outputs.iter_mut().zip(fields) {
                if out.iter().any(|(name, _)| *name == *field.name) {
                    continue;
                }
                let carried = source.carried.and_then(|place| {
                    let column = columns.get(place)?.as_ref()?;
                    let input = phases.columns.get(place)?.as_ref()?;
                    // An input with a default is not carried, because the default replaces missing values. A column of another package is not either,
                    // because it is converted.
                    let is_of_package = |origin: &&Origin<'_>| match (self.package, origin.package) {
                        (Some(Package::Pandas(_)), Package::Pandas(_)) => true,
                        (package, own) => package == Some(own),
                    };
                    let stays = input.default.is_none() && column.is_carried(&input.qtype);
                    column.origin.as_ref().filter(is_of_package).filter(|_| stays).map(|origin| (column, origin))
                });
                let is_whole = failed.is_empty() || kept.is_some();
                let with_gaps = match &carried {
                    Some((_, origin)) if !is_whole => {
                        let mut is_kept = vec![true; rows];
                        for row in &failed {
                            is_kept.get_mut(*row).into_iter().for_each(|kept| *kept = false);
                        }
                        let is_kept = PyArray1::from_vec(py, is_kept);
                        let given = (&origin.object, &*field.name, &self.index, is_kept);
                        Some(frames(py)?.call_method1("carried_with_gaps", given)?).filter(|made| !made.is_none())
                    }
                    _ => None,
                };
                if let Some(with_gaps) = with_gaps {
                    *made = with_gaps;
                    continue;
                }
                let is_series = matches!(self.package, Some(Package::Pandas(_))) && !self.is_table;
                if let Some((column, origin)) = carried.filter(|_| is_whole) {
                    let column = match column.imported(py, &field.name)? {
                        Some(imported) => imported,
                        None => frames(py)?.call_method1("carried", (&origin.object, &*field.name, &self.index))?,
                    };
                    *made = match &kept {
                        Some(kept) => frames(py)?.call_method1("kept_rows", (column, kept))?,
                        None => column,
                    };
                } else if is_series {
                    *made = frames(py)?.call_method1("made_series", (&*made, &index, &*field.name))?;
                }
            }
        }
        Ok(RowsOutputs { outputs, index, failed, failures })
    }
}
