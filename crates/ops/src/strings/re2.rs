//! Translates regular expressions from RE2's syntax, which Arolla uses, to the syntax of the `regex` crate. Both
//! libraries find the same matches, but some patterns have another meaning in the crate: its `\d`, `\w`, `\s` and `\b`
//! apply to all of Unicode, not only to ASCII, and its classes may contain `&&`, `--` and other classes. In RE2, braces
//! without a count, as in `{a}`, stand for themselves, and only RE2 has `\Q`, octal numbers and `\p{^..}`. A pattern
//! that is an error in one of the syntaxes is an error here, with some exceptions. RE2's `\C`, a byte of a character,
//! is refused, because it would cut characters apart. Two kinds of patterns that RE2 refuses are accepted: counts
//! beyond 1,000, which the memory limit of a pattern bounds, and names of classes that only the crate has.

use super::Reason;

/// A pattern that is being read, and its translation so far.
struct Translation<'p> {
    source: &'p str,
    rest: &'p str,
    made: String,
    /// The position in `made` of the last translated item, which an operator such as `*` would repeat; `None` if there
    /// is no such item.
    last: Option<usize>,
    /// The positions in `made` at which the open groups start.
    open: Vec<usize>,
    /// Flags that apply to the following items and are not written yet. In RE2 they may be between an item and its
    /// repetition.
    flags: String,
    /// True if the last item was already repeated, by an operator such as `*`.
    repeated: bool,
}

/// Translates `pattern` to the syntax of the `regex` crate. Fails for patterns that only RE2 refuses; the crate itself
/// reports errors of its own syntax.
pub(super) fn translated(pattern: &str) -> Result<String, Reason> {
    let made = String::with_capacity(pattern.len());
    let mut translation = Translation {
        source: pattern,
        rest: pattern,
        made,
        last: None,
        open: Vec::new(),
        flags: String::new(),
        repeated: false,
    };
    while let Some(char) = translation.next() {
        translation.part(char)?;
    }
    translation.set_flags();
    Ok(translation.made)
}

/// The names of ASCII classes in `[:..:]`, which both syntaxes have.
const POSIX_CLASSES: &[&str] = &[
    "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct", "space", "upper", "word",
    "xdigit",
];

/// The content of the ASCII class that a letter such as `d` stands for, for use inside brackets.
fn perl_class(letter: char) -> Option<&'static str> {
    Some(match letter {
        'd' => "0-9",
        'D' => "[^0-9]",
        'w' => "0-9A-Za-z_",
        'W' => "[^0-9A-Za-z_]",
        's' => "\\t\\n\\x0c\\r ",
        'S' => "[^\\t\\n\\x0c\\r ]",
        _ => return None,
    })
}

fn escape() -> Reason {
    Reason("the pattern has an escape sequence that RE2 does not know")
}

impl<'p> Translation<'p> {
    fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let mut chars = self.rest.chars();
        let next = chars.next();
        self.rest = chars.as_str();
        next
    }

    fn take(&mut self, prefix: &str) -> bool {
        let rest = self.rest.strip_prefix(prefix);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    /// Returns the text before the next `end`, and continues reading after `end`.
    fn until(&mut self, end: &str) -> Option<&'p str> {
        let (before, behind) = self.rest.split_once(end)?;
        self.rest = behind;
        Some(before)
    }

    /// Translates a character that stands for itself.
    fn literal(&mut self, char: char) {
        if char.is_ascii_punctuation() {
            self.made.push('\\');
        }
        self.made.push(char);
    }

    fn set_flags(&mut self) {
        self.made.push_str(&self.flags);
        self.flags.clear();
    }

    fn part(&mut self, char: char) -> Result<(), Reason> {
        let repeated = std::mem::take(&mut self.repeated);
        match char {
            '*' | '+' | '?' => return self.repetition(repeated, char.encode_utf8(&mut [0; 4])),
            '{' => {
                if let Some(counts) = self.counts()? {
                    return self.repetition(repeated, counts);
                }
            }
            _ => {}
        }
        if char == '(' {
            return self.group();
        }
        self.set_flags();
        self.last = Some(self.made.len());
        match char {
            '\\' => self.escape()?,
            '[' => self.class()?,
            ')' => {
                self.last = self.open.pop();
                self.made.push(')');
            }
            '|' => {
                self.last = None;
                self.made.push('|');
            }
            '.' | '^' | '$' => self.made.push(char),
            char => self.literal(char),
        }
        Ok(())
    }

    /// Translates an operator that repeats the last item. `repeated` is true if the item is repeated already.
    fn repetition(&mut self, repeated: bool, operator: &str) -> Result<(), Reason> {
        if repeated {
            return Err(Reason("a repetition of the pattern directly follows another one"));
        }
        let last = self.last.ok_or(Reason("a repetition of the pattern has nothing before it"))?;
        if !self.flags.is_empty() {
            // The item before the flags may be a repetition.
            self.made.insert_str(last, "(?:");
            self.made.push(')');
        }
        self.made.push_str(operator);
        if self.take("?") {
            self.made.push('?');
        }
        self.repeated = true;
        Ok(())
    }

    /// Reads the counts of a repetition, after its opening brace, and returns them with the braces; `None` if the brace
    /// is only a letter.
    fn counts(&mut self) -> Result<Option<&'p str>, Reason> {
        let number = |text: &str| {
            let plain = text.len() < 10 && (text.len() == 1 || !text.starts_with('0'));
            (plain && text.bytes().all(|byte| byte.is_ascii_digit())).then(|| text.parse::<u32>().ok()).flatten()
        };
        let Some((counts, behind)) = self.rest.split_once('}') else { return Ok(None) };
        let (least, most) = counts.split_once(',').unwrap_or((counts, counts));
        let (Some(low), Some(high)) = (number(least), number(if most.is_empty() { least } else { most })) else {
            return Ok(None);
        };
        if low > high {
            return Err(Reason("a repetition of the pattern has a minimum above its maximum"));
        }
        // Including the brace that was read.
        let written = &self.source[self.source.len() - self.rest.len() - 1..self.source.len() - behind.len()];
        self.rest = behind;
        Ok(Some(written))
    }

    /// Translates a group after its opening bracket.
    fn group(&mut self) -> Result<(), Reason> {
        if !self.take("?") {
            self.open("(");
            return Ok(());
        }
        if self.take("P<") || self.take("<") {
            // Groups are identified by number; two may have the same name.
            let name = self.until(">").filter(|name| !name.is_empty());
            let named = name.is_some_and(|name| name.chars().all(|char| char == '_' || char.is_alphanumeric()));
            self.open("(");
            return if named { Ok(()) } else { Err(Reason("the pattern has a group whose name is malformed")) };
        }
        let flags = self.rest.find(|char| !matches!(char, 'i' | 'm' | 's' | 'U' | '-')).unwrap_or(self.rest.len());
        let (flags, rest) = self.rest.split_at(flags);
        self.rest = rest;
        if self.take(")") {
            self.flags.extend(["(?", flags, ")"]);
        } else if self.take(":") {
            self.open("(?");
            self.made.extend([flags, ":"]);
        } else {
            return Err(Reason("the pattern has a group with a flag that RE2 does not know"));
        }
        Ok(())
    }

    fn open(&mut self, bracket: &str) {
        self.set_flags();
        self.open.push(self.made.len());
        self.made.push_str(bracket);
        self.last = None;
    }

    /// Translates an escape after its backslash.
    fn escape(&mut self) -> Result<(), Reason> {
        if self.take("Q") {
            let literal = match self.rest.split_once("\\E") {
                Some((literal, behind)) => {
                    self.rest = behind;
                    literal
                }
                None => std::mem::take(&mut self.rest),
            };
            for char in literal.chars() {
                self.last = Some(self.made.len());
                self.literal(char);
            }
            return Ok(());
        }
        match self.peek() {
            Some('C') => return Err(Reason("the pattern must not match single bytes of a character with `\\C`")),
            Some(edge @ ('A' | 'z')) => self.made.extend(['\\', edge]),
            Some(edge @ ('b' | 'B')) => {
                self.made.push_str("(?-u:\\");
                self.made.extend([edge, ')']);
            }
            Some('p' | 'P') => return self.property(),
            Some(letter) if perl_class(letter).is_some() => {
                self.made.push('[');
                self.made.push_str(perl_class(letter).unwrap_or_default());
                self.made.push(']');
            }
            _ => {
                let char = self.escaped()?;
                self.character(char);
                return Ok(());
            }
        }
        self.next();
        Ok(())
    }

    /// Writes a literal character, in a class or for an escape: letters, digits and `_` as they are, others as an escape with
    /// their number.
    fn character(&mut self, char: char) {
        match char {
            'a'..='z' | 'A'..='Z' | '0'..='9' | '_' => self.made.push(char),
            char if char.is_alphanumeric() => self.made.push(char),
            char => self.made.push_str(&format!("\\x{{{:x}}}", u32::from(char))),
        }
    }

    /// Translates a class with a Unicode property, after its backslash.
    fn property(&mut self) -> Result<(), Reason> {
        let negated = self.next() == Some('P');
        let name = match self.take("{") {
            true => self.until("}"),
            false => {
                let (name, rest) = self.rest.split_at(self.peek().map_or(0, char::len_utf8));
                self.rest = rest;
                Some(name)
            }
        };
        let unnamed = || Reason("the pattern has a class without a name");
        let name = name.filter(|name| !name.is_empty()).ok_or_else(unnamed)?;
        let bare = name.strip_prefix('^');
        // Only the crate has names with values.
        if !bare.unwrap_or(name).chars().all(|char| char == '_' || char.is_ascii_alphanumeric()) {
            return Err(Reason("the pattern has a class whose name RE2 does not know"));
        }
        self.made.push_str(if negated == bare.is_some() { "\\p{" } else { "\\P{" });
        self.made.push_str(bare.unwrap_or(name));
        self.made.push('}');
        Ok(())
    }

    /// Reads an escape after its backslash, and returns the character that it stands for.
    fn escaped(&mut self) -> Result<char, Reason> {
        let octal = |char: Option<char>| char.and_then(|char| char.to_digit(8));
        Ok(match self.next().ok_or(Reason("the pattern ends with a backslash"))? {
            'a' => '\x07',
            'f' => '\x0c',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'v' => '\x0b',
            'x' => return self.hexadecimal(),
            // A single digit would be a back-reference.
            '1'..='9' if octal(self.peek()).is_none() => return Err(escape()),
            first @ '0'..='7' => {
                let mut code = octal(Some(first)).unwrap_or(0);
                for _ in 0..2 {
                    if let Some(digit) = octal(self.peek()) {
                        code = code * 8 + digit;
                        self.next();
                    }
                }
                char::from_u32(code).ok_or_else(escape)?
            }
            char if char.is_ascii() && !char.is_ascii_alphanumeric() => char,
            _ => return Err(escape()),
        })
    }

    fn hexadecimal(&mut self) -> Result<char, Reason> {
        let digits = match self.take("{") {
            true => self.until("}").ok_or_else(escape)?,
            false => {
                let (digits, rest) = self.rest.split_at_checked(2).ok_or_else(escape)?;
                self.rest = rest;
                digits
            }
        };
        let code = digits.bytes().all(|byte| byte.is_ascii_hexdigit()).then(|| u32::from_str_radix(digits, 16).ok());
        code.flatten().and_then(char::from_u32).ok_or_else(escape)
    }

    /// Translates a class after its opening bracket.
    fn class(&mut self) -> Result<(), Reason> {
        let unclosed = || Reason("the pattern has a class that is not closed");
        self.made.push('[');
        if self.take("^") {
            self.made.push('^');
        }
        let mut first = true;
        loop {
            // A bracket that would close an empty class is a letter.
            if !first && self.take("]") {
                self.made.push(']');
                return Ok(());
            }
            first = false;
            if self.rest.starts_with("[:")
                && let Some((name, behind)) = self.rest[2..].split_once(":]")
            {
                self.rest = behind;
                // An unknown name would be a class of its letters.
                if !POSIX_CLASSES.contains(&name.strip_prefix('^').unwrap_or(name)) {
                    return Err(Reason("the pattern has a class whose name RE2 does not know"));
                }
                self.made.push_str("[:");
                self.made.push_str(name);
                self.made.push_str(":]");
                continue;
            }
            let escaped = self.rest.strip_prefix('\\').and_then(|rest| rest.chars().next());
            if matches!(escaped, Some('p' | 'P')) {
                self.next();
                self.property()?;
                continue;
            }
            if let Some(class) = escaped.and_then(perl_class) {
                self.rest = &self.rest[2..];
                self.made.push_str(class);
                continue;
            }
            let low = self.class_character()?.ok_or_else(unclosed)?;
            self.character(low);
            if self.rest.starts_with('-') && !self.rest.starts_with("-]") {
                self.next();
                let high = self.class_character()?.ok_or_else(unclosed)?;
                if low > high {
                    return Err(Reason("the pattern has a class with a range whose start is above its end"));
                }
                self.made.push('-');
                self.character(high);
            }
        }
    }

    fn class_character(&mut self) -> Result<Option<char>, Reason> {
        match self.next() {
            Some('\\') => self.escaped().map(Some),
            char => Ok(char),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::translated;

    #[test]
    fn what_both_write_alike_stays() {
        for pattern in [
            "",
            "a|b",
            "(a*)(?:b)+?",
            "^a.$",
            "a{2,}b{0,3}?",
            "(?i)x(?s-m:y)",
            "[a-z]",
            "[^ab]",
            "\\Aa\\z",
            "[[:^alpha:]]",
        ] {
            assert_eq!(translated(pattern).as_deref(), Ok(pattern));
        }
    }

    #[test]
    fn what_means_something_else_is_written_out() {
        for (pattern, expected) in [
            ("\\d\\W", "[0-9][[^0-9A-Za-z_]]"),
            ("[\\w-]", "[0-9A-Za-z_\\x{2d}]"),
            ("[^\\D]", "[^[^0-9]]"),
            ("\\b\\B", "(?-u:\\b)(?-u:\\B)"),
            ("[a&&b]", "[a\\x{26}\\x{26}b]"),
            ("[[a]", "[\\x{5b}a]"),
            ("[]a]", "[\\x{5d}a]"),
            ("[^]-a]", "[^\\x{5d}-a]"),
            ("{a}", "\\{a\\}"),
            ("a{,2}", "a\\{\\,2\\}"),
            ("a{02}", "a\\{02\\}"),
            ("\\Qa.b\\E*", "a\\.b*"),
            ("\\Q(", "\\("),
            ("\\141\\0\\x{e9}\\x2e", "a\\x{0}\u{e9}\\x{2e}"),
            ("\\p{^Lu}\\P{^Lu}\\PL", "\\P{Lu}\\p{Lu}\\P{L}"),
            ("(?P<one>a)(?<one>b)", "(a)(b)"),
            ("a(?i)+b", "(?:a)+(?i)b"),
            ("x(ab){2}(?i)(?m)?", "x(?:(ab){2})?(?i)(?m)"),
            ("a(?i)(b)", "a(?i)(b)"),
            ("a(?i)", "a(?i)"),
            ("#~ ", "\\#\\~ "),
        ] {
            assert_eq!(translated(pattern).as_deref(), Ok(expected), "{pattern}");
        }
    }

    #[test]
    fn what_re2_refuses_is_refused() {
        for pattern in [
            "\\",
            "\\C",
            "\\8",
            "\\1",
            "\\Z",
            "\\e",
            "\\h",
            "\\u00e9",
            "\\\u{e9}",
            "\\xg0",
            "\\x{",
            "\\x{110000}",
            "\\x{}",
            "\\xa\u{e9}",
            "\\p",
            "\\p{",
            "\\p{sc=Greek}",
            "[",
            "[a",
            "[]",
            "[z-a]",
            "[a--b]",
            "[a-\\d]",
            "[[:Alpha:]]",
            "[[:no:]]",
            "(?i)*",
            "*",
            "(+",
            "a|?",
            "a**",
            "a*??",
            "a{2}{3}",
            "a{2,1}",
            "(?x)a",
            "(?u:a)",
            "(?R)",
            "(?",
            "(?=a)",
            "(?P<>a)",
            "(?P<a",
            "(?P<a b>c)",
            "(?P=x)",
        ] {
            assert!(translated(pattern).is_err(), "{pattern}");
        }
    }
}
