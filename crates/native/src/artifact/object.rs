//! Object files: the machine code of a plan, and the tables that `cembra_runtime::ObjectModel` describes, as data with
//! relocations. The code itself has no relocations. An object file has no undefined symbols, because its code calls
//! external functions through the context.

use super::code::{self, signature};
use super::isa::{self, Target, Tier};
use crate::error::{Error, ErrorKind};
use cembra_plan::{Binding, Plan, StepId};
use cembra_runtime::{INTERFACE_REVISION, ObjectModel, interface_fingerprint};
use cembra_value::{Budget, ScalarValue, Value};
use cranelift_codegen::ir::Endianness;
use cranelift_module::{DataDescription, DataId, FuncId, Linkage, Module, ModuleError};
use cranelift_object::{ObjectBuilder, ObjectModule};

/// A step that can fail, for the table of sites in an object file.
#[derive(Clone, Debug)]
pub struct Site {
    /// The step of the plan that can fail.
    pub step: StepId,
    /// The name of the step's operator.
    pub operator: String,
    /// The type of the step's result.
    pub result: String,
    /// The location of the operator in the source text: the offset of the first byte, and of the byte after the last.
    /// Both are equal if the location is not known.
    pub span: (u32, u32),
}

/// Returns the steps that call functions of the cembra library. An object file cannot be made of a plan with such steps.
pub fn called_steps(plan: &Plan) -> impl Iterator<Item = StepId> {
    cembra_record::callees(plan).map(|(step, _)| step)
}

/// Makes an object file of a plan. The file defines the data symbol `<name>_model`, an `ObjectModel`, where `<name>` is the parameter `name`. `sites`
/// must be in the order of their steps.
///
/// # Errors
/// If the target is not supported, a step calls a function of the cembra library, or a limit is exceeded.
pub fn object(
    plan: &Plan,
    binding: &Binding,
    tier: Tier,
    budget: &Budget,
    target: &Target,
    name: &str,
    sites: &[Site],
) -> Result<Vec<u8>, Error> {
    if called_steps(plan).next().is_some() {
        return Err(Error::new(ErrorKind::Unsupported, "the model calls functions of the library"));
    }
    let codegen = isa::of(target, tier)?;
    let code = code::generate(plan, binding, tier, &codegen, budget, None)?.bytes;
    let isa = &codegen.fast;
    let wide = plan.layout().size();
    let builder = ObjectBuilder::new(isa.clone(), name, cranelift_module::default_libcall_names()).map_err(refused)?;
    let mut file = File { module: ObjectModule::new(builder), big: isa.endianness() == Endianness::Big, name };
    let function = file.module.declare_function(name, Linkage::Local, &signature(&**isa)).map_err(refused)?;
    file.module.define_function_bytes(function, code::ALIGNMENT as u64, &code, &[]).map_err(refused)?;

    let mut strings = Vec::new();
    let mut texts = Table::default();
    for (slot, text) in literal_texts(plan) {
        texts.number(&u64::from(slot).to_le_bytes(), file.big);
        texts.string(text, &mut strings, file.big);
    }
    let mut table = Table::default();
    for site in sites {
        for number in [site.step.index() as u32, site.span.0, site.span.1, 0] {
            table.number(&number.to_le_bytes(), file.big);
        }
        table.string(site.operator.as_bytes(), &mut strings, file.big);
        table.string(site.result.as_bytes(), &mut strings, file.big);
    }
    debug_assert_eq!(table.bytes.len(), sites.len() * ObjectModel::SITE_SIZE as usize);
    let strings = file.data("strings", Linkage::Local, &Table { bytes: strings, strings: Vec::new() }, None)?;
    let text_count = texts.bytes.len() as u64 / u64::from(ObjectModel::TEXT_SIZE);
    let texts = file.data("texts", Linkage::Local, &texts, strings)?;
    let sites_data = file.data("sites", Linkage::Local, &table, strings)?;
    file.model(function, wide, texts, text_count, sites_data, sites.len() as u64)?;
    file.module.finish().emit().map_err(|e| Error::new(ErrorKind::CodeGenerator, format!("no object file: {e}")))
}

fn refused(error: ModuleError) -> Error {
    Error::new(ErrorKind::CodeGenerator, format!("no object file: {error}"))
}

/// Returns the text literals of the plan, with the offsets of their slots in the frame.
fn literal_texts(plan: &Plan) -> Vec<(u32, &[u8])> {
    let mut found = Vec::new();
    let mut open: Vec<(u32, &Value)> =
        plan.literals().iter().map(|(value, literal)| (plan.value(*value).slot, literal)).collect();
    while let Some((slot, literal)) = open.pop() {
        let qtype = literal.qtype();
        match literal {
            Value::Scalar(scalar) | Value::Present(scalar) => {
                let slot = slot + qtype.optional_value_offset().unwrap_or(0);
                match scalar {
                    ScalarValue::Text(text) => found.push((slot, text.as_bytes())),
                    ScalarValue::Bytes(bytes) => found.push((slot, &bytes[..])),
                    _ => {}
                }
            }
            Value::Tuple(fields) => {
                open.extend(fields.iter().zip(qtype.field_offsets()).map(|(field, inside)| (slot + inside, field)));
            }
            Value::Missing(_)
            | Value::Shape(_)
            | Value::Array(..)
            | Value::ArrayShape(..)
            | Value::Edge(_)
            | Value::Dict(_)
            | Value::Type(_)
            | Value::Nothing
            | Value::Unspecified
            | Value::Tensor(_) => {}
        }
    }
    found.sort_unstable();
    found
}

/// The bytes of a table in the object file's data, and the positions in it that the linker fills with addresses of
/// strings.
#[derive(Default)]
struct Table {
    bytes: Vec<u8>,
    /// Pairs of an offset in the table, where the address goes, and the string's offset in the strings' data.
    strings: Vec<(u32, i64)>,
}

impl Table {
    /// Appends a number to the table. `bytes` are its bytes, the lowest first; `big` means that the target stores the
    /// highest first.
    fn number(&mut self, bytes: &[u8], big: bool) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        if big {
            self.bytes[start..].reverse();
        }
    }

    /// Appends `string` to `strings`, and its address and length to the table. The linker fills in the address.
    fn string(&mut self, string: &[u8], strings: &mut Vec<u8>, big: bool) {
        if !string.is_empty() {
            self.strings.push((self.bytes.len() as u32, strings.len() as i64));
        }
        strings.extend_from_slice(string);
        self.number(&0_u64.to_le_bytes(), big);
        self.number(&(string.len() as u64).to_le_bytes(), big);
    }
}

/// An object file that is being built.
struct File<'n> {
    module: ObjectModule,
    big: bool,
    name: &'n str,
}

impl File<'_> {
    /// Defines read-only data with the bytes of `table`, under the symbol `<name>_<what>`. Addresses in the table point
    /// into `strings`. Returns `None` if the table is empty.
    fn data(
        &mut self,
        what: &str,
        linkage: Linkage,
        table: &Table,
        strings: Option<DataId>,
    ) -> Result<Option<DataId>, Error> {
        if table.bytes.is_empty() {
            return Ok(None);
        }
        let id = self.declare(what, linkage)?;
        let mut data = description(&table.bytes);
        if let Some(strings) = strings {
            let strings = self.module.declare_data_in_data(strings, &mut data);
            for (offset, string) in &table.strings {
                data.write_data_addr(*offset, strings, *string);
            }
        }
        self.module.define_data(id, &data).map_err(refused)?;
        Ok(Some(id))
    }

    fn declare(&mut self, what: &str, linkage: Linkage) -> Result<DataId, Error> {
        self.module.declare_data(&format!("{}_{what}", self.name), linkage, false, false).map_err(refused)
    }

    /// Defines the `ObjectModel` of the object file, the data that a program finds by the symbol `<name>_model`.
    fn model(
        &mut self,
        function: FuncId,
        frame_bytes: u32,
        texts: Option<DataId>,
        text_count: u64,
        sites: Option<DataId>,
        site_count: u64,
    ) -> Result<(), Error> {
        let mut bytes = vec![0; ObjectModel::SIZE as usize];
        let mut put = |offset: u32, number: &[u8]| {
            let place = &mut bytes[offset as usize..][..number.len()];
            place.copy_from_slice(number);
            if self.big {
                place.reverse();
            }
        };
        put(ObjectModel::REVISION_OFFSET, &INTERFACE_REVISION.to_le_bytes());
        put(ObjectModel::INTERFACE_OFFSET, &interface_fingerprint().to_le_bytes());
        put(ObjectModel::FRAME_BYTES_OFFSET, &frame_bytes.to_le_bytes());
        put(ObjectModel::TEXT_COUNT_OFFSET, &text_count.to_le_bytes());
        put(ObjectModel::SITE_COUNT_OFFSET, &site_count.to_le_bytes());
        let id = self.declare("model", Linkage::Export)?;
        let mut data = description(&bytes);
        let function = self.module.declare_func_in_data(function, &mut data);
        data.write_function_addr(ObjectModel::FUNCTION_OFFSET, function);
        for (table, offset) in [(texts, ObjectModel::TEXTS_OFFSET), (sites, ObjectModel::SITES_OFFSET)] {
            if let Some(table) = table {
                let table = self.module.declare_data_in_data(table, &mut data);
                data.write_data_addr(offset, table, 0);
            }
        }
        self.module.define_data(id, &data).map_err(refused)
    }
}

fn description(bytes: &[u8]) -> DataDescription {
    let mut data = DataDescription::new();
    data.define(bytes.into());
    data.set_align(8);
    data
}
