//! The record of an operator, [`OpDef`]. Each operator has one static record with all its properties, such as its name,
//! its types and its implementation; all other code reads them from there.

use crate::array::strip::StripMethod;
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

/// The type of an overload's argument or result: a scalar, optional or not.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct OperandType {
    /// The scalar type; whether the value may be missing is stored in `optional`.
    pub scalar: Scalar,
    /// True if a value of the type may be missing.
    pub optional: bool,
}

impl OperandType {
    /// Returns this type as a `QType`, the general representation of types.
    #[must_use]
    pub const fn qtype(self) -> QType {
        QType::of(self.scalar, self.optional)
    }
}

/// The way in which an operator treats missing arguments: the result is missing too, or the operator's overloads handle missing arguments.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PresenceRule {
    /// If an argument is missing, the result is missing, and the operator's body is not called. The argument types of overloads are not optional.
    Strict,
    /// The operator's overloads handle missing arguments themselves.
    Custom,
}

/// A lowering rule: a function that records an overload's instructions on a tape, for the given arguments, and returns
/// the result.
pub type Rule = fn(&mut Tape, &[Cell]) -> Cell;

/// The way in which an overload becomes machine code: by a lowering rule, by a call of its kernel, or as a memory access.
#[derive(Clone, Copy, Debug)]
pub enum Lower {
    /// A lowering rule of this library records the overload's instructions. Rules of strict operators are written for
    /// present arguments; [`record`](crate::record) extends them to optionals.
    Rule(Rule),
    /// A user's rule recorded these instructions when the operator was registered, and they were checked then.
    /// [`record`](crate::record) extends strict rules to optionals.
    Recording(&'static Recording),
    /// Machine code calls the overload's kernel, a function on slots of the frame.
    Kernel,
    /// Machine code reads or writes an element of a column (elements in memory, a fixed number of bytes apart) itself,
    /// without a call.
    Memory(MemoryAccess),
}

impl Lower {
    /// Returns true if the overload reads an element of a column.
    pub(crate) const fn is_read(&self) -> bool {
        matches!(self, Lower::Memory(MemoryAccess::Read))
    }
}

/// The kind of access to an element of a column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MemoryAccess {
    /// The element at the given position is read.
    Read,
    /// The element at the given position is written. The result is this position, which is an operand.
    Write,
}

/// The data that an overload's kernels receive besides their arguments: a pointer to a closure that lives as long as
/// the process, or to a [`CompiledLiteral`] that the model owns.
#[derive(Clone, Copy, Debug)]
pub struct KernelData(pub(crate) *const ());

/// The compiled form of a literal in the model, such as a regular expression; the operator uses this form in each call.
/// The memory is freed with the last clone.
#[derive(Clone, Debug)]
pub struct CompiledLiteral(Arc<dyn Any + Send + Sync>);

impl CompiledLiteral {
    pub(crate) fn new(function: impl Send + Sync + 'static) -> Self {
        CompiledLiteral(Arc::new(function))
    }

    /// Wraps a compiled literal that is shared with other owners.
    pub(crate) fn shared(function: Arc<impl Send + Sync + 'static>) -> Self {
        CompiledLiteral(function)
    }

    /// The pointer to the compiled literal, as kernels receive it. The pointer is valid while this value or a clone of it lives.
    #[must_use]
    pub fn data(&self) -> KernelData {
        KernelData(Arc::as_ptr(&self.0).cast())
    }
}

/// A function that compiles a literal of a model, such as a regular expression. The function runs once, and the
/// operator uses the compiled form in each call. If compiling fails, the error describes the problem with the literal.
#[derive(Clone, Copy)]
pub struct Compile {
    pub(crate) from: CompiledFrom,
    pub(crate) function: &'static CompileFn,
}

/// A function that compiles a literal to the data that an operator's kernels use. Its error is a message about the literal.
pub(crate) type CompileFn = dyn Fn(&Value) -> Result<CompiledLiteral, String> + Send + Sync;

/// The kind of literal that an operator is compiled from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum CompiledFrom {
    /// The literal that the operator is compiled from is a text.
    Text,
    /// The literal is a dictionary. In the overload's argument types, the dictionary is represented by the type of its
    /// values.
    Dict,
}

impl Compile {
    /// Compiles `literal` for the operator.
    ///
    /// # Errors
    /// A message that tells the problem with the literal.
    pub fn compile(self, literal: &Value) -> Result<CompiledLiteral, String> {
        (self.function)(literal)
    }

    /// Returns true if `literal` is a literal that the function can compile: a text or a dictionary.
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
    /// The data of an overload whose kernels need no data: a null pointer.
    pub const NONE: KernelData = KernelData(std::ptr::null());

    /// The pointer to the data, as kernels receive it.
    #[must_use]
    pub const fn as_ptr(self) -> *const () {
        self.0
    }
}

// SAFETY: OPERATOR-DATA: a pointer to something that is Send and Sync and outlives its use, or null.
unsafe impl Send for KernelData {}
// SAFETY: OPERATOR-DATA: a pointer to something that is Send and Sync and outlives its use, or null.
unsafe impl Sync for KernelData {}

/// The implementation of an operator for one list of argument types: its kernels and its lowering rule.
#[derive(Debug)]
pub struct Overload {
    /// The argument types of the overload. `WEAK_FLOAT` is not listed where it behaves like `FLOAT64`.
    pub args: &'static [OperandType],
    /// The type of the overload's result.
    pub ret: OperandType,
    /// The kernel (a function on slots of a frame) for arguments of exactly the types in `args`.
    pub kernel: Kernel,
    /// The kernel that accepts optionals of all types in `args`, and returns a missing result if an argument is
    /// missing. `None` if the operator is not strict.
    pub lifted: Option<Kernel>,
    /// The way in which the overload becomes machine code.
    pub lower: Lower,
    /// The function that takes its arguments in registers, for an overload without a lowering rule. `None` if the
    /// overload has a rule, or if a type cannot be passed in registers, so that machine code calls the kernel.
    pub direct: Option<RegisterFn>,
    /// The data that kernels receive in addition to slots, such as the closure of a user's operator.
    pub data: KernelData,
    /// The function that compiles the first argument, a literal, to the data that kernels receive. `None` if no argument is
    /// compiled.
    pub compile: Option<Compile>,
    /// True if equal arguments always give equal results. Otherwise the overload is never evaluated ahead of time.
    pub pure: bool,
}

impl Overload {
    /// The kernel for the types in `args`, or for optionals of these types if `lifted` is set.
    #[must_use]
    pub fn kernel(&self, lifted: bool) -> Kernel {
        match self.lifted {
            Some(kernel) if lifted => kernel,
            _ => self.kernel,
        }
    }

    /// Returns true if the overload's kernels accept an argument of type `found` at index `arg`: `found` must have the
    /// same representation in memory as the overload's argument type, which is optional if `lifted` is set.
    #[must_use]
    pub fn accepts_argument(&self, arg: usize, lifted: bool, found: &QType) -> bool {
        let found = match found {
            QType::Dict(_, value) if self.is_compiled_from_dict(arg) => &QType::Scalar(*value),
            found => found,
        };
        arg < self.args.len() && alike(found, &self.takes(arg, lifted))
    }

    fn is_compiled_from_dict(&self, arg: usize) -> bool {
        arg == 0 && self.compile.is_some_and(|compile| compile.from == CompiledFrom::Dict)
    }

    /// Returns true if a result of the overload's kernels is a valid value of type `found`, because the result type has the representation of
    /// `found`.
    #[must_use]
    pub fn gives_type(&self, lifted: bool, found: &QType) -> bool {
        alike(found, &QType::of(self.ret.scalar, self.ret.optional || lifted))
    }

    /// The type of the argument `arg`, optional if `lifted` is set. A literal that the operator is compiled from is never
    /// optional.
    #[must_use]
    pub fn takes(&self, arg: usize, lifted: bool) -> QType {
        let OperandType { scalar, optional } = self.args[arg];
        let compiled = arg == 0 && self.compile.is_some();
        QType::of(scalar, optional || (lifted && !compiled))
    }
}

/// True if values of both types have the same representation in memory, so that kernels treat them alike.
fn alike(found: &QType, taken: &QType) -> bool {
    let representation = |qtype: &QType| qtype.scalar().map(Scalar::representation);
    representation(found) == representation(taken) && found.is_optional() == taken.is_optional()
}

/// A handle to an argument or an intermediate value of an operator's expansion.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NodeHandle(pub u32);

/// A node that was added to a graph, or the reason why no node was added.
pub(crate) type NodeResult<E = TypeFault> = Result<NodeHandle, E>;

/// The graph to which an operator adds its expansion (the expression that replaces the operator).
pub trait Expansion {
    /// The type of the value `arg` in the graph.
    fn qtype(&self, arg: NodeHandle) -> QType;
    /// The value of a node that is a literal; `None` for other nodes.
    fn value(&self, arg: NodeHandle) -> Option<Value>;
    /// The value of a node that is a literal or an array of literals; `None` for other nodes. The node may have several
    /// uses.
    fn literal_array(&self, _: NodeHandle) -> Option<Value> {
        None
    }
    /// The value of a node that is a literal or an array of literals and has only one use, so that work on all elements
    /// of the literal is done only once. `None` for other nodes.
    fn written(&self, _: NodeHandle) -> Option<Value> {
        None
    }
    /// Adds a literal to the graph.
    fn literal(&mut self, value: Value) -> NodeHandle;
    /// Adds a graph node that applies an operator to values.
    ///
    /// # Errors
    /// If the operator does not take these types.
    fn apply(&mut self, operator: OpId, args: &[NodeHandle]) -> Result<NodeHandle, TypeFault>;
}

/// The reason why an operator on functions or sequences was not expanded: its operands, or an error inside a function.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ExpansionError {
    /// The operator does not accept these operands, for this reason.
    Fault(TypeFault),
    /// There is an error inside a function, which was already reported where it occurs.
    Reported,
}

impl From<TypeFault> for ExpansionError {
    fn from(fault: TypeFault) -> Self {
        ExpansionError::Fault(fault)
    }
}

/// The graph during type inference, to which operators on functions and sequences add their expansion. Values,
/// functions and sequences all have handles.
pub trait Instantiation: Expansion {
    /// Calls a function: adds its body with the arguments in place of its parameters, and returns the result.
    ///
    /// # Errors
    /// If `function` is not a function with as many parameters as there are arguments, or its body does not accept the
    /// types of the arguments.
    fn call(&mut self, function: NodeHandle, args: &[NodeHandle]) -> Result<NodeHandle, ExpansionError>;

    /// Counts `steps` steps of work towards the limit for type inference. It is for work that a short text can cause
    /// much of, such as the elements of a sequence. Applying operators and calling functions are counted elsewhere.
    ///
    /// # Errors
    /// If more steps have been counted than are allowed.
    fn spend(&mut self, steps: usize) -> Result<(), ExpansionError>;

    /// Returns the sequence with this handle; `None` if it is the handle of a value or a function.
    fn sequence(&self, arg: NodeHandle) -> Option<Rc<Sequence>>;

    /// Adds a sequence to the graph and returns its handle.
    fn make_sequence(&mut self, sequence: Sequence) -> NodeHandle;

    /// Casts `arg` to the wider type `wide`, by implicit casts. Tuples are cast field by field, arrays element by element.
    ///
    /// # Errors
    /// If there is no such cast.
    fn widen(&mut self, arg: NodeHandle, wide: &QType) -> Result<NodeHandle, TypeFault>;

    /// Returns a placeholder of type `qtype`, whose value is unknown. Calling a function with it finds the type of the
    /// function's result.
    fn unknown(&mut self, qtype: &QType) -> NodeHandle;

    /// Applies a function to the elements of the arrays among the arguments, and returns the array of results. The
    /// function receives elements as optionals. An argument that is not an array is passed to every call as it is.
    ///
    /// # Errors
    /// If the function does not accept these types, or its results are not scalars.
    fn map(&mut self, function: NodeHandle, args: &[NodeHandle]) -> Result<NodeHandle, ExpansionError>;

    /// Adds a loop to the graph and returns its state after the last round. The loop starts with the state `init` and
    /// continues as long as the condition is present. The type of the state is the common type of `init` and `next`.
    ///
    /// # Errors
    /// If the condition is not a mask, the state has no common type, or loops nest too deep.
    fn repeat(&mut self, init: NodeHandle, condition: Round<'_>, next: Round<'_>)
    -> Result<NodeHandle, ExpansionError>;
}

/// A function that builds a part of a loop (the condition or the next state) from the node of the loop's state.
pub type Round<'f> = &'f mut dyn FnMut(&mut dyn Instantiation, NodeHandle) -> Result<NodeHandle, ExpansionError>;

/// The kind of an operator that does not compute but builds or takes apart a structure, such as a tuple, an optional or
/// a function.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Structure {
    /// The operator makes a tuple of its operands.
    MakeTuple,
    /// The operator makes a named tuple of the operands after the first, which is the literal text of the names.
    MakeNamed,
    /// The operator reads a field of a tuple, by a literal index.
    GetNth,
    /// The operator reads the presence of an optional. It also has overloads, for presences that are not stored beside
    /// their value and for values that are not optional.
    Has,
    /// The operator makes a function from a body and parameters. It is removed during type inference.
    Lambda,
    /// The operator refers to another operator by name, to pass it as an operand. It is removed during type inference.
    Named,
}

/// The way in which an operator is evaluated: by its own overloads, by expanding to other operators, or as a structure.
pub enum Meaning {
    /// The operator computes its result, by one of these overloads.
    Overloads(&'static [Overload]),
    /// The operator is replaced by other operators once the types are known. The given function builds this expansion.
    Expand(fn(&mut dyn Expansion, &[NodeHandle]) -> Result<NodeHandle, TypeFault>),
    /// The operator accepts functions or sequences, and is replaced by other operators during type inference. The given
    /// function builds this expansion.
    Instantiate(fn(&mut dyn Instantiation, &[NodeHandle]) -> Result<NodeHandle, ExpansionError>),
    /// The operator is a name for several others. The given function selects one of them by the operands' types.
    Choose(fn(&[&QType]) -> OpId),
    /// The operator builds or takes apart tuples, optionals or functions.
    Structure(Structure),
}

/// The way in which the types of a call of an operator are found, such as a promotion rule.
#[derive(Clone, Copy)]
pub enum Typing {
    /// The arguments are all cast to one type, by this promotion rule. That type selects the overload.
    Promote(Promotion),
    /// The call uses the first overload to whose types all arguments can be implicitly cast.
    Overloads,
    /// The typing function of the operator's kernel on whole arrays finds the types; the operator accepts only arrays.
    OfArrays,
    /// The operator works on whole tensors. Typing refuses its calls here, because a model with tensors is lowered to a
    /// graph of tensors instead.
    OfTensors,
    /// The types of a call follow from its expansion during type inference, for operators on functions and sequences.
    Instantiated,
    /// This function finds the types of a call of the operator.
    Rule(fn(&[Argument<'_>]) -> Result<Signature, TypeFault>),
}

impl Typing {
    /// Returns true if the operator works on whole tensors.
    #[must_use]
    pub const fn is_of_tensors(self) -> bool {
        matches!(self, Typing::OfTensors)
    }
}

/// The way in which an operator treats arrays among its operands: it is applied to each element, or works on whole
/// arrays.
#[derive(Clone, Copy)]
pub enum OverArrays {
    /// The operator is applied to each element of its array operands; an operand that is not an array is the same for
    /// all elements. If the operator expands, its expansion becomes part of the expression for one element.
    Elementwise,
    /// Types are found as for single elements; then the operator's expansion works on whole arrays.
    Expanded,
    /// The operator's own typing rule handles arrays. The operator expands, or builds or takes apart tuples.
    Own,
    /// The operator has a kernel on whole arrays, given here.
    Kernel(&'static ArrayOperator),
}

/// An algebraic law that an operator obeys bit for bit, where all NaNs count as equal. Property tests check it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Law {
    /// The order of the two operands does not matter: `f(x, y) = f(y, x)`.
    Commutative,
    /// Applying the operator twice is the same as once: `f(f(x)) = f(x)`.
    Idempotent,
    /// Applying the operator twice returns the operand: `f(f(x)) = x`.
    Involution,
}

/// An example in an operator's documentation: an expression of the text language and its value.
#[derive(Clone, Copy, Debug)]
pub struct Example {
    /// The expression of the example.
    pub text: &'static str,
    /// The value of the example's expression as text, printed by the `Display` of `Value`, such as `f64?{NA}`.
    pub value: &'static str,
}

/// A function that checks the literals among the arguments of a call. The error describes the problem with a literal.
pub(crate) type LiteralRule = fn(&[Argument<'_>]) -> Result<(), TypeFault>;

/// The record of an operator. Only this crate makes records, because the kernels in the records are trusted.
#[non_exhaustive]
pub struct OpDef {
    /// The canonical name of the operator, such as `math.add`.
    pub name: &'static str,
    /// The short names of the operator in the text language. A name is never removed or given to another operator, with
    /// one exception: two operators may share a name, and then the one that is later in the list of operators is meant
    /// by calls with one operand.
    pub aliases: &'static [&'static str],
    /// The description of the operator in one or two sentences.
    pub summary: &'static str,
    /// The parameters of the operator, with their defaults.
    pub params: &'static [Parameter],
    /// True if the operator's last parameter may be repeated or left out.
    pub variadic: bool,
    /// The way in which the operator treats missing arguments, such as returning a missing result.
    pub presence: PresenceRule,
    /// The faults that the operator can raise; empty if it cannot fail.
    pub faults: &'static [FaultKind],
    /// The way in which the types of a call of the operator are found.
    pub typing: Typing,
    /// The way in which the operator is evaluated, such as by overloads or by an expansion.
    pub meaning: Meaning,
    /// The check of literal arguments that have a syntax of their own, such as formats and regular expressions; `None` if the
    /// operator has no such arguments. The check runs before evaluation, once for each call of the operator in the text whose
    /// types are known, and a problem is an error of the model. If such an argument is not a literal, the operator checks it
    /// for each row.
    pub literals: Option<LiteralRule>,
    /// The laws that the operator obeys, which property tests check.
    pub laws: &'static [Law],
    /// The examples of the operator, which a test runs in both backends.
    pub examples: &'static [Example],
    /// The way in which the operator treats arrays among its operands, such as being applied to each element.
    pub over_arrays: OverArrays,
    /// The way in which the operator can process arrays in strips (blocks of consecutive elements), instead of by its
    /// kernel on whole arrays: as an aggregation or a scan. `None` if it cannot.
    pub in_strips: Option<StripMethod>,
    /// The condition under which the result of the kernel on whole arrays is full (has no missing elements).
    pub full: FullRule,
    /// The derivative of the operator; `None` if it is not known.
    pub derivative: Option<Derivative>,
    /// The operator that replaces this one if an operand is a duration, a timestamp, or an array of these; `None` if no
    /// operator does.
    pub of_durations: Option<OpId>,
    /// The operator that replaces this one if one operand is a date or an array of dates, and another is an `i64` or an array
    /// of `i64`; `None` if no operator does.
    pub of_long_days: Option<OpId>,
    /// The operator that replaces this one if an operand is a struct, an optional struct or a list of structs; `None` if there is none. An operator
    /// that takes tuples itself is replaced only for optional structs and lists of structs.
    pub of_structs: Option<OpId>,
    /// The operator that replaces this one if the last operand is an array of masks; `None` if there is none.
    /// `of_structs` takes precedence if it applies too.
    pub of_masks: Option<OpId>,
    /// The operands that are cast to f64 in a file that declares `numbers f64`. Operators whose arguments share a
    /// promotion rule do not set this field: [`OpDef::integers`] derives it from the rule.
    pub integers: Integers,
    /// True if the operator may occur only in plans that this library makes: texts, builders and rewrites cannot refer
    /// to it by name.
    pub is_of_plans: bool,
}

/// Returns true if a type is a duration or a timestamp, or an optional or an array of these.
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
    /// The overloads of the operator; empty for expansions and for operators that build or take apart structures.
    #[must_use]
    pub fn overloads(&self) -> &'static [Overload] {
        match self.meaning {
            Meaning::Overloads(overloads) => overloads,
            _ => &[],
        }
    }

    /// Returns true if the types of a call depend only on the types of its operands, not on literals.
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

    /// Returns true if another operator may replace this one for operands of these types: see
    /// [`Registry::meant`](crate::Registry::meant).
    #[must_use]
    #[inline]
    pub fn is_replaceable<'t>(&self, types: impl IntoIterator<Item = &'t QType>) -> bool {
        let is_special =
            |qtype| is_of_durations(qtype) || is_of_structs(qtype) || self.of_long_days.is_some() && is_of_dates(qtype);
        matches!(self.meaning, Meaning::Choose(_))
            || [self.of_durations, self.of_structs, self.of_masks].iter().any(Option::is_some)
                && types.into_iter().any(|qtype| is_special(qtype) || is_of_masks(qtype))
    }

    /// The operator that replaces this one for operands of these types: the operator in the field `of_structs`,
    /// `of_masks`, `of_durations` or `of_long_days` that applies first; `None` if none applies.
    pub(crate) fn replacement(&self, types: &[&QType]) -> Option<OpId> {
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

    /// The operands that are cast to f64 in a file that declares `numbers f64`. They follow from the operator's promotion
    /// rule, or else from the field `integers`.
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

    /// Returns true if the operator can raise no fault.
    #[must_use]
    pub fn is_total(&self) -> bool {
        self.faults.is_empty()
    }
}

/// Default fields for the records of strict operators on one number that cannot fail.
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

/// Default fields for the records of operators that handle missing operands themselves; otherwise like `UNARY`.
pub(crate) const CUSTOM: OpDef = OpDef { presence: PresenceRule::Custom, ..UNARY };

/// Default fields for the records of operators that handle missing operands and arrays themselves; otherwise like
/// `UNARY`.
pub(crate) const OWN: OpDef = OpDef { over_arrays: OverArrays::Own, ..CUSTOM };

/// Default fields for the records of strict operators whose calls use the first overload that fits; otherwise like
/// `UNARY`.
pub(crate) const OVERLOADED: OpDef = OpDef { typing: Typing::Overloads, ..UNARY };

/// Default fields for the records of strict operators on two numbers that cannot fail.
pub(crate) const BINARY: OpDef = OpDef { params: &[param("x"), param("y")], ..UNARY };

/// Makes a parameter without a default, for which each call must give an argument.
pub(crate) const fn param(name: &'static str) -> Parameter {
    Parameter::new(name, None)
}

/// Makes a parameter with a default.
pub(crate) const fn param_or(name: &'static str, default: Value) -> Parameter {
    Parameter::new(name, Some(default))
}

/// Makes an example from an expression and its value.
pub(crate) const fn ex(text: &'static str, value: &'static str) -> Example {
    Example { text, value }
}
