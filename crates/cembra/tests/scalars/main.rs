//! Tests of evaluations of single rows, through the library's public interface: all backends, all kinds of inputs and
//! outputs, user-defined operators and types.

#[path = "../../../ops/tests/counting/mod.rs"]
#[expect(dead_code, reason = "bytes are for other programs")]
mod counting;

mod backends;
mod borrowed_rows;
mod cancellation;
mod compile_time;
mod examples;
mod externs;
mod float_mode;
mod fullness;
mod huge;
mod laziness;
mod loaded;
#[cfg(feature = "json")]
mod loaders;
mod loops;
mod machine;
mod many_names;
#[cfg(feature = "json")]
mod metered;
mod model_set;
mod model_tests;
#[cfg(feature = "json")]
mod nested;
mod on_demand;
mod outputs;
mod own_fields;
mod panics;
mod promises;
mod rendering;
#[cfg(feature = "json")]
mod serialized;
mod shared_divisors;
mod side_outputs;
mod small_stack;
mod strings;
mod threads;
mod tiers;
mod time_limits;
mod unsound_rewrites;
mod user_operators;
mod user_rules;
mod user_texts;
