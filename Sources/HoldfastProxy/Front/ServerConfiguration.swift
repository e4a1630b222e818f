// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    package import NIOCore

    /// Bounds and times of an ``HTTPServer``.
    package struct ServerConfiguration: Sendable {
        /// How much of a request's head is read.
        package var headLimits = HeadLimits()
        /// How many connections are served at a time; 10,000 by default.
        ///
        /// Further ones are answered 503 with Retry-After, 64 of them at a time; what comes beyond those is closed unanswered.
        package var maximumConnections = 10_000
        /// How many seconds Retry-After names there; 5 by default.
        package var retryAfter = 5
        /// The time for a request's head from its first byte, and for the first byte from the start of a connection; then 408 and,
        /// where no byte came, silence. 30 s by default.
        package var headTimeout: TimeAmount = .seconds(30)
        /// How long a connection may lie idle between requests; then it is closed without a word. 75 s by default.
        package var idleTimeout: TimeAmount = .seconds(75)
        /// How long no byte of a request's content may come while it is being read; then 408. 60 s by default.
        package var bodyStall: TimeAmount = .seconds(60)
        /// How long a client may take nothing of an answer; then the connection is closed. 60 s by default.
        package var writeStall: TimeAmount = .seconds(60)
        /// How long a connection that is closed after an answer waits for the client to close its side, so that what the client
        /// still sends does not turn into a reset that overtakes the answer. 5 s by default.
        package var lingerTimeout: TimeAmount = .seconds(5)
        /// How much content that the handler left unread is read and dropped to keep a connection; 64 KiB by default.
        package var unreadLimit = 64 << 10
        /// How many bytes a body in memory has at most to be sent in one buffer with its head, and the size of the slices of a
        /// larger one; 64 KiB by default.
        package var sliceSize = 64 << 10

        /// The defaults.
        package init() {}
    }
#endif
