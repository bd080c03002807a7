import type { Fault } from "../check-message.ts";
import { readJson } from "../json-document.ts";
import type { JsonDocument } from "../json-document.ts";
import { parsePointer } from "../json-pointer.ts";
import { parseRfc3339 } from "../rfc3339.ts";
import { fault, isFault, readAs, refused } from "./format.ts";
import type { Format, Why } from "./format.ts";
import { keyText } from "./header-value.ts";
import { jsonField } from "./json-field.ts";
import { receiveProducer } from "./producer.ts";
import type { ProducerOption } from "./producer.ts";

export interface JsonOptions extends ProducerOption {
  /** The JSON pointer (RFC 6901) of the id, such as `/eventId`: a text, or a whole number, which is taken as it is written. */
  readonly idPath: string;
  /** The JSON pointer of the producer's name. Default: `producer`, or where the delivery came from. */
  readonly producerPath?: string | undefined;
  /** The JSON pointer of the key. Default: the broker's key. */
  readonly keyPath?: string | undefined;
  readonly typePath?: string | undefined;
  /** The JSON pointer of an RFC 3339 timestamp. */
  readonly timePath?: string | undefined;
  /** The JSON pointer of the tenant. Only where nobody but the tenant's own systems can write it. */
  readonly tenantPath?: string | undefined;
}

/** Plain JSON documents with their id in a field. Throws `invalid-option` for what is no JSON pointer. */
export function json(options: JsonOptions): Format {
  const field = (name: keyof JsonOptions): Field | undefined =>
    options[name] === undefined
      ? undefined
      : { pointer: options[name], tokens: parsePointer(options[name], name) };
  const idField: Field = { pointer: options.idPath, tokens: parsePointer(options.idPath, "idPath") };
  const producerField = field("producerPath");
  const keyField = field("keyPath");
  const typeField = field("typePath");
  const timeField = field("timePath");
  const tenantField = field("tenantPath");
  const why: Why = {
    identity: `the field ${options.idPath}`,
    payload: "the whole document",
    key: options.keyPath === undefined ? "the broker's key, if there is one" : `the field ${options.keyPath}`,
    time: options.timePath === undefined ? "none" : `the field ${options.timePath}`,
  };
  return {
    name: "json",
    fingerprint: { by: "json" },
    read(delivery) {
      const document = readJson(delivery.body);
      if (typeof document === "string") {
        return refused(delivery, fault("malformed", `The JSON document cannot be read: ${document}.`));
      }
      const id = read(document, idField);
      const producer =
        producerField === undefined ? receiveProducer(options, delivery) : read(document, producerField);
      const key = keyField === undefined ? keyText(delivery.key) : read(document, keyField);
      const type = read(document, typeField);
      const time = read(document, timeField);
      const tenant = tenantField === undefined ? delivery.tenant : read(document, tenantField);
      for (const value of [id, producer, key, type, time, tenant])
        if (isFault(value)) return refused(delivery, value);
      const date = typeof time === "string" ? parseRfc3339(time) : undefined;
      return [readAs(delivery, { tenant, producer, id, payload: delivery.body, key, type, time: date }, why)];
    },
  };
}

interface Field {
  readonly pointer: string;
  readonly tokens: readonly string[];
}

const read = (document: JsonDocument, field: Field | undefined): string | undefined | Fault =>
  field === undefined ? undefined : jsonField(document, field.tokens, field.pointer);
