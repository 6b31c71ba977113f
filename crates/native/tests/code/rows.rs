//! Compares native evaluation of rows with the interpreter, row by row: models of every kind, columns of all formats,
//! any number of rows, and rows that fail among others. The tests also check that the memory around outputs is not
//! written.

use cembra_expr::parse;
use cembra_native::{CompiledRows, ErrorKind, Tier, compile_rows};
use cembra_ops::Registry;
use cembra_plan::{Function, Plan, ValueId, build};
use cembra_prepare::{Options, prepare};
use cembra_runtime::{
    BatchFunction, Bytes, Column, ColumnForm, Context, DataForm, Frame, FramePtr, MachineType, PresenceForm, QType,
    STATUS_OK, Scalar, Scratch, Slot,
};
use cembra_value::{Budget, Limits, Value};

const MODELS: &[&str] = &[
    include_str!("../../../../benches/workloads/S1.cem"),
    include_str!("../../../../benches/workloads/S2.cem"),
    include_str!("../../../../benches/workloads/S3.cem"),
    include_str!("../../../../benches/workloads/S4.cem"),
    include_str!("../../../../benches/workloads/S5.cem"),
    "input x: i64\ninput y: i64?\noutput q = x // y\noutput r = x * 3\noutput is = x > 2",
    "input x: bool?\ninput y: bool\noutput a = x\noutput b = y\noutput c = x ?? y\noutput d = x == y",
    "input x: unit?\ninput y: unit\ninput z: f32\noutput a = x\noutput b = y\noutput c = where(x, z)",
    "input n: i64\ninput x: f64\noutput s = seq.reduce(fn(sum, i) = sum + x * math.float(i), seq.range(n), 0.0)",
    "input t: text\ninput u: text?\noutput a = strings.join(t, u ?? \"some\")\noutput b = t == \"gold\"\noutput c = u\noutput d = t",
    "input p: (i32, f64?)\ninput q: f64\noutput a = p\noutput b = (q, p.1 ?? q)\noutput c = p.1",
    "input x: f64\noutput a = x\noutput b = 2.5\noutput c = missing[f64]",
];

/// The most rounds that the loops of a row may run.
const ROUNDS: u64 = 7;

const CANARY: u8 = 0xA5;
const MARGIN: usize = 32;

fn plan_of(text: &str) -> Plan {
    let program = parse(text, Registry::standard(), &Limits::default()).expect("a model");
    let prepared = prepare(&program, &|_| None, &Options::default(), &mut |_, _| {}).expect("types");
    let placed = prepared.placed().expect("every pass");
    build(&placed, &Budget::default()).expect("a plan")
}

/// Writes a random value of the type `qtype` to memory. The payload of a missing value is garbage.
fn fill(random: &mut fastrand::Rng, qtype: &QType, at: FramePtr, offset: u32) {
    // SAFETY: FRAME-SLOT: the memory is as long as the type, and aligned.
    unsafe {
        match qtype {
            QType::Tuple(fields) => {
                for (field, inside) in fields.iter().zip(qtype.field_offsets()) {
                    fill(random, field, at, offset + inside);
                }
            }
            QType::Optional(scalar) => {
                let present = random.u8(..3) > 0;
                fill(random, &QType::Scalar(*scalar), at, offset + qtype.optional_value_offset().unwrap_or(0));
                at.write(Slot::at(offset), u8::from(present));
                if !present && scalar.is_string() {
                    at.write(Slot::at(offset + qtype.optional_value_offset().unwrap_or(0)), 0xDEAD_u64);
                }
            }
            QType::Scalar(scalar) => {
                let small = random.i8(-3..12);
                match scalar.machine_type() {
                    Some(MachineType::Flag) => at.write(Slot::at(offset), u8::from(random.bool())),
                    Some(MachineType::I32) => at.write(Slot::at(offset), i32::from(small)),
                    Some(MachineType::I64) => at.write(Slot::at(offset), i64::from(small)),
                    Some(MachineType::F32) => at.write(Slot::at(offset), f32::from(small) * 0.37),
                    Some(MachineType::F64) => at.write(Slot::at(offset), f64::from(small) * 0.37),
                    None if scalar.is_string() => {
                        let text = ["", "gold", "some longer text of words", "silver"][random.usize(..4)];
                        at.write(Slot::at(offset), Bytes::new(text.as_bytes()));
                    }
                    None => {}
                }
            }
            _ => {}
        }
    }
}

/// The memory of a column in a test, its format, and the description that machine code gets.
struct Memory {
    form: ColumnForm,
    data: Vec<u8>,
    presence: Vec<u8>,
    column: Column,
}

/// Returns the size of a row's element, and its offset in a value in the layout of frames.
fn element(qtype: &QType) -> (usize, usize) {
    let size = qtype.scalar().map_or(qtype.layout().size, |scalar| QType::Scalar(scalar).layout().size);
    (size as usize, qtype.optional_value_offset().unwrap_or(0) as usize)
}

fn random_form(random: &mut fastrand::Rng, qtype: &QType, is_input: bool) -> ColumnForm {
    let is_shared = is_input && random.u8(..5) == 0;
    let data = match qtype.scalar() {
        Some(Scalar::Unit) => DataForm::Nothing,
        Some(Scalar::Boolean) if !is_shared && random.bool() => DataForm::Bits,
        _ => DataForm::Values,
    };
    let presence = match random.u8(..3) {
        _ if !qtype.is_optional() => PresenceForm::All,
        0 if is_input => PresenceForm::All,
        1 if !is_shared => PresenceForm::Bits,
        _ => PresenceForm::Bytes,
    };
    let is_dense = data == DataForm::Values && !is_shared && random.bool();
    let mut pace = |is_there| if is_there && !is_shared { random.u8(..PACES as u8) } else { 0 };
    let paces = [pace(data == DataForm::Values && !is_dense), pace(presence == PresenceForm::Bytes)];
    ColumnForm { data, presence, is_dictionary: false, is_shared, is_dense, stride_classes: paces }
}

/// The number of classes of strides (paces). Class 0 means that nothing is known of a stride.
const PACES: usize = 7;

/// Returns a random stride for each class of strides, longer than any value.
fn random_strides(random: &mut fastrand::Rng) -> [isize; PACES] {
    [(); PACES].map(|()| random.isize(40..90) * if random.bool() { 1 } else { -1 })
}

impl Memory {
    /// Allocates memory for `rows` rows. All bytes of it are canaries.
    fn new(
        random: &mut fastrand::Rng,
        qtype: &QType,
        form: ColumnForm,
        rows: usize,
        strides: &[isize; PACES],
    ) -> Memory {
        let (size, _) = element(qtype);
        let gap = if form.is_dense { 0 } else { random.usize(..20) };
        let any = if !form.is_dense && random.bool() { -1 } else { 1 };
        let stride = |pace: u8, length: usize| match pace {
            _ if form.is_shared => 0,
            0 => length.cast_signed() * any,
            pace => strides[usize::from(pace)],
        };
        let stride_of_data = stride(form.stride_classes[0], size + gap);
        let stride_of_presence = stride(form.stride_classes[1], 1 + random.usize(..9));
        let (step, presence_step) = (stride_of_data.unsigned_abs(), stride_of_presence.unsigned_abs());
        let words = 8 * rows.div_ceil(64);
        let mut data = vec![CANARY; 2 * MARGIN + words.max(step * rows + size)];
        let mut presence = vec![CANARY; 2 * MARGIN + words.max(presence_step * rows + 1)];
        let place = |memory: &mut Vec<u8>, stride: isize, bits: bool, odd: usize| {
            let start = memory[MARGIN + odd..].as_mut_ptr();
            match stride < 0 && !bits {
                true => start.wrapping_add(stride.unsigned_abs() * rows.saturating_sub(1)),
                false => start,
            }
        };
        let odd = random.usize(..8);
        let column = Column {
            data: place(&mut data, stride_of_data, form.data == DataForm::Bits, odd),
            stride: stride_of_data,
            presence: place(&mut presence, stride_of_presence, form.presence == PresenceForm::Bits, odd / 2),
            presence_stride: stride_of_presence,
        };
        Memory { form, data, presence, column }
    }

    fn value_at(&self, row: usize) -> *mut u8 {
        self.column.data.wrapping_offset(self.column.stride * row.cast_signed())
    }

    fn presence_at(&self, row: usize) -> *mut u8 {
        self.column.presence.wrapping_offset(self.column.presence_stride * row.cast_signed())
    }

    /// Stores a value in the column. `value` has its bytes in the layout of frames.
    fn set(&self, qtype: &QType, row: usize, value: *const u8, random: &mut fastrand::Rng) {
        let (size, inside) = element(qtype);
        // SAFETY: COLUMNS: the memory was made for the rows.
        unsafe {
            match self.form.data {
                DataForm::Nothing | DataForm::Chains => {}
                DataForm::Bits => set_bit(self.column.data, row, *value.add(inside) & 1),
                DataForm::Values => value.add(inside).copy_to(self.value_at(row), size),
            }
            match self.form.presence {
                PresenceForm::All => {}
                PresenceForm::Bits => set_bit(self.column.presence, row, *value),
                PresenceForm::Bytes => *self.presence_at(row) = if *value == 0 { 0 } else { random.u8(1..) },
            }
        }
    }

    /// Reads a row's value from the column.
    fn get(&self, qtype: &QType, row: usize) -> Value {
        let (size, inside) = element(qtype);
        let mut frame = Frame::zeroed(64);
        let to = frame.ptr();
        // SAFETY: COLUMNS: the memory was made for the rows; FRAME-SLOT: no type of the models is longer than the frame.
        unsafe {
            let bytes = to.as_ptr();
            match self.form.data {
                DataForm::Nothing | DataForm::Chains => {}
                DataForm::Bits => *bytes.add(inside) = bit(self.column.data, row),
                DataForm::Values => self.value_at(row).copy_to(bytes.add(inside), size),
            }
            if qtype.is_optional() {
                *bytes = match self.form.presence {
                    PresenceForm::All => 1,
                    PresenceForm::Bits => bit(self.column.presence, row),
                    PresenceForm::Bytes => *self.presence_at(row),
                };
            }
            Value::read_from(qtype, to, 0)
        }
    }

    /// Checks that bytes which belong to no row are still canaries, and that bits after the last row are 0.
    fn check_around(&self, qtype: &QType, rows: usize, name: &str) {
        let (size, _) = element(qtype);
        let is_row = |memory: &[u8], at: usize, bits: bool, first: *mut u8, stride: isize, size: usize| {
            let address = memory.as_ptr().addr() + at;
            if bits {
                return (first.addr()..first.addr() + 8 * rows.div_ceil(64)).contains(&address);
            }
            (0..rows).any(|row| {
                let start = first.wrapping_offset(stride * row.cast_signed()).addr();
                (start..start + size).contains(&address)
            })
        };
        let Column { data, stride, presence, presence_stride } = self.column;
        let size = if self.form.data == DataForm::Nothing { 0 } else { size };
        let (data_bits, presence_bits) = (self.form.data == DataForm::Bits, self.form.presence == PresenceForm::Bits);
        for (at, byte) in self.data.iter().enumerate() {
            let own = is_row(&self.data, at, data_bits, data, stride, size);
            assert!(own || *byte == CANARY, "{name}: a byte beside the data");
        }
        let presence_size = usize::from(self.form.presence != PresenceForm::All);
        for (at, byte) in self.presence.iter().enumerate() {
            let own = is_row(&self.presence, at, presence_bits, presence, presence_stride, presence_size);
            assert!(own || *byte == CANARY, "{name}: a byte beside the presence");
        }
        for (first, bits) in [(data, data_bits), (presence, presence_bits)] {
            for row in (rows..rows.next_multiple_of(64)).filter(|_| bits) {
                // SAFETY: COLUMNS: whole words are there.
                assert_eq!(unsafe { bit(first, row) }, 0, "{name}: a bit behind the last row");
            }
        }
    }
}

/// Returns the bit of a row.
///
/// # Safety
/// COLUMNS: the array has the row's bit.
unsafe fn bit(first: *const u8, row: usize) -> u8 {
    // SAFETY: COLUMNS, promised by the caller.
    unsafe { *first.add(row / 8) >> (row % 8) & 1 }
}

/// Sets the bit of a row.
///
/// # Safety
/// COLUMNS: the array has the row's bit.
unsafe fn set_bit(first: *mut u8, row: usize, value: u8) {
    // SAFETY: COLUMNS, promised by the caller.
    unsafe {
        let byte = first.add(row / 8);
        *byte = *byte & !(1 << (row % 8)) | value << (row % 8);
    }
}

fn context() -> Context {
    let mut context = Context::new();
    context.set_iterations(ROUNDS);
    context
}

struct Subject<'p> {
    plan: &'p Plan,
    inputs: Vec<(QType, ValueId)>,
    outputs: Vec<(QType, ValueId)>,
    interpreted: cembra_interp::Interpreted,
}

impl Subject<'_> {
    /// Returns the interpreter's outputs for a row, in order; `None` if the row fails.
    fn expected(&self, row: &[Frame], frame: FramePtr, context: &mut Context) -> Option<Vec<String>> {
        // SAFETY: FRAME-SLOT: the frame is the plan's, values are of its inputs' types. CALL, likewise.
        unsafe {
            for ((qtype, value), bytes) in self.inputs.iter().zip(row) {
                let slot = self.plan.value(*value).slot;
                bytes.clone().ptr().copy_to(0, frame, slot, qtype.layout().size);
            }
            context.begin();
            let status = self.interpreted.call(frame, frame, frame, context);
            if context.end(status) != STATUS_OK {
                return None;
            }
            let read = |(qtype, value): &(QType, ValueId)| {
                format!("{:?}", Value::read_from(qtype, frame, self.plan.value(*value).slot))
            };
            Some(self.outputs.iter().map(read).collect())
        }
    }

    fn check(
        &self,
        random: &mut fastrand::Rng,
        rows: usize,
        forms: &[ColumnForm],
        native: &CompiledRows,
        name: &str,
    ) -> usize {
        let types: Vec<&QType> = self.inputs.iter().chain(&self.outputs).map(|(qtype, _)| qtype).collect();
        let strides = random_strides(random);
        let columns = types.iter().zip(forms).map(|(qtype, form)| Memory::new(random, qtype, *form, rows, &strides));
        let memories: Vec<Memory> = columns.collect();
        let mut values: Vec<Vec<Frame>> = Vec::new();
        for row in 0..rows {
            let mut of_row = Vec::new();
            for (at, (qtype, _)) in self.inputs.iter().enumerate() {
                let mut value = Frame::zeroed(64);
                fill(random, qtype, value.ptr(), 0);
                if qtype.is_optional() && forms[at].presence == PresenceForm::All {
                    // SAFETY: FRAME-SLOT: the presence byte was written.
                    while unsafe { *value.ptr().as_ptr() } == 0 {
                        fill(random, qtype, value.ptr(), 0);
                    }
                }
                if row > 0 && forms[at].is_shared {
                    value = values[0][at].clone();
                }
                memories[at].set(qtype, row, value.ptr().as_ptr(), random);
                of_row.push(value);
            }
            values.push(of_row);
        }
        let columns: Vec<Column> = memories.iter().map(|memory| memory.column).collect();
        let mut scratch = Scratch::new(&native.scratch());
        // SAFETY: COLUMNS: they are of the forms, with memory for the rows.
        unsafe { native.run(&columns, &[], rows, &mut scratch, &mut context()) };
        let failed: Vec<usize> = scratch.failed.drain().collect();
        let (mut frame, mut context) = (self.plan.template().frame(), context());
        let mut failing = Vec::new();
        for (row, of_row) in values.iter().enumerate() {
            let Some(expected) = self.expected(of_row, frame.ptr(), &mut context) else {
                failing.push(row);
                continue;
            };
            for (at, expected) in expected.iter().enumerate() {
                let number = self.inputs.len() + at;
                let found = format!("{:?}", memories[number].get(types[number], row));
                assert_eq!(&found, expected, "{name}: output {at} in row {row} of {rows}, {forms:?}");
            }
        }
        assert_eq!(failed, failing, "{name}");
        for (memory, qtype) in memories.iter().zip(&types).skip(self.inputs.len()) {
            memory.check_around(qtype, rows, name);
        }
        failing.len()
    }
}

fn check_model(text: &str, random: &mut fastrand::Rng, some_rows: &[usize]) -> usize {
    let plan = plan_of(text);
    let of = |value: ValueId| (plan.value(value).qtype.clone(), value);
    let subject = Subject {
        plan: &plan,
        inputs: plan.inputs().iter().map(|input| of(input.value)).collect(),
        outputs: plan.outputs().iter().map(|output| of(output.value)).collect(),
        interpreted: cembra_interp::bind(&plan, &plan.frame_binding()),
    };
    let mut failed = 0;
    for round in 0..8 {
        let types = subject.inputs.iter().map(|(qtype, _)| (qtype, true));
        let types = types.chain(subject.outputs.iter().map(|(qtype, _)| (qtype, false)));
        let forms: Vec<ColumnForm> = types.map(|(qtype, is_input)| random_form(random, qtype, is_input)).collect();
        let native_steps = if round % 4 == 3 { 3 } else { Limits::default().native_steps };
        let budget = Budget::new(Limits::default().native_steps(native_steps));
        let tier = [Tier::Optimised, Tier::Quick][round % 2];
        let native = compile_rows(&plan, &forms, tier, &budget).expect("machine code");
        for rows in some_rows {
            let name = format!("{text}\n{tier:?}, {native_steps} steps");
            failed += subject.check(random, *rows, &forms, &native, &name);
        }
    }
    failed
}

#[test]
fn native_rows_give_what_the_interpreter_gives() {
    every_second_model(0);
}

#[test]
fn native_rows_of_other_models_give_what_the_interpreter_gives() {
    every_second_model(1);
}

fn every_second_model(first: usize) {
    let mut random = fastrand::Rng::with_seed(20);
    let rows: Vec<usize> = (0..=70).chain([1000]).collect();
    for text in MODELS.iter().skip(first).step_by(2) {
        let failed = check_model(text, &mut random, &rows);
        assert_eq!(failed > 0, text.contains("//") && text.contains("q =") || text.contains("reduce"), "{text}");
    }
}

#[test]
fn optionals_of_every_type_are_read_and_written() {
    let mut random = fastrand::Rng::with_seed(21);
    let types = ["bool", "i32", "i64", "u64", "f32", "f64", "date", "timestamp", "bytes", "text"];
    for ty in types {
        let text = format!(
            "input x: {ty}?\ninput y: {ty}\ninput f: unit?\noutput a = x ?? y\noutput b = x\noutput c = where(f, y)\noutput d = y"
        );
        check_model(&text, &mut random, &[0, 1, 63, 64, 65, 200]);
    }
}

#[test]
fn forms_that_no_column_of_the_plan_has_are_refused() {
    let plan = plan_of("input x: f64\ninput y: bool?\noutput a = x\noutput b = y");
    let plain = ColumnForm {
        is_dictionary: false,
        data: DataForm::Values,
        presence: PresenceForm::All,
        is_shared: false,
        is_dense: false,
        stride_classes: [0; 2],
    };
    let optional = ColumnForm { data: DataForm::Bits, presence: PresenceForm::Bits, ..plain };
    let compile = |forms: &[ColumnForm]| compile_rows(&plan, forms, Tier::Quick, &Budget::default());
    let forms = [plain, optional, plain, optional];
    assert!(compile(&forms).is_ok());
    let refused = |forms: &[ColumnForm]| {
        let error = compile(forms).expect_err("these are no forms of its columns");
        assert_eq!(error.kind(), ErrorKind::Columns);
        error.to_string()
    };
    assert_eq!(refused(&forms[..3]), "the plan has 4 inputs and outputs, but there are 3 columns");
    assert_eq!(refused(&[&forms[..], &[plain]].concat()), "the plan has 4 inputs and outputs, but there are 5 columns");
    for (at, what) in ["input", "input", "output", "output"].into_iter().enumerate() {
        let qtype = if at % 2 == 0 { "f64" } else { "bool?" };
        let mut wrong = forms;
        wrong[at].data = DataForm::Nothing;
        let message = refused(&wrong);
        assert!(message.starts_with(&format!("column {at} is ColumnForm")), "{message}");
        assert!(message.ends_with(&format!("which cannot be an {what} of type {qtype}")), "{message}");
    }
    // This code does not sum the rows of an output.
    let mut sums = forms;
    sums[2].data = DataForm::Chains;
    assert!(sums[2].fits(&QType::FLOAT64, true));
    refused(&sums);
}
