import { InvalidArgumentError, Option } from "commander";

/** `--schema`, the same for every command that connects. */
export const schemaOption = (): Option =>
  new Option("--schema <name>", "the schema that holds the inbox's tables").default("inbox");

/** `--json`, the same for every command that prints data. */
export const jsonOption = (): Option => new Option("--json", "print data as JSON");

/** An option's value as a whole number from `min` to `max`. */
export const wholeNumber =
  (min: number, max: number) =>
  (text: string): number => {
    const value = Number(text);
    if (!/^\d+$/.test(text) || value < min || value > max) {
      throw new InvalidArgumentError(`It must be a whole number from ${min} to ${max}.`);
    }
    return value;
  };
