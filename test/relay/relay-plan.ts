/** Where a relay can be made to die, in the order an effect passes them. */
export const relayPoints = ["taken", "sending", "answered", "settling", "settle sent", "settled"] as const;

export type RelayPoint = (typeof relayPoints)[number];

/** What a relay process is told by its first argument, as JSON. */
export interface RelayPlan {
  readonly url: string;
  readonly schema: string;
  /** Where its requests go. */
  readonly hook: string;
  /** Given: effects go to the inbox in this schema instead. */
  readonly inboxSchema?: string | undefined;
  /** Dies when it comes here, after it was here so often. */
  readonly die?: { readonly at: RelayPoint; readonly after: number } | undefined;
}
