// The time of one row, divided among operators: a list of bars.

import { Composite } from "./composite.js";
import { html, newId } from "./dom.js";

/** The panel of the times. */
export class Times {
  #items = [];

  constructor(state, links) {
    this.state = state;
    this.title = "Times";
    this.list = html("div", {
      class: "scroller times", role: "listbox", tabindex: "0", "aria-multiselectable": "true", "aria-label": "Time of each operator",
    });
    this.total = html("p", { class: "note" });
    this.element = html("div", { class: "panel-body" }, this.total, this.list);
    this.composite = new Composite(state, links, {
      root: this.list, origin: "times", scroller: this.list,
      element: (index) => this.#items[index] ?? null,
      indexOf: (target) => this.#items.indexOf(target.closest?.(".time")),
    });
  }

  get present() {
    return this.state.data.times.length > 0;
  }

  update() {
    const times = [...this.state.data.times].sort((a, b) => b.ns - a.ns);
    const most = Math.max(...times.map((time) => time.ns), 1e-9);
    const sum = times.reduce((all, time) => all + time.ns, 0);
    this.total.textContent = `${nanoseconds(sum)} for a row, by operator.`;
    this.#items = times.map((time) => {
      const bar = html("span", { class: "length" });
      bar.style.width = `${Math.max(1, (100 * time.ns) / most)}%`;
      return html("div", {
        class: `time${(time.n ?? []).length > 0 ? " linked" : ""}`, role: "option", id: newId("time"), "aria-selected": "false",
      },
      html("span", { class: "what", text: time.label }),
      html("span", { class: "track", "aria-hidden": "true" }, bar),
      html("span", { class: "number", text: nanoseconds(time.ns) }),
      html("span", { class: "number share", text: time.share === null || time.share === undefined ? "" : `${(100 * time.share).toFixed(0)} %` }));
    });
    this.list.replaceChildren(...this.#items);
    this.composite.setItems(times.map((time) => time.n ?? []));
  }
}

function nanoseconds(ns) {
  if (ns >= 1e6) return `${(ns / 1e6).toFixed(2)} ms`;
  if (ns >= 1e3) return `${(ns / 1e3).toFixed(2)} us`;
  return `${ns.toFixed(ns < 10 ? 2 : 1)} ns`;
}
