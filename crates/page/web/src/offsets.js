// Offsets of texts whose lines end with CR and LF. The editor counts every end of a line as one character, so both the
// text and all offsets of the data are changed to that.

/** Returns `data` with the line ends of its text as LF, and with its offsets moved. */
export function withLineFeeds(data) {
  const { text } = data;
  if (!text.includes("\r")) return data;
  const pairs = [...text.matchAll(/\r\n/g)].map((match) => match.index);
  const move = (offset) => offset - before(pairs, offset);
  const moved = (list) => list.map((each) => ({ ...each, from: move(each.from), to: move(each.to) }));
  return {
    ...data,
    text: text.replace(/\r\n?/g, "\n"),
    nodes: data.nodes.map((node) => ({ ...node, spans: (node.spans ?? []).map(([from, to]) => [move(from), move(to)]) })),
    diagnostics: moved(data.diagnostics), hovers: moved(data.hovers), tests: moved(data.tests), coverage: moved(data.coverage),
  };
}

// The number of pairs that begin before `offset`, by binary search.
function before(pairs, offset) {
  let low = 0;
  let high = pairs.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (pairs[middle] < offset) low = middle + 1;
    else high = middle;
  }
  return low;
}
