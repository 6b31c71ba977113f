// The plot of one output over one input, drawn by hand as SVG. The line has gaps where the output is missing.

import { debounce, html, newId, svg } from "./dom.js";
import { decimal, scale, ticks } from "./axis.js";

const NUMERIC = /^(i32|i64|u64|f32|f64|weak_float|INT32|INT64|FLOAT32|FLOAT64)\??$/;
const MARGIN = { left: 60, right: 14, top: 10, bottom: 38 };

/** The panel of the plot. `parts` has `server` (`null` in a file), `text()`, `rows` (the panel of the rows) and `failed(error)`. */
export class Plot {
  #plot = null;
  #controller = null;
  #message = "";
  #soon = debounce(250, () => this.#ask());

  constructor(state, parts) {
    this.state = state;
    this.parts = parts;
    this.title = "Plot";
    this.input = html("select", { id: newId("plot"), change: () => this.#changed() });
    this.output = html("select", { id: newId("plot"), change: () => this.#changed() });
    this.drawing = svg("svg", { class: "plot", role: "img" });
    this.box = html("div", { class: "plot-box" }, this.drawing);
    this.readout = html("span", { class: "readout" });
    this.points = html("details", { class: "points", toggle: () => this.#table() }, html("summary", { text: "Points as a table" }));
    this.note = html("p", { class: "note" });
    this.element = html("div", { class: "panel-body scroller", tabindex: "0", role: "group", "aria-label": "Plot" },
      html("div", { class: "panel-tools" },
        html("label", { for: this.output.id, text: "Output" }), this.output,
        html("label", { for: this.input.id, text: "over" }), this.input, this.readout),
      this.box, this.note, this.points);
    this.drawing.addEventListener("mousemove", (event) => this.#over(event));
    this.drawing.addEventListener("mouseleave", () => this.#over(null));
    new ResizeObserver(() => this.#draw()).observe(this.box);
    state.on("rows", () => this.#soon());
  }

  get present() {
    return this.state.data.plots.length > 0 || this.#choices().inputs.length > 0;
  }

  update() {
    const { inputs, outputs } = this.#choices();
    options(this.input, inputs, this.state.data.plots[0]?.input);
    options(this.output, outputs, this.state.data.plots[0]?.output);
    this.#changed();
  }

  #choices() {
    const { plots, signature } = this.state.data;
    const names = (list) => list.filter(({ type }) => NUMERIC.test(type)).map(({ name }) => name);
    const served = this.parts.server !== null;
    const inputs = served ? names(signature.inputs) : [];
    const outputs = served ? names(signature.outputs) : [];
    if (served && (inputs.length === 0 || outputs.length === 0)) return { inputs: [], outputs: [] };
    const all = (key, more) => [...new Set([...plots.map((plot) => plot[key]), ...more])];
    return { inputs: all("input", inputs), outputs: all("output", outputs) };
  }

  #changed() {
    const found = this.state.data.plots.find((plot) => plot.input === this.input.value && plot.output === this.output.value);
    if (found && !this.parts.rows.edited) {
      this.#take(found);
      return;
    }
    if (this.parts.server === null) this.#take(null, "The data have no points for this pair.");
    else this.#ask();
  }

  #take(plot, message = "") {
    this.#plot = plot;
    this.#message = message;
    this.#draw();
    this.#table();
  }

  async #ask() {
    if (this.parts.server === null || !this.input.value || !this.output.value) return;
    this.#controller?.abort();
    const controller = new AbortController();
    this.#controller = controller;
    const body = { text: this.parts.text(), input: this.input.value, output: this.output.value, row: this.parts.rows.row };
    try {
      const plot = await this.parts.server.post("/page/plot", body, controller.signal);
      if (!controller.signal.aborted) this.#take(plot);
    } catch (error) {
      if (error.name !== "AbortError") this.#take(null, error.message);
    }
  }

  #draw() {
    const width = Math.max(this.box.clientWidth, 200);
    const height = Math.max(this.box.clientHeight, 160);
    this.drawing.setAttribute("width", width);
    this.drawing.setAttribute("height", height);
    const present = (this.#plot?.points ?? []).filter(([x, y]) => Number.isFinite(x) && Number.isFinite(y));
    const total = this.#plot?.points.length ?? 0;
    this.note.textContent = this.#message || (total > 0 && present.length === 0 ? "The output is missing at every point." : "");
    this.note.hidden = this.note.textContent === "";
    this.points.hidden = total === 0;
    this.view = null;
    this.drawing.replaceChildren();
    if (present.length === 0) {
      this.drawing.setAttribute("aria-label", this.note.textContent || "No plot");
      return;
    }
    const { points, input, output } = this.#plot;
    const xs = points.map(([x]) => x).filter(Number.isFinite);
    const ys = present.map(([, y]) => y);
    const x = scale(xs, MARGIN.left, width - MARGIN.right, false);
    const y = scale(ys, height - MARGIN.bottom, MARGIN.top, true);
    this.view = { x, y, present };
    this.drawing.setAttribute("aria-label", `${output} over ${input}: ${input} from ${decimal(x.low)} to ${decimal(x.high)}, `
      + `${output} from ${decimal(Math.min(...ys))} to ${decimal(Math.max(...ys))}${present.length < total ? ", missing in parts" : ""}`);
    this.cursor = svg("g", { class: "cursor", visibility: "hidden" }, svg("line", {}), svg("circle", { r: 3.5 }));
    this.drawing.append(...axes(x, y, width, height, this.#plot), ...line(points, x, y), this.cursor);
  }

  #over(event) {
    if (!this.view) return;
    if (event === null) {
      this.cursor.setAttribute("visibility", "hidden");
      this.readout.textContent = "";
      return;
    }
    const { x, y, present } = this.view;
    const at = event.clientX - this.drawing.getBoundingClientRect().left;
    const near = present.reduce((best, point) => (Math.abs(x.at(point[0]) - at) < Math.abs(x.at(best[0]) - at) ? point : best));
    const [rule, dot] = this.cursor.children;
    const [cx, cy] = [x.at(near[0]), y.at(near[1])];
    for (const [name, value] of Object.entries({ x1: cx, x2: cx, y1: y.end, y2: y.start })) rule.setAttribute(name, value);
    dot.setAttribute("cx", cx);
    dot.setAttribute("cy", cy);
    this.cursor.setAttribute("visibility", "visible");
    this.readout.textContent = `${this.#plot.input} ${decimal(near[0])}, ${this.#plot.output} ${decimal(near[1])}`;
  }

  #table() {
    this.points.querySelector("table")?.remove();
    if (!this.points.open || !this.#plot) return;
    const { input, output, points } = this.#plot;
    this.points.append(html("table", { class: "grid" },
      html("thead", {}, html("tr", {}, html("th", { scope: "col", text: input }), html("th", { scope: "col", text: output }))),
      html("tbody", {}, ...points.map(([x, y]) => html("tr", {},
        html("td", { class: "number", text: x }), html("td", { class: y === null ? "number missing" : "number", text: y ?? "missing" }))))));
  }
}

function options(select, names, preferred) {
  const before = select.value;
  select.replaceChildren(...names.map((name) => html("option", { value: name, text: name })));
  select.value = names.includes(before) ? before : (names.includes(preferred) ? preferred : (names[0] ?? ""));
}

function axes(x, y, width, height, { input, output }) {
  const bottom = height - MARGIN.bottom;
  const parts = [];
  for (const value of ticks(y, Math.max(3, Math.floor(height / 34)))) {
    parts.push(svg("line", { class: value === 0 ? "zero" : "grid", x1: MARGIN.left, x2: width - MARGIN.right, y1: y.at(value), y2: y.at(value) }));
    parts.push(svg("text", { class: "axis", x: MARGIN.left - 8, y: y.at(value) + 4, "text-anchor": "end", text: decimal(value) }));
  }
  for (const value of ticks(x, Math.max(3, Math.floor(width / 60)))) {
    parts.push(svg("line", { class: "tick", x1: x.at(value), x2: x.at(value), y1: bottom, y2: bottom + 4 }));
    parts.push(svg("text", { class: "axis", x: x.at(value), y: bottom + 17, "text-anchor": "middle", text: decimal(value) }));
  }
  parts.push(svg("line", { class: "base", x1: MARGIN.left, x2: width - MARGIN.right, y1: bottom, y2: bottom }));
  parts.push(svg("text", { class: "axis name", x: width - MARGIN.right, y: height - 5, "text-anchor": "end", text: input }));
  parts.push(svg("text", { class: "axis name", x: MARGIN.left + 6, y: MARGIN.top + 9, text: output }));
  return parts;
}

// A stretch of present points is a line; a single present point between missing ones is a dot.
function line(points, x, y) {
  const runs = [[]];
  for (const point of points) {
    if (Number.isFinite(point[0]) && Number.isFinite(point[1])) runs.at(-1).push(point);
    else if (runs.at(-1).length > 0) runs.push([]);
  }
  const place = ([px, py]) => `${x.at(px).toFixed(1)} ${y.at(py).toFixed(1)}`;
  return runs.filter((run) => run.length > 0).map((run) => (run.length === 1
    ? svg("circle", { class: "dot", cx: x.at(run[0][0]), cy: y.at(run[0][1]), r: 2.5 })
    : svg("path", { class: "curve", d: `M${run.map(place).join("L")}` })));
}
