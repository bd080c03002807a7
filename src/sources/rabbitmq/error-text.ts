import { printable } from "../../message/show-value.ts";

const longest = 500;

/** What went wrong, for people: on one line, without the user and password of any URL in it. */
export function errorText(error: unknown): string {
  const texts: string[] = [];
  let link: unknown = error;
  for (let depth = 0; depth < 4 && link !== undefined && link !== null; depth++) {
    const text = messageOf(link);
    if (text !== "" && !texts.some((known) => known.includes(text))) texts.push(text);
    link = typeof link === "object" && "cause" in link ? link.cause : undefined;
  }
  const text = texts.join(": ") || "unknown error";
  return printable(text.replace(/([a-z][a-z0-9+.-]*:\/\/)[^\s/@]*@/gi, "$1***@").slice(0, longest));
}

function messageOf(link: unknown): string {
  try {
    if (!(link instanceof Error)) return typeof link === "string" ? link : "";
    // An AggregateError of several addresses has no text of its own.
    return link.message || (link as { code?: string }).code || link.name;
  } catch {
    return "";
  }
}

/** Whether the broker says that there is no such queue. */
export const saysNotFound = (error: unknown): boolean => /NOT[_-]FOUND/.test(errorText(error));
