//! The interpreter backend of cembra
