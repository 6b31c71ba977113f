// The editor of the model's text: CodeMirror in a shadow root, because its style sheets are constructed there, which the
// page's policy allows.

import { closeBrackets, closeBracketsKeymap, completionKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { bracketMatching } from "@codemirror/language";
import { lintGutter, lintKeymap, setDiagnostics } from "@codemirror/lint";
import { ChangeSet, EditorState } from "@codemirror/state";
import { drawSelection, EditorView, highlightActiveLine, highlightActiveLineGutter, keymap, lineNumbers } from "@codemirror/view";
import { coverage, decorations, marks } from "./decorations.js";
import { html } from "./dom.js";
import { language } from "./grammar.js";
import { innermost, spansOf } from "./link.js";
import { inline } from "./markdown.js";
import { theme } from "./editor_theme.js";

const ORIGIN = "text";

/** The editor. `parts` has `host`, the element of the shadow root; `extensions` of the page's kind; `edited(text)`,
 * called on each change; and `leave()`, which moves the focus to the first column. */
export class Editor {
  #spans = [];
  #mapped = null;
  #since = null;
  #pointer = { x: -1, y: -1 };
  #frame = 0;

  constructor(state, links, parts) {
    this.state = state;
    this.links = links;
    this.parts = parts;
    const root = parts.host.attachShadow({ mode: "open" });
    this.view = new EditorView({ parent: root, root, state: EditorState.create({ doc: state.data.text, extensions: this.#extensions() }) });
    this.#take();
    this.#diagnose();
    state.on("data", () => this.#take());
    state.on("diagnostics", () => this.#diagnose());
    state.on("marks", ({ marked, origin }) => this.#follow(marked, origin));
  }

  get text() {
    return this.view.state.doc.toString();
  }

  /** Replaces the whole text; one step of undoing brings the earlier one back. */
  replace(text) {
    this.view.dispatch({ changes: { from: 0, to: this.view.state.doc.length, insert: text }, selection: { anchor: 0 }, scrollIntoView: true });
  }

  /** Selects a part of the text, scrolls to it and focuses the editor. */
  select(from, to = from) {
    const length = this.view.state.doc.length;
    const anchor = Math.min(from, length);
    this.view.dispatch({ selection: { anchor, head: Math.min(to, length) }, effects: EditorView.scrollIntoView(anchor, { y: "center" }) });
    this.view.focus();
  }

  focus() {
    this.view.focus();
  }

  /** Returns the number of the line at `offset`, from 1. */
  lineOf(offset) {
    const { doc } = this.view.state;
    return doc.lineAt(Math.min(offset, doc.length)).number;
  }

  /** Returns the texts of the marked nodes' spans. */
  textsOf(id) {
    const { doc } = this.view.state;
    return this.#present().filter((span) => span.id === id).map(({ from, to }) => doc.sliceString(from, to));
  }

  #extensions() {
    const readOnly = this.state.server === null;
    return [
      lineNumbers(), highlightActiveLineGutter(), highlightActiveLine(), drawSelection(), history(), bracketMatching(),
      language(this.state.grammar), lintGutter(), decorations, theme,
      keymap.of([
        { key: readOnly ? "Enter" : "Alt-Enter", run: (view) => this.#pinAt(view) },
        { key: "Escape", run: () => this.links.lift() },
        { key: "F6", run: () => this.parts.leave() },
      ]),
      readOnly ? [] : [closeBrackets(), keymap.of([...closeBracketsKeymap, ...completionKeymap])],
      keymap.of([...defaultKeymap, ...historyKeymap, ...lintKeymap]),
      EditorState.readOnly.of(readOnly),
      EditorView.contentAttributes.of(attributes(readOnly)),
      EditorView.updateListener.of((update) => this.#updated(update)),
      EditorView.domEventHandlers({
        mousemove: (event) => this.#over(event),
        mouseleave: () => {
          cancelAnimationFrame(this.#frame);
          this.links.point(null, ORIGIN);
        },
        click: (event, view) => {
          if (view.state.selection.main.empty && (event.ctrlKey || event.metaKey || readOnly)) this.#pinAt(view);
        },
      }),
      this.parts.extensions,
    ];
  }

  #take() {
    this.#spans = spansOf(this.state.data.nodes);
    this.#since = null;
    this.#mapped = null;
    const { doc } = this.view.state;
    const branches = this.state.data.coverage.filter(({ to }) => to <= doc.length);
    this.view.dispatch({ effects: [coverage(branches), marks([])] });
    if (this.view.hasFocus) this.#markCursor();
  }

  #diagnose() {
    const { length } = this.view.state.doc;
    const shown = this.state.diagnostics.map((each) => ({
      from: Math.min(each.from, length), to: Math.min(Math.max(each.to, each.from), length),
      severity: each.severity === "warning" ? "warning" : "error", message: each.message,
      renderMessage: () => diagnosticElement(each),
    }));
    this.view.dispatch(setDiagnostics(this.view.state, shown));
  }

  #updated(update) {
    if (update.docChanged) {
      this.#since = this.#since === null ? update.changes : this.#since.compose(update.changes);
      this.#mapped = null;
      this.parts.edited(this.text);
    }
    if (update.selectionSet || update.docChanged || (update.focusChanged && update.view.hasFocus)) {
      if (update.view.hasFocus) queueMicrotask(() => this.#markCursor());
    }
  }

  // The spans of the nodes belong to the text that was explained last; edits since then move them.
  #present() {
    if (this.#mapped !== null) return this.#mapped;
    const since = this.#since;
    const { length } = this.view.state.doc;
    this.#mapped = this.#spans
      .map((span) => (since instanceof ChangeSet && span.to <= since.length
        ? { id: span.id, from: since.mapPos(span.from, 1), to: since.mapPos(span.to, -1) } : span))
      .filter(({ from, to }) => from < to && to <= length);
    return this.#mapped;
  }

  #markCursor() {
    const { main } = this.view.state.selection;
    this.links.focus(innermost(this.#present(), main.head, true), ORIGIN);
  }

  #pinAt(view) {
    const ids = innermost(this.#present(), view.state.selection.main.head, true);
    this.links.pin(ids, ORIGIN);
    return true;
  }

  #over(event) {
    const { clientX: x, clientY: y } = event;
    if (x === this.#pointer.x && y === this.#pointer.y) return;
    this.#pointer = { x, y };
    cancelAnimationFrame(this.#frame);
    this.#frame = requestAnimationFrame(() => this.links.point(this.#nodesAt(x, y), ORIGIN));
  }

  #nodesAt(x, y) {
    const position = this.view.posAtCoords({ x, y });
    if (position === null) return null;
    const place = this.view.coordsAtPos(position);
    if (place === null || Math.abs(x - place.left) > 12 || y < place.top - 4 || y > place.bottom + 4) return null;
    // The nearest gap between characters may be the one after the character under the pointer.
    const character = x < place.left ? position - 1 : position;
    return innermost(this.#present(), Math.max(0, character), false);
  }

  #follow(marked, origin) {
    const spans = marked.size === 0 ? [] : this.#present().filter(({ id }) => marked.has(id));
    const effects = [marks(spans)];
    if (origin !== ORIGIN && spans.length > 0) {
      const { from, to } = this.view.viewport;
      const visible = this.#visible();
      const first = Math.min(...spans.map((span) => span.from));
      const seen = spans.some((span) => span.to > Math.max(from, visible.from) && span.from < Math.min(to, visible.to));
      if (!seen) effects.push(EditorView.scrollIntoView(first, { y: "center" }));
    }
    this.view.dispatch({ effects });
  }

  // The part of the text that the scroller shows; the viewport of CodeMirror is larger.
  #visible() {
    const { scrollDOM } = this.view;
    const top = scrollDOM.scrollTop;
    return {
      from: this.view.lineBlockAtHeight(top).from,
      to: this.view.lineBlockAtHeight(top + scrollDOM.clientHeight).to,
    };
  }
}

// CodeMirror's element for the text takes keys in a file too, so that the cursor can move and mark; on a telephone it
// must not open the keyboard there.
function attributes(readOnly) {
  const pin = readOnly ? "Enter" : "Alt+Enter";
  return {
    "aria-label": "Text of the model", "aria-description": `${pin} pins the operator at the cursor, F6 moves to the stages`,
    tabindex: "0", spellcheck: "false", ...(readOnly ? { inputmode: "none" } : {}),
  };
}

/** Returns the element of a diagnostic: its message, its code and its hint. */
export function diagnosticElement({ message, code, hint }) {
  return html("div", { class: "cm-problem" },
    html("span", {}, ...inline(message)),
    code ? html("span", { class: "cm-code", text: ` ${code}` }) : null,
    hint ? html("div", { class: "cm-hint" }, "Hint: ", ...inline(hint)) : null);
}
