// Links between the stages: the set of marked nodes, and the nodes at a place of the text.
//
// Three sources can mark nodes. A pinned mark comes first, then the mark under the pointer, then the mark of the cursor
// or of the active line. `origin` is the part of the page that marked, which never scrolls because of its own mark.

/** The marked nodes. Emits "marks" of the state with `{ marked, origin }` when they change. */
export class Links {
  #pinned = null;
  #pointed = null;
  #focused = null;
  #key = "";

  constructor(state) {
    this.state = state;
    this.marked = new Set();
    state.on("data", () => {
      this.#pinned = this.#pointed = this.#focused = null;
      this.#update();
    });
  }

  get pinned() {
    return this.#pinned !== null;
  }

  /** Marks `nodes` while the pointer is over them; `null` if the pointer has left. */
  point(nodes, origin) {
    this.#pointed = entry(nodes, origin);
    this.#update();
  }

  /** Marks `nodes` of the cursor or of the active line. */
  focus(nodes, origin) {
    this.#focused = entry(nodes, origin);
    this.#pointed = null;
    this.#update();
  }

  /** Pins `nodes`. Lifts the pin if exactly they are pinned already, or if `nodes` is empty. */
  pin(nodes, origin) {
    const next = entry(nodes, origin);
    this.#pinned = next !== null && this.#pinned?.key === next.key ? null : next;
    this.#update();
  }

  /** Lifts the pin; without a pin, lifts every mark. Returns whether anything was marked. */
  lift() {
    const had = this.marked.size > 0 || this.pinned;
    if (this.#pinned === null) this.#focused = null;
    this.#pinned = this.#pointed = null;
    this.#update();
    return had;
  }

  #update() {
    const current = this.#pinned ?? this.#pointed ?? this.#focused;
    const key = `${this.#pinned !== null}:${current?.key ?? ""}`;
    if (key === this.#key) return;
    this.#key = key;
    this.marked = new Set(current?.nodes ?? []);
    this.state.emit("marks", { marked: this.marked, origin: current?.origin ?? null });
  }
}

function entry(nodes, origin) {
  if (nodes === null || nodes.length === 0) return null;
  return { nodes, origin, key: [...nodes].sort((a, b) => a - b).join() };
}

/**
 * Returns the ids of the innermost nodes at `position`: all nodes with the shortest span there.
 * `spans` has `{ id, from, to }`. With `closed`, the end of a span belongs to it, as for a cursor.
 */
export function innermost(spans, position, closed) {
  let best = Infinity;
  let ids = [];
  for (const { id, from, to } of spans) {
    if (position < from || position > to || (position === to && !closed)) continue;
    const length = to - from;
    if (length > best) continue;
    if (length < best) ids = [];
    best = length;
    if (!ids.includes(id)) ids.push(id);
  }
  return ids;
}

/** Returns the spans of all `nodes` as one list of `{ id, from, to }`. */
export function spansOf(nodes) {
  return nodes.flatMap(({ id, spans }) => (spans ?? []).map(([from, to]) => ({ id, from, to })));
}
