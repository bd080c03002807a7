import { readFileSync } from "node:fs";

/** The bytes of a file of test/samples. */
export const sampleBytes = (name: string): Buffer =>
  readFileSync(new URL(`../samples/${name}`, import.meta.url));

/** A JSON file of test/samples. */
export const sampleJson = <Shape>(name: string): Shape => JSON.parse(sampleBytes(name).toString()) as Shape;
