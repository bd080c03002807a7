import {
  maxEnvelopeSegment,
  segmentElements,
  segmentEnd,
  skipWhiteSpace,
  startsWith,
} from "./edi-scanner.ts";
import type { EdiSyntax } from "./edi-scanner.ts";
import { edifactDecoder } from "./edifact-charset.ts";

/** One interchange of an EDIFACT file. Texts are decoded by the interchange's own character set. */
export interface Interchange {
  /** From its UNA, or else its UNB, to the end of its UNZ; undecoded. */
  readonly bytes: Uint8Array;
  readonly sender: EdiParty;
  readonly recipient: EdiParty;
  /** The interchange control reference: a text, never a number. `undefined` if there is none. */
  readonly reference: string | undefined;
  /** UNB's date of preparation, YYMMDD or YYYYMMDD, and time; local to nobody knows where. */
  readonly date: string;
  readonly time: string;
  readonly test: boolean;
  /** The syntax identifier, such as UNOC. */
  readonly charset: string;
  /** The type of its first message, such as ORDERS. */
  readonly messageType: string | undefined;
  /** What is wrong with its envelope, if anything. */
  readonly problem: string | undefined;
}

export interface EdiParty {
  readonly id: string;
  readonly qualifier: string;
}

const standard: EdiSyntax = { component: 0x3a, element: 0x2b, release: 0x3f, terminator: 0x27 };
const nobody: EdiParty = { id: "", qualifier: "" };

/**
 * The interchanges of a file, each with the separators of its own UNA. Never throws. What is no interchange comes as one
 * with a `problem`, so that no byte of a file is dropped silently.
 */
export function readInterchanges(file: Uint8Array): Interchange[] {
  const interchanges: Interchange[] = [];
  let at = skipWhiteSpace(file, 0);
  while (at < file.length) {
    const { interchange, end } = readInterchange(file, at);
    interchanges.push(interchange);
    at = skipWhiteSpace(file, end);
  }
  return interchanges;
}

function readInterchange(file: Uint8Array, start: number): { interchange: Interchange; end: number } {
  let syntax = standard;
  let at = start;
  if (startsWith(file, at, "UNA") && at + 9 <= file.length) {
    const release = file[at + 6]!;
    syntax = {
      component: file[at + 3]!,
      element: file[at + 4]!,
      // A space means that nothing is released.
      release: release === 0x20 ? -1 : release,
      terminator: file[at + 8]!,
    };
    at = skipWhiteSpace(file, at + 9);
  }
  const broken = (problem: string, end: number): { interchange: Interchange; end: number } => ({
    interchange: {
      bytes: file.subarray(start, end),
      sender: nobody,
      recipient: nobody,
      reference: undefined,
      date: "",
      time: "",
      test: false,
      charset: "",
      messageType: undefined,
      problem,
    },
    end,
  });
  if (!startsWith(file, at, "UNB") || file[at + 3] !== syntax.element) {
    return broken("it does not begin with UNB", file.length);
  }
  const headerEnd = segmentEnd(file, at, syntax);
  if (headerEnd === -1) return broken("its UNB never ends", file.length);
  if (headerEnd - at > maxEnvelopeSegment) return broken("its UNB is longer than any", file.length);
  const header = readHeader(file, at, headerEnd, syntax);

  let messages = 0;
  let groups = 0;
  let messageType: string | undefined;
  at = skipWhiteSpace(file, headerEnd + 1);
  while (at < file.length) {
    // A new interchange before the end of this one: the file lost its trailer.
    if (startsWith(file, at, "UNB") || startsWith(file, at, "UNA")) break;
    const end = segmentEnd(file, at, syntax);
    if (end === -1)
      return { interchange: close("it is cut short inside a segment", file.length), end: file.length };
    if (startsWith(file, at, "UNH")) {
      if (messages++ === 0)
        messageType = segmentElements(file, at, end, syntax, edifactDecoder("UNOA"))[2]?.[0];
    } else if (startsWith(file, at, "UNG")) groups++;
    else if (startsWith(file, at, "UNZ")) {
      const trailer = segmentElements(file, at, end, syntax, edifactDecoder(header.charset));
      return { interchange: close(trailerProblem(trailer), end + 1), end: end + 1 };
    }
    at = skipWhiteSpace(file, end + 1);
  }
  return { interchange: close("it has no UNZ", at), end: at };

  function close(problem: string | undefined, end: number): Interchange {
    return { ...header, bytes: file.subarray(start, end), messageType, problem: header.problem ?? problem };
  }

  function trailerProblem(trailer: readonly (readonly (string | undefined)[])[]): string | undefined {
    const count = trailer[1]?.[0] ?? "";
    const reference = trailer[2]?.[0];
    const expected = groups > 0 ? groups : messages;
    if (!/^\d{1,9}$/.test(count) || Number(count) !== expected) {
      return `its UNZ counts ${/^\d{1,9}$/.test(count) ? count : "nothing readable"}, and there are ${expected}`;
    }
    return reference === header.reference ? undefined : "its UNZ has another control reference than its UNB";
  }
}

type Header = Omit<Interchange, "bytes" | "messageType">;

function readHeader(file: Uint8Array, start: number, end: number, syntax: EdiSyntax): Header {
  const charset =
    segmentElements(file, start, Math.min(end, start + 64), syntax, edifactDecoder("UNOA"))[1]?.[0] ?? "";
  const elements = segmentElements(file, start, end, syntax, edifactDecoder(charset));
  const undecodable = elements.some((components) => components.includes(undefined));
  const party = (index: number): EdiParty => ({
    id: elements[index]?.[0] ?? "",
    qualifier: elements[index]?.[1] ?? "",
  });
  const sender = party(2);
  const recipient = party(3);
  const named = sender.id !== "" && recipient.id !== "";
  return {
    sender,
    recipient,
    reference: elements[5]?.[0],
    date: elements[4]?.[0] ?? "",
    time: elements[4]?.[1] ?? "",
    test: elements[11]?.[0] === "1",
    charset,
    problem: undecodable
      ? "its UNB is not written in the character set that it names"
      : named
        ? undefined
        : "its UNB names no sender or no recipient",
  };
}
