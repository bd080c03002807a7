/** The texts of the statements in what a client sends to PostgreSQL; those that are prepared are known by their name. */
export type ReadStatements = (bytes: Uint8Array) => readonly string[];

/** A reader for one connection. It expects whole messages in a chunk, as the drivers write them, and gives up on others. */
export function statementReader(): ReadStatements {
  const prepared = new Map<string, string>();
  return (bytes) => {
    const view = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    const texts: string[] = [];
    for (let at = 0; at + 5 <= view.length;) {
      const type = String.fromCharCode(view[at]!);
      const end = at + 1 + view.readUInt32BE(at + 1);
      // The first message of a connection has no type.
      if (!/[A-Za-z]/.test(type) || end > view.length) break;
      const text = (from: number): string => view.toString("utf8", from, view.indexOf(0, from));
      const first = text(at + 5);
      const second = at + 5 + Buffer.byteLength(first) + 1;
      if (type === "Q") texts.push(first);
      // Parse: the name, then the text. Bind: the portal, then the name.
      else if (type === "P") prepared.set(first, text(second));
      else if (type === "B") texts.push(prepared.get(text(second)) ?? "");
      at = end;
    }
    return texts;
  };
}
