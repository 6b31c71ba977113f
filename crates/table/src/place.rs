//! The places of a batch's rows in their file: for each row its line in a text file, or its row number. Almost every row is on the line after the
//! previous row, so only rows for which this is not true are stored.

use std::sync::Arc;

/// The place of each row of a batch in its file: its line, or its row number.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Places {
    /// The rows whose place is not one more than the place of the row before, each with its place, in the order of rows. The first row is
    /// among them.
    jumps: Vec<(usize, u64)>,
    /// The number of rows before the first row of these places; `jumps` counts these rows, too.
    start: usize,
    /// The name of the file; `None` if there is only one.
    file: Option<Arc<str>>,
}

impl Places {
    /// The places of rows that follow one another without gaps; the first row is at `first`, a line or row number.
    pub fn consecutive(first: u64) -> Self {
        Places { jumps: vec![(0, first)], start: 0, file: None }
    }

    /// Records that `row` is at `place`, a line or row number. Rows must be recorded in order.
    pub fn set(&mut self, row: usize, place: u64) {
        if self.jumps.is_empty() || self.at(row) != place {
            self.jumps.push((row, place));
        }
    }

    /// The place of `row`, a line or row number; 0 if none is recorded.
    pub fn at(&self, row: usize) -> u64 {
        let row = row + self.start;
        let after = self.jumps.partition_point(|(at, _)| *at <= row);
        match after.checked_sub(1).and_then(|before| self.jumps.get(before)) {
            Some((at, place)) => place + (row - at) as u64,
            None => 0,
        }
    }

    /// The places of the rows from `row` on. In the result, these rows are counted from 0 again.
    pub fn from(&self, row: usize) -> Places {
        Places { jumps: self.jumps.clone(), start: self.start + row, file: self.file.clone() }
    }

    /// Returns these places with `file`, the name of the rows' file.
    #[must_use]
    pub fn in_file(self, file: Arc<str>) -> Places {
        Places { file: Some(file), ..self }
    }

    /// The name of the rows' file; `None` if the data are a single file.
    pub fn file(&self) -> Option<&Arc<str>> {
        self.file.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_jumps_are_kept_and_all_places_are_told() {
        let lines = [2, 3, 4, 9, 10, 12, 13];
        let mut places = Places::default();
        for (row, line) in lines.into_iter().enumerate() {
            places.set(row, line);
        }
        assert_eq!(places.jumps, [(0, 2), (3, 9), (5, 12)]);
        assert_eq!((0..lines.len()).map(|row| places.at(row)).collect::<Vec<_>>(), lines);
        assert_eq!((places.from(4).at(0), places.from(4).from(1).at(1)), (10, 13));
        assert_eq!(Places::consecutive(7).at(5), 12);
    }
}
