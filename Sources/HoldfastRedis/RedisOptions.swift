// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Redis

    /// How a ``RedisStore`` uses its server; everything has a default.
    public struct RedisOptions: Sendable {
        /// Separates this store from others on the same server; letters, digits, `-`, `_`, `.`; `default` by default.
        ///
        /// All keys and channels are `holdfast:2:{prefix}:…`, so that they are in one slot of a cluster.
        public var prefix = "default"
        /// The most bytes of entries on the server, for all processes together, which must all have the same value; 1 GiB by
        /// default.
        public var capacity = 1 << 30
        /// The most bytes in this process for copies of frequent entries, and as much again while the server cannot be reached;
        /// 64 MiB by default, 0 for no copies.
        public var memory = 64 << 20
        /// Connections to the server, each with its own thread; 4 by default, at least 1.
        public var connections = 4
        /// How long connecting may take; half a second by default.
        public var connectTimeout = Duration.milliseconds(500)
        /// How long a reply may take; half a second by default. A later one counts as lost.
        public var commandTimeout = Duration.milliseconds(500)

        /// Creates the default options.
        public init() {}
    }

    /// The state of a ``RedisStore`` and its server.
    public struct RedisStatus: Sendable, Hashable {
        /// Whether the server answers; while it does not, this process uses its own memory.
        public var isReachable: Bool
        /// Whether changes of other processes are received; while they are not, no copies in memory are used.
        public var hearsChanges: Bool
        /// How often the server was lost.
        public var losses: Int
        /// Changes of other processes that were received.
        public var changesHeard: Int
        /// How many commands the server refused: a key of the wrong type, a missing permission, no memory left.
        public var refusals: Int
        /// The last error of the server or the connection; nil if there was none. Shows no password.
        public var lastError: String?
    }
#endif
