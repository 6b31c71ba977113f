// The stages as columns of lines, side by side.

import { Chooser } from "./chooser.js";
import { Lines } from "./lines.js";
import { counted, html } from "./dom.js";

// The stages that are shown first, by their group. Stages that are linked come before others.
const PREFERRED = ["plan", "arrays", "tensors", "tiles", "asm", "prepared", "clif", "lanes", "expr"];

/** The columns. `leave(step)` moves the focus out of the first or last column; it returns whether it did. */
export class Columns {
  #columns = new Map();
  #shown = [];
  #scrolled = new Map();

  constructor(state, links, parts) {
    this.state = state;
    this.links = links;
    this.leave = parts.leave;
    this.area = parts.area;
    this.chooser = new Chooser({
      label: "Stages shown", area: parts.area, least: 300, changed: (keys) => this.#show(keys),
    });
    parts.bar.append(this.chooser.list);
    this.note = parts.note;
    state.on("data", () => this.#build());
    state.on("stale", () => this.#paintStale());
    this.#build();
  }

  /** The marked lines of each shown column that is linked: `{ name, count }`. */
  get counts() {
    return this.#shown
      .filter((column) => column.stage.linked)
      .map((column) => ({ name: column.stage.name, count: column.lines?.count ?? 0 }));
  }

  /** Moves the focus to the first column. */
  focus(last = false) {
    const linked = this.#shown.filter((column) => column.lines !== null);
    const column = last ? linked.at(-1) : linked[0];
    column?.lines.focus();
    return column !== undefined;
  }

  #build() {
    const { stages } = this.state.data;
    for (const { key, lines } of this.#columns.values()) {
      if (lines?.root.isConnected) this.#scrolled.set(key, [lines.root.scrollTop, lines.root.scrollLeft]);
      lines?.remove();
    }
    this.#columns = new Map();
    // A stage keeps its place among the tabs by its name: the passes that change a graph differ from text to text.
    const items = stages.map((stage) => {
      const key = this.#columns.has(stage.name) ? `${stage.name} ${this.#columns.size}` : stage.name;
      this.#columns.set(key, { key, stage, element: null, lines: null });
      const pass = stage.group === "passes" && stage.name.startsWith("passes: ");
      return { key, label: pass ? stage.name.slice(8) : stage.name, muted: pass ? "passes: " : null };
    });
    const rank = ({ stage }) => {
      const place = PREFERRED.indexOf(stage.group);
      const empty = (stage.lines ?? []).length === 0 ? 100 : 0;
      const apart = stage.linked ? 0 : 50;
      return empty + apart + (place < 0 ? PREFERRED.length : place);
    };
    const preferred = [...this.#columns.values()].sort((a, b) => rank(a) - rank(b)).map((column) => column.key);
    this.area.replaceChildren();
    this.#shown = [];
    if (stages.length === 0) {
      const errors = this.state.data.diagnostics.some((each) => each.severity === "error");
      this.area.append(html("p", { class: "empty", text: errors ? "The text has errors, so it has no stages yet." : "No stages yet." }));
    }
    this.chooser.list.hidden = stages.length === 0;
    this.chooser.setItems(items, preferred);
    this.#paintStale();
  }

  #show(keys) {
    this.#shown = keys.map((key) => this.#columns.get(key)).filter(Boolean);
    for (const column of this.#shown) {
      if (column.element === null) this.#buildColumn(column);
      this.chooser.label(column.key, column.element);
      column.lines?.refresh();
    }
    this.area.replaceChildren(...this.#shown.map((column) => column.element));
    for (const { key, lines } of this.#shown) {
      if (lines !== null && this.#scrolled.has(key)) [lines.root.scrollTop, lines.root.scrollLeft] = this.#scrolled.get(key);
      this.#scrolled.delete(key);
      lines?.show();
    }
  }

  #buildColumn(column) {
    const { stage } = column;
    const count = html("span", { class: "count" });
    const head = html("header", { class: "column-head" },
      html("h3", { text: stage.name }),
      html("span", { class: "summary", text: stage.summary ?? "" }),
      stage.linked ? null : html("span", { class: "badge", text: "not linked" }),
      count);
    column.element = html("section", { class: "column", role: "tabpanel" }, head);
    if ((stage.lines ?? []).length === 0) {
      column.element.append(html("p", { class: "empty", text: stage.note ?? "This stage has no lines." }));
      return;
    }
    if (stage.note) column.element.append(html("p", { class: "note", text: stage.note }));
    column.lines = new Lines(this.state, this.links, stage, {
      changed: (marked) => { count.textContent = marked > 0 ? counted(marked, "line") : ""; },
      sideways: (step) => this.#sideways(column, step),
    });
    column.element.append(column.lines.root);
  }

  #sideways(column, step) {
    const columns = this.#shown.filter((each) => each.lines !== null);
    const next = columns[columns.indexOf(column) + step];
    if (next === undefined) return this.leave(step);
    next.lines.focus();
    return true;
  }

  #paintStale() {
    this.area.classList.toggle("stale", this.state.stale);
    this.note.hidden = !this.state.stale;
    this.note.textContent = this.state.stale ? "The text has errors. These are the stages of the last text without errors." : "";
  }
}
