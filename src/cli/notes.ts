import type { AddHelpTextContext } from "commander";

/**
 * What stands behind a command's options, for `addHelpText`, as wide as the terminal: paragraphs are wrapped, and where
 * an example with its remark would not fit, the remarks stand above.
 */
export const notesOf =
  (text: string) =>
  ({ command }: AddHelpTextContext): string => {
    const columns = command.configureOutput().getOutHelpWidth?.() ?? 80;
    return fitNotes(text, Math.max(40, Math.min(columns, 120)));
  };

/** The text in lines of at most `width` characters, as far as its words allow. */
export function fitNotes(text: string, width: number): string {
  const lines = text.replaceAll(/ \\\n\s+/g, " ").split("\n");
  const remarksAbove = lines.some((line) => isExample(line) && line.length > width && remarkOf(line) !== "");
  const fitted: string[] = [];
  let paragraph: string[] = [];
  const endParagraph = (): void => {
    fitted.push(...wrap(paragraph.join(" "), width));
    paragraph = [];
  };
  for (const line of lines) {
    if (line !== "" && !line.startsWith(" ") && !/^Examples?:$/.test(line)) {
      paragraph.push(line);
      continue;
    }
    if (paragraph.length > 0) endParagraph();
    if (!isExample(line)) fitted.push(line);
    else if (!remarksAbove) fitted.push(...breakCommand(line, width));
    else {
      const remark = remarkOf(line);
      if (remark !== "") fitted.push(`  # ${remark}`);
      fitted.push(...breakCommand(line.slice(0, line.length - remark.length).trimEnd(), width));
    }
  }
  if (paragraph.length > 0) endParagraph();
  return fitted.join("\n");
}

const isExample = (line: string): boolean => line.startsWith("  $ ");

/** What stands behind an example, two spaces or more away. */
const remarkOf = (line: string): string => /\S {2,}(\S.*)$/.exec(line)?.[1] ?? "";

function wrap(text: string, width: number): string[] {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(" ")) {
    if (line !== "" && line.length + 1 + word.length > width) {
      lines.push(line);
      line = word;
    } else line = line === "" ? word : `${line} ${word}`;
  }
  return [...lines, line];
}

/** A long command goes on in the next line, as a shell takes it. */
function breakCommand(line: string, width: number): string[] {
  if (line.length <= width) return [line];
  const at = line.lastIndexOf(" --", width - 2);
  if (at <= 8) return [line];
  return [`${line.slice(0, at)} \\`, ...breakCommand(`     ${line.slice(at)}`, width)];
}
