//! Moves tiles between ranks during a step. Each rank knows from the plan which tiles it needs from which rank, and
//! which of its own tiles other ranks need. Both lists are in the same order, so two ranks send and receive their
//! messages in the same order, and no rank sends requests. A rank that fails sends a poison message (one without a
//! tile) in place of each tile that other ranks expect, and receives the tiles that were sent to it, so that no message
//! is left over for the next step.

use crate::error::bad_message;
use crate::link::{Done, ExpectedMessage, MessageId, Payload, Ranks, Request, StepId, StepOutcome};
use crate::tiled::pool::Pool;
use crate::tiled::tile::Tile;
use crate::tiled::{Tiled, bytes_of};
use cembra_runtime::Cancellation;
use cembra_value::Error;
use cembra_value::tensor::TensorErrorKind as Kind;
use std::collections::VecDeque;
use std::sync::Arc;

/// The tag of messages that have tiles. Collectives use another tag.
const TAG: u16 = 0;

/// A tile that one rank sends to another in a step: the operand that it belongs to, and its position among the
/// operand's present tiles. `peer` is the rank at the other end. Parcels with a smaller `key` are sent first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Parcel {
    pub(crate) key: u32,
    pub(crate) operand: u32,
    pub(crate) position: u32,
    pub(crate) peer: u32,
}

/// The tiles that a rank receives (`incoming`) and sends (`outgoing`) in one step. Both lists are sorted.
#[derive(Default, Debug)]
pub(crate) struct Traffic {
    pub(crate) incoming: Vec<Parcel>,
    pub(crate) outgoing: Vec<Parcel>,
}

impl Traffic {
    /// Returns the tiles that rank `rank` receives and sends in a step. Each parcel of `reads` is a tile that a rank reads; its `peer` is
    /// that rank. Tiles that all ranks have are not sent.
    pub(crate) fn of(rank: u32, operands: &[&Tiled], reads: impl Iterator<Item = Parcel>) -> Traffic {
        let mut traffic = Traffic::default();
        for read in reads {
            let Some(spread) = operands[read.operand as usize].spread() else { continue };
            let (owner, reader) = (spread.owners()[read.position as usize], read.peer);
            if owner != reader && reader == rank {
                traffic.incoming.push(Parcel { peer: owner, ..read });
            } else if owner != reader && owner == rank {
                traffic.outgoing.push(read);
            }
        }
        for parcels in [&mut traffic.incoming, &mut traffic.outgoing] {
            parcels.sort_unstable();
            parcels.dedup();
        }
        traffic
    }

    /// The number of bytes in the elements of all incoming tiles.
    pub(crate) fn incoming_bytes(&self, operands: &[&Tiled]) -> usize {
        self.incoming.iter().fold(0, |bytes: usize, parcel| bytes.saturating_add(parcel_bytes(operands, *parcel)))
    }
}

/// The number of bytes in the elements of a parcel's tile.
pub(crate) fn parcel_bytes(operands: &[&Tiled], parcel: Parcel) -> usize {
    let of = operands[parcel.operand as usize];
    bytes_of(of.scalar_type(), of.tiling().volume(of.shape().tiles()[parcel.position as usize]))
}

/// The exchange of tiles between ranks during one step.
pub(crate) struct Exchange<'e> {
    ranks: &'e Ranks,
    id: StepId,
    operands: &'e [&'e Tiled],
    pool: Arc<Pool>,
    token: Option<&'e Cancellation>,
    traffic: Traffic,
    /// The number of receives that have begun in this step. The sends that have begun are counted separately.
    begun: usize,
    sent: usize,
    /// The receives that have begun and are not complete, in the order in which they began.
    open: VecDeque<Request>,
    /// The outcome of the first receive in `open`, if a test found it complete before the step waited for it.
    over: Option<Done>,
    sending: Vec<Request>,
    /// The outcome of the step on all ranks.
    settling: StepOutcome<'e>,
}

impl<'e> Exchange<'e> {
    pub(crate) fn new(
        ranks: &'e Ranks,
        id: StepId,
        operands: &'e [&'e Tiled],
        traffic: Traffic,
        pool: Arc<Pool>,
        token: Option<&'e Cancellation>,
    ) -> Result<Exchange<'e>, Error> {
        let (open, sending, settling) = (VecDeque::new(), Vec::new(), StepOutcome::begin(ranks, true)?);
        Ok(Exchange {
            ranks,
            id,
            operands,
            pool,
            token,
            traffic,
            begun: 0,
            sent: 0,
            open,
            over: None,
            sending,
            settling,
        })
    }

    /// Runs `part`, which does this rank's work of the step. Then waits until all messages that this rank sends or
    /// receives are complete, even if `part` failed.
    ///
    /// # Errors
    /// The errors of `part`, or of the link.
    pub(crate) fn run<R, E: From<Error>>(
        mut self,
        part: impl FnOnce(&mut Exchange<'e>) -> Result<R, E>,
    ) -> (Result<R, E>, StepOutcome<'e>) {
        let made = part(&mut self);
        let ended = self.end(made.is_err());
        (made.and_then(|made| ended.map(|()| made).map_err(E::from)), self.settling)
    }

    /// Checks whether another rank failed, and lets the link make progress. Never waits.
    ///
    /// # Errors
    /// If another rank or the link failed.
    pub(crate) fn watch(&mut self) -> Result<(), Error> {
        self.test_next()?;
        self.settling.watch()
    }

    /// Tests whether the receive that began first is complete, without waiting.
    fn test_next(&mut self) -> Result<(), Error> {
        if let (None, Some(request)) = (&self.over, self.open.front_mut()) {
            match request.test() {
                Err(error) if error.tensor_kind() == Some(Kind::Message) => {
                    // The receive is complete: it took its turn among the messages.
                    self.open.pop_front();
                    return Err(error);
                }
                tested => self.over = self.ranks.checked(tested)?,
            }
        }
        Ok(())
    }

    /// Begins to receive and to send the tiles whose keys are below `end`. Keys give the order of tiles in the step.
    ///
    /// # Errors
    /// If there is no memory for a tile, or the link failed.
    pub(crate) fn begin(&mut self, end: u32) -> Result<(), Error> {
        while let Some(parcel) = self.traffic.incoming.get(self.begun).copied().filter(|parcel| parcel.key < end) {
            self.receive(parcel)?;
        }
        self.begin_to_send(end)
    }

    /// Begins to send the tiles whose keys are below `end`.
    fn begin_to_send(&mut self, end: u32) -> Result<(), Error> {
        while let Some(parcel) = self.traffic.outgoing.get(self.sent).copied().filter(|parcel| parcel.key < end) {
            let tile = self.operands[parcel.operand as usize].stored_at(parcel.position as usize).cloned();
            self.send(parcel, tile)?;
        }
        Ok(())
    }

    /// Waits for the tiles whose keys are below `end`, and passes each to `on_tile`. Keys give the order of tiles in the
    /// step.
    ///
    /// # Errors
    /// The errors of [`begin`](Exchange::begin). Or if another rank failed, or the evaluation was cancelled.
    pub(crate) fn arrive(&mut self, end: u32, mut on_tile: impl FnMut(Parcel, Tile)) -> Result<(), Error> {
        self.begin(end)?;
        while let Some(parcel) = self.next().filter(|parcel| parcel.key < end) {
            match self.await_next(false)? {
                Done::Received(payload) => {
                    let tile = payload.tile().cloned();
                    on_tile(
                        parcel,
                        tile.ok_or_else(|| bad_message("a message between ranks does not have a tile, as expected"))?,
                    );
                }
                _ => {
                    self.ranks.note_poison();
                    return Err(bad_message(format!("rank {} failed, so it sent no tile", parcel.peer)));
                }
            }
        }
        Ok(())
    }

    /// Waits for all incoming tiles, and returns the operands with them.
    ///
    /// # Errors
    /// The errors of [`arrive`](Exchange::arrive).
    pub(crate) fn all(&mut self) -> Result<Vec<Tiled>, Error> {
        let mut received: Vec<Vec<(u32, Tile)>> = vec![Vec::new(); self.operands.len()];
        self.arrive(u32::MAX, |parcel, tile| received[parcel.operand as usize].push((parcel.position, tile)))?;
        Ok(self.operands.iter().zip(received).map(|(of, tiles)| of.with_tiles(tiles)).collect())
    }

    /// The next incoming tile, if its receive has begun; else `None`.
    fn next(&self) -> Option<Parcel> {
        let at = self.begun.checked_sub(self.open.len())?;
        self.traffic.incoming.get(at).copied().filter(|_| at < self.begun)
    }

    /// Waits for the receive that began first. If the token is cancelled or another rank fails, the wait ends with an
    /// error, and the receive stays open. If `ends` is true, because the exchange is ending, the wait ignores both.
    fn await_next(&mut self, ends: bool) -> Result<Done, Error> {
        let token = self.token.filter(|_| !ends).cloned();
        let patience = self.ranks.patience().clone().token(token);
        let mut wait = patience.begin().brisk();
        loop {
            self.test_next()?;
            if let Some(done) = self.over.take() {
                self.open.pop_front();
                return Ok(done);
            }
            let Some(awaited) = self.open.front().map(Request::awaited) else {
                return Err(bad_message("a tile arrived that no rank expects"));
            };
            if !ends {
                self.settling.watch()?;
            }
            match wait.pause(|| awaited) {
                // The link is not broken.
                Err(error) if error.fault_kind().is_some() => return Err(error),
                paused => self.ranks.checked(paused)?,
            }
        }
    }

    /// The identity of the message with a parcel's tile.
    fn id(&self, parcel: Parcel) -> MessageId {
        let number = self.operands[parcel.operand as usize].shape().tiles()[parcel.position as usize];
        MessageId { plan: self.id.plan.rotate_left(parcel.operand), step: self.id.step, tile: number }
    }

    /// Describes the message with a parcel's tile, to receive it.
    fn room(&self, parcel: Parcel) -> Result<ExpectedMessage, Error> {
        let (id, of) = (self.id(parcel), self.operands[parcel.operand as usize]);
        let extents = of.tiling().tile_extents(id.tile).unwrap_or_default();
        Ok(ExpectedMessage::for_tile(id, of.scalar_type(), &extents)?.pooled(&self.pool))
    }

    fn receive(&mut self, parcel: Parcel) -> Result<(), Error> {
        let room = self.room(parcel)?;
        match self.ranks.link().receive(parcel.peer as usize, TAG, room) {
            // There is no memory. This rank fails, and receives the message once it holds none of its own tiles.
            Err(error) if error.tensor_kind() == Some(Kind::Limit) => return Err(error),
            begun => self.open.push_back(self.ranks.checked(begun)?),
        }
        self.begun += 1;
        Ok(())
    }

    /// Begins to send a tile, or poison in its place.
    fn send(&mut self, parcel: Parcel, tile: Option<Tile>) -> Result<(), Error> {
        let payload = match tile {
            Some(tile) => {
                self.ranks.note_sent(parcel_bytes(self.operands, parcel));
                Payload::of_tile(self.id(parcel), tile)?
            }
            None => Payload::poison(&self.room(parcel)?),
        };
        let begun = self.ranks.link().send(parcel.peer as usize, TAG, payload);
        self.sending.push(self.ranks.checked(begun)?);
        self.sent += 1;
        Ok(())
    }

    /// Ends the exchange: sends the tiles that other ranks still expect, or poison messages if this rank failed, and
    /// receives and drops the remaining tiles that were sent to this rank.
    fn end(&mut self, is_failed: bool) -> Result<(), Error> {
        self.ranks.check()?;
        if is_failed {
            while let Some(parcel) = self.traffic.outgoing.get(self.sent).copied() {
                self.send(parcel, None)?;
            }
        }
        self.begin_to_send(u32::MAX)?;
        let mut wrong = None;
        loop {
            while !self.open.is_empty() {
                match self.await_next(true) {
                    Err(error) if self.ranks.check().is_ok() => wrong = wrong.or(Some(error)),
                    taken => drop(taken?),
                }
            }
            // These tiles are dropped, so they are received one at a time, to take little memory.
            match self.traffic.incoming.get(self.begun).copied() {
                Some(parcel) => {
                    let begun = self.receive(parcel);
                    self.ranks.checked(begun)?;
                }
                None => break,
            }
        }
        let over = self.ranks.patience().all(std::mem::take(&mut self.sending));
        self.ranks.checked(over)?;
        wrong.map_or(Ok(()), Err)
    }
}
