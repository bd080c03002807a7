// Loaded before a service: it ends when what has started it is gone, also when that was killed.
process.once("disconnect", () => process.exit());
// It is to end by itself after SIGTERM, as it would without a parent.
process.channel?.unref();
