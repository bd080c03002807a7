// The public surface.
export { InboxError, PermanentError, errorCatalogue } from "./errors.ts";
export type { ErrorCode } from "./errors.ts";
