import { joinNameWithin } from "../../message/formats/join-name.ts";
import { maxProducerBytes } from "../../message/limits.ts";
import type { Effect } from "../effect.ts";

/** An effect as a CloudEvent in binary mode: what each transport writes in its own way. */
export interface BinaryEvent {
  /** Attributes by their plain names: `id`, `source`, `type`, `specversion`, … */
  readonly attributes: ReadonlyMap<string, string>;
  /** The effect's other headers, as they were given; the content type is not among them. */
  readonly headers: ReadonlyMap<string, string>;
  /** `undefined` for an effect without a body that says none. */
  readonly contentType: string | undefined;
}

const attributeName = /^(?:ce[-_]|cloudEvents[:_])([a-z0-9]+)$/i;

/**
 * What says who an effect is stands in the attributes and nowhere else: a header of the effect's own that is written as an
 * attribute, in whatever transport's way, is an extension, or gives way. Two that differ would make the event unreadable.
 */
export function binaryEvent(effect: Effect): BinaryEvent {
  const { id, type, time, key, payload } = effect;
  const attributes = new Map<string, string>();
  const headers = new Map<string, string>();
  let contentType: string | undefined;
  for (const [name, value] of Object.entries(effect.headers)) {
    const attribute = attributeName.exec(name)?.[1]?.toLowerCase();
    if (attribute !== undefined) attributes.set(attribute, value);
    else if (name.toLowerCase() === "content-type") contentType ??= value;
    else headers.set(name, value);
  }
  attributes.set("specversion", "1.0");
  attributes.set("id", id);
  attributes.set("source", eventSource(effect));
  attributes.set("type", type === undefined || type === "" ? "transactional-inbox.effect" : type);
  // Those of an incoming message that a handler passes on are not this effect's.
  setOrDelete(attributes, "time", time?.toISOString());
  setOrDelete(attributes, "partitionkey", key);
  if (payload !== null) contentType ??= "application/octet-stream";
  return { attributes, headers, contentType };
}

/** The producer; with its tenant before it, so that the same id of two tenants is never one event. */
export const eventSource = ({ tenant, producer }: Pick<Effect, "tenant" | "producer">): string =>
  tenant === "" ? producer : joinNameWithin([tenant, producer], maxProducerBytes);

function setOrDelete(map: Map<string, string>, name: string, value: string | undefined): void {
  if (value === undefined) map.delete(name);
  else map.set(name, value);
}

/** As the bindings of CloudEvents to HTTP and NATS write values: what is not printable ASCII, space, quote and percent in percent. */
export const percentEncoded = (text: string): string =>
  text.replace(/[^\x21\x23\x24\x26-\x7e]+/gu, (part) =>
    Array.from(Buffer.from(part), (byte) => `%${byte.toString(16).toUpperCase().padStart(2, "0")}`).join(""),
  );
