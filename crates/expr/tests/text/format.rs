//! Tests of the formatter: texts and the layouts that it must give them.

use super::common::Operators;
use crate::anything::Anything;
use cembra_expr::{format, parse};
use cembra_value::{Code, Limits};

/// Formats a text. Also checks that formatting the result again does not change it.
fn formatted(source: &str) -> String {
    let made = format(source, &Operators, &Limits::default()).unwrap_or_else(|problems| panic!("{source}\n{problems}"));
    let again = format(&made, &Operators, &Limits::default()).unwrap_or_else(|problems| panic!("{made}\n{problems}"));
    assert_eq!(again, made, "of\n{source}");
    made
}

/// Checks the layouts of texts. `cases` has texts, each followed by its layout, with the indentation of this file.
fn check(cases: &str) {
    let unindented = |line| str::strip_prefix(line, "        ").unwrap_or(line);
    let cases: Vec<&str> = cases.trim_start_matches('\n').lines().map(unindented).collect();
    for case in cases.join("\n").split("\n=====\n") {
        let (source, expected) = case.split_once("\n-----\n").expect("a text and its layout");
        assert_eq!(formatted(source), format!("{}\n", expected.trim_end_matches([' ', '\n'])), "of\n{source}");
    }
}

#[test]
fn tokens_have_one_blank_between_them_or_none() {
    check(
        r#"
        input   a :f32,b,c:f64?=30
        let d=b*b-4.0*a*c+-  a**- 2
        let e: f64=- 1**2
        fn f( x,y:(f32,text ?) ):f64=not x and-y<3.5
        extern   fn fx . rate(text,text):f64 ?
        numbers   f64
        use"common.cem"
        table vat : text - > f64="vat.csv"
        table due:text->date="due.csv" ,delimiter=";",date_format  ="%d.%m.%Y"
        output"odd name"=a ?? b|c&d //e%f(y = 1 , x=-2,)
        -----
        input a: f32, b, c: f64? = 30
        let d = b * b - 4.0 * a * c + -a ** -2
        let e: f64 = -1 ** 2
        fn f(x, y: (f32, text?)): f64 = not x and -y < 3.5
        extern fn fx.rate(text, text): f64?
        numbers f64
        use "common.cem"
        table vat: text -> f64 = "vat.csv"
        table due: text -> date = "due.csv", delimiter = ";", date_format = "%d.%m.%Y"
        output "odd name" = a ?? b | c & d // e % f(y=1, x=-2,)
        =====
        let t={ x :1,if:- 2,"odd name":[ 1,- 2,[ ] ], }
        let u=( )
        let v=t . x+t.0 . 1 [ 2 ]*L [ "a" ]+M . math . if( 1 )
        let s=1 . 0+1 . real+x . 0 . 1
        let w=x in[1,2]or x not  in - 3 .. 7 and in [1]>in
        let x=seq.map(fn(x)=x+1,fn ( y ):f64=let k=y in-k*k,1)
        (if(a)then[1]else(- 2))
        -----
        let t = {x: 1, if: -2, "odd name": [1, -2, []],}
        let u = ()
        let v = t.x + t.0.1[2] * L["a"] + M.math.if(1)
        let s = 1 .0 + 1 .real + x.0.1
        let w = x in [1, 2] or x not in -3..7 and in[1] > in
        let x = seq.map(fn(x) = x + 1, fn(y): f64 = let k = y in -k * k, 1)
        (if (a) then [1] else (-2))
        =====
        let a=missing [ f32 ]+f64 ? {NA}+float64{ 1 }+TUPLE {1,- 2}
        let b=f64{nan:0x7ff8000000000001}+date {2026-11-20}+date"2026-11-20"+b'x'
        let d=[date?]{2026-11-20,NA}
        let c=edge{1,NA : 2}+dict{"a":- 1}+dict[text,f64]{"CH":1.08,"DE":NA}
        a + dict [ 1 ]
        -----
        let a = missing[f32] + f64?{NA} + float64{1} + TUPLE{1, -2}
        let b = f64{nan:0x7ff8000000000001} + date{2026-11-20} + date"2026-11-20" + b'x'
        let d = [date?]{2026-11-20, NA}
        let c = edge{1, NA : 2} + dict{"a": -1} + dict[text, f64]{"CH": 1.08, "DE": NA}
        a + dict[1]
        "#,
    );
}

#[test]
fn signs_that_assign_are_one_sign() {
    check(
        r#"
        input a :tensor[ f64,2 ],v:tensor[f64,1]
        c ( "i,j" )=a("i,k")*a ("k,j"); c("i,j")  +=-a("i,j")
        c("i,j")-= ( a("i,j") ) . sum ( )*2
        v("i")*=a("i,i")
          +1
        -----
        input a: tensor[f64, 2], v: tensor[f64, 1]
        c("i,j") = a("i,k") * a("k,j")
        c("i,j") += -a("i,j")
        c("i,j") -= (a("i,j")).sum() * 2
        v("i") *= a("i,i")
            + 1
        "#,
    );
}

#[test]
fn a_statement_has_lines_of_its_own() {
    check(
        r#"
        ;; let a=1;let b=2 ;  # two
        # a minus would go on with the line before it
        let c=3;  ; -a;
        -----
        let a = 1
        let b = 2  # two
        # a minus would go on with the line before it
        let c = 3;
        -a
        =====
        let a = 1


        let b = 2

        # c


        # d
        a

        -----
        let a = 1

        let b = 2

        # c

        # d
        a
        =====
        let in = 1;let b=in; (in);in;not b; if a then b;[1];{x:1};"c";-2;missing
        -----
        let in = 1
        let b = in
        (in);
        in
        not b
        if a then b
        [1]
        {x: 1}
        "c";
        -2
        missing
        =====
        use ;; "a";table;"a";extern;fn f(x)=x;use
        "a"
        -----
        use;
        "a"
        table
        "a"
        extern;
        fn f(x) = x
        use
            "a"
        "#,
    );
    assert_eq!(formatted("\u{FEFF}\r\n\n# a \t\r\rlet x = 1\r\n\r\n\r\nx # b"), "# a\n\nlet x = 1\n\nx  # b\n");
    assert_eq!(formatted(""), "");
    assert_eq!(formatted(" \n\n"), "");
    assert_eq!(formatted("\n#\n"), "#\n");
}

#[test]
fn what_goes_on_in_the_next_line_is_indented() {
    check(
        r#"
        let a = 1
        + 2 *
              3
        let t = let k = 2
        in k
        input x: f32,
        y:
        f64
        output z = if a > 2 and
        b
        then a
        else if b
        then c +
        1

        # otherwise
        else d
        - 1
        output u =
        if a
        then if b
        then 1
        else 2
        else 3
        -----
        let a = 1
            + 2 *
            3
        let t = let k = 2
            in k
        input x: f32,
            y:
            f64
        output z = if a > 2 and
                b
            then a
            else if b
            then c +
                1

            # otherwise
            else d
                - 1
        output u =
            if a
            then if b
                then 1
                else 2
            else 3
        "#,
    );
}

#[test]
fn conditions_that_are_too_long_are_broken_before_brackets_are() {
    check(
        r#"
        let short = if amount > limit then amount * some_long_name_of_a_rate else limit * another_name_of_a
        let branches = if amount > limit then amount * some_long_name_of_a_rate + other else limit * another_name
        let chain = if amount > limit then amount * rate else if amount > other_limit then amount else if amount > 0 then 1 else 0
        let both = if amount * some_long_name_of_a_rate + other > limit * another_name then amount * some_long_name - 1 else limit
        let call = any(if amount > limit then any(amount, rate) else any(limit * another_name_of_a_rate, other), 5)
        let inside = (if amount > limit and amount > other then some_long_name_of_a_rate else other) * 100 + another_name
        let nested = if amount > limit then if amount > other_limit then amount * rate else amount + other_rate else limit + rate
        let inner = if amount > limit then if amount > other then amount * rate else if amount > 0 then 1 else some_long_name else 0
        let kept = if amount > limit
        then amount else if amount > another_limit then amount * some_long_name_of_a_rate - other_rate else 0
        let late = if a then b else any(some_long_name_of_a_rate, another_name_of_a_rate, a_third_name_of_a_rate, 1)
        let field = any(row.then, row.else, some_long_name_of_a_rate, another_name_of_a_rate, a_third_name_of_rate)
        -----
        let short = if amount > limit then amount * some_long_name_of_a_rate else limit * another_name_of_a
        let branches = if amount > limit then amount * some_long_name_of_a_rate + other
            else limit * another_name
        let chain = if amount > limit then amount * rate
            else if amount > other_limit then amount
            else if amount > 0 then 1
            else 0
        let both = if amount * some_long_name_of_a_rate + other > limit * another_name
            then amount * some_long_name - 1
            else limit
        let call = any(
            if amount > limit then any(amount, rate) else any(limit * another_name_of_a_rate, other),
            5
        )
        let inside = (if amount > limit and amount > other then some_long_name_of_a_rate else other) * 100
            + another_name
        let nested = if amount > limit
            then if amount > other_limit then amount * rate else amount + other_rate
            else limit + rate
        let inner = if amount > limit
            then if amount > other then amount * rate else if amount > 0 then 1 else some_long_name
            else 0
        let kept = if amount > limit
            then amount else if amount > another_limit then amount * some_long_name_of_a_rate - other_rate
            else 0
        let late = if a then b
            else any(some_long_name_of_a_rate, another_name_of_a_rate, a_third_name_of_a_rate, 1)
        let field = any(
            row.then,
            row.else,
            some_long_name_of_a_rate,
            another_name_of_a_rate,
            a_third_name_of_rate
        )
        "#,
    );
}

#[test]
fn expressions_that_are_too_long_are_broken_before_operators_that_bind_least() {
    check(
        r#"
        output year_fee = lookup(kilowatts, power) * factor * lookup(region, regions, 1.25) * (lookup(begins, index) / 100)
        let both = first_rate * some_long_name_of_a_rate + other_rate * another_name_of_a_rate - a_third_name / -100
        let short = first_rate * some_long_name_of_a_rate + other_rate * another_name_of_a_rate - a_third
        let call = 1.0 - lookup(age, {a: 0.5, b: 0.25, c: 0.125, d: 0.5, e: 0.25, f: 0.125, g: 0.5, h: 0.25, i: 0.1, j: 1.0})
        let after = lookup(age_of_the_customer, {a: 0.5, b: 0.25, c: 0.125, d: 0.5, e: 0.25, f: 0.125, g: 0.5}, 1.0) * 100 / days
        let single = exp(first_rate * some_long_name_of_a_rate + other_rate * another_name_of_a_rate - a_third_name / 100)
        let inside = any(first_rate * some_long_name_of_a_rate + other_rate * another_name_of_a_rate - a_third_name, 1)
        let element = any(first_rate * some_long_name_of_a_rate + other_rate * another_name_of_a_rate - a_third_name_of_a_rate * 2, 1)
        let logic = has(first_rate) and some_long_name_of_a_rate > 0 or other_rate in 1..25 and another_name != missing
        let within = first_rate_of_the_year + some_long_name_of_a_rate in another_name_of_a_rate..a_third_name + 1
        fn f(x, y: f64): f64 = x * some_long_name_of_a_rate + y * another_name_of_a_rate - a_third_name_of_a_rate / 100
        let kept = first_rate * some_long_name_of_a_rate *
            other_rate * another_name_of_a_rate
        let part = first_rate
            + some_long_name_of_a_rate * 2 + other_rate * another_name_of_a_rate - a_third_name_of_a_rate / 100 + a_fourth_name * 3
        first_rate * some_long_name_of_a_rate - other_rate * another_name_of_a_rate - -a_third_name_of_a_rate ** -2
        -----
        output year_fee = lookup(kilowatts, power)
            * factor
            * lookup(region, regions, 1.25)
            * (lookup(begins, index) / 100)
        let both = first_rate * some_long_name_of_a_rate
            + other_rate * another_name_of_a_rate
            - a_third_name / -100
        let short = first_rate * some_long_name_of_a_rate + other_rate * another_name_of_a_rate - a_third
        let call = 1.0
            - lookup(
                age,
                {a: 0.5, b: 0.25, c: 0.125, d: 0.5, e: 0.25, f: 0.125, g: 0.5, h: 0.25, i: 0.1, j: 1.0}
            )
        let after = lookup(
            age_of_the_customer,
            {a: 0.5, b: 0.25, c: 0.125, d: 0.5, e: 0.25, f: 0.125, g: 0.5},
            1.0
        ) * 100
            / days
        let single = exp(first_rate * some_long_name_of_a_rate + other_rate * another_name_of_a_rate - a_third_name / 100)
        let inside = any(
            first_rate * some_long_name_of_a_rate + other_rate * another_name_of_a_rate - a_third_name,
            1
        )
        let element = any(
            first_rate * some_long_name_of_a_rate
                + other_rate * another_name_of_a_rate
                - a_third_name_of_a_rate * 2,
            1
        )
        let logic = has(first_rate) and some_long_name_of_a_rate > 0
            or other_rate in 1..25 and another_name != missing
        let within = first_rate_of_the_year + some_long_name_of_a_rate in another_name_of_a_rate..a_third_name + 1
        fn f(x, y: f64): f64 = x * some_long_name_of_a_rate
            + y * another_name_of_a_rate
            - a_third_name_of_a_rate / 100
        let kept = first_rate * some_long_name_of_a_rate *
            other_rate * another_name_of_a_rate
        let part = first_rate
            + some_long_name_of_a_rate * 2
            + other_rate * another_name_of_a_rate
            - a_third_name_of_a_rate / 100
            + a_fourth_name * 3
        first_rate * some_long_name_of_a_rate
            - other_rate * another_name_of_a_rate
            - -a_third_name_of_a_rate ** -2
        =====
        let choice = if first_rate > some_long_name_of_a_rate and other_rate > another and a_third_name > 1 then first_rate else 0
        let branch = if first_rate > 1 then first_rate * some_long_name_of_a_rate + other_rate * another_name_of_a_rate - a_third_name else 0
        let longer = if first_rate > some_long_name_of_a_rate and other_rate > another_name_of_a_rate and a_third_name > 1 then 1 else 0
        let local = let k = first_rate * some_long_name_of_a_rate + other_rate * another_name in k * k + another_name * k
        -----
        let choice = if first_rate > some_long_name_of_a_rate and other_rate > another and a_third_name > 1
            then first_rate
            else 0
        let branch = if first_rate > 1
            then first_rate * some_long_name_of_a_rate + other_rate * another_name_of_a_rate - a_third_name
            else 0
        let longer = if first_rate > some_long_name_of_a_rate
                and other_rate > another_name_of_a_rate
                and a_third_name > 1
            then 1
            else 0
        let local = let k = first_rate * some_long_name_of_a_rate
            + other_rate * another_name in k * k + another_name * k
        "#,
    );
}

#[test]
fn brackets_are_flat_or_broken() {
    check(
        r#"
        let a = f(1,
           2,
           3)
        let b = f(
           1, 2,
           g(3))
        let c = (
          a

          + b
        )
        let d = (a
          + b)
        let e = any(any(any(1)
         ), [
         ], ( ))
        let f = any({
        x: 1}, 2)
        let g = any(a, if a then b
        else c)
        -----
        let a = f(1, 2, 3)
        let b = f(
            1,
            2,
            g(3)
        )
        let c = (
            a

            + b
        )
        let d = (a
            + b)
        let e = any(any(any(1)), [], ())
        let f = any({
            x: 1
        }, 2)
        let g = any(
            a,
            if a then b
            else c
        )
        =====
        let long = core.first("a rather long text", "another one") + core.second("one more", "and the last.")
        let fits = core.first("a rather long text", "another one") + core.second("one more", "and the last")
        let keys = any(core.first(lookup(a, {"a rather long text": "another one", "one more": "the last", "x": "y"})), 1)
        let list = [1, -2.5, "three", 1, -2.5, "three", 1, -2.5, "three", 1, -2.5, "three", 1, -2.5, "three", 1, -2.5, "three"]
        let group = (aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa + bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb)
        -----
        let long = core.first("a rather long text", "another one")
            + core.second("one more", "and the last.")
        let fits = core.first("a rather long text", "another one") + core.second("one more", "and the last")
        let keys = any(
            core.first(lookup(a, {"a rather long text": "another one", "one more": "the last", "x": "y"})),
            1
        )
        let list = [
            1, -2.5, "three", 1, -2.5, "three", 1, -2.5, "three", 1, -2.5, "three", 1, -2.5, "three", 1,
            -2.5, "three"
        ]
        let group = (aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa
            + bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb)
        "#,
    );
}

#[test]
fn comments_stay_where_they_are() {
    check(
        r#"
        let a=1 #one
        let longer = 2# two

        let b = 3    #   three
        let c = # four
        4
          # five
        - 1
        # six
        let d = any( # seven
        1 # eight
        , 2

        # nine

        # ten
        )
        let e = any(1 # eleven
        )
        let f = (a # twelve
         + b)
        let g = any(
        # thirteen
        )
        # fourteen
        -----
        let a = 1       #one
        let longer = 2  # two

        let b = 3  #   three
        let c =    # four
            4
            # five
            - 1
        # six
        let d = any(  # seven
            1,        # eight
            2

            # nine

            # ten
        )
        let e = any(
            1  # eleven
        )
        let f = (a  # twelve
            + b)
        let g = any(
            # thirteen
        )
        # fourteen
        "#,
    );
}

#[test]
fn tests_have_columns() {
    check(
        r#"
        test "adult"{age=31,income=missing}=>{score=0.5}
        test "none"{}=>error"div-by-zero"
        test"close"within 1e-9{age=3}
        =>{score={x:1}}
        test "many" {
         age,income=>score,is_rich
         31,missing=>0.5,false   # c

         # own
         40, -1e6 => 0.7, true; -0 , 1 => error"div"
         [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15],
           2 => 3, missing
         "a text that is wider than any column should be made", 2 => 3.25, (1,2)
        }
        test "x" {=>y;=>1
        =>2 }
        test "y" { a
        ,b => c
        [1,
        2] , 3
        => (4
        )
        5, (
        6) => 7}
        -----
        test "adult" { age = 31, income = missing } => { score = 0.5 }
        test "none" {} => error "div-by-zero"
        test "close" within 1e-9 { age = 3 }
            => { score = {x: 1} }
        test "many" {
            age, income  => score, is_rich
            31,  missing => 0.5,   false  # c

            # own
            40,  -1e6    => 0.7,   true;
            -0,  1       => error "div"
            [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15],
                2 => 3, missing
            "a text that is wider than any column should be made", 2       => 3.25,  (1, 2)
        }
        test "x" {
            => y;
            => 1
            => 2
        }
        test "y" {
            a, b => c
            [1, 2], 3
                => (4)
            5, (
                6
            ) => 7
        }
        "#,
    );
}

#[test]
fn only_what_cannot_be_read_is_refused() {
    // Neither names nor types nor files need be there.
    formatted(
        "use \"none.cem\"\nlet a = unknown(1, k=2) + no.such(\"a\") - 3000000000i32\nlet a = b.c.d\nlet a: f64 = \"\"",
    );
    let many: String = (0..300).map(|at| format!("let a = no.such{at}(\"\\q\")\n")).collect();
    assert_eq!(formatted(&many), many);
    // What a name was taken for further up does not matter.
    assert_eq!(formatted("let b=f(1)\nfn f(x)=x"), "let b = f(1)\nfn f(x) = x\n");
    let refused = |source: &str| {
        let problems = format(source, &Operators, &Limits::default()).expect_err(source);
        problems
            .diagnostics()
            .iter()
            .map(|problem| (problem.code(), problem.span().map(|at| at.start)))
            .collect::<Vec<_>>()
    };
    assert_eq!(refused("let a = unknown(1\nlet b = +"), [(Code::Bracket, Some(15)), (Code::Syntax, Some(27))]);
    assert_eq!(refused("let a = b $ c"), [(Code::Syntax, Some(10))]);
    assert_eq!(refused("x = \"abc"), [(Code::Syntax, Some(2))]);
    assert_eq!(refused("x + date{20[1}"), [(Code::Literal, Some(9))]);
    assert_eq!(refused("table t: f64 -> f64 = \"t.csv\""), [(Code::Literal, Some(9))]);
    let nested = ["(".repeat(100_000), ")".repeat(100_000)].join("1");
    assert_eq!(refused(&nested), [(Code::Limit, Some(256))]);
}

/// Makes a random expression of names with many lengths, with line ends and comments in it.
fn expression(random: &mut dyn FnMut(usize) -> usize, depth: usize) -> String {
    if depth == 0 || random(6) == 0 {
        let most = if random(4) == 0 { 60 } else { 12 };
        return "n".repeat(1 + random(most));
    }
    let mut inner = || expression(random, depth - 1);
    let (a, b, c) = (inner(), inner(), inner());
    match random(15) {
        0 => format!("({a})"),
        1 => format!("call({a}, {b})"),
        2 => format!("core.call({a},  # note\n {b}, {c})"),
        3 => format!("one({a})"),
        4 => format!("[{a}, {b}]"),
        5 => format!("(if {a} then {b} else {c})"),
        6 => format!("(let k = {a} in {b})"),
        7 => format!("lookup({a}, {{\"CH\": 1.5, \"DE\": -2}}, {b})"),
        8 => format!("map(fn(x) = {a}, {b})"),
        9 => format!("(-{a})"),
        10 => format!("({a} < {b} and not ({c} in 1..2))"),
        11 => format!("call(\n{a}, k={b})"),
        _ => {
            let operators =
                [" + ", " - ", " * ", " / ", " // ", " ?? ", " and ", " or ", " ** ", "\n+ ", " *\n", "\n# note\n- "];
            let mut text = format!("({a})");
            for operand in [b, c] {
                let operator = operators[random(operators.len())];
                text = format!("{text}{operator}{}", if random(2) == 0 { operand } else { format!("({operand})") });
            }
            text
        }
    }
}

#[test]
fn long_expressions_keep_their_meaning_and_their_layout() {
    let mut state = 1_u64;
    let mut random = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    let mut lines = 0;
    for round in 0..3_000 {
        let text = match round % 4 {
            0 => format!("output y: f64 = {}", expression(&mut random, 3)),
            1 => {
                let [a, b, c] = [0; 3].map(|_| expression(&mut random, 2));
                format!("let y = if {a} then {b} else if {b} then {c} else {a}\nlet z = {b}")
            }
            2 => format!("fn f(x) = {}; {}", expression(&mut random, 2), expression(&mut random, 4)),
            _ => {
                format!("let k = ({}) + (if 1 then 2 else {})", expression(&mut random, 2), expression(&mut random, 2))
            }
        };
        let program = |text: &str| parse(text, &Anything, &Limits::default()).ok();
        let made = formatted(&text);
        assert!(program(&text) == program(&made), "{text}\n{made}");
        lines += made.lines().count();
    }
    assert!(lines > 10_000, "{lines}");
}

/// The test does not measure the time: an algorithm that is not linear would take hours.
#[test]
fn long_and_deep_texts_are_formatted() {
    let lines = format!("let a = 1{}\n", "\n    + a".repeat(200_000));
    assert!(formatted(&lines) == lines);
    let chain = format!("let a = 1{}\n", "  +  a".repeat(200_000));
    assert!(formatted(&chain) == lines);
    let limits = Limits::default().nesting(200_000).source_bytes(1 << 30);
    for (open, close) in [
        ("(", ")"),
        ("any(1, ", ")"),
        ("(if a then ", ")"),
        ("if a then if b then ", ""),
        ("(\n", "\n)"),
        ("(let a = 1 in ", ")"),
    ] {
        let text = [open.repeat(30_000), close.repeat(30_000)].join("1");
        let made = format(&text, &Operators, &limits).unwrap_or_else(|problems| panic!("{problems}"));
        let again = format(&made, &Operators, &limits).unwrap_or_else(|problems| panic!("{problems}"));
        assert!(again == made, "{open}");
        let blank = |c: &char| !c.is_whitespace();
        assert!(made.chars().filter(blank).eq(text.chars().filter(blank)), "{open}");
    }
}
