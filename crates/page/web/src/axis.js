// Scales, ticks and numbers of axes.

/** Returns the scale of `values` to pixels from `start` to `end`. With `padded`, the ends of the values keep a distance. */
export function scale(values, start, end, padded) {
  let low = Math.min(...values);
  let high = Math.max(...values);
  if (low === high) {
    const half = Math.abs(low) / 2 || 1;
    low -= half;
    high += half;
  } else if (padded) {
    const margin = (high - low) * 0.06;
    low -= margin;
    high += margin;
  }
  return { low, high, start, end, at: (value) => start + ((value - low) / (high - low)) * (end - start) };
}

/** Returns at most `most` round numbers inside the scale, at equal distances. */
export function ticks({ low, high }, most) {
  const power = 10 ** Math.floor(Math.log10((high - low) / most));
  const inside = (step) => Math.floor(high / step) - Math.ceil(low / step) + 1;
  const step = [1, 2, 5, 10, 20].map((each) => each * power).find((each) => inside(each) <= most) ?? high - low;
  const found = [];
  for (let index = Math.ceil(low / step); index * step <= high; index += 1) found.push(Number((index * step).toPrecision(12)));
  return found;
}

/** Returns `value` in at most six digits. */
export function decimal(value) {
  if (!Number.isFinite(value)) return String(value);
  const size = Math.abs(value);
  if (size !== 0 && (size >= 1e6 || size < 1e-4)) return value.toExponential(2).replace(/\.?0+e/, "e").replace("e+", "e");
  return String(Number(value.toPrecision(6)));
}
