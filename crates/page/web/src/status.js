// The status line: the marked operator with its text, and the page's message. A live region says what is marked.

import { counted, debounce } from "./dom.js";

/** Keeps the status line. `parts` has the elements `label`, `text`, `message` and `live`, the `editor` and the `columns`. */
export class Status {
  #announce = debounce(250, (words) => { this.parts.live.textContent = words; });

  constructor(state, links, parts) {
    this.state = state;
    this.links = links;
    this.parts = parts;
    state.on("marks", () => this.#marks());
    state.on("message", () => this.#message());
    this.#marks();
    this.#message();
  }

  #marks() {
    const { label, text, editor, columns } = this.parts;
    document.body.classList.toggle("pinned", this.links.pinned);
    const ids = [...this.links.marked];
    const byId = new Map(this.state.data.nodes.map((node) => [node.id, node]));
    const nodes = ids.map((id) => byId.get(id)).filter(Boolean);
    if (nodes.length === 0) {
      label.textContent = "";
      text.textContent = this.state.data.nodes.length > 0 ? "Point at an operator or a line to see it in every stage. Click pins, Escape lifts." : "";
      text.classList.add("hint");
      this.#announce("");
      return;
    }
    const names = [...new Set(nodes.map((node) => node.label))];
    const shown = names.slice(0, 3).join(", ") + (names.length > 3 ? ` and ${names.length - 3} more` : "");
    label.textContent = this.links.pinned ? `${shown} (pinned)` : shown;
    text.classList.remove("hint");
    const texts = new Set(nodes.slice(0, 20).flatMap((node) => editor.textsOf(node.id)).map((each) => each.replace(/\s+/g, " ")));
    text.textContent = [...texts].slice(0, 4).join("  \u00b7  ");
    const places = columns.counts.map(({ name, count }, index) => (index === 0 ? `${counted(count, "line")} in ${name}` : `${count} in ${name}`));
    this.#announce([shown, ...places].join(", ") + (this.links.pinned ? ", pinned" : ""));
  }

  #message() {
    const { text, kind } = this.state.message;
    this.parts.message.textContent = text;
    this.parts.message.className = `message-line ${kind}`;
  }
}
