// The frame of one evaluation as a map: each slot is a box, from its first step to its last, at its byte offset.

import { Composite } from "./composite.js";
import { counted, html, newId, svg } from "./dom.js";

const LEFT = 52;
const TOP = 24;
const ROW = 22;
const CHARACTER = 6.7;
// A frame of more slots is drawn after the page was shown.
const MOST_AT_ONCE = 400;

/** The panel of the frame. */
export class Frame {
  #boxes = [];

  constructor(state, links) {
    this.state = state;
    this.title = "Frame";
    this.drawing = svg("svg", { class: "frame", role: "listbox", tabindex: "0", "aria-label": "Slots of the frame", "aria-multiselectable": "true" });
    this.scroller = html("div", { class: "scroller", role: "group", "aria-label": "Map of the frame" }, this.drawing);
    this.summary = html("p", { class: "note" });
    this.element = html("div", { class: "panel-body" }, this.summary, this.scroller);
    this.composite = new Composite(state, links, {
      root: this.drawing, origin: "frame", scroller: this.scroller,
      element: (index) => this.#boxes[index] ?? null,
      indexOf: (target) => this.#boxes.indexOf(target.closest?.(".slot")),
    });
    this.width = 0;
    new ResizeObserver(() => {
      if (Math.abs(this.scroller.clientWidth - this.width) > 4) this.update();
    }).observe(this.scroller);
  }

  get present() {
    return this.state.data.frame !== null;
  }

  update() {
    const { frame } = this.state.data;
    if (frame === null) return;
    if (frame.slots.length <= MOST_AT_ONCE) return this.#draw(frame);
    // A page with another frame may be there by then, and has drawn it or will.
    const draw = () => this.state.data.frame === frame && this.#draw(frame);
    if (window.requestIdleCallback) requestIdleCallback(draw, { timeout: 1000 });
    else setTimeout(draw, 200);
  }

  #draw(frame) {
    const slots = [...frame.slots].sort((a, b) => a.from - b.from || a.offset - b.offset);
    this.width = this.scroller.clientWidth;
    const steps = Math.max(frame.steps, ...slots.map((slot) => slot.to + 1), 1);
    const room = Math.max(this.width, 300) - LEFT - 16;
    const column = Math.max(room / steps, 14);
    const { top, height, rows } = layout(slots, frame.bytes);
    const wide = LEFT + column * steps + 8;
    this.drawing.setAttribute("width", wide);
    this.drawing.setAttribute("height", height + 8);
    this.drawing.replaceChildren(...axes(steps, column, rows, height, wide));
    const places = slots.map((slot) => place(slot, column, top));
    this.#boxes = slots.map((slot, index) => box(slot, places[index]));
    // The words are apart from the boxes, because they are often cut: a box's own name has them in full.
    const words = slots.map((slot, index) => word(slot, places[index]));
    this.drawing.append(...this.#boxes, svg("g", { class: "words", "aria-hidden": "true" }, ...words));
    this.composite.setItems(slots.map((slot) => slot.n ?? []));
    this.summary.textContent = `${counted(frame.bytes, "byte")}, ${counted(frame.steps, "step")}: steps go to the right, bytes down.`;
  }
}

// Each offset at which a slot begins has a row; a slot reaches down to the row of its end.
function layout(slots, bytes) {
  const edges = [...new Set(slots.flatMap((slot) => [slot.offset, slot.offset + slot.bytes]).concat(bytes))].sort((a, b) => a - b);
  const place = new Map();
  let y = TOP;
  edges.forEach((edge, index) => {
    place.set(edge, y);
    const next = edges[index + 1];
    // Bytes between two edges have the height of a row; a piece without a slot is narrow.
    const used = slots.some((slot) => slot.offset <= edge && slot.offset + slot.bytes > edge);
    if (next !== undefined) y += used ? ROW : ROW / 2;
  });
  const starts = [...new Set(slots.map((slot) => slot.offset))];
  return { top: (edge) => place.get(edge), height: y, rows: starts.map((edge) => ({ edge, y: place.get(edge) })) };
}

function axes(steps, column, rows, height, wide) {
  const parts = rows.flatMap(({ edge, y }) => [
    svg("line", { class: "grid", x1: LEFT, x2: wide - 8, y1: y, y2: y }),
    svg("text", { class: "axis", x: LEFT - 8, y: y + 15, "text-anchor": "end", text: `0x${edge.toString(16).padStart(2, "0")}` }),
  ]);
  parts.push(svg("text", { class: "axis", x: LEFT - 8, y: 14, "text-anchor": "end", text: "step" }));
  const every = [1, 2, 5, 10, 20, 50, 100, 200, 500].find((each) => each * column >= 28) ?? 1000;
  for (let step = 0; step < steps; step += every) {
    parts.push(svg("text", { class: "axis", x: LEFT + column * (step + 0.5), y: 14, "text-anchor": "middle", text: String(step) }));
    parts.push(svg("line", { class: "grid", x1: LEFT + column * step, x2: LEFT + column * step, y1: TOP, y2: height }));
  }
  return [svg("g", { "aria-hidden": "true" }, ...parts)];
}

function place(slot, column, top) {
  const y = top(slot.offset);
  return {
    x: LEFT + column * slot.from + 1, y: y + 1,
    width: Math.max(column * (slot.to - slot.from + 1) - 2, 2), height: Math.max(top(slot.offset + slot.bytes) - y - 2, 2),
  };
}

function box(slot, { x, y, width, height }) {
  const label = `${slot.what}, ${slot.type}, ${slot.bytes} bytes at ${slot.offset}, steps ${slot.from} to ${slot.to}`;
  const linked = (slot.n ?? []).length > 0;
  return svg("g", { class: `slot${linked ? " linked" : ""}`, role: "option", id: newId("slot"), "aria-label": label, "aria-selected": "false" },
    svg("title", { text: label }), svg("rect", { x, y, width, height, rx: 2 }));
}

function word(slot, { x, y, width, height }) {
  const fitting = Math.floor((width - 8) / CHARACTER);
  const short = slot.what.replace(/^(literal |[a-z_]+\.(?=[a-z_]))/, "");
  const whole = [`${slot.what} ${slot.type}`, slot.what, short].find((each) => each.length <= fitting);
  const cut = fitting >= 3 ? `${short.slice(0, fitting - 1)}\u2026` : "";
  return svg("text", { x: x + 5, y: y + Math.min(height / 2 + 4, 14), text: whole ?? cut });
}
