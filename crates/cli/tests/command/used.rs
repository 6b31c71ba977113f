//! Tests of files that a model uses: they are found in the folder of the model, and nowhere else.

use super::shell::Shell;

#[test]
fn files_lie_beside_the_model() {
    let shell = Shell::new()
        .file("m.cem", "use \"lib/tax.cem\"\ninput price: f64\noutput total = taxed(price)\n")
        .file("lib/tax.cem", "use \"rates.cem\"\nfn taxed(x) = x * (1.0 + vat)\n")
        .file("lib/rates.cem", "let vat = 0.25\n");
    assert_eq!(shell.stdout(&["eval", "m.cem", "-s", "price=8"]), "total\n10\n");
    assert_eq!(shell.stdout(&["check", "m.cem"]), "input price: f64\noutput total: f64\n");
    assert_eq!(shell.stdout(&["eval", "-e", "use \"lib/rates.cem\"; vat * 2.0"]), "result\n0.5\n");
}

#[test]
fn problems_name_the_file() {
    let shell = Shell::new()
        .file("m.cem", "use \"tax.cem\"\ninput price: text\noutput total = taxed(price)\n")
        .file("tax.cem", "# The tax.\nlet vat = 0.25\nfn taxed(x) = x * (1.0 + vat)\n");
    let found = shell.run(&["check", "m.cem"]);
    assert_eq!(found.status, Some(1));
    assert!(found.stderr.contains(" --> tax.cem:3:15\n"), "{}", found.stderr);
    assert!(found.stderr.contains("3 | fn taxed(x) = x * (1.0 + vat)\n"), "{}", found.stderr);
    let json = shell.run(&["check", "m.cem", "--format", "json"]).stdout;
    assert!(json.contains("\"file\": \"tax.cem\"") || json.contains("\"file\":\"tax.cem\""), "{json}");
    for name in ["../tax.cem", "/etc/passwd", "none.cem"] {
        let text = format!("use \"{name}\"; 1");
        let found = shell.run(&["eval", "-e", &text]);
        assert_eq!(found.status, Some(1));
        assert!(found.stderr.starts_with(&format!("error[use]: `{name}` cannot be read: ")), "{}", found.stderr);
    }
}

#[test]
fn a_file_that_is_no_text_is_told_with_its_line() {
    let shell = Shell::new()
        .file(
            "m.cem",
            "use \"tax.cem\"\ntable vat: text -> f64 = \"vat.csv\"\noutput y = one + lookup(\"CH\", vat, 1.0)\n",
        )
        .file("tax.cem", b"# The tax.\n# Jos\xe9\nlet one = 1.0\n")
        .file("vat.csv", b"country,vat\nCH,1.08\nD\xc9,1\n");
    let found = shell.run(&["check", "m.cem"]);
    assert_eq!(found.status, Some(1));
    for (name, line, byte) in [("`tax.cem`", 2, "e9"), ("`vat.csv`", 3, "c9")] {
        let told = format!(
            "error[use]: {name} cannot be read: not UTF-8 text: it has the byte 0x{byte}; save the file as UTF-8, line {line}\n"
        );
        assert!(found.stderr.contains(&told), "{}", found.stderr);
    }
}

#[test]
fn tables_lie_beside_the_model() {
    let shell = Shell::new()
        .file("m.cem", "table vat: text -> f64 = \"vat.csv\"\ninput country: text\noutput gross = 100.0 * lookup(country, vat, 1.0)\n")
        .file("vat.csv", "country,vat\nCH,1.08\nDE,1.5\nFR,\n")
        .file("rows.csv", "country\nDE\nFR\nIT\n");
    assert_eq!(shell.stdout(&["eval", "m.cem", "rows.csv"]), "gross\n150\n100\n100\n");
    assert_eq!(shell.stdout(&["check", "m.cem"]), "input country: text\noutput gross: f64\n");
    let shell = shell.file("vat.csv", "country,vat\nCH,1.08\nDE,x\n");
    let found = shell.run(&["check", "m.cem"]);
    assert_eq!(found.status, Some(1));
    assert!(found.stderr.contains("error[literal]: `x` is not a valid f64\n --> vat.csv:3:1\n"), "{}", found.stderr);
}

/// Tables may have keys of several columns and values that are structs; they are looked up by key or by range.
#[test]
fn tables_have_keys_of_several_columns_and_values_that_are_structs() {
    let model = "table rates: (text, i64) -> f64 = \"rates.csv\"\n\
        table items: text -> {price: f64, name: text?} = \"items.csv\"\n\
        table pairs: (i32, text) -> {n: i32} = \"both.csv\"\n\
        table bands: ranges of f64 -> {rate: f64, label: text?} = \"bands.csv\"\n\
        table gaps: ranges of f64 -> {rate: f64} = \"gaps.csv\"\n\
        input c: text?, y: i32, s: text, x: f64\n\
        output rate = lookup((c, y), rates, 0.5)\n\
        output known = (c, y) in rates\n\
        output item = lookup(s, items)\n\
        output price = lookup(s, items, {price: 9.0, name: missing[text]}).price\n\
        output both = dict.get(pairs, (y, c)).n\n\
        output label = lookup(x, bands).label\n\
        output gap = lookup(x, gaps, {rate: 7.5}).rate\n";
    let data = "c,y,s,x\nCH,2025,a,500\nDE,2025,b,2000\n,2024,z,-1\nFR,2024,a,nan\n";
    let expected = "rate,known,item.price,item.name,price,both,label,gap\n\
        1.081,true,1.5,Apple,1.5,1,low,7.5\n\
        0.5,,2,,2,2,,0.5\n\
        ,,,,9,,,7.5\n\
        0.5,,1.5,Apple,1.5,,,7.5\n";
    let shell = Shell::new()
        .file("m.cem", model)
        .file("rates.csv", "country;year;rate\nCH;2024;1.08\nCH;2025;1.081\nDE;2024;1.19\n")
        .file("items.csv", "sku,name,price\na,Apple,1.5\nb,,2\n")
        .file("both.csv", "y,c,n\n2025,CH,1\n2025,DE,2\n")
        .file("bands.csv", "from,label,rate\n0,low,0.05\n1000,,0.08\n")
        .file("gaps.csv", "from,to,rate\n1000,3000,0.5\n")
        .file("data.csv", data);
    for backend in ["native", "interp", "tiered"] {
        let found = shell.run(&["eval", "m.cem", "data.csv", "--backend", backend]);
        assert_eq!((found.stdout.as_str(), found.status), (expected, Some(0)), "{}", found.stderr);
    }
}

#[test]
fn tables_by_ranges_are_read_from_files() {
    let shell = Shell::new()
        .file(
            "m.cem",
            "table bands: ranges of f64 -> f64 = \"bands.csv\"\ntable ages: ranges of i32 -> text = \"ages.csv\"\n\
             input x: f64, age: i32?\noutput rate = lookup(x, bands, 0.0)\noutput group = lookup(age, ages, \"none\")\n",
        )
        .file("bands.csv", "from,rate\n0,0.05\n1000,0.08\n5000,0.1\n")
        .file("ages.csv", "lower;upper;group\n;18;child\n18;65;adult\n67;;senior\n")
        .file("data.csv", "x,age\n-1,17\n0,18\n999.99,65\n1000,66\n1e9,67\nnan,\n");
    for backend in ["native", "interp"] {
        let found = shell.run(&["eval", "m.cem", "data.csv", "--backend", backend]);
        let expected = "rate,group\n0,child\n0.05,adult\n0.05,none\n0.08,none\n0.1,senior\n0,\n";
        assert_eq!((found.stdout.as_str(), found.status), (expected, Some(0)), "{}", found.stderr);
    }
}

#[test]
fn tables_say_how_they_are_written() {
    let shell = Shell::new()
        .file("fees.csv", "name|fee\na|1,5\nb|7\nc|\n")
        .file("fees.cem", "table fees: text -> f64 = \"fees.csv\", delimiter = \"|\", decimal = \",\"\ninput k: text\noutput fee = lookup(k, fees)\n")
        .file("k.csv", "k\na\nb\nc\n")
        .file("rates.csv", "from;to;rate;seen\n1.2.2026;1.3.2026;0,25;20260301 1015\n01.03.2026;;,5;\n")
        .file(
            "rates.cem",
            "table rates: ranges of date -> {rate: f64, seen: timestamp?} = \"rates.csv\", decimal = \",\",
                date_format = \"%d.%m.%Y\", timestamp_format = \"%Y%m%d %H%M\"
            input d: date; output rate = lookup(d, rates).rate; output seen = lookup(d, rates).seen",
        )
        .file("d.csv", "d\n2026-01-31\n2026-02-01\n2026-03-31\n");
    for backend in ["native", "interp"] {
        assert_eq!(shell.stdout(&["eval", "fees.cem", "k.csv", "--backend", backend]), "fee\n1.5\n7\n\"\"\n");
        let rates = "rate,seen\n,\n0.25,2026-03-01T10:15:00Z\n0.5,\n";
        assert_eq!(shell.stdout(&["eval", "rates.cem", "d.csv", "--backend", backend]), rates);
    }
}

#[test]
fn options_of_tables_are_checked() {
    let told = |line: &str, file: &str| {
        let model = format!("table t: {line}\ninput k: text\noutput y = has(lookup(k, t))\n");
        let found = Shell::new().file("m.cem", model).file("t.csv", file).run(&["check", "m.cem"]);
        assert_eq!(found.status, Some(1), "{line}");
        found.stderr
    };
    for (line, says) in [
        ("text -> f64 = \"t.csv\", delimiter = \";;\"", "a delimiter must be one character, not `;;`"),
        ("text -> f64 = \"t.csv\", decimal = \";\"", "write `decimal = \",\"`"),
        (
            "text -> f64 = \"t.csv\", decimals = \",\"",
            "the options are `delimiter`, `decimal`, `date_format`, `timestamp_format`",
        ),
        ("text -> f64 = \"t.csv\", decimal = \",\", decimal = \",\"", "`decimal` is given twice"),
        (
            "text -> i64 = \"t.csv\", decimal = \",\"",
            "`decimal` is for numbers with a fraction, but the table has none",
        ),
        ("text -> f64 = \"t.csv\", date_format = \"%Y\"", "`date_format` is for dates, but the table has none"),
        ("text -> date = \"t.csv\", date_format = \"%d.%m.\"", "the format must have the year"),
        ("text -> date = \"t.csv\", date_format = \"%H\"", "a date has no hour"),
        ("text -> f64 = \"t.csv\", delimiter \";\"", "expected `=` and the option's value"),
        ("text -> f64 = \"t.csv\", decimal = 5", "expected a value in quotes"),
        ("text -> f64 = \"t.csv\",", "expected an option of the table"),
    ] {
        let found = told(line, "k,v\n");
        assert!(found.contains(says), "{line}: {found}");
    }
    // The field in the file needs an option, or contradicts one.
    for (line, file, says) in [
        ("text -> f64 = \"t.csv\"", "k;v\na;1,5\n", "`1,5` is not a valid f64; add `decimal = \",\"` after the file"),
        (
            "text -> f64 = \"t.csv\", decimal = \",\"",
            "k;v\na;1.5\n",
            "with `decimal = \",\"` a number must not have a point",
        ),
        ("text -> date = \"t.csv\"", "k,v\na,31.1.2026\n", "as in `date_format = \"%d.%m.%Y\"`"),
        ("text -> date = \"t.csv\"", "k,v\na,20260131\n", "or add `date_format = \"%Y%m%d\"` after the file"),
        (
            "text -> date = \"t.csv\", date_format = \"%Y%m%d\"",
            "k,v\na,2026-01-31\n",
            "dates must have the format of the option `date_format`",
        ),
    ] {
        let found = told(line, file);
        assert!(found.contains(says) && found.contains("t.csv:2"), "{line}: {found}");
    }
}

#[test]
fn tables_without_rows_have_no_keys() {
    for (keys, header, key) in
        [("text", "k", "s"), ("(text, i64)", "k,n", "(s, 1)"), ("(text, ranges of f64)", "k,from", "(s, 1.0)")]
    {
        let model = format!(
            "table t: {keys} -> f64 = \"t.csv\"\ninput s: text\noutput y = lookup({key}, t)\noutput z = lookup({key}, t, 7.5)\n"
        );
        let shell = Shell::new().file("m.cem", &model).file("t.csv", format!("{header},v\n")).file("s.csv", "s\na\n");
        assert_eq!(shell.stdout(&["eval", "m.cem", "s.csv"]), "y,z\n,7.5\n", "{keys}");
    }
}

/// If a key of several columns ends in a time or a number, the last column is looked up as a range: the last row at or before the key applies. The
/// rows of the table may be in any order.
#[test]
fn the_last_part_of_a_key_is_looked_for_in_ranges() {
    let model = "table prices: (text, ranges of timestamp) -> f64 = \"prices.csv\"\n\
        table fees: (i64, text, ranges of f64) -> {fee: f64, kind: text?} = \"fees.csv\"\n\
        table days: (text, ranges of date) -> i32 = \"days.csv\"\n\
        table steps: (bool, ranges of i32) -> text = \"steps.csv\"\n\
        input s: text?, t: timestamp, n: i32, x: f64?, flag: bool\n\
        output price = lookup((s, t), prices)\n\
        output or_zero = lookup((s, t), prices, 0.0)\n\
        output known = (s, t) in prices\n\
        output fee = lookup((n, s, x), fees)\n\
        output kind = lookup((n, s, x), fees, {fee: 9.0, kind: \"none\"}).kind\n\
        output day = dict.get(days, (s, to_date(t)))\n\
        output step = lookup((flag, n), steps, \"?\")\n";
    let data = "s,t,n,x,flag\n\
        A,2026-01-01T09:59:59.999999Z,1,5,true\n\
        A,2026-01-01T10:00:00Z,1,9.75,true\n\
        A,2026-01-02T00:00:00Z,2,10,false\n\
        B,2026-01-01T10:00:00Z,1,nan,false\n\
        B,2027-01-01T10:00:00Z,1,-1e300,true\n\
        C,2026-01-01T10:00:00Z,1,0,false\n\
        ,2026-01-01T10:00:00Z,1,,true\n";
    let expected = "price,or_zero,known,fee.fee,fee.kind,kind,day,step\n\
        ,0,,0.5,low,low,,low\n\
        1.5,1.5,true,,,none,,low\n\
        2.5,2.5,true,2.5,,,7,?\n\
        ,0,true,,,none,,other\n\
        7,7,true,1.5,all,all,9,low\n\
        ,0,,,,none,,other\n\
        ,,,,,,,low\n";
    let shell = Shell::new()
        .file("m.cem", model)
        .file(
            "prices.csv",
            "s;from;price\nA;2026-01-02T00:00:00Z;2.5\nB;2026-06-01T00:00:00Z;7\nA;2026-01-01T10:00:00Z;1.5\nB;;\n",
        )
        .file("fees.csv", "n,s,from,to,kind,fee\n2,A,10,,,2.5\n1,A,5,9.75,low,0.5\n1,B,,,all,1.5\n")
        .file("days.csv", "s,from,to,day\nA,2026-01-02,2026-01-03,7\nB,2027-01-01,,9\n")
        .file("steps.csv", "flag,from,to,step\ntrue,2,,high\ntrue,,2,low\nfalse,0,2,other\n")
        .file("data.csv", data);
    for backend in ["native", "interp", "tiered"] {
        let found = shell.run(&["eval", "m.cem", "data.csv", "--backend", backend]);
        assert_eq!((found.stdout.as_str(), found.status), (expected, Some(0)), "{}", found.stderr);
    }
}

#[test]
fn ranges_of_one_key_that_overlap_are_told_with_both_lines() {
    let model = "table t: (text, ranges of i64) -> f64 = \"t.csv\"\ninput s: text\noutput y = lookup((s, 1), t)\n";
    for (lines, first, second) in [
        // Between the two lines is one of another key, and the range that begins first is further down.
        ("k,from,to,v\na,5,9,1\nb,1,9,2\na,2,6,3\n", 2, 4),
        ("k,from,to,v\na,2,,1\nb,3,4,2\na,5,9,3\n", 2, 4),
        ("k,from,to,v\na,,2,1\na,3,4,2\na,,1,3\n", 2, 4),
        ("k,from,v\nb,5,1\na,5,1\nb,4,1\nb,5,2\n", 2, 5),
        ("k,from,v\na,,1\nb,,1\na,,2\n", 2, 4),
    ] {
        let found = Shell::new().file("m.cem", model).file("t.csv", lines).run(&["check", "m.cem"]);
        assert_eq!(found.status, Some(1), "{lines}");
        let told = format!("error[literal]: a range overlaps another one with the same key\n --> t.csv:{second}:1\n");
        assert!(found.stderr.contains(&told), "{}", found.stderr);
        assert!(found.stderr.contains(&format!("t.csv:{first}")), "{}", found.stderr);
        assert!(found.stderr.contains("the other range"), "{}", found.stderr);
    }
}
