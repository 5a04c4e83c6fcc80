// Times, sizes and counts as people read them.
import { signal } from '@preact/signals';
import { language, t } from './i18n';

// Moves on once a second, so that ages do.
export const clock = signal(Date.now());
setInterval(() => { if (!document.hidden) clock.value = Date.now(); }, 1000);

export function duration(ms: number): string {
  if (ms < 0) ms = 0;
  if (ms < 1000) return `${Math.round(ms)} ms`;
  const s = Math.floor(ms / 1000);
  if (s < 60) return `${s} s`;
  const m = Math.floor(s / 60);
  if (m < 60) return `${m} m ${String(s % 60).padStart(2, '0')} s`;
  const h = Math.floor(m / 60);
  if (h < 48) return `${h} h ${String(m % 60).padStart(2, '0')} m`;
  return `${Math.floor(h / 24)} d ${h % 24} h`;
}

export const at = (time: string) => Date.parse(time);

export function span(begin: string | null, end: string | null): string {
  if (!begin) return '–';
  return duration((end ? at(end) : clock.value) - at(begin));
}

export function ago(time: string): string {
  const ms = clock.value - at(time);
  return ms < 1500 ? t('now') : t('ago', { time: coarse(ms) });
}

function coarse(ms: number): string {
  const s = Math.floor(ms / 1000);
  if (s < 60) return t('seconds', { n: s });
  if (s < 3600) return t('minutes', { n: Math.floor(s / 60) });
  if (s < 172800) return t('hours', { n: Math.floor(s / 3600) });
  return t('days', { n: Math.floor(s / 86400) });
}

// In the reader's own zone.
export function exact(time: string): string {
  return new Date(time).toLocaleString(language.value, {
    year: 'numeric', month: '2-digit', day: '2-digit', hour: '2-digit', minute: '2-digit', second: '2-digit',
    hour12: false, timeZoneName: 'short',
  });
}

export function clockTime(time: string): string {
  return new Date(time).toLocaleTimeString(language.value, { hour12: false });
}

export function size(bytes: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let unit = 0;
  while (bytes >= 1024 && unit < units.length - 1) { bytes /= 1024; ++unit; }
  return `${bytes < 10 && unit > 0 ? bytes.toFixed(1) : Math.round(bytes)} ${units[unit]}`;
}

export const count = (n: number) => n.toLocaleString(language.value);
