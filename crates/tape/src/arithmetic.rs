//! Records mathematical functions of the runtime, such as the logarithm, on a tape (a sequence of instructions without
//! branches). The steps of the function's algorithm become instructions, so that a backend inlines the function. A tape
//! can record a call of the function instead, which gives the same bits and less code.

use crate::{Bin, Cmp, Mask, Shift, Tape, Un, Val};
use cembra_runtime::math::{self, Arithmetic, Narrowing};
use cembra_runtime::{MachineType, RuntimeFn};

impl Tape {
    /// Sets whether mathematical functions are recorded as instructions (true, the default) or as calls of the runtime.
    pub fn set_inlining(&mut self, inlining: bool) {
        self.calling = !inlining;
    }

    /// Records a function of the runtime, and returns the function's result. A mathematical function is recorded as
    /// instructions if inlining is on. Every other function is recorded as a call.
    pub fn function(&mut self, function: RuntimeFn, args: &[Val]) -> Val {
        let inlined = if self.calling { None } else { math::record(self, function, args) };
        match inlined {
            Some(result) => result,
            None => self.call(function, args),
        }
    }
}

macro_rules! operations {
    ($($kind:ident { $($name:ident: $op:expr;)* })*) => { $($(operations!(@$kind $name $op);)*)* };
    (@one $name:ident $op:expr) => {
        fn $name(&mut self, x: Val) -> Val {
            self.un($op, x)
        }
    };
    (@two $name:ident $op:expr) => {
        fn $name(&mut self, x: Val, y: Val) -> Val {
            self.bin($op, x, y)
        }
    };
    (@by $name:ident $op:expr) => {
        fn $name(&mut self, x: Val, by: u8) -> Val {
            self.shift($op, x, by)
        }
    };
}

macro_rules! arithmetic {
    ($float:ident: $number:ident, $word:ident) => {
        impl Arithmetic<$float> for Tape {
            type Number = Val;
            type Word = Val;
            type Truth = Mask;

            operations! {
                one {
                    bits: Un::Bitcast(MachineType::$word);
                    number: Un::Bitcast(MachineType::$number);
                    count: Un::Convert(MachineType::$number);
                    neg: Un::Neg;
                    abs: Un::Abs;
                    sqrt: Un::Sqrt;
                }
                two {
                    add: Bin::Add;
                    sub: Bin::Sub;
                    mul: Bin::Mul;
                    div: Bin::Div;
                    scale: Bin::Scale;
                    min: Bin::FMin;
                    max: Bin::FMax;
                    copysign: Bin::Copysign;
                    plus: Bin::Add;
                    minus: Bin::Sub;
                    and: Bin::And;
                    or: Bin::Or;
                    xor: Bin::Xor;
                }
                by {
                    left: Shift::Left;
                    right: Shift::Right;
                }
            }

            fn constant(&mut self, value: $float) -> Val {
                self.konst(MachineType::$number, value.to_bits().into())
            }

            fn word(&mut self, bits: u64) -> Val {
                self.konst(MachineType::$word, bits)
            }

            fn fma(&mut self, x: Val, y: Val, z: Val) -> Val {
                Tape::fma(self, x, y, z)
            }

            fn less(&mut self, x: Val, y: Val) -> Mask {
                self.cmp(Cmp::Lt, x, y)
            }

            fn equal(&mut self, x: Val, y: Val) -> Mask {
                self.cmp(Cmp::Eq, x, y)
            }

            fn not_zero(&mut self, x: Val) -> Mask {
                let zero = self.konst(MachineType::$word, 0);
                self.cmp(Cmp::Ne, x, zero)
            }

            fn not(&mut self, a: Mask) -> Mask {
                self.mnot(a)
            }

            fn either(&mut self, a: Mask, b: Mask) -> Mask {
                self.mor(a, b)
            }

            fn select(&mut self, mask: Mask, on: Val, off: Val) -> Val {
                Tape::select(self, mask, on, off)
            }

            fn select_rare(&mut self, mask: Mask, on: Val, off: Val) -> Val {
                Tape::select_rare(self, mask, on, off)
            }

            fn rare(&mut self, mask: Mask, function: RuntimeFn, arguments: &[Val], ordinary: Val) -> Val {
                self.call_where(mask, function, arguments, ordinary)
            }
        }
    };
}

arithmetic!(f32: F32, I32);
arithmetic!(f64: F64, I64);

impl Narrowing for Tape {
    type Single = Val;

    operations! {
        one {
            widen: Un::Convert(MachineType::F64);
            narrow: Un::Convert(MachineType::F32);
        }
    }

    fn rare_single(&mut self, mask: Mask, function: RuntimeFn, arguments: &[Val], ordinary: Val) -> Val {
        self.call_where(mask, function, arguments, ordinary)
    }
}
