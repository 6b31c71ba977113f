// Separators between the source and the stages, and above the panels: they are dragged, or moved with the arrow keys.

import { html } from "./dom.js";

/** Adds the two separators to `main`. Their places are custom properties, in percent. */
export function separators(main) {
  add(main, { name: "left", label: "Width of the source", orientation: "vertical", value: 36, least: 20, most: 70 });
  add(main, { name: "dock", label: "Height of the panels", orientation: "horizontal", value: 40, least: 12, most: 80 });
}

function add(main, { name, label, orientation, value, least, most }) {
  const handle = html("div", {
    class: `separator ${orientation}`, role: "separator", tabindex: "0", "aria-label": label, "aria-orientation": orientation,
    "aria-valuemin": least, "aria-valuemax": most,
  });
  let now = value;
  const set = (next) => {
    now = Math.min(most, Math.max(least, next));
    main.style.setProperty(`--${name}`, `${now}%`);
    handle.setAttribute("aria-valuenow", Math.round(now));
  };
  const at = ({ clientX, clientY }) => {
    const { left, bottom, width, height } = main.getBoundingClientRect();
    return orientation === "vertical" ? (100 * (clientX - left)) / width : (100 * (bottom - clientY)) / height;
  };
  handle.addEventListener("pointerdown", (event) => {
    event.preventDefault();
    handle.setPointerCapture(event.pointerId);
  });
  handle.addEventListener("pointermove", (event) => {
    if (handle.hasPointerCapture(event.pointerId)) set(at(event));
  });
  handle.addEventListener("dblclick", () => set(value));
  const steps = orientation === "vertical" ? { ArrowLeft: -2, ArrowRight: 2 } : { ArrowUp: 2, ArrowDown: -2 };
  handle.addEventListener("keydown", (event) => {
    if (!(event.key in steps)) return;
    event.preventDefault();
    set(now + steps[event.key]);
  });
  set(value);
  main.append(handle);
}
