//! Other libraries that evaluate expressions, as subjects: what cembra's interpreter and its machine code are compared
//! with. All are interpreters of `f64`. Their texts are made from the workloads' models; what a language has no way to
//! say is left out, and the record says why. Only libraries whose whole dependency tree is permissively licensed are here.

mod cel;
mod exmex;
mod fasteval;
mod text;

use crate::Error;
use crate::row::{Answer, Row};
use crate::subject::{Chain, Family, Subject, each};
use crate::workload::{Comparison, Workload};
use std::hint::black_box;

/// A library.
trait Peer: Sized + 'static {
    /// The name of its subject.
    const NAME: &'static str;

    /// How its language writes an operator over operands that are written already; `None` if it cannot.
    fn operator(name: &str, operands: &[&str]) -> Option<String>;

    /// How it writes a missing value, if it has one.
    const MISSING: Option<&'static str>;

    /// Compiles expressions over inputs of these names, as well as the library can.
    fn compile(texts: &[String], names: &'static [&'static str]) -> Result<Self, PeerError>;

    /// Evaluates all expressions. The inputs are in the order of the names.
    fn run(&mut self, inputs: &[Option<f64>], outputs: &mut Vec<Option<f64>>) -> Result<(), PeerError>;
}

/// The names of all of them.
pub const NAMES: [&str; 3] = [fasteval::Fasteval::NAME, cel::Cel::NAME, exmex::Exmex::NAME];

type PeerError = Box<dyn std::error::Error>;

/// A subject made of texts.
type Compiled<W> = Result<Box<dyn Subject<W>>, Error>;

/// A peer that a workload was offered to.
pub struct Offer<W: Workload> {
    /// The name of its subject.
    pub name: &'static str,
    /// The texts of the workload in its language; or why there are none.
    pub texts: Result<Vec<String>, String>,
    compile: fn(&[String]) -> Compiled<W>,
}

impl<W: Workload + 'static> Offer<W> {
    fn new<P: Peer>() -> Result<Self, Error> {
        let compile = |texts: &[String]| -> Compiled<W> {
            let peer = P::compile(texts, W::Input::NAMES).map_err(peer_error::<W>)?;
            Ok(Box::new(Foreign { peer, inputs: vec![None; W::Input::NAMES.len()] }))
        };
        Ok(Offer { name: P::NAME, texts: text::of::<W, P>()?, compile })
    }

    /// The subject; the reason if the peer cannot say the workload.
    ///
    /// # Errors
    /// The library refuses its text.
    pub fn subject(&self) -> Result<Result<Box<dyn Subject<W>>, &str>, Error> {
        match &self.texts {
            Ok(texts) => (self.compile)(texts).map(Ok),
            Err(reason) => Ok(Err(reason)),
        }
    }
}

/// All peers.
///
/// # Errors
/// The workload's own text is wrong.
pub fn all<W: Workload + 'static>() -> Result<Vec<Offer<W>>, Error> {
    Ok(vec![Offer::new::<fasteval::Fasteval>()?, Offer::new::<cel::Cel>()?, Offer::new::<exmex::Exmex>()?])
}

fn peer_error<W: Workload>(source: PeerError) -> Error {
    Error::Stage { workload: W::NAME, source }
}

/// A peer as a subject.
struct Foreign<P> {
    peer: P,
    inputs: Vec<Option<f64>>,
}

impl<W: Workload, P: Peer> Subject<W> for Foreign<P> {
    fn name(&self) -> &'static str {
        P::NAME
    }

    fn family(&self) -> Family {
        Family::Peer(P::NAME)
    }

    /// Peers compute in `f64` throughout, and some of them in another order.
    fn comparison(&self) -> Comparison {
        Comparison::Relative(1e-5)
    }

    fn answer(&mut self, row: &W::Input) -> Result<W::Output, Error> {
        let mut outputs = Vec::new();
        row.write_floats(&mut self.inputs);
        self.peer.run(&self.inputs, &mut outputs).map_err(peer_error::<W>)?;
        W::Output::from_floats(&outputs).ok_or(Error::Inputs { workload: W::NAME })
    }

    #[inline(never)]
    fn sweep(&mut self, rows: &[W::Input], chain: Chain) -> Result<(), Error> {
        let (peer, inputs) = (black_box(&mut self.peer), &mut self.inputs[..]);
        each(rows, chain, &mut Vec::new(), |row, outputs| {
            row.write_floats(inputs);
            peer.run(inputs, outputs).map_err(peer_error::<W>)
        })
    }
}

/// `a + b` in brackets, for the operators that all peers write alike.
fn infix(name: &str, operands: &[&str]) -> Option<String> {
    let token = match name {
        "math.add" => "+",
        "math.subtract" => "-",
        "math.multiply" => "*",
        "math.divide" => "/",
        "core.less" => "<",
        "core.less_equal" => "<=",
        "core.greater" => ">",
        "core.greater_equal" => ">=",
        "core._and" => "&&",
        _ => "",
    };
    match (name, operands) {
        ("math.neg", [x]) => Some(format!("(-{x})")),
        (_, [x, y]) if !token.is_empty() => Some(format!("({x} {token} {y})")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::{S1, S2, S3, S4, S5};
    use crate::{agreement, subject};

    fn said<W: Workload + 'static>() -> Vec<&'static str> {
        let mut subjects = subject::limits::<W>();
        let mut said = Vec::new();
        for offer in all::<W>().expect("the model is fine") {
            if let Ok(subject) = offer.subject().expect("the peer takes its text") {
                said.push(offer.name);
                subjects.push(subject);
            }
        }
        agreement::check(&mut subjects, &W::ring(2_000)).expect("all agree");
        said
    }

    #[test]
    fn peers_say_what_they_can_and_agree() {
        let everybody = ["fasteval", "cel", "exmex"];
        assert_eq!((said::<S1>(), said::<S4>(), said::<S5>()), (everybody.into(), everybody.into(), everybody.into()));
        assert_eq!((said::<S2>(), said::<S3>()), (vec!["cel", "exmex"], vec!["cel", "exmex"]));
        let offers = all::<S2>().expect("the model is fine");
        assert_eq!(offers[0].texts, Err("nothing like `math.sqrt`".to_owned()));
    }

    #[test]
    fn texts_are_made_from_the_model() {
        let texts = |at: usize| all::<S1>().expect("the model is fine").remove(at).texts.expect("it can");
        assert_eq!([texts(0), texts(1), texts(2)], [["((x * 2.0) + 1.0)"]; 3].map(|text| text.map(str::to_owned)));
    }
}
