//! Criterion: from a model's text to something callable, warm, for every workload and backend.

use cembra_benches::subject::Way;
use cembra_benches::workload::{self, Visitor, Workload};
use cembra_benches::{Error, subject};
use criterion::{Criterion, criterion_group, criterion_main};

struct Compile<'a>(&'a mut Criterion);

impl Visitor for Compile<'_> {
    fn visit<W: Workload + 'static>(&mut self) -> Result<(), Error> {
        let mut group = self.0.benchmark_group(format!("compile/{}", W::NAME));
        for way in Way::ALL {
            subject::executor::<W>(way)?;
            group.bench_function(way.name, |bencher| bencher.iter_with_large_drop(|| subject::executor::<W>(way)));
        }
        group.finish();
        Ok(())
    }
}

fn compile(criterion: &mut Criterion) {
    workload::visit_all(&mut Compile(criterion)).expect("the workloads compile");
}

criterion_group!(benches, compile);
criterion_main!(benches);
