//! Aligns the columns of tables in tests.

use super::structure::{Bracket, BracketKind, Role, Structure};
use super::tokens::Tokens;
use crate::text::token::TokenKind;
use std::ops::Range;

/// The most columns of width that cells are aligned to. Wider cells stick out.
const WIDEST: usize = 40;

/// A cell in a row that is on one line.
#[derive(Clone, Copy)]
struct Cell {
    /// The column of the cell: true if the cell is after the arrow (`=>`), and the index on that side of the arrow.
    column: (bool, usize),
    width: usize,
    /// The index of the token after the cell, which begins where the column ends; `None` for the last cell of a line.
    next: Option<usize>,
}

/// Sets the padding of the tokens in tables so that the columns align.
pub(super) fn align(tokens: &Tokens<'_>, structure: &mut Structure) {
    let Structure { roles, brackets } = structure;
    for (at, table) in brackets.iter().enumerate().filter(|(_, bracket)| bracket.kind == BracketKind::Table) {
        let cells = cells(tokens, roles, table, &brackets[at + 1..]);
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

/// Returns the cells of all rows that will be on one line each. `inner` are the brackets after that of the table.
fn cells(tokens: &Tokens<'_>, roles: &[Role], table: &Bracket, inner: &[Bracket]) -> Vec<Cell> {
    let mut cells: Vec<Cell> = Vec::new();
    let mut inner = inner.iter();
    let end = table.close.min(tokens.len() - 1);
    let mut first = table.open + 1;
    while first < end {
        let behind = (first + 1..end).find(|index| roles[*index].begins_row).unwrap_or(end);
        if is_one_line(tokens, first..behind, &mut inner) {
            let row = cells.len();
            add_row(tokens, roles, first..behind, &mut cells);
            // No token follows the last cell of a row.
            if let Some(last) = cells[row..].last_mut() {
                last.next = None;
            }
        }
        first = behind;
    }
    cells
}

/// Returns true if the layout keeps a row on one line. `inner` iterates over the brackets from the row on.
fn is_one_line<'b>(tokens: &Tokens<'_>, row: Range<usize>, inner: &mut impl Iterator<Item = &'b Bracket>) -> bool {
    let first = row.start;
    let mut is_one_line = true;
    let mut open: Vec<&Bracket> = Vec::new();
    for index in row {
        let token = tokens.at(index);
        let is_kept = open.last().is_none_or(|bracket| bracket.kind == BracketKind::Raw);
        is_one_line &= match token.kind {
            // A comment before one of these tokens is moved after the token, to the end of the row.
            TokenKind::Semicolon => true,
            TokenKind::Comma => !tokens.has_comment_before(index),
            _ if index == first => true,
            _ => !(tokens.has_comment_before(index) || token.first_on_line && is_kept),
        };
        match token.kind {
            TokenKind::OpenRound | TokenKind::OpenSquare | TokenKind::OpenCurly => {
                let bracket = inner.next();
                is_one_line &= bracket.is_some_and(|bracket| !bracket.is_broken() && !bracket.has_line_end);
                open.extend(bracket);
            }
            TokenKind::CloseRound | TokenKind::CloseSquare | TokenKind::CloseCurly => drop(open.pop()),
            _ => {}
        }
    }
    is_one_line
}

fn add_row(tokens: &Tokens<'_>, roles: &[Role], row: Range<usize>, cells: &mut Vec<Cell>) {
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
