//! Products by labels, as `einsum` writes them: `ij,jk->ik`. A letter names an axis. Axes with the same letter share one index, and a
//! letter that the result does not have is summed over. `...` stands for the axes that have no letter. Axes of extent 1 broadcast, as in
//! NumPy: their elements are used for all indices of the other operands' axes.

use crate::node::{Axes, Axis, Labels};
use crate::{TensorErrorKind, TensorGraph, TensorNodeId};
use cembra_value::Error;
use smallvec::SmallVec;

/// The text that stands for the axes without a letter.
const ELLIPSIS: &str = "...";

/// The letters of one operand or of the result, before and after `...`. Without `...`, `after` is `None`.
struct Term {
    before: Vec<char>,
    after: Option<Vec<char>>,
}

impl Term {
    fn parse(text: &str) -> Result<Term, Error> {
        let (before, after) = match text.split_once(ELLIPSIS) {
            Some((before, after)) => (before, Some(after)),
            None => (text, None),
        };
        let letters = |text: &str| {
            let letter = |letter: char| {
                if letter.is_alphabetic() {
                    return Ok(letter);
                }
                let kind = if ".->".contains(letter) { TensorErrorKind::Syntax } else { TensorErrorKind::BadLabel };
                Err(Error::tensors(kind, format!("`{letter}` is not a label"))
                    .hint("use letters as labels, and `...` only once"))
            };
            text.chars().filter(|letter| !letter.is_whitespace()).map(letter).collect::<Result<Vec<char>, Error>>()
        };
        Ok(Term { before: letters(before)?, after: after.map(letters).transpose()? })
    }

    fn letters(&self) -> impl Iterator<Item = char> {
        self.before.iter().chain(self.after.iter().flatten()).copied()
    }
}

/// The most labels that a product may have, including the labels of axes under `...`. An [`Axis`] cannot number more labels.
pub const MOST_LABELS: usize = Axis::MAX as usize + 1;

/// The numbering of labels: first the letters in the order in which they occur, then the axes under `...`, which are
/// aligned at the last one by the rules of broadcasting.
struct Numbers {
    letters: Vec<char>,
    /// The largest number of axes that an operand has under `...`.
    free: usize,
}

impl Numbers {
    /// Numbers the labels of operands, whose numbers of axes are `ranks`.
    fn of(terms: &[Term], ranks: impl Iterator<Item = usize>) -> Result<Numbers, Error> {
        let mut numbers = Numbers { letters: Vec::new(), free: 0 };
        for (term, rank) in terms.iter().zip(ranks) {
            let letters = term.letters().count();
            let fits = if term.after.is_some() { letters <= rank } else { letters == rank };
            if !fits {
                let message = format!("{letters} labels are given for a tensor of {rank} axes");
                return Err(Error::tensors(TensorErrorKind::RankMismatch, message));
            }
            numbers.free = numbers.free.max(rank - letters);
            for letter in term.letters() {
                if !numbers.letters.contains(&letter) {
                    numbers.letters.push(letter);
                }
            }
            if numbers.letters.len() + numbers.free > MOST_LABELS {
                let message = format!("a product has more than {MOST_LABELS} labels, which is the limit");
                return Err(Error::tensors(TensorErrorKind::Limit, message));
            }
        }
        Ok(numbers)
    }

    /// Returns the labels of a term that has `free` axes under `...`.
    ///
    /// # Errors
    /// If no operand has one of its letters.
    fn labels(&self, term: &Term, free: usize) -> Result<Axes, Error> {
        let number = |letter: &char| {
            let at = self.letters.iter().position(|known| known == letter);
            at.map(|at| at as Axis).ok_or_else(|| {
                let message = format!("no operand has the label `{letter}` of the result");
                Error::tensors(TensorErrorKind::UnknownOutputLabel, message)
            })
        };
        let first_free = self.letters.len() + self.free - free;
        let before = term.before.iter().map(number);
        let under = (first_free..first_free + free).map(|label| Ok(label as Axis));
        before.chain(under).chain(term.after.iter().flatten().map(number)).collect()
    }

    /// A label as text, for messages.
    fn named(&self, label: Axis) -> String {
        self.letters
            .get(usize::from(label))
            .map_or_else(|| "`...`".to_owned(), |letter| format!("the label `{letter}`"))
    }
}

/// A parsed text: the letters of each operand, and of the result if it is written.
struct Terms {
    operands: Vec<Term>,
    output: Option<Term>,
}

impl Terms {
    /// Parses a text for a product of `operands` operands.
    fn parse(text: &str, operands: usize) -> Result<Terms, Error> {
        let (inputs, output) = match text.split_once("->") {
            Some((inputs, output)) => (inputs, Some(Term::parse(output)?)),
            None => (text, None),
        };
        let terms = inputs.split(',').map(Term::parse).collect::<Result<Vec<Term>, Error>>()?;
        if terms.len() != operands {
            let message = format!("{operands} operands are given for {} lists of labels", terms.len());
            return Err(Error::tensors(TensorErrorKind::OperandCount, message));
        }
        Ok(Terms { operands: terms, output })
    }

    /// The labels of the result. If the result is not written, it has the axes of `...` and the letters that occur once, in alphabetical
    /// order.
    fn output(&self, numbers: &Numbers) -> Result<Axes, Error> {
        match &self.output {
            Some(term) if term.after.is_none() && numbers.free > 0 => {
                let message = "the operands have axes under `...`, but the result has none";
                Err(Error::tensors(TensorErrorKind::Syntax, message).hint("write `...` after `->` too"))
            }
            Some(term) => numbers.labels(term, if term.after.is_some() { numbers.free } else { 0 }),
            None => {
                let mut uses = vec![0_usize; numbers.letters.len()];
                // Letters of axes of extent 1 count too, although these axes were dropped.
                for letter in self.operands.iter().flat_map(Term::letters) {
                    uses[numbers.letters.iter().position(|known| *known == letter).unwrap_or_default()] += 1;
                }
                let mut once: Vec<char> = numbers
                    .letters
                    .iter()
                    .zip(&uses)
                    .filter(|(_, uses)| **uses == 1)
                    .map(|(letter, _)| *letter)
                    .collect();
                once.sort_unstable();
                numbers.labels(&Term { before: Vec::new(), after: Some(once) }, numbers.free)
            }
        }
    }
}

impl Labels {
    /// Parses a text such as `ij,jk->ik`, for operands whose numbers of axes are `ranks`. Labels are numbered in the order in which they
    /// occur.
    ///
    /// ```
    /// use cembra_tensor::Labels;
    ///
    /// let labels = Labels::parse("ij,jk->ki", &[2, 2])?;
    /// assert_eq!(labels.operands[1][..], [1, 2]);
    /// assert_eq!(labels.output[..], [2, 0]);
    /// # Ok::<(), cembra_value::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the text is not of this form, does not fit `ranks`, or names an axis of the result twice.
    pub fn parse(text: &str, ranks: &[usize]) -> Result<Labels, Error> {
        let terms = Terms::parse(text, ranks.len())?;
        let numbers = Numbers::of(&terms.operands, ranks.iter().copied())?;
        let own = |(term, rank): (&Term, &usize)| numbers.labels(term, rank - term.letters().count());
        let operands = terms.operands.iter().zip(ranks).map(own).collect::<Result<Vec<Axes>, Error>>()?;
        let output = terms.output(&numbers)?;
        if let Some(twice) = (1..output.len()).find(|at| output[..*at].contains(&output[*at])) {
            let message = format!("{} must stand only once in the result", numbers.named(output[twice]));
            return Err(Error::tensors(TensorErrorKind::RepeatedOutputLabel, message));
        }
        Ok(Labels { operands, output })
    }
}

impl TensorGraph {
    /// Multiplies the elements of `operands` whose labelled indices agree, and sums over the labels that the result does not have. `text` gives the
    /// labels, as in `ij,jk->ik`.
    ///
    /// ```
    /// use cembra_runtime::Scalar;
    /// use cembra_tensor::TensorGraph;
    ///
    /// let mut g = TensorGraph::standard();
    /// let a = g.leaf("a", Scalar::Float64, &[2, 3])?;
    /// let b = g.leaf("b", Scalar::Float64, &[3, 4])?;
    /// let product = g.einsum("ij,jk->ik", &[a, b])?;
    /// assert_eq!(g.extents(product), [2, 4]);
    /// let trace = g.leaf("c", Scalar::Float64, &[3, 3]).and_then(|c| g.einsum("ii", &[c]))?;
    /// assert!(g.extents(trace).is_empty());
    /// # Ok::<(), cembra_value::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the text is not of this form, or does not fit the operands.
    pub fn einsum(&mut self, text: &str, operands: &[TensorNodeId]) -> Result<TensorNodeId, Error> {
        let terms = Terms::parse(text, operands.len())?;
        let numbers = Numbers::of(&terms.operands, operands.iter().map(|operand| self.extents(*operand).len()))?;
        let mut labels = Labels { operands: Vec::with_capacity(operands.len()), output: Axes::new() };
        // True for labels that have an extent other than 1 in some operand.
        let mut is_wide = [false; MOST_LABELS];
        for (term, operand) in terms.operands.iter().zip(operands) {
            let extents = self.extents(*operand);
            let own = numbers.labels(term, extents.len() - term.letters().count())?;
            for (label, extent) in own.iter().zip(extents) {
                is_wide[usize::from(*label)] |= *extent != 1;
            }
            labels.operands.push(own);
        }
        let mut squeezed = Vec::with_capacity(operands.len());
        let mut known: [Option<usize>; MOST_LABELS] = [None; MOST_LABELS];
        for (own, operand) in labels.operands.iter_mut().zip(operands) {
            let extents = self.node(*operand).extents.clone();
            // Drops an axis of extent 1 if other operands have more indices: it broadcasts. A diagonal has one extent.
            let is_one = |label: Axis| own.iter().zip(&extents).all(|(known, extent)| *known != label || *extent == 1);
            let stays = |at: &usize| !is_wide[usize::from(own[*at])] || !is_one(own[*at]);
            let kept: SmallVec<[usize; 8]> = (0..extents.len()).filter(stays).collect();
            let narrow: SmallVec<[usize; 8]> = kept.iter().map(|at| extents[*at]).collect();
            squeezed.push(self.reshape(*operand, &narrow)?);
            *own = kept.iter().map(|at| own[*at]).collect();
            for (label, extent) in own.iter().zip(&narrow) {
                let known = *known[usize::from(*label)].get_or_insert(*extent);
                if known != *extent {
                    let label = numbers.named(*label);
                    let message = format!(
                        "{label} stands for an axis of {known} indices and an axis of {extent} indices, which must be equal"
                    );
                    return Err(Error::tensors(TensorErrorKind::SizeMismatch, message));
                }
            }
        }
        labels.output = terms.output(&numbers)?;
        self.contract(labels, &squeezed)
    }
}
