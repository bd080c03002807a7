import { fault, ignored, partsOf, readAs, refused } from "./format.ts";
import type { Format, RawDelivery, ReadItem, Why } from "./format.ts";
import { readInterchanges } from "./edifact-interchange.ts";
import type { EdiParty, Interchange } from "./edifact-interchange.ts";
import { joinName } from "./join-name.ts";

/** How long a partner's control references stay unique: for ever, or until the UNB's year, month or day ends. */
export type ReferencePeriod = "ever" | "year" | "month" | "day";

export interface EdifactOptions {
  /**
   * When references may be used again, by partner where they differ; default `ever`. The period is part of the identity,
   * so set it before going live: changing it makes old interchanges new.
   */
  readonly period?:
    | ReferencePeriod
    | ((parties: { readonly sender: EdiParty; readonly recipient: EdiParty }) => ReferencePeriod)
    | undefined;
  /**
   * What becomes of interchanges with the test indicator: ignored (the default), or taken as messages whose identities
   * are apart from production's.
   */
  readonly test?: "ignore" | "accept" | undefined;
}

const why: Why = {
  identity:
    "the interchange control reference as a text, in the name of sender and recipient with their qualifiers",
  payload: "the interchange from its UNA or UNB to its UNZ, undecoded",
  key: "sender and recipient",
  time: "none: the UNB's time has no time zone",
};

/**
 * EDIFACT: one message an interchange, a file may hold many. An envelope whose UNZ does not fit its UNB is `malformed`.
 * The payload is bytes of the interchange's own character set, which the header `edifact-charset` names:
 * `edifactDecoder` decodes them.
 */
export const edifact = (options: EdifactOptions = {}): Format => ({
  name: "edifact",
  fingerprint: { by: "bytes" },
  read(delivery) {
    const own = partsOf(delivery);
    const interchanges = readInterchanges(own.body ?? new Uint8Array());
    if (interchanges.length === 0) return ignored("a file without interchanges");
    return interchanges.flatMap((interchange) => readOne(own, interchange, options));
  },
});

function readOne(
  delivery: RawDelivery,
  interchange: Interchange,
  options: EdifactOptions,
): readonly ReadItem[] {
  const { sender, recipient, reference, test, bytes } = interchange;
  const own: RawDelivery = { ...delivery, body: bytes };
  const parties = [sender.id, sender.qualifier, recipient.id, recipient.qualifier];
  const period = periodOf(interchange, options);
  const producer = joinTrimmed([...parties, test ? "test" : "", period ?? ""]);
  if (interchange.problem !== undefined || period === undefined) {
    const problem = interchange.problem ?? "the period of its reference cannot be told";
    return refused(own, fault("malformed", `The interchange cannot be read: ${problem}.`), {
      producer,
      id: reference,
    });
  }
  if (test && options.test !== "accept") return ignored("an interchange with the test indicator");
  return [
    readAs(
      own,
      {
        producer,
        id: reference,
        payload: bytes,
        key: joinName(parties),
        type: interchange.messageType,
        headers: {
          "edifact-charset": interchange.charset,
          "edifact-prepared": `${interchange.date}:${interchange.time}`,
        },
      },
      why,
    ),
  ];
}

/** Without the empty parts at the end, so that a name gets longer only where there is something to tell apart. */
const joinTrimmed = (parts: readonly string[]): string =>
  joinName(parts.slice(0, parts.findLastIndex((part) => part !== "") + 1));

/** `""` for ever, `undefined` where the date that is needed cannot be read, or the user's function failed. */
function periodOf(
  { sender, recipient, date }: Interchange,
  { period = "ever" }: EdifactOptions,
): string | undefined {
  let rule: ReferencePeriod;
  try {
    rule = typeof period === "function" ? period({ sender, recipient }) : period;
  } catch {
    return undefined;
  }
  if (rule === "ever") return "";
  const day = /^\d{6}$/.test(date) ? `20${date}` : /^\d{8}$/.test(date) ? date : undefined;
  return day?.slice(0, { year: 4, month: 6, day: 8 }[rule]);
}
