//! Object files for platforms that tests do not run on: read back, and found to be whole. Architectures other than x86-64
//! need the feature `cross-targets`.

use cembra::native::Target;
use cembra::{Model, Options};
use cembra_runtime::{INTERFACE_REVISION, ObjectModel, interface_fingerprint};
use object::{
    Architecture, BinaryFormat, Endianness, Object, ObjectSection, ObjectSymbol, RelocationTarget, SymbolKind,
};

/// Something of everything that becomes machine code: faults, optionals, texts, conditionals, loops, casts, functions.
const SOURCE: &str = "
input x: f64; input y: f32?; input n: i64; input t: text; input b: bool; input p: (i32, f64?)
let s = seq.reduce(fn(sum, i) = sum + core.cast(i, f64) * x, seq.range(n), 0.0f64)
output quotient = n // core.cast(x, i64)
output root = math.sqrt(x) + math.exp(s) - math.floor(x) * math.log1p(y ?? 1.0f32) ** 2.0
output word = where(t < \"middle\", \"early\", t)
output pair = (p.1 ?? 2.0, min(p.0, core.cast(n, i32)), b and x > 1.0)
output checked = core.with_assertion(y, n >= 0, \"a count\")
";

struct Platform {
    triple: &'static str,
    format: BinaryFormat,
    architecture: Architecture,
    endianness: Endianness,
}

const fn platform(triple: &'static str, format: BinaryFormat, architecture: Architecture) -> Platform {
    Platform { triple, format, architecture, endianness: Endianness::Little }
}

const PLATFORMS: &[Platform] = &[
    platform("x86_64-unknown-linux-gnu", BinaryFormat::Elf, Architecture::X86_64),
    platform("x86_64-apple-darwin", BinaryFormat::MachO, Architecture::X86_64),
    platform("x86_64-pc-windows-msvc", BinaryFormat::Coff, Architecture::X86_64),
    #[cfg(feature = "cross-targets")]
    platform("aarch64-unknown-linux-gnu", BinaryFormat::Elf, Architecture::Aarch64),
    #[cfg(feature = "cross-targets")]
    platform("aarch64-apple-darwin", BinaryFormat::MachO, Architecture::Aarch64),
    #[cfg(feature = "cross-targets")]
    platform("riscv64gc-unknown-linux-gnu", BinaryFormat::Elf, Architecture::Riscv64),
    #[cfg(feature = "cross-targets")]
    Platform {
        endianness: Endianness::Big,
        ..platform("s390x-unknown-linux-gnu", BinaryFormat::Elf, Architecture::S390x)
    },
];

#[test]
fn files_are_of_their_platform_and_whole() {
    let model = Model::parse(SOURCE).expect("a model");
    for Platform { triple, format, architecture, endianness } in PLATFORMS {
        let made = model.object("mixed", &Target::triple(*triple), &Options::default());
        let made = made.unwrap_or_else(|error| panic!("{triple}: {error}"));
        let file = object::File::parse(made.bytes()).unwrap_or_else(|error| panic!("{triple}: {error}"));
        assert_eq!((file.format(), file.architecture(), file.endianness()), (*format, *architecture, *endianness));

        let undefined: Vec<_> = file.symbols().filter(|symbol| symbol.is_undefined()).collect();
        assert!(undefined.iter().all(|symbol| symbol.name() == Ok("")), "{triple}: {undefined:?}");
        let symbol = |name: &str| {
            let prefix = if *format == BinaryFormat::MachO { "_" } else { "" };
            let wanted = format!("{prefix}{name}");
            let is =
                |symbol: &object::Symbol<'_, '_>| symbol.name() == Ok(&wanted) && symbol.kind() != SymbolKind::File;
            let found = file.symbols().find(is);
            found.unwrap_or_else(|| panic!("{triple}: no symbol {wanted}"))
        };
        let (model, function) = (symbol("mixed_model"), symbol("mixed"));
        assert!(model.is_global() && !function.is_global(), "{triple}");
        let section = file.section_by_index(model.section_index().expect("a section")).expect("a section");
        let start = (model.address() - section.address()) as usize;
        let data = &section.data().expect("data")[start..][..ObjectModel::SIZE as usize];
        let number = |offset: u32, size: usize| {
            let bytes = &data[offset as usize..][..size];
            let fold = |number, byte: &u8| (number << 8) | u64::from(*byte);
            match endianness {
                Endianness::Big => bytes.iter().fold(0, fold),
                Endianness::Little => bytes.iter().rev().fold(0, fold),
            }
        };
        assert_eq!(number(ObjectModel::REVISION_OFFSET, 4), u64::from(INTERFACE_REVISION), "{triple}");
        assert_eq!(number(ObjectModel::INTERFACE_OFFSET, 8), interface_fingerprint(), "{triple}");
        assert_eq!(number(ObjectModel::TEXT_COUNT_OFFSET, 8), 3, "{triple}: texts");
        assert!(number(ObjectModel::SITE_COUNT_OFFSET, 8) >= 4, "{triple}: sites");
        // The entry is found through a relocation, to the function or to its section.
        let at = |offset: u64| offset.wrapping_sub(start as u64) == u64::from(ObjectModel::FUNCTION_OFFSET);
        let (_, entry) = section.relocations().find(|(offset, _)| at(*offset)).expect("the entry");
        match entry.target() {
            RelocationTarget::Symbol(index) => {
                let target = file.symbol_by_index(index).expect("a symbol");
                assert_eq!(target.section_index(), function.section_index(), "{triple}");
            }
            RelocationTarget::Section(index) => assert_eq!(Some(index), function.section_index(), "{triple}"),
            other => panic!("{triple}: {other:?}"),
        }
        let code = file.section_by_index(function.section_index().expect("a section")).expect("a section");
        assert_eq!(code.relocations().count(), 0, "{triple}: code can be moved");
    }
}

#[test]
fn extensions_change_the_code_and_unknown_ones_are_refused() {
    let model = Model::parse("input x: f64; math.exp(x)").expect("a model");
    let code = |target: Target| {
        let made = model.object("one", &target, &Options::default()).expect("an object file");
        let file = object::File::parse(made.bytes()).expect("a file");
        file.section_by_name(".text").expect("code").data().expect("data").to_vec()
    };
    let linux = || Target::triple("x86_64-unknown-linux-gnu");
    let fused = linux().feature("x86-64-v3").feature("has_avx");
    let (baseline, fused) = (code(linux()), code(fused));
    // Without fused multiply-add the function is called, with it it is part of the code.
    assert!(baseline.len() < 150 && fused.len() > 200, "{} and {} bytes", baseline.len(), fused.len());
    assert_eq!(baseline, code(linux()), "the same model gives the same code");
}
