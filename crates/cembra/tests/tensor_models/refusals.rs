//! What is refused, and in which words: texts that become too large, and mistakes that people make who know other tensors.

use super::refused;

#[test]
fn a_text_whose_graph_is_too_large_is_refused() {
    // Each gradient of a gradient is several times as large as what it is of: twenty lines would take all memory there is.
    let mut text = "input x: tensor[f64, 2]\nlet t0 = sin(x)\n".to_owned();
    for at in 0..20 {
        text.push_str(&format!("let t{} = tensor.grad(tensor.sum(t{at} * sin(x)), x)\n", at + 1));
    }
    text.push_str("output y = t20");
    let (code, message, place) = refused(&text);
    let nodes = cembra::tensor::MOST_MODEL_NODES;
    assert!(message.starts_with(&format!("a graph of more than {nodes} nodes; split it")), "{message}");
    assert_eq!((code, place.map(|place| place.starts_with("tensor.grad("))), ("limit", Some(true)));
}
