//! Must not compile: attributes that a derive does not know. The error at the attribute lists the allowed ones.

#[derive(cembra::Input)]
#[cembra(rename_al = "camelCase")]
struct Misspelt {
    x: f64,
}

#[derive(cembra::Input)]
#[cembra(rename_all = "camel")]
struct Cases {
    x: f64,
}

#[derive(cembra::Input)]
struct Defaults {
    #[cembra(default = 30.0)]
    age: f64,
}

#[derive(cembra::Input)]
struct Flattened {
    #[cembra(flatten)]
    rest: f64,
}

#[derive(cembra::Input)]
struct Skipped {
    #[cembra(skip, rename = "y")]
    x: f64,
}

#[derive(cembra::Input)]
struct Twice {
    #[cembra(rename = "y", name = "z")]
    x: f64,
}

#[derive(cembra::Output)]
struct Same {
    x: f64,
    #[cembra(rename = "x")]
    y: f64,
}

#[derive(cembra::Output)]
struct Nothing {
    #[cembra(default = )]
    y: f64,
}

#[derive(cembra::FieldType)]
#[cembra(transparent)]
struct Cents(i64);

fn main() {}
