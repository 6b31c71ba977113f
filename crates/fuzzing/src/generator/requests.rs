//! Generates programs on requests, as a service receives them: the inputs are a list of structs with texts and optional
//! fields, a second list, a dictionary and an optional struct. The programs are written as text, statement by
//! statement; a statement that is ill-typed is left out. The names and types of inputs are defined in
//! [`crate::requests`], which also runs these programs on JSON and on Rust structs.

use crate::Config;
use crate::any_value;
use crate::config::pick;
use crate::edit::types;
use crate::requests::{FIELDS, INPUTS};
use crate::subject::Row;
use cembra_expr::{Input, Program};
use cembra_ops::Registry;
use cembra_runtime::QType;
use cembra_value::Limits;
use fastrand::Rng;

/// The lengths of lists: 0, 1, and lengths near the ends of bitmap words, of partial sums, and of plans for short lists.
const LENGTHS: [usize; 6] = [0, 1, 63, 64, 65, 255];

/// The most attempts to write a program with a well-typed statement.
const BEGUN: u32 = 20;

/// The type of an expression, which may be optional.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Sort {
    Float,
    Integer,
    Text,
    Mask,
}

/// The names that an expression may use, each with its sort.
struct Scope {
    names: Vec<(String, Sort)>,
    /// The number of names, the first ones, whose values differ between the elements of a list.
    elements: usize,
    /// True if the program may use the dictionary at the current place. A function that is mapped over an array must not use it.
    has_dictionary: bool,
}

/// A name that a statement defined.
struct Named {
    name: String,
    sort: Sort,
    /// The list that has the same number of elements as the value; `None` for a scalar.
    list: Option<&'static str>,
}

struct Writer<'r> {
    random: &'r mut Rng,
    inputs: String,
    statements: Vec<String>,
    /// The declared fields of `items`.
    fields: Vec<(&'static str, Sort)>,
    named: Vec<Named>,
    outputs: usize,
}

/// Returns a well-typed program on requests, and rows for it.
pub(crate) fn request_program(random: &mut Rng, config: &Config) -> (Program, Vec<Row>) {
    let program = (0..BEGUN).find_map(|_| written(random)).unwrap_or_default();
    let mut lengths = LENGTHS;
    random.shuffle(&mut lengths);
    let rows = lengths[..random.usize(3..=LENGTHS.len())].iter().map(|length| {
        let other = if random.bool() { *length } else { *pick(random, &[0, 1, 2, 62, 64, 65]) };
        let special = *pick(random, &[0.0, 0.0, 0.0, 1.0 / (1 + length) as f64, config.special]);
        let config = Config { special, ..config.clone() };
        let value = |input: &Input| {
            let length = match &*input.name {
                "items" => *length,
                "marks" => other,
                _ => 4,
            };
            let qtype = input.qtype.clone().unwrap_or(QType::FLOAT64).as_input();
            (input.name.clone(), any_value::sized_row_value(random, &qtype, &config, length))
        };
        Row::new(program.inputs.iter().map(value).collect())
    });
    let rows = rows.collect();
    (program, rows)
}

/// Returns `rows`, with new values for those inputs whose type was changed when the program was damaged.
pub(crate) fn request_rows(random: &mut Rng, config: &Config, inputs: &[Input], mut rows: Vec<Row>) -> Vec<Row> {
    for (name, value) in rows.iter_mut().flat_map(Row::values_mut) {
        let declared = inputs.iter().find(|input| input.name == *name).and_then(|input| input.qtype.as_ref());
        if let Some(qtype) = declared.map(QType::as_input).filter(|qtype| !value.is_of(qtype)) {
            *value = any_value::row_value(random, &qtype, config);
        }
    }
    for row in &mut rows {
        for input in inputs.iter().filter(|input| row.get(&input.name).is_none()).collect::<Vec<_>>() {
            let qtype = input.qtype.clone().unwrap_or(QType::FLOAT64).as_input();
            let value = any_value::row_value(random, &qtype, config);
            row.values_mut().push((input.name.clone(), value));
        }
    }
    rows
}

/// Returns a program; `None` if it has no output.
fn written(random: &mut Rng) -> Option<Program> {
    let mut fields = FIELDS;
    random.shuffle(&mut fields);
    let fields = &fields[..random.usize(2..=FIELDS.len())];
    let declared: Vec<String> = fields.iter().map(|(name, qtype)| format!("{name}: {qtype}")).collect();
    let mut inputs = format!("input items: [{{{}}}]\n", declared.join(", "));
    for (name, qtype) in INPUTS {
        inputs += &format!("input {name}: {qtype}\n");
    }
    let sort = |qtype: &str| match qtype.trim_end_matches('?') {
        "f64" => Sort::Float,
        "i64" => Sort::Integer,
        "text" => Sort::Text,
        _ => Sort::Mask,
    };
    let fields = fields.iter().map(|(name, qtype)| (*name, sort(qtype))).collect();
    let (statements, named, outputs) = (Vec::new(), Vec::new(), 0);
    let mut writer = Writer { random, inputs, statements, fields, named, outputs };
    for _ in 0..writer.random.usize(2..9) {
        writer.statement();
    }
    writer.program("").filter(|program| !program.outputs.is_empty())
}

impl Writer<'_> {
    /// Returns the program with one more statement; `None` if it is ill-typed. Unused inputs are not declared.
    fn program(&self, statement: &str) -> Option<Program> {
        let text = format!("{}{}\n{statement}", self.inputs, self.statements.join("\n"));
        let mut program = cembra_expr::parse(&text, Registry::standard(), &Limits::default()).ok()?;
        let needed = program.needed_inputs();
        let mut at = 0..;
        program.inputs.retain(|_| at.next().is_some_and(|at| needed[at]));
        (program.outputs.is_empty() || types(&program).is_some()).then_some(program)
    }

    /// Adds a statement that defines a name, and mostly makes the value an output.
    fn statement(&mut self) {
        let sort = *pick(self.random, &[Sort::Float, Sort::Float, Sort::Integer, Sort::Text, Sort::Mask]);
        let list = if self.random.u32(..5) == 0 { "marks" } else { "items" };
        let (expression, sort, list) = match self.random.u32(..12) {
            0..=2 => (self.mapped(sort, list), sort, Some(list)),
            3 | 4 => {
                let scope = self.scope(list);
                (self.expression(sort, 3, &scope), sort, Some(list))
            }
            5..=8 => {
                let (expression, sort) = self.gathered(list);
                (expression, sort, None)
            }
            9 => {
                let scope = self.scalars();
                (self.expression(sort, 3, &scope), sort, None)
            }
            _ => {
                let structs = self.structs();
                self.output(&structs);
                return;
            }
        };
        let name = format!("v{}", self.named.len());
        let statement = format!("let {name} = {expression}");
        if self.program(&format!("{statement}; output probe = {name}")).is_none() {
            return;
        }
        self.statements.push(statement);
        if self.random.u32(..3) > 0 || self.outputs == 0 {
            self.output(&name);
        }
        self.named.push(Named { name, sort, list });
    }

    fn output(&mut self, expression: &str) {
        let statement = format!("output y{} = {expression}", self.outputs);
        if self.program(&statement).is_some() {
            self.statements.push(statement);
            self.outputs += 1;
        }
    }

    /// Returns a list of structs, with the only type that has a matching Rust struct.
    fn structs(&mut self) -> String {
        let names = self.members("i");
        let scope = Scope { elements: names.len(), names, has_dictionary: false };
        let parts = [("kind", Sort::Text), ("net", Sort::Float), ("n", Sort::Integer)];
        let parts = parts.map(|(name, sort)| format!("{name}: {}", self.expression(sort, 2, &scope)));
        format!("map(fn(i) = {{{}}}, items)", parts.join(", "))
    }

    /// Returns the expressions for the fields of an item, or for those of all items.
    fn members(&self, of: &str) -> Vec<(String, Sort)> {
        let member = |(name, sort): &(&str, Sort)| match sort {
            Sort::Mask => (format!("({of}.{name} == true)"), Sort::Mask),
            sort => (format!("{of}.{name}"), *sort),
        };
        self.fields.iter().map(member).collect()
    }

    /// Returns the names of scalars: inputs, fields of the optional struct, and earlier aggregates.
    fn scalars(&self) -> Scope {
        let mut names = vec![
            ("limit".to_owned(), Sort::Float),
            ("code".to_owned(), Sort::Text),
            ("coupon.percent".to_owned(), Sort::Float),
            ("coupon.code".to_owned(), Sort::Text),
        ];
        let scalars = self.named.iter().filter(|named| named.list.is_none());
        names.extend(scalars.map(|named| (named.name.clone(), named.sort)));
        Scope { elements: 0, names, has_dictionary: true }
    }

    /// Returns the names of arrays with as many elements as a list.
    fn scope(&self, list: &'static str) -> Scope {
        let mut names: Vec<(String, Sort)> = match list {
            "items" => self.members("items"),
            _ => vec![(list.to_owned(), Sort::Float)],
        };
        let arrays = self.named.iter().filter(|named| named.list == Some(list));
        names.extend(arrays.map(|named| (named.name.clone(), named.sort)));
        Scope { elements: names.len(), names, has_dictionary: true }
    }

    /// Returns a function mapped over a list, and sometimes over an array with as many elements.
    fn mapped(&mut self, sort: Sort, list: &'static str) -> String {
        let mut names: Vec<(String, Sort)> = match list {
            "items" => self.members("i"),
            _ => vec![("i".to_owned(), Sort::Float)],
        };
        let beside: Vec<(String, Sort)> =
            self.named.iter().filter(|named| named.list == Some(list)).map(|n| (n.name.clone(), n.sort)).collect();
        let beside = (!beside.is_empty() && self.random.bool()).then(|| pick(self.random, &beside).clone());
        let (mut parameters, mut arrays) = ("i".to_owned(), list.to_owned());
        if let Some((array, sort)) = beside {
            names.push(("e".to_owned(), sort));
            parameters += ", e";
            arrays = format!("{arrays}, {array}");
        }
        let elements = names.len();
        if self.random.bool() {
            names.extend(self.scalars().names);
        }
        let body = self.expression(sort, 3, &Scope { names, elements, has_dictionary: false });
        format!("map(fn({parameters}) = {body}, {arrays})")
    }

    /// Returns a scalar that aggregates the elements of a list, and its sort.
    fn gathered(&mut self, list: &'static str) -> (String, Sort) {
        let scope = self.scope(list);
        let elements = |writer: &mut Self, sort| {
            if writer.random.u32(..3) == 0 { writer.mapped(sort, list) } else { writer.expression(sort, 2, &scope) }
        };
        let masked = |writer: &mut Self, sort| {
            let values = elements(writer, sort);
            if writer.random.bool() { format!("({values} & {})", elements(writer, Sort::Mask)) } else { values }
        };
        match self.random.u32(..16) {
            0..=3 => (format!("sum({})", masked(self, Sort::Float)), Sort::Float),
            4 => (format!("sum({})", masked(self, Sort::Integer)), Sort::Integer),
            5 => (format!("mean({})", masked(self, Sort::Float)), Sort::Float),
            6 => (format!("mean({})", masked(self, Sort::Integer)), Sort::Float),
            7 => (format!("min({})", masked(self, Sort::Float)), Sort::Float),
            8 => (format!("max({})", masked(self, Sort::Integer)), Sort::Integer),
            9 => (format!("max({})", masked(self, Sort::Float)), Sort::Float),
            10 => (format!("count({})", elements(self, Sort::Mask)), Sort::Integer),
            11 => (format!("count({})", elements(self, Sort::Text)), Sort::Integer),
            12 => (format!("any({})", elements(self, Sort::Mask)), Sort::Mask),
            13 => (format!("all({})", elements(self, Sort::Mask)), Sort::Mask),
            14 => (format!("prod({})", masked(self, Sort::Float)), Sort::Float),
            _ if self.random.u32(..4) == 0 => (format!("array.at({}, 0)", elements(self, Sort::Float)), Sort::Float),
            _ => (format!("array.size({list})"), Sort::Integer),
        }
    }

    fn expression(&mut self, sort: Sort, depth: u32, scope: &Scope) -> String {
        // The expression is at most `depth` levels deep.
        let known: Vec<&String> =
            scope.names.iter().filter(|(_, other)| *other == sort).map(|(name, _)| name).collect();
        if depth == 0 || self.random.u32(..4) == 0 {
            if !known.is_empty() && (sort == Sort::Mask || self.random.u32(..4) > 0) {
                return (*pick(self.random, &known)).clone();
            }
            if sort != Sort::Mask {
                return self.literal(sort);
            }
        }
        if depth == 0 {
            let [a, b] = [(); 2].map(|()| self.expression(Sort::Float, 0, scope));
            return format!("({a} > {b})");
        }
        let depth = depth - 1;
        let mut part = |sort| self.expression(sort, depth, scope);
        let [a, b] = [part(sort), part(sort)];
        let choice = self.random.u32(..12);
        match (sort, choice) {
            (Sort::Mask, 0..=4) => {
                let [a, b] = [(); 2].map(|()| self.expression(Sort::Float, depth, scope));
                format!("({a} {} {b})", pick(self.random, &["<", "<=", ">", ">=", "==", "!="]))
            }
            (Sort::Mask, 5 | 6) => {
                let [a, b] = [(); 2].map(|()| self.expression(Sort::Text, depth, scope));
                format!("({a} {} {b})", pick(self.random, &["==", "!=", "<"]))
            }
            (Sort::Mask, 7) => {
                let [a, b] = [(); 2].map(|()| self.expression(Sort::Integer, depth, scope));
                format!("({a} {} {b})", pick(self.random, &["<", ">=", "==", "!="]))
            }
            (Sort::Mask, 8) => {
                let of = *pick(self.random, &[Sort::Float, Sort::Text, Sort::Integer]);
                format!("has({})", self.expression(of, depth, scope))
            }
            (Sort::Mask, 9) => format!("(not {a})"),
            (Sort::Mask, 10) => format!("({a} and {b})"),
            (Sort::Mask, _) => format!("({a} or {b})"),
            (_, 0) => {
                let mask = self.expression(Sort::Mask, depth, scope);
                format!("(if {mask} then {a} else {b})")
            }
            (_, 1) => format!("({a} ?? {b})"),
            (_, 2) => format!("({a} & {})", self.expression(Sort::Mask, depth, scope)),
            (Sort::Text, 3..=6) => format!("strings.join({a}, {b})"),
            (Sort::Text, 7) => format!("strings.upper({a})"),
            (Sort::Text, _) => a,
            (_, 3) => format!("{}({a}, {b})", pick(self.random, &["min", "max"])),
            (Sort::Float, 4) => {
                let function = pick(self.random, &["math.abs", "math.floor", "math.exp", "math.log", "math.neg"]);
                format!("{function}({a})")
            }
            (Sort::Float, 5 | 6) if scope.has_dictionary => {
                let key = self.expression(Sort::Text, depth, scope);
                if self.random.bool() {
                    format!("lookup({key}, rates, {b})")
                } else {
                    format!("dict.get(rates, {key})")
                }
            }
            (Sort::Float, 7) => format!("({a} * {})", self.expression(Sort::Integer, depth, scope)),
            (Sort::Float, _) => format!("({a} {} {b})", pick(self.random, &["+", "-", "*", "/"])),
            (Sort::Integer, 4) => format!("strings.length({})", self.expression(Sort::Text, depth, scope)),
            (Sort::Integer, 5) => format!("({a} {} 3)", pick(self.random, &["//", "%"])),
            // Some elements fail. A failure that depends on no element would occur for empty lists too; other programs on arrays test that.
            (Sort::Integer, 6) if self.random.u32(..4) == 0 => {
                let names = scope.names[..scope.elements].iter().filter(|(_, sort)| *sort == Sort::Integer);
                let names: Vec<&String> = names.map(|(name, _)| name).collect();
                let divisor = if names.is_empty() { "7" } else { pick(self.random, &names).as_str() };
                format!("({a} {} {divisor})", pick(self.random, &["//", "%"]))
            }
            (Sort::Integer, _) => format!("({a} {} {b})", pick(self.random, &["+", "-", "*"])),
        }
    }

    fn literal(&mut self, sort: Sort) -> String {
        match sort {
            Sort::Float => format!("{:?}", f64::from(self.random.i32(-8..=40)) / 8.0),
            Sort::Integer => format!("{}i64", self.random.i32(0..9)),
            Sort::Text | Sort::Mask => format!("{:?}", pick(self.random, &["x", "y", "xy", "yx", "xyz", ""])),
        }
    }
}
