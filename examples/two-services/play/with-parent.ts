// Loaded before a service: it ends when what has started it is gone, also when that was killed.
process.once("disconnect", () => process.exit());
// It is to end by itself after SIGTERM, as it would without a parent.
process.channel?.unref();

// Until then SIGTERM ends it as it ends every program; from then on it is the program's to end in good order.
process.on("newListener", (name) => {
  if (name !== "SIGTERM") return;
  process.nextTick(() => {
    if (process.connected) process.send?.({ listens: "SIGTERM" });
  });
});
