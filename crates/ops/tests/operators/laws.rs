//! Tests of the algebraic laws that operators' records declare, such as `f(x, y) = f(y, x)`, on special and on random
//! values. Rewrites of expressions rely on these laws.

use crate::specials;

use cembra_ops::{Argument, Law, OpDef, Overload, PresenceRule, Registry, ResolvedCall, call};
use cembra_runtime::{QType, Scalar};
use cembra_value::{ScalarValue, Value};
use specials::specials;

/// Special values of a type, then random ones, then a missing value if the type is optional.
fn values(qtype: &QType, random: &mut fastrand::Rng) -> Vec<Value> {
    let scalar = qtype.scalar().expect("overloads are on scalars");
    let mut scalars = specials(scalar);
    if !scalar.is_string() {
        scalars.extend((0..60).filter_map(|_| {
            let narrow = matches!(scalar, Scalar::Int32 | Scalar::Float32);
            let bits = if narrow { u64::from(random.u32(..)) } else { random.u64(..) };
            ScalarValue::from_bits(scalar, if scalar == Scalar::Boolean { bits & 1 } else { bits })
        }));
    }
    if !qtype.is_optional() {
        return scalars.into_iter().map(Value::Scalar).collect();
    }
    scalars.into_iter().map(Value::Present).chain([Value::Missing(scalar)]).collect()
}

/// The result of the operator, computed by the overload for exactly these types.
fn apply(def: &OpDef, args: &[&Value]) -> Value {
    let types: Vec<QType> = args.iter().map(|value| value.qtype()).collect();
    let arguments: Vec<_> = types.iter().map(|qtype| Argument { qtype, literal: None }).collect();
    let resolved: ResolvedCall = def.resolve(&arguments).expect("types of an overload");
    let args: Vec<Value> = args.iter().map(|value| (*value).clone()).collect();
    call(def, &resolved, &args).expect("values of these types").expect("an operator with a law is total")
}

fn obeys(def: &OpDef, law: Law, overload: &Overload, lifted: bool, random: &mut fastrand::Rng) -> usize {
    let lists: Vec<Vec<Value>> =
        overload.args.iter().map(|arg| values(&QType::of(arg.scalar, arg.optional || lifted), random)).collect();
    let mut checked = 0;
    match (law, &lists[..]) {
        (Law::Commutative, [xs, ys]) => {
            for x in xs {
                for y in ys {
                    let (one, other) = (apply(def, &[x, y]), apply(def, &[y, x]));
                    assert!(one.same(&other), "{}: {one} of {x}, {y}, {other} the other way round", def.name);
                    checked += 1;
                }
            }
        }
        (Law::Idempotent, [xs]) => {
            for x in xs {
                let once = apply(def, &[x]);
                let twice = apply(def, &[&once]);
                assert!(once.same(&twice), "{}: {x} gives {once}, then {twice}", def.name);
                checked += 1;
            }
        }
        (Law::Involution, [xs]) => {
            for x in xs {
                let back = apply(def, &[&apply(def, &[x])]);
                assert!(back.same(x), "{}: {x} comes back as {back}", def.name);
                checked += 1;
            }
        }
        _ => panic!("{} declares {law:?} with {} arguments", def.name, lists.len()),
    }
    checked
}

#[test]
fn operators_obey_the_laws_they_declare() {
    let mut random = fastrand::Rng::with_seed(7);
    let (mut checked, mut laws) = (0, 0);
    for (_, def) in Registry::standard().iter() {
        assert!(def.laws.is_empty() || !def.overloads().is_empty(), "{} declares a law of an expansion", def.name);
        assert!(def.laws.is_empty() || def.is_total(), "{} declares a law and can fail", def.name);
        for law in def.laws {
            laws += 1;
            for overload in def.overloads() {
                checked += obeys(def, *law, overload, false, &mut random);
                if def.presence == PresenceRule::Strict {
                    checked += obeys(def, *law, overload, true, &mut random);
                }
            }
        }
    }
    assert!(laws >= 20 && checked > 300_000, "{laws} laws on {checked} arguments");
}

#[test]
fn what_breaks_a_law_is_seen() {
    // The maximum declares no law: of zeros of unlike sign the first one wins.
    let registry = Registry::standard();
    let maximum = registry.get(registry.find("math.maximum").expect("an operator"));
    let (zero, minus) = (Value::from(0.0_f32), Value::from(-0.0_f32));
    assert!(!apply(maximum, &[&zero, &minus]).same(&apply(maximum, &[&minus, &zero])));
}
