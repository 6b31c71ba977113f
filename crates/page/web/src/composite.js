// A list of linked items with one tab stop: the lines of a stage, the boxes of the frame, the rows of a table.
// Pointing at an item marks its nodes everywhere; arrow keys move to the next linked item; Enter or a click pins.

/** Items that follow the marks. `parts` has:
 *
 * - `root`: the element with the tab stop, which has the items inside;
 * - `origin`: the name of this part of the page, in the marks;
 * - `element(index)`: the element of an item, or `null` if it is not built yet;
 * - `indexOf(target)`: the index of the item that has the element `target`, or -1;
 * - `reveal(index)`, `inView(index)`: scrolling; by default with the element's rectangle inside `parts.scroller`;
 * - `sideways(step)`: moves the focus to the neighbouring column, for the left and right arrow;
 * - `changed(count)`: is told how many items are marked.
 *
 * `remove()` ends the list.
 */
export class Composite {
  #index = new Map();
  #nodes = [];
  #marked = new Set();
  #active = -1;
  #pointer = { x: -1, y: -1 };
  #frame = 0;

  constructor(state, links, parts) {
    this.links = links;
    this.parts = parts;
    const { root } = parts;
    root.addEventListener("mouseover", (event) => this.#over(event));
    root.addEventListener("mousemove", (event) => this.#over(event));
    root.addEventListener("mouseleave", () => {
      cancelAnimationFrame(this.#frame);
      links.point(null, parts.origin);
    });
    root.addEventListener("click", (event) => this.#click(event));
    root.addEventListener("keydown", (event) => this.#key(event));
    root.addEventListener("focus", () => this.#focus());
    root.addEventListener("blur", () => root.classList.remove("by-key"));
    this.remove = state.on("marks", ({ marked, origin }) => this.#follow(marked, origin));
  }

  /** Sets the nodes of each item, in order. Elements may be built after this. */
  setItems(nodes) {
    this.#nodes = nodes;
    this.#index = new Map();
    nodes.forEach((ids, item) => {
      for (const id of ids) {
        if (!this.#index.has(id)) this.#index.set(id, []);
        this.#index.get(id).push(item);
      }
    });
    this.#marked = this.#itemsOf(this.links.marked);
    this.#active = -1;
    this.parts.root.removeAttribute("aria-activedescendant");
    for (const item of this.#marked) this.paint(item);
  }

  /** The number of marked items. */
  get count() {
    return this.#marked.size;
  }

  /** Gives the element of `item` its classes; for elements that are built after the items were set. */
  paint(item) {
    const element = this.parts.element(item);
    if (element === null) return;
    const marked = this.#marked.has(item);
    element.classList.toggle("marked", marked);
    element.classList.toggle("active", item === this.#active);
    element.setAttribute("aria-selected", String(marked));
  }

  /** Scrolls to the first marked item if no marked item is in view. */
  show() {
    if (this.#marked.size === 0) return;
    let first = Infinity;
    for (const item of this.#marked) {
      if (this.#inView(item)) return;
      first = Math.min(first, item);
    }
    this.#reveal(first);
  }

  #itemsOf(marked) {
    const items = new Set();
    for (const id of marked) for (const item of this.#index.get(id) ?? []) items.add(item);
    return items;
  }

  #follow(marked, origin) {
    const before = this.#marked;
    this.#marked = this.#itemsOf(marked);
    for (const item of before) if (!this.#marked.has(item)) this.paint(item);
    for (const item of this.#marked) if (!before.has(item)) this.paint(item);
    this.parts.changed?.(this.#marked.size);
    if (origin !== this.parts.origin) this.show();
  }

  // A list that scrolls below a resting pointer sends events too: only a pointer that moved counts.
  #over(event) {
    const { clientX: x, clientY: y, target } = event;
    if (x === this.#pointer.x && y === this.#pointer.y) return;
    this.#pointer = { x, y };
    cancelAnimationFrame(this.#frame);
    this.#frame = requestAnimationFrame(() => {
      this.links.point(this.#nodes[this.parts.indexOf(target)] ?? null, this.parts.origin);
    });
  }

  #click(event) {
    const item = this.parts.indexOf(event.target);
    if (item < 0) return;
    this.#activate(item);
    this.links.pin(this.#nodes[item] ?? [], this.parts.origin);
  }

  #activate(item) {
    const before = this.#active;
    this.#active = item;
    if (before >= 0) this.paint(before);
    this.paint(item);
    const element = this.parts.element(item);
    if (element?.id) this.parts.root.setAttribute("aria-activedescendant", element.id);
  }

  #moveTo(item) {
    this.parts.root.classList.add("by-key");
    this.#reveal(item, true);
    this.#activate(item);
    this.links.focus(this.#nodes[item], this.parts.origin);
  }

  // The pointer focuses too: then nothing moves.
  #focus() {
    if (!this.parts.root.matches(":focus-visible")) return;
    const marked = [...this.#marked].sort((a, b) => a - b);
    const item = marked.includes(this.#active) ? this.#active : (marked[0] ?? this.#active);
    const found = item >= 0 ? item : this.#next(-1, 1);
    if (found >= 0) this.#moveTo(found);
  }

  #next(from, step) {
    let item = from + step;
    while (item >= 0 && item < this.#nodes.length) {
      if (this.#nodes[item].length > 0) return item;
      item += step;
    }
    return -1;
  }

  #key(event) {
    if (event.altKey || event.ctrlKey || event.metaKey || event.target !== this.parts.root) return;
    const goTo = (item) => {
      if (item >= 0) this.#moveTo(item);
      return this.#index.size > 0;
    };
    const keys = {
      ArrowDown: () => goTo(this.#next(this.#active, 1)),
      ArrowUp: () => goTo(this.#next(this.#active < 0 ? this.#nodes.length : this.#active, -1)),
      Home: () => goTo(this.#next(-1, 1)),
      End: () => goTo(this.#next(this.#nodes.length, -1)),
      ArrowLeft: () => this.parts.sideways?.(-1) ?? false,
      ArrowRight: () => this.parts.sideways?.(1) ?? false,
      Enter: () => this.#pinActive(),
      " ": () => this.#pinActive(),
    };
    if (keys[event.key]?.()) event.preventDefault();
  }

  #pinActive() {
    const nodes = this.#nodes[this.#active] ?? [];
    if (nodes.length > 0) this.links.pin(nodes, this.parts.origin);
    return true;
  }

  #inView(item) {
    if (this.parts.inView) return this.parts.inView(item);
    const element = this.parts.element(item);
    if (element === null) return true;
    const outer = this.parts.scroller.getBoundingClientRect();
    const inner = element.getBoundingClientRect();
    return inner.bottom > outer.top && inner.top < outer.bottom && inner.right > outer.left && inner.left < outer.right;
  }

  #reveal(item, nearest = false) {
    if (this.parts.reveal) {
      this.parts.reveal(item, nearest);
      return;
    }
    const element = this.parts.element(item);
    if (element === null) return;
    const { scroller } = this.parts;
    const outer = scroller.getBoundingClientRect();
    const inner = element.getBoundingClientRect();
    if (inner.top < outer.top) scroller.scrollTop += inner.top - outer.top - 24;
    else if (inner.bottom > outer.bottom) scroller.scrollTop += Math.min(inner.bottom - outer.bottom + 8, inner.top - outer.top - 24);
    if (inner.left < outer.left) scroller.scrollLeft += inner.left - outer.left - 24;
    else if (inner.right > outer.right) scroller.scrollLeft += Math.min(inner.right - outer.right + 8, inner.left - outer.left - 24);
  }
}
