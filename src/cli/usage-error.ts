/** The command was used wrongly: exit code 2. The message says what to write instead. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}
