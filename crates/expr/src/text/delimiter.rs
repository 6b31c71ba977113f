//! Which delimiter a CSV has that says none. Tables of a model and the data of the command are read by the same rule; how their fields are read
//! is not decided here.

/// The delimiters that are looked for.
const DELIMITERS: [u8; 3] = [b',', b';', b'\t'];

/// The delimiter of a CSV that begins like this: the one that its first line has most of outside of quotes, of equals the first of comma, semicolon and
/// tab. `a;b,c;d` has the semicolon.
#[must_use]
pub fn found_delimiter(start: &[u8]) -> u8 {
    let mut counts = [0_usize; DELIMITERS.len()];
    let mut quoted = false;
    let mut begun = false;
    for byte in start {
        match byte {
            b'\n' | b'\r' if !quoted && begun => break,
            b'"' => quoted = !quoted,
            _ if quoted => {}
            _ => {
                begun |= !matches!(byte, b'\n' | b'\r');
                let known = DELIMITERS.iter().position(|known| known == byte);
                known.into_iter().for_each(|at| counts[at] += 1);
            }
        }
    }
    let most = counts.iter().max().copied().unwrap_or(0);
    let at = counts.iter().position(|count| *count == most).unwrap_or(0);
    DELIMITERS[at]
}
