/** What a user may give where a pool or a transaction is wanted, told apart by its methods and never by its class. */
export type Shape =
  | "pg pool"
  | "pg client"
  | "postgres.js"
  | "postgres.js transaction"
  | "knex"
  | "kysely"
  | "drizzle"
  | "prisma"
  | "typeorm"
  | "sequelize"
  | "query object"
  | "other";

/** Recognises what was given. Looks only, calls nothing. */
export function shapeOf(given: unknown): Shape {
  if ((typeof given !== "object" && typeof given !== "function") || given === null) return "other";
  const has = (name: string): boolean => {
    try {
      return typeof (given as Record<string, unknown>)[name] === "function";
    } catch {
      return false;
    }
  };
  if (typeof given === "function") {
    if (has("unsafe")) return has("reserve") && has("begin") ? "postgres.js" : "postgres.js transaction";
    return has("raw") && (has("transaction") || has("commit")) ? "knex" : "other";
  }
  if (has("selectFrom") && has("insertInto")) return "kysely";
  if (has("$queryRawUnsafe")) return "prisma";
  if (has("createQueryRunner")) return "typeorm";
  if (has("getQueryInterface")) return "sequelize";
  if (has("execute") && has("select") && has("insert")) return "drizzle";
  if (has("connect") && has("query") && has("on")) {
    return typeof (given as { totalCount?: unknown }).totalCount === "number" ? "pg pool" : "pg client";
  }
  return has("query") ? "query object" : "other";
}

/** Names a value for an error message, without its contents: a connection string holds a password. */
export function describeGiven(given: unknown): string {
  if (given === null) return "null";
  if (typeof given === "string") return "a string";
  if (typeof given !== "object" && typeof given !== "function") return typeof given;
  if (Array.isArray(given)) return "an array";
  const name = typeof given === "object" ? (given.constructor as { name?: unknown } | undefined)?.name : "";
  if (typeof given === "function") return "a function";
  return typeof name === "string" && name !== "" && name !== "Object"
    ? `an object of class ${name}`
    : "an object";
}
