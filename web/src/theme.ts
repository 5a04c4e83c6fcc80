import { effect, signal } from '@preact/signals';

export type Theme = 'system' | 'light' | 'dark';
const stored = localStorage.getItem('slipway.theme');
export const theme = signal<Theme>(stored === 'light' || stored === 'dark' ? stored : 'system');
const wantsDark = matchMedia('(prefers-color-scheme: dark)');
const systemDark = signal(wantsDark.matches);
wantsDark.addEventListener('change', () => { systemDark.value = wantsDark.matches; });
export const isDark = () => theme.value === 'dark' || (theme.value === 'system' && systemDark.value);

effect(() => { document.documentElement.dataset.theme = isDark() ? 'dark' : 'light'; });

export function setTheme(next: Theme) {
  localStorage.setItem('slipway.theme', next);
  theme.value = next;
}
