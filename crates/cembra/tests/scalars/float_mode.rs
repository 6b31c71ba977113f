//! Tests that compiling a model fails in a thread whose floating-point mode is not the default. Each test sets the mode
//! of its own thread, on x86-64 only.
#![cfg(target_arch = "x86_64")]

use cembra::tensor::{CompileGraph, Reduction, TensorGraph, same_bits};
use cembra::{Backend, Model, Options, Scalar, Tensor};
use std::arch::asm;

/// Runs `run` with the bits `bits` of the floating-point control register set, and restores the register.
fn with_mode<R>(bits: u32, run: impl FnOnce() -> R) -> R {
    let mut old = 0_u32;
    // SAFETY: reads the control register into a local variable.
    unsafe { asm!("stmxcsr [{}]", in(reg) &raw mut old, options(nostack)) };
    let new = old | bits;
    // SAFETY: the register is given a mode the processor has; it is put back below, and nothing in between panics.
    unsafe { asm!("ldmxcsr [{}]", in(reg) &raw const new, options(nostack)) };
    let result = run();
    // SAFETY: as above.
    unsafe { asm!("ldmxcsr [{}]", in(reg) &raw const old, options(nostack)) };
    result
}

#[test]
fn another_mode_is_refused() {
    let model = Model::parse("input x: f64; x * 2").unwrap();
    let modes =
        [("zero", 0x6000), ("up", 0x4000), ("down", 0x2000), ("flush", 0x8000), ("subnormals are zero", 0x0040)];
    for backend in [Backend::Interpreter, Backend::Native] {
        let options = Options::default().backend(backend);
        for (name, bits) in modes {
            let error = with_mode(bits, || model.compile(&options)).expect_err(name);
            assert_eq!(error.code(), "float-mode", "{name}");
        }
        assert!(with_mode(0, || model.compile(&options)).is_ok());
    }
}

#[test]
fn plans_of_tensors_compute_nothing_in_another_mode() {
    let mut g = TensorGraph::standard();
    let x = g.leaf("x", Scalar::Float64, &[3, 5000]).expect("a leaf");
    let square = g.apply("math.multiply", &[x, x]).expect("a node");
    let sum = g.reduce(Reduction::Sum, square, &[1]).expect("a node");
    let most = g.reduce(Reduction::Max, x, &[1]).expect("a node");
    let input = [Tensor::new(&[3, 5000], (0..15_000).map(|at| f64::from(at) * 0.3).collect()).expect("a tensor")];
    // A map, a sum of what is computed meanwhile, and two reductions in one loop.
    for outputs in [vec![square], vec![sum], vec![sum, most]] {
        let executor = g.compile(&outputs, &Options::default()).expect("an executor");
        let run = || executor.session().run_tensors(&input).map(<[Tensor]>::to_vec);
        let expected = run().expect("values");
        for bits in [0x6000, 0x4000, 0x2000, 0x8000, 0x0040] {
            let error = with_mode(bits, run).expect_err("another mode");
            assert!(error.to_string().contains("floating-point mode"), "{error}");
            let made = run().expect("values");
            assert!(expected.iter().zip(&made).all(|(expected, made)| same_bits(expected, made)), "{made:?}");
        }
    }
}

#[test]
fn sessions_of_lines_compute_nothing_in_another_mode() {
    let mut g = TensorGraph::standard();
    let x = g.leaf("x", Scalar::Float64, &[1000]).expect("a leaf");
    let square = g.apply("math.multiply", &[x, x]).expect("a node");
    let sum = g.reduce(Reduction::Sum, square, &[0]).expect("a node");
    let input = [Tensor::new(&[1000], (0..1000).map(|at| f64::from(at) * 0.3).collect()).expect("a tensor")];
    for output in [square, sum] {
        let executor = g.compile(&[output], &Options::default()).expect("an executor");
        let expected = executor.session().run_tensors(&input).expect("values").to_vec();
        let mut session = executor.session();
        for bits in [0x6000, 0x4000, 0x2000, 0x8000, 0x0040] {
            // The first run makes the output, those behind it write to it again.
            for _ in 0..3 {
                let made = session.run_tensors(&input).expect("values");
                assert!(same_bits(&expected[0], &made[0]), "{made:?}");
            }
            let error = with_mode(bits, || session.run_tensors(&input).map(<[Tensor]>::len)).expect_err("another mode");
            assert!(error.to_string().contains("floating-point mode"), "{error}");
        }
    }
}
