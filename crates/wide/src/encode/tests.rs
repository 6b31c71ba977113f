//! Tests of the encoder against iced's decoder: each row of the instruction table with all possible prefixes, vector lengths,
//! operand forms and masks, and the instructions on general registers by their disassembled text.

use super::table::ALL;
use super::{Assembler, Code, Condition, FETCHES, Gpr, Length, Memory, Operands, Prefix, Rm, Shape, Tuple};
use iced_x86::{Decoder, DecoderOptions, Formatter, Instruction, IntelFormatter, OpKind, Register};

const LENGTHS: [Length; 3] = [Length::X, Length::Y, Length::Z];

fn decoded(bytes: &[u8], what: &str) -> Instruction {
    let mut decoder = Decoder::with_ip(64, bytes, 0, DecoderOptions::NONE);
    let instruction = decoder.decode();
    assert!(!instruction.is_invalid(), "{what}: {bytes:x?}");
    assert_eq!(instruction.len(), bytes.len(), "{what}: {bytes:x?}");
    instruction
}

/// Addresses of all forms. Their displacements are around the values where the encoding for `scale` gets longer.
fn addresses(scale: u32) -> Vec<Memory> {
    let scale = scale as i32;
    let offsets = [0, 1, -1, 4, scale, -scale, 127 * scale, 128 * scale, -128 * scale, -129 * scale, 127, 128, 1 << 20];
    let mut found = Vec::new();
    for offset in offsets {
        for base in [Gpr::Rax, Gpr::Rbx, Gpr::Rsp, Gpr::Rbp, Gpr::R8, Gpr::R12, Gpr::R13, Gpr::R15] {
            found.push(Memory::at(base, offset));
            for index in [Gpr::Rax, Gpr::Rbx, Gpr::Rbp, Gpr::R12, Gpr::R14] {
                found.push(Memory { base, index: Some((index, 3)), offset });
            }
        }
    }
    found
}

/// Returns the size of an instruction's memory operand in bytes.
fn memory_bytes(code: Code, length: Length, broadcasts: bool) -> u32 {
    match code.form().tuple {
        Tuple::Full(element) | Tuple::Half(element) if broadcasts => element.into(),
        Tuple::Full(_) | Tuple::Whole => length.bytes(),
        Tuple::Half(_) | Tuple::HalfWhole => length.bytes() / 2,
        Tuple::Scalar(element) => element.into(),
        Tuple::None => 0,
    }
}

fn check(prefix: Prefix, code: Code, length: Length, operands: Operands) {
    let form = code.form();
    let what = format!("{code:?} {prefix:?} {length:?} {operands:?}");
    let mut asm = Assembler::default();
    asm.vector(prefix, code, length, operands);
    let is_blend = matches!(code, Code::BlendVector32 | Code::BlendVector64);
    if form.immediate {
        asm.byte(0x50);
    }
    let found = decoded(&asm.bytes, &what);
    assert_eq!(format!("{:?}", found.mnemonic()).to_lowercase(), form.name, "{what}");
    let Operands { result, first, rm, mask, zeroing } = operands;
    let registers: &[Option<u8>] = match form.shape {
        Shape::Rvm => &[Some(result), Some(first), None],
        Shape::Rm => &[Some(result), None],
        Shape::Mr => &[None, Some(result)],
        Shape::Vm(_) => &[Some(result), None],
    };
    let mut longest = 0;
    for (number, expected) in registers.iter().enumerate() {
        let number = number as u32;
        let expected = match (*expected, rm) {
            (Some(register), _) | (None, Rm::Register(register)) => u32::from(register),
            (None, Rm::Memory(memory) | Rm::Broadcast(memory)) => {
                assert_eq!(found.op_kind(number), OpKind::Memory, "{what}");
                assert_eq!(found.memory_base().number(), memory.base as usize, "{what}");
                match memory.index {
                    Some((index, scale)) => {
                        assert_eq!(found.memory_index().number(), index as usize, "{what}");
                        assert_eq!(found.memory_index_scale(), 1 << scale, "{what}");
                    }
                    None => assert_eq!(found.memory_index(), Register::None, "{what}"),
                }
                assert_eq!(found.memory_displacement64().cast_signed(), i64::from(memory.offset), "{what}");
                let broadcasts = matches!(rm, Rm::Broadcast(_));
                assert_eq!(found.is_broadcast(), broadcasts, "{what}");
                let bytes = memory_bytes(code, length, broadcasts) as usize;
                assert_eq!(found.memory_size().size(), bytes, "{what}");
                continue;
            }
        };
        let register = found.op_register(number);
        assert_eq!(register.number() as u32, expected, "{what}");
        if register.is_vector_register() {
            longest = longest.max(register.size());
        }
    }
    let only_masks = form.name.starts_with('k');
    let compares = code_compares(code);
    let by_memory = !matches!(rm, Rm::Register(_)) || matches!(form.tuple, Tuple::Scalar(_));
    if !only_masks && !compares && !by_memory && longest > 0 && code != Code::FromInteger {
        assert_eq!(longest as u32, length.bytes(), "{what}");
    }
    assert_eq!(found.has_op_mask(), mask != 0, "{what}");
    if mask != 0 {
        assert_eq!(found.op_mask().number(), usize::from(mask), "{what}");
    }
    assert_eq!(found.zeroing_masking(), zeroing, "{what}");
    if is_blend {
        assert_eq!(found.op3_register().number(), 5, "{what}");
    } else if form.immediate {
        assert_eq!(found.immediate8(), 0x50, "{what}");
    }
}

fn code_compares(code: Code) -> bool {
    matches!(code, Code::Cmp32 | Code::Cmp64 | Code::CmpInt32 | Code::CmpInt64 | Code::TestNot32 | Code::TestNot64)
}

/// Returns true for an instruction with a mask or general register as an operand.
fn few_registers(code: Code) -> bool {
    let name = code.form().name;
    name.starts_with('k') || name.starts_with("vmovmsk") || name == "vmovd"
}

#[test]
fn every_form_is_what_was_meant() {
    let mut forms = 0;
    for &code in ALL {
        let form = code.form();
        for (prefix, exists) in [(Prefix::Evex, form.evex), (Prefix::Vex, form.vex)] {
            if exists.is_none() {
                continue;
            }
            for length in LENGTHS {
                if form.lengths >> length as u8 & 1 == 0 || (prefix == Prefix::Vex && length == Length::Z) {
                    continue;
                }
                let is_memory_only =
                    code == Code::Stream32 || form.name.starts_with("kmov") && form.tuple != Tuple::None;
                let most = if few_registers(code) {
                    7
                } else if prefix == Prefix::Evex {
                    31
                } else {
                    15
                };
                let result_most = if code_compares(code) { 7 } else { most };
                let has_registers = form.shape != Shape::Mr || !form.name.starts_with("kmov");
                for step in 0..=most {
                    let (result, first, last) = (step.min(result_most), most - step, (step * 7 + 3) % (most + 1));
                    let first = if form.shape == Shape::Rvm { first } else { 0 };
                    if has_registers && !is_memory_only {
                        check(prefix, code, length, Operands::new(result, first, Rm::Register(last)));
                        forms += 1;
                    }
                    let can_mask = prefix == Prefix::Evex && !few_registers(code);
                    if can_mask && !is_memory_only && !form.name.starts_with("vmovups") {
                        let zeroing = !code_compares(code) && step % 2 == 0;
                        let operands = Operands {
                            mask: 1 + step % 7,
                            zeroing,
                            ..Operands::new(result, first, Rm::Register(last))
                        };
                        check(prefix, code, length, operands);
                        forms += 1;
                    }
                }
                let is_shift = matches!(form.shape, Shape::Vm(_));
                if form.tuple == Tuple::None || code == Code::UpperHalf || (is_shift && prefix == Prefix::Vex) {
                    continue;
                }
                for broadcasts in [false, true] {
                    let can_broadcast = matches!(form.tuple, Tuple::Full(_) | Tuple::Half(_)) && prefix == Prefix::Evex;
                    if broadcasts && !can_broadcast {
                        continue;
                    }
                    for memory in addresses(memory_bytes(code, length, broadcasts)) {
                        let rm = if broadcasts { Rm::Broadcast(memory) } else { Rm::Memory(memory) };
                        let first = if form.shape == Shape::Rvm { 5.min(most) } else { 0 };
                        check(prefix, code, length, Operands::new(6.min(result_most), first, rm));
                        forms += 1;
                    }
                }
            }
        }
    }
    assert!(forms > 100_000, "{forms}");
}

#[test]
fn displacements_of_a_byte_count_in_units() {
    let length = |code: Code, length: Length, rm: Rm| {
        let mut asm = Assembler::default();
        asm.vector(Prefix::Evex, code, length, Operands::new(1, 2, rm));
        asm.bytes.len()
    };
    let at = |offset: i32| Memory::at(Gpr::Rax, offset);
    assert_eq!(length(Code::Add64, Length::Z, Rm::Memory(at(0))), 6);
    assert_eq!(length(Code::Add64, Length::Z, Rm::Memory(at(127 * 64))), 7);
    assert_eq!(length(Code::Add64, Length::Z, Rm::Memory(at(128 * 64))), 10);
    assert_eq!(length(Code::Add64, Length::Z, Rm::Broadcast(at(127 * 8))), 7);
    assert_eq!(length(Code::Widen, Length::Z, Rm::Memory(at(127 * 32))), 7);
    assert_eq!(length(Code::Widen, Length::Z, Rm::Broadcast(at(127 * 4))), 7);
}

#[test]
fn instructions_on_general_registers_are_what_was_meant() {
    let indexed = Memory { base: Gpr::R13, index: Some((Gpr::Rbx, 2)), offset: -4 };
    type Write<'a> = &'a dyn Fn(&mut Assembler);
    let write: &[(&str, Write<'_>)] = &[
        ("push rbx", &|asm| asm.push(Gpr::Rbx)),
        ("push r12", &|asm| asm.push(Gpr::R12)),
        ("pop r15", &|asm| asm.pop(Gpr::R15)),
        ("pop rbp", &|asm| asm.pop(Gpr::Rbp)),
        ("mov r15,rdi", &|asm| asm.copy(Gpr::R15, Gpr::Rdi)),
        ("mov rbp,rsp", &|asm| asm.copy(Gpr::Rbp, Gpr::Rsp)),
        ("mov rcx,[r15+78h]", &|asm| asm.load(Gpr::Rcx, Memory::at(Gpr::R15, 0x78))),
        ("mov r10,[r13+rbx*4-4]", &|asm| asm.load(Gpr::R10, indexed)),
        ("movzx eax,byte ptr [rcx]", &|asm| asm.load_byte(Gpr::Rax, Memory::at(Gpr::Rcx, 0))),
        ("mov [r11+r14+1],al", &|asm| asm.store_al(Memory { base: Gpr::R11, index: Some((Gpr::R14, 0)), offset: 1 })),
        ("or al,[rbp-30h]", &|asm| asm.or_al(Memory::at(Gpr::Rbp, -0x30))),
        ("shl eax,4", &|asm| asm.shift_eax(4)),
        ("neg eax", &Assembler::negate_eax),
        ("test bl,4", &Assembler::test_half_of_rbx),
        ("test eax,eax", &Assembler::test_eax),
        ("lea rax,[rbx+20h]", &|asm| asm.address(Gpr::Rax, Memory::at(Gpr::Rbx, 32))),
        ("lea rdi,[rsp+140h]", &|asm| asm.address(Gpr::Rdi, Memory::at(Gpr::Rsp, 320))),
        ("add rbx,8", &|asm| asm.add(Gpr::Rbx, 8)),
        ("add r14,100h", &|asm| asm.add(Gpr::R14, 256)),
        ("and rsp,0FFFFFFFFFFFFFFC0h", &|asm| asm.and(Gpr::Rsp, -64)),
        ("or qword ptr [rsp+1000h],0", &|asm| asm.touch(Memory::at(Gpr::Rsp, 4096))),
        ("xor r14d,r14d", &|asm| asm.clear(Gpr::R14)),
        ("xor ebx,ebx", &|asm| asm.clear(Gpr::Rbx)),
        ("mov edx,12345678h", &|asm| asm.set(Gpr::Rdx, 0x1234_5678)),
        ("mov rax,123456789ABCDEFh", &|asm| asm.set_wide(Gpr::Rax, 0x0123_4567_89AB_CDEF)),
        ("cmp rbx,r12", &|asm| asm.compare(Gpr::Rbx, Gpr::R12)),
        ("shr rax,3", &|asm| asm.shift_right(Gpr::Rax, 3)),
        ("neg r11", &|asm| asm.negate(Gpr::R11)),
        ("add r11,r14", &|asm| asm.add_register(Gpr::R11, Gpr::R14)),
        ("sub rax,r12", &|asm| asm.subtract(Gpr::Rax, Gpr::R12)),
        ("and rax,r11", &|asm| asm.and_register(Gpr::Rax, Gpr::R11)),
        ("cmove rax,r11", &|asm| asm.copy_if_zero(Gpr::Rax, Gpr::R11)),
        ("bts r14,rcx", &|asm| asm.set_bit(Gpr::R14, Gpr::Rcx)),
        ("bsf rax,r11", &|asm| asm.first_bit(Gpr::Rax, Gpr::R11)),
        ("call rax", &|asm| asm.call(Gpr::Rax)),
        ("vzeroupper", &Assembler::zero_upper),
        ("ret", &Assembler::leave),
        ("jne 100h", &|asm| {
            let label = asm.jump_if(Condition::NotEqual);
            asm.bind(label, 256);
        }),
        ("jmp 0FFFFFFFFFFFFFFF0h", &|asm| {
            let label = asm.jump();
            asm.bind(label, usize::MAX - 15);
        }),
        ("lea r13,[100h]", &|asm| {
            let label = asm.address_of_label(Gpr::R13);
            asm.bind(label, 256);
        }),
        ("sub rsp,940h", &|asm| {
            let label = asm.take_stack();
            asm.fill(label, 0x940);
        }),
    ];
    let two: &[(&str, Write<'_>)] = &[
        ("mov eax,ebx;and eax,4", &Assembler::half_of_rbx),
        ("mov r14,rbx;shr r14,3", &Assembler::byte_of_rbx),
        ("setne al;movzx eax,al", &Assembler::set_not_zero),
    ];
    for (expected, write) in write.iter().chain(two) {
        let mut asm = Assembler::default();
        write(&mut asm);
        let mut decoder = Decoder::with_ip(64, &asm.bytes, 0, DecoderOptions::NONE);
        let mut texts = Vec::new();
        while decoder.can_decode() {
            let mut text = String::new();
            IntelFormatter::new().format(&decoder.decode(), &mut text);
            texts.push(text);
        }
        let text = texts.join(";").replace("near ", "").replace("0000000000000100h", "100h");
        assert_eq!(text, *expected);
    }
}

/// Checks the bytes that turn stores into non-temporal stores, and no-ops into prefetches.
#[test]
fn changed_bytes_are_what_goes_past_the_caches() {
    for (prefix, registers, lengths) in
        [(Prefix::Evex, 32, &[Length::X, Length::Y, Length::Z][..]), (Prefix::Vex, 16, &[Length::X, Length::Y])]
    {
        for (length, register, memory) in lengths
            .iter()
            .flat_map(|length| (0..registers).map(move |register| (*length, register)))
            .flat_map(|(length, register)| addresses(length.bytes()).into_iter().map(move |at| (length, register, at)))
        {
            let [mut stored, mut streamed] = [Assembler::default(), Assembler::default()];
            let operands = Operands::new(register, 0, Rm::Memory(memory));
            stored.byte(0x90);
            streamed.byte(0x90);
            stored.vector(prefix, Code::Store32, length, operands);
            streamed.vector(prefix, Code::Stream32, length, operands);
            let at = stored.opcode(1);
            stored.bytes[at] = Code::Stream32.form().opcode;
            assert_eq!(stored.bytes, streamed.bytes, "{prefix:?} {length:?} {memory:?}");
        }
    }
    for memory in addresses(1) {
        let mut asm = Assembler::default();
        let at = asm.no_op(memory);
        let no_op = decoded(&asm.bytes, "no_op");
        assert_eq!(no_op.mnemonic(), iced_x86::Mnemonic::Nop);
        let (opcode, bits) = FETCHES;
        (asm.bytes[at], asm.bytes[at + 1]) = (opcode, asm.bytes[at + 1] | bits);
        let fetches = decoded(&asm.bytes, "fetches");
        assert_eq!(fetches.mnemonic(), iced_x86::Mnemonic::Prefetcht0);
        let place = |found: &Instruction| {
            (found.memory_base(), found.memory_index(), found.memory_index_scale(), found.memory_displacement64())
        };
        assert_eq!(place(&fetches), place(&no_op));
        assert_eq!(fetches.memory_displacement64() as i32, memory.offset);
    }
}

#[test]
fn padding_does_nothing() {
    for start in 0..64 {
        let mut asm = Assembler::default();
        asm.bytes.resize(start, 0xC3);
        asm.align(64);
        assert_eq!(asm.position() % 64, 0);
        let mut decoder = Decoder::with_ip(64, &asm.bytes[start..], 0, DecoderOptions::NONE);
        while decoder.can_decode() {
            assert_eq!(decoder.decode().mnemonic(), iced_x86::Mnemonic::Nop);
        }
    }
}
