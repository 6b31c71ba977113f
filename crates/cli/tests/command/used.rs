//! Files that a model uses: beside it, and nowhere else.

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
