// The start of the page: reads the data and puts its parts together.

import { Columns } from "./columns.js";
import { Editor } from "./editor.js";
import { Frame } from "./frame.js";
import { html } from "./dom.js";
import { openMenu, shareButton, sharedText, themeButton } from "./header.js";
import { fileHelp, format, serverHelp } from "./language.js";
import { Links } from "./link.js";
import { Panels } from "./panels.js";
import { Plot } from "./plot.js";
import { problems } from "./problems.js";
import { Rows } from "./rows.js";
import { Explainer, Server } from "./server.js";
import { separators } from "./split.js";
import { State } from "./state.js";
import { Status } from "./status.js";
import { Tests } from "./tests.js";
import { Times } from "./times.js";
import { Work } from "./work.js";

const element = (id) => document.getElementById(id);

function start() {
  const data = JSON.parse(element("data").textContent);
  const server = data.server ? new Server(data.server.token) : null;
  const shared = server === null ? null : sharedText();
  // The data belong to another text than the shared one, so only the words of the language are kept.
  const state = new State(shared === null ? data : { version: data.version, server: data.server, grammar: data.grammar, text: shared });
  const links = new Links(state);
  const failed = (error) => {
    if (error.name !== "AbortError") state.say(error.message, "error");
  };

  let columns = null;
  let explainer = null;
  const editor = new Editor(state, links, {
    host: element("editor"),
    extensions: server === null ? fileHelp(state) : serverHelp(server, failed),
    edited: () => explainer?.edited(),
    leave: () => columns?.focus() ?? false,
  });
  const select = (from, to) => editor.select(from, to);
  const text = () => editor.text;
  // Rows and plots belong to the text of the stages, also while a later text has errors.
  const goodText = () => state.data.text;

  columns = new Columns(state, links, {
    area: element("columns"), bar: element("stage-bar"), note: element("stale"),
    leave: (step) => {
      if (step < 0) editor.focus();
      return step < 0;
    },
  });
  const rows = new Rows(state, { server, text: goodText, failed });
  const panels = {
    rows, work: new Work(state, links), frame: new Frame(state, links), plot: new Plot(state, { server, text: goodText, rows, failed }),
    tests: new Tests(state, select), times: new Times(state, links),
  };
  new Panels(state, { area: element("panels"), bar: element("panel-bar"), panels });
  new Status(state, links, {
    label: element("marked-label"), text: element("marked-text"), message: element("message"), live: element("live"), editor, columns,
  });
  problems(state, element("problems"), { select, lineOf: (offset) => editor.lineOf(offset) });
  separators(document.querySelector("main"));
  header(state, { server, editor, text, failed });

  // Escape lifts the marks from wherever the focus is. The editor has its own key, because it has popups to close first.
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && event.target !== element("editor")) links.lift();
  });
  if (server !== null) {
    explainer = new Explainer(state, server, text);
    if (shared !== null || state.data.stages.length === 0) explainer.explain();
    addEventListener("hashchange", () => {
      const next = sharedText();
      if (next !== null && next !== editor.text) editor.replace(next);
    });
  }
}

function header(state, { server, editor, text, failed }) {
  const { name, version } = state.data;
  element("version").textContent = version ?? "";
  element("name").textContent = name ?? "";
  document.title = name ? `${name} \u2013 cembra` : "cembra";
  const tools = element("tools");
  if (server !== null) {
    const open = (model) => {
      element("name").textContent = model.name;
      document.title = `${model.name} \u2013 cembra`;
      editor.replace(model.text);
      editor.focus();
    };
    tools.append(
      openMenu(server, { open, failed }),
      html("button", { type: "button", class: "quiet", text: "Format", title: "Shift-Alt-F", click: () => format(editor.view, server, failed) }),
      shareButton(state, text));
  } else {
    element("source-note").textContent = "read-only";
  }
  tools.append(themeButton());
}

start();
