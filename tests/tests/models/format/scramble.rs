//! Texts in layouts at random: what lies between the tokens of a printed model becomes blanks, line ends and comments of all kinds,
//! wherever the language allows them.

use fastrand::Rng;

/// What is printed between two tokens, and what they are.
struct Token<'t> {
    /// What was printed before it.
    gap: &'t str,
    text: &'t str,
}

/// Behind these a statement goes on in the next line.
const OPEN_ENDED: &[&str] = &[
    "+", "-", "*", "**", "/", "//", "%", "&", "|", "??", "<", "<=", ">", ">=", "==", "!=", "=", ",", "if", "then",
    "else", "and", "or", "not", ":", "let", "input", "output",
];

/// A line that begins with one of these goes on with the line before it.
const CONTINUING: &[&str] = &[
    "+", "-", "*", "**", "/", "//", "%", "&", "|", "??", "<", "<=", ">", ">=", "==", "!=", "=", ",", "then", "else",
    "and", "or", ":",
];

/// Types whose values have no quotes in arrays.
const SPELLED: &[&str] = &["date", "timestamp", "duration"];

/// What a comment may have in it.
const COMMENTS: &[&str] = &[
    "",
    " a",
    "a comment",
    " \"",
    " 'it",
    " # (",
    " ) ] }",
    " ; let x = 1",
    "\t+",
    " größe \u{2028}",
    " if then else",
    " =>",
];

/// The tokens of a printed text. A literal behind the name of its type is one: blanks may count there.
fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut found: Vec<Token<'_>> = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let gap = text[at..].len() - text[at..].trim_start().len();
        let start = at + gap;
        if start == text.len() {
            break;
        }
        let after_dot = found.last().is_some_and(|last| last.text == ".");
        // Elements of these are spelled without blanks.
        let is_spelled = gap == 0
            && text[start..].starts_with('{')
            && matches!(&*found, [.., of, mark, close] if close.text == "]" && mark.text == "?" && SPELLED.contains(&of.text));
        let end = start + if is_spelled { braced(&text[start..]) } else { length(&text[start..], after_dot) };
        found.push(Token { gap: &text[at..start], text: &text[start..end] });
        at = end;
    }
    found
}

fn length(text: &str, after_dot: bool) -> usize {
    let word = |text: &str| text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(text.len());
    let first = text.chars().next().expect("a character");
    if first.is_ascii_digit() && !after_dot {
        let mut end = word(text);
        if text[end..].starts_with('.') && text[end + 1..].starts_with(|c: char| c.is_ascii_digit()) {
            end += 1 + word(&text[end + 1..]);
        }
        let is_power = text[..end].ends_with('e') && text[end..].starts_with(['-', '+']);
        return if is_power { end + 1 + word(&text[end + 1..]) } else { end };
    }
    if matches!(first, '"' | '\'') {
        return quoted(text, first);
    }
    let end = word(text);
    if end > 0 {
        let (name, behind) = text.split_at(end);
        let mark = usize::from(behind.starts_with("?{"));
        return match behind[mark..].chars().next() {
            Some(quote @ ('"' | '\'')) => end + quoted(behind, quote),
            Some('{') if !["dict", "TUPLE", "NAMEDTUPLE"].contains(&name) => end + mark + braced(&behind[mark..]),
            _ => end,
        };
    }
    let long = ["??", "**", "//", "<=", ">=", "==", "!=", "=>", "->", ".."];
    long.iter().find(|token| text.starts_with(**token)).map_or(first.len_utf8(), |token| token.len())
}

fn quoted(text: &str, quote: char) -> usize {
    let mut escaped = true;
    let end = text.find(|c| {
        let ends = c == quote && !escaped;
        escaped = c == '\\' && !escaped;
        ends
    });
    end.map_or(text.len(), |end| end + 1)
}

fn braced(text: &str) -> usize {
    let (mut at, mut depth) = (0, 0);
    while let Some(c) = text[at..].chars().next() {
        match c {
            '"' | '\'' => {
                at += quoted(&text[at..], c);
                continue;
            }
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        at += c.len_utf8();
        if depth == 0 {
            break;
        }
    }
    at
}

/// A comment and the end of its line.
fn comment(random: &mut Rng, comments: &mut Vec<String>) -> String {
    let text = format!("#{}{}", comments.len(), COMMENTS[random.usize(..COMMENTS.len())]);
    comments.push(text.clone());
    format!("{text}{}{}", ["", " ", "\t "][random.usize(..3)], line_end(random))
}

fn line_end(random: &mut Rng) -> &'static str {
    ["\n", "\r\n", "\r", "\n", "\n"][random.usize(..5)]
}

fn blank(random: &mut Rng) -> &'static str {
    [" ", "  ", "\t", "      "][random.usize(..4)]
}

/// Line ends, and comments before and behind them.
fn lines(random: &mut Rng, comments: &mut Vec<String>) -> String {
    let mut out = String::new();
    for _ in 0..random.usize(1..4) {
        out.push_str(["", blank(random)][random.usize(..2)]);
        match random.usize(..3) {
            0 => out.push_str(&comment(random, comments)),
            _ => out.push_str(line_end(random)),
        }
    }
    out.push_str(["", blank(random)][random.usize(..2)]);
    out
}

/// The text in another layout, and the comments that are in it now.
pub(crate) fn scrambled(text: &str, random: &mut Rng) -> (String, Vec<String>) {
    let tokens = tokens(text);
    let (mut out, mut comments) = (String::new(), Vec::new());
    let mut depth = 0_i32;
    if random.bool() {
        out.push_str(["\u{FEFF}", ";", " "][random.usize(..3)]);
        out.push_str(&lines(random, &mut comments));
    }
    // How much of the layout is another one.
    let share = [0.02, 0.1, 0.5][random.usize(..3)];
    for (index, token) in tokens.iter().enumerate() {
        let last = index.checked_sub(1).map_or("", |last| tokens[last].text);
        let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '"' | '\'');
        let between_words = last.ends_with(is_word) && token.text.starts_with(is_word);
        let is_close = |text: &str| text.starts_with([')', ']', '}']);
        // What makes these a literal is that the bracket is next to them.
        let is_stuck =
            token.gap.is_empty() && last.ends_with(is_word) && token.text.starts_with(['{', '[']) && last != "missing";
        let is_stuck = is_stuck || token.gap.is_empty() && last == "]" && token.text.starts_with('{');
        // Parts of a duration, which is on one line.
        let is_number = |text: &str| text.starts_with(|c: char| c.is_ascii_digit());
        let is_stuck = is_stuck || is_number(last) && is_number(token.text);
        let goes_on = depth > 0
            || (OPEN_ENDED.contains(&last) || CONTINUING.contains(&token.text))
                && token.text != "let"
                && token.text != "L";
        let changes = random.f64() < share;
        match () {
            () if index == 0 => {}
            () if token.gap.contains('\n') && depth == 0 => out.push_str(&match random.usize(..5) {
                0 => [";", blank(random)].concat(),
                1 => [";", &lines(random, &mut comments)].concat(),
                2 => "\n".to_owned(),
                _ => format!("{}{}", lines(random, &mut comments), line_end(random)),
            }),
            () if is_stuck || !changes => out.push_str(token.gap),
            () if goes_on && random.bool() => out.push_str(&lines(random, &mut comments)),
            () if random.bool() => out.push_str(blank(random)),
            () => {
                let touches =
                    !between_words && (last.ends_with(is_word) || token.text.starts_with(is_word) || is_close(last));
                out.push_str(if touches { "" } else { token.gap });
            }
        }
        depth += match token.text {
            "(" | "[" | "{" => 1,
            ")" | "]" | "}" => -1,
            _ => 0,
        };
        out.push_str(token.text);
    }
    if random.bool() {
        out.push_str(["", " ;"][random.usize(..2)]);
        out.push_str(&lines(random, &mut comments));
    }
    (out, comments)
}
