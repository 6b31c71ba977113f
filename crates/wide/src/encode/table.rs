//! The table of vector and mask instructions, with their EVEX and VEX encodings. For each instruction of a tape (a straight-line program), the files
//! in `select` choose from these instructions.

/// The placement of an instruction's operands in the fields of its encoding: `reg`, `vvvv` and `rm`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Shape {
    /// The result is in `reg`, the first operand in `vvvv`, the second in `rm`.
    Rvm,
    /// The result is in `reg`, the operand in `rm`.
    Rm,
    /// The result is in `rm`, the operand in `reg`.
    Mr,
    /// The result is in `vvvv`, the operand in `rm`; `reg` has this extension of the opcode.
    Vm(u8),
}

/// The size of an instruction's memory operand: a whole vector, half a vector, or one element. One-byte displacements count in units of this size.
/// The variant also tells whether the operand may be a single element that is broadcast to all lanes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Tuple {
    /// The memory operand is a whole vector, or one element of this many bytes, which is broadcast.
    Full(u8),
    /// The memory operand is a whole vector, without broadcast.
    Whole,
    /// The memory operand is half a vector, or one element of this many bytes, which is broadcast.
    Half(u8),
    /// The memory operand is half a vector, without broadcast.
    HalfWhole,
    /// The memory operand is a single element of this many bytes.
    Scalar(u8),
    /// The instruction cannot have a memory operand.
    None,
}

/// A row of the instruction table: the encoding of one instruction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Form {
    /// The instruction's name in other assemblers, for tests that compare encodings.
    #[cfg(test)]
    pub(crate) name: &'static str,
    pub(crate) map: u8,
    pub(crate) prefix: u8,
    pub(crate) opcode: u8,
    /// The bit W of the instruction's EVEX prefix, which selects the element width; `None` if the instruction has no EVEX encoding.
    pub(crate) evex: Option<bool>,
    /// The bit W of the instruction's VEX prefix, which selects the element width; `None` if the instruction has no VEX encoding.
    pub(crate) vex: Option<bool>,
    pub(crate) shape: Shape,
    pub(crate) tuple: Tuple,
    /// The vector lengths that the instruction may have, one bit for each of 128, 256 and 512 bits.
    pub(crate) lengths: u8,
    /// True if the instruction ends with an immediate byte.
    pub(crate) immediate: bool,
    /// True if the instruction's two operands may be swapped.
    pub(crate) commutes: bool,
}

macro_rules! w {
    (-) => {
        None
    };
    (0) => {
        Some(false)
    };
    (1) => {
        Some(true)
    };
}

macro_rules! table {
    ($($code:ident $name:literal $map:literal $prefix:literal $opcode:literal $evex:tt $vex:tt
       $shape:ident $(($more:literal))? $tuple:ident $(($bytes:literal))? $lengths:literal
       $($immediate:ident)? $(, $commutes:ident)?;)*) => {
        /// The vector and mask instructions of the table, one variant per row.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub(crate) enum Code { $($code),* }

        /// The rows of the table of instructions, in the order of [`Code`].
        pub(crate) const TABLE: &[Form] = &[$(Form {
            #[cfg(test)]
            name: $name,
            map: $map, prefix: $prefix, opcode: $opcode, evex: w!($evex), vex: w!($vex),
            shape: Shape::$shape $(($more))?, tuple: Tuple::$tuple $(($bytes))?, lengths: $lengths,
            immediate: false $(|| stringify!($immediate).len() == 3)?,
            commutes: false $(|| stringify!($commutes).len() == 8)?,
        }),*];

        #[cfg(test)]
        pub(crate) const ALL: &[Code] = &[$(Code::$code),*];
    };
}

impl Code {
    /// The row of the table that describes this instruction.
    pub(crate) const fn form(self) -> &'static Form {
        &TABLE[self as usize]
    }
}

// code, name, map, prefix (0 none, 1 66, 2 F3, 3 F2), opcode, W of EVEX and of VEX, shape, memory, lengths.
table! {
    Add32 "vaddps" 1 0 0x58 0 0 Rvm Full(4) 7, commutes;
    Add64 "vaddpd" 1 1 0x58 1 0 Rvm Full(8) 7, commutes;
    Mul32 "vmulps" 1 0 0x59 0 0 Rvm Full(4) 7, commutes;
    Mul64 "vmulpd" 1 1 0x59 1 0 Rvm Full(8) 7, commutes;
    Sub32 "vsubps" 1 0 0x5C 0 0 Rvm Full(4) 7;
    Sub64 "vsubpd" 1 1 0x5C 1 0 Rvm Full(8) 7;
    Min32 "vminps" 1 0 0x5D 0 0 Rvm Full(4) 7;
    Min64 "vminpd" 1 1 0x5D 1 0 Rvm Full(8) 7;
    Div32 "vdivps" 1 0 0x5E 0 0 Rvm Full(4) 7;
    Div64 "vdivpd" 1 1 0x5E 1 0 Rvm Full(8) 7;
    Max32 "vmaxps" 1 0 0x5F 0 0 Rvm Full(4) 7;
    Max64 "vmaxpd" 1 1 0x5F 1 0 Rvm Full(8) 7;
    Sqrt32 "vsqrtps" 1 0 0x51 0 0 Rm Full(4) 7;
    Sqrt64 "vsqrtpd" 1 1 0x51 1 0 Rm Full(8) 7;
    And32 "vandps" 1 0 0x54 0 0 Rvm Full(4) 7, commutes;
    And64 "vandpd" 1 1 0x54 1 0 Rvm Full(8) 7, commutes;
    AndNot32 "vandnps" 1 0 0x55 0 0 Rvm Full(4) 7;
    AndNot64 "vandnpd" 1 1 0x55 1 0 Rvm Full(8) 7;
    Or32 "vorps" 1 0 0x56 0 0 Rvm Full(4) 7, commutes;
    Or64 "vorpd" 1 1 0x56 1 0 Rvm Full(8) 7, commutes;
    Xor32 "vxorps" 1 0 0x57 0 0 Rvm Full(4) 7, commutes;
    Xor64 "vxorpd" 1 1 0x57 1 0 Rvm Full(8) 7, commutes;
    Cmp32 "vcmpps" 1 0 0xC2 0 - Rvm Full(4) 7 imm;
    Cmp64 "vcmppd" 1 1 0xC2 1 - Rvm Full(8) 7 imm;
    CmpVector32 "vcmpps" 1 0 0xC2 - 0 Rvm Whole 3 imm;
    CmpVector64 "vcmppd" 1 1 0xC2 - 0 Rvm Whole 3 imm;
    CmpInt32 "vpcmpd" 3 1 0x1F 0 - Rvm Full(4) 7 imm;
    CmpInt64 "vpcmpq" 3 1 0x1F 1 - Rvm Full(8) 7 imm;
    TestNot32 "vptestnmd" 2 2 0x27 0 - Rvm Full(4) 7, commutes;
    TestNot64 "vptestnmq" 2 2 0x27 1 - Rvm Full(8) 7, commutes;
    Equal32 "vpcmpeqd" 1 1 0x76 - 0 Rvm Whole 3, commutes;
    Equal64 "vpcmpeqq" 2 1 0x29 - 0 Rvm Whole 3, commutes;
    Greater32 "vpcmpgtd" 1 1 0x66 - 0 Rvm Whole 3;
    Greater64 "vpcmpgtq" 2 1 0x37 - 0 Rvm Whole 3;
    Blend32 "vblendmps" 2 1 0x65 0 - Rvm Full(4) 7;
    Blend64 "vblendmpd" 2 1 0x65 1 - Rvm Full(8) 7;
    BlendVector32 "vblendvps" 3 1 0x4A - 0 Rvm Whole 3 imm;
    BlendVector64 "vblendvpd" 3 1 0x4B - 0 Rvm Whole 3 imm;
    Load32 "vmovups" 1 0 0x10 0 0 Rm Whole 7;
    Load64 "vmovupd" 1 1 0x10 1 0 Rm Whole 7;
    Store32 "vmovups" 1 0 0x11 0 0 Mr Whole 7;
    Store64 "vmovupd" 1 1 0x11 1 0 Mr Whole 7;
    Stream32 "vmovntps" 1 0 0x2B 0 0 Mr Whole 7;
    Move "vmovaps" 1 0 0x28 0 0 Rm Whole 7;
    Broadcast32 "vbroadcastss" 2 1 0x18 0 0 Rm Scalar(4) 7;
    Broadcast64 "vbroadcastsd" 2 1 0x19 1 0 Rm Scalar(8) 6;
    BroadcastByte "vpbroadcastb" 2 1 0x78 - 0 Rm Scalar(1) 3;
    Round32 "vrndscaleps" 3 1 0x08 0 - Rm Full(4) 7 imm;
    Round64 "vrndscalepd" 3 1 0x09 1 - Rm Full(8) 7 imm;
    RoundVector32 "vroundps" 3 1 0x08 - 0 Rm Whole 3 imm;
    RoundVector64 "vroundpd" 3 1 0x09 - 0 Rm Whole 3 imm;
    Mantissa32 "vgetmantps" 3 1 0x26 0 - Rm Full(4) 7 imm;
    Mantissa64 "vgetmantpd" 3 1 0x26 1 - Rm Full(8) 7 imm;
    Exponent32 "vgetexpps" 2 1 0x42 0 - Rm Full(4) 7;
    Exponent64 "vgetexppd" 2 1 0x42 1 - Rm Full(8) 7;
    Scale32 "vscalefps" 2 1 0x2C 0 - Rvm Full(4) 7;
    Scale64 "vscalefpd" 2 1 0x2C 1 - Rvm Full(8) 7;
    Fma132x32 "vfmadd132ps" 2 1 0x98 0 0 Rvm Full(4) 7;
    Fma132x64 "vfmadd132pd" 2 1 0x98 1 1 Rvm Full(8) 7;
    Fma213x32 "vfmadd213ps" 2 1 0xA8 0 0 Rvm Full(4) 7;
    Fma213x64 "vfmadd213pd" 2 1 0xA8 1 1 Rvm Full(8) 7;
    Fma231x32 "vfmadd231ps" 2 1 0xB8 0 0 Rvm Full(4) 7;
    Fma231x64 "vfmadd231pd" 2 1 0xB8 1 1 Rvm Full(8) 7;
    Fms132x32 "vfmsub132ps" 2 1 0x9A 0 0 Rvm Full(4) 7;
    Fms132x64 "vfmsub132pd" 2 1 0x9A 1 1 Rvm Full(8) 7;
    Fms213x32 "vfmsub213ps" 2 1 0xAA 0 0 Rvm Full(4) 7;
    Fms213x64 "vfmsub213pd" 2 1 0xAA 1 1 Rvm Full(8) 7;
    Fms231x32 "vfmsub231ps" 2 1 0xBA 0 0 Rvm Full(4) 7;
    Fms231x64 "vfmsub231pd" 2 1 0xBA 1 1 Rvm Full(8) 7;
    Fnma132x32 "vfnmadd132ps" 2 1 0x9C 0 0 Rvm Full(4) 7;
    Fnma132x64 "vfnmadd132pd" 2 1 0x9C 1 1 Rvm Full(8) 7;
    Fnma213x32 "vfnmadd213ps" 2 1 0xAC 0 0 Rvm Full(4) 7;
    Fnma213x64 "vfnmadd213pd" 2 1 0xAC 1 1 Rvm Full(8) 7;
    Fnma231x32 "vfnmadd231ps" 2 1 0xBC 0 0 Rvm Full(4) 7;
    Fnma231x64 "vfnmadd231pd" 2 1 0xBC 1 1 Rvm Full(8) 7;
    Fnms132x32 "vfnmsub132ps" 2 1 0x9E 0 0 Rvm Full(4) 7;
    Fnms132x64 "vfnmsub132pd" 2 1 0x9E 1 1 Rvm Full(8) 7;
    Fnms213x32 "vfnmsub213ps" 2 1 0xAE 0 0 Rvm Full(4) 7;
    Fnms213x64 "vfnmsub213pd" 2 1 0xAE 1 1 Rvm Full(8) 7;
    Fnms231x32 "vfnmsub231ps" 2 1 0xBE 0 0 Rvm Full(4) 7;
    Fnms231x64 "vfnmsub231pd" 2 1 0xBE 1 1 Rvm Full(8) 7;
    Ternary32 "vpternlogd" 3 1 0x25 0 - Rvm Full(4) 7 imm;
    Ternary64 "vpternlogq" 3 1 0x25 1 - Rvm Full(8) 7 imm;
    AddInt32 "vpaddd" 1 1 0xFE 0 0 Rvm Full(4) 7, commutes;
    AddInt64 "vpaddq" 1 1 0xD4 1 0 Rvm Full(8) 7, commutes;
    SubInt32 "vpsubd" 1 1 0xFA 0 0 Rvm Full(4) 7;
    SubInt64 "vpsubq" 1 1 0xFB 1 0 Rvm Full(8) 7;
    MulInt32 "vpmulld" 2 1 0x40 0 0 Rvm Full(4) 7, commutes;
    MulInt64 "vpmullq" 2 1 0x40 1 - Rvm Full(8) 7, commutes;
    MulHalves "vpmuludq" 1 1 0xF4 1 0 Rvm Full(8) 7, commutes;
    AndInt32 "vpandd" 1 1 0xDB 0 - Rvm Full(4) 7, commutes;
    AndInt64 "vpandq" 1 1 0xDB 1 - Rvm Full(8) 7, commutes;
    OrInt32 "vpord" 1 1 0xEB 0 - Rvm Full(4) 7, commutes;
    OrInt64 "vporq" 1 1 0xEB 1 - Rvm Full(8) 7, commutes;
    XorInt32 "vpxord" 1 1 0xEF 0 - Rvm Full(4) 7, commutes;
    XorInt64 "vpxorq" 1 1 0xEF 1 - Rvm Full(8) 7, commutes;
    AndVector "vpand" 1 1 0xDB - 0 Rvm Whole 3, commutes;
    AndNotVector "vpandn" 1 1 0xDF - 0 Rvm Whole 3;
    OrVector "vpor" 1 1 0xEB - 0 Rvm Whole 3, commutes;
    XorVector "vpxor" 1 1 0xEF - 0 Rvm Whole 3, commutes;
    AbsInt32 "vpabsd" 2 1 0x1E 0 0 Rm Full(4) 7;
    AbsInt64 "vpabsq" 2 1 0x1F 1 - Rm Full(8) 7;
    Left32 "vpslld" 1 1 0x72 0 0 Vm(6) Full(4) 7 imm;
    Left64 "vpsllq" 1 1 0x73 1 0 Vm(6) Full(8) 7 imm;
    Right32 "vpsrld" 1 1 0x72 0 0 Vm(2) Full(4) 7 imm;
    Right64 "vpsrlq" 1 1 0x73 1 0 Vm(2) Full(8) 7 imm;
    IntToFloat32 "vcvtdq2ps" 1 0 0x5B 0 0 Rm Full(4) 7;
    IntToFloat32x64 "vcvtdq2pd" 1 2 0xE6 0 0 Rm Half(4) 7;
    IntToFloat64x32 "vcvtqq2ps" 1 0 0x5B 1 - Rm Full(8) 7;
    IntToFloat64 "vcvtqq2pd" 1 2 0xE6 1 - Rm Full(8) 7;
    Widen "vcvtps2pd" 1 0 0x5A 0 0 Rm Half(4) 7;
    Narrow "vcvtpd2ps" 1 1 0x5A 1 0 Rm Full(8) 7;
    FloatToInt32 "vcvttps2dq" 1 2 0x5B 0 0 Rm Full(4) 7;
    FloatToInt64x32 "vcvttpd2dq" 1 1 0xE6 1 0 Rm Full(8) 7;
    FloatToInt32x64 "vcvttps2qq" 1 1 0x7A 0 - Rm Half(4) 7;
    FloatToInt64 "vcvttpd2qq" 1 1 0x7A 1 - Rm Full(8) 7;
    WidenInt "vpmovsxdq" 2 1 0x25 0 0 Rm HalfWhole 7;
    NarrowInt "vpmovqd" 2 2 0x35 0 - Mr HalfWhole 7;
    UpperHalf "vextractf128" 3 1 0x19 - 0 Mr HalfWhole 2 imm;
    UpperHalf512 "vextractf32x8" 3 1 0x1B 0 - Mr HalfWhole 4 imm;
    Shuffle32 "vshufps" 1 0 0xC6 0 0 Rvm Full(4) 7 imm;
    SignsOf32 "vmovmskps" 1 0 0x50 - 0 Rm None 3;
    SignsOf64 "vmovmskpd" 1 1 0x50 - 0 Rm None 3;
    FromInteger "vmovd" 1 1 0x6E - 0 Rm None 1;
    MaskAnd8 "kandb" 1 1 0x41 - 0 Rvm None 2, commutes;
    MaskAnd16 "kandw" 1 0 0x41 - 0 Rvm None 2, commutes;
    MaskAndNot8 "kandnb" 1 1 0x42 - 0 Rvm None 2;
    MaskAndNot16 "kandnw" 1 0 0x42 - 0 Rvm None 2;
    MaskNot8 "knotb" 1 1 0x44 - 0 Rm None 1;
    MaskNot16 "knotw" 1 0 0x44 - 0 Rm None 1;
    MaskOr8 "korb" 1 1 0x45 - 0 Rvm None 2, commutes;
    MaskOr16 "korw" 1 0 0x45 - 0 Rvm None 2, commutes;
    MaskXor8 "kxorb" 1 1 0x47 - 0 Rvm None 2, commutes;
    MaskXor16 "kxorw" 1 0 0x47 - 0 Rvm None 2, commutes;
    MaskTest8 "kortestb" 1 1 0x98 - 0 Rm None 1;
    MaskTest16 "kortestw" 1 0 0x98 - 0 Rm None 1;
    MaskLoad8 "kmovb" 1 1 0x90 - 0 Rm Scalar(1) 1;
    MaskLoad16 "kmovw" 1 0 0x90 - 0 Rm Scalar(2) 1;
    MaskLoad64 "kmovq" 1 0 0x90 - 1 Rm Scalar(8) 1;
    MaskStore8 "kmovb" 1 1 0x91 - 0 Mr Scalar(1) 1;
    MaskStore16 "kmovw" 1 0 0x91 - 0 Mr Scalar(2) 1;
    MaskStore64 "kmovq" 1 0 0x91 - 1 Mr Scalar(8) 1;
    MaskFromInteger "kmovw" 1 0 0x92 - 0 Rm None 1;
    IntegerFromMask "kmovw" 1 0 0x93 - 0 Rm None 1;
}
