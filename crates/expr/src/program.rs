//! A program: a graph with named inputs and outputs. Programs are made from text, by the builder, or from model files. They are untyped: an input
//! without a declared type gets its type from its data source.

use crate::text::{Spelling, write_input_type};
use crate::{Definitions, Graph, ModelTest, NameIndex, Node, NodeId, TileRule, print_type};
use cembra_runtime::QType;
use cembra_value::{Code, Diagnostic, Promise, ScalarValue, Span, Value};
use std::sync::Arc;

/// An input of a program: its name, and the type, promise (a guarantee about values) and default that are declared for it.
#[derive(Clone, Debug)]
pub struct Input {
    /// The input's name, which is also the name of the column or field that it is read from.
    pub name: Arc<str>,
    /// The declared type of the input; `None` if the data source determines it.
    pub qtype: Option<QType>,
    /// The promise about the input's values in addition to their type, for example that no element is missing. An input without a declared type
    /// promises nothing.
    pub promise: Promise,
    /// The value that every use of the input reads where the input is missing; `None` if the input has no default. The input's type must be the
    /// optional type of this scalar, for example `f64?`. Data may leave out an input that has a default.
    pub default: Option<ScalarValue>,
    /// True if the input's default is `[]` or `{}`. Such an input is a list or a dictionary. It is empty where the data leave it out or give `null`
    /// for it.
    pub is_empty_by_default: bool,
    /// The labels of the axes of a tensor input, separated by commas, as in the type `tiled[f64, "i,j"]`. They tell how the axes are cut into
    /// tiles. `None` if the type has no labels.
    pub labels: Option<Arc<str>>,
    /// The span of the input's declaration. For an input without a declaration, the span of its first use.
    pub span: Option<Span>,
}

impl Input {
    /// Returns the input `name` without a declared type.
    #[must_use]
    pub const fn untyped(name: Arc<str>, span: Option<Span>) -> Input {
        Input {
            name,
            qtype: None,
            promise: Promise::Nothing,
            default: None,
            is_empty_by_default: false,
            labels: None,
            span,
        }
    }

    /// Returns the input's declared type and promise (a guarantee about values, such as that no element is missing) as text in the given spelling;
    /// `None` if no type is declared.
    pub(crate) fn spelled_type(&self, spelling: Spelling) -> Option<String> {
        self.qtype.as_ref().map(|qtype| {
            let mut out = String::new();
            write_input_type(&mut out, qtype, self.promise, self.labels.as_deref(), spelling);
            out
        })
    }

    /// Returns the input's declared type and promise (a guarantee about values, such as that no element is missing) as the text language writes them,
    /// for example `[f64]`; `None` if no type is declared.
    #[must_use]
    pub fn declared_type(&self) -> Option<String> {
        self.spelled_type(Spelling::Text)
    }

    /// Returns the input's default as the text language writes it; `None` if the input has no default.
    #[must_use]
    pub fn spelled_default(&self) -> Option<String> {
        crate::text::spelled_default(self.default.as_ref(), self.qtype.as_ref().filter(|_| self.is_empty_by_default))
    }

    /// Checks that the input's default fits its declared type.
    ///
    /// # Errors
    /// If a scalar default is declared, and the input's type is not the optional type of that scalar. If an empty default is declared, and the type
    /// is not a list or a dictionary.
    pub fn check_default(&self) -> Result<(), Diagnostic> {
        if self.is_empty_by_default && self.qtype.as_ref().and_then(Value::empty_collection).is_none() {
            let problem =
                format!("input `{}` has an empty default, so its type must be a list or a dictionary", self.name);
            let hint = "declare the input as `[f64]`, or `dict[text, f64]`";
            return Err(Diagnostic::new(Code::InputType, problem).at(self.span).hint(hint));
        }
        match (&self.default, &self.qtype) {
            (None, _) => Ok(()),
            (Some(default), Some(QType::Optional(scalar))) if default.scalar() == *scalar => Ok(()),
            (Some(default), qtype) => {
                let found = default.scalar();
                let problem = match qtype {
                    Some(qtype) => format!("input `{}` is {qtype}, but its default is {found}", self.name),
                    None => format!("input `{}` has a default, so it must have a type", self.name),
                };
                let hint = format!(
                    "declare the input as `{}?`: only an optional input can have a default",
                    found.short_name()
                );
                Err(Diagnostic::new(Code::InputType, problem).at(self.span).hint(hint))
            }
        }
    }
}

/// An operator that the host application provides, as the text declares it by `extern fn`.
#[derive(Clone, Debug)]
pub struct Extern {
    /// The operator's name, as used in calls.
    pub name: Arc<str>,
    /// The types of the operator's parameters. Each is a scalar or an optional scalar.
    pub parameters: Vec<QType>,
    /// The type of the operator's result, a scalar or an optional scalar.
    pub result: QType,
    /// The span of the operator's declaration. Comparisons of programs ignore it.
    pub span: Option<Span>,
}

impl PartialEq for Extern {
    fn eq(&self, other: &Self) -> bool {
        (&self.name, &self.parameters, &self.result) == (&other.name, &other.parameters, &other.result)
    }
}

impl Extern {
    /// Returns the types of parameters and result as the text language writes them, such as `(text, f64?): f64`.
    #[must_use]
    pub fn spelled_types(&self) -> String {
        let parameters: Vec<String> = self.parameters.iter().map(print_type).collect();
        format!("({}): {}", parameters.join(", "), print_type(&self.result))
    }
}

/// An output of a program: its name, and the node that computes its value.
#[derive(Clone, Debug)]
pub struct Output {
    /// The name of the output.
    pub name: Arc<str>,
    /// The node whose value is the output.
    pub node: NodeId,
    /// The span of the output's name in the text.
    pub span: Option<Span>,
}

/// A model before preparation (type inference and optimisation): an expression graph with its inputs, outputs and tests.
///
/// Two programs are equal if they have the same inputs in the same order (names, types, promises, defaults and labels), the same externs
/// (operators of the host application) and tile rules, and outputs with the same names and expressions. Spans, definitions and nodes that no output
/// needs are ignored.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// The graph of the program's expressions. It may contain nodes that no output needs.
    pub graph: Graph,
    /// The declared inputs in the order of the text, then the undeclared leaves that some output needs, in the order of first use.
    pub inputs: Vec<Input>,
    /// The operators of the host application that the text declares, in the order of the text.
    pub externs: Vec<Extern>,
    /// The rules that cut axes into tiles, in the order of the text.
    pub tiles: Vec<TileRule>,
    /// The outputs in the order of the text. The first one is the main output.
    pub outputs: Vec<Output>,
    /// The tests in the text; empty for a program that was not read from text.
    pub tests: Arc<[ModelTest]>,
    /// The definitions in the text; empty for a program that was not read from text.
    pub definitions: Definitions,
}

/// A program that was read from a text with or without errors: the part that could be parsed, the text's problems, and the index of the names in the
/// text.
#[derive(Clone, Debug)]
pub struct PartialProgram {
    /// The program that the parsed part of the text defines. If there are no problems, this part is the whole text.
    pub program: Program,
    /// The problems of the text, in the order of their places in the text.
    pub problems: Vec<Diagnostic>,
    /// The index of the names in the text.
    pub names: NameIndex,
}

impl Program {
    /// The bytes of heap memory that the program owns, without the text of names and literals.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let (inputs, outputs) = (self.inputs.capacity(), self.outputs.capacity());
        let lists = inputs * size_of::<Input>() + outputs * size_of::<Output>();
        self.graph.memory_bytes() + lists + self.definitions.memory_bytes()
    }

    /// Returns one flag per input, by index: true if the expression of an output needs the input. Preparation may find that a needed input has no
    /// effect.
    #[must_use]
    pub fn needed_inputs(&self) -> Vec<bool> {
        let mut leaves = vec![false; self.graph.name_count()];
        let needed = self.graph.reachable(self.outputs.iter().map(|output| output.node));
        for (index, _) in needed.into_iter().enumerate().filter(|(_, needed)| *needed) {
            if let Node::Leaf(name) = self.graph.node(NodeId::from_index(index)) {
                leaves[name.index()] = true;
            }
        }
        let is_leaf = |input: &Input| self.graph.find_name(&input.name).is_some_and(|name| leaves[name.index()]);
        self.inputs.iter().map(is_leaf).collect()
    }

    /// Appends an input for every undeclared leaf that some output needs. The new inputs are in the order in which the text first uses the leaves.
    pub(crate) fn add_undeclared_inputs(&mut self) {
        let mut declared = vec![false; self.graph.name_count()];
        for input in &self.inputs {
            // Interning finds the existing name: every declared input has its leaf in the graph.
            let name = self.graph.intern(&input.name);
            if let Some(flag) = declared.get_mut(name.index()) {
                *flag = true;
            }
        }
        let undeclared = |id: &NodeId| matches!(self.graph.node(*id), Node::Leaf(name) if !declared[name.index()]);
        let leaves: Vec<NodeId> = (0..self.graph.len()).map(NodeId::from_index).filter(undeclared).collect();
        if leaves.is_empty() {
            return;
        }
        let needed = self.graph.reachable(self.outputs.iter().map(|output| output.node));
        for id in leaves.into_iter().filter(|id| needed[id.index()]) {
            if let Node::Leaf(name) = self.graph.node(id) {
                let name = self.graph.name(name).clone();
                let span = self.graph.span(id);
                self.inputs.push(Input::untyped(name, span));
            }
        }
    }
}

impl PartialEq for Program {
    fn eq(&self, other: &Self) -> bool {
        let same = |a: &Input, b: &Input| {
            (&a.name, &a.qtype, a.promise, &a.default, a.is_empty_by_default, &a.labels)
                == (&b.name, &b.qtype, b.promise, &b.default, b.is_empty_by_default, &b.labels)
        };
        let inputs_equal =
            self.inputs.len() == other.inputs.len() && self.inputs.iter().zip(&other.inputs).all(|(a, b)| same(a, b));
        let names_equal = self.outputs.len() == other.outputs.len()
            && self.outputs.iter().zip(&other.outputs).all(|(a, b)| a.name == b.name);
        if !inputs_equal || !names_equal || self.externs != other.externs || self.tiles != other.tiles {
            return false;
        }
        // In one hash-consed graph, structural equality is equality of ids.
        let mut both = Graph::new();
        let roots = |program: &Program| program.outputs.iter().map(|output| output.node).collect::<Vec<_>>();
        let ours = self.graph.copy_to(&mut both, &roots(self));
        let theirs = other.graph.copy_to(&mut both, &roots(other));
        ours == theirs
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cembra_runtime::{ArrayKind, Scalar};
    use cembra_value::Value;

    fn program(swap: bool, literal: f64) -> Program {
        let mut program = Program::default();
        let g = &mut program.graph;
        let spare = g.leaf(if swap { "spare" } else { "x" }, None);
        let unused = g.operator("math.neg", &[spare], None);
        assert_eq!(unused.index(), 1);
        let x = g.leaf("x", None);
        let k = g.literal(Value::from(literal), None);
        let node = g.operator("math.add", &[x, k], Some(Span::new(3, 4)));
        program.outputs.push(Output { name: "y".into(), node, span: None });
        program.add_undeclared_inputs();
        program
    }

    #[test]
    fn equality_is_of_structure() {
        let (a, b) = (program(false, 1.0), program(true, 1.0));
        assert_ne!(a.outputs[0].node, b.outputs[0].node);
        assert_eq!(a, b);
        assert_ne!(a, program(false, -1.0));
        let mut renamed = b.clone();
        renamed.outputs[0].name = "z".into();
        assert_ne!(a, renamed);
        let mut typed = b;
        typed.inputs[0].qtype = Some(QType::Array(ArrayKind::Dense, Scalar::Float64));
        assert_ne!(a, typed);
        let mut full = typed.clone();
        full.inputs[0].promise = Promise::Full;
        assert_ne!(typed, full);
        let mut with_default = full.clone();
        with_default.inputs[0].default = Some(ScalarValue::Float64(0.0));
        let mut with_another = with_default.clone();
        with_another.inputs[0].default = Some(ScalarValue::Float64(-0.0));
        assert_ne!(full, with_default);
        assert_ne!(with_default, with_another);
    }

    #[test]
    fn only_needed_leaves_become_inputs() {
        let names: Vec<_> = program(true, 1.0).inputs.iter().map(|input| input.name.to_string()).collect();
        assert_eq!(names, ["x"]);
    }
}
