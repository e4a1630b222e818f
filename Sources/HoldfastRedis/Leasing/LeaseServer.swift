// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Redis
    /// What leases need from a Redis server.
    ///
    /// **Use.** ``RedisLeases`` calls it. **Implement.** The methods neither throw nor wait for a server that is known to be
    /// lost; cancelling the task ends a wait at once.
    package protocol LeaseServer: Sendable {
        /// Runs a script whose keys are all in one slot.
        ///
        /// - Returns: the bulk string that the script returned; nil if the server is lost or too slow, or refused.
        func evaluate(_ script: String, keys: [String], arguments: [String]) async -> String?

        /// Calls `receive` with the messages of a channel until the subscription is lost or the task is cancelled.
        func subscribe(_ channel: String, receive: @escaping @Sendable (String) -> Void) async
    }
#endif
