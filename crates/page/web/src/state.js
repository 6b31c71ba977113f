// The state that all parts of the page share: the data of the last good model, the problems of the present text, and
// the page's message. Parts listen to changes by name.

import { withLineFeeds } from "./offsets.js";

/** The shared state. Events: "data", "stale", "diagnostics", "marks", "rows", "message". */
export class State {
  #listeners = new Map();

  constructor(data) {
    this.data = withDefaults(data);
    this.server = data.server ?? null;
    this.grammar = data.grammar ?? { keywords: [], types: [], literals: [], operators: [], comment: "#" };
    this.diagnostics = this.data.diagnostics;
    /** True while the text has errors and the page still shows the stages of an earlier text. */
    this.stale = false;
    this.message = { text: "", kind: "" };
  }

  /** Calls `listener` with the detail of each `event`. Returns the function that ends this. */
  on(event, listener) {
    if (!this.#listeners.has(event)) this.#listeners.set(event, new Set());
    this.#listeners.get(event).add(listener);
    return () => this.#listeners.get(event).delete(listener);
  }

  emit(event, detail) {
    for (const listener of [...(this.#listeners.get(event) ?? [])]) listener(detail);
  }

  /** Takes the server's answer for the present text. Stages of the last good text stay if the present text has errors. */
  take(answer) {
    const data = withDefaults(answer);
    const broken = data.stages.length === 0 && data.diagnostics.some((each) => each.severity === "error");
    this.diagnostics = data.diagnostics;
    if (!broken) {
      this.data = data;
      this.emit("data");
    }
    this.setStale(broken);
    this.emit("diagnostics");
  }

  setStale(stale) {
    if (this.stale === stale) return;
    this.stale = stale;
    this.emit("stale");
  }

  /** Shows `text` in the status line. `kind` is "", "busy" or "error". */
  say(text, kind = "") {
    this.message = { text, kind };
    this.emit("message");
  }
}

function withDefaults(data) {
  const lists = ["diagnostics", "hovers", "nodes", "stages", "plots", "tests", "coverage", "times"];
  const full = { frame: null, work: null, rows: null, ...data, text: data.text ?? "" };
  for (const list of lists) full[list] = data[list] ?? [];
  full.signature = {
    inputs: data.signature?.inputs ?? [],
    outputs: data.signature?.outputs ?? [],
  };
  return withLineFeeds(full);
}
