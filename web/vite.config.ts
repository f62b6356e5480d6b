import react from '@vitejs/plugin-react'
import { defineConfig } from 'vitest/config'

// The build goes where internal/console embeds it. Every asset has its hash in its name, so that it can be cached for ever.
export default defineConfig({
  base: '/admin/',
  plugins: [react()],
  build: {
    outDir: '../internal/console/dist',
    emptyOutDir: true,
    assetsDir: 'assets',
    // No inlined files: the content security policy has no data: for scripts, styles and fonts.
    assetsInlineLimit: 0,
    sourcemap: false,
    manifest: true,
    modulePreload: { polyfill: false },
    target: 'es2022',
    chunkSizeWarningLimit: 700,
  },
  server: {
    port: 5173,
    // The test bench has the verifiers of examples/ as its recipes.
    fs: { allow: ['.', '../examples/verifiers'] },
    // The program's own address: GATEHOUSE_CONSOLE_API=http://demo.localhost:8080 npm run dev
    proxy: { '/admin/v1': { target: process.env['GATEHOUSE_CONSOLE_API'] ?? 'http://demo.localhost:8080', changeOrigin: true } },
  },
  test: {
    restoreMocks: true,
    // A browser's document is slow to make: only tests of what is drawn (.tsx) get one.
    projects: [
      { extends: true, test: { name: 'plain', environment: 'node', include: ['src/**/*.test.ts'] } },
      { extends: true, test: { name: 'drawn', environment: 'happy-dom', include: ['src/**/*.test.tsx'], setupFiles: ['src/test-setup.ts'] } },
    ],
  },
})
