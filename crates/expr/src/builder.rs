//! The builder: makes programs in Rust, with Rust's operators on expressions. It makes the same nodes as the text form.
//!
//! ```
//! use cembra_expr::{Builder, Expr};
//!
//! let b = Builder::new();
//! let (x, y) = (b.leaf("x"), b.leaf("y"));
//! let z = Expr::where_(x.gt(0.0), x * y + 1, -y);
//! b.output("z", z);
//! let program = b.build()?;
//! assert_eq!(program.outputs.len(), 1);
//! # Ok::<(), cembra_value::Error>(())
//! ```
//!
//! A call with a problem does not fail: the problem is recorded, and `build` reports all recorded problems.

use crate::infix::{
    APPLY, FLOORDIV, GET_FIELD, GET_NTH, LAMBDA, MAKE_NAMED, MAKE_TUPLE, MOD, OPERATOR, Operation, WHERE,
};
use crate::text::{is_plain_name, is_word, value_nesting};
use crate::{Graph, Input, NodeId, Output, Program};
use cembra_runtime::{Names, QType};
use cembra_value::{Code, Diagnostic, Diagnostics, Error, Limit, Limits, Promise, ScalarValue, Value};
use rustc_hash::FxHashMap;
use std::cell::RefCell;
use std::fmt;

/// Makes a program from expressions. Rust's operators stand for the language's operators, and Rust's numbers for the language's literals: an `f64`
/// operand is a weak float (a literal that takes on the float type of the other operand), like `1.5` in text. Comparisons and operators without a
/// Rust trait are methods of [`Expr`]. [`Builder::call`] makes any operator from its canonical name.
///
/// ```
/// use cembra_expr::{Builder, print_expression};
/// use cembra_runtime::{QType, Scalar};
///
/// let b = Builder::new();
/// let price = b.typed_leaf("price", QType::Optional(Scalar::Float64));
/// let total = price.or_default(0.0) * 1.2;
/// b.output("total", total);
/// b.output("logarithm", b.call("math.log", &[total]));
/// b.output("dear", total.gt(100) & b.call("core.has", &[price]));
/// let model = b.build()?;
/// let printed = |output: usize| print_expression(&model.graph, model.outputs[output].node);
/// assert_eq!(printed(0), "(price | 0.0) * 1.2");
/// assert_eq!(printed(1), "math.log((price | 0.0) * 1.2)");
/// assert_eq!(printed(2), "((price | 0.0) * 1.2 > 100) & core.has(price)");
/// # Ok::<(), cembra_value::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct Builder {
    state: RefCell<State>,
}

#[derive(Debug, Default)]
struct State {
    program: Program,
    problems: Vec<Diagnostic>,
    limits: Limits,
    /// For each leaf whose type is declared, the index of its input among the program's inputs.
    declared: FxHashMap<NodeId, usize>,
}

impl State {
    fn report(&mut self, problem: Diagnostic) {
        if self.problems.len() < self.limits.problems.max(1) {
            self.problems.push(problem);
        }
    }
}

/// An expression that was made with a [`Builder`].
#[derive(Clone, Copy)]
pub struct Expr<'b> {
    builder: &'b Builder,
    node: NodeId,
}

/// Returns true for a tensor, and for a tuple that contains one. The caller has limited the nesting of tuples.
fn has_tensor(value: &Value) -> bool {
    match value {
        Value::Tensor(_) => true,
        Value::Tuple(fields) => fields.iter().any(has_tensor),
        _ => false,
    }
}

/// Types that can be operands: expressions, and Rust values that become literals.
pub trait IntoExpr<'b> {
    /// Returns `self` as an expression of `builder`; a Rust value becomes a literal.
    fn into_expr(self, builder: &'b Builder) -> Expr<'b>;
}

impl<'b> IntoExpr<'b> for Expr<'b> {
    fn into_expr(self, _: &'b Builder) -> Expr<'b> {
        self
    }
}

/// Converts a `f64` to a weak float, like `1.5` in text.
impl<'b> IntoExpr<'b> for f64 {
    fn into_expr(self, builder: &'b Builder) -> Expr<'b> {
        builder.weak(self)
    }
}

macro_rules! literal_operands {
    ($($ty:ty),*) => { $(
        impl<'b> IntoExpr<'b> for $ty {
            fn into_expr(self, builder: &'b Builder) -> Expr<'b> {
                builder.literal(self)
            }
        }
    )* };
}

literal_operands!(i32, i64, bool, &str, Value);

impl Builder {
    /// Returns a builder with the default limits.
    #[must_use]
    pub fn new() -> Self {
        Builder::default()
    }

    /// Returns a builder with the limits `limits`: on nodes and operands, on the nesting of tuples, and on reported problems. Beyond the limits on
    /// nodes and operands the builder uses no further memory, and `build` reports which limit was exceeded.
    #[must_use]
    pub fn with_limits(limits: Limits) -> Self {
        Builder { state: RefCell::new(State { limits, ..State::default() }) }
    }

    /// Adds a node. If the graph exceeds a limit already, returns node 0 instead, because `build` will fail.
    fn make(&self, make: impl FnOnce(&mut Graph) -> NodeId) -> Expr<'_> {
        let State { program, limits, .. } = &mut *self.state.borrow_mut();
        let graph = &mut program.graph;
        // The graph is not empty then.
        let node = if graph.beyond(limits).is_some() { NodeId::from_index(0) } else { make(graph) };
        Expr { builder: self, node }
    }

    fn report(&self, problem: Diagnostic) {
        self.state.borrow_mut().report(problem);
    }

    /// Returns the input `name` without a declared type. Its data source determines the type.
    pub fn leaf(&self, name: &str) -> Expr<'_> {
        self.make(|graph| graph.leaf(name, None))
    }

    /// Returns the input `name` of the type `qtype`. It is an input of the program even if no expression uses it.
    pub fn typed_leaf(&self, name: &str, qtype: QType) -> Expr<'_> {
        self.promised_leaf(name, qtype, Promise::Nothing)
    }

    /// Returns the input `name` with a type and a promise (a guarantee about its values, for example that no element is missing), like `input x:
    /// [f64]` in text.
    pub fn promised_leaf(&self, name: &str, qtype: QType, promise: Promise) -> Expr<'_> {
        let (leaf, qtype) = (self.leaf(name), qtype.as_input());
        let state = &mut *self.state.borrow_mut();
        if state.program.graph.beyond(&state.limits).is_some() {
            return leaf;
        }
        if let Err(limit) = Limits::admit_type(&qtype, &mut state.limits.type_allowance()) {
            state.report(state.limits.exceeded(limit));
        } else if !qtype.is_declarable() {
            state.report(
                Diagnostic::new(Code::InputType, format!("an input cannot have the type {qtype}"))
                    .hint("declare another type: values of this type exist only inside a model's text"),
            );
        } else if let Err(problem) = promise.admit(name, &qtype) {
            state.report(problem);
        } else if let Some(declared) = state.declared.get(&leaf.node) {
            let input = &state.program.inputs[*declared];
            if (input.qtype.as_ref(), input.promise) != (Some(&qtype), promise) {
                let message = format!("the input `{name}` is declared with two types");
                state.report(Diagnostic::new(Code::Builder, message));
            }
        } else {
            state.declared.insert(leaf.node, state.program.inputs.len());
            let qtype = Some(qtype);
            state.program.inputs.push(Input { qtype, promise, ..Input::untyped(name.into(), None) });
        }
        leaf
    }

    /// Returns the input `name`, which data may leave out, like `input x: f64? = 0` in text. Where the input is missing, `default` is read instead,
    /// so the returned expression is never missing. The input's type is the optional type of the default.
    pub fn leaf_with_default(&self, name: &str, default: impl Into<ScalarValue>) -> Expr<'_> {
        let default = default.into();
        let leaf = self.typed_leaf(name, QType::Optional(default.scalar()));
        let state = &mut *self.state.borrow_mut();
        if let Some(declared) = state.declared.get(&leaf.node)
            && let Some(input) = state.program.inputs.get_mut(*declared)
        {
            if input.default.as_ref().is_some_and(|known| *known != default) {
                let message = format!("the input `{name}` is declared with two defaults");
                state.report(Diagnostic::new(Code::Builder, message));
            } else {
                input.default = Some(default);
            }
        }
        leaf
    }

    /// Returns a literal. A Rust `f64` is a `FLOAT64` here; [`Builder::weak`] makes a weak float, like `1.5` in text.
    pub fn literal(&self, value: impl Into<Value>) -> Expr<'_> {
        let mut value = value.into();
        {
            let state = &mut *self.state.borrow_mut();
            if value_nesting(&value, state.limits.tuple_nesting) > state.limits.tuple_nesting {
                state.report(state.limits.exceeded(Limit::TupleNesting));
                // Adding the value to the graph would hash it, level by level.
                value = Value::Nothing;
            } else if has_tensor(&value) {
                let message = format!("{} has no literals", value.qtype());
                let problem = Diagnostic::new(Code::Builder, message);
                state.report(
                    problem.hint("declare an input of this tensor type, and give its value with each evaluation"),
                );
                value = Value::Nothing;
            }
        }
        self.make(|graph| graph.literal(value, None))
    }

    /// Returns a weak float: a literal that takes on the float type of the other operand.
    pub fn weak(&self, value: f64) -> Expr<'_> {
        self.literal(Value::Scalar(ScalarValue::WeakFloat(value)))
    }

    /// Returns the operator with the canonical name `name`, such as `math.sqrt`, applied to `operands`. `operands` must have an operand for every
    /// parameter, because defaults are not filled in. The operator's existence and operand types are checked when the program is compiled.
    pub fn call<'b>(&'b self, name: &str, operands: &[Expr<'b>]) -> Expr<'b> {
        if !name.split('.').all(is_word) {
            let message = format!("`{}` cannot be the name of an operator", name.escape_debug());
            self.report(Diagnostic::new(Code::Builder, message).hint("names look like `math.sqrt`"));
        }
        let operands: Vec<_> = operands.iter().map(|operand| self.own(*operand)).collect();
        self.make(|graph| graph.operator(name, &operands, None))
    }

    /// Returns the tuple with these fields.
    pub fn tuple<'b>(&'b self, fields: &[Expr<'b>]) -> Expr<'b> {
        self.call(MAKE_TUPLE, fields)
    }

    /// Returns the named tuple with these fields, each a name and a value.
    pub fn named_tuple<'b>(&'b self, fields: &[(&str, Expr<'b>)]) -> Expr<'b> {
        let names = match Names::new(fields.iter().map(|(name, _)| *name)) {
            Ok(names) => names.joined(),
            Err(error) => {
                self.report(Diagnostic::new(Code::Builder, error.to_string()));
                String::new()
            }
        };
        let mut operands = vec![self.literal(Value::text(names))];
        operands.extend(fields.iter().map(|(_, value)| *value));
        self.call(MAKE_NAMED, &operands)
    }

    /// Returns a function as a value, for operators that take one: `fn(x, y) = body`. `body` receives the parameters. The body that it returns may
    /// contain any other expression of this builder. The parameters must not be used outside of that body.
    ///
    /// ```
    /// use cembra_expr::{Builder, print_expression};
    ///
    /// let b = Builder::new();
    /// let k = b.leaf("k");
    /// let scale = b.function(&["x"], |args| args[0] * k);
    /// b.output("y", scale.apply(&[b.leaf("v")]));
    /// let model = b.build()?;
    /// assert_eq!(print_expression(&model.graph, model.outputs[0].node), "core.apply(fn(x) = x * k, v)");
    /// # Ok::<(), cembra_value::Error>(())
    /// ```
    pub fn function<'b>(&'b self, parameters: &[&str], body: impl FnOnce(&[Expr<'b>]) -> Expr<'b>) -> Expr<'b> {
        if let Some(odd) = parameters.iter().find(|name| !is_plain_name(name)) {
            let message = format!("`{}` cannot be the name of a parameter", odd.escape_debug());
            self.report(
                Diagnostic::new(Code::Builder, message)
                    .hint("use a word of letters, digits and `_` that has no other meaning in the language"),
            );
        }
        let parameters: Vec<Expr<'b>> =
            parameters.iter().map(|name| self.make(|graph| graph.fresh_placeholder(name, None))).collect();
        let mut operands = vec![body(&parameters)];
        operands.extend(parameters);
        self.call(LAMBDA, &operands)
    }

    /// Returns an operator as a function value. `name` is its canonical name, such as `math.add`.
    pub fn operator(&self, name: &str) -> Expr<'_> {
        self.call(OPERATOR, &[self.literal(Value::text(name))])
    }

    /// Adds to the program an output with the name `name` and the value `value`. The first output is the main one.
    /// Names must differ, and a program needs at least one output.
    pub fn output<'b>(&'b self, name: &str, value: impl IntoExpr<'b>) {
        let node = self.own(value.into_expr(self));
        let state = &mut *self.state.borrow_mut();
        state.program.outputs.push(Output { name: name.into(), node, span: None });
    }

    /// Returns the node of an expression. An expression of another builder is recorded as a problem.
    fn own(&self, expr: Expr<'_>) -> NodeId {
        if std::ptr::eq(self, expr.builder) {
            return expr.node;
        }
        let problem = Diagnostic::new(Code::Builder, "an operand comes from another builder");
        self.report(problem.hint("use the same builder for all parts of a program"));
        self.make(|graph| graph.literal(Value::Nothing, None)).node
    }

    /// Returns the program with all outputs that were added.
    ///
    /// # Errors
    /// All problems of the calls so far: operands of another builder, an input with two types, an output that is named twice, no output, or an
    /// exceeded limit.
    pub fn build(self) -> Result<Program, Error> {
        let mut state = self.state.into_inner();
        let mut names = std::collections::HashSet::new();
        for index in 0..state.program.outputs.len() {
            let name = state.program.outputs[index].name.clone();
            if !names.insert(name.clone()) {
                state.report(Diagnostic::new(Code::Name, format!("the output `{name}` is defined twice")));
            }
        }
        if names.is_empty() {
            state.report(Diagnostic::new(Code::NoOutput, "the model has no output").hint("call `output`"));
        }
        if let Some(limit) = state.program.graph.beyond(&state.limits) {
            state.report(state.limits.exceeded(limit));
        }
        Diagnostics::check(state.problems)?;
        state.program.add_undeclared_inputs();
        Ok(state.program)
    }
}

impl<'b> Expr<'b> {
    fn binary(self, operator: &str, right: impl IntoExpr<'b>) -> Expr<'b> {
        let right = self.builder.own(right.into_expr(self.builder));
        self.builder.make(|graph| graph.operator(operator, &[self.node, right], None))
    }

    fn prefix(self, operation: Operation) -> Expr<'b> {
        self.builder.make(|graph| graph.operator(operation.name(), &[self.node], None))
    }

    /// Returns `if condition then value else other`. Only the branch that is needed is evaluated.
    #[must_use]
    pub fn where_(condition: Expr<'b>, value: impl IntoExpr<'b>, other: impl IntoExpr<'b>) -> Expr<'b> {
        let builder = condition.builder;
        builder.call(WHERE, &[condition, value.into_expr(builder), other.into_expr(builder)])
    }

    /// Returns the tuple's field at `position`, counted from 0.
    #[must_use]
    pub fn field(self, position: u32) -> Expr<'b> {
        self.builder.call(GET_NTH, &[self, self.builder.literal(i64::from(position))])
    }

    /// Returns the named tuple's field `name`.
    #[must_use]
    pub fn named_field(self, name: &str) -> Expr<'b> {
        self.builder.call(GET_FIELD, &[self, self.builder.literal(Value::text(name))])
    }

    /// Returns the call of this expression, which must be a function value, with `arguments`.
    #[must_use]
    pub fn apply(self, arguments: &[Expr<'b>]) -> Expr<'b> {
        let mut operands = vec![self];
        operands.extend_from_slice(arguments);
        self.builder.call(APPLY, &operands)
    }
}

macro_rules! methods {
    ($($(#[$doc:meta])* $method:ident $operator:expr;)*) => {
        impl<'b> Expr<'b> { $(
            $(#[$doc])*
            #[must_use]
            pub fn $method(self, right: impl IntoExpr<'b>) -> Expr<'b> {
                self.binary($operator, right)
            }
        )* }
    };
}

methods! {
    /// Makes the comparison `self < right`.
    lt Operation::Less.name();
    /// Makes the comparison `self <= right`.
    le Operation::LessEqual.name();
    /// Makes the comparison `self > right`.
    gt Operation::Greater.name();
    /// Makes the comparison `self >= right`.
    ge Operation::GreaterEqual.name();
    /// Makes the comparison `self == right`.
    eq_ Operation::Equal.name();
    /// Makes the comparison `self != right`.
    ne_ Operation::NotEqual.name();
    /// Makes `self and right`. On masks, the result is present where both operands are; on booleans, it is computed by three-valued logic.
    and Operation::And.name();
    /// Makes `self or right`. On masks, the result is present where at least one operand is; on booleans, it is computed by three-valued logic.
    or Operation::Or.name();
    /// Makes `self // right`, the floor of the exact quotient.
    floor_divide Operation::FloorDivide.name();
    /// Makes `self % right`, the remainder of the division `//`.
    remainder Operation::Modulo.name();
    /// Makes `floordiv(self, right)`, Arolla's floor division: the quotient is rounded to a float before its floor is taken.
    floordiv FLOORDIV;
    /// Makes the power `self ** right`.
    pow Operation::Power.name();
    /// Makes `self ?? right`: `self` where it is present, `right` elsewhere.
    or_default Operation::Default.name();
}

macro_rules! operators {
    ($($(#[$doc:meta])* $trait:ident $method:ident $operator:expr;)*) => { $(
        $(#[$doc])*
        impl<'b, R: IntoExpr<'b>> std::ops::$trait<R> for Expr<'b> {
            type Output = Expr<'b>;
            fn $method(self, right: R) -> Expr<'b> {
                self.binary($operator, right)
            }
        }
        impl<'b> std::ops::$trait<Expr<'b>> for f64 {
            type Output = Expr<'b>;
            fn $method(self, right: Expr<'b>) -> Expr<'b> {
                self.into_expr(right.builder).binary($operator, right)
            }
        }
        impl<'b> std::ops::$trait<Expr<'b>> for i32 {
            type Output = Expr<'b>;
            fn $method(self, right: Expr<'b>) -> Expr<'b> {
                self.into_expr(right.builder).binary($operator, right)
            }
        }
    )* };
}

operators! {
    Add add Operation::Add.name();
    Sub sub Operation::Subtract.name();
    Mul mul Operation::Multiply.name();
    Div div Operation::Divide.name();
    /// Rust's `left % right` makes `mod(left, right)`, as in Arolla. The text language's `%` is [`remainder`](Expr::remainder).
    Rem rem MOD;
    /// Rust's `left & right` makes the presence operator `&`: `left` where `right` is present.
    BitAnd bitand Operation::PresenceAnd.name();
    /// Rust's `left | right` makes the presence operator `|`: `right` where `left` is missing.
    BitOr bitor Operation::PresenceOr.name();
}

impl<'b> std::ops::Neg for Expr<'b> {
    type Output = Expr<'b>;
    fn neg(self) -> Expr<'b> {
        self.prefix(Operation::Negate)
    }
}

/// Rust's `!operand` makes `not operand`.
impl<'b> std::ops::Not for Expr<'b> {
    type Output = Expr<'b>;
    fn not(self) -> Expr<'b> {
        self.prefix(Operation::Not)
    }
}

impl fmt::Debug for Expr<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Expr").field(&self.node).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cembra_runtime::{ArrayKind, Scalar};

    #[test]
    fn operands_of_another_builder_are_reported_by_build() {
        let (a, b) = (Builder::new(), Builder::new());
        a.output("y", a.leaf("x") + b.leaf("x"));
        let problem = a.build().unwrap_err();
        assert_eq!(problem.diagnostics().len(), 1);
        assert_eq!(problem.diagnostics()[0].code(), Code::Builder);
        assert_eq!(problem.diagnostics()[0].message(), "an operand comes from another builder");
    }

    #[test]
    fn build_reports_everything_at_once() {
        let b = Builder::with_limits(Limits::default().tuple_nesting(1).nodes(4));
        let x = b.typed_leaf("x", QType::FLOAT32);
        let _twice = b.typed_leaf("x", QType::FLOAT64);
        let _same = b.typed_leaf("x", QType::FLOAT32);
        let _meta = b.typed_leaf("m", QType::tuple([QType::Meta]));
        let _deep = b.typed_leaf("d", QType::tuple([QType::tuple([])]));
        let inner = Value::Tuple([].into());
        let _literal = b.literal(Value::Tuple([inner].into()));
        b.output("y", b.call("no such", &[x]));
        let _odd = b.function(&["two words"], |args| args[0]);
        let _twice = b.named_tuple(&[("a", x), ("a", x)]);
        b.output("y", x);
        let problems = b.build().unwrap_err();
        let codes: Vec<_> = problems.diagnostics().iter().map(Diagnostic::code).collect();
        assert_eq!(
            codes,
            [
                Code::Builder,
                Code::InputType,
                Code::Limit,
                Code::Limit,
                Code::Builder,
                Code::Builder,
                Code::Builder,
                Code::Name,
                Code::Limit
            ]
        );
    }

    #[test]
    fn a_program_needs_an_output() {
        assert_eq!(Builder::new().build().unwrap_err().diagnostics()[0].code(), Code::NoOutput);
    }

    #[test]
    fn leaves_promise_what_their_types_can_keep() {
        let b = Builder::new();
        let array = QType::Array(ArrayKind::Dense, Scalar::Float64);
        let x = b.promised_leaf("x", array.clone(), Promise::Full);
        b.promised_leaf("x", array.clone(), Promise::Full);
        b.output("y", x);
        let program = b.build().unwrap();
        assert_eq!((program.inputs.len(), program.inputs[0].promise), (1, Promise::Full));
        let b = Builder::new();
        let x = b.promised_leaf("x", array.clone(), Promise::Full);
        b.typed_leaf("x", array.clone());
        b.promised_leaf("z", QType::FLOAT64, Promise::Full);
        b.promised_leaf("e", array, Promise::Splits);
        b.output("y", x);
        let problems = b.build().unwrap_err();
        let codes: Vec<_> = problems.diagnostics().iter().map(Diagnostic::code).collect();
        assert_eq!(codes, [Code::Builder, Code::InputType, Code::InputType]);
    }

    #[test]
    fn tensors_are_no_literals() {
        let tensor = || Value::from(cembra_value::Tensor::scalar(1.0).broadcast_to(&[1 << 20, 1 << 20]).unwrap());
        for value in [tensor(), Value::Tuple([Value::from(1), tensor()].into())] {
            let b = Builder::new();
            b.output("y", b.literal(value.clone()));
            let problem = b.build().unwrap_err();
            assert_eq!(problem.diagnostics()[0].code(), Code::Builder);
            assert_eq!(problem.diagnostics()[0].message(), format!("{} has no literals", value.qtype()));
        }
        // The parser rejects text that was printed for people.
        let printed = crate::print_value(&tensor());
        assert!(printed.starts_with("tensor[f64, 2]{[1048576, 1048576]: 1, 1,") && printed.len() < 120, "{printed}");
        let problem = crate::parse_value(&printed).unwrap_err();
        assert_eq!(problem.diagnostics()[0].message(), "expected a literal, found `tensor`");
        assert!(crate::parse_value("tensor[f64, 0]{[]: 1}").is_err());
    }

    #[test]
    fn typed_leaves_come_first() {
        let b = Builder::new();
        let (x, unused) = (b.leaf("x"), b.leaf("unused"));
        let t = b.typed_leaf("t", QType::TEXT);
        b.output("y", b.tuple(&[x, b.leaf("z"), t]).field(2));
        assert_eq!(format!("{unused:?}"), "Expr(NodeId(1))");
        let program = b.build().unwrap();
        let names: Vec<_> = program.inputs.iter().map(|input| (&*input.name, input.qtype.clone())).collect();
        assert_eq!(names, [("t", Some(QType::TEXT)), ("x", None), ("z", None)]);
    }
}
