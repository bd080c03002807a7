import { migrate } from "../../src/index.ts";
import { benchPool, freshSchema } from "../setup.ts";
import { fillOutbox } from "./fill.ts";

/** A schema with so many effects waiting. `bundled`: as handlers ask for them by the hundred. */
export async function outboxSchema(
  url: string,
  effects: number,
  bundled = false,
): Promise<{ schema: string; drop: () => Promise<void> }> {
  const made = await freshSchema(url, 1);
  const pool = benchPool(url, made.schema, 1, false);
  await migrate(pool, { schema: made.schema });
  await pool.end();
  await fillOutbox(url, made.schema, effects, bundled);
  return made;
}
