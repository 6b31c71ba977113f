//! Tests of the order in which numbers are added up (`runtime/src/chains.rs`): the bits of sums and products, for each
//! of the methods by which a fold takes its elements.

use cembra_runtime::{
    Addition, CHAINS, ChainFold, ChainFolds, Combine, FoldTarget, SUM_BLOCK, chain_of, fold_whole, sum_blocks,
};
use std::ops::Range;

/// Numbers of elements around each limit: where chains begin, at whole rows of chains, and at the ends of blocks.
const LENGTHS: [usize; 15] = [0, 1, 2, 63, 64, 65, 127, 128, 1000, 65_535, 65_536, 65_537, 131_072, 131_137, 200_000];

/// The kind of random elements that a test combines.
#[derive(Clone, Copy, Debug)]
enum Like {
    /// No element is missing, and the sums of elements are rounded.
    Plain,
    /// A third of the elements is missing.
    Gaps,
    /// A single element is NaN.
    NotANumber,
    /// A single element is infinite.
    Infinite,
    /// The elements are zeros of both signs, and some are missing.
    Zeros,
    /// The elements are near 1, so that products stay finite.
    NearOne,
}

const LIKES: [Like; 6] = [Like::Plain, Like::Gaps, Like::NotANumber, Like::Infinite, Like::Zeros, Like::NearOne];

/// A pseudorandom sequence, which is the same on every machine.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 32
    }

    /// Returns a number from -0.5 to below 0.5.
    fn fraction(&mut self) -> f64 {
        self.next() as f64 / 2_f64.powi(32) - 0.5
    }

    fn below(&mut self, limit: usize) -> usize {
        self.next() as usize % limit
    }

    fn elements(&mut self, like: Like, len: usize) -> Vec<Option<f64>> {
        let special = if len == 0 { 0 } else { self.below(len) };
        let element = |at: usize| {
            let plain = self.fraction() * 2_f64.powi((self.next() % 40) as i32);
            match like {
                Like::Gaps => (!self.next().is_multiple_of(3)).then_some(plain),
                Like::NotANumber if at == special => Some(f64::NAN),
                Like::Infinite if at == special => Some(f64::NEG_INFINITY),
                Like::Zeros => [Some(0.0), Some(-0.0), Some(-0.0), None][self.below(4)],
                Like::NearOne => Some(1.0 + plain.signum() * self.fraction() / 1024.0),
                _ => Some(plain),
            }
        };
        (0..len).map(element).collect()
    }
}

fn multiply(a: f64, b: f64) -> f64 {
    a * b
}

/// Returns the bits of a number; a fixed value for all NaNs.
fn bits(number: f64) -> u64 {
    if number.is_nan() { u64::MAX } else { number.to_bits() }
}

/// Cuts `len` elements into parts of random sizes.
fn cut(random: &mut Random, len: usize) -> Vec<Range<usize>> {
    let (mut parts, mut from) = (Vec::new(), 0);
    while from < len {
        // Parts of less than a row, of some rows, and of more than a block.
        let most = [70, 5000, 90_000][random.below(3)];
        let to = len.min(from + 1 + random.below(most));
        parts.push(from..to);
        from = to;
    }
    parts
}

/// Combines elements by each of the methods of a fold. Returns each result with the method's name.
fn all_ways<C: Combine<f64>>(
    random: &mut Random,
    elements: &[Option<f64>],
    [start, neutral]: [f64; 2],
    combine: C,
) -> Vec<(&'static str, f64)> {
    let len = elements.len();
    let filled: Vec<f64> = elements.iter().map(|element| element.unwrap_or(neutral)).collect();
    let identity = |element: f64| element;
    let mut found = Vec::new();

    let mut fold = ChainFold::new(len, start, combine);
    for part in cut(random, len) {
        fold.extend_each(part.len(), |at| elements[part.start + at]);
    }
    found.push(("one by one", fold.finish()));

    let mut fold = ChainFold::new(len, start, combine);
    for part in cut(random, len) {
        fold.extend_slice(&filled[part], identity);
    }
    found.push(("in slices", fold.finish()));

    let mut fold = ChainFold::new(len, start, combine);
    for part in cut(random, len) {
        let part = &filled[part];
        fold.extend_by(part.len(), |place, own| match place {
            FoldTarget::InOrder(total) => {
                part[own].iter().for_each(|element| *total = combine.combine(*total, *element));
            }
            FoldTarget::Row(chains) => {
                chains
                    .iter_mut()
                    .zip(&part[own])
                    .for_each(|(chain, element)| *chain = combine.combine(*chain, *element));
            }
            FoldTarget::Rows(chains) => {
                for row in part[own].chunks(CHAINS) {
                    chains.take_row(|at| row.get(at).copied().unwrap_or(neutral), combine);
                }
            }
        });
    }
    found.push(("by own loops", fold.finish()));

    let in_order = |total| filled.iter().fold(total, |total, element| combine.combine(total, *element));
    let whole = fold_whole(len, start, combine, in_order, |chains, block| {
        chains.take_slice(&filled[block], identity, combine);
    });
    found.push(("at once", whole));

    let mut fold = ChainFold::new(len, start, combine);
    for block in sum_blocks(len) {
        let mut own = ChainFold::from_block(len, block.start, start, combine);
        own.extend_slice(&filled[block], identity);
        fold.append_fold(&own);
    }
    if len > CHAINS {
        found.push(("in blocks apart", fold.finish()));
    }

    // Several folds side by side: two with these elements, and one with neutral elements only.
    let mut folds = ChainFolds::new(len, start, combine);
    folds.begin(3);
    for element in &filled {
        for (sum, element) in folds.next_row().iter_mut().zip([*element, *element, neutral]) {
            *sum = combine.combine(*sum, element);
        }
    }
    let sums = folds.finish();
    found.extend([("side by side", sums[0]), ("side by side", sums[1])]);
    assert_eq!(sums[2].to_bits(), start.to_bits(), "{len}");
    found
}

/// Computes the sum with borrowed chains, for some multiples of 64 elements at a time.
fn borrowed(random: &mut Random, elements: &[Option<f64>]) -> f64 {
    let len = elements.len();
    let mut fold = ChainFold::new(len, 0.0, Addition);
    let mut from = 0;
    while from < len {
        let most = if len > CHAINS { (1 + random.below(40)) * CHAINS } else { len };
        let to = len.min(from + most).min((from / SUM_BLOCK + 1) * SUM_BLOCK);
        let chains = fold.borrow_chains(to - from).expect("chains");
        for (at, element) in elements[from..to].iter().enumerate() {
            chains.0[chain_of(at)] += element.unwrap_or(0.0);
        }
        fold.record_added(to - from);
        from = to;
    }
    fold.finish()
}

/// The expected sums of random elements: the kind of the elements, their number, and the bits of the sum.
const SUMS: [(Like, usize, u64); 20] = [
    (Like::Plain, 1, 0x4193_4435_9800_0000),
    (Like::Plain, 63, 0x4265_3715_6d9b_573d),
    (Like::Plain, 64, 0xc253_af8c_f6e4_0870),
    (Like::Plain, 65, 0xc202_ea73_b33f_b0d0),
    (Like::Plain, 1000, 0x4237_1864_13cf_4cb0),
    (Like::Plain, 65_535, 0xc27c_255d_9d6d_3a08),
    (Like::Plain, 65_536, 0xc2a0_d14c_b6fe_aaa1),
    (Like::Plain, 65_537, 0xc292_dc76_988a_1065),
    (Like::Plain, 131_072, 0x42a3_83ec_a73c_dbac),
    (Like::Plain, 200_000, 0xc2a2_4062_caa5_e748),
    (Like::Gaps, 1, 0x4193_4435_9800_0000),
    (Like::Gaps, 63, 0x4252_be66_f214_56de),
    (Like::Gaps, 64, 0xc22d_8c0d_97dd_73fc),
    (Like::Gaps, 65, 0xc242_9834_457c_670e),
    (Like::Gaps, 1000, 0xc261_ac8c_382b_57f2),
    (Like::Gaps, 65_535, 0xc292_5ff6_f69e_e6bd),
    (Like::Gaps, 65_536, 0x4257_e6d4_f456_c1a0),
    (Like::Gaps, 65_537, 0xc229_fdc6_a8c7_1848),
    (Like::Gaps, 131_072, 0x4244_01e5_6a50_8490),
    (Like::Gaps, 200_000, 0xc2b0_2f7c_4dd3_e12d),
];

/// The expected products of random elements: the kind of the elements, their number, and the bits of the product.
const PRODUCTS: [(Like, usize, u64); 10] = [
    (Like::NearOne, 1, 0x3fef_ff10_1aae_6800),
    (Like::NearOne, 63, 0x3fef_da99_8aff_9906),
    (Like::NearOne, 64, 0x3fef_ebda_8a01_933c),
    (Like::NearOne, 65, 0x3ff0_186f_13b0_95a1),
    (Like::NearOne, 1000, 0x3fef_facb_f630_4412),
    (Like::NearOne, 65_535, 0x3ff1_f0df_d87e_2cd2),
    (Like::NearOne, 65_536, 0x3fee_9b98_553a_b202),
    (Like::NearOne, 65_537, 0x3fec_c6d8_f51f_16aa),
    (Like::NearOne, 131_072, 0x3ff0_45b9_6d31_4635),
    (Like::NearOne, 200_000, 0x3ff1_8efd_74fe_89cf),
];

/// Combines elements in memory in the order that `runtime/src/chains.rs` states, in simple code: the reference for all
/// methods.
fn stated(elements: &[Option<f64>], start: f64, combine: impl Combine<f64>) -> f64 {
    let one_by_one = |start: f64, all: &[Option<f64>], step: usize| {
        all.iter().step_by(step).flatten().fold(start, |total, element| combine.combine(total, *element))
    };
    if elements.len() <= 64 {
        return one_by_one(start, elements, 1);
    }
    let mut total = start;
    for block in elements.chunks(65_536) {
        let mut chains: Vec<f64> =
            (0..64).map(|chain| one_by_one(start, block.get(chain..).unwrap_or(&[]), 64)).collect();
        while let [_, _, ..] = &chains[..] {
            let (first, second) = chains.split_at(chains.len() / 2);
            chains = first.iter().zip(second).map(|(a, b)| combine.combine(*a, *b)).collect();
        }
        total = combine.combine(total, chains[0]);
    }
    total
}

#[test]
fn sums_and_products_have_the_bits_that_they_always_had() {
    for (like, len, expected) in SUMS {
        let elements = Random(len as u64).elements(like, len);
        let sum = stated(&elements, 0.0, Addition);
        assert_eq!(sum.to_bits(), expected, "{sum:e}: {len} elements, {like:?}");
    }
    for (like, len, expected) in PRODUCTS {
        let elements = Random(len as u64).elements(like, len);
        let product = stated(&elements, 1.0, multiply);
        assert_eq!(product.to_bits(), expected, "{product:e}: {len} elements, {like:?}");
    }
}

#[test]
fn elements_are_combined_in_one_order_however_they_come() {
    for like in LIKES {
        for len in LENGTHS {
            let mut random = Random(len as u64);
            let elements = random.elements(like, len);
            let sum = stated(&elements, 0.0, Addition);
            for (way, found) in all_ways(&mut random, &elements, [0.0, -0.0], Addition) {
                assert_eq!(bits(found), bits(sum), "{found} is not {sum}: {len} elements, {like:?}, {way}");
            }
            let found = borrowed(&mut random, &elements);
            assert_eq!(bits(found), bits(sum), "{found} is not {sum}: {len} elements, {like:?}, borrowed");
            let product = stated(&elements, 1.0, multiply);
            for (way, found) in all_ways(&mut random, &elements, [1.0, 1.0], multiply) {
                assert_eq!(bits(found), bits(product), "{found} is not {product}: {len} elements, {like:?}, {way}");
            }
        }
    }
}

#[test]
fn chains_that_were_lent_may_be_left_alone() {
    for len in [40, 64, 200] {
        let elements = Random(7).elements(Like::Plain, len);
        let mut fold = ChainFold::new(len, 0.0, Addition);
        assert!(fold.borrow_chains(len + 1).is_none(), "there are not so many");
        assert_eq!(fold.borrow_chains(len - 1).is_none(), len <= CHAINS, "a part of what is added one after the other");
        fold.borrow_chains(len).expect("chains");
        fold.extend_each(len, |at| elements[at]);
        assert_eq!(fold.finish().to_bits(), stated(&elements, 0.0, Addition).to_bits(), "{len}");
    }
    let mut fold = ChainFold::new(2 * SUM_BLOCK, 0.0, Addition);
    assert!(fold.borrow_chains(SUM_BLOCK + 1).is_none(), "elements of two blocks");
    fold.extend_each(1, |_| Some(1.0));
    assert!(fold.borrow_chains(CHAINS).is_none(), "the next element belongs to the second chain");
}
