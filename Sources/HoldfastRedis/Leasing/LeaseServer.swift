// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Redis
    /// What leases need of a Redis.
    ///
    /// **Use.** ``RedisLeases`` asks it. **Implement.** Neither throws nor waits for a server that is known to be lost; cancelling
    /// the task ends a wait at once.
    package protocol LeaseServer: Sendable {
        /// Runs a script, all of whose keys lie in one slot.
        ///
        /// - Returns: the bulk string that the script returned; nil where the server is lost or too slow, or said no.
        func evaluate(_ script: String, keys: [String], arguments: [String]) async -> String?

        /// Hands the messages of a channel to `receive` until the subscription is lost or the task is cancelled.
        func subscribe(_ channel: String, receive: @escaping @Sendable (String) -> Void) async
    }
#endif
