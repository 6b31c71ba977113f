// The lines of one stage, in blocks. The browser lays out a block when it comes near the view. Stages of more than 1,000 lines are built only then, too, so
// that the browser's search finds nothing in the rest. Stages of more than 500 lines have no colours, because these multiply the elements.

import { Composite } from "./composite.js";
import { html, newId } from "./dom.js";

const LINE = 20;
const BLOCK = 250;
const MOST_AT_ONCE = 1000;
const MOST_COLOURED = 500;
// A place of the frame, an operator, a value of a graph or of the code generator, a type, and the offset of an instruction.
const TOKEN = new RegExp([
  /(\[0x[0-9a-f]+\])/, /(\b[a-z_]+(?:\.[a-z_0-9]+)+)/, /(%\d+|\bv\d+\b|\bblock\d+\b)/,
  /(\b(?:i8|i16|i32|i64|u64|f32|f64|unit|bool|text|bytes|date|timestamp|duration)\??(?![\w.]))/, /(^ *@?[0-9a-f]{4}\b)/,
].map((each) => each.source).join("|"), "g");
const TOKEN_CLASSES = ["place", "operator", "value", "type", "place"];

/** The list of the lines of `stage`, linked. */
export class Lines {
  #elements;
  #blocks = [];
  #shades;
  #observer = null;

  constructor(state, links, stage, parts) {
    this.lines = stage.lines;
    this.#elements = new Array(this.lines.length).fill(null);
    this.#shades = shades(this.lines);
    this.prefix = newId("line");
    this.inner = html("div", { class: "lines", role: "presentation" });
    this.root = html("div", {
      class: "scroller", role: "listbox", tabindex: "0", "aria-multiselectable": "true", "aria-label": `Lines of ${stage.name}`,
    }, this.inner);
    const longest = this.lines.reduce((most, line) => Math.max(most, line.t.length), 0);
    this.inner.style.minWidth = `${longest + 4}ch`;
    this.#build();
    this.composite = new Composite(state, links, {
      root: this.root, origin: `stage ${stage.name}`,
      element: (index) => this.#elements[index] ?? null,
      indexOf: (target) => {
        const line = target.closest?.(".line");
        return line ? Number(line.dataset.line) : -1;
      },
      inView: (index) => {
        const top = index * LINE - this.root.scrollTop;
        return top + LINE > 0 && top < this.root.clientHeight;
      },
      reveal: (index, nearest) => this.#reveal(index, nearest),
      changed: parts.changed,
      sideways: parts.sideways,
    });
    this.composite.setItems(this.lines.map((line) => line.n ?? []));
  }

  get count() {
    return this.composite.count;
  }

  focus() {
    this.root.focus({ focusVisible: true, preventScroll: true });
  }

  show() {
    this.composite.show();
  }

  /** Tells the column how many lines are marked, after it was hidden. */
  refresh() {
    this.composite.parts.changed(this.count);
  }

  /** Ends the list, for lines that the page shows no longer. */
  remove() {
    this.composite.remove();
    this.#observer?.disconnect();
  }

  #build() {
    for (let start = 0; start < this.lines.length; start += BLOCK) {
      const block = html("div", { class: "block", role: "presentation", "data-block": this.#blocks.length });
      block.style.height = `${Math.min(BLOCK, this.lines.length - start) * LINE}px`;
      this.#blocks.push(block);
    }
    this.inner.append(...this.#blocks);
    if (this.lines.length <= MOST_AT_ONCE) {
      this.#blocks.forEach((_, number) => this.#fill(number));
      return;
    }
    this.#observer = new IntersectionObserver((entries) => {
      for (const { isIntersecting, target } of entries) if (isIntersecting) this.#fill(Number(target.dataset.block));
    }, { root: this.root, rootMargin: "1000px" });
    for (const block of this.#blocks) this.#observer.observe(block);
  }

  #fill(number) {
    const block = this.#blocks[number];
    if (block === undefined || block.firstChild) return;
    const start = number * BLOCK;
    const end = Math.min(start + BLOCK, this.lines.length);
    const coloured = this.lines.length <= MOST_COLOURED;
    for (let index = start; index < end; index += 1) block.append(this.#line(index, coloured));
    // The first lines are built before there is anything to paint.
    for (let index = start; index < end; index += 1) this.composite?.paint(index);
  }

  #line(index, coloured) {
    const { t, k, n } = this.lines[index];
    const linked = (n ?? []).length > 0;
    const shade = this.#shades[index] ? " shade" : "";
    // A blank line is no option of the list: an option must have a name.
    if (t.trim() === "") {
      this.#elements[index] = html("div", { class: "line", role: "presentation", "data-line": index });
      return this.#elements[index];
    }
    const element = html("div", {
      class: `line ${k ?? "code"}${linked ? " linked" : ""}${shade}`, role: "option", id: `${this.prefix}-${index}`,
      "data-line": index, "aria-selected": "false", "aria-disabled": linked ? null : "true",
    });
    if (coloured && k !== "heading" && k !== "note") element.append(...coloursOf(t));
    else element.textContent = t;
    this.#elements[index] = element;
    return element;
  }

  #reveal(index, nearest) {
    this.#fill(Math.floor(index / BLOCK));
    const { root } = this;
    const top = index * LINE;
    const high = root.clientHeight;
    if (nearest && top >= root.scrollTop && top + LINE <= root.scrollTop + high) return;
    root.scrollTop = Math.max(0, top - Math.floor(high / 3));
    root.scrollLeft = 0;
  }
}

// Neighbouring lines of different nodes are shaded alternately.
function shades(lines) {
  let key = "";
  let shade = false;
  return lines.map(({ n }) => {
    const next = (n ?? []).join();
    if (next === "") return false;
    if (next !== key) shade = !shade;
    key = next;
    return shade;
  });
}

function coloursOf(text) {
  const parts = [];
  let end = 0;
  for (const match of text.matchAll(TOKEN)) {
    if (match.index > end) parts.push(text.slice(end, match.index));
    const kind = match.slice(1).findIndex((group) => group !== undefined);
    parts.push(html("span", { class: TOKEN_CLASSES[kind], text: match[0] }));
    end = match.index + match[0].length;
  }
  parts.push(text.slice(end));
  return parts;
}
