// The keyboard: single keys and sequences (g j). A view adds its own while it is shown.
import { useEffect } from 'preact/hooks';

type Handler = (event: KeyboardEvent) => void;
const handlers: Map<string, Handler>[] = [];
let prefix = '';
let prefixTimer: ReturnType<typeof setTimeout> | undefined;

export function isTyping(event: KeyboardEvent): boolean {
  const target = event.target as HTMLElement | null;
  return !!target?.closest?.('input, textarea, select, [contenteditable]');
}

addEventListener('keydown', (event) => {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
  if (document.querySelector('dialog[open]')) return; // it has keys of its own
  if (isTyping(event)) {
    if (event.key === 'Escape') (event.target as HTMLElement).blur();
    return;
  }
  const sequence = prefix ? `${prefix} ${event.key}` : event.key;
  prefix = '';
  clearTimeout(prefixTimer);
  for (const map of [...handlers].reverse()) {
    const handler = map.get(sequence);
    if (handler) {
      event.preventDefault();
      handler(event);
      return;
    }
  }
  if (event.key === 'g') {
    prefix = 'g';
    prefixTimer = setTimeout(() => { prefix = ''; }, 1500);
  }
});

export function useKeys(keys: Record<string, Handler>) {
  useEffect(() => {
    const map = new Map(Object.entries(keys));
    handlers.push(map);
    return () => { handlers.splice(handlers.indexOf(map), 1); };
  });
}
