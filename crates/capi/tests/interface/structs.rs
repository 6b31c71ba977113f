//! Tests of C structs, lists of structs and dictionaries as inputs: how fields are found, which descriptions are refused, and what memory is reused
//! from call to call.

use crate::calls::{NOTHING, code, evaluate, f64, message, number, session};
use cembra::layouts::{Array, Column, List, Member, Payload, Struct, Value};
use cembra::memory::{Flag, Text};
use cembra::session::{Session, cembra_session_set_limit};
use std::mem::offset_of;

const BOOL: u32 = 2;
const I32: u32 = 3;
const I64: u32 = 4;
const F64: u32 = 7;
const TEXT: u32 = 11;
const ARRAY: u32 = 13;
const LITERAL: u32 = 15;
const STRUCT: u32 = 16;
const LIST: u32 = 17;

/// `cembra_optional_f64`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Optional {
    present: u8,
    value: f64,
}

/// An item, with fields that no model has, in another order than in the models.
#[repr(C)]
#[derive(Clone, Copy)]
struct Item {
    shelf: i32,
    sold: u8,
    sku: Text<'static>,
    count: i64,
    weight: Optional,
    price: f64,
}

fn item(price: f64, count: i64, sku: &'static str, weight: Option<f64>) -> Item {
    let weight = Optional { present: u8::from(weight.is_some()) * 3, value: weight.unwrap_or(1e9) };
    Item { shelf: -7, sold: u8::from(count % 2 == 1) * 9, sku: Text::new(sku), count, weight, price }
}

fn member(name: &'static str, kind: u32, offset: usize) -> Member<'static> {
    let (members, member_count) = (std::ptr::null(), 0);
    Member { name: Text::new(name), kind, presence_form: 0, offset, presence_offset: 0, members, member_count }
}

fn optional(name: &'static str, kind: u32, offset: usize, presence_offset: usize) -> Member<'static> {
    Member { presence_form: 1, presence_offset, ..member(name, kind, offset) }
}

/// Returns the descriptions of the fields of [`Item`].
fn fields() -> [Member<'static>; 6] {
    let weight = offset_of!(Item, weight);
    [
        member("price", F64, offset_of!(Item, price)),
        member("shelf", I32, offset_of!(Item, shelf)),
        member("count", I64, offset_of!(Item, count)),
        member("sku", TEXT, offset_of!(Item, sku)),
        optional("weight", F64, weight + offset_of!(Optional, value), weight + offset_of!(Optional, present)),
        member("sold", BOOL, offset_of!(Item, sold)),
    ]
}

fn items_at(first: *const Item, stride: isize, len: usize, members: &[Member<'static>]) -> List<'static> {
    let items = Column {
        kind: STRUCT,
        presence_form: 0,
        data: first.cast(),
        stride,
        presence: std::ptr::null(),
        presence_stride: 0,
        presence_bit: 0,
    };
    List { items, len, members: members.as_ptr(), member_count: members.len() }
}

fn items(all: &[Item], members: &[Member<'static>]) -> List<'static> {
    items_at(all.as_ptr(), size_of::<Item>().cast_signed(), all.len(), members)
}

fn list<'v>(list: &'v List<'v>) -> Value<'v> {
    Value { kind: LIST, present: Flag(1), r#as: Payload { list } }
}

fn structure<'v>(given: &'v Struct<'v>) -> Value<'v> {
    Value { kind: STRUCT, present: Flag(1), r#as: Payload { structure: given } }
}

fn literal(text: &str) -> Value<'_> {
    Value { kind: LITERAL, present: Flag(1), r#as: Payload { text: Text::new(text) } }
}

/// Returns the numbers in an output that is an array, with NaN for a missing element.
fn numbers(value: &Value<'_>) -> Vec<f64> {
    assert_eq!(value.kind, ARRAY);
    // SAFETY: C-MEMORY: the value is an array of numbers, with a byte of presence for each if it says so.
    unsafe {
        let array = &*value.r#as.array;
        assert_eq!(array.elements.kind, F64);
        let at = |at: usize| {
            let is_there = array.elements.presence_form == 0 || *array.elements.presence.add(at) != 0;
            if is_there { *array.elements.data.cast::<f64>().add(at) } else { f64::NAN }
        };
        (0..array.len).map(at).collect()
    }
}

fn texts(value: &Value<'_>) -> Vec<String> {
    // SAFETY: C-MEMORY: the value is an array of texts, all of which are present.
    unsafe {
        let array = &*value.r#as.array;
        assert_eq!((value.kind, array.elements.kind, array.elements.presence_form), (ARRAY, TEXT, 0));
        let text = |at: usize| (*array.elements.data.cast::<Text<'_>>().add(at)).as_str().expect("text").to_owned();
        (0..array.len).map(text).collect()
    }
}

fn fails<const N: usize>(session: &mut Session, given: Value<'_>, expected: (&str, &str)) {
    let error = evaluate::<N>(session, &[given]).expect_err(expected.1);
    assert_eq!((code(&error), message(&error)), expected);
}

const ORDER: &str = "input items: [{price: f64, count: i64, sku: text}]
    output total = sum(items.price * items.count); output skus = items.sku; output prices = items.price";

#[test]
fn a_list_of_structs_goes_in_at_any_stride() {
    let mut session = session(ORDER);
    let all = [
        item(2.5, 4, "a", None),
        item(4.0, 3, "longer than a view of a text", Some(1.0)),
        item(0.5, 10, "é", None),
        item(100.0, 7, "d", None),
        item(8.0, 1, "", None),
    ];
    let (members, size) = (fields(), size_of::<Item>().cast_signed());
    let skus = ["a", "longer than a view of a text", "é", "d", ""];
    let cases: [(List<'_>, f64, &[usize]); 6] = [
        (items(&all[..3], &members), 27.0, &[0, 1, 2]),
        (items_at(all.as_ptr(), 2 * size, 3, &members), 23.0, &[0, 2, 4]),
        (items_at(&raw const all[4], -size, 5, &members), 735.0, &[4, 3, 2, 1, 0]),
        (items_at(&raw const all[1], 0, 4, &members), 48.0, &[1, 1, 1, 1]),
        (items(&all[3..4], &members), 700.0, &[3]),
        (items_at(std::ptr::null(), 0, 0, &members), 0.0, &[]),
    ];
    // The session takes another way once lists are often short, and writes over what it has.
    for turn in 0..40 {
        let (given, total, order) = &cases[turn % 6];
        let [found, named, prices] = evaluate(&mut session, &[list(given)]).expect("a row");
        assert_eq!(number(&found), Some(*total), "{turn}");
        assert_eq!(texts(&named), order.iter().map(|at| skus[*at]).collect::<Vec<_>>(), "{turn}");
        assert_eq!(numbers(&prices), order.iter().map(|at| all[*at].price).collect::<Vec<_>>(), "{turn}");
    }
    // A literal between calls, and an error, leave nothing behind.
    let spelled = "[{price: 1.5, count: 2, sku: \"x\"}]";
    let [found, named, _] = evaluate(&mut session, &[literal(spelled)]).expect("a row");
    assert_eq!((number(&found), texts(&named)), (Some(3.0), vec!["x".to_owned()]));
    assert!(evaluate::<3>(&mut session, &[list(&items(&all, &members[..3]))]).is_err());
    let [found, ..] = evaluate::<3>(&mut session, &[list(&cases[0].0)]).expect("a row");
    assert_eq!(number(&found), Some(27.0));
}

#[test]
fn long_lists_and_literals_agree() {
    let mut session = session(
        "input items: [{price: f64, count: i64, sku: text, weight: f64?, sold: bool}]
        output total = sum(items.price * items.count); output heavy = items.weight
        output sold = sum(items.price & (items.sold == true)); output skus = items.sku",
    );
    for len in [0, 1, 63, 64, 65, 130, 3] {
        let one = |at: usize| {
            let weight = (at % 3 != 1).then_some(at as f64 / 8.0);
            item(at as f64 * 0.25, at as i64 - 5, ["b", "", "a text of more than twelve bytes"][at % 3], weight)
        };
        let all: Vec<Item> = (0..len).map(one).collect();
        let spelled = |item: &Item| {
            let weight =
                if item.weight.present != 0 { format!("{:?}", item.weight.value) } else { "missing".to_owned() };
            let Item { price, count, sku, sold, .. } = item;
            let sku = sku.as_str().expect("text");
            format!("{{price: {price:?}, count: {count}, sku: {sku:?}, weight: {weight}, sold: {}}}", *sold != 0)
        };
        let text = format!("[{}]", all.iter().map(spelled).collect::<Vec<_>>().join(", "));
        let members = fields();
        let seen = |[total, heavy, sold, skus]: [Value<'static>; 4]| {
            let heavy: Vec<u64> = numbers(&heavy).into_iter().map(f64::to_bits).collect();
            (number(&total), heavy, number(&sold), texts(&skus))
        };
        let expected = seen(evaluate(&mut session, &[literal(&text)]).expect("a row"));
        assert_eq!(expected.1.len(), len);
        for _ in 0..2 {
            let found = seen(evaluate(&mut session, &[list(&items(&all, &members))]).expect("a row"));
            assert_eq!(found, expected, "{len}");
        }
    }
}

#[test]
fn a_struct_has_fields_structs_and_lists() {
    #[repr(C)]
    struct Place {
        country: Text<'static>,
        lat: f64,
        lon: f64,
    }
    #[repr(C)]
    struct Order {
        nothing: u8,
        pieces: i64,
        to: Place,
        is_there: u8,
        from: Place,
        credit: Optional,
        items: List<'static>,
        sizes: Array,
    }
    let mut session = session(
        "input o: {to: {lat: f64, lon: f64}, pieces: i64, credit: f64?, from: {lat: f64, country: text}?,
            sizes: [f64?], items: [{price: f64, count: i64}]}
        output place = o.to.lat * 1000.0 + o.to.lon; output pieces = o.pieces; output credit = o.credit
        output from = o.from.country; output lat = o.from.lat; output sizes = o.sizes * 2.0
        output total = sum(o.items.price * o.items.count)",
    );
    let of_place = [
        member("lat", F64, offset_of!(Place, lat)),
        member("country", TEXT, offset_of!(Place, country)),
        member("lon", F64, offset_of!(Place, lon)),
    ];
    let inside = |member: Member<'static>| Member { members: of_place.as_ptr(), member_count: 3, ..member };
    let credit = offset_of!(Order, credit);
    let of_order = [
        inside(member("to", STRUCT, offset_of!(Order, to))),
        inside(optional("from", STRUCT, offset_of!(Order, from), offset_of!(Order, is_there))),
        member("nothing", BOOL, offset_of!(Order, nothing)),
        member("pieces", I64, offset_of!(Order, pieces)),
        optional("credit", F64, credit + offset_of!(Optional, value), credit),
        member("items", LIST, offset_of!(Order, items)),
        member("sizes", ARRAY, offset_of!(Order, sizes)),
    ];
    let (members, numbers_of, there) = (fields(), [1.5, 0.0, 2.5], [1_u8, 0, 1]);
    for turn in 0..30 {
        let all: Vec<Item> = (0..turn % 4).map(|at| item(f64::from(at) + 0.5, 2, "a", None)).collect();
        let total: f64 = all.iter().map(|item| item.price * 2.0).sum();
        let elements = Column {
            kind: F64,
            presence_form: 1,
            data: numbers_of.as_ptr().cast(),
            stride: 8,
            presence: there.as_ptr(),
            presence_stride: 1,
            presence_bit: 0,
        };
        // What is missing is not looked at: neither the number nor the text.
        // SAFETY: C-MEMORY: nothing is read of a text that is missing.
        let wild = unsafe { Text::from_raw(std::ptr::without_provenance(8), usize::MAX) };
        let is_there = turn % 2 == 0;
        let country = if is_there { Text::new("CH") } else { wild };
        let order = Order {
            nothing: 1,
            pieces: i64::from(turn),
            to: Place { country: wild, lat: 47.0, lon: 8.5 },
            is_there: is_there.into(),
            from: Place { country, lat: f64::from(turn), lon: 0.0 },
            credit: Optional { present: u8::from(turn % 3 == 0), value: f64::from(turn) },
            items: items(&all, &members),
            sizes: Array { elements, len: 3 },
        };
        let given = Struct { data: (&raw const order).cast(), members: of_order.as_ptr(), member_count: 7 };
        let [place, pieces, credit, from, lat, sizes, sum] =
            evaluate(&mut session, &[structure(&given)]).expect("a row");
        assert_eq!((number(&place), number(&sum)), (Some(47_008.5), Some(total)), "{turn}");
        // SAFETY: C-MEMORY: the value is an integer.
        assert_eq!(unsafe { pieces.r#as.i64 }, i64::from(turn));
        assert_eq!(number(&credit), (turn % 3 == 0).then_some(f64::from(turn)));
        // SAFETY: C-MEMORY: the value is a text if it is present.
        let from = from.present.is_set().then(|| unsafe { from.r#as.text }.as_str().expect("text").to_owned());
        assert_eq!(
            (from.as_deref(), number(&lat)),
            if is_there { (Some("CH"), Some(f64::from(turn))) } else { (None, None) }
        );
        assert_eq!(
            numbers(&sizes).iter().map(|size| size.to_bits()).collect::<Vec<_>>(),
            [3.0_f64.to_bits(), f64::NAN.to_bits(), 5.0_f64.to_bits()]
        );
    }
}

#[test]
fn items_and_their_fields_may_be_missing() {
    // An optional struct in a list, with a text that must not be read where the struct is missing, and one in each item.
    #[repr(C)]
    #[derive(Clone, Copy)]
    struct Line {
        item: Item,
        has_item: u8,
    }
    // SAFETY: C-MEMORY: nothing is read of a text that is missing.
    let wild = unsafe { Text::from_raw(std::ptr::without_provenance(1), 1 << 40) };
    let gone = Item { sku: wild, ..item(-1.0, -1, "", Some(-1.0)) };
    let all = [item(1.0, 2, "a", None), gone, item(4.0, 8, "b", Some(16.0))];
    let members = fields();

    let mut of_optional = session(
        "input items: [{price: f64, sku: text, weight: f64?}?]; output p = items.price; output w = items.weight
        output n = sum(strings.length(items.sku))",
    );
    let (bytes, bits) = ([7_u8, 0, 1], [0b1010_0000_u8]);
    for turn in 0..24 {
        let mut given = items(&all, &members);
        given.items.presence_form = 1 + turn % 2;
        (given.items.presence, given.items.presence_stride) = (bytes.as_ptr(), 1);
        if turn % 2 == 1 {
            (given.items.presence, given.items.presence_bit) = (bits.as_ptr(), 5);
        }
        let [prices, weights, _] = evaluate::<3>(&mut of_optional, &[list(&given)]).expect("a row");
        let [prices, weights] = [prices, weights].map(|all| numbers(&all));
        assert!(prices[0] == 1.0 && prices[1].is_nan() && prices[2] == 4.0, "{prices:?}");
        assert!(weights[0].is_nan() && weights[1].is_nan() && weights[2] == 16.0, "{weights:?}");
    }
    // A byte that all share says it of each.
    let mut none = items(&all, &members);
    (none.items.presence_form, none.items.presence, none.items.presence_stride) = (1, &raw const bytes[1], 0);
    let [prices, ..] = evaluate::<3>(&mut of_optional, &[list(&none)]).expect("a row");
    assert!(numbers(&prices).iter().all(|price| price.is_nan()) && numbers(&prices).len() == 3);

    let mut of_lines = session("input lines: [{item: {price: f64, count: i64}?}]; output p = lines.item.price");
    let lines: Vec<Line> = all.iter().zip(bytes).map(|(item, has_item)| Line { item: *item, has_item }).collect();
    let inner = Member {
        members: members.as_ptr(),
        member_count: members.len(),
        ..optional("item", STRUCT, offset_of!(Line, item), offset_of!(Line, has_item))
    };
    let mut given = items_at(lines.as_ptr().cast(), size_of::<Line>().cast_signed(), 3, &members);
    (given.members, given.member_count) = (&raw const inner, 1);
    for _ in 0..12 {
        let [prices] = evaluate(&mut of_lines, &[list(&given)]).expect("a row");
        let prices = numbers(&prices);
        assert!(prices[0] == 1.0 && prices[1].is_nan() && prices[2] == 4.0, "{prices:?}");
    }

    // What must not be missing is named with its item.
    let mut full = session("input items: [{weight: f64}]; sum(items.weight)");
    fails::<1>(&mut full, list(&items(&all[..1], &members)), ("values", "input `items.weight` is missing in item 0"));
    fails::<1>(
        &mut full,
        list(&items(&[all[2], all[0]], &members)),
        ("values", "input `items.weight` is missing in item 1"),
    );
    let mut given = items(&all, &members);
    (given.items.presence_form, given.items.presence, given.items.presence_stride) = (1, bytes.as_ptr(), 1);
    fails::<1>(&mut full, list(&given), ("values", "input `items` is missing in item 1"));
    let mut one = session("input o: {weight: f64}; o.weight");
    let given = Struct { data: (&raw const all[0]).cast(), members: members.as_ptr(), member_count: members.len() };
    fails::<1>(&mut one, structure(&given), ("values", "input `o.weight` is missing"));
    let given = Struct { data: (&raw const all[2]).cast(), ..given };
    let [weight] = evaluate(&mut one, &[structure(&given)]).expect("a row");
    assert_eq!(number(&weight), Some(16.0));
}

#[test]
fn absent_values_of_inputs_that_need_one_are_missing() {
    let mut of_numbers = session("input x: f64, y: f64?; x + (y ?? 1.0)");
    let absent = |kind| Value { kind, ..NOTHING };
    for kind in [F64, I64, TEXT, ARRAY, LITERAL, STRUCT, LIST] {
        fails::<1>(&mut of_numbers, absent(kind), ("values", "input `x` is missing"));
    }
    fails::<1>(&mut of_numbers, absent(18), ("argument", "18 is not a CEMBRA_KIND_*"));
    let [found] = evaluate(&mut of_numbers, &[f64(2.0), absent(F64)]).expect("a row");
    assert_eq!(number(&found), Some(3.0));
    let wrong = evaluate::<1>(&mut of_numbers, &[f64(2.0), absent(I64)]).expect_err("another type");
    assert_eq!(message(&wrong), "input `y` is f64?, found i64?");
    for spelled in ["[f64]", "{x: f64}", "[{x: f64}]"] {
        let mut session = session(&format!("input x: {spelled}; input z: f64; output y = x; output w = z"));
        for kind in [ARRAY, LITERAL, STRUCT, LIST, F64] {
            let error = evaluate::<2>(&mut session, &[absent(kind), f64(1.0)]).expect_err(spelled);
            assert_eq!((code(&error), message(&error)), ("values", "input `x` is missing"), "{spelled} {kind}");
        }
    }
    let mut of_optional = session("input o: {x: f64}?; o.x ?? 7.0");
    for kind in [STRUCT, LITERAL] {
        let [found] = evaluate(&mut of_optional, &[absent(kind)]).expect("a row");
        assert_eq!(number(&found), Some(7.0));
    }
}

#[test]
fn a_dictionary_is_a_list_of_entries() {
    #[repr(C)]
    struct Rate {
        value: Optional,
        key: Text<'static>,
    }
    let mut session = session("input rates: dict[text, f64], of: text; output y = lookup(of, rates, -1.0)");
    let rate = |key, value: f64, present| Rate { key: Text::new(key), value: Optional { present, value } };
    let all = [rate("CH", 1.25, 1), rate("DE", 9.0, 0), rate("AT", 0.5, 1)];
    let members = [
        member("key", TEXT, offset_of!(Rate, key)),
        optional("value", F64, offset_of!(Rate, value) + offset_of!(Optional, value), offset_of!(Rate, value)),
    ];
    let mut given = items_at(all.as_ptr().cast(), size_of::<Rate>().cast_signed(), 3, &members);
    for _ in 0..12 {
        for (key, expected) in [("AT", 0.5), ("CH", 1.25), ("FR", -1.0)] {
            let of = Value { kind: TEXT, present: Flag(1), r#as: Payload { text: Text::new(key) } };
            let [found] = evaluate(&mut session, &[list(&given), of]).expect("a row");
            assert_eq!(number(&found), Some(expected), "{key}");
        }
    }
    given.member_count = 1;
    let expected = "input `rates.value` is f64?, but the struct has no field `value`; fields of the struct: key";
    let error = evaluate::<1>(&mut session, &[list(&given), f64(1.0)]).expect_err("no value");
    assert_eq!((code(&error), message(&error)), ("values", expected));
}

#[test]
fn lists_that_do_not_fit_are_refused() {
    let mut session = session(ORDER);
    let (all, good) = ([item(1.0, 2, "a", None); 3], fields());
    let [price, shelf, count, sku, weight, _] = good;
    let mut refused = |members: &[Member<'static>], code: &str, message: &str| {
        fails::<3>(&mut session, list(&items(&all, members)), (code, message));
    };
    let is = "input `items.count` is i64, found";
    refused(&[price, member("count", F64, 8), sku], "values", &format!("{is} f64"));
    refused(&[price, member("count", ARRAY, 8), sku], "values", &format!("{is} an array"));
    refused(&[price, member("count", STRUCT, 8), sku], "values", &format!("{is} a struct"));
    refused(&[price, member("count", 99, 8), sku], "argument", "99 is not a CEMBRA_KIND_* of a field");
    let lacks =
        "input `items.sku` is text, but the struct has no field `sku`; fields of the struct: price, count, shelf";
    refused(&[price, count, shelf], "values", lacks);
    refused(
        &[],
        "values",
        "input `items.price` is f64, but the struct has no field `price`; fields of the struct: none",
    );
    let no_offset = "input `items.price` has an offset that does not fit into the address space";
    refused(&[member("price", F64, usize::MAX - 7), count, sku], "argument", no_offset);
    refused(&[optional("price", F64, 0, usize::MAX), count, sku], "argument", no_offset);
    let odd = "input `items.price` must be at an address that is a multiple of 8";
    refused(&[member("price", F64, 4), count, sku], "argument", odd);
    let form = Member { presence_form: 2, ..weight };
    refused(&[Member { name: price.name, ..form }, count, sku], "argument", "2 is not a CEMBRA_PRESENCE_* of a field");
    // SAFETY: C-MEMORY: nothing is read of null.
    let null = Member { name: unsafe { Text::from_raw(std::ptr::null(), 5) }, ..price };
    refused(
        &[null, count, sku],
        "argument",
        "the name of a field in the struct of input `items.price` must not be null",
    );

    let list_of = |change: fn(&mut List<'static>)| {
        let mut given = items(&all, &good);
        change(&mut given);
        given
    };
    let cases: [(List<'_>, &str, &str); 7] = [
        (list_of(|list| list.items.data = std::ptr::null()), "argument", "input `items` must not be null"),
        (
            list_of(|list| list.members = std::ptr::null()),
            "argument",
            "the array of fields of input `items` must not be null",
        ),
        (
            list_of(|list| list.items.kind = 0),
            "values",
            "input `items` is {price: f64, count: i64, sku: text}, found nothing",
        ),
        (list_of(|list| list.items.presence_form = 3), "argument", "3 is not a CEMBRA_PRESENCE_*"),
        (
            list_of(|list| list.items.stride = 12),
            "argument",
            "input `items.price` has the stride 12, which must be a multiple of 8",
        ),
        (
            list_of(|list| list.len = 1 << 60),
            "argument",
            "input `items.price` has 1152921504606846976 values of stride 56, which do not fit into the address space",
        ),
        (
            list_of(|list| (list.items.stride, list.len) = (0, 1 << 40)),
            "argument",
            "an array of 1099511627776 elements exceeds the limit `array_bytes`",
        ),
    ];
    for (given, code, message) in &cases {
        fails::<3>(&mut session, list(given), (code, message));
    }
    fails::<3>(
        &mut session,
        Value { kind: LIST, present: Flag(1), r#as: Payload { list: std::ptr::null() } },
        ("argument", "input `items` must not be null"),
    );
    // SAFETY: C-MEMORY: there are two bytes.
    let bad = unsafe { Text::from_raw(b"a\xFF".as_ptr().cast(), 2) };
    let bad = [all[0], Item { sku: bad, ..all[0] }];
    fails::<3>(
        &mut session,
        list(&items(&bad, &good)),
        ("argument", "input `items.sku` must be UTF-8, but byte 1 does not begin a character"),
    );
    // After all that the session goes on.
    let [total, ..] = evaluate::<3>(&mut session, &[list(&items(&all, &good))]).expect("a row");
    assert_eq!(number(&total), Some(6.0));
    assert!(cembra_session_set_limit(Some(&mut session), Text::new("array_bytes"), 20).is_none());
    fails::<3>(
        &mut session,
        list(&items(&all, &good)),
        ("argument", "an array of 3 elements exceeds the limit `array_bytes`"),
    );
}

#[test]
fn kinds_of_inputs_are_those_of_the_model() {
    let (all, members) = ([item(1.0, 2, "a", None)], fields());
    let of_items = items(&all, &members);
    let one = Struct { data: all.as_ptr().cast(), members: members.as_ptr(), member_count: members.len() };
    let mut of_array = session("input x: [f64?]; sum(x)");
    fails::<1>(&mut of_array, list(&of_items), ("values", "input `x` is [f64?], found a list of structs"));
    let mut of_number = session("input x: f64; x");
    fails::<1>(&mut of_number, list(&of_items), ("values", "input `x` is f64, found a list of structs"));
    fails::<1>(&mut of_number, structure(&one), ("values", "input `x` is f64, found a struct"));
    let mut of_struct = session("input x: {price: f64}; x.price");
    fails::<1>(&mut of_struct, list(&of_items), ("values", "input `x` is {price: f64}, found a list of structs"));
    fails::<1>(&mut of_struct, f64(1.0), ("values", "input `x` is {price: f64}, found f64"));
    let mut of_list = session("input x: [{price: f64}]; sum(x.price)");
    fails::<1>(&mut of_list, structure(&one), ("values", "input `x` is [{price: f64}], found a struct"));
    let null = Struct { data: std::ptr::null(), ..one };
    fails::<1>(&mut of_struct, structure(&null), ("argument", "input `x` must not be null"));
    let mut of_nested = session("input x: {items: [{price: f64}], a: [i64]}; sum(x.items.price)");
    let wrong = [member("items", ARRAY, 0), member("a", ARRAY, 0)];
    let given = Struct { data: all.as_ptr().cast(), members: wrong.as_ptr(), member_count: 2 };
    fails::<1>(&mut of_nested, structure(&given), ("values", "input `x.items` is [{price: f64}], found an array"));
}

#[test]
fn texts_of_structs_are_a_list_of_texts() {
    let all = [
        item(1.0, 2, "one", Some(1.0)),
        item(1.0, 2, "two", None),
        item(1.0, 2, "a longer text than a view", Some(0.0)),
    ];
    let elements = Column {
        kind: TEXT,
        presence_form: 0,
        data: (&raw const all[0].sku).cast(),
        stride: size_of::<Item>().cast_signed(),
        presence: &raw const all[0].weight.present,
        presence_stride: size_of::<Item>().cast_signed(),
        presence_bit: 0,
    };
    let mut full = session("input x: [text]; output lengths = sum(strings.length(x)); output same = x");
    let given = Array { elements, len: 3 };
    let [_, same] =
        evaluate::<2>(&mut full, &[Value { kind: ARRAY, present: Flag(1), r#as: Payload { array: &raw const given } }])
            .expect("a row");
    assert_eq!(texts(&same), ["one", "two", "a longer text than a view"]);
    let mut of_optional =
        session("input x: [text?]; output first = sum(1.0 & (x == \"one\")); output there = sum(1.0 & has(x))");
    let given = Array { elements: Column { presence_form: 1, ..elements }, len: 3 };
    let given = Value { kind: ARRAY, present: Flag(1), r#as: Payload { array: &raw const given } };
    let [first, there] = evaluate(&mut of_optional, &[given]).expect("a row");
    assert_eq!((number(&first), number(&there)), (Some(1.0), Some(2.0)));
}
