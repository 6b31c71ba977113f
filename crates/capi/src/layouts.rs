//! Rust versions of the structs that the C header declares, with the same layout in memory. A test compares their layout with the header's. The
//! module `memory` reads the memory that their pointers point to.

use crate::memory::{ByteString, Flag, Text};
use std::ffi::c_void;
use std::fmt;

/// `cembra_problem`: one of the problems that an error lists, with its place in the text.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[expect(missing_docs, reason = "the header documents the fields")]
pub struct Problem<'e> {
    pub code: Text<'e>,
    pub message: Text<'e>,
    pub start: u32,
    pub end: u32,
    pub line: u32,
    pub column: u32,
}

/// `cembra_fault` of `cembra.h`: the fault that ended an evaluation.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[expect(missing_docs, reason = "the header documents the fields")]
pub struct Fault<'e> {
    pub kind: u32,
    pub start: u32,
    pub end: u32,
    pub unused: u32,
    pub operands: [u64; 2],
    pub operator_name: Text<'e>,
    pub message: Text<'e>,
}

/// `cembra_field`: the description of an input or an output of a program.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[expect(missing_docs, reason = "the header documents the fields")]
pub struct Field<'p> {
    pub name: Text<'p>,
    pub r#type: Text<'p>,
    pub default_value: Text<'p>,
    pub kind: u32,
    pub element: u32,
    pub rank: u32,
    pub optional: bool,
    pub has_default: bool,
}

/// `cembra_column`: the values of an input for many rows, or the elements of an array. Strides are in bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[expect(missing_docs, reason = "the header documents the fields")]
pub struct Column {
    pub kind: u32,
    pub presence_form: u32,
    pub data: *const c_void,
    pub stride: isize,
    pub presence: *const u8,
    pub presence_stride: isize,
    pub presence_bit: usize,
}

/// `cembra_column_mut`: the memory that an output's values for many rows are written to. Strides are in bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[expect(missing_docs, reason = "the header documents the fields")]
pub struct ColumnMut {
    pub kind: u32,
    pub presence_form: u32,
    pub data: *mut c_void,
    pub stride: isize,
    pub presence: *mut u8,
    pub presence_stride: isize,
    pub presence_bit: usize,
}

/// `cembra_array`: an input or output value that is an array of `len` elements.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[expect(missing_docs, reason = "the header documents the fields")]
pub struct Array {
    pub elements: Column,
    pub len: usize,
}

/// `cembra_tensor`: an input or output value that is a tensor, with `rank` extents and strides.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[expect(missing_docs, reason = "the header documents the fields")]
pub struct Tensor {
    pub element: u32,
    pub rank: u32,
    pub data: *const c_void,
    pub extents: *const usize,
    pub strides: *const isize,
}

/// `cembra_member`: the description of a struct's field: its name, kind and offset in bytes, and its own fields.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[expect(missing_docs, reason = "the header documents the fields")]
pub struct Member<'m> {
    pub name: Text<'m>,
    pub kind: u32,
    pub presence_form: u32,
    pub offset: usize,
    pub presence_offset: usize,
    pub members: *const Member<'m>,
    pub member_count: usize,
}

/// `cembra_struct`: an input value that is a struct: its address and the description of its fields.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[expect(missing_docs, reason = "the header documents the fields")]
pub struct Struct<'m> {
    pub data: *const c_void,
    pub members: *const Member<'m>,
    pub member_count: usize,
}

/// `cembra_list`: an input value that is a list of `len` structs or dictionary entries, with the description of their fields.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[expect(missing_docs, reason = "the header documents the fields")]
pub struct List<'m> {
    pub items: Column,
    pub len: usize,
    pub members: *const Member<'m>,
    pub member_count: usize,
}

/// `cembra_value`: the value of one input or output in a row.
#[repr(C)]
#[derive(Clone, Copy)]
#[expect(missing_docs, reason = "the header documents the fields")]
pub struct Value<'v> {
    pub kind: u32,
    pub present: Flag,
    pub r#as: Payload<'v>,
}

/// The content of a `cembra_value`. The `kind` of the value selects the union's member.
#[repr(C)]
#[derive(Clone, Copy)]
#[expect(missing_docs, reason = "the header documents the fields")]
pub union Payload<'v> {
    pub boolean: Flag,
    pub i32: i32,
    pub i64: i64,
    pub u64: u64,
    pub f32: f32,
    pub f64: f64,
    pub text: Text<'v>,
    pub bytes: ByteString<'v>,
    pub array: *const Array,
    pub tensor: *const Tensor,
    pub structure: *const Struct<'v>,
    pub list: *const List<'v>,
}

impl fmt::Debug for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Value({})", self.kind)
    }
}

impl fmt::Debug for Payload<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Payload")
    }
}
