//! Tests the attributes of derives in both backends: renamed and skipped fields, defaults, user-defined field types,
//! and types that models do not have.

use cembra::{Backend, Error, Input, Model, Optional, Options, Output};
use std::borrow::Cow;
use std::collections::HashMap;

fn backends() -> [Options; 2] {
    [Backend::Interpreter, Backend::Native].map(|backend| Options::default().backend(backend))
}

/// Evaluates the model `source` on a row, asserts that both backends give the same result, and returns it.
fn answer<'r, I, O>(source: &str, row: &I) -> O
where
    I: Input<At<'r> = I> + 'r,
    O: Output + PartialEq + std::fmt::Debug,
{
    let model = Model::parse(source).expect("a model");
    let [interpreted, native] = backends().map(|options| {
        let mut executor = model.executor::<I, O>(&options).expect("an executor");
        executor.run(row).expect("a result")
    });
    assert_eq!(interpreted, native);
    native
}

fn refusal<I: Input, O: Output>(source: &str) -> Error {
    Model::parse(source).expect("a model").executor::<I, O>(&Options::default()).expect_err("a refusal")
}

#[derive(cembra::FieldType, Clone, Copy, PartialEq, Debug)]
struct Cents(i64);

#[derive(cembra::FieldType, Clone, PartialEq, Debug, Default)]
struct Name {
    text: String,
}

#[derive(cembra::FieldType, Clone, Copy, PartialEq, Debug)]
struct Flag(bool);

/// A field type with a larger alignment than its number, so it is converted, not read in place.
#[derive(cembra::FieldType, Clone, Copy, PartialEq, Debug)]
#[repr(align(32))]
struct Aligned(f32);

#[derive(cembra::FieldType, Clone, Copy, PartialEq, Debug)]
#[cembra(rename_all = "kebab-case")]
enum Card {
    GoldPlus,
    #[cembra(rename = "s i l v e r")]
    Silver,
    r#None,
}

#[derive(cembra::FieldType, Clone, Copy, PartialEq, Debug)]
#[cembra(repr = "i64")]
#[repr(i64)]
enum Grade {
    Low = -1,
    High = 1 << 40,
}

#[test]
fn names_are_those_of_the_attributes() {
    #[derive(cembra::Input)]
    #[cembra(rename_all = "camelCase")]
    struct Row {
        unit_price: f64,
        #[cembra(rename = "country code")]
        country: &'static str,
        #[cembra(name = "n")]
        how_many: i32,
        r#type: i32,
    }
    #[derive(cembra::Output, PartialEq, Debug)]
    #[cembra(rename_all = "SCREAMING_SNAKE_CASE")]
    struct Found {
        in_all: f64,
        #[cembra(rename = "is swiss")]
        swiss: bool,
    }
    let source = "output IN_ALL = unitPrice * core.to_float64(n + type)
                  output \"is swiss\" = if L[\"country code\"] == \"CH\" then true else false";
    let row = Row { unit_price: 2.5, country: "CH", how_many: 3, r#type: 1 };
    assert_eq!(answer::<_, Found>(source, &row), Found { in_all: 10.0, swiss: true });
    assert_eq!(
        refusal::<Row, f64>("unit_price").to_string(),
        "there is no data for input `unit_price`; is `unitPrice` meant for `unit_price`?; the known names are unitPrice, country \
         code, n, type"
    );
}

#[test]
fn fields_of_other_types_are_refused_when_they_are_asked_for() {
    struct Opaque;
    #[derive(cembra::Input)]
    struct Row<'a> {
        x: f64,
        labels: HashMap<String, Vec<u8>>,
        opaque: &'a Opaque,
        #[cembra(skip)]
        y: f64,
    }
    let (labels, opaque) = (HashMap::from([("a".to_owned(), vec![1])]), &Opaque);
    let row = Row { x: 4.0, labels, opaque, y: 1.0 };
    assert_eq!((row.labels.len(), size_of_val(row.opaque), row.y), (1, 0, 1.0));
    assert_eq!(answer::<_, f64>("x * 2.0", &row), 8.0);
    // What is declared and not needed in the end is not asked for.
    assert_eq!(answer::<_, f64>("input labels: f64; if true then x else labels", &row), 4.0);
    for source in ["labels + 1", "input labels: f64?; labels ?? x"] {
        let error = refusal::<Row<'_>, f64>(source);
        assert_eq!(
            (error.code(), error.to_string().as_str()),
            (
                "binding",
                "input `labels` comes from a field of type `std::collections::hash::map::HashMap<alloc::string::String, \
                 alloc::vec::Vec<u8>>`, which an input cannot have; write `#[derive(cembra::Input)]` before the struct, or \
                 `#[derive(cembra::FieldType)]` before an enum or a struct of one field; use another type that `cembra::Input` lists, or leave the field out with `#[cembra(skip)]`"
            )
        );
    }
    assert_eq!(
        refusal::<Row<'_>, f64>("x + y").to_string(),
        "there is no data for input `y`; the known names are x, labels, opaque"
    );
    // A field that is left out is no data, so that a default holds.
    assert_eq!(answer::<_, f64>("input y: f64? = 0.5; x + y", &row), 4.5);
}

#[test]
fn outputs_that_are_left_out_keep_what_they_are() {
    #[derive(cembra::Output, Default, PartialEq, Debug)]
    struct Found {
        #[cembra(skip)]
        seen: HashMap<String, u64>,
        y: f64,
        #[cembra(skip)]
        note: String,
    }
    for options in backends() {
        let mut run = Model::parse("output y = 1.5").unwrap().executor::<(), Found>(&options).unwrap();
        let mut found = run.run(&()).unwrap();
        assert_eq!(found, Found { y: 1.5, ..Found::default() });
        found.note.push('!');
        found.seen.insert("a".into(), 1);
        found.y = 0.0;
        run.run_into(&(), &mut found).unwrap();
        assert_eq!((found.y, found.note.as_str(), found.seen.len()), (1.5, "!", 1));
        let mut all = [found, Found::default()];
        run.run_many(&[(), ()], &mut all).unwrap();
        assert_eq!((all[0].note.as_str(), all[1].y), ("!", 1.5));
    }
}

#[test]
fn defaults_are_for_outputs_that_are_not_there_or_missing() {
    #[derive(cembra::Input)]
    struct Row {
        x: Option<f64>,
        name: Option<String>,
    }
    #[derive(cembra::Output, PartialEq, Debug)]
    struct Found {
        #[cembra(default = 0.5)]
        x: f64,
        #[cembra(default)]
        absent: Vec<String>,
        #[cembra(default = Some(7))]
        n: Option<i32>,
        #[cembra(default = "nobody".to_owned())]
        name: String,
        #[cembra(default = Card::Silver)]
        card: Card,
        #[cembra(default = true)]
        flag: bool,
    }
    let source = "input x: f64?; input name: text?
                  output \"x\" = x * 2.0
                  output \"n\" = where(x > 1.0, 3)
                  output \"name\" = name
                  output \"card\" = where(x > 1.0, \"gold-plus\")
                  output \"flag\" = where(x > 1.0, false)";
    let row = Row { x: Some(4.0), name: Some("Ann".into()) };
    let full = Found { x: 8.0, absent: Vec::new(), n: Some(3), name: "Ann".into(), card: Card::GoldPlus, flag: false };
    assert_eq!(answer::<_, Found>(source, &row), full);
    let nothing = Row { x: None, name: None };
    let empty = Found { x: 0.5, absent: Vec::new(), n: None, name: "nobody".into(), card: Card::Silver, flag: true };
    assert_eq!(answer::<_, Found>(source, &nothing), empty);
    // What is always there is read in place, and what the model does not have is the default, of optionals too.
    let plain = Found { x: 2.0, n: Some(7), ..empty };
    assert_eq!(answer::<_, Found>("output \"x\" = 2.0", &nothing), plain);
    for options in backends() {
        let model = Model::parse(source).unwrap();
        let mut run = model.executor::<Row, Found>(&options).unwrap();
        let rows = [Row { x: Some(4.0), name: Some("Ann".into()) }, Row { x: None, name: None }];
        let old = || Found {
            absent: vec!["old".into()],
            n: Some(1),
            name: "old".into(),
            ..answer("output \"x\" = 2.0", &nothing)
        };
        let mut found = [old(), old()];
        run.run_many(&rows, &mut found).unwrap();
        assert_eq!((found[0].x, found[0].absent.len(), found[1].x, found[1].name.as_str()), (8.0, 0, 0.5, "nobody"));
        // A model with arrays gives values, not slots.
        let model = Model::parse("input x: f64?; output \"x\" = math.sum([1.0, 2.0]) + x; output \"name\" = \"a\"");
        let mut run = model.unwrap().executor::<Row, Found>(&options).unwrap();
        assert_eq!(run.run(&rows[0]).unwrap(), Found { x: 7.0, name: "a".into(), n: Some(7), ..old_defaults() });
        assert_eq!(run.run(&rows[1]).unwrap().x, 0.5);
    }
    fn old_defaults() -> Found {
        Found { x: 0.5, absent: Vec::new(), n: None, name: "nobody".into(), card: Card::Silver, flag: true }
    }
    assert_eq!(refusal::<Row, Found>("output \"x\" = \"a\"").code(), "binding");
}

#[test]
fn types_of_ones_own_are_what_they_stand_for() {
    #[derive(cembra::Input)]
    struct Row<'t> {
        cents: Cents,
        maybe: Optional<Cents>,
        name: Name,
        flag: Flag,
        aligned: Aligned,
        card: Card,
        card2: Option<Card>,
        grade: Optional<Grade>,
        small: u32,
        byte: Option<u8>,
        short: Optional<i16>,
        label: Cow<'t, str>,
        label2: Option<Cow<'t, str>>,
    }
    #[derive(cembra::Output, PartialEq, Debug)]
    struct Found {
        cents: Cents,
        maybe: Optional<Cents>,
        name: Name,
        flag: Optional<Flag>,
        aligned: Aligned,
        card: Option<Card>,
        card2: Optional<Card>,
        grade: Grade,
        small: u32,
        byte: Optional<u8>,
        short: Option<i16>,
        label: Cow<'static, str>,
        label2: Option<Cow<'static, str>>,
    }
    let source = "output \"cents\" = cents + 1i64
                  output \"maybe\" = maybe * 2
                  output \"name\" = strings.join(name, \"!\")
                  output \"flag\" = where(flag == true, false)
                  output \"aligned\" = aligned
                  output \"card\" = where(card == \"gold-plus\", \"none\")
                  output \"card2\" = card2
                  output \"grade\" = (grade ?? 1i64) * -1099511627776
                  output \"small\" = small // 2
                  output \"byte\" = byte + 1
                  output \"short\" = short
                  output \"label\" = strings.upper(label)
                  output \"label2\" = label2";
    let row = Row {
        cents: Cents(41),
        maybe: Some(Cents(-4)).into(),
        name: Name { text: "Ann".into() },
        flag: Flag(true),
        aligned: Aligned(0.25),
        card: Card::GoldPlus,
        card2: Some(Card::Silver),
        grade: Optional::present(Grade::Low),
        small: u32::MAX,
        byte: Some(254),
        short: Optional::present(i16::MIN),
        label: Cow::Borrowed("ü"),
        label2: Some(Cow::Owned("x".into())),
    };
    let found = Found {
        cents: Cents(42),
        maybe: Optional::present(Cents(-8)),
        name: Name { text: "Ann!".into() },
        flag: Optional::present(Flag(false)),
        aligned: Aligned(0.25),
        card: Some(Card::None),
        card2: Optional::present(Card::Silver),
        grade: Grade::High,
        small: u32::MAX / 2,
        byte: Optional::present(255),
        short: Some(i16::MIN),
        label: "Ü".into(),
        label2: Some("x".into()),
    };
    assert_eq!(answer::<_, Found>(source, &row), found);
    let row = Row {
        maybe: Optional::missing(),
        flag: Flag(false),
        card: Card::None,
        card2: None,
        grade: Optional::present(Grade::Low),
        byte: None,
        short: Optional::missing(),
        label2: None,
        ..row
    };
    let less = Found {
        maybe: Optional::missing(),
        flag: Optional::missing(),
        card: None,
        card2: Optional::missing(),
        byte: Optional::missing(),
        short: None,
        label2: None,
        ..answer(source, &Row { label: Cow::Borrowed("ü"), name: Name { text: "Ann".into() }, ..row })
    };
    assert_eq!(less.small, u32::MAX / 2);
    // In place where they lie as what they stand for.
    const { assert!(<Cents as cembra::InputValue>::IN_PLACE && <Optional<Flag> as cembra::OutputValue>::IN_PLACE) };
    const { assert!(!<Aligned as cembra::InputValue>::IN_PLACE && !<Optional<Aligned> as cembra::OutputValue>::IN_PLACE) };
}

#[test]
fn many_rows_have_them_too() {
    #[derive(cembra::Input)]
    struct Row {
        cents: Cents,
        card: Card,
        small: Option<u32>,
    }
    #[derive(cembra::Output, PartialEq, Debug, Clone)]
    struct Found {
        cents: Optional<Cents>,
        name: Name,
    }
    let source = "input small: i64?
                  output \"cents\" = where(card == \"none\", cents * 3)
                  output \"name\" = strings.join(card, \"/\", strings.as_text(small ?? -1i64))";
    let row = |at: i64| Row {
        cents: Cents(at),
        card: [Card::None, Card::Silver, Card::GoldPlus][(at % 3) as usize],
        small: (at % 2 == 0).then_some(at as u32),
    };
    let rows: Vec<Row> = (0..1000).map(row).collect();
    for options in backends() {
        let mut run = Model::parse(source).unwrap().executor::<Row, Found>(&options).unwrap();
        let mut found = vec![Found { cents: Optional::missing(), name: Name::default() }; rows.len()];
        run.run_many(&rows, &mut found).unwrap();
        let one_by_one: Vec<Found> = rows.iter().map(|row| run.run(row).unwrap()).collect();
        assert_eq!(found, one_by_one);
        assert_eq!((found[6].cents.get(), found[6].name.text.as_str()), (Some(Cents(18)), "none/6"));
    }
}

#[test]
fn what_is_none_of_the_type_is_an_error_that_names_it() {
    #[derive(cembra::Input)]
    struct Row {
        written: &'static str,
        n: i64,
    }
    #[derive(cembra::Output, PartialEq, Debug)]
    struct Found {
        said: String,
        #[cembra(default = Card::Silver)]
        card: Card,
        grade: Optional<Grade>,
        small: u32,
    }
    let source = "input n: i64
                  output \"said\" = written; output \"card\" = where(n != 0, written)
                  output \"grade\" = where(n > 0, n); output \"small\" = n";
    let mut messages = Vec::new();
    for options in backends() {
        let mut run = Model::parse(source).unwrap().executor::<Row, Found>(&options).unwrap();
        let mut found = run.run(&Row { written: "none", n: 1 << 20 }).unwrap_err().to_string();
        messages.push(std::mem::take(&mut found));
        let mut good = run.run(&Row { written: "bad card", n: 0 }).unwrap();
        assert_eq!(good, Found { said: "bad card".into(), card: Card::Silver, grade: Optional::missing(), small: 0 });
        for row in [Row { written: "plastic", n: 1 << 40 }, Row { written: "none", n: -1 }] {
            let error = run.run_into(&row, &mut good).unwrap_err();
            assert_eq!(error.code(), "values");
            messages.push(error.to_string());
        }
        assert_eq!(good.said, "bad card", "texts are moved last");
        let many = run.run_many(&[Row { written: "none", n: 7 }], std::slice::from_mut(&mut good));
        messages.push(many.unwrap_err().to_string());
    }
    let expected = [
        "output `grade` is 1048576, expected the number of one of `Low` or `High`",
        "output `card` is \"plastic\", expected \"gold-plus\", \"s i l v e r\" or \"none\"",
        "output `small` is -1, expected 0 to 4294967295",
        "output `grade` is 7, expected the number of one of `Low` or `High`",
    ];
    let shown: Vec<String> = messages.iter().map(|message| message.replace("i64", "")).collect();
    assert_eq!(shown[..4], expected);
    assert_eq!(shown[..4], shown[4..]);
}

#[test]
fn types_of_parameters_are_bound_where_they_are_known() {
    #[derive(cembra::Input)]
    struct Row<T>
    where
        Option<T>: cembra::InputValue,
    {
        x: Option<T>,
    }
    #[derive(cembra::Input)]
    struct Plain<T>
    where
        Vec<T>: cembra::InputValue,
    {
        xs: Vec<T>,
    }
    assert_eq!(answer::<_, f64>("math.sum(xs)", &Plain { xs: vec![1.0, 2.0] }), 3.0);
    assert_eq!(answer::<_, f64>("x ?? 0.5", &Row { x: Some(4.0) }), 4.0);
    assert_eq!(answer::<_, i64>("x ?? 5i64", &Row { x: Some(Cents(4)) }), 4);
    let _ = (Plain { xs: vec![1.0] }.xs, Row { x: Some(1.0) }.x);
}
