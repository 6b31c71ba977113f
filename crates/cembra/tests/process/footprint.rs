//! Tests that `memory_bytes` of an executor is the memory that the executor has allocated.

use cembra::{Backend, Model, ModelExecutor, Options};

#[derive(cembra::Input)]
struct Row<'t> {
    x: f64,
    n: i32,
    name: &'t str,
}

const MODELS: [&str; 3] = [
    "input x: f64; output y = (if x < 0.5 then x * 3.25 else x / 7.5) + math.maximum(x, 2.5) * (x - 0.75)",
    "input n: i32; output y = if n // 3 > 7 % n then core.cast(n, f64) else 1.5",
    "input name: text; output y = if strings.upper(name) == 'ANN' then 1.5 else core.cast(strings.length(name), f64)",
];

/// The number of executors that exist at the same time. Memory that the process allocates once is little per executor
/// then.
const ALIVE: usize = 200;

#[test]
fn memory_bytes_is_what_is_held() {
    let _alone = crate::alone();
    for backend in [Backend::Interpreter, Backend::Native, Backend::Tiered] {
        let options = Options::default().backend(backend);
        for text in MODELS {
            let load = || Model::parse(text)?.executor::<Row<'_>, f64>(&options);
            load().unwrap();
            let mut alive: Vec<ModelExecutor<Row<'_>, f64>> = Vec::with_capacity(ALIVE);
            let before = crate::counting::held();
            alive.extend((0..ALIVE).map(|_| load().unwrap()));
            let held = crate::counting::held().wrapping_sub(before) / ALIVE;
            let executor = &alive[0];
            // The code's pages are not the allocator's, the value itself lies in the list.
            let code = if backend == Backend::Native { 4096 } else { 0 };
            let counted = executor.memory_bytes() - size_of_val(executor) + executor.executor().memory_bytes() - code;
            // Names are not counted, nor what counts references.
            assert!(counted <= held && held <= counted + 1_000, "{backend:?} {text}: {counted} of {held}");
            // The half of it is the program, which a model that is alive shares: it is planned again for many rows.
            let small = if backend == Backend::Tiered { 8_500 } else { 5_250 };
            assert!(held <= small, "{backend:?} {text}: {held}");
        }
    }
}
