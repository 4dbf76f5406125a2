//! Checks of the health service.

use super::section;
use crate::check::{Applicability, Check, Level, Test};

pub(super) const SERVING: Check = Check {
    id: "health.serving",
    title: "says that it serves",
    tries: "grpc.health.v1.Health/Check is called for the service `plugin`.",
    why: "A plugin whose health service does not say SERVING never becomes ready. One without a health service is judged by whether it answers Capabilities, which costs more and says less.",
    mend: "Serve grpc.health.v1 and set `plugin` to SERVING before the line is printed.",
    level: Level::Must,
    about: Applicability::All,
    section: section::HEALTH,
    test: Test::HealthServing,
};

pub(super) const UNKNOWN_SERVICE: Check = Check {
    id: "health.unknown-service",
    title: "does not vouch for what it does not have",
    tries: "Health/Check is called for a service that does not exist.",
    why: "The health protocol answers NOT_FOUND. A plugin that says SERVING to every name has a constant there, and will say it when nothing works any more.",
    mend: "Use the health service that your gRPC library brings.",
    level: Level::Should,
    about: Applicability::All,
    section: section::HEALTH,
    test: Test::HealthUnknownService,
};

pub(super) const AFTER_CALLS: Check = Check {
    id: "health.after-calls",
    title: "still serves after all that",
    tries: "Health/Check is called once more, on the process that took the calls before.",
    why: "A plugin that calls itself unhealthy after a call that it did not like is taken out of service for everybody.",
    mend: "Health is about the process. What is wrong with one call belongs into its answer.",
    level: Level::Must,
    about: Applicability::All,
    section: section::HEALTH,
    test: Test::HealthAfterCalls,
};
