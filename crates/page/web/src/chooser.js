// Tabs that choose which panes stand side by side: the stages, and the panels below them. As many panes are shown as
// fit; a tab that is chosen beyond that takes the place of the pane that was chosen longest ago.

import { html, newId } from "./dom.js";

/** A tab list. `parts` has `label`, `area` (whose width counts), `least` (the least width of a pane, in pixels), and
 * `changed(keys)`, which is called with the keys of the panes to show, in the order of their tabs. */
export class Chooser {
  #items = [];
  #wanted = [];
  #chosen = false;
  #shown = [];
  #focus = 0;

  constructor(parts) {
    this.parts = parts;
    this.list = html("div", {
      class: "tabs", role: "tablist", "aria-label": parts.label, "aria-multiselectable": "true",
      keydown: (event) => this.#key(event),
      click: (event) => {
        const index = this.#items.findIndex((item) => item.tab.contains(event.target));
        if (index >= 0) this.#choose(index);
      },
    });
    new ResizeObserver(() => this.#show()).observe(parts.area);
  }

  /** Sets the tabs: `{ key, label, muted }`, and the `preferred` keys, the most wanted first. Earlier choices stay. */
  setItems(items, preferred) {
    this.#items = items.map((item) => {
      const tab = html("button", { type: "button", role: "tab", class: "tab", id: newId("tab") },
        item.muted ? html("span", { class: "muted", text: item.muted }) : null, item.label);
      return { ...item, tab };
    });
    const keys = items.map((item) => item.key);
    if (this.#chosen) this.#wanted = this.#wanted.filter((key) => keys.includes(key));
    if (!this.#chosen || this.#wanted.length === 0) {
      this.#chosen = false;
      this.#wanted = [...new Set([...preferred, ...keys])].filter((key) => keys.includes(key));
    }
    this.#focus = 0;
    this.list.replaceChildren(...this.#items.map((item) => item.tab));
    this.#shown = [];
    this.#show();
  }

  /** Ties `pane`, the element of the pane `key`, to its tab. */
  label(key, pane) {
    const { tab } = this.#items.find((item) => item.key === key);
    if (!pane.id) pane.id = newId("pane");
    pane.setAttribute("aria-labelledby", tab.id);
    tab.setAttribute("aria-controls", pane.id);
  }

  /** Shows the pane `key` if it is hidden. */
  open(key) {
    const index = this.#items.findIndex((item) => item.key === key);
    if (index >= 0 && !this.#shown.includes(key)) this.#choose(index);
  }

  get #capacity() {
    return Math.max(1, Math.floor(this.parts.area.clientWidth / this.parts.least));
  }

  #show() {
    const wanted = new Set(this.#wanted.slice(0, this.#capacity));
    const shown = this.#items.map((item) => item.key).filter((key) => wanted.has(key));
    if (shown.length > 0 && shown.join("\n") === this.#shown.join("\n")) return;
    this.#shown = shown;
    this.#paint();
    this.parts.changed(shown);
  }

  #paint() {
    this.#items.forEach((item, index) => {
      const shown = this.#shown.includes(item.key);
      item.tab.setAttribute("aria-selected", String(shown));
      if (!shown) item.tab.removeAttribute("aria-controls");
      item.tab.tabIndex = index === this.#focus ? 0 : -1;
    });
    this.#scroll();
  }

  // The list scrolls sideways where it is narrow: the tab of the focus, or the first shown one, is in view.
  #scroll() {
    const first = this.#items.findIndex((item) => this.#shown.includes(item.key));
    const tab = this.#items[this.list.contains(document.activeElement) ? this.#focus : first]?.tab;
    if (!tab) return;
    const outer = this.list.getBoundingClientRect();
    const inner = tab.getBoundingClientRect();
    if (inner.left < outer.left) this.list.scrollLeft += inner.left - outer.left;
    else if (inner.right > outer.right) this.list.scrollLeft += inner.right - outer.right;
  }

  #choose(index) {
    const { key } = this.#items[index];
    this.#focus = index;
    const rest = this.#wanted.slice(0, this.#capacity).filter((each) => each !== key);
    const hide = this.#shown.includes(key) && rest.length > 0;
    this.#wanted = hide ? rest : [key, ...rest];
    this.#chosen = true;
    this.#show();
    this.#paint();
  }

  #key(event) {
    const last = this.#items.length - 1;
    const steps = {
      ArrowRight: this.#focus === last ? 0 : this.#focus + 1,
      ArrowLeft: this.#focus === 0 ? last : this.#focus - 1,
      Home: 0,
      End: last,
    };
    if (!(event.key in steps)) return;
    event.preventDefault();
    this.#focus = steps[event.key];
    this.#paint();
    this.#items[this.#focus].tab.focus();
    // With room for one pane, the tabs are the usual ones: the arrow shows the pane.
    if (this.#capacity === 1) this.open(this.#items[this.#focus].key);
  }
}
