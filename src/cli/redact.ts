/** Takes secrets out of a text before anybody sees it. */
export type Redact = (text: string) => string;

/**
 * Hides the password of any URL in a text, and wherever they stand the passwords of DATABASE_URL and PGPASSWORD
 * themselves: drivers repeat what they were given in their errors.
 */
export function redactFor(env: Readonly<Record<string, string | undefined>>): Redact {
  const secrets = [...passwordsOf(env["DATABASE_URL"] ?? ""), env["PGPASSWORD"] ?? ""].filter(
    ({ length }) => length >= 4,
  );
  return (text) => {
    let safe = text
      .replace(/([a-z][a-z0-9+.-]*:\/\/[^\s:/@]*):[^\s@]*@/gi, "$1:***@")
      .replace(/(password=)[^&\s]*/gi, "$1***");
    for (const secret of secrets) safe = safe.replaceAll(secret, "***");
    return safe;
  };
}

function passwordsOf(text: string): readonly string[] {
  const written = /^[a-z+]+:\/\/[^:/@]*:(.*)@/i.exec(text)?.[1] ?? /[?&]password=([^&]*)/i.exec(text)?.[1];
  if (written === undefined) return [];
  try {
    return [written, decodeURIComponent(written)];
  } catch {
    return [written];
  }
}
