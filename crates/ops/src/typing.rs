//! Finds the types of operator calls: implicit casts, the promotion rules that most operators share, and the signature
//! and the overload of a call, which are found from the operator and the argument types. Preparation inserts the casts.

use crate::definition::{Compile, CompiledFrom, OpDef, OperandType, OverArrays, Overload, PresenceRule, Typing};
use cembra_runtime::{ArrayKind, QType, Scalar};
use cembra_value::{Code, Value, common_scalar};
use smallvec::SmallVec;

/// An argument of a call, with the facts that typing uses: its type, and its value if it is a literal.
#[derive(Clone, Copy, Debug)]
pub struct Argument<'a> {
    /// The type of the argument, as found before casts.
    pub qtype: &'a QType,
    /// The value of the argument if it is a literal; `None` for other arguments.
    pub literal: Option<&'a Value>,
}

/// The types of a call: the types that arguments are cast to, and the type of the result.
#[derive(Clone, PartialEq, Debug)]
pub struct Signature {
    /// The types that the arguments are implicitly cast to.
    pub operands: SmallVec<[QType; 4]>,
    /// The type of the call's result.
    pub ret: QType,
}

impl Signature {
    /// The signature of a call whose arguments are not cast, with the result type `ret`.
    pub(crate) fn unchanged(args: &[Argument<'_>], ret: QType) -> Signature {
        Signature { operands: args.iter().map(|a| a.qtype.clone()).collect(), ret }
    }
}

/// The result of typing a call: its types and its overload.
#[derive(Clone, PartialEq, Debug)]
pub struct ResolvedCall {
    /// The types that the arguments are cast to, and the type of the result.
    pub signature: Signature,
    /// The index of the overload that computes the call; `None` for an expansion, and for an operator that builds or takes apart structures.
    pub overload: Option<u16>,
    /// True if the overload is called on optionals, because an argument of a strict operator may be missing.
    pub lifted: bool,
}

/// The reason why an operator does not accept the types of its arguments.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TypeFault {
    /// The code of the error that is reported.
    pub code: Code,
    /// The error message, with the expected and the found types.
    pub message: String,
    /// The index of the argument at fault; `None` if no single argument is at fault.
    pub operand: Option<usize>,
    /// A suggestion what to write instead; `None` if there is no suggestion.
    pub hint: Option<String>,
}

impl TypeFault {
    /// Makes the fault for argument types that do not match.
    #[must_use]
    pub fn mismatch(message: impl Into<String>, operand: Option<usize>) -> Self {
        TypeFault { code: Code::TypeMismatch, message: message.into(), operand, hint: None }
    }

    /// Adds to the error a hint that says what to write instead.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// Returns the fault for the operand with the index `operand`, with this message.
pub(crate) fn refuse<T, E: From<TypeFault>>(operand: usize, message: impl Into<String>) -> Result<T, E> {
    Err(TypeFault::mismatch(message, Some(operand)).into())
}

/// A promotion rule: the types that arguments may have, and the type that all of them are cast to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Promotion {
    /// Arguments must be numbers, and are cast to their common type.
    Numeric,
    /// Arguments must be numbers, and are cast to their common type. If that is an integer type, they are cast to `FLOAT32` instead.
    Float,
    /// Arguments must be signed integers, and are cast to their common type.
    Integer,
    /// Arguments may be any scalars, and are cast to their common type.
    Comparable,
    /// Arguments must be booleans.
    Boolean,
}

/// The type that values of both types can be implicitly cast to; `None` if there is no such type.
#[must_use]
pub fn common_type(a: &QType, b: &QType) -> Option<QType> {
    match (a, b) {
        (QType::Nothing, other) | (other, QType::Nothing) => match other {
            QType::Nothing | QType::Scalar(_) | QType::Optional(_) => Some(other.to_optional()),
            _ => None,
        },
        (
            QType::Tuple(_)
            | QType::Shape(_)
            | QType::ArrayShape(_)
            | QType::Edge(_)
            | QType::Meta
            | QType::Unspecified
            | QType::Function
            | QType::Dict(..)
            | QType::Sequence(_)
            | QType::Tensor(..),
            _,
        ) => (a == b).then(|| a.clone()),
        (QType::Array(kind, _), other) | (other, QType::Array(kind, _)) => {
            if matches!(other, QType::Array(other, _) if other != kind) {
                return None;
            }
            let scalar = common_scalar(a.of_each().scalar()?, b.of_each().scalar()?)?;
            Some(QType::Array(*kind, scalar))
        }
        _ => {
            let scalar = common_scalar(a.scalar()?, b.scalar()?)?;
            Some(QType::of(scalar, a.is_optional() || b.is_optional()))
        }
    }
}

impl OpDef {
    /// Finds the operand types, the result type and the overload of a call.
    ///
    /// # Errors
    /// If the operator does not accept the types of `args`.
    pub fn resolve(&self, args: &[Argument<'_>]) -> Result<ResolvedCall, TypeFault> {
        self.check_count(args.len())?;
        if args.iter().any(|arg| arg.qtype.is_beside_frames()) {
            return self.resolve_over_arrays(args);
        }
        if self.overloads().is_empty() || args.iter().all(|a| *a.qtype != QType::Nothing) {
            return self.resolve_typed(args);
        }
        // An untyped missing value is typed by its neighbours; alone it has no type to take.
        if args.iter().all(|a| *a.qtype == QType::Nothing) {
            return Err(TypeFault::mismatch(format!("{} cannot tell the type of `missing`", self.name), Some(0))
                .hint("write a type, as in `missing[f32]`"));
        }
        self.resolve_typed(args)
    }

    /// Finds the types of a call with arrays among its arguments, for an operator that is applied to elements or has a
    /// kernel on whole arrays.
    fn resolve_over_arrays(&self, args: &[Argument<'_>]) -> Result<ResolvedCall, TypeFault> {
        match self.over_arrays {
            OverArrays::Own => self.resolve_typed(args),
            OverArrays::Kernel(operator) => {
                Ok(ResolvedCall { signature: (operator.typing)(self.name, args)?, overload: None, lifted: false })
            }
            OverArrays::Elementwise | OverArrays::Expanded => {
                let kind = array_kind(self.name, args)?;
                let each: SmallVec<[QType; 4]> = args.iter().map(|arg| arg.qtype.of_each()).collect();
                // A literal type of arrays stands for the type of their elements here. A literal array does not stand for one
                // element.
                let of_each = |literal: &Value| match literal {
                    Value::Array(..) => None,
                    literal => Some(literal.of_each()),
                };
                let literals: SmallVec<[Option<Value>; 4]> =
                    args.iter().map(|arg| arg.literal.and_then(of_each)).collect();
                let each: SmallVec<[Argument<'_>; 4]> = each
                    .iter()
                    .zip(&literals)
                    .map(|(qtype, literal)| Argument { qtype, literal: literal.as_ref() })
                    .collect();
                let ret = self.resolve_typed(&each)?.signature.ret;
                let Some(scalar) = ret.scalar() else {
                    return Err(TypeFault::mismatch(format!("{} cannot make arrays of {ret}", self.name), None));
                };
                // Operands are cast in the expression for one element.
                let signature = Signature::unchanged(args, QType::Array(kind, scalar));
                Ok(ResolvedCall { signature, overload: None, lifted: false })
            }
        }
    }

    /// Checks that a call of the operator may have `count` operands.
    ///
    /// # Errors
    /// If the operator must have another number of operands.
    pub fn check_count(&self, count: usize) -> Result<(), TypeFault> {
        // The parser fills in defaults, so that nodes have all their operands.
        let least = self.params.len() - usize::from(self.variadic);
        if count >= least && (count <= self.params.len() || self.variadic) {
            return Ok(());
        }
        let message = format!("{} takes {}, found {count}", self.name, self.arity(least));
        Err(TypeFault { code: Code::Arguments, message, operand: None, hint: None })
    }

    fn arity(&self, least: usize) -> String {
        let plural = if least == 1 { "1 argument".to_owned() } else { format!("{least} arguments") };
        if self.variadic { format!("at least {plural}") } else { plural }
    }

    fn resolve_typed(&self, args: &[Argument<'_>]) -> Result<ResolvedCall, TypeFault> {
        let signature = match self.typing {
            Typing::Promote(_) if self.takes_quoted(args) => {
                return self.first_fit(args).map_err(|fault| {
                    let types: Vec<&QType> = args.iter().map(|arg| arg.qtype).collect();
                    fault.hint(written_as(&types).unwrap_or_else(|| {
                        "write an integer for a number of days, or `to_date(..)` for the date of a timestamp".to_owned()
                    }))
                });
            }
            Typing::Promote(promotion) => return self.promote(promotion, args),
            Typing::Overloads => return self.first_fit(args),
            Typing::Rule(rule) => rule(args)?,
            Typing::OfArrays => {
                let given = args.iter().filter(|arg| *arg.qtype != QType::Unspecified);
                let types: Vec<QType> = given.map(|arg| arg.qtype.clone()).collect();
                let message = format!("{} expects an array, found {}", self.name, list_types(&types, ", "));
                let fault = TypeFault::mismatch(message, None);
                return Err(match types.first().and_then(QType::scalar) {
                    Some(Scalar::Text) if self.name == "array.at" => {
                        fault.hint("write `substr(s, 0, 1)` for a character of a text")
                    }
                    _ if self.name == "array.at" && matches!(types.first(), Some(QType::Dict(..))) => {
                        fault.hint("write `lookup(key, rates)` for a value of a dictionary, or `lookup(key, rates, 1.0)` with a default")
                    }
                    _ if types.iter().any(|qtype| qtype.element().is_some()) => fault.hint(
                        "use a field of the list, which is an array, as in `sum(items.price)`; `array.size(items)` is the number of elements",
                    ),
                    Some(scalar) if types.iter().all(|qtype| qtype.scalar().is_some()) => fault.hint(of_rows(scalar)),
                    _ => fault,
                });
            }
            Typing::OfTensors => return Err(crate::whole_tensors::without_tensors(self.name)),
            // Preparation expands such an operator and does not ask for its types.
            Typing::Instantiated => {
                return Err(TypeFault::mismatch(format!("{} takes functions or sequences", self.name), None));
            }
        };
        if self.overloads().is_empty() {
            return Ok(ResolvedCall { signature, overload: None, lifted: false });
        }
        match self.find_overload(&signature) {
            Some((index, lifted)) => Ok(ResolvedCall { signature, overload: Some(index), lifted }),
            None => Err(self.no_overload(&signature)),
        }
    }

    /// Returns true if an argument is a date, a timestamp or a duration, and an overload has an operand of one of these
    /// types. The operands of such a call may differ in type.
    fn takes_quoted(&self, args: &[Argument<'_>]) -> bool {
        args.iter().any(|arg| arg.qtype.scalar().is_some_and(Scalar::is_quoted))
            && self.overloads().iter().any(|overload| overload.args.iter().any(|arg| arg.scalar.is_quoted()))
    }

    /// Selects the first overload to whose types the arguments can be cast implicitly; the overload of a strict
    /// operator also takes optionals.
    fn first_fit(&self, args: &[Argument<'_>]) -> Result<ResolvedCall, TypeFault> {
        let strict = self.presence == PresenceRule::Strict;
        for (index, overload) in self.overloads().iter().enumerate() {
            let lifted = strict && args.iter().any(|arg| arg.qtype.is_optional());
            let operands: SmallVec<[QType; 4]> =
                (0..overload.args.len()).map(|at| overload.takes(at, lifted)).collect();
            let fits = operands.len() == args.len()
                && args.iter().zip(&operands).enumerate().all(|(at, (arg, want))| {
                    common_type(arg.qtype, want).as_ref() == Some(want) || self.stands_for_missing(at, arg, want)
                });
            if fits {
                if overload.compile.is_some() && args[0].literal.is_none() {
                    return Err(self.not_literal());
                }
                let ret = QType::of(overload.ret.scalar, overload.ret.optional || lifted);
                let signature = Signature { operands, ret };
                return Ok(ResolvedCall { signature, overload: u16::try_from(index).ok(), lifted });
            }
        }
        let operands = args.iter().map(|arg| arg.qtype.clone()).collect();
        Err(self.no_overload(&Signature { operands, ret: QType::Nothing }))
    }

    /// Returns true if an argument is unspecified and stands for a missing value, because the default of its parameter
    /// is missing.
    fn stands_for_missing(&self, at: usize, arg: &Argument<'_>, want: &QType) -> bool {
        let default = self.params.get(at).and_then(|param| param.default.as_ref());
        *arg.qtype == QType::Unspecified && want.is_optional() && default == Some(&Value::Nothing)
    }

    fn not_literal(&self) -> TypeFault {
        let name = self.params.first().map_or("argument", |param| param.name);
        TypeFault::mismatch(format!("{} needs a literal for `{name}`", self.name), Some(0))
            .hint("write a literal: the operator is compiled from it, together with the model")
    }

    fn no_overload(&self, signature: &Signature) -> TypeFault {
        let found = list_types(&signature.operands, ", ");
        let fault = TypeFault::mismatch(format!("{} does not take {found}", self.name), None);
        let is_text = |compile: Compile| compile.from == CompiledFrom::Text;
        if self.overloads().iter().any(|overload| overload.compile.is_some_and(is_text)) {
            return fault.hint("give a literal text as the first argument: the operator is compiled from it");
        }
        let takes_text = self.overloads().iter().any(|overload| overload.args.iter().any(|arg| arg.scalar.is_string()));
        let makes = self.overloads().first().map(|overload| overload.ret.scalar);
        if let Some(hint) = beside_times(&signature.operands) {
            return fault.hint(hint);
        }
        match (signature.operands.as_slice(), makes.and_then(read_of_text)) {
            ([of], Some(parse)) if !takes_text && of.scalar() == Some(Scalar::Text) => {
                fault.hint(format!("write `{parse}(..)` to read a text"))
            }
            ([of], _) if of.scalar().is_some_and(Scalar::is_number) => match makes.and_then(counted) {
                Some(hint) => fault.hint(hint),
                None => fault,
            },
            _ => fault,
        }
    }

    fn find_overload(&self, signature: &Signature) -> Option<(u16, bool)> {
        let mut wanted: SmallVec<[OperandType; 4]> = SmallVec::new();
        for qtype in &signature.operands {
            wanted.push(match qtype {
                // A dictionary counts as the type of its values; the type of its keys is that of the key, another operand.
                QType::Dict(_, value) => OperandType { scalar: *value, optional: false },
                _ => OperandType { scalar: qtype.scalar()?, optional: qtype.is_optional() },
            });
        }
        let strict = self.presence == PresenceRule::Strict;
        let lifted = strict && wanted.iter().any(|o| o.optional);
        let matches =
            |overload: &Overload, scalar: fn(Scalar) -> Scalar| {
                overload.args.len() == wanted.len()
                    && overload.args.iter().zip(&wanted).all(|(has, want)| {
                        has.scalar == scalar(want.scalar) && (strict || has.optional == want.optional)
                    })
            };
        let at = |scalar: fn(Scalar) -> Scalar| self.overloads().iter().position(|o| matches(o, scalar));
        // A derived type computes as its base, such as WEAK_FLOAT as FLOAT64, unless an overload names it.
        let index = at(|s| s).or_else(|| at(Scalar::representation))?;
        Some((u16::try_from(index).ok()?, lifted))
    }

    fn promote(&self, promotion: Promotion, args: &[Argument<'_>]) -> Result<ResolvedCall, TypeFault> {
        let mut common: Option<QType> = None;
        for (index, arg) in args.iter().enumerate() {
            let accepted = match (promotion, arg.qtype) {
                (_, QType::Nothing) => true,
                (Promotion::Numeric | Promotion::Float, qtype) => qtype.scalar().is_some_and(Scalar::is_numeric),
                (Promotion::Integer, qtype) => qtype.scalar().is_some_and(Scalar::is_integer),
                (Promotion::Comparable, qtype) => qtype.scalar().is_some(),
                (Promotion::Boolean, qtype) => qtype.scalar() == Some(Scalar::Boolean),
            };
            if !accepted {
                return Err(self.not_accepted(promotion, index, arg.qtype));
            }
            common = match common {
                None => Some(arg.qtype.clone()),
                Some(so_far) => match common_type(&so_far, arg.qtype) {
                    Some(common) => Some(common),
                    None => return Err(self.no_common(args)),
                },
            };
        }
        let Some(common) = common else { return Err(self.no_common(args)) };
        let Some(mut scalar) = common.scalar() else { return Err(self.no_common(args)) };
        if promotion == Promotion::Float && scalar.is_integer() {
            scalar = Scalar::Float32;
        }
        let unlike = args.iter().any(|a| a.qtype.is_optional() != common.is_optional());
        if unlike && self.compares_mixed_as_float32(scalar) {
            scalar = Scalar::Float32;
        }
        let optional = common.is_optional();
        let operand = QType::of(scalar, optional);
        let operands: SmallVec<[QType; 4]> = args.iter().map(|_| operand.clone()).collect();
        let mut signature = Signature { operands, ret: operand };
        let Some((index, lifted)) = self.find_overload(&signature) else { return Err(self.no_overload(&signature)) };
        let ret = self.overloads()[usize::from(index)].ret;
        // A result of the base type is a result of the derived type.
        let derived = ret.scalar == scalar.representation();
        signature.ret = QType::of(if derived { scalar } else { ret.scalar }, optional || ret.optional);
        Ok(ResolvedCall { signature, overload: Some(index), lifted })
    }

    /// Returns true if the operator compares operands of the type `common` as FLOAT32 when some operands are optionals
    /// or arrays and others are not. `common` is then WEAK_FLOAT: Arolla selects the first kernel with compatible
    /// types, which in this case is the kernel for FLOAT32.
    #[must_use]
    pub fn compares_mixed_as_float32(&self, common: Scalar) -> bool {
        matches!(self.typing, Typing::Promote(Promotion::Comparable)) && common == Scalar::WeakFloat
    }

    fn not_accepted(&self, promotion: Promotion, index: usize, found: &QType) -> TypeFault {
        let expected = match promotion {
            Promotion::Numeric | Promotion::Float => "a number",
            Promotion::Integer => "an integer",
            Promotion::Comparable => "a scalar",
            Promotion::Boolean => "a boolean",
        };
        let name = self.params.get(index).or(self.params.last()).map_or("argument", |p| p.name);
        let fault =
            TypeFault::mismatch(format!("{} expects {expected} for `{name}`, found {found}", self.name), Some(index));
        match (promotion, found.scalar()) {
            (Promotion::Numeric | Promotion::Float, Some(Scalar::Boolean)) => {
                fault.hint("cast the value, as in `core.to_int32(..)`")
            }
            (Promotion::Integer, Some(Scalar::Boolean)) => {
                fault.hint("use `bool.logical_and`, `bool.logical_or` or `bool.logical_not` for booleans")
            }
            (Promotion::Numeric | Promotion::Float, Some(Scalar::Unit)) => {
                fault.hint("write `where(mask, 1, 0)` to count a mask, which is not a number")
            }
            (Promotion::Boolean, Some(Scalar::Unit)) => {
                fault.hint("use `and`, `or` or `not` for a mask, which is not a boolean")
            }
            (Promotion::Numeric | Promotion::Float, Some(Scalar::Text)) => {
                fault.hint("use `strings.parse_float64(..)` or `strings.parse_int64(..)` to read a number from a text")
            }
            (Promotion::Integer, Some(Scalar::Text)) => {
                fault.hint("use `strings.parse_int64(..)` to read a number from a text")
            }
            _ => fault,
        }
    }

    fn no_common(&self, args: &[Argument<'_>]) -> TypeFault {
        no_common_type(self.name, args)
    }
}

/// The array kind (`DENSE_ARRAY` or `ARRAY`) that all arrays among the operands share. The other operands must be
/// scalars or types.
fn array_kind(operator: &str, args: &[Argument<'_>]) -> Result<ArrayKind, TypeFault> {
    let mut found = None;
    for (at, arg) in args.iter().enumerate() {
        match arg.qtype {
            QType::Array(kind, _) if found.is_some_and(|found| found != *kind) => {
                return Err(no_common_type(operator, args));
            }
            QType::Array(kind, _) => found = Some(*kind),
            QType::ArrayShape(_) | QType::Edge(_) | QType::Tuple(_) => {
                return Err(TypeFault::mismatch(format!("{operator} does not take {}", arg.qtype), Some(at)));
            }
            _ => {}
        }
    }
    found.ok_or_else(|| TypeFault::mismatch(format!("{operator} does not take arrays"), None))
}

/// The fault for arguments that have no common type.
pub(crate) fn no_common_type(operator: &str, args: &[Argument<'_>]) -> TypeFault {
    let types: Vec<QType> = args.iter().map(|arg| arg.qtype.clone()).collect();
    let found = list_types(&types, " and ");
    let fault = TypeFault::mismatch(format!("{operator} finds no common type for {found}"), None);
    if types.iter().any(|qtype| matches!(qtype, QType::Dict(..))) {
        return fault
            .hint("look up a key in each dictionary, and choose between the results: a dictionary is not a value");
    }
    let has = |scalar: Scalar| types.iter().any(|qtype| qtype.scalar() == Some(scalar));
    let is_choice = ["core.presence_or", "core.where", "core._where"].contains(&operator);
    match has(Scalar::Unit) && has(Scalar::Boolean) {
        true if is_choice => fault.hint("write `let big: bool = x > 1.0` to make a boolean of a mask, or `b == true` to make a mask of a boolean"),
        true => fault.hint("leave out `== true` after a comparison, which is a mask already, and write `not ..` for `== false`; write `b == true` to make a mask of a `bool`"),
        false => written_as(&types.iter().collect::<Vec<_>>()).into_iter().fold(fault, TypeFault::hint),
    }
}

/// The name of the operator that parses a value of this type from a text; `None` if there is none.
fn read_of_text(scalar: Scalar) -> Option<&'static str> {
    Some(match scalar {
        Scalar::Int32 => "strings.parse_int32",
        Scalar::Int64 => "strings.parse_int64",
        Scalar::Float32 => "strings.parse_float32",
        Scalar::Float64 | Scalar::WeakFloat => "strings.parse_float64",
        Scalar::Date => "strings.parse_date",
        Scalar::Timestamp => "strings.parse_timestamp",
        Scalar::Duration => "strings.parse_duration",
        _ => return None,
    })
}

/// The hint for a number that is given in place of a date or a timestamp; `None` for other types.
fn counted(scalar: Scalar) -> Option<&'static str> {
    match scalar {
        Scalar::Date => {
            Some("write `date\"1970-01-01\" + n` for days since 1970, and `date.make(y, m, d)` for the parts of a date")
        }
        Scalar::Timestamp => {
            Some("write `timestamp.from_unix(n, \"s\")` for seconds since 1970, or with \"ms\", \"us\" or \"ns\"")
        }
        _ => None,
    }
}

/// The hint for a pair of operands that an operator does not combine, one of which is a duration or a timestamp; `None`
/// for other pairs.
fn beside_times(operands: &[QType]) -> Option<String> {
    let has = |wanted: &dyn Fn(Scalar) -> bool| operands.iter().any(|of| of.of_each().scalar().is_some_and(wanted));
    let [is_date, is_timestamp, is_duration] =
        [Scalar::Date, Scalar::Timestamp, Scalar::Duration].map(|scalar| has(&|found| found == scalar));
    let is_number = has(&|scalar: Scalar| scalar.is_number());
    Some(match () {
        () if is_timestamp && is_number => {
            "write a duration: `t + 5us`, and `t + n * 1us` for microseconds that are a number".to_owned()
        }
        () if is_date && is_duration => {
            "write `d + 30` for 30 days later, or `to_timestamp(d) + 12h` to add a duration to the midnight of a date".to_owned()
        }
        () if is_timestamp && is_duration => {
            "count from another timestamp, as in `(m - timestamp\"2026-01-01T00:00:00Z\") // 15min`, or write `date.truncate(m, \"hour\")` for the beginning of the hour".to_owned()
        }
        () if is_date && is_timestamp => {
            "write `to_date(..)` for the day of a timestamp, or `to_timestamp(..)` for the midnight of a date".to_owned()
        }
        () if is_duration && is_number => {
            "write a unit: `30s`, and `n * 1s` for seconds that are a number; `duration.seconds(d)` is a number".to_owned()
        }
        () => return None,
    })
}

/// The hint for values whose types have no common type: a text with another scalar, a date with a number or a
/// timestamp, or a boolean with a number. `None` for other types.
fn written_as(types: &[&QType]) -> Option<String> {
    let scalars = || types.iter().filter_map(|qtype| qtype.of_each().scalar());
    let has = |wanted: fn(Scalar) -> bool| scalars().find(|scalar| wanted(*scalar));
    let is_text = has(|scalar| scalar == Scalar::Text).is_some();
    if is_text && let Some(time) = has(Scalar::is_quoted) {
        let (name, parse) = (time.short_name(), read_of_text(time)?);
        if time == Scalar::Duration {
            return Some(format!("write a duration as `1d 12h`, or read it from a text with `{parse}(..)`"));
        }
        let example = if time == Scalar::Date { "2026-01-31" } else { "2026-01-31T10:15:00Z" };
        return Some(format!("write a {name} as `{name}\"{example}\"`, or read it from a text with `{parse}(..)`"));
    }
    if is_text && let Some(number) = has(Scalar::is_numeric) {
        let parse = read_of_text(number).unwrap_or("strings.parse_int64");
        return Some(format!(
            "write a number without quotes, or read it from a text with `{parse}(..)`; `strings.as_text(..)` makes a text of a number"
        ));
    }
    if is_text && has(|scalar| scalar == Scalar::Boolean).is_some() {
        return Some("write a boolean as `true` or `false`, without quotes".to_owned());
    }
    if has(|scalar| scalar == Scalar::Date).is_some() && has(Scalar::is_whole).is_some() {
        return Some(
            "write a date as `date\"2026-01-31\"`; `d + 30` is 30 days later, `e - d` is the number of days between two dates"
                .to_owned(),
        );
    }
    let types: Vec<QType> = types.iter().map(|qtype| (*qtype).clone()).collect();
    if let Some(hint) = beside_times(&types) {
        return Some(hint);
    }
    if has(|scalar| scalar == Scalar::Boolean).is_some() && has(Scalar::is_numeric).is_some() {
        return Some("use a boolean as a condition by itself, or write `to_int32(..)` for a number".to_owned());
    }
    None
}

/// The hint for a single value that is given to an operator which aggregates the elements of an array.
fn of_rows(scalar: Scalar) -> String {
    format!(
        "write `[x, y]` for several values, or declare `input x: [{}]` for a column of all rows: a model computes one row at a time, and this is one value of the row",
        scalar.short_name()
    )
}

/// Lists types for an error message: the first 16, and the number of types after these. `between` separates them.
#[must_use]
pub fn list_types(types: &[QType], between: &str) -> String {
    const SHOWN: usize = 16;
    let more = types.len().saturating_sub(SHOWN);
    let mut shown: Vec<String> = types.iter().take(SHOWN).map(QType::to_string).collect();
    if more > 0 {
        shown.push(format!("{more} more"));
    }
    shown.join(between)
}
