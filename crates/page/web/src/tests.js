// The model's tests and their coverage. Branches that no test takes are underlined with dots in the text.

import { counted, html } from "./dom.js";
import { inline } from "./markdown.js";

/** The panel of the tests. `select(from, to)` shows a part of the text. */
export class Tests {
  constructor(state, select) {
    this.state = state;
    this.select = select;
    this.title = "Tests";
    this.element = html("div", { class: "panel-body scroller", tabindex: "0", role: "group", "aria-label": "Tests and coverage" });
  }

  get present() {
    return this.state.data.tests.length > 0 || this.state.data.coverage.length > 0;
  }

  update() {
    const { tests, coverage } = this.state.data;
    const failed = tests.filter((test) => !test.passed).length;
    const untaken = coverage.filter((branch) => !branch.taken);
    const all = tests.length === 1 ? "The test passed." : `All ${tests.length} tests passed.`;
    const outcome = failed === 0 ? all : `${failed} of ${counted(tests.length, "test")} failed.`;
    this.element.replaceChildren(
      html("p", { class: "note", text: tests.length === 0 ? "The model has no tests." : outcome }),
      html("ul", { class: "tests" }, ...tests.map((test) => this.#test(test))),
      ...this.#coverage(coverage, untaken));
  }

  #test({ name, from, to, passed, message }) {
    return html("li", {},
      html("button", { type: "button", class: "plain", click: () => this.select(from, to) },
        html("span", { class: `outcome ${passed ? "good" : "bad"}`, text: passed ? "passed" : "failed" }),
        html("span", { text: name || "without a name" })),
      message ? html("p", { class: "message", text: message }) : null);
  }

  #coverage(coverage, untaken) {
    if (coverage.length === 0) return [];
    const taken = coverage.length - untaken.length;
    const summary = html("p", { class: "note", text: `The tests take ${taken} of ${coverage.length} branches.` });
    const parts = [summary];
    if (untaken.length > 0) {
      summary.append(" Not taken: ", html("span", { class: "untaken", text: "underlined with dots" }), " in the text.");
      parts.push(html("ul", { class: "tests" }, ...untaken.map(({ from, to, message }) => html("li", {},
        html("button", { type: "button", class: "plain", click: () => this.select(from, to) },
          html("span", { class: "outcome warn", text: "not taken" }), html("span", {}, ...inline(message)))))));
    }
    return parts;
  }
}
