import tseslint from "typescript-eslint";

// The rules that find what a reviewer misses in this code: a promise nobody waits for, a value that is no promise
// awaited, a branch that cannot be taken. Style is the formatter's.
export default tseslint.config(
  { ignores: ["dist", "node_modules", ".inbox", ".cache", "**/*.mjs", "**/*.js"] },
  tseslint.configs.recommendedTypeChecked,
  {
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    rules: {
      "@typescript-eslint/no-floating-promises": "error",
      "@typescript-eslint/no-misused-promises": "error",
      "@typescript-eslint/switch-exhaustiveness-check": "error",
      "@typescript-eslint/consistent-type-imports": "error",
      "@typescript-eslint/require-await": "off",
      "@typescript-eslint/only-throw-error": "off",
      // Objects here come from factories, not classes: their methods use no `this` and may be taken apart.
      "@typescript-eslint/unbound-method": "off",
      "@typescript-eslint/no-unused-vars": ["error", { argsIgnorePattern: "^_", varsIgnorePattern: "^_" }],
      eqeqeq: "error",
    },
  },
  {
    files: ["test/**", "bench/**"],
    rules: {
      // node:test returns promises that the runner itself waits for.
      "@typescript-eslint/no-floating-promises": [
        "error",
        {
          allowForKnownSafeCalls: [
            { from: "package", package: "node:test", name: ["test", "it", "describe", "suite"] },
          ],
        },
      ],
    },
  },
);
