//! Tests of tilings: the tile of an element, the elements of a tile, and boundaries that are refused.

use crate::random;
use cembra_tiles::{Base, Tiling, Tiling1};
use cembra_value::tensor::TensorErrorKind as Kind;
use fastrand::Rng;

#[test]
fn elements_and_tiles_are_found_both_ways() {
    let mut rng = Rng::with_seed(1);
    for _ in 0..200 {
        let axis = random::axis(&mut rng);
        let mut next = axis.lower();
        for tile in 0..axis.tiles() {
            let range = axis.range(tile).expect("a tile");
            assert_eq!(range.start, next);
            range.clone().for_each(|element| assert_eq!(axis.tile_of(element), Some(tile)));
            next = range.end;
        }
        assert_eq!(next, axis.upper());
        assert_eq!(
            (axis.range(axis.tiles()), axis.tile_of(axis.upper()), axis.tile_of(axis.lower() - 1)),
            (None, None, None)
        );
        assert_eq!(Tiling1::new(axis.boundaries()).expect("ascending"), axis);
    }
}

/// Tilings with tiles of one size store no boundaries. They are compared with tilings from a list of the same
/// boundaries.
#[test]
fn blocked_tilings_are_what_a_list_of_their_boundaries_is() {
    for elements in 0..20_u64 {
        for size in 1..8 {
            let blocked = Tiling1::blocked(elements, size).expect("a tiling");
            let mut list: Vec<i64> = (0..elements).step_by(size as usize).map(|at| at as i64).collect();
            list.push(elements as i64);
            assert_eq!(blocked, Tiling1::new(list.clone()).expect("ascending"), "{elements} by {size}");
            assert!(blocked.boundaries().eq(list.iter().copied()), "{elements} by {size}");
            let moved = blocked.rebased(-7).expect("a tiling");
            assert!(moved.boundaries().eq(list.iter().map(|at| at - 7)));
            for start in 0..=blocked.tiles() {
                for end in start..=blocked.tiles() {
                    let block = blocked.block(start..end).expect("a block");
                    let expected = &list[start as usize..=end as usize];
                    assert_eq!(block, Tiling1::new(expected.iter().copied()).expect("ascending"));
                }
            }
            for start in 0..=elements as i64 {
                for end in start..=elements as i64 {
                    let cut = blocked.elements(start..end).expect("elements");
                    assert_eq!((cut.lower(), cut.upper()), (start, end));
                    let inner = list.iter().copied().filter(|at| *at > start && *at < end);
                    let ends = if start == end { vec![start] } else { vec![start, end] };
                    let mut expected: Vec<i64> = inner.chain(ends).collect();
                    expected.sort_unstable();
                    assert!(cut.boundaries().eq(expected), "{elements} by {size}, {start} to {end}: {cut:?}");
                    assert_eq!(cut, Tiling1::new(cut.boundaries()).expect("ascending"));
                }
            }
        }
    }
}

#[test]
fn tiles_of_one_size_are_told_from_others() {
    let size = |boundaries: &[i64]| Tiling1::new(boundaries.iter().copied()).expect("a tiling").tile_size();
    assert_eq!(size(&[-2, 2, 6, 9]), Some(4));
    assert_eq!(size(&[3, 8]), Some(5));
    assert_eq!([size(&[0, 4, 8, 13]), size(&[0, 0, 4]), size(&[0, 4, 4]), size(&[7])], [None; 4]);
    assert_eq!(Tiling1::blocked(1 << 44, 2).expect("a tiling").tile_size(), Some(2));
}

#[test]
fn boundaries_that_do_not_ascend_are_refused() {
    let kind = |boundaries: &[i64]| Tiling1::new(boundaries.iter().copied()).expect_err("an error").tensor_kind();
    assert_eq!(kind(&[]), Some(Kind::Tiling));
    assert_eq!(kind(&[0, 3, 2]), Some(Kind::Tiling));
    assert_eq!(kind(&[i64::MIN, i64::MAX]), Some(Kind::Limit));
    assert_eq!(kind(&[-2, i64::MAX]), Some(Kind::Limit));
    assert_eq!(Tiling1::blocked(3, 0).expect_err("an error").tensor_kind(), Some(Kind::Tiling));
    assert_eq!(Tiling1::blocked(1 << 63, 1).expect_err("an error").tensor_kind(), Some(Kind::Limit));
    let axis = Tiling1::new([0, 2, 4]).expect("a tiling");
    assert_eq!(axis.rebased(i64::MAX - 3).expect_err("an error").tensor_kind(), Some(Kind::Tiling));
    assert_eq!(axis.rebased(i64::MAX - 4).expect("a tiling").upper(), i64::MAX);
    #[expect(clippy::reversed_empty_ranges, reason = "ranges that are none are what is refused")]
    for range in [1..3, 2..1] {
        assert_eq!(axis.block(range).expect_err("an error").tensor_kind(), Some(Kind::Index));
    }
    assert_eq!(axis.elements(-1..2).expect_err("an error").tensor_kind(), Some(Kind::Index));
    let error = Tiling1::new([5, 1]).expect_err("an error");
    assert_eq!(
        error.to_string(),
        "the boundary 1 of a tiling is after the larger boundary 5; write boundaries in ascending order"
    );
}

#[test]
fn numbers_of_tiles_are_positions_in_the_grid() {
    let mut rng = Rng::with_seed(2);
    for rank in 0..5 {
        let tiling = random::tiling(&mut rng, rank);
        let strides = tiling.strides();
        for tile in 0..tiling.tiles() {
            let index = tiling.index_of(tile).expect("a tile");
            assert_eq!(tiling.number_of(&index), Some(tile));
            assert_eq!(index.iter().zip(&strides).map(|(at, stride)| at * stride).sum::<u64>(), tile);
            let ranges = tiling.ranges(tile).expect("a tile");
            if ranges.iter().all(|range| !range.is_empty()) {
                let last: Vec<i64> = ranges.iter().map(|range| range.end - 1).collect();
                assert_eq!(tiling.tile_of(&last), Some(tile));
            }
            let volume: i64 = ranges.iter().map(|range| range.end - range.start).product();
            assert_eq!(tiling.volume(tile), volume as f64);
        }
        assert_eq!((tiling.index_of(tiling.tiles()), tiling.ranges(u64::MAX)), (None, None));
    }
}

#[test]
fn grids_may_have_more_tiles_than_there_is_memory() {
    let axis = Tiling1::blocked(1 << 50, 1 << 10).expect("a tiling");
    assert_eq!(axis.tiles(), 1 << 40);
    assert_eq!(axis.tile_of((1 << 50) - 1), Some((1 << 40) - 1));
    let other = Tiling1::blocked(1 << 23, 1).expect("a tiling");
    let tiling = Tiling::new([&axis, &other]).expect("2^63 tiles");
    let last = tiling.tiles() - 1;
    assert_eq!(tiling.index_of(last).expect("a tile")[..], [(1 << 40) - 1, (1 << 23) - 1]);
    assert_eq!(tiling.tile_of(&[(1 << 50) - 1, (1 << 23) - 1]), Some(last));
    let far = tiling.block(&[(1 << 39)..(1 << 40), 0..2], Base::Zero).expect("a block");
    assert_eq!((far.tiles(), far.axes()[0].lower()), (1 << 40, 0));
    // A range that begins at a tile stores no list of boundaries; one that begins within a tile would.
    assert_eq!(axis.elements(1024..(1 << 50) - 1).expect("elements").tiles(), (1 << 40) - 1);
    let within = axis.elements(1..1 << 50).expect_err("an error");
    assert_eq!(within.tensor_kind(), Some(Kind::Limit));
    assert!(axis.elements(1..5000).expect("elements").boundaries().eq([1, 1024, 2048, 3072, 4096, 5000]));
    let error = Tiling::new([&axis, &axis]).expect_err("2^80 tiles");
    assert_eq!(error.tensor_kind(), Some(Kind::Limit));
    // An axis without tiles makes a grid without tiles, but the error for too many tiles on the other axes remains.
    let none = Tiling1::new([4]).expect("a tiling");
    assert_eq!(Tiling::new([&axis, &none]).expect("no tiles").tiles(), 0);
    assert!(Tiling::new([&axis, &none, &axis]).is_err());
    assert!(Tiling::new(vec![none; 100]).is_err());
}
