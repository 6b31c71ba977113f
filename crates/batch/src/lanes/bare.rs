//! Lane programs that are one tape over numbers in columns of the strip: its ports are found without more ado, nothing is gathered, and
//! nothing scattered.

use super::parts::Place;
use super::play;
use cembra_runtime::{BareFunction, Column, Context, MachineType};
use cembra_tape::{Body, ColumnId, LaneProgram, Port, Segment, TapeLoop};
use smallvec::SmallVec;
use std::sync::Arc;

/// The most ports of such a tape.
const MOST_PORTS: usize = 16;

/// A port of a tape that is the data of a column of the strip.
#[derive(Clone, Copy, Debug)]
struct BarePort {
    column: u32,
    /// How many bytes it is from one row to the next.
    pace: u32,
}

/// The one tape of a program, as a loop, and its ports in their order.
#[derive(Clone, Debug)]
pub(super) struct Bare {
    played: Arc<dyn TapeLoop>,
    ports: Box<[BarePort]>,
    columns: Box<[u32]>,
}

impl Bare {
    /// None for a program that is more than one tape, or has a port that is otherwise, or many.
    pub(super) fn of(program: &LaneProgram, places: &[Place], loops: &[Arc<dyn TapeLoop>]) -> Option<Arc<Bare>> {
        let [Segment { body: Body::Tape(tape), once: false, .. }] = &program.segments[..] else { return None };
        let [played] = loops else { return None };
        let port = |id: &ColumnId| {
            let (column, place) = (program.column(*id), places[id.index()]);
            let pace = match (column.port, column.ty) {
                (_, MachineType::Flag) => return None,
                (Port::Shared | Port::Chains, _) => 0,
                (Port::Rows, ty) => ty.size() as u32,
            };
            let Place::Data(column, 0) = place else { return None };
            Some(BarePort { column, pace })
        };
        let ports: Option<Box<[BarePort]>> = tape.inputs.iter().chain(&tape.outputs).map(port).collect();
        let ports = ports.filter(|ports| ports.len() <= MOST_PORTS)?;
        let columns = ports.iter().map(|port| port.column).collect();
        Some(Arc::new(Bare { played: played.clone(), ports, columns }))
    }

    /// Plays rows from one on; true if one fails. What goes past the caches fetches nothing.
    ///
    /// # Safety
    /// COLUMNS, as for `BatchFunction::run`.
    #[inline]
    pub(super) unsafe fn rows(
        &self,
        columns: &[Column],
        (start, rows): (usize, usize),
        how: (bool, &[usize]),
        context: &mut Context,
    ) -> bool {
        let mut ports = [std::ptr::null_mut(); MOST_PORTS];
        for (address, port) in ports.iter_mut().zip(&self.ports) {
            *address = columns[port.column as usize].data.wrapping_add(start * port.pace as usize);
        }
        let ports = &ports[..self.ports.len().min(MOST_PORTS)];
        // SAFETY: PORTS: the columns are those of the tape's inputs and outputs, each with the rows, as the caller promises by COLUMNS.
        unsafe { play(&*self.played, ports, rows, how, context) }
    }
}

// SAFETY: COLUMNS: nothing but the ports is read and written, which are columns.
unsafe impl BareFunction for Bare {
    fn columns(&self) -> &[u32] {
        &self.columns
    }

    // SAFETY: COLUMNS, as the trait says.
    unsafe fn play(&self, columns: &[Column], rows: usize, ahead: &[usize], context: &mut Context) -> bool {
        // SAFETY: COLUMNS, promised by the caller.
        unsafe { self.rows(columns, (0, rows), (false, ahead), context) }
    }

    // SAFETY: COLUMNS, as the trait says.
    unsafe fn play_lines(
        &self,
        columns: &[Column],
        shifts: &[isize],
        counts: [usize; 2],
        ahead: &[(usize, isize)],
    ) -> Option<bool> {
        let ports: SmallVec<[*mut u8; MOST_PORTS]> = self.columns.iter().map(|at| columns[*at as usize].data).collect();
        let shifts: SmallVec<[isize; MOST_PORTS]> = self.columns.iter().map(|at| shifts[*at as usize]).collect();
        // SAFETY: PORTS: the columns are those of the tape's inputs and outputs, each with the rows, as the caller promises by COLUMNS.
        unsafe { self.played.play_lines(&ports, &shifts, counts, ahead) }
    }

    // SAFETY: COLUMNS, as the trait says.
    unsafe fn play_at(&self, firsts: &[*mut u8], rows: usize, context: &mut Context) -> bool {
        // SAFETY: PORTS: what is given is in the order of the ports, and as COLUMNS says of their columns.
        unsafe { self.played.play(firsts, rows, context) }
    }
}
