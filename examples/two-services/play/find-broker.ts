import { connect } from "amqplib";

const usualUrl = "amqp://guest:guest@127.0.0.1:5672";

/** The RabbitMQ that AMQP_URL names, or the one on the usual port. Rejects with what to do where there is none. */
export async function findBroker(env: NodeJS.ProcessEnv): Promise<string> {
  const given = env["AMQP_URL"];
  const url = given || usualUrl;
  try {
    const connection = await connect(url, { timeout: 5_000 });
    await connection.close();
    return url;
  } catch (cause) {
    const { hostname, port } = URL.canParse(url) ? new URL(url) : { hostname: "AMQP_URL", port: "" };
    throw new Error(
      `There is no RabbitMQ at ${hostname}:${port || "5672"} (${(cause as Error).message || (cause as { code?: string }).code}).\n` +
        "Set AMQP_URL; or start one: npm run services -- up rabbitmq, which prints its AMQP_URL;\n" +
        "or do without: npm run example -- --broker none hands over from database to database.",
      { cause },
    );
  }
}
