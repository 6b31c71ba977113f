//! The columns of tables in tests, which stand below each other.

use super::structure::{Bracket, BracketKind, Role, Structure};
use super::tokens::Tokens;
use crate::text::token::TokenKind;

/// The widest that a column is made; what is wider stands out of it.
const WIDEST: usize = 40;

/// A cell of a row that is on one line.
#[derive(Clone, Copy)]
struct Cell {
    /// Which column it is in; those behind the arrow have their own.
    column: (bool, usize),
    width: usize,
    /// The token behind it, which begins where the column ends. None behind the last.
    next: Option<usize>,
}

/// Gives the tokens of tables the blanks before them that make columns.
pub(super) fn align(tokens: &Tokens<'_>, structure: &mut Structure) {
    let Structure { roles, brackets } = structure;
    for table in brackets.iter().filter(|bracket| bracket.kind == BracketKind::Table) {
        let cells = cells(tokens, roles, table);
        let mut widths: [Vec<usize>; 2] = [Vec::new(), Vec::new()];
        for cell in cells.iter().filter(|cell| cell.next.is_some() && cell.width <= WIDEST) {
            let (is_behind, column) = cell.column;
            let widths = &mut widths[usize::from(is_behind)];
            widths.resize(widths.len().max(column + 1), 0);
            widths[column] = widths[column].max(cell.width);
        }
        for cell in cells {
            let (is_behind, column) = cell.column;
            if let (Some(next), Some(width)) = (cell.next, widths[usize::from(is_behind)].get(column)) {
                roles[next].padding = u8::try_from(width.saturating_sub(cell.width)).unwrap_or_default();
            }
        }
    }
}

/// The cells of all rows that are on one line each.
fn cells(tokens: &Tokens<'_>, roles: &[Role], table: &Bracket) -> Vec<Cell> {
    let mut cells: Vec<Cell> = Vec::new();
    let end = table.close.min(tokens.len() - 1);
    let mut first = table.open + 1;
    while first < end {
        let behind = (first + 1..end).find(|index| roles[*index].begins_row).unwrap_or(end);
        let in_row = first..behind;
        let is_one_line = |index: usize| !tokens.at(index).first_on_line && !tokens.has_comment_before(index);
        if (first + 1..behind).all(is_one_line) {
            let row = cells.len();
            add_row(tokens, roles, in_row, &mut cells);
            // Behind the last cell of a row there is nothing.
            if let Some(last) = cells[row..].last_mut() {
                last.next = None;
            }
        }
        first = behind;
    }
    cells
}

fn add_row(tokens: &Tokens<'_>, roles: &[Role], row: std::ops::Range<usize>, cells: &mut Vec<Cell>) {
    let (mut is_behind, mut column, mut width, mut depth) = (false, 0, 0, 0_usize);
    let mut is_empty = true;
    for index in row {
        let kind = tokens.kind(index);
        let is_arrow = depth == 0 && kind == TokenKind::Equals;
        let ends_arrow = depth == 0 && kind == TokenKind::Greater;
        match kind {
            TokenKind::OpenRound | TokenKind::OpenSquare | TokenKind::OpenCurly => depth += 1,
            TokenKind::CloseRound | TokenKind::CloseSquare | TokenKind::CloseCurly => depth = depth.saturating_sub(1),
            TokenKind::Semicolon => continue,
            _ => {}
        }
        if is_arrow {
            if !is_empty {
                cells.push(Cell { column: (is_behind, column), width, next: Some(index) });
            }
            (is_behind, column, width, is_empty) = (true, 0, 0, true);
            continue;
        }
        if ends_arrow {
            continue;
        }
        let touches = is_empty || roles[index].touches_before || roles[index - 1].touches_behind;
        width += tokens.width(index, WIDEST + 1) + usize::from(!touches);
        is_empty = false;
        if depth == 0 && kind == TokenKind::Comma {
            cells.push(Cell { column: (is_behind, column), width, next: Some(index + 1) });
            (column, width, is_empty) = (column + 1, 0, true);
        }
    }
    if !is_empty {
        cells.push(Cell { column: (is_behind, column), width, next: None });
    }
}
