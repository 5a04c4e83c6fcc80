import { defineConfig } from 'vite';

declare const process: { env: Record<string, string | undefined> };

// Addresses are relative, so that the page works behind whatever path a proxy puts before it.
export default defineConfig({
  base: './',
  // Built, the service writes the way to its root; while developing it is that of Vite.
  plugins: [{ name: 'root', transformIndexHtml: (html, page) => (page.server ? html.replace('<base href="./"', '<base href="/"') : html) }],
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  build: {
    outDir: 'dist',
    assetsDir: 'ui',
    target: 'es2022',
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
  },
  server: { proxy: { '/v1': process.env.SLIPWAY_SERVICE ?? 'http://127.0.0.1:8470' } },
});
