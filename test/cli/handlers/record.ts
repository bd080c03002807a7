import type { HandlerContext } from "../../../src/inbox/handler.ts";
import type { Message } from "../../../src/message/message.ts";
import type { Tx } from "../../../src/store/statement.ts";

export const options = { consumer: "recording" };

export const prepare = async (db: Tx): Promise<void> => {
  await db.query("create table if not exists effect (message_id text not null)");
};

/** Writes down each message it is given. */
export default async ({ id }: Message, { tx }: HandlerContext): Promise<void> => {
  await tx.query("insert into effect (message_id) values ($1)", [id]);
};
