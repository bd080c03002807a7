import { printable } from "../message/show-value.ts";
import type { ConsumersMessage, Pending } from "../pending/pending.ts";
import type { Io } from "./io.ts";
import { pendingFilterOf, type PendingFilterOptions } from "./pending-filter.ts";
import { UsageError } from "./usage-error.ts";

/** The one pending message of an id; `undefined`, and said so, if there is none. Throws a usage error for several. */
export async function findPending(
  io: Io,
  pending: Pending,
  id: string,
  options: PendingFilterOptions,
): Promise<ConsumersMessage | undefined> {
  const rows = await pending.list({ ...pendingFilterOf(options), messageId: id, limit: 20 });
  const [row, ...others] = rows;
  if (row === undefined) {
    io.say(`inbox: No pending message has the id ${printable(id)}. See: inbox explain ${printable(id)}`);
    return undefined;
  }
  if (others.length > 0) {
    const whose = rows.map(
      ({ consumer, producer, tenant }) =>
        `--consumer ${consumer} --producer ${producer}${tenant === "" ? "" : ` --tenant ${tenant}`}`,
    );
    throw new UsageError(`Several pending messages have this id. Say whose: ${whose.join("; ")}`);
  }
  const { consumer, tenant, producer, messageId } = row;
  return { consumer, tenant, producer, id: messageId };
}
