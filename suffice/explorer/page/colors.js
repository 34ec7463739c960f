// Colors of numbers, by the palettes that the server names.

function mixed(stops, position) {
  const at = Math.min(Math.max(position, 0), 1) * (stops.length - 1);
  const low = Math.min(Math.floor(at), stops.length - 2);
  return stops[low].map((value, i) => Math.round(value + (stops[low + 1][i] - value) * (at - low)));
}

function channels(hexed) {
  return [1, 3, 5].map((i) => Number.parseInt(hexed.slice(i, i + 2), 16));
}

// Of a ratio: sand to navy on light ground; on dark ground the more, the lighter.
export function rampColor(ramp, ratio, dark) {
  const value = Math.min(Math.max(ratio || 0, 0), 1);
  return `rgb(${mixed(ramp.map(channels), dark ? 0.72 - 0.62 * value : value).join(" ")})`;
}

// Pixels of a map: what speaks for the class is warm, what speaks against it cool.
export function mapPixels(values, warm, cool, opacity) {
  let [low, high] = [Infinity, -Infinity];
  for (const value of values) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  const signed = low < 0;
  const [base, span] = signed ? [0, Math.max(-low, high) || 1] : [low, high - low || 1];
  const pixels = new Uint8ClampedArray(4 * values.length);
  values.forEach((value, i) => {
    const level = (value - base) / span;
    const strength = Math.abs(level);
    const [red, green, blue] = mixed(level < 0 ? cool : warm, strength);
    pixels.set([red, green, blue, 255 * opacity * (0.3 + 0.7 * strength)], 4 * i);
  });
  return pixels;
}

export function isDark(element) {
  return getComputedStyle(element).getPropertyValue("--scheme").trim() === "dark";
}
