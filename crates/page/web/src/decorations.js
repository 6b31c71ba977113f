// Decorations in the editor: the text of marked nodes, and branches that no test takes.

import { RangeSet, StateEffect, StateField } from "@codemirror/state";
import { Decoration, EditorView } from "@codemirror/view";

const setMarks = StateEffect.define();
const setCoverage = StateEffect.define();
const marked = Decoration.mark({ class: "cm-marked" });
const untaken = (message) => Decoration.mark({ class: "cm-untaken", attributes: { title: message } });

function field(effect) {
  return StateField.define({
    create: () => Decoration.none,
    update(ranges, transaction) {
      let next = ranges.map(transaction.changes);
      for (const each of transaction.effects) if (each.is(effect)) next = each.value;
      return next;
    },
    provide: (self) => EditorView.decorations.from(self),
  });
}

/** The fields that hold the decorations. */
export const decorations = [field(setMarks), field(setCoverage)];

/** Returns the effect that marks `spans`, each `{ from, to }`. */
export function marks(spans) {
  return setMarks.of(ranges(spans, () => marked));
}

/** Returns the effect that shows branches which no test takes. */
export function coverage(branches) {
  return setCoverage.of(ranges(branches.filter((each) => !each.taken), (each) => untaken(each.message)));
}

function ranges(spans, decoration) {
  const some = spans.filter(({ from, to }) => to > from);
  return RangeSet.of(some.map((each) => decoration(each).range(each.from, each.to)), true);
}
