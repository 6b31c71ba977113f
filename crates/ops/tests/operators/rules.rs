//! The first layer of tests: for every overload of every operator, the lowering rule is interpreted on bits and
//! compared with the kernel, on all combinations of special values, missing ones included. A missing overload, a wrong
//! rule or a wrong treatment of missing arguments fails here, without a code generator.

use crate::specials;

use cembra_ops::{Argument, Lower, OpDef, Overload, PresenceRule, Registry, ResolvedCall, Signature, call, record};
use cembra_runtime::{FaultKind, MachineType, QType, Scalar};
use cembra_tape::{Cell, Datum, Outcome, Presence, Tape};
use cembra_value::{ScalarValue, Value};
use specials::specials;

fn values(qtype: &QType, arity: usize) -> Vec<Value> {
    let scalar = qtype.scalar().expect("overloads are on scalars");
    let mut all: Vec<_> = specials(scalar);
    if arity > 2 {
        // Three and more operands: enough to meet every branch, few enough to multiply.
        let telling = |value: &ScalarValue| match value {
            ScalarValue::Float32(x) => !x.is_finite() || *x == 1e20 || x.abs() == 1e-20,
            ScalarValue::Float64(x) => !x.is_finite() || *x == 1e300 || x.abs() == 1e-20,
            _ => false,
        };
        let more: Vec<_> = all.iter().skip(3).filter(|value| arity < 5 && telling(value)).cloned().collect();
        all.truncate(if arity > 4 {
            2
        } else if more.is_empty() {
            5
        } else {
            3
        });
        all.extend(more);
    }
    if qtype.is_optional() {
        let mut optional: Vec<_> = all.into_iter().map(Value::Present).collect();
        optional.push(Value::Missing(scalar));
        optional
    } else {
        all.into_iter().map(Value::Scalar).collect()
    }
}

/// Adds a value to the tape as an input, so that nothing is folded to a constant. A missing value has arbitrary bits.
fn input(tape: &mut Tape, inputs: &mut Vec<u64>, value: &Value) -> Cell {
    let scalar = value.qtype().scalar().expect("scalar");
    let presence = if value.qtype().is_optional() {
        inputs.push(u64::from(value.as_scalar().is_some()));
        Presence::When(tape.input_mask())
    } else {
        Presence::Present
    };
    let garbage = 0x1234_5678_9ABC_DEF0;
    let bits =
        |narrow: bool| value.as_scalar().map_or(if narrow { garbage & 0xFFFF_FFFF } else { garbage }, |v| v.bits());
    let mut number = |tape: &mut Tape, ty: MachineType| {
        inputs.push(bits(matches!(ty, MachineType::I32 | MachineType::F32)));
        Datum::Num(tape.input(ty))
    };
    let datum = match scalar.machine_type() {
        None if scalar == Scalar::Unit => Datum::Unit,
        Some(MachineType::Flag) => {
            inputs.push(value.as_scalar().map_or(1, ScalarValue::bits));
            Datum::Flag(tape.input_mask())
        }
        Some(ty) => number(tape, ty),
        None => {
            let (ptr, len) = match value.as_scalar() {
                Some(ScalarValue::Text(text)) => (text.as_ptr() as u64, text.len() as u64),
                Some(ScalarValue::Bytes(bytes)) => (bytes.as_ptr() as u64, bytes.len() as u64),
                _ => (garbage, garbage),
            };
            inputs.extend([ptr, len]);
            Datum::Text { ptr: tape.input(MachineType::I64), len: tape.input(MachineType::I64) }
        }
    };
    Cell { presence, datum }
}

/// The value of a cell after the tape was run. A text is found by its address, because rules only pass texts on.
fn output(cell: Cell, ret: &QType, results: &[u64], args: &[Value]) -> Value {
    let scalar = ret.scalar().expect("scalar");
    let present = match cell.presence {
        Presence::Present => true,
        Presence::Missing => false,
        Presence::When(mask) => results[mask.index()] != 0,
    };
    if !present {
        assert!(ret.is_optional(), "a plain result is missing");
        return Value::Missing(scalar);
    }
    let value = match cell.datum {
        Datum::Unit => ScalarValue::Unit,
        Datum::Flag(mask) => ScalarValue::Boolean(results[mask.index()] != 0),
        Datum::Num(val) => ScalarValue::from_bits(scalar, results[val.index()]).expect("a number"),
        Datum::Text { ptr, len } => {
            let (ptr, len) = (results[ptr.index()], results[len.index()]);
            let lies = |at: *const u8, length: usize| at as u64 == ptr && length as u64 == len;
            let found = args.iter().filter_map(Value::as_scalar).find(|value| match value {
                ScalarValue::Text(text) => lies(text.as_ptr(), text.len()),
                ScalarValue::Bytes(bytes) => lies(bytes.as_ptr(), bytes.len()),
                _ => false,
            });
            found.expect("the string of an argument").clone()
        }
    };
    if ret.is_optional() { Value::Present(value) } else { Value::Scalar(value) }
}

fn check(def: &OpDef, overload: &Overload, index: usize, lifted: bool) -> usize {
    let arity = overload.args.len();
    let operands: Vec<QType> = overload.args.iter().map(|a| QType::of(a.scalar, a.optional || lifted)).collect();
    let ret = QType::of(overload.ret.scalar, overload.ret.optional || lifted);
    let resolved = ResolvedCall {
        signature: Signature { operands: operands.iter().cloned().collect(), ret: ret.clone() },
        overload: Some(index as u16),
        lifted,
    };
    let choices: Vec<Vec<Value>> = operands.iter().map(|t| values(t, arity)).collect();
    let total: usize = choices.iter().map(Vec::len).product();
    for mut number in 0..total {
        let args: Vec<Value> = choices
            .iter()
            .map(|list| {
                let value = list[number % list.len()].clone();
                number /= list.len();
                value
            })
            .collect();
        if matches!(overload.lower, Lower::Kernel) {
            // Both backends call the same function: there is no rule to compare it with, only what the record says of it.
            match call(def, &resolved, &args).expect("values of these types") {
                Ok(value) => assert_eq!(value.qtype(), ret, "{}{args:?}", def.name),
                Err(fault) => {
                    assert!(def.faults.contains(&fault.kind), "{} raises an undeclared {:?}", def.name, fault.kind);
                }
            }
            continue;
        }
        let mut tape = Tape::new();
        let mut inputs = Vec::new();
        let cells: Vec<Cell> = args.iter().map(|arg| input(&mut tape, &mut inputs, arg)).collect();
        tape.set_site(7);
        let result = record(&mut tape, def.presence, overload, &cells);
        let expected = call(def, &resolved, &args).expect("values of these types");
        // SAFETY: STRING-VIEW: the bits are of the arguments, which live on.
        match (unsafe { tape.run_on_bits(&inputs) }, expected) {
            (Outcome::Done(results), Ok(expected)) => {
                let found = output(result, &ret, &results, &args);
                assert!(found.same(&expected), "{}{args:?}: rule {found}, eval {expected}\n{tape}", def.name);
            }
            (Outcome::Stopped(mut fault, site), Err(mut expected)) => {
                if fault.kind == FaultKind::Assertion && fault.operands[1] == 0 {
                    // An empty message may lie anywhere.
                    (fault.operands[0], expected.operands[0]) = (0, 0);
                }
                assert_eq!((fault, site), (expected, 7), "{}{args:?}\n{tape}", def.name);
                assert!(def.faults.contains(&fault.kind), "{} raises an undeclared {:?}", def.name, fault.kind);
            }
            (found, expected) => panic!("{}{args:?}: rule {found:?}, eval {expected:?}\n{tape}", def.name),
        }
    }
    total
}

#[test]
fn every_rule_agrees_with_its_kernel() {
    let mut cells = 0;
    for (_, def) in Registry::standard().iter() {
        // What is compiled with a model is not called before there is one.
        let compiled = |overload: &Overload| overload.compile.is_some();
        for (index, overload) in def.overloads().iter().enumerate().filter(|(_, overload)| !compiled(overload)) {
            cells += check(def, overload, index, false);
            assert_eq!(overload.lifted.is_some(), def.presence == PresenceRule::Strict, "{}", def.name);
            if overload.lifted.is_some() {
                cells += check(def, overload, index, true);
            }
        }
    }
    assert!(cells > 50_000, "only {cells} combinations");
}

#[test]
fn records_are_complete() {
    for (_, def) in Registry::standard().iter() {
        assert!(!def.summary.is_empty() && !def.examples.is_empty(), "{} lacks a summary or an example", def.name);
        let (family, _) = def.name.split_once('.').expect("family.name");
        let (_, short) = def.name.rsplit_once('.').expect("family.name");
        assert!(
            matches!(family, "math" | "core" | "bool" | "bitwise" | "strings" | "namedtuple" | "annotation" | "seq")
                || matches!(family, "qtype" | "derived_qtype" | "random" | "date" | "timestamp" | "duration")
                || matches!(family, "array" | "edge" | "dict" | "tensor"),
            "{family}"
        );
        // These families have no short names. `bool` has the names of `core`. Those of `strings` and `seq` mean other things elsewhere.
        // Named tuples have forms of their own. `where`, `round`, `ceil`, `floor` and `trunc` take more by their short names, `sum` of `i32` fails, and `median` is
        // between elements. `count` counts more than bits. A reader should see what a year or a second is taken of, and that an operator is an annotation, is one of chance, or is on
        // types. Durations share the short names of numbers. The names of operators on arrays and edges are too common as words.
        let shared = matches!(family, "bool" | "strings" | "namedtuple" | "annotation" | "seq")
            || matches!(
                family,
                "qtype" | "derived_qtype" | "random" | "date" | "timestamp" | "duration" | "array" | "edge" | "tensor"
            )
            || matches!(
                def.name,
                "dict.get" | "dict.contains" | "dict.keys" | "dict.values" | "dict.make" | "dict.ranges"
            )
            || matches!(
                def.name,
                "core.where"
                    | "math.round"
                    | "math.ceil"
                    | "math.floor"
                    | "math.trunc"
                    | "math.sum"
                    | "math.median"
                    | "bitwise.count"
            );
        if !short.starts_with('_') && !shared {
            assert!(def.aliases.contains(&short) || def.params.is_empty(), "{} has no short name {short}", def.name);
        }
        for overload in def.overloads() {
            let arity = overload.args.len();
            let fits = if def.variadic { arity + 1 >= def.params.len() } else { arity == def.params.len() };
            assert!(fits, "{} has an overload of another arity", def.name);
            // Strings that are made lie in the arena of a call, which no rule knows.
            let strings = overload.args.iter().chain([&overload.ret]).any(|operand| operand.scalar.is_string());
            // And some are long, look up in what they are compiled from, go by the digits of numbers, or count with more bits than a tape has.
            let long = def.name.ends_with("_distribution_inverse_cdf")
                || overload.compile.is_some()
                || matches!(def.name, "seq._range_size" | "random.cityhash" | "math._decimal");
            let has_rule = matches!(overload.lower, Lower::Rule(_));
            assert!(strings || long || has_rule, "{} has an overload without a rule", def.name);
        }
    }
}

#[test]
fn result_types_follow_the_promotion_rules() {
    let registry = Registry::standard();
    let resolve = |name: &str, types: &[&str]| {
        let types: Vec<QType> = types
            .iter()
            .map(|name| {
                let (optional, name) = name.strip_suffix('?').map_or((false, *name), |name| (true, name));
                QType::of(*Scalar::ALL.iter().find(|s| s.short_name() == name).expect("a scalar"), optional)
            })
            .collect();
        let args: Vec<_> = types.iter().map(|qtype| Argument { qtype, literal: None }).collect();
        let def = registry.get(registry.find(name).expect("an operator"));
        def.resolve(&args).map(|r| r.signature.ret.to_string()).map_err(|fault| fault.message)
    };
    let ok = |s: &str| Ok(s.to_owned());
    assert_eq!(resolve("math.add", &["i64", "f32"]), ok("f32"));
    assert_eq!(resolve("math.add", &["weak_float", "weak_float"]), ok("weak_float"));
    assert_eq!(resolve("math.add", &["weak_float", "i64?"]), ok("f32?"));
    assert_eq!(resolve("math.divide", &["i64", "i64"]), ok("f32"));
    assert_eq!(resolve("core.less", &["i32", "weak_float"]), ok("unit?"));
    assert_eq!(resolve("math.is_finite", &["i32"]), ok("unit"));
    assert_eq!(resolve("math.is_finite", &["i32?"]), ok("unit?"));
    assert_eq!(resolve("core.presence_or", &["i32?", "weak_float"]), ok("f32"));
    assert_eq!(resolve("core.where", &["unit", "i32", "f64?"]), ok("f64?"));
    assert_eq!(resolve("math.add", &["bool", "i32"]), Err("math.add expects a number for `x`, found bool".to_owned()));
    assert_eq!(
        resolve("core.equal", &["text", "i32"]),
        Err("core.equal finds no common type for text and i32".to_owned())
    );
}

#[test]
fn overloads_that_are_calls_are_told_by_their_rules() {
    let mut calls = Vec::new();
    let registry = Registry::standard();
    for (op, def) in registry.iter() {
        for (at, overload) in def.overloads().iter().enumerate() {
            let effects = registry.effects(op, at as u16);
            assert_eq!(effects.may_fail, !def.faults.is_empty(), "{}", def.name);
            assert_eq!(effects.is_opaque, matches!(overload.lower, Lower::Kernel), "{}", def.name);
            // What has a known cost may be evaluated for nothing, whatever it is given.
            assert!(effects.cost.is_none() || !effects.is_opaque, "{}", def.name);
            let on_strings = overload.args.iter().any(|arg| arg.scalar.is_string());
            match overload.lower {
                Lower::Kernel => assert!(effects.is_call, "{}", def.name),
                // Strings are compared by a function; other rules only pass them on.
                Lower::Rule(_) | Lower::Recording(_) if on_strings => {
                    let compares = ["equal", "less", "greater"].iter().any(|word| def.name.contains(word));
                    assert_eq!(effects.is_call, compares, "{}", def.name);
                }
                Lower::Rule(_) | Lower::Recording(_) if effects.is_call => calls.push(def.name),
                Lower::Rule(_) | Lower::Recording(_) | Lower::Memory(_) => {}
            }
        }
    }
    calls.dedup();
    assert_eq!(
        calls.join(" "),
        "math.fmod math.floor_divide math.remainder math.pow math.hypot math.exp math.exp2 math.expm1 math.log math.log1p math.log2 math.log10 \
        math.sigmoid math.logit math.log_sigmoid math.symlog1p math.trig.sin math.trig.cos math.trig.sinh math.tanh math.trig.atan math.trig.atan2 \
        math.erf math.erfc math.normal_distribution_cdf \
        date.year date.month date.day date.day_of_year date.quarter date.iso_year date.iso_week date.is_leap_year date.days_in_month \
        date.start_of_month date.end_of_month date.add_months date.add_years date.months_between date.years_between date.make \
        date._start_of_year date._start_of_quarter date._start_of_month date._start_of_week date._start_of_hour date._start_of_minute \
        date._start_of_second duration.divide timestamp.make"
    );
}

/// Operators that make 32-bit floats from integers alone must declare this, because in a file with `numbers f64` the
/// integers become f64 first.
#[test]
fn what_makes_floats_of_integers_says_so() {
    use cembra_expr::Integers;
    use cembra_runtime::ArrayKind;
    let forms = [
        QType::Scalar(Scalar::Int32),
        QType::Array(ArrayKind::Dense, Scalar::Int32),
        QType::Edge(cembra_runtime::EdgeType::ToScalar(ArrayKind::Dense)),
        QType::Scalar(Scalar::Unit),
        QType::Scalar(Scalar::Boolean),
        QType::Unspecified,
    ];
    let mut unsaid = Vec::new();
    for (_, def) in Registry::standard().iter() {
        let count = def.params.len();
        // Their results are not asked again.
        for forms in [&forms[..2], &[QType::Scalar(Scalar::Float64), QType::Scalar(Scalar::Duration)]] {
            for qtype in forms.iter().filter(|_| def.integers() == Integers::Widen) {
                let args = vec![Argument { qtype, literal: None }; count];
                let ret = def.resolve(&args).ok().and_then(|resolved| resolved.signature.ret.of_each().scalar());
                assert!(!ret.is_some_and(Scalar::is_whole), "{} makes integers", def.name);
            }
        }
        let asks = matches!(def.name, "core.to_float32" | "core.float");
        if count > 4 || asks || def.name.contains("._") {
            continue;
        }
        let makes_floats = (0..forms.len().pow(count as u32)).any(|mut number| {
            let mut types = Vec::new();
            for _ in 0..count {
                types.push(&forms[number % forms.len()]);
                number /= forms.len();
            }
            let args: Vec<Argument<'_>> = types.into_iter().map(|qtype| Argument { qtype, literal: None }).collect();
            let ret = def.resolve(&args).ok().map(|resolved| resolved.signature.ret);
            ret.and_then(|ret| ret.of_each().scalar()) == Some(Scalar::Float32)
        });
        if makes_floats && !matches!(def.integers(), Integers::Widen | Integers::WidenFirst) {
            unsaid.push(def.name);
        }
    }
    assert_eq!(unsaid, [""; 0]);
}

/// The parser assumes that the result of an operator on a float is neither an integer nor a literal fraction, so that
/// it needs no mark next to such a result.
#[test]
fn what_meets_floats_makes_floats_or_no_numbers() {
    use cembra_expr::Integers;
    use cembra_runtime::ArrayKind;
    let of = |scalar| [QType::Scalar(scalar), QType::Optional(scalar), QType::Array(ArrayKind::Dense, scalar)];
    let floats = [Scalar::Float32, Scalar::Float64].map(of);
    let others = [Scalar::WeakFloat, Scalar::Int32, Scalar::Int64, Scalar::Duration, Scalar::Boolean].map(of);
    let mut looked_at = 0;
    for (_, def) in Registry::standard().iter() {
        let Integers::WidenBesideFloats(from) = def.integers() else { continue };
        let condition = QType::Optional(Scalar::Unit);
        for (float, other) in
            floats.iter().flatten().flat_map(|float| others.iter().flatten().map(move |other| (float, other)))
        {
            for pair in [[float, other], [other, float], [float, float]] {
                let types = (0..def.params.len().max(from + 2))
                    .map(|at| if at < from { &condition } else { pair[(at - from).min(1)] });
                let args: Vec<Argument<'_>> = types.map(|qtype| Argument { qtype, literal: None }).collect();
                let ret = def.resolve(&args).ok().and_then(|resolved| resolved.signature.ret.of_each().scalar());
                let Some(ret) = ret else { continue };
                looked_at += 1;
                assert!(!ret.is_whole() && ret != Scalar::WeakFloat, "{} of {pair:?} makes {ret:?}", def.name);
            }
        }
    }
    assert!(looked_at > 1000, "{looked_at}");
}
