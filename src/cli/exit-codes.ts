/** What the command's exit codes mean. They are part of the public contract. */
export const exitCodes = {
  fine: 0,
  failed: 1,
  wrongUsage: 2,
  /** It worked, and there is something for a person to look at. */
  foundSomething: 3,
  /** Ended at once by a second SIGINT. */
  interrupted: 130,
} as const;

export type ExitCode = (typeof exitCodes)[keyof typeof exitCodes];
