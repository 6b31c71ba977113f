//! Generates the header of a model for C and C++ programs: its structs with assertions of their layout, and its typed functions.

use super::structs::{FieldType, Interface, Struct};
use cembra_runtime::{MachineType, QType, Scalar};
use std::fmt::Write as _;

/// Returns the text of the C header that declares a model.
pub(crate) fn write(interface: &Interface) -> String {
    let name = &interface.name;
    let guard = name.to_ascii_uppercase();
    let mut text = format!(
        "/* The model `{name}`, compiled ahead of time by cembra {version}. Made by a program: changes are lost. */\n\
         #ifndef CEMBRA_MODEL_{guard}_H\n#define CEMBRA_MODEL_{guard}_H\n\n#include \"cembra.h\"\n\n\
         #ifdef __cplusplus\nextern \"C\" {{\n#endif\n",
        version = env!("CARGO_PKG_VERSION"),
    );
    for one in interface.structs() {
        write_struct(&mut text, interface, one);
    }
    let _ = write!(
        text,
        "\n/* Runs the model on one thread at a time. */\n\
         typedef struct {name}_evaluator {name}_evaluator;\n\n\
         extern const cembra_model {name}_model;\n\n\
         /* Makes an evaluator; returns a status, and null in `evaluator` if it is not CEMBRA_OK. */\n\
         static inline int32_t {name}_new({name}_evaluator **evaluator) {{\n    \
             return cembra_evaluator_new(&{name}_model, (cembra_evaluator **)evaluator);\n\
         }}\n\n\
         /* The same evaluator for the functions of cembra.h: faults, limits, cancellation. */\n\
         static inline cembra_evaluator *{name}_base({name}_evaluator *evaluator) {{\n    \
             return (cembra_evaluator *)evaluator;\n\
         }}\n\n\
         /* Frees an evaluator; nothing happens for null. */\n\
         static inline void {name}_free({name}_evaluator *evaluator) {{\n    \
             cembra_evaluator_free({name}_base(evaluator));\n\
         }}\n\n\
         /* Evaluates the model; returns CEMBRA_OK, or CEMBRA_FAULT with `output` as it was. Texts in `output` are views of\n \
            * texts in `input` or of the model. */\n\
         static inline int32_t {name}_evaluate({name}_evaluator *evaluator, const {name}_input *input,\n\
         {indent}{name}_output *output) {{\n    \
             return cembra_evaluate({name}_base(evaluator), input, output);\n\
         }}\n\n\
         #ifdef __cplusplus\n}}\n#endif\n\n#endif\n",
        indent = " ".repeat("static inline int32_t _evaluate(".len() + name.len()),
    );
    text
}

fn write_struct(text: &mut String, interface: &Interface, one: &Struct) {
    let whole = format!("{}_{}", interface.name, one.name);
    text.push_str("\ntypedef struct {\n");
    for field in &one.fields {
        let renamed = if *field.original == *field.name { String::new() } else { comment(&field.original) };
        let _ = writeln!(text, "    {} {};{renamed}", type_name(interface, &field.ty), field.name);
    }
    if one.fields.is_empty() {
        text.push_str("    char unused; /* C has no empty structs. */\n");
    }
    let _ = writeln!(text, "}} {whole};");
    for field in &one.fields {
        let name = &field.name;
        let _ = writeln!(text, "CEMBRA_ASSERT(offsetof({whole}, {name}) == {}, \"unexpected layout\");", field.offset);
    }
    if !one.fields.is_empty() {
        let _ = writeln!(text, "CEMBRA_ASSERT(sizeof({whole}) == {}, \"unexpected layout\");", one.size);
    }
}

/// Returns a C comment that states a field's name in the model. Characters that could end the comment are replaced by
/// `?`.
fn comment(original: &str) -> String {
    let harmless = |c: char| if c.is_control() || c == '*' || c == '\\' { '?' } else { c };
    format!(" /* `{}` in the model */", original.chars().map(harmless).collect::<String>())
}

fn type_name(interface: &Interface, ty: &FieldType) -> String {
    match ty {
        FieldType::Tuple(at) => format!("{}_{}", interface.name, interface.tuples[*at].name),
        FieldType::Simple(qtype) => simple_name(qtype),
    }
}

fn simple_name(qtype: &QType) -> String {
    let scalar = qtype.scalar().unwrap_or(Scalar::Unit).representation();
    if qtype.is_optional() {
        return match scalar {
            Scalar::Unit => "cembra_mask".to_owned(),
            scalar => format!("cembra_optional_{}", scalar.short_name()),
        };
    }
    let fixed = match scalar.machine_type() {
        Some(MachineType::Flag) => "bool",
        Some(MachineType::I32) => "int32_t",
        Some(MachineType::I64) if scalar.is_integer() => "int64_t",
        Some(MachineType::I64) => "uint64_t",
        Some(MachineType::F32) => "float",
        Some(MachineType::F64) => "double",
        None => return format!("cembra_{}", scalar.short_name()),
    };
    fixed.to_owned()
}
