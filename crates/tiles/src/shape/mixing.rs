//! Pseudo-random numbers: the mixing function of SplitMix64 (Steele, Lea, Flood 2014). Random elements, owners by a hash, and delays of
//! messages for tests are made of it.

/// The amount by which the state of the generator grows from one number to the next.
pub(crate) const STEP: u64 = 0x9E37_79B9_7F4A_7C15;

/// The number for a state. The numbers for neighbouring states have nothing in common.
pub(crate) const fn mixed(state: u64) -> u64 {
    let state = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let state = (state ^ (state >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    state ^ (state >> 31)
}
