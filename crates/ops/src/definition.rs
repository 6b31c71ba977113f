//! The record of an operator: everything the project knows about an operator is in one static `OpDef`.

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
    /// True if the type is optional.
    pub optional: bool,
}

impl OperandType {
    /// The type as a QType.
    #[must_use]
    pub const fn qtype(self) -> QType {
        QType::of(self.scalar, self.optional)
    }
}

/// The treatment of missing arguments.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PresenceRule {
    /// A missing argument gives a missing result, and the body does not run; overloads have scalars that are not optional.
    Strict,
    /// The overloads handle optionals themselves.
    Custom,
}

/// A lowering rule: records the overload's instructions and returns its result.
pub type Rule = fn(&mut Tape, &[Cell]) -> Cell;

/// The way in which an overload becomes machine code.
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

/// The state to which a literal of the model was compiled, for an operator that needs one; freed with its last clone.
#[derive(Clone, Debug)]
pub struct CompiledLiteral(Arc<dyn Any + Send + Sync>);

impl CompiledLiteral {
    pub(crate) fn new(function: impl Send + Sync + 'static) -> Self {
        CompiledLiteral(Arc::new(function))
    }

    /// Wraps state that has other owners too.
    pub(crate) fn shared(function: Arc<impl Send + Sync + 'static>) -> Self {
        CompiledLiteral(function)
    }

    /// The pointer that is passed to kernels. It is valid while this state or a clone lives.
    #[must_use]
    pub fn data(&self) -> KernelData {
        KernelData(Arc::as_ptr(&self.0).cast())
    }
}

/// The function that compiles a literal to the state of an operator. Its error says what is wrong with the literal.
#[derive(Clone, Copy)]
pub struct Compile {
    pub(crate) from: CompiledFrom,
    pub(crate) function: &'static CompileFn,
}

/// A function that compiles a literal; its error is a message.
pub(crate) type CompileFn = dyn Fn(&Value) -> Result<CompiledLiteral, String> + Send + Sync;

/// The kind of literal that an operator is compiled from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum CompiledFrom {
    /// A text.
    Text,
    /// A dictionary. The first argument type of the overload is the type of its values.
    Dict,
}

impl Compile {
    /// Compiles the literal.
    ///
    /// # Errors
    /// A message that says what is wrong with the literal.
    pub fn compile(self, literal: &Value) -> Result<CompiledLiteral, String> {
        (self.function)(literal)
    }

    /// Returns true if the literal is of the kind that this compiles.
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
    /// No data: a null pointer.
    pub const NONE: KernelData = KernelData(std::ptr::null());

    /// The pointer that is passed to kernels.
    #[must_use]
    pub const fn as_ptr(self) -> *const () {
        self.0
    }
}

// SAFETY: OPERATOR-DATA: a pointer to something that is Send and Sync and outlives its use, or null.
unsafe impl Send for KernelData {}
// SAFETY: OPERATOR-DATA: a pointer to something that is Send and Sync and outlives its use, or null.
unsafe impl Sync for KernelData {}

/// An implementation of an operator for one list of types.
#[derive(Debug)]
pub struct Overload {
    /// Argument types. `WEAK_FLOAT` is not listed where it behaves like `FLOAT64`.
    pub args: &'static [OperandType],
    /// The result type.
    pub ret: OperandType,
    /// The kernel for exactly the types in `args`.
    pub kernel: Kernel,
    /// For strict operators, the kernel for the optional forms of all types in `args`.
    pub lifted: Option<Kernel>,
    /// The way in which the overload becomes machine code.
    pub lower: Lower,
    /// The function on registers of an overload without a rule. `None` if the types do not fit, so that machine code calls a
    /// kernel.
    pub direct: Option<RegisterFn>,
    /// The data that kernels receive besides slots: the closure of a user operator.
    pub data: KernelData,
    /// The function that makes the data from the first argument, a literal, for an operator that is compiled with a model.
    pub compile: Option<Compile>,
    /// True if equal arguments give equal results; otherwise the overload is never evaluated ahead of time.
    pub pure: bool,
}

impl Overload {
    /// The kernel for the types in `args`, or for their optional forms if `lifted` is set.
    #[must_use]
    pub fn kernel(&self, lifted: bool) -> Kernel {
        match self.lifted {
            Some(kernel) if lifted => kernel,
            _ => self.kernel,
        }
    }

    /// True if kernels take an argument of type `found` at index `arg`: they cannot tell it from the type that they are made
    /// for.
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

    /// True if kernels make a result of type `found`.
    #[must_use]
    pub fn is_made(&self, lifted: bool, found: &QType) -> bool {
        alike(found, &QType::of(self.ret.scalar, self.ret.optional || lifted))
    }

    /// The type of an argument, optional if `lifted` is set. The literal that an operator is compiled from is never optional.
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

/// A handle to an argument or an intermediate value of an expansion.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NodeHandle(pub u32);

/// The node of a value that was built in a graph, or the reason why it was not built.
pub(crate) type NodeResult<E = TypeFault> = Result<NodeHandle, E>;

/// The graph that an expansion is built in, as far as an operator may access it.
pub trait Expansion {
    /// The type of a value.
    fn qtype(&self, arg: NodeHandle) -> QType;
    /// The value of a literal; `None` for other nodes.
    fn value(&self, arg: NodeHandle) -> Option<Value>;
    /// The value of a literal, or of an array of literals, no matter what else uses it; `None` for other nodes.
    fn literal_array(&self, _: NodeHandle) -> Option<Value> {
        None
    }
    /// The value of a literal, or of an array of literals, if nothing else uses it: then work on its whole length is done only
    /// once. `None` for other nodes.
    fn written(&self, _: NodeHandle) -> Option<Value> {
        None
    }
    /// Adds a literal.
    fn literal(&mut self, value: Value) -> NodeHandle;
    /// Applies an operator to values.
    ///
    /// # Errors
    /// If the operator does not take these types.
    fn apply(&mut self, operator: OpId, args: &[NodeHandle]) -> Result<NodeHandle, TypeFault>;
}

/// The reason why an operator on functions or sequences was not expanded.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Stop {
    /// The operator does not take these operands.
    Fault(TypeFault),
    /// An error inside of a function, which was reported where it occurs.
    Reported,
}

impl From<TypeFault> for Stop {
    fn from(fault: TypeFault) -> Self {
        Stop::Fault(fault)
    }
}

/// The graph while types are found, as operators on functions and sequences access it. Values, functions and sequences all have
/// handles.
pub trait Instantiation: Expansion {
    /// Calls a function: returns its body with the arguments in place of its parameters.
    ///
    /// # Errors
    /// If it is not a function with as many parameters, or does not take these types.
    fn call(&mut self, function: NodeHandle, args: &[NodeHandle]) -> Result<NodeHandle, Stop>;

    /// Counts `steps` steps of work, for work that the length of the text does not bound. Applying operators and calling
    /// functions are counted separately.
    ///
    /// # Errors
    /// If there are more steps than allowed.
    fn spend(&mut self, steps: usize) -> Result<(), Stop>;

    /// The sequence with this handle; `None` if it is something else.
    fn sequence(&self, arg: NodeHandle) -> Option<Rc<Sequence>>;

    /// Returns a handle to a sequence.
    fn make_sequence(&mut self, sequence: Sequence) -> NodeHandle;

    /// Casts a value to a wider type, by implicit casts: tuples field by field, arrays element by element.
    ///
    /// # Errors
    /// If there is no such cast.
    fn widen(&mut self, arg: NodeHandle, wide: &QType) -> Result<NodeHandle, TypeFault>;

    /// Returns a value of which only the type is known. Calling a function with it tells the type of the function's result.
    fn unknown(&mut self, qtype: &QType) -> NodeHandle;

    /// Applies a function to the elements of the arrays among the arguments, and returns the array of results. Elements are
    /// optionals to the function; the other arguments are the same for all elements.
    ///
    /// # Errors
    /// If the function does not take these types, or its results are not scalars.
    fn map(&mut self, function: NodeHandle, args: &[NodeHandle]) -> Result<NodeHandle, Stop>;

    /// The state after the last round of a loop that starts with `init` and goes on as long as the condition is present. The
    /// type of the state is the common type of `init` and `next`.
    ///
    /// # Errors
    /// If the condition is not a mask, the state has no common type, or loops nest too deep.
    fn repeat(&mut self, init: NodeHandle, condition: Round<'_>, next: Round<'_>) -> Result<NodeHandle, Stop>;
}

/// A part of a loop, built from the state: the condition or the next state.
pub type Round<'f> = &'f mut dyn FnMut(&mut dyn Instantiation, NodeHandle) -> Result<NodeHandle, Stop>;

/// An operator that is structure and does not compute.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Structure {
    /// Makes a tuple of the operands.
    MakeTuple,
    /// Makes a named tuple of the operands after the first, which is the literal text of the names.
    MakeNamed,
    /// Reads a field of a tuple, by a literal index.
    GetNth,
    /// Reads the presence of an optional, which is stored beside its value. The operator has overloads too, for a presence that
    /// is stored elsewhere and for values that are not optional.
    Has,
    /// A function: its body, then its parameters. It is gone once types are found.
    Lambda,
    /// An operator that is an operand, by name. It is gone once types are found.
    Named,
}

/// The way in which an operator is evaluated.
pub enum Meaning {
    /// Computes, by one of these overloads.
    Overloads(&'static [Overload]),
    /// Expands to other operators, once the types are known.
    Expand(fn(&mut dyn Expansion, &[NodeHandle]) -> Result<NodeHandle, TypeFault>),
    /// Takes functions or sequences, and expands to other operators while types are found.
    Instantiate(fn(&mut dyn Instantiation, &[NodeHandle]) -> Result<NodeHandle, Stop>),
    /// Stands for another operator on the same operands, which the function selects by their types.
    Choose(fn(&[&QType]) -> OpId),
    /// Builds or takes apart tuples.
    Structure(Structure),
}

/// The way in which an operator finds its types.
#[derive(Clone, Copy)]
pub enum Typing {
    /// Casts all arguments to one type, which selects the overload.
    Promote(Promotion),
    /// Selects the first overload whose types all arguments can be implicitly cast to.
    Overloads,
    /// By the typing of its kernel on whole arrays; the operator takes nothing else.
    OfArrays,
    /// None: the operator belongs to models with tensors, which are not typed value by value.
    OfTensors,
    /// By the results of the functions and sequences that it takes.
    Instantiated,
    /// By a function.
    Rule(fn(&[Argument<'_>]) -> Result<Signature, TypeFault>),
}

impl Typing {
    /// Returns true if the operator works on whole tensors.
    #[must_use]
    pub const fn is_of_tensors(self) -> bool {
        matches!(self, Typing::OfTensors)
    }
}

/// The treatment of arrays by an operator.
#[derive(Clone, Copy)]
pub enum OverArrays {
    /// The operator is applied to each element; scalars and optionals are the same for all elements. An expansion is built
    /// inside the expression for one element.
    Elementwise,
    /// The operator is typed for each element, but its expansion works on whole arrays.
    Expanded,
    /// The typing rule handles arrays: the operator expands, or is structure.
    Own,
    /// The operator has a kernel on whole arrays.
    Kernel(&'static ArrayOperator),
}

/// A law that an operator obeys bit for bit, where all NaNs count as the same; checked by property tests.
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
    /// The value of the expression, printed as listings print literals.
    pub value: &'static str,
}

/// A check of the literals among the arguments of a call. The error says what is wrong with one.
pub(crate) type LiteralRule = fn(&[Argument<'_>]) -> Result<(), TypeFault>;

/// The record of an operator. Only this crate makes records, because the kernels of their overloads are trusted.
#[non_exhaustive]
pub struct OpDef {
    /// The canonical name.
    pub name: &'static str,
    /// Short names in the text language. A name is never removed or given to another operator. But an operator further down in
    /// the list may have the same name for calls with only one operand.
    pub aliases: &'static [&'static str],
    /// A description in one or two sentences.
    pub summary: &'static str,
    /// The parameters with their defaults.
    pub params: &'static [Parameter],
    /// True if the last parameter may be repeated or left out.
    pub variadic: bool,
    /// The treatment of missing arguments.
    pub presence: PresenceRule,
    /// The faults that the operator can raise; empty if it cannot fail.
    pub faults: &'static [FaultKind],
    /// The way in which the operator finds its types.
    pub typing: Typing,
    /// The way in which the operator is evaluated.
    pub meaning: Meaning,
    /// The check of literals that are in a language of their own, such as formats and regular expressions; `None` if there are
    /// none. Preparation calls it once for each call in the text whose types are settled, and a problem is an error of the
    /// model. An operator that gets such a text in another way checks it at each row.
    pub literals: Option<LiteralRule>,
    /// The laws that the operator obeys.
    pub laws: &'static [Law],
    /// The examples, each run by a test in both backends.
    pub examples: &'static [Example],
    /// The treatment of arrays.
    pub over_arrays: OverArrays,
    /// The form in which the kernel on whole arrays works on strips; `None` if it does not.
    pub in_strips: Option<InStrips>,
    /// The condition under which the result of the kernel on whole arrays is full.
    pub full: FullRule,
    /// The derivative; `None` if it is not known.
    pub derivative: Option<Derivative>,
    /// The operator that replaces this one if an operand is a duration, a timestamp, or an array of them; `None` if there is
    /// none.
    pub of_durations: Option<OpId>,
    /// The operator that replaces this one if one operand is a date and the other an `i64`, or arrays of them; `None` if there
    /// is none.
    pub of_long_days: Option<OpId>,
    /// The operator that replaces this one if an operand is a struct, an optional struct or a list of structs; `None` if there
    /// is none. An operator that takes tuples itself is replaced only for the latter two.
    pub of_structs: Option<OpId>,
    /// The operator that replaces this one if the last operand is an array of masks; `None` if there is none. `of_structs` is
    /// tried first.
    pub of_masks: Option<OpId>,
    /// The operands that are cast to f64 in a file that declares `numbers f64`. Operators that promote by a shared rule leave
    /// this out: [`OpDef::integers`] answers for all.
    pub integers: Integers,
    /// True if only plans that this library makes may have the operator: no text, builder or rewrite finds it by its name.
    pub is_of_plans: bool,
}

/// Returns true if a type is a duration, a timestamp, an optional, or an array of them.
#[inline]
pub(crate) fn is_of_durations(qtype: &QType) -> bool {
    let (QType::Scalar(scalar) | QType::Optional(scalar) | QType::Array(_, scalar)) = qtype else { return false };
    matches!(scalar, Scalar::Duration | Scalar::Timestamp)
}

/// Returns true if a type is a date, an optional date, or an array of dates.
#[inline]
fn is_of_dates(qtype: &QType) -> bool {
    qtype.of_each().scalar() == Some(Scalar::Date)
}

/// Returns true if a type is an array of masks.
fn is_of_masks(qtype: &QType) -> bool {
    matches!(qtype, QType::Array(_, Scalar::Unit))
}

impl std::fmt::Debug for OpDef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

impl OpDef {
    /// The overloads; empty for expansions and structure.
    #[must_use]
    pub fn overloads(&self) -> &'static [Overload] {
        match self.meaning {
            Meaning::Overloads(overloads) => overloads,
            _ => &[],
        }
    }

    /// True if the types of a call depend on its operand types only, not on literals.
    #[must_use]
    pub fn is_typed_by_types(&self) -> bool {
        matches!(self.typing, Typing::Promote(_) | Typing::Overloads)
            && self.overloads().iter().all(|overload| overload.compile.is_none())
    }

    /// Returns true if the operator computes on whole arrays only.
    #[must_use]
    pub fn is_of_arrays(&self) -> bool {
        matches!((self.over_arrays, &self.meaning), (OverArrays::Kernel(_), Meaning::Overloads([])))
    }

    /// True if operands of these types may select another operator: see [`Registry::meant`](crate::Registry::meant).
    #[must_use]
    #[inline]
    pub fn may_be_another<'t>(&self, types: impl IntoIterator<Item = &'t QType>) -> bool {
        let is_special =
            |qtype| is_of_durations(qtype) || is_of_structs(qtype) || self.of_long_days.is_some() && is_of_dates(qtype);
        matches!(self.meaning, Meaning::Choose(_))
            || [self.of_durations, self.of_structs, self.of_masks].iter().any(Option::is_some)
                && types.into_iter().any(|qtype| is_special(qtype) || is_of_masks(qtype))
    }

    /// The operator that replaces this one for operands of these types, by its record; `None` if there is none.
    pub(crate) fn stands_for(&self, types: &[&QType]) -> Option<OpId> {
        let is_any = |of: fn(&QType) -> bool| types.iter().any(|qtype| of(qtype));
        // A tuple's own operators read its fields.
        let structs = if self.of_structs == Some(id::STRUCT_FIELD) { is_formed } else { is_of_structs };
        let of_structs = self.of_structs.filter(|_| is_any(structs));
        let of_masks = || self.of_masks.filter(|_| types.last().is_some_and(|qtype| is_of_masks(qtype)));
        let of_durations = || self.of_durations.filter(|_| is_any(is_of_durations));
        let is_long = |qtype: &QType| qtype.of_each().scalar() == Some(Scalar::Int64);
        let of_long_days = || self.of_long_days.filter(|_| is_any(is_of_dates) && is_any(is_long));
        of_structs.or_else(of_masks).or_else(of_durations).or_else(of_long_days)
    }

    /// The operands that are cast to f64 in a file that declares `numbers f64`: by the operator's promotion, else by its
    /// record.
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

    /// True if the operator cannot fail.
    #[must_use]
    pub fn is_total(&self) -> bool {
        self.faults.is_empty()
    }
}

/// A template of records for strict operators on one number that cannot fail.
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

/// A template of records like `UNARY`, but with its own treatment of missing operands.
pub(crate) const CUSTOM: OpDef = OpDef { presence: PresenceRule::Custom, ..UNARY };

/// A template of records like `UNARY`, but with its own treatment of missing operands and of arrays.
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

/// An example: an expression and its value.
pub(crate) const fn ex(text: &'static str, value: &'static str) -> Example {
    Example { text, value }
}
