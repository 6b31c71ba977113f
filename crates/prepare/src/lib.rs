//! Preparation of cembra expressions: types, casts, folding, optimisation, laziness
