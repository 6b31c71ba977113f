//! The shape of an operator's record: everything the project knows about an operator is one static `OpDef`.

use crate::array::strip::InStrips;
use crate::array::{ArrayOperator, FullRule};
use crate::derivative::Derivative;
use crate::sequence::Sequence;
use crate::structure::structs::{is_formed, is_of_structs};
use crate::typing::{Argument, Promotion, Signature, TypeFault};
use crate::{OpId, Recording, RegisterFn, id};
use cembra_expr::{Integers, Parameter};
use cembra_runtime::{FaultKind, Kernel, QType, Scalar};
use cembra_tape::{Cell, Tape};
use cembra_value::{ScalarValue, Value};
use std::any::Any;
use std::rc::Rc;
use std::sync::Arc;

/// The type of an overload's argument or result: a scalar, bare or optional.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct OperandType {
    /// The scalar.
    pub scalar: Scalar,
    /// True for the optional form.
    pub optional: bool,
}

impl OperandType {
    /// The type as a QType.
    #[must_use]
    pub const fn qtype(self) -> QType {
        QType::of(self.scalar, self.optional)
    }
}

/// How missing arguments reach an operator.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PresenceRule {
    /// A missing argument gives a missing result and the body does not run; overloads are written for bare scalars.
    Strict,
    /// The overloads say themselves what they do with optionals.
    Custom,
}

/// A lowering rule: records the overload's instructions and returns its result.
pub type Rule = fn(&mut Tape, &[Cell]) -> Cell;

/// How an overload becomes machine code.
#[derive(Clone, Copy, Debug)]
pub enum Lower {
    /// Instructions that a rule records. `record` lifts strict rules to optionals.
    Rule(Rule),
    /// Instructions that a user's rule recorded once, and that were checked. `record` lifts strict rules to optionals.
    Recording(&'static Recording),
    /// A call of the kernel, on frame slots.
    Kernel,
    /// An access to an element of a column. The operands give the address.
    Memory(MemoryAccess),
}

impl Lower {
    /// Returns true if the operator reads an element of a column.
    pub(crate) const fn is_read(&self) -> bool {
        matches!(self, Lower::Memory(MemoryAccess::Read))
    }
}

/// The access to an element of a column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MemoryAccess {
    /// A read.
    Read,
    /// A write, whose result is the position.
    Write,
}

/// The data of an overload's kernels: a pointer to a closure that lives as long as the process, or to a `CompiledLiteral` that the
/// model keeps.
#[derive(Clone, Copy, Debug)]
pub struct KernelData(pub(crate) *const ());

/// What an operator that is compiled with a model was compiled to; freed with the last that holds it.
#[derive(Clone, Debug)]
pub struct CompiledLiteral(Arc<dyn Any + Send + Sync>);

impl CompiledLiteral {
    pub(crate) fn new(function: impl Send + Sync + 'static) -> Self {
        CompiledLiteral(Arc::new(function))
    }

    /// State that others may hold too.
    pub(crate) fn shared(function: Arc<impl Send + Sync + 'static>) -> Self {
        CompiledLiteral(function)
    }

    /// The pointer that kernels are given. It is good while this state or a clone lives.
    #[must_use]
    pub fn data(&self) -> KernelData {
        KernelData(Arc::as_ptr(&self.0).cast())
    }
}

/// How a literal becomes the state of an operator. The error says what is wrong with the literal.
#[derive(Clone, Copy)]
pub struct Compile {
    pub(crate) from: CompiledFrom,
    pub(crate) function: &'static CompileFn,
}

pub(crate) type CompileFn = dyn Fn(&Value) -> Result<CompiledLiteral, String> + Send + Sync;

/// What an operator is compiled from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum CompiledFrom {
    /// A text.
    Text,
    /// A dictionary. Its overload names the type of its values.
    Dict,
}

impl Compile {
    /// Compiles the literal.
    ///
    /// # Errors
    /// What is wrong with it, for people.
    pub fn compile(self, literal: &Value) -> Result<CompiledLiteral, String> {
        (self.function)(literal)
    }

    /// True for literals that it is compiled from.
    #[must_use]
    pub fn takes(self, literal: &Value) -> bool {
        match self.from {
            CompiledFrom::Text => matches!(literal, Value::Scalar(ScalarValue::Text(_))),
            CompiledFrom::Dict => matches!(literal, Value::Dict(_)),
        }
    }
}

impl std::fmt::Debug for Compile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Compile")
    }
}

impl KernelData {
    /// No data.
    pub const NONE: KernelData = KernelData(std::ptr::null());

    /// The pointer that kernels are given.
    #[must_use]
    pub const fn as_ptr(self) -> *const () {
        self.0
    }
}

// SAFETY: OPERATOR-DATA: a pointer to something that is Send and Sync and outlives its use, or null.
unsafe impl Send for KernelData {}
// SAFETY: OPERATOR-DATA, likewise.
unsafe impl Sync for KernelData {}

/// One operator on one list of types.
#[derive(Debug)]
pub struct Overload {
    /// Argument types. `WEAK_FLOAT` is not listed where it behaves like `FLOAT64`.
    pub args: &'static [OperandType],
    /// The result type.
    pub ret: OperandType,
    /// The kernel on exactly these types.
    pub kernel: Kernel,
    /// For strict operators, the kernel on the optional forms of all argument types.
    pub lifted: Option<Kernel>,
    /// How it becomes machine code.
    pub lower: Lower,
    /// Without a rule: its function on registers, if its types fit; else machine code calls a kernel.
    pub direct: Option<RegisterFn>,
    /// What its kernels are given besides slots: the closure of a user operator.
    pub data: KernelData,
    /// For an operator that is compiled with a model: how its first argument, a literal, becomes the data.
    pub compile: Option<Compile>,
    /// True if equal arguments give equal results; otherwise it is never evaluated ahead of time.
    pub pure: bool,
}

impl Overload {
    /// The kernel on these types, or on their optional forms.
    #[must_use]
    pub fn kernel(&self, lifted: bool) -> Kernel {
        match self.lifted {
            Some(kernel) if lifted => kernel,
            _ => self.kernel,
        }
    }

    /// True if an argument of this type is what its kernels take: they cannot tell it from the one that they were made for.
    #[must_use]
    pub fn is_taken(&self, arg: usize, lifted: bool, found: &QType) -> bool {
        let found = match found {
            QType::Dict(_, value) if self.is_compiled_from_dict(arg) => &QType::Scalar(*value),
            found => found,
        };
        arg < self.args.len() && alike(found, &self.takes(arg, lifted))
    }

    fn is_compiled_from_dict(&self, arg: usize) -> bool {
        arg == 0 && self.compile.is_some_and(|compile| compile.from == CompiledFrom::Dict)
    }

    /// True if a result of this type is what its kernels make.
    #[must_use]
    pub fn is_made(&self, lifted: bool, found: &QType) -> bool {
        alike(found, &QType::of(self.ret.scalar, self.ret.optional || lifted))
    }

    /// The type of an argument. What an operator is compiled from is plain, whatever the others are lifted to.
    #[must_use]
    pub fn takes(&self, arg: usize, lifted: bool) -> QType {
        let OperandType { scalar, optional } = self.args[arg];
        let compiled = arg == 0 && self.compile.is_some();
        QType::of(scalar, optional || (lifted && !compiled))
    }
}

/// True if kernels cannot tell the types apart.
fn alike(found: &QType, taken: &QType) -> bool {
    let representation = |qtype: &QType| qtype.scalar().map(Scalar::representation);
    representation(found) == representation(taken) && found.is_optional() == taken.is_optional()
}

/// A handle on an argument or an intermediate of an expansion.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NodeHandle(pub u32);

/// The node of a value that was built in a graph, or the reason why it was not built.
pub(crate) type NodeResult<E = TypeFault> = Result<NodeHandle, E>;

/// The graph an expansion builds in, as far as an operator may see it.
pub trait Expansion {
    /// The type of a value.
    fn qtype(&self, arg: NodeHandle) -> QType;
    /// The value, if it is a literal.
    fn value(&self, arg: NodeHandle) -> Option<Value>;
    /// The value of a literal or of an array of literals, whatever else uses it.
    fn literal_array(&self, _: NodeHandle) -> Option<Value> {
        None
    }
    /// The value of a literal, or of an array of literals, that nothing else uses: so what takes as long as it is long is done once.
    fn written(&self, _: NodeHandle) -> Option<Value> {
        None
    }
    /// A literal.
    fn literal(&mut self, value: Value) -> NodeHandle;
    /// An operator applied to values.
    ///
    /// # Errors
    /// The operator does not take these types.
    fn apply(&mut self, operator: OpId, args: &[NodeHandle]) -> Result<NodeHandle, TypeFault>;
}

/// Why a function or a sequence could not be put to use.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Stop {
    /// The operator does not take these operands.
    Fault(TypeFault),
    /// Something inside of a function is wrong, and was reported where it stands.
    Reported,
}

impl From<TypeFault> for Stop {
    fn from(fault: TypeFault) -> Self {
        Stop::Fault(fault)
    }
}

/// What an operator on functions and sequences sees of the graph while types are found. Values, functions and sequences
/// are handles alike.
pub trait Instantiation: Expansion {
    /// The body of a function with arguments in place of its parameters.
    ///
    /// # Errors
    /// It is no function of so many parameters, or does not take these types.
    fn call(&mut self, function: NodeHandle, args: &[NodeHandle]) -> Result<NodeHandle, Stop>;

    /// Counts work that the length of the text does not bound; what is applied and called is counted by itself.
    ///
    /// # Errors
    /// It is more than is allowed.
    fn spend(&mut self, steps: usize) -> Result<(), Stop>;

    /// The sequence behind a handle; `None` if it is something else.
    fn sequence(&self, arg: NodeHandle) -> Option<Rc<Sequence>>;

    /// A handle on a sequence.
    fn make_sequence(&mut self, sequence: Sequence) -> NodeHandle;

    /// A value as one of a wider type, by the casts that are implied elsewhere: tuples field by field, arrays element by element.
    ///
    /// # Errors
    /// There is no such cast.
    fn widen(&mut self, arg: NodeHandle, wide: &QType) -> Result<NodeHandle, TypeFault>;

    /// A value of which only the type matters: what a function makes of it tells the function's type.
    fn unknown(&mut self, qtype: &QType) -> NodeHandle;

    /// The array of what a function makes of the elements of the arrays among the arguments, which are optionals to it; the
    /// other arguments are the same for all.
    ///
    /// # Errors
    /// It does not take these types, or makes something else of them than scalars.
    fn map(&mut self, function: NodeHandle, args: &[NodeHandle]) -> Result<NodeHandle, Stop>;

    /// The state after the last round of a loop that starts with `init` and goes on as long as the condition is present.
    /// The type of the state is what `init` and `next` have in common.
    ///
    /// # Errors
    /// The condition is no mask, the state has no one type, or loops nest too deep.
    fn repeat(&mut self, init: NodeHandle, condition: Round<'_>, next: Round<'_>) -> Result<NodeHandle, Stop>;
}

/// A part of a loop, made from the state.
pub type Round<'f> = &'f mut dyn FnMut(&mut dyn Instantiation, NodeHandle) -> Result<NodeHandle, Stop>;

/// Operators that are structure rather than computation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Structure {
    /// A tuple of its operands.
    MakeTuple,
    /// A named tuple of its operands but for the first, which is the literal text of the names.
    MakeNamed,
    /// A field of a tuple, by a literal index.
    GetNth,
    /// The presence of an optional, which lies beside its value. An operator with overloads too: they do where it lies
    /// elsewhere, and for what is not optional.
    Has,
    /// A function: its body, then its parameters. Typing takes it apart.
    Lambda,
    /// An operator that is an operand, by name. Typing takes it apart.
    Named,
}

/// What an operator does.
pub enum Meaning {
    /// Computes: one of these overloads.
    Overloads(&'static [Overload]),
    /// Stands for an expression of other operators, made once the types are known.
    Expand(fn(&mut dyn Expansion, &[NodeHandle]) -> Result<NodeHandle, TypeFault>),
    /// Takes functions or sequences, and stands for an expression made while types are found.
    Instantiate(fn(&mut dyn Instantiation, &[NodeHandle]) -> Result<NodeHandle, Stop>),
    /// Stands for another operator on the same operands, which their types choose.
    Choose(fn(&[&QType]) -> OpId),
    /// Builds or takes apart tuples.
    Structure(Structure),
}

/// How an operator finds its types.
#[derive(Clone, Copy)]
pub enum Typing {
    /// All arguments are cast to one type, which picks the overload.
    Promote(Promotion),
    /// The first overload whose types all arguments can be implicitly cast to.
    Overloads,
    /// By what it is of arrays: it takes nothing else.
    OfArrays,
    /// Not at all: it is of models with tensors, which are not typed value by value.
    OfTensors,
    /// Not by itself: by what the functions and sequences it takes make of their arguments.
    Instantiated,
    /// A function decides.
    Rule(fn(&[Argument<'_>]) -> Result<Signature, TypeFault>),
}

impl Typing {
    /// True for an operator on whole tensors.
    #[must_use]
    pub const fn is_of_tensors(self) -> bool {
        matches!(self, Typing::OfTensors)
    }
}

/// What an operator is of arrays.
#[derive(Clone, Copy)]
pub enum OverArrays {
    /// It is applied to each element, scalars and optionals being the same for all of them. Whatever it stands for is made in
    /// the expression of one element.
    Elementwise,
    /// It is typed likewise, but what it stands for is made of whole arrays.
    Expanded,
    /// Its typing rule knows arrays: it stands for something, or is structure.
    Own,
    /// It computes on whole arrays.
    Kernel(&'static ArrayOperator),
}

/// A law an operator obeys bit for bit (any NaN being like any other); proved by property tests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Law {
    /// `f(x, y) = f(y, x)`.
    Commutative,
    /// `f(f(x)) = f(x)`.
    Idempotent,
    /// `f(f(x)) = x`.
    Involution,
}

/// An expression of the text language and its value, as the language writes it.
#[derive(Clone, Copy, Debug)]
pub struct Example {
    /// The expression.
    pub text: &'static str,
    /// Its value, printed as listings print literals.
    pub value: &'static str,
}

/// A look at the literals among the arguments of a call, which says what is wrong with one.
pub(crate) type LiteralRule = fn(&[Argument<'_>]) -> Result<(), TypeFault>;

/// The record of an operator. Only this crate makes them: the kernels of their overloads are trusted.
#[non_exhaustive]
pub struct OpDef {
    /// The canonical name.
    pub name: &'static str,
    /// Short names of the text language. Once given, never taken away or given to another operator; but one further down in
    /// the list of operators may have it where but one operand is given.
    pub aliases: &'static [&'static str],
    /// What it does, in one or two sentences.
    pub summary: &'static str,
    /// Parameters with their defaults.
    pub params: &'static [Parameter],
    /// True if the last parameter may be repeated or left out.
    pub variadic: bool,
    /// How missing arguments are treated.
    pub presence: PresenceRule,
    /// The faults it can raise; empty for a total operator.
    pub faults: &'static [FaultKind],
    /// How it finds its types.
    pub typing: Typing,
    /// What it does.
    pub meaning: Meaning,
    /// The check of the literals among its arguments that are in a language of their own, as formats and regular expressions are; `None`
    /// if there are none. Preparation calls it once for each call in the text whose types are settled, and a problem is one of the model.
    /// Operators that are given such a text by other ways check it themselves at each row.
    pub literals: Option<LiteralRule>,
    /// Laws it obeys.
    pub laws: &'static [Law],
    /// Examples, each run by a test in both backends.
    pub examples: &'static [Example],
    /// What it is of arrays.
    pub over_arrays: OverArrays,
    /// The form in which its kernel on whole arrays works on strips; `None` if it does not.
    pub in_strips: Option<InStrips>,
    /// The rule that says when the result of its kernel on whole arrays is full.
    pub full: FullRule,
    /// Its derivative, if it is known.
    pub derivative: Option<Derivative>,
    /// The operator that it stands for where an operand is a duration or a timestamp, or an array of them; none if it is no other.
    pub of_durations: Option<OpId>,
    /// The operator that it stands for where one operand is a date and the other an `i64`, or arrays of them; `None` if it is no other.
    pub of_long_days: Option<OpId>,
    /// The operator that it stands for where an operand is a struct, an optional struct or a list of structs; none if it is no other. What
    /// takes tuples itself stands for another only of the latter two.
    pub of_structs: Option<OpId>,
    /// The operator that it stands for where its last operand is an array of masks; `None` if there is none. Structs come first.
    pub of_masks: Option<OpId>,
    /// Which of its operands a file of `numbers f64` makes f64. [`OpDef::integers`] answers for operators that promote by a shared rule,
    /// whose records leave this out.
    pub integers: Integers,
    /// True if only plans that this library makes may have it: no text, builder or rewrite finds it by its name.
    pub is_of_plans: bool,
}

/// True for durations and timestamps, and for arrays of them.
#[inline]
pub(crate) fn is_of_durations(qtype: &QType) -> bool {
    let (QType::Scalar(scalar) | QType::Optional(scalar) | QType::Array(_, scalar)) = qtype else { return false };
    matches!(scalar, Scalar::Duration | Scalar::Timestamp)
}

/// True for dates, and for arrays of them.
#[inline]
fn is_of_dates(qtype: &QType) -> bool {
    qtype.of_each().scalar() == Some(Scalar::Date)
}

/// True for an array of masks.
fn is_of_masks(qtype: &QType) -> bool {
    matches!(qtype, QType::Array(_, Scalar::Unit))
}

impl std::fmt::Debug for OpDef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

impl OpDef {
    /// The overloads; none for expansions and structure.
    #[must_use]
    pub fn overloads(&self) -> &'static [Overload] {
        match self.meaning {
            Meaning::Overloads(overloads) => overloads,
            _ => &[],
        }
    }

    /// True if the types of the operands alone settle those of a call: no literal has a say.
    #[must_use]
    pub fn is_typed_by_types(&self) -> bool {
        matches!(self.typing, Typing::Promote(_) | Typing::Overloads)
            && self.overloads().iter().all(|overload| overload.compile.is_none())
    }

    /// True for what computes on whole arrays and nothing else.
    #[must_use]
    pub fn is_of_arrays(&self) -> bool {
        matches!((self.over_arrays, &self.meaning), (OverArrays::Kernel(_), Meaning::Overloads([])))
    }

    /// True if it may stand for another operator on operands of these types: see [`Registry::meant`](crate::Registry::meant).
    #[must_use]
    #[inline]
    pub fn may_be_another<'t>(&self, types: impl IntoIterator<Item = &'t QType>) -> bool {
        let is_special =
            |qtype| is_of_durations(qtype) || is_of_structs(qtype) || self.of_long_days.is_some() && is_of_dates(qtype);
        matches!(self.meaning, Meaning::Choose(_))
            || [self.of_durations, self.of_structs, self.of_masks].iter().any(Option::is_some)
                && types.into_iter().any(|qtype| is_special(qtype) || is_of_masks(qtype))
    }

    /// The operator that it stands for of operands of these types, by its record.
    pub(crate) fn stands_for(&self, types: &[&QType]) -> Option<OpId> {
        let is_any = |of: fn(&QType) -> bool| types.iter().any(|qtype| of(qtype));
        // The fields of a tuple are asked for by its own operators.
        let structs = if self.of_structs == Some(id::STRUCT_FIELD) { is_formed } else { is_of_structs };
        let of_structs = self.of_structs.filter(|_| is_any(structs));
        let of_masks = || self.of_masks.filter(|_| types.last().is_some_and(|qtype| is_of_masks(qtype)));
        let of_durations = || self.of_durations.filter(|_| is_any(is_of_durations));
        let is_long = |qtype: &QType| qtype.of_each().scalar() == Some(Scalar::Int64);
        let of_long_days = || self.of_long_days.filter(|_| is_any(is_of_dates) && is_any(is_long));
        of_structs.or_else(of_masks).or_else(of_durations).or_else(of_long_days)
    }

    /// Which of its operands a file of `numbers f64` makes f64: by its promotion, else by its record.
    #[must_use]
    pub fn integers(&self) -> Integers {
        match self.typing {
            Typing::Promote(Promotion::Float) => Integers::Widen,
            Typing::Promote(Promotion::Numeric | Promotion::Comparable) if self.params.len() > 1 => {
                Integers::WidenBesideFloats(0)
            }
            _ => self.integers,
        }
    }

    /// True if no argument can make it fail.
    #[must_use]
    pub fn is_total(&self) -> bool {
        self.faults.is_empty()
    }
}

/// What most records share, to be filled in: a strict operator on one number that cannot fail.
pub(crate) const UNARY: OpDef = OpDef {
    name: "",
    aliases: &[],
    summary: "",
    params: &[param("x")],
    variadic: false,
    presence: PresenceRule::Strict,
    faults: &[],
    typing: Typing::Promote(Promotion::Numeric),
    meaning: Meaning::Overloads(&[]),
    literals: None,
    laws: &[],
    examples: &[],
    over_arrays: OverArrays::Elementwise,
    in_strips: None,
    full: FullRule::Never,
    derivative: None,
    of_durations: None,
    of_long_days: None,
    of_structs: None,
    of_masks: None,
    integers: Integers::Stay,
    is_of_plans: false,
};

/// A template of records as `UNARY`, but with a rule of its own for missing operands.
pub(crate) const CUSTOM: OpDef = OpDef { presence: PresenceRule::Custom, ..UNARY };

/// A template of records as `UNARY`, but with rules of its own for missing operands and for arrays.
pub(crate) const OWN: OpDef = OpDef { over_arrays: OverArrays::Own, ..CUSTOM };

/// A template of records for strict operators that take the types of their overloads.
pub(crate) const OVERLOADED: OpDef = OpDef { typing: Typing::Overloads, ..UNARY };

/// A template of records for strict operators on two numbers that cannot fail.
pub(crate) const BINARY: OpDef = OpDef { params: &[param("x"), param("y")], ..UNARY };

/// A parameter that must be given.
pub(crate) const fn param(name: &'static str) -> Parameter {
    Parameter::new(name, None)
}

/// A parameter with a default.
pub(crate) const fn param_or(name: &'static str, default: Value) -> Parameter {
    Parameter::new(name, Some(default))
}

/// An example.
pub(crate) const fn ex(text: &'static str, value: &'static str) -> Example {
    Example { text, value }
}
