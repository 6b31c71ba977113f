// The controls of the header: the colours, the link to share, the served models and the formatting.

import { html } from "./dom.js";

const KEY = "cembra-theme";

/** Returns the button that changes between light and dark. The system's choice holds until it is pressed. */
export function themeButton() {
  const root = document.documentElement;
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const button = html("button", { type: "button", class: "quiet" });
  const current = () => root.dataset.theme ?? (dark.matches ? "dark" : "light");
  const paint = () => { button.textContent = current() === "dark" ? "Light" : "Dark"; };
  const stored = read();
  if (stored === "light" || stored === "dark") root.dataset.theme = stored;
  button.addEventListener("click", () => {
    root.dataset.theme = current() === "dark" ? "light" : "dark";
    write(root.dataset.theme);
    paint();
  });
  dark.addEventListener("change", paint);
  button.setAttribute("aria-description", "Changes the colours of the page");
  paint();
  return button;
}

/** Returns the button that puts the text of the model into the address, and the address onto the clipboard. */
export function shareButton(state, text) {
  return html("button", { type: "button", class: "quiet", text: "Copy link", click: async () => {
    history.replaceState(null, "", `#text=${encodeURIComponent(text())}`);
    try {
      await navigator.clipboard.writeText(location.href);
      state.say("The link is on the clipboard. It has the whole text in it.");
    } catch {
      state.say("The link is in the address bar. It has the whole text in it.");
    }
  } });
}

/** Returns the text that the address carries, or `null`. */
export function sharedText() {
  const match = /^#text=(.*)$/s.exec(location.hash);
  if (match === null) return null;
  try {
    return decodeURIComponent(match[1]);
  } catch {
    return null;
  }
}

/** Returns the menu of the served models. It stays hidden if there are none. */
export function openMenu(server, { open, failed }) {
  const select = html("select", { "aria-label": "Open a served model" }, html("option", { value: "", text: "Open\u2026" }));
  select.hidden = true;
  server.get("/page/models").then(({ models }) => {
    select.append(...(models ?? []).map(({ name }) => html("option", { value: name, text: name })));
    select.hidden = (models ?? []).length === 0;
  }, failed);
  select.addEventListener("change", async () => {
    const name = select.value;
    select.value = "";
    if (name === "") return;
    try {
      open(await server.get(`/page/models/${encodeURIComponent(name)}`));
    } catch (error) {
      failed(error);
    }
  });
  return select;
}

function read() {
  try {
    return localStorage.getItem(KEY);
  } catch {
    return null;
  }
}

function write(theme) {
  try {
    localStorage.setItem(KEY, theme);
  } catch {
    // A browser may forbid a file to store anything; the choice then lasts as long as the page.
  }
}
