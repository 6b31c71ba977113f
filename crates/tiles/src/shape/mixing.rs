//! Pseudo-random numbers: the mixing function of SplitMix64 (Steele, Lea, Flood 2014). It is used for random elements, for maps
//! that assign tiles to ranks by a hash, and for delays of messages in tests.

/// The amount by which the generator's state grows from one pseudo-random number to the next.
pub(crate) const STEP: u64 = 0x9E37_79B9_7F4A_7C15;

/// Returns the pseudo-random number for a state. The numbers for neighbouring states are unrelated.
pub(crate) const fn mixed(state: u64) -> u64 {
    let state = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let state = (state ^ (state >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    state ^ (state >> 31)
}
