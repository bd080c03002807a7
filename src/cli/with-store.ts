import { Command, Option } from "commander";
import { createOutboxConsole, type OutboxConsole } from "../outbox/console.ts";
import { createPending, type Pending } from "../pending/pending.ts";
import { createQuarantine, type Quarantine } from "../quarantine/quarantine.ts";
import type { RedactionOptions } from "../quarantine/redact.ts";
import { postgres } from "../store/postgres/postgres.ts";
import type { Store } from "../store/store.ts";
import { loadConfig } from "./config.ts";
import { openDatabase } from "./database.ts";
import type { Io } from "./io.ts";
import { schemaOption } from "./options.ts";

/** Where a command finds its tables and keys. */
export interface StoreOptions {
  readonly schema: string;
  readonly config?: string;
}

/** `--config`, the same for every command that shows or stores bodies. */
export const configOption = (): Option =>
  new Option(
    "--config <module>",
    "a module that exports payloadKeys, redact or redactHeaders (default: INBOX_CONFIG)",
  );

/** A command with the options of those that connect. */
export const storeCommand = (name: string): Command =>
  new Command(name).addOption(schemaOption()).addOption(configOption());

/** What an operator's command works with. */
export interface Desk {
  readonly store: Store;
  readonly quarantine: Quarantine;
  readonly pending: Pending;
  readonly outbox: OutboxConsole;
  /** What of bodies is not shown. */
  readonly hidden: RedactionOptions;
}

/** Connects, lends the store, and closes. */
export async function withStore(
  io: Io,
  { schema, config }: StoreOptions,
  use: (desk: Desk) => Promise<void>,
  maxConnections = 1,
): Promise<void> {
  const { payloadKeys, redact, redactHeaders } = await loadConfig(io, config);
  const hidden = { redact, redactHeaders };
  const database = await openDatabase(io, { local: "existing", maxConnections });
  try {
    const store = postgres(database.pool, { schema, payloadKeys });
    const quarantine = createQuarantine({ store, ...hidden });
    const pending = createPending({ store, ...hidden });
    const outbox = createOutboxConsole({ store, ...hidden });
    await use({ store, quarantine, pending, outbox, hidden });
  } finally {
    await database.close();
  }
}
