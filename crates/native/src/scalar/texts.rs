//! Comparisons of strings as inline instructions, where these are cheaper than a call of the runtime's function. This
//! is the only machine code that reads the bytes of strings. It never reads beyond the end of a string.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{self, InstBuilder, MemFlagsData, types};
use cranelift_frontend::FunctionBuilder;

/// The longest text that is compared inline, in bytes: four words.
const LONGEST: u64 = 32;

/// The longest text that is compared without a branch, in bytes: two words.
const LONGEST_AT_ONCE: u64 = 16;

/// Emits a comparison of a string with a literal of `length` bytes, which gives the result of `RuntimeFn::TextsDiffer`. If `mask` is false, the
/// string has another length, and the result is `otherwise`. The code has no branch, which would be unpredictable: a string of another length is
/// replaced by the literal itself. `None` if the literal is too long.
pub(super) fn differ_at_once(
    builder: &mut FunctionBuilder<'_>,
    mask: ir::Value,
    [text, literal]: [ir::Value; 2],
    length: u64,
    otherwise: ir::Value,
) -> Option<ir::Value> {
    if length > LONGEST_AT_ONCE {
        return None;
    }
    let text = builder.ins().select(mask, text, literal);
    let found = differ(builder, [text, literal], length)?;
    Some(builder.ins().select(mask, found, otherwise))
}

/// Emits an inline comparison of two strings of `length` bytes, which gives the result of `RuntimeFn::TextsDiffer`; `None` if `length` is 0 or too
/// large. The strings are compared word by word; the last word may overlap the one before it.
pub(super) fn differ(builder: &mut FunctionBuilder<'_>, [x, y]: [ir::Value; 2], length: u64) -> Option<ir::Value> {
    let word = match length {
        0 => return None,
        1 => types::I8,
        2..=3 => types::I16,
        4..=7 => types::I32,
        8..=LONGEST => types::I64,
        _ => return None,
    };
    // Texts need not be aligned.
    let flags = MemFlagsData::new().with_notrap();
    let (length, bytes) = (length as i32, word.bytes() as i32);
    let mut differences = None;
    for at in (0..length).step_by(bytes as usize) {
        let at = at.min(length - bytes);
        let [x, y] = [x, y].map(|text| builder.ins().load(word, flags, text, at));
        let difference = builder.ins().bxor(x, y);
        differences = Some(match differences {
            None => difference,
            Some(others) => builder.ins().bor(others, difference),
        });
    }
    let differ = builder.ins().icmp_imm_u(IntCC::NotEqual, differences?, 0);
    Some(builder.ins().uextend(types::I32, differ))
}
