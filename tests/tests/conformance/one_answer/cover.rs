//! Covering arrays: few cases, each with a value for every factor, in which all pairs of values of two factors occur.

/// Cases for factors with so many values each, greedily: as long as a pair is missing, a case with it, and with whatever else adds most
/// that are missing.
pub(crate) fn pairs(sizes: &[usize], random: &mut fastrand::Rng) -> Vec<Vec<usize>> {
    let mut missing = Missing::of(sizes);
    let mut cases = Vec::new();
    while let Some(pair) = missing.first() {
        let mut case: Vec<Option<usize>> = vec![None; sizes.len()];
        pair.into_iter().for_each(|(factor, value)| case[factor] = Some(value));
        let mut open: Vec<usize> = (0..sizes.len()).filter(|factor| case[*factor].is_none()).collect();
        random.shuffle(&mut open);
        for factor in open {
            // From any value on, so that ties are not always won by the first.
            let start = random.usize(..sizes[factor]);
            let values = (0..sizes[factor]).map(|value| (value + start) % sizes[factor]);
            case[factor] = values.max_by_key(|value| missing.added(&case, (factor, *value)));
        }
        let case: Vec<usize> = case.into_iter().flatten().collect();
        missing.take(&case);
        cases.push(case);
    }
    cases
}

/// Which pairs of values occur in no case.
pub(crate) struct Missing {
    /// Where the values of each factor begin among all.
    starts: Vec<usize>,
    factors: Vec<(usize, usize)>,
    pairs: Vec<bool>,
    next: usize,
}

impl Missing {
    /// All pairs of values of two factors.
    pub(crate) fn of(sizes: &[usize]) -> Missing {
        let (mut starts, mut factors) = (Vec::new(), Vec::new());
        for (factor, size) in sizes.iter().enumerate() {
            starts.push(factors.len());
            factors.extend((0..*size).map(|value| (factor, value)));
        }
        let all = factors.iter().flat_map(|a| factors.iter().map(move |b| a.0 < b.0)).collect();
        Missing { starts, factors, pairs: all, next: 0 }
    }

    fn at(&self, a: (usize, usize), b: (usize, usize)) -> usize {
        let [first, second] =
            if a.0 < b.0 { [a, b] } else { [b, a] }.map(|(factor, value)| self.starts[factor] + value);
        first * self.factors.len() + second
    }

    fn first(&mut self) -> Option<[(usize, usize); 2]> {
        let found = self.next + self.pairs[self.next..].iter().position(|pair| *pair)?;
        self.next = found;
        Some([found / self.factors.len(), found % self.factors.len()].map(|at| self.factors[at]))
    }

    /// How many of the missing pairs a value would add to a case.
    fn added(&self, case: &[Option<usize>], value: (usize, usize)) -> usize {
        let others = case.iter().enumerate().filter_map(|(factor, other)| Some((factor, (*other)?)));
        others.filter(|other| self.pairs[self.at(*other, value)]).count()
    }

    /// Says that a case has been tried.
    pub(crate) fn take(&mut self, case: &[usize]) {
        for a in case.iter().copied().enumerate() {
            for b in case.iter().copied().enumerate().skip(a.0 + 1) {
                let at = self.at(a, b);
                self.pairs[at] = false;
            }
        }
    }

    /// How many are left.
    pub(crate) fn count(&self) -> usize {
        self.pairs.iter().filter(|pair| **pair).count()
    }
}
