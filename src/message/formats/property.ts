/** An own property of an object of unknown kind, if it is a text. */
export function propertyText(object: unknown, name: string): string | undefined {
  const value = property(object, name);
  return typeof value === "string" ? value : undefined;
}

/** An own property of an object of unknown kind. */
export function property(object: unknown, name: string): unknown {
  if (typeof object !== "object" || object === null || !Object.hasOwn(object, name)) return undefined;
  return (object as Record<string, unknown>)[name];
}
