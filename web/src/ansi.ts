// Colours that programs write into their output, as spans; and lines that a program drew over with \r.

export interface Span { text: string; className: string }

const names = ['black', 'red', 'green', 'yellow', 'blue', 'magenta', 'cyan', 'white'];

export function spansOf(line: string): Span[] {
  const drawn = line.replace(/\r+$/, '');
  const text = drawn.slice(drawn.lastIndexOf('\r') + 1);
  const spans: Span[] = [];
  let color = '';
  let isBold = false;
  let at = 0;
  const push = (end: number) => {
    if (end > at) spans.push({ text: text.slice(at, end), className: [color && `ansi-${color}`, isBold && 'bold'].filter(Boolean).join(' ') });
  };
  for (const match of text.matchAll(/\x1b(?:\[([0-9;:?]*)([A-Za-z])|\][^\x07\x1b]*(?:\x07|\x1b\\))/g)) {
    push(match.index);
    at = match.index + match[0].length;
    if (match[2] !== 'm') continue;
    const codes = (match[1] ?? '').split(';').map(Number);
    for (let i = 0; i < codes.length; ++i) {
      const code = codes[i] ?? 0;
      if (code === 0) { color = ''; isBold = false; }
      else if (code === 1) isBold = true;
      else if (code === 22) isBold = false;
      else if (code >= 30 && code <= 37) color = names[code - 30] ?? '';
      else if (code >= 90 && code <= 97) color = names[code - 90] ?? '';
      else if (code === 39) color = '';
      else if (code === 38) {
        if (codes[i + 1] === 5) { color = names[(codes[i + 2] ?? 0) % 8] ?? ''; i += 2; } else if (codes[i + 1] === 2) i += 4;
      } else if (code === 48) i += codes[i + 1] === 5 ? 2 : 4;
    }
  }
  push(text.length);
  return spans;
}
