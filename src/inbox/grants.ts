import { setMaxListeners } from "node:events";
import type { Lease, PendingMessage, Taken } from "../store/pending.ts";
import { telemetry } from "../telemetry/channels.ts";
import { tellWarning } from "../telemetry/tell-warning.ts";
import { errorText } from "./classify-error.ts";
import type { Grant } from "./item.ts";
import type { LaneContext } from "./lane-context.ts";

/** The lanes of pending messages that this process holds: taken, renewed while anything in them is open, given back. */
export interface Grants {
  /** Gives back what is done and takes at most so many messages and bytes more. Rejects where the store does. */
  take(maxMessages: number, maxBytes: number): Promise<Taken>;
  /** The grant that a taken message stands on. */
  of(message: PendingMessage): Grant;
  /** One message of a grant is out of hand. A lane of which one was left is given back a little later. */
  done(grant: Grant): void;
  /** Gives back at once whatever is out of hand. Rejects where the store does. */
  giveBack(): Promise<void>;
  stop(): void;
}

interface OpenGrant extends Grant {
  open: number;
  /** By this process's monotonic clock, counted from before the request: never later than the lease really ends. */
  validUntil: number;
  readonly controller: AbortController;
}

export function createGrants(
  { store, name, settings }: LaneContext,
  workerId: string,
  leaseMs: number,
  maxLanes: number,
  onFree: () => void,
): Grants {
  const held = new Map<string, OpenGrant>();
  let done: Lease[] = [];
  const late = new Map<OpenGrant, NodeJS.Timeout>();
  const idOf = ({ lane, token }: Lease): string => `${lane}:${token}`;

  function lose(grant: OpenGrant): void {
    held.delete(idOf(grant));
    clearTimeout(late.get(grant));
    late.delete(grant);
    grant.controller.abort();
  }

  async function renew(): Promise<void> {
    const grants = [...held.values()];
    if (grants.length === 0) return;
    const asked = performance.now();
    try {
      const renewed = new Set((await store.pending.renew(name.consumer, grants, leaseMs)).map(idOf));
      for (const grant of grants) {
        if (renewed.has(idOf(grant))) grant.validUntil = asked + leaseMs;
        else if (held.has(idOf(grant))) lose(grant);
      }
    } catch (error) {
      tellWarning(`The leases of lanes were not renewed: ${errorText(error)}`);
    }
  }

  function free(grant: OpenGrant): void {
    held.delete(idOf(grant));
    late.delete(grant);
    done.push({ lane: grant.lane, token: grant.token });
    onFree();
  }

  async function take(maxMessages: number, maxBytes: number): Promise<Taken> {
    const giving = done;
    done = [];
    const asked = performance.now();
    let taken: Taken;
    try {
      const request = { workerId, leaseMs, maxLanes, maxMessages, maxBytes, done: giving };
      taken = await store.pending.take(name.consumer, request);
    } catch (error) {
      done.push(...giving);
      throw error;
    }
    const size = taken.messages.length;
    if (size > 0) telemetry.taken.publish({ consumer: name.consumer, size });
    for (const { lease } of taken.messages) {
      const known = held.get(idOf(lease));
      if (known !== undefined) known.open++;
      else {
        const controller = new AbortController();
        // Every transaction of the lane listens while it works.
        setMaxListeners(0, controller.signal);
        const grant = { ...lease, stuck: new Set<string>(), hindered: false, lost: controller.signal };
        held.set(idOf(lease), { ...grant, open: 1, validUntil: asked + leaseMs, controller });
      }
    }
    return taken;
  }

  // The renewal may hang; whether a lease has run out is asked beside it.
  let renewing: Promise<void> | undefined;
  const timer = setInterval(() => {
    for (const grant of held.values()) if (performance.now() >= grant.validUntil) lose(grant);
    renewing ??= renew().finally(() => (renewing = undefined));
  }, leaseMs / 4);
  timer.unref();

  return {
    take,
    of({ lease }) {
      const grant = held.get(idOf(lease));
      if (grant !== undefined) return grant;
      // Lost between the taking and now.
      return { ...lease, stuck: new Set(), hindered: true, lost: AbortSignal.abort() };
    },
    done(grant) {
      const own = held.get(idOf(grant));
      if (own === undefined || --own.open > 0) return;
      if (!own.hindered) return free(own);
      // Taken again at once it would meet the same thing in its way.
      const waitMs = settings.claimLockTimeoutMs * (1 + settings.random());
      late.set(
        own,
        setTimeout(() => free(own), waitMs),
      );
    },
    async giveBack() {
      for (const [grant, timer] of late) {
        clearTimeout(timer);
        free(grant);
      }
      if (done.length > 0) await take(0, 0);
    },
    stop() {
      clearInterval(timer);
      for (const lateTimer of late.values()) clearTimeout(lateTimer);
    },
  };
}
