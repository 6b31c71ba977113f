// The small part of Markdown that the language server's texts use: paragraphs, code spans and blocks of code.

import { html } from "./dom.js";

/** Returns an element that shows `text`. */
export function markdown(text) {
  const box = html("div", { class: "markdown" });
  const blocks = text.split(/^```[^\n]*\n([\s\S]*?)^```[^\n]*$/m);
  blocks.forEach((block, index) => {
    if (index % 2 === 1) {
      box.append(html("pre", {}, html("code", { text: block.replace(/\n$/, "") })));
      return;
    }
    for (const paragraph of block.split(/\n\s*\n/)) {
      if (paragraph.trim() === "" || /^-{3,}$/.test(paragraph.trim())) continue;
      box.append(html("p", {}, ...spans(paragraph.trim())));
    }
  });
  return box;
}

/** Returns the nodes of a message: its words, and elements for the code between backticks. */
export function inline(message) {
  return message.split(/`([^`]+)`/).map((part, index) => (index % 2 === 1 ? html("code", { text: part }) : part));
}

function spans(paragraph) {
  return paragraph.split(/`([^`]*)`/).map((part, index) => (
    index % 2 === 1 ? html("code", { text: part }) : part.replace(/\s+/g, " ").replace(/\\([\\*_`[\]<>#])/g, "$1").replace(/\*\*/g, "")
  ));
}
