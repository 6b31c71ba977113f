//! Products by labels, as `einsum` writes them: `ij,jk->ik`. A letter names an axis; axes with one letter are walked together, and a letter
//! that the result does not have is summed over. `...` stands for the axes that have no letter, which broadcast.

use crate::node::{Axes, Axis, Labels};
use crate::{Error, ErrorKind, Graph, NodeId};
use smallvec::SmallVec;

/// What stands for the axes without a letter.
const ELLIPSIS: &str = "...";

/// The letters of one operand, or of the result; what comes before `...`, and what after it.
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
                if letter.is_ascii_alphabetic() {
                    return Ok(letter);
                }
                let kind = if ".->".contains(letter) { ErrorKind::Syntax } else { ErrorKind::BadLabel };
                Err(Error::new(kind, format!("`{letter}` is no label"))
                    .hint("labels are letters, and `...` stands once"))
            };
            text.chars().filter(|letter| !letter.is_whitespace()).map(letter).collect::<Result<Vec<char>, Error>>()
        };
        Ok(Term { before: letters(before)?, after: after.map(letters).transpose()? })
    }

    fn letters(&self) -> impl Iterator<Item = char> {
        self.before.iter().chain(self.after.iter().flatten()).copied()
    }
}

/// The numbers of labels: letters in the order in which they are met, then the axes of `...`.
#[derive(Default)]
struct Numbers {
    letters: Vec<char>,
}

impl Numbers {
    fn of(&mut self, letter: char) -> Axis {
        let at = self.letters.iter().position(|known| *known == letter).unwrap_or_else(|| {
            self.letters.push(letter);
            self.letters.len() - 1
        });
        // There are 52 letters.
        at as Axis
    }
}

impl Graph {
    /// Products of elements whose labels agree, summed over the labels that the result does not have.
    ///
    /// ```
    /// use cembra_runtime::Scalar;
    /// use cembra_tensor::Graph;
    ///
    /// let mut g = Graph::standard();
    /// let a = g.leaf("a", Scalar::Float64, &[2, 3])?;
    /// let b = g.leaf("b", Scalar::Float64, &[3, 4])?;
    /// let product = g.einsum("ij,jk->ik", &[a, b])?;
    /// assert_eq!(g.extents(product), [2, 4]);
    /// let trace = g.leaf("c", Scalar::Float64, &[3, 3]).and_then(|c| g.einsum("ii", &[c]))?;
    /// assert!(g.extents(trace).is_empty());
    /// # Ok::<(), cembra_tensor::Error>(())
    /// ```
    ///
    /// # Errors
    /// The text is not of this form, or does not fit the operands.
    pub fn einsum(&mut self, text: &str, operands: &[NodeId]) -> Result<NodeId, Error> {
        let (inputs, output) = match text.split_once("->") {
            Some((inputs, output)) => (inputs, Some(Term::parse(output)?)),
            None => (text, None),
        };
        let terms = inputs.split(',').map(Term::parse).collect::<Result<Vec<Term>, Error>>()?;
        if terms.len() != operands.len() {
            let message = format!("{} operands for {} lists of labels", operands.len(), terms.len());
            return Err(Error::new(ErrorKind::OperandCount, message));
        }
        let mut numbers = Numbers::default();
        for letter in terms.iter().flat_map(Term::letters) {
            numbers.of(letter);
        }
        let first_free = numbers.letters.len();
        let free = |term: &Term, rank: usize| -> Result<usize, Error> {
            let letters = term.letters().count();
            let fits = if term.after.is_some() { letters <= rank } else { letters == rank };
            if fits {
                return Ok(rank - letters);
            }
            Err(Error::new(ErrorKind::RankMismatch, format!("{letters} labels for a tensor of {rank} axes")))
        };
        // Axes of `...` are aligned at the last.
        let mut most_free = 0;
        for (term, operand) in terms.iter().zip(operands) {
            most_free = most_free.max(free(term, self.extents(*operand).len())?);
        }
        let free_label = |count: usize, at: usize| (first_free + most_free - count + at) as Axis;
        let mut labels = Labels { operands: Vec::new(), output: Axes::new() };
        let mut squeezed = Vec::with_capacity(operands.len());
        let wide = self.wide_axes(&terms, operands, most_free);
        for (term, operand) in terms.iter().zip(operands) {
            let extents = self.node(*operand).extents.clone();
            let count = extents.len() - term.letters().count();
            let mut own = Axes::new();
            own.extend(term.before.iter().map(|letter| numbers.of(*letter)));
            own.extend((0..count).map(|at| free_label(count, at)));
            own.extend(term.after.iter().flatten().map(|letter| numbers.of(*letter)));
            // An axis of extent 1 under `...` has the same element for all indices that others have there.
            let stays = |at: &usize| {
                let free = usize::from(own[*at]).checked_sub(first_free);
                extents[*at] != 1 || free.is_none_or(|free| !wide[free])
            };
            let kept: SmallVec<[usize; 8]> = (0..extents.len()).filter(stays).collect();
            let narrow: SmallVec<[usize; 8]> = kept.iter().map(|at| extents[*at]).collect();
            squeezed.push(self.reshape(*operand, &narrow)?);
            labels.operands.push(kept.iter().map(|at| own[*at]).collect());
        }
        labels.output = match &output {
            Some(term) => {
                if term.after.is_none() && most_free > 0 {
                    let message = "the operands have axes under `...`, the result has none";
                    return Err(Error::new(ErrorKind::Syntax, message).hint("write `...` behind `->` too"));
                }
                let known = numbers.letters.len();
                let mut own = Axes::new();
                own.extend(term.before.iter().map(|letter| numbers.of(*letter)));
                own.extend((0..term.after.as_ref().map_or(0, |_| most_free)).map(|at| free_label(most_free, at)));
                own.extend(term.after.iter().flatten().map(|letter| numbers.of(*letter)));
                if let Some(unknown) = numbers.letters.get(known) {
                    let message = format!("no operand has the label `{unknown}` of the result");
                    return Err(Error::new(ErrorKind::UnknownOutputLabel, message));
                }
                own
            }
            None => {
                let mut once: Vec<char> = numbers.letters.clone();
                once.retain(|letter| terms.iter().flat_map(Term::letters).filter(|other| other == letter).count() == 1);
                once.sort_unstable();
                let free = (0..most_free).map(|at| free_label(most_free, at));
                free.chain(once.into_iter().map(|letter| numbers.of(letter))).collect()
            }
        };
        let made = self.contract(labels, &squeezed)?;
        Ok(made)
    }

    /// Which axes under `...` have another extent than 1 in some operand.
    fn wide_axes(&self, terms: &[Term], operands: &[NodeId], most_free: usize) -> Vec<bool> {
        let mut wide = vec![false; most_free];
        for (term, operand) in terms.iter().zip(operands) {
            let extents = self.extents(*operand);
            let count = extents.len() - term.letters().count();
            for (at, extent) in extents[term.before.len()..][..count].iter().enumerate() {
                wide[most_free - count + at] |= *extent != 1;
            }
        }
        wide
    }
}
