import js from '@eslint/js'
import jsxA11y from 'eslint-plugin-jsx-a11y'
import reactHooks from 'eslint-plugin-react-hooks'
import globals from 'globals'
import tseslint from 'typescript-eslint'

/** What a folder under src may not import: the arrows go features → app → ui → api, as in docs/architecture.md. */
const forbid = (files, patterns) => ({
  files,
  rules: { 'no-restricted-imports': ['error', { patterns }] },
})

export default tseslint.config(
  { ignores: ['node_modules', '../internal/console/dist'] },
  js.configs.recommended,
  {
    files: ['src/**/*.{ts,tsx}', 'vite.config.ts'],
    extends: [...tseslint.configs.recommendedTypeChecked],
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    rules: {
      '@typescript-eslint/no-misused-promises': ['error', { checksVoidReturn: { attributes: false } }],
      '@typescript-eslint/consistent-type-imports': 'error',
      '@typescript-eslint/switch-exhaustiveness-check': 'error',
    },
  },
  {
    files: ['src/**/*.tsx', 'src/**/*.ts'],
    ...jsxA11y.flatConfigs.recommended,
    rules: {
      ...jsxA11y.flatConfigs.recommended.rules,
      // The sign-in page, a dialog and the palette begin in their field: that is what they were opened for.
      'jsx-a11y/no-autofocus': 'off',
    },
  },
  {
    files: ['src/**/*.{ts,tsx}'],
    plugins: { 'react-hooks': reactHooks },
    rules: { 'react-hooks/rules-of-hooks': 'error', 'react-hooks/exhaustive-deps': 'error' },
  },
  {
    files: ['**/*.{js,mjs}'],
    languageOptions: { globals: { ...globals.node, ...globals.browser } },
  },
  forbid(['src/api/**'], [{ regex: '/(ui|app|features|kit)/', message: 'api knows nothing of the screen' }]),
  forbid(['src/ui/**'], [{ regex: '/(app|features|kit)/', message: 'ui is dumb: hand it what it needs' }]),
  forbid(['src/app/**'], [{ regex: '/features/(?!.*/feature$)', message: 'app knows a feature by its feature.tsx alone' }]),
  forbid(['src/features/**'], [{ regex: '^\\.\\./(?!\\.\\./)', message: 'no feature imports another: use app/paths for an address' }]),
)
