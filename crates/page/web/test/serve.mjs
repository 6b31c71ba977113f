// A small server for the tests: the pages of the mock data, and the endpoints of the server's page.
//
//     node test/serve.mjs 8080

import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { evaluate, hostile, large, plot, quadratic, tiles } from "./mock.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const assets = join(here, "..", "..", "assets");
const template = readFileSync(join(here, "..", "src", "page.html"), "utf8");
const TOKEN = "token-of-the-test";
const asset = (name) => readFileSync(join(assets, name), "utf8");

/** Returns the page with `data` in it, and its policy, as the Rust side makes them. */
export function page(data) {
  const style = asset("page.css");
  const script = asset("page.js");
  const policy = asset("policy.txt").trim();
  const parts = { style, script, policy, data: JSON.stringify(data).replace(/</g, "\\u003c") };
  return { html: template.replace(/\{\{(\w+)\}\}/g, (_, name) => parts[name]), policy };
}

function explain(text) {
  const at = text.indexOf("oops");
  if (at >= 0) {
    return {
      version: "0.1.0", name: null, text, nodes: [], stages: [], hovers: [], signature: null, rows: null, plots: [], tests: [], coverage: [], times: [], frame: null, work: null,
      diagnostics: [{ from: at, to: at + 4, severity: "error", code: "name", message: "`oops` has no definition", hint: "define it with `let oops = ..`" }],
    };
  }
  if (text === quadratic.text) return quadratic;
  // Spans that lie behind an edit do not fit; the mock moves nothing.
  const moved = text.length - quadratic.text.length;
  const first = [...text].findIndex((character, index) => character !== quadratic.text[index]);
  const move = (offset) => (offset > first ? offset + moved : offset);
  return {
    ...quadratic, text, diagnostics: [],
    nodes: quadratic.nodes.map((node) => ({ ...node, spans: node.spans.map(([from, to]) => [move(from), move(to)]) })),
    coverage: quadratic.coverage.map((each) => ({ ...each, from: move(each.from), to: move(each.to) })),
    tests: quadratic.tests.map((each) => ({ ...each, from: move(each.from), to: move(each.to) })),
  };
}

const lsp = {
  "textDocument/completion": () => ({ isIncomplete: false, items: [
    { label: "math.exp", kind: 3, detail: "(f64) -> f64" }, { label: "math.sqrt", kind: 3, detail: "(f64) -> f64" }, { label: "math.floor", kind: 3, detail: "(f64) -> f64" },
  ] }),
  "completionItem/resolve": (params) => ({ ...params, documentation: { kind: "markdown", value: `About \`${params.label}\`.` } }),
  "textDocument/hover": () => ({ contents: { kind: "markdown", value: "A `f64` value." } }),
  "textDocument/signatureHelp": () => ({ signatures: [{ label: "math.exp(x)", parameters: [{ label: [9, 10] }] }], activeSignature: 0, activeParameter: 0 }),
  "textDocument/formatting": () => [],
};

const actions = {
  "/page/explain": ({ text }) => explain(text),
  "/page/rows": ({ rows }) => ({ inputs: ["a", "b", "c"], outputs: ["first", "decay"], rows: rows.map(evaluate) }),
  "/page/plot": ({ input, output, row }) => plot(input, output, row),
  "/page/lsp": ({ method, params }) => ({ result: lsp[method](params) }),
};

/** Starts the server on `port` (0 for any free one). Returns it with its address. */
export function serve(port = 0) {
  const pages = { "/": { ...quadratic, server: { token: TOKEN } }, "/quadratic.html": quadratic, "/hostile.html": hostile, "/tiles.html": tiles, "/large.html": large };
  const server = createServer(async (request, response) => {
    const path = new URL(request.url, "http://localhost").pathname;
    const send = (status, value, type = "application/json") => {
      response.writeHead(status, { "content-type": type });
      response.end(JSON.stringify(value));
    };
    if (path in pages) {
      const { html, policy } = page(pages[path]);
      response.writeHead(200, { "content-type": "text/html; charset=utf-8", "content-security-policy": policy });
      response.end(html);
      return;
    }
    if (request.headers["x-cembra-token"] !== TOKEN) return send(403, { title: "Forbidden", status: 403, detail: "the token is wrong", code: "token" }, "application/problem+json");
    if (path === "/page/models") return send(200, { models: [{ name: "roots" }] });
    if (path === "/page/models/roots") return send(200, { name: "roots", text: quadratic.text });
    if (request.method !== "POST" || !(path in actions)) return send(404, { title: "Not found", status: 404, detail: "there is no such page", code: "path" });
    let body = "";
    for await (const part of request) body += part;
    return send(200, actions[path](JSON.parse(body)));
  });
  return new Promise((resolve) => {
    server.listen(port, "127.0.0.1", () => resolve({ server, address: `http://127.0.0.1:${server.address().port}` }));
  });
}

// `node --test` starts each file of this folder, without a port.
if (process.argv[1] === fileURLToPath(import.meta.url) && process.argv[2]) {
  const { address } = await serve(Number(process.argv[2]));
  console.log(address);
}
