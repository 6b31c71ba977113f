//! The mathematical functions in every form they have, on millions of points: interpreted, inlined in native code, called
//! by native code, in lanes, recorded and played on bits, which takes no fused instruction. All must give the same bits.

use cembra::native::Tier;
use cembra::{Backend, Model, ModelExecutor, Options};
use cembra_native::lanes::{self, LaneLoop, Lanes};
use cembra_runtime::{Context, MachineType, RuntimeFn};
use cembra_tape::{Outcome, Output, Port, Tape, TapeLoop};

/// A NaN is as good as another.
trait Float: Copy {
    const TYPE: MachineType;
    fn of(x: f64) -> Self;
    fn from_low(bits: u64) -> Self;
    fn bits(self) -> Option<u64>;
}

impl Float for f32 {
    const TYPE: MachineType = MachineType::F32;
    fn of(x: f64) -> f32 {
        x as f32
    }
    fn from_low(bits: u64) -> f32 {
        f32::from_bits(bits as u32)
    }
    fn bits(self) -> Option<u64> {
        (!self.is_nan()).then(|| u64::from(self.to_bits()))
    }
}

impl Float for f64 {
    const TYPE: MachineType = MachineType::F64;
    fn of(x: f64) -> f64 {
        x
    }
    fn from_low(bits: u64) -> f64 {
        f64::from_bits(bits)
    }
    fn bits(self) -> Option<u64> {
        (!self.is_nan()).then(|| self.to_bits())
    }
}

const SPECIAL: &[f64] = &[
    0.0,
    1.0,
    2.0,
    3.0,
    7.0,
    0.5,
    0.75,
    1.5,
    1.0 - f64::EPSILON / 2.0,
    1.0 + f64::EPSILON,
    1.0 + 1.0 / 8_388_608.0,
    5e-324,
    f64::MIN_POSITIVE,
    f64::MIN_POSITIVE * 0.6,
    1e-45,
    1e-38,
    1e-40,
    1e-9,
    1e-20,
    f64::MAX,
    3.402_823_5e38,
    1e300,
    f64::INFINITY,
    f64::NAN,
    // Where exponentials overflow, underflow, and change their exponent.
    709.782_712_893_384,
    709.782_712_893_384_1,
    710.5,
    745.133_219_101_941_1,
    745.2,
    708.4,
    88.722_84,
    88.8,
    103.97,
    104.0,
    87.4,
    std::f64::consts::LN_2 / 2.0,
    std::f64::consts::LN_2,
    // Where sums stop being exact.
    9_007_199_254_740_992.0,
    9_007_199_254_740_993.0,
    16_777_216.0,
    4_503_599_627_370_497.0,
    // Angles at which the rest is tiny, and huge ones.
    std::f64::consts::FRAC_PI_2,
    std::f64::consts::FRAC_PI_4,
    std::f64::consts::PI,
    22.0,
    355.0,
    1_073_741_823.0,
    1_073_741_824.0,
    1e22,
    6_381_956_970_095_103.0,
    0.414_213_562_373_095,
    2.414_213_562_373_095,
    // Where probabilities are computed another way, and where they underflow.
    0.25,
    26.6,
    27.2,
    37.6,
    38.5,
];

/// A point: any bits, or numbers of the sizes that functions are used on.
fn point<F: Float>(random: &mut fastrand::Rng) -> F {
    let sign = if random.bool() { 1.0 } else { -1.0 };
    match random.u8(0..8) {
        0 => F::from_low(random.u64(..)),
        1 => F::of(sign * SPECIAL[random.usize(0..SPECIAL.len())]),
        2 => F::of(sign * f64::from(random.u32(0..2000))),
        3 => F::of(1.0 + sign * random.f64() * 0.5_f64.powi(random.i32(0..30))),
        4 => F::of(sign * random.f64() * 750.0),
        5 => F::of(sign * random.f64() * 1e10),
        6 => F::of(sign * random.f64() * 2.0_f64.powi(random.i32(-60..20))),
        _ => F::of(sign * random.f64() * 3.0),
    }
}

macro_rules! functions {
    ($($name:ident $single:ident $double:ident $text:literal;)*) => {
        #[derive(cembra::Input)]
        struct Point<F: cembra::InputValue> {
            x: F,
            y: F,
        }

        #[derive(cembra::Output)]
        struct Values<F: cembra::OutputValue> {
            $($name: F,)*
        }

        const NAMES: &[&str] = &[$(stringify!($name)),*];
        const SINGLE: &[RuntimeFn] = &[$(RuntimeFn::$single),*];
        const DOUBLE: &[RuntimeFn] = &[$(RuntimeFn::$double),*];

        impl<F: Copy + cembra::OutputValue> Values<F> {
            fn list(&self) -> [F; NAMES.len()] {
                [$(self.$name),*]
            }
        }

        fn text(ty: &str) -> String {
            let mut text = format!("input x, y: {ty}\n");
            $(text.push_str(concat!("output ", stringify!($name), " = ", $text, "\n"));)*
            text
        }
    };
}

functions! {
    exp ExpF32 ExpF64 "math.exp(x)";
    exp2 Exp2F32 Exp2F64 "math.exp2(x)";
    expm1 Expm1F32 Expm1F64 "math.expm1(x)";
    log LogF32 LogF64 "math.log(x)";
    log1p Log1pF32 Log1pF64 "math.log1p(x)";
    log2 Log2F32 Log2F64 "math.log2(x)";
    log10 Log10F32 Log10F64 "math.log10(x)";
    sin SinF32 SinF64 "math.trig.sin(x)";
    cos CosF32 CosF64 "math.trig.cos(x)";
    sinh SinhF32 SinhF64 "math.trig.sinh(x)";
    tanh TanhF32 TanhF64 "math.tanh(x)";
    atan AtanF32 AtanF64 "math.trig.atan(x)";
    erf ErfF32 ErfF64 "math.erf(x)";
    erfc ErfcF32 ErfcF64 "math.erfc(x)";
    normal NormalCdfF32 NormalCdfF64 "math.normal_distribution_cdf(x)";
    atan2 Atan2F32 Atan2F64 "math.trig.atan2(x, y)";
    hypot HypotF32 HypotF64 "math.hypot(x, y)";
    pow PowF32 PowF64 "math.pow(x, y)";
}

/// How many points are taken at a time: no multiple of the lanes, so that some are left over.
const BATCH: usize = 2_503;

/// A function on a tape, and compiled for each number of lanes.
struct Recorded {
    tape: Tape,
    arguments: usize,
    in_lanes: Vec<(Lanes, LaneLoop)>,
}

impl Recorded {
    fn new(function: RuntimeFn, ty: MachineType) -> Recorded {
        let mut tape = Tape::new();
        let args: Vec<_> = function.signature().0.iter().map(|_| tape.input(ty)).collect();
        let result = tape.function(function, &args);
        tape.output(Output::Number(result));
        tape.finish();
        let ports = vec![Port::Rows; args.len()];
        let compile =
            |lanes| lanes::compile_in(lanes, &tape, &ports, &[], &cembra_value::Budget::default()).expect("compiles");
        let in_lanes = Lanes::ALL.map(|lanes| (lanes, compile(lanes))).into();
        Recorded { arguments: args.len(), in_lanes, tape }
    }

    /// The values at the points, for each number of lanes.
    fn in_lanes<F: Float>(&self, x: &[F], y: &[F]) -> Vec<(Lanes, Vec<F>)> {
        let arguments = [x.as_ptr().cast_mut().cast(), y.as_ptr().cast_mut().cast()];
        let run = |(lanes, function): &(Lanes, LaneLoop)| {
            let mut values = vec![F::of(0.0); x.len()];
            let output = values.as_mut_ptr().cast();
            let ports: Vec<*mut u8> = arguments[..self.arguments].iter().copied().chain([output]).collect();
            // SAFETY: PORTS: the tape is of numbers of this type, and there are as many of each as points.
            let fails = unsafe { function.play(&ports, x.len(), &mut Context::new()) };
            assert!(!fails, "functions do not fail");
            (*lanes, values)
        };
        self.in_lanes.iter().map(run).collect()
    }
}

macro_rules! compare {
    ($ty:ident, $functions:ident, $points:expr) => {{
        let model = Model::parse(&text(stringify!($ty))).expect("a model");
        let executor = |backend, tier| -> ModelExecutor<Point<$ty>, Values<$ty>> {
            model.executor(&Options::default().backend(backend).tier(tier)).expect("compiles")
        };
        let mut interpreted = executor(Backend::Interpreter, Tier::Optimised);
        let mut inlined = executor(Backend::Native, Tier::Optimised);
        let mut called = executor(Backend::Native, Tier::Quick);
        let recorded: Vec<_> = $functions.iter().map(|f| Recorded::new(*f, <$ty as Float>::TYPE)).collect();
        let mut random = fastrand::Rng::with_seed(11);
        for _ in 0..$points / BATCH {
            let [x, y] = [(); 2].map(|()| (0..BATCH).map(|_| point(&mut random)).collect::<Vec<$ty>>());
            let in_lanes: Vec<_> = recorded.iter().map(|function| function.in_lanes(&x, &y)).collect();
            for number in 0..BATCH {
                let point: Point<$ty> = Point { x: x[number], y: y[number] };
                let expected = interpreted.run(&point).expect("a result").list();
                let inlined = inlined.run(&point).expect("a result").list();
                let called = called.run(&point).expect("a result").list();
                for at in 0..NAMES.len() {
                    let expected = expected[at].bits();
                    let agrees = |found: Option<u64>, how: &dyn std::fmt::Debug| {
                        let (x, y) = (point.x, point.y);
                        assert_eq!(found, expected, "{} {} ({x:e}, {y:e}): {how:?}", stringify!($ty), NAMES[at]);
                    };
                    agrees(inlined[at].bits(), &"inlined");
                    agrees(called[at].bits(), &"called");
                    for (lanes, values) in &in_lanes[at] {
                        agrees(values[number].bits(), lanes);
                    }
                    let Recorded { tape, arguments, .. } = &recorded[at];
                    let bits = [u64::from(point.x.to_bits()), u64::from(point.y.to_bits())];
                    let value = |bits: u64| <$ty as Float>::from_low(bits).bits();
                    if number % 4 == 0 {
                        // SAFETY: STRING-VIEW: functions of numbers.
                        let outcome = unsafe { tape.run_on_bits(&bits[..*arguments]) };
                        let Outcome::Done(results) = outcome else { panic!("functions do not fail") };
                        agrees(results.last().copied().and_then(value), &"played on bits");
                    }
                }
            }
        }
    }};
}

#[test]
fn all_forms_of_a_function_give_the_same_bits() {
    compare!(f32, SINGLE, 60_000);
    compare!(f64, DOUBLE, 60_000);
}

#[test]
#[ignore = "ten million points: seconds in a release build only"]
fn all_forms_of_a_function_give_the_same_bits_on_ten_million_points() {
    compare!(f32, SINGLE, 455_000);
    compare!(f64, DOUBLE, 455_000);
}
