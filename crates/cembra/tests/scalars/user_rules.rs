//! Tests the rules by which user operators are compiled to machine code: a valid rule gives the results of its
//! function, in both backends; a rule that could corrupt memory or end the process is rejected when the operator is
//! registered, with a reason.

use cembra::operators::{
    Bin, Cell, Cmp, Datum, Fallible, MachineType, Presence, Registry, RuntimeFn, Tape, Un, UserOperator, Val,
};
use cembra::{Backend, FaultKind, Limits, Model, Options, Scalar, ScalarValue, Value};

/// Returns the reason for which the registry rejects `operator`.
fn refusal(operator: UserOperator) -> String {
    let error = Registry::standard().clone().register(operator).expect_err("a rule that is refused");
    assert_eq!(error.code(), "registration");
    let message = error.message();
    message.strip_prefix("the rule of operator `my.rule` is refused: ").unwrap_or(&message).to_owned()
}

fn on_f64(rule: impl FnOnce(&mut Tape, &[Cell]) -> Cell) -> UserOperator {
    UserOperator::new("my.rule").with_rule(|x: f64| x, rule)
}

fn on_i64(rule: impl FnOnce(&mut Tape, &[Cell]) -> Cell) -> UserOperator {
    UserOperator::new("my.rule").with_rule(|x: i64, _y: i64| x, rule)
}

fn on_texts(rule: impl FnOnce(&mut Tape, &[Cell]) -> Cell) -> UserOperator {
    UserOperator::new("my.rule").with_rule(|_x: &str, _y: &str| "", rule)
}

fn view(cell: Cell) -> (Val, Val) {
    match cell.datum {
        Datum::Text { ptr, len } => (ptr, len),
        other => panic!("no text: {other:?}"),
    }
}

const FOREIGN: &str = "the rule uses a value before it is computed, or as another kind of value";
const TYPES: &str = "an instruction does not take numbers of these types";
const RESULT: &str = "the result of the rule is not of the function's type";
const PIECED: &str = "a text must have the address and the length of a text that was given";

#[test]
fn texts_made_of_numbers_are_refused() {
    // An address of the rule's own choice.
    let chosen = on_texts(|tape, _| {
        let (ptr, len) = (tape.konst(MachineType::I64, 0x10), tape.konst(MachineType::I64, 8));
        Cell::present(Datum::Text { ptr, len })
    });
    assert_eq!(refusal(chosen), PIECED);
    // Longer than the text that was given.
    let longer = on_texts(|tape, args| {
        let (ptr, len) = view(args[0]);
        let one = tape.konst(MachineType::I64, 1);
        let len = tape.bin(Bin::Add, len, one);
        Cell::present(Datum::Text { ptr, len })
    });
    assert_eq!(refusal(longer), PIECED);
    // The length of one text and the address of another, plainly and by way of choices that do not agree.
    let swapped = on_texts(|_, args| {
        let ((ptr, _), (_, len)) = (view(args[0]), view(args[1]));
        Cell::present(Datum::Text { ptr, len })
    });
    assert_eq!(refusal(swapped), PIECED);
    let crossed = on_texts(|tape, args| {
        let ((p, n), (q, m)) = (view(args[0]), view(args[1]));
        let shorter = tape.cmp(Cmp::Lt, n, m);
        let (ptr, len) = (tape.select(shorter, p, q), tape.select(shorter, m, n));
        Cell::present(Datum::Text { ptr, len })
    });
    assert_eq!(refusal(crossed), PIECED);
    // Bytes need not be UTF-8: they are no text.
    let bytes = UserOperator::new("my.rule").with_rule(|_x: &[u8]| "", |_, args| args[0]);
    assert_eq!(refusal(bytes), PIECED);
    // A function of the runtime believes what it is given.
    let called = on_f64(|tape, args| {
        let x = args[0].val(tape);
        let (ptr, len) = (tape.konst(MachineType::I64, 0x10), tape.konst(MachineType::I64, 8));
        tape.call(RuntimeFn::CompareText, &[ptr, len, ptr, len]);
        Cell::num(x)
    });
    assert_eq!(refusal(called), PIECED);
}

#[test]
fn messages_of_faults_are_texts_that_were_given() {
    let failing = |operands: fn(&mut Tape) -> [Option<Val>; 2], kind: FaultKind| {
        UserOperator::new("my.rule").with_rule(Fallible(|x: f64| Ok::<_, &str>(x)), move |tape, args| {
            let x = args[0].val(tape);
            let nan = tape.is_nan(x);
            let operands = operands(tape);
            tape.fault_if(nan, kind, operands);
            Cell::num(x)
        })
    };
    let number = |tape: &mut Tape| [Some(tape.konst(MachineType::I64, 16)), Some(tape.konst(MachineType::I64, 8))];
    assert_eq!(refusal(failing(number, FaultKind::Invalid)), PIECED);
    let half = |tape: &mut Tape| [Some(tape.konst(MachineType::I64, 16)), None];
    assert_eq!(refusal(failing(half, FaultKind::Invalid)), "the message of a fault must be a text, or left out");
    assert_eq!(
        refusal(failing(|_| [None, None], FaultKind::Assertion)),
        "the rule fails with another fault than `Invalid`"
    );
    let total = on_f64(|tape, args| {
        let x = args[0].val(tape);
        let nan = tape.is_nan(x);
        tape.fault_if(nan, FaultKind::Invalid, [None, None]);
        Cell::num(x)
    });
    assert_eq!(refusal(total), "the rule can fail, but its function cannot: make the function `Fallible`");
}

#[test]
fn divisions_of_integers_are_guarded() {
    const UNGUARDED: &str = "the rule divides integers by a value that may be 0 or -1; divide by a constant, or by `select(y == 0 | y == -1, 1, y)`";
    let by = |divisor: fn(&mut Tape, Val) -> Val| {
        on_i64(move |tape, args| {
            let (x, y) = (args[0].val(tape), args[1].val(tape));
            let divisor = divisor(tape, y);
            Cell::num(tape.bin(Bin::Div, x, divisor))
        })
    };
    assert_eq!(refusal(by(|_, y| y)), UNGUARDED);
    assert_eq!(refusal(by(|tape, _| tape.konst(MachineType::I64, 0))), UNGUARDED);
    assert_eq!(refusal(by(|tape, _| tape.konst(MachineType::I64, u64::MAX))), UNGUARDED);
    // Zero is kept out, minus one is not.
    let half = |tape: &mut Tape, y: Val| {
        let (zero, one) = (tape.konst(MachineType::I64, 0), tape.konst(MachineType::I64, 1));
        let is_zero = tape.cmp(Cmp::Eq, y, zero);
        tape.select(is_zero, one, y)
    };
    assert_eq!(refusal(by(half)), UNGUARDED);
    // The guard is for another number than the divisor.
    let other = |tape: &mut Tape, y: Val| {
        let [zero, one, minus] = [0, 1, u64::MAX].map(|bits| tape.konst(MachineType::I64, bits));
        let square = tape.bin(Bin::Mul, y, y);
        let (is_zero, is_minus) = (tape.cmp(Cmp::Eq, square, zero), tape.cmp(Cmp::Eq, square, minus));
        let special = tape.mor(is_zero, is_minus);
        tape.select(special, one, y)
    };
    assert_eq!(refusal(by(other)), UNGUARDED);
    // Both must hold for the guard to act.
    let both = |tape: &mut Tape, y: Val| {
        let [zero, one, minus] = [0, 1, u64::MAX].map(|bits| tape.konst(MachineType::I64, bits));
        let (is_zero, is_minus) = (tape.cmp(Cmp::Eq, y, zero), tape.cmp(Cmp::Eq, y, minus));
        let special = tape.mand(is_zero, is_minus);
        tape.select(special, one, y)
    };
    assert_eq!(refusal(by(both)), UNGUARDED);
}

#[test]
fn values_are_used_as_what_they_are() {
    // A result of another type, of another kind, and one that may be missing.
    assert_eq!(refusal(on_f64(|tape, _| Cell::num(tape.konst(MachineType::I64, 1)))), RESULT);
    assert_eq!(refusal(on_f64(|tape, _| Cell::flag(tape.mconst(true)))), RESULT);
    assert_eq!(refusal(on_f64(|tape, _| Cell::missing(Scalar::Float64, tape))), RESULT);
    assert_eq!(refusal(on_texts(|tape, _| Cell::num(tape.konst(MachineType::I64, 1)))), RESULT);
    // Types that do not go together.
    let mixed = |tape: &mut Tape, args: &[Cell]| {
        let (x, one) = (args[0].val(tape), tape.konst(MachineType::F32, 0x3F80_0000));
        Cell::num(tape.bin(Bin::Add, x, one))
    };
    assert_eq!(refusal(on_f64(mixed)), TYPES);
    assert_eq!(
        refusal(on_i64(|tape, args| {
            let x = args[0].val(tape);
            Cell::num(tape.un(Un::Sqrt, x))
        })),
        TYPES
    );
    assert_eq!(
        refusal(on_f64(|tape, args| {
            let x = args[0].val(tape);
            Cell::num(tape.un(Un::Bitcast(MachineType::F32), x))
        })),
        TYPES
    );
    assert_eq!(
        refusal(on_f64(|tape, args| {
            let x = args[0].val(tape);
            tape.call(RuntimeFn::ExpF32, &[x]);
            Cell::num(x)
        })),
        TYPES
    );
    assert_eq!(
        refusal(on_i64(|tape, args| {
            let x = args[0].val(tape);
            Cell::num(tape.shift(cembra::operators::Shift::Left, x, 64))
        })),
        "the rule shifts a number by all of its bits or more"
    );
    assert_eq!(
        refusal(on_i64(|tape, _| {
            tape.konst(MachineType::I32, u64::MAX);
            Cell::num(tape.konst(MachineType::I64, 1))
        })),
        "a constant does not fit its type"
    );
    assert_eq!(
        refusal(on_f64(|tape, _| Cell::num(tape.konst(MachineType::Flag, 1)))),
        "a constant does not fit its type"
    );
}

#[test]
fn values_of_other_tapes_are_refused() {
    // A rule has the tape to itself: it can put another one in its place, or take values along to one.
    let mut foreign = Tape::new();
    for _ in 0..10 {
        foreign.input(MachineType::F64);
    }
    let far = foreign.input(MachineType::F64);
    assert_eq!(refusal(on_f64(|_, _| Cell::num(far))), FOREIGN);
    let mut near = Tape::new();
    let at_zero = near.input(MachineType::F64);
    assert_eq!(refusal(on_texts(|_, _| Cell::num(at_zero))), RESULT);
    let emptied = on_f64(|tape, _| {
        tape.clear();
        Cell::num(tape.input(MachineType::I64))
    });
    assert_eq!(refusal(emptied), "the rule removes its arguments from the tape");
    let replaced = on_f64(|tape, args| {
        *tape = Tape::new();
        args[0]
    });
    assert_eq!(refusal(replaced), "the rule removes its arguments from the tape");
    assert_eq!(
        refusal(on_f64(|tape, _| Cell::num(tape.input(MachineType::F64)))),
        "the rule adds an input to the tape"
    );
    let mut masks = Tape::new();
    masks.input_mask();
    let mask = masks.input_mask();
    let presence = on_optional(move |_, args| Cell { presence: Presence::When(mask), ..args[0] });
    assert_eq!(refusal(presence), FOREIGN);
}

fn on_optional(rule: impl FnOnce(&mut Tape, &[Cell]) -> Cell) -> UserOperator {
    UserOperator::new("my.rule").with_rule(|x: Option<f64>| x, rule)
}

/// Returns operators with valid rules, which compute what their functions compute, including the required guards.
fn registry() -> &'static Registry {
    let mut registry = Registry::standard().clone();
    let operators = [
        UserOperator::new("my.quotient").with_rule(
            |x: i64, y: i64| if y == 0 || y == -1 { x } else { x / y },
            |tape, args| {
                let (x, y) = (args[0].val(tape), args[1].val(tape));
                let [zero, one, minus] = [0, 1, u64::MAX].map(|bits| tape.konst(MachineType::I64, bits));
                let (is_zero, is_minus) = (tape.cmp(Cmp::Eq, y, zero), tape.cmp(Cmp::Eq, minus, y));
                let special = tape.mor(is_minus, is_zero);
                let divisor = tape.select(special, one, y);
                Cell::num(tape.bin(Bin::Div, x, divisor))
            },
        ),
        UserOperator::new("my.tenth").with_rule(
            |x: i32| x / 10,
            |tape, args| {
                let (x, ten) = (args[0].val(tape), tape.konst(MachineType::I32, 10));
                Cell::num(tape.bin(Bin::Div, x, ten))
            },
        ),
        // A function of the library, which scales floats: only a rule's own scaling is refused.
        UserOperator::new("my.growth").with_rule(
            |x: f32| cembra_runtime::math::exp_f32(x),
            |tape, args| {
                let x = args[0].val(tape);
                Cell::num(tape.function(RuntimeFn::ExpF32, &[x]))
            },
        ),
        // The longer of two texts; where one is missing, the other.
        UserOperator::new("my.longer").with_rule(
            |x: Option<&str>, y: Option<&str>| match (x, y) {
                (Some(x), Some(y)) => Some(if x.len() < y.len() { y.to_owned() } else { x.to_owned() }),
                (x, y) => x.or(y).map(str::to_owned),
            },
            |tape, args| {
                let [x, y] = [args[0], args[1]];
                let ((p, n), (q, m)) = (view(x), view(y));
                let (has_x, has_y) = (x.has(tape), y.has(tape));
                let shorter = tape.cmp(Cmp::Lt, n, m);
                let missing = tape.mnot(has_x);
                let second = tape.mand(has_y, shorter);
                let second = tape.mor(missing, second);
                let datum = Datum::Text { ptr: tape.select(second, q, p), len: tape.select(second, m, n) };
                Cell { presence: Presence::When(tape.mor(has_x, has_y)), datum }
            },
        ),
        // Calls a function of the runtime on texts that may be missing.
        UserOperator::new("my.before").with_rule(
            |x: Option<&str>, y: Option<&str>| x.unwrap_or("") < y.unwrap_or(""),
            |tape, args| {
                let ((p, n), (q, m)) = (view(args[0]), view(args[1]));
                let order = tape.call(RuntimeFn::CompareText, &[p, n, q, m]);
                let zero = tape.konst(MachineType::I32, 0);
                Cell::flag(tape.cmp(Cmp::Lt, order, zero))
            },
        ),
        UserOperator::new("my.refuse").with_rule(
            Fallible(|x: &str, limit: i64| if x.len() as i64 > limit { Err("") } else { Ok(x.len() as i64) }),
            |tape, args| {
                let ((_, len), limit) = (view(args[0]), args[1].val(tape));
                let long = tape.cmp(Cmp::Gt, len, limit);
                tape.fault_if(long, FaultKind::Invalid, [None, None]);
                Cell::num(len)
            },
        ),
        // Its rule records something else whenever it is run: it is run once.
        UserOperator::new("my.moody").with_rule(|x: f64| x + 1.0, {
            let mut runs = 0;
            move |tape, args| {
                runs += 1;
                let x = args[0].val(tape);
                let by = tape.konst_like(x, f64::from(runs));
                Cell::num(tape.bin(Bin::Add, x, by))
            }
        }),
    ];
    for operator in operators {
        registry.register(operator).expect("a good rule");
    }
    registry.leak()
}

#[test]
fn rules_that_pass_say_what_their_functions_say() {
    let registry = registry();
    let text = |text: &str| Value::from(text);
    let maybe = |text: Option<&str>| Value::optional(Scalar::Text, text.map(|text| ScalarValue::Text(text.into())));
    let cases: [(&str, Vec<Value>, Result<Value, &str>); 15] = [
        ("my.quotient(a, b)", vec![17_i64.into(), (-5_i64).into()], Ok((-3_i64).into())),
        ("my.quotient(a, b)", vec![i64::MIN.into(), (-1_i64).into()], Ok(i64::MIN.into())),
        ("my.quotient(a, b)", vec![9_i64.into(), 0_i64.into()], Ok(9_i64.into())),
        ("my.tenth(a)", vec![(-99_i32).into()], Ok((-9_i32).into())),
        ("my.tenth(a)", vec![None::<i32>.into()], Ok(None::<i32>.into())),
        ("my.growth(a)", vec![88.0_f32.into()], Ok(cembra_runtime::math::exp_f32(88.0).into())),
        ("my.growth(a)", vec![(-90.0_f32).into()], Ok(cembra_runtime::math::exp_f32(-90.0).into())),
        ("my.longer(a, b)", vec![maybe(Some("one")), maybe(Some("three"))], Ok(maybe(Some("three")))),
        ("my.longer(a, b)", vec![maybe(None), maybe(Some("b"))], Ok(maybe(Some("b")))),
        ("my.longer(a, b)", vec![maybe(Some("a")), maybe(None)], Ok(maybe(Some("a")))),
        ("my.longer(a, b)", vec![maybe(None), maybe(None)], Ok(maybe(None))),
        ("my.before(a, b)", vec![maybe(None), maybe(Some("b"))], Ok(true.into())),
        ("my.refuse(a, 3)", vec![text("four")], Err("my.refuse: an argument is outside of the operator's domain")),
        ("my.refuse(a, 3)", vec![maybe(None)], Ok(None::<i64>.into())),
        ("my.moody(a) + my.moody(a * 2)", vec![3_f64.into()], Ok(11_f64.into())),
    ];
    for (expression, values, expected) in cases {
        let model = Model::parse_with(expression, registry, &Limits::default()).expect("a model");
        for backend in [Backend::Interpreter, Backend::Native] {
            let mut options = Options::default().backend(backend).registry(registry);
            for (name, value) in ["a", "b"].iter().zip(&values) {
                options = options.input_type(name, value.qtype());
            }
            let mut session = model.compile(&options).expect("it compiles").session();
            let found = session.evaluate(&values).map(|mut values| values.remove(0)).map_err(|error| error.message());
            assert_eq!(found, expected.clone().map_err(str::to_owned), "{expression} {values:?} {backend:?}");
        }
    }
}

/// A rule may call a function of three floats in a rarely taken branch. The code that saves operands for calls with one
/// or two arguments has no space for three.
#[test]
fn rare_calls_take_as_many_operands_as_their_functions() {
    let mut registry = Registry::standard().clone();
    let rare = UserOperator::new("my.rare").with_rule(
        |x: f64| if x > 100.0 { x.mul_add(x, 1.0) } else { x },
        |tape, args| {
            let x = args[0].val(tape);
            let [limit, one] = [100.0, 1.0].map(|value| tape.konst_like(x, value));
            let large = tape.cmp(Cmp::Gt, x, limit);
            Cell::num(tape.call_where(large, RuntimeFn::FmaF64, &[x, x, one], x))
        },
    );
    registry.register(rare).expect("a good rule");
    let registry = registry.leak();
    // Many values are alive around the calls: what lies behind their operands on the stack is needed.
    let terms = (0..20).map(|n| format!("my.rare(x + {n}) * (y - {n})")).collect::<Vec<_>>().join(" + ");
    let model = Model::parse_with(&format!("input x, y: f64; {terms}"), registry, &Limits::default()).expect("a model");
    for x in [1.5, 95.0, 250.25] {
        let [interpreted, native] = [Backend::Interpreter, Backend::Native].map(|backend| {
            let options = Options::default().backend(backend).registry(registry);
            let mut session = model.compile(&options).expect("it compiles").session();
            session.evaluate(&[x.into(), 7.25_f64.into()]).expect("a value")
        });
        assert_eq!(interpreted, native, "{x}");
    }
}
