// Elements of HTML and SVG. All text goes in as text nodes, so that no text of a model can become markup.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(name, value);
    else if (name === "text") element.append(String(value));
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children) {
    if (child !== null && child !== undefined) element.append(child);
  }
  return element;
}

/** Returns a new HTML element. A function among `attributes` is a listener; `text` is the element's text. */
export function html(tag, attributes, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** Returns a new SVG element, with `attributes` as for `html`. */
export function svg(tag, attributes, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

let ids = 0;

/** Returns an id that no other element of the page has. */
export function newId(prefix) {
  ids += 1;
  return `${prefix}-${ids}`;
}

/** Returns a function that calls `action` with the latest arguments, `delay` milliseconds after its last call. */
export function debounce(delay, action) {
  let timer = 0;
  return (...arguments_) => {
    clearTimeout(timer);
    timer = setTimeout(() => action(...arguments_), delay);
  };
}

/** Returns `count` with its noun: "1 line", "3 lines". */
export function counted(count, noun) {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}
