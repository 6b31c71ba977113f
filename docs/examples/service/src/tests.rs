//! What the service answers, before and after files of its folder change.

use crate::serve;
use crate::service::Service;
use std::fs;
use std::path::{Path, PathBuf};

fn models() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("models")
}

/// A folder with the models, to be changed.
fn copied() -> std::io::Result<tempfile::TempDir> {
    let folder = tempfile::tempdir()?;
    for file in fs::read_dir(models())? {
        let file = file?;
        fs::copy(file.path(), folder.path().join(file.file_name()))?;
    }
    Ok(folder)
}

fn answers(requests: &str) -> String {
    let mut out = Vec::new();
    serve(&models().display().to_string(), requests.as_bytes(), &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn requests_are_answered_by_line() {
    let found = answers(
        "fraud {\"amount\": 900, \"currency\": \"CHF\", \"country\": \"FR\", \"card_country\": \"CH\", \"account_days\": 400}
pricing {\"unit_price\": 10, \"quantity\": 9, \"country\": \"DE\", \"currency\": \"CHF\", \"loyal\": true}
pricing {\"unit_price\": 10, \"country\": \"CH\", \"currency\": \"JPY\"}
ranking {\"clicks\": [9, 9], \"views\": [80, 80], \"age_hours\": [240, 0], \"sponsored\": [false, false]}
pricing {\"unit_price\": \"ten\", \"country\": \"CH\"}
common {}
reload
",
    );
    assert_eq!(
        found,
        "\
{\"decision\":\"review\",\"score\":0.3775406687981454}
{\"gross\":104.96,\"net\":88.2,\"to_pay\":99.71}
{\"gross\":10.81,\"net\":10.0,\"to_pay\":null}
{\"place\":[1,0]}
error: input `unit_price` is f64, found \"ten\"
error: there is no model `common`
nothing changed
"
    );
}

#[test]
fn a_change_takes_effect_where_it_works() {
    let folder = copied().unwrap();
    let service = Service::load(folder.path()).unwrap();
    let request = "{\"unit_price\": 10, \"country\": \"DE\"}";
    let price = || service.answer("pricing", request).unwrap();
    assert_eq!(price(), "{\"gross\":11.9,\"net\":10.0,\"to_pay\":11.9}");

    // A table: who uses it is replaced, if its own tests still pass.
    fs::write(folder.path().join("vat.csv"), "country,rate\nCH,0.081\nDE,0.19\nXX,0.5\n").unwrap();
    let said = service.reload().unwrap();
    assert!(said.starts_with("kept pricing: error[failed-test]: test \"rebates\" fails: "), "{said}");
    fs::write(folder.path().join("vat.csv"), "country,rate\nCH,0.081\nDE,0.19\nFR,0.25\n").unwrap();
    assert_eq!(service.reload().unwrap(), "replaced pricing");

    // A model of another name is another endpoint; one that is broken says where, and the old one answers.
    fs::write(folder.path().join("double.cem"), "input x: f64\noutput twice = x * 2.0").unwrap();
    fs::write(folder.path().join("fraud.cem"), "input amount: f64\noutput score = amount >").unwrap();
    let said = service.reload().unwrap();
    assert!(said.starts_with("added double; kept fraud: error[syntax]: "), "{said}");
    assert!(said.contains("fraud.cem:2:24"), "{said}");
    assert_eq!(service.answer("double", "{\"x\": 4}").unwrap(), "{\"twice\":8.0}");
    assert!(service.answer("fraud", "{\"amount\": 1, \"currency\": \"EUR\"}").unwrap().contains("\"accept\""));

    // A service that begins takes no broken model.
    fs::write(folder.path().join("double.cem"), "input x: f64\noutput twice = x *").unwrap();
    let said = Service::load(folder.path()).err().map(|error| error.to_string()).unwrap_or_default();
    assert!(said.contains("fraud.cem:2:24") && said.contains("double.cem:2:"), "{said}");
    fs::write(folder.path().join("double.cem"), "input x: f64\noutput twice = x * 2.0").unwrap();
    fs::remove_file(folder.path().join("fraud.cem")).unwrap();
    assert_eq!(service.reload().unwrap(), "removed fraud");
    assert!(service.answer("fraud", "{}").is_err());
}
