//! Tests texts, models and iterative solvers on several ranks, each a thread: results have the bits of one process, and
//! all ranks get the same errors.

use super::Tilings;
use cembra::tensor::Tensor;
use cembra::tiles::{Operand, Options, Run, Stop, TileMap, Tiled, World};
use cembra::{Error, Model};
use std::collections::BTreeMap;

/// Returns a square matrix in random tiles.
fn matrix(by: f64) -> Tiled {
    let elements = (0..400).map(|at| {
        let [row, column]: [i32; 2] = [at / 20, at % 20];
        f64::from(u8::from(row == column)) * 2.0
            + (f64::from(at) * by).sin() * 0.3 / f64::from(1 + (row - column).abs())
    });
    Tilings::new(5).tiled(&Tensor::new(&[20, 20], elements.collect()).expect("a matrix"))
}

/// Returns the bits of all elements of a tensor. All ranks must call this.
fn bits(run: &Run, of: &Tiled) -> Result<Vec<u64>, Error> {
    Ok(run.evaluator().gathered(of)?.to_tensor()?.to_vec::<f64>()?.into_iter().map(f64::to_bits).collect())
}

/// Runs `program` on one process and on one to four ranks, asserts that all results are equal, and returns the result.
fn same<R: PartialEq + std::fmt::Debug + Send>(program: impl Fn(&World) -> Result<R, Error> + Sync) -> R {
    let alone = program(&World::alone()).expect("no error");
    for ranks in [1, 2, 3, 4] {
        for found in World::on_threads(ranks, |world| program(&world)) {
            assert_eq!(found.expect("no error"), alone, "{ranks} ranks");
        }
    }
    alone
}

#[test]
fn texts_and_iterations_have_the_bits_of_one_process() {
    let (a, b) = (matrix(0.7), matrix(1.9));
    same(|world| {
        let mut run = world.evaluator(Options::default().threshold(1e-10));
        let a = run.evaluator().distributed(&a, &TileMap::square(world.size()))?;
        let text = r#"
            let square("i,j") = a("i,k") * a("k,j")
            let rows = tensor.sum(square, 1, keep=true)
            output scaled = exp(square * 0.1) * b / (abs(rows) + 1.0)
            output column("i") = a("i,j") * b("j,i")
            output half("i,j") = a("i,j") - 0.5 * b("j,i")
            output number = tensor.sum(abs(square))
        "#;
        let made = run.statements(text, [("a", &a), ("b", &b)])?;
        let mut found = made.values().map(|made| bits(&run, made)).collect::<Result<Vec<_>, Error>>()?;
        let inverse = run.inverse(&a, Stop::default())?;
        found.push(bits(&run, &inverse.value)?);
        let column = &made["column"];
        let solved =
            run.conjugate_gradients(&run.evaluator().product("ij,kj->ik", &a, &a)?, column, Stop::default())?;
        found.push(bits(&run, &solved.value)?);
        found.push(vec![run.number(r#"(a("i,j") * b("i,j")).sum()"#, [("a", &a), ("b", &b)])?.to_bits()]);
        Ok((found, inverse.steps, solved.steps))
    });
}

#[test]
fn models_have_the_bits_of_one_process_and_go_on_from_outputs() {
    let text = "tile i, j, k = 3\ninput a: tiled[f64, \"i,k\"]\noutput b(\"i,j\") = a(\"i,k\") * a(\"k,j\")\n\
                output c = exp(b * 0.1) - 1.0\noutput d(\"i,j\") = c(\"i,k\") * b(\"k,j\")\n";
    let model = Model::parse(text).and_then(|model| model.compile(&cembra::Options::default())).expect("a model");
    let a = Tensor::new(&[8, 8], (0..64).map(|at| f64::from(at).cos()).collect::<Vec<f64>>()).expect("a matrix");
    same(|world| {
        let run = world.evaluator(Options::default());
        let given = || [("a", Operand::Dense(&a))];
        let mut kept = Vec::new();
        let made = run.tiled(&model).run_from(given(), BTreeMap::new(), |made| {
            kept.push(made.keys().cloned().collect::<Vec<String>>());
            Ok(())
        })?;
        assert_eq!(kept, [vec!["b"], vec!["b", "c"], vec!["b", "c", "d"]]);
        let all = made.values().map(|made| bits(&run, made)).collect::<Result<Vec<_>, Error>>()?;
        // From what is known already nothing is made again.
        let known: BTreeMap<String, Tiled> = made.iter().take(2).map(|(name, of)| (name.clone(), of.clone())).collect();
        let mut again = 0;
        let rest = run.tiled(&model).run_from(given(), known, |_| {
            again += 1;
            Ok(())
        })?;
        assert_eq!(again, 1);
        assert_eq!(rest.values().map(|made| bits(&run, made)).collect::<Result<Vec<_>, Error>>()?, all);
        let wrong = run.tiled(&model).run_from(given(), BTreeMap::from([("c".to_owned(), matrix(1.0))]), |_| Ok(()));
        assert!(wrong.expect_err("an error").to_string().contains("of the same program"));
        // What is handed an output may fail, on all ranks alike.
        let failed = run.tiled(&model).run_from(given(), BTreeMap::new(), |made| match made.len() {
            1 => Ok(()),
            _ => Err(Error::values("no room")),
        });
        assert_eq!(failed.expect_err("an error").to_string(), "no room");
        Ok(all)
    });
}

#[test]
fn what_one_rank_cannot_read_is_an_error_on_all() {
    let a = matrix(0.7);
    for wrong in 0..3 {
        let made = World::on_threads(3, |world| {
            let mut run = world.evaluator(Options::default());
            let is_wrong = world.rank() == wrong;
            let mut said = Vec::new();
            // A text that is damaged, a name that is not given, another text, and a matrix where a number is asked for.
            let text = if is_wrong { "a +" } else { "a + a" };
            said.push(run.statement(text, [("a", &a)]).expect_err("an error").to_string());
            let name = if is_wrong { "x" } else { "a" };
            said.push(run.statement("a + a", [(name, &a)]).expect_err("an error").to_string());
            let text = if is_wrong { "a - a" } else { "a + a" };
            said.push(run.statement(text, [("a", &a)]).expect_err("an error").to_string());
            said.push(run.number("a + a", [("a", &a)]).expect_err("an error").to_string());
            // The next text is as if nothing had been.
            let sum = run.number("tensor.sum(a)", [("a", &a)])?;
            Ok((said, sum.to_bits()))
        });
        let made: Vec<_> = made.into_iter().map(|made| made.expect("no error")).collect();
        assert!(made.iter().all(|other| *other == made[0]), "{made:?}");
        let [damaged, unknown, other, axes] = &made[0].0[..] else { panic!("{made:?}") };
        assert!(damaged.contains("expected"), "{damaged}");
        assert!(unknown.contains('a'), "{unknown}");
        assert!(other.starts_with("ranks disagree on the program: rank 0 has "), "{other}");
        assert!(axes.contains("where a number is needed"), "{axes}");
    }
}
