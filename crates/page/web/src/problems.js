// The problems of the text as a list below the editor. A problem's button moves the cursor to its place.

import { html } from "./dom.js";
import { inline } from "./markdown.js";

/** Keeps the list in `list`. `select(from, to)` shows a part of the text, and `lineOf(offset)` returns its line. */
export function problems(state, list, { select, lineOf }) {
  const paint = () => {
    list.hidden = state.diagnostics.length === 0;
    list.replaceChildren(...state.diagnostics.map(({ from, to, severity, message, hint, code }) => html("li", {},
      html("button", { type: "button", class: "plain", click: () => select(from, to) },
        html("span", { class: `outcome ${severity === "error" ? "bad" : "warn"}`, text: severity }),
        html("span", { class: "muted", text: `line ${lineOf(from)}` }),
        html("span", { class: "problem" }, ...inline(message), code ? html("span", { class: "code", text: code }) : null,
          hint ? html("span", { class: "hint-line" }, ...inline(hint)) : null)))));
  };
  state.on("diagnostics", paint);
  paint();
}
