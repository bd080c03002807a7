import { readJson } from "../json-document.ts";
import { parseRfc3339 } from "../rfc3339.ts";
import { fault, readAs, refused } from "./format.ts";
import type { Format, Why } from "./format.ts";
import { joinName } from "./join-name.ts";
import { keyText } from "./header-value.ts";
import { sqsGroup } from "./sqs-fields.ts";

const why: Why = {
  identity:
    "the event's id with its account and source: the same for every target and retry, another if the producer puts the event again",
  payload: "the event's detail, as it stands in the event",
  key: "the FIFO group, if there is one",
  time: "the time field",
};

/** Events of Amazon EventBridge, as a queue or an HTTP target receives them. */
export const eventbridge = (): Format => ({
  name: "eventbridge",
  fingerprint: { by: "json" },
  read(delivery) {
    const event = readJson(delivery.body);
    if (typeof event === "string")
      return refused(delivery, fault("malformed", `The event cannot be read: ${event}.`));
    const source = event.text(["source"]);
    const type = event.text(["detail-type"]);
    const account = event.text(["account"]);
    if (source === undefined || type === undefined || account === undefined) {
      const text = "The message is no EventBridge event: it has no source, account or detail-type.";
      return refused(delivery, fault("no-identity", text));
    }
    const rawId = event.raw(["id"]);
    const id = event.text(["id"]);
    if (id === undefined && rawId !== undefined && rawId !== "null") {
      return refused(delivery, fault("malformed", "The event's id is no text."));
    }
    const detail = event.raw(["detail"]);
    const time = event.text(["time"]);
    return [
      readAs(
        delivery,
        {
          producer: joinName([account, source]),
          id,
          payload: detail === undefined || detail === "null" ? null : detail,
          key: keyText(sqsGroup(delivery)),
          type,
          time: time === undefined ? undefined : parseRfc3339(time),
        },
        why,
      ),
    ];
  },
});
