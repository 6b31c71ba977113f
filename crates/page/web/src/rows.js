// Sample rows: inputs and outputs as a grid. On the server's page, inputs can be edited and rows added; the outputs
// follow while one types.

import { debounce, html } from "./dom.js";

/** The panel of the rows. `parts` has `server` (`null` in a file), `text()` and `failed(error)`. */
export class Rows {
  #rows = [];
  #edited = false;
  #controller = null;
  #columns = { inputs: [], outputs: [] };
  #cells = [];
  #soon = debounce(200, () => this.#ask());

  constructor(state, parts) {
    this.state = state;
    this.parts = parts;
    this.title = "Rows";
    /** The index of the row that the plot takes its other inputs from. */
    this.chosen = 0;
    this.table = html("table", { class: "grid rows" });
    this.scroller = html("div", { class: "scroller", tabindex: "0", role: "group", "aria-label": "Sample rows" }, this.table);
    this.add = html("button", { type: "button", text: "Add a row", click: () => this.#addRow() });
    this.note = html("p", { class: "note" });
    this.element = html("div", { class: "panel-body" }, this.scroller,
      html("div", { class: "panel-foot" }, parts.server ? this.add : null, this.note));
    this.table.addEventListener("input", (event) => this.#input(event));
    this.table.addEventListener("keydown", (event) => this.#key(event));
    this.table.addEventListener("focusin", (event) => this.#choose(event));
  }

  get present() {
    return this.state.data.rows !== null || (this.parts.server !== null && this.state.data.signature.inputs.length > 0);
  }

  /** The inputs of the chosen row, in the order of the signature. */
  get row() {
    const row = this.#rows[this.chosen] ?? this.#rows[0] ?? { in: {} };
    return this.state.data.signature.inputs.map(({ name }) => row.in[name] ?? null);
  }

  /** True if the visitor changed a row, so that the data's plots no longer fit. */
  get edited() {
    return this.#edited;
  }

  update() {
    const { rows, signature } = this.state.data;
    const inputs = rows?.inputs ?? signature.inputs.map(({ name }) => name);
    const outputs = rows?.outputs ?? signature.outputs.map(({ name }) => name);
    this.#columns = { inputs, outputs };
    if (this.#edited) {
      for (const row of this.#rows) row.out = outputs.map(() => undefined);
      this.#build();
      this.#ask();
      return;
    }
    this.#rows = (rows?.rows ?? []).map((row) => ({
      in: Object.fromEntries(inputs.map((name, index) => [name, row.in[index] ?? null])),
      out: row.out ?? [],
      error: row.error ?? null,
    }));
    if (this.#rows.length === 0 && this.parts.server) this.#rows.push({ in: {}, out: [], error: null });
    this.#build();
  }

  #build() {
    const { inputs, outputs } = this.#columns;
    const heading = (name, kind) => html("th", { scope: "col", class: kind },
      html("span", { text: name }), html("span", { class: "type", text: this.#typeOf(name, inputs) }));
    this.#cells = [];
    const head = html("tr", {}, html("th", { scope: "col", class: "row-number" }, html("span", { class: "hidden", text: "row" })),
      ...inputs.map((name) => heading(name, this.parts.server ? null : "number")),
      ...outputs.map((name, index) => heading(name, index === 0 ? "first-output number" : "number")),
      this.parts.server ? html("th", { scope: "col" }, html("span", { class: "hidden", text: "remove" })) : null);
    const body = this.#rows.map((row, index) => this.#line(row, index));
    this.table.replaceChildren(html("thead", {}, head), html("tbody", {}, ...body));
    this.chosen = Math.min(this.chosen, Math.max(0, this.#rows.length - 1));
    this.#paint();
  }

  #typeOf(name, inputs) {
    const { signature } = this.state.data;
    const list = inputs.includes(name) ? signature.inputs : signature.outputs;
    return list.find((each) => each.name === name)?.type ?? "";
  }

  #line(row, index) {
    const { inputs, outputs } = this.#columns;
    const inputCells = inputs.map((name) => {
      const value = row.in[name] ?? null;
      if (this.parts.server === null) return cell(value);
      const field = html("input", {
        type: "text", "aria-label": `${name}, row ${index + 1}`, "data-name": name, "data-row": index,
        placeholder: "missing", autocomplete: "off", spellcheck: "false", size: 8,
      });
      field.value = value ?? "";
      return html("td", { class: "edit" }, field);
    });
    const outputCells = outputs.map((_, at) => html("td", { class: at === 0 ? "first-output number" : "number" }));
    this.#cells[index] = outputCells;
    const number = html("th", { scope: "row", class: "row-number", text: index + 1 });
    if (this.parts.server === null) return html("tr", {}, number, ...inputCells, ...outputCells);
    const remove = html("button", {
      type: "button", class: "plain remove", "aria-label": `Remove row ${index + 1}`, text: "\u00d7", click: () => this.#removeRow(index),
    });
    return html("tr", {}, number, ...inputCells, ...outputCells, html("td", {}, remove));
  }

  // Writes the outputs into their cells; the inputs that are being edited stay untouched.
  #paint() {
    let errors = 0;
    this.#rows.forEach((row, index) => {
      const cells = this.#cells[index] ?? [];
      if (row.error) errors += 1;
      cells.forEach((element, at) => {
        const value = row.error ? (at === 0 ? row.error : "") : row.out[at];
        element.textContent = value === undefined ? "" : (value ?? "missing");
        element.classList.toggle("missing", !row.error && value === null);
        element.classList.toggle("error", Boolean(row.error));
      });
    });
    const several = this.parts.server !== null && this.#rows.length > 1;
    this.table.querySelectorAll("tbody tr").forEach((element, index) => element.classList.toggle("chosen", several && index === this.chosen));
    this.note.textContent = errors > 0 ? `${errors} of ${this.#rows.length} rows failed.` : "";
  }

  #input(event) {
    const { name, row } = event.target.dataset;
    if (name === undefined) return;
    const value = event.target.value;
    this.#rows[Number(row)].in[name] = value === "" ? null : value;
    this.#edited = true;
    this.#soon();
  }

  #choose(event) {
    const { row } = event.target.dataset;
    if (row === undefined || Number(row) === this.chosen) return;
    this.chosen = Number(row);
    this.#paint();
    this.state.emit("rows");
  }

  #key(event) {
    const { name, row } = event.target.dataset;
    const step = { ArrowDown: 1, Enter: 1, ArrowUp: -1 }[event.key];
    if (name === undefined || step === undefined) return;
    event.preventDefault();
    const next = this.#field(name, Number(row) + step);
    if (next) next.focus();
    else if (event.key === "Enter") this.#addRow(name);
  }

  // Names may have quotes in them, so they are compared instead of being part of a selector.
  #field(name, row) {
    return [...this.table.querySelectorAll(`input[data-row="${row}"]`)].find((each) => each.dataset.name === name);
  }

  #addRow(name = this.#columns.inputs[0]) {
    const last = this.#rows.at(-1);
    this.#rows.push({ in: { ...last?.in }, out: last?.out ?? [], error: last?.error ?? null });
    this.#edited = true;
    this.chosen = this.#rows.length - 1;
    this.#build();
    this.#field(name, this.chosen)?.focus();
    this.#soon();
  }

  #removeRow(index) {
    this.#rows.splice(index, 1);
    this.#edited = true;
    this.#build();
    this.add.focus();
    this.#soon();
  }

  async #ask() {
    const { inputs } = this.state.data.signature;
    if (inputs.length === 0) return;
    this.#controller?.abort();
    const controller = new AbortController();
    this.#controller = controller;
    const rows = this.#rows.map((row) => inputs.map(({ name }) => row.in[name] ?? null));
    try {
      const answer = await this.parts.server.post("/page/rows", { text: this.parts.text(), rows }, controller.signal);
      if (controller.signal.aborted) return;
      (answer.rows ?? []).forEach((row, index) => {
        if (this.#rows[index]) Object.assign(this.#rows[index], { out: row.out ?? [], error: row.error ?? null });
      });
      this.#paint();
      this.state.emit("rows");
    } catch (error) {
      this.parts.failed(error);
    }
  }
}

function cell(value) {
  return html("td", { class: value === null ? "missing number" : "number", text: value ?? "missing" });
}
