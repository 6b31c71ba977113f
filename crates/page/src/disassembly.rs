//! Disassembly of x86-64 code as a listing with labels. Only instructions that are reachable from the entry are decoded; all other bytes
//! are shown as constants. This module knows nothing about models; its caller passes notes about ranges of the code.

use cembra::explain::{LineKind, Listing};
use iced_x86::{
    Decoder, DecoderOptions, FlowControl, Formatter, Instruction, IntelFormatter, SymbolResolver, SymbolResult,
};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// The labels of code and constants, by offset.
type Labels = BTreeMap<u64, String>;

/// A note about a range of machine code: the operator that the code computes.
pub(crate) struct Note {
    /// The byte range of the code.
    pub(crate) bytes: Range<usize>,
    /// The text that is printed above the code.
    pub(crate) text: String,
    /// The origin of the code's lines in the listing: the index of an expression node.
    pub(crate) origin: u32,
}

/// The note for code without one, if other code has notes.
const NO_NOTE: &str = "entry, inputs, outputs";

/// Disassembles `code` from its first byte on, one instruction per line, with its offset. A note is printed above the instructions that it
/// is about. Notes must be sorted and must not overlap.
pub(crate) fn listing(code: &[u8], notes: &[Note]) -> Listing {
    let instructions = reachable(code);
    let constants = constants(&instructions, code.len() as u64);
    let labels = labels(&instructions, &constants);
    let mut formatter = IntelFormatter::with_options(Some(Box::new(LabelResolver(labels.clone()))), None);
    let options = formatter.options_mut();
    options.set_hex_prefix("0x");
    options.set_hex_suffix("");
    options.set_uppercase_hex(false);
    options.set_space_after_operand_separator(true);
    options.set_first_operand_char_index(8);
    options.set_show_branch_size(false);

    let mut listing = Listing::of_text(LineKind::Note, "; called with input, output, frame, context");
    let mut shown = String::new();
    let mut last = "";
    for (offset, instruction) in &instructions {
        shown.clear();
        formatter.format(instruction, &mut shown);
        let note = note(notes, *offset);
        let (text, origin) = note.map_or((NO_NOTE, None), |note| (&*note.text, Some(note.origin)));
        if text != last && !notes.is_empty() {
            listing.push(LineKind::Note, origin, format_args!("; {text}"));
        }
        last = text;
        if let Some(label) = labels.get(offset) {
            listing.push(LineKind::Jump, [], format_args!("{label}:"));
        }
        listing.push(LineKind::Code, origin, format_args!("  {offset:04x}  {shown}"));
    }
    for (offset, size) in &constants {
        let bytes = &code[*offset as usize..(*offset as usize + size).min(code.len())];
        let label = labels.get(offset).map_or("", String::as_str);
        listing.push(LineKind::Literal, [], format_args!("{label}:"));
        listing.push(LineKind::Literal, [], format_args!("  {offset:04x}  {}", constant(bytes)));
    }
    listing
}

/// The note about the byte at `offset`; `None` if there is none.
fn note(notes: &[Note], offset: u64) -> Option<&Note> {
    let after = notes.partition_point(|note| note.bytes.start as u64 <= offset);
    notes[..after].last().filter(|note| offset < note.bytes.end as u64)
}

/// The instructions that are reachable from the first one, by offset.
fn reachable(code: &[u8]) -> BTreeMap<u64, Instruction> {
    let mut found = BTreeMap::new();
    let mut starts = vec![0];
    while let Some(start) = starts.pop() {
        let Some(rest) = code.get(start as usize..) else { continue };
        let mut decoder = Decoder::with_ip(64, rest, start, DecoderOptions::NONE);
        while decoder.can_decode() && !found.contains_key(&decoder.ip()) {
            let instruction = decoder.decode();
            found.insert(instruction.ip(), instruction);
            match instruction.flow_control() {
                FlowControl::Next | FlowControl::IndirectCall => {}
                // A direct call calls another function of the model.
                FlowControl::Call | FlowControl::ConditionalBranch => starts.push(instruction.near_branch_target()),
                FlowControl::UnconditionalBranch => {
                    starts.push(instruction.near_branch_target());
                    break;
                }
                _ => break,
            }
        }
    }
    found
}

/// The constants that instructions read from the code: their sizes in bytes, by offset.
fn constants(instructions: &BTreeMap<u64, Instruction>, end: u64) -> BTreeMap<u64, usize> {
    let mut found = BTreeMap::new();
    for instruction in instructions.values().filter(|one| one.is_ip_rel_memory_operand()) {
        let offset = instruction.ip_rel_memory_address();
        if offset < end && !instructions.contains_key(&offset) {
            let size = found.entry(offset).or_default();
            *size = instruction.memory_size().size().max(*size).max(1);
        }
    }
    found
}

/// Names the targets of branches (`L`), the functions (`F`) and the constants (`C`), by offset.
fn labels(instructions: &BTreeMap<u64, Instruction>, constants: &BTreeMap<u64, usize>) -> Labels {
    let targets = |kinds: &[FlowControl]| -> BTreeSet<u64> {
        let of_kind = instructions.values().filter(|one| kinds.contains(&one.flow_control()));
        of_kind.map(Instruction::near_branch_target).collect()
    };
    let named = |offsets: BTreeSet<u64>, letter: char| {
        offsets.into_iter().enumerate().map(move |(index, offset)| (offset, format!("{letter}{}", index + 1)))
    };
    let branches = named(targets(&[FlowControl::ConditionalBranch, FlowControl::UnconditionalBranch]), 'L');
    let functions = named(targets(&[FlowControl::Call]), 'F');
    let data = named(constants.keys().copied().collect(), 'C');
    branches.chain(functions).chain(data).collect()
}

/// Formats bytes as one number, with the float that they may stand for.
fn constant(bytes: &[u8]) -> String {
    let digits: String = bytes.iter().rev().map(|byte| format!("{byte:02x}")).collect();
    if let Ok(bits) = bytes.try_into().map(u64::from_le_bytes) {
        format!("dq      0x{digits}  ; {:?}", f64::from_bits(bits))
    } else if let Ok(bits) = bytes.try_into().map(u32::from_le_bytes) {
        format!("dd      0x{digits}  ; {:?}", f32::from_bits(bits))
    } else {
        format!("db      0x{digits}")
    }
}

/// The labels of a listing, which are shown in place of the addresses in instructions.
struct LabelResolver(Labels);

impl SymbolResolver for LabelResolver {
    fn symbol(
        &mut self,
        instruction: &Instruction,
        operand: u32,
        _: Option<u32>,
        address: u64,
        _: u32,
    ) -> Option<SymbolResult<'_>> {
        // A number may equal the offset of a label without meaning it.
        let is_place =
            instruction.is_ip_rel_memory_operand() || (operand == 0 && instruction.near_branch_target() == address);
        self.0.get(&address).filter(|_| is_place).map(|name| SymbolResult::with_str(address, name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn branches_and_constants_have_labels_and_unreached_bytes_are_no_instructions() {
        let code = [
            0x48, 0x85, 0xff, // test rdi, rdi
            0x74, 0x09, // je L1
            0xf2, 0x0f, 0x10, 0x05, 0x0b, 0x00, 0x00, 0x00, // movsd xmm0, [C1]
            0xc3, // ret
            0xb8, 0x03, 0x00, 0x00, 0x00, // L1: mov eax, 3 (not L1)
            0xeb, 0xf8, // jmp to the ret
            0x00, 0x00, 0x00, // padding
            0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0xf8, 0x3f, // 1.5
        ];
        assert_eq!(
            listing(&code, &[]).to_string(),
            "\
; called with input, output, frame, context
  0000  test    rdi, rdi
  0003  je      L2
  0005  movsd   xmm0, [C1]
L1:
  000d  ret
L2:
  000e  mov     eax, 3
  0013  jmp     L1
C1:
  0018  dq      0x3ff8000000000000  ; 1.5
"
        );
    }

    #[test]
    fn notes_stand_above_what_they_are_about_and_are_not_repeated() {
        let code = [0x90, 0x90, 0x48, 0x85, 0xff, 0x90, 0xc3];
        let note = |bytes, text: &str, origin| Note { bytes, text: text.to_owned(), origin };
        let notes = [note(1..2, "a", 7), note(2..5, "a", 8), note(5..6, "b", 9)];
        let listed = listing(&code, &notes);
        let origins: Vec<&[u32]> = listed.lines().iter().map(|line| &line.origins[..]).collect();
        assert_eq!(origins, [&[][..], &[], &[], &[7], &[7], &[8], &[9], &[9], &[], &[]]);
        assert_eq!(
            listed.to_string(),
            "\
; called with input, output, frame, context
; entry, inputs, outputs
  0000  nop
; a
  0001  nop
  0002  test    rdi, rdi
; b
  0005  nop
; entry, inputs, outputs
  0006  ret
"
        );
    }

    #[test]
    fn called_functions_are_listed_behind_what_calls_them() {
        let code = [0xe8, 0x03, 0x00, 0x00, 0x00, 0xc3, 0xcc, 0xcc, 0xc3];
        let lines =
            ["; called with input, output, frame, context", "  0000  call    F1", "  0005  ret", "F1:", "  0008  ret"];
        assert_eq!(listing(&code, &[]).to_string().lines().collect::<Vec<_>>(), lines);
    }

    #[test]
    fn bytes_that_are_no_code_are_listed_too() {
        assert!(listing(&[], &[]).to_string().starts_with("; called"));
        assert!(listing(&[0x06], &[]).to_string().contains("(bad)"));
        assert!(listing(&[0xeb, 0x7f], &[]).to_string().contains("jmp"));
    }
}
