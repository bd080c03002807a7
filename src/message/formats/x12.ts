import { segmentElements, segmentEnd, skipWhiteSpace, startsWith } from "./edi-scanner.ts";
import type { EdiSyntax } from "./edi-scanner.ts";
import { edifactDecoder } from "./edifact-charset.ts";
import { fault, ignored, partsOf, readAs, refused } from "./format.ts";
import type { Format, RawDelivery, ReadItem, Why } from "./format.ts";
import { joinName } from "./join-name.ts";

export interface X12Options {
  /** What a message is: the interchange (the default), or each of its functional groups. */
  readonly unit?: "interchange" | "group" | undefined;
  /** What becomes of interchanges with the usage indicator T: ignored (the default), or taken, apart from production's. */
  readonly test?: "ignore" | "accept" | undefined;
}

interface Group {
  readonly start: number;
  readonly end: number;
  readonly type: string;
  readonly reference: string;
}

const isaLength = 106;
const latin1 = edifactDecoder("UNOA");

const whyOf = (unit: "interchange" | "group"): Why => ({
  identity:
    unit === "interchange"
      ? "ISA13 as a text, in the name of sender and receiver with their qualifiers"
      : "ISA13 and GS06 as texts, in the name of sender and receiver with their qualifiers",
  payload:
    unit === "interchange"
      ? "the interchange from ISA to IEA, undecoded"
      : "the group from GS to GE, undecoded",
  key: "sender and receiver",
  time: "none: ISA09 and ISA10 have no time zone",
});

/** ANSI X12: one message an interchange or a functional group. An envelope whose trailers do not fit is `malformed`. */
export function x12({ unit = "interchange", test = "ignore" }: X12Options = {}): Format {
  const why = whyOf(unit);
  return {
    name: "x12",
    fingerprint: { by: "bytes" },
    read(delivery) {
      const whole = partsOf(delivery);
      const file = whole.body ?? new Uint8Array();
      const items: ReadItem[] = [];
      let at = skipWhiteSpace(file, 0);
      if (at >= file.length) return ignored("a file without interchanges");
      while (at < file.length) {
        const read = readInterchange(file, at);
        const own: RawDelivery = { ...whole, body: file.subarray(at, read.end) };
        items.push(...toItems(own, read, unit, test, why));
        at = skipWhiteSpace(file, read.end);
      }
      return items;
    },
  };
}

interface Read {
  readonly end: number;
  readonly problem?: string | undefined;
  /** ISA05, ISA06, ISA07, ISA08. */
  readonly parties: readonly string[];
  readonly reference?: string | undefined;
  readonly test: boolean;
  readonly groups: readonly Group[];
  readonly prepared: string;
}

function readInterchange(file: Uint8Array, start: number): Read {
  const none = { parties: [], test: false, groups: [], prepared: "" };
  if (!startsWith(file, start, "ISA") || start + isaLength > file.length) {
    return { ...none, end: file.length, problem: "it does not begin with a whole ISA" };
  }
  // ISA has a fixed length, and its own separators at fixed places.
  const syntax: EdiSyntax = {
    component: -1,
    element: file[start + 3]!,
    release: -1,
    terminator: file[start + 105]!,
  };
  const isa = segmentElements(file, start, start + isaLength - 1, syntax, latin1).map(([text = ""]) => text);
  if (isa.length !== 17)
    return { ...none, end: file.length, problem: "its ISA does not have sixteen elements" };
  // Padding to the fixed length is no part of the value.
  const parties = [isa[6]!, isa[5]!, isa[8]!, isa[7]!].map((text) => text.trimEnd());
  const header = {
    parties,
    reference: isa[13]!.trimEnd(),
    test: isa[15] === "T",
    prepared: `${isa[9]}:${isa[10]}`,
  };
  const groups: Group[] = [];
  let open: { start: number; type: string; reference: string } | undefined;
  let problem: string | undefined;
  let at = skipWhiteSpace(file, start + isaLength);
  while (at < file.length && !startsWith(file, at, "ISA")) {
    const end = segmentEnd(file, at, syntax);
    if (end === -1)
      return { ...header, groups, end: file.length, problem: "it is cut short inside a segment" };
    const tag = latin1(file.subarray(at, Math.min(end, at + 3)))!.replace(/[^A-Z0-9]/g, "");
    if (tag === "GS" || tag === "GE" || tag === "IEA") {
      const elements = segmentElements(file, at, end, syntax, latin1).map(([text = ""]) => text);
      if (tag === "GS") {
        if (open !== undefined) problem ??= "a group begins inside another";
        open = { start: at, type: elements[1] ?? "", reference: elements[6] ?? "" };
      } else if (tag === "GE") {
        if (open === undefined || elements[2] !== open.reference) problem ??= "a GE does not fit its GS";
        else groups.push({ ...open, end: end + 1 });
        open = undefined;
      } else {
        if (open !== undefined) problem ??= "a group has no GE";
        if (elements[2]?.trimEnd() !== header.reference)
          problem ??= "its IEA has another control number than its ISA";
        const count = elements[1] ?? "";
        if (!/^\d{1,9}$/.test(count) || Number(count) !== groups.length) {
          problem ??= `its IEA does not count the ${groups.length} groups there are`;
        }
        return { ...header, groups, end: end + 1, problem };
      }
    }
    at = skipWhiteSpace(file, end + 1);
  }
  return { ...header, groups, end: at, problem: "it has no IEA" };
}

function toItems(
  own: RawDelivery,
  read: Read,
  unit: "interchange" | "group",
  test: "ignore" | "accept",
  why: Why,
): readonly ReadItem[] {
  const parties = joinName(read.parties);
  const producer = read.test ? joinName([...read.parties, "test"]) : parties;
  if (read.problem !== undefined) {
    const text = `The interchange cannot be read: ${read.problem}.`;
    return refused(own, fault("malformed", text), { producer: producer || undefined, id: read.reference });
  }
  if (read.test && test === "ignore") return ignored("an interchange with the usage indicator T");
  const headers = { "x12-prepared": read.prepared };
  const bytes = own.body as Uint8Array;
  if (unit === "interchange") {
    const type = read.groups[0]?.type;
    return [readAs(own, { producer, id: read.reference, payload: bytes, key: parties, type, headers }, why)];
  }
  if (read.groups.length === 0) return ignored("an interchange without groups");
  const first = read.end - bytes.length;
  return read.groups.map(({ start, end, type, reference }) => {
    const payload = bytes.subarray(start - first, end - first);
    const id = read.reference && reference ? joinName([read.reference, reference]) : undefined;
    return readAs({ ...own, body: payload }, { producer, id, payload, key: parties, type, headers }, why);
  });
}
