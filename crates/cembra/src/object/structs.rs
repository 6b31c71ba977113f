//! The input and output structs that a C or Rust program shares with the machine code of a model that is compiled ahead
//! of time. This module computes field names that are valid in C and Rust, and the offsets that both compilers use;
//! `header` and `rust` print them.

use cembra_plan::{Base, Binding, Plan, ValueId, ValueLocation};
use cembra_runtime::{Fields, Layout, QType, Scalar};
use std::collections::HashMap;
use std::sync::Arc;

/// The structs through which programs call a model that is compiled ahead of time.
#[derive(Clone, Debug)]
pub(crate) struct Interface {
    /// The model's name in C and Rust programs. In C it begins the names of the model's types and functions, as in `NAME_evaluate`.
    pub(crate) name: String,
    /// The structs for tuple types. Each struct comes after the structs that it contains.
    pub(crate) tuples: Vec<Struct>,
    /// The struct of the model's inputs.
    pub(crate) input: Struct,
    /// The struct of the model's outputs.
    pub(crate) output: Struct,
}

/// A struct with C's layout, for programs that call a model.
#[derive(Clone, Debug)]
pub(crate) struct Struct {
    /// The struct's base name, from which the writer for each language makes the full name.
    pub(crate) name: String,
    pub(crate) fields: Vec<StructField>,
    pub(crate) size: u32,
    /// True if a field of the struct is, or contains, a text or bytes.
    pub(crate) has_views: bool,
}

/// A field of a struct through which programs call a model.
#[derive(Clone, Debug)]
pub(crate) struct StructField {
    /// The field's name in the model.
    pub(crate) original: Arc<str>,
    /// The field's name in C and in Rust.
    pub(crate) name: String,
    pub(crate) ty: FieldType,
    pub(crate) offset: u32,
}

/// The type of a field in a struct through which programs call a model.
#[derive(Clone, Debug)]
pub(crate) enum FieldType {
    /// The field is a scalar or an optional.
    Simple(QType),
    /// The field is a tuple, whose struct has this index in [`Interface::tuples`].
    Tuple(usize),
}

impl Interface {
    /// Returns the structs for the model `name` with the plan `plan`, and the binding that gives machine code the offsets of their fields.
    pub(crate) fn of(name: &str, plan: &Plan) -> (Interface, Binding) {
        let mut tuples = Tuples::default();
        let inputs = plan.inputs().iter().map(|input| (input.name.clone(), input.value));
        let outputs = plan.outputs().iter().map(|output| (output.name.clone(), output.value));
        let (input, input_places) = tuples.side("input", Base::Input, plan, inputs);
        let (output, output_places) = tuples.side("output", Base::Output, plan, outputs);
        let interface = Interface { name: name.to_owned(), tuples: tuples.made, input, output };
        (interface, Binding { inputs: input_places, outputs: output_places })
    }

    /// Returns all structs of the interface. Each struct comes after the structs that it contains.
    pub(crate) fn structs(&self) -> impl Iterator<Item = &Struct> {
        self.tuples.iter().chain([&self.input, &self.output])
    }
}

/// The structs for the tuple types that were found so far.
#[derive(Default)]
struct Tuples {
    made: Vec<Struct>,
    known: HashMap<Fields<QType>, usize>,
}

impl Tuples {
    fn side(
        &mut self,
        name: &str,
        base: Base,
        plan: &Plan,
        values: impl Iterator<Item = (Arc<str>, ValueId)>,
    ) -> (Struct, Vec<ValueLocation>) {
        let fields: Vec<(Arc<str>, &QType)> = values.map(|(name, value)| (name, &plan.value(value).qtype)).collect();
        let (made, offsets) = self.lay_out(name.to_owned(), &fields);
        (made, offsets.into_iter().map(|offset| ValueLocation { base, offset }).collect())
    }

    /// Returns a struct with the given fields, laid out as C does, and the offset of each field. The struct leaves out
    /// fields of size 0, because C has no such fields.
    fn lay_out(&mut self, name: String, fields: &[(Arc<str>, &QType)]) -> (Struct, Vec<u32>) {
        let mut taken = UsedNames::default();
        let mut whole = Layout { size: 0, align: 1 };
        let mut made = Struct { name, fields: Vec::with_capacity(fields.len()), size: 0, has_views: false };
        let mut offsets = Vec::with_capacity(fields.len());
        for (original, qtype) in fields {
            let part = qtype.layout();
            let offset = part.align_up(whole.size);
            offsets.push(offset);
            if part.size == 0 {
                continue;
            }
            whole = Layout { size: offset + part.size, align: whole.align.max(part.align) };
            let name = taken.identifier(original);
            let ty = self.field_type(qtype);
            made.has_views |= match &ty {
                FieldType::Simple(qtype) => qtype.scalar().is_some_and(Scalar::is_string),
                FieldType::Tuple(at) => self.made[*at].has_views,
            };
            made.fields.push(StructField { original: original.clone(), name, ty, offset });
        }
        made.size = whole.align_up(whole.size);
        (made, offsets)
    }

    fn field_type(&mut self, qtype: &QType) -> FieldType {
        let QType::Tuple(fields) = qtype else { return FieldType::Simple(qtype.clone()) };
        if let Some(known) = self.known.get(fields) {
            return FieldType::Tuple(*known);
        }
        // Tuples nest only as deep as the text that spelled their type.
        let names = (0..).map(|at| match fields.names().and_then(|names| names.get(at)) {
            Some(name) => name.to_string().into(),
            None => Arc::from(format!("f{at}")),
        });
        let parts: Vec<(Arc<str>, &QType)> = names.zip(fields.iter()).collect();
        let (mut made, _) = self.lay_out(String::new(), &parts);
        let at = self.made.len();
        made.name = format!("tuple{at}");
        self.made.push(made);
        self.known.insert(fields.clone(), at);
        FieldType::Tuple(at)
    }
}

/// Returns true if `name` is a valid identifier in both C and Rust.
pub(crate) fn is_identifier(name: &str) -> bool {
    let plain = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    plain && name.starts_with(|c: char| c.is_ascii_alphabetic()) && !RESERVED.contains(&name)
}

/// The names that fields of a struct have so far. Each name has a number: the suffix to try next if another field wants
/// the same name.
#[derive(Default)]
struct UsedNames(HashMap<String, u64>);

impl UsedNames {
    /// Returns a unique name close to `name` that is valid in C and Rust. The second field of a name gets the suffix `_`, later ones `_3`, `_4` and
    /// so on.
    fn identifier(&mut self, name: &str) -> String {
        let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
        let mut wanted: String = name.chars().map(plain).collect();
        if !wanted.starts_with(|c: char| c.is_ascii_alphabetic()) {
            wanted.insert_str(0, "x_");
        }
        if RESERVED.contains(&wanted.as_str()) {
            wanted.push('_');
        }
        let mut made = wanted.clone();
        // A rejected name belongs to another field, and each number after a name is tried once. So all fields together try only a few times as many
        // names as there are fields.
        while self.0.contains_key(&made) {
            let number = self.0.entry(wanted.clone()).or_insert(2);
            made = if *number == 2 { format!("{wanted}_") } else { format!("{wanted}_{number}") };
            *number += 1;
        }
        self.0.insert(made.clone(), 2);
        made
    }
}

/// Reserved words of C, C++ and Rust that consist of letters and digits, and names that headers define.
const RESERVED: &[&str] = &[
    "abstract",
    "alignas",
    "alignof",
    "and",
    "as",
    "asm",
    "async",
    "auto",
    "await",
    "become",
    "bitand",
    "bitor",
    "bool",
    "box",
    "break",
    "case",
    "catch",
    "char",
    "class",
    "compl",
    "concept",
    "const",
    "consteval",
    "constexpr",
    "constinit",
    "continue",
    "crate",
    "decltype",
    "default",
    "delete",
    "do",
    "double",
    "dyn",
    "else",
    "enum",
    "explicit",
    "export",
    "extern",
    "false",
    "final",
    "float",
    "fn",
    "for",
    "friend",
    "gen",
    "goto",
    "if",
    "impl",
    "in",
    "inline",
    "int",
    "let",
    "long",
    "loop",
    "macro",
    "match",
    "mod",
    "move",
    "mut",
    "mutable",
    "namespace",
    "new",
    "noexcept",
    "not",
    "nullptr",
    "operator",
    "or",
    "override",
    "priv",
    "private",
    "protected",
    "pub",
    "public",
    "ref",
    "register",
    "requires",
    "restrict",
    "return",
    "self",
    "short",
    "signed",
    "sizeof",
    "static",
    "struct",
    "super",
    "switch",
    "template",
    "this",
    "throw",
    "trait",
    "true",
    "try",
    "type",
    "typedef",
    "typeid",
    "typename",
    "typeof",
    "union",
    "unsafe",
    "unsigned",
    "unsized",
    "use",
    "using",
    "virtual",
    "void",
    "volatile",
    "where",
    "while",
    "xor",
    "yield",
    "Self",
    "NULL",
    "CEMBRA",
    "linux",
    "unix",
    "main",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_good_in_both_languages_and_stay_apart() {
        let mut taken = UsedNames::default();
        let mut made = |name: &str| taken.identifier(name);
        assert_eq!(made("x"), "x");
        assert_eq!(made("a.b"), "a_b");
        assert_eq!(made("a b"), "a_b_");
        assert_eq!(made("1st"), "x_1st");
        assert_eq!(made("größe"), "gr__e");
        assert_eq!(made("fn"), "fn_");
        assert_eq!(made("_"), "x__");
        assert_eq!(made("a+b"), "a_b_3");
        assert_eq!(made("a_b_3"), "a_b_3_");
        assert_eq!(made("a-b"), "a_b_4");
        assert_eq!(made("fn_"), "fn__");
        // 100,000 fields whose names differ only in characters that C does not allow.
        let many: std::collections::HashSet<String> = (0..100_000).map(|n| made(&"+-*/%".repeat(n % 7))).collect();
        assert_eq!(many.len(), 100_000);
        assert!(is_identifier("score_2") && !is_identifier("2nd") && !is_identifier("int") && !is_identifier(""));
    }
}
