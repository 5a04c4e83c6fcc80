// A log as bytes that are fetched where they are looked at: pieces of 128 KiB, the last used kept. Nothing here
// ever asks for the whole.
import { ask, Problem } from './api';

const pieceSize = 128 << 10;
const piecesMax = 96; // 12 MiB
export const lineMax = 8 << 10; // more of a line is not shown
const newline = 10;

export interface Line { start: number; end: number; text: string; isCut: boolean }

export class LogFile {
  size = 0;
  attempt = 0;
  private pieces = new Map<number, Uint8Array>();
  private asked = new Map<number, Promise<void>>();
  private decoder = new TextDecoder();

  constructor(readonly path: string, private stop: AbortSignal) {}

  // How long it is now. It only grows.
  async measure(): Promise<void> {
    try {
      const response = await ask(this.path, { headers: { Range: 'bytes=0-0' }, signal: this.stop });
      this.attempt = Number(response.headers.get('X-Slipway-Attempt') ?? 0);
      const total = /\/(\d+)$/.exec(response.headers.get('Content-Range') ?? '')?.[1];
      const bytes = new Uint8Array(await response.arrayBuffer());
      this.size = Math.max(this.size, total === undefined ? bytes.length : Number(total));
    } catch (error) {
      if (!(error instanceof Problem && error.status === 416)) throw error; // 416: it is empty
    }
  }

  // What came at its end.
  append(bytes: Uint8Array) {
    for (let at = 0; at < bytes.length;) {
      const number = Math.floor(this.size / pieceSize);
      const within = this.size - number * pieceSize;
      const take = Math.min(bytes.length - at, pieceSize - within);
      const known = this.pieces.get(number);
      if ((known?.length ?? 0) === within) {
        const grown = new Uint8Array(within + take);
        if (known) grown.set(known);
        grown.set(bytes.subarray(at, at + take), within);
        this.keep(number, grown);
      } else {
        this.pieces.delete(number); // it was not read to here
      }
      this.size += take;
      at += take;
    }
  }

  private keep(number: number, bytes: Uint8Array) {
    this.pieces.delete(number);
    this.pieces.set(number, bytes);
    while (this.pieces.size > piecesMax) this.pieces.delete(this.pieces.keys().next().value as number);
  }

  private lengthOf(number: number): number {
    return Math.max(0, Math.min(pieceSize, this.size - number * pieceSize));
  }

  private has(number: number): boolean {
    return (this.pieces.get(number)?.length ?? 0) >= this.lengthOf(number);
  }

  async need(from: number, to: number): Promise<void> {
    const waits: Promise<void>[] = [];
    for (let number = Math.floor(Math.max(0, from) / pieceSize); number * pieceSize < Math.min(to, this.size); ++number) {
      if (this.has(number)) continue;
      let asked = this.asked.get(number);
      if (!asked) {
        asked = this.fetchPiece(number).finally(() => this.asked.delete(number));
        this.asked.set(number, asked);
      }
      waits.push(asked);
    }
    await Promise.all(waits);
  }

  private async fetchPiece(number: number) {
    const from = number * pieceSize;
    const to = from + this.lengthOf(number) - 1;
    const response = await ask(this.path, { headers: { Range: `bytes=${from}-${to}` }, signal: this.stop });
    const bytes = new Uint8Array(await response.arrayBuffer());
    this.keep(number, response.status === 206 ? bytes : bytes.subarray(from, to + 1));
  }

  isHere(from: number, to: number): boolean {
    for (let number = Math.floor(Math.max(0, from) / pieceSize); number * pieceSize < Math.min(to, this.size); ++number)
      if (!this.has(number)) return false;
    return true;
  }

  private byte(at: number): number | undefined {
    return this.pieces.get(Math.floor(at / pieceSize))?.[at % pieceSize];
  }

  private slice(from: number, to: number): Uint8Array {
    const found = new Uint8Array(to - from);
    for (let at = from; at < to;) {
      const number = Math.floor(at / pieceSize);
      const end = Math.min(to, (number + 1) * pieceSize);
      const piece = this.pieces.get(number);
      if (piece) found.set(piece.subarray(at - number * pieceSize, end - number * pieceSize), at - from);
      at = end;
    }
    return found;
  }

  // Where the line begins in which this byte lies; not further back than lineMax.
  startOf(at: number): number {
    const least = Math.max(0, at - lineMax);
    while (at > least && this.byte(at - 1) !== newline) --at;
    return at;
  }

  private endOf(at: number): number {
    const most = Math.min(this.size, at + lineMax);
    while (at < most && this.byte(at) !== newline) ++at;
    return at;
  }

  next(start: number): number {
    const end = this.endOf(start);
    return Math.min(this.size, this.byte(end) === newline ? end + 1 : end);
  }

  previous(start: number): number {
    return start <= 0 ? 0 : this.startOf(start - 1);
  }

  // What has to be there for so many lines from here, before and after: most lines are far shorter than lineMax.
  around(at: number, lines: number): [number, number] {
    return [Math.max(0, at - Math.max(2 * lineMax, lines * 200)), Math.min(this.size, at + Math.max(2 * lineMax, lines * 200))];
  }

  lines(from: number, count: number): Line[] {
    const found: Line[] = [];
    for (let at = from; at < this.size && found.length < count;) {
      const end = this.endOf(at);
      const next = this.next(at);
      found.push({ start: at, end, text: this.decoder.decode(this.slice(at, end)), isCut: next === end && end < this.size });
      at = next > at ? next : at + 1;
    }
    return found;
  }

  // The first byte of the last page.
  lastTop(lines: number): number {
    let at = this.size;
    for (let n = 0; n < lines && at > 0; ++n) at = this.previous(at);
    return at;
  }

  // The whole of it, a mebibyte at a time, each with the end of the one before; `each` gives false to stop.
  async scan(overlap: number, each: (text: string, from: number) => boolean) {
    const step = 1 << 20;
    let tail = '';
    for (let from = 0; from < this.size; from += step) {
      const to = Math.min(this.size, from + step);
      const response = await ask(this.path, { headers: { Range: `bytes=${from}-${to - 1}` }, signal: this.stop });
      // One character a byte, so that places in the text are places in the file.
      let text = latin1(new Uint8Array(await response.arrayBuffer()));
      if (response.status !== 206) text = text.slice(from, to);
      if (!each(tail + text, from - tail.length)) return;
      tail = overlap > 0 ? (tail + text).slice(-overlap) : '';
    }
  }
}

function latin1(bytes: Uint8Array): string {
  let text = '';
  for (let at = 0; at < bytes.length; at += 32768) text += String.fromCharCode(...bytes.subarray(at, at + 32768));
  return text;
}

// Letters of other alphabets take part as their bytes.
export const asBytes = (text: string) => latin1(new TextEncoder().encode(text));

const lower = (text: string) => text.replace(/[A-Z]+/g, (upper) => upper.toLowerCase());

export async function findAll(
  file: LogFile, wanted: string, each: (found: number[], searched: number) => boolean, max = 10_000,
) {
  const needle = lower(asBytes(wanted));
  const found: number[] = [];
  let last = -1;
  await file.scan(needle.length - 1, (text, from) => {
    const folded = lower(text);
    for (let at = folded.indexOf(needle); at >= 0 && found.length < max; at = folded.indexOf(needle, at + needle.length))
      if (from + at > last) { found.push(from + at); last = from + at; }
    return each(found, from + text.length) && found.length < max;
  });
}

const errorWords = /(?:error|exception)\b|\b(?:traceback|fatal|failed|failure|segmentation fault|out of memory|killed)\b/i;

export async function findError(file: LogFile): Promise<number> {
  let found = -1;
  await file.scan(40, (text, from) => {
    const at = text.search(errorWords);
    if (at >= 0) found = from + at;
    return at < 0;
  });
  return found;
}
