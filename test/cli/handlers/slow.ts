import { setTimeout as sleep } from "node:timers/promises";
import type { HandlerContext, Message } from "../../../src/index.ts";

export { options, prepare } from "./credit.ts";

/** Credits like the other one, on its transaction, and takes its time; says on stdout's neighbour when it has begun. */
export const handler = async (message: Message, { tx }: HandlerContext): Promise<void> => {
  const { account, amount, kind } = message.json() as { account: string; amount: number; kind?: string };
  if (kind === "hangs") {
    console.error("HANGING");
    await new Promise(() => setInterval(() => undefined, 1_000));
  }
  await tx.query(
    `insert into account (id, balance) values ($1, $2)
     on conflict (id) do update set balance = account.balance + excluded.balance`,
    [account, amount],
  );
  // So long that a test has time to see some of them before the last one, also on a busy machine.
  await sleep(10);
};
