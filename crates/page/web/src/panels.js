// The panels below the stages: rows, plot, frame, work, tests and times. Panels without data have no tab.

import { Chooser } from "./chooser.js";
import { html } from "./dom.js";

/** The panels. Each has `title`, `element`, `present` and `update()`. */
export class Panels {
  #sections = new Map();

  constructor(state, { area, bar, panels }) {
    this.state = state;
    this.area = area;
    this.panels = panels;
    this.chooser = new Chooser({ label: "Panels shown", area, least: 340, changed: (keys) => this.#show(keys) });
    bar.append(this.chooser.list);
    for (const [key, panel] of Object.entries(panels)) {
      const heading = html("h3", {});
      const head = html("header", { class: "column-head" }, heading);
      const section = html("section", { class: `panel panel-${key}`, role: "tabpanel" }, head, panel.element);
      this.#sections.set(key, { section, heading });
    }
    state.on("data", () => this.#update());
    state.on("stale", () => area.classList.toggle("stale", state.stale));
    this.#update();
  }

  #update() {
    const keys = Object.keys(this.panels).filter((key) => this.panels[key].present);
    for (const key of keys) this.panels[key].update();
    const items = keys.map((key) => ({ key, label: this.panels[key].title, muted: null }));
    this.area.parentElement.hidden = keys.length === 0;
    this.chooser.setItems(items, keys);
  }

  #show(keys) {
    const sections = keys.map((key) => {
      const { section, heading } = this.#sections.get(key);
      this.chooser.label(key, section);
      heading.textContent = this.panels[key].title;
      return section;
    });
    // Panels that stay where they are keep their scroll position and focus.
    const same = sections.length === this.area.children.length && sections.every((each, index) => each === this.area.children[index]);
    if (!same) this.area.replaceChildren(...sections);
  }
}
