// Colours of a model's text, from the words of the language that the data name.

import { HighlightStyle, LanguageSupport, StreamLanguage, syntaxHighlighting } from "@codemirror/language";
import { tags } from "@lezer/highlight";

const TEXT = /^(?:[a-z]+)?(?:"(?:\\.|[^"\\])*"?|'(?:\\.|[^'\\])*'?)/;
const NUMBER = /^\d[\d_]*(?:\.\d[\d_]*)?(?:[eE][+-]?\d+)?(?:[iuf]\d+)?/;
const WORD = /^[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*/;
const SIGNS = /^(?:\?\?|=>|->|\*\*|==|!=|<=|>=|\.\.|\?|[-+*/%=<>&|^~!])/;

/** Returns the language of models. */
export function language(grammar) {
  const keywords = new Set(grammar.keywords);
  const types = new Set(grammar.types);
  const literals = new Set(grammar.literals);
  const operators = new Set(grammar.operators.flatMap(({ name, short }) => (short ? [name, short] : [name])));
  const comment = grammar.comment || "#";

  const wordToken = (word, stream) => {
    if (keywords.has(word)) return "keyword";
    if (types.has(word)) return "typeName";
    if (literals.has(word)) return "atom";
    if (stream.match(/^\s*:(?!:)/, false)) return "propertyName";
    if (operators.has(word) && stream.match(/^\s*\(/, false)) return "variableName.function";
    return "variableName";
  };
  const parser = {
    name: "cembra",
    token(stream) {
      if (stream.eatSpace()) return null;
      if (stream.match(comment)) {
        stream.skipToEnd();
        return "comment";
      }
      if (stream.match(TEXT)) return "string";
      if (stream.match(NUMBER)) return "number";
      const word = stream.match(WORD);
      if (word) return wordToken(word[0], stream);
      if (stream.match(SIGNS)) return "operator";
      stream.next();
      return null;
    },
    languageData: { commentTokens: { line: comment }, closeBrackets: { brackets: ["(", "[", "{", '"'] } },
  };
  return new LanguageSupport(StreamLanguage.define(parser), [syntaxHighlighting(colours)]);
}

const colours = HighlightStyle.define([
  { tag: tags.keyword, color: "var(--keyword)" },
  { tag: tags.typeName, color: "var(--type)" },
  { tag: [tags.atom, tags.number], color: "var(--literal)" },
  { tag: tags.string, color: "var(--string)" },
  { tag: tags.comment, color: "var(--muted)", fontStyle: "italic" },
  { tag: tags.function(tags.variableName), color: "var(--operator)" },
  { tag: tags.propertyName, color: "var(--ink)" },
]);
