// The steps of arrays, tensors and tiles as a table: sizes, kernels, products, bytes.

import { Composite } from "./composite.js";
import { html, newId } from "./dom.js";

/** The panel of the work. */
export class Work {
  #rows = [];

  constructor(state, links) {
    this.state = state;
    this.title = "Work";
    this.table = html("table", { class: "grid", role: "grid", tabindex: "0", "aria-multiselectable": "true" });
    this.scroller = html("div", { class: "scroller" }, this.table);
    this.note = html("p", { class: "note" });
    this.element = html("div", { class: "panel-body" }, this.scroller, this.note);
    this.composite = new Composite(state, links, {
      root: this.table, origin: "work", scroller: this.scroller,
      element: (index) => this.#rows[index] ?? null,
      indexOf: (target) => this.#rows.indexOf(target.closest?.("tr")),
    });
  }

  get present() {
    return this.state.data.work !== null;
  }

  update() {
    const { work } = this.state.data;
    if (work === null) return;
    this.title = work.title || "Work";
    this.table.setAttribute("aria-label", this.title);
    const isNumber = (text) => !text || /^[-+]?[\d.,_]+(e[-+]?\d+)?$/i.test(text);
    const numeric = work.columns.map((_, column) => work.rows.every(({ cells }) => isNumber(cells[column])));
    const aligned = (column) => (numeric[column] ? "number" : null);
    const head = html("tr", {}, ...work.columns.map((name, column) => html("th", { scope: "col", class: aligned(column), text: name })));
    this.#rows = work.rows.map(({ cells, n }) => {
      const linked = (n ?? []).length > 0 ? "linked" : null;
      return html("tr", { id: newId("work"), class: linked, "aria-selected": "false" },
        ...work.columns.map((_, column) => html("td", { class: aligned(column), text: cells[column] ?? "" })));
    });
    this.table.replaceChildren(html("thead", {}, head), html("tbody", {}, ...this.#rows));
    this.composite.setItems(work.rows.map((row) => row.n ?? []));
    this.note.hidden = !work.note;
    this.note.textContent = work.note ?? "";
  }
}
