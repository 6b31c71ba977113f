//! Reading CSV as other programs write it: blocks (parts of a file that are read one at a time), ids and codes, delimiters, compression, encodings,
//! columns copied to the results, broken rows.

use super::*;
use flate2::Compression;
use flate2::write::GzEncoder;

/// The rows with their lines, read in blocks of about `size` bytes.
fn in_blocks(text: &str, size: usize, wanted: &[(&str, Option<QType>)]) -> Result<Vec<(u64, Vec<Value>)>, String> {
    let reader = Text { reader: Box::new(std::io::Cursor::new(text.to_owned())), file: true };
    let data = CsvData::in_blocks(reader, &options(Format::Csv, &[]), None, size).map_err(|error| error.to_string())?;
    placed_rows(data.bind(&request(wanted)).map_err(|error| error.to_string())?)
}

fn text(text: &str) -> Value {
    Value::Present(ScalarValue::Text(text.into()))
}

#[test]
fn where_a_block_ends_does_not_matter() {
    // The last text has a lone CR among its LFs.
    for (end, before_four) in [("\n", "\n"), ("\r\n", "\r\n"), ("\r", "\r"), ("\n", "\r")] {
        let content = [
            "a,b",
            "1,\"x\ny\"",
            "",
            "",
            "2,\"p\r\n\"\"q\"\"\r\n\"",
            "-3.5,z",
            "4,5\" pipe",
            "\"5\",",
            "6,\"\"\"in\"\" and out\"",
            "7,\"a longer text, with \"\"quotes\"\", behind the twelfth byte\"",
            "8,last",
        ];
        let content = content.join(end).replace(&format!("{end}4,"), &format!("{before_four}4,"));
        let wanted = [("b", Some(QType::Optional(Scalar::Text))), ("a", Some(QType::FLOAT64))];
        let missing = Value::Missing(Scalar::Text);
        let lines = [2, 6, 9, 10, 11, 12, 13, 14];
        let texts = [
            text("x\ny"),
            text("p\r\n\"q\"\r\n"),
            text("z"),
            text("5\" pipe"),
            missing,
            text("\"in\" and out"),
            text("a longer text, with \"quotes\", behind the twelfth byte"),
            text("last"),
        ];
        let numbers = [1.0, 2.0, -3.5, 4.0, 5.0, 6.0, 7.0, 8.0];
        let rows = lines.into_iter().zip(texts.into_iter().zip(numbers));
        let expected: Vec<_> = rows.map(|(line, (text, number))| (line, vec![text, Value::from(number)])).collect();
        for size in (1..40).chain([4096]) {
            for tail in ["", end] {
                let found = in_blocks(&format!("{content}{tail}"), size, &wanted);
                assert_eq!(found, Ok(expected.clone()), "{end:?} {before_four:?} {tail:?} {size}");
            }
        }
    }
}

#[test]
fn what_is_wrong_is_found_on_its_line_in_every_block() {
    let cases = [
        ("x,y\n1,\"two\nlines\"\n\n2,\n3.5,z\n", "6: column `x`: expected i32, found `3.5`"),
        ("x,y\n1,2\n\n3\n", "4: expected 2 fields, one for each column, found 1"),
        ("x,y\n1,2\n3,4,5\n6,7", "3: expected 2 fields, one for each column, found 3"),
        ("x\n1\n\n3\n", "3: a blank line in a file of one column; write `\"\"` for an empty field"),
        (
            "x,y\n1,\"x\n2,y\n3,z\n",
            "2: a quote is opened and never closed; write `\"\"` for a quote inside a field in quotes",
        ),
        // The fault is the same if the field is on one line.
        ("x,y\n1,2\n3,\"x", "3: a quote is opened and never closed; write `\"\"` for a quote inside a field in quotes"),
        ("x,y\n1,2\n,4\n", "3: column `x`: expected i32, found a missing value; declare `input x: i32?`"),
    ];
    for (content, expected) in cases {
        for size in 1..30 {
            let found = in_blocks(content, size, &[("x", Some(QType::INT32))]).expect_err(content);
            assert_eq!(found.strip_prefix(":").unwrap_or(&found), expected, "{size}");
        }
    }
    assert_eq!(in_blocks("x\n1\n\n\n", 1, &[("x", Some(QType::INT32))]).map(|rows| rows.len()), Ok(1));
}

/// RFC 4180 allows nothing after a closing quote; `"5"5` must not become 55.
#[test]
fn a_field_ends_with_its_closing_quote() {
    let hint = "write `\"\"` for a quote inside a field in quotes";
    let number = Some(QType::Optional(Scalar::Int32));
    for (content, line, field) in [
        ("x,y\n1,2\n\"5\"5,6\n7,8\n", 3, "\"5\"5"),
        // The field is in a column that is not read, has a blank after the quote, or follows a field of two lines.
        ("x,y\n1,2\n3,\"5\"5\n", 3, "\"5\"5"),
        ("x,y\n1,\"2\" \n", 2, "\"2\" "),
        ("x,y\r\n1,\"a\r\nb\"\r\n2,\"With\" \"\"you\"\r\n", 4, "\"With\" \"\"you\""),
        ("\"x\"a,y\n1,2\n", 1, "\"x\"a"),
    ] {
        for size in 1..30 {
            let found = in_blocks(content, size, &[("x", number.clone())]).expect_err(content);
            let found = found.strip_prefix(":").unwrap_or(&found);
            let told = format!("a field in quotes has more text after its closing quote: `{field}`; {hint}");
            // For a header, only the message is compared.
            let expected = if line == 1 { told } else { format!("{line}: {told}") };
            assert_eq!(found, expected, "{size}");
        }
    }
    let tolerant = ReadOptions { tolerant: true, ..options(Format::Csv, &[]) };
    let data = open_with(&tolerant, "x,y\n1,a\n2,\"b\"c\n3,\"d\"\n").expect("a header");
    let mut table = bind(data, &[("x", number)]).expect("it is there");
    let decoded = table.source.next().expect("rows").expect("a piece").decode();
    let failed: Vec<(usize, Option<u64>)> = decoded.failures.iter().map(|(row, error)| (*row, error.line())).collect();
    assert_eq!((decoded.batch.rows.num_rows(), failed), (3, vec![(1, Some(3))]));
}

#[test]
fn columns_without_a_name_are_carried() {
    let content = "id,,\n1,2,3\n4,,\"x\"\"y\"\n";
    let all = Request { keep: Keep::All, verbatim: true, ..Request::default() };
    let table = open(Format::Csv, None, content).expect("a header").bind(&all).expect("columns");
    let names: Vec<&str> = table.kept.iter().map(|kept| kept.name.as_str()).collect();
    assert_eq!(names, ["id", "", ""]);
    let missing = Value::Missing(Scalar::Text);
    let expected = vec![vec![text("1"), text("2"), text("3")], vec![text("4"), missing, text("x\"y")]];
    assert_eq!(rows(table), Ok(expected));
    // For other result formats, the names of columns must differ.
    let all = Request { verbatim: false, ..all };
    let error = open(Format::Csv, None, content).expect("a header").bind(&all).err().expect("two");
    assert_eq!(
        error.to_string(),
        "rows.csv: two columns have no name; name the columns to keep, as in `--keep id,date`; results in CSV can have both"
    );
    let index = ",a\n0,5\n1,6\n";
    let table = open(Format::Csv, None, index).expect("a header").bind(&all).expect("columns");
    let row = |index: i64, a: i64| vec![Value::from(Some(index)), Value::from(Some(a))];
    assert_eq!(rows(table), Ok(vec![row(0, 5), row(1, 6)]));
    assert_eq!(csv(index, &[("", None)]), Ok(vec![vec![Value::from(Some(0_i64))], vec![Value::from(Some(1_i64))]]));
    // The empty name is not suggested instead of a name of one letter.
    assert_eq!(csv(index, &[("x", None)]), Err("rows.csv: no column `x`; the columns are ``, `a`".to_owned()));
}

#[test]
fn utf16_without_a_mark_is_named() {
    let bytes: Vec<u8> = "x,y\n1,2\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    assert_eq!(
        open(Format::Csv, None, bytes).err().as_deref(),
        Some(
            "rows.csv:1: the header has the byte 0x00: this is UTF-16 without a byte order mark, or not a text; save the file as UTF-8"
        )
    );
}

#[test]
fn types_are_those_of_the_first_thousand_rows_whatever_the_blocks() {
    let content = format!("x,y\n{}oops,1\n", "1,2\n".repeat(999));
    for size in [1, 100, 1 << 20] {
        let found = in_blocks(&content, size, &[("x", None)]).expect("text");
        assert_eq!((found.len(), &found[0].1, &found[999].1), (1_000, &vec![text("1")], &vec![text("oops")]));
    }
}

#[test]
fn ids_codes_truth_and_days_survive() {
    let content = "id,code,flag,count,day,moment,huge\n\
        9007199254740993,01234,True,1.0,2026-11-20,2026-11-20T10:15:00Z,123456789012345678901\n\
        -9223372036854775808,99999,FALSE,,1969-12-31,,1\n";
    let names = ["id", "code", "flag", "count", "day", "moment", "huge"];
    let types = ["i64?", "text?", "bool?", "f64?", "date?", "timestamp?", "text?"];
    assert_eq!(inferred(Format::Csv, content, &names), Ok(types.map(str::to_owned).to_vec()));
    let wanted = [("id", None), ("code", None), ("flag", None), ("count", Some(QType::Optional(Scalar::Int32)))];
    assert_eq!(
        csv(content, &wanted),
        Ok(vec![
            vec![
                Value::from(Some(9_007_199_254_740_993_i64)),
                text("01234"),
                Value::from(Some(true)),
                Value::from(Some(1))
            ],
            vec![Value::from(Some(i64::MIN)), text("99999"), Value::from(Some(false)), Value::Missing(Scalar::Int32)],
        ])
    );
    let late = format!("x\n{}2.5\n", "1\n".repeat(1_000));
    assert_eq!(
        csv(late, &[("x", None)]),
        Err("rows.csv:1002: column `x`: expected i64?, found `2.5`; the type was inferred from the first rows: \
             declare `input x: f64?`"
            .to_owned())
    );
}

#[test]
fn what_separates_fields_is_found_or_given() {
    let wanted = [("b", Some(QType::INT32))];
    let expected = Ok(vec![vec![Value::from(2)]]);
    for content in ["a,b\n1,2\n", "a;b\n1,5;2\n", "a\tb\n1;5\t2\n", "\"a,x,y\";b\n1,5;2\n", "b\n2\n", "\na;b\n1;2\n"] {
        assert_eq!(csv(content, &wanted), expected, "{content:?}");
    }
    let pipes = ReadOptions { delimiter: Some(b'|'), ..options(Format::Csv, &[]) };
    let table = bind(open_with(&pipes, "a,x|b\n1|2\n").expect("it is CSV"), &wanted).expect("it is there");
    assert_eq!(rows(table), expected);
}

#[test]
fn compressed_data_and_other_encodings_are_read_as_what_they_hold() {
    let content = "name,n\nJosé 𝄞,1\n\"two\nlines\",2\n";
    let wanted = [("name", Some(QType::TEXT)), ("n", Some(QType::INT32))];
    let expected = csv(content, &wanted);
    assert_eq!(expected.as_ref().map(|rows| rows[0][0].clone()), Ok(Value::from("José 𝄞")));
    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    gzip.write_all(content.as_bytes()).expect("compressed");
    let gzip = gzip.finish().expect("compressed");
    let twice = [gzip.clone(), gzip.clone()].concat();
    let zstd = zstd::encode_all(content.as_bytes(), 3).expect("compressed");
    let units = |to: fn(u16) -> [u8; 2]| format!("\u{feff}{content}").encode_utf16().flat_map(to).collect::<Vec<u8>>();
    let (little, big) = (units(u16::to_le_bytes), units(u16::to_be_bytes));
    let marked = format!("\u{feff}{content}").into_bytes();
    for (name, bytes) in [("gzip", &gzip), ("zstd", &zstd), ("little", &little), ("big", &big), ("mark", &marked)] {
        assert_eq!(csv(bytes.clone(), &wanted), expected, "{name}");
        // The format is also guessed.
        let (input, format) = Input::new("rows", std::io::Cursor::new(bytes.clone())).guess().expect("bytes");
        assert_eq!(format, Format::Csv, "{name}");
        let dataset = Dataset::open(input, &options(format, &[])).expect("it is CSV");
        assert_eq!(rows(bind(dataset, &wanted).expect("both are there")), expected, "{name}");
    }
    // A second member of a gzip file continues the data.
    assert_eq!(csv(twice, &wanted), Err("rows.csv:5: column `n`: expected i32, found `n`".to_owned()));
    let cut = gzip[..gzip.len() - 9].to_vec();
    assert!(csv(cut, &wanted).expect_err("half a file").starts_with("rows.csv: cannot read"), "of gzip");
    let half = [&little[..], &[0]].concat();
    assert_eq!(csv(half, &wanted), Err("rows.csv: cannot read: the text is not UTF-16".to_owned()));
}

#[test]
fn columns_are_carried_through_as_they_are_written_or_typed() {
    let content = "id,x,name\n007,1.50,\"a,b\"\n,2, c\n";
    let request = |keep, verbatim| Request { keep, verbatim, ..request(&[("x", Some(QType::FLOAT64))]) };
    let bound = |keep, verbatim| open(Format::Csv, None, content).expect("it is CSV").bind(&request(keep, verbatim));
    let these = Keep::These(vec!["name".to_owned(), "x".to_owned()]);
    let kept = bound(these.clone(), true).expect("bound");
    assert!(kept.kept.iter().all(|column| column.form == Form::Verbatim));
    assert_eq!(
        rows(kept),
        Ok(vec![vec![Value::from(1.5), text("a,b"), text("1.50")], vec![Value::from(2.0), text(" c"), text("2")],])
    );
    let typed = bound(Keep::All, false).expect("bound");
    let forms: Vec<Form> = typed.kept.iter().map(|column| column.form.clone()).collect();
    let of = |scalar| Form::Values(QType::Optional(scalar));
    assert_eq!(forms, [of(Scalar::Text), of(Scalar::Float64), of(Scalar::Text)]);
    let second = vec![Value::from(2.0), Value::Missing(Scalar::Text), Value::from(Some(2.0)), text(" c")];
    assert_eq!(rows(typed).map(|rows| rows[1].clone()), Ok(second));
    let absent = bound(Keep::These(vec!["nam".to_owned()]), true).err().map(|error| error.to_string());
    assert_eq!(absent, Some("rows.csv: no column `nam`; did you mean `name`?".to_owned()));
}

#[test]
fn a_tolerant_reader_passes_over_rows_that_are_none() {
    let content = "x,y\n1,a\nb,c\n2\n,d\n3,e\n";
    let options = ReadOptions { tolerant: true, ..options(Format::Csv, &[]) };
    let wanted = [("x", Some(QType::INT32)), ("y", Some(QType::TEXT))];
    let mut table = bind(open_with(&options, content).expect("it is CSV"), &wanted).expect("bound");
    let decoded = table.source.next().expect("rows").expect("rows").decode();
    let told: Vec<_> = decoded.failures.iter().map(|(row, error)| (*row, error.line(), error.message())).collect();
    assert_eq!(
        told,
        [
            (1, Some(3), "expected i32, found `b`".to_owned()),
            (2, Some(4), "expected 2 fields, one for each column, found 1".to_owned()),
            (3, Some(5), "expected i32, found a missing value".to_owned()),
        ]
    );
    assert!(decoded.error.is_none());
    let numbers = decoded.batch.rows.column(0);
    assert_eq!((numbers.len(), numbers.null_count()), (5, 2));
    let types = [QType::Optional(Scalar::Int32), QType::Optional(Scalar::Text)];
    assert_eq!(values(&decoded.batch, &types)[4], [Value::from(Some(3)), text("e")]);
}
