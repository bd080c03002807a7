import { InboxError } from "../errors.ts";
import type { Decider } from "../store/quarantine-store.ts";

/** Who and why, without the spaces around them. Throws `decision-needs` where one is missing. */
export function checkedDecider({ by, why }: Decider): Decider {
  return { by: said("by", by, "who decides"), why: said("why", why, "the reason") };
}

function said(field: "by" | "why", value: unknown, what: string): string {
  const text = typeof value === "string" ? value.trim() : "";
  if (text === "") throw new InboxError("decision-needs", `A decision needs ${field}: ${what}.`);
  return text;
}
