import { capturedDeliveries } from "../../message/formats/captured.ts";
import { readCloudEvent } from "../../message/formats/cloudevents.ts";
import { toFormat, type FormatChoice } from "../../message/formats/formats.ts";
import { receiveMessage } from "../../message/create-message.ts";
import { isRejected, type Received, type RejectionCode } from "../../message/message.ts";
import { rejectMessage } from "../../message/reject-message.ts";
import { decodeUtf8 } from "../../message/utf8.ts";
import { createItemReader } from "../read-items.ts";
import { parseJsonPath, valueAt } from "./json-path.ts";
import type { Line } from "./line-splitter.ts";

/** How lines of plain JSON name their messages. Paths are JSON pointers (`/order/id`) or names (`order.id`). */
export interface PlainLines {
  /** Where the id stands: a text, or a number, which is taken as it is written. */
  readonly idPath: string;
  /** Who produced them. */
  readonly producer: string;
  /** Where the key stands: messages of one key keep their order. */
  readonly keyPath?: string | undefined;
  readonly typePath?: string | undefined;
}

/**
 * How lines name their messages. A format's name (`"cloudevents"`, `"sqs"`, ...) or a format: each line is a document, or
 * a capture with its headers, as `inbox identify` reads it. Or where plain JSON has its id.
 */
export type LineIdentity = FormatChoice | PlainLines;

export interface ReadLineOptions {
  readonly identity: LineIdentity;
  readonly tenant: string | undefined;
  /** Names the file in texts for people. */
  readonly fileName: string;
  readonly maxLineBytes: number;
}

/** Reads lines. A line may hold several messages, or none. */
export interface LineReader {
  read(line: Line): readonly Received[];
  /** What was ignored, by reason. */
  ignored(): Readonly<Record<string, number>>;
}

/** The header that tells where in which file a rejected line stands: `orders.ndjson:1024:77`, the bytes it takes last. */
export const positionHeader = "ndjson-position";

/**
 * Makes a reader of lines. It never throws: what is no message becomes a rejected one with the line's bytes and its
 * place. Throws `invalid-option` itself for a wrong path or name.
 */
export function createLineReader(options: ReadLineOptions): LineReader {
  const { identity, tenant, fileName, maxLineBytes } = options;
  const { read, ignored } = isPlain(identity)
    ? { read: plainReader(identity, tenant), ignored: () => ({}) }
    : formatReader(identity, fileName, tenant);
  return {
    ignored,
    read(line) {
      const position = `${fileName}:${line.start}:${line.length}`;
      const all =
        line.tooLong === undefined
          ? read(line.bytes)
          : [
              rejectMessage({
                code: "too-large",
                text:
                  `The line at ${position} is ${line.length} bytes, over the limit of ${maxLineBytes}: ` +
                  `its first ${line.bytes.length} are kept. SHA-256 of the whole: ${line.tooLong}.`,
                bytes: line.bytes,
              }),
            ];
      return all.map((received) =>
        isRejected(received)
          ? { ...received, headers: { ...received.headers, [positionHeader]: position } }
          : received,
      );
    },
  };
}

const openBrace = 0x7b;

const isPlain = (identity: LineIdentity): identity is PlainLines =>
  typeof identity === "object" && "idPath" in identity;

function formatReader(identity: FormatChoice, channel: string, tenant: string | undefined) {
  const items = createItemReader(toFormat(identity));
  return {
    read: (bytes: Buffer): readonly Received[] =>
      // What the format would do with a structured event, in half the time. In a capture of one, the quotes round this
      // word are escaped.
      identity === "cloudevents" && bytes[0] === openBrace && bytes.includes('"specversion"')
        ? [readCloudEvent(bytes, { tenant })]
        : capturedDeliveries(bytes, channel).flatMap((delivery) => items.read({ ...delivery, tenant })),
    ignored: items.ignored,
  };
}

function plainReader(format: PlainLines, tenant: string | undefined): (bytes: Buffer) => readonly Received[] {
  const idPath = parseJsonPath(format.idPath, "idPath");
  const keyPath = format.keyPath === undefined ? undefined : parseJsonPath(format.keyPath, "keyPath");
  const typePath = format.typePath === undefined ? undefined : parseJsonPath(format.typePath, "typePath");
  const { producer } = format;
  return (bytes) => {
    const reject = (code: RejectionCode, reason: string): readonly Received[] => [
      rejectMessage({
        code,
        text: `The line cannot be read: ${reason}.`,
        identity: { tenant, producer },
        bytes,
      }),
    ];

    const text = decodeUtf8(bytes);
    if (text === undefined) return reject("malformed", "it is no UTF-8");
    try {
      JSON.parse(text);
    } catch {
      return reject("malformed", "it is no JSON");
    }
    const id = valueAt(text, idPath);
    if ("reason" in id) return reject("malformed", id.reason);
    const key = keyPath === undefined ? undefined : valueAt(text, keyPath);
    if (key !== undefined && "reason" in key) return reject("malformed", key.reason);
    const type = typePath === undefined ? undefined : valueAt(text, typePath);
    if (type !== undefined && "reason" in type) return reject("malformed", type.reason);
    return [
      receiveMessage({
        tenant,
        producer,
        id: id.value,
        payload: bytes,
        key: key?.value ?? undefined,
        type: type?.value ?? undefined,
      }),
    ];
  };
}
