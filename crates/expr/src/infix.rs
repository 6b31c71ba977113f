//! The table of operator syntax: token, operator name, precedence, fixity. Parser, printer and builder all use this table, so they agree. The
//! module also has the operator names of syntax that is not a single token, such as conditions, tuples and fields.

use crate::text::TokenKind;

/// The operator of `if c then a else b`.
pub(crate) const WHERE: &str = "core._where";
/// The operator of `(a, b)`.
pub(crate) const MAKE_TUPLE: &str = "core.make_tuple";
/// The operator of `x.0`; the operands are `x` and the index, an `INT64` literal.
pub(crate) const GET_NTH: &str = "core.get_nth";

/// The operator of `{x: a, y: b}`; the first operand is a `TEXT` literal with the names, separated by commas.
pub(crate) const MAKE_NAMED: &str = "namedtuple.make";
/// The operator of `t.x`; the operands are `t` and the name, a `TEXT` literal.
pub(crate) const GET_FIELD: &str = "namedtuple.get_field";

/// The operator of `[a, b]`.
pub(crate) const MAKE_ARRAY: &str = "array.make_dense_array";
/// The operator of `a[i]`.
pub(crate) const AT: &str = "array.at";

/// The operator of `x in [a, b]`; the first operand is `x`.
pub(crate) const IN: &str = "core._in";
/// The operator of `x in a..b`.
pub(crate) const IN_RANGE: &str = "core._in_range";
/// The operator of `x in e` for an array, a dictionary or a table `e`.
pub(crate) const IN_VALUE: &str = "core._in_value";

/// The operator of `lookup(x, {"CH": 1.08}, 1.0)`, where the braces are a dictionary.
pub(crate) const LOOKUP: &str = "dict.lookup";

/// The operator that casts to i64. The parser applies it to a power such as `10 ** 30`, whose operands are integer literals and whose value an i64
/// cannot hold. The cast then fails at run time.
pub(crate) const TO_INT64: &str = "core.to_int64";
/// Arolla's floor division, which only the builder has. For floats, the quotient is rounded before its floor is taken.
pub(crate) const FLOORDIV: &str = "math.floordiv";
/// The remainder of Arolla's floor division.
pub(crate) const MOD: &str = "math.mod";

/// The operator of `cast(x, f64)`. The second operand is a type: the name `f64` stands for the type, even if a value
/// has the same name.
pub(crate) const CAST: &str = "core.cast";

/// The operator of `fn(x, y) = body`; the operands are the body and the placeholders that are its parameters.
pub(crate) const LAMBDA: &str = "core._lambda";
/// The operator of `math.add` as a value; the operand is a `TEXT` literal, the canonical name of `math.add`.
pub(crate) const OPERATOR: &str = "core._operator";
/// The operator of `f(a, b)` for a value `f`; the operands are the function and its arguments.
pub(crate) const APPLY: &str = "core.apply";

/// The operator of `let x: f64 = value`; the operands are the value and the declared type.
pub(crate) const DECLARED: &str = "core._declared";

/// The operator of the operand `x` in `let y: f64 = x / 2`. Its operands are `x`, and the number type (here f64) that `x` is converted to if it is
/// a number.
pub(crate) const DECLARED_OPERAND: &str = "core._declared_operand";

/// The operator that converts its operand to f64 if the operand is an integer.
pub(crate) const WIDE: &str = "core._wide";
/// The operator that converts its first operand to f64 if the first operand is an integer and the second one a float.
pub(crate) const BESIDE: &str = "core._beside";

/// The operator of `a("i,k")` for a tensor `a`; the second operand is a `TEXT` literal with the labels of the tensor's
/// axes.
pub const AT_LABELS: &str = "tensor._at";
/// The operator of `let t("i,j") = value`; the second operand is a `TEXT` literal with the labels of the value's axes.
pub const BIND_LABELS: &str = "tensor._bind";
/// The operator of `x("i,j") = value` for an `x` that is defined before; the operands are the old value, the new value and a `TEXT` literal with the
/// labels.
pub const ASSIGN_LABELS: &str = "tensor._assign";
/// The prefix of operators that are written as methods, as in `x("i,j").norm()`. The method's name follows it.
pub(crate) const METHOD: &str = "tensor._whole.";

/// The operator of `a("i,j").block([0, 0], [2, 3])`, a range of tiles on each axis. The operands are the tensor, and two tuples of tile indices.
pub const BLOCK: &str = "tensor.block";

/// The operator of `tensor.grad(y, x)`: the gradient of `y` with respect to the node `x`, which is found in `y` by structural equality.
pub(crate) const GRADIENT: &str = "tensor.grad";

/// The precedence of an operator or of other syntax, such as `if`; an operator with a larger level binds tighter.
pub(crate) type Level = u8;

/// The precedence level of `if`, the syntax that binds loosest.
pub(crate) const LOOSEST: Level = 0;
/// The precedence level of comparisons, including `in`.
pub(crate) const COMPARISON: Level = Operation::Equal.level();
/// The precedence level of a bare number. A bare number may be the operand of every operator, but not of the field access `.0`, which would be read
/// as the number's fraction.
pub(crate) const NUMBER: Level = 11;
/// The precedence level of names, calls, fields and everything in brackets.
pub(crate) const TIGHTEST: Level = 12;

/// The position of an operator's operands, and the grouping of operators of the same level.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fixity {
    /// The operator stands before its only operand.
    Prefix,
    /// Left-associative: `a - b - c` is `(a - b) - c`.
    Left,
    /// Right-associative: `a ** b ** c` is `a ** (b ** c)`, and the right operand may have a prefix operator.
    Right,
    /// Not associative: `a < b < c` is an error.
    Single,
}

macro_rules! operations {
    ($($variant:ident $token:ident $text:literal $name:literal $level:literal $fixity:ident;)*) => {
        /// The operators that are written with a token, such as `a + b`, or with a word, such as `a and b`.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub(crate) enum Operation { $($variant),* }

        impl Operation {
            /// The list of operators that are written with a token or a word. If two of them have the same operator name, the printer uses the
            /// first.
            pub(crate) const ALL: &[Operation] = &[$(Operation::$variant),*];

            /// The canonical name of the operator.
            pub(crate) const fn name(self) -> &'static str {
                match self { $(Operation::$variant => $name),* }
            }

            /// The operator's token as text.
            pub(crate) const fn text(self) -> &'static str {
                match self { $(Operation::$variant => $text),* }
            }

            /// The precedence of the operator.
            pub(crate) const fn level(self) -> Level {
                match self { $(Operation::$variant => $level),* }
            }

            /// The position and the grouping of the operator's operands.
            pub(crate) const fn fixity(self) -> Fixity {
                match self { $(Operation::$variant => Fixity::$fixity),* }
            }

            const fn token(self) -> TokenKind {
                match self { $(Operation::$variant => TokenKind::$token),* }
            }
        }
    };
}

operations! {
    Or           Or               "or"  "core._or"           1 Left;
    And          And              "and" "core._and"          2 Left;
    Not          Not              "not" "core._not"          3 Prefix;
    Less         Less             "<"   "core.less"          4 Single;
    LessEqual    LessEqual        "<="  "core.less_equal"    4 Single;
    Greater      Greater          ">"   "core.greater"       4 Single;
    GreaterEqual GreaterEqual     ">="  "core.greater_equal" 4 Single;
    Equal        EqualEqual       "=="  "core.equal"         4 Single;
    NotEqual     BangEqual        "!="  "core.not_equal"     4 Single;
    PresenceOr   Bar              "|"   "core.presence_or"   5 Left;
    Default      QuestionQuestion "??"  "core.presence_or"   5 Left;
    PresenceAnd  Ampersand        "&"   "core.presence_and"  6 Left;
    Add          Plus             "+"   "core._plus"         7 Left;
    Subtract     Minus            "-"   "math.subtract"      7 Left;
    Multiply     Star             "*"   "math.multiply"      8 Left;
    Divide       Slash            "/"   "math.divide"        8 Left;
    FloorDivide  SlashSlash       "//"  "math.floor_divide"  8 Left;
    Modulo       Percent          "%"   "math.remainder"     8 Left;
    Negate       Minus            "-"   "math.neg"           9 Prefix;
    Plus         Plus             "+"   "math.pos"           9 Prefix;
    Power        StarStar         "**"  "math.pow"          10 Right;
}

/// For each token kind, the operator that such a token stands for after an operand, and the operator that it stands for before an operand.
static BY_TOKEN: [[Option<Operation>; 2]; TokenKind::COUNT] = {
    let mut table = [[None; 2]; TokenKind::COUNT];
    let mut index = 0;
    while index < Operation::ALL.len() {
        let operation = Operation::ALL[index];
        let place = matches!(operation.fixity(), Fixity::Prefix) as usize;
        table[operation.token() as usize][place] = Some(operation);
        index += 1;
    }
    table
};

impl Operation {
    /// Returns the operator that a token stands for after an operand; `None` if the token stands for no operator there.
    pub(crate) fn infix(token: TokenKind) -> Option<Operation> {
        BY_TOKEN[token as usize][0]
    }

    /// Returns the operator that a token stands for before an operand; `None` if the token stands for no operator there.
    pub(crate) fn prefix(token: TokenKind) -> Option<Operation> {
        BY_TOKEN[token as usize][1]
    }

    /// The lowest precedence level with which the operator's left operand needs no brackets.
    pub(crate) const fn left_level(self) -> Level {
        match self.fixity() {
            Fixity::Left => self.level(),
            Fixity::Prefix | Fixity::Right | Fixity::Single => self.level() + 1,
        }
    }

    /// The lowest precedence level with which the operator's right or only operand needs no brackets.
    pub(crate) const fn right_level(self) -> Level {
        match self.fixity() {
            Fixity::Prefix => self.level(),
            Fixity::Left | Fixity::Single => self.level() + 1,
            Fixity::Right => Operation::Negate.level(),
        }
    }
}

/// Returns the tokens for the operator `name` in the text language. The first one is printed.
pub fn tokens(name: &str) -> impl Iterator<Item = &'static str> {
    Operation::ALL.iter().filter(move |operation| operation.name() == name).map(|operation| operation.text())
}

/// Returns the token or keyword of the operator `name`, if the text language writes the operator only in this way; `None` for an operator that is
/// called by name.
#[must_use]
pub fn written(name: &str) -> Option<&str> {
    let own = name.strip_prefix("core._")?;
    Some(tokens(name).next().unwrap_or(own))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_find_their_operators() {
        assert_eq!(Operation::infix(TokenKind::Minus), Some(Operation::Subtract));
        assert_eq!(Operation::prefix(TokenKind::Minus), Some(Operation::Negate));
        assert_eq!(Operation::infix(TokenKind::Not), None);
        assert_eq!(Operation::infix(TokenKind::QuestionQuestion), Some(Operation::Default));
        assert_eq!(Operation::prefix(TokenKind::Star), None);
    }

    #[test]
    fn the_levels_leave_room_for_numbers_and_brackets() {
        assert!(Operation::ALL.iter().all(|o| o.level() > LOOSEST && o.level() < NUMBER));
        assert_eq!(Operation::Power.left_level(), NUMBER);
        assert!(Operation::ALL.iter().all(|o| o.left_level() <= NUMBER && o.right_level() <= NUMBER));
        assert_eq!(Operation::Power.right_level(), Operation::Negate.level());
    }
}
