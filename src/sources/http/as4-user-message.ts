import { SaxesParser } from "saxes";
import type { SaxesTagNS } from "saxes";

const eb = "http://docs.oasis-open.org/ebxml-msg/ebms/v3.0/ns/core/200704/";
const xmlns = "http://www.w3.org/2000/xmlns/";
const xml = "http://www.w3.org/XML/1998/namespace";

/**
 * The first eb:UserMessage of an envelope, written anew so that it stands by itself where `eb` is declared: the sender's
 * prefixes are gone, everything it says is there. The envelope must have been read before (`readEnvelope`): what that
 * refuses is not looked for again.
 */
export function copyUserMessage(envelope: string): string {
  const parser = new SaxesParser({ xmlns: true });
  const names: string[] = [];
  let written = "";
  let done = false;
  parser.on("opentag", (tag) => {
    if (done || (names.length === 0 && !(tag.uri === eb && tag.local === "UserMessage"))) return;
    const { name, declaration } = nameOf(tag, "x");
    names.push(name);
    written += `<${name}${declaration}${attributesOf(tag)}>`;
  });
  const addText = (text: string): void => {
    if (names.length > 0) written += escapeText(text);
  };
  parser.on("text", addText);
  parser.on("cdata", addText);
  parser.on("closetag", () => {
    const name = names.pop();
    if (name === undefined) return;
    written += `</${name}>`;
    done = names.length === 0;
  });
  parser.write(envelope).close();
  return written;
}

const escapes: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "\r": "&#13;",
  "\n": "&#10;",
  "\t": "&#9;",
};

/** Text for the inside of an element. */
export const escapeText = (text: string): string => text.replace(/[&<>\r]/g, (found) => escapes[found]!);

/** Text for a quoted attribute. */
export const escapeAttribute = (text: string): string =>
  text.replace(/[&<>"\r\n\t]/g, (found) => escapes[found]!);

function nameOf(
  { uri, local }: { readonly uri: string; readonly local: string },
  prefix: string,
): { readonly name: string; readonly declaration: string } {
  if (uri === "") return { name: local, declaration: "" };
  if (uri === eb) return { name: `eb:${local}`, declaration: "" };
  if (uri === xml) return { name: `xml:${local}`, declaration: "" };
  return { name: `${prefix}:${local}`, declaration: ` xmlns:${prefix}="${escapeAttribute(uri)}"` };
}

function attributesOf(tag: SaxesTagNS): string {
  return Object.values(tag.attributes)
    .filter(({ uri }) => uri !== xmlns)
    .map((attribute, i) => {
      const { name, declaration } = nameOf(attribute, `a${i}`);
      return `${declaration} ${name}="${escapeAttribute(attribute.value)}"`;
    })
    .join("");
}
