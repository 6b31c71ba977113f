//! Generates the module of a model for Rust programs: its structs with assertions of their layout, and the type that declares the model to the
//! runtime's evaluator. The module has no evaluator of its own, because `include!` would expose its private parts to the including module.

use super::structs::{FieldType, Interface, Struct};
use cembra_runtime::{QType, Scalar};
use std::fmt::Write as _;

/// The attribute that silences the compiler's warnings about unused structs of the generated module.
const UNUSED: &str = concat!("#[", "allow(dead_code, reason = \"a program may use only some of the structs\")]");

/// Returns the text of the Rust module that declares a model.
pub(crate) fn write(interface: &Interface) -> String {
    let name = &interface.name;
    let mut text = format!(
        "// The model `{name}`, compiled ahead of time by cembra {version}. Made by a program: changes are lost.\n",
        version = env!("CARGO_PKG_VERSION"),
    );
    for one in interface.structs() {
        write_struct(&mut text, interface, one);
    }
    let (input, output) = (path(&interface.input), path(&interface.output));
    let input_lives = if interface.input.has_views { "<'t>" } else { "" };
    let output_lives = if interface.output.has_views { "<'t>" } else { "" };
    let _ = write!(
        text,
        r#"
/// The model, to tell its evaluator from those of others.
#[derive(Clone, Copy, Debug)]
pub enum Object {{}}

// SAFETY: OBJECT-MODEL: the object file that was made together with this module defines the symbol, with this type, for a model
// of these structs.
unsafe impl cembra_runtime::ObjectFileModel for Object {{
    type Input<'t> = {input}{input_lives};
    type Output<'t> = {output}{output_lives};

    fn object() -> &'static cembra_runtime::ObjectModel {{
        // SAFETY: OBJECT-MODEL, as above.
        unsafe extern "C" {{
            #[link_name = "{name}_model"]
            static MODEL: cembra_runtime::ObjectModel;
        }}
        // SAFETY: OBJECT-MODEL: it is read-only.
        unsafe {{ &MODEL }}
    }}
}}

/// Runs the model, on one thread at a time. After a fault it can be used again.
pub type Model = cembra_runtime::Evaluator<Object>;
"#
    );
    text
}

fn write_struct(text: &mut String, interface: &Interface, one: &Struct) {
    let whole = path(one);
    let about = match one.name.as_str() {
        "input" => "The inputs of the model.",
        "output" => "The outputs of the model.",
        _ => "A tuple of the model.",
    };
    let lives = if one.has_views { "<'a>" } else { "" };
    let _ = writeln!(
        text,
        "\n/// {about}\n#[repr(C)]\n{UNUSED}\n#[derive(Clone, Copy, Debug, Default)]\npub struct {whole}{lives} {{"
    );
    for field in &one.fields {
        let original: String = field.original.chars().filter(|c| !c.is_control()).collect();
        let _ = writeln!(text, "    /// `{original}`.\n    pub {}: {},", field.name, type_name(interface, &field.ty));
    }
    text.push_str("}\n\nconst _: () = {\n");
    let _ = writeln!(text, "    assert!(size_of::<{whole}>() == {});", one.size);
    for field in &one.fields {
        let _ = writeln!(text, "    assert!(std::mem::offset_of!({whole}, {}) == {});", field.name, field.offset);
    }
    text.push_str("};\n");
}

/// Returns the Rust name of a struct, such as `Input` or `Tuple0`.
fn path(one: &Struct) -> String {
    // Struct names are generated and ASCII: `input`, `output`, `tuple0`.
    let (first, rest) = one.name.split_at(1);
    first.to_ascii_uppercase() + rest
}

fn type_name(interface: &Interface, ty: &FieldType) -> String {
    match ty {
        FieldType::Tuple(at) => {
            let one = &interface.tuples[*at];
            path(one) + if one.has_views { "<'a>" } else { "" }
        }
        FieldType::Simple(qtype) if qtype.is_optional() => format!("cembra_runtime::Optional<{}>", simple_name(qtype)),
        FieldType::Simple(qtype) => match qtype.scalar() {
            // Machine code writes one byte for a unit.
            Some(Scalar::Unit) => "u8".to_owned(),
            _ => simple_name(qtype).to_owned(),
        },
    }
}

fn simple_name(qtype: &QType) -> &'static str {
    match qtype.scalar().unwrap_or(Scalar::Unit).representation() {
        Scalar::Unit => "()",
        Scalar::Text => "cembra_runtime::Text<'a>",
        Scalar::Bytes => "cembra_runtime::Bytes<'a>",
        // The short name of a plain type is its name in Rust.
        plain => plain.short_name(),
    }
}
