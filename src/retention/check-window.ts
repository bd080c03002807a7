import { InboxError } from "../errors.ts";
import { showDuration } from "./duration.ts";
import type { RetentionPlan } from "./plan.ts";

export interface WindowCheck {
  /** How long identities are kept, in milliseconds; `Infinity` for ever. */
  readonly windowMs: number;
  /** Whether a window that is too short is refused. Default false: it is a warning. */
  readonly strict?: boolean | undefined;
  /** Where warnings go: `intake.warn` of a source. */
  readonly warn: (text: string) => void;
}

/** What is wrong with a window, in one sentence for each scenario that reaches beyond it. Empty: nothing. */
export const windowFaults = (plan: RetentionPlan, windowMs: number): readonly string[] =>
  plan.scenarios
    .filter(({ reachMs }) => reachMs !== undefined && reachMs > windowMs)
    .map(
      ({ name, broker, reachMs, how }) =>
        `${name}${broker === undefined ? "" : ` of ${broker}`} reaches back ${showDuration(reachMs ?? 0)}: ${how}`,
    );

/**
 * The check at a source's start: warns where copies may come later than identities are kept, and what else the plan
 * warns of. Throws `window-too-short` with `strict`, before anything is received.
 */
export function checkWindow(plan: RetentionPlan, { windowMs, strict, warn }: WindowCheck): void {
  const faults = windowFaults(plan, windowMs);
  if (faults.length > 0) {
    const text =
      `Identities are kept for ${showDuration(windowMs)}, but copies of a message may come later, and would run a second time. ` +
      `${faults.join(". ")}. Keep identities for ${showDuration(plan.windowMs)} (inbox retention plan).`;
    if (strict === true) throw new InboxError("window-too-short", text);
    warn(text);
  }
  for (const warning of plan.warnings) warn(warning);
}
