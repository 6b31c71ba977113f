//! Criterion: one call per row, for every workload and subject. The numbers to quote are those of `versus`, which
//! interleaves its subjects; this is for watching one of them while working on it.

use cembra_benches::scalar::RING;
use cembra_benches::subject::Chain;
use cembra_benches::workload::{self, Visitor, Workload};
use cembra_benches::{Error, agreement, subject};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

struct Scalar<'a>(&'a mut Criterion);

impl Visitor for Scalar<'_> {
    fn visit<W: Workload + 'static>(&mut self) -> Result<(), Error> {
        let rows = W::ring(RING);
        let mut subjects = subject::all::<W>()?;
        agreement::check(&mut subjects, &rows)?;
        let mut group = self.0.benchmark_group(format!("scalar/{}", W::NAME));
        group.throughput(Throughput::Elements(rows.len() as u64));
        for subject in &mut subjects {
            group.bench_function(subject.name(), |bencher| bencher.iter(|| subject.sweep(&rows, Chain::Free)));
        }
        group.finish();
        Ok(())
    }
}

fn scalar(criterion: &mut Criterion) {
    workload::visit_all(&mut Scalar(criterion)).expect("the workloads run and agree");
}

criterion_group!(benches, scalar);
criterion_main!(benches);
