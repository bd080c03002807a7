import { fromCompose } from "./compose.ts";
import { elasticmq } from "./elasticmq.ts";
import type { SqsFacts } from "./facts.ts";
import { fauxqs } from "./fauxqs.ts";
import { speaksSqs, sqsAt } from "./sqs-address.ts";
import type { Kind } from "./way.ts";

const contained = fromCompose<SqsFacts>({
  service: "sqs",
  ports: { http: "SQS_PORT" },
  facts: ({ http }) => sqsAt("127.0.0.1", http!),
  check: speaksSqs,
});

export const sqs: Kind<SqsFacts> = {
  given() {
    const endpoint = process.env["SQS_ENDPOINT"];
    if (endpoint === undefined || endpoint === "") return undefined;
    const { hostname, port, protocol } = new URL(endpoint);
    const own = sqsAt(hostname, Number(port || (protocol === "https:" ? "443" : "80")));
    const { AWS_REGION, AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY } = process.env;
    return {
      ...own,
      endpoint,
      region: AWS_REGION ?? own.region,
      credentials: {
        accessKeyId: AWS_ACCESS_KEY_ID ?? own.credentials.accessKeyId,
        secretAccessKey: AWS_SECRET_ACCESS_KEY ?? own.credentials.secretAccessKey,
      },
    };
  },
  async usual() {
    const facts = sqsAt("127.0.0.1", 9324);
    return speaksSqs(facts).then(
      () => facts,
      () => undefined,
    );
  },
  ways: [contained, elasticmq, fauxqs],
};
