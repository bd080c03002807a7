import { styleText } from "node:util";
import type { WriteStream } from "node:tty";

/** Colours a text, or leaves it as it is. */
export type Paint = (style: "bold" | "dim" | "green" | "red" | "cyan", text: string) => string;

/** Colours for a terminal; none for a file or a pipe, or where NO_COLOR is set (no-color.org). */
export function paintFor(stream: Pick<WriteStream, "isTTY">, env: NodeJS.ProcessEnv): Paint {
  const wanted = stream.isTTY === true && !env["NO_COLOR"] && env["TERM"] !== "dumb";
  return wanted ? (style, text) => styleText(style, text) : (_style, text) => text;
}
