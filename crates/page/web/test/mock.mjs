// Data of three models, written by hand: scalars with a frame, a text with hostile markup, and products in tiles.

const GRAMMAR = {
  keywords: ["input", "let", "fn", "output", "if", "then", "else", "and", "or", "not", "test", "table", "use", "tile"],
  types: ["bool", "i32", "i64", "u64", "f32", "f64", "text", "date", "tiled", "tensor"],
  literals: ["true", "false", "present", "missing", "inf", "nan"],
  operators: [
    { name: "math.exp", short: "exp", summary: "e to the power of `x`." },
    { name: "math.sqrt", short: "sqrt", summary: "The square root." },
    { name: "core.where", short: "where", summary: "`x` where the condition holds." },
  ],
  comment: "#",
};

// Lines as "node node| text"; a line without a bar before its text has no nodes.
function lines(text, kind = "step") {
  return text.trim().split("\n").map((line) => {
    const match = /^([\d ]*)\| ?(.*)$/.exec(line);
    const t = match ? match[2] : line;
    const n = match && match[1].trim() ? match[1].trim().split(/\s+/).map(Number) : [];
    const heading = !match && /^[A-Z;].*[:\d a-z)]$|^function/.test(t);
    return { t, k: heading ? "heading" : (/^jump|^ *(j\w+|jmp) /.test(t) ? "jump" : kind), n };
  });
}

// The places of `parts` in `text`. A part "before^part" is looked for with the text before it.
function spans(text, parts) {
  return parts.map((each) => {
    const [part, before] = each.split("^").reverse();
    const from = text.indexOf((before ?? "") + part);
    if (from < 0) throw new Error(`the text has no ${each}`);
    return [from + (before ?? "").length, from + (before ?? "").length + part.length];
  });
}

function nodes(text, list) {
  return list.map(([label, ...parts], id) => ({ id, label, spans: spans(text, parts) }));
}

const QUADRATIC = `# The real roots of a quadratic equation.
input a, b, c: f64
let d = b * b - 4.0 * a * c
let s = math.sqrt(d)
output first = where(d >= 0, (-b + s) / 2.0 / a)
output decay = if d > 0 then math.exp(-d) else 0.0

test "roots" {
    a, b, c => first
    1.0, -3.0, 2.0 => 2.0
}
`;

const QUADRATIC_NODES = nodes(QUADRATIC, [
  ["input a", "input ^a", "4.0 * ^a", "2.0 / ^a"], ["input b", "a, ^b", "let d = ^b"], ["input c", "b, ^c", "a * ^c"],
  ["math.multiply", "b * b"], ["math.multiply", "4.0 * a"], ["math.multiply", "4.0 * a * c"], ["math.subtract", "b * b - 4.0 * a * c"],
  ["math.sqrt", "math.sqrt(d)"], ["core.greater_equal", "d >= 0"], ["math.neg", "-b"], ["math.add", "-b + s"],
  ["math.divide", "(-b + s) / 2.0"], ["math.divide", "(-b + s) / 2.0 / a"], ["core.where", "where(d >= 0, (-b + s) / 2.0 / a)"],
  ["core.greater", "d > 0"], ["math.neg", "-d"], ["math.exp", "math.exp(-d)"], ["core.where", "if d > 0 then math.exp(-d) else 0.0"],
]);

const GRAPH = lines(`
0| %0 = L.a : f64
1| %1 = L.b : f64
2| %2 = L.c : f64
3| %3 = math.multiply(%1, %1) : f64
4| %4 = f64{4} : f64
4| %5 = math.multiply(%4, %0) : f64
5| %6 = math.multiply(%5, %2) : f64
6| %7 = math.subtract(%3, %6) : f64
7| %8 = math.sqrt(%7) : f64
8| %9 = f64{0} : f64
8| %10 = core.greater_equal(%7, %9) : unit?
9| %11 = math.neg(%1) : f64
10| %12 = math.add(%11, %8) : f64
11| %13 = f64{2} : f64
11| %14 = math.divide(%12, %13) : f64
12| %15 = math.divide(%14, %0) : f64
14| %18 = core.greater(%7, %9) : unit?
15| %19 = math.neg(%7) : f64
16| %20 = math.exp(%19) : f64
13| %23 = core.to_optional(%15) : f64?
13| %25 = core._short_circuit_where(%10, %23, %24) : f64?
17| %26 = core._short_circuit_where(%18, %20, %9) : f64
first = %25
decay = %26`);

const PLAN = lines(`
Frame: 120 bytes
Inputs:
0| f64 [0x00] = L.a
1| f64 [0x08] = L.b
2| f64 [0x10] = L.c
Init operations:
4| f64 [0x18] = f64{4}
8 14| f64 [0x20] = f64{0}
11| f64 [0x28] = f64{2}
13| f64? [0x30] = f64?{NA}
Eval operations:
3| f64 [0x40] = math.multiply(f64 [0x08], f64 [0x08])
4| f64 [0x48] = math.multiply(f64 [0x18], f64 [0x00])
5| f64 [0x50] = math.multiply(f64 [0x48], f64 [0x10])
6| f64 [0x48] = math.subtract(f64 [0x40], f64 [0x50])
8| unit? [0x58] = core.greater_equal(f64 [0x48], f64 [0x20])
13| jump_if_not<+7>(unit? [0x58])
9| f64 [0x50] = math.neg(f64 [0x08])
7| f64 [0x40] = math.sqrt(f64 [0x48])
10| f64 [0x70] = math.add(f64 [0x50], f64 [0x40])
11| f64 [0x40] = math.divide(f64 [0x70], f64 [0x28])
12| f64 [0x70] = math.divide(f64 [0x40], f64 [0x00])
13| f64? [0x60] = core.to_optional(f64 [0x70])
13| jump<+1>()
13| f64? [0x60] = core._copy(f64? [0x30])
14| unit? [0x58] = core.greater(f64 [0x48], f64 [0x20])
17| jump_if_not<+3>(unit? [0x58])
15| f64 [0x40] = math.neg(f64 [0x48])
16| f64 [0x70] = math.exp(f64 [0x40])
17| jump<+1>()
17| f64 [0x70] = core._copy(f64 [0x20])
Outputs:
13| first = f64? [0x60]
17| decay = f64 [0x70]`);

const ASSEMBLY = lines(`
; called with input, output, frame, context
|   0000  push    rbp
|   0001  mov     rbp, rsp
0|   0004  vmovsd  xmm0, [rdx]
1|   0008  vmovsd  xmm2, [rdx+8]
2|   000d  vmovsd  xmm1, [rdx+0x10]
3|   0012  vmulsd  xmm3, xmm2, xmm2
4|   0016  vmulsd  xmm4, xmm0, [C1]
5|   001e  vmulsd  xmm1, xmm4, xmm1
6|   0022  vsubsd  xmm1, xmm3, xmm1
8|   0026  vucomisd xmm1, [C2]
13|   002e  jae     L1
13|   0034  xor     r11d, r11d
13|   0037  vxorpd  xmm0, xmm0, xmm0
13|   003b  jmp     L2
L1:
9|   0040  mov     rax, 0x8000000000000000
9|   004a  vmovq   xmm3, rax
9|   004f  vxorpd  xmm2, xmm2, xmm3
7|   0053  vxorpd  xmm3, xmm3, xmm3
7|   0057  vsqrtsd xmm3, xmm3, xmm1
10|   005b  vaddsd  xmm2, xmm2, xmm3
11|   005f  vmulsd  xmm2, xmm2, [C3]
12|   0067  vdivsd  xmm0, xmm2, xmm0
13|   006b  mov     r11d, 1
L2:
14|   0071  vucomisd xmm1, [C4]
17|   0079  ja      L3
17|   007f  vxorpd  xmm3, xmm1, xmm1
17|   0083  jmp     L4
L3:
15|   0088  mov     rax, 0x8000000000000000
15|   0092  vmovq   xmm2, rax
15|   0097  vxorpd  xmm1, xmm1, xmm2
16|   009b  mov     rax, 0x4086300000000000
16|   00a5  vmovq   xmm2, rax
16|   00aa  vminsd  xmm1, xmm2, xmm1
16|   00bd  movdqa  xmm3, xmm1
16|   00c1  vfmadd213sd xmm3, xmm2, [C5]
16|   00ca  vsubsd  xmm2, xmm3, [C6]
16|   0102  vmulsd  xmm6, xmm5, xmm5
16|   0119  vfmadd213sd xmm8, xmm7, [C7]
L4:
|   01a0  vmovsd  [rsi], xmm0
|   01a9  ret`, "instruction");

const slot = (offset, type, what, from, to, n, bytes = 8) => ({ offset, bytes, type, what, from, to, n });

const SIGNATURE = {
  inputs: ["a", "b", "c"].map((name) => ({ name, type: "f64", optional: false })),
  outputs: [{ name: "first", type: "f64?" }, { name: "decay", type: "f64" }],
};

/** Returns the outputs of the quadratic model for cells of `a`, `b` and `c`. */
export function evaluate(cells) {
  const [a, b, c] = cells.map((cell) => (cell === null ? NaN : Number(cell)));
  const wrong = ["a", "b", "c"][[a, b, c].findIndex(Number.isNaN)];
  if (wrong) return { in: cells, out: [], error: `input ${wrong} must be a number` };
  const d = b * b - 4 * a * c;
  return { in: cells, out: [d >= 0 ? String((-b + Math.sqrt(d)) / 2 / a) : null, d > 0 ? String(Math.exp(-d)) : "0"], error: null };
}

/** Returns 101 points of the plot of `output` over `input`, with the other inputs from `row`. */
export function plot(input, output, row) {
  const points = Array.from({ length: 101 }, (_, index) => {
    const cells = [...row];
    const x = -5 + index / 10;
    cells[["a", "b", "c"].indexOf(input)] = String(x);
    const value = evaluate(cells).out[output === "first" ? 0 : 1] ?? null;
    return [x, value === null ? null : Number(value)];
  });
  return { input, output, points };
}

export const quadratic = {
  version: "0.1.0", name: "quadratic.cem", text: QUADRATIC, server: null, grammar: GRAMMAR,
  diagnostics: [{
    from: QUADRATIC.indexOf("/ 2.0"), to: QUADRATIC.indexOf("/ 2.0") + 5, severity: "warning", code: "style",
    message: "the division by 2.0 is computed as a multiplication by 0.5", hint: "write `0.5 * ` to say so",
  }],
  hovers: [{ from: QUADRATIC.indexOf("math.sqrt"), to: QUADRATIC.indexOf("math.sqrt") + 9, text: "`math.sqrt(x)`\n\nThe square root of `x`.\n\n```\nsqrt(4.0) is f64{2}\n```" }],
  nodes: QUADRATIC_NODES,
  stages: [
    { name: "expr", summary: "the model printed back", group: "expr", linked: false, note: null, lines: QUADRATIC.trim().split("\n").map((t) => ({ t, k: "code", n: [] })) },
    { name: "passes: types", summary: "resolve names, infer types", group: "passes", linked: true, note: null, lines: GRAPH },
    { name: "passes: where", summary: "decide what each branch evaluates", group: "passes", linked: true, note: null, lines: GRAPH.slice(3) },
    { name: "prepared", summary: "the graph after the last pass", group: "prepared", linked: true, note: null, lines: GRAPH },
    { name: "plan", summary: "the steps for one row", group: "plan", linked: true, note: null, lines: PLAN },
    { name: "lanes", summary: "the steps for many rows", group: "lanes", linked: true, note: "The rows of this model run one at a time.", lines: [] },
    { name: "clif", summary: "the input of the code generator", group: "clif", linked: false, note: null, lines: lines("function u0:0(i64, i64, i64, i64) -> i32\n|     v4 = load.f64 region2 v2\n|     v7 = fmul v5, v5", "code") },
    { name: "asm", summary: "the machine code", group: "asm", linked: true, note: null, lines: ASSEMBLY },
  ],
  frame: {
    bytes: 120, steps: 17,
    slots: [
      slot(0x00, "f64", "input a", 0, 9, [0]), slot(0x08, "f64", "input b", 0, 5, [1]), slot(0x10, "f64", "input c", 0, 2, [2]),
      slot(0x18, "f64", "literal 4.0", 0, 1, [4]), slot(0x20, "f64", "literal 0.0", 0, 16, [8, 14]), slot(0x28, "f64", "literal 2.0", 0, 8, [11]),
      slot(0x30, "f64?", "missing", 0, 11, [13], 16), slot(0x40, "f64", "math.multiply", 0, 3, [3]), slot(0x48, "f64", "math.multiply", 1, 2, [4]),
      slot(0x50, "f64", "math.multiply", 2, 3, [5]), slot(0x48, "f64", "math.subtract", 3, 14, [6]), slot(0x58, "unit?", "core.greater_equal", 4, 5, [8]),
      slot(0x50, "f64", "math.neg", 6, 8, [9]), slot(0x40, "f64", "math.sqrt", 7, 8, [7]), slot(0x70, "f64", "math.add", 8, 9, [10]),
      slot(0x40, "f64", "math.divide", 9, 10, [11]), slot(0x70, "f64", "math.divide", 10, 11, [12]), slot(0x60, "f64?", "core.where", 11, 17, [13], 16),
      slot(0x40, "f64", "math.neg", 14, 15, [15]), slot(0x70, "f64", "math.exp", 15, 17, [16, 17]),
    ],
  },
  work: null,
  signature: SIGNATURE,
  rows: {
    inputs: ["a", "b", "c"], outputs: ["first", "decay"],
    rows: [["1.0", "-3.0", "2.0"], ["1.0", "0.0", "2.0"], ["2.0", "5.0", "-1.5"], ["0.5", "1.0", "0.25"]].map(evaluate),
  },
  plots: [plot("b", "first", ["1.0", "0.0", "2.0"]), plot("c", "decay", ["1.0", "1.0", "0.0"])],
  tests: [{ name: "roots", from: QUADRATIC.indexOf("test "), to: QUADRATIC.length - 1, passed: true, message: null }],
  coverage: [
    { from: QUADRATIC.indexOf("math.exp(-d)"), to: QUADRATIC.indexOf("math.exp(-d)") + 12, taken: true, message: "the `then` branch is taken" },
    { from: QUADRATIC.indexOf("0.0\n"), to: QUADRATIC.indexOf("0.0\n") + 3, taken: false, message: "the `else` branch is never taken" },
  ],
  times: [
    { label: "math.exp", n: [16], ns: 4.21, share: 0.42 }, { label: "math.divide", n: [11, 12], ns: 2.6, share: 0.26 }, { label: "math.sqrt", n: [7], ns: 1.9, share: 0.19 },
    { label: "core.where", n: [13, 17], ns: 0.8, share: 0.08 }, { label: "math.multiply", n: [3, 4, 5], ns: 0.5, share: 0.05 },
  ],
};

const HOSTILE = `# </script><script>window.broken = 1</script> <!-- <img src=x onerror="window.broken = 1">
input "<img src=x onerror=window.broken=1>": text
output y = "</script><img src=x onerror=window.broken=1>"
`;

export const hostile = {
  version: "0.1.0", name: "</title><img src=x onerror=window.broken=1>.cem", text: HOSTILE, server: null, grammar: GRAMMAR,
  diagnostics: [{ from: HOSTILE.indexOf("input"), to: HOSTILE.indexOf("input") + 5, severity: "error", code: "<b>", message: "<img src=x onerror=window.broken=1>", hint: "<script>window.broken=1</script>" }],
  hovers: [{ from: HOSTILE.indexOf("output"), to: HOSTILE.indexOf("output") + 6, text: "<img src=x onerror=window.broken=1> `</code><b>` [x](javascript:1)" }],
  nodes: [{ id: 0, label: "<img src=x>", spans: spans(HOSTILE, ['"</script><img src=x onerror=window.broken=1>"']) }],
  stages: [{ name: "plan", summary: "<img src=x onerror=window.broken=1>", group: "plan", linked: true, note: "<b>note</b>", lines: [{ t: "</script><img src=x onerror=window.broken=1>", k: "literal", n: [0] }] }],
  frame: { bytes: 16, steps: 1, slots: [slot(0, "text", "<img src=x onerror=window.broken=1>", 0, 0, [0], 16)] },
  work: { title: "<b>Work</b>", columns: ["<i>step</i>"], rows: [{ cells: ["<img src=x onerror=window.broken=1>"], n: [0] }], note: "<b>" },
  signature: { inputs: [{ name: "<img src=x onerror=window.broken=1>", type: "text", optional: false }], outputs: [{ name: "y", type: "text" }] },
  rows: { inputs: ["<img src=x onerror=window.broken=1>"], outputs: ["y"], rows: [{ in: ["<b>1</b>"], out: ["<img src=x onerror=window.broken=1>"], error: null }, { in: [null], out: [], error: "<img src=x onerror=window.broken=1>" }] },
  plots: [{ input: "<b>x</b>", output: "<img src=x>", points: [[0, 1], [1, null], [2, 3]] }],
  tests: [{ name: "<img src=x onerror=window.broken=1>", from: 0, to: 3, passed: false, message: "<script>window.broken=1</script>" }],
  coverage: [{ from: 0, to: 3, taken: false, message: "<b>never</b>" }],
  times: [{ label: "<img src=x onerror=window.broken=1>", n: [0], ns: 1, share: 1 }],
};

const TILES = `tile i, j, k = 50
input a: tiled[f64, "i,j"]
b("i,j") = 2.0 * a("i,k") * a("k,j") - a("i,j")
`;

export const tiles = {
  version: "0.1.0", name: "square.cem", text: TILES, server: null, grammar: GRAMMAR, diagnostics: [], hovers: [],
  nodes: nodes(TILES, [["input a", "input ^a", '2.0 * ^a', 'j") - ^a'], ["view", 'a("k,j")'], ["product", '2.0 * a("i,k") * a("k,j")'], ["elements", '2.0 * a("i,k") * a("k,j") - a("i,j")']]),
  stages: [
    { name: "expr", summary: "the model printed back", group: "expr", linked: false, note: null, lines: TILES.trim().split("\n").map((t) => ({ t, k: "code", n: [] })) },
    { name: "tiles", summary: "the steps of the evaluation", group: "tiles", linked: true, note: null, lines: lines('0| input a: tiled[f64, "i,j"] of [1000, 1000]\n1| view a("k,j")\n2| product 2.0 * a("i,k") * a("k,j")\n3| elements 2.0 * a("i,k") * a("k,j") - a("i,j")') },
  ],
  frame: null,
  work: {
    title: "Tiles", columns: ["step", "tiles", "of", "products", "of", "flops", "bytes", "held", "tasks"],
    rows: [
      { cells: ['view a("k,j")', "50", "400", "", "", "", "1000000", "0", "50"], n: [1] },
      { cells: ['product 2.0 * a("i,k") * a("k,j")', "102", "400", "114", "8000", "2.85e7", "2040000", "1000000", "3"], n: [2] },
      { cells: ['elements 2.0 * a("i,k") * a("k,j") - a("i,j")', "138", "400", "", "", "", "2760000", "2040000", "138"], n: [3] },
    ],
    note: "At most 4800000 bytes at once. An evaluation has at most this many tiles and products.",
  },
  signature: { inputs: [{ name: "a", type: 'tiled[f64, "i,j"]', optional: false }], outputs: [{ name: "b", type: "tensor[f64, 2]" }] },
  rows: null, plots: [], tests: [], coverage: [], times: [],
};

/** The quadratic model with 40,000 lines of machine code. */
export const large = {
  ...quadratic,
  stages: quadratic.stages.map((stage) => (stage.name === "asm"
    ? { ...stage, lines: Array.from({ length: 40000 }, (_, index) => ({ t: `  ${index.toString(16).padStart(4, "0")}  vmulsd  xmm3, xmm2, xmm2`, k: "instruction", n: [Math.floor(index / 2000) % 18] })) } : stage)),
};
