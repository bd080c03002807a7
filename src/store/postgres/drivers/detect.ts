import { InboxError } from "../../../errors.ts";
import type { Driver } from "../driver.ts";
import { pgDriver, type PgDriverOptions } from "./pg.ts";
import type { PgPoolLike } from "./pg-client.ts";
import { postgresJsDriver } from "./postgres-js.ts";
import type { PostgresJsLike } from "./postgres-js-client.ts";
import { describeGiven, shapeOf } from "./shapes.ts";

/** The driver for a pool of `pg` or a client of `postgres`. Throws `invalid-option` for anything else, saying what to give. */
export function driverFor(given: unknown, options: PgDriverOptions = {}): Driver {
  const shape = shapeOf(given);
  switch (shape) {
    case "pg pool":
      return pgDriver(given as PgPoolLike, options);
    case "postgres.js":
      return postgresJsDriver(given as PostgresJsLike);
    case "pg client":
      throw wrong("a single pg client", "A lane needs a connection of its own: give a Pool.");
    case "postgres.js transaction":
      throw wrong(
        "a transaction or a reserved connection of postgres.js",
        "Give the sql that postgres(...) returned.",
      );
    case "knex":
      throw wrong("a Knex instance", "Give a pg Pool of the inbox's own; Knex's pool cannot be shared.");
    case "kysely":
      throw wrong("a Kysely instance", "Give the pg Pool that its PostgresDialect was made with.");
    case "drizzle":
      throw wrong("a Drizzle database", "Give its $client: the pg Pool or the postgres.js client under it.");
    case "prisma":
      throw wrong("a Prisma client", "Give a pg Pool of the inbox's own.");
    case "typeorm":
      throw wrong("a TypeORM object", "Give a pg Pool of the inbox's own.");
    case "sequelize":
      throw wrong("a Sequelize instance", "Give a pg Pool of the inbox's own.");
    case "query object":
    case "other":
      throw wrong(
        describeGiven(given),
        typeof given === "string"
          ? "Give new Pool({ connectionString, pipeline: true })."
          : "See docs/drivers.md.",
      );
  }
}

function wrong(what: string, advice: string): InboxError {
  return new InboxError(
    "invalid-option",
    `postgres(pool) takes a Pool of "pg" or the client of "postgres", and was given ${what}. ${advice}`,
  );
}
