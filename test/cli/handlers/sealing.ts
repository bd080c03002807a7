// An operator's settings: keys from the environment, never from a command line, and what is hidden.
const bytes = Buffer.from(process.env["TEST_PAYLOAD_KEY"] ?? "", "hex");

export const payloadKeys = {
  current: () => ({ id: "k1", key: bytes }),
  byId: (id: string) => (id === "k1" ? bytes : undefined),
};

export const redact = ["/card"];
