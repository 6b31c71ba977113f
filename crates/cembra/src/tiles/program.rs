//! Models whose text says how tensors are cut: `tile i, j = 8`, and inputs `tiled[f64, "i,j"]`. Here data meet the cuts of labels: dense tensors
//! are cut, and tiled ones have to be cut so already. Whether labels of one axis are cut alike is checked when the model is compiled.

use super::run::Run;
use crate::{Cut, Error, Executor, Field};
use cembra_runtime::Excerpt;
use cembra_tensor::{Tensor, TensorErrorKind, TensorGraph, TensorNodeId};
use cembra_tiles::{Screening, Tiled, Tiling, Tiling1};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// A value for an input of a model that is evaluated in tiles.
#[derive(Clone, Copy, Debug)]
pub enum Operand<'o> {
    /// A tensor in tiles.
    Tiled(&'o Tiled),
    /// A dense tensor, which is cut as the model says. A number is one without axes.
    Dense(&'o Tensor),
}

impl<'o> From<&'o Tiled> for Operand<'o> {
    fn from(tiled: &'o Tiled) -> Operand<'o> {
        Operand::Tiled(tiled)
    }
}

impl<'o> From<&'o Tensor> for Operand<'o> {
    fn from(tensor: &'o Tensor) -> Operand<'o> {
        Operand::Dense(tensor)
    }
}

impl Operand<'_> {
    /// The number of elements of each axis.
    fn extents(&self) -> Cow<'_, [usize]> {
        match self {
            Operand::Tiled(tiled) => tiled.tiling().extents().to_vec().into(),
            Operand::Dense(tensor) => tensor.extents().into(),
        }
    }
}

/// How the axes of labels are cut.
struct Labels<'l> {
    /// What the model says.
    cuts: BTreeMap<&'l str, &'l Cut>,
    /// The tilings that follow for data, as far as these were looked at.
    known: BTreeMap<&'l str, Tiling1>,
}

impl Run {
    /// Evaluates a model on a tensor for each of its inputs, by name: the outputs, by theirs. The axes of an input `tiled[f64, "i,j"]` are cut
    /// as the model says it of its labels: `tile i = 8`, `tile j = [0, 17, 40]`. A label without `tile` is one tile, and so are the axes of an
    /// input `tensor[f64, 2]`. Where a model says nothing of tiles, tensors keep the tiles that they have.
    ///
    /// ```
    /// use cembra::tensor::Tensor;
    /// use cembra::tiles::{Operand, Options, World};
    /// use cembra::Model;
    ///
    /// let text = r#"
    ///     tile i, j, k = 2
    ///     input a: tiled[f64, "i,k"]
    ///     b("i,j") = a("i,k") * a("j,k")
    ///     output trace = b("i,i").sum()
    /// "#;
    /// let model = Model::parse(text)?.compile(&cembra::Options::default())?;
    /// let a = Tensor::new(&[3, 2], vec![1.0, 2.0, 0.0, 0.0, 0.0, 3.0])?;
    /// let mut run = World::from_environment()?.evaluator(Options::default());
    /// let made = run.model(&model, [("a", Operand::Dense(&a))])?;
    /// assert_eq!(made["b"].tiling().tiles(), 4);
    /// assert_eq!(made["trace"].get::<f64>(&[])?, 14.0);
    /// // The model is one of dense tensors, too.
    /// assert_eq!(model.session().run_tensors(&[a])?[1].get::<f64>(&[])?, 14.0);
    /// # Ok::<(), cembra::Error>(())
    /// ```
    ///
    /// # Errors
    /// An input has no tensor, or one of another type or rank; an axis has another extent than the boundaries of its label, or than another axis
    /// of that label; a tiled tensor is cut otherwise; the model has other values than tensors; or those of
    /// [`Evaluator::evaluate`](cembra_tiles::Evaluator::evaluate).
    pub fn model<'o>(
        &self,
        model: &Executor,
        inputs: impl IntoIterator<Item = (&'o str, Operand<'o>)>,
    ) -> Result<BTreeMap<String, Tiled>, Error> {
        let given: BTreeMap<&str, Operand<'o>> = inputs.into_iter().collect();
        let mut labels = Labels { cuts: model.cuts().collect(), known: BTreeMap::new() };
        let mut tiled: Vec<Cow<'o, Tiled>> = Vec::with_capacity(model.inputs().len());
        for field in model.inputs() {
            let name = Excerpt::quoted(&field.name);
            let Some(operand) = given.get(&*field.name).copied() else {
                let message = format!("no tensor is given for `{name}`");
                return Err(Error::tensors(TensorErrorKind::UnknownName, message));
            };
            tiled.push(self.cut(model, field, operand, &mut labels)?);
        }
        let tiled: Vec<&Tiled> = tiled.iter().map(|tiled| &**tiled).collect();
        let (graph, nodes) = graph_for(model, &tiled)?;
        let made = self.graph(&graph, &nodes, &tiled)?;
        Ok(model.outputs().iter().map(|field| field.name.to_string()).zip(made).collect())
    }

    /// An operand in the tiles that its input has.
    fn cut<'o, 'l>(
        &self,
        model: &'l Executor,
        field: &'l Field,
        operand: Operand<'o>,
        labels: &mut Labels<'l>,
    ) -> Result<Cow<'o, Tiled>, Error> {
        let extents = operand.extents();
        let axes = match (&field.labels, operand) {
            (Some(own), _) => {
                // An input has as many labels as axes, and none if it has none.
                let own: Vec<&str> = own.split(',').filter(|label| !label.is_empty()).collect();
                if own.len() != extents.len() {
                    let message = format!("input `{}` has {} axes", Excerpt::quoted(&field.name), own.len());
                    let message = format!("{message}, and the tensor {}", extents.len());
                    return Err(Error::tensors(TensorErrorKind::RankMismatch, message));
                }
                let axes = own.into_iter().zip(&*extents);
                axes.map(|(label, extent)| labels.tiling(field, label, *extent)).collect()
            }
            (None, Operand::Tiled(tiled)) if !model.is_tiled() => return Ok(Cow::Borrowed(tiled)),
            (None, _) => extents.iter().map(|extent| one_tile(*extent)).collect::<Result<Vec<_>, _>>(),
        }?;
        let tiling = Tiling::new(axes)?;
        match operand {
            Operand::Tiled(tiled) if *tiled.tiling() == tiling => Ok(Cow::Borrowed(tiled)),
            Operand::Tiled(tiled) => {
                let message = format!(
                    "input `{}` is cut at {tiling:?}, and the tensor at {:?}",
                    Excerpt::quoted(&field.name),
                    tiled.tiling()
                );
                let error = Error::tensors(TensorErrorKind::SizeMismatch, message);
                Err(error.hint("cut the tensor anew by `Tiled::retile`"))
            }
            Operand::Dense(tensor) => {
                let screening = match tensor.extents() {
                    // Numbers are not screened.
                    [] => Screening::threshold(0.0),
                    _ => self.options().screening(tensor.scalar_type())?,
                };
                Tiled::from_tensor(tensor, &tiling, &screening).map(Cow::Owned)
            }
        }
    }
}

impl<'l> Labels<'l> {
    /// The tiling of an axis with this label, which has `extent` elements in the tensor for an input.
    fn tiling(&mut self, field: &Field, label: &'l str, extent: usize) -> Result<Tiling1, Error> {
        let tiling = match (self.known.get(label), self.cuts.get(label)) {
            (Some(known), _) => known.clone(),
            (None, None) => one_tile(extent)?,
            (None, Some(Cut::Blocks(size))) => Tiling1::blocked(extent as u64, *size)?,
            (None, Some(Cut::Boundaries(boundaries))) => Tiling1::new(boundaries.iter().copied())?,
        };
        if tiling.extent() != extent {
            let (label, name) = (Excerpt::quoted(label), Excerpt::quoted(&field.name));
            let message =
                format!("the label `{label}` has {} indices, and {extent} in input `{name}`", tiling.extent());
            return Err(Error::tensors(TensorErrorKind::SizeMismatch, message));
        }
        self.known.insert(label, tiling.clone());
        Ok(tiling)
    }
}

/// The graph of a model for tiled tensors, and the nodes of its outputs.
pub(super) fn graph_for(model: &Executor, tiled: &[&Tiled]) -> Result<(TensorGraph, Vec<TensorNodeId>), Error> {
    let extents: Vec<_> = tiled.iter().map(|tiled| tiled.tiling().extents()).collect();
    let extents: Vec<&[usize]> = extents.iter().map(|extents| &extents[..]).collect();
    if !model.has_blocks() {
        return model.graph_for(&extents);
    }
    let cuts = |tiled: &&Tiled| tiled.tiling().axes().iter().map(cut_of).collect();
    model.graph_for_tiles(&extents, &tiled.iter().map(cuts).collect::<Vec<Vec<Option<Cut>>>>())
}

/// How an axis is cut; none if it is one tile.
fn cut_of(axis: &Tiling1) -> Option<Cut> {
    match axis.tile_size() {
        Some(size) if axis.tiles() > 1 => Some(Cut::Blocks(size)),
        Some(_) => None,
        None => Some(Cut::Boundaries(axis.boundaries().collect())),
    }
}

/// An axis that is one tile.
fn one_tile(extent: usize) -> Result<Tiling1, Error> {
    Tiling1::blocked(extent as u64, (extent as u64).max(1))
}
