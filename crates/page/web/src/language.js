// Help while one edits: completion, hovers, signatures and formatting. The server's page asks the language server; a
// file has its hovers in the data.

import { autocompletion } from "@codemirror/autocomplete";
import { StateEffect, StateField } from "@codemirror/state";
import { EditorView, hoverTooltip, keymap, showTooltip } from "@codemirror/view";
import { html } from "./dom.js";
import { markdown } from "./markdown.js";

const DOCUMENT = { uri: "file:///page.cem" };
// The icons of completions, by the kinds of the Language Server Protocol.
const KINDS = {
  2: "method", 3: "function", 5: "property", 6: "variable", 7: "class", 14: "keyword", 20: "constant", 21: "constant", 22: "type", 25: "type",
};

/** Returns the extensions of a file: hovers from its data. */
export function fileHelp(state) {
  return hoverTooltip((_, position) => {
    const hits = state.data.hovers.filter(({ from, to }) => from <= position && position <= to);
    hits.sort((a, b) => (a.to - a.from) - (b.to - b.from));
    return hits.length === 0 ? null : tooltip(hits[0].from, hits[0].to, hits[0].text);
  });
}

/** Returns the extensions of the server's page. `failed(error)` is told of requests that fail. */
export function serverHelp(server, failed) {
  const ask = async (editorState, method, params) => {
    try {
      return await server.language(editorState.doc.toString(), method, params);
    } catch (error) {
      failed(error);
      return null;
    }
  };
  return [
    autocompletion({ override: [(context) => complete(ask, context)], icons: false }),
    hoverTooltip(async (view, position) => {
      const result = await ask(view.state, "textDocument/hover", at(view.state, position));
      if (!result) return null;
      const [from, to] = result.range ? span(view.state, result.range) : [position, position];
      return tooltip(from, to, words(result.contents));
    }),
    signatureHelp(ask),
    keymap.of([{ key: "Shift-Alt-f", run: (view) => { format(view, server, failed); return true; } }]),
  ];
}

/** Formats the text of `view`; one step of undoing brings the earlier text back. */
export async function format(view, server, failed) {
  const before = view.state.doc;
  try {
    const edits = await server.language(before.toString(), "textDocument/formatting", {
      textDocument: DOCUMENT, options: { tabSize: 4, insertSpaces: true },
    });
    if (edits === null) throw new Error("The text was not formatted, because it cannot be parsed.");
    if (!view.state.doc.eq(before) || edits.length === 0) return;
    view.dispatch({ changes: edits.map(({ range, newText }) => {
      const [from, to] = span(view.state, range);
      return { from, to, insert: newText };
    }) });
  } catch (error) {
    failed(error);
  }
}

async function complete(ask, context) {
  const before = context.matchBefore(/[\w.]+/);
  if (before === null && !context.explicit) return null;
  const result = await ask(context.state, "textDocument/completion", at(context.state, context.pos));
  const items = Array.isArray(result) ? result : (result?.items ?? []);
  if (items.length === 0 || context.aborted) return null;
  let start = before?.from ?? context.pos;
  const first = items.find((item) => item.textEdit);
  const range = first?.textEdit.range ?? first?.textEdit.insert;
  if (range) start = span(context.state, range)[0];
  const options = items.map((item, index) => ({
    label: item.label,
    detail: item.detail ?? item.labelDetails?.detail,
    type: KINDS[item.kind],
    boost: -index / items.length,
    apply: item.textEdit?.newText ?? item.insertText ?? item.label,
    info: async () => {
      const full = item.documentation ? item : await ask(context.state, "completionItem/resolve", item);
      return full?.documentation ? markdown(words(full.documentation)) : null;
    },
  }));
  return { from: start, options, validFor: result.isIncomplete ? undefined : /^[\w.]*$/ };
}

const setSignature = StateEffect.define();

function signatureHelp(ask) {
  const field = StateField.define({
    create: () => null,
    update(value, transaction) {
      for (const each of transaction.effects) if (each.is(setSignature)) return each.value;
      return value && transaction.docChanged ? { ...value, pos: transaction.changes.mapPos(value.pos) } : value;
    },
    provide: (self) => showTooltip.from(self),
  });
  const update = async (view) => {
    const { head } = view.state.selection.main;
    const { doc } = view.state;
    const result = await ask(view.state, "textDocument/signatureHelp", at(view.state, head));
    if (!view.state.doc.eq(doc)) return;
    const signature = result?.signatures?.[result.activeSignature ?? 0];
    const parameter = result?.activeParameter ?? signature?.activeParameter ?? 0;
    view.dispatch({ effects: setSignature.of(signature ? {
      pos: head, above: true, create: () => ({ dom: signatureElement(signature, parameter) }),
    } : null) });
  };
  return [
    field,
    EditorView.updateListener.of(({ docChanged, selectionSet, focusChanged, state, transactions, view }) => {
      const typed = transactions.some((each) => each.isUserEvent("input"));
      const { head } = state.selection.main;
      const sign = typed && /[(,]/.test(state.doc.sliceString(head - 1, head));
      const open = state.field(field) !== null;
      if (focusChanged && !view.hasFocus && open) queueMicrotask(() => view.dispatch({ effects: setSignature.of(null) }));
      else if (sign || (open && (docChanged || selectionSet))) queueMicrotask(() => update(view));
    }),
    keymap.of([{ key: "Escape", run: (view) => {
      if (view.state.field(field) === null) return false;
      view.dispatch({ effects: setSignature.of(null) });
      return true;
    } }]),
  ];
}

function signatureElement(signature, active) {
  const { label } = signature;
  const parameter = signature.parameters?.[active]?.label;
  const from = Array.isArray(parameter) ? parameter[0] : label.indexOf(parameter ?? "\n");
  const to = Array.isArray(parameter) ? parameter[1] : from + (parameter?.length ?? 0);
  const parts = from < 0 ? [label] : [label.slice(0, from), html("strong", { text: label.slice(from, to) }), label.slice(to)];
  return html("div", { class: "cm-signature" }, ...parts);
}

function tooltip(from, to, text) {
  return { pos: from, end: to, above: true, create: () => ({ dom: markdown(text) }) };
}

function words(contents) {
  if (typeof contents === "string") return contents;
  if (Array.isArray(contents)) return contents.map(words).join("\n\n");
  return contents?.value ?? "";
}

// Positions of the Language Server Protocol are lines and UTF-16 code units, which are the offsets of CodeMirror.
function at(editorState, position) {
  const line = editorState.doc.lineAt(position);
  return { textDocument: DOCUMENT, position: { line: line.number - 1, character: position - line.from } };
}

function span(editorState, range) {
  return [offset(editorState, range.start), offset(editorState, range.end)];
}

function offset(editorState, { line, character }) {
  const { doc } = editorState;
  if (line >= doc.lines) return doc.length;
  const found = doc.line(line + 1);
  return Math.min(found.from + character, found.to);
}
