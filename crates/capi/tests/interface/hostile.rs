//! Random calls of all functions that take texts, pointers, counts or strides. Most calls are invalid, and each must return an error or a result.
//! Promises that the header requires of the caller are kept: memory exists wherever a check accepts a size.
//!
//! The environment variable `CEMBRA_CAPI_CALLS` sets the number of calls; the default is 100,000.

#![expect(clippy::print_stderr, reason = "a test says how many calls made sense")]

use cembra::columns::cembra_session_run_columns;
use cembra::errors::{
    Error, cembra_error_code, cembra_error_free, cembra_error_message, cembra_error_problem, cembra_error_rendered,
};
use cembra::layouts::{Array, Column, ColumnMut, List, Member, Payload, Struct, Tensor, Value};
use cembra::memory::{Flag, Text};
use cembra::options::{
    Options, cembra_options_add_output, cembra_options_free, cembra_options_new, cembra_options_set_backend,
    cembra_options_set_input_type, cembra_options_set_limit, cembra_options_set_name,
};
use cembra::program::{
    Program, cembra_check, cembra_compile, cembra_program_free, cembra_program_input, cembra_program_output,
};
use cembra::rows::cembra_session_evaluate;
use cembra::session::{
    Session, cembra_session_failed_row, cembra_session_failure, cembra_session_free, cembra_session_new,
    cembra_session_set_deadline, cembra_session_set_limit, cembra_session_set_on_error, cembra_session_set_threads,
};
use fastrand::Rng;
use std::mem::MaybeUninit;

const MODELS: [&str; 11] = [
    "input x: f64; input y: f64?; output z = x * (y ?? 1.0); output w = y",
    "input n: i64; output q = 100 // n; output half = n % 7",
    "input t: text; input u: text?; output both = t + \"-\" + (u ?? \"none\"); output long = strings.length(t) > 3",
    "input b: bool; input m: unit?; output c = b == true; output i = if b then 1i32 else 2i32",
    "input x: [f64?]; output s = math.sum(x); output d = x * 2.0",
    "input a: tensor[f64, 2]; output t(\"j,i\") = a(\"i,j\")",
    "input p: {x: f64, name: text}; output q = {y: p.x}; output n = p.name",
    "output one = 1.0; output two = \"two\"",
    "input d: date; input k: u64; input s: bytes; output e = d; output f = k; output g = s",
    "input x: f32? = 0.5; input i: i32; output y = x * to_float32(i)",
    "input p: {x: f64, t: text?, i: {n: i64}?}; input items: [{x: f64?, t: text, i: {n: i64}}]; output s = sum(items.x); output t = p.t",
];

/// For each model, the kinds of its inputs and the number of its outputs.
const KINDS: [(&[u32], usize); 11] = [
    (&[7, 7], 2),
    (&[4], 2),
    (&[11, 11], 2),
    (&[2, 1], 2),
    (&[13], 2),
    (&[14], 1),
    (&[15], 2),
    (&[], 2),
    (&[8, 5, 12], 3),
    (&[6, 3], 1),
    (&[16, 17], 2),
];

/// For each model, the kinds of its outputs.
const MADE: [&[u32]; 11] =
    [&[7, 7], &[4, 4], &[11, 1], &[2, 3], &[7, 0], &[0], &[0, 11], &[7, 11], &[8, 5, 12], &[6], &[7, 11]];

const PIECES: [&str; 30] = [
    "input ",
    "output ",
    "let ",
    "x",
    "y",
    ": f64",
    ": text?",
    ": [i64]",
    ": {a: f64, b: {c: text}?}",
    ": tensor[f32, 3]",
    " = ",
    " + ",
    " * ",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    "1",
    "2.5",
    "\"text\"",
    "where",
    ", ",
    "; ",
    "\n",
    "math.sum",
    "-> ",
    "é",
    "\u{0}",
];

const TYPES: [&str; 14] = [
    "f64",
    "f64?",
    "text",
    "[f64]",
    "[text]?",
    "tensor[f64, 2]",
    "tensor[bool, 99]",
    "{x: f64}",
    "{x: {y: [i32]}?}",
    "map[text, f64]",
    "(f64, i64)",
    "unit?",
    "[[f64]]",
    "f6",
];

/// A generator of arguments: memory that calls may read and write, and counts that no memory can have.
struct Hostile {
    random: Rng,
    words: Vec<u64>,
    bytes: Vec<u8>,
    places: Vec<u64>,
    texts: Vec<Text<'static>>,
    /// The kinds for the next values. The last element is used first.
    wanted: Vec<u32>,
}

impl Hostile {
    fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.random.usize(0..of.len())]
    }

    /// Returns the next kind that the current model requires, or now and then any kind.
    fn kind(&mut self) -> u32 {
        let wanted = self.wanted.pop();
        match (self.random.u8(0..20), wanted) {
            (0, _) => self.random.u32(..),
            (3.., Some(wanted)) => wanted,
            _ => self.random.u32(0..19),
        }
    }

    /// Sets the kinds for the next values.
    fn want(&mut self, kinds: &[u32]) {
        self.wanted = kinds.iter().rev().copied().collect();
    }

    /// Returns a random text: made of pieces, of arbitrary bytes, null, or longer than the address space.
    fn text(&mut self, pieces: &[&str]) -> (String, Option<Text<'static>>) {
        match self.random.u8(0..12) {
            0 => {
                // SAFETY: C-MEMORY: nothing is read of null, and of what is longer than memory.
                let text = unsafe { Text::from_raw(std::ptr::null(), self.random.usize(0..3)) };
                (String::new(), Some(text))
            }
            1 => {
                let len = self.one(&[usize::MAX, 1 << 63, (1 << 63) + 7]);
                // SAFETY: C-MEMORY, likewise.
                (String::new(), Some(unsafe { Text::from_raw(self.bytes.as_ptr().cast(), len) }))
            }
            2 => {
                let len = self.random.usize(0..64);
                // SAFETY: C-MEMORY: there are so many bytes, which are no UTF-8 for the most part.
                (String::new(), Some(unsafe { Text::from_raw(self.bytes.as_ptr().cast(), len) }))
            }
            _ => {
                let count = self.random.usize(0..12);
                ((0..count).map(|_| self.one(pieces)).collect(), None)
            }
        }
    }

    /// Returns a random count of values: small, or larger than any memory.
    fn count(&mut self) -> usize {
        match self.random.u8(0..8) {
            0 => self.one(&[usize::MAX, 1 << 63, 1 << 60, (1 << 61) + 1, isize::MAX as usize]),
            _ => self.random.usize(0..9),
        }
    }

    /// Returns a random stride with which 16 values fit into the memory, or one that the library must refuse.
    fn stride(&mut self) -> isize {
        self.one(&[8, 8, 8, 16, 16, 24, 0, -8, -16, 4, 1, 12, 3, isize::MIN, isize::MAX, 32])
    }

    /// Returns a random address: the middle of the memory, an odd address, or null.
    fn data<T>(&mut self, of: *mut T) -> *mut T {
        match self.random.u8(0..10) {
            0 => std::ptr::null_mut(),
            1 => of.cast::<u8>().wrapping_add(2048 + self.random.usize(0..8)).cast(),
            _ => of.cast::<u8>().wrapping_add(2048).cast(),
        }
    }

    fn column(&mut self) -> Column {
        let kind = self.kind();
        let texts = self.texts.as_mut_ptr();
        let words = self.words.as_mut_ptr();
        // Of what is read as views, views.
        let is_view = kind == 11 || kind == 12;
        let (data, stride) = if is_view {
            let data = if self.random.u8(0..9) == 0 { std::ptr::null() } else { texts.cast_const().cast() };
            (data, self.one(&[16, 32, 0, 48, 8, 17]))
        } else {
            (self.data(words).cast_const().cast(), self.stride())
        };
        let bytes = self.bytes.as_mut_ptr();
        Column {
            kind,
            presence_form: if self.random.u8(0..20) == 0 { self.random.u32(..) } else { self.random.u32(0..4) },
            data,
            stride,
            presence: self.data(bytes).cast_const(),
            presence_stride: self.one(&[1, 2, 0, -1, 9, isize::MAX]),
            presence_bit: self.one(&[0, 1, 7, 9, usize::MAX]),
        }
    }

    /// Returns descriptions of fields whose memory is an array of texts. Texts are read only at the places of texts; as numbers, any bits are valid.
    fn members(&mut self, inner: &[Member<'static>]) -> Vec<Member<'static>> {
        let known = [("x", 7), ("t", 11), ("i", 16), ("n", 4), ("y", 3)];
        let count = self.random.usize(0..9).max(3);
        let mut all = Vec::new();
        for at in 0..count {
            let (name, kind) = if self.random.u8(0..9) > 0 { known[at % 5] } else { self.one(&known) };
            let kind = if self.random.u8(0..20) > 0 { kind } else { self.random.u32(0..20) };
            let offset = match kind {
                11 | 12 => self.one(&[0, 0, 16, 16, 32, 4]),
                _ => self.one(&[0, 8, 8, 16, 24, 24, 3]),
            };
            let is_far = self.random.u8(0..50) == 0;
            all.push(Member {
                name: Text::new(name),
                kind,
                presence_form: if self.random.u8(0..30) == 0 { self.random.u32(..) } else { self.random.u32(0..2) },
                offset: if is_far { usize::MAX - offset } else { offset },
                presence_offset: self.one(&[0, 0, 5, 16, 40]),
                members: if self.random.u8(0..20) == 0 { std::ptr::null() } else { inner.as_ptr() },
                member_count: inner.len(),
            });
        }
        all
    }

    fn column_mut(&mut self) -> ColumnMut {
        let Column { kind, presence_form, stride, presence_stride, presence_bit, .. } = self.column();
        let (places, bytes) = (self.places.as_mut_ptr(), self.bytes.as_mut_ptr());
        // Presence goes where no texts are read.
        let presence = self.data(bytes).wrapping_add(2048);
        ColumnMut {
            kind,
            presence_form,
            data: self.data(places).cast(),
            stride,
            presence: if presence == 2048 as *mut u8 { std::ptr::null_mut() } else { presence },
            presence_stride,
            presence_bit,
        }
    }
}

fn see(error: Option<Box<Error>>, seen: &mut [usize; 2]) {
    let Some(error) = error else {
        seen[0] += 1;
        return;
    };
    seen[1] += 1;
    let code = cembra_error_code(Some(&error)).as_str().expect("text");
    let message = cembra_error_message(Some(&error)).as_str().expect("text");
    assert!(!code.is_empty() && code != "internal", "{code}: {message}");
    assert!(cembra_error_rendered(Some(&error)).as_str().is_some_and(|shown| !shown.is_empty()));
    assert!(cembra_error_problem(Some(&error), 0, Some(&mut MaybeUninit::uninit())));
    cembra_error_free(Some(error));
}

fn options(hostile: &mut Hostile, seen: &mut [usize; 2]) -> Box<Options> {
    let mut options = cembra_options_new().expect("options");
    for _ in 0..hostile.random.u8(0..3) {
        let (name, raw) = hostile.text(&["x", "y", "nodes", "array_bytes"]);
        let name = raw.unwrap_or_else(|| Text::new(&name));
        let (spelled, raw) = hostile.text(&TYPES);
        let spelled = raw.unwrap_or_else(|| Text::new(&spelled));
        let set = match hostile.random.u8(0..5) {
            0 => cembra_options_set_name(Some(&mut options), name),
            1 => cembra_options_set_input_type(Some(&mut options), name, spelled),
            2 => cembra_options_set_backend(Some(&mut options), hostile.random.u32(0..7)),
            3 => cembra_options_set_limit(Some(&mut options), name, hostile.random.u64(..)),
            _ => cembra_options_add_output(Some(&mut options), name),
        };
        see(set, seen);
    }
    options
}

fn compile(hostile: &mut Hostile, seen: &mut [usize; 2]) {
    let options = options(hostile, seen);
    let (text, raw) = match hostile.random.bool() {
        true => hostile.text(&PIECES),
        false => (hostile.one(&MODELS).to_owned() + hostile.one(&PIECES), None),
    };
    let text = raw.unwrap_or_else(|| Text::new(&text));
    let options_given = if hostile.random.bool() { Some(&*options) } else { None };
    if hostile.random.bool() {
        let mut warnings = MaybeUninit::new(None);
        see(cembra_check(text, options_given, Some(&mut warnings)), seen);
        // SAFETY: C-MEMORY: the place began as none, and whole handles are written.
        see(unsafe { warnings.assume_init() }, seen);
    } else {
        let mut program = MaybeUninit::new(None);
        see(cembra_compile(text, options_given, Some(&mut program)), seen);
        // SAFETY: C-MEMORY, likewise.
        let program: Option<Box<Program>> = unsafe { program.assume_init() };
        let index = hostile.count();
        let _ = cembra_program_input(program.as_deref(), index, Some(&mut MaybeUninit::uninit()));
        let _ = cembra_program_output(program.as_deref(), index, None);
        cembra_program_free(program);
    }
    cembra_options_free(Some(options));
}

fn row(hostile: &mut Hostile, session: &mut Session, at: usize, seen: &mut [usize; 2]) {
    let (kinds, made) = KINDS[at];
    hostile.want(&[]);
    let literals: Vec<String> = (0..4).map(|_| hostile.text(&PIECES).0).collect();
    let arrays: Vec<Array> = (0..4).map(|_| Array { elements: hostile.column(), len: hostile.count() }).collect();
    let sizes: Vec<usize> = (0..4).map(|_| hostile.one(&[0, 1, 2, 3, 1 << 33, 1 << 62, usize::MAX])).collect();
    let strides: Vec<isize> = (0..4).map(|_| hostile.one(&[0, 1, 3, -1, -3, isize::MIN, isize::MAX])).collect();
    let words = hostile.words.as_mut_ptr();
    let tensors: Vec<Tensor> = (0..4)
        .map(|_| Tensor {
            element: hostile.kind(),
            rank: if hostile.random.u8(0..9) == 0 { hostile.random.u32(..) } else { hostile.random.u32(0..4) },
            data: hostile.data(words).cast_const().cast(),
            extents: if hostile.random.u8(0..9) == 0 { std::ptr::null() } else { sizes.as_ptr() },
            strides: if hostile.random.bool() { std::ptr::null() } else { strides.as_ptr() },
        })
        .collect();
    let inner = hostile.members(&[]);
    let members = hostile.members(&inner);
    let member_count = members.len();
    // The middle of the texts, so that lists may go back.
    let data = hostile.texts[32..].as_ptr().cast();
    let lists: Vec<List<'_>> = (0..4)
        .map(|_| {
            let stride = hostile.one(&[16, 16, 32, 48, 0, -16, 12, 17, isize::MIN, isize::MAX]);
            let kind = if hostile.random.u8(0..9) > 0 { 16 } else { hostile.kind() };
            let data = if hostile.random.u8(0..20) > 0 { data } else { std::ptr::null() };
            let items = Column { kind, data, stride, ..hostile.column() };
            List { items, len: hostile.count(), members: members.as_ptr(), member_count }
        })
        .collect();
    let structs: Vec<Struct<'_>> = (0..4)
        .map(|_| {
            let data = if hostile.random.u8(0..20) > 0 { data } else { std::ptr::null() };
            Struct { data, members: members.as_ptr(), member_count }
        })
        .collect();
    hostile.want(kinds);
    let values: Vec<Value<'_>> = (0..4)
        .map(|at| {
            let kind = hostile.kind();
            let r#as = match kind {
                11 | 12 | 15 => match hostile.text(&PIECES).1 {
                    Some(raw) => Payload { text: raw },
                    None => Payload { text: Text::new(&literals[at]) },
                },
                13 if hostile.random.u8(0..9) > 0 => Payload { array: &raw const arrays[at] },
                14 if hostile.random.u8(0..9) > 0 => Payload { tensor: &raw const tensors[at] },
                16 if hostile.random.u8(0..9) > 0 => Payload { structure: &raw const structs[at] },
                17 if hostile.random.u8(0..9) > 0 => Payload { list: &raw const lists[at] },
                13 | 14 | 16 | 17 => Payload { array: std::ptr::null() },
                _ => Payload { u64: hostile.random.u64(..) },
            };
            Value { kind, present: Flag(hostile.random.u8(0..4)), r#as }
        })
        .collect();
    let mut few = |usual: usize| if hostile.random.u8(0..9) == 0 { hostile.random.usize(0..5) } else { usual };
    let (given, wanted) = (few(kinds.len()), few(made));
    let inputs = if hostile.random.u8(0..9) == 0 { std::ptr::null() } else { values.as_ptr() };
    let mut outputs = [Value { kind: 0, present: Flag(0), r#as: Payload { u64: 0 } }; 4];
    let to = if hostile.random.u8(0..9) == 0 { std::ptr::null_mut() } else { outputs.as_mut_ptr() };
    // SAFETY: C-MEMORY: counts are at most those of the lists, or pointers null.
    see(unsafe { cembra_session_evaluate(Some(session), inputs, given, to, wanted) }, seen);
    if hostile.random.u8(0..50) == 0 {
        let count = hostile.one(&[usize::MAX, 1 << 60, 1 << 63]);
        // SAFETY: C-MEMORY: nothing is read of more values than memory has.
        see(unsafe { cembra_session_evaluate(Some(session), values.as_ptr(), count, to, wanted) }, seen);
    }
}

fn rows(hostile: &mut Hostile, session: &mut Session, at: usize, seen: &mut [usize; 2]) {
    hostile.want(KINDS[at].0);
    let inputs: Vec<Column> = (0..4).map(|_| hostile.column()).collect();
    hostile.want(MADE[at]);
    let outputs: Vec<ColumnMut> = (0..4).map(|_| hostile.column_mut()).collect();
    let mut few = |usual: usize| if hostile.random.u8(0..9) == 0 { hostile.random.usize(0..5) } else { usual };
    let (given, wanted) = (few(KINDS[at].0.len()), few(KINDS[at].1));
    let rows = hostile.count();
    // SAFETY: C-MEMORY: counts are at most those of the lists; columns have memory for few rows, and none have that for more.
    let done =
        unsafe { cembra_session_run_columns(Some(session), rows, inputs.as_ptr(), given, outputs.as_ptr(), wanted) };
    see(done, seen);
    let index = hostile.count();
    let _ = cembra_session_failed_row(Some(session), index, Some(&mut MaybeUninit::uninit()));
    see(cembra_session_failure(Some(session), index), &mut [0; 2]);
}

fn settings(hostile: &mut Hostile, session: &mut Session, seen: &mut [usize; 2]) {
    let (name, raw) = hostile.text(&["arena_bytes", "array_bytes", "loop_iterations"]);
    let name = raw.unwrap_or_else(|| Text::new(&name));
    let value = hostile.one(&[0, 1, 1 << 20, u64::MAX]);
    let set = match hostile.random.u8(0..4) {
        0 => cembra_session_set_deadline(Some(session), hostile.one(&[0, 60_000, u64::MAX])),
        1 => cembra_session_set_limit(Some(session), name, value.max(1 << 20)),
        2 => cembra_session_set_threads(Some(session), hostile.one(&[0, 1, 2, usize::MAX])),
        _ => cembra_session_set_on_error(Some(session), hostile.random.u32(0..4)),
    };
    see(set, seen);
}

fn session(text: &str, options: &Options) -> Box<Session> {
    let (mut program, mut session) = (MaybeUninit::new(None), MaybeUninit::new(None));
    let error = cembra_compile(Text::new(text), Some(options), Some(&mut program));
    assert!(error.is_none(), "{text}: {error:?}");
    // SAFETY: C-MEMORY: the places began as none, and whole handles are written.
    unsafe {
        assert!(cembra_session_new(program.assume_init().as_deref(), Some(&mut session)).is_none());
        session.assume_init().expect("a session")
    }
}

#[test]
fn calls_that_make_no_sense_are_errors() {
    let calls = std::env::var("CEMBRA_CAPI_CALLS").ok().and_then(|calls| calls.parse().ok()).unwrap_or(100_000_u64);
    let mut random = Rng::with_seed(7);
    let mut hostile = Hostile {
        words: (0..1024).map(|_| if random.bool() { random.u64(0..4) } else { random.u64(..) }).collect(),
        bytes: (0..16_384).map(|_| random.u8(..)).collect(),
        places: vec![0; 1024],
        texts: (0..64).map(|at| Text::new(["", "a", "longer than a view of Arrow", "é"][at % 4])).collect(),
        random,
        wanted: Vec::new(),
    };
    let mut options_of_small = cembra_options_new().expect("options");
    // So that lists of one element a billion times are refused at once.
    assert!(cembra_options_set_limit(Some(&mut options_of_small), Text::new("array_bytes"), 1 << 20).is_none());
    let mut sessions: Vec<Box<Session>> = MODELS.iter().map(|text| session(text, &options_of_small)).collect();
    let (mut compiled, mut evaluated, mut run, mut set) = ([0; 2], [0; 2], [0; 2], [0; 2]);
    for _ in 0..calls {
        let at = hostile.random.usize(0..sessions.len());
        match hostile.random.u8(0..20) {
            0 => compile(&mut hostile, &mut compiled),
            1 => settings(&mut hostile, &mut sessions[at], &mut set),
            2..10 => row(&mut hostile, &mut sessions[at], at, &mut evaluated),
            _ => rows(&mut hostile, &mut sessions[at], at, &mut run),
        }
    }
    sessions.into_iter().for_each(|session| cembra_session_free(Some(session)));
    // Some of the calls make sense by chance.
    for (what, [good, bad]) in [("compiled", compiled), ("evaluated", evaluated), ("run", run), ("set", set)] {
        eprintln!("{what}: {good} without an error, {bad} with one");
        assert!(good > 0 && bad > 0, "{what}: {good}, {bad}");
    }
}
