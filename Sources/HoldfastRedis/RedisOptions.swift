// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Redis

    /// How a ``RedisStore`` uses its server; everything has a default.
    public struct RedisOptions: Sendable {
        /// What sets one store apart from another on the same server; letters, digits, `-`, `_`, `.`; `default` by default.
        ///
        /// All keys and channels are `holdfast:2:{prefix}:…`, so that they lie in one slot of a cluster.
        public var prefix = "default"
        /// Bytes of entries on the server at most, for all processes together, which must all say the same; 1 GiB by default.
        public var capacity = 1 << 30
        /// Bytes held in this process: copies of what is asked for often, and as much again while the server is away; 64 MiB by
        /// default, 0 for no copies.
        public var memory = 64 << 20
        /// Connections to the server, each with a thread of its own; 4 by default, at least 1.
        public var connections = 4
        /// How long making a connection may take; half a second by default.
        public var connectTimeout = Duration.milliseconds(500)
        /// How long an answer may take; half a second by default. What is later counts as lost.
        public var commandTimeout = Duration.milliseconds(500)

        /// All defaults.
        public init() {}
    }

    /// How a ``RedisStore`` and its server get on.
    public struct RedisStatus: Sendable, Hashable {
        /// Whether the server answers; while it does not, this process goes on with memory of its own.
        public var isReachable: Bool
        /// Whether changes of other processes are heard; while they are not, no copies in memory are used.
        public var hearsChanges: Bool
        /// How often the server was lost.
        public var losses: Int
        /// Changes of other processes that were heard.
        public var changesHeard: Int
        /// What the server refused although it was reached: a key of a wrong type, a right that is missing, no memory left.
        public var refusals: Int
        /// What the server, or the way to it, last said against a command; nil where it never did. Shows no password.
        public var lastError: String?
    }
#endif
