//! A calling convention that preserves all registers, for calls of the runtime that hardly ever happen. A usual call may overwrite registers, so the
//! code around it must save them. That costs the code generator time and the code space, whether the call happens or not. With this convention the
//! called function saves the registers.

/// Calls a function of one or two FLOAT32s or FLOAT64s. `rdi` is the function's address, `rsi` the address of two words,
/// which hold the arguments. The result is stored to the first word.
///
/// Only generated code calls it, by a convention in which all registers are preserved.
#[cfg(all(target_arch = "x86_64", not(windows)))]
#[unsafe(naked)]
pub(crate) extern "C" fn call_preserving() {
    // SAFETY: PRESERVING-CALL: nine words and sixteen vectors are saved; with them the stack has the alignment that calls
    // require.
    std::arch::naked_asm!(
        "push rbp",
        "mov rbp, rsp",
        "push rsi",
        "push rdi",
        "push rax",
        "push rcx",
        "push rdx",
        "push r8",
        "push r9",
        "push r10",
        "push r11",
        "sub rsp, 264",
        "movups [rsp], xmm0",
        "movups [rsp + 16], xmm1",
        "movups [rsp + 32], xmm2",
        "movups [rsp + 48], xmm3",
        "movups [rsp + 64], xmm4",
        "movups [rsp + 80], xmm5",
        "movups [rsp + 96], xmm6",
        "movups [rsp + 112], xmm7",
        "movups [rsp + 128], xmm8",
        "movups [rsp + 144], xmm9",
        "movups [rsp + 160], xmm10",
        "movups [rsp + 176], xmm11",
        "movups [rsp + 192], xmm12",
        "movups [rsp + 208], xmm13",
        "movups [rsp + 224], xmm14",
        "movups [rsp + 240], xmm15",
        "movsd xmm0, [rsi]",
        "movsd xmm1, [rsi + 8]",
        "call rdi",
        "mov rsi, [rbp - 8]",
        "movsd [rsi], xmm0",
        "movups xmm0, [rsp]",
        "movups xmm1, [rsp + 16]",
        "movups xmm2, [rsp + 32]",
        "movups xmm3, [rsp + 48]",
        "movups xmm4, [rsp + 64]",
        "movups xmm5, [rsp + 80]",
        "movups xmm6, [rsp + 96]",
        "movups xmm7, [rsp + 112]",
        "movups xmm8, [rsp + 128]",
        "movups xmm9, [rsp + 144]",
        "movups xmm10, [rsp + 160]",
        "movups xmm11, [rsp + 176]",
        "movups xmm12, [rsp + 192]",
        "movups xmm13, [rsp + 208]",
        "movups xmm14, [rsp + 224]",
        "movups xmm15, [rsp + 240]",
        "add rsp, 264",
        "pop r11",
        "pop r10",
        "pop r9",
        "pop r8",
        "pop rdx",
        "pop rcx",
        "pop rax",
        "pop rdi",
        "pop rsi",
        "pop rbp",
        "ret",
    )
}

/// A placeholder that is not called, because code for other machines calls functions in the usual way.
#[cfg(not(all(target_arch = "x86_64", not(windows))))]
pub(crate) extern "C" fn call_preserving() {}
