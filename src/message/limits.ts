/** The longest id, in bytes of UTF-8. */
export const maxIdBytes = 1024;

/** The longest producer name, in bytes of UTF-8. */
export const maxProducerBytes = 512;

/** The longest tenant name, in bytes of UTF-8. */
export const maxTenantBytes = 256;

/** The longest consumer name, in bytes of UTF-8. */
export const maxConsumerBytes = 128;

/** The longest key that is kept as it came, in bytes of UTF-8; a longer one is kept as its digest. */
export const maxKeyBytes = 1024;

/** The longest type, in bytes of UTF-8. */
export const maxTypeBytes = 1024;

/** The deepest nesting of arrays and objects that canonical JSON takes. */
export const maxJsonDepth = 500;
