//! A program: a graph with named inputs and outputs. It is what text, builder and wire format all produce, and is
//! still untyped: an input without a type gets one from its data source.

use crate::text::{Spelling, write_input_type};
use crate::{Definitions, Graph, ModelTest, NameIndex, Node, NodeId, TileRule, print_type};
use cembra_runtime::QType;
use cembra_value::{Code, Diagnostic, Promise, ScalarValue, Span, Value};
use std::sync::Arc;

/// An input of a program.
#[derive(Clone, Debug)]
pub struct Input {
    /// The name of the leaf, and of the column or field it is read from.
    pub name: Arc<str>,
    /// The declared type; without one the data source decides.
    pub qtype: Option<QType>,
    /// What it promises of its values beyond the type; one without a type promises nothing.
    pub promise: Promise,
    /// What every use reads where the input is missing: of the scalar of its type, which is an optional one. The data may leave
    /// such an input out.
    pub default: Option<ScalarValue>,
    /// True if the default is `[]` or `{}`: the input is a list or a dictionary, and is read as the empty one where the data leave it out or have
    /// `null`.
    pub is_empty_by_default: bool,
    /// The labels of a tensor's axes with commas between them, if they say how it is cut into tiles: those of `tiled[f64, "i,j"]`.
    pub labels: Option<Arc<str>>,
    /// Where it was declared, or else first used.
    pub span: Option<Span>,
}

impl Input {
    /// An input without a type.
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

    /// The declared type with what the input promises.
    pub(crate) fn spelled_type(&self, spelling: Spelling) -> Option<String> {
        self.qtype.as_ref().map(|qtype| {
            let mut out = String::new();
            write_input_type(&mut out, qtype, self.promise, self.labels.as_deref(), spelling);
            out
        })
    }

    /// The declared type as the text language writes it, with what the input promises; none if none is declared.
    #[must_use]
    pub fn declared_type(&self) -> Option<String> {
        self.spelled_type(Spelling::Text)
    }

    /// The default as the text language writes it; `None` if the input has no default.
    #[must_use]
    pub fn spelled_default(&self) -> Option<String> {
        crate::text::spelled_default(self.default.as_ref(), self.qtype.as_ref().filter(|_| self.is_empty_by_default))
    }

    /// Looks whether the default is one of the declared type.
    ///
    /// # Errors
    /// The type is not optional, or the optional of another scalar; or the default is empty, and the type is not one of lists or dictionaries.
    pub fn check_default(&self) -> Result<(), Diagnostic> {
        if self.is_empty_by_default && self.qtype.as_ref().and_then(Value::empty_collection).is_none() {
            let problem = format!(
                "the default of input `{}` is empty, and its type is not one of lists or dictionaries",
                self.name
            );
            let hint = "declare it as `[f64]`, or `dict[text, f64]`";
            return Err(Diagnostic::new(Code::InputType, problem).at(self.span).hint(hint));
        }
        match (&self.default, &self.qtype) {
            (None, _) => Ok(()),
            (Some(default), Some(QType::Optional(scalar))) if default.scalar() == *scalar => Ok(()),
            (Some(default), qtype) => {
                let found = default.scalar();
                let problem = match qtype {
                    Some(qtype) => format!("input `{}` is {qtype}, and its default of type {found}", self.name),
                    None => format!("input `{}` has a default and no type", self.name),
                };
                let hint = format!("only what may be missing has a default: declare it as `{}?`", found.short_name());
                Err(Diagnostic::new(Code::InputType, problem).at(self.span).hint(hint))
            }
        }
    }
}

/// An operator that the host provides, as the text declares it.
#[derive(Clone, Debug)]
pub struct Extern {
    /// Its name, as in calls.
    pub name: Arc<str>,
    /// The types of its parameters, each a scalar or an optional one.
    pub parameters: Vec<QType>,
    /// The type of its result, likewise.
    pub result: QType,
    /// Where it is declared; it does not count when two are compared.
    pub span: Option<Span>,
}

impl PartialEq for Extern {
    fn eq(&self, other: &Self) -> bool {
        (&self.name, &self.parameters, &self.result) == (&other.name, &other.parameters, &other.result)
    }
}

impl Extern {
    /// The types as the text language writes them: `(text, f64?): f64`.
    #[must_use]
    pub fn spelled_types(&self) -> String {
        let parameters: Vec<String> = self.parameters.iter().map(print_type).collect();
        format!("({}): {}", parameters.join(", "), print_type(&self.result))
    }
}

/// An output of a program.
#[derive(Clone, Debug)]
pub struct Output {
    /// The name of the result.
    pub name: Arc<str>,
    /// What it is.
    pub node: NodeId,
    /// Where it was named.
    pub span: Option<Span>,
}

/// A model before preparation.
///
/// Two programs are equal if their inputs have the same names, types, promises, defaults and labels in the same order, their externs
/// and cuts are the same, and their outputs have the
/// same names and structurally the same expressions; spans, definitions and nodes that no output needs do not count.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// The expressions; may hold nodes that no output needs.
    pub graph: Graph,
    /// The declared inputs in the order declared, then the leaves that some output needs in the order of first use.
    pub inputs: Vec<Input>,
    /// The operators of the host that are declared, in the order of the text.
    pub externs: Vec<Extern>,
    /// How the axes of labels are cut into tiles, in the order of the text.
    pub tiles: Vec<TileRule>,
    /// The outputs in the order written; the first is the main one.
    pub outputs: Vec<Output>,
    /// The tests of the text that the program was read from; nothing of others.
    pub tests: Arc<[ModelTest]>,
    /// What the text that the program was read from defines; nothing of others.
    pub definitions: Definitions,
}

/// What could be read of a text, with where its names are.
#[derive(Clone, Debug)]
pub struct PartialProgram {
    /// The program; all of it if there are no problems.
    pub program: Program,
    /// What is wrong with the text, in its order.
    pub problems: Vec<Diagnostic>,
    /// The names.
    pub names: NameIndex,
}

impl Program {
    /// Bytes of memory the program holds, besides itself; names' and literals' texts apart.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let (inputs, outputs) = (self.inputs.capacity(), self.outputs.capacity());
        let lists = inputs * size_of::<Input>() + outputs * size_of::<Output>();
        self.graph.memory_bytes() + lists + self.definitions.memory_bytes()
    }

    /// Which inputs some output needs, by position, as far as the expressions say; preparation may find that one of them
    /// is of no effect.
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

    /// Adds the leaves that some output needs and nobody declared to the inputs, in the order of first use.
    pub(crate) fn add_undeclared_inputs(&mut self) {
        let mut declared = vec![false; self.graph.name_count()];
        for input in &self.inputs {
            // Interning finds the name: every declared input has its leaf in the graph.
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
