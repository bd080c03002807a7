import { canonicalJson } from "../canonical-json.ts";
import { readJson } from "../json-document.ts";
import type { JsonDocument } from "../json-document.ts";
import { maxIdBytes } from "../limits.ts";
import { showValue } from "../show-value.ts";
import { decodeUtf8 } from "../utf8.ts";
import { fault, ignored, readAs, refused } from "./format.ts";
import type { Format, RawDelivery, ReadItem, Why } from "./format.ts";
import { keyText } from "./header-value.ts";
import { joinName, joinNameWithin } from "./join-name.ts";
import { unwrapSchema } from "./debezium-schema.ts";

export interface DebeziumChangeOptions {
  /** Topics that begin with it carry heartbeats, default `__debezium-heartbeat`. */
  readonly heartbeatPrefix?: string | undefined;
}

/** The fields of `source` that say where in its log the change is. */
const positions: Readonly<Record<string, readonly string[]>> = {
  postgresql: ["lsn"],
  mysql: ["file", "pos", "row"],
  mariadb: ["file", "pos", "row"],
  sqlserver: ["change_lsn", "event_serial_no"],
};

const why: Why = {
  identity:
    "the change's position in the database's log with its operation and row key, in the connector's and table's name",
  payload: "the change envelope, without the schema that a converter may put round it",
  key: "the Kafka key, which is the row's key",
  time: "source.ts_ms, when the database made the change",
};

/**
 * Debezium's change envelope (`before`, `after`, `source`, `op`). The identity is the place in the database's log, which
 * a connector that restarts sends again; a new snapshot or a new log is new. For PostgreSQL, MySQL, MariaDB and SQL
 * Server; another connector's changes have no identity here and need a function of yours. Tombstones, heartbeats and
 * transaction markers are ignored. `ts_ms` and its finer forms say when the connector read the change, and are left out of the
 * fingerprint.
 */
export function debeziumChange({
  heartbeatPrefix = "__debezium-heartbeat",
}: DebeziumChangeOptions = {}): Format {
  return {
    name: "debezium-change",
    fingerprint: { by: "json", except: ["/ts_ms", "/ts_ns", "/ts_us"] },
    read(delivery) {
      if (delivery.channel?.startsWith(heartbeatPrefix) === true) return ignored("a Debezium heartbeat");
      if (delivery.body === null) return ignored("a tombstone, which only lets Kafka compact its log");
      return readChange(delivery, delivery.body);
    },
  };
}

function readChange(delivery: RawDelivery, body: Uint8Array | string): readonly ReadItem[] {
  const decoded = typeof body === "string" ? body : decodeUtf8(body);
  const inner = decoded === undefined ? undefined : unwrapSchema(decoded);
  const document = readJson(inner ?? body);
  if (typeof document === "string") {
    return refused(delivery, fault("malformed", `The change event cannot be read: ${document}.`));
  }
  const op = document.text(["op"]);
  const connector = document.text(["source", "connector"]);
  if (op === undefined || connector === undefined) {
    const status = document.text(["status"]);
    if (document.raw(["event_count"]) !== undefined && (status === "BEGIN" || status === "END")) {
      return ignored("a Debezium transaction marker");
    }
    return refused(
      delivery,
      fault("no-identity", "The message is no Debezium change: it has no op or no source.connector."),
    );
  }
  const names = ["name", "db", "schema", "table"].map((name) => document.text(["source", name]) ?? "");
  const producer = joinName([connector, ...names]);
  const position = Object.hasOwn(positions, connector)
    ? positions[connector]!.map((field) => plain(document, ["source", field]))
    : [];
  if (position.length === 0 || position.some((part) => part === undefined)) {
    const text = `The change of connector ${showValue(connector)} has no position in its log that this release knows.`;
    return refused(delivery, fault("no-identity", text), { producer });
  }
  const key = keyText(delivery.key);
  const id = joinNameWithin([...(position as string[]), op, rowKey(key, document)], maxIdBytes);
  const time = Number(plain(document, ["source", "ts_ms"]));
  return [
    readAs(
      delivery,
      {
        producer,
        id,
        payload: inner ?? body,
        key,
        type: `${names.filter((name) => name !== "").join(".")}:${op}`,
        time: time > 0 && time < 8.64e15 ? new Date(time) : undefined,
      },
      why,
    ),
  ];
}

/** A text, or a number as it is written: a log position may be over 2^53. */
function plain(document: JsonDocument, tokens: readonly string[]): string | undefined {
  const text = document.text(tokens);
  if (text !== undefined) return text;
  const raw = document.raw(tokens);
  return raw !== undefined && /^-?\d+$/.test(raw) ? raw : undefined;
}

/** One statement may change many rows at one position, so the row belongs to the identity. */
function rowKey(key: string | undefined, document: JsonDocument): string {
  const text =
    key === undefined
      ? (document.raw(["after"]) ?? document.raw(["before"]) ?? "")
      : (unwrapSchema(key) ?? key);
  const canonical = canonicalJson(text);
  return canonical.ok ? canonical.text : text;
}
