//! Tests of the link between threads, and of collectives: with any order of delivery, with unexpected messages, and
//! with ranks that fail, panic, end early or are cancelled.

use cembra_runtime::{Cancellation, FaultKind, Scalar};
use cembra_tiles::Tile;
use cembra_tiles::link::{
    DelayedLink, Done, ExpectedMessage, Failure, Link, MOST_SHARED_BYTES, MOST_TAG, MessageId, Payload, Ranks, Request,
    Transfer, WaitPolicy, no_link, run_ranks,
};
use cembra_value::Error;
use cembra_value::tensor::{Tensor, TensorErrorKind as Kind};
use fastrand::Rng;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

const fn id(step: u32, tile: u64) -> MessageId {
    MessageId { plan: 5, step, tile }
}

fn tile(first: f64) -> Tile {
    let elements: Vec<f64> = (0..6).map(|at| first + f64::from(at)).collect();
    Tile::of(&Tensor::new(&[2, 3], elements).expect("a tensor")).expect("a tile")
}

fn bytes_of(done: Done) -> Vec<u8> {
    done.into_payload().expect("a message").bytes().to_vec()
}

/// Runs code on `ranks` ranks, none of which may fail, and returns their results.
fn all<R: Send>(ranks: usize, run: impl Fn(Arc<dyn Link>) -> Result<R, Error> + Sync) -> Vec<R> {
    run_ranks(ranks, run).into_iter().collect::<Result<_, Error>>().expect("no rank fails")
}

/// Runs code on `ranks` ranks, which must all fail, and returns their errors.
fn errors(ranks: usize, run: impl Fn(Arc<dyn Link>) -> Result<(), Error> + Sync) -> Vec<Error> {
    run_ranks(ranks, run).into_iter().map(|result| result.expect_err("each rank fails")).collect()
}

#[test]
fn a_tile_arrives_in_the_memory_that_it_was_sent_from() {
    let own = tile(1.0);
    let at = own.elements::<f64>().as_ptr() as usize;
    let found = all(2, |link| {
        if link.rank() == 0 {
            let sent = link.send(1, 3, Payload::of_tile(id(1, 2), own.clone())?)?;
            WaitPolicy::default().all(vec![sent])?;
            return Ok(None);
        }
        let mut received = link.receive(0, 3, ExpectedMessage::for_tile(id(1, 2), Scalar::Float64, &[2, 3])?)?;
        assert_eq!((received.awaited().peer, received.awaited().id, received.awaited().is_sent), (0, id(1, 2), false));
        let payload = WaitPolicy::default().one(&mut received)?.into_payload().expect("a tile");
        assert_eq!(received.test().unwrap_err().tensor_kind(), Some(Kind::Message));
        let tile = payload.tile().expect("a tile");
        Ok(Some((tile.elements::<f64>().to_vec(), tile.elements::<f64>().as_ptr() as usize)))
    });
    assert_eq!(found[1], Some((vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0], at)));
}

/// Copies a tile as a link between processes does: its bytes are read from one memory and written to another.
#[test]
fn a_tile_is_the_bytes_of_its_place() -> Result<(), Error> {
    let sent = Payload::of_tile(id(1, 2), tile(1.0))?;
    let mut memory = ExpectedMessage::for_tile(id(1, 2), Scalar::Float64, &[2, 3])?.into_memory()?;
    assert_eq!((sent.place().1, memory.place().1), (48, 48));
    assert_eq!(memory.place().0.align_offset(64), 0);
    let Done::Received(received) = memory.filled(&sent.header().to_bytes())? else { panic!("it is there") };
    assert_eq!(received.tile().map(|tile| tile.extents().to_vec()), Some(vec![2, 3]));
    let room = || ExpectedMessage::for_tile(id(1, 2), Scalar::Float64, &[2, 3]);
    let poison = Payload::poison(&room()?);
    assert!((poison.place().1, poison.header().length()) == (0, 48));
    assert!(matches!(room()?.into_memory()?.filled(&poison.header().to_bytes())?, Done::Poisoned));
    let other = Payload::of_bytes(id(1, 2), vec![0; 48])?;
    let error = room()?.into_memory()?.filled(&other.header().to_bytes()).unwrap_err();
    assert_eq!(error.tensor_kind(), Some(Kind::Message));
    let huge = ExpectedMessage::for_bytes(id(1, 2), 1 << 47)?.into_memory().unwrap_err();
    assert_eq!(huge.tensor_kind(), Some(Kind::Limit));
    assert!(ExpectedMessage::for_tile(id(0, 0), Scalar::Int64, &[2]).is_err());
    Ok(())
}

#[test]
fn messages_of_a_stream_keep_their_order_and_others_do_not() {
    let mut orders = BTreeSet::new();
    for seed in 0..300 {
        let arrived = all(3, |link| {
            let link = DelayedLink::new(link, seed);
            let wait = WaitPolicy::default();
            if link.rank() > 0 {
                let sends = (0..8).map(|number| {
                    let payload = Payload::of_bytes(id(number, 0), vec![link.rank() as u8, number as u8])?;
                    link.send(0, (number % 2) as u16, payload)
                });
                wait.all(sends.collect::<Result<_, Error>>()?)?;
                return Ok(Vec::new());
            }
            // The receives for rank 2 and for the second tag begin first. The number of a message is also in its
            // header.
            let mut requests = Vec::new();
            for from in [2, 1] {
                for number in [1, 3, 5, 7, 0, 2, 4, 6] {
                    let room = ExpectedMessage::for_bytes(id(number, 0), 2)?;
                    requests.push((link.receive(from, (number % 2) as u16, room)?, [from as u8, number as u8]));
                }
            }
            let mut order = Vec::new();
            let mut pauses = wait.begin();
            while !requests.is_empty() {
                let mut open = Vec::new();
                for (mut request, expected) in requests {
                    match request.test()? {
                        Some(done) => {
                            assert_eq!(bytes_of(done), expected, "seed {seed}");
                            order.push(expected);
                        }
                        None => open.push((request, expected)),
                    }
                }
                requests = open;
                if let Some((request, _)) = requests.first() {
                    pauses.pause(|| request.awaited())?;
                }
            }
            Ok(order)
        });
        assert_eq!(arrived[0].len(), 16);
        orders.insert(arrived[0].clone());
    }
    assert!(orders.len() > 200, "{}", orders.len());
}

/// Bytes that depend on the rank and the round. Their lengths are near the most that fits into the first message.
fn said(rank: usize, round: usize) -> Vec<u8> {
    let lengths = [0, 1, 502, 503, 504, 505, 2000];
    let length = lengths[(rank * 3 + round) % lengths.len()];
    (0..length).map(|at| (at * 7 + rank * 31 + round) as u8).collect()
}

#[test]
fn collectives_are_the_same_on_all_ranks_in_any_order_of_delivery() {
    for ranks in (1..=6).chain([16]) {
        for seed in 0..if ranks == 16 { 10 } else { 60 } {
            let results = all(ranks, |link| {
                let rank = link.rank();
                let ranks = Ranks::new(Arc::new(DelayedLink::new(link, seed)))?;
                let mut found = Vec::new();
                for round in 0..3 {
                    found.extend(ranks.all_gather(said(rank, round))?);
                    let from = (seed as usize + round) % ranks.link().size();
                    found.push(ranks.broadcast(from, said(rank, round + 10))?);
                    ranks.agree(&[("program", "p"), ("round", &round.to_string())])?;
                    ranks.settle(Ok(()))?;
                }
                Ok(found)
            });
            let mut expected = Vec::new();
            for round in 0..3 {
                expected.extend((0..ranks).map(|rank| said(rank, round)));
                expected.push(said((seed as usize + round) % ranks, round + 10));
            }
            assert!(results.iter().all(|found| *found == expected), "{ranks} ranks, seed {seed}");
        }
    }
}

#[test]
fn ranks_that_disagree_name_the_first_difference_on_all_of_them() {
    let long = "x".repeat(2000);
    for (of_rank_2, said) in [
        (
            vec![("program", "p"), ("the tiling of `a`, axis 2", "0 5 9"), ("threshold", "2")],
            "the tiling of `a`, axis 2: rank 0 has 0 4 9, rank 2 has 0 5 9",
        ),
        (vec![("program", "p"), ("the tiling of `a`, axis 2", "0 4 9")], "threshold: rank 0 has 1, rank 2 has none"),
        (vec![], "program: rank 0 has p, rank 2 has none"),
        (
            vec![("program", "p"), ("the tiling of `a`, axis 2", "0 4 9"), ("threshold", "1"), ("isa", "avx2")],
            "isa: rank 0 has none, rank 2 has avx2",
        ),
        (vec![("program", &*long)], "program: rank 0 has p, rank 2 has xxx"),
    ] {
        let found = errors(4, |link| {
            let rank = link.rank();
            let ranks = Ranks::new(link)?;
            let own = vec![("program", "p"), ("the tiling of `a`, axis 2", "0 4 9"), ("threshold", "1")];
            // Rank 3 differs in its last fact.
            let of_rank_3 = [&own[..], &[("zone", "3")]].concat();
            let agreed = ranks.agree([&own, &own, &of_rank_2, &of_rank_3][rank]);
            // After a disagreement, no message is left over.
            assert_eq!(ranks.all_gather(vec![rank as u8])?, [[0], [1], [2], [3]]);
            agreed
        });
        for error in &found {
            assert_eq!((error.code(), error.tensor_kind()), ("ranks-disagree", Some(Kind::RanksDisagree)));
            assert!(error.to_string().contains(said), "{error}");
            assert_eq!(error.to_string(), found[0].to_string());
            assert!(error.to_string().len() < 400);
        }
    }
}

#[test]
fn the_lowest_task_that_failed_is_the_error_of_all_ranks() {
    for seed in 0..100 {
        let mut rng = Rng::with_seed(seed);
        let size = rng.usize(1..=6);
        let failures: Vec<Option<u64>> = (0..size).map(|_| rng.bool().then(|| rng.u64(0..4))).collect();
        let lowest = failures.iter().enumerate().filter_map(|(rank, task)| Some(((*task)?, rank))).min();
        let results = run_ranks(size, |link| {
            let rank = link.rank();
            let failed = |task| Failure {
                task,
                error: Error::tensors(Kind::Evaluation, format!("task {task} of rank {rank}"))
                    .of_fault(FaultKind::DivisionByZero, Some("math.mod"))
                    .hint("guard it"),
            };
            let ranks = Ranks::new(Arc::new(DelayedLink::new(link, seed)))?;
            ranks.settle(failures[rank].map_or(Ok(()), |task| Err(failed(task))))
        });
        for result in results {
            let found = result.map_err(|error| (error.code(), error.to_string()));
            let expected = |(task, rank)| ("div-by-zero", format!("task {task} of rank {rank}; guard it"));
            assert_eq!(found, lowest.map_or(Ok(()), |lowest| Err(expected(lowest))), "seed {seed}");
        }
    }
}

#[test]
fn ranks_in_different_functions_are_an_error_on_all() {
    let found = errors(3, |link| {
        let rank = link.rank();
        let ranks = Ranks::new(link)?;
        if rank == 1 { ranks.settle(Ok(())) } else { ranks.all_gather(vec![1]).map(drop) }
    });
    assert!(found.iter().all(|error| error.tensor_kind() == Some(Kind::Message)), "{found:?}");
}

#[test]
fn more_bytes_than_ranks_may_share_are_an_error_on_all() {
    let found = errors(3, |link| {
        let rank = link.rank();
        let ranks = Ranks::new(link)?;
        ranks.all_gather(vec![0; if rank == 2 { MOST_SHARED_BYTES as usize + 1 } else { 3 }]).map(drop)
    });
    assert!(found.iter().all(|error| error.tensor_kind() == Some(Kind::Limit)), "{found:?}");
}

#[test]
fn dropped_requests_take_their_turn() {
    // The request is dropped before the message arrives, and after it arrived.
    for is_late in [false, true] {
        let found = all(2, |link| {
            let wait = WaitPolicy::default();
            let ranks = Ranks::new(link.clone())?;
            if link.rank() == 0 {
                if is_late {
                    ranks.settle(Ok(()))?;
                }
                let mut kept = Vec::new();
                for number in 0..3 {
                    let bytes = Arc::new(vec![number as u8]);
                    kept.push(Arc::downgrade(&bytes));
                    drop(link.send(1, 0, Payload::of_bytes(id(number, 0), bytes)?)?);
                }
                if !is_late {
                    ranks.settle(Ok(()))?;
                }
                ranks.settle(Ok(()))?;
                // The memory of all messages is free, also that of the message that no receive took.
                assert!(kept.iter().all(|bytes| bytes.strong_count() == 0));
                return Ok(Vec::new());
            }
            if !is_late {
                ranks.settle(Ok(()))?;
            }
            let room = |number| ExpectedMessage::for_bytes(id(number, 0), 1);
            let mut first = link.receive(0, 0, room(0)?)?;
            drop(link.receive(0, 0, room(1)?)?);
            let mut third = link.receive(0, 0, room(2)?)?;
            if is_late {
                ranks.settle(Ok(()))?;
            }
            let third = bytes_of(wait.one(&mut third)?);
            let first = bytes_of(wait.one(&mut first)?);
            ranks.settle(Ok(()))?;
            Ok([first, third].concat())
        });
        assert_eq!(found[1], [0, 2]);
    }
}

#[test]
fn messages_that_were_not_awaited_are_errors() {
    let f32_tile = Tile::of(&Tensor::new(&[2, 6], vec![1.0_f32; 12]).unwrap()).unwrap();
    let payloads: Vec<(Payload, &str)> = [
        (Payload::of_tile(MessageId { plan: 6, ..id(1, 2) }, tile(1.0)), "another plan"),
        (Payload::of_tile(id(0, 2), tile(1.0)), "tile 2 of step 0 arrived"),
        (Payload::of_tile(id(1, 3), tile(1.0)), "tile 3 of step 1 arrived"),
        (Payload::of_bytes(id(1, 2), vec![0; 48]), "bytes, expected a tile of f64"),
        (Payload::of_tile(id(1, 2), f32_tile), "f32, expected a tile of f64"),
        (
            Payload::of_tile(id(1, 2), Tile::of(&Tensor::new(&[2], vec![1.0, 2.0]).unwrap()).unwrap()),
            "16 bytes, expected 48",
        ),
        (
            Payload::of_tile(id(1, 2), Tile::of(&Tensor::new(&[6], vec![1.0; 6]).unwrap()).unwrap()),
            "does not match its header",
        ),
    ]
    .map(|(payload, said)| (payload.unwrap(), said))
    .into();
    let found = all(2, |link| {
        let wait = WaitPolicy::default();
        if link.rank() == 0 {
            let poison = Payload::poison(&ExpectedMessage::for_tile(id(1, 2), Scalar::Float64, &[2, 3])?);
            for payload in payloads.iter().map(|(payload, _)| payload.clone()).chain([poison]) {
                wait.one(&mut link.send(1, 0, payload)?)?;
            }
            return Ok(Vec::new());
        }
        let room = || ExpectedMessage::for_tile(id(1, 2), Scalar::Float64, &[2, 3]);
        let refused = payloads.iter().map(|_| wait.one(&mut link.receive(0, 0, room()?)?).map(drop));
        let refused: Vec<Result<(), Error>> = refused.collect();
        assert!(matches!(wait.one(&mut link.receive(0, 0, room()?)?)?, Done::Poisoned));
        Ok(refused)
    });
    for (refused, (_, said)) in found[1].iter().zip(&payloads) {
        let error = refused.as_ref().unwrap_err();
        assert_eq!(error.tensor_kind(), Some(Kind::Message));
        assert!(error.to_string().contains(said), "{error}");
    }
}

#[test]
fn a_rank_that_panics_ends_all() {
    for ranks in [1, 2, 16] {
        let found = errors(ranks, |link| {
            if link.rank() == ranks / 2 {
                panic!("on purpose");
            }
            // No rank sends this message.
            let mut request = link.receive(ranks / 2, 0, ExpectedMessage::for_bytes(id(0, 0), 1)?)?;
            WaitPolicy::default().one(&mut request).map(drop)
        });
        let said = format!("rank {} panicked: on purpose", ranks / 2);
        assert!(found.iter().all(|error| error.to_string() == said), "{found:?}");
        assert_eq!(found.len(), ranks);
    }
}

#[test]
fn ranks_that_end_leave_their_messages() {
    let results = run_ranks(2, |link| {
        if link.rank() == 0 {
            drop(link.send(1, 0, Payload::of_bytes(id(0, 0), vec![9])?)?);
            return Ok(Vec::new());
        }
        let wait = WaitPolicy::default();
        let first = bytes_of(wait.one(&mut link.receive(0, 0, ExpectedMessage::for_bytes(id(0, 0), 1)?)?)?);
        let error = wait.one(&mut link.receive(0, 0, ExpectedMessage::for_bytes(id(1, 0), 1)?)?).unwrap_err();
        assert_eq!((error.code(), error.tensor_kind()), ("link", Some(Kind::Link)));
        assert_eq!(error.to_string(), "rank 0 ended before it sent tile 0 of step 1");
        Ok(first)
    });
    assert_eq!(results[1].as_deref().unwrap(), [9]);
    // An error of one rank ends the other ranks, too, although it is not shared with them.
    let found = errors(5, |link| {
        if link.rank() == 3 {
            return Err(no_link("on purpose"));
        }
        Ranks::new(link)?.all_gather(vec![1]).map(drop)
    });
    assert!(found.iter().all(|error| error.tensor_kind() == Some(Kind::Link)), "{found:?}");
    assert!(found[0].to_string().starts_with("rank 3 ended before"), "{}", found[0]);
}

#[test]
fn a_rank_can_end_all() {
    let found = errors(3, |link| {
        if link.rank() == 1 {
            link.abort(4);
        }
        let mut request = link.receive(0, 0, ExpectedMessage::for_bytes(id(0, 0), 1)?)?;
        WaitPolicy::default().one(&mut request).map(drop)
    });
    assert!(found.iter().all(|error| error.to_string() == "rank 1 ended the run with code 4"), "{found:?}");
}

#[test]
fn waits_are_cancelled_and_stall() {
    let token = Cancellation::new();
    let found = errors(2, |link| {
        let request = link.receive(1 - link.rank(), 0, ExpectedMessage::for_bytes(id(7, 4), 1)?)?;
        let waited = if link.rank() == 0 {
            let error = WaitPolicy::default().token(Some(token.clone())).all(vec![request]).unwrap_err();
            Err(error)
        } else {
            let waited = WaitPolicy::default().stall(Duration::from_micros(300)).all(vec![request]).map(drop);
            token.cancel();
            waited
        };
        // Neither rank ends before the other one has finished.
        Ranks::new(link)?.settle(Ok(()))?;
        waited
    });
    assert_eq!(found[0].fault_kind(), Some(FaultKind::Cancelled));
    assert_eq!((found[1].code(), found[1].tensor_kind()), ("link", Some(Kind::Stalled)));
    let said = "no message arrived for 0.0003 seconds, while waiting for tile 4 of step 7 from rank 0";
    assert!(found[1].to_string().starts_with(said), "{}", found[1]);
    // A token whose time limit has passed.
    let over = Cancellation::new().until(Instant::now());
    let found = errors(1, |link| {
        let request = link.receive(0, 0, ExpectedMessage::for_bytes(id(0, 0), 1)?)?;
        WaitPolicy::default().token(Some(over.clone())).all(vec![request]).map(drop)
    });
    assert_eq!(found[0].fault_kind(), Some(FaultKind::Deadline));
}

/// A link that counts the tests of its requests.
#[derive(Debug)]
struct Counted(Arc<dyn Link>, Arc<AtomicU64>);

struct CountedTransfer(Request, Arc<AtomicU64>);

impl Counted {
    fn counted(&self, request: Request) -> Request {
        Request::new(request.awaited(), Box::new(CountedTransfer(request, self.1.clone())))
    }
}

impl Link for Counted {
    fn rank(&self) -> usize {
        self.0.rank()
    }

    fn size(&self) -> usize {
        self.0.size()
    }

    fn send(&self, to: usize, tag: u16, payload: Payload) -> Result<Request, Error> {
        self.0.send(to, tag, payload).map(|request| self.counted(request))
    }

    fn receive(&self, from: usize, tag: u16, room: ExpectedMessage) -> Result<Request, Error> {
        self.0.receive(from, tag, room).map(|request| self.counted(request))
    }

    fn abort(&self, code: i32) {
        self.0.abort(code);
    }

    fn wakes(&self) -> bool {
        self.0.wakes()
    }
}

impl Transfer for CountedTransfer {
    fn test(&mut self) -> Result<Option<Done>, Error> {
        self.1.fetch_add(1, Ordering::Relaxed);
        self.0.test()
    }
}

/// Threads that wait for a message of another rank sleep until it arrives, and test their requests only 20 times per
/// second. If the link did not wake them, they would test about 400 times during this test.
#[test]
fn ranks_that_wait_for_another_sleep() {
    const RANKS: usize = 9;
    let tests: Vec<Arc<AtomicU64>> = (0..RANKS).map(|_| Arc::default()).collect();
    let (_silent, never) = mpsc::channel::<()>();
    let never = std::sync::Mutex::new(never);
    let began = Instant::now();
    let found = all(RANKS, |link| {
        let rank = link.rank();
        let ranks = Ranks::new(Arc::new(Counted(link, tests[rank].clone())))?;
        if rank == 0 {
            let silence = never.lock().expect("one rank").recv_timeout(Duration::from_millis(300));
            assert_eq!(silence, Err(mpsc::RecvTimeoutError::Timeout));
        }
        ranks.broadcast(0, vec![7])
    });
    assert!(found.iter().all(|bytes| bytes == &[7]));
    // Some tests before the first sleep, and twice as many as there are sleeps.
    let most = 64 + 2 * (began.elapsed().as_millis() / 50) as u64;
    let tests: Vec<u64> = tests.iter().skip(1).map(|tests| tests.load(Ordering::Relaxed)).collect();
    assert!(tests.iter().all(|tests| *tests <= most), "{tests:?}, at most {most}");
}

#[test]
fn progress_begins_the_time_anew() -> Result<(), Error> {
    let never = WaitPolicy::default().stall(Duration::ZERO);
    let mut request = None;
    all(1, |link| link.receive(0, 0, ExpectedMessage::for_bytes(id(0, 0), 1)?).map(|request| request.awaited()))
        .iter()
        .for_each(|awaited| request = Some(*awaited));
    let awaited = request.expect("one rank");
    assert_eq!(never.begin().pause(|| awaited).unwrap_err().tensor_kind(), Some(Kind::Stalled));
    let long = WaitPolicy::default();
    let mut wait = long.begin();
    (0..40).try_for_each(|_| wait.pause(|| awaited))?;
    wait.progress();
    wait.pause(|| awaited)
}

#[test]
fn ranks_and_tags_that_there_are_not_are_refused() {
    assert!(run_ranks(0, |_| Ok(())).is_empty());
    let too_many = run_ranks(1025, |_| Ok(()));
    assert_eq!(too_many[0].as_ref().unwrap_err().tensor_kind(), Some(Kind::Limit));
    all(2, |link| {
        let refused = [
            link.send(2, 0, Payload::of_bytes(id(0, 0), vec![1])?).map(drop),
            link.receive(2, 0, ExpectedMessage::for_bytes(id(0, 0), 1)?).map(drop),
            link.send(0, MOST_TAG + 1, Payload::of_bytes(id(0, 0), vec![1])?).map(drop),
            link.receive(1, u16::MAX, ExpectedMessage::for_bytes(id(0, 0), 1)?).map(drop),
            Ranks::new(link.clone())?.broadcast(2, Vec::new()).map(drop),
        ];
        assert!(refused.iter().all(|one| one.as_ref().is_err_and(|error| error.tensor_kind() == Some(Kind::Link))));
        // To itself.
        drop(link.send(link.rank(), 9, Payload::of_bytes(id(0, 0), vec![1])?)?);
        let mut own = link.receive(link.rank(), 9, ExpectedMessage::for_bytes(id(0, 0), 1)?)?;
        assert_eq!(bytes_of(WaitPolicy::default().one(&mut own)?), [1]);
        Ok(())
    });
}
